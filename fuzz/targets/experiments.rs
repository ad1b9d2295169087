//! For any file of an experiment, of claims or of results, the reader returns without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xoff_repro::read;
use xoff_repro::report::Results;

fuzz_target!(|data: &[u8]| {
    if let Err(error) = read::read("fuzz.toml", data) {
        assert!(!error.message().is_empty());
    }
    if let Err(error) = read::read_claims("fuzz.toml", data) {
        assert!(!error.message().is_empty());
    }
    let _ =
        serde_json::from_slice::<Results>(data).map(|results| xoff_repro::page::render(&results));
});
