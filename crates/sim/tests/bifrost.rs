//! Bifrost and BifrostX in packet runs: nothing is lost with one round trip of buffer,
//! nothing idles, and the bounds of Theorem 1 hold at the end of every slot.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_kernel::time::SECOND;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::bifrost::Report;
use xoff_schemes::flow_control::bifrost::slots::{History, Repair, SlotParams, Slots};
use xoff_sim::outcome::Outcome;

/// Two sites of three hosts each and the long links between their switches.
#[derive(Clone, Debug)]
struct Sites {
    /// In Gbit/s: of hosts, of long links.
    rates: (u64, u64),
    /// One-way delay of the long links in us.
    delay: u64,
    long_links: usize,
    /// Slot in ns.
    slot: u64,
    mtu: u64,
    seed: u64,
}

impl Sites {
    fn toml(&self, flow_control: &str, rest: &str) -> String {
        let mut links: Vec<String> = (0..6)
            .map(|h| {
                format!(
                    "{{a=\"H{h}\", b=\"{}\", rate=\"{}Gbps\", delay=\"1us\"}}",
                    if h < 3 { "M" } else { "N" },
                    self.rates.0
                )
            })
            .collect();
        links.extend((0..self.long_links).map(|_| {
            format!(
                "{{a=\"M\", b=\"N\", rate=\"{}Gbps\", delay=\"{}us\", long=true}}",
                self.rates.1, self.delay
            )
        }));
        format!(
            "[topology]\nkind=\"custom\"\nhosts=[\"H0\",\"H1\",\"H2\",\"H3\",\"H4\",\"H5\"]\nswitches=[\"M\",\"N\"]\n\
             links=[{}]\n[transport]\nmtu=\"{}B\"\nrto=\"200ms\"\n[run]\nseed={}\nduration=\"{}us\"\n\
             [flow_control]\nslot=\"{}ns\"\n{flow_control}\n{rest}",
            links.join(",\n"),
            self.mtu,
            self.seed,
            self.delay * 12,
            self.slot,
        )
    }
}

fn sites() -> impl Strategy<Value = Sites> {
    let rate = || prop::sample::select(vec![40u64, 100, 400]);
    (rate(), rate(), 20u64..150, 1usize..3, 200u64..4_000, any::<u64>()).prop_map(
        |(host, long, delay, long_links, mtu, seed)| Sites {
            rates: (host, long),
            delay,
            long_links,
            slot: (delay * 1000 / 4).min(10_000).min(1_300 + seed % 9_000),
            mtu,
            seed: seed % 100_000,
        },
    )
}

/// The downstream side stores no more than it reserves, and L + F keeps its upper bound, except for the
/// packet and the delay that the margin covers.
fn bounds(plan: &Plan, outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(!outcome.records.get::<Report>().unwrap().0.is_empty());
    for grant in &outcome.records.get::<Report>().unwrap().0 {
        let (tally, params) = (grant.tally, grant.params);
        prop_assert!(tally.slots > 0);
        // A packet may begin with the last token.
        let ahead = if params.counted { u64::from(plan.packet.largest()) } else { 0 };
        let spare = params.margin + ahead;
        // Tokens may be used when the slot begins: then F counts them until its end, beside L.
        let twice = if params.counted { params.of_slot() } else { 0 };
        prop_assert!(tally.most <= params.buffer + spare + twice, "{grant:?}");
        prop_assert!(tally.most_stored <= params.buffer + spare);
        let alone = plan.lanes.iter().filter(|l| l.lossless).count() < 2;
        // A packet counts with its last bit: a slot can bring R_s T and the packet before it.
        let spread = tally.least_spread + i64::from(plan.packet.largest());
        prop_assert!(!params.counted || spread >= 0 || alone, "{grant:?}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 60 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random links, loads in both directions, receivers that stop and go or read slowly,
    /// jitter, one to three priorities. `run` asserts that nothing lossless is dropped.
    #[test]
    fn nothing_is_lost_and_theorem_1_holds(
        sites in sites(), x in any::<bool>(), jitter in 0u64..400, response in 0u64..2_000,
        priorities in 1u64..4, reading in prop::collection::vec((1u64..120, 0u64..900, 1u64..600), 3),
        repair in 1u32..4, all_to_one in any::<bool>(), lossy_acks in any::<bool>(),
    ) {
        let jitter = jitter.min((sites.slot - 1_001) / 2);
        let scheme = if x { "bifrostx" } else { "bifrost" };
        let mut rest = String::new();
        for (host, &(rate, from, length)) in (3..6).zip(&reading) {
            let from = from.min(sites.delay * 8);
            rest += &format!(
                "[[slow_receiver]]\nhost=\"H{host}\"\nrate=\"{rate}Gbps\"\nstall_from=\"{from}us\"\nstall_until=\"{}us\"\n",
                from + length
            );
        }
        for flow in 0..9u64 {
            // Some begin late and end early: sources that do not always send.
            let (src, dst) = if flow % 3 == 2 { (3 + flow / 3, flow % 3) } else { (flow % 3, 3 + if all_to_one { 0 } else { flow / 3 }) };
            rest += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{src}\"\ndst=\"H{dst}\"\nsize=\"{}kB\"\nstart=\"{}us\"\npriority={}\n",
                20 + (sites.seed * (flow + 7)) % 4_000,
                (sites.seed * (flow + 3)) % (sites.delay * 6),
                3 + flow % priorities,
            );
        }
        if lossy_acks {
            // ACKs in a lossy priority of their own, which nothing delays.
            rest += "[[priority]]\nid=6\nlossless=false\n";
        }
        let keys = format!(
            "scheme=\"{scheme}\"\njitter=\"{jitter}ns\"\nresponse_time=\"{response}ns\"\nrepair_every={repair}\nxoff=\"200kB\""
        );
        let overrides: &[(&str, &str)] = if lossy_acks { &[("transport.ack_priority", "6")] } else { &[] };
        let plan = plan_with(&sites.toml(&keys, &rest), overrides);
        let outcome = run(&plan);
        bounds(&plan, &outcome)?;
        prop_assert!(outcome.drops.is_empty(), "{:?}", outcome.drops);
    }
}

/// Three hosts send all they can over one long link, from the start to the end, to a host that reads at
/// `rate` Gbit/s but stalls for a while; `back` adds data in the other direction, for which frames have to
/// wait.
fn saturated(sites: &Sites, keys: &str, rate: u64, stall: (u64, u64), back: bool) -> Plan {
    let mut rest = String::new();
    for src in 0..3 {
        rest +=
            &format!("[[traffic]]\nkind=\"flow\"\nsrc=\"H{src}\"\ndst=\"H3\"\nsize=\"10GB\"\npriority=3\n");
    }
    if back {
        rest += "[[traffic]]\nkind=\"flow\"\nsrc=\"H4\"\ndst=\"H0\"\nsize=\"10GB\"\npriority=2\n";
    }
    rest += &format!(
        "[[slow_receiver]]\nhost=\"H3\"\nrate=\"{rate}Gbps\"\nstall_from=\"{}us\"\nstall_until=\"{}us\"\n",
        stall.0, stall.1
    );
    plan(&sites.toml(keys, &rest))
}

fn delivered(outcome: &Outcome) -> u64 {
    outcome.flows.iter().take(3).map(|f| f.delivered_bytes).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 40 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// With sources that always send. F counts whole grants, and windows send up to a margin less; after a
    /// time of partial grants the drain may take line rate for a round trip before that is made good. So L +
    /// F stays above Δ + R·T except for two packets of each slot of a round trip; and the receiver gets what
    /// it gets under PFC with four round trips of buffer less 0.5%, but for those packets once after the
    /// stall.
    #[test]
    fn no_throughput_is_lost(
        sites in sites(), x in any::<bool>(), rate in 1u64..400, from in 0u64..8, length in 1u64..6, back in any::<bool>(),
    ) {
        // The theorem is about drains of at most the link's rate.
        let mtu = sites.mtu.min(sites.slot * sites.rates.1 / 8 / 40 - 62);
        let sites = Sites { long_links: 1, rates: (sites.rates.1, sites.rates.1), mtu, ..sites };
        let stall = (from * sites.delay, (from + length) * sites.delay);
        let of = |keys: &str| {
            let plan = saturated(&sites, keys, rate, stall, back);
            let outcome = run(&plan);
            (plan, outcome)
        };
        let scheme = if x { "bifrostx" } else { "bifrost" };
        let (plan, slots) = of(&format!("scheme=\"{scheme}\"\nxoff=\"400kB\""));
        let (_, deep) = of("scheme=\"pfc\"\nxoff=\"400kB\"\n[flow_control.long]\nxoff=\"8bdp\"");
        let grant = slots.records.get::<Report>().unwrap().0.iter().max_by_key(|g| g.tally.most_stored).expect("a long link");
        let slots_in_flight = grant.params.round_trip / grant.params.slot + 1;
        let floor = grant.params.bdp() + grant.params.of_slot();
        let once = (2 * slots_in_flight + 8) * u64::from(plan.packet.largest());
        prop_assert!(
            grant.tally.least + once >= floor,
            "{} of {floor} B: {grant:?}", grant.tally.least
        );
        // A buffer that priorities share is part of its device's memory.
        let node = plan.topology.ports[grant.port as usize].node as usize;
        prop_assert!(slots.buffer_peaks[node] >= grant.tally.most_stored);
        prop_assert!(slots.buffer_peaks[node] <= plan.buffers[node].total);
        let (got, ideal) = (delivered(&slots), delivered(&deep));
        prop_assert!((got + once) as f64 >= 0.995 * ideal as f64, "{got} of {ideal} B");
    }
}

fn paper() -> Sites {
    Sites { rates: (100, 100), delay: 400, long_links: 1, slot: 10_000, mtu: 1_500, seed: 1 }
}

/// The bytes stored and in flight beyond H and the margin, and packets lost, of a receiver that stops for
/// three round trips while data crosses in the other direction.
fn overflow(keys: &str, stall: (u64, u64)) -> (i64, u64) {
    let mut plan = saturated(&paper(), keys, 60, stall, true);
    plan.end = Some(stall.1 * 1_000_000);
    let outcome = xoff_sim::run(&plan, &mut |_| true);
    let lost = outcome.drops.iter().filter(|d| d.lossless).map(|d| d.packets).sum();
    let over = outcome
        .records
        .get::<Report>()
        .unwrap()
        .0
        .iter()
        .map(|g| g.tally.most_stored as i64 - g.params.buffer as i64)
        .max();
    (over.expect("a long link"), lost)
}

/// The bound needs the history of grants, the margin, and the room beyond H; without any
/// of them it fails, and packets are lost.
#[test]
fn each_part_of_the_upper_bound_is_needed() {
    let (soon, late) = ((1_500, 4_000), (30_000, 33_000));
    let (_, lost) = overflow("scheme=\"bifrost\"", soon);
    assert_eq!(lost, 0);
    // Pauses as long as their slots: packets slip through whenever a frame is late.
    let (over, lost) = overflow("scheme=\"bifrost\"\nmargin=\"0s\"", soon);
    assert!(over >= 0 && lost > 0, "without margin: {over} B over H, {lost} lost");
    // Line 15 subtracts bytes from F that were sent beyond the grant, slot after slot: without effect until
    // the drain stops.
    let (over, lost) = overflow("scheme=\"bifrost\"\nmargin=\"0s\"\nhistory=\"recurrence\"", late);
    assert!(over >= 0 && lost > 0, "by the recurrence: {over} B over H, {lost} lost");
    // k packets beyond H hold the leaks of k slots; a longer stop leaks more.
    for (k, stall, enough) in [(10, soon, false), (400, soon, true), (400, (1_500, 30_000), false)] {
        let (over, lost) = overflow(
            &format!("scheme=\"bifrost\"\nmargin=\"0s\"\njitter=\"300ns\"\nrepair_every={k}"),
            stall,
        );
        assert_eq!(lost == 0, enough, "{k} packets beyond H, stop {stall:?}: {over} B over H, {lost} lost");
    }
}

/// The example of Figure 6: D of slots that are granted half, then D of whole ones. The bytes that can still
/// arrive in a round trip are 0.25 + 0.5 BDP; and the slot before them, of RTT + T.
#[test]
fn figure_6() {
    let (delay, slot) = (1_000, 10);
    let mut port = Slots::new(SlotParams {
        rate: 8 * SECOND, // a byte per picosecond
        slot,
        round_trip: 2 * delay,
        buffer: 4 * delay,
        repair_every: 1,
        unit: 1,
        margin: 0,
        counted: false,
        history: History::Grants,
        repair: Repair::Excess,
    });
    for _ in 0..delay / slot {
        let stored = 4 * delay - port.virtual_incoming() - slot / 2;
        assert_eq!(port.ends(stored, slot).granted, slot / 2);
    }
    for _ in 0..delay / slot {
        assert!(port.ends(0, slot).whole);
    }
    assert_eq!(port.virtual_incoming(), 3 * (2 * delay) / 4 + slot);
}
