//! Windows, timeouts and the defaults of transports.

use crate::common::line::{FLOW, LINE, loaded, plan, set};
use xoff_plan::describe::describe;
use xoff_schemes::transport::irn::{IrnParams, Timeouts, Timer};
use xoff_schemes::transport::tcp::dctcp::{DctcpParams, ONE};
use xoff_schemes::transport::tcp::newreno::NewRenoParams;
use xoff_schemes::transport::{FlowWindow, TransportKind};

#[test]
fn a_window_in_bdp_is_the_longest_round_trip() {
    let plan = plan(&[LINE, FLOW, "[transport]\nwindow = \"1bdp\"\n"]);
    // Three links in each direction: 6 us, three packets of 1,062 B and three ACKs of 66 B at 80 ps per byte.
    let trip = 6_000_000 + 3 * 80 * (1_062 + 66);
    assert_eq!(plan.transport.window, Some(trip * 100 / 8_000));
}

/// Two datacenters, a long link between them: 100 us one way.
const TWO_CENTERS: &str = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\", \"C\"]\nswitches = [\"X\", \"Y\"]\n\
     links = [{ a = \"A\", b = \"X\", rate = \"100Gbps\", delay = \"1us\" }, { a = \"B\", b = \"X\", rate = \"40Gbps\", delay = \"1us\" },\n\
     { a = \"C\", b = \"Y\", rate = \"100Gbps\", delay = \"1us\" }, { a = \"X\", b = \"Y\", rate = \"400Gbps\", delay = \"100us\" }]\n\
     [switch]\nbuffer = \"1GB\"\n[[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\n\
     [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"C\"\nsize = \"1MB\"\n[transport]\nkind = \"irn\"\n";

/// IRN's window is the slowest link's rate times the longest round trip of the
/// flow's group; timeouts between datacenters come on top of theirs.
#[test]
fn irn_recognises_flows_between_datacenters() {
    let built = loaded(&[TWO_CENTERS]);
    assert!(built.warnings.is_empty(), "{:?}", built.warnings);
    let plan = built.plan;
    // A packet of 1,062 B and its ACK of 66 B: at 100 Gbit/s 84,960 and 5,280 ps.
    let near = 4_000_000 + 84_960 + 5_280 + 1_062 * 200 + 66 * 200;
    let far = 204_000_000 + 2 * (84_960 + 5_280) + 1_062 * 20 + 66 * 20;
    let packets = |rate: u64, trip: u64| (rate * trip).div_ceil(8_000 * 1_000) as u32;
    let irn = |window, inter| FlowWindow { window, inter };
    assert_eq!(plan.windows, [irn(packets(40, near), false), irn(packets(100, far), true)]);
    let us = 1_000_000;
    let expected = TransportKind::Irn(IrnParams {
        intra: Timeouts { low: 100 * us, high: 320 * us, few: 3 },
        inter: Timeouts { low: 100 * us + far, high: 320 * us + far, few: 3 },
        timer: Timer::Flow,
    });
    assert_eq!((plan.transport.kind, plan.transport.rto), (expected, 320 * us + far));
    // One's own values, and links that count as long from elsewhere on.
    let own = [
        ("transport.window", "20kB"),
        ("irn.inter.window", "2bdp"),
        ("irn.inter.rto_low", "1ms"),
        ("irn.inter.rto_high", "2ms"),
        ("irn.few", "5"),
        ("irn.timer", "packet"),
    ];
    let plan = set(&[TWO_CENTERS], &own).plan;
    assert_eq!(plan.windows, [irn(20, false), irn((2 * 100 * far).div_ceil(8_000_000) as u32, true)]);
    let TransportKind::Irn(IrnParams { inter, timer, .. }) = plan.transport.kind else { panic!("irn") };
    assert_eq!(timer, Timer::Packet);
    assert_eq!(inter, Timeouts { low: 1_000 * us, high: 2_000 * us, few: 5 });
    let all = set(&[TWO_CENTERS], &[("irn.inter.link_delay", "500us"), ("irn.inter.window", "1MB")]);
    assert!(all.plan.windows.iter().all(|f| !f.inter));
    let keys: Vec<&str> = all.warnings.iter().map(|w| w.key.as_str()).collect();
    // The round trip within "the datacenter" is longer than its timeout now.
    assert_eq!(keys, ["irn.rto_low", "irn.inter.link_delay", "irn.inter.window"]);
}

/// TCP's parameters: the RFCs' defaults, the receive window in packets, and an upper
/// bound of the timeout that the defaults of the others do not exceed.
#[test]
fn tcp_has_the_values_of_its_rfcs() {
    let params = |overrides: &[(&str, &str)]| {
        let mut all = vec![("transport.kind", "tcp-newreno")];
        all.extend(overrides);
        let transport = set(&[LINE, FLOW], &all).plan.transport;
        let TransportKind::TcpNewReno(params) = transport.kind else { panic!("tcp") };
        assert_eq!((transport.ack_every, transport.window, transport.rto), (1, None, params.max_rto));
        params
    };
    let second = 1_000_000_000_000;
    let defaults = NewRenoParams {
        smss: 1_000,
        initial_window: 10,
        receive_window: u32::MAX,
        initial_rto: second,
        min_rto: second,
        max_rto: 60 * second,
        dctcp: None,
    };
    assert_eq!(params(&[]), defaults);
    assert_eq!(params(&[("transport.window", "20999B")]).receive_window, 20);
    let own = [
        ("transport.mtu", "1460B"),
        ("tcp-newreno.initial_window", "3"),
        ("tcp-newreno.min_rto", "200us"),
        ("tcp-newreno.max_rto", "40ms"),
    ];
    let expected = NewRenoParams {
        smss: 1_460,
        initial_window: 3,
        initial_rto: second / 25,
        min_rto: second / 5_000,
        max_rto: second / 25,
        ..defaults
    };
    assert_eq!(params(&own), expected);
}

/// The table of DCTCP has the keys of NewReno, and `gain`, which the plan holds in units of 2^-30.
#[test]
fn dctcp_with_a_window_is_tcp_with_a_gain() {
    let load = |overrides: &[(&str, &str)]| {
        let mut all = vec![("transport.kind", "tcp-dctcp")];
        all.extend(overrides);
        set(&[LINE, FLOW], &all)
    };
    let params = |overrides: &[(&str, &str)]| {
        let TransportKind::TcpDctcp(params) = load(overrides).plan.transport.kind else { panic!("tcp") };
        params
    };
    let newreno = set(&[LINE, FLOW], &[("transport.kind", "tcp-newreno")]).plan.transport.kind;
    let TransportKind::TcpNewReno(newreno) = newreno else { panic!("tcp") };
    let of = |gain| Some(DctcpParams { gain });
    assert_eq!(params(&[]), NewRenoParams { dctcp: of(ONE / 16), ..newreno });
    let own = [("tcp-dctcp.gain", "1.0"), ("tcp-dctcp.min_rto", "200us"), ("tcp-dctcp.initial_window", "3")];
    let expected =
        NewRenoParams { dctcp: of(ONE), min_rto: newreno.min_rto / 5_000, initial_window: 3, ..newreno };
    assert_eq!(params(&own), expected);
    assert_eq!(params(&[("tcp-dctcp.gain", "1e-300")]).dctcp, of(1));
    // Without marks it is NewReno, and a warning names that; with them it reacts to them.
    let keys = |overrides| -> Vec<String> { load(overrides).warnings.into_iter().map(|w| w.key).collect() };
    assert_eq!(keys(&[]), ["transport.kind"]);
    let ecn = [("ecn.k_min", "14kB"), ("ecn.k_max", "14kB"), ("ecn.p_max", "1.0")];
    assert_eq!(keys(&ecn), [""; 0]);
    let mut newreno = ecn.to_vec();
    newreno.push(("tcp-newreno.min_rto", "1ms"));
    assert_eq!(keys(&newreno), ["tcp-newreno.min_rto"]);
    let loaded = load(&ecn);
    assert!(loaded.plan.reacts_to_marks());
    let said = describe(&loaded);
    assert!(said.contains("transport: tcp-dctcp (initial window 10 packets"), "{said}");
    assert!(said.contains("each ACK carries the mark of its packet; g = 0.0625"), "{said}");
}
