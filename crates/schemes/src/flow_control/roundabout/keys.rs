//! `[flow_control]` of Roundabout.

use super::super::Headroom;
use super::super::fabric::Fabric;
use super::super::keys::{Complaint, Keys, LARGEST, LARGEST_ALLOWED, LONGEST, OnPfc, Setting, defaults};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::registry::FlowControlParams;
use super::{RoundaboutParams, dissolve::LONGEST_LOOP};
use crate::load_balancing::LoadBalancing;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::Port;
use xoff_net::units::{Bytes, Span, Threshold};

/// The paper's redundant headroom: one BDP by the round trip (section VI-A).
const SPARE: Threshold = Threshold::Bdp(2_000);
/// Turns around a loop after which an attempt is dropped (`roundabout.several-winners`).
const TURNS: Time = 4;
/// Bytes of the longest frame, which lists a whole loop.
const LONGEST_FRAME: u64 = 180;

/// Roundabout: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Roundabout")]
pub struct RoundaboutKeys {
    /// Headroom of each lossless ingress queue beyond PFC's, at least one largest packet. In bytes,
    /// or in BDP (rate times *one-way* delay). Default: `"2bdp"`, the paper's BDP, or one largest
    /// packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("`\"{SPARE}\"`, at least a largest packet")))]
    pub spare: Option<Threshold>,
    /// Time without progress after which a switch in a loop gives up. Default: the time of a frame
    /// for four turns around 30 of the network's longest links.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("derived: the time of a frame for {TURNS} turns around {LONGEST_LOOP} of the longest links")))]
    pub patience: Option<Span>,
    /// Whether packets of other ingress queues make room in the loop when they leave its queue.
    /// With `false` the loop can stall.
    #[serde(default = "defaults::yes")]
    pub audit: bool,
    /// Whether deadlocks are dissolved. With `false` they are only found.
    #[serde(default = "defaults::yes")]
    pub dissolve: bool,
}

impl Default for RoundaboutKeys {
    fn default() -> Self {
        RoundaboutKeys { spare: None, patience: None, audit: true, dissolve: true }
    }
}

impl Keys for OnPfc<RoundaboutKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        let at = |key: &str| format!("flow_control.{key}");
        let largest = u64::from(cx.packet.largest());
        if let Some(Threshold::Bytes(bytes)) = self.keys.spare {
            if bytes.0 < largest {
                let message = format!("spare = {bytes} is smaller than one packet of {}", Bytes(largest));
                let help = format!("write \"{largest}B\" or more");
                return Err(Complaint::new(&at("spare"), message, help));
            }
            if bytes.0 > LARGEST {
                let message = format!("spare = {bytes} is out of range");
                return Err(Complaint::new(&at("spare"), message, LARGEST_ALLOWED));
            }
        }
        if let Some(patience) = self.keys.patience
            && (patience.0 == 0 || patience.0 > LONGEST)
        {
            let message = format!("patience = {patience} is out of range");
            let help = format!("write a time above 0, up to {}", Span(LONGEST));
            return Err(Complaint::new(&at("patience"), message, help));
        }
        if self.pfc.relay == Relay::Blind {
            let message = "relay = \"blind\" is incompatible with `roundabout`: its probes follow the packets of a host's queue";
            return Err(Complaint::new(&at("relay"), message, "remove the key"));
        }
        if self.keys.dissolve && cx.by_packet {
            let message = "`roundabout` is incompatible with load balancing by packet: it returns each packet to its own path";
            let others = LoadBalancing::any(|kind| !kind.by_packet());
            let help = format!("choose {others}, or write flow_control.dissolve = false");
            return Err(Complaint::new("routing.load_balancing", message, help));
        }
        if let Some(key) = cx.blames.filter(|_| self.keys.dissolve) {
            let message =
                format!("`{key}` does not support `roundabout`, which moves packets off their paths");
            let help =
                "remove the key, or write flow_control.dissolve = false: deadlocks are then only found";
            return Err(Complaint::new(&format!("measure.{key}"), message, help));
        }
        Ok(())
    }

    fn spare(&self, cx: &Setting<'_>, port: &Port, headroom: &mut Headroom) {
        let spare = self.keys.spare.unwrap_or(SPARE).resolve(port.rate, port.delay);
        let spare = spare.max(cx.packet.largest().into());
        headroom.total = headroom.total.saturating_add(spare);
        if !headroom.terms.is_empty() {
            headroom.terms.push(("spare, for loops", spare));
        }
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let (topology, packet) = (fabric.topology, cx.packet);
        let response = self.pfc.response_time.0;
        // The time of a frame over the link, after a packet, until it takes effect.
        let hop = |p: &Port| {
            let frame = serialisation(u64::from(packet.largest()) + LONGEST_FRAME, p.rate);
            frame.saturating_add(p.delay).saturating_add(response)
        };
        let longest = topology.ports.iter().map(hop).max().unwrap_or(0);
        let turn = longest.saturating_mul(LONGEST_LOOP).clamp(1, LONGEST);
        let patience = self.keys.patience.map_or((TURNS * turn).min(LONGEST), |patience| patience.0);
        Ok(FlowControlParams::Roundabout(RoundaboutParams {
            pfc: self.pfc.params(),
            numbers: topology.ports.iter().map(|p| p.index).collect(),
            seed: cx.seed,
            largest: packet.largest(),
            patience,
            turn,
            audit: self.keys.audit,
            dissolves: self.keys.dissolve,
        }))
    }
}
