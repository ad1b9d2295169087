//! Devices: how packets are stored, queued, chosen and sent. Hosts have the same ports as switches.

pub mod arbiter;
pub mod arrive;
pub mod balancing;
pub mod buffer;
pub mod by_flow;
pub mod causes;
pub mod choose;
pub mod control_plane;
pub mod device;
pub mod drops;
pub mod egress;
pub mod evict;
pub mod failures;
pub mod ingress;
pub mod leaves;
pub mod lists;
pub mod loops;
pub mod modes;
pub mod port;
pub mod pull;
pub mod release;
pub mod repairs;
pub mod stamps;
pub mod tapped;
pub mod telemetry;
pub mod transmit;
