//! `[flow_control]` of packet trimming.

use super::super::fabric::{Fabric, Lane};
use super::super::keys::{Complaint, Keys, Setting, Whole, check_priority, default_keys};
use super::super::registry::FlowControlParams;
use super::TrimmingParams;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::Topology;
use xoff_net::units::Bytes;
use xoff_wire::SMALLEST_FRAME;

/// 802.1p priority of ACKs and trimmed packets by default.
const HIGH: u8 = 7;

/// Packet trimming: a data packet without room is cut to its header. The limits of queues are those of
/// `[[priority]]`. Default of `transport.ack_priority`: 7.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrimmingKeys {
    /// Bytes of a trimmed packet on the wire, 64 B or more. Shorter packets go on whole. Default: 64 B
    /// as in NDP (SIGCOMM 2017); SAI's default is 128 B.
    #[serde(default = "trim_size")]
    pub trim_size: Bytes,
    /// Priority of trimmed packets. It must have a tier that is not served after that of data.
    /// Default: the priority of ACKs, as in NDP.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 7), extend("x-unit" = "802.1p priority", "x-default" = "the priority of ACKs"))]
    pub priority: Option<u8>,
    /// The packet that is cut. Default: `arriving`.
    #[serde(default)]
    pub trims: Trimmed,
}

/// The packet that a switch cuts if a data packet has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "TrimmedPacket")]
pub enum Trimmed {
    /// The one that arrives. The packet trimming of SAI and SONiC.
    #[default]
    Arriving,
    /// That one or the last data packet of its queue, each with probability 1/2, if the arriving packet has room in
    /// the other's place. NDP (SIGCOMM 2017) does this against phase effects, and so do csg-htsim and uet-htsim.
    ArrivingOrLast,
}

default_keys!(TrimmingKeys);

fn trim_size() -> Bytes {
    Bytes(u64::from(SMALLEST_FRAME))
}

impl Whole for TrimmingKeys {}

impl TrimmingKeys {
    fn priority(&self, cx: &Setting<'_>) -> u8 {
        self.priority.or(cx.ack_priority).unwrap_or(HIGH)
    }

    /// The key that sets the priority of trimmed packets.
    fn priority_key(&self, cx: &Setting<'_>) -> &'static str {
        match (self.priority, cx.ack_priority) {
            (Some(_), _) => "flow_control.priority",
            (None, Some(_)) => "transport.ack_priority",
            (None, None) => "flow_control.scheme",
        }
    }
}

impl Keys for TrimmingKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        let (least, most) = (u64::from(SMALLEST_FRAME), u64::from(cx.packet.largest()) - 1);
        if !(least..=most).contains(&self.trim_size.0) {
            let message = format!("trim_size = {} is out of range", self.trim_size);
            let help = match least <= most {
                true => format!(
                    "write {least} to {most} B: a frame has at least {least} B, and the largest packet has {} B",
                    most + 1
                ),
                false => {
                    format!("raise transport.mtu: the largest packet has {} B, which cannot be cut", most + 1)
                }
            };
            let key = if least <= most { "flow_control.trim_size" } else { "transport.mtu" };
            return Err(Complaint::new(key, message, help));
        }
        self.priority.map_or(Ok(()), |priority| check_priority("flow_control.priority", priority))
    }

    fn default_ack_priority(&self) -> Option<u8> {
        Some(HIGH)
    }

    fn brings_priority(&self) -> Option<u8> {
        self.priority
    }

    fn trims(&self) -> bool {
        true
    }

    fn check_priorities(&self, cx: &Setting<'_>, data: &[u8]) -> Result<(), Complaint> {
        let priority = self.priority(cx);
        if !data.contains(&priority) {
            return Ok(());
        }
        let message = format!("trimmed packets and data both have priority {priority}");
        let help =
            "set flow_control.priority to a priority without data: trimmed packets need a queue of their own";
        Err(Complaint::new(self.priority_key(cx), message, help))
    }

    /// Refuses trimmed packets that wait for data: their senders would learn of the loss last.
    fn check_links(&self, cx: &mut Setting<'_>, _: &Topology, lanes: &[Lane]) -> Result<(), Complaint> {
        let priority = self.priority(cx);
        let tier = lanes.iter().find(|l| l.priority == priority).map_or(0, |l| l.tier);
        let data = lanes.iter().find(|l| cx.data.contains(&l.priority) && l.tier < tier);
        let Some(data) = data else { return Ok(()) };
        let message = format!(
            "trimmed packets (priority {priority}) would be served after data (priority {})",
            data.priority
        );
        let help = "write a higher priority, or set `tier` in [[priority]] tables";
        Err(Complaint::new(self.priority_key(cx), message, help))
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let priority = self.priority(cx);
        let lane = fabric.lanes.iter().position(|l| l.priority == priority).unwrap_or(0) as u8;
        // Below the largest packet, which has 32 bits.
        let size = self.trim_size.0 as u32;
        Ok(FlowControlParams::Trimming(TrimmingParams { size, priority, lane, trims: self.trims }))
    }
}
