//! Relays in long links: their places, their memory, and the devices that use them.

use std::io;
use std::path::Path;
use xoff_plan::describe::describe;
use xoff_plan::plan::{ENDS, Limit};
use xoff_plan::{Loaded, load};

/// Two sites of the paper, at 400 Gbit/s and 600 km.
const SITES: &str = "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"M\", \"N\"]\nlinks = [\n\
    { a = \"A\", b = \"M\", rate = \"100Gbps\", delay = \"1us\" },\n\
    { a = \"M\", b = \"N\", rate = \"400Gbps\", delay = \"600km\", long = true },\n\
    { a = \"N\", b = \"B\", rate = \"100Gbps\", delay = \"1us\" }]\n\
    [transport]\nrto = \"100ms\"\nmtu = \"1438B\"\n[flow_control]\nscheme = \"swing\"\nxoff = \"288KiB\"\nxon = \"288KiB\"\n";
const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\n";

fn loaded(parts: &[&str]) -> Loaded {
    let no_files = |_: &Path| Err(io::Error::other("no files here"));
    load("test.toml", parts.concat().as_bytes(), &[], &no_files)
        .unwrap_or_else(|e| panic!("{}", e.one_line()))
}

/// Headroom of the long link: a round trip at 400 Gbit/s, two packets and a frame.
const HEADROOM: u64 = 300_000_000 + 2 * 1500 + 64;

#[test]
fn a_relay_is_in_each_end_of_a_long_link() {
    let l = loaded(&[SITES, FLOW]);
    let (plan, t) = (&l.plan, &l.plan.topology);
    let names: Vec<&str> = t.nodes.iter().map(|n| n.name.as_str()).collect();
    assert_eq!(names, ["A", "B", "M", "N", "RELAY.0", "RELAY.1"]);
    assert_eq!((0..6).map(|n| t.is_relay(n)).collect::<Vec<_>>(), [false, false, false, false, true, true]);
    // The long link is only between the relays, and separates the sites.
    assert_eq!(t.sites(), [0, 1, 0, 1, 0, 1]);
    for (id, p) in (0..).zip(&t.ports) {
        assert_eq!(t.ports[p.peer as usize].peer, id);
        let relays = [p.node, t.neighbour(id)].map(|n| t.is_relay(n));
        assert_eq!(p.long, relays == [true, true]);
        if relays[0] != relays[1] {
            assert_eq!((p.rate, p.delay), (400_000_000_000, 0));
        }
    }
    let flow = &plan.flows[0];
    let hops = &plan.hops[flow.path as usize..];
    let route: Vec<String> = hops.iter().take_while(|&&h| h < ENDS).map(|&p| t.port_name(p)).collect();
    assert_eq!(route, ["A:0", "M:1", "RELAY.0:1", "RELAY.1:0", "N:1"]);
    assert!(l.warnings.is_empty(), "{:?}", l.warnings);
    let text = describe(&l);
    for part in ["2 relays, with 2 ports each", "RELAY - RELAY: 400Gbps, 3ms", "swing (relays forward pauses"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn thresholds_of_long_links_do_nothing_beside_relays() {
    let (without, with) = (loaded(&[SITES, FLOW]), loaded(&[SITES, "long = { xoff = \"2bdp\" }\n", FLOW]));
    assert_eq!(with.warnings.len(), 1, "{:?}", with.warnings);
    assert!(with.warnings[0].message.starts_with("had no effect"), "{:?}", with.warnings);
    assert_eq!(with.plan.buffers, without.plan.buffers);
    assert_eq!(with.plan.accounts, without.plan.accounts);
}

/// The paper's 287 MB hold the default, and its link's ends have its 198 KB.
#[test]
fn the_papers_numbers_suffice_to_the_byte() {
    let l = loaded(&[SITES, "relay_buffer = \"287MiB\"\n", FLOW]);
    assert!(l.warnings.is_empty(), "{:?}", l.warnings);
    let t = &l.plan.topology;
    let account = |name: &str, index: usize| {
        let node = t.find(name).unwrap();
        &l.plan.accounts[t.nodes[node as usize].ports[index] as usize]
    };
    let xoff = |name, index| (account(name, index).limit, account(name, index).resume);
    assert_eq!(xoff("RELAY.1", 1), (Limit::Static(287 << 20), 287 << 20));
    for end in [("RELAY.1", 0), ("RELAY.0", 0), ("N", 0), ("M", 1)] {
        let xon = (198 << 10) - 16 * 1500;
        assert_eq!(xoff(end.0, end.1), (Limit::Static(198 << 10), xon), "{end:?}");
    }
    assert_eq!(xoff("N", 1), (Limit::Static(288 << 10), 288 << 10));
    // The default, and a byte less.
    let default = HEADROOM + 2 * 1500;
    let of = |l: &Loaded| l.plan.accounts[l.plan.topology.nodes[5].ports[1] as usize].limit;
    assert_eq!(of(&loaded(&[SITES, FLOW])), Limit::Static(default));
    let less = loaded(&[SITES, &format!("relay_buffer = \"{}B\"\n", default - 1), FLOW]);
    let keys: Vec<&str> = less.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["flow_control.relay_buffer"]);
    // It may be the threshold that is too low, and not the memory.
    let low = loaded(&[SITES, "relay_limit = \"1MB\"\n", FLOW]);
    let keys: Vec<&str> = low.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["flow_control.relay_limit"]);
}

/// With data of several priorities, pauses that are passed on limit nothing; the part above the relay's own
/// threshold does.
#[test]
fn several_priorities_need_headroom_of_their_own() {
    const TWO: &str =
        "[[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"1MB\"\npriority = 4\n";
    let account = |l: &Loaded| {
        let port = l.plan.topology.nodes[5].ports[1] as usize;
        let account = &l.plan.accounts[port * l.plan.lanes.len()];
        let Limit::Static(xoff) = account.limit else { panic!("{account:?}") };
        (xoff, account.headroom.as_ref().unwrap().total)
    };
    let l = loaded(&[SITES, FLOW, TWO]);
    assert_eq!((account(&l), l.warnings.len()), ((HEADROOM + 3000, HEADROOM), 0));
    let papers = loaded(&[SITES, "relay_buffer = \"287MiB\"\n", FLOW, TWO]);
    assert_eq!(account(&papers), ((287 << 20) - HEADROOM, HEADROOM));
    let shallow = loaded(&[SITES, "relay_buffer = \"287MiB\"\nrelay_limit = \"200MiB\"\n", FLOW, TWO]);
    assert!(shallow.warnings[0].message.contains("several data priorities"), "{:?}", shallow.warnings);
    // ACKs of another priority are no data.
    let acks = loaded(&[&SITES.replace("mtu", "ack_priority = 6\nmtu"), "relay_buffer = \"287MiB\"\n", FLOW]);
    assert_eq!((account(&acks).1, acks.warnings.len()), (0, 0));
}

/// The names of the two switches of a long link mean it, with or without relays.
#[test]
fn links_and_paths_need_not_name_relays() {
    let path = "path = [\"A\", \"M\", \"N\", \"B\"]\n";
    let failure = "[[failure]]\nlink = \"M-N\"\nat = \"1us\"\nuntil = \"2us\"\n";
    let l = loaded(&[SITES, FLOW, path, failure]);
    let t = &l.plan.topology;
    let mut down: Vec<String> = l.plan.faults.down.iter().map(|d| t.port_name(d.port)).collect();
    down.sort();
    assert_eq!(down, ["RELAY.0:1", "RELAY.1:1"]);
    assert_eq!(l.plan.flows[0].path, loaded(&[SITES, FLOW]).plan.flows[0].path);
}

/// Tables for long links and their switches: the first has nothing to rule.
#[test]
fn switches_beside_relays_are_gateways() {
    let l =
        loaded(&[SITES, "long = { xoff = \"1MB\" }\ngateway = { xoff = \"100kB\", xon = \"90kB\" }\n", FLOW]);
    let keys: Vec<&str> = l.warnings.iter().map(|w| w.key.as_str()).collect();
    assert_eq!(keys, ["flow_control.long"]);
    let t = &l.plan.topology;
    let (from_host, from_relay) = (t.nodes[2].ports[0] as usize, t.nodes[2].ports[1] as usize);
    assert_eq!(l.plan.accounts[from_host].limit, Limit::Static(100_000));
    assert_eq!(l.plan.accounts[from_relay].limit, Limit::Static(198 << 10));
}

/// A table of a priority leaves it as lossless as it was.
#[test]
fn priorities_with_tables_of_their_own_are_lossless() {
    let l = loaded(&[
        SITES,
        FLOW,
        "[[priority]]\nid = 3\necn = { k_min = \"1kB\", k_max = \"2kB\", p_max = 1.0 }\n",
    ]);
    assert!(l.plan.lanes.iter().all(|lane| lane.lossless));
}
