//! `xoff schemes SCHEME --topology …`: the queues of a scheme at a port, if they depend on the network, their
//! packets, and the ports that pause them.

use std::{collections::BTreeMap, fmt::Write, path::Path};

use miette::{Report, miette};
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_plan::plan::{ENDS, Plan};
use xoff_results::names;
use xoff_results::table::{Align, aligned};
use xoff_schemes::flow_control::registry::{QUEUE_MAPS, QueueMap};
use xoff_schemes::flow_control::seen::{OnwardQueues, PortQueues};

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
        let text = text.to_lowercase();
        let (n, k) = text.strip_prefix("ndc(")?.strip_suffix(')')?.split_once(',')?;
        Some(Network::Ndc { n: n.trim().parse().ok()?, k: k.trim().parse().ok()? })
    };
    numbers().unwrap_or(Network::Scenario)
}

/// The queues of the ports of a network: their number, or for one port each queue with its purpose.
pub fn describe(scheme: Option<&str>, topology: &str, port: Option<&str>) -> miette::Result<String> {
    let Some(map) = QUEUE_MAPS.iter().find(|map| Some(map.name) == scheme) else {
        let [QueueMap { name, .. }] = QUEUE_MAPS;
        return Err(miette!(
            help = format!("type xoff schemes {name} --topology ..."),
            "--topology requires the scheme `{name}`: only its queues depend on the topology"
        ));
    };
    let kind = network(topology);
    if let Network::Ndc { n, k } = kind
        && k != 1
    {
        return (map.counted)(n, k, port.is_some()).map_err(|(wrong, help)| miette!(help = help, "{wrong}"));
    }
    let plan = plan(map.name, topology, &kind)?;
    let queues = plan.flow_control.onward_queues().filter(|_| plan.flow_control.name() == map.name);
    let Some(queues) = queues else {
        return Err(miette!(
            help = format!("for {}, set scheme = \"{}\" in [flow_control]", map.title, map.name),
            "the flow control of {topology} is not {}",
            map.name
        ));
    };
    let Some(name) = port else {
        let switches = plan.topology.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
        let most = switches.map(|node| node.ports.len()).max().unwrap_or(0);
        let rows: Vec<Vec<String>> = queues.counts(&plan.topology).into_iter().map(Vec::from).collect();
        return Ok(format!(
            "Queues of {} in {}: switches with up to {} ports\n{}For the queues of one port: --port {}\n",
            queues.scheme(),
            names::network(&plan),
            most,
            aligned(&rows, &[Align::Left; 3]),
            plan.topology.port_name(0)
        ));
    };
    let found = (0..plan.topology.ports.len() as PortId).find(|&p| names::port(&plan, p) == name);
    let found = found.and_then(|port| Some((port, queues.of_port(&plan.topology, port)?)));
    let (port, words) = found.ok_or_else(|| no_port(&plan.topology, name))?;
    // The plan of a network without traffic has one flow, which belongs to no class.
    let flows = match kind {
        Network::Scenario => flows(&plan, queues, port),
        Network::Ndc { .. } => BTreeMap::new(),
    };
    Ok(of_port(&plan, port, words, &flows))
}

fn plan(scheme: &str, topology: &str, kind: &Network) -> miette::Result<Plan> {
    Ok(match *kind {
        Network::Ndc { n, k } => {
            let text = format!(
                "[topology]\nkind = \"ndc\"\nn = {n}\nk = {k}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 [flow_control]\nscheme = \"{scheme}\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1B\"\n"
            );
            let files = |_: &Path| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
            xoff_plan::load(topology, text.as_bytes(), &[], &files)?.plan
        }
        Network::Scenario => load::load(Path::new(topology), &[], false, xoff_plan::Needs::Network)?.plan,
    })
}

fn no_port(topology: &Topology, name: &str) -> Report {
    let some = |kind: NodeKind| {
        let node = topology.nodes.iter().find(|n| n.kind == kind && !n.ports.is_empty());
        node.map(|n| topology.port_name(n.ports[0])).unwrap_or_default()
    };
    miette!(
        help = format!("type a port such as {} or {}", some(NodeKind::Host), some(NodeKind::Switch)),
        "unknown port `{name}`"
    )
}

/// The flows whose packets wait in each queue of a port, in the order of the plan.
fn flows(plan: &Plan, queues: &dyn OnwardQueues, port: PortId) -> BTreeMap<u16, Vec<String>> {
    let mut of: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let routes = (0..).zip(&plan.flows).flat_map(|(i, flow)| {
        let later = plan.faults.tables.iter().flat_map(|t| &t.flows).filter(move |r| r.flow == i);
        let starts = [flow.path].into_iter().chain(plan.other_route(i)).chain(later.map(|r| r.path));
        starts.map(move |start| (flow, start)).collect::<Vec<_>>()
    });
    for (flow, start) in routes {
        let hops = &plan.hops[start as usize..];
        let length = hops.iter().take_while(|&&hop| hop < ENDS).count();
        let Some(at) = hops[..length].iter().position(|&hop| hop == port) else { continue };
        let relayed = at > 0 && queues.at_host(port);
        let queue = if relayed { queues.relay() } else { queues.queue_at(start + at as u32) };
        let name = plan.classes[usize::from(flow.class)].clone();
        let known = of.entry(queue).or_default();
        if !known.contains(&name) {
            known.push(name);
        }
    }
    of
}

/// The queues of one port, with the flows in them.
fn of_port(plan: &Plan, port: PortId, words: PortQueues, flows: &BTreeMap<u16, Vec<String>>) -> String {
    let topology = &plan.topology;
    let p = &topology.ports[port as usize];
    let mut rows = vec![["queue", "kind", "packets", "paused by", "flows"].map(String::from).to_vec()];
    let numbers = words.numbered.len();
    for (queue, words) in (0..).zip(words.numbered) {
        let names = flows.get(&queue).map_or(&[][..], Vec::as_slice);
        let mut named = names[..names.len().min(NAMED)].join(", ");
        if names.len() > NAMED {
            let _ = write!(named, " and {} more", names.len() - NAMED);
        }
        rows.push(vec![queue.to_string(), words.kind.into(), words.waits, words.paused_by, named]);
    }
    let last = words.unnumbered;
    rows.push(vec![last.kind.into(), String::new(), last.waits, last.paused_by, String::new()]);
    let device = match topology.nodes[p.node as usize].kind {
        NodeKind::Host => "host",
        NodeKind::Switch => "switch",
    };
    format!(
        "{} ({device} port, to {}): {} queues; {}\n{}",
        topology.port_name(port),
        names::node(plan, topology.neighbour(port)),
        numbers + 1,
        words.order,
        aligned(&rows, &[Align::Right, Align::Left, Align::Left, Align::Left, Align::Left])
    )
}
