//! Jobs: their summaries, and what each of their hosts did over time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;

use super::clock::{Clock, levels};
use super::fabric::Fabric;
use super::{int, text};
use crate::data::DataFile;
use crate::explain::read::{damaged, table};
use crate::storage::Error;

/// Most hosts of a job that are shown over time.
const SHOWN: usize = 64;

#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// As in `summary.json`.
    pub summary: Json,
    /// The hosts over time begin here, the start of the job; and end here: its completion, or the run's end.
    pub from_ps: u64,
    pub until_ps: u64,
    pub bins: usize,
    /// Hosts that took part, whether or not they are in `hosts`.
    pub all_hosts: usize,
    /// In the order of the fabric: those that were stragglers, then the first ones.
    pub hosts: Vec<Host>,
}

/// What a host did, from the beginning to the end. The times add up to all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Host {
    pub node: usize,
    /// It computed, while none of its messages was on its path.
    pub computing_ps: u64,
    /// It computed, and at least one message from it or to it was on its path.
    pub both_ps: u64,
    /// At least one message was on its path, and it did not compute.
    pub moving_ps: u64,
    /// Neither: it waited for another host.
    pub waiting_ps: u64,
    /// By bin, their share of it: see [`levels`].
    pub computing: String,
    pub both: String,
    pub moving: String,
}

type Spans = Vec<(u64, u64)>;

/// Reads the jobs of a run that ended at `end_ps`.
pub fn read(path: &Path, fabric: &Fabric, summary: &Json, end_ps: u64) -> Result<Vec<Job>, Error> {
    let listed = summary["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    // A run of an older version has no such file.
    if listed.is_empty() || !path.join(DataFile::Computations.name()).exists() {
        return Ok(Vec::new());
    }
    let by_name = fabric.nodes_by_name();
    let node = |name: &str| {
        let found = by_name.get(name).copied();
        found.ok_or_else(|| damaged(path, format!("is damaged: there is no host `{name}`")))
    };
    let mut computed: BTreeMap<(&str, usize), Spans> = BTreeMap::new();
    let mut moved: BTreeMap<(&str, usize), Spans> = BTreeMap::new();
    let computations = table(path, DataFile::Computations, &["class", "host", "start_ps", "end_ps"])?;
    for i in 0..computations.rows() {
        let (Some(start), Some(end)) =
            (computations.maybe_int("start_ps", i), computations.maybe_int("end_ps", i))
        else {
            continue;
        };
        let host = node(computations.text("host", i))?;
        computed.entry((computations.text("class", i), host)).or_default().push((start, end));
    }
    let flows = table(path, DataFile::Flows, &["src", "dst", "class", "start_ps", "delivered_ps"])?;
    for i in 0..flows.rows() {
        let Some(start) = flows.maybe_int("start_ps", i) else { continue };
        let end = flows.maybe_int("delivered_ps", i).unwrap_or(end_ps);
        for column in ["src", "dst"] {
            let host = node(flows.text(column, i))?;
            moved.entry((flows.text("class", i), host)).or_default().push((start, end));
        }
    }
    let job = |summary: &Json| {
        let class = text(summary, "/class");
        let from_ps = int(summary, "/start_ps");
        let until_ps = summary["completed_ps"].as_u64().unwrap_or(end_ps).max(from_ps);
        let clock = Clock::new(until_ps - from_ps);
        let of = |all: &BTreeMap<(&str, usize), Spans>, host: usize| {
            let spans = all.get(&(class, host)).cloned().unwrap_or_default();
            union(spans.into_iter().map(|(a, b)| (a.saturating_sub(from_ps), b.saturating_sub(from_ps))))
        };
        let within = |all: &BTreeMap<(&str, usize), Spans>| -> BTreeSet<usize> {
            all.keys().filter(|(of, _)| *of == class).map(|&(_, host)| host).collect()
        };
        let all: BTreeSet<usize> = within(&computed).union(&within(&moved)).copied().collect();
        let late: BTreeSet<&str> = summary["operations"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|operation| operation["straggler"]["host"].as_str())
            .collect();
        let mut shown: Vec<usize> = all.iter().copied().collect();
        shown.sort_by_key(|&host| (!late.contains(fabric.nodes[host].name.as_str()), host));
        shown.truncate(SHOWN);
        shown.sort_unstable();
        let host = |node| activity(node, clock, &of(&computed, node), &of(&moved, node));
        Job {
            summary: summary.clone(),
            from_ps,
            until_ps,
            bins: clock.bins,
            all_hosts: all.len(),
            hosts: shown.into_iter().map(host).collect(),
        }
    };
    Ok(listed.iter().map(job).collect())
}

/// What a host did, by the times in which it computed and those in which its messages moved.
fn activity(node: usize, clock: Clock, computed: &Spans, moved: &Spans) -> Host {
    let by_bin = |spans: &Spans| {
        let mut bins = vec![0; clock.bins];
        for &(from, until) in spans {
            clock.parts(from, until).for_each(|(bin, part)| bins[bin] += part);
        }
        bins
    };
    let both = by_bin(&intersection(computed, moved));
    let less = |all: Vec<u64>| -> Vec<u64> { all.iter().zip(&both).map(|(all, both)| all - both).collect() };
    let (computing, moving) = (less(by_bin(computed)), less(by_bin(moved)));
    let shares = |bins: &[u64]| levels(bins.iter().enumerate().map(|(bin, &ps)| (ps, clock.length(bin))));
    let sum = |bins: &[u64]| bins.iter().sum::<u64>();
    Host {
        node,
        computing_ps: sum(&computing),
        both_ps: sum(&both),
        moving_ps: sum(&moving),
        waiting_ps: clock.end_ps - sum(&computing) - sum(&both) - sum(&moving),
        computing: shares(&computing),
        both: shares(&both),
        moving: shares(&moving),
    }
}

/// The same times in order, without overlaps.
fn union(spans: impl Iterator<Item = (u64, u64)>) -> Spans {
    let mut sorted: Spans = spans.filter(|(from, until)| from < until).collect();
    sorted.sort_unstable();
    let mut all = Spans::new();
    for (from, until) in sorted {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => all.push((from, until)),
        }
    }
    all
}

/// The times that are in both.
fn intersection(a: &Spans, b: &Spans) -> Spans {
    let (mut i, mut j, mut all) = (0, 0, Spans::new());
    while let (Some(&(a_from, a_until)), Some(&(b_from, b_until))) = (a.get(i), b.get(j)) {
        let (from, until) = (a_from.max(b_from), a_until.min(b_until));
        if from < until {
            all.push((from, until));
        }
        if a_until < b_until { i += 1 } else { j += 1 }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_host_add_up() {
        let computed = union([(0, 300), (200, 400), (900, 900)].into_iter());
        let moved = union([(350, 500), (700, 1200), (360, 380)].into_iter());
        assert_eq!((&computed, &moved), (&vec![(0, 400)], &vec![(350, 500), (700, 1200)]));
        assert_eq!(intersection(&computed, &moved), [(350, 400)]);
        let host = activity(3, Clock::new(1000), &computed, &moved);
        let times = (host.computing_ps, host.both_ps, host.moving_ps, host.waiting_ps);
        assert_eq!(times, (350, 50, 400, 200));
        // Bins of 5 ps. In the whole 70th bin the host only computes; in the whole 75th it also communicates.
        let at = |bin: usize| [&host.computing, &host.both, &host.moving].map(|l| l.as_bytes()[bin]);
        assert_eq!(
            [at(69), at(70), at(80), at(120)].map(|l| l.map(char::from)),
            [['_', '0', '0'], ['0', '_', '0'], ['0', '0', '_'], ['0', '0', '0'],]
        );
    }
}
