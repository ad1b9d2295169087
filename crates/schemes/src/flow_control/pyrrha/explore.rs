//! Every order in which things can happen in a small fabric: two switches in a row and
//! three ports that can be roots, the last of them that of a host which reads slowly.
//!
//! ```text
//!     A ─0─1─┐    ┌─9─ Y
//!            S1─2─3─S2─4─5─ X ─6
//!     B ─7─8─┘    └─12─11─ C
//! ```
//!
//! A step is one packet that comes, is sent or arrives, or one frame that takes effect
//! (but those between A, B, C and their switch, which do at once).
//! Which isolation queue's turn it is, and which of two links is faster, is open: every
//! choice is made. So this covers what any scheduler and any delays could do.

use super::frame::RootPauseFrame;
use super::port::State;
use super::*;
use crate::flow_control::{ControlFrame, Device, Onward};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use xoff_wire::queue_pause::Target;

const SIZE: u64 = 1_000;
/// By port: its device, and the port at the other end of its link.
const PORTS: [(u32, Option<u32>); 13] = [
    (0, Some(1)),
    (2, Some(0)),
    (2, Some(3)),
    (3, Some(2)),
    (3, Some(5)),
    (4, Some(4)),
    (4, None),
    (1, Some(8)),
    (2, Some(7)),
    (3, None),
    (5, None),
    (6, Some(12)),
    (3, Some(11)),
];
/// By flow: the ports that its packets leave through.
const PATHS: [&[u32]; 5] = [&[0, 2, 4, 6], &[7, 2, 9], &[11, 4, 6], &[7, 2, 4], &[11, 9]];
/// Ports that can be congested.
const ROOTS: [u32; 3] = [2, 4, 6];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Packet {
    flow: u8,
    number: u8,
    /// The index on its path of the port where it waits.
    at: u8,
    ingress: Option<u32>,
    passed: u16,
}

/// Everything but Pyrrha's own state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Net {
    queues: BTreeMap<(u32, u16), VecDeque<Packet>>,
    paused: BTreeSet<(u32, u16)>,
    /// Frames in flight, by the port at which they arrive.
    frames: BTreeMap<u32, VecDeque<RootPauseFrame>>,
    /// Packets on the link between the switches.
    wire: VecDeque<Packet>,
    /// By flow: packets that may still arrive, and packets that have left.
    left: [u8; PATHS.len()],
    sent: [u8; PATHS.len()],
    out: [u8; PATHS.len()],
    /// By flow: the number after the last departed packet.
    next: [u8; PATHS.len()],
    /// Whether a packet has left after a later one of its flow.
    reordered: bool,
}

impl Net {
    fn bytes(&self, port: u32, queue: u16) -> u64 {
        self.queues.get(&(port, queue)).map_or(0, |q| q.len() as u64 * SIZE)
    }

    fn entry(&self, packet: &Packet, queue: u16) -> QueueEntry {
        let port = PATHS[usize::from(packet.flow)][usize::from(packet.at)];
        QueueEntry {
            port,
            lane: 0,
            queue,
            own: false,
            size: SIZE as u32,
            queued: self.bytes(port, queue),
            hop: u32::from(packet.flow) * 8 + u32::from(packet.at),
            flow: packet.flow.into(),
            response: false,
            ingress: packet.ingress,
            upstream: 0,
            passed: packet.passed,
            counted: false,
            pausing: false,
        }
    }
}

impl Device for Net {
    fn now(&self) -> Time {
        0
    }
    fn rate(&self, _: u32) -> u64 {
        unreachable!()
    }
    fn pause(&mut self, _: u32, _: u8) {
        unreachable!()
    }
    fn hold(&mut self, _: u32, _: u8) {
        unreachable!()
    }
    fn resume(&mut self, _: u32, _: u8) {
        unreachable!()
    }
    fn backlog(&self, _: u32, _: u8) -> u64 {
        0
    }
    fn device_of(&self, port: u32) -> u32 {
        PORTS[port as usize].0
    }
    fn port_of(&self, port: u32, index: usize) -> Option<u32> {
        let device = PORTS[port as usize].0;
        (0..).zip(PORTS).filter(|(_, p)| p.0 == device).map(|(port, _)| port).nth(index)
    }
    fn relay_port(&self, _: u32, _: usize) -> Option<u32> {
        unreachable!()
    }
    fn stored(&self, _: u32, _: u8) -> u64 {
        unreachable!()
    }
    fn received(&self, _: u32, _: u8) -> u64 {
        unreachable!()
    }
    fn send_control(&mut self, port: u32, frame: ControlFrame) {
        let ControlFrame::RootPause(frame) = frame else { unreachable!() };
        let peer = PORTS[port as usize].1.expect("nobody is behind a port without a link");
        self.frames.entry(peer).or_default().push_back(frame);
    }
    fn arm(&mut self, _: u32, _: Time) {
        unreachable!()
    }
    fn cancel(&mut self, _: u32) {
        unreachable!()
    }
}

impl Queues for Net {
    fn pause_queue(&mut self, _: u32, _: u8, _: Target) {
        unreachable!()
    }
    fn resume_queue(&mut self, port: u32, _: u8, target: Target) {
        let Target::Queue(queue) = target else { unreachable!() };
        assert!(self.paused.remove(&(port, queue)), "it was paused");
    }
    fn pause_queue_for(&mut self, port: u32, _: u8, queue: u16, _: u32) {
        assert!(queue > 0, "an output queue is never paused");
        assert!(self.paused.insert((port, queue)), "it was not paused");
    }
    fn queue_bytes(&self, port: u32, _: u8, queue: u16) -> u64 {
        self.bytes(port, queue)
    }
    fn onward(&self, hop: u32, distance: u32) -> Onward {
        let path = PATHS[hop as usize / 8];
        path.get((hop % 8 + distance) as usize).map_or(Onward::End, |&port| Onward::Port(port))
    }
    fn is_paused(&self, port: u32, _: u8, queue: u16) -> bool {
        self.paused.contains(&(port, queue))
    }
    fn active_queues(&self, _: u32, _: u8) -> u32 {
        unreachable!()
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A packet of the flow comes to its NIC.
    Comes(usize),
    /// It is this queue's turn at this port.
    Serves(u32, u16),
    /// The first packet on the link between the switches arrives.
    Arrives,
    /// The first frame in flight to this port takes effect.
    Hears(u32),
}

#[derive(Clone, Debug)]
struct World {
    pyrrha: Pyrrha,
    net: Net,
}

impl World {
    fn new(params: &PyrrhaParams, packets: [u8; PATHS.len()]) -> Self {
        let net = Net { left: packets, ..Net::default() };
        Self { pyrrha: Pyrrha::new(params, PORTS.len(), &[3]), net }
    }

    /// A hash of the state: of a million states, two have the same one with a probability of one in ten
    /// million.
    fn key(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let Pyrrha { ports, pulled, trees, flows, .. } = &self.pyrrha;
        (ports, &pulled.quiet, trees, flows, &self.net).hash(&mut hasher);
        hasher.finish()
    }

    fn steps(&self) -> Vec<Step> {
        let net = &self.net;
        let mut steps = Vec::new();
        for (&(port, queue), packets) in &net.queues {
            let free = port != 2 || net.wire.is_empty();
            if !packets.is_empty() && free && !net.paused.contains(&(port, queue)) {
                steps.push(Step::Serves(port, queue));
            }
        }
        if !net.wire.is_empty() {
            steps.push(Step::Arrives);
        }
        steps.extend(net.frames.keys().map(|&port| Step::Hears(port)));
        // NICs have room for two at a time.
        let waiting =
            |nic: u32| net.queues.range((nic, 0)..=(nic, u16::MAX)).map(|(_, q)| q.len()).sum::<usize>();
        let comes = (0..PATHS.len()).filter(|&flow| net.left[flow] > 0 && waiting(PATHS[flow][0]) < 2);
        steps.extend(comes.map(Step::Comes));
        steps
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Comes(flow) => {
                self.net.left[flow] -= 1;
                let number = self.net.sent[flow];
                self.net.sent[flow] += 1;
                self.comes(Packet { flow: flow as u8, number, at: 0, ingress: None, passed: 0 });
                let nic = PATHS[flow][0];
                if self.net.queues.contains_key(&(nic, 0)) {
                    self.take(Step::Serves(nic, 0));
                }
            }
            Step::Serves(port, queue) => {
                if let Some(packet) = self.serve(port, queue) {
                    self.sends(port, packet);
                }
            }
            Step::Arrives => {
                let packet = self.net.wire.pop_front().expect("there is one");
                self.arrives(3, packet);
            }
            Step::Hears(port) => {
                let frames = self.net.frames.get_mut(&port).expect("there is one");
                let frame = frames.pop_front().expect("there is one");
                if frames.is_empty() {
                    self.net.frames.remove(&port);
                }
                self.pyrrha.received(&mut self.net, port, &frame);
            }
        }
        self.hosts_are_fast();
        self.check();
    }

    /// Events between hosts and their switch take no time, so only the orders of events at and between the
    /// switches and the last host vary.
    fn hosts_are_fast(&mut self) {
        while let Some(&port) = self.net.frames.keys().find(|port| ![2, 3, 4, 5].contains(*port)) {
            for frame in self.net.frames.remove(&port).expect("it is there") {
                self.pyrrha.received(&mut self.net, port, &frame);
            }
        }
    }

    fn sends(&mut self, port: u32, packet: Packet) {
        match PORTS[port as usize].1 {
            Some(_) if port == 2 => self.net.wire.push_back(packet),
            Some(peer) => self.arrives(peer, packet),
            None => self.ends(packet),
        }
    }

    fn arrives(&mut self, port: u32, mut packet: Packet) {
        packet.at += 1;
        packet.ingress = Some(port);
        packet.passed = 0;
        match usize::from(packet.at) < PATHS[usize::from(packet.flow)].len() {
            true => self.comes(packet),
            false => self.ends(packet),
        }
    }

    fn ends(&mut self, packet: Packet) {
        let flow = usize::from(packet.flow);
        self.net.out[flow] += 1;
        if packet.number != self.net.next[flow] {
            assert_eq!(self.pyrrha.params.merging, Merging::Hard, "out of order: {packet:?}");
            self.net.reordered = true;
        }
        self.net.next[flow] = self.net.next[flow].max(packet.number + 1);
    }

    fn comes(&mut self, mut packet: Packet) {
        let mut entry = self.net.entry(&packet, 0);
        entry.queue = self.pyrrha.classify(&mut self.net, &mut entry);
        packet.passed = entry.passed;
        if entry.queue == 0 {
            self.may_go(&packet);
        }
        self.joins(packet, entry);
    }

    fn joins(&mut self, packet: Packet, mut entry: QueueEntry) {
        self.net.queues.entry((entry.port, entry.queue)).or_default().push_back(packet);
        entry.queued = self.net.bytes(entry.port, entry.queue);
        self.pyrrha.enqueued(&mut self.net, &entry);
    }

    /// A packet goes into the OQ: none of the roots that it has not come by is paused.
    fn may_go(&self, packet: &Packet) {
        let path = PATHS[usize::from(packet.flow)];
        let ahead = &path[usize::from(packet.at) + 1..];
        let entries = &self.pyrrha.ports[path[usize::from(packet.at)] as usize];
        let skipped = match self.pyrrha.params.organisation {
            Organisation::Hiq => usize::from(packet.passed),
            Organisation::SingleTier => 0,
        };
        for &root in ahead.iter().skip(skipped) {
            let state = entries.entry(root).map(|e| e.state);
            assert_ne!(state, Some(State::Paused), "{packet:?} goes, and its root is paused");
        }
    }

    fn first(&mut self, port: u32, queue: u16) -> Packet {
        let packets = self.net.queues.get_mut(&(port, queue)).expect("it holds some");
        let packet = packets.pop_front().expect("it holds some");
        if packets.is_empty() {
            self.net.queues.remove(&(port, queue));
        }
        let entry = self.net.entry(&packet, queue);
        self.pyrrha.left(&mut self.net, &entry);
        packet
    }

    /// As the device does it.
    fn serve(&mut self, port: u32, mut queue: u16) -> Option<Packet> {
        if queue == 0 {
            return Some(self.first(port, 0));
        }
        loop {
            let mut packet = self.first(port, queue);
            let mut entry = self.net.entry(&packet, queue);
            let next = self.pyrrha.onward(&mut self.net, &mut entry);
            packet.passed = entry.passed;
            if next == 0 {
                self.may_go(&packet);
                if !self.net.queues.contains_key(&(port, 0)) {
                    return Some(packet);
                }
                self.net.queues.entry((port, 0)).or_default().push_back(packet);
                return Some(self.first(port, 0));
            }
            entry.queue = next;
            self.joins(packet, entry);
            if self.net.paused.contains(&(port, next)) {
                return None;
            }
            queue = next;
        }
    }

    /// Invariants at all times.
    fn check(&self) {
        for (port, state) in (0..).zip(&self.pyrrha.ports) {
            for queue in 1..=self.pyrrha.params.queues {
                let stops = usize::from(queue) <= state.queues.len() && state.paused_root(queue).is_some();
                assert_eq!(stops, self.net.paused.contains(&(port, queue)), "port {port}, queue {queue}");
            }
        }
    }

    /// Nothing is left of anything.
    fn is_at_rest(&self) -> bool {
        let Pyrrha { ports, pulled, trees, flows, .. } = &self.pyrrha;
        self.net.queues.is_empty()
            && self.net.paused.is_empty()
            && ports.iter().all(PortState::is_quiet)
            && pulled.quiet == self.pyrrha.params.k_pause
            && *trees == Trees::default()
            && flows.chains.is_empty()
            && self.net.out == self.net.sent
    }
}

fn params(organisation: Organisation, merging: Merging, k: u64, queues: u16) -> PyrrhaParams {
    let mut places = Places::default();
    for (port, &(device, _)) in (0..).zip(&PORTS) {
        let device = device as usize;
        places.ports.resize(places.ports.len().max(device + 1), Vec::new());
        places.of.push((device as u32, places.ports[device].len() as u16));
        places.ports[device].push(port);
        places.host.push(false);
        places.to_host.push(false);
        places.down.push(true);
    }
    let k_pause = (0..PORTS.len() as u32).map(|port| if ROOTS.contains(&port) { k } else { u64::MAX / 2 });
    PyrrhaParams {
        organisation,
        merging,
        queues,
        k_pause: k_pause.collect(),
        k_resume: vec![0; PORTS.len()],
        hosts_obey: true,
        acks_in_queues: true,
        variant: Variant::default(),
        deaf: Vec::new(),
        pfc: None,
        places: Arc::new(places),
        response_time: 0,
    }
}

/// The observations in all states together.
#[derive(Debug, Default)]
struct Seen {
    states: usize,
    at_rest: usize,
    claims: u64,
    abdications: u64,
    merges: u64,
    moves: u64,
    releases: u64,
    shared: u64,
    /// Steps by which a port claims that has abdicated, while its output queue has not
    /// been short since.
    reclaims: usize,
    /// States in which some packet has been overtaken by a later one of its flow.
    reordered: usize,
    /// States in which so many ports claim to be roots.
    roots: [usize; 4],
}

/// By state: the one that it was first reached from, and how.
type Predecessors = HashMap<u64, Option<(u64, Step)>>;

/// The steps that have led to `world`, and the `last` one.
fn trace(from: &Predecessors, mut at: u64, last: Option<Step>, world: &World) -> String {
    let mut steps: Vec<Step> = last.into_iter().collect();
    while let Some((before, step)) = from[&at] {
        steps.push(step);
        at = before;
    }
    steps.reverse();
    format!("{steps:?}\n{:#?}\n{:#?}", world.net, world.pyrrha.ports)
}

/// Goes through all states that can be reached, and asks of each that something can
/// happen without new packets, or that all is at rest.
fn explore(params: &PyrrhaParams, packets: [u8; PATHS.len()], most: usize) -> Seen {
    let first = World::new(params, packets);
    let mut seen = Seen::default();
    let mut from: Predecessors = HashMap::from([(first.key(), None)]);
    let mut next = VecDeque::from([(first.key(), first)]);
    while let Some((key, world)) = next.pop_front() {
        seen.states += 1;
        let claimed = ROOTS.iter().filter(|&&root| world.pyrrha.ports[root as usize].claimed).count();
        seen.roots[claimed] += 1;
        let tally = &world.pyrrha.tally;
        seen.claims = seen.claims.max(tally.claims);
        seen.abdications = seen.abdications.max(tally.abdications);
        seen.merges = seen.merges.max(tally.merges);
        seen.moves = seen.moves.max(tally.moves);
        seen.releases = seen.releases.max(tally.releases);
        seen.shared = seen.shared.max(tally.shared);
        seen.reordered += usize::from(world.net.reordered);
        let steps = world.steps();
        if steps.iter().all(|step| matches!(step, Step::Comes(_))) {
            assert!(world.is_at_rest(), "stuck after {}", trace(&from, key, None, &world));
            seen.at_rest += 1;
        }
        for step in steps {
            let mut after = world.clone();
            let taken = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| after.take(step)));
            assert!(taken.is_ok(), "after {}", trace(&from, key, Some(step), &world));
            let reclaims = |&&root: &&u32| {
                let [before, after] = [&world, &after].map(|w| &w.pyrrha.ports[root as usize]);
                before.unarmed.is_some() && after.claimed
            };
            seen.reclaims += ROOTS.iter().filter(reclaims).count();
            let new = after.key();
            if let std::collections::hash_map::Entry::Vacant(place) = from.entry(new) {
                place.insert(Some((key, step)));
                next.push_back((new, after));
            }
        }
        assert!(
            from.len() <= most,
            "more than {most} states; the last after {}",
            trace(&from, key, None, &world)
        );
    }
    seen
}

impl Seen {
    fn add(&mut self, other: &Self) {
        self.states += other.states;
        self.at_rest += other.at_rest;
        self.claims += other.claims;
        self.abdications += other.abdications;
        self.merges += other.merges;
        self.moves += other.moves;
        self.releases += other.releases;
        self.shared += other.shared;
        self.reclaims += other.reclaims;
        self.reordered += other.reordered;
        self.roots.iter_mut().zip(other.roots).for_each(|(mine, theirs)| *mine += theirs);
    }
}

/// Thresholds and packets of each flow.
const CASES: [(u64, [u8; PATHS.len()]); 7] = [
    (0, [1, 1, 1, 0, 0]),
    (0, [1, 0, 1, 1, 0]),
    (0, [2, 1, 0, 0, 0]),
    (0, [3, 0, 1, 0, 0]),
    (0, [2, 0, 1, 1, 0]),
    (SIZE, [3, 1, 1, 0, 0]),
    (SIZE, [3, 0, 2, 0, 0]),
];

/// The results of some cases.
fn all(
    organisation: Organisation,
    merging: Merging,
    queues: u16,
    cases: &[(u64, [u8; PATHS.len()])],
) -> Seen {
    all_of(Variant::default(), organisation, merging, queues, cases)
}

fn all_of(
    variant: Variant,
    organisation: Organisation,
    merging: Merging,
    queues: u16,
    cases: &[(u64, [u8; PATHS.len()])],
) -> Seen {
    let mut all = Seen::default();
    for &(k, packets) in cases {
        let params = PyrrhaParams { variant, ..params(organisation, merging, k, queues) };
        let seen = explore(&params, packets, 2_000_000);
        println!("{organisation:?}, {merging:?}, {queues} queues, K_pause {k}, {packets:?}: {seen:?}");
        all.add(&seen);
    }
    println!("{organisation:?}: {all:?}");
    all
}

/// The events that must have happened to give the absence of faults a meaning; one of them is that a port
/// claims again after it has abdicated.
fn much_happens(seen: &Seen) {
    let counts = [seen.claims, seen.abdications, seen.merges, seen.moves, seen.releases];
    assert!(counts.iter().all(|&n| n > 0) && seen.reclaims > 0 && seen.at_rest > 0, "{seen:?}");
    assert!(seen.roots.iter().all(|&states| states > 0), "{seen:?}");
}

/// Every order of events keeps each flow's packets in order and ends at rest, and no
/// queue is short.
fn everything(organisation: Organisation, queues: u16) {
    let seen = all(organisation, Merging::Soft, queues, &CASES);
    much_happens(&seen);
    assert_eq!((seen.shared, seen.reordered), (0, 0), "{seen:?}");
}

#[test]
fn every_order_of_events_ends_at_rest_with_hierarchical_queues() {
    everything(Organisation::Hiq, 4);
}

#[test]
fn every_order_of_events_ends_at_rest_with_a_single_tier() {
    everything(Organisation::SingleTier, 6);
}

/// The same where one queue has to do for all roots.
#[test]
fn one_queue_for_all_roots_keeps_order_and_comes_to_rest() {
    for organisation in [Organisation::Hiq, Organisation::SingleTier] {
        let seen = all(organisation, Merging::Soft, 1, &CASES[1..4]);
        assert!(seen.shared > 0 && seen.reclaims > 0 && seen.reordered == 0, "{seen:?}");
    }
}

/// Without soft merging later packets of a flow overtake those that wait in the queue of a false root; all
/// other invariants hold.
#[test]
fn hard_merging_reorders_and_comes_to_rest() {
    for organisation in [Organisation::Hiq, Organisation::SingleTier] {
        let seen = all(organisation, Merging::Hard, 6, &CASES[3..4]);
        assert!(seen.reordered > 0 && seen.merges > 0, "{seen:?}");
    }
}

/// Other readings of the rules about merging and counting keep order and come to rest, too, one by one and
/// together.
#[test]
fn variants_keep_order_and_come_to_rest() {
    let none = Variant::default();
    let over_ports = Variant { count_over_ports: true, ..none };
    let enters = Variant { merge_enters_resumed: true, ..none };
    let never = Variant { merging_never_pauses: true, ..none };
    let together = Variant {
        count_by_ingress: true,
        count_over_ports: true,
        merge_enters_resumed: true,
        merging_never_pauses: true,
        ..none
    };
    for (variant, organisation) in [
        (over_ports, Organisation::Hiq),
        (enters, Organisation::Hiq),
        (never, Organisation::Hiq),
        (together, Organisation::Hiq),
        (together, Organisation::SingleTier),
    ] {
        let cases = if variant == together { &CASES[..4] } else { &CASES[..3] };
        let seen = all_of(variant, organisation, Merging::Soft, 6, cases);
        assert!(seen.merges > 0 && seen.at_rest > 0, "{variant:?}: {seen:?}");
        assert_eq!((seen.shared, seen.reordered), (0, 0), "{variant:?}: {seen:?}");
    }
}
