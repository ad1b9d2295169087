//! The plans of scenarios with credit-based flow control.

use std::io;
use std::path::Path;
use xoff_plan::{Loaded, load};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::cbfc::CbfcParams;
use xoff_schemes::flow_control::uec_cbfc::Limits;

const LINE: &str = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 2\n\
                    link = { rate = \"100Gbps\", delay = \"1us\" }\n";
const DCI: &str = "[topology]\nkind = \"dci\"\nk = 4\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
                   long_link = {rate=\"400Gbps\", length=\"600km\"}\n";
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H3\"\nsize = \"1MB\"\n";

fn loaded(topology: &str, keys: &str) -> Loaded {
    let text = format!("{topology}{FLOW}[flow_control]\nscheme = \"cbfc\"\n{keys}");
    let no_files = |_: &Path| Err(io::Error::other("no files here"));
    load("test.toml", text.as_bytes(), &[], &no_files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn params(loaded: &Loaded) -> &CbfcParams {
    let FlowControlParams::Cbfc(params) = &loaded.plan.flow_control else { panic!("of this scheme") };
    params
}

fn warnings(loaded: &Loaded) -> Vec<&str> {
    loaded.warnings.iter().map(|w| w.key.as_str()).collect()
}

/// InfiniBand's own numbers: 12 bits, and an update every 65,536 symbol times, which do
/// not go together on a link of four lanes.
#[test]
fn the_defaults_are_infinibands_and_are_noted_as_slow() {
    let plain = loaded(LINE, "");
    let p = params(&plain);
    assert!(p.update.iter().all(|&t| t == 20_971_520) && p.buffer.iter().all(|&b| b == 2_048));
    assert_eq!(warnings(&plain), ["flow_control.update"]);
    assert!(plain.warnings[0].message.contains("131072 B"), "{}", plain.warnings[0].message);
    // 20.97 us and a round trip of 2 us, and a few packets.
    let share: f64 =
        plain.warnings[0].message.split("about ").nth(1).unwrap().split('%').next().unwrap().parse().unwrap();
    assert!((44.0..46.0).contains(&share), "{share}");
    assert!(plain.plan.lanes.iter().all(|l| l.lossless));
    // A short update is fine, and so are wide counters.
    for keys in ["update = \"2us\"\n", "unlimited = true\n"] {
        assert_eq!(warnings(&loaded(LINE, keys)), [""; 0], "{keys}");
    }
    // Then the buffer is as large as the link needs to stay busy: 22.97 us of 12,500 B, two packets of 1,062
    // B and 24 B are 273 packets, and two more, of 17 blocks.
    assert!(params(&loaded(LINE, "unlimited = true\n")).buffer.iter().all(|&b| b == 275 * 17));
}

#[test]
fn a_buffer_that_12_bits_cannot_grant_is_named_with_the_distance() {
    let big = loaded(LINE, "buffer = \"1MB\"\nupdate = \"1us\"\n");
    assert_eq!(warnings(&big), ["flow_control.buffer"]);
    let message = &big.warnings[0].message;
    assert!(message.contains("131072 B") && message.contains("1.05 km"), "{message}");
    assert_eq!(warnings(&loaded(LINE, "buffer = \"1MB\"\nunlimited = true\n")), [""; 0]);
}

/// The Bifrost paper's buffers: 287 MiB on long ports, others elsewhere.
#[test]
fn long_links_and_gateways_have_buffers_of_their_own() {
    let keys = "unlimited = true\nbuffer = \"200kB\"\nlong_buffer = \"287MiB\"\ngateway_buffer = \"1MB\"\n";
    let there = loaded(DCI, keys);
    assert_eq!(warnings(&there), [""; 0]);
    let (plan, p) = (&there.plan, params(&there));
    let mut seen = [0; 3];
    for (id, port) in plan.topology.ports.iter().enumerate() {
        let gateway = plan.topology.nodes[port.node as usize].name.starts_with("DCI");
        let (kind, bytes) = match (port.long, gateway) {
            (true, _) => (0, 287 << 20),
            (false, true) => (1, 1_000_000),
            (false, false) => (2, 200_000),
        };
        seen[kind] += 1;
        assert_eq!(p.bytes(id), bytes / 64 * 64, "{}", plan.topology.port_name(id as u32));
        assert_eq!(p.ahead[id], p.buffer[port.peer as usize]);
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
    // Memory is the sum of the ports' buffers, if the scenario does not set it.
    for (node, buffer) in plan.topology.nodes.iter().zip(&plan.buffers) {
        let ports: u64 = node.ports.iter().map(|&id| p.bytes(id as usize)).sum();
        assert!(buffer.total >= ports && buffer.total - buffer.shared == ports, "{}", node.name);
    }
    // Where no link is long, the keys are named.
    let none = loaded(LINE, "update = \"1us\"\nlong_buffer = \"100kB\"\ngateway_buffer = \"100kB\"\n");
    assert_eq!(warnings(&none), ["flow_control.long_buffer", "flow_control.gateway_buffer"]);
}

/// A threshold in BDP is rate times one-way delay; blocks are whole.
#[test]
fn buffers_are_whole_blocks() {
    let there = loaded(LINE, "buffer = \"4.01bdp\"\nupdate = \"1us\"\n");
    assert!(params(&there).buffer.iter().all(|&b| b == 50_125 / 64));
}

/// A lossy priority runs without credit, in the rest of the memory.
#[test]
fn a_lossy_priority_has_no_buffer_of_its_own() {
    let keys = "buffer = \"50kB\"\nupdate = \"1us\"\n[switch]\nbuffer = \"1MB\"\n[[priority]]\nid = 5\nlossless = false\n\
                [[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"1MB\"\npriority = 5\n";
    let there = loaded(LINE, keys);
    let lossless: Vec<bool> = there.plan.lanes.iter().map(|l| l.lossless).collect();
    assert_eq!((lossless.iter().filter(|&&l| l).count(), &params(&there).lanes), (1, &lossless));
    let switch = there.plan.topology.find("S0.0").unwrap() as usize;
    assert_eq!(there.plan.buffers[switch].shared, 1_000_000 - 3 * (50_000 / 64 * 64));
}

fn ultra_ethernet(topology: &str, keys: &str) -> Loaded {
    let more = "[[traffic]]\nkind = \"flow\"\nsrc = \"H1\"\ndst = \"H2\"\nsize = \"1MB\"\npriority = 5\n";
    let text = format!("{topology}{FLOW}{more}[flow_control]\nscheme = \"uec-cbfc\"\n{keys}");
    let no_files = |_: &Path| Err(io::Error::other("no files here"));
    load("test.toml", text.as_bytes(), &[], &no_files).unwrap_or_else(|e| panic!("{}", e.one_line()))
}

fn limits(loaded: &Loaded) -> (Vec<Limits>, bool) {
    let FlowControlParams::UecCbfc(params) = &loaded.plan.flow_control else { panic!("of this scheme") };
    for (id, port) in loaded.plan.topology.ports.iter().enumerate() {
        assert_eq!(params.ahead[id], params.limits[port.peer as usize]);
    }
    (params.limits.clone(), params.couples)
}

/// Two priorities: 2 us of cable are 25,000 B, and with the spacing of 800 B, two packets of 1,062 B and 8 B they are 27
/// packets; two more, of 9 credits each.
#[test]
fn the_limits_of_ultra_ethernet_keep_links_busy() {
    let each = |loaded: &Loaded, reserve, shared, couples| {
        let (limits, coupled) = limits(loaded);
        assert!(limits.iter().all(|&of_port| of_port == Limits { reserve, shared }), "{limits:?}");
        assert_eq!(coupled, couples);
    };
    let own = ultra_ethernet(LINE, "");
    each(&own, 29 * 9, 0, false);
    // An account is over from its first credit on: the link needs all of them.
    for account in &own.plan.accounts {
        assert_eq!((account.reserve, account.headroom.as_ref().unwrap().total), (1, (29 * 9 - 1) * 128));
    }
    let total = ultra_ethernet(LINE, "limit = \"total\"\n");
    each(&total, 0, 29 * 9, true);
    each(&ultra_ethernet(LINE, "limit = \"total\"\nreserve = \"1024B\"\n"), 8, 29 * 9 - 8, true);
    each(&ultra_ethernet(LINE, "limit = \"total\"\nreserve = \"1025B\"\n"), 9, 28 * 9, false);
    each(
        &ultra_ethernet(LINE, "limit = \"total\"\nbuffer = \"40kB\"\nreserve = \"2kB\"\n"),
        16,
        312 - 32,
        false,
    );
    each(&ultra_ethernet(LINE, "buffer = \"40kB\"\ncredit_size = \"2048B\"\n"), 19, 0, false);
    // 1,062 B and 90 B are 9 credits, and with 91 B they are 10.
    each(&ultra_ethernet(LINE, "packet_overhead = 90\n"), 29 * 9, 0, false);
    each(&ultra_ethernet(LINE, "packet_overhead = 91\n"), 29 * 10, 0, false);
    // The buffer of a port is one, after those of the nodes.
    let (plan, ports) = (&total.plan, total.plan.topology.ports.len());
    assert_eq!(plan.buffers.len(), plan.topology.nodes.len() + ports);
    assert!(
        plan.buffers[plan.topology.nodes.len()..]
            .iter()
            .all(|b| (b.total, b.shared) == (261 * 128, 261 * 128 + 1))
    );
}

#[test]
fn long_links_have_long_limits_up_to_the_counters() {
    // 400 Gbit/s over 600 km need 300 MB and 2,932 B: credits of 128 B reach 67 MB, those of 2,048 B all of it.
    for (keys, most) in [("", 524_287), ("credit_size = \"2048B\"\n", 300_002_932u64.div_ceil(1_062) + 2)] {
        let (limits, _) = limits(&ultra_ethernet(DCI, keys));
        assert_eq!(limits.iter().map(|limits| limits.of_one()).max(), Some(most), "{keys}");
    }
}
