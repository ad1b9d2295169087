//! The memory of a run, by purpose.

use crate::MemoryUse;

/// Bytes of a vector's allocation.
pub fn of<T>(vector: &Vec<T>) -> u64 {
    (vector.capacity() * size_of::<T>()) as u64
}

/// Those that take anything, the largest first.
pub fn sorted<const N: usize>(uses: [(&'static str, u64); N]) -> Vec<MemoryUse> {
    let mut uses: Vec<_> = uses.map(|(what, bytes)| MemoryUse { what, bytes }).into();
    uses.retain(|u| u.bytes > 0);
    uses.sort_by_key(|u| std::cmp::Reverse(u.bytes));
    uses
}
