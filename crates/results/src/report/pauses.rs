//! The paused ports over time, with reasons and congested ports: the page replays them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::clock::{Clock, levels};
use super::fabric::Fabric;
use crate::data::DataFile;
use crate::explain::read::{damaged, table};
use crate::storage::Error;

/// Maximum number of ports whose pauses are shown over time.
const REPLAYED: usize = 400;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Pauses {
    pub count: u64,
    /// Whether the congested ports that caused them are known.
    pub roots_known: bool,
    /// Ports that were ever paused, whether or not they are in `ports`.
    pub paused_ports: usize,
    /// Those that were paused longest, longest first.
    pub ports: Vec<PortPauses>,
}

#[derive(Clone, Debug, Serialize)]
pub struct PortPauses {
    pub port: usize,
    pub count: u64,
    /// Time in which at least one of its queues was paused.
    pub paused_ps: u64,
    /// By bin, the share of it in which at least one queue was paused: see [`levels`].
    pub levels: String,
    /// By stretches of equal bins: first bin, count, the port that sent the pause, and the congested port or
    /// -1. If there are several pauses in a bin, the one that lasted longest.
    pub reasons: Vec<(usize, usize, usize, i64)>,
}

/// The state of a port while its pauses are read.
#[derive(Clone)]
struct Found {
    count: u64,
    paused_ps: u64,
    until: u64,
    paused: Vec<u64>,
    /// By bin: time for each (cause, root).
    reasons: Vec<BTreeMap<(usize, i64), u64>>,
}

pub fn read(path: &Path, fabric: &Fabric, clock: Clock, end_ps: u64) -> Result<Pauses, Error> {
    let t = table(path, DataFile::Pauses, &["port", "from_ps", "until_ps", "cause", "root", "named_root"])?;
    let by_name = fabric.by_name();
    let place = |column: &str, i: usize| t.texts(column).get(i).map(|name| by_name.get(name).copied());
    let mut found: BTreeMap<usize, Found> = BTreeMap::new();
    let mut roots_known = false;
    for i in 0..t.rows() {
        let (Some(Some(port)), Some(Some(cause))) = (place("port", i), place("cause", i)) else {
            return Err(damaged(path, "is damaged: pauses.parquet names a port that does not exist".into()));
        };
        // As `xoff explain` judges: by the port that the frame named, if it named one.
        let root = place("named_root", i).or_else(|| place("root", i)).flatten();
        roots_known |= root.is_some();
        let from = t.int("from_ps", i);
        let until = t.maybe_int("until_ps", i).unwrap_or(end_ps);
        let one = found.entry(port).or_insert_with(|| Found {
            count: 0,
            paused_ps: 0,
            until: 0,
            paused: vec![0; clock.bins],
            reasons: vec![BTreeMap::new(); clock.bins],
        });
        one.count += 1;
        let root = root.map_or(-1, |root| root as i64);
        for (bin, part) in clock.parts(from, until) {
            *one.reasons[bin].entry((cause, root)).or_default() += part;
        }
        // Rows come in the order of beginning, so that this is the union over queues.
        let fresh = from.max(one.until);
        one.paused_ps += until.saturating_sub(fresh);
        for (bin, part) in clock.parts(fresh, until) {
            one.paused[bin] += part;
        }
        one.until = one.until.max(until);
    }
    let paused_ports = found.len();
    let mut ports: Vec<_> = found.into_iter().collect();
    ports.sort_by_key(|(_, one)| std::cmp::Reverse(one.paused_ps));
    let port_pauses = |(port, one): (usize, Found)| PortPauses {
        port,
        count: one.count,
        paused_ps: one.paused_ps,
        levels: levels(one.paused.iter().enumerate().map(|(bin, &ps)| (ps, clock.length(bin)))),
        reasons: stretches(&one.reasons),
    };
    Ok(Pauses {
        count: t.rows() as u64,
        roots_known,
        paused_ports,
        ports: ports.into_iter().take(REPLAYED).map(port_pauses).collect(),
    })
}

fn stretches(bins: &[BTreeMap<(usize, i64), u64>]) -> Vec<(usize, usize, usize, i64)> {
    let mut all: Vec<(usize, usize, usize, i64)> = Vec::new();
    for (bin, reasons) in bins.iter().enumerate() {
        // Of equally long ones the first.
        let longest = reasons.iter().max_by_key(|(reason, time)| (**time, std::cmp::Reverse(**reason)));
        let Some((&(cause, root), _)) = longest else { continue };
        match all.last_mut() {
            Some(last) if last.0 + last.1 == bin && (last.2, last.3) == (cause, root) => last.1 += 1,
            _ => all.push((bin, 1, cause, root)),
        }
    }
    all
}
