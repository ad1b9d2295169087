//! What was made of a chunk.

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_128;

use crate::bucket::{Bucket, Error};
use crate::lease;

/// A chunk that is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub worker: String,
    /// When the work began and ended: milliseconds since 1970, UTC, by the worker's clock.
    pub began_ms: u64,
    pub ended_ms: u64,
    pub runs: usize,
    /// Those of them that have no results.
    pub failed: usize,
    /// Those of them that have warnings.
    pub warned: usize,
    pub packet_hops: u64,
    /// The parts, in this order.
    pub files: Vec<Part>,
}

/// A part of the results, as its chunk lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub bytes: u64,
    /// XXH3 of 128 bits, 32 hexadecimal digits.
    pub xxh128: String,
}

impl Part {
    pub fn of(name: &str, content: &[u8]) -> Self {
        let xxh128 = format!("{:032x}", XxHash3_128::oneshot(content));
        Self { name: name.into(), bytes: content.len() as u64, xxh128 }
    }

    /// The content of the part, if it is as it was written.
    ///
    /// # Errors
    /// It is missing or damaged.
    pub fn read(&self, bucket: &Bucket, chunk: &str) -> Result<Vec<u8>, Error> {
        let help =
            format!("remove that file and done/{chunk}.json, and start a worker: it makes the chunk again");
        let Some(content) = bucket.get(&self.name)? else {
            return Err(bucket.error(&self.name, "is missing", &help));
        };
        if Self::of(&self.name, &content) == *self {
            return Ok(content);
        }
        let message = format!("is damaged: it has {} of {} bytes, or others", content.len(), self.bytes);
        Err(bucket.error(&self.name, message, &help))
    }
}

fn object(chunk: &str) -> String {
    format!("done/{chunk}.json")
}

/// The record of a chunk, if it is done.
///
/// # Errors
/// It cannot be read.
pub fn read(bucket: &Bucket, chunk: &str) -> Result<Option<Record>, Error> {
    let Some(text) = bucket.get(&object(chunk))? else { return Ok(None) };
    let record = serde_json::from_slice(&text);
    record.map(Some).map_err(|e| {
        bucket.error(&object(chunk), format!("is damaged: {e}"), "remove it, and start a worker")
    })
}

/// The chunks that are done.
///
/// # Errors
/// The store cannot be read.
pub fn done(bucket: &Bucket) -> Result<Vec<String>, Error> {
    let names = bucket.list("done")?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(".json").map(String::from)).collect())
}

/// Writes the parts of a chunk and then its record. Returns false if another worker had done the same before.
///
/// # Errors
/// Another worker got other results, or the store cannot be written.
pub fn commit(
    bucket: &Bucket,
    chunk: &str,
    record: &Record,
    parts: &[(Part, Vec<u8>)],
) -> Result<bool, Error> {
    let objects: Vec<(&str, &[u8])> =
        parts.iter().map(|(part, content)| (part.name.as_str(), content.as_slice())).collect();
    for ((part, content), new) in parts.iter().zip(bucket.put_all(&objects, true)?) {
        if !new {
            let there = bucket.get(&part.name)?.unwrap_or_default();
            if there != *content {
                return Err(conflict(bucket, chunk, record, &part.name)?);
            }
        }
    }
    let text = serde_json::to_vec_pretty(record).expect("plain data becomes JSON");
    bucket.put_new(&object(chunk), &text)
}

/// The error that two workers got different results for a chunk; it is also written into the store.
fn conflict(bucket: &Bucket, chunk: &str, record: &Record, part: &str) -> Result<Error, Error> {
    let other = match read(bucket, chunk)? {
        Some(done) => done.worker,
        // It wrote a part, and was killed before the record.
        None => lease::holders(bucket, chunk)?
            .into_iter()
            .filter(|worker| *worker != record.worker)
            .collect::<Vec<_>>()
            .join(" or "),
    };
    let other = if other.is_empty() { "an earlier start of this worker".to_string() } else { other };
    let message = format!(
        "differs: {} and {other} made the chunk {chunk} of one plan, and got other bytes",
        record.worker
    );
    let help = "check that all workers run the same program. If the file is damaged, remove it. Otherwise report a bug of xoff, or of your own scheme";
    let error = bucket.error(part, message.clone(), help);
    let worker: String =
        record.worker.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    bucket.put_new(
        &format!("conflicts/{chunk}-{worker}.json"),
        &serde_json::to_vec(&message).expect("a text"),
    )?;
    Ok(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn bucket(test: &str) -> Bucket {
        let root = std::env::temp_dir().join(format!("xoff-record-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        Bucket::at(&root).unwrap()
    }

    fn of(worker: &str, content: &[u8]) -> (Record, Vec<(Part, Vec<u8>)>) {
        let part = Part::of("flows/part-7.parquet", content);
        let record = Record {
            worker: worker.into(),
            began_ms: 1,
            ended_ms: 2,
            runs: 3,
            failed: 0,
            warned: 0,
            packet_hops: 4,
            files: vec![part.clone()],
        };
        (record, vec![(part, content.to_vec())])
    }

    #[test]
    fn a_chunk_that_is_made_twice_is_compared() {
        let b = bucket("twice");
        let (a, parts) = of("a", b"same");
        assert!(commit(&b, "7", &a, &parts).unwrap());
        let (again, parts) = of("b", b"same");
        assert!(!commit(&b, "7", &again, &parts).unwrap());
        assert_eq!(read(&b, "7").unwrap().unwrap(), a, "the first one stays");
        assert_eq!(done(&b).unwrap(), ["7"]);
        let (other, parts) = of("host c", b"else");
        let error = commit(&b, "7", &other, &parts).unwrap_err().to_string();
        assert!(error.contains("host c and a made the chunk 7"), "{error}");
        assert_eq!(b.list("conflicts").unwrap(), ["7-host-c.json"]);
        assert_eq!(a.files[0].read(&b, "7").unwrap(), b"same");
        fs::remove_dir_all(b.path("")).unwrap();
    }

    #[test]
    fn a_worker_that_died_between_part_and_record_is_named_by_its_lease() {
        let b = bucket("between");
        lease::take(&b, "7", "a", 0, 1).unwrap();
        let (_, parts) = of("a", b"one");
        b.put_new(&parts[0].0.name, &parts[0].1).unwrap();
        lease::take(&b, "7", "b", 5, 1).unwrap();
        let (record, parts) = of("b", b"two");
        let error = commit(&b, "7", &record, &parts).unwrap_err().to_string();
        assert!(error.contains("b and a made the chunk 7"), "{error}");
        assert_eq!(read(&b, "7").unwrap(), None);
        fs::remove_dir_all(b.path("")).unwrap();
    }

    #[test]
    fn a_damaged_part_is_not_read() {
        let b = bucket("damaged");
        let (a, parts) = of("a", b"content");
        commit(&b, "7", &a, &parts).unwrap();
        fs::write(b.path(&parts[0].0.name), b"cont").unwrap();
        let error = a.files[0].read(&b, "7").unwrap_err();
        assert!(error.to_string().contains("is damaged: it has 4 of 7 bytes"), "{error}");
        assert!(error.help.contains("done/7.json"));
        fs::remove_file(b.path(&parts[0].0.name)).unwrap();
        assert!(a.files[0].read(&b, "7").unwrap_err().to_string().contains("is missing"));
        fs::remove_dir_all(b.path("")).unwrap();
    }
}
