//! The FCT of a flow that is alone in the network, exact to the picosecond.
//!
//! Packets are stored and forwarded: a hop begins to send a packet when its last bit has arrived and the
//! packet before it has left. Sending takes [`serialisation`], rounded up to whole picoseconds for each
//! packet at each hop. All packets of a flow but the last have the same size, so the recursion
//!
//! ```text
//! D_h(k) = max(D_{h-1}(k) + delay_{h-1}, D_h(k-1)) + s_h
//! ```
//!
//! (departure of packet `k` from hop `h`, both from 0) has the closed form `D_h(k) = Σ_{g≤h} s_g + Σ_{g<h}
//! delay_g + k · max(gap, max_{g≤h} s_g)`, where `gap` is the distance at which a paced sender releases
//! packets. The last packet may be shorter and can run into the one before it: that is the recursion itself,
//! once per hop. ACKs travel back in the same way, released whenever another `ack_every` packets, or the last
//! one, have arrived.
//!
//! The closed form assumes that no port sends both data and ACKs of the flow,
//! nor the same packet twice. Shortest paths are of that kind; a static override
//! can make others. Windows, stalls of slow receivers and ECN are not part of it.

use crate::plan::PacketFormat;
use xoff_kernel::time::{Time, serialisation};

/// A hop of a route: a port that sends and its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    pub rate: u64,
    /// One-way delay of the link, in picoseconds.
    pub delay: Time,
}

/// The parameters of a flow's completion time, besides its routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Payload bytes, at least 1.
    pub size: u64,
    /// Bits per second of wire bytes that the sender keeps to; 0 is line rate.
    pub pace: u64,
    /// The receiver acknowledges every so many packets, and the last one. At least 1.
    pub ack_every: u32,
}

/// From the start of a flow to the arrival of its last ACK's last bit at the
/// sender. `None` if that is beyond 64 bits of picoseconds (213 days).
///
/// Both routes run from the sending NIC's port to the last port before the
/// receiver, and have at least one hop.
///
/// # Panics
/// If a rate, the size, the MTU or `ack_every` is zero.
pub fn completion(format: &PacketFormat, message: &Message, data: &[Hop], ack: &[Hop]) -> Option<Time> {
    let packets = format.packets(message.size);
    let wire = u64::from(format.wire_size(message.size, 0));
    let last = u64::from(format.wire_size(message.size, packets - 1));
    let gap = match message.pace {
        0 => 0,
        pace => u128::from(serialisation(wire, pace)),
    };
    let data_train = Train { first: 0, count: packets - 1, period: gap, size: wire };
    let release = u128::from(packets - 1) * gap;
    let (arrived, period) = cross(data, &data_train, release, last);

    // Full packets `every`, `2·every`, … are acknowledged, unless the last
    // packet is among them: its ACK is the one whose arrival counts.
    let every = u64::from(message.ack_every);
    let acks = (packets - 1) / every;
    let full: u128 = data.iter().map(|h| u128::from(serialisation(wire, h.rate)) + u128::from(h.delay)).sum();
    let ack_train = Train {
        first: full + u128::from(every - 1) * period,
        count: acks,
        period: u128::from(every) * period,
        size: u64::from(format.ack),
    };
    let (done, _) = cross(ack, &ack_train, arrived, u64::from(format.ack));
    Time::try_from(done).ok()
}

/// Packets of one size that are ready at equal distances.
struct Train {
    first: u128,
    count: u64,
    /// Distance in picoseconds.
    period: u128,
    /// Bytes of each on the wire.
    size: u64,
}

/// Sends a train and, after it, one last packet of `last` bytes that is ready at `ready`. Returns when the
/// last packet has arrived at the far end, and the distance at which the train arrives there.
fn cross(hops: &[Hop], train: &Train, ready: u128, last: u64) -> (u128, u128) {
    let mut slowest = train.period;
    let mut first = train.first;
    let mut arrived = ready;
    for hop in hops {
        let each = u128::from(serialisation(train.size, hop.rate));
        first += each;
        slowest = slowest.max(each);
        let begin = match train.count {
            0 => arrived,
            n => arrived.max(first + u128::from(n - 1) * slowest),
        };
        arrived = begin + u128::from(serialisation(last, hop.rate)) + u128::from(hop.delay);
        first += u128::from(hop.delay);
    }
    (arrived, slowest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GBPS: u64 = 1_000_000_000;
    const US: Time = 1_000_000;

    fn two_hops(rate: u64) -> [Hop; 2] {
        [Hop { rate, delay: US }; 2]
    }

    fn plain(size: u64) -> Message {
        Message { size, pace: 0, ack_every: 1 }
    }

    /// 2,500 packets of 4,064 B over one switch at 100 Gbit/s, 1 us per link,
    /// ACKs of 64 B: 2500 · 325.12 ns + 325.12 ns + 4 us + 2 · 5.12 ns.
    #[test]
    fn one_flow_over_one_switch_with_large_packets() {
        let format = PacketFormat { mtu: 4000, header: 64, ack: 64 };
        let hops = two_hops(100 * GBPS);
        assert_eq!(completion(&format, &plain(10_000_000), &hops, &hops), Some(817_135_360));
    }

    /// 1,052 B packets and 60 B ACKs: 4 us + 2 · 84.16 + 2 · 4.8 + 84.16 · (N − 1) ns.
    #[test]
    fn one_flow_over_one_switch_with_small_packets() {
        let format = PacketFormat { mtu: 1000, header: 52, ack: 60 };
        let hops = two_hops(100 * GBPS);
        for packets in [1, 2, 10, 1_000, 10_000] {
            let expected = 4_000_000 + 2 * 84_160 + 2 * 4_800 + 84_160 * (packets - 1);
            assert_eq!(
                completion(&format, &plain(packets * 1000), &hops, &hops),
                Some(expected),
                "{packets}"
            );
        }
    }

    #[test]
    fn a_time_beyond_64_bits_is_refused() {
        let format = PacketFormat { mtu: 1000, header: 52, ack: 60 };
        let hops = two_hops(1);
        assert_eq!(completion(&format, &plain(u64::MAX), &hops, &hops), None);
    }

    /// The recursion written out packet by packet.
    fn brute(format: &PacketFormat, m: &Message, data: &[Hop], ack: &[Hop]) -> Time {
        let packets = format.packets(m.size);
        let gap = if m.pace == 0 { 0 } else { serialisation(u64::from(format.wire_size(m.size, 0)), m.pace) };
        let mut free = vec![0; data.len()];
        let mut back = vec![0; ack.len()];
        let mut done = 0;
        for k in 0..packets {
            let mut t = k * gap;
            for (hop, free) in data.iter().zip(&mut free) {
                *free = t.max(*free) + serialisation(u64::from(format.wire_size(m.size, k)), hop.rate);
                t = *free + hop.delay;
            }
            if (k + 1) % u64::from(m.ack_every) == 0 || k + 1 == packets {
                for (hop, free) in ack.iter().zip(&mut back) {
                    *free = t.max(*free) + serialisation(u64::from(format.ack), hop.rate);
                    t = *free + hop.delay;
                }
                done = t;
            }
        }
        done
    }

    fn hops() -> impl Strategy<Value = Vec<Hop>> {
        let rate =
            prop_oneof![Just(100 * GBPS), Just(400 * GBPS), Just(3_333_333_337), 1_000_000u64..400 * GBPS,];
        proptest::collection::vec((rate, 0u64..5 * US).prop_map(|(rate, delay)| Hop { rate, delay }), 1..7)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 2000 / 256))]
        #[test]
        fn the_closed_form_equals_the_recursion(
            data in hops(),
            ack in hops(),
            size in prop_oneof![1u64..200, 1u64..300_000],
            mtu in prop_oneof![Just(1000u32), 64u32..9000],
            header in 0u32..200,
            ack_size in 1u32..2000,
            ack_every in prop_oneof![Just(1u32), 2u32..20],
            pace in prop_oneof![Just(0u64), 1_000_000u64..200 * GBPS],
        ) {
            let format = PacketFormat { mtu, header, ack: ack_size };
            let m = Message { size, pace, ack_every };
            prop_assert_eq!(completion(&format, &m, &data, &ack), Some(brute(&format, &m, &data, &ack)));
        }
    }
}
