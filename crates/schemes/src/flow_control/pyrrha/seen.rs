//! What those see who see everything: who waits at a port for which root, and whom
//! queues have stopped. Nothing here changes anything.

use super::Pyrrha;
use super::port::{Entry, PortState, State};

/// A root ahead, as a port knows it.
#[derive(Clone, Copy, Debug)]
pub struct Ahead<'a> {
    state: &'a PortState,
    entry: &'a Entry,
}

impl<'a> Ahead<'a> {
    /// The root: a port.
    pub fn root(&self) -> u32 {
        self.entry.root
    }

    /// What goes through it has been stopped here, and not let go since.
    pub fn paused(&self) -> bool {
        self.entry.state == State::Paused
    }

    /// Ports of this device whose neighbours the queues of this root have stopped.
    pub fn holding(&self) -> &'a [u32] {
        &self.entry.holding
    }

    /// The numbers of its queues here, from 1 on, in order; none yet if no packet of
    /// its has come.
    pub fn queues(&self) -> Vec<u16> {
        self.state.queues_of(self.entry.root)
    }

    /// The roots that share `queue`, one of [`Ahead::queues`], in order.
    pub fn sharing(&self, queue: u16) -> &'a [u32] {
        self.state.queue_roots(queue)
    }
}

impl Pyrrha {
    fn state(&self, port: u32, lane: u8) -> &PortState {
        &self.ports[self.at(port, lane).index]
    }

    /// The roots ahead that a port knows.
    pub fn ahead(&self, port: u32, lane: u8) -> impl Iterator<Item = Ahead<'_>> {
        let state = self.state(port, lane);
        state.entries.iter().map(move |entry| Ahead { state, entry })
    }

    /// Root `root` as a port knows it, if it does.
    pub fn root_ahead(&self, port: u32, lane: u8, root: u32) -> Option<Ahead<'_>> {
        let state = self.state(port, lane);
        state.entry(root).map(|entry| Ahead { state, entry })
    }

    /// Whether a port says that it is a root.
    pub fn is_root(&self, port: u32, lane: u8) -> bool {
        self.state(port, lane).claimed
    }

    /// Ports of its device whose neighbours the OQ of a port has stopped.
    pub fn stopped_by_oq(&self, port: u32, lane: u8) -> &[u32] {
        &self.state(port, lane).holding
    }

    /// The number of a host's queue of queue pairs that wait for what isolation queue
    /// `queue` waits for.
    pub fn pairs_of(&self, queue: u16) -> u16 {
        self.own() + queue
    }

    /// K_resume of a port, in bytes.
    pub fn k_resume(&self, port: u32) -> u64 {
        self.params.k_resume[port as usize]
    }
}
