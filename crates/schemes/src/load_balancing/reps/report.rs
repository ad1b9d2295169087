//! The report of REPS about a run: where labels came from.

use std::ops::Add;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "reps":
    flows_with_choice: Count, "Flows with more than one route.";
    recycled: Count, "Packets with a label that came unmarked before.";
    frozen: Count, "Packets of frozen flows, with cached labels.";
    random: Count, "Packets with a random label.";
    moves: Count, "Packets with another route than the packet of the flow before.";
    freezes: Count, "Times that a flow froze after a timeout.";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Flows whose labels give them more than one route.
    pub with_choice: u64,
    pub sums: Recycling,
}

/// Packets by the origin of their labels, and changes of state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recycling {
    pub recycled: u64,
    pub frozen: u64,
    pub random: u64,
    pub moves: u64,
    pub freezes: u64,
}

impl Add for Recycling {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            recycled: self.recycled + other.recycled,
            frozen: self.frozen + other.frozen,
            random: self.random + other.random,
            moves: self.moves + other.moves,
            freezes: self.freezes + other.freezes,
        }
    }
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.sums = self.sums + other.sums;
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let Recycling { recycled, frozen, random, moves, freezes } = self.sums;
        let counts = [self.with_choice, recycled, frozen, random, moves, freezes];
        let packets = [recycled, frozen, random].map(human::count);
        let row = format!(
            "{} recycled, {} while frozen, {} random; {} with a choice, frozen {}",
            packets[0],
            packets[1],
            packets[2],
            human::counted(self.with_choice, "flow"),
            human::counted(freezes, "time"),
        );
        Section::new(&FACTS, counts.into_iter().map(Into::into).collect()).row("labels", row)
    }
}
