//! Leases: who works on a chunk, and until when.
//!
//! The lease of a chunk is a row of objects, `leases/CHUNK/0001.json`, `0002.json` and so on; the last one counts. It is
//! taken, prolonged and taken over by writing the next one, which only one worker can. A worker that lost its lease
//! may go on: its results are the same, and the second who has them compares them.

use serde::{Deserialize, Serialize};

use crate::bucket::{Bucket, Error};

/// Most leases of one chunk.
const DIGITS: usize = 6;

/// Who works on a chunk, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The worker: host, process, and what tells it from others.
    pub worker: String,
    /// Milliseconds since 1970, UTC, by the worker's clock.
    pub until_ms: u64,
}

/// What became of the wish to have a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is one's own now. It was another worker's before, whose time is over.
    Mine { lost_by: Option<String> },
    /// Another worker has it, until then.
    Other(Lease),
}

fn folder(chunk: &str) -> String {
    format!("leases/{chunk}")
}

/// The last lease of a chunk, and its number.
///
/// # Errors
/// The store cannot be read.
pub fn last(bucket: &Bucket, chunk: &str) -> Result<Option<(usize, Lease)>, Error> {
    let Some(name) = bucket.list(&folder(chunk))?.pop() else { return Ok(None) };
    let object = format!("{}/{name}", folder(chunk));
    let number = name.strip_suffix(".json").and_then(|n| n.parse().ok());
    let lease = bucket.get(&object)?.and_then(|text| serde_json::from_slice(&text).ok());
    // After a power failure it may be empty.
    let lost = Lease { worker: "unknown".into(), until_ms: 0 };
    match number {
        Some(number) => Ok(Some((number, lease.unwrap_or(lost)))),
        None => Err(bucket.error(&object, "is no lease of xoff", "remove that file")),
    }
}

/// Every worker that had a lease of the chunk, in order.
///
/// # Errors
/// The store cannot be read.
pub fn holders(bucket: &Bucket, chunk: &str) -> Result<Vec<String>, Error> {
    let mut holders: Vec<String> = Vec::new();
    for name in bucket.list(&folder(chunk))? {
        let text = bucket.get(&format!("{}/{name}", folder(chunk)))?.unwrap_or_default();
        let worker = serde_json::from_slice::<Lease>(&text).map(|lease| lease.worker);
        holders.extend(worker.ok().filter(|worker| holders.last() != Some(worker)));
    }
    Ok(holders)
}

/// Takes or prolongs the lease of a chunk at the time `now_ms` for `for_ms`.
///
/// # Errors
/// The store cannot be read or written.
pub fn take(bucket: &Bucket, chunk: &str, worker: &str, now_ms: u64, for_ms: u64) -> Result<Taken, Error> {
    loop {
        let before = last(bucket, chunk)?;
        let (number, lost_by) = match before {
            None => (0, None),
            Some((_, lease)) if lease.worker != worker && lease.until_ms > now_ms => {
                return Ok(Taken::Other(lease));
            }
            Some((number, lease)) => {
                // One that was given back is not lost.
                let lost = lease.until_ms > 0 && lease.worker != worker;
                (number, lost.then_some(lease.worker))
            }
        };
        let lease = Lease { worker: worker.into(), until_ms: now_ms.saturating_add(for_ms) };
        if put(bucket, chunk, number + 1, &lease)? {
            return Ok(Taken::Mine { lost_by });
        }
        // Somebody was faster.
    }
}

fn put(bucket: &Bucket, chunk: &str, number: usize, lease: &Lease) -> Result<bool, Error> {
    let text = serde_json::to_vec(lease).expect("plain data becomes JSON");
    bucket.put_new_soon(&format!("{}/{number:0DIGITS$}.json", folder(chunk)), &text)
}

/// Ends one's own lease of a chunk, if it is the last one: others need not wait for its time.
///
/// # Errors
/// The store cannot be read or written.
pub fn give_back(bucket: &Bucket, chunk: &str, worker: &str) -> Result<(), Error> {
    match last(bucket, chunk)? {
        Some((number, lease)) if lease.worker == worker => {
            put(bucket, chunk, number + 1, &Lease { until_ms: 0, ..lease }).map(drop)
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::{fs, thread};

    fn bucket(test: &str) -> Bucket {
        let root = std::env::temp_dir().join(format!("xoff-lease-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        Bucket::at(&root).unwrap()
    }

    #[test]
    fn a_lease_is_taken_prolonged_and_lost() {
        let b = bucket("life");
        let mine = Taken::Mine { lost_by: None };
        assert_eq!(take(&b, "7", "a", 1000, 100).unwrap(), mine);
        let of_a = Lease { worker: "a".into(), until_ms: 1100 };
        assert_eq!(take(&b, "7", "b", 1050, 100).unwrap(), Taken::Other(of_a));
        assert_eq!(take(&b, "7", "a", 1090, 100).unwrap(), mine, "prolonged");
        assert!(matches!(take(&b, "7", "b", 1150, 100).unwrap(), Taken::Other(_)));
        assert_eq!(take(&b, "7", "b", 1190, 100).unwrap(), Taken::Mine { lost_by: Some("a".into()) });
        assert!(matches!(take(&b, "7", "a", 1200, 100).unwrap(), Taken::Other(_)));
        assert_eq!(last(&b, "7").unwrap().unwrap().0, 3);
        give_back(&b, "7", "a").unwrap();
        assert_eq!(last(&b, "7").unwrap().unwrap().0, 3, "it is not a's");
        give_back(&b, "7", "b").unwrap();
        assert_eq!(take(&b, "7", "a", 1201, 100).unwrap(), mine, "given back, not lost");
        assert_eq!(holders(&b, "7").unwrap(), ["a", "b", "a"]);
        assert_eq!(take(&b, "8", "a", 1000, 100).unwrap(), mine, "another chunk");
        fs::remove_dir_all(b.path("")).unwrap();
    }

    /// Two workers race for one chunk a thousand times: one of them has it.
    #[test]
    fn a_race_has_one_winner() {
        let b = bucket("race");
        let together = Barrier::new(2);
        let won: Vec<Vec<bool>> = thread::scope(|scope| {
            let worker = |me: &'static str| {
                let (b, together) = (&b, &together);
                scope.spawn(move || {
                    let mut won = Vec::new();
                    for i in 0..1000 {
                        together.wait();
                        let taken = take(b, &i.to_string(), me, 5, 10).unwrap();
                        won.push(matches!(taken, Taken::Mine { .. }));
                    }
                    won
                })
            };
            ["a", "b"].map(worker).map(|t| t.join().unwrap()).to_vec()
        });
        assert!((0..1000).all(|i| won[0][i] != won[1][i]));
        fs::remove_dir_all(b.path("")).unwrap();
    }
}
