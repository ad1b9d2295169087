//! What Loop Breaker and Deadlock Breaker say of a run: the deadlocks that control planes found, and
//! what became of them.

use super::{Cure, Found, Tally};
use crate::flow_control::loops;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Level, Note, Ran, Record, Section};

/// What a run tells.
pub static FACTS: Facts = facts! { "breakers":
    found: Count, "Deadlocks found: queues that a probe of theirs (or one that lists them) came back to, each once for every pause of it.";
    attempts: Count, "Probes that came back.";
    dissolved: Count, "Deadlocks found whose queue went on later.";
    given_up: Count, "What devices tried and achieved nothing by: no packet had another way, or the shared pool had no room.";
    first_ps: Time, "When the first one was found; null if there was none.";
    first_port: Text, "The egress port that found it.";
    mean_ps: Time, "From finding one until its queue went on: the mean; null if none did.";
    longest_ps: Time, "The longest.";
    frames: Count, "Frames between control planes.";
    bytes: Bytes, "Their bytes.";
    rerouted: Count, "Packets that got another way.";
    stayed: Count, "Packets that waited in such a queue and have no other way, or found it paused.";
    enlarged: Count, "Ingress queues that got more room.";
    room_bytes: Bytes, "Bytes of shared pools that this took.";
};

/// What the control planes recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What is done about a deadlock.
    pub cure: Cure,
    /// Deadlocks that queues have found, in their order (then of port and lane).
    pub found: Vec<Found>,
    pub tally: Tally,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.found.extend(other.found);
        self.tally.add(&other.tally);
    }

    fn sort(&mut self) {
        self.found.sort_by_key(|f| (f.at, f.port, f.lane));
    }

    fn deadlocks_found(&self) -> Vec<Time> {
        self.found.iter().map(|f| f.at).collect()
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let times: Vec<Time> = self.found.iter().filter_map(|f| Some(f.until? - f.at)).collect();
        let first = self.found.first().map(|f| (f.at, ran.port(f.port)));
        let row = loops::row(self.found.len() as u64, first.as_ref(), &times, "went on", " after");
        let tally = &self.tally;
        let values = vec![
            (self.found.len() as u64).into(),
            self.attempts().into(),
            (times.len() as u64).into(),
            tally.failed.into(),
            first.as_ref().map(|f| f.0).into(),
            first.map(|f| f.1).into(),
            loops::mean(&times).into(),
            times.iter().copied().max().into(),
            tally.frames.into(),
            tally.bytes.into(),
            tally.rerouted.into(),
            tally.stayed.into(),
            tally.enlarged.into(),
            tally.enlarged_bytes.into(),
        ];
        let messages = format!("{} between control planes", human::bytes(tally.bytes));
        let mut section = Section::new(&FACTS, values).row("loops", format!("{row}; {messages}"));
        self.notes(&mut section.notes);
        section
    }
}

impl Report {
    fn attempts(&self) -> u64 {
        self.found.iter().map(|f| f.attempts).sum()
    }

    fn notes(&self, notes: &mut Vec<Note>) {
        if self.found.is_empty() {
            return;
        }
        let tally = &self.tally;
        let done = match self.cure {
            Cure::Reroute => format!(
                "{} got another way, and {} stayed, for want of one that was not paused",
                human::counted(tally.rerouted, "packet"),
                human::count(tally.stayed)
            ),
            Cure::Room(_) => format!(
                "{} more room, {} in all",
                match tally.enlarged {
                    1 => "1 ingress queue got".into(),
                    n => format!("{} ingress queues got", human::count(n)),
                },
                human::bytes(tally.enlarged_bytes)
            ),
        };
        let text = format!(
            "Control planes found {} with {}: {done}.",
            human::counted(self.found.len() as u64, "deadlock"),
            human::counted(self.attempts(), "probe")
        );
        notes.push(Note::new(Level::Finding, text));
        if tally.failed == 0 {
            return;
        }
        let attempts = human::counted(tally.failed, "attempt");
        let (text, help) = match self.cure {
            Cure::Reroute => (
                format!("{attempts} at rerouting moved no packet."),
                "Nothing else ends such a deadlock here: a network with more ways, or another scheme.",
            ),
            Cure::Room(_) => (
                format!("{attempts} at making room failed: the shared pool had too little."),
                "To see it succeed: a larger switch.buffer, or less flow_control.room.",
            ),
        };
        notes.push(Note::new(Level::Finding, text).help(help));
    }
}
