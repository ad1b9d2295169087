//! The plans of correct scenarios.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use xoff_net::topology::NodeKind;
use xoff_plan::describe::describe;
use xoff_plan::plan::{DELIVER, EXPIRE, Flow, Hits, Limit, Plan};
use xoff_plan::{Loaded, load, load_table};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::congestion_control::dcqcn::Reaction;
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::none::NoParams;
use xoff_schemes::transport::irn::{IrnParams, Timeouts, Timer};
use xoff_schemes::transport::rud::Probes;
use xoff_schemes::transport::tcp::dctcp::{DctcpParams, ONE};
use xoff_schemes::transport::tcp::newreno::NewRenoParams;
use xoff_schemes::transport::{FlowWindow, TransportKind};

const LINE: &str = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 4\n\
                    link = { rate = \"100Gbps\", delay = \"1us\" }\n";
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H5\"\nsize = \"1MB\"\n";

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

fn loaded(parts: &[&str]) -> Loaded {
    set(parts, &[])
}

fn set(parts: &[&str], overrides: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    load("test.toml", parts.concat().as_bytes(), &overrides, &no_files)
        .unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn plan(parts: &[&str]) -> Plan {
    loaded(parts).plan
}

/// A route in the names of its ports, and its end.
fn route(plan: &Plan, start: u32) -> (Vec<String>, u32) {
    let rest = &plan.hops[start as usize..];
    let len = rest.iter().position(|&h| h >= EXPIRE).unwrap();
    (rest[..len].iter().map(|&p| plan.topology.port_name(p)).collect(), rest[len])
}

#[test]
fn a_flow_crosses_the_line_and_its_ack_returns() {
    let plan = plan(&[LINE, FLOW]);
    let flow = &plan.flows[0];
    assert_eq!(route(&plan, flow.path), (vec!["H0:0".into(), "S0.0:4".into(), "S0.1:1".into()], DELIVER));
    assert_eq!(route(&plan, flow.ack_path), (vec!["H5:0".into(), "S0.1:4".into(), "S0.0:0".into()], DELIVER));
    // 1,000 packets of 1,062 B at 80 ps per byte over three links of 1 us, an ACK of 66 B back.
    assert_eq!(flow.ideal, 6_000_000 + 1_002 * 1_062 * 80 + 3 * 66 * 80);
    assert_eq!(plan.end, None);
}

#[test]
fn static_thresholds_and_the_split_of_the_buffer_add_up() {
    let plan = plan(&[
        LINE,
        "[switch]\nbuffer = \"5MB\"\n[flow_control]\nscheme = \"pfc\"\nxoff = \"6bdp\"\nxon = \"4bdp\"\n",
        FLOW,
    ]);
    // One-hop BDP: 100 Gbit/s for 1 us is 12,500 B. Headroom: both directions of the cable, a pause frame, a
    // packet at each end.
    let headroom = 25_000 + 64 + 2 * 1_062;
    for (account, port) in plan.accounts.iter().zip(&plan.topology.ports) {
        assert_eq!(account.limit, Limit::Static(75_000));
        assert_eq!((account.resume, account.reserve), (50_000, 0));
        assert_eq!(account.headroom.as_ref().unwrap().total, headroom, "{port:?}");
    }
    for (node, buffer) in plan.topology.nodes.iter().zip(&plan.buffers) {
        let total = if node.kind == NodeKind::Switch { 5_000_000 } else { 32_000_000 };
        let ports = node.ports.len() as u64;
        assert_eq!((buffer.total, buffer.shared), (total, total - ports * (headroom + 1_062)));
    }
}

#[test]
fn the_default_is_a_dynamic_threshold() {
    let plan = plan(&[LINE, FLOW]);
    let account = &plan.accounts[0];
    assert_eq!(account.limit, Limit::Dynamic { alpha_q16: 8_192, cap: u64::MAX });
    assert_eq!((account.reserve, account.resume_offset), (4_000, 3_000));
    let switch = plan.topology.find("S0.0").unwrap();
    assert_eq!(plan.buffers[switch as usize].total, 32_000_000);
    assert!(
        matches!(plan.flow_control, FlowControlParams::Pfc(p) if p.quanta == 65_535 && p.response_time == 0)
    );
}

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
fn overrides_reach_tables_that_were_not_written() {
    let l = set(
        &[LINE, FLOW],
        &[("transport.mtu", "4kB"), ("traffic.0.size", "2MB"), ("traffic[0].start", "\"3us\"")],
    );
    assert_eq!(l.plan.packet.mtu, 4_000);
    assert_eq!((l.plan.flows[0].size, l.plan.flows[0].start), (2_000_000, 3_000_000));
}

#[test]
fn lanes_are_strict_by_default_and_share_a_tier_by_weight() {
    let flow = |p: u8| format!("{FLOW}priority = {p}\n");
    let text = [flow(1), flow(3), flow(5)].concat();
    let strict = plan(&[LINE, &text, "[transport]\nack_priority = 6\n"]);
    let order: Vec<(u8, u8)> = strict.lanes.iter().map(|l| (l.priority, l.tier)).collect();
    assert_eq!(order, [(6, 0), (5, 1), (3, 2), (1, 3)]);
    assert!(strict.flows.iter().all(|f| f.ack_lane == 0));
    let shared = plan(&[
        LINE,
        "[[priority]]\nid = 1\ntier = 4\nweight = 3\n[[priority]]\nid = 3\n",
        "[flow_control]\npriorities = [3]\n",
        &text,
    ]);
    let lanes: Vec<(u8, u8, u32, bool)> =
        shared.lanes.iter().map(|l| (l.priority, l.tier, l.quantum, l.lossless)).collect();
    assert_eq!(lanes, [(5, 0, 1_062, false), (3, 1, 1_062, true), (1, 1, 3 * 1_062, false)]);
    assert_eq!(shared.lanes[0].egress_limit, Limit::Dynamic { alpha_q16: 65_536, cap: u64::MAX });
    // Only the lossless lane has headroom.
    for account in shared.accounts.chunks(3) {
        let has: Vec<bool> = account.iter().map(|a| a.headroom.is_some()).collect();
        assert_eq!(has, [false, true, false]);
    }
}

#[test]
fn a_slow_receiver_reads_through_an_inner_port() {
    let slow = "[[slow_receiver]]\nhost = \"H5\"\nrate = \"10Gbps\"\nstall_from = \"9us\"\nstall_until = \"12us\"\n\
                [[slow_receiver]]\nhost = \"H5\"\nstall_from = \"1us\"\nstall_until = \"2us\"\n";
    let fast = plan(&[LINE, FLOW]);
    let plan = plan(&[LINE, slow, FLOW]);
    let receiver = &plan.receivers[0];
    assert_eq!(receiver.host, 5);
    assert_eq!(receiver.stalls, [(1_000_000, 2_000_000), (9_000_000, 12_000_000)]);
    let rx = &plan.topology.ports[receiver.rx as usize];
    assert_eq!((rx.node, rx.rate, rx.delay), (5, 10_000_000_000, 0));
    assert_eq!(plan.topology.neighbour(receiver.rx), 5);
    assert_eq!(plan.topology.ports.len(), fast.topology.ports.len() + 2);
    assert_eq!(plan.accounts.len(), plan.topology.ports.len() * plan.lanes.len());
    assert_eq!(plan.buffers, fast.buffers);
    let (ports, end) = route(&plan, plan.flows[0].path);
    assert_eq!((ports.last().unwrap().as_str(), end), ("H5:1", DELIVER));
    assert_eq!(route(&plan, plan.flows[0].ack_path), route(&fast, fast.flows[0].ack_path));
    // The reader is the bottleneck: 1,000 packets at 800 ps per byte.
    assert_eq!(plan.flows[0].ideal, 6_000_000 + (3 * 80 + 1_000 * 800) * 1_062 + 3 * 66 * 80);
}

#[test]
fn an_explicit_path_is_kept_and_its_acks_return_by_it() {
    let ring = LINE
        .replace("line", "ring")
        .replace("switches = 2", "switches = 4")
        .replace("per_switch = 4", "per_switch = 1");
    let flow = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H1\"\nsize = \"1kB\"\n\
                path = [\"H0\", \"S0.0\", \"S0.3\", \"S0.2\", \"S0.1\", \"H1\"]\nrate = \"1Gbps\"\n";
    let plan = plan(&[&ring, flow]);
    let nodes = |ports: Vec<String>| {
        ports.iter().map(|p| p.split(':').next().unwrap().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(nodes(route(&plan, plan.flows[0].path).0), ["H0", "S0.0", "S0.3", "S0.2", "S0.1"]);
    assert_eq!(nodes(route(&plan, plan.flows[0].ack_path).0), ["H1", "S0.1", "S0.2", "S0.3", "S0.0"]);
    assert_eq!(plan.flows[0].pace, 1_000_000_000);
}

#[test]
fn a_routing_loop_expires_and_is_named() {
    let overrides = "[routing]\noverrides = [\n{ at = \"S0.0\", to = \"H5\", via = \"S0.1\" },\n\
                     { at = \"S0.1\", to = \"H5\", via = \"S0.0\" } ]\n";
    let l = loaded(&[LINE, overrides, FLOW, "[run]\nduration = \"1ms\"\n"]);
    let (ports, end) = route(&l.plan, l.plan.flows[0].path);
    assert_eq!((ports.len(), end), (64, EXPIRE));
    assert_eq!(l.plan.flows[0].ideal, 0);
    assert!(l.warnings.iter().any(|w| w.key == "routing.overrides"), "{:?}", l.warnings);
}

const POISSON: &str = "[[traffic]]\nkind = \"poisson\"\nsizes = \"10kB\"\nload = 0.5\n";

/// Bytes of data packets on the wire.
fn wire(plan: &Plan, flow: &Flow) -> u64 {
    flow.size + plan.packet.packets(flow.size) * u64::from(plan.packet.header)
}

#[test]
fn the_offered_load_is_the_requested_one() {
    let topology = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8\n\
                    host_link = { rate = \"100Gbps\", delay = \"1us\" }\nfabric_link = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let check = |plan: &Plan, seconds: f64, capacity: f64, what: &str| {
        let bits: Vec<f64> = plan.flows.iter().map(|f| 8.0 * wire(plan, f) as f64).collect();
        let sum: f64 = bits.iter().sum();
        // The sum of a compound Poisson process has the variance Σ x².
        let error = bits.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (load, error) = (sum / seconds / capacity, error / seconds / capacity);
        assert!(error < 0.02, "{what}: too few flows to tell, {error}");
        assert!((load - 0.5).abs() < 3.0 * error, "{what}: {load} ± {error}");
    };
    for sizes in ["\"10kB\"", "{ uniform = [\"1B\", \"20kB\"] }", "\"fb-hadoop\""] {
        let text = POISSON.replace("\"10kB\"", sizes);
        let l = loaded(&[topology, &text, "[run]\nduration = \"50ms\"\n"]);
        // A leaf's two uplinks carry 24/31 of the traffic of its eight hosts.
        let saturation = 4.0 * 200e9 * 31.0 / 24.0;
        let s = l.saturation[0].unwrap();
        assert!((s.rate / saturation - 1.0).abs() < 1e-9, "{} against {saturation}", s.rate);
        check(&l.plan, 50e-3, saturation, sizes);
    }
    let l = loaded(&[topology, POISSON, "load_of = \"host-links\"\n[run]\nduration = \"2ms\"\n"]);
    check(&l.plan, 2e-3, 32.0 * 100e9, "host links");
}

#[test]
fn a_table_keeps_its_flows_and_paths_beside_any_others() {
    let ndc = "[topology]\nkind = \"ndc\"\nn = 4\nk = 1\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n";
    let run = "[run]\nduration = \"1ms\"\n";
    let incast = "[[traffic]]\nkind = \"incast\"\nfan_in = 8\nsize = \"1MB\"\nperiod = \"100us\"\n";
    let alone = plan(&[ndc, POISSON, run]);
    let both = plan(&[ndc, POISSON, incast, run]);
    let kept = |plan: &Plan| -> Vec<_> {
        let of = plan.flows.iter().filter(|f| f.class == 0);
        of.map(|f| (f.src, f.dst, f.size, f.start, route(plan, f.path), route(plan, f.ack_path), f.ideal))
            .collect()
    };
    assert_eq!(kept(&alone), kept(&both));
    assert_eq!(both.flows.iter().filter(|f| f.class == 1).count(), 10 * 8);
    assert!(both.flows.is_sorted_by_key(|f| (f.start, f.class)));
    assert_eq!(both.classes, ["poisson", "incast"]);
    // BCube routes return over the same nodes.
    for f in &both.flows {
        let port = |name: &str| {
            let (node, index) = name.split_once(':').unwrap();
            let node = both.topology.find(node).unwrap();
            both.topology.nodes[node as usize].ports[index.parse::<usize>().unwrap()]
        };
        let mirrored: Vec<u32> =
            route(&both, f.path).0.iter().rev().map(|p| both.topology.ports[port(p) as usize].peer).collect();
        let back: Vec<u32> = route(&both, f.ack_path).0.iter().map(|p| port(p)).collect();
        assert_eq!(mirrored, back);
    }
}

#[test]
fn a_window_in_bdp_is_the_longest_round_trip() {
    let plan = plan(&[LINE, FLOW, "[transport]\nwindow = \"1bdp\"\n"]);
    // Three links in each direction: 6 us, three packets of 1,062 B and three ACKs of 66 B at 80 ps per byte.
    let trip = 6_000_000 + 3 * 80 * (1_062 + 66);
    assert_eq!(plan.transport.window, Some(trip * 100 / 8_000));
}

#[test]
fn flows_come_from_a_csv_file_and_late_ones_are_named() {
    let text = [
        LINE,
        "[[traffic]]\nkind = \"flows\"\nfile = \"a/b.csv\"\n[run]\nduration = \"1ms\"\ndrain = \"1ms\"\n",
    ]
    .concat();
    let files = |p: &Path| match p.to_str() {
        Some("a/b.csv") => Ok(b"src,dst,bytes,start\nH1,H0,5000,2us\nH0,H1,1000,1us\nH0,H1,1,3ms\n".to_vec()),
        _ => no_files(p),
    };
    let l = load("test.toml", text.as_bytes(), &[], &files).unwrap();
    let flows: Vec<_> = l.plan.flows.iter().map(|f| (f.src, f.dst, f.size, f.start)).collect();
    assert_eq!(flows, [(0, 1, 1_000, 1_000_000), (1, 0, 5_000, 2_000_000)]);
    assert_eq!(l.warnings.len(), 1);
    assert_eq!(l.plan.end, Some(2_000_000_000));
    assert_eq!(l.plan.measure.interval, Some(5_000_000));
}

#[test]
fn a_permutation_gives_each_host_one_flow_in_each_direction() {
    let plan = plan(&[LINE, "[[traffic]]\nkind = \"permutation\"\nsize = \"2MB\"\n"]);
    let mut ends: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
    for f in &plan.flows {
        ends.entry(f.src).or_default().0 += 1;
        ends.entry(f.dst).or_default().1 += 1;
    }
    assert_eq!(ends.len(), 8);
    assert!(ends.values().all(|&e| e == (1, 1)));
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
fn a_scheme_without_reservation_has_no_lossless_priority() {
    let l = loaded(&[
        LINE,
        FLOW,
        "[flow_control]\nscheme = \"bfc\"\n[[priority]]\nid = 3\nlossless = true\nalpha = 0.25\n",
    ]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["priority[0].lossless"]);
    assert!(!l.plan.lanes[0].lossless);
    assert_eq!(l.plan.lanes[0].egress_limit, Limit::Dynamic { alpha_q16: 16_384, cap: u64::MAX });
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

#[test]
fn a_byte_order_mark_is_not_part_of_a_distribution() {
    let text = "[[traffic]]\nkind = \"poisson\"\nsizes = { file = \"x.cdf\" }\nload = 0.1\nstop = \"1us\"\n";
    let files = |_: &Path| Ok("\u{feff}0 0\n1000 100\n".as_bytes().to_vec());
    let l = load("test.toml", [LINE, text].concat().as_bytes(), &[], &files);
    assert!(l.is_ok(), "{}", l.unwrap_err().one_line());
}

#[test]
fn the_scenario_survives_its_own_text() {
    // The manifest holds the scenario as JSON; as TOML it must mean the same.
    let first = loaded(&[
        LINE,
        FLOW,
        "[flow_control]\nxoff = \"6bdp\"\n[measure]\nports = \"all\"\ninterval = \"1us\"\n",
    ]);
    let text = toml::to_string(&first.scenario).unwrap();
    let second = load("again.toml", text.as_bytes(), &[], &no_files)
        .unwrap_or_else(|e| panic!("{}\n{text}", e.one_line()));
    assert_eq!(text, toml::to_string(&second.scenario).unwrap());
    assert_eq!(first.plan.flows, second.plan.flows);
    assert_eq!(first.plan.accounts, second.plan.accounts);
}

/// As the HPCC simulator's files, with hosts and switches mixed.
fn hpcc_files(path: &Path) -> io::Result<Vec<u8>> {
    match path.to_str() {
        Some("topology.txt") => {
            Ok(b"4 2 3\n0 3\n1 0 100Gbps 1000ns 0\n0 3 100Gbps 5ms 0.001\n3 2 100Gbps 1000ns 0\n".to_vec())
        }
        Some("flow.txt") => Ok(b"3\n1 2 3 100 4000 2\n2 1 5 100 50 1.5\n1 2 3 100 9 9\n".to_vec()),
        _ => Err(io::Error::other("no such file")),
    }
}

const HPCC: &str = "[topology]\nkind = \"hpcc\"\nfile = \"topology.txt\"\nlong_delay = \"1ms\"\n\
                    [[traffic]]\nkind = \"flows\"\nformat = \"hpcc\"\nfile = \"flow.txt\"\n";

#[test]
fn the_files_of_the_hpcc_simulator_give_links_flows_and_priorities() {
    let text = format!("{HPCC}priority = 4\n[switch]\nbuffer = \"1GB\"\n[run]\nduration = \"3s\"\n");
    let l =
        load("test.toml", text.as_bytes(), &[], &hpcc_files).unwrap_or_else(|e| panic!("{}", e.one_line()));
    let lanes: Vec<u8> = l.plan.lanes.iter().map(|l| l.priority).collect();
    assert_eq!(lanes, [5, 3], "those of the file alone");
    let name = |node: u32| l.plan.topology.nodes[node as usize].name.as_str();
    let flows: Vec<_> =
        l.plan.flows.iter().map(|f| (name(f.src), name(f.dst), f.size, f.start, f.lane)).collect();
    assert_eq!(flows, [("H2", "H1", 50, 1_500_000_000_000, 0), ("H1", "H2", 4_000, 2_000_000_000_000, 1)]);
    assert_eq!(l.plan.flows[1].ack_lane, 1);
    assert_eq!(route(&l.plan, l.plan.flows[0].path).0, ["H2:0", "S3:0", "S0:0"]);
    assert_eq!(l.plan.topology.ports.iter().filter(|p| p.long && p.loss == 0.001).count(), 2);
    let losses: Vec<_> =
        l.plan.faults.losses.iter().map(|f| (l.plan.topology.port_name(f.port), f.hits)).collect();
    let hits = Hits::Frames(0.001);
    assert_eq!(losses, [("S0:1".to_string(), hits), ("S3:0".to_string(), hits)]);
    assert!(l.plan.faults.losses.iter().all(|f| !f.corrupts));
    // The flow at 9 s, the table's own priority, and the short timeout.
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["traffic[0].priority", "traffic[0].file", "transport.rto"]);
}

/// As in the files of HPCC's repository.
#[test]
fn lines_that_no_header_announces_are_left_out_with_a_warning() {
    let longer = |path: &Path| {
        let mut text = hpcc_files(path)?;
        text.extend_from_slice(match path.to_str() {
            Some("flow.txt") => b"2 1 3 100 7 1\n1 2 3 100 7 1\n\nsrc dst\n",
            _ => b"0 2 100Gbps 1us 0\n",
        });
        Ok(text)
    };
    let text = format!("{HPCC}[switch]\nbuffer = \"1GB\"\n");
    let l = load("test.toml", text.as_bytes(), &[], &longer).unwrap_or_else(|e| panic!("{}", e.one_line()));
    let said = l.warnings.iter().map(ToString::to_string).filter(|text| text.contains("left out"));
    assert_eq!(
        said.collect::<Vec<_>>(),
        [
            "`topology.file`: the header of `topology.txt` gives 3 links: 1 further line left out, as by HPCC's simulator",
            "`traffic[0].file`: the header of `flow.txt` gives 3 flows: 2 further lines left out, as by HPCC's simulator"
        ]
    );
    assert_eq!((l.plan.flows.len(), l.plan.topology.ports.len()), (3, 6));
}

#[test]
fn rails_are_routed_as_a_bcube_where_they_are_one() {
    let rails = |domains: u32| {
        let topology = format!(
            "[topology]\nkind = \"rail-only\"\nn = 4\ndomains = {domains}\n\
             domain_link = {{ rate = \"160Gbps\", delay = \"1us\" }}\nrail_link = {{ rate = \"100Gbps\", delay = \"1us\" }}\n"
        );
        plan(&[&topology, "[[traffic]]\nkind = \"permutation\"\nsize = \"1kB\"\n"])
    };
    // BCube's ACKs return by the data's nodes.
    let mirrored = |plan: &Plan| {
        let nodes = |start: u32| -> Vec<String> {
            route(plan, start).0.iter().map(|p| p.split(':').next().unwrap().to_string()).collect()
        };
        plan.flows.iter().all(|f| {
            let (mut there, back) = (nodes(f.path), nodes(f.ack_path));
            there.remove(0);
            there.reverse();
            there == back[1..]
        })
    };
    assert!(mirrored(&rails(4)) && !mirrored(&rails(8)));
    assert!(rails(8).flows.iter().all(|f| matches!(route(&rails(8), f.path).0.len(), 2 | 4)));
}

#[test]
fn a_dci_switch_has_headroom_for_its_long_link() {
    let text = "[topology]\nkind = \"dci\"\nk = 4\nlink = { rate = \"100Gbps\", delay = \"1us\" }\n\
                long_link = { rate = \"400Gbps\", length = \"600km\" }\nlong_links = 2\n[switch]\nbuffer = \"1GB\"\n";
    let plan = plan(&[text, "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H16\"\nsize = \"1kB\"\n"]);
    for (port, account) in plan.topology.ports.iter().zip(&plan.accounts) {
        // 400 Gbit/s for 6 ms, a pause frame, a packet at each end.
        let expected = if port.long { 300_000_000 } else { 25_000 } + 64 + 2 * 1_062;
        assert_eq!(account.headroom.as_ref().unwrap().total, expected);
    }
    // Up three tiers, over both DCI switches, down again.
    assert_eq!(route(&plan, plan.flows[0].path).0.len(), 9);
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

/// DCTCP has NewReno's keys in a table of its own, and g, which is kept in 2^-30.
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

/// On slow links, default pauses are longer than 100 us: until the port can repeat them after a packet.
#[test]
fn pauses_last_until_they_can_be_repeated() {
    let loss = "[[loss]]\nlink = \"S0.0-S0.1\"\nrate = 1e-4\n";
    let pause_time = |overrides: &[(&str, &str)]| {
        let scheme = ("flow_control.scheme", "per-flow-queue");
        let l = set(&[LINE, FLOW, loss], &[&[scheme], overrides].concat());
        let FlowControlParams::PerFlowQueue(p) = &l.plan.flow_control else { panic!() };
        p.pause_time
    };
    let us = 1_000_000;
    assert_eq!(pause_time(&[]), 100 * us);
    // Twice a packet of 1,062 B and a frame of 64 B, at 0.1 Gbit/s.
    assert_eq!(pause_time(&[("topology.link.rate", "100Mbps")]), 2 * 1_126 * 80 * 1_000);
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

/// Accounts charge whole blocks under CBFC, and the room that lossy priorities share is at least a
/// packet's charge.
#[test]
fn lossy_packets_fit_beside_the_buffers_of_cbfc() {
    let text = "[[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[flow_control]\nscheme = \"cbfc\"\n\
                [transport]\nack_priority = 5\n[[priority]]\nid = 3\nlossless = false\n";
    let plan = plan(&[LINE, text]);
    let charge = u64::from(plan.packet.largest()).next_multiple_of(plan.flow_control.traits().cell.into());
    assert!(charge > plan.packet.largest().into(), "blocks of 64 B make a difference");
    assert!(plan.buffers.iter().all(|b| b.shared >= charge), "{:?}", plan.buffers);
}

/// Planning asks before flows are made, with the bytes that they need, and while they are routed.
#[test]
fn a_caller_ends_planning() {
    let traffic = "[[traffic]]\nkind = \"poisson\"\nload = 0.9\nsizes = { uniform = [\"1kB\", \"2kB\"] }\n[run]\nduration = \"1ms\"\n";
    let text = [LINE, traffic].concat();
    let planned = |most: u64, questions: usize| {
        let asked = RefCell::new(Vec::new());
        let goes_on = |bytes: u64| {
            asked.borrow_mut().push(bytes);
            let stops = bytes > most || asked.borrow().len() > questions;
            if stops { Err("no more".to_string()) } else { Ok(()) }
        };
        let done = load_table(
            "test.toml",
            text.as_bytes(),
            "",
            &[],
            xoff_plan::Needs::Traffic,
            &no_files,
            &goes_on,
            None,
        );
        (done.map(|loaded| loaded.plan.flows.len()).map_err(|e| e.one_line()), asked.into_inner())
    };
    let (done, asked) = planned(u64::MAX, usize::MAX);
    let flows = done.unwrap();
    // Once for each 1,024 flows at least.
    assert!(flows > 10_000 && asked.len() > flows / 1024, "{flows} {}", asked.len());
    let most = *asked.iter().max().unwrap();
    assert!(most > 100 * flows as u64, "{most}");
    for (done, _) in [planned(most - 1, usize::MAX), planned(u64::MAX, asked.len() - 1), planned(u64::MAX, 0)]
    {
        assert!(done.as_ref().is_err_and(|e| e.contains("no more")), "{done:?}");
    }
}

/// A written headroom gets no room for the retries of a link layer, and the warning says how much is missing.
#[test]
fn a_written_headroom_does_not_cover_the_retries_of_a_link_layer() {
    let links = "[link_layer]\nscheme = \"llr\"\n[[loss]]\nlink = \"S0.0-S0.1\"\nber = 1e-9\n";
    let derived = loaded(&[LINE, FLOW, links]);
    assert!(derived.warnings.is_empty(), "{:?}", derived.warnings.iter().map(|w| &w.key).collect::<Vec<_>>());
    let retries = |plan: &Plan| {
        let ports = &plan.link_layer.as_ref().unwrap().ports;
        ports.iter().flatten().map(|limits| limits.headroom).max().unwrap()
    };
    let room = |plan: &Plan| plan.accounts[0].headroom.as_ref().map_or(0, |room| room.total);
    let written = loaded(&[LINE, FLOW, links, "[flow_control]\nheadroom = \"100kB\"\n"]);
    let warning = &written.warnings[0];
    assert_eq!((warning.key.as_str(), room(&written.plan)), ("link_layer.scheme", 100_000));
    assert!(warning.message.contains(&format!("{} B", retries(&written.plan))), "{}", warning.message);
    assert!(room(&derived.plan) > retries(&derived.plan));
}
