//! RUD in runs: closed forms, reordering, trimming, losses, congestion controls, random fabrics, threads.

use crate::common;

use common::{clos, delivers_once, fcts, numbered as flow, plan, plan_with, run, star, sum, trimmed};
use xoff_kernel::random::Stream;
use xoff_sim::outcome::Outcome;

/// Nothing was sent twice but the trimmed packets, once each.
fn repeats_only_trims(outcome: &Outcome) {
    let counts = [sum(outcome, |f| f.timeouts.into()), sum(outcome, |f| f.spurious)];
    assert_eq!(counts, [0, 0], "timeouts and spurious retransmissions");
    let repeats = [sum(outcome, |f| f.retransmitted), sum(outcome, |f| f.nacks.into())];
    assert_eq!(repeats, [trimmed(outcome); 2], "retransmissions and NACKs of trimmed packets");
}

/// A flow alone takes its ideal time, to the picosecond, with each way to set the window.
#[test]
fn a_lone_flow_takes_its_ideal_time() {
    for size in ["1B", "1000B", "20kB", "123456B", "10MB"] {
        for (control, every) in [("none", 1), ("nscc", 1), ("swift", 1), ("none", 4), ("nscc", 4)] {
            for scheme in ["trimming", "pfc", "none"] {
                let text = clos(2, 2, 1, "ecmp")
                    + &format!(
                        "[flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"rud\"\nack_every = {every}\n\
                         congestion_control = \"{control}\"\n"
                    )
                    + &flow(0, 1, size);
                let plan = plan(&text);
                let outcome = run(&plan);
                assert_eq!(
                    fcts(&plan, &outcome),
                    [plan.flows[0].ideal],
                    "{size}, {control}, {scheme}, {every}"
                );
                repeats_only_trims(&outcome);
            }
        }
    }
}

/// A flow of 2 MB over six links, with the packets of uet-htsim. 489 full packets follow one another, the last one has
/// 2,010 B, and its ACK returns.
#[test]
fn a_flow_over_six_links_has_its_closed_form() {
    for scheme in ["trimming", "pfc"] {
        let text = format!(
            "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"rud\"\ncongestion_control = \"nscc\"\n\
             mtu = \"4086B\"\nheader = \"64B\"\nack = \"64B\"\nack_every = 4\nack_priority = 7\n{}",
            flow(0, 13, "2MB")
        );
        let plan = plan(&text);
        let byte = 80;
        let expected = (489 + 5) * 4_150 * byte + 2_010 * byte + 6 * 64 * byte + 12 * 1_000_000;
        assert_eq!(fcts(&plan, &run(&plan)), [expected]);
        // uet-htsim records 176.2 us.
        assert!((expected as f64 / 176.2e6 - 1.0).abs() < 0.001, "{expected}");
    }
}

/// With a window of one packet a flow takes a round trip for each packet, also if ACKs are for four packets: each
/// packet asks for one.
#[test]
fn one_packet_for_each_round_trip() {
    let text =
        star(2) + "[transport]\nkind = \"rud\"\nwindow = \"1000B\"\nack_every = 4\n" + &flow(0, 1, "10kB");
    let plan = plan(&text);
    // Two links each way; 1,062 B and 66 B.
    let trip = 2 * (1_062 + 66) * 80 + 4 * 1_000_000;
    assert_eq!(fcts(&plan, &run(&plan)), [10 * trip]);
}

/// Packets overtake each other, and no sender retransmits: a NACK needs a trimmed packet.
#[test]
fn reordering_costs_nothing() {
    let mut reordered = 0;
    for seed in 1..=8 {
        for balancing in ["spray", "drill", "adaptive"] {
            for (control, every) in [("none", 1), ("nscc", 4), ("dcqcn", 2), ("timely", 1), ("swift", 4)] {
                let text = clos(4, 4, 4, balancing)
                    + &format!(
                        "[flow_control]\nscheme = \"pfc\"\n[transport]\nkind = \"rud\"\nack_every = {every}\n\
                         congestion_control = \"{control}\"\n[run]\nseed = {seed}\n\
                         [[traffic]]\nkind = \"permutation\"\nsize = \"300kB\"\n\
                         [[traffic]]\nkind = \"incast\"\nfan_in = 10\nsize = \"100kB\"\nto = \"H3\"\n"
                    );
                let plan = plan(&text);
                let outcome = run(&plan);
                delivers_once(&plan, &outcome);
                assert!(outcome.drops.is_empty());
                repeats_only_trims(&outcome);
                reordered += sum(&outcome, |f| f.out_of_order);
            }
        }
    }
    assert!(reordered > 10_000, "{reordered}");
}

/// N flows to one host, whose switch trims: the link is never idle after the first packet, so the last flow ends when
/// it has carried all packets and headers once.
#[test]
fn an_incast_takes_the_time_of_its_bytes() {
    for (senders, size, control) in [(2, 4_000_000, "none"), (8, 400_000, "none"), (15, 2_000_000, "nscc")] {
        let mut text = star(senders + 1)
            + &format!(
                "[flow_control]\nscheme = \"trimming\"\n[transport]\nkind = \"rud\"\n\
                 congestion_control = \"{control}\"\n[[priority]]\nid = 3\negress_limit = \"60kB\"\n"
            );
        (1..=senders).for_each(|i| text += &flow(i, 0, &format!("{size}B")));
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        repeats_only_trims(&outcome);
        let packets = senders as u64 * size / 1_000;
        let last = outcome.flows.iter().filter_map(|f| f.delivered).max().expect("delivered");
        let turn = 1_062 * 80;
        let least = turn + 2_000_000 + packets * turn;
        let most = least + trimmed(&outcome) * 64 * 80;
        println!("{senders} senders: {:.4}, {} trimmed", last as f64 / least as f64, trimmed(&outcome));
        assert!(trimmed(&outcome) > 50);
        // The windows of the last flows grow into the share of those that have ended: uet-htsim takes 1.1% longer.
        let late = if control == "nscc" { 1.02 } else { 1.005 };
        assert!(last >= least && last as f64 <= most as f64 * late, "{least} {last} {most}");
    }
}

/// NSCC over trimmed packets: after the first windows few packets are trimmed, as its window adapts at once.
#[test]
fn nscc_reacts_to_trimmed_packets() {
    let text = |control: &str| {
        let mut text = star(31)
            + &format!(
                "[flow_control]\nscheme = \"trimming\"\n[transport]\nkind = \"rud\"\nack_every = 4\n\
                 congestion_control = \"{control}\"\n[[priority]]\nid = 3\negress_limit = \"60kB\"\n"
            );
        (1..=30).for_each(|i| text += &flow(i, 0, "500kB"));
        text
    };
    let trims = ["none", "nscc"].map(|control| {
        let plan = plan(&text(control));
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        repeats_only_trims(&outcome);
        trimmed(&outcome)
    });
    println!("{trims:?} packets trimmed");
    assert!(trims[1] > 0 && 5 * trims[1] < trims[0], "{trims:?}");
}

/// Links lose data, headers, ACKs and NACKs, and queues drop packets whole: the timeout repairs all of it.
#[test]
fn losses_are_repaired() {
    for seed in 1..=20 {
        for scheme in ["trimming", "pfc", "none"] {
            let control = ["none", "nscc", "dctcp", "hpcc", "timely", "dcqcn", "swift"][seed % 7];
            let text = clos(2, 2, 4, "spray")
                + &format!(
                    "[flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"rud\"\nrto = \"100us\"\n\
                     ack_every = {}\ncongestion_control = \"{control}\"\n[run]\nseed = {seed}\n\
                     [[priority]]\nid = 3\n{}\
                     [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.05\n[[loss]]\nlink = \"S0.1-S1.1\"\nrate = 0.02\n\
                     [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n",
                    1 + seed % 5,
                    if scheme == "pfc" { "" } else { "egress_limit = \"8496B\"\n" },
                );
            let plan = plan(&text);
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            let lost: u64 = outcome.drops.iter().map(|d| d.packets).sum();
            assert!(lost > 10 && sum(&outcome, |f| f.timeouts.into()) > 0, "{lost}");
            assert_eq!(trimmed(&outcome) > 0, scheme == "trimming");
        }
    }
}

/// A flow of 200 packets with a window of 60, of which packet k is lost: packets of 1,000 B and ACKs of 64 B over links of
/// 100 and 400 Gbit/s. With loss inference the ACK of packet k + 60 shows the loss, to the picosecond: the window is also
/// MaxWnd. Before the end of the flow the loss costs the time of one packet on the link. Without such an ACK only the
/// timeout finds it.
#[test]
fn a_loss_is_inferred_from_one_window_out_of_order() {
    let (packets, window) = (200, 60);
    let (packet, delay, rto) = (80_000, 2_000_000, 1_000_000_000);
    let there = packet + 20_000 + delay;
    let trip = there + 5_120 + 1_280 + delay;
    for lost in [0, 1, 7, 59, 60, 100, 130, 138, 139, 140, 198, 199] {
        // The second link fails for 10 ns when nothing else is on it.
        let at = lost * packet + there - 1_000;
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
             links = [{{a=\"A\", b=\"X\", rate=\"100Gbps\", delay=\"1980ns\"}}, {{a=\"X\", b=\"B\", rate=\"400Gbps\", delay=\"20ns\"}}]\n\
             [routing]\nreconvergence = \"1s\"\n[flow_control]\nscheme = \"none\"\n\
             [transport]\nkind = \"rud\"\nrto = \"1ms\"\nwindow = \"{window}kB\"\nmtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"\n\
             [[failure]]\nlink = \"X-B\"\nat = \"{}ps\"\nuntil = \"{at}ps\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"{packets}kB\"\n",
            at - 10_000
        );
        for infers in [false, true] {
            let plan = plan_with(&text, &[("rud.infer_losses", &infers.to_string())]);
            let outcome = run(&plan);
            assert_eq!(outcome.counters.dropped, 1, "exactly that packet");
            let shown = (lost + window) * packet + trip;
            let expected = match infers && lost + window < packets {
                // The packet that is being sent goes first, then the retransmission.
                true if shown < packets * packet => packets * packet + trip,
                true => shown + trip,
                false => lost * packet + rto + trip,
            };
            let seen = outcome.flows[0];
            assert_eq!(fcts(&plan, &outcome), [expected], "packet {lost}, inference {infers}");
            let timeouts = u32::from(!(infers && lost + window < packets));
            assert_eq!((seen.retransmitted, seen.spurious, seen.timeouts), (1, 0, timeouts));
        }
    }
}

/// On one path every inferred loss is one: links lose data at random, and nothing is retransmitted in vain. Fewer losses
/// wait for timeouts.
#[test]
fn inferred_losses_are_losses_where_packets_stay_in_order() {
    let (mut with, mut without) = (0, 0);
    for seed in 1..=12 {
        let control = ["none", "nscc", "swift", "rccc"][seed % 4];
        let text = star(4)
            + &format!(
                "[transport]\nkind = \"rud\"\nrto = \"1ms\"\nretries = \"unlimited\"\n\
                 congestion_control = \"{control}\"\n[run]\nseed = {seed}\n"
            )
            + &(0..3)
                .map(|i| format!("[[loss]]\nlink = \"S0.0-H{i}\"\nfrom = \"H{i}\"\nrate = 0.002\n"))
                .collect::<String>()
            + &(0..3).map(|i| flow(i, 3, "3MB")).collect::<String>();
        let [off, on] = ["false", "true"].map(|infers| {
            let plan = plan_with(&text, &[("rud.infer_losses", infers)]);
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            let counts = [outcome.counters.dropped, sum(&outcome, |f| f.retransmitted)];
            assert_eq!(counts, [counts[0]; 2], "{control}, inference {infers}: drops and retransmissions");
            sum(&outcome, |f| f.timeouts.into())
        });
        println!("{control}: {off} timeouts, {on} with loss inference");
        (with, without) = (with + on, without + off);
    }
    println!("{with} timeouts with loss inference, {without} without");
    assert!(20 * with < without, "{with} {without}");
}

/// Losses on paths that packets choose, with loss inference: everything is delivered once, also with threads.
#[test]
fn losses_on_several_paths_are_repaired_with_inference() {
    let mut timeouts = [0, 0];
    for seed in 1..=12 {
        let control = ["none", "nscc", "swift", "rccc", "dcqcn"][seed % 5];
        let text = clos(2, 2, 4, ["spray", "drill", "adaptive"][seed % 3])
            + &format!(
                "[flow_control]\nscheme = \"{}\"\n[transport]\nkind = \"rud\"\nrto = \"500us\"\n\
                 ack_every = {}\ncongestion_control = \"{control}\"\n[run]\nseed = {seed}\n\
                 [[priority]]\nid = 3\negress_limit = \"60kB\"\nlossless = false\n\
                 [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.01\n\
                 [[traffic]]\nkind = \"all-to-all\"\nsize = \"400kB\"\n",
                ["trimming", "none"][seed % 2],
                1 + seed % 4,
            );
        for (infers, sum_of) in ["false", "true"].into_iter().zip(&mut timeouts) {
            let plan = plan_with(&text, &[("rud.infer_losses", infers)]);
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            *sum_of += sum(&outcome, |f| f.timeouts.into());
            if seed % 4 == 0 {
                assert!(outcome == xoff_sim::run_on(&plan, 3, &mut |_| true), "seed {seed}");
            }
        }
    }
    println!("{timeouts:?} timeouts without and with loss inference");
    assert!(timeouts[1] < timeouts[0], "{timeouts:?}");
}

/// Random fabrics, loads, queues, windows, ACKs and congestion controls, with and without trimming: every flow
/// completes, its bytes are delivered once, and where nothing is lost without a trace, only trimmed packets are
/// retransmitted.
#[test]
fn random_fabrics_deliver_everything_once() {
    let (mut cut, mut flows, mut clean, mut early) = (0, 0, 0, 0);
    for seed in 1..=40 {
        let mut random = Stream::new(seed, "fabric", 0);
        let mut pick = |most: u64| 1 + random.below(most);
        let (leaves, spines, hosts) = (1 + pick(3), pick(4), pick(6));
        let scheme = ["trimming", "trimming", "pfc", "none"][pick(4) as usize - 1];
        let control =
            ["none", "nscc", "nscc", "dcqcn", "timely", "hpcc", "dctcp", "swift"][pick(8) as usize - 1];
        let balancing = ["ecmp", "spray", "drill", "adaptive"][pick(4) as usize - 1];
        let fan_in = (leaves * hosts - 1).min(pick(20));
        let limit = match scheme {
            "pfc" => String::new(),
            _ => format!("egress_limit = \"{}B\"\n", (1 + pick(12)) * 5_000),
        };
        let mut text = clos(leaves, spines, hosts, balancing)
            + &format!(
                "[run]\nseed = {seed}\n[flow_control]\nscheme = \"{scheme}\"\n\
                 [transport]\nkind = \"rud\"\nmtu = \"{}B\"\nack_every = {}\ncongestion_control = \"{control}\"\n",
                900 + pick(4_000),
                pick(6),
            );
        if pick(3) == 1 {
            text += &format!("window = \"{}bdp\"\n", pick(3));
        }
        text += &format!(
            "[[priority]]\nid = 3\n{limit}\
             [[traffic]]\nkind = \"incast\"\nfan_in = {fan_in}\nsize = \"{}B\"\nto = \"H0\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"{}B\"\n",
            pick(400_000),
            pick(400_000),
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        let lost: u64 = outcome.drops.iter().map(|d| d.packets).sum();
        if lost == trimmed(&outcome) {
            repeats_only_trims(&outcome);
            clean += 1;
        }
        early += sum(&outcome, |f| f.out_of_order);
        (cut, flows) = (cut + trimmed(&outcome), flows + plan.flows.len());
    }
    println!(
        "{flows} flows, {cut} packets trimmed, {clean} fabrics without another loss, {early} packets early"
    );
    assert!(cut > 2_000 && flows > 400 && clean > 20 && early > 1_000, "{flows} {cut} {clean} {early}");
}

/// RUD over every kind of flow control.
#[test]
fn rud_runs_over_every_flow_control() {
    for scheme in ["pfc", "bfc", "pyrrha", "per-flow-queue", "cbfc", "uec-cbfc", "gfc", "pause", "none"] {
        let mut text = star(9)
            + &format!(
                "[flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"rud\"\ncongestion_control = \"nscc\"\n"
            );
        (1..=8).for_each(|i| text += &flow(i, 0, "300kB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        assert_eq!(trimmed(&outcome), 0);
        assert!(scheme == "none" || sum(&outcome, |f| f.retransmitted) == 0, "{scheme}");
    }
}

#[test]
fn threads_change_nothing() {
    let text = clos(4, 2, 3, "spray")
        + "[flow_control]\nscheme = \"trimming\"\n[transport]\nkind = \"rud\"\nack_every = 4\nrto = \"200us\"\n\
           [[priority]]\nid = 3\negress_limit = \"12kB\"\n[measure]\ninterval = \"10us\"\nflows = [0, 3]\n\
           [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.01\n\
           [[traffic]]\nkind = \"incast\"\nfan_in = 7\nsize = \"300kB\"\n\
           [[traffic]]\nkind = \"permutation\"\nsize = \"200kB\"\n";
    for control in ["none", "nscc", "hpcc", "dcqcn"] {
        let plan = plan_with(&text, &[("transport.congestion_control", control)]);
        let one = run(&plan);
        assert!(trimmed(&one) > 100 && sum(&one, |f| f.timeouts.into()) > 0);
        for threads in 2..=4 {
            let many = xoff_sim::run_on(&plan, threads, &mut |_| true);
            assert_eq!(one, many, "{control} on {threads} threads");
        }
    }
}

/// A flow of 20 packets over two links whose last packets are lost: a probe follows the last ACK after one round trip
/// and the target delay, its ACK comes back at once, and all lost packets are retransmitted together. To the picosecond.
#[test]
fn a_probe_finds_a_lost_tail() {
    let (packet, ack, there, rto) = (80_000, 5_120, 2_100_000, 1_000_000_000);
    let back = 5_120 + 1_280 + 2_000_000;
    let trip = there + back;
    // Of a packet of 64 B.
    let probe = 2 * (ack + 1_280 + 2_000_000);
    for lost in 1..=19 {
        let (from, until) = (20 - lost, 20);
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
             links = [{{a=\"A\", b=\"X\", rate=\"100Gbps\", delay=\"1980ns\"}}, {{a=\"X\", b=\"B\", rate=\"400Gbps\", delay=\"20ns\"}}]\n\
             [routing]\nreconvergence = \"1s\"\n[flow_control]\nscheme = \"none\"\n\
             [transport]\nkind = \"rud\"\nrto = \"1ms\"\nmtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"\nretries = 3\n\
             [rud]\ninfer_losses = true\n\
             [[failure]]\nlink = \"X-B\"\nat = \"{}ps\"\nuntil = \"{}ps\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"20kB\"\n",
            from * packet + there - 11_000,
            until * packet + there - packet + 1_000
        );
        for probes in [false, true] {
            let plan = plan_with(&text, &[("rud.probes", &probes.to_string())]);
            let outcome = run(&plan);
            assert_eq!(outcome.counters.dropped, lost, "exactly these packets");
            // Base and target delay are the round trip of a full packet, and no queue is trimmed.
            let last_ack = (from - 1) * packet + trip;
            let found = if probes { last_ack + 2 * trip + probe } else { from * packet + rto };
            // They follow one another, when the probe shows all at once as well as when their timers expire in turn.
            let expected = found + (lost - 1) * packet + trip;
            let seen = outcome.flows[0];
            assert_eq!(fcts(&plan, &outcome), [expected], "{lost} lost, probes {probes}");
            assert_eq!((seen.retransmitted, seen.spurious, seen.timeouts == 0), (lost, 0, probes));
        }
    }
}

/// A link fails after five round trips with a window of ten packets: a probe leaves three round trips after the last ACK,
/// then one after every five, until the sender gives up. All times are exact.
#[test]
fn a_sender_probes_until_it_gives_up() {
    let base = 2 * (80_000 + 5_120) + 4_000_000;
    let text = format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\"]\n\
         links = [{{a=\"A\", b=\"X\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"X\", b=\"B\", rate=\"100Gbps\", delay=\"1us\"}}]\n\
         [routing]\nreconvergence = \"1s\"\n[flow_control]\nscheme = \"none\"\n\
         [transport]\nkind = \"rud\"\nrto = \"200us\"\nwindow = \"10kB\"\nmtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"\nretries = 2\n\
         [rud]\ninfer_losses = true\nprobes = true\n\
         [[failure]]\nlink = \"X-B\"\nat = \"{}ps\"\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\n",
        // All ACKs have arrived, and no packet has reached X.
        5 * base + 1_050_000
    );
    let plan = plan(&text);
    let outcome = run(&plan);
    // The first of the ten packets in flight gives up.
    let failed = 5 * base + (1 + 2 + 4) * 200_000_000;
    let seen = outcome.flows[0];
    assert_eq!((seen.failed, seen.delivered_bytes, seen.spurious), (Some(failed), 50_000, 0));
    let first = 5 * base + 9 * 80_000 + 3 * base;
    let lost: u64 = outcome.drops.iter().map(|d| d.packets).sum();
    let probes = lost - outcome.counters.dropped;
    assert_eq!(probes, 1 + (failed - first) / (5 * base));
}

/// With probes hardly any loss waits for a timeout, and the same losses give the same run with threads.
#[test]
fn probes_replace_timeouts() {
    let mut timeouts = [0, 0];
    for seed in 1..=12 {
        let control = ["none", "nscc", "swift", "rccc", "hpcc", "dcqcn"][seed % 6];
        let text = clos(2, 2, 4, ["spray", "ecmp", "adaptive"][seed % 3])
            + &format!(
                "[flow_control]\nscheme = \"{}\"\n[transport]\nkind = \"rud\"\nrto = \"1ms\"\n\
                 ack_every = {}\ncongestion_control = \"{control}\"\n[run]\nseed = {seed}\n\
                 [rud]\ninfer_losses = true\n\
                 [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.01\n\
                 [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n",
                ["pfc", "none"][seed % 2],
                1 + seed % 4,
            );
        for (probes, sum_of) in ["false", "true"].into_iter().zip(&mut timeouts) {
            let plan = plan_with(&text, &[("rud.probes", probes)]);
            let outcome = run(&plan);
            delivers_once(&plan, &outcome);
            *sum_of += sum(&outcome, |f| f.timeouts.into());
            if seed % 4 == 0 {
                assert!(outcome == xoff_sim::run_on(&plan, 3, &mut |_| true), "seed {seed}");
            }
        }
    }
    println!("{timeouts:?} timeouts without and with probes");
    assert!(5 * timeouts[1] < timeouts[0], "{timeouts:?}");
}
