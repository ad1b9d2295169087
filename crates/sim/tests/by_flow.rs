//! Queues by flow: BFC and per-flow queues over whole fabrics.

use crate::common;

use common::{fcts, plan, plan_with, run};
use proptest::prelude::*;
use std::collections::BTreeMap;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Stop};

const FABRIC: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
     host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"100Gbps\", delay=\"1us\"}\n\
     [switch]\nbuffer = \"64MB\"\n";

/// Everything completed, nothing was lost, repeated or out of order, and every
/// pause that ended began before.
fn lossless_and_in_order(plan: &Plan, outcome: &Outcome) {
    assert_eq!(outcome.stop, Stop::AllDone);
    assert_eq!(outcome.drops, []);
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        assert_eq!((result.delivered_bytes, result.out_of_order, result.nacks), (flow.size, 0, 0));
        assert_eq!((result.retransmitted, result.timeouts), (0, 0));
    }
    for pause in &outcome.pauses {
        assert!(pause.until.is_none_or(|until| until > pause.from));
        assert!(pause.queue.is_some());
        assert_eq!(plan.topology.ports[pause.port as usize].peer, pause.cause);
    }
    let frames =
        |get: &dyn Fn(&xoff_sim::outcome::PortOutcome) -> u64| outcome.ports.iter().map(get).sum::<u64>();
    let (pauses, resumes) = (frames(&|p| p.pause_frames), frames(&|p| p.resume_frames));
    // Frames in flight at the end had no effect yet.
    let ended = outcome.pauses.iter().filter(|p| p.until.is_some()).count() as u64;
    assert!(pauses >= outcome.pauses.len() as u64 && resumes >= ended, "{pauses} {resumes}");
    assert!(pauses - resumes <= pauses.min(outcome.pauses.len() as u64 - ended) + 64);
}

/// A random fabric: a tree of switches with hosts on them.
fn fabric() -> impl Strategy<Value = String> {
    let rate = || prop::sample::select(vec![25u64, 40, 100, 400]);
    (
        prop::collection::vec((0usize..8, rate(), 0u64..4_000), 0..4),
        prop::collection::vec((0usize..8, rate(), 0u64..2_000), 3..9),
    )
        .prop_map(|(tree, hosts)| {
            let mut links = Vec::new();
            let mut link = |a: String, b: String, rate: u64, delay: u64| {
                links.push(format!("{{a=\"{a}\", b=\"{b}\", rate=\"{rate}Gbps\", delay=\"{delay}ns\"}}"));
            };
            for (i, &(parent, rate, delay)) in tree.iter().enumerate() {
                link(format!("S{}", i + 1), format!("S{}", parent % (i + 1)), rate, delay);
            }
            for (i, &(at, rate, delay)) in hosts.iter().enumerate() {
                link(format!("A{i}"), format!("S{}", at % (tree.len() + 1)), rate, delay);
            }
            let names = |p, n| (0..n).map(|i| format!("\"{p}{i}\"")).collect::<Vec<_>>().join(", ");
            format!(
                "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [{}]\n[switch]\nbuffer = \"1GB\"\n[host]\nbuffer = \"1GB\"\n",
                names("A", hosts.len()),
                names("S", tree.len() + 1),
                links.join(",\n  ")
            )
        })
}

fn scheme() -> impl Strategy<Value = String> {
    prop_oneof![
        (2u32..40, prop::option::of(1u32..80), 0u32..4, any::<bool>(), 0u64..3_000, any::<bool>(), 1u32..20_000, 0u64..2_000, prop::option::of(0u64..9_000))
            .prop_map(|(queues, own, keep, reuse, interval, acks, flows, response, hop)| {
                let acks = if acks { "queues" } else { "control" };
                let own = own.map_or(String::new(), |n| format!("host_queues = {n}\n"));
                let hop = hop.map_or(String::new(), |h| format!("hop_rtt = \"{h}ns\"\n"));
                format!(
                    "scheme = \"bfc\"\nqueues = {queues}\n{own}keep = {keep}\nreuse_kept = {reuse}\nresume_interval = \"{interval}ns\"\n\
                     acks = \"{acks}\"\nvirtual_flows = {flows}\nresponse_time = \"{response}ns\"\n{hop}"
                )
            }),
        (1u64..60, 0u64..60, 0u64..2_000).prop_map(|(xoff, gap, response)| format!(
            "scheme = \"per-flow-queue\"\nxoff = \"{xoff}kB\"\nxon = \"{}kB\"\nresponse_time = \"{response}ns\"\n",
            xoff.saturating_sub(gap)
        )),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 150 / 256))]
    /// Trees have no cyclic dependency, so that everything completes; with ample
    /// buffers nothing is lost, and a flow's packets stay in order.
    #[test]
    fn random_fabrics_lose_and_reorder_nothing(
        fabric in fabric(), scheme in scheme(), seed in 0u64..10_000, fan_in in 2u32..8, burst in 1u64..300,
        mtu in 200u64..4_000, every in 1u32..4, window in prop::option::of(3u64..60), two in any::<bool>(),
        stall in any::<bool>(), paced in any::<bool>(),
    ) {
        let n = fabric.matches("a=\"A").count() as u32;
        let mut text = fabric + &format!(
            "[flow_control]\n{scheme}[transport]\nmtu = \"{mtu}B\"\nack_every = {every}\nrto = \"1s\"\n{}\
             [run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"{burst}kB\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"{}kB\"\npriority = {}\n{}",
            window.map_or(String::new(), |w| format!("window = \"{}B\"\n", w * mtu)),
            fan_in.min(n - 1), burst / 2 + 1, if two { 5 } else { 3 }, if paced { "[[traffic]]\nkind = \"flow\"\nsrc = \"A1\"\ndst = \"A2\"\nsize = \"50kB\"\nrate = \"7Gbps\"\n" } else { "" },
        );
        if stall {
            text += "[[slow_receiver]]\nhost = \"A0\"\nrate = \"20Gbps\"\nstall_from = \"5us\"\nstall_until = \"90us\"\n";
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        lossless_and_in_order(&plan, &outcome);
    }
}

/// Eight long flows into one host, and one that shares the leaf's uplink with
/// them but goes elsewhere.
fn victim(control: &str) -> (Plan, Outcome) {
    let mut text = format!("{FABRIC}[flow_control]\n{control}\n");
    for src in 0..8 {
        text += &format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H8\"\nsize = \"1MB\"\n");
    }
    text += "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H9\"\nsize = \"100kB\"\nstart = \"30us\"\n";
    let plan = plan(&text);
    let outcome = run(&plan);
    lossless_and_in_order(&plan, &outcome);
    (plan, outcome)
}

#[test]
fn few_queues_collide_and_many_do_not() {
    // The numbers of the queues that are paused show which ones are in use.
    let paused = |control: &str| {
        let (plan, outcome) = victim(control);
        let mut queues: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for pause in &outcome.pauses {
            let numbers = queues.entry(pause.port).or_default();
            let number = pause.queue.expect("by queue");
            if !numbers.contains(&number) {
                numbers.push(number);
            }
        }
        let last = outcome.flows.last().and_then(|f| f.completed).expect("completed");
        (queues.values().map(Vec::len).max().unwrap_or(0), last - plan.flows.last().expect("nine").start)
    };
    let (in_use, alone) = paused("scheme = \"per-flow-queue\"");
    assert!(in_use >= 2, "flows pause by themselves: {in_use}");
    let (in_use, one) = paused("scheme = \"bfc\"\nqueues = 2");
    assert_eq!(in_use, 1, "all share the only queue");
    let (in_use, many) = paused("scheme = \"bfc\"\nqueues = 64");
    assert!(in_use >= 2, "{in_use}");
    // With a separate queue the victim is never paused and needs only its share of the NIC; after the
    // others it waits for the incast.
    assert!(many < 2 * alone && one > 4 * alone, "{alone} {many} {one}");
}

#[test]
fn hash_collisions_of_virtual_flows_share_a_queue_too() {
    let (_, one) = victim("scheme = \"bfc\"\nqueues = 64\nvirtual_flows = 1");
    let (_, many) = victim("scheme = \"bfc\"\nqueues = 64");
    let last = |o: &Outcome| o.flows.last().and_then(|f| f.completed).expect("completed");
    assert!(last(&one) > 2 * last(&many));
}

/// Four long flows into one host, and one from one of their hosts to another host. A switch has one queue for
/// data, and only what hosts have differs.
#[test]
fn a_host_pauses_queue_pairs_by_themselves_if_it_has_a_queue_for_each() {
    let fct = |own: u32, flows: u32| {
        let mut text = format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 6\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [flow_control]\nscheme = \"bfc\"\nqueues = 2\nhost_queues = {own}\n"
        );
        for src in (0..4).chain(std::iter::repeat_n(0, flows as usize - 1)) {
            text +=
                &format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H4\"\nsize = \"1MB\"\n");
        }
        text +=
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H5\"\nsize = \"100kB\"\nstart = \"50us\"\n";
        let plan = plan(&text);
        let outcome = run(&plan);
        lossless_and_in_order(&plan, &outcome);
        fcts(&plan, &outcome).pop().expect("the last flow")
    };
    // 106 packets of 1 kB, at most as many of each other flow that may send, and two round trips.
    let packets = |n: u64| n * 106 * 84_960;
    assert!(fct(64, 1) <= packets(2) + 8_000_000, "{}", fct(64, 1));
    assert!(fct(64, 3) <= packets(4) + 8_000_000, "{}", fct(64, 3));
    // With one queue it waits as long as the flow before it, which has a quarter of the receiver's link.
    assert!(fct(1, 1) > packets(3), "{}", fct(1, 1));
    // The same as the switches', if not given.
    let text = |own: &str| {
        format!(
            "{FABRIC}[flow_control]\nscheme = \"bfc\"\nqueues = 9\n{own}[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H9\"\nsize = \"1kB\"\n"
        )
    };
    assert_eq!(plan(&text("")).flow_control, plan(&text("host_queues = 8\n")).flow_control);
}

/// Eight flows with queues of their own, through one port.
#[test]
fn leaves_share_a_port_fairly() {
    let ends = |control: &str| {
        let mut text = format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 9\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n[flow_control]\n{control}\n"
        );
        for src in 0..8 {
            text +=
                &format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{src}\"\ndst = \"H8\"\nsize = \"1MB\"\n");
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        lossless_and_in_order(&plan, &outcome);
        assert!(outcome.pauses.len() > 8);
        let fcts = fcts(&plan, &outcome);
        (*fcts.iter().min().expect("eight"), *fcts.iter().max().expect("eight"))
    };
    let packet = 84_960;
    // A hop BDP in each queue: the link is busy from the first packet to the last (and the propagation in
    // both directions), and the flows end in one round.
    let (first, last) = ends("scheme = \"per-flow-queue\"");
    assert!(last - first <= 8 * packet && last < 8_000 * packet + 4_300_000, "{first} {last}");
    // BFC's threshold leaves out the serialisation in the hop's round trip, so queues run empty now and then.
    let (first, last) = ends("scheme = \"bfc\"\nqueues = 64");
    assert!(last - first <= last / 20 && last < 8_000 * packet * 11 / 10, "{first} {last}");
}

/// The pause of a flow, worked out by hand: two flows of one link's rate share
/// another one of that rate.
#[test]
fn a_flow_is_paused_when_its_queue_reaches_the_threshold() {
    let text = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
        [flow_control]\nscheme = \"per-flow-queue\"\nxoff = \"10kB\"\nxon = \"5kB\"\nresponse_time = \"250ns\"\n\
        [transport]\nmtu = \"938B\"\nheader = \"62B\"\n\
        [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"500kB\"\n\
        [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"500kB\"\n";
    let plan = plan(text);
    let outcome = run(&plan);
    lossless_and_in_order(&plan, &outcome);
    // Packets of 1000 B take 80 ns and arrive in pairs at 1080 + 80 i ns, H0's
    // first. The switch sends one packet per 80 ns, by round robin of the flows. So a
    // queue grows by one packet in two arrivals: arrival i finds (i + 1) − ⌈(i + 1)/2⌉
    // packets or one more. Of each pair, H0's packet is sent first, immediately.
    let arrival = |i: u64| 1_080_000 + 80_000 * i;
    let queued = |flow: u64, i: u64| {
        // Sent before or at the arrival of packet i: one at 1080 ns (flow 0), then alternating.
        let sent = (0..=i).filter(|s| s % 2 == flow).count() as u64;
        let sent = if flow == 0 { sent } else { (0..=i).filter(|s| s % 2 == 1).count() as u64 };
        i + 1 - sent
    };
    for flow in 0..2u64 {
        // Decisions of an instant come before its arrivals: the packet that is sent at arrival i was chosen
        // before it arrived.
        let first = (0..100).find(|&i| queued(flow, i) >= 10).expect("it grows");
        let frame = 5_120; // 64 B at 100 Gbit/s
        let nic = plan.topology.ports[plan.hops[plan.flows[flow as usize].path as usize] as usize].peer;
        let pause = outcome.pauses.iter().find(|p| p.cause == nic).expect("paused");
        assert_eq!(pause.queue, Some(flow as u32));
        // No ACK is on the wire towards the senders before 1080 + 80 + 1080 ns,
        // and the pause is decided before that.
        assert_eq!(pause.from, arrival(first) + frame + 1_000_000 + 250_000, "flow {flow}, packet {first}");
    }
}

const RING: &str = "[topology]\nkind = \"ring\"\nswitches = 3\nhosts_per_switch = 1\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n";

/// Three flows over two links each around a ring of three.
fn ring(control: &str) -> (Plan, Outcome) {
    let mut text = format!(
        "{RING}[switch]\nbuffer = \"64MB\"\n[flow_control]\n{control}\n[transport]\nrto = \"100ms\"\n"
    );
    for i in 0..3 {
        let (b, c) = ((i + 1) % 3, (i + 2) % 3);
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{c}\"\nsize = \"10MB\"\n\
             path = [\"H{i}\", \"S0.{i}\", \"S0.{b}\", \"S0.{c}\", \"H{c}\"]\n"
        );
    }
    let plan = plan(&text);
    let outcome = run(&plan);
    (plan, outcome)
}

#[test]
fn colliding_flows_deadlock_around_a_ring_and_separate_queues_do_not() {
    let (plan, outcome) = ring("scheme = \"bfc\"\nqueues = 2");
    assert_eq!(outcome.stop, Stop::Starved);
    let deadlock = outcome.deadlock.expect("one queue for all");
    assert_eq!(deadlock.cycle.len(), 3);
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % 3];
        assert_eq!(plan.topology.neighbour(held.port), plan.topology.ports[next.port as usize].node);
        assert!(!held.flows.is_empty() && held.bytes > 0);
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port).expect("paused");
        assert_eq!(last.until, None);
        assert!(deadlock.closed >= last.from && deadlock.closed <= deadlock.seen);
    }
    assert!(!outcome.waiting.is_empty() && outcome.waiting.iter().all(|w| w.root.is_none()));
    for control in ["scheme = \"bfc\"\nqueues = 16", "scheme = \"per-flow-queue\""] {
        let (plan, outcome) = ring(control);
        assert!(outcome.deadlock.is_none(), "{control}");
        lossless_and_in_order(&plan, &outcome);
        assert!(!outcome.pauses.is_empty(), "{control}: pauses are what could have locked it up");
    }
}

/// A host that stops reading holds the queues of its flows, and no deadlock is seen.
#[test]
fn flows_that_wait_for_a_host_that_does_not_read_are_reported() {
    let text = format!(
        "{FABRIC}[flow_control]\nscheme = \"bfc\"\n[run]\nduration = \"400us\"\n[host]\nbuffer = \"64MB\"\n\
         [[slow_receiver]]\nhost = \"H8\"\nstall_from = \"1us\"\nstall_until = \"1s\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H8\"\nsize = \"5MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H9\"\nsize = \"1MB\"\n"
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    assert!(outcome.deadlock.is_none());
    let host = plan.topology.find("H8").expect("H8");
    assert!(outcome.waiting.len() >= 2, "{:?}", outcome.waiting);
    assert!(outcome.waiting.iter().all(|w| w.root == Some(host)));
    assert!(outcome.flows[1].completed.is_some(), "the other flow does not wait");
}

/// Without room there is loss: no buffer is reserved for packets that arrive after a pause.
#[test]
fn a_small_buffer_loses_packets() {
    for scheme in ["bfc", "per-flow-queue"] {
        let text = format!(
            "{FABRIC}[flow_control]\nscheme = \"{scheme}\"\n[[traffic]]\nkind = \"incast\"\nfan_in = 11\nsize = \"1MB\"\n"
        );
        let outcome = run(&plan_with(&text, &[("switch.buffer", "60kB")]));
        assert!(!outcome.drops.is_empty() && outcome.drops.iter().all(|d| !d.lossless), "{scheme}");
        assert_eq!(outcome.stop, Stop::AllDone, "go-back-N repeats them");
    }
}

/// One frame that stops a queue is one pause, with any load balancing and with changes of routes: no pause of
/// a queue begins during another one.
#[test]
fn a_pause_of_a_queue_is_recorded_once() {
    let failure = "[[failure]]\nlink = \"S0.0-S1.0\"\nat = \"20us\"\nuntil = \"60us\"\n";
    for (balancing, failure) in [
        ("ecmp", ""),
        ("ecmp", failure),
        ("spray", ""),
        ("spray", failure),
        ("drill", ""),
        ("drill", failure),
        ("plb", ""),
        ("reps", ""),
    ] {
        for scheme in ["per-flow-queue", "bfc"] {
            let text = format!(
                "{FABRIC}[flow_control]\nscheme = \"{scheme}\"\n[routing]\nload_balancing = \"{balancing}\"\n\
                 [transport]\nrto = \"1s\"\n{failure}\
                 [[traffic]]\nkind = \"incast\"\nfan_in = 6\nto = \"H11\"\nsize = \"300kB\"\n"
            );
            let plan = plan(&text);
            let outcome = run(&plan);
            let mut pauses: Vec<_> = outcome.pauses.iter().collect();
            pauses.sort_by_key(|p| (p.port, p.lane, p.queue, p.from));
            assert!(pauses.len() > 6, "{scheme} {balancing}: {} pauses", pauses.len());
            for pair in pauses.windows(2) {
                let same = |p: &xoff_sim::outcome::Pause| (p.port, p.lane, p.queue);
                let apart = pair[0].until.is_some_and(|until| until <= pair[1].from);
                assert!(same(pair[0]) != same(pair[1]) || apart, "{scheme} {balancing}: {pair:?}");
            }
            let frames: u64 = outcome.ports.iter().map(|p| p.pause_frames).sum();
            let resumes: u64 = outcome.ports.iter().map(|p| p.resume_frames).sum();
            let ended = pauses.iter().filter(|p| p.until.is_some()).count() as u64;
            assert!(frames >= pauses.len() as u64, "{scheme} {balancing}: {frames}");
            assert!(!failure.is_empty() || resumes >= ended, "{scheme} {balancing}: {resumes} {ended}");
        }
    }
}
