//! The table `[rccc]`, and the parameters that it makes.

use super::super::keys::{Keys, Sets, Setting, Traits, out_of_range};
use super::{MOST, QUANTUM, RcccParams};
use crate::flow_control::keys::Complaint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Bytes;

/// The congestion control `rccc`. The first window of a flow, `transport.window`, needs no credit. The defaults
/// are those of the simulator uet-htsim. `nscc+rccc` reads this table, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RcccKeys {
    /// Share of its link's rate at which a receiver grants credit; 0.01 to 1. Default: 0.99.
    #[schemars(extend("x-unit" = "ratio", "default" = RcccKeys::RATE, "minimum" = RcccKeys::LEAST_RATE, "maximum" = 1))]
    pub rate: Option<f64>,
    /// Credit of one frame, rounded down to 256 B; 256 B to 16 MB. Default: four times `transport.mtu`, at least
    /// 256 B.
    #[schemars(extend("x-default" = "derived: 4 × `transport.mtu`"))]
    pub grant: Option<Bytes>,
    /// Whether each ACK carries the credit of its flow, too, for which the specification has room in it. A lost or late
    /// frame of credit then costs nothing after the next ACK. Default: false, as in uet-htsim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub in_acks: bool,
}

impl RcccKeys {
    const RATE: f64 = 0.99;
    const LEAST_RATE: f64 = 0.01;
    /// Default of `grant`, in packets.
    const GRANT: u64 = 4;
    const MOST_GRANT: u64 = 16_000_000;
}

impl Keys for RcccKeys {
    type Params = RcccParams;

    const TRAITS: Traits = Traits { sets: Sets::Credit, most_credit: Some(MOST), ..Traits::NONE };

    fn params(&self, cx: &mut Setting<'_>) -> Result<RcccParams, Complaint> {
        let rate = self.rate.unwrap_or(Self::RATE);
        if !(Self::LEAST_RATE..=1.0).contains(&rate) {
            let help = format!("write a number from {} to 1", Self::LEAST_RATE);
            return Err(out_of_range("rccc.rate", rate, help));
        }
        let grant = self.grant.map_or((Self::GRANT * u64::from(cx.packet.mtu)).max(QUANTUM), |b| b.0);
        if !(QUANTUM..=Self::MOST_GRANT).contains(&grant) {
            let help = format!("write {} to {}", Bytes(QUANTUM), Bytes(Self::MOST_GRANT));
            return Err(out_of_range("rccc.grant", Bytes(grant), help));
        }
        Ok(RcccParams { rate, grant: (grant / QUANTUM) as u32, in_acks: self.in_acks })
    }
}
