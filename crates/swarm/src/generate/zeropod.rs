//! `[zeropod]`.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{MICROSECOND, bytes, int, time};

/// The table, and what of the transport has a meaning beside it.
pub fn draw(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    if sketch.draw.one_in(2) {
        t.put("acks", sketch.draw.one_in(2));
        if sketch.draw.one_in(2) {
            t.put("ack_timeout", time(sketch.draw.log(100 * MICROSECOND, 1_000 * MICROSECOND)));
        }
    }
    cells(sketch, &mut t);
    cores(sketch, &mut t);
    demands(sketch, &mut t);
    if sketch.draw.one_in(3) {
        t.put("delay", time(sketch.draw.log(1, 20 * MICROSECOND)));
    }
    if sketch.draw.one_in(4) {
        t.put("in_phase", sketch.draw.one_in(2));
    }
    if sketch.draw.one_in(6) {
        t.put("clock_error", time(sketch.draw.log(1, 100_000)));
    }
    if sketch.draw.one_in(6) {
        t.put("guard", time(sketch.draw.log(1, 100_000)));
    }
    failures(sketch, place, &mut t);
    sketch.add("zeropod", t);
    if sketch.draw.one_in(4) {
        let mut transport = Table::new();
        transport.put("mtu", bytes(sketch.mtu));
        sketch.add("transport", transport);
    }
}

fn cells(sketch: &mut Sketch, t: &mut Table) {
    if sketch.draw.one_in(3) {
        t.put("cells", int(sketch.draw.log(8, 64)));
    }
    if sketch.draw.one_in(4) {
        t.put("payload", bytes(sketch.draw.log(128, 4_096)));
    }
    if sketch.draw.one_in(4) {
        t.put("header", bytes(sketch.draw.between(0, 100)));
    }
    if sketch.draw.one_in(5) {
        t.put("control", bytes(sketch.draw.between(1, 60)));
    }
}

fn cores(sketch: &mut Sketch, t: &mut Table) {
    if sketch.draw.one_in(4) {
        t.put("backpressure", int(sketch.draw.log(1, 500)));
    }
    if sketch.draw.one_in(4) {
        t.put("core_buffer", bytes(sketch.draw.log(1_000, 32_000_000)));
    }
    if sketch.draw.one_in(6) {
        t.put("mice_cores", int(1));
    }
}

/// What is asked for, and what is sent without asking.
fn demands(sketch: &mut Sketch, t: &mut Table) {
    if sketch.draw.one_in(3) {
        t.put("iterations", int(sketch.draw.log(1, 20)));
    }
    if sketch.draw.one_in(4) {
        t.put("requests", int(sketch.draw.log(1, 10)));
    }
    if sketch.draw.one_in(4) {
        t.put("top_k", int(sketch.draw.between(0, 20)));
    }
    if sketch.draw.one_in(4) {
        t.put("order", *sketch.draw.pick(&["smallest", "largest", "random"]));
    }
    if sketch.draw.one_in(3) {
        t.put("optimistic", int(sketch.draw.between(0, 20)));
        t.put("optimistic_rounds", int(sketch.draw.between(1, 4)));
        t.put("collision", *sketch.draw.pick(&["later", "both"]));
    }
    if sketch.draw.one_in(5) {
        let mut at = 0;
        let levels = (0..sketch.draw.between(1, 5)).map(|_| {
            at += sketch.draw.log(1_000, 200_000);
            bytes(at)
        });
        t.put("levels", Value::Array(levels.collect()));
    }
    // Without schedules most flows never complete.
    if sketch.ends && sketch.draw.one_in(10) {
        t.put("scheduled", false);
        t.put("optimistic", int(10));
    } else if sketch.draw.one_in(10) {
        t.put("scheduled", true);
    }
}

fn failures(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    let at = |sketch: &mut Sketch| sketch.draw.log(1, 50 * place.tick);
    if sketch.draw.one_in(6) {
        let mut failure = Table::new();
        failure.put("at", time(at(sketch)));
        failure.put("pod", int(0));
        failure.put("takeover", time(at(sketch)));
        t.put("scheduler_failure", Value::Array(vec![failure.into()]));
    }
    let below: Vec<String> = place.switches.clone();
    if sketch.draw.one_in(6) && !below.is_empty() {
        let mut link = Table::new();
        let from = at(sketch);
        link.put("from", time(from));
        link.put("switch", sketch.draw.pick(&below[..1]).as_str());
        if !sketch.ends || sketch.draw.one_in(2) {
            link.put("until", time(from + at(sketch)));
        }
        t.put("scheduler_link", Value::Array(vec![link.into()]));
    }
    if sketch.draw.one_in(5) {
        t.put("retry", time(sketch.draw.log(10 * MICROSECOND, 1_000 * MICROSECOND)));
    }
}
