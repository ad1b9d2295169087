//! Random packet spraying: each of the equal next hops with the same probability (Dixit et al., INFOCOM 2013).

use super::keys::{Keys, Setting};
use super::seam::{Arrival, Offer, SwitchRule};
use crate::flow_control::keys::Complaint;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spray;

impl Keys for Spray {
    type Rule = Self;

    fn rule(&self, _: &mut Setting<'_>) -> Result<Self, Complaint> {
        Ok(*self)
    }
}

impl SwitchRule for Spray {
    const STREAM: &'static str = "spraying";

    type Place = ();
    const EMPTY: () = ();

    fn choose(
        &self,
        _: &mut [()],
        _: Arrival,
        offer: Offer<'_>,
        mut draw: impl FnMut(u64) -> u64,
        _: impl Fn(usize) -> u64,
    ) -> usize {
        draw(offer.paths as u64) as usize
    }

    fn describe(&self) -> String {
        "at random (spray)".into()
    }
}
