//! Scenarios from text, run with the assertions that hold for every run.
#![allow(dead_code, reason = "each test file uses a part")]

use xoff_outcome::report::Ran;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::itsy::Report;
use xoff_schemes::flow_control::itsy::Trigger;
use xoff_schemes::flow_control::trimming::report::TRIMMED;
use xoff_sim::outcome::{Deadlock, DropReason, FlowOutcome, Outcome, Quantity};

/// The plan of a scenario without files.
pub fn plan(text: &str) -> Plan {
    plan_with(text, &[])
}

/// The plan of a scenario, with overrides.
pub fn plan_with(text: &str, overrides: &[(&str, &str)]) -> Plan {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    match xoff_plan::load("test.toml", text.as_bytes(), &overrides, &files) {
        Ok(loaded) => loaded.plan,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

/// Runs any plan: packets are conserved (the run itself asserts that), completed flows have delivered every
/// byte, and with flow control no packet is dropped for lack of buffer.
pub fn run(plan: &Plan) -> Outcome {
    let outcome = xoff_sim::run(plan, &mut |_| true);
    let c = outcome.counters;
    assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        assert!(result.delivered_bytes <= flow.size);
        if let Some(completed) = result.completed {
            assert_eq!(result.delivered_bytes, flow.size);
            assert!(completed >= result.delivered.expect("delivered before it was complete"));
            // A detour has more links, and may have faster ones.
            let detours = !plan.faults.down.is_empty();
            // Several slow links side by side are faster than the one of the ideal.
            let rate = plan.topology.ports[0].rate;
            let apart = matches!(plan.load_balancing, LoadBalancing::Packets(_))
                && plan.topology.ports.iter().any(|p| p.rate != rate);
            assert!(
                completed - result.started.expect("begun before it was complete") >= flow.ideal
                    || plan.transport.ack_every > 1
                    || detours
                    || apart,
                "faster than alone"
            );
        }
    }
    for drop in &outcome.drops {
        assert!(!drop.lossless || !drop.reason.for_want_of_room(), "a lossless lane lost packets: {drop:?}");
    }
    outcome
}

/// A run in the form in which schemes report about it.
pub fn ran<'a>(plan: &'a Plan, outcome: &'a Outcome) -> Ran<'a> {
    let (largest, loses_frames) = (plan.packet.largest(), !plan.faults.losses.is_empty());
    Ran { topology: &plan.topology, priorities: &[0], largest, loses_frames, outcome }
}

/// Completion times of all flows, which must have completed.
pub fn fcts(_plan: &Plan, outcome: &Outcome) -> Vec<u64> {
    let fct = |r: &FlowOutcome| Some(r.completed? - r.started?);
    outcome.flows.iter().map(|r| fct(r).expect("completed")).collect()
}

/// Hosts at one switch, with links of 100 Gbit/s and 1 us.
pub fn star(hosts: usize) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
    )
}

/// The same under a congestion control.
pub fn controlled_star(hosts: usize, control: &str) -> String {
    star(hosts) + &format!("[transport]\ncongestion_control = \"{control}\"\n")
}

/// Leaves with `hosts` each and `spines`, with links of 100 Gbit/s and 1 us.
pub fn clos(leaves: u64, spines: u64, hosts: u64, balancing: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
         host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [routing]\nload_balancing = \"{balancing}\"\n"
    )
}

/// A flow between two hosts by their numbers.
pub fn numbered(src: usize, dst: usize, size: &str) -> String {
    format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n")
}

/// Packets that switches trimmed.
pub fn trimmed(outcome: &Outcome) -> u64 {
    let drops = outcome.drops.iter().filter(|d| d.reason == DropReason::Scheme(&TRIMMED));
    drops.map(|d| d.packets).sum()
}

/// Sum over all flows.
pub fn sum(outcome: &Outcome, of: fn(&FlowOutcome) -> u64) -> u64 {
    outcome.flows.iter().map(of).sum()
}

/// Every flow completes, and its application gets each packet once: other copies count as spurious.
pub fn delivers_once(plan: &Plan, outcome: &Outcome) {
    let packets: u64 = plan.flows.iter().map(|f| plan.packet.packets(f.size)).sum();
    assert_eq!(outcome.counters.delivered - sum(outcome, |f| f.spurious), packets);
    for (flow, seen) in plan.flows.iter().zip(&outcome.flows) {
        assert_eq!(seen.delivered_bytes, flow.size);
        assert!(seen.completed.is_some());
    }
}

/// Samples of one quantity after a time.
pub fn samples(outcome: &Outcome, what: Quantity, from: u64) -> Vec<u64> {
    outcome.series.iter().filter(|s| s.what == what && s.at > from).map(|s| s.value).collect()
}

pub fn mean(values: &[u64]) -> f64 {
    values.iter().sum::<u64>() as f64 / values.len() as f64
}

/// The ingress ports that pause the egress queues of a deadlock.
pub fn pausing(plan: &Plan, deadlock: &Deadlock) -> Vec<u32> {
    deadlock.cycle.iter().map(|held| plan.topology.ports[held.port as usize].peer).collect()
}

/// Under ITSY: the triggers in the loop of a deadlock at the time when it closed.
pub fn standing(plan: &Plan, outcome: &Outcome, deadlock: &Deadlock) -> Vec<Trigger> {
    let loops = pausing(plan, deadlock);
    let stood = |t: &&Trigger| t.from <= deadlock.closed && t.until.is_none_or(|u| u > deadlock.closed);
    let itsy = outcome.records.get::<Report>().expect("the scheme ran");
    itsy.triggers.iter().filter(stood).filter(|t| loops.contains(&t.port)).copied().collect()
}
