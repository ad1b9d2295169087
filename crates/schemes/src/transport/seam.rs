//! The seam between transports and hosts: what the ends of a flow learn, and what they decide; and what the parameters of
//! a transport say about it. Go-back-N has no ends of its own: its numbers are those of every sender, and hosts have its
//! one timer for each flow.

use super::FlowWindow;
use crate::congestion_control::CongestionControlParams;
use crate::congestion_control::seam::{Departure, Loss};
use std::fmt;
use xoff_kernel::time::Time;

pub use super::go_back_n::{Reply, Sender as Numbers};

/// The packets beyond the expected one that an answer names: `first`, or `first + i` for each bit i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub first: u32,
    pub bits: u64,
}

/// A flow before it has sent anything.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// Its own window, where each flow has one.
    pub window: FlowWindow,
    /// Bytes on the wire of every packet but the last, and of the last one.
    pub full: u32,
    pub last: u32,
}

/// What data asks of its receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// An ACK at once.
    pub ack: bool,
    /// Credit up to this much; see [`crate::congestion_control::rccc`].
    pub credit: u32,
}

/// What has come back to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// Everything below its number has arrived.
    Ack,
    /// A packet is missing, or was trimmed.
    Nack,
    /// Its number counts the packets that the receiver has requested, or is the credit of the flow so far.
    Pull,
    /// The ACK of a probe.
    ProbeAck,
}

/// A packet that has come back to a sender.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    pub kind: AnswerKind,
    pub number: u32,
    /// How far the packet that it names is ahead of `number`, or the number of a probe.
    pub ahead: u32,
    pub marked: bool,
    /// Of an ACK: further packets that have arrived, from the one it names on.
    pub bits: u64,
    /// Of an ACK: the credit of the flow so far.
    pub credit: Option<u32>,
}

impl Answer {
    /// The packet that it names beside its number.
    pub fn named(&self) -> u32 {
        self.number + self.ahead
    }
}

/// The content of an answer for the congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// So many packets are acknowledged.
    pub acknowledged: u32,
    pub in_flight: u32,
    pub loss: Option<Loss>,
    /// Losses that the transport has inferred from it.
    pub inferred: u32,
}

impl Report {
    /// That of a cumulative acknowledgement.
    pub fn in_order(numbers: &Numbers, answer: &Answer) -> Self {
        // A NACK that a later ACK has overtaken reports no loss.
        let lost = answer.kind == AnswerKind::Nack && answer.number == numbers.una;
        Self {
            acknowledged: numbers.una,
            in_flight: numbers.highest - numbers.una,
            loss: lost.then_some(Loss::Missing),
            inferred: 0,
        }
    }
}

/// Posts an event for a sender's timer.
pub type Post<'p> = &'p mut dyn FnMut(Time);

/// The timer of a sender. One of its events is valid, and the others are obsolete. A deadline mostly moves later; then the
/// valid event sets the next one.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    /// Time of the valid event; `Time::MAX` if there is none.
    at: Time,
}

impl Default for Timer {
    fn default() -> Self {
        Self { at: Time::MAX }
    }
}

impl Timer {
    pub fn is_set(&self) -> bool {
        self.at < Time::MAX
    }

    /// Sees to it that an event comes at the deadline or before.
    #[inline]
    pub fn expect(&mut self, deadline: Time, post: Post<'_>) {
        if deadline < self.at {
            self.at = deadline;
            post(deadline);
        }
    }

    /// Whether the event of `now` is the valid one, after which there is none.
    pub fn expires(&mut self, now: Time) -> bool {
        let valid = now == self.at;
        if valid {
            self.at = Time::MAX;
        }
        valid
    }
}

/// The sender of a flow, beside its numbers. A transport implements the hooks that it uses.
#[allow(unused_variables)]
pub trait Sender: Sized {
    type Params;

    fn new(params: &Self::Params, control: &CongestionControlParams, start: Start) -> Self;

    /// The packet of the last [`Numbers::send`] leaves.
    fn on_sent(
        &mut self,
        params: &Self::Params,
        numbers: &mut Numbers,
        now: Time,
        packet: Departure,
        post: Post<'_>,
    ) -> Asks;

    /// An answer has arrived. Returns whether `una` advanced, or the sender gives up.
    fn on_answer(
        &mut self,
        params: &Self::Params,
        numbers: &mut Numbers,
        now: Time,
        answer: &Answer,
        post: Post<'_>,
    ) -> bool;

    /// An event of its timer. Returns the number of losses that the congestion control infers from it; 0 if it is no
    /// timeout.
    fn on_timer(&mut self, params: &Self::Params, numbers: &mut Numbers, now: Time, post: Post<'_>) -> u32;

    /// The number of the probe that leaves now, after an event of its timer.
    fn take_probe(&mut self) -> Option<u32> {
        None
    }

    /// Whether it has found by itself that it must give up.
    fn gave_up(&self) -> bool {
        false
    }

    /// It has given up: its memory can be released.
    fn release(&mut self) {}

    /// The congestion control permits so many packets in flight. Returns whether the sender observes this; otherwise its
    /// numbers get the window.
    fn set_window(&mut self, numbers: &mut Numbers, window: u32) -> bool {
        false
    }

    /// What `answer`, which has just arrived, says to the congestion control.
    fn report(&self, numbers: &Numbers, answer: &Answer) -> Report {
        Report::in_order(numbers, answer)
    }
}

/// A data packet at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub psn: u32,
    /// Packets of the flow.
    pub total: u32,
    pub marked: bool,
    /// It asks for an ACK.
    pub asks: bool,
}

/// The effect of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    pub reply: Reply,
    /// It had arrived before.
    pub duplicate: bool,
    /// Next packet in order.
    pub expected: u32,
    /// The packets that the reply names beside its number.
    pub named: Named,
}

/// The receiver of a flow. A transport implements the hooks that it uses.
#[allow(unused_variables)]
pub trait Receiver: Sized {
    fn new(start: &Start) -> Self;

    /// A data packet has arrived; an ACK is due for every `ack_every`.
    fn on_data(&mut self, ack_every: u32, packet: Arrival) -> Received;

    /// What remains of the trimmed packet `psn` of `total` has arrived. `last_hop`: the last switch has trimmed it. Returns
    /// the reply, and the packets that it names.
    fn on_header(&mut self, psn: u32, total: u32, last_hop: bool) -> (Reply, Named) {
        unreachable!("the plan refuses trimmed packets under transports that do not understand them")
    }

    /// A probe has arrived. Returns the number of its ACK, and the bitmap after that number.
    fn on_probe(&self) -> (u32, u64) {
        unreachable!("the transport has no probes")
    }

    /// A packet or header has come. Returns whether the flow joins those that wait to request a packet.
    fn joins(&mut self) -> bool {
        false
    }

    /// The flow may request a packet. Returns the number of the request, if there is one, and whether the flow waits for
    /// another.
    fn request(&mut self) -> (Option<u32>, bool) {
        (None, false)
    }
}

/// The resolved parameters of a transport, and its description. A transport implements the hooks whose default does not
/// hold.
#[allow(unused_variables)]
pub trait Parameters {
    /// The first window of a flow in packets, where neither the flow nor the scenario has one.
    fn first_window(&self) -> Option<u32> {
        None
    }

    /// Whether senders slow down for ECN marks.
    fn reads_marks(&self) -> bool {
        false
    }

    /// Time between two timeouts of one packet, at least, where each packet of a flow has its timer; otherwise 0. `inter`
    /// says whether the flow is between datacenters.
    fn timeouts_apart(&self, inter: bool) -> Time {
        0
    }

    /// Writes the transport in words, if there is anything to say. `windows` are those of the flows, by flow.
    ///
    /// # Errors
    /// Those of `out`.
    fn describe(&self, out: &mut String, windows: &[FlowWindow]) -> fmt::Result {
        Ok(())
    }
}
