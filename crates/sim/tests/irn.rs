//! IRN in lossy fabrics: everything arrives once, and costs less than going back.

use crate::common;

use common::{fcts, plan, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::Outcome;

/// Every flow completed, and the packets add up: retransmitted packets are the dropped ones and those
/// retransmitted in vain; arrived packets are the flow and the latter.
fn everything_arrived_once(plan: &Plan, outcome: &Outcome) {
    for (flow, r) in plan.flows.iter().zip(&outcome.flows) {
        let packets = plan.packet.packets(flow.size);
        assert!(r.completed.is_some());
        assert_eq!(r.delivered_bytes, flow.size);
        assert_eq!(r.packets_sent, packets + r.retransmitted);
    }
    let sum =
        |get: &dyn Fn(&xoff_sim::outcome::FlowOutcome) -> u64| outcome.flows.iter().map(get).sum::<u64>();
    let packets: u64 = plan.flows.iter().map(|f| plan.packet.packets(f.size)).sum();
    let c = outcome.counters;
    // Retransmissions may still be in flight when the last flow completes.
    assert!(c.delivered - sum(&|r| r.spurious) == packets, "{c:?}");
    assert_eq!(sum(&|r| r.retransmitted), sum(&|r| r.dropped) + sum(&|r| r.spurious) + c.in_flight);
}

fn incast(senders: u32, transport: &str, buffer: &str) -> Plan {
    let hosts = senders + 1;
    plan(&format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         [switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"none\"\n[transport]\n{transport}\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = {senders}\nto = \"H0\"\nsize = \"300kB\"\n"
    ))
}

/// 64 senders, no flow control, a buffer for 500 packets.
#[test]
fn an_incast_of_64_survives_without_flow_control() {
    let irn = incast(64, "kind = \"irn\"", "500kB");
    let outcome = run(&irn);
    everything_arrived_once(&irn, &outcome);
    let again: u64 = outcome.flows.iter().map(|f| f.retransmitted).sum();
    let spurious: u64 = outcome.flows.iter().map(|f| f.spurious).sum();
    let nacks: u64 = outcome.flows.iter().map(|f| u64::from(f.nacks)).sum();
    let dropped = outcome.counters.dropped;
    println!("IRN: {dropped} dropped, {again} repeats, {spurious} for nothing, {nacks} NACKs");
    assert!(dropped > 1_000 && nacks > 0);

    let back = incast(64, "kind = \"go-back-n\"\nrto = \"320us\"", "500kB");
    let other = run(&back);
    fcts(&back, &other);
    let repeats: u64 = other.flows.iter().map(|f| f.retransmitted).sum();
    let last = |plan: &Plan, outcome: &Outcome| fcts(plan, outcome).into_iter().max();
    println!(
        "go-back-N: {repeats} repeats; last {:?} against {:?}",
        last(&back, &other),
        last(&irn, &outcome)
    );
    assert!(again < repeats, "{again} against {repeats}");
}

/// Without other traffic the window of a BDP is no limit: the closed form holds.
#[test]
fn a_flow_alone_takes_the_ideal_time() {
    for (rate, delay, size) in [(100, 1_000, 3_000_000), (400, 50_000, 60_000_000), (25, 10, 1_500_000)] {
        let plan = plan(&format!(
            "[topology]\nkind = \"line\"\nswitches = 3\nhosts_per_switch = 1\nlink = {{ rate = \"{rate}Gbps\", delay = \"{delay}ns\" }}\n\
             fabric_link = {{ rate = \"{}Gbps\", delay = \"{}ns\" }}\n[switch]\nbuffer = \"100MB\"\n[transport]\nkind = \"irn\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"{size}B\"\n",
            rate * 2,
            delay * 2,
        ));
        let outcome = run(&plan);
        assert_eq!(fcts(&plan, &outcome), [plan.flows[0].ideal]);
        assert_eq!(outcome.flows[0].retransmitted, 0);
    }
}

/// A window of a tenth of the BDP: some tenth of the rate.
#[test]
fn the_window_bounds_what_is_in_flight() {
    let text = |window: &str| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 1\nlink = {{ rate = \"100Gbps\", delay = \"10us\" }}\n\
             [transport]\nkind = \"irn\"\nwindow = \"{window}\"\n[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10MB\"\n"
        )
    };
    let plan = plan(&text("76kB"));
    let (trip, packets) = (plan.transport.rto.min(60_000_000 + 3 * (1_062 + 66) * 80), 10_000);
    // 76 packets for each round trip, which ends with the first ACK of the last 76.
    let expected = (packets / 76) * trip + (packets % 76 + 76 - 76) * 84_960;
    let fct = fcts(&plan, &run(&plan))[0];
    assert!(fct.abs_diff(expected) < trip, "{fct} {expected}");
}

/// The receiver does not read for longer than both timeouts, twice: packets are not lost, only late, and the
/// timeouts are reported as spurious.
#[test]
fn timeouts_in_vain_are_counted() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [transport]\nkind = \"irn\"\n[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"10us\"\nstall_until = \"1ms\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n",
    );
    let outcome = run(&plan);
    everything_arrived_once(&plan, &outcome);
    let f = outcome.flows[0];
    assert!(f.dropped == 0 && f.timeouts >= 3, "{f:?}");
    assert!(f.spurious > 0 && f.spurious + outcome.counters.in_flight == f.retransmitted, "{f:?}");
}

/// Eight flows share a link, so a packet waits for longer than a timeout while its flow progresses. A timer
/// for each packet expires, a timer for the flow does not.
#[test]
fn a_timer_for_each_packet_expires_in_a_long_queue() {
    let text = |timer: &str| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 9\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [switch]\nbuffer = \"100MB\"\n[flow_control]\nscheme = \"none\"\n[transport]\nkind = \"irn\"\nwindow = \"300kB\"\n\
             [irn]\nrto_high = \"100us\"\n{timer}\
             [[traffic]]\nkind = \"incast\"\nfan_in = 8\nto = \"H0\"\nsize = \"1MB\"\n"
        )
    };
    let measured = |timer: &str| {
        let plan = plan(&text(timer));
        let outcome = run(&plan);
        everything_arrived_once(&plan, &outcome);
        assert_eq!(outcome.counters.dropped, 0);
        let spurious: u64 = outcome.flows.iter().map(|f| f.spurious).sum();
        (spurious, outcome.flows.iter().map(|f| f.timeouts).sum::<u32>())
    };
    assert_eq!(measured("timer = \"flow\"\n"), (0, 0));
    assert_eq!(measured(""), (0, 0));
    let (spurious, timeouts) = measured("timer = \"packet\"\n");
    assert!(spurious > 1_000 && timeouts > 0, "{spurious} {timeouts}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 120 / 256))]
    /// Random buffers, windows, packet sizes and acknowledgement rates in a
    /// lossy fabric with several switches.
    #[test]
    fn a_lossy_fabric_delivers_everything_once(
        seed in 0u64..10_000, fan_in in 2u32..12, buffer in 20u64..300, mtu in 300u64..4_000, every in 1u32..4,
        window in prop_oneof![Just(None), (16u64..400).prop_map(Some)], low in 10u64..200, high in 0u64..400,
        few in 0u32..20, dcqcn in any::<bool>(), timer in prop_oneof![Just("flow"), Just("packet")],
    ) {
        let window = window.map_or(String::new(), |kb| format!("window = \"{}B\"\n", kb * 1_000));
        let plan = plan(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"2us\" }}\n\
             [switch]\nbuffer = \"{buffer}kB\"\n[flow_control]\nscheme = \"none\"\n\
             [transport]\nkind = \"irn\"\nmtu = \"{mtu}B\"\nack_every = {every}\n{window}{}\
             [irn]\nrto_low = \"{low}us\"\nrto_high = \"{}us\"\nfew = {few}\ntimer = \"{timer}\"\n[run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"200kB\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"100kB\"\n",
            if dcqcn { "congestion_control = \"dcqcn\"\n" } else { "" }, low + high, fan_in.min(11),
        ));
        let outcome = run(&plan);
        everything_arrived_once(&plan, &outcome);
    }
}

/// Frames lost on a link at random, 0.01% to 1%, data and ACKs alike: IRN and go-back-N both deliver every
/// byte once. IRN retransmits the lost packets, go-back-N also the later ones.
#[test]
fn selective_repeat_costs_less_than_going_back_under_random_loss() {
    for (rate, kind_of_loss) in [(0.0001, "loss"), (0.001, "corruption"), (0.01, "loss")] {
        let lossy = |transport: &str| {
            plan(&format!(
                "[topology]\nkind = \"dumbbell\"\nleft = 4\nright = 4\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
                 bottleneck = {{ rate = \"100Gbps\", delay = \"2us\" }}\n[switch]\nbuffer = \"100MB\"\n\
                 [flow_control]\nscheme = \"none\"\n[transport]\n{transport}\n\
                 [[loss]]\nlink = \"S0.0-S0.1\"\nrate = {rate}\nkind = \"{kind_of_loss}\"\n\
                 [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H4\"\nsize = \"20MB\"\n"
            ))
        };
        let irn = lossy("kind = \"irn\"");
        let outcome = run(&irn);
        everything_arrived_once(&irn, &outcome);
        let (f, c) = (outcome.flows[0], outcome.counters);
        let back = lossy("kind = \"go-back-n\"\nrto = \"320us\"");
        let other = run(&back);
        fcts(&back, &other);
        let (g, dropped) = (other.flows[0], other.counters.dropped);
        println!(
            "{rate}: IRN {} lost, {} repeats, {} for nothing; go-back-N {dropped} lost, {} repeats",
            c.dropped, f.retransmitted, f.spurious, g.retransmitted
        );
        assert!(c.dropped > 0 && dropped > 0);
        assert!(f.retransmitted < g.retransmitted / 10 + 1, "{f:?} {g:?}");
    }
}
