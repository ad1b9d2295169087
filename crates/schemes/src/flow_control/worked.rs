//! A pause of the whole link, in the manner of IEEE 802.3 Annex 31B: the scheme that
//! `docs/howto/add-a-scheme.md` is worked through with. No scenario can ask for it.
//!
//! Ingress half, per port, two states:
//!
//! ```text
//!            first lane goes over XOFF: PAUSE of all, arm refresh
//!   Open ◄─────────────────────────────────────────────────────────► Closed
//!            last lane is back at XON: PAUSE(0) of all, cancel refresh
//! ```
//!
//! Egress half, per port: a frame stops every lane until it runs out, or until a
//! frame with no time comes.

use super::notes::Notes;
use super::pfc::pause_time;
use super::{ControlFrame, Crossing, Device};
use proptest::prelude::*;
use xoff_wire::pfc::PfcFrame;

/// The scheme on every port of a run.
struct LinkPause {
    /// Pause quanta in a frame, of 512 bit times each; 1 to 65535.
    quanta: u16,
    /// Priority of each lane.
    priorities: Vec<u8>,
    /// By port: a bit for each lane whose account is over.
    over: Vec<u8>,
}

impl LinkPause {
    fn new(quanta: u16, ports: usize, priorities: &[u8]) -> Self {
        Self { quanta, priorities: priorities.to_vec(), over: vec![0; ports] }
    }

    /// Two timers for each port: the repeat of what it says, and the end of what it was told.
    fn repeat(port: u32) -> u32 {
        2 * port
    }

    fn expiry(port: u32) -> u32 {
        2 * port + 1
    }

    /// Ingress half: an account has crossed its threshold.
    fn crossed(&mut self, device: &mut impl Device, port: u32, lane: u8, crossing: Crossing) {
        let over = &mut self.over[port as usize];
        let was_open = *over == 0;
        match crossing {
            Crossing::Over => *over |= 1 << lane,
            Crossing::Under => *over &= !(1 << lane),
        }
        let is_open = *over == 0;
        if was_open != is_open {
            self.say(device, port);
        }
    }

    /// Tells the neighbour what holds now.
    fn say(&self, device: &mut impl Device, port: u32) {
        let closed = self.over[port as usize] != 0;
        let mut frame = PfcFrame::default();
        for &priority in &self.priorities {
            frame.take_up(&PfcFrame::single(priority, if closed { self.quanta } else { 0 }));
        }
        device.send_control(port, ControlFrame::Pfc(frame));
        if closed {
            let half = pause_time(self.quanta, device.rate(port)) / 2;
            device.arm(Self::repeat(port), device.now() + half);
        } else {
            device.cancel(Self::repeat(port));
        }
    }

    /// Egress half: a frame has taken effect.
    fn received(&mut self, device: &mut impl Device, port: u32, frame: &PfcFrame) {
        match frame.entries().map(|(_, quanta)| quanta).max() {
            Some(quanta) if quanta > 0 => {
                self.stop(device, port, true);
                device.arm(Self::expiry(port), device.now() + pause_time(quanta, device.rate(port)));
            }
            _ => {
                device.cancel(Self::expiry(port));
                self.stop(device, port, false);
            }
        }
    }

    fn stop(&self, device: &mut impl Device, port: u32, stop: bool) {
        for lane in 0..self.priorities.len() as u8 {
            if stop { device.pause(port, lane) } else { device.resume(port, lane) }
        }
    }

    fn timer(&mut self, device: &mut impl Device, timer: u32) {
        let port = timer / 2;
        if timer == Self::repeat(port) {
            self.say(device, port);
        } else {
            self.stop(device, port, false);
        }
    }
}

const LANES: [u8; 2] = [3, 5];

#[test]
fn the_first_lane_closes_the_link_and_the_last_one_opens_it() {
    let (mut scheme, mut device) = (LinkPause::new(1000, 4, &LANES), Notes::default());
    for (lane, crossing) in [(0, Crossing::Over), (1, Crossing::Over), (0, Crossing::Under)] {
        scheme.crossed(&mut device, 2, lane, crossing);
    }
    // 1,000 quanta last 5.12 us at 100 Gbit/s; it speaks again after half of that.
    assert_eq!(device.log, ["send 2 [(3, 1000), (5, 1000)]", "arm 4 2560000"]);
    scheme.crossed(&mut device, 2, 1, Crossing::Under);
    assert_eq!(device.log[2..], ["send 2 [(3, 0), (5, 0)]", "cancel 4"]);
}

#[test]
fn a_frame_stops_every_lane_until_it_runs_out() {
    let (mut scheme, mut device) = (LinkPause::new(1000, 4, &LANES), Notes::default());
    // It names one priority, and means the link.
    scheme.received(&mut device, 1, &PfcFrame::single(5, 1000));
    assert_eq!(device.log, ["pause 1/0", "pause 1/1", "arm 3 5120000"]);
    scheme.timer(&mut device, LinkPause::expiry(1));
    assert_eq!(device.log[3..], ["resume 1/0", "resume 1/1"]);
}

proptest! {
    /// Whatever the order in which accounts cross: what was said last is that the link is
    /// closed if one of its accounts is over, and open if none is.
    #[test]
    fn what_is_said_is_what_holds(steps in prop::collection::vec((0u32..3, 0u8..2), 1..60)) {
        let (mut scheme, mut device) = (LinkPause::new(9, 3, &LANES), Notes::default());
        let (mut over, mut said) = ([[false; 2]; 3], [false; 3]);
        for (port, lane) in steps {
            // The device tells transitions alone.
            let account = &mut over[port as usize][usize::from(lane)];
            *account = !*account;
            let crossing = if *account { Crossing::Over } else { Crossing::Under };
            scheme.crossed(&mut device, port, lane, crossing);
            for line in device.log.drain(..).filter(|line| line.starts_with("send")) {
                said[port as usize] = line.contains("9)");
            }
            for (said, accounts) in said.iter().zip(&over) {
                prop_assert_eq!(*said, accounts.contains(&true));
            }
        }
    }
}
