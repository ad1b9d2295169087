//! Dynamic and shared headroom (Shan, Liu, Zhang et al., *Less is More: Dynamic and Shared Headroom Allocation
//! in PFC-Enabled Datacenter Networks*, ICDCS 2023).
//!
//! Memory of a device: `φ` for each ingress queue, an insurance headroom `η` for each port (equation 4), and one
//! segment of `Bs` bytes that all queues share, for footroom and headroom. Queue j of port i holds `ω_ij` of it.
//!
//! ```text
//! T(t)  = α · (Bs − Σ ω)                  η  = 2 (C · D + L) + 3840 B        (2), (1)
//! Xqoff = T(t) − η                        Xqon = Xqoff − δq                  (5)
//! Xpoff = Nq · T(t)                       Xpon = Xpoff − δp                  (6)
//! ```
//!
//! Ingress half, per queue and per port:
//!
//! ```text
//!         ω_ij > Xqoff: PAUSE(j)                          Σ_j ω_ij > Xpoff: PAUSE(port)
//!   QON ◄────────────────────────► QOFF             PON ◄────────────────────────────► POFF
//!         ω_ij < Xqon: RESUME(j)                          Σ_j ω_ij < Xpon, insurance empty:
//!                                                                RESUME(port)
//! ```
//!
//! A packet goes to the private memory of its queue, then to the shared segment, and in POFF to the insurance. The
//! device's accounting does this ([`PortLevel`]), and reports the crossings.
//!
//! Egress half: QOFF for each queue, POFF for each port, and a queue may send if neither is set. Each level has its
//! own [`Pfc`] state machine for frames, repeats and expiries. The port level has one lane. `Gate` is the device
//! of both: it joins their pauses, and marks their frames.

pub mod frame;
pub mod keys;
pub mod report;
pub mod size;

#[cfg(test)]
mod explore;
#[cfg(test)]
mod tests;

use super::pfc::{Pfc, PfcParams, pause_time};
use super::registry::FlowControl;
use super::remarks::never_paused;
use super::size::bytes_in;
use super::size::links::{Links, Report as SizeReport};
use super::{
    ControlFrame, Crossing, Device, Headroom, LinkFacts, Machine, Parameters, PortLevel, Scheme, Seen, Traits,
};
use frame::LevelFrame;
use report::{FACTS, Report};
use xoff_kernel::time::Time;
use xoff_net::units::{Bytes, Span};
use xoff_outcome::report::{Facts, Note, Ran, Records};
use xoff_wire::pfc::PfcFrame;

/// The bytes of the response time of 802.1Qbb, 60 quanta.
const RESPONSE: u64 = 3_840;

/// The insurance of a port, equation 1: `2 (C · D + L) + 3840 B`. The last term covers the response time and
/// the frame. If they need more, it is as long as they are.
pub fn insurance(link: &LinkFacts, response_time: Time) -> Headroom {
    let frame = u64::from(PfcFrame::LENGTH);
    link.room(vec![
        ("cable, both ways", bytes_in(link.rate, 2 * link.delay)),
        ("our packet just begun", u64::from(link.largest)),
        ("peer's packet just begun", u64::from(link.largest)),
        ("response time and frame", RESPONSE.max(bytes_in(link.rate, response_time).saturating_add(frame))),
    ])
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DshParams {
    /// Of both levels.
    pub pfc: PfcParams,
    /// α, in 1/65536.
    pub alpha_q16: u64,
    /// φ, in bytes.
    pub private: u64,
    /// N_q, η as the margin, and δp, of each port.
    pub levels: Vec<PortLevel>,
    /// By lane.
    pub lossless: Vec<bool>,
    /// How long the longest pause lasts.
    pub longest: Time,
}

impl Parameters for DshParams {
    fn traits(&self) -> Traits {
        Traits {
            shares_headroom: true,
            couples_lanes: self.lossless.iter().filter(|on| **on).count() > 1,
            patience: self.longest,
            ..Traits::of_pfc(&self.pfc)
        }
    }

    fn port_levels(&self) -> &[PortLevel] {
        &self.levels
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let alpha = self.alpha_q16 as f64 / 65_536.0;
        let (private, response) = (Bytes(self.private), Span(self.pfc.response_time));
        let queues = self.levels.first().map_or(1, |level| level.queues);
        format!("(alpha {alpha}, {private} private, {queues} queues per port, response time {response})")
    }

    fn compare(&self, links: &Links<'_>, report: &mut SizeReport) -> bool {
        size::compare(links, self.pfc.response_time, report);
        true
    }

    fn idle(&self, ran: &Ran<'_>) -> Option<Note> {
        let help = "To cause pauses, raise the load or the fan-in, or lower flow_control.alpha.";
        never_paused(ran, "DSH", |_| true, "", help)
    }

    fn full_headroom_help(&self) -> Option<&'static str> {
        Some("Remove flow_control.insurance: its default is enough, unless links lose pause frames.")
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Dsh(Dsh::new(self, ports, priorities))
    }
}

/// A level of pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Queue,
    Port,
}

impl Level {
    /// Its mark on a queue that it has stopped: QOFF or POFF.
    fn mark(self) -> u8 {
        1 << self as u8
    }
}

/// The lane of the port level, and its priority there.
const PORT: u8 = 0;

#[derive(Clone, Debug)]
pub struct Dsh {
    queues: Pfc,
    ports: Pfc,
    lossless: Vec<bool>,
    /// By port and lane: the marks of the levels that have stopped the egress queue.
    off: Vec<u8>,
    /// By port: POFF of the ingress half.
    over: Vec<bool>,
    report: Report,
}

/// The device of one level.
struct Gate<'a, D: ?Sized> {
    device: &'a mut D,
    level: Level,
    lossless: &'a [bool],
    off: &'a mut [u8],
    /// The first timer of the level.
    timers: u32,
}

impl Dsh {
    fn new(params: &DshParams, ports: usize, priorities: &[u8]) -> Self {
        Self {
            queues: Pfc::new(params.pfc, ports, priorities),
            ports: Pfc::new(params.pfc, ports, &[PORT]),
            lossless: params.lossless.clone(),
            off: vec![0; ports * priorities.len()],
            over: vec![false; ports],
            report: Report::default(),
        }
    }

    /// The machine of a level, and its device.
    fn at<'a, D: Device + ?Sized>(
        &'a mut self,
        device: &'a mut D,
        level: Level,
    ) -> (&'a mut Pfc, Gate<'a, D>) {
        let (machine, timers) = match level {
            Level::Queue => (&mut self.queues, 0),
            Level::Port => {
                let first = self.queues.timers() as u32;
                (&mut self.ports, first)
            }
        };
        (machine, Gate { device, level, lossless: &self.lossless, off: &mut self.off, timers })
    }
}

impl<D: Device + ?Sized> Gate<'_, D> {
    /// The egress queues that a lane of the level stops.
    fn lanes(&self, lane: u8) -> impl Iterator<Item = u8> + use<D> {
        let lossless = |bits: u8, (lane, on): (usize, &bool)| bits | u8::from(*on) << lane;
        let lanes = match self.level {
            Level::Queue => 1 << lane,
            Level::Port => self.lossless.iter().enumerate().fold(0u8, lossless),
        };
        (0..8).filter(move |lane| lanes >> lane & 1 == 1)
    }

    fn mark(&mut self, port: u32, lane: u8) -> &mut u8 {
        &mut self.off[port as usize * self.lossless.len() + usize::from(lane)]
    }
}

impl<D: Device + ?Sized> Device for Gate<'_, D> {
    fn now(&self) -> Time {
        self.device.now()
    }

    fn rate(&self, port: u32) -> u64 {
        self.device.rate(port)
    }

    fn pause(&mut self, port: u32, lane: u8) {
        for lane in self.lanes(lane) {
            *self.mark(port, lane) |= self.level.mark();
            self.device.pause(port, lane);
        }
    }

    fn hold(&mut self, port: u32, lane: u8) {
        for lane in self.lanes(lane) {
            *self.mark(port, lane) |= self.level.mark();
            self.device.hold(port, lane);
        }
    }

    fn resume(&mut self, port: u32, lane: u8) {
        for lane in self.lanes(lane) {
            let mark = self.level.mark();
            let off = self.mark(port, lane);
            *off &= !mark;
            if *off == 0 {
                self.device.resume(port, lane);
            }
        }
    }

    fn backlog(&self, port: u32, lane: u8) -> u64 {
        self.device.backlog(port, lane)
    }

    fn device_of(&self, port: u32) -> u32 {
        self.device.device_of(port)
    }

    fn port_of(&self, port: u32, index: usize) -> Option<u32> {
        self.device.port_of(port, index)
    }

    fn relay_port(&self, port: u32, index: usize) -> Option<u32> {
        self.device.relay_port(port, index)
    }

    fn stored(&self, port: u32, lane: u8) -> u64 {
        self.device.stored(port, lane)
    }

    fn received(&self, port: u32, lane: u8) -> u64 {
        self.device.received(port, lane)
    }

    fn send_control(&mut self, port: u32, frame: ControlFrame) {
        let frame = match (frame, self.level) {
            (ControlFrame::Pfc(frame), Level::Queue) => LevelFrame::from(frame).into(),
            (ControlFrame::Pfc(frame), Level::Port) => {
                LevelFrame::of_port(frame.quanta[usize::from(PORT)]).into()
            }
            (other, _) => other,
        };
        self.device.send_control(port, frame);
    }

    fn arm(&mut self, timer: u32, at: Time) {
        self.device.arm(self.timers + timer, at);
    }

    fn cancel(&mut self, timer: u32) {
        self.device.cancel(self.timers + timer);
    }
}

impl Machine for Dsh {
    const FACTS: Option<&'static Facts> = Some(&FACTS);

    fn timers(&self) -> usize {
        self.queues.timers() + self.ports.timers()
    }

    fn records(&self) -> Records {
        Records::of(self.report)
    }
}

impl<D: Device> Scheme<D> for Dsh {
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        self.report.queue_pauses += u64::from(crossing == Crossing::Over);
        let (queues, mut gate) = self.at(device, Level::Queue);
        queues.crossed(&mut gate, port, lane, crossing);
    }

    fn port_crossed(&mut self, device: &mut D, port: u32, crossing: Crossing) {
        let over = crossing == Crossing::Over;
        self.report.port_pauses += u64::from(over);
        self.over[port as usize] = over;
        let (ports, mut gate) = self.at(device, Level::Port);
        ports.crossed(&mut gate, port, PORT, crossing);
    }

    fn insured(&mut self, _: &mut D, _: u32, used: u64) {
        self.report.insured += 1;
        self.report.peak = self.report.peak.max(used);
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let frame = match *frame {
            ControlFrame::Level(frame) => frame,
            // As read from a wire.
            ControlFrame::Pfc(frame) => LevelFrame::from(frame),
            _ => return,
        };
        let level = if frame.is_port() { Level::Port } else { Level::Queue };
        let content = match level {
            Level::Queue => frame.pfc(),
            Level::Port => PfcFrame::single(PORT, frame.pfc().quanta[0]),
        };
        let (machine, mut gate) = self.at(device, level);
        machine.obey(&mut gate, port, &content);
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let first = self.queues.timers() as u32;
        let level = if timer < first { Level::Queue } else { Level::Port };
        let (machine, mut gate) = self.at(device, level);
        let timer = timer - gate.timers;
        machine.timer(&mut gate, timer);
    }

    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        let (queues, mut gate) = self.at(device, Level::Queue);
        queues.link_failed(&mut gate, port, lane);
        // Called for every lane: the port level ends with the first one.
        if lane == 0 {
            let (ports, mut gate) = self.at(device, Level::Port);
            ports.link_failed(&mut gate, port, PORT);
        }
    }

    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        let (queues, mut gate) = self.at(device, Level::Queue);
        queues.link_recovered(&mut gate, port, lane, over, settled);
        if self.lossless.iter().position(|on| *on) == Some(usize::from(lane)) {
            let over = self.over[port as usize];
            let (ports, mut gate) = self.at(device, Level::Port);
            ports.link_recovered(&mut gate, port, PORT, over, settled);
        }
    }
}

/// The longest pause on any of these links.
fn longest_pause(quanta: u16, rates: impl Iterator<Item = u64>) -> Time {
    rates.map(|rate| pause_time(quanta, rate)).max().unwrap_or(0)
}
