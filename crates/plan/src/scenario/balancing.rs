//! The tables of `[routing]` that are about load balancing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bytes, Span};

/// DRILL(d, m). The defaults are the paper's choice, DRILL(2, 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drill {
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

impl Default for Drill {
    fn default() -> Self {
        Self { d: 2, m: 1 }
    }
}

/// Adaptive routing and switching. The defaults are those of SAI's attributes of ARS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adaptive {
    /// When a device chooses among its equal next hops. It takes the one with the fewest bytes in the egress queues
    /// of all priorities, without the packet on the wire. Of equal ones it draws one at random.
    pub mode: AdaptiveMode,
    /// Time without a packet after which the next packet of a flow begins a flowlet, above 0. Only with
    /// `mode = "flowlet"`. Packets stay in order if all paths differ by less delay.
    pub idle: Span,
    /// Entries in the table of flowlets of each set of equal next hops of a device, 1 to 65,536. The hash maps each
    /// flow to an entry, and flows of one entry share its flowlets. Only with `mode = "flowlet"`.
    #[schemars(range(min = 1, max = 65536), extend("x-unit" = "entries"))]
    pub flows: u32,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self { mode: AdaptiveMode::Flowlet, idle: Span(256_000_000), flows: 512 }
    }
}

/// The unit that takes one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AdaptiveMode {
    /// Each flowlet: the packets of a flow with gaps shorter than `idle`.
    #[default]
    Flowlet,
    /// Each data packet.
    Packet,
}

/// UGAL-L: only the queues of the first switch decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ugal {
    /// A packet takes the minimal path if its queued bytes times its links are at most those of the non-minimal path
    /// plus this threshold, in bytes times links.
    pub threshold: Bytes,
}

impl Default for Ugal {
    fn default() -> Self {
        Self { threshold: Bytes(0) }
    }
}

/// PLB. The defaults are those of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plb {
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

impl Default for Plb {
    fn default() -> Self {
        Self { threshold: 0.5, idle_rounds: 3, forced_rounds: 12, labels: 8 }
    }
}
