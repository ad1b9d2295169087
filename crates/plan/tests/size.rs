//! The needs of links: distances and buffers are inverse to each other, values out of range are errors, and
//! the links of scenarios are compared.

use std::io;
use std::path::Path;
use xoff_net::units::{Bytes, Length};
use xoff_plan::plan::Plan;
use xoff_plan::size::links::{Need, Report, links};
use xoff_plan::size::{LONGEST, Question, Reach, SCHEMES, check_distance};
use xoff_schemes::flow_control::RETRIES;

fn question(rate: &str) -> Question {
    Question::new(rate.parse().unwrap())
}

fn needed(question: &Question, scheme: &str, metres: u64) -> u64 {
    question.compute_size(scheme, Length(metres * 1_000)).buffer()
}

#[test]
fn a_buffer_reaches_as_far_as_it_suffices_and_no_metre_more() {
    for rate in ["100Gbps", "400Gbps", "3.7Gbps"] {
        for priorities in [1, 3] {
            let question = Question { priorities, update: Some("100ns".parse().unwrap()), ..question(rate) };
            for buffer in [1 << 20, 10_000_000, 64 << 20, 300_000_000, 287 << 20, 1 << 32] {
                for scheme in SCHEMES {
                    let reach = question.reach(scheme, Bytes(buffer));
                    let at = format!("{scheme} {rate} {priorities} {buffer}: {reach:?}");
                    let fits = |m| needed(&question, scheme, m) <= buffer;
                    match reach {
                        Reach::Nowhere => assert!(!fits(0), "{at}"),
                        Reach::Anywhere => assert!(fits(LONGEST), "{at}"),
                        Reach::UpTo(m)
                            if matches!(scheme, "cbfc" | "uec-cbfc" | "gfc-time" | "llr") && fits(m + 1) =>
                        {
                            // The 12 or 20 bits of credits, the 32 bits of stored bytes, or the 16 bits of the replay timer, end before the buffer does.
                            let said = |m| question.compute_size(scheme, Length(m * 1_000)).is_in_reach();
                            assert!(said(m) && !said(m + 1), "{at}");
                            assert_eq!(question.format_reach(scheme), Reach::UpTo(m), "{at}");
                        }
                        Reach::UpTo(m) => assert!(fits(m) && !fits(m + 1), "{at}"),
                    }
                }
            }
        }
    }
}

#[test]
fn more_distance_never_needs_less() {
    let question = question("400Gbps");
    for scheme in SCHEMES {
        let mut last = 0;
        for metres in (0..2_000_000).step_by(7_919) {
            let now = needed(&question, scheme, metres);
            assert!(now >= last, "{scheme} at {metres}");
            last = now;
        }
    }
}

/// Section II-A: thousands of kilometres, which frames with a pause time do not limit.
#[test]
fn pauses_have_no_limit_of_distance_and_credits_do() {
    let question = Question { update: Some("100ns".parse().unwrap()), ..question("100Gbps") };
    assert_eq!(question.format_reach("bifrost"), Reach::Anywhere);
    let Reach::UpTo(metres) = question.format_reach("cbfc") else { panic!("12 bits") };
    assert!((900..1_048).contains(&metres), "{metres}");
}

#[test]
fn values_out_of_range_are_refused_by_name() {
    let good = question("400Gbps");
    assert_eq!(good.check(), Ok(()));
    let time = |text: &str| text.parse().unwrap();
    let wrong = [
        ("rate", question("101Tbps")),
        ("mtu", Question { mtu: Bytes(63), ..good.clone() }),
        ("mtu", Question { mtu: Bytes(65_536), ..good.clone() }),
        ("priorities", Question { priorities: 0, ..good.clone() }),
        ("priorities", Question { priorities: 9, ..good.clone() }),
        ("repair-every", Question { repair_every: 0, ..good.clone() }),
        ("fan-in", Question { fan_in: 0, ..good.clone() }),
        ("fan-in", Question { fan_in: 257, ..good.clone() }),
        ("update", Question { update: Some(time("0ps")), ..good.clone() }),
        ("update", Question { update: Some(time("2s")), ..good.clone() }),
        ("response-time", Question { response_time: time("2s"), ..good.clone() }),
        ("xoff", Question { xoff: Bytes(0), ..good.clone() }),
        // The switch's own delay, and 65,535 quanta: 4 MiB of line rate.
        ("slot", Question { slot: time("1us"), ..good.clone() }),
        ("slot", Question { slot: time("84us"), ..good.clone() }),
        ("slot", Question { slot: time("3us"), jitter: time("2us"), ..good.clone() }),
    ];
    for (key, question) in wrong {
        let refusal = question.check().expect_err(key);
        assert_eq!(refusal.key, key);
        assert!(!refusal.message.is_empty() && !refusal.help.is_empty());
    }
    for distance in ["0km", "40000.001km"] {
        assert_eq!(check_distance(distance.parse().unwrap()).unwrap_err().key, "distance");
    }
    assert_eq!(check_distance("40000km".parse().unwrap()), Ok(()));
    // The ends of all ranges together do not overflow.
    let ends = Question {
        mtu: Bytes(65_535),
        priorities: 8,
        repair_every: 1_000,
        fan_in: 256,
        slot: time("20ns"),
        processing: time("1ns"),
        response_time: time("1s"),
        ..question("100Tbps")
    };
    assert_eq!(ends.check(), Ok(()));
    for sizing in SCHEMES.map(|scheme| ends.compute_size(scheme, Length(LONGEST * 1_000))) {
        assert!(sizing.buffer() > 0 && sizing.buffer() < u64::MAX, "{}", sizing.scheme);
    }
}

/// Two switches with a host each, on a cable of 80 km.
fn plan(flow_control: &str) -> Plan {
    plan_over("80km", flow_control)
}

fn plan_over(cable: &str, flow_control: &str) -> Plan {
    let text = format!(
        "[topology]
kind = \"custom\"
hosts = [\"A\", \"B\"]
switches = [\"M\", \"N\"]
links = [
    {{ a = \"A\", b = \"M\", rate = \"100Gbps\", delay = \"1us\" }},
    {{ a = \"M\", b = \"N\", rate = \"100Gbps\", delay = \"{cable}\", long = true }},
    {{ a = \"N\", b = \"B\", rate = \"100Gbps\", delay = \"1us\" }},
]
[transport]
mtu = \"1kB\"
header = \"62B\"
[switch]
buffer = \"64MB\"
[[traffic]]
kind = \"flow\"
src = \"A\"
dst = \"B\"
size = \"1MB\"
{flow_control}"
    );
    let files = |_: &Path| Err(io::Error::other("it names no file"));
    xoff_plan::load("size.toml", text.as_bytes(), &[], &files).unwrap_or_else(|e| panic!("{e:?}")).plan
}

fn report(flow_control: &str) -> Report {
    links(&plan(flow_control)).unwrap()
}

fn named(needs: &[Need]) -> Vec<(&str, &str, u64, u64)> {
    needs.iter().map(|n| (n.place.as_str(), n.what, n.configured, n.needed)).collect()
}

#[test]
fn headroom_that_is_too_small_is_named_link_by_link() {
    let auto = report("[flow_control]\nscheme = \"pfc\"\nxoff = \"11MB\"\nxon = \"11MB\"");
    assert_eq!((auto.scheme, auto.compared), ("pfc", 6));
    assert!(auto.too_small.is_empty() && auto.may_idle.is_empty(), "{auto:?}");
    let table = "[flow_control]\nscheme = \"pfc\"\nxoff = \"1MB\"\nxon = \"1MB\"\nheadroom = \"100kB\"";
    let set = report(table);
    // 80 km there and back, a frame, and a packet of 1,062 B at each end.
    let needed = 10_000_000 + 64 + 2 * 1_062;
    assert_eq!(
        named(&set.too_small),
        [("M:1", "headroom", 100_000, needed), ("N:0", "headroom", 100_000, needed)]
    );
    assert_eq!(set.too_small[0].from, "N:0");
    // XON is below the bytes of a round trip, only on the long link.
    assert_eq!(named(&set.may_idle), [("M:1", "XON", 1_000_000, needed), ("N:0", "XON", 1_000_000, needed)]);
    // One byte less than the need is too small, and the need itself is not.
    for (headroom, small) in [(needed - 1, 2), (needed, 0)] {
        let table = table.replace("100kB", &format!("{headroom}B"));
        assert_eq!(report(&table).too_small.len(), small);
    }
}

/// A link layer repairs pauses and packets, so more bytes arrive after a pause. The default headroom has them; one that
/// the scenario sets may not.
#[test]
fn headroom_covers_the_retries_of_the_link_layer() {
    for (scheme, cable, key, memory) in [
        ("pfc\"\nxoff = \"200kB", "200m", "headroom", "headroom"),
        ("dsh", "200m", "insurance", "insurance"),
        ("bifrost\"\nslot = \"4us", "4km", "spare", "room beyond H"),
        ("swing", "4km", "relay_buffer", "relay memory"),
    ] {
        let report = |set: &str| {
            let text =
                format!("[flow_control]\nscheme = \"{scheme}\"\n{set}[link_layer]\nscheme = \"llr\"\n");
            links(&plan_over(cable, &text)).unwrap()
        };
        assert_eq!(report("").too_small, [], "{scheme}");
        let lacking = report(&format!("{key} = \"110kB\"\n")).too_small;
        assert!(!lacking.is_empty());
        for need in lacking {
            assert!(
                need.what == memory && need.terms.iter().any(|term| term.0 == RETRIES && term.1 > 0),
                "{need:?}"
            );
            let sum: u64 = need.terms.iter().map(|term| term.1).sum();
            assert!(need.needed == sum && sum > 110_000, "{need:?}");
        }
    }
}

/// The same with GFC, whose room for all rates is that of its feedback time: with the retries this is longer.
#[test]
fn room_of_gfc_covers_the_retries_of_the_link_layer() {
    for form in ["buffer", "time"] {
        let tables = format!("[flow_control]\nscheme = \"gfc\"\nform = \"{form}\"\n");
        let report = |rest: &str| links(&plan_over("200m", &format!("{tables}{rest}"))).unwrap();
        let room = |report: &Report| report.classes.iter().map(|class| class.needed).max().unwrap();
        let (plain, repaired) = (report(""), report("[link_layer]\nscheme = \"llr\"\n"));
        assert_eq!((&plain.too_small[..], &repaired.too_small[..]), (&[][..], &[][..]));
        // Four recoveries take longer than the feedback time itself.
        assert!(room(&repaired) > 2 * room(&plain), "{} {}", room(&repaired), room(&plain));
    }
}

/// Classes differ in rate, delay or ends; the tightest is first.
#[test]
fn links_of_one_kind_are_one_class() {
    let table = "[flow_control]\nscheme = \"pfc\"\nxoff = \"1MB\"\nxon = \"1MB\"\nheadroom = \"100kB\"";
    let classes = report(table).classes;
    let found: Vec<_> = classes.iter().map(|c| (c.what, c.link, c.count, c.margin < 0)).collect();
    let expected = [
        ("headroom", "switch to switch", 2, true),
        ("headroom", "switch to host", 2, false),
        ("headroom", "host to switch", 2, false),
        ("XON", "switch to switch", 2, true),
        ("XON", "host to switch", 2, false),
    ];
    assert_eq!(found, expected);
    let long = 10_000_000 + 64 + 2 * 1_062;
    assert_eq!(
        (classes[0].configured, classes[0].needed, classes[0].margin),
        (100_000, long, 100_000 - long as i64)
    );
    assert!(classes.iter().all(|class| class.instant));
    assert_eq!(classes[0].place, "M:1");
    let delayed = report(&format!("{table}\nresponse_time = \"1us\""));
    assert!(delayed.classes.iter().all(|class| !class.instant), "{delayed:?}");
    // A switch is a class without a link.
    let pyrrha = report("[flow_control]\nscheme = \"pyrrha\"\n").classes;
    assert_eq!((pyrrha[0].what, pyrrha[0].link, pyrrha[0].count), ("buffer", "device", 2));
}

#[test]
fn bifrost_is_compared_by_its_grants() {
    let keys = |scheme: &str, more: &str| {
        format!("[flow_control]\nscheme = \"{scheme}\"\nslot = \"5us\"\nxoff = \"100kB\"\n{more}")
    };
    // k packets, and one for a frame that is late; with tokens one that is ahead of them.
    for (scheme, room) in [("bifrost", 2 * 1_062), ("bifrostx", 3 * 1_062)] {
        let auto = report(&keys(scheme, ""));
        assert_eq!(auto.scheme, scheme);
        assert!(auto.too_small.is_empty() && auto.may_idle.is_empty(), "{auto:?}");
        let bare = report(&keys(scheme, "spare = \"0B\""));
        assert_eq!(
            named(&bare.too_small),
            [("M:1", "room beyond H", 0, room), ("N:0", "room beyond H", 0, room)]
        );
        let thin = report(&keys(scheme, "margin = \"0ps\""));
        assert_eq!(named(&thin.too_small), [("M:1", "margin", 0, 2_124), ("N:0", "margin", 0, 2_124)]);
        let short = report(&keys(scheme, "buffer = \"10.1MB\"\nundersized = true"));
        assert!(short.too_small.is_empty());
        let names: Vec<_> = named(&short.may_idle).iter().map(|n| (n.0, n.1, n.2)).collect();
        assert_eq!(names, [("M:1", "H", 10_100_000), ("N:0", "H", 10_100_000)]);
    }
}

#[test]
fn relays_are_compared_with_a_round_trip() {
    let auto = report("[flow_control]\nscheme = \"swing\"");
    assert_eq!(auto.scheme, "swing");
    assert!(auto.too_small.is_empty(), "{auto:?}");
    let small = report("[flow_control]\nscheme = \"swing\"\nrelay_buffer = \"9MB\"");
    let needed = 10_000_000 + 64 + 4 * 1_062;
    let found = named(&small.too_small);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|n| (n.1, n.2, n.3) == ("relay memory", 9_000_000, needed)), "{found:?}");
}

#[test]
fn credit_that_is_too_small_loses_no_packet() {
    let narrow = report("[flow_control]\nscheme = \"cbfc\"");
    assert!(narrow.too_small.is_empty() && narrow.compared > 0);
    assert!(narrow.may_idle.iter().any(|n| n.place == "N:0" && n.configured == 131_072), "{narrow:?}");
    let ideal = report("[flow_control]\nscheme = \"cbfc\"\nunlimited = true");
    assert!(ideal.may_idle.is_empty(), "{ideal:?}");
}

/// Scenarios refuse less than the room for all rates, so nothing is too small.
#[test]
fn gfc_is_compared_with_the_room_for_all_rates() {
    // C·τ of the long link is 10 MB and three packets; of the others 25 kB.
    let stages = report("[flow_control]\nscheme = \"gfc\"\n");
    assert_eq!((stages.compared, stages.too_small.len(), stages.may_idle.len()), (6, 0, 0), "{stages:?}");
    let long = stages.classes.iter().find(|class| class.delay_ps > 1_000_000).expect("a long link");
    assert!((20_000_000..20_100_000).contains(&long.needed), "{long:?}");
    // The period is as long as the feedback time, so B_m − B_0 is 4·C·τ.
    let periods = report("[flow_control]\nscheme = \"gfc\"\nform = \"time\"\nbuffer = \"60MB\"");
    assert_eq!((periods.compared, periods.too_small.len()), (6, 0), "{periods:?}");
    let long = periods.classes.iter().find(|class| class.delay_ps > 1_000_000).expect("a long link");
    assert!((40_000_000..40_200_000).contains(&long.needed) && long.configured == long.needed, "{long:?}");
}

#[test]
fn pyrrha_is_compared_switch_by_switch() {
    // K_pause of 4 · 5 MB, and the bytes of the link: more than 24 MB, less than 64 MB.
    let pyrrha = report("[flow_control]\nscheme = \"pyrrha\"\n");
    assert_eq!((pyrrha.compared, pyrrha.too_small.len()), (2, 0), "{pyrrha:?}");
    let more = report("[flow_control]\nscheme = \"pyrrha\"\nk_pause = \"60MB\"");
    assert_eq!(named(&more.too_small)[0].0, "M");
    // Packets from the long link congest port 0.
    let needed = 60_000_000 + 1_062 + 10_000_000 + 64 + 2 * 1_062;
    assert_eq!(more.too_small[0].needed, needed);
}

#[test]
fn schemes_without_a_promise_are_not_compared() {
    for scheme in ["none", "bfc", "per-flow-queue"] {
        assert_eq!(links(&plan(&format!("[flow_control]\nscheme = \"{scheme}\""))), Err(scheme));
    }
}
