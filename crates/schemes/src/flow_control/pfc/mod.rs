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
//! The account's crossing of XOFF and XON is the device's (its buffer accounting holds the thresholds); the
//! state here is whether the refresh timer is armed. A pause is refreshed after half of its time, so the
//! frame may wait for a packet on the wire (the plan refuses quanta too small for that).
//!
//! Egress half, per (port, priority):
//!
//! ```text
//!            PAUSE(q > 0): pause the queue, arm expiry for q quanta
//!   Going ◄──────────────────────────────────────────────────────► Paused
//!            PAUSE(0), or expiry: resume the queue
//! ```
//!
//! *Hosts that relay* can be switches to PFC, with an account for each ingress ([`Relay::Accounts`]), or pass
//! pauses on ([`Relay::Blind`]): then the ingress half of a host's port is closed while its account is over
//! *or* any other port of the host is paused, so a pause goes upstream at once, even if no packet of the host
//! has to wait for it. The paper (Cao et al., 2026, section II-C, Figure 5) has nodes that only forward the
//! frames; it does not specify their accounts (`portfc.pfc-at-nodes`). Here such a node also obeys, and keeps
//! its accounts, so no packet is lost. It passes on the state, not each frame: links may differ in rate.
//!
//! *Relays on long links* ([`Relay::Mirror`]) do the same, but pass the end of a pause on a little later.

pub mod keys;
pub mod size;

use super::registry::FlowControl;
use super::size::bytes_in;
use super::{ControlFrame, Crossing, Device, Headroom, LinkFacts, Machine, Parameters, Scheme, Seen, Traits};
use xoff_kernel::time::{SECOND, Time, serialisation};
use xoff_net::units::Span;
use xoff_wire::pfc::{PfcFrame, QUANTUM_BITS};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PfcParams {
    /// Pause quanta in a pause frame, of 512 bit times each; 1 to 65535.
    pub quanta: u16,
    /// From the arrival of a pause frame's last bit until it takes effect.
    pub response_time: Time,
    pub relay: Relay,
}

impl Parameters for PfcParams {
    fn traits(&self) -> Traits {
        Traits::of_pfc(self)
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(self)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let relay = if self.relay == Relay::Blind { ", hosts forward pauses" } else { "" };
        format!("({} quanta, response time {}{relay})", self.quanta, Span(self.response_time))
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Pfc(Pfc::new(*self, ports, priorities))
    }
}

/// When hosts that relay pause their neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Relay {
    /// As switches do, by the ingress account of each port.
    #[default]
    Accounts,
    /// Besides, while the host itself is paused on another port.
    Blind,
    /// Hosts by their accounts; and relays on long links besides while they are
    /// paused on their other port, and `hold` longer (in picoseconds).
    Mirror {
        /// How much later than it comes the end of a pause is passed on.
        hold: Time,
    },
}

/// The bytes that can still arrive after an account has crossed XOFF.
///
/// The pause frame may find a largest packet just begun on its own wire (never another pause frame in line:
/// one that waits speaks for all priorities), then takes its own time and the cable's; after the response
/// time the peer may just have begun a largest packet, and the cable is full towards us. All of it at line
/// rate:
///
/// `2·delay·rate + response·rate + largest + 64 + largest`
///
/// (the terms of 802.1Q-2018 Annex N, with MAC and PHY delays counted in the link's delay).
pub fn headroom(link: &LinkFacts, response_time: Time) -> Headroom {
    link.room(vec![
        ("cable, both ways", bytes_in(link.rate, 2 * link.delay)),
        ("peer's response time", bytes_in(link.rate, response_time)),
        ("our packet just begun", u64::from(link.largest)),
        ("pause frame", u64::from(PfcFrame::LENGTH)),
        ("peer's packet just begun", u64::from(link.largest)),
    ])
}

/// The fewest quanta with which a refresh after half of the pause and a packet of `largest` bytes is in time.
pub fn least_quanta(largest: u32) -> u64 {
    (2 * u64::from(largest + PfcFrame::LENGTH)).div_ceil(QUANTUM_BITS / 8)
}

#[derive(Clone, Debug)]
pub struct Pfc {
    params: PfcParams,
    priorities: Vec<u8>,
    ports: usize,
    /// By port and lane, where pauses are passed on; else empty.
    marks: Vec<u8>,
}

/// A mark: the account is over.
const OVER: u8 = 1;
/// A mark: a frame of the neighbour has stopped the queue.
const PAUSED: u8 = 2;
/// A mark: the neighbour is paused.
const CLOSED: u8 = 4;

enum Role {
    /// Ingress: time to repeat the pause.
    Refresh,
    /// Egress: the pause has run out.
    Expiry,
    /// The end of a pause is passed on now. There only if it is held back.
    Hold,
}

impl Pfc {
    pub(super) fn new(params: PfcParams, ports: usize, priorities: &[u8]) -> Self {
        let marked = if params.relay == Relay::Accounts { 0 } else { ports * priorities.len() };
        Self { params, priorities: priorities.to_vec(), ports, marks: vec![0; marked] }
    }

    /// Timers of a port and lane.
    fn roles(&self) -> u32 {
        if let Relay::Mirror { .. } = self.params.relay { 3 } else { 2 }
    }

    fn timer_of(&self, port: u32, lane: u8, role: Role) -> u32 {
        self.at(port, lane) as u32 * self.roles() + role as u32
    }

    pub(super) fn pause_upstream(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        let frame = PfcFrame::single(self.priority(lane), self.params.quanta);
        device.send_control(port, ControlFrame::Pfc(frame));
        self.closes(device, port, lane);
    }

    /// The ingress half has gone to Closed, or stays there: the pause is to be repeated.
    pub(super) fn closes(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        let half = pause_time(self.params.quanta, device.rate(port)) / 2;
        device.arm(self.timer_of(port, lane, Role::Refresh), device.now() + half);
    }

    fn resume_upstream(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        device.send_control(port, ControlFrame::Pfc(PfcFrame::single(self.priority(lane), 0)));
        self.opens(device, port, lane);
    }

    pub(super) fn quanta(&self) -> u16 {
        self.params.quanta
    }

    /// The egress half goes to Going, and the caller resumes the queue.
    pub(super) fn forgets_pause(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        device.cancel(self.timer_of(port, lane, Role::Expiry));
    }

    /// The ingress half has gone to Open.
    pub(super) fn opens(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        device.cancel(self.timer_of(port, lane, Role::Refresh));
    }

    /// The port and lane whose pause is repeated when `timer` goes off, if it is for that.
    pub(super) fn refreshes(&self, timer: u32) -> Option<(u32, u8)> {
        let (port, lane, role) = self.place_of(timer);
        (role == Role::Refresh as u32).then_some((port, lane))
    }

    /// The port and lane whose pause runs out when `timer` goes off, if it is for that.
    pub(super) fn expires(&self, timer: u32) -> Option<(u32, u8)> {
        let (port, lane, role) = self.place_of(timer);
        (role == Role::Expiry as u32).then_some((port, lane))
    }

    fn place_of(&self, timer: u32) -> (u32, u8, u32) {
        let (port, lane) = self.port_and_lane((timer / self.roles()) as usize);
        (port, lane, timer % self.roles())
    }

    /// The place of a port and lane in lists by port and lane.
    pub(super) fn at(&self, port: u32, lane: u8) -> usize {
        port as usize * self.priorities.len() + usize::from(lane)
    }

    pub(super) fn port_and_lane(&self, at: usize) -> (u32, u8) {
        let lanes = self.priorities.len();
        ((at / lanes) as u32, (at % lanes) as u8)
    }

    pub(super) fn priority(&self, lane: u8) -> u8 {
        self.priorities[usize::from(lane)]
    }

    /// The lane of a priority; a priority that the device does not use has no queue to pause.
    pub(super) fn lane(&self, priority: u8) -> Option<u8> {
        self.priorities.iter().position(|&p| p == priority).map(|lane| lane as u8)
    }

    fn is(&self, port: u32, lane: u8, mark: u8) -> bool {
        self.marks[self.at(port, lane)] & mark != 0
    }

    fn mark(&mut self, port: u32, lane: u8, mark: u8, set: bool) {
        let at = self.at(port, lane);
        self.marks[at] = self.marks[at] & !mark | if set { mark } else { 0 };
    }

    /// Sends the neighbour at `port` the present state, if it has changed.
    fn settle(&mut self, device: &mut (impl Device + ?Sized), port: u32, lane: u8) {
        let others = (0..).map_while(|i| device.relay_port(port, i)).filter(|&p| p != port);
        let closed = self.is(port, lane, OVER) || { others }.any(|p| self.is(p, lane, PAUSED));
        if closed == self.is(port, lane, CLOSED) {
            return;
        }
        self.mark(port, lane, CLOSED, closed);
        match closed {
            true => self.pause_upstream(device, port, lane),
            false => self.resume_upstream(device, port, lane),
        }
    }

    /// A frame has stopped the queue of `port`, or resumed it, or the pause has expired: a device that passes
    /// pauses on does so, now or later.
    fn on_pause_change(&mut self, device: &mut (impl Device + ?Sized), port: u32, lane: u8, paused: bool) {
        let Relay::Mirror { hold } = self.params.relay else {
            return self.pass_on(device, port, lane, paused);
        };
        if device.relay_port(port, 0).is_none() {
            return;
        }
        let held = self.timer_of(port, lane, Role::Hold);
        if paused {
            device.cancel(held);
            self.pass_on(device, port, lane, true);
        } else if self.is(port, lane, PAUSED) {
            device.arm(held, device.now() + hold);
        }
    }

    /// A frame has stopped (or resumed) the queue of `port`: it is passed on.
    fn pass_on(&mut self, device: &mut (impl Device + ?Sized), port: u32, lane: u8, paused: bool) {
        if self.marks.is_empty() || self.is(port, lane, PAUSED) == paused {
            return;
        }
        self.mark(port, lane, PAUSED, paused);
        for i in 0.. {
            let Some(other) = device.relay_port(port, i) else { break };
            if other != port {
                self.settle(device, other, lane);
            }
        }
    }

    /// Egress half: stops and starts the queues that a frame names.
    pub(super) fn obey(&mut self, device: &mut (impl Device + ?Sized), port: u32, frame: &PfcFrame) {
        for (priority, quanta) in frame.entries() {
            let Some(lane) = self.lane(priority) else { continue };
            let expiry = self.timer_of(port, lane, Role::Expiry);
            if quanta == 0 {
                device.cancel(expiry);
                device.resume(port, lane);
                self.on_pause_change(device, port, lane, false);
            } else {
                device.arm(expiry, device.now() + pause_time(quanta, device.rate(port)));
                device.pause(port, lane);
                self.on_pause_change(device, port, lane, true);
            }
        }
    }

    /// Sends nothing until `until`, or a word of the peer.
    pub(super) fn hold_until(&self, device: &mut (impl Device + ?Sized), port: u32, lane: u8, until: Time) {
        device.arm(self.timer_of(port, lane, Role::Expiry), until);
        device.hold(port, lane);
    }
}

impl Machine for Pfc {
    fn timers(&self) -> usize {
        self.ports * self.priorities.len() * self.roles() as usize
    }
}

impl<D: Device + ?Sized> Scheme<D> for Pfc {
    fn crossed(&mut self, device: &mut D, port: u32, lane: u8, crossing: Crossing) {
        if !self.marks.is_empty() {
            self.mark(port, lane, OVER, crossing == Crossing::Over);
            return self.settle(device, port, lane);
        }
        match crossing {
            Crossing::Over => self.pause_upstream(device, port, lane),
            Crossing::Under => self.resume_upstream(device, port, lane),
        }
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        if let ControlFrame::Pfc(frame) = frame {
            self.obey(device, port, frame);
        }
    }

    /// Both halves clear their state: the port has no neighbour to pause, and no neighbour that pauses it.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        device.cancel(self.timer_of(port, lane, Role::Refresh));
        device.cancel(self.timer_of(port, lane, Role::Expiry));
        device.resume(port, lane);
        if let Relay::Mirror { .. } = self.params.relay {
            device.cancel(self.timer_of(port, lane, Role::Hold));
        }
        if !self.marks.is_empty() {
            self.mark(port, lane, OVER | CLOSED, false);
            self.pass_on(device, port, lane, false);
        }
    }

    /// Begins afresh. An account that is over says so again; nothing is sent until the peer has said so.
    fn link_recovered(&mut self, device: &mut D, port: u32, lane: u8, over: bool, settled: Time) {
        if !self.marks.is_empty() {
            // Frames that were sent while the link was down have not arrived.
            self.mark(port, lane, CLOSED, false);
            self.mark(port, lane, OVER, over);
            self.settle(device, port, lane);
        } else if over {
            self.pause_upstream(device, port, lane);
        }
        let frame = serialisation(u64::from(PfcFrame::LENGTH), device.rate(port));
        self.hold_until(device, port, lane, settled + frame);
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        let (port, lane, role) = self.place_of(timer);
        if role == Role::Refresh as u32 {
            self.pause_upstream(device, port, lane);
        } else if role == Role::Expiry as u32 {
            device.resume(port, lane);
            self.on_pause_change(device, port, lane, false);
        } else {
            self.pass_on(device, port, lane, false);
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
        Pfc::new(PfcParams { quanta: 1000, response_time: 0, relay: Relay::Accounts }, 4, &[3, 5])
    }

    /// A host with the ports 0 to 2 passes each pause on once, to the other ports, and resumes them when no
    /// other port is paused and its account is under.
    #[test]
    fn a_blind_host_passes_pauses_on() {
        let params = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Blind };
        let mut pfc = Pfc::new(params, 4, &[3, 5]);
        let mut device = Notes { relays: vec![0, 1, 2], ..Notes::default() };
        let mut said = |pfc: &mut Pfc, act: &dyn Fn(&mut Pfc, &mut Notes)| {
            act(pfc, &mut device);
            let said: Vec<String> = device.log.drain(..).filter(|line| line.starts_with("send")).collect();
            said
        };
        let pause = |port: u32, quanta: u16| {
            move |pfc: &mut Pfc, device: &mut Notes| {
                pfc.received(device, port, &PfcFrame::single(5, quanta).into())
            }
        };
        let cross = |port: u32, crossing: Crossing| {
            move |pfc: &mut Pfc, device: &mut Notes| pfc.crossed(device, port, 1, crossing)
        };
        let (stop, go) = ("[(5, 1000)]", "[(5, 0)]");
        assert_eq!(said(&mut pfc, &pause(0, 7)), [format!("send 1 {stop}"), format!("send 2 {stop}")]);
        // A refresh changes nothing, nor does an account that is over where a pause is active.
        assert_eq!(said(&mut pfc, &pause(0, 7)), [""; 0]);
        assert_eq!(said(&mut pfc, &cross(1, Crossing::Over)), [""; 0]);
        // A second port: now port 0 is paused as well.
        assert_eq!(said(&mut pfc, &pause(2, 7)), [format!("send 0 {stop}")]);
        // Port 0 goes again: port 2 has no other reason, port 1 has two.
        assert_eq!(said(&mut pfc, &pause(0, 0)), [format!("send 2 {go}")]);
        assert_eq!(said(&mut pfc, &pause(2, 0)), [format!("send 0 {go}")]);
        assert_eq!(said(&mut pfc, &cross(1, Crossing::Under)), [format!("send 1 {go}")]);
        // A pause that runs out has ended, and so has one whose link fails.
        assert_eq!(said(&mut pfc, &pause(1, 7)).len(), 2);
        let expiry = pfc.timer_of(1, 1, Role::Expiry);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.timer(device, expiry)).len(), 2);
        assert_eq!(said(&mut pfc, &pause(1, 7)).len(), 2);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.link_failed(device, 1, 1)).len(), 2);
        // A link that is up again receives the active pauses.
        assert_eq!(said(&mut pfc, &pause(0, 7)).len(), 2);
        assert_eq!(
            said(&mut pfc, &|pfc, device| pfc.link_recovered(device, 1, 1, false, 0)),
            [format!("send 1 {stop}")]
        );
    }

    /// A relay on a long link passes a pause on at once and its end `hold` later; a
    /// pause that comes meanwhile is the same one to its other neighbour.
    #[test]
    fn a_mirror_passes_pauses_on_at_once_and_their_ends_later() {
        let params = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Mirror { hold: 60_000 } };
        let mut pfc = Pfc::new(params, 4, &[3, 5]);
        let mut device = Notes { relays: vec![0, 1], ..Notes::default() };
        let hold = pfc.timer_of(0, 1, Role::Hold);
        assert_eq!((pfc.timers(), hold), (24, 5));
        let mut said = |pfc: &mut Pfc, act: &dyn Fn(&mut Pfc, &mut Notes)| {
            act(pfc, &mut device);
            let mine =
                |line: &String| line.starts_with("send") || line.ends_with(" 5") || line.contains(" 5 ");
            device.log.drain(..).filter(mine).collect::<Vec<_>>()
        };
        let pause = |quanta: u16| {
            move |pfc: &mut Pfc, device: &mut Notes| {
                pfc.received(device, 0, &PfcFrame::single(5, quanta).into())
            }
        };
        assert_eq!(said(&mut pfc, &pause(7)), ["cancel 5", "send 1 [(5, 1000)]"]);
        assert_eq!(said(&mut pfc, &pause(0)), ["arm 5 60000"]);
        assert_eq!(said(&mut pfc, &pause(7)), ["cancel 5"]);
        assert_eq!(said(&mut pfc, &pause(0)), ["arm 5 60000"]);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.timer(device, hold)), ["send 1 [(5, 0)]"]);
        // A resume of a queue that is not paused sends nothing.
        assert_eq!(said(&mut pfc, &pause(0)), [""; 0]);
        // A pause that runs out is held back, too; its own account keeps it.
        assert_eq!(said(&mut pfc, &pause(7)), ["cancel 5", "send 1 [(5, 1000)]"]);
        let expiry = pfc.timer_of(0, 1, Role::Expiry);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.timer(device, expiry)), ["arm 5 60000"]);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.crossed(device, 1, 1, Crossing::Over)), [""; 0]);
        assert_eq!(said(&mut pfc, &|pfc, device| pfc.timer(device, hold)), [""; 0]);
        let under = |pfc: &mut Pfc, device: &mut Notes| pfc.crossed(device, 1, 1, Crossing::Under);
        assert_eq!(said(&mut pfc, &under), ["send 1 [(5, 0)]"]);
    }

    #[test]
    fn a_switch_passes_nothing_on() {
        let params = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Blind };
        let (mut pfc, mut device) = (Pfc::new(params, 4, &[3, 5]), Notes::default());
        pfc.received(&mut device, 1, &PfcFrame::single(3, 10).into());
        assert_eq!(device.log, ["arm 5 51200", "pause 1/0"]);
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
        pfc.received(&mut device, 1, &PfcFrame::single(3, 10).into());
        pfc.received(&mut device, 1, &PfcFrame::single(3, 0).into());
        pfc.timer(&mut device, 5);
        pfc.received(&mut device, 1, &PfcFrame::single(7, 10).into()); // not in use here
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
        let link = LinkFacts { rate: 100_000_000_000, delay: 1_000_000, largest: 1062, retries: 0 };
        let room = headroom(&link, 500_000);
        assert_eq!(room.total, 25_000 + 6_250 + 1062 + 64 + 1062);
    }
}
