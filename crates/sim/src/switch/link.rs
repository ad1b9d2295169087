//! Links that retransmit lost frames: the two ends of a link layer, and the packets between them.
//!
//! A packet crosses to the device of the receiver with its first transmission, even if the link destroys it: the
//! receiver does not see it then. It is kept beside the receiver until a later transmission of its number arrives
//! well, which carries nothing but that number. So no packet is ever copied, and its records go on.

use crate::core::Core;
use crate::kind;
use crate::outcome::DropReason;
use crate::outcome::footprint::of;
use crate::outcome::tap::{Crosser, Crossing};
use crate::packet::{Arena, Kind, NONE, Packet};
use crate::switch::drops::discard;
use crate::switch::port::Wire;
use std::collections::VecDeque;
use xoff_kernel::time::{Time, serialisation};
use xoff_outcome::report::Records;
use xoff_plan::plan::{FRAME_LOST, Plan};
use xoff_schemes::link_layer::{Limits, Receiver, Report, Timeout, Transmitter, UNDELIVERED, Verdict, Word};

/// The bits of [`Packet::next`] above a sequence number, while a packet crosses a link: it has a bad check sequence …
const BAD: u32 = 1 << 20;
/// … or does not arrive at all.
const LOST: u32 = 1 << 21;
const NUMBER: u32 = BAD - 1;
/// A timer of a port: for retries, or for its next word.
const RETRY: u32 = 0;
const SLOT: u32 = 1;

/// One end of a link.
pub struct End {
    limits: Limits,
    tx: Transmitter,
    rx: Receiver,
    /// When the retry timer expires; its event may come earlier, and is then posted again.
    deadline: Time,
    timer_pending: bool,
    /// When the next word may be sent.
    slot: Time,
    slot_pending: bool,
    /// INIT is to be sent; the retry timer repeats it.
    asking: bool,
    /// Packets that have been sent from the other end and have not arrived well, with their numbers.
    kept: VecDeque<(u32, u32)>,
    /// Since when a packet waits for room in the replay buffer.
    stalled: Option<Time>,
    /// The frames in the replay buffer, where a port is tapped.
    sent: VecDeque<Crosser>,
}

/// The link layer of the devices of a part.
#[derive(Default)]
pub struct Links {
    /// By port; empty without a link layer.
    ends: Vec<Option<Box<End>>>,
    report: Report,
}

impl Links {
    /// Without a link layer, or with the ends for whose ports `owns` returns `true`.
    pub fn new(plan: &Plan, owns: impl Fn(u32) -> bool) -> Self {
        let Some(params) = &plan.link_layer else { return Self::default() };
        let end = |(port, limits): (u32, &Option<Limits>)| {
            let limits = (*limits).filter(|_| owns(port))?;
            Some(Box::new(End {
                limits,
                tx: Transmitter::default(),
                rx: Receiver::default(),
                deadline: 0,
                timer_pending: false,
                slot: 0,
                slot_pending: false,
                asking: false,
                kept: VecDeque::new(),
                stalled: None,
                sent: VecDeque::new(),
            }))
        };
        Self { ends: (0..).zip(&params.ports).map(end).collect(), report: Report::default() }
    }

    #[inline]
    pub fn used(&self) -> bool {
        !self.ends.is_empty()
    }

    /// Bytes of memory, without those of frames in replay buffers.
    pub fn footprint(&self) -> u64 {
        of(&self.ends) + (self.ends.iter().flatten().count() * size_of::<End>()) as u64
    }

    pub fn has(&self, port: u32) -> bool {
        self.ends.get(port as usize).is_some_and(Option::is_some)
    }

    fn end(&mut self, port: u32) -> Option<&mut End> {
        self.ends.get_mut(port as usize)?.as_deref_mut()
    }

    /// Whether the link layer itself has something to send on `port`, whose wire is free at `at`.
    pub fn wants(&self, port: u32, at: Time) -> bool {
        let end = self.ends.get(port as usize).and_then(Option::as_deref);
        end.is_some_and(|end| end.tx.replays() || end.owes() && end.slot <= at)
    }

    /// The packets that have not arrived well, each with the port that waits for it.
    pub fn kept(&self) -> Vec<(u32, u32)> {
        let ends = (0..).zip(&self.ends).filter_map(|(port, end)| Some((port, end.as_deref()?)));
        ends.flat_map(|(port, end)| end.kept.iter().map(move |&(_, id)| (port, id))).collect()
    }

    /// Whether `port` waits for a packet that the link retransmits, and that is one of those.
    pub fn delays(&self, port: u32, packets: &Arena, one: impl Fn(&Packet) -> bool) -> bool {
        let end = self.ends.get(port as usize).and_then(Option::as_deref);
        end.is_some_and(|end| end.kept.iter().any(|&(_, id)| one(&packets[id])))
    }

    /// The records of this part.
    pub fn records(&self) -> Records {
        if self.used() { Records::of(self.report) } else { Records::default() }
    }
}

impl End {
    fn owes(&self) -> bool {
        self.rx.owes() || self.asking
    }

    /// The word to send now. Acknowledgements come before INIT.
    fn word(&mut self) -> Option<Word> {
        let word = self.rx.word();
        if word.is_some() {
            return word;
        }
        std::mem::take(&mut self.asking).then(|| self.tx.asks()).flatten()
    }
}

impl Core<'_> {
    /// The ports of links with a link layer need more than a wire.
    pub fn begin_links(&mut self) {
        for port in 0..self.egress.ports.len() as u32 {
            if self.links.has(port) && self.egress.ports[port as usize].wire != Wire::Inner {
                self.make_odd(port);
            }
        }
    }

    fn wire_time(&self, port: u32, size: u32) -> Time {
        serialisation(u64::from(size), self.plan.topology.ports[port as usize].rate)
    }

    /// Whether the link layer uses the free wire of `port` now, or keeps its packets from it.
    #[cold]
    pub fn link_uses(&mut self, port: u32) -> bool {
        let now = self.now;
        let eligible = self.egress.ports[port as usize].eligible() != 0;
        let Some(end) = self.links.end(port) else { return false };
        if end.owes()
            && end.slot <= now
            && let Some(word) = end.word()
        {
            self.send_word(port, word);
            return true;
        }
        if let Some((place, number, size)) = end.tx.replay() {
            self.send_replay(port, place, number, size);
            return true;
        }
        if !eligible {
            return true;
        }
        let stalls = !end.tx.may_send(&end.limits);
        match (stalls, end.stalled) {
            (true, None) => {
                end.stalled = Some(now);
                self.links.report.stalls += 1;
            }
            (false, Some(since)) => {
                end.stalled = None;
                self.links.report.stalled += now - since;
            }
            _ => {}
        }
        stalls
    }

    /// The wire of `port` is busy with `size` bytes of the link layer. Returns when their last bit arrives.
    fn occupy(&mut self, port: u32, size: u32) -> Time {
        let done = self.now + self.wire_time(port, size);
        let p = &mut self.egress.ports[port as usize];
        p.free_at = done;
        p.bytes += u64::from(size);
        let (delay, more) = (p.delay, p.eligible() != 0 || self.links.wants(port, done));
        self.egress.ports[port as usize].pending = more;
        if more {
            self.post(done, kind::DECISION, port, 0);
        }
        done + delay
    }

    fn send_word(&mut self, port: u32, word: Word) {
        match word {
            Word::Ack(_) => self.links.report.acks += 1,
            Word::Nack(_) => self.links.report.nacks += 1,
            Word::Init(_) | Word::Echo(_) => {}
        }
        let Some(end) = self.links.end(port) else { return };
        end.slot = self.now + end.limits.spacing;
        let (slot, processing) = (end.slot, end.limits.processing);
        if end.owes() {
            self.await_slot(port, slot);
        }
        let arrival = self.occupy(port, Word::LENGTH);
        let lost = self.fate(port, Word::LENGTH, false, arrival).is_some();
        self.links.report.hit_words += u64::from(lost);
        let peer = self.egress.ports[port as usize].peer;
        if self.taps.see(port, peer) {
            self.tap_link(port, arrival, Crosser::Frame(word.captured()[..].into()), (lost, false));
        }
        if !lost {
            let packet = Packet::new(Kind::Word, NONE, word.code(), Word::LENGTH, 0, NONE);
            let id = self.packets.insert(packet);
            self.send_over(arrival + processing, kind::WORD, peer, id);
        }
    }

    fn send_replay(&mut self, port: u32, place: usize, number: u32, size: u32) {
        self.links.report.replayed += 1;
        self.links.report.replayed_bytes += u64::from(size);
        self.egress.ports[port as usize].packets += 1;
        let arrival = self.occupy(port, size);
        let marks = self.marks_of(port, size, false, arrival);
        let peer = self.egress.ports[port as usize].peer;
        if self.taps.see(port, peer)
            && let Some(what) = self.links.end(port).and_then(|end| end.sent.get(place).cloned())
        {
            self.tap_link(port, arrival, what, (marks & LOST != 0, marks & BAD != 0));
        }
        if marks & LOST == 0 {
            let mut packet = Packet::new(Kind::Replay, NONE, 0, size, 0, NONE);
            packet.next = number | marks;
            let id = self.packets.insert(packet);
            self.send_over(arrival, kind::ARRIVAL, peer, id);
        }
    }

    /// The marks of a frame that begins now: whether the link destroys it.
    fn marks_of(&mut self, port: u32, size: u32, is_control: bool, arrival: Time) -> u32 {
        let fate = self.fate(port, size, is_control, arrival);
        self.links.report.hit += u64::from(fate.is_some());
        match fate {
            None => 0,
            Some(FRAME_LOST) => LOST,
            Some(_) => BAD,
        }
    }

    fn tap_link(&mut self, port: u32, arrival: Time, what: Crosser, (lost, damaged): (bool, bool)) {
        let peer = self.egress.ports[port as usize].peer;
        let taps = &mut self.taps;
        if taps.tapped[peer as usize] && !lost {
            taps.seen.push(Crossing { at: arrival, port: peer, sent: false, damaged, what: what.clone() });
        }
        if taps.tapped[port as usize] {
            taps.seen.push(Crossing { at: self.now, port, sent: true, damaged: false, what });
        }
    }

    /// A packet or control frame of `port` is on its wire for the first time; its last bit is due at `arrival`.
    #[cold]
    pub fn send_numbered(&mut self, port: u32, id: u32, arrival: Time) {
        let (packet, peer) = (self.packets[id], self.egress.ports[port as usize].peer);
        let marks = self.marks_of(port, packet.size, packet.kind == Kind::Control, arrival);
        self.links.report.frames += 1;
        let tapped = self.taps.see(port, peer);
        let what =
            tapped.then(|| self.crosser(&packet, self.telemetry.beside(id), |slot| self.frames.get(slot)));
        let now = self.now;
        let Some(end) = self.links.end(port) else { return };
        if !end.tx.is_busy() {
            end.deadline = now + end.limits.timer;
        }
        let number = end.tx.send(packet.size);
        end.sent.extend(what.clone());
        let pending = std::mem::replace(&mut end.timer_pending, true);
        let deadline = end.deadline;
        if !pending {
            self.post(deadline, kind::LINK_TIMER, 2 * port + RETRY, 0);
        }
        if let Some(what) = what {
            self.tap_link(port, arrival, what, (marks & LOST != 0, marks & BAD != 0));
        }
        self.packets[id].next = number | marks;
        self.send_over(arrival, kind::ARRIVAL, peer, id);
    }

    /// A frame arrives at `port`, over a link with a link layer or inside a host. Returns the packet that the device
    /// receives now, if it is one.
    #[cold]
    pub fn accepted(&mut self, port: u32, id: u32) -> Option<u32> {
        let Packet { next, kind: carries, .. } = self.packets[id];
        let Some(end) = self.links.end(port) else { return Some(id) };
        let number = next & NUMBER;
        let verdict = (next & LOST == 0).then(|| end.rx.on_frame(number, next & BAD == 0));
        let accepted = match (verdict, carries == Kind::Replay) {
            (Some(Verdict::Accept), false) => Some(id),
            // The packet itself has been kept since it was first sent.
            (Some(Verdict::Accept), true) => {
                let first = end.kept.pop_front();
                debug_assert!(first.is_some_and(|(kept, _)| kept == number), "frames are accepted in order");
                first.map(|(_, packet)| packet)
            }
            (_, false) => {
                end.kept.push_back((number, id));
                None
            }
            (_, true) => None,
        };
        match verdict {
            Some(Verdict::Early) => self.links.report.early += 1,
            Some(Verdict::Duplicate) => self.links.report.duplicates += 1,
            Some(Verdict::Accept | Verdict::Bad) | None => {}
        }
        if carries == Kind::Replay {
            self.packets.remove(id);
        }
        self.link_continues(port);
        let id = accepted?;
        if carries == Kind::Replay && self.blocking.is_some() {
            self.arrives_late(self.egress.ports[port as usize].peer, id);
        }
        if self.packets[id].kind != Kind::Control {
            return Some(id);
        }
        let (at, what) = match self.frame_of(id).is_barrier() {
            true => (self.now, kind::BARRIER),
            false => (self.now + self.response_time, kind::CONTROL),
        };
        self.post(at, what, port, id);
        None
    }

    /// A word takes effect at `port`.
    pub fn on_word(&mut self, port: u32, id: u32) {
        let word = Word::from_code(self.packets[id].number);
        self.packets.remove(id);
        let now = self.now;
        let (Some(end), Some(word)) = (self.links.end(port), word) else { return };
        let mut given_up = VecDeque::new();
        let done = match word {
            Word::Ack(number) => end.tx.on_ack(number),
            Word::Nack(number) => {
                end.deadline = now + end.limits.timer;
                end.tx.on_nack(number)
            }
            Word::Init(number) => {
                end.rx.on_init(number);
                given_up = std::mem::take(&mut end.kept);
                0
            }
            Word::Echo(number) => {
                end.tx.on_echo(number);
                0
            }
        };
        if done > 0 {
            end.deadline = now + end.limits.timer;
            end.sent.drain(..done.min(end.sent.len()));
        }
        self.links.report.given_up += given_up.len() as u64;
        for (_, packet) in given_up {
            discard(self, port, packet, DropReason::Scheme(&UNDELIVERED), 0);
        }
        self.link_continues(port);
    }

    /// A timer of a port expires.
    pub fn link_timer(&mut self, element: u32) {
        let (port, now) = (element / 2, self.now);
        let Some(end) = self.links.end(port) else { return };
        if element % 2 == SLOT {
            end.slot_pending = false;
            return self.link_continues(port);
        }
        if now < end.deadline && end.tx.is_busy() {
            let deadline = end.deadline;
            return self.post(deadline, kind::LINK_TIMER, element, 0);
        }
        end.timer_pending = end.tx.is_busy();
        if !end.timer_pending {
            return;
        }
        let replays_already = end.tx.replays();
        let timeout = end.tx.on_timeout(&end.limits);
        end.deadline = now + end.limits.timer;
        let deadline = end.deadline;
        match timeout {
            Timeout::Replay => self.links.report.timeouts += u64::from(!replays_already),
            Timeout::Flush(_) => {
                end.sent.clear();
                end.asking = true;
                self.links.report.flushes += 1;
            }
            Timeout::Init => end.asking = true,
            Timeout::Idle => {}
        }
        self.post(deadline, kind::LINK_TIMER, element, 0);
        self.link_continues(port);
    }

    /// Posts the event of the next slot of `port`, unless there is one.
    fn await_slot(&mut self, port: u32, slot: Time) {
        let Some(end) = self.links.end(port) else { return };
        if !std::mem::replace(&mut end.slot_pending, true) {
            self.post(slot, kind::LINK_TIMER, 2 * port + SLOT, 0);
        }
    }

    /// The state of the link of `port` has changed: posts a decision, if something may go.
    fn link_continues(&mut self, port: u32) {
        let at = self.egress.ports[port as usize].free_at.max(self.now);
        let Some(end) = self.links.end(port) else { return };
        if end.owes() && end.slot > at {
            let slot = end.slot;
            self.await_slot(port, slot);
        }
        let wants = self.links.wants(port, at);
        let p = &mut self.egress.ports[port as usize];
        if !p.pending && (wants || p.eligible() != 0) {
            p.pending = true;
            self.post(at, kind::DECISION, port, 0);
        }
    }
}
