use super::super::notes::Notes;
use super::*;

const HOP: Time = 2_000_000; // 2 us at 100 Gbit/s: 25 kB

fn bfc(queues: u16, change: impl Fn(&mut BfcParams)) -> (Bfc, Notes) {
    let mut params = BfcParams {
        queues,
        host_queues: queues - 1,
        virtual_flows: 1 << 14,
        hop_rtt: vec![HOP; 4],
        keep: 2,
        reuse_kept: false,
        resume_interval: 0,
        acks_in_queues: false,
        lowest_first: false,
        response_time: 0,
        pause_time: 0,
    };
    change(&mut params);
    (Bfc::new(&params, 4, &[3]), Notes { active: 1, ..Notes::default() })
}

/// A packet of `flow` from queue `upstream` of the neighbour at port 1, for port 0.
fn packet(flow: u32, upstream: u16) -> QueueEntry {
    QueueEntry {
        port: 0,
        lane: 0,
        queue: 0,
        own: false,
        size: 1_000,
        queued: 0,
        hop: 0,
        flow,
        response: false,
        ingress: Some(1),
        upstream,
        passed: 0,
        counted: false,
        pausing: false,
    }
}

/// A packet comes in, with so many bytes in its queue then.
fn enter(bfc: &mut Bfc, device: &mut Notes, flow: u32, upstream: u16, queued: u64) -> QueueEntry {
    let mut p = packet(flow, upstream);
    p.queue = bfc.classify(device, &mut p);
    p.queued = queued;
    bfc.enqueued(device, &mut p);
    p
}

#[test]
fn flows_get_queues_of_their_own_until_there_are_none() {
    let (mut bfc, mut device) = bfc(5, |_| {});
    let queues: Vec<u16> = (0..4).map(|f| enter(&mut bfc, &mut device, f, 1, 0).queue).collect();
    assert_eq!(queues, [1, 2, 3, 4]);
    // The same flow again: the same queue. A fifth flow collides.
    assert_eq!(enter(&mut bfc, &mut device, 2, 1, 0).queue, 3);
    assert!((1..5).contains(&enter(&mut bfc, &mut device, 4, 1, 0).queue));
}

#[test]
fn a_queue_is_kept_for_a_while_and_then_given_away() {
    for reuse in [false, true] {
        let (mut bfc, mut device) = bfc(3, |p| p.reuse_kept = reuse);
        let mut first = enter(&mut bfc, &mut device, 0, 1, 0);
        assert_eq!(first.queue, 1);
        bfc.left(&mut device, &mut first);
        device.now = 2 * HOP - 1;
        // Another flow: queue 1 is empty, and still kept.
        let other = enter(&mut bfc, &mut device, 1, 1, 0).queue;
        assert_eq!(other, if reuse { 1 } else { 2 });
        // The first flow comes back in time, then too late.
        assert_eq!(bfc.classify(&mut device, &mut packet(0, 1)), 1);
        device.now = 2 * HOP;
        assert_eq!(bfc.classify(&mut device, &mut packet(0, 1)), 1);
        device.now = 2 * HOP + 1;
        assert_eq!(bfc.classify(&mut device, &mut packet(0, 1)), if reuse { 2 } else { 1 });
    }
}

#[test]
fn a_paused_queue_is_not_given_to_a_new_flow() {
    let (mut bfc, mut device) = bfc(4, |_| {});
    device.paused = vec![1];
    assert_eq!(enter(&mut bfc, &mut device, 0, 1, 0).queue, 2);
}

#[test]
fn the_threshold_is_the_hop_bdp_over_the_active_queues() {
    let (mut bfc, mut device) = bfc(32, |_| {});
    // 25 kB with one active queue: not above it.
    assert!(!enter(&mut bfc, &mut device, 0, 9, 25_000).counted);
    assert!(enter(&mut bfc, &mut device, 0, 9, 25_001).counted);
    assert_eq!(device.log, ["stop 1 Queue(9)"]);
    device.active = 3;
    assert!(!enter(&mut bfc, &mut device, 1, 8, 8_333).counted);
    assert!(enter(&mut bfc, &mut device, 1, 8, 8_334).counted);
    // A packet from queue 0 is never counted: that queue is never paused.
    assert!(!enter(&mut bfc, &mut device, 1, 0, 90_000).counted);
    // None active (all paused) counts as one.
    device.active = 0;
    assert!(!enter(&mut bfc, &mut device, 2, 7, 25_000).counted);
    assert_eq!(device.log, ["stop 1 Queue(9)", "stop 1 Queue(8)"]);
}

#[test]
fn an_upstream_queue_is_paused_by_its_first_counted_packet_and_resumed_after_its_last() {
    let (mut bfc, mut device) = bfc(32, |_| {});
    // Two flows of different queues here, from the same queue upstream.
    let mut a = enter(&mut bfc, &mut device, 0, 5, 30_000);
    let mut b = enter(&mut bfc, &mut device, 1, 5, 30_000);
    let mut free = enter(&mut bfc, &mut device, 2, 5, 100);
    assert_ne!(a.queue, b.queue);
    bfc.left(&mut device, &mut a);
    bfc.left(&mut device, &mut free);
    assert_eq!(device.log, ["stop 1 Queue(5)"]);
    bfc.left(&mut device, &mut b);
    assert_eq!(device.log, ["stop 1 Queue(5)", "go 1 Queue(5)"]);
}

#[test]
fn resumes_of_one_queue_keep_their_distance() {
    let (mut bfc, mut device) = bfc(2, |p| p.resume_interval = 1_000);
    // One queue here, three upstream.
    let mut packets: Vec<_> = (1..4).map(|up| enter(&mut bfc, &mut device, 0, up, 30_000)).collect();
    device.log.clear();
    device.now = 50;
    for p in &mut packets {
        bfc.left(&mut device, p);
    }
    assert_eq!(device.log, ["go 1 Queue(1)", "arm 0 1050", "arm 0 1050"]);
    // Counted anew before its turn: no frame, and the queue is still paused.
    device.log.clear();
    let mut again = enter(&mut bfc, &mut device, 0, 2, 30_000);
    device.now = 1_050;
    bfc.timer(&mut device, 0);
    device.now = 2_050;
    bfc.timer(&mut device, 0);
    assert_eq!(device.log, ["arm 0 2050", "go 1 Queue(3)"]);
    device.log.clear();
    device.now = 9_000;
    bfc.left(&mut device, &mut again);
    assert_eq!(device.log, ["go 1 Queue(2)"]);
}

#[test]
fn own_flows_have_queues_of_their_own_numbers() {
    let (mut bfc, mut device) = bfc(8, |_| {});
    let mut p = QueueEntry { own: true, ingress: None, ..packet(0, 0) };
    p.queue = bfc.classify(&mut device, &mut p);
    assert_eq!(p.queue, 8 + 1);
    bfc.enqueued(&mut device, &mut p);
    // A relayed flow of the same port does not see it.
    assert_eq!(enter(&mut bfc, &mut device, 1, 1, 0).queue, 1);
    bfc.left(&mut device, &mut p);
    assert!(device.log.is_empty());
}

/// After a link failure the neighbour receives the present state.
#[test]
fn a_recovered_neighbour_receives_the_present_pauses() {
    let (mut bfc, mut device) = bfc(32, |p| p.pause_time = 1_000_000);
    let mut a = enter(&mut bfc, &mut device, 0, 5, 30_000);
    let mut b = enter(&mut bfc, &mut device, 1, 6, 30_000);
    bfc.lasting.link_failed(&mut device, 1, 0);
    // Meanwhile packets from before leave; frames sent then are lost.
    bfc.left(&mut device, &mut a);
    device.log.clear();
    bfc.lasting.link_recovered(&mut device, 1);
    assert_eq!(device.log, ["stop 1 Queue(6)", "arm 2 500000"]);
    device.log.clear();
    bfc.left(&mut device, &mut b);
    assert_eq!(device.log, ["cancel 2", "go 1 Queue(6)"]);
    // And it counts from nothing again.
    enter(&mut bfc, &mut device, 0, 5, 30_000);
    assert_eq!(device.log[2..], ["arm 2 500000", "stop 1 Queue(5)"]);
}

/// Timers of pauses that last come after those of resumes.
#[test]
fn every_timer_that_is_armed_is_counted() {
    let (mut bfc, mut device) = bfc(32, |p| p.pause_time = 1_000_000);
    enter(&mut bfc, &mut device, 0, 1, 100_000);
    let armed =
        device.log.iter().filter_map(|line| line.strip_prefix("arm ")?.split(' ').next()?.parse().ok());
    let armed: Vec<usize> = armed.collect();
    assert!(!armed.is_empty() && armed.iter().all(|&timer| timer < bfc.timers()), "{:?}", device.log);
    assert!(armed.iter().any(|&timer| timer >= bfc.due.len()), "{:?}", device.log);
}
