//! `[flow_control]`: every scheme.

use toml::{Table, Value};

use super::place::Place;
use super::{Put, Sketch};
use crate::draw::{MICROSECOND, bytes, int, text, texts, time};

/// Every scheme; PFC comes most often.
const SCHEMES: [&str; 26] = [
    "pfc",
    "pfc",
    "pfc",
    "tagger",
    "bfc",
    "per-flow-queue",
    "portfc",
    "pyrrha",
    "pyrrha",
    "bifrost",
    "bifrostx",
    "cbfc",
    "uec-cbfc",
    "uec-cbfc",
    "gfc",
    "dsh",
    "dsh",
    "swing",
    "pfc-watchdog",
    "roundabout",
    "deadlock-breaker",
    "loop-breaker",
    "itsy",
    "pause",
    "trimming",
    "trimming",
];

/// Chooses the scheme; one that the network cannot have is seldom chosen.
pub fn choose(sketch: &mut Sketch, place: &Place) {
    let brave = sketch.draw.one_in(20);
    let fits = |scheme: &str| match scheme {
        "portfc" => {
            place.relays && place.host_links <= 2 && !matches!(place.kind.as_str(), "custom" | "file")
        }
        "bifrost" | "bifrostx" => place.delay >= 4 * MICROSECOND,
        "swing" => place.long && !place.relays,
        _ => true,
    };
    let scheme = loop {
        let wanted = match place.kind.as_str() {
            "ndc" | "rail-only" | "rail-optimized" if place.host_links <= 2 && sketch.draw.one_in(3) => {
                "portfc"
            }
            "dci" if sketch.draw.one_in(2) => *sketch.draw.pick(&["bifrost", "bifrostx", "swing"]),
            _ if sketch.draw.one_in(12) => "none",
            _ => *sketch.draw.pick(&SCHEMES),
        };
        if brave || fits(wanted) {
            break wanted;
        }
    };
    sketch.scheme = scheme;
    // Trimmed packets have priority 7, or another without data.
    if scheme == "trimming" && !sketch.draw.one_in(20) {
        sketch.priorities.retain(|&p| p < 6);
        if sketch.priorities.is_empty() {
            sketch.priorities.push(3);
        }
    }
    // PortFC's flows wait for each other by lanes that must not overtake its signals.
    if scheme == "portfc" && sketch.priorities.len() > 1 && !sketch.draw.one_in(10) {
        sketch.priorities.truncate(1);
    }
}

pub fn draw(sketch: &mut Sketch, place: &Place) {
    let scheme = sketch.scheme;
    if scheme == "pfc" && sketch.draw.one_in(4) {
        return;
    }
    let mut t = Table::new();
    t.put("scheme", scheme);
    match scheme {
        "none" => {}
        "trimming" => trimming(sketch, &mut t),
        "bfc" => bfc(sketch, place, &mut t),
        "per-flow-queue" => per_flow_queue(sketch, place, &mut t),
        "portfc" => portfc(sketch, place, &mut t),
        "pyrrha" => pyrrha(sketch, place, &mut t),
        "cbfc" => cbfc(sketch, place, &mut t),
        "uec-cbfc" => uec_cbfc(sketch, place, &mut t),
        "gfc" => gfc(sketch, place, &mut t),
        "dsh" => dsh(sketch, place, &mut t),
        _ => {
            pfc(sketch, place, &mut t);
            match scheme {
                "tagger" => tagger(sketch, &mut t),
                "bifrost" | "bifrostx" => bifrost(sketch, place, &mut t),
                "swing" => swing(sketch, &mut t),
                "pfc-watchdog" => watchdog(sketch, place, &mut t),
                "roundabout" => roundabout(sketch, place, &mut t),
                "loop-breaker" | "deadlock-breaker" => breaker(sketch, place, &mut t),
                "itsy" => itsy(sketch, &mut t),
                _ => {}
            }
        }
    }
    sketch.add("flow_control", t);
}

/// A threshold: bytes of a few packets to a few hundred, or a multiple of the BDP.
fn threshold(sketch: &mut Sketch, place: &Place) -> Value {
    if place.least_delay > 0 && sketch.draw.one_in(3) {
        return text(format!("{}bdp", sketch.draw.log(1, if sketch.extreme { 200 } else { 20 })));
    }
    let packet = sketch.mtu + 100;
    let low = if sketch.extreme { 1 } else { packet };
    bytes(sketch.draw.log(low, 50 * packet))
}

/// A key that is seldom written is written once in so many times.
const SELDOM: u64 = 6;

fn response(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    if sketch.draw.one_in(SELDOM) {
        let most = if sketch.extreme { place.tick } else { 3 * MICROSECOND };
        t.put("response_time", time(sketch.draw.log(1, most)));
    }
}

fn thresholds(sketch: &mut Sketch, t: &mut Table) {
    let packet = sketch.mtu + 100;
    let low = if sketch.extreme { 1 } else { packet };
    let xoff = sketch.draw.log(low, 50 * packet);
    t.put("xoff", bytes(xoff));
    if sketch.draw.one_in(3) {
        t.put("xon", bytes(sketch.draw.log(1, xoff)));
    } else {
        t.put("xon_offset", bytes(sketch.draw.log(1, (xoff / 2).max(1))));
    }
}

/// The keys of PFC, which other schemes share.
fn pfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    if sketch.draw.one_in(2) {
        if place.least_delay > 0 && sketch.draw.one_in(4) {
            t.put("xoff", text(format!("{}bdp", sketch.draw.between(1, 8))));
            sketch.maybe(t, 3, "xon_offset", |_| bytes(1));
        } else {
            thresholds(sketch, t);
        }
    } else if sketch.draw.one_in(2) {
        let alpha = if sketch.extreme { [1e-3, 64.0] } else { [0.01, 4.0] };
        t.put("alpha", sketch.draw.real(alpha[0], alpha[1]));
        sketch.maybe(t, 3, "cap", |s| bytes(s.draw.log(s.mtu, 500 * s.mtu)));
        sketch.maybe(t, SELDOM, "xon_offset", |s| bytes(s.draw.log(1, 5_000)));
    }
    sketch.maybe(t, SELDOM, "reserve", |s| bytes(s.draw.log(1, 20_000)));
    if sketch.draw.one_in(SELDOM) {
        let headroom =
            if sketch.draw.one_in(2) { text("auto") } else { bytes(sketch.draw.log(1_000, 1_000_000)) };
        t.put("headroom", headroom);
    }
    if sketch.draw.one_in(SELDOM) {
        let low = if sketch.extreme { 1 } else { 3_000 };
        t.put("quanta", int(sketch.draw.log(low, 65_535)));
    }
    let onward = matches!(
        sketch.scheme,
        "tagger" | "swing" | "roundabout" | "itsy" | "loop-breaker" | "deadlock-breaker"
    );
    if place.relays && sketch.draw.one_in(2) || sketch.draw.one_in(SELDOM) && sketch.draw.one_in(5) {
        let blind = place.relays && (!onward || sketch.draw.one_in(10)) && sketch.draw.one_in(2);
        t.put("relay", if blind { "blind" } else { "accounts" });
    }
    if sketch.draw.one_in(8) {
        let some = sketch.draw.few(&sketch.priorities.clone(), 1, sketch.priorities.len() as u64);
        t.put("priorities", Value::Array(some.into_iter().map(int).collect()));
    }
    response(sketch, place, t);
    let places = if place.long { 2 } else { 60 };
    for key in ["long", "gateway"] {
        if sketch.draw.one_in(places) {
            let mut link = Table::new();
            match sketch.draw.between(0, 2) {
                0 => link.put("xoff", threshold(sketch, place)),
                1 => {
                    let xoff = sketch.draw.log(sketch.mtu, 500 * sketch.mtu);
                    link.put("xoff", bytes(xoff));
                    link.put("xon", bytes(sketch.draw.log(1, xoff)));
                }
                _ => link.put(
                    "headroom",
                    if sketch.draw.one_in(2) {
                        text("auto")
                    } else {
                        bytes(sketch.draw.log(10_000, 100_000_000))
                    },
                ),
            }
            t.put(key, link);
        }
    }
}

fn tagger(sketch: &mut Sketch, t: &mut Table) {
    sketch.maybe(t, 4, "lossless", |s| int(s.draw.between(1, 4)));
    sketch.maybe(t, 4, "lossy", |s| int(s.draw.between(0, 7)));
    sketch.maybe(t, 2, "rule", |s| *s.draw.pick(&["bounce", "hop"]));
    if !sketch.draw.one_in(5) {
        t.remove("priorities");
    }
}

fn bfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    sketch.maybe(t, 3, "acks", |s| *s.draw.pick(&["control", "queues"]));
    sketch.maybe(t, 4, "hop_rtt", |s| time(s.draw.log(1_000, place.tick)));
    sketch.maybe(t, 4, "host_queues", |s| int(s.draw.log(1, if s.extreme { 16_384 } else { 100 })));
    sketch.maybe(t, 4, "keep", |s| int(s.draw.between(0, if s.extreme { 1_000 } else { 5 })));
    sketch.maybe(t, SELDOM, "pause_time", |s| time(s.draw.log(MICROSECOND, 10 * place.tick)));
    sketch.maybe(t, 2, "queues", |s| int(s.draw.log(2, if s.extreme { 1_024 } else { 40 })));
    response(sketch, place, t);
    sketch.maybe(t, SELDOM, "resume_interval", |s| time(s.draw.log(1, place.tick)));
    sketch.maybe(t, 4, "reuse_kept", |s| s.draw.one_in(2));
    sketch.maybe(t, 4, "service", |s| *s.draw.pick(&["lowest-first", "round-robin"]));
    sketch.maybe(t, 4, "virtual_flows", |s| int(s.draw.log(1, 16_777_216)));
}

fn per_flow_queue(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    sketch.maybe(t, SELDOM, "pause_time", |s| time(s.draw.log(MICROSECOND, 10 * place.tick)));
    response(sketch, place, t);
    two(sketch, place, t, "xoff", "xon");
}

/// A threshold and one below it, or neither.
fn two(sketch: &mut Sketch, place: &Place, t: &mut Table, high: &str, low: &str) {
    match sketch.draw.between(0, 3) {
        0 => t.put(high, threshold(sketch, place)),
        1 => {
            let packet = sketch.mtu + 100;
            let xoff = sketch.draw.log(packet, 300 * packet);
            t.put(high, bytes(xoff));
            t.put(low, bytes(sketch.draw.log(1, xoff)));
        }
        _ => {}
    }
}

fn portfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    two(sketch, place, t, "xoff", "xon");
    if sketch.draw.one_in(3) {
        two(sketch, place, t, "ddq_xoff", "ddq_xon");
    }
    sketch.maybe(t, 3, "flags", |s| *s.draw.pick(&["two", "one"]));
    sketch.maybe(t, 3, "relay_queue", |s| *s.draw.pick(&["first", "turns", "last"]));
    sketch.maybe(t, 3, "relay_signals", |s| s.draw.one_in(2));
    sketch.maybe(t, 8, "response_time", |s| time(s.draw.log(1, MICROSECOND)));
    sketch.maybe(t, 4, "qlen", |s| *s.draw.pick(&["sum", "longest"]));
}

fn pyrrha(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    sketch.maybe(t, 3, "acks", |s| *s.draw.pick(&["queues", "control"]));
    sketch.maybe(t, 4, "hosts", |s| *s.draw.pick(&["obey", "ignore"]));
    two(sketch, place, t, "k_pause", "k_resume");
    if sketch.draw.one_in(5) && !place.switches.is_empty() {
        let mut legacy = Table::new();
        legacy.put("switches", texts(&sketch.draw.few(&place.switches, 1, place.switches.len() as u64)));
        sketch.maybe(&mut legacy, 2, "alpha", |s| s.draw.real(0.01, 4.0));
        t.put("legacy", legacy);
    }
    sketch.maybe(t, 3, "merging", |s| *s.draw.pick(&["soft", "hard", "off"]));
    sketch.maybe(t, 3, "organisation", |s| *s.draw.pick(&["hiq", "single-tier"]));
    sketch.maybe(t, 3, "queues", |s| int(s.draw.log(1, if s.extreme { 1_024 } else { 100 })));
    response(sketch, place, t);
    if sketch.draw.one_in(4) {
        let all: Vec<String> = [
            "push",
            "reclaim-at-once",
            "hosts-are-no-leaves",
            "count-by-ingress",
            "count-over-ports",
            "merge-down-only",
            "merge-enters-resumed",
            "merging-never-pauses",
        ]
        .map(String::from)
        .into();
        t.put("variants", texts(&sketch.draw.few(&all, 1, 4)));
    }
}

fn cbfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    let mut keys = vec!["buffer"];
    if place.long {
        keys.extend(["gateway_buffer", "long_buffer"]);
    }
    for key in keys {
        if sketch.draw.one_in(3) {
            let packet = sketch.mtu + 100;
            t.put(
                key,
                if sketch.draw.one_in(3) {
                    text(format!("{}bdp", sketch.draw.between(2, 8)))
                } else {
                    bytes(sketch.draw.log(2 * packet + 64, 200 * packet))
                },
            );
        }
    }
    sketch.maybe(t, 2, "unlimited", |s| !s.draw.one_in(4));
    if sketch.draw.one_in(3) {
        let least = 300_000_000_000_000 / place.rates.0.max(1);
        t.put("update", time(sketch.draw.log(least.max(1), (8 * least).max(place.tick))));
    }
    response(sketch, place, t);
}

fn uec_cbfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    sketch.maybe(t, 2, "credit_size", |s| bytes(32 << s.draw.between(0, 6)));
    sketch.maybe(t, 2, "packet_overhead", |s| Value::Integer(s.draw.between(0, 143) as i64 - 16));
    // Overhead and rounding of the largest credits included.
    let packet = sketch.mtu + 4_500;
    let routing = sketch.table.get("routing");
    let channels = routing.is_some_and(|routing| routing.get("virtual_channels").is_some());
    let total = (!channels || sketch.draw.one_in(20)) && sketch.draw.one_in(2);
    if total {
        t.put("limit", "total");
        sketch
            .maybe(t, 2, "reserve", |s| bytes(if s.draw.one_in(4) { s.draw.log(1, packet) } else { packet }));
    } else {
        sketch.maybe(t, 4, "limit", |_| "per-vc");
    }
    if sketch.draw.one_in(2) {
        let few = if total { 8 } else { 1 };
        let by_bdp = !total && sketch.draw.one_in(3);
        t.put(
            "buffer",
            match by_bdp {
                true => text(format!("{}bdp", sketch.draw.between(2, 8))),
                false => bytes(sketch.draw.log(few * packet, 60 * packet)),
            },
        );
    }
    sketch.maybe(t, 3, "cf_min_spacing", |s| bytes(s.draw.log(768, if s.extreme { 131_072 } else { 8_192 })));
    sketch.maybe(t, 3, "cf_max_spacing", |s| {
        bytes(s.draw.log(if s.extreme { 16_384 } else { 131_072 }, 1_048_576))
    });
    let most = if sketch.extreme { 250_000 * MICROSECOND } else { 1_000 * MICROSECOND };
    sketch.maybe(t, 2, "cc_period", |s| time(s.draw.log(MICROSECOND, most)));
    response(sketch, place, t);
}

fn gfc(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    let by_time = sketch.draw.one_in(3);
    if by_time || sketch.draw.one_in(2) {
        t.put("form", if by_time { "time" } else { "buffer" });
    }
    if by_time {
        sketch.maybe(t, 4, "period", |s| time(s.draw.log(1_000_000, 200_000_000)));
    }
    sketch.maybe(t, 2, if by_time { "b0" } else { "b1" }, |s| threshold(s, place));
    sketch.maybe(t, 3, "service", |s| *s.draw.pick(&["by-ingress", "fifo"]));
    if sketch.draw.one_in(3) {
        // Room for the stages of most links.
        let packet = sketch.mtu + 100;
        t.put("buffer", bytes(sketch.draw.log(100 * packet, 10_000 * packet)));
    }
    response(sketch, place, t);
}

fn dsh(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    let packet = sketch.mtu + 100;
    if sketch.draw.one_in(2) {
        let alpha = if sketch.extreme { [1e-3, 64.0] } else { [0.01, 4.0] };
        t.put("alpha", sketch.draw.real(alpha[0], alpha[1]));
    }
    sketch.maybe(t, 3, "private", |s| bytes(s.draw.log(1, 20 * packet)));
    sketch.maybe(t, 3, "delta_queue", |s| bytes(s.draw.log(1, 50 * packet)));
    sketch.maybe(t, 3, "delta_port", |s| bytes(s.draw.log(1, 50 * packet)));
    sketch.maybe(t, 4, "queues", |s| int(s.draw.between(s.priorities.len() as u64, 8)));
    sketch.maybe(t, 4, "insurance", |s| bytes(s.draw.log(1_000, 1_000_000)));
    sketch.maybe(t, SELDOM, "quanta", |s| int(s.draw.log(300, 65_535)));
    response(sketch, place, t);
}

fn bifrost(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    // Links that are long: those that a slot is far below of.
    let reach = if place.long { place.shortest_long } else { place.delay };
    let all = !place.long || sketch.draw.one_in(10);
    if all || sketch.draw.one_in(4) {
        t.put("links", if all { "all" } else { "long" });
    }
    let slot = sketch.draw.log((reach / 40).max(1_000), (reach / 4).max(1_000));
    if slot < 10 * MICROSECOND || reach < 40 * MICROSECOND || sketch.draw.one_in(2) {
        t.put("slot", time(slot));
        t.put("processing", time(sketch.draw.log(1, (slot / 4).max(1))));
        sketch.maybe(t, 3, "jitter", |s| time(s.draw.log(1, (slot / 4).max(1))));
    }
    if sketch.draw.one_in(3) {
        t.put("buffer", text(format!("{}bdp", sketch.draw.between(1, 12))));
        t.put("undersized", true);
    }
    sketch.maybe(t, 3, "history", |s| *s.draw.pick(&["grants", "recurrence"]));
    sketch.maybe(t, 4, "repair", |s| *s.draw.pick(&["excess", "printed"]));
    if sketch.draw.one_in(if sketch.scheme == "bifrostx" { 2 } else { 15 }) {
        t.put("leftover", *sketch.draw.pick(&["pooled", "reserved"]));
    }
    sketch.maybe(t, 6, "margin", |s| time(s.draw.log(1, slot)));
    sketch.maybe(t, 3, "repair_every", |s| int(s.draw.log(1, if s.extreme { 1_000 } else { 10 })));
    sketch.maybe(t, 6, "spare", |s| bytes(s.draw.log(1, 100_000)));
}

fn swing(sketch: &mut Sketch, t: &mut Table) {
    sketch.maybe(t, 3, "relay_delay", |s| time(s.draw.log(1, 3 * MICROSECOND)));
    sketch.maybe(t, 3, "switch_side", |s| *s.draw.pick(&["relay", "pfc"]));
    match sketch.draw.between(0, 3) {
        0 => {
            let buffer = sketch.draw.log(1_000_000, 100_000_000);
            t.put("relay_buffer", bytes(buffer));
            sketch.maybe(t, 2, "relay_limit", |s| bytes(s.draw.log(100_000, buffer)));
        }
        1 => {
            let xoff = sketch.draw.log(10_000, 400_000);
            t.put("relay_xoff", bytes(xoff));
            sketch.maybe(t, 2, "relay_xon", |s| bytes(s.draw.log(1_000, xoff)));
        }
        _ => {}
    }
}

fn watchdog(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    sketch.maybe(t, 2, "action", |s| *s.draw.pick(&["drop", "forward", "alert"]));
    if !sketch.draw.one_in(4) {
        let least = (place.tick / 4).max(20 * MICROSECOND);
        let [detection, restoration] = [0; 2].map(|_| sketch.draw.log(least, 100 * least));
        t.put("detection_time", time(detection));
        t.put("restoration_time", time(restoration));
        let timers = *sketch.draw.pick(&["polls", "hardware"]);
        t.put("timers", timers);
        if timers == "polls" && sketch.draw.one_in(2) {
            let most = detection.min(restoration);
            t.put("poll", time(sketch.draw.log((most / 10).max(1), most)));
        }
    }
}

fn roundabout(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    if !matches!(sketch.balancing, "ecmp" | "plb" | "reps") && !sketch.draw.one_in(10) {
        // A scheme that dissolves deadlocks needs the paths of packets.
        t.put("dissolve", false);
    }
    for key in ["audit", "dissolve"] {
        if !t.contains_key(key) && sketch.draw.one_in(4) {
            t.put(key, sketch.draw.one_in(2));
        }
    }
    sketch.maybe(t, SELDOM, "patience", |s| time(s.draw.log(10 * place.tick, 1_000 * place.tick)));
    if sketch.draw.one_in(4) {
        let packet = sketch.mtu + 100;
        let spare =
            if sketch.draw.one_in(2) { text("2bdp") } else { bytes(sketch.draw.log(packet, 50 * packet)) };
        t.put("spare", spare);
    }
}

fn breaker(sketch: &mut Sketch, place: &Place, t: &mut Table) {
    if sketch.draw.one_in(2) {
        let least = (place.tick / 4).max(20 * MICROSECOND);
        t.put("period", time(sketch.draw.log(least, 50 * least)));
        t.put("latency", time(sketch.draw.log(1, least)));
    }
    if sketch.scheme == "deadlock-breaker" {
        room(sketch, t);
    }
}

/// More room for the queues of a deadlock.
fn room(sketch: &mut Sketch, t: &mut Table) {
    if sketch.draw.one_in(2) {
        let packet = sketch.mtu + 100;
        t.put(
            "room",
            if sketch.draw.one_in(2) { text("3bdp") } else { bytes(sketch.draw.log(packet, 50 * packet)) },
        );
    }
}

fn itsy(sketch: &mut Sketch, t: &mut Table) {
    let lossless = sketch.draw.one_in(2);
    if lossless || sketch.draw.one_in(2) {
        t.put("resolution", if lossless { "lossless" } else { "lossy" });
    }
    if lossless {
        room(sketch, t);
    }
}

fn trimming(sketch: &mut Sketch, t: &mut Table) {
    let most = if sketch.draw.one_in(20) { 10_000 } else { sketch.mtu.max(64) };
    sketch.maybe(t, 2, "trim_size", |s| bytes(s.draw.between(64, most)));
    sketch.maybe(t, 3, "priority", |s| int(s.draw.between(6, 7)));
    sketch.maybe(t, 2, "trims", |s| if s.draw.one_in(3) { "arriving" } else { "arriving-or-last" });
}
