//! Fixed seeds of the swarm: each run fulfils every invariant, and together they use every key of a scenario
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use xoff_swarm::coverage::Keys;
use xoff_swarm::{generate, soak, trial};

/// Seeds that are tried.
const SEEDS: u64 = 300;
/// Seeds whose scenarios are drawn to see which keys they use.
const DRAWN: u64 = 16_000;

/// Keys and choices that no scenario of the swarm uses, and why.
const UNUSED: [(&str, &str); 18] = [
    ("variant", "a run ignores it; the command line has its tests"),
    ("variant.name", "a run ignores it"),
    ("variant.set", "a run ignores it"),
    (
        "flow_control[deadlock-breaker].relay = blind",
        "refused: blind hosts have no queue that a probe could follow",
    ),
    ("flow_control[itsy].relay = blind", "refused likewise"),
    ("flow_control[loop-breaker].relay = blind", "refused likewise"),
    ("flow_control[pause].relay = blind", "refused: each port pauses by its own accounts"),
    (
        "flow_control[roundabout].relay = blind",
        "refused: blind hosts have no queue that a probe could follow",
    ),
    ("flow_control[swing].relay = blind", "refused: its relays pass pauses on, not hosts"),
    ("flow_control[tagger].relay = blind", "refused: what waits for a tag has come in by another one"),
    ("topology[file].format = containerlab", "its reader has tests of its own"),
    ("topology[file].format = dot", "its reader has tests of its own"),
    ("topology[file].format = graphml", "its reader has tests of its own"),
    ("topology[file].format = hpcc", "its reader has tests of its own"),
    ("topology[file].format = lldp", "its reader has tests of its own"),
    ("topology[file].format = mininet", "its reader has tests of its own"),
    ("topology[file].format = netbox", "its reader has tests of its own"),
    ("topology[file].format = sonic", "its reader has tests of its own"),
];

#[test]
fn seeds_hold_everything() {
    trial::catch_panics();
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let tally = soak::seeds(0, SEEDS, threads, &|| true, &|_, _, _| {});
    let told: Vec<String> = tally
        .findings
        .iter()
        .map(|(seed, broken)| format!("seed {seed}: {}: {:.600}", broken.invariant, broken.detail))
        .collect();
    assert!(told.is_empty(), "`swarm show SEED` prints a scenario\n{}", told.join("\n"));
    // The intended events of the scenarios have happened.
    let [completed, pauses, dropped, deadlock, shares] = tally.seen;
    let line = tally.line();
    assert_eq!(tally.done, SEEDS);
    assert!(tally.refusals() * 100 <= SEEDS * 35, "too many are refused: {line}");
    assert!(tally.cut * 100 <= SEEDS * 5, "too many are cut short: {line}");
    assert!(completed * 100 > SEEDS * 50 && shares * 100 > SEEDS * 8, "{line}");
    assert!(pauses * 100 > SEEDS * 5 && dropped * 100 > SEEDS * 5 && deadlock > 0, "{line}");
}

/// Accepted means: in a scenario that loads.
#[test]
fn every_key_and_every_choice_is_accepted() {
    let keys = Keys::default();
    let mut unused = keys.all();
    assert!(unused.len() > 400, "{}", unused.len());
    let known: BTreeMap<&str, &str> = UNUSED.into();
    let mut seen = BTreeSet::new();
    for seed in 0..DRAWN {
        let scenario = generate::scenario(seed);
        let used = keys.used(&scenario);
        if used.iter().any(|key| unused.contains(key)) && scenario.load().is_ok() {
            unused.retain(|key| !used.contains(key));
            seen.extend(used);
        }
    }
    let missing: Vec<&String> = unused.iter().filter(|key| !known.contains_key(key.as_str())).collect();
    assert!(missing.is_empty(), "no scenario that loads uses {missing:#?}");
    let stale: Vec<&&str> = known.keys().filter(|key| seen.contains(**key)).collect();
    assert!(stale.is_empty(), "listed as unused, and used: {stale:?}");
}
