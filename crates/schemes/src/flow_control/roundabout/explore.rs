//! Every order in which things can happen around a loop, with `stateright`: the very state machine
//! that switches run, on links that are queues of frames.
//!
//! The open events, which are tried in every order: an ingress queue reaches XOFF or is at XON again, its
//! packets wait for an egress queue, it draws one of the numbers, and one link is faster than another. Frames
//! of one link stay in order. An ingress queue may drain at any time when it is over, as if all its packets
//! left the loop. So every possible loop of pauses is found, including those that are about to end.

mod resolution;

use super::registers::Printed;
use super::*;
use crate::flow_control::Device;
use crate::flow_control::device::Causes;
use crate::flow_control::pfc::{PfcParams, Relay};
use resolution::{Account, Data, Item, SPARE, XON};
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Links, each from a switch to a switch. Link `l` leaves by port `2 l` and arrives at port `2 l + 1`.
#[derive(Clone, Copy, Debug)]
struct Shape(&'static [(u32, u32)]);

impl Shape {
    fn is_ring(self) -> bool {
        self.turns().count() == self.links()
    }

    fn links(self) -> usize {
        self.0.len()
    }

    /// Pairs of links that a packet can cross one after the other.
    fn turns(self) -> impl Iterator<Item = (usize, usize)> {
        let links = self.links();
        (0..links)
            .flat_map(move |a| (0..links).map(move |b| (a, b)))
            .filter(move |&(a, b)| self.0[a].1 == self.0[b].0)
    }
}

const RING_3: Shape = Shape(&[(0, 1), (1, 2), (2, 0)]);
const RING_4: Shape = Shape(&[(0, 1), (1, 2), (2, 3), (3, 0)]);
/// Loops of two and of three switches share link 0.
const SHARED: Shape = Shape(&[(0, 1), (1, 0), (1, 2), (2, 0)]);

/// Everything but Roundabout's own state.
#[derive(Clone, Debug)]
struct Net {
    shape: Shape,
    /// By link: the links at its end for which packets that came over it wait.
    waits: [u8; 8],
    /// By link: whether the account after it is over.
    over: u8,
    /// By link: its egress queue is stopped.
    paused: u8,
    /// By link: frames in flight against it.
    frames: Vec<VecDeque<RoundaboutFrame>>,
    /// The data in flight.
    data: Data,
}

impl Net {
    fn ports(&self) -> u32 {
        2 * self.shape.links() as u32 + self.data.exits
    }

    /// The number of an egress port's queue: links first.
    fn egress(&self, port: u32) -> usize {
        let links = self.shape.links() as u32;
        (if port >= 2 * links { port - links } else { port / 2 }) as usize
    }

    fn quiet(&self) -> bool {
        self.frames.iter().all(VecDeque::is_empty)
    }

    /// By link: the links whose pauses a pause there waits for.
    fn standing(&self) -> [u8; 8] {
        let standing = self.over & self.paused;
        let mut next = [0; 8];
        for (l, next) in next.iter_mut().enumerate().take(self.shape.links()) {
            if standing >> l & 1 == 1 {
                *next = self.waits[l] & standing;
            }
        }
        next
    }

    /// Deadlocks: sets of links whose pauses all wait for each other and for no other.
    fn deadlocks(&self) -> Vec<u8> {
        let next = self.standing();
        let mut reach = next;
        for _ in 0..self.shape.links() {
            for l in 0..self.shape.links() {
                reach[l] = (0..8).filter(|i| reach[l] >> i & 1 == 1).fold(reach[l], |all, i| all | reach[i]);
            }
        }
        let mut found: Vec<u8> = (0..self.shape.links())
            .filter(|&l| reach[l] >> l & 1 == 1)
            .filter(|&l| (0..8).filter(|i| reach[l] >> i & 1 == 1).all(|i| reach[i] == reach[l]))
            .map(|l| reach[l])
            .collect();
        found.dedup();
        found
    }
}

impl Device for Net {
    fn now(&self) -> Time {
        0
    }
    fn rate(&self, _: u32) -> u64 {
        100_000_000_000
    }
    fn pause(&mut self, port: u32, _: u8) {
        self.paused |= 1 << self.egress(port);
    }
    fn hold(&mut self, _: u32, _: u8) {
        unreachable!()
    }
    fn resume(&mut self, port: u32, _: u8) {
        self.paused &= !(1 << self.egress(port));
    }
    fn backlog(&self, port: u32, _: u8) -> u64 {
        self.data.queues[self.egress(port)].len() as u64
    }
    fn device_of(&self, port: u32) -> u32 {
        let links = 2 * self.shape.links() as u32;
        if port >= links {
            return port - links;
        }
        let (from, to) = self.shape.0[port as usize / 2];
        if port.is_multiple_of(2) { from } else { to }
    }
    fn port_of(&self, port: u32, index: usize) -> Option<u32> {
        let device = self.device_of(port);
        (0..self.ports()).filter(|&p| self.device_of(p) == device).nth(index)
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
        let ControlFrame::Roundabout(frame) = frame else { unreachable!() };
        match port % 2 {
            0 => self.data.wires[port as usize / 2].push_back(Item::Frame(frame)),
            _ => self.frames[port as usize / 2].push_back(frame),
        }
    }
    fn arm(&mut self, _: u32, _: Time) {}
    fn cancel(&mut self, _: u32) {}
}

impl Causes for Net {
    fn waits(&self, ingress: u32, egress: u32, _: u8) -> bool {
        let links = 2 * self.shape.links() as u32;
        let turns = ingress < links && ingress % 2 == 1 && (egress >= links || egress.is_multiple_of(2));
        turns && self.waits[ingress as usize / 2] >> self.egress(egress) & 1 == 1
    }
    fn is_stopped(&self, port: u32, _: u8) -> bool {
        let links = 2 * self.shape.links() as u32;
        (port >= links || port.is_multiple_of(2)) && self.paused >> self.egress(port) & 1 == 1
    }
    fn is_over(&self, port: u32, _: u8, bytes: u64) -> bool {
        let Account { main, headroom } = self.data.accounts[port as usize / 2];
        self.over >> (port / 2) & 1 == 1 && (headroom > 0 || main.saturating_sub(bytes) > XON)
    }
}

impl Loops for Net {
    fn neighbour(&self, port: u32) -> u32 {
        // A host is after an exit.
        if port >= 2 * self.shape.links() as u32 { 1_000 } else { self.device_of(port ^ 1) }
    }
    fn headroom(&self, port: u32, _: u8) -> (u64, u64) {
        // A host's account is under, and stays so.
        (SPARE, self.data.accounts.get(port as usize / 2).map_or(0, |account| account.headroom))
    }
    fn enter_loop(&mut self, port: u32, _: u8) {
        self.paused |= 1 << (port / 2);
        self.data.loops += 1;
    }
    fn gate(&mut self, port: u32, _: u8, open: bool) {
        let bit = 1 << (port / 2);
        self.paused = if open { self.paused & !bit } else { self.paused | bit };
    }
    fn leave_loop(&mut self, port: u32, _: u8) {
        self.paused &= !(1 << (port / 2));
        self.data.loops -= 1;
    }
    fn insert(&mut self, port: u32, _: u8, frame: ControlFrame, ahead: bool) {
        let ControlFrame::Roundabout(frame) = frame else { unreachable!() };
        let queue = &mut self.data.queues[port as usize / 2];
        match ahead || self.data.overtaken {
            true => queue.push_front(Item::Frame(frame)),
            false => queue.push_back(Item::Frame(frame)),
        }
    }
    fn follow_charges(&mut self, follow: bool) {
        self.data.follows_charges = follow;
    }
    fn release_charge(&mut self, port: u32, _: u8, bytes: u64) -> Option<Crossing> {
        let link = port as usize / 2;
        let account = self.data.accounts.get_mut(link)?;
        let headroom = account.headroom.min(bytes);
        account.headroom -= headroom;
        account.main -= bytes - headroom;
        let under = self.over >> link & 1 == 1 && account.headroom == 0 && account.main <= XON;
        self.over &= !(u8::from(under) << link);
        under.then_some(Crossing::Under)
    }
    fn transfer_charge(&mut self, from: u32, to: u32, _: u8, bytes: u64) -> u64 {
        assert!(from >= 2 * self.shape.links() as u32, "into each switch leads one link: it is a host's");
        self.data.accounts[to as usize / 2].main += bytes;
        bytes
    }
    fn charge(&mut self, _: u32, _: u8, _: u64) -> (u64, Option<Crossing>) {
        unreachable!("hosts have all of the shared pool that they need: nobody owes anything")
    }
    fn settle(&mut self, port: u32, _: u8) {
        self.data.settles |= 1 << (port / 2);
    }
}

/// The explored case, and its limits.
#[derive(Clone, Copy, Debug)]
struct Detection {
    shape: Shape,
    /// How often queues reach XOFF, all together: each draws another number.
    fills: u8,
    /// How often packets begin to wait for an egress queue, when none did any more.
    joins: u8,
    /// How often a pause is repeated.
    refreshes: u8,
    /// The lines that are used as printed: in the tested model and, if there is one, in the model of
    /// comparison. Both get the same events.
    printed: &'static [Printed],
    /// Frames that come to rest do after this many at most, if links are equally fast.
    rest: usize,
}

#[derive(Clone, Debug)]
struct Side {
    roundabout: Roundabout,
    net: Net,
}

#[derive(Clone, Debug)]
struct World {
    sides: Vec<Side>,
    fills: u8,
    joins: u8,
    refreshes: u8,
    /// Numbers that have been drawn.
    drawn: u8,
    /// Whether a deadlock was found when there was none.
    early: bool,
}

impl Hash for Side {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let hops = |t: Option<Triplet>| t.map(|t| t.hops);
        for r in &self.roundabout.registers {
            (r, hops(r.curr.get())).hash(state);
        }
        for t in &self.roundabout.told {
            (t, hops(*t)).hash(state);
        }
        self.roundabout.detections.len().hash(state);
        for d in &self.roundabout.detections {
            (d.port, d.triplet).hash(state);
        }
        let Net { waits, over, paused, frames, .. } = &self.net;
        (waits, over, paused).hash(state);
        for link in frames {
            link.len().hash(state);
            for f in link {
                (f.opcode, f.quanta, f.triplet, f.triplet.hops).hash(state);
            }
        }
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { sides, fills, joins, refreshes, drawn, early } = self;
        (sides, fills, joins, refreshes, drawn, early).hash(state);
    }
}

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let key = |world: &Self| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        };
        key(self) == key(other)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The queue after the link reaches XOFF, and draws the number of this rank.
    Over(usize, u8),
    /// It is at XON again.
    Under(usize),
    /// A packet from the first link waits for the second one.
    Joins(usize, usize),
    /// None does any more.
    Leaves(usize, usize),
    /// The first frame in flight against the link arrives.
    Hears(usize),
    /// The queue after the link repeats its pause.
    Refreshes(usize),
}

/// A seed with which the queue of a port draws the number of this rank out of so many.
fn seed(port: u32, rank: u8, of: u8) -> u64 {
    let drawn = |seed| Stream::new(seed, "Roundabout", port.into()).bits() >> 32;
    (0..).find(|&seed| (drawn(seed) * u64::from(of)) >> 32 == u64::from(rank)).expect("there are many")
}

impl Side {
    fn new(shape: Shape, printed: Printed) -> Self {
        let links = shape.links();
        let params = RoundaboutParams {
            pfc: PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts },
            numbers: (0..2 * links as u16).collect(),
            seed: 0,
            largest: 1,
            patience: 0,
            turn: 0,
            audit: true,
            dissolves: false,
        };
        let mut roundabout = Roundabout::new(&params, 2 * links, &[0]);
        roundabout.printed = printed;
        let mut waits = [0; 8];
        shape.turns().for_each(|(a, b)| waits[a] |= 1 << b);
        Self {
            roundabout,
            net: Net {
                shape,
                waits,
                over: 0,
                paused: 0,
                frames: vec![VecDeque::new(); links],
                data: Data::default(),
            },
        }
    }

    /// Whether a deadlock was found that does not exist.
    fn takes(&mut self, step: Step, fills: u8) -> bool {
        let Self { roundabout, net } = self;
        let found = roundabout.detections.len();
        let ingress = |link: usize| 2 * link as u32 + 1;
        match step {
            Step::Over(l, rank) => {
                net.over |= 1 << l;
                roundabout.params.seed = seed(ingress(l), rank, fills);
                roundabout.draws.clear();
                roundabout.crossed(net, ingress(l), 0, Crossing::Over);
            }
            Step::Under(l) => {
                net.over &= !(1 << l);
                roundabout.crossed(net, ingress(l), 0, Crossing::Under);
            }
            Step::Joins(a, b) => {
                net.waits[a] |= 1 << b;
                roundabout.waits(net, ingress(a), 2 * b as u32, 0);
            }
            Step::Leaves(a, b) => net.waits[a] &= !(1 << b),
            Step::Hears(l) => {
                if let Some(frame) = net.frames[l].pop_front() {
                    roundabout.received(net, 2 * l as u32, &frame.into());
                }
            }
            Step::Refreshes(l) => {
                let timer = (0..).find(|&t| roundabout.pfc.refreshes(t) == Some((ingress(l), 0)));
                roundabout.timer(net, timer.expect("it has one"));
            }
        }
        let deadlocks = net.deadlocks();
        let exists = |d: &super::Detection| deadlocks.iter().any(|set| set >> (d.port / 2) & 1 == 1);
        let early = !roundabout.detections[found..].iter().all(exists);
        // State without further effect: findings about pauses that are over, and, if registers are computed
        // anew each time, their former content.
        let reserved = roundabout.printed.below;
        for r in roundabout.registers.iter_mut().filter(|r| !r.pauses() && !reserved) {
            *r = Registers::default();
        }
        let registers = &roundabout.registers;
        roundabout.detections.retain(|d| registers[d.port as usize].init.get() == Some(d.triplet));
        roundabout.detections.sort_unstable_by_key(|d| d.port);
        if reserved {
            // The paper counts no links.
            net.frames.iter_mut().flatten().for_each(|f| f.triplet.hops = 0);
        }
        early
    }

    /// Whether a deadlock exists, no frame is in flight, and no switch has found it.
    fn misses(&self) -> bool {
        let found = |set: u8| self.roundabout.detections.iter().any(|d| set >> (d.port / 2) & 1 == 1);
        self.net.quiet() && !self.net.deadlocks().into_iter().all(found)
    }

    fn holds(&self) -> bool {
        self.roundabout.registers.iter().all(|r| !r.pauses() || r.curr.get().is_some())
    }

    /// Whether, if nothing else happens and links are equally fast, frames come to an end.
    fn rests(&self, frames: usize) -> bool {
        let mut side = self.clone();
        for _ in 0..frames {
            if side.net.quiet() {
                return true;
            }
            for l in 0..side.net.shape.links() {
                side.takes(Step::Hears(l), 0);
            }
        }
        false
    }
}

impl Model for Detection {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let sides = self.printed.iter().map(|&printed| Side::new(self.shape, printed)).collect();
        let Self { fills, joins, refreshes, .. } = *self;
        vec![World { sides, fills, joins, refreshes, drawn: 0, early: false }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Step>) {
        let all = |which: &dyn Fn(&Net) -> bool| world.sides.iter().all(|side| which(&side.net));
        let net = &world.sides[0].net;
        for l in 0..self.shape.links() {
            if !all(&|net| net.frames[l].is_empty()) {
                actions.push(Step::Hears(l));
            }
            if net.over >> l & 1 == 1 {
                actions.push(Step::Under(l));
                if world.refreshes > 0 {
                    actions.push(Step::Refreshes(l));
                }
            } else if world.fills > 0 && (world.drawn > 0 || l == 0 || !self.shape.is_ring()) {
                actions
                    .extend((0..self.fills).filter(|i| world.drawn >> i & 1 == 0).map(|i| Step::Over(l, i)));
            }
        }
        for (a, b) in self.shape.turns() {
            match net.waits[a] >> b & 1 {
                1 if all(&|net| net.paused >> b & 1 == 0) => actions.push(Step::Leaves(a, b)),
                0 if world.joins > 0 => actions.push(Step::Joins(a, b)),
                _ => {}
            }
        }
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        match step {
            Step::Over(_, rank) => {
                next.fills -= 1;
                next.drawn |= 1 << rank;
            }
            Step::Joins(..) => next.joins -= 1,
            Step::Refreshes(_) => next.refreshes -= 1,
            Step::Under(_) | Step::Leaves(..) | Step::Hears(_) => {}
        }
        for side in &mut next.sides {
            next.early |= side.takes(step, self.fills);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always(FOUND, |_, world: &World| {
            let (tried, others) = world.sides.split_first().expect("there is one");
            !tried.misses() || others.iter().any(|side| !side.net.quiet() || side.misses())
        })];
        properties.push(Property::always(HOLDS, |_, world: &World| {
            let (tried, others) = world.sides.split_first().expect("there is one");
            tried.holds() || others.iter().any(|side| !side.holds())
        }));
        if self.rest > 0 {
            properties.push(Property::always(REST, |model: &Self, world: &World| {
                let (tried, others) = world.sides.split_first().expect("there is one");
                tried.rests(model.rest) || others.iter().any(|side| !side.rests(model.rest))
            }));
        }
        if self.printed.len() == 1 {
            properties.push(Property::sometimes(EARLY, |_, world: &World| world.early));
            properties.push(Property::sometimes(TWO, |_, world: &World| {
                let [side] = &world.sides[..] else { unreachable!() };
                side.net.deadlocks().into_iter().any(|set| {
                    side.roundabout.detections.iter().filter(|d| set >> (d.port / 2) & 1 == 1).count() > 1
                })
            }));
        }
        properties
    }
}

const FOUND: &str = "a deadlock is found";
const HOLDS: &str = "who pauses has a triplet";
const REST: &str = "frames come to rest";
const EARLY: &str = "what does not stand is found";
const TWO: &str = "two find a deadlock";

const AS_READ: Printed =
    Printed { below: false, resume: false, line_24: false, invalid: false, outdated: false, again: false };
/// T_curr is kept, and all other errors are corrected.
const KEPT: Printed = Printed { below: true, ..AS_READ };

const fn detection(shape: Shape, fills: u8, joins: u8, refreshes: u8) -> Detection {
    Detection { shape, fills, joins, refreshes, printed: &[AS_READ], rest: 0 }
}

fn explored(model: Detection) -> impl Checker<Detection> {
    let began = std::time::Instant::now();
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!(
        "{} links, {} fills, {} joins, {} refreshes: {} states, {} deep, {:?}",
        model.shape.links(),
        model.fills,
        model.joins,
        model.refreshes,
        checker.unique_state_count(),
        checker.max_depth(),
        began.elapsed(),
    );
    for (name, path) in checker.discoveries() {
        println!("{name}: {:?}", path.into_actions());
    }
    checker
}

/// Steps after which the property does not hold, and that they are found.
fn counter_example(model: Detection, property: &'static str, steps: &[Step]) {
    let mut world = model.init_states().remove(0);
    for &step in steps {
        let mut open = Vec::new();
        model.actions(&world, &mut open);
        assert!(open.contains(&step), "{step:?}");
        world = model.next_state(&world, step).expect("it changes something");
    }
    assert!(!(model.property(property).condition)(&model, &world), "{property}");
}

/// Searches for steps after which the property does not hold.
fn search(model: Detection, property: &'static str) {
    let stop = HasDiscoveries::AnyOf([property].into());
    let checker = model.checker().threads(2).finish_when(stop).spawn_bfs().join();
    let path = checker.discovery(property).expect("there is one").into_actions();
    println!("{property}: {} states, {path:?}", checker.unique_state_count());
    counter_example(model, property, &path);
}

/// Line 31 as printed: a queue that does not pause keeps resumed triplets.
const LINE_31: Detection =
    Detection { printed: &[Printed { resume: true, ..KEPT }, KEPT], ..detection(RING_3, 4, 0, 0) };
/// Line 24 as printed: a register that is not valid drops a triplet with the same bits.
const LINE_24: Detection =
    Detection { printed: &[Printed { line_24: true, ..KEPT }, KEPT], ..detection(RING_3, 4, 0, 1) };
/// Lines 37 to 40 as printed.
const LINES_37: Detection =
    Detection { printed: &[Printed { invalid: true, ..KEPT }, KEPT], ..detection(RING_3, 3, 0, 0) };
/// Line 18 as printed: an outdated triplet of the queue itself counts.
const LINE_18: Detection = Detection {
    printed: &[Printed { outdated: true, ..KEPT }, KEPT],
    rest: 100,
    ..detection(RING_3, 4, 0, 0)
};
/// T_curr is kept from event to event.
const REGISTERS: Detection = Detection { printed: &[KEPT, AS_READ], ..detection(RING_3, 4, 0, 0) };
/// The same in loops over different numbers of links.
const WAVES: Detection = Detection { printed: &[KEPT, AS_READ], rest: 100, ..detection(SHARED, 3, 0, 0) };

/// Lines 26 to 29 as printed, in those loops: triplets are repeated.
const AGAIN: Detection = Detection {
    printed: &[Printed { again: true, ..KEPT }, KEPT],
    rest: 1_000,
    ..detection(SHARED, 3, 0, 0)
};

/// Each line as printed, with the others corrected, violates an invariant of the reading here. ([`searches`]
/// found the steps.)
#[test]
fn lines_as_printed_have_counter_examples() {
    use Step::*;
    // Queue 2 receives the best number and its end, keeps it, and sends it when it pauses: it hides all
    // others from queue 1.
    counter_example(
        LINE_31,
        FOUND,
        &[Over(0, 0), Hears(0), Under(0), Hears(0), Over(1, 1), Hears(1), Over(0, 3), Hears(0), Over(2, 2)]
            .into_iter()
            .chain([Hears(2), Hears(1)])
            .collect::<Vec<_>>(),
    );
    // Queue 2 receives the number of queue 0 by a repeated pause, and sends it again after it has withdrawn
    // it. Queue 1 believes that it is known, and later pauses with its own.
    counter_example(
        LINE_24,
        FOUND,
        &[Over(0, 0), Hears(0), Refreshes(0), Over(2, 1), Hears(2), Under(2), Hears(0), Hears(2), Over(2, 2)]
            .into_iter()
            .chain([Hears(2), Over(1, 3), Hears(1)])
            .collect::<Vec<_>>(),
    );
    // Queue 1 has nothing to say when its pause has to be repeated.
    counter_example(
        LINES_37,
        HOLDS,
        &[Over(0, 0), Hears(0), Under(0), Over(1, 1), Over(2, 2), Hears(0), Hears(2), Hears(2)],
    );
    // Queue 0 resumes and pauses again before its own first triplet is back. That triplet and its end then
    // circulate one after the other permanently.
    counter_example(LINE_18, REST, &[Over(0, 0), Under(0), Over(0, 1), Over(1, 3), Over(2, 2)]);
    // Queue 0 resumes and pauses again. It still waits for queue 1, which has the best number, and
    // has forgotten that.
    counter_example(
        REGISTERS,
        FOUND,
        &[Over(0, 0), Hears(0), Over(1, 1), Hears(1), Under(0), Hears(0), Over(0, 3), Hears(0), Over(2, 2)]
            .into_iter()
            .chain([Hears(2)])
            .collect::<Vec<_>>(),
    );
    // Triplets that queue 2 sends and withdraws circulate permanently in two loops, one longer than the
    // other.
    counter_example(WAVES, REST, &[Over(0, 1), Over(1, 2), Over(2, 0), Under(2)]);
    // Queues 0 and 1 reply to each other permanently.
    let before = [Over(0, 2), Over(1, 1), Hears(1), Over(2, 0), Hears(2), Leaves(2, 3), Leaves(3, 0)];
    let received = [0, 0, 0, 1, 0].map(Hears);
    let after = [2, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1].map(Hears);
    let steps = [&before[..], &received, &[Under(2)], &after, &[Leaves(0, 2)]].concat();
    counter_example(AGAIN, REST, &steps);
}

#[test]
#[ignore = "minutes; see `make soak`"]
fn searches() {
    search(LINE_31, FOUND);
    search(LINE_24, FOUND);
    search(LINES_37, HOLDS);
    search(LINE_18, REST);
    search(REGISTERS, FOUND);
    search(WAVES, REST);
    search(AGAIN, REST);
}

/// A deadlock is found in every case.
fn finds(model: Detection) {
    let checker = explored(model);
    for property in model.properties() {
        match property.expectation {
            Expectation::Sometimes => {}
            _ => checker.assert_no_discovery(property.name),
        }
    }
    // A triplet that comes back shows that each pause was active when it passed, not that all are. So the
    // check can find a deadlock that does not exist, and then another one can find the real one. The
    // resolution then checks all of the loop again.
    checker.assert_any_discovery(EARLY);
}

/// A loop of three, each of whose queues pauses once, or one again and another one not.
#[test]
fn every_deadlock_of_a_loop_is_found() {
    finds(Detection { rest: 100, ..detection(RING_3, 3, 0, 1) });
}

/// More pauses, longer loops, loops that share a link.
#[test]
#[ignore = "minutes; see `make soak`"]
fn every_deadlock_is_found() {
    finds(detection(RING_3, 4, 0, 0));
    finds(detection(RING_3, 4, 1, 0));
    finds(detection(SHARED, 3, 0, 0));
    finds(detection(RING_4, 4, 0, 0));
}
