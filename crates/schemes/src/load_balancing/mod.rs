//! Load balancing beyond ECMP: decisions of a switch for each packet ([`PacketRule`]), and of a sender for its
//! flow ([`ate`], [`plb`]).

pub mod adaptive;
pub mod ate;
pub mod drill;
pub mod plb;
pub mod ugal;

use crate::names::names;

names! {
/// How flows spread over paths.
pub enum LoadBalancing {
    /// The hash gives each flow one path.
    #[default]
    Ecmp = "ecmp",
    /// Each device sends each data packet to one of its equal next hops at random.
    Spray = "spray",
    /// Each device sends each data packet to the least loaded of a few equal next hops: DRILL(d, m)
    /// (SIGCOMM 2017).
    Drill = "drill",
    /// Each device sends each data packet, or each burst of a flow, to the least loaded of its equal next hops:
    /// adaptive routing and switching (ARS).
    Adaptive = "adaptive",
    /// The first switch sends each data packet over a random non-minimal path: Valiant's routing, in a dragonfly or
    /// torus.
    Valiant = "valiant",
    /// The first switch sends each data packet over a minimal path or a random non-minimal one, by the lengths of
    /// paths and of its queues: UGAL-L (ISCA 2008), in a dragonfly or torus.
    Ugal = "ugal",
    /// A sender gives its flow another path after marked packets or timeouts: PLB (SIGCOMM 2022).
    Plb = "plb",
}
}

impl LoadBalancing {
    pub fn is_ecmp(&self) -> bool {
        *self == Self::Ecmp
    }

    /// Whether devices choose for each packet.
    pub fn by_packet(self) -> bool {
        match self {
            Self::Spray | Self::Drill | Self::Adaptive | Self::Valiant | Self::Ugal => true,
            Self::Ecmp | Self::Plb => false,
        }
    }

    /// Whether packets may take non-minimal paths.
    pub fn is_non_minimal(self) -> bool {
        matches!(self, Self::Valiant | Self::Ugal)
    }
}

/// How a device chooses among egress ports for each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRule {
    /// Each with the same probability: random packet spraying (Dixit et al., INFOCOM 2013).
    Spray,
    /// The least loaded of a few; see [`drill`].
    Drill(drill::DrillParams),
    /// The least loaded; see [`adaptive`].
    Adaptive(adaptive::AdaptiveParams),
    /// A non-minimal one, where there are some: see [`ugal`].
    Valiant,
    /// A minimal or a non-minimal one: see [`ugal`].
    Ugal(ugal::UgalParams),
}

impl PacketRule {
    /// How many choices a device remembers for each set of ports.
    pub fn memory(&self) -> usize {
        match self {
            PacketRule::Drill(drill) => drill.memory as usize,
            _ => 0,
        }
    }

    /// Whether packets may take non-minimal paths.
    pub fn is_non_minimal(&self) -> bool {
        matches!(self, PacketRule::Valiant | PacketRule::Ugal(_))
    }

    /// How many bursts of flows a device distinguishes for each set of ports.
    pub fn bursts(&self) -> usize {
        match self {
            PacketRule::Adaptive(adaptive) if adaptive.idle > 0 => adaptive.flows as usize,
            _ => 0,
        }
    }
}
