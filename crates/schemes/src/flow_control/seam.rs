//! The seam between a scheme and its device: the hooks that a device calls, what a scheme says of
//! itself as plain data, and the words both use.
//!
//! A scheme has an ingress half (it watches what is admitted to and released from an ingress account)
//! and an egress half (it reacts to frames by pausing queues); either may be absent. It acts through
//! [`Device`], a narrow view of its own device. Ports are named by the device's own numbers; a lane is
//! the dense index of a priority in use.

use super::device::Device;
#[cfg(doc)]
use super::device::Loops;
use super::fabric::Lane;
use super::frame::ControlFrame;
use super::pfc::{self, Pfc, PfcParams};
use super::registry::FlowControl;
use super::seen::{Credits, OnwardQueues, RootQueues, Roots};
use super::size::links::{Links, Report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeKind;
use xoff_outcome::report::{Cause, Facts, Note, Ran, Records};

/// The hooks of a flow control on every port of a run; each port's state stands alone.
///
/// A scheme writes the hooks that it uses. What it does not write is PFC's where it rests on PFC
/// ([`Scheme::base`]), and else nothing.
#[allow(unused_variables)]
pub trait Scheme<D: Device + ?Sized> {
    /// PFC, if the scheme rests on it.
    fn base(&mut self) -> Option<&mut Pfc> {
        None
    }

    /// Both halves: the run begins. Told once for each port of a link, before anything
    /// has happened.
    fn begins(&mut self, device: &mut D, port: u32) {}

    /// Ingress half: the account of (`port`, `lane`) crossed a threshold, by an
    /// admission or a release.
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        if let Some(pfc) = self.base() {
            pfc.crossed(device, port, lane, crossing);
        }
    }

    /// Both halves: `frame` arrived at `port` and has taken effect.
    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        if let Some(pfc) = self.base() {
            pfc.received(device, port, frame);
        }
    }

    /// Both halves: `timer` went off.
    fn timer(&mut self, device: &mut D, timer: u32) {
        if let Some(pfc) = self.base() {
            pfc.timer(device, timer);
        }
    }

    /// Both halves: the link of `port` has failed. Pauses of its lanes end (the
    /// device sends nothing there all the same), and no frame gets to the peer
    /// until it recovers.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        if let Some(pfc) = self.base() {
            pfc.link_failed(device, port, lane);
        }
    }

    /// Both halves: the link of `port` is up again, and the peer has forgotten
    /// everything. `over` tells whether the account of (`port`, `lane`), a
    /// lossless one, is over its threshold now; at `settled`, and its own
    /// serialisation later, a frame that the peer sends at once has taken effect.
    /// (Where nothing is lossless, [`Scheme::link_reset`] is told alone.)
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        if let Some(pfc) = self.base() {
            pfc.link_recovered(device, port, lane, over, settled);
        }
    }

    /// Both halves, once for all lanes: the link of `port` is up again, and the
    /// peer has forgotten everything.
    fn link_reset(&mut self, device: &mut D, port: u32) {}

    /// Egress half: the turn of a packet of `size` bytes has come in `lane` of `port`;
    /// whether it goes now. If not, the scheme has stopped the lane ([`Device::pause`]), and
    /// will resume it when it may be asked again. If it goes, its transmission begins at
    /// once. Asked only where [`Traits::asks_to_leave`] says so, and not of control
    /// frames.
    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        true
    }

    /// Egress half: the number of the queue that a packet (or queue pair) joins
    /// next. Of `packet`, its queue and bytes are not known yet. Asked only under
    /// [`Queueing::Numbered`]; [`Scheme::enqueued`] follows at once.
    fn classify(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        0
    }

    /// Egress half: a packet's turn has come in its queue, which is not queue 0; the
    /// number of the queue that it goes on to. Of a queue pair: it is its queue's turn
    /// and its own; the number of the queue that it belongs to now, which sends it if
    /// it is the same. Asked only where queues are pulled.
    fn onward(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        0
    }

    /// Egress half: a packet (or queue pair) joined its queue. Not told under
    /// [`Queueing::PerLane`].
    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {}

    /// Egress half: a packet left its queue for the wire, or a queue pair has
    /// nothing to send for now. Not told under [`Queueing::PerLane`].
    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {}

    /// Both halves: the first packet from `ingress` waits in `lane` of `egress`. Told only where
    /// [`Traits::knows_causes`] says so.
    fn waits(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8) {}

    /// Ingress half: a packet arrived, as [`Loops::enter_loop`] says; what becomes of it.
    fn passes(&mut self, device: &mut D, packet: &LoopPacket) -> LoopDecision {
        LoopDecision::Continue
    }

    /// Ingress half: a packet of `size` bytes came in `lane` through `ingress` and is charged to that
    /// account, or has reached its end.
    fn stored(&mut self, device: &mut D, ingress: u32, lane: u8, size: u32) {}

    /// Ingress half, as [`Loops::follow_charges`] says: what the account is charged for a packet that
    /// takes `bytes`.
    fn charged(&mut self, device: &mut D, ingress: u32, lane: u8, bytes: u64) -> u64 {
        bytes
    }

    /// Ingress half, likewise: a packet of the account (`ingress`, `lane`) that takes `bytes` leaves
    /// `egress`. The scheme gives back what it is charged.
    fn on_release(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, bytes: u64) {}

    /// Ingress half: what [`Loops::settle`] has put off.
    fn settles(&mut self, device: &mut D, port: u32, lane: u8) {}

    /// Ingress half: a packet of `size` bytes of the account (`ingress`, `lane`) has left `egress`.
    fn freed(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, size: u32) {}

    /// Egress half: a frame that [`Loops::insert`] put into a queue of `port` has come first there;
    /// whether it goes over the link. If not, it is gone.
    fn barrier_leaves(&mut self, device: &mut D, port: u32, frame: &ControlFrame) -> bool {
        false
    }
}

/// A state machine, whatever device it runs on.
pub trait Machine {
    /// What it tells of a run.
    const FACTS: Option<&'static Facts> = None;

    /// Number of timers that it arms, counted from 0.
    fn timers(&self) -> usize {
        0
    }

    /// What it has recorded for the report of the run.
    fn records(&self) -> Records {
        Records::default()
    }

    /// What it knows of credit, if its upstream sends on credit.
    fn credits(&self) -> Option<&dyn Credits> {
        None
    }

    /// What it knows of roots, if it pauses by root.
    fn roots(&self) -> Option<&dyn Roots> {
        None
    }

    /// What its device knows of its queues, if they are pulled.
    fn pulled(&self) -> Option<&Pulled> {
        None
    }
}

/// What a scheme is, as plain data: what the device does for it, and what can be said of it without
/// running it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// From the arrival of a control frame's last bit until it takes effect.
    pub response_time: Time,
    /// How long nothing may move before the flow control sets something going again by itself; 0 if
    /// it never does.
    pub patience: Time,
    /// Whether it lets deadlocks form, finds them and ends them.
    pub ends_deadlocks: bool,
    /// Whether [`Scheme::may_leave`] is asked before a packet leaves. Of loops the device asks
    /// while it has a place in one.
    pub asks_to_leave: bool,
    /// Whether [`Scheme::stored`] and [`Scheme::freed`] are told of every packet, and not of those
    /// of devices with a place in a loop only.
    pub reports_storage: bool,
    /// Whether [`Device::received`] is counted.
    pub counts_arrivals: bool,
    /// Whether [`Causes::waits`](super::device::Causes::waits) is kept, and [`Scheme::waits`] told.
    pub knows_causes: bool,
    /// Why a packet was dropped that left a queue in [`Mode::Forward`] and found no room.
    pub overrun: Option<&'static Cause>,
    /// Bytes of the cells in which accounts count packets, a power of two: a packet is charged whole
    /// ones.
    pub cell: u32,
    /// When a host serves relayed packets, compared with its own traffic.
    pub relay_order: RelayOrder,
    /// What one of its pauses stops.
    pub pause_scope: PauseScope,
    /// On some links its pauses stop lanes instead.
    pub also_by_lane: bool,
    /// How the packets of a lane lie in the queues of a port.
    pub queueing: Queueing,
}

impl Traits {
    /// Nothing is paused or asked.
    pub const NONE: Self = Self {
        response_time: 0,
        patience: 0,
        ends_deadlocks: false,
        asks_to_leave: false,
        reports_storage: false,
        counts_arrivals: false,
        knows_causes: false,
        overrun: None,
        cell: 1,
        relay_order: RelayOrder::Turns,
        pause_scope: PauseScope::Nothing,
        also_by_lane: false,
        queueing: Queueing::PerLane,
    };

    /// PFC's: a pause stops a lane.
    pub fn of_pfc(pfc: &PfcParams) -> Self {
        Self { response_time: pfc.response_time, pause_scope: PauseScope::Lane, ..Self::NONE }
    }
}

/// The resolved parameters of a scheme.
#[allow(unused_variables)]
pub trait Parameters {
    /// The name by which scenarios ask for it, where it shares its parameters with the scheme of
    /// their registry line.
    fn alias(&self) -> Option<&'static str> {
        None
    }

    /// What the scheme is.
    fn traits(&self) -> Traits;

    /// The parameters of PFC, where it (or what rests on it) runs.
    fn pfc(&self) -> Option<&PfcParams> {
        None
    }

    /// Whether the ingress of `port` grants its peer slots.
    fn grants_slots(&self, port: u32) -> bool {
        false
    }

    /// Under [`PauseScope::Onward`], the queues.
    fn onward_queues(&self) -> Option<&dyn OnwardQueues> {
        None
    }

    /// Under [`PauseScope::Root`], the isolation queues.
    fn root_queues(&self) -> Option<RootQueues> {
        None
    }

    /// How packets change their lane, if they do.
    fn lane_rules(&self) -> Option<&LaneRules> {
        None
    }

    /// Whether accounts have thresholds, rather than being parts of a buffer.
    fn has_thresholds(&self) -> bool {
        true
    }

    /// The parameters in words, in parentheses and on further lines.
    fn describe(&self, seen: &Seen<'_>) -> String;

    /// Compares the memory of a scenario's links with what they need; `false` if none is known to
    /// suffice.
    fn compare(&self, links: &Links<'_>, report: &mut Report) -> bool {
        let Some(pfc) = self.pfc() else { return false };
        links.accounts(|port, priority, account| {
            pfc::size::compare(links, port, priority, account, pfc.response_time, report);
            true
        });
        true
    }

    /// Remarks on a run.
    fn notes(&self, ran: &Ran<'_>) -> Vec<Note> {
        Vec::new()
    }

    /// The remark on a run in which it never acted, if it acts by queues or by credit.
    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        None
    }

    /// Whether it promised that this run would lose no packet of a lossless priority.
    fn promises_no_loss(&self, ran: &Ran<'_>) -> bool {
        true
    }

    /// What to do where a full buffer of such a node lost packets of a lossless priority, if it is not
    /// to raise that buffer or to lower the thresholds.
    fn full_buffer_help(&self, kind: NodeKind) -> Option<&'static str> {
        None
    }

    /// The state machines of `ports` ports with the given lanes' priorities.
    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl;
}

/// Lanes that packets change to by the ports that they come and leave through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRules {
    /// By port: [`LaneRules::IN`] and [`LaneRules::OUT`]. The lane changes from a port with the one to a
    /// port with the other.
    pub turns: Vec<u8>,
    /// By lane: the lane that it changes to.
    pub next: Vec<u8>,
}

impl LaneRules {
    /// The lane of what comes in through this port may change.
    pub const IN: u8 = 1;
    /// The lane of what leaves by this port may change.
    pub const OUT: u8 = 2;

    /// Whether the lane of a packet changes that comes in through `ingress` and leaves by `egress`.
    #[inline]
    pub fn changes(&self, ingress: u32, egress: u32) -> bool {
        self.turns[ingress as usize] & Self::IN != 0 && self.turns[egress as usize] & Self::OUT != 0
    }

    /// The lane that a packet goes on in, which comes in `lane` through `ingress` and leaves by `egress`.
    #[inline]
    pub fn onward(&self, lane: u8, ingress: u32, egress: u32) -> u8 {
        if self.changes(ingress, egress) { self.next[usize::from(lane)] } else { lane }
    }
}

/// What a device knows of queues that are pulled ([`Queueing::Numbered`]), without asking at each packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// By port and lane: see [`Pulled::quiet_up_to`].
    pub quiet: Vec<u64>,
    pub lanes: usize,
    /// Each queue that may send gives a packet to the one that it goes on to whenever one is sent,
    /// rather than in turn with it.
    pub pushes: bool,
    /// The number of a host's queue of queue pairs that wait for nobody.
    pub free_pairs: u16,
}

impl Pulled {
    /// Bytes that queue 0 of a port may hold while only its length matters there: packets only join and
    /// leave it, and the scheme need not be told. 0 while more matters.
    #[inline]
    pub fn quiet_up_to(&self, port: u32, lane: u8) -> u64 {
        self.quiet[port as usize * self.lanes + usize::from(lane)]
    }
}

/// When a host serves what it relays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RelayOrder {
    /// Before its own traffic.
    #[default]
    First,
    /// In turn with its own traffic, half of the link for each.
    Turns,
    /// After its own traffic.
    Last,
}

/// What a description of parameters needs of the plan.
pub struct Seen<'p> {
    /// Ports of links; inner ports of slow hosts come last.
    pub links: usize,
    /// The priorities in use.
    pub lanes: &'p [Lane],
    /// Places of routes from which packets know another path.
    pub detours: usize,
}

/// The least and the most of `values`, or the one that they all are.
pub(super) fn range<T: Ord>(values: &[T], show: impl Fn(&T) -> String) -> String {
    match (values.iter().min(), values.iter().max()) {
        (Some(least), Some(most)) if least < most => format!("{} to {}", show(least), show(most)),
        (Some(one), _) => show(one),
        (None, _) => String::new(),
    }
}

/// What one pause stops: the static pause relation, by which a fabric can be
/// checked without running it. A device that waits for one of its egress queues
/// stops what fills it at its neighbours upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseScope {
    /// Nothing is ever stopped: what does not fit is dropped.
    Nothing,
    /// All of a lane on the link that the packets came through.
    Lane,
    /// Every lane of that link, for what lossless lanes have brought through it.
    Link,
    /// One of so many queues of a lane on that link. Which flows share it is
    /// settled while they run: in the worst case any that the port sends.
    Queue {
        /// Queues of a port and lane that flows are spread over, at least 1.
        queues: u16,
    },
    /// One flow on that link, and no other.
    Flow,
    /// The queues of what is going to leave through the port that waits, wherever
    /// they are: see [`OnwardQueues`].
    Onward,
    /// What is going to leave through the port that is congested, the root, wherever
    /// it waits, in isolation queues.
    Root,
}

/// How the packets of a lane lie in the egress queues of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// One queue; the scheme is not asked.
    PerLane,
    /// The scheme chooses a queue by its number.
    Numbered {
        /// Which numbers there are.
        numbers: Numbers,
        /// ACKs lie in the scheme's queues, too, rather than in a queue of their
        /// own that is served first and never paused.
        acks: bool,
        /// Queue 0 is never paused. A packet whose turn comes in another queue goes on
        /// to a further one, which the scheme chooses ([`Scheme::onward`]), and to
        /// queue 0 at last.
        pulls: bool,
    },
    /// One for each flow, besides a queue of ACKs, which is served first and
    /// never paused; the device finds it, the scheme is not asked.
    PerFlow,
}

/// Numbers of a scheme's queues at a port. At hosts, those of what is forwarded
/// and of the host's own queue pairs, each as (first, how many), together number
/// all from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// At a switch: how many, from 0 on.
    pub switch: u16,
    /// At a host: those of what it forwards.
    pub relayed: (u16, u16),
    /// At a host: those of its own queue pairs.
    pub own: (u16, u16),
}

/// A packet that entered or left one of the queues of a lane (or one of the
/// host's own queue pairs, which has something to send, or no longer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueEntry {
    pub port: u32,
    pub lane: u8,
    /// The queue's number, as [`Queueing`] counts them; 0 where each flow has one.
    pub queue: u16,
    /// It is one of the host's own queue pairs.
    pub own: bool,
    /// Bytes of the packet; 0 for queue pairs.
    pub size: u32,
    /// Bytes in the queue, this packet included when it enters and not when it
    /// leaves; 0 for queue pairs.
    pub queued: u64,
    /// Where it is on its way: the position of `port` in the plan's hops.
    pub hop: u32,
    /// The flow; stands for its addresses and ports.
    pub flow: u32,
    /// An answer of the flow's receiver: it travels from there to the sender,
    /// hence under exchanged addresses.
    pub answer: bool,
    /// The port that it came through; `None` if it began here.
    pub ingress: Option<u32>,
    /// Number of the queue that it left the neighbour from; 0 if it began here.
    pub upstream: u16,
    /// Where queues are pulled: a number of the packet that the scheme may write, below
    /// 2^15; 0 when it arrives.
    pub passed: u16,
    /// A bit of the packet that the scheme may write; cleared at each arrival.
    pub counted: bool,
    /// A bit of the queue that the scheme may write.
    pub pausing: bool,
}

/// What becomes of a packet that arrives at a device with a place in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopDecision {
    /// It goes its way.
    Continue,
    /// It is (or stays) marked and waits at this egress port; its place on its way stays.
    Circulate(u32),
    /// It is back where it began: the mark is cleared, and its place is that of this egress port.
    Exit(u32),
    /// It waits beside the queue of its egress port until the loop is dissolved.
    SetAside,
    /// It is marked, and nobody here knows of a loop: it goes on by its way from here.
    NoLoop,
}

/// A packet that arrived at a device with a place in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopPacket {
    /// The port that it came through.
    pub ingress: u32,
    /// The port that its way leads through.
    pub egress: u32,
    pub lane: u8,
    pub flow: u32,
    /// Its bytes.
    pub size: u32,
    /// It has missed where it was to leave the loop.
    pub marked: bool,
}

/// What is known of one port on a packet's onward way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The packet will leave through this egress port.
    Port(u32),
    /// It depends on what a device on the way will choose.
    Unknown,
    /// The way has ended before.
    End,
}

/// The facts of a link that headroom depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    pub rate: u64,
    pub delay: Time,
    /// Largest packet that either side may have begun, in bytes.
    pub largest: u32,
}

/// Headroom, with the terms it is the sum of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Name and bytes of each term; empty if the scenario set the sum.
    pub terms: Vec<(&'static str, u64)>,
    /// The sum in bytes.
    pub total: u64,
}

/// How an egress queue treats packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They wait, and go while it is not paused.
    Obey,
    /// Those that wait are dropped for this cause, and those that come for it.
    Discard(&'static Cause),
    /// As with [`Mode::Obey`]; but it sends what the peer has not agreed to, which may
    /// therefore have no room for it. The scheme does not pause it meanwhile.
    Forward,
}

/// A change of an ingress account, told to the ingress half. The account counts
/// as over from the packet that brings it to its threshold (XOFF) until it has
/// drained to the resume level (XON) with its headroom empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    Over,
    Under,
}
