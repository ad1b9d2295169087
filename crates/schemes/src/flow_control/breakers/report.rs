//! The report of Loop Breaker and Deadlock Breaker about a run: deadlocks found, and their resolution.

use super::{Cure, Found, Tally};
use crate::flow_control::loops;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Level, Note, Ran, Record, Section};

pub static FACTS: Facts = facts! { "breakers":
    found: Count, "Deadlocks found: queues whose probe (or a probe that lists them) returned, once for each pause of the queue.";
    attempts: Count, "Probes that returned.";
    dissolved: Count, "Deadlocks found whose queue was resumed later.";
    given_up: Count, "Attempts that failed: no packet had another path, or the shared pool had no room.";
    first_ps: Time, "Time of the first deadlock found; null if there was none.";
    first_port: Text, "The egress port that found it.";
    mean_ps: Time, "Mean time from finding a deadlock until its queue was resumed; null if none was.";
    longest_ps: Time, "The longest such time.";
    frames: Count, "Frames between control planes.";
    bytes: Bytes, "Bytes of these frames.";
    rerouted: Count, "Packets moved to another path.";
    stayed: Count, "Packets that stayed in such a queue: they have no other path, or it was paused.";
    enlarged: Count, "Ingress queues that received more room.";
    room_bytes: Bytes, "Bytes taken from shared pools for it.";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
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
        let row = loops::row(self.found.len() as u64, first.as_ref(), &times, "resumed", " after");
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
                "{} moved to another path, and {} had no unpaused path",
                human::counted(tally.rerouted, "packet"),
                human::count(tally.stayed)
            ),
            Cure::Room(_) => format!(
                "{} received more room, {} in all",
                human::counted(tally.enlarged, "ingress queue"),
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
                format!("{attempts} to reroute moved no packet."),
                "This scheme cannot break such a deadlock: choose a network with more paths, or another scheme.",
            ),
            Cure::Room(_) => (
                format!("{attempts} to make room failed: the shared pool was too small."),
                "Raise switch.buffer, or lower flow_control.room.",
            ),
        };
        notes.push(Note::new(Level::Finding, text).help(help));
    }
}
