//! The same plan gives the same outcome, and traffic does not depend on the scheme.

use crate::common;

use common::{plan, plan_with, run};

const SCENARIO: &str = include_str!("../../../examples/bcube-deadlock.toml");
const SHORT: [(&str, &str); 2] = [("run.duration", "3ms"), ("measure.ports", "all")];

#[test]
fn repeats_agree_in_every_detail() {
    let plan = plan_with(SCENARIO, &SHORT);
    let first = run(&plan);
    assert_eq!(first, run(&plan));
    assert!(first.series.len() > 1_000);
    let other = plan_with(SCENARIO, &[SHORT[0], SHORT[1], ("run.seed", "2")]);
    assert_ne!(first.flows, run(&other).flows, "the seed matters");
}

#[test]
fn watching_changes_nothing() {
    let measured = plan_with(SCENARIO, &SHORT);
    let mut bare = measured.clone();
    bare.measure = xoff_plan::plan::Measure::default();
    let (a, b) = (run(&measured), run(&bare));
    assert_eq!((a.flows, a.pauses, a.counters), (b.flows, b.pauses, b.counters));
}

#[test]
fn the_scheme_leaves_every_arrival_where_it_was() {
    let with = plan_with(SCENARIO, &SHORT);
    let without = plan_with(SCENARIO, &[SHORT[0], ("flow_control.scheme", "none")]);
    assert_eq!(with.flows, without.flows);
    assert_eq!(with.hops, without.hops);
}

/// An interrupted run is the beginning of the whole one.
#[test]
fn a_stopped_run_is_a_prefix() {
    let plan = plan_with(SCENARIO, &SHORT);
    let whole = run(&plan);
    let mut calls = 0;
    let part = xoff_sim::run(&plan, &mut |_| {
        calls += 1;
        calls < 3
    });
    assert_eq!(part.stop, xoff_sim::outcome::Stop::Interrupted);
    assert!(part.end < whole.end && part.end > 0);
    for (a, b) in part.flows.iter().zip(&whole.flows) {
        if b.completed.is_some_and(|t| t < part.end) {
            assert_eq!(a.completed, b.completed);
        } else {
            assert!(a.completed.is_none_or(|t| t == part.end));
        }
    }
}

/// An interruption between two flows that are far apart, while only samples are
/// taken: the end is that of the last sample.
#[test]
fn an_idle_run_can_be_interrupted() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\nstart = \"59s\"\n\
         [measure]\ninterval = \"10us\"\n",
    );
    let outcome = xoff_sim::run(&plan, &mut |_| false);
    assert_eq!(outcome.stop, xoff_sim::outcome::Stop::Interrupted);
    let at: Vec<u64> = outcome.series.iter().map(|s| s.at).collect();
    assert!(at.len() > 100 && at.is_sorted(), "{at:?}");
    assert_eq!(at.last(), Some(&outcome.end));
}
