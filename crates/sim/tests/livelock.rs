//! Runs in which packets move and no flow progresses: they end by themselves and name the reason for which
//! each flow waits. Waits that timers, losses and slow links explain are no livelock.

use crate::common;

use common::{plan, plan_with, run};
use xoff_sim::outcome::Stop;

/// Two hosts at one switch.
const PAIR: &str = "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\n\
                    link = { rate = \"1Gbps\", delay = \"1us\" }\n";
/// Both send to each other.
const EXCHANGE: &str = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
/// One sends to the other.
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"10kB\"\n";

#[test]
fn acks_after_data_starve() {
    let text = format!("{PAIR}[transport]\nack_priority = 0\n{EXCHANGE}");
    let plan = plan(&text);
    let outcome = run(&plan);
    assert_eq!((outcome.stop, &outcome.deadlock), (Stop::Livelock, &None));
    let livelock = outcome.livelock.expect("the run ended for it");
    assert_eq!(livelock.flows.iter().map(|f| f.flow).collect::<Vec<_>>(), [0, 1]);
    for flow in &livelock.flows {
        assert!(flow.delivered > 0 && flow.acknowledged == 0);
        let [place] = flow.places[..] else { panic!("ACKs wait in one queue: {:?}", flow.places) };
        let nic = plan.topology.nodes[plan.flows[flow.flow as usize].dst as usize].ports[0];
        assert_eq!((place.port, place.data), (nic, 0));
        assert!(place.control_packets > 0);
        // Data are served first.
        assert_eq!(place.behind, Some(plan.flows[flow.flow as usize].lane));
    }
    // The last progress was made before the first timeout.
    assert!(livelock.since <= plan.transport.rto + 2_500_000_000, "{}", livelock.since);

    // With a duration the run goes on to its end, and says the same.
    let longer = common::plan_with(&text, &[("run.duration", "400ms")]);
    let outcome = run(&longer);
    assert_eq!(outcome.stop, Stop::EndTime);
    assert_eq!(outcome.livelock.expect("it is told").since, livelock.since);

    // ACKs of the data's priority arrive.
    let mended = plan_with(&text, &[("transport.ack_priority", "3")]);
    assert_eq!(run(&mended).stop, Stop::AllDone);
}

#[test]
fn a_link_that_loses_every_frame_is_reported() {
    let losses = "[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\n[run]\nduration = \"200ms\"\n";
    let outcome = run(&plan(&format!("{PAIR}{FLOW}{losses}")));
    assert_eq!(outcome.stop, Stop::EndTime);
    let livelock = outcome.livelock.expect("no packet ever arrives");
    assert_eq!(livelock.flows.iter().map(|f| (f.delivered, f.acknowledged)).collect::<Vec<_>>(), [(0, 0)]);
    assert_eq!(livelock.since, 0);
}

#[test]
fn waits_by_losses_and_timers_are_no_livelock() {
    // Nine of ten frames are lost in both directions, repeatedly, with a timeout of 5 ms: the flow is often
    // idle for longer than any timer, and finishes in the end.
    let losses = "[[loss]]\nlink = \"S0.0-H1\"\nrate = 0.9\n[transport]\nrto = \"5ms\"\n";
    for seed in ["1", "2", "3", "4", "5"] {
        let outcome = run(&plan_with(&format!("{PAIR}{FLOW}{losses}"), &[("run.seed", seed)]));
        assert_eq!((outcome.stop, &outcome.livelock), (Stop::AllDone, &None), "seed {seed}");
        assert!(outcome.flows[0].timeouts > 20, "seed {seed}: {}", outcome.flows[0].timeouts);
    }
    // A packet of 1,062 B takes 8.5 s at 1 kbit/s, two hundred times the default timeout.
    let slow =
        plan_with(&format!("{PAIR}{FLOW}"), &[("topology.link.rate", "1kbps"), ("switch.buffer", "1MB")]);
    assert_eq!(run(&slow).stop, Stop::AllDone);
    // A receiver that reads nothing for a second.
    let stall = "[[slow_receiver]]\nhost = \"H1\"\nstall_from = \"0s\"\nstall_until = \"1s\"\n";
    assert_eq!(run(&plan(&format!("{PAIR}{FLOW}{stall}"))).stop, Stop::AllDone);
    // A link that recovers after a second in which the flow made no progress.
    let failed = "[[failure]]\nlink = \"S0.0-H1\"\nat = \"10us\"\nuntil = \"1s\"\n";
    assert_eq!(run(&plan(&format!("{PAIR}{FLOW}{failed}"))).stop, Stop::AllDone);
    // A link that loses every frame for a second.
    let losses = "[[loss]]\nlink = \"S0.0-H1\"\nrate = 1.0\nat = \"10us\"\nuntil = \"1s\"\n";
    assert_eq!(run(&plan(&format!("{PAIR}{FLOW}{losses}"))).stop, Stop::AllDone);
}

#[test]
fn threads_see_the_same_livelock() {
    let text = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\n\
                link = { rate = \"1Gbps\", delay = \"1us\" }\n[transport]\nack_priority = 0\n\
                [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
    let plan = plan(text);
    let one = run(&plan);
    assert_eq!(one.stop, Stop::Livelock);
    assert_eq!(one, xoff_sim::run_on(&plan, 2, &mut |_| true));
}

#[test]
fn tcp_after_a_deadlock_ends_long_before_its_longest_timeout() {
    // Four flows around a ring of four switches fill 10 kB of credit each; TCP backs off to 60 s.
    let text = "[topology]\nkind = \"ring\"\nswitches = 4\nhosts_per_switch = 1\n\
                link = { rate = \"100Gbps\", delay = \"1us\" }\n\
                [flow_control]\nscheme = \"cbfc\"\nbuffer = \"10kB\"\nupdate = \"1us\"\n\
                [transport]\nkind = \"tcp-newreno\"\n\
                [tcp-newreno]\nmin_rto = \"100us\"\ninitial_rto = \"100us\"\n\
                [[traffic]]\nkind = \"loop\"\nswitches = [\"S0.0\", \"S0.1\", \"S0.2\", \"S0.3\"]\nhops = 3\n\
                size = \"100kB\"\nflows = 2\n";
    let outcome = run(&plan(text));
    assert_eq!((outcome.stop, outcome.livelock), (Stop::Starved, None));
    assert!(outcome.deadlock.is_some());
    assert!(outcome.end < 1_000_000_000_000, "{} ps", outcome.end);
}

/// Trimmed packets are served first. They are three quarters as long as data, and each causes a retransmission, so
/// data never leaves. NACKs defer the timers of the senders.
#[test]
fn retransmissions_of_trimmed_packets_starve_data() {
    let text = "[topology]\nkind = \"full-mesh\"\nswitches = 3\nhosts_per_switch = 3\n\
                link = { rate = \"25Gbps\", delay = \"1us\" }\n\
                [flow_control]\nscheme = \"trimming\"\ntrim_size = \"3195B\"\n\
                [[priority]]\nid = 3\negress_limit = \"30kB\"\n\
                [transport]\nkind = \"rud\"\nmtu = \"4229B\"\nretries = 12\nnack_retries = \"unlimited\"\n\
                [[traffic]]\nkind = \"loop\"\nswitches = [\"S0.0\", \"S0.1\", \"S0.2\"]\nhops = 2\n\
                size = \"25843B\"\nflows = 6\n";
    let outcome = run(&plan(text));
    assert_eq!((outcome.stop, &outcome.deadlock), (Stop::Livelock, &None));
    let livelock = outcome.livelock.expect("the run ended for it");
    assert_eq!(livelock.flows.len(), 18);

    // With a limit of NACKs the senders give up before.
    let limited = plan_with(text, &[("transport.nack_retries", "100")]);
    let outcome = run(&limited);
    assert!(outcome.livelock.is_none() && outcome.flows.iter().all(|f| f.ended().is_some()));

    // Headers of 64 B leave room for data. But the packets of a loop that come from the last switch always find the
    // queue full, until the packet to trim is drawn at random.
    let short = plan_with(text, &[("flow_control.trim_size", "64B")]);
    assert_eq!(run(&short).stop, Stop::Livelock);
    let drawn =
        plan_with(text, &[("flow_control.trim_size", "64B"), ("flow_control.trims", "arriving-or-last")]);
    assert_eq!(run(&drawn).stop, Stop::AllDone);
}
