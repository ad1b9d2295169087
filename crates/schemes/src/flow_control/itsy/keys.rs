//! `[flow_control]` of ITSY.

use super::super::fabric::Fabric;
use super::super::keys::{Complaint, Keys, OnPfc, Setting, check_room, room};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::registry::FlowControlParams;
use super::{ItsyParams, Resolution};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Threshold;

/// ITSY: its own keys, and those of the PFC that it rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Itsy")]
pub struct ItsyKeys {
    /// What becomes of the queue that began a deadlock.
    #[serde(default)]
    pub resolution: ItsyResolution,
    /// With `resolution = "lossless"`: what the queue may take in beyond what it holds, from the
    /// shared pool; a largest packet at least. In bytes, or in BDP (rate times *one-way* delay)
    /// of the network's longest link. Default: `"2bdp"`, or a largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`\"2bdp\"`, at least a largest packet"))]
    pub room: Option<Threshold>,
}

/// What becomes of the queue that began a deadlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItsyResolution {
    /// Packets of it are dropped, those of large flows first, until it lets its neighbour go.
    #[default]
    Lossy,
    /// It gets more room, if the shared pool has it.
    Lossless,
}

impl Keys for OnPfc<ItsyKeys> {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.pfc)
    }

    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        check_room(self.keys.room, &cx.packet)?;
        if self.pfc.relay == Relay::Blind {
            let message =
                "hosts that pass pauses on blindly have no queue whose packets a check could follow";
            return Err(Complaint::of_key("relay", message, "remove the key"));
        }
        if let Some(key) = cx.blames {
            let message = format!("`{key}` does not know yet what `itsy` does to queues and packets");
            return Err(Complaint::new(&format!("measure.{key}"), message, "remove the key"));
        }
        if self.keys.room.is_some() && self.keys.resolution == ItsyResolution::Lossy {
            let message = "had no effect: room is given with resolution = \"lossless\" alone";
            cx.warn("flow_control.room".into(), message.into());
        }
        Ok(())
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        Ok(FlowControlParams::Itsy(ItsyParams {
            pfc: self.pfc.params(),
            numbers: topology.ports.iter().map(|p| p.index).collect(),
            resolution: match self.keys.resolution {
                ItsyResolution::Lossy => Resolution::Lossy,
                ItsyResolution::Lossless => {
                    Resolution::Lossless { room: room(self.keys.room, topology, &cx.packet) }
                }
            },
        }))
    }
}
