//! Warnings name keys without effect and values that do not fit.

use crate::common::line::{FLOW, LINE, loaded, set};
use std::collections::BTreeSet;
use xoff_plan::plan::Limit;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::none::NoParams;

#[test]
fn a_scenario_with_pfc_runs_without_it_and_names_keys_without_effect() {
    let parts = [LINE, "[flow_control]\nscheme = \"pfc\"\nxoff = \"6bdp\"\nxon = \"4bdp\"\n", FLOW];
    let with = loaded(&parts);
    let without = set(&parts, &[("flow_control.scheme", "none")]);
    assert!(with.warnings.is_empty(), "{:?}", with.warnings);
    let keys: Vec<&str> = without.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["flow_control.xoff", "flow_control.xon"]);
    assert_eq!(without.plan.flow_control, FlowControlParams::None(NoParams));
    assert_eq!(without.plan.flows, with.plan.flows);
    assert!(without.plan.accounts.iter().all(|a| a.headroom.is_none() && a.limit == Limit::Unlimited));
    assert!(without.plan.buffers.iter().all(|b| b.shared == b.total));
    assert!(!without.plan.lanes[0].lossless);
}

#[test]
fn options_without_effect_are_named() {
    let l = loaded(&[
        LINE,
        FLOW,
        "[routing]\noverrides = [{ at = \"S0.0\", to = \"H6\", via = \"S0.1\" }]\n\
         [[slow_receiver]]\nhost = \"H7\"\nrate = \"1Gbps\"\n",
    ]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["routing.overrides[0]", "slow_receiver[0]"]);
    let l = loaded(&[
        LINE,
        FLOW,
        "[[priority]]\nid = 5\n[run]\ndrain = \"1ms\"\n[flow_control]\npriorities = [3, 4]\n",
    ]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["run.drain", "priority[0]", "flow_control.priorities[1]"]);
    let l = loaded(&[
        LINE,
        FLOW,
        "[host]\nbuffer = \"1MB\"\n[[priority]]\nid = 3\ntier = 4\n[run]\nduration = \"1ms\"\n\
         [[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = 0.1\nstop = \"2ms\"\n\
         [[traffic]]\nkind = \"incast\"\nsize = \"10kB\"\nfan_in = 2\nstop = \"1us\"\n",
    ]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["host.buffer", "traffic[1].stop", "traffic[2].stop", "priority[0].tier"]);
    let l = loaded(&[LINE, FLOW, "[transport]\nnack_retries = 5\n[rud]\ninfer_losses = true\n"]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["rud.infer_losses", "transport.nack_retries"]);
    // A cable of 20 ms asks for 500 MB of headroom: the key is needed.
    let far = [
        ("topology.link.delay", "20ms"),
        ("host.buffer", "1GB"),
        ("switch.buffer", "4GB"),
        ("transport.rto", "1s"),
    ];
    assert_eq!(set(&[LINE, FLOW], &far).warnings, []);
    let direct = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\n\
                  links = [{ a = \"A\", b = \"B\", rate = \"10Gbps\", delay = \"1us\" }]\n\
                  [switch]\nbuffer = \"1MB\"\n[[slow_receiver]]\nhost = \"B\"\nrate = \"10Gbps\"\n\
                  [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1kB\"\n";
    let keys: Vec<String> = loaded(&[direct]).warnings.into_iter().map(|w| w.key).collect();
    assert_eq!(keys, ["switch.buffer", "slow_receiver[0].rate"]);
}

/// Priority 3 has tier 4 without a key.
#[test]
fn a_weight_in_a_tier_of_its_own_has_no_effect() {
    let other = FLOW.replace("kind", "priority = 5\nkind");
    let warned = |tier_of_5: &str| -> Vec<String> {
        let keys = format!("[[priority]]\nid = 3\nweight = 2\n[[priority]]\nid = 5\n{tier_of_5}");
        loaded(&[LINE, FLOW, &other, &keys]).warnings.into_iter().map(|w| w.key).collect()
    };
    assert_eq!(warned("tier = 4\n"), Vec::<String>::new());
    assert_eq!(warned("tier = 3\n"), ["priority[0].weight"]);
    assert_eq!(warned(""), ["priority[0].weight"]);
}

#[test]
fn keys_of_another_scheme_are_passed_over_and_named() {
    let keys = "[flow_control]\nxoff = \"8bdp\"\nxon = \"2bdp\"\nalpha = 0.5\nqueues = 64\nkeep = 0\nreuse_kept = true\n";
    let of = |scheme: &str| {
        let l = set(&[LINE, FLOW, keys], &[("flow_control.scheme", scheme)]);
        let named: Vec<String> = l
            .warnings
            .iter()
            .map(|w| format!("{}: {}", w.key, w.message.split(':').next().unwrap_or_default()))
            .collect();
        (l.plan, named)
    };
    let (bfc, named) = of("bfc");
    let FlowControlParams::Bfc(params) = &bfc.flow_control else { panic!("{:?}", bfc.flow_control) };
    assert_eq!((params.queues, params.virtual_flows, params.keep), (64, 16_384, 0));
    // Twice 1 us, on every port.
    assert!(
        params.hop_rtt.len() == bfc.topology.ports.len() && params.hop_rtt.iter().all(|&t| t == 2_000_000)
    );
    let expected = ["xoff", "xon", "alpha", "reuse_kept"].map(|k| format!("flow_control.{k}: had no effect"));
    assert_eq!(named.iter().collect::<BTreeSet<_>>(), expected.iter().collect());
    assert!(bfc.lanes.iter().all(|l| !l.lossless && l.egress_limit == Limit::Unlimited));
    let (ideal, named) = of("per-flow-queue");
    let FlowControlParams::PerFlowQueue(params) = &ideal.flow_control else { panic!() };
    // A hop's BDP is 12.5 kB.
    assert!(params.pause.iter().all(|&b| b == 100_000) && params.resume.iter().all(|&b| b == 25_000));
    let expected =
        ["alpha", "queues", "keep", "reuse_kept"].map(|k| format!("flow_control.{k}: had no effect"));
    assert_eq!(named.iter().collect::<BTreeSet<_>>(), expected.iter().collect());
}

#[test]
fn a_timeout_shorter_than_the_round_trip_is_named() {
    // Out over three links of 1 us and back: 2 x 3 us, 3 packets of 1,062 B and
    // 3 ACKs of 66 B at 80 ps per byte.
    let trip = 6_000_000 + 3 * (1_062 + 66) * 80;
    let warned = |rto: u64| {
        let l = set(&[LINE, FLOW], &[("transport.rto", &format!("{rto}ps"))]);
        l.warnings.iter().any(|w| w.key == "transport.rto")
    };
    assert_eq!((warned(trip - 1), warned(trip)), (true, false));
}

/// A warning names keys of a transport or congestion control that the run does not use.
#[test]
fn keys_of_other_transports_are_named() {
    let keys = |overrides: &[(&str, &str)]| -> Vec<String> {
        set(&[LINE, FLOW], overrides).warnings.into_iter().map(|w| w.key).collect()
    };
    assert_eq!(keys(&[("irn.few", "2"), ("dcqcn.gain", "0.1")]), ["irn.few", "dcqcn.gain"]);
    assert_eq!(keys(&[("transport.kind", "irn"), ("transport.rto", "1ms")]), ["transport.rto"]);
    let tcp = ("transport.kind", "tcp-newreno");
    assert_eq!(keys(&[tcp]), [""; 0]);
    assert_eq!(keys(&[tcp, ("transport.rto", "1ms"), ("irn.few", "2")]), ["irn.few", "transport.rto"]);
    assert_eq!(keys(&[("tcp-newreno.min_rto", "1ms")]), ["tcp-newreno.min_rto"]);
    assert_eq!(keys(&[tcp, ("tcp-newreno.initial_rto", "1us")]), ["tcp-newreno.initial_rto"]);
    let on = ("transport.congestion_control", "dcqcn");
    assert_eq!(
        keys(&[on, ("dcqcn.cnp_size", "64B"), ("dcqcn.cnp_priority", "5")]),
        ["dcqcn.cnp_size", "dcqcn.cnp_priority"]
    );
    assert_eq!(
        keys(&[on, ("dcqcn.reaction", "immediate"), ("dcqcn.decrease_interval", "9us")]),
        ["dcqcn.decrease_interval"]
    );
    assert_eq!(
        keys(&[on, ("timely.beta", "0.5"), ("hpcc.eta", "0.9"), ("powertcp.flows", "9")]),
        ["timely.beta", "hpcc.eta", "powertcp.flows"]
    );
    assert_eq!(
        keys(&[("transport.variable_window", "true"), ("transport.base_rtt", "20us")]),
        ["transport.variable_window", "transport.base_rtt"]
    );
    assert_eq!(keys(&[on, ("transport.base_rtt", "20us")]), ["transport.base_rtt"]);
    let window = ("transport.variable_window", "true");
    assert_eq!(keys(&[on, window, ("transport.base_rtt", "20us")]), [""; 0]);
    let swift = ("transport.congestion_control", "swift");
    assert_eq!(keys(&[swift, ("transport.base_rtt", "20us")]), [""; 0]);
    assert_eq!(
        keys(&[swift, window, ("swift.endpoint_gain", "0.5"), ("swift.base_target", "6us")]),
        ["transport.variable_window", "swift.endpoint_gain"]
    );
    // The unloaded round trip is 6.27 us.
    let short = [swift, ("swift.base_target", "2us"), ("swift.per_hop", "2us")];
    assert_eq!(keys(&short), ["swift.base_target"]);
    // Shorter than any round trip here.
    assert_eq!(keys(&[on, window, ("transport.base_rtt", "1us")]), ["transport.base_rtt"]);
}

/// A minimum rate that some flows cannot come down from is named; with one that is
/// the preset's, that holds of all flows as well.
#[test]
fn flows_that_dcqcn_cannot_slow_are_named() {
    let other = FLOW.replace("size", "rate = \"10Gbps\"\nsize");
    let warned = |traffic: &[&str], link: &str, minimum: &str| -> Vec<String> {
        let mut overrides = vec![("transport.congestion_control", "dcqcn"), ("topology.link.rate", link)];
        if !minimum.is_empty() {
            overrides.push(("dcqcn.minimum_rate", minimum));
        }
        let l = set(&[&[LINE], traffic].concat(), &overrides);
        l.warnings.into_iter().filter(|w| w.key == "dcqcn.minimum_rate").map(|w| w.message).collect()
    };
    let both: [&str; 2] = [FLOW, &other];
    assert_eq!(warned(&both, "100Gbps", "9999Mbps"), [""; 0]);
    assert_eq!(
        warned(&both, "100Gbps", "10Gbps"),
        ["1 of 2 flows never slow down: 10Gbps is not below their line rate"]
    );
    assert_eq!(warned(&[FLOW], "1001Mbps", ""), [""; 0]);
    assert_eq!(warned(&[FLOW], "1Gbps", ""), ["no flow ever slows down: 1Gbps is not below their line rate"]);
}

/// A warning names Pyrrha's keys that cannot have an effect.
#[test]
fn keys_without_effect_under_pyrrha_are_named() {
    let warned = |rest: &str| -> Vec<String> {
        let all = loaded(&[LINE, FLOW, "[flow_control]\nscheme = \"pyrrha\"\n", rest]).warnings;
        all.iter().map(ToString::to_string).collect()
    };
    assert_eq!(warned(""), Vec::<String>::new());
    let never = warned("k_pause = \"64MB\"\n[switch]\nbuffer = \"1MB\"\n");
    assert_eq!(never.len(), 1, "{never:?}");
    assert!(
        never[0].starts_with(
            "`flow_control.k_pause`: exceeds the buffer: no port of a switch can become a root, for example S"
        ) && never[0].ends_with("(K_pause 64 MB, buffer 1 MB)"),
        "{never:?}"
    );
    assert_eq!(warned("k_pause = \"1MB\"\n[switch]\nbuffer = \"1001kB\"\n"), Vec::<String>::new());
    let late = warned("response_time = \"2ms\"\n[run]\nduration = \"2ms\"\n");
    assert_eq!(
        late,
        [
            "`flow_control.response_time`: is longer than the run, which ends at 2ms: no control frame takes effect"
        ]
    );
    assert_eq!(warned("response_time = \"1999us\"\n[run]\nduration = \"2ms\"\n"), Vec::<String>::new());
    let twice = warned("variants = [\"push\", \"count-by-ingress\", \"push\"]\n");
    assert_eq!(twice, ["`flow_control.variants[2]`: had no effect: it is listed already"]);
    let off = warned("merging = \"off\"\nvariants = [\"reclaim-at-once\"]\n");
    assert_eq!(off, ["`flow_control.variants[0]`: had no effect: with merging = \"off\" no port abdicates"]);
    let all = warned("[flow_control.legacy]\nswitches = [\"S0.0\", \"S0.1\"]\n");
    assert_eq!(
        all,
        [
            "`flow_control.legacy.switches`: Pyrrha has no effect: every switch is listed, and all links run PFC"
        ]
    );
    assert_eq!(warned("[flow_control.legacy]\nswitches = [\"S0.0\"]\n"), Vec::<String>::new());
}

#[test]
fn acks_after_their_own_data_cause_a_warning() {
    let both = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n";
    let keys =
        |text: &str| -> Vec<String> { loaded(&[LINE, text]).warnings.into_iter().map(|w| w.key).collect() };
    assert_eq!(keys(&format!("{both}[transport]\nack_priority = 0\n")), ["transport.ack_priority"]);
    for fine in ["", "[transport]\nack_priority = 6\n"] {
        assert_eq!(keys(&format!("{both}{fine}")), [""; 0], "{fine}");
    }
    // One tier serves both by turns.
    let tier = "[[priority]]\nid = 0\ntier = 4\nlossless = true\n";
    assert_eq!(keys(&format!("{both}[transport]\nack_priority = 0\n{tier}")), [""; 0]);
}
