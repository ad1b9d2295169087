use super::super::notes::Notes;
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// 1,000 B take 80 ns.
const LINK: LinkFacts = LinkFacts { rate: 100_000_000_000, delay: 1_000_000, largest: 1_000, retries: 0 };

fn params(link: &LinkFacts, b1: u64, response_time: Time, repeats: bool) -> GfcParams {
    let buffer = b1 + least_room(link, response_time);
    GfcParams {
        ladders: vec![Ladder::new(b1, 2 * feedback(link, response_time), buffer, link)],
        maps: Vec::new(),
        of_port: vec![0; 2],
        lanes: vec![true, false],
        response_time,
        service: Service::ByIngress,
        places: vec![0, 1],
        repeats,
        last_end: 0,
    }
}

fn gfc(b1: u64, repeats: bool) -> Gfc {
    Gfc::new(&params(&LINK, b1, 0, repeats), &[3, 5])
}

fn frame(priority: u8, stage: u8) -> ControlFrame {
    StageFrame::single(priority, stage).into()
}

impl Notes {
    fn take(&mut self) -> Vec<String> {
        self.log.drain(..).collect()
    }
}

/// Stage k halves the rate k times: 80 ns, 160 ns, 320 ns for 1,000 B. The last stage lasts longer than a run.
#[test]
fn each_stage_halves_the_rate() {
    for stage in 0..20 {
        assert_eq!(spacing(1_000, LINK.rate, stage), 80_000 << stage);
        assert_eq!(spacing(64, LINK.rate, stage), 5_120 << stage);
    }
    let last = stages(&LINK);
    assert!(spacing(1_000, LINK.rate, last) >= LAST && spacing(1_000, LINK.rate, last - 1) < LAST);
    assert_eq!(spacing(1_000, LINK.rate, u8::MAX), Time::MAX);
}

/// B_k = B_1 + 2·C·τ·(1 − 2^(1−k)) + (k − 1)·L, so without the packets B_m is B_1 + 2·C·τ.
#[test]
fn thresholds_halve_the_rest_beside_a_packet_for_each_stage() {
    let (b1, h) = (30_000, feedback(&LINK, 0));
    assert_eq!(h, 25_000 + 2 * 1_000 + 64);
    let ladder = Ladder::new(b1, 2 * h, b1 + least_room(&LINK, 0), &LINK);
    let count = u64::from(stages(&LINK));
    assert_eq!(ladder.thresholds.len() as u64, count);
    for (k, &b) in (1u64..).zip(&ladder.thresholds) {
        let exact = (b1 + (k - 1) * 1_000) as f64 + 2.0 * h as f64 * (1.0 - 0.5f64.powi(k as i32 - 1));
        assert!((b as f64 - exact).abs() <= k as f64, "B_{k} = {b}, not {exact}");
    }
    for (k, pair) in (1u32..).zip(ladder.thresholds.windows(2)) {
        assert!((pair[1] - pair[0]) as f64 >= h as f64 / f64::from(k - 1).exp2() + 1_000.0, "stage {k}");
    }
    let packets = (count + 1) * 1_000;
    assert!((ladder.buffer - b1 - packets).abs_diff(2 * h) <= count, "{}", ladder.buffer);
}

#[test]
fn a_crossing_sends_one_frame_and_a_packet_at_a_threshold_none() {
    let mut gfc = gfc(30_000, false);
    let (b2, b3) = (gfc.params.ladders[0].thresholds[1], gfc.params.ladders[0].thresholds[2]);
    let mut device = Notes::default();
    for (q, said) in [
        (29_999, None),
        (30_000, Some(1)),
        (29_500, None),
        (30_500, None),
        (29_001, None),
        (29_000, Some(0)),
        // Two thresholds at a time, up and down.
        (b3, Some(3)),
        (b3 - 999, None),
        (b2 - 1_000, Some(1)),
        (0, Some(0)),
    ] {
        device.stored.insert((1, 0), q);
        gfc.stored(&mut device, 1, 0, 0);
        let expected: Vec<String> = said.map(|stage| format!("stage 1 [(3, {stage})]")).into_iter().collect();
        assert_eq!(device.take(), expected, "{q} B");
        gfc.freed(&mut device, 1, 0, 0, 0);
        assert!(device.take().is_empty());
    }
    // A lane and a port without stages.
    device.stored.insert((1, 1), 1 << 40);
    gfc.stored(&mut device, 1, 1, 0);
    gfc.stored(&mut device, 7, 0, 0);
    assert!(device.take().is_empty());
    assert_eq!((gfc.report.frames, gfc.report.deepest), (5, 3));
}

#[test]
fn a_packet_waits_for_its_rate_and_a_new_rate_changes_the_wait() {
    let mut gfc = gfc(30_000, false);
    let mut device = Notes { now: 1_000_000, ..Notes::default() };
    gfc.received(&mut device, 0, &frame(3, 3));
    // Nothing has been sent: the first packet goes at once, and the next one 8 times 80 ns later.
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    device.now += 80_000;
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    assert_eq!(device.take(), ["hold 0/0", "arm 0 1640000"]);
    // Another lane, which has no stages.
    assert!(gfc.may_leave(&mut device, 0, 1, 1_000));
    // Slower, faster, and so fast that it goes.
    gfc.received(&mut device, 0, &frame(3, 4));
    assert_eq!(device.take(), ["arm 0 2280000"]);
    gfc.received(&mut device, 0, &frame(3, 2));
    assert_eq!(device.take(), ["arm 0 1320000"]);
    gfc.received(&mut device, 0, &frame(5, 9));
    gfc.received(&mut device, 0, &frame(6, 9));
    assert!(device.take().is_empty());
    device.now = 1_160_000;
    gfc.received(&mut device, 0, &frame(3, 1));
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    assert!(gfc.may_leave(&mut device, 0, 0, 500));
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    // The wait depends on the bytes of the packet that left, and ends with the timer.
    assert_eq!(device.take(), ["hold 0/0", "arm 0 1240000"]);
    device.now = 1_240_000;
    gfc.timer(&mut device, 0);
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    assert_eq!((gfc.report.waits, gfc.report.waited, gfc.report.longest), (2, 160_000, 80_000));
}

#[test]
fn stages_are_repeated_and_expire_only_where_frames_can_be_lost() {
    let life = lifetime(LINK.rate);
    assert_eq!(life, 335_539_200);
    let mut gfc = gfc(30_000, true);
    let mut device = Notes::default();
    device.stored.insert((0, 0), 30_000);
    gfc.stored(&mut device, 0, 0, 0);
    assert_eq!(device.take(), ["stage 0 [(3, 1)]".to_string(), format!("arm 2 {}", life / 2)]);
    device.now = life / 2;
    gfc.timer(&mut device, 2);
    assert_eq!(device.take(), ["stage 0 [(3, 1)]".to_string(), format!("arm 2 {life}")]);
    device.stored.insert((0, 0), 0);
    gfc.freed(&mut device, 0, 1, 0, 0);
    assert_eq!(device.take(), ["stage 0 [(3, 0)]", "cancel 2"]);
    // The other half: a stage ends if no frame comes.
    gfc.received(&mut device, 0, &frame(3, 9));
    assert_eq!(device.take(), [format!("arm 1 {}", device.now + life)]);
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    device.take();
    gfc.timer(&mut device, 1);
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    gfc.received(&mut device, 0, &frame(3, 0));
    assert_eq!(device.take(), ["cancel 1"]);
    assert_eq!(gfc.report.repeats, 1);
}

#[test]
fn a_link_that_recovers_names_its_stage_and_waits_for_that_of_its_peer() {
    let mut gfc = gfc(30_000, false);
    let mut device = Notes::default();
    gfc.received(&mut device, 0, &frame(3, 9));
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    device.stored.insert((0, 0), 30_000);
    gfc.stored(&mut device, 0, 0, 0);
    device.take();
    gfc.link_failed(&mut device, 0, 0);
    assert_eq!(device.take(), ["cancel 1", "cancel 2", "cancel 0", "resume 0/0"]);
    gfc.link_recovered(&mut device, 0, 0, true, 5_000_000);
    assert_eq!(device.take(), ["cancel 2", "stage 0 [(3, 1)]", "hold 0/0", "arm 0 5005120"]);
    // The frame of the peer ends the wait; otherwise the timer does.
    let mut later = gfc.clone();
    later.received(&mut device, 0, &frame(3, 2));
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    gfc.timer(&mut device, 0);
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    gfc.link_recovered(&mut device, 0, 1, true, 5_000_000);
    assert!(device.take().is_empty());
}

/// What happens at a time, in the order of the simulator: a wire is free, a packet arrives, a frame takes
/// effect, a packet may begin; at last a packet leaves the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Free,
    Arrival(u32),
    Effect(u32),
    Pace,
    Period,
    Leave,
}

/// A link whose sender always has packets, and whose receiver drains as `drain` says: times until the next
/// packet leaves, and then nothing any more.
struct Link {
    facts: LinkFacts,
    by_time: bool,
    /// From a crossing until the frame takes effect, and how much sooner it may.
    back: Time,
    early: Time,
    sender: (Gfc, Notes),
    receiver: (Gfc, Notes),
    events: BTreeMap<(Time, Event, u64), ()>,
    count: u64,
    held: bool,
    stored: VecDeque<u32>,
    q: u64,
    most: u64,
    arrived: u64,
    pace: Option<(Time, Event, u64)>,
}

impl Link {
    fn new(params: &GfcParams, facts: LinkFacts, back: Time) -> Self {
        let end = || (Gfc::new(params, &[3, 5]), Notes::default());
        Self {
            facts,
            by_time: !params.maps.is_empty(),
            back,
            early: 0,
            sender: end(),
            receiver: end(),
            events: BTreeMap::new(),
            count: 0,
            held: false,
            stored: VecDeque::new(),
            q: 0,
            most: 0,
            arrived: 0,
            pace: None,
        }
    }

    fn post(&mut self, at: Time, event: Event) -> (Time, Event, u64) {
        self.count += 1;
        self.events.insert((at, event, self.count), ());
        (at, event, self.count)
    }

    /// Reads the calls of the sending half.
    fn read_sender(&mut self) {
        for line in self.sender.1.take() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["arm", "0", at] => {
                    if let Some(key) = self.pace.take() {
                        self.events.remove(&key);
                    }
                    self.pace = Some(self.post(at.parse().unwrap(), Event::Pace));
                }
                ["cancel", "0"] => {
                    if let Some(key) = self.pace.take() {
                        self.events.remove(&key);
                    }
                }
                ["hold", _] => self.held = true,
                ["resume", _] => self.held = false,
                _ => panic!("{line}"),
            }
        }
    }

    /// Reads the calls of the receiving half.
    fn read_receiver(&mut self, now: Time) {
        for line in self.receiver.1.take() {
            if let Some(at) = line.strip_prefix("arm 2 ") {
                self.post(at.parse().unwrap(), Event::Period);
                continue;
            }
            let named = if self.by_time { "stored 0 [(3, " } else { "stage 0 [(3, " };
            let level = line.strip_prefix(named).and_then(|rest| rest.strip_suffix(")]"));
            let level = level.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
            // In periods some frames meet no packet before them.
            let early = if self.by_time && self.count.is_multiple_of(3) { self.early } else { 0 };
            self.post(now + self.back - early, Event::Effect(level));
        }
    }

    /// Runs until `end`, or until nothing more can happen.
    fn run(&mut self, end: Time, sizes: &[u32], drain: &[Time], buffer: u64) {
        let (mut sizes, mut drain) = (sizes.iter().cycle(), drain.iter());
        let mut next = *sizes.next().unwrap();
        let mut free = 0;
        self.post(0, Event::Free);
        if let Some(&first) = drain.next() {
            self.post(first, Event::Leave);
        }
        while let Some((&key, ())) = self.events.first_key_value() {
            self.events.remove(&key);
            let (now, event, _) = key;
            if now > end {
                return;
            }
            (self.sender.1.now, self.receiver.1.now) = (now, now);
            match event {
                Event::Free => {}
                Event::Arrival(size) => {
                    self.q += u64::from(size);
                    self.arrived += 1;
                    self.stored.push_back(size);
                    self.most = self.most.max(self.q);
                    assert!(self.q < buffer, "{} B of {buffer} B at {now}", self.q);
                    self.receiver.1.stored.insert((0, 0), self.q);
                    self.receiver.0.stored(&mut self.receiver.1, 0, 0, size);
                }
                Event::Effect(stored) if self.by_time => {
                    self.sender.0.received(&mut self.sender.1, 0, &StoredFrame::single(3, stored).into());
                }
                Event::Effect(stage) => self.sender.0.received(&mut self.sender.1, 0, &frame(3, stage as u8)),
                Event::Period => self.receiver.0.timer(&mut self.receiver.1, 2),
                Event::Pace => {
                    self.pace = None;
                    self.sender.0.timer(&mut self.sender.1, 0);
                }
                Event::Leave => {
                    if let Some(size) = self.stored.pop_front() {
                        self.q -= u64::from(size);
                        self.receiver.1.stored.insert((0, 0), self.q);
                        self.receiver.0.freed(&mut self.receiver.1, 0, 1, 0, size);
                    }
                    if let Some(&gap) = drain.next() {
                        self.post(now + gap, Event::Leave);
                    }
                }
            }
            self.read_sender();
            self.read_receiver(now);
            if !self.held && now >= free {
                if self.sender.0.may_leave(&mut self.sender.1, 0, 0, next) {
                    let time = serialisation(next.into(), self.facts.rate);
                    free = now + time;
                    self.post(free, Event::Free);
                    self.post(free + self.facts.delay, Event::Arrival(next));
                    next = *sizes.next().unwrap();
                }
                self.read_sender();
            }
        }
    }
}

/// The frame's time: a packet just begun, its own bytes, the cable and the response time.
fn back(facts: &LinkFacts, response_time: Time, before: u64) -> Time {
    let bytes = before + u64::from(StageFrame::LENGTH);
    serialisation(bytes, facts.rate) + facts.delay + response_time
}

proptest! {
    /// Whatever leaves the account, and if nothing leaves it until the end of the longest run: it never stores
    /// as much as its buffer, and the sender goes on.
    #[test]
    fn an_account_never_overflows(
        delay in prop_oneof![Just(0u64), 1u64..5_000_000], response in prop_oneof![Just(0u64), 1u64..3_000_000],
        largest in 64u32..4_000, b1 in prop_oneof![Just(1u64), 1u64..200_000], before in 0u64..4_000, wide in 0u64..100_000,
        sizes in prop::collection::vec(64u32..4_000, 1..20), small in any::<bool>(),
        drain in prop::collection::vec(prop_oneof![Just(0u64), 1u64..400_000, 400_000u64..20_000_000], 0..200),
    ) {
        let facts = LinkFacts { rate: LINK.rate, delay, largest, retries: 0 };
        let sizes: Vec<u32> = if small { sizes.iter().map(|&s| s.min(largest)).collect() } else { vec![largest] };
        let mut params = params(&facts, b1, response, false);
        let span = 2 * feedback(&facts, response) + wide;
        let buffer = b1 + room(span, &facts);
        params.ladders[0] = Ladder::new(b1, span, buffer, &facts);
        let mut link = Link::new(&params, facts, back(&facts, response, before.min(largest.into())));
        link.run(LAST, &sizes, &drain, buffer);
        // Without a drain one packet at least comes in each stage but the last.
        prop_assert!(link.arrived > u64::from(stages(&facts)));
    }
}

/// The time-based form with T, from B_0 on, and `wide` bytes more than the least room.
fn map_params(link: &LinkFacts, b0: u64, wide: u64, period: Time, response_time: Time) -> GfcParams {
    let buffer = b0 + time::room(link, period, response_time) + wide;
    let map = Map::new(b0, buffer, period, link);
    GfcParams { ladders: Vec::new(), maps: vec![map], ..params(link, b0, response_time, false) }
}

/// C up to B_0, C·(B_m − q) / (B_m − B_0) up to a packet before B_m, and then half for each packet more.
#[test]
fn the_rate_falls_linearly_and_then_by_packets() {
    let (b0, period) = (30_000, 5_000_000);
    let params = map_params(&LINK, b0, 0, period, 0);
    let map = &params.maps[0];
    // H = 27,064 B, C·T = 62,500 B, and twice the root of their product.
    let span = 27_064 + 62_500 + 82_256;
    assert_eq!(map.stages, stages(&LINK));
    assert_eq!((map.bm, time::least_span(&LINK, period, 0)), (b0 + span, span));
    for (q, least) in [(0, 80_000), (b0, 80_000), (b0 + span / 2, 160_000), (b0 + span / 4 * 3, 320_000)] {
        assert!(map.time(1_000, LINK.rate, q).abs_diff(least) < 10, "{q}");
    }
    // A packet before B_m: C / 171.8.
    let last = 80 * span;
    for (q, halved) in [(0, 0), (999, 0), (1_999, 0), (2_000, 1), (2_999, 1), (3_000, 2), (11_500, 10)] {
        assert_eq!(map.time(1_000, LINK.rate, map.bm - 1_000 + q), last << halved, "{q}");
    }
    assert_eq!(map.time(500, LINK.rate, map.bm), last / 2);
    assert!(map.time(1_000, LINK.rate, u64::MAX) >= LAST);
    assert_eq!(map.buffer - map.bm, (u64::from(map.stages) + 4) * 1_000);
    let halvings = [0, b0, b0 + span / 2 + 1, map.bm - 1_000, map.bm + 5_000].map(|q| map.halvings(q));
    assert_eq!(halvings, [0, 0, 1, 7, 12]);
    // Monotone over all of it.
    let times: Vec<Time> =
        (0..map.buffer + 2_000).step_by(97).map(|q| map.time(1_000, LINK.rate, q)).collect();
    assert!(times.is_sorted());
}

/// The bytes that a packet owes pass at the rate of their time.
#[test]
fn a_frame_keeps_what_has_passed() {
    let params = map_params(&LINK, 30_000, 0, 5_000_000, 0);
    let (half, bm) = (30_000 + (params.maps[0].bm - 30_000) / 2, params.maps[0].bm);
    let mut gfc = Gfc::new(&params, &[3, 5]);
    let mut device = Notes { now: 1_000_000, ..Notes::default() };
    let stored = |q: u64| StoredFrame::single(3, q as u32).into();
    gfc.received(&mut device, 0, &stored(half));
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    device.now += 80_000;
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    // 80 ns more at C/2.
    let last = device.take().pop().unwrap();
    let at: Time = last.strip_prefix("arm 0 ").unwrap().parse().unwrap();
    assert!(at.abs_diff(1_160_000) < 5, "{at}");
    // 500 B are left, which take 40 ns at C.
    gfc.received(&mut device, 0, &stored(0));
    let at: Time = device.take().pop().unwrap().strip_prefix("arm 0 ").unwrap().parse().unwrap();
    assert!(at.abs_diff(1_120_000) <= 80, "{at}");
    // The frames of the other form say nothing here.
    gfc.received(&mut device, 0, &frame(3, 0));
    assert!(device.take().is_empty());
    device.now = at;
    gfc.timer(&mut device, 0);
    assert_eq!(device.take(), ["cancel 0", "resume 0/0"]);
    // In the last stage a packet never follows another one in a run: no timer.
    gfc.received(&mut device, 0, &stored(bm + 90_000));
    assert!(gfc.may_leave(&mut device, 0, 0, 1_000));
    assert!(!gfc.may_leave(&mut device, 0, 0, 1_000));
    assert_eq!(device.take(), ["hold 0/0", "cancel 0"]);
}

#[test]
fn an_account_names_its_bytes_in_each_period() {
    let mut gfc = Gfc::new(&map_params(&LINK, 30_000, 0, 5_000_000, 0), &[3, 5]);
    let mut device = Notes::default();
    // Only one of the two lanes is lossless. The phases of the ports differ.
    gfc.begins(&mut device, 0);
    gfc.begins(&mut device, 1);
    let armed = device.take();
    assert_eq!((armed.len(), armed[0].as_str()), (2, "arm 2 0"));
    assert!(armed[1].starts_with("arm 8 1180"), "{armed:?}");
    device.stored.insert((0, 0), 77_777);
    gfc.stored(&mut device, 0, 0, 1_000);
    assert!(device.take().is_empty());
    gfc.timer(&mut device, 2);
    assert_eq!(device.take(), ["stored 0 [(3, 77777)]", "arm 2 5000000"]);
    gfc.link_failed(&mut device, 0, 0);
    assert_eq!(device.take(), ["cancel 1", "cancel 2", "cancel 0", "resume 0/0"]);
    device.now = 9_000_000;
    gfc.link_recovered(&mut device, 0, 0, true, 11_000_000);
    assert_eq!(
        device.take(),
        ["cancel 2", "stored 0 [(3, 77777)]", "arm 2 14000000", "hold 0/0", "arm 0 11005120"]
    );
}

proptest! {
    /// The time-based form: whatever leaves the account and whenever frames take effect, it stores less than its
    /// buffer, and the sender goes on.
    #[test]
    fn an_account_with_periods_never_overflows(
        delay in prop_oneof![Just(0u64), 1u64..5_000_000], response in prop_oneof![Just(0u64), 1u64..3_000_000],
        largest in 64u32..4_000, b0 in prop_oneof![Just(1u64), 1u64..200_000], before in 0u64..4_000,
        wide in prop_oneof![Just(0u64), 1u64..100_000], longer in prop_oneof![Just(0u64), 1u64..30_000_000],
        phase in 0.0..1.0f64, sizes in prop::collection::vec(64u32..4_000, 1..20), small in any::<bool>(),
        drain in prop::collection::vec(prop_oneof![Just(0u64), 1u64..400_000, 400_000u64..20_000_000], 0..200),
    ) {
        let facts = LinkFacts { rate: LINK.rate, delay, largest, retries: 0 };
        let sizes: Vec<u32> = if small { sizes.iter().map(|&s| s.min(largest)).collect() } else { vec![largest] };
        let period = serialisation(feedback(&facts, response), LINK.rate) + longer;
        let params = map_params(&facts, b0, wide, period, response);
        let buffer = params.maps[0].buffer;
        let before = before.min(largest.into());
        let mut link = Link::new(&params, facts, back(&facts, response, before));
        link.early = serialisation(before, LINK.rate);
        link.post((period as f64 * phase) as Time, Event::Period);
        let end = drain.iter().sum::<Time>() + 300 * period;
        link.run(end, &sizes, &drain, buffer);
        prop_assert!(link.most > b0, "the sender fills the account");
    }
}

/// With the least B_m − B_0 an account without a drain comes to B_m by the packets that the proof allows. With half of
/// it, it is far beyond. So the bound is not idle.
#[test]
fn with_half_of_the_map_an_account_passes_its_end() {
    let beyond = |part: u64| {
        let mut params = map_params(&LINK, 30_000, 0, 2_200_000, 0);
        let map = &mut params.maps[0];
        map.bm -= (map.bm - map.b0) / part;
        let (bm, buffer) = (map.bm, map.buffer);
        let mut link = Link::new(&params, LINK, back(&LINK, 0, 1_000));
        link.post(2_199_999, Event::Period);
        // A dozen periods: the stages beyond B_m have hardly begun.
        link.run(26_400_000, &[1_000], &[], buffer);
        link.most as i64 - bm as i64
    };
    let (whole, half) = (beyond(u64::MAX), beyond(2));
    println!("{whole} B beyond B_m, {half} B with half of the map");
    assert!(whole <= 3_000 && half > 10_000, "{whole} B, {half} B");
}

/// A drain of R_d keeps q at B_m − R_d/C·(B_m − B_0), the fixed point of the map.
#[test]
fn with_periods_the_queue_stands_where_the_map_has_the_rate_of_the_drain() {
    for gbps in [80u64, 50, 30, 10] {
        let (b0, gap) = (30_000, 8_000_000 / gbps);
        let params = map_params(&LINK, b0, 0, 5_000_000, 0);
        let (bm, buffer) = (params.maps[0].bm, params.maps[0].buffer);
        let mut link = Link::new(&params, LINK, back(&LINK, 0, 1_000));
        link.post(0, Event::Period);
        let drains = 10_000;
        link.run(drains * gap, &[1_000], &vec![gap; drains as usize], buffer);
        let left = link.arrived - link.stored.len() as u64;
        assert!(left + 1_080_000 / gap + 1 >= drains, "{gbps} Gbit/s: {left} packets left of {drains}");
        let fixed = bm as f64 - gbps as f64 / 100.0 * (bm - b0) as f64;
        println!("{gbps} Gbit/s: {} B at last, {fixed:.0} B by the map, {} B at most", link.q, link.most);
        // Two packets: one owed, one on the cable.
        assert!((link.q as f64 - fixed).abs() < 0.02 * fixed + 3_000.0, "{gbps}: {} B, not {fixed}", link.q);
    }
}

/// The receiver drains 30 Gbit/s of 100: the sender sends as much, at stages 1 and 2, and the account stays
/// between B_1 and B_3.
#[test]
fn the_rate_of_a_sender_converges_to_that_of_the_drain() {
    for (gbps, stages) in [(80u64, 0..=1usize), (50, 0..=2), (30, 1..=2), (10, 3..=4), (1, 6..=7)] {
        let (b1, gap) = (30_000, 8_000_000 / gbps);
        let params = params(&LINK, b1, 0, false);
        let ladder = params.ladders[0].clone();
        let mut link = Link::new(&params, LINK, back(&LINK, 0, 1_000));
        let drains = 4_000;
        link.run(drains * gap, &[1_000], &vec![gap; drains as usize], ladder.buffer);
        // Nothing is there before the first packet has come, after 1.08 us; from then on the drain never idles.
        let left = link.arrived - link.stored.len() as u64;
        assert!(left + 1_080_000 / gap + 1 >= drains, "{gbps} Gbit/s: {left} packets left of {drains}");
        let lowest = ladder.thresholds.get(stages.start().wrapping_sub(1)).map_or(0, |&b| b - 28_000);
        let highest = ladder.thresholds[*stages.end()];
        assert!(
            link.q >= lowest && link.most < highest + 1_000,
            "{gbps} Gbit/s: {} and {} B",
            link.q,
            link.most
        );
    }
}

/// With a B_1 that leaves less than 2·C·τ the account overflows. So the bound is not idle.
#[test]
fn with_half_of_the_room_an_account_overflows() {
    let h = feedback(&LINK, 0);
    let mut params = params(&LINK, 30_000, 0, false);
    let buffer = 30_000 + h + 1_000;
    params.ladders[0] = Ladder::new(30_000, h, buffer, &LINK);
    let mut link = Link::new(&params, LINK, back(&LINK, 0, 1_000));
    let overflows = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        link.run(LAST, &[1_000], &[], buffer);
    }));
    assert!(overflows.is_err());
}
