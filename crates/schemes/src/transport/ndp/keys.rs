//! The table of NDP, and the first windows of flows.

use super::NdpParams;
use crate::flow_control::keys::Complaint;
use crate::transport::keys::{Keys, Nacks, Resolved, Setting, Traits, timeout};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::MICROSECOND;
use xoff_net::units::{Span, Threshold};

/// The transport `ndp`. Receivers request each packet after the first window with a PULL frame, at the
/// rate of their link. Each packet has its own ACK, or a NACK if a switch has trimmed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NdpKeys {
    /// Payload that a flow sends at line rate before the first PULL: bytes, or multiples of the flow's own BDP
    /// (the rate of the slowest link of its route times its unloaded round trip), rounded up to whole packets.
    /// Default: `"1bdp"`.
    #[schemars(extend("default" = NdpKeys::INITIAL_WINDOW))]
    pub initial_window: Option<Threshold>,
    /// Time after which a packet without an answer is retransmitted, and a sender without any answer sends
    /// a packet that was not requested; 100 ns or longer. Default: 1 ms.
    #[schemars(extend("default" = NdpKeys::RTO))]
    pub rto: Option<Span>,
}

impl NdpKeys {
    const INITIAL_WINDOW: Threshold = Threshold::Bdp(1_000);
    const RTO: Span = Span(1_000 * MICROSECOND);
}

impl Keys for NdpKeys {
    type Params = NdpParams;

    const TRAITS: Traits = Traits {
        timeouts: &["rto"],
        limits_flight: true,
        understands_trimmed: true,
        requests: true,
        acks_name_arrival: true,
        nacks: Nacks::MissingAndArrived,
        ..Traits::NONE
    };

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<NdpParams>, Complaint> {
        cx.refuse_control("`ndp`, whose receivers set the rate")?;
        cx.refuse_rare_acks("`ndp` acknowledges every packet")?;
        cx.refuse_explanations("a trimmed packet and a PULL have no part of a flow's time")?;
        cx.refuse_counted_marks("NDP")?;
        if cx.window.is_some() {
            cx.warn("transport.window", "had no effect: the transport `ndp` has ndp.initial_window");
        }
        let rto = timeout("ndp.rto", self.rto.unwrap_or(Self::RTO))?;
        let (_, longest) = cx.routes.extremes();
        cx.warn_of_timeout("ndp.rto", rto, longest);
        let first = self.initial_window.unwrap_or(Self::INITIAL_WINDOW);
        if let Threshold::Bytes(window) = first {
            cx.check_window("ndp.initial_window", window.0, &window.to_string())?;
        }
        let windows = cx.windows(Some(first), ("ndp.initial_window", "first window"))?;
        Ok(Resolved { params: NdpParams { rto }, rto, window: None, windows })
    }
}
