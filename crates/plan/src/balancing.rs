//! The spreading of flows over equal paths, as data; and the known part of a packet's further path.
//!
//! *Packet by packet* routes fork: where a device has several equal next hops, an entry of [`Plan::hops`]
//! names a *choice* instead of a port. A choice is a list of positions, one for each next hop, from which the
//! path continues: the egress port, and the ports after it. The choice of a first switch may also have
//! non-minimal paths, after the minimal ones. All flows share the forks of one device towards one destination.
//! So a route is a graph without cycles, and a packet's position determines all its possible paths.

use crate::plan::{CHOICES, ENDS, Plan};
use std::collections::BTreeMap;
use xoff_net::topology::{NodeKind, PortId, Topology};
use xoff_schemes::load_balancing::seam::Offer;
use xoff_schemes::load_balancing::{PacketRule, SenderRules};

#[derive(Clone, Debug, Default, PartialEq)]
pub enum LoadBalancing {
    /// A hash gives each flow one route, for ever.
    #[default]
    Ecmp,
    /// Devices choose for each data packet. Control packets have one route.
    Packets(Choices),
    /// Senders label their packets, and each label has a route.
    Labels(Labels),
}

/// Where routes fork, and how devices choose.
#[derive(Clone, Debug, PartialEq)]
pub struct Choices {
    pub rule: PacketRule,
    /// By choice, and one more: where its positions begin in `options`.
    first: Vec<u32>,
    /// Positions in [`Plan::hops`].
    options: Vec<u32>,
    /// With non-minimal paths, by option: links between switches on its path. Else empty.
    links: Vec<u8>,
    /// Likewise, by choice: how many of its options, the first ones, are minimal. At the first switch of a packet
    /// not all are.
    minimal: Vec<u32>,
    /// By choice: number of its set of ports. Choices of one device among the same
    /// ports, in the same order, have the same set.
    pub sets: Vec<u32>,
    /// By choice, and one more: where its ports begin in `sure`.
    sure_first: Vec<u32>,
    /// Ports that are on every path from a choice, in order, and the number of ports before each of them
    /// after the choice, or [`VARIES`].
    sure: Vec<PortId>,
    sure_at: Vec<u8>,
    /// By choice: ports from there to the end, on the longest path.
    lengths: Vec<u8>,
}

/// In [`Choices::sure_at`]: it depends on the path.
const VARIES: u8 = u8::MAX;

impl Choices {
    pub(crate) fn new(rule: PacketRule) -> Self {
        let none = || vec![0];
        Self {
            rule,
            first: none(),
            options: Vec::new(),
            links: Vec::new(),
            minimal: Vec::new(),
            sets: Vec::new(),
            sure_first: none(),
            sure: Vec::new(),
            sure_at: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Adds a choice among these positions of `hops`, with a set of ports, and computes the common ports of
    /// its paths. The first `minimal` are minimal paths. Returns its entry in the hops.
    pub(crate) fn add(
        &mut self,
        topology: &Topology,
        hops: &[u32],
        options: &[u32],
        minimal: usize,
        set: u32,
    ) -> u32 {
        let (mut length, mut sure) = self.certain(hops, options[0]);
        for &option in &options[1..] {
            let (other, crossed) = self.certain(hops, option);
            length = length.max(other);
            sure.retain_mut(|(at, port)| {
                let there = crossed.iter().find(|(_, crossed)| crossed == port);
                if there.is_some_and(|(other, _)| other != at) {
                    *at = VARIES;
                }
                there.is_some()
            });
        }
        if self.rule.is_non_minimal() {
            for &option in options {
                self.links.push(self.links_from(topology, hops, option));
            }
            self.minimal.push(minimal as u32);
        }
        self.options.extend(options);
        self.first.push(self.options.len() as u32);
        self.sets.push(set);
        self.lengths.push(length);
        for (at, port) in sure {
            self.sure.push(port);
            self.sure_at.push(at);
        }
        self.sure_first.push(self.sure.len() as u32);
        CHOICES + self.sets.len() as u32 - 1
    }

    /// Ports from a position to the end, and the ports that every path crosses, each with its distance.
    fn certain(&self, hops: &[u32], position: u32) -> (u8, Vec<(u8, PortId)>) {
        let tail = &hops[position as usize..];
        let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
        // A route has at most as many links as its time to live, 64, and an inner port.
        let mut ports: Vec<(u8, PortId)> = (0..).zip(tail[..end].iter().copied()).collect();
        let mut length = end as u8;
        if is_choice(tail[end]) {
            let later = |at: u8| if at == VARIES { VARIES } else { length + at };
            ports.extend(self.sure_places(tail[end]).map(|(at, port)| (later(at), port)));
            length += self.length(tail[end]);
        }
        (length, ports)
    }

    /// Links between switches on the path from a position, on a minimal one after a choice.
    fn links_from(&self, topology: &Topology, hops: &[u32], position: u32) -> u8 {
        let (mut at, mut links) = (position as usize, 0);
        loop {
            match hops[at] {
                entry if is_choice(entry) => at = self.options(entry)[0] as usize,
                port if port >= ENDS => return links,
                port => {
                    // An inner port of a host is not in the topology yet.
                    let leads_on = (port as usize) < topology.ports.len()
                        && topology.nodes[topology.neighbour(port) as usize].kind == NodeKind::Switch;
                    links += u8::from(leads_on);
                    at += 1;
                }
            }
        }
    }

    /// What one chooses among at such an entry, by option.
    #[inline]
    pub fn offer(&self, entry: u32) -> Offer<'_> {
        let choice = (entry - CHOICES) as usize;
        let range = self.first[choice] as usize..self.first[choice + 1] as usize;
        let paths = range.len();
        match self.minimal.get(choice) {
            None => Offer { paths, minimal: paths, links: &[] },
            Some(&minimal) => Offer { paths, minimal: minimal as usize, links: &self.links[range] },
        }
    }

    /// Ports that every path from an entry that is a choice crosses, in order, each with the number of ports
    /// before it after the choice.
    fn sure_places(&self, entry: u32) -> impl Iterator<Item = (u8, PortId)> + '_ {
        let choice = (entry - CHOICES) as usize;
        let range = self.sure_first[choice] as usize..self.sure_first[choice + 1] as usize;
        range.map(|i| (self.sure_at[i], self.sure[i]))
    }

    /// Ports from such an entry to the end, on the longest path.
    fn length(&self, entry: u32) -> u8 {
        self.lengths[(entry - CHOICES) as usize]
    }

    /// The positions that one chooses among at an entry of the plan's hops that is a choice.
    #[inline]
    pub fn options(&self, entry: u32) -> &[u32] {
        let choice = (entry - CHOICES) as usize;
        &self.options[self.first[choice] as usize..self.first[choice + 1] as usize]
    }

    pub fn positions(&self) -> &[u32] {
        &self.options
    }

    /// The set of ports of such an entry.
    #[inline]
    pub fn set(&self, entry: u32) -> u32 {
        self.sets[(entry - CHOICES) as usize]
    }

    /// Ports that every path from such an entry crosses, in order.
    pub fn sure(&self, entry: u32) -> &[PortId] {
        let choice = (entry - CHOICES) as usize;
        &self.sure[self.sure_first[choice] as usize..self.sure_first[choice + 1] as usize]
    }

    pub(crate) fn memory(&self) -> u64 {
        let sets = self.sets.iter().max().map_or(0, |&last| last as usize + 1);
        let lengths = self.links.len() + 4 * self.minimal.len();
        (4 * self.options.len() + 5 * self.sure.len() + 13 * self.sets.len() + lengths) as u64
            + (sets * self.rule.memory()) as u64
    }
}

/// Senders that label their packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Labels {
    pub rule: SenderRules,
    /// By flow and label: where its route starts in [`Plan::hops`]. Label 0 is the first, that of
    /// [`crate::plan::Flow::path`]. All begin at the same port; several labels may have the same route.
    pub routes: Vec<u32>,
    /// Likewise those of ACKs and NACKs, which have the label of the packet that they answer. Label 0 is that of
    /// [`crate::plan::Flow::ack_path`]. Empty if answers have no label.
    pub ack_routes: Vec<u32>,
}

impl Labels {
    /// The routes of a flow, by label.
    pub fn routes(&self, flow: u32) -> &[u32] {
        self.of(&self.routes, flow)
    }

    /// The routes of a flow's answers, by label; none if answers have no label.
    pub fn ack_routes(&self, flow: u32) -> &[u32] {
        if self.ack_routes.is_empty() { &[] } else { self.of(&self.ack_routes, flow) }
    }

    fn of<'r>(&self, routes: &'r [u32], flow: u32) -> &'r [u32] {
        let labels = self.rule.labels() as usize;
        &routes[flow as usize * labels..][..labels]
    }

    /// Flows with more than one route.
    pub fn flows_with_choice(&self) -> u64 {
        let several = |routes: &&[u32]| routes.iter().any(|start| *start != routes[0]);
        self.routes.chunks(self.rule.labels() as usize).filter(several).count() as u64
    }
}

/// The known part of the further path from a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Onward<'p> {
    /// Egress ports one after the other, that of the position first.
    pub known: &'p [PortId],
    /// `None` if that is the whole path. Otherwise a choice comes next, and these are the later ports that
    /// every path crosses, in order, with gaps: in a Clos network the common ports of all paths downwards.
    pub sure: Option<&'p [PortId]>,
}

impl<'p> Onward<'p> {
    /// All ports that the packet will cross for certain, in order.
    pub fn certain(self) -> impl Iterator<Item = PortId> + 'p {
        self.known.iter().chain(self.sure.unwrap_or_default()).copied()
    }
}

/// The knowledge about one port on a packet's further path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The packet will leave through this egress port.
    Port(PortId),
    /// A device on the path will choose it.
    Unknown,
    End,
}

impl Plan {
    /// The port at `distance` ports after that of `position`, on the further path from there.
    pub fn ahead(&self, position: u32, distance: u32) -> Ahead {
        let known = self.onward(position).known;
        if let Some(&port) = known.get(distance as usize) {
            return Ahead::Port(port);
        }
        let entry = self.hops[position as usize + known.len()];
        let Some(choices) = self.choices_at(entry) else { return Ahead::End };
        let behind = distance - known.len() as u32;
        if behind >= u32::from(choices.length(entry)) {
            return Ahead::End;
        }
        let mut sure = choices.sure_places(entry);
        sure.find(|&(at, _)| u32::from(at) == behind).map_or(Ahead::Unknown, |(_, port)| Ahead::Port(port))
    }

    /// The known part of the further path of a packet at `position` of the hops.
    pub fn onward(&self, position: u32) -> Onward<'_> {
        let tail = &self.hops[position as usize..];
        let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
        Onward { known: &tail[..end], sure: self.choices_at(tail[end]).map(|c| c.sure(tail[end])) }
    }

    /// The positions of the run of ports that begins at `start`, up to its end or the next choice.
    pub fn run(&self, start: u32) -> std::ops::Range<u32> {
        start..start + self.onward(start).known.len() as u32
    }

    #[inline]
    pub fn choices_at(&self, entry: u32) -> Option<&Choices> {
        match &self.load_balancing {
            LoadBalancing::Packets(choices) if is_choice(entry) => Some(choices),
            _ => None,
        }
    }

    /// Whether some path from `position` crosses `port`. `known` caches the results for choices, by their
    /// entry and the port.
    pub fn may_cross(&self, position: u32, port: PortId, known: &mut BTreeMap<(u32, PortId), bool>) -> bool {
        let onward = self.onward(position);
        if onward.known.contains(&port) {
            return true;
        }
        let entry = self.hops[position as usize + onward.known.len()];
        let Some(choices) = self.choices_at(entry) else { return false };
        if let Some(&crosses) = known.get(&(entry, port)) {
            return crosses;
        }
        let crosses = choices.options(entry).iter().any(|&option| self.may_cross(option, port, known));
        known.insert((entry, port), crosses);
        crosses
    }

    /// Calls `visit` with every path from `start`, as positions in the hops, each to its last port. Stops and
    /// returns `false` when `visit` does.
    pub fn visit_paths(&self, start: u32, visit: &mut dyn FnMut(&[u32]) -> bool) -> bool {
        fn follow(plan: &Plan, at: u32, path: &mut Vec<u32>, visit: &mut dyn FnMut(&[u32]) -> bool) -> bool {
            let length = path.len();
            let known = plan.onward(at).known.len() as u32;
            path.extend(at..at + known);
            let entry = plan.hops[(at + known) as usize];
            let go_on = match plan.choices_at(entry) {
                None => visit(path),
                Some(choices) => {
                    choices.options(entry).iter().all(|&option| follow(plan, option, path, visit))
                }
            };
            path.truncate(length);
            go_on
        }
        follow(self, start, &mut Vec::new(), visit)
    }

    /// Calls `visit` with each port on the paths from `start`, and the part of `amount` that crosses it where
    /// every choice divides evenly; several times if several paths cross it.
    pub fn divide(&self, start: u32, amount: u64, visit: &mut dyn FnMut(PortId, u64)) {
        let known = self.onward(start).known;
        known.iter().for_each(|&port| visit(port, amount));
        let entry = self.hops[start as usize + known.len()];
        let Some(choices) = self.choices_at(entry) else { return };
        let options = choices.options(entry);
        let (amount, count) = (u128::from(amount), options.len() as u128);
        // Parts that add up to the whole.
        let up_to = |i: u128| (amount * i / count) as u64;
        for (i, &option) in (0..).zip(options) {
            self.divide(option, up_to(i + 1) - up_to(i), visit);
        }
    }

    /// Starts of the routes that data of a flow may take, besides [`crate::plan::Flow::path`],
    /// because its source chooses between them (failures apart).
    pub fn other_routes(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        let labelled = self.labels().map_or(&[][..], |labels| labels.routes(flow));
        self.other_route(flow).into_iter().chain(distinct(labelled, self.flows[flow as usize].path))
    }

    /// Likewise starts of the routes of its ACKs, besides [`crate::plan::Flow::ack_path`].
    pub fn other_ack_routes(&self, flow: u32) -> impl Iterator<Item = u32> + '_ {
        let labelled = self.labels().map_or(&[][..], |labels| labels.ack_routes(flow));
        distinct(labelled, self.flows[flow as usize].ack_path)
    }

    pub fn labels(&self) -> Option<&Labels> {
        match &self.load_balancing {
            LoadBalancing::Labels(labels) => Some(labels),
            LoadBalancing::Ecmp | LoadBalancing::Packets(_) => None,
        }
    }
}

/// The starts of labelled routes besides `first`, each once.
fn distinct(routes: &[u32], first: u32) -> impl Iterator<Item = u32> + '_ {
    let is_new = move |&i: &usize| routes[i] != first && !routes[..i].contains(&routes[i]);
    (0..routes.len()).filter(is_new).map(|i| routes[i])
}

#[inline]
pub fn is_choice(entry: u32) -> bool {
    (CHOICES..crate::plan::FRAME_CORRUPTED).contains(&entry)
}
