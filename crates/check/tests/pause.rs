//! Under 802.3x PAUSE the lossless priorities of a link wait as one.

use crate::common;

use common::{check, cycle, example, safe, shown};
use xoff_check::certificate::Routes;

/// The ring's flows alternate between two priorities: no single priority closes the ring.
#[test]
fn two_priorities_close_a_cycle() {
    let ring = |scheme| {
        let turns = [3, 4, 3, 4].map(|priority| priority.to_string());
        let keys = [0, 1, 2, 3].map(|flow| format!("traffic.{flow}.priority"));
        let mut overrides: Vec<(&str, &str)> = vec![("flow_control.scheme", scheme)];
        overrides.extend(keys.iter().zip(&turns).map(|(key, turn)| (key.as_str(), turn.as_str())));
        example("itsy", &overrides)
    };
    assert!(safe(&ring("pfc"), Routes::Scenario));
    let pause = check(&ring("pause"), Routes::Scenario);
    assert_eq!((pause.report.pause_stops, cycle(&pause).len()), ("link", 4));
    assert!(shown(&pause).is_some(), "a run deadlocks");
}

/// Where PFC with one priority is proved safe, PAUSE is too; and where PFC has a cycle, it has one.
#[test]
fn one_priority_is_as_under_pfc() {
    for routes in [Routes::Scenario, Routes::ALL] {
        let under = |name: &str, scheme| example(name, &[("flow_control.scheme", scheme)]);
        assert!(safe(&under("incast-victims", "pause"), routes));
        let [pfc, pause] = ["pfc", "pause"].map(|scheme| check(&under("bcube-deadlock", scheme), routes));
        assert_eq!(cycle(&pfc), cycle(&pause));
        assert_eq!(pfc.report.dependencies, pause.report.dependencies);
    }
}
