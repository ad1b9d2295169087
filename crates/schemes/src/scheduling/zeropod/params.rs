//! The parameters of pods without buffers in a run, resolved.

use super::slots::Slots;
use super::{Params, Pod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;

/// Pods without buffers, under schedulers (Zeropod).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZeropodParams {
    /// Each of the pods.
    pub pod: Pod,
    /// Parameters of Algorithm 1.
    pub scheduler: Params,
    /// Sizes of cells in time, with which everything else follows.
    pub slots: Slots,
    /// Header of a data cell in bytes, beside its payload.
    pub header: u32,
    /// RTS or SCHD in bytes.
    pub control: u32,
    /// The time of scheduling, in picoseconds.
    pub delay: Time,
    /// k: the number of targets for which an RTS reports waiting mice.
    pub top_k: u16,
    /// Bytes that a flow has sent when it leaves a level, in ascending order; at most 15.
    pub levels: Vec<u64>,
    /// Flows of fewer cells are sent optimistically; 0 or 1: none is.
    pub optimistic: u32,
    /// How often each of their cells is sent so, at least 1.
    pub optimistic_rounds: u32,
    /// Whether there are schedules. If not, flows are sent unscheduled, once, and that is all.
    pub scheduled: bool,
    /// Which of two unscheduled cells that meet is lost.
    pub collision: Collision,
    /// Memory of a core in bytes.
    pub core_buffer: u64,
    /// Cells for one pod above which a core requests no more cells for that pod.
    pub backpressure: u32,
    /// By pod: when its first epoch begins at its hosts, in picoseconds; below an epoch.
    pub clocks: Vec<Time>,
    /// By host: how far its clock is ahead of its pod's, in picoseconds.
    pub clock_errors: Vec<i64>,
    /// The timeout of the layer that acknowledges, if there is one, in picoseconds.
    pub acks: Option<Time>,
    /// How long a link that was found to be down is not used, in picoseconds.
    pub retry: Time,
    /// Schedulers that fail, in the order of time.
    pub scheduler_failures: Vec<SchedulerFailure>,
    /// Links between a scheduler and a switch of its pod that are down: the switch, from when, until when.
    pub scheduler_links: Vec<(NodeId, Time, Time)>,
}

/// A scheduler that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedulerFailure {
    /// The pod.
    pub pod: u16,
    /// Time of the failure.
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
