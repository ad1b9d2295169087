//! Roundabout: every deadlock is found, soon, by a switch that is part of it.

mod common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::roundabout::dissolve::Step;
use xoff_sim::outcome::{Held, Stop};

/// A ring of switches with a host each; flows over `reach` links clockwise.
#[derive(Clone, Debug)]
struct Ring {
    switches: usize,
    reach: usize,
    /// When each host begins, in nanoseconds.
    starts: Vec<u64>,
    xoff: u64,
    seed: u64,
}

fn rings() -> impl Strategy<Value = Ring> {
    (3usize..9).prop_flat_map(|n| {
        let starts = prop::collection::vec(prop_oneof![Just(0u64), 0u64..20_000], n);
        (2..n, starts, 10u64..60, 0u64..10_000).prop_map(move |(reach, starts, xoff, seed)| Ring {
            switches: n,
            reach,
            starts,
            xoff,
            seed,
        })
    })
}

impl Ring {
    /// Under Roundabout, with one packet of headroom more than PFC needs (section IV-B).
    fn plan(&self, keys: &str) -> Plan {
        plan(&self.text(keys))
    }

    fn text(&self, keys: &str) -> String {
        let (n, xoff, seed) = (self.switches, self.xoff, self.seed);
        let mut text = format!(
            "[topology]\nkind=\"ring\"\nswitches={n}\nhosts_per_switch=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [run]\nseed={seed}\n[flow_control]\nscheme=\"roundabout\"\nspare=\"1062B\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n{keys}\n",
            xoff / 2
        );
        for (i, start) in self.starts.iter().enumerate() {
            let path: Vec<String> = (0..=self.reach).map(|j| format!("\"S0.{}\"", (i + j) % n)).collect();
            let dst = (i + self.reach) % n;
            text += &format!(
                "[[traffic]]\nkind=\"flow\"\nsrc=\"H{i}\"\ndst=\"H{dst}\"\nsize=\"4MB\"\nstart=\"{start}ns\"\n\
                 path=[\"H{i}\",{},\"H{dst}\"]\n",
                path.join(",")
            );
        }
        text
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// The oracle names the egress queues that stand, a switch its ingress queue that pauses one
    /// of them. From the last pause of the loop it takes two turns around it at most (section VI-B;
    /// one where no pause has just been taken back), and nothing is found where nothing stands
    /// for ever.
    #[test]
    fn every_deadlock_is_found(ring in rings()) {
        let plan = ring.plan("dissolve=false");
        let outcome = run(&plan);
        let Some(deadlock) = &outcome.deadlock else {
            prop_assert!(outcome.detections.is_empty());
            return Ok(());
        };
        let pauses = |h: &Held| outcome.pauses.iter().rfind(|p| (p.port, p.lane) == (h.port, h.lane));
        let last = deadlock.cycle.iter().filter_map(pauses).map(|p| p.from).max().expect("a cycle");
        let [found] = outcome.detections[..] else { panic!("{} detections", outcome.detections.len()) };
        let stands = plan.topology.ports[found.port as usize].peer;
        prop_assert!(deadlock.cycle.iter().any(|h| (h.port, h.lane) == (stands, found.lane)));
        // A frame and a link, and a packet that the frame waits behind.
        let hop = 1_000_000 + 64 * 80 + u64::from(plan.packet.largest()) * 80;
        prop_assert!(found.at <= last + 2 * deadlock.cycle.len() as u64 * hop, "{found:?} after {last}");
    }

    /// Deadlocks form again and again and are dissolved, with one packet of spare headroom on each link: all
    /// flows end, nothing is lost, and every packet comes in its order. (A look of the oracle may
    /// meet one that is about to be dissolved. An attempt may be given up where a pause of the loop
    /// is taken back before all have their seats.)
    #[test]
    fn every_deadlock_is_dissolved(ring in rings()) {
        let outcome = run(&ring.plan(""));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped, f.retransmitted) == (0, 0, 0)));
        let steps = |step: Step| outcome.attempts.iter().filter(|a| a.step == step).count();
        prop_assert!(steps(Step::Dissolved) + 1 >= outcome.detections.len() / 2);
    }
}

/// The same bytes on one thread and on two.
#[test]
fn threads_change_nothing() {
    for seed in 0..4 {
        let ring = Ring { switches: 4, reach: 3, starts: vec![700, 2_100, 1_400, 0], xoff: 20, seed };
        let plan = ring.plan("");
        let (one, two) = (run(&plan), xoff_sim::run_on(&plan, 2, &mut |_| true));
        assert!(!one.attempts.is_empty());
        assert_eq!((two.flows, two.pauses, two.attempts), (one.flows, one.pauses, one.attempts));
    }
}

/// In a network of nodes that relay, loops overlap, and one that is being dissolved waits for
/// another: nothing is lost or out of order, and more gets through than before they first form.
#[test]
fn loops_that_overlap() {
    let text = std::fs::read_to_string("../../examples/bcube-deadlock.toml").expect("the example");
    let scheme = |name: &str| run(&plan_with(&text, &[("flow_control.scheme", name)]));
    let delivered = |o: &xoff_sim::outcome::Outcome| o.flows.iter().map(|f| f.delivered_bytes).sum::<u64>();
    let (pfc, outcome) = (scheme("pfc"), scheme("roundabout"));
    assert!(pfc.deadlock.is_some());
    assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped) == (0, 0)));
    let steps = |step: Step| outcome.attempts.iter().filter(|a| a.step == step).count();
    assert!(steps(Step::Dissolved) > 5 && steps(Step::GivenUp) > 5);
    assert!(delivered(&outcome) > 2 * delivered(&pfc), "{} {}", delivered(&outcome), delivered(&pfc));
}
