use super::super::dctcp::ONE;
use super::*;
use xoff_kernel::random::Stream;
use xoff_kernel::time::{MICROSECOND as US, SECOND};

const MS: Time = 1_000 * US;

const PARAMS: NewRenoParams = NewRenoParams {
    smss: 1_000,
    initial_window: 10,
    receive_window: u32::MAX,
    initial_rto: SECOND,
    min_rto: 10 * US,
    max_rto: 60 * SECOND,
    dctcp: None,
};

/// A sender with its numbers.
struct End {
    params: NewRenoParams,
    n: Numbers,
    c: Congestion,
    now: Time,
}

impl End {
    fn new(total: u32, params: NewRenoParams) -> Self {
        Self { params, n: Numbers::new(total, first_window(&params)), c: Congestion::new(&params), now: 0 }
    }

    fn send(&mut self) -> Option<(u32, bool)> {
        self.n.can_send().then(|| {
            let (psn, again) = self.n.send();
            self.c.on_sent(&self.params, &mut self.n, self.now, psn, again);
            (psn, again)
        })
    }

    /// Sends all allowed packets; returns their numbers.
    fn send_all(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.send().map(|s| s.0)).collect()
    }

    fn ack(&mut self, n: u32) -> Vec<u32> {
        self.hear(n, false)
    }

    /// An ACK that says whether its data packet was marked.
    fn hear(&mut self, n: u32, marked: bool) -> Vec<u32> {
        self.c.on_ack(&self.params, &mut self.n, self.now, n, marked);
        self.send_all()
    }

    fn timeout(&mut self) -> Vec<u32> {
        self.now = self.c.deadline();
        assert!(self.c.on_timeout(&self.params, &mut self.n));
        self.send_all()
    }
}

/// No packet is lost: each round trip sends twice as many as the previous one.
#[test]
fn slow_start_doubles_in_each_round_trip() {
    let mut end = End::new(10_000, PARAMS);
    let mut under_way = end.send_all();
    for round in 0..6 {
        assert_eq!(under_way.len(), 10 << round);
        end.now += 100 * US;
        under_way = under_way.into_iter().flat_map(|psn| end.ack(psn + 1)).collect();
    }
}

/// RFC 5681, equation 4: half of the bytes in flight, and never less than two segments.
#[test]
fn a_timeout_leaves_two_segments_at_least() {
    for (total, ssthresh) in [(1, 2_000), (3, 2_000), (5, 2_500), (10, 5_000)] {
        let mut end = End::new(total, PARAMS);
        end.send_all();
        end.timeout();
        assert_eq!(end.c.ssthresh, ssthresh, "{total} segments in flight");
    }
}

/// Beyond ssthresh the window grows by a segment in each round trip.
#[test]
fn congestion_avoidance_adds_a_segment_in_each_round_trip() {
    let mut end = End::new(10_000, PARAMS);
    end.c.ssthresh = 10_000;
    let mut under_way = end.send_all();
    for round in 0..20 {
        assert_eq!(under_way.len(), 10 + round);
        under_way = under_way.into_iter().flat_map(|psn| end.ack(psn + 1)).collect();
    }
    // So it does if an ACK covers many segments at once (byte counting) …
    let mut end = End::new(10_000, PARAMS);
    end.c.ssthresh = 10_000;
    end.send_all();
    assert_eq!(end.ack(5), [10, 11, 12, 13, 14]);
    assert_eq!(end.ack(10), [15, 16, 17, 18, 19, 20]);
    // … while slow start grows by no more than one for an ACK.
    let mut end = End::new(10_000, PARAMS);
    end.send_all();
    assert_eq!(end.ack(10).len(), 11);
}

/// RFC 5681 §3.2 and RFC 6582 §3.2 by hand: ten packets, 1 and 4 are lost.
#[test]
fn two_losses_in_a_window_take_a_fast_retransmit_and_a_partial_acknowledgement() {
    let mut end = End::new(1_000, PARAMS);
    assert_eq!(end.send_all(), (0..10).collect::<Vec<_>>());
    assert_eq!(end.ack(1), [10, 11], "slow start: cwnd is 11");
    assert_eq!(end.ack(1), [12], "limited transmit");
    assert_eq!(end.ack(1), [13], "limited transmit");
    assert_eq!(end.ack(1), [1], "fast retransmit");
    // FlightSize is 13 less the 2 of limited transmit.
    assert_eq!((end.c.ssthresh, end.c.cwnd, end.c.recover), (5_500, 8_500, Some(14)));
    // Packets 6 to 13 bring eight duplicates; 13 packets are beyond the window first.
    let sent: Vec<_> = (6..14).map(|_| end.ack(1)).collect();
    assert_eq!(sent.concat(), [14, 15, 16]);
    assert_eq!(sent[..5].concat(), [0; 0]);
    assert_eq!(end.c.cwnd, 16_500);
    // The repeat of 1 arrives: 2 and 3 had.
    assert_eq!(end.ack(4), [4, 17], "a partial ACK repeats the next hole");
    assert_eq!(end.c.cwnd, 14_500);
    assert_eq!([end.ack(4), end.ack(4), end.ack(4)].concat(), [18, 19, 20], "what 14 to 16 bring");
    // The repeat of 4 arrives: all up to 16 had.
    assert_eq!(end.ack(17), [21]);
    assert!(!end.c.recovering);
    assert_eq!(end.c.cwnd, 5_000, "FlightSize, 4, and one; that is below ssthresh");
    assert_eq!(end.ack(18), [22, 23], "slow start up to ssthresh");
    assert_eq!(end.c.cwnd, 6_000);
    assert_eq!([end.ack(19), end.ack(20)].concat(), [24, 25], "then congestion avoidance");
    assert_eq!(end.c.cwnd, 6_000);
}

/// A full ACK that leaves enough in flight deflates to ssthresh.
#[test]
fn a_full_acknowledgement_deflates_the_window() {
    let mut end = End::new(1_000, PARAMS);
    end.send_all();
    (0..3).for_each(|_| drop(end.ack(0)));
    assert_eq!((end.c.ssthresh, end.c.cwnd), (5_000, 8_000));
    (0..8).for_each(|_| drop(end.ack(0)));
    assert_eq!((end.c.cwnd, end.n.highest), (16_000, 16));
    assert_eq!(end.ack(12), [16], "what may be in flight is ssthresh");
    assert_eq!((end.c.cwnd, end.n.highest - end.n.una), (5_000, 5));
}

/// RFC 6298 §2 by hand, in milliseconds: round trips of 100 and 200.
#[test]
fn the_timeout_follows_round_trips() {
    let mut end = End::new(1_000, PARAMS);
    end.send_all();
    assert_eq!(end.c.deadline(), SECOND, "before the first measurement");
    end.now = 100 * MS;
    end.ack(1);
    assert_eq!(end.c.trips.rto, 300 * MS, "100 + 4 · 50");
    assert_eq!(end.c.deadline(), 400 * MS, "restarted");
    // 10 and 11 are in flight now, and 10 is timed.
    end.now = 300 * MS;
    end.ack(10);
    assert_eq!(end.c.trips.rto, 300 * MS, "one segment is timed per round trip");
    end.ack(11);
    assert_eq!(end.c.trips.smoothed, Some(112_500 * US));
    assert_eq!(end.c.trips.variation, 62_500 * US);
    assert_eq!(end.c.trips.rto, 362_500 * US);
    // Bounds.
    let bounded = NewRenoParams { min_rto: 500 * MS, max_rto: 2 * SECOND, ..PARAMS };
    let mut trips = end.c.trips;
    trips.measured(&bounded, 112_500 * US);
    assert_eq!(trips.rto, 500 * MS);
    trips.measured(&bounded, 9 * SECOND);
    assert_eq!(trips.rto, 2 * SECOND);
    // A round trip that never changes leaves G above it.
    (0..200).for_each(|_| trips.measured(&PARAMS, MS));
    assert!(trips.rto.abs_diff(MS + GRANULARITY) < 1_000, "{}", trips.rto);
}

/// Everything is lost, again and again: the RTO doubles, ssthresh is that of the
/// first timeout, and one packet is sent each time. Later the holes are filled
/// in slow start, and only a new packet's round trip counts.
#[test]
fn timeouts_double_and_begin_anew_with_one_packet() {
    let mut end = End::new(1_000, PARAMS);
    end.send_all();
    for (at, next) in [(1, 3), (3, 7), (7, 15), (15, 31), (31, 63), (63, 123), (123, 183)] {
        assert_eq!(end.c.deadline(), at * SECOND);
        assert_eq!(end.timeout(), [0]);
        assert_eq!((end.c.cwnd, end.c.ssthresh), (1_000, 5_000));
        assert_eq!(end.c.deadline(), next * SECOND, "60 s are the most");
    }
    // The retransmission arrives. The ACK could belong to either copy.
    end.now += MS;
    assert_eq!(end.ack(1), [1, 2], "slow start over what was lost");
    assert_eq!((end.c.trips.smoothed, end.c.trips.rto), (None, 60 * SECOND), "Karn");
    assert_eq!(end.ack(2), [3, 4]);
    // 3 to 9 had arrived.
    assert_eq!(end.ack(10), [10, 11, 12, 13]);
    assert_eq!(end.c.cwnd, 4_000);
    assert_eq!(end.c.trips.rto, 60 * SECOND);
    end.now += MS;
    end.ack(11);
    assert_eq!(end.c.trips.rto, 3 * MS, "a new packet was measured");
    // Another timeout now is of another packet, with five packets in flight.
    let flight = end.n.highest - end.n.una;
    end.timeout();
    assert_eq!(end.c.ssthresh, u64::from(flight) * 500);
}

/// Duplicates that the repeats after a timeout bring about are no loss (RFC 6582).
#[test]
fn duplicates_after_a_timeout_open_no_recovery() {
    let mut end = End::new(1_000, PARAMS);
    end.send_all();
    assert_eq!(end.timeout(), [0]);
    assert_eq!(end.ack(5), [5, 6]);
    for _ in 0..5 {
        assert_eq!(end.ack(5), [0; 0], "neither a repeat nor limited transmit");
    }
    assert!(!end.c.recovering);
    assert_eq!(end.c.cwnd, 2_000);
    // Nor directly after the packets outstanding at the timeout …
    assert_eq!(end.ack(10), [10, 11, 12]);
    (0..3).for_each(|_| assert_eq!(end.ack(10), [0; 0]));
    assert!(!end.c.recovering);
    // … but further on.
    assert_eq!(end.ack(11), [13, 14]);
    assert_eq!([end.ack(11), end.ack(11)].concat(), [15, 16]);
    assert_eq!(end.ack(11), [11]);
    assert!(end.c.recovering);
    assert_eq!(end.c.ssthresh, 2_000, "of 4 packets in flight");
}

/// The first partial ACK restarts the timer, the next ones do not: a window
/// with many losses ends in a timeout, which ends the recovery.
#[test]
fn the_timer_is_impatient_in_recovery() {
    let mut end = End::new(1_000, PARAMS);
    end.send_all();
    end.now = MS;
    end.ack(1);
    assert_eq!(end.c.trips.rto, 3 * MS);
    (0..3).for_each(|_| drop(end.ack(1)));
    assert!(end.c.recovering);
    end.now = 2 * MS;
    assert_eq!(end.ack(2)[0], 2);
    assert_eq!(end.c.deadline(), 5 * MS);
    for n in 3..6 {
        end.now += MS / 2;
        assert_eq!(end.ack(n)[0], n);
        assert_eq!(end.c.deadline(), 5 * MS);
    }
    assert_eq!(end.timeout(), [5]);
    assert!(!end.c.recovering && end.c.cwnd == 1_000);
    assert_eq!(end.c.deadline(), 11 * MS, "twice as long");
}

/// Nothing outstanding, no timer; and a pause that holds the repeat back holds
/// the timer, too.
#[test]
fn the_timer_runs_while_something_is_outstanding() {
    let mut end = End::new(5, PARAMS);
    assert_eq!(end.c.deadline(), Time::MAX);
    end.send_all();
    assert_eq!(end.c.deadline(), SECOND);
    assert!(end.c.on_timeout(&end.params, &mut end.n));
    assert_eq!(end.c.deadline(), Time::MAX, "until the repeat is sent");
    end.now = 5 * SECOND;
    assert_eq!(end.send_all(), [0]);
    assert_eq!(end.c.deadline(), 7 * SECOND);
    end.ack(5);
    assert!(end.n.complete());
    assert_eq!(end.c.deadline(), Time::MAX);
    assert!(!end.c.on_timeout(&end.params, &mut end.n));
}

#[test]
fn the_receive_window_bounds_the_packets_in_flight() {
    let mut end = End::new(1_000, NewRenoParams { receive_window: 12, ..PARAMS });
    end.send_all();
    let mut sent = 10;
    for n in 1..100 {
        sent += end.ack(n).len() as u32;
        assert_eq!(end.n.highest, sent);
        assert!(end.n.highest - end.n.una <= 12);
    }
    assert_eq!(end.n.highest - end.n.una, 12);
    // Not even a window inflated by duplicates goes beyond.
    for _ in 0..30 {
        end.ack(99);
        assert!(end.n.highest - end.n.una <= 12);
    }
    assert_eq!(End::new(9, NewRenoParams { receive_window: 3, ..PARAMS }).send_all(), [0, 1, 2]);
}

/// The receiver against a plain list of arrivals.
#[test]
fn the_receiver_records_all_arrivals() {
    for seed in 0..300 {
        let mut random = Stream::new(seed, "test", 0);
        let (total, spread) = (1 + random.below(200) as u32, 1 + random.below(60));
        let mut arrived = vec![false; total as usize];
        let mut receiver = Receiver::default();
        while receiver.expected < total {
            let psn = (receiver.expected as u64 + random.below(spread)).saturating_sub(random.below(5));
            let psn = (psn as u32).min(total - 1);
            let before = std::mem::replace(&mut arrived[psn as usize], true);
            assert_eq!(receiver.on_data(psn), before);
            let expected = arrived.iter().position(|a| !a).unwrap_or(arrived.len());
            assert_eq!(receiver.expected as usize, expected);
            let early = arrived[expected..].iter().filter(|a| **a).count() as u32;
            assert_eq!(receiver.early.iter().map(|(first, end)| end - first).sum::<u32>(), early);
            assert!(receiver.early.iter().zip(receiver.early.iter().skip(1)).all(|(a, b)| a.1 < b.0));
        }
        assert!(receiver.early.is_empty());
    }
}

enum Wire {
    Data(u32),
    /// The acknowledged packet, and whether the packet was marked.
    Ack(u32, bool),
}

/// Random loss, reordering and duplication in both directions, and under DCTCP random
/// marks: everything arrives, the windows are kept, and no mark makes a window larger.
#[test]
fn for_any_path_everything_arrives() {
    let (mut recoveries, mut timeouts, mut reductions) = (0, 0, 0);
    for seed in 0..400 {
        let mut random = Stream::new(seed, "test", 0);
        let total = 1 + random.below(300) as u32;
        let receive_window = if random.below(2) == 0 { u32::MAX } else { 1 + random.below(40) as u32 };
        let (loss, reorder, repeat) = (random.below(30), random.below(40), random.below(10));
        let initial_window = 1 + random.below(12) as u32;
        let dctcp = [None, DCTCP.dctcp][random.below(2) as usize];
        let marks = random.below(100);
        let params = NewRenoParams { receive_window, initial_window, initial_rto: 3 * MS, dctcp, ..PARAMS };
        let mut end = End::new(total, params);
        let mut receiver = Receiver::default();
        let mut arrived = vec![false; total as usize];
        let mut wire: VecDeque<Wire> = VecDeque::new();
        let mut steps = 0;
        while !end.n.complete() {
            steps += 1;
            assert!(steps < 500_000, "no progress with seed {seed}");
            end.now += 10 * US;
            let mut out = Vec::new();
            if let Some((psn, again)) = end.send() {
                assert!(psn < total && psn >= end.n.una && again == (psn + 1 < end.n.highest || again));
                assert!(end.n.highest - end.n.una <= receive_window);
                out.push(Wire::Data(psn));
            } else if wire.is_empty() {
                end.now = end.now.max(end.c.deadline());
            }
            if !wire.is_empty() && random.below(3) > 0 {
                let reordered = random.below(100) < reorder;
                let at = if reordered { random.below(wire.len() as u64) as usize } else { 0 };
                match wire.remove(at).unwrap() {
                    Wire::Data(psn) => {
                        let before = std::mem::replace(&mut arrived[psn as usize], true);
                        assert_eq!(receiver.on_data(psn), before);
                        out.push(Wire::Ack(receiver.expected, random.below(100) < marks));
                    }
                    Wire::Ack(n, marked) => {
                        let was = end.c.recovering;
                        let news = n > end.n.una;
                        let before = end.c;
                        assert_eq!(end.c.on_ack(&params, &mut end.n, end.now, n, marked), news);
                        if end.c.marks.spared != before.marks.spared && was == end.c.recovering {
                            assert!(marked && dctcp.is_some() && end.c.cwnd <= before.cwnd);
                            reductions += 1;
                        }
                        recoveries += u32::from(!was && end.c.recovering);
                    }
                }
            }
            assert!(end.n.window >= 1 && end.n.window <= receive_window);
            assert!(end.c.cwnd >= 1_000);
            assert_eq!(end.c.deadline() == Time::MAX, end.n.una == end.n.highest);
            if end.now >= end.c.deadline() {
                timeouts += u32::from(end.c.on_timeout(&params, &mut end.n));
                let repeat = end.send().expect("the window is open");
                assert_eq!(repeat, (end.n.una, true));
                out.push(Wire::Data(repeat.0));
            }
            for message in out {
                if random.below(100) < loss {
                    continue;
                }
                if random.below(100) < repeat {
                    wire.push_back(match &message {
                        Wire::Data(psn) => Wire::Data(*psn),
                        Wire::Ack(n, marked) => Wire::Ack(*n, *marked),
                    });
                }
                wire.push_back(message);
            }
        }
        assert_eq!(receiver.expected, total);
    }
    assert!(recoveries > 300 && timeouts > 300, "{recoveries} {timeouts}");
    assert!(reductions > 300, "{reductions}");
}

/// One packet in the midst of a flow is lost: one repeat, and no timeout.
#[test]
fn one_loss_costs_one_repeat() {
    for lost in 0..40u32 {
        let mut end = End::new(60, PARAMS);
        let mut receiver = Receiver::default();
        let (mut repeats, mut dropped, mut wire) = (0, false, VecDeque::new());
        while !end.n.complete() {
            end.now += US;
            while let Some((psn, again)) = end.send() {
                repeats += u32::from(again);
                if psn == lost && !dropped {
                    dropped = true;
                } else {
                    wire.push_back(psn);
                }
            }
            let psn = wire.pop_front().expect("the window goes on");
            assert!(!receiver.on_data(psn));
            end.c.on_ack(&end.params, &mut end.n, end.now, receiver.expected, false);
        }
        assert_eq!(repeats, 1);
    }
}

/// DCTCP with the gain of its paper.
const DCTCP: NewRenoParams = NewRenoParams { dctcp: Some(DctcpParams { gain: ONE / 16 }), ..PARAMS };

/// By hand, of the numbers in [`crate::transport::dctcp`]. The first ACK ends the first window of data: α =
/// 15/16, and the second ends beyond packet 10. Slow start has made the window 11,000 when ACK 2 is marked:
/// 11,000 · (1 − 15/32) = 5,843.75 are left, and slow start is over. ACKs 3 to 6, which are marked, too,
/// belong to the same window of data and reduce nothing; they grow it as others do. Packets leave again when
/// less than five are in flight; six are allowed by then.
#[test]
fn a_mark_ends_slow_start_and_a_window_of_data_is_reduced_once() {
    let mut end = End::new(1_000, DCTCP);
    end.send_all();
    assert_eq!(end.hear(1, false), [10, 11]);
    assert_eq!(end.hear(2, true), [0; 0]);
    assert_eq!((end.c.cwnd, end.c.ssthresh), (5_844, 5_844));
    for n in 3..8 {
        assert_eq!(end.hear(n, n < 7), [0; 0]);
        assert_eq!(end.c.cwnd, 5_844, "{n}");
    }
    assert_eq!(end.hear(8, false), [12, 13]);
    assert_eq!((end.c.cwnd, end.c.ssthresh), (6_844, 5_844), "congestion avoidance");
    // Of ACKs 2 to 11 half were marked: α = 15²/16² + 1/32.
    (9..11).for_each(|n| drop(end.hear(n, false)));
    assert_eq!(end.c.marks.alpha as f64 / ONE as f64, 0.9375);
    end.hear(11, false);
    assert_eq!(end.c.marks.alpha as f64 / ONE as f64, 0.910_156_25);
    // Packets 0 to 11 had been sent when the window was reduced: 12 is the first one whose
    // mark counts again.
    assert_eq!(end.hear(12, true), [17]);
    assert_eq!(end.c.cwnd, 6_844);
    assert_eq!(end.hear(13, true), [0; 0]);
    assert_eq!(end.c.cwnd, 6_844 - 3_114, "6,844 · 0.455078125, rounded down");
}

/// Nothing but marks: α stays 1, and each window of data is half the one before it, down
/// to two segments. There an ACK lets one packet go.
#[test]
fn everything_marked_halves_the_window_down_to_two_segments() {
    let mut end = End::new(10_000, NewRenoParams { initial_window: 64, ..DCTCP });
    let mut under_way = VecDeque::from(end.send_all());
    let mut windows = Vec::new();
    for _ in 0..400 {
        let n = under_way.pop_front().expect("something is under way") + 1;
        under_way.extend(end.hear(n, true));
        if windows.last() != Some(&(end.n.window)) {
            windows.push(end.n.window);
        }
        assert_eq!(end.c.marks.alpha as f64 / ONE as f64, 1.0);
    }
    assert_eq!(windows[..6], [32, 33, 16, 17, 8, 9]);
    assert!(windows[8..].iter().all(|w| [2, 3, 4].contains(w)), "{windows:?}");
    assert_eq!(windows[windows.len() - 4..], [3, 2, 3, 2], "up by one, and down again");
}

/// Nothing marked: α fades by g for each window of data, and all else is NewReno's.
#[test]
fn without_marks_it_is_newreno() {
    let (mut dctcp, mut newreno) = (End::new(10_000, DCTCP), End::new(10_000, PARAMS));
    let mut under_way = VecDeque::from(dctcp.send_all());
    newreno.send_all();
    let mut rounds = 0;
    while let Some(psn) = under_way.pop_front() {
        let end = dctcp.c.marks.end;
        let sent = dctcp.ack(psn + 1);
        assert_eq!(sent, newreno.ack(psn + 1));
        under_way.extend(sent);
        rounds += i32::from(dctcp.c.marks.end != end);
        assert!((dctcp.c.marks.alpha as f64 / ONE as f64 - 0.9375f64.powi(rounds)).abs() < 1e-7);
    }
    assert!(rounds > 5 && dctcp.n.complete());
    assert_eq!(dctcp.c.cwnd, newreno.c.cwnd);
}

/// A loss halves the bytes in flight, for any α, and marks of packets that had been sent by then reduce
/// nothing more; those of later ones do. The same holds for a timeout, after which slow start continues
/// despite such marks.
#[test]
fn marks_do_not_reduce_the_window_again_after_a_loss() {
    let mut end = End::new(1_000, DCTCP);
    end.send_all();
    (0..3).for_each(|_| drop(end.hear(0, false)));
    assert_eq!((end.c.ssthresh, end.c.cwnd, end.n.highest), (5_000, 8_000, 12));
    (0..8).for_each(|_| drop(end.hear(0, true)));
    assert_eq!((end.c.ssthresh, end.c.cwnd, end.n.highest), (5_000, 16_000, 16));
    assert_eq!(end.hear(12, true), [16], "the full acknowledgement");
    assert_eq!(end.c.cwnd, 5_000);
    assert_eq!(end.hear(13, true), [0; 0]);
    assert!(end.c.cwnd < 4_000 && end.c.cwnd >= 2_000, "{}", end.c.cwnd);

    let mut end = End::new(1_000, DCTCP);
    end.send_all();
    assert_eq!(end.timeout(), [0]);
    assert_eq!(end.hear(1, true), [1, 2]);
    assert_eq!(end.hear(2, true), [3, 4]);
    assert_eq!((end.c.ssthresh, end.c.cwnd), (5_000, 3_000));
    assert_eq!(end.hear(10, true), [10, 11, 12, 13], "packets 4 to 9 had arrived");
    assert_eq!(end.c.cwnd, 4_000);
    end.hear(11, true);
    assert!(end.c.cwnd < 3_000 && end.c.cwnd >= 2_000, "{}", end.c.cwnd);
}

/// The bytes in flight are reduced, even if cwnd has grown beyond them: by the receive window here. (The same
/// holds if the sender's port is the bottleneck.)
#[test]
fn a_mark_reduces_the_packets_in_flight() {
    let mut end = End::new(1_000, NewRenoParams { receive_window: 8, ..DCTCP });
    end.send_all();
    (1..100).for_each(|n| drop(end.ack(n)));
    assert!(end.c.cwnd > 100_000 && end.n.window == 8);
    end.hear(100, true);
    assert_eq!(end.c.cwnd, end.c.marks.reduced(9_000));
    assert!((6_000..8_000).contains(&end.c.cwnd), "{}", end.c.cwnd);
    assert_eq!(end.c.cwnd, end.c.ssthresh);
}
