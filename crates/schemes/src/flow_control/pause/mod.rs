//! PAUSE of the whole link (IEEE 802.3 Annex 31B), older than pauses of single priorities.
//!
//! Ingress half, per port, two states:
//!
//! ```text
//!            first account over XOFF: PAUSE(quanta), arm refresh
//!   Open ◄────────────────────────────────────────────────────────► Closed
//!            last account at XON: PAUSE(0), cancel refresh
//! ```
//!
//! The accounts are those of the port's lossless priorities; a pause is repeated after half of its
//! time, as under [`super::pfc`].
//!
//! Egress half, per port:
//!
//! ```text
//!            PAUSE(q > 0): pause every lane, arm expiry for q quanta
//!   Going ◄────────────────────────────────────────────────────────► Paused
//!            PAUSE(0), or expiry: resume every lane
//! ```
//!
//! So a pause stops more than its cause: lossy priorities too. Packets that arrive after XOFF of one account
//! may belong to any other, so each account has PFC's headroom.

pub mod keys;
#[cfg(test)]
mod tests;

use super::pfc::{PfcParams, pause_time};
use super::{ControlFrame, Crossing, Device, Effect, FlowControl, MacControlFrame};
use super::{Machine, Parameters, PauseScope, Scheme, Seen, Traits};
use xoff_kernel::time::{Time, serialisation};
use xoff_wire::{SMALLEST_FRAME, u16_at};

/// Opcode of PAUSE (IEEE 802.3 Annex 31A).
const PAUSE: u16 = 0x0001;

/// Reads a PAUSE frame; time 0 resumes.
pub fn parse(bytes: &[u8]) -> Option<MacControlFrame> {
    MacControlFrame::parse(bytes, PAUSE, |times| Effect::Link { pause: u16_at(times, 0) > 0 })
}

/// Parameters of PAUSE, resolved: those of PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseParams(pub PfcParams);

impl Parameters for PauseParams {
    fn traits(&self) -> Traits {
        Traits { pause_scope: PauseScope::Link, ..Traits::of_pfc(&self.0) }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.0)
    }

    fn describe(&self, seen: &Seen<'_>) -> String {
        self.0.describe(seen)
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Pause(Pause::new(self.0.quanta, ports, priorities.len()))
    }
}

#[derive(Clone, Debug)]
pub struct Pause {
    /// Time of a pause in quanta of 512 bit times; 1 to 65535.
    quanta: u16,
    lanes: u8,
    /// By port: a bit for each lane whose account is over.
    over: Vec<u8>,
}

impl Pause {
    fn new(quanta: u16, ports: usize, lanes: usize) -> Self {
        Self { quanta, lanes: lanes as u8, over: vec![0; ports] }
    }

    /// Timer of `port`: time to repeat the pause.
    fn refresh(port: u32) -> u32 {
        2 * port
    }

    /// Timer of `port`: the peer's pause has run out.
    fn expiry(port: u32) -> u32 {
        2 * port + 1
    }

    fn send_pause_state(&self, device: &mut impl Device, port: u32) {
        let pause = self.over[port as usize] != 0;
        let quanta = if pause { self.quanta } else { 0 };
        let frame = MacControlFrame::new(PAUSE, &quanta.to_be_bytes(), Effect::Link { pause });
        device.send_control(port, frame.into());
        if pause {
            let half = pause_time(quanta, device.rate(port)) / 2;
            device.arm(Self::refresh(port), device.now() + half);
        } else {
            device.cancel(Self::refresh(port));
        }
    }

    fn resume(&self, device: &mut impl Device, port: u32) {
        device.cancel(Self::expiry(port));
        (0..self.lanes).for_each(|lane| device.resume(port, lane));
    }
}

impl Machine for Pause {
    fn timers(&self) -> usize {
        2 * self.over.len()
    }
}

impl<D: Device> Scheme<D> for Pause {
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        let over = &mut self.over[port as usize];
        let before = *over;
        match crossing {
            Crossing::Over => *over |= 1 << lane,
            Crossing::Under => *over &= !(1 << lane),
        }
        if (before == 0) != (*over == 0) {
            self.send_pause_state(device, port);
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::MacControl(frame) = frame else { return };
        match u16_at(&frame.parameters, 0) {
            0 => self.resume(device, port),
            quanta => {
                (0..self.lanes).for_each(|lane| device.pause(port, lane));
                device.arm(Self::expiry(port), device.now() + pause_time(quanta, device.rate(port)));
            }
        }
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let port = timer / 2;
        if timer == Self::refresh(port) {
            self.send_pause_state(device, port);
        } else {
            self.resume(device, port);
        }
    }

    /// Both halves clear their state: the port has no neighbour to pause, and no neighbour that pauses it.
    fn link_failed(&mut self, device: &mut D, port: u32, _: u8) {
        self.over[port as usize] = 0;
        device.cancel(Self::refresh(port));
        self.resume(device, port);
    }

    /// Nothing is sent in a lossless lane until the peer can have sent a PAUSE.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        self.over[port as usize] |= u8::from(over) << lane;
        device.hold(port, lane);
        let frame = serialisation(u64::from(SMALLEST_FRAME), device.rate(port));
        device.arm(Self::expiry(port), settled + frame);
    }

    fn link_reset(&mut self, device: &mut D, port: u32) {
        if self.over[port as usize] != 0 {
            self.send_pause_state(device, port);
        }
    }
}
