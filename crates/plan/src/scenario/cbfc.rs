//! The `[flow_control]` table of `cbfc`.

use super::defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Span, Threshold};

/// Credit-based flow control after InfiniBand. Each port has a buffer of its own for each
/// priority that comes in by it; nothing is shared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cbfc {
    /// Room of each port for each priority. In bytes, or in BDP (rate times one-way
    /// delay) of its link; whole blocks of 64 B are used. Default: as much as keeps the
    /// link busy, and without `unlimited` no more than 12 bits can grant, 131,072 B.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Threshold>,
    /// Time between two flow-control packets of a priority on a link. Default:
    /// InfiniBand's longest, 65,536 symbol times: that of 262,144 B at the link's rate,
    /// 20.97 us at 100 Gbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<Span>,
    /// Counters of 64 bits instead of 12, so that more than 2,048 blocks can be granted:
    /// CBFC-ideal.
    #[serde(default)]
    pub unlimited: bool,
    /// The same of the ports of long links. Default: `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub long_buffer: Option<Threshold>,
    /// The same of the other ports of switches that have long links. Default: `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_buffer: Option<Threshold>,
    /// From the arrival of a flow-control packet until it takes effect.
    #[serde(default = "defaults::zero_time")]
    pub response_time: Span,
}

impl Default for Cbfc {
    fn default() -> Self {
        Cbfc {
            buffer: None,
            update: None,
            unlimited: false,
            long_buffer: None,
            gateway_buffer: None,
            response_time: defaults::zero_time(),
        }
    }
}
