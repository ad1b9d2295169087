//! The grants of the downstream port of a long link, slot by slot: Algorithm 1.
//!
//! At the end of slot n of length T, with the link's rate R_s, its BDP Δ = R_s · RTT and H reserved bytes:
//!
//! ```text
//! L   bytes stored that came through this port           (line 3)
//! r   bytes received in the slot                         (line 4)
//! c = clamp(H − L − F, 0, R_s T)                         (line 10)
//! ĉ = max(0, c − max(0, L + F − H)) in every k-th slot   (lines 12–13)
//! p = T − ĉ / R_s, in quanta, rounded up                 (line 14)
//! F ← bytes granted for the last RTT + T              (line 15, section IV-A)
//! ```
//!
//! *Readings.* A negative c cannot be enforced (`bifrost.c-clamp`), and a negative excess is none
//! (`bifrost.leak-sign`). c is computed with the F of the slot before, as printed: its constants are those of
//! Theorem 1 (`bifrost.order-of-L-and-F`). Where RTT is no multiple of T, the oldest grant counts as far as
//! its bytes can still arrive. With these, line 13 never deducts anything: where L + F exceeds H, c is 0
//! already. Line 10 repairs a leak by itself when the leaked bytes are in L. So k has one effect, the room of k
//! largest packets beyond H. [`Repair::Printed`] is line 13 without the guard: where L + F is below H,
//! ĉ = min(R_s T, c + H − L − F), up to twice the grant c that F counts.
//!
//! *F.* In section IV-A the downstream port keeps the history of its grants; line 15 has F ← F − r + c,
//! bounded by Δ + R_s T ([`History::Recurrence`]), which subtracts bytes that were sent without a grant, and
//! keeps expired grants until its bound removes them.
//!
//! *Packets.* Bytes are granted and packets are sent. A window of w that opens for part of a slot lets
//! packets *begin*: up to R_s w and one largest packet. And its end is the arrival of the next frame, which
//! may wait for a packet on the wire, and jitters. The *margin* is the sum of both: it is taken off the
//! window of every slot that is not granted whole, so that no window sends more than its grant; grants are
//! whole packets; and a grant within the margin is none. A slot that is granted whole ends with no pause, so
//! bytes in flight before the next frame count with the first slot that is not. Then F is an upper bound to
//! the byte, and L + F ≤ H + margin. Section IV-D has a frame that is late leak at most one packet, which
//! line 13 repairs; but what leaks is not seen before it arrives: without the margin every slot of a round
//! trip can leak one (`bifrost.full-pause-gap` says this only about pauses of a whole slot).

pub use super::keys::{History, Repair};
use std::collections::VecDeque;
use xoff_kernel::time::{SECOND, Time};
use xoff_wire::pfc::QUANTUM_BITS;

/// The parameters of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotParams {
    /// R_s, in bits per second.
    pub rate: u64,
    pub slot: Time,
    /// From the end of a slot until the first packet that its frame lets begin can have
    /// arrived at the latest, in picoseconds: RTT with all that adds to it.
    pub round_trip: Time,
    /// H, in bytes.
    pub buffer: u64,
    /// k: leaks are looked for in every so many slots, at least 1.
    pub repair_every: u32,
    /// Grants are rounded down to multiples of this, in bytes: the largest packet, or 1.
    pub unit: u64,
    /// Bytes that a window may send beyond its length: the packet that has just begun, and the bytes sent
    /// while the next frame is late.
    pub margin: u64,
    /// Grants are bytes that are counted where they are sent, rather than windows: the margin belongs only to
    /// slots that are granted whole.
    pub counted: bool,
    pub history: History,
    pub repair: Repair,
}

/// The feedback at the end of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// c: bytes that F counts.
    pub granted: u64,
    /// ĉ: bytes that may be sent.
    pub let_go: u64,
    /// Everything that passes in the slot may be sent: no pause, no count.
    pub whole: bool,
}

/// The downstream half of one port and lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    params: SlotParams,
    /// R_s T, in bytes: the most that is granted.
    most: u64,
    /// How much of the oldest grant can still arrive, in bytes.
    rest: u64,
    /// Grants, the latest one last: as many as RTT + T has slots, the oldest in part.
    grants: VecDeque<u64>,
    /// Their sum but for the oldest one.
    sum: u64,
    /// F by line 15.
    outstanding: u64,
    /// n: slots that have ended.
    ended: u64,
    /// The latest slot was granted whole: nothing has been said that ends it.
    open: bool,
}

/// Bytes that pass at `rate` (bits per second) in `time` (picoseconds), rounded down.
pub fn bytes_in(rate: u64, time: Time) -> u64 {
    (u128::from(rate) * u128::from(time) / (8 * u128::from(SECOND))) as u64
}

/// Quanta of 512 bit times in which `bytes` pass at line rate, rounded up.
pub fn quanta(bytes: u64) -> u64 {
    (8 * bytes).div_ceil(QUANTUM_BITS)
}

impl SlotParams {
    /// R_s T, in bytes.
    pub fn of_slot(&self) -> u64 {
        bytes_in(self.rate, self.slot)
    }

    /// Δ, in bytes.
    pub fn bdp(&self) -> u64 {
        bytes_in(self.rate, self.round_trip)
    }

    /// How long the upstream port is stopped, as the bytes of line rate that would pass
    /// meanwhile: R_s p (line 14), with the margin. 0 for a slot that is granted whole.
    pub fn stopped(&self, grant: Grant) -> u64 {
        if grant.whole { 0 } else { self.of_slot() - grant.let_go + self.margin }
    }

    /// The least H with which Theorem 1 holds: Δ + 2 R_s T (section IV-C.1), plus rounding and the margin.
    pub fn least_buffer(&self) -> u64 {
        self.bdp() + 2 * self.of_slot() + self.margin + self.unit - 1
    }
}

impl Slots {
    /// Before the first slot the upstream port is free to send (`bifrost.F-initial`).
    pub fn new(params: SlotParams) -> Self {
        Self::after(params, params.of_slot(), true)
    }

    /// Nothing has been granted that could still arrive: the link comes up.
    pub fn silent(params: SlotParams) -> Self {
        Self::after(params, 0, false)
    }

    fn after(params: SlotParams, each: u64, open: bool) -> Self {
        let whole = (params.round_trip / params.slot) as usize + 1;
        Self {
            params,
            most: params.of_slot(),
            rest: bytes_in(params.rate, params.round_trip % params.slot),
            grants: std::iter::repeat_n(each, whole + 1).collect(),
            sum: each * whole as u64,
            outstanding: if open { params.bdp() + params.of_slot() } else { 0 },
            ended: 0,
            open,
        }
    }

    pub fn params(&self) -> &SlotParams {
        &self.params
    }

    /// F: most bytes that can still arrive in the next RTT + T.
    pub fn virtual_incoming(&self) -> u64 {
        match self.params.history {
            History::Recurrence => self.outstanding,
            History::Grants => self.sum + self.grants.front().copied().unwrap_or(0).min(self.rest),
        }
    }

    /// A slot ends in which `received` bytes came, and `stored` are here.
    pub fn ends(&mut self, stored: u64, received: u64) -> Grant {
        let (params, before) = (&self.params, self.virtual_incoming());
        let room = params.buffer.saturating_sub(stored + before);
        let mut grant = Grant { granted: self.most, let_go: self.most, whole: true };
        if room < self.most {
            // The open window goes on until the frame is there.
            let overrun = if self.open { params.margin } else { 0 };
            let whole = room.saturating_sub(overrun) / params.unit * params.unit;
            let whole = if params.counted || whole > params.margin { whole } else { 0 };
            grant = Grant { granted: whole + overrun, let_go: whole, whole: false };
        }
        self.ended += 1;
        if params.repair == Repair::Printed && self.ended.is_multiple_of(params.repair_every.into()) {
            // c − (L + F − H): where L + F exceeds H, c is 0.
            let raised = (grant.let_go + room).min(self.most);
            grant.whole = raised == self.most;
            if !grant.whole {
                let packets = raised / params.unit * params.unit;
                grant.let_go = if params.counted || packets > params.margin { packets } else { 0 };
            } else {
                grant.let_go = raised;
            }
        }
        self.open = grant.whole;
        self.outstanding =
            (self.outstanding + grant.granted).saturating_sub(received).min(params.bdp() + params.of_slot());
        self.grants.pop_front();
        self.sum = self.sum + grant.granted - self.grants.front().copied().unwrap_or(0);
        self.grants.push_back(grant.granted);
        grant
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A byte is a tick of the upstream port's wire at line rate.
    #[derive(Clone, Copy, Debug)]
    enum Drain {
        Full,
        None,
        /// So many of a thousand bytes.
        Share(u64),
        /// On for so many slots, then off as long.
        OnOff(u64),
        /// Off until the buffer is nearly full, on until it is empty.
        Adversarial,
    }

    /// A link of one byte per tick: a byte let go `d` ticks after a frame was sent arrives `2d` ticks after.
    /// Returns (least L + F, most L + F, most L, idle ticks of a drain that had to wait for bytes that were
    /// upstream).
    struct Line {
        slots: Slots,
        d: u64,
        t: u64,
    }

    impl Line {
        fn new(d: u64, t: u64, more: u64, history: History) -> Self {
            // 8 bit per picosecond: a byte per picosecond.
            let params = SlotParams {
                rate: 8 * SECOND,
                slot: t,
                round_trip: 2 * d,
                buffer: 2 * d + 2 * t + more,
                repair_every: 1,
                unit: 1,
                margin: 0,
                counted: false,
                history,
                repair: Repair::Excess,
            };
            Self { slots: Slots::new(params), d, t }
        }

        fn run(
            mut self,
            slots: u64,
            drain: Drain,
            demand: impl Fn(u64) -> bool,
        ) -> Result<(), TestCaseError> {
            let (d, t, buffer) = (self.d, self.t, self.slots.params.buffer);
            let bound = 2 * d + t;
            // By tick of the upstream port: it may send.
            let mut open: VecDeque<bool> = std::iter::repeat_n(true, (d + t) as usize).collect();
            let mut wire: VecDeque<bool> = std::iter::repeat_n(false, d as usize).collect();
            let (mut stored, mut received, mut filling) = (0u64, 0u64, true);
            for tick in 0..slots * t {
                // The upstream port.
                let may = open.pop_front().expect("slots follow one another");
                wire.push_back(may && demand(tick));
                // The downstream one.
                if wire.pop_front() == Some(true) {
                    stored += 1;
                    received += 1;
                }
                prop_assert!(stored <= buffer, "{stored} of {buffer} at {tick}");
                let drains = match drain {
                    Drain::Full => true,
                    Drain::None => false,
                    Drain::Share(share) => (tick * share) / 1000 != ((tick + 1) * share) / 1000,
                    Drain::OnOff(slots) => (tick / (slots * t)).is_multiple_of(2),
                    Drain::Adversarial => {
                        filling = if filling { stored + t / 2 < buffer } else { stored == 0 };
                        !filling
                    }
                };
                stored -= u64::from(drains && stored > 0);
                if (tick + 1).is_multiple_of(t) {
                    let grant = self.slots.ends(stored, received);
                    received = 0;
                    let stopped = self.slots.params.stopped(grant);
                    prop_assert_eq!(grant.granted, t - stopped, "where bytes can be cut nothing leaks");
                    // Paused first, then let go.
                    open.extend((0..t).map(|i| i >= stopped));
                    let sum = stored + self.slots.virtual_incoming();
                    prop_assert!(sum <= buffer, "L + F = {sum} > H = {buffer} at {tick}");
                    prop_assert!(sum >= bound, "L + F = {sum} < Δ + RsT = {bound} at {tick}");
                    prop_assert!(self.slots.virtual_incoming() <= bound);
                }
            }
            Ok(())
        }
    }

    /// A window of the margin lets nothing go: the packet that has just begun takes it.
    #[test]
    fn a_window_is_longer_than_its_margin_or_closed() {
        let mut seen = std::collections::BTreeSet::new();
        for stored in 0..=2_000 {
            let mut line = Line::new(400, 100, 0, History::Grants);
            line.slots.params.margin = 20;
            let grant = line.slots.ends(stored, 0);
            assert!(grant.whole || grant.let_go == 0 || grant.let_go > 20, "{stored}: {grant:?}");
            seen.insert(grant.let_go);
        }
        assert!(seen.contains(&0) && seen.contains(&21) && seen.contains(&100), "{seen:?}");
    }

    /// RTT of 800, T of 100 and H of 1000: F is 900 at first. With L = 60 are H − L − F = 40 = c, and as printed
    /// ĉ = 40 − (960 − 1000) = 80 in every second slot; F counts c. Then F = 840, 940 with the bytes of the next
    /// slot, and so on.
    #[test]
    fn the_check_as_printed_grants_the_room_twice() {
        let mut line = Line::new(400, 100, 0, History::Recurrence);
        line.slots.params =
            SlotParams { buffer: 1_000, repair: Repair::Printed, repair_every: 2, ..*line.slots.params() };
        let mut ends = |stored, received| {
            let grant = line.slots.ends(stored, received);
            (grant.granted, grant.let_go, line.slots.params.stopped(grant), line.slots.virtual_incoming())
        };
        // n = 1: no check.
        assert_eq!(ends(60, 100), (40, 40, 60, 840));
        // n = 2: H − L − F = 1000 − 130 − 840 = 30.
        assert_eq!(ends(130, 100), (30, 60, 40, 770));
        assert_eq!(ends(200, 100), (30, 30, 70, 700));
        // n = 4: 1000 − 220 − 700 = 80, and 80 + 80 exceed a slot: no pause, but F counts 80.
        assert_eq!(ends(220, 100), (80, 100, 0, 680));
        assert_eq!(ends(400, 100), (0, 0, 100, 580));
        // n = 6: L + F = 500 + 580 exceeds H: nothing is granted.
        assert_eq!(ends(500, 100), (0, 0, 100, 480));
    }

    fn drain() -> impl Strategy<Value = Drain> {
        prop_oneof![
            Just(Drain::Full),
            Just(Drain::None),
            Just(Drain::Adversarial),
            (0u64..1000).prop_map(Drain::Share),
            (1u64..40).prop_map(Drain::OnOff),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Theorem 1, to the byte: Δ + R_s T ≤ L + F ≤ H after every slot.
        #[test]
        fn theorem_1_holds_for_sources_that_always_send(
            (d, t) in (1u64..400, 1u64..60), more in 0u64..200, drain in drain(),
        ) {
            for history in [History::Grants, History::Recurrence] {
                Line::new(d, t, more, history).run(120, drain, |_| true)?;
            }
        }

        #[test]
        fn theorem_1_holds_for_sources_that_pause(
            (d, t) in (1u64..400, 1u64..60), more in 0u64..200, drain in drain(),
            (on, off) in (1u64..300, 1u64..300),
        ) {
            Line::new(d, t, more, History::Recurrence).run(120, drain, |tick| tick % (on + off) < on)?;
        }
    }
}
