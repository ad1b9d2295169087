//! Flow controls, one folder or file each, and the one seam between them and a
//! device.
//!
//! A scheme has an ingress half (it watches what is admitted to and released
//! from an ingress account) and an egress half (it reacts to frames by pausing
//! queues); either may be absent. It acts through [`Device`], a narrow view of
//! its own device. Ports are named by the device's own numbers; a lane is the
//! dense index of a priority in use.

pub mod bfc;
pub mod bifrost;
pub mod breakers;
pub mod cbfc;
pub mod itsy;
mod lasting;
pub mod per_flow_queue;
pub mod pfc;
pub mod portfc;
pub mod pyrrha;
pub mod roundabout;
pub mod sizing;
pub mod swing;
pub mod tagger;
pub mod watchdog;
#[cfg(test)]
mod worked;

use bfc::{Bfc, BfcParams};
use bifrost::slots::SlotParams;
use bifrost::{Bifrost, BifrostParams};
use breakers::{Breaker, BreakerParams};
use cbfc::{Cbfc, CbfcParams};
use itsy::{Itsy, ItsyParams};
use per_flow_queue::{PerFlowQueue, PerFlowQueueParams};
use pfc::{Pfc, PfcParams};
use portfc::{PortFc, PortFcParams, RelayOrder};
use pyrrha::{Pyrrha, PyrrhaParams};
pub use roundabout::dissolve::{Passage, Passenger};
use roundabout::{Roundabout, RoundaboutParams};
use tagger::TaggerParams;
use watchdog::{Watchdog, WatchdogParams};
use xoff_kernel::time::Time;
use xoff_wire::credit::{BLOCK, CreditPacket};
use xoff_wire::feedback::FeedbackFrame;
use xoff_wire::itsy::ItsyFrame;
use xoff_wire::pfc::PfcFrame;
use xoff_wire::port_pause::PortPauseFrame;
use xoff_wire::probe::ProbeFrame;
use xoff_wire::queue_pause::QueuePauseFrame;
pub use xoff_wire::queue_pause::Target;
use xoff_wire::root_pause::RootPauseFrame;
pub use xoff_wire::root_pause::Word;
use xoff_wire::roundabout::RoundaboutFrame;

/// The flow control of a run, with its resolved parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowControlParams {
    /// None: what does not fit is dropped.
    None,
    /// IEEE 802.1Qbb.
    Pfc(PfcParams),
    /// The same with priorities that grow on the way.
    Tagger(TaggerParams),
    /// Backpressure flow control: pauses queues that flows are assigned to.
    Bfc(BfcParams),
    /// A queue and a pause of its own for every flow.
    PerFlowQueue(PerFlowQueueParams),
    /// Per-port flow control of networks whose nodes relay.
    PortFc(PortFcParams),
    /// Congestion-root flow control.
    Pyrrha(PyrrhaParams),
    /// Pauses by slots on long links, and PFC on all others.
    Bifrost(BifrostParams),
    /// InfiniBand's credits.
    Cbfc(CbfcParams),
    /// PFC, and relays in the ends of long links: [`swing`].
    Swing(PfcParams),
    /// PFC, and queues that are paused for too long are drained.
    Watchdog(WatchdogParams),
    /// PFC whose frames carry probes for deadlocks.
    Roundabout(RoundaboutParams),
    /// PFC whose first pauses carry checks for deadlocks.
    Itsy(ItsyParams),
    /// PFC, and control planes that look for deadlocks.
    Breaker(BreakerParams),
}

impl FlowControlParams {
    /// From the arrival of a control frame's last bit until it takes effect.
    pub fn response_time(&self) -> Time {
        match self {
            Self::None => 0,
            Self::Pfc(p) => p.response_time,
            Self::Tagger(p) => p.pfc.response_time,
            Self::Bfc(p) => p.response_time,
            Self::PerFlowQueue(p) => p.response_time,
            Self::PortFc(p) => p.response_time,
            Self::Pyrrha(p) => p.response_time,
            Self::Bifrost(p) => p.pfc.response_time,
            Self::Cbfc(p) => p.response_time,
            Self::Swing(p) => p.response_time,
            Self::Watchdog(p) => p.pfc.response_time,
            Self::Roundabout(p) => p.pfc.response_time,
            Self::Itsy(p) => p.pfc.response_time,
            Self::Breaker(p) => p.pfc.response_time,
        }
    }

    /// The parameters of PFC, where it (or what rests on it) runs.
    pub fn pfc(&self) -> Option<&PfcParams> {
        match self {
            Self::Pfc(p) | Self::Swing(p) => Some(p),
            Self::Tagger(p) => Some(&p.pfc),
            Self::Bifrost(p) => Some(&p.pfc),
            Self::Watchdog(p) => Some(&p.pfc),
            Self::Roundabout(p) => Some(&p.pfc),
            Self::Itsy(p) => Some(&p.pfc),
            Self::Breaker(p) => Some(&p.pfc),
            Self::None
            | Self::Bfc(_)
            | Self::PerFlowQueue(_)
            | Self::PortFc(_)
            | Self::Pyrrha(_)
            | Self::Cbfc(_) => None,
        }
    }

    /// What the ingress of `port` grants its peer by, if it grants slots.
    pub fn slots(&self, port: u32) -> Option<&SlotParams> {
        match self {
            Self::Bifrost(p) => p.ports.get(port as usize)?.as_ref(),
            _ => None,
        }
    }

    /// How long nothing may move before the flow control sets something going again by
    /// itself; 0 if it never does.
    pub fn patience(&self) -> Time {
        match self {
            Self::Watchdog(p) => p.patience(),
            Self::Breaker(p) => p.patience(),
            // Until an attempt is given up, and another one is.
            Self::Roundabout(p) if p.dissolves => 3 * p.patience,
            _ => 0,
        }
    }

    /// Whether it lets deadlocks form, finds them and ends them.
    pub fn ends_deadlocks(&self) -> bool {
        match self {
            Self::Watchdog(_) | Self::Itsy(_) | Self::Breaker(_) => true,
            Self::Roundabout(p) => p.dissolves,
            _ => false,
        }
    }

    /// Whether [`FlowControl::may_leave`] is asked before a packet leaves.
    pub fn asks_to_leave(&self) -> bool {
        match self {
            Self::Cbfc(_) => true,
            Self::Bifrost(p) => p.tokens.is_some(),
            // In loops only: the device asks while it has a place in one.
            _ => false,
        }
    }

    /// Whether [`Device::received`] is counted.
    pub fn counts_arrivals(&self) -> bool {
        matches!(self, Self::Cbfc(_) | Self::Bifrost(_))
    }

    /// Whether [`Device::waits`] is kept, and [`FlowControl::waits`] told.
    pub fn knows_causes(&self) -> bool {
        matches!(self, Self::Roundabout(_) | Self::Itsy(_) | Self::Breaker(_))
    }

    /// Bytes of the cells in which accounts count packets, a power of two: a packet is
    /// charged whole ones.
    pub fn cell(&self) -> u32 {
        match self {
            Self::Cbfc(_) => BLOCK,
            _ => 1,
        }
    }

    /// When a host serves what it relays, beside its own traffic.
    pub fn relay_order(&self) -> RelayOrder {
        match self {
            Self::PortFc(p) => p.relay_order,
            _ => RelayOrder::Turns,
        }
    }

    /// What one of its pauses stops.
    pub fn pause_scope(&self) -> PauseScope {
        match self {
            Self::None => PauseScope::Nothing,
            // Credit that is withheld stops a lane as a pause does.
            Self::Pfc(_)
            | Self::Tagger(_)
            | Self::Bifrost(_)
            | Self::Cbfc(_)
            | Self::Swing(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => PauseScope::Lane,
            // Queue 0 is never paused.
            Self::Bfc(p) => PauseScope::Queue { queues: p.queues - 1 },
            Self::PerFlowQueue(_) => PauseScope::Flow,
            Self::PortFc(_) => PauseScope::Onward,
            Self::Pyrrha(_) => PauseScope::Root,
        }
    }

    /// How the packets of a lane lie in the queues of a port.
    pub fn queueing(&self) -> Queueing {
        match self {
            Self::None
            | Self::Pfc(_)
            | Self::Tagger(_)
            | Self::Bifrost(_)
            | Self::Cbfc(_)
            | Self::Swing(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => Queueing::PerLane,
            Self::Bfc(p) => {
                let numbers = Numbers { switch: p.queues, relayed: (0, p.queues), own: (p.queues, p.queues) };
                Queueing::Numbered { numbers, acks: p.acks_in_queues, pulls: false }
            }
            Self::PortFc(p) => {
                let (switch, relay) = (p.map.of_switch(), p.map.relay());
                let numbers = Numbers { switch, relayed: (relay, 1), own: (0, relay) };
                Queueing::Numbered { numbers, acks: false, pulls: false }
            }
            Self::Pyrrha(p) => {
                // The OQ and the IQs.
                let all = 1 + p.queues;
                let numbers = Numbers { switch: all, relayed: (0, all), own: (all, all) };
                Queueing::Numbered { numbers, acks: p.acks_in_queues, pulls: true }
            }
            Self::PerFlowQueue(_) => Queueing::PerFlow,
        }
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
    /// One of so many queues of a lane on that link. Which flows share it is
    /// settled while they run: in the worst case any that the port sends.
    Queue {
        /// Queues of a port and lane that flows are spread over, at least 1.
        queues: u16,
    },
    /// One flow on that link, and no other.
    Flow,
    /// The queues of what is going to leave through the port that waits, wherever
    /// they are: [`portfc::map`] says which.
    Onward,
    /// What is going to leave through the port that is congested, the root, wherever
    /// it waits: [`pyrrha`] says how.
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
        /// to a further one, which the scheme chooses ([`FlowControl::onward`]), and to
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
pub struct Passing {
    /// The egress port.
    pub port: u32,
    /// The lane.
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
    /// Bits per second.
    pub rate: u64,
    /// One-way delay.
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

/// A control frame between neighbours, of any scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// 802.1Qbb.
    Pfc(PfcFrame),
    /// Names one queue or one flow.
    QueuePause(QueuePauseFrame),
    /// Names an egress port and queue of a switch.
    PortPause(PortPauseFrame),
    /// Names the root of a congestion tree.
    RootPause(RootPauseFrame),
    /// Grants a slot.
    Feedback(FeedbackFrame),
    /// Says how much credit a lane has.
    Credit(CreditPacket),
    /// Of Roundabout: pauses, probes for deadlocks, and what dissolves them.
    Roundabout(RoundaboutFrame),
    /// Of ITSY: checks for deadlocks, beside what PFC says or alone.
    Itsy(ItsyFrame),
    /// Between control planes: probes for deadlocks, and what follows.
    Probe(ProbeFrame),
}

impl ControlFrame {
    /// Bytes on the wire.
    pub fn length(&self) -> u32 {
        match self {
            Self::Pfc(_) => PfcFrame::LENGTH,
            Self::QueuePause(_) => QueuePauseFrame::LENGTH,
            Self::PortPause(_) => PortPauseFrame::LENGTH,
            Self::RootPause(_) => RootPauseFrame::LENGTH,
            Self::Feedback(_) => FeedbackFrame::LENGTH,
            Self::Credit(packet) => packet.length(),
            Self::Roundabout(frame) => frame.length(),
            Self::Itsy(_) => ItsyFrame::LENGTH,
            Self::Probe(frame) => frame.length(),
        }
    }

    /// Bytes on the wire beyond those of PFC: all of a frame that neither pauses nor resumes,
    /// and of others what they are longer than 802.1Qbb's.
    pub fn beyond_pfc(&self) -> u32 {
        let pfc = if self.pauses().is_some() { PfcFrame::LENGTH } else { 0 };
        self.length().saturating_sub(pfc)
    }

    /// Takes up what a `later` frame says, if one frame can say both: a PFC frame
    /// speaks of every priority, and the newest word on each is what counts. The
    /// device asks while this frame still waits for its wire, so that no frame
    /// waits behind another of its kind. A frame that names a queue keeps its place.
    pub fn merge(&mut self, later: &Self) -> bool {
        match (&mut *self, later) {
            (Self::Pfc(waiting), Self::Pfc(later)) => {
                waiting.take_up(later);
                true
            }
            // A check rides on what goes to the same neighbour; it does not hold that up.
            (Self::Itsy(waiting), Self::Pfc(later)) if !waiting.is_alone() => {
                waiting.pfc.take_up(later);
                true
            }
            (Self::Pfc(waiting), Self::Itsy(later)) if later.is_alone() => {
                let pfc = *waiting;
                *self = Self::Itsy(ItsyFrame { pfc, check: later.check });
                true
            }
            (Self::Itsy(waiting), Self::Itsy(later)) => later.is_alone() && waiting.check == later.check,
            // A later slot's takes the place of an earlier one's.
            (Self::Feedback(waiting), Self::Feedback(later)) => {
                *waiting = *later;
                true
            }
            // Counters: what was true later holds for both.
            (Self::Credit(waiting), Self::Credit(later)) if waiting.lane == later.lane => {
                *waiting = *later;
                true
            }
            (
                Self::Pfc(_)
                | Self::QueuePause(_)
                | Self::PortPause(_)
                | Self::RootPause(_)
                | Self::Feedback(_)
                | Self::Credit(_)
                // Their order carries meaning.
                | Self::Roundabout(_)
                | Self::Itsy(_)
                | Self::Probe(_),
                _,
            ) => false,
        }
    }

    /// Whether it leaves before one that waits: what hardware says goes before the messages
    /// of control planes, and a pause before a check, so that no pause waits behind those.
    pub fn overtakes(&self, waiting: &Self) -> bool {
        match (self, waiting) {
            (Self::Pfc(_), Self::Probe(_)) => true,
            (Self::Pfc(_), Self::Itsy(check)) => check.is_alone(),
            _ => false,
        }
    }

    /// Whether it stops (true) or restarts the one who gets it; `None` if it does
    /// something else.
    pub fn pauses(&self) -> Option<bool> {
        match self {
            Self::Pfc(frame) => Some(frame.entries().any(|(_, quanta)| quanta > 0)),
            Self::QueuePause(frame) => Some(frame.pause),
            Self::PortPause(frame) => Some(frame.pause),
            Self::RootPause(frame) => match frame.word {
                Word::Pause => Some(true),
                Word::Resume => Some(false),
                Word::Merge { .. } | Word::Release => None,
            },
            Self::Feedback(_) => None,
            Self::Credit(_) => None,
            Self::Roundabout(frame) => frame.quanta.map(|quanta| quanta > 0),
            Self::Itsy(frame) if frame.is_alone() => None,
            Self::Itsy(frame) => Self::Pfc(frame.pfc).pauses(),
            Self::Probe(_) => None,
        }
    }
}

/// What a scheme may see of and do to its own device.
pub trait Device {
    /// The device's clock.
    fn now(&self) -> Time;
    /// Rate of a port's link, in bits per second.
    fn rate(&self, port: u32) -> u64;
    /// Stops every egress queue of `lane` on `port`, a host's own queue pairs
    /// included. The packet on the wire finishes. Stopping twice changes nothing.
    fn pause(&mut self, port: u32, lane: u8);
    /// Stops them as [`Device::pause`] does, of the device's own accord: no frame
    /// has asked for it, and no pause is written down. A pause that comes
    /// meanwhile takes its place; [`Device::resume`] ends it.
    fn hold(&mut self, port: u32, lane: u8);
    /// Lets the lane's queues on `port` go again.
    fn resume(&mut self, port: u32, lane: u8);
    /// From now on the forwarding queue of `lane` on `port` treats packets so. What it
    /// discards it discards once the scheme has returned, and gives back what that was
    /// charged. Only under [`Queueing::PerLane`].
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode);
    /// Stops one queue of `lane` on `port`, or the queue of one flow; the packet
    /// on the wire finishes. Stopping twice changes nothing.
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Lets that queue go again.
    fn resume_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Stops queue `queue` of `lane` on `port`, as [`Device::pause_queue`] does, for
    /// congestion at port `root`, which the frame that asked for it names.
    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32);
    /// Bytes of packets in queue `queue` of `lane` on `port`.
    fn queue_bytes(&self, port: u32, lane: u8, queue: u16) -> u64;
    /// Bytes that wait in `lane` of `port` to be sent; as good as without end where the
    /// host has more to send of its own.
    fn backlog(&self, port: u32, lane: u8) -> u64;
    /// The device that `port` belongs to.
    fn device_of(&self, port: u32) -> u32;
    /// The `distance`-th port behind the one that a packet stands at, or a queue pair's
    /// packets begin at, on its way from there; `hop` is that of its [`Passing`].
    fn onward(&self, hop: u32, distance: u32) -> Onward;
    /// Whether queue `queue` of `lane` on `port` is stopped.
    fn is_paused(&self, port: u32, lane: u8, queue: u16) -> bool;
    /// The `index`-th port of the device of `port`, in their order, `port` included;
    /// `None` behind the last one.
    fn port_of(&self, port: u32, index: usize) -> Option<u32>;
    /// The `index`-th port of the device of `port` if that is a relay, or a host that
    /// relays, in their order, `port` included; `None` behind the last one, and if it
    /// is neither.
    fn relay_port(&self, port: u32, index: usize) -> Option<u32>;
    /// How many queues of forwarded packets of `lane` on `port` hold something
    /// and are not stopped.
    fn active_queues(&self, port: u32, lane: u8) -> u32;
    /// Bytes stored of what came in `lane` through `port`, as its account is charged:
    /// each packet in whole cells ([`FlowControlParams::cell`]).
    fn stored(&self, port: u32, lane: u8) -> u64;
    /// Bytes that have ever arrived in `lane` through `port`, each packet in whole
    /// cells; what was lost on the link is not among them. Kept only where
    /// [`FlowControlParams::counts_arrivals`] says so.
    fn received(&self, port: u32, lane: u8) -> u64;
    /// Whether a packet that came through `ingress` waits in `lane` of `egress`, a port of the
    /// same device. Kept only where [`FlowControlParams::knows_causes`] says so.
    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool;
    /// The device at the other end of the link of `port`.
    fn neighbour(&self, port: u32) -> u32;
    /// Whether the queue of what is forwarded in `lane` of `port` is stopped.
    fn stands(&self, port: u32, lane: u8) -> bool;
    /// Whether the account of (`port`, `lane`) is over its threshold, but for what it keeps for a loop.
    fn is_over(&self, port: u32, lane: u8) -> bool;
    /// Bytes of headroom of that account, with what it keeps for a loop ([`FlowControl::makes_room`]),
    /// and how many of them are used.
    fn headroom(&self, port: u32, lane: u8) -> (u64, u64);
    /// `lane` of `port` is part of a loop that is being dissolved: no pause stands there any more;
    /// what is forwarded goes as [`Device::gate`] says, which begins closed, and what a host sends of
    /// its own does not. While a device has such a queue, [`FlowControl::passes`],
    /// [`FlowControl::stored`], [`FlowControl::makes_room`] and [`FlowControl::freed`] are asked
    /// and told of all of its packets, and [`FlowControl::may_leave`] and
    /// [`FlowControl::barrier_leaves`] of what comes first in its queues.
    fn enter_loop(&mut self, port: u32, lane: u8);
    /// Lets go what is forwarded in a queue of a loop, or stops it.
    fn gate(&mut self, port: u32, lane: u8, open: bool);
    /// It is part of a loop no longer, and goes; what waited beside it comes last, and the account
    /// of `ingress` gives back what it kept.
    fn leave_loop(&mut self, ingress: u32, port: u32, lane: u8);
    /// Puts a frame among the packets that wait in `lane` of `port`: ahead of all of them, or
    /// behind them.
    fn insert(&mut self, port: u32, lane: u8, frame: ControlFrame, ahead: bool);
    /// Gives the packets of `lane` that came in by `ingress` and wait at `port` another way, each
    /// that has one: over the next hop that its device would choose if the link of `port` were
    /// down, unless that one's queue is stopped or full. It joins that queue's end, charged as it
    /// was. Answers how many went, and how many stay. Only where the plan has worked other ways
    /// out.
    fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64);
    /// Raises the threshold of the account of (`port`, `lane`), which is over, to what it
    /// holds, its headroom included, and `bytes` more; then it is over no longer. What it holds
    /// in headroom moves to the shared pool. It resumes as before. Answers how many bytes of
    /// the pool that takes; `None`, and nothing happens, where the pool has less.
    fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64>;
    /// Takes that back, if the account has drained to where it resumes; whether it has.
    fn shrink(&mut self, port: u32, lane: u8) -> bool;
    /// Drops packets that came through `ingress` and wait in `lane` of `egress` until the account
    /// of (`ingress`, `lane`) is not over any more, or none is left there: those of the flow with
    /// most bytes among them first (the earlier one of two alike), each flow's from the head on.
    /// They are dropped once the scheme's timer has returned, and give back what they were
    /// charged.
    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8);
    /// Sends a frame to the neighbour: ahead of every queue, behind the packet on
    /// the wire; or as part of the last frame that still waits ([`ControlFrame::merge`]).
    /// Over a link that is down nothing is sent.
    fn send_control(&mut self, port: u32, frame: ControlFrame);
    /// Arms timer `timer` for `at` (not before now), in place of what it was armed for.
    fn arm(&mut self, timer: u32, at: Time);
    /// Disarms timer `timer`.
    fn cancel(&mut self, timer: u32);
}

/// How an egress queue treats packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// They wait, and go while it is not paused.
    Obey,
    /// Those that wait are dropped, and those that come for it.
    Discard,
    /// As with [`Mode::Obey`]; but it sends what the peer has not agreed to, which may
    /// therefore have no room for it. The scheme does not pause it meanwhile.
    Forward,
}

/// A change of an ingress account, told to the ingress half. The account counts
/// as over from the packet that brings it to its threshold (XOFF) until it has
/// drained to the resume level (XON) with its headroom empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// XOFF.
    Over,
    /// XON.
    Under,
}

/// The flow control of all devices of a run; each port's state stands alone.
#[derive(Clone, Debug)]
pub enum FlowControl {
    /// Nothing is ever paused.
    None,
    /// 802.1Qbb.
    Pfc(Pfc),
    /// Backpressure flow control.
    Bfc(Bfc),
    /// A queue for each flow.
    PerFlowQueue(PerFlowQueue),
    /// Per-port flow control.
    PortFc(PortFc),
    /// Congestion-root flow control.
    Pyrrha(Pyrrha),
    /// Pauses by slots on long links.
    Bifrost(Bifrost),
    /// InfiniBand's credits.
    Cbfc(Cbfc),
    /// 802.1Qbb, watched.
    Watchdog(Watchdog),
    /// Deadlocks found by election.
    Roundabout(Roundabout),
    /// Deadlocks found by those that began them.
    Itsy(Itsy),
    /// Deadlocks found by control planes.
    Breaker(Breaker),
}

impl FlowControl {
    /// The state machines of `ports` ports with the given lanes' priorities.
    pub fn new(params: &FlowControlParams, ports: usize, priorities: &[u8]) -> Self {
        match params {
            FlowControlParams::None => Self::None,
            FlowControlParams::Pfc(params) | FlowControlParams::Swing(params) => {
                Self::Pfc(Pfc::new(*params, ports, priorities))
            }
            // The device itself rewrites tags: what is left is PFC on each.
            FlowControlParams::Tagger(params) => Self::Pfc(Pfc::new(params.pfc, ports, priorities)),
            FlowControlParams::Bfc(params) => Self::Bfc(Bfc::new(params, ports, priorities)),
            FlowControlParams::PerFlowQueue(params) => {
                Self::PerFlowQueue(PerFlowQueue::new(params, ports, priorities))
            }
            FlowControlParams::PortFc(params) => Self::PortFc(PortFc::new(params, ports)),
            FlowControlParams::Pyrrha(params) => Self::Pyrrha(Pyrrha::new(params, ports, priorities)),
            FlowControlParams::Bifrost(params) => Self::Bifrost(Bifrost::new(params, ports, priorities)),
            FlowControlParams::Cbfc(params) => Self::Cbfc(Cbfc::new(params, priorities)),
            FlowControlParams::Watchdog(params) => Self::Watchdog(Watchdog::new(params, ports, priorities)),
            FlowControlParams::Roundabout(params) => {
                Self::Roundabout(Roundabout::new(params, ports, priorities))
            }
            FlowControlParams::Itsy(params) => Self::Itsy(Itsy::new(params, ports, priorities)),
            FlowControlParams::Breaker(params) => Self::Breaker(Breaker::new(params, ports, priorities)),
        }
    }

    /// Number of timers that it arms, counted from 0.
    pub fn timers(&self) -> usize {
        match self {
            Self::None | Self::PortFc(_) => 0,
            Self::Pyrrha(pyrrha) => pyrrha.pfc.as_ref().map_or(0, Pfc::timers),
            Self::Pfc(pfc) => pfc.timers(),
            Self::Bifrost(bifrost) => bifrost.timers(),
            Self::Bfc(bfc) => bfc.timers(),
            Self::PerFlowQueue(pfq) => pfq.lasting.timers(),
            Self::Cbfc(cbfc) => cbfc.timers(),
            Self::Watchdog(watchdog) => watchdog.timers(),
            Self::Roundabout(roundabout) => roundabout.timers(),
            Self::Itsy(itsy) => itsy.timers(),
            Self::Breaker(breaker) => breaker.timers(),
        }
    }

    /// Both halves: the run begins. Told once for each port of a link, before anything
    /// has happened.
    pub fn begins(&mut self, device: &mut impl Device, port: u32) {
        match self {
            Self::Cbfc(cbfc) => cbfc.begins(device, port),
            Self::Bifrost(bifrost) => bifrost.begins(device, port),
            Self::None
            | Self::Pfc(_)
            | Self::Bfc(_)
            | Self::PerFlowQueue(_)
            | Self::PortFc(_)
            | Self::Pyrrha(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => {}
        }
    }

    /// Both halves: the first packet from `ingress` waits in `lane` of `egress`. Told only where
    /// [`FlowControlParams::knows_causes`] says so.
    pub fn waits(&mut self, device: &mut impl Device, ingress: u32, egress: u32, lane: u8) {
        match self {
            Self::Roundabout(roundabout) => roundabout.waits(device, ingress, egress, lane),
            Self::Itsy(itsy) => itsy.waits(device, ingress, egress, lane),
            _ => {}
        }
    }

    /// Ingress half: a packet arrived, as [`Device::enter_loop`] says; what becomes of it.
    pub fn passes(&mut self, device: &mut impl Device, packet: &Passenger) -> Passage {
        match self {
            Self::Roundabout(roundabout) => roundabout.passes(device, packet),
            _ => Passage::On,
        }
    }

    /// Ingress half: a packet of `size` bytes came in `lane` through `ingress` and is charged to that
    /// account, or has reached its end.
    pub fn stored(&mut self, device: &mut impl Device, ingress: u32, lane: u8, size: u32) {
        if let Self::Roundabout(roundabout) = self {
            roundabout.stored(device, ingress, lane, size);
        }
    }

    /// Ingress half: for which ingress port of a loop a packet of the account (`ingress`, `lane`)
    /// makes room when it leaves `egress`, whatever it was charged to.
    pub fn makes_room(&self, ingress: u32, egress: u32, lane: u8) -> Option<u32> {
        match self {
            Self::Roundabout(roundabout) => roundabout.makes_room(ingress, egress, lane),
            _ => None,
        }
    }

    /// Ingress half: a packet of `size` bytes of the account (`ingress`, `lane`) has left `egress`.
    pub fn freed(&mut self, device: &mut impl Device, ingress: u32, egress: u32, lane: u8, size: u32) {
        if let Self::Roundabout(roundabout) = self {
            roundabout.freed(device, ingress, egress, lane, size);
        }
    }

    /// Egress half: a frame that [`Device::insert`] put into a queue of `port` has come first there;
    /// whether it goes over the link. If not, it is gone.
    pub fn barrier_leaves(&mut self, device: &mut impl Device, port: u32, frame: &ControlFrame) -> bool {
        match (self, frame) {
            (Self::Roundabout(roundabout), ControlFrame::Roundabout(frame)) => {
                roundabout.barrier_leaves(device, port, frame)
            }
            _ => false,
        }
    }

    /// Egress half: the turn of a packet of `size` bytes has come in `lane` of `port`;
    /// whether it goes now. If not, the scheme has stopped the lane ([`Device::pause`]), and
    /// will resume it when it may be asked again. If it goes, its transmission begins at
    /// once. Asked only where [`FlowControlParams::asks_to_leave`] says so, and not of control
    /// frames.
    pub fn may_leave(&mut self, device: &mut impl Device, port: u32, lane: u8, size: u32) -> bool {
        match self {
            Self::Cbfc(cbfc) => cbfc.may_leave(device, port, lane, size),
            Self::Bifrost(bifrost) => bifrost.may_leave(device, port, lane, size),
            Self::None
            | Self::Pfc(_)
            | Self::Bfc(_)
            | Self::PerFlowQueue(_)
            | Self::PortFc(_)
            | Self::Pyrrha(_)
            | Self::Watchdog(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => true,
            Self::Roundabout(roundabout) => roundabout.may_leave(device, port, lane, size),
        }
    }

    /// Ingress half: the account of (`port`, `lane`) crossed a threshold, by an
    /// admission or a release.
    pub fn crossed(&mut self, device: &mut impl Device, port: u32, lane: u8, crossing: Crossing) {
        match self {
            // Credit follows what is stored, and needs no threshold: accounts have one for oracles.
            Self::None | Self::Bfc(_) | Self::PerFlowQueue(_) | Self::PortFc(_) | Self::Cbfc(_) => {}
            Self::Pfc(pfc) => pfc.crossed(device, port, lane, crossing),
            Self::Watchdog(watchdog) => watchdog.crossed(device, port, lane, crossing),
            Self::Bifrost(bifrost) => bifrost.crossed(device, port, lane, crossing),
            Self::Roundabout(roundabout) => roundabout.crossed(device, port, lane, crossing),
            Self::Itsy(itsy) => itsy.crossed(device, port, lane, crossing),
            Self::Breaker(breaker) => breaker.crossed(device, port, lane, crossing),
            Self::Pyrrha(pyrrha) => {
                if let Some(pfc) = &mut pyrrha.pfc {
                    pfc.crossed(device, port, lane, crossing);
                }
            }
        }
    }

    /// Egress half: the number of the queue that a packet (or queue pair) joins
    /// next. Of `packet`, its queue and bytes are not known yet. Asked only under
    /// [`Queueing::Numbered`]; [`FlowControl::enqueued`] follows at once.
    pub fn classify(&mut self, device: &mut impl Device, packet: &mut Passing) -> u16 {
        match self {
            Self::Bfc(bfc) => bfc.classify(device, packet),
            Self::PortFc(portfc) => portfc.classify(packet),
            Self::Pyrrha(pyrrha) => pyrrha.classify(device, packet),
            Self::None
            | Self::Pfc(_)
            | Self::Bifrost(_)
            | Self::PerFlowQueue(_)
            | Self::Cbfc(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => 0,
        }
    }

    /// Egress half: a packet's turn has come in its queue, which is not queue 0; the
    /// number of the queue that it goes on to. Of a queue pair: it is its queue's turn
    /// and its own; the number of the queue that it belongs to now, which sends it if
    /// it is the same. Asked only where queues are pulled.
    pub fn onward(&mut self, device: &mut impl Device, packet: &mut Passing) -> u16 {
        match self {
            Self::Pyrrha(pyrrha) => pyrrha.onward(device, packet),
            Self::None
            | Self::Pfc(_)
            | Self::Bifrost(_)
            | Self::Bfc(_)
            | Self::PerFlowQueue(_)
            | Self::PortFc(_)
            | Self::Cbfc(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => 0,
        }
    }

    /// Egress half: a packet (or queue pair) joined its queue. Not told under
    /// [`Queueing::PerLane`].
    pub fn enqueued(&mut self, device: &mut impl Device, packet: &mut Passing) {
        match self {
            Self::Bfc(bfc) => bfc.enqueued(device, packet),
            Self::PerFlowQueue(pfq) => pfq.enqueued(device, packet),
            Self::PortFc(portfc) => portfc.enqueued(device, packet),
            Self::Pyrrha(pyrrha) => pyrrha.enqueued(device, packet),
            Self::None
            | Self::Pfc(_)
            | Self::Bifrost(_)
            | Self::Cbfc(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => {}
        }
    }

    /// Egress half: a packet left its queue for the wire, or a queue pair has
    /// nothing to send for now. Not told under [`Queueing::PerLane`].
    pub fn left(&mut self, device: &mut impl Device, packet: &mut Passing) {
        match self {
            Self::Bfc(bfc) => bfc.left(device, packet),
            Self::PerFlowQueue(pfq) => pfq.left(device, packet),
            Self::PortFc(portfc) => portfc.left(device, packet),
            Self::Pyrrha(pyrrha) => pyrrha.left(device, packet),
            Self::None
            | Self::Pfc(_)
            | Self::Bifrost(_)
            | Self::Cbfc(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => {}
        }
    }

    /// Both halves: `frame` arrived at `port` and has taken effect.
    pub fn received(&mut self, device: &mut impl Device, port: u32, frame: &ControlFrame) {
        match (self, frame) {
            (Self::Pfc(pfc) | Self::Bifrost(Bifrost { pfc, .. }), ControlFrame::Pfc(frame)) => {
                pfc.received(device, port, frame);
            }
            (Self::Bfc(bfc), ControlFrame::QueuePause(frame)) => bfc.lasting.received(device, port, frame),
            (Self::PerFlowQueue(pfq), ControlFrame::QueuePause(frame)) => {
                pfq.lasting.received(device, port, frame);
            }
            (Self::PortFc(portfc), ControlFrame::PortPause(frame)) => portfc.received(device, port, frame),
            (Self::Pyrrha(pyrrha), ControlFrame::RootPause(frame)) => pyrrha.received(device, port, frame),
            (Self::Bifrost(bifrost), ControlFrame::Feedback(frame)) => bifrost.fed_back(device, port, frame),
            (Self::Pyrrha(Pyrrha { pfc: Some(pfc), .. }), ControlFrame::Pfc(frame)) => {
                pfc.received(device, port, frame);
            }
            (Self::Cbfc(cbfc), ControlFrame::Credit(packet)) => cbfc.received(device, port, packet),
            (Self::Watchdog(watchdog), ControlFrame::Pfc(frame)) => watchdog.received(device, port, frame),
            (Self::Roundabout(roundabout), ControlFrame::Roundabout(frame)) => {
                roundabout.received(device, port, frame);
            }
            (Self::Breaker(breaker), ControlFrame::Pfc(frame)) => breaker.received(device, port, frame),
            (Self::Breaker(breaker), ControlFrame::Probe(frame)) => breaker.hears(device, port, frame),
            (Self::Itsy(itsy), frame) => itsy.received(device, port, frame),
            // A scheme understands its own frames alone.
            (
                Self::None
                | Self::Pfc(_)
                | Self::Bifrost(_)
                | Self::Bfc(_)
                | Self::PerFlowQueue(_)
                | Self::PortFc(_)
                | Self::Pyrrha(_)
                | Self::Cbfc(_)
                | Self::Watchdog(_)
                | Self::Roundabout(_)
                | Self::Breaker(_),
                _,
            ) => {}
        }
    }

    /// Both halves: the link of `port` has failed. Pauses of its lanes end (the
    /// device sends nothing there all the same), and no frame gets to the peer
    /// until it recovers.
    pub fn link_failed(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.link_failed(device, port, lane),
            Self::Bifrost(bifrost) => bifrost.link_failed(device, port, lane),
            Self::Bfc(bfc) => bfc.lasting.link_failed(device, port, lane),
            Self::PerFlowQueue(pfq) => pfq.lasting.link_failed(device, port, lane),
            Self::PortFc(portfc) => portfc.link_failed(device, port, lane),
            Self::Pyrrha(pyrrha) => pyrrha.link_failed(device, port, lane),
            Self::Cbfc(cbfc) => cbfc.link_failed(device, port, lane),
            Self::Watchdog(watchdog) => watchdog.link_failed(device, port, lane),
            Self::Roundabout(roundabout) => roundabout.link_failed(device, port, lane),
            Self::Itsy(itsy) => itsy.link_failed(device, port, lane),
            Self::Breaker(breaker) => breaker.link_failed(device, port, lane),
        }
    }

    /// Both halves: the link of `port` is up again, and the peer has forgotten
    /// everything. `over` tells whether the account of (`port`, `lane`), a
    /// lossless one, is over its threshold now; at `settled`, and its own
    /// serialisation later, a frame that the peer sends at once has taken effect.
    /// (Where nothing is lossless, [`FlowControl::link_reset`] is told alone.)
    pub fn link_recovered(
        &mut self,
        device: &mut impl Device,
        port: u32,
        lane: u8,
        over: bool,
        settled: Time,
    ) {
        match self {
            Self::None | Self::Bfc(_) | Self::PerFlowQueue(_) | Self::PortFc(_) | Self::Pyrrha(_) => {}
            Self::Pfc(pfc) => pfc.link_recovered(device, port, lane, over, settled),
            Self::Bifrost(bifrost) => bifrost.link_recovered(device, port, lane, over, settled),
            Self::Cbfc(cbfc) => cbfc.link_recovered(device, port, lane),
            Self::Watchdog(watchdog) => watchdog.link_recovered(device, port, lane, over, settled),
            Self::Roundabout(roundabout) => roundabout.link_recovered(device, port, lane, over, settled),
            Self::Itsy(itsy) => itsy.link_recovered(device, port, lane, over, settled),
            Self::Breaker(breaker) => breaker.link_recovered(device, port, lane, over, settled),
        }
    }

    /// Both halves, once for all lanes: the link of `port` is up again, and the
    /// peer has forgotten everything.
    pub fn link_reset(&mut self, device: &mut impl Device, port: u32) {
        match self {
            // Both ends of a link forget what went over it when it fails.
            Self::None
            | Self::Pfc(_)
            | Self::Bifrost(_)
            | Self::Pyrrha(_)
            | Self::Cbfc(_)
            | Self::Watchdog(_)
            | Self::Roundabout(_)
            | Self::Itsy(_)
            | Self::Breaker(_) => {}
            Self::Bfc(bfc) => bfc.lasting.link_recovered(device, port),
            Self::PerFlowQueue(pfq) => pfq.lasting.link_recovered(device, port),
            Self::PortFc(portfc) => portfc.link_reset(device, port),
        }
    }

    /// Both halves: `timer` went off.
    pub fn timer(&mut self, device: &mut impl Device, timer: u32) {
        match self {
            Self::None | Self::PortFc(_) => {}
            Self::Pyrrha(pyrrha) => {
                if let Some(pfc) = &mut pyrrha.pfc {
                    pfc.timer(device, timer);
                }
            }
            Self::Pfc(pfc) => pfc.timer(device, timer),
            Self::Bifrost(bifrost) => bifrost.timer(device, timer),
            Self::Bfc(bfc) => bfc.timer(device, timer),
            Self::PerFlowQueue(pfq) => pfq.lasting.timer(device, timer),
            Self::Cbfc(cbfc) => cbfc.timer(device, timer),
            Self::Watchdog(watchdog) => watchdog.timer(device, timer),
            Self::Roundabout(roundabout) => roundabout.timer(device, timer),
            Self::Itsy(itsy) => itsy.timer(device, timer),
            Self::Breaker(breaker) => breaker.timer(device, timer),
        }
    }
}

/// A device for tests, which writes down what is asked of it.
#[cfg(test)]
mod notes {
    use super::{ControlFrame, Device, Mode, Onward, Word};
    use xoff_kernel::time::Time;
    use xoff_wire::queue_pause::Target;

    #[derive(Default)]
    pub struct Notes {
        pub now: Time,
        pub log: Vec<String>,
        /// Answers of `active_queues` and `is_paused`.
        pub active: u32,
        pub paused: Vec<u16>,
        /// Answers of `port_of` and `relay_port`.
        pub ports: Vec<u32>,
        pub relays: Vec<u32>,
        /// Answers of `onward`, by hop, and of `queue_bytes`, by port.
        pub ways: Vec<Vec<u32>>,
        pub bytes: std::collections::BTreeMap<u32, u64>,
        /// Answer of `backlog`.
        pub backlog: u64,
        /// Answers of `waits`: ingress, egress and lane.
        pub waiting: std::collections::BTreeSet<(u32, u32, u8)>,
        /// Answers of `stored` and `received`, by port and lane.
        pub stored: std::collections::BTreeMap<(u32, u8), u64>,
        pub received: std::collections::BTreeMap<(u32, u8), u64>,
        /// Answers of `is_over`.
        pub over: std::collections::BTreeSet<(u32, u8)>,
        /// Answers of `reroute` and `enlarge`.
        pub rerouted: (u64, u64),
        pub enlarged: Option<u64>,
        /// Answer of `shrink`.
        pub shrinks: bool,
        /// Answer of `headroom`.
        pub headroom: (u64, u64),
    }

    impl Device for Notes {
        fn now(&self) -> Time {
            self.now
        }
        fn rate(&self, _: u32) -> u64 {
            100_000_000_000
        }
        fn pause(&mut self, port: u32, lane: u8) {
            self.log.push(format!("pause {port}/{lane}"));
        }
        fn hold(&mut self, port: u32, lane: u8) {
            self.log.push(format!("hold {port}/{lane}"));
        }
        fn resume(&mut self, port: u32, lane: u8) {
            self.log.push(format!("resume {port}/{lane}"));
        }
        fn set_mode(&mut self, port: u32, lane: u8, mode: Mode) {
            self.log.push(format!("{port}/{lane} {mode:?}"));
        }
        fn pause_queue(&mut self, port: u32, lane: u8, target: Target) {
            self.log.push(format!("pause {port}/{lane} {target:?}"));
        }
        fn resume_queue(&mut self, port: u32, lane: u8, target: Target) {
            self.log.push(format!("resume {port}/{lane} {target:?}"));
        }
        fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32) {
            self.log.push(format!("pause {port}/{lane} {queue} for {root}"));
        }
        fn queue_bytes(&self, port: u32, _: u8, _: u16) -> u64 {
            self.bytes.get(&port).copied().unwrap_or(0)
        }
        fn backlog(&self, _: u32, _: u8) -> u64 {
            self.backlog
        }
        fn device_of(&self, _: u32) -> u32 {
            0
        }
        fn onward(&self, hop: u32, distance: u32) -> Onward {
            let way = self.ways.get(hop as usize).map_or(&[][..], Vec::as_slice);
            way.get(distance as usize).map_or(Onward::End, |&port| Onward::Port(port))
        }
        fn is_paused(&self, _: u32, _: u8, queue: u16) -> bool {
            self.paused.contains(&queue)
        }
        fn port_of(&self, _: u32, index: usize) -> Option<u32> {
            self.ports.get(index).copied()
        }
        fn relay_port(&self, _: u32, index: usize) -> Option<u32> {
            self.relays.get(index).copied()
        }
        fn active_queues(&self, _: u32, _: u8) -> u32 {
            self.active
        }
        fn stored(&self, port: u32, lane: u8) -> u64 {
            self.stored.get(&(port, lane)).copied().unwrap_or(0)
        }
        fn received(&self, port: u32, lane: u8) -> u64 {
            self.received.get(&(port, lane)).copied().unwrap_or(0)
        }
        fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool {
            self.waiting.contains(&(ingress, egress, lane))
        }
        fn neighbour(&self, port: u32) -> u32 {
            1_000 + port
        }
        fn stands(&self, port: u32, _: u8) -> bool {
            self.paused.contains(&(port as u16))
        }
        fn is_over(&self, port: u32, lane: u8) -> bool {
            self.over.contains(&(port, lane))
        }
        fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64) {
            self.log.push(format!("reroute {ingress} {port}/{lane}"));
            self.rerouted
        }
        fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64> {
            self.log.push(format!("enlarge {port}/{lane} {bytes}"));
            self.enlarged
        }
        fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8) {
            self.log.push(format!("drop {ingress}/{lane} at {egress}"));
        }
        fn shrink(&mut self, port: u32, lane: u8) -> bool {
            self.log.push(format!("shrink {port}/{lane}"));
            self.shrinks
        }
        fn headroom(&self, _: u32, _: u8) -> (u64, u64) {
            self.headroom
        }
        fn enter_loop(&mut self, port: u32, lane: u8) {
            self.log.push(format!("enter {port}/{lane}"));
        }
        fn gate(&mut self, port: u32, lane: u8, open: bool) {
            self.log.push(format!("gate {port}/{lane} {open}"));
        }
        fn leave_loop(&mut self, _: u32, port: u32, lane: u8) {
            self.log.push(format!("leave {port}/{lane}"));
        }
        fn insert(&mut self, port: u32, lane: u8, _: ControlFrame, ahead: bool) {
            self.log.push(format!("insert {port}/{lane} {ahead}"));
        }
        fn send_control(&mut self, port: u32, frame: ControlFrame) {
            self.log.push(match frame {
                ControlFrame::Pfc(frame) => format!("send {port} {:?}", frame.entries().collect::<Vec<_>>()),
                ControlFrame::Feedback(f) => {
                    format!("feed {port} {} of {:?}", f.total, f.entries().collect::<Vec<_>>())
                }
                ControlFrame::QueuePause(f) => {
                    format!("{} {port} {:?}", if f.pause { "stop" } else { "go" }, f.target)
                }
                ControlFrame::PortPause(f) => {
                    format!("{} {port} q{} p{}", if f.pause { "stop" } else { "go" }, f.queue, f.port)
                }
                ControlFrame::Credit(f) => format!("credit {port} v{} {} {}", f.lane, f.sent, f.limit),
                ControlFrame::Roundabout(f) => {
                    format!("{:?} {port} {:?} {}:{}", f.opcode, f.quanta, f.triplet.sid, f.triplet.rand)
                }
                ControlFrame::Itsy(f) => {
                    format!("check {port} {}.{}#{}", f.check.sid, f.check.qid, f.check.number)
                }
                ControlFrame::Probe(f) => {
                    let (word, ports) = (f.word, f.ports.as_slice());
                    format!("{word:?} {port} {}:{} {ports:?}", f.id.draw, f.id.port)
                }
                ControlFrame::RootPause(f) => {
                    let root =
                        |r: xoff_wire::root_pause::RootId| format!("{}:{}#{}", r.switch, r.port, r.epoch);
                    let word = match f.word {
                        Word::Pause => "stop".to_string(),
                        Word::Resume => "go".to_string(),
                        Word::Merge { into } => format!("merge into {} of", root(into)),
                        Word::Release => "release".to_string(),
                    };
                    format!("{word} {port} {} /{}", root(f.root), f.sequence)
                }
            });
        }
        fn arm(&mut self, timer: u32, at: Time) {
            self.log.push(format!("arm {timer} {at}"));
        }
        fn cancel(&mut self, timer: u32) {
            self.log.push(format!("cancel {timer}"));
        }
    }
}

#[cfg(test)]
mod frames {
    use super::ControlFrame;
    use xoff_wire::credit::{CreditPacket, Form};
    use xoff_wire::roundabout::{Nodes, Opcode, RoundaboutFrame, Triplet};

    #[test]
    fn credits_of_two_lanes_do_not_merge() {
        let credit = |lane, limit| ControlFrame::Credit(CreditPacket::new(Form::Narrow, lane, 0, limit));
        let mut waiting = credit(3, 10);
        assert!(!waiting.merge(&credit(5, 20)));
        assert_eq!(waiting, credit(3, 10));
        assert!(waiting.merge(&credit(3, 20)));
        assert_eq!(waiting, credit(3, 20));
    }

    #[test]
    fn a_frame_of_roundabout_pauses_by_its_quanta() {
        let frame = |quanta| {
            let (opcode, triplet, nodes) = (Opcode::Probe, Triplet::default(), Nodes::default());
            ControlFrame::Roundabout(RoundaboutFrame { priority: 3, quanta, opcode, triplet, nodes })
        };
        assert_eq!(
            [None, Some(0), Some(1)].map(|quanta| frame(quanta).pauses()),
            [None, Some(false), Some(true)]
        );
    }
}

#[cfg(test)]
mod dispatch {
    use super::notes::Notes;
    use super::pfc::{PfcParams, Relay};
    use super::watchdog::{Action, WatchdogParams};
    use super::*;
    use xoff_wire::pfc::PfcFrame;

    const PFC: PfcParams = PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts };

    fn watchdog() -> WatchdogParams {
        WatchdogParams {
            pfc: PFC,
            action: Action::Drop,
            detection: 5,
            restoration: 7,
            poll: 11,
            first: vec![],
        }
    }

    /// What a scheme has no use for is neither asked nor kept: it would cost every packet.
    #[test]
    fn a_scheme_is_asked_for_what_it_has_a_use_for() {
        for (scheme, patience, asks, knows) in [
            (FlowControlParams::None, 0, false, false),
            (FlowControlParams::Pfc(PFC), 0, false, false),
            (FlowControlParams::Watchdog(watchdog()), 5 + 7 + 3 * 11, false, false),
        ] {
            assert_eq!(
                (scheme.patience(), scheme.asks_to_leave(), scheme.knows_causes()),
                (patience, asks, knows)
            );
        }
    }

    #[test]
    fn a_frame_reaches_its_scheme() {
        let mut pfc = FlowControl::new(&FlowControlParams::Pfc(PFC), 2, &[3]);
        let mut device = Notes::default();
        pfc.received(&mut device, 1, &ControlFrame::Pfc(PfcFrame::single(3, 9)));
        assert!(device.log.contains(&"pause 1/0".to_string()), "{:?}", device.log);
    }
}
