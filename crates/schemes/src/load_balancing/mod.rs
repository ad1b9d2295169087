//! Load balancing beyond ECMP: rules by which switches choose a path for each packet, and rules by which senders label
//! their packets. Each rule has a folder or file here, and a line in the registry. [`ate`] is not in the registry: the
//! key `routing.ate` turns it on.

pub mod adaptive;
pub mod ate;
pub mod drill;
pub mod keys;
pub mod plb;
mod registry;
pub mod reps;
pub mod seam;
pub mod spray;
pub mod ugal;
pub mod valiant;

pub use registry::{
    Choosers, Labellers, LoadBalancing, LoadBalancingKeys, PacketRule, Rule, SenderRules, facts,
};
