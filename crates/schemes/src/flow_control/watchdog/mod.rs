//! The PFC watchdog of datacenter switches, over [`super::pfc`]: a queue that has been
//! paused for too long is taken for the victim of a storm of pauses (a deadlock is one),
//! and its packets are dropped, or sent all the same.
//!
//! Modelled on SONiC's (its *PFC Watchdog* design; `pfcwd` in sonic-utilities for the defaults;
//! `pfc_detect_broadcom.lua` and `pfc_restore.lua` in sonic-swss for the state that a poll reads). Lv et al.
//! (2025, section VI-E) compare with it, at 200 ms, and leave the action open (`roundabout.watchdog-action`).
//!
//! A device polls all its queues every `poll`. One (port, priority):
//!
//! ```text
//!                 the polls of at least `detection` have found it paused without
//!                 a break, with something to send
//!   Operational ──────────────────────────────────────────────────────────────► Storm
//!        ▲                                                                        │
//!        └────────────────────────────────────────────────────────────────────────┘
//!                 drop, forward: the polls of at least `restoration` have seen no
//!                 PAUSE come; alert: the pause has ended; or the link has failed
//! ```
//!
//! The behaviour during a storm, by the action:
//!
//! - *drop*: packets in the queue are dropped, and so are packets that arrive for it. The queue still obeys:
//!   the own packets of a host that relays wait;
//! - *forward*: the queue resumes, and PAUSE frames for it are not obeyed. The peer may have no room;
//! - *alert*: nothing; the storm is only reported.
//!
//! "The polls of at least `detection`" are the first one that finds the queue so and the first one that comes
//! `detection` later and still does: a single poll is never enough, for SONiC compares two. So a storm is
//! found between `detection` and `detection + poll` after its pause began, rounded up to whole polls, and is
//! over between `restoration` and `restoration + poll` after the last PAUSE.
//!
//! With *timers in hardware* (`timers = "hardware"`; switch chips call it deadlock detection and recovery, SAI the
//! intervals `PFC_TC_DLD_INTERVAL` and `PFC_TC_DLR_INTERVAL`) no device polls: a queue's own timer runs out exactly
//! `detection` after its pause began, and `restoration` after the last PAUSE, or after the end of a pause that runs
//! out. If the queue has nothing to send then, the detection begins anew. An alert ends with its pause.
//!
//! *Readings.* An active pause at a poll counts as if it had just arrived: otherwise, with times as short as
//! the intervals of its frames, a storm would end during it. Packets that arrive by the port in a storm are
//! not dropped, only packets that would leave by it: SONiC once dropped the former as well and gave it up
//! (sonic-swss, pull request 2304). Frames that resume do not count as PAUSE frames. A poll is armed only
//! while the queue is paused or in a storm: the others would see nothing.

pub mod keys;
pub mod report;

use super::device::Repair;
use super::fabric::next_poll;
use super::pfc::{Pfc, PfcParams, pause_time};
use super::{ControlFrame, FlowControl, Machine, Mode, Parameters, Scheme, Seen, Traits};
pub use keys::Action;
pub use report::Report;
use xoff_kernel::time::Time;
use xoff_net::units::Span;
use xoff_outcome::report::{Facts, Records};
use xoff_wire::pfc::PfcFrame;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchdogParams {
    pub pfc: PfcParams,
    pub action: Action,
    /// So long a queue is paused before it is a storm.
    pub detection: Time,
    /// So long no PAUSE comes before a storm is over.
    pub restoration: Time,
    /// Between two polls of a device; 0 with timers in hardware.
    pub poll: Time,
    /// By port: the time of its device's first poll, before `poll`; `None` where no device polls.
    pub first: Vec<Option<Time>>,
}

impl Parameters for WatchdogParams {
    fn traits(&self) -> Traits {
        Traits {
            // Without other events, it finds a storm, and then its end.
            patience: self.detection + self.restoration + 3 * self.poll,
            ends_deadlocks: true,
            overrun: Some(&report::OVERRUN),
            ..Traits::of_pfc(&self.pfc)
        }
    }

    fn pfc(&self) -> Option<&PfcParams> {
        Some(&self.pfc)
    }

    fn describe(&self, _: &Seen<'_>) -> String {
        let action = match self.action {
            Action::Drop => "drops its packets",
            Action::Forward => "sends despite the pause",
            Action::Alert => "is only reported",
        };
        let watched = self.first.iter().flatten().count();
        let every = match self.poll {
            0 => "by timers in hardware".to_string(),
            poll => format!("every {}", Span(poll)),
        };
        format!(
            "(a queue paused for {} {action}, until {} without a pause frame; {watched} ports \
             watched, {every}; {} quanta, response time {})",
            Span(self.detection),
            Span(self.restoration),
            self.pfc.quanta,
            Span(self.pfc.response_time)
        )
    }

    fn start(&self, ports: usize, priorities: &[u8]) -> FlowControl {
        FlowControl::Watchdog(Watchdog::new(self, ports, priorities))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storm {
    pub port: u32,
    pub lane: u8,
    /// When the watchdog acted.
    pub from: Time,
    /// When it held the storm to be over; `None` if that has not come.
    pub until: Option<Time>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Watch {
    /// A poll is to come.
    armed: bool,
    /// When the last pause of the neighbour expires; 0 if it has resumed.
    until: Time,
    /// A PAUSE has come since the last poll.
    pause_received: bool,
    /// When the last PAUSE came.
    last_pause: Time,
    /// The first of the polls that have found it paused without a break, with something to send.
    since: Option<Time>,
    /// It is in a storm: the number of that, and the poll, or the time, since which no PAUSE has come.
    storm: Option<(usize, Time)>,
}

#[derive(Clone, Debug)]
pub struct Watchdog {
    params: WatchdogParams,
    pfc: Pfc,
    /// By port and lane.
    watches: Vec<Watch>,
    storms: Vec<Storm>,
}

impl Watchdog {
    pub(super) fn new(params: &WatchdogParams, ports: usize, priorities: &[u8]) -> Self {
        Self {
            pfc: Pfc::new(params.pfc, ports, priorities),
            params: params.clone(),
            watches: vec![Watch::default(); ports * priorities.len()],
            storms: Vec::new(),
        }
    }

    fn poll_of(&self, port: u32, lane: u8) -> u32 {
        (self.pfc.timers() + self.pfc.at(port, lane)) as u32
    }

    fn in_hardware(&self) -> bool {
        self.params.poll == 0
    }

    /// When the queue's own timer runs out.
    fn due(&self, watch: &Watch, now: Time) -> Time {
        match watch.storm {
            None => watch.since.unwrap_or(now) + self.params.detection,
            Some(_) if self.params.action == Action::Alert => watch.until.max(now),
            Some((_, last)) => (last.max(watch.until) + self.params.restoration).max(now),
        }
    }

    /// The queue's own timer has run out.
    fn expire(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let (now, at) = (device.now(), self.pfc.at(port, lane));
        let waits = device.backlog(port, lane) > 0;
        let watch = &mut self.watches[at];
        let paused = watch.until > now;
        match watch.storm {
            None if !paused => watch.since = None,
            None if watch.since.is_some_and(|since| now - since >= self.params.detection) => match waits {
                true => self.storm_begins(device, port, lane),
                false => watch.since = Some(now),
            },
            None => {}
            // It runs out where a storm ends, unless a PAUSE has come since.
            Some(_) if self.params.action != Action::Alert || !paused => self.storm_ends(device, port, lane),
            Some(_) => {}
        }
        if paused || self.watches[at].storm.is_some() {
            self.await_poll(device, port, lane);
        }
    }

    /// Arms the queue's timer, or the device's next poll if none is to come, if somebody watches.
    fn await_poll(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let Some(first) = self.params.first[port as usize] else { return };
        let at = self.pfc.at(port, lane);
        if self.in_hardware() {
            let due = self.due(&self.watches[at], device.now());
            return device.arm(self.poll_of(port, lane), due);
        }
        if std::mem::replace(&mut self.watches[at].armed, true) {
            return;
        }
        device.arm(self.poll_of(port, lane), next_poll(first, self.params.poll, device.now()));
    }

    fn poll(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let (now, at) = (device.now(), self.pfc.at(port, lane));
        let waits = device.backlog(port, lane) > 0;
        let watch = &mut self.watches[at];
        watch.armed = false;
        let paused = watch.until > now;
        let was_paused = std::mem::take(&mut watch.pause_received) || paused;
        watch.since = watch.since.or(Some(now)).filter(|_| paused && waits);
        match watch.storm {
            None => {
                if watch.since.is_some_and(|since| now - since >= self.params.detection) {
                    self.storm_begins(device, port, lane);
                }
            }
            Some((storm, quiet)) => {
                let over = match self.params.action {
                    // Without a break it began before the storm was found.
                    Action::Alert => watch.since.is_none_or(|since| since >= self.storms[storm].from),
                    Action::Drop | Action::Forward => !was_paused && now - quiet >= self.params.restoration,
                };
                if over {
                    self.storm_ends(device, port, lane);
                } else if was_paused {
                    watch.storm = Some((storm, now));
                }
            }
        }
        if paused || self.watches[at].storm.is_some() {
            self.await_poll(device, port, lane);
        }
    }

    fn storm_begins(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let (now, at) = (device.now(), self.pfc.at(port, lane));
        let last = if self.in_hardware() { self.watches[at].last_pause } else { now };
        self.watches[at].storm = Some((self.storms.len(), last));
        self.storms.push(Storm { port, lane, from: now, until: None });
        match self.params.action {
            Action::Alert => {}
            Action::Drop => device.set_mode(port, lane, Mode::Discard(&report::DROPPED)),
            Action::Forward => {
                device.set_mode(port, lane, Mode::Forward);
                // As if the neighbour had let it go.
                let frame = PfcFrame::single(self.pfc.priority(lane), 0);
                self.pfc.obey(device, port, &frame);
            }
        }
    }

    fn storm_ends(&mut self, device: &mut impl Repair, port: u32, lane: u8) {
        let at = self.pfc.at(port, lane);
        if let Some((storm, _)) = self.watches[at].storm.take() {
            self.storms[storm].until = Some(device.now());
            self.watches[at].since = None;
            if self.params.action != Action::Alert {
                device.set_mode(port, lane, Mode::Obey);
            }
        }
    }
}

impl Machine for Watchdog {
    const FACTS: Option<&'static Facts> = Some(&report::FACTS);

    fn timers(&self) -> usize {
        self.pfc.timers() + self.watches.len()
    }

    fn records(&self) -> Records {
        Records::of(Report { storms: self.storms.clone(), params: self.params.clone() })
    }
}

impl<D: Repair> Scheme<D> for Watchdog {
    fn base(&mut self) -> Option<&mut Pfc> {
        Some(&mut self.pfc)
    }

    fn received(&mut self, device: &mut D, port: u32, frame: &ControlFrame) {
        let ControlFrame::Pfc(frame) = frame else { return };
        let mut obeyed = *frame;
        for (priority, quanta) in frame.entries() {
            let Some(lane) = self.pfc.lane(priority) else { continue };
            let at = self.pfc.at(port, lane);
            let watch = &mut self.watches[at];
            // A break, unless the last one runs out just now.
            if quanta == 0 || watch.until < device.now() {
                (watch.until, watch.since) = (0, None);
            }
            if quanta == 0 && self.params.poll == 0 && watch.storm.is_some() {
                match self.params.action {
                    Action::Alert => self.storm_ends(device, port, lane),
                    Action::Drop | Action::Forward => self.await_poll(device, port, lane),
                }
            } else if quanta > 0 {
                watch.pause_received = true;
                if self.params.poll == 0 {
                    watch.since = watch.since.or(Some(device.now()));
                    watch.storm = watch.storm.map(|(storm, _)| (storm, device.now()));
                    watch.last_pause = device.now();
                }
                watch.until = device.now() + pause_time(quanta, device.rate(port));
                if watch.storm.is_some() && self.params.action == Action::Forward {
                    obeyed.enabled &= !(1 << priority);
                }
                self.await_poll(device, port, lane);
            }
        }
        self.pfc.obey(device, port, &obeyed);
    }

    fn timer(&mut self, device: &mut D, timer: u32) {
        match (timer as usize).checked_sub(self.pfc.timers()) {
            Some(at) => {
                let (port, lane) = self.pfc.port_and_lane(at);
                match self.in_hardware() {
                    true => self.expire(device, port, lane),
                    false => self.poll(device, port, lane),
                }
            }
            None => self.pfc.timer(device, timer),
        }
    }

    /// The watching half resets its state too: no neighbour pauses this port any more.
    fn link_failed(&mut self, device: &mut D, port: u32, lane: u8) {
        self.storm_ends(device, port, lane);
        let at = self.pfc.at(port, lane);
        self.watches[at] = Watch::default();
        device.cancel(self.poll_of(port, lane));
        self.pfc.link_failed(device, port, lane);
    }
}

#[cfg(test)]
mod tests {
    use super::super::device::Device;
    use super::super::notes::Notes;
    use super::super::pfc::Relay;
    use super::*;

    /// Well below the longest pause, 335 us.
    const US: Time = 1_000_000;

    /// Port 1, lane 0 of two; polls at 3 us, 13 us and on. A storm after 20 us, over after 30.
    fn watchdog(action: Action) -> Watchdog {
        let pfc = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Accounts };
        let (detection, restoration, poll) = (20 * US, 30 * US, 10 * US);
        let first = vec![None, Some(3 * US)];
        Watchdog::new(&WatchdogParams { pfc, action, detection, restoration, poll, first }, 2, &[3, 5])
    }

    fn device() -> Notes {
        Notes { backlog: 1, ..Notes::default() }
    }

    /// The calls of `act` at `us` to the device, except the timers of PFC.
    fn at(w: &mut Watchdog, d: &mut Notes, us: Time, act: impl Fn(&mut Watchdog, &mut Notes)) -> Vec<String> {
        d.now = us * US;
        act(w, d);
        let own = |line: &String| {
            let timer = line.split(' ').nth(1).and_then(|t| t.parse().ok());
            !(line.starts_with("arm") || line.starts_with("cancel"))
                || timer.is_some_and(|t: usize| t >= w.pfc.timers())
        };
        d.log.drain(..).filter(own).collect()
    }

    fn pause(w: &mut Watchdog, d: &mut Notes) {
        w.received(d, 1, &PfcFrame::single(3, u16::MAX).into());
    }

    fn resume(w: &mut Watchdog, d: &mut Notes) {
        w.received(d, 1, &PfcFrame::single(3, 0).into());
    }

    fn poll(w: &mut Watchdog, d: &mut Notes) {
        let timer = w.poll_of(1, 0);
        w.timer(d, timer);
    }

    /// The next poll of port 1, lane 0: eight timers of PFC, and two of port 0.
    fn next(us: Time) -> String {
        format!("arm 10 {}", us * US)
    }

    /// Into a storm, which the polls at 13, 23 and 33 us make of a pause at 5 us.
    fn stormy(action: Action) -> (Watchdog, Notes, Vec<String>) {
        let (mut w, mut d) = (watchdog(action), device());
        assert_eq!(at(&mut w, &mut d, 5, pause), [next(13), "pause 1/0".into()]);
        assert_eq!(at(&mut w, &mut d, 13, poll), [next(23)]);
        // A refresh changes nothing, nor does another priority's resume.
        assert_eq!(at(&mut w, &mut d, 20, pause), ["pause 1/0"]);
        at(&mut w, &mut d, 21, |w, d| w.received(d, 1, &PfcFrame::single(5, 0).into()));
        assert_eq!(at(&mut w, &mut d, 23, poll), [next(33)]);
        assert_eq!(w.storms, []);
        let done = at(&mut w, &mut d, 33, poll);
        assert_eq!(w.storms, [Storm { port: 1, lane: 0, from: 33 * US, until: None }]);
        (w, d, done)
    }

    #[test]
    fn a_lasting_pause_is_a_storm_and_packets_are_dropped_until_it_is_quiet() {
        let (mut w, mut d, done) = stormy(Action::Drop);
        assert_eq!(done, ["1/0 Discard".to_string(), next(43)]);
        // Pauses are obeyed, and keep the storm alive; so for the polls at 43 and 53.
        assert_eq!(at(&mut w, &mut d, 40, pause), ["pause 1/0"]);
        assert_eq!(at(&mut w, &mut d, 43, poll), [next(53)]);
        assert_eq!(at(&mut w, &mut d, 44, pause), ["pause 1/0"]);
        assert_eq!(at(&mut w, &mut d, 45, resume), ["resume 1/0"]);
        // The queue is empty now, which does not matter.
        d.backlog = 0;
        for us in [53, 63, 73] {
            assert_eq!(at(&mut w, &mut d, us, poll), [next(us + 10)]);
        }
        assert_eq!(at(&mut w, &mut d, 83, poll), ["1/0 Obey"]);
        assert_eq!(w.storms[0].until, Some(83 * US));
        // The next one takes as long as the first.
        d.backlog = 1;
        assert_eq!(at(&mut w, &mut d, 84, pause), [next(93), "pause 1/0".into()]);
        for us in [93, 103] {
            assert_eq!(at(&mut w, &mut d, us, poll), [next(us + 10)]);
        }
        assert_eq!(at(&mut w, &mut d, 113, poll).len(), 2);
        assert_eq!(w.storms.len(), 2);
    }

    #[test]
    fn in_forward_mode_pauses_are_not_obeyed() {
        let (mut w, mut d, done) = stormy(Action::Forward);
        assert_eq!(done, ["1/0 Forward".to_string(), "resume 1/0".into(), next(43)]);
        assert_eq!(at(&mut w, &mut d, 42, pause), [""; 0]);
        // The other priority of the same frame is.
        let both = |w: &mut Watchdog, d: &mut Notes| {
            let mut frame = PfcFrame::single(3, u16::MAX);
            (frame.enabled, frame.quanta[5]) = (frame.enabled | 1 << 5, u16::MAX);
            w.received(d, 1, &frame.into());
        };
        assert_eq!(at(&mut w, &mut d, 42, both), [format!("arm 11 {}", 43 * US), "pause 1/1".into()]);
        // During the pause, which is not obeyed, and 30 us longer.
        for us in [43, 53, 63, 73] {
            assert_eq!(at(&mut w, &mut d, us, poll), [next(us + 10)]);
        }
        assert_eq!(at(&mut w, &mut d, 79, resume), ["resume 1/0"]);
        for us in [83, 93] {
            assert_eq!(at(&mut w, &mut d, us, poll), [next(us + 10)]);
        }
        assert_eq!(at(&mut w, &mut d, 103, poll), ["1/0 Obey"]);
        assert_eq!(at(&mut w, &mut d, 104, pause), [next(113), "pause 1/0".into()]);
    }

    #[test]
    fn an_alert_changes_nothing_and_ends_with_the_pause() {
        let (mut w, mut d, done) = stormy(Action::Alert);
        assert_eq!(done, [next(43)]);
        // With or without refreshes, the pause is active.
        for us in [43, 53, 63, 73] {
            assert_eq!(at(&mut w, &mut d, us, poll), [next(us + 10)]);
        }
        assert_eq!(w.storms[0].until, None);
        // A pause that ends between two polls has ended, although another one is active.
        at(&mut w, &mut d, 75, resume);
        at(&mut w, &mut d, 76, pause);
        assert_eq!(at(&mut w, &mut d, 83, poll), [next(93)]);
        assert_eq!((w.storms.len(), w.storms[0].until), (1, Some(83 * US)));
    }

    /// The times are exact: 20 us after the pause began, 30 us after the last PAUSE.
    #[test]
    fn timers_in_hardware_need_no_polls() {
        for action in [Action::Drop, Action::Forward, Action::Alert] {
            let mut w = watchdog(action);
            w.params.poll = 0;
            let mut d = device();
            assert_eq!(at(&mut w, &mut d, 5, pause), [next(25), "pause 1/0".into()]);
            assert_eq!(at(&mut w, &mut d, 20, pause), [next(25), "pause 1/0".into()]);
            let found = at(&mut w, &mut d, 25, poll);
            assert_eq!(w.storms, [Storm { port: 1, lane: 0, from: 25 * US, until: None }]);
            // A pause lasts 65,535 quanta of 5.12 ns, to the next microsecond 336 us.
            let expires = 20 * US + pause_time(u16::MAX, Device::rate(&d, 1));
            let due = if action == Action::Alert { expires } else { expires + 30 * US };
            assert_eq!(found.last(), Some(&format!("arm 10 {due}")), "{action:?}");
            at(&mut w, &mut d, 40, pause);
            let calls = at(&mut w, &mut d, 50, resume);
            if action == Action::Alert {
                assert_eq!(w.storms[0].until, Some(50 * US));
                continue;
            }
            assert_eq!(calls, [next(70), "resume 1/0".into()]);
            assert_eq!(at(&mut w, &mut d, 70, poll), ["1/0 Obey"]);
            assert_eq!(w.storms[0].until, Some(70 * US));
            // The PAUSE before the storm counts: 80 us, and 30 us more.
            at(&mut w, &mut d, 80, pause);
            at(&mut w, &mut d, 100, poll);
            assert_eq!(at(&mut w, &mut d, 101, resume)[0], next(110), "{action:?}");
        }
    }

    /// A break stops the timer, and a queue with nothing to send is no storm.
    #[test]
    fn a_timer_in_hardware_begins_anew_after_a_break_and_for_an_empty_queue() {
        let mut w = watchdog(Action::Drop);
        w.params.poll = 0;
        let mut d = device();
        at(&mut w, &mut d, 5, pause);
        at(&mut w, &mut d, 15, resume);
        assert_eq!(at(&mut w, &mut d, 16, pause)[0], next(36));
        d.backlog = 0;
        assert_eq!(at(&mut w, &mut d, 36, poll), [next(56)]);
        d.backlog = 1;
        at(&mut w, &mut d, 50, resume);
        assert_eq!(at(&mut w, &mut d, 56, poll), [""; 0]);
        assert_eq!(w.storms, []);
    }

    #[test]
    fn breaks_and_empty_queues_are_no_storm() {
        let (mut w, mut d) = (watchdog(Action::Drop), device());
        at(&mut w, &mut d, 5, pause);
        at(&mut w, &mut d, 13, poll);
        at(&mut w, &mut d, 23, poll);
        // A break: by a resume, then by a pause that runs out, after 2000 * 5.12 ns.
        at(&mut w, &mut d, 24, resume);
        at(&mut w, &mut d, 25, |w, d| w.received(d, 1, &PfcFrame::single(3, 2_000).into()));
        assert_eq!(at(&mut w, &mut d, 33, poll), [next(43)]);
        at(&mut w, &mut d, 36, pause);
        assert_eq!(at(&mut w, &mut d, 43, poll), [next(53)]);
        at(&mut w, &mut d, 44, |w, d| w.received(d, 1, &PfcFrame::single(3, 1).into()));
        // A queue that is not paused is not polled.
        assert_eq!(at(&mut w, &mut d, 53, poll), [""; 0]);
        // An empty queue for one poll begins anew.
        assert_eq!(at(&mut w, &mut d, 54, pause)[0], next(63));
        at(&mut w, &mut d, 63, poll);
        d.backlog = 0;
        at(&mut w, &mut d, 73, poll);
        d.backlog = 1;
        at(&mut w, &mut d, 83, poll);
        at(&mut w, &mut d, 93, poll);
        assert_eq!(w.storms, []);
        at(&mut w, &mut d, 103, poll);
        assert_eq!(w.storms.len(), 1);
    }

    #[test]
    fn ports_without_a_poll_are_not_watched() {
        let (mut w, mut d) = (watchdog(Action::Drop), device());
        let pause = |w: &mut Watchdog, d: &mut Notes| w.received(d, 0, &PfcFrame::single(3, u16::MAX).into());
        assert_eq!(at(&mut w, &mut d, 5, pause), ["pause 0/0"]);
    }

    #[test]
    fn a_failed_link_ends_the_storm() {
        let (mut w, mut d, _) = stormy(Action::Drop);
        let fails = |w: &mut Watchdog, d: &mut Notes| w.link_failed(d, 1, 0);
        assert_eq!(at(&mut w, &mut d, 40, fails), ["1/0 Obey", "cancel 10", "resume 1/0"]);
        assert_eq!(w.storms[0].until, Some(40 * US));
        assert_eq!(w.watches, [Watch::default(); 4]);
    }
}
