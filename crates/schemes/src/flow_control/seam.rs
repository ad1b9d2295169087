//! The seam between a scheme and its device: the device's calls, a scheme's description, and common types.
//!
//! A scheme has an ingress half (it watches admissions to an ingress account and releases from it) and an
//! egress half (it reacts to frames by pausing queues); either may be absent. It acts through [`Device`], a
//! narrow view of its own device. Ports are named by the device's own numbers; a lane is the dense index of a
//! priority in use.

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

/// The hooks of a flow control on every port of a run; each port's state is independent.
///
/// A scheme implements the hooks that it uses. The others are those of its [`Scheme::base`], or empty.
#[allow(unused_variables)]
pub trait Scheme<D: Device + ?Sized> {
    /// PFC, if the scheme rests on it.
    fn base(&mut self) -> Option<&mut Pfc> {
        None
    }

    /// Both halves: the run begins. Called once for each port of a link, before any other event.
    fn begins(&mut self, device: &mut D, port: u32) {}

    /// Ingress half: the account of (`port`, `lane`) crossed a threshold, by an admission or a release.
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        if let Some(pfc) = self.base() {
            pfc.crossed(device, port, lane, crossing);
        }
    }

    /// Ingress half: the lossless accounts of `port` together crossed their threshold. Also called over a link
    /// that is down. Only with [`Traits::shares_headroom`].
    fn port_crossed(&mut self, device: &mut D, port: u32, crossing: Crossing) {}

    /// Ingress half: a packet went to the insurance of `port`, which now holds `used` bytes. Only with
    /// [`Traits::shares_headroom`].
    fn insured(&mut self, device: &mut D, port: u32, used: u64) {}

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

    /// Both halves: the link of `port` has failed. Pauses of its lanes end (the device sends nothing there
    /// all the same), and no frame gets to the peer until it recovers.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        if let Some(pfc) = self.base() {
            pfc.link_failed(device, port, lane);
        }
    }

    /// Both halves: the link of `port` is up again, and the peer has reset its state. `over` is whether the
    /// account of (`port`, `lane`), a lossless one, is over its threshold now; at `settled`, and its own
    /// serialisation later, a frame that the peer sends at once has taken effect. (Without a lossless
    /// priority, only [`Scheme::link_reset`] is called.)
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        if let Some(pfc) = self.base() {
            pfc.link_recovered(device, port, lane, over, settled);
        }
    }

    /// Both halves, once for all lanes: the link of `port` is up again, and the peer is reset.
    fn link_reset(&mut self, device: &mut D, port: u32) {}

    /// Egress half: the turn of a packet of `size` bytes has come in `lane` of `port`. Returns whether it may
    /// leave now. If not, the scheme has stopped the lane ([`Device::pause`]), and resumes it when the device
    /// may call this again. If it may, its transmission begins at once. Called only with
    /// [`Traits::asks_to_leave`], and not for control frames.
    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        true
    }

    /// Egress half: the number of the queue that a packet (or queue pair) joins next. The queue and bytes of
    /// `packet` are not known yet. Only under [`Queueing::Numbered`]; [`Scheme::enqueued`] follows.
    fn classify(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        0
    }

    /// Egress half: a packet's turn has come in its queue, which is not queue 0. Returns the number of its
    /// next queue. For a queue pair: its queue's turn and its own have come; returns the number of its
    /// present queue, which sends it if it is the same. Called only where queues are pulled.
    fn onward(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        0
    }

    /// Egress half: a packet (or queue pair) joined its queue. Not called under [`Queueing::PerLane`].
    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {}

    /// Egress half: a packet left its queue for the wire, or a queue pair has nothing to send for now. Not
    /// called under [`Queueing::PerLane`].
    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {}

    /// Both halves: the first packet from `ingress` waits in `lane` of `egress`. If [`Traits::knows_causes`].
    fn waits(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8) {}

    /// Ingress half: a packet arrived, under the conditions of [`Loops::enter_loop`]. Returns its fate.
    fn passes(&mut self, device: &mut D, packet: &LoopPacket) -> LoopDecision {
        LoopDecision::Continue
    }

    /// Ingress half: a packet of `size` bytes came in `lane` through `ingress` and is charged to that
    /// account, or has reached its end.
    fn stored(&mut self, device: &mut D, ingress: u32, lane: u8, size: u32) {}

    /// Ingress half, after [`Loops::follow_charges`]: the charge for a packet that takes `bytes`.
    fn charged(&mut self, device: &mut D, ingress: u32, lane: u8, bytes: u64) -> u64 {
        bytes
    }

    /// Ingress half, likewise: a packet of the account (`ingress`, `lane`) that takes `bytes` leaves
    /// `egress`. The scheme releases its charge.
    fn on_release(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, bytes: u64) {}

    /// Ingress half: the work that [`Loops::settle`] has postponed.
    fn settles(&mut self, device: &mut D, port: u32, lane: u8) {}

    /// Ingress half: a packet of `size` bytes of the account (`ingress`, `lane`) has left `egress`.
    fn freed(&mut self, device: &mut D, ingress: u32, egress: u32, lane: u8, size: u32) {}

    /// Egress half: a frame that [`Loops::insert`] put into a queue of `port` has come first there;
    /// whether it goes over the link. If not, it is gone.
    fn barrier_leaves(&mut self, device: &mut D, port: u32, frame: &ControlFrame) -> bool {
        false
    }
}

/// A state machine, independent of the device on which it runs.
pub trait Machine {
    /// The facts that it reports about a run.
    const FACTS: Option<&'static Facts> = None;

    /// Number of timers that it arms, counted from 0.
    fn timers(&self) -> usize {
        0
    }

    /// Its records for the report of the run.
    fn records(&self) -> Records {
        Records::default()
    }

    /// Its state about credit, if its upstream sends on credit.
    fn credits(&self) -> Option<&dyn Credits> {
        None
    }

    /// Its state about roots, if it pauses by root.
    fn roots(&self) -> Option<&dyn Roots> {
        None
    }

    /// Its device's data about its queues, if they are pulled.
    fn pulled(&self) -> Option<&Pulled> {
        None
    }
}

/// The description of a scheme: services of the device, and properties that are known without a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// From the arrival of a control frame's last bit until it takes effect.
    pub response_time: Time,
    /// How long nothing may move before the flow control restarts something by itself; 0 if it never does.
    pub patience: Time,
    /// Whether it lets deadlocks form, finds them and ends them.
    pub ends_deadlocks: bool,
    /// Whether [`Scheme::may_leave`] is called before a packet leaves. For loops: while the device is in one.
    pub asks_to_leave: bool,
    /// Whether [`Scheme::stored`] and [`Scheme::freed`] are called for every packet, and not only for those
    /// of devices with a place in a loop.
    pub reports_storage: bool,
    /// Whether [`Device::received`] is counted.
    pub counts_arrivals: bool,
    /// Whether [`Causes::waits`](super::device::Causes::waits) is kept, and [`Scheme::waits`] called.
    pub knows_causes: bool,
    /// Why a packet was dropped that left a queue in [`Mode::Forward`] and found no room.
    pub overrun: Option<&'static Cause>,
    /// Bytes of the cells in which accounts count packets, a power of two: a packet is charged whole ones.
    pub cell: u32,
    /// Bytes that a packet takes in accounts beside its own, before they are rounded up to cells. Together a
    /// packet has one at least.
    pub overhead: i32,
    /// When a host serves relayed packets, compared with its own traffic.
    pub relay_order: RelayOrder,
    /// The unit that one of its pauses stops.
    pub pause_scope: PauseScope,
    /// On some links its pauses stop lanes instead.
    pub also_by_lane: bool,
    /// Lanes share room: where one waits for credit, packets of another may have it. Only where
    /// [`PauseScope::Lane`] is the scope, and [`Machine::credits`] knows the room.
    pub shares_credit: bool,
    /// A lane can wait for packets of another lane, because no lane has guaranteed room for a packet.
    pub couples_lanes: bool,
    /// Accounts have their headroom in the shared pool, and each port has an insurance behind it: see
    /// [`PortLevel`]. Only where [`PauseScope::Lane`] is the scope.
    pub shares_headroom: bool,
    /// It slows lanes, by rates above 0, where others pause them. Then no packet of a lossless lane is dropped
    /// although its pauses stop nothing.
    pub slows: bool,
    /// What remains of a data packet that has no room, if devices trim packets.
    pub trims: Option<Trim>,
    /// How the packets of a lane lie in the queues of a port.
    pub queueing: Queueing,
}

/// What remains of a data packet that has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trim {
    /// Bytes on the wire. Packets that are no longer go on whole.
    pub size: u32,
    /// The lane that it goes on in.
    pub lane: u8,
    /// Why the packet was dropped, but for these bytes.
    pub cause: &'static Cause,
    /// Why the rest was dropped, if that has no room either.
    pub lost: &'static Cause,
    /// If half of the time the last packet of the queue is cut, and the packet without room takes its place: the name
    /// of the random streams that decide.
    pub last: Option<&'static str>,
}

impl Traits {
    /// No queue is paused, and no hook is called.
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
        overhead: 0,
        relay_order: RelayOrder::Turns,
        pause_scope: PauseScope::Nothing,
        also_by_lane: false,
        shares_credit: false,
        couples_lanes: false,
        shares_headroom: false,
        slows: false,
        trims: None,
        queueing: Queueing::PerLane,
    };

    /// PFC's: a pause stops a lane.
    pub fn of_pfc(pfc: &PfcParams) -> Self {
        Self { response_time: pfc.response_time, pause_scope: PauseScope::Lane, ..Self::NONE }
    }
}

/// The thresholds of a port whose accounts have their headroom in the shared pool.
///
/// An account that is over still charges its packets to the pool. The lossless accounts of the port together
/// are over when they hold more of the pool than `queues` times the dynamic threshold of an account. From then
/// on packets go to the *insurance* of the port, as many bytes as the largest headroom of its accounts. They
/// are under again when the insurance is empty and they hold less than that by more than `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLevel {
    /// The port's threshold is so many times the dynamic threshold of an account.
    pub queues: u64,
    /// An account is over when it holds more of the pool than the dynamic threshold less these bytes.
    pub margin: u64,
    /// How far below its threshold the port is under again.
    pub offset: u64,
}

/// The resolved parameters of a scheme.
#[allow(unused_variables)]
pub trait Parameters {
    /// The name by which scenarios ask for it, where another line of the registry has its parameters.
    fn alias(&self) -> Option<&'static str> {
        None
    }

    fn traits(&self) -> Traits;

    /// The parameters of PFC, if it (or a scheme based on it) runs.
    fn pfc(&self) -> Option<&PfcParams> {
        None
    }

    /// Whether the ingress of `port` grants its peer slots.
    fn grants_slots(&self, port: u32) -> bool {
        false
    }

    /// With [`Traits::shares_headroom`]: the thresholds of each port of the plan, in its order.
    fn port_levels(&self) -> &[PortLevel] {
        &[]
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

    /// Compares the memory of a scenario's links with their needs; `false` if no sufficient memory is known.
    fn compare(&self, links: &Links<'_>, report: &mut Report) -> bool {
        let Some(pfc) = self.pfc() else { return false };
        links.accounts(|ingress| {
            pfc::size::compare(links, ingress, pfc.response_time, report);
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

    /// The advice if a full buffer of such a node lost packets of a lossless priority, other than to raise
    /// that buffer or to lower the thresholds.
    fn full_buffer_help(&self, kind: NodeKind) -> Option<&'static str> {
        None
    }

    /// The advice if a full headroom lost packets of a lossless priority, where it is not that of PFC.
    fn full_headroom_help(&self) -> Option<&'static str> {
        None
    }

    /// The state machines of `ports` ports with the given lanes' priorities.
    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl;
}

/// Lanes that packets change to by the ports that they come and leave through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneRules {
    /// By port: [`LaneRules::IN`] and [`LaneRules::OUT`], the same of a second rule, and [`LaneRules::BACK`]. A lane
    /// changes from an IN to an OUT port of one rule.
    pub turns: Vec<u8>,
    /// By lane: the lane that it changes to.
    pub next: Vec<u8>,
}

impl LaneRules {
    /// The lane of packets that arrive by this port may change.
    pub const IN: u8 = 1;
    /// The lane of packets that leave by this port may change.
    pub const OUT: u8 = 2;
    /// [`LaneRules::IN`] of the second rule.
    pub const ALSO_IN: u8 = 4;
    /// [`LaneRules::OUT`] of the second rule.
    pub const ALSO_OUT: u8 = 8;
    /// The lane of packets that leave by this port changes if they came by it.
    pub const BACK: u8 = 16;

    /// Whether the lane of a packet changes that comes in through `ingress` and leaves by `egress`.
    #[inline]
    pub fn changes(&self, ingress: u32, egress: u32) -> bool {
        const { assert!(Self::OUT == Self::IN << 1 && Self::ALSO_OUT == Self::ALSO_IN << 1) };
        let into = self.turns[ingress as usize] & (Self::IN | Self::ALSO_IN);
        let out = self.turns[egress as usize];
        into & (out >> 1) != 0 || ingress == egress && out & Self::BACK != 0
    }

    /// The lane that a packet goes on in, which comes in `lane` through `ingress` and leaves by `egress`.
    #[inline]
    pub fn onward(&self, lane: u8, ingress: u32, egress: u32) -> u8 {
        if self.changes(ingress, egress) { self.next[usize::from(lane)] } else { lane }
    }
}

/// A device's data about queues that are pulled ([`Queueing::Numbered`]), without a call for each packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    /// By port and lane: see [`Pulled::quiet_up_to`].
    pub quiet: Vec<u64>,
    pub lanes: usize,
    /// Whether each queue that may send passes a packet to its next queue whenever the port sends
    /// one, instead of sharing the port with that queue by round robin.
    pub pushes: bool,
    /// The number of a host's queue of queue pairs that are not paused.
    pub free_pairs: u16,
}

impl Pulled {
    /// Bytes that queue 0 of a port may hold while only its length matters there: packets only join and leave
    /// it, and the scheme needs no call. 0 otherwise.
    #[inline]
    pub fn quiet_up_to(&self, port: u32, lane: u8) -> u64 {
        self.quiet[port as usize * self.lanes + usize::from(lane)]
    }
}

/// When a host serves the packets that it relays.
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

/// The part of the plan that a description of parameters needs.
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

/// The unit that one pause stops: the static pause relation, by which a fabric can be checked without running
/// it. A device that waits for one of its egress queues pauses the upstream neighbours that fill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseScope {
    /// Nothing is ever stopped: what does not fit is dropped.
    Nothing,
    /// All of a lane on the link that the packets came through.
    Lane,
    /// Every lane of that link, because of arrivals of its lossless lanes.
    Link,
    /// One of so many queues of a lane on that link. Which flows share it is
    /// settled while they run: in the worst case any that the port sends.
    Queue {
        /// Queues of a port and lane that forwarded flows are spread over, at least 1.
        queues: u16,
        /// Queues of a host's port and lane that its own flows are spread over, at least 1.
        own: u16,
    },
    /// One flow on that link, and no other.
    Flow,
    /// The queues of packets that will leave through the waiting port, on all devices: see [`OnwardQueues`].
    Onward,
    /// Packets that will leave through the congested port, the root, on all devices, in isolation queues.
    Root,
}

/// How the packets of a lane lie in the egress queues of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queueing {
    /// One queue; no call to the scheme.
    PerLane,
    /// The scheme chooses a queue by its number.
    Numbered {
        /// Which numbers there are.
        numbers: Numbers,
        /// ACKs lie in the scheme's queues, too, rather than in one that is served first and never paused.
        acks: bool,
        /// Queue 0 is never paused. A packet whose turn comes in another queue goes on to a further one,
        /// which the scheme chooses ([`Scheme::onward`]), and to queue 0 at last.
        pulls: bool,
        /// Of the queues of forwarded packets that may send, the one with the lowest number is served,
        /// instead of all in turns. Not with `pulls`.
        lowest: bool,
    },
    /// One for each flow, besides a queue of ACKs, which is served first and never paused. The device finds
    /// it without a call to the scheme.
    PerFlow,
}

/// Numbers of a scheme's queues at a port. At hosts, the queues of forwarded packets and of the host's own
/// queue pairs, each as (first, count), together have all numbers from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// At a switch: how many, from 0 on.
    pub switch: u16,
    /// At a host: the queues of forwarded packets.
    pub relayed: (u16, u16),
    /// At a host: those of its own queue pairs.
    pub own: (u16, u16),
}

/// A packet that entered or left one of the queues of a lane (or one of the
/// host's own queue pairs, which has something to send, or no longer).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueEntry {
    pub port: u32,
    pub lane: u8,
    /// The queue's number, as [`Queueing`] counts them; 0 where each flow has one.
    pub queue: u16,
    /// It is one of the host's own queue pairs.
    pub own: bool,
    /// Bytes of the packet; 0 for queue pairs.
    pub size: u32,
    /// Bytes in the queue, this packet included when it enters and not when it leaves; 0 for queue pairs.
    pub queued: u64,
    /// Its position on its path: that of `port` in the plan's hops.
    pub hop: u32,
    /// The flow; it represents its addresses and ports.
    pub flow: u32,
    /// Whether it is a control packet of the flow's receiver: its addresses are exchanged.
    pub response: bool,
    /// The port that it came through; `None` if it began here.
    pub ingress: Option<u32>,
    /// Number of the queue that it left the neighbour from; 0 if it began here.
    pub upstream: u16,
    /// Where queues are pulled: a number that the scheme may write, below 2^15; 0 when the packet arrives.
    pub passed: u16,
    /// A bit of the packet that the scheme may write; cleared at each arrival.
    pub counted: bool,
    /// A bit of the queue that the scheme may write.
    pub pausing: bool,
}

/// The fate of a packet that arrives at a device with a place in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopDecision {
    /// It continues on its path.
    Continue,
    /// It is (or stays) marked and waits at this egress port; its position on its path does not change.
    Circulate(u32),
    /// It is back where it began: the mark is cleared, and its place is that of this egress port.
    Exit(u32),
    /// It waits beside the queue of its egress port until the loop is dissolved.
    SetAside,
    /// It is marked, and this device is in no loop: it continues on its path from here.
    NoLoop,
}

/// A packet that arrived at a device with a place in a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopPacket {
    /// The port that it came through.
    pub ingress: u32,
    /// The next port on its path.
    pub egress: u32,
    pub lane: u8,
    pub flow: u32,
    /// Its bytes.
    pub size: u32,
    /// It has missed where it was to leave the loop.
    pub marked: bool,
}

/// The knowledge about one port on a packet's further path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Onward {
    /// The packet will leave through this egress port.
    Port(u32),
    /// It depends on the choice of a device on the path.
    Unknown,
    /// The path has ended before.
    End,
}

/// The facts of a link that headroom depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    pub rate: u64,
    pub delay: Time,
    /// Largest packet that either side may have begun, in bytes.
    pub largest: u32,
    /// Bytes that can arrive after a pause because a link layer repairs packets and pauses; 0 without one.
    pub retries: u64,
}

impl LinkFacts {
    /// The headroom of these terms, and of the retries of the link layer.
    pub fn room(&self, mut terms: Vec<(&'static str, u64)>) -> Headroom {
        terms.extend((self.retries > 0).then_some((RETRIES, self.retries)));
        Headroom { total: terms.iter().fold(0, |sum, term| sum.saturating_add(term.1)), terms }
    }
}

/// The term of a headroom for what a link layer repairs.
pub const RETRIES: &str = "retries of the link layer";

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
    /// Like [`Mode::Obey`], but it sends without the peer's permission, so the peer may have no room. The
    /// scheme does not pause it meanwhile.
    Forward,
}

/// A change of an ingress account. It is over from the packet that brings it to its threshold (XOFF) until it
/// has drained to the resume level (XON) with its headroom empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    Over,
    Under,
}
