//! Priorities that share credit wait for each other.

use crate::common;

use common::{check, cycle, example, safe, shown};
use xoff_check::certificate::Routes;
use xoff_plan::Loaded;

/// A ring of four whose flows alternate between two priorities, so that no single priority closes it.
fn ring(keys: &[(&str, &str)]) -> Loaded {
    let turns = [3, 4, 3, 4].map(|priority| priority.to_string());
    let names = [0, 1, 2, 3].map(|flow| format!("traffic.{flow}.priority"));
    let mut overrides = vec![("flow_control.scheme", "uec-cbfc")];
    overrides.extend(names.iter().zip(&turns).map(|(key, turn)| (key.as_str(), turn.as_str())));
    overrides.extend(keys);
    example("itsy", &overrides)
}

#[test]
fn a_cycle_of_two_priorities_closes_where_neither_is_sure_of_credit() {
    let total = ("flow_control.limit", "total");
    assert!(safe(&ring(&[]), Routes::Scenario));
    let shared = check(&ring(&[total, ("flow_control.buffer", "3kB")]), Routes::Scenario);
    assert_eq!((shared.report.pause_stops, cycle(&shared).len()), ("lanes", 4));
    assert!(shown(&shared).is_some(), "a run deadlocks");
    assert!(
        shared.report.notes.iter().any(|note| note.contains("share credit")),
        "{:?}",
        shared.report.notes
    );
    // Packets of 1,062 B have nine credits of 128 B.
    assert!(!safe(&ring(&[total, ("flow_control.reserve", "1024B")]), Routes::Scenario));
    let sure = ring(&[total, ("flow_control.reserve", "1025B")]);
    assert!(safe(&sure, Routes::Scenario));
    assert!(check(&sure, Routes::Scenario).report.notes.iter().all(|note| !note.contains("share credit")));
}

/// With one priority nothing is shared: the dependencies are those of PFC.
#[test]
fn one_priority_is_as_under_pfc() {
    for routes in [Routes::Scenario, Routes::ALL] {
        let under = |scheme| {
            let overrides = [("flow_control.scheme", scheme)];
            example("bcube-deadlock", &overrides)
        };
        let [pfc, credit] = ["pfc", "uec-cbfc"].map(|scheme| check(&under(scheme), routes));
        assert_eq!((cycle(&pfc), pfc.report.dependencies), (cycle(&credit), credit.report.dependencies));
    }
}
