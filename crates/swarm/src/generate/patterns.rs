//! The flows and receivers of each kind of traffic.

use std::fmt::Write;

use toml::{Table, Value};

use super::place::Place;
use super::traffic::Share;
use super::{Put, Sketch, recorded};
use crate::draw::{bytes, int, rate, text, texts, time};

/// Sets the keys of a kind.
pub fn draw(sketch: &mut Sketch, place: &Place, share: &Share, kind: &str, t: &mut Table) {
    let hosts = place.hosts.len() as u64;
    match kind {
        "poisson" => poisson(sketch, place, share, t),
        "incast" => incast(sketch, place, share, t),
        "permutation" => {
            subset(sketch, place, "hosts", t);
            size(sketch, share, hosts, t);
        }
        "all-to-all" => {
            if hosts > 8 || sketch.draw.one_in(3) {
                t.put("hosts", texts(&sketch.draw.few(&place.hosts, 2, hosts.min(8))));
            }
            size(sketch, share, hosts.min(8) * 7, t);
        }
        "flow" => flow(sketch, place, share, t),
        "flows" => file(sketch, place, share, t),
        "ring-all-reduce" => {
            if sketch.draw.one_in(2) {
                t.put("hosts", texts(&sketch.draw.few(&place.hosts, 2, hosts.min(8))));
            }
            // 2 (n - 1) steps of a chunk for each of n hosts.
            t.put("size", bytes(share.size(sketch, 2 * hosts).max(hosts)));
            rounds(sketch, place, t);
        }
        "parameter-server" => {
            let most = (hosts - 1).min(3);
            t.put("servers", texts(&sketch.draw.few(&place.hosts[..most as usize], 1, most)));
            if sketch.draw.one_in(2) {
                t.put("workers", texts(&sketch.draw.few(&place.hosts[most as usize..], 1, 6)));
            }
            t.put("size", bytes(share.size(sketch, 2 * hosts).max(4)));
            rounds(sketch, place, t);
        }
        "moe" => moe(sketch, place, share, t),
        "training-step" => training_step(sketch, place, share, t),
        "trace" => recorded::draw(sketch, place, share, t),
        "probe" => probe(sketch, place, share, t),
        "burst" => burst(sketch, place, share, t),
        _ => around(sketch, place, share, t),
    }
}

/// Hosts or groups of hosts under a key, or none, which means all.
fn subset(sketch: &mut Sketch, place: &Place, key: &str, t: &mut Table) {
    if sketch.draw.one_in(2) {
        return;
    }
    let hosts = &place.hosts;
    let grouped = !matches!(place.kind.as_str(), "custom" | "hpcc" | "file");
    let value = match sketch.draw.between(0, 4) {
        0 => vec!["all".into()],
        1 => vec![format!("{}..{}", hosts[0], hosts[hosts.len() / 2])],
        2 if grouped && place.kind != "ndc" && hosts.len() > 3 => {
            vec!["rack:0".into(), hosts[hosts.len() - 1].clone()]
        }
        _ => sketch.draw.few(hosts, 2, hosts.len() as u64),
    };
    t.put(key, texts(&value));
}

/// Sets `size`, or `sizes`.
fn size(sketch: &mut Sketch, share: &Share, flows: u64, t: &mut Table) {
    if sketch.draw.one_in(4) {
        t.put("sizes", sizes(sketch, share, flows));
    } else {
        t.put("size", bytes(share.size(sketch, flows)));
    }
}

/// A distribution of sizes.
fn sizes(sketch: &mut Sketch, share: &Share, flows: u64) -> Value {
    let mean = share.size(sketch, flows);
    let mut t = Table::new();
    match sketch.draw.between(0, 5) {
        0 if mean > 100_000 => return text("websearch"),
        0 | 1 if mean > 10_000 => return text("fb-hadoop"),
        2 => {
            let name = "sizes.cdf";
            let file = format!("# bytes, percent\n1 0\n{} 60\n{} 100\n", mean.max(2), (2 * mean).max(3));
            sketch.files.insert(name.into(), file.into_bytes());
            t.put("file", name);
        }
        3 => {
            let step = sketch.draw.log(1, mean);
            t.put("uniform", Value::Array(vec![bytes(step), bytes(step * sketch.draw.between(1, 4))]));
            t.put("step", bytes(step));
        }
        _ => t.put("uniform", Value::Array(vec![bytes(1), bytes(2 * mean)])),
    }
    t.into()
}

fn poisson(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let flows = sketch.draw.log(2, share.flows);
    t.put("sizes", sizes(sketch, share, flows));
    t.put("load", sketch.draw.real(0.05, if sketch.extreme { 4.0 } else { 1.0 }));
    // A run of unknown length requires the number of flows.
    t.put("flows", int(flows));
    if sketch.draw.one_in(2) {
        let of = match sketch.draw.between(0, 2) {
            0 => text("saturation"),
            1 => text("host-links"),
            _ => rate(place.rates.1),
        };
        t.put("load_of", of);
    }
    if sketch.ends && sketch.draw.one_in(4) {
        t.put("stop", time(sketch.draw.log(30 * place.tick, 300 * place.tick)));
    }
    match sketch.draw.between(0, 5) {
        0 => {
            subset(sketch, place, "from", t);
            subset(sketch, place, "to", t);
        }
        1 if !matches!(place.kind.as_str(), "custom" | "hpcc" | "file" | "ndc" | "line" | "dumbbell") => {
            let mut near = Table::new();
            near.put("other", sketch.draw.real(0.1, 1.0));
            for key in ["rack", "pod", "dc"] {
                let has = match key {
                    "rack" => true,
                    "pod" => place.kind == "fat-tree" || place.kind == "pods" || place.kind == "dci",
                    _ => place.kind == "dci",
                };
                if has && sketch.draw.one_in(2) {
                    near.put(key, sketch.draw.real(0.1, 1.0));
                }
            }
            t.put("locality", near);
        }
        2 => {
            let entry = |sketch: &mut Sketch| {
                let pair = sketch.draw.some(&place.hosts, 2);
                let mut e = Table::new();
                e.put("from", pair[0].as_str());
                e.put("to", if sketch.draw.one_in(3) { "all" } else { pair[1].as_str() });
                e.put("share", sketch.draw.real(0.1, 5.0));
                Value::Table(e)
            };
            let entries = (0..sketch.draw.between(1, 4)).map(|_| entry(sketch)).collect();
            t.put("matrix", Value::Array(entries));
        }
        3 if sketch.draw.one_in(2) => {
            let mut file = String::from("from,to,share\n");
            for _ in 0..3 {
                let pair = sketch.draw.some(&place.hosts, 2);
                let _ = writeln!(file, "{},{},{}", pair[0], pair[1], sketch.draw.between(1, 9));
            }
            sketch.files.insert("matrix.csv".into(), file.into_bytes());
            t.put("matrix_file", "matrix.csv");
        }
        _ => {}
    }
}

fn incast(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let hosts = place.hosts.len() as u64;
    let fan_in = if hosts > 2 { sketch.draw.between(1, (hosts - 1).min(share.flows).min(12)) } else { 1 };
    t.put("fan_in", int(fan_in));
    let each = if sketch.draw.one_in(4) { sketch.draw.between(1, 3) } else { 1 };
    if each > 1 {
        t.put("flows_per_sender", int(each));
    }
    let events = if sketch.draw.one_in(3) && sketch.ends { 8 } else { 1 };
    size(sketch, share, fan_in * each * events, t);
    match sketch.draw.between(0, 3) {
        0 => t.put("to", "random"),
        1 => t.put("to", "rotate"),
        _ => t.put("to", sketch.draw.pick(&place.hosts).as_str()),
    }
    let drawn = matches!(t["to"].as_str(), Some("random" | "rotate"));
    if drawn && sketch.draw.one_in(2) {
        let some = sketch.draw.some(&place.hosts, 3);
        t.put("receivers", texts(&some));
    }
    if sketch.draw.one_in(4) {
        subset(sketch, place, "from", t);
        // The receiver may be among few senders.
        t.put("fan_in", int(1));
    }
    if events > 1 {
        let mut stop = sketch.draw.log(30 * place.tick, 200 * place.tick);
        if sketch.draw.one_in(2) {
            t.put("period", time(sketch.draw.log(20 * place.tick, 60 * place.tick)));
        } else {
            t.put("load", sketch.draw.real(0.05, 1.0));
            // Small flows come more often than the run can bear.
            t.remove("sizes");
            t.put("size", bytes((share.bytes / 8).max(1)));
            stop = (share.bytes as f64 * 8e12 / (place.rates.1 as f64 * hosts as f64)) as u64 + 1;
            sketch.maybe(t, 2, "load_of", |s| *s.draw.pick(&["receiver", "host-links"]));
        }
        t.put("stop", time(stop));
    }
}

fn flow(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let pair = sketch.draw.some(&place.hosts, 2);
    t.put("src", pair[0].as_str());
    t.put("dst", pair[1].as_str());
    t.put("size", bytes(share.size(sketch, 1)));
    if place.kind == "zeropod" || sketch.arbiter {
        return;
    }
    sketch.maybe(t, 4, "rate", |s| rate(s.draw.log((place.rates.0 / 100).max(1), place.rates.1)));
    if sketch.draw.one_in(3)
        && let Some(path) = path(place, &pair[0], &pair[1])
    {
        t.put("path", texts(&path));
    }
}

/// The path between two hosts that share a switch.
fn path(place: &Place, src: &str, dst: &str) -> Option<Vec<String>> {
    let at = |host: &str| {
        place.links.iter().filter_map(|link| link.split_once('-')).find_map(|(a, b)| {
            match (a == host, b == host) {
                (true, _) => Some(b.to_string()),
                (_, true) => Some(a.to_string()),
                _ => None,
            }
        })
    };
    let (near, far) = (at(src)?, at(dst)?);
    let inner = near == far || place.inner.contains(&(near.clone(), far.clone()));
    if !inner || !place.switches.contains(&near) {
        return None;
    }
    let mut path = vec![src.to_string(), near.clone()];
    if near != far {
        path.push(far);
    }
    path.push(dst.to_string());
    Some(path)
}

fn file(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let flows = sketch.draw.log(1, share.flows);
    // Ids in files of the HPCC simulator are those of hosts called H0, H1, ….
    let numbered = place.hosts.iter().all(|h| h.strip_prefix('H').is_some_and(|n| n.parse::<u64>().is_ok()));
    let hpcc = numbered && sketch.draw.one_in(2);
    let mut lines = String::new();
    let mut start = 0;
    for _ in 0..flows {
        let pair = sketch.draw.some(&place.hosts, 2);
        let size = share.size(sketch, flows);
        start += sketch.draw.between(0, 5 * place.tick / flows);
        if hpcc {
            let p = *sketch.draw.pick(&sketch.priorities.clone());
            let seconds = format!("{}.{:012}", start / crate::draw::SECOND, start % crate::draw::SECOND);
            let _ = writeln!(lines, "{} {} {p} 100 {size} {seconds}", &pair[0][1..], &pair[1][1..]);
        } else {
            let _ = writeln!(lines, "{},{},{size},{start}ps", pair[0], pair[1]);
        }
    }
    if hpcc {
        t.put("format", "hpcc");
        t.put("file", "flows.txt");
        sketch.files.insert("flows.txt".into(), format!("{flows}\n{lines}").into_bytes());
    } else {
        sketch.maybe(t, 3, "format", |_| "csv");
        let name = "flows.csv";
        t.put("file", name);
        sketch.files.insert(name.into(), format!("src,dst,bytes,start\n{lines}").into_bytes());
    }
    if hpcc && t.get("format").is_some() {
        t.remove("priority");
    }
}

/// Rounds of a collective.
fn rounds(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    for key in ["compute", "gap"] {
        sketch.maybe(t, 3, key, |s| time(s.draw.log(1, 20 * place.tick)));
    }
    sketch.maybe(t, 3, "rounds", |s| int(s.draw.between(1, 3)));
}

fn moe(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let hosts = place.hosts.len() as u64;
    let groups = if hosts.is_multiple_of(2) && hosts > 3 && sketch.draw.one_in(3) { 2 } else { 1 };
    if groups > 1 {
        t.put("groups", int(groups));
    } else if sketch.draw.one_in(3) {
        t.put("hosts", texts(&sketch.draw.few(&place.hosts, 2, hosts)));
    }
    let members = t.get("hosts").and_then(|h| h.as_array()).map_or(hosts, |h| h.len() as u64) / groups;
    let experts = sketch.draw.between(1, members);
    t.put("experts", int(experts));
    let each = sketch.draw.between(1, experts.min(3));
    if each > 1 || sketch.draw.one_in(3) {
        t.put("experts_per_token", int(each));
    }
    let tokens = sketch.draw.log(1, (share.flows / hosts).max(1));
    t.put("tokens", int(tokens));
    t.put("token_size", bytes(share.size(sketch, 2 * hosts * tokens * each)));
    if sketch.draw.one_in(3) {
        let weights = (0..experts).map(|_| sketch.draw.real(0.1, 3.0)).collect();
        t.put("weights", Value::Array(weights));
    }
    if groups > 1 && sketch.draw.one_in(2) {
        t.put("phase", time(sketch.draw.log(1, 10 * place.tick)));
    }
    rounds(sketch, place, t);
}

/// A small model on as many hosts as its groups divide.
fn training_step(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let hosts = place.hosts.len() as u64;
    let [mut tensor, mut pipeline, mut expert] = [1; 3];
    for groups in [&mut tensor, &mut pipeline, &mut expert] {
        *groups = if sketch.draw.one_in(2) { 2 } else { 1 };
    }
    let inside = tensor > 1 && sketch.draw.one_in(3);
    let rank = |tensor: u64| if inside { 1 } else { tensor };
    while rank(tensor) * pipeline * expert > hosts {
        (tensor, pipeline, expert) = (tensor.min(expert), expert.min(pipeline), 1);
        if rank(tensor) * pipeline > hosts {
            (tensor, pipeline) = (1, 1);
        }
    }
    let replica = rank(tensor) * pipeline * expert;
    let used = replica * sketch.draw.between(1, (hosts / replica).min(8 / replica).max(1));
    t.put("hosts", texts(&place.hosts[..used as usize]));
    for (key, value) in [("tensor", tensor), ("pipeline", pipeline), ("expert", expert)] {
        if value > 1 {
            t.put(key, int(value));
        }
    }
    if inside {
        t.put("scale_up", "1Tbps");
    }
    t.put("layers", int(pipeline));
    let micro_batches = sketch.draw.between(1, 3);
    t.put("micro_batches", int(micro_batches));
    // A rank sends its activations about eight times in a micro-batch.
    let activations = share.size(sketch, used * micro_batches * 8).max(8);
    t.put("hidden", int(activations.div_ceil(8)));
    t.put("sequence", int(sketch.draw.between(1, 4)));
    sketch.maybe(t, 3, "micro_batch", |s| int(s.draw.between(1, 2)));
    t.put("parameters", int(share.size(sketch, used * 2)));
    if expert > 1 {
        sketch.maybe(t, 2, "expert_parameters", |s| int(share.size(s, used * 4)));
        sketch.maybe(t, 2, "experts_per_token", |s| int(s.draw.between(1, 2)));
    }
    for key in ["element", "gradient"] {
        sketch.maybe(t, 4, key, |s| bytes(s.draw.between(1, 4)));
    }
    t.put("forward", time(sketch.draw.log(1, 20 * place.tick)));
    for key in ["backward", "optimizer"] {
        sketch.maybe(t, 3, key, |s| time(s.draw.log(1, 20 * place.tick)));
    }
    sketch.maybe(t, 3, "steps", |s| int(s.draw.between(1, 2)));
}

fn probe(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let span = sketch.draw.log(20 * place.tick, 200 * place.tick);
    let from = place.hosts.len().min(4);
    t.put("from", texts(&place.hosts[..from]));
    subset(sketch, place, "to", t);
    t.put("period", time((span / (share.flows / from as u64).max(1)).max(1)));
    t.put("stop", time(span));
    sketch.maybe(t, 2, "size", |s| bytes(share.size(s, share.flows)));
}

fn burst(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let flows = sketch.draw.between(1, 4);
    t.put("flows", int(flows));
    subset(sketch, place, "from", t);
    subset(sketch, place, "to", t);
    sketch.maybe(t, 2, "gap", |s| time(s.draw.log(1, 10 * place.tick)));
    size(sketch, share, flows * place.hosts.len() as u64, t);
}

fn around(sketch: &mut Sketch, place: &Place, share: &Share, t: &mut Table) {
    let Some(cycle) = &place.cycle else {
        // The kind is then refused.
        t.put("switches", texts(&place.switches));
        return;
    };
    let n = cycle.len() as u64;
    t.put("switches", texts(cycle));
    // Flows over one link close no cycle.
    let least = if sketch.draw.one_in(4) { 1 } else { 2 };
    t.put("hops", int(sketch.draw.between(least, n - 1)));
    let flows = sketch.draw.between(1, 4);
    t.put("flows", int(flows));
    let bursts = if sketch.draw.one_in(3) { sketch.draw.between(1, 3) } else { 1 };
    if bursts > 1 {
        t.put("bursts", int(bursts));
        t.put("period", time(sketch.draw.log(1, 50 * place.tick)));
    }
    if sketch.draw.one_in(3) {
        let offsets = (0..n).map(|_| time(sketch.draw.log(1, 5 * place.tick))).collect();
        t.put("offsets", Value::Array(offsets));
    }
    // Deadlocks want more than a buffer holds.
    t.put("size", bytes((2 * share.bytes / (flows * n * bursts)).max(1)));
}
