//! DCQCN in runs: an exact rate trace, fairness, and notifications on the wire.

use crate::common;

use common::{plan, plan_with, run};
use std::collections::VecDeque;
use xoff_sim::outcome::{Outcome, Quantity};

/// Serialisation of a packet of 1,052 B and of an ACK of 60 B at 100 Gbit/s; a link's delay.
const S: u64 = 84_160;
const ACK: u64 = 4_800;
const D: u64 = 1_000_000;

/// The sampled rates of a flow, with their times.
fn rates(outcome: &Outcome, flow: u32) -> Vec<(u64, u64)> {
    let of_flow = outcome.series.iter().filter(|s| s.what == Quantity::Rate(flow));
    of_flow.map(|s| (s.at, s.value)).collect()
}

/// Two senders at line rate into one port, the second from `step` on. Returns the time at which the first
/// flow's first packet that finds more than `k` bytes queued has been acknowledged, by a queue written out
/// packet by packet.
fn first_notification(step: u64, k: u64) -> u64 {
    // Arrivals at the switch; at one time the port of the first sender comes first.
    let mut arrivals: Vec<(u64, usize)> = (1..5_000).map(|i| (i * S + D, 0)).collect();
    arrivals.extend((1..5_000).map(|i| (step + i * S + D, 1)));
    arrivals.sort_unstable();
    let (mut queue, mut free): (VecDeque<u64>, u64) = (VecDeque::new(), 0);
    for (at, flow) in arrivals {
        // Packets that have begun to leave by now do not wait any more.
        while queue.front().is_some_and(|&begin| begin <= at) {
            queue.pop_front();
        }
        let begin = free.max(at);
        free = begin + S;
        if flow == 0 && queue.len() as u64 * 1_052 > k {
            // To the receiver, and the ACK back over two links.
            return begin + S + D + 2 * (ACK + D);
        }
        queue.push_back(begin);
    }
    unreachable!("the queue grows")
}

/// A step of load: the second flow begins while the first has the line. With K_min = K_max the marking is not
/// random: from the first ACK that reports a mark, at T, each ACK does. So α stays 1 (each update of 1 us has
/// seen one), and the rate is halved at T + 4 us, T + 8 us, T + 12 us. Later, without marks, the first
/// increase comes 300 us after the last decrease, half of the distance to the target, which is still the line
/// (no increase came between the decreases); two more increases halve the distance again.
#[test]
fn the_rate_after_a_step_of_load_is_that_of_the_equations() {
    let (step, k) = (100_000_000, 20_000);
    let plan = plan(&format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\nmtu = \"1000B\"\nheader = \"52B\"\nack = \"60B\"\ncongestion_control = \"dcqcn\"\n\
         [ecn]\nk_min = \"{k}B\"\nk_max = \"{k}B\"\np_max = 1.0\n[measure]\ninterval = \"100ns\"\nflows = [0]\n\
         [run]\nduration = \"1500us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"100MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"300kB\"\nstart = \"{step}ps\"\n"
    ));
    let outcome = run(&plan);
    let rates = rates(&outcome, 0);
    let line = 100_000_000_000u64;
    let notified = first_notification(step, k);
    // A sample shows the state before the events of its time.
    let expected = |at: u64| match at.checked_sub(notified + 4 * D) {
        None => line,
        Some(since) => line >> (since / (4 * D) + 1).min(3),
    };
    for &(at, rate) in rates.iter().filter(|r| r.0 < notified + 16 * D) {
        assert_eq!(rate, expected(at), "at {at} ps, notified at {notified} ps");
    }
    let changes: Vec<_> = rates.windows(2).filter(|w| w[0].1 != w[1].1).map(|w| w[1]).collect();
    let first_rise = changes.windows(2).position(|w| w[1].1 > w[0].1).expect("it recovers");
    let (last_cut, mut rate) = changes[first_rise];
    for (i, &(at, risen)) in changes[first_rise + 1..].iter().take(3).enumerate() {
        // Samples are 100 ns apart; whole bits per second are shown.
        assert!(at.abs_diff(last_cut + (i as u64 + 1) * 300 * D) <= 100_000, "{at} after {last_cut}");
        assert!(risen.abs_diff(rate / 2 + line / 2) <= 1, "{risen} after {rate}");
        rate = risen;
    }
    assert!(outcome.flows[0].cnps > 20 && outcome.flows[0].cnps <= outcome.flows[0].marked);
}

/// N long flows share a bottleneck, with the field's defaults. Jain's index of
/// the payload that each got through in the last third, and all of it together.
fn share(n: usize) -> (f64, f64) {
    let mut text = format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [transport]\nmtu = \"4000B\"\ncongestion_control = \"dcqcn\"\n[run]\nduration = \"60ms\"\n[measure]\ninterval = \"1ms\"\n",
        n + 1
    );
    for i in 0..n {
        text +=
            &format!("[[traffic]]\nkind = \"flow\"\nsrc = \"H{}\"\ndst = \"H0\"\nsize = \"1GB\"\n", i + 1);
    }
    let plan = plan(&text);
    let outcome = run(&plan);
    let mut goodput = vec![0.0; n];
    for s in outcome.series.iter().filter(|s| s.at > 40_000 * D) {
        if let Quantity::Goodput(class) = s.what {
            goodput[usize::from(class)] += s.value as f64 / 20.0;
        }
    }
    let (sum, squares) = goodput.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
    (sum * sum / (n as f64 * squares), sum / 1e9)
}

#[test]
fn long_flows_share_fairly() {
    for n in [2, 4, 8, 16] {
        let (jain, gbps) = share(n);
        println!("{n} flows: Jain {jain:.4}, {gbps:.1} Gbit/s of payload together");
        assert!(jain >= 0.99, "{n} flows: Jain {jain}");
        assert!(gbps > 80.0, "{n} flows: {gbps} Gbit/s");
    }
}

/// The paper's set: CNPs are packets, at most one in 50 us for each flow.
#[test]
fn notifications_are_packets_that_keep_their_distance() {
    const INCAST: &str = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 5\nlink = { rate = \"40Gbps\", delay = \"1us\" }\n\
        [transport]\ncongestion_control = \"dcqcn\"\n[dcqcn]\npreset = \"paper\"\n\
        [[traffic]]\nkind = \"incast\"\nfan_in = 4\nto = \"H0\"\nsize = \"2MB\"\n";
    let plan = plan(INCAST);
    let outcome = run(&plan);
    let mut cnps = 0;
    for (flow, r) in plan.flows.iter().zip(&outcome.flows) {
        assert!(r.cnps > 3, "{r:?}");
        assert!(r.cnps <= (r.completed.unwrap() - flow.start) / (50 * D) + 1, "{r:?}");
        cnps += r.cnps;
    }
    // Every data packet, its ACK and every CNP cross two links, and nothing else does.
    let c = outcome.counters;
    assert_eq!(c.packet_hops, 2 * (2 * c.sent + cnps), "{c:?}");
    // Their own priority: a lane more, and the same number of packets or so.
    let own = plan_with(INCAST, &[("dcqcn.cnp_priority", "6"), ("dcqcn.cnp_size", "80B")]);
    assert_eq!(own.lanes.len(), 2);
    assert!(run(&own).flows.iter().all(|r| r.cnps > 3));
}

/// Without a mark DCQCN changes nothing, to the picosecond; and measuring rates
/// changes nothing either.
#[test]
fn unmarked_flows_are_as_without() {
    const TWO: &str = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
        [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[run]\nduration = \"1ms\"\n";
    let without = run(&plan(TWO));
    let dcqcn = ("transport.congestion_control", "dcqcn");
    let with = run(&plan_with(TWO, &[dcqcn]));
    assert_eq!(without.flows, with.flows);
    let marked = [dcqcn, ("ecn", "{ k_min = \"3kB\", k_max = \"9kB\", p_max = 0.5 }")];
    let incast = TWO.replace("kind = \"permutation\"", "kind = \"incast\"\nfan_in = 3");
    let bare = run(&plan_with(&incast, &marked));
    let measured = run(&plan_with(&incast, &[marked[0], marked[1], ("measure.flows", "[0, 1]")]));
    assert!(bare.flows.iter().any(|f| f.cnps > 0));
    assert_eq!((bare.flows, bare.counters), (measured.flows, measured.counters));
}

/// The delivered bytes of a flow are the sum of the bytes delivered in each interval, also without a
/// congestion control; and in the end all of them.
#[test]
fn arrivals_are_sampled() {
    let flow = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
        [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n[measure]\nflows = [0]\ninterval = \"8us\"\n\
        [run]\nduration = \"160us\"\n";
    let outcome = run(&plan(flow));
    let of = |what| outcome.series.iter().filter(move |s| s.what == what).map(|s| s.value);
    let (sequence, goodput) = (of(Quantity::Sequence(0)), of(Quantity::FlowGoodput(0)));
    let mut sum = 0;
    for (sequence, goodput) in sequence.zip(goodput) {
        sum += goodput / 1_000_000;
        assert_eq!(sequence, sum, "8 us at so many bits per second are a millionth of it in bytes");
    }
    assert_eq!(sum, 1_000_000);
    assert_eq!(of(Quantity::Rate(0)).count(), 0);
}

/// A flow's own rate is the line of its rate control.
#[test]
fn a_paced_flow_keeps_its_rate() {
    const PACED: &str = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
        [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\nrate = \"10Gbps\"\n";
    let paced = |cc: &str| run(&plan_with(PACED, &[("transport.congestion_control", cc)])).flows[0].completed;
    assert_eq!(paced("dcqcn"), paced("none"));
}

/// Ends of flows on different threads: the same rates, notifications and repeats.
#[test]
fn threads_change_nothing() {
    for transport in ["go-back-n", "irn"] {
        let plan = plan(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nhost_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n[switch]\nbuffer = \"150kB\"\n[flow_control]\nscheme = \"none\"\n\
             [transport]\nkind = \"{transport}\"\ncongestion_control = \"dcqcn\"\n[dcqcn]\npreset = \"paper\"\n\
             [measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n"
        ));
        let one = run(&plan);
        assert!(one.counters.dropped > 0 && one.flows.iter().any(|f| f.cnps > 0));
        assert_eq!(one, xoff_sim::run_on(&plan, 2, &mut |_| true));
    }
}
