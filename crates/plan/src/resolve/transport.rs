//! The transport: timeouts and windows.

mod ndp;
pub(super) mod retries;
mod rud;
mod tcp;

use super::{Context, LONGEST, Routed, SHORTEST_TIMER, bytes, congestion, hop, routes::Routes};
use crate::error::Error;
use crate::ideal::{self, Hop, Message};
use crate::plan::{Arbiter, ENDS, FlowWindow};
use crate::scenario::{
    self, CongestionControl, Irn, IrnInter, LoadBalancing, Scenario, Traffic, TransportKind as Kind,
};
use xoff_kernel::time::Time;
use xoff_net::topology::Topology;
use xoff_net::units::{Span, Threshold};
use xoff_schemes::congestion_control::keys::{Sets, timer};
use xoff_schemes::flow_control::keys::Complaint;
use xoff_schemes::transport::irn::Timeouts;
use xoff_schemes::transport::{TransportKind, TransportParams};

/// IRN's NACKs distinguish two packet numbers that differ by less than this.
const LARGEST_WINDOW: u64 = 1 << 24;

/// The transport, and with IRN its parameters for each flow.
pub(super) fn build(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
) -> Result<(TransportParams, Vec<FlowWindow>), Error> {
    let routes = routed.routes;
    let t = &cx.scenario.transport;
    let ack_every = t.ack_every;
    if ack_every == 0 {
        let message = "ack_every = 0 is out of range: without ACKs no flow completes";
        return cx.refuse("transport.ack_every", message, "write a whole number, 1 or more");
    }
    check_timeout(cx, "transport.rto", t.rto)?;
    if let Some(Threshold::Bytes(given)) = t.window {
        check_window(cx, "transport.window", given.0, &given.to_string())?;
    }
    warn_of_tables(cx, t.kind);
    retries::check(cx);
    check_trims(cx)?;
    congestion::check_transport(cx)?;
    match t.kind {
        Kind::GoBackN => {}
        Kind::Irn => return irn(cx, routed),
        Kind::Ndp => return ndp::params(cx, routed),
        Kind::Rud => return rud::params(cx, routed),
        Kind::TcpNewReno | Kind::TcpDctcp => return Ok((tcp::params(cx, routes)?, Vec::new())),
    }
    if t.rto.0 < routes.longest {
        warn_of_timeout(cx, "transport.rto", t.rto, routes.longest);
    }
    let window = window(cx, routes)?;
    let rto = cx.scenario.transport.rto.0;
    let variable_window = variable_window(cx, routes)?;
    let retries = retries::limit(cx)?;
    let params =
        TransportParams { kind: TransportKind::GoBackN, ack_every, rto, retries, window, variable_window };
    Ok((params, Vec::new()))
}

/// Refuses trimmed packets without a transport that understands them.
fn check_trims(cx: &Context<'_>) -> Result<(), Error> {
    let (trims, kind) = (cx.scenario.flow_control.trims(), cx.scenario.transport.kind);
    if trims && !kind.understands_trimmed() {
        let key =
            if cx.doc.get("transport.kind").is_some() { "transport.kind" } else { "flow_control.scheme" };
        let message = format!(
            "the transport `{}` does not understand trimmed packets, which `{}` sends",
            kind.name(),
            cx.scenario.flow_control.name()
        );
        return cx.refuse(
            key,
            message,
            "write transport.kind = \"ndp\" or \"rud\", or choose another flow_control.scheme",
        );
    }
    Ok(())
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
    let refused = [
        (s.transport.kind != Kind::Irn, "transports other than `irn`"),
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
            "remove one of the two; the arbiter is an ideal upper bound and needs transport.kind = \"irn\"",
        ),
    }
}

fn warn_of_tables(cx: &mut Context<'_>, kind: Kind) {
    let tables = [
        (Kind::Irn, &["rto_low", "rto_high"][..]),
        (Kind::TcpNewReno, &["min_rto", "initial_rto"]),
        (Kind::TcpDctcp, &["min_rto", "initial_rto"]),
        (Kind::Ndp, &["rto"]),
        (Kind::Rud, &[]),
    ];
    for (owner, keys) in tables {
        let table = owner.name();
        if owner == kind {
            if cx.doc.get("transport.rto").is_some() && !keys.is_empty() {
                let keys: Vec<String> = keys.iter().map(|key| format!("{table}.{key}")).collect();
                let message = format!("had no effect: the transport `{table}` has {}", keys.join(" and "));
                cx.warn("transport.rto", message);
            }
            continue;
        }
        let run = kind.name();
        cx.warn_of_table(
            table,
            format_args!("it is a table of the transport `{table}`, and this run uses `{run}`"),
        );
    }
}

/// `transport.window` in bytes, where the network has one BDP.
fn window(cx: &Context<'_>, routes: &Routes) -> Result<Option<u64>, Error> {
    let Some(given) = cx.scenario.transport.window else { return Ok(None) };
    let window = given.resolve(routes.fastest, routes.longest);
    let shown = format!("{given} ({})", bytes(window));
    check_window(cx, "transport.window", window, &shown)?;
    check_acks(cx, "transport.window", window)?;
    Ok(Some(window))
}

struct Facts {
    /// Rate of the slowest link, in bits per second.
    slowest: u64,
    inter: bool,
}

fn irn(cx: &mut Context<'_>, routed: &Routed<'_>) -> Result<(TransportParams, Vec<FlowWindow>), Error> {
    let Routed { topology, routes, flows } = *routed;
    let mtu = u64::from(cx.packet.mtu);
    let given = cx.scenario.irn.unwrap_or_default();
    let link_delay = given.inter.link_delay.unwrap_or(IrnInter::LINK_DELAY).0;
    // Longest unloaded round trip of a full packet and its ACK, within and between datacenters.
    let mut longest: [Time; 2] = [0; 2];
    let mut facts = Vec::with_capacity(flows.len());
    let one = Message { size: mtu, pace: 0, ack_every: 1 };
    let (mut data, mut ack) = (Vec::new(), Vec::new());
    for flow in flows {
        links(topology, &routes.hops, flow.path, &mut data);
        links(topology, &routes.hops, flow.ack_path, &mut ack);
        let called_long = [flow.path, flow.ack_path]
            .iter()
            .any(|&start| route(topology, &routes.hops, start).any(|p| topology.ports[p as usize].long));
        let inter = called_long || data.iter().chain(&ack).any(|h| h.delay > link_delay);
        let trip = &mut longest[usize::from(inter)];
        if flow.ideal > 0 {
            *trip = (*trip).max(ideal::completion(&cx.packet, &one, &data, &ack).unwrap_or(Time::MAX));
        }
        facts.push(Facts { slowest: data.iter().map(|h| h.rate).min().unwrap_or(1), inter });
    }
    let few = given.few.unwrap_or(Irn::FEW);
    let low = timeout(cx, "irn.rto_low", given.rto_low, Irn::RTO_LOW.0)?;
    let high = timeout(cx, "irn.rto_high", given.rto_high, Irn::RTO_HIGH.0)?;
    let trip = longest[1];
    let inter_low =
        timeout(cx, "irn.inter.rto_low", given.inter.rto_low, low.saturating_add(trip).min(LONGEST))?;
    let inter_high =
        timeout(cx, "irn.inter.rto_high", given.inter.rto_high, high.saturating_add(trip).min(LONGEST))?;
    for (table, low, high, trip) in
        [("irn", low, high, longest[0]), ("irn.inter", inter_low, inter_high, longest[1])]
    {
        if low > high {
            let message = format!("rto_low = {} is above rto_high = {}", Span(low), Span(high));
            let key = if cx.doc.get(&format!("{table}.rto_low")).is_some() { "rto_low" } else { "rto_high" };
            let help = "write rto_low no larger than rto_high: with few packets in flight the shorter timeout applies";
            return cx.refuse(&format!("{table}.{key}"), message, help);
        }
        if low < trip {
            warn_of_timeout(cx, &format!("{table}.rto_low"), Span(low), trip);
        }
    }
    if !facts.iter().any(|f| f.inter) {
        let why = format!("no flow crosses a long link, or a link with a delay above {}", Span(link_delay));
        cx.warn_of_table("irn.inter", why);
    }
    if let Some(Threshold::Bytes(window)) = given.inter.window {
        check_window(cx, "irn.inter.window", window.0, &window.to_string())?;
    }
    let windows =
        [("transport.window", cx.scenario.transport.window), ("irn.inter.window", given.inter.window)];
    let mut out = Vec::with_capacity(flows.len());
    for f in &facts {
        let (key, given) = windows[usize::from(f.inter)];
        let packets = match given {
            Some(Threshold::Bytes(window)) => window.0 / mtu,
            bdp => {
                let bdp = bdp.unwrap_or(IrnInter::WINDOW);
                bdp.resolve(f.slowest, longest[usize::from(f.inter)]).div_ceil(mtu).max(1)
            }
        };
        if packets >= LARGEST_WINDOW {
            let message = format!("a window of {packets} packets is out of range");
            return cx.refuse(key, message, format!("the maximum is {} packets", LARGEST_WINDOW - 1));
        }
        check_acks(cx, key, packets * mtu)?;
        out.push(FlowWindow { window: packets as u32, inter: f.inter });
    }
    let params = TransportParams {
        kind: TransportKind::Irn {
            intra: Timeouts { low, high, few },
            inter: Timeouts { low: inter_low, high: inter_high, few },
            timer: given.timer.unwrap_or_default(),
        },
        ack_every: cx.scenario.transport.ack_every,
        rto: high.max(inter_high),
        retries: retries::limit(cx)?,
        window: None,
        variable_window: variable_window(cx, routes)?,
    };
    Ok((params, out))
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

/// The window of each flow in packets, without `window` the largest one. BDPs are those of the flow's route without
/// load. An error names the key and calls the window as `named`.
fn windows(
    cx: &Context<'_>,
    routed: &Routed<'_>,
    window: Option<Threshold>,
    (key, named): (&str, &str),
) -> Result<Vec<FlowWindow>, Error> {
    let Routed { topology, routes, flows } = *routed;
    let mtu = u64::from(cx.packet.mtu);
    let one = Message { size: mtu, pace: 0, ack_every: 1 };
    let (mut data, mut ack) = (Vec::new(), Vec::new());
    let mut out = Vec::with_capacity(flows.len());
    for flow in flows {
        links(topology, &routes.hops, flow.path, &mut data);
        links(topology, &routes.hops, flow.ack_path, &mut ack);
        let slowest = data.iter().map(|h| h.rate).min().unwrap_or(1);
        let trip = match flow.ideal {
            0 => 0,
            _ => ideal::completion(&cx.packet, &one, &data, &ack).unwrap_or(Time::MAX),
        };
        let packets = match window {
            None => LARGEST_WINDOW - 1,
            Some(Threshold::Bytes(window)) => window.0 / mtu,
            Some(bdp) => bdp.resolve(slowest, trip).div_ceil(mtu).max(1),
        };
        if packets >= LARGEST_WINDOW {
            let message = format!("a {named} of {packets} packets is out of range");
            let help = format!("the maximum is {} packets", LARGEST_WINDOW - 1);
            return cx.refuse(key, message, help);
        }
        out.push(FlowWindow { window: packets as u32, inter: false });
    }
    Ok(out)
}

fn timeout(cx: &Context<'_>, key: &str, given: Option<Span>, default: Time) -> Result<Time, Error> {
    let span = given.unwrap_or(Span(default));
    check_timeout(cx, key, span)?;
    Ok(span.0)
}

fn check_timeout(cx: &Context<'_>, key: &str, span: Span) -> Result<(), Error> {
    if span.0 == 0 {
        return cx.refuse(key, "must be positive", "write a time above 0, such as \"4ms\"");
    }
    if span.0 < SHORTEST_TIMER {
        let message = format!("a timeout of {span} is out of range: it expires before an ACK can arrive");
        return cx.refuse(key, message, format!("write {} to {}", Span(SHORTEST_TIMER), Span(LONGEST)));
    }
    if span.0 > LONGEST {
        let message = format!("a timeout of {span} is out of range");
        return cx.refuse(key, message, format!("the maximum is {}", Span(LONGEST)));
    }
    Ok(())
}

fn warn_of_timeout(cx: &mut Context<'_>, key: &str, rto: Span, trip: Time) {
    let message = format!(
        "{rto} is shorter than the longest unloaded round trip, {} ns: senders retransmit packets that were not lost",
        trip.div_ceil(1_000)
    );
    cx.warn(key, message);
}

fn check_window(cx: &Context<'_>, key: &str, window: u64, shown: &str) -> Result<(), Error> {
    let mtu = u64::from(cx.packet.mtu);
    if window >= mtu {
        return Ok(());
    }
    let message = format!("a window of {shown} is smaller than one packet's payload of {}", bytes(mtu));
    cx.refuse(key, message, "raise `window`, or lower `mtu`")
}

/// Refuses a window that is full before an ACK is due.
fn check_acks(cx: &Context<'_>, key: &str, window: u64) -> Result<(), Error> {
    let every = cx.scenario.transport.ack_every;
    let least = u64::from(every) * u64::from(cx.packet.mtu);
    if window >= least {
        return Ok(());
    }
    let message = format!(
        "a window of {} is smaller than {every} packets: the receiver would never send the ACK that reopens it",
        bytes(window)
    );
    let key = if cx.doc.get(key).is_some() { key } else { "transport.ack_every" };
    let help = match key {
        "transport.ack_every" => format!("write at most {}", (window / u64::from(cx.packet.mtu)).max(1)),
        _ => format!("write at least {}", bytes(least)),
    };
    cx.refuse(key, message, help)
}
