//! The view of oracles on a scheme beside its pauses. Nothing here changes anything.

use std::ops::Range;
use xoff_net::topology::Topology;

/// Queues of one port and lane that keep a queue upstream paused while they hold too many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pausers {
    pub port: u32,
    pub queues: Range<u16>,
    /// The longest of them decides, and not all together.
    pub alone: bool,
    /// Bytes that they may hold, together or each, when the queue upstream resumes.
    pub resume: u64,
}

/// The queues of a scheme that pauses by onward port ([`PauseScope::Onward`](super::PauseScope::Onward)).
pub trait OnwardQueues {
    /// The scheme, as texts call it.
    fn scheme(&self) -> &'static str;

    fn lane(&self) -> u8;

    /// Queues of a host's port; no port has more.
    fn of_host(&self) -> u16;

    /// The number of a host's queue of relayed packets.
    fn relay(&self) -> u16;

    /// Whether `port` is one of a host.
    fn at_host(&self, port: u32) -> bool;

    /// The queue of a packet at port `route[0]`, by its egress ports from there to its destination; at a
    /// host's port that of the host's own packets.
    fn queue(&self, route: &[u32]) -> u16;

    /// The same by the position of the port in the plan's hops.
    fn queue_at(&self, position: u32) -> u16;

    /// Whether flows on such a route are refused, because its packets could wait for each other in a cycle.
    fn refuses(&self, route: &[u32]) -> bool;

    /// How often hosts relay a packet on its way `route`.
    fn relays(&self, route: &[u32]) -> usize;

    /// The number of links between switches with which `route` begins.
    fn climb(&self, route: &[u32]) -> usize;

    /// The queues of a switch's port whose bytes pause together with those of `queue`.
    fn together(&self, queue: u16) -> Range<u16>;

    /// The queues that keep queue `queue` of `port` paused; `None` if nothing pauses it.
    fn pausers(&self, port: u32, queue: u16) -> Option<Pausers>;

    /// The queue in a word and its number.
    fn name(&self, port: u32, queue: u16) -> String;

    /// In words, by kinds of ports: their number, their queues, and the purpose of these.
    fn counts(&self, topology: &Topology) -> Vec<[String; 3]>;

    /// In words, the queues of a port; `None` of a port inside of a slow host.
    fn of_port(&self, topology: &Topology, port: u32) -> Option<PortQueues>;

    /// Whether hosts pass pauses on to their next switch.
    fn passes_on(&self) -> bool;

    /// Whether a resume may never be sent.
    fn loses_resumes(&self) -> bool;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortQueues {
    /// Those with numbers, in their order.
    pub numbered: Vec<QueueWords>,
    /// The one of ACKs, notifications and frames.
    pub unnumbered: QueueWords,
    pub order: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueWords {
    pub kind: &'static str,
    pub waits: String,
    /// The port and queues that pause it, or `-`.
    pub paused_by: String,
}

/// The isolation queues of a scheme that pauses by root ([`PauseScope::Root`](super::PauseScope::Root)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootQueues {
    /// Queues of a port and priority, at least 1.
    pub queues: u16,
    /// Each is for a set of roots, rather than for one.
    pub by_set: bool,
    /// Whether false roots yield to the root ahead.
    pub merges: bool,
    /// On some links pauses stop lanes instead.
    pub also_by_lane: bool,
}

/// The state of a scheme whose upstream sends on credit, in blocks.
pub trait Credits {
    /// Blocks that `lane` waits for at `port`; 0 if it does not wait.
    fn wanted(&self, port: u32, lane: u8) -> u64;

    /// The lanes that wait at `port` and get shared credit before `lane` does, by bits.
    fn before(&self, _port: u32, _lane: u8) -> u8 {
        0
    }

    /// Blocks of `lane` that `port` can store if it keeps `kept` bytes of each lane: first those in memory that is
    /// reserved for the lane, then those in memory that all lanes share.
    fn room(&self, port: u32, lane: u8, kept: &[u64]) -> [u64; 2];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead<'a> {
    /// The root: a port.
    pub root: u32,
    /// Packets that will cross the root are stopped here.
    pub paused: bool,
    /// Ports of this device whose neighbours the queues of this root have stopped.
    pub holding: &'a [u32],
}

/// The state of a scheme that pauses by root ([`PauseScope::Root`](super::PauseScope::Root)).
pub trait Roots {
    fn ahead(&self, port: u32, lane: u8) -> Vec<Ahead<'_>>;

    /// Root `root` as a port knows it; `None` if it does not.
    fn root_ahead(&self, port: u32, lane: u8, root: u32) -> Option<Ahead<'_>>;

    /// The numbers of a root's isolation queues at a port, from 1 on; none before the root's first packet.
    fn queues_of(&self, port: u32, lane: u8, root: u32) -> Vec<u16>;

    /// The roots that share isolation queue `queue`, in order.
    fn sharing(&self, port: u32, lane: u8, queue: u16) -> &[u32];

    /// Whether a port says that it is a root.
    fn is_root(&self, port: u32, lane: u8) -> bool;

    /// Ports of its device whose neighbours the output queue of a port has stopped.
    fn stopped_by_output(&self, port: u32, lane: u8) -> &[u32];

    /// The number of a host's queue of queue pairs that wait for the roots of isolation queue `queue`.
    fn pairs_of(&self, queue: u16) -> u16;

    /// Bytes that an isolation queue of a port may hold when the neighbours that it has stopped resume.
    fn resume_level(&self, port: u32) -> u64;
}
