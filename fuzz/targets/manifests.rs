//! For any JSON file of a run or grid, every reader returns the run or an error.

#![no_main]

mod directory;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static PLACE: LazyLock<directory::Place> = LazyLock::new(|| directory::Place::make(".json"));

fuzz_target!(init: { LazyLock::force(&PLACE); }, |data: &[u8]| PLACE.read_with(data));
