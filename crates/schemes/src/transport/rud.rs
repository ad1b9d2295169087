//! RUD, the reliable unordered delivery of Ultra Ethernet (specification 1.0.x, section 3.5) for one message: each
//! packet has its place at the receiver, so a packet that is overtaken costs nothing. Congestion control gives the
//! window; see [`super::super::congestion_control::nscc`].
//!
//! Sender, over packets `0 .. total`: `inflight` counts the packets that were sent and have no answer yet, `asking`
//! those of them that ask for an ACK. `rtx` has the packets to retransmit, in the order in which they were found.
//!
//! ```text
//!   inflight < cwnd    send the first packet of rtx, or else the next new packet; inflight += 1
//!   or asking = 0      (under RCCC instead: credit > 0; under NSCC and RCCC: both).
//!                      AR (the packet asks for an ACK): it is retransmitted, or the last one, or fills
//!                      the window, or cwnd < ack_every (under RCCC instead: uses up the credit; under NSCC and
//!                      RCCC: one of them)
//!   ACK(n, s, bits)    everything below n has arrived, and s + i for each bit i that is set:
//!                      inflight −= 1 for each that was in flight
//!   NACK(p)            p was trimmed: inflight −= 1, append p to rtx, nacks += 1.
//!                      nacks > nack_retries: give up
//!   RTO                no answer for RTO_INIT·2^retry after p was sent: inflight −= 1, append p to rtx,
//!                      retry += 1.  retry > retries: give up
//!   complete           una = total
//! ```
//!
//! With loss inference, `ooo` counts the acknowledged packets beyond `una`, and MaxWnd is the largest window so far:
//!
//! ```text
//!   after each ACK     una ≥ recover: recovery ends
//!                      no recovery, rtx empty, ooo ≥ max(min(1.5·cwnd, MaxWnd), 5):
//!                      recovery begins, recover = highest
//!                      in recovery: each packet in flight from max(una, inferred) to
//!                      min(recover, una + cwnd) is lost: inflight −= 1, append it to rtx.
//!                      inferred = the end of these packets
//!   in recovery        retransmissions leave whatever the window is
//! ```
//!
//! With probes, where `base` is the round trip without load and `target` the delay of queues that counts as none:
//!
//! ```text
//!   after each ACK     the next probe is due after base + target if all has been sent, else after 3·base
//!   probe due          and something is in flight:  PROBE(k), which no window stops, k += 1;
//!                      the next one is due after 5·base
//!   PROBE(k)           the receiver: ACK at once, with k
//!   ACK of the last probe, less than base + target after it has left:
//!                      each packet in flight that left before it is lost: inflight −= 1, append it to
//!                      rtx.  If there are any, recovery begins, recover = inferred = highest
//! ```
//!
//! These are the rules of uet-htsim (`runSleek`, `sendProbe`), with two differences. There an ACK of a probe shows
//! the loss of a window of packets, whenever they left. And ACKs there have a field with the number of packets out of
//! order (ooo_count); here the sender counts those that the bitmaps have named: fewer, if ACKs were lost. Without
//! probes a retransmission that is lost again waits for its timeout. Under RCCC (ours) one packet may leave without
//! credit after an inferred loss, and tells the receiver what the sender wants.
//!
//! Receiver: `expected` is the next packet in order, `count` the packets since the last ACK.
//!
//! ```text
//!   packet p           keep it; count += 1. ACK at once if it is marked, asks for an ACK, has arrived
//!                      before or is the first one; if count = ack_every; and if a packet has asked
//!                      for an ACK since the last time without a gap, and no gap is left
//!   ACK                (expected, s, bits): s = max(p − 63, expected + 1), bits for s .. s + 64
//!   header p           NACK(p); ACK if p has arrived before
//! ```
//!
//! A gap causes no NACK. The credits of receivers are in [`super::super::congestion_control::rccc`]. The text of the specification was not at hand. The rules
//! come from public notes on it, and where these are silent (AR, the ACKs, `s`) from the simulator uet-htsim. A
//! retransmission after a NACK does not count as a retry: the network has answered. A sender that gives up (the
//! specification closes the context with an error after Max_RTO_Retx_Cnt retries of one packet, and after
//! Max_NACK_Retx_Cnt retransmissions because of NACKs) sends nothing more.
//!
//! `asking = 0` is a rule of ours. If the window shrinks after the last packet left, fewer packets than `ack_every` may
//! be in flight, and none of them asks for an ACK. One packet beyond the window then does, instead of a timeout.

use super::go_back_n::Sender as Numbers;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use xoff_kernel::time::{SECOND, Time};

/// The first packet of a bitmap is less than this after the packet that the ACK expects.
pub const LARGEST_SPAN: u32 = 1 << 24;

/// Fewest packets out of order from which a loss is inferred.
const LEAST_OUT_OF_ORDER: u32 = 5;

/// Largest RTO.
const LONGEST: Time = 8 * SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RudParams {
    /// RTO_INIT, in picoseconds.
    pub rto: Time,
    /// Windows below so many packets make each packet ask for an ACK.
    pub ack_every: u32,
    /// Max_RTO_Retx_Cnt: most retries of a packet after timeouts; `None` is no limit.
    pub retries: Option<u8>,
    /// Max_NACK_Retx_Cnt: most retransmissions of a packet after NACKs; `None` is no limit.
    pub nack_retries: Option<u8>,
    /// Losses are inferred from packets that arrive out of order.
    pub infers_losses: bool,
    /// Losses are inferred from the ACKs of probes, too.
    pub probes: Option<Probes>,
}

/// When a sender probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// The round trip without load, in picoseconds, above 0.
    pub base: Time,
    /// The delay of queues that an ACK of a probe may have met, in picoseconds.
    pub target: Time,
}

/// Probes are numbered modulo this.
pub const PROBES: u32 = 1 << 24;

impl RudParams {
    /// After so many timeouts.
    pub fn timeout(&self, retry: u8) -> Time {
        let doubled = u64::from(retry.min(63));
        self.rto.saturating_mul(1 << doubled).min(LONGEST.max(self.rto))
    }
}

/// The packets beyond the expected one that an ACK names: `first + i` for each bit i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    pub first: u32,
    pub bits: u64,
}

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
    asking: u32,
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
    recover: Option<u32>,
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
    pub fn on_ack(&mut self, numbers: &mut Numbers, n: u32, named: Bitmap) -> bool {
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
        let fits = again.is_some() || numbers.highest - numbers.una < LARGEST_SPAN - 1;
        numbers.next = again.unwrap_or(numbers.highest);
        let recovers = self.recover.is_some() && again.is_some();
        let room = !self.windowed || self.in_flight < self.cwnd || self.asking == 0 || recovers;
        numbers.window = if room && self.credit && fits { u32::MAX } else { 0 };
    }
}

/// A data packet that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub psn: u32,
    /// Packets of the flow.
    pub total: u32,
    pub marked: bool,
    /// AR.
    pub asks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// It had arrived before.
    pub duplicate: bool,
    /// The packets that an ACK names, if there is one.
    pub ack: Option<Bitmap>,
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

    pub fn on_data(&mut self, ack_every: u32, packet: Arrival) -> Reception {
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

    /// The header of the trimmed packet `psn` has arrived. Returns whether the packet is missing.
    pub fn on_header(&self, psn: u32) -> bool {
        !self.has_arrived(psn)
    }

    /// The bitmap of an ACK for `psn`.
    pub fn names(&self, psn: u32) -> Bitmap {
        let first = psn.saturating_sub(63).max(self.expected + 1);
        let word = |at: usize| self.words.get(at).copied().unwrap_or(0);
        let at = (first / 64 - self.expected / 64) as usize;
        let bits = match first % 64 {
            0 => word(at),
            shift => word(at) >> shift | word(at + 1) << (64 - shift),
        };
        Bitmap { first, bits }
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use xoff_kernel::random::Stream;

    pub const P: RudParams = RudParams {
        rto: 1_000,
        ack_every: 4,
        retries: None,
        nack_retries: None,
        infers_losses: false,
        probes: None,
    };
    const NOTHING: [(u32, bool); 0] = [];

    fn sender(total: u32, cwnd: u32) -> (Numbers, Source) {
        (Numbers::new(total, cwnd), Source::new(cwnd))
    }

    /// Sends all allowed packets. Returns their numbers, and whether they ask for an ACK.
    fn send_all(n: &mut Numbers, s: &mut Source, now: Time) -> Vec<(u32, bool)> {
        let mut sent = Vec::new();
        while n.can_send() {
            let packet = n.send();
            let asks = s.on_sent(&P, n, packet, true, now);
            sent.push((packet.0, asks));
        }
        sent
    }

    fn names(first: u32, packets: &[u32]) -> Bitmap {
        Bitmap { first, bits: packets.iter().fold(0, |bits, psn| bits | 1 << (psn - first)) }
    }

    #[test]
    fn trimmed_packets_go_first_and_inside_the_window() {
        let (mut n, mut s) = sender(10, 5);
        let first: Vec<_> = (0..5).map(|psn| (psn, psn == 4)).collect();
        assert_eq!(send_all(&mut n, &mut s, 0), first, "the one that fills the window asks for an ACK");
        // 1 and 3 are trimmed, and 4 has overtaken the others.
        assert!(s.on_nack(&P, &mut n, 3) && !s.on_nack(&P, &mut n, 3) && s.on_nack(&P, &mut n, 1));
        assert_eq!(s.in_flight(), 3);
        assert!(!s.on_ack(&mut n, 0, names(1, &[4])));
        assert_eq!((s.in_flight(), s.acknowledged()), (2, 1));
        assert_eq!(send_all(&mut n, &mut s, 1), [(3, true), (1, true), (5, true)]);
        // A smaller window keeps everything back.
        s.set_window(&mut n, 2);
        assert!(s.on_ack(&mut n, 3, names(4, &[4])));
        assert_eq!((n.una, s.in_flight(), s.acknowledged()), (3, 2, 4));
        assert_eq!(send_all(&mut n, &mut s, 2), NOTHING);
        s.set_window(&mut n, 3);
        assert_eq!(send_all(&mut n, &mut s, 2), [(6, true)], "cwnd is below ack_every");
        // 4 has arrived before.
        assert!(s.on_ack(&mut n, 4, Bitmap::default()) && n.una == 5);
        assert_eq!((s.in_flight(), s.acknowledged()), (2, 5));
    }

    /// The second timeout of a packet comes after twice the time, and a NACK does not count.
    #[test]
    fn timeouts_double() {
        let (mut n, mut s) = sender(3, 3);
        send_all(&mut n, &mut s, 0);
        s.on_nack(&P, &mut n, 0);
        assert_eq!(send_all(&mut n, &mut s, 500), [(0, true)]);
        assert_eq!(s.deadline(&n), Some(1_000));
        assert_eq!(s.on_time(&P, &mut n, 999), 0);
        assert_eq!(s.on_time(&P, &mut n, 1_000), 2);
        assert_eq!(send_all(&mut n, &mut s, 1_000), [(1, true), (2, true)]);
        assert_eq!(s.deadline(&n), Some(1_500));
        assert_eq!(s.on_time(&P, &mut n, 1_500), 1);
        assert_eq!(send_all(&mut n, &mut s, 1_600), [(0, true)]);
        assert_eq!((s.on_time(&P, &mut n, 2_999), s.on_time(&P, &mut n, 3_000)), (0, 2));
        assert_eq!(s.deadline(&n), Some(3_600), "2,000 after 1,600");
        s.on_ack(&mut n, 0, names(1, &[1]));
        assert_eq!(send_all(&mut n, &mut s, 3_000), [(2, true)], "1 has arrived meanwhile");
        assert_eq!((s.on_time(&P, &mut n, 3_600), s.deadline(&n)), (1, Some(7_000)));
        assert!(s.on_ack(&mut n, 3, Bitmap::default()) && n.complete());
        assert_eq!(s.deadline(&n), None);
        assert_eq!(P.timeout(255), 8 * SECOND);
        assert_eq!(RudParams { rto: 9 * SECOND, ..P }.timeout(3), 9 * SECOND);
    }

    fn receive(r: &mut Receiver, psn: u32, marked: bool, asks: bool) -> Reception {
        r.on_data(4, Arrival { psn, total: 200, marked, asks })
    }

    /// The first packet has an ACK, then each fourth in any order, and each that is marked, asks or has arrived before.
    #[test]
    fn acks_name_packets_of_any_order() {
        let mut r = Receiver::default();
        let mut ack = |psn, marked, asks| receive(&mut r, psn, marked, asks).ack;
        assert_eq!(ack(2, false, false), Some(names(1, &[2])));
        assert_eq!([0, 5, 3].map(|psn| ack(psn, false, false)), [None; 3]);
        assert_eq!(ack(7, false, false), Some(names(2, &[2, 3, 5, 7])));
        assert_eq!(ack(9, true, false), Some(names(2, &[2, 3, 5, 7, 9])));
        assert_eq!(ack(80, false, true), Some(names(17, &[80])));
        assert_eq!(ack(5, false, false), Some(names(2, &[2, 3, 5, 7, 9])), "once more");
        // 80 asked for an ACK without gaps, too.
        let rest = (0..80).filter(|psn| ![0, 2, 3, 5, 7, 9, 1].contains(psn));
        for psn in rest {
            ack(psn, false, false);
        }
        assert_eq!(ack(1, false, false), Some(Bitmap { first: 82, bits: 0 }));
        assert_eq!(r.expected, 81);
        assert!(!r.on_header(80) && r.on_header(81));
    }

    /// Any order, in which each packet comes once or twice: it is delivered once, and the ACKs name packets that have
    /// arrived. All packets of a word before `psn` that a bitmap covers are named.
    #[test]
    fn for_any_order_acks_are_true() {
        for seed in 0..200 {
            let mut random = Stream::new(seed, "order", 0);
            let total = 1 + random.below(400) as u32;
            let mut order: Vec<u32> = (0..total).chain((0..total).filter(|_| random.below(9) == 0)).collect();
            let reach = 1 + random.below(100);
            for i in 0..order.len() {
                let other = (i + random.below(reach) as usize).min(order.len() - 1);
                order.swap(i, other);
            }
            let (mut r, mut here) = (Receiver::default(), vec![false; total as usize]);
            for psn in order {
                let marked = random.below(10) == 0;
                let arrival = Arrival { psn, total, marked, asks: psn + 1 == total };
                let got = r.on_data(4, arrival);
                assert_eq!(got.duplicate, here[psn as usize]);
                here[psn as usize] = true;
                let expected = here.iter().take_while(|&&here| here).count() as u32;
                assert_eq!(r.expected, expected);
                assert!(got.ack.is_some() || !(marked || got.duplicate || expected == total));
                let Some(named) = got.ack else { continue };
                assert!(named.first > expected && psn < named.first + 64);
                for i in 0..64 {
                    let arrived = here.get((named.first + i) as usize).is_some_and(|&here| here);
                    assert_eq!(named.bits >> i & 1 == 1, arrived, "seed {seed}: {}", named.first + i);
                }
            }
            assert_eq!(r.expected, total);
        }
    }

    /// Random losses, trims, reordering and duplicates in both directions, random windows, with and without loss
    /// inference and probes: every packet is delivered once, in the end all of them; the window is kept; and without
    /// losses, trims and timeouts no packet is sent twice.
    #[test]
    fn for_any_path_everything_arrives_once() {
        enum Wire {
            Data(Arrival),
            Header(u32),
            Ack(u32, Bitmap),
            Nack(u32),
            Probe(u32),
            ProbeAck(u32, Bitmap, u32),
        }
        let (mut clean, mut trims, mut inferred, mut probed) = (0, 0, 0, 0);
        for seed in 0..600 {
            let mut random = Stream::new(seed, "path", 0);
            let total = 1 + random.below(300) as u32;
            // A third infers losses, and half of these probe.
            let infers_losses = seed % 3 == 0;
            let probes = (seed % 6 == 3).then_some(Probes { base: 60, target: 60 });
            let ack_every = 1 + random.below(6) as u32;
            let p = RudParams { rto: 500, ack_every, infers_losses, probes, ..P };
            let (loss, trim) =
                ([0, random.below(20)][seed as usize % 2], [0, random.below(40)][seed as usize / 2 % 2]);
            let reorder = random.below(60);
            let cwnd = 1 + random.below(100) as u32;
            let (mut n, mut s) = sender(total, cwnd);
            let mut window = cwnd;
            let (mut r, mut delivered) = (Receiver::default(), vec![0; total as usize]);
            let (mut wire, mut now, mut sent): (Vec<Wire>, Time, u32) = (Vec::new(), 0, 0);
            while !n.complete() {
                now += 1;
                assert!(now < 5_000_000, "no progress with seed {seed}");
                if random.below(50) == 0 {
                    window = 1 + random.below(100) as u32;
                    s.set_window(&mut n, window);
                }
                let mut out = Vec::new();
                if n.can_send() {
                    assert!(
                        s.in_flight() < window || s.asking == 0 || s.recover.is_some() && n.next < n.highest
                    );
                    let packet = n.send();
                    let asks = s.on_sent(&p, &mut n, packet, true, now);
                    sent += 1;
                    out.push(match random.below(100) < trim {
                        true => Wire::Header(packet.0),
                        false => {
                            Wire::Data(Arrival { psn: packet.0, total, marked: random.below(9) == 0, asks })
                        }
                    });
                } else if wire.is_empty() {
                    // Without losses the receiver never lets the sender wait for its timeout.
                    assert!(loss > 0, "seed {seed} waits at {}", n.una);
                    let deadline = s.deadline(&n).expect("something is in flight");
                    now = s.probe_due().map_or(deadline, |due| due.min(deadline)).max(now);
                }
                if !wire.is_empty() && random.below(3) > 0 {
                    let at = if random.below(100) < reorder { random.below(wire.len() as u64) } else { 0 };
                    match wire.remove(at as usize) {
                        Wire::Data(arrival) => {
                            let got = r.on_data(p.ack_every, arrival);
                            assert_eq!(got.duplicate, delivered[arrival.psn as usize] > 0);
                            delivered[arrival.psn as usize] += u32::from(!got.duplicate);
                            out.extend(got.ack.map(|named| Wire::Ack(r.expected, named)));
                        }
                        Wire::Header(psn) if r.on_header(psn) => out.push(Wire::Nack(psn)),
                        Wire::Header(psn) => out.push(Wire::Ack(r.expected, r.names(psn))),
                        Wire::Ack(expected, named) => {
                            s.on_ack(&mut n, expected, named);
                            if infers_losses {
                                inferred += s.infer_losses(&mut n);
                            }
                            if let Some(probes) = probes {
                                s.await_probe(probes, &n, now);
                            }
                        }
                        Wire::Probe(number) => {
                            out.push(Wire::ProbeAck(r.expected, r.names(r.expected), number));
                        }
                        Wire::ProbeAck(expected, named, number) => {
                            s.on_ack(&mut n, expected, named);
                            probed += s.on_probe_ack(&p, &mut n, number, now);
                        }
                        Wire::Nack(psn) => trims += u32::from(s.on_nack(&P, &mut n, psn)),
                    }
                }
                if loss > 0 {
                    s.on_time(&p, &mut n, now);
                }
                out.extend(probes.and_then(|probes| s.take_probe(probes, now)).map(Wire::Probe));
                wire.extend(out.into_iter().filter(|_| random.below(100) >= loss));
            }
            assert!(delivered.iter().all(|&times| times == 1), "seed {seed}");
            assert_eq!(s.acknowledged(), total);
            if loss == 0 && trim == 0 && !infers_losses {
                assert_eq!(sent, total);
                clean += 1;
            }
        }
        let seen = format!("{clean} clean, {trims} trimmed, {inferred} inferred, {probed} found by probes");
        assert!(clean >= 100 && trims > 1_000 && inferred > 100 && probed > 100, "{seen}");
    }
}
