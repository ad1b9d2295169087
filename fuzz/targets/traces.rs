//! For any bytes as the traces of two ranks, the reader returns a program or an error, and the program can be planned
//! or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use xoff_net::traffic::{Groups, Replay, Settings};

const SETTINGS: Settings = Settings { scale: 1.0, longest: 1_000_000_000_000_000, recorded_time: false };

fuzz_target!(|bytes: &[u8]| {
    let mut replay = Replay::new(2, Groups::new(), SETTINGS).expect("there are no groups");
    let both = replay.add("a", bytes).and_then(|()| replay.add("b", bytes));
    if let Err(error) = both {
        assert!(!error.message.is_empty());
        return;
    }
    // A message of each node at most, and few nodes fit the bytes.
    match replay.finish(1) {
        Ok(replayed) => drop(replayed.program.schedule(&[0, 1], 0, &replayed.label())),
        Err(error) => assert!(!error.message.is_empty()),
    }
});
