//! The small checker's version of pauses by onward port. It shares nothing with [`crate::onward`]. It numbers
//! queues as section III-B of *Revisiting Flow Control in Node-Centric Datacenter Networks* (2026) says, and
//! follows routes itself. Then it lets every port of a switch send the frames of Algorithms 1, 3 and 4, to
//! see which queues they pause. A paused queue must be listed before the queue that pauses it.

use crate::verify::{Places, in_order, moves, routes};
use crate::verify_all::{After, reached};
use std::collections::{BTreeMap, BTreeSet};
use xoff_net::routing::Router;
use xoff_net::topology::{NodeKind, PortId};
use xoff_plan::plan::{ENDS, Plan};
use xoff_schemes::flow_control::seen::OnwardQueues;

/// Queues that packets of data may fill, by port and number; RQ is left out.
pub type Filled = BTreeSet<(PortId, u16)>;

/// A network, read as an NDC(n, 1); over its switches there may be others.
pub struct Ndc<'p> {
    plan: &'p Plan,
    n: u16,
}

impl<'p> Ndc<'p> {
    /// n is the number of ports of the largest switch.
    pub fn new(plan: &'p Plan) -> Self {
        let switches = plan.topology.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
        Self { plan, n: switches.map(|node| node.ports.len()).max().unwrap_or(0) as u16 }
    }

    fn node(&self, port: PortId) -> bool {
        let topology = &self.plan.topology;
        topology.nodes[topology.ports[port as usize].node as usize].kind == NodeKind::Host
    }

    /// Both ends are at one device: inside of a slow receiver.
    fn inside(&self, port: PortId) -> bool {
        self.plan.topology.neighbour(port) == self.plan.topology.ports[port as usize].node
    }

    /// Both ends are at switches.
    fn between(&self, port: PortId) -> bool {
        !self.node(port) && !self.node(self.peer(port))
    }

    fn peer(&self, port: PortId) -> PortId {
        self.plan.topology.ports[port as usize].peer
    }

    /// The other ports of its device.
    fn others(&self, port: PortId) -> impl Iterator<Item = PortId> + '_ {
        let device = self.plan.topology.ports[port as usize].node;
        let ports = &self.plan.topology.nodes[device as usize].ports;
        ports.iter().copied().filter(move |&other| other != port && !self.inside(other))
    }

    /// Which of the n − 1 other ports of a switch `port` is, seen from `from`.
    fn slot(&self, port: PortId, from: PortId) -> Option<u16> {
        let [port, from] = [port, from].map(|p| self.plan.topology.ports[p as usize].index);
        match port {
            _ if port == from => None,
            _ if port > from => Some(port - 1),
            _ => Some(port),
        }
    }

    /// The queue in which a packet waits for `port`, by the ports after it (two are enough) and whether a node
    /// relays it later.
    fn queue(&self, port: PortId, next: &[PortId], relay: bool) -> u16 {
        match (self.node(port) || self.between(port), next) {
            (true, [next, ..]) => {
                let leaves = self.slot(*next, self.peer(port)).unwrap_or(0);
                if relay { leaves } else { self.n - 1 + leaves }
            }
            // It leaves the switch after that node.
            (false, [relay, next, ..]) => self.slot(*next, self.peer(*relay)).unwrap_or(0),
            // It is delivered at the next node.
            _ => self.n - 1,
        }
    }

    /// The number of a port's queue by its name; `None` if it has none of this name.
    pub fn number(&self, port: PortId, name: &str) -> Option<u16> {
        let n = self.n;
        let (kind, number) = match name.split_once(' ') {
            Some((kind, number)) => (kind, number.parse().ok()?),
            None => (name, n - 1),
        };
        let range = match (self.node(port), kind) {
            (true, "four-hop") | (false, "ihfq") => 0..n - 1,
            (true, "two-hop") => n - 1..2 * n - 2,
            (false, "onward") if self.between(port) => n - 1..2 * n - 2,
            (false, "ddq") if !self.between(port) => n - 1..n,
            _ => return None,
        };
        range.contains(&number).then_some(number)
    }
}

/// The queues that the data of flows of the requested classes fills.
pub fn flows(plan: &Plan, wanted: &dyn Fn(u16) -> bool) -> Filled {
    let ndc = Ndc::new(plan);
    let begins: BTreeSet<(u32, u32)> = routes(plan, wanted).map(|(id, path, _)| (id, path)).collect();
    let moves = moves(plan);
    let (mut starts, mut seen) = (begins.clone(), BTreeSet::new());
    let mut filled = Filled::new();
    while let Some((id, at)) = starts.pop_first() {
        let rest = plan.hops[at as usize..].iter().copied();
        let route: Vec<PortId> = rest.take_while(|&p| p < ENDS && !ndc.inside(p)).collect();
        let Some((&port, next)) = route.split_first().filter(|_| seen.insert((id, at))) else { continue };
        // Packets that a node relays wait in RQ.
        if !ndc.node(port) || begins.contains(&(id, at)) {
            filled.insert((port, ndc.queue(port, next, next.iter().any(|&p| ndc.node(p)))));
        }
        starts.insert((id, at + 1));
        starts.extend(moves.get(&at).into_iter().flatten().map(|&new| (id, new)));
    }
    filled
}

/// What can be ahead of a packet at a port, by bits: bit n without, and bit 3 + n with a relay ahead, where n links
/// between switches follow in a row, this one included.
type Ahead = u8;

/// The two parts of each.
fn each(ahead: Ahead) -> impl Iterator<Item = (bool, u32)> {
    (0..6).filter(move |bit| ahead >> bit & 1 == 1).map(|bit| (bit >= 3, bit % 3))
}

struct Ways<'a, 'p> {
    ndc: &'a Ndc<'p>,
    to: u32,
    known: BTreeMap<PortId, Ahead>,
}

impl Ways<'_, '_> {
    /// What is ahead from `port` on; nothing if it does not lead on. `on`: the next ports after a port.
    fn ahead(&mut self, port: PortId, on: &mut dyn FnMut(PortId) -> Vec<PortId>) -> Ahead {
        if let Some(&known) = self.known.get(&port) {
            return known;
        }
        // A static route that loops ends here.
        self.known.insert(port, 0);
        let mut ahead = Ahead::from(self.ndc.plan.topology.neighbour(port) == self.to);
        for next in on(port) {
            let relayed = self.ndc.node(next);
            for (relay, links) in each(self.ahead(next, on)) {
                let links = if self.ndc.between(port) { links + 1 } else { 0 };
                // Flows that would cross three in a row are refused.
                if links < 3 {
                    ahead |= 1 << (links + 3 * u32::from(relay || relayed));
                }
            }
        }
        self.known.insert(port, ahead);
        ahead
    }

    /// The queues that packets through `port` fill there.
    fn queues(&mut self, port: PortId, on: &mut dyn FnMut(PortId) -> Vec<PortId>) -> BTreeSet<u16> {
        let (ndc, mut queues) = (self.ndc, BTreeSet::new());
        if ndc.plan.topology.neighbour(port) == self.to {
            queues.insert(ndc.queue(port, &[], false));
        }
        for second in on(port) {
            if ndc.node(second) {
                for third in on(second) {
                    if self.ahead(third, on) != 0 {
                        queues.insert(ndc.queue(port, &[second, third], true));
                    }
                }
                continue;
            }
            for (relay, links) in each(self.ahead(second, on)) {
                if !ndc.between(port) || links < 2 {
                    queues.insert(ndc.queue(port, &[second], relay));
                }
            }
        }
        queues
    }
}

/// The queues that packets between any two hosts fill. `after`: as of [`crate::verify_all::all`].
pub fn all(plan: &Plan, router: &mut Router, mut after: After<'_>, all: &mut Filled) -> Result<(), String> {
    let ndc = Ndc::new(plan);
    let topology = &plan.topology;
    let mut filled = vec![false; topology.ports.len() * 2 * usize::from(ndc.n)];
    for to in topology.hosts() {
        if !topology.nodes[to as usize].ports.iter().any(|&p| !ndc.inside(p) && router.alive(p)) {
            continue;
        }
        let mut begun = Vec::new();
        if let Some((failed, before)) = &mut after {
            begun = reached(plan, before, to, Vec::new(), &mut |_, _| Ok(()))?;
            let gone = *failed;
            begun.retain(|(port, _)| !gone.contains(port));
        }
        let queues = reached(plan, router, to, begun, &mut |_, _| Ok(()))?;
        let ports: BTreeSet<PortId> = queues.into_iter().map(|(port, _)| port).collect();
        let mut outs: BTreeMap<u32, Vec<PortId>> = BTreeMap::new();
        let mut on = |port: PortId| {
            let at = topology.neighbour(port);
            if at == to {
                return Vec::new();
            }
            outs.entry(at).or_insert_with(|| router.next_hops(at, to)).clone()
        };
        let mut ways = Ways { ndc: &ndc, to, known: BTreeMap::new() };
        for port in ports {
            // Packets that a node relays wait in RQ; its own packets may wait in any queue.
            for queue in ways.queues(port, &mut on) {
                filled[port as usize * 2 * usize::from(ndc.n) + usize::from(queue)] = true;
            }
        }
    }
    let place = |i: usize| ((i / (2 * usize::from(ndc.n))) as PortId, (i % (2 * usize::from(ndc.n))) as u16);
    all.extend(filled.iter().enumerate().filter(|f| *f.1).map(|(i, _)| place(i)));
    Ok(())
}

/// Lets every port of a switch whose queues may be filled send its pause frames, and compares the places of
/// the paused queues. Returns the number of compared pairs.
pub fn compare(plan: &Plan, of: &dyn OnwardQueues, places: &Places, filled: &Filled) -> Result<u64, String> {
    let ndc = Ndc::new(plan);
    let mut compared = 0;
    let mut pause = |paused: (PortId, u16), by: (PortId, u16)| {
        if !filled.contains(&paused) {
            return Ok(());
        }
        compared += 1;
        let place = |queue: (PortId, u16)| places.by_queue.get(&queue).copied().unwrap_or(0);
        in_order([place(paused), place(by)], || {
            [paused, by].map(|(port, queue)| format!("{} queue {queue}", plan.topology.port_name(port)))
        })
    };
    for &(port, queue) in filled.iter().filter(|f| !ndc.node(f.0)) {
        // Algorithm 1: the frame goes out by all other ports.
        for out in ndc.others(port) {
            let upstream = ndc.peer(out);
            let Some(slot) = ndc.slot(port, out) else { continue };
            if queue < ndc.n - 1 {
                // Algorithm 3, lines 4 to 11.
                pause((upstream, slot), (port, queue))?;
                continue;
            }
            // Lines 12 to 23, and the copies of Algorithm 4.
            pause((upstream, ndc.n - 1 + slot), (port, queue))?;
            if of.passes_on() && ndc.node(upstream) {
                for other in ndc.others(upstream) {
                    pause((ndc.peer(other), slot), (port, queue))?;
                }
            }
        }
    }
    Ok(compared)
}
