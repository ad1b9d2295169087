use super::super::notes::Notes;
use super::super::size::question::Question;
use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use xoff_net::units::{Bandwidth, Length};

const CREDIT: u32 = 128;

fn params(reserve: u64, shared: u64, lanes: usize, response_time: Time) -> UecCbfcParams {
    UecCbfcParams {
        credit: CREDIT,
        overhead: 0,
        limits: vec![Limits { reserve, shared }; 2],
        ahead: vec![Limits { reserve, shared }; 2],
        spacing: vec![[1_000, 50_000]; 2],
        period: 100_000,
        patience: 0,
        lanes: (0..lanes).map(|_| true).chain([false]).collect(),
        couples: shared > 0,
        response_time,
    }
}

fn machine(reserve: u64, shared: u64) -> UecCbfc {
    UecCbfc::new(&params(reserve, shared, 2, 0), &[3, 5, 6])
}

fn freed(channel: u8, count: u32) -> ControlFrame {
    CfUpdate::new([(channel, count); 2]).into()
}

fn consumed(channel: u8, count: u32) -> ControlFrame {
    let mut frame = CcUpdate { consumed: [0; 8] };
    frame.consumed[usize::from(channel)] = count;
    frame.into()
}

/// The content of the log since the last look.
fn logged(device: &mut Notes) -> Vec<String> {
    std::mem::take(&mut device.log)
}

#[test]
fn a_packet_takes_whole_credits_with_its_overhead() {
    // The example of the test plan: 64 B and 32 B of overhead are two cells of 64 B.
    assert_eq!(credits(64, 32, 64), 2);
    for (size, overhead, credit, expected) in
        [(64, 0, 128, 1), (128, 0, 128, 1), (129, 0, 128, 2), (9_216, 0, 128, 72), (9_217, 0, 128, 73)]
            .into_iter()
            .chain([
                (140, -16, 128, 1),
                (144, -16, 128, 1),
                (145, -16, 128, 2),
                (2_048, 127, 2_048, 2),
                (64, 0, 32, 2),
            ])
    {
        assert_eq!(credits(size, overhead, credit), expected, "{size} {overhead} {credit}");
    }
    for size in 64u32..=9_217 {
        for credit in [32, 64, 128, 256, 512, 1_024, 2_048] {
            let exact = (f64::from(size) / f64::from(credit)).ceil() as u64;
            assert_eq!(credits(size, 0, credit), exact);
        }
    }
}

#[test]
fn packets_go_while_their_credits_fit_and_wait_until_they_do() {
    let (mut machine, mut device) = (machine(10, 0), Notes::default());
    // 1000 B are 8 credits, 129 B two.
    assert!(machine.may_leave(&mut device, 0, 0, 1_000));
    assert!(!machine.may_leave(&mut device, 0, 0, 1_000));
    assert_eq!((logged(&mut device), machine.wanted(0, 0)), (vec!["pause 0/0".to_string()], 8));
    // The other VC, one without credit, and a port after those of links.
    assert!(machine.may_leave(&mut device, 0, 1, 1_000));
    assert!((0..100).all(|_| machine.may_leave(&mut device, 0, 2, 1_000)));
    assert!((0..100).all(|_| machine.may_leave(&mut device, 7, 0, 1_000)));
    for (port, channel, count, resumed) in
        [(0, 5, 8, false), (0, 3, 5, false), (0, 3, 6, true), (0, 3, 6, false)]
    {
        machine.received(&mut device, port, &freed(channel, count));
        assert_eq!(logged(&mut device) == ["resume 0/0"], resumed, "{port} {channel} {count}");
    }
    assert!(machine.may_leave(&mut device, 0, 0, 1_000));
    assert!(!machine.may_leave(&mut device, 0, 0, 1));
}

/// One credit less than a packet needs refuses it, and the same limit fits it at any place of the counters.
#[test]
fn counters_wrap() {
    let (mut machine, mut device) = (machine(40_000, 0), Notes::default());
    let mut count = 0u32;
    // Rounds of 9,000 credits: 2^15 and 2^20 are no multiples of it.
    for round in 0..400u32 {
        for _ in 0..9 {
            assert!(machine.may_leave(&mut device, 0, 0, CREDIT * 1_000), "round {round}");
        }
        let ends = machine.ends[0];
        assert_eq!((ends.consumed, ends.used()), ((count + 9_000) & MASK, 9_000));
        count = (count + 9_000) & MASK;
        // Of two messages one is lost, and the next one says all.
        if round % 2 == 0 {
            machine.received(&mut device, 0, &freed(3, count.wrapping_sub(4_000) & MASK));
        }
        machine.received(&mut device, 0, &freed(3, count));
        machine.received(&mut device, 0, &freed(3, count));
        assert_eq!((machine.ends[0].freed, machine.ends[0].used()), (count, 0));
    }
    // 40,000 credits are more than 15 bits; freed in two steps below 2^15 they all return.
    for _ in 0..40 {
        assert!(machine.may_leave(&mut device, 0, 0, CREDIT * 1_000));
    }
    assert!(!machine.may_leave(&mut device, 0, 0, 1));
    machine.received(&mut device, 0, &freed(3, count + 20_000));
    machine.received(&mut device, 0, &freed(3, count + 40_000));
    assert_eq!(machine.ends[0].used(), 0);
}

fn receives(device: &mut Notes, port: u32, lane: u8, come: u64, stored: u64) {
    let credit = u64::from(CREDIT);
    device.received.insert((port, lane), come * credit);
    device.stored.insert((port, lane), stored * credit);
}

#[test]
fn cf_updates_keep_their_spacing() {
    let (mut machine, mut device) = (machine(100, 0), Notes::default());
    device.now = 5;
    receives(&mut device, 0, 0, 10, 10);
    machine.stored(&mut device, 0, 0, 1_280);
    assert!(logged(&mut device).is_empty(), "nothing has been freed");
    receives(&mut device, 0, 0, 10, 7);
    machine.freed(&mut device, 0, 1, 0, 384);
    assert_eq!(logged(&mut device), ["cf 0 v3 3 v5 0"]);
    // Within the spacing one timer is armed, and the message at its end says all.
    device.now = 600;
    receives(&mut device, 0, 0, 10, 5);
    machine.freed(&mut device, 0, 1, 0, 256);
    receives(&mut device, 0, 0, 10, 4);
    machine.freed(&mut device, 0, 1, 0, 128);
    assert_eq!(logged(&mut device), ["arm 0 1005"]);
    device.now = 1_005;
    machine.timer(&mut device, 0);
    assert_eq!(logged(&mut device), ["cf 0 v5 0 v3 6"].map(|_| "cf 0 v3 6 v5 0"));
    // The refresh comes after the most spacing from there on, and says the same.
    device.now = 50_000;
    machine.timer(&mut device, 1);
    assert_eq!(logged(&mut device), ["arm 1 51005"]);
    device.now = 51_005;
    machine.timer(&mut device, 1);
    assert_eq!(logged(&mut device), ["cf 0 v3 6 v5 0", "arm 1 101005"]);
    assert_eq!((machine.report.cf_updates, machine.report.refreshes), (3, 1));
    // A delivered packet frees its credits at once.
    device.now = 90_000;
    receives(&mut device, 0, 1, 2, 0);
    machine.stored(&mut device, 0, 1, 200);
    assert_eq!(logged(&mut device), ["cf 0 v5 2 v3 6"]);
}

/// With four VCs that all change, each of two messages has two of them, in turns.
#[test]
fn channels_have_turns() {
    let mut machine = UecCbfc::new(&params(100, 0, 4, 0), &[0, 1, 2, 3, 4]);
    let mut device = Notes { now: 10, ..Notes::default() };
    let mut said = Vec::new();
    for round in 1..=4u64 {
        for lane in 0..4 {
            receives(&mut device, 0, lane, 10 * round, 0);
            machine.stored(&mut device, 0, lane, 1_280);
        }
        while device.log.iter().any(|line| line.starts_with("arm 0")) {
            let mut log = logged(&mut device);
            said.extend(log.drain(..).filter(|line| line.starts_with("cf")));
            device.now += 1_000;
            machine.timer(&mut device, 0);
        }
        said.extend(logged(&mut device));
        device.now += 5_000;
        // Every VC has been told.
        assert!((0..4).all(|lane| machine.ends[lane].told == 10 * round as u32), "{said:?}");
    }
    let named = |channel: &str| said.iter().filter(|line| line.contains(channel)).count();
    let counts = ["v0 ", "v1 ", "v2 ", "v3 "].map(named);
    assert!(counts.iter().all(|&count| (4..=9).contains(&count)), "{counts:?} {said:?}");
}

#[test]
fn cc_updates_return_the_credits_of_lost_packets() {
    let (mut machine, mut device) = (machine(100, 0), Notes { now: 5, ..Notes::default() });
    // 60 credits have come, of which 20 are stored. The peer has consumed 75.
    receives(&mut device, 0, 0, 60, 20);
    machine.received(&mut device, 0, &consumed(3, 75));
    assert_eq!(logged(&mut device), ["cf 0 v3 55 v5 0"]);
    assert_eq!(machine.report.returned, 15);
    // Again, and late: nothing changes.
    machine.received(&mut device, 0, &consumed(3, 75));
    assert!(logged(&mut device).is_empty());
    receives(&mut device, 0, 0, 70, 30);
    machine.received(&mut device, 0, &consumed(3, 80));
    assert!(logged(&mut device).is_empty(), "10 more have come since");
    assert_eq!(machine.report.returned, 15);
    // Of 401 credits 400 are lost in each round: over all places of the counters.
    let mut count = 85;
    for come in 71..3_071 {
        receives(&mut device, 0, 0, come, 0);
        count = (count + 401) & MASK;
        machine.received(&mut device, 0, &consumed(3, count));
        assert_eq!(machine.received_credits(&device, 0, 0, 0), count);
    }
    assert_eq!(machine.report.returned, 15 + 3_000 * 400);
}

#[test]
fn timers_send_the_consumed_credits() {
    let (mut machine, mut device) = (machine(100, 0), Notes { now: 70, ..Notes::default() });
    assert!(machine.may_leave(&mut device, 1, 0, 6_400));
    machine.timer(&mut device, 5);
    assert_eq!(logged(&mut device), ["cc 1 [0, 0, 0, 50, 0, 0, 0, 0]", "arm 5 100070"]);
}

/// A VC uses its reserve and then the shared part; credit that another one frees lets it go.
#[test]
fn channels_share_what_is_not_reserved() {
    let (mut machine, mut device) = (machine(10, 20), Notes::default());
    // VC 3 takes 30 credits, all that one VC may.
    assert!(
        machine.may_leave(&mut device, 0, 0, 25 * CREDIT) && machine.may_leave(&mut device, 0, 0, 5 * CREDIT)
    );
    assert!(!machine.may_leave(&mut device, 0, 0, 1));
    // VC 5 has its reserve, and no more.
    assert!(machine.may_leave(&mut device, 0, 1, 4 * CREDIT));
    assert!(!machine.may_leave(&mut device, 0, 1, 7 * CREDIT));
    assert!(machine.may_leave(&mut device, 0, 1, 6 * CREDIT));
    assert!(!machine.may_leave(&mut device, 0, 1, CREDIT));
    logged(&mut device);
    // VC 5 gives back 3 of its reserve, of which VC 3 gets none.
    machine.received(&mut device, 0, &freed(5, 3));
    assert_eq!(logged(&mut device), ["resume 0/1"]);
    assert!(!machine.may_leave(&mut device, 0, 0, 1));
    assert!(machine.may_leave(&mut device, 0, 1, 3 * CREDIT) && !machine.may_leave(&mut device, 0, 1, 1));
    logged(&mut device);
    // VC 3 gives back 2 of the shared part: both may go, and the first one has them.
    machine.received(&mut device, 0, &freed(3, 2));
    assert_eq!(logged(&mut device), ["resume 0/0", "resume 0/1"]);
    assert!(machine.may_leave(&mut device, 0, 1, 2 * CREDIT) && !machine.may_leave(&mut device, 0, 0, 1));
    assert_eq!(machine.ports[0].shared, 20);
    machine.received(&mut device, 0, &freed(5, 15));
    machine.received(&mut device, 0, &freed(3, 30));
    assert_eq!((machine.ports[0].shared, machine.ends[0].used(), machine.ends[1].used()), (0, 0, 0));
}

/// Freed credit is kept for the VC that waits longest, and a shorter packet of another one waits.
#[test]
fn shared_credit_goes_to_the_channel_that_waits_longest() {
    let (mut machine, mut device) = (machine(0, 10), Notes::default());
    assert!(machine.may_leave(&mut device, 0, 0, 10 * CREDIT));
    assert!(!machine.may_leave(&mut device, 0, 1, 4 * CREDIT));
    assert!(!machine.may_leave(&mut device, 0, 0, CREDIT));
    assert_eq!((machine.before(0, 0), machine.before(0, 1)), (0b10, 0));
    logged(&mut device);
    // Two of the four that VC 5 needs.
    machine.received(&mut device, 0, &freed(3, 2));
    assert_eq!(logged(&mut device), [""; 0]);
    assert!(!machine.may_leave(&mut device, 0, 0, CREDIT));
    logged(&mut device);
    machine.received(&mut device, 0, &freed(3, 4));
    assert_eq!(logged(&mut device), ["resume 0/1"]);
    assert_eq!(machine.before(0, 0), 0);
    // VC 5 sends nothing: a CF_Update without news lets VC 3 go on.
    machine.received(&mut device, 0, &freed(3, 4));
    assert_eq!(logged(&mut device), ["resume 0/0"]);
    assert!(machine.may_leave(&mut device, 0, 0, CREDIT));
    // VC 5 keeps its turn until a packet leaves.
    assert!(!machine.may_leave(&mut device, 0, 1, 4 * CREDIT));
    assert!(!machine.may_leave(&mut device, 0, 0, CREDIT));
    logged(&mut device);
    machine.received(&mut device, 0, &freed(3, 6));
    assert_eq!(logged(&mut device), ["resume 0/1", "resume 0/0"]);
    assert!(machine.may_leave(&mut device, 0, 1, 4 * CREDIT) && machine.may_leave(&mut device, 0, 0, CREDIT));
}

#[test]
fn oracles_see_the_room_of_each_channel() {
    let bytes = |credits: u64| credits * u64::from(CREDIT);
    let own = machine(10, 0);
    assert_eq!(own.room(0, 0, &[bytes(4), bytes(10), 0, 0, 0, 0, 0, 0]), [6, 0]);
    assert_eq!(own.room(7, 0, &[0; 8])[0], u64::MAX);
    let total = machine(10, 20);
    for (kept, room) in [
        ([0, 0], [[10, 20], [10, 20]]),
        ([10, 10], [[0, 20], [0, 20]]),
        ([30, 4], [[0, 0], [6, 0]]),
        ([15, 12], [[0, 13], [0, 13]]),
    ] {
        let kept = [bytes(kept[0]), bytes(kept[1]), 0, 0, 0, 0, 0, 0];
        assert_eq!([0, 1].map(|lane| total.room(0, lane, &kept)), room);
    }
}

#[test]
fn a_link_that_recovers_begins_without_old_packets() {
    for shared in [0, 20] {
        let (mut machine, mut device) = (machine(10, shared), Notes { now: 900, ..Notes::default() });
        assert!(machine.may_leave(&mut device, 0, 0, 8 * CREDIT));
        assert!(!machine.may_leave(&mut device, 0, 0, 100 * CREDIT));
        receives(&mut device, 0, 0, 7, 4);
        receives(&mut device, 0, 1, 9, 0);
        logged(&mut device);
        for lane in 0..3 {
            machine.link_failed(&mut device, 0, lane);
        }
        assert!(logged(&mut device).ends_with(&["resume 0/1".to_string()]));
        device.now = 5_000;
        for lane in 0..2 {
            machine.link_recovered(&mut device, 0, lane, false, 0);
        }
        machine.link_reset(&mut device, 0);
        // VC 5 has no old packet. Where VCs share no credit, it begins before the others.
        let log: Vec<String> =
            logged(&mut device).into_iter().filter(|line| !line.starts_with("arm")).collect();
        let own = ["hold 0/0", "hold 0/1", "cf 0 v5 0 v5 0"];
        assert_eq!(log, own[..if shared > 0 { 2 } else { 3 }]);
        assert!(!machine.may_leave(&mut device, 0, 0, 1) && !machine.may_leave(&mut device, 0, 1, 1));
        // A message from before the failure is none.
        device.now = 5_500;
        logged(&mut device);
        receives(&mut device, 0, 0, 7, 1);
        machine.freed(&mut device, 0, 1, 0, 384);
        assert!(logged(&mut device).is_empty(), "one old packet is still there");
        device.now = 7_000;
        receives(&mut device, 0, 0, 7, 0);
        machine.freed(&mut device, 0, 1, 0, 128);
        assert_eq!(logged(&mut device), ["cf 0 v3 0 v5 0"]);
        machine.received(&mut device, 0, &freed(3, 0));
        assert_eq!(logged(&mut device), ["resume 0/0"]);
        assert!(machine.may_leave(&mut device, 0, 0, CREDIT));
        assert_eq!(machine.ends[0].used(), 1);
    }
}

#[test]
fn messages_from_before_a_failure_take_no_effect_after_it() {
    let mut machine = UecCbfc::new(&params(10, 0, 2, 400), &[3, 5, 6]);
    let mut device = Notes { now: 5_000, ..Notes::default() };
    machine.link_failed(&mut device, 0, 0);
    machine.link_recovered(&mut device, 0, 0, false, 0);
    machine.link_reset(&mut device, 0);
    device.now = 5_399;
    machine.received(&mut device, 0, &freed(3, 0));
    assert!(!machine.may_leave(&mut device, 0, 0, 1), "it arrived before 5000");
    device.now = 5_400;
    machine.received(&mut device, 0, &freed(3, 0));
    assert!(machine.may_leave(&mut device, 0, 0, 1));
}

/// Of `xoff size`: the share of the link is 8 B in 800 B, and the terms add up to whole packets of whole credits.
#[test]
fn the_size_of_a_link_is_that_of_its_loop() {
    for rate in [25_000_000_000, 100_000_000_000, 400_000_000_000] {
        let question = Question { priorities: 3, ..Question::new(Bandwidth(rate)) };
        let link = question.link(Length(500_000));
        let sizing = size::compute_size(&question, &link);
        assert!((sizing.control.share(rate) - 0.01).abs() < 1e-9);
        // 1,500 B are 12 credits of 128 B. Two VCs may have the slots before.
        let bytes = (rate / 8 * 5_000 / 1_000_000_000) + 2 * 800 + 2 * 1_500 + 8;
        let packets = bytes.div_ceil(1_500) + 2;
        assert_eq!((sizing.share(), sizing.shares), (packets * 12 * 128, 3));
        assert!(sizing.promise.full_throughput && sizing.is_in_reach());
    }
    let far = Question::new(Bandwidth(400_000_000_000));
    let sizing = size::compute_size(&far, &far.link(Length(2_000_000_000)));
    assert!(!sizing.promise.full_throughput && sizing.promise.lossless && !sizing.is_in_reach());
}

/// One direction of a link, by hand. Steps may lose anything.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u8, u32),
    Arrive {
        lost: bool,
    },
    Drain(u8),
    /// The time passes, by which CF_Updates and refreshes come.
    Wait(Time),
    Hear {
        lost: bool,
    },
    /// The sender's CC_Update, in line with its data.
    Say {
        lost: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0u8..2, 1u32..9_000).prop_map(|(lane, size)| Step::Send(lane, size)),
        8 => prop::bool::weighted(0.03).prop_map(|lost| Step::Arrive { lost }),
        8 => (0u8..2).prop_map(Step::Drain),
        4 => (1u64..3_000).prop_map(Step::Wait),
        3 => prop::bool::weighted(0.2).prop_map(|lost| Step::Hear { lost }),
        1 => prop::bool::weighted(0.2).prop_map(|lost| Step::Say { lost }),
    ]
}

#[derive(Clone, Copy)]
enum OnWire {
    Data(u8, u64),
    Consumed(CcUpdate),
}

/// A link whose first device sends from port 0 to port 1 of the second.
struct Link {
    ends: [UecCbfc; 2],
    devices: [Notes; 2],
    wire: VecDeque<OnWire>,
    back: VecDeque<CfUpdate>,
    stored: [VecDeque<u64>; 2],
    come: [u64; 2],
    /// When the timers of port 1 go off: the slot, and the refresh.
    due: [Option<Time>; 2],
}

impl Link {
    fn new(params: &UecCbfcParams) -> Self {
        let ends = [(); 2].map(|()| UecCbfc::new(params, &[3, 5, 6]));
        Self {
            ends,
            devices: Default::default(),
            wire: VecDeque::new(),
            back: VecDeque::new(),
            stored: Default::default(),
            come: [0; 2],
            due: [None, Some(1)],
        }
    }

    /// Takes the messages of the second device from its log.
    fn collect(&mut self) {
        for line in std::mem::take(&mut self.devices[1].log) {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].trim_start_matches('v').parse::<u64>().expect("a number");
            match words[0] {
                "cf" => self.back.push_back(CfUpdate::new([
                    (number(2) as u8, number(3) as u32),
                    (number(4) as u8, number(5) as u32),
                ])),
                "arm" => self.due[number(1) as usize - 3] = Some(number(2)),
                _ => {}
            }
        }
    }

    fn set(&mut self, lane: u8) {
        let held = self.stored[usize::from(lane)].iter().sum();
        receives(&mut self.devices[1], 1, lane, self.come[usize::from(lane)], held);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send(lane, size) => {
                if self.ends[0].may_leave(&mut self.devices[0], 0, lane, size) {
                    self.wire.push_back(OnWire::Data(lane, credits(size, 0, CREDIT)));
                }
            }
            Step::Arrive { lost } => match self.wire.pop_front() {
                Some(OnWire::Data(lane, taken)) if !lost => {
                    self.stored[usize::from(lane)].push_back(taken);
                    self.come[usize::from(lane)] += taken;
                    self.set(lane);
                    self.ends[1].stored(&mut self.devices[1], 1, lane, 0);
                }
                Some(OnWire::Consumed(frame)) if !lost => {
                    self.ends[1].received(&mut self.devices[1], 1, &frame.into());
                }
                _ => {}
            },
            Step::Drain(lane) => {
                if self.stored[usize::from(lane)].pop_front().is_some() {
                    self.set(lane);
                    self.ends[1].freed(&mut self.devices[1], 1, 0, lane, 0);
                }
            }
            Step::Wait(time) => {
                let until = self.devices[1].now + time;
                while let Some((at, timer)) =
                    self.due.iter().zip(0..).filter_map(|(due, i)| due.map(|at| (at, i))).min()
                    && at <= until
                {
                    self.devices[1].now = at;
                    self.due[timer as usize] = None;
                    self.ends[1].timer(&mut self.devices[1], 3 + timer);
                    self.collect();
                }
                self.devices[1].now = until;
            }
            Step::Hear { lost } => {
                if let Some(update) = self.back.pop_front().filter(|_| !lost) {
                    self.ends[0].received(&mut self.devices[0], 0, &update.into());
                }
            }
            Step::Say { lost } => {
                self.ends[0].timer(&mut self.devices[0], 2);
                if !lost {
                    let mut frame = CcUpdate { consumed: [0; 8] };
                    frame.consumed[3] = self.ends[0].ends[0].consumed;
                    frame.consumed[5] = self.ends[0].ends[1].consumed;
                    self.wire.push_back(OnWire::Consumed(frame));
                }
            }
        }
        self.collect();
    }

    /// Credits of a lane that are stored or on the wire.
    fn out(&self, lane: u8) -> u64 {
        let on_wire = |on: &OnWire| match *on {
            OnWire::Data(of, taken) if of == lane => taken,
            _ => 0,
        };
        self.stored[usize::from(lane)].iter().sum::<u64>() + self.wire.iter().map(on_wire).sum::<u64>()
    }
}

proptest! {
    /// For any losses and delays, credits stored and in flight never exceed the limits. When the link falls silent, a
    /// CC_Update and two CF_Updates bring all counters together: S_CC = S_CF = R_CC = R_CF.
    #[test]
    fn counters_meet_and_no_more_is_out_than_the_limits(
        steps in prop::collection::vec(step(), 1..2_000), reserve in 0u64..300, shared in 0u64..300, begin in 0u32..=MASK,
    ) {
        let shared = shared.max(71u64.saturating_sub(reserve));
        let mut link = Link::new(&params(reserve, shared, 2, 0));
        // Any place of the counters.
        for (device, port) in [(0, 0), (1, 3)] {
            for ends in &mut link.ends[device].ends[port..port + 2] {
                (ends.consumed, ends.freed, ends.offset, ends.told) = (begin, begin, begin, begin);
            }
        }
        let limits = Limits { reserve, shared };
        for &step in &steps {
            link.step(step);
            let out = [link.out(0), link.out(1)];
            prop_assert!(out.iter().all(|&out| out <= limits.of_one()), "{out:?}");
            let beyond: u64 = out.iter().map(|out| out.saturating_sub(reserve)).sum();
            prop_assert!(beyond <= shared, "{out:?}");
        }
        while !link.wire.is_empty() {
            link.step(Step::Arrive { lost: false });
        }
        for lane in [0, 1] {
            while !link.stored[usize::from(lane)].is_empty() {
                link.step(Step::Drain(lane));
            }
        }
        link.step(Step::Say { lost: false });
        link.step(Step::Arrive { lost: false });
        link.step(Step::Wait(200_000));
        while !link.back.is_empty() {
            link.step(Step::Hear { lost: false });
        }
        for lane in 0..2u8 {
            let sender = link.ends[0].ends[usize::from(lane)];
            let place = link.ends[1].place(1, lane).expect("a VC");
            let consumed = link.ends[1].received_credits(&link.devices[1], place, 1, lane);
            let freed = link.ends[1].freed_credits(&link.devices[1], place, 1, lane);
            prop_assert_eq!([sender.freed, consumed, freed], [sender.consumed; 3], "lane {}", lane);
        }
        prop_assert_eq!(link.ends[0].ports[0].shared, 0);
    }
}
