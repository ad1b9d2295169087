//! Hashes that spread flows over equal-cost paths.

use crate::topology::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::random::mix;

/// How a node chooses among equal-cost next hops.
///
/// All but `mix64` use the fields of a RoCEv2 packet that a switch uses, 12 bytes in network order: source
/// and destination address (10.0.0.0 plus the host's number), source port (49152 to 65535, drawn for each
/// flow) and destination port (4791). These three are linear over the bits: two nodes' values for a flow
/// always differ by the same bits, for all seeds, so tiers of a power-of-two fan-out polarise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HashKind {
    /// The finaliser of SplitMix64 over the flow's 64-bit key and the node's seed. The choices of
    /// different nodes are independent.
    #[default]
    Mix64,
    /// CRC-32 (IEEE 802.3) with the node's seed as initial value, modulo the
    /// number of next hops, as in many switches.
    Crc32,
    /// The exclusive or of the six 16-bit words and of the low 16 bits of the node's seed, modulo
    /// the number of next hops. It is the simplest hash of switches. Flows of one pair of hosts
    /// differ only in the source port.
    Xor,
    /// The Toeplitz hash of receive-side scaling with the key that Microsoft
    /// published, exclusive or the low 32 bits of the node's seed, modulo the
    /// number of next hops.
    Toeplitz,
}

/// A flow as hashes see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    key: u64,
    bytes: [u8; 12],
}

impl Tuple {
    /// The flow from host `src` to host `dst` whose 64-bit key is `key`. The
    /// key's low 14 bits choose the source port.
    pub fn new(src: NodeId, dst: NodeId, key: u64) -> Self {
        // 10.0.0.0/8 has room for 2^24 hosts, and there are at most two million.
        let address = |host: NodeId| (0x0a00_0000 | (host & 0x00ff_ffff)).to_be_bytes();
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&address(src));
        bytes[4..8].copy_from_slice(&address(dst));
        bytes[8..10].copy_from_slice(&(0xc000 | (key as u16 & 0x3fff)).to_be_bytes());
        bytes[10..].copy_from_slice(&ROCE_PORT.to_be_bytes());
        Self { key, bytes }
    }
}

/// UDP destination port of RoCEv2, as IANA has assigned it.
const ROCE_PORT: u16 = 4_791;

impl HashKind {
    /// Which of `count` choices a node with `seed` takes for a flow.
    pub fn choose(self, flow: &Tuple, seed: u64, count: u64) -> u64 {
        assert!(count > 0, "a choice among no next hops");
        match self {
            HashKind::Mix64 => {
                let value = mix(mix(flow.key) ^ seed);
                ((u128::from(value) * u128::from(count)) >> 64) as u64
            }
            HashKind::Crc32 => u64::from(crc32(seed as u32, &flow.bytes)) % count,
            HashKind::Xor => u64::from(xor(&flow.bytes) ^ seed as u16) % count,
            HashKind::Toeplitz => u64::from(toeplitz(&flow.bytes) ^ seed as u32) % count,
        }
    }
}

/// The exclusive or of the 16-bit words of `bytes`, in network order; a single last byte is the high one of
/// its word.
pub fn xor(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
    bytes.chunks(2).fold(0, |sum, pair| sum ^ word(pair))
}

/// The secret key of Microsoft's documentation of receive-side scaling, which
/// most NICs have as their default.
const RSS_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
    0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
    0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// The Toeplitz hash with Microsoft's key: for every bit that is set in `bytes`,
/// the highest first, the 32 bits of the key that begin at the same place.
pub fn toeplitz(bytes: &[u8]) -> u32 {
    assert!(bytes.len() + 4 <= RSS_KEY.len(), "{} bytes are too many for the key", bytes.len());
    let mut hash = 0;
    for (i, &byte) in bytes.iter().enumerate() {
        // The 39 bits of the key that the eight windows of this byte lie in.
        let window = RSS_KEY[i..i + 5].iter().fold(0u64, |sum, &k| sum << 8 | u64::from(k));
        for bit in 0..8 {
            if byte & (0x80 >> bit) != 0 {
                hash ^= (window >> (8 - bit)) as u32;
            }
        }
    }
    hash
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

    /// Address and port as the documentation of receive-side scaling has them.
    fn end(address: [u8; 4], port: u16) -> ([u8; 4], [u8; 2]) {
        (address, port.to_be_bytes())
    }

    #[test]
    fn toeplitz_has_microsofts_published_values() {
        // "Verifying the RSS Hash Calculation": destination, source, hash of only the addresses, hash of
        // addresses and ports.
        for (dst, src, addresses, all) in [
            (end([161, 142, 100, 80], 1766), end([66, 9, 149, 187], 2794), 0x323e_8fc2, 0x51cc_c178),
            (end([65, 69, 140, 83], 4739), end([199, 92, 111, 2], 14230), 0xd718_262a, 0xc626_b0ea),
            (end([12, 22, 207, 184], 38024), end([24, 19, 198, 95], 12898), 0xd2d0_a5de, 0x5c2b_394a),
            (end([209, 142, 163, 6], 2217), end([38, 27, 205, 30], 48228), 0x8298_9176, 0xafc7_327f),
            (end([202, 188, 127, 2], 1303), end([153, 39, 163, 191], 44251), 0x5d18_09c5, 0x10e8_28a2),
        ] {
            let bytes = [&src.0[..], &dst.0, &src.1, &dst.1].concat();
            assert_eq!(toeplitz(&bytes[..8]), addresses);
            assert_eq!(toeplitz(&bytes), all);
        }
    }

    #[test]
    fn xor_folds_words_by_hand() {
        // 0x0a00 ^ 0x0001 ^ 0x0a00 ^ 0x0002 ^ 0xc007 ^ 0x12b7.
        assert_eq!(xor(&Tuple::new(1, 2, 7).bytes), 0x0003 ^ 0xc007 ^ 0x12b7);
        assert_eq!(xor(&[0x12, 0x34, 0x56]), 0x1234 ^ 0x5600);
    }

    #[test]
    fn a_flow_is_addresses_and_ports_in_network_order() {
        let flow = Tuple::new(0x01_0203, 1_999_999, 0xffff_0000_0000_8001);
        assert_eq!(flow.bytes, [10, 1, 2, 3, 10, 0x1e, 0x84, 0x7f, 0xc0, 0x01, 0x12, 0xb7]);
    }

    /// Flows between different hosts, with keys as the plan makes them.
    fn flows(count: u64) -> impl Iterator<Item = Tuple> {
        (0..count).map(|i| {
            let draw = mix(i);
            Tuple::new(draw as u32 % 1_024, (draw >> 32) as u32 % 1_024, mix(draw))
        })
    }

    const ALL: [HashKind; 4] = [HashKind::Mix64, HashKind::Crc32, HashKind::Xor, HashKind::Toeplitz];

    #[test]
    fn choices_are_even_in_chi_square() {
        // 99.9% quantile of chi-square with 6 degrees of freedom: 22.5.
        for hash in ALL {
            let mut counts = [0f64; 7];
            for flow in flows(70_000) {
                counts[hash.choose(&flow, 12345, 7) as usize] += 1.0;
            }
            let chi: f64 = counts.iter().map(|c| (c - 10_000.0) * (c - 10_000.0) / 10_000.0).sum();
            assert!(chi < 22.5, "{hash:?} {counts:?}");
        }
    }

    #[test]
    fn mix64_is_independent_between_nodes_and_the_linear_ones_polarise() {
        let second_choices = |hash: HashKind| {
            // Of the flows that the first node sends to its next hop 0.
            let mut counts = [0; 4];
            for flow in flows(40_000).filter(|flow| hash.choose(flow, 1, 4) == 0) {
                counts[hash.choose(&flow, 2, 4) as usize] += 1;
            }
            counts
        };
        assert!(second_choices(HashKind::Mix64).iter().all(|c| (2_350..2_650).contains(c)));
        for linear in [HashKind::Crc32, HashKind::Xor, HashKind::Toeplitz] {
            assert_eq!(second_choices(linear).iter().filter(|&&c| c > 0).count(), 1, "{linear:?}");
        }
    }
}
