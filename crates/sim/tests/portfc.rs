//! PortFC over whole networks: its promises, the purposes of its parts, and the effects of its pauses.

use crate::common;

use common::{plan, plan_with, run};
use std::fmt::Write;
use xoff_kernel::random::Stream;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::portfc::map::Role;
use xoff_schemes::flow_control::portfc::{Doubt, PortFcParams};
use xoff_sim::outcome::{Outcome, Stop};

const PAPER: &str = "[topology]\nkind = \"ndc\"\nn = 4\nk = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
     [flow_control]\nscheme = \"portfc\"\n";

/// A segment of four domains, under two aggregation switches.
const RAILS: &str = "[topology]\nkind = \"rail-optimized\"\nn = 4\nsegments = 1\naggregations = 2\n\
     domain_link = { rate = \"100Gbps\", delay = \"1us\" }\nrail_link = { rate = \"100Gbps\", delay = \"1us\" }\n\
     [flow_control]\nscheme = \"portfc\"\n";

fn portfc(plan: &Plan) -> &PortFcParams {
    match &plan.flow_control {
        FlowControlParams::PortFc(portfc) => portfc,
        other => panic!("{other:?}"),
    }
}

/// No loss, no retransmission, no cycle; no switch held more than the sufficient bytes; no pause went further
/// than three links, and all packets that waited in a queue were on a path through the port that its pause
/// named.
fn promises(plan: &Plan, outcome: &Outcome) {
    assert_eq!(outcome.drops, []);
    assert_eq!(outcome.deadlock, None);
    for result in &outcome.flows {
        assert_eq!((result.retransmitted, result.out_of_order, result.nacks, result.timeouts), (0, 0, 0, 0));
    }
    let fc = portfc(plan);
    assert!(fc.doubts.iter().all(|d| *d == Doubt::NothingSlows), "{:?}", fc.doubts);
    for (node, bound) in plan.topology.nodes.iter().zip(&fc.needs) {
        let peak = outcome.buffer_peaks[plan.topology.find(&node.name).expect("itself") as usize];
        assert!(bound.total() == 0 || peak <= bound.total(), "{}: {peak} of {bound:?}", node.name);
    }
    for pause in &outcome.pauses {
        let queue = pause.queue.expect("queues are paused one by one") as u16;
        assert_eq!(pause.named_root, fc.map.leads_to(pause.port, queue));
        let role = fc.map.role(pause.port, queue);
        assert!([Role::FourHop, Role::TwoHop, Role::Ihfq, Role::Onward].contains(&role), "{role:?}");
        // Equations 1 and 2: a direct queue pauses type b one link away and type A two
        // links away. Type A then pauses type a, three links away.
        match (role, pause.links) {
            (_, 0) => assert_eq!(pause.root, None),
            (Role::TwoHop | Role::FourHop, 1) | (Role::Ihfq, 2) | (Role::FourHop, 3) => {}
            // Up and down between switches: two links more for each of the two types, and one for empty queues of
            // packets that would go up again.
            (Role::Onward, 1..=3) | (Role::TwoHop, 2..=3) | (Role::Ihfq, 1..=6) | (Role::FourHop, 1..=7)
                if fc.map.tiers => {}
            other => panic!("{other:?}"),
        }
    }
    if let Some(blocking) = &outcome.blocking {
        assert_eq!(blocking.named.1, 0, "of {} waits", blocking.named.0);
    }
}

/// A random NDC(n, 1), n up to 6, or segments of rails under aggregation switches, under bursts and background of any
/// kind; the flow control is left out.
fn scenario(case: u64, aggregated: bool) -> String {
    let mut random = Stream::new(case, "scenario", 0);
    let mut pick = |from: u64, to: u64| from + random.below(to - from + 1);
    let n = pick(2, 6);
    let mut hosts = n * n;
    let mut topology = format!("kind = \"ndc\"\nn = {n}\nk = 1");
    if aggregated {
        let (n, domains, segments) = (pick(2, 4), pick(2, 3), pick(1, 3));
        hosts = n * domains * segments;
        topology = format!(
            "kind = \"rail-optimized\"\nn = {n}\ndomains = {domains}\nsegments = {segments}\naggregations = {}",
            pick(1, 3)
        );
    }
    let link = format!(
        "{{ rate = \"{}Gbps\", delay = \"{}ns\" }}",
        [25, 100, 400][pick(0, 2) as usize],
        pick(100, 3_000)
    );
    let links = match aggregated {
        true => format!("domain_link = {link}\nrail_link = {link}"),
        false => format!("link = {link}"),
    };
    let mut text = format!(
        "[topology]\n{topology}\n{links}\n\
         [switch]\nbuffer = \"1GB\"\n[host]\nbuffer = \"1GB\"\n[run]\nseed = {case}\nduration = \"120us\"\ndrain = \"20ms\"\n\
         [transport]\nkind = \"go-back-n\"\nrto = \"1s\"\nmtu = \"{}B\"\n[measure]\nblocking = true\n",
        pick(500, 4_000),
    );
    for _ in 0..pick(1, 3) {
        let _ = match pick(0, 4) {
            0 | 1 => write!(
                text,
                "[[traffic]]\nkind = \"incast\"\nfan_in = {}\nsize = \"{}kB\"\nstart = \"{}us\"\nto = \"H{}\"\n",
                pick(1, hosts - 1),
                pick(1, 200),
                pick(0, 50),
                pick(0, hosts - 1)
            ),
            2 => write!(text, "[[traffic]]\nkind = \"permutation\"\nsize = \"{}kB\"\n", pick(50, 600)),
            3 => {
                write!(text, "[[traffic]]\nkind = \"all-to-all\"\nsize = \"{}kB\"\n", pick(1, 1_500 / hosts))
            }
            _ => write!(
                text,
                "[[traffic]]\nkind = \"poisson\"\nload = 0.{}\nload_of = \"host-links\"\nsizes = \"websearch\"\n",
                pick(5, 9)
            ),
        };
    }
    text
}

/// The theorem, and a proof that the cases are relevant: of the same networks and flows some deadlock under
/// PFC.
fn random_networks(cases: std::ops::Range<u64>, aggregated: bool) {
    let (mut locked, mut pauses, mut links) = (0, 0, [0u32; 8]);
    for case in cases {
        let mut random = Stream::new(case, "thresholds", 0);
        let (xoff, response) = (1 + random.below(80), random.below(1_500));
        let (on, ddq) = (random.below(xoff + 1), 1 + random.below(80));
        // Of the second hundred, half of the networks.
        let qlen = if case >= 100 && case % 2 == 1 { "longest" } else { "sum" };
        let scheme = format!(
            "[flow_control]\nscheme = \"portfc\"\nxoff = \"{}kB\"\nxon = \"{on}kB\"\nddq_xoff = \"{ddq}kB\"\nresponse_time = \"{response}ns\"\nqlen = \"{qlen}\"\n",
            xoff.max(1)
        );
        let plan_of = plan(&(scenario(case, aggregated) + &scheme));
        let outcome = run(&plan_of);
        promises(&plan_of, &outcome);
        assert_eq!(outcome.stop, Stop::AllDone, "case {case}");
        pauses += outcome.pauses.len();
        outcome.pauses.iter().for_each(|p| links[p.links as usize] += 1);
        let pfc = plan(
            &(scenario(case, aggregated)
                + &format!("[flow_control]\nscheme = \"pfc\"\nxoff = \"{xoff}kB\"\nxon = \"0B\"\n")),
        );
        locked += u32::from(run(&pfc).deadlock.is_some());
    }
    assert!(pauses > 5_000 && links[1] > 0 && links[2] > 0 && links[3] > 0, "{pauses} {links:?}");
    // With aggregation switches few random flows close a cycle; `xoff check` shows one that does.
    assert!(aggregated || locked >= 5, "{locked} lock up under PFC");
    assert!(!aggregated || links[4..].iter().sum::<u32>() > 0, "{links:?}");
    println!("{locked} lock up under PFC; {pauses} pauses of PortFC, by links {links:?}");
}

#[test]
fn a_hundred_random_networks_lose_nothing_and_never_deadlock() {
    random_networks(0..100, false);
}

#[test]
fn another_hundred_random_networks_lose_nothing_and_never_deadlock() {
    random_networks(100..200, false);
}

/// The first queues of a port by their names.
fn names(plan: &Plan, node: &str, port: u16, count: u16) -> Vec<String> {
    let queues = plan.flow_control.onward_queues().expect("PortFC");
    let node = plan.topology.find(node).expect("a node");
    let port = plan.topology.port_at((node, port)).expect("a port");
    (0..count).map(|queue| queues.name(port, queue)).collect()
}

/// Section VI-D: aggregation switches above those of the rails.
#[test]
fn a_hundred_random_rail_optimized_networks_lose_nothing_and_never_deadlock() {
    random_networks(0..100, true);
}

#[test]
fn queues_are_named_by_their_role() {
    let plan = plan(&format!("{PAPER}{INCAST}"));
    let names = |node: &str, count| names(&plan, node, 0, count);
    // n = 4: n - 1 and the direct one, and 2 (n - 1) and the one of relayed packets.
    assert_eq!(names("S0.0", 4), ["ihfq 0", "ihfq 1", "ihfq 2", "ddq"]);
    let of_host = ["four-hop 0", "four-hop 1", "four-hop 2", "two-hop 3", "two-hop 4", "two-hop 5", "rq"];
    assert_eq!(names("H0", 7), of_host);

    // Four domains and two switches above: switches of rails have six ports, and n is 6.
    let rails = plan_with(&format!("{RAILS}{INCAST}"), &[]);
    let (ihfq, onward): (Vec<_>, Vec<_>) =
        ((0..5).map(|q| format!("ihfq {q}")).collect(), (5..10).map(|q| format!("onward {q}")).collect());
    assert_eq!(self::names(&rails, "S1.0", 0, 6), [&ihfq[..], &["ddq".to_string()]].concat());
    assert_eq!(self::names(&rails, "S1.0", 5, 10), [&ihfq[..], &onward[..]].concat());
    assert_eq!(self::names(&rails, "S2.1", 0, 10), [&ihfq[..], &onward[..]].concat());
}

/// All others send to one node, many over relays: its DDQ pauses them at one, two
/// and three links' distance.
const INCAST: &str =
    "[[traffic]]\nkind = \"incast\"\nfan_in = 15\nsize = \"1MB\"\nto = \"H0\"\n[transport]\nrto = \"1s\"\n";

#[test]
fn an_incast_pauses_at_one_two_and_three_links() {
    let plan = plan(&format!("{PAPER}{INCAST}[measure]\nblocking = true\n"));
    let outcome = run(&plan);
    promises(&plan, &outcome);
    assert_eq!(outcome.stop, Stop::AllDone);
    for links in 1..=3 {
        assert!(outcome.pauses.iter().any(|p| p.links == links), "{links}");
    }
    let direct = outcome.pauses.iter().filter(|p| p.links == 2).collect::<Vec<_>>();
    assert!(direct.iter().all(|p| p.root == p.named_root), "a direct queue is its own root");
    // A pause three links away names the port whose forwarding queue is paused.
    let far = outcome.pauses.iter().filter(|p| p.links == 3);
    assert!(far.clone().count() > 0 && far.clone().all(|p| p.root != p.named_root));
}

/// Hosts that relay hold almost nothing if relayed packets go first; after the hosts' own traffic these pile
/// up, and nothing can pause them.
#[test]
fn relayed_packets_pile_up_where_they_do_not_go_first() {
    // H1 relays from H4 (over S1.1) to H0 (over S0.0), and has much to send itself.
    let flows = "[run]\nduration = \"300us\"\n[transport]\nrto = \"1s\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H5\"\ndst = \"H0\"\npath = [\"H5\", \"S1.1\", \"H1\", \"S0.0\", \"H0\"]\nsize = \"2MB\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"4MB\"\n";
    let peak = |order: &str| {
        let plan = plan_with(&format!("{PAPER}{flows}"), &[("flow_control.relay_queue", order)]);
        let outcome = run(&plan);
        assert_eq!(outcome.drops, []);
        outcome.buffer_peaks[plan.topology.find("H1").expect("a host") as usize]
    };
    let (first, turns, last) = (peak("first"), peak("turns"), peak("last"));
    assert!(first <= 5_000, "{first}");
    assert!(turns > 500_000 && last > 1_500_000, "{turns} {last}");
}

/// If hosts do not pass frames on, the next switches continue to fill the congested queue over the relays.
#[test]
fn a_direct_queue_fills_up_where_frames_are_not_passed_on() {
    let peak = |relays: &str| {
        let plan = plan_with(&format!("{PAPER}{INCAST}"), &[("flow_control.relay_signals", relays)]);
        let outcome = run(&plan);
        let hosts = plan.topology.hosts().map(|h| outcome.buffer_peaks[h as usize]);
        (
            hosts.max().expect("hosts"),
            outcome.buffer_peaks[plan.topology.find("S0.0").expect("a switch") as usize],
        )
    };
    let (with, without) = (peak("true"), peak("false"));
    assert!(with.0 < 10_000 && without.0 < 10_000, "{with:?} {without:?}");
    // They come in at the switch of the receiver, and go on doing so.
    assert!(without.1 > 3 * with.1, "{with:?} {without:?}");
}

/// A switch of 1 MB is enough with all parts, and drops packets without any one of them.
#[test]
fn without_any_one_part_packets_are_lost_or_queues_stay_paused() {
    let text = format!(
        "{PAPER}[switch]\nbuffer = \"1MB\"\n[host]\nbuffer = \"200kB\"\n[transport]\nrto = \"1s\"\n\
         [run]\nduration = \"2ms\"\ndrain = \"20ms\"\n\
         [[traffic]]\nkind = \"poisson\"\nload = 0.8\nsizes = \"websearch\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\nperiod = \"200us\"\nto = \"rotate\"\n"
    );
    let with = plan(&text);
    let outcome = run(&with);
    promises_but_memory(&outcome);
    assert_eq!(outcome.stop, Stop::AllDone);
    for (key, value) in [("relay_queue", "last"), ("relay_signals", "false"), ("flags", "one")] {
        let plan = plan_with(&text, &[(&format!("flow_control.{key}"), value)]);
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        let lost = outcome.drops.iter().any(|d| d.lossless);
        let paused = outcome.pauses.iter().any(|p| p.until.is_none());
        let unfinished = outcome.flows.iter().any(|f| f.completed.is_none());
        assert!(lost || paused && unfinished, "{key} = {value}");
    }
}

fn promises_but_memory(outcome: &Outcome) {
    assert_eq!((outcome.drops.as_slice(), &outcome.deadlock), (&[][..], &None));
}

/// Forwarding queues of all directions pause one queue of a node, which makes victims
/// (`portfc.sum-detection-holb`): three flows from one node to the direction that is paused, and one to another
/// direction through the same relay. By the port that the frame names there are none; by the root there is one,
/// also where the longest queue decides and not the sum.
#[test]
fn the_forwarding_queues_have_victims_by_the_root() {
    // H5 is overloaded through S1.1 by H9 and H13, so S0.0's queue for it over H1 is paused and fills;
    // packets from H2 and H3 over H1 to H9 share H1's port.
    let mut text = format!("{PAPER}[transport]\nrto = \"1s\"\n[measure]\nblocking = true\n");
    let mut flow = |src: u32, dst: u32, over: &str, name: &str| {
        let _ = writeln!(
            text,
            "[[traffic]]\nkind = \"flow\"\nname = \"{name}\"\nsrc = \"H{src}\"\ndst = \"H{dst}\"\npath = [\"H{src}\", {over}, \"H{dst}\"]\nsize = \"1MB\""
        );
    };
    flow(9, 5, "\"S1.1\"", "a");
    flow(13, 5, "\"S1.1\"", "b");
    flow(2, 5, "\"S0.0\", \"H1\", \"S1.1\"", "c");
    flow(3, 5, "\"S0.0\", \"H1\", \"S1.1\"", "d");
    flow(3, 9, "\"S0.0\", \"H1\", \"S1.1\"", "victim");
    for qlen in ["\"sum\"", "\"longest\""] {
        let plan = plan_with(&text, &[("flow_control.qlen", qlen)]);
        let outcome = run(&plan);
        promises(&plan, &outcome);
        let blocking = outcome.blocking.as_ref().expect("measured");
        assert!(blocking.named.0 > 0);
        let victim =
            plan.flows.iter().position(|f| plan.classes[usize::from(f.class)] == "victim").expect("it");
        let blame = blocking.flows[victim];
        assert!(blame.source_victim > 0, "{qlen}: {blame:?}");
        let others = blocking.flows.iter().enumerate().filter(|(i, _)| *i != victim);
        assert!(others.clone().all(|(_, b)| b.victim + b.source_victim == 0), "{:?}", blocking.flows);
    }
}

/// Where the two layers differ in rate a relay may be fed faster than it is served, and then its queue has no
/// limit.
#[test]
fn unequal_rates_are_reported_without_a_bound() {
    let text = "[topology]\nkind = \"rail-only\"\nn = 4\ndomain_link = { rate = \"160Gbps\", delay = \"1us\" }\n\
         rail_link = { rate = \"100Gbps\", delay = \"1us\" }\n[flow_control]\nscheme = \"portfc\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\n[transport]\nrto = \"1s\"\n";
    let plan = plan(text);
    assert!(portfc(&plan).doubts.contains(&Doubt::UnequalRates));
    let outcome = run(&plan);
    assert_eq!((outcome.drops.len(), outcome.deadlock), (0, None));
}

/// Three relays in a ring, fed at line rate while they receive at line rate: the wire time of ACKs piles up
/// as packets in their relay queues, and when all of them then send to one host, these arrive at one direct
/// queue. So no memory is known to suffice, and xoff does not say so. DCQCN limits it to about its marking
/// threshold.
#[test]
fn a_ring_of_relays_at_line_rate_has_no_bound_and_is_not_given_one() {
    let mut text =
        format!("{PAPER}[switch]\nbuffer = \"64MB\"\n[run]\nduration = \"2ms\"\ndrain = \"2ms\"\n");
    // H1, H2 and H3 relay, over S0.0, packets that come over their switch of layer 1.
    for (relay, next) in [(1, 2), (2, 3), (3, 1)] {
        for (at, to, size) in [("0us", next, "12MB"), ("1ms", 0, "6MB")] {
            let _ = writeln!(
                text,
                "[[traffic]]\nkind = \"flow\"\nsrc = \"H{0}\"\ndst = \"H{to}\"\nstart = \"{at}\"\nsize = \"{size}\"\n\
                 path = [\"H{0}\", \"S1.{relay}\", \"H{relay}\", \"S0.0\", \"H{to}\"]",
                relay + 4
            );
        }
    }
    let peaks = |plan: &Plan| {
        let outcome = run(plan);
        let relays = plan.topology.hosts().map(|h| outcome.buffer_peaks[h as usize]).max();
        (relays.expect("hosts"), portfc(plan).doubts.clone())
    };
    let (without, doubts) = peaks(&plan(&text));
    assert!(without > 300_000, "{without}");
    assert_eq!(doubts, [Doubt::NothingSlows]);
    text += "[ecn]\nk_min = \"20kB\"\nk_max = \"80kB\"\np_max = 0.2\n";
    let with = plan_with(&text, &[("transport.congestion_control", "dcqcn")]);
    let (with, doubts) = peaks(&with);
    assert!(with < without / 4, "{with} {without}");
    assert_eq!(doubts, []);
}
