//! The parameters of pods without buffers in a run, resolved.

use super::{Params, Pod, slots::Slots};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;

/// Pods without buffers. Most fields are the keys of the same names ([`super::keys::ZeropodKeys`]), in bytes
/// and picoseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeropodParams {
    pub pod: Pod,
    pub scheduler: Params,
    pub slots: Slots,
    pub header: u32,
    pub control: u32,
    pub delay: Time,
    pub top_k: u16,
    /// Bytes that a flow has sent when it leaves a level, in ascending order; at most 15.
    pub levels: Vec<u64>,
    pub optimistic: u32,
    pub optimistic_rounds: u32,
    pub scheduled: bool,
    pub collision: Collision,
    pub core_buffer: u64,
    pub backpressure: u32,
    /// By pod: when its first epoch begins at its hosts, in picoseconds; below an epoch.
    pub clocks: Vec<Time>,
    /// By host: how far its clock is ahead of its pod's, in picoseconds.
    pub clock_errors: Vec<i64>,
    /// The timeout of the layer that acknowledges, if there is one, in picoseconds.
    pub acks: Option<Time>,
    pub retry: Time,
    /// Schedulers that fail, in the order of time.
    pub scheduler_failures: Vec<SchedulerFailure>,
    /// Links between a scheduler and a switch of its pod that are down: the switch, from when, until when.
    pub scheduler_links: Vec<(NodeId, Time, Time)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerFailure {
    pub pod: u16,
    pub at: Time,
    /// How much later the backup is at work, in picoseconds.
    pub takeover: Time,
}

/// Which cell is lost when two cells without a grant collide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Collision {
    /// The later cell: the port is busy.
    #[default]
    Later,
    /// Both, as in the paper's model.
    Both,
}
