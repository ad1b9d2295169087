//! CBFC, InfiniBand's flow control by credits: the blocks of 64 bytes for one round trip and one update of
//! credits.

use super::super::LinkFacts;
use super::super::size::links::{Links, Report};
use super::super::size::question::Question;
use super::super::size::{Control, Figure, Promise, Sizing, Term, Unit, bytes_in, grouped};
use super::CbfcParams;
use super::frame::{BLOCK, CreditPacket, Form};
use super::{blocks, full_throughput, longest_update, most};
use xoff_kernel::time::Time;

/// CBFC's input, beside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// A flow-control packet is sent for each priority in every such span; `None`: as
    /// seldom as InfiniBand allows ([`longest_update`]).
    pub update: Option<Time>,
    /// From the arrival of a flow-control packet's last bit until it takes effect.
    pub response_time: Time,
    /// Lossless priorities (virtual lanes).
    pub priorities: u64,
    /// Without the limit of 12 bits.
    pub unlimited: bool,
}

/// The needs of CBFC if its sender must never wait for credit while the receiver drains: the blocks of
/// [`full_throughput`], by terms. With less the throughput falls in proportion, and no packet is lost.
pub fn sizing(link: &LinkFacts, ask: &Ask) -> Sizing {
    let period = ask.update.map_or_else(|| longest_update(link.rate), |t| t.max(1));
    let form = if ask.unlimited { Form::Wide } else { Form::Narrow };
    let frame = u64::from(CreditPacket::new(form, 0, 0, 0).length());
    let needed = full_throughput(link, period, ask.response_time, form);
    let (largest, block) = (u64::from(link.largest), u64::from(BLOCK));
    // Parts of one product, which is rounded as a whole.
    let spans = [
        ("cable, both ways", 2 * link.delay),
        ("update period", period),
        ("sender's response time", ask.response_time),
    ];
    let (mut time, mut so_far) = (0, 0);
    let mut terms: Vec<Term> = Vec::new();
    for (name, span) in spans {
        time += span;
        let bytes = bytes_in(link.rate, time);
        terms.push((name, bytes - so_far));
        so_far = bytes;
    }
    terms.push(("packet being sent", largest));
    terms.push(("our packet just begun", largest));
    terms.push(("flow-control packet", frame));
    let bytes = terms.iter().fold(0, |sum: u64, t| sum.saturating_add(t.1));
    let packets = needed / blocks(largest) * largest;
    terms.push(("in whole packets, one cut and one to come", packets.saturating_sub(bytes)));
    terms.push(("blocks that packets do not fill", (needed * block).saturating_sub(packets)));
    let most = most(form, ask.response_time);
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
    if !said && ask.update.is_none() {
        notes.push(
            "credits are updated as rarely as InfiniBand allows, and this period alone needs more than 12 bits; \
             a shorter period needs less"
                .into(),
        );
    }
    if ask.unlimited {
        notes.push(
            "`cbfc` with `unlimited = true`: 64-bit counters in a packet of 24 B, which no standard defines"
                .into(),
        );
    }
    let sizing = Sizing {
        scheme: if ask.unlimited { "cbfc-ideal" } else { "cbfc" },
        terms,
        shares: ask.priorities,
        headroom: 0,
        thresholds: vec![
            Figure { name: "credit", value: needed, unit: Unit::Blocks },
            Figure { name: "update period", value: period, unit: Unit::Time },
        ],
        control: Control { frame, frames: ask.priorities, every: period, when: "always" },
        promise: Promise { lossless: true, full_throughput: said },
        expressible: (!ask.unlimited).then_some(most.saturating_mul(block)),
        formula: "Rs·(2D + update + response) + 2 packets + frame, and 2 packets more, in packets of whole 64-byte blocks",
        source: "InfiniBand vol. 1, section 7.9 (blocks, 12 bits, an update within 65,536 symbol times); Huang et al. 2024, \
                 section III-A (credit for one BDP; at most 1 km at 100 Gbps)",
        notes,
    };
    // Credit may come late without loss.
    let lossless = sizing.promise.lossless;
    let mut sizing = sizing.if_frames_fit(link.rate);
    sizing.promise.lossless = lossless;
    sizing
}

/// The needs of a link with the question's settings.
pub(in super::super) fn compute_size(question: &Question, link: &LinkFacts, unlimited: bool) -> Sizing {
    let (update, response_time) = (question.update.map(|t| t.0), question.response_time.0);
    sizing(link, &Ask { update, response_time, priorities: question.priorities.into(), unlimited })
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
    /// `--update`.
    pub const UPDATE: &str = "CBFC: time between two credit updates [default: the longest that InfiniBand allows, 65,536 symbol times]";
}
