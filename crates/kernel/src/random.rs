//! Random streams named by purpose.
//!
//! Each stream is seeded from the run's seed, its name and the element that owns it (a flow generator, a
//! port). So a new consumer shifts no other's numbers: switching the flow control moves no arrival.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A deterministic stream of random numbers.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream called `name` for `element` under the run's `seed`.
    pub fn new(seed: u64, name: &str, element: u64) -> Self {
        // FNV-1a over the name, then two rounds of SplitMix64: enough to separate streams, and defined here
        // so that no library update moves them.
        let mut h = 0xcbf2_9ce4_8422_2325u64;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let a = mix(seed ^ mix(h));
        let b = mix(a ^ mix(element.wrapping_add(1)));
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&a.to_le_bytes());
        bytes[8..].copy_from_slice(&b.to_le_bytes());
        Self(Pcg64Mcg::from_seed(bytes))
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A uniform number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A uniform integer in `[0, bound)`, without bias (Lemire's method). Panics if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no element to draw");
        loop {
            let wide = u128::from(self.bits()) * u128::from(bound);
            let low = wide as u64;
            // A division is slow, and the remainder is below the bound: it is rarely needed.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (wide >> 64) as u64;
            }
        }
    }

    /// An exponential number with the given mean, by the pure-Rust logarithm: no C library decides anything.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }

    /// How many trials of the given probability of success fail before the first that succeeds (a geometric
    /// number), at most `u64::MAX`. The integer part of an exponential number has that distribution exactly.
    pub fn geometric(&mut self, probability: f64) -> u64 {
        (self.exponential(1.0) / -libm::log1p(-probability)) as u64
    }
}

/// The finaliser of SplitMix64: a bijection of 64 bits that spreads every input bit.
pub fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_never_change() {
        let draw = |seed, name, element| Stream::new(seed, name, element).bits();
        assert_eq!(draw(1, "flow sizes", 0), draw(1, "flow sizes", 0));
        assert_ne!(draw(1, "flow sizes", 0), draw(2, "flow sizes", 0));
        assert_ne!(draw(1, "flow sizes", 0), draw(1, "flow arrivals", 0));
        assert_ne!(draw(1, "flow sizes", 0), draw(1, "flow sizes", 1));
    }

    #[test]
    fn the_exponential_has_its_mean_and_variance() {
        let mut s = Stream::new(7, "test", 0);
        let n = 400_000;
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = s.exponential(3.0);
            sum += x;
            squares += x * x;
        }
        let mean = sum / f64::from(n);
        let variance = squares / f64::from(n) - mean * mean;
        assert!((mean - 3.0).abs() < 0.02, "{mean}");
        assert!((variance - 9.0).abs() < 0.25, "{variance}");
    }

    /// P(k) = p (1 - p)^k, for k up to 3 against the expected counts.
    #[test]
    fn the_geometric_has_its_distribution() {
        let mut s = Stream::new(7, "test", 2);
        let (n, p) = (200_000, 0.3);
        let draws: Vec<u64> = (0..n).map(|_| s.geometric(p)).collect();
        let mut expected = p * f64::from(n);
        for k in 0..4 {
            let count = draws.iter().filter(|&&d| d == k).count() as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{k}: {count} for {expected}");
            expected *= 1.0 - p;
        }
        assert_eq!(s.geometric(1.0), 0);
    }

    #[test]
    fn below_is_uniform() {
        let mut s = Stream::new(7, "test", 1);
        let mut counts = [0u32; 6];
        for _ in 0..60_000 {
            counts[s.below(6) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
    }
}
