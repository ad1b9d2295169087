//! Devices: how packets are stored, queued, chosen and sent. Hosts have the same ports as switches.

pub mod arbiter;
pub mod balancing;
pub mod buffer;
pub mod by_flow;
pub mod causes;
pub mod control_plane;
pub mod evict;
pub mod leaves;
pub mod modes;
pub mod port;
pub mod pull;
pub mod telemetry;
