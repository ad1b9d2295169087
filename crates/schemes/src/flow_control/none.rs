//! No flow control: what does not fit is dropped.

use super::device::Device;
use super::registry::FlowControl;
use super::seam::{Machine, Parameters, Scheme, Traits};

/// It has no parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoParams;

/// Nothing is ever paused.
#[derive(Clone, Copy, Debug)]
pub struct NoFlowControl;

impl Parameters for NoParams {
    fn name(&self) -> &'static str {
        "none"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn start(&self, _: usize, _: &[u8]) -> FlowControl {
        FlowControl::None(NoFlowControl)
    }
}

impl Machine for NoFlowControl {}

impl<D: Device> Scheme<D> for NoFlowControl {}
