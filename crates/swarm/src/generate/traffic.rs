//! `[[traffic]]`: the tables, and their common keys.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch, patterns, weight};
use crate::draw::{bytes, int, time};

/// Data packets that a scenario sends, at most about.
const MOST_PACKETS: u64 = 3_000;

/// The share of a table in the offered traffic.
pub struct Share {
    /// Payload bytes in all.
    pub bytes: u64,
    pub flows: u64,
}

impl Share {
    /// A size for each of `flows` flows, at least 1 B.
    pub fn size(&self, sketch: &mut Sketch, flows: u64) -> u64 {
        let most = (self.bytes / flows.max(1)).max(1);
        if sketch.draw.one_in(8) {
            return sketch.draw.between(1, 3).min(most);
        }
        sketch.draw.log((most / 30).max(1), most)
    }
}

/// A flow without keys that could be refused.
pub fn simplest() -> Table {
    one_flow(&"H0".into(), &"H1".into())
}

/// A flow of 1 kB from one host to another.
pub fn one_flow(src: &Value, dst: &Value) -> Table {
    let mut t = Table::new();
    t.put("kind", "flow");
    t.put("src", src.clone());
    t.put("dst", dst.clone());
    t.put("size", bytes(1_000));
    t
}

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let count = *sketch.draw.pick(&[1, 1, 1, 2, 2, 3]);
    // A slow link carries as many packets as a fast one.
    let packets = sketch.draw.log(20, MOST_PACKETS);
    let tables = (0..count)
        .map(|_| {
            let share = Share { bytes: packets * sketch.mtu / count, flows: (packets / count).clamp(2, 300) };
            one(sketch, place, &share)
        })
        .collect();
    sketch.add_all("traffic", tables);
}

fn one(sketch: &mut Sketch, place: &Place, share: &Share) -> Table {
    let kind = kind(sketch, place);
    let mut t = Table::new();
    t.put("kind", kind);
    if sketch.draw.one_in(8) {
        // Names of tables are unique, where there is one.
        t.put("name", format!("{} {kind}", sketch.draw.pick(&["mice", "elephants", "λ"])));
    }
    patterns::draw(sketch, place, share, kind, &mut t);
    // One that stops so soon begins at once.
    let stops = kind == "incast" && t.contains_key("load");
    if sketch.draw.one_in(2) && kind != "flows" && !stops {
        t.put("start", time(sketch.draw.log(1, 20 * place.tick)));
    }
    priority(sketch, kind, &mut t);
    t
}

/// A kind that the network can have, as a rule.
fn kind(sketch: &mut Sketch, place: &Place) -> &'static str {
    const KINDS: [&str; 16] = [
        "poisson",
        "poisson",
        "incast",
        "incast",
        "permutation",
        "flow",
        "flow",
        "flows",
        "all-to-all",
        "ring-all-reduce",
        "parameter-server",
        "moe",
        "training-step",
        "trace",
        "probe",
        "burst",
    ];
    if place.cycle.is_some() && place.kind != "zeropod" && sketch.draw.one_in(2) {
        return "loop";
    }
    sketch.draw.pick::<&str>(&KINDS)
}

fn priority(sketch: &mut Sketch, kind: &str, t: &mut Table) {
    let dealt =
        matches!(kind, "poisson" | "incast" | "permutation" | "flows" | "all-to-all" | "burst" | "loop");
    if dealt && sketch.priorities.len() > 1 && sketch.draw.one_in(3) && !t.contains_key("format") {
        let mut weights = Table::new();
        for p in sketch.priorities.clone() {
            weights.put(&p.to_string(), weight(&mut sketch.draw));
        }
        t.put("priorities", weights);
    } else if (sketch.priorities != [3] || sketch.draw.one_in(4)) && !t.contains_key("format") {
        t.put("priority", int(*sketch.draw.pick(&sketch.priorities.clone())));
    }
}
