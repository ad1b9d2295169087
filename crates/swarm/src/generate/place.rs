//! The network that a topology table makes: names, links and scales of time, which the other
//! tables refer to.

use std::collections::BTreeSet;

use xoff_kernel::time::serialisation;
use xoff_net::topology::{NodeKind, Topology};

use super::{Sketch, traffic};
use crate::draw::MICROSECOND;
use crate::scenario::Scenario;

/// Facts of a built network.
pub struct Place {
    pub kind: String,
    /// Names of hosts, in order.
    pub hosts: Vec<String>,
    /// Names of switches, in order.
    pub switches: Vec<String>,
    /// Links as a failure writes them, `A-B`.
    pub links: Vec<String>,
    /// Links between switches, by their ends.
    pub inner: BTreeSet<(String, String)>,
    /// Ports as `S0.0:1`.
    pub ports: Vec<String>,
    /// Switch, destination host and neighbour of static routes that lead on.
    pub overrides: Vec<[String; 3]>,
    /// A cycle of three or more switches with hosts, if there is one.
    pub cycle: Option<Vec<String>>,
    /// Rate of the slowest and of the fastest link.
    pub rates: (u64, u64),
    /// The longest delay of a link, in picoseconds.
    pub delay: u64,
    /// A link is between sites.
    pub long: bool,
    /// The shortest of those, in picoseconds.
    pub shortest_long: u64,
    /// Most links of a host.
    pub host_links: usize,
    /// The shortest delay of a link, in picoseconds.
    pub least_delay: u64,
    pub relays: bool,
    /// The time of a largest packet on the slowest link and of three round trips, at least 1 us.
    pub tick: u64,
}

impl Place {
    /// The network of the topology that a sketch has so far; `None` if it is refused.
    pub fn of(sketch: &Sketch) -> Option<Self> {
        let mut probe = Scenario { table: sketch.table.clone(), files: sketch.files.clone() };
        let table = &sketch.table["topology"];
        let file = |name: &str| std::str::from_utf8(sketch.files.get(name)?).ok();
        let hosts = match table.get("hosts").and_then(|h| h.as_array()) {
            _ if table["kind"].as_str() == Some("file") => {
                let words = file("links.csv")?.split([',', '\n']);
                let mut hosts: Vec<&str> = words.filter(|word| word.starts_with('H')).collect();
                hosts.sort_unstable();
                hosts.dedup();
                [*hosts.first()?, *hosts.get(1)?].map(Into::into)
            }
            Some(hosts) => [hosts[0].clone(), hosts[1].clone()],
            None if sketch.files.contains_key("fabric.txt") => {
                let first = file("fabric.txt")?.split_whitespace().nth(1)?.parse::<u64>().ok()?;
                [first, first + 1].map(|id| format!("H{id}").into())
            }
            None => ["H0", "H1"].map(Into::into),
        };
        let traffic = traffic::one_flow(&hosts[0], &hosts[1]);
        probe.table.insert("traffic".into(), toml::Value::Array(vec![traffic.into()]));
        let topology = probe.load().ok()?.plan.topology;
        Some(Self::new(sketch, &topology))
    }

    fn new(sketch: &Sketch, topology: &Topology) -> Self {
        let name = |node: u32| topology.nodes[node as usize].name.clone();
        let names = |kind| {
            topology.nodes.iter().filter(|n| n.kind == kind).map(|n| n.name.clone()).collect::<Vec<_>>()
        };
        let (mut links, mut inner) = (BTreeSet::new(), BTreeSet::new());
        let mut ports = Vec::new();
        for (id, port) in (0..).zip(&topology.ports) {
            let far = topology.neighbour(id);
            ports.push(topology.port_name(id));
            if port.node < far {
                links.insert(format!("{}-{}", name(port.node), name(far)));
            }
            if [port.node, far].iter().all(|&n| topology.nodes[n as usize].kind == NodeKind::Switch) {
                inner.insert((name(port.node), name(far)));
            }
        }
        let rates = topology.ports.iter().map(|p| p.rate);
        let rates = (rates.clone().min().unwrap_or(1), rates.max().unwrap_or(1));
        let delay = topology.ports.iter().map(|p| p.delay).max().unwrap_or(0);
        let long = topology.ports.iter().filter(|p| p.long);
        let place = Self {
            kind: sketch.table["topology"]["kind"].as_str().unwrap_or_default().into(),
            hosts: names(NodeKind::Host),
            switches: names(NodeKind::Switch),
            links: links.into_iter().collect(),
            cycle: cycle(&with_hosts(topology, &inner)),
            inner,
            ports,
            overrides: overrides(topology),
            rates,
            delay,
            long: long.clone().count() > 0,
            shortest_long: long.map(|p| p.delay).min().unwrap_or(0),
            host_links: topology.hosts().map(|h| topology.nodes[h as usize].ports.len()).max().unwrap_or(0),
            least_delay: topology.ports.iter().map(|p| p.delay).min().unwrap_or(0),
            relays: topology.relay_hosts,
            tick: 0,
        };
        let packet = serialisation(sketch.mtu + 100, rates.0);
        Self { tick: (packet + 6 * delay).max(MICROSECOND), ..place }
    }
}

/// Static routes: to a random-looking neighbour of each switch for some hosts.
fn overrides(topology: &Topology) -> Vec<[String; 3]> {
    let mut out = Vec::new();
    let hosts: Vec<u32> = topology.hosts().collect();
    for (id, port) in (0..).zip(&topology.ports) {
        let (at, via) = (port.node, topology.neighbour(id));
        let host = hosts[id as usize % hosts.len()];
        let leads = topology.nodes[via as usize].kind == NodeKind::Switch || via == host;
        if topology.nodes[at as usize].kind == NodeKind::Switch && leads {
            out.push([at, host, via].map(|n| topology.nodes[n as usize].name.clone()));
        }
    }
    out
}

/// The links between switches that have hosts.
fn with_hosts(topology: &Topology, inner: &BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    let mut out = inner.clone();
    for (at, node) in (0..).zip(&topology.nodes) {
        let host = |&p: &u32| {
            let far = &topology.nodes[topology.neighbour(p) as usize];
            // One that is at two switches would send to itself.
            far.kind == NodeKind::Host && far.ports.len() == 1
        };
        if topology.nodes[at].kind == NodeKind::Switch && !node.ports.iter().any(host) {
            out.retain(|(a, b)| *a != node.name && *b != node.name);
        }
    }
    out
}

/// A shortest cycle of switches that is found from the first link on.
fn cycle(inner: &BTreeSet<(String, String)>) -> Option<Vec<String>> {
    let near =
        |at: &str| inner.iter().filter(move |(a, _)| a == at).map(|(_, b)| b.clone()).collect::<Vec<_>>();
    for (a, b) in inner {
        // A path from b back to a that does not use the link between them.
        let mut paths = vec![vec![a.clone(), b.clone()]];
        while let Some(path) = paths.pop() {
            if path.len() > 6 {
                continue;
            }
            for next in near(path.last().expect("two at least")) {
                if next == *a && path.len() > 2 {
                    return Some(path);
                }
                if !path.contains(&next) {
                    let mut longer = path.clone();
                    longer.push(next);
                    paths.insert(0, longer);
                }
            }
        }
    }
    None
}
