//! Ports: the egress queues of a link direction, their scheduler and serialiser.
//!
//! Queue 0 of a port holds control frames; queue `1 + lane` forwarded packets of that lane (and a host's own
//! ACKs); on a host's port queue `1 + lanes + lane` represents the host's own queue pairs, which make their
//! packets when served. Control frames come first, then the tiers; within a tier deficit round robin.

use xoff_kernel::time::{SECOND, Time, serialisation};
use xoff_schemes::flow_control::RelayOrder;

/// Most queues of a port: bits of the masks.
pub const MAX_QUEUES: usize = 64;

/// The hot half of a port: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Port {
    /// The wire is free from then on.
    pub free_at: Time,
    pub delay: Time,
    /// Queues that have something to send, by bit.
    pub ready: u64,
    /// Queues that may not send, by bit.
    pub paused: u64,
    /// Bytes sent.
    pub bytes: u64,
    pub packets: u64,
    pub peer: u32,
    pub first_queue: u32,
    pub node: u32,
    /// Picoseconds per byte where that is whole and fits, else 0.
    byte_time: u16,
    /// A transmission decision is pending, at `free_at` or now.
    pub pending: bool,
    pub wire: Wire,
}

/// The kind of a wire. From [`Wire::Faulty`] on, sending needs further checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Wire {
    /// The inside of a slow receiver.
    Inner,
    Link,
    /// A link to a device that another thread runs.
    Away,
    /// A link, to wherever, that fails, loses or corrupts: see [`crate::faults`].
    Faulty,
    /// A queue does not simply obey ([`crate::switch::modes`]), or the port is tapped ([`crate::tap`]).
    Special,
}

impl Port {
    pub fn new(rate: u64, delay: Time, peer: u32, first_queue: u32, node: u32, wire: Wire) -> Self {
        let exact = (8 * SECOND).is_multiple_of(rate);
        let byte_time = if exact { u16::try_from(8 * SECOND / rate).unwrap_or(0) } else { 0 };
        Self {
            free_at: 0,
            delay,
            ready: 0,
            paused: 0,
            bytes: 0,
            packets: 0,
            peer,
            first_queue,
            node,
            byte_time,
            pending: false,
            wire,
        }
    }

    #[inline]
    pub fn eligible(&self) -> u64 {
        self.ready & !self.paused
    }

    /// Serialisation time of `size` bytes; `rate` is used if it has no whole byte time.
    #[inline]
    pub fn wire_time(&self, size: u32, rate: impl FnOnce() -> u64) -> Time {
        if self.byte_time != 0 {
            u64::from(size) * u64::from(self.byte_time)
        } else {
            serialisation(u64::from(size), rate())
        }
    }
}

/// A list of packets; for a host's own queue pairs a ring of flows, which only uses `head` and `tail`.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub struct Queue {
    pub head: u32,
    pub tail: u32,
    pub bytes: u64,
    /// Most bytes ever in it.
    pub peak: u64,
    /// Data packets that left it.
    pub data_packets: u64,
}

impl Default for Queue {
    fn default() -> Self {
        use crate::packet::NONE;
        Self { head: NONE, tail: NONE, bytes: 0, peak: 0, data_packets: 0 }
    }
}

/// How queues share a wire; the same on every port.
#[derive(Clone, Debug)]
pub struct Discipline {
    /// The queues of each tier, by bit, the first tier first.
    tiers: Vec<u64>,
    /// Deficit round robin: bytes per turn, by queue.
    quanta: Vec<u32>,
}

/// Deficit round robin's state, by port: for each tier the queue whose turn it is, then for each queue the
/// bytes that it may still send in its turn.
#[derive(Clone, Debug, Default)]
pub struct Rounds(Vec<u32>);

impl Discipline {
    /// From each lane's (tier, quantum), ordered by tier, and when a host serves relayed packets.
    pub fn new(lanes: &[(u8, u32)], relay: RelayOrder) -> Self {
        let n = lanes.len();
        assert!(2 * n < MAX_QUEUES, "{n} lanes");
        let mut tiers: Vec<u64> = Vec::new();
        let mut quanta = vec![0; 1 + 2 * n];
        // The turns of a tier's forwarded packets, and of its queue pairs.
        let (forwarded, own) = match relay {
            RelayOrder::Turns => (0, 0),
            RelayOrder::First => (0, 1),
            RelayOrder::Last => (1, 0),
        };
        for (i, &(tier, quantum)) in lanes.iter().enumerate() {
            if i == 0 || lanes[i - 1].0 != tier {
                tiers.extend(std::iter::repeat_n(0, 1 + forwarded.max(own)));
            }
            let first = tiers.len() - 1 - forwarded.max(own);
            tiers[first + forwarded] |= 1 << (1 + i);
            tiers[first + own] |= 1 << (1 + n + i);
            quanta[1 + i] = quantum;
            quanta[1 + n + i] = quantum;
        }
        Self { tiers, quanta }
    }

    /// Words of state per port.
    fn words(&self) -> usize {
        self.tiers.len() + self.quanta.len()
    }

    pub fn rounds(&self, ports: usize) -> Rounds {
        Rounds(vec![0; ports * self.words()])
    }

    /// The queue of `port` to serve among `eligible` ones (not empty), whose first packets have these sizes.
    #[inline]
    pub fn select(&self, eligible: u64, port: u32, rounds: &mut Rounds, size: impl FnMut(u32) -> u32) -> u32 {
        let first = eligible.trailing_zeros();
        if first == 0 || eligible.is_power_of_two() {
            return first;
        }
        let words = self.words();
        self.contend(eligible, &mut rounds.0[port as usize * words..][..words], size)
    }

    fn contend(&self, eligible: u64, rounds: &mut [u32], mut head_size: impl FnMut(u32) -> u32) -> u32 {
        let mut tiers = self.tiers.iter().map(|mask| eligible & mask).enumerate();
        let first = tiers.find(|&(_, members)| members != 0);
        let (tier, members) = first.expect("every queue but that of control frames belongs to a tier");
        if members.is_power_of_two() {
            return members.trailing_zeros();
        }
        let (turns, deficits) = rounds.split_at_mut(self.tiers.len());
        let mut queue = turns[tier];
        loop {
            if members >> queue & 1 == 1 {
                let size = head_size(queue);
                let deficit = &mut deficits[queue as usize];
                if *deficit >= size {
                    *deficit -= size;
                    turns[tier] = queue;
                    return queue;
                }
            } else {
                // A queue without anything to send does not save up.
                deficits[queue as usize] = 0;
            }
            let later = members & (u64::MAX << queue << 1);
            queue = if later != 0 { later.trailing_zeros() } else { members.trailing_zeros() };
            deficits[queue as usize] += self.quanta[queue as usize];
        }
    }
}

/// The queues of a lane on a port with `lanes` lanes: forwarded, and the host's own.
#[inline]
pub fn lane_mask(lane: usize, lanes: usize) -> u64 {
    1 << (1 + lane) | 1 << (1 + lanes + lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_fills_one_cache_line() {
        assert_eq!(size_of::<Port>(), 64);
    }

    /// Always-full queues of one tier share by their quanta; a lower tier starves.
    #[test]
    fn deficit_round_robin_shares_by_quantum() {
        let discipline = Discipline::new(&[(0, 3_000), (0, 1_000), (1, 1_000)], RelayOrder::Turns);
        let mut rounds = discipline.rounds(1);
        let sizes = [0u32, 700, 1_100, 900];
        let mut bytes = [0u64; 4];
        for _ in 0..20_000 {
            let q = discipline.select(0b1110, 0, &mut rounds, |q| sizes[q as usize]) as usize;
            bytes[q] += u64::from(sizes[q]);
        }
        assert_eq!(bytes[3], 0);
        let ratio = bytes[1] as f64 / bytes[2] as f64;
        assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
    }

    /// Queues of three lanes, 1,000 B a turn. Queue 1 sends 300 B and is empty when its turn comes
    /// again: the 700 B that it had left are gone, so its 1,500 B need two turns.
    #[test]
    fn an_idle_queue_loses_its_deficit() {
        let discipline = Discipline::new(&[(0, 1_000); 3], RelayOrder::Turns);
        let mut rounds = discipline.rounds(1);
        let mut select = |eligible, first| {
            let sizes = [0, first, 1_000, 1_000];
            discipline.select(eligible, 0, &mut rounds, |q| sizes[q as usize])
        };
        assert_eq!(select(0b1110, 300), 1);
        assert_eq!([select(0b1100, 0), select(0b1100, 0)], [2, 3]);
        let served: Vec<u32> = (0..6).map(|_| select(0b1110, 1_500)).collect();
        assert_eq!(served, [2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn control_comes_first_and_a_single_queue_needs_no_round() {
        let discipline = Discipline::new(&[(0, 1_000)], RelayOrder::Turns);
        let mut rounds = discipline.rounds(1);
        assert_eq!(discipline.select(0b111, 0, &mut rounds, |_| 1), 0);
        assert_eq!(discipline.select(0b100, 0, &mut rounds, |_| 1), 2);
    }

    /// Two lanes, the first one strictly before the second.
    #[test]
    fn relayed_packets_come_before_or_after_the_hosts_own() {
        let lanes = [(0, 1_000), (1, 1_000)];
        for (relay, winner) in [(RelayOrder::First, 2), (RelayOrder::Last, 4)] {
            let discipline = Discipline::new(&lanes, relay);
            let mut rounds = discipline.rounds(1);
            for _ in 0..5 {
                // Forwarded and own of the second lane, then with the first lane's.
                assert_eq!(discipline.select(0b1_0100, 0, &mut rounds, |_| 900), winner);
                assert_eq!(discipline.select(0b1_0110, 0, &mut rounds, |_| 900), 1);
                assert_eq!(discipline.select(0b1_1100, 0, &mut rounds, |_| 900), 3);
            }
        }
    }
}
