//! Programs: what each rank of a job computes, sends and receives, and what it waits for.
//!
//! A program becomes messages and barriers in which every wait is for something at the same host. A send is
//! done for its own rank when it begins: the rank goes on while the network carries the message.

use super::collective::{Schedule, Step, part, ring};
use super::{Demand, check_count};
use crate::error::SpecError;
use crate::topology::NodeId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use xoff_kernel::time::Time;

/// How the members of a group exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// A ring of 2(n − 1) steps, each of an n-th of the buffer (Patarasu and Yuan, JPDC 2009).
    AllReduce,
    /// The first half of the same ring: n − 1 steps.
    ReduceScatter,
    /// Its second half.
    AllGather,
    /// Each member sends an n-th of its buffer to each other one, all at once.
    AllToAll,
}

impl Pattern {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Pattern::AllReduce => "all-reduce",
            Pattern::ReduceScatter => "reduce-scatter",
            Pattern::AllGather => "all-gather",
            Pattern::AllToAll => "all-to-all",
        }
    }

    /// Messages of a group of `n`.
    pub fn messages(self, n: u64) -> u64 {
        let others = n.saturating_sub(1);
        n * match self {
            Pattern::AllReduce => 2 * others,
            Pattern::ReduceScatter | Pattern::AllGather | Pattern::AllToAll => others,
        }
    }
}

/// What a rank does at a node of its program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing leaves the rank for this time.
    Compute(Time),
    Send {
        to: u32,
        /// Payload bytes; at least 1 B is sent.
        size: u64,
        /// The first send of a tag belongs to the first receive of it, and so on.
        tag: u64,
    },
    Receive {
        from: u32,
        tag: u64,
    },
    /// The first collective of a group at one member belongs to the first one at the others, and so on.
    Collective {
        pattern: Pattern,
        /// Index into [`Program::groups`].
        group: u32,
        /// Bytes as in [`super::Operation::size`].
        size: u64,
    },
    /// A point that the results report the time of: the end of an iteration.
    Iteration(u32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The nodes of the same rank that are done before; none: it begins at the start.
    pub after: Vec<u32>,
    pub work: Work,
}

/// A group of ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// Its name in results, without the pattern.
    pub name: String,
    /// Its ranks, in the order of the ring.
    pub ranks: Vec<u32>,
}

impl Members {
    /// Its name in sentences.
    fn title(&self) -> String {
        if self.name.is_empty() { "all ranks".into() } else { format!("group {}", self.name) }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// By rank.
    pub ranks: Vec<Vec<Node>>,
    pub groups: Vec<Members>,
}

/// A collective of one group, as its members come to it.
struct Meeting {
    /// Of the first member that came.
    pattern: Pattern,
    size: u64,
    /// Node and barrier, by position in the group.
    came: Vec<Option<(u32, u32)>>,
}

/// What a node is called in errors, by rank and node.
pub type Label<'l> = &'l dyn Fn(u32, u32) -> String;

/// The units of a rank that compute one node at a time, in a network without delay.
struct Units<'u> {
    /// By rank and node: the unit that its computation needs.
    of: &'u [Vec<Option<u8>>],
    /// By rank and unit: the last node, and when it ends.
    last: BTreeMap<(u32, u8), (u32, Time)>,
    /// Rank, node and the node before it at the same unit.
    turns: Vec<(u32, u32, u32)>,
}

/// The state of a program that is being turned into a schedule.
struct Run<'p> {
    program: &'p Program,
    hosts: &'p [NodeId],
    label: Label<'p>,
    start: Time,
    units: Option<Units<'p>>,
    out: Schedule,
    /// By rank: the barrier at the beginning.
    begins: Vec<u32>,
    /// By rank and node: how many nodes it still waits for, and the barrier that opens when it is done.
    left: Vec<Vec<u32>>,
    done: Vec<Vec<Option<u32>>>,
    /// By rank and node: the nodes that wait for it.
    next: Vec<Vec<Vec<u32>>>,
    /// By rank and node: when the nodes before it are done, in a network without delay. 0 without units.
    from: Vec<Vec<Time>>,
    /// The earliest first: time, order of those of one time, rank and node.
    ready: BinaryHeap<Reverse<(Time, u64, u32, u32)>>,
    /// How many nodes were ready.
    count: u64,
    /// By sender, receiver and tag: steps that were sent, with their time; receives that wait, each as node and
    /// barrier.
    sent: BTreeMap<(u32, u32, u64), VecDeque<(usize, Time)>>,
    awaited: BTreeMap<(u32, u32, u64), VecDeque<(u32, u32)>>,
    /// By group: how many collectives each member has come to, and those that some member has not come to.
    turns: Vec<Vec<usize>>,
    meetings: Vec<VecDeque<(usize, Meeting)>>,
}

impl Program {
    /// Messages of all ranks.
    pub fn messages(&self) -> u64 {
        let mut sum = 0u64;
        for node in self.ranks.iter().flatten() {
            sum = sum.saturating_add(match node.work {
                Work::Send { .. } => 1,
                Work::Collective { pattern, group, .. } => {
                    let n = self.groups[group as usize].ranks.len() as u64;
                    // Each member has the node.
                    pattern.messages(n) / n.max(1)
                }
                _ => 0,
            });
        }
        sum
    }

    /// Its messages, where rank r is the host `hosts[r]`.
    ///
    /// # Errors
    ///
    /// The program cannot end: a send without its receive, a collective that not all members come to, or nodes
    /// that wait for each other. The key is `program`.
    pub fn schedule(&self, hosts: &[NodeId], start: Time, label: Label<'_>) -> Result<Schedule, SpecError> {
        check_count("program", self.messages() as f64)?;
        let mut run = Run::new(self, hosts, start, label, None);
        run.finish_all()?;
        Ok(run.out)
    }

    /// Lets the computations that need the same unit of a rank follow each other: `units` has the unit by rank and
    /// node. Their order is the one in which they are ready in a network without delay, and that of their numbers
    /// where they are ready together. No order can make the program wait for itself: it is the order of a run.
    ///
    /// # Errors
    ///
    /// Those of [`Program::schedule`].
    pub fn take_turns(&mut self, units: &[Vec<Option<u8>>], label: Label<'_>) -> Result<(), SpecError> {
        check_count("program", self.messages() as f64)?;
        let hosts: Vec<NodeId> = (0..self.ranks.len() as NodeId).collect();
        let units = Units { of: units, last: BTreeMap::new(), turns: Vec::new() };
        let mut run = Run::new(self, &hosts, 0, label, Some(units));
        run.finish_all()?;
        for (rank, node, before) in run.units.map(|units| units.turns).unwrap_or_default() {
            let after = &mut self.ranks[rank as usize][node as usize].after;
            if !after.contains(&before) {
                after.push(before);
            }
        }
        Ok(())
    }
}

impl<'p> Run<'p> {
    fn new(
        program: &'p Program,
        hosts: &'p [NodeId],
        start: Time,
        label: Label<'p>,
        units: Option<Units<'p>>,
    ) -> Self {
        let mut out = Schedule::default();
        let begins = hosts[..program.ranks.len()]
            .iter()
            .map(|&host| {
                let begin = out.barrier(host, 0);
                out.barriers[begin as usize].start = start;
                begin
            })
            .collect();
        let mut next: Vec<Vec<Vec<u32>>> =
            program.ranks.iter().map(|nodes| vec![Vec::new(); nodes.len()]).collect();
        let mut first = Vec::new();
        for (rank, nodes) in (0..).zip(&program.ranks) {
            for (index, node) in (0..).zip(nodes) {
                for &before in &node.after {
                    next[rank as usize][before as usize].push(index);
                }
                if node.after.is_empty() {
                    first.push((rank, index));
                }
            }
        }
        let mut run = Self {
            program,
            hosts,
            label,
            start,
            units,
            out,
            begins,
            left: program
                .ranks
                .iter()
                .map(|all| all.iter().map(|n| n.after.len() as u32).collect())
                .collect(),
            done: program.ranks.iter().map(|all| vec![None; all.len()]).collect(),
            next,
            from: program.ranks.iter().map(|all| vec![0; all.len()]).collect(),
            ready: BinaryHeap::new(),
            count: 0,
            sent: BTreeMap::new(),
            awaited: BTreeMap::new(),
            turns: program.groups.iter().map(|g| vec![0; g.ranks.len()]).collect(),
            meetings: program.groups.iter().map(|_| VecDeque::new()).collect(),
        };
        for (rank, node) in first {
            run.is_ready(rank, node);
        }
        run
    }

    fn finish_all(&mut self) -> Result<(), SpecError> {
        while let Some(Reverse((_, _, rank, node))) = self.ready.pop() {
            self.take(rank, node)?;
        }
        self.check()
    }

    fn is_ready(&mut self, rank: u32, node: u32) {
        let at = self.from[rank as usize][node as usize];
        let order = if self.units.is_some() { node.into() } else { self.count };
        self.count += 1;
        self.ready.push(Reverse((at, order, rank, node)));
    }

    /// When the nodes before it are done.
    fn from(&self, rank: u32, node: u32) -> Time {
        self.from[rank as usize][node as usize]
    }

    /// When a computation ends that may begin at a time, after the one before it at its unit; notes its turn.
    fn computed(&mut self, rank: u32, node: u32, delay: Time) -> Time {
        let mut at = self.from(rank, node);
        let Some(units) = &mut self.units else { return at };
        let Some(unit) = units.of[rank as usize][node as usize] else { return at.saturating_add(delay) };
        if let Some(&(before, end)) = units.last.get(&(rank, unit)) {
            units.turns.push((rank, node, before));
            at = at.max(end);
        }
        let end = at.saturating_add(delay);
        units.last.insert((rank, unit), (node, end));
        end
    }

    /// A barrier of a rank after all of the others.
    fn join(&mut self, rank: u32, delay: Time, after: &[u32]) -> u32 {
        let barrier = self.out.barrier(self.hosts[rank as usize], delay);
        for &before in after {
            self.out.barriers[before as usize].then.push(barrier);
        }
        barrier
    }

    /// The barrier at which a node may begin.
    fn begin(&mut self, rank: u32, node: u32) -> u32 {
        let mut after: Vec<u32> = self.program.ranks[rank as usize][node as usize]
            .after
            .iter()
            .filter_map(|&before| self.done[rank as usize][before as usize])
            .collect();
        after.sort_unstable();
        after.dedup();
        match *after {
            [] => self.begins[rank as usize],
            [one] => one,
            _ => self.join(rank, 0, &after),
        }
    }

    fn message(&mut self, from: u32, to: u32, size: u64, after: u32, opens: Option<u32>) {
        let (src, dst) = (self.hosts[from as usize], self.hosts[to as usize]);
        let demand = Demand { src, dst, size: size.max(1), start: self.start };
        self.out.steps.push(Step { demand, after: Some(after), opens });
    }

    /// The node is done when the barrier opens, in a network without delay at a time.
    fn finish(&mut self, rank: u32, node: u32, barrier: u32, at: Time) {
        self.done[rank as usize][node as usize] = Some(barrier);
        for next in std::mem::take(&mut self.next[rank as usize][node as usize]) {
            let from = &mut self.from[rank as usize][next as usize];
            *from = at.max(*from);
            let left = &mut self.left[rank as usize][next as usize];
            *left -= 1;
            if *left == 0 {
                self.is_ready(rank, next);
            }
        }
    }

    fn take(&mut self, rank: u32, node: u32) -> Result<(), SpecError> {
        let begin = self.begin(rank, node);
        let at = self.from(rank, node);
        match self.program.ranks[rank as usize][node as usize].work {
            Work::Compute(delay) => {
                let done = if delay > 0 { self.join(rank, delay, &[begin]) } else { begin };
                let end = self.computed(rank, node, delay);
                self.finish(rank, node, done, end);
            }
            Work::Iteration(index) => {
                let iterations = &mut self.out.iterations;
                iterations.resize(iterations.len().max(index as usize + 1), Vec::new());
                iterations[index as usize].push(begin);
                self.finish(rank, node, begin, at);
            }
            Work::Send { to, size, tag } => {
                self.message(rank, to, size, begin, None);
                self.finish(rank, node, begin, at);
                let key = (rank, to, tag);
                let step = self.out.steps.len() - 1;
                match self.awaited.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some((receive, barrier)) => {
                        self.out.steps[step].opens = Some(barrier);
                        self.finish(to, receive, barrier, at.max(self.from(to, receive)));
                    }
                    None => self.sent.entry(key).or_default().push_back((step, at)),
                }
            }
            Work::Receive { from, tag } => {
                let barrier = self.join(rank, 0, &[begin]);
                let key = (from, rank, tag);
                match self.sent.get_mut(&key).and_then(VecDeque::pop_front) {
                    Some((step, sent)) => {
                        self.out.steps[step].opens = Some(barrier);
                        self.finish(rank, node, barrier, at.max(sent));
                    }
                    None => self.awaited.entry(key).or_default().push_back((node, barrier)),
                }
            }
            Work::Collective { pattern, group, size } => {
                self.meet(rank, node, begin, pattern, group, size)?
            }
        }
        Ok(())
    }

    /// A member comes to a collective; the last one begins it.
    fn meet(
        &mut self,
        rank: u32,
        node: u32,
        begin: u32,
        pattern: Pattern,
        group: u32,
        size: u64,
    ) -> Result<(), SpecError> {
        let members: &'p Members = &self.program.groups[group as usize];
        let known = members.ranks.iter().position(|&member| member == rank);
        let Some(position) = known else {
            let message = format!(
                "{} is a collective of {}, and rank {rank} is not a member",
                (self.label)(rank, node),
                members.title()
            );
            return Err(SpecError::new("program", message, "name the groups that the rank is in"));
        };
        let turn = self.turns[group as usize][position];
        self.turns[group as usize][position] += 1;
        let meetings = &mut self.meetings[group as usize];
        if meetings.iter().all(|&(at, _)| at != turn) {
            let came = vec![None; members.ranks.len()];
            meetings.push_back((turn, Meeting { pattern, size, came }));
        }
        let index = meetings.iter().position(|&(at, _)| at == turn).expect("it was added");
        let meeting = &mut meetings[index].1;
        if (meeting.pattern, meeting.size) != (pattern, size) {
            let message = format!(
                "{} is {} of {size} B; for another member, collective {} of {} is {} of {} B",
                (self.label)(rank, node),
                pattern.name(),
                turn + 1,
                members.title(),
                meeting.pattern.name(),
                meeting.size,
            );
            return Err(SpecError::new(
                "program",
                message,
                "give all members the same collectives in the same order",
            ));
        }
        meeting.came[position] = Some((node, begin));
        if meeting.came.iter().all(Option::is_some) {
            let (_, meeting) = meetings.remove(index).expect("it is there");
            let came: Vec<(u32, u32)> = meeting.came.into_iter().flatten().collect();
            self.exchange(members, pattern, size, &came);
        }
        Ok(())
    }

    /// The messages of a collective; `came` has the node and barrier of each member.
    fn exchange(&mut self, members: &Members, pattern: Pattern, size: u64, came: &[(u32, u32)]) {
        let ranks = &members.ranks;
        let n = ranks.len();
        let from = self.out.steps.len();
        // Of each member, the barrier after which it goes on.
        let mut at: Vec<u32> = came.iter().map(|&(_, begin)| begin).collect();
        if n > 1 && pattern == Pattern::AllToAll {
            let done: Vec<u32> = (0..n).map(|i| self.join(ranks[i], 0, &[at[i]])).collect();
            for shift in 1..n {
                for i in 0..n {
                    let to = (i + shift) % n;
                    let part = part(size, n as u64, to as u64);
                    self.message(ranks[i], ranks[to], part, at[i], Some(done[to]));
                }
            }
            at = done;
        } else if n > 1 {
            for step in 0..pattern.messages(n as u64) as usize / n {
                let before = at.clone();
                for (i, &rank) in ranks.iter().enumerate() {
                    at[i] = self.join(rank, 0, &[before[i]]);
                }
                for (from, to, size) in ring(n, size, step) {
                    self.message(ranks[from], ranks[to], size, before[from], Some(at[to]));
                }
            }
        }
        let steps = from..self.out.steps.len();
        let name = format!("{} {}", members.name, pattern.name());
        self.out.operation(name.trim(), n as u32, size, steps);
        let met = came.iter().zip(ranks).map(|(&(node, _), &rank)| self.from(rank, node)).max();
        for (i, &(node, _)) in came.iter().enumerate() {
            self.finish(ranks[i], node, at[i], met.unwrap_or_default());
        }
    }

    /// Refuses a program that does not come to its end.
    fn check(&self) -> Result<(), SpecError> {
        let refuse = |message: String, help: &str| Err(SpecError::new("program", message, help));
        for (group, meetings) in self.program.groups.iter().zip(&self.meetings) {
            let Some((turn, meeting)) = meetings.front() else { continue };
            let absent = meeting.came.iter().position(Option::is_none).map(|i| group.ranks[i]);
            let came =
                group.ranks.iter().zip(&meeting.came).find_map(|(&rank, came)| Some((rank, (*came)?.0)));
            let message = format!(
                "{} never begins: rank {} does not come to collective {} of {} ({} of {} B)",
                came.map(|(rank, node)| (self.label)(rank, node)).unwrap_or_default(),
                absent.unwrap_or_default(),
                turn + 1,
                group.title(),
                meeting.pattern.name(),
                meeting.size,
            );
            return refuse(message, "give all members the same collectives in the same order");
        }
        let waiting = self.awaited.iter().find_map(|(key, receives)| Some((key, receives.front()?)));
        if let Some(((from, to, tag), &(node, _))) = waiting {
            let message = format!(
                "{} waits for a message of tag {tag} from rank {from}, which never sends it",
                (self.label)(*to, node)
            );
            return refuse(message, "add the send to that rank");
        }
        let stuck = |done: &Vec<Option<u32>>| done.iter().position(Option::is_none);
        if let Some((rank, node)) = self.done.iter().enumerate().find_map(|(r, d)| Some((r, stuck(d)?))) {
            let message = format!(
                "{} never begins: the nodes before it wait for it",
                (self.label)(rank as u32, node as u32)
            );
            return refuse(message, "remove the cycle of dependencies");
        }
        Ok(())
    }
}
