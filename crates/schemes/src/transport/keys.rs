//! The seam between transports and the reader of scenarios: the table of a transport, the parameters that it makes of its
//! keys, and its view of the rest of the scenario.

use super::FlowWindow;
use crate::congestion_control::CongestionControl;
use crate::flow_control::fabric::PacketFormat;
use crate::flow_control::keys::{Complaint, LONGEST, SHORTEST_TIMER, Warning, bytes};
use xoff_kernel::time::Time;

use xoff_net::units::{Span, Threshold};

/// Answers distinguish two packet numbers that differ by less than this, so windows are smaller.
pub const LARGEST_WINDOW: u32 = 1 << 24;

/// The packets that NACKs name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nacks {
    /// The first missing one.
    Missing,
    /// The first missing one, and the one that has arrived.
    MissingAndArrived,
    /// The one that a switch has trimmed, and whether the last switch did.
    Trimmed,
}

/// What holds of a transport with any parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The keys of its table that take the place of `transport.rto`.
    pub timeouts: &'static [&'static str],
    /// `transport.rto` is the longest time that repeated timeouts may reach.
    pub backs_off: bool,
    /// Most retries of a sender, if `transport.retries` is not given.
    pub retries: Option<u8>,
    /// It counts the retries of each packet, and the retransmissions for NACKs, by itself.
    pub counts_retries: bool,
    /// Each flow has a limit of packets in flight.
    pub limits_flight: bool,
    /// What a packet that arrives too early causes; `None` where receivers accept packets in any order.
    pub gap: Option<&'static str>,
    /// Receivers understand what remains of a trimmed packet.
    pub understands_trimmed: bool,
    /// Receivers request each packet after a flow's first window.
    pub requests: bool,
    /// Packets ask for credit.
    pub asks_for_credit: bool,
    /// A central arbiter may decide which of its flows send.
    pub suits_arbiter: bool,
    /// Why packets of one flow cannot have different UDP ports.
    pub one_port: Option<&'static str>,
    /// Its packets are TCP segments instead of RoCE packets, and have numbers of bytes.
    pub segments: bool,
    /// ACKs name the packet that has arrived, beside those in order.
    pub acks_name_arrival: bool,
    /// ACKs have a bitmap.
    pub acks_have_bitmaps: bool,
    /// ACKs may leave earlier than `transport.ack_every` says.
    pub acks_early: bool,
    pub nacks: Nacks,
}

impl Traits {
    /// Those of go-back-N.
    pub const NONE: Self = Self {
        timeouts: &[],
        backs_off: false,
        retries: None,
        counts_retries: false,
        limits_flight: false,
        gap: None,
        understands_trimmed: false,
        requests: false,
        asks_for_credit: false,
        suits_arbiter: false,
        one_port: None,
        segments: false,
        acks_name_arrival: false,
        acks_have_bitmaps: false,
        acks_early: false,
        nacks: Nacks::Missing,
    };
}

/// The keys of a transport.
pub trait Keys: Copy + Default {
    type Params;

    const TRAITS: Traits;

    /// The parameters.
    ///
    /// # Errors
    /// A value is out of range, or incompatible with another key.
    fn resolve(&self, cx: &mut Setting<'_>) -> Result<Resolved<Self::Params>, Complaint>;
}

/// What a transport makes of a scenario.
pub struct Resolved<P> {
    pub params: P,
    /// Longest time without progress after which a sender repeats, in picoseconds.
    pub rto: Time,
    /// Most payload bytes of each flow in flight; `None` is no limit.
    pub window: Option<u64>,
    /// By flow, where each has its own; else empty.
    pub windows: Vec<FlowWindow>,
}

/// The route of a flow and of its ACKs.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Rate of the slowest link for data, in bits per second.
    pub slowest: u64,
    /// Unloaded round trip of a full packet and its ACK, in picoseconds; 0 if one of them does not arrive.
    pub round_trip: Time,
    /// Delay of the longest link, in picoseconds.
    pub longest_link: Time,
    /// It crosses a link between datacenters.
    pub long: bool,
}

/// What a transport may ask of the routes.
pub trait Routes {
    /// The rate of the fastest sender in bits per second, and the longest unloaded round trip in picoseconds.
    fn extremes(&self) -> (u64, Time);

    /// `transport.base_rtt` or its default, in picoseconds.
    ///
    /// # Errors
    /// It is out of range.
    fn base_rtt(&self) -> Result<Time, Complaint>;

    /// The queueing delay that counts as none for the congestion control, in picoseconds.
    ///
    /// # Errors
    /// It is out of range.
    fn target_delay(&self) -> Result<Time, Complaint>;

    /// Calls `route` for each flow in turn.
    fn each(&self, route: &mut dyn FnMut(Route));
}

/// The view of a transport on the rest of the scenario.
pub struct Setting<'s> {
    /// The transport, as the scenario has it.
    pub transport: &'static str,
    /// Whether the scenario writes a key, such as `irn.rto_low`.
    pub is_written: &'s dyn Fn(&str) -> bool,
    /// The keys that the scenario writes in a table.
    pub keys_of: &'s dyn Fn(&str) -> Vec<String>,
    pub packet: PacketFormat,
    pub control: CongestionControl,
    /// `transport.ack_every`, at least 1.
    pub ack_every: u32,
    /// `transport.rto`, in range.
    pub rto: Span,
    /// `transport.window`; bytes are a packet's payload at least.
    pub window: Option<Threshold>,
    /// `transport.retries` and `transport.nack_retries` or their defaults; `None` is no limit.
    pub retries: Option<u8>,
    pub nack_retries: Option<u8>,
    /// Switches mark packets.
    pub marks: bool,
    /// `measure.explain` or `measure.blocking` is on.
    pub explains: bool,
    /// The load balancing, if its ACKs return the number of marked packets.
    pub counts_marks: Option<&'static str>,
    pub routes: &'s dyn Routes,
    /// Allowed settings that may have another effect than the author expects.
    pub warnings: Vec<Warning>,
}

impl Setting<'_> {
    pub(super) fn warn(&mut self, key: &str, message: impl Into<String>) {
        self.warnings.push(Warning { key: key.into(), message: message.into() });
    }

    /// Warns of every key of `table`, which has no effect.
    pub(super) fn warn_of_table(&mut self, table: &str, why: &str) {
        for key in (self.keys_of)(table) {
            self.warn(&format!("{table}.{key}"), format!("had no effect: {why}"));
        }
    }

    /// Warns of a timeout that is shorter than a round trip.
    pub(super) fn warn_of_timeout(&mut self, key: &str, rto: Time, round_trip: Time) {
        if rto < round_trip {
            let message = format!(
                "{} is shorter than the longest unloaded round trip, {} ns: senders retransmit packets that were not lost",
                Span(rto),
                round_trip.div_ceil(1_000)
            );
            self.warn(key, message);
        }
    }

    /// The congestion control must be none, because of `reason`.
    pub(super) fn refuse_control(&self, reason: &str) -> Result<(), Complaint> {
        if self.control == CongestionControl::None {
            return Ok(());
        }
        let help = "remove the key, or write transport.kind = \"go-back-n\" or \"irn\"";
        Err(Complaint::new("transport.congestion_control", format!("incompatible with {reason}"), help))
    }

    /// Each packet has its ACK, because of `reason`.
    pub(super) fn refuse_rare_acks(&self, reason: &str) -> Result<(), Complaint> {
        if self.ack_every == 1 {
            return Ok(());
        }
        Err(Complaint::new("transport.ack_every", reason, "write 1, or remove the key"))
    }

    /// Packets have no part of a flow's time, because of `reason`.
    pub(super) fn refuse_explanations(&self, reason: &str) -> Result<(), Complaint> {
        if !self.explains {
            return Ok(());
        }
        let message = format!("incompatible with `{}`: {reason}", self.transport);
        let help = "remove the key, or choose another transport.kind";
        Err(Complaint::new("measure.explain", message, help))
    }

    /// ACKs have no room for a number of marks. `called` is the transport in texts.
    pub(super) fn refuse_counted_marks(&self, called: &str) -> Result<(), Complaint> {
        let Some(balancing) = self.counts_marks else { return Ok(()) };
        let message = format!(
            "`{balancing}` is incompatible with `{}`: its ACKs have no room for the number of marks",
            self.transport
        );
        let help = format!("write \"spray\", which {called} is made for, or another load balancing");
        Err(Complaint::new("routing.load_balancing", message, help))
    }

    /// `transport.window` in bytes, where the network has one BDP.
    ///
    /// # Errors
    /// It is smaller than a packet, or than the packets of an ACK.
    pub(super) fn network_window(&self) -> Result<Option<u64>, Complaint> {
        let Some(given) = self.window else { return Ok(None) };
        let (fastest, longest) = self.routes.extremes();
        let window = given.resolve(fastest, longest);
        self.check_window("transport.window", window, &format!("{given} ({})", bytes(window)))?;
        self.check_acks("transport.window", window)?;
        Ok(Some(window))
    }

    /// Refuses a window of so many bytes that is smaller than a packet's payload.
    pub fn check_window(&self, key: &str, window: u64, shown: &str) -> Result<(), Complaint> {
        let mtu = u64::from(self.packet.mtu);
        if window >= mtu {
            return Ok(());
        }
        let message = format!("a window of {shown} is smaller than one packet's payload of {}", bytes(mtu));
        Err(Complaint::new(key, message, "raise `window`, or lower `mtu`"))
    }

    /// Refuses a window of so many bytes that is full before an ACK is due.
    pub(super) fn check_acks(&self, key: &str, window: u64) -> Result<(), Complaint> {
        let (every, mtu) = (self.ack_every, u64::from(self.packet.mtu));
        let least = u64::from(every) * mtu;
        if window >= least {
            return Ok(());
        }
        let message = format!(
            "a window of {} is smaller than {every} packets: the receiver would never send the ACK that reopens it",
            bytes(window)
        );
        if (self.is_written)(key) {
            return Err(Complaint::new(key, message, format!("write at least {}", bytes(least))));
        }
        Err(Complaint::new(
            "transport.ack_every",
            message,
            format!("write at most {}", (window / mtu).max(1)),
        ))
    }

    /// The window of each flow in packets, without `window` the largest one. BDPs are those of the flow's route without
    /// load. An error is about `key`, and calls the window as `named`.
    pub(super) fn windows(
        &self,
        window: Option<Threshold>,
        (key, named): (&str, &str),
    ) -> Result<Vec<FlowWindow>, Complaint> {
        let mtu = u64::from(self.packet.mtu);
        let (mut windows, mut largest) = (Vec::new(), 0);
        self.routes.each(&mut |route| {
            let packets = match window {
                None => u64::from(LARGEST_WINDOW - 1),
                Some(window) => packets_of(window, route.slowest, route.round_trip, mtu),
            };
            largest = packets.max(largest);
            windows.push(FlowWindow { window: packets as u32, inter: false });
        });
        check_largest(key, named, largest)?;
        Ok(windows)
    }
}

/// Packets of `mtu` bytes in a window; BDPs are of this rate and time.
pub(super) fn packets_of(window: Threshold, rate: u64, time: Time, mtu: u64) -> u64 {
    match window {
        Threshold::Bytes(window) => window.0 / mtu,
        bdp => bdp.resolve(rate, time).div_ceil(mtu).max(1),
    }
}

/// Refuses windows of [`LARGEST_WINDOW`] packets or more, which are called as `named`.
pub(super) fn check_largest(key: &str, named: &str, packets: u64) -> Result<(), Complaint> {
    if packets < u64::from(LARGEST_WINDOW) {
        return Ok(());
    }
    let message = format!("a {named} of {packets} packets is out of range");
    Err(Complaint::new(key, message, format!("the maximum is {} packets", LARGEST_WINDOW - 1)))
}

/// A timeout in picoseconds, if it is in range.
///
/// # Errors
/// It is 0, too short for an ACK to arrive, or too long.
pub fn timeout(key: &str, span: Span) -> Result<Time, Complaint> {
    if span.0 == 0 {
        return Err(Complaint::new(key, "must be positive", "write a time above 0, such as \"4ms\""));
    }
    if span.0 < SHORTEST_TIMER {
        let message = format!("a timeout of {span} is out of range: it expires before an ACK can arrive");
        return Err(Complaint::new(
            key,
            message,
            format!("write {} to {}", Span(SHORTEST_TIMER), Span(LONGEST)),
        ));
    }
    if span.0 > LONGEST {
        let message = format!("a timeout of {span} is out of range");
        return Err(Complaint::new(key, message, format!("the maximum is {}", Span(LONGEST))));
    }
    Ok(span.0)
}
