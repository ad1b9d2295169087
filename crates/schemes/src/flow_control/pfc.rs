//! Priority flow control (IEEE 802.1Qbb, 802.1Q-2018 clause 36).
//!
//! Ingress half, per (port, priority), two states:
//!
//! ```text
//!            account reaches XOFF: send PAUSE(quanta), arm refresh
//!   Open ────────────────────────────────────────────────────────► Closed
//!    ▲                                                            │  ▲  │ refresh timer:
//!    └────────────────────────────────────────────────────────────┘  └──┘ send PAUSE(quanta),
//!            account at XON: send PAUSE(0), cancel refresh                arm refresh
//! ```
//!
//! The account's crossing of XOFF and XON is the device's (its buffer
//! accounting holds the thresholds); the state here is whether the refresh
//! timer is armed. A pause is refreshed after half of its time: the frame may
//! then wait for a packet on the wire and still come before the pause runs out
//! (the plan refuses quanta too small for that).
//!
//! Egress half, per (port, priority):
//!
//! ```text
//!            PAUSE(q > 0): pause the queue, arm expiry for q quanta
//!   Going ◄──────────────────────────────────────────────────────► Paused
//!            PAUSE(0), or expiry: resume the queue
//! ```

use super::{ControlFrame, Crossing, Device, Headroom, LinkFacts};
use xoff_kernel::time::{SECOND, Time, serialisation};
use xoff_wire::pfc::{PfcFrame, QUANTUM_BITS};

/// Parameters of PFC, resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcParams {
    /// Pause quanta in a pause frame, of 512 bit times each; 1 to 65535.
    pub quanta: u16,
    /// From the arrival of a pause frame's last bit until it takes effect.
    pub response_time: Time,
}

/// The bytes that can still arrive after an account has crossed XOFF.
///
/// The pause frame may find a largest packet just begun on its own wire (never
/// another pause frame in line: one that waits speaks for all priorities), then
/// takes its own time and the cable's; after the response time the peer may
/// just have begun a largest packet, and the cable is full towards us. All of
/// it at line rate:
///
/// `2·delay·rate + response·rate + largest + 64 + largest`
///
/// (the terms of 802.1Q-2018 Annex N, with MAC and PHY delays counted in the
/// link's delay).
pub fn headroom(link: &LinkFacts, response_time: Time) -> Headroom {
    let bytes =
        |time: Time| (u128::from(time) * u128::from(link.rate)).div_ceil(8 * u128::from(SECOND)) as u64;
    let terms = vec![
        ("cable, both ways", bytes(2 * link.delay)),
        ("peer's response time", bytes(response_time)),
        ("our packet just begun", u64::from(link.largest)),
        ("pause frame", u64::from(PfcFrame::LENGTH)),
        ("peer's packet just begun", u64::from(link.largest)),
    ];
    let total = terms.iter().map(|t| t.1).sum();
    Headroom { terms, total }
}

/// The fewest quanta with which a refresh sent after half of the pause, behind
/// one packet of `largest` bytes, still arrives in time.
pub fn least_quanta(largest: u32) -> u64 {
    (2 * u64::from(largest + PfcFrame::LENGTH)).div_ceil(QUANTUM_BITS / 8)
}

/// PFC on every port of a run.
#[derive(Clone, Debug)]
pub struct Pfc {
    params: PfcParams,
    /// Priority of each lane.
    priorities: Vec<u8>,
    ports: usize,
}

enum Role {
    /// Ingress: time to repeat the pause.
    Refresh,
    /// Egress: the pause has run out.
    Expiry,
}

impl Pfc {
    pub(super) fn new(params: PfcParams, ports: usize, priorities: &[u8]) -> Self {
        Self { params, priorities: priorities.to_vec(), ports }
    }

    pub(super) fn timers(&self) -> usize {
        self.ports * self.priorities.len() * 2
    }

    fn timer_of(&self, port: u32, lane: u8, role: Role) -> u32 {
        (port * self.priorities.len() as u32 + u32::from(lane)) * 2 + role as u32
    }

    fn pause_upstream(&self, device: &mut impl Device, port: u32, lane: u8) {
        let frame = PfcFrame::single(self.priorities[usize::from(lane)], self.params.quanta);
        device.send_control(port, ControlFrame::Pfc(frame));
        let half = pause_time(self.params.quanta, device.rate(port)) / 2;
        device.arm(self.timer_of(port, lane, Role::Refresh), device.now() + half);
    }

    pub(super) fn crossed(&mut self, device: &mut impl Device, port: u32, lane: u8, crossing: Crossing) {
        match crossing {
            Crossing::Over => self.pause_upstream(device, port, lane),
            Crossing::Under => {
                let frame = PfcFrame::single(self.priorities[usize::from(lane)], 0);
                device.send_control(port, ControlFrame::Pfc(frame));
                device.cancel(self.timer_of(port, lane, Role::Refresh));
            }
        }
    }

    pub(super) fn received(&mut self, device: &mut impl Device, port: u32, frame: &PfcFrame) {
        for (priority, quanta) in frame.entries() {
            // A priority that this device does not use has no queue to pause.
            let Some(lane) = self.priorities.iter().position(|&p| p == priority) else { continue };
            let lane = lane as u8;
            let expiry = self.timer_of(port, lane, Role::Expiry);
            if quanta == 0 {
                device.cancel(expiry);
                device.resume(port, lane);
            } else {
                let end = device.now() + pause_time(quanta, device.rate(port));
                device.arm(expiry, end);
                device.pause(port, lane);
            }
        }
    }

    /// Both halves forget: nobody is there to pause, and nobody who pauses.
    pub(super) fn link_failed(&mut self, device: &mut impl Device, port: u32, lane: u8) {
        device.cancel(self.timer_of(port, lane, Role::Refresh));
        device.cancel(self.timer_of(port, lane, Role::Expiry));
        device.resume(port, lane);
    }

    /// Begins afresh. An account that is over says so again; and until such a word
    /// of the peer has come, nothing is sent.
    pub(super) fn link_recovered(
        &mut self,
        device: &mut impl Device,
        port: u32,
        lane: u8,
        over: bool,
        settled: Time,
    ) {
        if over {
            self.pause_upstream(device, port, lane);
        }
        let frame = serialisation(u64::from(PfcFrame::LENGTH), device.rate(port));
        device.arm(self.timer_of(port, lane, Role::Expiry), settled + frame);
        device.hold(port, lane);
    }

    pub(super) fn timer(&mut self, device: &mut impl Device, timer: u32) {
        let (place, role) = (timer / 2, timer % 2);
        let lanes = self.priorities.len() as u32;
        let (port, lane) = (place / lanes, (place % lanes) as u8);
        if role == Role::Refresh as u32 {
            self.pause_upstream(device, port, lane);
        } else {
            device.resume(port, lane);
        }
    }
}

/// Beyond the end of any run; the time of its end still fits the clock.
const LONGEST_PAUSE: Time = Time::MAX / 4;

/// How long `quanta` last on a port of this rate (bits per second), in picoseconds;
/// for ever, as good as, where a link takes seconds for a bit.
pub fn pause_time(quanta: u16, rate: u64) -> Time {
    let ps = (u128::from(quanta) * u128::from(QUANTUM_BITS) * u128::from(SECOND)).div_ceil(u128::from(rate));
    Time::try_from(ps).map_or(LONGEST_PAUSE, |ps| ps.min(LONGEST_PAUSE))
}

#[cfg(test)]
mod tests {
    use super::super::notes::Notes;
    use super::*;

    fn pfc() -> Pfc {
        Pfc::new(PfcParams { quanta: 1000, response_time: 0 }, 4, &[3, 5])
    }

    #[test]
    fn an_ingress_pauses_refreshes_and_resumes_its_upstream() {
        let (mut pfc, mut device) = (pfc(), Notes::default());
        // 1000 quanta of 512 bits at 100 Gbit/s: 5.12 us, refreshed after 2.56 us.
        pfc.crossed(&mut device, 2, 1, Crossing::Over);
        device.now = 2_560_000;
        pfc.timer(&mut device, 10);
        pfc.crossed(&mut device, 2, 1, Crossing::Under);
        let expected = [
            "send 2 [(5, 1000)]",
            "arm 10 2560000",
            "send 2 [(5, 1000)]",
            "arm 10 5120000",
            "send 2 [(5, 0)]",
            "cancel 10",
        ];
        assert_eq!(device.log, expected);
    }

    #[test]
    fn an_egress_obeys_until_resumed_or_the_pause_runs_out() {
        let (mut pfc, mut device) = (pfc(), Notes::default());
        pfc.received(&mut device, 1, &PfcFrame::single(3, 10));
        pfc.received(&mut device, 1, &PfcFrame::single(3, 0));
        pfc.timer(&mut device, 5);
        pfc.received(&mut device, 1, &PfcFrame::single(7, 10)); // not in use here
        let expected = ["arm 5 51200", "pause 1/0", "cancel 5", "resume 1/0", "resume 1/0"];
        assert_eq!(device.log, expected);
    }

    #[test]
    fn a_failed_link_is_forgotten_and_a_recovered_one_begins_afresh() {
        let (mut pfc, mut device) = (pfc(), Notes::default());
        pfc.link_failed(&mut device, 1, 0);
        pfc.link_recovered(&mut device, 1, 0, false, 7);
        pfc.link_recovered(&mut device, 2, 1, true, 9);
        let expected = [
            "cancel 4",
            "cancel 5",
            "resume 1/0",
            "arm 5 5127",
            "hold 1/0",
            "send 2 [(5, 1000)]",
            "arm 10 2560000",
            "arm 11 5129",
            "hold 2/1",
        ];
        assert_eq!(device.log, expected);
    }

    #[test]
    fn headroom_is_the_sum_of_its_terms() {
        let link = LinkFacts { rate: 100_000_000_000, delay: 1_000_000, largest: 1062 };
        let room = headroom(&link, 500_000);
        assert_eq!(room.total, 25_000 + 6_250 + 1062 + 64 + 1062);
    }
}
