//! The report of LLR about a run.

use xoff_kernel::time::Time;
use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Level, Note, Ran, Record, Section};

pub static FACTS: Facts = facts! { "llr":
    frames: Count, "Frames that links sent for the first time, control frames included.";
    replayed: Count, "Frames that links retransmitted.";
    replayed_bytes: Bytes, "Bytes of these frames.";
    acks: Count, "LLR_ACKs sent.";
    nacks: Count, "LLR_NACKs sent: a frame was missing or had a bad check sequence.";
    timeouts: Count, "Expired replay timers: a link retransmitted its whole buffer.";
    hit: Count, "Frames, repeated ones included, that links lost or corrupted.";
    hit_words: Count, "Ordered sets that links lost or corrupted.";
    early: Count, "Frames discarded because a frame before them was missing.";
    duplicates: Count, "Frames discarded because they had arrived before.";
    flushes: Count, "How often a link gave up its frames after its last replay.";
    given_up: Count, "Frames that were dropped by that.";
    stalls: Count, "How often a port with a packet to send waited because its replay buffer was full.";
    stalled_ps: Time, "Sum of these waits, over all ports. A wait that lasts to the end of the run is missing.";
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub frames: u64,
    pub replayed: u64,
    pub replayed_bytes: u64,
    pub acks: u64,
    pub nacks: u64,
    pub timeouts: u64,
    pub hit: u64,
    pub hit_words: u64,
    pub early: u64,
    pub duplicates: u64,
    pub flushes: u64,
    pub given_up: u64,
    pub stalls: u64,
    pub stalled: Time,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.frames += other.frames;
        self.replayed += other.replayed;
        self.replayed_bytes += other.replayed_bytes;
        self.acks += other.acks;
        self.nacks += other.nacks;
        self.timeouts += other.timeouts;
        self.hit += other.hit;
        self.hit_words += other.hit_words;
        self.early += other.early;
        self.duplicates += other.duplicates;
        self.flushes += other.flushes;
        self.given_up += other.given_up;
        self.stalls += other.stalls;
        self.stalled = self.stalled.saturating_add(other.stalled);
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let row = format!(
            "{} retransmitted of {}; {} and {}",
            human::counted(self.replayed, "frame"),
            human::count(self.frames),
            human::counted(self.nacks, "NACK"),
            human::counted(self.timeouts, "timeout"),
        );
        let values = vec![
            self.frames.into(),
            self.replayed.into(),
            self.replayed_bytes.into(),
            self.acks.into(),
            self.nacks.into(),
            self.timeouts.into(),
            self.hit.into(),
            self.hit_words.into(),
            self.early.into(),
            self.duplicates.into(),
            self.flushes.into(),
            self.given_up.into(),
            self.stalls.into(),
            self.stalled.into(),
        ];
        let mut section = Section::new(&FACTS, values).row("retries", row);
        if self.given_up > 0 {
            let text = format!(
                "links gave up {} after their last replay, so packets were lost",
                human::counted(self.given_up, "frame")
            );
            let help = "To keep them, raise link_layer.replays or remove it.";
            section.notes.push(Note::new(Level::Finding, text).help(help));
        }
        section
    }
}
