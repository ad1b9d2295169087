//! `[link_layer]`: its keys, their errors and the parameters.

use super::super::super::flow_control::LinkFacts;
use super::super::super::flow_control::keys::Complaint;
use super::size::{buffer, round_trip};
use super::{Limits, MOST_FRAMES, Params};
use crate::names::names;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::{PortId, Topology};
use xoff_net::units::{Bytes, Span};

/// Bytes of line time from one word to the next: the target of the specification's parameters.
pub const ACK_SPACING: u64 = 2_048;
/// The spacings that the specification allows, in bytes.
const SPACINGS: std::ops::RangeInclusive<u64> = 320..=32_760;
/// The replay timer has 16 bits of nanoseconds.
pub const LONGEST_TIMER: Time = 65_535_000;
/// 255 means without limit.
const MOST_REPLAYS: u8 = 254;
const MOST_RECOVERIES: u32 = 1_000;

names! {
/// The link layer of every link.
pub enum LinkLayerScheme {
    /// A frame that a link loses stays lost.
    #[default]
    None = "none",
    /// Link-level retry of Ultra Ethernet: each link retransmits lost frames.
    Llr = "llr",
}
}

/// The link layer of every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkLayerKeys {
    /// What repairs a link.
    pub scheme: LinkLayerScheme,
    /// Replay buffer of each port: a port sends no new frame while a largest frame does not fit. Default: the bytes
    /// that the link sends in a round trip, so it never waits (`xoff size --scheme llr`).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: rate times round trip of each link, and two frames"))]
    pub buffer: Option<Bytes>,
    /// Most frames in the replay buffer, 1 to 524,288. Default: no limit beside `buffer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 524_288), extend("x-unit" = "frames", "x-default" = "524288"))]
    pub frames: Option<u32>,
    /// Replay timer: a link that gets no acknowledgement for so long retransmits its whole buffer. Longer than the
    /// round trip of the link, and at most 65,535 ns. Default: twice the round trip.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-default" = "derived: twice the round trip of each link"))]
    pub timer: Option<Span>,
    /// Expired timers in a row after which a link gives its frames up, 0 to 254. Their packets are then lost.
    /// Default: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = 254), extend("x-unit" = "timeouts", "x-default" = "none: no limit"))]
    pub replays: Option<u8>,
    /// Line time from one ordered set of a port to the next, in bytes, 320 B to 32,760 B.
    pub ack_spacing: Bytes,
    /// Time from the arrival of an ordered set until it takes effect.
    pub processing: Span,
    /// Recoveries in a row for which lossless accounts get memory, 0 to 1000. While a link repairs a pause frame,
    /// its sender still sends. Memory that the scenario sets, such as `flow_control.headroom`, does not grow.
    #[schemars(range(max = 1000), extend("x-unit" = "recoveries"))]
    pub recoveries: u32,
}

impl Default for LinkLayerKeys {
    fn default() -> Self {
        Self {
            scheme: LinkLayerScheme::None,
            buffer: None,
            frames: None,
            timer: None,
            replays: None,
            ack_spacing: Bytes(ACK_SPACING),
            processing: Span(0),
            recoveries: 4,
        }
    }
}

/// The default replay timer of a link, if it can be that long.
pub(super) fn timer(round_trip: Time) -> Option<Time> {
    (round_trip < LONGEST_TIMER).then(|| (2 * round_trip).next_multiple_of(1_000).min(LONGEST_TIMER))
}

fn refuse<T>(key: &str, message: impl Into<String>, help: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint::new(&format!("link_layer.{key}"), message, help))
}

impl LinkLayerKeys {
    /// The values in range.
    fn check(&self, largest: u32) -> Result<(), Complaint> {
        if let Some(buffer) = self.buffer
            && !(u64::from(largest)..=1 << 40).contains(&buffer.0)
        {
            let message = format!("buffer = {buffer} is out of range: the largest frame has {largest} B");
            return refuse("buffer", message, format!("write {largest}B to 1 TiB"));
        }
        if let Some(frames) = self.frames
            && !(1..=MOST_FRAMES).contains(&frames)
        {
            let help = format!("write 1 to {MOST_FRAMES}: sequence numbers have 20 bits");
            return refuse("frames", format!("frames = {frames} is out of range"), help);
        }
        if let Some(replays) = self.replays
            && replays > MOST_REPLAYS
        {
            let help = format!("write 0 to {MOST_REPLAYS}, or remove `replays` for no limit");
            return refuse("replays", format!("replays = {replays} is out of range"), help);
        }
        if !SPACINGS.contains(&self.ack_spacing.0) {
            let message = format!("ack_spacing = {} is out of range", self.ack_spacing);
            let help = format!("write {}B to {}B", SPACINGS.start(), SPACINGS.end());
            return refuse("ack_spacing", message, help);
        }
        if self.processing.0 > LONGEST_TIMER {
            let message = format!("processing = {} is out of range", self.processing);
            return refuse("processing", message, format!("the maximum is {}", Span(LONGEST_TIMER)));
        }
        if self.recoveries > MOST_RECOVERIES {
            let message = format!("recoveries = {} is out of range", self.recoveries);
            return refuse("recoveries", message, format!("write 0 to {MOST_RECOVERIES}"));
        }
        Ok(())
    }

    /// The parameters for a topology whose largest frame has `largest` bytes; `None` without a link layer.
    pub fn resolve(&self, topology: &Topology, largest: u32) -> Result<Option<Params>, Complaint> {
        self.check(largest)?;
        if self.scheme == LinkLayerScheme::None {
            return Ok(None);
        }
        let mut ports = Vec::with_capacity(topology.ports.len());
        for id in 0..topology.ports.len() as PortId {
            ports.push(Some(self.limits(topology, id, largest)?));
        }
        let peers: Vec<(u64, Time)> = topology
            .ports
            .iter()
            .map(|p| ports[p.peer as usize].map_or((0, 0), |peer: Limits| (peer.bytes, peer.timer)))
            .collect();
        for (id, (peer_bytes, _)) in peers.into_iter().enumerate() {
            let (port, back) = (&topology.ports[id], topology.ports[topology.ports[id].peer as usize].rate);
            let link = LinkFacts { rate: port.rate, delay: port.delay, largest, retries: 0 };
            let Some(limits) = &mut ports[id] else { continue };
            let trip = round_trip(&link, back, limits.spacing, limits.processing);
            // A pause frame that leaves here is late by recoveries; what has been sent before is retransmitted.
            let late = u128::from(back) * u128::from(self.recoveries) * u128::from(limits.timer + trip);
            let late = u64::try_from(late / 8_000_000_000_000).unwrap_or(u64::MAX);
            limits.headroom = peer_bytes.saturating_add(late);
        }
        Ok(Some(Params { ports }))
    }

    fn limits(&self, topology: &Topology, id: PortId, largest: u32) -> Result<Limits, Complaint> {
        let port = &topology.ports[id as usize];
        let back = topology.ports[port.peer as usize].rate;
        let spacing = serialisation(self.ack_spacing.0, back);
        let own_spacing = serialisation(self.ack_spacing.0, port.rate);
        let link = LinkFacts { rate: port.rate, delay: port.delay, largest, retries: 0 };
        let trip = round_trip(&link, back, spacing, self.processing.0);
        let name = topology.port_name(id);
        let timer = match self.timer {
            Some(timer) if timer.0 > LONGEST_TIMER => {
                let help =
                    format!("the maximum is {}: the timer has 16 bits of nanoseconds", Span(LONGEST_TIMER));
                return refuse("timer", format!("timer = {timer} is out of range"), help);
            }
            // Both ends process an LLR_INIT and its echo. A later LLR_INIT would put the receiver back.
            Some(timer) if timer.0 <= trip.saturating_add(self.processing.0) => {
                let message = format!(
                    "timer = {timer} is not longer than the round trip of the link of {name} with the processing of both \
                     ends, {}",
                    Span(trip.saturating_add(self.processing.0))
                );
                return refuse("timer", message, "write a longer time, or remove `timer`");
            }
            Some(timer) => timer.0,
            None => match timer(trip) {
                Some(timer) => timer,
                None => {
                    let message = format!(
                        "the round trip of the link of {name} is {}, but the replay timer has at most {}",
                        Span(trip),
                        Span(LONGEST_TIMER)
                    );
                    return refuse("scheme", message, "remove [link_layer], or shorten the link");
                }
            },
        };
        let bytes = self.buffer.map_or_else(|| buffer(&link, back, spacing, self.processing.0), |b| b.0);
        Ok(Limits {
            bytes,
            frames: self.frames.unwrap_or(MOST_FRAMES),
            largest,
            timer,
            replays: self.replays,
            spacing: own_spacing,
            processing: self.processing.0,
            headroom: 0,
        })
    }
}
