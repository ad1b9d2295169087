//! What can be said of a plan without running it: whether its buffers can wait
//! for each other in a circle. It knows nothing of running, files and terminals.
//!
//! A device that is full stops what fills it at its neighbours upstream; what is
//! stopped waits for the device, which waits for its own egress queues. From the
//! static pause relation ([`PauseScope`]) and the routes follows who may wait for
//! whom at all. If that graph has no cycle, nothing can ever deadlock, and an order
//! of its nodes proves it. If it has one, a scenario is made in which it may show.

pub mod all;
pub mod blocking;
pub mod certificate;
pub mod closing;
pub mod graph;
pub mod routes;
pub mod text;
pub mod verify;
mod verify_all;
pub mod walks;
pub mod witness;

use certificate::{Certificate, Entry, Routes, entry};
use closing::{Edge, Through};
use graph::{Cycle, Graph};
use routes::Kind;
use serde::Serialize;
use std::collections::BTreeSet;
use witness::Candidate;
use xoff_net::routing::Router;
use xoff_net::topology::PortId;
use xoff_plan::Loaded;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::PauseScope;

/// Most flows that are named for each edge of a cycle.
const NAMED: usize = 8;

/// What a check has found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Name of the scenario.
    pub scenario: String,
    /// The flow control, as scenarios call it.
    pub flow_control: String,
    /// What one of its pauses stops: `nothing`, `lane`, `queue` or `flow`.
    pub pause_stops: &'static str,
    /// Which routes were followed.
    pub routes: Routes,
    /// Flows of the scenario.
    pub flows: usize,
    /// Waits that depend on others, or others on them.
    pub waits: usize,
    /// Dependencies between them.
    pub dependencies: usize,
    /// Whether it can deadlock.
    pub verdict: Verdict,
    /// What else is worth knowing, in sentences.
    pub notes: Vec<String>,
}

/// Whether a plan can deadlock.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// It cannot.
    Safe {
        /// How many pairs of waits the checker of certificates has compared.
        compared: u64,
    },
    /// It can: a run has shown it.
    CanDeadlock {
        /// A cycle of waits.
        cycle: CycleReport,
        /// The scenario that showed it.
        witness: Witness,
    },
    /// Waits may form a cycle, and no run has shown a deadlock.
    CycleWithoutWitness {
        /// The cycle.
        cycle: CycleReport,
        /// What was tried, in words.
        tried: Vec<String>,
    },
}

/// A run that deadlocked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Witness {
    /// What its scenario is, in words.
    pub about: String,
    /// When the cycle closed, in picoseconds.
    pub closed_ps: u64,
    /// The egress ports that held each other, as the run saw it; they may be others than the cycle's.
    pub ports: Vec<String>,
}

/// A cycle by names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CycleReport {
    /// Whether no cycle is shorter; if not, the search for one was given up.
    pub shortest: bool,
    /// Its edges, in order; each begins where the one before ends.
    pub edges: Vec<EdgeReport>,
}

/// An edge of a cycle by names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeReport {
    /// Who waits …
    pub from: Entry,
    /// … for whom.
    pub to: Entry,
    /// Routes that lead over both: the first few.
    pub closed_by: Vec<RouteReport>,
    /// How many flows do; 0 where all routes are checked, which are not counted.
    pub flows: u64,
}

/// A route by names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteReport {
    /// The flow, if it is one of the scenario's: its `id` in `flows.parquet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// In words: `flow 17: H3 -> H9 (websearch)`.
    pub name: String,
    /// Whether its data or its answers lead there.
    pub packets: Kind,
    /// The nodes on its way; empty if packets come this way only while routes change.
    pub path: Vec<String>,
}

/// A report, and what belongs to it.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The report. A cycle has no witness yet.
    pub report: Report,
    /// If it cannot deadlock.
    pub certificate: Option<Certificate>,
    /// If it may: scenarios to try, the gentlest first.
    pub candidates: Vec<Candidate>,
}

/// How far a check is: what it does, and how much of how much is done.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// In a few words.
    pub what: &'static str,
    /// Done so far.
    pub done: usize,
    /// All there is.
    pub of: usize,
}

/// The router of a plan, of the links that are up from the beginning.
pub fn router(loaded: &Loaded) -> Router {
    let down = loaded.plan.faults.down.iter().filter(|d| d.spans.first().is_some_and(|s| s.0 == 0));
    let dead: BTreeSet<PortId> = down.map(|d| d.port).collect();
    if dead.is_empty() { loaded.router.clone() } else { loaded.router.without(&dead) }
}

/// Checks a scenario, which is called `name`. `None` if `watch` answers `false`.
///
/// # Errors
/// What cannot be checked, and why; or that the certificate does not hold, which
/// is a fault of this program.
pub fn check(
    loaded: &Loaded,
    name: &str,
    routes: Routes,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Analysis>, String> {
    let plan = &loaded.plan;
    let scope = plan.flow_control.pause_scope();
    let mut router = router(loaded);
    let places = all::places(&plan.topology, &all::apart(&loaded.scenario, &plan.topology));
    let lanes = all::lanes(plan);
    let graph = match (routes, scope) {
        (_, PauseScope::Nothing) => Some(Graph::default()),
        (Routes::Scenario, _) => routes::graph(plan, &mut |done| {
            watch(Progress { what: "following flows", done, of: plan.flows.len() })
        }),
        (Routes::All | Routes::AllUnderSingleFailures, PauseScope::Flow) => {
            return Err("each flow is paused by itself here, so that no flow waits for another, and all \
                        routes together say nothing: check the routes of the scenario's flows, without --failures"
                .to_string());
        }
        (Routes::All, _) => {
            let mut watch = |done, of| watch(Progress { what: "spreading over all routes", done, of });
            let matrix = all::matrix(plan, &mut router, &places, &mut watch)?;
            matrix.map(|m| m.graph(&plan.topology))
        }
        (Routes::AllUnderSingleFailures, _) => return Err("not yet".to_string()),
    };
    let Some(graph) = graph else { return Ok(None) };
    let mut report = Report {
        scenario: name.to_string(),
        flow_control: scheme(loaded)?,
        pause_stops: match scope {
            PauseScope::Nothing => "nothing",
            PauseScope::Lane => "lane",
            PauseScope::Queue { .. } => "queue",
            PauseScope::Flow => "flow",
        },
        routes,
        flows: plan.flows.len(),
        waits: graph.waits.len(),
        dependencies: graph.edges(),
        verdict: Verdict::Safe { compared: 0 },
        notes: notes(loaded, routes),
    };
    if let Some(order) = graph.order() {
        let certificate = Certificate::new(plan, name, routes, &order);
        let compared = verify::verify(plan, &mut router, &certificate)
            .map_err(|e| format!("the certificate does not hold, which is a fault of this program: {e}"))?;
        report.verdict = Verdict::Safe { compared };
        return Ok(Some(Analysis { report, certificate: Some(certificate), candidates: Vec::new() }));
    }
    let cycle = graph.shortest_cycle().expect("what has no order has a cycle");
    let edges = match routes {
        Routes::Scenario => closing::by_flows(plan, &cycle),
        _ => closing::by_all(plan, &mut router, &places, &lanes, &cycle),
    };
    let candidates = witness::candidates(loaded, &edges)?;
    report.verdict =
        Verdict::CycleWithoutWitness { cycle: cycle_report(plan, &cycle, &edges), tried: Vec::new() };
    Ok(Some(Analysis { report, certificate: None, candidates }))
}

/// The flow control's name, as scenarios write it.
fn scheme(loaded: &Loaded) -> Result<String, String> {
    let table = serde_json::to_value(&loaded.scenario.flow_control).map_err(|e| e.to_string())?;
    let name = table.get("scheme").and_then(|s| s.as_str());
    name.map(str::to_string).ok_or_else(|| "the flow control has no name".to_string())
}

/// What limits a verdict.
fn notes(loaded: &Loaded, routes: Routes) -> Vec<String> {
    let plan = &loaded.plan;
    let mut notes = Vec::new();
    match plan.flow_control.pause_scope() {
        PauseScope::Nothing => {
            notes.push("Without flow control nothing ever waits: what does not fit is dropped.".to_string());
        }
        PauseScope::Lane => {
            let lossy: Vec<String> =
                plan.lanes.iter().filter(|l| !l.lossless).map(|l| l.priority.to_string()).collect();
            if !lossy.is_empty() {
                let list = lossy.join(", ");
                notes.push(format!("Lossy priorities are never paused and wait for nothing: {list}."));
            }
        }
        PauseScope::Queue { queues } => notes.push(format!(
            "Which flows share one of the {queues} queues of a port is settled while they run: the worst \
             case is taken, that any two may."
        )),
        PauseScope::Flow => {}
    }
    if routes == Routes::Scenario && !plan.faults.reroutes.is_empty() {
        notes.push(format!(
            "Routes change {} times: what waits before, during and after a change is taken together.",
            plan.faults.reroutes.len()
        ));
    }
    if routes != Routes::Scenario {
        let later = plan.faults.down.iter().any(|d| d.spans.iter().any(|s| s.0 > 0 || s.1 < u64::MAX));
        if later {
            notes.push(
                "Of the scenario's failures those at time 0 hold throughout; later ones and recoveries are \
                 not considered among all routes."
                    .to_string(),
            );
        }
    }
    notes
}

fn cycle_report(plan: &Plan, cycle: &Cycle, edges: &[Edge]) -> CycleReport {
    let edges = edges.iter().map(|e| EdgeReport {
        from: entry(plan, e.from),
        to: entry(plan, e.to),
        closed_by: e.closers.iter().take(NAMED).map(|c| route_report(plan, c)).collect(),
        flows: e.count,
    });
    CycleReport { shortest: cycle.shortest, edges: edges.collect() }
}

fn route_report(plan: &Plan, route: &Through) -> RouteReport {
    let name = |node: u32| plan.topology.nodes[node as usize].name.clone();
    let mut path: Vec<String> =
        route.ports.iter().map(|&p| name(plan.topology.ports[p as usize].node)).collect();
    if let (Some(&last), true) = (route.ports.last(), route.delivers) {
        path.push(name(plan.topology.neighbour(last)));
    }
    let called = match route.flow {
        Some(id) => {
            let f = &plan.flows[id as usize];
            let class = &plan.classes[usize::from(f.class)];
            format!("flow {id}: {} -> {} ({class})", name(f.src), name(f.dst))
        }
        None => match &path[..] {
            [first, .., last] => format!("{first} -> {last}"),
            _ => "under way".to_string(),
        },
    };
    RouteReport { flow: route.flow, name: called, packets: route.kind, path }
}
