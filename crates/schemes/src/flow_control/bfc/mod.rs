//! Backpressure flow control (BFC; Goyal et al., *Backpressure Flow Control*, NSDI 2022): hop by hop, a
//! switch pauses the upstream queue that fills one of its own queues. Flows are assigned to a limited number
//! of queues as they come; those that share a queue are paused together.
//!
//! **Assignment.** A flow is known by its virtual-flow number, a hash of its addresses. It keeps its queue
//! while it has packets here, and for some hop round trips after its last one has left. Otherwise it gets a
//! queue that no flow occupies and that is not paused, and where there is none, the queue that its number
//! hashes to: then it collides.
//!
//! **Pause.** A packet that finds its queue (itself included) above
//!
//! ```text
//! Th = rate · hop round trip / N_active
//! ```
//!
//! is counted at (ingress, upstream queue); N_active is the number of queues of the port that hold something
//! and are not paused, at least 1. The first counted packet pauses the upstream queue, and when the last one
//! has left it is resumed:
//!
//! ```text
//!             counter 0 → 1: pause(upstream queue) to the ingress
//!   Going ◄─────────────────────────────────────────────────────────► Paused
//!             counter 1 → 0: resume(upstream queue), at the earliest
//!             `resume_interval` after the last resume of this queue
//! ```
//!
//! **Hosts** assign their queue pairs to `host_queues` queues by the same rule and obey pauses by queue: with
//! more of these than flows at a time, by queue pair. Queue 0 holds ACKs (unless they use the other queues); it
//! is served first and never paused.
//!
//! **Lost frames.** With a `pause_time`, active pauses are repeated and expire, so a lost resume does not
//! pause a queue permanently. (The paper's idea, not specified exactly, is a periodic list of the paused
//! queues.)
//!
//! BFC reserves no buffer for what arrives after a pause: a packet that does not fit is dropped.

pub mod keys;
mod table;

use super::device::Queues;
use super::lasting::Lasting;
use super::pause_time;
use super::registry::FlowControl;
use super::remarks::never_paused;
use super::seam::range;
use super::{
    ControlFrame, Machine, Numbers, Parameters, PauseScope, QueueEntry, Queueing, Scheme, Seen, Traits,
};
use table::Table;
use xoff_kernel::random::mix;
use xoff_kernel::time::{SECOND, Time};
use xoff_net::units::Span;
use xoff_outcome::report::{Note, Ran};
use xoff_wire::queue_pause::Target;

/// Most fields are the keys of the same names ([`keys::BfcKeys`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BfcParams {
    /// Queue 0 included; at least 2.
    pub queues: u16,
    /// At least 1.
    pub host_queues: u16,
    pub virtual_flows: u32,
    /// Hop round trip, by the port at whose link's near end it counts.
    pub hop_rtt: Vec<Time>,
    pub keep: u32,
    pub reuse_kept: bool,
    /// Least time between two resumes that one egress queue causes; 0 is no limit.
    pub resume_interval: Time,
    pub acks_in_queues: bool,
    pub lowest_first: bool,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
    /// 0 where no frame can be lost: a pause holds until its resume.
    pub pause_time: Time,
}

impl BfcParams {
    /// A host's own queues: the first has no packets, as it would be that of ACKs.
    fn own(&self) -> u16 {
        1 + self.host_queues
    }

    /// All queues of a host's port and lane.
    fn all(&self) -> usize {
        usize::from(self.queues + self.own())
    }
}

impl Parameters for BfcParams {
    fn traits(&self) -> Traits {
        let numbers =
            Numbers { switch: self.queues, relayed: (0, self.queues), own: (self.queues, self.own()) };
        Traits {
            response_time: self.response_time,
            // Queue 0 is never paused.
            pause_scope: PauseScope::Queue { queues: self.queues - 1, own: self.host_queues },
            queueing: Queueing::Numbered {
                numbers,
                acks: self.acks_in_queues,
                pulls: false,
                lowest: self.lowest_first,
            },
            ..Traits::NONE
        }
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        let own =
            if self.own() == self.queues { String::new() } else { format!("hosts {}, ", self.host_queues) };
        format!(
            "({} queues, {own}{} virtual flows, hop round trip {}, response time {}{})",
            self.queues,
            self.virtual_flows,
            range(&self.hop_rtt[..seen.links], |&t| Span(t).to_string()),
            Span(self.response_time),
            pause_time::shown(self.pause_time)
        )
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        never_paused(ran, "BFC", |_| true, "", "To make it pause, raise the load or the fan-in.")
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Bfc(Bfc::new(self, ports, priorities))
    }
}

/// An egress queue, as far as assignment and resumes are concerned.
#[derive(Clone, Copy, Debug, Default)]
struct QueueState {
    /// Virtual flows with packets in it.
    flows: u32,
    /// The last flow that left it keeps it until then.
    kept_until: Time,
    /// It may cause the next resume from then on.
    resume_at: Time,
}

/// The counters of an ingress for one upstream queue.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    packets: u32,
    /// A pause has been sent, and no resume since.
    paused: bool,
}

#[derive(Clone, Copy, Debug)]
struct Due {
    at: Time,
    counter: usize,
}

/// BFC on every port of a run; each port's state is independent.
#[derive(Clone, Debug)]
pub struct Bfc {
    params: BfcParams,
    lanes: usize,
    lasting: Lasting,
    /// Of all ports: see [`Bfc::keep`].
    longest_keep: Time,
    /// By side (see [`Bfc::side`]).
    tables: Vec<Table>,
    /// By port and lane, then queue, of which a host's own are second.
    queues: Vec<QueueState>,
    /// By (ingress, lane), then upstream queue, likewise.
    counters: Vec<Counter>,
    /// By egress port; empty without `resume_interval`.
    due: Vec<Vec<Due>>,
}

impl Bfc {
    pub(super) fn new(params: &BfcParams, ports: usize, priorities: &[u8]) -> Self {
        let places = ports * priorities.len();
        let pacing = if params.resume_interval > 0 { ports } else { 0 };
        Self {
            params: params.clone(),
            lanes: priorities.len(),
            longest_keep: params.hop_rtt.iter().max().map_or(0, |hop| hop.saturating_mul(params.keep.into())),
            lasting: Lasting::new(params.pause_time, ports, priorities, pacing),
            tables: vec![Table::default(); 2 * places],
            queues: vec![QueueState::default(); places * params.all()],
            counters: vec![Counter::default(); places * params.all()],
            due: vec![Vec::new(); pacing],
        }
    }

    fn place(&self, port: u32, lane: u8) -> usize {
        port as usize * self.lanes + usize::from(lane)
    }

    /// A side of a port and lane: forwarded packets, or the host's own flows.
    fn side(&self, packet: &QueueEntry) -> usize {
        2 * self.place(packet.port, packet.lane) + usize::from(packet.own)
    }

    fn virtual_flow(&self, packet: &QueueEntry) -> u32 {
        let tuple = u64::from(packet.flow) << 1 | u64::from(packet.response);
        // A salt, so that this hash is not that of the routing.
        let (hash, flows) = (mix(tuple ^ 0x6266_6300_0000_0000), u64::from(self.params.virtual_flows));
        // Mostly a power of two, for which no division is needed.
        (if flows.is_power_of_two() { hash & (flows - 1) } else { hash % flows }) as u32
    }

    fn keep(&self, packet: &QueueEntry) -> Time {
        let hop = self.params.hop_rtt[packet.ingress.unwrap_or(packet.port) as usize];
        hop.saturating_mul(u64::from(self.params.keep))
    }

    /// Where the queue with this number is among `queues`.
    fn index(&self, packet: &QueueEntry, number: u16) -> usize {
        self.place(packet.port, packet.lane) * self.params.all() + usize::from(number)
    }

    /// Index of the counter against the queue that the packet came from.
    fn counter(&self, ingress: u32, packet: &QueueEntry) -> usize {
        self.place(ingress, packet.lane) * self.params.all() + usize::from(packet.upstream)
    }

    /// Sends the upstream queue of counter `at` a pause or a resume.
    fn send(&mut self, device: &mut impl Queues, at: usize, pause: bool) {
        let (place, queue) = (at / self.params.all(), Target::Queue((at % self.params.all()) as u16));
        let (ingress, lane) = ((place / self.lanes) as u32, (place % self.lanes) as u8);
        // The counter speaks for all queues of this device.
        if pause {
            self.lasting.pause(device, ingress, lane, queue, 0);
        } else {
            self.lasting.resume(device, ingress, lane, queue, 0);
        }
    }

    /// The last counted packet of counter `at` has left: resume, now or in its turn.
    fn resume(&mut self, device: &mut impl Queues, at: usize, packet: &QueueEntry) {
        let interval = self.params.resume_interval;
        if interval > 0 {
            let queue = self.index(packet, packet.queue);
            let now = device.now();
            let state = &mut self.queues[queue];
            let when = state.resume_at.max(now);
            state.resume_at = when + interval;
            if when > now {
                let due = &mut self.due[packet.port as usize];
                due.push(Due { at: when, counter: at });
                let next = due.iter().map(|d| d.at).min().unwrap_or(when);
                return device.arm(packet.port, next);
            }
        }
        self.counters[at].paused = false;
        self.send(device, at, false);
    }
}

impl Machine for Bfc {
    fn timers(&self) -> usize {
        self.due.len() + self.lasting.timers()
    }
}

impl<D: Queues> Scheme<D> for Bfc {
    fn classify(&mut self, device: &mut D, packet: &mut QueueEntry) -> u16 {
        let (side, flow, now) = (self.side(packet), self.virtual_flow(packet), device.now());
        let (first, count) =
            if packet.own { (self.params.queues, self.params.own()) } else { (0, self.params.queues) };
        let (keep, base) = (self.keep(packet), self.index(packet, 0));
        let entry = self.tables[side].met(flow, now, self.longest_keep);
        if entry.queue == 0 || entry.idle_since().is_some_and(|left| now > left.saturating_add(keep)) {
            let queues = &self.queues[base..];
            let unused = (first + 1..first + count).find(|&q| {
                let state = &queues[usize::from(q)];
                state.flows == 0
                    && (self.params.reuse_kept || now >= state.kept_until)
                    && !device.is_paused(packet.port, packet.lane, q)
            });
            let hashed = || {
                let choice = mix(u64::from(flow) << 32 | u64::from(packet.port));
                first + 1 + (choice % u64::from(count - 1)) as u16
            };
            entry.queue = unused.unwrap_or_else(hashed);
        }
        entry.queue
    }

    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {
        let (side, flow, base) = (self.side(packet), self.virtual_flow(packet), self.index(packet, 0));
        let entry = self.tables[side].known(flow);
        if entry.joins() {
            self.queues[base + usize::from(entry.queue)].flows += 1;
        }
        // A packet from queue 0 has no upstream queue that could be paused.
        let Some(ingress) = packet.ingress.filter(|_| packet.upstream != 0) else { return };
        // queued > rate · hop round trip / N_active, without rounding.
        let active = device.active_queues(packet.port, packet.lane).max(1);
        let held = u128::from(packet.queued) * u128::from(active) * 8 * u128::from(SECOND);
        let hop = u128::from(device.rate(packet.port)) * u128::from(self.params.hop_rtt[ingress as usize]);
        if held <= hop {
            return;
        }
        packet.counted = true;
        let at = self.counter(ingress, packet);
        let counter = &mut self.counters[at];
        counter.packets += 1;
        // If a resume of this queue waits for its time, the queue is still paused.
        if counter.packets == 1 && !counter.paused {
            counter.paused = true;
            self.send(device, at, true);
        }
    }

    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {
        let (side, flow, now) = (self.side(packet), self.virtual_flow(packet), device.now());
        let kept_until = now.saturating_add(self.keep(packet));
        let base = self.index(packet, 0);
        let entry = self.tables[side].known(flow);
        if entry.leaves(now) {
            let state = &mut self.queues[base + usize::from(entry.queue)];
            state.flows -= 1;
            state.kept_until = state.kept_until.max(kept_until);
        }
        let Some(ingress) = packet.ingress.filter(|_| packet.counted) else { return };
        let at = self.counter(ingress, packet);
        self.counters[at].packets -= 1;
        if self.counters[at].packets == 0 {
            self.resume(device, at, packet);
        }
    }

    /// Resumes of egress port `timer` are due, or pauses are repeated or run out.
    fn timer(&mut self, device: &mut D, timer: u32) {
        if self.lasting.owns(timer) {
            return self.lasting.timer(device, timer);
        }
        let now = device.now();
        let mut due = std::mem::take(&mut self.due[timer as usize]);
        due.retain(|d| {
            if d.at > now {
                return true;
            }
            // Counted anew meanwhile: the next resume is for those packets.
            if self.counters[d.counter].packets == 0 && self.counters[d.counter].paused {
                self.counters[d.counter].paused = false;
                self.send(device, d.counter, false);
            }
            false
        });
        if let Some(next) = due.iter().map(|d| d.at).min() {
            device.arm(timer, next);
        }
        self.due[timer as usize] = due;
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        if let ControlFrame::QueuePause(frame) = frame {
            self.lasting.received(device, port, frame);
        }
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.lasting.link_failed(device, port, lane);
    }

    fn link_reset(&mut self, device: &mut D, port: u32) {
        self.lasting.link_recovered(device, port);
    }
}

#[cfg(test)]
mod tests;
