//! The messages of a run: tables and notes, kept as snapshots, and the statistics in them against sums made
//! here.

use crate::common::{LANES, LOSSLESS, LOSSY, US, blocked, deadlocked, healthy, plan};
use xoff_outcome::report::{Level, Note, Records, Value};
use xoff_plan::plan::{Down, ENDS, EXPIRE, Limit, Plan, Receiver, Red};
use xoff_results::summary::{Summary, summarise};
use xoff_results::table::{self, WIDTH};
use xoff_results::verdicts::State;
use xoff_schemes::flow_control::breakers::{BreakerParams, Cure, Found, Tally};
use xoff_schemes::flow_control::itsy::{Detection, ItsyParams, Resolution, Trigger};
use xoff_schemes::flow_control::none::NoParams;
use xoff_schemes::flow_control::per_flow_queue::PerFlowQueueParams;
use xoff_schemes::flow_control::tagger::TaggerParams;
use xoff_schemes::flow_control::watchdog::{Action, Storm, WatchdogParams};
use xoff_schemes::flow_control::{FlowControlParams, LaneRules, breakers, itsy, watchdog};
use xoff_sim::outcome::{DropReason, Drops, FlowOutcome, Outcome, Stop, Wait};

/// The rendered text, after a check of its width.
fn rendered(summary: &Summary) -> String {
    let text = table::render(summary);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "too wide: {line}");
        assert_eq!(line, line.trim_end(), "blanks at the end");
    }
    text
}

fn notes(plan: &Plan, outcome: &Outcome) -> Vec<Note> {
    summarise("ring", plan, outcome).notes
}

/// Numbers of the first mechanism's section.
fn counts<const N: usize>(summary: &Summary, names: [&str; N]) -> [u64; N] {
    names.map(|name| summary.sections[0].value(name).count().unwrap_or_else(|| panic!("{name}")))
}

fn texts(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    notes(plan, outcome).into_iter().map(|n| n.text).collect()
}

fn says(plan: &Plan, outcome: &Outcome, part: &str) -> bool {
    texts(plan, outcome).iter().any(|t| t.contains(part))
}

fn drops(reason: DropReason, lane: u8) -> Drops {
    Drops {
        ingress: 7,
        lane,
        lossless: lane == LOSSLESS,
        reason,
        packets: 12,
        bytes: 12_744,
        first: 250 * US,
        shortfall: 1_200,
    }
}

#[test]
fn a_healthy_run() {
    let plan = plan();
    insta::assert_snapshot!(rendered(&summarise("ring", &plan, &healthy(&plan))));
}

#[test]
fn a_deadlocked_run() {
    let plan = plan();
    insta::assert_snapshot!(rendered(&summarise("ring", &plan, &deadlocked(&plan))));
}

#[test]
fn a_run_whose_blocking_was_measured() {
    let plan = plan();
    let summary = summarise("ring", &plan, &blocked(&plan));
    insta::assert_snapshot!(rendered(&summary));
    let found = summary.blocking.unwrap();
    assert_eq!((found.pauses, found.congested_ports, found.paused_ports), (6, 2, 2));
    let ranked: Vec<_> = found.victims.iter().map(|v| v.waits.all_victim() / US).collect();
    assert_eq!(ranked, [25, 7, 1]);
    let roots: Vec<_> =
        found.roots.iter().map(|r| (r.port.as_str(), r.pauses, r.waits.all_victim() / US)).collect();
    assert_eq!(roots, [("S0.1:0", 5, 28), ("S0.2:0", 1, 5)]);
    let classes: Vec<_> = found.classes.iter().map(|c| (c.victim_flows, c.waits.all_victim() / US)).collect();
    assert_eq!(classes, [(2, 8), (1, 25)]);
}

/// Each zero is beside the pauses that give it meaning; queues of each flow's own promise it.
#[test]
fn who_promises_that_nobody_waits_for_others() {
    let (mut plan, verdict) = (plan(), |plan: &Plan, outcome: &Outcome| {
        let all = summarise("ring", plan, outcome).verdicts;
        all.into_iter().find(|v| v.property == "no-victims").map(|v| (v.state, v.text))
    });
    let some = blocked(&plan);
    let mut none = some.clone();
    let found = none.blocking.as_mut().unwrap();
    found.flows.iter_mut().for_each(|f| (f.victim, f.source_victim) = (0, 0));
    found.places.iter_mut().for_each(|(_, b)| (b.victim, b.source_victim) = (0, 0));
    let zero = Some((State::Held, "no victim waited (6 pauses)".to_string()));
    let text = "victims: 25 us in packets and 8 us at sources (6 pauses)".to_string();
    assert_eq!(verdict(&plan, &deadlocked(&plan)), None);
    assert_eq!(verdict(&plan, &none), zero);
    assert_eq!(verdict(&plan, &some), Some((State::NotPromised, text.clone())));
    plan.flow_control = FlowControlParams::PerFlowQueue(PerFlowQueueParams {
        pause: vec![],
        resume: vec![],
        response_time: 0,
        pause_time: 0,
    });
    assert_eq!(verdict(&plan, &none), zero);
    assert_eq!(verdict(&plan, &some), Some((State::Broken, text)));
}

#[test]
fn a_run_that_lost_packets() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    outcome.drops = vec![
        drops(DropReason::HeadroomFull, LOSSLESS),
        drops(DropReason::BufferFull, LOSSLESS),
        drops(DropReason::QueueLimit, LOSSLESS),
        drops(DropReason::QueueLimit, LOSSY),
    ];
    outcome.ports[7].pause_frames = 3;
    insta::assert_snapshot!(rendered(&summarise("lossy", &plan, &outcome)));
}

#[test]
fn an_interrupted_run_leaves_out_what_had_not_begun() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    outcome.end = 95 * US; // flows 0 to 9 have begun
    outcome.stop = Stop::Interrupted;
    let begins = |outcome: &mut Outcome| {
        for (result, flow) in outcome.flows.iter_mut().zip(&plan.flows).skip(5) {
            let started = (flow.start <= outcome.end).then_some(flow.start);
            *result = FlowOutcome { started, ..Default::default() };
        }
    };
    begins(&mut outcome);
    let summary = summarise("ring", &plan, &outcome);
    assert!(!summary.complete);
    let all = summary.sizes.last().unwrap();
    assert_eq!((all.flows, all.finished), (10, 5));
    assert!(says(&plan, &outcome, "interrupted at 95 us of 1 ms"));
    assert!(!says(&plan, &outcome, "The traffic"));
    let mut early = outcome.clone();
    early.end = 45 * US; // the other class begins with flow 5, at 50 us
    begins(&mut early);
    let silent = "The traffic \"an incast with a long name\" had no effect: none of its flows started";
    assert!(says(&plan, &early, silent));
    assert!(says(&plan, &outcome, "5 of 10 flows unfinished at 95 us: 5 were still running"));
}

#[test]
fn groups_add_up() {
    let plan = plan();
    let outcome = deadlocked(&plan);
    let s = summarise("ring", &plan, &outcome);
    let (all, buckets) = s.sizes.split_last().unwrap();
    for groups in [buckets, &s.classes[..]] {
        assert_eq!(groups.iter().map(|g| g.flows).sum::<u64>(), 60);
        assert_eq!(groups.iter().map(|g| g.finished).sum::<u64>(), 30);
        let goodput: f64 = groups.iter().map(|g| g.goodput_bps).sum();
        assert!((goodput - all.goodput_bps).abs() < 1.0);
    }
    // 30 finished flows of slowdown 1 + i/10: median by nearest rank is the 15th.
    let q = all.slowdown.unwrap();
    assert!((q.mean - 2.45).abs() < 1e-6, "{}", q.mean);
    assert!((q.p50 - 2.4).abs() < 1e-6 && (q.p999 - 3.9).abs() < 1e-6);
    // 4 us, and three pauses that last from about 300 us to the end at 1000 us.
    assert_eq!(s.pauses.total_ps, 4 * US + 3 * 700 * US - (6 + 8 + 10));
    assert_eq!((s.pauses.count, s.pauses.standing, s.pauses.queues), (4, 3, 3));
    assert_eq!((s.pauses.pause_frames, s.pauses.resume_frames), (36, 1));
    let headroom = s.peaks.headroom.unwrap();
    assert_eq!(
        (headroom.place.as_str(), headroom.bytes, headroom.of),
        ("S0.1:1 (priority 3)", 6_000, Some(12_000))
    );
}

#[test]
fn verdicts_follow_the_outcome() {
    let plan = plan();
    let states =
        |o: &Outcome| summarise("ring", &plan, o).verdicts.iter().map(|v| v.state).collect::<Vec<_>>();
    use State::{Broken, Held, NotPromised};
    assert_eq!(states(&healthy(&plan)), [Held; 4]);
    assert_eq!(states(&deadlocked(&plan)), [Held, Broken, Held, NotPromised]);
    let mut starved = deadlocked(&plan);
    starved.stop = Stop::Starved;
    assert_eq!(states(&starved)[3], Broken);
    let mut lost = healthy(&plan);
    lost.counters.delivered -= 1; // a packet that nobody accounts for
    assert_eq!(states(&lost), [Held, Held, Broken, Held]);
    lost.drops.push(drops(DropReason::Expired, LOSSLESS));
    assert_eq!(states(&lost)[0], Held, "a routing loop is no loss of a buffer's");
    lost.drops.push(drops(DropReason::BufferFull, LOSSY));
    assert!(!summarise("ring", &plan, &lost).lost_lossless());
    lost.drops.push(drops(DropReason::BufferFull, LOSSLESS));
    assert_eq!(states(&lost)[0], Broken);
    let mut lossy = plan.clone();
    lossy.lanes[0].lossless = false;
    assert_eq!(summarise("ring", &lossy, &healthy(&lossy)).verdicts[0].state, NotPromised);
}

#[test]
fn pfc_that_never_fired_says_how_near_it_came() {
    let mut plan = plan();
    let mut outcome = healthy(&plan);
    assert!(says(
        &plan,
        &outcome,
        "PFC never paused: the fullest ingress, S0.1:1 (priority 3), reached 34 kB of its XOFF threshold of 75 kB."
    ));
    // α = 1/8 of 4.5 MB less the 120 kB that S0.1 held at most, and the reserve.
    for account in plan.accounts.iter_mut().step_by(LANES) {
        account.limit = Limit::Dynamic { alpha_q16: 8_192, cap: u64::MAX };
    }
    assert!(says(&plan, &outcome, "reached 34 kB and its dynamic XOFF threshold stayed at or above 552 kB"));
    outcome.ports[3].pause_frames = 1;
    assert!(!says(&plan, &outcome, "PFC never paused"));
    outcome.ports[3].pause_frames = 0;
    plan.flow_control = FlowControlParams::None(NoParams);
    assert!(!says(&plan, &outcome, "PFC never paused"));
}

#[test]
fn options_without_effect_are_named() {
    let base = plan();
    let outcome = healthy(&base);
    let quiet = texts(&base, &outcome).len();
    let check = |change: &dyn Fn(&mut Plan), part: &str| {
        let mut plan = base.clone();
        change(&mut plan);
        let texts = texts(&plan, &outcome);
        assert!(texts.iter().any(|t| t.contains(part)), "no {part:?} in {texts:?}");
        assert_eq!(texts.len(), quiet + 1, "{texts:?}");
    };
    check(
        &|p| {
            p.lanes[0].ecn = Some(Red {
                k_min: 40_000,
                k_max: 80_000,
                p_max: 0.1,
                per: 0,
                at_dequeue: false,
                of_port: false,
                last_hop: true,
                hosts: true,
            })
        },
        "ECN never marked a packet: the longest queue, at S0.0:1, reached 34 kB, and marking begins above 40 kB",
    );
    check(&|p| p.transport.window = Some(2_000_000), "transport.window = 2 MB had no effect");
    check(&|p| p.flows[4].pace = 100_000_000_000, "The rate of flow 4: H1 -> H0 (websearch) had no effect");
    check(
        &|p| p.receivers.push(Receiver { host: 5, rx: 0, stalls: Vec::new() }),
        "The slow receiver S0.2 had no effect: no flow has it as its destination.",
    );
    check(
        &|p| p.receivers.push(Receiver { host: 1, rx: 0, stalls: vec![(2_000 * US, 3_000 * US)] }),
        "The stall of H1 at 2 ms had no effect: the run ended at 1 ms.",
    );
    let mut marked = outcome.clone();
    marked.ports[6].marks = 5;
    let mut plan = base.clone();
    plan.lanes[0].ecn = Some(Red {
        k_min: 1,
        k_max: 2,
        p_max: 1.0,
        per: 0,
        at_dequeue: false,
        of_port: false,
        last_hop: true,
        hosts: true,
    });
    assert!(says(&plan, &marked, "ECN marks had no effect: 5 marks were set"));
}

#[test]
fn pauses_that_never_came_are_named() {
    let mut plan = plan();
    let ports = plan.topology.ports.len();
    plan.flow_control = FlowControlParams::PerFlowQueue(PerFlowQueueParams {
        pause: vec![50_000; ports],
        resume: vec![25_000; ports],
        response_time: 0,
        pause_time: 0,
    });
    let mut outcome = healthy(&plan);
    let text = "Per-flow queueing sent no pause: the queues of S0.0:1 were the longest, 34 kB together; \
                the queue of a flow is paused at 50 kB or more.";
    assert!(says(&plan, &outcome, text), "{:?}", texts(&plan, &outcome));
    outcome.ports[3].pause_frames = 1;
    assert!(!says(&plan, &outcome, "sent no pause"));
    // Without flow control there is nothing for the oracle to look at.
    outcome.ports[3].pause_frames = 0;
    plan.flow_control = FlowControlParams::None(NoParams);
    outcome.pauses.clear();
    assert!(!says(&plan, &outcome, "measure.blocking"));
    plan.measure.blocking = true;
    assert!(says(&plan, &outcome, "measure.blocking had no effect"));
}

#[test]
fn unfinished_flows_have_a_reason() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    outcome.flows[59].completed = None;
    assert!(says(
        &plan,
        &outcome,
        "1 of 60 flows unfinished at 1 ms: 1 was still running when the simulation ended"
    ));
    outcome.stop = Stop::Starved;
    assert!(says(&plan, &outcome, "1 can never continue, because no event is left"));

    // Of the thirty flows left, three use the lossy lane (39, 49, 59). H0 sends the
    // ACKs of 49 through an ingress that is stuck; nothing holds the other two.
    let outcome = deadlocked(&plan);
    let split = "30 of 60 flows unfinished at 1 ms: 28 cross the deadlock and 2 were still running when";
    assert!(says(&plan, &outcome, split));
    // Only the packets that enter H0 are held: data and ACKs to it.
    let mut partly = outcome.clone();
    partly.deadlock.as_mut().unwrap().stuck = vec![(0, LOSSLESS)];
    let held = plan.flows[30..].iter().filter(|f| f.src == 0 || (f.dst == 0 && f.lane == LOSSLESS)).count();
    assert!(says(&plan, &partly, &format!("{held} cross the deadlock and {} were", 30 - held)));
}

#[test]
fn copies_that_arrive_twice_are_told() {
    let plan = plan();
    let mut outcome = deadlocked(&plan);
    for flow in &mut outcome.flows {
        (flow.spurious, flow.retransmitted) = (0, 0);
    }
    outcome.flows[0].spurious = 60;
    // Optimistic cells of Zeropod have copies without a retransmission.
    assert!(says(&plan, &outcome, "60 packets arrived after another copy had already arrived"));
    outcome.flows[1].retransmitted = 100;
    assert!(says(&plan, &outcome, "60 of 100 retransmissions were unnecessary"));
}

#[test]
fn a_deadlock_tells_what_became_of_the_goodput() {
    let plan = plan();
    let mut outcome = deadlocked(&plan);
    let told = |o: &Outcome| notes(&plan, o)[0].details.iter().any(|d| d.contains("goodput"));
    // 12 Gbps at 1 us and 5 + 3 Gbps at 301 us, then nothing.
    let line = "goodput was 10 Gbps on average before the deadlock and 0 bps in the last sample (at 601 us)";
    assert!(notes(&plan, &outcome)[0].details.contains(&line.to_string()));
    outcome.series.retain(|s| s.at < 400 * US); // nothing sampled after it
    assert!(!told(&outcome));
    outcome.series.clear();
    assert!(!told(&outcome));
}

#[test]
fn waits_are_told_by_their_root() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    let wait =
        |port, root| Wait { port, lane: LOSSLESS, bytes: 12_000, since: 120 * US, waits_for: port ^ 1, root };
    outcome.waiting = (0..12).map(|p| wait(p, Some(2))).collect();
    outcome.waiting.push(wait(6, None));
    let notes = notes(&plan, &outcome);
    let note = notes.iter().find(|n| n.text.contains("because H2 does not accept packets")).unwrap();
    assert_eq!(note.level, Level::Warning);
    assert_eq!(note.details.len(), 9);
    assert_eq!(note.details[7], "S0.1:1 (priority 3) holds 12 kB and has waited for S0.0:1 since 120 us");
    assert_eq!(note.details[8], "and 4 more: see summary.json");
    assert!(notes.iter().any(|n| n.text == "1 queue was blocked at the end by pauses of the next hop:"));
    // A host that may not send has nothing in a queue.
    outcome.waiting = vec![Wait { bytes: 0, ..wait(0, Some(2)) }];
    let notes = summarise("ring", &plan, &outcome).notes;
    let details = |n: &Note| n.details == ["H0:0 (priority 3) has waited for S0.0:0 since 120 us"];
    assert!(notes.iter().any(details), "{notes:?}");
}

#[test]
fn many_places_of_loss_are_told_by_the_first_ones() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    let place = |i: u64| Drops {
        ingress: i as u32,
        first: (100 - i) * US,
        ..drops(DropReason::HeadroomFull, LOSSLESS)
    };
    outcome.drops = (0..11).map(place).collect();
    let texts: Vec<String> = texts(&plan, &outcome).into_iter().filter(|t| t.contains("dropped")).collect();
    // The last entries lost first.
    assert_eq!(texts.len(), 9, "{texts:?}");
    assert!(texts[0].starts_with("S0.2:2 dropped 12 packets"), "{texts:?}");
    let rest = "Later, 36 more packets of lossless priorities were dropped at 3 other places: \
                see drops.places in summary.json.";
    assert_eq!(texts[8], rest);
    outcome.drops.truncate(8);
    assert!(!says(&plan, &outcome, "other place"));
}

#[test]
fn pauses_of_ages_do_not_overflow() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    outcome.pauses = deadlocked(&plan).pauses;
    assert!(outcome.pauses.len() > 2);
    for pause in &mut outcome.pauses {
        (pause.from, pause.until) = (0, Some(1 << 63));
    }
    assert_eq!(summarise("ring", &plan, &outcome).pauses.total_ps, u64::MAX);
}

#[test]
fn a_routing_loop_is_shown() {
    let mut plan = plan();
    let path = plan.hops.len() as u32;
    plan.hops.extend([0, 6, 7, 6, 7]); // S0.0 and S0.1 send it to and fro
    plan.hops.push(EXPIRE);
    plan.flows[0].path = path;
    let mut outcome = healthy(&plan);
    outcome.flows[0].completed = None;
    outcome.drops.push(drops(DropReason::Expired, LOSSLESS));
    let notes = notes(&plan, &outcome);
    let note = notes.iter().find(|n| n.text.starts_with("1 flow runs in a routing loop")).unwrap();
    assert_eq!(note.details, ["flow 0: H0 -> H2 (websearch): S0.0 -> S0.1 -> S0.0"]);
    assert!(notes.iter().any(|n| n.text.contains("1 runs in a routing loop")));
    assert!(notes.iter().all(|n| n.level != Level::Error));
}

#[test]
fn flows_that_failed_are_told_apart() {
    let plan = plan();
    let mut outcome = healthy(&plan);
    assert!(!rendered(&summarise("ring", &plan, &outcome)).contains("failed"));
    // Of the first no byte arrived; of the second all did, and the ACKs were lost.
    for (flow, at) in [(0, 80 * US), (1, 70 * US)] {
        let result = &mut outcome.flows[flow];
        (result.completed, result.failed, result.timeouts) = (None, Some(at), 6);
    }
    outcome.flows[0].delivered_bytes = 0;
    outcome.stop = Stop::AllDone;
    let summary = summarise("ring", &plan, &outcome);
    assert_eq!(summary.classes.iter().map(|c| c.failed).sum::<u64>(), 2);
    let text = rendered(&summary);
    assert!(text.contains("every flow finished or failed"), "{text}");
    assert!(text.lines().any(|l| l.starts_with("size") && l.contains("finished  failed")), "{text}");
    let all = plan.flows.len();
    let completion = format!("{} of {all} flows finished, 2 failed", all - 2);
    assert!(text.lines().any(|l| l.contains("BROKEN") && l.contains(&completion)), "{text}");
    let note = summary.notes.iter().find(|n| n.text.contains("failed, the first at 70 us")).expect("a note");
    assert!(note.text.starts_with(&format!("2 of {all} flows failed")) && note.level == Level::Warning);
    assert!(note.details[0].contains("failed at 80 us after 6 timeouts: 0 B of"), "{:?}", note.details);
    assert!(note.details[1].ends_with("all was delivered, but not acknowledged"), "{:?}", note.details);
}

#[test]
fn faults_are_counted_and_break_no_promise() {
    let mut plan = plan();
    let mut outcome = healthy(&plan);
    for reason in
        [DropReason::LinkDown, DropReason::Unreachable, DropReason::FrameLost, DropReason::FrameCorrupted]
    {
        outcome.drops.push(drops(reason, LOSSLESS));
    }
    let summary = summarise("ring", &plan, &outcome);
    assert_eq!((summary.drops.fault_packets, summary.drops.lossless_packets), (48, 0));
    assert!(rendered(&summary).contains("48 by faults"));
    assert!(says(&plan, &outcome, "Faults dropped 48 packets"));
    assert!(notes(&plan, &outcome).iter().all(|n| n.level != Level::Error));
    // Flow 0 has lost its last link permanently.
    let route: Vec<u32> =
        plan.hops[plan.flows[0].path as usize..].iter().copied().take_while(|&h| h < ENDS).collect();
    plan.faults.down = vec![Down { port: route[route.len() - 1], spans: vec![(0, u64::MAX)] }];
    outcome.flows[0].completed = None;
    assert!(says(&plan, &outcome, "1 flow did not finish and had no working path"));
    assert!(says(&plan, &outcome, "1 had no working path at the end"));
}

/// The drops of a watchdog break no promise, and keep none.
#[test]
fn storms_are_told_with_what_they_cost() {
    let mut plan = plan();
    let mut outcome = deadlocked(&plan);
    outcome.deadlock.as_mut().unwrap().ended = Some(900 * US);
    let FlowControlParams::Pfc(pfc) = plan.flow_control else { panic!("the plan has PFC") };
    let params = WatchdogParams {
        pfc,
        action: Action::Drop,
        detection: 500 * US,
        restoration: 100 * US,
        poll: 100 * US,
        first: vec![Some(0); plan.topology.ports.len()],
    };
    plan.flow_control = FlowControlParams::Watchdog(params.clone());
    outcome.records = Records::of(watchdog::Report { storms: Vec::new(), params });
    assert!(says(&plan, &outcome, "The watchdog found no storm: "));
    outcome.records.get_mut::<watchdog::Report>().unwrap().storms.push(Storm {
        port: 6,
        lane: LOSSLESS,
        from: 800 * US,
        until: None,
    });
    outcome.drops.push(drops(DropReason::Scheme(&watchdog::report::DROPPED), LOSSLESS));
    let summary = summarise("ring", &plan, &outcome);
    assert_eq!(counts(&summary, ["storms", "restored", "dropped_packets"]), [1, 0, 12]);
    assert_eq!((summary.drops.scheme_packets, summary.drops.lossless_packets), (12, 0));
    assert_eq!(summary.verdicts[0].state, State::NotPromised);
    let text = rendered(&summary);
    for part in [
        "12 by the watchdog",
        "1 storm found, the first at 800 us, 0 ended; action drop, 12 packets",
        "ended at 900 us",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(says(&plan, &outcome, "The watchdog found 1 storm, the first at 800 us"));
    assert!(notes(&plan, &outcome).iter().all(|n| n.level != Level::Error));
    // The packets of the deadlock are in flight again.
    assert!(!says(&plan, &outcome, "the deadlock and"));
}

/// So are the drops of ITSY; the notes name missed deadlocks, and room that no pool has.
#[test]
fn what_itsy_found_and_missed_is_told() {
    let mut plan = plan();
    let mut outcome = deadlocked(&plan);
    let FlowControlParams::Pfc(pfc) = plan.flow_control else { panic!("the plan has PFC") };
    let resolution = Resolution::Lossy;
    plan.flow_control = FlowControlParams::Itsy(ItsyParams { pfc, numbers: Vec::new(), resolution });
    let trigger = |from, until| Trigger { port: 7, lane: LOSSLESS, from, until };
    let triggers = vec![trigger(200 * US, Some(250 * US)), trigger(300 * US, None)];
    let detections = Vec::new();
    outcome.records = Records::of(itsy::Report { resolution, triggers, detections, discarded: 5 });
    let missed = "ITSY missed the deadlock: no check of 2 triggers returned (5 dropped by other triggers).";
    assert!(says(&plan, &outcome, missed));
    assert!(rendered(&summarise("ring", &plan, &outcome)).contains("no deadlock found; 2 triggers"));

    let found = Detection {
        at: 700 * US,
        port: 7,
        lane: LOSSLESS,
        egress: 6,
        acted: 3,
        refused: 0,
        room: 0,
        ended: Some(900 * US),
    };
    outcome.records.get_mut::<itsy::Report>().unwrap().detections.push(found);
    outcome.deadlock.as_mut().unwrap().ended = found.ended;
    outcome.drops.push(drops(DropReason::Scheme(&itsy::report::DROPPED), LOSSLESS));
    let summary = summarise("ring", &plan, &outcome);
    assert_eq!(summary.sections[0].value("resolution"), &Value::from("lossy"));
    assert_eq!(counts(&summary, ["triggers", "discarded"]), [2, 5]);
    assert_eq!(counts(&summary, ["found", "attempts", "dissolved", "given_up"]), [1, 3, 1, 0]);
    assert_eq!(counts(&summary, ["first_ps", "mean_ps", "dropped_packets"]), [700 * US, 200 * US, 12]);
    assert_eq!((summary.drops.scheme_packets, summary.drops.lossless_packets), (12, 0));
    assert_eq!(summary.verdicts[0].state, State::NotPromised);
    let text = rendered(&summary);
    for part in ["12 by ITSY", "1 deadlock found, the first at 700 us", "1 resumed after 200 us"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(says(&plan, &outcome, "ITSY found 1 deadlock and acted 3 times: 12 packets"));
    assert!(!says(&plan, &outcome, "ITSY missed"));
    assert!(notes(&plan, &outcome).iter().all(|n| n.level != Level::Error));

    let itsy = outcome.records.get_mut::<itsy::Report>().unwrap();
    itsy.resolution = Resolution::Lossless(25_000);
    let found = &mut itsy.detections[0];
    (found.refused, found.room) = (1, 75_000);
    assert!(says(&plan, &outcome, "acted 3 times: 75 kB of room given."));
    assert!(says(&plan, &outcome, "ITSY could not give room 1 time: the shared pool was too small."));
}

/// A note names tags that are fewer than the routes need, with the drops beyond them.
#[test]
fn too_few_tags_are_said() {
    let mut plan = plan();
    let mut outcome = healthy(&plan);
    let FlowControlParams::Pfc(pfc) = plan.flow_control else { panic!("the plan has PFC") };
    let tags = LaneRules { turns: vec![0; plan.topology.ports.len()], next: vec![LOSSY, LOSSY] };
    let tagger = |needed| TaggerParams {
        pfc,
        tags: tags.clone(),
        lossless: 1,
        needed,
        all_routes: None,
        lossy: LOSSY,
    };
    plan.flow_control = FlowControlParams::Tagger(tagger(1));
    assert!(!says(&plan, &outcome, "lossless tags"));
    plan.flow_control = FlowControlParams::Tagger(tagger(2));
    assert!(says(&plan, &outcome, "the routes need 2 lossless tags, and packets have 1"));
    assert!(says(&plan, &outcome, "in priority 0 (0 packets dropped there)."));
    outcome.drops = vec![drops(DropReason::QueueLimit, LOSSY)];
    assert!(says(&plan, &outcome, "(12 packets dropped there)"));
}

/// A note names a flow that waits permanently because a frame of Pyrrha was lost: in runs, some of which lose
/// a RESUME.
#[test]
fn what_a_lost_frame_of_pyrrha_leaves_paused_is_said() {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    let said = |seed: u64, loss: &str| {
        let text = format!(
            "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [\"S\"]\nlinks = [\
             {{a=\"A\", b=\"S\", rate=\"100Gbps\", delay=\"1us\"}}, {{a=\"S\", b=\"B\", rate=\"50Gbps\", delay=\"1us\"}}]\n\
             [flow_control]\nscheme = \"pyrrha\"\n[switch]\nbuffer = \"64MB\"\n[transport]\nrto = \"200us\"\n[run]\nseed = {seed}\nduration = \"3ms\"\n\
             [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"3MB\"\n{loss}"
        );
        let plan = xoff_plan::load("t.toml", text.as_bytes(), &[], &files).expect("a good scenario").plan;
        let outcome = xoff_sim::run(&plan, &mut |_| true);
        // Of a host that are the queue of its pairs and that of its packets.
        let note =
            "2 queues may be paused permanently: Pyrrha sends each frame once, and a link can lose it.";
        (outcome.flows[0].completed.is_some(), says(&plan, &outcome, note))
    };
    assert_eq!(said(0, ""), (true, false));
    let lossy = "[[loss]]\nlink = \"A-S\"\nfrom = \"S\"\nrate = 0.02\n";
    let all: Vec<(bool, bool)> = (0..20).map(|seed| said(seed, lossy)).collect();
    assert!(all.iter().all(|&(completed, said)| completed != said), "{all:?}");
    assert!(all.contains(&(true, false)) && all.contains(&(false, true)), "{all:?}");
}

/// Deadlocks that control planes found, and those that they could not resolve.
#[test]
fn breakers_are_told_with_what_they_could_not_do() {
    let mut plan = plan();
    let mut outcome = deadlocked(&plan);
    let FlowControlParams::Pfc(pfc) = plan.flow_control else { panic!("the plan has PFC") };
    let first = vec![Some(0); plan.topology.ports.len()];
    let times = (100 * US, 10 * US, US);
    let mut run_with = |cure| {
        let (period, latency, turn) = times;
        let first = first.clone();
        plan.flow_control =
            FlowControlParams::Breaker(BreakerParams { pfc, cure, period, latency, turn, first, seed: 1 });
        plan.clone()
    };
    let rerouting = run_with(Cure::Reroute);
    let (found, tally) = (Vec::new(), Tally::default());
    outcome.records = Records::of(breakers::Report { cure: Cure::Reroute, found, tally });
    let silent = summarise("ring", &rerouting, &outcome);
    assert_eq!((counts(&silent, ["found"]), silent.sections.len()), ([0], 1));
    assert!(rendered(&silent).contains("no deadlock found; 0 B between control planes"));
    assert!(!says(&rerouting, &outcome, "Control planes found"));

    let found = |at, until, attempts| Found { at, port: 6, lane: LOSSLESS, until, attempts };
    let report = outcome.records.get_mut::<breakers::Report>().unwrap();
    report.found = vec![found(600 * US, Some(610 * US), 1), found(700 * US, None, 5)];
    report.tally = Tally {
        frames: 40,
        bytes: 2_560,
        rerouted: 1_234,
        stayed: 7,
        enlarged: 3,
        enlarged_bytes: 90_000,
        failed: 4,
    };
    let summary = summarise("ring", &rerouting, &outcome);
    assert_eq!(counts(&summary, ["found", "attempts", "dissolved", "given_up"]), [2, 6, 1, 4]);
    assert_eq!(counts(&summary, ["first_ps", "mean_ps", "longest_ps"]), [600 * US, 10 * US, 10 * US]);
    let text = rendered(&summary);
    assert!(
        text.contains("2 deadlocks found, the first at 600 us by S0.0:1; 1 resumed after 10 us"),
        "{text}"
    );
    assert!(says(
        &rerouting,
        &outcome,
        "2 deadlocks with 6 probes: 1,234 packets moved to another path, and 7 had no unpaused path"
    ));
    assert!(says(&rerouting, &outcome, "4 attempts to reroute moved no packet"));
    let giving = run_with(Cure::Room(5_000));
    outcome.records.get_mut::<breakers::Report>().unwrap().cure = Cure::Room(5_000);
    assert!(says(&giving, &outcome, "3 ingress queues received more room, 90 kB in all"));
    assert!(says(&giving, &outcome, "4 attempts to make room failed: the shared pool was too small"));
}
