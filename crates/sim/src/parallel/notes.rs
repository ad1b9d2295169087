//! The oracles' notes about a packet, which travel beside it from device to device.

use crate::oracle::{blocking::Roots, critical::Record};

/// What the oracles know of a packet on a wire. No device sees it.
#[derive(Debug, Default, PartialEq)]
pub struct Notes {
    /// Of a control frame, for the blocking oracle.
    pub roots: Option<Roots>,
    /// Of another packet, for critical paths.
    pub record: Option<Record>,
}

impl Notes {
    /// Appends the notes: a byte for each kind, 1 if there are notes of it, and then these.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.roots.is_some().into());
        self.roots.iter().flatten().for_each(|root| root.emit(bytes));
        bytes.push(self.record.is_some().into());
        self.record.iter().for_each(|record| record.emit(bytes));
    }

    /// Reads notes; returns them and the bytes after them.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut bytes = Bytes(bytes);
        let mut notes = Self::default();
        if bytes.flag()? {
            let mut roots = Roots::default();
            for root in &mut roots {
                *root = crate::oracle::blocking::Root::parse(&mut bytes)?;
            }
            notes.roots = Some(roots);
        }
        if bytes.flag()? {
            notes.record = Some(Record::parse(&mut bytes)?);
        }
        Some((notes, bytes.0))
    }
}

/// Bytes that are read from the front.
pub struct Bytes<'b>(pub &'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    /// A byte that is 0 or 1.
    pub fn flag(&mut self) -> Option<bool> {
        self.byte().filter(|byte| *byte <= 1).map(|byte| byte == 1)
    }

    pub fn word(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    pub fn long(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::blocking::Root;

    #[test]
    fn notes_survive_the_wire_and_short_ones_are_refused() {
        let mut roots = Roots::default();
        roots[3] = Root { port: 7, links: 2, since: 1 << 40 };
        let full = Notes { roots: Some(roots), record: Some(Record::example()) };
        for notes in [Notes::default(), full] {
            let mut bytes = Vec::new();
            notes.emit(&mut bytes);
            for short in 0..bytes.len() {
                assert_eq!(Notes::parse(&bytes[..short]), None, "{short} of {} B", bytes.len());
            }
            bytes.push(9);
            assert_eq!(Notes::parse(&bytes), Some((notes, &[9][..])));
        }
    }
}
