//! The report of GFC about a run: its stages, and the time that packets waited for a rate.

use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Level, Note, Ran, Record, Section};

pub static FACTS: Facts = facts! { "gfc":
    frames: Count, "Feedback frames with a stage, or with stored bytes. A frame that joined a waiting frame counts, too.";
    repeats: Count, "How many of them repeated a stage, because links lose frames.";
    deepest: Count, "How often the lowest rate of an ingress account was the link's rate, halved: its highest stage. With `form = \"time\"` rounded down.";
    waits: Count, "How often a lane of a port had a packet to send and waited for its rate.";
    waited_ps: Time, "Sum of these waits, over all ports and priorities. Waits that last to the end of the run are missing.";
    longest_ps: Time, "The longest of these waits.";
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub frames: u64,
    pub repeats: u64,
    pub deepest: u8,
    pub waits: u64,
    pub waited: Time,
    pub longest: Time,
}

impl Report {
    pub(super) fn count_wait(&mut self, length: Time) {
        self.waits += 1;
        self.waited = self.waited.saturating_add(length);
        self.longest = self.longest.max(length);
    }
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.repeats += other.repeats;
        self.deepest = self.deepest.max(other.deepest);
        self.waits += other.waits;
        self.waited = self.waited.saturating_add(other.waited);
        self.longest = self.longest.max(other.longest);
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let row = format!(
            "{}, the lowest rate halved {}; {} for a rate, the longest {}",
            human::counted(self.frames, "frame"),
            human::counted(self.deepest.into(), "time"),
            human::counted(self.waits, "wait"),
            human::time(self.longest),
        );
        let values = vec![
            self.frames.into(),
            self.repeats.into(),
            self.deepest.into(),
            self.waits.into(),
            self.waited.into(),
            self.longest.into(),
        ];
        let mut section = Section::new(&FACTS, values).row("rates", row);
        if self.deepest == 0 && self.waits == 0 && !ran.outcome.flows.is_empty() {
            let text = "GFC had no effect: no sender waited for a lower rate.";
            let help = "To slow senders, raise the load or the fan-in, or lower flow_control.b1 or b0.";
            section.notes.push(Note::new(Level::Note, text).help(help));
        }
        section
    }
}
