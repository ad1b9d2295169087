//! Which ingress ports have packets in which egress queues of their device, for flow controls
//! that want to know.

use xoff_plan::plan::Plan;

/// Packets that wait, by ingress account and egress port.
#[derive(Debug, Default)]
pub struct Causes {
    /// By account: where its counts begin; one for each port of its device.
    first: Vec<u32>,
    counts: Vec<u32>,
}

impl Causes {
    pub fn new(plan: &Plan) -> Self {
        let mut causes = Self::default();
        let topology = &plan.topology;
        for port in &topology.ports {
            let degree = topology.nodes[port.node as usize].ports.len() as u32;
            for _ in 0..plan.lanes.len() {
                causes.first.push(causes.counts.len() as u32);
                causes.counts.resize(causes.counts.len() + degree as usize, 0);
            }
        }
        causes
    }

    /// Whether anyone wants to know.
    #[inline(always)]
    pub fn used(&self) -> bool {
        !self.first.is_empty()
    }

    fn at(&self, account: u32, egress: u16) -> usize {
        (self.first[account as usize] + u32::from(egress)) as usize
    }

    /// A packet of `account` waits at its device's port number `egress` now; whether it is the
    /// only one.
    pub fn joins(&mut self, account: u32, egress: u16) -> bool {
        let at = self.at(account, egress);
        self.counts[at] += 1;
        self.counts[at] == 1
    }

    /// It waits there no longer.
    pub fn leaves(&mut self, account: u32, egress: u16) {
        let at = self.at(account, egress);
        self.counts[at] -= 1;
    }

    /// Whether any of `account` waits there.
    pub fn any(&self, account: u32, egress: u16) -> bool {
        self.counts[self.at(account, egress)] > 0
    }
}
