//! The table `[routing.ugal]`.

use super::super::keys::{Keys, Setting};
use super::UgalParams;
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Bytes;

/// UGAL-L: only the queues of the first switch decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Ugal")]
pub struct UgalKeys {
    /// A packet takes the minimal path if its queued bytes times its links are at most those of the non-minimal path
    /// plus this threshold, in bytes times links.
    pub threshold: Bytes,
}

impl Default for UgalKeys {
    fn default() -> Self {
        Self { threshold: Bytes(0) }
    }
}

impl Keys for UgalKeys {
    type Rule = UgalParams;

    fn rule(&self, _: &mut Setting<'_>) -> Result<UgalParams, Complaint> {
        Ok(UgalParams { threshold: self.threshold.0 })
    }
}
