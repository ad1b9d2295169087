//! SWING: PFC over long links, with a relay of deep memory in each end of the link, after Chen et al.,
//! *Swing: Providing Long-Range Lossless RDMA via PFC-Relay*, TPDS 2023, as Huang et al., *Minimizing Buffer
//! Utilization for Lossless Inter-DC Links*, 2024, use it (sections II-B and VI-B).
//!
//! ```text
//!   DCI.0 ──short── R.0 ═══════════ long ═══════════ R.1 ──short── DCI.1
//!                                                          ◄─ PAUSE   DCI.1's account over
//!                        ◄──────────────────────── PAUSE   at once, and own queue stops
//!         ◄─ PAUSE  at once, and own queue stops
//! ```
//!
//! A relay has two ports; packets that arrive by one leave by the other. The switch pauses at shallow
//! thresholds; the relay stores the packets in flight meanwhile. Points that this leaves open
//! (`bifrost.swing-model`): every port runs [`super::pfc`], and a relay's two ports are joined.
//!
//! One direction of a relay, for each priority: it gets data by port `i` and
//! sends them by port `o`; a pause comes in by `o` and goes out by `i`.
//!
//! ```text
//!             PAUSE at o: stop the queue of o; PAUSE at i
//!     Open ───────────────────────────────────────────────► Paused ◄───────┐
//!      ▲ ▲                                                    │            │ PAUSE at o:
//!      │ │ no RESUME at i          RESUME at o, or expiry:    ▼            │ stop the queue
//!      │ └──────────────────────────────────────────────── Held ───────────┘ of o
//!      │  `hold` later: RESUME at i                      (the queue of o goes)
//!      │
//!      └─ and besides, at any time, while the account of port i is over its own
//!         threshold, i is closed as well: RESUME goes out when neither holds.
//! ```
//!
//! While i is closed its PAUSE is repeated after half of its time, as in PFC; so a pause crosses the long
//! link as a real frame, after the packet on the wire, and takes a propagation delay.
//!
//! *Why one round trip of memory is enough.* The far relay stops for as long as this one stops, a round trip
//! later. So the bytes here are the arrivals during stops of this relay, less the missing arrivals of stops
//! that are a round trip old: at most [`memory`]. This requires that the far stop is no shorter than this
//! one. A pause takes effect after a packet (here, or there), and its frame waits for one: between the two
//! ends of a stop that makes up to two packets, in either direction. Without [`hold`] such packets would add
//! up, stop by stop. With it the drift is towards an empty queue. (Pause frames that a relay sends its switch
//! take 64 B of wire time each. The far relay sends as many over the long link, ahead of the data, except
//! repetitions at another time, which are not compensated.)
//!
//! *Several priorities.* A relay that serves one priority before another holds the other back without a pause
//! that could be mirrored. Then one round trip is not enough, and a bound needs the account's own threshold,
//! with headroom for a round trip above it: plain PFC between the relays, as the last resort.

pub mod keys;
pub mod size;

use super::pfc::{self, Pfc, PfcParams, Relay, headroom};
use super::size::links::{Links, Report};
use super::{FlowControl, Headroom, LinkFacts, Parameters, Seen, Traits};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::units::Span;

/// The parameters of PFC on every port: only the relays are special to SWING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwingParams {
    pub pfc: PfcParams,
}

impl Parameters for SwingParams {
    fn traits(&self) -> Traits {
        Traits::of_pfc(&self.pfc)
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let hold = if let Relay::Mirror { hold } = self.pfc.relay { hold } else { 0 };
        format!(
            "(relays forward pauses immediately, and resumes {} later; {} quanta, response time {})",
            Span(hold),
            self.pfc.quanta,
            Span(self.pfc.response_time)
        )
    }

    fn compare(&self, links: &Links<'_>, report: &mut Report) -> bool {
        let (topology, response_time) = (links.topology, self.pfc.response_time);
        links.accounts(|ingress| {
            let p = &topology.ports[ingress.port as usize];
            let relay = p.long && topology.is_relay(p.node);
            let compare = if relay { size::compare } else { pfc::size::compare };
            compare(links, ingress, response_time, report);
            true
        });
        true
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Pfc(Pfc::new(self.pfc, ports, priorities))
    }
}

/// XOFF between a relay and its switch, in bytes: 198 KiB (Huang et al., section VI-B, where MB are MiB).
pub const THRESHOLD: u64 = 198 * 1024;

/// XON where it is not given: so many largest packets below XOFF, if there is room for them. Were XON as high
/// as XOFF, a queue that neither grows nor shrinks would pause and resume for every packet, and each time
/// hold the far relay back for longer than it stops the near one.
pub fn xon(xoff: u64, largest: u32) -> u64 {
    xoff - (16 * u64::from(largest)).min(xoff / 2)
}

/// How much later than it comes the end of a pause is passed on: the time of two
/// largest packets on the long link, in picoseconds.
pub fn hold(link: &LinkFacts) -> Time {
    2 * serialisation(u64::from(link.largest), link.rate)
}

/// The bytes of one priority that can wait in a relay for its switch, where the far relay mirrors every stop:
/// PFC's headroom of the long link, a packet that has come in whole and one that is going out.
pub fn memory(link: &LinkFacts, response_time: Time) -> Headroom {
    let (mut room, packets) = (headroom(link, response_time), 2 * u64::from(link.largest));
    room.terms.push(("packets that pass through", packets));
    room.total += packets;
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_and_some_packets() {
        // 600 km at 400 Gbit/s: a round trip is 300 MB, which the paper calls 286 MB.
        let link = LinkFacts { rate: 400_000_000_000, delay: 3_000_000_000, largest: 1500, retries: 0 };
        let room = memory(&link, 0);
        assert_eq!(room.total, 300_000_000 + 1500 + 64 + 1500 + 3000);
        assert_eq!(room.terms.iter().map(|t| t.1).sum::<u64>(), room.total);
        assert!(room.total < 287 << 20);
        assert_eq!(hold(&link), 60_000); // 30 ns each
    }
}
