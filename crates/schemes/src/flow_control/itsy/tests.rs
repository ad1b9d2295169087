//! A switch with the ports 0 to 2, one lane of priority 3; its own number is 0.

use super::super::notes::Notes;
use super::super::pfc::Relay;
use super::*;
use xoff_wire::pfc::PfcFrame;

const US: Time = 1_000_000;

fn itsy(resolution: Resolution) -> (Itsy, Notes) {
    let pfc = PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts };
    let params = ItsyParams { pfc, numbers: vec![0, 1, 2], resolution };
    (Itsy::new(&params, 3, &[3]), Notes { ports: vec![0, 1, 2], ..Notes::default() })
}

/// The calls of `act` to the device, except for the timers of PFC.
fn said(itsy: &mut Itsy, device: &mut Notes, act: impl Fn(&mut Itsy, &mut Notes)) -> Vec<String> {
    act(itsy, device);
    let own = |line: &String| {
        let timer = line.split(' ').nth(1).and_then(|t| t.parse().ok());
        !(line.starts_with("arm") || line.starts_with("cancel"))
            || timer.is_some_and(|t: usize| t >= itsy.pfc.timers())
    };
    device.log.drain(..).filter(own).collect()
}

fn over(port: u32) -> impl Fn(&mut Itsy, &mut Notes) {
    move |itsy, device| {
        device.over.insert((port, 0));
        itsy.crossed(device, port, 0, Crossing::Over);
    }
}

fn under(port: u32) -> impl Fn(&mut Itsy, &mut Notes) {
    move |itsy, device| {
        device.over.remove(&(port, 0));
        itsy.crossed(device, port, 0, Crossing::Under);
    }
}

/// A pause comes to `port`.
fn paused(port: u32) -> impl Fn(&mut Itsy, &mut Notes) {
    move |itsy, device| {
        device.paused.push(port as u16);
        itsy.received(device, port, &ControlFrame::Pfc(PfcFrame::single(3, 1_000)));
    }
}

fn goes(port: u32) -> impl Fn(&mut Itsy, &mut Notes) {
    move |itsy, device| {
        device.paused.retain(|&p| u32::from(p) != port);
        itsy.received(device, port, &ControlFrame::Pfc(PfcFrame::single(3, 0)));
    }
}

/// A check of priority 3 comes to `port`.
fn check(port: u32, sid: u32, qid: u16, number: u16) -> impl Fn(&mut Itsy, &mut Notes) {
    let check = Check { priority: 3, sid, qid, number };
    move |itsy, device| itsy.received(device, port, &ControlFrame::Itsy(ItsyFrame::alone(check)))
}

/// The timer of the action on the queue of `port`.
fn acts(port: u32) -> impl Fn(&mut Itsy, &mut Notes) {
    move |itsy, device| {
        let timer = itsy.pfc.timers() as u32 + port;
        itsy.timer(device, timer);
    }
}

/// Port 0 is a trigger, and its packets wait for port 1, which is paused.
fn triggered(resolution: Resolution) -> (Itsy, Notes) {
    let (mut i, mut d) = itsy(resolution);
    d.waiting.insert((0, 1, 0));
    assert_eq!(said(&mut i, &mut d, over(0)), ["send 0 [(3, 1000)]", "check 0 0.3#1"]);
    assert_eq!(said(&mut i, &mut d, paused(1)), ["pause 1/0"]);
    (i, d)
}

#[test]
fn a_trigger_recognises_its_own_check_and_drops_all_others() {
    let (mut i, mut d) = triggered(Resolution::Lossy);
    assert_eq!(said(&mut i, &mut d, check(1, 7, 11, 1)), [""; 0]);
    // Its own check of an earlier pause does not count.
    assert_eq!(said(&mut i, &mut d, check(1, 0, 3, 0)), [""; 0]);
    assert_eq!((i.discarded, i.detections.len()), (1, 0));
    d.now = 4 * US;
    // Six timers of PFC.
    assert_eq!(said(&mut i, &mut d, check(1, 0, 3, 1)), ["arm 6 4000000"]);
    let [found] = &i.detections[..] else { panic!("{:?}", i.detections) };
    assert_eq!((found.at, found.port, found.egress, found.ended), (4 * US, 0, 1, None));
    assert_eq!(said(&mut i, &mut d, acts(0)), ["drop 0/0 at 1"]);
    // That brings it to XON; new packets from upstream fill it again, and it acts again.
    assert_eq!(said(&mut i, &mut d, under(0)), ["send 0 [(3, 0)]"]);
    assert_eq!(said(&mut i, &mut d, over(0)), ["send 0 [(3, 1000)]", "arm 6 4000000"]);
    assert_eq!(said(&mut i, &mut d, acts(0)), ["drop 0/0 at 1"]);
    d.now = 9 * US;
    assert_eq!(said(&mut i, &mut d, goes(1)), ["resume 1/0"]);
    assert_eq!((i.detections[0].acted, i.detections[0].ended), (2, Some(9 * US)));
    // From now on it is a queue as any other.
    said(&mut i, &mut d, under(0));
    assert_eq!(said(&mut i, &mut d, over(0)), ["send 0 [(3, 1000)]", "check 0 0.3#2"]);
    assert_eq!(i.triggers.iter().map(|t| t.until).collect::<Vec<_>>(), [Some(4 * US), None]);
}

#[test]
fn a_spreader_passes_each_check_on_once() {
    let (mut i, mut d) = itsy(Resolution::Lossy);
    // A check that arrives before it pauses is stored, and the later one of a queue counts.
    said(&mut i, &mut d, paused(1));
    for number in [4, 5] {
        assert_eq!(said(&mut i, &mut d, check(1, 7, 11, number)), [""; 0]);
    }
    d.waiting.insert((0, 1, 0));
    assert_eq!(said(&mut i, &mut d, over(0)), ["send 0 [(3, 1000)]", "check 0 7.11#5"]);
    assert_eq!(said(&mut i, &mut d, check(1, 7, 11, 5)), [""; 0]);
    assert_eq!(said(&mut i, &mut d, check(1, 8, 11, 5)), ["check 0 8.11#5"]);
    // Port 2 waits there, too, from now on: it pauses already, as a trigger, and drops both.
    assert_eq!(said(&mut i, &mut d, over(2)), ["send 2 [(3, 1000)]", "check 2 0.19#1"]);
    d.waiting.insert((2, 1, 0));
    said(&mut i, &mut d, |i, d| i.waits(d, 2, 1, 0));
    assert_eq!(i.discarded, 2);
    // A refresh says all again.
    let refresh = (0..i.pfc.timers() as u32).find(|&t| i.pfc.refreshes(t) == Some((0, 0))).unwrap();
    let repeats = |i: &mut Itsy, d: &mut Notes| i.timer(d, refresh);
    assert_eq!(said(&mut i, &mut d, repeats), ["send 0 [(3, 1000)]", "check 0 7.11#5", "check 0 8.11#5"]);
    // A resume deletes the stored checks; a check after it comes too late.
    said(&mut i, &mut d, goes(1));
    assert_eq!(said(&mut i, &mut d, check(1, 7, 11, 6)), [""; 0]);
    said(&mut i, &mut d, under(0));
    said(&mut i, &mut d, paused(1));
    assert_eq!(said(&mut i, &mut d, over(0)), ["send 0 [(3, 1000)]"]);
    assert_eq!(i.triggers.len(), 1);
}

#[test]
fn room_is_given_while_the_pool_has_it_and_taken_back_at_xon() {
    let (mut i, mut d) = triggered(Resolution::Lossless(5_000));
    said(&mut i, &mut d, check(1, 0, 3, 1));
    d.enlarged = None;
    assert_eq!(said(&mut i, &mut d, acts(0)), ["enlarge 0/0 5000"]);
    assert_eq!((i.detections[0].acted, i.detections[0].refused), (0, 1));
    // With the next refresh it is tried again.
    d.enlarged = Some(6_000);
    let refresh = (0..i.pfc.timers() as u32).find(|&t| i.pfc.refreshes(t) == Some((0, 0))).unwrap();
    let repeats = |i: &mut Itsy, d: &mut Notes| i.timer(d, refresh);
    assert_eq!(said(&mut i, &mut d, repeats), ["send 0 [(3, 1000)]", "check 0 0.3#1", "arm 6 0"]);
    assert_eq!(said(&mut i, &mut d, acts(0)), ["enlarge 0/0 5000", "send 0 [(3, 0)]"]);
    assert_eq!((i.detections[0].acted, i.detections[0].room), (1, 6_000));
    // Nothing is done where it is not over.
    d.over.clear();
    assert_eq!(said(&mut i, &mut d, acts(0)), [""; 0]);
    assert_eq!(said(&mut i, &mut d, goes(1)), ["shrink 0/0", "resume 1/0"]);
    over(0)(&mut i, &mut d);
    d.log.clear();
    d.shrinks = true;
    assert_eq!(said(&mut i, &mut d, under(0)), ["send 0 [(3, 0)]", "shrink 0/0"]);
    over(0)(&mut i, &mut d);
    d.log.clear();
    assert_eq!(said(&mut i, &mut d, under(0)), ["send 0 [(3, 0)]"]);
}

#[test]
fn a_failed_link_ends_its_deadlocks() {
    let (mut i, mut d) = triggered(Resolution::Lossy);
    said(&mut i, &mut d, check(1, 0, 3, 1));
    d.now = 7 * US;
    said(&mut i, &mut d, |i, d| i.link_failed(d, 0, 0));
    assert_eq!((i.detections[0].ended, i.triggers[0].until), (Some(7 * US), Some(7 * US)));
    assert_eq!(said(&mut i, &mut d, acts(0)), [""; 0]);
    // It is up again and over: its packets wait for the paused queue.
    said(&mut i, &mut d, |i, d| i.link_recovered(d, 0, 0, true, 8 * US));
    assert!(i.queues[0].pausing && i.queues[0].trigger.is_none());
}

#[test]
fn checks_ride_on_pauses_and_hold_none_up() {
    let alone = |number| ControlFrame::Itsy(ItsyFrame::alone(Check { priority: 3, sid: 7, qid: 11, number }));
    let (pause, resume) =
        (ControlFrame::Pfc(PfcFrame::single(3, 9)), ControlFrame::Pfc(PfcFrame::single(3, 0)));
    let mut waiting = pause;
    assert!(waiting.merge(&alone(1)));
    assert_eq!((waiting.pauses(), waiting.beyond_pfc(), alone(1).beyond_pfc()), (Some(true), 0, 64));
    // A second check is a frame of its own, the same one is not.
    assert!(!waiting.merge(&alone(2)) && waiting.merge(&alone(1)));
    assert!(waiting.merge(&resume));
    assert_eq!(waiting.pauses(), Some(false));
    // A check in a separate frame is overtaken.
    let mut check = alone(1);
    assert!(!check.merge(&pause) && pause.overtakes(&check) && !check.overtakes(&pause));
    assert!(!pause.overtakes(&waiting) && check.merge(&alone(1)) && !check.merge(&alone(2)));
    assert_eq!(check.pauses(), None);
}
