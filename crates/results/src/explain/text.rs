//! The same in words and bars.

use std::collections::BTreeMap;

use super::read::{Ending, Flow};
use super::{
    AheadOf, ClassAhead, FlowAnswer, Overview, PartTime, Place, PortAnswer, Root, RootTime, Slow, Step,
    Stood, Victim,
};
use crate::names::link;
use crate::table::Align::{Left, Right};
use crate::table::{aligned, headed, paragraph};
use crate::{breaking, human};

/// Victims of a port that are named.
const LISTED: usize = 20;
/// Parts of the time at a port in one line.
const IN_LINE: usize = 4;
/// How to ask further, at the end of an overview.
pub(crate) const FURTHER: &str = "\nTo explain one flow: --flow ID. To explain one congested port: --port PORT. To list more flows: --slowest N.\n";
/// Columns of the longest bar.
const BAR: u64 = 40;

/// A part of the time, in words.
fn meaning(part: &str) -> &'static str {
    match part {
        "sending" => "transmission onto links",
        "propagation" => "propagation along links",
        "queueing" => "in queues that were not paused, behind other packets",
        "own" => "in paused queues, because of a congested port on its path",
        "victim" => "in paused queues, because of a port off its path",
        "pacing" => "limited by its rate or by congestion control",
        "receiver" => "because the receiver did not accept packets",
        "down" => "because a link was down, or for credit of a port that stored nothing",
        "recovery" => "for retransmissions and timeouts",
        _ => "",
    }
}

fn share(part: u64, of: u64) -> String {
    format!("{:.1}%", part as f64 * 100.0 / of.max(1) as f64)
}

/// How the run ended, if by a deadlock or early.
fn ending(run: &Ending) -> String {
    let end = human::time(run.end_ps);
    let mut text = String::new();
    if let Some(deadlock) = &run.deadlock {
        let ports = deadlock.cycle.iter().chain(deadlock.cycle.first());
        let cycle = ports.map(String::as_str).collect::<Vec<_>>().join(" -> ");
        let closed = human::time(deadlock.closed_ps);
        let ended = match deadlock.ended_ps {
            None => "Packets in the cycle or upstream of it are blocked permanently".into(),
            Some(at) => format!("The deadlock ended at {}", human::time(at)),
        };
        let mut all = format!("The run deadlocked at {closed}: {cycle}. {ended}; the run ended at {end}.");
        if let Some(weakest) = &deadlock.weakest {
            all += &format!(" To break it: {}.", breaking::advice(weakest).join("; "));
        }
        text += &paragraph(&all);
    }
    let ended = match run.stop.as_str() {
        "interrupted" => {
            format!("The run was interrupted at {end}. All results cover only the time until then.")
        }
        "memory" => {
            format!("The memory budget ended the run at {end}. All results cover only the time until then.")
        }
        "livelock" => format!("Livelock: packets moved, but no flow made progress. The run ended at {end}."),
        _ => return text,
    };
    text + &paragraph(&ended)
}

/// Why the wait by the named port differs from the wait by the place of the packets.
fn two_roots(merged_longest_ps: u64) -> String {
    let merges = match merged_longest_ps {
        0 => String::new(),
        longest => format!(" (in this run after at most {})", human::time(longest)),
    };
    format!(
        "The two values differ because a pause stops all packets for the port that it names, even if they \
         queue at another port. Paths may split before the named port, and a false root's tree persists \
         until it is merged{merges}."
    )
}

fn bars(parts: &[PartTime]) -> String {
    let whole: u64 = parts.iter().map(|part| part.time_ps).sum();
    let row = |part: &PartTime| {
        // At least one column for a time above 0.
        let bar = (u128::from(part.time_ps) * u128::from(BAR)).div_ceil(u128::from(whole.max(1)));
        vec![
            part.part.clone(),
            human::time(part.time_ps),
            share(part.time_ps, whole),
            format!("{:<bar$}  {}", "#".repeat(bar as usize), meaning(&part.part), bar = BAR as usize),
        ]
    };
    aligned(&parts.iter().map(row).collect::<Vec<_>>(), &[Left, Right, Right, Left])
}

pub(crate) fn name(head: &Flow) -> String {
    format!("{} {} -> {} ({})", head.flow, head.src, head.dst, head.class)
}

/// `34× the ideal 24 us`.
fn times(head: &Flow) -> String {
    if head.ideal_ps == 0 {
        return "its route has a loop".into();
    }
    let times = head.took_ps as f64 / head.ideal_ps as f64;
    format!("{}× the ideal {}", human::ratio(times), human::time(head.ideal_ps))
}

fn opening(head: &Flow) -> String {
    let Flow { flow, src, dst, class, size, .. } = head;
    let (took, ideal) = (human::time(head.took_ps), human::time(head.ideal_ps));
    let text = format!("Flow {flow} ({class}), {} from {src} to {dst}, ", human::bytes(*size));
    text + &match (head.start_ps, head.finished) {
        (None, _) => "had not started when the run ended.".to_string(),
        (_, true) => format!("took {took}, {}.", times(head)),
        (_, false) if head.failed => {
            format!("failed: its sender gave up {took} after its start; the ideal is {ideal}.")
        }
        (_, false) => {
            format!("is unfinished: the run ended {took} after its start; the ideal is {ideal}.")
        }
    }
}

/// Who, of several roots, and for how long.
fn blamed(roots: &[&RootTime], time: impl Fn(&RootTime) -> u64) -> String {
    let one = |root: &RootTime| {
        let crossed = match (root.own_ps, root.crossed) {
            (0, false) => ", which it never crosses",
            (0, true) => ", which it crosses elsewhere on its path",
            _ => "",
        };
        format!("{}{crossed}", link(&root.port, &root.peer))
    };
    match roots {
        [] => String::new(),
        [root] => one(root),
        [root, ..] => {
            format!("{} congested ports, mostly {2} ({1})", roots.len(), human::time(time(root)), one(root))
        }
    }
}

/// The activity that took most of the time, except transmission.
fn worst(answer: &FlowAnswer) -> Option<&PartTime> {
    answer.parts.iter().find(|part| !["sending", "propagation"].contains(&part.part.as_str()))
}

/// The congested ports off its path for which a flow waited, the longest wait first.
fn victim_roots(answer: &FlowAnswer) -> Vec<&RootTime> {
    answer.roots.iter().filter(|root| root.victim_ps > 0).collect()
}

/// The same of ports on its path.
fn own_roots_of(answer: &FlowAnswer) -> Vec<&RootTime> {
    let mut roots: Vec<_> = answer.roots.iter().filter(|root| root.own_ps > 0).collect();
    roots.sort_by_key(|root| std::cmp::Reverse(root.own_ps));
    roots
}

/// The sentence on the activity that took most of the time, except transmission.
fn reason(answer: &FlowAnswer) -> String {
    let took = answer.head.took_ps;
    let Some(PartTime { part, time_ps }) = worst(answer) else {
        let nothing = "Nothing delayed it: all of its time is sending and propagation.";
        return if answer.parts.is_empty() { String::new() } else { nothing.into() };
    };
    let time = format!("It spent {} ({})", human::time(*time_ps), share(*time_ps, took));
    let most = || {
        let at = |step: &&Step| {
            step.shares.iter().filter(|share| share.part == *part).map(|share| share.time_ps).sum::<u64>()
        };
        let step = answer.steps.iter().max_by_key(at);
        step.map_or(String::new(), |step| {
            format!(", of which {} at {}", human::time(at(&step)), link(&step.port, &step.peer))
        })
    };
    match part.as_str() {
        "victim" => {
            let who = blamed(&victim_roots(answer), |root| root.victim_ps);
            format!("{time} in queues that were paused because of {who}.")
        }
        "own" => {
            let who = blamed(&own_roots_of(answer), |root| root.own_ps);
            format!("{time} in queues that were paused because of congestion on its path: {who}.")
        }
        "queueing" => format!("{time} behind other packets in queues that were not paused{}.", most()),
        "pacing" => format!("{time} at the limit of its rate or of congestion control."),
        "receiver" => format!("{time} waiting for a receiver that did not accept packets."),
        "down" => format!(
            "{time} waiting for a link that was down or had just recovered, or for credit of a port that stored nothing{}.",
            most()
        ),
        _ => format!("{time} on retransmissions, including the wait for timeouts."),
    }
}

/// One flow: sentences, a bar for each part, a line for each port.
pub fn flow(answer: &FlowAnswer) -> String {
    let text = ending(&answer.run) + &flow_sentences(answer);
    if answer.steps.is_empty() {
        return text;
    }
    format!("{text}\n{}{}\n{}", bars(&answer.parts), ahead(answer), steps(&answer.steps))
}

/// Only the sentences about a flow.
pub fn flow_sentences(answer: &FlowAnswer) -> String {
    let text = paragraph(&opening(&answer.head));
    if answer.steps.is_empty() {
        return text;
    }
    text + &paragraph(&reason(answer)) + &waited_for(answer) + &stood(answer)
}

/// Who was ahead in queues that were not paused: by class in a sentence, by port and flow in a table.
fn ahead(answer: &FlowAnswer) -> String {
    if answer.ahead.is_empty() {
        return String::new();
    }
    let row = |ahead: &AheadOf| {
        let who = match &ahead.flow {
            Some(flow) if flow.flow == answer.head.flow => format!("{} (its own packets)", name(flow)),
            Some(flow) => name(flow),
            None if ahead.flows == 0 => "control frames".into(),
            None => format!("{} and control frames", human::counted(ahead.flows, "other flow")),
        };
        [link(&ahead.port, &ahead.peer), who, human::bytes(ahead.bytes), human::time(ahead.time_ps)]
    };
    let rows = answer.ahead.iter().map(row);
    let table = headed(["queued at", "behind", "bytes", "time"], [Left, Left, Right, Right], rows);
    format!("\n{}\n{table}", classes("Ahead of it in queues that were not paused", &answer.ahead_by_class))
}

/// Such as `Ahead: training 240 us (1.2 MB), storage 3 us (4 kB).`
fn classes(what: &str, classes: &[ClassAhead]) -> String {
    let one = |class: &ClassAhead| {
        let name = class.class.as_deref().unwrap_or("flows that are not listed");
        format!("{name} {} ({})", human::time(class.time_ps), human::bytes(class.bytes))
    };
    paragraph(&format!("{what}: {}.", classes.iter().map(one).collect::<Vec<_>>().join(", ")))
}

/// The congested ports for which a flow waited: those off its path, or if there are none those on it. The
/// sentence above names a single one.
fn waited_for(answer: &FlowAnswer) -> String {
    let is_worst = |part: &str| worst(answer).is_some_and(|p| p.part == part);
    let table = |head: &str, roots: &[&RootTime], row: &dyn Fn(&RootTime) -> Vec<String>| {
        let cells =
            |root: &&RootTime| [vec![format!("  {}", link(&root.port, &root.peer))], row(root)].concat();
        let rows: Vec<_> = roots.iter().take(LISTED).map(cells).collect();
        format!("{head}:\n{}", aligned(&rows, &[Left, Right, Left]))
    };
    let (victim, own) = (victim_roots(answer), own_roots_of(answer));
    match (victim.len(), own.len()) {
        (1, _) if is_worst("victim") => String::new(),
        (1.., _) => table("Blocked by", &victim, &|root| {
            let crossed = if root.crossed { "crossed elsewhere on its path" } else { "never crossed" };
            vec![human::time(root.victim_ps), crossed.into()]
        }),
        (0, 0) => String::new(),
        (0, 1) if is_worst("own") => String::new(),
        (0, _) => table("Paused because of, on its own path", &own, &|root| vec![human::time(root.own_ps)]),
    }
}

/// The same time by the surviving roots, where pauses name ports.
fn stood(answer: &FlowAnswer) -> String {
    let Some(surviving) = &answer.surviving else { return String::new() };
    let mut text = format!(
        "Time as a victim: {} by the port that the pauses named, {} by the port where the packets queued.",
        human::time(answer.victim_ps),
        human::time(surviving.victim_ps)
    );
    let is = |off: bool| if off { "off its path" } else { "on its path" };
    let differ = |stood: &&Stood| stood.named_off != stood.surviving_off;
    for stood in surviving.stood.iter().filter(differ).take(IN_LINE) {
        text += &format!(
            " For {} the frames named {}, which is {}, and the packets queued at {}, which is {}.",
            human::time(stood.time_ps),
            link(&stood.named_root, &stood.named_peer),
            is(stood.named_off),
            link(&stood.surviving_root, &stood.surviving_peer),
            is(stood.surviving_off),
        );
    }
    if answer.victim_ps != surviving.victim_ps {
        text = text + " " + &two_roots(answer.merged_longest_ps);
    }
    paragraph(&text)
}

/// A line for each port of a path, or more where much happened.
fn steps(steps: &[Step]) -> String {
    let mut rows = Vec::new();
    for step in steps {
        // Sums that differ only in the surviving root are added.
        let mut sums: BTreeMap<(&str, Option<&str>), u64> = BTreeMap::new();
        for share in &step.shares {
            *sums.entry((&share.part, share.root.as_deref())).or_default() += share.time_ps;
        }
        let mut shares: Vec<_> = sums.into_iter().collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.1));
        for (i, some) in shares.chunks(IN_LINE).enumerate() {
            let spent = some.iter().map(|((part, root), time)| {
                let root = root.map_or(String::new(), |root| format!(" for {root}"));
                format!("{} {part}{root}", human::time(*time))
            });
            let spent = spent.collect::<Vec<_>>().join(", ");
            let [leg, port, time] = match i {
                0 => [step.leg.clone(), link(&step.port, &step.peer), human::time(step.time_ps)],
                _ => Default::default(),
            };
            rows.push([leg, port, time, spent]);
        }
    }
    headed(["leg", "port", "time", "parts of the time"], [Left, Left, Right, Left], rows)
}

/// The first of some places, and how many others there are.
fn most(places: &[Place]) -> String {
    let Some(first) = places.first() else { return String::new() };
    let others = match places.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    format!("{} {}{others}", link(&first.port, &first.peer), human::time(first.time_ps))
}

fn victims(victims: &[Victim], whom: &str) -> String {
    let row = |victim: &Victim| {
        let head = &victim.head;
        let times = match (head.finished, head.ideal_ps) {
            (false, _) => without_end(head).into(),
            (_, 0) => "-".into(),
            (_, ideal) => human::ratio(head.took_ps as f64 / ideal as f64),
        };
        [
            name(head),
            human::bytes(head.size),
            human::time(head.took_ps),
            human::time(head.ideal_ps),
            times,
            human::time(victim.victim_ps),
            share(victim.victim_ps, head.took_ps),
            most(&victim.most),
        ]
    };
    let heads = ["flow", "size", "FCT", "ideal", "slowdown", "victim", "", whom];
    headed(heads, [Left, Right, Right, Right, Right, Right, Right, Left], victims.iter().map(row))
}

/// Ports, times and numbers of flows.
fn places(heads: [&str; 3], places: &[Place]) -> String {
    let row = |place: &Place| {
        [link(&place.port, &place.peer), human::time(place.time_ps), human::count(place.flows as u64)]
    };
    headed(heads, [Left, Right, Right], places.iter().map(row))
}

/// One port: sentences, where its victims waited, and who they are.
pub fn port(answer: &PortAnswer) -> String {
    let port = link(&answer.port, &answer.peer);
    let own_ps = human::time(answer.own_ps);
    let own = match answer.own_flows {
        0 => String::new(),
        n => format!(" {} crossing it waited {own_ps} for it.", human::counted(n as u64, "flow")),
    };
    let surviving = answer.surviving.as_ref().map_or(String::new(), |surviving| {
        let why = match surviving.victim_ps == answer.victim_ps {
            true => String::new(),
            false => format!(" {}", two_roots(answer.merged_longest_ps)),
        };
        format!(
            " These values count the port that the pauses named. Counted by the port where the packets queued, \
             it blocked {} off its path for {} in total, and {} crossing it waited {}.{why}",
            human::counted(surviving.victims as u64, "flow"),
            human::time(surviving.victim_ps),
            human::counted(surviving.own_flows as u64, "flow"),
            human::time(surviving.own_ps),
        )
    });
    let ending = ending(&answer.run);
    let count = answer.victims.len();
    if count == 0 {
        return ending + &paragraph(&format!("{port} blocked no victim.{own}{surviving}"));
    }
    let (blocked, time) = (human::counted(count as u64, "victim"), human::time(answer.victim_ps));
    let mut text =
        ending + &paragraph(&format!("{port} blocked {blocked}, for {time} in total.{own}{surviving}"));
    let first = &answer.places[..answer.places.len().min(LISTED)];
    text += &format!("\n{}\n", places(["victims waited at", "time", "flows"], first));
    text += &victims(&answer.victims[..count.min(LISTED)], "mostly at");
    if count > LISTED {
        text += &format!("and {} more; --json lists all\n", human::count((count - LISTED) as u64));
    }
    text
}

/// The whole run: sentences, a bar for each part, the worst victims and roots.
pub fn overview(answer: &Overview) -> String {
    let mut text = overview_sentences(answer);
    if answer.flows == 0 {
        return text;
    }
    text = text + "\n" + &bars(&answer.parts);
    if !answer.ahead_by_class.is_empty() {
        text += "\n";
        text += &classes("Ahead of the flows in queues that were not paused", &answer.ahead_by_class);
    }
    if !answer.slowest.is_empty() {
        text += &slowest(&answer.slowest);
    }
    if !answer.victims.is_empty() {
        text += &worst_of("", &answer.victims, &answer.roots);
    } else if !answer.own_roots.is_empty() {
        text += "\nWorst congested ports on the paths of the flows\n";
        text += &places(["congested port", "waiting", "flows"], &answer.own_roots);
    }
    let both = answer.surviving.as_ref().filter(|surviving| !surviving.victims.is_empty());
    if let Some(surviving) = both {
        text += &worst_of(" (by the port where the packets queued)", &surviving.victims, &surviving.roots);
    }
    if !answer.victims.is_empty() || !answer.own_roots.is_empty() || both.is_some() {
        text += FURTHER;
    }
    text
}

/// Only the sentences about the whole run.
pub fn overview_sentences(answer: &Overview) -> String {
    let class = &answer.chosen;
    let of_them = |count: usize, what: &str| match count {
        0 => String::new(),
        n => format!(", {} of them {what}", human::count(n as u64)),
    };
    let unfinished = of_them(answer.unfinished, "unfinished") + &of_them(answer.failed, "failed");
    let by = if answer.surviving.is_some() { " (by the port that each pause named)" } else { "" };
    let victim = match answer.victim_ps {
        0 if by.is_empty() && answer.flows == 1 => "It was no victim.".to_string(),
        0 if by.is_empty() => "None of them was a victim.".to_string(),
        0 => format!("None of them was a victim{by}: 0 s."),
        time => format!(
            "{} waited for congestion off their path{by}: {} of the time of all flows.",
            human::counted(answer.victim_flows as u64, "victim"),
            share(time, answer.took_ps)
        ),
    };
    let surviving = answer.surviving.as_ref().map_or(String::new(), |surviving| {
        if surviving.victim_ps == answer.victim_ps {
            return " By the port where the packets queued, the result is the same.".into();
        }
        format!(
            " By the port where the packets queued, {} waited {}: {} of the time of all flows. {}",
            human::counted(surviving.victim_flows as u64, "victim"),
            human::time(surviving.victim_ps),
            share(surviving.victim_ps, answer.took_ps),
            two_roots(answer.merged_longest_ps)
        )
    });
    let (name, flows) = (&answer.scenario, human::counted(answer.flows as u64, "flow"));
    let dropped = match answer.dropped {
        0 => String::new(),
        n => paragraph(&format!("{} were dropped in the run.", human::counted(n, "packet"))),
    };
    // Loss before all else.
    dropped
        + &ending(&answer.run)
        + &paragraph(&format!("{name}: {flows}{class} explained{unfinished}. {victim}{surviving}"))
}

/// In place of the slowdown of a flow that did not finish.
fn without_end(head: &Flow) -> &'static str {
    if head.failed { "failed" } else { "unfinished" }
}

fn slowdown(slow: &Slow) -> String {
    match (slow.head.finished, slow.head.ideal_ps) {
        (false, _) => without_end(&slow.head).into(),
        (_, 0) => "-".into(),
        (_, ideal) => human::ratio(slow.head.took_ps as f64 / ideal as f64),
    }
}

/// The largest delay of a slow flow: `23 us victim for S0.1:2 at S1.0:0 -> S0.1`.
fn most_delayed(slow: &Slow) -> String {
    slow.most.as_ref().map_or("nothing".into(), |delay| {
        let root = delay.root.as_ref().map_or(String::new(), |root| format!(" for {root}"));
        format!("{} {}{root} at {}", human::time(delay.time_ps), delay.part, link(&delay.port, &delay.peer))
    })
}

/// The slowdown of a flow, and its largest delay.
pub fn delay(slow: &Slow) -> String {
    let times = match slowdown(slow).as_str() {
        "unfinished" => "is unfinished".to_string(),
        "failed" => "failed".into(),
        "-" => "finished".into(),
        times => format!("took {times}× its ideal time"),
    };
    format!("{times}. Its longest delay: {}.", most_delayed(slow))
}

/// The slowest flows, each with its largest delay.
fn slowest(flows: &[Slow]) -> String {
    let row = |slow: &Slow| {
        let head = &slow.head;
        let [times, most] = [slowdown(slow), most_delayed(slow)];
        [
            name(head),
            human::bytes(head.size),
            human::time(head.took_ps),
            human::time(head.ideal_ps),
            times,
            most,
        ]
    };
    let heads = ["flow", "size", "FCT", "ideal", "slowdown", "delayed most by"];
    let table = headed(heads, [Left, Right, Right, Right, Right, Left], flows.iter().map(row));
    format!("\nSlowest flows\n{table}")
}

/// The victims that waited longest, and the ports for which they waited.
fn worst_of(by: &str, worst: &[Victim], roots: &[Root]) -> String {
    let row = |root: &Root| {
        let port = link(&root.port, &root.peer);
        let flows = human::count(root.victims as u64);
        [port, human::time(root.victim_ps), flows, most(&root.places)]
    };
    let heads = ["congested port", "victim", "flows", "victims waited mostly at"];
    let roots = headed(heads, [Left, Right, Right, Left], roots.iter().map(row));
    format!("\nWorst victims{by}\n{}\nWorst roots{by}\n{roots}", victims(worst, "mostly blocked by"))
}
