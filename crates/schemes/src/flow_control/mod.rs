//! Flow controls, one folder or file each, and the one seam between them and a
//! device.
//!
//! A scheme has an ingress half (it watches what is admitted to and released
//! from an ingress account) and an egress half (it reacts to frames by pausing
//! queues); either may be absent. It acts through [`Device`], a narrow view of
//! its own device. Ports are named by the device's own numbers; a lane is the
//! dense index of a priority in use.

pub mod pfc;

use pfc::{Pfc, PfcParams};
use xoff_kernel::time::Time;
use xoff_wire::pfc::PfcFrame;

/// The flow control of a run, with its resolved parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowControlParams {
    /// None: what does not fit is dropped.
    None,
    /// IEEE 802.1Qbb.
    Pfc(PfcParams),
}

/// The facts of a link that headroom depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkFacts {
    /// Bits per second.
    pub rate: u64,
    /// One-way delay.
    pub delay: Time,
    /// Largest packet that either side may have begun, in bytes.
    pub largest: u32,
}

/// Headroom, with the terms it is the sum of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Name and bytes of each term; empty if the scenario set the sum.
    pub terms: Vec<(&'static str, u64)>,
    /// The sum in bytes.
    pub total: u64,
}

/// A control frame between neighbours, of any scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// 802.1Qbb.
    Pfc(PfcFrame),
}

impl ControlFrame {
    /// Bytes on the wire.
    pub fn length(&self) -> u32 {
        match self {
            Self::Pfc(_) => PfcFrame::LENGTH,
        }
    }

    /// Takes up what a `later` frame says, if one frame can say both: a PFC frame
    /// speaks of every priority, and the newest word on each is what counts. The
    /// device asks while this frame still waits for its wire, so that no frame
    /// waits behind another of its kind.
    pub fn merge(&mut self, later: &Self) -> bool {
        match (self, later) {
            (Self::Pfc(waiting), Self::Pfc(later)) => {
                for (priority, quanta) in later.entries() {
                    waiting.enabled |= 1 << priority;
                    waiting.quanta[usize::from(priority)] = quanta;
                }
                true
            }
        }
    }

    /// Whether it stops (rather than restarts) the one who gets it.
    pub fn pauses(&self) -> bool {
        match self {
            Self::Pfc(frame) => frame.entries().any(|(_, quanta)| quanta > 0),
        }
    }
}

/// What a scheme may see of and do to its own device.
pub trait Device {
    /// The device's clock.
    fn now(&self) -> Time;
    /// Rate of a port's link, in bits per second.
    fn rate(&self, port: u32) -> u64;
    /// Stops every egress queue of `lane` on `port`, a host's own queue pairs
    /// included. The packet on the wire finishes. Stopping twice changes nothing.
    fn pause(&mut self, port: u32, lane: u8);
    /// Lets the lane's queues on `port` go again.
    fn resume(&mut self, port: u32, lane: u8);
    /// Sends a frame to the neighbour: ahead of every queue, behind the packet on
    /// the wire; or as part of the last frame that still waits ([`ControlFrame::merge`]).
    fn send_control(&mut self, port: u32, frame: ControlFrame);
    /// Arms timer `timer` for `at` (not before now), in place of what it was armed for.
    fn arm(&mut self, timer: u32, at: Time);
    /// Disarms timer `timer`.
    fn cancel(&mut self, timer: u32);
}

/// A change of an ingress account, told to the ingress half. The account counts
/// as over from the packet that brings it to its threshold (XOFF) until it has
/// drained to the resume level (XON) with its headroom empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// XOFF.
    Over,
    /// XON.
    Under,
}

/// The flow control of all devices of a run; each port's state stands alone.
#[derive(Clone, Debug)]
pub enum FlowControl {
    /// Nothing is ever paused.
    None,
    /// 802.1Qbb.
    Pfc(Pfc),
}

impl FlowControl {
    /// The state machines of `ports` ports with the given lanes' priorities.
    pub fn new(params: &FlowControlParams, ports: usize, priorities: &[u8]) -> Self {
        match params {
            FlowControlParams::None => Self::None,
            FlowControlParams::Pfc(params) => Self::Pfc(Pfc::new(*params, ports, priorities)),
        }
    }

    /// Number of timers that it arms, counted from 0.
    pub fn timers(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Pfc(pfc) => pfc.timers(),
        }
    }

    /// Ingress half: the account of (`port`, `lane`) crossed a threshold, by an
    /// admission or a release.
    pub fn crossed(&mut self, device: &mut impl Device, port: u32, lane: u8, crossing: Crossing) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.crossed(device, port, lane, crossing),
        }
    }

    /// Both halves: `frame` arrived at `port` and has taken effect.
    pub fn received(&mut self, device: &mut impl Device, port: u32, frame: &ControlFrame) {
        match (self, frame) {
            (Self::Pfc(pfc), ControlFrame::Pfc(frame)) => pfc.received(device, port, frame),
            (Self::None, _) => {}
        }
    }

    /// Both halves: the link of `port` has failed. Pauses of its lanes end (the
    /// device sends nothing there all the same), and no frame is sent to the peer
    /// until it recovers.
    pub fn link_failed(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.link_failed(device, port, lane),
        }
    }

    /// Both halves: the link of `port` is up again, and the peer has forgotten
    /// everything. `over` tells whether the account of (`port`, `lane`), a
    /// lossless one, is over its threshold now; at `settled`, and its own
    /// serialisation later, a frame that the peer sends at once has taken effect.
    pub fn link_recovered(
        &mut self,
        device: &mut impl Device,
        port: u32,
        lane: u8,
        over: bool,
        settled: Time,
    ) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.link_recovered(device, port, lane, over, settled),
        }
    }

    /// Both halves: `timer` went off.
    pub fn timer(&mut self, device: &mut impl Device, timer: u32) {
        match self {
            Self::None => {}
            Self::Pfc(pfc) => pfc.timer(device, timer),
        }
    }
}
