//! The deadlock oracle: the greatest fixpoint over everything that keeps its upstream paused.
//!
//! A *member* keeps a queue upstream paused. It is an ingress account ([`by_lane`]), a queue that is too long
//! for the queue upstream ([`by_queue`]), or a congestion root ([`by_root`]). It lets its upstream resume
//! when enough bytes have left, some of them in queues that others keep paused. What can drain, drains:
//!
//! 1. Begin with all members whose pause is active and has settled.
//! 2. Strike out each member whose bytes outside of the queues that the set holds suffice to bring it to its
//!    resume level.
//! 3. Repeat until nothing more can be struck out.
//!
//! The rest (the greatest fixpoint) can never resume: it is deadlocked. A cycle of pauses that still drains
//! is struck out entirely. Accounts are members under every scheme; where links differ, accounts and roots
//! are members of one set and hold each other.

mod by_lane;
mod by_queue;
mod by_root;
mod reach;

use crate::outcome::{Deadlock, Held, Pause, Wait};
use crate::{packet::Packet, world::World};
use by_lane::Snapshot;
use reach::Reach;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::PauseScope;

/// The reason why a queue upstream stays paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Member {
    /// An ingress account, by its number.
    Account(u32),
    /// A queue, by the leaf upstream that it keeps paused.
    Queue(u32),
    /// A root, by the port upstream that is stopped for it.
    Root(by_root::Key),
}

/// A queue that holds a member's bytes.
#[derive(Clone, Debug, PartialEq)]
struct Hold {
    /// The queue is paused while any of these remains; none: that of a host that has stopped reading.
    by: Vec<Member>,
    port: u32,
    /// The account of the bytes, where the member is one.
    account: u32,
    bytes: u64,
    /// The member waits for every packet in the queue, not only for those that came through its own link.
    whole: bool,
}

/// Members that may be deadlocked, with everything that holds each of them.
type Set = BTreeMap<Member, Vec<Hold>>;

impl Member {
    /// The port and lane that it keeps paused.
    fn upstream(self, world: &World) -> (u32, u8) {
        match self {
            Self::Account(account) => (world.peer(account / world.lanes()), (account % world.lanes()) as u8),
            Self::Queue(leaf) => by_queue::place(world, leaf),
            Self::Root((port, lane, _)) => (port, lane),
        }
    }

    /// The packets that wait upstream for it.
    fn packets<'w>(self, world: &World<'w, '_>) -> Vec<&'w Packet> {
        match self {
            Self::Account(_) => {
                let (port, lane) = self.upstream(world);
                world.queued(port, lane.into()).collect()
            }
            Self::Queue(leaf) => by_queue::packets(world, leaf).collect(),
            Self::Root(key) => by_root::packets(world, key),
        }
    }

    /// Whether anything waits upstream for it.
    fn filled(self, world: &World) -> bool {
        match self {
            // Members that remain have bytes in queues that remain.
            Self::Account(_) | Self::Queue(_) => true,
            Self::Root(key) => by_root::filled(world, key),
        }
    }

    /// When the pause upstream began.
    fn paused_since(self, world: &World) -> Option<Time> {
        match self {
            Self::Account(_) => {
                let (port, lane) = self.upstream(world);
                world.standing(port, lane).map(|pause| pause.from)
            }
            Self::Queue(leaf) => Some(by_queue::since(world, leaf)),
            Self::Root(key) => by_root::since(world, key),
        }
    }

    /// Whether `packet`, in a queue that holds it, came through its link.
    fn sent(self, world: &World, packet: &Packet) -> bool {
        match self {
            Self::Queue(leaf) => by_queue::counted_against(world, packet) == Some(leaf),
            Self::Account(_) | Self::Root(_) => {
                let (port, lane) = self.upstream(world);
                by_lane::waits_for(world, by_lane::pauser(world, port, lane), packet.account)
            }
        }
    }

    /// Whether these holds, which all remain, keep it from its resume level.
    fn stays(self, world: &World, holds: &[Hold]) -> bool {
        match self {
            Self::Account(account) => holds.iter().any(|h| h.whole) || by_lane::full(world, account, holds),
            Self::Queue(leaf) => by_queue::full(world, leaf, holds),
            Self::Root(_) => !holds.is_empty(),
        }
    }
}

/// Ports and lanes inside of hosts that have stopped reading.
type Stalled = BTreeSet<(u32, u8)>;

#[derive(Default)]
pub struct Oracle {
    /// The bytes of the accounts that were over at the last look.
    held: Snapshot,
    reach: OnceCell<Reach>,
}

impl Oracle {
    /// Remembers the bytes of the accounts that are over.
    pub fn remember(&mut self, world: &World) {
        self.held = by_lane::snapshot(world);
    }

    /// Looks for a deadlock at time `now`.
    pub fn look(&self, world: &World, now: Time) -> Option<Deadlock> {
        let set = self.stuck(world, now, false);
        // From any member the largest hold leads to the next one, and at last into a cycle.
        let mut member = set.keys().copied().find(|member| member.filled(world))?;
        let mut order = Vec::new();
        while !order.contains(&member) {
            order.push(member);
            member = set[&member][0].by[0];
        }
        let cycle = &order[order.iter().position(|&m| m == member).unwrap_or(0)..];
        let closed = by_lane::closed(world);
        let since = |&member: &Member| match member {
            Member::Account(account) => closed.get(&account).map(|closed| closed.0),
            _ => member.paused_since(world),
        };
        let upstream = set.keys().map(|member| member.upstream(world));
        let stuck: BTreeSet<(u32, u8)> = upstream.map(|(port, lane)| (world.peer(port), lane)).collect();
        Some(Deadlock {
            closed: cycle.iter().filter_map(since).max().unwrap_or(now),
            seen: now,
            ended: None,
            cycle: cycle.iter().map(|&member| held(world, member, &set[&member][0])).collect(),
            stuck: stuck.into_iter().collect(),
        })
    }

    /// The queues that will not move: in a deadlock, or upstream of one or of a host that has stopped
    /// reading. Empty if every flow is complete.
    pub fn waiting(&self, world: &World, now: Time) -> Vec<Wait> {
        if world.flows_done() == world.plan.flows.len() {
            return Vec::new();
        }
        let set = self.stuck(world, now, true);
        let wait = |&member: &Member| {
            let mut seen = BTreeSet::new();
            let mut at = member;
            let root = loop {
                let hold = &set[&at][0];
                let Some(&by) = hold.by.first() else { break Some(world.port(hold.port).node) };
                if !seen.insert(at) {
                    break None;
                }
                at = by;
            };
            let (port, lane) = member.upstream(world);
            Wait {
                port,
                lane,
                bytes: member.packets(world).iter().map(|p| u64::from(p.size)).sum(),
                since: member.paused_since(world).unwrap_or(now),
                waits_for: world.peer(port),
                root,
            }
        };
        set.keys().filter(|member| member.filled(world)).map(wait).collect()
    }

    /// The greatest fixpoint, among accounts with the same bytes as at the last look; with `stalls` a host
    /// that has stopped reading holds its queue as well.
    fn stuck(&self, world: &World, now: Time, stalls: bool) -> Set {
        let rx = world.plan.receivers.iter().map(|r| r.rx).filter(|&rx| stalls && world.port(rx).paused != 0);
        let stalled: Stalled =
            rx.flat_map(|rx| (0..world.lanes() as u8).map(move |lane| (rx, lane))).collect();
        let mut set = by_lane::members(world, now, &self.held);
        let reach = || self.reach.get_or_init(|| Reach::new(world.plan));
        let none = set.is_empty() && world.open_pauses().next().is_none()
            || stalled.is_empty() && !reach().allows_deadlock();
        if none && !cfg!(debug_assertions) {
            return Set::new();
        }
        match world.plan.flow_control.traits().pause_scope {
            PauseScope::Queue { .. } | PauseScope::Onward => by_queue::add(world, &mut set),
            PauseScope::Root => by_root::add(world, &mut set, &stalled),
            // Queues of flows cannot deadlock on routes without loops: the last hop is never paused.
            PauseScope::Nothing | PauseScope::Lane | PauseScope::Link | PauseScope::Flow => {}
        }
        #[cfg(debug_assertions)]
        let all = fixpoint(world, set.clone(), &stalled, None);
        reach().strike_out(world, &mut set, &stalled);
        let set = fixpoint(world, set, &stalled, Some(reach()));
        #[cfg(debug_assertions)]
        assert_eq!(set, all, "routes exclude no member of the fixpoint");
        debug_assert!(set.is_empty() || !none);
        set
    }
}

/// The greatest fixpoint of a set; with `reach` only queues that its routes allow are read.
fn fixpoint(world: &World, mut set: Set, stalled: &Stalled, reach: Option<&Reach>) -> Set {
    by_queue::add_holds(world, &mut set, stalled);
    by_lane::add_holds(world, &mut set, stalled, reach);
    loop {
        let members: BTreeSet<Member> = set.keys().copied().collect();
        for holds in set.values_mut() {
            holds.retain(|h| h.by.is_empty() || h.by.iter().any(|by| members.contains(by)));
        }
        set.retain(|&member, holds| member.stays(world, holds));
        if set.len() == members.len() {
            for (member, holds) in &mut set {
                if let &Member::Account(account) = member
                    && !by_lane::full(world, account, holds)
                {
                    holds.retain(|h| h.whole);
                }
                holds.iter_mut().for_each(|h| h.by.retain(|by| members.contains(by)));
                // The largest hold comes first; ports and members decide ties.
                holds.sort_by(|a, b| (b.bytes, a.port, &a.by).cmp(&(a.bytes, b.port, &b.by)));
            }
            return set;
        }
    }
}

fn held(world: &World, member: Member, hold: &Hold) -> Held {
    let (port, lane) = hold.by[0].upstream(world);
    let waits = match member {
        // Bytes of an account may lie in any queue of the lane.
        Member::Account(_) => world.queued(port, lane.into()).collect(),
        _ => hold.by[0].packets(world),
    };
    let bytes = waits.iter().map(|p| u64::from(p.size)).sum();
    let flows = waits.iter().filter(|p| hold.whole || member.sent(world, p)).map(|p| p.flow);
    Held { port, lane, bytes, flows: flows.collect::<BTreeSet<u32>>().into_iter().collect() }
}

/// When the first of a cycle's queues continued, if any: a scheme dissolved the deadlock, or a link failed.
pub fn ended(deadlock: &Deadlock, pauses: &[Pause]) -> Option<Time> {
    let held = |p: &&Pause| deadlock.cycle.iter().any(|h| (h.port, h.lane) == (p.port, p.lane));
    let stood = pauses.iter().filter(|p| p.queue.is_none() && p.from <= deadlock.seen).filter(held);
    stood.filter_map(|p| p.until.filter(|&until| until >= deadlock.seen)).min()
}
