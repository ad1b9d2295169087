//! Go-back-N has no keys of its own.

use super::GoBackN;
use crate::flow_control::keys::Complaint;
use crate::transport::keys::{self, Resolved, Setting, Traits};
use crate::transport::seam::Parameters;

impl keys::Keys for GoBackN {
    type Params = Self;

    const TRAITS: Traits =
        Traits { gap: Some("go-back-n retransmits every packet after a gap"), ..Traits::NONE };

    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<Self>, Complaint> {
        let (_, longest) = cx.routes.extremes();
        cx.warn_of_timeout("transport.rto", cx.rto.0, longest);
        Ok(Resolved { params: Self, rto: cx.rto.0, window: cx.network_window()?, windows: Vec::new() })
    }
}

impl Parameters for GoBackN {}
