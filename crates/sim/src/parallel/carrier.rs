//! Links to devices that have died in a run over processes.
//!
//! A port sees that the device at its other end is dead as a real port loses its carrier: at once, and without a
//! frame. The coordinator notes the time for all.

use crate::core::Core;
use std::sync::atomic::{AtomicU64, Ordering};
use xoff_kernel::time::Time;
use xoff_net::topology::NodeId;

/// When the links of each device failed because it died. It has no pointer: processes share it.
pub struct Carrier {
    lost: [AtomicU64; Self::DEVICES],
}

impl Default for Carrier {
    fn default() -> Self {
        Self { lost: [const { AtomicU64::new(Time::MAX) }; Self::DEVICES] }
    }
}

impl Carrier {
    /// The most devices of a run.
    pub const DEVICES: usize = 64;

    /// The links of a device fail at `at`.
    pub fn lose(&self, device: NodeId, at: Time) {
        self.lost[device as usize].store(at, Ordering::Release);
    }

    /// When the links of a device failed; [`Time::MAX`] if it lives.
    pub fn lost(&self, device: NodeId) -> Time {
        self.lost[device as usize].load(Ordering::Acquire)
    }

    /// Fails the links of a device to those that have died since it looked last.
    pub(crate) fn look(&self, core: &mut Core) {
        let topology = &core.plan.topology;
        for &port in &topology.nodes[core.part].ports {
            let neighbour = topology.neighbour(port);
            let at = self.lost(neighbour);
            if at < Time::MAX && neighbour as usize != core.part && !core.is_cut(port, Time::MAX) {
                core.cut(port, at);
            }
        }
    }
}
