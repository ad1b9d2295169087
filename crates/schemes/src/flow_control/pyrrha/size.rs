//! Pyrrha: the bytes at a congested port when all its senders are paused.

use super::super::LinkFacts;
use super::super::pfc::headroom;
use super::super::pfc::size as pfc;
use super::super::size::links::{self, Links, Report};
use super::super::size::question::{Question, SizeEntry, needs_more_links};
use super::super::size::{Basis, Control, Promise, Sizing, Term, bytes_of};
use super::{PyrrhaParams, frame::RootPauseFrame, keys::PyrrhaKeys};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::topology::{NodeKind, PortId};

/// Its answer to `xoff size`. It needs several BDP, inside a datacenter, which would make the curves of others flat.
pub(in super::super) const ENTRIES: [SizeEntry; 1] =
    [SizeEntry { name: "pyrrha", compute: compute_size, line: None, trials: needs_more_links }];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// K_pause of the congested port, in bytes.
    pub k_pause: u64,
    /// m: neighbours that send to the congested port, over links like this one; at least 1.
    pub fan_in: u64,
    pub response_time: Time,
    /// Priorities, each with roots and queues of its own.
    pub priorities: u64,
}

/// K_resume where it is not given: half of K_pause.
pub fn k_resume(k_pause: u64) -> u64 {
    k_pause / 2
}

/// The bytes that m neighbours leave at a congested port. Each is paused by its first packet that
/// finds more than K_pause; until that takes effect, the link brings the same bytes as after a pause of PFC.
pub fn sizing(link: &LinkFacts, ask: &Ask) -> Sizing {
    let names = [
        "m cables, both ways",
        "m response times",
        "m packets just begun before the frame",
        "m frames",
        "m packets just begun by peers",
    ];
    let room = headroom(link, ask.response_time);
    let after = room.terms.iter().map(|t| t.1.saturating_mul(ask.fan_in));
    let mut terms: Vec<Term> =
        vec![("K_pause", ask.k_pause), ("packet that exceeds it", link.largest.into())];
    terms.extend(names.into_iter().zip(after));
    let resume = k_resume(ask.k_pause);
    let busy = pfc::busy(link, ask.response_time).total;
    let mut notes = vec![
        "not strictly lossless: no buffer is reserved, and each of several roots fed over one link needs this much"
            .into(),
    ];
    if resume < busy {
        notes.push(pfc::may_idle(busy));
    }
    let frame = u64::from(RootPauseFrame::LENGTH);
    let drained = serialisation((ask.k_pause - resume).max(frame), link.rate);
    Sizing {
        scheme: "pyrrha",
        title: "Pyrrha",
        basis: Basis::Buffer,
        per: "congested port and priority",
        terms,
        shares: ask.priorities,
        headroom: room.total.saturating_mul(ask.fan_in),
        thresholds: vec![bytes_of("K_pause", ask.k_pause), bytes_of("K_resume", resume)],
        control: Control {
            frame,
            frames: 2 * ask.priorities,
            every: drained,
            when: "for each root: a PAUSE and a RESUME while K_pause − K_resume drain",
        },
        promise: Promise { lossless: false, full_throughput: resume >= busy },
        most: None,
        formula: "K_pause + packet + m·(Rs·(2D + response) + packet + 64 B + packet), for m neighbours of one root",
        source: "Pyrrha, section IV-A: K_pause of two hop BDPs of a round trip (\"4bdp\"), and m hop BDPs of an m-to-1 incast",
        notes,
    }
    .if_frames_fit(link.rate)
}

/// The needs of a link with the question's settings.
pub(in super::super) fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let k_pause = PyrrhaKeys::default().k_pause.resolve(link.rate, link.delay);
    let (response_time, priorities) = (question.response_time.0, question.priorities.into());
    sizing(link, &Ask { k_pause, fan_in: question.fan_in.into(), response_time, priorities })
}

/// A switch must hold the bytes of one congested port, when all of its other ports feed that one. The port
/// with the largest need counts.
pub(super) fn compare(fabric: &Links<'_>, params: &PyrrhaParams, report: &mut Report) {
    for (node, buffer) in fabric.topology.nodes.iter().zip(fabric.buffers) {
        // A switch that supports only PFC is never a root.
        let own = |p: &&PortId| params.k_pause[**p as usize] != u64::MAX;
        if node.kind == NodeKind::Host {
            continue;
        }
        let after = |p: PortId| headroom(&fabric.facts(p), params.response_time).total;
        let all: u64 = node.ports.iter().map(|&p| after(p)).fold(0, u64::saturating_add);
        let worst = node.ports.iter().filter(own).map(|&p| {
            let k_pause = params.k_pause[p as usize];
            [
                ("K_pause", k_pause),
                ("packet that exceeds it", fabric.packet.largest().into()),
                ("in flight from all other ports", all.saturating_sub(after(p))),
            ]
        });
        if let Some(terms) =
            worst.max_by_key(|terms| terms.iter().fold(0u64, |sum, t| sum.saturating_add(t.1)))
        {
            report.add(links::device(&node.name, buffer.total, &terms));
        }
    }
}
