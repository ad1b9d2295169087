//! Credit-based flow control as InfiniBand has it (Architecture Specification vol. 1, §7.9), on every link
//! and lane: nothing is sent that the receiver has not said it has room for.
//!
//! Credit is counted in blocks of 64 B; a packet takes as many as it touches, and so
//! much of the receiver's buffer. Each (port, lane) is the sending end of one direction of
//! its link and the receiving end of the other:
//!
//! ```text
//! sender    FCTBS  blocks sent since the link began
//!           FCCL   blocks up to which it may send, as the last packet from there said
//! receiver  ABR    blocks received: those that have come, and those that were lost
//!           FCCL = ABR + free blocks, at most 2048 more than ABR (12 bits)
//! ```
//!
//! All of them are modulo 4096, or have 64 bits and never wrap (`unlimited`, which
//! Huang et al., 2024, call CBFC-ideal). A packet of b blocks may leave when
//! (FCCL − (FCTBS + b)) mod 4096 ≤ 2048; then FCTBS ← FCTBS + b.
//!
//! The sending half, per (port, lane):
//!
//! ```text
//!           a packet is refused: wanted ← its blocks, pause the lane
//!   Going ──────────────────────────────────────────────────────► Waiting
//!     ▲  ◄── FCCL comes, and `wanted` blocks fit: resume ────────────┘ ▲
//!     │                                                                │
//!     └ link fails: resume        link recovers: FCTBS, FCCL ← 0, hold ┘
//! ```
//!
//! A whole lane waits for the blocks of the refused packet: later packets do not overtake it.
//!
//! The receiving half has no states. A timer of each (port, lane) sends a flow-control packet with FCTBS of
//! the one direction and FCCL of the other every `update`, even without a change. (InfiniBand requires one at
//! least every 65,536 symbol times; a port may send more.) Ports and lanes begin at phases spread over the
//! period. When one arrives, ABR ← FCTBS: lost packets become room again. As a packet takes effect a response
//! time after its arrival, when data sent after it may have arrived, ABR never moves back; where there is
//! such a time, one block less is granted, so that 12 bits distinguish both directions.
//!
//! A link that begins exchanges the buffers of both ends. At the start of a run this has happened already. A
//! link that recovers does it with its first flow-control packet.
//!
//! *No packet is lost.* With f free blocks at the receiver when it says FCCL = ABR + f, at most f more are
//! sent than it had received then (and those in flight, lost or not, are in both ABR and FCTBS in the end);
//! blocks that become free later are added. So the outstanding and stored blocks never exceed the buffer, for
//! any update period and link length: these affect only throughput. See [`full_throughput`].

pub mod frame;
pub mod keys;
pub mod size;

use super::registry::FlowControl;
use super::remarks;
use super::seam::range;
use super::seen::Credits;
use super::size::links::{Links, Report};
use super::{ControlFrame, Device, LinkFacts, Machine, Parameters, PauseScope, Scheme, Seen, Traits};
pub use frame::Form;
use frame::{BLOCK, CreditPacket, MODULUS, MOST};
use xoff_kernel::time::{SECOND, Time, serialisation};
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Note, Ran};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CbfcParams {
    pub form: Form,
    /// By port: blocks that it can store of each lane that comes in by it, at least as many as the largest
    /// packet takes. Ports after those listed (the inner ones of slow hosts) need no credit.
    pub buffer: Vec<u64>,
    /// By port: the same of the port at the other end of its link.
    pub ahead: Vec<u64>,
    /// By port: time between two flow-control packets of a lane, above 0.
    pub update: Vec<Time>,
    /// By lane: whether it runs on credit. On others every packet may leave, as on InfiniBand's lane of
    /// management, and a packet that does not fit is dropped.
    pub lanes: Vec<bool>,
    /// Time from the arrival of a flow-control packet until it takes effect.
    pub response_time: Time,
}

impl CbfcParams {
    /// Bytes that a port can store of each lane.
    pub fn bytes(&self, port: usize) -> u64 {
        self.buffer[port] * u64::from(BLOCK)
    }
}

impl Parameters for CbfcParams {
    fn traits(&self) -> Traits {
        Traits {
            response_time: self.response_time,
            asks_to_leave: true,
            counts_arrivals: true,
            cell: BLOCK,
            // Credit that is withheld stops a lane as a pause does.
            pause_scope: PauseScope::Lane,
            ..Traits::NONE
        }
    }

    fn has_thresholds(&self) -> bool {
        false
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let bits = if self.form == Form::Narrow { 12 } else { 64 };
        format!(
            "({bits}-bit credits, buffer of a port and priority {}, update every {}, response time {})",
            range(&self.buffer, |&blocks| Bytes(blocks * u64::from(BLOCK)).to_string()),
            range(&self.update, |&t| Span(t).to_string()),
            Span(self.response_time)
        )
    }

    fn compare(&self, links: &Links<'_>, report: &mut Report) -> bool {
        size::compare(links, self, report);
        true
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        remarks::never_short_of_credit(ran, |port| self.buffer.get(port).map(|_| self.bytes(port)))
    }

    fn start(&self, _ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Cbfc(Cbfc::new(self, priorities))
    }
}

pub fn blocks(size: u64) -> u64 {
    size.div_ceil(u64::from(BLOCK))
}

/// InfiniBand's longest time between two flow-control packets of a lane, 65,536 symbol
/// times (vol. 1, §7.9.4), on a link of `rate` bits per second.
///
/// A symbol of 8b/10b carries a byte on one of the link's physical lanes, of which there are
/// four (the width 4x, that of nearly all InfiniBand links): four bytes pass in a
/// symbol time. So these are 262,144 B at the link's rate, 20.97 us at 100 Gbit/s.
pub fn longest_update(rate: u64) -> Time {
    const SYMBOLS: u64 = 65_536;
    const WIDTH: u64 = 4;
    serialisation(SYMBOLS * WIDTH, rate).max(1)
}

/// Blocks with which a link never waits for credit while its receiver drains; throughput falls with fewer.
///
/// A block is away from the moment its packet's transmission begins until a flow-control packet that counts it
/// free has taken effect: the packet's own serialisation and the cable, up to `update` until the next
/// flow-control packet, the largest packet just begun on that one's wire, its own serialisation, the cable and
/// the response time. At line rate all of
///
/// `2·delay + update + response + (2·largest + flow-control packet) / rate`
///
/// is filled with largest packets of whole blocks, one more may be cut by the window's edge, and one more
/// must fit after the rest.
pub fn full_throughput(link: &LinkFacts, update: Time, response_time: Time, form: Form) -> u64 {
    let control = CreditPacket::new(form, 0, 0, 0).length();
    let away = 2 * u128::from(link.delay) + u128::from(update) + u128::from(response_time);
    let passed = (away * u128::from(link.rate)).div_ceil(8 * u128::from(SECOND));
    let bytes = passed + 2 * u128::from(link.largest) + u128::from(control);
    let packets = bytes.div_ceil(u128::from(link.largest)) + 2;
    u64::try_from(packets * u128::from(blocks(link.largest.into()))).unwrap_or(u64::MAX)
}

/// Most blocks that a receiver can grant at a time.
pub fn most(form: Form, response_time: Time) -> u64 {
    match form {
        Form::Narrow => MOST - u64::from(response_time > 0),
        Form::Wide => u64::MAX,
    }
}

/// Both ends of a (port, lane). Counters are those of the form: below 4096, or of 64 bits.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    sent: u64,
    /// FCCL of the neighbour.
    limit: u64,
    /// Blocks that the lane waits for; 0 while it goes.
    wanted: u64,
    /// ABR less the blocks that the device has counted in: those that were lost, since the link began.
    offset: u64,
}

#[derive(Clone, Debug)]
pub struct Cbfc {
    params: CbfcParams,
    /// Priority of each lane, which is the number of its virtual lane.
    priorities: Vec<u8>,
    /// By port and lane.
    ends: Vec<Ends>,
}

/// `a − b` in the counters of a form.
fn less(form: Form, a: u64, b: u64) -> u64 {
    form.encode(a.wrapping_sub(b))
}

/// `a + b` in the counters of a form.
fn plus(form: Form, a: u64, b: u64) -> u64 {
    form.encode(a.wrapping_add(b))
}

impl Cbfc {
    pub(super) fn new(params: &CbfcParams, priorities: &[u8]) -> Self {
        let mut ends = vec![Ends::default(); params.buffer.len() * priorities.len()];
        for (port, &buffer) in params.ahead.iter().enumerate() {
            for ends in &mut ends[port * priorities.len()..][..priorities.len()] {
                ends.limit = plus(params.form, 0, buffer.min(most(params.form, params.response_time)));
            }
        }
        Self { params: params.clone(), priorities: priorities.to_vec(), ends }
    }

    /// The place of (`port`, `lane`), if it runs on credit.
    fn place(&self, port: u32, lane: u8) -> Option<usize> {
        let governed = (port as usize) < self.params.buffer.len() && self.params.lanes[usize::from(lane)];
        governed.then(|| port as usize * self.priorities.len() + usize::from(lane))
    }

    fn fits(&self, place: usize, blocks: u64) -> bool {
        let (Ends { sent, limit, .. }, form) = (self.ends[place], self.params.form);
        let most = if form == Form::Narrow { MOST } else { u64::MAX / 2 };
        less(form, limit, plus(form, sent, blocks)) <= most
    }

    /// Sends a flow-control packet, and arms the timer of the next one.
    fn tell(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane) else { return };
        let form = self.params.form;
        let free = self.free(device, port, lane).min(most(form, self.params.response_time));
        let limit = plus(form, self.abr(device, place, port, lane), free);
        let priority = self.priorities[usize::from(lane)];
        let packet = CreditPacket::new(form, priority, self.ends[place].sent, limit);
        device.send_control(port, ControlFrame::Credit(packet));
        device.arm(place as u32, device.now() + self.params.update[port as usize]);
    }

    /// Blocks that the port could store of the lane now.
    fn free(&self, device: &impl Device, port: u32, lane: u8) -> u64 {
        let stored = blocks(device.stored(port, lane));
        let buffer = self.params.buffer[port as usize];
        assert!(stored <= buffer, "credit keeps within the buffer: {stored} blocks of {buffer}");
        buffer - stored
    }

    fn abr(&self, device: &impl Device, place: usize, port: u32, lane: u8) -> u64 {
        plus(self.params.form, blocks(device.received(port, lane)), self.ends[place].offset)
    }

    /// Blocks that `port` can store of each lane.
    fn buffer(&self, port: u32) -> u64 {
        self.params.buffer.get(port as usize).copied().unwrap_or(u64::MAX)
    }
}

impl Credits for Cbfc {
    fn wanted(&self, port: u32, lane: u8) -> u64 {
        self.place(port, lane).map_or(0, |place| self.ends[place].wanted)
    }

    fn room(&self, port: u32, lane: u8, kept: &[u64]) -> [u64; 2] {
        [self.buffer(port) - blocks(kept[usize::from(lane)]), 0]
    }
}

impl Machine for Cbfc {
    fn timers(&self) -> usize {
        self.ends.len()
    }

    fn credits(&self) -> Option<&dyn Credits> {
        Some(self)
    }
}

impl<D: Device> Scheme<D> for Cbfc {
    /// The run begins: the first flow-control packets are sent at their phases.
    fn begins(&mut self, device: &mut D, port: u32) {
        for lane in 0..self.priorities.len() as u8 {
            if let Some(place) = self.place(port, lane) {
                // The fractions of multiples of the golden ratio lie evenly.
                let turn = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
                let phase = (u128::from(self.params.update[port as usize]) * u128::from(turn)) >> 32;
                device.arm(place as u32, device.now() + phase as Time);
            }
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let lanes = self.priorities.len() as u32;
        self.tell(device, timer / lanes, (timer % lanes) as u8);
    }

    fn may_leave(&mut self, device: &mut D, port: u32, lane: u8, size: u32) -> bool {
        let Some(place) = self.place(port, lane) else { return true };
        let blocks = blocks(size.into());
        if self.fits(place, blocks) {
            self.ends[place].sent = plus(self.params.form, self.ends[place].sent, blocks);
            return true;
        }
        self.ends[place].wanted = blocks;
        device.pause(port, lane);
        false
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::Credit(packet) = frame else { return };
        let Some(lane) = self.priorities.iter().position(|&p| p == packet.lane) else { return };
        let lane = lane as u8;
        let Some(place) = self.place(port, lane) else { return };
        let form = self.params.form;
        let known = self.abr(device, place, port, lane);
        let lost = less(form, packet.sent, known);
        let half = if form == Form::Narrow { MODULUS / 2 } else { 1 << 63 };
        let ends = &mut self.ends[place];
        // Without a response time nothing has come since, and ABR is never ahead.
        if lost < half || self.params.response_time == 0 {
            ends.offset = plus(form, ends.offset, lost);
        }
        ends.limit = packet.limit;
        let wanted = ends.wanted;
        if wanted > 0 && self.fits(place, wanted) {
            self.ends[place].wanted = 0;
            device.resume(port, lane);
        }
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        let Some(place) = self.place(port, lane) else { return };
        device.cancel(place as u32);
        self.ends[place].wanted = 0;
        device.resume(port, lane);
    }

    /// The link begins anew: nothing is sent until the neighbour has said how much may be.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, _over: bool, _settled: Time) {
        let Some(place) = self.place(port, lane) else { return };
        let counted = plus(self.params.form, blocks(device.received(port, lane)), 0);
        self.ends[place] = Ends { sent: 0, limit: 0, wanted: 1, offset: less(self.params.form, 0, counted) };
        device.hold(port, lane);
        self.tell(device, port, lane);
    }
}

#[cfg(test)]
mod tests;
