//! CBFC, InfiniBand's credits: the blocks of 64 bytes for a round trip and an update of credits.

use super::super::LinkFacts;
use super::super::size::links::{Links, Report};
use super::super::size::question::{Question, SizeEntry};
use super::super::size::trial::{Case, Trial, Trials};
use super::super::size::{Basis, Control, Figure, Most, Promise, Sizing, Unit, bytes_in, grouped, terms_of};
use super::CbfcParams;
use super::frame::{BLOCK, CreditPacket, Form};
use super::{blocks, full_throughput, longest_update, most};

/// Its answers to `xoff size`.
pub(in super::super) const ENTRIES: [SizeEntry; 2] = [
    SizeEntry {
        name: "cbfc",
        compute: |question, link| compute_size(question, link, false),
        line: Some("cbfc-ideal"),
        trials: |question, link| trials(question, link, false),
    },
    SizeEntry {
        name: "cbfc-ideal",
        compute: |question, link| compute_size(question, link, true),
        line: Some("cbfc-ideal"),
        trials: |question, link| trials(question, link, true),
    },
];

/// The needs of CBFC if its sender must never wait for credit while the receiver drains: the blocks of
/// [`full_throughput`], by terms. With less the throughput falls in proportion, and no packet is lost.
/// `unlimited`: without the limit of 12 bits.
pub fn compute_size(question: &Question, link: &LinkFacts, unlimited: bool) -> Sizing {
    let (response_time, priorities) = (question.response_time.0, question.priorities.into());
    let period = question.update.map_or_else(|| longest_update(link.rate), |t| t.0.max(1));
    let form = if unlimited { Form::Wide } else { Form::Narrow };
    let frame = u64::from(CreditPacket::new(form, 0, 0, 0).length());
    let needed = full_throughput(link, period, response_time, form);
    let (largest, block) = (u64::from(link.largest), u64::from(BLOCK));
    let spans = [
        ("cable, both ways", 2 * link.delay),
        ("update period", period),
        ("sender's response time", response_time),
    ];
    let mut terms = terms_of(&spans, |time| bytes_in(link.rate, time));
    terms.extend([("packet being sent", largest), ("our packet just begun", largest)]);
    terms.push(("flow-control packet", frame));
    let bytes = terms.iter().fold(0, |sum: u64, t| sum.saturating_add(t.1));
    let packets = needed / blocks(largest) * largest;
    terms.push(("in whole packets, one cut and one to come", packets.saturating_sub(bytes)));
    terms.push(("blocks that packets do not fill", (needed * block).saturating_sub(packets)));
    let most = most(form, response_time);
    let said = needed <= most;
    let mut notes = Vec::new();
    if !said {
        notes.push(format!(
            "12-bit credits cover at most {} blocks = {} B, {:.2}% of this buffer; `cbfc-ideal` has no such limit",
            grouped(most),
            grouped(most * block),
            100.0 * most as f64 / needed as f64
        ));
    }
    let rare = "credits are updated as rarely as InfiniBand allows, and this period alone needs more than 12 bits; \
                a shorter period needs less";
    let wide =
        "`cbfc` with `unlimited = true`: 64-bit counters in a packet of 24 B, which no standard defines";
    notes.extend((!said && question.update.is_none()).then(|| rare.into()));
    notes.extend(unlimited.then(|| wide.into()));
    let sizing = Sizing {
        scheme: if unlimited { "cbfc-ideal" } else { "cbfc" },
        title: if unlimited { "CBFC without the limit of 12 bits (cbfc-ideal)" } else { "CBFC" },
        basis: Basis::Buffer,
        per: "port and priority",
        terms,
        shares: priorities,
        headroom: 0,
        thresholds: vec![
            Figure { name: "credit", value: needed, unit: Unit::Blocks },
            Figure { name: "update period", value: period, unit: Unit::Time },
        ],
        control: Control { frame, frames: priorities, every: period, when: "always" },
        promise: Promise { lossless: true, full_throughput: said },
        most: (!unlimited).then_some(Most::of_frames(most.saturating_mul(block))),
        formula: "Rs·(2D + update + response) + 2 packets + frame, and 2 packets more, in packets of whole 64-byte blocks",
        source: "InfiniBand vol. 1, section 7.9 (blocks, 12 bits, an update within 65,536 symbol times); Huang et al. 2024, \
                 section III-A (credit for one BDP; at most 1 km at 100 Gbps)",
        notes,
    };
    let mut sizing = sizing.if_frames_fit(link.rate);
    // Credit may come late without loss.
    sizing.promise.lossless = true;
    sizing
}

/// Searches the credit: a link that is always full.
pub fn trials(question: &Question, link: &LinkFacts, unlimited: bool) -> Trials {
    let sizing = compute_size(question, link, unlimited);
    if !sizing.is_in_reach() {
        return Err("its credits cannot express the buffer by the formula".into());
    }
    let (update, response_time) = (question.update, question.response_time.0);
    let keys = format!(
        "[flow_control]\nscheme = \"cbfc\"\nunlimited = {unlimited}\nresponse_time = \"{response_time}ps\"\n{}",
        update.map_or_else(String::new, |time| format!("update = \"{}ps\"\n", time.0))
    );
    let block = u64::from(BLOCK);
    Ok(vec![Trial {
        memory: "credit",
        case: Case::Runs,
        formula: sizing.share(),
        least: blocks(link.largest.into()) * block,
        unit: block,
        period: response_time + update.map_or_else(|| longest_update(link.rate), |time| time.0),
        tables: Box::new(move |bytes, _| format!("{keys}long_buffer = \"{bytes}B\"\n")),
    }])
}

/// With any credit nothing is lost.
pub(super) fn compare(links: &Links<'_>, params: &CbfcParams, report: &mut Report) {
    let most = most(params.form, params.response_time);
    for (id, (&blocks, &period)) in (0..).zip(params.buffer.iter().zip(&params.update)) {
        let needed = full_throughput(&links.facts(id), period, params.response_time, params.form);
        let bytes = |blocks: u64| blocks.saturating_mul(BLOCK.into());
        for (lane, _) in links.lanes.iter().zip(&params.lanes).filter(|(_, on)| **on) {
            report.compared += 1;
            let terms = [("a round trip, an update and packets, in blocks", bytes(needed))];
            let need = links.need(id, Some(lane.priority), "credit", bytes(blocks.min(most)), &terms);
            report.idle(links, id, need);
        }
    }
}

/// Help texts of the command line's options that set it.
pub mod help {
    pub const UPDATE: &str = "CBFC: time between two credit updates [default: the longest that InfiniBand allows, 65,536 symbol times]";
}
