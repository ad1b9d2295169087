//! Runs whose devices exchange real frames: each device is a part, and its packets leave the simulator.
//!
//! A [`Delivery`] is all that passes from one device to another. It holds the content of the packet as its
//! bytes show it, and a label with the rest: the packet's position on its route, its size, the number of its
//! queue, the [notes](Notes) of oracles about it, and telemetry.

use crate::outcome::tap::{Carries, Crosser};
use crate::packet::{Kind, Packet};
use crate::parallel::notes::Notes;
use crate::parallel::outbox::{Outbox, RemoteEvent};
use crate::parallel::pace::{Lateness, Pace};
use crate::{core::Core, parallel::executor::lock};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use xoff_kernel::time::Time;
use xoff_net::topology::{NodeId, PortId};
use xoff_schemes::flow_control::ControlFrame;

/// A packet on its way to the device at the other end of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// When its event is due.
    pub time: Time,
    /// The kind of that event.
    pub kind: u8,
    /// The port that it arrives at.
    pub port: PortId,
    /// The content that its bytes show.
    pub what: Crosser,
    /// The rest.
    pub label: Vec<u8>,
}

/// Carries packets between devices. One thread calls it for each device.
pub trait Wires: Sync {
    /// The calling thread is device `node` from now on.
    ///
    /// # Errors
    /// The system refuses it; so for all methods. The text has what and why.
    fn begin(&self, node: NodeId) -> Result<(), String>;
    /// Sends packets to neighbours of `node`, those to a port in this order.
    ///
    /// # Errors
    /// See [`Wires::begin`].
    fn send(&self, node: NodeId, deliveries: Vec<Delivery>) -> Result<(), String>;
    /// Takes all packets that have come to `node`. Waits until `until` at most for `least` of them.
    ///
    /// # Errors
    /// See [`Wires::begin`], or a frame cannot be read.
    fn take(&self, node: NodeId, least: usize, until: Instant) -> Result<Vec<Delivery>, String>;
}

/// The longest time that a frame takes to cross a wire, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A run over wires.
pub struct Wired<'w> {
    wires: &'w dyn Wires,
    /// The wall clock; without one, parts advance in windows.
    pub pace: Option<&'w Pace>,
    parts: usize,
    /// By sender and receiver: packets that were sent, and those that were taken. A sum over senders would not do:
    /// a packet that is sent while others still take theirs could stand for one that has not come yet.
    sent: Vec<AtomicUsize>,
    taken: Vec<AtomicUsize>,
    /// By part, for packets that came too late: when the last one of a port and kind was due.
    last: Vec<Mutex<BTreeMap<(u32, u8), Time>>>,
    lateness: Mutex<Lateness>,
    failure: Mutex<Option<String>>,
    /// The run has failed, or is interrupted.
    stops: AtomicBool,
}

impl<'w> Wired<'w> {
    pub fn new(wires: &'w dyn Wires, pace: Option<&'w Pace>, parts: usize) -> Self {
        let zeros = || (0..parts * parts).map(|_| AtomicUsize::new(0)).collect();
        Self {
            wires,
            pace,
            parts,
            sent: zeros(),
            taken: zeros(),
            last: (0..parts).map(|_| Mutex::default()).collect(),
            lateness: Mutex::default(),
            failure: Mutex::new(None),
            stops: AtomicBool::new(false),
        }
    }

    /// The first failure ends the run.
    pub fn fail(&self, why: String) {
        lock(&self.failure).get_or_insert(why);
        self.stop();
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.stops.store(true, Ordering::Release);
        if let Some(pace) = self.pace {
            pace.stop();
        }
    }

    pub fn has_stopped(&self) -> bool {
        self.stops.load(Ordering::Acquire) || self.pace.is_some_and(Pace::has_stopped)
    }

    /// Packets that a part has sent to another so far.
    pub fn sent(&self, from: usize, to: usize) -> usize {
        self.sent[from * self.parts + to].load(Ordering::Acquire)
    }

    /// So many packets were sent, of which this process knows only by being told.
    pub fn expect(&self, from: usize, to: usize, packets: usize) {
        self.sent[from * self.parts + to].store(packets, Ordering::Release);
    }

    /// Packets that were sent to a part and that it has not taken.
    fn missing(&self, to: usize) -> usize {
        let taken = |from: usize| self.taken[from * self.parts + to].load(Ordering::Relaxed);
        (0..self.parts).map(|from| self.sent(from, to).saturating_sub(taken(from))).sum()
    }

    pub fn failure(&self) -> Option<String> {
        lock(&self.failure).clone()
    }

    /// Adds the lateness of a part.
    pub fn add(&self, lateness: &Lateness) {
        lock(&self.lateness).add(lateness);
    }

    pub fn lateness(&self) -> Lateness {
        *lock(&self.lateness)
    }

    pub fn begin(&self, part: usize) {
        if let Err(why) = self.wires.begin(part as NodeId) {
            self.fail(why);
        }
    }

    /// Sends everything that a part has posted to others. Returns when the first of it is due.
    pub fn send(&self, core: &mut Core) -> Time {
        let mut first = Time::MAX;
        for part in 0..core.outbox.len() {
            if core.outbox[part].events.is_empty() {
                continue;
            }
            let mut post = std::mem::take(&mut core.outbox[part]);
            let mut deliveries = Vec::with_capacity(post.events.len());
            let mut records = post.records.drain(..);
            for event in post.events.drain(..) {
                first = first.min(event.time);
                let packet = event.packet;
                let is_control = packet.kind == Kind::Control;
                let beside = post.telemetry.next_beside();
                let what = core.crosser(&packet, beside, |slot| &post.frames[slot as usize].0);
                let roots = if is_control { post.frames[packet.number as usize].1 } else { None };
                let record = if is_control { None } else { records.next().flatten() };
                let mut label = Label::of(&packet).emit();
                Notes { roots, record }.emit(&mut label);
                if core.telemetry.travels() && !is_control {
                    post.telemetry.emit(&mut label);
                }
                let RemoteEvent { time, kind, port, .. } = event;
                deliveries.push(Delivery { time, kind, port, what, label });
            }
            drop(records);
            // Counted before they are there.
            self.sent[core.part * self.parts + part].fetch_add(deliveries.len(), Ordering::AcqRel);
            if let Err(why) = self.wires.send(core.part as NodeId, deliveries) {
                self.fail(why);
            }
            post.frames.clear();
            post.telemetry.clear();
            core.outbox[part] = post;
        }
        first
    }

    /// Takes every packet that was sent to a part so far.
    pub fn take_all(&self, core: &mut Core) {
        let least = self.missing(core.part);
        let until = Instant::now() + PATIENCE;
        while self.missing(core.part) > 0 && self.failure().is_none() {
            if Instant::now() >= until {
                let (lost, name) = (self.missing(core.part), &core.plan.topology.nodes[core.part].name);
                self.fail(format!(
                    "{lost} of {least} frames did not reach {name} within 20 s: as root, or with a larger \
                     sysctl net.core.rmem_max, sockets have more room"
                ));
            }
            self.take(core, 1, until);
        }
    }

    /// Takes the packets that have come to a part; waits for `least` of them until `until`. Returns how many
    /// were due before the part's clock.
    pub fn take(&self, core: &mut Core, least: usize, until: Instant) -> u64 {
        let deliveries = self.wires.take(core.part as NodeId, least, until).unwrap_or_else(|why| {
            self.fail(why);
            Vec::new()
        });
        let mut post = Outbox::default();
        let mut late = 0;
        for delivery in deliveries {
            // Each device is a part.
            let from = core.plan.topology.neighbour(delivery.port) as usize;
            self.taken[from * self.parts + core.part].fetch_add(1, Ordering::AcqRel);
            // It was on the link when that failed.
            if core.is_cut(delivery.port, delivery.time) {
                continue;
            }
            let Some(mut event) = self.read(core, &delivery, &mut post) else {
                let port = &core.plan.topology.ports[delivery.port as usize];
                let name = &core.plan.topology.nodes[port.node as usize].name;
                self.fail(format!(
                    "a frame that reached {name} and is due at {} ps is damaged",
                    delivery.time
                ));
                continue;
            };
            if self.pace.is_some() {
                // A port and a kind have one event at a time.
                let mut last = lock(&self.last[core.part]);
                let last = last.entry((event.port, event.kind)).or_insert(0);
                let least = (core.now + 1).max(*last + 1);
                late += u64::from(event.time < least);
                event.time = event.time.max(least);
                *last = event.time;
            }
            post.events.push(event);
        }
        core.receive(&mut post);
        late
    }

    /// The packet of a delivery, beside whose event its other content is put.
    fn read(&self, core: &Core, delivery: &Delivery, post: &mut Outbox) -> Option<RemoteEvent> {
        let (label, rest) = Label::parse(&delivery.label)?;
        let (Notes { roots, record }, telemetry) = Notes::parse(rest)?;
        let mut packet = match &delivery.what {
            Crosser::Frame(bytes) => {
                let frame = ControlFrame::parse(bytes)?;
                let slot = post.frames.len() as u32;
                post.frames.push((frame, roots));
                Packet::new(Kind::Control, crate::packet::NONE, slot, label.size, label.lane, label.hop)
            }
            &Crosser::Packet { flow, lane, carries, marked, .. } => {
                let (kind, number) = match carries {
                    Carries::Data { psn } => (Kind::Data, psn),
                    Carries::Ack { expected, .. }
                    | Carries::Sack { expected, .. }
                    | Carries::CreditedAck { expected, .. } => (Kind::Ack, expected),
                    Carries::Nack { expected, .. } | Carries::Trimmed { psn: expected, .. } => {
                        (Kind::Nack, expected)
                    }
                    Carries::Cnp => (Kind::Cnp, 0),
                    Carries::Header { psn, .. } => (Kind::Header, psn),
                    Carries::Probe { number } => (Kind::Probe, number),
                    Carries::ProbeAck { expected, .. } => (Kind::ProbeAck, expected),
                    Carries::Pull { count } => (Kind::Pull, count),
                    Carries::Credit { number } => (Kind::Pull, number),
                };
                post.records.push(record);
                if core.telemetry.travels() {
                    post.telemetry.parse(&core.telemetry, telemetry)?;
                }
                let mut packet = Packet::new(kind, flow, number, label.size, lane, label.hop);
                packet.marked = marked;
                if let Carries::Nack { expected, arrived: Some(arrived) }
                | Carries::Ack { expected, arrived: Some(arrived) } = carries
                {
                    packet.ahead =
                        Packet::three_bytes(arrived.checked_sub(expected).filter(|n| n >> 24 == 0)?);
                } else {
                    packet.ahead = label.ahead;
                }
                packet
            }
        };
        packet.set_marks(label.marks);
        // A packet has a next hop, or an end, after its own.
        let known = (core.hops.get(packet.hop as usize + 1).is_some() || packet.kind == Kind::Control)
            && core
                .plan
                .topology
                .ports
                .get(delivery.port as usize)
                .is_some_and(|p| p.node as usize == core.part)
            && usize::from(packet.lane) < core.lanes
            && (packet.kind == Kind::Control || (packet.flow as usize) < core.plan.flows.len());
        let &Delivery { time, kind, port, .. } = delivery;
        known.then_some(RemoteEvent { time, kind, port, packet })
    }
}

/// The data of a packet that its bytes do not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Label {
    /// See [`Packet::hop`]: a device of a fabric would find it by a look-up.
    hop: u32,
    /// Bytes on the wire, as the plan counts them.
    size: u32,
    /// See [`Packet::marks`].
    marks: u16,
    /// See [`Packet::ahead`].
    ahead: [u8; 3],
    /// Of a control frame that keeps its place among data.
    lane: u8,
}

/// Bytes of a label without notes and telemetry.
const LABEL: usize = 14;

impl Label {
    fn of(packet: &Packet) -> Self {
        let &Packet { hop, size, ahead, lane, .. } = packet;
        Self { hop, size, marks: packet.marks(), ahead, lane }
    }

    fn emit(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(LABEL);
        bytes.extend(self.hop.to_be_bytes());
        bytes.extend(self.size.to_be_bytes());
        bytes.extend(self.marks.to_be_bytes());
        bytes.extend(self.ahead);
        bytes.push(self.lane);
        bytes
    }

    /// Reads a label; returns it and the bytes after it.
    fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (label, rest) = bytes.split_first_chunk::<LABEL>()?;
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| label[at + i]));
        let marks = u16::from_be_bytes([label[8], label[9]]);
        let ahead = [label[10], label[11], label[12]];
        Some((Self { hop: word(0), size: word(4), marks, ahead, lane: label[13] }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::executor::{run, run_wired};
    use std::sync::{Condvar, PoisonError};
    use xoff_plan::plan::Plan;
    use xoff_schemes::flow_control::registry::FlowControlKeys;

    /// Wires in memory; the so-manyth delivery gets a short label, if any does.
    struct Memory<'p> {
        plan: &'p Plan,
        boxes: Vec<(Mutex<Vec<Delivery>>, Condvar)>,
        sent: AtomicUsize,
        damaged: usize,
    }

    impl<'p> Memory<'p> {
        fn new(plan: &'p Plan, damaged: usize) -> Self {
            let boxes = plan.topology.nodes.iter().map(|_| Default::default()).collect();
            Self { plan, boxes, sent: AtomicUsize::new(0), damaged }
        }
    }

    impl Wires for Memory<'_> {
        fn begin(&self, _: NodeId) -> Result<(), String> {
            Ok(())
        }

        fn send(&self, node: NodeId, deliveries: Vec<Delivery>) -> Result<(), String> {
            for mut delivery in deliveries {
                assert_eq!(self.plan.topology.neighbour(delivery.port), node);
                if self.sent.fetch_add(1, Ordering::Relaxed) + 1 == self.damaged {
                    delivery.label.clear();
                }
                let to = self.plan.topology.ports[delivery.port as usize].node;
                let (waiting, came) = &self.boxes[to as usize];
                lock(waiting).push(delivery);
                came.notify_all();
            }
            Ok(())
        }

        fn take(&self, node: NodeId, least: usize, until: Instant) -> Result<Vec<Delivery>, String> {
            let (waiting, came) = &self.boxes[node as usize];
            let most = until.saturating_duration_since(Instant::now());
            let waits = came.wait_timeout_while(lock(waiting), most, |waiting| waiting.len() < least);
            Ok(std::mem::take(&mut waits.unwrap_or_else(PoisonError::into_inner).0))
        }
    }

    fn plan(scheme: &str, more: &str) -> Option<Plan> {
        let text = format!(
            "[topology]\nkind=\"leaf-spine\"\nleaves=2\nspines=2\nhosts_per_leaf=2\n\
            host_link={{rate=\"100Gbps\",delay=\"1us\"}}\nfabric_link={{rate=\"100Gbps\",delay=\"600ns\"}}\n\
            [flow_control]\nscheme=\"{scheme}\"\n[run]\nduration=\"40us\"\n\
            [[traffic]]\nkind=\"incast\"\nfan_in=3\nsize=\"60kB\"\n\
            [[traffic]]\nkind=\"permutation\"\nsize=\"60kB\"\n{more}"
        );
        let read = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        Some(xoff_plan::load("test.toml", text.as_bytes(), &[], &read).ok()?.plan)
    }

    /// Devices that share nothing but wires have the outcome of the simulator, under every scheme, with losses,
    /// telemetry and all oracles.
    #[test]
    fn wires_carry_everything_that_devices_share() {
        let mut runs = 0;
        let faults = "[measure]\nexplain=true\n[[loss]]\nlink=\"S0.0-S1.0\"\nrate=0.01\n";
        let controlled = |control| format!("[transport]\ncongestion_control=\"{control}\"\n");
        for scheme in FlowControlKeys::names() {
            let requests = "[transport]\nkind=\"ndp\"\n[[loss]]\nlink=\"S0.0-S1.0\"\nrate=0.01\n";
            let credits = controlled("rccc") + "kind=\"rud\"\n[[loss]]\nlink=\"S0.0-S1.0\"\nrate=0.01\n";
            let both = credits.replace("rccc", "nscc+rccc");
            let in_acks = credits.clone() + "[rccc]\nin_acks=true\n";
            for more in
                [faults, &controlled("hpcc"), &controlled("swift"), requests, &credits, &both, &in_acks]
            {
                let Some(plan) = plan(scheme, more) else { continue };
                let (live, _) = run_wired(&plan, &Memory::new(&plan, 0), None, None, &mut |_| true).unwrap();
                assert!(live == run(&plan, 1, None, &mut |_| true), "{scheme} {more}");
                assert!(live.counters.packet_hops > 500, "{scheme}");
                runs += 1;
            }
        }
        assert!(runs >= 30, "{runs} runs");
    }

    /// A damaged frame ends the run, and the error names the receiver.
    #[test]
    fn a_damaged_frame_is_an_error() {
        let plan = plan(FlowControlKeys::default().name(), "").unwrap();
        let made = run_wired(&plan, &Memory::new(&plan, 99), None, None, &mut |_| true);
        let why = made.map(|_| ()).unwrap_err();
        assert!(why.starts_with("a frame that reached ") && why.ends_with(" is damaged"), "{why}");
    }

    #[test]
    fn a_label_survives_the_wire_and_a_short_one_is_refused() {
        let label = Label { hop: 1, size: 1048, marks: 0x8003, ahead: [4, 5, 6], lane: 7 };
        let mut bytes = label.emit();
        assert_eq!(Label::parse(&bytes), Some((label, &[][..])));
        bytes.push(9);
        assert_eq!(Label::parse(&bytes), Some((label, &[9][..])));
        assert_eq!(Label::parse(&bytes[..LABEL - 1]), None);
    }
}
