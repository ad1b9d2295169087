//! Random choices, and quantities as a scenario writes them.

use toml::Value;
use xoff_kernel::random::Stream;

/// Picoseconds of a second.
pub const SECOND: u64 = 1_000_000_000_000;
/// Picoseconds of a microsecond.
pub const MICROSECOND: u64 = 1_000_000;

/// The random choices of one scenario.
pub struct Draw(Stream);

impl Draw {
    /// The choices of a seed.
    pub fn new(seed: u64) -> Self {
        Self(Stream::new(seed, "swarm", 0))
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    /// A uniform number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// A number from `low`, at least 1, to `high`: every order of magnitude is equally likely.
    pub fn log(&mut self, low: u64, high: u64) -> u64 {
        if low >= high {
            return low;
        }
        let ratio = (high as f64 / low as f64).ln() * self.0.unit();
        ((low as f64 * ratio.exp()) as u64).clamp(low, high)
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.0.below(items.len() as u64) as usize]
    }

    /// `count` different items, or all of them, in random order.
    pub fn some<T: Clone>(&mut self, items: &[T], count: usize) -> Vec<T> {
        let mut rest = items.to_vec();
        for at in 0..count.min(rest.len()) {
            let other = self.between(at as u64, rest.len() as u64 - 1) as usize;
            rest.swap(at, other);
        }
        rest.truncate(count);
        rest
    }

    /// From `least` to `most` different items, at most all of them, in random order.
    pub fn few<T: Clone>(&mut self, items: &[T], least: u64, most: u64) -> Vec<T> {
        let count = self.between(least, most) as usize;
        self.some(items, count)
    }

    /// A number from `low` to `high` with three digits after the point.
    pub fn real(&mut self, low: f64, high: f64) -> Value {
        Value::Float(((low + (high - low) * self.0.unit()) * 1e3).round() / 1e3)
    }
}

/// The largest unit in which `n` is a whole number of at least 1.
fn quantity(n: u64, units: &[(u64, &str)]) -> Value {
    let (unit, name) = units
        .iter()
        .find(|(unit, _)| n >= *unit && n.is_multiple_of(*unit))
        .unwrap_or(&units[units.len() - 1]);
    Value::String(format!("{}{name}", n / unit))
}

pub fn bytes(n: u64) -> Value {
    quantity(n, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")])
}

/// A rate in bits per second.
pub fn rate(n: u64) -> Value {
    quantity(n, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")])
}

/// A time in picoseconds.
pub fn time(n: u64) -> Value {
    quantity(n, &[(SECOND, "s"), (1_000_000_000, "ms"), (MICROSECOND, "us"), (1_000, "ns"), (1, "ps")])
}

pub fn int(n: u64) -> Value {
    Value::Integer(n as i64)
}

pub fn text(s: impl Into<String>) -> Value {
    Value::String(s.into())
}

/// A list of texts.
pub fn texts(items: &[String]) -> Value {
    Value::Array(items.iter().map(text).collect())
}
