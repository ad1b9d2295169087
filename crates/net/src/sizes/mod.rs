//! Flow-size distributions: fixed, uniform, and the empirical curves that the field uses.
//!
//! An empirical curve is a list of knots, cumulative shares linear in between. Names matter: three different
//! curves circulate as "Hadoop", so a result always names the curve, and its mean is computed from the knots.

mod cdf;
#[cfg(test)]
mod tests;

use crate::error::LineError;
use xoff_kernel::random::Stream;

#[derive(Clone, Debug, PartialEq)]
pub enum SizeDistribution {
    Fixed(u64),
    /// Every whole number from `min` to `max`, both included.
    Uniform {
        /// Smallest, at least 1.
        min: u64,
        /// Largest, at least `min`.
        max: u64,
    },
    /// `min`, and every further `step` bytes, `count` sizes in all, equally likely.
    Steps {
        /// Smallest, at least 1.
        min: u64,
        /// Distance of neighbouring sizes, at least 1.
        step: u64,
        /// How many sizes there are, at least 1; their largest is below 2^64.
        count: u64,
    },
    Empirical(Curve),
}

/// A cumulative distribution by its knots.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// As results carry it.
    name: String,
    /// The knots: bytes, and the share of flows of at most so many (0 to 1).
    points: Vec<(u64, f64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCurve {
    pub name: &'static str,
    /// Where it was published, and in which form it is used.
    pub source: &'static str,
    text: &'static str,
}

macro_rules! curve {
    ($name:literal, $source:literal) => {
        NamedCurve { name: $name, source: $source, text: include_str!(concat!("../../data/", $name, ".cdf")) }
    };
}

/// The curves that come with the program.
pub const NAMED: [NamedCurve; 7] = [
    curve!("websearch", "Alizadeh et al., DCTCP, SIGCOMM 2010, as the HPCC evaluation uses it"),
    curve!("ali-storage", "Alibaba storage 2019, as the HPCC evaluation uses it"),
    curve!("fb-hadoop-hpcc", "Facebook Hadoop (Roy et al., SIGCOMM 2015), as the HPCC evaluation uses it"),
    curve!(
        "fb-hadoop",
        "Facebook Hadoop (Roy et al., SIGCOMM 2015), all traffic; knots of the published curve"
    ),
    curve!(
        "web-server",
        "Facebook web server, intra-cluster (Roy et al., SIGCOMM 2015); knots of the published curve"
    ),
    curve!(
        "cache-follower",
        "Facebook cache follower, intra-cluster (Roy et al., SIGCOMM 2015); knots of the published curve"
    ),
    curve!(
        "memcached",
        "Facebook key-value (Atikoglu et al., SIGMETRICS 2012), workload W1 of Homa; knots of the published curve"
    ),
];

impl SizeDistribution {
    pub fn named(name: &str) -> Option<Self> {
        let curve = NAMED.iter().find(|curve| curve.name == name)?;
        let parsed = Self::from_cdf_text(name, curve.text);
        Some(parsed.expect("the curves of the program are well-formed"))
    }

    /// Reads a CDF file: lines of `bytes percent` (blanks or a comma between them), the cumulative share in
    /// percent (ending at 100) or as a fraction (ending at 1); `#` begins a comment. The share of the first
    /// knot is that of flows of exactly its size.
    pub fn from_cdf_text(name: &str, text: &str) -> Result<Self, LineError> {
        let points = cdf::parse(text)?;
        Ok(Self::Empirical(Curve { name: name.to_string(), points }))
    }

    /// The mean in bytes; that of an empirical curve is computed from its knots.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => *size as f64,
            Self::Uniform { min, max } => (*min as f64 + *max as f64) / 2.0,
            Self::Steps { min, .. } => (*min as f64 + self.largest() as f64) / 2.0,
            Self::Empirical(curve) => {
                let (first, share) = curve.points[0];
                let segments = curve.points.windows(2);
                segments.fold(first as f64 * share, |sum, pair| {
                    let [(a, p), (b, q)] = [pair[0], pair[1]];
                    sum + (a as f64 + b as f64) / 2.0 * (q - p)
                })
            }
        }
    }

    /// The mean number of packets of a flow whose packets carry up to `mtu` payload bytes; so the mean bytes
    /// on the wire are `mean() + header * mean_packets(mtu)`.
    pub fn mean_packets(&self, mtu: u64) -> f64 {
        assert!(mtu > 0, "a packet carries at least one byte");
        // A flow of `size` bytes has one packet, and one more for every
        // multiple of the MTU, from the first on, that lies below its size.
        match self {
            Self::Fixed(size) => (*size).max(1).div_ceil(mtu) as f64,
            Self::Uniform { min, max } => {
                let (min, max) = ((*min).max(1), (*max).max(1));
                let sum = sum_of_packets(max, mtu) - sum_of_packets(min - 1, mtu);
                sum as f64 / (max - min + 1) as f64
            }
            Self::Steps { min, step, count } => {
                let packets = |i: u64| u128::from((min + i * step).max(1).div_ceil(mtu));
                (0..*count).map(packets).sum::<u128>() as f64 / *count as f64
            }
            Self::Empirical(curve) => 1.0 + curve.multiples_below(mtu as f64),
        }
    }

    /// Draws a size of at least one byte.
    pub fn sample(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Fixed(size) => (*size).max(1),
            Self::Uniform { min, max } => match (max - min).checked_add(1) {
                Some(count) => (min + stream.below(count)).max(1),
                None => stream.bits().max(1),
            },
            Self::Steps { min, step, count } => (min + step * stream.below(*count)).max(1),
            Self::Empirical(curve) => curve.quantile(stream.unit()),
        }
    }

    pub fn largest(&self) -> u64 {
        match self {
            Self::Fixed(size) => (*size).max(1),
            Self::Uniform { max, .. } => (*max).max(1),
            Self::Steps { min, step, count } => (min + step * (count - 1)).max(1),
            Self::Empirical(curve) => curve.points[curve.points.len() - 1].0,
        }
    }
}

/// Packets of one flow of each size from 1 to `most` bytes, together.
fn sum_of_packets(most: u64, mtu: u64) -> u128 {
    let (most, mtu) = (u128::from(most), u128::from(mtu));
    let (full, rest) = (most / mtu, most % mtu);
    mtu * full * (full + 1) / 2 + rest * (full + 1)
}

impl Curve {
    /// The size below which the share `u` of flows lies, `0 <= u < 1`: linear
    /// between knots, rounded to the nearest byte, at least 1.
    pub fn quantile(&self, u: f64) -> u64 {
        // The first knot above `u`; it exists, for the last is at 1.
        let above = self.points.partition_point(|&(_, share)| share <= u);
        if above == 0 {
            return self.points[0].0.max(1);
        }
        let (a, p) = self.points[above - 1];
        let Some(&(b, q)) = self.points.get(above) else {
            return a.max(1);
        };
        let into = (b - a) as f64 * ((u - p) / (q - p));
        (a + (into + 0.5) as u64).max(1)
    }

    /// The expected number of multiples `j * mtu`, `j >= 1`, below a size.
    fn multiples_below(&self, mtu: f64) -> f64 {
        // Sizes are rounded: size > j * mtu if the unrounded one is at least
        // j * mtu + 0.5. Below the first knot that is certain.
        let last_before = |bytes: f64| libm::ceil((bytes - 0.5) / mtu) - 1.0;
        let mut sum = last_before(self.points[0].0 as f64).max(0.0);
        for pair in self.points.windows(2) {
            let (a, p, b, q) = (pair[0].0 as f64, pair[0].1, pair[1].0 as f64, pair[1].1);
            let from = last_before(a).max(0.0) + 1.0;
            let to = last_before(b);
            if to >= from {
                // The chance falls linearly within the segment.
                let chance = |j: f64| 1.0 - p - (q - p) * ((j * mtu + 0.5 - a) / (b - a));
                sum += (to - from + 1.0) * (chance(from) + chance(to)) / 2.0;
            }
        }
        sum
    }
}
