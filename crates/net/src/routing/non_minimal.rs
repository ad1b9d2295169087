//! Paths that are not minimal: over another group of a dragonfly, or another switch of a torus.

use super::{Link, Router};
use crate::topology::{NodeId, PortId};

impl Router {
    /// The non-minimal paths of packets to host `to` from its first switch `at`: the ports of each up to its turning
    /// point, from where the packet takes a minimal path. In a dragonfly the turning point is the far end of a link to
    /// a group that is neither the packet's first nor its last one; in a torus with dimension order it is any switch
    /// that makes the path longer. None in other networks, and none to hosts of the same group or switch.
    pub fn non_minimal(&mut self, at: NodeId, to: NodeId) -> Vec<Vec<PortId>> {
        let end = self.target(to).root;
        match end == to {
            true => Vec::new(),
            false if self.groups.is_some() => {
                let mut found = self.over_groups(at, end);
                found.retain(|&(_, turn)| self.distance(turn, to).is_some());
                found.into_iter().map(|(path, _)| path).collect()
            }
            false => self.over_switches(at, end, to),
        }
    }

    /// Each with its turning point.
    fn over_groups(&self, at: NodeId, end: NodeId) -> Vec<(Vec<PortId>, NodeId)> {
        let Some(groups) = self.groups else { return Vec::new() };
        let (own, goal) = (groups.of(at), groups.of(end));
        if own.is_none() || own == goal {
            return Vec::new();
        }
        let live = |node: NodeId| self.links(node).iter().filter(|link| self.alive(link.port));
        let leads_away = |link: &&Link| {
            let there = groups.of(link.to);
            there.is_some() && there != own && there != goal
        };
        let mut found: Vec<(Vec<PortId>, NodeId)> =
            live(at).filter(leads_away).map(|link| (vec![link.port], link.to)).collect();
        for local in live(at).filter(|link| groups.of(link.to) == own) {
            found
                .extend(live(local.to).filter(leads_away).map(|link| (vec![local.port, link.port], link.to)));
        }
        found
    }

    /// Where two directions to a turning point are equally long, the path of the lower port.
    fn over_switches(&mut self, at: NodeId, end: NodeId, to: NodeId) -> Vec<Vec<PortId>> {
        let Some(torus) = self.torus.filter(|_| at != end) else { return Vec::new() };
        let switches = torus.width * torus.height;
        let first = switches * torus.hosts_per_switch;
        let mut found = Vec::new();
        for via in (first..first + switches).filter(|&via| via != at && via != end) {
            let Some(path) = self.first_path(at, via) else { continue };
            if let (Some(shortest), Some(rest)) = (self.distance(at, to), self.distance(via, to))
                && path.len() as u32 + rest > shortest
                && path.len() as u32 + rest < self.ttl as u32
            {
                found.push(path);
            }
        }
        found
    }

    /// The ports of a minimal path, the lowest port of each node.
    fn first_path(&mut self, from: NodeId, to: NodeId) -> Option<Vec<PortId>> {
        let (mut at, mut ports) = (from, Vec::new());
        while at != to {
            let port = *self.next_hops(at, to).first()?;
            ports.push(port);
            at = self.links(at).iter().find(|link| link.port == port)?.to;
        }
        Some(ports)
    }
}
