//! The report of Pyrrha about a run: roots, trees, isolation queues.

use super::Tally;
use xoff_net::{human, topology::PortId};
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section, Value};

pub static FACTS: Facts = facts! { "pyrrha":
    claims: Count, "How often ports claimed to be a root.";
    abdications: Count, "How often ports abdicated for a root further down.";
    merges: Count, "Frames that merged one tree into another.";
    releases: Count, "Frames that released an isolation queue.";
    host_releases: Count, "Releases sent by hosts.";
    own_roots: Count, "Frames ignored because they named the port that received them.";
    shared: Count, "How often a root had to share an isolation queue with another root.";
    moves: Count, "Packets moved from one isolation queue to another.";
    most_queues: Count, "Most isolation queues in use at one port at a time.";
    most_queues_port: Text, "The first port with this number; null if no port used any.";
    standing_roots: List, "Ports that are roots at the end, in order; each port once for all of its priorities.";
    isolation_queues: ByPort, "Most isolation queues in use at one port at a time.";
    filled_queues: ByPort, "Most isolation queues that hold packets at one port at a time.";
};

impl Record for Tally {
    fn add(&mut self, other: Self) {
        self.claims += other.claims;
        self.abdications += other.abdications;
        self.merges += other.merges;
        self.releases += other.releases;
        self.host_releases += other.host_releases;
        self.own_roots += other.own_roots;
        self.shared += other.shared;
        self.moves += other.moves;
        for (mine, theirs) in
            [(&mut self.peak_queues, &other.peak_queues), (&mut self.peak_filled, &other.peak_filled)]
        {
            mine.resize(mine.len().max(theirs.len()), 0);
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = (*mine).max(*theirs);
            }
        }
    }

    fn by_port(&self, ports: usize) -> Vec<(&'static str, Vec<u64>)> {
        let padded =
            |peaks: &[u16]| peaks.iter().map(|&n| n.into()).chain(std::iter::repeat(0)).take(ports).collect();
        vec![("isolation_queues", padded(&self.peak_queues)), ("filled_queues", padded(&self.peak_filled))]
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let most = self.peak_queues.iter().copied().max().unwrap_or(0);
        let port = self.peak_queues.iter().position(|&q| q == most && q > 0);
        let port = port.map(|p| ran.port(p as PortId));
        let mut standing: Vec<PortId> =
            ran.outcome.roots.iter().filter(|r| r.is_root).map(|r| r.port).collect();
        standing.dedup();
        let row = match &port {
            None => format!("{}, no isolation queue in use", human::counted(self.claims, "claim")),
            Some(port) => format!(
                "{}, {} abdicated, {}, {}; at most {} in use ({port}){}",
                human::counted(self.claims, "claim"),
                human::count(self.abdications),
                human::counted(self.merges, "merge"),
                human::counted(self.releases, "release"),
                human::counted(most.into(), "isolation queue"),
                match self.shared {
                    0 => String::new(),
                    n => format!(", shared by several roots {} times", human::count(n)),
                },
            ),
        };
        let values = vec![
            self.claims.into(),
            self.abdications.into(),
            self.merges.into(),
            self.releases.into(),
            self.host_releases.into(),
            self.own_roots.into(),
            self.shared.into(),
            self.moves.into(),
            most.into(),
            port.into(),
            standing.into_iter().map(|p| ran.port(p).into()).collect::<Vec<Value>>().into(),
        ];
        Section::new(&FACTS, values).row("roots", row)
    }
}
