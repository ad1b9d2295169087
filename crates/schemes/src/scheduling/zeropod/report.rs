//! The report of pods without buffers about a run: epochs, grants, data without a grant, and failures.

use super::Tally;
use xoff_kernel::time::Time;
use xoff_net::{human, topology::PortId};
use xoff_outcome::facts;
use xoff_outcome::report::{Cause, Facts, Level, Note, Promise, Ran, Record, Section, Value};

/// A cell that was sent without a grant, and met another one.
pub static COLLISION: Cause = Cause {
    name: "collision",
    because: "it was sent without a grant and collided with another cell",
    by: "by collision",
};

pub static FACTS: Facts = facts! { "zeropod":
    epoch_ps: Time, "Length of an epoch.";
    pipeline: Count, "Epochs from the arrival of a request to its data.";
    epochs: Count, "Scheduled epochs, summed over all pods.";
    grants: Count, "Grants: one for each sender and epoch.";
    scheduled: Count, "Granted cells that crossed a pod; cells between pods cross two.";
    unused: Count, "Granted cells that stayed empty: the flow had no more data.";
    iterations: Count, "Iterations of Algorithm 1 with at least one request for a path.";
    requests: Count, "Paths requested.";
    accepted: Count, "Path requests that were accepted.";
    most_in_rts: Count, "Entries of the longest request (RTS).";
    backpressure: Count, "How often a core requested no more cells for a pod (backpressure).";
    most_held: Bytes, "Most bytes that a receiver held back until earlier bytes arrived.";
    optimistic: Count, "Cells sent optimistically.";
    optimistic_delivered: Count, "Optimistic cells that arrived.";
    optimistic_share: Share, "Share of optimistic cells that arrived, 0 to 1; null if none was sent.";
    optimistic_goodput: Share, "Optimistic cells that arrived per host and cell time, between the first and the last start of a flow (S of equation 7); null if none was sent.";
    met_scheduled: Count, "Optimistic cells that collided with a scheduled cell.";
    met_optimistic: Count, "Optimistic cells that collided with another optimistic cell.";
    taken_back: Count, "Cells granted again because an SCHD was lost.";
    off_time: Count, "Requests that arrived at the wrong time, because of a clock error.";
    links_found: List, "Links that schedulers considered down or tried again, in order of time: `at_ps`, `port`, `down`.";
};

/// Most fields are [`FACTS`] of the same names. Two granted cells never met: the run would have stopped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub epoch: Time,
    pub pipeline: u64,
    /// How long a cell takes.
    pub cell: Time,
    /// Whether receivers report arrivals.
    pub acks: bool,
    pub epochs: u64,
    pub grants: u64,
    pub scheduled: u64,
    pub unused: u64,
    pub tally: Tally,
    pub most_in_rts: u64,
    pub backpressure: u64,
    pub most_held: u64,
    pub unscheduled: UnscheduledTally,
    pub found: Vec<LinkFound>,
    pub off_time: u64,
    pub taken_back: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFound {
    pub at: Time,
    /// The port that sends over it.
    pub port: PortId,
    pub down: bool,
}

/// Cells that were sent optimistically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnscheduledTally {
    pub sent: u64,
    pub delivered: u64,
    /// Lost to scheduled cells, data or control, and lost to each other.
    pub met_scheduled: u64,
    pub met_unscheduled: u64,
}

impl Record for Report {
    fn add(&mut self, _: Self) {
        unreachable!("pods run on one thread");
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let sent = self.unscheduled;
        let link = |f: &LinkFound| {
            vec![("at_ps", Value::from(f.at)), ("port", ran.port(f.port).into()), ("down", f.down.into())]
                .into()
        };
        let starts = || ran.outcome.flows.iter().filter_map(|f| f.started);
        let span = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
        let slots = ran.topology.hosts().count() as f64 * span as f64 / self.cell as f64;
        let values = vec![
            self.epoch.into(),
            self.pipeline.into(),
            self.epochs.into(),
            self.grants.into(),
            self.scheduled.into(),
            self.unused.into(),
            self.tally.iterations.into(),
            self.tally.requests.into(),
            self.tally.accepted.into(),
            self.most_in_rts.into(),
            self.backpressure.into(),
            self.most_held.into(),
            sent.sent.into(),
            sent.delivered.into(),
            (sent.sent > 0).then(|| sent.delivered as f64 / sent.sent as f64).into(),
            (sent.sent > 0 && span > 0).then(|| sent.delivered as f64 / slots).into(),
            sent.met_scheduled.into(),
            sent.met_unscheduled.into(),
            self.taken_back.into(),
            self.off_time.into(),
            self.found.iter().map(link).collect::<Vec<Value>>().into(),
        ];
        let [grants, cells] = [self.grants, self.scheduled].map(human::count);
        let (epochs, epoch) = (human::counted(self.epochs, "epoch"), human::time(self.epoch));
        let row = format!("{grants} in {epochs} of {epoch}, {cells} cells, without a collision");
        let mut section = Section::new(&FACTS, values).row("grants", row);
        if sent.sent > 0 {
            let counts = [sent.sent, sent.delivered, sent.met_scheduled, sent.met_unscheduled];
            let [sent, arrived, scheduled, each] = counts.map(human::count);
            let row = format!(
                "{sent} optimistic: {arrived} arrived, {scheduled} collided with scheduled cells, {each} with each other"
            );
            section = section.row("cells", row);
        }
        let granted = human::counted(self.scheduled, "cell");
        // Links that fail lose their packets.
        section.lossless = Some(match ran.dropped_if(|d| d.lossless && d.reason.for_want_of_room()).0 {
            0 => Promise::Held(format!("none of {granted} with a grant collided or met a full core")),
            n => Promise::Broken(format!("{} of {granted} with a grant lost", human::count(n))),
        });
        self.notes(ran, &mut section.notes);
        section
    }
}

impl Report {
    fn notes(&self, ran: &Ran<'_>, notes: &mut Vec<Note>) {
        let mut down: Vec<(String, Time)> =
            self.found.iter().filter(|f| f.down).map(|f| (ran.port(f.port), f.at)).collect();
        if let Some((first, at)) = down.first().cloned() {
            down.sort_by(|a, b| a.0.cmp(&b.0));
            down.dedup_by(|a, b| a.0 == b.0);
            let text = format!(
                "Schedulers considered {} down, the first ({first}) at {}; {} with a lost grant were \
                 granted again.",
                human::counted(down.len() as u64, "link"),
                human::time(at),
                human::counted(self.taken_back, "cell")
            );
            notes.push(Note::new(Level::Finding, text));
        }
        if self.off_time > 0 {
            let text = format!(
                "{} arrived at the wrong time: the clock errors exceed the guard band. These \
                 hosts received no grant.",
                human::counted(self.off_time, "request")
            );
            let help = "Write a zeropod.guard of at least twice the clock error.";
            notes.push(Note::new(Level::Warning, text).help(help));
        }
        if !self.acks && ran.outcome.drops.iter().any(|d| d.reason.by_fault()) {
            let text = "Cells were lost on failed links and are not retransmitted.";
            let help = "To retransmit them, set zeropod.acks = true.";
            notes.push(Note::new(Level::Warning, text).help(help));
        }
    }
}
