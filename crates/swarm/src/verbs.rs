//! Every verb of the program on a scenario and its result: none fails, and their outputs agree.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, process};

use serde_json::Value;
use xoff_check::certificate::Routes;
use xoff_outcome::report::{Level, Note};
use xoff_plan::Loaded;
use xoff_plan::size::links;
use xoff_results::capture::{self, What};
use xoff_results::directory::{self, About};
use xoff_results::explain::{self, read, text};
use xoff_results::{network, offered, report, size, summary, table};
use xoff_sim::outcome::tap::{Crossing, Tap};
use xoff_sim::outcome::{Outcome, Stop};

use crate::invariants::{self, Broken};

/// Ports whose packets are captured.
const CAPTURED: usize = 4;

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        // Memory rather than a disk, where there is such a place: results are synced.
        let memory = Path::new("/dev/shm");
        let root = if memory.is_dir() { memory.to_path_buf() } else { env::temp_dir() };
        Self(root.join(format!("xoff-swarm-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A file that could not be removed is no fault of the tested program.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The output of a verb, or the finding that it failed.
fn expect_success<T, E: Display>(verb: &str, result: Result<T, E>) -> Result<T, Broken> {
    result.map_err(|e| Broken::new(format!("{verb} succeeds"), e.to_string()))
}

/// JSON that a verb prints can be read again.
fn expect_json(verb: &str, value: &impl serde::Serialize) -> Result<Value, Broken> {
    let text = expect_success(verb, serde_json::to_string_pretty(value))?;
    expect_success(verb, serde_json::from_str(&text))
}

/// Whether an output has any text.
fn expect_text(verb: &str, text: &str) -> Result<(), Broken> {
    match text.trim().is_empty() {
        true => Err(Broken::new(format!("{verb} prints"), "nothing")),
        false => Ok(()),
    }
}

/// Every verb.
///
/// # Errors
/// The first that errs, or that contradicts the run.
pub fn all(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    before(loaded)?;
    check(loaded, outcome)?;
    let place = Place::new();
    expect_success("run", fs::create_dir_all(&place.0))?;
    directory(loaded, outcome, &place.0.join("run"))
}

/// Verbs that need no run.
fn before(loaded: &Loaded) -> Result<(), Broken> {
    expect_text("topo", &xoff_plan::describe::describe(loaded))?;
    expect_json("topo --json", &network::network(&loaded.plan))?;
    let offered = offered::offered("swarm", loaded);
    expect_text("traffic", &offered::render(&offered))?;
    expect_json("traffic --json", &offered)?;
    if let Ok(report) = links::links(&loaded.plan) {
        expect_text("size --scenario", &size::links::render("swarm", &report))?;
        expect_json("size --scenario --json", &report)?;
    }
    Ok(())
}

/// `check` returns, and does not call a deadlocked scenario safe.
fn check(loaded: &Loaded, outcome: &Outcome) -> Result<(), Broken> {
    let checked = xoff_check::check(loaded, "swarm", Routes::Scenario, &mut |_| true);
    // A scenario that it cannot check is an error message: that is a valid result.
    let Ok(Some(analysis)) = checked else { return Ok(()) };
    expect_text("check", &xoff_check::text::render(&analysis.report))?;
    expect_json("check --json", &analysis.report)?;
    let safe = matches!(analysis.report.verdict, xoff_check::Verdict::Safe { .. });
    match (&outcome.deadlock, safe) {
        (Some(deadlock), true) => {
            Err(Broken::new("check calls nothing safe that deadlocks", format!("{deadlock:?}")))
        }
        _ => Ok(()),
    }
}

/// A run with a capture writes its directory, and everything reads it.
fn directory(loaded: &Loaded, outcome: &Outcome, path: &Path) -> Result<(), Broken> {
    let plan = &loaded.plan;
    let mut summary = summary::summarise("swarm", plan, outcome);
    summary.add_notes(loaded.warnings.iter().map(|w| Note::new(Level::Warning, format!("{w}."))));
    expect_text("run", &table::render(&summary))?;
    let json = expect_json("run --json", &summary)?;
    if json["complete"].as_bool() != Some(outcome.stop != Stop::Interrupted) {
        return Err(Broken::new(
            "the summary says whether the run is complete",
            json["complete"].to_string(),
        ));
    }
    let mut writer = expect_success("run", directory::prepare(path))?;
    if plan.packet.mtu <= capture::LARGEST_PAYLOAD {
        let links = |p: &u32| plan.topology.neighbour(*p) != plan.topology.ports[*p as usize].node;
        let ports: Vec<u32> = (0..plan.topology.ports.len() as u32).filter(links).take(CAPTURED).collect();
        let snap = plan.seed.is_multiple_of(2).then_some(64);
        let what = What { ports: ports.clone(), snap, version: "swarm".into() };
        expect_success("run --pcap", writer.begin_capture(plan, &what))?;
        let mut written = true;
        let mut sink = |seen: &[Crossing]| written &= writer.capture(plan, seen);
        let threads = crate::trial::affordable(loaded, outcome).first().copied().unwrap_or(1);
        let tapped =
            xoff_sim::run_tapped(plan, threads, Tap { ports: &ports, sink: &mut sink }, &mut |_| true);
        invariants::same(outcome, &tapped, "with taps")?;
        if !written {
            return Err(Broken::new("run --pcap succeeds", "the capture cannot be written"));
        }
    }
    let about = About {
        scenario: expect_success("run", serde_json::to_value(&loaded.scenario))?,
        overrides: Vec::new(),
        version: "swarm".into(),
        wall_seconds: 0.0,
        live: None,
    };
    expect_success("run", writer.write(&about, plan, outcome, &summary))?;
    if plan.measure.explain {
        explained(plan, path)?;
    }
    let document = expect_success("report", report::document(path))?;
    expect_json("report", &document)?;
    let page = expect_success("report", report::write(path, None))?;
    let html = expect_success("report", fs::read_to_string(page))?;
    expect_text("report", &html)
}

/// `explain`: the run, its slowest flow, and a port.
fn explained(plan: &xoff_plan::plan::Plan, path: &Path) -> Result<(), Broken> {
    let run = expect_success("explain", read::read(path))?;
    let overview = expect_success(
        "explain",
        explain::overview(path, &run, explain::Choice::default(), explain::SLOWEST),
    )?;
    expect_text("explain", &text::overview(&overview))?;
    expect_json("explain --json", &overview)?;
    // A run may end before its first flow starts.
    for id in [0, plan.flows.len().wrapping_sub(1)].into_iter().filter(|&id| id < plan.flows.len()) {
        let answer = expect_success("explain --flow", explain::flow(path, &run, id))?;
        expect_text("explain --flow", &text::flow(&answer))?;
        expect_json("explain --flow --json", &answer)?;
    }
    let port = plan.topology.port_name(plan.topology.ports.len() as u32 / 2);
    let answer =
        expect_success("explain --port", explain::port(path, &run, &port, explain::Choice::default()))?;
    expect_text("explain --port", &text::port(&answer))?;
    expect_json("explain --port --json", &answer)?;
    Ok(())
}
