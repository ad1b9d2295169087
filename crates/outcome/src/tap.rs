//! Taps: what crosses some ports during a run, for captures.

use std::sync::Arc;
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::topology::PortId;

/// What is seen is handed on so often: memory holds as much of it.
pub const INTERVAL: Time = 10 * MICROSECOND;

/// What is to be seen of a run, and who wants to see it.
pub struct Tap<'s> {
    /// The ports; none of them inside a slow receiver.
    pub ports: &'s [PortId],
    /// Is handed what has crossed them, in the order of time; of one time by port, and what was
    /// received first.
    pub sink: &'s mut dyn FnMut(&[Crossing]),
}

/// A packet that crosses a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// In picoseconds: of what is sent, when its first bit leaves; of what is received, when its
    /// last bit has come.
    pub at: Time,
    pub port: PortId,
    /// It leaves rather than comes.
    pub sent: bool,
    /// It comes corrupted, and is dropped.
    pub damaged: bool,
    pub what: Crosser,
}

/// A packet as it crosses.
#[derive(Clone, Debug, PartialEq)]
pub enum Crosser {
    /// From one end of a flow to the other.
    Packet {
        flow: u32,
        /// Its lane on this link.
        lane: u8,
        carries: Carries,
        /// Data are marked; an answer echoes marks.
        marked: bool,
    },
    /// Between neighbours: a whole frame without its check sequence, its source address left to
    /// fill in.
    Frame(Arc<[u8]>),
}

/// What a packet of a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    Data {
        /// Number of the packet in its flow, from 0.
        psn: u32,
    },
    Ack {
        /// Number of the next packet that is expected.
        expected: u32,
    },
    Nack {
        /// Number of the packet that is missing.
        expected: u32,
        /// Number of the packet that has come in its place, where receivers tell (IRN).
        arrived: Option<u32>,
    },
    Cnp,
}

/// What the parts have seen, on its way to who wants to see it.
pub struct Handover<'s> {
    sink: &'s mut dyn FnMut(&[Crossing]),
    /// What has not happened yet, or not been put in order.
    pending: Vec<Crossing>,
}

impl<'s> Handover<'s> {
    /// Of nothing yet, to `sink`.
    pub fn new(sink: &'s mut dyn FnMut(&[Crossing])) -> Self {
        Self { sink, pending: Vec::new() }
    }

    /// Takes what a part has seen.
    pub fn take(&mut self, seen: &mut Vec<Crossing>) {
        self.pending.append(seen);
    }

    /// Hands on what has happened before `until`, of which every part has told.
    pub fn flush(&mut self, until: Time) {
        // No two packets cross a port in one direction at one time.
        self.pending.sort_by_key(|crossing| (crossing.at, crossing.port, crossing.sent));
        let happened = self.pending.partition_point(|crossing| crossing.at < until);
        if happened > 0 {
            (self.sink)(&self.pending[..happened]);
            self.pending.drain(..happened);
        }
    }
}
