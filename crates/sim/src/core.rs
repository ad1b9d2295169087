//! The state of every device, flat and by index, and what can be done to it
//! without asking the flow control.

use crate::faults::Faults;
use crate::host::congestion::{Controls, Windows, notification_points};
use crate::host::first_hop::{self, Source};
use crate::host::selective::{self, SelectiveReceiver, SelectiveSender};
use crate::host::{ReceiverState, SenderState};
use crate::observe::Observed;
use crate::oracle::blocking::{NO_ROOT, Oracle, Roots};
use crate::oracle::critical::Record;
use crate::outcome::Pause;
use crate::packet::{Arena, Kind, NONE, Packet};
use crate::parallel::partition::Partition;
use crate::switch::arbiter::Arbiter;
use crate::switch::balancing::{self, Chooser, Labelled};
use crate::switch::buffer::{Account, Memory, Profile};
use crate::switch::causes::Causes;
use crate::switch::control_plane::Enlarged;
use crate::switch::leaves::{Leaves, Newcomer};
use crate::switch::modes::Modes;
use crate::switch::port::{Discipline, Port, Queue, Rounds, Wire, lane_mask};
use crate::switch::telemetry::{Parcel, Telemetry};
use crate::tap::Taps;
use std::collections::BTreeMap;
use xoff_kernel::random::Stream;
use xoff_kernel::time::Time;
use xoff_kernel::wheel::{Event, Wheel, prefetch};
use xoff_net::topology::NodeKind;
use xoff_outcome::report::Cause;
use xoff_plan::balancing::Ahead;
use xoff_plan::plan::{DELIVER, ENDS, Limit, Plan, Red};
use xoff_schemes::congestion_control::dcqcn::NotificationPoint;
use xoff_schemes::flow_control::{
    ControlFrame, Crossing, Device, Effect, LaneRules, Mode, Onward, Target, device,
};

/// How many events ahead of the current one what it names is fetched …
const FETCH_FIRST: usize = 10;
/// … and what that points to.
const FETCH_SECOND: usize = 4;

/// Kinds of events; their order is that of events at one time.
pub mod kind {
    /// A port's link fails (data 1) or recovers (0). Element: port. Or routes
    /// change. Element: [`crate::faults::ROUTES`]. Data: the change.
    pub const FAULT: u8 = 0;
    /// A port's wire is free and something waits: choose it. Element: port.
    pub const DECISION: u8 = 1;
    /// A packet's last bit arrives. Element: the receiving port. Data: packet.
    pub const ARRIVAL: u8 = 2;
    /// A control frame takes effect. Element: the receiving port. Data: packet.
    pub const CONTROL: u8 = 3;
    /// A timer of the flow control. Element: timer. Data: generation.
    pub const TIMER: u8 = 4;
    /// A retransmission timer. Element: flow.
    pub const TIMEOUT: u8 = 5;
    /// A paced flow may send again. Element: flow.
    pub const PACE: u8 = 6;
    /// A slow receiver stops (data 1) or goes on (0). Element: receiver.
    pub const STALL: u8 = 7;
    /// The next flows of the plan begin.
    pub const FLOWS: u8 = 8;
    /// The flows behind a gate begin. Element: gate.
    pub const GATE: u8 = 9;
    /// A frame that keeps its place among data arrives. Element: the receiving port. Data: packet.
    pub const BARRIER: u8 = 10;
    /// The flow control settles an account, behind everything else at that time. Element: port. Data: lane.
    pub const SETTLE: u8 = 11;
    /// The last packet of a flow has left its source, and the arbiter may let others have its ends.
    /// Element: flow.
    pub const LEFT: u8 = 12;
}

/// What leaves for a device that another thread runs: an event to come there.
#[derive(Clone, Copy, Debug)]
pub struct Letter {
    /// When its event comes, as [`kind::ARRIVAL`] or [`kind::CONTROL`] …
    pub time: Time,
    kind: u8,
    /// … at this port.
    port: u32,
    packet: Packet,
}

/// What leaves for one other part.
#[derive(Debug, Default)]
pub struct Letters {
    pub letters: Vec<Letter>,
    /// What the control packets among them say, in their order; by
    /// [`Packet::number`]. With what they carry for the blocking oracle.
    frames: Vec<(ControlFrame, Option<Roots>)>,
    /// Telemetry of the other packets among them, if there is any.
    telemetry: Parcel,
    /// Of the others, in their order: what they have been through. Only with critical paths.
    records: Vec<Option<Record>>,
}

/// Everything but the flow control's own state. All arrays are those of the
/// whole plan; a part of a run uses what belongs to its devices.
pub struct Core<'a> {
    pub plan: &'a Plan,
    pub partition: &'a Partition,
    /// Which part of the run this is.
    pub part: usize,
    /// What leaves for each other part.
    pub outbox: Vec<Letters>,
    pub now: Time,
    pub wheel: Wheel,
    pub packets: Arena,
    /// What control packets say, by [`Packet::number`]; with the free slots.
    frames: Vec<ControlFrame>,
    free_frames: Vec<u32>,
    pub hops: &'a [u32],
    /// How packets change lanes on their way, if they do.
    pub lane_rules: Option<&'a LaneRules>,
    pub ports: Vec<Port>,
    pub queues: Vec<Queue>,
    pub rounds: Rounds,
    /// Queues by flow, if the flow control wants them.
    pub leaves: Leaves,
    pub newcomer: Newcomer,
    pub discipline: Discipline,
    pub lanes: usize,
    pub egress: Vec<Egress>,
    pub accounts: Vec<Account>,
    pub profiles: Vec<Profile>,
    pub memories: Vec<Memory>,
    /// By port; empty without ECN.
    pub marking: Vec<Stream>,
    /// By port and lane, where marking goes with the port's rate; else empty.
    reds: Vec<Option<Red>>,
    /// Some lane marks packets that leave.
    pub marks_at_dequeue: bool,
    /// Nobody is to be told when packets join and leave queues: there are no queues
    /// by flow, no marks at dequeue, no telemetry and no blocking oracle, and the flow
    /// control is not asked whether a packet may leave.
    pub plain_queues: bool,
    /// The same while no device of this part is in a loop.
    plan_queues: bool,
    /// The flow control is asked whether a packet may leave.
    pub asks_to_leave: bool,
    /// By port and lane: bytes that have arrived, each packet in whole cells. Empty
    /// unless the flow control wants to know.
    pub received: Vec<u64>,
    /// Queues of devices of this part that belong to loops which are being dissolved.
    pub loops: u32,
    /// The flow control is told what is stored and freed: of every packet, or while a device of this part
    /// is in a loop.
    pub tells_storage: bool,
    /// It is asked about charges; then it is told of storage, too.
    pub follows_charges: bool,
    /// By port and lane of such a queue: what waits beside it, in its order.
    pub aside: BTreeMap<(u32, u8), Vec<u32>>,
    /// Which ingress queues wait for which egress queues, if the flow control wants to know.
    pub causes: Causes,
    /// Bytes of the cells in which accounts count, less one.
    cell_mask: u32,
    pub senders: Vec<SenderState>,
    /// Decides who of them may send, if there is one.
    pub arbiter: Option<Arbiter>,
    pub receivers: Vec<ReceiverState>,
    /// By flow; empty under go-back-N.
    pub selective_senders: Vec<SelectiveSender>,
    pub selective_receivers: Vec<SelectiveReceiver>,
    /// What sets the rates of flows.
    pub controls: Controls,
    /// Every answer is told to it.
    pub hears_answers: bool,
    /// Windows that follow rates, if they do.
    pub windows: Windows,
    /// By packet; empty unless packets carry any.
    pub telemetry: Telemetry,
    /// By flow; empty unless receivers tell of marks.
    pub notifications: Vec<NotificationPoint>,
    /// By host; empty unless they choose the first hops of their flows.
    pub sources: Vec<Source>,
    /// Devices that choose the way on of each packet, if they do.
    pub chooser: Option<Box<Chooser<'a>>>,
    /// By flow; empty unless senders change the labels of their flows.
    pub labelled: Vec<Labelled>,
    /// By flow, the same: marked data packets since the last answer that told of them.
    pub echoes: Vec<u32>,
    /// By gate: deliveries that it still waits for. Empty without gates.
    pub gates: Vec<u32>,
    /// Generation of each timer of the flow control.
    timers: Vec<u32>,
    /// Links that fail or lose.
    pub faults: Faults,
    /// Queues that do not simply obey.
    pub modes: Modes,
    /// Accounts that have got more room.
    pub enlarged: Enlarged,
    /// Packets that are to be dropped once the flow control has returned: from an ingress port,
    /// at an egress port, in a lane.
    pub evictions: Vec<(u32, u32, u8, &'static Cause)>,
    /// From a control frame's arrival until it takes effect.
    pub response_time: Time,
    pub observed: Observed,
    /// The congested port that the frame names which takes effect now, or [`NONE`].
    pub named: u32,
    /// The head-of-line blocking oracle, if the plan asks for it.
    pub blocking: Option<Box<Oracle>>,
    /// Ports at which somebody looks at what crosses them.
    pub taps: Taps,
}

/// Width of the wheel's buckets: shorter where more happens at once.
fn bucket_bits(plan: &Plan) -> u32 {
    let bits = f64::from(plan.packet.mtu + plan.packet.header) * 8.0;
    let per_ps: f64 = plan
        .topology
        .hosts()
        .filter_map(|host| plan.topology.nodes[host as usize].ports.first())
        .map(|&port| plan.topology.ports[port as usize].rate as f64 / bits / 1e12)
        .sum();
    // Packets sent at full load during a bucket: a few, for each makes some ten
    // events on its way and few hosts send at full load.
    (9..14).find(|&b| f64::from(1u32 << b) * per_ps > 2.5).unwrap_or(14)
}

/// The memory of the device of `port`, if `account` is charged to a buffer within it.
#[inline(always)]
pub fn around<'m>(
    memories: &'m mut [Memory],
    plan: &Plan,
    account: &Account,
    port: u32,
) -> Option<&'m mut Memory> {
    let topology = &plan.topology;
    let within = account.memory as usize >= topology.nodes.len();
    within.then(|| &mut memories[topology.ports[port as usize].node as usize])
}

/// What applies to the egress queues of a lane.
#[derive(Clone, Copy, Debug)]
pub struct Egress {
    pub limit: Limit,
    pub lossless: bool,
    pub ecn: Option<Red>,
}

impl<'a> Core<'a> {
    /// The devices of a plan, idle at time 0, of which `part` will run its own.
    pub fn new(plan: &'a Plan, partition: &'a Partition, part: usize, timers: usize) -> Self {
        let lanes = plan.lanes.len();
        let topology = &plan.topology;
        let queues_per_port = 1 + 2 * lanes;
        let labelled = balancing::labelled(plan);
        let mut inner = vec![false; topology.ports.len()];
        for receiver in &plan.receivers {
            inner[receiver.rx as usize] = true;
            inner[topology.ports[receiver.rx as usize].peer as usize] = true;
        }
        let faults = Faults::new(plan);
        let ports: Vec<Port> = topology
            .ports
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let wire = match () {
                    () if inner[i] => Wire::Inner,
                    () if faults.is_faulty(i as u32) => Wire::Faulty,
                    () if partition.of(p.node) == part
                        && partition.of(topology.ports[p.peer as usize].node) != part =>
                    {
                        Wire::Away
                    }
                    () => Wire::Link,
                };
                Port::new(p.rate, p.delay, p.peer, (i * queues_per_port) as u32, p.node, wire)
            })
            .collect();
        let discipline = Discipline::new(
            &plan.lanes.iter().map(|l| (l.tier, l.quantum)).collect::<Vec<_>>(),
            plan.flow_control.traits().relay_order,
        );
        let mut profiles: Vec<Profile> = Vec::new();
        let accounts = plan
            .accounts
            .iter()
            .enumerate()
            .map(|(i, a)| {
                let profile = Profile::new(a);
                let at = profiles.iter().position(|p| *p == profile).unwrap_or_else(|| {
                    profiles.push(profile);
                    profiles.len() - 1
                });
                let kind = u16::try_from(at).expect("at most 65536 kinds of accounts");
                Account::new(a.pool.unwrap_or(topology.ports[i / lanes].node), kind)
            })
            .collect();
        let leaves = Leaves::new(plan, ports.len() * queues_per_port);
        let lists = ports.len() * queues_per_port + leaves.len();
        let marks = plan.lanes.iter().any(|l| l.ecn.is_some());
        let marks_at_dequeue = plan.lanes.iter().any(|l| l.ecn.is_some_and(|red| red.at_dequeue));
        let telemetry = Telemetry::new(plan);
        let asks_to_leave = plan.flow_control.traits().asks_to_leave;
        let plain_queues = !leaves.used()
            && !marks_at_dequeue
            && !telemetry.used()
            && !plan.measure.blocking
            && !asks_to_leave;
        let counted = if plan.flow_control.traits().counts_arrivals { ports.len() * lanes } else { 0 };
        let scales = plan.lanes.iter().any(|l| l.ecn.is_some_and(|red| red.per > 0));
        let red_at = |rate: u64| plan.lanes.iter().map(move |l| l.ecn.map(|red| red.at(rate)));
        let reds: Vec<Option<Red>> =
            if scales { topology.ports.iter().flat_map(|p| red_at(p.rate)).collect() } else { Vec::new() };
        let mut core = Self {
            now: 0,
            wheel: Wheel::new(bucket_bits(plan)),
            packets: Arena::new(),
            frames: Vec::new(),
            free_frames: Vec::new(),
            hops: &plan.hops,
            lane_rules: plan.flow_control.lane_rules(),
            queues: vec![Queue::default(); lists],
            leaves,
            newcomer: Newcomer::None,
            rounds: discipline.rounds(ports.len()),
            discipline,
            lanes,
            egress: plan
                .lanes
                .iter()
                .enumerate()
                .map(|(i, l)| {
                    // Where it differs by port, the least: whoever exceeds it looks closer.
                    let least = reds.iter().skip(i).step_by(lanes).flatten().map(|r| r.k_min).min();
                    let ecn = l.ecn.map(|red| Red { k_min: least.unwrap_or(red.k_min), ..red });
                    Egress { limit: l.egress_limit, lossless: l.lossless, ecn }
                })
                .collect(),
            accounts,
            profiles,
            memories: plan.buffers.iter().map(Memory::new).collect(),
            marking: if marks {
                (0..ports.len() as u64).map(|p| Stream::new(plan.seed, "ECN", p)).collect()
            } else {
                Vec::new()
            },
            reds,
            marks_at_dequeue,
            plain_queues,
            plan_queues: plain_queues,
            asks_to_leave,
            received: vec![0; counted],
            loops: 0,
            tells_storage: plan.flow_control.traits().hears_storage,
            follows_charges: false,
            aside: BTreeMap::new(),
            causes: match plan.flow_control.traits().knows_causes {
                true => Causes::new(plan),
                false => Causes::default(),
            },
            cell_mask: plan.flow_control.traits().cell - 1,
            arbiter: Arbiter::new(plan),
            senders: (0..plan.flows.len()).map(|f| SenderState::new(plan, f)).collect(),
            selective_senders: selective::senders(plan),
            selective_receivers: selective::receivers(plan),
            controls: Controls::new(plan),
            hears_answers: false,
            windows: Windows::default(),
            telemetry,
            notifications: notification_points(plan),
            receivers: plan.flows.iter().map(|f| ReceiverState::new(plan, f)).collect(),
            sources: first_hop::sources(plan),
            chooser: Chooser::new(plan),
            echoes: vec![0; labelled.len()],
            labelled,
            gates: plan.gates.iter().map(|g| g.waits).collect(),
            timers: vec![0; timers],
            faults,
            modes: Modes::default(),
            enlarged: Enlarged::default(),
            evictions: Vec::new(),
            response_time: plan.flow_control.traits().response_time,
            observed: Observed::new(plan, ports.len(), lanes),
            named: NONE,
            blocking: plan.measure.blocking.then(|| Box::new(Oracle::new(plan, lists))),
            taps: Taps::default(),
            ports,
            plan,
            partition,
            part,
            outbox: (0..partition.parts).map(|_| Letters::default()).collect(),
        };
        core.begin_control();
        core
    }

    /// Bytes that a packet of `size` bytes is charged: whole cells.
    #[inline(always)]
    pub fn in_cells(&self, size: u32) -> u64 {
        u64::from((size + self.cell_mask) & !self.cell_mask)
    }

    /// The index of an account.
    #[inline(always)]
    pub fn account(&self, port: u32, lane: u8) -> usize {
        port as usize * self.lanes + usize::from(lane)
    }

    /// Gives back `bytes` of what an account was charged. Nobody is told what it crosses.
    #[inline(always)]
    pub fn release(&mut self, account: u32, bytes: u64) -> Option<Crossing> {
        let a = &mut self.accounts[account as usize];
        let profile = &self.profiles[usize::from(a.profile)];
        let crossing = a.release(bytes, &mut self.memories[a.memory as usize], profile);
        let port = account / self.lanes as u32;
        if let Some(whole) = around(&mut self.memories, self.plan, a, port) {
            whole.let_go(bytes);
        }
        crossing
    }

    /// Notes that an account crosses a threshold. Answers which the flow control is told: over a link that
    /// is down it tells nobody.
    #[cold]
    pub fn crosses(&mut self, account: u32, crossing: Crossing) -> Option<Crossing> {
        match crossing {
            Crossing::Over => drop(self.observed.over_since.insert(account, self.now)),
            Crossing::Under => drop(self.observed.over_since.remove(&account)),
        }
        let up = !self.is_down(account / self.lanes as u32);
        up.then_some(crossing)
    }

    /// Counts a packet that has arrived at `port`.
    #[cold]
    pub fn count_arrival(&mut self, port: u32, id: u32) {
        let packet = &self.packets[id];
        let (size, at) = (packet.size, port as usize * self.lanes + usize::from(packet.lane));
        self.received[at] += self.in_cells(size);
    }

    /// Whether this part runs `node`.
    #[inline]
    pub fn owns(&self, node: u32) -> bool {
        self.partition.of(node) == self.part
    }

    /// A packet leaves for `port`, which another part may run.
    #[inline(never)]
    pub fn send_over(&mut self, time: Time, kind: u8, port: u32, id: u32) {
        let part = self.partition.of(self.ports[port as usize].node);
        if part == self.part {
            return self.post(time, kind, port, id);
        }
        let mut packet = self.packets[id];
        if packet.kind == Kind::Control {
            let roots = self.blocking.as_ref().map(|oracle| oracle.roots_of(packet.number));
            let frame = self.take_frame(id);
            packet.number = self.outbox[part].frames.len() as u32;
            self.outbox[part].frames.push((frame, roots));
        } else {
            if self.telemetry.used() {
                self.telemetry.pack(id, &mut self.outbox[part].telemetry);
            }
            if let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_mut()) {
                self.outbox[part].records.push(critical.take(id));
            }
            self.packets.remove(id);
        }
        self.outbox[part].letters.push(Letter { time, kind, port, packet });
    }

    /// Takes in what another part has sent.
    pub fn receive(&mut self, post: &mut Letters) {
        let mut records = post.records.drain(..);
        for letter in post.letters.drain(..) {
            let mut packet = letter.packet;
            if packet.kind == Kind::Control {
                let (frame, roots) = post.frames[packet.number as usize];
                packet.number = self.keep_frame(frame);
                if let (Some(oracle), Some(roots)) = (&mut self.blocking, roots) {
                    oracle.keep(packet.number, roots);
                }
            }
            let id = self.packets.insert(packet);
            if self.telemetry.used() && packet.kind != Kind::Control {
                self.telemetry.unpack(id, &mut post.telemetry);
            }
            if packet.kind != Kind::Control
                && let Some(critical) = self.blocking.as_mut().and_then(|oracle| oracle.critical.as_mut())
            {
                critical.keep(id, records.next().flatten());
            }
            self.post(letter.time, letter.kind, letter.port, id);
        }
        post.frames.clear();
        post.telemetry.clear();
    }

    /// Stores what a control packet says; answers its slot.
    fn keep_frame(&mut self, frame: ControlFrame) -> u32 {
        match self.free_frames.pop() {
            Some(slot) => {
                self.frames[slot as usize] = frame;
                slot
            }
            None => {
                self.frames.push(frame);
                (self.frames.len() - 1) as u32
            }
        }
    }

    #[inline]
    pub fn post(&mut self, time: Time, kind: u8, element: u32, data: u32) {
        self.wheel.push(Event::new(time, kind, element, data));
    }

    /// Fetches what the coming events will touch: first what they name, then,
    /// nearer to them, what that points to. Decides nothing.
    #[inline]
    pub fn fetch_ahead(&self) {
        if let Some(event) = self.wheel.peek(FETCH_FIRST) {
            // A decision names no packet; what is fetched then is not needed, and
            // that costs less than a branch that nobody can predict.
            prefetch(self.packets.slots(), event.data as usize);
            if event.kind() == kind::DECISION {
                prefetch(&self.ports, event.element() as usize);
            } else {
                prefetch(&self.accounts, event.element() as usize * self.lanes);
            }
        }
        if let Some(event) = self.wheel.peek(FETCH_SECOND) {
            match event.kind() {
                kind::DECISION => {
                    let p = &self.ports[event.element() as usize];
                    let queue = p.first_queue + p.eligible().trailing_zeros();
                    prefetch(&self.queues, queue as usize);
                }
                kind::ARRIVAL => {
                    let packet = &self.packets[event.data];
                    let next = self.hops[packet.hop as usize + 1];
                    if next < ENDS {
                        prefetch(&self.ports, next as usize);
                        let queue = next as usize * (1 + 2 * self.lanes) + 1 + usize::from(packet.lane);
                        prefetch(&self.queues, queue);
                    } else if next == DELIVER {
                        if packet.kind == Kind::Data {
                            prefetch(&self.receivers, packet.flow as usize);
                        } else {
                            prefetch(&self.senders, packet.flow as usize);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Appends a packet to a queue of `port`. The caller then kicks the port.
    #[inline]
    pub fn enqueue(&mut self, port: u32, queue: usize, id: u32) {
        if let Some(oracle) = &mut self.blocking {
            let p = &self.ports[port as usize];
            oracle.packet_joins(p.first_queue as usize + queue, id, p.paused >> queue & 1 == 1, self.now);
        }
        self.append(port, queue, id);
    }

    /// The same for an answer of the host itself: it waits beside a queue that is part of a loop.
    #[inline(always)]
    pub fn enqueue_own(&mut self, port: u32, lane: u8, id: u32) {
        match self.loops {
            0 => self.enqueue(port, 1 + usize::from(lane), id),
            _ => self.enqueue_beside(port, lane, id),
        }
    }

    #[cold]
    fn enqueue_beside(&mut self, port: u32, lane: u8, id: u32) {
        match self.aside.get_mut(&(port, lane)) {
            Some(aside) => aside.push(id),
            None => self.enqueue(port, 1 + usize::from(lane), id),
        }
    }

    /// The same, and nobody is told.
    #[inline(always)]
    pub fn append(&mut self, port: u32, queue: usize, id: u32) {
        let p = &mut self.ports[port as usize];
        let q = &mut self.queues[p.first_queue as usize + queue];
        let packet = &mut self.packets[id];
        packet.next = NONE;
        q.bytes += u64::from(packet.size);
        q.peak = q.peak.max(q.bytes);
        let tail = std::mem::replace(&mut q.tail, id);
        if tail == NONE {
            q.head = id;
            p.ready |= 1 << queue;
        } else {
            self.packets[tail].next = id;
        }
    }

    /// Puts a packet ahead of all others in a queue of `port`. Nobody is told.
    pub fn prepend(&mut self, port: u32, queue: usize, id: u32) {
        let q = &mut self.queues[self.ports[port as usize].first_queue as usize + queue];
        if q.head == NONE {
            return self.append(port, queue, id);
        }
        let packet = &mut self.packets[id];
        packet.next = std::mem::replace(&mut q.head, id);
        q.bytes += u64::from(packet.size);
        q.peak = q.peak.max(q.bytes);
    }

    /// Takes the first packet of a queue that has one.
    #[inline]
    pub fn dequeue(&mut self, port: u32, queue: usize) -> u32 {
        let id = self.unlink(port, queue);
        if let Some(oracle) = &mut self.blocking {
            let list = self.ports[port as usize].first_queue as usize + queue;
            oracle.packet_leaves(list, id, &self.packets[id], self.plan);
        }
        id
    }

    /// The same, and nobody is told.
    #[inline(always)]
    pub fn unlink(&mut self, port: u32, queue: usize) -> u32 {
        let p = &mut self.ports[port as usize];
        let q = &mut self.queues[p.first_queue as usize + queue];
        let id = q.head;
        let packet = &self.packets[id];
        q.head = packet.next;
        prefetch(self.packets.slots(), packet.next as usize);
        q.bytes -= u64::from(packet.size);
        q.data_packets += u64::from(packet.kind == Kind::Data);
        if q.head == NONE {
            q.tail = NONE;
            p.ready &= !(1 << queue);
        }
        id
    }

    /// Whether RED marks a packet of `lane` whose queue at `port` holds `queued` bytes.
    /// A relay in a long link is no switch, and marks nothing.
    pub fn marks(&mut self, port: u32, lane: usize, queued: u64) -> bool {
        let by_port = self.reds.get(port as usize * self.lanes + lane).copied().flatten();
        let Some(red) = by_port.or(self.egress[lane].ecn) else { return false };
        if queued <= red.k_min || self.plan.topology.is_relay(self.ports[port as usize].node) {
            false
        } else if queued >= red.k_max {
            true
        } else {
            let share = (queued - red.k_min) as f64 / (red.k_max - red.k_min) as f64;
            self.marking[port as usize].unit() < red.p_max * share
        }
    }

    /// Marks a packet that leaves `queue` of `port`, by what it leaves behind.
    #[cold]
    pub fn mark_leaving(&mut self, port: u32, queue: usize, id: u32) {
        let packet = &self.packets[id];
        let lane = usize::from(packet.lane);
        let marking = self.egress[lane].ecn.is_some_and(|red| red.at_dequeue);
        if !marking || packet.kind != Kind::Data {
            return;
        }
        let behind = self.queues[self.ports[port as usize].first_queue as usize + queue].bytes;
        if self.marks(port, lane, behind) {
            self.packets[id].marked = true;
            self.observed.control[port as usize][2] += 1;
        }
    }

    /// Posts a transmission decision for `port` at the first time it can
    /// transmit, if something may go and none is pending.
    pub fn post_decision(&mut self, port: u32) {
        let p = &mut self.ports[port as usize];
        if !p.pending && p.eligible() != 0 {
            p.pending = true;
            let at = p.free_at.max(self.now);
            self.post(at, kind::DECISION, port, 0);
        }
    }

    /// A pause of a lane, or of one of its queues, that begins now.
    pub fn new_pause(&mut self, port: u32, lane: u8, queue: Option<u32>) -> Pause {
        let priority = self.plan.lanes[usize::from(lane)].priority;
        let named = self.named;
        let root =
            self.blocking.as_mut().map_or(NO_ROOT, |oracle| oracle.pause_begins(port, priority, named));
        Pause {
            port,
            lane,
            queue,
            from: self.now,
            until: None,
            cause: self.ports[port as usize].peer,
            root: (root != NO_ROOT).then_some(root.port),
            links: root.links,
            named_root: (self.named != NONE).then_some(self.named),
        }
    }

    /// The congested port that a frame names which arrived at `port`, [`NONE`] if it
    /// names none: of the switch next to a host, and of the switch behind the host
    /// that has passed it on to a switch. By the links alone, not by any scheme's map.
    #[inline]
    pub fn named_by(&self, port: u32, effect: Effect) -> u32 {
        let topology = &self.plan.topology;
        let named = match effect {
            Effect::Onward { port, .. } => port,
            Effect::Root { root, .. } | Effect::Merge { into: root, .. } => {
                return topology.port_at(root).unwrap_or(NONE);
            }
            _ => return NONE,
        };
        let next = topology.neighbour(port);
        let host = topology.nodes[self.ports[port as usize].node as usize].kind == NodeKind::Host;
        let switch = if host {
            Some(next)
        } else {
            let back = self.ports[port as usize].peer;
            self.plan.topology.relay_ports(next).iter().find(|&&p| p != back).map(|&p| topology.neighbour(p))
        };
        switch.and_then(|switch| topology.port_at((switch, named))).unwrap_or(NONE)
    }

    /// Notes that a control packet leaves.
    pub fn note_control(&mut self, port: u32, id: u32) {
        let frame = &self.frames[self.packets[id].number as usize];
        self.observed.control_sent(port, frame);
    }

    /// The last place of a packet's way, at its own or before, where it leaves through a port
    /// that is `sought`.
    pub fn place_before(&self, id: u32, sought: impl Fn(u32) -> bool) -> Option<u32> {
        let hops = self.hops;
        let earlier = (0..=self.packets[id].hop).rev();
        let ports = earlier.map(|hop| (hop, hops[hop as usize])).take_while(|&(_, port)| port < ENDS);
        { ports }.find(|&(_, port)| sought(port)).map(|(hop, _)| hop)
    }

    /// Whether a control packet keeps its place among data.
    pub fn is_barrier(&self, id: u32) -> bool {
        self.frames[self.packets[id].number as usize].is_barrier()
    }

    /// What a control packet says.
    pub fn frame_of(&self, id: u32) -> ControlFrame {
        self.frames[self.packets[id].number as usize]
    }

    /// Takes what a control packet says, and frees it.
    pub fn take_frame(&mut self, id: u32) -> ControlFrame {
        let slot = self.packets[id].number;
        self.packets.remove(id);
        self.free_frames.push(slot);
        self.frames[slot as usize]
    }

    /// Whether a timer of the flow control goes off, rather than one that was
    /// cancelled or armed anew since.
    pub fn timer_is_current(&self, timer: u32, generation: u32) -> bool {
        self.timers[timer as usize] == generation
    }
}

impl Device for Core<'_> {
    fn now(&self) -> Time {
        self.now
    }

    fn rate(&self, port: u32) -> u64 {
        self.plan.topology.ports[port as usize].rate
    }

    fn pause(&mut self, port: u32, lane: u8) {
        let mask = lane_mask(usize::from(lane), self.lanes);
        if self.observed.standing(port, lane).is_none() {
            self.ports[port as usize].paused |= mask;
            let pause = self.new_pause(port, lane, None);
            self.observed.pause_begins(pause);
        }
    }

    fn hold(&mut self, port: u32, lane: u8) {
        self.ports[port as usize].paused |= lane_mask(usize::from(lane), self.lanes);
        if self.blocking.is_some() {
            self.lane_is_held(port, lane);
        }
    }

    fn resume(&mut self, port: u32, lane: u8) {
        let mask = lane_mask(usize::from(lane), self.lanes);
        let p = &mut self.ports[port as usize];
        if p.paused & mask != 0 {
            p.paused &= !mask;
            if self.blocking.is_some() {
                self.held_lane_resumes(port, lane);
            }
            if self.observed.standing(port, lane).is_some() {
                if self.blocking.is_some() {
                    self.lane_resumes(port, lane, self.now);
                }
                self.observed.pause_ends(self.now, port, lane);
            }
            self.post_decision(port);
        }
    }

    fn backlog(&self, port: u32, lane: u8) -> u64 {
        let first = self.ports[port as usize].first_queue as usize + 1 + usize::from(lane);
        match self.queues[first + self.lanes].head {
            NONE => self.queues[first].bytes,
            _ => u64::MAX,
        }
    }

    fn device_of(&self, port: u32) -> u32 {
        self.ports[port as usize].node
    }

    fn port_of(&self, port: u32, index: usize) -> Option<u32> {
        let node = self.ports[port as usize].node;
        self.plan.topology.nodes[node as usize].ports.get(index).copied()
    }

    fn relay_port(&self, port: u32, index: usize) -> Option<u32> {
        self.plan.topology.relay_ports(self.ports[port as usize].node).get(index).copied()
    }

    fn stored(&self, port: u32, lane: u8) -> u64 {
        self.accounts[port as usize * self.lanes + usize::from(lane)].held()
    }

    fn received(&self, port: u32, lane: u8) -> u64 {
        self.received[port as usize * self.lanes + usize::from(lane)]
    }

    fn send_control(&mut self, port: u32, frame: ControlFrame) {
        let roots = self.blocking.is_some().then(|| self.roots(port, frame.effect()));
        if self.is_down(port) {
            return;
        }
        // A frame of this kind that still waits says this, too. It is the last one, or the
        // first where the last one is overtaken: then those between are of that one's kind.
        let queue = &self.queues[self.ports[port as usize].first_queue as usize];
        let mut ahead = false;
        for waiting in [queue.tail, queue.head] {
            if waiting == NONE {
                break;
            }
            let slot = self.packets[waiting].number;
            let said = &mut self.frames[slot as usize];
            if said.merge(&frame) {
                if let (Some(oracle), Some(later)) = (&mut self.blocking, roots) {
                    oracle.merge(slot, &later);
                }
                return;
            }
            ahead = frame.overtakes(said);
            if !ahead {
                break;
            }
        }
        let slot = self.keep_frame(frame);
        if let (Some(oracle), Some(roots)) = (&mut self.blocking, roots) {
            oracle.keep(slot, roots);
        }
        let id = self.packets.insert(Packet::new(Kind::Control, NONE, slot, frame.length(), 0, NONE));
        match ahead {
            true => self.prepend(port, 0, id),
            false => self.enqueue(port, 0, id),
        }
        self.post_decision(port);
    }

    fn arm(&mut self, timer: u32, at: Time) {
        let generation = &mut self.timers[timer as usize];
        *generation = generation.wrapping_add(1);
        let generation = *generation;
        self.post(at, kind::TIMER, timer, generation);
    }

    fn cancel(&mut self, timer: u32) {
        let generation = &mut self.timers[timer as usize];
        *generation = generation.wrapping_add(1);
    }
}

impl device::Queues for Core<'_> {
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.pause_leaves(port, lane, target);
    }

    fn resume_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.resume_leaves(port, lane, target);
    }

    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32) {
        let named = std::mem::replace(&mut self.named, root);
        self.pause_leaves(port, lane, Target::Queue(queue));
        self.named = named;
    }

    fn queue_bytes(&self, port: u32, lane: u8, queue: u16) -> u64 {
        self.pulled_bytes(port, lane, queue)
    }

    fn onward(&self, hop: u32, distance: u32) -> Onward {
        if self.chooser.is_some() {
            return match self.plan.ahead(hop, distance) {
                Ahead::Port(port) => Onward::Port(port),
                Ahead::Unknown => Onward::Unknown,
                Ahead::End => Onward::End,
            };
        }
        // Nobody looks behind the end.
        let at = hop as usize + distance as usize;
        match self.hops.get(at) {
            Some(&port) if port < ENDS => Onward::Port(port),
            _ => Onward::End,
        }
    }

    fn is_paused(&self, port: u32, lane: u8, queue: u16) -> bool {
        self.leaf_is_paused(port, lane, queue)
    }

    fn active_queues(&self, port: u32, lane: u8) -> u32 {
        self.active_leaves(port, lane)
    }
}

impl device::Causes for Core<'_> {
    fn stands(&self, port: u32, lane: u8) -> bool {
        self.ports[port as usize].paused >> (1 + lane) & 1 == 1
    }

    fn is_over(&self, port: u32, lane: u8, bytes: u64) -> bool {
        let account = &self.accounts[self.account(port, lane)];
        let profile = &self.profiles[usize::from(account.profile)];
        account.over_without(bytes, &self.memories[account.memory as usize], profile)
    }

    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool {
        let account = ingress * self.lanes as u32 + u32::from(lane);
        self.causes.any(account, self.plan.topology.ports[egress as usize].index)
    }
}

impl device::Repair for Core<'_> {
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode) {
        self.change_mode(port, lane, mode);
    }

    fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64) {
        self.give_other_ways(ingress, port, lane)
    }

    fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64> {
        self.give_room(port, lane, bytes)
    }

    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8, cause: &'static Cause) {
        self.evictions.push((ingress, egress, lane, cause));
    }

    fn shrink(&mut self, port: u32, lane: u8) -> bool {
        self.take_room_back(port, lane)
    }
}

impl device::Loops for Core<'_> {
    fn neighbour(&self, port: u32) -> u32 {
        self.plan.topology.neighbour(port)
    }

    fn headroom(&self, port: u32, lane: u8) -> (u64, u64) {
        let account = &self.accounts[self.account(port, lane)];
        (self.profiles[usize::from(account.profile)].headroom(), account.in_headroom())
    }

    #[cold]
    fn enter_loop(&mut self, port: u32, lane: u8) {
        self.resume(port, lane);
        self.ports[port as usize].paused |= lane_mask(usize::from(lane), self.lanes);
        (self.loops, self.tells_storage) = (self.loops + 1, true);
        // A host's own answers have no room in the loop that they leave and could come back to.
        let queue = 1 + usize::from(lane);
        let list = &mut self.queues[self.ports[port as usize].first_queue as usize + queue];
        let mut next = std::mem::replace(&mut list.head, NONE);
        (list.tail, list.bytes) = (NONE, 0);
        self.ports[port as usize].ready &= !(1 << queue);
        let mut aside = Vec::new();
        while next != NONE {
            let id = next;
            next = self.packets[id].next;
            match self.packets[id].account {
                NONE => aside.push(id),
                _ => self.append(port, queue, id),
            }
        }
        self.aside.insert((port, lane), aside);
        (self.plain_queues, self.asks_to_leave) = (false, true);
    }

    fn gate(&mut self, port: u32, lane: u8, open: bool) {
        let p = &mut self.ports[port as usize];
        if open {
            p.paused &= !(1 << (1 + lane));
            self.post_decision(port);
        } else {
            p.paused |= 1 << (1 + lane);
        }
    }

    fn leave_loop(&mut self, port: u32, lane: u8) {
        // Barriers that wait there have nobody left to go to.
        let queue = 1 + usize::from(lane);
        let first = self.ports[port as usize].first_queue as usize;
        let (mut before, mut at) = (NONE, self.queues[first + queue].head);
        while at != NONE {
            let next = self.packets[at].next;
            if self.packets[at].kind == Kind::Control {
                self.unlink_behind(port, queue, before);
                self.take_frame(at);
            } else {
                before = at;
            }
            at = next;
        }
        for id in self.aside.remove(&(port, lane)).unwrap_or_default() {
            self.enqueue(port, 1 + usize::from(lane), id);
        }
        self.ports[port as usize].paused &= !lane_mask(usize::from(lane), self.lanes);
        self.loops -= 1;
        if self.loops == 0 {
            self.tells_storage = self.follows_charges || self.plan.flow_control.traits().hears_storage;
            (self.plain_queues, self.asks_to_leave) = (self.plan_queues, false);
        }
        self.post_decision(port);
    }

    fn insert(&mut self, port: u32, lane: u8, frame: ControlFrame, ahead: bool) {
        let size = frame.length();
        let slot = self.keep_frame(frame);
        let id = self.packets.insert(Packet::new(Kind::Control, NONE, slot, size, lane, NONE));
        let queue = 1 + usize::from(lane);
        match ahead {
            true => self.prepend(port, queue, id),
            false => self.append(port, queue, id),
        }
        self.post_decision(port);
    }

    fn follow_charges(&mut self, follow: bool) {
        self.follows_charges = follow;
        self.tells_storage = follow || self.loops > 0 || self.plan.flow_control.traits().hears_storage;
    }

    fn give_back(&mut self, port: u32, lane: u8, bytes: u64) -> Option<Crossing> {
        let account = self.account(port, lane) as u32;
        let crossing = self.release(account, bytes)?;
        self.crosses(account, crossing)
    }

    fn hand_over(&mut self, from: u32, to: u32, lane: u8, bytes: u64) -> u64 {
        let (from, to) = (self.account(from, lane), self.account(to, lane));
        let own = &mut self.accounts[from];
        let memory = &mut self.memories[own.memory as usize];
        let shared = own.release_shared(bytes, memory, &self.profiles[usize::from(own.profile)]);
        let same = own.memory;
        let other = &mut self.accounts[to];
        debug_assert!(other.memory == same, "accounts of a device with loops share its memory");
        other.take_over(shared, memory, &self.profiles[usize::from(other.profile)]);
        shared
    }

    fn charge(&mut self, port: u32, lane: u8, bytes: u64) -> (u64, Option<Crossing>) {
        let account = self.account(port, lane);
        let a = &mut self.accounts[account];
        let profile = &self.profiles[usize::from(a.profile)];
        let (taken, crossing) = a.take_back(bytes, &mut self.memories[a.memory as usize], profile);
        (taken, crossing.and_then(|crossing| self.crosses(account as u32, crossing)))
    }

    fn settle(&mut self, port: u32, lane: u8) {
        self.post(self.now, kind::SETTLE, port, u32::from(lane));
    }
}
