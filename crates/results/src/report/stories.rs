//! The answers of `xoff explain` about the run, and about the flows and ports of most interest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use super::fabric::Fabric;
use crate::explain::read::{By, Run};
use crate::explain::{self, FlowAnswer, Overview, text};
use crate::storage::Error;

/// Most flows of a class, by slowdown and by victim waiting each, that have a story.
const FLOWS: usize = 25;
/// Most ports that have one.
const PORTS: usize = 120;
/// Most bytes of the stories of flows, and of those of ports.
const BYTES: usize = 400_000;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Stories {
    pub overview: OverviewStory,
    pub flows: BTreeMap<usize, FlowStory>,
    /// Words of `xoff explain --port`.
    pub ports: BTreeMap<String, String>,
}

/// Where the time of all flows went.
#[derive(Clone, Debug, Default, Serialize)]
pub struct OverviewStory {
    /// In sentences.
    pub text: String,
    /// Parts and times, the largest first.
    pub parts: Vec<(String, u64)>,
    /// The slowest flows, with their slowdown and their largest delay in words.
    pub slowest: Vec<(usize, String)>,
}

/// Where the time of a flow went.
#[derive(Clone, Debug, Serialize)]
pub struct FlowStory {
    /// In sentences.
    pub text: String,
    /// Along its path; the times add up to that of the flow.
    pub steps: Vec<StepStory>,
    /// Who was ahead in queues that were not paused: port, flow or -1 for all others, bytes, time.
    pub ahead: Vec<(usize, i64, u64, u64)>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StepStory {
    /// `source`, `data` or `ack`.
    pub leg: String,
    pub port: usize,
    /// Part, the congested port of pauses or -1, and time.
    pub shares: Vec<(String, i64, u64)>,
}

impl FlowStory {
    fn new(answer: &FlowAnswer, by_name: &BTreeMap<&str, usize>) -> Self {
        let port = |name: &str| by_name.get(name).copied().unwrap_or(0);
        let step = |step: &explain::Step| StepStory {
            leg: step.leg.clone(),
            port: port(&step.port),
            shares: step
                .shares
                .iter()
                .map(|s| (s.part.clone(), s.root.as_deref().map_or(-1, |root| port(root) as i64), s.time_ps))
                .collect(),
        };
        let ahead = |ahead: &explain::AheadOf| {
            let flow = ahead.flow.as_ref().map_or(-1, |flow| flow.flow as i64);
            (port(&ahead.port), flow, ahead.bytes, ahead.time_ps)
        };
        Self {
            text: text::flow_sentences(answer),
            steps: answer.steps.iter().map(step).collect(),
            ahead: answer.ahead.iter().map(ahead).collect(),
        }
    }

    /// About the bytes that it takes on the page.
    fn size(&self) -> usize {
        self.text.len()
            + self.ahead.len() * 40
            + self.steps.iter().map(|s| 40 + s.shares.len() * 40).sum::<usize>()
    }
}

/// Explains the run that was read from `path`: all of it, its slowest flows and worst victims, and the ports
/// in `ports`, which come before others.
pub fn tell(path: &Path, run: &Run, fabric: &Fabric, ports: &[String]) -> Result<(Stories, Overview), Error> {
    let overview = explain::overview(path, run, explain::Choice::default(), explain::SLOWEST)?;
    let story = OverviewStory {
        text: text::overview_sentences(&overview),
        parts: overview.parts.iter().map(|part| (part.part.clone(), part.time_ps)).collect(),
        slowest: overview.slowest.iter().map(|slow| (slow.head.flow, text::delay(slow))).collect(),
    };
    let mut stories = Stories { overview: story, ..Stories::default() };
    let by_name = fabric.by_name();
    let mut left = BYTES;
    for id in asked_first(run, &overview) {
        let story = FlowStory::new(&explain::flow(path, run, id)?, &by_name);
        if story.size() > left {
            break;
        }
        left -= story.size();
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

/// Flows in the order of interest: victims, then of each class the slowest, and the unfinished or failed flows
/// that lasted longest.
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
