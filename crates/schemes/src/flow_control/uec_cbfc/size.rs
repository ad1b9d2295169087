//! UEC CBFC: the credits for a round trip.

use super::super::LinkFacts;
use super::super::size::links::{Links, Report};
use super::super::size::question::{Question, SizeEntry};
use super::super::size::trial::{Case, Trial, Trials};
use super::super::size::{Basis, Control, Figure, Most, Promise, Sizing, Unit, bytes_of, grouped};
use super::frame::CfUpdate;
use super::keys::{CREDIT, SPACING};
use super::{MOST, UecCbfcParams, credits, full_throughput, loop_terms};
use xoff_kernel::time::serialisation;

/// Its answer to `xoff size`. Its curve over distance would hide another one.
pub(in super::super) const ENTRIES: [SizeEntry; 1] =
    [SizeEntry { name: "uec-cbfc", compute: compute_size, line: None, trials }];

/// The needs of UEC CBFC if its sender must never wait for credit while the receiver drains: the credits of
/// [`full_throughput`], by terms. With less the throughput falls in proportion, and no packet is lost.
pub fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let (response_time, channels) = (question.response_time.0, u64::from(question.priorities));
    let spacing = serialisation(SPACING[0], link.rate).max(1);
    let packets = full_throughput(link, spacing, channels, response_time);
    let needed = packets.saturating_mul(credits(link.largest, 0, CREDIT));
    let in_bytes = needed.saturating_mul(CREDIT.into());
    let bytes = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
    let mut terms: Vec<_> =
        loop_terms(link, spacing, channels, response_time).map(|(name, n)| (name, bytes(n))).into();
    let sum = terms.iter().fold(0, |sum: u64, t| sum.saturating_add(t.1));
    let whole = packets.saturating_mul(link.largest.into());
    terms.push(("in whole packets, one at the edge and one to come", whole.saturating_sub(sum)));
    terms.push(("parts of credits that packets do not fill", in_bytes.saturating_sub(whole)));
    let said = needed <= MOST;
    let mut notes = vec![format!("credits of {CREDIT} B, no overhead of packets, a limit for each priority")];
    if !said {
        notes.push(format!(
            "a limit has at most {} credits = {} B, {:.2}% of this buffer; larger credits reach further",
            grouped(MOST),
            grouped(MOST * u64::from(CREDIT)),
            100.0 * MOST as f64 / needed as f64
        ));
    }
    let sizing = Sizing {
        scheme: "uec-cbfc",
        title: "UEC CBFC",
        basis: Basis::Buffer,
        per: "port and priority",
        terms,
        shares: channels,
        headroom: 0,
        thresholds: vec![
            Figure { name: "limit", value: needed, unit: Unit::Credits },
            bytes_of("CF_Update spacing", SPACING[0]),
        ],
        control: Control {
            frame: CfUpdate::LENGTH.into(),
            frames: 1,
            every: spacing,
            when: "while credits are freed",
        },
        promise: Promise { lossless: true, full_throughput: said },
        most: Some(Most::of_frames(MOST * u64::from(CREDIT))),
        formula: "R·(2D + response) + spacing·⌈priorities/2⌉ + 2 packets + CF_Update, and 2 packets more, in packets of whole credits",
        source: "Ultra Ethernet specification 1.0.x, section 5.2, as SAI and OTG describe it (credits, messages, timers); the sum is xoff's",
        notes,
    };
    let mut sizing = sizing.if_frames_fit(link.rate);
    // Credit may come late without loss.
    sizing.promise.lossless = true;
    sizing
}

/// Searches the credit: a link that is always full.
pub fn trials(question: &Question, link: &LinkFacts) -> Trials {
    let sizing = compute_size(question, link);
    if !sizing.is_in_reach() {
        return Err("its credits cannot express the buffer by the formula".into());
    }
    let response_time = question.response_time.0;
    Ok(vec![Trial {
        memory: "credit",
        case: Case::Runs,
        formula: sizing.share(),
        least: credits(link.largest, 0, CREDIT) * u64::from(CREDIT),
        unit: CREDIT.into(),
        period: response_time + serialisation(SPACING[1], link.rate),
        tables: Box::new(move |bytes, _| {
            // The search also runs with far more than the formula, which credits may not express.
            let bytes = bytes.min(MOST * u64::from(CREDIT));
            format!(
                "[flow_control]\nscheme = \"uec-cbfc\"\nbuffer = \"{bytes}B\"\nresponse_time = \"{response_time}ps\"\n"
            )
        }),
    }])
}

/// With any credit nothing is lost.
pub(super) fn compare(links: &Links<'_>, params: &UecCbfcParams, report: &mut Report) {
    let channels = params.channels();
    for (id, (&limits, &[spacing, _])) in (0..).zip(params.limits.iter().zip(&params.spacing)) {
        let facts = links.facts(id);
        let packets = full_throughput(&facts, spacing, channels, params.response_time);
        let needed = packets.saturating_mul(credits(facts.largest, params.overhead, params.credit));
        for (lane, _) in links.lanes.iter().zip(&params.lanes).filter(|(_, on)| **on) {
            report.compared += 1;
            let terms = [("a round trip and packets, in credits", params.bytes(needed))];
            let need = links.need(id, Some(lane.priority), "credit", params.bytes(limits.of_one()), &terms);
            report.idle(links, id, need);
        }
    }
}
