//! Pauses of a lane and of a leaf at once, which no plan makes today: all pauses of a link are of one kind.

use super::*;
use crate::packet::{Kind, Packet};
use crate::{core::Core, engine::Engine, parallel::partition::Partition};
use xoff_schemes::flow_control::{Device, device::Queues};

const LINE: &str = include_str!("../../../tests/common/two_kinds.toml");

/// A core, a port on the path of flow 0, a later one, and one off its path.
struct Stage<'p> {
    core: Core<'p>,
    port: u32,
    ahead: u32,
    off: u32,
}

impl<'p> Stage<'p> {
    fn new(plan: &'p Plan, partition: &'p Partition) -> Self {
        let core = Engine::new(plan, partition, 0).core;
        let path = plan.flows[0].path as usize;
        let host = plan.topology.nodes[plan.topology.find("H3").unwrap() as usize].ports[0];
        let off = plan.topology.ports[host as usize].peer;
        Self { core, port: plan.hops[path + 1], ahead: plan.hops[path + 2], off }
    }

    /// At `now` frames are for congestion of `root`.
    fn at(&mut self, now: Time, root: u32) -> &mut Core<'p> {
        self.core.now = now;
        let oracle = self.core.blocking.as_mut().unwrap();
        oracle.effective = [Root { port: root, links: 1, since: 0 }; 8];
        &mut self.core
    }

    /// Isolation queue 1 of the port is stopped, or let go.
    fn leaf(&mut self, now: Time, stops: bool) {
        let (port, ahead) = (self.port, self.ahead);
        match stops {
            true => self.at(now, ahead).pause_queue_for(port, 0, 1, ahead),
            false => self.at(now, ahead).resume_queue(port, 0, Target::Queue(1)),
        }
    }

    /// The lane is paused, for congestion off the path.
    fn lane(&mut self, now: Time, stops: bool) {
        let (port, off) = (self.port, self.off);
        match stops {
            true => self.at(now, off).pause(port, 0),
            false => self.at(now, off).resume(port, 0),
        }
    }

    fn joins(&mut self, now: Time) {
        self.core.now = now;
        let hop = self.core.plan.flows[0].path + 1;
        let id = self.core.packets.insert(Packet::new(Kind::Data, 0, 0, 1_000, 0, hop));
        let leaf = self.core.egress.leaves.numbered(self.port, 0, 1);
        self.core.leaf_append(leaf, id);
    }

    /// Its packet leaves; returns its charge since the last one: own and victim.
    fn leaves(&mut self, now: Time) -> (Time, Time) {
        self.core.now = now;
        let leaf = self.core.egress.leaves.numbered(self.port, 0, 1);
        let id = self.core.leaf_take(leaf);
        self.core.packets.remove(id);
        let flow = &mut self.core.blocking.as_mut().unwrap().flows[0];
        let FlowBlame { own, victim, .. } = std::mem::take(flow);
        (own, victim)
    }
}

#[test]
fn of_two_pauses_at_once_the_one_that_began_first_counts() {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    let plan = xoff_plan::load("line.toml", LINE.as_bytes(), &[], &files).expect("a good scenario").plan;
    let partition = Partition::new(&plan, 1);
    let mut stage = Stage::new(&plan, &partition);
    // The lane first, then the leaf, which stays paused.
    stage.joins(100);
    stage.lane(200, true);
    stage.leaf(300, true);
    stage.lane(500, false);
    stage.leaf(600, false);
    assert_eq!(stage.leaves(700), (100, 300));
    // The leaf first; the lane's pause lies in it.
    stage.joins(1_000);
    stage.leaf(1_100, true);
    stage.lane(1_200, true);
    stage.lane(1_500, false);
    stage.leaf(2_000, false);
    assert_eq!(stage.leaves(2_100), (900, 0));
    // The leaf's pause lies in the lane's.
    stage.joins(3_000);
    stage.lane(3_100, true);
    stage.leaf(3_200, true);
    stage.leaf(3_300, false);
    stage.lane(3_500, false);
    assert_eq!(stage.leaves(3_600), (0, 400));
    // A packet that arrives while both are active is charged from then on.
    stage.lane(4_000, true);
    stage.leaf(4_100, true);
    stage.joins(4_250);
    stage.lane(4_300, false);
    stage.leaf(4_500, false);
    assert_eq!(stage.leaves(4_600), (200, 50));
    // No pause is active: no charge.
    stage.joins(5_000);
    assert_eq!(stage.leaves(5_100), (0, 0));
}
