//! Pods with buffers and without.

use std::io;
use std::path::Path;
use xoff_kernel::time::MILLISECOND;
use xoff_plan::describe::describe;
use xoff_plan::{Loaded, load};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::none::NoParams;
use xoff_schemes::scheduling::zeropod::params::{Collision, ZeropodParams};
use xoff_schemes::scheduling::zeropod::slots::Slots;
use xoff_schemes::scheduling::zeropod::{MiceCores, Order, Params, Pod, Subtract};

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

fn loaded(kind: &str, shape: &str, rest: &str) -> Loaded {
    let text = format!(
        "[topology]\nkind = \"{kind}\"\n{shape}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n{rest}"
    );
    load("test.toml", text.as_bytes(), &[], &no_files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

/// The pods of the paper's evaluation.
const ONE: &str = "racks = 16\nhosts_per_rack = 16\naggs = 16";
const EIGHT: &str = "pods = 8\nracks = 4\nhosts_per_rack = 4\naggs = 4\ncores = 7";
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H15\"\nsize = \"1MB\"\n";

fn zeropod(shape: &str, keys: &str) -> ZeropodParams {
    let loaded = loaded("zeropod", shape, &format!("[zeropod]\n{keys}\n{FLOW}"));
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    loaded.plan.pods.expect("pods without buffers")
}

#[test]
fn the_defaults_are_those_of_the_paper() {
    let z = zeropod(ONE, "");
    assert_eq!(z.pod, Pod { racks: 16, hosts_per_rack: 16, aggs: 16, cores: 0, pods: 1 });
    assert_eq!(
        z.scheduler,
        Params {
            cells: 16,
            payload: 512,
            iterations: 6,
            requests: 1,
            mice_cores: 0,
            mice_over: MiceCores::Any,
            order: Order::Smallest,
            subtract: Subtract::AtOnce,
        }
    );
    // 552 B and 40 B at 80 ps each: an epoch of 713 ns.
    assert_eq!(z.slots, Slots { cells: 16, data: 44_160, control: 3_200, guard: 0, hop: 1_000_000 });
    assert_eq!(z.slots.epoch(), 712_960);
    assert_eq!((z.header, z.control, z.delay, z.top_k), (40, 40, 15_000_000, 16));
    assert_eq!(z.levels[..2], [100_000, 759 * 1460]);
    assert_eq!(z.levels.len(), 8);
    assert_eq!((z.optimistic, z.scheduled, z.collision), (5, true, Collision::Later));
    assert_eq!((z.core_buffer, z.backpressure), (32_000_000, 320));
    assert_eq!((z.acks, z.retry), (None, MILLISECOND));
    assert!(z.clocks.len() == 1 && z.clocks[0] < 712_960);
    assert_eq!(z.clock_errors, [0; 256]);
    assert!(z.scheduler_failures.is_empty() && z.scheduler_links.is_empty());

    // Eight pods: an epoch of 1420 ns; at twice the rate it takes half.
    assert_eq!(zeropod(EIGHT, "cells = 32").slots.epoch(), 1_419_520);
    let text = format!("[zeropod]\ncells = 32\n{FLOW}");
    let twice = [("topology.link.rate".to_string(), "200Gbps".to_string())];
    let text = format!(
        "[topology]\nkind = \"zeropod\"\n{EIGHT}\nlink = {{ rate = \"1Gbps\", delay = \"1us\" }}\n{text}"
    );
    let plan = load("test.toml", text.as_bytes(), &twice, &no_files).expect("it loads").plan;
    assert_eq!(plan.pods.expect("pods without buffers").slots.epoch(), 709_760);
}

/// Each of the k destinations lengthens both control cells, and the epoch.
#[test]
fn entries_lengthen_requests() {
    let z = zeropod(ONE, "control = \"8B\"\nentry = \"2B\"");
    assert_eq!((z.control, z.slots.epoch()), (40, 712_960));
    let z = zeropod(ONE, "control = \"8B\"\nentry = \"2B\"\ntop_k = 32");
    assert_eq!((z.control, z.slots.control, z.slots.epoch()), (72, 5_760, 718_080));
    let z = zeropod(EIGHT, "mice_cores = 1\nmice_over = \"exclusive-only\"\nsubtract = \"with-schd\"");
    assert_eq!((z.scheduler.mice_over, z.scheduler.subtract), (MiceCores::ExclusiveOnly, Subtract::WithSchd));
}

#[test]
fn values_that_cannot_be_are_refused() {
    let refused = |keys: &str| {
        let text = format!(
            "[topology]\nkind = \"zeropod\"\n{EIGHT}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [zeropod]\n{keys}\n{FLOW}"
        );
        load("test.toml", text.as_bytes(), &[], &no_files).expect_err(keys).one_line()
    };
    for (keys, why) in [
        ("entry = \"1kB\"", "a request with 16 entries of 1kB is too long"),
        ("entry = \"16B\"", "control slots would overlap"),
        ("mice_over = \"exclusive-only\"", "leaves no core for mice"),
        ("subtract = \"with-schd\"\nclock_error = \"1ns\"", "incompatible with failures and clock errors"),
        (
            "subtract = \"with-schd\"\nscheduler_link = [{ switch = \"S0.0\", from = \"1ms\" }]",
            "incompatible with failures and clock errors",
        ),
        (
            "subtract = \"with-schd\"\n[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"1ms\"",
            "incompatible with failures and clock errors",
        ),
    ] {
        let message = refused(keys);
        assert!(message.contains(why), "{keys}: {message}");
    }
}

#[test]
fn clocks_are_drawn_within_their_bounds() {
    let z = zeropod(EIGHT, "clock_error = \"30ns\"\nguard = \"5ns\"");
    let epoch = z.slots.epoch();
    assert!(z.clocks.iter().all(|&at| at < epoch));
    assert!(z.clocks.windows(2).any(|pair| pair[0] != pair[1]));
    let off: Vec<i64> = z.clock_errors.clone();
    assert_eq!(off.len(), 128);
    assert!(off.iter().all(|error| error.abs() <= 30_000));
    assert!(off.iter().any(|&error| error < -15_000) && off.iter().any(|&error| error > 15_000));
    // Other keys move neither.
    let other = zeropod(EIGHT, "clock_error = \"30ns\"\nguard = \"5ns\"\niterations = 2\nacks = true");
    assert_eq!((other.clocks, other.clock_errors), (z.clocks, z.clock_errors));
    assert_eq!(zeropod(EIGHT, "in_phase = true").clocks, [0; 8]);
}

#[test]
fn failures_of_schedulers_are_in_the_order_of_time() {
    let z = zeropod(
        EIGHT,
        "scheduler_failure = [{ pod = 3, at = \"2ms\", takeover = \"1ms\" }, { pod = 7, at = \"1ms\", takeover = \"0ns\" }]\n\
         scheduler_link = [{ switch = \"S0.31\", from = \"1ms\" }, { switch = \"S1.0\", from = \"0ns\", until = \"1us\" }]",
    );
    let failures: Vec<_> = z.scheduler_failures.iter().map(|f| (f.pod, f.at, f.takeover)).collect();
    assert_eq!(failures, [(7, MILLISECOND, 0), (3, 2 * MILLISECOND, MILLISECOND)]);
    // 128 hosts, 32 ToRs, then aggregation switches.
    assert_eq!(z.scheduler_links, [(128 + 31, MILLISECOND, u64::MAX), (128 + 32, 0, 1_000_000)]);
}

#[test]
fn the_words_for_pods() {
    let text = format!(
        "[zeropod]\ncells = 32\ndelay = \"5us\"\nguard = \"2ns\"\nmice_cores = 1\ncollision = \"both\"\nacks = true\n\
         clock_error = \"2ns\"\nscheduler_failure = [{{ pod = 2, at = \"1ms\", takeover = \"100us\" }}]\n\
         scheduler_link = [{{ switch = \"S1.1\", from = \"1ms\" }}]\n\
         [[failure]]\nlink = \"S0.0-S1.0\"\nat = \"1ms\"\n{FLOW}"
    );
    assert_eq!(
        describe(&loaded("zeropod", EIGHT, &text)).trim_end(),
        "\
nodes
       128 hosts, with 1 port each: H0, H1, H2, H3, H4, … H127
        71 switches, with 5 to 8 ports each: S0.0, S0.1, S0.2, S0.3, S0.4, … S2.6
links
       128 S0 - S1: 100Gbps, 1us (one-hop BDP 12500 B)
        56 S1 - S2: 100Gbps, 1us (one-hop BDP 12500 B)
       128 host - S0: 100Gbps, 1us (one-hop BDP 12500 B)
8 pods without buffers (zeropod): 4 racks of 4 hosts, 4 aggregation switches; 7 cores
  epoch 1429520ps: 32 cells of 512 + 40B (44160ps), 2 control slots of 40B (3200ps), guard bands of 2ns; payload is at most 91.69% of a link
  a schedule takes 5us. Its SCHD frames leave 3 epochs later, its cells 7 epochs later (10006640ps)
  scheduler: 6 iterations, 1 path for each demand, smallest first; an RTS lists mice for at most 16 destinations
  levels of flows: up to 100kB, 1108140B, 1652720B, 2125760B, 2536020B, 2934600B, 3210540B, 3394500B (the first level is mice), and larger
  flows of fewer than 5 cells are also sent without a grant; if two such cells collide, both cells are lost
  cores: 32MB each, backpressure above 320 cells; the last 1 only for mice
  receivers send ACKs; timeout 200us
  first epochs of pods begin at: 194411ps, 1422875ps, 716345ps, 1405874ps, 921261ps, … 1297341ps
  host clocks have errors of up to 1998ps: 67 hosts by more than half a guard band
  the scheduler of pod 2 fails at 1ms; its backup takes over 100us later
  the scheduler's link to S1.1 is down from 1ms to the end
traffic
  flow: 1 flow, 1000000 B
faults
  S0.0:4 - S1.0:0 is down from 1ms to the end"
    );
}

/// 80% of the flows stay in their pod, and 20% leave it, as in the paper's evaluation of several pods.
#[test]
fn shares_of_flows_stay_in_pods() {
    let rest = "[[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = 0.5\nload_of = \"host-links\"\n\
                locality = { pod = 0.8, other = 0.2 }\n[run]\nduration = \"200us\"\n";
    for kind in ["pods", "zeropod"] {
        let plan = loaded(kind, EIGHT, rest).plan;
        let inside = plan.flows.iter().filter(|f| f.src / 16 == f.dst / 16).count();
        let (inside, all) = (inside as f64, plan.flows.len() as f64);
        // Five standard deviations.
        assert!(
            all > 10_000.0 && (inside / all - 0.8).abs() < 5.0 * (0.16 / all).sqrt(),
            "{inside} of {all}"
        );
    }
}

/// With buffers and without, the same is sent.
#[test]
fn traffic_is_the_same_with_buffers_and_without() {
    let rest = "[flow_control]\nscheme = \"pfc\"\nxoff = \"100kB\"\n[switch]\nbuffer = \"16MB\"\n\
                [transport]\nkind = \"irn\"\ncongestion_control = \"dcqcn\"\nmtu = \"1460B\"\n\
                [irn]\nrto_low = \"50us\"\n[ecn]\nk_min = \"10kB\"\nk_max = \"20kB\"\np_max = 1.0\n\
                [[priority]]\nid = 3\nlossless = true\n\
                [[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\npriority = 3\n\
                [[failure]]\nlink = \"S0.0-S1.0\"\nat = \"1ms\"\n[run]\nduration = \"2ms\"\n";
    let with = loaded("pods", EIGHT, rest);
    let without = loaded("zeropod", EIGHT, rest);
    assert!(with.warnings.is_empty(), "{:?}", with.warnings);
    let told: Vec<&str> = without.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(
        told,
        [
            "ecn",
            "flow_control",
            "irn",
            "priority",
            "switch",
            "transport.congestion_control",
            "transport.kind",
            "traffic[0].priority"
        ]
    );
    assert!(without.warnings.iter().all(|w| w.message.starts_with("had no effect: ")));
    assert_eq!(without.plan.flow_control, FlowControlParams::None(NoParams));
    assert!(with.plan.pods.is_none());
    let offered = |loaded: &Loaded| {
        let flows = loaded.plan.flows.iter();
        flows.map(|f| (f.src, f.dst, f.size, f.start)).collect::<Vec<_>>()
    };
    assert!(offered(&with).len() > 100 && offered(&with) == offered(&without));
    // Both know the failure, and no route of flows follows it in pods without buffers.
    assert_eq!(with.plan.faults.down, without.plan.faults.down);
    assert!(!with.plan.faults.reroutes.is_empty() && without.plan.faults.reroutes.is_empty());
}

/// Without other traffic, a flow's cells follow each other at 44.16 ns over links of 1 us: four in a pod,
/// even to a host of the same rack; six to another pod, and a core keeps each cell until it has arrived
/// completely.
#[test]
fn nothing_takes_less_than_its_cells_and_links() {
    for (dst, size, ideal) in [
        (1, 1, 4_044_160),
        (1, 512, 4_044_160),
        (15, 513, 4_088_320),
        (16, 1, 6_088_320),
        (127, 51_200, 6_000_000 + 101 * 44_160),
    ] {
        let flow =
            format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H{dst}\"\nsize = \"{size}B\"\n");
        assert_eq!(loaded("zeropod", EIGHT, &flow).plan.flows[0].ideal, ideal);
    }
}

#[test]
fn what_has_no_effect_is_named() {
    let told = |kind: &str, shape: &str, rest: &str| {
        let told = loaded(kind, shape, rest).warnings;
        told.into_iter().map(|w| (w.key, w.message)).collect::<Vec<_>>()
    };
    let pair = |key: &str, why: &str| (key.to_string(), format!("had no effect: {why}"));
    assert_eq!(
        told("pods", ONE, &format!("[zeropod]\ncells = 16\n{FLOW}")),
        [pair("zeropod", "topology.kind is not `zeropod`")]
    );
    let keys = "mice_over = \"exclusive-first\"\nentry = \"1B\"\ntop_k = 0\n\
                core_buffer = \"1MB\"\nbackpressure = 3\ncollision = \"both\"\noptimistic = 0\n\
                ack_timeout = \"1ms\"\nretry = \"1ms\"";
    assert_eq!(
        told("zeropod", ONE, &format!("[zeropod]\n{keys}\n{FLOW}")),
        [
            pair("zeropod.core_buffer", "one pod has no cores"),
            pair("zeropod.backpressure", "one pod has no cores"),
            pair("zeropod.mice_over", "no core is only for mice"),
            pair("zeropod.entry", "an RTS lists no destination"),
            pair("zeropod.collision", "every cell is sent with a grant"),
            pair("zeropod.ack_timeout", "it requires `acks`"),
            pair("zeropod.retry", "no link or scheduler fails"),
        ]
    );
    let keys = "scheduler_failure = [{ pod = 0, at = \"1ms\", takeover = \"1ms\" }]\n\
                scheduler_link = [{ switch = \"S0.0\", from = \"999us\" }, { switch = \"S0.0\", from = \"1ms\" }]";
    assert_eq!(
        told("zeropod", ONE, &format!("[zeropod]\n{keys}\n{FLOW}[run]\nduration = \"1ms\"\n")),
        [
            pair("zeropod.scheduler_failure[0]", "the run ends earlier"),
            pair("zeropod.scheduler_link[1]", "the run ends earlier"),
        ]
    );
}
