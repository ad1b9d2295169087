//! The world: [`xoff_plan::plan::Plan`] in, [`outcome::Outcome`] out. It does not depend on terminals, nor on
//! files but Linux's list of cores and their load. Plans of pods without buffers go on to [`xoff_zeropod`].
//!
//! One loop takes events in their total order. A port has at most one transmission decision pending, for the
//! time when its wire is free, and only if something that may go waits: so an idle or paused port costs
//! nothing, and the queue is chosen when the wire is free. Several threads may each run a part of the
//! devices; the result has the same bytes.

#![allow(missing_docs)]

mod core;
mod engine;
mod faults;
mod features;
mod footprint;
mod host;
mod indices;
mod kind;
mod observe;
mod oracle;
mod packet;
mod parallel;
mod samples;
mod switch;
mod tap;
mod world;

pub use parallel::carrier::Carrier;
pub use parallel::executor::run_wired;
pub use parallel::fleet::{Answer, Apart, Crew, Death, Order, Station};
pub use parallel::pace::{Lateness, Pace};
use parallel::partition::{Length, length};
pub use parallel::wires::{Delivery, Wires};
pub use xoff_outcome as outcome;
use xoff_outcome::{Outcome, Progress, tap::Tap};
use xoff_plan::plan::Plan;

/// It sees the progress of a run, and returns whether this goes on.
pub type Watch<'w> = dyn FnMut(&Progress) -> bool + 'w;

/// Runs a plan on one thread: see [`run_on`].
pub fn run(plan: &Plan, watch: &mut Watch) -> Outcome {
    run_on(plan, 1, watch)
}

/// Runs a plan on at most `threads` threads to its end, or until `watch` returns `false`. The number of
/// threads changes nothing in the outcome of a run that is not cut short; [`worthwhile_threads`] returns how
/// many help.
///
/// # Panics
/// If packets are not conserved (sent ≠ delivered + dropped + in flight): never the fault of a plan.
pub fn run_on(plan: &Plan, threads: usize, watch: &mut Watch) -> Outcome {
    match &plan.pods {
        Some(pods) => xoff_zeropod::run(plan, pods, None, watch),
        None => parallel::executor::run(plan, threads, None, watch),
    }
}

/// The same, with taps: the crossings of some ports are handed on during the run. That does not change the
/// outcome, and is the same for any number of threads. Panics if a port is inside a slow receiver.
pub fn run_tapped(plan: &Plan, threads: usize, tap: Tap<'_>, watch: &mut Watch) -> Outcome {
    match &plan.pods {
        Some(pods) => {
            let Tap { ports, sink } = tap;
            xoff_zeropod::run(plan, pods, Some(Tap { ports, sink: &mut *sink }), watch)
        }
        None => parallel::executor::run(plan, threads, Some(tap), watch),
    }
}

/// How many of `threads` threads, at least 1, make a run faster: they wait for each other after each window,
/// which is as short as the shortest link between two of them, and may contain too little to share.
pub fn worthwhile_threads(plan: &Plan, threads: usize) -> usize {
    parallel::partition::worthwhile(plan, threads)
}

/// The default number of threads of a run on `cores` cores: two if the run has half a million packet-hops or more
/// and [`worthwhile_threads`] allows two, else one.
pub fn default_threads(plan: &Plan, cores: usize) -> usize {
    parallel::partition::default_parts(plan, cores)
}

/// `threads`, or 1 if other processes use the cores now. Where the system does not say that they are free, those of a
/// run of four million packet-hops or more are measured for 20 ms: whether one thread is as fast. Linux only; `threads`
/// on other systems.
pub fn threads_with_cores(plan: &Plan, threads: usize) -> usize {
    let length = length(plan);
    if threads == 1 || length == Length::Short {
        return threads;
    }
    match (parallel::cpus::all_free(threads), length) {
        (Some(true), _) => threads,
        (_, Length::Long) => parallel::cpus::free(threads),
        (Some(false), _) => 1,
        (None, _) => threads,
    }
}
