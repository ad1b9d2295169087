//! Flows that wait for others: collectives against closed forms, to the picosecond.

use crate::common;

use common::{plan, plan_with, run};
use proptest::prelude::*;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{Outcome, Stop};

/// Picoseconds that a byte takes at 100 Gbit/s.
const BYTE: u64 = 80;
/// Delay of a link of the star.
const DELAY: u64 = 1_000_000;

/// `hosts` hosts at one switch, links of 100 Gbit/s and 1 us.
fn star(hosts: usize, rest: &str) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n{rest}"
    )
}

/// From the first bit at the sender to the last bit at the receiver, over one
/// switch, of `size` bytes in packets of 1000 B and 62 B of headers.
fn over_the_star(size: u64) -> u64 {
    let packets = size.div_ceil(1000);
    let last = size - (packets - 1) * 1000 + 62;
    // All packets leave back to back; the last one crosses the second link after the one before it, if that
    // is longer.
    let sent = ((packets - 1) * 1062 + last) * BYTE;
    let second = if packets > 1 { (1062 - last) * BYTE } else { 0 };
    sent + second + last * BYTE + 2 * DELAY
}

pub fn check_gates(plan: &Plan, outcome: &Outcome) {
    let mut all = vec![None; plan.gates.len()];
    for (g, gate) in plan.gates.iter().enumerate() {
        let opens: Vec<usize> =
            (0..plan.flows.len()).filter(|&f| plan.flows[f].opens == Some(g as u32)).collect();
        let before: Vec<usize> = (0..g).filter(|&b| plan.gates[b].then.contains(&(g as u32))).collect();
        assert_eq!(opens.len() + before.len(), gate.waits as usize);
        assert!(gate.then.iter().all(|&then| plan.gates[then as usize].host == gate.host && then > g as u32));
        let delivered = opens.iter().map(|&f| outcome.flows[f].delivered);
        let came: Option<Vec<u64>> = delivered.chain(before.iter().map(|&b| all[b])).collect();
        let opened = came.map(|all| all.into_iter().max().unwrap_or(0).max(gate.start) + gate.delay);
        all[g] = opened;
        let opened = opened.filter(|&t| t < plan.end.unwrap_or(u64::MAX));
        for &flow in &gate.flows {
            assert_eq!(plan.flows[flow as usize].after, Some(g as u32));
            assert_eq!(plan.flows[flow as usize].src, gate.host);
            assert_eq!(outcome.flows[flow as usize].started, opened, "gate {g}, flow {flow}");
        }
        for &flow in &opens {
            assert_eq!(plan.flows[flow].dst, gate.host);
        }
    }
}

#[test]
fn ring_all_reduce_takes_its_steps_one_after_another() {
    // 8 chunks of 100 kB, that is 100 packets, with one ACK.
    let text = star(
        8,
        "[transport]\nack_every = 100\n[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"800kB\"\nstart = \"3us\"\ncompute = \"5us\"\n",
    );
    let plan = plan(&text);
    assert_eq!(plan.flows.len(), 14 * 8);
    assert_eq!(plan.flows.iter().map(|f| f.size).sum::<u64>(), 14 * 800_000);
    assert_eq!(plan.gates.len(), 13 * 8);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    check_gates(&plan, &outcome);
    // Every step's chunks arrive everywhere at once, each is acknowledged once, and
    // the ACK has the idle NIC first. Where the host computes before it sends on
    // (7 steps) the ACK is gone by then; in the other 6 the chunk waits for it.
    let last = outcome.flows.iter().filter_map(|f| f.delivered).max().unwrap();
    let (computing, acks) = (7 * 5_000_000, 6 * 66 * BYTE);
    assert_eq!(last, 3_000_000 + 14 * over_the_star(100_000) + computing + acks);
}

#[test]
fn ring_all_reduce_of_two_is_exact() {
    // Two hosts: two steps, a chunk of one packet in each direction. The second step begins with the arrival,
    // and its packet does not wait: the ACK is made first and sent first.
    let text = star(2, "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"1000B\"\n");
    let plan = plan(&text);
    let outcome = run(&plan);
    check_gates(&plan, &outcome);
    let chunk = over_the_star(500);
    // The ACK has the wire of the NIC first, and stays ahead on the second link too.
    let second = chunk + 66 * BYTE + chunk;
    let delivered: Vec<u64> = outcome.flows.iter().map(|f| f.delivered.unwrap()).collect();
    assert_eq!(delivered, [chunk, chunk, second, second]);
    assert_eq!(outcome.flows[2].started, Some(chunk));
}

#[test]
fn the_broadcast_begins_with_the_last_push() {
    let base = "[[traffic]]\nkind = \"parameter-server\"\nservers = [\"H0\", \"H1\"]\nsize = \"100001B\"\nrounds = 3\n";
    let plan = plan_with(&star(7, base), &[("traffic.0.compute", "7ns"), ("traffic.0.gap", "11ns")]);
    // 5 workers, 2 servers, there and back, 3 rounds; shards of 50,001 and 50,000 B.
    assert_eq!(plan.flows.len(), 5 * 2 * 2 * 3);
    assert_eq!(plan.flows.iter().map(|f| f.size).sum::<u64>(), 3 * 2 * 5 * 100_001);
    assert_eq!(plan.gates.len(), 3 * 2 + 2 * 5);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    check_gates(&plan, &outcome);
    // By hand, for the first round: the broadcasts of a server begin 7 ns after
    // the last of the five pushes to it.
    for server in 0..2 {
        let pushes =
            plan.flows.iter().zip(&outcome.flows).filter(|(f, _)| f.dst == server && f.after.is_none());
        let last = pushes.map(|(_, o)| o.delivered.unwrap()).max().unwrap();
        let broadcasts: Vec<u64> = plan
            .flows
            .iter()
            .zip(&outcome.flows)
            .filter(|(f, _)| f.src == server)
            .map(|(_, o)| o.started.unwrap())
            .collect();
        assert_eq!(broadcasts.iter().filter(|&&t| t == last + 7_000).count(), 5);
        assert!(broadcasts.iter().all(|&t| t >= last + 7_000));
        // Five shards of which the slowest shares the server's link with four:
        // no sooner than the link can carry all of them.
        let shard = if server == 0 { 50_001 } else { 50_000u64 };
        assert!(last >= (5 * (shard + 51 * 62)) * BYTE + 2 * DELAY, "{last}");
    }
}

#[test]
fn moe_returns_the_bytes_that_it_received() {
    let text = star(
        6,
        "[[traffic]]\nkind = \"moe\"\nexperts = 2\nweights = [3, 1]\ntokens = 50\ntoken_size = \"1kB\"\nrounds = 2\ngroups = 2\nphase = \"20us\"\ncompute = \"1us\"\ngap = \"2us\"\n",
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::AllDone);
    check_gates(&plan, &outcome);
    let group = |host: u32| host / 3;
    assert!(plan.flows.iter().all(|f| group(f.src) == group(f.dst)));
    // Data to an expert comes back: per pair the same bytes in each direction, or, between two experts, in
    // both directions for the tokens of both.
    for a in 0..6 {
        for b in 0..6 {
            let bytes = |src: u32, dst: u32| {
                plan.flows.iter().filter(|f| (f.src, f.dst) == (src, dst)).map(|f| f.size).sum::<u64>()
            };
            assert_eq!(bytes(a, b), bytes(b, a), "{a} {b}");
        }
    }
    let first = |g: u32| {
        let of = plan.flows.iter().zip(&outcome.flows).filter(|(f, _)| group(f.src) == g);
        of.filter_map(|(_, o)| o.started).min()
    };
    assert_eq!((first(0), first(1)), (Some(0), Some(20_000_000)));
}

#[test]
fn a_run_that_ends_before_names_flows_that_never_started() {
    let rest = "[[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"800kB\"\n[run]\nduration = \"30us\"\n";
    let plan = plan(&star(8, rest));
    let outcome = run(&plan);
    assert_eq!(outcome.stop, Stop::EndTime);
    check_gates(&plan, &outcome);
    let never = outcome.flows.iter().filter(|f| f.started.is_none()).count();
    assert!(never > 8 && never < 14 * 8, "{never}");
    assert!(outcome.flows.iter().all(|f| f.started.is_some() || f.first_sent.is_none()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 40 / 256, failure_persistence: None, ..ProptestConfig::default() })]
    /// For any collective and fabric, each gate opens exactly when its last delivery is complete and its
    /// delay over; and everything completes.
    #[test]
    fn gates_open_with_their_last_delivery(
        kind in 0usize..3,
        scheme in prop::sample::select(vec!["pfc", "none", "bfc", "per-flow-queue"]),
        every in 1u32..4,
        delays in (0u64..3, 0u64..3),
        rounds in 1u32..4,
        size in 20u64..40_000,
        seed in 0u64..1000,
    ) {
        let kind = [
            format!("kind = \"ring-all-reduce\"\nsize = \"{size}B\""),
            format!("kind = \"parameter-server\"\nservers = [\"H3\", \"rack:2\"]\nsize = \"{size}B\""),
            format!("kind = \"moe\"\nexperts = 3\nexperts_per_token = 2\ntokens = {}\ntoken_size = \"100B\"", 1 + size / 300),
        ][kind].clone();
        let gap = if rounds > 1 { format!("gap = \"{}ns\"\n", delays.1) } else { String::new() };
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 3\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nfabric_link = {{ rate = \"100Gbps\", delay = \"700ns\" }}\n\
             [flow_control]\nscheme = \"{scheme}\"\n[transport]\nack_every = {every}\n[run]\nseed = {seed}\n\
             [[traffic]]\n{kind}\nrounds = {rounds}\ncompute = \"{}ns\"\n{gap}",
            delays.0
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        prop_assert_eq!(outcome.stop, Stop::AllDone);
        check_gates(&plan, &outcome);
        prop_assert!(outcome.flows.iter().all(|f| f.completed.is_some()));
        // A gate belongs to one device: the number of threads changes nothing.
        prop_assert_eq!(&outcome, &xoff_sim::run_on(&plan, 3, &mut |_| true));
    }
}
