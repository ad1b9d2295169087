//! The report of packet trimming about a run: packets that were cut, and headers that were lost.

use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Cause, Facts, Level, Note, Ran, Record, Section};

/// A data packet that was cut to its header. Its bytes are those that were cut off.
pub static TRIMMED: Cause =
    Cause { name: "trimmed", because: "it had no room, and its header went on", by: "by trimming" };

/// The header of a trimmed packet that had no room either.
pub static HEADER_LOST: Cause = Cause {
    name: "header-lost",
    because: "it was trimmed, and its header had no room either",
    by: "after trimming",
};

pub static FACTS: Facts = facts! { "trimming":
    trimmed_packets: Count, "Data packets that had no room and were cut to their header. `counters.dropped` includes them.";
    trimmed_bytes: Bytes, "Bytes that were cut off these packets.";
    lost_headers: Count, "Trimmed packets that were dropped because their queue or the buffer was full.";
    lost_header_bytes: Bytes, "Bytes of these headers.";
};

/// The drops of a run have all numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report;

impl Record for Report {
    fn add(&mut self, Self: Self) {}

    fn section(&self, ran: &Ran<'_>) -> Section {
        let ((packets, bytes), (lost, lost_bytes)) = (ran.dropped(&TRIMMED), ran.dropped(&HEADER_LOST));
        let row = match (packets, lost) {
            (0, _) => "no packet trimmed".to_string(),
            (_, 0) => format!("{} trimmed, no header lost", human::counted(packets, "packet")),
            _ => format!(
                "{} trimmed, {} lost",
                human::counted(packets, "packet"),
                human::counted(lost, "header")
            ),
        };
        let values = vec![packets.into(), bytes.into(), lost.into(), lost_bytes.into()];
        let mut section = Section::new(&FACTS, values).row("trimming", row);
        if lost > 0 {
            let text = format!(
                "{} of trimmed packets had no room: their senders find the loss after a timeout.",
                human::counted(lost, "header")
            );
            let help = "Raise egress_limit or alpha of the priority of trimmed packets, or lower the first window of the senders.";
            section.notes.push(Note::new(Level::Warning, text).help(help));
        }
        section
    }
}
