//! The table `[routing.adaptive]`.

use super::super::keys::{Keys, Setting, out_of_range};
use super::AdaptiveParams;
use crate::flow_control::keys::{Complaint, LAST, Warning};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Span;

/// Most entries of a table of flowlets.
const MOST_FLOWS: u32 = 65_536;

/// Adaptive routing and switching. The defaults are those of SAI's attributes of ARS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "Adaptive")]
pub struct AdaptiveKeys {
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

impl Default for AdaptiveKeys {
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

impl Keys for AdaptiveKeys {
    type Rule = AdaptiveParams;

    fn reorders(&self) -> bool {
        self.mode == AdaptiveMode::Packet
    }

    fn rule(&self, cx: &mut Setting<'_>) -> Result<AdaptiveParams, Complaint> {
        let Self { mode, idle, flows } = *self;
        for key in ["idle", "flows"].iter().filter(|_| mode == AdaptiveMode::Packet) {
            let key = format!("routing.adaptive.{key}");
            if (cx.is_written)(&key) {
                let message = "had no effect: routing.adaptive.mode is \"packet\"".into();
                cx.warnings.push(Warning { key, message });
            }
        }
        if idle.0 == 0 || idle.0 > LAST {
            let help = format!("write a time above 0, up to {}", Span(LAST));
            return Err(out_of_range("adaptive.idle", idle, help));
        }
        if !(1..=MOST_FLOWS).contains(&flows) {
            return Err(out_of_range("adaptive.flows", flows, format!("write 1 to {MOST_FLOWS}")));
        }
        let idle = if mode == AdaptiveMode::Flowlet { idle.0 } else { 0 };
        Ok(AdaptiveParams { idle, flows })
    }
}
