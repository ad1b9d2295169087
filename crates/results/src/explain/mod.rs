//! `xoff explain`: where the time of a run's flows went, and who held them up.
//!
//! Everything is read from the run directory ([`read`]) and told in three ways: the
//! run as a whole, one flow, or one congested port. [`text`] makes words of it.

pub mod read;
pub mod text;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::directory::Error;
use read::{Flow, Run, Share};

/// Victims and roots that an overview names.
const LISTED: usize = 10;

/// Picoseconds of a whole, with what they were spent on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartTime {
    /// As in `critical.parquet`.
    pub part: String,
    /// Time.
    pub time_ps: u64,
}

/// Time that pauses for one congested port took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootTime {
    /// The congested port.
    pub port: String,
    /// The port that it leads to.
    pub peer: String,
    /// The flow's path goes through it, at some place.
    pub crossed: bool,
    /// Time that it was on the rest of the way.
    pub own_ps: u64,
    /// Time that it was not.
    pub innocent_ps: u64,
}

/// A flow and how long it took.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// As in `flows.parquet`.
    pub flow: usize,
    /// Sender.
    pub src: String,
    /// Receiver.
    pub dst: String,
    /// Traffic class.
    pub class: String,
    /// Payload bytes.
    pub size: u64,
    /// When it began; null if the run ended before.
    pub start_ps: Option<u64>,
    /// Whether it was complete when the run ended.
    pub finished: bool,
    /// From its beginning until it was complete, or the run's end.
    pub took_ps: u64,
    /// How long it takes alone; 0 if its route loops.
    pub ideal_ps: u64,
}

/// A port on the path of a flow, and the time there.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// `source`, `data` or `ack`.
    pub leg: String,
    /// The egress port.
    pub port: String,
    /// The port that it leads to.
    pub peer: String,
    /// Its shares add up to this.
    pub time_ps: u64,
    /// What the time was spent on.
    pub shares: Vec<StepShare>,
}

/// A part of the time at a port.
#[derive(Clone, Debug, Serialize)]
pub struct StepShare {
    /// As in `critical.parquet`.
    pub part: String,
    /// The congested port, of pauses.
    pub root: Option<String>,
    /// Time.
    pub time_ps: u64,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowAnswer {
    /// Which one.
    #[serde(flatten)]
    pub head: Head,
    /// What its time was spent on; most first. They add up to it.
    pub parts: Vec<PartTime>,
    /// For whose congestion it waited; most innocent first.
    pub roots: Vec<RootTime>,
    /// Along its path. They add up to its time.
    pub steps: Vec<Step>,
}

/// A flow that waited for a port that was off its way.
#[derive(Clone, Debug, Serialize)]
pub struct Victim {
    /// Which one.
    #[serde(flatten)]
    pub head: Head,
    /// Its innocent waiting, for the port in question or for all.
    pub innocent_ps: u64,
    /// Where, or (in an overview) for whom; most first.
    pub most: Vec<Place>,
}

/// A port and a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The port.
    pub port: String,
    /// The port that it leads to.
    pub peer: String,
    /// Flows that waited.
    pub flows: usize,
    /// Time.
    pub time_ps: u64,
}

/// A congested port, and who waited for it along critical paths.
#[derive(Clone, Debug, Serialize)]
pub struct PortAnswer {
    /// The port.
    pub port: String,
    /// The port that it leads to.
    pub peer: String,
    /// Innocent waiting for it, of all victims.
    pub innocent_ps: u64,
    /// Waiting for it of those whose way went on through it.
    pub own_ps: u64,
    /// How many those were.
    pub own_flows: usize,
    /// The paused ports in which its victims waited; most first.
    pub places: Vec<Place>,
    /// Its victims, most innocent waiting first.
    pub victims: Vec<Victim>,
}

/// A congested port among others.
#[derive(Clone, Debug, Serialize)]
pub struct Root {
    /// The port.
    pub port: String,
    /// The port that it leads to.
    pub peer: String,
    /// Innocent waiting for it.
    pub innocent_ps: u64,
    /// Flows that waited so.
    pub victims: usize,
    /// The paused ports in which they did; most first.
    pub places: Vec<Place>,
}

/// The whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// Name of its scenario.
    pub scenario: String,
    /// Only flows of this class are looked at; null: all.
    pub class: Option<String>,
    /// Flows that began.
    pub flows: usize,
    /// How many of them were not complete at the end.
    pub unfinished: usize,
    /// All of their time.
    pub took_ps: u64,
    /// What it was spent on; most first.
    pub parts: Vec<PartTime>,
    /// How many flows waited as innocents.
    pub innocent_flows: usize,
    /// At most ten, most innocent waiting first.
    pub victims: Vec<Victim>,
    /// At most ten, most innocent waiting first.
    pub roots: Vec<Root>,
}

fn head(id: usize, flow: &Flow) -> Head {
    Head {
        flow: id,
        src: flow.src.clone(),
        dst: flow.dst.clone(),
        class: flow.class.clone(),
        size: flow.size,
        start_ps: flow.start_ps,
        finished: flow.completed_ps.is_some(),
        took_ps: flow.took_ps,
        ideal_ps: flow.ideal_ps,
    }
}

fn peer(run: &Run, port: &str) -> String {
    run.peers.get(port).cloned().unwrap_or_default()
}

fn is_innocent(share: &Share) -> bool {
    share.part == "innocent"
}

/// Sums by part, most first.
fn parts<'s>(shares: impl Iterator<Item = &'s Share>) -> Vec<PartTime> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    shares.for_each(|share| *sums.entry(&share.part).or_default() += share.time_ps);
    let mut parts: Vec<_> =
        sums.into_iter().map(|(part, time_ps)| PartTime { part: part.into(), time_ps }).collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.time_ps));
    parts
}

/// Sums by the port that `name` tells, most first.
fn places<'s>(
    run: &Run,
    shares: impl Iterator<Item = &'s Share>,
    name: impl Fn(&Share) -> Option<String>,
) -> Vec<Place> {
    let mut sums: BTreeMap<String, (u64, Vec<usize>)> = BTreeMap::new();
    for share in shares {
        let Some(port) = name(share) else { continue };
        let (time, flows) = sums.entry(port).or_default();
        *time += share.time_ps;
        // Shares come flow by flow.
        if flows.last() != Some(&share.flow) {
            flows.push(share.flow);
        }
    }
    let mut places: Vec<_> = sums
        .into_iter()
        .map(|(port, (time_ps, flows))| Place { peer: peer(run, &port), port, flows: flows.len(), time_ps })
        .collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.time_ps));
    places
}

/// The flows that are looked at: of a class, or all.
///
/// # Errors
/// There is no such class.
fn chosen<'r>(
    path: &Path,
    run: &'r Run,
    class: Option<&'r str>,
) -> Result<impl Iterator<Item = (usize, &'r Flow)> + Clone, Error> {
    if let Some(class) = class
        && !run.flows.iter().any(|flow| flow.class == class)
    {
        let mut classes: Vec<&str> = run.flows.iter().map(|flow| flow.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        return Err(Error {
            path: path.into(),
            message: format!("has no flow of a class `{class}`"),
            help: format!("Its classes are {}.", classes.join(", ")),
        });
    }
    let flows = run.flows.iter().enumerate();
    Ok(flows.filter(move |(_, flow)| class.is_none_or(|class| flow.class == class)))
}

/// Explains a flow of the run that was read from `path`.
///
/// # Errors
/// There is no such flow.
pub fn flow(path: &Path, run: &Run, id: usize) -> Result<FlowAnswer, Error> {
    let flow = run.flows.get(id).ok_or_else(|| Error {
        path: path.into(),
        message: format!("has no flow {id}"),
        help: match run.flows.len() {
            0 => "It has no flows at all.".into(),
            n => format!("Its flows are 0 to {}, as `id` in flows.parquet.", n - 1),
        },
    })?;
    let shares = run.of(flow);
    let mut roots: Vec<RootTime> = Vec::new();
    let mut steps: Vec<Step> = Vec::new();
    for (i, share) in shares.iter().enumerate() {
        if i == 0 || shares[i - 1].step != share.step {
            steps.push(Step {
                leg: share.leg.clone(),
                port: share.port.clone(),
                peer: peer(run, &share.port),
                time_ps: 0,
                shares: Vec::new(),
            });
        }
        if let Some(step) = steps.last_mut() {
            step.time_ps += share.time_ps;
            let Share { part, root, time_ps, .. } = share.clone();
            step.shares.push(StepShare { part, root, time_ps });
        }
        let Some(port) = &share.root else { continue };
        let at = roots.iter().position(|root| root.port == *port).unwrap_or_else(|| {
            let crossed = shares.iter().any(|share| share.port == *port);
            roots.push(RootTime {
                port: port.clone(),
                peer: peer(run, port),
                crossed,
                own_ps: 0,
                innocent_ps: 0,
            });
            roots.len() - 1
        });
        match is_innocent(share) {
            true => roots[at].innocent_ps += share.time_ps,
            false => roots[at].own_ps += share.time_ps,
        }
    }
    roots.sort_by_key(|root| std::cmp::Reverse((root.innocent_ps, root.own_ps)));
    Ok(FlowAnswer { head: head(id, flow), parts: parts(shares.iter()), roots, steps })
}

/// Explains what a port did to others.
///
/// # Errors
/// There is no such port, or no such class.
pub fn port(path: &Path, run: &Run, name: &str, class: Option<&str>) -> Result<PortAnswer, Error> {
    if !run.peers.contains_key(name) {
        let node = name.rsplit_once(':').map_or(name, |(node, _)| node);
        let its: Vec<&str> = run
            .peers
            .keys()
            .filter(|p| p.rsplit_once(':').is_some_and(|p| p.0 == node))
            .map(String::as_str)
            .collect();
        let help = match (its.first(), its.last()) {
            (Some(_), _) if its.len() <= 16 => format!("The ports of {node} are {}.", its.join(", ")),
            (Some(_), _) => format!("{node} has the ports {node}:0 to {node}:{}.", its.len() - 1),
            _ => "Ports are NODE:NUMBER, such as S0.0:1, as `xoff topo` and ports.parquet name them.".into(),
        };
        return Err(Error { path: path.into(), message: format!("has no port `{name}`"), help });
    }
    let flows = chosen(path, run, class)?;
    let its = |share: &&Share| share.root.as_deref() == Some(name);
    let mut answer = PortAnswer {
        port: name.into(),
        peer: peer(run, name),
        innocent_ps: 0,
        own_ps: 0,
        own_flows: 0,
        places: places(
            run,
            flows.clone().flat_map(|(_, f)| run.of(f)).filter(its).filter(|s| is_innocent(s)),
            |share| Some(share.port.clone()),
        ),
        victims: Vec::new(),
    };
    for (id, flow) in flows {
        let waits = || run.of(flow).iter().filter(its);
        let innocent_ps = waits().filter(|s| is_innocent(s)).map(|s| s.time_ps).sum();
        let own_ps: u64 = waits().filter(|s| !is_innocent(s)).map(|s| s.time_ps).sum();
        answer.own_ps += own_ps;
        answer.own_flows += usize::from(own_ps > 0);
        answer.innocent_ps += innocent_ps;
        if innocent_ps > 0 {
            let most = places(run, waits().filter(|s| is_innocent(s)), |share| Some(share.port.clone()));
            answer.victims.push(Victim { head: head(id, flow), innocent_ps, most });
        }
    }
    answer.victims.sort_by_key(|victim| std::cmp::Reverse(victim.innocent_ps));
    Ok(answer)
}

/// Explains a run as a whole.
///
/// # Errors
/// There is no such class.
pub fn overview(path: &Path, run: &Run, class: Option<&str>) -> Result<Overview, Error> {
    let flows = chosen(path, run, class)?.filter(|(_, flow)| flow.start_ps.is_some());
    let shares = || flows.clone().flat_map(|(_, flow)| run.of(flow));
    let mut victims = Vec::new();
    for (id, flow) in flows.clone() {
        let innocent = || run.of(flow).iter().filter(|s| is_innocent(s));
        let innocent_ps = innocent().map(|share| share.time_ps).sum();
        if innocent_ps > 0 {
            victims.push((innocent_ps, id, flow));
        }
    }
    victims.sort_by_key(|victim| std::cmp::Reverse(victim.0));
    let innocent_flows = victims.len();
    victims.truncate(LISTED);
    let mut roots = places(run, shares().filter(|s| is_innocent(s)), |share| share.root.clone());
    roots.truncate(LISTED);
    Ok(Overview {
        scenario: run.scenario.clone(),
        class: class.map(Into::into),
        flows: flows.clone().count(),
        unfinished: flows.clone().filter(|(_, flow)| flow.completed_ps.is_none()).count(),
        took_ps: flows.clone().map(|(_, flow)| flow.took_ps).sum(),
        parts: parts(shares()),
        innocent_flows,
        victims: victims
            .into_iter()
            .map(|(innocent_ps, id, flow)| {
                let innocent = run.of(flow).iter().filter(|s| is_innocent(s));
                Victim {
                    head: head(id, flow),
                    innocent_ps,
                    most: places(run, innocent, |share| share.root.clone()),
                }
            })
            .collect(),
        roots: roots
            .into_iter()
            .map(|root| {
                let its = |share: &&Share| is_innocent(share) && share.root.as_ref() == Some(&root.port);
                Root {
                    innocent_ps: root.time_ps,
                    victims: root.flows,
                    places: places(run, shares().filter(its), |share| Some(share.port.clone())),
                    port: root.port,
                    peer: root.peer,
                }
            })
            .collect(),
    })
}
