//! The output of `xoff explain` about the run, and about the flows and ports of most interest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::explain::read::{By, Run};
use crate::explain::{self, Overview, text};
use crate::storage::Error;

/// Most flows of a class, by slowdown and by victim waiting each, that have a story.
const FLOWS: usize = 25;
/// Most ports that have one.
const PORTS: usize = 120;
/// Most bytes of the stories of flows, and of those of ports.
const BYTES: usize = 400_000;

/// Words of `xoff explain`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stories {
    pub overview: String,
    pub flows: BTreeMap<usize, String>,
    pub ports: BTreeMap<String, String>,
}

/// Explains the run that was read from `path`: all of it, its slowest flows and worst victims, and the ports
/// in `ports`, which come before others.
pub fn tell(path: &Path, run: &Run, ports: &[String]) -> Result<(Stories, Overview), Error> {
    let overview = explain::overview(path, run, explain::Choice::default(), explain::SLOWEST)?;
    let text = text::overview(&overview);
    let text = text.trim_end_matches(text::FURTHER).trim_end();
    let mut stories = Stories { overview: text.into(), ..Stories::default() };
    let mut left = BYTES;
    for id in asked_first(run, &overview) {
        let story = text::flow(&explain::flow(path, run, id)?);
        if story.len() > left {
            break;
        }
        left -= story.len();
        stories.flows.insert(id, story);
    }
    let mut left = BYTES;
    let roots = overview.roots.iter().map(|root| &root.port);
    let own_roots = overview.own_roots.iter().map(|root| &root.port);
    for port in roots.chain(own_roots).chain(ports) {
        if stories.ports.len() == PORTS || stories.ports.contains_key(port) {
            continue;
        }
        let story = text::port(&explain::port(path, run, port, explain::Choice::default())?);
        if story.len() <= left {
            left -= story.len();
            stories.ports.insert(port.clone(), story);
        }
    }
    Ok((stories, overview))
}

/// Flows in the order of interest: victims, then of each class the slowest and the unfinished flows that
/// lasted longest.
fn asked_first(run: &Run, overview: &Overview) -> Vec<usize> {
    let mut order: Vec<usize> = overview.victims.iter().map(|victim| victim.head.flow).collect();
    let mut by_class: BTreeMap<&str, [Vec<(u64, usize)>; 3]> = BTreeMap::new();
    for flow in run.flows.iter().filter(|flow| flow.start_ps.is_some()) {
        let victim_ps = explain::victim_time(run.of(flow), By::Named);
        let class = by_class.entry(&flow.class).or_default();
        // In thousandths of the ideal.
        let slowdown = u128::from(flow.took_ps) * 1000 / u128::from(flow.ideal_ps.max(1));
        let slowdown = u64::try_from(slowdown).unwrap_or(u64::MAX);
        class[usize::from(!flow.finished)].push((slowdown, flow.flow));
        if victim_ps > 0 {
            class[2].push((victim_ps, flow.flow));
        }
    }
    for lists in by_class.values_mut() {
        for list in lists {
            list.sort_by_key(|&(much, id)| (std::cmp::Reverse(much), id));
            order.extend(list.iter().take(FLOWS).map(|&(_, id)| id));
        }
    }
    let mut seen = BTreeSet::new();
    order.retain(|id| seen.insert(*id));
    order
}
