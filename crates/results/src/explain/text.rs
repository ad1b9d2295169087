//! The same in words and bars.

use super::{FlowAnswer, Head, Overview, PartTime, Place, PortAnswer, RootTime, Step, Victim};
use crate::human;
use crate::table::{Align, aligned, wrapped};

/// Victims of a port that are named.
const LISTED: usize = 20;
/// Parts of the time at a port in one line.
const IN_LINE: usize = 4;
/// Columns of the longest bar.
const BAR: u64 = 40;

/// What a part is, in words.
fn meaning(part: &str) -> &'static str {
    match part {
        "sending" => "on a wire",
        "propagation" => "in a cable",
        "queueing" => "behind others, in queues that might send",
        "own" => "in paused queues, for a congested port ahead",
        "innocent" => "in paused queues, for a port off its way",
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

/// A port with where it leads: `S0.1:3 -> H35`.
fn way(port: &str, peer: &str) -> String {
    let node = peer.rsplit_once(':').map_or(peer, |(node, _)| node);
    format!("{port} -> {node}")
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

/// The sentence on what took most of the time, apart from being sent.
fn reason(answer: &FlowAnswer) -> String {
    let took = answer.head.took_ps;
    let worst = answer.parts.iter().find(|part| !["sending", "propagation"].contains(&part.part.as_str()));
    let Some(PartTime { part, time_ps }) = worst else {
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
        "innocent" => {
            let roots: Vec<_> = answer.roots.iter().filter(|root| root.innocent_ps > 0).collect();
            format!(
                "{time} it waited in queues that were paused for {}.",
                blamed(&roots, |root| root.innocent_ps)
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
    let mut text = wrapped("", "", &opening(&answer.head));
    if answer.steps.is_empty() {
        return text;
    }
    text += &wrapped("", "", &reason(answer));
    let innocent: Vec<_> = answer.roots.iter().filter(|root| root.innocent_ps > 0).collect();
    // The sentence names the worst one.
    if innocent.len() > 1
        || (innocent.len() == 1 && answer.parts.first().is_none_or(|p| p.part != "innocent"))
    {
        let rows = innocent.iter().take(LISTED).map(|root| {
            let crossed = if root.crossed { "on its path elsewhere" } else { "never crossed" };
            vec![format!("  {}", way(&root.port, &root.peer)), human::time(root.innocent_ps), crossed.into()]
        });
        text += "As an innocent it waited for\n";
        text += &aligned(&rows.collect::<Vec<_>>(), &[Align::Left, Align::Right, Align::Left]);
    }
    text += "\n";
    text += &bars(&answer.parts);
    text += "\n";
    text + &steps(&answer.steps)
}

/// A line for each port of a path, or more where much happened.
fn steps(steps: &[Step]) -> String {
    let mut rows = vec![["leg", "port", "time", "spent"].map(String::from).to_vec()];
    for step in steps {
        let mut shares: Vec<_> = step.shares.iter().collect();
        shares.sort_by_key(|share| std::cmp::Reverse(share.time_ps));
        for (i, some) in shares.chunks(IN_LINE).enumerate() {
            let spent = some.iter().map(|share| {
                let root = share.root.as_ref().map_or(String::new(), |root| format!(" for {root}"));
                format!("{} {}{root}", human::time(share.time_ps), share.part)
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
        vec![["flow", "size", "took", "ideal", "x", "innocent", "", whom].map(String::from).to_vec()];
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
            human::time(victim.innocent_ps),
            share(victim.innocent_ps, head.took_ps),
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
    if answer.victims.is_empty() {
        return wrapped("", "", &format!("{port} held up nobody whose way did not go on through it.{own}"));
    }
    let mut text = wrapped(
        "",
        "",
        &format!(
            "{port} held up {} whose way did not go on through it, by {} in all.{own}",
            human::counted(answer.victims.len() as u64, "flow"),
            human::time(answer.innocent_ps),
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
    let innocent = answer.parts.iter().find(|part| part.part == "innocent").map_or(0, |part| part.time_ps);
    let mut text = wrapped(
        "",
        "",
        &format!(
            "{}: {}{class} followed{unfinished}. {}",
            answer.scenario,
            human::counted(answer.flows as u64, "flow"),
            match innocent {
                0 => "None of them waited for congestion off its path.".to_string(),
                time => format!(
                    "{} waited for congestion off the path, {} of all flows' time.",
                    human::counted(answer.innocent_flows as u64, "flow"),
                    share(time, answer.took_ps)
                ),
            }
        ),
    );
    if answer.flows == 0 {
        return text;
    }
    text += "\n";
    text += &bars(&answer.parts);
    if !answer.victims.is_empty() {
        text += "\nWorst victims\n";
        text += &victims(&answer.victims, "most of it for");
        text += "\nWorst roots\n";
        let mut rows =
            vec![["congested port", "innocent", "flows", "they waited most at"].map(String::from).to_vec()];
        for root in &answer.roots {
            rows.push(vec![
                way(&root.port, &root.peer),
                human::time(root.innocent_ps),
                human::count(root.victims as u64),
                most(&root.places),
            ]);
        }
        text += &aligned(&rows, &[Align::Left, Align::Right, Align::Right, Align::Left]);
        text += "\n--flow ID explains a flow, --port PORT a congested port.\n";
    }
    text
}
