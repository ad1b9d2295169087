//! The transport: its view of the scenario, and what the other keys of `[transport]` say.

pub(super) mod retries;

use super::{Context, Routed, congestion, hop, routes::Routes};
use crate::error::Error;
use crate::ideal::{self, Hop, Message};
use crate::plan::{Arbiter, ENDS};
use crate::scenario::{
    self, CongestionControl, LoadBalancing, Scenario, Traffic, TransportKeys, TransportKind as Kind,
};
use xoff_kernel::time::Time;
use xoff_net::topology::Topology;
use xoff_net::units::{Span, Threshold};
use xoff_schemes::congestion_control::keys::{Sets, timer};
use xoff_schemes::flow_control::keys::Complaint;
use xoff_schemes::transport::keys::{Route, Routes as View, Setting, timeout};
use xoff_schemes::transport::{FlowWindow, TransportParams};

/// The transport, and the windows of flows where each has its own.
pub(super) fn build(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
) -> Result<(TransportParams, Vec<FlowWindow>), Error> {
    let t = &cx.scenario.transport;
    let (kind, ack_every) = (t.kind, t.ack_every);
    if ack_every == 0 {
        let message = "ack_every = 0 is out of range: without ACKs no flow completes";
        return cx.refuse("transport.ack_every", message, "write a whole number, 1 or more");
    }
    timeout("transport.rto", t.rto).map_err(|c| cx.located(c))?;
    warn_of_tables(cx, kind);
    retries::check(cx);
    check_trims(cx)?;
    congestion::check_transport(cx)?;
    let retries = retries::limit(cx)?;
    let nack_retries = retries::nack_limit(cx)?;
    let (doc, s) = (cx.doc, cx.scenario);
    let balancing = s.routing.load_balancing;
    let mut setting = Setting {
        transport: kind.name(),
        is_written: &|key| doc.get(key).is_some(),
        keys_of: &|table| doc.keys(table),
        packet: cx.packet,
        control: t.congestion_control,
        ack_every,
        rto: t.rto,
        window: t.window,
        retries,
        nack_retries,
        marks: s.ecn.is_some() || s.priority.iter().any(|p| p.ecn.is_some()),
        explains: s.measure.explains(),
        counts_marks: balancing.counts_marks().then(|| balancing.name()),
        routes: &FlowRoutes { cx, routed },
        warnings: Vec::new(),
    };
    let resolved = match t.window {
        Some(Threshold::Bytes(window)) => {
            setting.check_window("transport.window", window.0, &window.to_string())
        }
        _ => Ok(()),
    }
    .and_then(|()| s.transports.resolve(kind, &mut setting));
    let mut warnings = setting.warnings;
    let resolved = resolved.map_err(|complaint| cx.located(complaint))?;
    cx.warnings.append(&mut warnings);
    congestion::check_windows(cx, &resolved.windows)?;
    let variable_window = variable_window(cx, routed.routes)?;
    let (kind, rto, window) = (resolved.params, resolved.rto, resolved.window);
    Ok((TransportParams { kind, ack_every, rto, retries, window, variable_window }, resolved.windows))
}

/// The view of a transport on the routes of flows.
struct FlowRoutes<'a> {
    cx: &'a Context<'a>,
    routed: &'a Routed<'a>,
}

impl View for FlowRoutes<'_> {
    fn extremes(&self) -> (u64, Time) {
        (self.routed.routes.fastest, self.routed.routes.longest)
    }

    fn base_rtt(&self) -> Result<Time, Complaint> {
        base_rtt(self.cx.scenario, self.routed.routes)
    }

    fn target_delay(&self) -> Result<Time, Complaint> {
        congestion::target_delay(self.cx, self.routed)
    }

    fn each(&self, report: &mut dyn FnMut(Route)) {
        let Routed { topology, routes, flows } = *self.routed;
        let packet = self.cx.packet;
        let one = Message { size: u64::from(packet.mtu), pace: 0, ack_every: 1 };
        let (mut data, mut ack) = (Vec::new(), Vec::new());
        for flow in flows {
            links(topology, &routes.hops, flow.path, &mut data);
            links(topology, &routes.hops, flow.ack_path, &mut ack);
            let long = |start| route(topology, &routes.hops, start).any(|p| topology.ports[p as usize].long);
            report(Route {
                slowest: data.iter().map(|h| h.rate).min().unwrap_or(1),
                round_trip: match flow.ideal {
                    0 => 0,
                    _ => ideal::completion(&packet, &one, &data, &ack).unwrap_or(Time::MAX),
                },
                longest_link: data.iter().chain(&ack).map(|h| h.delay).max().unwrap_or(0),
                long: [flow.path, flow.ack_path].into_iter().any(long),
            });
        }
    }
}

/// Refuses trimmed packets without a transport that understands them.
fn check_trims(cx: &Context<'_>) -> Result<(), Error> {
    let (trims, kind) = (cx.scenario.flow_control.trims(), cx.scenario.transport.kind);
    if !trims || kind.traits().understands_trimmed {
        return Ok(());
    }
    let key = if cx.doc.get("transport.kind").is_some() { "transport.kind" } else { "flow_control.scheme" };
    let message = format!(
        "the transport `{}` does not understand trimmed packets, which `{}` sends",
        kind.name(),
        cx.scenario.flow_control.name()
    );
    let those = Kind::values(|traits| traits.understands_trimmed);
    cx.refuse(key, message, format!("write transport.kind = {those}, or choose another flow_control.scheme"))
}

/// The arbiter that decides which flows send, if there is one.
pub(super) fn arbiter(cx: &Context<'_>) -> Result<Option<Arbiter>, Error> {
    let s = cx.scenario;
    let rule = match s.transport.arbiter {
        scenario::Arbiter::None => return Ok(None),
        scenario::Arbiter::Srpt => Arbiter::Srpt,
        scenario::Arbiter::SrptStrict => Arbiter::SrptStrict,
    };
    let flow_control = s.flow_control.suits_arbiter();
    let paced = s.traffic.iter().any(|t| matches!(t, Traffic::Flow(flow) if flow.rate.is_some()));
    let chosen_by_senders = format!(
        "paths that senders choose: [routing.ate], {}",
        LoadBalancing::any(LoadBalancing::by_senders)
    );
    let kinds = Kind::values(|traits| traits.suits_arbiter);
    let others = format!("transports other than {}", Kind::any(|traits| traits.suits_arbiter));
    let refused = [
        (!s.transport.kind.traits().suits_arbiter, others.as_str()),
        (s.transport.congestion_control != CongestionControl::None, "transport.congestion_control"),
        (!flow_control, "flow controls other than `pfc` and `none`"),
        (paced, "flows with a `rate`"),
        (s.measure.blocking || s.measure.explains(), "measure.blocking and measure.explain"),
        (!s.failure.is_empty() || !s.loss.is_empty(), "[[failure]] and [[loss]]: it never retransmits"),
        (s.transport.retries.is_some(), "transport.retries: no packet is lost"),
        (s.routing.ate.is_some() || s.routing.load_balancing.by_senders(), &chosen_by_senders),
    ];
    match refused.iter().find(|(there, _)| *there) {
        None => Ok(Some(rule)),
        Some((_, what)) => cx.refuse(
            "transport.arbiter",
            format!("incompatible with {what}"),
            format!("remove one of the two; the arbiter is an ideal upper bound and needs transport.kind = {kinds}"),
        ),
    }
}

fn warn_of_tables(cx: &mut Context<'_>, kind: Kind) {
    let run = kind.name();
    for table in TransportKeys::NAMES.iter().filter(|table| **table != run) {
        cx.warn_of_table(
            table,
            format_args!("it is a table of the transport `{table}`, and this run uses `{run}`"),
        );
    }
    if cx.doc.get("transport.rto").is_some() && !kind.traits().timeouts.is_empty() {
        let keys: Vec<String> = kind.traits().timeouts.iter().map(|key| format!("{run}.{key}")).collect();
        let message = format!("had no effect: the transport `{run}` has {}", keys.join(" and "));
        cx.warn("transport.rto", message);
    }
}

/// T of the window that follows the rate, if there is one.
fn variable_window(cx: &mut Context<'_>, routes: &Routes) -> Result<Option<Time>, Error> {
    let t = &cx.scenario.transport;
    let control = t.congestion_control;
    let traits = control.traits();
    let base = base_rtt(cx.scenario, routes).map_err(|c| cx.located(c))?;
    if t.variable_window.is_some() {
        let name = control.name();
        let why = match traits.sets {
            Sets::Rates => None,
            Sets::Nothing => Some("without transport.congestion_control no flow's rate changes".to_string()),
            Sets::Windows => Some(format!("`{name}` sets a window instead of a rate")),
            Sets::Credit => Some(format!("under `{name}` receivers grant credit")),
        };
        if let Some(why) = why {
            cx.warn("transport.variable_window", format!("had no effect: {why}"));
        }
    }
    let wanted = t.variable_window.unwrap_or(traits.window_follows);
    let window = (wanted && traits.sets == Sets::Rates).then_some(base);
    if window.is_none() && !traits.has_base_rtt {
        if t.base_rtt.is_some() {
            let having = CongestionControl::listed(|traits| traits.has_base_rtt);
            let message = format!("had no effect: it requires transport.variable_window, or one of {having}");
            cx.warn("transport.base_rtt", message);
        }
    } else if base < routes.longest {
        let message = format!(
            "{} is shorter than the longest unloaded round trip, {} ns: flows on that path cannot reach their line rate",
            Span(base),
            routes.longest.div_ceil(1_000)
        );
        cx.warn("transport.base_rtt", message);
    }
    Ok(window)
}

/// T: the base round-trip time.
pub(super) fn base_rtt(scenario: &Scenario, routes: &Routes) -> Result<Time, Complaint> {
    match scenario.transport.base_rtt {
        None => Ok(routes.longest.max(1)),
        Some(given) => timer("transport.base_rtt", given),
    }
}

/// The links of a route of the pool, by egress port. (A slow receiver's inner port is none.)
fn route<'r>(topology: &'r Topology, hops: &'r [u32], start: u32) -> impl Iterator<Item = u32> + 'r {
    let ports = topology.ports.len();
    hops[start as usize..].iter().copied().take_while(|&h| h < ENDS).filter(move |&p| (p as usize) < ports)
}

pub(super) fn links(topology: &Topology, hops: &[u32], start: u32, out: &mut Vec<Hop>) {
    out.clear();
    out.extend(route(topology, hops, start).map(|p| hop(topology, p)));
}
