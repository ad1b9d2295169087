//! `[run]` and `[measure]`.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{int, text, texts, time};

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let mut run = Table::new();
    run.put("seed", int(sketch.draw.between(0, 1 << 62)));
    if sketch.ends {
        let duration = sketch.draw.log(20 * place.tick, 500 * place.tick);
        run.put("duration", time(duration));
        sketch.maybe(&mut run, 2, "drain", |s| time(s.draw.log(place.tick, 2 * duration)));
    }
    sketch.add("run", run);
    if place.kind != "zeropod" {
        measure(sketch, place);
    } else if sketch.draw.one_in(3) {
        let mut t = Table::new();
        t.put("interval", time(sketch.draw.log(10 * place.tick, 100 * place.tick)));
        sketch.add("measure", t);
    }
}

fn measure(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    let sampled = sketch.draw.one_in(2);
    if sampled {
        if !sketch.ends || sketch.draw.one_in(2) {
            let least = if sketch.extreme && sketch.ends { place.tick / 10 } else { place.tick };
            t.put("interval", time(sketch.draw.log(least.max(1), 50 * place.tick)));
        }
        let ports = match sketch.draw.between(0, 4) {
            0 => text("all"),
            1 => text("switches"),
            2 => text("none"),
            _ => texts(&sketch.draw.some(&place.ports, 3)),
        };
        t.put("ports", ports);
        sketch.maybe(&mut t, 3, "flows", |_| Value::Array(vec![int(0)]));
    }
    let watches = !matches!(sketch.scheme, "loop-breaker" | "deadlock-breaker" | "itsy" | "roundabout")
        && !sketch.arbiter
        || sketch.draw.one_in(20);
    if watches && sketch.draw.one_in(3) {
        t.put("blocking", !sketch.draw.one_in(5));
    }
    if watches
        && (!matches!(sketch.transport, "ndp" | "rud") || sketch.draw.one_in(20))
        && sketch.draw.one_in(2)
    {
        t.put("explain", !sketch.draw.one_in(5));
    }
    sketch.add("measure", t);
}
