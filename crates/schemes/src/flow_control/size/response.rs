//! Response times of switch chips and NICs, from public documents.
//!
//! A response time is the time from the arrival of a pause frame until the port stops. The documents give it as
//! the bits that the port still sends, which depend on the rate.

use std::collections::BTreeSet;
use xoff_kernel::time::SECOND;
use xoff_net::units::{Bandwidth, Span};

/// A chip, or a standard's limit for all chips.
#[derive(Debug, PartialEq, Eq)]
pub struct Asic {
    /// The value of `--asic`.
    pub name: &'static str,
    pub what: &'static str,
    /// Bits per second, and the bits that pass at this rate during the response time: those of [`Asic::own`], or
    /// else of a table that several documents share. The documents name no other rates.
    shared: &'static [(u64, u64)],
    own: &'static [(u64, u64)],
    /// Bits beside these, at every rate.
    added: u64,
    pub source: &'static str,
}

/// The most that IEEE 802.3 allows, in bits.
const IEEE: &[(u64, u64)] = &[
    (G / 10, quanta(1)),
    (G, quanta(2)),
    (10 * G, quanta(67)),
    (25 * G, quanta(80)),
    (40 * G, quanta(118)),
    (50 * G, quanta(147)),
    (100 * G, quanta(394)),
    (200 * G, quanta(453)),
    (400 * G, quanta(905)),
];

/// All chips, in the order of the help.
pub const ASICS: [Asic; 4] = [
    Asic {
        name: "ieee",
        what: "the most that IEEE 802.3 allows, 100 Mbps to 400 Gbps",
        shared: IEEE,
        own: &[],
        added: 0,
        source: "IEEE 802.3, 31B.3.7, as printed in SONiC, dynamically-headroom-calculation.md",
    },
    Asic {
        name: "spectrum",
        what: "NVIDIA Spectrum to Spectrum-6, as SONiC configures it, 100 Mbps to 800 Gbps",
        shared: IEEE,
        own: &[(800 * G, quanta(905))],
        added: MAC_PHY,
        source: "SONiC, buffer_headroom_mellanox.lua (pause quanta) and platform/mellanox/asic_table.j2 (mac_phy_delay)",
    },
    Asic {
        name: "tofino2",
        what: "Intel Tofino 2, as Edgecore's SONiC configures it, 100 Mbps to 400 Gbps",
        shared: IEEE,
        // This file doubles the quanta at 400 Gbps only.
        own: &[(400 * G, 2 * quanta(905))],
        added: MAC_PHY,
        source: "Edgecore SONiC, buffer_headroom_barefoot.lua (pause quanta) and platform/barefoot/asic_table.j2 (mac_phy_delay)",
    },
    Asic {
        name: "i40e",
        what: "Intel 700 series NICs (10GBASE-T), as the Linux driver computes it, 10 Gbps",
        shared: &[],
        // I40E_DV_TC: higher layer delay, and for each of two interfaces MAC, 2 XAUI and 10GBASE-T.
        own: &[(10 * G, 6_144 + 2 * (8_192 + 2 * 2_048 + 25_600))],
        added: 0,
        source: "Linux, drivers/net/ethernet/intel/i40e/i40e_dcb.h, I40E_DV_TC",
    },
];

/// 1 Gbps.
const G: u64 = 1_000_000_000;

/// `mac_phy_delay` of 0.8 KiB: 819.2 B are 6,553.6 bit.
const MAC_PHY: u64 = 6_554;

/// Bits of pause quanta: 512 each.
const fn quanta(count: u64) -> u64 {
    512 * count
}

impl Asic {
    pub fn find(name: &str) -> Option<&'static Self> {
        ASICS.iter().find(|asic| asic.name == name)
    }

    /// The response time at a rate that the document names.
    pub fn response_time(&self, rate: Bandwidth) -> Option<Span> {
        let bits = self.own.iter().chain(self.shared).find(|entry| entry.0 == rate.0)?.1 + self.added;
        let picoseconds = (u128::from(bits) * u128::from(SECOND)).div_ceil(u128::from(rate.0));
        u64::try_from(picoseconds).ok().map(Span)
    }

    /// All rates, in ascending order.
    pub fn rates(&self) -> impl Iterator<Item = Bandwidth> {
        self.own
            .iter()
            .chain(self.shared)
            .map(|entry| Bandwidth(entry.0))
            .collect::<BTreeSet<_>>()
            .into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_times_follow_from_the_bits_of_the_documents() {
        let time = |name, rate: &str| Asic::find(name).unwrap().response_time(rate.parse().unwrap());
        // 905 quanta of 512 bit at 400 Gbps, 394 at 100 Gbps, 67 at 10 Gbps.
        assert_eq!(time("ieee", "400Gbps"), Some(Span(1_158_400)));
        assert_eq!(time("ieee", "100Gbps"), Some(Span(2_017_280)));
        assert_eq!(time("ieee", "10Gbps"), Some(Span(3_430_400)));
        // And 6,554 bit of MAC and PHY.
        assert_eq!(time("spectrum", "400Gbps"), Some(Span(1_158_400 + 16_385)));
        assert_eq!(time("tofino2", "400Gbps"), Some(Span(2 * 1_158_400 + 16_385)));
        assert_eq!(time("i40e", "10Gbps"), Some(Span(8_192_000)));
        assert_eq!((time("ieee", "800Gbps"), time("i40e", "40Gbps")), (None, None));
        assert_eq!(Asic::find("none"), None);
        for asic in &ASICS {
            assert!(asic.rates().all(|rate| asic.response_time(rate).is_some()), "{}", asic.name);
        }
    }
}
