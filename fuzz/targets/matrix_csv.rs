//! For any traffic matrix, the reader returns entries or an error with its line.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xoff_net::traffic::matrix_csv;

fuzz_target!(|text: &str| {
    match matrix_csv(text) {
        Ok(entries) => assert!(!entries.is_empty()),
        Err(error) => assert!(error.line >= 1 && error.line <= text.lines().count() + 1),
    }
});
