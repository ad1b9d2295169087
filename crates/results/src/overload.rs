//! Notes on traffic that the network cannot carry: loads above 1, and incasts that overlap or outlast the run.

use std::collections::BTreeMap;

use crate::human;
use xoff_kernel::time::{SECOND, Time};
use xoff_net::routing::host_capacity;
use xoff_net::topology::NodeId;
use xoff_outcome::report::{Level, Note};
use xoff_plan::Loaded;
use xoff_plan::scenario::{LoadOf, Poisson, Traffic};

/// What the rounding of times and packets can add to a load of 1.
const ROUNDING: f64 = 1.005;

/// The notes on the traffic of a scenario.
pub fn notes(loaded: &Loaded) -> Vec<Note> {
    let mut notes = loads(loaded);
    for (class, table) in loaded.scenario.traffic.iter().enumerate() {
        if matches!(table, Traffic::Incast(_)) {
            notes.extend(incasts(loaded, class));
        }
    }
    notes
}

/// Random traffic whose load is above 1. The loads of tables with the same pairs of hosts and the same times add up.
fn loads(loaded: &Loaded) -> Vec<Note> {
    let mut groups: Vec<(Vec<usize>, &Poisson, f64)> = Vec::new();
    for (class, table) in loaded.scenario.traffic.iter().enumerate() {
        let Traffic::Poisson(table) = table else { continue };
        // A rate is a load of 1 only for the user.
        if matches!(table.load_of, LoadOf::Each(_)) {
            continue;
        }
        match groups.iter_mut().find(|(_, other, _)| alike(table, other)) {
            Some((classes, _, load)) => {
                classes.push(class);
                *load += table.load;
            }
            None => groups.push((vec![class], table, table.load)),
        }
    }
    groups.retain(|(.., load)| *load > ROUNDING);
    groups.iter().map(|(classes, table, load)| overloaded(loaded, classes, table, *load)).collect()
}

/// Whether two tables send between the same pairs at the same times.
fn alike(a: &Poisson, b: &Poisson) -> bool {
    (&a.from, &a.to, &a.matrix, &a.matrix_file, &a.locality)
        == (&b.from, &b.to, &b.matrix, &b.matrix_file, &b.locality)
        && (a.start, a.stop, a.load_of) == (b.start, b.stop, b.load_of)
}

fn overloaded(loaded: &Loaded, classes: &[usize], table: &Poisson, load: f64) -> Note {
    let names: Vec<String> = classes.iter().map(|&c| format!("\"{}\"", loaded.plan.classes[c])).collect();
    let load = ratio(load);
    let what = match &names[..] {
        [name] => format!("The offered load of {name} is {load}"),
        names => format!("The offered loads of {} add up to {load}", human::listed(names)),
    };
    let of = match table.load_of {
        LoadOf::HostLinks => "the links of the senders",
        _ => "the busiest link",
    };
    let text = format!(
        "{what}, and a load of 1 fills {of}. Queues grow as long as flows start, so slowdowns depend on run.duration."
    );
    let keys: Vec<String> = classes.iter().map(|c| format!("traffic.{c}.load")).collect();
    Note::new(Level::Note, text).help(format!("Lower {}.", human::listed(&keys)))
}

/// One incast: its wire bytes as the time that the ports of its receiver need for them.
struct Event {
    start: Time,
    needs: Time,
}

/// The incasts of a class, in the order of their starts, and the number of their receivers.
fn events(loaded: &Loaded, class: usize) -> (Vec<Event>, usize) {
    let plan = &loaded.plan;
    let mut bytes: BTreeMap<(Time, NodeId), u64> = BTreeMap::new();
    for flow in plan.flows.iter().filter(|flow| usize::from(flow.class) == class) {
        let wire = plan.packet.packets(flow.size).saturating_mul(plan.packet.header.into());
        let sum = bytes.entry((flow.start, flow.dst)).or_default();
        *sum = sum.saturating_add(flow.size).saturating_add(wire);
    }
    let mut receivers: Vec<NodeId> = bytes.keys().map(|&(_, to)| to).collect();
    receivers.sort_unstable();
    receivers.dedup();
    let event = |((start, to), bytes): ((Time, NodeId), u64)| {
        let seconds = bytes as f64 * 8.0 / host_capacity(&plan.topology, &[to]);
        Event { start, needs: (seconds * SECOND as f64) as Time }
    };
    (bytes.into_iter().map(event).collect(), receivers.len())
}

fn incasts(loaded: &Loaded, class: usize) -> Vec<Note> {
    let name = &loaded.plan.classes[class];
    let (events, receivers) = events(loaded, class);
    let (Some(first), Some(last)) = (events.first(), events.last()) else { return Vec::new() };
    let mut notes = Vec::new();
    let needs: f64 = events.iter().map(|event| event.needs as f64).sum::<f64>() / events.len() as f64;
    if events.len() > 1 {
        let gap = (last.start - first.start) as f64 / (events.len() - 1) as f64;
        let load = needs / (gap * receivers as f64);
        if load > ROUNDING {
            let (needs, gap, load) = (human::time(needs as Time), human::time(gap as Time), ratio(load));
            let text = format!(
                "The incasts of \"{name}\" offer {load} of what the link of a receiver carries: each needs {needs}, and \
                 the next one starts {gap} later. Queues grow until the incasts end."
            );
            let help = format!("Raise traffic.{class}.period, or lower the fan-in or the size.");
            notes.push(Note::new(Level::Note, text).help(help));
        }
    }
    if let Some(end) = loaded.plan.end {
        let late: Vec<&Event> = events.iter().filter(|e| e.start.saturating_add(e.needs) > end).collect();
        if let Some(event) = late.first() {
            let which = match (late.len(), events.len()) {
                (1, 1) => format!("The incast \"{name}\" cannot finish"),
                (n, all) => format!(
                    "{} of the {} of \"{name}\" cannot finish",
                    human::count(n as u64),
                    human::counted(all as u64, "incast")
                ),
            };
            let (needs, start, end) = (human::time(event.needs), human::time(event.start), human::time(end));
            let text = format!(
                "{which} before the run ends at {end}: the one at {start} keeps the link of its receiver busy for \
                 {needs} or longer."
            );
            let help = format!("Raise run.drain, or let the incasts stop earlier (traffic.{class}.stop).");
            notes.push(Note::new(Level::Note, text).help(help));
        }
    }
    notes
}

/// A load with at most two decimals.
fn ratio(load: f64) -> String {
    let text = format!("{load:.2}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}
