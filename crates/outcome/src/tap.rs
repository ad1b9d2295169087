//! Taps: the packets that cross some ports during a run, for captures.

use std::sync::Arc;
use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::topology::PortId;

/// Crossings are handed on at this interval: memory holds no more of them.
pub const INTERVAL: Time = 10 * MICROSECOND;

/// The ports to observe, and the receiver of the crossings.
pub struct Tap<'s> {
    /// The ports; none of them inside a slow receiver.
    pub ports: &'s [PortId],
    /// Receives the crossings in the order of time; at the same time by port, received packets first.
    pub sink: &'s mut dyn FnMut(&[Crossing]),
}

/// A packet that crosses a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// In picoseconds: for a sent packet the departure of its first bit, for a received one the arrival of
    /// its last bit.
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
        /// Data is marked; an ACK echoes marks.
        marked: bool,
        /// That of data and of its answers, if senders label each packet.
        label: Option<u16>,
    },
    /// Between neighbours: a whole frame without its check sequence, its source address left to fill in.
    Frame(Arc<[u8]>),
}

/// The content of a packet of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    Data {
        /// Number of the packet in its flow, from 0.
        psn: u32,
    },
    Ack {
        /// Number of the next packet that is expected.
        expected: u32,
        /// Number of the packet that has arrived, if receivers report it (NDP); `expected` if it is below.
        arrived: Option<u32>,
    },
    /// An ACK with a bitmap (RUD).
    Sack {
        /// Number of the next packet that is expected.
        expected: u32,
        /// Packet `first` + i has arrived for each bit i.
        first: u32,
        bits: u64,
    },
    /// An ACK with a bitmap, which may be empty, and credit (RCCC).
    CreditedAck {
        /// Number of the next packet that is expected.
        expected: u32,
        /// Packet `first` + i has arrived for each bit i.
        first: u32,
        bits: u64,
        /// As that of [`Carries::Credit`].
        credit: u32,
    },
    Nack {
        /// Number of the packet that is missing.
        expected: u32,
        /// Number of the packet that has arrived instead, if receivers report it (IRN), or that was trimmed
        /// (NDP).
        arrived: Option<u32>,
    },
    Cnp,
    /// What remains of a trimmed data packet.
    Header {
        /// Number of the packet in its flow.
        psn: u32,
        /// The last switch before the receiver has trimmed it.
        last_hop: bool,
    },
    /// The NACK of a trimmed packet (RUD), with the same content.
    Trimmed {
        psn: u32,
        last_hop: bool,
    },
    /// Credit for the sender (RCCC).
    Credit {
        /// Credit of the flow so far in units of 256 B, modulo 2^24.
        number: u32,
    },
    /// Asks for an ACK at once (RUD).
    Probe {
        /// Number of the probe in its flow, modulo 2^24.
        number: u32,
    },
    /// The ACK of a probe.
    ProbeAck {
        /// Number of the next packet that is expected.
        expected: u32,
        /// Packet `expected` + 1 + i has arrived for each bit i.
        bits: u64,
        /// The number of the probe.
        number: u32,
    },
    /// A request for data (NDP).
    Pull {
        /// Such requests so far, this one included.
        count: u32,
    },
}

impl Carries {
    /// Whether it is data, or answers data: such packets have the label of the data, if senders label each packet.
    pub const fn has_label(self) -> bool {
        !matches!(
            self,
            Self::Cnp | Self::Pull { .. } | Self::Credit { .. } | Self::Probe { .. } | Self::ProbeAck { .. }
        )
    }
}

/// The crossings of all parts, before the receiver gets them.
pub struct Handover<'s> {
    sink: &'s mut dyn FnMut(&[Crossing]),
    /// Crossings of the future, or not in order yet.
    pending: Vec<Crossing>,
}

impl<'s> Handover<'s> {
    /// Of nothing yet, to `sink`.
    pub fn new(sink: &'s mut dyn FnMut(&[Crossing])) -> Self {
        Self { sink, pending: Vec::new() }
    }

    /// Takes the crossings of a part.
    pub fn take(&mut self, seen: &mut Vec<Crossing>) {
        self.pending.append(seen);
    }

    /// Hands on the crossings before `until`, which every part has reported.
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
