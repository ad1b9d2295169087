//! CBFC, InfiniBand's flow control by credits: what one round trip and one update of
//! credits take, in blocks of 64 bytes.

use super::{Control, Figure, Promise, Sizing, Term, Unit, bytes_in};
use crate::flow_control::LinkFacts;
use xoff_kernel::time::{Time, serialisation};

/// Bytes of a block of credit (InfiniBand vol. 1, section 7.9).
pub const BLOCK: u64 = 64;

/// Most blocks that a flow-control packet can grant: half of what 12 bits count, so that
/// more and less can be told apart modulo 4096.
pub const MOST_BLOCKS: u64 = 2048;

/// Bytes of a flow-control packet on the wire: operand, FCTBS, virtual lane and FCCL in 4
/// bytes, a checksum of 2, and a delimiter of a byte at each end.
pub const FRAME: u64 = 8;

/// Bytes of line rate between two updates of credit, where no period is given: InfiniBand's
/// longest, 65,536 symbol times (section 7.9.4), a symbol being a byte on each of the four
/// lanes that nearly all its links have.
pub const UPDATE: u64 = 4 * 65_536;

/// What CBFC is asked with, beside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// A flow-control packet is sent for each priority in every such span; `None`: in the
    /// time of [`UPDATE`] bytes.
    pub update: Option<Time>,
    /// From the arrival of a flow-control packet's last bit until it takes effect.
    pub response_time: Time,
    /// Lossless priorities (virtual lanes).
    pub priorities: u64,
    /// Without the limit of 12 bits.
    pub unlimited: bool,
}

/// The period of updates on `link`, above zero.
pub fn update(link: &LinkFacts, given: Option<Time>) -> Time {
    given.unwrap_or_else(|| serialisation(UPDATE, link.rate)).max(1)
}

/// Most blocks that can be granted at a time in 12 bits: one less where credit takes effect
/// late, so that back can be told from forth.
pub fn most(response_time: Time) -> u64 {
    MOST_BLOCKS - u64::from(response_time > 0)
}

/// What CBFC needs so that its sender never waits for credit while the receiver drains.
///
/// A block is away from the moment its packet begins until a flow-control packet that counts
/// it free has taken effect: the packet's own time and the cable, up to the period of updates,
/// a largest packet just begun on the way back, the flow-control packet, the cable and the
/// response time. All of that at line rate is filled with largest packets of whole blocks; one
/// more may be cut by the window's edge, and one more must fit behind what is left. With less
/// the throughput falls in proportion, and nothing is lost.
pub fn sizing(link: &LinkFacts, ask: &Ask) -> Sizing {
    let (period, largest) = (update(link, ask.update), u64::from(link.largest));
    // Rounded as one product.
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
    terms.push(("packet that is sent", largest));
    terms.push(("our packet just begun", largest));
    terms.push(("flow-control packet", FRAME));
    let bytes = terms.iter().fold(0u64, |sum, t| sum.saturating_add(t.1));
    let packets = bytes.div_ceil(largest) + 2;
    let blocks = packets.saturating_mul(largest.div_ceil(BLOCK));
    terms.push(("in whole packets, one cut and one to come", packets * largest - bytes));
    terms.push(("blocks that packets do not fill", blocks * BLOCK - packets * largest));
    let most = most(ask.response_time);
    let said = ask.unlimited || blocks <= most;
    let mut notes = Vec::new();
    if !said {
        notes.push(format!(
            "12 bits of credit speak of {most} blocks = {} B at most, {:.2}% of these; `unlimited` credits \
             (CBFC-ideal) have room for all of them",
            most * BLOCK,
            100.0 * most as f64 / blocks as f64
        ));
    }
    if ask.update.is_none() {
        notes.push(
            "credits are updated as seldom as InfiniBand allows, which weighs more than 12 bits can say; \
             `--update` sets a shorter period"
                .into(),
        );
    }
    Sizing {
        scheme: "cbfc",
        terms,
        shares: ask.priorities,
        headroom: 0,
        thresholds: vec![
            Figure { name: "credit", value: blocks, unit: Unit::Blocks },
            Figure { name: "update period", value: period, unit: Unit::Time },
        ],
        control: Control { frame: FRAME, frames: ask.priorities, every: period, when: "always" },
        promise: Promise { lossless: true, full_throughput: said },
        expressible: (!ask.unlimited).then_some(most * BLOCK),
        formula: "Rs·(2D + update + response) + 2 packets + frame, and 2 packets more, in packets of whole 64-byte blocks",
        source: "InfiniBand vol. 1, section 7.9 (blocks, 12 bits, an update within 65,536 symbol times); Bifrost, \
                 section III-A (credit for one BDP; at most 1 km at 100 Gbps)",
        notes,
    }
}
