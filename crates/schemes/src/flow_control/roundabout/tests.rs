//! One device, ports 0 to 3, two priorities. Frames are written down by the device of `notes`.

use super::super::notes::Notes;
use super::super::pfc::Relay;
use super::*;

fn roundabout() -> (Roundabout, Notes) {
    let params = RoundaboutParams {
        pfc: PfcParams { quanta: 1_000, response_time: 0, relay: Relay::Accounts },
        numbers: (0..4).collect(),
        seed: 0,
        largest: 1_000,
        patience: 1_000_000,
        turn: 1_000,
        audit: true,
        dissolves: false,
    };
    let device = Notes { ports: vec![0, 1, 2, 3], ..Notes::default() };
    (Roundabout::new(&params, 4, &[3, 5]), device)
}

fn t(sid: u32, rand: u32) -> Triplet {
    Triplet { sid, qid: 1, rand, hops: 1 }
}

fn frame(opcode: Opcode, quanta: Option<u16>, triplet: Triplet) -> RoundaboutFrame {
    RoundaboutFrame { priority: 3, quanta, opcode, triplet, nodes: Nodes::default() }
}

/// Triplets differ by switch, port and priority of their queues.
#[test]
fn every_queue_is_a_source_of_its_own() {
    let (roundabout, device) = roundabout();
    let sources: Vec<(u32, u16)> =
        (0..4).flat_map(|port| [0, 1].map(|lane| roundabout.source(&device, port, lane))).collect();
    assert_eq!(sources, [3, 5, 11, 13, 19, 21, 27, 29].map(|qid| (0, qid)));
}

/// An INVALID withdraws the triplet of the egress queue, if it is the same; the queue stays paused.
#[test]
fn an_invalid_triplet_is_forgotten() {
    let (mut roundabout, mut device) = roundabout();
    let at = roundabout.at(2, 0);
    roundabout.received(&mut device, 2, &frame(Opcode::Probe, Some(9), t(7, 1)).into());
    assert_eq!(roundabout.told[at], Some(t(7, 1)));
    device.log.clear();
    roundabout.received(&mut device, 2, &frame(Opcode::Invalid, None, t(7, 2)).into());
    assert_eq!(roundabout.told[at], Some(t(7, 1)));
    roundabout.received(&mut device, 2, &frame(Opcode::Invalid, None, t(7, 1)).into());
    assert_eq!(roundabout.told[at], None);
    assert!(!device.log.iter().any(|line| line.starts_with("resume")), "{:?}", device.log);
}

/// An announcement that has come around closes the latest detection of its triplet, and no other.
#[test]
fn an_announcement_closes_its_own_detection() {
    let (mut roundabout, mut device) = roundabout();
    device.waiting.insert((1, 2, 0));
    device.now = 70;
    // Ingress queue 1 pauses, and draws a triplet.
    roundabout.crossed(&mut device, 1, 0, Crossing::Over);
    let at = roundabout.at(1, 0);
    let own = roundabout.registers[at].init.get().expect("it has drawn");
    let found = |triplet, port| Detection { at: 1, port, lane: 0, triplet, all_know: None };
    roundabout.detections = vec![found(own, 0), found(own, 1), found(t(9, 9), 1)];
    roundabout.received(&mut device, 2, &frame(Opcode::Announcement, None, own).into());
    let closed: Vec<Option<Time>> = roundabout.detections.iter().map(|d| d.all_know).collect();
    assert_eq!(closed, [None, Some(70), None]);
}

/// A switch that cannot go on with an attempt says so upstream, by a number in the place of `rand`.
#[test]
fn a_refusal_gives_up() {
    let (mut roundabout, mut device) = roundabout();
    let mut build = frame(Opcode::Build, None, t(7, 1));
    // From switch 9 to this one, 0, and on to switch 5, to which it knows no path.
    assert!([5, 0, 9].into_iter().all(|switch| build.nodes.push_front(switch)));
    roundabout.received(&mut device, 3, &build.into());
    assert_eq!(device.log, ["Check 3 None 7:40"]);
}

/// Ingress port 1 and egress port 2 are the coordinator's in a loop with switch 9; its triplet.
fn leads(roundabout: &mut Roundabout, device: &mut Notes) -> Triplet {
    device.waiting.insert((1, 2, 0));
    device.paused.push(2);
    roundabout.crossed(device, 1, 0, Crossing::Over);
    let at = roundabout.at(1, 0);
    let own = roundabout.registers[at].init.get().expect("it has drawn");
    device.log.clear();
    let mut collect = frame(Opcode::Collect, None, own);
    assert!([0, 9].into_iter().all(|switch| collect.nodes.push_front(switch)));
    roundabout.received(device, 2, &collect.into());
    assert!(device.log.iter().any(|line| line.starts_with("Build 2")), "{:?}", device.log);
    device.log.clear();
    own
}

/// The coordinator agrees when the route of its own attempt has come around, and not that of another.
#[test]
fn a_route_that_has_come_around_is_the_coordinators_own() {
    let (mut roundabout, mut device) = roundabout();
    let own = leads(&mut roundabout, &mut device);
    for (attempt, agrees) in [(t(9, 9), false), (own, true)] {
        device.log.clear();
        let mut build = frame(Opcode::Build, None, attempt);
        assert!([0, 9].into_iter().all(|switch| build.nodes.push_front(switch)));
        roundabout.received(&mut device, 1, &build.into());
        assert_eq!(device.log.iter().any(|line| line.starts_with("Check 2")), agrees, "{:?}", device.log);
    }
}

/// A grant is of a packet or more, or completes one. The largest packet has 1,000 B.
#[test]
fn a_grant_is_worth_a_frame() {
    let (mut roundabout, mut device) = roundabout();
    device.headroom = (400, 0);
    let own = leads(&mut roundabout, &mut device);
    let credit = Triplet { rand: 5_000, ..own };
    roundabout.received(&mut device, 2, &frame(Opcode::Credit, None, credit).into());
    // The first grant is due however little it is.
    let granted = |device: &mut Notes| -> Vec<u32> {
        let of = |line: &String| {
            line.strip_prefix("Credit 1 None ").map(|rest| rest.split(':').nth(1).unwrap().parse().unwrap())
        };
        device.log.drain(..).filter_map(|line| of(&line)).collect()
    };
    assert_eq!(granted(&mut device), [400]);
    for (headroom, grants) in [(999, &[][..]), (1_000, &[600]), (1_100, &[]), (1_999, &[]), (2_000, &[1_000])]
    {
        device.headroom = (headroom, 0);
        roundabout.freed(&mut device, 3, 2, 0, 1);
        assert_eq!(granted(&mut device), grants, "{headroom} B of headroom");
    }
}

/// Packets of other loops and of none, which wait outside, take no more than the free bytes at the beginning
/// of the round, less the largest packet; packets that leave make room again.
#[test]
fn packets_outside_a_loop_leave_room_for_a_packet() {
    let (mut roundabout, mut device) = roundabout();
    (device.headroom, device.backlog) = ((4_000, 0), 1);
    let own = leads(&mut roundabout, &mut device);
    let credit = Triplet { rand: 5_000, ..own };
    roundabout.received(&mut device, 2, &frame(Opcode::Credit, None, credit).into());
    let mut passes = |roundabout: &mut Roundabout, flow| {
        let packet = LoopPacket { ingress: 1, egress: 3, lane: 0, flow, size: 1_000, marked: false };
        roundabout.passes(&mut device, &packet)
    };
    let first: Vec<LoopDecision> = (0..5).map(|flow| passes(&mut roundabout, flow)).collect();
    let (on, round) = (LoopDecision::Continue, LoopDecision::Circulate(2));
    assert_eq!(first, [on, on, on, round, round]);
    roundabout.freed(&mut Notes { headroom: (4_000, 0), ..Notes::default() }, 1, 3, 0, 1_000);
    assert_eq!([4, 5, 6].map(|flow| passes(&mut roundabout, flow)), [round, on, round]);
    // A packet that left by the loop's own port did not wait outside.
    roundabout.freed(&mut Notes { headroom: (4_000, 0), ..Notes::default() }, 1, 2, 0, 1_000);
    assert_eq!(passes(&mut roundabout, 7), round);
}

/// After a link has recovered, an account that is over pauses anew with a triplet; one that is not over sends
/// nothing.
#[test]
fn an_account_that_is_over_pauses_the_link_that_recovers() {
    for over in [true, false] {
        let (mut roundabout, mut device) = roundabout();
        roundabout.link_recovered(&mut device, 1, 0, over, 500);
        let pauses = device.log.iter().filter(|line| line.starts_with("Probe 1 Some(1000)"));
        assert_eq!(pauses.count(), usize::from(over), "{:?}", device.log);
        assert_eq!(roundabout.registers[roundabout.at(1, 0)].pauses(), over);
        assert!(device.log.iter().any(|line| line.starts_with("hold 1/0")), "{:?}", device.log);
    }
}
