//! Valiant's routing: a random non-minimal path, where there is one (see [`super::ugal`]).

use super::keys::{Keys, Setting};
use super::seam::{Arrival, Offer, SwitchRule};
use super::ugal;
use crate::flow_control::keys::Complaint;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Valiant;

impl Keys for Valiant {
    type Rule = Self;

    fn rule(&self, _: &mut Setting<'_>) -> Result<Self, Complaint> {
        Ok(*self)
    }
}

impl SwitchRule for Valiant {
    const STREAM: &'static str = ugal::STREAM;
    const NON_MINIMAL: bool = true;

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
        match offer.paths - offer.minimal {
            0 => draw(offer.minimal as u64) as usize,
            others => offer.minimal + draw(others as u64) as usize,
        }
    }

    fn describe(&self) -> String {
        "at the first switch a random non-minimal one (valiant)".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_a_non_minimal_path_wherever_there_is_one() {
        let chosen = |minimal, others| {
            let offer = Offer { paths: minimal + others, minimal, links: &[] };
            Valiant.choose(&mut [], Arrival { flow: 0, now: 0 }, offer, |n| n - 1, |_| 0)
        };
        assert_eq!([chosen(2, 3), chosen(2, 0), chosen(0, 3)], [4, 1, 2]);
    }
}
