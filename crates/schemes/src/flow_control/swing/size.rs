//! SWING: a relay with deep memory at the long link, and a switch that runs PFC with shallow thresholds.

use super::super::LinkFacts;
use super::super::fabric::Limit;
use super::super::pfc::headroom;
use super::super::pfc::size as pfc;
use super::super::size::links::{Ingress, Links, Report};
use super::super::size::question::{Question, SizeEntry, needs_more_links};
use super::super::size::{Basis, Promise, Sizing, Term, bytes_of};
use super::{THRESHOLD, memory, xon};
use xoff_kernel::time::Time;

/// Its answers to `xoff size`.
pub(in super::super) const ENTRIES: [SizeEntry; 1] =
    [SizeEntry { name: "swing", compute: compute_size, line: Some("swing"), trials: needs_more_links }];

/// The bytes that the relay must hold for one priority, by [`memory`]. Where it serves `several` priorities,
/// one can delay another without a pause that could be passed on: then the relay pauses the far one by its
/// own threshold, with PFC's headroom besides.
fn relay_memory(link: &LinkFacts, response_time: Time, several: bool) -> Vec<Term> {
    let names = [
        "relay: cable, both ways",
        "relay: peer's response time",
        "relay: our packet just begun",
        "relay: pause frame",
        "relay: peer's packet just begun",
        "relay: packets that pass through",
    ];
    let room = memory(link, response_time);
    let mut terms: Vec<Term> = names.into_iter().zip(room.terms.iter().map(|t| t.1)).collect();
    if several {
        terms.push(("relay: headroom above its own threshold", headroom(link, response_time).total));
    }
    terms
}

/// The needs of SWING, relay and switch together, for each priority. The cable between them has no delay.
pub fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let (response_time, priorities) = (question.response_time.0, question.priorities.into());
    let mut terms = relay_memory(link, response_time, priorities > 1);
    let relay: u64 = terms.iter().map(|t| t.1).sum();
    let near = headroom(&LinkFacts { delay: 0, ..*link }, response_time).total;
    terms
        .extend([("switch: XOFF", THRESHOLD), ("switch: packet that crosses XOFF", u64::from(link.largest))]);
    terms.push(("switch: headroom towards its relay", near));
    let notes = vec![
        "the relay is a separate device: its memory is not on the switch chip".into(),
        "a pause stops the sender one delay later, even if the relay has stored nothing: an \
         egress can idle for that time (Table I of Huang et al. 2024)"
            .into(),
    ];
    Sizing {
        scheme: "swing",
        title: "SWING",
        basis: Basis::Buffer,
        per: "port and priority, in the switch and its relay",
        terms,
        shares: priorities,
        headroom: relay + near,
        thresholds: vec![
            bytes_of("relay memory", relay),
            bytes_of("switch XOFF", THRESHOLD),
            bytes_of("switch XON", xon(THRESHOLD, link.largest)),
        ],
        control: pfc::refresh(link, priorities),
        promise: Promise { lossless: true, full_throughput: false },
        most: None,
        formula: "relay: Rs·(2D + response) + packet + 64 B + packet + 2 packets, and all but these two again if there are several \
                  priorities; switch: XOFF + packet + headroom of the short cable",
        source: "Huang et al. 2024, sections II-B and VI-B: relay of 287 MiB at a BDP of 286 MiB; XOFF and XON of 198 KiB. \
                 The signals of the relay, and XON 16 packets lower, are an interpretation",
        notes,
    }
    .if_frames_fit(link.rate)
}

/// Relays, towards the long link: the bytes of a round trip, or headroom above a threshold of their own,
/// which is enough if several priorities have data.
pub(super) fn compare(links: &Links<'_>, ingress: Ingress<'_>, response: Time, report: &mut Report) {
    let Ingress { port: id, priority, account } = ingress;
    let link = links.facts(id);
    let room = account.headroom.as_ref().map_or(0, |room| room.total);
    let needed = headroom(&link, response);
    let data = links.lanes.iter().zip(&links.data);
    let several = data.filter(|(lane, has_data)| lane.lossless && **has_data).count() > 1;
    if several || room >= needed.total {
        report.add(links.need(id, Some(priority), "headroom", room, &needed.terms));
    } else {
        let threshold = match account.limit {
            Limit::Static(more) => account.reserve.saturating_add(more),
            _ => account.reserve,
        };
        let memory = memory(&link, response);
        report.add(links.need(id, Some(priority), "relay memory", threshold, &memory.terms));
    }
}
