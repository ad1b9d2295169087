//! `[zeropod]`.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{MICROSECOND, bytes, int, time};

/// The table, and the keys of the transport that have a meaning beside it.
pub fn draw(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    if sketch.draw.one_in(2) {
        t.put("acks", sketch.draw.one_in(2));
        sketch.maybe(&mut t, 2, "ack_timeout", |s| time(s.draw.log(100 * MICROSECOND, 1_000 * MICROSECOND)));
    }
    cells(sketch, &mut t);
    cores(sketch, &mut t);
    demands(sketch, &mut t);
    sketch.maybe(&mut t, 3, "delay", |s| time(s.draw.log(1, 20 * MICROSECOND)));
    sketch.maybe(&mut t, 4, "in_phase", |s| s.draw.one_in(2));
    sketch.maybe(&mut t, 6, "clock_error", |s| time(s.draw.log(1, 100_000)));
    sketch.maybe(&mut t, 6, "guard", |s| time(s.draw.log(1, 100_000)));
    failures(sketch, place, &mut t);
    sketch.add("zeropod", t);
    if sketch.draw.one_in(4) {
        let mut transport = Table::new();
        transport.put("mtu", bytes(sketch.mtu));
        sketch.add("transport", transport);
    }
}

fn cells(sketch: &mut Sketch, t: &mut Table) {
    sketch.maybe(t, 3, "cells", |s| int(s.draw.log(8, 64)));
    sketch.maybe(t, 4, "payload", |s| bytes(s.draw.log(128, 4_096)));
    sketch.maybe(t, 4, "header", |s| bytes(s.draw.between(0, 100)));
    sketch.maybe(t, 5, "control", |s| bytes(s.draw.between(1, 60)));
}

fn cores(sketch: &mut Sketch, t: &mut Table) {
    sketch.maybe(t, 4, "backpressure", |s| int(s.draw.log(1, 500)));
    sketch.maybe(t, 4, "core_buffer", |s| bytes(s.draw.log(1_000, 32_000_000)));
    sketch.maybe(t, 6, "mice_cores", |_| int(1));
    sketch.maybe(t, 10, "mice_over", |s| *s.draw.pick(&["any", "exclusive-first", "exclusive-only"]));
}

/// The demands of requests, and the data that is sent without requests.
fn demands(sketch: &mut Sketch, t: &mut Table) {
    sketch.maybe(t, 3, "iterations", |s| int(s.draw.log(1, 20)));
    sketch.maybe(t, 4, "requests", |s| int(s.draw.log(1, 10)));
    sketch.maybe(t, 4, "top_k", |s| int(s.draw.between(0, 20)));
    sketch.maybe(t, 10, "entry", |s| bytes(s.draw.between(1, 4)));
    sketch.maybe(t, 10, "subtract", |s| *s.draw.pick(&["at-once", "with-schd"]));
    sketch.maybe(t, 4, "order", |s| *s.draw.pick(&["smallest", "largest", "random"]));
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
    sketch.maybe(t, 5, "retry", |s| time(s.draw.log(10 * MICROSECOND, 1_000 * MICROSECOND)));
}
