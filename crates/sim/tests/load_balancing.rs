//! Load balancing: spraying, DRILL(d, m) and PLB against closed forms, models and their promises.

use crate::common;

use common::{fcts, plan, plan_with, run};
use xoff_kernel::random::Stream;
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::Plan;
use xoff_schemes::load_balancing::plb::report::Report;
use xoff_sim::outcome::Outcome;

/// Two leaves with `hosts` hosts each and `spines` spines between them.
fn fabric(hosts: u32, spines: u32, rate: &str, routing: &str, rest: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = {spines}\nhosts_per_leaf = {hosts}\n\
         host_link = {{rate=\"100Gbps\", delay=\"1us\"}}\nfabric_link = {{rate=\"{rate}\", delay=\"1us\"}}\n\
         [routing]\n{routing}\n[transport]\nkind = \"irn\"\n{rest}"
    )
}

fn flow(src: &str, dst: &str, size: &str) -> String {
    format!("[[traffic]]\nkind = \"flow\"\nsrc = \"{src}\"\ndst = \"{dst}\"\nsize = \"{size}\"\n")
}

/// The ports of the first leaf that lead to the spines.
fn uplinks(plan: &Plan, hosts: u32) -> Vec<usize> {
    let leaf = plan.topology.find("S0.0").unwrap();
    plan.topology.nodes[leaf as usize].ports[hosts as usize..].iter().map(|&p| p as usize).collect()
}

fn packets(outcome: &Outcome, ports: &[usize]) -> Vec<u64> {
    ports.iter().map(|&p| outcome.ports[p].packets).collect()
}

#[test]
fn spraying_divides_packets_as_fair_dice_do() {
    let text = fabric(1, 5, "100Gbps", "load_balancing = \"spray\"", &flow("H0", "H1", "20MB"));
    let plan = plan(&text);
    let outcome = run(&plan);
    fcts(&plan, &outcome);
    let counts = packets(&outcome, &uplinks(&plan, 1));
    let n: u64 = counts.iter().sum();
    assert!(n >= 20_000 && outcome.counters.dropped == 0);
    // Binomial: five standard deviations about the mean.
    let (mean, p) = (n as f64 / 5.0, 0.2f64);
    let deviation = (n as f64 * p * (1.0 - p)).sqrt();
    assert!(counts.iter().all(|&c| (c as f64 - mean).abs() < 5.0 * deviation), "{counts:?}");
    // Chi-square with 4 degrees of freedom, from its 0.1% to its 99.9% quantile: dealt in
    // turns they would be more even than that.
    let chi: f64 = counts.iter().map(|&c| (c as f64 - mean).powi(2) / mean).sum();
    assert!((0.09..18.5).contains(&chi), "{chi} {counts:?}");
}

#[test]
fn a_flow_has_one_path_under_ecmp_and_packets_in_order() {
    let plan = plan(&fabric(1, 5, "100Gbps", "", &flow("H0", "H1", "20MB")));
    let outcome = run(&plan);
    assert_eq!(packets(&outcome, &uplinks(&plan, 1)).iter().filter(|&&c| c > 0).count(), 1);
    assert_eq!(outcome.flows[0].out_of_order, 0);
}

/// A rule that samples all queues chooses the shortest one: a burst leaves them equal to within a packet. 400
/// packets of 1062 B come at 100 Gbit/s, 84.96 ns apart, for two uplinks of 10 Gbit/s, which send one in
/// 849.6 ns.
#[test]
fn drill_that_sees_every_queue_keeps_them_equal() {
    let drill = "load_balancing = \"drill\"\ndrill = { d = 16, m = 2 }";
    let irn = "[irn]\nrto_low = \"10ms\"\nrto_high = \"10ms\"\n";
    // Each packet is a separate flow: none is early, and none is retransmitted.
    let burst = "[[traffic]]\nkind = \"incast\"\nfan_in = 1\nflows_per_sender = 400\nsize = \"1kB\"\n\
                 from = [\"H0\"]\nto = \"H1\"\n";
    let plan = plan(&fabric(1, 2, "10Gbps", drill, &format!("{irn}{burst}")));
    let outcome = run(&plan);
    let ports = uplinks(&plan, 1);
    assert_eq!(packets(&outcome, &ports), [200, 200]);
    // The last of 400 comes 399 · 84.96 ns after the first; each uplink has sent
    // 1 + ⌊399 · 84.96 / 849.6⌋ = 40 by then, and begins with its 200th at the 40th.
    for &port in &ports {
        let peak = outcome.ports[port].queue_peak;
        assert!(peak.abs_diff(160 * 1062) <= 2 * 1062, "{peak}");
    }
}

/// The same burst for adaptive routing by packet, without samples or memory.
#[test]
fn adaptive_routing_by_packet_keeps_every_queue_equal() {
    let adaptive = "load_balancing = \"adaptive\"\nadaptive = { mode = \"packet\" }";
    let irn = "[irn]\nrto_low = \"10ms\"\nrto_high = \"10ms\"\n";
    let burst = "[[traffic]]\nkind = \"incast\"\nfan_in = 1\nflows_per_sender = 600\nsize = \"1kB\"\n\
                 from = [\"H0\"]\nto = \"H1\"\n";
    let plan = plan(&fabric(1, 3, "10Gbps", adaptive, &format!("{irn}{burst}")));
    let outcome = run(&plan);
    let peaks: Vec<u64> = uplinks(&plan, 1).iter().map(|&p| outcome.ports[p].queue_peak).collect();
    // 600 packets, 84.96 ns apart, of which each uplink has begun with every tenth.
    assert_eq!(packets(&outcome, &uplinks(&plan, 1)), [200, 200, 200]);
    assert!(peaks.iter().all(|peak| peak.abs_diff(140 * 1062) <= 2 * 1062), "{peaks:?}");
}

/// Flowlets: a flow whose packets come 85 us apart takes a new path for each if that is longer than `idle`, and its
/// first path for ever if it is shorter. Both keep the packets in order.
#[test]
fn a_flowlet_keeps_its_path_until_the_flow_pauses() {
    let used = |idle: &str| {
        let keys = format!("load_balancing = \"adaptive\"\nadaptive = {{ idle = \"{idle}\" }}");
        let paced = flow("H0", "H1", "100kB") + "rate = \"100Mbps\"\n";
        let plan = plan(&fabric(1, 4, "100Gbps", &keys, &paced));
        let outcome = run(&plan);
        assert_eq!(outcome.flows[0].out_of_order, 0);
        packets(&outcome, &uplinks(&plan, 1)).iter().filter(|&&count| count > 0).count()
    };
    assert_eq!([used("80us"), used("90us")], [4, 1]);
}

/// A dragonfly with p = h = 2, a = 4 and nine groups, whose hosts all send to the next group.
fn neighbours(routing: &str) -> Plan {
    let mut text = format!(
        "[topology]\nkind = \"dragonfly\"\nswitches_per_group = 4\nhosts_per_switch = 2\nglobal_links = 2\n\
         link = {{ rate = \"100Gbps\", delay = \"100ns\" }}\n[routing]\n{routing}\n[transport]\nkind = \"irn\"\n\
         ack_priority = 7\n[irn]\nrto_low = \"20ms\"\nrto_high = \"20ms\"\n\
         [flow_control]\nscheme = \"pfc\"\npriorities = [3]\n"
    );
    (0..72).for_each(|host| text += &flow(&format!("H{host}"), &format!("H{}", (host + 8) % 72), "1MB"));
    plan(&text)
}

/// The adversarial traffic of Kim et al. (ISCA 2008): minimal routes send all hosts of a group over one link, so a
/// host gets 1/(a · p) of a link. Valiant's routes share all links between groups, and UGAL chooses them. Nothing is
/// lost, no cycle of pauses stands, and flows finish earlier.
#[test]
fn non_minimal_routes_share_the_links_between_groups() {
    // 1,000 packets of 1,062 B.
    let lone = 1_000.0 * 1_062.0 * 80.0;
    let mean = |routing: &str| {
        let plan = neighbours(routing);
        let outcome = run(&plan);
        assert!(outcome.deadlock.is_none() && outcome.counters.dropped == 0);
        assert_eq!(xoff_sim::run_on(&plan, 2, &mut |_| true), outcome);
        let fcts = fcts(&plan, &outcome);
        fcts.iter().sum::<u64>() as f64 / fcts.len() as f64 / lone
    };
    let minimal = mean("virtual_channels = 2");
    assert!((7.9..8.1).contains(&minimal), "{minimal}");
    // A link of group j carries 8/7 of a host's rate of its own group, and as much of the group before the
    // destination: 16/7. Packets that are early are sent again in vain.
    for kind in ["valiant", "ugal"] {
        let spread = mean(&format!("load_balancing = \"{kind}\"\nvirtual_channels = 3"));
        assert!((16.0 / 7.0 / 2.0..6.0).contains(&spread), "{kind} {spread}");
    }
}

/// Alone, a flow takes a minimal path under UGAL, in order.
#[test]
fn ugal_takes_minimal_paths_while_queues_are_empty() {
    let text = "[topology]\nkind = \"dragonfly\"\nswitches_per_group = 4\nhosts_per_switch = 2\nglobal_links = 2\n\
         link = { rate = \"100Gbps\", delay = \"100ns\" }\n[transport]\nkind = \"irn\"\n\
         [routing]\nvirtual_channels = 3\nload_balancing = \"ugal\"\n";
    let plan = plan(&(text.to_string() + &flow("H0", "H71", "1MB")));
    let outcome = run(&plan);
    assert_eq!(outcome.flows[0].out_of_order, 0);
    assert_eq!(fcts(&plan, &outcome)[0], plan.flows[0].ideal);
}

/// Flows around a ring deadlock under PFC, and not with two virtual channels: each lane ends at the dateline.
#[test]
fn two_channels_keep_a_ring_from_deadlock() {
    let run_with = |channels: u32| {
        let plan = plan(&format!(
            "[topology]\nkind = \"ring\"\nswitches = 4\nhosts_per_switch = 2\nlink = {{ rate = \"100Gbps\", delay = \"1us\" }}\n\
             [routing]\nvirtual_channels = {channels}\n[flow_control]\nscheme = \"pfc\"\nxoff = \"40kB\"\npriorities = [3]\n\
             [transport]\nkind = \"go-back-n\"\nack_priority = 7\n\
             [[traffic]]\nkind = \"loop\"\nswitches = [\"S0.0\", \"S0.1\", \"S0.2\", \"S0.3\"]\nhops = 2\nsize = \"2MB\"\n[run]\nduration = \"20ms\"\n"
        ));
        let outcome = run(&plan);
        (outcome.deadlock.is_some(), outcome.flows.iter().filter(|f| f.completed.is_none()).count())
    };
    let (deadlock, unfinished) = run_with(1);
    assert!(deadlock && unfinished > 0);
    assert_eq!(run_with(2), (false, 0));
}

/// Balls into bins, by the rule and nothing else: the largest difference between the
/// fullest and the emptiest of `bins` after `balls`, over many trials.
fn most_uneven(balls: u32, bins: usize, d: u32, m: usize) -> u32 {
    let mut random = Stream::new(99, "balls", 0);
    let mut most = 0;
    for _ in 0..2_000 {
        let (mut load, mut memory) = (vec![0u32; bins], Vec::<usize>::new());
        for _ in 0..balls {
            let mut seen: Vec<usize> = (0..d).map(|_| random.below(bins as u64) as usize).collect();
            seen.extend(&memory);
            seen.sort_by_key(|&bin| load[bin]);
            seen.dedup();
            memory = seen[..m.min(seen.len())].to_vec();
            load[seen[0]] += 1;
        }
        most = most.max(load.iter().max().unwrap() - load.iter().min().unwrap());
    }
    most
}

/// A burst that hardly drains: uplinks of 100 Mbit/s send one packet in 84.96 us, and
/// 600 come within 51 us.
#[test]
fn drill_balances_as_its_model_does_and_better_than_chance() {
    let spines = 6;
    let uneven = |routing: &str| {
        let rest = format!(
            "window = \"10MB\"\n[switch]\nbuffer = \"64MB\"\n[run]\nduration = \"60us\"\n{}",
            flow("H0", "H1", "600kB")
        );
        let plan = plan(&fabric(1, spines, "100Mbps", routing, &rest));
        let outcome = run(&plan);
        let peaks: Vec<u64> = uplinks(&plan, 1).iter().map(|&p| outcome.ports[p].queue_peak / 1062).collect();
        assert!(peaks.iter().sum::<u64>() > 570, "{peaks:?}");
        (peaks.iter().max().unwrap() - peaks.iter().min().unwrap()) as u32
    };
    let one = |d: u32, m: u32| uneven(&format!("load_balancing = \"drill\"\ndrill = {{ d = {d}, m = {m} }}"));
    for (d, m) in [(1, 1), (2, 0), (2, 1), (3, 2)] {
        // One packet of each uplink is on its wire.
        assert!(one(d, m) <= most_uneven(600, 6, d, m as usize) + 1, "DRILL({d}, {m})");
    }
    // Spraying leaves about 2 · √(600 / 6) between the extremes.
    let (drill, spray) = (one(2, 1), uneven("load_balancing = \"spray\""));
    assert!(spray >= 10 && drill * 3 <= spray, "{drill} {spray}");
    assert!(one(1, 0) >= 10, "without a second look it is spraying");
    // Six flows by hash: some uplink has two of them or more, and some has none.
    let rest = format!(
        "window = \"10MB\"\n[switch]\nbuffer = \"64MB\"\n[run]\nduration = \"60us\"\n{}",
        (0..6).map(|i| flow(&format!("H{i}"), &format!("H{}", 6 + i), "100kB")).collect::<String>()
    );
    let plan = plan(&fabric(6, spines, "100Mbps", "", &rest));
    let outcome = run(&plan);
    let counts: Vec<u64> = uplinks(&plan, 6).iter().map(|&p| outcome.ports[p].queue_peak / 1062).collect();
    assert!(counts.contains(&0) && counts.iter().any(|&c| c > 150), "{counts:?}");
}

/// Under load DRILL's queues are shorter than those of spraying, and both are shorter
/// than those of ECMP.
#[test]
fn queues_under_load_are_in_the_order_of_the_paper() {
    let mean = |routing: &str| {
        let poisson = "[flow_control]\nscheme = \"none\"\n[[traffic]]\nkind = \"poisson\"\nsizes = \"20kB\"\nload = 0.7\n\
                       from = [\"H0..H7\"]\nto = [\"H8..H15\"]\n[run]\nduration = \"400us\"\ndrain = \"1ms\"\n";
        let text = fabric(8, 8, "100Gbps", routing, poisson);
        let plan = plan(&text);
        let outcome = run(&plan);
        let peaks: Vec<u64> = uplinks(&plan, 8).iter().map(|&p| outcome.ports[p].queue_peak).collect();
        let fcts: Vec<u64> = outcome.flows.iter().filter_map(|f| Some(f.completed? - f.started?)).collect();
        (peaks.iter().sum::<u64>() / peaks.len() as u64, fcts.iter().sum::<u64>() / fcts.len() as u64)
    };
    let [ecmp, spray, drill] = ["ecmp", "spray", "drill"].map(|k| mean(&format!("load_balancing = \"{k}\"")));
    assert!(2 * drill.0 < spray.0 && 2 * spray.0 < ecmp.0, "{drill:?} {spray:?} {ecmp:?}");
    assert!(drill.1 <= spray.1 && spray.1 < ecmp.1, "{drill:?} {spray:?} {ecmp:?}");
}

/// A flow that stays on the first spine, and one whose hash leads there as well.
fn shared(plb: &str, rest: &str) -> String {
    let ecn = "[ecn]\nk_min = \"20kB\"\nk_max = \"20kB\"\np_max = 1.0\n";
    let fixed = flow("H0", "H2", "8MB") + "path = [\"H0\", \"S0.0\", \"S1.0\", \"S0.1\", \"H2\"]\n";
    let rest = format!("{rest}{ecn}{fixed}{}", flow("H1", "H3", "8MB"));
    fabric(2, 2, "100Gbps", plb, &rest)
}

/// A routing seed under which the second flow begins on the first spine.
fn colliding(make: impl Fn(u64) -> Plan) -> Plan {
    let collides = |plan: &Plan| {
        let port = plan.hops[plan.flows[1].path as usize + 1];
        plan.topology.nodes[plan.topology.neighbour(port) as usize].name == "S1.0"
    };
    (1..30).map(make).find(collides).expect("one of 30")
}

fn plb(forced: u32, rest: &str) -> Plan {
    colliding(|seed| {
        let keys = format!("load_balancing = \"plb\"\nseed = {seed}\nplb = {{ forced_rounds = {forced} }}");
        plan(&shared(&keys, rest))
    })
}

#[test]
fn plb_leaves_a_hot_path_and_stays_where_there_is_none() {
    let plan = plb(12, "");
    let outcome = run(&plan);
    let told = outcome.records.get::<Report>().unwrap();
    let last = plan.hops[outcome.routes.as_ref().unwrap()[1] as usize + 1];
    assert_eq!(plan.topology.nodes[plan.topology.neighbour(last) as usize].name, "S1.1");
    assert_eq!((told.flows[1].moves, told.flows[1].by_timeouts), (1, 0), "{told:?}");
    assert_eq!(outcome.routes.as_ref().unwrap()[0], plan.flows[0].path, "an explicit path stays");
    // Half of the link while they share it, all of it afterwards.
    let ecmp = colliding(|seed| common::plan(&shared(&format!("seed = {seed}"), "")));
    let (with, without) = (fcts(&plan, &outcome), fcts(&ecmp, &run(&ecmp)));
    assert!(with[0] * 4 < without[0] * 3 && with[1] * 4 < without[1] * 3, "{with:?} {without:?}");
}

#[test]
fn plb_waits_for_the_given_number_of_congested_rounds() {
    // The packets that the second flow, the only one of its host, sends before it moves.
    let before = |forced: u32| {
        let plan = plb(forced, "");
        let outcome = run(&plan);
        let told = outcome.records.get::<Report>().unwrap().flows[1];
        (told.moves, packets(&outcome, &uplinks(&plan, 2))[1])
    };
    let all = 8_000;
    let [(_, soon), (_, later), (_, last)] = [4, 12, 24].map(before);
    assert!(soon > later && later > last, "{soon} {later} {last}");
    // A round is a round trip of the window: so the bytes before a move grow with the rounds.
    let (a, b) = ((all - later) - (all - soon), (all - last) - (all - later));
    assert!(b > a && b < 3 * a, "{a} for 8 rounds, {b} for 12");
    assert_eq!(before(100_000), (0, 0));
}

#[test]
fn without_marks_plb_is_ecmp() {
    let keys = |kind: &str| format!("load_balancing = \"{kind}\"");
    let ecn = "[ecn]\nk_min = \"50kB\"\nk_max = \"50kB\"\np_max = 1.0\n";
    let outcome = |kind: &str| {
        let rest = format!("{ecn}{}", flow("H0", "H3", "2MB"));
        let plan = plan(&fabric(2, 4, "100Gbps", &keys(kind), &rest));
        run(&plan)
    };
    let (plb, ecmp) = (outcome("plb"), outcome("ecmp"));
    assert_eq!((&plb.flows, &plb.ports), (&ecmp.flows, &ecmp.ports));
    assert_eq!(plb.records.get::<Report>().unwrap().flows[0], Default::default());
}

/// The link of the first spine loses every frame: only another label helps.
#[test]
fn after_a_timeout_plb_tries_another_label() {
    let loss = "[[loss]]\nlink = \"S0.0:2\"\nrate = 1.0\nfrom = \"S0.0\"\n[run]\nduration = \"100ms\"\n";
    for transport in ["irn", "go-back-n"] {
        let make = |keys: &str| {
            let rest = format!("{loss}{}{}", flow("H0", "H1", "1kB"), flow("H1", "H3", "100kB"));
            let text = fabric(2, 2, "100Gbps", keys, &rest);
            plan_with(&text, &[("transport.kind", &format!("\"{transport}\""))])
        };
        let stuck = colliding(|seed| make(&format!("seed = {seed}")));
        assert_eq!(run(&stuck).flows[1].completed, None);
        let moves = colliding(|seed| make(&format!("seed = {seed}\nload_balancing = \"plb\"")));
        let outcome = run(&moves);
        assert!(outcome.flows[1].completed.is_some(), "{transport}");
        let told = outcome.records.get::<Report>().unwrap().flows[1];
        assert!(told.by_timeouts >= 1 && told.moves >= 1 && told.by_marks == 0, "{told:?}");
        assert_eq!(told.by_timeouts, outcome.flows[1].timeouts);
    }
}

/// Go-back-N's ACKs of several packets report all of their marks.
#[test]
fn marks_are_counted_where_acks_are_few() {
    let plan = plb(4, "");
    for every in ["1", "4"] {
        let text = [("transport.kind", "\"go-back-n\""), ("transport.ack_every", every)];
        let plan = colliding(|seed| {
            let keys = format!("load_balancing = \"plb\"\nseed = {seed}\nplb = {{ forced_rounds = 4 }}");
            // Little more than the bytes in flight without a queue: a larger window would fill the queue of
            // the last hop, whose marks no other path avoids.
            plan_with(&shared(&keys, "window = \"110kB\"\n"), &text)
        });
        let told = run(&plan).records.get::<Report>().unwrap().clone();
        assert_eq!(told.flows[1].moves, 1, "{every} {told:?}");
    }
    let LoadBalancing::Labels(labels) = &plan.load_balancing else { panic!() };
    assert_eq!(labels.rule.labels(), 8);
}

/// Every load balancing with every compatible flow control, transport and congestion control: all flows
/// complete, and no lossless packet is lost.
#[test]
fn all_combinations_deliver_everything_and_do_not_depend_on_threads() {
    let mut turn = 0;
    for kind in ["spray", "drill", "adaptive", "plb", "reps"] {
        for scheme in ["pfc", "bfc", "per-flow-queue", "pyrrha", "none"] {
            // Refused: hosts queue flows by path under Pyrrha.
            if (kind, scheme) == ("reps", "pyrrha") {
                continue;
            }
            for (transport, control) in [("irn", "none"), ("irn", "dcqcn"), ("go-back-n", "dcqcn")] {
                let text = format!(
                    "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{rate=\"100Gbps\", delay=\"500ns\"}}\n\
                     [routing]\nload_balancing = \"{kind}\"\nadaptive = {{ mode = \"packet\" }}\n\
                     [flow_control]\nscheme = \"{scheme}\"\n[switch]\nbuffer = \"64MB\"\n[measure]\nblocking = true\n\
                     [transport]\nkind = \"{transport}\"\ncongestion_control = \"{control}\"\nrto = \"500us\"\n\
                     [ecn]\nk_min = \"10kB\"\nk_max = \"50kB\"\np_max = 1.0\n\
                     [[traffic]]\nkind = \"incast\"\nfan_in = 10\nsize = \"60kB\"\nto = \"H3\"\n\
                     [[traffic]]\nkind = \"permutation\"\nsize = \"150kB\"\n\
                     [[slow_receiver]]\nhost = \"H5\"\nrate = \"60Gbps\"\n"
                );
                let plan = plan(&text);
                let outcome = run(&plan);
                fcts(&plan, &outcome);
                let reordered: u64 = outcome.flows.iter().map(|f| f.out_of_order).sum();
                assert!(kind == "plb" || reordered > 0, "{kind} {scheme}");
                // Each number of threads comes with each scheme and each load balancing.
                turn += 1;
                let threads = 2 + turn % 3;
                assert_eq!(xoff_sim::run_on(&plan, threads, &mut |_| true), outcome, "{threads} {text}");
            }
        }
    }
}

/// A packet at an edge switch may come over any aggregation and core switch, so the congested last hop of the
/// incast is on all of its paths or on none.
#[test]
fn victims_of_the_oracle_cannot_have_been_the_cause() {
    for kind in ["spray", "drill"] {
        let plan = plan(&format!(
            "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{rate=\"100Gbps\", delay=\"1us\"}}\n\
             [routing]\nload_balancing = \"{kind}\"\n[flow_control]\nscheme = \"pfc\"\nxoff = \"20kB\"\n\
             [transport]\nkind = \"irn\"\n[measure]\nblocking = true\n\
             [[traffic]]\nkind = \"incast\"\nfrom = [\"H4..H15\"]\nto = \"H0\"\nfan_in = 12\nsize = \"300kB\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"H8\"\ndst = \"H1\"\nsize = \"300kB\"\n"
        ));
        let blocking = run(&plan).blocking.unwrap();
        let host = plan.topology.nodes[plan.topology.find("H0").unwrap() as usize].ports[0];
        let last = plan.topology.ports[host as usize].peer;
        let of_last: Vec<_> = blocking.places.iter().filter(|(place, _)| place.root == last).collect();
        let sum =
            |get: fn(&xoff_sim::outcome::Blame) -> u64| of_last.iter().map(|(_, b)| get(b)).sum::<u64>();
        let victim =
            plan.flows.iter().position(|f| plan.topology.nodes[f.dst as usize].name == "H1").unwrap();
        assert!(sum(|b| b.own) > 0 && sum(|b| b.victim) > 0, "{kind}");
        // A victim of it is not of the incast, except ACKs, which wait after data.
        let others: u64 =
            plan.flows.iter().zip(&blocking.flows).filter(|(f, _)| f.dst != 0).map(|(_, b)| b.victim).sum();
        assert_eq!(plan.flows[victim].dst, 1);
        assert!(others > 0 && others >= sum(|b| b.victim) / 2, "{kind} {others} {}", sum(|b| b.victim));
    }
}

/// Links fail and recover while packets are spread or labelled: all packets arrive in the end, for every flow control,
/// and none goes over a link that routes know to be down.
#[test]
fn spread_packets_follow_failures() {
    for (turn, (kind, scheme)) in [
        ("spray", "pfc"),
        ("drill", "none"),
        ("spray", "per-flow-queue"),
        ("drill", "bfc"),
        ("plb", "pfc"),
        ("plb", "pyrrha"),
        ("reps", "per-flow-queue"),
        ("reps", "none"),
    ]
    .into_iter()
    .enumerate()
    {
        let plan = plan(&format!(
            "[topology]\nkind = \"fat-tree\"\nk = 4\nlink = {{rate=\"100Gbps\", delay=\"500ns\"}}\n\
             [routing]\nload_balancing = \"{kind}\"\nreconvergence = \"3us\"\n\
             [flow_control]\nscheme = \"{scheme}\"\n[switch]\nbuffer = \"64MB\"\n\
             [transport]\nkind = \"irn\"\n[measure]\nblocking = true\n\
             [[failure]]\nlink = \"S0.0-S1.0\"\nat = \"10us\"\nuntil = \"60us\"\n\
             [[failure]]\nswitch = \"S2.3\"\nat = \"0us\"\nuntil = \"35us\"\n\
             [[failure]]\nlink = \"S1.6-S2.0\"\nat = \"20us\"\n\
             [[traffic]]\nkind = \"permutation\"\nsize = \"400kB\"\n"
        ));
        let outcome = run(&plan);
        fcts(&plan, &outcome);
        assert!(plan.faults.reroutes.len() == 4 && outcome.flows.iter().any(|f| f.out_of_order > 0));
        // S1.6-S2.0 stays down: packets over it were sent before.
        let aggregation = plan.topology.find("S1.6").unwrap();
        let core = plan.topology.find("S2.0").unwrap();
        let ports = &plan.topology.nodes[aggregation as usize].ports;
        let dead = *ports.iter().find(|&&p| plan.topology.neighbour(p) == core).unwrap() as usize;
        let most = 23_000 * 100 / 8;
        assert!((1..=most).contains(&outcome.ports[dead].bytes), "{}", outcome.ports[dead].bytes);
        assert_eq!(xoff_sim::run_on(&plan, 2 + turn % 3, &mut |_| true), outcome);
    }
}

/// A link that fails before the first packet, and never recovers, gives the results of a network without it.
#[test]
fn links_down_from_the_beginning_do_not_exist() {
    let text = |links: &str, rest: &str| {
        format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"X\", \"Y\", \"P\", \"Q\", \"R\"]\n\
             links = [\n{}{links}]\n[routing]\nload_balancing = \"drill\"\n[transport]\nkind = \"irn\"\n{}{rest}",
            ["A X", "B Y", "X P", "X Q", "P Y", "Q Y"]
                .map(|l| {
                    let (a, b) = l.split_once(' ').unwrap();
                    format!("{{ a = \"{a}\", b = \"{b}\", rate = \"100Gbps\", delay = \"1us\" }},\n")
                })
                .concat(),
            flow("A", "B", "1MB"),
        )
    };
    let link =
        |a: &str, b: &str| format!("{{ a = \"{a}\", b = \"{b}\", rate = \"100Gbps\", delay = \"1us\" }},\n");
    let failed = plan(&text(
        &(link("X", "R") + &link("R", "Y")),
        "[[failure]]\nlink = \"X-R\"\nat = \"0us\"\n[[failure]]\nlink = \"R-Y\"\nat = \"0us\"\n",
    ));
    let without = plan(&text("", ""));
    assert_eq!(run(&failed).flows, run(&without).flows);
}
