//! Runs in which packets move and no flow progresses: they end by themselves, and say who waits for
//! what. What timers, losses and slow links explain is no livelock.

mod common;

use common::{conserved, run};
use xoff_sim::outcome::{Outcome, Stop};

/// Two hosts at one switch of 1 Gbit/s, each sending to the other.
fn pair(extra: &str) -> String {
    format!(
        "[topology]\nkind = \"line\"\nswitches = 1\nhosts_per_switch = 2\nlink = {{ rate = \"1Gbps\", delay = \"1us\" }}\n\
         {extra}"
    )
}
