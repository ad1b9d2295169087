//! Non-minimal routing: Valiant's, and UGAL-L, which chooses between a minimal and a non-minimal path (Kim, Dally,
//! Scott, Abts: Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008, §4; Singh's thesis, 2005).
//!
//! The first switch of a packet knows minimal paths, and non-minimal ones: in a dragonfly one over each link to
//! another group, in a torus one over each other switch, from where the packet takes a minimal path. Valiant's
//! routing draws a non-minimal path. UGAL draws one of each kind, and compares estimates of their delays, by the
//! first egress port of each:
//!
//! ```text
//! q_m · H_m ≤ q_nm · H_nm + T      the minimal path
//! otherwise                        the non-minimal path
//!
//! q   bytes in the egress queues of all priorities of that port, without the packet on the wire
//! H   links between switches on the path
//! T   a threshold, which favours the minimal path
//! ```
//!
//! UGAL-L sees only its own queues, as here; UGAL-G, an ideal, would see those of all switches.

mod keys;

use super::seam::{Arrival, Offer, SwitchRule};
pub use keys::UgalKeys;
use xoff_net::units::Bytes;

/// The name of the random streams of both.
pub(super) const STREAM: &str = "non-minimal routing";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UgalParams {
    /// T, in bytes times links.
    pub threshold: u64,
}

impl SwitchRule for UgalParams {
    const STREAM: &'static str = STREAM;
    const NON_MINIMAL: bool = true;

    type Place = ();
    const EMPTY: () = ();

    fn choose(
        &self,
        _: &mut [()],
        _: Arrival,
        offer: Offer<'_>,
        mut draw: impl FnMut(u64) -> u64,
        load: impl Fn(usize) -> u64,
    ) -> usize {
        let others = offer.paths - offer.minimal;
        if offer.minimal == 0 {
            return draw(others as u64) as usize;
        }
        let minimal = draw(offer.minimal as u64) as usize;
        if others == 0 {
            return minimal;
        }
        let other = offer.minimal + draw(others as u64) as usize;
        let wait = |path: usize| load(path).saturating_mul(offer.links[path].into());
        if wait(minimal) <= wait(other).saturating_add(self.threshold) { minimal } else { other }
    }

    fn describe(&self) -> String {
        format!(
            "at the first switch a minimal or non-minimal one by queue and length (ugal, threshold {})",
            Bytes(self.threshold)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With these loads; the last path of each kind is drawn.
    fn choose(offer: Offer<'_>, loads: &[u64], threshold: u64) -> usize {
        let packet = Arrival { flow: 0, now: 0 };
        UgalParams { threshold }.choose(&mut [], packet, offer, |n| n - 1, |path| loads[path])
    }

    #[test]
    fn the_shorter_product_wins_and_of_equal_ones_the_minimal_path() {
        // Two minimal paths of 3 links and two others of 5.
        let offer = Offer { paths: 4, minimal: 2, links: &[3, 3, 5, 5] };
        let chosen = |loads: [u64; 4], threshold| choose(offer, &loads, threshold);
        assert_eq!(chosen([0, 0, 0, 0], 0), 1);
        assert_eq!(chosen([0, 5, 0, 3], 0), 1, "15 against 15");
        assert_eq!(chosen([0, 6, 0, 3], 0), 3, "18 against 15");
        assert_eq!(chosen([0, 6, 0, 3], 3), 1, "18 against 15 and the threshold");
        assert_eq!(chosen([9, 1, 0, 0], 2), 3, "only the drawn paths count");
        let failed = Offer { paths: 3, minimal: 0, links: &[5, 5, 5] };
        assert_eq!(choose(failed, &[1; 3], 0), 2);
    }
}
