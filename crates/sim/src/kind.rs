//! Kinds of events; their order is that of events at one time.

use xoff_kernel::wheel::Event;

/// A link fails (data 1) or recovers (0); element: port. Routes change; element: [`crate::faults::ROUTES`].
pub const FAULT: u8 = 0;
/// A port's wire is free and something waits: choose it. Element: port.
pub const DECISION: u8 = 1;
/// A packet's last bit arrives. Element: the receiving port. Data: packet.
pub const ARRIVAL: u8 = 2;
/// A control frame takes effect. Element: the receiving port. Data: packet.
pub const CONTROL: u8 = 3;
/// A timer of the flow control. Element: timer. Data: generation.
pub const TIMER: u8 = 4;
/// A retransmission timer. Element: flow.
pub const TIMEOUT: u8 = 5;
/// A paced flow may send again. Element: flow.
pub const PACE: u8 = 6;
/// A slow receiver stops (data 1) or goes on (0). Element: receiver.
pub const STALL: u8 = 7;
/// The next flows of the plan begin.
pub const FLOWS: u8 = 8;
/// The flows after a gate begin. Element: gate.
pub const GATE: u8 = 9;
/// A frame that keeps its place among data arrives. Element: the receiving port. Data: packet.
pub const BARRIER: u8 = 10;
/// The flow control settles an account, after all other events of that time. Element: port. Data: lane.
pub const SETTLE: u8 = 11;
/// The last packet of a flow has left its source: the arbiter may let others have its ends. Element: flow.
pub const LEFT: u8 = 12;
/// A receiver may send its next PULL, or credit. Element: port.
pub const PULL: u8 = 13;
/// A word of a link layer takes effect. Element: the receiving port. Data: packet.
pub const WORD: u8 = 14;
/// A timer of a link layer. Element: twice the port, and which of its timers.
pub const LINK_TIMER: u8 = 15;

/// Whether an event is a timer, or the effect of a frame that a timer sent.
pub fn is_timer(event: &Event) -> bool {
    matches!(event.kind(), TIMER | TIMEOUT | CONTROL | WORD | LINK_TIMER)
}

/// Whether an event comes from outside, that is from the plan.
pub fn is_news(event: &Event) -> bool {
    matches!(event.kind(), FAULT | STALL | FLOWS | GATE)
}
