//! Scenarios from text, checked and run.
#![allow(dead_code, reason = "each test file uses a part")]

use std::path::Path;
use xoff_check::certificate::Routes;
use xoff_check::{Analysis, Verdict};
use xoff_plan::Loaded;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// A scenario without files, with overrides.
pub fn load(text: &str, overrides: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let files = |path: &Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    match xoff_plan::load("test.toml", text.as_bytes(), &overrides, &files) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

/// An example, with overrides.
pub fn example(name: &str, overrides: &[(&str, &str)]) -> Loaded {
    let path = format!("{}/../../examples/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    load(&std::fs::read_to_string(path).expect("the example exists"), overrides)
}

/// Checks a scenario.
pub fn check(loaded: &Loaded, routes: Routes) -> Analysis {
    xoff_check::check(loaded, "test", routes, &mut |_| true)
        .expect("it can be checked")
        .expect("nobody ends it")
}

/// Whether a check has found that nothing can deadlock.
pub fn safe(loaded: &Loaded, routes: Routes) -> bool {
    matches!(check(loaded, routes).report.verdict, Verdict::Safe { .. })
}

/// Runs a plan until a deadlock is seen; packets are conserved, and nothing lossless is lost.
pub fn run(plan: &Plan) -> Outcome {
    let outcome = xoff_sim::run(plan, &mut |progress| !progress.deadlocked);
    let c = outcome.counters;
    assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight);
    for drop in &outcome.drops {
        assert!(!drop.lossless || !drop.reason.for_want_of_room(), "a lossless lane lost packets: {drop:?}");
    }
    outcome
}

/// The first candidate that deadlocks, as its number and text.
pub fn shown(analysis: &Analysis) -> Option<(usize, &str)> {
    analysis.candidates.iter().enumerate().find_map(|(i, candidate)| {
        let loaded = load(&candidate.text, &[]);
        run(&loaded.plan).deadlock.map(|_| (i, candidate.text.as_str()))
    })
}

/// The ports of the cycle that was found; empty if there is none.
pub fn cycle(analysis: &Analysis) -> Vec<String> {
    match &analysis.report.verdict {
        Verdict::Safe { .. } => Vec::new(),
        Verdict::CanDeadlock { cycle, .. } | Verdict::CycleWithoutWitness { cycle, .. } => {
            cycle.edges.iter().map(|e| e.from.port.clone()).collect()
        }
    }
}
