//! `[flow_control]` of Tagger.

use super::super::fabric::{ENDS, Fabric, Layout, Routes};
use super::super::keys::{Complaint, Keys, OnPfc, Setting, check_priority};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::{FlowControlParams, LaneRules};
use super::TaggerParams;
use crate::load_balancing::LoadBalancing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use xoff_net::topology::{NodeId, NodeKind, Port, PortId, Topology};

const PRIORITIES: u8 = 8;
/// Most ports to look at, for all destinations, in search of the tags that all routes need: about a second.
const VISITS: u64 = 20_000_000;

/// Tagger: keys of its own, and those of PFC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tagger")]
pub struct TaggerKeys {
    /// Where the tag of a packet increases by one. A higher tag has a better tier, unless
    /// `[[priority]]` sets `tier`.
    #[serde(default)]
    pub rule: TagRule,
    /// Lossless tags of a packet, including its own priority, 1 to 7. `priorities` lists the
    /// priorities with which packets start. Default: as many as the routes need, also after
    /// failures and for packets whose route changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 7))]
    #[schemars(extend("x-unit" = "tags"))]
    #[schemars(extend("x-default" = "derived: as many as the routes need"))]
    pub lossless: Option<u8>,
    /// Priority of packets above the last lossless tag. Default: the lowest priority that is not a
    /// tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 7))]
    #[schemars(extend("x-unit" = "802.1p priority"))]
    #[schemars(extend("x-default" = "derived: the lowest priority that is no tag"))]
    pub lossy: Option<u8>,
}

/// Where a tag grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TagRule {
    /// Where a packet goes down and then up again. Up means away from the hosts; between switches
    /// at the same distance, towards the higher number.
    #[default]
    Bounce,
    /// At every device, except where a switch sends to a host: the tag counts the switches on the
    /// path.
    Hop,
}

impl Keys for OnPfc<TaggerKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check_topology(&self, cx: &mut Setting<'_>, topology: &Topology) -> Result<(), Complaint> {
        if self.pfc.relay == Relay::Blind {
            let message = "incompatible with `tagger`: packets arrive with another tag than they leave with";
            let help = "remove the key, or choose scheme = \"pfc\"";
            return Err(Complaint::of_key("relay", message, help));
        }
        self.pfc.check_relay(cx, topology)
    }

    fn refuses_balancing(&self, balancing: LoadBalancing) -> Option<String> {
        let name = balancing.name();
        Some(format!("`tagger` is incompatible with `{name}`: it needs the route of each flow"))
    }

    fn changes_priorities(&self) -> bool {
        true
    }

    fn tags(
        &self,
        cx: &mut Setting<'_>,
        topology: &Topology,
        inner: usize,
        routes: &Routes<'_>,
        starts: &[u8],
        used: &[u8],
    ) -> Result<Option<Layout>, Complaint> {
        let keys = &self.keys;
        let mut turns = turns(topology, keys.rule);
        // Nothing turns at the inner ports of slow hosts, which follow the others.
        turns.resize(topology.ports.len() + inner, 0);
        let tags = LaneRules { turns, next: Vec::new() };
        let growth = most(&tags, topology, routes);
        let needed = growth + 1;
        let all_routes = of_all_routes(&tags, topology);
        if growth == 0 {
            let why = match keys.rule {
                TagRule::Bounce => "no route goes down and then up again",
                TagRule::Hop => "no route crosses two switches",
            };
            let message = format!("had no effect: no tag ever increases, because {why}");
            cx.warn("flow_control.rule".into(), message);
        }
        let count = keys.lossless.unwrap_or(needed);
        let key = "flow_control.lossless";
        let at = if cx.written(key) { key } else { "flow_control.scheme" };
        if !(1..PRIORITIES).contains(&count) {
            let (message, help) = match keys.lossless {
                Some(n) => (format!("lossless = {n} is out of range"), "write a whole number from 1 to 7"),
                None => (
                    "the routes need 8 or more lossless priorities and one lossy priority, but there are 8 in all".into(),
                    "write flow_control.lossless = 7 or less: packets with higher tags are then lossy",
                ),
            };
            return Err(Complaint::new(at, message, help).about("flow_control.lossless"));
        }
        if let Some(&start) = starts.iter().find(|&&start| start + count > PRIORITIES) {
            let (last, highest) = (start + count - 1, PRIORITIES - count);
            let message = format!(
                "packets of priority {start} would need the priorities {start} to {last}, but the last is 7"
            );
            let help = format!(
                "give the traffic (or its ACKs) a priority of {highest} or less, or lower flow_control.lossless"
            );
            return Err(Complaint::new(at, message, help).about("flow_control.lossless"));
        }
        let lossless: BTreeSet<u8> = starts.iter().flat_map(|&start| start..start + count).collect();
        if let Some(p) = used.iter().find(|p| !starts.contains(p) && lossless.contains(p)) {
            let message = format!(
                "priority {p} is used twice: by lossy traffic, and as a lossless tag of other traffic"
            );
            return Err(Complaint::of_key("priorities", message, "change the priority of one of the two"));
        }
        let lossy = match keys.lossy {
            Some(p) => {
                check_priority("flow_control.lossy", p)?;
                if lossless.contains(&p) {
                    let message = format!("priority {p} is a lossless tag");
                    let help = format!("choose a priority other than the lossless tags: {}", list(&lossless));
                    return Err(Complaint::of_key("lossy", message, help));
                }
                p
            }
            None => (0..PRIORITIES).find(|p| !lossless.contains(p)).ok_or_else(|| {
                let message = "no lossy priority is left: the tags use all eight priorities";
                let help = "lower flow_control.lossless, or use fewer priorities";
                Complaint::new(at, message, help)
            })?,
        };
        Ok(Some(Layout { turns: tags.turns, lossless, count, needed, all_routes, lossy }))
    }

    fn lossless(
        &self,
        _: &mut Setting<'_>,
        id: u8,
        key: &str,
        wanted: Option<bool>,
        covered: bool,
    ) -> Result<bool, Complaint> {
        if let Some(wanted) = wanted.filter(|&wanted| wanted != covered) {
            let (is, not) = if wanted { ("lossy", "lossless") } else { ("lossless", "lossy") };
            let message = format!("priority {id} is a {is} tag and cannot be {not}");
            let help =
                "remove `lossless`: under `tagger` flow_control.lossless and flow_control.priorities set it";
            return Err(Complaint::new(key, message, help));
        }
        self.pfc.lossless(id, key, wanted, covered)
    }

    fn params(&self, _: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let lanes = fabric.lanes;
        let Layout { turns, lossless, count, needed, all_routes, lossy } =
            fabric.tags.expect("laid out for this scheme");
        let lane = |priority: u8| lanes.iter().position(|l| l.priority == priority).expect("in use") as u8;
        let next = |priority: u8| match priority {
            p if !lossless.contains(&p) => p,
            p if lossless.contains(&(p + 1)) => p + 1,
            _ => lossy,
        };
        let next = lanes.iter().map(|l| lane(next(l.priority))).collect();
        Ok(FlowControlParams::Tagger(TaggerParams {
            pfc: self.pfc.params(),
            tags: LaneRules { next, turns },
            lossless: count,
            needed,
            all_routes,
            lossy: lane(lossy),
        }))
    }
}

fn list(priorities: &BTreeSet<u8>) -> String {
    priorities.iter().map(u8::to_string).collect::<Vec<_>>().join(", ")
}

fn turns(topology: &Topology, rule: TagRule) -> Vec<u8> {
    let levels = topology.levels();
    let rank = |node: NodeId| (levels[node as usize], node);
    let is = |node: NodeId, kind: NodeKind| topology.nodes[node as usize].kind == kind;
    let of = |(id, port): (PortId, &Port)| {
        let to = topology.neighbour(id);
        match rule {
            TagRule::Bounce if rank(to) > rank(port.node) => LaneRules::IN | LaneRules::OUT,
            TagRule::Bounce => 0,
            TagRule::Hop if is(port.node, NodeKind::Switch) && is(to, NodeKind::Host) => LaneRules::IN,
            TagRule::Hop => LaneRules::IN | LaneRules::OUT,
        }
    };
    (0..).zip(&topology.ports).map(of).collect()
}

/// How often a tag grows at most; no more than the number of priorities less one.
/// (Where a source chooses between two routes, a tag grows as often on the one as
/// on the other, for both lead over one host that relays.)
fn most(tags: &LaneRules, topology: &Topology, routes: &Routes<'_>) -> u8 {
    let hops = routes.hops;
    // By position: one more than the number of growths of a packet there.
    let mut known = vec![0u8; hops.len()];
    let walk = |known: &mut Vec<u8>, start: u32, mut growths: u8| {
        let mut at = start as usize;
        while hops[at] < ENDS && known[at] <= growths {
            known[at] = growths + 1;
            let (port, next) = (hops[at], hops[at + 1]);
            if next < ENDS && tags.changes(topology.ports[port as usize].peer, next) {
                growths = (growths + 1).min(PRIORITIES - 1);
            }
            at += 1;
        }
    };
    for route in &routes.flows {
        walk(&mut known, route.path, 0);
        walk(&mut known, route.ack_path, 0);
    }
    // Growths only rise, and have an end: so this has one.
    loop {
        let before = known.clone();
        for &(old, new) in &routes.moved {
            if let Some(growths) = known[old as usize].checked_sub(1) {
                walk(&mut known, new, growths);
            }
        }
        if known == before {
            break;
        }
    }
    known.into_iter().max().unwrap_or(0).saturating_sub(1)
}

/// As many lossless tags as all shortest paths between hosts need, in the intact
/// network; `None` if there are too many to look at.
fn of_all_routes(tags: &LaneRules, topology: &Topology) -> Option<u8> {
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
    let is_host = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Host;
    let relays = |node: NodeId| topology.relay_hosts || !is_host(node);
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
            let begins = u8::from(is_host(node));
            for &egress in ports.iter().filter(|&&p| nearer(p)) {
                let come = ports.iter().filter(|_| relays(node)).filter_map(|&ingress| {
                    let before = known[topology.ports[ingress as usize].peer as usize];
                    (before > 0).then(|| before + u8::from(tags.changes(ingress, egress)))
                });
                known[egress as usize] = come.chain([begins]).max().unwrap_or(0).min(PRIORITIES);
                most = most.max(known[egress as usize]);
            }
        }
    }
    Some(most)
}
