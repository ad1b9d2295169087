//! RCCC in runs: closed forms, shares of a link, incasts over trimmed packets, losses, random fabrics, threads. What holds
//! for any limit of a sender holds with NSCC beside it, too.

use crate::common;

use common::{clos, delivers_once, fcts, numbered as flow, plan, run, star, sum, trimmed};
use xoff_kernel::random::Stream;

/// RUD with RCCC, a grant of `grant`, and more keys of the transport.
fn credits_of(scheme: &str, rate: f64, grant: &str, more: &str) -> String {
    format!(
        "[flow_control]\nscheme = \"{scheme}\"\n[rccc]\nrate = {rate:?}\ngrant = \"{grant}\"\n\
         [transport]\nkind = \"rud\"\ncongestion_control = \"rccc\"\nretries = \"unlimited\"\n{more}\n"
    )
}

/// The same with the default grant, for packets of 1,000 B.
fn credits(scheme: &str, rate: f64, more: &str) -> String {
    credits_of(scheme, rate, "4kB", more)
}

/// The same scenario with NSCC beside RCCC, or without.
fn beside(text: &str, nscc: bool) -> String {
    if nscc { text.replace("\"rccc\"", "\"nscc+rccc\"") } else { text.to_owned() }
}

/// The same scenario with credit in ACKs.
fn in_acks(text: &str) -> String {
    text.replace("[rccc]\n", "[rccc]\nin_acks = true\n")
}

/// A flow alone takes its ideal time, to the picosecond, if credit for three packets at least comes at the rate of the
/// link: the first credit is there before the packet has left that was on the wire when the first ACK came. With
/// smaller frames credit may be late by a few nanoseconds.
#[test]
fn a_lone_flow_takes_its_ideal_time() {
    for size in ["1B", "1000B", "20kB", "123456B", "10MB"] {
        for (scheme, every) in [("trimming", 1), ("trimming", 4), ("pfc", 1), ("none", 4)] {
            for grant in ["3kB", "4kB", "20kB"] {
                let more = format!("ack_every = {every}\n");
                let text = clos(2, 2, 1, "ecmp") + &credits_of(scheme, 1.0, grant, &more) + &flow(0, 1, size);
                for nscc in [false, true] {
                    let plan = plan(&beside(&text, nscc));
                    let outcome = run(&plan);
                    let what = format!("{size}, {scheme}, {every}, {grant}, {nscc}");
                    assert_eq!(fcts(&plan, &outcome), [plan.flows[0].ideal], "{what}");
                    assert_eq!(sum(&outcome, |f| f.retransmitted), 0);
                }
            }
        }
    }
}

/// After the first round trip a flow has the rate of its credit.
#[test]
fn credit_sets_the_rate() {
    for rate in [1.0, 0.99, 0.5, 0.1] {
        let plan = plan(&(star(2) + &credits("none", rate, "") + &flow(0, 1, "20MB")));
        let seen = run(&plan);
        let trip = 2 * (1_062 + 66) * 80 + 4_000_000;
        // Bytes that left at line rate before the first credit came, and the others at the rate of credit.
        let first = trip as f64 / 80.0;
        let expected = 2e6 + 1_062.0 * 160.0 + trip as f64 + (20_000.0 * 1_062.0 - first) * 80.0 / rate;
        let took = seen.flows[0].delivered.unwrap() as f64;
        println!("{rate}: {:.5}", took / expected);
        assert!((took / expected - 1.0).abs() < 0.001, "{took} {expected}");
    }
}

/// Flows to one receiver have equal shares of its link, at all times, and the link has no queue after the first
/// round trips.
#[test]
fn flows_share_a_link_equally() {
    for senders in [2, 5] {
        let mut text = star(senders + 1) + &credits("pfc", 1.0, "") + "[run]\nduration = \"2ms\"\n";
        (1..=senders).for_each(|i| text += &flow(i, 0, "1GB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        let all: u64 = outcome.flows.iter().map(|f| f.delivered_bytes).sum();
        // The link is full from the first packet on.
        let full = (2_000_000_000 - 2_000_000 - 1_062 * 80) / (1_062 * 80) * 1_000;
        println!("{senders}: {:.5} of the link", all as f64 / full as f64);
        assert!(all <= full + 1_000 && all * 1_000 >= full * 998, "{all} {full}");
        for seen in &outcome.flows {
            let share = seen.delivered_bytes as f64 * senders as f64 / all as f64;
            println!("  {share:.5}");
            assert!((share - 1.0).abs() < 0.01, "{share}");
        }
    }
}

/// N flows to one host, whose switch trims: the last flow ends when the link has carried all bytes at the rate of
/// credit, and all flows end together: the first one with less than a window of each other flow to go.
#[test]
fn an_incast_takes_the_time_of_its_bytes() {
    for (senders, size, rate) in [(3, 4_000_000, 1.0), (8, 400_000, 0.99), (15, 2_000_000, 0.99)] {
        let mut text = star(senders + 1)
            + &credits("trimming", rate, "ack_every = 4\n[[priority]]\nid = 3\negress_limit = \"60kB\"");
        (1..=senders).for_each(|i| text += &flow(i, 0, &format!("{size}B")));
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        assert_eq!([sum(&outcome, |f| f.timeouts.into()), sum(&outcome, |f| f.spurious)], [0, 0]);
        assert_eq!(
            [sum(&outcome, |f| f.retransmitted), sum(&outcome, |f| f.nacks.into())],
            [trimmed(&outcome); 2]
        );
        let ends: Vec<u64> = outcome.flows.iter().filter_map(|f| f.delivered).collect();
        let (first, last) = (*ends.iter().min().unwrap(), *ends.iter().max().unwrap());
        let bytes = senders as u64 * size / 1_000 * 1_062 * 80;
        let least = 2_000_000 + 1_062 * 80 + bytes;
        let most = least as f64 / rate;
        let cut = trimmed(&outcome);
        println!(
            "{senders}: {:.4} of the link, first/last {:.4}, {cut}",
            last as f64 / least as f64,
            first as f64 / last as f64
        );
        assert!(last >= least && (last as f64) < most * 1.01, "{least} {last} {most}");
        assert!(cut > 10 && (first as f64) > 0.9 * last as f64, "{cut} {first} {last}");
    }
}

/// Links lose data, headers, ACKs, NACKs and credit, and queues drop packets whole: timeouts repair all of it.
#[test]
fn losses_are_repaired() {
    for seed in 1..=20 {
        for scheme in ["trimming", "pfc", "none"] {
            let limit = if scheme == "pfc" { "" } else { "egress_limit = \"8496B\"\n" };
            let text = clos(2, 2, 4, "spray")
                + &credits(scheme, 0.99, &format!("rto = \"100us\"\nack_every = {}", 1 + seed % 5))
                + &format!(
                    "[run]\nseed = {seed}\n[[priority]]\nid = 3\n{limit}\
                     [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.05\n[[loss]]\nlink = \"S0.1-S1.1\"\nrate = 0.02\n\
                     [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n",
                );
            let plan = plan(&beside(&text, seed % 2 == 0));
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            let lost: u64 = outcome.drops.iter().map(|d| d.packets).sum();
            assert!(lost > 10 && sum(&outcome, |f| f.timeouts.into()) > 0, "{lost}");
            assert_eq!(trimmed(&outcome) > 0, scheme == "trimming");
        }
    }
}

/// Random fabrics, loads, queues, windows, ACKs and grants, with and without trimming: every flow completes, and its
/// bytes are delivered once.
#[test]
fn random_fabrics_deliver_everything_once() {
    let (mut cut, mut flows, mut early) = (0, 0, 0);
    for seed in 1..=40 {
        let mut random = Stream::new(seed, "fabric", 0);
        let mut pick = |most: u64| 1 + random.below(most);
        let (leaves, spines, hosts) = (1 + pick(3), pick(4), pick(6));
        let scheme = ["trimming", "trimming", "pfc", "none"][pick(4) as usize - 1];
        let balancing = ["ecmp", "spray", "drill", "adaptive"][pick(4) as usize - 1];
        let fan_in = (leaves * hosts - 1).min(pick(20));
        let limit = match scheme {
            "pfc" => String::new(),
            _ => format!("egress_limit = \"{}B\"\n", (1 + pick(12)) * 5_000),
        };
        let mut more = format!("mtu = \"{}B\"\nack_every = {}\n", 900 + pick(4_000), pick(6));
        if pick(3) == 1 {
            more += &format!("window = \"{}bdp\"\n", pick(3));
        }
        let text = clos(leaves, spines, hosts, balancing)
            + &credits(scheme, 0.5 + pick(50) as f64 / 100.0, &more)
            + &format!(
                "[run]\nseed = {seed}\n[[priority]]\nid = 3\n{limit}\
                 [[traffic]]\nkind = \"incast\"\nfan_in = {fan_in}\nsize = \"{}B\"\nto = \"H0\"\n\
                 [[traffic]]\nkind = \"permutation\"\nsize = \"{}B\"\n",
                pick(400_000),
                pick(400_000),
            );
        let plan = plan(&beside(&text, seed % 2 == 0));
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        if scheme == "pfc" {
            assert_eq!(sum(&outcome, |f| f.retransmitted), 0, "nothing is lost");
        }
        early += sum(&outcome, |f| f.out_of_order);
        (cut, flows) = (cut + trimmed(&outcome), flows + plan.flows.len());
    }
    println!("{flows} flows, {cut} packets trimmed, {early} packets early");
    assert!(cut > 2_000 && flows > 400 && early > 1_000, "{flows} {cut} {early}");
}

/// RCCC over every kind of flow control.
#[test]
fn rccc_runs_over_every_flow_control() {
    for scheme in
        ["pfc", "bfc", "pyrrha", "per-flow-queue", "cbfc", "uec-cbfc", "gfc", "dsh", "pause", "none"]
    {
        let mut text = star(9) + &credits(scheme, 0.99, "");
        (1..=8).for_each(|i| text += &flow(i, 0, "300kB"));
        for nscc in [false, true] {
            let plan = plan(&beside(&text, nscc));
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            assert_eq!(trimmed(&outcome), 0);
            assert!(scheme == "none" || sum(&outcome, |f| f.retransmitted) == 0, "{scheme}");
        }
    }
}

/// An ACK tells the credit that was granted before it. Over one path without losses its frames have come before the ACK,
/// so nothing changes.
#[test]
fn without_losses_credit_in_acks_changes_nothing() {
    for (scheme, nscc) in [("trimming", false), ("trimming", true), ("pfc", false), ("pfc", true)] {
        let limit = if scheme == "pfc" { "" } else { "[[priority]]\nid = 3\negress_limit = \"60kB\"\n" };
        let mut text = star(9) + &credits(scheme, 0.99, &format!("ack_every = 2\n{limit}"));
        (1..=8).for_each(|i| text += &flow(i, 0, "300kB"));
        let text = beside(&text, nscc);
        let [without, with] = [plan(&text), plan(&in_acks(&text))].map(|plan| run(&plan));
        assert_eq!(without, with, "{scheme} {nscc}");
        assert_eq!(trimmed(&with) > 0, scheme == "trimming");
    }
}

#[test]
fn threads_change_nothing() {
    let text = clos(4, 2, 3, "spray")
        + &credits("trimming", 0.99, "ack_every = 4\nrto = \"200us\"")
        + "[[priority]]\nid = 3\negress_limit = \"12kB\"\n[measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
           [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.01\n\
           [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n\
           [[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n";
    for (nscc, acks) in [(false, false), (true, false), (true, true)] {
        let text = beside(&text, nscc);
        let plan = plan(&if acks { in_acks(&text) } else { text });
        let one = run(&plan);
        assert!(trimmed(&one) > 100 && sum(&one, |f| f.timeouts.into()) > 0);
        for threads in 2..=4 {
            let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert_eq!(one, many, "{threads} threads, {nscc} {acks}");
        }
    }
}
