//! `xoff live`: the devices of a scenario on real Ethernet frames.
//!
//! Each switch and host runs the simulator's state machines on a thread and in a Linux network namespace of
//! its own. Everything that one device sends to another crosses a veth pair as a frame: the bytes that captures
//! show, and a trailer with data that frames of real networks do not have. The receiver rebuilds the packet from
//! the frame. Rate and delay of a link are waiting times of its two ends.
//!
//! Time passes by one of two [clocks](Clock). This crate does not know schemes, scenarios or terminals.

#![cfg(target_os = "linux")]

mod namespaces;
mod netlink;
pub mod refuse;
mod trailer;
mod wires;

pub use namespaces::enter;
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_outcome::{Outcome, tap::Tap};
use xoff_plan::plan::Plan;
use xoff_sim::{Lateness, Watch};

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// By the wall clock. Simulated time passes `dilate` times more slowly.
    Wall {
        /// At least 1.
        dilate: u64,
    },
    /// All devices wait for each other after each window of the smallest delay. The outcome is that of the
    /// simulator, byte for byte.
    Lockstep,
}

/// A run on real frames.
pub struct Made {
    /// The outcome, as the simulator has it.
    pub outcome: Outcome,
    /// How late events were processed; zeros in lockstep.
    pub lateness: Lateness,
    /// The most lateness of a valid run: the smallest delay of a link. Up to it no frame comes too late.
    pub bound: Time,
    /// Frames that each device has sent.
    pub sent: Vec<u64>,
    /// How long the devices ran.
    pub took: Duration,
}

impl Made {
    /// Whether no event was later than the bound, and no frame came too late.
    pub fn is_valid(&self) -> bool {
        self.lateness.latest <= self.bound && self.lateness.overtaken == 0
    }
}

/// Called when the links are up, with a function by which the calling thread joins a device's namespace.
pub type Ready<'r> = &'r mut dyn FnMut(&dyn Fn(NodeId) -> Result<(), String>) -> Result<(), String>;

/// Runs a plan. [`enter`] was called before, and [`refuse::refusal`] returns nothing about the plan.
///
/// # Errors
/// The system refuses a namespace, a link, a socket or a thread, or a frame was lost. The text says which.
pub fn run(
    plan: &Plan,
    clock: Clock,
    tap: Option<Tap<'_>>,
    ready: Ready,
    watch: &mut Watch,
) -> Result<Made, String> {
    let veths = wires::Veths::new(plan)?;
    ready(&|device| veths.join(device))?;
    let dilate = match clock {
        Clock::Wall { dilate } => Some(dilate),
        Clock::Lockstep => None,
    };
    let began = Instant::now();
    let (outcome, lateness) = xoff_sim::run_wired(plan, &veths, dilate, tap, watch)?;
    let took = began.elapsed();
    Ok(Made { outcome, lateness, bound: refuse::least_delay(plan), sent: veths.sent(), took })
}
