//! A line of two switches, and what a test asks of its plan.

use std::io;
use std::path::Path;
use xoff_plan::plan::{EXPIRE, Plan};
use xoff_plan::{Loaded, load};

pub const LINE: &str = "[topology]\nkind = \"line\"\nswitches = 2\nhosts_per_switch = 4\n\
                    link = { rate = \"100Gbps\", delay = \"1us\" }\n";

pub const FLOW: &str = "[[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H5\"\nsize = \"1MB\"\n";

pub fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

pub fn loaded(parts: &[&str]) -> Loaded {
    set(parts, &[])
}

pub fn set(parts: &[&str], overrides: &[(&str, &str)]) -> Loaded {
    let overrides: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    load("test.toml", parts.concat().as_bytes(), &overrides, &no_files)
        .unwrap_or_else(|e| panic!("{}", e.one_line()))
}

pub fn plan(parts: &[&str]) -> Plan {
    loaded(parts).plan
}

/// A route in the names of its ports, and its end.
pub fn route(plan: &Plan, start: u32) -> (Vec<String>, u32) {
    let rest = &plan.hops[start as usize..];
    let len = rest.iter().position(|&h| h >= EXPIRE).unwrap();
    (rest[..len].iter().map(|&p| plan.topology.port_name(p)).collect(), rest[len])
}
