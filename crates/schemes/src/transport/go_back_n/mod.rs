//! Go-back-N as RoCE NICs run it (InfiniBand §9.7: PSN, ACK, NAK sequence error).
//!
//! Sender, over packets `0 .. total`: `una` is the first one not acknowledged, `next` the next one to send.
//!
//! ```text
//!   send            next < total, next − una < window:  send packet next, next += 1
//!   ACK(n)          n > una:  una = n, next = max(next, n)   (n is the next one expected)
//!   NACK(n)         ACK(n), then next = n
//!   timeout         una < next:  next = una
//!   complete        una = total
//! ```
//!
//! Receiver: `expected` is the next one in order.
//!
//! ```text
//!   packet = expected   deliver; expected += 1; the gap is closed; acknowledge if it
//!                       was the last packet or the `ack_every`-th since the last ACK
//!   packet > expected   discard; NACK(expected), once per gap
//!   packet < expected   discard; ACK(expected), for its ACK may have been lost
//! ```

mod keys;

/// Go-back-N, whose only parameters are those of every transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoBackN;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// First packet not acknowledged.
    pub una: u32,
    pub next: u32,
    pub total: u32,
    /// One beyond the highest packet ever sent.
    pub highest: u32,
    /// Most packets in flight, at least 1.
    pub window: u32,
}

impl Sender {
    pub fn new(total: u32, window: u32) -> Self {
        Self { una: 0, next: 0, total, highest: 0, window }
    }

    #[inline]
    pub fn can_send(&self) -> bool {
        self.next < self.total && self.next - self.una < self.window
    }

    /// Takes the next packet; the second half of the result is whether it is a retransmission.
    #[inline]
    pub fn send(&mut self) -> (u32, bool) {
        debug_assert!(self.can_send());
        let psn = self.next;
        self.next += 1;
        let repeat = psn < self.highest;
        self.highest = self.highest.max(self.next);
        (psn, repeat)
    }

    /// Everything below `n` has arrived. Returns whether that is new.
    #[inline]
    pub fn on_ack(&mut self, n: u32) -> bool {
        let news = n > self.una;
        if news {
            self.una = n;
            self.next = self.next.max(n);
        }
        news
    }

    /// `n` is missing: it and all later packets are retransmitted.
    pub fn on_nack(&mut self, n: u32) -> bool {
        let news = self.on_ack(n);
        // An old NACK that a later ACK has overtaken asks for nothing.
        if n >= self.una {
            self.next = n;
        }
        news
    }

    /// No progress for too long. Returns whether anything was in flight.
    pub fn on_timeout(&mut self) -> bool {
        let lost = self.una < self.next;
        self.next = self.una;
        lost
    }

    #[inline]
    pub fn complete(&self) -> bool {
        self.una == self.total
    }

    /// Nothing is left to be sent or acknowledged: what is not acknowledged is given up.
    pub fn give_up(&mut self) {
        self.total = self.una;
        self.next = self.next.max(self.una);
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Next packet in order.
    pub expected: u32,
    /// In order since the last ACK.
    unacknowledged: u32,
    /// A NACK for `expected` is out.
    gap_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    Silent,
    /// Everything below has arrived.
    Ack(u32),
    /// This one is missing.
    Nack(u32),
}

impl Receiver {
    #[inline]
    pub fn on_data(&mut self, psn: u32, total: u32, ack_every: u32) -> Reply {
        if psn == self.expected {
            self.expected += 1;
            self.unacknowledged += 1;
            self.gap_reported = false;
            if self.unacknowledged < ack_every && self.expected != total {
                return Reply::Silent;
            }
        } else if psn > self.expected {
            if std::mem::replace(&mut self.gap_reported, true) {
                return Reply::Silent;
            }
            self.unacknowledged = 0;
            return Reply::Nack(self.expected);
        }
        self.unacknowledged = 0;
        Reply::Ack(self.expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    /// Random loss, in both directions, of a connection with one packet in each
    /// direction per step: everything arrives once and in order.
    #[test]
    fn for_any_losses_everything_arrives_in_order() {
        for seed in 0..200 {
            let mut random = Stream::new(seed, "loss", 0);
            let total = 1 + random.below(40) as u32;
            let (window, every) = (1 + random.below(8) as u32, 1 + random.below(4) as u32);
            let (mut sender, mut receiver) = (Sender::new(total, window), Receiver::default());
            let (mut quiet, mut steps) = (0, 0);
            while !sender.complete() {
                steps += 1;
                assert!(steps < 100_000, "no progress");
                let mut reply = Reply::Silent;
                if sender.can_send() {
                    let (psn, _) = sender.send();

                    if random.below(5) > 0 {
                        let before = receiver.expected;
                        reply = receiver.on_data(psn, total, every);
                        assert_eq!(receiver.expected, before + u32::from(psn == before));
                    }
                }
                quiet += 1;
                if reply != Reply::Silent && random.below(5) > 0 {
                    let news = match reply {
                        Reply::Ack(n) => sender.on_ack(n),
                        Reply::Nack(n) => sender.on_nack(n),
                        Reply::Silent => false,
                    };
                    quiet = if news { 0 } else { quiet };
                }
                if quiet > 20 {
                    sender.on_timeout();
                    quiet = 0;
                }
            }
            assert_eq!(receiver.expected, total);
        }
    }

    #[test]
    fn one_nack_per_gap() {
        let mut receiver = Receiver::default();
        let replies: Vec<_> = [0, 2, 3, 1, 3, 0].map(|psn| receiver.on_data(psn, 9, 1)).to_vec();
        use Reply::{Ack, Nack, Silent};
        assert_eq!(replies, [Ack(1), Nack(1), Silent, Ack(2), Nack(2), Ack(2)]);
    }

    #[test]
    fn acknowledges_every_nth_and_the_last() {
        let mut receiver = Receiver::default();
        let acks: Vec<_> = (0..8).filter(|&psn| receiver.on_data(psn, 8, 3) != Reply::Silent).collect();
        assert_eq!(acks, [2, 5, 7]);
    }

    #[test]
    fn an_old_nack_changes_nothing() {
        let mut sender = Sender::new(10, 10);
        (0..6).for_each(|_| assert!(!sender.send().1));
        sender.on_ack(5);
        sender.on_nack(2);
        assert_eq!((sender.una, sender.next), (5, 6));
        sender.on_nack(5);
        assert_eq!(sender.next, 5);
        assert_eq!(sender.send(), (5, true));
    }
}
