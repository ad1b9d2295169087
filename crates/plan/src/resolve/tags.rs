//! Tags: where they grow, how many the routes need, and which priorities they are.

use super::files::Listed;
use super::offered;
use super::routes::Routes;
use super::{Context, faults, lanes, memory, reroute, slow_receivers};
use crate::error::Error;
use crate::plan::{self, ENDS, Flow, Lane, PacketFormat};
use crate::scenario::{FlowControl, TagRule};
use std::collections::{BTreeSet, VecDeque};
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_schemes::flow_control::tagger::{IN, OUT, TaggerParams, Tags};

/// Priorities that there are.
const PRIORITIES: u8 = 8;
/// So many ports are looked at, for all destinations together, to tell what all
/// routes need: about a second's work.
const VISITS: u64 = 20_000_000;

/// The priorities of a scenario with tags.
pub(super) struct Layout {
    /// By port; see [`Tags::turns`].
    turns: Vec<u8>,
    /// The lossless priorities.
    pub(super) lossless: BTreeSet<u8>,
    /// Lossless tags of a packet.
    count: u8,
    /// As many as the routes need.
    needed: u8,
    /// As many as all shortest paths need.
    all_routes: Option<u8>,
    /// Where packets go whose tag has grown beyond the last one.
    lossy: u8,
}

/// Lays the tags out, if the scenario has any, and adds their priorities to those in `used`.
pub(super) fn layout(
    cx: &mut Context<'_>,
    topology: &Topology,
    packet: &PacketFormat,
    listed: &Listed,
    end: Option<Time>,
    used: &mut Vec<u8>,
) -> Result<Option<Layout>, Error> {
    let FlowControl::Tagger(tagger) = &cx.scenario.flow_control else { return Ok(None) };
    let keys = &tagger.tags;
    let starts = lanes::covered(cx, used)?;
    let (turns, growth) = growth(cx, topology, packet, listed, end, keys.rule)?;
    let needed = growth + 1;
    let tags = Tags { turns, next: Vec::new() };
    let all_routes = of_all_routes(&tags, topology);
    if growth == 0 {
        let why = match keys.rule {
            TagRule::Bounce => "no route comes down and goes up again",
            TagRule::Hop => "no route leads over two switches",
        };
        cx.warn("flow_control.rule".into(), format!("had no effect: {why}, so that no tag ever grows"));
    }
    let count = keys.lossless.unwrap_or(needed);
    let at = |cx: &Context<'_>| match cx.doc.get("flow_control.lossless") {
        Some(_) => "flow_control.lossless",
        None => "flow_control.scheme",
    };
    if !(1..PRIORITIES).contains(&count) {
        let (message, help) = match keys.lossless {
            Some(n) => {
                (format!("lossless = {n} is out of range"), "write a whole number from 1 to 7".to_string())
            }
            None => (
                format!("the routes need {PRIORITIES} lossless priorities or more, and a lossy one besides"),
                "set flow_control.lossless to 7 or less: packets whose tag grows beyond are lossy"
                    .to_string(),
            ),
        };
        return Err(cx.doc.error(at(cx), message, help).with_key("flow_control.lossless"));
    }
    if let Some(&start) = starts.iter().find(|&&start| start + count > PRIORITIES) {
        let message = format!(
            "packets of priority {start} would need the priorities {start} to {}: 7 is the last",
            start + count - 1
        );
        let help = format!(
            "give the traffic (or its ACKs) a priority of {} or less, or grant fewer with flow_control.lossless",
            PRIORITIES - count
        );
        return Err(cx.doc.error(at(cx), message, help).with_key("flow_control.lossless"));
    }
    let lossless: BTreeSet<u8> = starts.iter().flat_map(|&start| start..start + count).collect();
    if let Some(p) = used.iter().find(|p| !starts.contains(p) && lossless.contains(p)) {
        let message = format!("priority {p} is that of lossy traffic, and a lossless tag of other traffic");
        let help = "give one of the two another priority";
        return Err(cx.doc.error("flow_control.priorities", message, help));
    }
    let lossy = match keys.lossy {
        Some(p) => {
            lanes::check_priority(cx, "flow_control.lossy", p)?;
            if lossless.contains(&p) {
                let message = format!("priority {p} is a lossless tag");
                let help = format!("the lossless tags are {}: choose another", list(&lossless));
                return Err(cx.doc.error("flow_control.lossy", message, help));
            }
            p
        }
        None => (0..PRIORITIES).find(|p| !lossless.contains(p)).ok_or_else(|| {
            let message = "the tags take all eight priorities, and none is left for what goes beyond";
            let help = "grant fewer with flow_control.lossless, or start from fewer priorities";
            cx.doc.error(at(cx), message, help)
        })?,
    };
    used.extend(lossless.iter().copied().chain([lossy]));
    used.sort_unstable_by(|a, b| b.cmp(a));
    used.dedup();
    Ok(Some(Layout { turns: tags.turns, lossless, count, needed, all_routes, lossy }))
}

fn list(priorities: &BTreeSet<u8>) -> String {
    priorities.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

impl Layout {
    /// The parameters of the scheme on these lanes.
    pub(super) fn params(self, pfc: &crate::scenario::Pfc, lanes: &[Lane]) -> TaggerParams {
        let lane = |priority: u8| lanes.iter().position(|l| l.priority == priority).expect("in use") as u8;
        let next = |priority: u8| match priority {
            p if !self.lossless.contains(&p) => p,
            p if self.lossless.contains(&(p + 1)) => p + 1,
            _ => self.lossy,
        };
        TaggerParams {
            pfc: memory::params(pfc),
            tags: Tags { next: lanes.iter().map(|l| lane(next(l.priority))).collect(), turns: self.turns },
            lossless: self.count,
            needed: self.needed,
            all_routes: self.all_routes,
            lossy: lane(self.lossy),
        }
    }
}

/// Distance of every node from its nearest host.
fn levels(topology: &Topology) -> Vec<u32> {
    let mut levels = vec![u32::MAX; topology.nodes.len()];
    let mut found: VecDeque<NodeId> = topology.hosts().collect();
    found.iter().for_each(|&host| levels[host as usize] = 0);
    while let Some(node) = found.pop_front() {
        for &port in &topology.nodes[node as usize].ports {
            let to = topology.neighbour(port);
            if levels[to as usize] == u32::MAX {
                levels[to as usize] = levels[node as usize] + 1;
                found.push_back(to);
            }
        }
    }
    levels
}

/// Where tags grow, by port.
fn turns(topology: &Topology, rule: TagRule) -> Vec<u8> {
    let levels = levels(topology);
    let rank = |node: NodeId| (levels[node as usize], node);
    let is = |node: NodeId, kind: NodeKind| topology.nodes[node as usize].kind == kind;
    let of = |(id, port): (usize, &xoff_net::topology::Port)| {
        let to = topology.neighbour(id as PortId);
        match rule {
            TagRule::Bounce if rank(to) > rank(port.node) => IN | OUT,
            TagRule::Bounce => 0,
            TagRule::Hop if is(port.node, NodeKind::Switch) && is(to, NodeKind::Host) => IN,
            TagRule::Hop => IN | OUT,
        }
    };
    topology.ports.iter().enumerate().map(of).collect()
}

/// Where tags grow, and how often they do at most on a way that a packet can
/// take: along the scenario's routes, and from one to another when they change.
/// So the routes are worked out here once, before the priorities are known.
fn growth(
    cx: &mut Context<'_>,
    topology: &Topology,
    packet: &PacketFormat,
    listed: &Listed,
    end: Option<Time>,
    rule: TagRule,
) -> Result<(Vec<u8>, u8), Error> {
    let warned = cx.warnings.len();
    let slow = slow_receivers(cx, topology)?;
    let mut routes = Routes::new(cx, topology, &slow)?;
    let offers = offered::generate(cx, topology, &mut routes, packet, listed.clone())?;
    let mut flows = routes.flows(cx, topology, packet, &offers, &|_| 0)?;
    let faults = faults::read(cx, topology, end, packet)?;
    let timeline = reroute::timeline(&faults, end);
    let planned = reroute::plan(cx, topology, &mut routes, &offers, &mut flows, &timeline, None)?;
    // Whatever is to be said is said when this is done for good.
    cx.warnings.truncate(warned);
    let mut turns = turns(topology, rule);
    // Nothing turns at the inner ports of slow hosts, which follow the others.
    turns.resize(topology.ports.len() + 2 * slow.len(), 0);
    let tags = Tags { turns, next: Vec::new() };
    let most = most(&tags, topology, &routes.hops, &flows, &planned);
    Ok((tags.turns, most))
}

/// How often a tag grows at most; no more than the number of priorities less one.
/// (Where a source chooses between two routes, a tag grows as often on the one as
/// on the other, for both lead over one host that relays.)
fn most(tags: &Tags, topology: &Topology, hops: &[u32], flows: &[Flow], faults: &plan::Faults) -> u8 {
    // By position: one more than the growths with which a packet can stand there.
    let mut known = vec![0u8; hops.len()];
    let walk = |known: &mut Vec<u8>, start: u32, mut growths: u8| {
        let mut at = start as usize;
        while hops[at] < ENDS && known[at] <= growths {
            known[at] = growths + 1;
            let (port, next) = (hops[at], hops[at + 1]);
            if next < ENDS && tags.grows(topology.ports[port as usize].peer, next) {
                growths = (growths + 1).min(PRIORITIES - 1);
            }
            at += 1;
        }
    };
    for flow in flows {
        walk(&mut known, flow.path, 0);
        walk(&mut known, flow.ack_path, 0);
    }
    for route in faults.tables.iter().flat_map(|table| &table.flows) {
        walk(&mut known, route.path, 0);
        walk(&mut known, route.ack_path, 0);
    }
    // Growths only rise, and have an end: so this has one.
    loop {
        let before: u64 = known.iter().map(|&k| u64::from(k)).sum();
        for &(old, new) in faults.tables.iter().flat_map(|table| &table.positions) {
            let growths = known[old as usize];
            if growths > 0 {
                walk(&mut known, new, growths - 1);
            }
        }
        if known.iter().map(|&k| u64::from(k)).sum::<u64>() == before {
            break;
        }
    }
    known.into_iter().max().unwrap_or(0).saturating_sub(1)
}

/// As many lossless tags as all shortest paths between hosts need, in the intact
/// network; `None` if there are too many to look at.
fn of_all_routes(tags: &Tags, topology: &Topology) -> Option<u8> {
    // Hosts with one link at one switch are alike: a tag never grows on the last link to one.
    let mut places = BTreeSet::new();
    let ends: Vec<NodeId> = topology
        .hosts()
        .filter(|&host| match topology.nodes[host as usize].ports[..] {
            [port] => places.insert(topology.neighbour(port)),
            _ => true,
        })
        .collect();
    if (ends.len() as u64).saturating_mul(topology.ports.len() as u64) > VISITS {
        return None;
    }
    let relays =
        |node: NodeId| topology.relay_hosts || topology.nodes[node as usize].kind == NodeKind::Switch;
    let mut most = 0;
    for end in ends {
        let mut distance = vec![u32::MAX; topology.nodes.len()];
        distance[end as usize] = 0;
        let mut order = VecDeque::from([end]);
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            for &port in &topology.nodes[node as usize].ports {
                let to = topology.neighbour(port);
                if distance[to as usize] == u32::MAX && (node == end || relays(node)) {
                    distance[to as usize] = distance[node as usize] + 1;
                    order.push_back(to);
                }
            }
        }
        // From the farthest on: by port, one more than the growths of a packet that waits there.
        let mut known = vec![0u8; topology.ports.len()];
        for &node in order.iter().rev() {
            let ports = &topology.nodes[node as usize].ports;
            let nearer = |p: PortId| distance[topology.neighbour(p) as usize] < distance[node as usize];
            let begins = u8::from(topology.nodes[node as usize].kind == NodeKind::Host);
            for &egress in ports.iter().filter(|&&p| nearer(p)) {
                let come = ports.iter().filter(|_| relays(node)).filter_map(|&ingress| {
                    let before = known[topology.ports[ingress as usize].peer as usize];
                    (before > 0).then(|| before + u8::from(tags.grows(ingress, egress)))
                });
                known[egress as usize] = come.chain([begins]).max().unwrap_or(0).min(PRIORITIES);
                most = most.max(known[egress as usize]);
            }
        }
    }
    Some(most)
}
