//! Scenarios in which a cycle may show itself as a deadlock: the same fabric, and flows that close the cycle.
//! They are candidates; only a run decides.

use crate::closing::{Edge, Through, cross};
use crate::failures::Cut;
use crate::routes::Kind;
use std::collections::BTreeSet;
use toml::{Table, Value};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_plan::plan::{Limit, Plan};
use xoff_plan::{Loaded, scenario::Scenario};
use xoff_schemes::{
    congestion_control::CongestionControl, load_balancing::LoadBalancingKeys, transport::Transport,
};

/// Most flows of a candidate.
const FLOWS: usize = 400;

/// Most events of all runs of candidates together, except those that a run processes before it checks the
/// count: some 100,000 each. A count, because then the result does not depend on a clock.
pub const EVENTS: u64 = 50_000_000;

/// The remaining events for candidates: each gets a quarter of the rest, because the gentler ones succeed
/// more often, and the last four get equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    runs: u64,
}

impl Budget {
    pub fn new(events: u64, candidates: usize) -> Self {
        Self { left: events, runs: candidates as u64 }
    }

    pub fn share(&self) -> u64 {
        self.left / self.runs.clamp(1, 4)
    }

    /// A run has taken so many; its rest is for later runs.
    pub fn spend(&mut self, events: u64) {
        *self = Self { left: self.left.saturating_sub(events), runs: self.runs.saturating_sub(1) };
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub about: String,
    pub text: String,
}

#[derive(Clone, Copy, Debug)]
struct Effort {
    /// Routes of each edge.
    closers: usize,
    /// Further routes of the scenario to each port.
    feeders: usize,
    /// Whether hosts nearby are made to send over each port as well.
    cross: bool,
    /// Flows on each route.
    copies: usize,
    /// The receivers that stop reading for a while, so buffers fill.
    stall: Stall,
}

/// Receivers that do not read for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stall {
    None,
    /// One, of the receivers in the order of the flows: the buffers before it fill up with packets that are
    /// not for it, and stay full when it reads again.
    One(usize),
    All,
}

/// From the gentlest to the hardest.
const EFFORTS: [Effort; 14] = {
    const NONE: Effort = Effort { closers: 1, feeders: 0, cross: false, copies: 1, stall: Stall::None };
    [
        NONE,
        Effort { closers: 4, ..NONE },
        Effort { closers: 4, feeders: 4, ..NONE },
        Effort { closers: 2, cross: true, ..NONE },
        Effort { stall: Stall::One(0), ..NONE },
        Effort { closers: 4, stall: Stall::One(0), ..NONE },
        Effort { closers: 16, feeders: 4, cross: true, copies: 2, ..NONE },
        Effort { closers: 2, cross: true, stall: Stall::One(0), ..NONE },
        Effort { closers: 2, stall: Stall::One(1), ..NONE },
        Effort { closers: 2, cross: true, stall: Stall::One(1), ..NONE },
        Effort { closers: 2, stall: Stall::One(2), ..NONE },
        Effort { closers: 4, stall: Stall::All, ..NONE },
        Effort { closers: 4, cross: true, stall: Stall::All, ..NONE },
        Effort { closers: 8, feeders: 8, cross: true, copies: 40, ..NONE },
    ]
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sent {
    src: NodeId,
    dst: NodeId,
    priority: u8,
    /// Its path; empty if the routing finds it.
    ports: Vec<PortId>,
}

/// Candidates, the gentlest first; `failed` is down too. None if an edge closes only while routes change.
pub fn candidates(loaded: &Loaded, edges: &[Edge], failed: Option<&Cut>) -> Result<Vec<Candidate>, String> {
    if edges.iter().any(|e| !e.passed_on && e.closers.iter().all(|c| c.ports.is_empty())) {
        return Ok(Vec::new());
    }
    let mut made: Vec<Candidate> = Vec::new();
    let mut tried: Vec<(Vec<Sent>, usize, Stall)> = Vec::new();
    for effort in EFFORTS {
        let flows = flows(&loaded.plan, edges, effort, failed);
        if tried.contains(&(flows.clone(), effort.copies, effort.stall)) {
            continue;
        }
        let text = scenario(loaded, edges, &flows, effort, failed)?;
        made.push(Candidate { about: about(flows.len(), effort), text });
        tried.push((flows, effort.copies, effort.stall));
    }
    Ok(made)
}

fn about(routes: usize, effort: Effort) -> String {
    let copies = if effort.copies > 1 { format!("{} flows", effort.copies) } else { "one flow".into() };
    let cross = if effort.cross { " with cross traffic" } else { "" };
    let stall = match effort.stall {
        Stall::None => "",
        Stall::One(_) => ", while one receiver stalls",
        Stall::All => ", while the receivers stall",
    };
    format!("{copies} on each of {routes} routes at once{cross}{stall}")
}

/// The flows of a candidate, in order and each route once.
fn flows(plan: &Plan, edges: &[Edge], effort: Effort, failed: Option<&Cut>) -> Vec<Sent> {
    let mut flows: Vec<Sent> = Vec::new();
    let cut = failed.map(|cut| cut.ports(&plan.topology)).unwrap_or_default();
    let down = |port: PortId| {
        let peer = plan.topology.ports[port as usize].peer;
        plan.faults.down.iter().any(|d| d.port == port) || cut.contains(&port) || cut.contains(&peer)
    };
    for e in edges {
        let over = |s: &Sent| s.ports.windows(2).any(|w| w == [e.from.port, e.to.port]);
        if effort.closers == 1 && flows.iter().any(over) {
            continue;
        }
        let steady = || e.closers.iter().filter(|c| !c.ports.is_empty());
        // Data takes the path of control packets only where no data closes the edge.
        let data = steady().any(|c| c.kind == Kind::Data);
        let closers = steady().filter(|c| c.kind == Kind::Data || !data).take(effort.closers);
        // Where a host passes pauses on, any packet that fills the port to which it passes them is enough.
        let feeders = if e.passed_on { effort.feeders.max(effort.closers) } else { effort.feeders };
        let mut routes: Vec<Through> = closers.chain(e.feeders.iter().take(feeders)).cloned().collect();
        if effort.cross
            && let Some(ports) = cross(plan, e.to.port, e.from.port, &down)
        {
            // It begins like the others, because the lane may change on the path.
            let lane = e.closers.first().map_or(e.to.lane, |c| c.lane);
            routes.push(Through { flow: None, kind: Kind::Data, ports, delivers: true, lane });
        }
        for sent in routes.iter().filter_map(|route| sent(plan, route)) {
            if sent.src != sent.dst && !flows.contains(&sent) {
                flows.push(sent);
            }
        }
    }
    flows.truncate(FLOWS / effort.copies.min(FLOWS));
    flows
}

fn sent(plan: &Plan, route: &Through) -> Option<Sent> {
    let (first, last) = (*route.ports.first()?, *route.ports.last()?);
    let flow = route.flow.map(|f| &plan.flows[f as usize]);
    let dst = match (flow, route.kind) {
        (Some(flow), Kind::Data) => flow.dst,
        (Some(flow), Kind::Control) => flow.src,
        (None, _) => plan.topology.neighbour(last),
    };
    Some(Sent {
        src: plan.topology.ports[first as usize].node,
        dst,
        priority: plan.lanes[usize::from(route.lane)].priority,
        // The routing makes a loop, not a path.
        ports: if route.delivers { route.ports.clone() } else { Vec::new() },
    })
}

/// How long the buffers on a cycle may take to fill, in picoseconds, with all senders at work: every account
/// up to its threshold, one after another, at an eighth of its link's rate.
fn time_to_fill(plan: &Plan, edges: &[Edge]) -> u64 {
    let lanes = plan.lanes.len();
    let mut time: u128 = 1_000_000_000;
    for e in edges {
        let link = &plan.topology.ports[e.from.port as usize];
        let account = &plan.accounts[link.peer as usize * lanes + usize::from(e.from.lane)];
        let shared = plan.buffers[plan.topology.neighbour(e.from.port) as usize].shared;
        let limit = match account.limit {
            // Queues by flow pause at about a round trip of the hop, long before memory is full.
            Limit::Unlimited => {
                let trip = u128::from(link.rate) * u128::from(2 * link.delay) / 8_000_000_000_000;
                let packets = 64 * u64::from(plan.packet.largest());
                u64::try_from(8 * trip).unwrap_or(u64::MAX).saturating_add(packets).min(shared)
            }
            Limit::Static(limit) => limit,
            Limit::Dynamic { alpha_q16, cap } => {
                let share = u128::from(shared) * u128::from(alpha_q16) / (u128::from(alpha_q16) + 65_536);
                u64::try_from(share).unwrap_or(u64::MAX).min(cap)
            }
        };
        let bytes = u128::from((limit + account.reserve).min(shared.saturating_add(account.reserve)));
        time += bytes * 8 * 8 * 1_000_000_000_000 / u128::from(link.rate.max(1));
        time += 16 * u128::from(link.delay);
    }
    u64::try_from(time.min(200_000_000_000)).expect("below 200 ms")
}

/// The text of a candidate: the scenario's fabric with other flows.
fn scenario(
    loaded: &Loaded,
    edges: &[Edge],
    flows: &[Sent],
    effort: Effort,
    failed: Option<&Cut>,
) -> Result<String, String> {
    let (plan, topology) = (&loaded.plan, &loaded.plan.topology);
    let mut table = fabric(&loaded.scenario, topology)?;
    let time = time_to_fill(plan, edges);
    let stall = if effort.stall == Stall::None { 0 } else { time / 2 };
    let duration = (time + stall).div_ceil(1_000_000);
    let name = |node: NodeId| Value::from(topology.nodes[node as usize].name.clone());
    let fastest = plan.topology.ports.iter().map(|p| p.rate).max().unwrap_or(1);
    // More than the fastest link sends in all this time.
    let size = u128::from(fastest) * u128::from(duration) / 8_000_000 + 1;
    let size = u64::try_from(size).map_err(|e| e.to_string())?.min(1 << 40);
    let mut traffic = Vec::new();
    for sent in flows.iter().flat_map(|f| std::iter::repeat_n(f, effort.copies)) {
        let mut flow = Table::new();
        flow.insert("kind".into(), "flow".into());
        flow.insert("src".into(), name(sent.src));
        flow.insert("dst".into(), name(sent.dst));
        flow.insert("size".into(), format!("{size}B").into());
        flow.insert("priority".into(), i64::from(sent.priority).into());
        if !sent.ports.is_empty() {
            let mut path = vec![name(sent.src)];
            path.extend(sent.ports.iter().map(|&p| name(topology.neighbour(p))));
            flow.insert("path".into(), Value::Array(path));
        }
        traffic.push(Value::Table(flow));
    }
    table.insert("traffic".into(), Value::Array(traffic));
    let mut run = Table::new();
    run.insert("duration".into(), format!("{duration}us").into());
    run.insert("seed".into(), Value::Integer(i64::try_from(plan.seed).map_err(|e| e.to_string())?));
    table.insert("run".into(), Value::Table(run));
    if let Some(cut) = failed {
        let list = table.entry("failure").or_insert(Value::Array(Vec::new()));
        let list = list.as_array_mut().ok_or("`failure` is a list")?;
        for name in cut.keys(topology) {
            let mut failure = Table::new();
            let key = if matches!(cut, Cut::Links(_)) { "link" } else { "switch" };
            failure.insert(key.into(), name.into());
            failure.insert("at".into(), "0us".into());
            list.push(Value::Table(failure));
        }
    }
    if effort.stall != Stall::None {
        let mut slow: BTreeSet<NodeId> = plan.receivers.iter().map(|r| r.host).collect();
        let others = flows.iter().map(|f| f.dst).filter(|&dst| slow.insert(dst));
        let (skipped, most) = match effort.stall {
            Stall::One(which) => (which, 1),
            Stall::None | Stall::All => (0, usize::MAX),
        };
        let list = table.entry("slow_receiver").or_insert(Value::Array(Vec::new()));
        for host in others.skip(skipped).take(most) {
            let mut slow = Table::new();
            slow.insert("host".into(), name(host));
            slow.insert("stall_from".into(), "0us".into());
            slow.insert("stall_until".into(), format!("{}us", stall / 1_000_000).into());
            list.as_array_mut().ok_or("`slow_receiver` is a list")?.push(Value::Table(slow));
        }
    }
    // A key without effect would only cause a warning.
    if !topology.relay_hosts && !table.contains_key("slow_receiver") {
        table.remove("host");
    }
    let used: BTreeSet<i64> = flows.iter().map(|f| f.priority.into()).collect();
    let tags = plan.lane_rules().is_some();
    if let Some(Value::Array(list)) = table.get_mut("priority").filter(|_| !tags) {
        list.retain(|p| p.get("id").and_then(Value::as_integer).is_none_or(|id| used.contains(&id)));
    }
    let ports: Vec<String> = edges.iter().map(|e| topology.port_name(e.from.port)).collect();
    let head = format!(
        "# Written by `xoff check`: flows around the cycle of waits\n#   {}\n# on the fabric of the checked scenario.\n\n",
        ports.join(" -> ")
    );
    Ok(head + &toml::to_string(&table).map_err(|e| e.to_string())?)
}

/// The tables of a scenario that define its fabric, and the keys of a sender without congestion control.
fn fabric(scenario: &Scenario, topology: &Topology) -> Result<Table, String> {
    let mut table = Table::try_from(scenario).map_err(|e| e.to_string())?;
    let senders = Transport::ALL.iter().map(|kind| kind.name());
    let controls = CongestionControl::ALL.iter().map(|kind| kind.name());
    for key in ["traffic", "run", "measure", "ecn"].into_iter().chain(senders).chain(controls) {
        table.remove(key);
    }
    let transport = &["kind", "congestion_control", "window", "variable_window", "base_rtt"][..];
    // Flows whose path matters have an explicit path; the others use the hash.
    let routing = [&["ate", "load_balancing"][..], LoadBalancingKeys::NAMES].concat();
    for (name, keys) in [("transport", transport), ("routing", &routing)] {
        if let Some(Value::Table(part)) = table.get_mut(name) {
            part.retain(|key, _| !keys.contains(&key));
        }
    }
    if let Some(Value::Array(list)) = table.get_mut("priority") {
        for priority in list.iter_mut().filter_map(Value::as_table_mut) {
            priority.remove("ecn");
        }
    }
    if scenario.topology.file().is_some() {
        table.insert("topology".into(), Value::Table(custom(topology)));
    }
    Ok(table)
}

/// A topology from a file, written out, without relays: the flow control adds these again.
fn custom(topology: &Topology) -> Table {
    let others = &topology.nodes[..topology.nodes.len() - topology.relays as usize];
    let names = |kind: NodeKind| -> Value {
        let of = others.iter().filter(|n| n.kind == kind).map(|n| Value::from(n.name.clone()));
        Value::Array(of.collect())
    };
    // The end of a link: beyond the relay, if it is one.
    let end = |port: PortId| {
        let node = topology.ports[port as usize].node;
        if topology.is_relay(node) {
            topology.neighbour(topology.nodes[node as usize].ports[0])
        } else {
            node
        }
    };
    let mut links = Vec::new();
    for (id, port) in topology.ports.iter().enumerate() {
        let inner = topology.neighbour(id as PortId) == port.node;
        let cable = !port.long
            && (topology.is_relay(port.node) || topology.is_relay(topology.neighbour(id as PortId)));
        if (id as PortId) < port.peer && !inner && !cable {
            let mut link = Table::new();
            let name = |node: NodeId| Value::from(topology.nodes[node as usize].name.clone());
            link.insert("a".into(), name(end(id as PortId)));
            link.insert("b".into(), name(end(port.peer)));
            link.insert("rate".into(), format!("{}bps", port.rate).into());
            link.insert("delay".into(), format!("{}ps", port.delay).into());
            link.insert("long".into(), port.long.into());
            links.push(Value::Table(link));
        }
    }
    let mut table = Table::new();
    table.insert("kind".into(), "custom".into());
    table.insert("hosts".into(), names(NodeKind::Host));
    table.insert("switches".into(), names(NodeKind::Switch));
    table.insert("links".into(), Value::Array(links));
    table
}
