//! The seam between congestion controls and hosts: what a sender of a control learns, and what it decides; and what
//! the parameters of a control say about it.

use super::notification::Cnps;
use super::telemetry::{Hop, Stamp};
use std::fmt;
use xoff_kernel::time::Time;

/// A data packet that leaves its sender.
#[derive(Clone, Copy)]
pub struct Departure {
    pub flow: u32,
    pub psn: u32,
    /// It was sent before.
    pub again: bool,
    /// Bytes on the wire.
    pub size: u32,
}

/// A loss that a control packet reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The first missing packet, which may be reported again.
    Missing,
    /// A switch has trimmed a packet; `last_hop` if its port leads to the receiver.
    Trimmed { last_hop: bool },
}

/// An ACK or NACK that has reached its transport.
pub struct Answer<'a> {
    /// All packets below this are acknowledged.
    pub una: u32,
    /// The next packet that was never sent.
    pub next: u32,
    /// Packets that are acknowledged, in any order.
    pub acknowledged: u32,
    pub in_flight: u32,
    /// Every packet is acknowledged.
    pub complete: bool,
    /// It reports that marked packets have arrived.
    pub marked: bool,
    pub loss: Option<Loss>,
    /// Losses that the transport has inferred from it.
    pub inferred: u32,
    /// Only where [`Parameters::stamps`].
    pub stamp: Stamp,
    /// The links of its data packet; `None` if there were more than [`Parameters::hops`].
    pub hops: Option<&'a [Hop]>,
}

impl Answer<'_> {
    /// The links of its data packet. `None` if there were more than the packet has room for, or if a switch trimmed it:
    /// then the links after that switch are missing.
    pub fn whole_path(&self) -> Option<&[Hop]> {
        self.hops.filter(|_| !matches!(self.loss, Some(Loss::Trimmed { .. })))
    }
}

/// The sender of a flow under a congestion control. It has no input, no output and no timers. A control implements the
/// hooks that it uses.
#[allow(unused_variables)]
pub trait Sender: Sized {
    type Params;

    /// Before the flow has sent anything, at a line rate in bits per second.
    fn new(params: &Self::Params, line: u64) -> Self;

    /// In bits per second.
    fn rate_at(&self, params: &Self::Params, now: Time) -> f64;

    /// In packets, if the control sets windows instead of rates.
    fn window(&self, params: &Self::Params) -> Option<u32> {
        None
    }

    /// The earliest time of the next packet, if the window is below one packet.
    fn not_before(&self) -> Option<Time> {
        None
    }

    /// A packet leaves: how long the next one must wait.
    fn on_sent(&mut self, params: &Self::Params, now: Time, packet: Departure) -> Option<Time> {
        None
    }

    /// An ACK or NACK has reached the transport.
    fn on_answer(&mut self, params: &Self::Params, now: Time, answer: &Answer<'_>) {}

    /// A retransmission timer has expired, from which so many losses are inferred.
    fn on_timeout(&mut self, params: &Self::Params, losses: u32, now: Time) {}

    /// The transport has inferred a loss from something else than an ACK of data.
    fn on_loss(&mut self, params: &Self::Params) {}

    /// A mark was reported, by a CNP or an answer.
    fn on_cnp(&mut self, params: &Self::Params, now: Time) {}

    /// The flow is over.
    fn release(&mut self) {}
}

/// The resolved parameters of a congestion control: what hosts and switches do for it, and its description. A control
/// implements the hooks whose default does not hold.
pub trait Parameters {
    /// Most hops in a packet's telemetry; `None` without.
    fn hops(&self) -> Option<u8> {
        None
    }

    /// Whether data packets collect a [`Stamp`], which their ACKs return.
    fn stamps(&self) -> bool {
        false
    }

    /// Whether senders slow down for ECN marks.
    fn reads_marks(&self) -> bool {
        false
    }

    /// The notifications of marks, if it has such packets.
    fn cnps(&self) -> Option<Cnps> {
        None
    }

    /// Whether senders set windows instead of rates.
    fn sets_windows(&self) -> bool {
        false
    }

    /// Whether answers without marks change anything.
    fn wants_answers(&self) -> bool {
        true
    }

    /// Writes the control in words, after `head`. `trims`: switches trim packets.
    ///
    /// # Errors
    /// Those of `out`.
    fn describe(&self, out: &mut String, head: &str, trims: bool) -> fmt::Result;
}
