//! PLB: a sender whose packets come marked changes its flow's label, and with it the
//! path that the switches' hashes choose (Qureshi et al., SIGCOMM 2022).
//!
//! A *round* is a round trip: it begins when the one before ends, and ends when all that had been sent by
//! then is acknowledged. It is congested if its share of marked packets reaches a threshold. The label
//! changes
//! - when nothing is in flight, after `idle_rounds` congested rounds in a row: packets
//!   then cannot overtake each other;
//! - at once, after `forced_rounds` of them;
//! - after a timeout.
//!
//! ```text
//!             round congested: c + 1                      c ≥ idle_rounds, nothing in flight
//!   ┌─────────────────────────────────► c rounds in a row ───────────────────────► new label,
//!   │         round not congested: 0        │             c ≥ forced_rounds, or a     c = 0
//!   └───────────────────────────────────────┘             timeout
//! ```
//!
//! Thresholds are those of Linux's `tcp_plb`, which the paper's authors wrote: half of the packets, 3 rounds
//! and 12. Linux also suspends changes for marks after a timeout, longer than any simulation: not done here.

mod keys;
pub mod report;

use super::seam::{Ack, SenderRule};
pub use keys::PlbKeys;
use report::{FACTS, Relabelling, Report};
use xoff_kernel::time::Time;
use xoff_outcome::report::{Facts, Records};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlbParams {
    /// Share of marked packets from which on a round is congested, above 0, up to 1.
    pub threshold: f64,
    /// Congested rounds in a row after which an idle flow changes its label, at least 1.
    pub idle_rounds: u32,
    /// The same for a flow with packets in flight, at least `idle_rounds`.
    pub forced_rounds: u32,
    /// Labels of a flow, at least 2.
    pub labels: u32,
}

/// The sender of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plb {
    label: u32,
    /// The round ends when all packets below this number are acknowledged.
    round_end: u32,
    /// Packets acknowledged in this round, and the marked ones of them.
    acknowledged_packets: u32,
    marked: u32,
    /// Congested rounds in a row.
    congested: u32,
    changes: Relabelling,
}

impl Plb {
    /// An ACK or NACK has arrived. Returns whether the flow gets another label.
    fn weigh(&mut self, params: &PlbParams, ack: &Ack) -> bool {
        self.acknowledged_packets = self.acknowledged_packets.saturating_add(ack.newly_acknowledged);
        self.marked = self.marked.saturating_add(ack.marked);
        if ack.acknowledged >= self.round_end && self.acknowledged_packets > 0 {
            let share = f64::from(self.marked) / f64::from(self.acknowledged_packets);
            self.congested = if share >= params.threshold { self.congested.saturating_add(1) } else { 0 };
            (self.acknowledged_packets, self.marked) = (0, 0);
            self.round_end = ack.sent;
        }
        let idle = ack.acknowledged == ack.sent;
        let changes = self.congested >= params.forced_rounds || idle && self.congested >= params.idle_rounds;
        if changes {
            self.congested = 0;
        }
        changes
    }

    /// The flow gets one of its other labels.
    fn relabel(&mut self, params: &PlbParams, mut draw: impl FnMut(u64) -> u64) -> u32 {
        let other = draw(u64::from(params.labels) - 1) as u32;
        self.label = other + u32::from(other >= self.label);
        self.label
    }
}

impl SenderRule for PlbParams {
    const STREAM: &'static str = "PLB";
    const EACH_PACKET: bool = false;
    const FACTS: &'static Facts = &FACTS;

    type Sender = Plb;

    fn labels(&self) -> u32 {
        self.labels
    }

    fn next(&self, sender: &mut Plb, _: impl FnMut(u64) -> u64) -> u32 {
        sender.label
    }

    fn on_ack(&self, sender: &mut Plb, ack: &Ack, draw: impl FnMut(u64) -> u64) -> Option<u32> {
        if !sender.weigh(self, ack) {
            return None;
        }
        sender.changes.by_marks += 1;
        Some(sender.relabel(self, draw))
    }

    fn on_timeout(&self, sender: &mut Plb, _: Time, draw: impl FnMut(u64) -> u64) -> Option<u32> {
        sender.congested = 0;
        sender.changes.by_timeouts += 1;
        Some(sender.relabel(self, draw))
    }

    fn on_move(&self, sender: &mut Plb) {
        sender.changes.moves += 1;
    }

    fn records(senders: &[Plb], with_choice: u64) -> Records {
        let flows = senders.iter().map(|sender| sender.changes).collect();
        Records::of(Report { choices: with_choice, flows })
    }

    fn describe(&self) -> [String; 2] {
        let Self { threshold, idle_rounds, forced_rounds, labels } = self;
        let rounds = format!(
            "{labels} labels each; a flow changes its label after {forced_rounds} round trips in a row with {threshold} or more \
             of its packets marked, after {idle_rounds} if nothing is in flight, and after timeouts"
        );
        ["change the labels of their flows (plb)".into(), rounds]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: PlbParams = PlbParams { threshold: 0.5, idle_rounds: 2, forced_rounds: 4, labels: 2 };

    /// One more packet is acknowledged.
    fn ack(marked: u32, acknowledged: u32, sent: u32) -> Ack {
        Ack { now: 0, newly_acknowledged: 1, marked, label: None, acknowledged, sent }
    }

    /// Rounds of ten packets, some of them marked, with packets in flight after each; returns the rounds,
    /// counted from 1, at whose end the label changes.
    fn changes(marks: &[u32]) -> Vec<usize> {
        let mut plb = Plb::default();
        // The first ACK of a flow ends a separate round: it is unmarked here.
        assert!(!plb.weigh(&PARAMS, &ack(0, 1, 11)));
        let mut at = 1;
        let mut changed = Vec::new();
        for (round, &marked) in (1..).zip(marks) {
            for i in 1..=10 {
                at += 1;
                let ack = ack(u32::from(i <= marked), at, at + 10);
                if plb.weigh(&PARAMS, &ack) {
                    assert_eq!(i, 10, "only where a round ends");
                    changed.push(round);
                }
            }
        }
        changed
    }

    #[test]
    fn the_label_changes_after_so_many_congested_rounds_in_a_row() {
        assert_eq!(changes(&[5, 5, 5]), [0; 0]);
        assert_eq!(changes(&[5, 5, 5, 5]), [4]);
        assert_eq!(changes(&[10; 9]), [4, 8]);
        assert_eq!(changes(&[5, 5, 5, 4, 5, 5, 5]), [0; 0], "one round below the threshold begins anew");
        assert_eq!(changes(&[4, 5, 5, 5, 5]), [5]);
    }

    #[test]
    fn an_idle_flow_changes_it_sooner() {
        let mut plb = Plb::default();
        let mut lone = |marked, at| plb.weigh(&PARAMS, &ack(marked, at, at));
        assert_eq!(
            [lone(1, 1), lone(1, 2), lone(1, 3), lone(0, 4), lone(1, 5), lone(1, 6)],
            [false, true, false, false, false, true]
        );
    }

    #[test]
    fn a_timeout_begins_anew() {
        let mut plb = Plb::default();
        let full = |at| ack(1, at, at + 1);
        assert!((1..=3).all(|at| !plb.weigh(&PARAMS, &full(at))));
        assert_eq!(PARAMS.on_timeout(&mut plb, 0, |n| n - 1), Some(1), "the other label");
        assert!((4..=6).all(|at| !plb.weigh(&PARAMS, &full(at))));
        assert!(plb.weigh(&PARAMS, &full(7)));
    }
}
