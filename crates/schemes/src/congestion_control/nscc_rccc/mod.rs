//! NSCC and RCCC together (Ultra Ethernet specification 1.0.x, section 3.6, allows both at once): the rooms
//! [`super::nscc`] and [`super::rccc`], and the four rules that join them. RCCC divides the link of a receiver among
//! its senders, and NSCC answers for the fabric.
//!
//! The text of the specification was not at hand. These are the rules of the public simulator uet-htsim with
//! `-sender_cc -receiver_cc` (`isSendPermitted`, `computePullTarget`, `updateCwndOnNack_NSCC`, and the `receiver_driven`
//! of its main program):
//!
//! ```text
//!   send              both allow it: inflight < cwnd, and credit > 0
//!   AR                one of the two asks for an ACK: the packet fills the window, or uses up the credit
//!   credit_target     backlog is min(backlog, cwnd + one full packet): credit beyond the window would lie idle
//!   last hop          its queue is the business of RCCC: its port marks nothing, and a packet that it trims takes
//!                     nothing out of the window. (Quick adapt and the average of NSCC still count it.)
//! ```
//!
//! Where RUD lets packets leave whatever the window is (recovery, and a packet while none in flight asks for an ACK),
//! they need credit. Where RCCC lets one leave without credit, the window must have room.

use super::keys::{Keys, Marking, Setting, Traits};
use super::nscc::{NsccKeys, NsccParams};
use super::rccc::{RcccKeys, RcccParams};
use super::registry::CongestionControlKeys;
use super::seam::Parameters;
use crate::flow_control::keys::Complaint;
use std::fmt::{self, Write};
use xoff_kernel::time::Time;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NsccRcccParams {
    pub nscc: NsccParams,
    pub rccc: RcccParams,
}

impl NsccRcccParams {
    /// The two together: packets that the last hop trims then leave the window of NSCC as it is.
    pub fn new(nscc: NsccParams, rccc: RcccParams) -> Self {
        Self { nscc: NsccParams { last_hop: false, ..nscc }, rccc }
    }
}

/// Both tables.
pub struct NsccRcccKeys {
    nscc: NsccKeys,
    rccc: RcccKeys,
}

impl From<&CongestionControlKeys> for NsccRcccKeys {
    fn from(tables: &CongestionControlKeys) -> Self {
        Self { nscc: tables.into(), rccc: tables.into() }
    }
}

impl Keys for NsccRcccKeys {
    type Params = NsccRcccParams;

    const TRAITS: Traits = Traits { most_credit: RcccKeys::TRAITS.most_credit, ..NsccKeys::TRAITS };

    /// The specification turns the marks of last hops off under RCCC.
    fn marking(&self) -> Option<Marking> {
        Some(Marking { last_hop: false, ..self.nscc.marking()? })
    }

    fn target_delay(&self, cx: &Setting<'_>) -> Result<Time, Complaint> {
        self.nscc.target_delay(cx)
    }

    fn params(&self, cx: &mut Setting<'_>) -> Result<NsccRcccParams, Complaint> {
        Ok(NsccRcccParams::new(self.nscc.params(cx)?, self.rccc.params(cx)?))
    }
}

/// Bytes that a sender wants at most, with a window of so many packets of `full` bytes.
pub fn wanted(cwnd: u32, full: u64) -> u64 {
    (u64::from(cwnd) + 1) * full
}

impl Parameters for NsccRcccParams {
    fn stamps(&self) -> bool {
        self.nscc.stamps()
    }

    fn reads_marks(&self) -> bool {
        self.nscc.reads_marks()
    }

    fn sets_windows(&self) -> bool {
        self.nscc.sets_windows()
    }

    fn describe(&self, out: &mut String, head: &str, trims: bool) -> fmt::Result {
        writeln!(out, "{head}nscc+rccc (a sender needs room in its window, and credit)")?;
        self.nscc.describe(out, "  ", trims)?;
        self.rccc.describe(out, "  ", trims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion_control::rccc::Source as Credit;
    use crate::transport::rud::tests::P;
    use crate::transport::rud::{Receiver, Source};
    use crate::transport::seam::{Arrival, Named, Numbers};
    use xoff_kernel::random::Stream;

    const FULL: u32 = 1_024;

    struct Sender {
        numbers: Numbers,
        source: Source,
        credit: Credit,
    }

    impl Sender {
        fn new(total: u32, cwnd: u32, max: u64) -> Self {
            let (numbers, source) = (Numbers::new(total, cwnd), Source::new(cwnd));
            Self { numbers, source, credit: Credit::new(max, FULL) }
        }

        fn told(&mut self) {
            self.source.set_credit(&mut self.numbers, self.credit.may_send());
        }

        /// The number of the packet that leaves, if one may, and whether it asks for an ACK.
        fn send(&mut self, now: u64) -> Option<(u32, bool)> {
            if !self.numbers.can_send() {
                return None;
            }
            let packet = self.numbers.send();
            self.credit.spend(FULL);
            let credit = self.credit.may_send();
            let asks = self.source.on_sent(&P, &mut self.numbers, packet, credit, now);
            Some((packet.0, asks))
        }

        fn send_all(&mut self) -> Vec<(u32, bool)> {
            std::iter::from_fn(|| self.send(0)).collect()
        }
    }

    /// The first window of 8 packets needs no credit, so a window of 3 packets limits it. Then credit for two packets
    /// does. The packet that meets either limit asks for an ACK.
    #[test]
    fn the_smaller_limit_applies() {
        let mut s = Sender::new(100, 3, 8 * u64::from(FULL));
        assert_eq!(s.send_all(), [(0, true), (1, true), (2, true)], "the window is below ack_every");
        s.source.set_window(&mut s.numbers, 20);
        assert_eq!(s.send_all(), [(3, false), (4, false), (5, false), (6, false), (7, true)]);
        // The first answer ends the credit of the first window.
        s.source.on_ack(&mut s.numbers, 8, Named::default());
        s.credit.on_answer(5);
        s.told();
        assert_eq!(s.send_all(), []);
        s.credit.on_credit(8);
        s.told();
        assert_eq!(s.send_all(), [(8, false), (9, true)]);
        // Room without credit, and credit without room.
        assert!(s.source.in_flight() < 20 && s.send_all().is_empty());
        s.source.set_window(&mut s.numbers, 2);
        s.credit.on_credit(800);
        s.told();
        assert_eq!(s.send_all(), []);
        s.source.set_window(&mut s.numbers, 6);
        assert_eq!(s.send_all(), [(10, false), (11, false), (12, false), (13, true)]);
    }

    /// A sender wants one packet more than its window, and no more than RCCC alone.
    #[test]
    fn the_window_limits_what_a_sender_wants() {
        let mut credit = Credit::new(8 * u64::from(FULL), FULL);
        credit.on_answer(0);
        let target = |new: u64, cwnd: u32| credit.target(new * u64::from(FULL), 0, wanted(cwnd, FULL.into()));
        assert_eq!(
            [(50, 3), (2, 3), (50, 7), (50, 100)].map(|(new, cwnd)| target(new, cwnd)),
            [16, 8, 32, 32]
        );
    }

    /// Random windows, credit, losses and delays: each packet leaves with room and credit, or with one of the
    /// exceptions; credit is conserved; and everything arrives.
    #[test]
    fn both_limits_hold_on_any_path() {
        enum Wire {
            Data(u32, bool),
            Ack(u32, Named),
            Credit(u32),
        }
        let (mut by_window, mut by_credit) = (0, 0);
        for seed in 0..300 {
            let mut random = Stream::new(seed, "both", 0);
            let total = 1 + random.below(120) as u32;
            let loss = [0, random.below(30)][seed as usize % 2];
            let first = 1 + random.below(30);
            let mut cwnd = 1 + random.below(30) as u32;
            let mut s = Sender::new(total, cwnd, first * u64::from(FULL));
            let (mut r, mut wire, mut now) = (Receiver::default(), Vec::new(), 0);
            let (mut granted, mut sent) = (0u64, 0u64);
            while !s.numbers.complete() {
                now += 1;
                assert!(now < 3_000_000, "no progress with seed {seed}");
                if random.below(40) == 0 {
                    cwnd = 1 + random.below(30) as u32;
                    s.source.set_window(&mut s.numbers, cwnd);
                }
                let (room, credit) = (s.source.in_flight() < cwnd, s.credit.may_send());
                if let Some((psn, asks)) = s.send(now) {
                    sent += 1;
                    assert!(credit, "seed {seed}: no credit");
                    assert!(room || asks, "seed {seed}: no room");
                    if random.below(100) >= loss {
                        wire.push(Wire::Data(psn, asks));
                    }
                } else if s.numbers.next < total {
                    by_window += u32::from(credit && !room);
                    by_credit += u32::from(room && !credit);
                }
                if random.below(9) == 0 {
                    granted += random.below(20);
                    wire.push(Wire::Credit(granted as u32));
                }
                if !wire.is_empty() && random.below(2) == 0 {
                    let at = random.below(wire.len().min(4) as u64) as usize;
                    match wire.remove(at) {
                        Wire::Data(psn, asks) => {
                            let arrival = Arrival { psn, total, marked: false, asks };
                            let got = r.receive(P.ack_every, arrival);
                            wire.extend(got.ack.map(|named| Wire::Ack(r.expected, named)));
                        }
                        Wire::Ack(expected, named) => {
                            s.source.on_ack(&mut s.numbers, expected, named);
                            s.credit.on_answer(now);
                            s.told();
                        }
                        Wire::Credit(number) => {
                            s.credit.on_answer(now);
                            s.credit.on_credit(number);
                            s.told();
                        }
                    }
                    wire.retain(|what| !matches!(what, Wire::Ack(..)) || random.below(100) >= loss);
                }
                let late = s.source.on_time(&P, &mut s.numbers, now) > 0;
                let silent = || s.credit.deadline(|times| P.timeout(times)).is_some_and(|at| at <= now);
                if late || s.source.in_flight() == 0 && silent() {
                    s.credit.on_timeout(now);
                    s.told();
                }
                assert!(s.source.in_flight() <= total);
            }
            // One packet at most leaves without credit after each RTO, and one may leave with a part of its credit.
            let most = first * u64::from(FULL) + granted * 256 + (now / P.rto + 1) * u64::from(FULL);
            assert!(sent * u64::from(FULL) <= most + u64::from(FULL), "seed {seed}");
        }
        assert!(by_window > 1_000 && by_credit > 1_000, "{by_window} {by_credit}");
    }
}
