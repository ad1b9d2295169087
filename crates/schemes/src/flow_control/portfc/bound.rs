//! How much memory a switch needs under PortFC in order to lose nothing, for k = 1.
//!
//! The paper calls X_off = 6 BDP a headroom (section V-A), but it is the level at which pausing begins; later
//! arrivals need room beyond it (`portfc.headroom-wording`). With o an upper bound on that, no set of queues
//! exceeds
//!
//! ```text
//!   IHFQs of a port:  X_off + largest packet + Σ o_A(j)   over all other ports j
//!   DDQ of a port:    X̂_off + largest packet + Σ o_B(j)
//! ```
//!
//! *o_A(j).* The frame waits for the packet on the wire of j and for every other frame that the switch may
//! send at that time, crosses, and takes effect. The packet that the node had begun, and the packets on the
//! cable, still arrive:
//!
//! ```text
//!   t1  = (largest + 2 (n − 1) frames) / rate + delay + response time
//!   o_A = rate · (t1 + delay) + largest
//! ```
//!
//! The node passes the frame on to the next switch, whose packets then still come over the node (three hops
//! in all):
//!
//! ```text
//!   t2  = (largest + (n − 1) frames) / rate' + delay' + response time
//!   o_B = rate · (t1 + t2 + delay' + delay) + largest · (rate / rate' + 4)
//! ```
//!
//! where ' is the node's other link, and four packets are taken to wait in its relay queue and on its wires:
//! further packets in the queue arrive as well. Relay queues are short if they are fed no faster than they
//! are served; a faster other link (rate' > rate) feeds them faster. ACKs go before RQ: at a node that relays
//! and receives at line rate for long, RQ grows by up to an ACK for each data packet, until the flows end, or
//! up to their windows, or the marking threshold of a congestion control.
//!
//! All ports of a switch can reach their bounds at the same time only in theory: this is sufficient, and not
//! necessary. Packets in HQ are not counted.

use super::frame::PortPauseFrame;
use xoff_kernel::time::{SECOND, Time, serialisation};

/// Packets that a relay queue is taken to hold, those on its wires included.
pub const SHORT: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    pub rate: u64,
    pub delay: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side {
    pub near: Link,
    /// The node's link to the next switch, if it relays.
    pub far: Option<Link>,
    /// X_off of the port's IHFQs and X̂_off of its DDQ, in bytes.
    pub xoff: u64,
    pub ddq_xoff: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// All X_off and X̂_off, with the packets that cross them.
    pub thresholds: u64,
    /// Arrivals after that at IHFQs, and at DDQs, over relays included.
    pub forwarding: u64,
    pub direct: u64,
}

impl Bound {
    pub fn total(&self) -> u64 {
        self.thresholds + self.forwarding + self.direct
    }
}

/// Bytes that a link brings in a time, rounded up.
fn brings(link: Link, time: Time) -> u64 {
    let bits = u128::from(link.rate) * u128::from(time);
    u64::try_from(bits.div_ceil(8 * u128::from(SECOND))).unwrap_or(u64::MAX)
}

/// The bound with packets of up to `largest` bytes, and frames that take effect after `response_time`.
pub fn bound(sides: &[Side], largest: u32, response_time: Time) -> Bound {
    let largest = u64::from(largest);
    let frames = |number: usize| number as u64 * u64::from(PortPauseFrame::LENGTH);
    let others = sides.len().saturating_sub(1);
    let mut after = Bound::default();
    for side in sides {
        let near = side.near;
        let t1 = serialisation(largest + frames(2 * others), near.rate) + near.delay + response_time;
        // Each side feeds every other port.
        let times = others as u64;
        after.forwarding += times * (brings(near, t1 + near.delay) + largest);
        let mut time = t1 + near.delay;
        if let Some(far) = side.far {
            time += serialisation(largest + frames(others), far.rate) + far.delay + response_time;
            time += far.delay + serialisation(largest, far.rate);
        }
        after.direct += times * (brings(near, time) + SHORT * largest);
        after.thresholds += side.xoff + side.ddq_xoff + 2 * largest;
    }
    after
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's switch with 8 ports, worked out by hand: its 5 MB are less.
    #[test]
    fn eight_ports_of_the_paper() {
        let link = Link { rate: 100_000_000_000, delay: 1_000_000 };
        let side = Side { near: link, far: Some(link), xoff: 75_000, ddq_xoff: 75_000 };
        let bound = bound(&[side; 8], 1_048, 0);
        assert_eq!(bound.thresholds, 8 * (150_000 + 2 * 1_048));
        // 1,048 + 14 · 64 B, 12,500 B in each direction, and the packet begun: 27,992 B.
        assert_eq!(bound.forwarding, 56 * (1_048 + 896 + 25_000 + 1_048));
        // Then 1,048 + 7 · 64 B, 12,500 B in each direction once more, and a packet; and four.
        assert_eq!(bound.direct, 56 * (1_944 + 25_000 + 1_496 + 25_000 + 1_048 + 4 * 1_048));
        assert!(bound.total() > 5_000_000, "{bound:?}");
    }
}
