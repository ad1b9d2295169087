//! The table `[routing.drill]`.

use super::super::keys::{Keys, Setting, out_of_range};
use super::{DrillParams, MOST_MEMORY, MOST_SAMPLES};
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DRILL(d, m). The defaults are the paper's choice, DRILL(2, 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Drill")]
pub struct DrillKeys {
    /// Next hops drawn at random for each packet, 1 to 16. Draws are with replacement. The packet
    /// goes to the port with the fewest bytes in the egress queues of all priorities, without the
    /// packet on the wire. Of equal queues the first drawn wins.
    #[schemars(range(min = 1, max = 16), extend("x-unit" = "next hops"))]
    pub d: u32,
    /// Least loaded next hops remembered from packet to packet, 0 to 16. Of equal queues a drawn
    /// one wins over a remembered one.
    #[schemars(range(max = 16), extend("x-unit" = "next hops"))]
    pub m: u32,
}

impl Default for DrillKeys {
    fn default() -> Self {
        Self { d: 2, m: 1 }
    }
}

impl Keys for DrillKeys {
    type Rule = DrillParams;

    fn rule(&self, _: &mut Setting<'_>) -> Result<DrillParams, Complaint> {
        let Self { d, m } = *self;
        if !(1..=MOST_SAMPLES).contains(&d) {
            return Err(out_of_range("drill.d", d, format!("write 1 to {MOST_SAMPLES}")));
        }
        if m > MOST_MEMORY {
            return Err(out_of_range("drill.m", m, format!("write 0 to {MOST_MEMORY}")));
        }
        Ok(DrillParams { samples: d, memory: m })
    }
}
