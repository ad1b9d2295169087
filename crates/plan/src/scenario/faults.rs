//! `[[failure]]` and `[[loss]]`: what goes wrong with links and switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Span;

/// A link or a switch that is down for a while, once or again and again. What is
/// on the wire or waits for it is lost, and so is what a failed switch holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The link between two nodes, `"S0.0-S1.2"` (all of them if there are
    /// several), or the link at a port, `"S0.0:5"`.
    #[schemars(extend("x-default" = "required: `link` or `switch`"))]
    pub link: Option<String>,
    /// A switch: all of its links. Either this or `link`.
    #[schemars(extend("x-default" = "required: `link` or `switch`"))]
    pub switch: Option<String>,
    /// It fails at this time. At 0 routes avoid it from the beginning.
    pub at: Span,
    /// It is up again at this time; never if not given.
    #[schemars(extend("x-default" = "none: it stays down"))]
    pub until: Option<Span>,
    /// It fails again so long after each failure.
    #[schemars(extend("x-default" = "none: it fails once"))]
    pub every: Option<Span>,
    /// Failures in all, with `every`; until `run.duration` and `run.drain` are
    /// over if not given.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-unit" = "failures"))]
    #[schemars(extend("x-default" = "derived: until the end of `run.duration` and `run.drain`"))]
    pub times: Option<u32>,
}

/// A link that loses or corrupts frames at random, control frames as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// As in a failure: `"S0.0-S1.2"` or `"S0.0:5"`.
    pub link: String,
    /// The end whose frames are hit; those of both ends if not given.
    #[schemars(extend("x-default" = "both ends"))]
    pub from: Option<String>,
    /// Probability that a frame is hit.
    #[schemars(range(max = 1.0))]
    #[schemars(extend("x-unit" = "probability"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub rate: Option<f64>,
    /// Probability that a bit is hit, and with it its frame.
    #[schemars(range(max = 1.0))]
    #[schemars(extend("x-unit" = "probability"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub ber: Option<f64>,
    /// The so-manyth frame of the flow control is hit, and no other. One of this, `rate` and `ber`.
    #[schemars(range(min = 1))]
    #[schemars(extend("x-unit" = "number of a frame"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub control_frame: Option<u64>,
    /// Whether frames vanish, or arrive and fail their checksum.
    #[serde(default)]
    pub kind: LossKind,
}

/// What happens to a frame that is hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// It never arrives.
    #[default]
    Loss,
    /// It arrives, and the receiver discards it by its checksum.
    Corruption,
}
