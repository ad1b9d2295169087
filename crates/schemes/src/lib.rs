//! Every protocol as a sans-IO state machine. Nothing here knows the simulator:
//! a scheme sees the narrow view of its own device and no more.

pub mod congestion_control;
pub mod flow_control;
pub mod load_balancing;
pub mod scheduling;
pub mod transport;
