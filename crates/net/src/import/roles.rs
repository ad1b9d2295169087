//! Which devices of an inventory are hosts, and on which tier each switch is.

use super::Inventory;
use crate::topology::{NodeId, Topology};
use std::collections::{BTreeSet, VecDeque};

/// Words that a role or a name of a host contains.
const HOST_WORDS: [&str; 24] = [
    "host",
    "hosts",
    "h",
    "server",
    "servers",
    "srv",
    "svr",
    "compute",
    "gpu",
    "dgx",
    "hgx",
    "worker",
    "client",
    "storage",
    "stor",
    "nas",
    "db",
    "hypervisor",
    "vm",
    "endpoint",
    "nic",
    "sonichost",
    "machine",
    "trainer",
];
/// Words that a role or a name of a switch contains.
const SWITCH_WORDS: [&str; 30] = [
    "switch",
    "sw",
    "s",
    "tor",
    "torrouter",
    "leaf",
    "leafrouter",
    "spine",
    "spinerouter",
    "superspine",
    "ssp",
    "ssw",
    "rsw",
    "fsw",
    "core",
    "agg",
    "aggr",
    "aggregation",
    "access",
    "edge",
    "dist",
    "distribution",
    "router",
    "rtr",
    "border",
    "fabric",
    "dci",
    "backendtorrouter",
    "backendleafrouter",
    "gateway",
];

/// How devices were found to be hosts, with their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// By the patterns of the scenario.
    pub by_pattern: usize,
    /// By a role in the file.
    pub by_role: usize,
    pub by_name: usize,
    /// By having one neighbour.
    pub by_links: usize,
}

/// Returns for each device whether it is a host. `patterns` decide if there are any. Otherwise the role in the file
/// decides, then the name, then whether it has only one neighbour.
pub fn hosts(inventory: &Inventory, patterns: &[String]) -> (Vec<bool>, Found) {
    let mut found = Found::default();
    let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); inventory.devices.len()];
    for cable in &inventory.cables {
        let [a, b] = [cable.ends[0].device, cable.ends[1].device];
        neighbours[a].insert(b);
        neighbours[b].insert(a);
    }
    let decide = |(device, near): (&super::Device, &BTreeSet<usize>)| {
        if !patterns.is_empty() {
            let is = patterns.iter().any(|pattern| matches(pattern, &device.name));
            found.by_pattern += usize::from(is);
            return is;
        }
        if let Some(is) = device.role.as_deref().and_then(by_words) {
            found.by_role += usize::from(is);
            return is;
        }
        if let Some(is) = by_words(&device.name) {
            found.by_name += usize::from(is);
            return is;
        }
        let is = near.len() == 1;
        found.by_links += usize::from(is);
        is
    };
    let is_host = inventory.devices.iter().zip(&neighbours).map(decide).collect();
    (is_host, found)
}

/// Whether the words of a role or a name are those of a host or of a switch; `None` for neither, and for both.
fn by_words(text: &str) -> Option<bool> {
    let lower = text.to_ascii_lowercase();
    let words = || lower.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let has = |known: &[&str]| words().any(|word| known.contains(&word));
    match (has(&HOST_WORDS), has(&SWITCH_WORDS)) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// Whether `name` fits a pattern, in which `*` is any text and `?` is one character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // The last `*`, and where its text ends so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, end)) = star else { return false };
                star = Some((at, end + 1));
                (p, n) = (at + 1, end + 1);
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The switches of a tier, in a network without names for its tiers.
pub fn tier_name(tier: u32) -> String {
    match tier {
        0 => "without hosts".into(),
        1 => "leaf".into(),
        2 => "spine".into(),
        3 => "super-spine".into(),
        n => format!("{n} links from hosts"),
    }
}

/// The tier of each node: 0 for hosts, else the number of links to the nearest host. A node that no host reaches is
/// on the tier above all others.
pub fn tiers(topology: &Topology) -> Vec<u32> {
    let mut tiers: Vec<Option<u32>> = vec![None; topology.nodes.len()];
    let mut queue: VecDeque<NodeId> = topology.hosts().collect();
    queue.iter().for_each(|&host| tiers[host as usize] = Some(0));
    let mut last = 0;
    while let Some(node) = queue.pop_front() {
        last = tiers[node as usize].unwrap_or(0);
        for &port in &topology.nodes[node as usize].ports {
            let near = topology.neighbour(port);
            if tiers[near as usize].is_none() {
                tiers[near as usize] = Some(last + 1);
                queue.push_back(near);
            }
        }
    }
    tiers.into_iter().map(|found| found.unwrap_or(last + 1)).collect()
}
