//! The plans of scenarios with credit-based flow control.

use std::io;
use std::path::Path;
use xoff_plan::{Loaded, load};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::cbfc::CbfcParams;

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
