//! Which links of a scenario have less memory than its scheme needs on them.
//!
//! The needs follow from the facts of each link, independent of the configuration.

use super::super::LinkFacts;
use super::super::fabric::{Account, Buffer, Lane, PacketFormat};
use super::Term;
use serde::Serialize;
use std::cmp::Ordering;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeKind, PortId, Topology};

/// A memory of the scenario against its recommended size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Need {
    /// The port that receives, such as `S0:1`, or the device, where its ports share.
    pub place: String,
    /// The port that sends to it; of a device, empty.
    pub from: String,
    /// What the link connects, in the direction of the packets: `host to switch`, `switch to switch`, `switch to
    /// host` or `host to host`; of a device `device`.
    pub link: &'static str,
    /// 802.1p priority; none where all share.
    pub priority: Option<u8>,
    /// Bits per second of the link; of a device 0.
    pub rate_bps: u64,
    /// One-way delay of the link; of a device 0.
    pub delay_ps: Time,
    /// The memory: `headroom`, `XON`, `margin`, `room beyond H`, `H`, `credit`, `relay memory` or `buffer`.
    pub what: &'static str,
    /// Bytes that the scenario has.
    pub configured: u64,
    /// Bytes that it needs.
    pub needed: u64,
    pub terms: Vec<(String, u64)>,
}

impl Need {
    pub fn is_met(&self) -> bool {
        self.configured >= self.needed
    }
}

/// What can happen where a memory is too small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Drop,
    Idle,
}

/// Memories of one kind on links of the same rate, delay and ends. The amounts are those of the tightest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Class {
    pub if_too_small: Effect,
    pub what: &'static str,
    pub link: &'static str,
    pub rate_bps: u64,
    pub delay_ps: Time,
    /// Memories of the class.
    pub count: u64,
    /// The receiving port or the device of the tightest.
    pub place: String,
    pub configured: u64,
    pub needed: u64,
    /// `configured` minus `needed`.
    pub margin: i64,
    /// Whether the need has a term for a response time, and this term is 0.
    #[serde(skip)]
    pub instant: bool,
}

impl Class {
    fn new(need: &Need, if_too_small: Effect) -> Self {
        let amount = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Self {
            if_too_small,
            what: need.what,
            link: need.link,
            rate_bps: need.rate_bps,
            delay_ps: need.delay_ps,
            count: 1,
            place: need.place.clone(),
            configured: need.configured,
            needed: need.needed,
            margin: amount(need.configured).saturating_sub(amount(need.needed)),
            instant: need.terms.iter().any(|(name, bytes)| name.contains("response time") && *bytes == 0),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let key = |c: &Self| (c.if_too_small, c.what, c.link, c.rate_bps, c.delay_ps);
        key(self) == key(other)
    }

    /// Orders by what is configured relative to the need.
    fn by_tightness(&self, other: &Self) -> Ordering {
        let product = |a: &Self, b: &Self| u128::from(a.configured) * u128::from(b.needed.max(1));
        product(self, other).cmp(&product(other, self)).then(self.margin.cmp(&other.margin))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub scheme: &'static str,
    /// Number of memories that were compared with the need of losslessness.
    pub compared: u64,
    /// Those that are too small: packets can be lost.
    pub too_small: Vec<Need>,
    /// Where nothing is lost for it, but an egress can run dry while its sender, which was stopped, has more.
    pub may_idle: Vec<Need>,
    /// All memories by class: those whose lack drops packets first, and of these the tightest first.
    pub classes: Vec<Class>,
}

/// Schemes under which some memory is known to suffice.
pub use super::super::registry::SIZED as SCHEMES;

/// A scenario's links, and the memory that it has for them.
pub struct Links<'p> {
    pub topology: &'p Topology,
    pub lanes: &'p [Lane],
    /// By lane: flows have data in it.
    pub data: Vec<bool>,
    /// By node; then the pools of accounts.
    pub buffers: &'p [Buffer],
    /// By port and lane.
    pub accounts: &'p [Account],
    pub packet: PacketFormat,
    /// By port: bytes that can arrive after a pause because a link layer repairs packets and pauses. Empty without one.
    pub retries: Vec<u64>,
}

/// An ingress account with its own room.
#[derive(Clone, Copy)]
pub(in super::super) struct Ingress<'a> {
    pub port: PortId,
    pub priority: u8,
    pub account: &'a Account,
}

impl Links<'_> {
    /// Every ingress account with its own room: its port, its priority and the account. The rest of a port
    /// is skipped where `each` returns `false`.
    pub(in super::super) fn accounts(&self, mut each: impl FnMut(Ingress<'_>) -> bool) {
        for (id, port) in (0..).zip(&self.topology.ports) {
            // Inner ports of slow hosts are no links.
            if self.topology.neighbour(id) == port.node {
                continue;
            }
            let accounts = &self.accounts[id as usize * self.lanes.len()..][..self.lanes.len()];
            for (lane, account) in self.lanes.iter().zip(accounts) {
                let ingress = Ingress { port: id, priority: lane.priority, account };
                if account.headroom.is_some() && !each(ingress) {
                    break;
                }
            }
        }
    }

    pub(crate) fn facts(&self, port: PortId) -> LinkFacts {
        let retries = self.retries.get(port as usize).copied().unwrap_or(0);
        self.packet.facts(&self.topology.ports[port as usize], retries)
    }

    fn kind(&self, port: PortId) -> NodeKind {
        self.topology.nodes[self.topology.ports[port as usize].node as usize].kind
    }

    /// The setting of a port, beside the need of its link.
    pub(crate) fn need(
        &self,
        port: PortId,
        priority: Option<u8>,
        what: &'static str,
        configured: u64,
        terms: &[Term],
    ) -> Need {
        let p = &self.topology.ports[port as usize];
        Need {
            place: self.topology.port_name(port),
            from: self.topology.port_name(p.peer),
            link: ends(self.kind(p.peer), self.kind(port)),
            priority,
            rate_bps: p.rate,
            delay_ps: p.delay,
            what,
            ..device("", configured, terms)
        }
    }
}

impl Report {
    /// A memory that losslessness needs.
    pub(in super::super) fn add(&mut self, need: Need) {
        self.compared += 1;
        self.classify(Class::new(&need, Effect::Drop));
        if !need.is_met() {
            self.too_small.push(need);
        }
    }

    /// A port whose egress may run empty. Hosts have no egress that could wait for arrivals.
    pub(crate) fn idle(&mut self, links: &Links<'_>, port: PortId, need: Need) {
        if links.kind(port) != NodeKind::Switch {
            return;
        }
        self.classify(Class::new(&need, Effect::Idle));
        if !need.is_met() {
            self.may_idle.push(need);
        }
    }

    fn classify(&mut self, class: Class) {
        let Some(known) = self.classes.iter_mut().find(|known| known.is_like(&class)) else {
            return self.classes.push(class);
        };
        let count = known.count + 1;
        if class.by_tightness(known) == Ordering::Less {
            *known = class;
        }
        known.count = count;
    }

    /// Orders the classes; equal ones stay in the order of the ports.
    pub fn sort(&mut self) {
        self.classes.sort_by(|a, b| a.if_too_small.cmp(&b.if_too_small).then_with(|| a.by_tightness(b)));
    }
}

fn ends(from: NodeKind, to: NodeKind) -> &'static str {
    match (from, to) {
        (NodeKind::Host, NodeKind::Host) => "host to host",
        (NodeKind::Host, NodeKind::Switch) => "host to switch",
        (NodeKind::Switch, NodeKind::Host) => "switch to host",
        (NodeKind::Switch, NodeKind::Switch) => "switch to switch",
    }
}

pub(in super::super) fn device(name: &str, configured: u64, terms: &[Term]) -> Need {
    Need {
        place: name.to_string(),
        from: String::new(),
        link: "device",
        priority: None,
        rate_bps: 0,
        delay_ps: 0,
        what: "buffer",
        configured,
        needed: terms.iter().fold(0, |sum, t| sum.saturating_add(t.1)),
        terms: terms.iter().map(|t| (t.0.to_string(), t.1)).collect(),
    }
}
