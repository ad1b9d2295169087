//! `[flow_control]` of Loop Breaker and Deadlock Breaker.

use super::super::fabric::{Fabric, first_polls};
use super::super::keys::{Complaint, Keys, LONGEST, OnPfc, Setting, check_room, default_keys, room, time};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::registry::FlowControlParams;
use super::{BreakerParams, Cure};
use crate::load_balancing::LoadBalancing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{MICROSECOND, MILLISECOND, Time, serialisation};
use xoff_net::topology::{Port, Topology};
use xoff_net::units::{Span, Threshold};
use xoff_wire::nodes::MOST_NODES;

/// The shortest time between two polls: a poll of every queue is an event.
const SHORTEST_PERIOD: Time = MICROSECOND;
/// Bytes of the longest frame, which lists a whole loop.
const LONGEST_FRAME: u32 = 158;

/// Loop Breaker: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "LoopBreaker")]
pub struct LoopBreakerKeys {
    /// Time between two polls of a device, which begin at a random time.
    #[serde(default = "period")]
    pub period: Span,
    /// Time that a message takes in the control plane of each device.
    #[serde(default = "latency")]
    pub latency: Span,
}

/// Deadlock Breaker: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "DeadlockBreaker")]
pub struct DeadlockBreakerKeys {
    /// Time between two polls of a device, which begin at a random time.
    #[serde(default = "period")]
    pub period: Span,
    /// Time that a message takes in the control plane of each device.
    #[serde(default = "latency")]
    pub latency: Span,
    /// Extra room of each ingress queue of a deadlock, taken from the shared pool; at least one
    /// largest packet. In bytes, or in BDP (rate times *one-way* delay) of the network's longest
    /// link. Default: `"2bdp"`, or one largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`\"2bdp\"`, at least a largest packet"))]
    pub room: Option<Threshold>,
}

default_keys!(LoopBreakerKeys, DeadlockBreakerKeys);

/// The papers name none. Short for a control plane, to the schemes' favour.
fn period() -> Span {
    Span(MILLISECOND)
}

/// As [`period`].
fn latency() -> Span {
    Span(100 * MICROSECOND)
}

impl Keys for OnPfc<LoopBreakerKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        check(self.keys.period, self.keys.latency, None, &self.pfc, cx)?;
        if cx.by_packet {
            let message = "`loop-breaker` is incompatible with load balancing by packet: it needs the path of each packet";
            let help = format!("choose {}", LoadBalancing::any(|kind| !kind.by_packet()));
            return Err(Complaint::new("routing.load_balancing", message, help));
        }
        check_blame(cx)
    }

    fn longest_frame(&self) -> u32 {
        LONGEST_FRAME
    }

    fn reroutes(&self) -> bool {
        true
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        Ok(params(self.keys.period, self.keys.latency, Cure::Reroute, &self.pfc, cx, fabric.topology))
    }
}

impl Keys for OnPfc<DeadlockBreakerKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        check(self.keys.period, self.keys.latency, self.keys.room, &self.pfc, cx)?;
        check_blame(cx)
    }

    fn longest_frame(&self) -> u32 {
        LONGEST_FRAME
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let cure = Cure::Room(room(self.keys.room, fabric.topology, &cx.packet));
        Ok(params(self.keys.period, self.keys.latency, cure, &self.pfc, cx, fabric.topology))
    }
}

/// Refuses values out of range, and keys that contradict each other.
fn check(
    period: Span,
    latency: Span,
    room: Option<Threshold>,
    pfc: &PfcKeys,
    cx: &Setting<'_>,
) -> Result<(), Complaint> {
    if period.0 < SHORTEST_PERIOD || period.0 > LONGEST {
        let help = format!("write {} to {}", Span(SHORTEST_PERIOD), Span(LONGEST));
        return Err(Complaint::out_of_range("period", period, help));
    }
    time("latency", latency)?;
    check_room(room, &cx.packet)?;
    if pfc.relay == Relay::Blind {
        let message = "relay = \"blind\" is incompatible with this scheme: its probes follow the packets of a host's queue";
        return Err(Complaint::of_key("relay", message, "remove the key"));
    }
    Ok(())
}

/// Refuses the blame oracle.
fn check_blame(cx: &Setting<'_>) -> Result<(), Complaint> {
    let Some(key) = cx.blames else { return Ok(()) };
    let message = format!("`{key}` does not support schemes whose control plane changes queues or paths");
    Err(Complaint::new(&format!("measure.{key}"), message, "remove the key"))
}

fn params(
    period: Span,
    latency: Span,
    cure: Cure,
    pfc: &PfcKeys,
    cx: &Setting<'_>,
    topology: &Topology,
) -> FlowControlParams {
    // The time of a frame over the link, after a packet and the link's other frames.
    let hop = |p: &Port| {
        let frames = serialisation(u64::from(cx.packet.largest()) + 2 * u64::from(LONGEST_FRAME), p.rate);
        frames.saturating_add(p.delay).saturating_add(pfc.response_time.0).saturating_add(latency.0)
    };
    FlowControlParams::Breaker(BreakerParams {
        pfc: pfc.params(),
        cure,
        period: period.0,
        latency: latency.0,
        turn: topology.ports.iter().map(hop).max().unwrap_or(0).saturating_mul(MOST_NODES as u64),
        first: first_polls(topology, cx.seed, "breaker polls", period.0),
        seed: cx.seed,
    })
}
