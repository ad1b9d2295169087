//! Flow controls, one folder or file each.
//!
//! [`seam`] has the calls between a scheme and its device, [`device`] the device's methods for a scheme,
//! [`frame`] the frames between them, [`keys`] the keys of scenarios, [`fabric`] the resolved fabric, and
//! [`registry`] a line for each scheme.

pub mod bfc;
pub mod bifrost;
pub mod breakers;
pub mod cbfc;
pub mod device;
pub mod dsh;
pub mod fabric;
pub mod frame;
pub mod gfc;
pub mod itsy;
pub mod keys;
mod lasting;
mod loops;
pub mod mac_control;
pub mod none;
#[cfg(test)]
mod notes;
pub mod own;
pub mod pause;
mod pause_time;
pub mod per_flow_queue;
pub mod pfc;
pub mod portfc;
pub mod pyrrha;
pub mod registry;
mod remarks;
pub mod roundabout;
pub mod seam;
pub mod seen;
pub mod size;
pub mod swing;
pub mod tagger;
pub mod trimming;
pub mod uec_cbfc;
pub mod watchdog;

pub use device::Device;
pub use frame::{ControlFrame, Effect};
pub use mac_control::MacControlFrame;
pub use registry::{FlowControl, FlowControlKeys, FlowControlParams};
pub use seam::{
    Crossing, Headroom, LaneRules, LinkFacts, LoopDecision, LoopPacket, Machine, Mode, Numbers, Onward,
    Parameters, PauseScope, PortLevel, Pulled, QueueEntry, Queueing, RETRIES, RelayOrder, Scheme, Seen,
    Traits, Trim,
};
pub use xoff_wire::queue_pause::Target;
