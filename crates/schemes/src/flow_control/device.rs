//! What a scheme may see of and do to its own device: a core, and extensions for the schemes that need
//! more. A device implements the extensions that its schemes ask for.

use super::frame::ControlFrame;
use super::seam::{Crossing, Mode, Onward};
use xoff_kernel::time::Time;
use xoff_outcome::report::Cause;
use xoff_wire::queue_pause::Target;

/// What every scheme may see of and do to its own device.
pub trait Device {
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
    /// Bytes that wait in `lane` of `port` to be sent; as good as without end where the
    /// host has more to send of its own.
    fn backlog(&self, port: u32, lane: u8) -> u64;
    /// The device that `port` belongs to.
    fn device_of(&self, port: u32) -> u32;
    /// The `index`-th port of the device of `port`, in their order, `port` included;
    /// `None` behind the last one.
    fn port_of(&self, port: u32, index: usize) -> Option<u32>;
    /// The `index`-th port of the device of `port` if that is a relay, or a host that
    /// relays, in their order, `port` included; `None` behind the last one, and if it
    /// is neither.
    fn relay_port(&self, port: u32, index: usize) -> Option<u32>;
    /// Bytes stored of what came in `lane` through `port`, as its account is charged:
    /// each packet in whole cells ([`Traits::cell`](super::Traits::cell)).
    fn stored(&self, port: u32, lane: u8) -> u64;
    /// Bytes that have ever arrived in `lane` through `port`, each packet in whole
    /// cells; what was lost on the link is not among them. Kept only where
    /// [`Traits::counts_arrivals`](super::Traits::counts_arrivals) says so.
    fn received(&self, port: u32, lane: u8) -> u64;
    /// Sends a frame to the neighbour: ahead of every queue, behind the packet on
    /// the wire; or as part of the last frame that still waits ([`ControlFrame::merge`]).
    /// Over a link that is down nothing is sent.
    fn send_control(&mut self, port: u32, frame: ControlFrame);
    /// Arms timer `timer` for `at` (not before now), in place of what it was armed for.
    fn arm(&mut self, timer: u32, at: Time);
    /// Disarms timer `timer`.
    fn cancel(&mut self, timer: u32);
}

/// Queues by their numbers, and where packets go from there: for schemes whose pauses stop
/// single queues.
pub trait Queues: Device {
    /// Stops one queue of `lane` on `port`, or the queue of one flow; the packet
    /// on the wire finishes. Stopping twice changes nothing.
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Lets that queue go again.
    fn resume_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Stops queue `queue` of `lane` on `port`, as [`Queues::pause_queue`] does, for
    /// congestion at port `root`, which the frame that asked for it names.
    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32);
    /// Bytes of packets in queue `queue` of `lane` on `port`.
    fn queue_bytes(&self, port: u32, lane: u8, queue: u16) -> u64;
    /// The `distance`-th port behind the one that a packet stands at, or a queue pair's
    /// packets begin at, on its way from there; `hop` is that of its [`QueueEntry`](super::QueueEntry).
    fn onward(&self, hop: u32, distance: u32) -> Onward;
    /// Whether queue `queue` of `lane` on `port` is stopped.
    fn is_paused(&self, port: u32, lane: u8, queue: u16) -> bool;
    /// How many queues of forwarded packets of `lane` on `port` hold something
    /// and are not stopped.
    fn active_queues(&self, port: u32, lane: u8) -> u32;
}

/// Which ingress has packets in which egress queue: for schemes that look for deadlocks.
/// Kept only where [`Traits::knows_causes`](super::Traits::knows_causes) says so.
pub trait Causes: Device {
    /// Whether a packet that came through `ingress` waits in `lane` of `egress`, a port of the
    /// same device.
    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool;
    /// Whether the queue of what is forwarded in `lane` of `port` is stopped.
    fn stands(&self, port: u32, lane: u8) -> bool;
    /// Whether the account of (`port`, `lane`) is over its threshold, and would be if it gave back `bytes`
    /// that it has outside headroom.
    fn is_over(&self, port: u32, lane: u8, bytes: u64) -> bool;
}

/// Drops, other paths and more room for queues that stand still: for schemes that end
/// deadlocks or storms.
pub trait Repair: Device {
    /// From now on the forwarding queue of `lane` on `port` treats packets so. What it
    /// discards it discards once the scheme has returned, and gives back what that was
    /// charged. Only under [`Queueing::PerLane`](super::Queueing::PerLane).
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode);
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
    /// They are dropped for `cause` once the scheme's timer has returned, and give back what they were
    /// charged.
    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8, cause: &'static Cause);
}

/// Places in a loop that is being dissolved: for schemes that do so.
pub trait Loops: Causes {
    /// The device at the other end of the link of `port`.
    fn neighbour(&self, port: u32) -> u32;
    /// Bytes of headroom of that account, and how many of them are used.
    fn headroom(&self, port: u32, lane: u8) -> (u64, u64);
    /// `lane` of `port` is part of a loop that is being dissolved: no pause stands there any more;
    /// what is forwarded goes as [`Loops::gate`] says, which begins closed, and what a host sends of
    /// its own does not. While a device has such a queue, [`Scheme::passes`](super::Scheme::passes),
    /// [`Scheme::stored`](super::Scheme::stored) and [`Scheme::freed`](super::Scheme::freed) are asked and
    /// told of all of its packets, and [`Scheme::may_leave`](super::Scheme::may_leave) and
    /// [`Scheme::barrier_leaves`](super::Scheme::barrier_leaves) of what comes first in its queues.
    fn enter_loop(&mut self, port: u32, lane: u8);
    /// Lets go what is forwarded in a queue of a loop, or stops it.
    fn gate(&mut self, port: u32, lane: u8, open: bool);
    /// It is part of a loop no longer, and goes; what waited beside it comes last.
    fn leave_loop(&mut self, port: u32, lane: u8);
    /// Puts a frame among the packets that wait in `lane` of `port`: ahead of all of them, or
    /// behind them.
    fn insert(&mut self, port: u32, lane: u8, frame: ControlFrame, ahead: bool);
    /// Whether [`Scheme::charged`](super::Scheme::charged) and
    /// [`Scheme::on_release`](super::Scheme::on_release) are asked of packets from now on.
    fn follow_charges(&mut self, follow: bool);
    /// Gives back `bytes` of what the account is charged, headroom first. Answers which threshold it
    /// crossed, unless its link is down.
    fn release_charge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<Crossing>;
    /// Charges the account of `to` instead of that of `from`, whatever its threshold: `bytes` at most of
    /// what that one has of the shared pool. Answers how many.
    fn transfer_charge(&mut self, from: u32, to: u32, lane: u8, bytes: u64) -> u64;
    /// Charges the account `bytes` at most: in headroom, if it is over, else of what is free of the shared
    /// pool. Answers how many, and the threshold as [`Loops::release_charge`] does.
    fn charge(&mut self, port: u32, lane: u8, bytes: u64) -> (u64, Option<Crossing>);
    /// [`Scheme::settles`](super::Scheme::settles) is told behind everything else that happens now.
    fn settle(&mut self, port: u32, lane: u8);
}

/// A device on which every scheme runs.
pub trait WholeDevice: Queues + Causes + Repair + Loops {}

impl<D: Queues + Causes + Repair + Loops> WholeDevice for D {}
