//! Hosts that pass pauses on blindly: the times, the cost, the closed cycles, and their detection by both
//! oracles.

use crate::common;

use common::{plan, run};
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Stop};

/// The egress port of node `a` that leads to node `b`.
fn port(plan: &Plan, a: &str, b: &str) -> PortId {
    let node = |name: &str| plan.topology.find(name).expect("a node");
    let ports = &plan.topology.nodes[node(a) as usize].ports;
    *ports.iter().find(|&&p| plan.topology.neighbour(p) == node(b)).expect("neighbours")
}

/// A sends to X over the host R, after which the last link is slow. R has another neighbour, B, whose packets
/// never have to wait.
fn line(relay: &str) -> String {
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"R\", \"X\", \"B\"]\nrelay_hosts = true\n\
         switches = [\"S0\", \"S1\", \"S2\"]\nlinks = [\n\
         {{a=\"A\", b=\"S0\", rate=\"100Gbps\", delay=\"100ns\"}}, {{a=\"S0\", b=\"R\", rate=\"100Gbps\", delay=\"100ns\"}},\n\
         {{a=\"R\", b=\"S1\", rate=\"100Gbps\", delay=\"100ns\"}}, {{a=\"S1\", b=\"X\", rate=\"10Gbps\", delay=\"100ns\"}},\n\
         {{a=\"B\", b=\"S2\", rate=\"100Gbps\", delay=\"100ns\"}}, {{a=\"S2\", b=\"R\", rate=\"100Gbps\", delay=\"100ns\"}}]\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"5kB\"\nxon = \"2kB\"\nrelay = \"{relay}\"\n\
         [transport]\nmtu = \"938B\"\nheader = \"62B\"\nack_every = 1000000\nrto = \"1s\"\n\
         [measure]\nblocking = true\n[run]\nduration = \"6us\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"X\"\nsize = \"28140B\"\n"
    )
}

/// Worked out by hand, as in `blocking.rs`: a packet takes 80 ns to send and 180
/// to arrive, 800 ns on the slow link; a pause frame 5.12 and 100. Packet i comes
/// to S0 at 180 + 80 i, to R at 360 + 80 i, to S1 at 540 + 80 i. S1 has 5 kB when
/// packet 5 arrives, at 940: it pauses R from 1045.12 to 5445.12. At once, R
/// pauses both its other neighbours, each 105.12 later, and lets them go likewise;
/// only packets 9 and 10 arrive at R in the meantime (packet 10 was on the wire
/// from 980 to 1060, packet 11 from 1060 to 1140, and packet 12 from 1140 to 1220,
/// when the pause takes effect), so that its account stays under 5 kB.
#[test]
fn a_pause_is_passed_on_at_once_and_so_is_its_end() {
    let plan_of = |relay: &str| plan(&line(relay));
    let blind = plan_of("blind");
    let outcome = run(&blind);
    let at = |a, b| port(&blind, a, b);
    let root = Some(at("S1", "X"));
    let mut pauses: Vec<_> = outcome.pauses.iter().map(|p| (p.from, p.until, p.port, p.root)).collect();
    pauses.sort_unstable();
    let first = pauses.iter().filter(|p| p.0 < 1_200_000).copied().collect::<Vec<_>>();
    assert_eq!(
        first,
        [
            (1_045_120, Some(5_445_120), at("R", "S1"), root),
            (1_150_240, Some(5_550_240), at("S0", "R"), root),
            (1_150_240, Some(5_550_240), at("S2", "R"), root),
        ]
    );
    // By its account R would have paused S0 when the fifth packet waited, and S2 never.
    let counted = plan_of("accounts");
    let outcome = run(&counted);
    let from = |port: PortId| outcome.pauses.iter().find(|p| p.port == port).map(|p| p.from);
    assert_eq!(from(port(&counted, "R", "S1")), Some(1_045_120));
    assert_eq!(from(port(&counted, "S0", "R")), Some(1_505_120));
    assert_eq!(from(port(&counted, "S2", "R")), None);
}

/// R is paused, so its queue grows beyond the threshold, and so does that of S1.
#[test]
fn hosts_mark_what_they_forward_if_they_should() {
    for (hosts, at_hosts) in [("", true), ("hosts = true\n", true), ("hosts = false\n", false)] {
        for at in ["enqueue", "dequeue"] {
            let ecn = format!("[ecn]\nk_min = \"2kB\"\nk_max = \"2kB\"\np_max = 1.0\nat = \"{at}\"\n{hosts}");
            let plan = plan(&(line("accounts") + &ecn));
            let outcome = run(&plan);
            let marks = |a, b| outcome.ports[port(&plan, a, b) as usize].marks;
            assert_eq!((marks("R", "S1") > 0, marks("S1", "X") > 0), (at_hosts, true), "{hosts} {at}");
        }
    }
}

/// Two four-hop flows in opposite directions through an NDC(2, 1): H0 over H1 to
/// H3 and back over H2. H3 does not read for a while.
fn opposite(relay: &str) -> String {
    format!(
        "[topology]\nkind = \"ndc\"\nn = 2\nk = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"75kB\"\nxon = \"50kB\"\nrelay = \"{relay}\"\n\
         [[slow_receiver]]\nhost = \"H3\"\nstall_from = \"20us\"\nstall_until = \"400us\"\n\
         [transport]\nack_priority = 6\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"20MB\"\npath = [\"H0\", \"S0.0\", \"H1\", \"S1.1\", \"H3\"]\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H3\"\ndst = \"H0\"\nsize = \"20MB\"\npath = [\"H3\", \"S0.1\", \"H2\", \"S1.0\", \"H0\"]\n"
    )
}

/// PortFC's Figure 5: with blind relays two opposite flows that end at hosts close a cycle, with accounts
/// they do not.
#[test]
fn two_opposite_flows_deadlock_only_blind_relays() {
    let blind = plan(&opposite("blind"));
    let outcome = run(&blind);
    assert_eq!(outcome.stop, Stop::Starved);
    let deadlock = outcome.deadlock.as_ref().expect("the pauses went round");
    let mut cycle: Vec<PortId> = deadlock.cycle.iter().map(|h| h.port).collect();
    // Around: every queue of the two flows, and the hosts' own, whose pauses are passed on.
    let around = ["H0", "S0.0", "H1", "S1.1", "H3", "S0.1", "H2", "S1.0"];
    let mut expected: Vec<PortId> = (0..8).map(|i| port(&blind, around[i], around[(i + 1) % 8])).collect();
    for (i, held) in deadlock.cycle.iter().enumerate() {
        let next = &deadlock.cycle[(i + 1) % deadlock.cycle.len()];
        assert_eq!(blind.topology.neighbour(held.port), blind.topology.ports[next.port as usize].node);
    }
    cycle.sort_unstable();
    expected.sort_unstable();
    assert_eq!(cycle, expected);
    stands_for_ever(&outcome);
    assert!(!outcome.waiting.is_empty());

    let counted = run(&plan(&opposite("accounts")));
    assert_eq!((counted.stop, counted.deadlock), (Stop::AllDone, None));
}

/// The queues of the oracle's deadlock have not moved since it closed.
fn stands_for_ever(outcome: &Outcome) {
    let deadlock = outcome.deadlock.as_ref().expect("a deadlock");
    for held in &deadlock.cycle {
        let last = outcome.pauses.iter().rfind(|p| p.port == held.port && p.lane == held.lane);
        let last = last.expect("it was paused");
        assert_eq!(last.until, None, "{deadlock:?}");
        assert!(deadlock.seen >= last.from);
    }
}

/// A random load on an NDC(3, 1), sometimes with a link that fails and comes back.
fn random(seed: u64) -> String {
    let failure = match seed % 3 {
        0 => "[[failure]]\nlink = \"H0-S0.0\"\nat = \"40us\"\nuntil = \"90us\"\n",
        1 => "[[loss]]\nlink = \"H1-S0.0\"\nrate = 0.01\n",
        _ => "",
    };
    format!(
        "[topology]\nkind = \"ndc\"\nn = 3\nk = 1\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
         [switch]\nbuffer = \"20MB\"\n\
         [flow_control]\nscheme = \"pfc\"\nxoff = \"{}kB\"\nxon = \"10kB\"\nrelay = \"blind\"\nquanta = 2000\n\
         [transport]\nrto = \"500us\"\n[measure]\nblocking = true\ninterval = \"100us\"\n{failure}\
         [[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"100kB\"\nperiod = \"{}us\"\nstop = \"100us\"\n\
         [[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = 0.{}\nstop = \"100us\"\n\
         [run]\nseed = {seed}\nduration = \"100us\"\ndrain = \"3ms\"\n",
        [20, 60, 200][(seed / 3 % 3) as usize],
        10 + seed % 40,
        2 + seed % 7,
    )
}

/// The oracle reports if, and only if, a cycle is paused permanently; and threads change nothing.
#[test]
fn the_oracle_is_right_and_threads_agree() {
    let mut locked = 0;
    for seed in 0..18 {
        let plan = plan(&random(seed));
        let outcome = if seed % 3 == 1 { xoff_sim::run(&plan, &mut |_| true) } else { run(&plan) };
        if seed % 4 == 0 {
            let threaded = xoff_sim::run_on(&plan, 2 + (seed % 2) as usize, &mut |_| true);
            assert!(outcome == threaded, "seed {seed} differs on several threads");
        }
        match &outcome.deadlock {
            Some(_) => {
                locked += 1;
                stands_for_ever(&outcome);
                assert_ne!(outcome.stop, Stop::AllDone);
            }
            None => assert_eq!(outcome.stop, Stop::AllDone, "seed {seed} waits: {:?}", outcome.waiting),
        }
    }
    println!("{locked} of 18 locked up");
    assert!((1..18).contains(&locked), "{locked} of 18 locked up: the test sees one side only");
}
