//! The list of switches or ports that a frame collects on its path, as probes for deadlocks do.

use crate::u32_at;

/// Most ids in a list: those of a loop of 31 switches, and its coordinator once more.
pub const MOST_NODES: usize = 32;

/// A list of switches or ports, the one inserted last at its front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Nodes {
    ids: [u32; MOST_NODES],
    count: u8,
}

impl Nodes {
    pub fn as_slice(&self) -> &[u32] {
        &self.ids[..usize::from(self.count)]
    }

    /// Inserts `id` at the front; `false` if the list is full.
    #[must_use]
    pub fn push_front(&mut self, id: u32) -> bool {
        let count = usize::from(self.count);
        if count == MOST_NODES {
            return false;
        }
        self.ids.copy_within(..count, 1);
        self.ids[0] = id;
        self.count += 1;
        true
    }

    pub fn pop_front(&mut self) -> Option<u32> {
        let first = *self.as_slice().first()?;
        self.ids.copy_within(1..usize::from(self.count), 0);
        self.count -= 1;
        self.ids[usize::from(self.count)] = 0;
        Some(first)
    }

    /// Writes the ids to the beginning of `bytes`, 32 bits each.
    pub fn emit(&self, bytes: &mut [u8]) {
        for (id, bytes) in self.as_slice().iter().zip(bytes.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&id.to_be_bytes());
        }
    }

    /// Reads `count` ids, at most [`MOST_NODES`], from the beginning of `bytes`.
    pub fn parse(count: u8, bytes: &[u8]) -> Self {
        let mut nodes = Self { count, ..Self::default() };
        for (i, id) in nodes.ids[..usize::from(count)].iter_mut().enumerate() {
            *id = u32_at(bytes, 4 * i);
        }
        nodes
    }
}
