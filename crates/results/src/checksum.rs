//! Checksums: of a file while it is written, of a file on the disk, and of a manifest in itself.
//!
//! XXH3 with 128 bits, as `xxh128sum` prints it. It finds damage, not forgery.

use std::fs::File;
use std::io::{self, Read as _, Write};
use std::path::Path;

use serde_json::Value;
use twox_hash::XxHash3_128;

/// A sink that sums up the bytes that it passes on.
pub(crate) struct Summing<W> {
    sink: W,
    bytes: u64,
    sum: XxHash3_128,
}

impl<W> Summing<W> {
    pub(crate) fn new(sink: W) -> Self {
        Self { sink, bytes: 0, sum: XxHash3_128::new() }
    }

    /// The sink, how many bytes it got, and their checksum.
    pub(crate) fn finish(self) -> (W, Stored) {
        let checksum = hexadecimal(&self.sum);
        (self.sink, Stored { bytes: self.bytes, checksum })
    }
}

impl<W> std::fmt::Debug for Summing<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summing").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.sum.write(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// The content of a stored file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: u64,
    /// 32 hexadecimal digits.
    pub(crate) checksum: String,
}

/// The content of a file on the disk.
pub(crate) fn of_file(path: &Path) -> io::Result<Stored> {
    let (mut file, mut sum, mut bytes) = (File::open(path)?, XxHash3_128::new(), 0);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(Stored { bytes, checksum: hexadecimal(&sum) }),
            Ok(n) => {
                sum.write(&buffer[..n]);
                bytes += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

fn hexadecimal(sum: &XxHash3_128) -> String {
    format!("{:032x}", sum.finish_128())
}

/// Whether checksums are compared. A fuzzer would not get past them.
pub(crate) const COMPARED: bool = !cfg!(fuzzing);

/// How the line of a manifest begins that holds the checksum of its other lines. It is the
/// second line, after the brace.
const SEAL: &str = "  \"xxh128\": \"";
/// How the line begins that the checksum leaves out, because it differs between repeats.
const WALL: &str = "  \"wall_seconds\": ";

/// The text of a manifest, with the checksum of its lines among them.
///
/// # Errors
/// It does not become JSON.
pub fn sealed(manifest: &impl serde::Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(manifest)? + "\n";
    let seal = format!("{{\n{SEAL}{}\",\n", sum_of_lines(&text));
    Ok(text.replacen("{\n", &seal, 1))
}

/// Of every line but the one with the wall time.
fn sum_of_lines(text: &str) -> String {
    let mut sum = XxHash3_128::new();
    for line in text.split_inclusive('\n').filter(|line| !line.starts_with(WALL)) {
        sum.write(line.as_bytes());
    }
    hexadecimal(&sum)
}

/// Why a text is no manifest that [`sealed`] has made.
#[derive(Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// It is JSON that has no checksum of its own.
    Without(Value),
    /// It has one, and is damaged.
    Damaged,
}

/// The manifest of a text, if the checksum in it is that of its other lines.
///
/// # Errors
/// The text has no checksum, or another one.
pub fn unsealed(text: &[u8]) -> Result<Value, Unsealed> {
    let text = std::str::from_utf8(text).map_err(|_| Unsealed::Damaged)?;
    let Some(rest) = text.strip_prefix("{\n").and_then(|rest| rest.strip_prefix(SEAL)) else {
        let other = serde_json::from_str(text).ok().filter(|_| !text.contains(SEAL));
        return Err(other.map_or(Unsealed::Damaged, Unsealed::Without));
    };
    let (sum, lines) = rest.split_once("\",\n").ok_or(Unsealed::Damaged)?;
    if sum_of_lines(&format!("{{\n{lines}")) != sum && COMPARED {
        return Err(Unsealed::Damaged);
    }
    serde_json::from_str(text).map_err(|_| Unsealed::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_xxh128sum() {
        // As `printf 'spam and eggs' | xxh128sum` and `xxh128sum </dev/null` print them.
        let of = |bytes: &[u8]| {
            let mut sink = Summing::new(Vec::new());
            sink.write_all(bytes).unwrap();
            sink.finish().1
        };
        assert_eq!(of(b""), Stored { bytes: 0, checksum: "99aa06d3014798d86001c324468d497f".into() });
        assert_eq!(of(b"abc").checksum, "06b05ab6733a618578af5f94892f3950");
    }

    #[test]
    fn each_flipped_bit_of_a_manifest_is_seen_but_those_of_the_wall_time() {
        let manifest =
            serde_json::json!({ "format": "xoff run", "n": [1, 2], "wall_seconds": 1.5, "z": "é" });
        let text = sealed(&manifest).unwrap();
        let mut read = unsealed(text.as_bytes()).unwrap();
        assert_eq!(read.as_object_mut().unwrap().remove("xxh128").unwrap().as_str().unwrap().len(), 32);
        assert_eq!(read, manifest);
        let wall = text.find(WALL).unwrap();
        let wall = wall..wall + WALL.len() + "1.5,\n".len();
        for bit in 0..text.len() * 8 {
            let mut damaged = text.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match unsealed(&damaged) {
                Ok(read) => assert!(wall.contains(&(bit / 8)) && read["n"] == manifest["n"], "bit {bit}"),
                Err(Unsealed::Damaged) => {}
                // The key of the checksum has become another one.
                Err(Unsealed::Without(_)) => assert!((5..11).contains(&(bit / 8)), "bit {bit}"),
            }
        }
    }
}
