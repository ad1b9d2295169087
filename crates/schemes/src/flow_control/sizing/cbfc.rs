//! CBFC, InfiniBand's flow control by credits: what one round trip and one update of
//! credits take, in blocks of 64 bytes.

use super::{Control, Figure, Promise, Sizing, Term, Unit, bytes_in};
use crate::flow_control::LinkFacts;
use xoff_kernel::time::Time;

/// Bytes of a block of credit (InfiniBand vol. 1, section 7.9).
pub const BLOCK: u64 = 64;

/// Most blocks that a flow-control packet can grant: half of what 12 bits count, so that
/// more and less can be told apart modulo 4096.
pub const MOST_BLOCKS: u64 = 2048;

/// Bytes of a flow-control packet: operand, FCTBS, virtual lane and FCCL in 4 bytes, a
/// checksum of 2, and a symbol of 8 bits at each end.
pub const FRAME: u64 = 8;

/// Byte times of the link within which a port repeats its credits, where no period is given:
/// InfiniBand's 65,536 symbol times, a symbol being a byte.
pub const UPDATE: u64 = 65_536;

/// What CBFC is asked with, beside the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// A flow-control packet is sent for each priority in every such span; `None`: in
    /// [`UPDATE`] byte times.
    pub update: Option<Time>,
    /// From the arrival of a flow-control packet's last bit until it takes effect.
    pub response_time: Time,
    /// Lossless priorities (virtual lanes).
    pub priorities: u64,
    /// Without the limit of 12 bits.
    pub unlimited: bool,
}

/// The period of updates on `link`.
pub fn update(link: &LinkFacts, given: Option<Time>) -> Time {
    given.unwrap_or_else(|| xoff_kernel::time::serialisation(UPDATE, link.rate))
}

/// What CBFC needs so that its sender never waits for credit while the receiver drains.
///
/// A block that is freed waits for the next update, which finds a largest packet on its own
/// wire, crosses and takes effect; the packet that it lets go crosses, and leaves when it is
/// there whole. Meanwhile the sender goes on with other credit:
///
/// `rate·(2·delay + update + response) + largest + frame + largest + largest`
///
/// where the last packet is credit that is too little to be used; and all of it is held in
/// packets that fill blocks of 64 bytes. Nothing is lost with less.
pub fn sizing(link: &LinkFacts, ask: &Ask) -> Sizing {
    let (period, largest) = (update(link, ask.update), u64::from(link.largest));
    let mut terms: Vec<Term> = vec![
        ("cable, both ways", bytes_in(link.rate, 2 * link.delay)),
        ("update period", bytes_in(link.rate, period)),
        ("sender's response time", bytes_in(link.rate, ask.response_time)),
        ("our packet just begun", largest),
        ("flow-control packet", FRAME),
        ("first packet arrives whole", largest),
        ("credit too small for a packet", largest),
    ];
    let bytes = terms.iter().fold(0u64, |sum, t| sum.saturating_add(t.1));
    let held = bytes.div_ceil(largest).saturating_mul(largest.div_ceil(BLOCK) * BLOCK);
    terms.push(("blocks that packets do not fill", held - bytes));
    let blocks = held / BLOCK;
    let mut notes = Vec::new();
    if !ask.unlimited && blocks > MOST_BLOCKS {
        notes.push(format!(
            "12 bits of credit speak of {MOST_BLOCKS} blocks = {} B at most: on this link that is {:.1}% of the \
             rate; `unlimited` credits (CBFC-ideal) have room for all of it",
            MOST_BLOCKS * BLOCK,
            100.0 * MOST_BLOCKS as f64 / blocks as f64
        ));
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
        control: Control { frame: FRAME, frames: ask.priorities, every: period.max(1), when: "always" },
        promise: Promise { lossless: true, full_throughput: ask.unlimited || blocks <= MOST_BLOCKS },
        expressible: (!ask.unlimited).then_some(MOST_BLOCKS * BLOCK),
        formula: "Rs·(2D + update + response) + 3 packets + frame, in packets of whole 64-byte blocks",
        source: "InfiniBand vol. 1, section 7.9 (blocks, 12 bits, an update within 65,536 symbol times); Bifrost, \
                 section III-A (credit for one BDP; at most 1 km at 100 Gbps)",
        notes,
    }
}
