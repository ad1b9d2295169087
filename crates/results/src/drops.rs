//! Packets that a run lost, in numbers and in words.

use serde::Serialize;

use crate::names;
use xoff_kernel::time::Time;
use xoff_outcome::{DropReason, Drops, Outcome};
use xoff_plan::plan::Plan;

/// Packets lost, by place and reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropSummary {
    /// Packets lost in lossless priorities for want of room.
    pub lossless_packets: u64,
    /// Packets lost in lossy priorities for want of room.
    pub lossy_packets: u64,
    /// Packets whose time to live ended in a routing loop.
    pub expired_packets: u64,
    /// Packets lost because a link was down, lost or corrupted them, or because no path led on. Control frames
    /// on such a link are among them.
    pub fault_packets: u64,
    /// Packets that a mechanism dropped by a rule of its own, or let go where there was no room.
    pub scheme_packets: u64,
    /// The same by who dropped them: the end of "3 packets dropped …".
    #[serde(skip)]
    pub by_scheme: Vec<(&'static str, u64)>,
    pub places: Vec<DropPlace>,
}

/// Packets dropped in one place for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropPlace {
    /// The port that they arrived at.
    pub ingress: String,
    /// 802.1p priority.
    pub priority: u8,
    pub lossless: bool,
    /// As files spell it.
    pub reason: &'static str,
    pub packets: u64,
    pub bytes: u64,
    pub first_ps: Time,
    /// Most bytes by which the room fell short at once.
    pub shortfall: u64,
}

/// Every drop of a run, in the order of the outcome.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> DropSummary {
    let mut by_scheme: Vec<(&'static str, u64)> = Vec::new();
    for (cause, packets) in outcome.drops.iter().filter_map(|d| Some((d.reason.by_scheme()?, d.packets))) {
        match by_scheme.iter_mut().find(|(by, _)| *by == cause.by) {
            Some((_, sum)) => *sum += packets,
            None => by_scheme.push((cause.by, packets)),
        }
    }
    let sum =
        |keep: &dyn Fn(&Drops) -> bool| outcome.drops.iter().filter(|d| keep(d)).map(|d| d.packets).sum();
    let place = |d: &Drops| DropPlace {
        ingress: names::port(plan, d.ingress),
        priority: names::priority(plan, d.lane),
        lossless: d.lossless,
        reason: words(d.reason).0,
        packets: d.packets,
        bytes: d.bytes,
        first_ps: d.first,
        shortfall: d.shortfall,
    };
    DropSummary {
        lossless_packets: sum(&breaks_losslessness),
        lossy_packets: sum(&|d| !d.lossless && d.reason.for_want_of_room()),
        expired_packets: sum(&|d| d.reason == DropReason::Expired),
        fault_packets: sum(&|d| d.reason.by_fault()),
        scheme_packets: by_scheme.iter().map(|(_, packets)| packets).sum(),
        by_scheme,
        places: outcome.drops.iter().map(place).collect(),
    }
}

/// A drop that breaks the promise of a lossless priority. A packet whose time to live ended in a routing loop,
/// or whose link failed, is not one: no buffer could have kept it. Nor is one that a mechanism meant to be lost.
pub fn breaks_losslessness(drops: &Drops) -> bool {
    drops.lossless && drops.reason.for_want_of_room()
}

/// A reason as people read it.
pub fn reason(reason: DropReason) -> &'static str {
    words(reason).1
}

/// A reason as files spell it, and as people read it.
fn words(reason: DropReason) -> (&'static str, &'static str) {
    match reason {
        DropReason::HeadroomFull => ("headroom-full", "the headroom was full"),
        DropReason::BufferFull => ("buffer-full", "the buffer was full"),
        DropReason::QueueLimit => ("queue-limit", "the queue was at its limit"),
        DropReason::Expired => ("expired", "the time to live ended"),
        DropReason::LoopGivenUp => ("loop-given-up", "the scheme gave up a deadlocked loop"),
        DropReason::LinkDown => ("link-down", "the link was down"),
        DropReason::Unreachable => ("unreachable", "there was no path"),
        DropReason::FrameLost => ("frame-lost", "the link lost the frame"),
        DropReason::FrameCorrupted => ("frame-corrupted", "the link corrupted the frame"),
        DropReason::Scheme(cause) => (cause.name, cause.because),
    }
}
