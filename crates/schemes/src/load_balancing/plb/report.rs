//! The report of PLB about a run: changes of labels.

use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "plb":
    flows_with_choice: Count, "Flows with more than one route.";
    flows_changed: Count, "Flows that changed their label.";
    changes_by_marks: Count, "Label changes because of marked packets.";
    changes_by_timeouts: Count, "Label changes after timeouts.";
    moves: Count, "Label changes of both kinds that changed the route.";
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Flows whose labels give them more than one route.
    pub choices: u64,
    pub flows: Vec<Relabelling>,
}

/// How often a flow got another label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relabelling {
    pub by_marks: u32,
    pub by_timeouts: u32,
    /// Of all these, how often the other label gave another route.
    pub moves: u32,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        for (sum, part) in self.flows.iter_mut().zip(other.flows) {
            sum.by_marks += part.by_marks;
            sum.by_timeouts += part.by_timeouts;
            sum.moves += part.moves;
        }
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let sum =
            |get: fn(&Relabelling) -> u32| -> u64 { self.flows.iter().map(|f| u64::from(get(f))).sum() };
        let changed = self.flows.iter().filter(|f| f.by_marks + f.by_timeouts > 0).count() as u64;
        let counts = [changed, sum(|f| f.by_marks), sum(|f| f.by_timeouts), sum(|f| f.moves)];
        let ([by, marks, timeouts, moves], flows) =
            (counts.map(human::count), human::counted(self.choices, "flow"));
        let row = format!(
            "{marks} label changes because of marks and {timeouts} after timeouts, by {by} of {flows} with a choice; \
             {moves} changed the route"
        );
        let values = [self.choices].into_iter().chain(counts).map(Into::into).collect();
        Section::new(&FACTS, values).row("labels", row)
    }
}
