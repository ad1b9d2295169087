//! Hashes that spread flows over equal-cost paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::random::mix;

/// How a node chooses among equal-cost next hops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashKind {
    /// The finaliser of SplitMix64 over the flow's key and the node's seed:
    /// choices of different nodes are independent of each other.
    #[default]
    Mix64,
    /// CRC-32 (IEEE 802.3) with the node's seed as initial value, modulo the
    /// number of next hops, as in many switches. The CRC is linear: two nodes'
    /// values for a flow always differ by the same bits, whatever the seeds, so
    /// that tiers of a power-of-two fan-out polarise.
    Crc32,
}

impl HashKind {
    /// The values of the key `hash`.
    pub const NAMES: [&str; 2] = ["mix64", "crc32"];

    /// Which of `count` choices a node with `seed` takes for the flow `key`.
    ///
    /// # Panics
    /// If there is nothing to choose from.
    pub fn choose(self, key: u64, seed: u64, count: u64) -> u64 {
        assert!(count > 0, "a choice among no next hops");
        match self {
            HashKind::Mix64 => {
                let value = mix(mix(key) ^ seed);
                ((u128::from(value) * u128::from(count)) >> 64) as u64
            }
            HashKind::Crc32 => u64::from(crc32(seed as u32, &key.to_le_bytes())) % count,
        }
    }
}

/// CRC-32 as in IEEE 802.3 (reflected polynomial 0xEDB88320). An `initial` of
/// zero gives the standard checksum; any other value seeds it.
pub fn crc32(initial: u32, bytes: &[u8]) -> u32 {
    let mut crc = !initial;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            let carry = crc & 1;
            crc = (crc >> 1) ^ (0xedb8_8320 * carry);
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crc32_has_the_published_check_value() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        // Seeding with the sum of a prefix continues it.
        assert_eq!(crc32(crc32(0, b"12345"), b"6789"), 0xcbf4_3926);
    }

    #[test]
    fn choices_are_even_in_chi_square() {
        // 99.9% quantile of chi-square with 6 degrees of freedom: 22.5.
        for hash in [HashKind::Mix64, HashKind::Crc32] {
            let mut counts = [0f64; 7];
            for key in 0..70_000 {
                counts[hash.choose(key, 12345, 7) as usize] += 1.0;
            }
            let chi: f64 = counts.iter().map(|c| (c - 10_000.0) * (c - 10_000.0) / 10_000.0).sum();
            assert!(chi < 22.5, "{hash:?} {counts:?}");
        }
    }

    #[test]
    fn mix64_is_independent_between_nodes_and_crc32_polarises() {
        let second_choices = |hash: HashKind| {
            // Of the flows that the first node sends to its next hop 0.
            let mut counts = [0; 4];
            for key in (0..40_000).filter(|&key| hash.choose(key, 1, 4) == 0) {
                counts[hash.choose(key, 2, 4) as usize] += 1;
            }
            counts
        };
        assert!(second_choices(HashKind::Mix64).iter().all(|c| (2_350..2_650).contains(c)));
        assert_eq!(second_choices(HashKind::Crc32).iter().filter(|&&c| c > 0).count(), 1);
    }
}
