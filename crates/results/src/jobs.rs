//! Jobs: the collective operations and iterations of a class of traffic, and what their time went to.
//!
//! The critical path of a job goes back from its last event: from a delivery over its flow to the gate that began
//! it, from a gate to the delivery or gate that opened it last. Its parts add up to the job's time.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::{human, names};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::topology::PortId;
use xoff_outcome::{Leg, Outcome, Part, Share};
use xoff_plan::plan::{Job, Operation, Plan, Waits};

/// Most ports that a path names.
pub const LISTED: usize = 5;

/// A job in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSummary {
    pub class: String,
    /// When its first flow or computation began.
    pub start_ps: Time,
    /// When all of it was delivered and computed; null if it was not.
    pub completed_ps: Option<Time>,
    /// The difference of both: the job completion time.
    pub time_ps: Option<Time>,
    /// Training steps, or other iterations, in order.
    pub iterations: Vec<IterationSummary>,
    /// In the order in which they first occur.
    pub operations: Vec<OperationSummary>,
    /// Where the job's time went; null if it did not complete.
    pub path: Option<CriticalPath>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationSummary {
    /// When its last host ended it; null if not all did.
    pub end_ps: Option<Time>,
    /// From the end of the iteration before, or from the start of the job.
    pub time_ps: Option<Time>,
    /// The last host, and its time after the median host.
    pub last: Option<Late>,
}

/// The last host of several that did the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Late {
    pub host: String,
    pub behind_median_ps: Time,
}

/// Operations of one name, size and number of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationSummary {
    pub name: String,
    pub hosts: u32,
    /// Bytes of the buffer: of each host's where all-reduce or all-to-all, of the whole where all-gather or
    /// reduce-scatter.
    pub size: u64,
    pub count: u64,
    /// Those of which all messages were delivered; all other values are of these.
    pub finished: u64,
    /// From the first message's start to the last delivery: mean, and longest.
    pub mean_ps: Option<f64>,
    pub longest_ps: Option<Time>,
    /// Bytes that each host sends over the mean time, as nccl-tests count bus bandwidth, in bit/s.
    pub bus_bandwidth_bps: Option<f64>,
    /// The last host of the operation whose last host was the latest after the median.
    pub straggler: Option<Straggler>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    #[serde(flatten)]
    pub late: Late,
    /// When its last message was delivered.
    pub delivered_ps: Time,
    /// The path back to the start of the operation.
    pub path: CriticalPath,
}

/// A path through flows and computations. All but `ports` add up to its time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CriticalPath {
    pub flows: u64,
    /// Hosts computed.
    pub compute_ps: Time,
    /// Packets crossed links; with waits for windows, rates, receivers and retransmissions.
    pub moving_ps: Time,
    /// Packets waited in queues, paused or not. Null without measure.explain, which tells both apart.
    pub waiting_ps: Option<Time>,
    /// The ports that packets waited at, or that pauses were for; the longest first, at most [`LISTED`].
    pub ports: Vec<PortWait>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PortWait {
    pub port: String,
    pub waiting_ps: Time,
}

/// What happened in the run: when gates opened, and what opened them.
struct Seen<'a> {
    plan: &'a Plan,
    outcome: &'a Outcome,
    opened: Vec<Option<Time>>,
    /// By gate: the flows and the gates that open it.
    flows: Vec<Vec<u32>>,
    gates: Vec<Vec<u32>>,
    /// By flow, the end of its shares in the list of all; empty without them.
    shares: Vec<usize>,
}

/// By gate: when it opened.
pub(crate) fn opened(plan: &Plan, outcome: &Outcome) -> Vec<Option<Time>> {
    let mut opened = vec![None; plan.gates.len()];
    let mut waits = Waits::new(&plan.gates);
    // Computations may end after the last flow, and so after the run, but not after its duration.
    let end = plan.end.unwrap_or(Time::MAX);
    let mut open = |gate: u32, at| opened[gate as usize] = Some(at).filter(|&at| at <= end);
    waits.begin(&plan.gates, &mut open);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        if let (Some(gate), Some(at)) = (flow.opens, result.delivered) {
            waits.count_down(&plan.gates, gate, at, &mut open);
        }
    }
    opened
}

impl<'a> Seen<'a> {
    fn new(plan: &'a Plan, outcome: &'a Outcome) -> Self {
        let mut flows = vec![Vec::new(); plan.gates.len()];
        let mut gates = vec![Vec::new(); plan.gates.len()];
        for (index, flow) in (0..).zip(plan.flows.iter()) {
            if let Some(gate) = flow.opens {
                flows[gate as usize].push(index);
            }
        }
        for (index, gate) in (0..).zip(&plan.gates) {
            for &then in &gate.then {
                gates[then as usize].push(index);
            }
        }
        let shares = outcome.paths.as_ref().map_or(Vec::new(), |shares| {
            (0..plan.flows.len() as u32).map(|flow| shares.partition_point(|s| s.flow <= flow)).collect()
        });
        Self { plan, outcome, opened: opened(plan, outcome), flows, gates, shares }
    }

    fn delivered(&self, flow: u32) -> Option<Time> {
        self.outcome.flows[flow as usize].delivered
    }

    fn shares(&self, flow: u32) -> &'a [Share] {
        let Some(&end) = self.shares.get(flow as usize) else { return &[] };
        let from = flow.checked_sub(1).map_or(0, |before| self.shares[before as usize]);
        &self.outcome.paths.as_ref().expect("there are ends")[from..end]
    }

    /// The path from `start` to the delivery of a flow or the opening of a gate.
    fn path(&self, mut flow: Option<u32>, mut gate: Option<u32>, start: Time) -> CriticalPath {
        let mut path = CriticalPath::default();
        let mut waiting = 0;
        let mut ports: BTreeMap<PortId, Time> = BTreeMap::new();
        loop {
            if let Some(index) = flow.take() {
                let result = &self.outcome.flows[index as usize];
                let (Some(began), Some(delivered)) = (result.started, result.delivered) else { break };
                let took = delivered - began.max(start).min(delivered);
                // Of a flow that began before, its last part counts.
                let (mut left, mut waited) = (took, 0);
                for share in self.shares(index).iter().rev().filter(|s| s.leg != Leg::Ack) {
                    let time = share.time.min(left);
                    left -= time;
                    if time > 0 && matches!(share.part, Part::Queueing | Part::Own | Part::Victim) {
                        waited += time;
                        *ports.entry(share.root.unwrap_or(share.port)).or_default() += time;
                    }
                }
                path.flows += 1;
                path.moving_ps += took - waited;
                waiting += waited;
                gate = self.plan.flows[index as usize].after.filter(|_| began > start);
            } else if let Some(index) = gate.take() {
                let its = &self.plan.gates[index as usize];
                let Some(opened) = self.opened[index as usize] else { break };
                path.compute_ps += its.delay.min(opened.saturating_sub(start));
                let came = opened - its.delay;
                if came <= start {
                    break;
                }
                flow = self.flows[index as usize].iter().copied().find(|&f| self.delivered(f) == Some(came));
                if flow.is_none() {
                    let before = &self.gates[index as usize];
                    gate = before.iter().copied().find(|&g| self.opened[g as usize] == Some(came));
                }
            } else {
                break;
            }
        }
        path.waiting_ps = self.outcome.paths.is_some().then_some(waiting);
        let mut ports: Vec<(PortId, Time)> = ports.into_iter().collect();
        ports.sort_by_key(|&(_, time)| Reverse(time));
        let port = |&(port, waiting_ps): &(PortId, Time)| PortWait {
            port: names::port(self.plan, port),
            waiting_ps,
        };
        path.ports = ports.iter().take(LISTED).map(port).collect();
        path
    }
}

/// The last of several hosts, each with its time.
fn last(plan: &Plan, times: &BTreeMap<u32, Time>) -> Option<(u32, Late)> {
    let mut sorted: Vec<Time> = times.values().copied().collect();
    sorted.sort_unstable();
    let median = crate::statistics::nearest_rank(&sorted, 500)?;
    let latest = *sorted.last()?;
    let host = times.iter().find(|&(_, &time)| time == latest).map(|(&host, _)| host)?;
    Some((host, Late { host: names::node(plan, host).into(), behind_median_ps: latest - median }))
}

/// An operation whose messages were all delivered.
struct Done<'a> {
    operation: &'a Operation,
    start: Time,
    end: Time,
    bytes: u64,
}

/// Summarises the jobs of a run.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Vec<JobSummary> {
    if plan.jobs.is_empty() {
        return Vec::new();
    }
    let seen = Seen::new(plan, outcome);
    plan.jobs.iter().map(|job| summary(&seen, job)).collect()
}

fn summary(seen: &Seen<'_>, job: &Job) -> JobSummary {
    let (plan, outcome) = (seen.plan, seen.outcome);
    let flows = || {
        (0u32..).zip(plan.flows.iter()).filter(|(_, flow)| flow.class == job.class).map(|(index, _)| index)
    };
    let gates = || job.iterations.iter().flatten().copied();
    // The start of the whole, which no gate opens before.
    let start_ps = flows().map(|f| plan.flows[f as usize].start).min().unwrap_or(0);
    let delivered: Option<Vec<(Time, u32)>> = flows().map(|f| Some((seen.delivered(f)?, f))).collect();
    let opened: Option<Vec<(Time, u32)>> = gates().map(|g| Some((seen.opened[g as usize]?, g))).collect();
    let mut completed_ps = None;
    let mut path = None;
    if let (Some(delivered), Some(opened)) = (delivered, opened) {
        let (flow, gate) = (delivered.into_iter().max(), opened.into_iter().max());
        let last = flow.map(|f| f.0).max(gate.map(|g| g.0));
        completed_ps = last;
        let is_gate = gate.is_some_and(|(at, _)| Some(at) == last);
        path = Some(match gate {
            Some((_, gate)) if is_gate => seen.path(None, Some(gate), start_ps),
            _ => seen.path(flow.map(|f| f.1), None, start_ps),
        });
    }
    let mut groups: Vec<(&Operation, Vec<Done<'_>>, u64)> = Vec::new();
    let mut known: BTreeMap<(usize, u32, u64), usize> = BTreeMap::new();
    for operation in &job.operations {
        let index = *known.entry((operation.name, operation.hosts, operation.size)).or_insert_with(|| {
            groups.push((operation, Vec::new(), 0));
            groups.len() - 1
        });
        groups[index].2 += 1;
        let times = || operation.flows.iter().map(|&f| &outcome.flows[f as usize]);
        let start = times().map(|r| r.started).min().flatten();
        let all = times().all(|r| r.delivered.is_some());
        if let (Some(start), Some(end), true) = (start, times().map(|r| r.delivered).max().flatten(), all) {
            let bytes = operation.flows.iter().map(|&f| plan.flows[f as usize].size).sum();
            groups[index].1.push(Done { operation, start, end, bytes });
        }
    }
    JobSummary {
        class: plan.classes[usize::from(job.class)].clone(),
        start_ps,
        completed_ps,
        time_ps: completed_ps.map(|at| at - start_ps),
        iterations: iterations(seen, job, start_ps),
        operations: groups
            .into_iter()
            .map(|(first, done, count)| operation(seen, job, first, &done, count))
            .collect(),
        path,
    }
}

fn iterations(seen: &Seen<'_>, job: &Job, start: Time) -> Vec<IterationSummary> {
    let mut before = Some(start);
    let ends = job.iterations.iter().map(|gates| {
        let times: Option<BTreeMap<u32, Time>> = gates
            .iter()
            .map(|&g| Some((seen.plan.gates[g as usize].host, seen.opened[g as usize]?)))
            .collect();
        let end_ps = times.as_ref().and_then(|times| times.values().copied().max());
        let time_ps = end_ps.zip(before).map(|(end, before)| end - before);
        before = end_ps;
        IterationSummary {
            end_ps,
            time_ps,
            last: times.and_then(|times| last(seen.plan, &times)).map(|(_, late)| late),
        }
    });
    ends.collect()
}

fn operation(
    seen: &Seen<'_>,
    job: &Job,
    first: &Operation,
    done: &[Done<'_>],
    count: u64,
) -> OperationSummary {
    let total: Time = done.iter().map(|d| d.end - d.start).sum();
    let bytes: u64 = done.iter().map(|d| d.bytes).sum();
    let per_host = |bits: f64| bits / f64::from(first.hosts);
    OperationSummary {
        name: job.names[first.name].clone(),
        hosts: first.hosts,
        size: first.size,
        count,
        finished: done.len() as u64,
        mean_ps: (!done.is_empty()).then(|| total as f64 / done.len() as f64),
        longest_ps: done.iter().map(|d| d.end - d.start).max(),
        bus_bandwidth_bps: (total > 0).then(|| per_host(bytes as f64 * 8.0) / (total as f64 / SECOND as f64)),
        straggler: straggler(seen, done),
    }
}

fn straggler(seen: &Seen<'_>, done: &[Done<'_>]) -> Option<Straggler> {
    let candidates = done.iter().filter_map(|d| {
        let mut times: BTreeMap<u32, Time> = BTreeMap::new();
        for &flow in &d.operation.flows {
            let at = times.entry(seen.plan.flows[flow as usize].dst).or_default();
            *at = seen.delivered(flow)?.max(*at);
        }
        let (host, late) = last(seen.plan, &times)?;
        Some((d, host, late))
    });
    let (done, host, late) =
        candidates.max_by_key(|(d, _, late)| (late.behind_median_ps, Reverse(d.start)))?;
    let mut to_host =
        done.operation.flows.iter().copied().filter(|&f| seen.plan.flows[f as usize].dst == host);
    let delivered_ps = to_host.clone().filter_map(|f| seen.delivered(f)).max()?;
    let flow = to_host.find(|&f| seen.delivered(f) == Some(delivered_ps))?;
    (late.behind_median_ps > 0).then(|| Straggler {
        late,
        delivered_ps,
        path: seen.path(Some(flow), None, done.start),
    })
}

/// The table of jobs: iterations, operations, where the time went, stragglers.
pub fn render(jobs: &[JobSummary]) -> String {
    jobs.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn text(job: &JobSummary) -> String {
    use crate::table::Align::{Left, Right};
    let mut out = match job.time_ps {
        Some(time) => format!("Job \"{}\" took {}.\n", job.class, human::time(time)),
        None => format!("Job \"{}\" did not finish.\n", job.class),
    };
    if let Some(path) = &job.path {
        out += &crate::table::paragraph(&format!("Its critical path: {}.", path_text(path)));
    }
    let times: Vec<Time> = job.iterations.iter().filter_map(|i| i.time_ps).collect();
    if let (Some(&least), Some(&most)) = (times.iter().min(), times.iter().max()) {
        let mean = times.iter().map(|&t| t as f64).sum::<f64>() / times.len() as f64;
        let all = human::counted(job.iterations.len() as u64, "step");
        let ended = if times.len() == job.iterations.len() {
            String::new()
        } else {
            format!(", {} ended", times.len())
        };
        out += &format!(
            "{all}{ended}: mean {}, {} to {}.\n",
            human::time(mean as u64),
            human::time(least),
            human::time(most)
        );
    }
    let row = |o: &OperationSummary| {
        let or = |time: Option<Time>| time.map_or("-".into(), human::time);
        [
            o.name.clone(),
            human::count(o.hosts.into()),
            human::bytes(o.size),
            human::count(o.count),
            human::count(o.finished),
            or(o.mean_ps.map(|t| t as u64)),
            or(o.longest_ps),
            o.bus_bandwidth_bps.map_or("-".into(), human::rate),
            o.straggler
                .as_ref()
                .map_or("-".into(), |s| format!("{} +{}", s.late.host, human::time(s.late.behind_median_ps))),
        ]
    };
    let heads =
        ["operation", "hosts", "size", "count", "finished", "mean", "longest", "bus bandwidth", "straggler"];
    if !job.operations.is_empty() {
        out += &crate::table::headed(
            heads,
            [Left, Right, Right, Right, Right, Right, Right, Right, Left],
            job.operations.iter().map(row),
        );
    }
    let worst = job.operations.iter().filter_map(|o| Some((o, o.straggler.as_ref()?)));
    if let Some((o, s)) = worst.max_by_key(|(_, s)| s.late.behind_median_ps) {
        out += &crate::table::paragraph(&format!(
            "Largest straggler: {} had its data of {} {} after the median host. The path back to the start of the \
             operation: {}.",
            s.late.host,
            o.name,
            human::time(s.late.behind_median_ps),
            path_text(&s.path),
        ));
    }
    out
}

fn path_text(path: &CriticalPath) -> String {
    let mut parts = Vec::new();
    if path.compute_ps > 0 {
        parts.push(format!("{} computing", human::time(path.compute_ps)));
    }
    let flows = human::counted(path.flows, "flow");
    let Some(waiting) = path.waiting_ps else {
        parts.push(format!("{} in {flows} (measure.explain shows the ports)", human::time(path.moving_ps)));
        return human::listed(&parts);
    };
    parts.push(format!("{} moving in {flows}", human::time(path.moving_ps)));
    let at: Vec<String> =
        path.ports.iter().take(3).map(|p| format!("{} for {}", human::time(p.waiting_ps), p.port)).collect();
    let at = if at.is_empty() { String::new() } else { format!(": {}", at.join(", ")) };
    parts.push(format!("{} waiting in queues{at}", human::time(waiting)));
    human::listed(&parts)
}
