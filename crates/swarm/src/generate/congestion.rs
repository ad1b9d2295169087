//! Congestion controls, and the marking that they need.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{bytes, int, rate, time};

/// The tables; nothing where the transport has a control of its own.
pub fn draw(sketch: &mut Sketch, place: &Place) {
    let controls = ["dcqcn", "timely", "hpcc", "dctcp", "swift", "nscc", "powertcp"];
    let mut control = if sketch.draw.one_in(2) { "none" } else { *sketch.draw.pick(&controls) };
    if sketch.transport == "rud" && sketch.draw.one_in(4) || sketch.draw.one_in(200) {
        control = *sketch.draw.pick(&["rccc", "rccc", "nscc+rccc"]);
    }
    let alone = sketch.transport.starts_with("tcp") || sketch.transport == "ndp" || sketch.arbiter;
    if alone && !sketch.draw.one_in(30) || control == "none" {
        if !alone && sketch.draw.one_in(4) {
            put(sketch, "congestion_control", "none");
        }
    } else {
        put(sketch, "congestion_control", control);
        let t = match control {
            "dcqcn" => dcqcn(sketch, place),
            "timely" => timely(sketch, place),
            "hpcc" => hpcc(sketch, place),
            "swift" => swift(sketch, place),
            "nscc" => nscc(sketch, place),
            "powertcp" => powertcp(sketch, place),
            "rccc" => rccc(sketch),
            // It reads the tables of both.
            "nscc+rccc" => {
                let t = nscc(sketch, place);
                sketch.add("nscc", t);
                rccc(sketch)
            }
            _ => dctcp(sketch, place),
        };
        sketch.add(if control == "nscc+rccc" { "rccc" } else { control }, t);
    }
    if sketch.draw.one_in(8) && !alone {
        let has = sketch.draw.one_in(2);
        put(sketch, "variable_window", has);
    }
    if sketch.draw.one_in(10) && !alone {
        put(sketch, "base_rtt", time((place.tick * 2).max(100_000)));
    }
    if matches!(control, "dcqcn" | "dctcp" | "nscc" | "nscc+rccc") && sketch.draw.one_in(2)
        || sketch.draw.one_in(8)
    {
        let ecn = ecn(sketch, place);
        sketch.add("ecn", ecn);
    }
}

/// Sets a key of `[transport]`.
fn put(sketch: &mut Sketch, key: &str, value: impl Into<Value>) {
    let transport = sketch.table.entry("transport").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(table) = transport {
        table.put(key, value);
    }
}

pub fn ecn(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    let low = sketch.draw.log(1, 100 * sketch.mtu);
    t.put("k_min", bytes(low));
    t.put("k_max", bytes(sketch.draw.log(low, 4 * low)));
    t.put("p_max", sketch.draw.real(0.0, 1.0));
    sketch.maybe(&mut t, 3, "at", |s| *s.draw.pick(&["enqueue", "dequeue"]));
    sketch.maybe(&mut t, 4, "per", |_| rate(place.rates.1));
    sketch.maybe(&mut t, 4, "of", |s| *s.draw.pick(&["priority", "port"]));
    sketch.maybe(&mut t, 4, "last_hop", |s| s.draw.one_in(2));
    sketch.maybe(&mut t, 4, "hosts", |s| s.draw.one_in(2));
    t
}

/// A rate below that of the slowest link.
fn low(sketch: &mut Sketch, place: &Place) -> Value {
    rate(sketch.draw.log((place.rates.0 / 10_000).max(1), (place.rates.0 / 2).max(1)))
}

/// Sets some of the rates; the least one always where the default would be above the links' rate.
fn rates(sketch: &mut Sketch, place: &Place, t: &mut Table, keys: &[&str]) {
    for key in keys {
        sketch.maybe(t, 3, key, |s| low(s, place));
    }
    if place.rates.0 <= 1_000_000_000 || sketch.draw.one_in(3) {
        t.put("minimum_rate", rate((place.rates.0 / sketch.draw.log(2, 1_000)).max(1)));
    }
}

fn dcqcn(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    sketch.maybe(&mut t, 2, "preset", |s| *s.draw.pick(&["field", "paper"]));
    rates(sketch, place, &mut t, &["additive_increase", "hyper_increase"]);
    let timer = |sketch: &mut Sketch| {
        let least = (place.tick / 20).max(if sketch.extreme { 100_000 } else { 1_000_000 });
        time(sketch.draw.log(least, 100 * least))
    };
    for key in ["alpha_timer", "increase_timer"] {
        if sketch.draw.one_in(3) || place.tick > 1_000_000_000 {
            t.put(key, timer(sketch));
        }
    }
    let periodic = sketch.draw.one_in(2);
    if sketch.draw.one_in(2) || place.tick > 1_000_000_000 {
        t.put("reaction", if periodic { "periodic" } else { "immediate" });
        if periodic {
            t.put("decrease_interval", timer(sketch));
        }
    }
    sketch.maybe(&mut t, 4, "byte_counter", |s| bytes(s.draw.between(0, 20) * 10 * (s.mtu + 300)));
    sketch.maybe(&mut t, 4, "clamp_target", |s| s.draw.one_in(2));
    if sketch.draw.one_in(3) {
        t.put("cnp_interval", if sketch.draw.one_in(3) { time(0) } else { timer(sketch) });
        t.put("cnp_size", bytes(sketch.draw.between(1, 200)));
        if sketch.scheme != "portfc" {
            t.put("cnp_priority", int(sketch.draw.between(0, 7)));
        }
    }
    sketch.maybe(&mut t, 4, "fast_recovery", |s| int(s.draw.between(0, 10)));
    sketch.maybe(&mut t, 4, "gain", |s| s.draw.real(0.001, 1.0));
    t
}

fn timely(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    rates(sketch, place, &mut t, &["additive_increase", "hyper_increase"]);
    for key in ["beta", "ewma"] {
        sketch.maybe(&mut t, 4, key, |s| s.draw.real(0.001, 1.0));
    }
    sketch.maybe(&mut t, 4, "hyper_after", |s| int(s.draw.between(0, 10)));
    if sketch.draw.one_in(2) {
        let low = sketch.draw.log(place.tick, 10 * place.tick);
        t.put("min_rtt", time((low / 2).max(100_000)));
        t.put("t_low", time(low));
        t.put("t_high", time(low * sketch.draw.between(1, 10)));
    }
    t
}

fn hpcc(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    rates(sketch, place, &mut t, &["additive_increase"]);
    if !sketch.draw.one_in(10) {
        t.put("hops", int(sketch.draw.between(10, 20)));
    }
    sketch.maybe(&mut t, 3, "preset", |s| *s.draw.pick(&["field", "paper"]));
    sketch.maybe(&mut t, 4, "eta", |s| s.draw.real(0.05, 1.0));
    sketch.maybe(&mut t, 4, "fast_reaction", |s| s.draw.one_in(2));
    sketch.maybe(&mut t, 4, "max_stage", |s| int(s.draw.between(0, 10)));
    sketch.maybe(&mut t, 4, "telemetry", |s| bytes(s.draw.between(0, 200)));
    t
}

fn powertcp(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    rates(sketch, place, &mut t, &[]);
    if !sketch.draw.one_in(10) {
        t.put("hops", int(sketch.draw.between(10, 20)));
    }
    sketch.maybe(&mut t, 4, "gamma", |s| s.draw.real(0.01, 1.0));
    sketch.maybe(&mut t, 4, "flows", |s| int(s.draw.log(1, 1_000_000)));
    sketch.maybe(&mut t, 4, "telemetry", |s| bytes(s.draw.between(0, 200)));
    t
}

fn dctcp(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    rates(sketch, place, &mut t, &["additive_increase"]);
    sketch.maybe(&mut t, 2, "gain", |s| s.draw.real(0.001, 1.0));
    t
}

fn hundredths(n: u64) -> f64 {
    n as f64 / 100.0
}

fn swift(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    // Mostly above the unloaded round trip.
    if sketch.draw.one_in(2) || place.tick > 10_000_000 {
        t.put("base_target", time(sketch.draw.log(place.tick.max(100_000), 40 * place.tick.max(100_000))));
    }
    sketch.maybe(&mut t, 4, "per_hop", |s| time(s.draw.between(0, 2 * place.tick)));
    sketch.maybe(&mut t, 4, "fs_range", |s| time(s.draw.between(0, 40 * place.tick)));
    if sketch.draw.one_in(4) {
        let low = sketch.draw.between(1, 1_000);
        t.put("fs_min_cwnd", hundredths(low));
        t.put("fs_max_cwnd", hundredths(low + sketch.draw.between(1, 20_000)));
    }
    for key in ["beta", "max_mdf", "endpoint_gain"] {
        sketch.maybe(&mut t, 4, key, |s| s.draw.real(0.001, 1.0));
    }
    sketch.maybe(&mut t, 4, "additive_increase", |s| s.draw.real(0.01, 4.0));
    // Smaller windows wait for hundreds of round trips.
    sketch.maybe(&mut t, 3, "min_cwnd", |s| s.draw.real(0.02, 1.0));
    if sketch.draw.one_in(4) {
        let most = sketch.draw.between(100, 30_000);
        t.put("max_cwnd", hundredths(most));
        t.put("initial_cwnd", hundredths(sketch.draw.between(100, most)));
    }
    sketch.maybe(&mut t, 4, "retx_reset_threshold", |s| int(s.draw.between(1, 8)));
    if sketch.draw.one_in(6) {
        t.put("endpoint_target", time(sketch.draw.log(100_000, 100_000_000)));
    }
    t
}

fn nscc(sketch: &mut Sketch, place: &Place) -> Table {
    let mut t = Table::new();
    for key in ["target_qdelay", "qa_threshold"] {
        sketch.maybe(&mut t, 4, key, |s| time(s.draw.log(place.tick, 40 * place.tick)));
    }
    sketch.maybe(&mut t, 4, "max_wnd", |s| s.draw.real(0.2, 4.0));
    for key in ["alpha", "fi", "fi_scale", "eta"] {
        sketch.maybe(&mut t, 4, key, |s| s.draw.real(0.0, 10.0));
    }
    for key in ["gamma", "max_md_jump", "delay_gain"] {
        sketch.maybe(&mut t, 4, key, |s| s.draw.real(0.001, 1.0));
    }
    sketch.maybe(&mut t, 4, "qa_gate", |s| int(s.draw.between(0, 6)));
    sketch.maybe(&mut t, 3, "unmarked_delay", |s| *s.draw.pick(&["measured", "quarter-rtt"]));
    t
}

fn rccc(sketch: &mut Sketch) -> Table {
    let mut t = Table::new();
    sketch.maybe(&mut t, 2, "rate", |s| s.draw.real(0.3, 1.0));
    sketch.maybe(&mut t, 3, "in_acks", |s| s.draw.one_in(2));
    sketch.maybe(&mut t, 2, "grant", |s| bytes(s.draw.log(256, 20 * s.mtu + 300)));
    t
}
