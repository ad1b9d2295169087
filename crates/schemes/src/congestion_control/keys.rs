//! The seam between congestion controls and the reader of scenarios: the table of a control, the parameters that it
//! makes of its keys, and its view of the rest of the scenario.

use super::Step;
use crate::flow_control::fabric::PacketFormat;
use crate::flow_control::keys::{Complaint, LONGEST, SHORTEST_TIMER, Warning};
use std::fmt;
use xoff_kernel::time::Time;
use xoff_net::units::{Bandwidth, Span};

/// The lowest rate of a flow, if not given.
pub(super) const MINIMUM_RATE: Bandwidth = Bandwidth(1_000_000_000);

/// What senders set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sets {
    /// Nothing.
    Nothing,
    /// A rate.
    Rates,
    /// A window.
    Windows,
    /// Neither: receivers grant credit.
    Credit,
}

/// What holds of a congestion control with any parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    pub sets: Sets,
    /// A flow's window follows its rate, unless `transport.variable_window` says otherwise.
    pub window_follows: bool,
    /// `transport.base_rtt` is one of its parameters.
    pub has_base_rtt: bool,
    /// The largest credit of a sender in bytes on the wire, if receivers grant credit.
    pub most_credit: Option<u64>,
}

impl Traits {
    /// Without a congestion control.
    pub const NONE: Self =
        Self { sets: Sets::Nothing, window_follows: false, has_base_rtt: false, most_credit: None };
    /// Of a control of rates.
    pub const RATES: Self = Self { sets: Sets::Rates, ..Self::NONE };
}

/// ECN marking by RED of every priority.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marking {
    /// Bytes of a queue up to which no packet is marked, and above which each one is.
    pub from: u64,
    pub to: u64,
    /// Probability at `to`.
    pub most: f64,
    /// The rate of the ports with these bytes; those of others are in proportion.
    pub per: u64,
    /// Whether the queue is measured when the packet leaves it, instead of when it joins.
    pub leaves: bool,
    /// Whether ports that lead to hosts mark.
    pub last_hop: bool,
}

/// The keys of a congestion control. A control implements the hooks whose default does not hold.
#[allow(unused_variables)]
pub trait Keys {
    type Params;

    const TRAITS: Traits;

    /// The marking of switches, where the scenario has none.
    fn marking(&self) -> Option<Marking> {
        None
    }

    /// Bytes of telemetry in each data packet and each ACK; an error if they are out of range.
    fn telemetry(&self) -> Result<u32, Complaint> {
        Ok(0)
    }

    /// The priority of congestion notifications and its key, if it is given and there are such packets; an error if it
    /// does not exist.
    fn notification_priority(&self) -> Result<Option<(u8, &'static str)>, Complaint> {
        Ok(None)
    }

    /// The queueing delay that counts as none, in picoseconds.
    fn target_delay(&self, cx: &Setting<'_>) -> Result<Time, Complaint> {
        Ok(default_target(cx.trims, cx.flows.base_rtt()?))
    }

    /// The parameters; an error if a value is out of range.
    fn params(&self, cx: &mut Setting<'_>) -> Result<Self::Params, Complaint>;
}

/// The queueing delay that counts as none, if not given: that of Ultra Ethernet.
pub(super) fn default_target(trims: bool, base_rtt: Time) -> Time {
    if trims { (base_rtt * 3 / 4).max(1) } else { base_rtt }
}

/// What a congestion control may ask of the flows.
pub trait Flows {
    /// How many there are.
    fn number(&self) -> usize;

    /// `transport.base_rtt` or its default, the longest unloaded round trip, in picoseconds.
    ///
    /// # Errors
    /// It is out of range.
    fn base_rtt(&self) -> Result<Time, Complaint>;

    /// Calls `line` with the line rate of each flow, in bits per second.
    fn lines(&self, line: &mut dyn FnMut(u64));

    /// Calls `trip` for each flow that reaches its receiver: with the links of its path, and the unloaded round trip of
    /// a full packet in picoseconds.
    fn trips(&self, trip: &mut dyn FnMut(u64, Time));
}

/// The view of a congestion control on the rest of the scenario.
pub struct Setting<'s> {
    /// The congestion control, as the scenario has it.
    pub control: &'static str,
    /// Whether the scenario writes a key, such as `dcqcn.gain`.
    pub is_written: &'s dyn Fn(&str) -> bool,
    pub packet: PacketFormat,
    /// Switches trim packets.
    pub trims: bool,
    /// The load balancing, if devices choose the next hop packet by packet.
    pub by_packet: Option<&'static str>,
    /// The scenario has a `[[slow_receiver]]`.
    pub slow_receivers: bool,
    pub flows: &'s dyn Flows,
    /// The lane of a priority in use.
    pub lane_of: &'s dyn Fn(u8) -> u8,
    /// Allowed settings that may have another effect than the author expects.
    pub warnings: Vec<Warning>,
}

impl Setting<'_> {
    pub(super) fn written(&self, key: &str) -> bool {
        (self.is_written)(key)
    }

    pub(super) fn warn(&mut self, key: &str, message: impl Into<String>) {
        self.warnings.push(Warning { key: key.into(), message: message.into() });
    }

    /// Refuses a minimum rate, given as `key`, from which no flow can come down. Where some flows can, or it is the
    /// preset's, the others are warned of.
    pub(super) fn check_minimum(&mut self, key: &str, minimum: Step) -> Result<(), Complaint> {
        let Step::Rate(minimum) = minimum else { return Ok(()) };
        let mut held = 0;
        self.flows.lines(&mut |line| held += usize::from(line <= minimum));
        if held == 0 {
            return Ok(());
        }
        let minimum = Bandwidth(minimum);
        if held == self.flows.number() && self.written(key) {
            let message =
                format!("no flow could ever slow down: {minimum} is not below the line rate of any flow");
            return Err(Complaint::new(key, message, "write less than the rate of the hosts' links"));
        }
        let which = match held == self.flows.number() {
            true => "no flow ever slows".to_string(),
            false => format!("{held} of {} flows never slow", self.flows.number()),
        };
        self.warn(key, format!("{which} down: {minimum} is not below their line rate"));
        Ok(())
    }
}

/// A rate that is given, or the preset's.
pub(super) fn step(given: Option<Bandwidth>, base: Step) -> Step {
    given.map_or(base, |rate| Step::Rate(rate.0))
}

/// `key`, such as `dcqcn.gain`, with a value that is out of range.
pub(super) fn out_of_range(key: &str, value: impl fmt::Display, help: impl Into<String>) -> Complaint {
    let last = key.rsplit('.').next().unwrap_or(key);
    Complaint::new(key, format!("{last} = {value} is out of range"), help)
}

/// A number above 0, up to 1, which the text of the control calls `symbol`.
///
/// # Errors
/// Another number, with `example` for a good one.
pub fn share(key: &str, symbol: &str, value: f64, example: &str) -> Result<f64, Complaint> {
    if value > 0.0 && value <= 1.0 {
        return Ok(value);
    }
    let help = format!("write a number above 0, up to 1, such as {example}");
    Err(Complaint::new(key, format!("{symbol} = {value} is out of range"), help))
}

/// A timer in picoseconds.
///
/// # Errors
/// It is shorter than [`SHORTEST_TIMER`] or longer than [`LONGEST`].
pub fn timer(key: &str, span: Span) -> Result<Time, Complaint> {
    if (SHORTEST_TIMER..=LONGEST).contains(&span.0) {
        return Ok(span.0);
    }
    Err(out_of_range(key, span, format!("write {} to {}", Span(SHORTEST_TIMER), Span(LONGEST))))
}

/// Refuses more than `most`.
pub(super) fn at_most(key: &str, span: Span, most: Span) -> Result<(), Complaint> {
    if span <= most {
        return Ok(());
    }
    Err(Complaint::new(key, format!("{span} is out of range"), format!("the maximum is {most}")))
}

/// A value as a scenario has it, in the reference.
pub(super) fn text(value: impl fmt::Display) -> String {
    format!("`\"{value}\"`")
}

/// A rate in the reference.
pub(super) fn rate(step: Step) -> String {
    match step {
        Step::Rate(rate) => text(Bandwidth(rate)),
        Step::LineShare(divisor) => format!("line rate / {divisor}"),
    }
}
