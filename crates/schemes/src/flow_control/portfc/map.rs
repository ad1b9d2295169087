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
    places: Vec<Place>,
    /// By port of a switch: the port of the next switch over its neighbour, through which that neighbour is
    /// attached. [`NONE`] for other ports, and without such a switch.
    beyond: Vec<u32>,
    ports: Vec<Vec<u32>>,
}

/// Why PortFC cannot number the queues of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmappable {
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
        for (port, place) in (0..).zip(&places).filter(|(_, p)| outer(p)) {
            let other = &places[place.peer as usize];
            match (place.node, other.node) {
                (false, false) => return Err(Unmappable::BetweenSwitches(port)),
                (true, true) => return Err(Unmappable::BetweenNodes(port)),
                (false, true) => switches.push(place.index + 1),
                (true, false) => of_node[place.device as usize].push(port),
            }
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
        Ok(Self { n, places, beyond, ports })
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

    /// Queues of a switch's port, HQ not counted: n.
    pub fn of_switch(&self) -> u16 {
        self.n
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

    /// The queue of a packet at port `route[0]`, by its egress ports from there on, as far as they are given
    /// (four are enough). At a node's port it is that of the node's own packets; relayed packets wait in
    /// [`QueueMap::relay`].
    pub fn queue(&self, route: &[u32]) -> u16 {
        let at = |i: usize| route.get(i).copied().filter(|&port| !self.inner(port));
        let Some(port) = at(0) else { return self.relay() };
        if !self.place(port).node {
            // Two hops ahead: the node's port, then the next switch's.
            return match (at(1), at(2)) {
                (Some(out), Some(next)) => self.index(next, self.place(out).peer).unwrap_or(0),
                _ => self.n - 1,
            };
        }
        let index = at(1).and_then(|next| self.index(next, self.place(port).peer)).unwrap_or(0);
        if at(2).is_some() { index } else { self.n - 1 + index }
    }

    pub fn role(&self, port: u32, queue: u16) -> Role {
        match (self.place(port).node, queue) {
            (false, q) if q < self.n - 1 => Role::Ihfq,
            (false, _) => Role::Ddq,
            (true, q) if q < self.n - 1 => Role::FourHop,
            (true, q) if q < self.relay() => Role::TwoHop,
            (true, _) => Role::Relay,
        }
    }

    /// The port of a switch through which the packets in queue `queue` of `port` leave it, one hop after a
    /// node's port and two after a switch's: the frames of that port pause this queue. `None` for DDQ and RQ,
    /// which no frame pauses, and for a number without a port.
    pub fn leads_to(&self, port: u32, queue: u16) -> Option<u32> {
        let (ingress, index) = match self.role(port, queue) {
            Role::Ihfq => (self.beyond[port as usize], queue),
            Role::FourHop => (self.place(port).peer, queue),
            Role::TwoHop => (self.place(port).peer, queue - (self.n - 1)),
            Role::Ddq | Role::Relay => return None,
        };
        let ingress = (ingress != NONE).then(|| self.place(ingress))?;
        let index = if index < ingress.index { index } else { index + 1 };
        self.ports[ingress.device as usize].get(usize::from(index)).copied()
    }

    /// The queue that a frame which arrived at `port` pauses or resumes (Algorithm 3 at a node, 4 at a
    /// switch). `None` if it names the port that leads back here, or comes from where no switch is.
    pub fn named(&self, port: u32, congested_queue: u16, congested_port: u16) -> Option<u16> {
        let ddq = congested_queue >= self.n - 1;
        if self.place(port).node {
            let index = Self::skip(congested_port, self.place(self.place(port).peer).index)?;
            return Some(if ddq { index + self.n - 1 } else { index });
        }
        let beyond = self.beyond[port as usize];
        (beyond != NONE).then(|| Self::skip(congested_port, self.place(beyond).index)).flatten()
    }
}
