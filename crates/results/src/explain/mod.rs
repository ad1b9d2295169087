//! `xoff explain`: where the time of a run's flows went, and who held them up.
//!
//! Everything is read from the run directory ([`read`]) and reported in three forms: the run as a whole, one
//! flow, or one congested port. [`text`] has the words.
//!
//! Where pauses name their port, a wait is judged by that port; its judgement by the surviving root, where
//! the packets were, is beside it. With other schemes both are the same. In all answers `peer` is the port
//! that a port leads to, and `surviving` is null where no pause of the run named a port.

pub mod read;
pub mod text;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::storage::Error;
use read::{Ahead, By, Ending, Flow, Run, Share};

/// Slow flows that an overview names.
pub const SLOWEST: usize = 5;
/// Victims and roots that an overview names.
const LISTED: usize = 10;

/// Time of one activity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartTime {
    /// As in `critical.parquet`.
    pub part: String,
    pub time_ps: u64,
}

/// Time that pauses for one congested port took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RootTime {
    pub port: String,
    pub peer: String,
    /// The flow's path goes through it, at some place.
    pub crossed: bool,
    /// Time for which it was on the rest of the path.
    pub own_ps: u64,
    /// Time that it was not.
    pub victim_ps: u64,
}

/// A port on the path of a flow, and the time there.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// `source`, `data` or `ack`.
    pub leg: String,
    pub port: String,
    pub peer: String,
    /// Its shares add up to this.
    pub time_ps: u64,
    pub shares: Vec<StepShare>,
}

/// A part of the time at a port.
#[derive(Clone, Debug, Serialize)]
pub struct StepShare {
    /// As in `critical.parquet`; by the port that the pause's frame named, if it did.
    pub part: String,
    /// The congested port, of pauses; the one that was named, if one was.
    pub root: Option<String>,
    /// Of pauses whose frame named a port: `own` or `victim` by the surviving root.
    pub surviving_part: Option<String>,
    /// The same: the surviving root.
    pub surviving_root: Option<String>,
    pub time_ps: u64,
}

/// Waiting for pauses that named one port, while the packets were at another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stood {
    pub named_root: String,
    pub named_peer: String,
    /// That port was off the rest of the path.
    pub named_off: bool,
    /// The port where the packets were.
    pub surviving_root: String,
    pub surviving_peer: String,
    /// That port was off the rest of the path.
    pub surviving_off: bool,
    pub time_ps: u64,
}

/// A flow's waiting by the surviving roots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowSurviving {
    pub victim_ps: u64,
    /// Where the two judgements are of different ports; most first.
    pub stood: Vec<Stood>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FlowAnswer {
    #[serde(flatten)]
    pub head: Flow,
    pub run: Ending,
    /// Its waiting for ports off its path.
    pub victim_ps: u64,
    pub surviving: Option<FlowSurviving>,
    /// As in [`Overview`].
    pub merged_longest_ps: u64,
    /// The activities of its time; largest first. They add up to it.
    pub parts: Vec<PartTime>,
    /// For whose congestion it waited; most victim first.
    pub roots: Vec<RootTime>,
    /// Along its path. They add up to its time.
    pub steps: Vec<Step>,
    /// The packets ahead of it in queues that were not paused: at most five flows at each port, then all others.
    pub ahead: Vec<AheadOf>,
    /// The same by class, most time first.
    pub ahead_by_class: Vec<ClassAhead>,
}

/// Packets of a flow that were ahead of the explained one's.
#[derive(Clone, Debug, Serialize)]
pub struct AheadOf {
    /// `data` or `ack`.
    pub leg: String,
    pub port: String,
    pub peer: String,
    /// Null: all flows that are not listed, and control frames.
    pub flow: Option<Flow>,
    /// The number of flows.
    pub flows: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    pub time_ps: u64,
}

/// Packets of a class of traffic that were ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassAhead {
    /// Null: flows that are not listed, and control frames.
    pub class: Option<String>,
    pub bytes: u64,
    pub time_ps: u64,
}

/// A flow that waited for a port that was off its path.
#[derive(Clone, Debug, Serialize)]
pub struct Victim {
    #[serde(flatten)]
    pub head: Flow,
    /// Its victim waiting, for the port in question or for all.
    pub victim_ps: u64,
    /// Where, or (in an overview) for whom; most first.
    pub most: Vec<Place>,
}

/// A slow flow, and its largest delay.
#[derive(Clone, Debug, Serialize)]
pub struct Slow {
    #[serde(flatten)]
    pub head: Flow,
    /// Null: only transmission and propagation.
    pub most: Option<Delay>,
}

/// The time of one activity at one port.
#[derive(Clone, Debug, Serialize)]
pub struct Delay {
    /// As in `critical.parquet`.
    pub part: String,
    pub port: String,
    pub peer: String,
    /// The congested port, of pauses.
    pub root: Option<String>,
    pub time_ps: u64,
}

/// A port and a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    pub port: String,
    pub peer: String,
    pub flows: usize,
    pub time_ps: u64,
}

/// Waiting for a port, and how many flows did so: victims, and those whose path crosses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PortWaits {
    pub victim_ps: u64,
    pub victims: usize,
    pub own_ps: u64,
    pub own_flows: usize,
}

/// A congested port, and who waited for it along critical paths.
#[derive(Clone, Debug, Serialize)]
pub struct PortAnswer {
    pub port: String,
    pub peer: String,
    pub run: Ending,
    pub surviving: Option<PortWaits>,
    /// As in [`Overview`].
    pub merged_longest_ps: u64,
    /// As in [`PortWaits`].
    pub victim_ps: u64,
    pub own_ps: u64,
    pub own_flows: usize,
    /// The paused ports in which its victims waited; most first.
    pub places: Vec<Place>,
    /// Its victims, most victim waiting first.
    pub victims: Vec<Victim>,
}

/// A congested port among others.
#[derive(Clone, Debug, Serialize)]
pub struct Root {
    pub port: String,
    pub peer: String,
    /// Victim waiting for it.
    pub victim_ps: u64,
    /// Flows that waited so.
    pub victims: usize,
    /// The paused ports in which they did; most first.
    pub places: Vec<Place>,
}

/// Victim waiting of many flows, judged in one way.
#[derive(Clone, Debug, Serialize)]
pub struct Surviving {
    pub victim_ps: u64,
    /// Flows that waited so.
    pub victim_flows: usize,
    /// At most ten, most victim waiting first.
    pub victims: Vec<Victim>,
    /// At most ten, most victim waiting first.
    pub roots: Vec<Root>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// Name of its scenario.
    pub scenario: String,
    pub run: Ending,
    /// Which flows are looked at, in words; empty: all.
    pub chosen: String,
    /// Only flows of this class are looked at; null: all.
    pub class: Option<String>,
    pub flows: usize,
    /// How many of them were not complete at the end, and had not failed.
    pub unfinished: usize,
    /// How many of them had failed.
    pub failed: usize,
    /// All of their time.
    pub took_ps: u64,
    /// Its activities; largest first.
    pub parts: Vec<PartTime>,
    /// This and the next three as in [`Surviving`], by the ports that pauses named.
    pub victim_ps: u64,
    pub victim_flows: usize,
    pub victims: Vec<Victim>,
    pub roots: Vec<Root>,
    /// Congested ports on the path of the packets that waited for them: at most ten, longest wait first.
    pub own_roots: Vec<Place>,
    /// The flows with the highest slowdown (unfinished ones by their time until the end), each with its reason.
    pub slowest: Vec<Slow>,
    /// Packets of other flows, and of the same flow, that were ahead in queues that were not paused; by class.
    pub ahead_by_class: Vec<ClassAhead>,
    /// Packets that were dropped.
    pub dropped: u64,
    pub surviving: Option<Surviving>,
    /// Longest time from the PAUSE that made a root yield until a MERGE of its tree took
    /// effect; 0 without any.
    pub merged_longest_ps: u64,
}

fn peer(run: &Run, port: &str) -> String {
    run.peers.get(port).cloned().unwrap_or_default()
}

/// Sums by part, most first.
fn parts<'s>(shares: impl Iterator<Item = &'s Share>) -> Vec<PartTime> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    shares.for_each(|share| *sums.entry(share.part(By::Named)).or_default() += share.time_ps);
    let mut parts: Vec<_> =
        sums.into_iter().map(|(part, time_ps)| PartTime { part: part.into(), time_ps }).collect();
    parts.sort_by_key(|part| Reverse(part.time_ps));
    parts
}

/// Sums by the port that `name` returns, largest first.
fn places<'s>(
    run: &Run,
    shares: impl Iterator<Item = &'s Share>,
    name: impl Fn(&'s Share) -> Option<&'s str>,
) -> Vec<Place> {
    let mut sums: BTreeMap<&str, (u64, Vec<usize>)> = BTreeMap::new();
    for (share, port) in shares.filter_map(|share| Some((share, name(share)?))) {
        let (time, flows) = sums.entry(port).or_default();
        *time += share.time_ps;
        // Shares come flow by flow.
        if flows.last() != Some(&share.flow) {
            flows.push(share.flow);
        }
    }
    let place = |(port, (time_ps, flows)): (&str, (u64, Vec<usize>))| Place {
        port: port.into(),
        peer: peer(run, port),
        flows: flows.len(),
        time_ps,
    };
    let mut places: Vec<_> = sums.into_iter().map(place).collect();
    places.sort_by_key(|place| Reverse(place.time_ps));
    places
}

/// The flows that are looked at: those of a class, from and to a host; or all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choice<'a> {
    pub class: Option<&'a str>,
    pub src: Option<&'a str>,
    pub dst: Option<&'a str>,
}

impl Choice<'_> {
    fn has(&self, flow: &Flow) -> bool {
        let is = |wanted: Option<&str>, found: &str| wanted.is_none_or(|wanted| wanted == found);
        is(self.class, &flow.class) && is(self.src, &flow.src) && is(self.dst, &flow.dst)
    }

    /// Such as ` of class storage from H1`.
    fn words(&self) -> String {
        let word =
            |what: &str, name: Option<&str>| name.map_or(String::new(), |name| format!(" {what} {name}"));
        word("of class", self.class) + &word("from", self.src) + &word("to", self.dst)
    }
}

fn chosen<'r>(
    path: &Path,
    run: &'r Run,
    choice: Choice<'r>,
) -> Result<impl Iterator<Item = &'r Flow> + Clone, Error> {
    let flows = run.flows.iter().filter(move |flow| choice.has(flow));
    let ends =
        [("--src", choice.src), ("--dst", choice.dst)].map(|(option, name)| name.map(|name| (option, name)));
    for (option, name) in ends.into_iter().flatten() {
        if !run.flows.iter().any(|flow| [&flow.src, &flow.dst].into_iter().any(|host| host == name)) {
            let help = format!(
                "Type the name of a host with flows after {option}: columns `src` and `dst` of flows.parquet."
            );
            return Err(Error::new(path, format!("has no flow of the host `{name}`"), help));
        }
    }
    if flows.clone().next().is_none() && (choice.src.is_some() || choice.dst.is_some()) {
        let help = "Leave out one of --class, --src and --dst.";
        return Err(Error::new(path, format!("has no flow{}", choice.words()), help));
    }
    if let Some(class) = choice.class
        && flows.clone().next().is_none()
    {
        let mut classes: Vec<&str> = run.flows.iter().map(|flow| flow.class.as_str()).collect();
        classes.sort_unstable();
        classes.dedup();
        let help = format!("The classes are {}.", classes.join(", "));
        return Err(Error::new(path, format!("has no flow of the class `{class}`"), help));
    }
    Ok(flows)
}

/// Explains a flow of the run that was read from `path`.
pub fn flow(path: &Path, run: &Run, id: usize) -> Result<FlowAnswer, Error> {
    let flow = run.flows.get(id).ok_or_else(|| {
        let help = match run.flows.len() {
            0 => "The run has no flows.".into(),
            n => format!("The flows are 0 to {}: column `id` of flows.parquet.", n - 1),
        };
        Error::new(path, format!("has no flow {id}"), help)
    })?;
    let shares = run.of(flow);
    let share = |share: &Share| {
        let named = share.named_root.is_some();
        StepShare {
            part: share.part(By::Named).into(),
            root: share.root(By::Named).map(Into::into),
            surviving_part: named.then(|| share.part.clone()),
            surviving_root: share.root.clone().filter(|_| named),
            time_ps: share.time_ps,
        }
    };
    let steps = shares.chunk_by(|a, b| a.step == b.step).map(|shares| Step {
        leg: shares[0].leg.clone(),
        port: shares[0].port.clone(),
        peer: peer(run, &shares[0].port),
        time_ps: shares.iter().map(|share| share.time_ps).sum(),
        shares: shares.iter().map(share).collect(),
    });
    Ok(FlowAnswer {
        head: flow.clone(),
        run: run.ending.clone(),
        victim_ps: victim_time(shares, By::Named),
        surviving: run.names_roots().then(|| FlowSurviving {
            victim_ps: victim_time(shares, By::Surviving),
            stood: stood(run, shares),
        }),
        merged_longest_ps: run.merged_longest_ps,
        parts: parts(shares.iter()),
        roots: roots_of(run, shares),
        steps: steps.collect(),
        ahead: its_ahead(run, id).map(|ahead| ahead_of(run, ahead)).collect(),
        ahead_by_class: by_class(run, its_ahead(run, id)),
    })
}

/// What was ahead of a flow's packets.
fn its_ahead(run: &Run, id: usize) -> impl Iterator<Item = &Ahead> {
    let first = run.ahead.partition_point(|ahead| ahead.flow < id);
    run.ahead[first..].iter().take_while(move |ahead| ahead.flow == id)
}

fn ahead_of(run: &Run, ahead: &Ahead) -> AheadOf {
    AheadOf {
        leg: ahead.leg.clone(),
        port: ahead.port.clone(),
        peer: peer(run, &ahead.port),
        flow: ahead.other.and_then(|id| run.flows.get(id).cloned()),
        flows: ahead.others,
        bytes: ahead.bytes,
        time_ps: ahead.time_ps,
    }
}

/// Sums by class, most time first.
fn by_class<'r>(run: &'r Run, all: impl Iterator<Item = &'r Ahead>) -> Vec<ClassAhead> {
    let mut sums: BTreeMap<Option<&str>, (u64, u64)> = BTreeMap::new();
    for ahead in all {
        let class = ahead.other.and_then(|id| run.flows.get(id)).map(|flow| flow.class.as_str());
        let sum = sums.entry(class).or_default();
        *sum = (sum.0 + ahead.bytes, sum.1 + ahead.time_ps);
    }
    let entry = |(class, (bytes, time_ps)): (Option<&str>, (u64, u64))| ClassAhead {
        class: class.map(Into::into),
        bytes,
        time_ps,
    };
    let mut classes: Vec<_> = sums.into_iter().map(entry).collect();
    classes.sort_by_key(|class| (class.class.is_none(), Reverse(class.time_ps)));
    classes
}

pub(crate) fn victim_time(shares: &[Share], by: By) -> u64 {
    shares.iter().filter(|share| share.is_victim(by)).map(|share| share.time_ps).sum()
}

/// The congested ports that a flow waited for, most victim waiting first.
fn roots_of(run: &Run, shares: &[Share]) -> Vec<RootTime> {
    let mut roots: Vec<RootTime> = Vec::new();
    for share in shares {
        let Some(port) = share.root(By::Named) else { continue };
        let at = roots.iter().position(|root| root.port == port).unwrap_or_else(|| {
            let crossed = shares.iter().any(|share| share.port == port);
            let peer = peer(run, port);
            roots.push(RootTime { port: port.into(), peer, crossed, own_ps: 0, victim_ps: 0 });
            roots.len() - 1
        });
        match share.is_victim(By::Named) {
            true => roots[at].victim_ps += share.time_ps,
            false => roots[at].own_ps += share.time_ps,
        }
    }
    roots.sort_by_key(|root| Reverse((root.victim_ps, root.own_ps)));
    roots
}

/// Where pauses that a flow waited for named another port than the surviving root.
fn stood(run: &Run, shares: &[Share]) -> Vec<Stood> {
    let mut all: Vec<Stood> = Vec::new();
    for share in shares {
        let (Some(named), Some(root)) = (&share.named_root, &share.root) else { continue };
        if named == root {
            continue;
        }
        let one = Stood {
            named_root: named.clone(),
            named_peer: peer(run, named),
            named_off: share.is_victim(By::Named),
            surviving_root: root.clone(),
            surviving_peer: peer(run, root),
            surviving_off: share.is_victim(By::Surviving),
            time_ps: share.time_ps,
        };
        match all.iter_mut().find(|known| Stood { time_ps: one.time_ps, ..(*known).clone() } == one) {
            Some(known) => known.time_ps += one.time_ps,
            None => all.push(one),
        }
    }
    // Those that the two judge differently come first.
    all.sort_by_key(|stood| Reverse((stood.named_off != stood.surviving_off, stood.time_ps)));
    all
}

/// Explains the effect of a port on other flows.
pub fn port(path: &Path, run: &Run, name: &str, choice: Choice<'_>) -> Result<PortAnswer, Error> {
    if !run.peers.contains_key(name) {
        let node = name.split_once(':').map_or(name, |(node, _)| node);
        let of_node = |p: &&String| p.split_once(':').is_some_and(|p| p.0 == node);
        let its: Vec<&str> = run.peers.keys().filter(of_node).map(String::as_str).collect();
        let help = match its.len() {
            0 => "`xoff topo` and ports.parquet list the ports, such as S0.0:1 or leaf1:Ethernet4.".into(),
            1..=16 => format!("The ports of {node} are {}.", its.join(", ")),
            n => format!("{node} has the ports {node}:0 to {node}:{}.", n - 1),
        };
        return Err(Error::new(path, format!("has no port `{name}`"), help));
    }
    let flows = chosen(path, run, choice)?;
    let as_victim = |share: &&Share| share.root(By::Named) == Some(name) && share.is_victim(By::Named);
    let most = |flow: &Flow| places(run, run.of(flow).iter().filter(as_victim), |share| Some(&share.port));
    let waited = |flow: &Flow| {
        let (victim_ps, _) = waits_for(run.of(flow), name, By::Named);
        (victim_ps > 0).then(|| Victim { head: flow.clone(), victim_ps, most: most(flow) })
    };
    let mut victims: Vec<Victim> = flows.clone().filter_map(waited).collect();
    victims.sort_by_key(|victim| Reverse(victim.victim_ps));
    let named = sums(run, name, flows.clone(), By::Named);
    Ok(PortAnswer {
        port: name.into(),
        peer: peer(run, name),
        run: run.ending.clone(),
        surviving: run.names_roots().then(|| sums(run, name, flows.clone(), By::Surviving)),
        merged_longest_ps: run.merged_longest_ps,
        victim_ps: named.victim_ps,
        own_ps: named.own_ps,
        own_flows: named.own_flows,
        places: places(run, flows.flat_map(|f| run.of(f)).filter(as_victim), |share| Some(&share.port)),
        victims,
    })
}

/// A flow's waiting for a port: as a victim, and where the port was on its path.
fn waits_for(shares: &[Share], port: &str, by: By) -> (u64, u64) {
    let its = || shares.iter().filter(|share| share.root(by) == Some(port));
    let sum = |victim: bool| its().filter(|s| s.is_victim(by) == victim).map(|s| s.time_ps).sum();
    (sum(true), sum(false))
}

/// The waiting of some flows for a port.
fn sums<'r>(run: &Run, name: &str, flows: impl Iterator<Item = &'r Flow>, by: By) -> PortWaits {
    let mut sums = PortWaits::default();
    for flow in flows {
        let (victim_ps, own_ps) = waits_for(run.of(flow), name, by);
        sums.victim_ps += victim_ps;
        sums.victims += usize::from(victim_ps > 0);
        sums.own_ps += own_ps;
        sums.own_flows += usize::from(own_ps > 0);
    }
    sums
}

/// Explains a run as a whole, and its `slowest` flows.
pub fn overview(path: &Path, run: &Run, choice: Choice<'_>, slowest: usize) -> Result<Overview, Error> {
    let flows = chosen(path, run, choice)?.filter(|flow| flow.start_ps.is_some());
    let chosen: BTreeSet<usize> = flows.clone().map(|flow| flow.flow).collect();
    let shares = || flows.clone().flat_map(|flow| run.of(flow));
    let own = shares().filter(|share| share.part(By::Named) == "own");
    let mut own_roots = places(run, own, |share| share.root(By::Named));
    own_roots.truncate(LISTED);
    let Surviving { victim_ps, victim_flows, victims, roots } = waiting(run, flows.clone(), By::Named);
    Ok(Overview {
        scenario: run.scenario.clone(),
        run: run.ending.clone(),
        chosen: choice.words(),
        class: choice.class.map(Into::into),
        flows: flows.clone().count(),
        unfinished: flows.clone().filter(|flow| !flow.finished && !flow.failed).count(),
        failed: flows.clone().filter(|flow| flow.failed).count(),
        took_ps: flows.clone().map(|flow| flow.took_ps).sum(),
        parts: parts(shares()),
        victim_ps,
        victim_flows,
        victims,
        roots,
        own_roots,
        slowest: slowest_of(run, flows.clone(), slowest),
        ahead_by_class: by_class(run, run.ahead.iter().filter(|ahead| chosen.contains(&ahead.flow))),
        dropped: run.dropped,
        surviving: run.names_roots().then(|| waiting(run, flows.clone(), By::Surviving)),
        merged_longest_ps: run.merged_longest_ps,
    })
}

/// The flows with the highest slowdown.
fn slowest_of<'r>(run: &Run, flows: impl Iterator<Item = &'r Flow>, count: usize) -> Vec<Slow> {
    let mut flows: Vec<&Flow> = flows.collect();
    let slowdown = |flow: &Flow| flow.took_ps as f64 / flow.ideal_ps.max(1) as f64;
    flows.sort_by(|a, b| slowdown(b).total_cmp(&slowdown(a)).then(a.flow.cmp(&b.flow)));
    let slow = |flow: &&Flow| {
        let shares = run.of(flow);
        let mut sums: BTreeMap<(&str, &str, Option<&str>), u64> = BTreeMap::new();
        for share in shares {
            let key = (share.part(By::Named), share.port.as_str(), share.root(By::Named));
            *sums.entry(key).or_default() += share.time_ps;
        }
        let delays = sums.into_iter().filter(|((part, ..), _)| !["sending", "propagation"].contains(part));
        let most = delays.max_by_key(|&(key, time)| (time, Reverse(key)));
        Slow {
            head: (*flow).clone(),
            most: most.map(|((part, port, root), time_ps)| Delay {
                part: part.into(),
                port: port.into(),
                peer: peer(run, port),
                root: root.map(Into::into),
                time_ps,
            }),
        }
    };
    flows.iter().take(count).map(slow).collect()
}

/// Victim waiting of some flows: the worst of them, and the worst roots.
fn waiting<'r>(run: &'r Run, flows: impl Iterator<Item = &'r Flow> + Clone, by: By) -> Surviving {
    let shares = || flows.clone().flat_map(|flow| run.of(flow)).filter(|share| share.is_victim(by));
    let waited = |flow: &'r Flow| (victim_time(run.of(flow), by), flow);
    let mut victims: Vec<_> = flows.clone().map(waited).filter(|victim| victim.0 > 0).collect();
    victims.sort_by_key(|victim| Reverse(victim.0));
    let victim_flows = victims.len();
    let victim = |(victim_ps, flow): (u64, &Flow)| {
        let victim = run.of(flow).iter().filter(|share| share.is_victim(by));
        Victim { head: flow.clone(), victim_ps, most: places(run, victim, |share| share.root(by)) }
    };
    let root = |place: Place| {
        let its = shares().filter(|share| share.root(by) == Some(&place.port));
        Root {
            victim_ps: place.time_ps,
            victims: place.flows,
            places: places(run, its, |share| Some(&share.port)),
            port: place.port,
            peer: place.peer,
        }
    };
    Surviving {
        victim_ps: shares().map(|share| share.time_ps).sum(),
        victim_flows,
        victims: victims.into_iter().take(LISTED).map(victim).collect(),
        roots: places(run, shares(), |share| share.root(by)).into_iter().take(LISTED).map(root).collect(),
    }
}
