//! A fingerprint of a run's input, by which a resumed grid detects changes: FNV-1a of 64 bits (Fowler, Noll
//! and Vo). It finds accidents, not forgeries.

use serde_json::Value;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

pub fn of_bytes(bytes: &[u8]) -> u64 {
    more(BASIS, bytes)
}

fn more(state: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(state, |h, &b| (h ^ u64::from(b)).wrapping_mul(PRIME))
}

/// The fingerprint of a run, 16 hexadecimal digits: of its effective scenario, and of the files that it names
/// (path as written, hash of the contents) in the order in which they are read.
pub fn of_run(scenario: &Value, files: &[(String, u64)]) -> String {
    // Objects keep their keys in alphabetical order: one value has one text.
    let mut state = more(BASIS, scenario.to_string().as_bytes());
    for (path, hash) in files {
        state = more(state, &(path.len() as u64).to_le_bytes());
        state = more(state, path.as_bytes());
        state = more(state, &hash.to_le_bytes());
    }
    format!("{state:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn published_values() {
        // From the test vectors of the function's authors.
        assert_eq!(of_bytes(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of_bytes(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(of_bytes(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_part_counts() {
        let files = |path: &str, hash| vec![(path.to_string(), hash)];
        let all = [
            of_run(&json!({ "a": 1 }), &[]),
            of_run(&json!({ "a": 2 }), &[]),
            of_run(&json!({ "a": 1 }), &files("x", 1)),
            of_run(&json!({ "a": 1 }), &files("x", 2)),
            of_run(&json!({ "a": 1 }), &files("y", 1)),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[i + 1..].contains(one));
        }
        assert_eq!(of_run(&json!({ "a": 1, "b": 2 }), &[]), of_run(&json!({ "b": 2, "a": 1 }), &[]));
    }
}
