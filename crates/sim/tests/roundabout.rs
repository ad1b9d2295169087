//! Roundabout: every deadlock is found, soon, by a switch that is part of it.

mod common;

use common::{plan, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::roundabout::RoundaboutParams;
use xoff_schemes::flow_control::roundabout::dissolve::Step;
use xoff_sim::outcome::{Held, Stop};

/// The same plan under Roundabout.
fn roundabout(mut plan: Plan) -> Plan {
    let FlowControlParams::Pfc(pfc) = plan.flow_control else { panic!("PFC") };
    // One packet of headroom more than PFC needs (section IV-B).
    let spare = u64::from(plan.packet.largest());
    plan.accounts.iter_mut().filter_map(|a| a.headroom.as_mut()).for_each(|h| h.total += spare);
    let numbers = plan.topology.ports.iter().map(|p| p.index).collect();
    plan.flow_control = FlowControlParams::Roundabout(RoundaboutParams {
        pfc,
        numbers,
        seed: plan.seed,
        largest: plan.packet.largest(),
        patience: 200_000_000,
        audit: true,
        dissolves: true,
    });
    plan
}

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
    fn plan(&self) -> Plan {
        let (n, xoff, seed) = (self.switches, self.xoff, self.seed);
        let mut text = format!(
            "[topology]\nkind=\"ring\"\nswitches={n}\nhosts_per_switch=1\nlink={{rate=\"100Gbps\",delay=\"1us\"}}\n\
             [run]\nseed={seed}\n[flow_control]\nscheme=\"pfc\"\nxoff=\"{xoff}kB\"\nxon=\"{}kB\"\n",
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
        plan(&text)
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
        let mut plan = roundabout(ring.plan());
        let FlowControlParams::Roundabout(params) = &mut plan.flow_control else { unreachable!() };
        params.dissolves = false;
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

    /// It is dissolved as often as it forms: all flows end, nothing is lost, every packet comes in
    /// its order, and nobody gives up.
    #[test]
    fn every_deadlock_is_dissolved(ring in rings()) {
        let outcome = run(&roundabout(ring.plan()));
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        prop_assert!(outcome.deadlock.is_none());
        prop_assert!(outcome.flows.iter().all(|f| (f.out_of_order, f.dropped, f.retransmitted) == (0, 0, 0)));
        let given_up = outcome.attempts.iter().filter(|a| a.step == Step::GivenUp).count();
        prop_assert_eq!(given_up, 0);
    }
}

#[test]
fn try_it() {
    let mut shown = 0;
    for case in 0..2000u64 {
        let n = 3 + (case % 4) as usize;
        let reach = 2 + (case / 4) as usize % (n - 2);
        let starts = (0..n as u64).map(|i| (case * 7919 + i * 104729) % 3000).collect();
        let ring = Ring { switches: n, reach, starts, xoff: 10 + case % 50, seed: case };
        let plan = roundabout(ring.plan());
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        let lost: u64 = outcome.drops.iter().map(|d| d.packets).sum();
        let ooo: u64 = outcome.flows.iter().map(|f| f.out_of_order).sum();
        let gave = outcome.attempts.iter().filter(|a| a.step == Step::GivenUp).count();
        if lost + ooo > 0 || outcome.stop != Stop::AllDone || gave > 0 || outcome.deadlock.is_some() {
            shown += 1;
            if shown > 12 {
                break;
            }
            eprintln!(
                "X {case} {ring:?} lost {lost} at {:?} ooo {ooo} gave {gave} stop {:?} deadlock {:?} det {} att {}",
                outcome.drops.first().map(|d| (d.ingress, d.reason, d.first)),
                outcome.stop,
                outcome.deadlock.as_ref().map(|d| (d.closed, d.seen)),
                outcome.detections.len(),
                outcome.attempts.len()
            );
        }
    }
}
