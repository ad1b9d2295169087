//! The report of Bifrost and BifrostX about a run: bytes stored, and bytes that could still arrive, at the
//! ends of long links, against the bounds of Theorem 1 (section IV-C).

use super::Granting;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "bifrost":
    slots: Count, "Slots of all granting ports; under Bifrost, of each lossless priority.";
    whole_slots: Count, "Slots granted whole, without a pause.";
    most_over_buffer: Bytes, "Largest excess over H of stored and still expected bytes, at the end of a slot; negative if they stayed below H. Null if there was no slot.";
    least_over_bdp: Bytes, "Smallest excess of the same bytes over Δ + R·T; if negative, throughput can be lost.";
    most_stored: Bytes, "Most bytes stored by a port at the end of a slot.";
    most_stored_port: Text, "The port with these bytes; null if no port had any.";
    buffer: Bytes, "H of that port.";
    least_spread: Bytes, "Smallest excess of the tokens of all priorities over the tokens of the port; null except under BifrostX.";
};

/// The grants of ports, in the order of ports and lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report(pub Vec<Granting>);

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    fn sort(&mut self) {
        self.0.sort_by_key(|g| (g.port, g.lane));
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let seen = || self.0.iter();
        let diff = |a: u64, b: u64| a as i64 - b as i64;
        let most = seen().rev().max_by_key(|g| g.tally.most_stored).filter(|g| g.tally.most_stored > 0);
        let slots = seen().map(|g| g.tally.slots).sum();
        let whole = seen().map(|g| g.tally.whole).sum();
        let granted = format!("{}, {} whole", human::counted(slots, "slot"), human::count(whole));
        let row = match most {
            Some(most) => format!(
                "{granted}; most stored {} of H = {} ({})",
                human::bytes(most.tally.most_stored),
                human::bytes(most.params.buffer),
                ran.port(most.port)
            ),
            None => format!("{granted}; no packet had to wait"),
        };
        let values = vec![
            slots.into(),
            whole.into(),
            seen().map(|g| diff(g.tally.most, g.params.buffer)).max().into(),
            seen().map(|g| diff(g.tally.least, g.params.bdp() + g.params.of_slot())).min().into(),
            most.map_or(0, |g| g.tally.most_stored).into(),
            most.map(|g| ran.port(g.port)).into(),
            most.map(|g| g.params.buffer).into(),
            seen().filter(|g| g.params.counted).map(|g| g.tally.least_spread).min().into(),
        ];
        Section::new(&FACTS, values).row("grants", row)
    }
}
