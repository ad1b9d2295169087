//! Links: rates, delays and lengths.

use toml::{Table, Value};

use super::{Put, Sketch};
use crate::draw::{MICROSECOND, rate, time};

/// Rates that networks have, in bits per second.
const USUAL: [u64; 8] = [1, 10, 25, 40, 100, 200, 400, 800];
const GIGA: u64 = 1_000_000_000;

pub fn bits(sketch: &mut Sketch) -> u64 {
    if sketch.extreme && sketch.draw.one_in(2) {
        return sketch.draw.log(1_000, 800 * GIGA);
    }
    *sketch.draw.pick(&USUAL[1..]) * GIGA
}

fn delay(sketch: &mut Sketch) -> u64 {
    if sketch.extreme && sketch.draw.one_in(3) {
        return if sketch.draw.one_in(3) { 0 } else { sketch.draw.log(1, 100_000 * MICROSECOND) };
    }
    if sketch.draw.one_in(8) {
        return sketch.draw.between(0, 3) * 100_000;
    }
    sketch.draw.between(1, 50) * 100_000
}

/// A link of this rate.
pub fn at(sketch: &mut Sketch, bits: u64) -> Table {
    let mut link = Table::new();
    link.put("rate", rate(bits));
    let delay = delay(sketch);
    if sketch.draw.one_in(12) {
        // 5 ns per metre.
        link.put("delay", format!("{}m", delay / 5_000));
    } else {
        link.put("delay", time(delay));
    }
    link
}

/// A link; of the same rate as another one in most networks.
pub fn like(sketch: &mut Sketch, bits: u64) -> Value {
    let rate = if sketch.draw.one_in(3) { self::bits(sketch) } else { bits };
    Value::Table(at(sketch, rate))
}

/// A long link: tens to hundreds of kilometres.
pub fn long(sketch: &mut Sketch) -> Table {
    let mut link = Table::new();
    let bits = bits(sketch);
    link.put("rate", rate(bits));
    let far = if sketch.extreme { 2_000 } else { 200 };
    let km = sketch.draw.log(5, far);
    match sketch.draw.between(0, 2) {
        0 => link.put("delay", time(km * 5 * MICROSECOND)),
        1 => link.put("delay", format!("{km}km")),
        _ => link.put("length", format!("{km}km")),
    }
    link
}
