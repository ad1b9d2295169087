//! `[flow_control]` of per-flow queues.

use super::super::fabric::{Fabric, Lane};
use super::super::keys::{Complaint, Keys, Setting, Whole, default_keys, defaults, link, shown, time};
use super::super::pause_time::{PAUSE_TIME, check_pause_time, check_pauses, pause_time};
use super::super::registry::FlowControlParams;
use super::PerFlowQueueParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::{PortId, Topology};
use xoff_net::units::{Span, Threshold};

/// Per-flow queues. ACKs have a queue that is served first and never paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PerFlowQueueKeys {
    /// A flow is paused at its previous hop when its queue holds this much, but at least one
    /// largest packet. In bytes, or in BDP (rate times one-way delay) of the ingress link.
    #[serde(default = "two_bdp")]
    pub xoff: Threshold,
    /// A flow is resumed when its queue holds no more than this. Default: half of `xoff`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: `xoff` / 2"))]
    pub xon: Option<Threshold>,
    /// Time from the arrival of a pause or resume frame until it takes effect. A frame has 64 B and
    /// is sent before all data.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
    /// Length of a pause, 1 us or more; on the slowest link it must cover two largest packets and
    /// two pause frames. All pauses that a port has in force are repeated together after half of
    /// this time, in at most a quarter of the link. A lost resume cannot pause a queue permanently.
    /// Default: unlimited in a run without failures and losses, otherwise 100 us, or more if the
    /// slowest link requires it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = format!("none, or `\"{}\"` if links fail or lose frames", PAUSE_TIME)))]
    pub pause_time: Option<Span>,
}

default_keys!(PerFlowQueueKeys);

fn two_bdp() -> Threshold {
    "2bdp".parse().expect("a threshold")
}

impl Whole for PerFlowQueueKeys {}

impl Keys for PerFlowQueueKeys {
    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        time("response_time", self.response_time)?;
        check_pause_time(self.pause_time)
    }

    fn lifts_limits(&self) -> bool {
        true
    }

    fn check_links(&self, cx: &mut Setting<'_>, topology: &Topology, _: &[Lane]) -> Result<(), Complaint> {
        check_pauses(self.pause_time, topology, &cx.packet)
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        let least = u64::from(cx.packet.largest());
        let mut params = PerFlowQueueParams {
            pause: vec![],
            resume: vec![],
            response_time: self.response_time.0,
            pause_time: pause_time(self.pause_time, topology, &cx.packet, fabric.fails || fabric.loses),
        };
        for (id, port) in topology.ports.iter().enumerate() {
            let xoff = self.xoff.resolve(port.rate, port.delay);
            let xon = self.xon.map_or(xoff / 2, |t| t.resolve(port.rate, port.delay));
            // Nothing comes through the inner ports of a slow host.
            let inner = topology.neighbour(id as PortId) == port.node;
            if let Some(given) = self.xon.filter(|_| xon > xoff && !inner) {
                let (on, off) = (shown(given, xon), shown(self.xoff, xoff));
                let message = format!("xon = {on} is above xoff = {off} on {}", link(topology, id as PortId));
                let help = "choose `xon` no larger than `xoff`";
                return Err(Complaint::of_key("xon", message, help));
            }
            params.pause.push(xoff.max(least));
            params.resume.push(xon);
        }
        Ok(FlowControlParams::PerFlowQueue(params))
    }
}
