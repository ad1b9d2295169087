//! The table `[routing.reps]`.

use super::super::keys::{Keys, Setting, out_of_range};
use super::RepsParams;
use crate::flow_control::keys::{Complaint, LAST};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::MILLISECOND;
use xoff_net::units::Span;

/// Most labels: the source ports of captures have room for so many, and a flow keeps each one's route.
const MOST_LABELS: u32 = 4_096;
const MOST_BUFFER: u32 = 256;
const MOST_EXPLORE: u32 = 1_000_000;

/// REPS. `buffer` is the paper's, `freezing` and `explore` are those of its authors' simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Reps")]
pub struct RepsKeys {
    /// Labels of a flow, the entropy values, 2 to 4,096. The hash maps each label to a path, and several labels can have
    /// the same path. A new label is drawn from all. Label 0 has the path of `ecmp`. Each label takes 8 B of memory for
    /// each flow, and each path about 30 B.
    #[schemars(range(min = 2, max = 4096), extend("x-unit" = "labels"))]
    pub labels: u32,
    /// Labels that a flow caches, 1 to 256: the last ones whose packets came unmarked. Each is used for one more packet.
    #[schemars(range(min = 1, max = 256), extend("x-unit" = "labels"))]
    pub buffer: u32,
    /// Time after a timeout in which a flow uses only cached labels, each as often as it needs them. 0: a flow
    /// draws labels after timeouts, too.
    pub freezing: Span,
    /// Packets with random labels after that time, up to 1,000,000.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "packets"))]
    pub explore: u32,
}

impl Default for RepsKeys {
    fn default() -> Self {
        Self { labels: 256, buffer: 8, freezing: Span(10 * MILLISECOND), explore: 16 }
    }
}

impl Keys for RepsKeys {
    type Rule = RepsParams;

    fn rule(&self, _: &mut Setting<'_>) -> Result<RepsParams, Complaint> {
        let Self { labels, buffer, freezing, explore } = *self;
        if !(2..=MOST_LABELS).contains(&labels) {
            return Err(out_of_range("reps.labels", labels, format!("write 2 to {MOST_LABELS}")));
        }
        if !(1..=MOST_BUFFER).contains(&buffer) {
            return Err(out_of_range("reps.buffer", buffer, format!("write 1 to {MOST_BUFFER}")));
        }
        if freezing.0 > LAST {
            return Err(out_of_range("reps.freezing", freezing, format!("the maximum is {}", Span(LAST))));
        }
        if explore > MOST_EXPLORE {
            return Err(out_of_range("reps.explore", explore, format!("write 0 to {MOST_EXPLORE}")));
        }
        let freezing = (freezing.0 > 0).then_some(freezing.0);
        Ok(RepsParams { labels, ring: buffer, freezing, explore })
    }
}
