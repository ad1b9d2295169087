//! The receiver.

use crate::transport::seam::{Arrival, Named};
use std::collections::VecDeque;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// It had arrived before.
    pub duplicate: bool,
    /// The packets that an ACK names, if there is one.
    pub ack: Option<Named>,
}

/// A receiver's state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Next packet in order.
    pub expected: u32,
    /// Packets that have arrived, in words of 64 from that of `expected` on.
    words: VecDeque<u64>,
    /// Packets beyond `expected` that have arrived.
    early: u32,
    /// Packets since the last ACK.
    count: u32,
    /// A packet has asked for an ACK since the last time without a gap.
    asked: bool,
}

impl Receiver {
    fn has_arrived(&self, psn: u32) -> bool {
        let word = || self.words.get((psn / 64 - self.expected / 64) as usize);
        psn < self.expected || word().is_some_and(|word| word >> (psn % 64) & 1 == 1)
    }

    pub fn receive(&mut self, ack_every: u32, packet: Arrival) -> Reception {
        let Arrival { psn, total, marked, asks } = packet;
        let duplicate = self.has_arrived(psn);
        let first = self.expected == 0 && self.early == 0;
        let mut acknowledge = duplicate || marked || asks || first;
        if !duplicate {
            self.keep(psn);
            self.count += 1;
            self.asked |= asks;
            if self.early == 0 && std::mem::take(&mut self.asked) {
                acknowledge = true;
            }
            acknowledge |= self.count >= ack_every || self.expected == total;
        }
        if acknowledge {
            self.count = 0;
        }
        if self.expected == total {
            self.words = VecDeque::new();
        }
        Reception { duplicate, ack: acknowledge.then(|| self.names(psn)) }
    }

    /// Whether the packet has not arrived.
    pub fn is_missing(&self, psn: u32) -> bool {
        !self.has_arrived(psn)
    }

    /// The bitmap of an ACK for `psn`.
    pub fn names(&self, psn: u32) -> Named {
        let first = psn.saturating_sub(63).max(self.expected + 1);
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        let at = (first / 64 - self.expected / 64) as usize;
        let bits = match first % 64 {
            0 => word(at),
            shift => word(at) >> shift | word(at + 1) << (64 - shift),
        };
        Named { first, bits }
    }

    fn keep(&mut self, psn: u32) {
        let at = (psn / 64 - self.expected / 64) as usize;
        if psn == self.expected && self.early == 0 {
            // The word of `expected` is empty beyond it.
            self.words.clear();
            self.expected += 1;
            return;
        }
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (psn % 64);
        self.early += 1;
        while let Some(word) = self.words.front()
            && word >> (self.expected % 64) & 1 == 1
        {
            self.early -= 1;
            self.expected += 1;
            if self.expected.is_multiple_of(64) {
                self.words.pop_front();
            }
        }
    }
}
