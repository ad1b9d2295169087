//! The control plane of one device: when it suspects, which probes it passes on, and its reaction to one that
//! returns.

use super::super::notes::Notes;
use super::super::pfc::Relay;
use super::*;
use xoff_wire::pfc::PfcFrame;

/// Well below the longest pause, 335 us.
const US: Time = 1_000_000;

/// Ports 0 to 2 of one device; polls at 3 us, 13 us and on; 2 us in the control plane.
fn breaker(cure: Cure) -> (Breaker, Notes) {
    let pfc = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Accounts };
    let first = vec![Some(3 * US); 3];
    let params = BreakerParams { pfc, cure, period: 10 * US, latency: 2 * US, turn: 0, first, seed: 1 };
    let device = Notes { backlog: 1, ports: vec![0, 1, 2], ..Notes::default() };
    (Breaker::new(&params, 3, &[3]), device)
}

/// The calls of `act` at `us` to the device, except timers.
fn at(b: &mut Breaker, d: &mut Notes, us: Time, act: impl Fn(&mut Breaker, &mut Notes)) -> Vec<String> {
    d.now = us * US;
    act(b, d);
    d.log.drain(..).filter(|line| !line.starts_with("arm") && !line.starts_with("cancel")).collect()
}

/// Port 1's neighbour pauses it, and packets that came in by port 0 wait there.
fn pause(b: &mut Breaker, d: &mut Notes) {
    d.paused = vec![1];
    d.waiting.insert((0, 1, 0));
    b.received(d, 1, &PfcFrame::single(3, u16::MAX).into());
}

fn resume(b: &mut Breaker, d: &mut Notes) {
    d.paused.clear();
    b.received(d, 1, &PfcFrame::single(3, 0).into());
}

fn poll(b: &mut Breaker, d: &mut Notes) {
    let timer = b.poll_of(1, 0);
    b.timer(d, timer);
}

/// A probe arrives by a port at `us`; the calls 2 us later, and not before.
fn probe(b: &mut Breaker, d: &mut Notes, us: Time, port: u32, frame: ProbeFrame) -> Vec<String> {
    assert!(at(b, d, us, |b, d| b.on_probe(d, port, &frame)).is_empty());
    at(b, d, us + 2, |b, d| b.timer(d, b.inbox_of(port)))
}

fn frame(draw: u32, port: u32, path: &[u32]) -> ProbeFrame {
    let mut ports = Nodes::default();
    path.iter().rev().for_each(|&port| assert!(ports.push_front(port)));
    ProbeFrame { word: Word::Probe, priority: 3, id: Identifier { draw, port }, ports }
}

#[test]
fn two_polls_suspect_and_each_later_one_sends_a_probe() {
    let (mut b, mut d) = breaker(Cure::Reroute);
    at(&mut b, &mut d, 5, pause);
    assert!(at(&mut b, &mut d, 13, poll).is_empty());
    assert_eq!(at(&mut b, &mut d, 23, poll), ["Probe 1 0:1 []"]);
    // A later identifier is drawn, above that of a first probe.
    let later = at(&mut b, &mut d, 33, poll);
    assert!(later.len() == 1 && !later[0].starts_with("Probe 1 0:"), "{later:?}");
    // A break, however short, begins all anew.
    at(&mut b, &mut d, 40, resume);
    at(&mut b, &mut d, 41, pause);
    assert!(at(&mut b, &mut d, 43, poll).is_empty());
    assert_eq!(at(&mut b, &mut d, 53, poll), ["Probe 1 0:1 []"]);
    // So does a queue that is empty at a poll.
    d.backlog = 0;
    assert!(at(&mut b, &mut d, 63, poll).is_empty());
    d.backlog = 1;
    assert!(at(&mut b, &mut d, 73, poll).is_empty());
    assert_eq!(b.tally, Tally { frames: 3, bytes: 192, ..Tally::default() });
    assert_eq!(b.found, []);
}

#[test]
fn the_smaller_identifier_continues_where_its_packets_wait() {
    let (mut b, mut d) = breaker(Cure::Reroute);
    at(&mut b, &mut d, 5, pause);
    at(&mut b, &mut d, 13, poll);
    assert_eq!(at(&mut b, &mut d, 23, poll), ["Probe 1 0:1 []"]);
    // Larger than port 1's own; smaller; larger than that; and from where nothing waits.
    assert!(probe(&mut b, &mut d, 24, 0, frame(0, 9, &[])).is_empty());
    assert_eq!(probe(&mut b, &mut d, 26, 0, frame(0, 0, &[])), ["Probe 1 0:0 []"]);
    assert!(probe(&mut b, &mut d, 28, 0, frame(0, 0, &[])).is_empty());
    // Each poll begins anew, with its own identifier, which was drawn.
    at(&mut b, &mut d, 33, poll);
    assert_eq!(probe(&mut b, &mut d, 34, 0, frame(0, 9, &[])), ["Probe 1 0:9 []"]);
    assert!(probe(&mut b, &mut d, 36, 2, frame(0, 0, &[])).is_empty());
    // A queue that goes passes nothing on.
    at(&mut b, &mut d, 40, resume);
    assert!(probe(&mut b, &mut d, 41, 0, frame(0, 0, &[])).is_empty());
    assert_eq!(b.found, []);
}

#[test]
fn a_probe_that_is_back_reroutes_until_the_pause_ends() {
    let (mut b, mut d) = breaker(Cure::Reroute);
    d.rerouted = (4, 1);
    at(&mut b, &mut d, 5, pause);
    at(&mut b, &mut d, 13, poll);
    at(&mut b, &mut d, 23, poll);
    assert_eq!(probe(&mut b, &mut d, 25, 0, frame(0, 1, &[])), ["reroute 0 1/0"]);
    d.rerouted = (0, 1);
    assert_eq!(probe(&mut b, &mut d, 35, 0, frame(7, 1, &[])), ["reroute 0 1/0"]);
    let found = Found { at: 27 * US, port: 1, lane: 0, until: None, attempts: 2 };
    assert_eq!(b.found, [found]);
    at(&mut b, &mut d, 40, resume);
    assert_eq!(b.found, [Found { until: Some(40 * US), ..found }]);
    assert_eq!((b.tally.rerouted, b.tally.stayed, b.tally.failed), (4, 2, 1));
}

#[test]
fn room_is_made_along_the_path_and_taken_back() {
    let (mut b, mut d) = breaker(Cure::Room(5_000));
    d.enlarged = Some(7_000);
    d.over.insert((0, 0));
    at(&mut b, &mut d, 5, pause);
    at(&mut b, &mut d, 13, poll);
    assert_eq!(at(&mut b, &mut d, 23, poll), ["Probe 1 0:1 [1]"]);
    // From port 1 over 50 and 60, and back. Its upstream neighbour resumes at once, and the other devices are
    // informed, in the order of the flow.
    let back = probe(&mut b, &mut d, 25, 0, frame(0, 1, &[60, 50, 1]));
    assert_eq!(back, ["enlarge 0/0 5000", "send 0 [(3, 0)]", "Room 1 0:1 [50, 60]"]);
    // A probe from outside of the loop, which has been here before.
    let back = probe(&mut b, &mut d, 29, 0, frame(0, 99, &[60, 50, 1, 99]));
    assert_eq!(back, ["enlarge 0/0 5000", "send 0 [(3, 0)]", "Room 1 0:99 [50, 60]"]);
    // At polls it tries to take the room back, until the account has drained.
    let ingress = |b: &mut Breaker, d: &mut Notes| {
        let timer = b.poll_of(0, 0);
        b.timer(d, timer);
    };
    assert_eq!(at(&mut b, &mut d, 33, ingress), ["shrink 0/0"]);
    d.shrinks = true;
    assert_eq!(at(&mut b, &mut d, 43, ingress), ["shrink 0/0"]);
    assert!(at(&mut b, &mut d, 53, ingress).is_empty());
    assert_eq!((b.tally.enlarged, b.tally.enlarged_bytes, b.tally.failed), (2, 14_000, 0));
}

#[test]
fn an_informed_device_makes_room_and_informs_the_next() {
    let (mut b, mut d) = breaker(Cure::Room(5_000));
    d.enlarged = Some(7_000);
    d.over.insert((0, 0));
    let room_frame = |ports: &[u32]| ProbeFrame { word: Word::Room, ..frame(0, 99, ports) };
    let done = ["enlarge 0/0 5000", "send 0 [(3, 0)]"];
    assert_eq!(probe(&mut b, &mut d, 5, 0, room_frame(&[1, 60]))[..2], done);
    assert_eq!(probe(&mut b, &mut d, 9, 0, room_frame(&[1, 60]))[2], "Room 1 0:99 [60]");
    // The master follows the last one; another device's port is not for this one.
    assert_eq!(probe(&mut b, &mut d, 15, 0, room_frame(&[1])), done);
    assert_eq!(probe(&mut b, &mut d, 19, 0, room_frame(&[70, 60])), done);
    // A queue that does not pause gets no room; nor does any queue if the pool has none.
    d.over.clear();
    assert_eq!(probe(&mut b, &mut d, 25, 0, room_frame(&[1, 60])), ["Room 1 0:99 [60]"]);
    (d.enlarged, d.over) = (None, [(0, 0)].into());
    assert_eq!(probe(&mut b, &mut d, 29, 0, room_frame(&[1])), ["enlarge 0/0 5000"]);
    assert_eq!(b.tally.failed, 1);
}

#[test]
fn a_loop_too_long_for_a_probe_is_not_found() {
    let (mut b, mut d) = breaker(Cure::Room(5_000));
    at(&mut b, &mut d, 5, pause);
    let path: Vec<u32> = (100..131).collect();
    assert_eq!(probe(&mut b, &mut d, 7, 0, frame(0, 130, &path)).len(), 1);
    let path: Vec<u32> = (100..132).collect();
    assert!(probe(&mut b, &mut d, 9, 0, frame(0, 0, &path)).is_empty());
}

/// The input of link sizes and oracles: PFC runs below it.
#[test]
fn it_rests_on_pfc() {
    let pfc = PfcParams { quanta: 1000, response_time: 0, relay: Relay::Accounts };
    let params =
        BreakerParams { pfc, cure: Cure::Reroute, period: 1, latency: 1, turn: 0, first: vec![], seed: 1 };
    assert_eq!(params.pfc(), Some(&pfc));
}
