//! Pods without buffers: no cells meet, every byte arrives once, and times are those of the slots.

use proptest::prelude::*;
use xoff_outcome::{DropReason, Outcome, Progress, Stop};
use xoff_plan::plan::Plan;
use xoff_schemes::scheduling::zeropod::report::COLLISION;
use xoff_schemes::scheduling::zeropod::report::Report;
use xoff_schemes::scheduling::zeropod::{model, slots::Slots};

/// A scenario: the pods, the keys of `[zeropod]`, and the rest.
fn scenario(pods: &str, keys: &str, rest: &str) -> String {
    format!(
        "[topology]\nkind = \"zeropod\"\n{pods}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [zeropod]\n{keys}\n{rest}\n"
    )
}

const POD: &str = "racks = 4\nhosts_per_rack = 4\naggs = 4";
const PODS: &str = "pods = 4\nracks = 2\nhosts_per_rack = 3\naggs = 2\ncores = 3";

fn flow(src: u32, dst: u32, size: &str) -> String {
    format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\nsize = \"{size}\"\n")
}

fn poisson(load: f64, ms: f64) -> String {
    format!(
        "[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = {load}\nstop = \"{}us\"\n",
        (ms * 1000.0) as u64
    )
}

/// Many flows of 20 to 60 kB among all hosts.
fn dense(us: u32) -> String {
    format!(
        "[[traffic]]\nkind = \"poisson\"\nsizes = {{ uniform = [\"20kB\", \"60kB\"] }}\nload = 0.5\n\
         load_of = \"host-links\"\nstop = \"{us}us\"\n"
    )
}

fn plan(text: &str) -> Plan {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    match xoff_plan::load("test.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded.plan,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    }
}

fn watch(plan: &Plan, watch: &mut dyn FnMut(&Progress) -> bool) -> Outcome {
    xoff_zeropod::run(plan, plan.pods.as_ref().expect("Zeropod"), None, watch)
}

/// Runs it: cells are conserved, and completed flows have delivered every byte, no sooner than their ideal.
fn run(plan: &Plan) -> Outcome {
    let outcome = watch(plan, &mut |_| true);
    let c = outcome.counters;
    assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        assert!(result.delivered_bytes <= flow.size);
        if let Some(completed) = result.completed {
            assert_eq!((result.delivered_bytes, result.delivered), (flow.size, Some(completed)));
            assert!(completed - result.started.unwrap() >= flow.ideal, "{flow:?} {result:?}");
        }
    }
    outcome
}

/// Runs it to the end: every byte arrives, and only cells without a grant are dropped.
fn run_all(plan: &Plan) -> Outcome {
    let outcome = run(plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&COLLISION)), "{:?}", outcome.drops);
    outcome
}

fn fct(outcome: &Outcome, flow: usize) -> u64 {
    outcome.flows[flow].completed.expect("it is complete") - outcome.flows[flow].started.expect("it began")
}

/// Without other traffic a flow waits for its RTS slot, the pipeline, and its cells: to the picosecond.
#[test]
fn a_single_flow_takes_the_time_of_its_slots() {
    // H5 is at position 1 of its rack, H10 at position 2.
    let keys = "in_phase = true\ndelay = \"15us\"";
    for cells in [5, 16, 17, 40] {
        let plan = plan(&scenario(POD, keys, &flow(5, 10, &format!("{}B", cells * 512 - 100))));
        let outcome = run_all(&plan);
        let slots = Slots { cells: 16, data: 44_160, control: 3_200, guard: 0, hop: 1_000_000 };
        assert_eq!(plan.pods.as_ref().expect("Zeropod").slots, slots);
        // The RTS of epoch 0 is there when epoch 1 begins at the scheduler.
        let pipeline = slots.pipeline(15_000_000, false);
        let epochs = 1 + pipeline.data + (cells - 1) / 16;
        let last = slots.data_at(((cells - 1) % 16) as u32, 1, 2);
        assert_eq!(
            fct(&outcome, 0),
            epochs * slots.epoch() + last + slots.data + 4 * slots.hop,
            "{cells} cells"
        );
        assert_eq!(outcome.flows[0].packets_sent, cells);
        assert_eq!(outcome.counters.data_hops, 4 * cells);
    }
}

/// A scheduler that subtracts grants when their SCHD leave grants the cells of a small flow in every epoch until
/// then: a schedule of 15 us has its SCHD 19 epochs later. The flow takes no longer, the 18 repeated grants stay
/// empty, and a larger flow to the same host waits for them.
#[test]
fn grants_of_a_pipeline_are_repeated() {
    let of = |subtract: &str| {
        let keys = format!("in_phase = true\ndelay = \"15us\"\nsubtract = \"{subtract}\"");
        let outcome = run_all(&plan(&scenario(POD, &keys, &(flow(5, 10, "8kB") + &flow(1, 10, "1MB")))));
        let report = outcome.records.get::<Report>().cloned().expect("Zeropod");
        (fct(&outcome, 0), fct(&outcome, 1), report)
    };
    let (small, large, at_once) = of("at-once");
    let (small_late, large_late, with_schd) = of("with-schd");
    assert_eq!(small, small_late);
    assert_eq!(large_late - large, 18 * at_once.epoch);
    // The last of the 1,954 cells of the larger flow are two in an epoch that was granted 16.
    assert_eq!((at_once.unused, with_schd.unused), (0, 18 * 16 + 14));
}

/// A run that ends within an epoch, or is interrupted, records nothing after its end.
#[test]
fn nothing_is_sent_after_the_end() {
    // Several flows share a grant: the later ones begin late in its epoch.
    let traffic = flow(5, 10, "7kB").repeat(6) + &flow(0, 9, "1MB");
    let epoch = plan(&scenario(POD, "", &traffic)).pods.expect("Zeropod").slots.epoch();
    let (mut begun, mut waits) = (0, 0);
    for tenth in 200..320 {
        let end = tenth * epoch / 10;
        let plan = plan(&scenario(POD, "", &format!("{traffic}[run]\nduration = \"{end}ps\"\n")));
        let outcome = run(&plan);
        let sent: u64 = outcome.flows.iter().map(|flow| flow.packets_sent).sum();
        for flow in &outcome.flows {
            assert!(flow.first_sent.is_none_or(|sent| sent < end), "{flow:?}, end {end}");
            assert_eq!(flow.first_sent.is_some(), flow.packets_sent > 0);
            begun += u32::from(flow.packets_sent > 0);
            waits += u32::from(flow.packets_sent == 0);
        }
        assert!(sent >= outcome.counters.sent, "{sent} by flow, {:?}", outcome.counters);
    }
    assert!(begun > 50 && waits > 50, "{begun} and {waits}");
    let busy = plan(&scenario(PODS, "", &dense(2000)));
    for most in 1.. {
        let mut calls = 0;
        let cut = watch(&busy, &mut |_| {
            calls += 1;
            calls < most
        });
        let times = cut.flows.iter().flat_map(|flow| [flow.first_sent, flow.completed]);
        assert!(times.flatten().all(|time| time <= cut.end), "{most} calls");
        if cut.stop != Stop::Interrupted {
            assert!(most > 1);
            break;
        }
    }
}

/// Between pods there are two rounds of request and grant (§III-C), and three links each.
#[test]
fn between_pods_there_are_two_rounds() {
    let keys = "in_phase = true\ndelay = \"5us\"\ncells = 32";
    let plan = plan(&scenario(PODS, keys, &flow(0, 23, "512B")));
    let outcome = run_all(&plan);
    let zeropod = plan.pods.as_ref().expect("Zeropod");
    let (slots, pipeline) = (zeropod.slots, zeropod.slots.pipeline(zeropod.delay, true));
    let epoch = slots.epoch();
    // The time at which a cell is at its core, if position 0 sends it in an epoch; and the time of the grant
    // for the core's request.
    let report = outcome.records.get::<Report>().expect("Zeropod");
    assert_eq!((report.grants, report.scheduled, report.unused), (2, 2, 0));
    assert_eq!(outcome.counters.data_hops, 6);
    // The first round: the RTS of epoch 0 arrives two hops and its length later.
    let epoch_received =
        |sent: u64| (sent + slots.control + 2 * slots.hop).saturating_sub(slots.hop).div_ceil(epoch);
    let first = epoch_received(0) + pipeline.data;
    // Cores are at positions 0, 1 and 0 again of their aggregation switches: 0 and 0 here, or 1.
    let options: Vec<u64> = [0, 1, 2]
        .map(|core: u32| {
            let position = core / 2;
            let arrives = first * epoch + slots.data_at(0, 0, position) + slots.data + 3 * slots.hop;
            // The first RTS of the core after that, and the epoch that receives it.
            let rts = |e: u64| e * epoch + slots.hop + slots.rts_at(position, None);
            let asks = (0..).find(|&e| rts(e) >= arrives).expect("some epoch");
            let second = epoch_received(rts(asks)) + pipeline.data;
            // H23 is the last of three hosts in its rack.
            second * epoch + slots.hop + slots.data_at(0, position, 2) + slots.data + 3 * slots.hop
        })
        .to_vec();
    assert!(options.contains(&fct(&outcome, 0)), "{} is none of {options:?}", fct(&outcome, 0));
}

/// Small flows that go at once arrive at once in an empty pod, and copies do no harm.
#[test]
fn a_single_optimistic_flow_takes_the_path_and_its_rts() {
    let plan = plan(&scenario(POD, "in_phase = true", &flow(4, 10, "1500B")));
    let outcome = run_all(&plan);
    // The RTS of position 0, a cell, the slots of position 2, and two cells.
    assert_eq!(fct(&outcome, 0), 2 * 44_160 + 2 * 3_200 + 2 * 44_160 + 4_000_000);
    let report = outcome.records.get::<Report>().expect("Zeropod").unscheduled;
    assert_eq!((report.sent, report.delivered), (3, 3));
}

/// Optimistic cells use only idle links: all scheduled events are the same as without them.
#[test]
fn optimistic_cells_leave_all_else_as_it_is() {
    let small = "[[traffic]]\nkind = \"poisson\"\nsizes = { uniform = [\"300B\", \"2000B\"] }\nload = 0.01\n\
                 stop = \"1ms\"\n";
    let with = |optimistic: u32| {
        let text = scenario(POD, &format!("optimistic = {optimistic}"), &(poisson(0.6, 1.0) + small));
        let plan = plan(&text);
        (run_all(&plan), plan)
    };
    let ((some, plan), (none, _)) = (with(5), with(0));
    let report = |o: &Outcome| o.records.get::<Report>().expect("Zeropod").clone();
    assert!(report(&some).unscheduled.met_scheduled > 10 && report(&some).unscheduled.delivered > 10);
    assert_eq!(report(&none).unscheduled.sent, 0);
    assert_eq!(report(&some).tally, report(&none).tally);
    assert_eq!(
        (report(&some).grants, report(&some).scheduled),
        (report(&none).grants, report(&none).scheduled)
    );
    let mut earlier = 0;
    for (flow, (a, b)) in plan.flows.iter().zip(some.flows.iter().zip(&none.flows)) {
        if flow.size > 4 * 512 {
            assert_eq!(a.completed, b.completed);
        } else {
            assert!(a.completed <= b.completed);
            earlier += u32::from(a.completed < b.completed);
        }
    }
    assert!(earlier > 0);
}

/// Equations 6 and 7 (§IV-B.3): only unscheduled cells, both lost when they meet; and beside them the rule
/// that the first one wins.
#[test]
fn unscheduled_cells_arrive_as_often_as_in_the_model() {
    let share = |k: u32, g: f64, collision: &str| {
        let m = k / 2;
        let text = scenario(
            &format!("racks = {m}\nhosts_per_rack = {m}\naggs = {m}"),
            &format!("scheduled = false\ncollision = \"{collision}\""),
            &format!(
                "[[traffic]]\nkind = \"poisson\"\nsizes = {{ uniform = [\"512B\", \"512B\"] }}\nload = {g}\nload_of = \"host-links\"\n\
                 [transport]\nmtu = \"512B\"\nheader = \"40B\"\n[run]\nduration = \"{}us\"\ndrain = \"20us\"\n",
                400_000 / (m * m * if g < 0.15 { 2 } else { 1 }) + 100
            ),
        );
        let outcome = run(&plan(&text));
        let report = outcome.records.get::<Report>().cloned().expect("Zeropod").unscheduled;
        assert!(report.sent > 50_000, "{}", report.sent);
        report.delivered as f64 / report.sent as f64
    };
    for (k, g) in [(8u32, 0.1f64), (32, 0.1), (32, 0.1739)] {
        let expected = model::success(g, k / 2);
        let both = share(k, g, "both");
        assert!((both / expected - 1.0).abs() < 0.03, "k = {k}, G = {g}: {both:.4} for {expected:.4}");
        let later = share(k, g, "later");
        assert!(later > both + 0.05, "k = {k}, G = {g}: {later:.4} where the first one wins");
    }
    assert!(share(32, 0.1, "both") > 0.55);
}

fn pods() -> impl Strategy<Value = String> {
    let one = (1u32..5, 1u32..6, 1u32..5)
        .prop_filter("two hosts", |p| p.0 * p.1 > 1)
        .prop_map(|(r, h, a)| format!("racks = {r}\nhosts_per_rack = {h}\naggs = {a}"));
    let several = (2u32..4, 1u32..3, 1u32..4, 1u32..4, 1u32..5).prop_map(|(p, r, h, a, c)| {
        format!("pods = {p}\nracks = {r}\nhosts_per_rack = {h}\naggs = {a}\ncores = {c}")
    });
    prop_oneof![one, several]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 24 / 256, ..ProptestConfig::default() })]

    /// For any pods, traffic and memory of cores: no two grants meet (the run asserts it), every byte arrives
    /// once, no granted cell is lost, and no cell is left waiting.
    #[test]
    fn every_byte_arrives_once(
        pods in pods(),
        cells in prop::sample::select(vec![4u32, 9, 16, 32]),
        iterations in 1u32..7,
        top_k in 0u16..5,
        backpressure in prop::sample::select(vec![0u32, 5, 40, 320]),
        delay in prop::sample::select(vec![0u32, 3, 15]),
        subtract in prop::sample::select(vec!["at-once", "with-schd"]),
        seed in 0u64..1000,
    ) {
        let keys = format!(
            "cells = {cells}\niterations = {iterations}\ntop_k = {top_k}\nbackpressure = {backpressure}\n\
             delay = \"{delay}us\"\nsubtract = \"{subtract}\""
        );
        let load = "[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.9\nload_of = \"host-links\"\n\
                    stop = \"300us\"\n[[traffic]]\nkind = \"incast\"\nfan_in = 1\nsize = \"20kB\"\nperiod = \"50us\"\n\
                    stop = \"100us\"\n[run]\nseed = ".to_string() + &seed.to_string();
        let plan = plan(&scenario(&pods, &keys, &load));
        let outcome = run_all(&plan);
        prop_assert_eq!(outcome.counters.in_flight, 0);
        // Again the same.
        prop_assert_eq!(&outcome, &run_all(&plan));
    }
}

/// A core has less room than arrivals, signals, and loses no cell.
#[test]
fn backpressure_keeps_cores_from_overflowing() {
    let incast: String = (0..18).map(|src| flow(src, 20, "300kB")).collect();
    let at = |backpressure: u32| {
        let keys =
            format!("cells = 32\ndelay = \"5us\"\nbackpressure = {backpressure}\ncore_buffer = \"4MB\"");
        let plan = plan(&scenario(PODS, &keys, &incast));
        let outcome = run_all(&plan);
        let peak = outcome.buffer_peaks.iter().copied().max().expect("cores");
        (outcome.records.get::<Report>().cloned().expect("Zeropod").backpressure, peak, outcome.end)
    };
    let (some, small, _) = at(100);
    let (none, large, _) = at(100_000);
    assert!(some > 0 && none == 0 && small < large, "{some} {small} {none} {large}");
}

/// With the layer that acknowledges, one link of each kind may fail and recover: every byte arrives.
#[test]
fn one_failed_link_of_each_kind() {
    for (link, at) in [(["H7", "S0.2"], "0"), (["S0.2", "S1.2"], "1"), (["S1.2", "S2.0"], "2")] {
        let rest = format!(
            "[[failure]]\nlink = \"{}-{}\"\nat = \"100us\"\nuntil = \"900us\"\n{}[run]\nseed = 3\n",
            link[0],
            link[1],
            dense(900)
        );
        let keys = "cells = 32\ndelay = \"5us\"\nacks = true\nack_timeout = \"100us\"\nretry = \"200us\"";
        let plan = plan(&scenario(PODS, keys, &rest));
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone, "{link:?}");
        let report = outcome.records.get::<Report>().expect("Zeropod");
        let lost =
            outcome.drops.iter().filter(|d| d.reason == DropReason::LinkDown).map(|d| d.packets).sum::<u64>();
        assert!(lost > 0, "{link:?}");
        // It was found, and nothing else; and it was tried again.
        let ends: Vec<String> = report
            .found
            .iter()
            .map(|f| {
                let port = &plan.topology.ports[f.port as usize];
                let mut names = [
                    plan.topology.nodes[port.node as usize].name.clone(),
                    plan.topology.nodes[plan.topology.neighbour(f.port) as usize].name.clone(),
                ];
                names.sort();
                names.join("-")
            })
            .collect();
        let mut names = link;
        names.sort_unstable();
        assert!(!ends.is_empty() && ends.iter().all(|e| *e == names.join("-")), "{at} {link:?}: {ends:?}");
        let first = report.found.first().expect("some");
        assert!(first.down && first.at < 200_000_000, "{first:?}");
        assert!(!report.found.last().expect("some").down);
    }
}

/// The scheduler fails, and its backup takes over; and its link to a rack fails: nothing is lost.
#[test]
fn schedulers_and_their_links_fail() {
    for failure in [
        "scheduler_failure = [{ pod = 1, at = \"200us\", takeover = \"100us\" }]",
        "scheduler_link = [{ switch = \"S0.2\", from = \"100us\", until = \"400us\" }]",
        "scheduler_link = [{ switch = \"S1.3\", from = \"100us\", until = \"400us\" }]",
    ] {
        let keys = format!("cells = 32\ndelay = \"5us\"\n{failure}");
        let plan = plan(&scenario(PODS, &keys, &dense(600)));
        let outcome = run_all(&plan);
        assert!(outcome.records.get::<Report>().cloned().expect("Zeropod").taken_back > 0, "{failure}");
    }
}

/// A core of 10 kB drops cells with ACKs in them, whose items are not flows.
#[test]
fn acknowledgements_that_a_core_drops_are_counted() {
    let pods = "pods = 3\nracks = 1\nhosts_per_rack = 4\naggs = 1\ncores = 1";
    let traffic = "[[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n[run]\nseed = ";
    for seed in 1..4 {
        let text = scenario(pods, "acks = true\ncore_buffer = \"10kB\"", &format!("{traffic}{seed}"));
        let outcome = run(&plan(&text));
        assert_eq!((outcome.stop, &outcome.livelock), (Stop::AllDone, &None), "seed {seed}");
        assert!(outcome.counters.dropped > 0);
    }
}

/// A host whose clock is off by more than the guard band gets no grant, and no other host is affected.
#[test]
fn clocks_that_are_off_are_found() {
    let with = |error: &str, ms: u32| {
        let keys = format!("guard = \"1ns\"\nclock_error = \"{error}\"");
        let rest = poisson(0.3, 0.5) + &format!("[run]\nduration = \"1ms\"\ndrain = \"{ms}ms\"\n");
        let plan = plan(&scenario(POD, &keys, &rest));
        let outcome = run(&plan);
        let report = outcome.records.get::<Report>().cloned().expect("Zeropod");
        let off = plan.pods.as_ref().expect("Zeropod").clock_errors.iter().filter(|e| e.abs() > 500).count();
        let unfinished = plan.flows.iter().zip(&outcome.flows).filter(|(_, o)| o.completed.is_none());
        let who: std::collections::BTreeSet<u32> = unfinished.map(|(f, _)| f.src).collect();
        (off, report, who)
    };
    let (off, report, who) = with("500ps", 5);
    assert_eq!((off, report.off_time, who.len(), report.found.len()), (0, 0, 0, 0));
    let (off, report, who) = with("800ps", 5);
    assert!(off > 0 && report.off_time > 0);
    assert_eq!(report.found.len(), off);
    assert!(who.len() <= off && !who.is_empty());
}
