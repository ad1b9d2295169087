//! The table `[powertcp]`, and the parameters that it makes.

use super::super::Step;
use super::super::keys::{Keys, MINIMUM_RATE, Setting, Traits, out_of_range, share, step};
use super::super::telemetry::{self, EACH_HOP, HEAD, HOPS};
use super::PowerTcpParams;
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::{Bandwidth, Bytes};

/// The congestion control `powertcp`. It has telemetry as `hpcc`, and the same limits: the first ACK of a
/// flow, and the first ACK after a route change, only start a measurement. The defaults are those of
/// its authors' group's implementation for Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerTcpKeys {
    /// γ, the weight of the newest window; above 0, up to 1. Default: 0.9.
    #[schemars(extend("x-unit" = "ratio", "default" = PowerTcpKeys::GAMMA, "exclusiveMinimum" = 0, "maximum" = 1))]
    pub gamma: Option<f64>,
    /// N, the expected flows of a bottleneck, 1 to 1000000: each ACK adds β, the line rate times
    /// `transport.base_rtt` over N, and in equilibrium a link's flows keep a queue of β each. Default: 10.
    #[schemars(range(min = 1, max = 1_000_000), extend("x-unit" = "flows", "default" = PowerTcpKeys::FLOWS))]
    pub flows: Option<u32>,
    /// The lowest rate of a flow. It must be below the line rate of at least one flow. Default: 1
    /// Gbit/s.
    #[schemars(extend("default" = MINIMUM_RATE))]
    pub minimum_rate: Option<Bandwidth>,
    /// Most hops whose telemetry fits into a packet, 1 to 63. Longer routes are refused. Default:
    /// 5.
    #[schemars(range(min = 1, max = 63), extend("x-unit" = "hops", "default" = HOPS))]
    pub hops: Option<u8>,
    /// Bytes of telemetry in each data packet and ACK, added to `transport.header` and
    /// `transport.ack`. Default: 2 B plus 8 B per hop, as HPCC's: 42 B. `load` does not count
    /// them.
    #[schemars(extend("x-default" = format!("derived: {} B + {} B × `hops`", HEAD, EACH_HOP)))]
    pub telemetry: Option<Bytes>,
}

impl PowerTcpKeys {
    const GAMMA: f64 = 0.9;
    const FLOWS: u32 = 10;
    const MOST_FLOWS: u32 = 1_000_000;
}

impl Keys for PowerTcpKeys {
    type Params = PowerTcpParams;

    const TRAITS: Traits = Traits { window_follows: true, has_base_rtt: true, ..Traits::RATES };

    fn telemetry(&self) -> Result<u32, Complaint> {
        telemetry::room("powertcp", self.hops, self.telemetry)
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<PowerTcpParams, Complaint> {
        let base_rtt = cx.flows.base_rtt()?;
        telemetry::warn_of_paths(cx);
        let minimum_rate = step(self.minimum_rate, Step::Rate(MINIMUM_RATE.0));
        cx.check_minimum("powertcp.minimum_rate", minimum_rate)?;
        let flows = self.flows.unwrap_or(Self::FLOWS);
        if !(1..=Self::MOST_FLOWS).contains(&flows) {
            let help = format!("write a whole number from 1 to {}", Self::MOST_FLOWS);
            return Err(out_of_range("powertcp.flows", flows, help));
        }
        let telemetry = self.telemetry()?;
        Ok(PowerTcpParams {
            gamma: share("powertcp.gamma", "gamma", self.gamma.unwrap_or(Self::GAMMA), "0.9")?,
            flows,
            minimum_rate,
            base_rtt,
            hops: self.hops.unwrap_or(HOPS),
            telemetry,
        })
    }
}
