//! Routes of flows and, from them, the flows' ideal completion times.

use super::ate::{self, Choices};
use super::{Context, LAST, Slow, hop, host, node, offered::Offer, offered::Offers, offered::flow_key};
use crate::error::Error;
use crate::ideal::{self, Hop, Message};
use crate::names;
use crate::plan::{DELIVER, ENDS, EXPIRE, Flow, Waits};
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_net::import::roles::matches;
use xoff_net::import::static_routes;
use xoff_net::routing::{Ends, Override, Route, RouteError, Router, RoutingKind, RoutingSpec, TTL};
use xoff_net::topology::{NodeId, NodeKind, PortId, Topology};
use xoff_net::units::Span;

/// The router, and its results.
pub(super) struct Routes {
    pub(super) router: Router,
    /// The static routes, and which of them a flow has met.
    overrides: Vec<(Override, bool)>,
    /// ACKs return over the same nodes.
    pub(super) mirrored: bool,
    /// Sources choose the first hop of their flows.
    pub(super) choices: Option<Choices>,
    /// Inner port and its rate of each slow host.
    pub(super) inner: BTreeMap<NodeId, (PortId, u64)>,
    /// All routes; see [`crate::plan::Plan::hops`].
    pub(super) hops: Vec<u32>,
    /// Rate of the fastest sender's port in use, in bits per second.
    pub(super) fastest: u64,
    /// Longest unloaded round trip of a full packet and its ACK, in picoseconds.
    pub(super) longest: Time,
    /// When the last flow ends at the earliest.
    pub(super) end: Time,
}

pub(super) fn kind(cx: &Context<'_>, topology: &Topology) -> RoutingKind {
    let routing = &cx.scenario.routing;
    routing.kind.unwrap_or(match topology.cube {
        None if topology.groups.is_some() => RoutingKind::Dragonfly,
        None => RoutingKind::ShortestPath,
        Some(_) if routing.overrides.is_empty() => RoutingKind::Bcube,
        Some(_) => RoutingKind::ShortestPath,
    })
}

/// The static routes of `routing.overrides_file`, each for one host.
fn from_file(cx: &Context<'_>, topology: &Topology) -> Result<Vec<Override>, Error> {
    let Some(name) = &cx.scenario.routing.overrides_file else { return Ok(Vec::new()) };
    let text = cx.file("routing.overrides_file", name)?;
    let rows = static_routes(&text).map_err(|e| Error::in_file(name, &text, e))?;
    let mut overrides = Vec::new();
    for row in rows {
        let refused =
            |message: String, help: String| Error::in_line(name, &text, row.line, message).with_help(help);
        let node = |name: &str| names::node(topology, name).map_err(|e| refused(e.message, e.help));
        let (at, via) = (node(&row.at)?, node(&row.via)?);
        let of = |&host: &NodeId| matches(&row.to, &topology.nodes[host as usize].name);
        let hosts: Vec<NodeId> = topology.hosts().filter(of).collect();
        if hosts.is_empty() {
            return Err(refused(format!("no host is called `{}`", row.to), names::extent(topology)));
        }
        let next = topology.nodes[at as usize].ports.iter().any(|&port| topology.neighbour(port) == via);
        if !next {
            let message = format!("{} is not a neighbour of {}", row.via, row.at);
            return Err(refused(message, "`xoff topo --json` lists the links".to_string()));
        }
        let relays = topology.relay_hosts || topology.nodes[via as usize].kind == NodeKind::Switch;
        if !relays && hosts != [via] {
            let message = format!("{} is a host that does not relay", row.via);
            return Err(refused(message, "write a switch, or the destination".to_string()));
        }
        overrides.extend(hosts.into_iter().filter(|&to| to != at).map(|to| Override { at, to, via }));
    }
    Ok(overrides)
}

/// The tiers of `routing.tiers`, by node; `None` for the router's own.
fn tiers(cx: &Context<'_>, topology: &Topology, kind: RoutingKind) -> Result<Option<Vec<u32>>, Error> {
    let given = &cx.scenario.routing.tiers;
    if given.is_empty() {
        return Ok(None);
    }
    let key = "routing.tiers";
    if kind != RoutingKind::ValleyFree {
        return cx.refuse(
            key,
            "`tiers` applies to valley-free routing only",
            "write kind = \"valley-free\", or remove `tiers`",
        );
    }
    let mut tiers = vec![0; topology.nodes.len()];
    let mut met = vec![false; given.iter().map(Vec::len).sum()];
    for (id, node) in topology.nodes.iter().enumerate() {
        if node.kind == NodeKind::Host || topology.is_relay(id as NodeId) {
            continue;
        }
        let patterns = (1..).zip(given).flat_map(|(tier, names)| names.iter().map(move |name| (tier, name)));
        let found: Vec<(usize, u32)> = patterns
            .enumerate()
            .filter(|(_, (_, pattern))| matches(pattern, &node.name))
            .map(|(i, (tier, _))| (i, tier))
            .collect();
        found.iter().for_each(|&(i, _)| met[i] = true);
        let (Some(&(_, lowest)), Some(&(_, highest))) = (found.first(), found.last()) else {
            let help = "each switch needs a tier; `*` in a name is any text";
            return cx.refuse(key, format!("switch {} has no tier", node.name), help);
        };
        if lowest != highest {
            let message = format!("switch {} is on two tiers, {lowest} and {highest}", node.name);
            return cx.refuse(key, message, "write names that overlap in no switch");
        }
        tiers[id] = lowest;
    }
    if let Some(unused) = met.iter().position(|met| !met) {
        let name = given.iter().flatten().nth(unused).map_or("", String::as_str);
        return cx.refuse(key, format!("no switch is called `{name}`"), names::extent(topology));
    }
    // A relay is in the middle of a link: one step above the switch next to it.
    for relay in 0..topology.nodes.len() {
        if topology.is_relay(relay as NodeId) {
            let near = topology.nodes[relay].ports.first().map(|&port| topology.neighbour(port));
            tiers[relay] = near.map_or(0, |near| tiers[near as usize] + 1);
        }
    }
    Ok(Some(tiers))
}

/// The node of `routing.root`; `None` for the router's own.
fn root(cx: &Context<'_>, topology: &Topology, kind: RoutingKind) -> Result<Option<NodeId>, Error> {
    let Some(name) = &cx.scenario.routing.root else { return Ok(None) };
    let key = "routing.root";
    if kind != RoutingKind::UpDown {
        return cx.refuse(
            key,
            "`root` applies to up-down routing only",
            "write kind = \"up-down\", or remove `root`",
        );
    }
    let root = node(cx, topology, key, name)?;
    if topology.nodes[root as usize].kind == NodeKind::Host && !topology.relay_hosts {
        return cx.refuse(key, format!("{name} is a host that does not relay"), "write the name of a switch");
    }
    Ok(Some(root))
}

impl Routes {
    pub(super) fn new(
        cx: &Context<'_>,
        topology: &Topology,
        slow: &BTreeMap<NodeId, Slow>,
    ) -> Result<Self, Error> {
        let routing = &cx.scenario.routing;
        let kind = kind(cx, topology);
        let mut overrides = Vec::new();
        for (i, o) in routing.overrides.iter().enumerate() {
            let at = |key: &str| format!("routing.overrides[{i}].{key}");
            overrides.push(Override {
                at: node(cx, topology, &at("at"), &o.at)?,
                to: host(cx, topology, &at("to"), &o.to)?,
                via: node(cx, topology, &at("via"), &o.via)?,
            });
        }
        overrides.extend(from_file(cx, topology)?);
        let seed = routing.seed.unwrap_or(cx.scenario.run.seed);
        let ttl = routing.ttl.unwrap_or(TTL);
        if ttl < 2 {
            return cx.out_of_range(
                "routing",
                "ttl",
                ttl,
                "write 2 to 255: a path between two hosts has at least two links",
            );
        }
        let spec = RoutingSpec { kind, hash: routing.hash, seed, ttl };
        let router = Router::new(topology, &spec, &overrides)
            .map_err(|e| cx.doc.error(&format!("routing.{}", e.key), e.message, e.help))?;
        let router = match tiers(cx, topology, kind)? {
            Some(tiers) => router.with_tiers(tiers),
            None => router,
        };
        let router = match root(cx, topology, kind)? {
            Some(root) => router.with_root(topology, root),
            None => router,
        };
        Ok(Routes {
            router,
            overrides: overrides.into_iter().map(|o| (o, false)).collect(),
            mirrored: kind == RoutingKind::Bcube,
            choices: ate::read(cx, topology)?,
            inner: slow.iter().map(|(&host, s)| (host, (s.receiver.rx, s.rate))).collect(),
            hops: Vec::new(),
            fastest: 0,
            longest: 0,
            end: 0,
        })
    }

    /// Routes every offer and works out its ideal completion time.
    pub(super) fn flows(
        &mut self,
        cx: &mut Context<'_>,
        topology: &Topology,
        offers: &Offers,
        lane_of: &dyn Fn(u8) -> u8,
    ) -> Result<Vec<Flow>, Error> {
        let packet = cx.packet;
        let ack_every = cx.scenario.transport.ack_every.max(1);
        let ack_priority = cx.ack_priority();
        let pods = super::pods::alone(cx, topology);
        let one = Message { size: u64::from(packet.mtu), pace: 0, ack_every: 1 };
        let mut known: Option<(Vec<Hop>, Vec<Hop>)> = None;
        let mut flows = Vec::with_capacity(offers.offers.len());
        let mut lost = 0u64;
        let (mut data, mut ack): (Vec<Hop>, Vec<Hop>) = (Vec::new(), Vec::new());
        // Of the other route, where the source chooses between two.
        let mut other: Vec<Hop> = Vec::new();
        // The approximate earliest time at which each gate opens; flows that open it come before the flows
        // after it.
        let mut opening: Vec<Time> = vec![0; offers.gates.len()];
        let mut waits = Waits::new(&offers.gates);
        waits.begin(&offers.gates, &mut |gate, at| opening[gate as usize] = at);
        for (i, o) in offers.offers.iter().enumerate() {
            cx.go_on_at(i)?;
            let table = usize::from(o.class);
            let key = |from: NodeId, to: NodeId| flow_key(o, from, to);
            let fail = |e: RouteError| unroutable(cx, table, &e);
            let explicit = offers.explicit.get(&o.class).map(|routes| &routes[o.position as usize]);
            let there = match explicit {
                Some(route) => route.clone(),
                None => self.router.route(o.src, o.dst, key(o.src, o.dst)).map_err(fail)?,
            };
            let mirrored = explicit.is_some() || self.mirrored;
            let back = match mirrored.then(|| self.router.reverse(&there)).flatten() {
                Some(route) => route,
                None => self.router.route(o.dst, o.src, key(o.dst, o.src)).map_err(fail)?,
            };
            let completes = there.ends == Ends::Deliver && back.ends == Ends::Deliver;
            lost += u64::from(!completes);
            if self.hops.len() + 3 * (self.router.ttl() + 2) > u32::MAX as usize {
                let message = format!("the routes of {} flows need too much memory", offers.offers.len());
                return cx.refuse("traffic", message, "send fewer flows");
            }
            let start = o.after.map_or(o.start, |gate| opening[gate as usize].max(o.start));
            let path = self.keep(topology, &there, o.dst, &mut data);
            let ack_path = self.keep(topology, &back, o.src, &mut ack);
            let chosen = if explicit.is_some() { None } else { Some((o, &there)) };
            let chooses = self.choose(topology, path, chosen, &mut other).map_err(fail)?;
            let packets = packet.packets(o.size);
            if packets > u64::from(u32::MAX) {
                let message = format!("a flow of {} B has too many packets: {packets}", o.size);
                let help =
                    format!("the maximum is {} packets: send fewer bytes, or raise transport.mtu", u32::MAX);
                return cx.refuse(&size_key(cx, table), message, help);
            }
            let ideal = if completes {
                let message = Message { size: o.size, pace: o.pace, ack_every };
                let mut ideal = match &pods {
                    Some(pods) => pods.completion(o.src, o.dst, o.size),
                    None => ideal::completion(&packet, &message, &data, &ack),
                };
                if chooses {
                    // The better of the two.
                    ideal = ideal.min(ideal::completion(&packet, &message, &other, &ack));
                }
                // A start and its completion must both fit the clock.
                let ideal = ideal.filter(|t| t.checked_add(start).is_some_and(|end| end <= LAST));
                ideal.ok_or_else(|| {
                    let message = format!(
                        "a flow of {} B from {} to {} would end after {}, the maximum of the simulator's clock",
                        o.size,
                        topology.nodes[o.src as usize].name,
                        topology.nodes[o.dst as usize].name,
                        Span(LAST)
                    );
                    let help = match o.after {
                        None => "send fewer bytes, use faster links, or start earlier",
                        Some(_) => "send fewer bytes, run fewer rounds, or shorten the time between them",
                    };
                    cx.doc.error(&size_key(cx, table), message, help)
                })?
            } else {
                0
            };
            self.end = self.end.max(start.saturating_add(ideal));
            if let Some(gate) = o.opens {
                let at = start.saturating_add(ideal);
                waits.count_down(&offers.gates, gate, at, &mut |gate, at| opening[gate as usize] = at);
            }
            self.fastest = self.fastest.max(data[0].rate);
            if chooses {
                self.fastest = self.fastest.max(other[0].rate);
            }
            // Flows of a table mostly share their routes' delays: the same sum is worked out once.
            if completes && known.as_ref().is_none_or(|(d, a)| *d != data || *a != ack) {
                let trip = ideal::completion(&packet, &one, &data, &ack).unwrap_or(Time::MAX);
                known = Some((data.clone(), ack.clone()));
                self.longest = self.longest.max(trip);
            }
            flows.push(Flow {
                src: o.src,
                dst: o.dst,
                size: o.size,
                start: o.start,
                after: o.after,
                opens: o.opens,
                class: o.class,
                lane: lane_of(o.priority),
                ack_lane: lane_of(ack_priority.unwrap_or(o.priority)),
                path,
                ack_path,
                pace: o.pace,
                ideal,
            });
        }
        if lost > 0 && cx.scenario.run.duration.is_none() {
            let message = format!(
                "the run would never end: {lost} of {} flows loop, and their packets expire and are retransmitted",
                flows.len()
            );
            let help =
                "add run.duration, or change the overrides: each next hop must be nearer to the destination";
            return Err(cx.doc.error("routing.overrides", message, help).with_key("run.duration"));
        }
        if lost > 0 {
            let message = format!(
                "{lost} of {} flows cannot complete: their route loops until packets expire",
                flows.len()
            );
            cx.warn("routing.overrides", message);
        }
        for (i, _) in self.overrides.iter().enumerate().filter(|(_, (_, met))| !met) {
            let message = "had no effect: no flow to that destination crosses it";
            // Those of a file may be of a larger network.
            if i < cx.scenario.routing.overrides.len() {
                cx.warn(format!("routing.overrides[{i}]"), message);
            }
        }
        Ok(flows)
    }

    /// Whether the source of the next flow chooses between its route, which is kept
    /// at `path`, and another one, which is kept now; leaves that one's hops in
    /// `facts`. There is no choice where the scenario spells the route out (`None`).
    fn choose(
        &mut self,
        topology: &Topology,
        path: u32,
        routed: Option<(&Offer, &Route)>,
        facts: &mut Vec<Hop>,
    ) -> Result<bool, RouteError> {
        let Some(choices) = &self.choices else { return Ok(false) };
        let mut starts = [path; 2];
        if let Some((offer, route)) = routed
            && let Some(both) = choices.of(&self.router, topology, offer.src, offer.dst)?
        {
            let other = usize::from(both[0] == *route);
            debug_assert_eq!(both[1 - other], *route, "the hash chooses among the same two");
            starts[other] = self.keep(topology, &both[other], offer.dst, facts);
        }
        self.choices.iter_mut().for_each(|choices| choices.routes.push(starts));
        Ok(starts[0] != starts[1])
    }

    /// Adds a route to the pool, which has room; leaves its hops in `facts`.
    fn keep(&mut self, topology: &Topology, route: &Route, dst: NodeId, facts: &mut Vec<Hop>) -> u32 {
        let start = self.hops.len() as u32;
        for (o, met) in self.overrides.iter_mut().filter(|(o, met)| !met && o.to == dst) {
            let crosses =
                |&p: &PortId| topology.ports[p as usize].node == o.at && topology.neighbour(p) == o.via;
            *met = route.ports.iter().any(crosses);
        }
        facts.clear();
        facts.extend(route.ports.iter().map(|&p| hop(topology, p)));
        let inner = self.inner.get(&dst);
        if route.ends == Ends::Deliver {
            facts.extend(inner.map(|&(_, rate)| Hop { rate, delay: 0 }));
        }
        self.hops.extend_from_slice(&route.ports);
        end(&mut self.hops, route.ends, inner.map(|&(rx, _)| rx));
        start
    }

    /// The route along `nodes` of the key `key`, sender first and receiver last.
    pub(super) fn explicit(
        &self,
        cx: &Context<'_>,
        topology: &Topology,
        key: &str,
        nodes: Vec<NodeId>,
    ) -> Result<Route, Error> {
        let nodes = through(topology, nodes);
        let help = "each node of a path must have a link to the next; `xoff topo` lists the links";
        self.router.explicit(&nodes).map_err(|e| cx.doc.error(key, e.to_string(), help))
    }
}

/// The nodes of a path through the relays of long links, which its writer need
/// not name: between two that a long link joined, its relays are put.
fn through(topology: &Topology, nodes: Vec<NodeId>) -> Vec<NodeId> {
    let mut out: Vec<NodeId> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let before = out.last().copied();
        if let Some(port) = before.and_then(|b| topology.relayed(b, node).first().copied()) {
            out.extend([topology.ports[port as usize].node, topology.neighbour(port)]);
        }
        out.push(node);
    }
    out
}

/// The run of ports that starts at `start`, with its end.
pub(super) fn segment(hops: &[u32], start: u32) -> &[u32] {
    let tail = &hops[start as usize..];
    let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
    &tail[..=end]
}

/// A route with its end; `inner` is the inner port of its host, if that is slow.
pub(super) fn ended(mut ports: Vec<PortId>, ends: Ends, inner: Option<PortId>) -> Vec<u32> {
    end(&mut ports, ends, inner);
    ports
}

/// Adds the end of a route.
fn end(hops: &mut Vec<u32>, ends: Ends, inner: Option<PortId>) {
    match ends {
        Ends::Expire => hops.push(EXPIRE),
        Ends::Deliver => {
            hops.extend(inner);
            hops.push(DELIVER);
        }
    }
}

/// The key that says how large the flows of a table are.
fn size_key(cx: &Context<'_>, table: usize) -> String {
    let at = |key: &str| format!("traffic[{table}].{key}");
    let written = ["size", "sizes", "file"].map(at).into_iter().find(|k| cx.doc.get(k).is_some());
    written.unwrap_or_else(|| at("kind"))
}

pub(super) fn unroutable(cx: &Context<'_>, table: usize, e: &RouteError) -> Error {
    let help = match e {
        RouteError::NoPath { .. } => "connect the two in [topology], or remove one of them from this traffic",
        RouteError::TooLong { .. } => "set routing.ttl, up to 255, or make the network smaller",
        _ => "check [routing] and [topology]; `xoff topo` shows the network",
    };
    let base = format!("traffic[{table}]");
    let key = ["dst", "to", "from"].iter().map(|k| format!("{base}.{k}")).find(|k| cx.doc.get(k).is_some());
    cx.doc.error(&key.unwrap_or(base), e.to_string(), help)
}
