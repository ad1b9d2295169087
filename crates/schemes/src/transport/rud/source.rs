//! The sender.

use super::{PROBES, Probes, RudParams};
use crate::transport::keys::LARGEST_WINDOW;
use crate::transport::seam::{Named, Numbers};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use xoff_kernel::time::Time;

/// Fewest packets out of order from which a loss is inferred.
const LEAST_OUT_OF_ORDER: u32 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Until the deadline.
    InFlight(Time),
    /// It is in `rtx`.
    Waits,
    Arrived,
}

/// A packet that was sent, from `una` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    state: State,
    /// Timeouts so far.
    retry: u8,
    /// NACKs so far.
    nacks: u8,
    asks: bool,
}

/// A sender's state beside its numbers.
#[derive(Clone, Debug)]
pub struct Source {
    /// cwnd in packets, at least 1.
    cwnd: u32,
    /// The window limits what is in flight. Not so where credit takes its place.
    windowed: bool,
    /// The sender has credit of its receiver, or needs none.
    credit: bool,
    in_flight: u32,
    /// Those of them that ask for an ACK.
    pub(super) asking: u32,
    /// Packets acknowledged in any order.
    acknowledged: u32,
    /// Those from `una` to `highest`.
    slots: VecDeque<Slot>,
    /// Packets to retransmit; those that have arrived meanwhile are skipped.
    rtx: VecDeque<u32>,
    /// Deadlines and packets without a retry, in their order. Those whose slot has another deadline are obsolete.
    deadlines: VecDeque<(Time, u32)>,
    /// The same for packets with retries, whose deadlines are farther away.
    retried: BinaryHeap<Reverse<(Time, u32)>>,
    /// A packet had too many retries.
    gave_up: bool,
    /// MaxWnd in packets: the largest window so far.
    most: u32,
    /// In recovery from an inferred loss, until `una` gets here.
    pub(super) recover: Option<u32>,
    /// Losses among the packets before this one have been inferred.
    inferred: u32,
    /// When the next probe leaves, if something is in flight.
    probe_due: Option<Time>,
    /// Probes so far, and when the last one left.
    probes: u32,
    probed: Time,
}

impl Source {
    pub fn new(cwnd: u32) -> Self {
        Self {
            cwnd,
            windowed: true,
            credit: true,
            in_flight: 0,
            asking: 0,
            acknowledged: 0,
            slots: VecDeque::new(),
            rtx: VecDeque::new(),
            deadlines: VecDeque::new(),
            retried: BinaryHeap::new(),
            gave_up: false,
            most: cwnd,
            recover: None,
            inferred: 0,
            probe_due: None,
            probes: 0,
            probed: 0,
        }
    }

    /// Credit takes the place of the window.
    pub fn without_window(self) -> Self {
        Self { windowed: false, ..self }
    }

    /// Whether a packet had too many retries.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The window in packets, if it limits what is in flight.
    pub fn window(&self) -> Option<u32> {
        self.windowed.then_some(self.cwnd)
    }

    pub fn acknowledged(&self) -> u32 {
        self.acknowledged
    }

    /// The congestion control has set the window to so many packets.
    pub fn set_window(&mut self, numbers: &mut Numbers, cwnd: u32) {
        // The first one is that of the congestion control, which begins with its largest.
        self.most = if numbers.highest == 0 { cwnd } else { self.most.max(cwnd) };
        self.cwnd = cwnd;
        self.choose(numbers);
    }

    /// Whether the sender has credit of its receiver. Without it no packet may leave.
    pub fn set_credit(&mut self, numbers: &mut Numbers, credit: bool) {
        self.credit = credit;
        self.choose(numbers);
    }

    /// Packets that wait to be retransmitted.
    pub fn waiting(&self, numbers: &Numbers) -> u32 {
        numbers.highest - self.acknowledged - self.in_flight
    }

    /// Records the packet that [`Numbers::send`] has just returned as sent. Returns whether it asks for an ACK.
    /// `credit` says whether the sender has credit left, or needs none.
    pub fn on_sent(
        &mut self,
        p: &RudParams,
        numbers: &mut Numbers,
        (psn, again): (u32, bool),
        credit: bool,
        now: Time,
    ) -> bool {
        self.credit = credit;
        if again {
            let first = self.rtx.pop_front();
            debug_assert_eq!(first, Some(psn));
        } else {
            self.slots.push_back(Slot { state: State::Waits, retry: 0, nacks: 0, asks: false });
        }
        let at = (psn - numbers.una) as usize;
        let retry = self.slots[at].retry;
        let deadline = now.saturating_add(p.timeout(retry));
        self.in_flight += 1;
        let filled = self.windowed && (self.in_flight >= self.cwnd || self.cwnd < p.ack_every);
        let asks = again || psn + 1 == numbers.total || filled || !credit;
        self.asking += u32::from(asks);
        self.slots[at] = Slot { state: State::InFlight(deadline), asks, ..self.slots[at] };
        match retry {
            0 => self.deadlines.push_back((deadline, psn)),
            _ => self.retried.push(Reverse((deadline, psn))),
        }
        self.choose(numbers);
        asks
    }

    /// Everything below `n` has arrived, and the packets of the bitmap. Returns whether `una` advanced.
    pub fn on_ack(&mut self, numbers: &mut Numbers, n: u32, named: Named) -> bool {
        let mut bits = named.bits;
        while bits != 0 {
            let psn = named.first + bits.trailing_zeros();
            bits &= bits - 1;
            if psn >= numbers.una && psn < numbers.highest {
                self.arrived((psn - numbers.una) as usize);
            }
        }
        let before = numbers.una;
        while numbers.una < n || self.slots.front().is_some_and(|slot| slot.state == State::Arrived) {
            self.arrived(0);
            self.slots.pop_front();
            numbers.una += 1;
        }
        self.choose(numbers);
        numbers.una > before
    }

    /// Acknowledged packets beyond the first missing one.
    fn out_of_order(&self, numbers: &Numbers) -> u32 {
        self.acknowledged - numbers.una
    }

    /// So many packets out of order are a loss.
    fn threshold(&self) -> u32 {
        let window = self.cwnd.saturating_add(self.cwnd / 2);
        window.min(self.most).max(LEAST_OUT_OF_ORDER)
    }

    /// After an ACK: infers losses from the packets out of order, and appends them to `rtx`. Returns how many.
    pub fn infer_losses(&mut self, numbers: &mut Numbers) -> u32 {
        if self.recover.is_some_and(|end| numbers.una >= end) {
            self.recover = None;
        }
        if self.recover.is_none() && self.rtx.is_empty() && self.out_of_order(numbers) >= self.threshold() {
            self.recover = Some(numbers.highest);
        }
        let mut lost = 0;
        if let Some(end) = self.recover {
            let end = end.min(numbers.una.saturating_add(self.cwnd));
            for psn in self.inferred.max(numbers.una)..end {
                lost += u32::from(self.lose(numbers.una, psn));
            }
            self.inferred = self.inferred.max(end);
        }
        self.choose(numbers);
        lost
    }

    /// An ACK has come: the next probe is due if no other one comes before.
    pub fn await_probe(&mut self, p: Probes, numbers: &Numbers, now: Time) {
        let wait = if numbers.highest == numbers.total {
            p.base.saturating_add(p.target)
        } else {
            p.base.saturating_mul(3)
        };
        self.probe_due = (!numbers.complete()).then(|| now.saturating_add(wait));
    }

    /// When the next probe leaves.
    pub fn probe_due(&self) -> Option<Time> {
        self.probe_due.filter(|_| self.in_flight > 0)
    }

    /// The number of the probe that leaves now, if one is due.
    pub fn take_probe(&mut self, p: Probes, now: Time) -> Option<u32> {
        self.probe_due().filter(|&due| due <= now)?;
        self.probes = (self.probes + 1) % PROBES;
        self.probed = now;
        self.probe_due = Some(now.saturating_add(p.base.saturating_mul(5)));
        Some(self.probes)
    }

    /// Probe `number` has been acknowledged, after [`Source::on_ack`]. If it is the last one and came back soon, the
    /// packets in flight that left before it are lost, and the sender recovers. Returns how many.
    pub fn on_probe_ack(&mut self, p: &RudParams, numbers: &mut Numbers, number: u32, now: Time) -> u32 {
        let Some(probes) = p.probes else { return 0 };
        if number != self.probes || now - self.probed >= probes.base.saturating_add(probes.target) {
            return 0;
        }
        let mut lost = 0;
        for psn in numbers.una..numbers.highest {
            let Slot { state, retry, .. } = self.slots[(psn - numbers.una) as usize];
            if let State::InFlight(deadline) = state
                && deadline.saturating_sub(p.timeout(retry)) < self.probed
            {
                lost += u32::from(self.lose(numbers.una, psn));
            }
        }
        if lost > 0 {
            self.recover = Some(numbers.highest);
            self.inferred = numbers.highest;
        }
        self.choose(numbers);
        lost
    }

    /// Packet `psn` was trimmed. Returns whether it was in flight. The sender may give up.
    pub fn on_nack(&mut self, p: &RudParams, numbers: &mut Numbers, psn: u32) -> bool {
        let known = psn >= numbers.una && psn < numbers.highest;
        let lost = known && self.lose(numbers.una, psn);
        if lost {
            let slot = &mut self.slots[(psn - numbers.una) as usize];
            slot.nacks = slot.nacks.saturating_add(1);
            self.gave_up |= p.nack_retries.is_some_and(|retries| slot.nacks > retries);
        }
        self.choose(numbers);
        lost
    }

    /// Appends the packets to `rtx` whose deadlines have passed. Returns how many. The sender may give up.
    pub fn on_time(&mut self, p: &RudParams, numbers: &mut Numbers, now: Time) -> u32 {
        let mut lost = 0;
        while let Some((deadline, psn)) = self.next_deadline(numbers).filter(|&(at, _)| at <= now) {
            debug_assert!(deadline <= now);
            self.lose(numbers.una, psn);
            let slot = &mut self.slots[(psn - numbers.una) as usize];
            slot.retry = slot.retry.saturating_add(1);
            self.gave_up |= p.retries.is_some_and(|retries| slot.retry > retries);
            lost += 1;
        }
        self.choose(numbers);
        lost
    }

    /// When [`Source::on_time`] is due.
    pub fn deadline(&mut self, numbers: &Numbers) -> Option<Time> {
        self.next_deadline(numbers).map(|(deadline, _)| deadline)
    }

    pub fn release(&mut self) {
        (self.slots, self.rtx) = Default::default();
        (self.deadlines, self.retried) = Default::default();
    }

    /// The first valid deadline, and its packet.
    fn next_deadline(&mut self, numbers: &Numbers) -> Option<(Time, u32)> {
        let slots = &self.slots;
        let valid = |&(deadline, psn): &(Time, u32)| {
            let slot = psn.checked_sub(numbers.una).and_then(|i| slots.get(i as usize));
            slot.is_some_and(|slot| slot.state == State::InFlight(deadline))
        };
        while self.deadlines.front().is_some_and(|entry| !valid(entry)) {
            self.deadlines.pop_front();
        }
        while self.retried.peek().is_some_and(|Reverse(entry)| !valid(entry)) {
            self.retried.pop();
        }
        let retried = self.retried.peek().map(|&Reverse(entry)| entry);
        self.deadlines.front().copied().into_iter().chain(retried).min()
    }

    fn arrived(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        if slot.state != State::Arrived {
            let in_flight = matches!(slot.state, State::InFlight(_));
            self.acknowledged += 1;
            self.in_flight -= u32::from(in_flight);
            self.asking -= u32::from(in_flight && slot.asks);
            slot.state = State::Arrived;
        }
    }

    fn lose(&mut self, una: u32, psn: u32) -> bool {
        let slot = &mut self.slots[(psn - una) as usize];
        let in_flight = matches!(slot.state, State::InFlight(_));
        if in_flight {
            slot.state = State::Waits;
            self.in_flight -= 1;
            self.asking -= u32::from(slot.asks);
            self.rtx.push_back(psn);
        }
        in_flight
    }

    /// Sets `next`, and a window that permits it or nothing.
    fn choose(&mut self, numbers: &mut Numbers) {
        let waits = |slots: &VecDeque<Slot>, psn: u32| {
            let slot = psn.checked_sub(numbers.una).and_then(|i| slots.get(i as usize));
            slot.is_some_and(|slot| slot.state == State::Waits)
        };
        while self.rtx.front().is_some_and(|&psn| !waits(&self.slots, psn)) {
            self.rtx.pop_front();
        }
        let again = self.rtx.front().copied();
        let fits = again.is_some() || numbers.highest - numbers.una < LARGEST_WINDOW - 1;
        numbers.next = again.unwrap_or(numbers.highest);
        let recovers = self.recover.is_some() && again.is_some();
        let room = !self.windowed || self.in_flight < self.cwnd || self.asking == 0 || recovers;
        numbers.window = if room && self.credit && fits { u32::MAX } else { 0 };
    }
}
