//! The state machine: a pause of the whole link by the bytes that the whole port stores.
//!
//! Ingress half, per port, two states:
//!
//! ```text
//!            bytes of all lossless lanes ≥ XOFF: PAUSE(quanta), arm refresh
//!   Open ◄──────────────────────────────────────────────────────────────────► Closed
//!            bytes of all lossless lanes ≤ XON: PAUSE(0), cancel refresh
//! ```
//!
//! A port is also Closed while one of its ingress accounts is over its threshold, because the shared
//! memory can be full before the port stores XOFF.
//!
//! Egress half, per port: a PAUSE stops every lane until its time has passed, or until PAUSE(0).

use xoff_kernel::time::{Time, serialisation};
use xoff_schemes::flow_control::pfc::pause_time;
use xoff_schemes::flow_control::{
    ControlFrame, Crossing, Device, Effect, FlowControl, MacControlFrame, Machine, Parameters, PauseScope,
    Scheme, Seen, Traits,
};

/// Opcode of PAUSE (IEEE 802.3 Annex 31A).
const PAUSE: u16 = 0x0001;

/// Parameters, resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct PortPauseParams {
    /// Bytes of all lossless lanes at which a port pauses its neighbour, by port.
    pub xoff: Vec<u64>,
    /// Bytes at which it resumes the neighbour, by port.
    pub xon: Vec<u64>,
    /// Time of a pause in quanta of 512 bit times; 1 to 65535.
    pub quanta: u16,
    /// Whether a lane is lossless.
    pub lossless: Vec<bool>,
}

impl Parameters for PortPauseParams {
    fn traits(&self) -> Traits {
        Traits { pause_scope: PauseScope::Link, reports_storage: true, ..Traits::NONE }
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        format!("({} quanta)", self.quanta)
    }

    fn start(&self, ports: usize, _: &[u8]) -> FlowControl {
        let ports = vec![Port::default(); ports];
        FlowControl::Own(Box::new(PortPause { params: self.clone(), ports }))
    }
}

/// The scheme on every port of a run.
#[derive(Debug)]
pub struct PortPause {
    params: PortPauseParams,
    ports: Vec<Port>,
}

/// The ingress half of a port.
#[derive(Clone, Debug, Default)]
struct Port {
    /// A bit for each lane whose account is over.
    over: u8,
    /// Whether the neighbour is paused.
    closed: bool,
}

impl PortPause {
    /// Timer of `port` that repeats a pause.
    fn refresh(port: u32) -> u32 {
        2 * port
    }

    /// Timer of `port` that ends the neighbour's pause.
    fn expiry(port: u32) -> u32 {
        2 * port + 1
    }

    /// Sends a frame if the port must be closed or opened now.
    fn settle(&mut self, device: &mut (impl Device + ?Sized), port: u32) {
        let at = port as usize;
        let lanes = (0u8..).zip(&self.params.lossless).filter(|lane| *lane.1);
        let stored: u64 = lanes.map(|(lane, _)| device.stored(port, lane)).sum();
        let Port { over, closed } = self.ports[at];
        let full = if closed { stored > self.params.xon[at] } else { stored >= self.params.xoff[at] };
        if (full || over != 0) != closed {
            self.ports[at].closed = !closed;
            self.send_pause_state(device, port);
        }
    }

    /// Sends the present state, and repeats a pause after half of its time: a frame can be lost.
    fn send_pause_state(&self, device: &mut (impl Device + ?Sized), port: u32) {
        let pause = self.ports[port as usize].closed;
        let quanta = if pause { self.params.quanta } else { 0 };
        let frame = MacControlFrame::new(PAUSE, &quanta.to_be_bytes(), Effect::Link { pause });
        device.send_control(port, frame.into());
        if pause {
            let half = pause_time(quanta, device.rate(port)) / 2;
            device.arm(Self::refresh(port), device.now() + half);
        } else {
            device.cancel(Self::refresh(port));
        }
    }

    fn resume(&self, device: &mut (impl Device + ?Sized), port: u32) {
        device.cancel(Self::expiry(port));
        (0..self.params.lossless.len() as u8).for_each(|lane| device.resume(port, lane));
    }
}

impl Machine for PortPause {
    fn timers(&self) -> usize {
        2 * self.ports.len()
    }
}

impl<D: Device + ?Sized> Scheme<D> for PortPause {
    fn stored(&mut self, device: &mut D, ingress: u32, _: u8, _: u32) {
        self.settle(device, ingress);
    }

    fn freed(&mut self, device: &mut D, ingress: u32, _: u32, _: u8, _: u32) {
        self.settle(device, ingress);
    }

    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        let over = &mut self.ports[port as usize].over;
        match crossing {
            Crossing::Over => *over |= 1 << lane,
            Crossing::Under => *over &= !(1 << lane),
        }
        self.settle(device, port);
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::MacControl(frame) = frame else { return };
        match u16::from_be_bytes([frame.parameters[0], frame.parameters[1]]) {
            0 => self.resume(device, port),
            quanta => {
                (0..self.params.lossless.len() as u8).for_each(|lane| device.pause(port, lane));
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

    /// Resets both halves.
    fn link_failed(&mut self, device: &mut D, port: u32, _: u8) {
        self.ports[port as usize] = Port::default();
        device.cancel(Self::refresh(port));
        self.resume(device, port);
    }

    /// Sends nothing until a PAUSE of the peer could have arrived.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        self.ports[port as usize].over |= u8::from(over) << lane;
        device.hold(port, lane);
        device.arm(Self::expiry(port), settled + serialisation(64, device.rate(port)));
    }

    fn link_reset(&mut self, device: &mut D, port: u32) {
        self.settle(device, port);
    }
}
