//! `[flow_control]` of PAUSE.

use super::super::fabric::Fabric;
use super::super::keys::{Complaint, Keys, Setting, Whole};
use super::super::pfc::keys::{PfcKeys, Relay};
use super::super::registry::FlowControlParams;
use super::PauseParams;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// PAUSE: the keys of PFC. `relay` is always `"accounts"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PauseKeys(PfcKeys);

impl Whole for PauseKeys {}

impl JsonSchema for PauseKeys {
    fn schema_name() -> Cow<'static, str> {
        "Pause".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        PfcKeys::json_schema(generator)
    }
}

impl Keys for PauseKeys {
    fn pfc(&self) -> Option<&PfcKeys> {
        Some(&self.0)
    }

    fn check(&self, _: &mut Setting<'_>) -> Result<(), Complaint> {
        if self.0.relay == Relay::Accounts {
            return Ok(());
        }
        let message = "incompatible with `pause`: each port pauses by its own ingress accounts";
        Err(Complaint::of_key("relay", message, "remove the key, or choose `pfc`"))
    }

    fn params(&self, _: &mut Setting<'_>, _: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        Ok(FlowControlParams::Pause(PauseParams(self.0.params())))
    }
}
