//! RUD: its parameters, the windows of flows, and incompatible keys.

use super::{LARGEST_WINDOW, check_window, links, variable_window, warn_of_timeout};
use crate::error::Error;
use crate::ideal::{self, Message};
use crate::plan::IrnFlow;
use crate::resolve::{Context, Routed};
use crate::scenario::{CongestionControl, LoadBalancing};
use xoff_kernel::time::Time;
use xoff_net::units::Threshold;
use xoff_schemes::transport::rud::RudParams;
use xoff_schemes::transport::{TransportKind, TransportParams};

/// MaxWnd of the specification.
const WINDOW: Threshold = Threshold::Bdp(1_500);

pub(super) fn params(
    cx: &mut Context<'_>,
    routed: &Routed<'_>,
) -> Result<(TransportParams, Vec<IrnFlow>), Error> {
    let Routed { topology, routes, flows } = *routed;
    let s = cx.scenario;
    if s.measure.explains() {
        let message = "incompatible with `rud`: a trimmed packet has no part of a flow's time";
        return cx.refuse("measure.explain", message, "remove the key, or choose another transport.kind");
    }
    if s.routing.load_balancing == LoadBalancing::Plb {
        let message = "`plb` is incompatible with `rud`: its ACKs have no room for the number of marks";
        let help = "write \"spray\", which RUD is made for, or another load balancing";
        return cx.refuse("routing.load_balancing", message, help);
    }
    if s.transport.rto.0 < routes.longest {
        warn_of_timeout(cx, "transport.rto", s.transport.rto, routes.longest);
    }
    let alone = s.transport.congestion_control == CongestionControl::None;
    let given = s.transport.window.or(alone.then_some(WINDOW));
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
        let packets = match given {
            None => LARGEST_WINDOW - 1,
            Some(Threshold::Bytes(window)) => window.0 / mtu,
            Some(bdp) => bdp.resolve(slowest, trip).div_ceil(mtu).max(1),
        };
        if packets >= LARGEST_WINDOW {
            let message = format!("a window of {packets} packets is out of range");
            let help = format!("the maximum is {} packets", LARGEST_WINDOW - 1);
            return cx.refuse("transport.window", message, help);
        }
        out.push(IrnFlow { window: packets as u32, inter: false });
    }
    if let Some(Threshold::Bytes(window)) = given {
        check_window(cx, "transport.window", window.0, &window.to_string())?;
    }
    let (rto, ack_every) = (s.transport.rto.0, s.transport.ack_every);
    let params = TransportParams {
        kind: TransportKind::Rud(RudParams { rto, ack_every }),
        ack_every,
        rto,
        window: None,
        variable_window: variable_window(cx, routes)?,
    };
    Ok((params, out))
}
