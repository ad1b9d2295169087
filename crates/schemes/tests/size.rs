//! Needs of links under schemes, against the papers, and against each other.

use xoff_kernel::time::{MICROSECOND, Time};
use xoff_net::units::{Bandwidth, Span};
use xoff_schemes::flow_control::LinkFacts;
use xoff_schemes::flow_control::bifrost::size as bifrost;
use xoff_schemes::flow_control::bifrost::slots::{History, Repair};
use xoff_schemes::flow_control::cbfc::size as cbfc;
use xoff_schemes::flow_control::pfc::keys::PfcKeys;
use xoff_schemes::flow_control::pfc::size as pfc;
use xoff_schemes::flow_control::portfc::size as portfc;
use xoff_schemes::flow_control::pyrrha::size as pyrrha;
use xoff_schemes::flow_control::size::question::Question;
use xoff_schemes::flow_control::size::{Sizing, Unit};
use xoff_schemes::flow_control::swing::size as swing;

const KM: Time = 5 * MICROSECOND;
const MIB: f64 = (1u64 << 20) as f64;

fn link(gbps: u64, km: u64) -> LinkFacts {
    LinkFacts { rate: gbps * 1_000_000_000, delay: km * KM, largest: 1_500, retries: 0 }
}

fn slots(slot: Time) -> bifrost::Ask {
    bifrost::Ask {
        slot,
        processing: MICROSECOND,
        jitter: 0,
        margin: None,
        response_time: 0,
        repair_every: 1,
        counted: false,
        history: History::Grants,
        repair: Repair::Excess,
    }
}

/// Without a response time, with pauses of 65,535 quanta.
fn question(priorities: u8) -> Question {
    let question = Question { priorities, ..Question::new(Bandwidth(100_000_000_000)) };
    assert_eq!((question.response_time, PfcKeys::default().quanta), (Span(0), u16::MAX));
    question
}

fn pfc_of(link: &LinkFacts, xoff: Option<u64>) -> Sizing {
    pfc::compute_size(&question(1), link, xoff)
}

fn cbfc_of(link: &LinkFacts, update: Option<Time>, unlimited: bool) -> Sizing {
    cbfc::compute_size(&Question { update: update.map(Span), ..question(1) }, link, unlimited)
}

fn term(sizing: &Sizing, name: &str) -> u64 {
    sizing.terms.iter().find(|t| t.0 == name).unwrap_or_else(|| panic!("no {name}: {:?}", sizing.terms)).1
}

/// Huang et al. 2024, section VI-B: 286 MB (binary) at 600 km and 400 Gbps; II: 9.5 MB at 80 km, 100 Gbps.
#[test]
fn one_bdp_is_that_of_the_paper() {
    let far = bifrost::sizing(&link(400, 600), &slots(10 * MICROSECOND), 1);
    assert_eq!(term(&far, "cable, both ways"), 300_000_000);
    assert_eq!((300_000_000.0 / MIB).floor(), 286.0);
    let near = pfc_of(&link(100, 80), None);
    assert_eq!(term(&near, "cable, both ways"), 10_000_000);
    assert_eq!(format!("{:.1}", 10_000_000.0 / MIB), "9.5");
}

/// Section VI-A.1: Δ + 3 Rs·T is 9.72 MB, which fits T = 5 us (`bifrost.testbed-T`).
#[test]
fn the_testbed_has_a_bdp_and_three_slots_of_5_us() {
    let s = bifrost::sizing(&link(100, 80), &slots(5 * MICROSECOND), 1);
    let bytes = term(&s, "cable, both ways") + term(&s, "two slots") / 2 * 3;
    assert_eq!(bytes, 10_187_500);
    assert_eq!(format!("{:.3}", bytes as f64 / MIB), "9.716");
}

/// Section V: 7,813 quanta for 10 us at 400 Gbps; a slot of 65,535 quanta carries 4 MiB.
#[test]
fn slots_have_the_quanta_of_the_paper_and_no_more_than_fit() {
    let s = bifrost::sizing(&link(400, 600), &slots(10 * MICROSECOND), 1);
    let quanta: Vec<u64> = s.thresholds.iter().filter(|f| f.unit == Unit::Quanta).map(|f| f.value).collect();
    assert_eq!(quanta[0], 7_813);
    // The margin, two packets, takes 46.875 quanta more.
    assert_eq!(quanta[1], 7_860);
    // 4 MiB less 64 B less two packets at 50 kB per us: 83.82 us.
    let check = |slot| {
        let (rate, processing) = (Bandwidth(400_000_000_000), Span(MICROSECOND));
        let checked = Question { rate, processing, slot: Span(slot), ..question(1) }.check();
        checked.map_err(|refusal| refusal.message)
    };
    assert_eq!(check(83_820_000), Ok(()));
    assert!(check(83_840_000).unwrap_err().contains("quanta of 512 bit times: a frame holds at most 65,535"));
    assert!(bifrost::longest_pause(&bifrost::params(&link(400, 600), &slots(83_840_000))) > 65_535);
    assert!(check(MICROSECOND).unwrap_err().ends_with("the switch sends its frame only after 1us"));
    assert_eq!(check(MICROSECOND + 1), Ok(()));
}

/// Theorem 1's H, section IV-C.1, and half of the need of PFC (IV-C.2), to the byte.
#[test]
fn bifrost_needs_half_of_deep_pfc() {
    for (gbps, km) in [(100, 80), (400, 600), (400, 2_000), (100, 600)] {
        let link = link(gbps, km);
        let deep = pfc_of(&link, None);
        let own = bifrost::sizing(&link, &slots(10 * MICROSECOND), 1);
        let ratio = own.buffer() as f64 / deep.buffer() as f64;
        assert!((0.50..=0.55).contains(&ratio), "{gbps} Gbps, {km} km: {ratio}");
        // Δ with 1 us of processing, 64 B and two packets; two slots of 10 us; a margin of two
        // packets; rounding; a packet and another one beyond H.
        let us = gbps * 1_000 / 8;
        let delta = 2 * km * 5 * us + us + 64 + 2 * 1_500;
        assert_eq!(own.buffer(), delta + 20 * us + 2 * 1_500 + 1_499 + 2 * 1_500, "{gbps} {km}");
        // Two BDP, and for each a frame and two packets; and the packet that crosses.
        assert_eq!(deep.buffer(), 2 * (2 * km * 5 * us + 64 + 3_000) + 1_500);
    }
}

/// Section VI-C: BifrostX has a third of the need of three priorities elsewhere.
#[test]
fn bifrostx_needs_one_buffer_for_all_priorities() {
    let link = link(400, 600);
    let of = |priorities, counted| {
        bifrost::sizing(&link, &bifrost::Ask { counted, ..slots(10 * MICROSECOND) }, priorities)
    };
    assert_eq!(of(3, false).buffer(), 3 * of(1, false).buffer());
    assert_eq!(of(3, true), of(1, true));
    // Tokens are bytes: nothing is rounded to packets, and one packet may be ahead of them.
    assert_eq!(of(3, true).buffer(), of(1, false).buffer() - 1_499 + 1_500);
    let pfc = pfc::compute_size(&question(3), &link, Some(pfc::SHALLOW));
    let ratio = of(3, true).buffer() as f64 / pfc.buffer() as f64;
    assert!((0.333..0.334).contains(&ratio), "{ratio}");
}

/// Section IV-C.3: 64 B every 10 us are 0.05% of 100 Gbps.
#[test]
fn a_frame_per_slot_has_the_cost_of_the_paper() {
    let s = bifrost::sizing(&link(100, 80), &slots(10 * MICROSECOND), 3);
    assert_eq!(s.control.bytes_per_second(), 6_400_000);
    assert_eq!(format!("{:.4}", 100.0 * s.control.share(100_000_000_000)), "0.0512");
    // PFC repeats a pause after half of it: 65,535 quanta of 5.12 ns at 100 Gbps.
    let pfc = pfc_of(&link(100, 80), None);
    assert_eq!(pfc.control.every, 65_535 * 5_120 / 2);
}

/// Section III-A: 12 bits limit a link of 100 Gbps to 1 km. 2048 blocks of 64 B are a round
/// trip of 1.048 km; packets and updates take their part of that.
#[test]
fn credits_of_12_bits_end_after_a_kilometre() {
    let metre = KM / 1_000;
    let fits = |metres: u64, update| {
        let link = LinkFacts { rate: 100_000_000_000, delay: metres * metre, largest: 256, retries: 0 };
        cbfc_of(&link, update, false).is_in_reach()
    };
    let soon = Some(MICROSECOND / 10);
    assert!(fits(1_000, soon) && !fits(1_048, soon));
    // As seldom as InfiniBand allows: 262,144 B of updates are more than 131,072 B of credit.
    assert!(!fits(0, None));
    let s = cbfc_of(&link(100, 80), None, false);
    assert!(!s.promise.full_throughput && s.promise.lossless);
    // (10 MB + 262,144 B + two packets + 8 B) in packets of 24 blocks, and two more.
    assert_eq!(s.buffer(), (10_265_152u64.div_ceil(1_500) + 2) * 24 * 64);
    let ideal = cbfc_of(&link(100, 80), None, true);
    assert!(ideal.promise.full_throughput && ideal.buffer() == s.buffer() && ideal.scheme == "cbfc-ideal");
}

/// Section VI-B: 1 MB and a headroom of 286 MB; relays of 287 MB suffice; SWING's need at the switch does not
/// grow with the distance.
#[test]
fn shallow_pfc_and_relays_are_those_of_the_paper() {
    let far = swing::compute_size(&question(1), &link(400, 600));
    assert!(far.thresholds[0].value <= 287 << 20 && far.thresholds[0].value > 286 << 20);
    let near = swing::compute_size(&question(1), &link(400, 100));
    let switch = |s: &Sizing| s.buffer() - s.thresholds[0].value;
    assert_eq!(switch(&far), switch(&near));
    assert_eq!(switch(&far), 198 * 1_024 + 1_500 + 64 + 3_000);
    // Several priorities: a second headroom for each of them.
    let three = swing::compute_size(&question(3), &link(400, 600));
    assert_eq!(three.share(), far.share() + 300_000_000 + 64 + 3_000);
    let pfc = pfc_of(&link(400, 600), Some(pfc::SHALLOW));
    assert_eq!(pfc.buffer(), (1 << 20) + 1_500 + 300_000_000 + 64 + 3_000);
    assert!(pfc.promise.lossless && !pfc.promise.full_throughput);
    let deep = pfc_of(&link(400, 600), Some(300_003_064));
    assert!(deep.promise.full_throughput, "XON of a BDP, a frame and two packets");
}

/// K_pause of two hop BDPs, and a hop BDP for each of m neighbours.
#[test]
fn pyrrha_leaves_k_pause_and_a_bdp_for_each_neighbour() {
    let link = link(100, 80);
    let of = |fan_in| {
        let ask = pyrrha::Ask { k_pause: 20_000_000, fan_in, response_time: 0, priorities: 1 };
        pyrrha::sizing(&link, &ask)
    };
    assert_eq!(of(4).buffer() - of(3).buffer(), 10_000_000 + 64 + 3_000);
    assert_eq!(of(1).buffer(), 30_000_000 + 1_500 + 64 + 3_000);
    assert!(!of(1).promise.lossless);
}

/// A frame of 64 B for every 64 B of data leaves nothing of the wire: such frames come late.
#[test]
fn frames_that_do_not_fit_promise_nothing() {
    let link = LinkFacts { rate: 51_200_000, delay: KM, largest: 1_500, retries: 0 };
    let slots = |slot| bifrost::Ask { processing: 0, ..slots(slot) };
    let none = bifrost::sizing(&link, &slots(10 * MICROSECOND), 1);
    assert_eq!((none.control.share(link.rate), none.promise.lossless), (1.0, false));
    assert!(!none.promise.full_throughput && none.notes.iter().any(|n| n.contains("100%")));
    assert!(bifrost::sizing(&link, &slots(10 * MICROSECOND + 1_000), 1).promise.lossless);
    // Late credit loses nothing.
    let credit = cbfc_of(&link, Some(1), true);
    assert!(credit.promise.lossless && !credit.promise.full_throughput);
}

/// The bound of a whole switch is that of its ports.
#[test]
fn portfc_is_a_port_s_part_of_the_bound() {
    use xoff_schemes::flow_control::portfc::bound::{Link, Side, bound};
    let link = LinkFacts { rate: 100_000_000_000, delay: MICROSECOND, largest: 1_048, retries: 0 };
    let near = Link { rate: link.rate, delay: link.delay };
    let whole = bound(&[Side { near, far: Some(near), xoff: 75_000, ddq_xoff: 75_000 }; 8], 1_048, 0);
    let ask = portfc::Ask { xoff: 75_000, others: 7, response_time: 0, priorities: 1 };
    assert_eq!(portfc::sizing(&link, &ask).buffer() * 8, whole.total());
    assert_eq!(portfc::xon(75_000), 50_000);
    assert_eq!(portfc::xon(8), 5);
}

/// Two thirds, rounded down once.
#[test]
fn portfc_xon_is_two_thirds_of_xoff() {
    for xoff in (0..100).chain([u64::MAX]) {
        assert_eq!(u128::from(portfc::xon(xoff)), u128::from(xoff) * 2 / 3);
    }
}

/// A link may idle if fewer bytes wait at X_on than leave until a RESUME has brought more; PortFC has one priority.
#[test]
fn portfc_notes_idle_links_and_uncounted_bytes() {
    let link = link(100, 1);
    let of = |xoff, priorities| {
        portfc::sizing(&link, &portfc::Ask { xoff, others: 3, response_time: 0, priorities })
    };
    let busy = pfc::busy(&link, 0).total;
    let idles = |s: &Sizing| s.notes.contains(&pfc::may_idle(busy));
    // The least X_off whose X_on is `busy`.
    let enough = (busy * 3).div_ceil(2);
    assert_eq!((portfc::xon(enough), portfc::xon(enough - 1)), (busy, busy - 1));
    for (xoff, idle) in [(enough - 1, true), (enough, false), (enough + 3, false), (busy / 2, true)] {
        let s = of(xoff, 1);
        assert_eq!((idles(&s), s.promise.full_throughput), (idle, !idle), "{xoff}");
    }
    let one =
        |priorities| of(enough, priorities).notes.iter().any(|note| note.contains("one lossless priority"));
    assert_eq!([1, 2, 8].map(one), [false, true, true]);
}

#[test]
fn bifrost_notes_a_slot_no_longer_than_its_margin() {
    let link = link(100, 80);
    let of_slot = 125_000;
    let says = |margin_us: Time| {
        let ask = bifrost::Ask { margin: Some(margin_us * MICROSECOND), ..slots(10 * MICROSECOND) };
        let notes = bifrost::sizing(&link, &ask, 1).notes;
        notes.iter().any(|note| note.contains("at most the margin"))
    };
    assert_eq!(of_slot, link.rate / 8 / 100_000);
    assert_eq!([0, 1, 9, 10, 11, 40].map(says), [false, false, false, true, true, true]);
}
