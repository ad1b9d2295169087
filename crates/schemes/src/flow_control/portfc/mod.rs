//! PortFC (Cao et al., *Revisiting Flow Control in Node-Centric Datacenter Networks*, IEEE Transactions on
//! Networking 2026): per-port flow control for networks whose nodes relay, NDC(n, 1).
//!
//! **Queues** (section III-B) separate packets by the port through which they leave the next switch: see
//! [`map`]. A switch port has n − 1 inter-hop forwarding queues (IHFQ), one destination-direct queue (DDQ)
//! and a high-priority queue (HQ); a node port has n − 1 queues for its own four-hop traffic, n − 1 for its
//! own two-hop traffic, a relay queue (RQ) and an HQ. A switch port to an aggregation switch, or of one, has
//! n − 1 queues of each type (section VI-D; the paper defines none): [`map`].
//!
//! **Detection** (Algorithms 1 and 2) is at the egress ports of switches only. For
//! the two sets of queues of each port, IHFQ and DDQ:
//!
//! ```text
//!   qlen = Σ queueLen of the set;  IHFQ: X_off, X_on     DDQ: X̂_off, X̂_on
//!
//!              packet admitted, added, and qlen ≥ X_off:
//!              Pause(qIdx, portIdx) on all other ports of the switch
//!   upstreamIsPaused = false ─────────────────────────────► true
//!                            ◄─────────────────────────────
//!              packet leaves, subtracted, and qlen ≤ X_on:
//!              Resume(qIdx, portIdx) on all other ports of the switch
//! ```
//!
//! Each set has its own flag (`portfc.flag`): the paper prints one for both ([`Variant::one_flag`]). With one
//! flag the congestion of one set hides the other's, and each set's end resumes only its own queues, so the
//! other's stay paused permanently. The variant [`Variant::longest_alone`] compares the longest IHFQ with the
//! thresholds instead of their sum.
//!
//! **Obedience.** A frame names the congested port e of the switch that sent it,
//! and by qIdx its set; q(e) is the queue of [`map::QueueMap::named`].
//!
//! ```text
//!   at a node (Algorithm 3), on port p:   IHFQ: four-hop queue q(e) of p
//!                                         DDQ:  two-hop queue q(e) of p, and the
//!                                               frame goes on to all other ports
//!   at a switch (Algorithm 4), on port p: the IHFQ q(e) of p
//!               if another switch sent it: the queue q(e) of p of the same type
//! ```
//!
//! The second caption says *switch* like the first, but it describes the node (`portfc.alg3-title`). A frame
//! is relayed to the other ports and not back (`portfc.relay-ports`). Without that
//! ([`Variant::no_signal_relay`]) the next switches continue to fill the congested queue over the relays.
//!
//! **Service.** Frames first, then acknowledgements and notifications (HQ, never paused), then RQ, which
//! nothing pauses, then the node's own queues by deficit round robin; at a switch IHFQs and DDQ by deficit
//! round robin. The paper says of its *server-aware queue scheduling* only that HQ is strictly first
//! (`portfc.scheduler`). RQ is fed at up to line rate and cannot be paused, so it must be served as fast
//! (`portfc.relay-queue-never-paused`). [`RelayOrder`] has the alternatives.
//!
//! **Why three hops.** A DDQ is never paused, RQ neither: a full DDQ pauses type b
//! one hop upstream and type A two hops (equation 1), a full set of type A pauses
//! type a at the next node (equation 2), and nothing pauses further. Links between switches lengthen both.
//!
//! **Lost frames.** The paper sends each frame once. When a link recovers, its ends send the present state
//! again. A frame that a link loses is lost, and the queue that it would have resumed stays paused.

pub mod bound;
pub mod frame;
pub mod keys;
pub mod map;
pub mod queues;
pub mod size;

use super::device::Queues;
use super::registry::FlowControl;
use super::remarks;
use super::seam::range;
use super::seen::{OnwardQueues, Pausers, PortQueues};
use super::size::links::{Links, Report};
use super::{
    ControlFrame, Machine, Numbers, Parameters, PauseScope, QueueEntry, Queueing, RelayOrder, Scheme, Seen,
    Traits,
};
use bound::Bound;
use frame::PortPauseFrame;
use map::{QueueMap, Role};
use std::ops::Range;
use std::sync::Arc;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_net::topology::{NodeKind, Topology};
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Note, Ran};
use xoff_wire::queue_pause::Target;

/// The part of PortFC that is left out, to show its effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// One flag for both sets of queues of a port, as Algorithms 1 and 2 print it.
    pub one_flag: bool,
    /// Nodes keep frames about a DDQ to themselves.
    pub no_signal_relay: bool,
    /// The longest `queueLen` of a set decides, in the place of its sum.
    pub longest_alone: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortFcParams {
    /// Which queues there are.
    pub map: Arc<QueueMap>,
    /// By position in the plan's hops: the queue there, at a node's port that of the node's own packets.
    pub queue_at: Arc<[u16]>,
    /// By port, in bytes: X_off of the IHFQs together, X_on, X̂_off of the DDQ, X̂_on.
    pub xoff: Vec<u64>,
    pub xon: Vec<u64>,
    pub ddq_xoff: Vec<u64>,
    pub ddq_xon: Vec<u64>,
    /// The lane of data; HQ has another one.
    pub lane: u8,
    pub relay_order: RelayOrder,
    pub variant: Variant,
    /// From the arrival of a frame's last bit until it takes effect.
    pub response_time: Time,
    /// By device: the memory that suffices there while relay queues are short; of nodes nothing is known.
    pub needs: Vec<Bound>,
    /// Why no memory is known to suffice: relay queues need not stay short, or pauses come too late.
    pub doubts: Vec<Doubt>,
}

impl Parameters for PortFcParams {
    fn traits(&self) -> Traits {
        let (switch, relay) = (self.map.of_switch(), self.map.relay());
        let numbers = Numbers { switch, relayed: (relay, 1), own: (0, relay) };
        Traits {
            response_time: self.response_time,
            relay_order: self.relay_order,
            pause_scope: PauseScope::Onward,
            queueing: Queueing::Numbered { numbers, acks: false, pulls: false, lowest: false },
            ..Traits::NONE
        }
    }

    fn onward_queues(&self) -> Option<&dyn OnwardQueues> {
        Some(self)
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        let shown = |values: &[u64]| range(&values[..seen.links], |&b| Bytes(b).to_string());
        let order = match self.relay_order {
            RelayOrder::First => "before their own traffic",
            RelayOrder::Turns => "in turn with their own traffic",
            RelayOrder::Last => "after their own traffic",
        };
        let of_switches = match self.map.tiers {
            false => format!("{} queues of each switch port", self.map.n + 1),
            true => {
                let (to_host, to_switch) = (self.map.n + 1, self.map.of_switch() + 1);
                format!("{to_host} queues of each switch port to a host, {to_switch} of each to a switch")
            }
        };
        let mut text = format!(
            "(forwarding queues: xoff {}, xon {}; direct queues: xoff {}, xon {}; response time {})\n  \
             {of_switches}, {} of each host port; hosts serve relayed packets {order}",
            shown(&self.xoff),
            shown(&self.xon),
            shown(&self.ddq_xoff),
            shown(&self.ddq_xon),
            Span(self.response_time),
            self.map.of_node() + 1,
        );
        if self.variant.one_flag {
            text += "; one flag for both kinds of queues";
        }
        if self.variant.no_signal_relay {
            text += "; hosts do not forward frames";
        }
        if self.variant.longest_alone {
            text += "; the longest forwarding queue decides, not their sum";
        }
        if let Some(most) = self.needs.iter().max_by_key(|bound| bound.total()) {
            text += &format!(
                "\n  proven buffer of a switch while relay queues are short: {} ({} for thresholds, {} and {} for packets in flight \
                 to forwarding and direct queues)",
                Bytes(most.total()),
                Bytes(most.thresholds),
                Bytes(most.forwarding),
                Bytes(most.direct),
            );
        }
        if !self.doubts.is_empty() {
            text += &format!("\n  not proven here: {}", self.why_unproven());
        }
        text
    }

    fn compare(&self, links: &Links<'_>, report: &mut Report) -> bool {
        size::compare(links, self, report);
        true
    }

    fn notes(&self, ran: &Ran<'_>) -> Vec<Note> {
        let why = match (self.variant.one_flag, ran.loses_frames) {
            (true, _) => "with flow_control.flags = \"one\" a resume may never be sent",
            (false, true) => "PortFC sends each resume once, and a link can lose it",
            (false, false) => return Vec::new(),
        };
        remarks::paused_permanently(ran, why).into_iter().collect()
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        let then = self.xoff.iter().chain(&self.ddq_xoff).min().map_or(String::new(), |&least| {
            format!("; a queue is paused at {} or more", human::bytes(least))
        });
        let help = "To make it pause, raise the load or the fan-in, or lower flow_control.xoff.";
        // It looks at switches' queues only.
        remarks::never_paused(ran, "PortFC", |port| !self.map.place(port).node, &then, help)
    }

    /// Where memory is known that suffices, which rests on relay queues that stay short.
    fn promises_no_loss(&self, ran: &Ran<'_>) -> bool {
        let short = |host: u32| {
            let packets = bound::SHORT * ran.topology.relay_ports(host).len() as u64;
            ran.outcome.buffer_peaks[host as usize] <= packets * u64::from(ran.largest)
        };
        self.doubts.is_empty() && ran.topology.hosts().all(short)
    }

    fn full_buffer_help(&self, kind: NodeKind) -> Option<&'static str> {
        Some(match kind {
            NodeKind::Host => {
                "Under PortFC hosts send no pauses. Raise host.buffer, serve relayed packets first \
                 (flow_control.relay_queue), or choose a transport.congestion_control."
            }
            NodeKind::Switch => {
                "Raise switch.buffer (xoff topo shows the proven size), lower flow_control.xoff, or \
                 choose a transport.congestion_control."
            }
        })
    }

    fn start(&self, ports: usize, _priorities: &[u8]) -> FlowControl {
        FlowControl::PortFc(PortFc::new(self, ports))
    }
}

impl OnwardQueues for PortFcParams {
    fn scheme(&self) -> &'static str {
        "PortFC"
    }

    fn lane(&self) -> u8 {
        self.lane
    }

    fn of_host(&self) -> u16 {
        self.map.of_node()
    }

    fn relay(&self) -> u16 {
        self.map.relay()
    }

    fn at_host(&self, port: u32) -> bool {
        self.map.place(port).node
    }

    fn queue(&self, route: &[u32]) -> u16 {
        self.map.queue(route)
    }

    fn refuses(&self, route: &[u32]) -> bool {
        self.map.climbs_again(route)
    }

    fn relays(&self, route: &[u32]) -> usize {
        self.map.relays(route)
    }

    fn climb(&self, route: &[u32]) -> usize {
        self.map.climb(route)
    }

    fn queue_at(&self, position: u32) -> u16 {
        self.queue_at[position as usize]
    }

    fn together(&self, queue: u16) -> Range<u16> {
        self.map.set(queue)
    }

    fn pausers(&self, port: u32, queue: u16) -> Option<Pausers> {
        let (map, congested) = (&self.map, self.map.leads_to(port, queue)?);
        let over_relay = map.role(port, queue) == Role::Ihfq && !map.to_switch(port);
        // Without the relay of signals no frame about a DDQ comes over a node.
        if over_relay && self.variant.no_signal_relay {
            return None;
        }
        let direct = over_relay || queue >= map.n - 1;
        let (first, xon) = if direct { (map.n - 1, &self.ddq_xon) } else { (0, &self.xon) };
        let (queues, alone) = (map.set(first), self.variant.longest_alone);
        Some(Pausers { port: congested, queues, alone, resume: xon[congested as usize] })
    }

    fn name(&self, port: u32, queue: u16) -> String {
        match self.map.role(port, queue) {
            Role::FourHop => format!("four-hop {queue}"),
            Role::TwoHop => format!("two-hop {queue}"),
            Role::Ihfq => format!("ihfq {queue}"),
            Role::Ddq => "ddq".to_string(),
            Role::Onward => format!("onward {queue}"),
            Role::Relay => "rq".to_string(),
        }
    }

    fn counts(&self, topology: &Topology) -> Vec<[String; 3]> {
        queues::counts(self, topology)
    }

    fn of_port(&self, topology: &Topology, port: u32) -> Option<PortQueues> {
        queues::of_port(self, topology, port)
    }

    fn passes_on(&self) -> bool {
        !self.variant.no_signal_relay
    }

    fn loses_resumes(&self) -> bool {
        self.variant.one_flag
    }
}

impl PortFcParams {
    fn why_unproven(&self) -> String {
        self.doubts.iter().map(|d| d.why()).collect::<Vec<_>>().join("; ")
    }
}

/// Why no memory is known to suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    UnequalRates,
    RelayOrder,
    NoSignalRelay,
    OneFlag,
    NothingSlows,
}

impl Doubt {
    pub fn why(self) -> &'static str {
        match self {
            Self::UnequalRates => "the links of a host differ in rate, and a relay queue can grow",
            Self::RelayOrder => "with this relay_queue hosts do not serve relayed packets first",
            Self::NoSignalRelay => "without relay_signals the switches beyond a relay do not stop sending",
            Self::OneFlag => "with one flag a switch does not always announce a congested queue",
            Self::NothingSlows => {
                "ACKs are served before relayed packets, and relay queues grow: neither \
                 a window nor a congestion control limits the senders"
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Set {
    bytes: u64,
    /// `upstreamIsPaused`.
    paused: bool,
    /// The number of the queue that the last pause named.
    named: u16,
}

/// PortFC on every port of a run; each device's state is independent.
#[derive(Clone, Debug)]
pub struct PortFc {
    params: PortFcParams,
    /// By port: its IHFQs, and its DDQ. Of nodes' ports unused.
    sets: Vec<[Set; 2]>,
    /// By port and queue of a switch, its bytes; empty unless the longest decides.
    alone: Vec<u64>,
}

const IHFQ: usize = 0;
const DDQ: usize = 1;

impl PortFc {
    pub(super) fn new(params: &PortFcParams, ports: usize) -> Self {
        let alone =
            if params.variant.longest_alone { ports * usize::from(params.map.of_switch()) } else { 0 };
        Self { params: params.clone(), sets: vec![[Set::default(); 2]; ports], alone: vec![0; alone] }
    }

    /// `qlen` of a set when a packet has changed the bytes of its queue.
    fn qlen(&mut self, packet: &QueueEntry, set: usize, change: impl Fn(u64) -> u64) -> u64 {
        let port = packet.port as usize;
        let bytes = &mut self.sets[port][set].bytes;
        *bytes = change(*bytes);
        if self.alone.is_empty() {
            return *bytes;
        }
        let map = &self.params.map;
        let alone = &mut self.alone[port * usize::from(map.of_switch())..];
        let own = &mut alone[usize::from(packet.queue)];
        *own = change(*own);
        map.set(packet.queue).map(|queue| alone[usize::from(queue)]).max().unwrap_or(0)
    }

    fn set_of(&self, packet: &QueueEntry) -> Option<usize> {
        let map = &self.params.map;
        let node = map.place(packet.port).node;
        (!node).then(|| if packet.queue < map.n - 1 { IHFQ } else { DDQ })
    }

    /// The flag of a set: its own, or the only one.
    fn flag(&mut self, port: usize, set: usize) -> &mut Set {
        let at = if self.params.variant.one_flag { IHFQ } else { set };
        &mut self.sets[port][at]
    }

    /// Sends word of queue `queue` of `port` through all other ports of its switch.
    fn tell(&self, device: &mut impl Queues, port: u32, queue: u16, pause: bool) {
        let frame = PortPauseFrame { pause, queue, port: self.params.map.place(port).index };
        let others = (0..).map_while(|i| device.port_of(port, i)).filter(|&other| other != port);
        for other in others.collect::<Vec<_>>() {
            device.send_control(other, ControlFrame::PortPause(frame));
        }
    }

    /// Algorithm 3, lines 21 to 23.
    fn relay(&self, device: &mut impl Queues, port: u32, frame: PortPauseFrame) {
        let others = (0..).map_while(|i| device.relay_port(port, i)).filter(|&other| other != port);
        for other in others.collect::<Vec<_>>() {
            device.send_control(other, ControlFrame::PortPause(frame));
        }
    }

    /// The frame about a DDQ that a node passes on when its two-hop queue `queue` of `port` is paused.
    fn relayed(&self, port: u32, queue: u16, pause: bool) -> Option<PortPauseFrame> {
        let map = &self.params.map;
        let place = map.place(port);
        if !place.node || queue < map.n - 1 || self.params.variant.no_signal_relay {
            return None;
        }
        let (index, skipped) = (queue - (map.n - 1), map.place(place.peer).index);
        let congested = if index < skipped { index } else { index + 1 };
        Some(PortPauseFrame { pause, queue: map.n - 1, port: congested })
    }
}

impl Machine for PortFc {}

impl<D: Queues> Scheme<D> for PortFc {
    fn classify(&mut self, _: &mut D, packet: &mut QueueEntry) -> u16 {
        let map = &self.params.map;
        if !packet.own && map.place(packet.port).node {
            return map.relay();
        }
        self.params.queue_at[packet.hop as usize]
    }

    /// Algorithm 1, after its admission.
    fn enqueued(&mut self, device: &mut D, packet: &mut QueueEntry) {
        let Some(set) = self.set_of(packet) else { return };
        let port = packet.port as usize;
        let xoff = if set == IHFQ { self.params.xoff[port] } else { self.params.ddq_xoff[port] };
        let reached = self.qlen(packet, set, |bytes| bytes + u64::from(packet.size)) >= xoff;
        let flag = self.flag(port, set);
        if reached && !flag.paused {
            (flag.paused, flag.named) = (true, packet.queue);
            self.tell(device, packet.port, packet.queue, true);
        }
    }

    /// Algorithm 2.
    fn left(&mut self, device: &mut D, packet: &mut QueueEntry) {
        let Some(set) = self.set_of(packet) else { return };
        let port = packet.port as usize;
        let xon = if set == IHFQ { self.params.xon[port] } else { self.params.ddq_xon[port] };
        let reached = self.qlen(packet, set, |bytes| bytes - u64::from(packet.size)) <= xon;
        let flag = self.flag(port, set);
        if reached && flag.paused {
            flag.paused = false;
            self.tell(device, packet.port, packet.queue, false);
        }
    }

    /// Algorithm 3 at a node, Algorithm 4 at a switch.
    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::PortPause(frame) = frame else { return };
        let map = &self.params.map;
        let Some(queue) = map.named(port, frame.queue, frame.port) else { return };
        let (lane, target) = (self.params.lane, Target::Queue(queue));
        if frame.pause {
            device.pause_queue(port, lane, target);
        } else {
            device.resume_queue(port, lane, target);
        }
        let relays = map.place(port).node && frame.queue >= map.n - 1;
        if relays && !self.params.variant.no_signal_relay {
            self.relay(device, port, *frame);
        }
    }

    /// The link of `port` has failed: its neighbour no longer pauses this port, or relayed packets here.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        if lane != self.params.lane {
            return;
        }
        let node = self.params.map.place(port).node;
        let queues = if node { self.params.map.relay() } else { self.params.map.of_switch() };
        for queue in (0..queues).filter(|&q| device.is_paused(port, lane, q)).collect::<Vec<_>>() {
            device.resume_queue(port, lane, Target::Queue(queue));
            if let Some(frame) = self.relayed(port, queue, false) {
                self.relay(device, port, frame);
            }
        }
    }

    /// The link of `port` is up again, and the peer has reset its state: it receives the active pauses.
    fn link_reset(&mut self, device: &mut D, port: u32) {
        if !self.params.map.place(port).node {
            for other in (0..).map_while(|i| device.port_of(port, i)).collect::<Vec<_>>() {
                let index = self.params.map.place(other).index;
                for set in self.sets[other as usize].iter().filter(|s| s.paused && other != port) {
                    let frame = PortPauseFrame { pause: true, queue: set.named, port: index };
                    device.send_control(port, ControlFrame::PortPause(frame));
                }
            }
            return;
        }
        let lane = self.params.lane;
        for other in (0..).map_while(|i| device.relay_port(port, i)).collect::<Vec<_>>() {
            for queue in self.params.map.n - 1..self.params.map.relay() {
                if other != port
                    && device.is_paused(other, lane, queue)
                    && let Some(frame) = self.relayed(other, queue, true)
                {
                    device.send_control(port, ControlFrame::PortPause(frame));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
