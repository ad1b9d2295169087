//! The least buffer of one long link at 100 Gbit/s with which nothing is lost and no
//! throughput, found by bisection in packet runs, against the formulas of `xoff size`.
//!
//! A buffer is looked for part by part, each in the case that it is for:
//!
//! | part | case | effect of a too small one |
//! |---|---|---|
//! | PFC's headroom | a source at line rate, and a drain that stops | loses packets |
//! | PFC's XON | the drain resumes at line rate after all packets in flight have arrived | the egress is idle while the resume is in flight |
//! | Bifrost's H | a source and a drain at line rate | grants less than a slot in each slot |
//! | Bifrost's room beyond H | a drain that stops | loses packets |
//! | CBFC's credit | a source and a drain at line rate | makes the sender wait for credit |

use crate::common;

use common::plan;
use std::fmt::Write;
use xoff_kernel::time::{MICROSECOND, SECOND, Time};
use xoff_net::units::Bandwidth;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::LinkFacts;
use xoff_schemes::flow_control::bifrost::size as bifrost;
use xoff_schemes::flow_control::bifrost::slots::{History, Repair};
use xoff_schemes::flow_control::cbfc::size as cbfc;
use xoff_schemes::flow_control::pfc::size as pfc;
use xoff_schemes::flow_control::size::question::Question;
use xoff_sim::outcome::Outcome;

const RATE: u64 = 100_000_000_000;

/// The maximum time besides the long link: the receiver's own room fills.
const SLACK: Time = 20 * MICROSECOND;

/// Of Bifrost, on all links.
const PROCESSING: Time = 100_000;

/// One of the links.
struct Case {
    km: u64,
    facts: LinkFacts,
    slot: Time,
}

impl Case {
    /// Fewer, larger packets where there are many; slots of an eighth of the delay, or the maximum for the
    /// quanta of pause frames.
    fn new(km: u64) -> Self {
        let delay = km * 5 * MICROSECOND;
        let largest = if km < 1_000 { 1_500 } else { 4_158 };
        Self { km, facts: LinkFacts { rate: RATE, delay, largest }, slot: (delay / 8).min(250 * MICROSECOND) }
    }

    fn packet(&self) -> u64 {
        self.facts.largest.into()
    }

    /// XOFF of the short links. Bytes stored at a receiver hide that its switch idles.
    fn near(&self) -> u64 {
        3 * self.packet()
    }

    /// A sends to B over M and N all it can. B reads nothing until `stall`.
    fn plan(&self, flow_control: &str, stall: Time, end: Time) -> Plan {
        let near = |a: &str, b: &str| format!("{{a=\"{a}\",b=\"{b}\",rate=\"100Gbps\",delay=\"10ns\"}}");
        let stall = match stall {
            0 => String::new(),
            until => format!("[[slow_receiver]]\nhost=\"B\"\nstall_from=\"0s\"\nstall_until=\"{until}ps\"\n"),
        };
        plan(&format!(
            "[topology]\nkind=\"custom\"\nhosts=[\"A\",\"B\"]\nswitches=[\"M\",\"N\"]\n\
             links=[{},{{a=\"M\",b=\"N\",rate=\"100Gbps\",delay=\"{}ps\",long=true}},{}]\n\
             [transport]\nmtu=\"{}B\"\nheader=\"62B\"\nack_every=1000000000\nrto=\"100s\"\n[run]\nduration=\"{end}ps\"\n\
             [[traffic]]\nkind=\"flow\"\nsrc=\"A\"\ndst=\"B\"\nsize=\"100GB\"\n{stall}[flow_control]\n{flow_control}\n",
            near("A", "M"),
            self.facts.delay,
            near("N", "B"),
            self.facts.largest - 62,
        ))
    }

    fn outcome(&self, flow_control: &str, stall: Time, end: Time) -> Outcome {
        xoff_sim::run(&self.plan(flow_control, stall, end), &mut |_| true)
    }

    /// The least of `low..=high` with which it is `enough`, but for a packet, or a two-thousandth
    /// of it. `high` is the formula's, and must do; `low` must not.
    fn least(&self, what: &str, low: u64, high: u64, enough: impl Fn(u64) -> bool) -> u64 {
        assert!(enough(high), "{what} at {} km: {high} B are not enough", self.km);
        assert!(!enough(low), "{what} at {} km: {low} B are enough", self.km);
        let (mut bad, mut good) = (low, high);
        while good - bad > self.packet().max(high / 2_000) {
            let middle = bad.midpoint(good);
            if enough(middle) { good = middle } else { bad = middle }
        }
        good
    }

    /// Whether a source and a drain at line rate get all of it but for a thousandth, from
    /// the second round trip to the fourth; against the same with room to spare.
    fn full_rate(&self, flow_control: impl Fn(u64) -> String, formula: u64) -> impl Fn(u64) -> bool {
        let trip = 2 * self.facts.delay;
        let delivered =
            move |buffer: u64| self.outcome(&flow_control(buffer), 0, 4 * trip).flows[0].delivered_bytes;
        let ideal = delivered(2 * formula);
        let thousandth = (u128::from(RATE) * 2 * u128::from(trip) / (8 * u128::from(SECOND)) / 1_000) as u64;
        move |buffer| delivered(buffer) + thousandth >= ideal
    }

    /// Formula and measurement of PFC that neither loses nor idles.
    fn pfc(&self) -> (u64, u64) {
        let sizing = pfc::compute_size(&Question::new(Bandwidth(RATE)), &self.facts, None);
        let (half, near) = (sizing.headroom, self.near());
        let keys = |xon: u64, headroom: &str| {
            format!(
                "scheme=\"pfc\"\nxoff=\"{near}B\"\nxon_offset=\"0B\"\nlong={{xoff=\"{xon}B\",headroom={headroom}}}"
            )
        };
        // The first packets are there after D, the last ones 2 D after XOFF.
        let delay = self.facts.delay;
        let never = 100 * SECOND;
        let headroom = self.least("headroom", half * 9 / 10, half, |bytes| {
            let keys = keys(near, &format!("\"{bytes}B\""));
            self.outcome(&keys, never, 3 * delay + 2 * SLACK).drops.is_empty()
        });
        // XOFF takes another 2 D to fill. The drain goes on; after 2 D more the resume leaves,
        // and after another 2 D its first packet must be there.
        let go = 5 * delay + 3 * SLACK;
        let delivered = |xon: u64| {
            let outcome = self.outcome(&keys(xon, "\"auto\""), go, go + 5 * delay);
            assert!(outcome.drops.is_empty());
            outcome.flows[0].delivered_bytes
        };
        let ideal = delivered(half * 11 / 10);
        let xon = self.least("XON", half * 9 / 10, half, |xon| delivered(xon) + self.packet() >= ideal);
        (sizing.share(), xon + self.packet() + headroom)
    }

    fn bifrost(&self) -> (u64, u64) {
        let ask = bifrost::Ask {
            slot: self.slot,
            processing: PROCESSING,
            jitter: 0,
            margin: None,
            response_time: 0,
            repair_every: 1,
            counted: false,
            history: History::Grants,
            repair: Repair::Excess,
        };
        let (sizing, params) = (bifrost::sizing(&self.facts, &ask, 1), bifrost::params(&self.facts, &ask));
        let near = self.near();
        let keys = |buffer: u64, spare: u64| {
            format!(
                "scheme=\"bifrost\"\nxoff=\"{near}B\"\nxon_offset=\"0B\"\nslot=\"{}ps\"\nprocessing=\"{PROCESSING}ps\"\n\
                 buffer=\"{buffer}B\"\nundersized=true\nspare=\"{spare}B\"",
                self.slot
            )
        };
        let formula = params.least_buffer();
        // With less than that it is refused: nothing would be let go.
        let low = params.bdp() + params.of_slot() + params.margin + 2 * self.packet();
        let enough = self.full_rate(|buffer| keys(buffer, sizing.headroom), formula);
        let buffer = self.least("H", low, formula, enough);
        let lossless = |spare: u64| {
            let end = 6 * self.facts.delay + 2 * SLACK;
            self.outcome(&keys(formula, spare), 100 * SECOND, end).drops.is_empty()
        };
        let spare = if lossless(0) { 0 } else { self.least("spare", 0, sizing.headroom, lossless) };
        (sizing.share(), buffer + spare)
    }

    fn cbfc(&self) -> (u64, u64) {
        let formula = cbfc::compute_size(&Question::new(Bandwidth(RATE)), &self.facts, true).share();
        let keys = |buffer: u64| format!("scheme=\"cbfc\"\nunlimited=true\nlong_buffer=\"{buffer}B\"");
        let enough = self.full_rate(keys, formula);
        (formula, self.least("credit", formula * 9 / 10, formula, enough))
    }
}

/// Within 2%, or four packets; and the page draws the measured values.
#[test]
fn the_least_buffers_are_those_of_the_formulas() {
    let mut table = "distance_km,scheme,formula_B,measured_B\n".to_string();
    for case in [10, 80, 300, 1_000, 2_000].map(Case::new) {
        for (scheme, (formula, measured)) in
            [("pfc-deep", case.pfc()), ("bifrost", case.bifrost()), ("cbfc", case.cbfc())]
        {
            writeln!(table, "{},{scheme},{formula},{measured}", case.km).expect("text");
            let loose = formula - measured;
            println!("{} km {scheme}: {formula} B, measured {measured} B, {loose} B less", case.km);
            assert!(
                loose <= (formula / 50).max(4 * case.packet()),
                "{scheme} at {} km: the formula is loose by {loose} of {formula} B",
                case.km
            );
        }
    }
    print!("{table}");
    assert_eq!(
        table,
        include_str!("../../../docs/data/least-buffer.csv"),
        "docs/data/least-buffer.csv is what this test finds: put the left one there"
    );
}
