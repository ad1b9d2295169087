//! Presets and defaults of congestion controls, and what `xoff topo` says of them.

use crate::common::line::{FLOW, LINE, set};
use xoff_plan::describe::describe;
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::congestion_control::dcqcn::Reaction;
use xoff_schemes::transport::TransportKind;
use xoff_schemes::transport::rud::Probes;

/// Presets, the values that they scale with, and their marking.
#[test]
fn dcqcn_brings_its_marking() {
    let on = ("transport.congestion_control", "dcqcn");
    let ecn = |overrides: &[(&str, &str)]| set(&[LINE, FLOW], overrides).plan.lanes[0].ecn;
    assert_eq!(ecn(&[]), None);
    let field = ecn(&[on]).unwrap();
    assert!(field.at_dequeue);
    let at = |rate: u64| (field.at(rate).k_min, field.at(rate).k_max);
    assert_eq!((at(25_000_000_000), at(400_000_000_000)), ((100_000, 400_000), (1_600_000, 6_400_000)));
    let paper = ecn(&[on, ("dcqcn.preset", "paper")]).unwrap();
    assert_eq!((paper.at(40_000_000_000).k_min, paper.p_max, paper.at_dequeue), (5_000, 0.01, false));
    let given = ecn(&[on, ("ecn", "{ k_min = \"1kB\", k_max = \"2kB\", p_max = 1.0 }")]).unwrap();
    assert_eq!((given.k_min, given.per), (1_000, 0));
    let params = |overrides: &[(&str, &str)]| match set(&[LINE, FLOW], overrides).plan.congestion_control {
        CongestionControlParams::Dcqcn(p) => p,
        other => panic!("dcqcn is on, not {other:?}"),
    };
    let p = params(&[on]);
    assert_eq!((p.additive_increase.of(1e11), p.hyper_increase.of(1e11)), (2e7, 2e8));
    assert_eq!((p.reaction, p.cnp_interval, p.decrease_interval), (Reaction::Periodic, 0, 4_000_000));
    let p =
        params(&[on, ("dcqcn.preset", "paper"), ("dcqcn.hyper_increase", "1Gbps"), ("dcqcn.gain", "0.5")]);
    assert_eq!((p.reaction, p.cnp_interval, p.cnp_size), (Reaction::Immediate, 50_000_000, 66));
    assert_eq!((p.hyper_increase.of(1e11), p.gain, p.byte_counter), (1e9, 0.5, 10_000_000));
}

/// Defaults of the other congestion controls, the values that they scale with, and the keys that they set.
#[test]
fn rate_controls_have_the_defaults_of_their_sources() {
    let plan = |control: &str, overrides: &[(&str, &str)]| {
        let all = [&[("transport.congestion_control", control)], overrides].concat();
        set(&[LINE, FLOW], &all).plan
    };
    let timely = plan("timely", &[]);
    assert_eq!((timely.lanes[0].ecn, timely.transport.variable_window), (None, None));
    let CongestionControlParams::Timely(p) = timely.congestion_control else { panic!("timely is on") };
    assert_eq!((p.additive_increase.of(1e11), p.hyper_increase.of(1e11), p.hyper_after), (1e8, 5e8, 5));
    assert_eq!((p.t_low, p.t_high, p.min_rtt), (50_000_000, 500_000_000, 20_000_000));
    assert_eq!((p.ewma, p.beta, p.minimum_rate.of(1e11)), (0.875, 0.8, 1e9));

    let dctcp = plan("dctcp", &[("dctcp.gain", "0.5")]);
    let red = dctcp.lanes[0].ecn.unwrap();
    assert_eq!((red.at(25_000_000_000).k_min, red.at(400_000_000_000).k_max), (75_000, 1_200_000));
    assert_eq!((red.p_max, red.at_dequeue), (1.0, true));
    let CongestionControlParams::Dctcp(p) = dctcp.congestion_control else { panic!("dctcp is on") };
    assert_eq!((p.gain, p.additive_increase.of(4e11), p.minimum_rate.of(1e11)), (0.5, 6.15e8, 1e9));

    // Over two switches: 3 links of 1 us and 3 times a packet of 1,062 B, and back with
    // 66 B; with HPCC both have 42 B more.
    let trip = |data: u64, ack: u64| 2 * 3 * 1_000_000 + 3 * (data + ack) * 80;
    assert_eq!(dctcp.transport.variable_window, Some(trip(1_062, 66)));
    let hpcc = plan("hpcc", &[]);
    assert_eq!((hpcc.packet.header, hpcc.packet.ack, hpcc.lanes[0].ecn), (104, 108, None));
    let CongestionControlParams::Hpcc(p) = hpcc.congestion_control else { panic!("hpcc is on") };
    assert_eq!((p.eta, p.max_stage, p.additive_increase.of(1e11)), (0.95, 0, 4e7));
    assert_eq!((p.base_rtt, p.hops, p.telemetry), (trip(1_104, 108), 5, 42));
    assert_eq!(hpcc.transport.variable_window, Some(p.base_rtt));
    let paper = [("hpcc.preset", "paper"), ("hpcc.hops", "3"), ("transport.base_rtt", "8us")];
    let paper = plan("hpcc", &paper);
    assert_eq!((paper.packet.header, paper.packet.ack), (62 + 26, 66 + 26));
    let CongestionControlParams::Hpcc(p) = paper.congestion_control else { panic!("hpcc is on") };
    // 80 B in 8 us.
    assert_eq!((p.max_stage, p.additive_increase.of(1e11), p.base_rtt), (5, 8e7, 8_000_000));
    let short = plan("hpcc", &[("hpcc.telemetry", "0B"), ("transport.variable_window", "false")]);
    assert_eq!((short.packet.header, short.transport.variable_window), (62, None));

    let power = plan("powertcp", &[]);
    assert_eq!((power.packet.header, power.packet.ack, power.lanes[0].ecn), (104, 108, None));
    let CongestionControlParams::PowerTcp(p) = power.congestion_control else { panic!("powertcp is on") };
    assert_eq!((p.gamma, p.flows, p.minimum_rate.of(1e11)), (0.9, 10, 1e9));
    assert_eq!((p.base_rtt, p.hops, p.telemetry), (trip(1_104, 108), 5, 42));
    assert_eq!(power.transport.variable_window, Some(p.base_rtt));

    let nscc = plan("nscc", &[]);
    let red = nscc.lanes[0].ecn.unwrap();
    assert_eq!((red.at(100_000_000_000).k_min, red.at(400_000_000_000).k_max), (30_000, 480_000));
    let CongestionControlParams::Nscc(p) = nscc.congestion_control else { panic!("nscc is on") };
    assert_eq!((p.base_rtt, p.target, p.qa_threshold), (trip(1_062, 66), p.base_rtt, 4 * p.base_rtt));
    assert_eq!((p.max_wnd, p.alpha, p.fi, p.fi_scale, p.eta), (1.5, 4.0, 5.0, 0.25, 0.15));
    assert_eq!((p.gamma, p.max_md_jump, p.qa_gate, p.delay_gain), (0.8, 0.5, 3, 0.0125));

    let rud = [("transport.kind", "rud")];
    let rccc = plan("rccc", &rud);
    assert_eq!((rccc.lanes[0].ecn, rccc.transport.variable_window), (None, None));
    let CongestionControlParams::Rccc(p) = rccc.congestion_control else { panic!("rccc is on") };
    // 4,000 B rounded down, and 1.5 BDP of 6.3 us.
    assert_eq!((p.rate, p.grant), (0.99, 15));
    assert!(
        rccc.windows.iter().any(|f| u64::from(f.window) == (trip(1_062, 66) * 3 / 2 / 80).div_ceil(1_000))
    );
    let rccc =
        plan("rccc", &[rud[0], ("rccc.rate", "0.5"), ("rccc.grant", "1kB"), ("transport.window", "5kB")]);
    let CongestionControlParams::Rccc(p) = rccc.congestion_control else { panic!("rccc is on") };
    assert_eq!((p.rate, p.grant, rccc.windows[0].window), (0.5, 3, 5));

    // Both tables, the marks of NSCC but at last hops, and the window of RCCC.
    let both = plan("nscc+rccc", &[rud[0], ("rccc.rate", "0.5"), ("nscc.alpha", "3")]);
    let red = both.lanes[0].ecn.unwrap();
    assert_eq!((red.at(100_000_000_000).k_min, red.last_hop), (30_000, false));
    let CongestionControlParams::NsccRccc(p) = both.congestion_control else { panic!("both are on") };
    assert_eq!((p.rccc.rate, p.nscc.alpha, p.nscc.max_wnd, p.nscc.last_hop), (0.5, 3.0, 1.5, false));
    assert!(
        both.windows.iter().any(|f| u64::from(f.window) == (trip(1_062, 66) * 3 / 2 / 80).div_ceil(1_000))
    );
    assert!(both.reacts_to_marks() && both.transport.variable_window.is_none());
    let loaded =
        set(&[LINE, FLOW], &[rud[0], ("transport.congestion_control", "nscc+rccc"), ("nscc.fi", "1")]);
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let loaded = set(&[LINE, FLOW], &[rud[0], ("transport.congestion_control", "rccc"), ("nscc.fi", "1")]);
    assert_eq!(loaded.warnings.len(), 1);

    // Max_RTO_Retx_Cnt of Ultra Ethernet; other transports retry forever.
    let retries = |keys: &[(&str, &str)]| plan("none", keys).transport.retries;
    assert_eq!((retries(&[]), retries(&rud), rccc.transport.retries), (None, Some(5), Some(5)));
    assert_eq!(retries(&[("transport.retries", "7")]), Some(7));
    assert_eq!(retries(&[rud[0], ("transport.retries", "unlimited")]), None);
    let TransportKind::Rud(p) = plan("none", &rud).transport.kind else { panic!("RUD is on") };
    assert_eq!((p.retries, p.nack_retries, p.infers_losses, p.probes), (Some(5), None, false, None));
    let infers = ("rud.infer_losses", "true");
    let keys = [rud[0], ("transport.nack_retries", "9"), infers];
    let TransportKind::Rud(p) = plan("none", &keys).transport.kind else { panic!("RUD is on") };
    assert_eq!((p.retries, p.nack_retries, p.infers_losses), (Some(5), Some(9), true));
    let TransportKind::Rud(p) = plan("none", &[rud[0], infers, ("rud.probes", "true")]).transport.kind else {
        panic!("RUD is on")
    };
    let base = trip(1_062, 66);
    assert_eq!(p.probes, Some(Probes { base, target: base }));

    let swift = plan("swift", &[]);
    assert_eq!((swift.packet.header, swift.lanes[0].ecn, swift.transport.variable_window), (62, None, None));
    let CongestionControlParams::Swift(p) = swift.congestion_control else { panic!("swift is on") };
    assert_eq!((p.base_target, p.per_hop, p.flow_scaling.range), (20_000_000, 3_000_000, 100_000_000));
    assert_eq!((p.endpoint_target, p.base_rtt), (20_000_000, trip(1_062, 66)));
    // Over two switches.
    assert_eq!((p.longest_target, p.max_cwnd, p.initial_cwnd), (26_000_000, None, None));
    assert_eq!((p.additive_increase, p.beta, p.max_mdf, p.min_cwnd), (1.0, 0.8, 0.5, 0.001));
    let swift = plan("swift", &[("swift.base_target", "8us"), ("swift.max_cwnd", "50")]);
    let CongestionControlParams::Swift(p) = swift.congestion_control else { panic!("swift is on") };
    assert_eq!((p.flow_scaling.range, p.endpoint_target), (40_000_000, 8_000_000));
    assert_eq!((p.longest_target, p.max_cwnd), (14_000_000, Some(50.0)));
}

/// A load means the same flows for every congestion control, although it can lengthen packets.
#[test]
fn rate_controls_have_the_same_flows() {
    let load = "[[traffic]]\nkind = \"poisson\"\nsizes = \"websearch\"\nload = 0.5\n\
        [[traffic]]\nkind = \"incast\"\nfan_in = 3\nsize = \"10kB\"\nload = 0.1\n[run]\nduration = \"2ms\"\n";
    let flows = |control: &str| -> Vec<_> {
        let plan = set(&[LINE, load], &[("transport.congestion_control", control)]).plan;
        plan.flows.iter().map(|f| (f.start, f.src, f.dst, f.size)).collect()
    };
    let none = flows("none");
    assert!(none.len() > 20);
    for control in ["dcqcn", "timely", "hpcc", "dctcp", "swift", "nscc", "powertcp"] {
        assert!(flows(control) == none, "{control}");
    }
}

/// The output of `xoff topo` about them.
#[test]
fn rate_controls_are_described() {
    for (control, expected) in [
        (
            "timely",
            "congestion control: timely (measures one round trip at a time)\n  \
             rates increase below 50us and decrease above 500us; between them the gradient per 20us decides: alpha 0.875, beta 0.8\n  \
             increases of 1/1000 of the line rate, after 5 in a row of 1/200 of the line rate; never below 1Gbps\n",
        ),
        (
            "dctcp",
            "congestion control: dctcp (ACKs carry marks; g = 0.0625)\n  \
             increases of 615Mbps per round trip; never below 1Gbps\n  \
             in flight: at most the rate times 6270720ps\n",
        ),
        (
            "nscc",
            "congestion control: nscc (the mark and the delay of each ACK change the window)\n  \
             window at most 1.5 times line rate × 6270720ps; target queueing delay 6270720ps, for an average with weight 0.0125\n  \
             per 150 kB of BDP: proportional increase 4, fair 5, eta 0.15 packets; fast increase 0.25 per byte\n  \
             one decrease per round trip: gamma 0.8, at most 0.5; quick adapt above 25082880ps of delay\n",
        ),
        (
            "rccc",
            "congestion control: rccc (receivers grant credit at 0.99 times the rate of their links)\n  \
             frames of 3840B of credit; the first window needs none\n",
        ),
        (
            "nscc+rccc",
            "congestion control: nscc+rccc (a sender needs room in its window, and credit)\n  \
             nscc (the mark and the delay of each ACK change the window)\n  \
             window at most 1.5 times line rate × 6270720ps; target queueing delay 6270720ps, for an average with weight 0.0125\n  \
             per 150 kB of BDP: proportional increase 4, fair 5, eta 0.15 packets; fast increase 0.25 per byte\n  \
             one decrease per round trip: gamma 0.8, at most 0.5; quick adapt above 25082880ps of delay\n  \
             rccc (receivers grant credit at 0.99 times the rate of their links)\n  \
             frames of 3840B of credit; the first window needs none\n",
        ),
        (
            "swift",
            "congestion control: swift (the delay of each ACK changes the window)\n  \
             target delay 20us, 3us more per switch, up to 100us more for windows from 100 down to 0.1 packets\n  \
             target delay in the receiver 20us, for an average with weight 0.125\n  \
             adds 1 packet per round trip below the target; one decrease per round trip: beta 0.8, at most 0.5\n  \
             window line rate × 6270720ps at first, then 0.001 packets to line rate × 26us\n",
        ),
    ] {
        let kind = if control.contains("rccc") { "rud" } else { "go-back-n" };
        let keys = [("transport.congestion_control", control), ("transport.kind", kind)];
        let loaded = set(&[LINE, FLOW], &keys);
        let said = describe(&loaded);
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.contains("ECN at dequeue from 300kB to 300kB per 100Gbps"), control == "dctcp");
        assert_eq!(said.contains("the default of dctcp"), control == "dctcp", "{said}");
    }
}

/// The output of `xoff topo` about an arbiter: its name, and that it is no scheme.
#[test]
fn an_arbiter_is_described() {
    let irn = [("transport.kind", "irn")];
    assert!(!describe(&set(&[LINE, FLOW], &irn)).contains("arbiter"));
    let timers = describe(&set(&[LINE, FLOW], &[irn[0], ("irn.timer", "packet")]));
    assert!(
        timers.contains("transport: irn (selective retransmission, a timer for each packet)"),
        "{timers}"
    );
    for (rule, stops) in [("srpt", "of its source"), ("srpt-strict", "of its source or its destination")] {
        let said = describe(&set(&[LINE, FLOW], &[irn[0], ("transport.arbiter", rule)]));
        let expected = format!(
            "arbiter: {rule} (shortest remaining flow first, a flow waits for a shorter flow {stops};\n  \
             it sees all flows and takes no time: an ideal upper bound)\n"
        );
        assert!(said.contains(&expected), "{said}");
    }
}

/// HPCC's packets have room for their path: as many devices as forward them. Routes that loop and never
/// arrive do not count.
#[test]
fn hpcc_counts_the_devices_of_a_route() {
    let on = [("transport.congestion_control", "hpcc"), ("hpcc.hops", "2")];
    assert_eq!(set(&[LINE, FLOW], &on).plan.packet.header, 62 + 18);
    let power = [("transport.congestion_control", "powertcp"), ("powertcp.hops", "2")];
    assert_eq!(set(&[LINE, FLOW], &power).plan.packet.header, 62 + 18);
    let slow = "[[slow_receiver]]\nhost = \"H5\"\nrate = \"10Gbps\"\n";
    assert_eq!(set(&[LINE, FLOW, slow], &on).plan.receivers.len(), 1);
}
