//! The time axis of a page: a run cut into bins of equal length, up to where something happens.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::data::DataFile;
use crate::explain::read::table;
use crate::storage::Error;

/// Bins of a run, from 0 to its end.
pub const BINS: usize = 200;

/// The characters for levels in a string of levels: 0 for nothing, 63 for all.
const LEVELS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

/// Which time is in which bin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Clock {
    pub bins: usize,
    /// End of the last one, in picoseconds: the run's end, or earlier if nothing happens until then.
    pub end_ps: u64,
}

impl Clock {
    pub fn new(end_ps: u64) -> Self {
        Self { bins: BINS, end_ps }
    }

    /// Of the run at `path` that ended at `end_ps`. If a run is idle long before its end, after a deadlock or
    /// its last flow, the clock ends a little after the last change.
    pub fn of_run(path: &Path, end_ps: u64) -> Result<Self, Error> {
        let most = |file, columns: &[&str]| {
            let t = table(path, file, columns)?;
            let last = columns.iter().flat_map(|name| t.ints(name).iter().flatten()).max();
            Ok(last.map_or(0, |ps| ps.unsigned_abs()))
        };
        let flows = most(DataFile::Flows, &["start_ps", "delivered_ps", "completed_ps", "failed_ps"])?;
        let pauses = most(DataFile::Pauses, &["from_ps", "until_ps"])?;
        // Without samples the activity of unfinished flows is unknown.
        let samples = last_sample(path)?.unwrap_or(end_ps);
        let last = flows.max(pauses).max(samples);
        let followed = last.saturating_add(last / 4);
        Ok(Self::new(if last > 0 { followed.min(end_ps) } else { end_ps }))
    }

    /// Where a bin begins, in picoseconds; of [`BINS`] the run's end.
    pub fn begin(&self, bin: usize) -> u64 {
        (u128::from(self.end_ps) * bin as u128 / self.bins as u128) as u64
    }

    pub fn length(&self, bin: usize) -> u64 {
        self.begin(bin + 1) - self.begin(bin)
    }

    /// The bin of a time, the last one that begins no later; the last bin for all later times.
    pub fn bin(&self, ps: u64) -> usize {
        if self.end_ps == 0 {
            return 0;
        }
        // Beginnings are rounded down, and those of several bins may be one.
        let bin = ((u128::from(ps) + 1) * self.bins as u128 - 1) / u128::from(self.end_ps);
        bin.min(self.bins as u128 - 1) as usize
    }

    /// The bins that `from..until` touches, each with how much of it.
    pub fn parts(self, from: u64, until: u64) -> impl Iterator<Item = (usize, u64)> {
        let until = until.min(self.end_ps);
        let bins = if from < until { self.bin(from)..self.bin(until - 1) + 1 } else { 0..0 };
        bins.map(move |bin| (bin, until.min(self.begin(bin + 1)) - from.max(self.begin(bin))))
    }
}

/// When a sample last differed from the one before of the same thing; `None` without samples.
fn last_sample(path: &Path) -> Result<Option<u64>, Error> {
    let t = table(path, DataFile::Series, &["time_ps", "quantity", "element", "value"])?;
    let mut before: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut last = None;
    for i in 0..t.rows() {
        let (line, value) = ((t.text("quantity", i), t.text("element", i)), t.int("value", i));
        let changed = before.insert(line, value).unwrap_or(0) != value;
        last = last.max(Some(if changed { t.int("time_ps", i) } else { 0 }));
    }
    Ok(last)
}

/// Values as a letter each: their share of `whole` in 63rds, at least one for a value above 0.
pub fn levels(values: impl Iterator<Item = (u64, u64)>) -> String {
    let level = |(value, whole): (u64, u64)| {
        let share = u128::from(value.min(whole)) * 63 / u128::from(whole.max(1));
        char::from(LEVELS[(share as usize).max(usize::from(value > 0))])
    };
    values.map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_have_no_gap_and_parts_add_up() {
        for end_ps in [1, 199, 200, 1_000_003, u64::MAX] {
            let clock = Clock::new(end_ps);
            assert_eq!((clock.begin(0), clock.begin(BINS)), (0, end_ps));
            for (from, until) in [(0, end_ps), (end_ps / 3, end_ps / 2), (end_ps - 1, u64::MAX), (5, 5)] {
                let parts: Vec<_> = clock.parts(from, until).collect();
                let sum: u128 = parts.iter().map(|p| u128::from(p.1)).sum();
                assert_eq!(sum, u128::from(until.min(end_ps).saturating_sub(from)), "{from}..{until}");
                assert!(parts.iter().all(|&(bin, part)| part <= clock.length(bin)));
            }
        }
        let clock = Clock::new(1_000);
        assert_eq!((clock.bin(0), clock.bin(4), clock.bin(5), clock.bin(1_000)), (0, 0, 1, 199));
    }

    #[test]
    fn a_level_is_0_only_for_nothing_and_63_only_for_all() {
        let values = [(0, 100), (1, 100_000), (50, 100), (99, 100), (100, 100), (0, 0)];
        assert_eq!(levels(values.into_iter()), "01V-_0");
    }
}
