//! IRN's sender with a timer for each packet, as in a public simulator (NASA-NJU).
//!
//! ```text
//!   packet sent     its timer starts, again if it is retransmitted: RTO_low if at most
//!                   N packets are in flight with it, else RTO_high
//!   ACK(n)          una = max(una, n)
//!   NACK(n, s)      ACK(n); s is acknowledged selectively, and whatever was sent before s,
//!                   after the highest earlier SACK, is lost, without a timer
//!   timer of p      p is lost, unless it is acknowledged
//!   lost packets    are retransmitted in the order in which they were found, before new ones
//! ```
//!
//! There is no recovery: only its own timer finds a lost retransmission. A timer does not wait for the
//! progress of other packets, so a packet that waits in a queue for longer than RTO is retransmitted in vain.

use super::Numbers;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use xoff_kernel::time::Time;

/// A packet that was sent, and that the cumulative acknowledgement does not cover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Its timer expires at this time.
    InFlight(Time),
    /// It waits for its retransmission.
    Lost,
    /// Acknowledged selectively.
    Arrived,
}

/// A sender's state beside its numbers.
#[derive(Clone, Debug, Default)]
pub struct PacketTimers {
    /// Those from `una` to `highest`.
    slots: VecDeque<Slot>,
    /// Timers, the next one first. One counts only if its packet is still in flight with that deadline.
    timers: BinaryHeap<Reverse<(Time, u32)>>,
    /// Packets whose timers expire in one call. Empty between calls.
    expired: Vec<u32>,
    /// In the order of their retransmission. Some may have arrived since.
    lost: VecDeque<u32>,
    /// A SACK has reported the gaps before this packet.
    reported: u32,
}

impl PacketTimers {
    /// Records the packet that [`Numbers::send`] has just returned as sent. Its timer expires at `deadline`.
    pub fn on_sent(&mut self, numbers: &mut Numbers, psn: u32, again: bool, deadline: Time) {
        if again {
            let first = self.lost.pop_front();
            debug_assert_eq!(first, Some(psn));
            self.slots[(psn - numbers.una) as usize] = Slot::InFlight(deadline);
        } else {
            self.slots.push_back(Slot::InFlight(deadline));
        }
        self.timers.push(Reverse((deadline, psn)));
        self.choose(numbers);
    }

    /// Everything below `n` has arrived. Returns whether that is new.
    pub fn on_ack(&mut self, numbers: &mut Numbers, n: u32) -> bool {
        let news = self.advance(numbers, n);
        self.choose(numbers);
        news
    }

    /// Everything below `n` has arrived, and `sacked`, but not `n`. Returns whether the first is new.
    pub fn on_nack(&mut self, numbers: &mut Numbers, n: u32, sacked: u32) -> bool {
        let news = self.advance(numbers, n);
        if sacked > numbers.una && sacked < numbers.highest {
            for psn in self.reported.max(numbers.una)..sacked {
                self.lose(numbers.una, psn);
            }
            self.reported = self.reported.max(sacked + 1);
            self.slots[(sacked - numbers.una) as usize] = Slot::Arrived;
        }
        self.choose(numbers);
        news
    }

    /// Loses the packets whose timers have expired, in the order of their numbers. Returns whether there are any.
    pub fn on_time(&mut self, numbers: &mut Numbers, now: Time) -> bool {
        let before = self.lost.len();
        while let Some(&Reverse((deadline, psn))) = self.timers.peek().filter(|timer| timer.0.0 <= now) {
            self.timers.pop();
            if self.runs(numbers.una, psn, deadline) {
                self.expired.push(psn);
            }
        }
        self.expired.sort_unstable();
        for i in 0..self.expired.len() {
            self.lose(numbers.una, self.expired[i]);
        }
        self.expired.clear();
        let expired = self.lost.len() > before;
        self.choose(numbers);
        expired
    }

    /// The time at which the next timer expires.
    pub fn next_deadline(&mut self, numbers: &Numbers) -> Option<Time> {
        while let Some(&Reverse((deadline, psn))) = self.timers.peek() {
            if self.runs(numbers.una, psn, deadline) {
                return Some(deadline);
            }
            self.timers.pop();
        }
        None
    }

    /// Whether the packet is in flight with that deadline.
    fn runs(&self, una: u32, psn: u32, deadline: Time) -> bool {
        psn.checked_sub(una).is_some_and(|i| self.slots[i as usize] == Slot::InFlight(deadline))
    }

    pub fn release(&mut self) {
        *self = Self::default();
    }

    fn lose(&mut self, una: u32, psn: u32) {
        let slot = &mut self.slots[(psn - una) as usize];
        if let Slot::InFlight(_) = slot {
            *slot = Slot::Lost;
            self.lost.push_back(psn);
        }
    }

    fn advance(&mut self, numbers: &mut Numbers, n: u32) -> bool {
        if n <= numbers.una {
            return false;
        }
        self.slots.drain(..(n - numbers.una) as usize);
        numbers.una = n;
        true
    }

    /// Sets `next`: the first lost packet, or a new one.
    fn choose(&mut self, numbers: &mut Numbers) {
        numbers.next = numbers.highest;
        while let Some(&psn) = self.lost.front() {
            if psn >= numbers.una && self.slots[(psn - numbers.una) as usize] == Slot::Lost {
                numbers.next = psn;
                return;
            }
            self.lost.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Receiver, Reply};
    use super::*;
    use xoff_kernel::random::Stream;

    const RTO: Time = 100;

    /// Sends all allowed packets at one time, and returns their numbers.
    fn send_all(n: &mut Numbers, t: &mut PacketTimers, now: Time) -> Vec<(u32, bool)> {
        let mut sent = Vec::new();
        while n.can_send() {
            let (psn, again) = n.send();
            t.on_sent(n, psn, again, now + RTO);
            sent.push((psn, again));
        }
        sent
    }

    #[test]
    fn each_packet_has_its_own_timer() {
        let (mut n, mut t) = (Numbers::new(20, 4), PacketTimers::default());
        assert_eq!(send_all(&mut n, &mut t, 0).len(), 4);
        // Progress of the flow does not stop the timers of the others.
        assert!(t.on_ack(&mut n, 2));
        assert_eq!(send_all(&mut n, &mut t, 50), [(4, false), (5, false)]);
        assert_eq!(t.next_deadline(&n), Some(100));
        assert!(!t.on_time(&mut n, 99));
        assert!(t.on_time(&mut n, 100));
        assert_eq!(send_all(&mut n, &mut t, 100), [(2, true), (3, true)]);
        assert_eq!(t.next_deadline(&n), Some(150));
        assert!(t.on_time(&mut n, 150), "whatever became of 2 and 3");
        assert_eq!(send_all(&mut n, &mut t, 150), [(4, true), (5, true)]);
        assert_eq!(t.next_deadline(&n), Some(200));
    }

    #[test]
    fn a_sack_reports_a_gap_once_and_a_lost_retransmission_waits_for_its_timer() {
        let (mut n, mut t) = (Numbers::new(20, 8), PacketTimers::default());
        send_all(&mut n, &mut t, 0);
        t.on_nack(&mut n, 0, 2);
        assert_eq!(send_all(&mut n, &mut t, 10), [(0, true), (1, true)]);
        t.on_nack(&mut n, 0, 3);
        t.on_nack(&mut n, 0, 5);
        assert_eq!(send_all(&mut n, &mut t, 20), [(4, true)]);
        assert!(t.on_time(&mut n, 100), "6 and 7");
        assert_eq!(send_all(&mut n, &mut t, 100), [(6, true), (7, true)]);
        assert_eq!(t.next_deadline(&n), Some(110));
        assert!(t.on_time(&mut n, 110));
        assert_eq!(send_all(&mut n, &mut t, 110), [(0, true), (1, true)]);
    }

    #[test]
    fn a_packet_that_arrives_before_its_retransmission_is_not_retransmitted() {
        let (mut n, mut t) = (Numbers::new(20, 4), PacketTimers::default());
        send_all(&mut n, &mut t, 0);
        assert!(t.on_time(&mut n, 100));
        assert_eq!(n.next, 0);
        assert!(t.on_ack(&mut n, 3));
        assert_eq!(n.next, 3);
        t.on_ack(&mut n, 4);
        assert_eq!((n.next, t.next_deadline(&n)), (4, None));
    }

    /// Random loss, reordering and duplication in both directions: every packet is delivered exactly once, in
    /// the end all of them; the window is kept; no packet is repeated that the sender knows to have arrived.
    #[test]
    fn for_any_path_everything_arrives_once() {
        let mut expired = 0;
        for seed in 0..300 {
            let mut random = Stream::new(seed, "test", 0);
            let total = 1 + random.below(300) as u32;
            let window = 1 + random.below(130) as u32;
            let (loss, reorder) = (random.below(30), random.below(40));
            let (mut n, mut t) = (Numbers::new(total, window), PacketTimers::default());
            let mut receiver = Receiver::default();
            let mut delivered = vec![0u32; total as usize];
            let mut known = vec![false; total as usize];
            let mut wire: VecDeque<(u32, Option<Reply>)> = VecDeque::new();
            let mut now = 0;
            while !n.complete() {
                now += 1;
                assert!(now < 2_000_000, "no progress with seed {seed}");
                let mut out = Vec::new();
                if n.can_send() {
                    let (psn, again) = n.send();
                    assert!(!known[psn as usize] && psn >= n.una);
                    t.on_sent(&mut n, psn, again, now + 2_000);
                    assert!(n.highest - n.una <= window);
                    out.push((psn, None));
                }
                if !wire.is_empty() && random.below(3) > 0 {
                    let at = if random.below(100) < reorder {
                        random.below(wire.len() as u64) as usize
                    } else {
                        0
                    };
                    match wire.remove(at).unwrap() {
                        (psn, None) => {
                            let got = receiver.on_data(psn, total, window, 1);
                            assert_eq!(got.duplicate, delivered[psn as usize] > 0);
                            delivered[psn as usize] += u32::from(!got.duplicate);
                            out.push((psn, Some(got.reply)));
                        }
                        (_, Some(Reply::Ack(a))) => {
                            t.on_ack(&mut n, a);
                        }
                        (psn, Some(Reply::Nack(a))) => {
                            known[psn as usize] |= psn >= n.una;
                            t.on_nack(&mut n, a, psn);
                        }
                        (_, Some(Reply::Silent)) => unreachable!("each packet is acknowledged"),
                    }
                    known[..n.una as usize].iter_mut().for_each(|k| *k = true);
                }
                if t.next_deadline(&n).is_some_and(|deadline| deadline <= now) {
                    assert!(t.on_time(&mut n, now));
                    expired += 1;
                }
                wire.extend(out.into_iter().filter(|_| random.below(100) >= loss));
            }
            assert!(delivered.iter().all(|&d| d == 1), "seed {seed}");
        }
        assert!(expired > 300, "{expired}");
    }
}
