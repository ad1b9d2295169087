//! `[routing]`.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{int, time};

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let mut t = Table::new();
    sketch.maybe(&mut t, 4, "hash", |s| *s.draw.pick(&["mix64", "crc32", "xor", "toeplitz"]));
    sketch.maybe(&mut t, 5, "seed", |s| int(s.draw.between(0, 1 << 40)));
    sketch.maybe(&mut t, 10, "ttl", |s| int(s.draw.between(64, 255)));
    sketch.maybe(&mut t, 10, "reconvergence", |s| time(s.draw.log(1, 10 * place.tick)));
    if sketch.draw.one_in(4) {
        let kind = match place.kind.as_str() {
            "ndc" => *sketch.draw.pick(&["bcube", "shortest-path"]),
            "torus-2d" => *sketch.draw.pick(&["dimension-order", "shortest-path"]),
            "dragonfly" => *sketch.draw.pick(&["dragonfly", "shortest-path"]),
            "leaf-spine" | "fat-tree" | "dumbbell" | "dci" => {
                *sketch.draw.pick(&["valley-free", "shortest-path"])
            }
            _ => *sketch.draw.pick(&["up-down", "shortest-path"]),
        };
        t.put("kind", kind);
        if kind == "valley-free" && place.kind == "leaf-spine" && sketch.draw.one_in(2) {
            let tiers = [["S0.*"], ["S1.?"]].map(|names| Value::Array(names.map(Value::from).into()));
            t.put("tiers", Value::Array(tiers.into()));
        }
        if kind == "up-down" && !place.switches.is_empty() && sketch.draw.one_in(2) {
            t.put("root", sketch.draw.pick(&place.switches).as_str());
        }
    } else if place.kind == "torus-2d" && sketch.draw.one_in(2) {
        t.put("kind", "dimension-order");
    }
    spread(sketch, &mut t);
    if matches!(place.kind.as_str(), "ring" | "torus-2d" | "dragonfly")
        && matches!(sketch.scheme, "pfc" | "cbfc" | "uec-cbfc" | "watchdog")
        && sketch.draw.one_in(3)
    {
        // Room for them above the priorities of flows.
        sketch.priorities = vec![sketch.draw.between(0, 1)];
        t.put("virtual_channels", int(sketch.draw.between(1, 6)));
    }
    let by_hash = !t.contains_key("load_balancing") || sketch.balancing == "ecmp";
    if by_hash && sketch.draw.one_in(10) && !place.overrides.is_empty() {
        let some = sketch.draw.few(&place.overrides, 1, 3);
        let mut seen = Vec::new();
        let mut out = Vec::new();
        for [at, to, via] in some {
            if !seen.contains(&(at.clone(), to.clone())) {
                let mut entry = Table::new();
                entry.put("at", at.as_str());
                entry.put("to", to.as_str());
                entry.put("via", via);
                out.push(Value::Table(entry));
                seen.push((at, to));
            }
        }
        if sketch.draw.one_in(3) {
            let line =
                |entry: &Value| ["at", "to", "via"].map(|key| entry[key].as_str().unwrap_or("")).join(",");
            let lines: Vec<String> = out.iter().map(line).collect();
            sketch
                .files
                .insert("routes.csv".into(), format!("at,to,via\n{}\n", lines.join("\n")).into_bytes());
            t.put("overrides_file", "routes.csv");
        } else {
            t.put("overrides", Value::Array(out));
        }
    } else if by_hash
        && place.relays
        && place.host_links == 2
        && !matches!(place.kind.as_str(), "custom" | "file")
        && sketch.draw.one_in(3)
        && !sketch.arbiter
        && !matches!(kind_of(&t), Some("up-down" | "valley-free"))
    {
        ate(sketch, place, &mut t);
    }
    sketch.add("routing", t);
}

fn kind_of(t: &Table) -> Option<&str> {
    t.get("kind").and_then(Value::as_str)
}

/// How flows spread over equal paths.
fn spread(sketch: &mut Sketch, t: &mut Table) {
    if matches!(sketch.scheme, "tagger" | "portfc") || !sketch.draw.one_in(3) {
        return;
    }
    let layered = match sketch.table["topology"]["kind"].as_str() {
        Some("dragonfly") => kind_of(t).is_none_or(|kind| kind == "dragonfly"),
        _ => kind_of(t) == Some("dimension-order"),
    };
    let names = ["ecmp", "spray", "drill", "drill", "plb", "adaptive", "reps", "valiant", "ugal", "ugal"];
    let name = *sketch.draw.pick(&names[..if layered { 10 } else { 7 }]);
    let refused = match name {
        "plb" => sketch.arbiter || matches!(sketch.transport, "ndp" | "rud"),
        "reps" => sketch.arbiter || sketch.scheme == "pyrrha" || sketch.transport.starts_with("tcp"),
        _ => sketch.scheme == "loop-breaker" && name != "ecmp",
    };
    if refused || t.get("kind").is_some_and(|k| k.as_str() == Some("bcube")) {
        return;
    }
    sketch.balancing = name;
    t.put("load_balancing", name);
    if name != "ecmp" && sketch.table["topology"]["kind"].as_str() == Some("ndc") {
        t.put("kind", "shortest-path");
    }
    match name {
        "drill" if sketch.draw.one_in(2) => {
            let mut drill = Table::new();
            drill.put("d", int(sketch.draw.between(1, 16)));
            drill.put("m", int(sketch.draw.between(0, 16)));
            t.put("drill", drill);
        }
        "adaptive" if sketch.draw.one_in(2) => {
            let mut adaptive = Table::new();
            let mode = *sketch.draw.pick(&["flowlet", "packet"]);
            adaptive.put("mode", mode);
            if mode == "flowlet" {
                adaptive.put("idle", time(sketch.draw.log(1, 100_000_000)));
                adaptive.put("flows", int(sketch.draw.log(1, 65_536)));
            }
            t.put("adaptive", adaptive);
        }
        "ugal" if sketch.draw.one_in(2) => {
            let mut ugal = Table::new();
            ugal.put("threshold", format!("{}B", sketch.draw.log(1, 1 << 20)));
            t.put("ugal", ugal);
        }
        "plb" if sketch.draw.one_in(2) => {
            let mut plb = Table::new();
            let idle = sketch.draw.between(1, 4);
            plb.put("idle_rounds", int(idle));
            plb.put("forced_rounds", int(idle + sketch.draw.between(0, 10)));
            plb.put("labels", int(sketch.draw.log(2, 256)));
            plb.put("threshold", sketch.draw.real(0.01, 1.0));
            t.put("plb", plb);
        }
        "reps" if sketch.draw.one_in(2) => {
            let mut reps = Table::new();
            reps.put("labels", int(sketch.draw.log(2, 4_096)));
            reps.put("buffer", int(sketch.draw.log(1, 256)));
            reps.put("freezing", time(sketch.draw.log(1, 10_000_000_000)));
            reps.put("explore", int(sketch.draw.between(0, 32)));
            t.put("reps", reps);
        }
        _ => {}
    }
}

fn ate(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    let mut ate = Table::new();
    sketch.maybe(&mut ate, 2, "least", |s| s.draw.real(0.0, 1.0));
    if let Some(Value::Float(least)) = ate.get("least").cloned() {
        sketch.maybe(&mut ate, 2, "first", |s| s.draw.real(least, 1.0));
    }
    sketch.maybe(&mut ate, 2, "p", |s| s.draw.real(0.01, 1.0));
    sketch.maybe(&mut ate, 2, "update", |s| *s.draw.pick(&["both-ways", "to-capacity", "one-sided"]));
    sketch.maybe(&mut ate, 2, "window", |s| time(s.draw.log(place.tick, 100 * place.tick)));
    t.put("ate", ate);
}
