//! RCCC, the receiver-credit congestion control of Ultra Ethernet (specification 1.0.x, section 3.6.14), over RUD
//! ([`crate::transport::rud`]): a sender needs credit of its receiver, which grants it at the rate of its link.
//!
//! The specification derives RCCC from EQDS (NSDI 2022) and says: a source sends only while its credit is above 0; it
//! tells its backlog as `credit_target` in each request; the destination paces credit to all active sources near the
//! rate of its link, in Credit CPs. Its text was not at hand. The rules below are those of the public simulator
//! uet-htsim (`UecSrc`, `UecSink` and `UecPullPacer`), unless they are marked as ours. All bytes are those on the
//! wire, with headers. Credit is counted in quanta of 256 B since the beginning of the flow, so a Credit CP that is
//! lost or late costs nothing after the next one.
//!
//! Source: `max` is MaxWnd. `backlog` are the bytes that wait to be sent or to be retransmitted.
//!
//! ```text
//!   begin             credit = max, speculating
//!   credit > 0        send a packet: credit −= its size, which may leave credit below 0 by one packet. The packet
//!                     says credit_target = granted + ⌈(min(backlog, max) − credit)/256 B⌉, where a source that is
//!                     speculating with new packets to send wants one full packet at least. Beside a window the
//!                     backlog has a limit ([`super::nscc_rccc`]).
//!                     AR (the packet asks for an ACK) if credit ≤ 0 now
//!   ACK, NACK, credit that come first:  speculating ends, credit ← min(credit, 0)
//!   CREDIT(c)         c > granted:  credit ← min(credit + 256 B·(c − granted), max);  granted = c.
//!                     With `in_acks` the same for ACK(c)
//!   RTO of a packet   speculating ends. credit ≤ 0:  one packet may leave without credit (ours)
//!   silence           credit ≤ 0 and nothing in flight for RTO_INIT·2^n after the last answer: the same (ours)
//! ```
//!
//! Destination: for each flow `target` is its largest credit_target, `granted` its credit so far. A link has two lists
//! of flows, `active` and `idle`, and serves `idle` only while `active` is empty.
//!
//! ```text
//!   packet, header    target ← max(target, credit_target);  target > granted:  the flow joins active.
//!                     Otherwise, if it was trimmed, or asks for an ACK (ours):  it joins idle
//!   active            the first flow:  g = min(grant, target − granted);  granted += g;  CREDIT(granted);
//!                     it goes to the end of active, or if target = granted to that of idle
//!   idle              the first flow:  g = grant if granted − target < max, else 0;  granted += g;
//!                     CREDIT(granted);  it stays at the end of idle while granted − target < max
//!   link free         the next CREDIT leaves when the link could have carried g since, at `rate` times its rate;
//!                     after g = 0 when it could have carried 1,024 B
//!   complete          a flow whose packets have all arrived leaves both lists (ours: a flow is one message)
//!   ACK               with `in_acks`:  ACK(granted), which grants nothing more (ours)
//! ```
//!
//! In uet-htsim a source divides what it wants by the number of flows that its network card serves, and after a
//! timeout without credit it sends a header (RTS) instead of a packet. The specification has room for credit in ACKs.
//! uet-htsim does not use it.

mod keys;

pub use keys::RcccKeys;

use super::gap_at;
use super::seam::Parameters;
use std::collections::VecDeque;
use std::fmt::{self, Write};
use xoff_kernel::time::Time;
use xoff_net::units::Bytes;

/// Bytes of a unit of credit.
pub const QUANTUM: u64 = 256;
/// A credit_target in a packet is below this.
pub const TARGETS: u32 = 1 << 23;
/// A number in a Credit CP is below this.
pub const CREDITS: u32 = 1 << 24;
/// Largest credit of a source, in bytes: two credit_targets differ by less than half of [`TARGETS`].
pub const MOST: u64 = (TARGETS as u64 / 8) * QUANTUM;
/// Bytes in place of a grant of nothing.
const NOTHING: u64 = 1_024;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RcccParams {
    /// Share of the link's rate at which credit is granted; above 0, at most 1.
    pub rate: f64,
    /// Credit of one frame in quanta, at least 1.
    pub grant: u32,
    /// ACKs carry the credit of their flow, too.
    pub in_acks: bool,
}

/// How far `number`, known modulo `modulus`, is beyond `from`; 0 if it is not.
fn beyond(number: u32, from: u64, modulus: u32) -> u64 {
    let by = number.wrapping_sub(from as u32) % modulus;
    if by < modulus / 2 { by.into() } else { 0 }
}

/// A sender's credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// In bytes.
    credit: i64,
    /// MaxWnd in bytes.
    max: i64,
    /// Bytes of a full packet.
    full: i64,
    speculating: bool,
    /// In quanta.
    granted: u64,
    /// One packet may leave without credit.
    overdraft: bool,
    /// When the last answer came, and timeouts since then.
    answered: Time,
    silent: u8,
}

impl Source {
    /// With a credit of `max` bytes at first, at most [`MOST`], and full packets of `full` bytes.
    pub fn new(max: u64, full: u32) -> Self {
        let max = max.min(MOST) as i64;
        Self {
            credit: max,
            max,
            full: full.into(),
            speculating: true,
            granted: 0,
            overdraft: false,
            answered: 0,
            silent: 0,
        }
    }

    pub fn may_send(&self) -> bool {
        self.credit > 0 || self.overdraft
    }

    /// A packet of `size` bytes leaves.
    pub fn spend(&mut self, size: u32) {
        debug_assert!(self.may_send());
        self.credit -= i64::from(size);
        self.overdraft = false;
    }

    /// The credit_target of the packet that leaves, below [`TARGETS`]: so many bytes of new packets and of
    /// retransmissions wait behind it, of which the source wants `most`.
    pub fn target(&self, new: u64, again: u64, most: u64) -> u32 {
        let mut wants = (new + again).min(most).min(self.max as u64) as i64 - self.credit;
        if self.speculating && new > 0 {
            wants = wants.max(self.full);
        }
        let quanta = (wants.max(0) as u64).div_ceil(QUANTUM);
        ((self.granted + quanta) % u64::from(TARGETS)) as u32
    }

    /// Any answer of the receiver has come.
    pub fn on_answer(&mut self, now: Time) {
        self.stop_speculating();
        (self.answered, self.silent) = (now, 0);
    }

    /// A Credit CP with this number has come, or an ACK with it.
    pub fn on_credit(&mut self, number: u32) {
        let more = beyond(number, self.granted, CREDITS);
        self.granted += more;
        self.credit = self.credit.max(self.max.min(self.credit + (more * QUANTUM) as i64));
    }

    /// Packets had no answer in time, or the sender itself.
    pub fn on_timeout(&mut self, now: Time) {
        self.stop_speculating();
        self.overdraft = self.credit <= 0;
        (self.answered, self.silent) = (now, self.silent.saturating_add(1));
    }

    /// Losses were inferred: one packet may leave without credit, and tell what is missing.
    pub fn on_inferred_loss(&mut self) {
        self.overdraft |= self.credit <= 0;
    }

    /// When a sender with nothing in flight has waited too long; `timeout` is that after so many timeouts.
    pub fn deadline(&self, timeout: impl Fn(u8) -> Time) -> Option<Time> {
        (!self.may_send()).then(|| self.answered.saturating_add(timeout(self.silent)))
    }

    fn stop_speculating(&mut self) {
        if std::mem::take(&mut self.speculating) {
            self.credit = self.credit.min(0);
        }
    }
}

/// The credit of a flow at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Largest credit_target, and credit granted, in quanta.
    target: u64,
    granted: u64,
    /// Largest credit beyond the target, in quanta.
    max: u64,
    /// The lists that it is in.
    active: bool,
    idle: bool,
    /// All its packets have arrived.
    complete: bool,
}

impl Destination {
    /// `max` is MaxWnd in bytes, as at the sender.
    pub fn new(max: u64) -> Self {
        Self {
            target: 0,
            granted: 0,
            max: max.min(MOST) / QUANTUM,
            active: false,
            idle: false,
            complete: false,
        }
    }

    /// A packet or a header with this credit_target has arrived.
    pub fn on_target(&mut self, target: u32) {
        self.target += beyond(target, self.target, TARGETS);
    }

    pub fn complete(&mut self) {
        self.complete = true;
    }

    /// The number of its credit so far, below [`CREDITS`].
    pub fn number(&self) -> u32 {
        (self.granted % u64::from(CREDITS)) as u32
    }

    fn backlog(&self) -> u64 {
        self.target.saturating_sub(self.granted)
    }

    fn may_idle(&self) -> bool {
        self.granted.saturating_sub(self.target) < self.max
    }
}

/// Credit for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub flow: u32,
    /// The number of the Credit CP, below [`CREDITS`].
    pub number: u32,
    pub quanta: u32,
}

/// The credit of one link of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub struct CreditQueue {
    active: VecDeque<u32>,
    idle: VecDeque<u32>,
    /// Bits per second.
    rate: f64,
    /// When the next Credit CP may leave.
    pub free_at: Time,
    /// An event is pending at `free_at`.
    pub armed: bool,
}

impl CreditQueue {
    /// Of a link with this rate in bits per second.
    pub fn new(p: &RcccParams, rate: u64) -> Self {
        let rate = rate as f64 * p.rate;
        Self { active: VecDeque::new(), idle: VecDeque::new(), rate, free_at: 0, armed: false }
    }

    /// A flow has told its target; `asks` if it needs an answer in any case.
    pub fn request(&mut self, flow: u32, of: &mut Destination, asks: bool) {
        if of.complete {
        } else if of.backlog() > 0 {
            if !std::mem::replace(&mut of.active, true) {
                self.active.push_back(flow);
            }
        } else if asks && !of.active && !std::mem::replace(&mut of.idle, true) {
            self.idle.push_back(flow);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.idle.is_empty()
    }

    /// The next grant, at `now`.
    pub fn grant(&mut self, p: &RcccParams, flows: &mut [Destination], now: Time) -> Option<Grant> {
        let (flow, quanta) = self.choose(p, flows)?;
        let number = flows[flow as usize].number();
        let bytes = if quanta > 0 { u64::from(quanta) * QUANTUM } else { NOTHING };
        self.free_at = now + gap_at(bytes as u32, self.rate);
        Some(Grant { flow, number, quanta })
    }

    fn choose(&mut self, p: &RcccParams, flows: &mut [Destination]) -> Option<(u32, u32)> {
        while let Some(flow) = self.active.pop_front() {
            let of = &mut flows[flow as usize];
            of.active = false;
            if of.complete {
                continue;
            }
            let quanta = of.backlog().min(p.grant.into());
            of.granted += quanta;
            self.request(flow, of, true);
            return Some((flow, quanta as u32));
        }
        while let Some(flow) = self.idle.pop_front() {
            let of = &mut flows[flow as usize];
            of.idle = false;
            if of.complete {
                continue;
            }
            let quanta = if of.may_idle() { p.grant } else { 0 };
            of.granted += u64::from(quanta);
            if of.may_idle() {
                of.idle = true;
                self.idle.push_back(flow);
            }
            return Some((flow, quanta));
        }
        None
    }
}

impl Parameters for RcccParams {
    fn wants_answers(&self) -> bool {
        false
    }

    fn describe(&self, out: &mut String, head: &str, _: bool) -> fmt::Result {
        writeln!(out, "{head}rccc (receivers grant credit at {} times the rate of their links)", self.rate)?;
        writeln!(
            out,
            "  frames of {} of credit{}; the first window needs none",
            Bytes(u64::from(self.grant) * QUANTUM),
            if self.in_acks { ", and in each ACK that of the flow" } else { "" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    const P: RcccParams = RcccParams { rate: 1.0, grant: 16, in_acks: false };
    /// A packet of four quanta.
    const FULL: u32 = 1_024;
    const MAX: u64 = 8 * FULL as u64;
    /// Time of a quantum on the link below, in picoseconds.
    const TURN: Time = 256 * 80;

    fn link() -> CreditQueue {
        CreditQueue::new(&P, 100_000_000_000)
    }

    /// The first window needs no credit, and each of its packets asks for itself. The first answer ends it.
    #[test]
    fn the_first_window_is_speculative() {
        let mut s = Source::new(MAX, FULL);
        let mut sent = 0;
        while s.may_send() {
            s.spend(FULL);
            sent += 1;
            assert_eq!(s.target(1 << 20, 0, u64::MAX), 4 * sent, "one full packet more");
        }
        assert_eq!((sent, s.credit), (8, 0));
        let mut s = Source::new(MAX, FULL);
        s.spend(FULL);
        s.on_answer(5);
        assert_eq!((s.may_send(), s.credit), (false, 0));
        s.on_credit(6);
        assert_eq!(s.credit, 6 * 256);
        s.spend(FULL);
        s.spend(FULL);
        assert_eq!((s.may_send(), s.credit), (false, -512), "below 0 by a part of a packet");
        // Of 20 packets that wait it wants MaxWnd, and 512 B that it owes.
        assert_eq!(s.target(20 * 1_024, 0, u64::MAX), 6 + (MAX as u32 + 512) / 256);
        assert_eq!(s.target(0, 1_000, u64::MAX), 6 + 6, "rounded up");
        assert_eq!(s.target(0, 0, u64::MAX), 6 + 2);
    }

    /// Numbers count from the beginning of the flow: a lost or late one costs nothing, and their modulus neither.
    #[test]
    fn credit_is_cumulative() {
        let mut s = Source { speculating: false, credit: 0, ..Source::new(MAX, FULL) };
        [4, 12, 8, 12].into_iter().for_each(|number| s.on_credit(number));
        assert_eq!((s.credit, s.granted), (12 * 256, 12));
        s.on_credit(1 << 20);
        assert_eq!(s.credit, MAX as i64, "at most MaxWnd");
        let mut s = Source { granted: (1 << 40) - 1, speculating: false, credit: -9, ..s };
        s.on_credit(3);
        assert_eq!((s.credit, s.granted), (4 * 256 - 9, (1 << 40) + 3));
        let mut d = Destination { target: (1 << 30) - 1, ..Destination::new(MAX) };
        [0, 5, 2, TARGETS - 1].into_iter().for_each(|target| d.on_target(target));
        assert_eq!(d.target, (1 << 30) + 5);
    }

    #[test]
    fn timeouts_allow_one_packet() {
        let mut s = Source { speculating: false, credit: 0, ..Source::new(MAX, FULL) };
        let timeout = |n: u8| 100 << n;
        s.on_answer(50);
        assert_eq!(s.deadline(timeout), Some(150));
        s.on_timeout(150);
        assert!(s.may_send() && s.deadline(timeout).is_none());
        s.spend(FULL);
        assert_eq!((s.may_send(), s.credit, s.deadline(timeout)), (false, -1_024, Some(350)));
        s.on_answer(200);
        assert_eq!(s.deadline(timeout), Some(300));
        // With credit a timeout allows nothing more.
        s.on_credit(8);
        s.on_timeout(300);
        s.spend(FULL);
        assert!(!s.may_send());
    }

    /// Two flows take turns, at the rate of the link; a third one without backlog gets credit only after them, up to
    /// MaxWnd beyond its target.
    #[test]
    fn flows_take_turns() {
        let mut flows = [Destination::new(MAX); 3];
        let (mut link, mut now) = (link(), 7);
        for (flow, target) in [(0, 40), (1, 24), (2, 0)] {
            flows[flow].on_target(target);
            link.request(flow as u32, &mut flows[flow], true);
        }
        let mut grants = Vec::new();
        while let Some(Grant { flow, number, quanta }) = link.grant(&P, &mut flows, now) {
            assert_eq!(link.free_at - now, TURN * u64::from(quanta));
            now = link.free_at;
            grants.push((flow, number, quanta));
        }
        let asked = [(0, 16, 16), (1, 16, 16), (0, 32, 16), (1, 24, 8), (0, 40, 8)];
        assert_eq!(grants[..5], asked);
        let idle = [(2, 16, 16), (1, 40, 16), (0, 56, 16), (2, 32, 16), (1, 56, 16), (0, 72, 16)];
        assert_eq!(grants[5..], idle);
        assert!(link.is_empty());
        // Without more credit a repetition.
        link.request(2, &mut flows[2], true);
        link.request(1, &mut flows[1], false);
        let again = link.grant(&P, &mut flows, now);
        assert_eq!(again, Some(Grant { flow: 2, number: 32, quanta: 0 }));
        assert_eq!(link.free_at - now, 4 * TURN);
        assert_eq!(link.grant(&P, &mut flows, now), None);
        // A complete flow gets none.
        flows[0].on_target(200);
        link.request(0, &mut flows[0], false);
        flows[0].complete();
        assert_eq!(link.grant(&P, &mut flows, now), None);
        link.request(0, &mut flows[0], true);
        assert!(link.is_empty());
    }

    /// Random flows, losses of packets, answers and Credit CPs, trims and delays, with and without credit in ACKs: all bytes arrive; a sender never
    /// has more credit than it was granted; and its credit is the first one and what was granted, less what it sent
    /// and what expired. Without losses the link grants at its rate, and no more than MaxWnd beyond what is needed.
    #[test]
    fn credit_is_conserved() {
        for seed in 0..300 {
            let mut random = Stream::new(seed, "credit", 0);
            let count = 1 + random.below(5) as usize;
            let loss = [0, random.below(30)][seed as usize % 2];
            let trim = random.below(30);
            let in_acks = seed % 3 == 0;
            let p = RcccParams { rate: 0.99, grant: 1 + random.below(40) as u32, in_acks };
            let max = u64::from(FULL) * (1 + random.below(20));
            let mut sources = vec![Source::new(max, FULL); count];
            let mut flows = vec![Destination::new(max); count];
            let mut link = CreditQueue::new(&p, 100_000_000_000);
            // Packets that wait, were sent, and have arrived; bytes sent, and credit that expired.
            let mut left: Vec<u64> = (0..count).map(|_| 1 + random.below(60)).collect();
            let all = left.clone();
            let (mut again, mut arrived) = (vec![0u64; count], vec![0u64; count]);
            let (mut used, mut expired) = (vec![0i64; count], vec![0i64; count]);
            let mut flight = vec![0u64; count];
            enum Wire {
                Packet(u32, bool),
                Answer(bool, Option<(u32, u64)>),
                Credit(u32),
            }
            let mut wire: Vec<(usize, Wire)> = Vec::new();
            let mut now: Time = 0;
            while arrived != all {
                now += 500;
                assert!(now < 2_000_000_000, "no progress with seed {seed}");
                for f in 0..count {
                    let s = &mut sources[f];
                    if s.may_send() && left[f] + again[f] > 0 {
                        s.spend(FULL);
                        used[f] += i64::from(FULL);
                        if again[f] > 0 {
                            again[f] -= 1
                        } else {
                            left[f] -= 1
                        }
                        flight[f] += 1;
                        let waits = [left[f], again[f]].map(|packets| packets * u64::from(FULL));
                        let target = s.target(waits[0], waits[1], u64::MAX);
                        let asks = !s.may_send();
                        if random.below(100) >= loss {
                            wire.push((f, Wire::Packet(target, asks)));
                        } else {
                            // Its timeout.
                            (flight[f], again[f]) = (flight[f] - 1, again[f] + 1);
                            let before = s.credit;
                            s.on_timeout(now);
                            expired[f] += before - s.credit;
                        }
                    } else if flight[f] == 0 && s.deadline(|n| 50_000 << n.min(9)).is_some_and(|at| at <= now)
                    {
                        let before = s.credit;
                        s.on_timeout(now);
                        expired[f] += before - s.credit;
                    }
                }
                if !wire.is_empty() && random.below(2) == 0 {
                    let at = random.below(wire.len().min(3) as u64);
                    let (f, what) = wire.remove(at as usize);
                    match what {
                        Wire::Packet(target, asks) => {
                            let cut = random.below(100) < trim;
                            flows[f].on_target(target);
                            arrived[f] += u64::from(!cut);
                            if arrived[f] == all[f] {
                                flows[f].complete();
                            }
                            link.request(f as u32, &mut flows[f], asks || cut);
                            // A NACK has none.
                            let d = &flows[f];
                            let credit = (p.in_acks && !cut).then(|| (d.number(), d.granted));
                            wire.push((f, Wire::Answer(cut, credit)));
                        }
                        Wire::Answer(cut, credit) => {
                            flight[f] -= 1;
                            again[f] += u64::from(cut);
                            let before = sources[f].credit;
                            sources[f].on_answer(now);
                            expired[f] += before - sources[f].credit;
                            if let Some((number, granted)) = credit {
                                let s = &mut sources[f];
                                let before = (s.credit, s.granted);
                                s.on_credit(number);
                                expired[f] += before.0 + ((s.granted - before.1) * QUANTUM) as i64 - s.credit;
                                // Whatever was lost or is late.
                                assert_eq!(s.granted, before.1.max(granted));
                            }
                        }
                        Wire::Credit(number) => {
                            let s = &mut sources[f];
                            let before = (s.credit, s.granted);
                            s.stop_speculating();
                            s.on_credit(number);
                            expired[f] += before.0 + ((s.granted - before.1) * QUANTUM) as i64 - s.credit;
                        }
                    }
                }
                if link.free_at <= now
                    && let Some(grant) = link.grant(&p, &mut flows, now)
                    && random.below(100) >= loss
                {
                    wire.push((grant.flow as usize, Wire::Credit(grant.number)));
                }
                for f in 0..count {
                    let (s, d) = (&sources[f], &flows[f]);
                    assert!(s.granted <= d.granted && s.credit <= max as i64);
                    let had = max as i64 + (s.granted * QUANTUM) as i64;
                    assert_eq!(had, used[f] + s.credit + expired[f], "seed {seed}, flow {f}");
                    assert!(d.granted <= d.target + d.max + u64::from(p.grant));
                }
            }
        }
    }
}
