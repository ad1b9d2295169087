//! The congestion control: its view of the scenario, and what it requires of transport and routes.

use super::{Context, Routed, transport};
use crate::balancing::{self, is_choice};
use crate::error::{Error, Warning};
use crate::ideal::{self, Message};
use crate::plan::{DELIVER, ENDS, Faults, PacketFormat};
use crate::scenario::{
    CongestionControl, CongestionControlKeys, Ecn, MarkAt, MarkOf, Scenario, TransportKind,
};
use std::cmp::Reverse;
use xoff_kernel::time::Time;
use xoff_net::units::{Bandwidth, Bytes};
use xoff_schemes::congestion_control::CongestionControlParams;
use xoff_schemes::congestion_control::keys::{Flows, Setting};
use xoff_schemes::congestion_control::telemetry::{EACH_HOP, MOST_HOPS};
use xoff_schemes::flow_control::keys::Complaint;
use xoff_schemes::transport::FlowWindow;

impl Context<'_> {
    /// Asks the congestion control. Returns its answer and its warnings.
    fn ask_control<T>(
        &self,
        routed: &Routed<'_>,
        lane_of: &dyn Fn(u8) -> u8,
        question: impl FnOnce(&CongestionControlKeys, CongestionControl, &mut Setting<'_>) -> T,
    ) -> (T, Vec<Warning>) {
        let (doc, s) = (self.doc, self.scenario);
        let balancing = s.routing.load_balancing;
        let control = s.transport.congestion_control;
        let mut setting = Setting {
            control: control.name(),
            is_written: &|key| doc.get(key).is_some(),
            packet: self.packet,
            trims: s.flow_control.trims(),
            by_packet: balancing.by_packet().then(|| balancing.name()),
            slow_receivers: !s.slow_receiver.is_empty(),
            flows: &View { scenario: s, packet: self.packet, routed },
            lane_of,
            warnings: Vec::new(),
        };
        (question(&s.congestion, control, &mut setting), setting.warnings)
    }

    /// Bytes of telemetry in each data packet and each ACK.
    pub(super) fn telemetry(&self) -> Result<u32, Error> {
        let s = self.scenario;
        s.congestion.telemetry(s.transport.congestion_control).map_err(|c| self.located(c))
    }
}

/// The view of a congestion control on the flows.
struct View<'a> {
    scenario: &'a Scenario,
    packet: PacketFormat,
    routed: &'a Routed<'a>,
}

impl Flows for View<'_> {
    fn number(&self) -> usize {
        self.routed.flows.len()
    }

    fn base_rtt(&self) -> Result<Time, Complaint> {
        transport::base_rtt(self.scenario, self.routed.routes)
    }

    /// A flow's line rate is its own rate, if it has one, or that of its host's port. Of two between which the host
    /// chooses, the faster one.
    fn lines(&self, line: &mut dyn FnMut(u64)) {
        let Routed { topology, routes, flows } = *self.routed;
        let rate = |start: u32| {
            let port = routes.hops[start as usize] as usize;
            topology.ports.get(port).map_or(u64::MAX, |p| p.rate)
        };
        for (id, flow) in flows.iter().enumerate() {
            let chosen =
                routes.choices.as_ref().map_or(0, |c| c.routes[id].map(rate).into_iter().max().unwrap_or(0));
            let rate = rate(flow.path).max(chosen);
            line(if flow.pace > 0 { rate.min(flow.pace) } else { rate });
        }
    }

    fn trips(&self, trip: &mut dyn FnMut(u64, Time)) {
        let Routed { topology, routes, flows } = *self.routed;
        let one = Message { size: u64::from(self.packet.mtu), pace: 0, ack_every: 1 };
        let (mut data, mut ack) = (Vec::new(), Vec::new());
        for flow in flows.iter().filter(|flow| flow.ideal > 0) {
            transport::links(topology, &routes.hops, flow.path, &mut data);
            transport::links(topology, &routes.hops, flow.ack_path, &mut ack);
            let time = ideal::completion(&self.packet, &one, &data, &ack).unwrap_or(Time::MAX);
            trip(data.len() as u64, time);
        }
    }
}

/// The marking that a congestion control brings, where the scenario has none.
pub(super) fn default_ecn(cx: &Context<'_>) -> Option<Ecn> {
    let s = cx.scenario;
    s.congestion.marking(s.transport.congestion_control).map(|marking| Ecn {
        k_min: Bytes(marking.from),
        k_max: Bytes(marking.to),
        p_max: marking.most,
        per: Some(Bandwidth(marking.per)),
        at: if marking.leaves { MarkAt::Dequeue } else { MarkAt::Enqueue },
        of: MarkOf::Priority,
        last_hop: marking.last_hop,
        hosts: true,
    })
}

/// Refuses a control that grants credit over a transport that asks for none.
pub(super) fn check_transport(cx: &Context<'_>) -> Result<(), Error> {
    let t = &cx.scenario.transport;
    let control = t.congestion_control;
    if control.traits().most_credit.is_none() || t.kind.traits().asks_for_credit {
        return Ok(());
    }
    let those = TransportKind::any(|traits| traits.asks_for_credit);
    let message =
        format!("`{}` requires the transport {those}, and this run uses `{}`", control.name(), t.kind.name());
    let kinds = TransportKind::values(|traits| traits.asks_for_credit);
    let help = format!("write transport.kind = {kinds}, or choose another congestion control");
    cx.refuse("transport.congestion_control", message, help)
}

/// Refuses first windows with more credit than packets can ask for.
pub(super) fn check_windows(cx: &Context<'_>, windows: &[FlowWindow]) -> Result<(), Error> {
    let control = cx.scenario.transport.congestion_control;
    let Some(most) = control.traits().most_credit else { return Ok(()) };
    let full = u64::from(cx.packet.mtu + cx.packet.header);
    let largest = windows.iter().map(|f| u64::from(f.window) * full).max().unwrap_or(0);
    if largest <= most {
        return Ok(());
    }
    let message = format!("a first window of {largest} B is out of range under `{}`", control.name());
    let help = format!("write transport.window so that its packets have at most {most} B with headers");
    cx.refuse("transport.window", message, help)
}

/// The queueing delay that counts as none, in picoseconds.
pub(super) fn target_delay(cx: &Context<'_>, routed: &Routed<'_>) -> Result<Time, Complaint> {
    cx.ask_control(routed, &|_| 0, |keys, control, cx| keys.target_delay(control, cx)).0
}

pub(super) fn build(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
    lane_of: &dyn Fn(u8) -> u8,
) -> Result<CongestionControlParams, Error> {
    let chosen = cx.scenario.transport.congestion_control;
    for table in CongestionControlKeys::NAMES {
        if !chosen.parts().iter().any(|part| part.name() == *table) {
            cx.warn_of_table(table, format_args!("transport.congestion_control is not \"{table}\""));
        }
    }
    let (params, mut warnings) =
        cx.ask_control(routed, lane_of, |keys, control, cx| keys.params(control, cx));
    cx.warnings.append(&mut warnings);
    params.map_err(|complaint| cx.located(complaint))
}

/// Returns an error for routes with more hops than the packets' telemetry can record: the routes of the flows, and
/// those after failures. `ports` are those of the scenario, without the inside of slow receivers.
pub(super) fn check_hops(
    cx: &Context<'_>,
    control: &CongestionControlParams,
    routed: &Routed<'_>,
    balancing: &balancing::LoadBalancing,
    faults: &Faults,
) -> Result<(), Error> {
    let Some(room) = control.hops() else { return Ok(()) };
    let Routed { topology, routes, flows } = *routed;
    // Every device after the sender records the link by which it forwards.
    let rate_of = |start: u32| {
        let (mut at, mut links) = (start as usize, 0);
        let end = loop {
            let entry = routes.hops[at];
            at += 1;
            if entry < ENDS {
                links += usize::from((entry as usize) < topology.ports.len());
            } else if let (balancing::LoadBalancing::Packets(choices), true) = (balancing, is_choice(entry)) {
                // All further paths have the same length.
                at = choices.options(entry)[0] as usize;
            } else {
                break entry;
            }
        };
        // Packets that expire on their path are never acknowledged.
        if end == DELIVER { links.saturating_sub(1) } else { 0 }
    };
    let own = (0u32..).zip(flows).map(|(id, f)| (id, f.path));
    let choices = routes.choices.as_ref().map_or(&[][..], |c| &c.routes);
    let chosen = (0u32..).zip(choices).flat_map(|(id, starts)| starts.map(|start| (id, start)));
    let all = own.chain(chosen).chain(faults.later_routes()).map(|(id, start)| (rate_of(start), Reverse(id)));
    let Some((most, Reverse(flow))) = all.max() else { return Ok(()) };
    if most <= usize::from(room) {
        return Ok(());
    }
    let name = |node: u32| &topology.nodes[node as usize].name;
    let f = &flows[flow as usize];
    let message = format!(
        "packets of flow {flow}, {} to {}, cross {most} devices that add telemetry, but have room for {room}",
        name(f.src),
        name(f.dst)
    );
    let hops = format!("{}.hops", control.name());
    let key = if cx.doc.get(&hops).is_some() { &hops } else { "transport.congestion_control" };
    let help = match most <= usize::from(MOST_HOPS) {
        true => format!("set {hops} to {most}: each hop adds {} B to every packet", EACH_HOP),
        false => "choose another congestion control".to_string(),
    };
    cx.refuse(key, message, help)
}
