//! No flow control: what does not fit is dropped.

use super::device::Device;
use super::fabric::Fabric;
use super::keys::{Complaint, Keys, Reader, Setting, Table, Unread};
use super::pfc::keys::PfcKeys;
use super::registry::{FlowControl, FlowControlParams};
use super::seam::{Machine, Parameters, Scheme, Seen, Traits};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::borrow::Cow;

/// It has no keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoKeys {}

impl Keys for NoKeys {
    fn lossless(
        &self,
        cx: &mut Setting<'_>,
        _: u8,
        key: &str,
        wanted: Option<bool>,
        _: bool,
    ) -> Result<bool, Complaint> {
        if wanted == Some(true) {
            let message = "had no effect: without flow control no priority is lossless";
            cx.warn(key.into(), message.into());
        }
        Ok(false)
    }

    fn suits_arbiter(&self) -> bool {
        true
    }

    fn params(&self, _: &mut Setting<'_>, _: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        Ok(FlowControlParams::None(NoParams))
    }
}

impl Table for NoKeys {
    fn names() -> [&'static [&'static str]; 2] {
        [&[], &[]]
    }

    /// The keys of PFC, the default, are checked even where they do nothing.
    fn read(reader: &dyn Reader, passed: &[&'static str]) -> Result<Self, Unread> {
        let [pfc, _] = PfcKeys::names();
        let others: Vec<&str> = passed.iter().copied().filter(|key| !pfc.contains(key)).collect();
        reader.read::<PfcKeys>(&others)?;
        Ok(Self {})
    }
}

impl JsonSchema for NoKeys {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "None".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// It has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoParams;

/// Nothing is ever paused.
#[derive(Clone, Copy, Debug)]
pub struct NoFlowControl;

impl Parameters for NoParams {
    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        String::new()
    }

    fn start(&self, _: usize, _: &[u8]) -> FlowControl {
        FlowControl::None(NoFlowControl)
    }
}

impl Machine for NoFlowControl {}

impl<D: Device> Scheme<D> for NoFlowControl {}
