//! SWING: the frames of relays in long links and their times, the packets in the relays, and the oracle of
//! deadlocks through them.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::LinkFacts;
use xoff_schemes::flow_control::swing::memory;
use xoff_sim::outcome::{DropReason, Outcome, Stop};

/// The egress port of node `a` that leads to node `b`.
fn port(plan: &Plan, a: &str, b: &str) -> PortId {
    let node = |name: &str| plan.topology.find(name).expect("a node");
    let ports = &plan.topology.nodes[node(a) as usize].ports;
    *ports.iter().find(|&&p| plan.topology.neighbour(p) == node(b)).expect("neighbours")
}

/// A sends to C over the long link of M and N; C's link has `last` Gbit/s.
fn line(last: u64, more: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"C\"]\nswitches = [\"M\", \"N\"]\nlinks = [\n\
         {{a=\"A\", b=\"M\", rate=\"100Gbps\", delay=\"100ns\"}},\n\
         {{a=\"M\", b=\"N\", rate=\"100Gbps\", delay=\"10us\", long=true}},\n\
         {{a=\"N\", b=\"C\", rate=\"{last}Gbps\", delay=\"100ns\"}}]\n\
         [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n{more}"
    )
}

/// The first pause of the queue at `port`.
fn first(outcome: &Outcome, port: PortId) -> (u64, Option<u64>) {
    let pause = outcome.pauses.iter().find(|p| p.port == port).expect("it was paused");
    (pause.from, pause.until)
}

/// By hand: a packet takes 80 ns to send, 800 on the last link, a frame 5.12. Packet i comes to N at 10,620 +
/// 80 i: four times 80, two cables and one to each relay of 100, and the long link. N has 5 kB when packet 5
/// arrives, at 11,020, and pauses its relay, where the frame takes effect at 11,125.12 while packet 8 is on
/// the wire. The nine packets are down to 2 kB when the seventh begins, at 10,620 + 6 · 800 = 15,420. The
/// pause takes the long link's 10 us and its frame's own time to the other relay, and 100 ns more to M; its
/// end two packets' 160 ns more at each relay.
#[test]
fn a_pause_crosses_the_long_link_as_a_frame_and_its_end_two_packets_later() {
    let plan = plan(&line(
        10,
        "[flow_control]\nscheme = \"swing\"\nxoff = \"50kB\"\nrelay_xoff = \"5kB\"\nrelay_xon = \"2kB\"\n\
         relay_delay = \"100ns\"\n[run]\nduration = \"27us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"2MB\"\n",
    ));
    let outcome = run(&plan);
    let (from, until) = (11_125_120, 15_525_120);
    assert_eq!(first(&outcome, port(&plan, "RELAY.1", "N")), (from, Some(until)));
    let (from, until) = (from + 5_120 + 10_000_000, until + 160_000 + 5_120 + 10_000_000);
    assert_eq!(first(&outcome, port(&plan, "RELAY.0", "RELAY.1")), (from, Some(until)));
    let (from, until) = (from + 5_120 + 100_000, until + 160_000 + 5_120 + 100_000);
    assert_eq!(first(&outcome, port(&plan, "M", "RELAY.0")), (from, Some(until)));
    // The other direction has nothing to wait for.
    for (a, b) in [("RELAY.0", "M"), ("RELAY.1", "RELAY.0"), ("N", "RELAY.1")] {
        assert!(outcome.pauses.iter().all(|p| p.port != port(&plan, a, b)), "{a} to {b}");
    }
}

/// As above, but N pauses its relay at its own 50 kB: of the packets 0 to 55 the first
/// six have begun to leave when number 55 arrives, at 10,620 + 80 · 55 = 15,020.
#[test]
fn a_switch_with_thresholds_of_its_own_pauses_its_relay_at_those() {
    let plan = plan(&line(
        10,
        "[flow_control]\nscheme = \"swing\"\nxoff = \"50kB\"\nrelay_xoff = \"5kB\"\nrelay_xon = \"2kB\"\n\
         switch_side = \"pfc\"\nrelay_delay = \"100ns\"\n[run]\nduration = \"27us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"2MB\"\n",
    ));
    let outcome = run(&plan);
    assert_eq!(first(&outcome, port(&plan, "RELAY.1", "N")).0, 15_125_120);
    assert_eq!(first(&outcome, port(&plan, "RELAY.0", "RELAY.1")).0, 15_125_120 + 5_120 + 10_000_000);
}

/// The cost of a receiver that stops for three round trips: under SWING the time of the stop, because the
/// rate returns as the memory of the far relay runs empty; under PFC with headroom for a round trip and a
/// shallow threshold a round trip more, in which no packet is in flight.
#[test]
fn the_rate_comes_back_as_the_relay_runs_empty() {
    const ROUND_TRIP: u64 = 20_000_000;
    let fct = |overrides: &[(&str, &str)]| {
        let text = line(
            100,
            "[flow_control]\nscheme = \"swing\"\nxoff = \"5kB\"\nxon = \"2kB\"\nrelay_xoff = \"5kB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"4MB\"\n",
        );
        let plan = plan_with(&text, overrides);
        let outcome = run(&plan);
        outcome.flows[0].completed.expect("it gets through")
    };
    let stall = ("slow_receiver", "[{host = \"C\", stall_from = \"50us\", stall_until = \"110us\"}]");
    let pfc = ("flow_control.scheme", "pfc");
    let swing = fct(&[stall]) - fct(&[]);
    assert!((60_000_000..61_000_000).contains(&swing), "{swing}");
    let counted = fct(&[stall, pfc]) - fct(&[pfc]);
    let more = counted - swing;
    assert!((ROUND_TRIP * 9 / 10..ROUND_TRIP + 1_000_000).contains(&more), "{more}");
}

/// A stop of a round trip or more fills the relay to the result of the formula, except for the packets of its
/// terms.
#[test]
fn a_long_stop_leaves_a_round_trip_in_the_relay() {
    let text = line(
        100,
        "[flow_control]\nscheme = \"swing\"\nxoff = \"5kB\"\nrelay_xoff = \"5kB\"\n\
         [[slow_receiver]]\nhost = \"C\"\nstall_from = \"50us\"\nstall_until = \"150us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"4MB\"\n",
    );
    let whole = plan(&text);
    let outcome = run(&whole);
    let held = outcome.accounts[port(&whole, "RELAY.1", "RELAY.0") as usize].main;
    let least =
        memory(&LinkFacts { rate: 100_000_000_000, delay: 10_000_000, largest: 1000, retries: 0 }, 0).total;
    assert_eq!(least, 250_000 + 2 * 1000 + 64 + 2 * 1000);
    assert!((250_000..=least).contains(&held), "{held}");

    // Half of it is not enough, and the plan says so.
    let half = [("flow_control.relay_buffer", "125kB")];
    let overrides: Vec<_> = half.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let no_files = |_: &std::path::Path| Err(std::io::Error::other("no files"));
    let loaded = xoff_plan::load("test.toml", text.as_bytes(), &overrides, &no_files).expect("a plan");
    assert!(loaded.warnings.iter().any(|w| w.key == "flow_control.relay_buffer"), "{:?}", loaded.warnings);
    let outcome = xoff_sim::run(&loaded.plan, &mut |_| true);
    let relay = port(&loaded.plan, "RELAY.1", "RELAY.0");
    assert!(outcome.drops.iter().any(|d| d.ingress == relay && d.reason == DropReason::HeadroomFull));
}

/// Two sites with `long` links between them, and on/off receivers on both sides.
#[derive(Clone, Debug)]
struct Sites {
    /// Rates (Gbit/s) and delays (ns) of the long links.
    long: Vec<(u64, u64)>,
    relay_delay: u64,
    response: u64,
    mtu: u64,
    /// (from, to, kB, start in us, priority), hosts 0 to 5.
    flows: Vec<(usize, usize, u64, u64, u8)>,
    /// (host, from, for) in us.
    stalls: Vec<(usize, u64, u64)>,
}

impl Sites {
    fn toml(&self, relays: &str) -> String {
        let name = |host: usize| ["A", "B", "C", "D", "E", "F"][host % 6];
        let mut text = String::from(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"C\", \"D\", \"E\", \"F\"]\nswitches = [\"M\", \"N\"]\nlinks = [\n",
        );
        for host in 0..6 {
            let switch = if host < 3 { "M" } else { "N" };
            text +=
                &format!("{{a=\"{}\", b=\"{switch}\", rate=\"100Gbps\", delay=\"500ns\"}},\n", name(host));
        }
        for (rate, delay) in &self.long {
            text += &format!("{{a=\"M\", b=\"N\", rate=\"{rate}Gbps\", delay=\"{delay}ns\", long=true}},\n");
        }
        text += &format!(
            "]\n[transport]\nmtu = \"{}B\"\nrto = \"1s\"\n[flow_control]\nscheme = \"swing\"\nxoff = \"30kB\"\nxon = \"20kB\"\n\
             relay_xoff = \"20kB\"\nrelay_delay = \"{}ns\"\nresponse_time = \"{}ns\"\n{relays}",
            self.mtu, self.relay_delay, self.response
        );
        for &(src, dst, size, start, priority) in &self.flows {
            // Across the long links, in either direction.
            let dst = if (src % 6 < 3) == (dst % 6 < 3) { dst + 3 } else { dst };
            text += &format!(
                "[[traffic]]\nkind = \"flow\"\nsrc = \"{}\"\ndst = \"{}\"\nsize = \"{size}kB\"\nstart = \"{start}us\"\npriority = {priority}\n",
                name(src),
                name(dst)
            );
        }
        let mut until = [0; 6];
        for &(host, after, length) in &self.stalls {
            let (host, from) = (host % 6, until[host % 6] + after);
            until[host] = from + length;
            text += &format!(
                "[[slow_receiver]]\nhost = \"{}\"\nstall_from = \"{from}us\"\nstall_until = \"{}us\"\n",
                name(host),
                from + length
            );
        }
        text
    }
}

fn sites(priorities: std::ops::Range<u8>) -> impl Strategy<Value = Sites> {
    (
        prop::collection::vec((prop::sample::select(vec![10u64, 40, 100]), 1_000u64..60_000), 1..3),
        0u64..300,
        0u64..600,
        prop::sample::select(vec![256u64, 1000, 4096]),
        prop::collection::vec((0usize..6, 0usize..6, 1u64..1_500, 0u64..100, priorities), 1..8),
        prop::collection::vec((0usize..6, 1u64..60, 1u64..200), 0..12),
    )
        .prop_map(|(long, relay_delay, response, mtu, flows, stalls)| Sites {
            long,
            relay_delay,
            response,
            mtu,
            flows,
            stalls,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    /// With the default memory nothing is lost, and it is the mirrored pauses that
    /// see to it: no relay comes to its own threshold, which is that memory.
    #[test]
    fn mirrored_stops_fit_into_a_round_trip(sites in sites(3..4)) {
        let plan = plan(&sites.toml(""));
        let outcome = run(&plan);
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        for (port, p) in plan.topology.ports.iter().enumerate().filter(|(_, p)| p.long) {
            let link = LinkFacts { rate: p.rate, delay: p.delay, largest: plan.packet.largest(), retries: 0 };
            let least = memory(&link, sites.response * 1000).total;
            prop_assert!(outcome.accounts[port].main < least, "{} of {least}", outcome.accounts[port].main);
        }
    }

    /// With data of several priorities the relays' own thresholds see to it.
    #[test]
    fn several_priorities_are_lossless_by_the_relays_own_threshold(sites in sites(2..5)) {
        let outcome = run(&plan(&sites.toml("")));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
    }

    /// And with any threshold that leaves headroom for a round trip above it.
    #[test]
    fn a_relay_with_headroom_above_its_limit_is_lossless(sites in sites(3..5), limit in 5_000u64..50_000) {
        let most = sites.long.iter().map(|&(rate, delay)| rate * delay / 4).max().unwrap_or(0);
        let buffer = limit + most + sites.response * 100 / 8 + 20_000;
        let outcome = run(&plan(&sites.toml(&format!("relay_limit = \"{limit}B\"\nrelay_buffer = \"{buffer}B\"\n"))));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
    }
}

/// Three flows that each take two links of a ring of three sites deadlock under PFC, and with relays in the
/// links; the oracle's cycle leads through the relays.
#[test]
fn the_oracle_sees_through_relays() {
    let mut text = String::from(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"C\"]\nswitches = [\"X\", \"Y\", \"Z\"]\nlinks = [\n\
         {a=\"A\", b=\"X\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"B\", b=\"Y\", rate=\"100Gbps\", delay=\"100ns\"},\n\
         {a=\"C\", b=\"Z\", rate=\"100Gbps\", delay=\"100ns\"}, {a=\"X\", b=\"Y\", rate=\"100Gbps\", delay=\"5us\", long=true},\n\
         {a=\"Y\", b=\"Z\", rate=\"100Gbps\", delay=\"5us\", long=true}, {a=\"Z\", b=\"X\", rate=\"100Gbps\", delay=\"5us\", long=true}]\n\
         [transport]\nack_priority = 6\nrto = \"1s\"\n[flow_control]\nscheme = \"swing\"\nxoff = \"20kB\"\nxon = \"10kB\"\nrelay_xoff = \"20kB\"\n",
    );
    // The writer of a path need not know of relays.
    for (a, path) in ["AXYZC", "BYZXA", "CZXYB"].iter().enumerate() {
        let nodes: Vec<String> = path.chars().map(|c| format!("\"{c}\"")).collect();
        text += &format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = {}\ndst = {}\npath = [{}]\nsize = \"20MB\"\n\
             [[slow_receiver]]\nhost = \"{}\"\nstall_from = \"20us\"\nstall_until = \"1ms\"\n",
            nodes[0],
            nodes[4],
            nodes.join(", "),
            ["A", "B", "C"][a]
        );
    }
    let plan = plan(&text);
    assert_eq!(plan.topology.relays, 6);
    let outcome = run(&plan);
    let deadlock = outcome.deadlock.as_ref().expect("a circle closes");
    assert_ne!(outcome.stop, Stop::AllDone);
    let relays =
        deadlock.cycle.iter().filter(|h| plan.topology.is_relay(plan.topology.ports[h.port as usize].node));
    assert!(relays.count() > 0 && deadlock.cycle.len() >= 9, "{deadlock:?}");
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % deadlock.cycle.len()];
        assert_eq!(plan.topology.neighbour(held.port), plan.topology.ports[next.port as usize].node);
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port).expect("it was paused");
        assert_eq!(last.until, None, "{held:?}");
    }
}

/// A relay is no switch: it marks nothing, however long its queue.
#[test]
fn relays_do_not_mark() {
    let plan = plan(&line(
        100,
        "[[priority]]\nid = 3\nlossless = true\necn = { k_min = \"1kB\", k_max = \"2kB\", p_max = 1.0 }\n\
         [flow_control]\nscheme = \"swing\"\nxoff = \"5kB\"\nrelay_xoff = \"5kB\"\n\
         [[slow_receiver]]\nhost = \"C\"\nstall_from = \"50us\"\nstall_until = \"150us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"2MB\"\n",
    ));
    let outcome = run(&plan);
    let marks = |a: &str, b: &str| outcome.ports[port(&plan, a, b) as usize].marks;
    assert_eq!(marks("RELAY.1", "N") + marks("RELAY.0", "RELAY.1"), 0);
    assert!(outcome.ports[port(&plan, "RELAY.1", "N") as usize].queue_peak > 100_000);
    assert!(marks("M", "RELAY.0") > 0, "switches do");
}

/// However a run is dealt out to threads, it is the same run.
#[test]
fn threads_change_nothing() {
    let text = Sites {
        long: vec![(100, 20_000), (40, 7_000)],
        relay_delay: 50,
        response: 100,
        mtu: 1000,
        flows: vec![(0, 3, 900, 0, 3), (1, 4, 700, 3, 3), (5, 2, 800, 1, 3), (4, 0, 500, 9, 3)],
        stalls: vec![(3, 20, 60), (2, 30, 10), (3, 9, 30), (0, 40, 80)],
    }
    .toml("");
    let plan = plan(&text);
    let one = run(&plan);
    for threads in [2, 3] {
        let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
        assert_eq!((&one.flows, &one.pauses, &one.accounts), (&many.flows, &many.pauses, &many.accounts));
    }
}
