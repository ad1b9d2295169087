//! NDP's transport (Handley et al., *Re-architecting datacenter networks and stacks for low latency and high
//! performance*, SIGCOMM 2017, §3.2): the receiver requests each packet after the first window.
//!
//! Switches trim: they cut a data packet that has no room, and its header goes on. So the receiver learns of
//! each packet of the first window, and that a packet is late says nothing.
//!
//! Sender, over packets `0 .. total`: `first` is the length of the first window. `rtx` has the packets that
//! were trimmed or timed out, in that order.
//!
//! ```text
//!   begin             send 0 .. min(first, total) at line rate
//!   ACK(n, p)         everything below n has arrived, and p
//!   NACK(n, p)        everything below n has arrived; p was trimmed: append p to rtx
//!   PULL(c)           the receiver has sent c PULLs: credit += c − (the highest c so far)
//!   credit > 0        credit −= 1; send the first packet of rtx, or else the next new packet
//!   RTO               no ACK or NACK of a packet: append it to rtx.  Nothing in flight, and no
//!                     answer: the PULLs were lost.  In both cases credit is 1 at least
//!   complete          una = total
//! ```
//!
//! Receiver: `due` counts the PULLs that a flow still gets. `missing` is the number of packets of the flow that
//! have not arrived; the receiver knows it after the last packet of the flow, or its header, has come.
//!
//! ```text
//!   packet p          ACK(expected, p);    due = min(due + 1, missing)
//!   header p          NACK(expected, p);   due = min(due + 1, missing)
//!                     (ACK instead of NACK if p has arrived before)
//!   link free         the flows with due > 0 take turns: due −= 1, PULL(c + 1). The next PULL
//!                     leaves when the link could have carried a full packet since
//! ```
//!
//! PULLs are counted from the beginning of the flow. So PULLs that are lost or overtake each other cost nothing
//! once a later one arrives. Two rules are not in the paper. A PULL that finds nothing to send keeps its credit:
//! it may have overtaken the NACK that it follows, where devices choose paths by packet. And a sender without an
//! answer sends one packet after the timeout, whatever was lost.

pub mod ends;
mod keys;

pub use keys::NdpKeys;

use crate::transport::keys::LARGEST_WINDOW;
use crate::transport::seam::Numbers;
use crate::transport::tcp::newreno::Receiver as Runs;
use std::collections::VecDeque;
use xoff_kernel::time::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NdpParams {
    /// Longest time without an answer, in picoseconds.
    pub rto: Time,
}

/// A packet that was sent, from `una` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// Since then.
    InFlight(Time),
    /// It is in `rtx`.
    Waits,
    Arrived,
}

/// A sender's state beside its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Length of the first window, in packets.
    first: u32,
    /// Those from `una` to `highest`.
    slots: VecDeque<Slot>,
    /// Packets to retransmit; those that have arrived meanwhile are skipped.
    rtx: VecDeque<u32>,
    /// Times and packets in the order of departure; those without a slot of that time are obsolete.
    departures: VecDeque<(Time, u32)>,
    credit: u32,
    /// The highest number of a PULL.
    pulls: u32,
    /// When the last answer came.
    answered: Time,
}

impl Source {
    pub fn new(numbers: &mut Numbers, first: u32) -> Self {
        let mut source = Self {
            first,
            slots: VecDeque::new(),
            rtx: VecDeque::new(),
            departures: VecDeque::new(),
            credit: 0,
            pulls: 0,
            answered: 0,
        };
        source.choose(numbers);
        source
    }

    fn slot(&mut self, numbers: &Numbers, psn: u32) -> Option<&mut Slot> {
        self.slots.get_mut(psn.checked_sub(numbers.una)? as usize)
    }

    /// Records the packet that [`Numbers::send`] has just returned as sent.
    pub fn on_sent(&mut self, numbers: &mut Numbers, psn: u32, again: bool, now: Time) {
        if again {
            let first = self.rtx.pop_front();
            debug_assert_eq!(first, Some(psn));
            if let Some(slot) = self.slot(numbers, psn) {
                *slot = Slot::InFlight(now);
            }
        } else {
            self.slots.push_back(Slot::InFlight(now));
        }
        if again || psn >= self.first {
            self.credit -= 1;
        }
        self.departures.push_back((now, psn));
        self.choose(numbers);
    }

    /// Everything below `n` has arrived, and `packet`. Returns whether `una` advanced.
    pub fn on_ack(&mut self, numbers: &mut Numbers, n: u32, packet: u32, now: Time) -> bool {
        self.answered = now;
        // One equal to `n` cannot have arrived: the ACK names no packet beside those below `n`.
        if packet > n
            && let Some(slot) = self.slot(numbers, packet)
        {
            *slot = Slot::Arrived;
        }
        let news = self.advance(numbers, n);
        self.choose(numbers);
        news
    }

    /// Everything below `n` has arrived, and `packet` was trimmed. Returns whether `una` advanced.
    pub fn on_nack(&mut self, numbers: &mut Numbers, n: u32, packet: u32, now: Time) -> bool {
        self.answered = now;
        let news = self.advance(numbers, n);
        if let Some(slot @ Slot::InFlight(_)) = self.slot(numbers, packet) {
            *slot = Slot::Waits;
            self.rtx.push_back(packet);
        }
        self.choose(numbers);
        news
    }

    /// The receiver has sent `count` PULLs.
    pub fn on_pull(&mut self, numbers: &mut Numbers, count: u32, now: Time) {
        self.answered = now;
        self.credit += count.saturating_sub(self.pulls);
        self.pulls = self.pulls.max(count);
        self.choose(numbers);
    }

    /// Appends the packets to `rtx` that had no answer for `rto`, and permits one packet if there are any, or if
    /// nothing is in flight. Returns whether it did.
    pub fn on_time(&mut self, numbers: &mut Numbers, rto: Time, now: Time) -> bool {
        let Some(deadline) = self.deadline(numbers, rto) else { return false };
        if deadline > now {
            return false;
        }
        while let Some(&(sent, psn)) = self.departures.front()
            && sent + rto <= now
        {
            self.departures.pop_front();
            if let Some(slot) = self.slot(numbers, psn)
                && *slot == Slot::InFlight(sent)
            {
                *slot = Slot::Waits;
                self.rtx.push_back(psn);
            }
        }
        self.answered = now;
        self.credit = self.credit.max(1);
        self.choose(numbers);
        true
    }

    /// When [`Source::on_time`] is due, as far as is known.
    pub fn deadline(&mut self, numbers: &Numbers, rto: Time) -> Option<Time> {
        if numbers.complete() {
            return None;
        }
        while let Some(&(sent, psn)) = self.departures.front() {
            if self.slot(numbers, psn) == Some(&mut Slot::InFlight(sent)) {
                return Some(sent + rto);
            }
            self.departures.pop_front();
        }
        // A packet that waits for its turn at the host needs no PULL.
        (numbers.highest > 0 && !numbers.can_send()).then_some(self.answered + rto)
    }

    pub fn release(&mut self) {
        (self.slots, self.rtx, self.departures) = Default::default();
    }

    fn advance(&mut self, numbers: &mut Numbers, n: u32) -> bool {
        let before = numbers.una;
        while numbers.una < n || self.slots.front() == Some(&Slot::Arrived) {
            self.slots.pop_front();
            numbers.una += 1;
        }
        numbers.una > before
    }

    /// Sets `next`, and a window that permits it or nothing.
    fn choose(&mut self, numbers: &mut Numbers) {
        while let Some(&psn) = self.rtx.front() {
            if self.slot(numbers, psn) == Some(&mut Slot::Waits) {
                break;
            }
            self.rtx.pop_front();
        }
        let again = self.rtx.front().copied().filter(|_| self.credit > 0);
        let news = (numbers.highest < self.first || self.credit > 0)
            && numbers.highest - numbers.una < LARGEST_WINDOW - 1;
        numbers.next = again.unwrap_or(numbers.highest);
        numbers.window = if again.is_some() || news { u32::MAX } else { 0 };
    }
}

/// A receiver's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    runs: Runs,
    /// Packets that have arrived.
    arrived: u32,
    /// The last packet of the flow, or its header, has come.
    knows_total: bool,
    /// PULLs that the flow still gets.
    due: u32,
    /// PULLs sent.
    pulls: u32,
}

impl Receiver {
    /// Next packet in order.
    pub fn expected(&self) -> u32 {
        self.runs.expected
    }

    /// Packet `psn` of `total` has arrived. Returns whether it had arrived before.
    pub fn on_data(&mut self, psn: u32, total: u32) -> bool {
        let duplicate = self.runs.on_data(psn);
        self.arrived += u32::from(!duplicate);
        self.wants_another(psn, total);
        duplicate
    }

    /// The header of the trimmed packet `psn` of `total` has arrived. Returns whether the packet is missing.
    pub fn on_header(&mut self, psn: u32, total: u32) -> bool {
        self.wants_another(psn, total);
        !self.runs.has_arrived(psn)
    }

    fn wants_another(&mut self, psn: u32, total: u32) {
        // The sender marks its last packet.
        self.knows_total |= psn + 1 == total;
        self.due += 1;
        if self.knows_total {
            self.due = self.due.min(total - self.arrived);
        }
    }

    /// Whether the flow gets a PULL.
    pub fn is_due(&self) -> bool {
        self.due > 0
    }

    /// Takes a PULL that is due. Returns its number.
    pub fn pull(&mut self) -> Option<u32> {
        self.due = self.due.checked_sub(1)?;
        self.pulls += 1;
        Some(self.pulls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    const NOTHING: [u32; 0] = [];

    fn sender(total: u32, first: u32) -> (Numbers, Source) {
        let mut numbers = Numbers::new(total, 0);
        let source = Source::new(&mut numbers, first);
        (numbers, source)
    }

    /// Sends all allowed packets, and returns their numbers.
    fn send_all(n: &mut Numbers, s: &mut Source, now: Time) -> Vec<u32> {
        let mut sent = Vec::new();
        while n.can_send() {
            let (psn, again) = n.send();
            s.on_sent(n, psn, again, now);
            sent.push(psn);
        }
        sent
    }

    #[test]
    fn after_the_first_window_each_pull_permits_one_packet() {
        let (mut n, mut s) = sender(20, 4);
        assert_eq!(send_all(&mut n, &mut s, 0), [0, 1, 2, 3]);
        assert!(s.on_ack(&mut n, 1, 0, 9));
        assert_eq!(send_all(&mut n, &mut s, 10), NOTHING, "an ACK permits nothing");
        s.on_pull(&mut n, 1, 11);
        assert_eq!(send_all(&mut n, &mut s, 12), [4]);
        s.on_pull(&mut n, 3, 13);
        assert_eq!(send_all(&mut n, &mut s, 14), [5, 6], "one PULL was lost");
        s.on_pull(&mut n, 2, 15);
        assert_eq!(send_all(&mut n, &mut s, 16), NOTHING, "an old one changes nothing");
    }

    #[test]
    fn trimmed_packets_go_before_new_ones_and_only_when_pulled() {
        let (mut n, mut s) = sender(20, 4);
        send_all(&mut n, &mut s, 0);
        assert!(!s.on_nack(&mut n, 0, 2, 9));
        assert!(!s.on_nack(&mut n, 0, 1, 9));
        assert_eq!(send_all(&mut n, &mut s, 10), NOTHING);
        s.on_pull(&mut n, 3, 11);
        assert_eq!(send_all(&mut n, &mut s, 12), [2, 1, 4]);
        assert!(s.on_ack(&mut n, 1, 1, 13), "cumulative");
        s.on_ack(&mut n, 1, 2, 14);
        assert_eq!((n.una, n.highest), (1, 5));
        assert!(s.on_ack(&mut n, 2, 1, 15) && n.una == 3, "2 has arrived before");
    }

    #[test]
    fn packets_out_of_order_are_not_retransmitted() {
        let (mut n, mut s) = sender(6, 6);
        send_all(&mut n, &mut s, 0);
        for (expected, psn) in [(0, 5), (0, 3), (1, 0), (1, 4), (2, 1), (6, 2)] {
            s.on_ack(&mut n, expected, psn, 9);
            s.on_pull(&mut n, psn, 9);
            assert_eq!(send_all(&mut n, &mut s, 9), NOTHING);
        }
        assert!(n.complete());
    }

    /// A flow that is shorter than its first window has no credit left from it.
    #[test]
    fn a_short_flow_waits_for_pulls() {
        let (mut n, mut s) = sender(3, 9);
        send_all(&mut n, &mut s, 0);
        s.on_nack(&mut n, 0, 1, 5);
        assert_eq!(send_all(&mut n, &mut s, 5), NOTHING);
        s.on_pull(&mut n, 1, 6);
        assert_eq!(send_all(&mut n, &mut s, 6), [1]);
    }

    #[test]
    fn a_timeout_retransmits_one_packet_and_pulls_the_rest() {
        let (mut n, mut s) = sender(9, 3);
        send_all(&mut n, &mut s, 0);
        assert_eq!(s.deadline(&n, 100), Some(100));
        s.on_ack(&mut n, 1, 0, 40);
        assert!(!s.on_time(&mut n, 100, 99), "not yet");
        assert!(s.on_time(&mut n, 100, 100));
        assert_eq!(send_all(&mut n, &mut s, 100), [1]);
        s.on_ack(&mut n, 2, 1, 140);
        s.on_pull(&mut n, 1, 140);
        assert_eq!(send_all(&mut n, &mut s, 140), [2], "lost like 1");
        s.on_ack(&mut n, 3, 2, 180);
        assert_eq!(s.deadline(&n, 100), Some(280), "nothing in flight: the PULLs may be lost");
        assert!(s.on_time(&mut n, 100, 280));
        assert_eq!(send_all(&mut n, &mut s, 280), [3]);
    }

    #[test]
    fn pulls_end_with_the_missing_packets() {
        let mut r = Receiver::default();
        assert!(!r.on_data(0, 4) && r.on_header(1, 4) && !r.on_data(2, 4));
        assert_eq!((r.due, r.expected()), (3, 1));
        // The last one: 1 and 3 are missing.
        assert!(r.on_header(3, 4));
        assert_eq!((r.due, r.pull(), r.pull(), r.pull()), (2, Some(1), Some(2), None));
        assert!(!r.on_data(1, 4) && r.on_data(1, 4), "the second is a duplicate");
        assert!(!r.on_header(1, 4), "its copy was trimmed");
        assert_eq!(r.due, 1);
        assert!(!r.on_data(3, 4));
        assert_eq!((r.due, r.expected()), (0, 4));
    }

    /// Any order, trims, and losses in both directions: everything arrives once.
    #[test]
    fn for_any_losses_everything_arrives() {
        for seed in 0..300 {
            let mut random = Stream::new(seed, "loss", 0);
            let (total, first) = (1 + random.below(40) as u32, 1 + random.below(12) as u32);
            let loses = [0, 4, 8][random.below(3) as usize];
            let (mut n, mut s) = sender(total, first);
            let mut r = Receiver::default();
            let (mut now, mut data, mut answers) = (0, Vec::new(), Vec::new());
            let mut delivered = 0;
            while !n.complete() {
                now += 1;
                assert!(now < 200_000, "no progress: {n:?} {s:?} {r:?}");
                data.extend(send_all(&mut n, &mut s, now));
                let lost = |random: &mut Stream| loses > 0 && random.below(loses) == 0;
                if !data.is_empty() && !lost(&mut random) {
                    let psn = data.swap_remove(random.below(data.len() as u64) as usize);
                    if random.below(3) == 0 {
                        let missing = r.on_header(psn, total);
                        answers.push((missing, r.expected(), psn));
                    } else {
                        delivered += u32::from(!r.on_data(psn, total));
                        answers.push((false, r.expected(), psn));
                    }
                } else if !data.is_empty() {
                    data.pop();
                }
                if !answers.is_empty() {
                    let (nack, expected, psn) =
                        answers.swap_remove(random.below(answers.len() as u64) as usize);
                    let psn = psn.max(expected);
                    match nack {
                        _ if lost(&mut random) => {}
                        true => drop(s.on_nack(&mut n, expected, psn, now)),
                        false => drop(s.on_ack(&mut n, expected, psn, now)),
                    }
                }
                if let Some(pull) = r.pull().filter(|_| !lost(&mut random)) {
                    s.on_pull(&mut n, pull, now);
                }
                s.on_time(&mut n, 50, now);
            }
            assert_eq!((delivered, r.expected()), (total, total));
        }
    }
}
