//! The same in words and bars.

use std::collections::BTreeMap;

use super::read::Ending;
use super::{FlowAnswer, Head, Overview, PartTime, Place, PortAnswer, Root, RootTime, Step, Stood, Victim};
use crate::human;
use crate::names::way;
use crate::table::{Align, aligned, wrapped};

/// Victims of a port that are named.
const LISTED: usize = 20;
/// Parts of the time at a port in one line.
const IN_LINE: usize = 4;
/// How to ask further, at the end of an overview.
pub(crate) const FURTHER: &str = "\n--flow ID explains a flow, --port PORT a congested port.\n";
/// Columns of the longest bar.
const BAR: u64 = 40;

/// What a part is, in words.
fn meaning(part: &str) -> &'static str {
    match part {
        "sending" => "on a wire",
        "propagation" => "in a cable",
        "queueing" => "behind others, in queues that might send",
        "own" => "in paused queues, for a congested port ahead",
        "victim" => "in paused queues, for a port off its way",
        "pacing" => "held by its pace or congestion control",
        "receiver" => "for a receiver that does not read",
        "down" => "for a link that was down",
        "recovery" => "for repeats after loss, or a timeout",
        _ => "",
    }
}

fn share(part: u64, of: u64) -> String {
    format!("{:.1}%", part as f64 * 100.0 / of.max(1) as f64)
}

/// What is to be known of a run before anything else: a deadlock, an interruption.
fn ending(run: &Ending) -> String {
    let mut text = String::new();
    if let Some(deadlock) = &run.deadlock {
        let ports = deadlock.cycle.iter().chain(deadlock.cycle.first());
        let cycle = ports.map(String::as_str).collect::<Vec<_>>().join(" -> ");
        text += &wrapped(
            "",
            "",
            &format!(
                "The run deadlocked at {}: {cycle}. {}; the run ended at {}.",
                human::time(deadlock.closed_ps),
                match deadlock.ended_ps {
                    None => "What waits there or behind it waits for ever".into(),
                    Some(at) => format!("That ended at {}", human::time(at)),
                },
                human::time(run.end_ps)
            ),
        );
    }
    let end = human::time(run.end_ps);
    let ended = match run.stop.as_str() {
        "interrupted" => format!("The run was interrupted at {end}: all of this is until then."),
        "memory" => format!("The memory budget ended the run at {end}: all of this is until then."),
        "livelock" => format!("Livelock: packets moved, but no flow made progress. The run ended at {end}."),
        _ => return text,
    };
    text += &wrapped("", "", &ended);
    text
}

/// Why waiting by the port that pauses named and by where packets stood are two things.
fn two_roots(merged_longest_ps: u64) -> String {
    let merges = match merged_longest_ps {
        0 => String::new(),
        longest => format!(" (here within {})", human::time(longest)),
    };
    format!(
        "The two differ since a pause holds all that goes through the port that it names, wherever \
         packets piled up before it: ways to one port may fork first, and the tree of a port that was \
         no root stands until it is merged{merges}."
    )
}

fn bars(parts: &[PartTime]) -> String {
    let whole: u64 = parts.iter().map(|part| part.time_ps).sum();
    let row = |part: &PartTime| {
        // At least one column, for what there is.
        let bar = (u128::from(part.time_ps) * u128::from(BAR)).div_ceil(u128::from(whole.max(1)));
        vec![
            part.part.clone(),
            human::time(part.time_ps),
            share(part.time_ps, whole),
            format!("{:<bar$}  {}", "#".repeat(bar as usize), meaning(&part.part), bar = BAR as usize),
        ]
    };
    let rows: Vec<_> = parts.iter().map(row).collect();
    aligned(&rows, &[Align::Left, Align::Right, Align::Right, Align::Left])
}

fn name(head: &Head) -> String {
    format!("{} {} -> {} ({})", head.flow, head.src, head.dst, head.class)
}

/// `34 times its ideal 24 us`.
fn times(head: &Head) -> String {
    if head.ideal_ps == 0 {
        return "its route loops".into();
    }
    let times = head.took_ps as f64 / head.ideal_ps as f64;
    format!("{} times its ideal {}", human::ratio(times), human::time(head.ideal_ps))
}

fn opening(head: &Head) -> String {
    let Head { flow, src, dst, class, size, .. } = head;
    let text = format!("flow {flow} ({class}), {} from {src} to {dst}, ", human::bytes(*size));
    text + &match (head.start_ps, head.finished) {
        (None, _) => "had not begun when the run ended.".to_string(),
        (_, true) => format!("took {}, {}.", human::time(head.took_ps), times(head)),
        (_, false) => format!(
            "is not finished: {} passed from its beginning to the end of the run; alone it takes {}.",
            human::time(head.took_ps),
            human::time(head.ideal_ps)
        ),
    }
}

/// Who, of several roots, and for how long.
fn blamed(roots: &[&RootTime], time: impl Fn(&RootTime) -> u64) -> String {
    let one = |root: &RootTime| {
        let crossed = match (root.own_ps, root.crossed) {
            (0, false) => ", a port that it never crosses",
            (0, true) => ", a port that is behind it on its way",
            _ => "",
        };
        format!("{}{crossed}", way(&root.port, &root.peer))
    };
    match roots {
        [] => String::new(),
        [root] => one(root),
        [root, ..] => {
            format!(
                "{} congested ports, most of it ({}) for {}",
                roots.len(),
                human::time(time(root)),
                one(root)
            )
        }
    }
}

/// What took most of the time, apart from being sent.
fn worst(answer: &FlowAnswer) -> Option<&PartTime> {
    answer.parts.iter().find(|part| !["sending", "propagation"].contains(&part.part.as_str()))
}

/// The sentence on what took most of the time, apart from being sent.
fn reason(answer: &FlowAnswer) -> String {
    let took = answer.head.took_ps;
    let Some(PartTime { part, time_ps }) = worst(answer) else {
        return match answer.parts.is_empty() {
            true => String::new(),
            false => "Nobody was in its way: all of it is sending and propagation.".into(),
        };
    };
    let time = format!("{} of it ({})", human::time(*time_ps), share(*time_ps, took));
    let most = || {
        let at = |step: &&Step| {
            step.shares.iter().filter(|share| share.part == *part).map(|share| share.time_ps).sum::<u64>()
        };
        let step = answer.steps.iter().max_by_key(at);
        step.map_or(String::new(), |step| {
            format!(", {} of that at {}", human::time(at(&step)), way(&step.port, &step.peer))
        })
    };
    match part.as_str() {
        "victim" => {
            let roots: Vec<_> = answer.roots.iter().filter(|root| root.victim_ps > 0).collect();
            format!(
                "{time} it waited in queues that were paused for {}.",
                blamed(&roots, |root| root.victim_ps)
            )
        }
        "own" => {
            let mut roots: Vec<_> = answer.roots.iter().filter(|root| root.own_ps > 0).collect();
            roots.sort_by_key(|root| std::cmp::Reverse(root.own_ps));
            format!(
                "{time} it waited in queues that were paused for congestion on its way: {}.",
                blamed(&roots, |root| root.own_ps)
            )
        }
        "queueing" => format!("{time} it waited behind others in queues that might send{}.", most()),
        "pacing" => format!("{time} its pace or congestion control held it."),
        "receiver" => format!("{time} it waited for a receiver that did not read."),
        "down" => format!("{time} it waited for a link that was down, or had just recovered{}.", most()),
        _ => format!("{time} it repeated what had been lost, or waited until it might."),
    }
}

/// One flow: sentences, a bar for each part, a line for each port.
pub fn flow(answer: &FlowAnswer) -> String {
    let mut text = ending(&answer.run) + &wrapped("", "", &opening(&answer.head));
    if answer.steps.is_empty() {
        return text;
    }
    text += &wrapped("", "", &reason(answer));
    text += &waited_for(answer);
    text += &stood(answer);
    text += "\n";
    text += &bars(&answer.parts);
    text += "\n";
    text + &steps(&answer.steps)
}

/// The congested ports that a flow waited for: those off its way, or if there are none
/// those on it. The sentence above names a single one.
fn waited_for(answer: &FlowAnswer) -> String {
    let victim: Vec<_> = answer.roots.iter().filter(|root| root.victim_ps > 0).collect();
    let told = |part: &str| worst(answer).is_some_and(|p| p.part == part);
    let mut rows = Vec::new();
    if !victim.is_empty() {
        if victim.len() == 1 && told("victim") {
            return String::new();
        }
        for root in victim.into_iter().take(LISTED) {
            let crossed = if root.crossed { "on its path elsewhere" } else { "never crossed" };
            rows.push(vec![
                format!("  {}", way(&root.port, &root.peer)),
                human::time(root.victim_ps),
                crossed.into(),
            ]);
        }
        return "As a victim it waited for\n".to_string()
            + &aligned(&rows, &[Align::Left, Align::Right, Align::Left]);
    }
    let mut own: Vec<_> = answer.roots.iter().filter(|root| root.own_ps > 0).collect();
    if own.is_empty() || (own.len() == 1 && told("own")) {
        return String::new();
    }
    own.sort_by_key(|root| std::cmp::Reverse(root.own_ps));
    for root in own.into_iter().take(LISTED) {
        rows.push(vec![format!("  {}", way(&root.port, &root.peer)), human::time(root.own_ps)]);
    }
    "It waited in paused queues for, on its own way,\n".to_string()
        + &aligned(&rows, &[Align::Left, Align::Right])
}

/// The same time by the surviving roots, where pauses name ports.
fn stood(answer: &FlowAnswer) -> String {
    let Some(surviving) = &answer.surviving else { return String::new() };
    let mut text = format!(
        "Victim of the port that the pauses named: {}; of the port where the packets stood: {}.",
        human::time(answer.victim_ps),
        human::time(surviving.victim_ps)
    );
    let is = |off: bool| if off { "off its way" } else { "on its way" };
    let differ = |stood: &&Stood| stood.named_off != stood.surviving_off;
    for stood in surviving.stood.iter().filter(differ).take(IN_LINE) {
        text += &format!(
            " For {} the frames named {}, which is {}; the packets stood at {}, which is {}.",
            human::time(stood.time_ps),
            way(&stood.named_root, &stood.named_peer),
            is(stood.named_off),
            way(&stood.surviving_root, &stood.surviving_peer),
            is(stood.surviving_off),
        );
    }
    if answer.victim_ps != surviving.victim_ps {
        text += " ";
        text += &two_roots(answer.merged_longest_ps);
    }
    wrapped("", "", &text)
}

/// A line for each port of a path, or more where much happened.
fn steps(steps: &[Step]) -> String {
    let mut rows = vec![["leg", "port", "time", "spent"].map(String::from).to_vec()];
    for step in steps {
        // What is told apart by the surviving root alone is one.
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
            rows.push(match i {
                0 => {
                    vec![step.leg.clone(), way(&step.port, &step.peer), human::time(step.time_ps), spent]
                }
                _ => vec![String::new(), String::new(), String::new(), spent],
            });
        }
    }
    aligned(&rows, &[Align::Left, Align::Left, Align::Right, Align::Left])
}

/// The first of some places, and how many others there are.
fn most(places: &[Place]) -> String {
    let Some(first) = places.first() else { return String::new() };
    let others = match places.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    format!("{} {}{others}", way(&first.port, &first.peer), human::time(first.time_ps))
}

fn victims(victims: &[Victim], whom: &str) -> String {
    let mut rows =
        vec![["flow", "size", "took", "ideal", "x", "victim", "", whom].map(String::from).to_vec()];
    for victim in victims {
        let head = &victim.head;
        let times = match (head.finished, head.ideal_ps) {
            (false, _) => "unfinished".into(),
            (_, 0) => "-".into(),
            (_, ideal) => human::ratio(head.took_ps as f64 / ideal as f64),
        };
        rows.push(vec![
            name(head),
            human::bytes(head.size),
            human::time(head.took_ps),
            human::time(head.ideal_ps),
            times,
            human::time(victim.victim_ps),
            share(victim.victim_ps, head.took_ps),
            most(&victim.most),
        ]);
    }
    use Align::{Left, Right};
    aligned(&rows, &[Left, Right, Right, Right, Right, Right, Right, Left])
}

/// One port: sentences, where its victims waited, and who they are.
pub fn port(answer: &PortAnswer) -> String {
    let port = way(&answer.port, &answer.peer);
    let own = match answer.own_flows {
        0 => String::new(),
        n => format!(
            " {} that did go through it waited {} for it.",
            human::counted(n as u64, "flow"),
            human::time(answer.own_ps)
        ),
    };
    let surviving = answer.surviving.as_ref().map_or(String::new(), |surviving| {
        let why = match surviving.victim_ps == answer.victim_ps {
            true => String::new(),
            false => format!(" {}", two_roots(answer.merged_longest_ps)),
        };
        format!(
            " That is by the port that the pauses named. As the port where the packets stood it held up {} \
             whose way did not go on through it, by {}; {} that did go through it waited {}.{why}",
            human::counted(surviving.victims as u64, "flow"),
            human::time(surviving.victim_ps),
            human::counted(surviving.own_flows as u64, "flow"),
            human::time(surviving.own_ps),
        )
    });
    let ending = ending(&answer.run);
    if answer.victims.is_empty() {
        let text = format!("{port} held up nobody whose way did not go on through it.{own}{surviving}");
        return ending + &wrapped("", "", &text);
    }
    let mut text = ending
        + &wrapped(
            "",
            "",
            &format!(
                "{port} held up {} whose way did not go on through it, by {} in all.{own}{surviving}",
                human::counted(answer.victims.len() as u64, "flow"),
                human::time(answer.victim_ps),
            ),
        );
    let mut rows = vec![["where they waited", "time", "flows"].map(String::from).to_vec()];
    for place in answer.places.iter().take(LISTED) {
        rows.push(vec![
            way(&place.port, &place.peer),
            human::time(place.time_ps),
            human::count(place.flows as u64),
        ]);
    }
    text += "\n";
    text += &aligned(&rows, &[Align::Left, Align::Right, Align::Right]);
    text += "\n";
    text += &victims(&answer.victims[..answer.victims.len().min(LISTED)], "most of it at");
    if answer.victims.len() > LISTED {
        text += &format!(
            "and {} more (--json has all of them)\n",
            human::count((answer.victims.len() - LISTED) as u64)
        );
    }
    text
}

/// The whole run: sentences, a bar for each part, the worst victims and roots.
pub fn overview(answer: &Overview) -> String {
    let class = answer.class.as_ref().map_or(String::new(), |class| format!(" of class {class}"));
    let unfinished = match answer.unfinished {
        0 => String::new(),
        n => format!(", {} of them not to their end", human::count(n as u64)),
    };
    let by = if answer.surviving.is_some() { ", by the port that each pause named" } else { "" };
    let victim = match answer.victim_ps {
        0 if by.is_empty() => "None of them waited for congestion off its path.".to_string(),
        0 => format!("None of them waited for congestion off its path{by}: 0 s."),
        time => format!(
            "{} waited for congestion off the path{by}, {} of all flows' time.",
            human::counted(answer.victim_flows as u64, "flow"),
            share(time, answer.took_ps)
        ),
    };
    let surviving = answer.surviving.as_ref().map_or(String::new(), |surviving| {
        if surviving.victim_ps == answer.victim_ps {
            return " It is the same by the port where the packets stood.".into();
        }
        format!(
            " By the port where the packets stood {} did: {}, {} of all flows' time. {}",
            human::counted(surviving.victim_flows as u64, "flow"),
            human::time(surviving.victim_ps),
            share(surviving.victim_ps, answer.took_ps),
            two_roots(answer.merged_longest_ps)
        )
    });
    let mut text = ending(&answer.run)
        + &wrapped(
            "",
            "",
            &format!(
                "{}: {}{class} followed{unfinished}. {victim}{surviving}",
                answer.scenario,
                human::counted(answer.flows as u64, "flow"),
            ),
        );
    if answer.flows == 0 {
        return text;
    }
    text += "\n";
    text += &bars(&answer.parts);
    if answer.victims.is_empty() {
        text += &own_roots(&answer.own_roots);
    } else {
        text += &worst_of("", &answer.victims, &answer.roots);
    }
    let both = answer.surviving.as_ref().filter(|surviving| !surviving.victims.is_empty());
    if let Some(surviving) = both {
        text += &worst_of(" by the port where the packets stood", &surviving.victims, &surviving.roots);
    }
    if !answer.victims.is_empty() || !answer.own_roots.is_empty() || both.is_some() {
        text += FURTHER;
    }
    text
}

/// Who waited longest as a victim, and for whom.
fn worst_of(by: &str, worst: &[Victim], roots: &[Root]) -> String {
    let mut text = format!("\nWorst victims{by}\n");
    text += &victims(worst, "most of it for");
    text += &format!("\nWorst roots{by}\n");
    let mut rows =
        vec![["congested port", "victim", "flows", "they waited most at"].map(String::from).to_vec()];
    for root in roots {
        rows.push(vec![
            way(&root.port, &root.peer),
            human::time(root.victim_ps),
            human::count(root.victims as u64),
            most(&root.places),
        ]);
    }
    text + &aligned(&rows, &[Align::Left, Align::Right, Align::Right, Align::Left])
}

/// Congested ports that flows waited for which go through them.
fn own_roots(roots: &[Place]) -> String {
    if roots.is_empty() {
        return String::new();
    }
    let mut rows = vec![["congested port", "waiting", "flows"].map(String::from).to_vec()];
    for root in roots {
        rows.push(vec![
            way(&root.port, &root.peer),
            human::time(root.time_ps),
            human::count(root.flows as u64),
        ]);
    }
    "\nWorst congested ports on the way of those who waited\n".to_string()
        + &aligned(&rows, &[Align::Left, Align::Right, Align::Right])
}
