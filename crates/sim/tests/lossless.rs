//! With the formula's headroom nothing is ever lost, and the formula is tight.

use crate::common;

use common::{plan, run};
use proptest::prelude::*;
use xoff_sim::outcome::DropReason;

/// A random fabric: a tree of switches with a few extra links, hosts on them.
#[derive(Clone, Debug)]
struct Fabric {
    /// (parent, rate in Gbit/s, delay in ns) of each switch but the first.
    tree: Vec<(usize, u64, u64)>,
    extra: Vec<(usize, usize)>,
    /// (switch, rate, delay) of each host.
    hosts: Vec<(usize, u64, u64)>,
}

impl Fabric {
    fn toml(&self) -> String {
        let switches = self.tree.len() + 1;
        let mut links = Vec::new();
        let mut link = |a: String, b: String, rate: u64, delay: u64| {
            links.push(format!("{{a=\"{a}\", b=\"{b}\", rate=\"{rate}Gbps\", delay=\"{delay}ns\"}}"));
        };
        for (i, &(parent, rate, delay)) in self.tree.iter().enumerate() {
            link(format!("S{}", i + 1), format!("S{}", parent % (i + 1)), rate, delay);
        }
        for &(a, b) in &self.extra {
            if a % switches != b % switches {
                link(format!("S{}", a % switches), format!("S{}", b % switches), 100, 500);
            }
        }
        for (i, &(at, rate, delay)) in self.hosts.iter().enumerate() {
            link(format!("A{i}"), format!("S{}", at % switches), rate, delay);
        }
        let names = |prefix, n| (0..n).map(|i| format!("\"{prefix}{i}\"")).collect::<Vec<_>>().join(", ");
        format!(
            "[topology]\nkind = \"custom\"\nhosts = [{}]\nswitches = [{}]\nlinks = [{}]\n",
            names("A", self.hosts.len()),
            names("S", switches),
            links.join(",\n  ")
        )
    }
}

fn fabric() -> impl Strategy<Value = Fabric> {
    let rate = || prop::sample::select(vec![10u64, 25, 40, 100, 400]);
    (
        prop::collection::vec((0usize..8, rate(), 0u64..4_000), 0..4),
        prop::collection::vec((0usize..8, 0usize..8), 0..3),
        prop::collection::vec((0usize..8, rate(), 0u64..2_000), 3..8),
    )
        .prop_map(|(tree, extra, hosts)| Fabric { tree, extra, hosts })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 200 / 256))]
    /// `run` asserts conservation and that no lossless packet was dropped; the
    /// peaks of every account stay within its headroom.
    #[test]
    fn pfc_with_the_formulas_headroom_never_drops(
        fabric in fabric(), seed in 0u64..10_000, load in 0.2f64..1.5, fan_in in 2u32..7, burst in 1u64..400,
        threshold in prop_oneof![
            (1u64..200, 0u64..100).prop_map(|(xoff, gap)| format!("xoff = \"{xoff}kB\"\nxon = \"{}kB\"", xoff.saturating_sub(gap))),
            (0.001f64..8.0, 0u64..30).prop_map(|(alpha, offset)| format!("alpha = {alpha}\nxon_offset = \"{offset}kB\"")),
        ],
        mtu in 200u64..4_000, response in 0u64..3_000, quanta in prop::sample::select(vec![300u32, 1_000, 65_535]),
        every in 1u32..4, slow in prop::option::of((1u64..50, any::<bool>())), two_priorities in any::<bool>(), lossy in any::<bool>(),
    ) {
        let n = fabric.hosts.len() as u32;
        let mut text = fabric.toml() + &format!(
            "[switch]\nbuffer = \"12MB\"\n[host]\nbuffer = \"12MB\"\n[flow_control]\nscheme = \"pfc\"\n{threshold}\n\
             response_time = \"{response}ns\"\nquanta = {quanta}\n[transport]\nmtu = \"{mtu}B\"\nack_every = {every}\n\
             [run]\nduration = \"300us\"\ndrain = \"300us\"\nseed = {seed}\n\
             [[traffic]]\nkind = \"poisson\"\nsizes = \"{}\"\nload = {load}\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"{burst}kB\"\nperiod = \"50us\"\npriority = {}\n",
            if seed % 2 == 0 { "websearch" } else { "fb-hadoop" }, fan_in.min(n - 1), if two_priorities { 5 } else { 3 },
        );
        if two_priorities && lossy {
            // Priority 5 is dropped, not paused, and may fill all that is shared.
            text = text.replace("scheme = \"pfc\"\n", "scheme = \"pfc\"\npriorities = [3]\n")
                + "[[priority]]\nid = 5\ntier = 9\negress_limit = \"20MB\"\n";
        }
        if let Some((rate, stall)) = slow {
            text += &format!("[[slow_receiver]]\nhost = \"A0\"\nrate = \"{rate}Gbps\"\n");
            if stall {
                text += "stall_from = \"50us\"\nstall_until = \"200us\"\n";
            }
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        for (peak, account) in outcome.accounts.iter().zip(&plan.accounts) {
            prop_assert!(peak.headroom <= account.headroom.as_ref().map_or(0, |h| h.total));
        }
    }

    /// Without flow control packets drop, go-back-N repeats them, and every flow
    /// still gets every byte through in the end.
    #[test]
    fn a_lossy_fabric_still_delivers(fabric in fabric(), seed in 0u64..10_000, fan_in in 2u32..7, buffer in 20u64..400) {
        let n = fabric.hosts.len() as u32;
        let text = fabric.toml() + &format!(
            "[switch]\nbuffer = \"{buffer}kB\"\n[flow_control]\nscheme = \"none\"\n[run]\nseed = {seed}\n[transport]\nrto = \"200us\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"100kB\"\n[[traffic]]\nkind = \"permutation\"\nsize = \"50kB\"\n",
            fan_in.min(n - 1),
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        prop_assert!(outcome.flows.iter().zip(&plan.flows).all(|(r, f)| r.completed.is_some() && r.delivered_bytes == f.size));
    }
}

/// The worst case, constructed: H0's packets fill an ingress of the switch whose
/// egress hardly moves; at the crossing of XOFF the switch has just begun a
/// largest packet towards H0, and H0 begins its last packet just before the pause
/// takes effect (the response time is chosen so that the terms add up to whole
/// packets and 4 B, the distance of the phases that are tried).
fn drops_with(headroom: u64, start_ps: u64) -> bool {
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"H0\", \"H1\", \"H2\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"H0\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}},\n\
         {{a=\"H1\", b=\"X\", rate=\"1Mbps\", delay=\"1us\"}},\n\
         {{a=\"H2\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"50kB\"\nxon = \"10kB\"\nheadroom = \"{headroom}B\"\nresponse_time = \"34240ps\"\n\
         [transport]\nmtu = \"1000B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n\
         [run]\nduration = \"30us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1MB\"\nstart = \"5us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H2\"\ndst = \"H0\"\nsize = \"1MB\"\nstart = \"{start_ps}ps\"\n"
    );
    let outcome = xoff_sim::run(&plan(&text), &mut |_| true);
    assert!(outcome.pauses.iter().any(|p| p.from < 30_000_000), "PFC fired");
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::HeadroomFull));
    !outcome.drops.is_empty()
}

#[test]
fn the_least_headroom_that_never_drops_is_the_formula() {
    // 2 us of cable, 34.24 ns of response, two largest packets and the frame.
    let formula = 25_000 + 428 + 2 * 1_062 + 64;
    let packet_time = 84_960;
    // The reverse packet may begin at any phase: try them 4 B apart.
    let drops = |headroom| (0..packet_time / 320).any(|step| drops_with(headroom, step * 320));
    let (mut bad, mut good) = (formula - 3_000, formula);
    assert!(drops(bad), "{bad} B are too few");
    assert!(!drops(good), "{good} B are enough");
    while good - bad > 1 {
        let middle = (good + bad) / 2;
        if drops(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    println!("formula {formula} B, least that never drops {good} B");
    assert!(formula - good <= 64, "the formula is loose by {} B", formula - good);
}
