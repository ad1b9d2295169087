//! The view and the actions of a scheme on its own device: a core, and extensions for schemes that need more.
//! A device implements the extensions that its schemes require.

use super::frame::ControlFrame;
use super::seam::{Crossing, Mode, Onward};
use xoff_kernel::time::Time;
use xoff_outcome::report::Cause;
use xoff_wire::queue_pause::Target;

/// The view and the actions of every scheme on its own device.
pub trait Device {
    fn now(&self) -> Time;
    /// Rate of a port's link, in bits per second.
    fn rate(&self, port: u32) -> u64;
    /// Stops every egress queue of `lane` on `port`, a host's own queue pairs
    /// included. The packet on the wire finishes. Stopping twice changes nothing.
    fn pause(&mut self, port: u32, lane: u8);
    /// Stops them as [`Device::pause`] does, by the device's own decision: no frame caused it, and no pause
    /// is recorded. A later pause replaces it; [`Device::resume`] ends it.
    fn hold(&mut self, port: u32, lane: u8);
    /// Lets the lane's queues on `port` go again.
    fn resume(&mut self, port: u32, lane: u8);
    /// Bytes that wait in `lane` of `port` to be sent; `u64::MAX` if the host itself has more to send.
    fn backlog(&self, port: u32, lane: u8) -> u64;
    /// The device that `port` belongs to.
    fn device_of(&self, port: u32) -> u32;
    /// The `index`-th port of the device of `port`, in their order; `None` after the last one.
    fn port_of(&self, port: u32, index: usize) -> Option<u32>;
    /// The `index`-th port of the device of `port` if that is a relay, or a host that relays, in their order,
    /// `port` included; `None` after the last one, and if it is neither.
    fn relay_port(&self, port: u32, index: usize) -> Option<u32>;
    /// Bytes stored of packets that came in `lane` through `port`, as charged to its account: each packet in
    /// whole cells ([`Traits::cell`](super::Traits::cell)).
    fn stored(&self, port: u32, lane: u8) -> u64;
    /// Bytes that have ever arrived in `lane` through `port`, each packet in whole cells, without packets
    /// lost on the link. Counted only with [`Traits::counts_arrivals`](super::Traits::counts_arrivals).
    fn received(&self, port: u32, lane: u8) -> u64;
    /// Sends a frame to the neighbour: before every queue, after the packet on the wire; or as part of the
    /// last frame that still waits ([`ControlFrame::merge`]). Over a link that is down nothing is sent.
    fn send_control(&mut self, port: u32, frame: ControlFrame);
    /// Arms timer `timer` for `at` (not before now), and cancels its former time.
    fn arm(&mut self, timer: u32, at: Time);
    /// Disarms timer `timer`.
    fn cancel(&mut self, timer: u32);
}

/// Queues by their numbers, and where packets go from there: for schemes whose pauses stop single queues.
pub trait Queues: Device {
    /// Stops one queue of `lane` on `port`, or the queue of one flow; the packet
    /// on the wire finishes. Stopping twice changes nothing.
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Lets that queue go again.
    fn resume_queue(&mut self, port: u32, lane: u8, target: Target);
    /// Stops queue `queue` of `lane` on `port`, as [`Queues::pause_queue`] does, for congestion at port
    /// `root`, which the frame names.
    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32);
    /// Bytes of packets in queue `queue` of `lane` on `port`.
    fn queue_bytes(&self, port: u32, lane: u8, queue: u16) -> u64;
    /// The `distance`-th port after that of a packet, or of a queue pair's first hop, on its further path;
    /// `hop` is that of its [`QueueEntry`](super::QueueEntry).
    fn onward(&self, hop: u32, distance: u32) -> Onward;
    /// Whether queue `queue` of `lane` on `port` is stopped.
    fn is_paused(&self, port: u32, lane: u8, queue: u16) -> bool;
    /// How many queues of forwarded packets of `lane` on `port` hold something and are not stopped.
    fn active_queues(&self, port: u32, lane: u8) -> u32;
}

/// Which ingress has packets in which egress queue: for schemes that look for deadlocks.
/// Kept only where [`Traits::knows_causes`](super::Traits::knows_causes) says so.
pub trait Causes: Device {
    /// Whether a packet that came through `ingress` waits in `lane` of `egress`, a port of the same device.
    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool;
    /// Whether the queue of forwarded packets in `lane` of `port` is stopped.
    fn is_stopped(&self, port: u32, lane: u8) -> bool;
    /// Whether the account of (`port`, `lane`) is over its threshold, and would be if it gave back `bytes`
    /// that it has outside headroom.
    fn is_over(&self, port: u32, lane: u8, bytes: u64) -> bool;
}

/// Drops, other paths and more room for paused queues, for schemes that end deadlocks or storms.
pub trait Repair: Device {
    /// Sets how the forwarding queue of `lane` on `port` treats packets from now on. It discards packets
    /// after the scheme has returned, and then releases their charges. Only under
    /// [`Queueing::PerLane`](super::Queueing::PerLane).
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode);
    /// Gives another path to each packet of `lane` that came in by `ingress`, waits at `port` and has one:
    /// over the next hop that its device would choose if the link of `port` were down, unless that queue is
    /// stopped or full. It joins that queue's end, and its charge does not change. Returns how many packets
    /// moved, and how many stayed. Only if the plan has computed other paths.
    fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64);
    /// Raises the threshold of the account of (`port`, `lane`), which is over, to its present bytes, its
    /// headroom included, and `bytes` more; then it is not over any more. Its bytes in headroom move to the
    /// shared pool. It resumes as before. Returns how many bytes of the pool that takes; `None`, without an
    /// effect, if the pool has less.
    fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64>;
    /// Takes that back, if the account has drained to where it resumes; whether it has.
    fn shrink(&mut self, port: u32, lane: u8) -> bool;
    /// Drops packets that came through `ingress` and wait in `lane` of `egress` until the account of
    /// (`ingress`, `lane`) is not over any more, or none is left there: those of the flow with most bytes
    /// among them first (the earlier one of two alike), each flow's from the head on. They are dropped for
    /// `cause` after the scheme's timer has returned, and then their charges are released.
    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8, cause: &'static Cause);
}

/// Places in a loop that is being dissolved: for schemes that do so.
pub trait Loops: Causes {
    /// The device at the other end of the link of `port`.
    fn neighbour(&self, port: u32) -> u32;
    /// Bytes of headroom of that account, and how many of them are used.
    fn headroom(&self, port: u32, lane: u8) -> (u64, u64);
    /// `lane` of `port` becomes part of a loop that is being dissolved: its pause ends. [`Loops::gate`] opens
    /// and closes it for forwarded packets, and begins closed; the host's own packets do not leave. While a
    /// device has such a queue, it calls [`Scheme::passes`](super::Scheme::passes),
    /// [`Scheme::stored`](super::Scheme::stored) and [`Scheme::freed`](super::Scheme::freed) for all of its
    /// packets, and [`Scheme::may_leave`](super::Scheme::may_leave) and
    /// [`Scheme::barrier_leaves`](super::Scheme::barrier_leaves) for the first packet of its queues.
    fn enter_loop(&mut self, port: u32, lane: u8);
    /// Opens or closes a queue of a loop for forwarded packets.
    fn gate(&mut self, port: u32, lane: u8, open: bool);
    /// Removes the queue from the loop and resumes it; packets that waited outside the loop come last.
    fn leave_loop(&mut self, port: u32, lane: u8);
    /// Puts a frame among the packets that wait in `lane` of `port`: before all of them, or after them.
    fn insert(&mut self, port: u32, lane: u8, frame: ControlFrame, ahead: bool);
    /// Sets whether [`Scheme::charged`](super::Scheme::charged) and
    /// [`Scheme::on_release`](super::Scheme::on_release) are called for packets from now on.
    fn follow_charges(&mut self, follow: bool);
    /// Releases `bytes` of the account's charge, headroom first. Returns which threshold it crossed, unless
    /// its link is down.
    fn release_charge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<Crossing>;
    /// Moves at most `bytes` of the shared pool from the account of `from` to that of `to`, for any
    /// threshold. Returns how many.
    fn transfer_charge(&mut self, from: u32, to: u32, lane: u8, bytes: u64) -> u64;
    /// Charges the account at most `bytes`: in headroom if it is over, otherwise from the free bytes of the
    /// shared pool. Returns how many, and the threshold as [`Loops::release_charge`] does.
    fn charge(&mut self, port: u32, lane: u8, bytes: u64) -> (u64, Option<Crossing>);
    /// Calls [`Scheme::settles`](super::Scheme::settles) after all other events of this time.
    fn settle(&mut self, port: u32, lane: u8);
}

/// A device on which every scheme runs.
pub trait WholeDevice: Queues + Causes + Repair + Loops {}

impl<D: Queues + Causes + Repair + Loops> WholeDevice for D {}
