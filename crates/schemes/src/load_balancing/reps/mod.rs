//! REPS, recycled entropy packet spraying: a sender draws a label, the *entropy value* (EV), for each packet, and uses
//! EVs again whose packets came unmarked (Bonato et al., arXiv 2407.21625, §3; Ultra Ethernet lets senders choose EVs).
//!
//! A flow caches N EVs in a ring, each valid until it is used:
//!
//! ```text
//! ACK of EV:       frozen and now > exit      ring emptied, frozen = false, explore = E
//!                  unmarked                   ring[head] = EV, valid; head + 1
//! timeout:         not frozen, explore = 0    frozen = true, exit = now + F
//! packet leaves:   explore > 0                a random EV; explore − 1
//!                  the ring is empty          a random EV
//!                  frozen                     the EVs of the ring in turns, valid or not
//!                  some are valid             the oldest valid EV, which is valid no longer
//!                  otherwise                  a random EV
//! ```
//!
//! A frozen sender keeps away from paths that it does not know: one of them has failed. N is 8, as in the paper. F and E
//! are those of the authors' simulator, 10 ms and 16 packets (the paper: the packets of a BDP); so are the emptied ring
//! and the turns of a frozen sender.

mod keys;
pub mod report;

use super::seam::{Ack, Label, SenderRule};
pub use keys::RepsKeys;
use report::{FACTS, Recycling, Report};
use xoff_kernel::time::Time;
use xoff_net::units::Span;
use xoff_outcome::report::{Facts, Records};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepsParams {
    /// EVs of a flow, at least 2.
    pub labels: u32,
    /// N: EVs in the ring, at least 1.
    pub ring: u32,
    /// F, in picoseconds; `None`: a sender never freezes.
    pub freezing: Option<Time>,
    /// E, in packets.
    pub explore: u32,
}

/// The sender of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reps {
    /// EVs, the last N that came unmarked, and whether each is valid.
    ring: Vec<(u16, bool)>,
    /// The place of the next EV in a full ring, and so of the oldest one.
    head: usize,
    /// The place of the next EV that a frozen sender uses.
    turn: usize,
    valid: usize,
    /// Until when it is frozen, if it is.
    frozen: Option<Time>,
    /// So many packets get random EVs.
    explore: u32,
    counts: Recycling,
}

impl Reps {
    /// An unmarked packet with this EV has come.
    fn keep(&mut self, params: &RepsParams, label: u16) {
        if self.ring.len() < params.ring as usize {
            self.ring.push((label, true));
            self.valid += 1;
            return;
        }
        self.valid += usize::from(!self.ring[self.head].1);
        self.ring[self.head] = (label, true);
        self.head = (self.head + 1) % self.ring.len();
    }

    /// The EV at a place, which is valid no longer.
    fn take(&mut self, place: usize) -> u32 {
        let (label, valid) = &mut self.ring[place];
        self.valid -= usize::from(std::mem::take(valid));
        (*label).into()
    }
}

impl SenderRule for RepsParams {
    const STREAM: &'static str = "REPS";
    const EACH_PACKET: bool = true;
    const FACTS: &'static Facts = &FACTS;

    type Sender = Reps;

    fn labels(&self) -> u32 {
        self.labels
    }

    fn next(&self, sender: &mut Reps, mut draw: impl FnMut(u64) -> u64) -> u32 {
        let known = sender.explore == 0 && !sender.ring.is_empty();
        if known && sender.frozen.is_some() {
            let place = sender.turn % sender.ring.len();
            sender.turn = place + 1;
            sender.counts.frozen += 1;
            return sender.take(place);
        }
        if known && sender.valid > 0 {
            let length = sender.ring.len();
            let oldest = (0..length).map(|i| (sender.head + i) % length).find(|&place| sender.ring[place].1);
            sender.counts.recycled += 1;
            return sender.take(oldest.expect("one is valid"));
        }
        sender.explore = sender.explore.saturating_sub(1);
        sender.counts.random += 1;
        draw(self.labels.into()) as u32
    }

    fn on_ack(&self, sender: &mut Reps, ack: &Ack, _: impl FnMut(u64) -> u64) -> Option<u32> {
        if sender.frozen.is_some_and(|exit| ack.now > exit) {
            let counts = sender.counts;
            *sender = Reps { explore: self.explore, counts, ..Reps::default() };
        }
        if let Some(Label { number, congested: false }) = ack.label {
            sender.keep(self, number);
        }
        None
    }

    fn on_timeout(&self, sender: &mut Reps, now: Time, _: impl FnMut(u64) -> u64) -> Option<u32> {
        if let Some(freezing) = self.freezing
            && sender.frozen.is_none()
            && sender.explore == 0
        {
            sender.frozen = Some(now.saturating_add(freezing));
            sender.counts.freezes += 1;
        }
        None
    }

    fn on_move(&self, sender: &mut Reps) {
        sender.counts.moves += 1;
    }

    fn records(senders: &[Reps], with_choice: u64) -> Records {
        let sums = senders.iter().fold(Recycling::default(), |sum, sender| sum + sender.counts);
        Records::of(Report { with_choice, sums })
    }

    fn describe(&self) -> [String; 2] {
        let Self { labels, ring, freezing, explore } = *self;
        let frozen = match freezing {
            None => "it never freezes".to_string(),
            Some(span) => {
                format!(
                    "after a timeout it uses only these for {}, and then {explore} random ones",
                    Span(span)
                )
            }
        };
        let rule = format!(
            "{labels} labels each; a flow uses again the last {ring} labels whose packets came unmarked; {frozen}"
        );
        ["label each packet (reps)".into(), rule]
    }
}

#[cfg(test)]
mod tests;
