//! Routes of flows and, from them, the flows' ideal completion times.

use super::{Context, Slow, hop, host, node, offered::Offers};
use crate::error::Error;
use crate::ideal::{self, Hop, Message};
use crate::plan::{DELIVER, EXPIRE, Flow, PacketFormat};
use std::collections::BTreeMap;
use xoff_kernel::random::mix;
use xoff_kernel::time::Time;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::{Ends, Override, Route, RouteError, Router, RoutingKind, RoutingSpec, TTL};
use xoff_net::topology::{NodeId, PortId, Topology};

/// The router, and what it has found.
pub(super) struct Routes {
    pub(super) router: Router,
    /// ACKs return over the same nodes.
    mirrored: bool,
    /// Inner port and its rate of each slow host.
    inner: BTreeMap<NodeId, (PortId, u64)>,
    /// All routes; see [`crate::plan::Plan::hops`].
    pub(super) hops: Vec<u32>,
    /// Rate of the fastest sender's port in use, in bits per second.
    pub(super) fastest: u64,
    /// Longest unloaded round trip of a full packet and its ACK, in picoseconds.
    pub(super) longest: Time,
}

impl Routes {
    pub(super) fn new(
        cx: &Context<'_>,
        topology: &Topology,
        slow: &BTreeMap<NodeId, Slow>,
    ) -> Result<Self, Error> {
        let routing = &cx.scenario.routing;
        let kind = routing.kind.unwrap_or(match cx.scenario.topology {
            TopologySpec::Ndc(_) if routing.overrides.is_empty() => RoutingKind::Bcube,
            _ => RoutingKind::ShortestPath,
        });
        let mut overrides = Vec::new();
        for (i, o) in routing.overrides.iter().enumerate() {
            let at = |key: &str| format!("routing.overrides[{i}].{key}");
            overrides.push(Override {
                at: node(cx, topology, &at("at"), &o.at)?,
                to: host(cx, topology, &at("to"), &o.to)?,
                via: node(cx, topology, &at("via"), &o.via)?,
            });
        }
        let spec =
            RoutingSpec { kind, hash: routing.hash, seed: routing.seed.unwrap_or(cx.scenario.run.seed) };
        let router = Router::new(topology, &spec, &overrides)
            .map_err(|e| cx.doc.error(&format!("routing.{}", e.key), e.message, e.help))?;
        Ok(Routes {
            router,
            mirrored: kind == RoutingKind::Bcube,
            inner: slow.iter().map(|(&host, s)| (host, (s.receiver.rx, s.rate))).collect(),
            hops: Vec::new(),
            fastest: 0,
            longest: 0,
        })
    }

    /// Routes every offer and works out its ideal completion time.
    pub(super) fn flows(
        &mut self,
        cx: &mut Context<'_>,
        topology: &Topology,
        packet: &PacketFormat,
        offers: &Offers,
        lane_of: &dyn Fn(u8) -> u8,
    ) -> Result<Vec<Flow>, Error> {
        let transport = &cx.scenario.transport;
        let ack_every = transport.ack_every.max(1);
        let one = Message { size: u64::from(packet.mtu), pace: 0, ack_every: 1 };
        let needs_round_trip = transport.window.is_some();
        let mut flows = Vec::with_capacity(offers.offers.len());
        let mut lost = 0u64;
        let (mut data, mut ack): (Vec<Hop>, Vec<Hop>) = (Vec::new(), Vec::new());
        for o in &offers.offers {
            let table = usize::from(o.class);
            let key = |from: NodeId, to: NodeId| {
                let pair = u64::from(from) << 32 | u64::from(to);
                mix(mix(pair) ^ mix((u64::from(o.class) << 48) ^ o.position))
            };
            let fail = |e: RouteError| unroutable(cx, table, &e);
            let explicit = offers.explicit.get(&o.class);
            let there = match explicit {
                Some(route) => route.clone(),
                None => self.router.route(o.src, o.dst, key(o.src, o.dst), TTL).map_err(fail)?,
            };
            let back = match explicit.is_some() || self.mirrored {
                true => self.router.reverse(&there),
                false => None,
            };
            let back = match back {
                Some(route) => route,
                None => self.router.route(o.dst, o.src, key(o.dst, o.src), TTL).map_err(fail)?,
            };
            let completes = there.ends == Ends::Deliver && back.ends == Ends::Deliver;
            lost += u64::from(!completes);
            let path = self.keep(topology, &there, o.dst, &mut data);
            let ack_path = self.keep(topology, &back, o.src, &mut ack);
            let ideal = if completes {
                let message = Message { size: o.size, pace: o.pace, ack_every };
                let ideal = ideal::completion(packet, &message, &data, &ack);
                // A start and its completion must both fit the clock.
                let ideal = ideal.filter(|t| t.checked_add(o.start).is_some());
                ideal.ok_or_else(|| {
                    let message =
                        format!("a flow of {} B would take longer than the clock's 213 days", o.size);
                    cx.doc.error(
                        &format!("traffic[{table}].size"),
                        message,
                        "send less, or over faster links",
                    )
                })?
            } else {
                0
            };
            self.fastest = self.fastest.max(data[0].rate);
            if needs_round_trip && completes {
                let trip = ideal::completion(packet, &one, &data, &ack).unwrap_or(Time::MAX);
                self.longest = self.longest.max(trip);
            }
            let priority = cx.scenario.traffic[table].priority();
            flows.push(Flow {
                src: o.src,
                dst: o.dst,
                size: o.size,
                start: o.start,
                class: o.class,
                lane: lane_of(priority),
                ack_lane: lane_of(transport.ack_priority.unwrap_or(priority)),
                path,
                ack_path,
                pace: o.pace,
                ideal,
            });
        }
        if lost > 0 {
            let message = format!(
                "{lost} of {} flows cannot complete: their route loops until packets expire",
                flows.len()
            );
            cx.warn("routing.overrides".to_string(), message);
        }
        Ok(flows)
    }

    /// Adds a route to the pool; leaves its hops in `facts`.
    fn keep(&mut self, topology: &Topology, route: &Route, dst: NodeId, facts: &mut Vec<Hop>) -> u32 {
        let start = u32::try_from(self.hops.len()).expect("the flow count has been bounded");
        facts.clear();
        facts.extend(route.ports.iter().map(|&p| hop(topology, p)));
        self.hops.extend(&route.ports);
        match route.ends {
            Ends::Expire => self.hops.push(EXPIRE),
            Ends::Deliver => {
                if let Some(&(rx, rate)) = self.inner.get(&dst) {
                    self.hops.push(rx);
                    facts.push(Hop { rate, delay: 0 });
                }
                self.hops.push(DELIVER);
            }
        }
        start
    }

    /// The route along the nodes that `traffic[table].path` names.
    pub(super) fn explicit(
        &self,
        cx: &Context<'_>,
        topology: &Topology,
        table: usize,
        names: &[String],
        ends: (NodeId, NodeId),
    ) -> Result<Route, Error> {
        let path = format!("traffic[{table}].path");
        let mut nodes = Vec::new();
        for (i, name) in names.iter().enumerate() {
            nodes.push(node(cx, topology, &format!("{path}[{i}]"), name)?);
        }
        if nodes.first() != Some(&ends.0) || nodes.last() != Some(&ends.1) {
            let message = "the path does not lead from `src` to `dst`";
            return Err(cx.doc.error(&path, message, "name every node, sender first and receiver last"));
        }
        self.router.explicit(&nodes, TTL).map_err(|e| {
            cx.doc.error(
                &path,
                e.to_string(),
                "consecutive nodes of a path are neighbours; `xoff topo` shows the links",
            )
        })
    }
}

/// The error for traffic that has no route.
pub(super) fn unroutable(cx: &Context<'_>, table: usize, e: &RouteError) -> Error {
    let help = match e {
        RouteError::NoPath { .. } => "connect the two in [topology], or take one of them out of this traffic",
        _ => "check [routing] and [topology]; `xoff topo` shows what they make",
    };
    let base = format!("traffic[{table}]");
    let key = ["dst", "to", "from"].iter().map(|k| format!("{base}.{k}")).find(|k| cx.doc.get(k).is_some());
    cx.doc.error(&key.unwrap_or(base), e.to_string(), help)
}
