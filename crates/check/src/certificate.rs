//! Certificates of freedom from deadlock, as files.

use crate::graph::{Part, Wait};
use serde::{Deserialize, Serialize};
use xoff_net::topology::{PortId, Topology};
use xoff_plan::plan::Plan;

pub const FORMAT: &str = "xoff deadlock certificate 2";

/// An order of all waits in which each waits only for later ones: a cycle of waits is therefore impossible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    pub format: String,
    pub scenario: String,
    pub routes: Routes,
    pub order: Vec<Entry>,
    /// Failures that require another order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub under: Vec<Under>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Under {
    /// A port of each link that is down, or the names of the switches.
    pub down: Vec<String>,
    pub order: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Routes {
    /// Those of the scenario's flows, before, during and after failures.
    Scenario,
    /// All that the routing may choose between any two hosts, also under failures in addition.
    All(Failing),
}

/// Failures in addition to those of the scenario: up to so many links, or up to so many switches, at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failing {
    pub links: u8,
    pub switches: u8,
}

impl Routes {
    /// All routes of the intact network.
    pub const ALL: Self = Self::All(Failing { links: 0, switches: 0 });
    /// All routes, also where any one link fails.
    pub const SINGLE_FAILURES: Self = Self::All(Failing { links: 1, switches: 0 });

    pub fn failing(self) -> Failing {
        match self {
            Self::Scenario => Failing::default(),
            Self::All(failing) => failing,
        }
    }

    pub fn has_failures(self) -> bool {
        self.failing() != Failing::default()
    }
}

/// A wait by names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The egress port, such as `S0.0:3`.
    pub port: String,
    /// 802.1p priority.
    pub priority: u8,
    /// The flow, where each is paused by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// The queue, where the queues of a port are paused by their numbers: `four-hop 2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The congestion root that it waits for, a port, where each is paused by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

impl Certificate {
    pub fn new(plan: &Plan, scenario: &str, routes: Routes, order: &[Wait]) -> Self {
        let order = order.iter().map(|&wait| entry(plan, wait)).collect();
        Self { format: FORMAT.into(), scenario: scenario.into(), routes, order, under: Vec::new() }
    }

    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let read: Self = serde_json::from_slice(text).map_err(|e| format!("it is not a certificate: {e}"))?;
        if read.format != FORMAT {
            return Err(format!("its format is `{}`, expected `{FORMAT}`", read.format));
        }
        Ok(read)
    }
}

pub fn entry(plan: &Plan, wait: Wait) -> Entry {
    let priority = plan.lanes[usize::from(wait.lane)].priority;
    let (mut flow, mut queue, mut root) = (None, None, None);
    match wait.part {
        Part::Flow(number) => flow = Some(number),
        Part::Queue(number) => {
            queue = plan.flow_control.onward_queues().map(|all| all.name(wait.port, number))
        }
        Part::Root(port) => root = Some(plan.topology.port_name(port)),
        Part::Whole => {}
    }
    Entry { port: plan.topology.port_name(wait.port), priority, flow, queue, root }
}

/// The port called `name`, of all nodes by their `names`.
pub fn port(
    topology: &Topology,
    names: &std::collections::BTreeMap<&str, u32>,
    name: &str,
) -> Option<PortId> {
    let (node, port) = name.split_once(':')?;
    let node = *names.get(node)?;
    let numbered = || topology.nodes[node as usize].ports.get(port.parse::<usize>().ok()?).copied();
    topology.find_port(node, port).or_else(numbered)
}
