//! Everything that the page of a run shows.

use std::path::Path;

use serde::Serialize;
use serde_json::Value as Json;

use super::banner::{self, Banner};
use super::clock::Clock;
use super::fabric::{self, Fabric};
use super::flows::{self, Flows};
use super::jobs::{self, Job};
use super::pauses::{self, Pauses};
use super::rankings::{self, Ranking};
use super::series::{self, Series};
use super::stories::{self, Stories};
use super::{int, sentence, text};
use crate::explain::Overview;
use crate::explain::read::{self as explain, damaged};
use crate::human;
use crate::storage::Error;
use crate::summary::stop_words;

/// Flows that are named at each port of a deadlock.
const NAMED: usize = 8;

#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub name: String,
    /// The events, in a few sentences.
    pub headline: String,
    /// The most important one.
    pub banner: Banner,
    pub complete: bool,
    /// When it ended, in picoseconds of simulated time.
    pub end_ps: u64,
    /// Names and values of the input of the run, as text.
    pub facts: Vec<(String, String)>,
    /// Names and values of the results, as text.
    pub figures: Vec<(String, String)>,
    /// This and the next three as in `summary.json`.
    pub verdicts: Json,
    pub notes: Json,
    pub sizes: Json,
    pub classes: Json,
    pub clock: Clock,
    pub fabric: Fabric,
    pub flows: Flows,
    /// Collectives and training steps, by class of traffic.
    pub jobs: Vec<Job>,
    pub series: Series,
    pub pauses: Pauses,
    /// The first deadlock; null if there was none.
    pub deadlock: Option<Deadlock>,
    pub rankings: Vec<Ranking>,
    /// The answers of `xoff explain`; null if the run has recorded no critical paths.
    pub stories: Option<Stories>,
    /// Lists that were shortened, and quantities that the run has not measured.
    pub left_out: Vec<String>,
    pub scenario: Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deadlock {
    pub closed_ps: u64,
    /// When the first of its queues continued nevertheless; null if they were paused at the end.
    pub ended_ps: Option<u64>,
    /// Its ports: each waits for the next one, the last for the first.
    pub cycle: Vec<Held>,
}

/// A port of a deadlock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Held {
    pub port: usize,
    pub bytes: u64,
    /// Flows whose packets it holds, as `summary.json` names them: at most eight.
    pub flows: Vec<String>,
}

/// Reads the directory of a run with this manifest.
pub fn read(path: &Path, manifest: &Json) -> Result<Run, Error> {
    let summary = explain::summary(path)?;
    let scenario = &manifest["scenario"];
    let end_ps = int(&summary, "/simulated_ps");
    let clock = Clock::of_run(path, end_ps)?;
    let fabric = fabric::read(path, text(scenario, "/topology/kind"))?;
    let pauses = pauses::read(path, &fabric, clock, end_ps)?;
    let series = series::read(path, &fabric, clock)?;
    let deadlock = deadlock(path, &fabric, &summary)?;
    let mut explained = None;
    if scenario["measure"]["explain"] == true {
        let asked = asked_first(&fabric, &pauses, deadlock.as_ref());
        explained = Some(stories::tell(path, &explain::with(path, manifest)?, &fabric, &asked)?);
    }
    let explained_flows: Vec<usize> =
        explained.iter().flat_map(|(stories, _)| stories.flows.keys().copied()).collect();
    let flows = flows::read(path, &fabric, &explained_flows)?;
    let rankings = rankings::of_run(&fabric, &flows, &pauses, explained.as_ref().map(|e| &e.1), &summary);
    let jobs = jobs::read(path, &fabric, &summary, end_ps)?;
    let mut run = Run {
        name: text(manifest, "/name").into(),
        headline: sentence::of_run(manifest, &summary),
        banner: banner::of_run(&summary, explained.as_ref().map(|e| &e.1)),
        complete: summary["complete"] != false,
        end_ps,
        facts: facts(manifest, &summary),
        figures: figures(&summary, explained.as_ref().map(|e| &e.1)),
        verdicts: summary["verdicts"].clone(),
        notes: summary["notes"].clone(),
        sizes: summary["sizes"].clone(),
        classes: summary["classes"].clone(),
        clock,
        fabric,
        flows,
        jobs,
        series,
        pauses,
        deadlock,
        rankings,
        stories: explained.map(|(stories, _)| stories),
        left_out: Vec::new(),
        scenario: scenario.clone(),
    };
    run.left_out = left_out(&run);
    Ok(run)
}

fn deadlock(path: &Path, fabric: &Fabric, summary: &Json) -> Result<Option<Deadlock>, Error> {
    let found = &summary["deadlock"];
    if found.is_null() {
        return Ok(None);
    }
    let by_name = fabric.by_name();
    let held = |held: &Json| {
        let name = text(held, "/port");
        let port = by_name.get(name).copied();
        let port = port.ok_or_else(|| damaged(path, format!("is damaged: there is no port `{name}`")))?;
        let flows = held["flows"].as_array().into_iter().flatten().filter_map(Json::as_str);
        Ok(Held { port, bytes: int(held, "/bytes"), flows: flows.take(NAMED).map(Into::into).collect() })
    };
    let cycle: Result<_, Error> = found["cycle"].as_array().into_iter().flatten().map(held).collect();
    Ok(Some(Deadlock {
        closed_ps: int(found, "/closed_ps"),
        ended_ps: found["ended_ps"].as_u64(),
        cycle: cycle?,
    }))
}

/// Ports in the order in which one asks about them: those of a deadlock, congested ones, and
/// those that were paused longest.
fn asked_first(fabric: &Fabric, pauses: &Pauses, deadlock: Option<&Deadlock>) -> Vec<String> {
    let cycle = deadlock.into_iter().flat_map(|deadlock| deadlock.cycle.iter().map(|held| held.port));
    let roots = pauses.ports.iter().flat_map(|p| p.reasons.iter().filter_map(|r| usize::try_from(r.3).ok()));
    let paused = pauses.ports.iter().map(|p| p.port);
    let mut seen = vec![false; fabric.ports.len()];
    let mut ports: Vec<usize> = cycle.chain(roots).chain(paused).collect();
    ports.retain(|&port| !std::mem::replace(&mut seen[port], true));
    ports.into_iter().map(|port| fabric.ports[port].name.clone()).collect()
}

fn facts(manifest: &Json, summary: &Json) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_string(), value));
    for key in ["network", "flow_control", "transport", "congestion_control"] {
        fact(&key.replace('_', " "), summary[key].as_str().unwrap_or_default().into());
    }
    fact("seed", int(summary, "/seed").to_string());
    let stop = stop_words(text(summary, "/stop"));
    fact("simulated", format!("{} ({stop})", human::time(int(summary, "/simulated_ps"))));
    let overrides: Vec<&str> =
        manifest["overrides"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    if !overrides.is_empty() {
        fact("set", overrides.join(", "));
    }
    fact("written by", format!("xoff {}", text(manifest, "/xoff_version")));
    facts
}

fn figures(summary: &Json, overview: Option<&Overview>) -> Vec<(String, String)> {
    let mut figures = Vec::new();
    let mut figure = |name: &str, value: String| figures.push((name.to_string(), value));
    let groups = summary["sizes"].as_array();
    let all = groups.and_then(|groups| groups.last()).unwrap_or(&Json::Null);
    let [finished, flows] = ["/finished", "/flows"].map(|key| human::count(int(all, key)));
    figure("flows finished", format!("{finished} of {flows}"));
    if int(all, "/failed") > 0 {
        figure("flows failed", human::count(int(all, "/failed")));
    }
    let slowdown = |name: &str| all["slowdown"][name].as_f64().map_or("-".into(), human::ratio);
    figure("slowdown, mean", slowdown("mean"));
    figure("slowdown, p99", slowdown("p99"));
    figure("goodput", human::rate(all["goodput_bps"].as_f64().unwrap_or(0.0)));
    if let Some(found) = overview {
        let share = found.victim_ps as f64 * 100.0 / found.took_ps.max(1) as f64;
        figure(
            "victims",
            format!("{}, {share:.1}% of all time", human::counted(found.victim_flows as u64, "flow")),
        );
    }
    let sent = human::count(int(summary, "/counters/sent"));
    figure("packets dropped", format!("{} of {sent} sent", human::count(sentence::lost(summary))));
    figure("pauses", human::count(int(summary, "/pauses/count")));
    let closed = summary["deadlock"].is_object().then(|| human::time(int(summary, "/deadlock/closed_ps")));
    figure("deadlock", closed.map_or("none".into(), |closed| format!("at {closed}")));
    let peak = &summary["peaks"]["buffer"];
    if let Some(bytes) = peak["bytes"].as_u64() {
        let of = peak["of"].as_u64().map_or(String::new(), |of| format!(" of {}", human::bytes(of)));
        figure("fullest buffer", format!("{}{of}, {}", human::bytes(bytes), text(peak, "/place")));
    }
    figures
}

/// The parts that the page does not show, and why.
fn left_out(run: &Run) -> Vec<String> {
    let mut all = Vec::new();
    let listed = run.flows.rows.len() as u64;
    if listed < run.flows.began {
        let (listed, began) = (human::count(listed), human::counted(run.flows.began, "flow"));
        all.push(format!(
            "The list has {listed} of {began}: the slowest of each class, and the first unfinished or failed flows. \
             The charts include all flows."
        ));
    }
    for job in run.jobs.iter().filter(|job| job.hosts.len() < job.all_hosts) {
        let [shown, all_hosts] = [job.hosts.len(), job.all_hosts].map(|n| human::count(n as u64));
        let class = text(&job.summary, "/class");
        all.push(format!("The picture of job \"{class}\" has {shown} of {all_hosts} hosts."));
    }
    if run.pauses.ports.len() < run.pauses.paused_ports {
        let [shown, all_ports] =
            [run.pauses.ports.len(), run.pauses.paused_ports].map(|n| human::count(n as u64));
        all.push(format!(
            "The replay has {shown} of {all_ports} paused ports: those that were paused longest."
        ));
    }
    if run.clock.end_ps < run.end_ps {
        let [from, end] = [run.clock.end_ps, run.end_ps].map(human::time);
        all.push(format!(
            "The fabric and the map of pauses end at {from}: nothing changes from then until the end of the run at {end}."
        ));
    }
    if run.pauses.count > 0 && !run.pauses.roots_known {
        all.push(
            "The congested ports that caused the pauses were not recorded. To see them and their victims, rerun \
             with --set measure.blocking=true."
                .into(),
        );
    }
    if run.stories.is_none() {
        all.push(
            "Explanations of flows and ports were not recorded. To see the parts of the time of each flow, rerun \
             with --set measure.explain=true."
                .into(),
        );
    }
    for (quantity, &count) in &run.series.counts {
        let shown = run.series.lines.iter().filter(|line| line.quantity == *quantity).count();
        if shown < count {
            all.push(format!(
                "The chart of \"{quantity}\" has {shown} of {count} lines: those with the highest maximum."
            ));
        }
    }
    if run.series.times_ps.is_empty() {
        all.push("There are no samples over time, because measure.interval is not set.".into());
    } else if run.series.samples > 1 {
        let samples = run.series.samples;
        all.push(format!("Each point of a line over time combines {samples} samples."));
    }
    all
}
