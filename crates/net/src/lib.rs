//! The simulated network, as data: units, topologies, routing and hashing, flow-size distributions and
//! traffic. It does not depend on protocols or on time.

// Only crates of this workspace use it: names that say enough need no comment.
#![allow(missing_docs)]

pub mod builders;
pub mod error;
pub mod human;
pub mod import;
pub mod routing;
pub mod sizes;
pub mod text;
pub mod topology;
pub mod traffic;
pub mod units;
