//! What is simulated, as data: units, topologies, routing and hashing, flow-size
//! distributions and traffic. It knows nothing of protocols, and nothing of time
//! passing.

pub mod builders;
pub mod error;
pub mod human;
pub mod routing;
pub mod sizes;
pub mod text;
pub mod topology;
pub mod traffic;
pub mod units;
