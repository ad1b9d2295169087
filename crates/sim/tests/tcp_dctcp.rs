//! TCP DCTCP in runs: queues and shares against the analysis of its paper, limits of
//! queues, and that everything arrives once.

use crate::common;

use common::{plan, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{FlowOutcome, Outcome, Quantity};

/// A millisecond.
const MS: u64 = 1_000_000_000;
/// Bytes of a full packet, and packets that fill the empty path of [`bottleneck`] once
/// the one that is just sent is counted, too: 50 us at 10 Gbit/s.
const PACKET: f64 = 1_062.0;
const PATH: f64 = 62_500.0 / PACKET;

/// Every flow completed, and the packets add up: retransmitted packets are the dropped ones and those
/// retransmitted in vain; arrived packets are the flow and the latter.
fn everything_arrived_once(plan: &Plan, outcome: &Outcome) {
    for (flow, r) in plan.flows.iter().zip(&outcome.flows) {
        assert!(r.completed.is_some());
        assert_eq!(r.delivered_bytes, flow.size);
        assert_eq!(r.packets_sent, plan.packet.packets(flow.size) + r.retransmitted);
    }
    let sum = |get: &dyn Fn(&FlowOutcome) -> u64| outcome.flows.iter().map(get).sum::<u64>();
    // Retransmissions may still be in flight when the last flow completes.
    assert_eq!(
        sum(&|r| r.retransmitted),
        sum(&|r| r.dropped) + sum(&|r| r.spurious) + outcome.counters.in_flight
    );
}

/// Senders at 100 Gbit/s, a bottleneck of 10 Gbit/s, 50 us there and back, and marks
/// above `threshold` packets there.
fn bottleneck(senders: usize, threshold: u32, ms: u64) -> Plan {
    let flow = |i| {
        format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{}\"\nsize = \"10GB\"\nstart = \"{}us\"\n",
            senders + i,
            i * 7
        )
    };
    let k = f64::from(threshold) * PACKET;
    plan(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = {senders}\nright = {senders}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"22500ns\" }}\n[switch]\nbuffer = \"100MB\"\n\
         [flow_control]\nscheme = \"none\"\n[ecn]\nk_min = \"{k}B\"\nk_max = \"{k}B\"\np_max = 1\n\
         [transport]\nkind = \"tcp-dctcp\"\n[tcp-dctcp]\nmin_rto = \"1ms\"\n\
         [measure]\ninterval = \"2us\"\nports = [\"S0.0:{senders}\"]\n[run]\nduration = \"{ms}ms\"\n{}",
        (0..senders).map(flow).collect::<String>()
    ))
}

/// Samples of the bottleneck's port in the second half of 200 ms.
fn samples(outcome: &Outcome, wanted: fn(Quantity) -> bool) -> Vec<f64> {
    let late = outcome.series.iter().filter(|s| s.at > 100 * MS && wanted(s.what));
    late.map(|s| s.value as f64).collect()
}

/// The sawtooth of N flows in step (§3.3 of DCTCP's paper): the queue's greatest and
/// least length in packets. W* is the window at which marking begins, α the share of marked
/// packets that solves α²(1 − α/4) = (2W* + 1)/(W* + 1)².
fn sawtooth(flows: f64, threshold: f64) -> [f64; 2] {
    let w = (PATH + threshold) / flows;
    let wanted = (2.0 * w + 1.0) / ((w + 1.0) * (w + 1.0));
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let alpha: f64 = (low + high) / 2.0;
        if alpha * alpha * (1.0 - alpha / 4.0) < wanted { low = alpha } else { high = alpha }
    }
    let most = threshold + flows;
    [most - flows * (w + 1.0) * low / 2.0, most]
}

/// The queue swings between the two, within two packets: the window grows by whole packets, and
/// flows are not quite in step, which makes the swing smaller. The link is always busy
/// where the queue never empties, which a seventh of the path (8.4 packets) is enough for,
/// and DCTCP's shares are even.
#[test]
fn queues_swing_as_in_the_analysis_and_flows_share_the_link() {
    for flows in [1, 2, 4, 8] {
        for threshold in [4, 9, 20, 40] {
            let plan = bottleneck(flows, threshold, 200);
            let outcome = run(&plan);
            let lengths = samples(&outcome, |w| matches!(w, Quantity::Queue(_)));
            let (least, most) =
                lengths.iter().fold((f64::MAX, 0f64), |(a, b), &l| (a.min(l / PACKET), b.max(l / PACKET)));
            let sent = samples(&outcome, |w| matches!(w, Quantity::Throughput(_)));
            let busy = sent.iter().sum::<f64>() / sent.len() as f64 / 10e9;
            let [low, high] = sawtooth(flows as f64, threshold.into());
            println!(
                "{flows} flows, K {threshold}: {least:.1} to {most:.1} of {low:.1} to {high:.1}, {busy:.4}"
            );
            assert!((most - high).abs() <= 2.0, "{most} {high}");
            let slack = if flows < 4 { 2.0 } else { 4.0 };
            assert!((-0.5..=slack).contains(&(least - low.max(0.0))), "{least} {low}");
            assert!(busy > if threshold > 8 { 0.999 } else { 0.98 }, "{busy}");
            assert_eq!(outcome.counters.dropped, 0);
            let bytes: Vec<f64> = outcome.flows.iter().map(|f| f.delivered_bytes as f64).collect();
            let sum: f64 = bytes.iter().sum();
            let jain = sum * sum / (flows as f64 * bytes.iter().map(|b| b * b).sum::<f64>());
            assert!(jain > 0.98, "{bytes:?}: {jain}");
        }
    }
}

/// Each ACK reports its own packet: the number of marked ACKs equals that of marked packets. Without marks
/// everything is as with NewReno.
#[test]
fn acks_report_each_marked_packet() {
    let text = |kind: &str, k: u32| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 9\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [ecn]\nk_min = \"{k}kB\"\nk_max = \"{k}kB\"\np_max = 1\n[transport]\nkind = \"{kind}\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\n"
        )
    };
    let flows = run(&plan(&text("tcp-dctcp", 20))).flows;
    let marked: u64 = flows.iter().map(|f| f.marked).sum();
    assert!(marked > 1_000, "{marked}");
    assert!(flows.iter().all(|f| f.cnps == f.marked && f.retransmitted == 0));
    let [dctcp, newreno] = ["tcp-dctcp", "tcp-newreno"].map(|kind| run(&plan(&text(kind, 10_000))));
    assert_eq!(dctcp.flows, newreno.flows);
}

/// A flow fills the link of its host for 1 ms, and nothing is marked: its window grows to many times the
/// bytes in flight. The second flow to the same host finds it ready to slow down: its first marks reduce the
/// bytes in flight, and the queue never holds the bytes of the link in a round trip of 4 us, 50 kB. (It would
/// hold 123 kB if they reduced cwnd.)
#[test]
fn a_window_that_was_not_filled_makes_room_at_the_first_marks() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 3\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [flow_control]\nscheme = \"none\"\n[ecn]\nk_min = \"14kB\"\nk_max = \"14kB\"\np_max = 1\n\
         [transport]\nkind = \"tcp-dctcp\"\n[tcp-dctcp]\nmin_rto = \"1ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"30MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"30MB\"\nstart = \"1ms\"\n",
    );
    let outcome = run(&plan);
    let peak = outcome.ports.iter().map(|p| p.queue_peak).max().unwrap();
    assert!((14_000..50_000).contains(&peak), "{peak}");
    assert_eq!(outcome.counters.dropped, 0);
}

/// 64 hosts send at once to one, whose port may hold 512 kB, in a switch with room for much more: the queue
/// never holds more, other packets are lost because they are lossy, and timeouts of 1 ms retransmit all of
/// them.
#[test]
fn an_incast_is_cut_to_the_limit_of_the_port() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 65\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = \"16MB\"\n[flow_control]\nscheme = \"none\"\n[[priority]]\nid = 3\negress_limit = \"512kB\"\n\
         [ecn]\nk_min = \"14kB\"\nk_max = \"14kB\"\np_max = 1\n\
         [transport]\nkind = \"tcp-dctcp\"\nmtu = \"1460B\"\nheader = \"40B\"\nack = \"40B\"\n\
         [tcp-dctcp]\nmin_rto = \"1ms\"\ninitial_rto = \"1ms\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 64\nto = \"H0\"\nsize = \"100kB\"\n",
    );
    let outcome = run(&plan);
    everything_arrived_once(&plan, &outcome);
    let peak = outcome.ports.iter().map(|p| p.queue_peak).max().unwrap();
    assert!(peak > 512_000 - 1_500 && peak <= 512_000, "{peak}");
    // 640 packets at once find room for 341, while one in 64 of them leaves.
    let dropped = outcome.counters.dropped;
    assert!((250..350).contains(&dropped), "{dropped}");
    assert!(outcome.drops.iter().all(|d| !d.lossless));
    let timeouts: u32 = outcome.flows.iter().map(|f| f.timeouts).sum();
    assert!(timeouts > 20, "{timeouts}");
    assert!(outcome.end < 3 * MS, "{}", outcome.end);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 60 / 256))]
    /// Random limits of queues, thresholds, gains, windows, losses and timeouts, with and without
    /// PFC, on one thread and on three.
    #[test]
    fn a_lossy_fabric_delivers_everything_once(
        seed in 0u64..10_000, fan_in in 2u32..11, limit in 8u64..300, threshold in 1u64..100,
        gain in prop_oneof![Just(1.0), 0.01f64..1.0], initial in 1u32..20, min in 10u64..300,
        loss in prop_oneof![Just(0), 1u32..30], pfc in any::<bool>(),
    ) {
        let limit = if pfc { String::new() } else { format!("[[priority]]\nid = 3\negress_limit = \"{limit}kB\"\n") };
        let scheme = if pfc { "pfc" } else { "none" };
        let loss = match loss {
            0 => String::new(),
            loss => format!("[[loss]]\nlink = \"S0.0-S1.0\"\nrate = {}\n", f64::from(loss) / 1e3),
        };
        let plan = plan(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"2us\" }}\n\
             [switch]\nbuffer = \"20MB\"\n[flow_control]\nscheme = \"{scheme}\"\n{limit}\
             [ecn]\nk_min = \"{threshold}kB\"\nk_max = \"{threshold}kB\"\np_max = 1\n\
             [transport]\nkind = \"tcp-dctcp\"\n\
             [tcp-dctcp]\ninitial_window = {initial}\ngain = {gain}\nmin_rto = \"{min}us\"\ninitial_rto = \"{min}us\"\nmax_rto = \"2ms\"\n\
             {loss}[run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {fan_in}\nsize = \"200kB\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"100kB\"\n",
        ));
        let outcome = run(&plan);
        everything_arrived_once(&plan, &outcome);
        let threads = xoff_sim::run_on(&plan, 3, &mut |_| true);
        prop_assert_eq!(&outcome.flows, &threads.flows);
        prop_assert_eq!(outcome.counters, threads.counters);
    }
}
