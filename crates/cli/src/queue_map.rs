//! `xoff schemes portfc --topology …`: which queues PortFC has at a port, what
//! waits in them and who pauses them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use miette::{Report, miette};
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_plan::plan::{ENDS, Plan};
use xoff_results::names;
use xoff_results::table::{Align, aligned};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::portfc::PortFcParams;
use xoff_schemes::flow_control::portfc::map::Role;

use crate::load;

/// Most flows that are named in a queue.
const NAMED: usize = 6;

/// A network, as written on the command line.
enum Network {
    /// NDC(n, k).
    Ndc { n: u32, k: u32 },
    /// That of a scenario file.
    Scenario,
}

/// `ndc(4,1)`, or a path.
fn network(text: &str) -> Network {
    let numbers = || {
        let (n, k) = text
            .to_lowercase()
            .strip_prefix("ndc(")?
            .to_string()
            .strip_suffix(')')?
            .split_once(',')
            .map(|(n, k)| (n.to_string(), k.to_string()))?;
        Some(Network::Ndc { n: n.trim().parse().ok()?, k: k.trim().parse().ok()? })
    };
    numbers().unwrap_or(Network::Scenario)
}

/// The queues of the ports of a network: how many, or of one port, each with what
/// it is for.
///
/// # Errors
/// There is no such scenario or port, or PortFC does not fit the network.
pub fn describe(topology: &str, port: Option<&str>) -> miette::Result<String> {
    let kind = network(topology);
    if let Network::Ndc { n, k } = kind
        && k != 1
    {
        return counted_only(n, k, port);
    }
    let plan = plan(topology, &kind)?;
    let FlowControlParams::PortFc(portfc) = &plan.flow_control else {
        return Err(miette!(
            help = "PortFC is meant: add scheme = \"portfc\" to its [flow_control]",
            "{topology} has another flow control than portfc"
        ));
    };
    match port {
        Some(name) => {
            let found = (0..plan.topology.ports.len() as PortId).find(|&p| names::port(&plan, p) == name);
            let port =
                found.filter(|&port| !portfc.map.inner(port)).ok_or_else(|| no_port(&plan.topology, name))?;
            // The plan of a bare network has a flow of its own, which is nobody's.
            let named = matches!(kind, Network::Scenario);
            Ok(of_port(&plan, portfc, port, named))
        }
        None => Ok(counts(&plan, portfc)),
    }
}

/// Of NDC(n, k) for other k, the paper has the numbers of queues and no more.
fn counted_only(n: u32, k: u32, port: Option<&str>) -> miette::Result<String> {
    if !(2..=4096).contains(&n) || !(1..=8).contains(&k) {
        return Err(miette!(help = "n is from 2 to 4096, k from 1 to 8", "there is no NDC({n}, {k}) here"));
    }
    let why = "a relay leads to several switches for k > 1, so that the n - 1 queues of a switch do not tell \
               their ports apart, and relayed packets enter queues that nothing can pause";
    if port.is_some() {
        return Err(miette!(help = "choose k = 1", "PortFC has no map of queues for NDC({n}, {k}): {why}"));
    }
    Ok(format!(
        "NDC({n}, {k}) under PortFC, by the paper's formulas (section III-B)\n\
         \x20 switch port: n + 1 = {} queues\n\
         \x20 host port: (k + 1)(n - 1) + 2 = {} queues\n\
         It cannot be run: {why}.\n",
        n + 1,
        (k + 1) * (n - 1) + 2
    ))
}

/// The plan of a network.
fn plan(topology: &str, kind: &Network) -> miette::Result<Plan> {
    Ok(match *kind {
        Network::Ndc { n, k } => {
            let text = format!(
                "[topology]\nkind = \"ndc\"\nn = {n}\nk = {k}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 [flow_control]\nscheme = \"portfc\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1B\"\n"
            );
            let files = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
            xoff_plan::load(topology, text.as_bytes(), &[], &files)?.plan
        }
        Network::Scenario => load::load(Path::new(topology), &[], false)?.plan,
    })
}

fn no_port(topology: &Topology, name: &str) -> Report {
    let some = |kind: NodeKind| {
        let node = topology.nodes.iter().find(|n| n.kind == kind && !n.ports.is_empty());
        node.map(|n| topology.port_name(n.ports[0])).unwrap_or_default()
    };
    miette!(
        help = format!("write one such as {} or {}", some(NodeKind::Host), some(NodeKind::Switch)),
        "there is no port called `{name}`"
    )
}

/// How many queues there are.
fn counts(plan: &Plan, portfc: &PortFcParams) -> String {
    let n = portfc.map.n;
    let (mut hosts, mut switches) = (0, 0);
    for (port, p) in (0..).zip(&plan.topology.ports) {
        match plan.topology.nodes[p.node as usize].kind {
            NodeKind::Host if !portfc.map.inner(port) => hosts += 1,
            NodeKind::Host => {}
            NodeKind::Switch => switches += 1,
        }
    }
    let rows = [
        (
            format!("{switches} switch ports"),
            format!("{n} + 1"),
            format!("{} forwarding (IHFQ), 1 direct (DDQ), HQ", n - 1),
        ),
        (
            format!("{hosts} host ports"),
            format!("{} + 1", portfc.map.of_node()),
            format!("{0} of its own four-hop flows, {0} of its own two-hop flows, 1 relay (RQ), HQ", n - 1),
        ),
    ];
    let rows: Vec<Vec<String>> = rows.into_iter().map(|(a, b, c)| vec![a, b, c]).collect();
    format!(
        "PortFC's queues in {}: switches with up to {n} ports\n{}Those of a port: --port {}\n",
        names::network(plan),
        aligned(&rows, &[Align::Left; 3]),
        plan.topology.port_name(0)
    )
}

/// The flows whose packets wait in each queue of a port, in the order of the plan.
fn flows(plan: &Plan, portfc: &PortFcParams, port: PortId) -> BTreeMap<u16, Vec<String>> {
    let mut of: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let routes = (0..).zip(&plan.flows).flat_map(|(i, flow)| {
        let later = plan.faults.tables.iter().flat_map(|t| &t.flows).filter(move |r| r.flow == i);
        let starts = [flow.path].into_iter().chain(plan.other_route(i)).chain(later.map(|r| r.path));
        starts.map(move |start| (flow, start)).collect::<Vec<_>>()
    });
    for (flow, start) in routes {
        let start = start as usize;
        let length = plan.hops[start..].iter().take_while(|&&hop| hop < ENDS).count();
        let Some(at) = plan.hops[start..start + length].iter().position(|&hop| hop == port) else { continue };
        let relayed = at > 0 && portfc.map.place(port).node;
        let queue = if relayed { portfc.map.relay() } else { portfc.queue_at[start + at] };
        let name = plan.classes[usize::from(flow.class)].clone();
        let known = of.entry(queue).or_default();
        if !known.contains(&name) {
            known.push(name);
        }
    }
    of
}

/// The queues of one port, with the flows in them if these are to be `named`.
fn of_port(plan: &Plan, portfc: &PortFcParams, port: PortId, named: bool) -> String {
    let (map, topology) = (&portfc.map, &plan.topology);
    let place = map.place(port);
    let node = |port: PortId| topology.nodes[topology.ports[port as usize].node as usize].name.as_str();
    let behind = |port: PortId| node(topology.ports[port as usize].peer);
    let flows = if named { flows(plan, portfc, port) } else { BTreeMap::new() };
    let numbers = if place.node { map.of_node() } else { map.of_switch() };
    let mut rows =
        vec![["queue", "kind", "what waits there", "paused by", "flows"].map(String::from).to_vec()];
    for queue in 0..numbers {
        let target = map.leads_to(port, queue);
        let (kind, what, by) = match (map.role(port, queue), target) {
            (Role::Ddq, _) => ("DDQ", format!("for {}", behind(port)), "-".into()),
            (Role::Relay, _) => ("RQ", "from others".to_string(), "-".into()),
            (role, None) => (kind_of(role), "nothing".into(), "-".into()),
            (role, Some(target)) => {
                let port = topology.port_name(target);
                let what = match role {
                    Role::TwoHop => format!("for {}", behind(target)),
                    _ => format!("on through {port} ({})", behind(target)),
                };
                let set = if role == Role::FourHop { "forwarding queues" } else { "direct queue" };
                (kind_of(role), what, format!("{port}, {set}"))
            }
        };
        let names = flows.get(&queue).map_or(&[][..], Vec::as_slice);
        let mut named = names[..names.len().min(NAMED)].join(", ");
        if names.len() > NAMED {
            let _ = write!(named, " and {} more", names.len() - NAMED);
        }
        rows.push(vec![queue.to_string(), kind.to_string(), what, by, named]);
    }
    let hq = ["HQ", "", "ACKs, notifications, frames", "-", ""];
    rows.push(hq.map(String::from).to_vec());
    let device = if place.node { "host" } else { "switch" };
    let order = match (place.node, portfc.relay_order) {
        (false, _) => "HQ first, then the others in turn",
        (true, order) => order_of(order),
    };
    format!(
        "{} ({device} port, to {}): {} queues; {order}\n{}",
        topology.port_name(port),
        behind(port),
        numbers + 1,
        aligned(&rows, &[Align::Right, Align::Left, Align::Left, Align::Left, Align::Left])
    )
}

fn kind_of(role: Role) -> &'static str {
    match role {
        Role::Ihfq => "IHFQ",
        Role::Ddq => "DDQ",
        Role::FourHop => "four-hop",
        Role::TwoHop => "two-hop",
        Role::Relay => "RQ",
    }
}

fn order_of(order: xoff_schemes::flow_control::RelayOrder) -> &'static str {
    use xoff_schemes::flow_control::RelayOrder;
    match order {
        RelayOrder::First => "HQ first, then RQ, then its own in turn",
        RelayOrder::Turns => "HQ first, then RQ and its own in turn",
        RelayOrder::Last => "HQ first, then its own in turn, then RQ",
    }
}
