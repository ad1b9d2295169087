//! IRN's transport (Mittal et al., *Revisiting Network Support for RDMA*, SIGCOMM 2018, §3): selective
//! repeat, and a bound on the packets in flight.
//!
//! Sender, over packets `0 .. total`: `una` is the first one not acknowledged cumulatively, `highest` one
//! beyond the highest one ever sent; a bitmap has the packets between them that were acknowledged selectively
//! (SACK).
//!
//! ```text
//!   new packet      not in recovery, or nothing lost is left to repeat;
//!                   highest < total, highest − una < window (BDP-FC):  send highest
//!   ACK(n)          una = max(una, n); recovery ends if una ≥ recover
//!   NACK(n, s)      ACK(n); s is acknowledged selectively; enter recovery if outside:
//!                   recover = highest, una is lost; whatever is not acknowledged below
//!                   the highest s is lost, too
//!   timeout         enter recovery (anew, if inside): una is lost, and whatever is not
//!                   acknowledged below the highest SACK
//!   in recovery     each lost packet is repeated once, in order, before new packets
//!   timer           RTO_low while at most N packets are in flight, else RTO_high, from the
//!                   last time that una advanced (or that something was sent when nothing was
//!                   in flight)
//!   complete        una = total
//! ```
//!
//! The timer finds a retransmission that is lost again. NACK and timeout open the same recovery (§3.1 of the
//! paper): it begins with the packet that the cumulative acknowledgement names, and a later one counts as
//! lost only after the SACK of a packet after it. So a burst that is lost completely costs one timeout if new
//! packets may follow the retransmission, as their NACKs report the rest, else a timeout for each of its
//! packets.
//!
//! Receiver: `expected` is the next one in order; a bitmap has the later ones that have arrived.
//!
//! ```text
//!   packet = expected   deliver it and later ones without a gap; acknowledge if a gap was
//!                       closed, it was the last packet, or the `ack_every`-th since the last ACK
//!   packet > expected   keep it; NACK(expected, packet)
//!   seen before         discard; ACK(expected), for its ACK may have been lost
//! ```
//!
//! The numbers of a sender are those of go-back-N: `next` is a retransmission or a new packet.

pub mod ends;
mod keys;
pub mod packet;

pub use keys::IrnKeys;

use crate::names::names;
use crate::transport::seam::{Numbers, Reply};
use xoff_kernel::time::Time;

names! {
/// Retransmission timers of IRN.
#[schemars(rename = "IrnTimer")]
pub enum Timer {
    /// One for the flow, as in IRN's paper: it restarts when the cumulative acknowledgement advances.
    #[default]
    Flow = "flow",
    /// One for each packet, from its own transmission on. A packet that waits in queues for longer than the
    /// timeout is retransmitted in vain.
    Packet = "packet",
}
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IrnParams {
    /// Of flows within a datacenter.
    pub intra: Timeouts,
    /// Of flows between datacenters.
    pub inter: Timeouts,
    pub timer: Timer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// RTO_low, in picoseconds.
    pub low: Time,
    /// RTO_high, in picoseconds.
    pub high: Time,
    /// N: so many packets in flight are few.
    pub few: u32,
}

impl Timeouts {
    pub fn of(&self, in_flight: u32) -> Time {
        if in_flight <= self.few { self.low } else { self.high }
    }
}

/// A bitmap over a window of packet numbers that moves on; without memory until it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bitmap {
    words: Vec<u64>,
    count: u32,
}

impl Bitmap {
    fn at(&self, psn: u32) -> (usize, u64) {
        let bit = psn as usize % (self.words.len() * 64);
        (bit / 64, 1 << (bit % 64))
    }

    fn get(&self, psn: u32) -> bool {
        if self.count == 0 {
            return false;
        }
        let (word, bit) = self.at(psn);
        self.words[word] & bit != 0
    }

    /// Sets a bit of a window of at most `window` numbers; returns whether it was unset.
    fn set(&mut self, psn: u32, window: u32) -> bool {
        if self.words.is_empty() {
            self.words = vec![0; (window as usize).div_ceil(64)];
        }
        let (word, bit) = self.at(psn);
        let news = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(news);
        news
    }

    fn clear(&mut self, psn: u32) -> bool {
        let was = self.get(psn);
        if was {
            let (word, bit) = self.at(psn);
            self.words[word] &= !bit;
            self.count -= 1;
        }
        was
    }
}

/// A sender's state beside its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Acknowledged selectively, within `una .. una + window`.
    sacked: Bitmap,
    /// In recovery: it ends when `una` gets here.
    recover: u32,
    /// In recovery: the first packet not yet looked at for a repeat.
    repeat: u32,
    /// Packets from here on are not known to be lost: the highest SACK, but after the recovery's first
    /// packet.
    lost_end: u32,
    active: bool,
}

impl Recovery {
    /// Packets in flight: sent, and not acknowledged cumulatively.
    pub fn in_flight(numbers: &Numbers) -> u32 {
        numbers.highest - numbers.una
    }

    /// Records the packet that [`Numbers::send`] has just returned as sent.
    #[inline]
    pub fn on_sent(&mut self, numbers: &mut Numbers, psn: u32, again: bool) {
        if self.active {
            if again {
                self.repeat = psn + 1;
            }
            self.choose(numbers);
        }
    }

    /// Everything below `n` has arrived. Returns whether that is new.
    #[inline]
    pub fn on_ack(&mut self, numbers: &mut Numbers, n: u32) -> bool {
        let news = self.advance(numbers, n);
        self.choose(numbers);
        news
    }

    /// Everything below `n` has arrived, and `sacked`, but not `n`. Returns whether the first is new.
    pub fn on_nack(&mut self, numbers: &mut Numbers, n: u32, sacked: u32) -> bool {
        let news = self.advance(numbers, n);
        // An old one, overtaken by later ACKs or NACKs, needs no reaction.
        if sacked > numbers.una && sacked < numbers.highest {
            self.sacked.set(sacked, numbers.window);
            if !self.active {
                self.enter(numbers);
            }
            self.lost_end = self.lost_end.max(sacked);
        }
        self.choose(numbers);
        news
    }

    /// No progress for too long. Returns whether anything was in flight.
    pub fn on_timeout(&mut self, numbers: &mut Numbers) -> bool {
        let lost = numbers.una < numbers.highest;
        if lost {
            self.enter(numbers);
            self.choose(numbers);
        }
        lost
    }

    pub fn release(&mut self) {
        *self = Self::default();
    }

    fn enter(&mut self, numbers: &Numbers) {
        self.active = true;
        self.recover = numbers.highest;
        self.repeat = numbers.una;
        self.lost_end = self.lost_end.max(numbers.una + 1);
    }

    fn advance(&mut self, numbers: &mut Numbers, n: u32) -> bool {
        if n <= numbers.una {
            return false;
        }
        if self.sacked.count > 0 {
            for psn in numbers.una..n {
                self.sacked.clear(psn);
            }
        }
        numbers.una = n;
        if n >= self.recover {
            self.active = false;
        }
        true
    }

    /// Sets `next`: the first lost packet that was not repeated, or a new one.
    fn choose(&mut self, numbers: &mut Numbers) {
        numbers.next = numbers.highest;
        if self.active {
            self.repeat = self.repeat.max(numbers.una);
            while self.repeat < self.lost_end && self.sacked.get(self.repeat) {
                self.repeat += 1;
            }
            if self.repeat < self.lost_end {
                numbers.next = self.repeat;
            }
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Next packet in order.
    pub expected: u32,
    /// In order since the last ACK.
    unacknowledged: u32,
    arrived: Bitmap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// Whether it had arrived before: retransmitted in vain.
    pub duplicate: bool,
    /// The reply; a [`Reply::Nack`] also acknowledges the packet itself.
    pub reply: Reply,
}

impl Receiver {
    /// Packet `psn` of `total` arrived, of a sender with this window.
    pub fn on_data(&mut self, psn: u32, total: u32, window: u32, ack_every: u32) -> Reception {
        if psn != self.expected {
            self.unacknowledged = 0;
            let news = psn > self.expected && self.arrived.set(psn, window);
            let reply = if news { Reply::Nack(self.expected) } else { Reply::Ack(self.expected) };
            return Reception { duplicate: !news, reply };
        }
        let gap = self.arrived.count > 0;
        self.expected += 1;
        while self.arrived.clear(self.expected) {
            self.expected += 1;
        }
        self.unacknowledged += 1;
        if !gap && self.unacknowledged < ack_every && self.expected != total {
            return Reception { duplicate: false, reply: Reply::Silent };
        }
        self.unacknowledged = 0;
        Reception { duplicate: false, reply: Reply::Ack(self.expected) }
    }

    pub fn release(&mut self) {
        self.arrived = Bitmap::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use xoff_kernel::random::Stream;

    fn numbers(total: u32, window: u32) -> Numbers {
        Numbers::new(total, window)
    }

    /// Sends all allowed packets, and returns their numbers.
    fn send_all(n: &mut Numbers, r: &mut Recovery) -> Vec<(u32, bool)> {
        let mut sent = Vec::new();
        while n.can_send() {
            let (psn, again) = n.send();
            r.on_sent(n, psn, again);
            sent.push((psn, again));
        }
        sent
    }

    #[test]
    fn only_lost_packets_are_retransmitted() {
        let (mut n, mut r) = (numbers(20, 8), Recovery::default());
        assert_eq!(send_all(&mut n, &mut r).len(), 8);
        // 0 arrived; 1 and 3 are lost; 2, 4, 5 arrived.
        assert!(r.on_ack(&mut n, 1));
        assert!(!r.on_nack(&mut n, 1, 2));
        assert_eq!(n.next, 1, "the first not acknowledged, at once");
        assert_eq!(send_all(&mut n, &mut r), [(1, true), (8, false)], "then the window goes on");
        r.on_nack(&mut n, 1, 4);
        assert_eq!(send_all(&mut n, &mut r), [(3, true)], "below the highest SACK");
        r.on_nack(&mut n, 1, 5);
        assert_eq!(send_all(&mut n, &mut r), [], "each once");
        assert!(r.on_ack(&mut n, 3) && r.active);
        // The repeat of 3 closes the gap up to 6; recovery ends at 8.
        assert!(r.on_ack(&mut n, 6) && r.active);
        assert!(r.on_ack(&mut n, 8) && !r.active);
        assert_eq!((n.una, r.sacked.count), (8, 0));
    }

    #[test]
    fn an_old_nack_changes_nothing() {
        let (mut n, mut r) = (numbers(20, 8), Recovery::default());
        send_all(&mut n, &mut r);
        r.on_ack(&mut n, 5);
        let before = (n, r.clone());
        assert!(!r.on_nack(&mut n, 2, 4));
        assert_eq!((n, r), before);
    }

    #[test]
    fn a_timeout_retransmits_the_first_packet_and_the_losses_before_a_sack() {
        let (mut n, mut r) = (numbers(20, 6), Recovery::default());
        assert!(!r.on_timeout(&mut n), "nothing in flight");
        send_all(&mut n, &mut r);
        r.on_nack(&mut n, 0, 3);
        assert_eq!(send_all(&mut n, &mut r), [(0, true), (1, true), (2, true)]);
        assert!(r.on_timeout(&mut n), "the repeats are lost, too");
        assert_eq!(send_all(&mut n, &mut r), [(0, true), (1, true), (2, true)], "4 and 5 may be under way");
        // All of them arrive now: the rest is in flight, and the window advances.
        assert!(r.on_ack(&mut n, 4) && r.active);
        assert_eq!(send_all(&mut n, &mut r), [6, 7, 8, 9].map(|psn| (psn, false)));
        r.on_nack(&mut n, 4, 6);
        assert_eq!(send_all(&mut n, &mut r), [(4, true), (5, true)]);
    }

    /// A burst that is lost completely: the first packet is retransmitted after the timeout, and the new
    /// packet that its ACK permits reports the others.
    #[test]
    fn a_lost_burst_is_found_by_the_packet_after_it() {
        let (mut n, mut r) = (numbers(20, 4), Recovery::default());
        send_all(&mut n, &mut r);
        assert!(r.on_timeout(&mut n));
        assert_eq!(send_all(&mut n, &mut r), [(0, true)]);
        r.on_ack(&mut n, 1);
        assert_eq!(send_all(&mut n, &mut r), [(4, false)]);
        r.on_nack(&mut n, 1, 4);
        assert_eq!(send_all(&mut n, &mut r), [(1, true), (2, true), (3, true)]);
        r.on_ack(&mut n, 5);
        assert_eq!(send_all(&mut n, &mut r), [5, 6, 7, 8].map(|psn| (psn, false)));
        // At the end nothing follows, and each takes a timeout.
        let (mut n, mut r) = (numbers(3, 4), Recovery::default());
        send_all(&mut n, &mut r);
        for psn in 0..3 {
            assert!(r.on_timeout(&mut n));
            assert_eq!(send_all(&mut n, &mut r), [(psn, true)]);
            r.on_ack(&mut n, psn + 1);
            assert_eq!(send_all(&mut n, &mut r), []);
        }
        assert!(n.complete());
    }

    #[test]
    fn the_receiver_delivers_once_and_reports_its_packets() {
        let mut receiver = Receiver::default();
        use Reply::{Ack, Nack};
        let replies: Vec<_> = [0, 2, 2, 4, 1, 3, 0, 5]
            .map(|psn| {
                let r = receiver.on_data(psn, 6, 6, 1);
                (r.duplicate, r.reply)
            })
            .to_vec();
        let expected = [
            (false, Ack(1)),
            (false, Nack(1)),
            (true, Ack(1)),
            (false, Nack(1)),
            (false, Ack(3)),
            (false, Ack(5)),
            (true, Ack(5)),
            (false, Ack(6)),
        ];
        assert_eq!(replies, expected);
    }

    #[test]
    fn few_packets_in_flight_have_the_short_timeout() {
        let t = Timeouts { low: 100, high: 320, few: 3 };
        assert_eq!([1, 3, 4, 90].map(|n| t.of(n)), [100, 100, 320, 320]);
    }

    enum Wire {
        Data(u32),
        Answer(Reply, u32),
    }

    /// Random loss, reordering and duplication in both directions: every packet is delivered exactly once, in
    /// the end all of them; the window is kept; no packet is repeated that the sender knows to have arrived;
    /// and a useless retransmission is distinguished from a needed one.
    #[test]
    fn for_any_path_everything_arrives_once() {
        let mut recoveries = 0;
        for seed in 0..400 {
            let mut random = Stream::new(seed, "test", 0);
            let total = 1 + random.below(300) as u32;
            let window = 1 + random.below(130) as u32;
            let every = 1 + random.below(u64::from(window.min(4))) as u32;
            let (loss, reorder, repeat) = (random.below(30), random.below(40), random.below(10));
            let (mut n, mut r) = (numbers(total, window), Recovery::default());
            let mut receiver = Receiver::default();
            let mut delivered = vec![0u32; total as usize];
            let mut known = vec![false; total as usize];
            let mut wire: VecDeque<Wire> = VecDeque::new();
            let (mut quiet, mut steps, mut duplicates, mut extra) = (0, 0, 0, 0);
            while !n.complete() {
                steps += 1;
                assert!(steps < 500_000, "no progress with seed {seed}");
                let mut out = Vec::new();
                if n.can_send() {
                    let (psn, again) = n.send();
                    r.on_sent(&mut n, psn, again);
                    assert!(psn < total && !known[psn as usize] && psn >= n.una);
                    assert!(n.highest - n.una <= window);
                    extra += u64::from(again);
                    out.push(Wire::Data(psn));
                } else if wire.is_empty() {
                    quiet += 1_000;
                }
                if !wire.is_empty() && random.below(3) > 0 {
                    let reordered = random.below(100) < reorder;
                    let at = if reordered { random.below(wire.len() as u64) as usize } else { 0 };
                    match wire.remove(at).unwrap() {
                        Wire::Data(psn) => {
                            let before = receiver.expected;
                            let got = receiver.on_data(psn, total, window, every);
                            assert_eq!(got.duplicate, delivered[psn as usize] > 0);
                            duplicates += u64::from(got.duplicate);
                            if !got.duplicate {
                                delivered[psn as usize] += 1;
                            }
                            assert!(receiver.expected >= before);
                            assert!(delivered[..receiver.expected as usize].iter().all(|&d| d == 1));
                            if got.reply != Reply::Silent {
                                out.push(Wire::Answer(got.reply, psn));
                            }
                        }
                        Wire::Answer(reply, sacked) => {
                            let was = r.active;
                            let news = match reply {
                                Reply::Ack(n0) => r.on_ack(&mut n, n0),
                                Reply::Nack(n0) => {
                                    known[sacked as usize] |= sacked >= n.una;
                                    r.on_nack(&mut n, n0, sacked)
                                }
                                Reply::Silent => unreachable!(),
                            };
                            known[..n.una as usize].iter_mut().for_each(|k| *k = true);
                            recoveries += u64::from(!was && r.active);
                            quiet = if news { 0 } else { quiet };
                        }
                    }
                }
                quiet += 1;
                if quiet > 3_000 {
                    r.on_timeout(&mut n);
                    quiet = 0;
                }
                for message in out {
                    if random.below(100) < loss {
                        continue;
                    }
                    if random.below(100) < repeat {
                        wire.push_back(match &message {
                            Wire::Data(psn) => Wire::Data(*psn),
                            Wire::Answer(reply, psn) => Wire::Answer(*reply, *psn),
                        });
                    }
                    wire.push_back(message);
                }
            }
            assert_eq!(receiver.expected, total);
            assert!(delivered.iter().all(|&d| d == 1), "seed {seed}");
            if loss == 0 && reorder == 0 {
                assert_eq!(extra, 0, "nothing was lost, nothing is repeated");
                assert!(repeat > 0 || duplicates == 0);
            }
        }
        assert!(recoveries > 1_000, "{recoveries}");
    }

    /// Nothing is lost but one packet: one repeat, and none for nothing.
    #[test]
    fn one_loss_costs_one_repeat() {
        for lost in 0..40u32 {
            let (mut n, mut r) = (numbers(60, 16), Recovery::default());
            let mut receiver = Receiver::default();
            let (mut repeats, mut dropped, mut wire) = (0, false, VecDeque::new());
            while !n.complete() {
                while n.can_send() {
                    let (psn, again) = n.send();
                    r.on_sent(&mut n, psn, again);
                    repeats += u32::from(again);
                    if psn == lost && !dropped {
                        dropped = true;
                    } else {
                        wire.push_back(psn);
                    }
                }
                let psn = wire.pop_front().expect("the window goes on");
                let got = receiver.on_data(psn, 60, 16, 1);
                assert!(!got.duplicate);
                match got.reply {
                    Reply::Ack(m) => r.on_ack(&mut n, m),
                    Reply::Nack(m) => r.on_nack(&mut n, m, psn),
                    Reply::Silent => unreachable!(),
                };
            }
            assert_eq!(repeats, 1);
        }
    }
}
