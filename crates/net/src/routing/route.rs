//! The route of one flow.

use super::{Router, RoutingKind, hash::Tuple};
use crate::topology::{Cube, NodeId, PortId};
use std::fmt;

/// Most orders of digits that a BCube source tries when links are down.
const MOST_ORDERS: u64 = 1_000;

/// A route: the egress ports that a packet leaves by, from the sender's NIC on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub ports: Vec<PortId>,
    pub ends: Ends,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Deliver,
    /// It loops, and the time to live is over.
    Expire,
}

/// Why there is no route. Nodes are given by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteError {
    ToItself(String),
    NoPath {
        from: String,
        to: String,
    },
    /// The path does not loop, yet is longer than the time to live.
    TooLong {
        from: String,
        to: String,
        most: usize,
    },
    /// An explicit path has consecutive nodes without a link.
    NotNeighbours(String, String),
    NoRelay(String),
    TooShort,
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::ToItself(node) => write!(f, "{node} sends to itself"),
            RouteError::NoPath { from, to } => write!(f, "there is no path from {from} to {to}"),
            RouteError::TooLong { from, to, most } => {
                write!(f, "the path from {from} to {to} is longer than the time to live of {most} links")
            }
            RouteError::NotNeighbours(a, b) => write!(f, "there is no link between {a} and {b}"),
            RouteError::NoRelay(host) => write!(f, "the path crosses {host}, a host that does not relay"),
            RouteError::TooShort => write!(f, "a path needs at least two nodes"),
        }
    }
}

impl Router {
    /// The route of the flow with the key `flow_key` from `src` to `dst`.
    ///
    /// A route that loops through overrides ends in [`Ends::Expire`] after [`Router::ttl`] links.
    pub fn route(&mut self, src: NodeId, dst: NodeId, flow_key: u64) -> Result<Route, RouteError> {
        if src == dst {
            return Err(RouteError::ToItself(self.name(src)));
        }
        match (self.kind, self.cube) {
            (RoutingKind::Bcube, Some(cube)) if src < cube.hosts() && dst < cube.hosts() => {
                let route = self.source_route(&cube, src, dst, flow_key)?;
                route.map_or_else(|| self.shortest(src, dst, flow_key), Ok)
            }
            _ => self.shortest(src, dst, flow_key),
        }
    }

    /// Per-hop ECMP, or the overrides.
    fn shortest(&mut self, src: NodeId, dst: NodeId, flow_key: u64) -> Result<Route, RouteError> {
        let target = self.target(dst);
        let flow = Tuple::new(src, dst, flow_key);
        let (mut at, mut ports) = (src, Vec::with_capacity(8));
        let mut links = std::mem::take(&mut self.found);
        // Only overrides can lead into a loop.
        let may_loop = self.has_overrides(dst);
        let (mut visited, mut loops) = (Vec::new(), false);
        while at != dst {
            if ports.len() >= self.ttl {
                if loops {
                    return Ok(Route { ports, ends: Ends::Expire });
                }
                return Err(self.too_long(src, dst));
            }
            if may_loop && !loops {
                // The next hop depends only on the node and the flow.
                loops = visited.contains(&at);
                visited.push(at);
            }
            self.choices(at, &target, &mut links);
            if links.is_empty() {
                return Err(RouteError::NoPath { from: self.name(src), to: self.name(dst) });
            }
            let seed = self.seeds[at as usize];
            let link = links[self.hash.choose(&flow, seed, links.len() as u64) as usize];
            ports.push(link.port);
            at = link.to;
        }
        self.found = links;
        Ok(Route { ports, ends: Ends::Deliver })
    }

    /// BCube: corrects the differing digits in an order that the flow's hash
    /// picks, or in the next order whose links are all up; `None` if there is none.
    fn source_route(
        &self,
        cube: &Cube,
        src: NodeId,
        dst: NodeId,
        flow_key: u64,
    ) -> Result<Option<Route>, RouteError> {
        let differing: Vec<u32> =
            (0..=cube.k).filter(|&l| cube.digit(src, l) != cube.digit(dst, l)).collect();
        if 2 * differing.len() > self.ttl {
            return Err(self.too_long(src, dst));
        }
        // At most 20 digits fit the largest network, and 20! fits 64 bits.
        let orders: u64 = (1..=differing.len() as u64).product();
        let flow = Tuple::new(src, dst, flow_key);
        let chosen = self.hash.choose(&flow, self.seeds[src as usize], orders);
        for try_no in 0..orders.min(MOST_ORDERS) {
            let ports = self.correcting(cube, src, dst, differing.clone(), (chosen + try_no) % orders);
            if ports.iter().all(|&port| self.alive(port)) {
                return Ok(Some(Route { ports, ends: Ends::Deliver }));
            }
        }
        Ok(None)
    }

    /// The ports that correct the digits `layers` in the order of that number.
    fn correcting(
        &self,
        cube: &Cube,
        src: NodeId,
        dst: NodeId,
        mut layers: Vec<u32>,
        mut order: u64,
    ) -> Vec<PortId> {
        let (mut at, mut ports) = (src, Vec::with_capacity(2 * layers.len()));
        while !layers.is_empty() {
            // The order as a number in the factorial base, digit by digit.
            let count = layers.len() as u64;
            let layer = layers.remove((order % count) as usize);
            order /= count;
            let up = self.links(at)[layer as usize];
            let down = self.links(up.to)[cube.digit(dst, layer) as usize];
            ports.extend([up.port, down.port]);
            at = down.to;
        }
        ports
    }

    /// The path along the given nodes; of parallel links, that with the lowest port.
    pub fn explicit(&self, nodes: &[NodeId]) -> Result<Route, RouteError> {
        let (&[src, .., dst], true) = (nodes, nodes.len() >= 2) else {
            return Err(RouteError::TooShort);
        };
        if src == dst {
            return Err(RouteError::ToItself(self.name(src)));
        }
        if nodes.len() - 1 > self.ttl {
            return Err(self.too_long(src, dst));
        }
        if let Some(&host) = nodes[1..nodes.len() - 1].iter().find(|&&node| !self.relays[node as usize]) {
            return Err(RouteError::NoRelay(self.name(host)));
        }
        let mut ports = Vec::with_capacity(nodes.len() - 1);
        for pair in nodes.windows(2) {
            let link = self.links(pair[0]).iter().find(|link| link.to == pair[1]);
            let Some(link) = link else {
                return Err(RouteError::NotNeighbours(self.name(pair[0]), self.name(pair[1])));
            };
            ports.push(link.port);
        }
        Ok(Route { ports, ends: Ends::Deliver })
    }

    /// The same links in the opposite direction; `None` if the route does not reach its destination.
    pub fn reverse(&self, route: &Route) -> Option<Route> {
        if route.ends != Ends::Deliver {
            return None;
        }
        let ports = route.ports.iter().rev().map(|&port| self.peers[port as usize]).collect();
        Some(Route { ports, ends: Ends::Deliver })
    }

    fn too_long(&self, from: NodeId, to: NodeId) -> RouteError {
        RouteError::TooLong { from: self.name(from), to: self.name(to), most: self.ttl }
    }
}
