//! Flow controls.

use xoff_kernel::time::Time;

/// The flow control of a run, with its resolved parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowControlParams {
    /// None: what does not fit is dropped.
    None,
    /// 802.1Qbb.
    Pfc(PfcParams),
}

/// Parameters of PFC, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcParams {
    /// Pause quanta in a pause frame, of 512 bit times each; 1 to 65535.
    pub quanta: u16,
    /// From the arrival of a pause frame's last bit until it takes effect.
    pub response_time: Time,
}

/// The facts of a link that headroom depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Bits per second.
    pub rate: u64,
    /// One-way delay.
    pub delay: Time,
    /// Largest packet that either side may have begun, in bytes.
    pub largest: u32,
}

/// Headroom, with the terms it is the sum of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Name and bytes of each term; empty if the scenario set the sum.
    pub terms: Vec<(&'static str, u64)>,
    /// The sum in bytes.
    pub total: u64,
}
