//! TCP NewReno: a window that losses halve; only ACKs report losses.
//!
//! After RFC 5681 (slow start, congestion avoidance, fast retransmit), RFC 6582 (NewReno's fast recovery),
//! RFC 3042 (limited transmit), RFC 6298 (the retransmission timeout) and RFC 6928 (the initial window). No
//! SACK, no timestamps, and no ECN except that of DCTCP: see [`super::dctcp`].
//!
//! Segments are packets `0 .. total` of SMSS bytes each; the last one may be shorter and counts as a full
//! one. `una` is the first one not acknowledged, `nxt` the next one in order to send (SND.NXT), `highest` one
//! beyond the highest ever sent. cwnd and ssthresh are bytes. FlightSize is `nxt − una` segments: packets
//! beyond `nxt` at a timeout count as lost.
//!
//! ```text
//!   window          ⌊cwnd / SMSS⌋ segments, at most the receive window: send nxt while nxt − una
//!                   is less. In recovery or after a timeout the repeat goes first
//!
//!   OPEN (cwnd < ssthresh is slow start, else congestion avoidance)
//!   ACK(n > una)    una = n, nxt = max(nxt, n); slow start: cwnd += min(news, SMSS);
//!                   congestion avoidance: cwnd += SMSS for each cwnd bytes of news
//!   1st, 2nd        limited transmit: the window is one and two segments larger
//!   duplicate
//!   3rd duplicate   if n > recover (or nothing was recovered yet): ssthresh = max(FlightSize / 2,
//!                   2 SMSS), without what limited transmit sent; recover = highest; repeat una;
//!                   cwnd = ssthresh + 3 SMSS; → RECOVERY
//!
//!   RECOVERY
//!   duplicate       cwnd += SMSS
//!   una < n         partial ACK: una = n, repeat una; cwnd −= news, += SMSS; the first one
//!     < recover     restarts the timer, the others do not (the "impatient" variant)
//!   n ≥ recover     full ACK: una = n; cwnd = min(ssthresh, max(FlightSize, SMSS) + SMSS); → OPEN
//!
//!   both
//!   timeout         ssthresh as above, unless una timed out before; cwnd = SMSS; recover = highest;
//!                   nxt = una; RTO = min(2 RTO, most); → OPEN
//! ```
//!
//! A duplicate is an ACK of `una` while something is outstanding. `recover` and the acknowledgement are both
//! one beyond the last packet meant, so that `n > recover` is RFC 6582's "covers more than recover"; that
//! document's remedies for a loss directly after `recover` (§4) are left out, and such a loss takes a
//! timeout.
//!
//! Timer (RFC 6298 §5): started by a packet sent while it is off, restarted by an ACK with news (but see
//! above), off when nothing is outstanding. A timeout turns it off, and the repeat starts it: a repeat that a
//! pause keeps in the host does not time out. The RTO is SRTT + max(G, 4 RTTVAR) within its bounds; it stays
//! doubled until a round trip has been measured anew. One segment is timed per round trip, and none over a
//! repeat (Karn).
//!
//! The connection is open from the start, without a handshake. A flow always has data, hence no restart after
//! idling, and the receiver consumes packets in order at once: the advertised window is constant.
//!
//! Receiver: it keeps packets that arrive early, and sends ACK(the next one in order) for every packet.

use super::dctcp::{DctcpParams, Marks};
use crate::transport::seam::Numbers;
use std::collections::VecDeque;
use xoff_kernel::time::{MICROSECOND, Time};

/// G of RFC 6298: how exactly senders see time.
const GRANULARITY: Time = MICROSECOND;
/// So many duplicates are a loss (RFC 5681 §3.2).
const DUPLICATES: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRenoParams {
    /// SMSS: payload bytes of a full packet, at least 1.
    pub smss: u32,
    /// Initial window in packets, at least 1.
    pub initial_window: u32,
    /// Receive window in packets, at least 1; `u32::MAX` is no bound.
    pub receive_window: u32,
    /// RTO before the first measurement, in picoseconds.
    pub initial_rto: Time,
    /// Least RTO that a measurement gives, in picoseconds.
    pub min_rto: Time,
    /// Largest RTO, in picoseconds; no less than the other two.
    pub max_rto: Time,
    /// Marks count, as in DCTCP.
    pub dctcp: Option<DctcpParams>,
}

/// Round trips and the timeout that follows from them (RFC 6298 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct RoundTrips {
    /// SRTT, once there is a measurement.
    smoothed: Option<Time>,
    variation: Time,
    /// RTO, including the backoff of timeouts.
    rto: Time,
    /// The segment that is timed, and when it was sent.
    timed: Option<(u32, Time)>,
}

impl RoundTrips {
    fn measured(&mut self, params: &NewRenoParams, trip: Time) {
        let (smoothed, variation) = match self.smoothed {
            None => (trip, trip / 2),
            Some(old) => ((7 * old + trip) / 8, (3 * self.variation + old.abs_diff(trip)) / 4),
        };
        (self.smoothed, self.variation) = (Some(smoothed), variation);
        let rto = smoothed.saturating_add(GRANULARITY.max(self.variation.saturating_mul(4)));
        self.rto = rto.clamp(params.min_rto, params.max_rto);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// Congestion window in bytes, at least SMSS.
    cwnd: u64,
    /// Slow start ends here, in bytes; `u64::MAX` before the first loss.
    ssthresh: u64,
    /// In congestion avoidance: bytes acknowledged since cwnd grew.
    acknowledged: u64,
    nxt: u32,
    /// Duplicate ACKs in a row, outside of recovery.
    duplicates: u32,
    /// Packets that limited transmit has let go since the first of them.
    limited: u32,
    /// One beyond the highest packet sent when recovery was last entered or the timer last went off.
    recover: Option<u32>,
    recovering: bool,
    /// In recovery: a partial ACK has come.
    partial: bool,
    repeat: bool,
    /// `una` at the last timeout.
    timed_out: Option<u32>,
    trips: RoundTrips,
    marks: Marks,
    /// When the timer goes off; `Time::MAX` while it is off.
    deadline: Time,
}

impl Congestion {
    /// A connection that has sent nothing. Its numbers begin with [`first_window`].
    pub fn new(params: &NewRenoParams) -> Self {
        Self {
            cwnd: u64::from(params.initial_window) * u64::from(params.smss),
            ssthresh: u64::MAX,
            acknowledged: 0,
            nxt: 0,
            duplicates: 0,
            limited: 0,
            recover: None,
            recovering: false,
            partial: false,
            repeat: false,
            timed_out: None,
            trips: RoundTrips { smoothed: None, variation: 0, rto: params.initial_rto, timed: None },
            marks: Marks::new(),
            deadline: Time::MAX,
        }
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Records that the packet of the last [`Numbers::send`] was sent, at `now`.
    pub fn on_sent(
        &mut self,
        params: &NewRenoParams,
        numbers: &mut Numbers,
        now: Time,
        psn: u32,
        again: bool,
    ) {
        if again {
            self.trips.timed = None;
        } else {
            self.trips.timed.get_or_insert((psn, now));
            if self.extra(numbers) > 0 && u64::from(psn - numbers.una) >= self.segments(params) {
                self.limited += 1;
            }
        }
        if self.repeat {
            self.repeat = false;
            numbers.next = self.nxt;
        } else {
            self.nxt = numbers.next;
        }
        if self.deadline == Time::MAX {
            self.deadline = now.saturating_add(self.trips.rto);
        }
    }

    /// Everything below `n` has arrived; the data packet may be `marked`. Returns whether that is new.
    pub fn on_ack(
        &mut self,
        params: &NewRenoParams,
        numbers: &mut Numbers,
        now: Time,
        n: u32,
        marked: bool,
    ) -> bool {
        let news = n > numbers.una;
        let reduced = self.weigh(params, numbers, n, marked);
        if news {
            self.advance(params, numbers, now, n, !reduced);
        } else if n == numbers.una && numbers.highest > n {
            self.duplicate(params, numbers);
        }
        self.choose(params, numbers);
        news
    }

    /// The timer has expired. Returns whether anything was outstanding.
    pub fn on_timeout(&mut self, params: &NewRenoParams, numbers: &mut Numbers) -> bool {
        self.deadline = Time::MAX;
        if numbers.una == numbers.highest {
            return false;
        }
        if self.timed_out != Some(numbers.una) {
            self.timed_out = Some(numbers.una);
            self.ssthresh = self.half(params, numbers);
        }
        self.cwnd = u64::from(params.smss);
        self.acknowledged = 0;
        (self.duplicates, self.limited) = (0, 0);
        self.recover = Some(numbers.highest);
        self.marks.spare(numbers.highest);
        (self.recovering, self.repeat) = (false, false);
        self.nxt = numbers.una;
        self.trips.timed = None;
        self.trips.rto = self.trips.rto.saturating_mul(2).min(params.max_rto);
        self.choose(params, numbers);
        true
    }

    /// DCTCP evaluates an ACK of everything below `n`. Returns whether it has reduced the window.
    fn weigh(&mut self, params: &NewRenoParams, numbers: &Numbers, n: u32, marked: bool) -> bool {
        let Some(dctcp) = &params.dctcp else { return false };
        let una = numbers.una.max(n);
        let nxt = self.nxt.max(una);
        if !self.marks.on_ack(dctcp, una, nxt, marked) {
            return false;
        }
        let smss = u64::from(params.smss);
        // A window that is used up is cwnd, but for a part of a segment.
        let flight = u64::from(nxt - numbers.una);
        let window = self.cwnd.min((flight + 1) * smss);
        self.ssthresh = self.marks.reduced(window).max(2 * smss);
        self.cwnd = self.cwnd.min(self.ssthresh);
        self.acknowledged = 0;
        true
    }

    /// Everything below `n` is acknowledged now. Outside of recovery the window `grows` by it.
    fn advance(&mut self, params: &NewRenoParams, numbers: &mut Numbers, now: Time, n: u32, grows: bool) {
        let smss = u64::from(params.smss);
        let news = u64::from(n - numbers.una) * smss;
        numbers.una = n;
        self.nxt = self.nxt.max(n);
        if let Some((psn, sent)) = self.trips.timed
            && psn < n
        {
            self.trips.timed = None;
            self.trips.measured(params, now - sent);
        }
        let mut restarts = true;
        if self.recovering && self.recover.is_some_and(|recover| n < recover) {
            // A segment that has left the network lets another one in.
            self.cwnd = (self.cwnd.saturating_sub(news) + smss).max(smss);
            self.repeat = true;
            restarts = !std::mem::replace(&mut self.partial, true);
        } else if self.recovering {
            let flight = u64::from(self.nxt - n) * smss;
            self.cwnd = self.ssthresh.min(flight.max(smss) + smss);
            (self.recovering, self.repeat) = (false, false);
        } else if grows {
            self.grow(smss, news);
        }
        (self.duplicates, self.limited) = (0, 0);
        if n == numbers.highest {
            self.deadline = Time::MAX;
        } else if restarts {
            self.deadline = now.saturating_add(self.trips.rto);
        }
    }

    /// `news` bytes are acknowledged, outside of recovery.
    fn grow(&mut self, smss: u64, news: u64) {
        if self.cwnd < self.ssthresh {
            self.cwnd += smss;
            return;
        }
        self.acknowledged += news;
        if self.acknowledged >= self.cwnd {
            self.acknowledged -= self.cwnd;
            self.cwnd += smss;
        }
    }

    fn duplicate(&mut self, params: &NewRenoParams, numbers: &Numbers) {
        if self.recovering {
            self.cwnd += u64::from(params.smss);
            return;
        }
        self.duplicates = self.duplicates.saturating_add(1);
        if self.duplicates == DUPLICATES && self.beyond(numbers) {
            self.ssthresh = self.half(params, numbers);
            self.cwnd = self.ssthresh + u64::from(DUPLICATES * params.smss);
            self.acknowledged = 0;
            self.recover = Some(numbers.highest);
            self.marks.spare(numbers.highest);
            (self.recovering, self.partial, self.repeat) = (true, false, true);
        }
    }

    /// Whether the acknowledgement covers more than `recover`.
    fn beyond(&self, numbers: &Numbers) -> bool {
        self.recover.is_none_or(|recover| numbers.una > recover)
    }

    /// Half of the bytes in flight, at least two segments (RFC 5681, equation 4).
    fn half(&self, params: &NewRenoParams, numbers: &Numbers) -> u64 {
        let smss = u64::from(params.smss);
        let flight = u64::from((self.nxt - numbers.una).saturating_sub(self.limited)) * smss;
        (flight / 2).max(2 * smss)
    }

    fn segments(&self, params: &NewRenoParams) -> u64 {
        self.cwnd / u64::from(params.smss)
    }

    /// Packets beyond cwnd that limited transmit allows: new ones.
    fn extra(&self, numbers: &Numbers) -> u32 {
        let allowed = !self.recovering && self.duplicates < DUPLICATES && self.beyond(numbers);
        if allowed { self.duplicates } else { 0 }
    }

    /// Sets `next` and `window`.
    fn choose(&self, params: &NewRenoParams, numbers: &mut Numbers) {
        numbers.next = if self.repeat { numbers.una } else { self.nxt };
        let window = self.segments(params) + u64::from(self.extra(numbers));
        numbers.window = u32::try_from(window).unwrap_or(u32::MAX).min(params.receive_window);
    }
}

/// The window that a connection's numbers begin with, in packets.
pub fn first_window(params: &NewRenoParams) -> u32 {
    params.initial_window.min(params.receive_window)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receiver {
    /// Next packet in order, the number of every ACK.
    pub expected: u32,
    /// Packets that arrived early: first packets and ends of runs, in order, with gaps between them.
    early: VecDeque<(u32, u32)>,
}

impl Receiver {
    pub fn has_arrived(&self, psn: u32) -> bool {
        let at = self.early.partition_point(|&(_, end)| end <= psn);
        psn < self.expected || self.early.get(at).is_some_and(|&(first, _)| first <= psn)
    }

    /// Returns whether packet `psn` had arrived before.
    pub fn on_data(&mut self, psn: u32) -> bool {
        if psn < self.expected {
            return true;
        }
        if psn == self.expected {
            self.expected += 1;
            if let Some(&(first, end)) = self.early.front()
                && first == self.expected
            {
                self.early.pop_front();
                self.expected = end;
            }
            return false;
        }
        // The first run that does not end before this packet.
        let at = self.early.partition_point(|&(_, end)| end < psn);
        let Some(run) = self.early.get_mut(at) else {
            self.early.push_back((psn, psn + 1));
            return false;
        };
        if (run.0..run.1).contains(&psn) {
            return true;
        }
        if run.1 == psn {
            run.1 += 1;
            if let Some(&(first, end)) = self.early.get(at + 1)
                && first == psn + 1
            {
                self.early[at].1 = end;
                self.early.remove(at + 1);
            }
        } else if run.0 == psn + 1 {
            run.0 = psn;
        } else {
            self.early.insert(at, (psn, psn + 1));
        }
        false
    }
}

#[cfg(test)]
mod tests;
