//! The content of control packets, by [`Packet::number`](crate::packet::Packet::number).

use xoff_schemes::flow_control::ControlFrame;

/// The frames of all control packets, with the free slots.
#[derive(Default)]
pub struct Frames {
    slots: Vec<ControlFrame>,
    free: Vec<u32>,
}

impl Frames {
    /// Stores a frame; returns its slot.
    pub fn keep(&mut self, frame: ControlFrame) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = frame;
                slot
            }
            None => {
                self.slots.push(frame);
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// The frame of a slot.
    pub fn get(&self, slot: u32) -> &ControlFrame {
        &self.slots[slot as usize]
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, slot: u32) -> &mut ControlFrame {
        &mut self.slots[slot as usize]
    }

    /// Takes the frame of a slot, and frees it.
    pub fn take(&mut self, slot: u32) -> ControlFrame {
        self.free.push(slot);
        self.slots[slot as usize]
    }
}
