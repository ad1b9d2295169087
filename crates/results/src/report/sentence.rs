//! The events in a few sentences, which readers see first.

use serde_json::Value as Json;

use super::{int, text};
use crate::human;
use crate::statistics::ALL;
use crate::summary::stop_words;

/// Kinds of traffic that are named.
const NAMED: usize = 3;

/// Of a run, from its manifest and summary.
pub fn of_run(manifest: &Json, summary: &Json) -> String {
    let mut sentences = Vec::new();
    let end = human::time(int(summary, "/simulated_ps"));
    if summary["complete"] == false {
        let why = stop_words(text(summary, "/stop"));
        sentences.push(format!("{why} at {end}: all results cover only the time until then."));
    }
    sentences.push(flows(manifest, summary));
    sentences.push(losses(summary));
    let pauses = &summary["pauses"];
    sentences.push(match int(pauses, "/count") {
        0 => "There were no pauses.".into(),
        count => {
            let queues = human::counted(int(pauses, "/queues"), "queue");
            let (count, total) = (human::counted(count, "pause"), human::time(int(pauses, "/total_ps")));
            format!("{count} on {queues} lasted {total} in total.")
        }
    });
    sentences.push(deadlock(summary, &end));
    if let Some(since) = summary["livelock"]["since_ps"].as_u64().map(human::time) {
        let flows = summary["livelock"]["flows"].as_array().map_or(0, Vec::len);
        let flows = human::counted(flows as u64, "flow");
        sentences.push(format!("LIVELOCK since {since}: packets moved, but {flows} made no progress."));
    }
    sentences.join(" ")
}

fn flows(manifest: &Json, summary: &Json) -> String {
    let groups = summary["sizes"].as_array();
    let all = groups.and_then(|groups| groups.iter().find(|group| group["name"] == ALL));
    let all = all.unwrap_or(&Json::Null);
    let (began, finished, failed) = (int(all, "/flows"), int(all, "/finished"), int(all, "/failed"));
    let scheme = text(summary, "/flow_control");
    let traffic = traffic(manifest);
    if began == 0 {
        return format!("No flow started with {scheme}{traffic}.");
    }
    let many = match finished {
        n if n == began && n == 1 => format!("The one flow{traffic} finished with {scheme}"),
        n if n == began => format!("All {}{traffic} finished with {scheme}", human::counted(n, "flow")),
        n => {
            let finished = if n == 0 { "None".into() } else { human::count(n) };
            let given_up =
                if failed == 0 { String::new() } else { format!(", {} failed", human::count(failed)) };
            format!(
                "{finished} of {}{traffic} finished with {scheme}{given_up}",
                human::counted(began, "flow")
            )
        }
    };
    match ["mean", "p99"].map(|key| all["slowdown"][key].as_f64().map(human::ratio)) {
        [Some(mean), Some(p99)] => format!("{many}: mean slowdown {mean}, p99 {p99}."),
        _ => format!("{many}."),
    }
}

/// The traffic in words: ` (mice at load 0.1 and incast)`.
fn traffic(manifest: &Json) -> String {
    let tables = manifest["scenario"]["traffic"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |table: &Json| {
        let name = table["name"].as_str().or(table["kind"].as_str()).unwrap_or("traffic");
        table["load"].as_f64().map_or(name.into(), |load| format!("{name} at load {load}"))
    };
    let mut names: Vec<String> = tables.iter().take(NAMED).map(one).collect();
    if tables.len() > NAMED {
        names.push(format!("{} more kinds", tables.len() - NAMED));
    }
    if names.is_empty() { String::new() } else { format!(" ({})", human::listed(&names)) }
}

/// All packets that were lost, for any reason.
pub fn lost(summary: &Json) -> u64 {
    let drops = summary["drops"].as_object();
    let counts = drops.into_iter().flatten().filter(|(key, _)| key.ends_with("_packets"));
    counts.filter_map(|(_, n)| n.as_u64()).sum()
}

fn losses(summary: &Json) -> String {
    let lost = lost(summary);
    let were = format!("{} {}", human::counted(lost, "packet"), if lost == 1 { "was" } else { "were" });
    match (lost, int(summary, "/drops/lossless_packets")) {
        (0, _) => "No packet was dropped.".into(),
        (_, 0) => format!("{were} dropped."),
        (_, n) => format!("{were} dropped, {} of them in lossless priorities.", human::count(n)),
    }
}

fn deadlock(summary: &Json, end: &str) -> String {
    let deadlock = &summary["deadlock"];
    if deadlock.is_null() {
        return "There was no deadlock.".into();
    }
    let ports = human::counted(deadlock["cycle"].as_array().map_or(0, Vec::len) as u64, "port");
    let closed = human::time(int(deadlock, "/closed_ps"));
    let ended = match deadlock["ended_ps"].as_u64() {
        Some(at) => format!("until {}", human::time(at)),
        None => format!("and the deadlock persisted until the end of the run at {end}"),
    };
    format!("DEADLOCK: at {closed}, {ports} blocked each other in a cycle, {ended}.")
}
