//! DSH: the proofs of PFC, with all lossless priorities of a link as one wait.

use crate::common;

use common::{check, cycle, example, safe};
use xoff_check::certificate::Routes;
use xoff_plan::Loaded;

/// A ring of four whose flows alternate between two priorities, so that no single priority closes it.
fn ring(scheme: &str) -> Loaded {
    let turns = [3, 4, 3, 4].map(|priority| priority.to_string());
    let names = [0, 1, 2, 3].map(|flow| format!("traffic.{flow}.priority"));
    let mut overrides = vec![("flow_control.scheme", scheme)];
    overrides.extend(names.iter().zip(&turns).map(|(key, turn)| (key.as_str(), turn.as_str())));
    example("itsy", &overrides)
}

#[test]
fn ports_close_a_cycle_that_no_priority_closes() {
    assert!(safe(&ring("pfc"), Routes::Scenario));
    let checked = check(&ring("dsh"), Routes::Scenario);
    assert_eq!((checked.report.pause_stops, cycle(&checked).len()), ("lanes", 4));
    let notes = &checked.report.notes;
    assert!(
        notes.iter().any(|note| note.starts_with("A port can pause all lossless priorities")),
        "{notes:?}"
    );
}

/// With one priority there is nothing to couple, and without a cycle there is a proof.
#[test]
fn one_priority_is_as_under_pfc() {
    for routes in [Routes::Scenario, Routes::ALL] {
        let [pfc, dsh] = ["pfc", "dsh"]
            .map(|scheme| check(&example("bcube-deadlock", &[("flow_control.scheme", scheme)]), routes));
        assert_eq!((cycle(&pfc), pfc.report.dependencies), (cycle(&dsh), dsh.report.dependencies));
        assert!(dsh.report.notes.iter().all(|note| !note.contains("all lossless priorities")));
    }
    assert!(safe(&example("leaf-spine", &[("flow_control.scheme", "dsh")]), Routes::ALL));
}

/// Up-down routes have no cycle, with any number of priorities.
#[test]
fn several_priorities_without_a_cycle_are_proved() {
    let priorities = ("traffic.0.priorities", "{ 2 = 1, 3 = 1, 4 = 1 }");
    assert!(safe(&example("leaf-spine", &[("flow_control.scheme", "dsh"), priorities]), Routes::Scenario));
}
