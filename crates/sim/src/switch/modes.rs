//! Queues that discard arriving packets, or that send without the peer's permission: rare states that a flow
//! control sets ([`Mode`]). The wire of such a port marks the special case.

use crate::switch::{failures, port::Wire};
use crate::{core::Core, outcome::DropReason};
use std::collections::BTreeMap;
use xoff_outcome::report::Cause;
use xoff_schemes::flow_control::{FlowControl, Mode};

/// The queues of a run that do not simply obey.
#[derive(Default)]
pub struct Modes {
    /// By port and lane.
    lanes: BTreeMap<(u32, u8), Mode>,
    /// The wires of these ports, and of tapped ones.
    wires: BTreeMap<u32, Wire>,
    /// Queues that are to be emptied, once the flow control has returned.
    to_empty: Vec<(u32, u8, &'static Cause)>,
}

impl Core<'_> {
    pub fn mode(&self, port: u32, lane: u8) -> Mode {
        self.repairs.modes.lanes.get(&(port, lane)).copied().unwrap_or(Mode::Obey)
    }

    /// The wire of `port`, independent of its queues.
    pub fn wire_of(&self, port: u32) -> Wire {
        match self.egress.ports[port as usize].wire {
            Wire::Special => self.repairs.modes.wires[&port],
            wire => wire,
        }
    }

    #[cold]
    pub fn change_mode(&mut self, port: u32, lane: u8, mode: Mode) {
        debug_assert!(!self.egress.leaves.used(), "no scheme that queues by flow asks for it");
        let modes = &mut self.repairs.modes;
        match mode {
            Mode::Obey => drop(modes.lanes.remove(&(port, lane))),
            Mode::Discard(_) | Mode::Forward => drop(modes.lanes.insert((port, lane), mode)),
        }
        if let Mode::Discard(cause) = mode {
            modes.to_empty.push((port, lane, cause));
        }
        if modes.lanes.range((port, 0)..=(port, u8::MAX)).next().is_some() {
            self.make_odd(port);
        } else if !self.links.has(port)
            && !self.taps.see(port, self.egress.ports[port as usize].peer)
            && let Some(under) = self.repairs.modes.wires.remove(&port)
        {
            self.egress.ports[port as usize].wire = under;
        }
    }

    /// From now on there is more to look up where `port` sends.
    pub fn make_odd(&mut self, port: u32) {
        let wire = &mut self.egress.ports[port as usize].wire;
        if *wire != Wire::Special {
            self.repairs.modes.wires.insert(port, std::mem::replace(wire, Wire::Special));
        }
    }

    /// Why a packet cannot wait in a queue of `port`, whose wire is not simply a link; `None` if it can.
    #[cold]
    pub fn keeps_out(&self, port: u32, lane: u8) -> Option<DropReason> {
        if self.is_down(port) {
            return Some(DropReason::LinkDown);
        }
        match self.mode(port, lane) {
            Mode::Discard(cause) => Some(DropReason::Scheme(cause)),
            Mode::Obey | Mode::Forward => None,
        }
    }
}

/// Empties the queues that have begun to discard.
#[inline]
pub fn settle(core: &mut Core, scheme: &mut FlowControl) {
    while let Some((port, lane, cause)) = core.repairs.modes.to_empty.pop() {
        failures::empty(core, scheme, port, 1 + usize::from(lane), DropReason::Scheme(cause));
    }
}
