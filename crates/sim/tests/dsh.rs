//! DSH loses nothing and keeps within its insurance; its port level joins the lossless lanes of a link.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::dsh::report::Report;
use xoff_sim::outcome::{Outcome, Stop};

fn report(outcome: &Outcome) -> Report {
    *outcome.records.get().expect("the scheme ran")
}

/// The largest insurance of a port.
fn most_insurance(plan: &Plan) -> u64 {
    plan.accounts.iter().filter_map(|a| a.headroom.as_ref()).map(|h| h.total).max().unwrap_or(0)
}

/// The bytes of the largest device that are not shared: a smaller buffer is refused.
fn set_aside(plan: &Plan) -> u64 {
    plan.buffers.iter().map(|buffer| buffer.total - buffer.shared).max().unwrap_or(0)
}

/// Seven hosts send to one; one of them also sends to another host in a second priority, which goes first
/// everywhere. The buffer of each switch shares 40 kB beyond the part that is set aside.
const INCAST: &str = "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\n\
     host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
     [flow_control]\nscheme = \"dsh\"\n\
     [[traffic]]\nkind = \"incast\"\nto = \"H0\"\nfan_in = 7\nsize = \"1MB\"\npriority = 3\n\
     [[traffic]]\nkind = \"flow\"\nsrc = \"H4\"\ndst = \"H1\"\nsize = \"1MB\"\nstart = \"20us\"\npriority = 4\n\
     [[priority]]\nid = 4\ntier = 0\n[[priority]]\nid = 3\ntier = 1\n";

fn incast(keys: &[(&str, &str)]) -> Plan {
    let large = plan_with(INCAST, &[&[("switch.buffer", "\"50MB\"")], keys].concat());
    let buffer = format!("\"{}B\"", set_aside(&large) + 40_000);
    plan_with(INCAST, &[&[("switch.buffer", buffer.as_str())], keys].concat())
}

/// With little shared memory both levels pause, and the insurance is used. A pause of the port also stops the
/// priority that goes first, whose packets never fill a queue: under PFC it is not paused.
#[test]
fn a_port_pauses_all_lossless_lanes() {
    let plan = incast(&[]);
    let outcome = run(&plan);
    let report = report(&outcome);
    println!("{report:?}");
    assert_eq!(outcome.stop, Stop::AllDone);
    assert!(report.queue_pauses > 0 && report.port_pauses > 0 && report.insured > 0);
    assert!(report.peak > 0 && report.peak <= most_insurance(&plan));
    let pauses_of_first = |plan: &Plan, outcome: &Outcome| {
        let first = plan.lanes.iter().position(|lane| lane.priority == 4).expect("it is in use");
        outcome.pauses.iter().filter(|pause| usize::from(pause.lane) == first).count()
    };
    assert!(pauses_of_first(&plan, &outcome) > 0);
    let pfc = plan_with(INCAST, &[("flow_control.scheme", "pfc"), ("flow_control.xoff", "40kB")]);
    let outcome = run(&pfc);
    assert!(pauses_of_first(&pfc, &outcome) == 0 && !outcome.pauses.is_empty());
}

/// With much shared memory nothing pauses, and no port needs its insurance.
#[test]
fn a_large_segment_absorbs_the_burst() {
    let plan = plan_with(INCAST, &[("flow_control.alpha", "4"), ("switch.buffer", "\"50MB\"")]);
    let outcome = run(&plan);
    assert_eq!((report(&outcome), outcome.pauses.len()), (Report::default(), 0));
}

/// With α = 1/65536 a port goes to POFF with its first shared packet. A host sends two lanes at line rate into a
/// switch whose egress is stalled. The bytes that arrive after POFF are at most the cable, the frame and two packets;
/// with less insurance than arrive, packets are lost.
#[test]
fn the_insurance_is_needed_and_enough() {
    let text = |insurance: &str, start: u64| {
        format!(
            "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\n\
             link = {{ rate = \"100Gbps\", delay = \"2us\" }}\n\
             [flow_control]\nscheme = \"dsh\"\nalpha = 0.0000153\nprivate = \"10kB\"\nresponse_time = \"302ns\"\n{insurance}\
             [transport]\nmtu = \"1438B\"\nack_every = 1000000\nrto = \"1s\"\n[run]\nduration = \"60us\"\n\
             [[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0us\"\nstall_until = \"1s\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10MB\"\npriority = 3\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10MB\"\npriority = 4\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H0\"\nsize = \"10MB\"\nstart = \"{start}ps\"\npriority = 3\n"
        )
    };
    let mut peak = 0;
    for phase in 0..12 {
        let plan = plan(&text("", phase * 10_000));
        assert_eq!(most_insurance(&plan), 56_840);
        peak = peak.max(report(&run(&plan)).peak);
    }
    println!("at most {peak} B of 56840 B");
    // Without the part of the response time that no frame needs: 2 · 2 us, 302 ns, 64 B, and two packets.
    let least = 50_000 + 3_775 + 64 + 2 * 1_500;
    assert!(peak <= least && peak > least - 2 * 1_500, "{peak}");
    let lost = |insurance: u64| {
        (0..12).any(|phase| {
            let plan = plan(&text(&format!("insurance = \"{insurance}B\"\n"), phase * 10_000));
            let outcome = xoff_sim::run(&plan, &mut |_| true);
            outcome.drops.iter().any(|drop| drop.lossless)
        })
    };
    assert!(!lost(peak) && lost(peak - 1));
}

/// A ring of four switches with a slow link from S1 to S2. The flows alternate between two priorities, so no single
/// priority closes the ring: only ports do.
const RING: &str = include_str!("../../../examples/itsy.toml");
const TURNS: [(&str, &str); 4] = [
    ("traffic.0.priority", "3"),
    ("traffic.1.priority", "4"),
    ("traffic.2.priority", "3"),
    ("traffic.3.priority", "4"),
];

#[test]
fn ports_can_close_a_cycle_of_two_priorities() {
    let small = |keys: &[(&str, &str)]| {
        let keys = [&[("flow_control.scheme", "dsh")], &TURNS[..], keys].concat();
        let large = plan_with(RING, &[&keys[..], &[("switch.buffer", "\"50MB\"")]].concat());
        let buffer = format!("\"{}B\"", set_aside(&large) + 20_000);
        run(&plan_with(RING, &[&keys[..], &[("switch.buffer", buffer.as_str())]].concat()))
    };
    let outcome = small(&[("flow_control.alpha", "0.01")]);
    let deadlock = outcome.deadlock.as_ref().expect("the ring closes");
    assert_eq!((deadlock.cycle.len(), outcome.stop), (4, Stop::Starved));
}

/// A random fabric of two tiers, faults, and a shared segment of a few packets to a few hundred.
#[derive(Clone, Debug)]
struct Case {
    fabric: usize,
    delay: u64,
    rate: u64,
    alpha: f64,
    private: u64,
    deltas: [u64; 2],
    queues: Option<u8>,
    insurance: bool,
    shared: u64,
    quanta: u32,
    response: u64,
    mtu: u64,
    load: u64,
    priorities: [u8; 2],
    lossy: bool,
    slow: bool,
    failure: bool,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let network =
        (0usize..3, 0u64..4_000, prop::sample::select(vec![25u64, 40, 100]), 200u64..4_000, 1u64..10);
    let keys = (
        prop_oneof![0.0001f64..0.1, 0.1f64..4.0],
        0u64..20_000,
        [0u64..20_000, 0u64..20_000],
        prop::option::of(3u8..9),
        any::<bool>(),
        prop_oneof![0u64..10_000, 0u64..400_000],
        prop::sample::select(vec![300u32, 1_000, 65_535]),
        prop_oneof![Just(0u64), 0u64..3_000],
    );
    let traffic = (prop::sample::select(vec![[3u8, 3], [3, 5], [0, 7]]), any::<[bool; 3]>(), 0u64..10_000);
    (network, keys, traffic).prop_map(|(network, keys, traffic)| {
        let (fabric, delay, rate, mtu, load) = network;
        let (alpha, private, deltas, queues, insurance, shared, quanta, response) = keys;
        let (priorities, [lossy, slow, failure], seed) = traffic;
        Case {
            fabric,
            delay,
            rate,
            alpha,
            private,
            deltas,
            queues,
            insurance,
            shared,
            quanta,
            response,
            mtu,
            load,
            priorities,
            lossy,
            slow,
            failure,
            seed,
        }
    })
}

impl Case {
    fn toml(&self, buffer: &str) -> String {
        let (host, fabric) = (
            format!("{{ rate = \"100Gbps\", delay = \"{}ns\" }}", self.delay),
            format!("{{ rate = \"{}Gbps\", delay = \"{}ns\" }}", self.rate, 4_000 - self.delay),
        );
        let (fabric, link) = [
            (
                format!(
                    "kind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\nhost_link = {host}\nfabric_link = {fabric}"
                ),
                "S0.0-S1.0",
            ),
            (format!("kind = \"ring\"\nswitches = 4\nhosts_per_switch = 2\nlink = {fabric}"), "S0.0-S0.1"),
            (format!("kind = \"line\"\nswitches = 3\nhosts_per_switch = 3\nlink = {host}"), "S0.0-S0.1"),
        ][self.fabric]
        .clone();
        let [first, second] = self.priorities;
        let mut text = format!(
            "[topology]\n{fabric}\n[switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"dsh\"\nalpha = {}\n\
             private = \"{}B\"\ndelta_queue = \"{}B\"\ndelta_port = \"{}B\"\nquanta = {}\nresponse_time = \"{}ns\"\n",
            self.alpha, self.private, self.deltas[0], self.deltas[1], self.quanta, self.response
        );
        if let Some(queues) = self.queues {
            text += &format!("queues = {queues}\n");
        }
        if self.insurance {
            text += "insurance = \"200kB\"\n";
        }
        text += &format!(
            "[transport]\nmtu = \"{}B\"\nrto = \"200us\"\n[run]\nduration = \"200us\"\ndrain = \"100us\"\nseed = {}\n\
             [measure]\nblocking = {}\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"fb-hadoop\"\nload = 0.{}\npriority = {first}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 5\nsize = \"60kB\"\nperiod = \"50us\"\npriority = {second}\n",
            self.mtu,
            self.seed,
            self.seed.is_multiple_of(2),
            self.load,
        );
        if self.lossy && first != second {
            text += &format!("[[priority]]\nid = {second}\nlossless = false\n");
        }
        if self.slow {
            text += "[[slow_receiver]]\nhost = \"H1\"\nrate = \"20Gbps\"\n[[slow_receiver]]\nhost = \"H2\"\nstall_from = \"10us\"\nstall_until = \"70us\"\n";
        }
        if self.failure {
            text += &format!("[[failure]]\nlink = \"{link}\"\nat = \"40us\"\nuntil = \"81us\"\n");
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 160 / 256))]
    /// For any fabric, load, segment and failure: every lossless packet finds room (`run` asserts it), no insurance
    /// overflows, and two threads have the same result as one.
    #[test]
    fn nothing_is_lost_and_no_insurance_overflows(case in case()) {
        let large = plan(&case.toml("50MB"));
        let least = set_aside(&large) + u64::from(large.packet.largest());
        let text = case.toml(&format!("{}B", least + case.shared));
        let plan = plan(&text);
        let outcome = run(&plan);
        prop_assert!(report(&outcome).peak <= most_insurance(&plan), "{text}");
        for (peak, account) in outcome.accounts.iter().zip(&plan.accounts) {
            prop_assert!(peak.headroom <= account.headroom.as_ref().map_or(0, |h| h.total), "{text}");
        }
        let two = xoff_sim::run_on(&plan, 2, &mut |_| true);
        prop_assert!(outcome == two, "threads differ\n{text}");
    }

    /// Without an end: everything completes and the oracle was silent, or it fired and then the run starves.
    #[test]
    fn the_oracle_reports_exactly_the_permanent_waits(
        n in 3usize..6, reach in 1usize..4, shared in 2u64..60, alpha in 0.001f64..2.0, seed in 0u64..1_000,
        priorities in prop::collection::vec(1u8..4, 1..5), deltas in [0u64..20, 0u64..20], private in 0u64..8,
    ) {
        let toml = |buffer: &str| ring(n, reach.min(n - 1), &priorities, &format!(
            "[switch]\nbuffer = \"{buffer}\"\n[flow_control]\nscheme = \"dsh\"\nalpha = {alpha}\nprivate = \"{private}kB\"\n\
             delta_queue = \"{}kB\"\ndelta_port = \"{}kB\"\n[run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"100kB\"\nto = \"random\"\n", deltas[0], deltas[1],
        ));
        let large = plan(&toml("50MB"));
        let text = toml(&format!("{}B", set_aside(&large) + shared * 1_000 + 2_000));
        let outcome = run(&plan(&text));
        match &outcome.deadlock {
            None => prop_assert_eq!(outcome.stop, Stop::AllDone, "{}", text),
            Some(_) => prop_assert_eq!(outcome.stop, Stop::Starved, "{}", text),
        }
    }
}

/// A ring of `n` switches with a host each. The flow from each host goes around the ring for `hops` links, in the
/// priorities in turn.
fn ring(n: usize, hops: usize, priorities: &[u8], more: &str) -> String {
    let names = |prefix: &str| (0..n).map(|i| format!("\"{prefix}{i}\"")).collect::<Vec<_>>().join(", ");
    let links = (0..n).flat_map(|i| {
        let next = (i + 1) % n;
        [(format!("H{i}"), format!("S{i}")), (format!("S{i}"), format!("S{next}"))]
    });
    let links: Vec<String> =
        links.map(|(a, b)| format!("{{a=\"{a}\", b=\"{b}\", rate=\"100Gbps\", delay=\"1us\"}}")).collect();
    let flows = (0..n).map(|i| {
        let around: Vec<String> = (0..=hops).map(|hop| format!("\"S{}\"", (i + hop) % n)).collect();
        format!(
            "[[traffic]]\nkind = \"flow\"\nsrc = \"H{i}\"\ndst = \"H{}\"\nsize = \"1MB\"\npriority = {}\n\
             path = [\"H{i}\", {}, \"H{0}\"]\n",
            (i + hops) % n,
            priorities[i % priorities.len()],
            around.join(", ")
        )
    });
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [{}]\n{more}{}",
        names("H"),
        names("S"),
        links.join(",\n"),
        flows.collect::<String>()
    )
}
