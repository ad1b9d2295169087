//! `[transport]`, and the tables of the transports.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{SECOND, bytes, int, text, time};

pub fn choose(sketch: &mut Sketch) {
    let kinds = ["go-back-n", "go-back-n", "irn", "irn", "tcp-newreno", "tcp-dctcp", "ndp", "rud"];
    sketch.transport = *sketch.draw.pick(&kinds);
    if sketch.scheme == "trimming" && !sketch.draw.one_in(40) {
        sketch.transport = *sketch.draw.pick(&["ndp", "rud"]);
    }
    if sketch.scheme == "portfc" && !sketch.draw.one_in(10) {
        sketch.transport = "go-back-n";
    }
    sketch.arbiter =
        sketch.transport == "irn" && matches!(sketch.scheme, "pfc" | "none") && sketch.draw.one_in(3);
}

/// A timeout that is longer than the time of a round trip in a loaded network, or is not.
fn timeout(sketch: &mut Sketch, place: &Place) -> u64 {
    let low = if sketch.draw.one_in(10) { 100 * 1_000_000 } else { 100 * place.tick };
    sketch.draw.log(low, 30 * low).clamp(1_000_000, 100 * SECOND)
}

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    if sketch.transport != "go-back-n" || sketch.draw.one_in(3) {
        t.put("kind", sketch.transport);
    }
    if sketch.mtu != 1_000 || sketch.draw.one_in(3) {
        t.put("mtu", bytes(sketch.mtu));
    }
    sketch.maybe(&mut t, 6, "header", |s| bytes(s.draw.between(1, 200)));
    sketch.maybe(&mut t, 6, "ack", |s| bytes(s.draw.between(1, 200)));
    let each = sketch.transport.starts_with("tcp") || sketch.transport == "ndp";
    if sketch.draw.one_in(4) && (!each || sketch.draw.one_in(20)) {
        let most = if sketch.extreme { 1_000 } else { 8 };
        t.put("ack_every", int(sketch.draw.log(1, most)));
    }
    if sketch.draw.one_in(3) && sketch.scheme != "portfc" {
        // Above, below or equal to the data.
        let data = sketch.priorities[0];
        let above = if data < 7 { sketch.draw.between(data, 7) } else { 7 };
        t.put("ack_priority", int(if sketch.draw.one_in(4) { sketch.draw.between(0, 7) } else { above }));
    }
    if matches!(sketch.transport, "go-back-n" | "rud")
        && (sketch.draw.one_in(3) || place.tick > SECOND / 2_000)
    {
        t.put("rto", time(timeout(sketch, place)));
    }
    // A window below the data of one ACK is refused.
    let owns = sketch.transport == "ndp" && !sketch.draw.one_in(20);
    if !owns && sketch.draw.one_in(4) && (!t.contains_key("ack_every") || sketch.draw.one_in(5)) {
        let mtu = sketch.mtu;
        let window = if sketch.draw.one_in(2) {
            text(format!("{}bdp", sketch.draw.between(1, 4)))
        } else {
            bytes(sketch.draw.log(mtu, 100 * mtu))
        };
        t.put("window", window);
    }
    sketch.maybe(&mut t, 8, "retries", limit);
    if sketch.draw.one_in(if sketch.transport == "rud" { 4 } else { 200 }) {
        let value = limit(sketch);
        t.put("nack_retries", value);
    }
    if sketch.arbiter {
        t.put("arbiter", *sketch.draw.pick(&["none", "srpt", "srpt-strict"]));
        t.remove("window");
    }
    sketch.add("transport", t);
    match sketch.transport {
        "irn" => irn(sketch, place),
        "ndp" => ndp(sketch, place),
        "tcp-newreno" | "tcp-dctcp" => tcp(sketch, place),
        "rud" => rud(sketch),
        _ => {}
    }
}

/// A limit of retries.
fn limit(sketch: &mut Sketch) -> Value {
    if sketch.draw.one_in(3) { text("unlimited") } else { int(sketch.draw.between(0, 20)) }
}

fn rud(sketch: &mut Sketch) {
    let mut t = Table::new();
    let infers = sketch.draw.one_in(2);
    if infers || sketch.draw.one_in(4) {
        t.put("infer_losses", infers);
    }
    sketch.maybe(&mut t, 2, "probes", |s| infers && s.draw.one_in(2));
    sketch.add("rud", t);
}

fn irn(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    let slow = place.tick > SECOND / 50_000;
    if slow || sketch.draw.one_in(2) {
        let low = timeout(sketch, place);
        t.put("rto_low", time(low));
        t.put("rto_high", time(sketch.draw.log(low, 4 * low)));
    }
    sketch.maybe(&mut t, 3, "few", |s| int(s.draw.between(0, 10)));
    sketch.maybe(&mut t, 3, "timer", |s| *s.draw.pick(&["flow", "packet"]));
    if sketch.draw.one_in(if place.long { 2 } else { 10 }) {
        let mut inter = Table::new();
        sketch.maybe(&mut inter, 2, "link_delay", |s| time(s.draw.log(1_000, 100_000_000)));
        if sketch.draw.one_in(2) {
            let low = timeout(sketch, place);
            inter.put("rto_low", time(low));
            inter.put("rto_high", time(3 * low));
        }
        sketch.maybe(&mut inter, 2, "window", |s| {
            if s.draw.one_in(2) { text("2bdp") } else { bytes(s.draw.log(1, 50) * s.mtu) }
        });
        if !inter.is_empty() {
            t.put("inter", inter);
        }
    }
    sketch.add("irn", t);
}

fn ndp(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    if place.tick > SECOND / 50_000 || sketch.draw.one_in(2) {
        t.put("rto", time(timeout(sketch, place)));
    }
    sketch.maybe(&mut t, 2, "initial_window", |s| {
        if s.draw.one_in(2) {
            text(format!("{}bdp", s.draw.between(1, 3)))
        } else {
            bytes(s.draw.log(1, 50) * s.mtu)
        }
    });
    sketch.add("ndp", t);
}

fn tcp(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    let most = sketch.draw.log(200 * place.tick, 5_000 * place.tick).clamp(1_000_000, 60 * SECOND);
    if !sketch.draw.one_in(4) {
        let least = sketch.draw.log((most / 100).max(1_000_000), most);
        t.put("min_rto", time(least));
        t.put("initial_rto", time(sketch.draw.log(least, most)));
        t.put("max_rto", time(most));
    }
    sketch.maybe(&mut t, 3, "initial_window", |s| int(s.draw.log(1, 100)));
    if sketch.transport == "tcp-dctcp" && sketch.draw.one_in(2) {
        t.put("gain", Value::Float([1.0, 0.5, 0.0625, 0.001][sketch.draw.between(0, 3) as usize]));
    }
    let name = sketch.transport;
    sketch.add(name, t);
}
