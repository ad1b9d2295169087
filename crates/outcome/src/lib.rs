//! The results of a run: plain data, in the order of the plan. It does not depend on mechanisms: each
//! reports its counts and findings in its own [`Record`](report::Record).

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod footprint;
pub mod report;
pub mod tap;

use report::{Cause, Gauge, Records};
use serde::Serialize;
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId};

/// Adds a part of the run to a sum: fields that are summed up, and times that at most one part knows. It
/// names all fields of the type, so that a new one cannot be forgotten.
macro_rules! add {
    ($type:ident: $sum:ident, $part:ident; sums: $($field:ident)*; known: $($time:ident)*) => {
        let $type { $($field,)* $($time),* } = *$part;
        $($sum.$field += $field;)*
        $($sum.$time = $sum.$time.or($time);)*
    };
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Simulated time at the end.
    pub end: Time,
    pub stop: Stop,
    /// By flow, as in the plan.
    pub flows: Vec<FlowOutcome>,
    /// Every pause of a queue, in the order of their beginning (then of port and lane).
    pub pauses: Vec<Pause>,
    /// Samples, in the order of time.
    pub series: Vec<Sample>,
    pub ports: Vec<PortOutcome>,
    /// By node: most bytes that its buffer ever held.
    pub buffer_peaks: Vec<u64>,
    /// By account (`port * lanes + lane`): high-water marks.
    pub accounts: Vec<AccountPeak>,
    /// Packets that were dropped, by place and reason; empty in a lossless run.
    pub drops: Vec<Drops>,
    /// The first deadlock, if any.
    pub deadlock: Option<Deadlock>,
    /// The waits at the end, if flows were left that could not move.
    pub waiting: Vec<Wait>,
    /// The flows that made no progress any more while packets moved, if there are any and no deadlock
    /// explains them.
    pub livelock: Option<Livelock>,
    /// The memory of the run at its end, largest first, if it was cut short; otherwise empty.
    pub memory: Vec<MemoryUse>,
    /// The blocking by congestion roots, if the plan asks for it.
    pub blocking: Option<Blocking>,
    /// The time of flows along their critical paths, if the plan asks for it: by flow, then in the order of
    /// the path. Flows that did not begin have none.
    pub paths: Option<Vec<Share>>,
    /// The packets before those of critical paths in their queues, if the plan asks for paths: by flow, then in
    /// the order of the path, most time first.
    pub ahead: Vec<Ahead>,
    /// By flow: where the route of its data starts in the plan's hops at the end, where senders choose
    /// or change it.
    pub routes: Option<Vec<u32>>,
    /// Where pauses are for congestion roots: who was a root at the end, and who knew of any; in the
    /// order of ports and lanes.
    pub roots: Vec<RootsAtPort>,
    /// Counts and findings of mechanisms.
    pub records: Records,
    pub counters: Counters,
}

/// The progress of a run; the caller gets it every few ten thousand events.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub now: Time,
    pub counters: Counters,
    pub flows_done: usize,
    /// A deadlock has been seen.
    pub deadlocked: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Every flow is complete or has failed.
    AllDone,
    /// The plan's end time was reached.
    EndTime,
    /// The caller stopped the run (Ctrl-C): the outcome is valid up to `end`.
    Interrupted,
    /// Nothing will ever happen again, yet flows are unfinished.
    Starved,
    /// Packets moved, and no flow progressed for longer than any timer, queue or pause explains: see
    /// [`Outcome::livelock`].
    Livelock,
    /// The memory budget was used up: the outcome is valid up to `end`.
    Memory,
}

impl Stop {
    /// Whether the run was cut short, so that the outcome covers only a part of it.
    pub fn cut_short(self) -> bool {
        matches!(self, Self::Interrupted | Self::Memory)
    }
}

/// The memory of one part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryUse {
    /// Its purpose, in the plural.
    pub what: &'static str,
    pub bytes: u64,
}

/// A livelock: packets move, and no flow progresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Livelock {
    /// When the last packet was delivered in order or acknowledged, at most 2.5 ms late.
    pub since: Time,
    /// The flows that had started and not completed, by number.
    pub flows: Vec<StalledFlow>,
}

/// A flow in a livelock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StalledFlow {
    pub flow: u32,
    /// Data packets of the flow.
    pub packets: u64,
    /// Data packets that the receiver has in order.
    pub delivered: u64,
    /// Data packets that the sender knows to be delivered in order.
    pub acknowledged: u64,
    /// The queues that its packets wait in at the end, by port and lane.
    pub places: Vec<Backlog>,
}

/// Packets of a flow in an egress queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    pub port: PortId,
    pub lane: u8,
    pub data: u64,
    /// ACKs, NACKs and congestion notifications.
    pub control_packets: u64,
    /// A lane that the port serves strictly before this one, if packets of it were ready.
    pub behind: Option<u8>,
}

/// The result of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowOutcome {
    /// When the sender might begin: at the flow's start or its gate's opening, if the run did not end before.
    pub started: Option<Time>,
    /// First data packet on the wire.
    pub first_sent: Option<Time>,
    /// Last payload byte at the receiver, everything before it delivered.
    pub delivered: Option<Time>,
    /// Last ACK at the sender: the flow is complete. FCT = this − `started`.
    pub completed: Option<Time>,
    /// When the sender gave up, after too many retries. Its receiver may have all bytes nevertheless, because only
    /// their ACKs were lost.
    pub failed: Option<Time>,
    /// Payload bytes delivered in order.
    pub delivered_bytes: u64,
    /// Data packets sent, repeats included.
    pub packets_sent: u64,
    /// Retransmitted data packets.
    pub retransmitted: u64,
    /// Timeouts of the sender.
    pub timeouts: u32,
    /// NACKs that reached the sender.
    pub nacks: u32,
    /// Data packets that reached the receiver ahead of a missing one.
    pub out_of_order: u64,
    /// Data packets that reached the receiver with an ECN mark.
    pub marked: u64,
    /// Data packets of this flow that were dropped on their path.
    pub dropped: u64,
    /// Data packets that reached the receiver although they had arrived before: retransmitted in vain.
    pub spurious: u64,
    /// Congestion notifications that reached the sender.
    pub cnps: u64,
}

impl FlowOutcome {
    /// When it ended: it is complete, or its sender gave up.
    pub fn ended(&self) -> Option<Time> {
        self.completed.or(self.failed)
    }

    /// Whether it began, is not complete, and its sender still tries.
    pub fn is_unfinished(&self) -> bool {
        self.started.is_some() && self.ended().is_none()
    }

    /// Adds another part of the run's counts of the same flow.
    pub fn add(&mut self, other: &Self) {
        add!(FlowOutcome: self, other;
            sums: delivered_bytes packets_sent retransmitted timeouts nacks out_of_order marked dropped
                spurious cnps;
            known: started first_sent delivered completed failed
        );
    }
}

/// A queue's pause, from the moment it took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The egress port that stopped.
    pub port: PortId,
    /// The lane that stopped, or a part of it.
    pub lane: u8,
    /// The part that stopped, where flows have queues: a queue's or flow's number. `None`: all of the lane.
    pub queue: Option<u32>,
    pub from: Time,
    /// When it ended; `None` if it lasted at the end of the run.
    pub until: Option<Time>,
    /// The ingress port whose frame caused it.
    pub cause: PortId,
    /// The congested port at the end of the chain of pauses that this one is part of, as found by the
    /// head-of-line blocking oracle. `None` without the oracle, and for a pause that no frame caused (a link
    /// that has just recovered).
    pub root: Option<PortId>,
    /// Links between this pause and that port: 1 where the port's own device paused, 0 without a root.
    pub links: u32,
    /// The congested port that the frame itself names, if its scheme's frames name any.
    pub named_root: Option<PortId>,
}

impl Pause {
    /// Its length in picoseconds, in a run that ended at `end`; a standing one counts to the end.
    pub fn length(&self, end: Time) -> Time {
        self.until.unwrap_or(end).saturating_sub(self.from)
    }
}

/// The results of the head-of-line blocking oracle.
///
/// Times are sums over packets (or queue pairs) in paused queues, in picoseconds: *own* where the root of the
/// pause is on the rest of the packet's path, *victim* where it is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocking {
    /// By flow, as in the plan.
    pub flows: Vec<FlowBlame>,
    /// By place and reason of the pause, in order.
    pub places: Vec<(Place, Blame)>,
    /// Waits of packets and queue pairs in queues whose pause named a port, and the part of them for a port
    /// that was not on the rest of their path, whatever the root. Both 0 if frames name no port.
    pub named: (u64, u64),
    /// Waits for roots that have turned out to be none.
    pub merged: Merged,
}

/// The cost of a false root that learns late that it is none (merging): pauses end with a MERGE. Packets that
/// did not wait for the remaining root should have continued earlier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// MERGE frames that took effect.
    pub frames: u64,
    /// Pauses that ended with one.
    pub pauses: u64,
    /// Packets and queue pairs that did not wait for the root that is left …
    pub waits: u64,
    /// … and how long together: since the PAUSE of that root was sent to the one that yielded.
    pub victim: Time,
    /// Longest time from the sending of that PAUSE until a MERGE for it took effect.
    pub longest: Time,
}

/// The place and the reason of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub port: PortId,
    /// The root, as [`Pause::root`].
    pub root: PortId,
    /// As [`Pause::named_root`].
    pub named: Option<PortId>,
}

/// How long packets (data and ACKs) of a flow, or of several, waited in paused queues, and how long queue
/// pairs did in their NICs. Picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlowBlame {
    /// Packets, for a port on their path.
    #[serde(rename = "own_ps")]
    pub own: Time,
    /// Packets, for a port off their path.
    #[serde(rename = "victim_ps")]
    pub victim: Time,
    /// The queue pair, for a port on its path.
    #[serde(rename = "source_own_ps")]
    pub source_own: Time,
    /// The queue pair, for a port off its path.
    #[serde(rename = "source_victim_ps")]
    pub source_victim: Time,
    /// Packets, off the path to the port that the pause's frame named; as `victim` if it named none.
    #[serde(rename = "named_victim_ps")]
    pub named_victim: Time,
    /// The same of the queue pair.
    #[serde(rename = "source_named_victim_ps")]
    pub source_named_victim: Time,
}

impl FlowBlame {
    /// Adds other waits; no sum exceeds `most`.
    pub fn add(&mut self, other: &Self, most: Time) {
        let sum = |a: Time, b: Time| a.saturating_add(b).min(most);
        self.own = sum(self.own, other.own);
        self.victim = sum(self.victim, other.victim);
        self.source_own = sum(self.source_own, other.source_own);
        self.source_victim = sum(self.source_victim, other.source_victim);
        self.named_victim = sum(self.named_victim, other.named_victim);
        self.source_named_victim = sum(self.source_named_victim, other.source_named_victim);
    }

    /// Victim waiting of packets and queue pairs together, by which victims and roots are ranked.
    pub fn all_victim(&self) -> Time {
        self.victim.saturating_add(self.source_victim)
    }

    /// The same by the ports that pauses named.
    pub fn all_named_victim(&self) -> Time {
        self.named_victim.saturating_add(self.source_named_victim)
    }
}

/// How long a root had packets and queue pairs wait at a port: as in [`FlowBlame`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blame {
    pub pauses: u64,
    pub own: Time,
    pub victim: Time,
    pub source_own: Time,
    pub source_victim: Time,
    pub named_victim: Time,
    pub source_named_victim: Time,
}

impl Blame {
    pub fn waits(&self) -> FlowBlame {
        let Self { pauses: _, own, victim, source_own, source_victim, named_victim, source_named_victim } =
            *self;
        FlowBlame { own, victim, source_own, source_victim, named_victim, source_named_victim }
    }
}

impl Blocking {
    /// Adds the results of another part of the run.
    pub fn add(&mut self, other: Self) {
        for (sum, part) in self.flows.iter_mut().zip(&other.flows) {
            sum.add(part, Time::MAX);
        }
        self.named.0 += other.named.0;
        self.named.1 += other.named.1;
        self.merged.frames += other.merged.frames;
        self.merged.pauses += other.merged.pauses;
        self.merged.waits += other.merged.waits;
        self.merged.victim += other.merged.victim;
        self.merged.longest = self.merged.longest.max(other.merged.longest);
        // A port belongs to one part.
        self.places.extend(other.places);
        self.places.sort_by_key(|place| place.0);
    }
}

/// A part of the time that a flow took, from its start until it was complete or, of an unfinished one, until
/// the end of the run. The shares of a flow add up to that time, to the picosecond; none is 0.
///
/// The path is that of the data packet whose arrival caused the ACK that completed the flow, and of that ACK;
/// the time before it belongs to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    pub flow: u32,
    /// Where on the path, from 0 on: shares of one step have the same `leg` and `port`.
    pub step: u32,
    pub leg: Leg,
    pub part: Part,
    pub port: PortId,
    /// The congested port that a pause was for; of [`Part::Own`] and [`Part::Victim`] only.
    pub root: Option<PortId>,
    /// The port that the pause's own frame names, if any; only of the same parts.
    pub named: Option<Named>,
    pub time: Time,
}

/// The congested port that the frame of a pause names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named {
    pub root: PortId,
    /// It is not on the rest of the path of the waiting packet.
    pub victim: bool,
}

/// A stretch of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    /// At the source, before the packet is sent.
    Source,
    /// The packet's path, including the source's port.
    Data,
    /// The path of the ACK.
    Ack,
}

/// Packets that a port sent while a packet of a critical path waited in its queue for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The flow that waited.
    pub flow: u32,
    /// [`Leg::Data`] or [`Leg::Ack`].
    pub leg: Leg,
    pub port: PortId,
    /// The flow whose packets were sent; `None` for all that are not listed, and for control frames.
    pub other: Option<u32>,
    /// Number of flows: 1, or that of those not listed.
    pub others: u32,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Time on the wire within the wait.
    pub time: Time,
}

/// The activity of a part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Packets on a wire: at the source all first transmissions of the flow, after it only this packet.
    Sending,
    /// Propagation through a cable.
    Propagation,
    /// Waiting after others in a queue, or ring of queue pairs, that might send.
    Queueing,
    /// Waiting in a paused queue, for a congested port on the rest of the path.
    Own,
    /// Waiting in a paused queue, for a congested port off the rest of the path.
    Victim,
    /// Held by the flow's pace, by its congestion control, or by a rate of the flow control.
    Pacing,
    /// Waiting for a receiver that does not read.
    Receiver,
    /// Waiting for a link that is down, or has just recovered.
    Down,
    /// Retransmissions on the wire, and the wait before them: for a NACK or for the source's timer.
    Recovery,
}

/// One sample of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub at: Time,
    pub what: Quantity,
    /// The value: bits per second, bytes, or a count.
    pub value: u64,
}

/// The quantity of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Payload delivered in order to receivers, by traffic class, bits per second over the interval.
    Goodput(u16),
    /// Bits per second that left a port over the interval, all packets.
    Throughput(PortId),
    /// Bytes in a port's egress queues.
    Queue(PortId),
    /// Lanes of a port that are paused.
    PausedLanes(PortId),
    /// Bytes in a node's buffer.
    Buffered(NodeId),
    /// Queues of the whole network that are paused.
    PausedQueues,
    /// Rate that the congestion control grants a flow, in bits per second.
    Rate(u32),
    /// Payload bytes of a flow that its receiver has in order: the sequence number that it waits for.
    Sequence(u32),
    /// By how much that grew over the interval, in bits per second.
    FlowGoodput(u32),
    /// A value that a mechanism reports for a node.
    Told(NodeId, &'static Gauge),
}

/// Totals of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortOutcome {
    /// Packets of any kind that left.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Data packets that left.
    pub data_packets: u64,
    /// Most bytes that its egress queues held.
    pub queue_peak: u64,
    /// Pause frames (XOFF, refreshes included) sent out of this port.
    pub pause_frames: u64,
    /// Resume frames (XON) sent out of this port.
    pub resume_frames: u64,
    pub marks: u64,
}

/// High-water marks of an ingress account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountPeak {
    /// Bytes outside headroom.
    pub main: u64,
    /// Bytes in headroom.
    pub headroom: u64,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DropReason {
    /// The headroom of a lossless account was full: a fault of its sizing.
    HeadroomFull,
    /// The device's memory was full.
    BufferFull,
    /// The egress queue was at its limit (lossy lanes).
    QueueLimit,
    /// The route loops, and the time to live ended.
    Expired,
    /// Its link was down: it was on the wire, waited for it, or was sent there.
    LinkDown,
    /// No path led on.
    Unreachable,
    /// The link lost it.
    FrameLost,
    /// The link corrupted it; the receiver found that by the checksum.
    FrameCorrupted,
    /// It was in a deadlocked loop when the loop was given up, and has no path from there.
    LoopGivenUp,
    /// A mechanism dropped it by a rule of its own.
    Scheme(&'static Cause),
}

impl DropReason {
    /// Whether there was no room for the packet, or no path out of a loop: a lossless lane promises to avoid
    /// this. Packets dropped for the other reasons had room.
    pub fn for_want_of_room(self) -> bool {
        matches!(self, Self::HeadroomFull | Self::BufferFull | Self::QueueLimit | Self::LoopGivenUp)
    }

    /// Whether the scenario's failures and losses are the reason.
    pub fn by_fault(self) -> bool {
        matches!(self, Self::LinkDown | Self::Unreachable | Self::FrameLost | Self::FrameCorrupted)
    }

    /// The rule of a mechanism, if that is the reason.
    pub fn by_scheme(self) -> Option<&'static Cause> {
        if let Self::Scheme(cause) = self { Some(cause) } else { None }
    }
}

/// Packets dropped in one place for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drops {
    /// The port that the packet arrived at, or was to arrive at if its link did not deliver it; for a host's
    /// own packet the port that it waited for.
    pub ingress: PortId,
    /// Its lane; the first one for control frames, which only links lose.
    pub lane: u8,
    /// Whether that lane promised not to lose it.
    pub lossless: bool,
    pub reason: DropReason,
    pub packets: u64,
    pub bytes: u64,
    pub first: Time,
    /// Most bytes by which the room fell short at once.
    pub shortfall: u64,
}

/// Ports that wait for each other, for ever unless a scheme dissolves the deadlock or a link fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When the last pause that closes the cycle was decided.
    pub closed: Time,
    pub seen: Time,
    /// When the first of the cycle's queues continued nevertheless: a scheme dissolved it, or a link failed.
    /// `None` if they were paused at the end of the run, and if parts of a priority are paused, which nothing
    /// dissolves.
    pub ended: Option<Time>,
    /// The cycle, in order: each egress waits for the next one.
    pub cycle: Vec<Held>,
    /// All ingress accounts that departures could never lower below their resume threshold: the cycle and the
    /// queues that it blocked.
    pub stuck: Vec<(PortId, u8)>,
}

/// An egress queue held in a deadlock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The egress port whose queue cannot move.
    pub port: PortId,
    pub lane: u8,
    /// Bytes in it.
    pub bytes: u64,
    /// Flows whose packets in it are charged to the ingress that the previous port of the cycle waits for; all
    /// that have packets in it, maybe none, where that one waits because a host passes this port's pause on.
    pub flows: Vec<u32>,
}

/// The state of a port about congestion roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootsAtPort {
    pub port: PortId,
    pub lane: u8,
    /// It says that it is a root.
    pub is_root: bool,
    /// Bytes in its output queue.
    pub output_bytes: u64,
    /// The roots ahead, in order.
    pub ahead: Vec<RootAhead>,
}

/// A root ahead of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootAhead {
    pub root: PortId,
    /// Packets through it must not be sent.
    pub paused: bool,
    /// Numbers of its isolation queues.
    pub queues: Vec<u16>,
    /// Bytes in these.
    pub bytes: u64,
}

/// One standing wait: `port` has bytes to send and may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The egress port that waits.
    pub port: PortId,
    pub lane: u8,
    /// Bytes that wait there (a host's unsent flows not counted).
    pub bytes: u64,
    pub since: Time,
    /// The ingress port that it waits for.
    pub waits_for: PortId,
    /// Where those who wait end: a host that does not consume, or `None` if in each other.
    pub root: Option<NodeId>,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Events taken from the queue.
    pub events: u64,
    /// Packets of any kind that crossed a link.
    pub packet_hops: u64,
    /// Data packets that crossed a link.
    pub data_hops: u64,
    /// Data packets that left their sender.
    pub sent: u64,
    /// Data packets that reached their receiver's transport.
    pub delivered: u64,
    pub dropped: u64,
    /// Data packets still in queues or on wires at the end.
    pub in_flight: u64,
    /// Bytes of control frames beyond those of PFC: all bytes of frames that neither pause nor resume; of
    /// other frames the bytes beyond the length of a frame of 802.1Qbb. Check sequences included.
    pub extra_control: u64,
}

impl Counters {
    /// Adds those of another part of the run.
    pub fn add(&mut self, other: &Self) {
        add!(Counters: self, other;
            sums: events packet_hops data_hops sent delivered dropped in_flight extra_control; known:
        );
    }
}

#[cfg(test)]
mod tests {
    use super::FlowOutcome;

    #[test]
    fn a_flow_is_unfinished_between_its_start_and_its_completion() {
        let of =
            |started, completed| FlowOutcome { started, completed, ..Default::default() }.is_unfinished();
        assert!(of(Some(1), None));
        assert!(!of(Some(1), Some(2)) && !of(None, None));
        let failed = FlowOutcome { started: Some(1), failed: Some(2), ..Default::default() };
        assert!(!failed.is_unfinished() && failed.ended() == Some(2));
    }
}
