//! `[[failure]]` and `[[loss]]`: faults of links and switches.

use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use xoff_net::units::Span;

/// A link or a switch that fails, once or repeatedly. Packets on the wire or waiting for a failed
/// link are lost, and so are the packets in a failed switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The link between two nodes, `"S0.0-S1.2"` (all of them if there are several), or the link at
    /// a port, `"S0.0:5"`. A long link with relays may be named by its two switches.
    #[serde(default, deserialize_with = "link_or_none")]
    #[schemars(extend("x-default" = "required: `link` or `switch`"))]
    pub link: Option<String>,
    /// A switch: all of its links fail. Write either this or `link`.
    #[schemars(extend("x-default" = "required: `link` or `switch`"))]
    pub switch: Option<String>,
    /// Time of the failure. At 0 routes avoid it from the beginning.
    pub at: Span,
    /// Planned maintenance: so long before the failure routes begin to avoid it (later by
    /// `routing.reconvergence`), so that its packets can leave it first. At most `at`; with `every`, less than
    /// the time between two failures. Default: 0, a failure without notice.
    #[schemars(extend("default" = Span(0)))]
    pub drain: Option<Span>,
    /// Time of the recovery. Default: never.
    #[schemars(extend("x-default" = "none: it stays down"))]
    pub until: Option<Span>,
    /// Time from one failure to the next.
    #[schemars(extend("x-default" = "none: it fails once"))]
    pub every: Option<Span>,
    /// Number of failures in total, with `every`. Default: as many as fit into `run.duration` and
    /// `run.drain`.
    #[schemars(range(min = 1), extend("x-unit" = "failures"))]
    #[schemars(extend("x-default" = "derived: until the end of `run.duration` and `run.drain`"))]
    pub times: Option<u32>,
}

/// A link that loses or corrupts frames at random, control frames as well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// The link, written as in a failure: `"S0.0-S1.2"` or `"S0.0:5"`.
    #[serde(deserialize_with = "link")]
    pub link: String,
    /// The end whose frames are hit. Default: both ends.
    #[schemars(extend("x-default" = "both ends"))]
    pub from: Option<String>,
    /// Probability that a frame is hit.
    #[schemars(range(max = 1.0), extend("x-unit" = "probability"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub rate: Option<f64>,
    /// Probability that a bit is hit. A hit bit destroys its frame. All bytes of a frame count:
    /// `mtu`, `header`, `ack` and pause frames.
    #[schemars(range(max = 1.0), extend("x-unit" = "probability"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub ber: Option<f64>,
    /// Number of the flow-control frame that is hit, counted from 1 between `at` and `until`; no other frame is.
    /// Write one of this, `rate` and `ber`.
    #[schemars(range(min = 1), extend("x-unit" = "number of a frame"))]
    #[schemars(extend("x-default" = "required: `rate`, `ber` or `control_frame`"))]
    pub control_frame: Option<u64>,
    /// What happens to a frame that is hit.
    #[serde(default)]
    pub kind: LossKind,
    /// Frames can be hit if their transmission begins at this time or later. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = Span(0)))]
    pub at: Option<Span>,
    /// Frames whose transmission begins at this time or later are not hit. Default: there is no such time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "none: frames are hit until the end"))]
    pub until: Option<Span>,
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

/// The name of a link; empty if the value is no text. Only the topology knows which links there
/// are, so the plan refuses it.
fn link<'de, D: Deserializer<'de>>(d: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Name {
        Text(String),
        Other(IgnoredAny),
    }
    Ok(match Name::deserialize(d)? {
        Name::Text(name) => name,
        Name::Other(_) => String::new(),
    })
}

fn link_or_none<'de, D: Deserializer<'de>>(d: D) -> Result<Option<String>, D::Error> {
    link(d).map(Some)
}
