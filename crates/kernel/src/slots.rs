//! Numbered slots for values that come and go.

/// Values by slot. The slot that was freed last is used again first.
pub struct Slots<T> {
    values: Vec<T>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { values: Vec::new(), free: Vec::new() }
    }
}

impl<T: Copy> Slots<T> {
    /// Stores a value; returns its slot.
    pub fn keep(&mut self, value: T) -> u32 {
        let Some(slot) = self.free.pop() else {
            self.values.push(value);
            return (self.values.len() - 1) as u32;
        };
        self.values[slot as usize] = value;
        slot
    }

    pub fn get(&self, slot: u32) -> &T {
        &self.values[slot as usize]
    }

    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        &mut self.values[slot as usize]
    }

    /// Takes the value of a slot, and frees it.
    pub fn take(&mut self, slot: u32) -> T {
        self.free.push(slot);
        self.values[slot as usize]
    }

    /// Slots in use.
    pub fn used(&self) -> usize {
        self.values.len() - self.free.len()
    }
}
