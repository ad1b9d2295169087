//! The `[routing.ate]` table.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Span;

/// Asymmetric traffic engineering (Cao et al. 2026, §III-E), for `rail-only` networks and `ndc`
/// with two layers. It applies to flows whose source and destination differ in both digits. The
/// source sends such a flow over layer 0, the high-bandwidth domain, with a probability that
/// depends on its traffic there; otherwise over layer 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ate {
    /// Share of the port to the high-bandwidth domain that the source's own data may use, above 0,
    /// up to 1. The default is the paper's.
    #[serde(default = "p")]
    #[schemars(range(max = 1.0), extend("x-unit" = "ratio", "exclusiveMinimum" = 0))]
    pub p: f64,
    /// Length of the windows in which traffic is measured. The paper gives no value.
    #[serde(default = "window")]
    pub window: Span,
    /// How the probability changes at the end of a window.
    #[serde(default)]
    pub update: AteUpdate,
    /// The probability of the high-bandwidth domain at the start, `least` to 1. With `to-capacity` it may be above
    /// the share until its first change. Default: the domain's share of the node's two rates.
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability", "x-default" = "derived: the domain's share of the node's two rates"))]
    pub first: Option<f64>,
    /// Smallest probability of the high-bandwidth domain, 0 to 1: from 0 it could never increase
    /// again. The paper has no such bound.
    #[serde(default = "least")]
    #[schemars(range(min = 0.0, max = 1.0), extend("x-unit" = "probability"))]
    pub least: f64,
}

/// Change of the probability at the end of a window with traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AteUpdate {
    /// It is multiplied by `p` times the rate over the traffic, and is at most 1.
    #[default]
    BothWays,
    /// The same, but it is at most the domain's share of the node's two rates.
    ToCapacity,
    /// It decreases in the same manner if there is too much traffic, and never increases: the
    /// algorithm as printed.
    OneSided,
}

fn p() -> f64 {
    0.9
}

fn window() -> Span {
    Span(100_000_000)
}

fn least() -> f64 {
    0.01
}
