//! What is simulated, as data: units, topologies, routing and hashing, flow-size
//! distributions. It knows nothing of protocols.

pub mod topology;
pub mod units;
