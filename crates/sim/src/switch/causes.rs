//! Which ingress ports have packets in which egress queues of their device, if flow controls want to know.

use xoff_plan::plan::Plan;

/// By ingress account: where its row begins, with an entry for each port of its device; and the end of all.
pub fn rows(plan: &Plan) -> (Vec<u32>, usize) {
    let mut all = 0;
    let mut rows = Vec::new();
    for port in &plan.topology.ports {
        for _ in 0..plan.lanes.len() {
            rows.push(all as u32);
            all += plan.topology.nodes[port.node as usize].ports.len();
        }
    }
    (rows, all)
}

/// Packets that wait, by ingress account and egress port.
#[derive(Debug, Default)]
pub struct Causes {
    /// See [`rows`].
    first: Vec<u32>,
    counts: Vec<u32>,
}

impl Causes {
    pub fn new(plan: &Plan) -> Self {
        let (first, all) = rows(plan);
        Self { first, counts: vec![0; all] }
    }

    #[inline(always)]
    pub fn used(&self) -> bool {
        !self.first.is_empty()
    }

    fn at(&self, account: u32, egress: u16) -> usize {
        (self.first[account as usize] + u32::from(egress)) as usize
    }

    /// A packet of `account` waits at its device's port number `egress` now; whether it is the only one.
    pub fn joins(&mut self, account: u32, egress: u16) -> bool {
        let at = self.at(account, egress);
        self.counts[at] += 1;
        self.counts[at] == 1
    }

    pub fn leaves(&mut self, account: u32, egress: u16) {
        let at = self.at(account, egress);
        self.counts[at] -= 1;
    }

    /// Whether any of `account` waits there.
    pub fn any(&self, account: u32, egress: u16) -> bool {
        self.counts[self.at(account, egress)] > 0
    }
}
