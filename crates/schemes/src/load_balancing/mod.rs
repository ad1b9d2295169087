//! Load balancing over equal paths beyond ECMP: decisions of a switch for each packet ([`PacketRule`]), and
//! of a sender for its flow ([`ate`], [`plb`]).

pub mod ate;
pub mod drill;
pub mod plb;

use crate::names::names;

names! {
/// How flows spread over equal paths.
pub enum LoadBalancing {
    /// The hash gives each flow one path.
    #[default]
    Ecmp = "ecmp",
    /// Each device sends each data packet to one of its equal next hops at random.
    Spray = "spray",
    /// Each device sends each data packet to the least loaded of a few equal next hops: DRILL(d, m)
    /// (SIGCOMM 2017).
    Drill = "drill",
    /// A sender gives its flow another path after marked packets or timeouts: PLB (SIGCOMM 2022).
    Plb = "plb",
}
}

impl LoadBalancing {
    pub fn is_ecmp(&self) -> bool {
        *self == Self::Ecmp
    }
}

/// How a device chooses, for each packet, among equally good egress ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRule {
    /// Each with the same probability: random packet spraying (Dixit et al., INFOCOM 2013).
    Spray,
    /// The least loaded of a few; see [`drill`].
    Drill(drill::DrillParams),
}

impl PacketRule {
    /// How many choices a device remembers for each set of ports.
    pub fn memory(&self) -> usize {
        match self {
            PacketRule::Spray => 0,
            PacketRule::Drill(drill) => drill.memory as usize,
        }
    }
}
