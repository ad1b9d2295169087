//! Why pauses are sent: the congested port at the end of their chain, as a device decides.

use super::{NO_ROOT, NO_ROOTS, Root, Roots};
use crate::{core::Core, outcome::Pause, packet::NONE};
use xoff_schemes::flow_control::Effect;

impl Core<'_> {
    /// A leaf has grown, and its scheme is informed; [`NONE`] afterwards.
    pub fn grows(&mut self, leaf: u32) {
        if let Some(oracle) = &mut self.blocking {
            oracle.grown = leaf;
        }
    }

    /// The roots of the pauses that `port` is about to send.
    #[cold]
    pub fn roots(&mut self, port: u32, effect: Effect) -> Roots {
        let mut roots = NO_ROOTS;
        let lane = |core: &Self, priority| core.plan.lanes.iter().position(|l| l.priority == priority);
        match effect {
            Effect::Nothing => {}
            Effect::Lanes(frame) => {
                for (priority, _) in frame.entries().filter(|e| e.1 > 0) {
                    if let Some(lane) = lane(self, priority) {
                        roots[usize::from(priority)] = self.root_of_account(port, lane);
                    }
                }
            }
            // The fullest account of the link.
            Effect::Link { pause: true } => {
                let held = |lane: &usize| self.ingress.accounts[port as usize * self.lanes + lane].held();
                let fullest = (0..self.lanes).rev().max_by_key(held).unwrap_or(0);
                let root = self.root_of_account(port, fullest);
                self.plan.lanes.iter().for_each(|lane| roots[usize::from(lane.priority)] = root);
            }
            Effect::Link { pause: false } => {}
            Effect::Queue { priority, target, pause } => {
                let new = self.root_of_leaf();
                let Some(oracle) = &mut self.blocking else { return roots };
                let key = (port, priority, target);
                // A pause that no leaf has just caused is a repetition.
                roots[usize::from(priority)] = match (pause, new) {
                    (true, NO_ROOT) => oracle.sent.get(&key).copied().unwrap_or(NO_ROOT),
                    (true, root) => {
                        oracle.sent.insert(key, root);
                        root
                    }
                    (false, _) => {
                        oracle.sent.remove(&key);
                        NO_ROOT
                    }
                };
            }
            Effect::Onward { pause, .. } => {
                let Some(queues) = self.plan.flow_control.onward_queues() else { return roots };
                if pause {
                    let lane = usize::from(queues.lane());
                    let priority = usize::from(self.plan.lanes[lane].priority);
                    roots[priority] = self.root_of_set(port, priority);
                }
            }
            Effect::Root { priority, pause: Some(true), .. } => match self.root_of_leaf() {
                NO_ROOT => {}
                root => roots[usize::from(priority)] = Root { since: self.now, ..root },
            },
            Effect::Root { .. } => {}
            // A port that merges passes on a pause that it has just received.
            Effect::Merge { priority, .. } => {
                let priority = usize::from(priority);
                if let Some(oracle) = &self.blocking
                    && oracle.effective[priority] != NO_ROOT
                {
                    let root = oracle.effective[priority];
                    roots[priority] = Root { links: root.links + 1, ..root };
                }
            }
            Effect::Credit { priorities, limited } => {
                for priority in (0..8).filter(|p| priorities >> p & 1 == 1) {
                    let Some(lane) = lane(self, priority) else { continue };
                    if limited.unwrap_or_else(|| self.limits(port, lane)) {
                        roots[usize::from(priority)] = self.root_of_account(port, lane);
                    }
                }
            }
        }
        roots
    }

    /// Whether credit of a lane is less than the link could use: its account is over, or where lanes share credit, some
    /// lane of the port stores packets.
    fn limits(&self, port: u32, lane: usize) -> bool {
        let first = port as usize * self.lanes;
        match self.plan.flow_control.traits().shares_credit {
            false => self.ingress.accounts[first + lane].over,
            true => self.ingress.accounts[first..first + self.lanes].iter().any(|a| a.held() > 0),
        }
    }

    /// Why an account is over; if it is not, and a host passes on another port's pause, that one's root.
    fn root_of_account(&self, port: u32, lane: usize) -> Root {
        let Some(oracle) = &self.blocking else { return NO_ROOT };
        let row = oracle.rows[port as usize * self.lanes + lane] as usize;
        let node = self.egress.ports[port as usize].node;
        let over = self.ingress.accounts[port as usize * self.lanes + lane].over;
        if self.plan.passes_pauses_on(node) && !over {
            let others = self.plan.topology.relay_ports(node).iter().filter(|&&other| other != port);
            let mut pauses = others.filter_map(|&other| self.observed.standing(other, lane as u8));
            let pause = pauses.find(|pause| pause.root.is_some());
            return pause.map_or(NO_ROOT, |pause| Root::behind(Some(pause), NONE));
        }
        let ports = &self.plan.topology.nodes[node as usize].ports;
        // Where lanes share credit, or are over together, packets of another lane may have the room.
        let first = port as usize * self.lanes;
        let together = self.ingress.rooms.get(port as usize).is_some_and(|room| room.over);
        let rows = match together || self.plan.flow_control.traits().shares_credit {
            false => vec![(lane, row)],
            true => {
                let lossless = (0..self.lanes).rev().filter(|&lane| self.plan.lanes[lane].lossless);
                lossless.map(|lane| (lane, oracle.rows[first + lane] as usize)).collect()
            }
        };
        let places = rows.iter().flat_map(|&(lane, row)| (0..ports.len()).rev().map(move |i| (lane, row, i)));
        let held = |&(_, row, i): &(usize, usize, usize)| oracle.bytes[row + i];
        let most = places.max_by_key(held).filter(|place| held(place) > 0);
        let Some((lane, _, i)) = most else { return NO_ROOT };
        let egress = ports[i];
        let onward = self.plan.onward_lane(lane as u8, port, egress);
        let by_lane = self.observed.standing(egress, onward);
        Root::behind(by_lane.or_else(|| self.pause_of_longest(egress, onward)), egress)
    }

    /// The pause of the longest queue of a lane on `port`, where queues are paused one by one.
    fn pause_of_longest(&self, port: u32, lane: u8) -> Option<&Pause> {
        let bytes = |leaf: &u32| self.egress.queues[self.egress.leaves.list(*leaf)].bytes;
        let longest = self.forwarding_leaves(port, lane).rev().max_by_key(bytes)?;
        let group = self.egress.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        // The group's bytes are those of its own list and all leaves.
        let own = self.egress.queues[group].bytes
            - self.forwarding_leaves(port, lane).map(|leaf| bytes(&leaf)).sum::<u64>();
        (bytes(&longest) > own).then_some(())?;
        self.observed.pauses.get(self.egress.leaves.get(longest).standing as usize)
    }

    /// Why the leaf that has just grown is too long.
    fn root_of_leaf(&self) -> Root {
        let Some(oracle) = self.blocking.as_ref().filter(|o| o.grown != NONE) else { return NO_ROOT };
        let leaf = self.egress.leaves.get(oracle.grown);
        let by_lane = || self.observed.standing(leaf.port, self.lane_of(leaf));
        Root::behind(self.observed.pauses.get(leaf.standing as usize).or_else(by_lane), leaf.port)
    }

    /// Why a pause by onward port is sent through `port`: the fullest queue of the set whose leaf has just
    /// grown; or, where a host passes a frame on, the root of that.
    fn root_of_set(&self, port: u32, priority: usize) -> Root {
        let Some(oracle) = &self.blocking else { return NO_ROOT };
        if oracle.grown == NONE {
            return match oracle.effective[priority] {
                NO_ROOT => self.root_of_standing(port),
                root => Root { links: root.links + 1, ..root },
            };
        }
        let Some(queues) = self.plan.flow_control.onward_queues() else { return NO_ROOT };
        let grown = self.egress.leaves.get(oracle.grown);
        let number = self.egress.leaves.number(oracle.grown);
        let set = queues.together(number);
        let bytes = |leaf: &u32| self.egress.queues[self.egress.leaves.list(*leaf)].bytes;
        let leaves = set.rev().map(|queue| self.egress.leaves.numbered(grown.port, queues.lane(), queue));
        let fullest = leaves.max_by_key(bytes).unwrap_or(oracle.grown);
        let standing = self.egress.leaves.get(fullest).standing;
        Root::behind(self.observed.pauses.get(standing as usize), grown.port)
    }

    /// Why such a pause is repeated through `port`: any pause of the host's other ports; a switch knows none.
    fn root_of_standing(&self, port: u32) -> Root {
        let node = self.egress.ports[port as usize].node;
        let others = self.plan.topology.relay_ports(node).iter().filter(|&&p| p != port);
        let pauses = others.flat_map(|&other| {
            let open = self.observed.open.iter().map(|&i| &self.observed.pauses[i as usize]);
            open.filter(move |pause| pause.port == other && pause.root.is_some())
        });
        pauses.min_by_key(|pause| pause.from).map_or(NO_ROOT, |pause| Root::behind(Some(pause), NONE))
    }
}
