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
    /// What happens to the queue that began a deadlock.
    #[serde(default)]
    pub resolution: ItsyResolution,
    /// With `resolution = "lossless"`: extra room of the queue, taken from the shared pool; at
    /// least one largest packet. In bytes, or in BDP (rate times *one-way* delay) of the network's
    /// longest link. Default: `"2bdp"`, or one largest packet if that is more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "`\"2bdp\"`, at least a largest packet"))]
    pub room: Option<Threshold>,
}

/// What happens to the queue that began a deadlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ItsyResolution {
    /// It drops packets, those of large flows first, until it resumes its neighbour.
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
            let message = "relay = \"blind\" is incompatible with `itsy`: its checks follow the packets of a host's queue";
            return Err(Complaint::of_key("relay", message, "remove the key"));
        }
        if let Some(key) = cx.blames {
            let message = format!("`{key}` does not support `itsy`");
            return Err(Complaint::new(&format!("measure.{key}"), message, "remove the key"));
        }
        if self.keys.room.is_some() && self.keys.resolution == ItsyResolution::Lossy {
            let message = "had no effect: only resolution = \"lossless\" uses it";
            cx.warn("flow_control.room".into(), message.into());
        }
        Ok(())
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let topology = fabric.topology;
        let resolution = match self.keys.resolution {
            ItsyResolution::Lossy => Resolution::Lossy,
            ItsyResolution::Lossless => Resolution::Lossless(room(self.keys.room, topology, &cx.packet)),
        };
        Ok(FlowControlParams::Itsy(ItsyParams {
            pfc: self.pfc.params(),
            numbers: topology.ports.iter().map(|p| p.index).collect(),
            resolution,
        }))
    }
}
