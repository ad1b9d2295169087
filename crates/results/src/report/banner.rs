//! The most important finding of a run, in one sentence.

use serde::Serialize;
use serde_json::Value as Json;

use super::{int, text};
use crate::explain::Overview;
use crate::human;
use crate::statistics::ALL;
use crate::summary::stop_words;

/// Victim waiting below this share of the time of all flows is no finding.
const VICTIMS: f64 = 0.01;
/// A p99 slowdown from which the tail is a finding.
const SLOW: f64 = 10.0;

/// What a run is, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Packets of a lossless priority were lost.
    Loss,
    Deadlock,
    Livelock,
    /// It ended early.
    Partial,
    /// Flows waited for congestion off their path.
    Victims,
    /// The slowest flows took many times their ideal time, or did not finish.
    Slow,
    Fine,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Banner {
    pub state: State,
    pub text: String,
    /// The instant that shows it; null if none does.
    pub at_ps: Option<u64>,
}

/// From the summary of a run, and the explanation of all its flows if there is one.
pub fn of_run(summary: &Json, overview: Option<&Overview>) -> Banner {
    let banner = |state, text, at_ps| Banner { state, text, at_ps };
    let groups = summary["sizes"].as_array();
    let all =
        groups.and_then(|groups| groups.iter().find(|group| group["name"] == ALL)).unwrap_or(&Json::Null);
    let (flows, finished) = (int(all, "/flows"), int(all, "/finished"));
    let failed = int(all, "/failed");
    let unfinished = flows.saturating_sub(finished + failed);
    let share = |part: u64, of: u64| format!("{:.0}%", part as f64 * 100.0 / of.max(1) as f64);
    let lost = int(summary, "/drops/lossless_packets");
    if lost > 0 {
        let places = summary["drops"]["places"].as_array();
        let lossless = places.into_iter().flatten().filter(|place| place["lossless"] == true);
        let first = lossless.min_by_key(|place| int(place, "/first_ps"));
        let at = first.map(|place| int(place, "/first_ps"));
        let began = at.map_or(String::new(), |at| format!(", first at {}", human::time(at)));
        let packets = human::counted(lost, "lossless packet");
        let was = if lost == 1 { "was" } else { "were" };
        return banner(State::Loss, format!("{packets} {was} lost{began}."), at);
    }
    let deadlock = &summary["deadlock"];
    if deadlock.is_object() {
        let at = int(deadlock, "/closed_ps");
        let ports = human::counted(deadlock["cycle"].as_array().map_or(0, Vec::len) as u64, "port");
        let then = match deadlock["ended_ps"].as_u64() {
            Some(ended) => format!("it ended at {}", human::time(ended)),
            None => format!("{} of {} unfinished", share(unfinished, flows), human::counted(flows, "flow")),
        };
        return banner(
            State::Deadlock,
            format!("Deadlock at {}: {ports}, {then}.", human::time(at)),
            Some(at),
        );
    }
    if let Some(since) = summary["livelock"]["since_ps"].as_u64() {
        let text =
            format!("Livelock since {}: packets move, but flows make no progress.", human::time(since));
        return banner(State::Livelock, text, Some(since));
    }
    if summary["complete"] == false {
        let (why, end) = (stop_words(text(summary, "/stop")), int(summary, "/simulated_ps"));
        return banner(State::Partial, format!("Partial result: {why} at {}.", human::time(end)), Some(end));
    }
    let p99 = all["slowdown"]["p99"].as_f64();
    let tail = p99.map_or(String::new(), |p99| format!(" p99 slowdown {}.", human::ratio(p99)));
    if let Some(found) =
        overview.filter(|o| o.victim_ps as f64 >= VICTIMS * o.took_ps.max(1) as f64 && o.victim_ps > 0)
    {
        let who = human::counted(found.victim_flows as u64, "victim");
        let root =
            found.roots.first().map_or(String::new(), |root| format!(", mostly because of {}", root.port));
        let text = format!(
            "{who} waited {} of the time of all flows for congestion off their path{root}.{tail}",
            share(found.victim_ps, found.took_ps)
        );
        return banner(State::Victims, text, None);
    }
    if failed > 0 {
        let text = format!("{} of {} failed.{tail}", human::count(failed), human::counted(flows, "flow"));
        return banner(State::Slow, text, None);
    }
    if unfinished > 0 {
        let text = format!(
            "{} of {} did not finish.{tail}",
            human::count(unfinished),
            human::counted(flows, "flow")
        );
        return banner(State::Slow, text, None);
    }
    if let Some(p99) = p99.filter(|&p99| p99 >= SLOW) {
        let text =
            format!("A slow tail: 1% of the flows took at least {}× their ideal time.", human::ratio(p99));
        return banner(State::Slow, text, None);
    }
    let victims = if overview.is_some() { " no victims," } else { "" };
    let text = match flows {
        0 => "No flow started.".into(),
        n => format!(
            "No packet of a lossless priority was lost,{victims} no deadlock: {} finished.{tail}",
            human::counted(n, "flow")
        ),
    };
    banner(State::Fine, text, None)
}
