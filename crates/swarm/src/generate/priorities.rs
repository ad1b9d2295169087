//! `[[priority]]`.

use toml::Table;

use super::{Put, Sketch, weight};
use crate::draw::{Draw, bytes, int};

pub fn draw(sketch: &mut Sketch) {
    if !sketch.draw.one_in(3) {
        return;
    }
    let mut ids = sketch.priorities.clone();
    ids.truncate(4);
    if sketch.draw.one_in(8) {
        // Without effect, unless ACKs use it.
        let other = sketch.draw.between(0, 7);
        if !ids.contains(&other) {
            ids.push(other);
        }
    }
    let tables = ids.into_iter().map(|id| one(sketch, id)).collect();
    sketch.add_all("priority", tables);
}

fn one(sketch: &mut Sketch, id: u64) -> Table {
    let mut t = Table::new();
    t.put("id", int(id));
    let tags = sketch.scheme == "tagger";
    let never = matches!(sketch.scheme, "none" | "trimming");
    let lossy = never || !tags && sketch.draw.one_in(8);
    if never || lossy || sketch.draw.one_in(4) && !tags {
        // A priority without flow control is lossy.
        t.put("lossless", !lossy);
    }
    if lossy {
        limit(&mut sketch.draw, sketch.extreme, &mut t);
    }
    if sketch.scheme != "portfc" {
        sketch.maybe(&mut t, 3, "tier", |s| int(s.draw.between(0, 3)));
        sketch.maybe(&mut t, 2, "weight", |s| weight(&mut s.draw));
    }
    if sketch.draw.one_in(6) {
        let mut ecn = Table::new();
        let low = sketch.draw.log(1, 50 * sketch.mtu);
        ecn.put("k_min", bytes(low));
        ecn.put("k_max", bytes(2 * low));
        ecn.put("p_max", sketch.draw.real(0.0, 1.0));
        sketch.maybe(&mut ecn, 3, "at", |s| *s.draw.pick(&["enqueue", "dequeue"]));
        sketch.maybe(&mut ecn, 3, "per", |_| "100Gbps");
        sketch.maybe(&mut ecn, 3, "of", |s| *s.draw.pick(&["priority", "port"]));
        sketch.maybe(&mut ecn, 3, "last_hop", |s| s.draw.one_in(2));
        sketch.maybe(&mut ecn, 3, "hosts", |s| s.draw.one_in(2));
        t.put("ecn", ecn);
    }
    t
}

/// The limit of a lossy queue.
fn limit(draw: &mut Draw, extreme: bool, t: &mut Table) {
    match draw.between(0, 2) {
        0 => t.put("egress_limit", bytes(draw.log(if extreme { 1 } else { 10_000 }, 10_000_000))),
        1 => t.put("alpha", if extreme { toml::Value::Float(0.000_015_3) } else { draw.real(0.01, 8.0) }),
        _ => {}
    }
}
