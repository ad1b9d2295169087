//! For any topology.txt of the HPCC simulator, the reader returns a network or an error.

#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use xoff_net::builders::Hpcc;

/// A network of more nodes is built in earnest by design and would only slow the search.
const MOST: u64 = 3_000;

fuzz_target!(|text: &str| -> Corpus {
    let first = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    if (MOST..1_000_000_000).contains(&first) {
        return Corpus::Reject;
    }
    match (Hpcc { file: "topology.txt".to_string(), long_delay: None }).build(text) {
        Ok(topology) => assert!(!topology.nodes.is_empty()),
        Err(error) => assert!(!error.message.is_empty()),
    }
    Corpus::Keep
});
