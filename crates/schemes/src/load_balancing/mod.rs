//! Load balancing over equal paths beyond ECMP: what a switch decides for each
//! packet ([`PacketRule`]), and what a sender decides for its flow ([`ate`], [`plb`]).

pub mod ate;
pub mod drill;
pub mod plb;

/// How a device chooses, for each packet, among equally good egress ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRule {
    /// Each with the same probability, whatever their queues hold: random packet
    /// spraying (Dixit et al., INFOCOM 2013).
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
