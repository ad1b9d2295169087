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

/// A network, read as an NDC(n, 1).
struct Ndc<'p> {
    plan: &'p Plan,
    n: u16,
}

impl Ndc<'_> {
    fn node(&self, port: PortId) -> bool {
        let topology = &self.plan.topology;
        topology.nodes[topology.ports[port as usize].node as usize].kind == NodeKind::Host
    }

    /// Both ends are at one device: inside of a slow receiver.
    fn inside(&self, port: PortId) -> bool {
        self.plan.topology.neighbour(port) == self.plan.topology.ports[port as usize].node
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

    /// The queue in which a packet waits for the first port of `route`, the rest of its path (three ports are
    /// enough); `None` for RQ.
    fn queue(&self, route: &[PortId], own: bool) -> Option<u16> {
        if !self.node(route[0]) {
            // Delivered at the next node, or it leaves the switch after that node.
            return Some(match route {
                [_, relay, next, ..] => self.slot(*next, self.peer(*relay)).unwrap_or(0),
                _ => self.n - 1,
            });
        }
        let leaves = route.get(1).and_then(|&next| self.slot(next, self.peer(route[0]))).unwrap_or(0);
        own.then_some(if route.len() > 2 { leaves } else { self.n - 1 + leaves })
    }
}

/// The number of a port's queue by its name; `None` if it has none of this name.
pub fn number(plan: &Plan, of: &dyn OnwardQueues, port: PortId, name: &str) -> Option<u16> {
    let ndc = Ndc { plan, n: of.of_switch() };
    let n = ndc.n;
    let (kind, number) = match name.split_once(' ') {
        Some((kind, number)) => (kind, number.parse().ok()?),
        None => (name, n - 1),
    };
    let range = match (ndc.node(port), kind) {
        (true, "four-hop") | (false, "ihfq") => 0..n - 1,
        (true, "two-hop") => n - 1..2 * n - 2,
        (false, "ddq") => n - 1..n,
        _ => return None,
    };
    range.contains(&number).then_some(number)
}

/// The queues that the data of flows of the requested classes fills.
pub fn flows(plan: &Plan, of: &dyn OnwardQueues, wanted: &dyn Fn(u16) -> bool) -> Filled {
    let ndc = Ndc { plan, n: of.of_switch() };
    let begins: BTreeSet<(u32, u32)> = routes(plan, wanted).map(|(id, path, _)| (id, path)).collect();
    let moves = moves(plan);
    let (mut starts, mut seen) = (begins.clone(), BTreeSet::new());
    let mut filled = Filled::new();
    while let Some((id, at)) = starts.pop_first() {
        let rest = plan.hops[at as usize..].iter().copied();
        let route: Vec<PortId> = rest.take(3).take_while(|&p| p < ENDS && !ndc.inside(p)).collect();
        if route.is_empty() || !seen.insert((id, at)) {
            continue;
        }
        filled.extend(ndc.queue(&route, begins.contains(&(id, at))).map(|queue| (route[0], queue)));
        starts.insert((id, at + 1));
        starts.extend(moves.get(&at).into_iter().flatten().map(|&new| (id, new)));
    }
    filled
}

/// The queues that packets between any two hosts fill. `after`: as of [`crate::verify_all::all`].
pub fn all(
    plan: &Plan,
    of: &dyn OnwardQueues,
    router: &mut Router,
    mut after: After<'_>,
    all: &mut Filled,
) -> Result<(), String> {
    let ndc = Ndc { plan, n: of.of_switch() };
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
        for port in ports {
            // Packets that a node relays wait in RQ; its own packets may wait in any queue.
            let mut add = |route: &[PortId]| {
                let queue = ndc.queue(route, true).expect("only RQ has no number");
                filled[port as usize * 2 * usize::from(ndc.n) + usize::from(queue)] = true;
            };
            if topology.neighbour(port) == to {
                add(&[port]);
            }
            for second in on(port) {
                if topology.neighbour(second) == to {
                    add(&[port, second]);
                }
                on(second).into_iter().for_each(|third| add(&[port, second, third]));
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
    let ndc = Ndc { plan, n: of.of_switch() };
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
            let node = ndc.peer(out);
            let Some(slot) = ndc.slot(port, out) else { continue };
            if queue < ndc.n - 1 {
                // Algorithm 3, lines 4 to 11.
                pause((node, slot), (port, queue))?;
                continue;
            }
            // Lines 12 to 23, and the copies of Algorithm 4.
            pause((node, ndc.n - 1 + slot), (port, queue))?;
            if of.passes_on() {
                for other in ndc.others(node) {
                    pause((ndc.peer(other), slot), (port, queue))?;
                }
            }
        }
    }
    Ok(compared)
}
