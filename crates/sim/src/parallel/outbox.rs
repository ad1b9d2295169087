//! The events for devices that other threads run, between two windows.

use crate::oracle::{blocking::Roots, critical::Record};
use crate::{packet::Packet, switch::telemetry::Parcel};
use xoff_kernel::time::Time;
use xoff_schemes::flow_control::ControlFrame;

#[derive(Clone, Copy, Debug)]
pub struct RemoteEvent {
    /// When its event comes, as [`kind::ARRIVAL`] or [`kind::CONTROL`] …
    pub time: Time,
    pub kind: u8,
    /// … at this port.
    pub port: u32,
    pub packet: Packet,
}

/// The events for one other part.
#[derive(Debug, Default)]
pub struct Outbox {
    pub events: Vec<RemoteEvent>,
    /// The content of control packets among them, by [`Packet::number`], with data for the blocking oracle.
    pub frames: Vec<(ControlFrame, Option<Roots>)>,
    /// Telemetry of the other packets among them, if there is any.
    pub telemetry: Parcel,
    /// For the others, in their order: their past. Only with critical paths.
    pub records: Vec<Option<Record>>,
}
