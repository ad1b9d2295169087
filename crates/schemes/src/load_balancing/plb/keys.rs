//! The table `[routing.plb]`.

use super::super::keys::{Keys, Setting, out_of_range};
use super::PlbParams;
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most labels of a flow.
const MOST_LABELS: u32 = 256;

/// PLB. The defaults are those of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Plb")]
pub struct PlbKeys {
    /// Share of marked packets at which a round trip counts as congested, above 0, up to 1. A round
    /// trip ends when all data sent before its start is acknowledged.
    #[schemars(range(max = 1.0), extend("x-unit" = "ratio", "exclusiveMinimum" = 0))]
    pub threshold: f64,
    /// Congested round trips in a row after which a flow with nothing in flight
    /// changes its path, at least 1.
    #[schemars(range(min = 1), extend("x-unit" = "round trips"))]
    pub idle_rounds: u32,
    /// Congested round trips in a row after which a flow with packets in flight changes its path;
    /// at least `idle_rounds`.
    #[schemars(extend("x-unit" = "round trips"))]
    pub forced_rounds: u32,
    /// Labels of a flow, 2 to 256. The hash maps each label to a path, and several labels can have
    /// the same path. A change draws one of the other labels. Packets in flight keep the old path.
    /// Label 0 has the path of `ecmp`. Each path takes about 30 B of memory.
    #[schemars(range(min = 2, max = 256), extend("x-unit" = "labels"))]
    pub labels: u32,
}

impl Default for PlbKeys {
    fn default() -> Self {
        Self { threshold: 0.5, idle_rounds: 3, forced_rounds: 12, labels: 8 }
    }
}

impl Keys for PlbKeys {
    type Rule = PlbParams;

    fn reorders(&self) -> bool {
        false
    }

    fn rule(&self, _: &mut Setting<'_>) -> Result<PlbParams, Complaint> {
        let Self { threshold, idle_rounds, forced_rounds, labels } = *self;
        if !(threshold > 0.0 && threshold <= 1.0) {
            let help = "write a number above 0, up to 1, such as 0.5";
            return Err(out_of_range("plb.threshold", threshold, help));
        }
        if idle_rounds == 0 {
            return Err(out_of_range("plb.idle_rounds", 0, "write 1 or more"));
        }
        if forced_rounds < idle_rounds {
            let help = format!("write {idle_rounds} or more: it must be at least idle_rounds");
            return Err(out_of_range("plb.forced_rounds", forced_rounds, help));
        }
        if !(2..=MOST_LABELS).contains(&labels) {
            return Err(out_of_range("plb.labels", labels, format!("write 2 to {MOST_LABELS}")));
        }
        Ok(PlbParams { threshold, idle_rounds, forced_rounds, labels })
    }
}
