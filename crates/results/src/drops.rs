//! Packets that a run lost, in numbers and in words.

use serde::Serialize;

use crate::names;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{DropReason, Drops, Outcome};

/// Packets lost, by place and reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropSummary {
    /// Packets lost in lossless priorities for want of room.
    pub lossless_packets: u64,
    /// Packets lost in lossy priorities for want of room.
    pub lossy_packets: u64,
    /// Packets whose time to live ended in a routing loop.
    pub expired_packets: u64,
    /// Packets lost because a link was down, lost or corrupted them, or because
    /// no path led on. Control frames on such a link are among them.
    pub fault_packets: u64,
    /// Packets that a watchdog dropped, or let go although the peer had no room.
    pub watchdog_packets: u64,
    /// Packets that ITSY dropped to let a deadlock go.
    pub itsy_packets: u64,
    /// Cells that were sent without a grant, and met another one.
    pub collision_packets: u64,
    /// Each place and reason.
    pub places: Vec<DropPlace>,
}

/// Packets dropped in one place for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DropPlace {
    /// The port that they arrived at.
    pub ingress: String,
    /// 802.1p priority.
    pub priority: u8,
    /// Whether the priority is lossless.
    pub lossless: bool,
    /// `headroom-full`, `buffer-full`, `queue-limit`, `expired`, `link-down`,
    /// `unreachable`, `frame-lost`, `frame-corrupted`, `watchdog`, `overrun`,
    /// `itsy` or `collision`.
    pub reason: &'static str,
    /// How many.
    pub packets: u64,
    /// How many bytes.
    pub bytes: u64,
    /// First time, in picoseconds.
    pub first_ps: Time,
    /// Most bytes by which the room fell short at once.
    pub shortfall: u64,
}

/// Every drop of a run, in the order of the outcome.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> DropSummary {
    let sum =
        |keep: &dyn Fn(&Drops) -> bool| outcome.drops.iter().filter(|d| keep(d)).map(|d| d.packets).sum();
    DropSummary {
        lossless_packets: sum(&breaks_losslessness),
        lossy_packets: sum(&|d| !d.lossless && d.reason.for_want_of_room()),
        expired_packets: sum(&|d| d.reason == DropReason::Expired),
        fault_packets: sum(&|d| d.reason.by_fault()),
        watchdog_packets: sum(&|d| d.reason.by_watchdog()),
        itsy_packets: sum(&|d| d.reason == DropReason::Itsy),
        collision_packets: sum(&|d| d.reason == DropReason::Collision),
        places: outcome
            .drops
            .iter()
            .map(|d| DropPlace {
                ingress: names::port(plan, d.ingress),
                priority: names::priority(plan, d.lane),
                lossless: d.lossless,
                reason: match d.reason {
                    DropReason::HeadroomFull => "headroom-full",
                    DropReason::BufferFull => "buffer-full",
                    DropReason::QueueLimit => "queue-limit",
                    DropReason::Expired => "expired",
                    DropReason::LoopGivenUp => "loop-given-up",
                    DropReason::LinkDown => "link-down",
                    DropReason::Unreachable => "unreachable",
                    DropReason::FrameLost => "frame-lost",
                    DropReason::FrameCorrupted => "frame-corrupted",
                    DropReason::Watchdog => "watchdog",
                    DropReason::Itsy => "itsy",
                    DropReason::Collision => "collision",
                    DropReason::Overrun => "overrun",
                },
                packets: d.packets,
                bytes: d.bytes,
                first_ps: d.first,
                shortfall: d.shortfall,
            })
            .collect(),
    }
}

/// A drop that breaks the promise of a lossless priority. A packet whose time to
/// live ended in a routing loop, or whose link failed, is not one: no buffer
/// could have kept it. Nor is one that a watchdog or ITSY meant to be lost.
pub fn breaks_losslessness(drops: &Drops) -> bool {
    drops.lossless && drops.reason.for_want_of_room()
}

/// A reason as people read it.
pub fn reason(reason: DropReason) -> &'static str {
    match reason {
        DropReason::HeadroomFull => "the headroom was full",
        DropReason::BufferFull => "the buffer was full",
        DropReason::QueueLimit => "the queue was at its limit",
        DropReason::Expired => "the time to live ended",
        DropReason::LoopGivenUp => "it went round a deadlocked loop that was given up",
        DropReason::LinkDown => "the link was down",
        DropReason::Unreachable => "no path led on",
        DropReason::FrameLost => "the link lost the frame",
        DropReason::FrameCorrupted => "the link corrupted the frame",
        DropReason::Watchdog => "the watchdog found a storm",
        DropReason::Itsy => "ITSY found it in a deadlock",
        DropReason::Collision => "it was sent without a grant, and met another cell",
        DropReason::Overrun => "a watchdog let it go although there was no room",
    }
}
