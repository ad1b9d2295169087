//! The report of the watchdog about a run: its storms, and their cost.

use super::{Action, Storm, WatchdogParams};
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Cause, Facts, Level, Note, Ran, Record, Section, Value};

/// A packet that waited in a queue in a storm, or came for it.
pub static DROPPED: Cause =
    Cause { name: "watchdog", because: "the watchdog found a storm", by: "by the watchdog" };

/// A packet that left a queue in a storm although it was paused, and that the peer had no room for.
pub static OVERRUN: Cause = Cause {
    name: "overrun",
    because: "a watchdog sent it despite the pause, and the peer had no room",
    by: "by the watchdog",
};

pub static FACTS: Facts = facts! { "watchdog":
    action: Text, "The action of a queue in a storm: `drop`, `forward` or `alert`.";
    storms: Count, "Storms found.";
    restored: Count, "Storms that ended, or whose link failed.";
    first_storm_ps: Time, "Time of the first storm; null if there was none.";
    dropped_packets: Count, "Packets dropped in queues in a storm, or on arrival at such a queue.";
    dropped_bytes: Bytes, "Bytes of these packets.";
    overrun_packets: Count, "Packets that left a paused queue in a storm and were dropped, because the peer had no room.";
    overrun_bytes: Bytes, "Bytes of these packets.";
    queues: List, "Each storm, in order of its beginning: `port`, `priority`, `from_ps`, and `until_ps` (null if it lasted to the end).";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The storms, in the order of their beginning (then of port and lane).
    pub storms: Vec<Storm>,
    pub params: WatchdogParams,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.storms.extend(other.storms);
    }

    fn sort(&mut self) {
        self.storms.sort_by_key(|s| (s.from, s.port, s.lane));
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let action = match self.params.action {
            Action::Drop => "drop",
            Action::Forward => "forward",
            Action::Alert => "alert",
        };
        let (dropped, overrun) = (ran.dropped(&DROPPED), ran.dropped(&OVERRUN));
        let restored = self.storms.iter().filter(|s| s.until.is_some()).count() as u64;
        let queue = |s: &Storm| {
            vec![
                ("port", Value::from(ran.port(s.port))),
                ("priority", ran.priorities[usize::from(s.lane)].into()),
                ("from_ps", s.from.into()),
                ("until_ps", s.until.into()),
            ]
            .into()
        };
        let lost = |(packets, bytes): (u64, u64), what: &str| match packets {
            0 => String::new(),
            n => format!(", {} ({}) {what}", human::counted(n, "packet"), human::bytes(bytes)),
        };
        let row = match self.storms.first() {
            None => "no storm found".into(),
            Some(first) => format!(
                "{} found, the first at {}, {} ended; action {action}{}{}",
                human::counted(self.storms.len() as u64, "storm"),
                human::time(first.from),
                human::count(restored),
                lost(dropped, "dropped"),
                lost(overrun, "dropped by the peer for lack of room"),
            ),
        };
        let values = vec![
            action.into(),
            (self.storms.len() as u64).into(),
            restored.into(),
            self.storms.first().map(|s| s.from).into(),
            dropped.0.into(),
            dropped.1.into(),
            overrun.0.into(),
            overrun.1.into(),
            self.storms.iter().map(queue).collect::<Vec<Value>>().into(),
        ];
        let mut section = Section::new(&FACTS, values).row("watchdog", row);
        section.notes.extend(self.note(ran, restored, dropped, overrun));
        section
    }
}

impl Report {
    /// Its actions, or how far it was from an action.
    fn note(&self, ran: &Ran<'_>, restored: u64, dropped: (u64, u64), overrun: (u64, u64)) -> Option<Note> {
        let params = &self.params;
        let Some(first) = self.storms.first() else {
            let watched = ran.outcome.pauses.iter().filter(|p| params.first[p.port as usize].is_some());
            let longest = watched.map(|p| p.length(ran.outcome.end)).max()?;
            let polls = match params.poll {
                0 => String::new(),
                poll => format!(" plus up to two polls, which are {} apart", human::time(poll)),
            };
            let text = format!(
                "The watchdog found no storm: the longest pause of a watched queue was {}, \
                 and a storm is a pause of {}{polls}.",
                human::time(longest),
                human::time(params.detection),
            );
            let help = "To make it act, shorten flow_control.detection_time, or raise run.duration.";
            return Some(Note::new(Level::Note, text).help(help));
        };
        let what = match params.action {
            Action::Drop => {
                format!("it dropped {} ({})", human::counted(dropped.0, "packet"), human::bytes(dropped.1))
            }
            Action::Forward => format!(
                "it let the queues send, and the peers dropped {} ({}) for lack of room",
                human::counted(overrun.0, "packet"),
                human::bytes(overrun.1)
            ),
            Action::Alert => "it only reported them".into(),
        };
        let over = if restored == 1 { "1 was".into() } else { format!("{} were", human::count(restored)) };
        let text = format!(
            "The watchdog found {}, the first at {} at {}; {over} over at the end; {what}.",
            human::counted(self.storms.len() as u64, "storm"),
            human::time(first.from),
            ran.port(first.port),
        );
        Some(Note::new(Level::Finding, text))
    }
}
