//! PFC: as its thresholds are usually chosen, and such that its egress never waits.

use super::super::fabric::Limit;
use super::super::size::links::{Ingress, Links, Report};
use super::super::size::question::{Question, SizeEntry};
use super::super::size::trial::{Case, Trial};
use super::super::size::{Basis, Control, Promise, Sizing, Term, bytes_in, bytes_of, grouped};
use super::super::{Headroom, LinkFacts};
use super::keys::PfcKeys;
use super::{headroom, pause_time};
use xoff_kernel::time::Time;
use xoff_wire::pfc::PfcFrame;

/// Its answers to `xoff size`.
pub(in super::super) const ENTRIES: [SizeEntry; 3] = [
    SizeEntry {
        name: "pfc",
        compute: |question, link| compute_size(question, link, Some(question.xoff.0)),
        line: Some("pfc"),
        trials: |question, link| Ok(vec![headroom_trial(question, link)]),
    },
    SizeEntry {
        name: "pfc-ieee",
        compute: compute_delay_value,
        line: None,
        trials: |question, link| Ok(vec![delay_value_trial(question, link)]),
    },
    SizeEntry {
        name: "pfc-deep",
        compute: |question, link| compute_size(question, link, None),
        line: Some("pfc-deep"),
        trials: |question, link| Ok(vec![headroom_trial(question, link), busy_trial(question, link)]),
    },
];

/// XOFF on a long link as Huang et al. 2024 have it (section VI-B, "PFC settings"): 1 MiB.
pub const SHALLOW: u64 = 1 << 20;

/// The bytes that an account must hold when it resumes its peer, so its egress has packets to send until the
/// first one arrives.
///
/// The resume frame may find a largest packet just begun on its own wire; then it crosses and takes effect;
/// and the first packet is there when its last bit is. All of that time the egress drains at line rate:
///
/// `2·delay·rate + response·rate + largest + 64 + largest`
///
/// (Huang et al. 2024, section III-B, has the first of these terms: one BDP.) These are as many
/// bytes as [`headroom`] counts for a pause, for other reasons in the last term.
pub fn busy(link: &LinkFacts, response_time: Time) -> Headroom {
    let mut room = headroom(&LinkFacts { retries: 0, ..*link }, response_time);
    room.terms.last_mut().expect("headroom has terms").0 = "first packet arrives whole";
    room
}

/// Repeats of a standing pause of the default quanta: a frame for each priority after half of its time.
pub fn refresh(link: &LinkFacts, priorities: u64) -> Control {
    Control {
        frame: u64::from(PfcFrame::LENGTH),
        frames: priorities,
        every: (pause_time(PfcKeys::default().quanta, link.rate) / 2).max(1),
        when: "while paused, to repeat the pause; each pause and resume adds one frame",
    }
}

/// The note that an account which resumes below `busy` bytes can run empty.
pub fn may_idle(busy: u64) -> String {
    format!(
        "an egress can idle after a pause: only an XON of {} B or more leaves it enough packets until the \
         sender's packets arrive again",
        grouped(busy)
    )
}

/// The needs of PFC: XOFF, in bytes, the packet that crosses it, and headroom, for each priority. Without
/// `given`, XOFF is enough to keep the egress busy.
pub fn compute_size(question: &Question, link: &LinkFacts, given: Option<u64>) -> Sizing {
    let (response_time, priorities) = (question.response_time.0, question.priorities.into());
    let (room, busy) = (headroom(link, response_time), busy(link, response_time));
    let xoff = given.unwrap_or(busy.total);
    let full = xoff >= busy.total;
    let mut terms: Vec<Term> = vec![("XOFF", xoff), ("packet that crosses XOFF", u64::from(link.largest))];
    terms.extend(&room.terms);
    let (scheme, title, basis, formula, source) = match given {
        Some(_) => (
            "pfc",
            "PFC",
            Basis::Headroom,
            "XOFF + packet + headroom; headroom = Rs·(2D + response) + packet + 64 B + packet",
            "802.1Q-2018 Annex N; Huang et al. 2024, section III-B (headroom of one BDP) and VI-B (XOFF of 1 MiB)",
        ),
        None => (
            "pfc-deep",
            "PFC with full rate (pfc-deep)",
            Basis::Buffer,
            "XON + packet + headroom; XON = XOFF = headroom = Rs·(2D + response) + packet + 64 B + packet",
            "802.1Q-2018 Annex N; Huang et al. 2024, section III-B: two BDP, for losslessness and for throughput",
        ),
    };
    Sizing {
        scheme,
        title,
        basis,
        per: "port and priority",
        terms,
        shares: priorities,
        headroom: room.total,
        thresholds: vec![bytes_of("XOFF", xoff), bytes_of("XON", xoff)],
        control: refresh(link, priorities),
        promise: Promise { lossless: true, full_throughput: full },
        most: None,
        formula,
        source,
        notes: Vec::from_iter((!full).then(|| may_idle(busy.total))),
    }
    .if_frames_fit(link.rate)
}

/// A frame's preamble and the gap after it, in bytes.
const BETWEEN: u64 = 20;

/// The headroom of IEEE 802.1Q: the delay value DV. It counts two largest packets of the peer where [`headroom`]
/// counts the one that the peer has just begun, and the gap of the pause frame.
pub fn delay_value(link: &LinkFacts, response_time: Time) -> Headroom {
    let largest = u64::from(link.largest);
    let terms = vec![
        ("cable, both ways", bytes_in(link.rate, 2 * link.delay)),
        ("higher layer and interfaces (response time)", bytes_in(link.rate, response_time)),
        ("our packet just begun", largest),
        ("pause frame, preamble and gap", u64::from(PfcFrame::LENGTH) + BETWEEN),
        ("two packets of the peer", 2 * largest),
    ];
    Headroom { total: terms.iter().map(|term| term.1).sum(), terms }
}

/// The needs of PFC with the headroom of [`delay_value`] after XOFF.
pub fn compute_delay_value(question: &Question, link: &LinkFacts) -> Sizing {
    let room = delay_value(link, question.response_time.0);
    let mut sizing = compute_size(question, link, Some(question.xoff.0));
    let before = sizing.terms.len() - room.terms.len();
    sizing.terms.truncate(before);
    sizing.terms.extend(&room.terms);
    Sizing {
        scheme: "pfc-ieee",
        title: "PFC with the delay value of IEEE 802.1Q (pfc-ieee)",
        headroom: room.total,
        formula: "XOFF + packet + DV; DV = packet + 84 B + 2 cable delays + higher layer delay + 2 interface delays + \
                  2 packets",
        source: "IEEE 802.1Q, delay value of PFC (802.1Qbb Annex O), as in Linux, ixgbe_type.h, IXGBE_DV without its \
                 factor 36/25 for memory; IEEE P802.1Qdt measures the delays of this sum",
        ..sizing
    }
}

/// XOFF of the short links beside the one that is searched: their egress does not wait.
pub fn near(link: &LinkFacts, response_time: Time) -> u64 {
    busy(&LinkFacts { delay: 0, ..*link }, response_time).total + u64::from(link.largest)
}

/// The tables of PFC, with `long` of the link.
fn tables(link: &LinkFacts, response_time: Time, long: &str) -> String {
    let near = near(link, response_time);
    format!(
        "[flow_control]\nscheme = \"pfc\"\nxoff = \"{near}B\"\nxon_offset = \"0B\"\n\
         response_time = \"{response_time}ps\"\nlong = {{ {long} }}\n"
    )
}

/// Searches the headroom: a receiver that stops reading.
pub fn headroom_trial(question: &Question, link: &LinkFacts) -> Trial {
    let (link, response_time) = (*link, question.response_time.0);
    let near = near(&link, response_time);
    Trial {
        memory: "headroom",
        case: Case::Stops,
        formula: headroom(&link, response_time).total,
        least: 0,
        unit: 1,
        period: response_time,
        tables: Box::new(move |bytes, moved| {
            let xoff = near + moved;
            tables(&link, response_time, &format!("xoff = \"{xoff}B\", headroom = \"{bytes}B\""))
        }),
    }
}

/// The same, against the delay value.
pub fn delay_value_trial(question: &Question, link: &LinkFacts) -> Trial {
    let formula = delay_value(link, question.response_time.0).total;
    Trial { formula, ..headroom_trial(question, link) }
}

/// Searches XON: a receiver that reads again.
pub fn busy_trial(question: &Question, link: &LinkFacts) -> Trial {
    let (link, response_time) = (*link, question.response_time.0);
    Trial {
        memory: "XON",
        case: Case::Resumes,
        formula: busy(&link, response_time).total,
        least: u64::from(link.largest),
        unit: 1,
        period: response_time,
        tables: Box::new(move |bytes, _| tables(&link, response_time, &format!("xoff = \"{bytes}B\""))),
    }
}

/// PFC: headroom, so that nothing is lost; and XON, so that the egress stays busy.
pub(in super::super) fn compare(
    links: &Links<'_>,
    ingress: Ingress<'_>,
    response: Time,
    report: &mut Report,
) {
    let Ingress { port: id, priority, account } = ingress;
    let link = links.facts(id);
    let room = account.headroom.as_ref().map_or(0, |room| room.total);
    let needed = headroom(&link, response);
    report.add(links.need(id, Some(priority), "headroom", room, &needed.terms));
    // A threshold that depends on the free bytes has no least value.
    if matches!(account.limit, Limit::Static(_)) {
        let on = account.reserve.saturating_add(account.resume);
        let busy = busy(&link, response);
        report.idle(links, id, links.need(id, Some(priority), "XON", on, &busy.terms));
    }
}

/// Help texts of the command line's options that set it.
pub mod help {
    pub const XOFF: &str = "PFC: XOFF of a shallow threshold [default: 1MiB]";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `IXGBE_DV` of Linux without its factor of 36/25, for 100 m of copper at 10 Gbit/s and frames of 1,500 B: 12,000 +
    /// 672 + 2 · 5,556 + 2 · 18,944 + 6,144 + 2 · 12,000 bit.
    #[test]
    fn the_delay_value_is_that_of_a_driver() {
        let bit = 100;
        let link = LinkFacts { rate: 10_000_000_000, delay: 5_556 * bit, largest: 1_500, retries: 0 };
        let room = delay_value(&link, (2 * 18_944 + 6_144) * bit);
        assert_eq!(room.total, 91_816 / 8);
        assert_eq!(room.terms.iter().map(|term| term.1).sum::<u64>(), room.total);
        assert_eq!(room.total, headroom(&link, (2 * 18_944 + 6_144) * bit).total + 1_500 + 20);
    }
}
