//! Every order of events while a loop of pauses is dissolved: packets, barriers and frames on links
//! that keep their order, each as fast as may be.
//!
//! All packets are of one byte. An ingress queue is at XOFF with two of them and has room for one more,
//! [`SPARE`]; after the loop is dissolved, packets that arrive in spite of a pause find room as well, because
//! nothing limits the delay of a pause here. Where packets leave the loop there is a port to a host, which is
//! open or closed and may change.

use super::super::dissolve;
use super::*;
use crate::flow_control::{LoopDecision, LoopPacket};

/// Bytes at which an account is over.
const XOFF: u64 = 2;
/// Bytes with which it is under again.
pub const XON: u64 = 1;
/// Bytes of headroom.
pub const SPARE: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// It comes over this link first,
    first: u8,
    /// goes over so many,
    links: u8,
    /// and is that one of its flow.
    number: u8,
    /// Its position on this path.
    hop: u8,
    marked: bool,
    /// It came from the host of its switch, and has not left that yet.
    from_host: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    Packet(Packet),
    Frame(RoundaboutFrame),
}

fn hash_frame<H: Hasher>(f: &RoundaboutFrame, state: &mut H) {
    (f.opcode, f.quanta, f.triplet, f.triplet.hops, f.nodes.as_slice()).hash(state);
}

impl Hash for Item {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Packet(packet) => (0, packet).hash(state),
            Self::Frame(frame) => hash_frame(frame, state),
        }
    }
}

/// The charges of an ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Account {
    pub main: u64,
    pub headroom: u64,
}

/// Data in flight, and its place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Data {
    pub exits: u32,
    /// By egress queue: links, then exits.
    pub queues: Vec<VecDeque<Item>>,
    pub wires: Vec<VecDeque<Item>>,
    /// By link, of the ingress queue after it.
    pub accounts: Vec<Account>,
    /// Egress queues in loops.
    pub loops: u32,
    /// Barriers do not keep their place: they overtake packets.
    pub overtaken: bool,
    /// Whether Roundabout follows charges.
    pub follows_charges: bool,
    /// By link: whether the ingress queue after it has left a loop, and is about to settle.
    pub settles: u8,
}

/// A ring of switches whose queues are full.
#[derive(Clone, Copy, Debug)]
struct Resolution {
    switches: u8,
    /// By switch: over how many links its two packets go; 1 is for those that wait for the exit.
    link_counts: [[u8; 2]; 4],
    /// Exits that are closed.
    closed: u8,
    /// How often one of them changes.
    changes: u8,
    /// Queues whose switches take themselves for coordinators.
    leaders: u8,
    /// How often a pause is repeated.
    refreshes: u8,
    /// Barriers do not keep their place.
    overtaken: bool,
    /// Before those of the loop, a packet of each switch's own host waits in its queue of the loop.
    hosts: bool,
    audit: bool,
    /// Readings of section IV that are taken as printed.
    printed: dissolve::Printed,
}

#[derive(Clone, Debug)]
struct Fabric {
    roundabout: Roundabout,
    net: Net,
    changes: u8,
    refreshes: u8,
    /// By flow: packets that have left.
    out: [[u8; 4]; 4],
    reordered: bool,
    lost: bool,
    /// Attempts that had all their seats, ended well, and were given up.
    steps: [u8; 3],
    /// One began when a pause of the loop had ended, and that was not known yet.
    early: bool,
    /// How many there are, with those that are out.
    packets: usize,
}

impl Hash for Fabric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let hops = |t: Option<Triplet>| t.map(|t| t.hops);
        let Self { roundabout, net, changes, refreshes, out, reordered, lost, steps, early, packets: _ } =
            self;
        let Roundabout { registers, told, announced, tried, collected, seats, charges, .. } = roundabout;
        for r in registers {
            (r, hops(r.curr.get())).hash(state);
        }
        for t in told {
            (t, hops(*t)).hash(state);
        }
        (announced, tried, collected, seats, charges).hash(state);
        let Net { waits, over, paused, frames, data, .. } = net;
        (waits, over, paused, data).hash(state);
        for link in frames {
            link.len().hash(state);
            link.iter().for_each(|f| hash_frame(f, state));
        }
        (changes, refreshes, out, reordered, lost, steps, early).hash(state);
    }
}

impl PartialEq for Fabric {
    fn eq(&self, other: &Self) -> bool {
        let key = |fabric: &Self| {
            let mut hasher = DefaultHasher::new();
            fabric.hash(&mut hasher);
            hasher.finish()
        };
        key(self) == key(other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// It is the turn of this egress queue.
    Serves(usize),
    /// The first thing on the link arrives.
    Arrives(usize),
    /// The first frame in flight against the link arrives.
    Hears(usize),
    /// The exit of this switch opens, or closes.
    Changes(usize),
    /// The queue after the link repeats its pause.
    Refreshes(usize),
}

impl Fabric {
    fn links(&self) -> usize {
        self.net.shape.links()
    }

    fn ingress(link: usize) -> u32 {
        2 * link as u32 + 1
    }

    /// The egress port of a queue.
    fn port(&self, queue: usize) -> u32 {
        if queue < self.links() { 2 * queue as u32 } else { (self.links() + queue) as u32 }
    }

    /// The port at a position of a packet's path.
    fn port_at(&self, packet: &Packet, hop: u8) -> u32 {
        let link = (packet.first + hop) as usize % self.links();
        if hop < packet.links { 2 * link as u32 } else { self.port(self.links() + link) }
    }

    fn place_before(&self, packet: &Packet, sought: impl Fn(u32) -> bool) -> Option<u8> {
        (0..=packet.hop).rev().find(|&hop| sought(self.port_at(packet, hop)))
    }

    fn arrives(&mut self, link: usize) {
        match self.net.data.wires[link].pop_front().expect("there is one") {
            Item::Frame(frame) => self.roundabout.received(&mut self.net, Self::ingress(link), &frame.into()),
            Item::Packet(packet) => self.forward(link, packet),
        }
    }

    fn forward(&mut self, link: usize, mut packet: Packet) {
        packet.hop += 1;
        let (ingress, mut egress) = (Self::ingress(link), self.port_at(&packet, packet.hop));
        if self.net.data.loops > 0 || packet.marked {
            let loop_packet =
                LoopPacket { ingress, egress, lane: 0, flow: packet.flow(), size: 1, marked: packet.marked };
            match self.roundabout.passes(&mut self.net, &loop_packet) {
                LoopDecision::Continue => {}
                LoopDecision::SetAside => unreachable!("nothing comes from elsewhere"),
                LoopDecision::Circulate(on) => {
                    packet.marked = true;
                    packet.hop -= 1;
                    egress = on;
                }
                LoopDecision::Exit(at) => {
                    packet.marked = false;
                    let Some(hop) = self.place_before(&packet, |port| port == at) else {
                        return self.lost = true;
                    };
                    (packet.hop, egress) = (hop, at);
                }
                LoopDecision::NoLoop => {
                    packet.marked = false;
                    let own = self.net.device_of(ingress);
                    let at = self.place_before(&packet, |port| self.net.device_of(port) == own);
                    let Some(hop) = at else { return self.lost = true };
                    packet.hop = hop;
                    egress = self.port_at(&packet, hop);
                }
            }
        }
        let charge = match self.net.data.follows_charges {
            true => self.roundabout.charged(&mut self.net, ingress, 0, 1),
            false => 1,
        };
        let account = &mut self.net.data.accounts[link];
        let mut crossed = false;
        if self.net.over >> link & 1 == 1 {
            account.headroom += charge;
            self.lost |=
                account.headroom > SPARE && self.roundabout.seats.iter().any(|s| s.ingress == ingress);
        } else {
            account.main += charge;
            crossed = account.main >= XOFF;
        }
        let queue = self.net.egress(egress);
        self.net.data.queues[queue].push_back(Item::Packet(packet));
        if self.net.data.loops > 0 {
            self.roundabout.stored(&mut self.net, ingress, 0, 1);
        }
        if self.net.waits[link] >> queue & 1 == 0 {
            self.net.waits[link] |= 1 << queue;
            self.roundabout.waits(&mut self.net, ingress, egress, 0);
        }
        if crossed {
            self.net.over |= 1 << link;
            self.roundabout.crossed(&mut self.net, ingress, 0, Crossing::Over);
        }
    }

    fn serves(&mut self, queue: usize) {
        let (port, loops) = (self.port(queue), self.net.data.loops > 0);
        let item = *self.net.data.queues[queue].front().expect("there is one");
        if let Item::Frame(frame) = item {
            let goes = !loops || self.roundabout.barrier_leaves(&mut self.net, port, &frame.into());
            self.net.data.queues[queue].pop_front();
            if goes {
                self.net.data.wires[queue].push_back(item);
            }
            return;
        }
        if loops && !self.roundabout.may_leave(&mut self.net, port, 0, 1) {
            return;
        }
        self.net.data.queues[queue].pop_front();
        let Item::Packet(packet) = item else { unreachable!() };
        // Into each switch leads one link.
        let switch = self.net.device_of(port) as usize;
        let link = (switch + self.links() - 1) % self.links();
        let waits = |item: &Item| matches!(item, Item::Packet(packet) if !packet.from_host);
        if !self.net.data.queues[queue].iter().any(waits) {
            self.net.waits[link] &= !(1 << queue);
        }
        match queue < self.links() {
            true => self.net.data.wires[queue].push_back(Item::Packet(Packet { from_host: false, ..packet })),
            false => {
                let out = &mut self.out[usize::from(packet.first)][usize::from(packet.links)];
                self.reordered |= *out != packet.number;
                *out += 1;
            }
        }
        let ingress = if packet.from_host { self.port(self.links() + switch) } else { Self::ingress(link) };
        if self.net.data.follows_charges {
            self.roundabout.on_release(&mut self.net, ingress, port, 0, 1);
        } else if let Some(crossing) = self.net.release_charge(ingress, 0, 1) {
            self.roundabout.crossed(&mut self.net, ingress, 0, crossing);
        }
        if loops {
            self.roundabout.freed(&mut self.net, ingress, port, 0, 1);
        }
    }

    /// Packets that wait for an open exit leave at once.
    fn leaves(&mut self) {
        for queue in self.links()..2 * self.links() {
            while self.net.paused >> queue & 1 == 0 && !self.net.data.queues[queue].is_empty() {
                self.serves(queue);
            }
        }
    }

    /// Whether an attempt has ended, and none is active.
    fn is_over(&self) -> bool {
        let about = |f: &RoundaboutFrame| !matches!(f.opcode, Opcode::Probe | Opcode::Invalid);
        let Data { queues, wires, .. } = &self.net.data;
        self.steps[1] + self.steps[2] > 0
            && self.roundabout.seats.is_empty()
            && !self.net.frames.iter().flatten().any(about)
            && !queues.iter().chain(wires).flatten().any(|item| matches!(item, Item::Frame(f) if about(f)))
    }

    fn takes(&mut self, event: Event) {
        match event {
            Event::Serves(queue) => self.serves(queue),
            Event::Arrives(link) => self.arrives(link),
            Event::Hears(link) => {
                let frame = self.net.frames[link].pop_front().expect("there is one");
                self.roundabout.received(&mut self.net, 2 * link as u32, &frame.into());
            }
            Event::Changes(switch) => {
                self.changes -= 1;
                self.net.paused ^= 1 << (self.links() + switch);
            }
            Event::Refreshes(link) => {
                self.refreshes -= 1;
                // The next steps belong to another attempt.
                self.steps = [0; 3];
                // Pauses are repeated after any patience.
                self.roundabout.tried.fill(None);
                self.roundabout.collected.fill(None);
                let pfc = &self.roundabout.pfc;
                let timer = (0..).find(|&t| pfc.refreshes(t) == Some((Self::ingress(link), 0)));
                self.roundabout.timer(&mut self.net, timer.expect("it has one"));
            }
        }
        while self.net.data.settles > 0 {
            let link = self.net.data.settles.trailing_zeros() as usize;
            self.net.data.settles &= !(1 << link);
            self.roundabout.settles(&mut self.net, Self::ingress(link), 0);
        }
        self.leaves();
        let Roundabout { registers, detections, seats, attempts, .. } = &mut self.roundabout;
        for attempted in attempts.drain(..) {
            match attempted.step {
                dissolve::Step::Seated => {
                    self.steps[0] += 1;
                    self.early |= self.net.over.count_ones() < self.net.data.exits;
                }
                dissolve::Step::Dissolved => self.steps[1] += 1,
                dissolve::Step::GivenUp => self.steps[2] += 1,
                dissolve::Step::Round => {}
            }
        }
        registers.iter_mut().filter(|r| !r.pauses()).for_each(|r| *r = Registers::default());
        seats.sort_by_key(|seat| seat.ingress);
        detections.clear();
    }

    /// Whether no packet is lost or out of order, and this remains so if from now on all exits are open and
    /// all links have the same speed. If the loop was dissolved, all packets then leave.
    fn keeps_order(&self) -> bool {
        let mut last = self.clone();
        if self.is_over() {
            last.net.paused &= (1 << self.links()) - 1;
            last.leaves();
            let mut turns = 0;
            while let events = last.under_way()
                && !events.is_empty()
            {
                turns += 1;
                if turns > 1_000 {
                    return false;
                }
                // One of them can be another's end.
                events.into_iter().for_each(|e| {
                    if last.under_way().contains(&e) {
                        last.takes(e)
                    }
                });
            }
            let out = last.out.iter().flatten().sum::<u8>() as usize;
            if self.steps[1] > 0 && out < self.packets {
                return false;
            }
        }
        !last.lost && !last.reordered
    }

    /// Whether each packet of each flow is there or out, and that once.
    fn conserves(&self) -> bool {
        let Data { queues, wires, .. } = &self.net.data;
        let mut seen = [[0u8; 4]; 4];
        let mut twice = false;
        for item in queues.iter().chain(wires).flatten() {
            if let Item::Packet(packet) = item {
                let seen = &mut seen[usize::from(packet.first)][usize::from(packet.links)];
                let bit = 1 << packet.number;
                let out = packet.number < self.out[usize::from(packet.first)][usize::from(packet.links)];
                twice |= out || *seen & bit != 0;
                *seen |= bit;
            }
        }
        let inside = seen.iter().flatten().map(|seen| seen.count_ones() as usize).sum::<usize>();
        let out = self.out.iter().flatten().map(|&out| usize::from(out)).sum::<usize>();
        !twice && inside + out == self.packets
    }

    /// The remaining frames, packets and turns without further outside events.
    fn under_way(&self) -> Vec<Event> {
        let data = &self.net.data;
        let turn = |&queue: &usize| self.net.paused >> queue & 1 == 0 && !data.queues[queue].is_empty();
        let mut events: Vec<Event> = (0..data.queues.len()).filter(turn).map(Event::Serves).collect();
        events.extend((0..self.links()).filter(|&l| !data.wires[l].is_empty()).map(Event::Arrives));
        events.extend((0..self.links()).filter(|&l| !self.net.frames[l].is_empty()).map(Event::Hears));
        events
    }
}

impl Packet {
    fn flow(&self) -> u32 {
        u32::from(self.first) * 8 + u32::from(self.links)
    }
}

const IN_ORDER: &str = "nothing is lost or reordered";
const ONCE: &str = "each packet is there once";
const ENDS: &str = "it ends";

/// A loop of three whose packets leave it at the next switch.
const LOOP: Resolution = Resolution {
    switches: 3,
    link_counts: [[2; 2]; 4],
    closed: 0,
    changes: 0,
    leaders: 0,
    refreshes: 0,
    overtaken: false,
    hosts: false,
    audit: true,
    printed: dissolve::Printed { check: false, credit: false, exit: false },
};

impl Model for Resolution {
    type State = Fabric;
    type Action = Event;

    fn init_states(&self) -> Vec<Fabric> {
        let shape = if self.switches == 3 { RING_3 } else { RING_4 };
        let links = shape.links();
        let Side { mut roundabout, mut net } = Side::new(shape, AS_READ);
        roundabout.params.numbers = (0..3 * links as u16).collect();
        roundabout.params.dissolves = true;
        (roundabout.params.patience, roundabout.params.turn) = (4, 2);
        roundabout.params.audit = self.audit;
        roundabout = Roundabout::new(&roundabout.params, 3 * links, &[0]);
        roundabout.resolves = self.printed;
        net.data.exits = links as u32;
        net.data.overtaken = self.overtaken;
        net.data.queues = vec![VecDeque::new(); 2 * links];
        net.data.wires = vec![VecDeque::new(); links];
        net.data.accounts = vec![Account { main: XOFF, headroom: 0 }; links];
        net.paused = ((1 << links) - 1) | self.closed << links;
        net.waits = [0; 8];
        for s in 0..links {
            // They came over the link before.
            let first = (s + links - 1) % links;
            let mut sent = [0; 8];
            if self.hosts {
                // Its flow is that of the packets of the next switch which go as far.
                let next = self.link_counts[(s + 1) % links];
                let number = next.iter().filter(|&&count| count == 2).count() as u8;
                let packet =
                    Packet { first: s as u8, links: 2, number, hop: 0, marked: false, from_host: true };
                net.data.queues[s].push_back(Item::Packet(packet));
            }
            for count in self.link_counts[s] {
                let queue = if count == 1 { links + s } else { s };
                let number = sent[usize::from(count)];
                sent[usize::from(count)] += 1;
                let packet = Packet {
                    first: first as u8,
                    links: count,
                    number,
                    hop: 1,
                    marked: false,
                    from_host: false,
                };
                net.data.queues[queue].push_back(Item::Packet(packet));
                net.waits[first] |= 1 << queue;
            }
        }
        // Queue 0 draws the best number, and its pause has not arrived yet.
        for l in (0..links).rev() {
            net.over |= 1 << l;
            roundabout.params.seed = seed(Fabric::ingress(l), l as u8, links as u8);
            roundabout.draws.clear();
            roundabout.crossed(&mut net, Fabric::ingress(l), 0, Crossing::Over);
            while l > 0
                && let Some(at) = (0..links).find(|&l| !net.frames[l].is_empty())
            {
                let frame = net.frames[at].pop_front().expect("there is one");
                roundabout.received(&mut net, 2 * at as u32, &frame.into());
            }
        }
        for l in (0..links).filter(|l| self.leaders >> l & 1 == 1) {
            let own = roundabout.registers[2 * l + 1].init.get().expect("it pauses");
            roundabout.coordinates(&mut net, Fabric::ingress(l), 0, own);
        }
        let Self { changes, refreshes, .. } = *self;
        let (out, steps) = ([[0; 4]; 4], [0; 3]);
        vec![Fabric {
            roundabout,
            net,
            changes,
            refreshes,
            out,
            reordered: false,
            lost: false,
            steps,
            early: false,
            packets: if self.hosts { 3 } else { 2 } * links,
        }]
    }

    fn actions(&self, fabric: &Fabric, events: &mut Vec<Event>) {
        if fabric.is_over() && fabric.refreshes == 0 {
            return;
        }
        *events = fabric.under_way();
        if events.is_empty() && fabric.refreshes > 0 {
            let pauses = |&l: &usize| fabric.roundabout.registers[2 * l + 1].pauses();
            events.extend((0..fabric.links()).filter(pauses).map(Event::Refreshes));
        }
        if fabric.changes > 0 {
            events.extend((0..fabric.links()).map(Event::Changes));
        }
    }

    fn next_state(&self, fabric: &Fabric, event: Event) -> Option<Fabric> {
        let mut next = fabric.clone();
        next.takes(event);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(IN_ORDER, |_, fabric: &Fabric| fabric.keeps_order()),
            Property::always(ONCE, |_, fabric: &Fabric| fabric.conserves()),
            Property::always(ENDS, |_, fabric: &Fabric| {
                !fabric.under_way().is_empty() || fabric.roundabout.seats.is_empty()
            }),
            Property::always("one coordinator has all seats", |_, fabric: &Fabric| {
                let seats = &fabric.roundabout.seats;
                let mut going = seats.iter().filter(|seat| seat.grants);
                let first = going.next();
                first.is_none_or(|first| going.all(|seat| seat.attempt == first.attempt))
            }),
            Property::sometimes("it begins though a pause has just ended", |_, fabric: &Fabric| fabric.early),
            Property::sometimes("it is dissolved", |_, fabric: &Fabric| fabric.steps[1] > 0),
            Property::sometimes("it is given up", |_, fabric: &Fabric| fabric.steps[2] > 0),
        ]
    }
}

/// Explores everything, unless that is more than so many states.
fn explored(model: Resolution, most: usize) -> usize {
    let checker = model.checker().threads(2).target_state_count(most).spawn_bfs().join();
    println!(
        "{model:?}: {} states, {} deep, {} with those met again",
        checker.unique_state_count(),
        checker.max_depth(),
        checker.state_count(),
    );
    for (name, path) in checker.discoveries() {
        println!("{name}: {:?}", path.into_actions());
    }
    for property in model.properties() {
        match property.expectation {
            Expectation::Sometimes => {}
            _ => checker.assert_no_discovery(property.name),
        }
    }
    assert!(checker.state_count() < most, "more than {most}");
    checker.unique_state_count()
}

/// For all paths of packets, and all speeds of links, a loop of three is dissolved in order; all exits are
/// open.
#[test]
fn a_loop_of_three_is_dissolved_in_order() {
    for link_counts in [[[2; 2]; 4], [[2, 3]; 4], [[3, 2]; 4]] {
        explored(Resolution { link_counts, ..LOOP }, 1_000_000);
    }
}

/// A closed exit opens: packets that missed it come back in order. If a packet that blocks the loop waits
/// there (path 1), a pause of the loop ends meanwhile.
#[test]
#[ignore = "minutes; see `make soak`"]
fn exits_that_change_lose_no_order() {
    for link_counts in [[[2; 2]; 4], [[2, 1]; 4], [[3, 1]; 4], [[2, 3]; 4]] {
        for closed in [0b111, 0b011, 0b010, 0] {
            explored(Resolution { link_counts, closed, changes: 1, ..LOOP }, 100_000_000);
        }
    }
}

/// The coordinator (switch 1) grants before it has its first credit, with which its round begins. A packet
/// that misses its exit meanwhile circulates, and so do the later packets of its flow, although the exit has
/// opened.
#[test]
fn packets_that_missed_their_exit_before_the_first_round_are_recorded() {
    use Event::*;
    let model = Resolution { closed: 0b111, changes: 1, ..LOOP };
    let mut fabric = model.init_states().remove(0);
    // All have agreed, and switch 0 has its credit.
    for event in [
        &[Hears(0), Hears(2), Hears(1), Hears(0), Hears(0), Hears(2), Hears(1), Hears(2), Hears(1)][..],
        &[Arrives(1), Arrives(2), Arrives(0), Arrives(1), Arrives(2), Arrives(0), Hears(0)],
        // Its barrier and its first packet are at switch 1.
        &[Serves(0), Serves(0), Arrives(0), Arrives(0)],
        &[Hears(2), Serves(2), Serves(2), Arrives(2), Arrives(2), Hears(1), Serves(1), Serves(1)],
        &[Arrives(1), Hears(0), Serves(0), Serves(0), Hears(1), Serves(1), Serves(1), Hears(0), Serves(0)],
        &[Hears(2), Serves(2), Arrives(2), Hears(1), Serves(1), Hears(0), Serves(0), Hears(2)],
        &[Changes(1), Arrives(0)],
    ]
    .concat()
    {
        let mut open = Vec::new();
        model.actions(&fabric, &mut open);
        assert!(open.contains(&event), "{event:?}");
        fabric.takes(event);
    }
    assert_eq!(fabric.out, [[0; 4]; 4]);
}

/// A packet that was sent before its switch had a seat may arrive after one, and continues on its path: it
/// was not granted, and there may be no round that would bring it back.
#[test]
fn packets_before_the_first_grant_continue_on_their_path() {
    let mut fabric = Resolution { closed: 0b111, ..LOOP }.init_states().remove(0);
    while fabric.roundabout.seats.is_empty() {
        let event = fabric.under_way()[0];
        fabric.takes(event);
    }
    let ingress = fabric.roundabout.seats[0].ingress;
    let exit = fabric.port(fabric.links() + fabric.net.device_of(ingress) as usize);
    assert!(fabric.net.is_stopped(exit, 0));
    let packet = LoopPacket { ingress, egress: exit, lane: 0, flow: 0, size: 1, marked: false };
    assert_eq!(fabric.roundabout.passes(&mut fabric.net, &packet), LoopDecision::Continue);
}

/// Others take themselves for coordinators, too: one of them gets all seats, or none does.
#[test]
#[ignore = "minutes; see `make soak`"]
fn one_of_several_coordinators_gets_all_seats() {
    explored(Resolution { leaders: 0b010, ..LOOP }, 100_000_000);
    explored(Resolution { leaders: 0b110, ..LOOP }, 100_000_000);
}

/// All exits stay closed: it is given up, and again when pauses are repeated.
#[test]
fn a_loop_that_nothing_leaves_is_given_up() {
    explored(Resolution { closed: 0b111, refreshes: 1, ..LOOP }, 3_000_000);
}

#[test]
#[ignore = "minutes; see `make soak`"]
fn a_loop_of_four_is_dissolved_in_order() {
    explored(Resolution { switches: 4, ..LOOP }, 50_000_000);
}

/// Searches for an order of events after which the property does not hold.
fn broken(model: Resolution, property: &'static str) -> Fabric {
    let stop = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().threads(2).finish_when(stop).spawn_bfs().join();
    let path = checker.assert_any_discovery(property);
    let last = path.last_state().clone();
    println!("{model:?}: {} states, {:?}", checker.unique_state_count(), path.into_actions());
    last
}

/// Barriers that overtake packets, as if there were none, part nothing: packets leave the loop ahead
/// of others of their flow.
#[test]
fn without_barriers_there_is_no_order() {
    assert!(broken(Resolution { overtaken: true, closed: 0b111, changes: 1, ..LOOP }, IN_ORDER).reordered);
}

/// Packets of hosts leave the queues of the loop first. With the audit order each makes room for one of the
/// loop's; without it all headroom is used then, and no switch has anything to grant (section IV-C).
#[test]
fn without_the_audit_order_a_loop_stalls() {
    let model = Resolution { hosts: true, ..LOOP };
    let stalled = broken(Resolution { audit: false, ..model }, ENDS);
    assert_eq!(stalled.roundabout.seats.len(), 3);
    assert_eq!(stalled.out, [[0; 4]; 4]);
    explored(model, 10_000_000);
}

/// A switch whose barrier is back before its packets is ready for a moment, and replies for all: the loop
/// counts as dissolved although no packet has left it.
#[test]
fn a_ready_switch_does_not_reply_for_all() {
    let printed = dissolve::Printed { check: true, ..LOOP.printed };
    let last = broken(Resolution { printed, closed: 0b111, ..LOOP }, IN_ORDER);
    assert_eq!((last.steps[1], last.out), (1, [[0; 4]; 4]));
}

/// Granted bytes are granted again before they arrive: there is no room for them.
#[test]
fn a_grant_counts_earlier_grants() {
    let printed = dissolve::Printed { credit: true, ..LOOP.printed };
    assert!(broken(Resolution { printed, hosts: true, closed: 0b111, ..LOOP }, IN_ORDER).lost);
}

/// An exit opens after a packet that has missed it, before the next one of its flow.
#[test]
fn packets_after_one_that_missed_its_exit_miss_it_too() {
    let printed = dissolve::Printed { exit: true, ..LOOP.printed };
    assert!(broken(Resolution { printed, closed: 0b111, changes: 1, ..LOOP }, IN_ORDER).reordered);
}
