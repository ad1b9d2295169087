use super::*;
use crate::transport::seam::{Arrival, Named, Numbers};
use xoff_kernel::random::Stream;

pub const P: RudParams = RudParams {
    rto: 1_000,
    ack_every: 4,
    retries: None,
    nack_retries: None,
    infers_losses: false,
    probes: None,
};
const NOTHING: [(u32, bool); 0] = [];

fn sender(total: u32, cwnd: u32) -> (Numbers, Source) {
    (Numbers::new(total, cwnd), Source::new(cwnd))
}

/// Sends all allowed packets. Returns their numbers, and whether they ask for an ACK.
fn send_all(n: &mut Numbers, s: &mut Source, now: Time) -> Vec<(u32, bool)> {
    let mut sent = Vec::new();
    while n.can_send() {
        let packet = n.send();
        let asks = s.on_sent(&P, n, packet, true, now);
        sent.push((packet.0, asks));
    }
    sent
}

fn names(first: u32, packets: &[u32]) -> Named {
    Named { first, bits: packets.iter().fold(0, |bits, psn| bits | 1 << (psn - first)) }
}

#[test]
fn trimmed_packets_go_first_and_inside_the_window() {
    let (mut n, mut s) = sender(10, 5);
    let first: Vec<_> = (0..5).map(|psn| (psn, psn == 4)).collect();
    assert_eq!(send_all(&mut n, &mut s, 0), first, "the one that fills the window asks for an ACK");
    // 1 and 3 are trimmed, and 4 has overtaken the others.
    assert!(s.on_nack(&P, &mut n, 3) && !s.on_nack(&P, &mut n, 3) && s.on_nack(&P, &mut n, 1));
    assert_eq!(s.in_flight(), 3);
    assert!(!s.on_ack(&mut n, 0, names(1, &[4])));
    assert_eq!((s.in_flight(), s.acknowledged()), (2, 1));
    assert_eq!(send_all(&mut n, &mut s, 1), [(3, true), (1, true), (5, true)]);
    // A smaller window keeps everything back.
    s.set_window(&mut n, 2);
    assert!(s.on_ack(&mut n, 3, names(4, &[4])));
    assert_eq!((n.una, s.in_flight(), s.acknowledged()), (3, 2, 4));
    assert_eq!(send_all(&mut n, &mut s, 2), NOTHING);
    s.set_window(&mut n, 3);
    assert_eq!(send_all(&mut n, &mut s, 2), [(6, true)], "cwnd is below ack_every");
    // 4 has arrived before.
    assert!(s.on_ack(&mut n, 4, Named::default()) && n.una == 5);
    assert_eq!((s.in_flight(), s.acknowledged()), (2, 5));
}

/// The second timeout of a packet comes after twice the time, and a NACK does not count.
#[test]
fn timeouts_double() {
    let (mut n, mut s) = sender(3, 3);
    send_all(&mut n, &mut s, 0);
    s.on_nack(&P, &mut n, 0);
    assert_eq!(send_all(&mut n, &mut s, 500), [(0, true)]);
    assert_eq!(s.deadline(&n), Some(1_000));
    assert_eq!(s.on_time(&P, &mut n, 999), 0);
    assert_eq!(s.on_time(&P, &mut n, 1_000), 2);
    assert_eq!(send_all(&mut n, &mut s, 1_000), [(1, true), (2, true)]);
    assert_eq!(s.deadline(&n), Some(1_500));
    assert_eq!(s.on_time(&P, &mut n, 1_500), 1);
    assert_eq!(send_all(&mut n, &mut s, 1_600), [(0, true)]);
    assert_eq!((s.on_time(&P, &mut n, 2_999), s.on_time(&P, &mut n, 3_000)), (0, 2));
    assert_eq!(s.deadline(&n), Some(3_600), "2,000 after 1,600");
    s.on_ack(&mut n, 0, names(1, &[1]));
    assert_eq!(send_all(&mut n, &mut s, 3_000), [(2, true)], "1 has arrived meanwhile");
    assert_eq!((s.on_time(&P, &mut n, 3_600), s.deadline(&n)), (1, Some(7_000)));
    assert!(s.on_ack(&mut n, 3, Named::default()) && n.complete());
    assert_eq!(s.deadline(&n), None);
    assert_eq!(P.timeout(255), 8 * SECOND);
    assert_eq!(RudParams { rto: 9 * SECOND, ..P }.timeout(3), 9 * SECOND);
}

fn receive(r: &mut Receiver, psn: u32, marked: bool, asks: bool) -> Reception {
    r.receive(4, Arrival { psn, total: 200, marked, asks })
}

/// The first packet has an ACK, then each fourth in any order, and each that is marked, asks or has arrived before.
#[test]
fn acks_name_packets_of_any_order() {
    let mut r = Receiver::default();
    let mut ack = |psn, marked, asks| receive(&mut r, psn, marked, asks).ack;
    assert_eq!(ack(2, false, false), Some(names(1, &[2])));
    assert_eq!([0, 5, 3].map(|psn| ack(psn, false, false)), [None; 3]);
    assert_eq!(ack(7, false, false), Some(names(2, &[2, 3, 5, 7])));
    assert_eq!(ack(9, true, false), Some(names(2, &[2, 3, 5, 7, 9])));
    assert_eq!(ack(80, false, true), Some(names(17, &[80])));
    assert_eq!(ack(5, false, false), Some(names(2, &[2, 3, 5, 7, 9])), "once more");
    // 80 asked for an ACK without gaps, too.
    let rest = (0..80).filter(|psn| ![0, 2, 3, 5, 7, 9, 1].contains(psn));
    for psn in rest {
        ack(psn, false, false);
    }
    assert_eq!(ack(1, false, false), Some(Named { first: 82, bits: 0 }));
    assert_eq!(r.expected, 81);
    assert!(!r.is_missing(80) && r.is_missing(81));
}

/// Any order, in which each packet comes once or twice: it is delivered once, and the ACKs name packets that have
/// arrived. All packets of a word before `psn` that a bitmap covers are named.
#[test]
fn for_any_order_acks_are_true() {
    for seed in 0..200 {
        let mut random = Stream::new(seed, "order", 0);
        let total = 1 + random.below(400) as u32;
        let mut order: Vec<u32> = (0..total).chain((0..total).filter(|_| random.below(9) == 0)).collect();
        let reach = 1 + random.below(100);
        for i in 0..order.len() {
            let other = (i + random.below(reach) as usize).min(order.len() - 1);
            order.swap(i, other);
        }
        let (mut r, mut here) = (Receiver::default(), vec![false; total as usize]);
        for psn in order {
            let marked = random.below(10) == 0;
            let arrival = Arrival { psn, total, marked, asks: psn + 1 == total };
            let got = r.receive(4, arrival);
            assert_eq!(got.duplicate, here[psn as usize]);
            here[psn as usize] = true;
            let expected = here.iter().take_while(|&&here| here).count() as u32;
            assert_eq!(r.expected, expected);
            assert!(got.ack.is_some() || !(marked || got.duplicate || expected == total));
            let Some(named) = got.ack else { continue };
            assert!(named.first > expected && psn < named.first + 64);
            for i in 0..64 {
                let arrived = here.get((named.first + i) as usize).is_some_and(|&here| here);
                assert_eq!(named.bits >> i & 1 == 1, arrived, "seed {seed}: {}", named.first + i);
            }
        }
        assert_eq!(r.expected, total);
    }
}

/// Random losses, trims, reordering and duplicates in both directions, random windows, with and without loss
/// inference and probes: every packet is delivered once, in the end all of them; the window is kept; and without
/// losses, trims and timeouts no packet is sent twice.
#[test]
fn for_any_path_everything_arrives_once() {
    enum Wire {
        Data(Arrival),
        Header(u32),
        Ack(u32, Named),
        Nack(u32),
        Probe(u32),
        ProbeAck(u32, Named, u32),
    }
    let (mut clean, mut trims, mut inferred, mut probed) = (0, 0, 0, 0);
    for seed in 0..600 {
        let mut random = Stream::new(seed, "path", 0);
        let total = 1 + random.below(300) as u32;
        // A third infers losses, and half of these probe.
        let infers_losses = seed % 3 == 0;
        let probes = (seed % 6 == 3).then_some(Probes { base: 60, target: 60 });
        let ack_every = 1 + random.below(6) as u32;
        let p = RudParams { rto: 500, ack_every, infers_losses, probes, ..P };
        let (loss, trim) =
            ([0, random.below(20)][seed as usize % 2], [0, random.below(40)][seed as usize / 2 % 2]);
        let reorder = random.below(60);
        let cwnd = 1 + random.below(100) as u32;
        let (mut n, mut s) = sender(total, cwnd);
        let mut window = cwnd;
        let (mut r, mut delivered) = (Receiver::default(), vec![0; total as usize]);
        let (mut wire, mut now, mut sent): (Vec<Wire>, Time, u32) = (Vec::new(), 0, 0);
        while !n.complete() {
            now += 1;
            assert!(now < 5_000_000, "no progress with seed {seed}");
            if random.below(50) == 0 {
                window = 1 + random.below(100) as u32;
                s.set_window(&mut n, window);
            }
            let mut out = Vec::new();
            if n.can_send() {
                assert!(s.in_flight() < window || s.asking == 0 || s.recover.is_some() && n.next < n.highest);
                let packet = n.send();
                let asks = s.on_sent(&p, &mut n, packet, true, now);
                sent += 1;
                out.push(match random.below(100) < trim {
                    true => Wire::Header(packet.0),
                    false => Wire::Data(Arrival { psn: packet.0, total, marked: random.below(9) == 0, asks }),
                });
            } else if wire.is_empty() {
                // Without losses the receiver never lets the sender wait for its timeout.
                assert!(loss > 0, "seed {seed} waits at {}", n.una);
                let deadline = s.deadline(&n).expect("something is in flight");
                now = s.probe_due().map_or(deadline, |due| due.min(deadline)).max(now);
            }
            if !wire.is_empty() && random.below(3) > 0 {
                let at = if random.below(100) < reorder { random.below(wire.len() as u64) } else { 0 };
                match wire.remove(at as usize) {
                    Wire::Data(arrival) => {
                        let got = r.receive(p.ack_every, arrival);
                        assert_eq!(got.duplicate, delivered[arrival.psn as usize] > 0);
                        delivered[arrival.psn as usize] += u32::from(!got.duplicate);
                        out.extend(got.ack.map(|named| Wire::Ack(r.expected, named)));
                    }
                    Wire::Header(psn) if r.is_missing(psn) => out.push(Wire::Nack(psn)),
                    Wire::Header(psn) => out.push(Wire::Ack(r.expected, r.names(psn))),
                    Wire::Ack(expected, named) => {
                        s.on_ack(&mut n, expected, named);
                        if infers_losses {
                            inferred += s.infer_losses(&mut n);
                        }
                        if let Some(probes) = probes {
                            s.await_probe(probes, &n, now);
                        }
                    }
                    Wire::Probe(number) => {
                        out.push(Wire::ProbeAck(r.expected, r.names(r.expected), number));
                    }
                    Wire::ProbeAck(expected, named, number) => {
                        s.on_ack(&mut n, expected, named);
                        probed += s.on_probe_ack(&p, &mut n, number, now);
                    }
                    Wire::Nack(psn) => trims += u32::from(s.on_nack(&P, &mut n, psn)),
                }
            }
            if loss > 0 {
                s.on_time(&p, &mut n, now);
            }
            out.extend(probes.and_then(|probes| s.take_probe(probes, now)).map(Wire::Probe));
            wire.extend(out.into_iter().filter(|_| random.below(100) >= loss));
        }
        assert!(delivered.iter().all(|&times| times == 1), "seed {seed}");
        assert_eq!(s.acknowledged(), total);
        if loss == 0 && trim == 0 && !infers_losses {
            assert_eq!(sent, total);
            clean += 1;
        }
    }
    let seen = format!("{clean} clean, {trims} trimmed, {inferred} inferred, {probed} found by probes");
    assert!(clean >= 100 && trims > 1_000 && inferred > 100 && probed > 100, "{seen}");
}
