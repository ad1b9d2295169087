//! PortFC: a port's part of the sufficient memory of a switch.

use super::super::LinkFacts;
use super::super::pfc::size as pfc;
use super::super::size::links::{self, Links, Report};
use super::super::size::question::{Question, SizeEntry, needs_more_links};
use super::super::size::{Basis, Control, Promise, Sizing, Term, bytes_of};
use super::PortFcParams;
use super::bound::{Link, Side, bound};
use super::frame::PortPauseFrame;
use super::keys::PortFcKeys;
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::NodeKind;

/// Its answer to `xoff size`. It needs several BDP, inside a datacenter, which would make the curves of others flat.
pub(in super::super) const ENTRIES: [SizeEntry; 1] =
    [SizeEntry { name: "portfc", compute: compute_size, line: None, trials: needs_more_links }];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// X_off and X̂_off, in bytes.
    pub xoff: u64,
    /// Other ports of the switch, with links like this one; at least 1.
    pub others: u64,
    pub response_time: Time,
    pub priorities: u64,
}

/// X_on where it is not given: two thirds of X_off.
pub fn xon(xoff: u64) -> u64 {
    xoff / 3 * 2 + xoff % 3 * 2 / 3
}

/// A port's part of [`bound`], in a switch whose ports are all alike.
pub fn sizing(link: &LinkFacts, ask: &Ask) -> Sizing {
    let near = Link { rate: link.rate, delay: link.delay };
    let xoff = ask.xoff.max(link.largest.into());
    let side = Side { near, far: Some(near), xoff, ddq_xoff: xoff };
    let sides = vec![side; ask.others as usize + 1];
    let whole = bound(&sides, link.largest, ask.response_time);
    let part = |bytes: u64| bytes / sides.len() as u64;
    let terms: Vec<Term> = vec![
        ("X_off of both kinds of queues, with the packets that cross them", part(whole.thresholds)),
        ("in flight to forwarding queues", part(whole.forwarding)),
        ("in flight to direct queues, over relays", part(whole.direct)),
    ];
    let on = xon(xoff);
    let busy = pfc::busy(link, ask.response_time).total;
    let frame = u64::from(PortPauseFrame::LENGTH);
    let mut notes =
        vec!["proven while relay queues are short, in networks whose hosts relay (k = 1)".to_string()];
    if on < busy {
        notes.push(pfc::may_idle(busy));
    }
    if ask.priorities > 1 {
        notes.push("only one lossless priority is counted: PortFC has one set of queues".into());
    }
    Sizing {
        scheme: "portfc",
        title: "PortFC",
        basis: Basis::Buffer,
        per: "port of the switch",
        headroom: terms[1].1 + terms[2].1,
        terms,
        shares: 1,
        thresholds: vec![bytes_of("X_off", xoff), bytes_of("X_on", on)],
        control: Control {
            frame,
            frames: 2,
            every: serialisation((xoff - on).max(frame), link.rate),
            when: "for each congested port: a PAUSE and a RESUME while X_off − X_on drain",
        },
        promise: Promise { lossless: true, full_throughput: on >= busy },
        most: None,
        formula: "2 (X_off + packet) + (n − 1) (o_A + o_B), n ports; o_A and o_B: bytes in flight after a pause, direct and over a relay",
        source: "PortFC, section V-A (X_off of 6 BDP); the bound is worked out in docs/schemes/portfc.md",
        notes,
    }
    .if_frames_fit(link.rate)
}

/// The needs of a link with the question's settings.
pub(in super::super) fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let xoff = PortFcKeys::default().xoff.resolve(link.rate, link.delay);
    let (response_time, priorities) = (question.response_time.0, question.priorities.into());
    sizing(link, &Ask { xoff, others: question.fan_in.into(), response_time, priorities })
}

/// A switch must hold the bytes of all its queues.
pub(super) fn compare(fabric: &Links<'_>, params: &PortFcParams, report: &mut Report) {
    for ((node, need), buffer) in fabric.topology.nodes.iter().zip(&params.needs).zip(fabric.buffers) {
        if node.kind == NodeKind::Switch {
            let terms = [
                ("thresholds", need.thresholds),
                ("in flight to forwarding queues", need.forwarding),
                ("in flight to direct queues", need.direct),
            ];
            report.add(links::device(&node.name, buffer.total, &terms));
        }
    }
}
