//! TCP NewReno in runs: closed forms of its rate, shares, and that everything
//! arrives once.

use crate::common;

use common::{fcts, plan, run};
use proptest::prelude::*;
use xoff_kernel::time::{MICROSECOND, SECOND};
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{FlowOutcome, Outcome};

/// Every flow completed, and the packets add up: retransmitted packets are the dropped ones and those
/// retransmitted in vain; arrived packets are the flow and the latter.
fn everything_arrived_once(plan: &Plan, outcome: &Outcome) {
    for (flow, r) in plan.flows.iter().zip(&outcome.flows) {
        let packets = plan.packet.packets(flow.size);
        assert!(r.completed.is_some());
        assert_eq!(r.delivered_bytes, flow.size);
        assert_eq!(r.packets_sent, packets + r.retransmitted);
    }
    let sum = |get: &dyn Fn(&FlowOutcome) -> u64| outcome.flows.iter().map(get).sum::<u64>();
    let packets: u64 = plan.flows.iter().map(|f| plan.packet.packets(f.size)).sum();
    let c = outcome.counters;
    // Retransmissions may still be in flight when the last flow completes.
    assert_eq!(c.delivered - sum(&|r| r.spurious), packets, "{c:?}");
    assert_eq!(sum(&|r| r.retransmitted), sum(&|r| r.dropped) + sum(&|r| r.spurious) + c.in_flight);
}

/// A path of 100 Gbit/s with a one-way delay of `delay` us, which loses one data packet of `per` at random,
/// for `ms`.
fn lossy(delay: u64, per: u64, ms: u64, seed: u64) -> Plan {
    plan(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"100Gbps\", delay = \"{}us\" }}\n[switch]\nbuffer = \"100MB\"\n\
         [flow_control]\nscheme = \"none\"\n[transport]\nkind = \"tcp-newreno\"\n[tcp-newreno]\nmin_rto = \"1ms\"\n\
         [[loss]]\nlink = \"S0.0-S0.1\"\nfrom = \"S0.0\"\nrate = {}\n[run]\nduration = \"{ms}ms\"\nseed = {seed}\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10GB\"\n",
        delay - 2,
        1.0 / per as f64,
    ))
}

/// Nothing queues, and losses are rare and random: the rate is MSS / RTT times
/// 1.22 / √p (Mathis et al., 1997), which is of losses at equal distances. That of
/// random ones is somewhat higher (1.31, Ott et al.), and timeouts cost some: 0.95 to
/// 1.2 times that.
#[test]
fn the_rate_under_random_loss_follows_the_square_root() {
    for (delay, per) in [(25, 1_000), (50, 1_000), (25, 4_000), (100, 4_000)] {
        let (mut bytes, mut losses, mut timeouts) = (0, 0, 0);
        let ms = 250 * delay / 25;
        for seed in 0..3 {
            let flow = run(&lossy(delay, per, ms, seed)).flows[0];
            bytes += flow.delivered_bytes;
            (losses, timeouts) = (losses + flow.dropped, timeouts + flow.timeouts);
        }
        let trip = (2 * delay * MICROSECOND) as f64;
        let expected = 3.0 * (ms * 1_000 * MICROSECOND) as f64 / trip * 1_000.0 * 1.22 * (per as f64).sqrt();
        let ratio = bytes as f64 / expected;
        println!("{delay} us, 1 of {per}: {ratio:.3} with {losses} losses, {timeouts} timeouts");
        assert!(losses > 100, "{losses}");
        assert!((0.95..1.2).contains(&ratio), "{delay} us, 1 of {per}: {ratio}");
    }
}

/// Senders at 100 Gbit/s, a bottleneck of 10 Gbit/s, 50 us there and back. A
/// packet of 1062 B takes 849.6 ns there, so that 59 and a fraction fill the path.
fn bottleneck(senders: u32, queue: u64, ms: u64) -> Plan {
    let flow = |i| {
        format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{}\"\nsize = \"10GB\"\nstart = \"{}us\"\n",
            senders + i,
            i * 7
        )
    };
    plan(&format!(
        "[topology]\nkind = \"dumbbell\"\nleft = {senders}\nright = {senders}\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
         bottleneck = {{ rate = \"10Gbps\", delay = \"22500ns\" }}\n[switch]\nbuffer = \"100MB\"\n\
         [[priority]]\nid = 3\negress_limit = \"{queue}B\"\n\
         [flow_control]\nscheme = \"none\"\n[transport]\nkind = \"tcp-newreno\"\n[tcp-newreno]\nmin_rto = \"1ms\"\n\
         [run]\nduration = \"{ms}ms\"\n{}",
        (0..senders).map(flow).collect::<String>()
    ))
}

/// Payload delivered between two times, by flow, in shares of the bottleneck.
fn shares(senders: u32, queue: u64, ms: [u64; 2]) -> (Vec<f64>, u64, u32) {
    let [before, after] = ms.map(|ms| run(&bottleneck(senders, queue, ms)).flows);
    let room = (ms[1] - ms[0]) as f64 * 1e-3 * 10e9 / 8.0 * 1_000.0 / 1_062.0;
    let got = |(a, b): (&FlowOutcome, &FlowOutcome)| (b.delivered_bytes - a.delivered_bytes) as f64 / room;
    let shares = before.iter().zip(&after).map(got).collect();
    let sum = |get: &dyn Fn(&FlowOutcome) -> u64| {
        after.iter().map(get).sum::<u64>() - before.iter().map(get).sum::<u64>()
    };
    (shares, sum(&|f| f.dropped), sum(&|f| f.timeouts.into()) as u32)
}

/// Mean rate of the sawtooth between W / 2 and W = (1 + b) BDP, in shares of the link,
/// where the queue holds b BDPs: a window below the BDP takes one round trip of the
/// empty path, one above it keeps the link busy.
fn sawtooth(b: f64) -> f64 {
    let w = 1.0 + b;
    let below = (1.0 - w / 2.0).max(0.0);
    let from = (w / 2.0).max(1.0);
    (3.0 / 8.0 * w * w) / (below + (w * w - from * from) / 2.0)
}

/// A queue of a BDP keeps the link busy all the time; a smaller one gives the throughput of the sawtooth.
#[test]
fn a_queue_of_a_bdp_keeps_the_bottleneck_busy() {
    assert_eq!((sawtooth(0.0), sawtooth(1.0)), (0.75, 1.0));
    let bdp = 62_500.0;
    for b in [0.1f64, 0.3, 0.6, 1.1, 1.5] {
        let (shares, dropped, timeouts) = shares(1, (bdp * b) as u64, [100, 400]);
        let expected = sawtooth(b.min(1.0));
        println!("{b} BDP: {:.4} of {expected:.4}, {dropped} losses, {timeouts} timeouts", shares[0]);
        assert!(dropped > 5 && timeouts == 0, "{dropped} {timeouts}");
        if b > 1.0 {
            assert!(shares[0] > 0.999, "{shares:?}");
        }
        assert!((shares[0] - expected).abs() < 0.03, "{b}: {} {expected}", shares[0]);
    }
}

/// Two and four flows with one round trip: AIMD brings their shares together.
#[test]
fn flows_with_one_round_trip_share_the_bottleneck() {
    for senders in [2, 4] {
        let (shares, dropped, timeouts) = shares(senders, 125_000, [200, 1_000]);
        let sum: f64 = shares.iter().sum();
        let jain = sum * sum / (f64::from(senders) * shares.iter().map(|s| s * s).sum::<f64>());
        println!("{shares:.3?}: Jain {jain:.4}, {dropped} losses, {timeouts} timeouts");
        assert!(sum > 0.97, "{shares:?}");
        assert!(jain > 0.9, "{shares:?}: {jain}");
    }
}

/// Only the window limits a flow: after n round trips it has sent 10 · (2ⁿ − 1) packets, and the rest takes
/// the last one.
#[test]
fn a_short_flow_takes_the_round_trips_of_slow_start() {
    let text = |packets: u64| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 1\nlink = {{ rate = \"400Gbps\", delay = \"100us\" }}\n\
             [transport]\nkind = \"tcp-newreno\"\n[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"{packets}kB\"\n"
        )
    };
    let trip = 600 * MICROSECOND;
    for (packets, trips) in [(1, 1), (10, 1), (11, 2), (30, 2), (31, 3), (70, 3), (71, 4), (150, 4), (151, 5)]
    {
        let plan = plan(&text(packets));
        let fct = fcts(&plan, &run(&plan))[0];
        assert_eq!(fct / trip, trips, "{packets} packets: {fct} ps");
        assert!(fct % trip < 10 * MICROSECOND, "{packets} packets: {fct} ps");
    }
}

/// The receiver does not read for a while: the RTO is 1 s, then 2 s. No packet is lost, so the timeouts
/// retransmitted in vain.
#[test]
fn timeouts_back_off() {
    let text = |until: &str| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 1\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [transport]\nkind = \"tcp-newreno\"\n[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0us\"\nstall_until = \"{until}\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\n"
        )
    };
    for (until, timeouts) in
        [("900ms", 0), ("1100ms", 1), ("2900ms", 1), ("3100ms", 2), ("6900ms", 2), ("7100ms", 3)]
    {
        let plan = plan(&text(until));
        let outcome = run(&plan);
        everything_arrived_once(&plan, &outcome);
        let f = outcome.flows[0];
        assert_eq!((f.timeouts, f.dropped), (timeouts, 0), "{until}");
        assert!(f.spurious >= u64::from(timeouts), "{f:?}");
        assert!(f.completed.unwrap() < 8 * SECOND);
    }
}

/// The receive window of 76 packets: so many in each round trip.
#[test]
fn the_receive_window_bounds_the_rate() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 1\nlink = { rate = \"100Gbps\", delay = \"10us\" }\n\
         [transport]\nkind = \"tcp-newreno\"\nwindow = \"76kB\"\n[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10MB\"\n",
    );
    let trip = 60 * MICROSECOND + 3 * (1_062 + 66) * 80;
    // 10, 20 and 40 packets in the first round trips, then 76 in each.
    let trips = 3 + (10_000u64 - 70).div_ceil(76);
    let fct = fcts(&plan, &run(&plan))[0];
    assert!(fct.abs_diff(trips * trip) < trip, "{fct} {}", trips * trip);
}

/// An incast of 64 into a buffer for some hundred packets, without flow control.
#[test]
fn an_incast_of_64_survives_without_flow_control() {
    let plan = plan(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 65\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
         [switch]\nbuffer = \"100kB\"\n[flow_control]\nscheme = \"none\"\n\
         [transport]\nkind = \"tcp-newreno\"\n[tcp-newreno]\nmin_rto = \"1ms\"\ninitial_rto = \"1ms\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 64\nto = \"H0\"\nsize = \"300kB\"\n",
    );
    let outcome = run(&plan);
    everything_arrived_once(&plan, &outcome);
    let (dropped, timeouts) =
        outcome.flows.iter().fold((0, 0), |sum, f| (sum.0 + f.dropped, sum.1 + f.timeouts));
    assert!(dropped > 500 && timeouts > 20, "{dropped} {timeouts}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 60 / 256))]
    /// Random buffers, windows, packet sizes, losses and timeouts, with and without PFC, on one
    /// thread and on three.
    #[test]
    fn a_lossy_fabric_delivers_everything_once(
        seed in 0u64..10_000, fan_in in 2u32..11, buffer in 20u64..300, mtu in 300u64..4_000,
        window in prop_oneof![Just(None), (4u64..400).prop_map(Some)], initial in 1u32..20,
        min in 10u64..300, max in 300u64..2_000, loss in prop_oneof![Just(0), 1u32..30], pfc in any::<bool>(),
    ) {
        let window = window.map_or(String::new(), |kb| format!("window = \"{}B\"\n", kb * 1_000));
        let (scheme, buffer) = if pfc { ("pfc", 20_000) } else { ("none", buffer) };
        let loss = match loss {
            0 => String::new(),
            loss => format!("[[loss]]\nlink = \"S0.0-S1.0\"\nrate = {}\n", f64::from(loss) / 1e3),
        };
        let plan = plan(&format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"2us\" }}\n\
             [switch]\nbuffer = \"{buffer}kB\"\n[flow_control]\nscheme = \"{scheme}\"\n\
             [transport]\nkind = \"tcp-newreno\"\nmtu = \"{mtu}B\"\n{window}\
             [tcp-newreno]\ninitial_window = {initial}\nmin_rto = \"{min}us\"\ninitial_rto = \"{min}us\"\nmax_rto = \"{max}us\"\n\
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
