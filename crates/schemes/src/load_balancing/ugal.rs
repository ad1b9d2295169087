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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UgalParams {
    /// T, in bytes times links.
    pub threshold: u64,
}

/// The choices of a first switch: minimal paths first, then the others; at least one in all. After failures there may
/// be no minimal one.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub minimal: usize,
    pub non_minimal: usize,
}

/// Valiant's choice: a random non-minimal path, or where there is none a random minimal one.
pub fn valiant(offer: Offer, mut draw: impl FnMut(u64) -> u64) -> usize {
    match offer.non_minimal {
        0 => draw(offer.minimal as u64) as usize,
        others => offer.minimal + draw(others as u64) as usize,
    }
}

/// UGAL's choice. `load` is a path's q, and `links` its H.
pub fn choose(
    params: &UgalParams,
    offer: Offer,
    mut draw: impl FnMut(u64) -> u64,
    load: impl Fn(usize) -> u64,
    links: impl Fn(usize) -> u64,
) -> usize {
    if offer.minimal == 0 {
        return draw(offer.non_minimal as u64) as usize;
    }
    let minimal = draw(offer.minimal as u64) as usize;
    if offer.non_minimal == 0 {
        return minimal;
    }
    let other = offer.minimal + draw(offer.non_minimal as u64) as usize;
    let wait = |path: usize| load(path).saturating_mul(links(path));
    if wait(minimal) <= wait(other).saturating_add(params.threshold) { minimal } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two minimal paths of 3 links and two others of 5; the second of each kind is drawn.
    fn chosen(loads: [u64; 4], threshold: u64) -> usize {
        let offer = Offer { minimal: 2, non_minimal: 2 };
        choose(&UgalParams { threshold }, offer, |n| n - 1, |p| loads[p], |p| [3, 3, 5, 5][p])
    }

    #[test]
    fn the_shorter_product_wins_and_of_equal_ones_the_minimal_path() {
        assert_eq!(chosen([0, 0, 0, 0], 0), 1);
        assert_eq!(chosen([0, 5, 0, 3], 0), 1, "15 against 15");
        assert_eq!(chosen([0, 6, 0, 3], 0), 3, "18 against 15");
        assert_eq!(chosen([0, 6, 0, 3], 3), 1, "18 against 15 and the threshold");
        assert_eq!(chosen([9, 1, 0, 0], 2), 3, "only the drawn paths count");
        let failed = Offer { minimal: 0, non_minimal: 3 };
        assert_eq!(choose(&UgalParams { threshold: 0 }, failed, |n| n - 1, |_| 1, |_| 1), 2);
    }

    #[test]
    fn valiant_takes_a_non_minimal_path_wherever_there_is_one() {
        assert_eq!(valiant(Offer { minimal: 2, non_minimal: 3 }, |n| n - 1), 4);
        assert_eq!(valiant(Offer { minimal: 2, non_minimal: 0 }, |n| n - 1), 1);
    }
}
