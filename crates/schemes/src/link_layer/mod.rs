//! Link layers: mechanisms that repair a link itself, below the flow control and above the wire.
//!
//! A link layer numbers the frames that a port sends, and decides which of the frames that arrive go on to the
//! device. It is a property of links, so every flow control runs over it. The two ends of a link exchange
//! [`Word`]s, and each end is a [`Transmitter`] and a [`Receiver`] without input and output of their own.

pub mod llr;

pub use llr::frame::Word;
pub use llr::keys::{LinkLayerKeys, LinkLayerScheme};
pub use llr::report::Report;
pub(crate) use llr::size::ENTRIES;
pub use llr::size::compare;
pub use llr::{Limits, Params, Receiver, Timeout, Transmitter, UNDELIVERED, Verdict};

/// The facts that link layers report.
pub fn facts() -> [&'static xoff_outcome::report::Facts; 1] {
    [&llr::report::FACTS]
}
