//! A report in words: the first sentence is the verdict.

use crate::certificate::{Entry, Routes};
use crate::{
    ClassReport, CycleReport, EdgeReport, Report, Suggestion, Verdict, blocking, routes::Kind,
    witness::EVENTS,
};
use std::fmt::Write;
use xoff_net::human::grouped;
use xoff_schemes::scheduling::PodsKeys;

/// Flows that are listed for each edge.
const LISTED: usize = 3;

pub fn render(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    let name = &report.scenario;
    match &report.verdict {
        Verdict::Safe { .. } if report.flow_control == PodsKeys::NAME => {
            writeln!(out, "{name} cannot deadlock: pods have no buffers in which packets wait.")?;
        }
        Verdict::Safe { .. } if report.pause_stops == "nothing" => {
            writeln!(out, "{name} cannot deadlock: its flow control never pauses.")?;
        }
        Verdict::Safe { .. } if report.waits == 0 => {
            writeln!(
                out,
                "{name} cannot deadlock{}: no paused queue waits for another device.",
                scope(report)
            )?;
        }
        Verdict::Safe { compared } => {
            writeln!(out, "{name} cannot deadlock{}: no cycle of waits is possible.", scope(report))?;
            sampled(out, report)?;
            let steps = |n: u64| format!("; verified along {}, at {}", along(report), counted(n, "step"));
            let (waits, verified) =
                (counted(report.waits as u64, "wait"), compared.map_or(String::new(), steps));
            writeln!(out, "\nProof: in an order of {waits}, each waits only for later ones{verified}.")?;
        }
        Verdict::CanDeadlock { cycle, witness } => {
            writeln!(
                out,
                "{name} can deadlock: {} can block each other in a cycle, and a simulation confirms it.",
                counted(cycle.edges.len() as u64, "queue")
            )?;
            write_cycle(out, cycle)?;
            let (at, ports) = (microseconds(witness.closed_ps), witness.ports.join(" -> "));
            writeln!(out, "\nThe simulation ({}) deadlocked at {at}: {ports}.", witness.about)?;
        }
        Verdict::CycleWithoutWitness { cycle, tried, cut, .. } => {
            let queues = counted(cycle.edges.len() as u64, "queue");
            let (may, can) = match report.pause_stops {
                "root" => ("is not proved deadlock-free", "might"),
                _ => ("may deadlock", "can"),
            };
            let unsteady =
                cycle.edges.iter().any(|e| !e.passed_on && e.closed_by.iter().all(|c| c.path.is_empty()));
            let but = match unsteady {
                true => "while routes change, which generated scenarios cannot test",
                false => "but no simulation deadlocked",
            };
            writeln!(out, "{name} {may}: {queues} {can} block each other in a cycle, {but}.")?;
            write_cycle(out, cycle)?;
            if !unsteady {
                let were = match tried.len() {
                    1 => "One scenario was".to_string(),
                    n => format!("{n} scenarios were"),
                };
                writeln!(out, "\n{were} generated and simulated without a deadlock, which is not a proof:")?;
                tried.iter().try_for_each(|what| writeln!(out, "  - {what}"))?;
                if *cut > 0 {
                    writeln!(
                        out,
                        "The search is limited to {1} million events, so it stopped {cut} of {0} early. A longer \
                         simulation may still deadlock.",
                        counted(tried.len() as u64, "simulation"),
                        EVENTS / 1_000_000
                    )?;
                }
            }
        }
    }
    writeln!(
        out,
        "\nflow control {} (a pause stops {}); {} with {}, along {}",
        report.flow_control,
        match report.pause_stops {
            "lane" => "a priority on a link",
            "lanes" => "lossless priorities on a link, which can wait for each other",
            "link" => "a whole link",
            "queue" => "a queue of a link",
            "flow" => "a flow on a link",
            "onward" => "the packets for one egress port of the next device",
            "root" => "the packets that cross one congested port",
            _ => "nothing",
        },
        counted(report.waits as u64, "wait"),
        counted(report.dependencies as u64, "dependency"),
        match report.routes {
            Routes::Scenario => format!("the routes of {}", counted(report.flows as u64, "flow")),
            Routes::All(_) => along(report).to_string(),
        },
    )?;
    if report.failures.is_none() && report.routes.has_failures() && report.waits > 0 {
        writeln!(out, "no failure was examined, because the intact network already has a cycle")?;
    }
    if let Some(failures) = &report.failures {
        let examined: Vec<String> = failures.classes.iter().map(class).collect();
        writeln!(
            out,
            "failures examined: {}; {} change routes, {} make a cycle possible",
            examined.join(", "),
            failures.changing,
            failures.cyclic.len()
        )?;
        if let Some(shown) = &failures.shown {
            let when = if failures.lasting { "" } else { ", while routes change" };
            writeln!(out, "the cycle above is possible with {shown} down{when}")?;
        }
        if !failures.cyclic.is_empty() {
            writeln!(out, "a cycle is possible with:")?;
        }
        failures.cyclic.iter().take(16).try_for_each(|link| writeln!(out, "  {link}"))?;
        if failures.cyclic.len() > 16 {
            writeln!(out, "  and {} more", failures.cyclic.len() - 16)?;
        }
    }
    if let Some(suggestions) = &report.suggestions {
        write_suggestions(out, suggestions)?;
    }
    if report.flows > 0 {
        write!(out, "\n{}", blocking::render(&report.blocking, report.pause_stops != "nothing"))?;
    }
    report.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// The routes for which the verdict holds.
fn along(report: &Report) -> &'static str {
    let sampled = report.failures.as_ref().is_some_and(|failures| !failures.is_exhaustive());
    match report.routes {
        Routes::Scenario => "the flows' routes",
        routes if routes.has_failures() && !sampled => {
            "all routes between all hosts with each of these failures"
        }
        Routes::All(_) => "all routes between all hosts",
    }
}

/// The same in the first sentence.
fn scope(report: &Report) -> String {
    if report.routes == Routes::Scenario {
        return " on the routes of its flows".to_string();
    }
    let mut scope = format!(" under {} routing", report.routing);
    if let Some(failures) = report.failures.as_ref().filter(|failures| failures.is_exhaustive()) {
        let any = |switches: bool| {
            let most =
                failures.classes.iter().filter(|c| c.switches == switches).map(|c| c.together).max()?;
            let what = if switches { "switch" } else { "link" };
            Some(match most {
                1 => format!("any one {what}"),
                most => format!("up to {most} {what}{}", if switches { "es" } else { "s" }),
            })
        };
        let cases: Vec<String> = [any(false), any(true)].into_iter().flatten().collect();
        scope.push_str(&format!(" with {} down", cases.join(" or ")));
    }
    scope
}

/// What was not examined completely, or not at all.
fn sampled(out: &mut String, report: &Report) -> std::fmt::Result {
    let Some(failures) = &report.failures else {
        return match report.routes {
            Routes::Scenario => Ok(()),
            Routes::All(_) => writeln!(out, "Failures were not examined (--failures links=1,switches=1)."),
        };
    };
    if !failures.is_exhaustive() {
        let examined: Vec<String> = failures.classes.iter().map(class).collect();
        writeln!(
            out,
            "Under failures no cycle was found, which is no proof: examined {}.",
            examined.join(", ")
        )?;
    }
    for (switches, what) in [(false, "Link"), (true, "Switch")] {
        if !failures.classes.iter().any(|class| class.switches == switches) {
            writeln!(out, "{what} failures were not examined.")?;
        }
    }
    Ok(())
}

/// A class of failures: `4,096 of 8,256 pairs of links`.
fn class(class: &ClassReport) -> String {
    let one = class.of == 1;
    let what = match (class.together, class.switches, one) {
        (1, false, true) => "link".to_string(),
        (1, false, false) => "links".to_string(),
        (1, true, true) => "switch".to_string(),
        (1, true, false) => "switches".to_string(),
        (2, switches, _) => format!("pairs of {}", if switches { "switches" } else { "links" }),
        (n, switches, _) => format!("sets of {n} {}", if switches { "switches" } else { "links" }),
    };
    format!("{} of {} {what}", grouped(class.examined as u64), grouped(class.of))
}

fn write_suggestions(out: &mut String, all: &[Suggestion]) -> std::fmt::Result {
    let (proved, others): (Vec<&Suggestion>, Vec<&Suggestion>) = all.iter().partition(|s| s.proved);
    match proved.is_empty() {
        true => writeln!(out, "\nNo change was found after which the same check gives a proof. Examined:")?,
        false => writeln!(out, "\nEach of these changes makes it deadlock-free; the same check proves it:")?,
    }
    let listed = if proved.is_empty() { &others } else { &proved };
    listed.iter().try_for_each(|s| writeln!(out, "  --set '{}={}'", s.set[0], s.set[1]))
}

fn write_cycle(out: &mut String, cycle: &CycleReport) -> std::fmt::Result {
    let edges = cycle.edges.iter().chain(cycle.edges.first());
    let ports: Vec<String> = edges.map(|e| wait(&e.from)).collect();
    let kind = if cycle.shortest { "This is a shortest cycle" } else { "A shorter cycle may exist" };
    writeln!(
        out,
        "\n{}\n{kind}. Each queue could wait for the next, because packets of these flows cross both:",
        ports.join(" -> ")
    )?;
    cycle.edges.iter().try_for_each(|edge| write_edge(out, edge))?;
    // Flows are counted on their own routes only.
    let Some(least) = cycle.edges.iter().filter(|edge| edge.flows > 0).min_by_key(|edge| edge.flows) else {
        return Ok(());
    };
    if cycle.edges.iter().any(|edge| edge.passed_on) {
        return Ok(());
    }
    writeln!(
        out,
        "\nOther routes for {} over {} -> {} would break this cycle; other cycles may remain.",
        match least.flows {
            1 => "the one flow".to_string(),
            n => format!("the {} flows", grouped(n)),
        },
        wait(&least.from),
        wait(&least.to)
    )
}

fn write_edge(out: &mut String, edge: &EdgeReport) -> std::fmt::Result {
    writeln!(out, "  {} -> {}", wait(&edge.from), wait(&edge.to))?;
    if edge.passed_on {
        writeln!(out, "    the device between them passes pauses on")?;
    }
    for route in edge.closed_by.iter().take(LISTED) {
        let what = match (route.packets, route.path.is_empty()) {
            (_, true) => ", while routes change".to_string(),
            (Kind::Data, _) => format!(", {}", route.path.join(" ")),
            (Kind::Control, _) => format!(", its ACKs, {}", route.path.join(" ")),
        };
        writeln!(out, "    {}{what}", route.name)?;
    }
    let more = edge.flows.saturating_sub(edge.closed_by.len().min(LISTED) as u64);
    if more > 0 {
        writeln!(out, "    and {more} more")?;
    }
    Ok(())
}

/// A wait by its port, with priority and flow where they distinguish it from others.
fn wait(entry: &Entry) -> String {
    match (entry.flow, &entry.queue, &entry.root) {
        (Some(flow), _, _) => format!("{} (flow {flow})", entry.port),
        (None, Some(queue), _) => format!("{} {queue}", entry.port),
        (None, None, Some(root)) => format!("{}/{} for {root}", entry.port, entry.priority),
        (None, None, None) => format!("{}/{}", entry.port, entry.priority),
    }
}

fn counted(n: u64, what: &str) -> String {
    let text = grouped(n);
    match (n, what.strip_suffix('y')) {
        (1, _) => format!("{text} {what}"),
        (_, Some(stem)) => format!("{text} {stem}ies"),
        _ => format!("{text} {what}s"),
    }
}

fn microseconds(ps: u64) -> String {
    format!("{:.1} us", ps as f64 / 1e6)
}
