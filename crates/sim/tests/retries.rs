//! Retry limits: when senders give up, what then remains of their flows, and that all others go on.

use crate::common;

use common::{numbered as flow, plan, plan_with, run, star};
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND, SECOND};
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{FlowOutcome, Outcome, Stop};

/// Each flow is complete or has failed. A failed one had one timeout more than retries, unless NACKs were too many.
fn all_end(plan: &Plan, outcome: &Outcome, retries: u32) -> Vec<u32> {
    assert_eq!(outcome.stop, Stop::AllDone);
    let mut failed = Vec::new();
    for (index, (flow, seen)) in (0..).zip(plan.flows.iter().zip(&outcome.flows)) {
        match (seen.completed, seen.failed) {
            (Some(_), None) => assert_eq!(seen.delivered_bytes, flow.size),
            (None, Some(at)) => {
                assert!(at <= outcome.end && seen.timeouts > retries, "{seen:?}");
                failed.push(index);
            }
            ends => panic!("flow {index} ended {ends:?}"),
        }
        assert_eq!(seen.delivered.is_some(), seen.delivered_bytes == flow.size);
    }
    failed
}

/// The tables of each transport with a timeout of 100 us for one packet in flight, and whether it doubles.
const TRANSPORTS: [(&str, &str, bool); 7] = [
    ("go-back-n", "rto = \"100us\"\n", false),
    ("irn", "[irn]\nrto_low = \"100us\"\n", false),
    ("irn", "[irn]\nrto_low = \"100us\"\ntimer = \"packet\"\n", false),
    ("ndp", "[ndp]\nrto = \"100us\"\n", false),
    ("tcp-newreno", "[tcp-newreno]\ninitial_rto = \"100us\"\nmin_rto = \"100us\"\n", true),
    ("tcp-dctcp", "[tcp-dctcp]\ninitial_rto = \"100us\"\nmin_rto = \"100us\"\n", true),
    ("rud", "rto = \"100us\"\n", true),
];

/// Nothing arrives: after R retries a sender gives up at (R + 1)·RTO, or at (2^(R + 1) − 1)·RTO where each timeout
/// doubles the next one. To the picosecond.
#[test]
fn a_sender_gives_up_after_its_last_timeout() {
    for (transport, keys, doubles) in TRANSPORTS {
        for retries in [0, 1, 2, 5, 7] {
            let text = star(2)
                + &format!("[transport]\nkind = \"{transport}\"\nretries = {retries}\n{keys}")
                + "[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\n"
                + &flow(0, 1, "1kB");
            let plan = plan(&text);
            let outcome = run(&plan);
            assert_eq!(all_end(&plan, &outcome, retries), [0], "{transport}");
            let timeouts = if doubles { (1 << (retries + 1)) - 1 } else { u64::from(retries) + 1 };
            let seen = outcome.flows[0];
            assert_eq!(seen.failed, Some(timeouts * 100 * MICROSECOND), "{transport}, {retries} retries");
            assert_eq!((seen.packets_sent, seen.retransmitted), (u64::from(retries) + 1, u64::from(retries)));
            assert_eq!((seen.delivered_bytes, seen.delivered), (0, None));
        }
    }
}

/// RUD doubles its timeout up to 8 s.
#[test]
fn the_longest_timeout_bounds_the_time_of_giving_up() {
    let text = star(2)
        + "[transport]\nkind = \"rud\"\nrto = \"1s\"\nretries = 6\n[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\n"
        + &flow(0, 1, "1kB");
    let plan = plan(&text);
    assert_eq!(run(&plan).flows[0].failed, Some((1 + 2 + 4 + 8 + 8 + 8 + 8) * SECOND));
}

/// The default of RUD is 5 retries; the others never give up, and so does RUD if it is told to.
#[test]
fn only_rud_gives_up_by_itself() {
    for (transport, keys, _) in TRANSPORTS {
        for unlimited in [false, true] {
            let key = if unlimited { "retries = \"unlimited\"\n" } else { "" };
            let text = star(2)
                + &format!("[transport]\nkind = \"{transport}\"\n{key}{keys}")
                + "[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\n[run]\nduration = \"20ms\"\n"
                + &flow(0, 1, "1kB");
            let plan = plan(&text);
            let seen = run(&plan).flows[0];
            let fails = transport == "rud" && !unlimited;
            assert_eq!(seen.failed, fails.then_some(63 * 100 * MICROSECOND), "{transport} {key}");
            assert_eq!(seen.is_unfinished(), !fails);
        }
    }
}

/// Only ACKs are lost: the receiver has all of a flow whose sender gives up.
#[test]
fn a_failed_flow_may_be_delivered() {
    for (transport, keys, _) in TRANSPORTS {
        let text = star(2)
            + &format!("[transport]\nkind = \"{transport}\"\nretries = 2\n{keys}")
            + "[[loss]]\nlink = \"S0.0-H1\"\nfrom = \"H1\"\nrate = 1.0\n"
            + &flow(0, 1, "3kB");
        let plan = plan(&text);
        let outcome = run(&plan);
        assert_eq!(all_end(&plan, &outcome, 2), [0]);
        let seen = outcome.flows[0];
        assert!(seen.delivered_bytes == 3_000 && seen.delivered < seen.failed, "{transport} {seen:?}");
    }
}

/// A limit that no sender reaches changes nothing.
#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    for (transport, keys, _) in TRANSPORTS {
        let text = star(5)
            + &format!("[transport]\nkind = \"{transport}\"\n{keys}")
            + "[flow_control]\nscheme = \"none\"\n[[priority]]\nid = 3\negress_limit = \"20kB\"\n\
               [[loss]]\nlink = \"S0.0-H0\"\nrate = 0.02\n\
               [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"100kB\"\nto = \"H0\"\n";
        let with = |retries| run(&plan_with(&text, &[("transport.retries", retries)]));
        let unlimited = with("unlimited");
        assert!(unlimited.flows.iter().map(|f| f.timeouts).sum::<u32>() > 0, "{transport}");
        assert!(unlimited == with("100"), "{transport}");
    }
}

/// Random losses, limits and transports: every flow is complete or has failed, packets are conserved, the run ends
/// after the last of them, and any number of threads gives the same.
#[test]
fn for_any_losses_every_flow_ends() {
    let (mut failed, mut all) = (0, 0);
    for seed in 1..=60 {
        let mut random = Stream::new(seed, "retries", 0);
        let mut pick = |most: u64| random.below(most);
        let (transport, keys, _) = TRANSPORTS[pick(7) as usize];
        let retries = pick(4) as u32;
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 3\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [run]\nseed = {seed}\n[transport]\nkind = \"{transport}\"\nretries = {retries}\n{keys}\
             [[loss]]\nlink = \"S0.0-S1.0\"\nrate = {}\n[[loss]]\nlink = \"S0.1-H3\"\nrate = 0.{}\n\
             [[traffic]]\nkind = \"all-to-all\"\nsize = \"{}B\"\n",
            ["0.1", "0.5", "0.9", "1.0"][pick(4) as usize],
            1 + pick(9),
            1 + pick(60_000),
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        let given_up = all_end(&plan, &outcome, retries);
        let last = outcome.flows.iter().filter_map(FlowOutcome::ended).max().expect("flows ended");
        assert!(outcome.end > last && outcome.end <= last + MICROSECOND, "{last} {}", outcome.end);
        failed += given_up.len();
        all += plan.flows.len();
        if seed % 6 == 0 {
            assert!(outcome == xoff_sim::run_on(&plan, 3, &mut |_| true), "seed {seed}");
        }
    }
    println!("{failed} of {all} flows failed");
    assert!(failed > 100 && failed < all / 2, "{failed} of {all}");
}

/// The parts of a failed flow's time add up to the time until it failed.
#[test]
fn the_time_of_a_failed_flow_is_explained() {
    for (transport, keys, _) in TRANSPORTS.into_iter().filter(|t| !["ndp", "rud"].contains(&t.0)) {
        let text = star(4)
            + &format!("[transport]\nkind = \"{transport}\"\nretries = 2\n{keys}")
            + "[measure]\nexplain = true\n[[loss]]\nlink = \"S0.0-H1\"\nrate = 0.7\n"
            + &["0", "2", "3"].map(|src| flow(src.parse().unwrap(), 1, "40kB")).concat()
            + &flow(0, 2, "10MB");
        let plan = plan(&text);
        let outcome = run(&plan);
        let failed = all_end(&plan, &outcome, 2);
        assert!(!failed.is_empty() && !failed.contains(&3), "{transport} {failed:?}");
        for (flow, seen) in (0..).zip(&outcome.flows) {
            let shares = outcome.paths.iter().flatten().filter(|share| share.flow == flow);
            let took = seen.ended().unwrap() - seen.started.unwrap();
            assert_eq!(shares.map(|share| share.time).sum::<u64>(), took, "{transport}: {seen:?}");
        }
    }
}

/// A flow waits for one that failed before it was delivered: nothing is left to happen.
#[test]
fn flows_after_a_failed_one_never_begin() {
    let text = star(3)
        + "[transport]\nrto = \"100us\"\nretries = 1\n[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\n\
           [[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"30kB\"\n";
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::Starved);
    let failed = outcome.flows.iter().filter(|flow| flow.failed.is_some()).count();
    let never = outcome.flows.iter().filter(|flow| flow.started.is_none()).count();
    assert!(failed > 0 && never > 0 && outcome.flows.iter().all(|flow| !flow.is_unfinished()));
}

/// Under RUD one NACK too many ends a flow at once. With a limit that no packet reaches nothing changes.
#[test]
fn too_many_nacks_end_a_flow() {
    let mut text = star(16)
        + "[flow_control]\nscheme = \"trimming\"\n[transport]\nkind = \"rud\"\n\
           [[priority]]\nid = 3\negress_limit = \"20kB\"\n";
    (1..16).for_each(|i| text += &flow(i, 0, &format!("{i}kB")));
    let with = |retries| run(&plan_with(&text, &[("transport.nack_retries", retries)]));
    let unlimited = with("unlimited");
    assert!(unlimited.flows.iter().all(|flow| flow.completed.is_some()));
    assert!(with("100") == unlimited);
    let failed = ["0", "1", "2", "3", "100"].map(|retries| {
        let outcome = with(retries);
        assert_eq!(outcome.stop, Stop::AllDone);
        for flow in &outcome.flows {
            assert_eq!(flow.failed.is_none(), flow.completed.is_some());
            assert!(retries != "0" || flow.nacks == u32::from(flow.failed.is_some()), "{flow:?}");
        }
        outcome.flows.iter().filter(|flow| flow.failed.is_some()).count()
    });
    println!("{failed:?} of 15 flows failed");
    assert!(
        failed.is_sorted_by(|a, b| a >= b) && (1..15).contains(&failed[0]) && failed[4] == 0,
        "{failed:?}"
    );
}
