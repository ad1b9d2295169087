//! The records for paths: of a flow at its source, and of a packet on its path.

use super::end::in_order;
use crate::outcome::{Leg, Named, Part};
use crate::packet::NONE;
use crate::parallel::notes::Bytes;
use xoff_kernel::time::Time;

/// A stretch of a path, or the sum of those that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) leg: Leg,
    pub(super) part: Part,
    pub(super) port: u32,
    /// [`NONE`] if no pause.
    pub(super) root: u32,
    /// As in [`crate::outcome::Share`].
    pub(super) named: Option<Named>,
    pub(super) time: Time,
}

impl Piece {
    /// A piece without a pause.
    pub(super) fn free(leg: Leg, part: Part, port: u32, time: Time) -> Self {
        Self { leg, part, port, root: NONE, named: None, time }
    }

    fn is_like(&self, other: &Self) -> bool {
        Self { time: 0, ..*self } == Self { time: 0, ..*other }
    }
}

/// Adds a piece to those like it.
pub(super) fn add(sums: &mut Vec<Piece>, piece: Piece) {
    match sums.iter_mut().find(|known| known.is_like(&piece)) {
        Some(known) => known.time += piece.time,
        None if piece.time > 0 => sums.push(piece),
        None => {}
    }
}

/// The activities of a flow's source since the flow began.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    pub(super) at: Time,
    /// One beyond the highest packet that was ever sent.
    pub(super) highest: u32,
    /// Where its last packet was sent, and whether again.
    pub(super) last: Option<(u32, Part)>,
    pub(super) pieces: Vec<Piece>,
}

impl Source {
    /// Removes time beyond `now`, the end of a packet that is still being sent: it has not passed yet.
    pub(super) fn rewind(&mut self, now: Time) {
        let ahead = self.at.saturating_sub(now);
        let Some((port, part)) = self.last.filter(|_| ahead > 0) else { return };
        let sent = |p: &&mut Piece| (p.leg, p.part, p.port) == (Leg::Source, part, port);
        if let Some(piece) = self.pieces.iter_mut().find(sent) {
            piece.time -= ahead;
        }
        self.at = now;
    }
}

/// A wait of a packet for its turn, after it left its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub(super) leg: Leg,
    pub(super) port: u32,
    pub(super) from: Time,
    pub(super) until: Time,
}

/// A packet that a port sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When its transmission began.
    pub(super) at: Time,
    /// [`NONE`] for control frames.
    pub(super) flow: u32,
    pub(super) size: u32,
}

/// The past of a packet: one cache line and a list.
#[derive(Clone, Debug, Default, PartialEq)]
#[repr(align(64))]
pub struct Record {
    /// When its source began to send it.
    pub(super) sent: Time,
    /// The time until which its path is known.
    pub(super) at: Time,
    /// The activities of its source before it, in sums; then its path, in the order of time.
    pub(super) pieces: Vec<Piece>,
    /// How many of them are the source's.
    pub(super) source: u32,
    /// The list that it waits in, or [`NONE`], …
    pub(super) list: u32,
    /// … and those that it was in before at this port, each with when it left.
    #[allow(clippy::box_collection, reason = "it is rarely there, and a record is one line")]
    pub(super) stays: Option<Box<Vec<(u32, Time)>>>,
}

const LEGS: [Leg; 3] = [Leg::Source, Leg::Data, Leg::Ack];
const PARTS: [Part; 9] = [
    Part::Sending,
    Part::Propagation,
    Part::Queueing,
    Part::Own,
    Part::Victim,
    Part::Pacing,
    Part::Receiver,
    Part::Down,
    Part::Recovery,
];

impl Piece {
    fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend([self.leg as u8, self.part as u8]);
        bytes.extend([self.port, self.root].map(u32::to_be_bytes).as_flattened());
        bytes.push(self.named.map_or(0, |named| 1 + u8::from(named.victim)));
        bytes.extend(self.named.iter().flat_map(|named| named.root.to_be_bytes()));
        bytes.extend(self.time.to_be_bytes());
    }

    fn parse(bytes: &mut Bytes) -> Option<Self> {
        let leg = *LEGS.get(usize::from(bytes.byte()?))?;
        let part = *PARTS.get(usize::from(bytes.byte()?))?;
        let (port, root) = (bytes.word()?, bytes.word()?);
        let named = match bytes.byte()? {
            0 => None,
            kind @ 1..=2 => Some(Named { victim: kind == 2, root: bytes.word()? }),
            _ => return None,
        };
        Some(Self { leg, part, port, root, named, time: bytes.long()? })
    }
}

impl Record {
    /// Appends the record of a packet on a wire: it waits in no list.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        debug_assert!(self.list == NONE && self.stays.is_none(), "it has left its queue");
        bytes.extend([self.sent, self.at].map(u64::to_be_bytes).as_flattened());
        bytes.extend([self.source, self.pieces.len() as u32].map(u32::to_be_bytes).as_flattened());
        self.pieces.iter().for_each(|piece| piece.emit(bytes));
    }

    /// Reads a record that [`Record::emit`] has written.
    pub fn parse(bytes: &mut Bytes) -> Option<Self> {
        let (sent, at, source, count) = (bytes.long()?, bytes.long()?, bytes.word()?, bytes.word()?);
        let pieces: Vec<Piece> = (0..count).map(|_| Piece::parse(bytes)).collect::<Option<_>>()?;
        (source <= count).then_some(Self { sent, at, pieces, source, list: NONE, stays: None })
    }

    #[cfg(test)]
    pub fn example() -> Self {
        let piece = |part, time| Piece::free(Leg::Data, part, 3, time);
        let named = |victim| Piece { root: 5, named: Some(Named { root: 6, victim }), ..piece(Part::Own, 7) };
        let mut pieces: Vec<Piece> = PARTS.map(|part| piece(part, 1 << 33)).into();
        pieces.extend([named(false), named(true)]);
        Self { sent: 1, at: 2 << 40, pieces, source: 3, list: NONE, stays: None }
    }

    pub(super) fn network(&self) -> &[Piece] {
        &self.pieces[self.source as usize..]
    }

    /// Its waits for its turn, in the order of time: the pieces of its path follow each other from its sending on.
    pub(super) fn waits(&self) -> Vec<Wait> {
        let mut at = self.sent;
        let mut waits = Vec::new();
        for piece in self.network() {
            let from = at;
            at += piece.time;
            if piece.part == Part::Queueing && piece.time > 0 {
                waits.push(Wait { leg: piece.leg, port: piece.port, from, until: at });
            }
        }
        waits
    }

    /// The activities of its source, and its path, as one path.
    pub(super) fn path(mut self) -> Vec<Piece> {
        let network = self.pieces.split_off(self.source as usize);
        in_order(self.pieces, network)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces on wires have the numbers of their enums.
    #[test]
    fn legs_and_parts_are_listed_in_order() {
        assert!(LEGS.iter().enumerate().all(|(i, leg)| *leg as usize == i));
        assert!(PARTS.iter().enumerate().all(|(i, part)| *part as usize == i));
    }
}
