//! The report of UEC CBFC about a run: its messages, and the credits of lost packets.

use xoff_net::human;
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Ran, Record, Section};

pub static FACTS: Facts = facts! { "uec_cbfc":
    consumed: Count, "Credits that sent packets consumed, on all links.";
    freed: Count, "How many of them senders know to be free again.";
    cf_updates: Count, "CF_Updates. One that joined a waiting CF_Update counts, too.";
    refreshes: Count, "How many of them came at the end of `cf_max_spacing`, without a change.";
    cc_updates: Count, "CC_Updates.";
    returned: Count, "Credits that lost packets had consumed, and that CC_Updates returned.";
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub consumed: u64,
    pub freed: u64,
    pub cf_updates: u64,
    pub refreshes: u64,
    pub cc_updates: u64,
    pub returned: u64,
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.consumed += other.consumed;
        self.freed += other.freed;
        self.cf_updates += other.cf_updates;
        self.refreshes += other.refreshes;
        self.cc_updates += other.cc_updates;
        self.returned += other.returned;
    }

    fn section(&self, _: &Ran<'_>) -> Section {
        let row = format!(
            "{} consumed, {} of them free again; {}, {} of them without a change; {}, which returned {}",
            human::counted(self.consumed, "credit"),
            human::grouped(self.freed),
            human::counted(self.cf_updates, "CF_Update"),
            human::grouped(self.refreshes),
            human::counted(self.cc_updates, "CC_Update"),
            human::counted(self.returned, "credit"),
        );
        let all =
            [self.consumed, self.freed, self.cf_updates, self.refreshes, self.cc_updates, self.returned];
        let values = all.map(Into::into).to_vec();
        Section::new(&FACTS, values).row("credits", row)
    }
}
