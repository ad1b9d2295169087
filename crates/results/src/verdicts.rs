//! The verdicts of the oracles on a run. Each zero is beside the activity that gives it meaning.

use serde::Serialize;

use crate::blocking::{BlockingSummary, victim_times};
use crate::drops::DropSummary;
use crate::pauses::PauseSummary;
use crate::sections::{priorities, ran};
use crate::{human, statistics};
use xoff_outcome::report::{Promise, Section};
use xoff_outcome::{Livelock, Outcome, Stop};
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    Held,
    Broken,
    NotPromised,
}

/// One oracle's word on the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// `losslessness`, `deadlock-freedom`, `conservation`, `completion` or `no-victims`.
    pub property: &'static str,
    pub state: State,
    /// The reason, with the activity that makes a zero mean something.
    pub text: String,
}

/// Every verdict, always the same properties in the same order; that on blocking if it was measured.
pub fn verdicts(
    plan: &Plan,
    outcome: &Outcome,
    drops: &DropSummary,
    pauses: &PauseSummary,
    blocking: Option<&BlockingSummary>,
    sections: &[Section],
) -> Vec<Verdict> {
    let c = outcome.counters;
    let activity =
        format!("{} sent, {}", human::counted(c.sent, "data packet"), human::counted(pauses.count, "pause"));
    let lossless = if let Some(promise) = sections.iter().find_map(|section| section.lossless.clone()) {
        match promise {
            Promise::Held(text) => (State::Held, text),
            Promise::Broken(text) => (State::Broken, text),
        }
    } else if !plan.lanes.iter().any(|l| l.lossless) {
        (State::NotPromised, "no priority is lossless".to_string())
    } else if drops.lossless_packets > 0 {
        let promised = plan.flow_control.promises_no_loss(&ran(plan, outcome, &priorities(plan)));
        let state = if promised { State::Broken } else { State::NotPromised };
        let lost = human::counted(drops.lossless_packets, "lossless packet");
        let why = if promised { "" } else { ", and no buffer size is known to prevent it" };
        (state, format!("{lost} dropped{why} ({activity})"))
    } else if let Some((by, packets)) = drops.by_scheme.first() {
        let lost = human::counted(*packets, "packet");
        (State::NotPromised, format!("{lost} dropped {by}; no other lossless drop"))
    } else {
        (State::Held, format!("no lossless packet dropped ({activity})"))
    };
    let deadlock = match &outcome.deadlock {
        Some(d) => {
            let ended = d.ended.map_or(String::new(), |at| format!(" and ended at {}", human::time(at)));
            // A scheme that ends deadlocks lets them form.
            let state = match d.ended {
                Some(_) if plan.flow_control.traits().ends_deadlocks => State::NotPromised,
                _ => State::Broken,
            };
            (state, format!("a cycle of {} queues formed at {}{ended}", d.cycle.len(), human::time(d.closed)))
        }
        None => (State::Held, format!("no deadlock ({activity})")),
    };
    let conserved = c.delivered + c.dropped + c.in_flight == c.sent;
    let [sent, delivered, dropped, in_flight] =
        [c.sent, c.delivered, c.dropped, c.in_flight].map(human::count);
    let sum = format!("{sent} sent, {delivered} delivered, {dropped} dropped, {in_flight} in flight");
    let conservation = (if conserved { State::Held } else { State::Broken }, sum);
    let begun = outcome.flows.iter().filter(|o| statistics::started(o));
    let (all, done, failed) = begun.fold((0, 0, 0), |(all, done, failed), o| {
        (all + 1, done + u64::from(o.completed.is_some()), failed + u64::from(o.failed.is_some()))
    });
    // A run that ends at a set time does not promise that the flows in flight finish.
    let completed = match outcome.stop {
        _ if all == done => State::Held,
        _ if failed > 0 => State::Broken,
        _ if outcome.livelock.is_some() => State::Broken,
        Stop::EndTime | Stop::Interrupted | Stop::Memory => State::NotPromised,
        Stop::AllDone | Stop::Starved | Stop::Livelock => State::Broken,
    };
    let since = |l: &Livelock| format!("livelock since {}: ", human::time(l.since));
    let livelock = outcome.livelock.as_ref().map_or(String::new(), since);
    let (finished, all) = (human::count(done), human::counted(all, "flow"));
    let given_up = match failed {
        0 => String::new(),
        n => format!(", {} failed", human::count(n)),
    };
    let completion = (completed, format!("{livelock}{finished} of {all} finished{given_up}"));
    [
        ("losslessness", lossless),
        ("deadlock-freedom", deadlock),
        ("conservation", conservation),
        ("completion", completion),
    ]
    .into_iter()
    .chain(blocking.map(|b| ("no-victims", no_victims(plan, b))))
    .map(|(property, (state, text))| Verdict { property, state, text })
    .collect()
}

/// Whether no flow waited for a port off its path. Pauses of single flows promise it; others do not.
fn no_victims(plan: &Plan, blocking: &BlockingSummary) -> (State, String) {
    let waits = &blocking.waits;
    let pauses = human::counted(blocking.pauses, "pause");
    if waits.all_victim() == 0 {
        return (State::Held, format!("no victim waited ({pauses})"));
    }
    let waited = victim_times(waits.victim, waits.source_victim);
    if blocking.named_waits > 0 && waits.all_named_victim() == 0 {
        let text = format!(
            "no flow waited for a port off its path that a pause named ({pauses}); by the packets' position: {waited}"
        );
        return (State::Held, text);
    }
    let promised = plan.flow_control.traits().pause_scope == PauseScope::Flow;
    let state = if promised { State::Broken } else { State::NotPromised };
    (state, format!("victims: {waited} ({pauses})"))
}
