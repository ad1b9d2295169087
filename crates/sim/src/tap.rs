//! What crosses tapped ports.
//!
//! A port that is tapped, and the one at the other end of its link, send by the way of those whose
//! wires are not simply links (`Wire::Special`), so that nobody else is asked. What a
//! port will receive is known when its peer begins to send it. The parts of a run keep what they
//! have seen until they stand still; then all that has happened is put in order and handed on.

use crate::outcome::tap::Crossing;
use xoff_net::topology::PortId;
use xoff_plan::plan::Plan;

/// What a part has seen.
#[derive(Default)]
pub(crate) struct Taps {
    /// By port; empty without taps.
    pub tapped: Vec<bool>,
    pub seen: Vec<Crossing>,
}

impl Taps {
    /// Taps on some ports of a plan.
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

    /// Whether what `port` sends is seen, by itself or by `peer`.
    pub fn see(&self, port: u32, peer: u32) -> bool {
        let at = |port: u32| self.tapped.get(port as usize).copied().unwrap_or(false);
        at(port) || at(peer)
    }
}
