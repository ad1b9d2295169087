//! Checks a plan without running it: whether its buffers can wait for each other in a cycle. It does not
//! depend on running, files or terminals.
//!
//! A full device pauses its upstream neighbours; a paused queue waits for the device, which waits for its own
//! egress queues. The possible waits follow from the static pause relation ([`PauseScope`]) and the routes.
//! If that graph has no cycle, nothing can ever deadlock, and an order of its nodes proves it. If it has one,
//! the check makes a scenario in which the deadlock may happen.

// Where a name says it all, there is no more to say.
#![allow(missing_docs)]

pub mod all;
pub mod blocking;
pub mod certificate;
pub mod closing;
pub mod failures;
pub mod graph;
pub mod onward;
pub mod picture;
pub mod roots;
pub mod routes;
pub mod text;
pub mod verify;
mod verify_all;
mod verify_onward;
mod verify_roots;
pub mod walks;
pub mod witness;

use blocking::BlockingReport;
use certificate::{Certificate, Entry, Failing, Routes, Under, entry};
use closing::{Edge, Through};
use failures::{Context, Intact};
use graph::{Cycle, Graph};
use routes::Kind;
use serde::Serialize;
use std::collections::BTreeSet;
use witness::Candidate;
use xoff_net::{routing::Router, topology::PortId};
use xoff_plan::balancing::LoadBalancing as PlanBalancing;
use xoff_plan::{Loaded, plan::Plan};
use xoff_schemes::flow_control::{PauseScope, seen::OnwardQueues};
use xoff_schemes::load_balancing::LoadBalancing;
use xoff_schemes::scheduling::PodsKeys;

/// Most flows that are named for each edge of a cycle.
const NAMED: usize = 8;

/// Most work to check the certificate of all single failures, in ports times ports times hosts.
const WORK: u64 = 1_000_000_000;
const NO_FAILURES: &str = "--failures does not apply: this flow control pauses single flows, so no flow waits for another. \
                           Remove --failures to check the routes of the flows";
const UNVERIFIED: &str =
    "The certificate was not verified, because the network is large. To verify it, use --verify.";

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    pub scenario: String,
    /// The flow control, as scenarios call it; that of their scheduling for pods without buffers.
    pub flow_control: String,
    /// The unit that one pause stops: `nothing`, `lane`, `lanes` (which can wait for each other), `link`, `queue`, `flow`,
    /// `onward` (the queue of the packets that leave the next switch, or the second next one, by one port) or `root`
    /// (the packets through one congested port).
    pub pause_stops: &'static str,
    pub routes: Routes,
    /// The routing, as scenarios call it.
    pub routing: String,
    pub flows: usize,
    /// Waits that depend on others, or others on them.
    pub waits: usize,
    pub dependencies: usize,
    pub verdict: Verdict,
    /// The effect of single failures, if the user requested them and the intact network is safe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailuresReport>,
    /// The possible blocking among the scenario's flows on their routes.
    pub blocking: BlockingReport,
    /// Further findings, in sentences.
    pub notes: Vec<String>,
    /// Changes of the scenario that the same check examined, if the user requested them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestions: Option<Vec<Suggestion>>,
}

/// A change of a scenario that may deadlock.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suggestion {
    /// The key and its value, as `--set` takes them.
    pub set: [String; 2],
    /// Whether the same check proves the changed scenario deadlock-free.
    pub proved: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    Safe {
        /// At how many steps of routes the checker compared two waits; `None` if that would take too long.
        compared: Option<u64>,
    },
    /// It can: a run has shown it.
    CanDeadlock { cycle: CycleReport, witness: Witness },
    /// Waits may form a cycle, and no run has shown a deadlock.
    CycleWithoutWitness {
        cycle: CycleReport,
        /// The attempts, in words.
        tried: Vec<String>,
        /// How many of these runs reached [`witness::EVENTS`]; they might have deadlocked later.
        cut: usize,
        events: u64,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FailuresReport {
    /// The failures that were examined, by their number and kind.
    pub classes: Vec<ClassReport>,
    /// Failures that lead packets on paths that they do not take otherwise.
    pub changing: usize,
    /// Failures that make a cycle of waits possible: links by their two ports, or switches.
    pub cyclic: Vec<String>,
    /// The failure whose cycle is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    /// Whether that cycle lasts; otherwise it is possible only while routes change.
    pub lasting: bool,
}

/// Failures of so many links or switches at the same time. Links that cut a host off are not counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassReport {
    /// Whether switches fail, and not links.
    pub switches: bool,
    /// How many fail together.
    pub together: u8,
    /// How many of these failures were examined.
    pub examined: usize,
    /// How many there are.
    pub of: u64,
}

impl FailuresReport {
    /// Whether every failure was examined.
    pub fn is_exhaustive(&self) -> bool {
        self.classes.iter().all(|class| class.examined as u64 == class.of)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Witness {
    pub about: String,
    /// When the cycle closed, in picoseconds.
    pub closed_ps: u64,
    /// The egress ports that held each other, as the run saw it; they may be others than the cycle's.
    pub ports: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CycleReport {
    /// Whether no cycle is shorter; if not, the search for one was given up.
    pub shortest: bool,
    /// Its edges, in order; each begins where the one before ends.
    pub edges: Vec<EdgeReport>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EdgeReport {
    /// The waiting queue …
    pub from: Entry,
    /// … for whom.
    pub to: Entry,
    /// Routes that lead over both: the first few.
    pub closed_by: Vec<RouteReport>,
    /// How many flows do; 0 where all routes are checked, which are not counted.
    pub flows: u64,
    /// Whether a host passes the pause on, on all routes.
    pub passed_on: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RouteReport {
    /// The flow, if it is one of the scenario's: its `id` in `flows.parquet`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<u32>,
    /// In words: `flow 17: H3 -> H9 (websearch)`.
    pub name: String,
    /// Whether its data or its control packets lead there.
    pub packets: Kind,
    /// The nodes on its path; empty if packets take it only while routes change.
    pub path: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Analysis {
    /// The report. A cycle has no witness yet.
    pub report: Report,
    /// If it cannot deadlock.
    pub certificate: Option<Certificate>,
    /// If it may: scenarios to try, the gentlest first.
    pub candidates: Vec<Candidate>,
    /// Names and contents of files: the cycle of a deadlock, the worst blocking tree.
    pub pictures: Vec<(&'static str, String)>,
}

#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub what: &'static str,
    pub done: usize,
    pub of: usize,
}

/// Gets the progress, and stops the check by `false`.
pub type Watch<'a> = &'a mut dyn FnMut(Progress) -> bool;

/// Why a check has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// By [`Watch`].
    Stopped,
    /// The network is too large, or the scenario cannot be checked.
    Failed(String),
}

impl From<String> for Halt {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

fn go_on(watch: Watch<'_>, what: &'static str, done: usize, of: usize) -> Result<(), Halt> {
    if watch(Progress { what, done, of }) { Ok(()) } else { Err(Halt::Stopped) }
}

/// The ports whose links are down from the beginning.
fn down(plan: &Plan) -> BTreeSet<PortId> {
    let down = plan.faults.down.iter().filter(|d| d.spans.first().is_some_and(|s| s.0 == 0));
    down.map(|d| d.port).collect()
}

/// The router of a plan, of the links that are up from the beginning.
pub fn router(loaded: &Loaded) -> Router {
    let dead = down(&loaded.plan);
    if dead.is_empty() { loaded.router.clone() } else { loaded.router.without(&dead) }
}

/// Checks a scenario with the name `name`; `None` if `watch` returns `false`. The error is the reason why it
/// cannot be checked, or that the certificate does not hold, which is a fault of this program.
pub fn check(
    loaded: &Loaded,
    name: &str,
    routes: Routes,
    watch: Watch<'_>,
) -> Result<Option<Analysis>, String> {
    match analyse(loaded, name, routes, watch) {
        Ok(analysis) => Ok(Some(analysis)),
        Err(Halt::Stopped) => Ok(None),
        Err(Halt::Failed(why)) => Err(why),
    }
}

fn analyse(loaded: &Loaded, name: &str, routes: Routes, watch: Watch<'_>) -> Result<Analysis, Halt> {
    let plan = &loaded.plan;
    let scope = plan.flow_control.traits().pause_scope;
    walks::check_path_count(plan)?;
    let mut router = router(loaded);
    let apart = all::apart(&loaded.scenario, &plan.topology);
    let places = all::places(&plan.topology, &router, &apart);
    let explicit = all::explicit(&loaded.scenario, plan);
    let cx = Context { places: &places, apart: &apart, explicit: &explicit };
    go_on(watch, "searching for victims", 0, plan.flows.len())?;
    let root_queues = plan.flow_control.root_queues();
    let mut ahead = root_queues.map(|queues| roots::of_flows(plan, queues, watch)).transpose()?;
    let walks = walks::Walks::new(plan);
    let by_root = root_queues.zip(ahead.as_ref());
    let own_queues = by_root.filter(|(queues, ahead)| roots::apart(*queues, ahead)).map(|both| both.1);
    let found = blocking::blocking(plan, &walks, own_queues);
    let (blocking, worst) = blocking::report(plan, &walks, &found);
    let worst = worst.map(|(port, tree)| {
        let walks = blocking::view(&walks, &found, port.port);
        ("blocking.svg", picture::blocking(plan, &walks, &port, &tree))
    });
    let mut pictures: Vec<(&'static str, String)> = worst.into_iter().collect();
    let mut report = Report {
        scenario: name.to_string(),
        flow_control: scheme(loaded)?,
        pause_stops: match scope {
            PauseScope::Nothing => "nothing",
            PauseScope::Lane if plan.flow_control.traits().couples_lanes => "lanes",
            PauseScope::Lane => "lane",
            PauseScope::Link => "link",
            PauseScope::Queue { .. } => "queue",
            PauseScope::Flow => "flow",
            PauseScope::Onward => "onward",
            PauseScope::Root => "root",
        },
        routes,
        routing: router.kind().name().to_string(),
        flows: plan.flows.len(),
        waits: 0,
        dependencies: 0,
        verdict: Verdict::Safe { compared: Some(0) },
        failures: None,
        blocking,
        notes: notes(loaded, routes),
        suggestions: None,
    };
    if routes != Routes::Scenario {
        report.notes.extend(unreachable(plan, &mut router));
    }
    let mut matrix = None;
    let mut filled = None;
    let mut graph = match (routes, plan.flow_control.onward_queues()) {
        _ if scope == PauseScope::Nothing => Graph::default(),
        (Routes::All(failing), _)
            if plan.is_non_minimal()
                && (failing != Failing::default()
                    || !plan.faults.down.is_empty()
                    || scope == PauseScope::Root) =>
        {
            let those = LoadBalancing::any(LoadBalancing::is_non_minimal);
            let message = format!(
                "all routes cannot be checked for non-minimal paths ({those}) under failures, nor if a pause stops the \
                 packets for one port. Check the routes of the flows"
            );
            return Err(message.into());
        }
        _ if scope == PauseScope::Root => {
            let queues = root_queues.expect("the scope is that of roots");
            if routes != Routes::Scenario {
                ahead = Some(roots::of_all(plan, queues, &mut router, &cx, watch)?);
            }
            let ahead = ahead.as_ref().expect("the scope is that of roots");
            report.notes.extend(roots::notes(plan, queues, ahead, routes != Routes::Scenario));
            ahead.graph()?
        }
        (Routes::Scenario, Some(queues)) => onward::of_flows(plan, queues, watch)?.graph(queues)?,
        (_, Some(queues)) => {
            let made = onward::of_all(plan, queues, &mut router, &cx, watch)?;
            report.notes.extend(beyond(queues, [made.second_relay, made.refused]));
            filled.insert(made).graph(queues)?
        }
        (Routes::Scenario, None) => routes::graph(plan, watch)?,
        _ if scope == PauseScope::Flow => return Err(NO_FAILURES.to_string().into()),
        _ => matrix.insert(all::matrix(plan, &mut router, &cx, watch)?).graph(&plan.topology),
    };
    (report.waits, report.dependencies) = (graph.waits.len(), graph.edges());
    let order = graph.order();
    let mut failed = None;
    let mut orders = Vec::new();
    let down = down(plan);
    let mut examined = None;
    if let (true, Some(order)) = (routes.has_failures(), &order) {
        let failing = routes.failing();
        let intact = Intact { plan, router: &mut router, dead: &down, context: &cx, order };
        if let (Some(filled), Some(queues)) = (&filled, plan.flow_control.onward_queues()) {
            let (found, new) = onward::examine(intact, failing, queues, filled, watch)?;
            report.notes.extend(beyond(queues, new));
            examined = Some(found);
        } else if let Some(matrix) = &matrix {
            examined = Some(failures::examine(intact, failing, matrix, watch)?);
        } else if let Some((queues, ahead)) = root_queues.zip(ahead.as_ref()) {
            examined = Some(roots::examine(intact, failing, queues, ahead, watch)?);
        }
    }
    if let Some(found) = examined {
        report.failures = Some(failures_report(plan, &found));
        if let Some(worst) = found.worst {
            let cut = worst.cut.ports(&plan.topology);
            router = router.without(&down.union(&cut).copied().collect());
            failed = Some(worst.cut);
            graph = worst.graph;
        }
        orders = found.orders;
    }
    if let (Some(order), None) = (order, &failed) {
        // A sample of failures proves nothing about the others.
        let sampled = report.failures.as_ref().is_some_and(|failures| !failures.is_exhaustive());
        let proved = if sampled { Routes::ALL } else { routes };
        let mut certificate = Certificate::new(plan, name, proved, &order);
        for (cut, order) in orders {
            let Some(cut) = cut.filter(|_| proved.has_failures()) else { continue };
            let order = order.iter().map(|&wait| entry(plan, wait)).collect();
            certificate.under.push(Under { down: cut.keys(&plan.topology), order });
        }
        // Following all routes under every failure again, host by host, may take hours.
        let cuts = report.failures.iter().filter(|_| proved.has_failures()).flat_map(|f| &f.classes);
        let cuts: u64 = cuts.map(|class| class.of).fold(0, u64::saturating_add);
        let by_root = if scope == PauseScope::Root { plan.topology.ports.len() as u64 } else { 0 };
        let each = plan.topology.ports.len() as u64 * plan.topology.hosts().count() as u64;
        let work = each.saturating_mul(cuts.max(by_root));
        let long = proved.has_failures() || proved == Routes::ALL && scope == PauseScope::Root;
        let compared = if long && work > WORK {
            report.notes.push(UNVERIFIED.to_string());
            None
        } else {
            let compared = verify::verify(loaded, &mut router, &certificate);
            Some(compared.map_err(|e| format!("the certificate is not valid, which is a bug in xoff: {e}"))?)
        };
        report.verdict = Verdict::Safe { compared };
        let (certificate, candidates) = (Some(certificate), Vec::new());
        return Ok(Analysis { report, certificate, candidates, pictures });
    }
    if let Some(queues) = plan.flow_control.onward_queues() {
        return Err(onward::fault(queues).into());
    }
    let cycle = graph.shortest_cycle().expect("what has no order has a cycle");
    let edges = match routes {
        Routes::Scenario => closing::by_flows(plan, &cycle),
        _ => closing::by_all(plan, &mut router, &places, &all::lanes(plan), &cycle),
    };
    pictures.push(("cycle.svg", picture::cycle(plan, &edges)));
    if let Some(queues) = root_queues.filter(|queues| queues.by_set) {
        report.notes.push(roots::unproved(plan, queues, routes != Routes::Scenario, watch)?);
    }
    let candidates = witness::candidates(loaded, &edges, failed.as_ref())?;
    let cycle = cycle_report(plan, &cycle, &edges);
    report.verdict = Verdict::CycleWithoutWitness { cycle, tried: Vec::new(), cut: 0, events: 0 };
    Ok(Analysis { report, certificate: None, candidates, pictures })
}

fn failures_report(plan: &Plan, found: &failures::Failures) -> FailuresReport {
    let name = |cut: &failures::Cut| cut.name(&plan.topology);
    let class = |(class, examined): &(failures::Class, usize)| ClassReport {
        switches: class.switches,
        together: class.size,
        examined: *examined,
        of: class.of,
    };
    FailuresReport {
        classes: found.classes.iter().map(class).collect(),
        changing: found.changing,
        cyclic: found.cyclic.iter().map(name).collect(),
        shown: found.worst.as_ref().map(|w| name(&w.cut)),
        lasting: found.worst.as_ref().is_some_and(|w| w.lasting),
    }
}

fn scheme(loaded: &Loaded) -> Result<String, String> {
    if loaded.plan.pods.is_some() {
        return Ok(PodsKeys::NAME.to_string());
    }
    let table = serde_json::to_value(&loaded.scenario.flow_control).map_err(|e| e.to_string())?;
    let name = table.get("scheme").and_then(|s| s.as_str());
    name.map(str::to_string).ok_or_else(|| "the flow control has no name".to_string())
}

fn notes(loaded: &Loaded, routes: Routes) -> Vec<String> {
    let plan = &loaded.plan;
    let mut notes = Vec::new();
    if matches!(plan.load_balancing, PlanBalancing::Packets(_)) {
        notes.push(
            "Packets choose their paths. A flow is a culprit of each port that one of its paths crosses, and a victim of \
             it if another path avoids it."
                .to_string(),
        );
    }
    match plan.flow_control.traits().pause_scope {
        PauseScope::Nothing if plan.pods.is_some() => notes.push(
            "Cores keep cells until a scheduler requests them, and schedulers never wait. Routes have no effect, \
             because schedulers choose the paths."
                .to_string(),
        ),
        PauseScope::Nothing if plan.flow_control.traits().slows => notes.push(
            "The flow control stops no queue: it lowers rates, and no rate is 0. So no cycle of queues waits \
             permanently. In a cycle the rates can still fall to any value, which a run shows."
                .to_string(),
        ),
        PauseScope::Nothing if plan.flow_control.traits().trims.is_some() => {
            notes.push("There are no pauses: packets that do not fit are cut to their headers.".to_string());
        }
        PauseScope::Nothing => {
            notes.push("Without flow control there are no pauses: packets that do not fit are dropped.".to_string());
        }
        PauseScope::Lane | PauseScope::Link if !plan.lanes.iter().any(|l| l.lossless) => {
            notes.push("No priority in use is lossless, so there are no pauses.".to_string());
        }
        PauseScope::Link if !plan.lanes.iter().all(|l| l.lossless) => notes.push(
            "A pause also stops lossy priorities, but they cause no pauses: their packets are dropped if they do not fit."
                .to_string(),
        ),
        PauseScope::Link => {}
        PauseScope::Lane => {
            let lossy: Vec<String> =
                plan.lanes.iter().filter(|l| !l.lossless).map(|l| l.priority.to_string()).collect();
            if !lossy.is_empty() {
                notes.push(format!("Lossy priorities are never paused: {}.", lossy.join(", ")));
            }
            if plan.flow_control.traits().couples_lanes {
                let why = match plan.flow_control.traits().shares_headroom {
                    true => "A port can pause all lossless priorities of its peer",
                    false => "Lossless priorities share credit",
                };
                notes.push(format!(
                    "{why}, so a priority can wait for packets of another one. Such priorities wait as one here."
                ));
            }
        }
        PauseScope::Queue { queues, .. } => notes.push(format!(
            "Flows are assigned to the {queues} queues of a port during a run. This check assumes the worst \
             case: any two flows may share a queue."
        )),
        PauseScope::Onward if plan.flow_control.onward_queues().is_some_and(|q| q.loses_resumes()) => notes.push(
            "With one flag for both sets of queues of a port, a resume may never be sent, and then a queue \
             stays paused permanently without a cycle. This check does not cover that case."
                .to_string(),
        ),
        PauseScope::Root | PauseScope::Onward | PauseScope::Flow => {}
    }
    if routes == Routes::Scenario && plan.ate.is_some() {
        notes.push(
            "With routing.ate, a source chooses between two routes of a flow. This check counts both in full."
                .to_string(),
        );
    }
    if routes == Routes::Scenario && !plan.faults.reroutes.is_empty() {
        notes.push(format!(
            "Routes change {} times. This check combines the waits before, during and after each change.",
            plan.faults.reroutes.len()
        ));
    }
    if routes != Routes::Scenario && !all::explicit(&loaded.scenario, plan).is_empty() {
        notes.push(
            "Flows with explicit paths are checked in addition to all routes of the routing.".to_string(),
        );
    }
    if routes.has_failures() {
        let together = match routes.failing() {
            Failing { links: 0 | 1, switches: 0 | 1 } => "",
            _ => " Failures of one case happen at the same time.",
        };
        notes.push(format!(
            "Failed links and switches stay down: this check does not cover packets in flight when they recover.{together} A \
             host's only link does not fail in this check. A failure that separates hosts leaves them without routes, and that is no \
             deadlock."
        ));
    }
    let later = plan.faults.down.iter().any(|d| d.spans.iter().any(|s| s.0 > 0 || s.1 < u64::MAX));
    if routes != Routes::Scenario && later {
        notes.push(
            "Failures of the scenario at time 0 apply permanently. This check does not cover later failures \
             and recoveries."
                .to_string(),
        );
    }
    notes
}

/// Hosts without a route to the first one: between them nothing is examined.
fn unreachable(plan: &Plan, router: &mut Router) -> Option<String> {
    let mut hosts = plan.topology.hosts();
    let first = hosts.next()?;
    let name = |host: u32| plan.topology.nodes[host as usize].name.as_str();
    let lost: Vec<&str> = hosts.filter(|&host| router.next_hops(host, first).is_empty()).map(name).collect();
    (!lost.is_empty()).then(|| {
        format!(
            "{} of {} hosts have no route to {}: {}. Hosts without a route between them are not examined.",
            lost.len(),
            plan.topology.hosts().count(),
            name(first),
            xoff_net::text::sample(&lost)
        )
    })
}

/// What routes do that scenarios may not, under pauses by onward port: cross a second relay, and more links between
/// switches than two.
fn beyond(queues: &dyn OnwardQueues, [second_relay, refused]: [bool; 2]) -> Vec<String> {
    let scheme = queues.scheme();
    let relay = second_relay.then(|| {
        format!(
            "Some of these routes cross a second relay, where {scheme} cannot pause. They cannot deadlock, but packets \
             may be dropped. Scenarios with such flows are rejected."
        )
    });
    let climb = refused.then(|| {
        format!(
            "Some of these routes cross more than two links between switches in a row, or loop. {scheme} has no proof \
             for them, and they are not examined here. Scenarios with such flows are rejected."
        )
    });
    relay.into_iter().chain(climb).collect()
}

fn cycle_report(plan: &Plan, cycle: &Cycle, edges: &[Edge]) -> CycleReport {
    let edges = edges.iter().map(|e| EdgeReport {
        from: entry(plan, e.from),
        to: entry(plan, e.to),
        closed_by: e.closers.iter().take(NAMED).map(|c| route_report(plan, c)).collect(),
        flows: e.count,
        passed_on: e.passed_on,
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
    let called = match (route.flow, &path[..]) {
        (Some(id), _) => blocking::flow_name(plan, id),
        (None, [first, .., last]) => format!("{first} -> {last}"),
        (None, _) => "in flight".to_string(),
    };
    RouteReport { flow: route.flow, name: called, packets: route.kind, path }
}
