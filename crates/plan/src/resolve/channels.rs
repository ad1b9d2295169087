//! Virtual channels: further priorities, which packets change to where their routes could close a cycle.
//!
//! Lanes only ever grow. In a dragonfly a packet leaves its lane after each link between two groups, in a ring or
//! in a row or column of a torus (its *dateline*) where it crosses the last link, and in a torus where it turns from
//! a column into a row, or goes back over a link. So the paths of one lane close no cycle of waits (Dally and Seitz, IEEE Transactions on Computers 36(5), 1987).

use super::Context;
use crate::balancing::{LoadBalancing, is_choice};
use crate::error::Error;
use crate::plan::{ENDS, Faults, Flow, Lane};
use std::collections::BTreeSet;
use xoff_net::builders::TopologySpec;
use xoff_net::topology::{NodeKind, Port, PortId, Topology};
use xoff_schemes::flow_control::LaneRules;

const PRIORITIES: u8 = 8;
const KEY: &str = "routing.virtual_channels";

/// The priorities of the channels.
pub(super) struct Channels {
    /// Priorities that a packet uses, its own included, at least 2.
    count: u8,
    /// Those in which packets begin.
    starts: Vec<u8>,
}

impl Channels {
    pub(super) fn lossless(&self) -> BTreeSet<u8> {
        self.starts.iter().flat_map(|&start| start..start + self.count).collect()
    }

    /// The priority in which packets of a priority have begun.
    pub(super) fn first(&self, priority: u8) -> u8 {
        self.starts.iter().copied().find(|&p| (p..p + self.count).contains(&priority)).unwrap_or(priority)
    }
}

/// The channels of the scenario, if it has any; adds their priorities to those in `used`.
pub(super) fn read(
    cx: &mut Context<'_>,
    topology: &Topology,
    used: &mut Vec<u8>,
) -> Result<Option<Channels>, Error> {
    let Some(count) = cx.scenario.routing.virtual_channels else { return Ok(None) };
    if !(1..=PRIORITIES).contains(&count) {
        return cx.out_of_range("routing", "virtual_channels", count, format!("write 1 to {PRIORITIES}"));
    }
    if rules(cx, topology).is_none() {
        let message = "virtual channels do not suit this topology";
        let help = "remove the key, or choose the topology `dragonfly`, `torus-2d` or `ring`";
        return cx.refuse(KEY, message, help);
    }
    let scheme = &cx.scenario.flow_control;
    if !scheme.allows_channels() {
        let message = format!("`{}` is incompatible with virtual channels", scheme.name());
        return cx.refuse(
            KEY,
            message,
            "remove the key, or choose a flow control that pauses priorities, as the default one does",
        );
    }
    if count == 1 {
        return Ok(None);
    }
    let starts = cx.ask(|keys, cx| keys.covered(cx, used))?;
    if starts.is_empty() {
        cx.warn(KEY, "had no effect: no priority in use is lossless");
        return Ok(None);
    }
    if let Some(start) = starts.iter().find(|&&start| start + count > PRIORITIES) {
        let message = format!(
            "packets of priority {start} would need the priorities {start} to {}, but the last is 7",
            start + count - 1
        );
        let help = format!("give the traffic (and its ACKs) a priority of {} or less", PRIORITIES - count);
        return cx.refuse(KEY, message, help);
    }
    let channels = Channels { count, starts };
    let twice =
        |&start: &u8| Some((start, *used.iter().find(|&&p| (start + 1..start + count).contains(&p))?));
    if let Some((start, p)) = channels.starts.iter().find_map(twice) {
        let message = format!("priority {p} is used twice: by traffic, and as a channel of priority {start}");
        return cx.refuse(KEY, message, "change the priority of one of the two");
    }
    let declared = cx.scenario.priority.iter().position(|p| channels.first(p.id) != p.id);
    if let Some(i) = declared {
        let id = cx.scenario.priority[i].id;
        let message = format!("priority {id} is a virtual channel of priority {}", channels.first(id));
        return cx.refuse(
            &format!("priority[{i}].id"),
            message,
            "set the keys of that priority: its channels have them, too",
        );
    }
    used.extend(channels.lossless());
    used.sort_unstable_by(|a, b| b.cmp(a));
    used.dedup();
    Ok(Some(channels))
}

/// By port: where packets change their lane; `None` for a topology without such a rule.
fn rules(cx: &Context<'_>, topology: &Topology) -> Option<Vec<u8>> {
    let is_switch = |node: u32| topology.nodes[node as usize].kind == NodeKind::Switch;
    let ends = |(id, port): (PortId, &Port)| [port.node, topology.neighbour(id)];
    let ports = || (0..).zip(&topology.ports);
    if let Some(groups) = topology.groups {
        let rule = |ends: [u32; 2]| match ends.map(|node| groups.of(node)) {
            [Some(own), Some(other)] if own != other => LaneRules::IN | LaneRules::OUT,
            [Some(_), Some(_)] => LaneRules::OUT,
            _ => 0,
        };
        return Some(ports().map(|port| rule(ends(port))).collect());
    }
    // The last link of a row, a column or the ring: its positions differ by more than a step.
    if let Some(torus) = topology.torus {
        let rule = |ends: [u32; 2]| {
            if !ends.into_iter().all(is_switch) {
                return LaneRules::IN;
            }
            let [(x, y), (to_x, to_y)] = ends.map(|node| torus.position(node));
            let dateline = if x.abs_diff(to_x) > 1 || y.abs_diff(to_y) > 1 { LaneRules::OUT } else { 0 };
            LaneRules::IN
                | LaneRules::BACK
                | dateline
                | if x == to_x { LaneRules::ALSO_IN } else { LaneRules::ALSO_OUT }
        };
        return Some(ports().map(|port| rule(ends(port))).collect());
    }
    let TopologySpec::Ring(_) = &cx.scenario.topology else { return None };
    let rule = |[from, to]: [u32; 2]| {
        let dateline = is_switch(from) && is_switch(to) && from.abs_diff(to) > 1;
        LaneRules::IN | if dateline { LaneRules::OUT } else { 0 }
    };
    Some(ports().map(|port| rule(ends(port))).collect())
}

/// How packets change their lane. Returns an error if some route changes it more often than there are channels.
pub(super) fn lay(
    cx: &Context<'_>,
    topology: &Topology,
    channels: &Channels,
    lanes: &[Lane],
    inner: usize,
    routes: &Laid<'_>,
) -> Result<LaneRules, Error> {
    let mut turns = rules(cx, topology).expect("checked before");
    // Nothing changes at the inner ports of slow hosts.
    turns.resize(turns.len() + inner, 0);
    let lossless = channels.lossless();
    let lane = |priority: u8| lanes.iter().position(|l| l.priority == priority).expect("in use") as u8;
    let next = |&Lane { priority, .. }: &Lane| {
        let onward = priority + 1;
        let goes_on = lossless.contains(&priority) && lossless.contains(&onward);
        lane(if goes_on && channels.first(priority) == channels.first(onward) { onward } else { priority })
    };
    let rules = LaneRules { turns, next: lanes.iter().map(next).collect() };
    let needed = 1 + most(topology, &rules, routes);
    if needed > u32::from(channels.count) {
        let message =
            format!("the routes need {needed} virtual channels, but virtual_channels is {}", channels.count);
        let help = match needed {
            ..=8 => format!("write {KEY} = {needed}"),
            _ => {
                "choose routes that change their channel less often, such as minimal ones in dimension order"
                    .into()
            }
        };
        return cx.refuse(KEY, message, help);
    }
    Ok(rules)
}

/// The routes of a plan.
pub(super) struct Laid<'p> {
    pub(super) hops: &'p [u32],
    pub(super) flows: &'p [Flow],
    pub(super) balancing: &'p LoadBalancing,
    pub(super) faults: &'p Faults,
}

/// How often a packet changes its lane at most, up to [`PRIORITIES`].
fn most(topology: &Topology, rules: &LaneRules, routes: &Laid<'_>) -> u32 {
    let choices = match routes.balancing {
        LoadBalancing::Packets(choices) => Some(choices),
        LoadBalancing::Ecmp | LoadBalancing::Labels(_) => None,
    };
    let later = routes.faults.later_routes().chain(routes.faults.later_ack_routes()).map(|(_, path)| path);
    let labelled = match routes.balancing {
        LoadBalancing::Labels(labels) => [&labels.routes[..], &labels.ack_routes],
        _ => [&[][..]; 2],
    };
    let starts = routes.flows.iter().flat_map(|f| [f.path, f.ack_path]).chain(later);
    let starts = starts.chain(labelled.concat());
    let mut places: Vec<(u32, u8)> = starts.map(|start| (start, 0)).collect();
    let mut moved: Vec<(u32, u32)> =
        routes.faults.tables.iter().flat_map(|t| &t.positions).copied().collect();
    moved.sort_unstable();
    // By position: one more than the changes of a packet there.
    let mut known = vec![0u8; routes.hops.len()];
    while let Some((at, changes)) = places.pop() {
        let port = routes.hops[at as usize];
        if port >= ENDS || known[at as usize] > changes {
            continue;
        }
        known[at as usize] = changes + 1;
        let mut go_on = |to: u32| {
            let next = routes.hops[to as usize];
            let ingress = topology.ports.get(port as usize).map(|port| port.peer);
            let change = next < ENDS && ingress.is_some_and(|ingress| rules.changes(ingress, next));
            places.push((to, (changes + u8::from(change)).min(PRIORITIES)));
        };
        let next = routes.hops[at as usize + 1];
        match choices.filter(|_| is_choice(next)) {
            Some(choices) => choices.options(next).iter().for_each(|&option| go_on(option)),
            None => go_on(at + 1),
        }
        let first = moved.partition_point(|&(old, _)| old < at);
        let tables = moved[first..].iter().take_while(|&&(old, _)| old == at);
        places.extend(tables.map(|&(_, new)| (new, changes)));
    }
    u32::from(known.into_iter().max().unwrap_or(0).saturating_sub(1))
}
