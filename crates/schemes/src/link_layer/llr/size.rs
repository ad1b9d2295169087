//! The replay buffer that a link needs, and the headroom that retries add.

use super::super::super::flow_control::LinkFacts;
use super::super::super::flow_control::size::links::{Links, Report};
use super::super::super::flow_control::size::question::{Question, SizeEntry};
use super::super::super::flow_control::size::trial::{Case, Trial, Trials};
use super::super::super::flow_control::size::{
    Basis, Control, Most, Promise, Sizing, Term, bytes_in, bytes_of, terms_of,
};
use super::Params;
use super::frame::Word;
use super::keys::{ACK_SPACING, LONGEST_TIMER, timer};
use xoff_kernel::time::{Time, serialisation};

/// Its answers to `xoff size`.
pub(crate) const ENTRIES: [SizeEntry; 1] =
    [SizeEntry { name: "llr", compute: compute_size, line: None, trials }];

/// From the beginning of a frame until its acknowledgement has taken effect, at most: the frame and the cable, a
/// word that waits for its slot and for a frame on its wire, the word and the cable, processing.
///
/// `back` is the rate of the other direction.
pub fn round_trip(link: &LinkFacts, back: u64, spacing: Time, processing: Time) -> Time {
    let largest = u64::from(link.largest);
    serialisation(largest, link.rate)
        + 2 * link.delay
        + spacing
        + serialisation(largest, back)
        + serialisation(Word::LENGTH.into(), back)
        + processing
}

/// The bytes that a link sends in [`round_trip`], by terms: with this replay buffer it never waits for an
/// acknowledgement, in whole largest frames.
pub fn terms(link: &LinkFacts, back: u64, spacing: Time, processing: Time) -> Vec<Term> {
    let whole = round_trip(link, back, spacing, processing);
    let waiting = serialisation(link.largest.into(), back);
    let word = serialisation(Word::LENGTH.into(), back);
    let spans = [
        ("cable, both ways", 2 * link.delay),
        ("wait for the slot of a word", spacing),
        ("word", word),
        ("processing", processing),
        ("frame on the wire of the word", waiting),
        ("frame", whole - 2 * link.delay - spacing - word - processing - waiting),
    ];
    let mut terms = terms_of(&spans, |time| bytes_in(link.rate, time));
    let sum = terms.iter().fold(0, |sum: u64, t| sum.saturating_add(t.1));
    let rest = sum.next_multiple_of(link.largest.max(1).into()) - sum;
    terms.push(("to whole frames", rest));
    terms
}

/// The replay buffer of a link, in bytes.
pub fn buffer(link: &LinkFacts, back: u64, spacing: Time, processing: Time) -> u64 {
    terms(link, back, spacing, processing).iter().fold(0, |sum, t| sum.saturating_add(t.1))
}

/// The need of LLR for one end of a link: its replay buffer.
pub fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let processing = question.response_time.0;
    let spacing = serialisation(ACK_SPACING, link.rate);
    let whole = round_trip(link, link.rate, spacing, processing);
    let terms = terms(link, link.rate, spacing, processing);
    let mut notes = Vec::new();
    let runs = timer(whole).is_some();
    if !runs {
        notes.push(
            "the round trip is longer than the replay timer can be, 65,535 ns: LLR cannot run on it".into(),
        );
    }
    // To a frame, the buffer of the longest link on which it runs.
    let largest = u64::from(link.largest.max(1));
    let most = bytes_in(link.rate, LONGEST_TIMER) / largest * largest;
    Sizing {
        scheme: "llr",
        title: "LLR (replay buffer)",
        basis: Basis::Buffer,
        per: "port",
        terms,
        shares: 1,
        headroom: 0,
        thresholds: vec![bytes_of("spacing of words", ACK_SPACING)],
        control: Control {
            frame: Word::LENGTH.into(),
            frames: 1,
            every: spacing.max(1),
            when: "while frames arrive",
        },
        promise: Promise { lossless: false, full_throughput: runs },
        most: Some(Most { bytes: most, because: "its replay timer covers" }),
        formula: "Rs·(2D + spacing + word + response) + 2 frames, in whole frames",
        source: "Ultra Ethernet specification 1.0.x, section 5.1 (mechanism); the sum is xoff's own",
        notes,
    }
}

/// Searches the replay buffer: a link that is always full.
pub fn trials(question: &Question, link: &LinkFacts) -> Trials {
    let (processing, spacing) = (question.response_time.0, serialisation(ACK_SPACING, link.rate));
    let period = round_trip(link, link.rate, spacing, processing);
    if timer(period).is_none() {
        return Err("the round trip is longer than the replay timer can be, 65,535 ns".into());
    }
    let largest = u64::from(link.largest);
    Ok(vec![Trial {
        memory: "replay buffer",
        case: Case::Runs,
        formula: buffer(link, link.rate, spacing, processing),
        least: largest,
        unit: largest,
        period,
        tables: Box::new(move |bytes, _| {
            format!(
                "[link_layer]\nscheme = \"llr\"\nbuffer = \"{bytes}B\"\nprocessing = \"{processing}ps\"\n"
            )
        }),
    }])
}

/// With any replay buffer nothing is lost; with less a link waits for acknowledgements.
pub fn compare(params: &Params, links: &Links<'_>, report: &mut Report) {
    for (id, limits) in (0..).zip(&params.ports) {
        let (Some(limits), Some(port)) = (limits, links.topology.ports.get(id as usize)) else { continue };
        let Some(peer) = params.ports.get(port.peer as usize).copied().flatten() else { continue };
        let back = links.topology.ports[port.peer as usize].rate;
        let link = LinkFacts { largest: limits.largest, ..links.facts(id) };
        let terms = terms(&link, back, peer.spacing, limits.processing);
        report.compared += 1;
        report.idle(links, id, links.need(id, None, "replay buffer", limits.bytes, &terms));
    }
}
