//! The report of DSH about a run: its pauses by level, and the use of the insurance.

use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "dsh":
    queue_pauses: Count, "How often an ingress queue went from QON to QOFF. Repeated frames are not counted.";
    port_pauses: Count, "How often a port went from PON to POFF. Repeated frames are not counted.";
    insured_packets: Count, "Packets that went to the insurance of a port.";
    insurance_peak_bytes: Bytes, "Most bytes in the insurance of one port at one time.";
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub queue_pauses: u64,
    pub port_pauses: u64,
    pub insured: u64,
    /// Bytes.
    pub peak: u64,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.queue_pauses += other.queue_pauses;
        self.port_pauses += other.port_pauses;
        self.insured += other.insured;
        self.peak = self.peak.max(other.peak);
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let row = format!(
            "{} of a queue, {} of a port; {} in an insurance, {} at most",
            human::counted(self.queue_pauses, "pause"),
            human::grouped(self.port_pauses),
            human::counted(self.insured, "packet"),
            human::bytes(self.peak),
        );
        let values =
            vec![self.queue_pauses.into(), self.port_pauses.into(), self.insured.into(), self.peak.into()];
        Section::new(&FACTS, values).row("headroom", row)
    }
}
