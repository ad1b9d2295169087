//! The table of RUD, and the windows of flows.

use super::{Probes, RudParams};
use crate::congestion_control::CongestionControl;
use crate::flow_control::keys::Complaint;
use crate::transport::keys::{Keys, Nacks, Resolved, Setting, Traits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::units::Threshold;

/// MaxWnd of the specification.
const WINDOW: Threshold = Threshold::Bdp(1_500);

/// The transport `rud`: how it finds losses besides NACKs and timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RudKeys {
    /// If true, a sender infers losses from packets out of order: if at least 5 of them are acknowledged, and at least
    /// 1.5 windows or the largest window. It finds the losses of full queues and lossy links before the timeout.
    pub infer_losses: bool,
    /// If true, a sender without ACKs sends probes, and infers from the ACK of a probe that what left before it is
    /// lost, if the ACK comes soon. It requires `infer_losses`. A probe has the size of an ACK and the priority
    /// of the data. It is sent one round trip after the last ACK if all packets have been sent, else after three.
    pub probes: bool,
}

impl Keys for RudKeys {
    type Params = RudParams;

    const TRAITS: Traits = Traits {
        // Max_RTO_Retx_Cnt.
        retries: Some(5),
        counts_retries: true,
        limits_flight: true,
        understands_trimmed: true,
        asks_for_credit: true,
        acks_have_bitmaps: true,
        acks_early: true,
        nacks: Nacks::Trimmed,
        ..Traits::NONE
    };

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<RudParams>, Complaint> {
        cx.refuse_explanations("a trimmed packet has no part of a flow's time")?;
        cx.refuse_counted_marks("RUD")?;
        let (_, longest) = cx.routes.extremes();
        cx.warn_of_timeout("transport.rto", cx.rto.0, longest);
        let sets_first = cx.control == CongestionControl::None || cx.control.traits().most_credit.is_some();
        let given = cx.window.or(sets_first.then_some(WINDOW));
        let windows = cx.windows(given, ("transport.window", "window"))?;
        if self.probes && !self.infer_losses {
            let message = "`probes` requires `infer_losses`: losses are inferred from the ACKs of probes";
            let help = "add infer_losses = true, or remove the key";
            return Err(Complaint::new("rud.probes", message, help));
        }
        let probes = match self.probes {
            true => Some(Probes { base: cx.routes.base_rtt()?, target: cx.routes.target_delay()? }),
            false => None,
        };
        let params = RudParams {
            rto: cx.rto.0,
            ack_every: cx.ack_every,
            retries: cx.retries,
            nack_retries: cx.nack_retries,
            infers_losses: self.infer_losses,
            probes,
        };
        Ok(Resolved { params, rto: cx.rto.0, window: None, windows })
    }
}
