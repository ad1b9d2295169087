//! Reading a scenario: overrides, its own text, and an end that the caller asks for.

use crate::common::line::{FLOW, LINE, loaded, no_files, set};
use std::cell::RefCell;
use xoff_plan::{load, load_table};

#[test]
fn overrides_reach_tables_that_were_not_written() {
    let l = set(
        &[LINE, FLOW],
        &[("transport.mtu", "4kB"), ("traffic.0.size", "2MB"), ("traffic[0].start", "\"3us\"")],
    );
    assert_eq!(l.plan.packet.mtu, 4_000);
    assert_eq!((l.plan.flows[0].size, l.plan.flows[0].start), (2_000_000, 3_000_000));
}

#[test]
fn the_scenario_survives_its_own_text() {
    // The manifest holds the scenario as JSON; as TOML it must mean the same.
    let first = loaded(&[
        LINE,
        FLOW,
        "[flow_control]\nxoff = \"6bdp\"\n[measure]\nports = \"all\"\ninterval = \"1us\"\n",
    ]);
    let text = toml::to_string(&first.scenario).unwrap();
    let second = load("again.toml", text.as_bytes(), &[], &no_files)
        .unwrap_or_else(|e| panic!("{}\n{text}", e.one_line()));
    assert_eq!(text, toml::to_string(&second.scenario).unwrap());
    assert_eq!(first.plan.flows, second.plan.flows);
    assert_eq!(first.plan.accounts, second.plan.accounts);
}

/// Planning asks before flows are made, with the bytes that they need, and while they are routed.
#[test]
fn a_caller_ends_planning() {
    let traffic = "[[traffic]]\nkind = \"poisson\"\nload = 0.9\nsizes = { uniform = [\"1kB\", \"2kB\"] }\n[run]\nduration = \"1ms\"\n";
    let text = [LINE, traffic].concat();
    let planned = |most: u64, questions: usize| {
        let asked = RefCell::new(Vec::new());
        let goes_on = |bytes: u64| {
            asked.borrow_mut().push(bytes);
            let stops = bytes > most || asked.borrow().len() > questions;
            if stops { Err("no more".to_string()) } else { Ok(()) }
        };
        let done = load_table(
            "test.toml",
            text.as_bytes(),
            "",
            &[],
            xoff_plan::Needs::Traffic,
            &no_files,
            &goes_on,
            None,
        );
        (done.map(|loaded| loaded.plan.flows.len()).map_err(|e| e.one_line()), asked.into_inner())
    };
    let (done, asked) = planned(u64::MAX, usize::MAX);
    let flows = done.unwrap();
    // Once for each 1,024 flows at least.
    assert!(flows > 10_000 && asked.len() > flows / 1024, "{flows} {}", asked.len());
    let most = *asked.iter().max().unwrap();
    assert!(most > 100 * flows as u64, "{most}");
    for (done, _) in [planned(most - 1, usize::MAX), planned(u64::MAX, asked.len() - 1), planned(u64::MAX, 0)]
    {
        assert!(done.as_ref().is_err_and(|e| e.contains("no more")), "{done:?}");
    }
}
