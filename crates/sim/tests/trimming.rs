//! Packet trimming and NDP in runs: closed forms, recorded incasts of csg-htsim, reordering, losses, random fabrics.

use crate::common;

use common::{fcts, numbered as flow, plan, run};
use xoff_kernel::random::Stream;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::trimming::report::{HEADER_LOST, TRIMMED};
use xoff_sim::outcome::{DropReason, Outcome};

/// Wire bytes of a full packet.
const PACKET: u64 = 4_096 + 62;
/// Time of a full packet on a link of 100 Gbit/s, in picoseconds.
const TURN: u64 = PACKET * 80;

/// Data queues of `queue` full packets and the transport; no topology and no traffic.
fn trims(queue: u64) -> String {
    trims_of(queue, "arriving")
}

/// The same, with the packet that is cut.
fn trims_of(queue: u64, trims: &str) -> String {
    format!(
        "[flow_control]\nscheme = \"trimming\"\ntrims = \"{trims}\"\n\
         [transport]\nkind = \"ndp\"\nmtu = \"4096B\"\n[[priority]]\nid = 3\negress_limit = \"{}B\"\n",
        queue * PACKET
    )
}

/// Hosts at one switch, with links of 100 Gbit/s and 1 us.
fn star(hosts: usize) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = {hosts}\n\
         link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
    )
}

/// Packets that were dropped for a reason; ACKs and headers included.
fn dropped(outcome: &Outcome, reason: DropReason) -> u64 {
    outcome.drops.iter().filter(|d| d.reason == reason).map(|d| d.packets).sum()
}

fn trimmed(outcome: &Outcome) -> u64 {
    dropped(outcome, DropReason::Scheme(&TRIMMED))
}

/// Every flow completes, and its application gets each packet once: other copies count as spurious.
fn delivers_once(plan: &Plan, outcome: &Outcome) {
    let packets: u64 = plan.flows.iter().map(|f| plan.packet.packets(f.size)).sum();
    let spurious: u64 = outcome.flows.iter().map(|f| f.spurious).sum();
    assert_eq!(outcome.counters.delivered - spurious, packets);
    for (flow, seen) in plan.flows.iter().zip(&outcome.flows) {
        assert_eq!(seen.delivered_bytes, flow.size);
        assert!(seen.completed.is_some());
    }
}

/// Nothing is lost without a header, no header is lost, and no sender waits for its timeout.
fn only_trims(outcome: &Outcome) {
    assert!(outcome.drops.iter().all(|d| d.reason == DropReason::Scheme(&TRIMMED)), "{:?}", outcome.drops);
    let sum = |of: fn(&xoff_sim::outcome::FlowOutcome) -> u64| outcome.flows.iter().map(of).sum::<u64>();
    let resent = sum(|f| f.retransmitted);
    assert_eq!((sum(|f| f.timeouts.into()), sum(|f| f.spurious)), (0, 0));
    assert_eq!((resent, sum(|f| f.nacks.into())), (trimmed(outcome), trimmed(outcome)));
}

/// A flow alone takes its ideal time, to the picosecond: the PULLs arrive before the first window is used up.
#[test]
fn a_lone_flow_takes_its_ideal_time() {
    for size in ["1B", "4096B", "20kB", "123456B", "10MB"] {
        for shape in [
            star(2),
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\n\
             host_link = { rate = \"100Gbps\", delay = \"500ns\" }\n\
             fabric_link = { rate = \"400Gbps\", delay = \"2us\" }\n"
                .to_string(),
        ] {
            let plan = plan(&(shape + &trims(8) + &flow(0, 1, size)));
            let outcome = run(&plan);
            assert_eq!(fcts(&plan, &outcome), [plan.flows[0].ideal], "{size}");
            only_trims(&outcome);
        }
    }
}

/// N first windows of W packets meet at one port: the packets over the queue are trimmed. The port sends while they
/// arrive, a packet at each turn after the first but for the time of the headers, and then its queue is full. The
/// run ends before the first packet that a PULL requests gets there.
#[test]
fn the_first_windows_are_trimmed_to_the_queue() {
    for (senders, window, queue) in [(2, 40, 8), (8, 20, 8), (16, 12, 2), (30, 9, 20)] {
        let mut text = star(senders + 1).replace("1us", "20us") + &trims(queue);
        text += &format!("[ndp]\ninitial_window = \"{}B\"\n[run]\nduration = \"60us\"\n", 4_096 * window);
        let size = format!("{}B", 4_096 * window);
        (1..=senders).for_each(|i| text += &flow(i, 0, &size));
        let plan = plan(&text);
        let outcome = run(&plan);
        let all = senders as u64 * window;
        assert_eq!(outcome.counters.sent, all);
        let fits = queue + window;
        let over = all - fits;
        // Whole packets that headers displace, and one that has begun.
        let displaced = (over + queue) * 64 / PACKET + 2;
        let seen = trimmed(&outcome);
        println!("{senders} x {window}, queue {queue}: {seen} of {all} trimmed, {over} over the queue");
        assert!((over..=over + displaced).contains(&seen), "{seen}, not {over} + {displaced}");
    }
}

/// N flows to one host: the receiver's link is never idle after the first packet, so the last flow ends when the
/// link has carried all packets and headers once. No queue exceeds its limit.
#[test]
fn an_incast_takes_the_time_of_its_bytes() {
    for (senders, size, queue) in [(2, 4_096_000, 8), (8, 409_600, 8), (24, 409_600, 2), (60, 204_800, 8)] {
        let mut text = star(senders + 1) + &trims(queue);
        (1..=senders).for_each(|i| text += &flow(i, 0, &format!("{size}B")));
        let plan = plan(&text);
        let outcome = run(&plan);
        only_trims(&outcome);
        delivers_once(&plan, &outcome);
        let packets = senders as u64 * size / 4_096;
        let last = outcome.flows.iter().filter_map(|f| f.delivered).max().expect("delivered");
        // Until the first bit leaves the switch: a packet and two links; and the headers.
        let least = TURN + 2_000_000 + packets * TURN;
        let most = least + trimmed(&outcome) * 64 * 80;
        println!("{senders} senders: {last} ps, at least {least}, {:.4}", last as f64 / least as f64);
        assert!(last >= least, "{last} < {least}");
        assert!(last as f64 <= most as f64 * 1.005, "{last} > {most}");
        for port in &outcome.ports {
            // Headers and ACKs of all flows in flight have a queue of their own.
            assert!(port.queue_peak <= queue * PACKET + senders as u64 * 40 * 66, "{port:?}");
        }
    }
}

/// Two flows of one receiver get equal shares, as PULLs take turns, and the others keep their rates.
#[test]
fn pulls_take_turns() {
    let mut text = star(6) + &trims(8);
    for (src, dst) in [(1, 0), (2, 0), (3, 0), (4, 5)] {
        text += &flow(src, dst, "8192kB");
    }
    let plan = plan(&text);
    let outcome = run(&plan);
    let fcts = fcts(&plan, &outcome);
    let (first, last) = (fcts[..3].iter().min().unwrap(), fcts[..3].iter().max().unwrap());
    assert!(*first as f64 > 0.99 * *last as f64, "{fcts:?}");
    assert_eq!(fcts[3], plan.flows[3].ideal);
}

/// Two hosts send in step, and the packets of the first one reach the switch first. When the queue is full, the first
/// packet of each turn finds the room of the packet that has left, and the second one finds none. If always the
/// arriving packet is cut, then nearly always the second host loses it: a phase effect. (Headers on the link shift the
/// turns now and then.) If each of the last two is cut half of the time, the hosts lose the same.
#[test]
fn the_random_choice_breaks_phases() {
    let cut = |trims: &str, seed: u64, threads: usize| {
        let mut text =
            star(3) + &trims_of(8, trims) + &format!("[run]\nseed = {seed}\nduration = \"180us\"\n");
        // No packet is requested: the first windows do not end.
        text += "[ndp]\ninitial_window = \"4MB\"\n";
        (1..=2).for_each(|i| text += &flow(i, 0, "4MB"));
        let plan = plan(&text);
        let outcome = xoff_sim::run_on(&plan, threads, &mut |_| true);
        assert_eq!(outcome.ports.iter().map(|port| port.queue_peak).max(), Some(8 * PACKET));
        (outcome.flows.iter().map(|flow| flow.dropped).collect::<Vec<u64>>(), outcome)
    };
    let (always, _) = cut("arriving", 1, 1);
    println!("the arriving packet: {always:?}");
    assert!(always[0] * 20 < always[1] && always[1] > 400, "{always:?}");
    for seed in 1..=5 {
        let (one, outcome) = cut("arriving-or-last", seed, 1);
        let all = one[0] + one[1];
        assert!(all.abs_diff(always[0] + always[1]) <= 8, "as many are cut: {one:?}, {always:?}");
        println!("the arriving or the last packet: {one:?}");
        // Five standard deviations of a fair coin.
        let off = one[0] as f64 - all as f64 / 2.0;
        assert!(off.abs() < 2.5 * (all as f64).sqrt(), "{one:?}");
        assert!(outcome == cut("arriving-or-last", seed, 3).1, "threads differ");
    }
}

/// With the last packet cut in place of the arriving one, an incast takes the time of its bytes, too.
#[test]
fn an_incast_takes_the_time_of_its_bytes_if_last_packets_are_cut() {
    for (senders, size, queue) in [(2, 4_096_000, 8), (8, 409_600, 8), (24, 409_600, 2), (60, 204_800, 8)] {
        let mut text = star(senders + 1) + &trims_of(queue, "arriving-or-last");
        (1..=senders).for_each(|i| text += &flow(i, 0, &format!("{size}B")));
        let plan = plan(&text);
        let outcome = run(&plan);
        only_trims(&outcome);
        delivers_once(&plan, &outcome);
        let packets = senders as u64 * size / 4_096;
        let last = outcome.flows.iter().filter_map(|f| f.delivered).max().expect("delivered");
        let least = TURN + 2_000_000 + packets * TURN;
        let most = least + trimmed(&outcome) * 64 * 80;
        println!("{senders} senders: {last} ps, at least {least}, {:.4}", last as f64 / least as f64);
        assert!(last >= least, "{last} < {least}");
        assert!(last as f64 <= most as f64 * 1.005, "{last} > {most}");
        for port in &outcome.ports {
            assert!(port.queue_peak <= queue * PACKET + senders as u64 * 40 * 66, "{port:?}");
        }
    }
}

/// The lone data packet of a short queue is cut in place of a later one, and a packet of one byte never is: it has
/// nothing to cut, and goes on whole.
#[test]
fn packets_of_all_sizes_change_places() {
    for seed in 1..=20 {
        let mut random = Stream::new(seed, "sizes", 0);
        let mut text = star(13) + &trims_of(1 + seed % 3, "arriving-or-last");
        text += &format!("[run]\nseed = {seed}\n[ecn]\nk_min = \"1kB\"\nk_max = \"9kB\"\np_max = 0.5\n");
        for i in 1..=12 {
            // Last packets of 1 B to 4,096 B.
            text += &flow(i, 0, &format!("{}B", 4_096 * random.below(9) + 1 + random.below(4_096)));
            text += &flow(i, 0, &format!("{}B", 1 + random.below(60)));
        }
        let plan = plan(&text);
        let outcome = run(&plan);
        only_trims(&outcome);
        delivers_once(&plan, &outcome);
        assert!(trimmed(&outcome) > 5);
        for port in &outcome.ports {
            assert!(port.queue_peak <= 3 * PACKET, "{port:?}");
        }
    }
}

/// The incasts of csg-htsim's `incast_shortflows` and of section 6.2 of the paper: links of 10 Gbit/s and 1 us, 9000
/// B and a header of 64 B, queues of 8 packets, first windows of 23 packets, flows of 30 packets. The paper's
/// overhead is the time of the last flow over N·30 packets and 42.256 us (six links), less 1: below 2%.
#[test]
fn an_incast_has_the_overhead_of_the_paper() {
    for (senders, balancing) in [(1, "spray"), (8, "ecmp"), (8, "spray"), (32, "spray"), (100, "spray")] {
        let mut text = format!(
            "[topology]\nkind = \"fat-tree\"\nk = 8\nlink = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
             [routing]\nload_balancing = \"{balancing}\"\n[flow_control]\nscheme = \"trimming\"\n\
             [transport]\nkind = \"ndp\"\nmtu = \"9000B\"\nheader = \"64B\"\nack = \"64B\"\n\
             [ndp]\ninitial_window = \"207000B\"\n[[priority]]\nid = 3\negress_limit = \"72512B\"\n"
        );
        // From other pods.
        (0..senders).for_each(|i| text += &flow(127 - i, 0, "270kB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        let last = outcome.flows.iter().filter_map(|f| f.delivered).max().expect("delivered") as f64;
        let ideal = senders as f64 * 271_920.0 * 8.0 * 100.0 + 42_256_000.0;
        // A packet that is trimmed again at the end costs a round trip: six links each way.
        let trip = 42_256_000.0 + 7_251_200.0 + 12_000_000.0;
        let overhead = last / ideal - 1.0;
        println!("{senders} senders, {balancing}: overhead {:.2}%", overhead * 100.0);
        assert!(overhead > -0.000_1 && last < 1.02 * ideal + trip, "{overhead}");
        let sent: u64 = outcome.flows.iter().map(|f| f.packets_sent).sum();
        assert!(sent <= 2 * 30 * senders as u64, "about one retransmission per packet at most");
    }
}

/// Packets of a flow overtake each other, and no sender retransmits: a NACK needs a trimmed packet.
#[test]
fn reordering_costs_nothing() {
    let mut reordered = 0;
    for seed in 1..=20 {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [routing]\nload_balancing = \"spray\"\n{}[run]\nseed = {seed}\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n",
            trims(200)
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        assert!(outcome.drops.is_empty(), "the queues have room");
        for flow in &outcome.flows {
            assert_eq!((flow.retransmitted, flow.nacks, flow.timeouts), (0, 0, 0));
            reordered += flow.out_of_order;
        }
    }
    assert!(reordered > 1_000, "{reordered}");
}

/// Headers that have no room are lost, and count. Their senders retransmit after the timeout.
#[test]
fn a_full_queue_of_headers_loses_them() {
    let mut text = star(121) + &trims(8) + "[[priority]]\nid = 7\negress_limit = \"4158B\"\n";
    (1..=120).for_each(|i| text += &flow(i, 0, "100kB"));
    let plan = plan(&text);
    let outcome = run(&plan);
    delivers_once(&plan, &outcome);
    let lost = dropped(&outcome, DropReason::Scheme(&HEADER_LOST));
    let timeouts: u64 = outcome.flows.iter().map(|f| u64::from(f.timeouts)).sum();
    assert!(lost > 100 && timeouts > 0, "{lost} lost, {timeouts} timeouts");
    assert!(lost < trimmed(&outcome), "some arrive");
    let data: u64 = outcome.flows.iter().map(|f| f.dropped).sum();
    assert_eq!(data, trimmed(&outcome), "a data packet ends where it is trimmed");
}

/// Links lose data, headers, ACKs, NACKs and PULLs: the timeout repairs all of it.
#[test]
fn losses_are_repaired() {
    for seed in 1..=20 {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
             host_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             fabric_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [routing]\nload_balancing = \"spray\"\n{}[ndp]\nrto = \"50us\"\n[run]\nseed = {seed}\n\
             [[loss]]\nlink = \"S0.0-S1.0\"\nrate = 0.05\n[[loss]]\nlink = \"S0.1-S1.1\"\nrate = 0.02\n\
             [[traffic]]\nkind = \"all-to-all\"\nsize = \"100kB\"\n",
            trims(8)
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        assert!(dropped(&outcome, DropReason::FrameLost) > 10);
        assert!(trimmed(&outcome) > 0 && outcome.flows.iter().any(|f| f.timeouts > 0));
    }
}

/// Random fabrics, loads, queues, windows and sizes of headers: every flow completes, its bytes are delivered once, no
/// data is lost without a header, and ports keep the limits of their queues.
#[test]
fn random_fabrics_deliver_everything_once() {
    let (mut cut, mut flows, mut clean) = (0, 0, 0);
    for (seed, trims) in (1..=20).flat_map(|seed| [(seed, "arriving"), (seed, "arriving-or-last")]) {
        let mut random = Stream::new(seed, "fabric", 0);
        let mut pick = |most: u64| 1 + random.below(most);
        let (leaves, spines, hosts) = (1 + pick(3), pick(4), pick(6));
        let (queue, size, rate) = (1 + pick(12), 1 + pick(600_000), [40, 100, 400][pick(3) as usize - 1]);
        let balancing = ["ecmp", "spray", "drill"][pick(3) as usize - 1];
        let trim = 63 + pick(200);
        let fan_in = (leaves * hosts - 1).min(pick(20));
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
             host_link = {{ rate = \"100Gbps\", delay = \"{}ns\" }}\n\
             fabric_link = {{ rate = \"{rate}Gbps\", delay = \"{}ns\" }}\n\
             [routing]\nload_balancing = \"{balancing}\"\n[run]\nseed = {seed}\n\
             [flow_control]\nscheme = \"trimming\"\ntrim_size = \"{trim}B\"\ntrims = \"{trims}\"\npriority = {}\n\
             [transport]\nkind = \"ndp\"\nmtu = \"{}B\"\n[ndp]\ninitial_window = \"{}bdp\"\n\
             [[priority]]\nid = 3\negress_limit = \"{}B\"\n\
             [[traffic]]\nkind = \"incast\"\nfan_in = {fan_in}\nsize = \"{size}B\"\nto = \"H0\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"{}B\"\n",
            pick(3_000),
            pick(3_000),
            4 + pick(3),
            900 + pick(4_000),
            pick(3),
            queue * 5_000,
            pick(400_000),
        );
        let plan = plan(&text);
        let outcome = run(&plan);
        // Where links to the spines are few, the headers of several receivers may fill one and its queue.
        if spines * rate >= hosts * 100 {
            only_trims(&outcome);
            clean += 1;
        }
        assert_eq!(outcome.counters.dropped, trimmed(&outcome), "data ends only where it is trimmed");
        delivers_once(&plan, &outcome);
        (cut, flows) = (cut + trimmed(&outcome), flows + plan.flows.len());
    }
    println!("{flows} flows, {cut} packets trimmed, {clean} fabrics without a lost header");
    assert!(cut > 4_000 && flows > 400 && clean > 16, "{flows} flows, {cut} packets trimmed, {clean} clean");
}

/// NDP over flow controls that do not trim: nothing is lost under PFC, and the timeout finds losses without it.
#[test]
fn ndp_runs_over_every_flow_control() {
    for scheme in ["pfc", "bfc", "pyrrha", "per-flow-queue", "cbfc", "gfc", "none"] {
        let mut text =
            star(9) + &format!("[flow_control]\nscheme = \"{scheme}\"\n[transport]\nkind = \"ndp\"\n");
        (1..=8).for_each(|i| text += &flow(i, 0, "300kB"));
        let plan = plan(&text);
        let outcome = run(&plan);
        delivers_once(&plan, &outcome);
        assert_eq!(trimmed(&outcome), 0);
    }
}
