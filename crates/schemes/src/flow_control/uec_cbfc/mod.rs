//! Credit-based flow control of Ultra Ethernet (specification 1.0.x, §5.2), on every link.
//!
//! A lossless priority is a virtual channel (VC). A packet consumes ⌈(size + PktOvhd) / CreditSize⌉ credits,
//! and each credit is a cell of the receiver's buffer. Each (port, VC) is the sending end of one direction of
//! its link and the receiving end of the other:
//!
//! ```text
//! sender    S_CC    credits consumed by packets sent             modulo 2^20
//!           S_CF    credits freed, as the last CF_Update said    modulo 2^20
//!           S_CU  = S_CC − S_CF, credits in use
//!           S_CL    limit of the VC
//! port      S_P_CU  sum of S_CU over the VCs
//!           S_P_CL  limit of the port
//! receiver  R_CC    credits consumed: by packets that have come, and by those that were lost
//!           R_CF  = R_CC − credits stored, credits freed         both modulo 2^20
//! ```
//!
//! A packet of c credits may leave if S_CU + c ≤ S_CL and, where VCs share a limit, S_P_CU + c ≤ S_P_CL; then
//! S_CC and S_CU grow by c. A VC may have a part of the port's limit in reserve (as the sender pools of SAI):
//! it consumes its reserve first, and then the rest, which all VCs share. So its limits are
//!
//! ```text
//! S_CL = reserve + shared        Σ over VCs of max(S_CU − reserve, 0) ≤ shared
//! ```
//!
//! and `per-vc` is the case without a shared part. VCs that wait for the shared part get it in the order in which
//! they began to wait, so that none starves. A packet that needs nothing of it does not wait for others.
//!
//! Two messages, both idempotent, so a lost one only delays:
//!
//! ```text
//! CF_Update  the lowest 15 bits of R_CF of two VCs.  S_CF += (count − S_CF) mod 2^15
//! CC_Update  S_CC of every VC.                       R_CF += (S_CC − R_CC) mod 2^20, R_CC = S_CC
//! ```
//!
//! CC_Update returns the credits of packets that the link lost. It is in line with data: it leaves before
//! every waiting packet, and its counts are those of all packets before it.
//!
//! The sending half of a (port, VC):
//!
//! ```text
//!           a packet is refused: wanted ← its credits, pause the VC
//!   Going ──────────────────────────────────────────────────────────► Waiting
//!     ▲  ◄── CF_Update comes, and `wanted` credits fit: resume ──────────┘ ▲
//!     │                                                                    │
//!     └ link fails: resume         link recovers: S_CC, S_CF ← 0, hold ────┘
//! ```
//!
//! The receiving half sends a CF_Update when R_CF of a VC has changed, at least `cf_min_spacing` after the
//! last one, and otherwise `cf_max_spacing` after it. VCs that have changed come first, in turns.
//!
//! A link that recovers begins anew: its VCs send nothing until the receiver has no packet of theirs from
//! before the failure (where they share a limit: of any), and says so with a first CF_Update of 0.
//!
//! *No packet is lost.* R_CF counts only cells that are free again and packets that the link lost. So S_CU
//! is at least the credits stored and in flight, and never exceeds S_CL; the shared parts never exceed the
//! shared limit together. The buffer has a cell for each.
//!
//! *15 bits suffice.* R_CF − S_CF ≤ S_CC − S_CF = S_CU ≤ S_CL. With a limit below 2^15 the difference of two
//! counts is therefore exact, whatever is lost. With a larger one, up to 2^19 − 1, fewer than 2^15 credits
//! may be freed between two CF_Updates that arrive; [`keys`] refuses links where 32 lost ones in a row could
//! break this.

pub mod frame;
pub mod keys;
pub mod report;
pub mod size;

use super::registry::FlowControl;
use super::remarks;
use super::seam::range;
use super::seen::Credits;
use super::size::links::{Links, Report as SizeReport};
use super::{ControlFrame, Device, LinkFacts, Machine, Parameters, PauseScope, Scheme, Seen, Traits};
use frame::{CcUpdate, CfUpdate};
use report::Report;
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Note, Ran, Records};
use xoff_wire::SMALLEST_FRAME;

/// The bits of a counter …
const MASK: u32 = (1 << 20) - 1;
/// … and those of a CF_Update.
const LOW: u32 = (1 << 15) - 1;
/// Most credits of a limit: differences of counters then have a sign.
pub const MOST: u64 = (1 << 19) - 1;
/// Timers of a port: the end of the least spacing, that of the most, and the next CC_Update.
const SLOT: u32 = 0;
const REFRESH: u32 = 1;
const CONSUMED: u32 = 2;
const TIMERS: u32 = 3;

/// The credits of a port: S_CL of each VC is their sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Limits {
    /// Reserved for each VC.
    pub reserve: u64,
    /// Of all VCs together.
    pub shared: u64,
}

impl Limits {
    /// Credits that one VC may use.
    pub fn of_one(self) -> u64 {
        self.reserve + self.shared
    }

    /// Credits that `channels` VCs may use together.
    pub fn of_all(self, channels: u64) -> u64 {
        self.reserve * channels + self.shared
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UecCbfcParams {
    /// CreditSize: bytes of a cell, a power of two.
    pub credit: u32,
    /// PktOvhd: bytes that a packet takes beside its own.
    pub overhead: i32,
    /// By port: its own buffer. Ports after those listed (the inner ones of slow hosts) need no credit.
    pub limits: Vec<Limits>,
    /// By port: the same of the port at the other end of its link.
    pub ahead: Vec<Limits>,
    /// By port: least and most time between two CF_Updates.
    pub spacing: Vec<[Time; 2]>,
    /// Time between two CC_Updates.
    pub period: Time,
    /// How long all may wait for a CC_Update; 0 if links lose nothing.
    pub patience: Time,
    /// By lane: whether it is a VC with credit. On others every packet may leave, and a packet that does not
    /// fit is dropped.
    pub lanes: Vec<bool>,
    /// Whether a VC may have to wait for credit that another one uses.
    pub couples: bool,
    /// Time from the arrival of a message until it takes effect.
    pub response_time: Time,
}

impl UecCbfcParams {
    /// Bytes of so many credits.
    pub fn bytes(&self, credits: u64) -> u64 {
        credits * u64::from(self.credit)
    }

    fn channels(&self) -> u64 {
        self.lanes.iter().filter(|on| **on).count() as u64
    }
}

impl Parameters for UecCbfcParams {
    fn traits(&self) -> Traits {
        Traits {
            response_time: self.response_time,
            patience: self.patience,
            asks_to_leave: true,
            reports_storage: true,
            counts_arrivals: true,
            cell: self.credit,
            overhead: self.overhead,
            // Credit that is withheld stops a lane as a pause does.
            pause_scope: PauseScope::Lane,
            shares_credit: self.limits.iter().any(|limits| limits.shared > 0),
            couples_lanes: self.couples,
            ..Traits::NONE
        }
    }

    fn has_thresholds(&self) -> bool {
        false
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let bytes = |credits: u64| Bytes(self.bytes(credits)).to_string();
        let buffer = match self.limits.iter().any(|limits| limits.shared > 0) {
            false => format!(
                "buffer of a port and priority {}",
                range(&self.limits, |limits| bytes(limits.of_one()))
            ),
            true => format!(
                "buffer of a port {}, {} of it for each priority alone",
                range(&self.limits, |limits| bytes(limits.of_all(self.channels()))),
                range(&self.limits, |limits| bytes(limits.reserve)),
            ),
        };
        format!(
            "(credits of {} B, {} B of overhead, {buffer}, CF_Update every {} at least and {} at most, \
             CC_Update every {}, response time {})",
            self.credit,
            self.overhead,
            range(&self.spacing, |&[least, _]| Span(least).to_string()),
            range(&self.spacing, |&[_, most]| Span(most).to_string()),
            Span(self.period),
            Span(self.response_time)
        )
    }

    fn compare(&self, links: &Links<'_>, report: &mut SizeReport) -> bool {
        size::compare(links, self, report);
        true
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        remarks::never_short_of_credit(ran, |port| {
            self.limits.get(port).map(|limits| self.bytes(limits.of_one()))
        })
    }

    fn start(&self, _ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::UecCbfc(UecCbfc::new(self, priorities))
    }
}

/// Credits of a packet: ⌈(size + PktOvhd) / CreditSize⌉.
pub fn credits(size: u32, overhead: i32, credit: u32) -> u64 {
    u64::from(size.saturating_add_signed(overhead).div_ceil(credit))
}

/// Bytes that pass on a link from the moment a packet consumes its credits until they are free again, by terms, if
/// the packet leaves the receiver at once.
///
/// The packet's own serialisation and the cable; a CF_Update that waits for its slot, which other VCs may have taken
/// first; the largest packet or a CC_Update just begun on its wire; its own serialisation, the cable and the response
/// time.
pub(super) fn loop_terms(
    link: &LinkFacts,
    spacing: Time,
    channels: u64,
    response: Time,
) -> [(&'static str, u128); 6] {
    let bytes = |time: u128| (time * u128::from(link.rate)).div_ceil(8 * u128::from(SECOND));
    let slots = u128::from(channels.div_ceil(2).max(1));
    [
        ("cable, both ways", bytes(2 * u128::from(link.delay))),
        ("wait for the slot of a CF_Update", bytes(slots * u128::from(spacing))),
        ("sender's response time", bytes(response.into())),
        ("packet being sent", link.largest.into()),
        ("our packet just begun", link.largest.max(SMALLEST_FRAME).into()),
        ("CF_Update", CfUpdate::LENGTH.into()),
    ]
}

/// Largest packets with whose credits a link never waits for credit while its receiver drains; throughput falls with
/// fewer: those of `loop_terms`, one more whose time has begun at the edge, and the next one.
pub fn full_throughput(link: &LinkFacts, spacing: Time, channels: u64, response: Time) -> u64 {
    let bytes: u128 = loop_terms(link, spacing, channels, response).iter().map(|term| term.1).sum();
    u64::try_from(bytes.div_ceil(link.largest.into()) + 2).unwrap_or(u64::MAX)
}

/// Both ends of a VC on a port. Counters are modulo 2^20.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    /// S_CC.
    consumed: u32,
    /// S_CF.
    freed: u32,
    /// Credits that the VC waits for; 0 while it goes.
    wanted: u64,
    /// When the VC began to wait, counted per port; 0 once a packet has left.
    turn: u64,
    /// The link has recovered, and the first CF_Update has not come.
    begins: bool,
    /// R_CC less the credits of the packets that have come.
    offset: u32,
    /// R_CF of the last CF_Update.
    told: u32,
    /// The link has recovered, and packets from before are stored.
    drains: bool,
}

impl Ends {
    /// S_CU.
    fn used(&self) -> u64 {
        u64::from(self.consumed.wrapping_sub(self.freed) & MASK)
    }
}

/// Both ends of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Port {
    /// Credits in use of the shared part.
    shared: u64,
    /// The last turn given.
    turn: u64,
    /// Lanes whose R_CF has changed since their last CF_Update, by bits.
    changed: u8,
    /// The lane whose turn is next.
    next: u8,
    /// When the next CF_Update may be sent.
    slot: Time,
    slot_armed: bool,
    last: Time,
    /// When the link recovered last.
    since: Time,
}

#[derive(Clone, Debug)]
pub struct UecCbfc {
    params: UecCbfcParams,
    /// Priority of each lane, which is the number of its VC.
    priorities: Vec<u8>,
    /// Lanes that are VCs, by bits.
    channels: u8,
    /// By port and lane.
    ends: Vec<Ends>,
    ports: Vec<Port>,
    report: Report,
}

impl UecCbfc {
    pub(super) fn new(params: &UecCbfcParams, priorities: &[u8]) -> Self {
        let bit = |(lane, &is): (usize, &bool)| u8::from(is) << lane;
        Self {
            params: params.clone(),
            priorities: priorities.to_vec(),
            channels: params.lanes.iter().enumerate().map(bit).sum(),
            ends: vec![Ends::default(); params.limits.len() * priorities.len()],
            ports: vec![Port::default(); params.limits.len()],
            report: Report::default(),
        }
    }

    /// The place of (`port`, `lane`), if it runs on credit.
    fn place(&self, port: u32, lane: u8) -> Option<usize> {
        let governed = (port as usize) < self.ports.len() && self.params.lanes[usize::from(lane)];
        governed.then(|| port as usize * self.priorities.len() + usize::from(lane))
    }

    /// The lanes of VCs.
    fn lanes(&self) -> impl DoubleEndedIterator<Item = u8> + use<> {
        let on = self.channels;
        (0..8).filter(move |lane| on >> lane & 1 == 1)
    }

    /// The credits of the shared part that a VC with `used` credits in use would take for `more`.
    fn from_shared(limits: Limits, used: u64, more: u64) -> u64 {
        (used + more).saturating_sub(limits.reserve.max(used))
    }

    /// The credits of the shared part that `more` credits of a VC take.
    fn takes(&self, port: u32, place: usize, more: u64) -> u64 {
        Self::from_shared(self.params.ahead[port as usize], self.ends[place].used(), more)
    }

    fn fits(&self, port: u32, taken: u64) -> bool {
        self.ports[port as usize].shared + taken <= self.params.ahead[port as usize].shared
    }

    /// The VCs of a port that wait for credit, and their places.
    fn waiting(&self, port: u32) -> impl Iterator<Item = (u8, usize)> + '_ {
        let places = port as usize * self.priorities.len();
        self.lanes()
            .map(move |lane| (lane, places + usize::from(lane)))
            .filter(|&(_, place)| self.ends[place].wanted > 0 && !self.ends[place].begins)
    }

    /// Those that wait for shared credit, and began to before `turn`.
    fn needing_before(&self, port: u32, turn: u64) -> impl Iterator<Item = (u8, usize)> + '_ {
        self.waiting(port).filter(move |&(_, place)| {
            let ends = &self.ends[place];
            ends.turn < turn && self.takes(port, place, ends.wanted) > 0
        })
    }

    fn in_credits(&self, bytes: u64) -> u64 {
        bytes / u64::from(self.params.credit)
    }

    fn consumed_by_received(&self, device: &impl Device, port: u32, lane: u8) -> u32 {
        self.in_credits(device.received(port, lane)) as u32 & MASK
    }

    /// R_CC.
    fn received_credits(&self, device: &impl Device, place: usize, port: u32, lane: u8) -> u32 {
        self.consumed_by_received(device, port, lane).wrapping_add(self.ends[place].offset) & MASK
    }

    /// R_CF.
    fn freed_credits(&self, device: &impl Device, place: usize, port: u32, lane: u8) -> u32 {
        let stored = self.in_credits(device.stored(port, lane));
        let most = self.params.limits[port as usize].of_one();
        assert!(stored <= most, "credit keeps within the buffer: {stored} credits of {most}");
        self.received_credits(device, place, port, lane).wrapping_sub(stored as u32) & MASK
    }

    /// Whether packets from before the link failed are stored, which the VC waits for.
    fn is_stored(&self, device: &impl Device, port: u32, lane: u8) -> bool {
        match self.params.limits[port as usize].shared {
            0 => device.stored(port, lane) > 0,
            _ => self.lanes().any(|lane| device.stored(port, lane) > 0),
        }
    }

    /// R_CF of a VC may have changed: a CF_Update says so, at its slot.
    fn changes(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane) else { return };
        if self.ends[place].drains {
            if self.is_stored(device, port, lane) {
                return;
            }
            // Those that wait for the last packet of any VC begin together.
            let all = self.params.limits[port as usize].shared > 0;
            for lane in self.lanes().filter(|&other| all || other == lane) {
                let place = port as usize * self.priorities.len() + usize::from(lane);
                self.ends[place].drains = false;
                self.ports[port as usize].changed |= 1 << lane;
            }
        } else if self.freed_credits(device, place, port, lane) != self.ends[place].told {
            self.ports[port as usize].changed |= 1 << lane;
        } else {
            return;
        }
        self.tell_at_slot(device, port);
    }

    fn tell_at_slot(&mut self, device: &mut impl Device, port: u32) {
        let Port { slot, slot_armed, .. } = self.ports[port as usize];
        if device.now() >= slot {
            self.tell(device, port);
        } else if !slot_armed {
            self.ports[port as usize].slot_armed = true;
            device.arm(port * TIMERS + SLOT, slot);
        }
    }

    /// Sends a CF_Update: of two VCs that have changed, and otherwise of those whose turn it is.
    fn tell(&mut self, device: &mut impl Device, port: u32) {
        let p = port as usize;
        let Port { changed, next, .. } = self.ports[p];
        let ends = |lane: u8| p * self.priorities.len() + usize::from(lane);
        let ready = |lane: &u8| !self.ends[ends(*lane)].drains;
        let turn = |lane: &u8| (changed >> lane & 1 == 0, lane.wrapping_sub(next) & 7);
        let Some(first) = self.lanes().filter(ready).min_by_key(turn) else { return };
        let others = self.lanes().filter(ready).filter(|&lane| lane != first);
        let second = others.min_by_key(turn).unwrap_or(first);
        let pair = [first, second].map(|lane| {
            let freed = self.freed_credits(device, ends(lane), port, lane);
            (lane, freed)
        });
        let now = device.now();
        for (lane, freed) in pair {
            let place = p * self.priorities.len() + usize::from(lane);
            self.ends[place].told = freed;
        }
        let [least, _] = self.params.spacing[p];
        let own = &mut self.ports[p];
        self.report.cf_updates += 1;
        self.report.refreshes += u64::from(own.changed == 0);
        own.changed &= !(1 << first | 1 << second);
        own.next = (second + 1) & 7;
        (own.last, own.slot) = (now, now + least);
        let more = own.changed != 0;
        let named = pair.map(|(lane, freed)| (self.priorities[usize::from(lane)], freed));
        device.send_control(port, CfUpdate::new(named).into());
        if more {
            self.tell_at_slot(device, port);
        }
    }

    /// Arms the timers of a port whose link begins.
    fn starts(&self, device: &mut impl Device, port: u32) {
        // The fractions of multiples of the golden ratio lie evenly.
        let turn = u64::from(port + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let phase = |period: Time| ((u128::from(period) * u128::from(turn)) >> 32) as Time;
        let [_, most] = self.params.spacing[port as usize];
        device.arm(port * TIMERS + REFRESH, device.now() + phase(most));
        device.arm(port * TIMERS + CONSUMED, device.now() + phase(self.params.period));
    }

    /// The credits that the packets of a VC have freed at the neighbour, in the lowest 15 bits.
    fn frees(&mut self, device: &mut impl Device, port: u32, lane: u8, count: u16) {
        let Some(place) = self.place(port, lane) else { return };
        let limits = self.params.ahead[port as usize];
        let ends = &mut self.ends[place];
        let used = ends.used();
        let freed = u64::from(u32::from(count).wrapping_sub(ends.freed) & LOW);
        // The neighbour never frees more than it was sent.
        debug_assert!(freed <= used, "{freed} credits freed of {used}");
        let freed = freed.min(used);
        ends.freed = ends.freed.wrapping_add(freed as u32) & MASK;
        self.report.freed += freed;
        self.ports[port as usize].shared -= Self::from_shared(limits, used - freed, freed);
        if std::mem::take(&mut self.ends[place].begins) {
            self.ends[place].wanted = 0;
            device.resume(port, lane);
        }
    }

    /// Free credits go to the VCs that wait, in the order in which they began to. One that has nothing to send any more
    /// leaves them to the next CF_Update.
    fn grants(&mut self, device: &mut impl Device, port: u32) {
        let (mut free, mut last) =
            (self.params.ahead[port as usize].shared - self.ports[port as usize].shared, 0);
        let turn = |machine: &Self, place: usize| machine.ends[place].turn;
        while let Some((lane, place)) = self
            .waiting(port)
            .filter(|&(_, place)| turn(self, place) > last)
            .min_by_key(|&(_, place)| turn(self, place))
        {
            last = turn(self, place);
            if let Some(rest) = free.checked_sub(self.takes(port, place, self.ends[place].wanted)) {
                free = rest;
                self.ends[place].wanted = 0;
                device.resume(port, lane);
            } else {
                free = 0;
            }
        }
    }

    /// The credits that the neighbour has consumed: those of lost packets are free again.
    fn corrects(&mut self, device: &mut impl Device, port: u32, frame: &CcUpdate) {
        for lane in self.lanes() {
            let Some(place) = self.place(port, lane) else { continue };
            let said = frame.consumed[usize::from(self.priorities[usize::from(lane)])];
            let known = self.received_credits(device, place, port, lane);
            let lost = said.wrapping_sub(known) & MASK;
            // With a response time more may have come since, and R_CC never moves back.
            if lost == 0 || u64::from(lost) > MOST {
                continue;
            }
            self.ends[place].offset = self.ends[place].offset.wrapping_add(lost) & MASK;
            self.report.returned += u64::from(lost);
            self.changes(device, port, lane);
        }
    }
}

impl Credits for UecCbfc {
    fn wanted(&self, port: u32, lane: u8) -> u64 {
        self.place(port, lane).map_or(0, |place| self.ends[place].wanted)
    }

    fn before(&self, port: u32, lane: u8) -> u8 {
        let Some(place) = self.place(port, lane) else { return 0 };
        self.needing_before(port, self.ends[place].turn).fold(0, |lanes, (lane, _)| lanes | 1 << lane)
    }

    fn room(&self, port: u32, lane: u8, kept: &[u64]) -> [u64; 2] {
        let Some(&limits) = self.params.limits.get(port as usize) else { return [u64::MAX, 0] };
        let beyond = |bytes: u64| self.in_credits(bytes).saturating_sub(limits.reserve);
        let shared = self.lanes().map(|lane| beyond(kept[usize::from(lane)])).sum::<u64>();
        let own = limits.reserve.saturating_sub(self.in_credits(kept[usize::from(lane)]));
        [own, limits.shared.saturating_sub(shared)]
    }
}

impl Machine for UecCbfc {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.ports.len() * TIMERS as usize
    }

    fn records(&self) -> Records {
        Records::of(self.report)
    }

    fn credits(&self) -> Option<&dyn Credits> {
        Some(self)
    }
}

impl<D: Device> Scheme<D> for UecCbfc {
    fn begins(&mut self, device: &mut D, port: u32) {
        if (port as usize) < self.ports.len() && self.channels != 0 {
            self.starts(device, port);
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let (port, now) = (timer / TIMERS, device.now());
        let p = port as usize;
        match timer % TIMERS {
            SLOT => {
                self.ports[p].slot_armed = false;
                if self.ports[p].changed != 0 {
                    self.tell(device, port);
                }
            }
            REFRESH => {
                let [_, most] = self.params.spacing[p];
                if now >= self.ports[p].last + most || self.ports[p].last == 0 {
                    self.tell(device, port);
                    self.ports[p].last = now;
                }
                device.arm(timer, self.ports[p].last + most);
            }
            _ => {
                let mut frame = CcUpdate { consumed: [0; 8] };
                for lane in self.lanes() {
                    let priority = usize::from(self.priorities[usize::from(lane)]);
                    frame.consumed[priority] =
                        self.ends[p * self.priorities.len() + usize::from(lane)].consumed;
                }
                self.report.cc_updates += 1;
                device.send_control(port, frame.into());
                device.arm(timer, now + self.params.period);
            }
        }
    }

    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        let Some(place) = self.place(port, lane) else { return true };
        let more = credits(size, self.params.overhead, self.params.credit);
        let taken = self.takes(port, place, more);
        let Ends { begins, turn, .. } = self.ends[place];
        let turn = if turn == 0 { u64::MAX } else { turn };
        let goes = taken == 0 || self.fits(port, taken) && self.needing_before(port, turn).next().is_none();
        let own = &mut self.ports[port as usize];
        let ends = &mut self.ends[place];
        if goes && !begins {
            own.shared += taken;
            ends.turn = 0;
            ends.consumed = ends.consumed.wrapping_add(more as u32) & MASK;
            self.report.consumed += more;
            return true;
        }
        if ends.turn == 0 {
            own.turn += 1;
            ends.turn = own.turn;
        }
        ends.wanted = more;
        device.pause(port, lane);
        false
    }

    fn stored(&mut self, device: &mut D, ingress: u32, lane: u8, _size: u32) {
        self.changes(device, ingress, lane);
    }

    fn freed(&mut self, device: &mut D, ingress: u32, _egress: u32, lane: u8, _size: u32) {
        self.changes(device, ingress, lane);
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let Some(own) = self.ports.get(port as usize) else { return };
        // It came before the link failed.
        if device.now() < own.since + self.params.response_time {
            return;
        }
        match frame {
            ControlFrame::CfUpdate(update) => {
                for &(channel, count) in &update.freed {
                    if let Some(lane) = self.priorities.iter().position(|&p| p == channel) {
                        self.frees(device, port, lane as u8, count);
                    }
                }
                self.grants(device, port);
            }
            ControlFrame::CcUpdate(update) => self.corrects(device, port, update),
            _ => {}
        }
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane) else { return };
        for timer in 0..TIMERS {
            device.cancel(port * TIMERS + timer);
        }
        self.ports[port as usize].slot_armed = false;
        let ends = &mut self.ends[place];
        (ends.wanted, ends.turn, ends.begins) = (0, 0, false);
        device.resume(port, lane);
    }

    /// The VC begins anew: nothing is sent until the neighbour has none of its packets and has said so.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, _over: bool, _settled: Time) {
        let Some(place) = self.place(port, lane) else { return };
        let counted = self.consumed_by_received(device, port, lane);
        self.ends[place] = Ends {
            wanted: self.params.ahead[port as usize].of_one(),
            begins: true,
            drains: true,
            offset: 0u32.wrapping_sub(counted) & MASK,
            ..Ends::default()
        };
        device.hold(port, lane);
    }

    fn link_reset(&mut self, device: &mut D, port: u32) {
        if port as usize >= self.ports.len() || self.channels == 0 {
            return;
        }
        let now = device.now();
        self.ports[port as usize] = Port { since: now, last: now, slot: now, ..Port::default() };
        self.starts(device, port);
        for lane in self.lanes() {
            self.changes(device, port, lane);
        }
    }
}

#[cfg(test)]
mod tests;
