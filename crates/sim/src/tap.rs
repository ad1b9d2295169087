//! The packets and frames that cross tapped ports.
//!
//! A port that is tapped, and the one at the other end of its link, use the code of special wires
//! (`Wire::Special`), so other ports have no extra check. The packets that a port will receive are known when
//! its peer begins to send them. The parts keep their records until a window ends, when all are handed on.

use crate::outcome::tap::Crossing;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;

/// The records of a part.
#[derive(Default)]
pub(crate) struct Taps {
    /// By port; empty without taps.
    pub tapped: Vec<bool>,
    pub seen: Vec<Crossing>,
}

impl Taps {
    pub fn new(plan: &Plan, ports: &[PortId]) -> Self {
        if ports.is_empty() {
            return Self::default();
        }
        let mut tapped = vec![false; plan.topology.ports.len()];
        for &port in ports {
            let peer = plan.topology.ports[port as usize].peer;
            let inner = plan.topology.ports[peer as usize].node == plan.topology.ports[port as usize].node;
            assert!(!inner, "nothing crosses a link inside a slow receiver");
            tapped[port as usize] = true;
        }
        Self { tapped, seen: Vec::new() }
    }

    /// Whether the sending of `port` is recorded, for itself or for `peer`.
    pub fn see(&self, port: u32, peer: u32) -> bool {
        let at = |port: u32| self.tapped.get(port as usize).copied().unwrap_or(false);
        at(port) || at(peer)
    }
}
