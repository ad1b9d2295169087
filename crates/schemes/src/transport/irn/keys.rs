//! The table of IRN, its timeouts, and the windows of flows.

use super::{IrnParams, Timeouts, Timer};
use crate::flow_control::keys::{Complaint, LONGEST};
use crate::transport::FlowWindow;
use crate::transport::keys::{self, Nacks, Resolved, Setting, Traits, check_largest, packets_of, timeout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::units::{Span, Threshold};

/// The transport `irn`. A timeout starts the same recovery as a NACK. A lost burst inside a
/// flow costs one timeout. A lost tail of n packets costs n timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct IrnKeys {
    /// Timeout while few packets are in flight. Default: 100 us (IRN, SIGCOMM 2018).
    #[schemars(extend("default" = IrnKeys::RTO_LOW))]
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: 320 us (IRN, SIGCOMM 2018).
    #[schemars(extend("default" = IrnKeys::RTO_HIGH))]
    pub rto_high: Option<Span>,
    /// N: the number of packets in flight up to which `rto_low` applies. Default: 3 (IRN, SIGCOMM
    /// 2018).
    #[schemars(extend("x-unit" = "packets", "default" = IrnKeys::FEW))]
    pub few: Option<u32>,
    /// What has a retransmission timer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Timer::default()))]
    pub timer: Option<Timer>,
    /// Values for flows between datacenters.
    #[serde(skip_serializing_if = "IrnInter::is_default")]
    pub inter: IrnInter,
}

/// Those of Mittal et al., SIGCOMM 2018, §4.1.
impl IrnKeys {
    const RTO_LOW: Span = Span(100 * MICROSECOND);
    const RTO_HIGH: Span = Span(320 * MICROSECOND);
    const FEW: u32 = 3;
}

/// Values for flows between datacenters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IrnInter {
    /// A flow is between datacenters if its route crosses a long link of `dci`, or a link whose
    /// one-way delay is longer than this. Default: 20 us, which is 4 km.
    #[schemars(extend("default" = IrnInter::LINK_DELAY))]
    pub link_delay: Option<Span>,
    /// Most payload in flight; see `transport.window`. Default: `"1bdp"`.
    #[schemars(extend("default" = IrnInter::WINDOW))]
    pub window: Option<Threshold>,
    /// Timeout while few packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_low`.
    #[schemars(extend("x-default" = "derived: `irn.rto_low` + the longest unloaded round trip of these flows"))]
    pub rto_low: Option<Span>,
    /// Timeout while more packets are in flight. Default: the longest unloaded round trip among
    /// these flows plus `irn.rto_high`.
    #[schemars(extend("x-default" = "derived: `irn.rto_high` + the longest unloaded round trip of these flows"))]
    pub rto_high: Option<Span>,
}

impl IrnInter {
    /// A link with more delay than this lies between datacenters: 4 km.
    const LINK_DELAY: Span = Span(20 * MICROSECOND);
    const WINDOW: Threshold = Threshold::Bdp(1_000);

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl keys::Keys for IrnKeys {
    type Params = IrnParams;

    const TRAITS: Traits = Traits {
        timeouts: &["rto_low", "rto_high"],
        limits_flight: true,
        suits_arbiter: true,
        nacks: Nacks::MissingAndArrived,
        ..Traits::NONE
    };

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<IrnParams>, Complaint> {
        let link_delay = self.inter.link_delay.unwrap_or(IrnInter::LINK_DELAY);
        let is_inter = |route: keys::Route| route.long || route.longest_link > link_delay.0;
        // Longest unloaded round trip within and between datacenters.
        let (mut longest, mut any_inter): ([Time; 2], bool) = ([0; 2], false);
        cx.routes.each(&mut |route| {
            let inter = is_inter(route);
            any_inter |= inter;
            let longest = &mut longest[usize::from(inter)];
            *longest = route.round_trip.max(*longest);
        });
        let few = self.few.unwrap_or(Self::FEW);
        let after = |trip: Time, rto: Time| Span(rto.saturating_add(trip).min(LONGEST));
        let low = timeout("irn.rto_low", self.rto_low.unwrap_or(Self::RTO_LOW))?;
        let high = timeout("irn.rto_high", self.rto_high.unwrap_or(Self::RTO_HIGH))?;
        let given = self.inter.rto_low.unwrap_or(after(longest[1], low));
        let inter_low = timeout("irn.inter.rto_low", given)?;
        let given = self.inter.rto_high.unwrap_or(after(longest[1], high));
        let inter_high = timeout("irn.inter.rto_high", given)?;
        for (table, low, high, trip) in
            [("irn", low, high, longest[0]), ("irn.inter", inter_low, inter_high, longest[1])]
        {
            if low > high {
                let message = format!("rto_low = {} is above rto_high = {}", Span(low), Span(high));
                let written = (cx.is_written)(&format!("{table}.rto_low"));
                let key = if written { "rto_low" } else { "rto_high" };
                let help = "write rto_low no larger than rto_high: with few packets in flight the shorter timeout applies";
                return Err(Complaint::new(&format!("{table}.{key}"), message, help));
            }
            cx.warn_of_timeout(&format!("{table}.rto_low"), low, trip);
        }
        if !any_inter {
            let why = format!("no flow crosses a long link, or a link with a delay above {link_delay}");
            cx.warn_of_table("irn.inter", &why);
        }
        if let Some(Threshold::Bytes(window)) = self.inter.window {
            cx.check_window("irn.inter.window", window.0, &window.to_string())?;
        }
        let mtu = u64::from(cx.packet.mtu);
        let given = [("transport.window", cx.window), ("irn.inter.window", self.inter.window)];
        let mut windows = Vec::new();
        let mut range = [(u64::MAX, 0); 2];
        cx.routes.each(&mut |route| {
            let inter = is_inter(route);
            let window = given[usize::from(inter)].1.unwrap_or(IrnInter::WINDOW);
            let packets = packets_of(window, route.slowest, longest[usize::from(inter)], mtu);
            let (least, most) = &mut range[usize::from(inter)];
            (*least, *most) = (packets.min(*least), packets.max(*most));
            windows.push(FlowWindow { window: packets as u32, inter });
        });
        for ((key, _), (least, most)) in given.into_iter().zip(range) {
            check_largest(key, "window", most)?;
            cx.check_acks(key, least.saturating_mul(mtu))?;
        }
        let params = IrnParams {
            intra: Timeouts { low, high, few },
            inter: Timeouts { low: inter_low, high: inter_high, few },
            timer: self.timer.unwrap_or_default(),
        };
        Ok(Resolved { params, rto: high.max(inter_high), window: None, windows })
    }
}
