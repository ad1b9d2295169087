//! Congestion controls: what sets a sender's rate.

pub mod dcqcn;

/// Parameters of the congestion control, resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionControlParams {
    /// Line rate, or the flow's own pace.
    None,
    /// DCQCN: marks, notifications, and a rate per flow.
    Dcqcn(dcqcn::DcqcnParams),
}
