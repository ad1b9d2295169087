//! The report of ITSY about a run: the deadlocks that triggers found, and their resolution.

use super::{Detection, Resolution, Trigger};
use crate::flow_control::loops;
use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Cause, Facts, Level, Note, Ran, Record, Section};

/// A packet of a deadlock that made room.
pub static DROPPED: Cause = Cause { name: "itsy", because: "ITSY found it in a deadlock", by: "by ITSY" };

pub static FACTS: Facts = facts! { "itsy":
    resolution: Text, "Resolution of a deadlock: `lossy` or `lossless`.";
    triggers: Count, "How often ingress queues became initial triggers.";
    discarded: Count, "Checks that a trigger dropped because another trigger had sent them.";
    found: Count, "Deadlocks found: checks that returned to the trigger that had sent them.";
    attempts: Count, "How often packets of a deadlock were dropped, or its queue received room.";
    dissolved: Count, "Deadlocks found whose queue was resumed later.";
    given_up: Count, "How often the shared pool was too small to give room.";
    first_ps: Time, "Time of the first deadlock found; null if there was none.";
    first_port: Text, "The port whose ingress queue found it.";
    mean_ps: Time, "Mean time from finding a deadlock until its queue was resumed; null if none was.";
    longest_ps: Time, "The longest such time.";
    dropped_packets: Count, "Packets dropped to break deadlocks.";
    dropped_bytes: Bytes, "Bytes of these packets.";
    room_bytes: Bytes, "Bytes taken from shared pools for it.";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub resolution: Resolution,
    /// In the order of their beginning (then of port and lane).
    pub triggers: Vec<Trigger>,
    /// In the order in which they were found (then of port and lane).
    pub detections: Vec<Detection>,
    pub discarded: u64,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.triggers.extend(other.triggers);
        self.detections.extend(other.detections);
        self.discarded += other.discarded;
    }

    fn sort(&mut self) {
        self.triggers.sort_by_key(|t| (t.from, t.port, t.lane));
        self.detections.sort_by_key(|d| (d.at, d.port, d.lane));
    }

    fn deadlocks_found(&self) -> Vec<Time> {
        self.detections.iter().map(|d| d.at).collect()
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let found = &self.detections;
        let times: Vec<Time> = found.iter().filter_map(|d| Some(d.ended? - d.at)).collect();
        let first = found.first().map(|d| (d.at, ran.port(d.port)));
        let dropped = ran.dropped(&DROPPED);
        let triggers = human::counted(self.triggers.len() as u64, "trigger");
        let row = loops::row(found.len() as u64, first.as_ref(), &times, "resumed", " after");
        let values = vec![
            if self.resolution == Resolution::Lossy { "lossy" } else { "lossless" }.into(),
            (self.triggers.len() as u64).into(),
            self.discarded.into(),
            (found.len() as u64).into(),
            self.sum(|d| d.acted).into(),
            (times.len() as u64).into(),
            self.sum(|d| d.refused).into(),
            first.as_ref().map(|f| f.0).into(),
            first.map(|f| f.1).into(),
            loops::mean(&times).into(),
            times.iter().copied().max().into(),
            dropped.0.into(),
            dropped.1.into(),
            self.sum(|d| d.room).into(),
        ];
        let mut section = Section::new(&FACTS, values).row("loops", format!("{row}; {triggers}"));
        self.notes(ran, dropped, &mut section.notes);
        section
    }
}

impl Report {
    fn sum(&self, of: impl Fn(&Detection) -> u64) -> u64 {
        self.detections.iter().map(of).sum()
    }

    /// Its actions, or the deadlocks that it missed.
    fn notes(&self, ran: &Ran<'_>, dropped: (u64, u64), notes: &mut Vec<Note>) {
        let found = &self.detections;
        if found.is_empty() {
            if ran.outcome.deadlock.as_ref().is_some_and(|d| d.ended.is_none()) {
                let text = format!(
                    "ITSY missed the deadlock: no check of {} returned ({} dropped by other triggers).",
                    human::counted(self.triggers.len() as u64, "trigger"),
                    human::count(self.discarded)
                );
                let help = "ITSY finds only deadlocks with one trigger, inside the loop. Compare with a scheme that starts from each queue (`xoff schemes`).";
                notes.push(Note::new(Level::Finding, text).help(help));
            }
            return;
        }
        let room = self.sum(|d| d.room);
        let done = match self.resolution {
            Resolution::Lossy => {
                format!("{} ({}) dropped", human::counted(dropped.0, "packet"), human::bytes(dropped.1))
            }
            Resolution::Lossless(_) => format!("{} of room given", human::bytes(room)),
        };
        let text = format!(
            "ITSY found {} and acted {}: {done}.",
            human::counted(found.len() as u64, "deadlock"),
            human::counted(self.sum(|d| d.acted), "time")
        );
        notes.push(Note::new(Level::Finding, text));
        let refused = self.sum(|d| d.refused);
        if refused > 0 {
            let times = human::counted(refused, "time");
            let text = format!("ITSY could not give room {times}: the shared pool was too small.");
            let help = "Raise switch.buffer, or lower flow_control.room.";
            notes.push(Note::new(Level::Finding, text).help(help));
        }
    }
}
