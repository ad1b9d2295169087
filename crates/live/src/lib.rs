//! `xoff live`: the devices of a scenario on real Ethernet frames.
//!
//! Each switch and host runs the simulator's state machines in a process and in a Linux network namespace of its
//! own; or all of them are threads of one process. Everything that one device sends to another crosses a veth pair
//! as a frame: the bytes that captures show, and a trailer with data that frames of real networks do not have. The
//! receiver rebuilds the packet from the frame. Rate and delay of a link are waiting times of its two ends.
//!
//! Time passes by one of two [clocks](Clock). This crate does not know schemes, scenarios or terminals.

#![cfg(target_os = "linux")]

pub mod memory;
mod namespaces;
mod netlink;
mod processes;
pub mod refuse;
mod trailer;
mod wires;

pub use namespaces::enter;
pub use processes::Stopped;
use std::any::Any;
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;
use xoff_outcome::{Outcome, tap::Tap};
use xoff_plan::plan::Plan;
pub use xoff_sim::Death;
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
    /// The numbers of the processes of the devices; none if they are threads.
    pub processes: Vec<u32>,
    /// Devices whose processes died. Their part of the outcome is missing.
    pub deaths: Vec<Death>,
    /// Devices whose processes were stopped for a while.
    pub stops: Vec<Stopped>,
}

impl Made {
    /// Whether no event was later than the bound, no frame came too late, and no device died.
    pub fn is_valid(&self) -> bool {
        self.lateness.latest <= self.bound && self.lateness.overtaken == 0 && self.deaths.is_empty()
    }
}

/// Called when the links are up, with a function by which the calling thread joins a device's namespace. The result is
/// dropped before the devices end.
pub type Ready<'r> = &'r mut dyn FnMut(&dyn Fn(NodeId) -> Result<(), String>) -> Result<Box<dyn Any>, String>;

/// Runs a plan. [`enter`] was called before, and [`refuse::refusal`] returns nothing about the plan. Devices are
/// processes, which need an allocator that knows [`memory`]; or threads of this process, if it is to be the only
/// one.
///
/// # Errors
/// The system refuses a namespace, a link, a socket, a process or a thread, or a frame was lost, or a device has
/// failed. The text says which.
pub fn run(
    plan: &Plan,
    clock: Clock,
    one_process: bool,
    tap: Option<Tap<'_>>,
    ready: Ready,
    watch: &mut Watch,
) -> Result<Made, String> {
    let dilate = match clock {
        Clock::Wall { dilate } => Some(dilate),
        Clock::Lockstep => None,
    };
    let bound = refuse::least_delay(plan);
    if !one_process {
        let ran = processes::run(plan, dilate, tap, ready, watch)?;
        let processes::Ran { outcome, lateness, sent, processes, deaths, stops, took } = ran;
        return Ok(Made { outcome, lateness, bound, sent, took, processes, deaths, stops });
    }
    let veths = wires::Veths::new(plan)?;
    let _guest = ready(&|device| veths.join(device))?;
    let began = Instant::now();
    let (outcome, lateness) = xoff_sim::run_wired(plan, &veths, dilate, tap, watch)?;
    let took = began.elapsed();
    let (processes, deaths, stops) = Default::default();
    Ok(Made { outcome, lateness, bound, sent: veths.sent(), took, processes, deaths, stops })
}
