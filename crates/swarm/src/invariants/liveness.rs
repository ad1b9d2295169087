//! A run ends, and says why.

use xoff_kernel::time::MILLISECOND;
use xoff_plan::Loaded;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_sim::outcome::{Outcome, Stop};

use super::{Broken, holds};

/// The reason of the end fits the results of the flows.
pub fn ended(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let plan = &loaded.plan;
    let done = outcome.flows.iter().all(|f| f.ended().is_some());
    let said = |what: &str| {
        let left = outcome.flows.iter().filter(|f| f.ended().is_none()).count();
        let counters = outcome.counters;
        Err(Broken::new(
            what,
            format!("{:?} at {} ps, {left} flows left, {counters:?}", outcome.stop, outcome.end),
        ))
    };
    match outcome.stop {
        Stop::AllDone if !done => said("all done means all flows"),
        Stop::EndTime if plan.end.is_none() => said("an end time where there is none"),
        Stop::Starved if done => said("starved flows are unfinished"),
        Stop::Starved => match starved_for_a_reason(loaded, outcome) {
            true => Ok(()),
            false => said("starved for a reason"),
        },
        Stop::Livelock if plan.end.is_some() => said("a livelock ends runs without a duration only"),
        Stop::Livelock if outcome.livelock.is_none() || outcome.deadlock.is_some() => {
            said("a livelock names its flows, and is no deadlock")
        }
        _ => holds(plan.end.is_none_or(|end| outcome.end <= end), "no run ends after its end", || {
            format!("{} of {:?}", outcome.end, plan.end)
        }),
    }
}

/// Whether something explains that the run has no more progress: a deadlock or a queue that waits, packets
/// that no host retransmits, resumes that are never sent, faults, or a clock that is so wrong that no device
/// receives its host's frames.
fn starved_for_a_reason(loaded: &Loaded, outcome: &Outcome) -> bool {
    let plan = &loaded.plan;
    let faulty = !plan.faults.down.is_empty() || !plan.faults.losses.is_empty();
    // Flows after one that failed may never begin.
    let failed = outcome.flows.iter().any(|f| f.failed.is_some());
    // If routes end before the destination, the ideal is unknown.
    let cut_off =
        plan.flows.iter().zip(&outcome.flows).any(|(f, seen)| seen.completed.is_none() && f.ideal == 0);
    let pods = plan.pods.as_ref().is_some_and(|z| z.acks.is_none());
    let unheard = outcome
        .records
        .get::<xoff_schemes::scheduling::zeropod::report::Report>()
        .is_some_and(|z| z.off_time > 0);
    let lost = outcome.drops.iter().any(|d| d.packets > 0);
    // A resume may never be sent then.
    let one_flag = matches!(&plan.flow_control, FlowControlParams::PortFc(p) if p.variant.one_flag);
    let for_good = one_flag && outcome.pauses.iter().any(|p| p.until.is_none());
    outcome.deadlock.is_some()
        || !outcome.waiting.is_empty()
        || faulty
        || failed
        || cut_off
        || unheard
        || pods && lost
        || for_good
}

/// A run that was cut short twice has got on in between, or was cut before its timers could expire:
/// control planes may fill a millisecond with millions of events.
///
/// # Errors
/// It may never end.
pub fn headway(loaded: &Loaded, one: &Outcome, more: &Outcome) -> Result<(), Broken> {
    let done = |o: &Outcome| {
        let bytes: u64 = o.flows.iter().map(|f| f.delivered_bytes).sum();
        (bytes, o.flows.iter().filter(|f| f.ended().is_some()).count())
    };
    let plan = &loaded.plan;
    let ends = plan.end.is_some() || more.stop != Stop::Interrupted;
    let patience = plan.transport.rto.max(plan.flow_control.traits().patience);
    let soon = (more.end - one.end) / 4 <= patience.max(10 * MILLISECOND);
    holds(ends || soon || done(one) < done(more), "liveness", || {
        format!("no byte more from {} to {} ps: {:?}", one.end, more.end, more.counters)
    })
}
