//! Which queue a packet waits in: PortFC, section III-B.
//!
//! All packets of a queue leave the next switch through one port. So a switch
//! looks two hops ahead, a node one:
//!
//! | port of | packet | queue |
//! |---|---|---|
//! | a switch | continues at the next node, and leaves the switch after it through port e | IHFQ, 0 to n − 2, by e |
//! | a switch | is delivered at the next node | DDQ, n − 1 |
//! | a node | begins here, four hops; leaves the next switch through port e | 0 to n − 2, by e |
//! | a node | begins here, two hops; leaves the next switch through port e | n − 1 to 2n − 3, by e |
//! | a node | comes from elsewhere | RQ, 2n − 2 |
//!
//! A switch has n ports, but no packet leaves it through its ingress port: of the n numbers e, that port is
//! skipped, so n − 1 remain (`portfc.port-to-queue-map`; the paper's algorithms use e itself, and its
//! examples have no e above the skipped one). The same map reads a frame.
//!
//! Acknowledgements, notifications and the frames of PortFC itself wait in the
//! high-priority queue HQ, which this map does not number: see [`super`].
//!
//! Where switches differ in size, as in rail-only networks, n is the largest, and some queues stay empty.
//!
//! **Links between switches.** The paper calls PortFC compatible with aggregation switches above those of the
//! rails (section VI-D) and defines no queues for them. Here a port to a switch looks one hop ahead, like a
//! node, and its queues are of the two types of section III-D:
//!
//! | port of | packet | queue |
//! |---|---|---|
//! | a switch, to a switch | a node ahead relays it (type A); leaves the next switch through port e | IHFQ, 0 to n − 2, by e |
//! | a switch, to a switch | no node ahead relays it (type B); leaves the next switch through port e | n − 1 to 2n − 3, by e |
//!
//! So *four-hop* and *two-hop* mean: over a relay, and over none. A frame about either set pauses the queues of
//! the same type at a switch, and those of Algorithm 3 at a node. Links between switches lead from switches with
//! nodes to aggregation switches without, and packets go up once and down once between two nodes. So type B
//! waits along up, down, DDQ; type A along up, down, IHFQ; an IHFQ waits for type B; and no cycle can close.

use std::ops::Range;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub device: u32,
    /// Its number among the ports of its device, from 0 on.
    pub index: u16,
    /// The port at the other end of its link.
    pub peer: u32,
    /// Its device is a node (a host), not a switch.
    pub node: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// At a switch: inter-hop forwarding (type A).
    Ihfq,
    /// At a switch: destination-direct (type B).
    Ddq,
    /// At a switch's port to a switch: no relay ahead (type B).
    Onward,
    /// At a node: four-hop traffic of its own (type a).
    FourHop,
    /// At a node: two-hop traffic of its own (type b).
    TwoHop,
    /// At a node: packets that it relays (type c).
    Relay,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueMap {
    /// Ports of a switch (the largest); at least 2.
    pub n: u16,
    /// Whether switches have links to each other.
    pub tiers: bool,
    places: Vec<Place>,
    /// By port of a switch: the port of the next switch over its neighbour, through which that neighbour is
    /// attached. [`NONE`] for other ports, and without such a switch.
    beyond: Vec<u32>,
    ports: Vec<Vec<u32>>,
}

/// Why PortFC cannot number the queues of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmappable {
    /// Both switches of a link have nodes, or neither has.
    BetweenSwitches(u32),
    BetweenNodes(u32),
    /// This node has so many ports to switches, above 2: n − 1 queues of a switch before it could not
    /// separate its packets by their next links (section VI-B).
    Ports(u32, usize),
    NoSwitch,
}

impl QueueMap {
    /// `places` are the network's ports, by number. Ports inside of a slow host count for nothing.
    pub fn new(places: Vec<Place>) -> Result<Self, Unmappable> {
        let outer = |p: &Place| places[p.peer as usize].device != p.device;
        let devices = places.iter().map(|p| p.device as usize + 1).max().unwrap_or(0);
        let mut switches: Vec<u16> = Vec::new();
        let mut of_node = vec![Vec::new(); devices];
        let mut has_nodes = vec![false; devices];
        let mut between = Vec::new();
        for (port, place) in (0..).zip(&places).filter(|(_, p)| outer(p)) {
            let other = &places[place.peer as usize];
            match (place.node, other.node) {
                (true, true) => return Err(Unmappable::BetweenNodes(port)),
                (true, false) => of_node[place.device as usize].push(port),
                (false, true) => has_nodes[place.device as usize] = true,
                (false, false) => between.push(port),
            }
            if !place.node {
                switches.push(place.index + 1);
            }
        }
        let level = |port: u32| has_nodes[places[port as usize].device as usize];
        if let Some(&port) = between.iter().find(|&&p| level(p) == level(places[p as usize].peer)) {
            return Err(Unmappable::BetweenSwitches(port));
        }
        let n = switches.into_iter().max().filter(|&n| n >= 2).ok_or(Unmappable::NoSwitch)?;
        let mut ports = vec![Vec::new(); devices];
        for (port, place) in (0..).zip(&places) {
            ports[place.device as usize].push(port);
        }
        let mut beyond = vec![NONE; places.len()];
        for (device, ports) in (0..).zip(&of_node) {
            match ports[..] {
                [] | [_] => {}
                [a, b] => {
                    // From the switch at one port to the one at the other.
                    beyond[places[a as usize].peer as usize] = places[b as usize].peer;
                    beyond[places[b as usize].peer as usize] = places[a as usize].peer;
                }
                _ => return Err(Unmappable::Ports(device, ports.len())),
            }
        }
        Ok(Self { n, tiers: !between.is_empty(), places, beyond, ports })
    }

    /// Whether the device at the other end of a port is a switch.
    pub fn to_switch(&self, port: u32) -> bool {
        !self.place(self.place(port).peer).node
    }

    /// Whether a packet on its way `route` crosses more than two links between switches in a row: not only up to
    /// an aggregation switch and down again. Then queues of one type could wait for each other in a cycle.
    pub fn climbs_again(&self, route: &[u32]) -> bool {
        (0..route.len()).any(|at| self.climb(&route[at..]) > 2)
    }

    /// The number of links between switches with which a route begins.
    pub fn climb(&self, route: &[u32]) -> usize {
        route.iter().take_while(|&&port| !self.place(port).node && self.to_switch(port)).count()
    }

    /// How often nodes relay a packet on its way `route`, which begins at any device.
    pub fn relays(&self, route: &[u32]) -> usize {
        route.iter().skip(1).filter(|&&port| self.place(port).node && !self.inner(port)).count()
    }

    pub fn place(&self, port: u32) -> Place {
        self.places[port as usize]
    }

    /// Whether `port` is inside of a slow host.
    pub fn inner(&self, port: u32) -> bool {
        let place = self.place(port);
        self.place(place.peer).device == place.device
    }

    pub fn relay(&self) -> u16 {
        2 * self.n - 2
    }

    /// Queues of a switch's port, HQ not counted: n, or 2n − 2 with links between switches.
    pub fn of_switch(&self) -> u16 {
        if self.tiers { 2 * self.n - 2 } else { self.n }
    }

    /// Queues of a node's port, HQ not counted: 2n − 1.
    pub fn of_node(&self) -> u16 {
        2 * self.n - 1
    }

    /// Number of `port` among the n − 1 egress ports of what came through port `ingress`; `None` if they are
    /// one.
    pub fn index(&self, port: u32, ingress: u32) -> Option<u16> {
        Self::skip(self.place(port).index, self.place(ingress).index)
    }

    fn skip(port: u16, ingress: u16) -> Option<u16> {
        (port != ingress).then(|| if port < ingress { port } else { port - 1 })
    }

    /// The queues of a switch's port of one type with `queue`.
    pub fn set(&self, queue: u16) -> Range<u16> {
        if queue < self.n - 1 { 0..self.n - 1 } else { self.n - 1..self.of_switch() }
    }

    /// The queue of a packet at port `route[0]`, by its egress ports from there to its destination. At a node's
    /// port it is that of the node's own packets; relayed packets wait in [`QueueMap::relay`].
    pub fn queue(&self, route: &[u32]) -> u16 {
        let at = |i: usize| route.get(i).copied().filter(|&port| !self.inner(port));
        let Some(port) = at(0) else { return self.relay() };
        if !self.place(port).node && !self.to_switch(port) {
            // Two hops ahead: the node's port, then the next switch's.
            return match (at(1), at(2)) {
                (Some(out), Some(next)) => self.index(next, self.place(out).peer).unwrap_or(0),
                _ => self.n - 1,
            };
        }
        let index = at(1).and_then(|next| self.index(next, self.place(port).peer)).unwrap_or(0);
        if self.relays(route) > 0 { index } else { self.n - 1 + index }
    }

    pub fn role(&self, port: u32, queue: u16) -> Role {
        match (self.place(port).node, queue) {
            (false, q) if q < self.n - 1 => Role::Ihfq,
            (false, _) if self.to_switch(port) => Role::Onward,
            (false, _) => Role::Ddq,
            (true, q) if q < self.n - 1 => Role::FourHop,
            (true, q) if q < self.relay() => Role::TwoHop,
            (true, _) => Role::Relay,
        }
    }

    /// The port of a switch through which the packets in queue `queue` of `port` leave it, two hops after a
    /// switch's port to a node and one after any other: the frames of that port pause this queue. `None` for
    /// DDQ and RQ, which no frame pauses, and for a number without a port.
    pub fn leads_to(&self, port: u32, queue: u16) -> Option<u32> {
        let (ingress, index) = match self.role(port, queue) {
            Role::Ihfq if !self.to_switch(port) => (self.beyond[port as usize], queue),
            Role::FourHop | Role::Ihfq => (self.place(port).peer, queue),
            Role::TwoHop | Role::Onward => (self.place(port).peer, queue - (self.n - 1)),
            Role::Ddq | Role::Relay => return None,
        };
        let ingress = (ingress != NONE).then(|| self.place(ingress))?;
        let index = if index < ingress.index { index } else { index + 1 };
        self.ports[ingress.device as usize].get(usize::from(index)).copied()
    }

    /// The queue that a frame which arrived at `port` pauses or resumes (Algorithm 3 at a node, 4 at a
    /// switch). `None` if it names the port that leads back here, or comes from where no switch is.
    pub fn named(&self, port: u32, congested_queue: u16, congested_port: u16) -> Option<u16> {
        let place = self.place(port);
        if place.node || self.to_switch(port) {
            let index = Self::skip(congested_port, self.place(place.peer).index)?;
            return Some(if congested_queue >= self.n - 1 { index + self.n - 1 } else { index });
        }
        let beyond = self.beyond[port as usize];
        (beyond != NONE).then(|| Self::skip(congested_port, self.place(beyond).index)).flatten()
    }
}
