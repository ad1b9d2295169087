//! Every order of crossings, frames and arrivals on one link, with the merging of waiting frames.

use super::tests::dsh;
use super::*;
use std::collections::BTreeSet;

/// Frames that wait for their wire, and egress queues that are stopped.
#[derive(Clone, Default)]
struct End {
    waiting: Vec<ControlFrame>,
    stopped: BTreeSet<u8>,
}

impl Device for End {
    fn now(&self) -> Time {
        0
    }
    fn rate(&self, _: u32) -> u64 {
        100_000_000_000
    }
    fn pause(&mut self, _: u32, lane: u8) {
        self.stopped.insert(lane);
    }
    fn hold(&mut self, _: u32, lane: u8) {
        self.stopped.insert(lane);
    }
    fn resume(&mut self, _: u32, lane: u8) {
        self.stopped.remove(&lane);
    }
    fn backlog(&self, _: u32, _: u8) -> u64 {
        0
    }
    fn device_of(&self, _: u32) -> u32 {
        0
    }
    fn port_of(&self, _: u32, _: usize) -> Option<u32> {
        None
    }
    fn relay_port(&self, _: u32, _: usize) -> Option<u32> {
        None
    }
    fn stored(&self, _: u32, _: u8) -> u64 {
        0
    }
    fn received(&self, _: u32, _: u8) -> u64 {
        0
    }
    /// As the device of the simulator: the last frame takes it up, or the first one if it overtakes the last.
    fn send_control(&mut self, _: u32, frame: ControlFrame) {
        let mut ahead = false;
        let ends = [self.waiting.len().checked_sub(1), (!self.waiting.is_empty()).then_some(0)];
        for at in ends.into_iter().flatten() {
            if self.waiting[at].merge(&frame) {
                return;
            }
            ahead = frame.overtakes(&self.waiting[at]);
            if !ahead {
                break;
            }
        }
        let at = if ahead { 0 } else { self.waiting.len() };
        self.waiting.insert(at, frame);
    }
    fn arm(&mut self, _: u32, _: Time) {}
    fn cancel(&mut self, _: u32) {}
}

#[derive(Clone)]
struct State {
    ingress: Dsh,
    egress: Dsh,
    here: End,
    there: End,
    /// Frames on the wire, the first one first.
    wire: Vec<ControlFrame>,
    /// QOFF of two queues, and POFF.
    over: [bool; 3],
}

impl State {
    fn key(&self) -> String {
        format!(
            "{:?} {:?} {:?} {:?} {:?}",
            self.over, self.here.waiting, self.wire, self.there.stopped, self.egress.off
        )
    }

    /// The states after one event.
    fn next(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for which in 0..3usize {
            let mut state = self.clone();
            state.over[which] ^= true;
            let crossing = if state.over[which] { Crossing::Over } else { Crossing::Under };
            match which {
                2 => state.ingress.port_crossed(&mut state.here, 1, crossing),
                lane => state.ingress.crossed(&mut state.here, 1, lane as u8, crossing),
            }
            all.push(state);
        }
        // The wire takes the first frame that waits. Two frames may be on it.
        if !self.here.waiting.is_empty() && self.wire.len() < 2 {
            let mut state = self.clone();
            let frame = state.here.waiting.remove(0);
            state.wire.push(frame);
            all.push(state);
        }
        if !self.wire.is_empty() {
            let mut state = self.clone();
            let frame = state.wire.remove(0);
            // As simulated, or as read from its bytes.
            let read = ControlFrame::parse(&frame.emit([2; 6])).expect("a PFC frame");
            let mut live = (self.egress.clone(), self.there.clone());
            live.0.received(&mut live.1, 1, &read);
            state.egress.received(&mut state.there, 1, &frame);
            assert_eq!((&live.0.off, &live.1.stopped), (&state.egress.off, &state.there.stopped));
            all.push(state);
        }
        all
    }

    fn check(&self) {
        // At most a frame of each level waits, that of the port first.
        let ports: Vec<bool> = self.here.waiting.iter().map(|frame| frame.pauses_port()).collect();
        assert!(matches!(ports[..], [] | [_] | [true, false]), "{ports:?}");
        if self.here.waiting.is_empty() && self.wire.is_empty() {
            let expected: BTreeSet<u8> =
                (0..2).filter(|&lane| self.over[usize::from(lane)] || self.over[2]).collect();
            assert_eq!(self.there.stopped, expected, "{:?}", self.over);
        }
    }
}

impl ControlFrame {
    fn pauses_port(&self) -> bool {
        matches!(self, ControlFrame::Level(frame) if frame.is_port())
    }
}

/// When all frames have arrived, the upstream queues are stopped exactly if their queue or the port is over.
#[test]
fn both_ends_agree_when_no_frame_is_under_way() {
    let first = State {
        ingress: dsh(),
        egress: dsh(),
        here: End::default(),
        there: End::default(),
        wire: Vec::new(),
        over: [false; 3],
    };
    let (mut seen, mut open) = (BTreeSet::from([first.key()]), vec![first]);
    while let Some(state) = open.pop() {
        state.check();
        open.extend(state.next().into_iter().filter(|state| seen.insert(state.key())));
    }
    println!("{} states", seen.len());
    assert!(seen.len() > 1_000);
}
