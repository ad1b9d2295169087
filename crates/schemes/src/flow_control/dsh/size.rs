//! DSH: the insurance of a port.

use super::super::LinkFacts;
use super::super::pfc::size::{near, refresh};
use super::super::size::links::{Links, Report};
use super::super::size::question::{Question, SizeEntry};
use super::super::size::trial::{Case, Trial};
use super::super::size::{Basis, Control, Promise, Sizing, bytes_of, grouped};
use super::insurance;
use super::keys::DshKeys;
use xoff_kernel::time::Time;

/// Its answers to `xoff size`.
pub(in super::super) const ENTRIES: [SizeEntry; 1] = [SizeEntry {
    name: "dsh",
    compute: compute_size,
    line: None,
    trials: |question, link| Ok(vec![insurance_trial(question, link)]),
}];

/// The memory that DSH sets aside for a link: private memory of each priority, a packet, and the insurance.
pub fn compute_size(question: &Question, link: &LinkFacts) -> Sizing {
    let (response_time, priorities) = (question.response_time.0, u64::from(question.priorities));
    let (room, private) = (insurance(link, response_time), DshKeys::default().private.0);
    let mut terms = vec![
        ("private memory of the priorities", private.saturating_mul(priorities)),
        ("packet that crosses Xpoff", u64::from(link.largest)),
    ];
    terms.extend(&room.terms);
    let control = refresh(link, priorities);
    Sizing {
        scheme: "dsh",
        title: "DSH",
        basis: Basis::Headroom,
        per: "port",
        terms,
        shares: 1,
        headroom: room.total,
        thresholds: vec![bytes_of("insurance", room.total)],
        // Frames of the queues, and one of the port.
        control: Control { frames: control.frames + 1, ..control },
        promise: Promise { lossless: true, full_throughput: false },
        most: None,
        formula: "private memory + packet + η; η = 2·(C·Dprop + L) + 3840 B",
        source: "Shan et al., ICDCS 2023, equations 1 and 4",
        notes: Vec::from_iter((priorities > 1).then(|| {
            let separate = grouped(room.total.saturating_mul(priorities));
            format!("separate headroom for {priorities} priorities is {separate} B")
        })),
    }
    .if_frames_fit(link.rate)
}

/// Searches the insurance: a receiver that stops reading.
pub fn insurance_trial(question: &Question, link: &LinkFacts) -> Trial {
    let (link, response_time) = (*link, question.response_time.0);
    Trial {
        memory: "insurance",
        case: Case::Stops,
        formula: insurance(&link, response_time).total,
        least: 0,
        unit: 1,
        period: response_time,
        // A small alpha: the port pauses long before the stall ends. The private memory moves the crossing.
        tables: Box::new(move |bytes, moved| {
            let private = near(&link, response_time) + moved;
            format!(
                "[flow_control]\nscheme = \"dsh\"\nalpha = 0.0001\ninsurance = \"{bytes}B\"\nprivate = \"{private}B\"\n\
                 response_time = \"{response_time}ps\"\n"
            )
        }),
    }
}

/// Each port's insurance, and the need of its link.
pub(super) fn compare(links: &Links<'_>, response_time: Time, report: &mut Report) {
    links.accounts(|ingress| {
        let room = ingress.account.headroom.as_ref().map_or(0, |room| room.total);
        let needed = insurance(&links.facts(ingress.port), response_time);
        report.add(links.need(ingress.port, None, "insurance", room, &needed.terms));
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_kernel::time::MICROSECOND;

    /// Section V: links of 100 Gbit/s and 2 us, and packets of 1,500 B.
    #[test]
    fn the_insurance_is_that_of_the_paper() {
        let link = LinkFacts { rate: 100_000_000_000, delay: 2 * MICROSECOND, largest: 1_500, retries: 0 };
        assert_eq!(insurance(&link, 0).total, 56_840);
        // 3,776 B and the frame take 302.08 ns at this rate; more grows the term.
        assert_eq!(insurance(&link, 302_080).total, 56_840);
        assert_eq!(insurance(&link, 302_160).total, 56_841);
    }
}
