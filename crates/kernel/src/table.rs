//! Lists whose indices are checked where they are made, and not again at each use.

use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::slice::SliceIndex;

/// A list, owned or borrowed, that checks an index only in builds with debug assertions. A packet-hop looks
/// up some fifty elements by numbers that a run made itself; comparing each with the length costs a seventh
/// of all instructions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Table<C>(C);

impl<C> Table<C> {
    /// # Safety
    /// All code that can reach the table indexes it only within its length.
    pub const unsafe fn new(items: C) -> Self {
        Self(items)
    }
}

impl<C> Deref for Table<C> {
    type Target = C;
    #[inline(always)]
    fn deref(&self) -> &C {
        &self.0
    }
}

impl<C> DerefMut for Table<C> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut C {
        &mut self.0
    }
}

impl<T: 'static, C: Deref<Target = [T]>, I: SliceIndex<[T]>> Index<I> for Table<C> {
    type Output = I::Output;
    #[inline(always)]
    fn index(&self, index: I) -> &I::Output {
        if cfg!(debug_assertions) {
            return &self.0[index];
        }
        // SAFETY: the promise of [`Table::new`].
        unsafe { self.0.get_unchecked(index) }
    }
}

impl<T: 'static, C: DerefMut<Target = [T]>, I: SliceIndex<[T]>> IndexMut<I> for Table<C> {
    #[inline(always)]
    fn index_mut(&mut self, index: I) -> &mut I::Output {
        if cfg!(debug_assertions) {
            return &mut self.0[index];
        }
        // SAFETY: the promise of [`Table::new`].
        unsafe { self.0.get_unchecked_mut(index) }
    }
}
