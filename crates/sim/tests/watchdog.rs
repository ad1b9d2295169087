//! The PFC watchdog: its times, its queues, its cost, and that no other packet is lost.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::watchdog::Report;
use xoff_schemes::flow_control::watchdog::WatchdogParams;
use xoff_schemes::flow_control::watchdog::report::DROPPED;
use xoff_schemes::flow_control::watchdog::report::OVERRUN;
use xoff_sim::outcome::{DropReason, Outcome, Stop};

/// `n` switches in a ring with a host each; host i sends over `reach` links clockwise.
fn ring(n: usize, reach: usize, size: &str, control: &str) -> String {
    let mut text = format!(
        "[topology]\nkind = \"ring\"\nswitches = {n}\nhosts_per_switch = 1\n\
         link = {{rate=\"100Gbps\", delay=\"1us\"}}\n[flow_control]\n{control}\n"
    );
    for i in 0..n {
        let path: Vec<String> = (0..=reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
        let dst = (i + reach) % n;
        write!(
            text,
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n\
             path = [\"H{i}\", {}, \"H{dst}\"]\n",
            path.join(", ")
        )
        .unwrap();
    }
    text
}

/// A watchdog of milliseconds, over shallow thresholds.
const WATCHED: &str = "scheme = \"pfc-watchdog\"\nxoff = \"20kB\"\nxon = \"10kB\"\ndetection_time = \"20ms\"\n\
    restoration_time = \"10ms\"\npoll = \"7ms\"";

const MS: u64 = 1_000_000_000;

fn params(plan: &Plan) -> &WatchdogParams {
    match &plan.flow_control {
        FlowControlParams::Watchdog(params) => params,
        _ => panic!("another scheme"),
    }
}

/// The time at which a pause that lasts from `from` on becomes a storm: with the first poll at least the
/// detection time after the first one that sees it.
fn found(params: &WatchdogParams, port: u32, from: u64) -> u64 {
    let polls = (0..).map(|i| params.first[port as usize].expect("watched") + i * params.poll);
    let mut later = polls.skip_while(|&poll| poll <= from);
    let first = later.next().unwrap();
    later.find(|&poll| poll - first >= params.detection).unwrap()
}

#[test]
fn permanently_paused_packets_are_dropped_and_everything_finishes() {
    let text = ring(3, 2, "2MB", WATCHED);
    let bare = run(&plan_with(&text, &[("flow_control.scheme", "pfc")]));
    assert_eq!(bare.stop, Stop::Starved);
    assert_eq!(bare.deadlock.unwrap().ended, None);

    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    // All three switches have a queue that waits for ever; the one that polls first empties its own.
    let [storm] = outcome.records.get::<Report>().unwrap().storms[..] else {
        panic!("{:?}", outcome.records.get::<Report>().unwrap().storms)
    };
    let deadlock = outcome.deadlock.as_ref().unwrap();
    let due = |port: u32| {
        let pause = outcome.pauses.iter().find(|p| p.port == port && p.until.is_none_or(|u| u >= 20 * MS));
        found(params(&plan), port, pause.unwrap().from)
    };
    let mut when: Vec<(u64, u32)> = deadlock.cycle.iter().map(|h| (due(h.port), h.port)).collect();
    when.sort_unstable();
    assert_eq!((storm.from, storm.port), when[0]);
    assert!((20 * MS..=27 * MS + MS / 10).contains(&storm.from), "{storm:?}");
    // The cycle opens directly after it: a resume goes around it.
    let ended = deadlock.ended.expect("it was dissolved");
    assert!((storm.from..storm.from + 20_000_000).contains(&ended), "{ended} after {storm:?}");
    // Everything that was dropped was to leave by that port; nothing else was lost.
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&DROPPED) && d.lossless));
    let device = |port: u32| plan.topology.ports[port as usize].node;
    assert!(outcome.drops.iter().all(|d| device(d.ingress) == device(storm.port)));
    assert!(outcome.drops.iter().all(|d| d.first >= storm.from));
    assert!(outcome.counters.dropped > 0);
}

/// By hand: the watchdog's storm is over when so long no pause has come; a stalled host's
/// frames keep it up.
#[test]
fn a_storm_lasts_until_no_pause_has_come_for_a_while() {
    let text = ring(3, 1, "1MB", WATCHED)
        + "[host]\nbuffer = \"1MB\"\n[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"5us\"\nstall_until = \"60ms\"\n";
    // The path of H0's flow: H0, S0.0, S0.1, H1, which does not read.
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!((outcome.stop, &outcome.deadlock), (Stop::AllDone, &None));
    // H1 pauses S0.1, which pauses S0.0, which pauses the host H0: two storms, because the NIC of a plain
    // host has no watchdog. S0.0's ends when S0.1 has dropped its packets.
    let name = |port: u32| plan.topology.port_name(port);
    let last = outcome
        .records
        .get::<Report>()
        .unwrap()
        .storms
        .iter()
        .find(|s| name(s.port).starts_with("S0.1"))
        .unwrap();
    let pauses = outcome.pauses.iter().filter(|p| p.port == last.port);
    let from = pauses.clone().find(|p| p.from < 20 * MS && p.until.is_none_or(|u| u > 20 * MS)).unwrap().from;
    assert_eq!(last.from, found(params(&plan), last.port, from));
    // H1's last refresh comes before it reads again.
    let until = last.until.expect("it is over");
    assert!((70 * MS - MS..77 * MS + MS).contains(&until), "{until}");
    assert!(outcome.records.get::<Report>().unwrap().storms.iter().all(|s| !name(s.port).starts_with('H')));
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&DROPPED)));
    // H0 repeats its thousand packets after each timeout of 4 ms, and all come to nothing.
    assert!(outcome.flows[0].dropped > 8_000, "{:?}", outcome.flows[0]);
}

/// A sends over the host R to X, which does not read. X, R and S0 are paused and switches; so is the NIC of
/// A, which has no watchdog.
#[test]
fn hosts_that_relay_watch_and_plain_ones_do_not() {
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"R\", \"X\"]\nrelay_hosts = true\n\
         switches = [\"S0\", \"S1\"]\nlinks = [\n\
         {{a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}}, {{a=\"S0\", b=\"R\", rate=\"100Gbps\", delay=\"100ns\"}},\n\
         {{a=\"R\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"}}, {{a=\"S1\", b=\"X\", rate=\"100Gbps\", delay=\"100ns\"}}]\n\
         [host]\nbuffer = \"1MB\"\n[flow_control]\n{WATCHED}\n\
         [[slow_receiver]]\nhost = \"X\"\nstall_from = \"0us\"\nstall_until = \"1s\"\n[run]\nduration = \"50ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"5MB\"\n"
    );
    let plan = plan_with(&text, &[("flow_control.action", "alert")]);
    let outcome = run(&plan);
    let name = |node: u32| plan.topology.nodes[node as usize].name.as_str();
    let paused = |name_of: &str| {
        outcome.pauses.iter().any(|p| name(plan.topology.ports[p.port as usize].node) == name_of)
    };
    assert!(["A", "S0", "R", "S1"].into_iter().all(paused));
    let mut found: Vec<&str> = outcome
        .records
        .get::<Report>()
        .unwrap()
        .storms
        .iter()
        .map(|s| name(plan.topology.ports[s.port as usize].node))
        .collect();
    found.sort_unstable();
    assert_eq!(found, ["R", "S0", "S1"]);
}

#[test]
fn forwarded_packets_overrun_their_peers_and_no_other_packet_is_lost() {
    let text = ring(3, 2, "2MB", WATCHED) + "[run]\nseed = 3\n";
    let outcome = run(&plan_with(&text, &[("flow_control.action", "forward")]));
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&OVERRUN) && d.lossless));
    assert!(outcome.counters.dropped > 0 && outcome.records.get::<Report>().unwrap().storms.len() == 1);
}

/// Except for the reported storms, and the polls, which are events.
#[test]
fn an_alert_changes_nothing() {
    let text = ring(3, 2, "2MB", WATCHED) + "[run]\nduration = \"70ms\"\n[measure]\nblocking = true\n";
    let bare = run(&plan_with(&text, &[("flow_control.scheme", "pfc")]));
    let mut told = run(&plan_with(&text, &[("flow_control.action", "alert")]));
    assert_eq!(told.records.get::<Report>().unwrap().storms.len(), 3);
    assert!(told.records.get::<Report>().unwrap().storms.iter().all(|s| s.until.is_none()));
    assert!(told.counters.events > bare.counters.events);
    told.records = bare.records.clone();
    told.counters.events = bare.counters.events;
    assert!(told == bare);
}

/// Without a pause that lasts there is nothing to see: the bytes are those of PFC, and no
/// poll is an event after all pauses have ended.
#[test]
fn short_pauses_are_left_alone() {
    let text = ring(3, 1, "2MB", WATCHED)
        + "[[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"300kB\"\nto = \"random\"\n[run]\nduration = \"5ms\"\n";
    let bare = run(&plan_with(&text, &[("flow_control.scheme", "pfc")]));
    assert!(bare.pauses.len() > 10);
    let mut watched = run(&plan(&text));
    assert_eq!(watched.records.get::<Report>().unwrap().storms, []);
    watched.records = bare.records.clone();
    watched.counters.events = bare.counters.events;
    assert!(watched == bare);
}

#[test]
fn a_link_that_fails_ends_its_storm() {
    let text = ring(3, 2, "2MB", WATCHED);
    for action in ["drop", "forward"] {
        let action = ("flow_control.action", action);
        let healthy = run(&plan_with(&text, &[action]));
        let storm = healthy.records.get::<Report>().unwrap().storms[0];
        let from = storm.from / 1_000_000 + 1;
        let failing = format!(
            "{text}[[failure]]\nlink = \"S0.0-S0.1\"\nat = \"{from}us\"\nuntil = \"{}us\"\n\
             [[failure]]\nlink = \"S0.1-S0.2\"\nat = \"{from}us\"\nuntil = \"{}us\"\n\
             [[failure]]\nlink = \"S0.2-S0.0\"\nat = \"{from}us\"\nuntil = \"{}us\"\n",
            from + 500,
            from + 500,
            from + 500
        );
        let outcome = run(&plan_with(&failing, &[action]));
        assert_eq!(outcome.records.get::<Report>().unwrap().storms[0].from, storm.from);
        assert_eq!(outcome.records.get::<Report>().unwrap().storms[0].until, Some(from * 1_000_000));
        // No device drops for the next storm, unless there is another one.
        assert_eq!(outcome.stop, Stop::AllDone);
    }
}

fn assert_same_on_threads(plan: &Plan, one: &Outcome) {
    for threads in [2, 4] {
        let many = xoff_sim::run_on(plan, threads, &mut |_| true);
        assert_eq!(one.counters, many.counters);
        assert_eq!((&one.records, &one.drops), (&many.records, &many.drops));
        assert!(*one == many, "{threads} threads");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 40 / 256))]
    /// Rings that deadlock, and hosts that relay, with a watchdog of microseconds: all losses are its drops,
    /// every storm comes at a poll, and everything is the same over threads. Dropped, all flows finish.
    #[test]
    fn it_drops_only_the_intended_packets(
        n in 3usize..6, kilobytes in 200u64..2_000, seed in 0u64..1_000, action in 0usize..3,
        detection in 60u64..400, restoration in 60u64..400, poll in 5u64..60, relays in any::<bool>(),
        blind in any::<bool>(), fails in any::<bool>(),
    ) {
        let action = ["drop", "forward", "alert"][action];
        let relay = if relays && blind { "relay = \"blind\"\n" } else { "" };
        let control = format!(
            "scheme = \"pfc-watchdog\"\naction = \"{action}\"\nxoff = \"20kB\"\nxon = \"10kB\"\n{relay}\
             detection_time = \"{detection}us\"\nrestoration_time = \"{restoration}us\"\npoll = \"{poll}us\""
        );
        let mut text = match relays {
            false => ring(n, n - 1, &format!("{kilobytes}kB"), &control),
            true => format!(
                "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
                 [flow_control]\n{control}\n[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.9\n\
                 [[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"200kB\"\nto = \"random\"\nperiod = \"100us\"\n"
            ),
        };
        write!(text, "[transport]\nrto = \"500us\"\nwindow = \"64kB\"\n[measure]\nblocking = true\n[run]\nseed = {seed}\n").unwrap();
        if relays {
            text += "duration = \"2ms\"\n";
        }
        if fails {
            let link = if relays { "H0-S0.0" } else { "S0.0-S0.1" };
            write!(text, "[[failure]]\nlink = \"{link}\"\nat = \"400us\"\nuntil = \"700us\"\n").unwrap();
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        if !relays && action == "drop" {
            prop_assert_eq!(outcome.stop, Stop::AllDone);
        }
        let mine = match action {
            "drop" => Some(DropReason::Scheme(&DROPPED)),
            "forward" => Some(DropReason::Scheme(&OVERRUN)),
            _ => None,
        };
        for d in &outcome.drops {
            prop_assert!(Some(d.reason) == mine || d.reason.by_fault(), "{:?}", d);
        }
        for s in &outcome.records.get::<Report>().unwrap().storms {
            let first = params(&plan).first[s.port as usize];
            prop_assert!(first.is_some_and(|first| (s.from - first).is_multiple_of(params(&plan).poll)));
            prop_assert!(s.from >= params(&plan).detection);
            if let Some(until) = s.until {
                prop_assert!(until > s.from);
            }
        }
        assert_same_on_threads(&plan, &outcome);
    }
}
