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
    sentences.push(match (int(summary, "/pauses/count"), int(summary, "/pauses/queues")) {
        (0, _) => "There were no pauses.".into(),
        (count, queues) => format!(
            "{} on {} lasted {} in total.",
            human::counted(count, "pause"),
            human::counted(queues, "queue"),
            human::time(int(summary, "/pauses/total_ps"))
        ),
    });
    sentences.push(deadlock(summary, &end));
    if let Some(since) = summary["livelock"]["since_ps"].as_u64() {
        let flows = summary["livelock"]["flows"].as_array().map_or(0, Vec::len);
        sentences.push(format!(
            "LIVELOCK since {}: packets moved, but {} made no progress.",
            human::time(since),
            human::counted(flows as u64, "flow")
        ));
    }
    sentences.join(" ")
}

fn flows(manifest: &Json, summary: &Json) -> String {
    let groups = summary["sizes"].as_array();
    let all = groups.and_then(|groups| groups.iter().find(|group| group["name"] == ALL));
    let all = all.unwrap_or(&Json::Null);
    let (began, finished) = (int(all, "/flows"), int(all, "/finished"));
    let scheme = text(summary, "/flow_control");
    let traffic = traffic(manifest);
    if began == 0 {
        return format!("No flow started with {scheme}{traffic}.");
    }
    let many = match finished {
        n if n == began && n == 1 => format!("The one flow{traffic} finished with {scheme}"),
        n if n == began => format!("All {}{traffic} finished with {scheme}", human::counted(n, "flow")),
        0 => format!("None of {}{traffic} finished with {scheme}", human::counted(began, "flow")),
        n => format!(
            "{} of {}{traffic} finished with {scheme}",
            human::count(n),
            human::counted(began, "flow")
        ),
    };
    match (all["slowdown"]["mean"].as_f64(), all["slowdown"]["p99"].as_f64()) {
        (Some(mean), Some(p99)) => {
            format!("{many}: mean slowdown {}, p99 {}.", human::ratio(mean), human::ratio(p99))
        }
        _ => format!("{many}."),
    }
}

/// The traffic in words: ` (mice at load 0.1 and incast)`.
fn traffic(manifest: &Json) -> String {
    let tables = manifest["scenario"]["traffic"].as_array().map(Vec::as_slice).unwrap_or_default();
    let one = |table: &Json| {
        let name = table["name"].as_str().or(table["kind"].as_str()).unwrap_or("traffic");
        match table["load"].as_f64() {
            Some(load) => format!("{name} at load {load}"),
            None => name.to_string(),
        }
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
    let lossless = int(summary, "/drops/lossless_packets");
    match (lost(summary), lossless) {
        (0, _) => "No packet was dropped.".into(),
        (n, 0) => format!("{} dropped.", were(n)),
        (n, lossless) => {
            format!("{} dropped, {} of them in lossless priorities.", were(n), human::count(lossless))
        }
    }
}

fn were(packets: u64) -> String {
    format!("{} {}", human::counted(packets, "packet"), if packets == 1 { "was" } else { "were" })
}

fn deadlock(summary: &Json, end: &str) -> String {
    let deadlock = &summary["deadlock"];
    if deadlock.is_null() {
        return "There was no deadlock.".into();
    }
    let ports = deadlock["cycle"].as_array().map_or(0, Vec::len);
    let closed = human::time(int(deadlock, "/closed_ps"));
    let ended = match deadlock["ended_ps"].as_u64() {
        Some(at) => format!("until {}", human::time(at)),
        None => format!("and the deadlock persisted until the end of the run at {end}"),
    };
    format!(
        "DEADLOCK: at {closed}, {} blocked each other in a cycle, {ended}.",
        human::counted(ports as u64, "port")
    )
}
