//! `[topology]`: every kind.

use std::fmt::Write;

use toml::{Table, Value};

use super::{Put, Sketch, links};
use crate::draw::{int, text, texts, time};

/// The kinds; those with keys of their own for the rest of the scenario come more than once.
const KINDS: [&str; 22] = [
    "ndc",
    "ndc",
    "leaf-spine",
    "leaf-spine",
    "fat-tree",
    "dumbbell",
    "line",
    "ring",
    "ring",
    "ring",
    "rail-only",
    "rail-optimized",
    "full-mesh",
    "torus-2d",
    "dragonfly",
    "dci",
    "dci",
    "pods",
    "zeropod",
    "hpcc",
    "file",
    "custom",
];

pub fn draw(sketch: &mut Sketch) -> Table {
    let kind = *sketch.draw.pick(&KINDS);
    let mut t = Table::new();
    t.put("kind", kind);
    let bits = links::bits(sketch);
    if !matches!(kind, "leaf-spine" | "rail-only" | "rail-optimized" | "hpcc" | "file" | "custom") {
        let link = links::at(sketch, bits);
        t.put("link", link);
    }
    match kind {
        "ndc" => {
            t.put("n", int(sketch.draw.between(2, 4)));
            let k = sketch.draw.between(0, 5).min(2);
            t.put("k", int(if k == 0 { 1 } else { k - 1 }));
            if sketch.draw.one_in(6) {
                t.put("n", int(2));
                t.put("k", int(2));
            }
        }
        "leaf-spine" => leaf_spine(sketch, &mut t, bits),
        "fat-tree" => {
            t.put("k", int(*sketch.draw.pick(&[2, 4, 4])));
            tree(sketch, &mut t, bits);
        }
        "dumbbell" => {
            t.put("left", int(sketch.draw.between(1, 4)));
            t.put("right", int(sketch.draw.between(1, 4)));
            let bottleneck = links::like(sketch, bits);
            t.put("bottleneck", bottleneck);
        }
        "line" => {
            let switches = sketch.draw.between(1, 4);
            t.put("switches", int(switches));
            t.put(
                "hosts_per_switch",
                int(if switches == 1 { sketch.draw.between(1, 6) } else { sketch.draw.between(1, 3) }),
            );
            fabric(sketch, &mut t, bits);
        }
        "ring" => switches(sketch, &mut t, bits, 3, 6),
        "full-mesh" => switches(sketch, &mut t, bits, 2, 5),
        "torus-2d" => {
            t.put("width", int(sketch.draw.between(3, 4)));
            t.put("height", int(3));
            t.put("hosts_per_switch", int(sketch.draw.between(1, 2)));
            fabric(sketch, &mut t, bits);
        }
        "dragonfly" => {
            t.put("switches_per_group", int(sketch.draw.between(1, 3)));
            t.put("hosts_per_switch", int(sketch.draw.between(1, 2)));
            t.put("global_links", int(sketch.draw.between(1, 2)));
            sketch.maybe(&mut t, 2, "groups", |s| int(s.draw.between(2, 4)));
            for key in ["local_link", "global_link"] {
                if sketch.draw.one_in(3) {
                    let link = links::like(sketch, bits);
                    t.put(key, link);
                }
            }
        }
        "rail-only" | "rail-optimized" => {
            let aggregated = kind == "rail-optimized";
            t.put("n", int(sketch.draw.between(2, if aggregated { 3 } else { 4 })));
            sketch.maybe(&mut t, 2, "domains", |s| int(s.draw.between(2, if aggregated { 3 } else { 4 })));
            let link = links::at(sketch, bits);
            t.put("domain_link", link);
            let link = links::like(sketch, bits);
            t.put("rail_link", link);
            if aggregated {
                t.put("segments", int(sketch.draw.between(1, 3)));
                t.put("aggregations", int(sketch.draw.between(1, 2)));
                fabric(sketch, &mut t, bits);
            }
        }
        "dci" => {
            t.put("k", int(*sketch.draw.pick(&[2, 2, 4])));
            t.put("tiers", int(2));
            tree(sketch, &mut t, bits);
            if sketch.draw.one_in(2) {
                let link = links::like(sketch, bits);
                t.put("dci_link", link);
            }
            let long = links::long(sketch);
            t.put("long_link", long);
            sketch.maybe(&mut t, 2, "long_links", |s| int(s.draw.between(1, 3)));
        }
        "pods" | "zeropod" => pods(sketch, &mut t),
        "hpcc" => hpcc(sketch, &mut t),
        "file" => file(sketch, &mut t),
        _ => custom(sketch, &mut t),
    }
    t
}

/// Links between switches, in most networks.
fn fabric(sketch: &mut Sketch, t: &mut Table, bits: u64) {
    if sketch.draw.one_in(2) {
        let link = links::like(sketch, bits);
        t.put("fabric_link", link);
    }
}

/// Keys that `ring` and `full-mesh` share.
fn switches(sketch: &mut Sketch, t: &mut Table, bits: u64, least: u64, most: u64) {
    t.put("switches", int(sketch.draw.between(least, most)));
    t.put("hosts_per_switch", int(sketch.draw.between(1, 3)));
    fabric(sketch, t, bits);
}

/// Keys that `fat-tree` and `dci` share.
fn tree(sketch: &mut Sketch, t: &mut Table, bits: u64) {
    fabric(sketch, t, bits);
    sketch.maybe(t, 2, "tiers", |s| int(s.draw.between(2, 3)));
    sketch.maybe(t, 3, "oversubscription", |s| int(s.draw.between(1, 2)));
}

fn leaf_spine(sketch: &mut Sketch, t: &mut Table, bits: u64) {
    t.put("leaves", int(sketch.draw.between(1, 4)));
    t.put("spines", int(sketch.draw.between(1, 3)));
    t.put("hosts_per_leaf", int(sketch.draw.between(1, 4)));
    sketch.maybe(t, 3, "links_per_pair", |s| int(s.draw.between(1, 3)));
    let link = links::at(sketch, bits);
    t.put("host_link", link);
    let link = links::like(sketch, bits);
    t.put("fabric_link", link);
}

fn pods(sketch: &mut Sketch, t: &mut Table) {
    let pods = sketch.draw.between(1, 3);
    t.put("pods", int(pods));
    t.put("racks", int(sketch.draw.between(1, 3)));
    t.put("hosts_per_rack", int(sketch.draw.between(1, 4)));
    t.put("aggs", int(sketch.draw.between(1, 3)));
    if pods > 1 {
        t.put("cores", int(sketch.draw.between(1, 3)));
    }
}

/// A random tree of switches with hosts, and a few links more, of which some are parallel:
/// links as pairs of names.
fn graph(sketch: &mut Sketch) -> (Vec<String>, Vec<String>, Vec<(String, String)>) {
    let switches: Vec<String> = (0..sketch.draw.between(1, 5)).map(|i| format!("S{i}")).collect();
    let hosts: Vec<String> = (0..sketch.draw.between(2, 7)).map(|i| format!("H{}", i + 5)).collect();
    let mut links = Vec::new();
    for (i, switch) in switches.iter().enumerate().skip(1) {
        links.push((switch.clone(), switches[sketch.draw.between(0, i as u64 - 1) as usize].clone()));
    }
    for host in &hosts {
        links.push((host.clone(), sketch.draw.pick(&switches).clone()));
    }
    for _ in 0..sketch.draw.between(0, 3) {
        let (a, b) = (sketch.draw.pick(&switches).clone(), sketch.draw.pick(&switches).clone());
        if a != b {
            links.push((a, b));
        }
    }
    (switches, hosts, links)
}

/// A topology file of the HPCC simulator: ids of switches come before those of hosts.
fn hpcc(sketch: &mut Sketch, t: &mut Table) {
    let (switches, hosts, links) = graph(sketch);
    // Ids are a run from 0 on.
    let id = |name: &str| match name.strip_prefix('H') {
        Some(host) => host.parse::<usize>().unwrap_or(0) - 5 + switches.len(),
        None => name[1..].parse().unwrap_or(0),
    };
    let bits = links::bits(sketch);
    let mut file = format!("{} {} {}\n", switches.len() + hosts.len(), switches.len(), links.len());
    let ids: Vec<String> = (0..switches.len()).map(|i| i.to_string()).collect();
    file += &(ids.join(" ") + "\n");
    let mut longest = 0;
    for (a, b) in &links {
        let bits = if sketch.draw.one_in(4) { links::bits(sketch) } else { bits };
        let delay = sketch.draw.between(0, 30) * 100;
        longest = longest.max(delay);
        let error = *sketch.draw.pick(&["0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0.001"]);
        let _ = writeln!(file, "{} {} {bits}bps {delay}ns {error}", id(a), id(b));
    }
    t.put("file", "fabric.txt");
    sketch.files.insert("fabric.txt".into(), file.into_bytes());
    if longest > 0 && sketch.draw.one_in(3) {
        t.put("long_delay", time(longest * 1_000));
    }
}

/// A CSV of links, some without a rate or a delay.
fn file(sketch: &mut Sketch, t: &mut Table) {
    let (_, _, links) = graph(sketch);
    let bits = links::bits(sketch);
    let labelled = sketch.draw.one_in(2);
    let mut file = String::from("device,port,device,port,rate,delay_ns\n");
    let (mut longest, mut without) = (0, false);
    for (i, (a, b)) in links.iter().enumerate() {
        let [p, q] = if labelled { [format!("et{i}/a"), format!("et{i}/b")] } else { Default::default() };
        let delay = sketch.draw.between(0, 30) * 100;
        longest = longest.max(delay);
        let rate = if sketch.draw.one_in(6) { String::new() } else { format!("{bits}bps") };
        without |= rate.is_empty();
        let delay = if sketch.draw.one_in(6) { String::new() } else { delay.to_string() };
        let _ = writeln!(file, "{a},{p},{b},{q},{rate},{delay}");
    }
    if sketch.draw.one_in(4) {
        let _ = writeln!(file, "console,c0,{},c0,1G,0", links[0].0);
        t.put("exclude", texts(&["cons*".to_string()]));
    }
    if without {
        t.put("rate", text(format!("{bits}bps")));
    }
    sketch.maybe(t, 3, "delay", |s| time(s.draw.between(0, 3_000) * 1_000));
    sketch.maybe(t, 3, "format", |_| "csv");
    sketch.maybe(t, 3, "hosts", |_| texts(&["H*".to_string()]));
    if longest > 0 && sketch.draw.one_in(3) {
        t.put("long_delay", time(longest * 1_000));
    }
    t.put("file", "links.csv");
    sketch.files.insert("links.csv".into(), file.into_bytes());
}

fn custom(sketch: &mut Sketch, t: &mut Table) {
    let (switches, mut hosts, links) = graph(sketch);
    let bits = links::bits(sketch);
    let long = sketch.draw.one_in(2).then(|| sketch.draw.between(0, links.len() as u64 - 1) as usize);
    let mut out = Vec::new();
    for (i, (a, b)) in links.iter().enumerate() {
        let bits = if sketch.draw.one_in(4) { links::bits(sketch) } else { bits };
        let mut link = links::at(sketch, bits);
        link.put("a", a.as_str());
        link.put("b", b.as_str());
        if sketch.draw.one_in(4) {
            link.put("a_port", format!("Ethernet{i}"));
            link.put("b_port", format!("xe-{i}:0"));
        }
        let inner = a.starts_with('S') && b.starts_with('S');
        if long == Some(i) && inner {
            link.put("long", true);
            link.put("delay", time(sketch.draw.between(50, 500) * crate::draw::MICROSECOND));
        }
        out.push(Value::Table(link));
    }
    // Hosts that relay have two ports at two switches.
    if switches.len() > 1 && sketch.draw.one_in(3) {
        t.put("relay_hosts", true);
        for switch in &switches[..2] {
            let mut link = links::at(sketch, bits);
            link.put("a", "relay");
            link.put("b", switch.as_str());
            out.push(Value::Table(link));
        }
        hosts.push("relay".into());
    }
    // Two hosts may be linked without a switch.
    if sketch.draw.one_in(6) {
        let mut link = links::at(sketch, bits);
        link.put("a", "near");
        link.put("b", "far");
        hosts = vec!["near".into(), "far".into()];
        t.remove("relay_hosts");
        out = vec![Value::Table(link)];
    } else {
        t.put("switches", texts(&switches));
    }
    t.put("kind", text("custom"));
    t.put("hosts", texts(&hosts));
    t.put("links", Value::Array(out));
}
