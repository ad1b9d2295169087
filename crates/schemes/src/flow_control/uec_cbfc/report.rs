//! The report of UEC CBFC about a run: its messages, and the credits of lost packets.

use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "uec_cbfc":
    cf_updates: Count, "CF_Updates. One that joined a waiting CF_Update counts, too.";
    refreshes: Count, "How many of them came at the end of `cf_max_spacing`, without a change.";
    cc_updates: Count, "CC_Updates.";
    returned: Count, "Credits that lost packets had consumed, and that CC_Updates returned.";
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub cf_updates: u64,
    pub refreshes: u64,
    pub cc_updates: u64,
    pub returned: u64,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.cf_updates += other.cf_updates;
        self.refreshes += other.refreshes;
        self.cc_updates += other.cc_updates;
        self.returned += other.returned;
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let row = format!(
            "{}, {} of them without a change; {}, which returned {}",
            human::counted(self.cf_updates, "CF_Update"),
            human::grouped(self.refreshes),
            human::counted(self.cc_updates, "CC_Update"),
            human::counted(self.returned, "credit"),
        );
        let values =
            vec![self.cf_updates.into(), self.refreshes.into(), self.cc_updates.into(), self.returned.into()];
        Section::new(&FACTS, values).row("credits", row)
    }
}
