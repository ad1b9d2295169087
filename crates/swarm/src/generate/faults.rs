//! `[[failure]]`, `[[loss]]` and `[[slow_receiver]]`.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{int, rate, time};

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let pods = place.kind == "zeropod";
    let spared = sketch.arbiter && !sketch.draw.one_in(20);
    let legacy = sketch.table.get("flow_control").is_some_and(|f| f.get("legacy").is_some());
    let spared = spared || legacy && !sketch.draw.one_in(20);
    if sketch.draw.one_in(4) && !spared && !place.links.is_empty() {
        let count = sketch.draw.between(1, 2);
        let tables = (0..count).map(|_| failure(sketch, place)).collect();
        sketch.add_all("failure", tables);
    }
    if sketch.draw.one_in(5) && !spared && !pods && !place.links.is_empty() {
        let count = sketch.draw.between(1, 2);
        let tables = (0..count).map(|_| loss(sketch, place)).collect();
        sketch.add_all("loss", tables);
    }
    if sketch.draw.one_in(if sketch.table.contains_key("loss") { 3 } else { 20 }) && !pods {
        let table = link_layer(sketch);
        sketch.add("link_layer", table);
    }
    if sketch.draw.one_in(5) && !pods {
        let count = sketch.draw.between(1, 2) as usize;
        let tables =
            sketch.draw.some(&place.hosts, count).iter().map(|host| slow(sketch, place, host)).collect();
        sketch.add_all("slow_receiver", tables);
    }
}

/// A link as `A-B`, or as a port.
fn link(sketch: &mut Sketch, place: &Place) -> String {
    match sketch.draw.one_in(4) {
        true => sketch.draw.pick(&place.ports).clone(),
        false => sketch.draw.pick(&place.links).clone(),
    }
}

fn failure(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    if sketch.draw.one_in(4) && !place.switches.is_empty() {
        t.put("switch", sketch.draw.pick(&place.switches).as_str());
    } else {
        t.put("link", link(sketch, place));
    }
    let at = if sketch.draw.one_in(5) { 0 } else { sketch.draw.log(1, 50 * place.tick) };
    t.put("at", time(at));
    if at > 0 && sketch.draw.one_in(4) {
        t.put("drain", time(sketch.draw.between(0, at)));
    }
    // A run without a natural end needs one.
    if !sketch.ends || !sketch.draw.one_in(4) {
        let length = sketch.draw.log(1, 50 * place.tick);
        t.put("until", time(at + length));
        if sketch.draw.one_in(4) {
            t.put("every", time(length + sketch.draw.log(1, 50 * place.tick)));
            t.put("times", int(sketch.draw.between(1, 5)));
        }
    }
    t
}

fn loss(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    let name = sketch.draw.pick(&place.links).clone();
    t.put("link", if sketch.draw.one_in(4) { sketch.draw.pick(&place.ports).clone() } else { name.clone() });
    // Relays of SWING are between the ends of a long link.
    let whole = t["link"].as_str() == Some(&name) && sketch.scheme != "swing";
    if whole && sketch.draw.one_in(3) {
        // Names of nodes have no hyphen, but for the topologies that are drawn here.
        if let Some((a, b)) = name.split_once('-') {
            t.put("from", if sketch.draw.one_in(2) { a } else { b });
        }
    }
    match sketch.draw.between(0, 2) {
        0 => t.put("rate", Value::Float([1e-4, 0.01, 0.1, 0.5][sketch.draw.between(0, 3) as usize])),
        1 => t.put("ber", Value::Float([1e-9, 1e-7, 1e-5][sketch.draw.between(0, 2) as usize])),
        _ => t.put("control_frame", int(sketch.draw.log(1, 20))),
    }
    sketch.maybe(&mut t, 2, "kind", |s| *s.draw.pick(&["loss", "corruption"]));
    let at = if sketch.draw.one_in(3) { sketch.draw.log(1, 50 * place.tick) } else { 0 };
    if at > 0 {
        t.put("at", time(at));
    }
    sketch.maybe(&mut t, 3, "until", |s| time(at + s.draw.log(1, 50 * place.tick)));
    t
}

/// Links that retransmit lost frames. A link that fails is refused beside them.
fn link_layer(sketch: &mut Sketch) -> Table {
    if !sketch.draw.one_in(10) {
        sketch.table.remove("failure");
    }
    let mut t = Table::new();
    t.put("scheme", if sketch.draw.one_in(10) { "none" } else { "llr" });
    sketch.maybe(&mut t, 4, "buffer", |s| crate::draw::bytes(s.draw.log(64, 1 << 20)));
    sketch.maybe(&mut t, 6, "frames", |s| int(s.draw.log(1, 2_000)));
    sketch.maybe(&mut t, 4, "timer", |s| time(s.draw.log(1_000_000, 70_000_000)));
    sketch.maybe(&mut t, 4, "replays", |s| int(s.draw.between(0, 20)));
    sketch.maybe(&mut t, 4, "ack_spacing", |s| crate::draw::bytes(s.draw.log(300, 40_000)));
    sketch.maybe(&mut t, 3, "processing", |s| time(s.draw.log(1_000, 1_000_000)));
    sketch.maybe(&mut t, 4, "recoveries", |s| int(s.draw.between(0, 20)));
    t
}

fn slow(sketch: &mut Sketch, place: &Place, host: &str) -> Table {
    let mut t = Table::new();
    t.put("host", host);
    let stalls = sketch.draw.one_in(2);
    if !stalls || sketch.draw.one_in(3) {
        t.put("rate", rate(sketch.draw.log((place.rates.0 / 20).max(1), place.rates.1)));
    }
    if stalls {
        let from = sketch.draw.log(1, 50 * place.tick);
        t.put("stall_from", time(from));
        t.put("stall_until", time(from + sketch.draw.log(1, 100 * place.tick)));
    }
    t
}
