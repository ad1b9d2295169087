//! The view of oracles on Pyrrha's ports.

use super::super::seen::{Ahead, Roots};
use super::Pyrrha;
use super::port::{Entry, PortState, State};

impl Entry {
    fn seen(&self) -> Ahead<'_> {
        Ahead { root: self.root, paused: self.state == State::Paused, holding: &self.holding }
    }
}

impl Pyrrha {
    fn state(&self, port: u32, lane: u8) -> &PortState {
        &self.ports[self.at(port, lane).index]
    }
}

impl Roots for Pyrrha {
    fn ahead(&self, port: u32, lane: u8) -> Vec<Ahead<'_>> {
        self.state(port, lane).entries.iter().map(Entry::seen).collect()
    }

    fn root_ahead(&self, port: u32, lane: u8, root: u32) -> Option<Ahead<'_>> {
        self.state(port, lane).entry(root).map(Entry::seen)
    }

    fn queues_of(&self, port: u32, lane: u8, root: u32) -> Vec<u16> {
        self.state(port, lane).queues_of(root)
    }

    fn sharing(&self, port: u32, lane: u8, queue: u16) -> &[u32] {
        &self.state(port, lane).iq(queue).roots
    }

    fn is_root(&self, port: u32, lane: u8) -> bool {
        self.state(port, lane).claimed
    }

    fn stopped_by_output(&self, port: u32, lane: u8) -> &[u32] {
        &self.state(port, lane).holding
    }

    fn pairs_of(&self, queue: u16) -> u16 {
        self.own() + queue
    }

    fn resume_level(&self, port: u32) -> u64 {
        self.params.k_resume[port as usize]
    }
}
