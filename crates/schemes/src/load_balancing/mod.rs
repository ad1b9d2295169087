//! Load balancing beyond ECMP: rules by which switches choose a path for each packet, and rules by which senders label
//! their packets. A rule is its folder or file here and a line of the registry. ([`ate`] has a key of its own.)

pub mod adaptive;
pub mod ate;
pub mod drill;
pub mod keys;
pub mod plb;
mod registry;
pub mod seam;
pub mod spray;
pub mod ugal;
pub mod valiant;

pub use registry::{
    Choosers, Labellers, LoadBalancing, LoadBalancingKeys, PacketRule, Rule, SenderRules, facts,
};
