//! Queues by flow where links fail, come back, and lose frames.

use crate::common;

use common::{plan, run};
use proptest::prelude::*;
use std::fmt::Write;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{DropReason, Stop};

/// Every link once, as scenarios name it.
fn links(plan: &Plan) -> Vec<String> {
    let ports = 0..plan.topology.ports.len() as u32;
    ports.filter(|&p| p < plan.topology.ports[p as usize].peer).map(|p| plan.topology.port_name(p)).collect()
}

const FABRICS: [&str; 6] = [
    "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nlinks_per_pair = 2\nhost_link = {rate=\"100Gbps\", delay=\"500ns\"}\nfabric_link = {rate=\"40Gbps\", delay=\"1us\"}\n",
    "kind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"300ns\"}\n",
    "kind = \"fat-tree\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n",
    "kind = \"ndc\"\nn = 3\nk = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n",
    "kind = \"ndc\"\nn = 2\nk = 2\nlink = {rate=\"25Gbps\", delay=\"100ns\"}\n[routing]\nkind = \"shortest-path\"\n",
    "kind = \"line\"\nswitches = 3\nhosts_per_switch = 2\nlink = {rate=\"10Gbps\", delay=\"2us\"}\n",
];

/// One failure: which link, when (in ns), how long, how often, and whether the
/// link's first switch fails with it.
type Fault = (usize, u64, u64, u32, bool);

/// One loss: which link, of how many frames in a million, whether by bit errors.
type Loss = (usize, u32, bool);

fn faults(plan: &Plan, faults: &[Fault], losses: &[Loss]) -> String {
    let (links, mut text) = (links(plan), String::new());
    for &(which, at, length, times, whole) in faults {
        let link = &links[which % links.len()];
        let node = link.split(':').next().unwrap_or(link);
        let what = if whole && node.starts_with('S') {
            format!("switch = \"{node}\"")
        } else {
            format!("link = \"{link}\"")
        };
        let _ = writeln!(text, "[[failure]]\n{what}\nat = \"{at}ns\"\nuntil = \"{}ns\"", at + length);
        if times > 1 {
            let _ = writeln!(text, "every = \"{}ns\"\ntimes = {times}", 2 * length + 1);
        }
    }
    for &(which, rate, by_bit) in losses {
        let link = &links[which % links.len()];
        let what = if by_bit {
            format!("ber = {}\nkind = \"corruption\"", f64::from(rate) / 1e10)
        } else {
            format!("rate = {}", f64::from(rate) / 1e6)
        };
        let _ = writeln!(text, "[[loss]]\nlink = \"{link}\"\n{what}");
    }
    text
}

fn fault() -> impl Strategy<Value = Fault> {
    (0usize..200, prop_oneof![Just(0u64), 0u64..200_000], 1u64..80_000, 1u32..5, any::<bool>())
}

fn scheme() -> impl Strategy<Value = String> {
    // At 10 Gbit/s a shorter one is refused: it would run out before it can be repeated.
    let pause_time =
        prop_oneof![Just(String::new()), (2u64..200).prop_map(|us| format!("pause_time = \"{us}us\"\n"))];
    prop_oneof![
        // Room for arrivals while a pause is lost and not repeated yet.
        (1u64..60, 300u32..2_000).prop_map(|(xoff, quanta)| format!(
            "scheme = \"pfc\"\nxoff = \"{xoff}kB\"\nheadroom = \"2MB\"\nquanta = {quanta}\n"
        )),
        Just("scheme = \"none\"\n".to_string()),
        (2u32..40, 0u32..4, 0u64..3_000, any::<bool>(), 0u64..2_000, pause_time.clone()).prop_map(
            |(queues, keep, interval, acks, response, pause)| {
                let acks = if acks { "queues" } else { "control" };
                format!(
                    "scheme = \"bfc\"\nqueues = {queues}\nkeep = {keep}\nresume_interval = \"{interval}ns\"\n\
                     acks = \"{acks}\"\nresponse_time = \"{response}ns\"\n{pause}"
                )
            }
        ),
        (1u64..60, 0u64..60, 0u64..2_000, pause_time).prop_map(|(xoff, gap, response, pause)| format!(
            "scheme = \"per-flow-queue\"\nxoff = \"{xoff}kB\"\nxon = \"{}kB\"\nresponse_time = \"{response}ns\"\n{pause}",
            xoff.saturating_sub(gap)
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 60 / 256))]
    /// For any failures, flaps and losses of frames: packets are conserved and nothing is delivered twice
    /// (`run` asserts both); when all links are up again, everything completes, unless the fabric deadlocks;
    /// and threads change nothing at all.
    #[test]
    fn everything_arrives_once_and_threads_change_nothing(
        fabric in 0usize..FABRICS.len(), scheme in scheme(), irn in any::<bool>(),
        broken in prop::collection::vec(fault(), 0..4),
        lossy in prop::collection::vec((0usize..200, 1u32..50_000, any::<bool>()), 0..3),
        follow in 0u64..60_000, seed in 0u64..1_000, threads in 2usize..4, small in any::<bool>(),
        blocking in any::<bool>(), two in any::<bool>(),
    ) {
        let (head, routing) = FABRICS[fabric].split_once("[routing]\n").unwrap_or((FABRICS[fabric], ""));
        let transport = if irn { "kind = \"irn\"\n" } else { "rto = \"200us\"\n" };
        let buffer = if small && !scheme.contains("pfc") { "100kB" } else { "100MB" };
        let text = format!(
            "[topology]\n{head}[routing]\n{routing}reconvergence = \"{follow}ns\"\n[switch]\nbuffer = \"{buffer}\"\n[host]\nbuffer = \"{buffer}\"\n\
             [flow_control]\n{scheme}[transport]\n{transport}[run]\nseed = {seed}\n[measure]\nblocking = {blocking}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"100kB\"\nto = \"H0\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"60kB\"\npriority = {}\n",
            if two { 2 } else { 3 },
        );
        let intact = plan(&text);
        let plan = plan(&(text + &faults(&intact, &broken, &lossy)));
        let outcome = run(&plan);
        if outcome.deadlock.is_none() {
            prop_assert!(outcome.flows.iter().all(|f| f.completed.is_some()));
        }
        if buffer == "100MB" {
            prop_assert!(outcome.drops.iter().all(|d| !d.reason.for_want_of_room()), "{:?}", outcome.drops);
        }
        prop_assert_eq!(&xoff_sim::run_on(&plan, threads, &mut |_| true), &outcome);
    }
}

/// Hosts at one switch; a link that four hosts fill four times over; then two
/// equal links, the second of which comes up at 60 us. Half of the flows go over
/// to it, with packets of theirs waiting for the link before: which are to stay
/// in order, since nothing else can reorder them.
#[test]
fn packets_stay_in_order_at_a_port_that_their_new_route_has_too() {
    let hosts: Vec<String> = (0..8).map(|i| format!("A{i}")).collect();
    let mut links: Vec<String> = hosts
        .iter()
        .enumerate()
        .map(|(i, h)| {
            format!("{{a=\"{h}\", b=\"S{}\", rate=\"100Gbps\", delay=\"1us\"}}", if i < 4 { 0 } else { 2 })
        })
        .collect();
    for (a, b) in [("S0", "S1"), ("S1", "S2"), ("S1", "S2")] {
        links.push(format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"1us\"}}"));
    }
    for scheme in ["per-flow-queue", "bfc"] {
        let mut text = format!(
            "[topology]\nkind = \"custom\"\nhosts = {hosts:?}\nswitches = [\"S0\", \"S1\", \"S2\"]\nlinks = [{}]\n\
             [switch]\nbuffer = \"64MB\"\n[flow_control]\nscheme = \"{scheme}\"\n\
             [[failure]]\nlink = \"S1:2\"\nat = \"0us\"\nuntil = \"60us\"\n[routing]\nreconvergence = \"1us\"\n",
            links.join(", ")
        );
        for i in 0..8 {
            let (src, dst) = (i % 4, 4 + (i + i / 4) % 4);
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"A{src}\"\ndst = \"A{dst}\"\nsize = \"500kB\"\n"
            );
        }
        let plan = plan(&text);
        let moved = plan.faults.tables[0].flows.len();
        assert!((1..8).contains(&moved), "some flows change their route: {moved}");
        let outcome = run(&plan);
        assert_eq!((outcome.stop, outcome.drops.len()), (Stop::AllDone, 0), "{scheme}");
        assert!(outcome.flows.iter().all(|f| f.out_of_order == 0 && f.retransmitted == 0), "{scheme}");
        assert!(outcome.pauses.len() > 8, "packets waited: {}", outcome.pauses.len());
        let second = plan.topology.nodes[plan.topology.find("S1").expect("S1") as usize].ports[2];
        assert!(outcome.ports[second as usize].data_packets > 1_000, "the second link is used");
    }
}

/// One flow over a slower link. Of the frames that pause and resume it, some are
/// lost: a pause whose resume is lost ends after its time, to the picosecond.
#[test]
fn a_lost_resume_pauses_for_its_time_and_no_longer() {
    for scheme in ["per-flow-queue\"\nxoff = \"10kB\"\nxon = \"5kB", "bfc\"\nhop_rtt = \"1us"] {
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"S\"]\nlinks = [\
             {{a=\"A\", b=\"S\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"S\", b=\"B\", rate=\"50Gbps\", delay=\"1us\"}}]\n\
             [flow_control]\nscheme = \"{scheme}\"\npause_time = \"40us\"\n[switch]\nbuffer = \"64MB\"\n[transport]\nrto = \"1s\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"5MB\"\n\
             [[loss]]\nlink = \"A-S\"\nfrom = \"S\"\nrate = 0.2\n"
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(outcome.drops.iter().all(|d| d.reason == DropReason::FrameLost));
        assert_eq!(outcome.flows[0].retransmitted, 0, "ACKs and pauses alone are lost");
        let time = 40_000_000;
        let lasted: Vec<u64> = outcome.pauses.iter().map(|p| p.until.map_or(0, |u| u - p.from)).collect();
        // Usually the packets at the switch are sent before any repetition. After the loss of a pause there
        // are more of them, and the next pause is longer.
        let whole = lasted.iter().filter(|&&t| t == time).count();
        assert!(lasted.iter().all(|&t| t < 5 * time), "{scheme}: {lasted:?}");
        // A fifth of resumes are lost: of n pauses n/5, within five deviations.
        let n = lasted.len() as f64;
        assert!(
            n > 20.0 && (whole as f64 - n / 5.0).abs() < 5.0 * (n * 0.16).sqrt(),
            "{scheme}: {whole} of {n}"
        );
    }
}

/// A link fails while the flows over it pause their senders' queues: no queue stays paused, neither during
/// the failure nor after it.
#[test]
fn pauses_of_a_dead_link_end() {
    for scheme in ["per-flow-queue", "bfc", "bfc\"\nresume_interval = \"2us"] {
        let mut text = format!(
            "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 4\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nscheme = \"{scheme}\"\npause_time = \"1s\"\n[switch]\nbuffer = \"64MB\"\n[transport]\nrto = \"100us\"\n\
             [[failure]]\nlink = \"S0.0-S0.1\"\nat = \"50us\"\nuntil = \"150us\"\n"
        );
        for src in [0, 1, 2, 3, 5, 6, 7] {
            text +=
                &format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H4\"\nsize = \"1MB\"\n");
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        // With pauses of a second, a queue that stayed paused would be found here.
        assert_eq!(outcome.stop, Stop::AllDone);
        assert!(outcome.end < 2_000_000_000, "{scheme}: {} ps", outcome.end);
        let between = |p: u32| plan.topology.nodes[plan.topology.neighbour(p) as usize].name.starts_with('S');
        let (from, until) = (50_000_000, 150_000_000);
        let on_it: Vec<_> = outcome
            .pauses
            .iter()
            .filter(|p| {
                between(p.port)
                    && plan.topology.ports[p.port as usize].node == plan.topology.find("S0.0").expect("S0.0")
            })
            .collect();
        assert!(
            on_it.iter().any(|p| p.from < from && p.until == Some(from)),
            "{scheme}: a pause ends with its link"
        );
        assert!(on_it.iter().all(|p| p.until.is_none_or(|u| u <= from) || p.from >= until), "{scheme}");
    }
}

/// A link fails while packets are in flight, and some come back through the host that has sent them. There a
/// flow has two queues then, its queue pair and that of its packets; a frame that stops both is one pause.
#[test]
fn a_flow_that_comes_back_through_its_host_is_paused_once() {
    let plan = plan(
        "[flow_control]\nscheme = \"per-flow-queue\"\n\
         [[failure]]\nat = \"1ps\"\nlink = \"H3-S0.1\"\n\
         [topology]\nkind = \"rail-only\"\nn = 3\n\
         domain_link = { delay = \"1ns\", rate = \"1Gbps\" }\nrail_link = { delay = \"1ns\", rate = \"1Gbps\" }\n\
         [[traffic]]\nkind = \"moe\"\nexperts = 1\ntoken_size = \"1B\"\ntokens = 3\n\
         [transport]\nmtu = \"1B\"\n",
    );
    let outcome = run(&plan);
    assert!(outcome.flows.iter().all(|flow| flow.completed.is_some()));
    let mut ends = std::collections::BTreeMap::new();
    for pause in &outcome.pauses {
        let until = ends.insert((pause.port, pause.lane, pause.queue), pause.until.unwrap_or(outcome.end));
        assert!(until.is_none_or(|until| until <= pause.from), "{pause:?}");
    }
    assert!(outcome.pauses.len() > 10, "{}", outcome.pauses.len());
}
