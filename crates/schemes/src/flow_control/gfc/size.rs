//! GFC: the room for all rates of an ingress account.

use super::super::LinkFacts;
use super::super::size::links::{Links, Report};
use super::super::size::question::{Question, SizeEntry};
use super::super::size::trial::{Case, Trial, Trials};
use super::super::size::{Basis, Control, Figure, Most, Promise, Sizing, Unit, bytes_of};
use super::frame::{StageFrame, StoredFrame};
use super::time::{self, default_period, least_span};
use super::{GfcParams, feedback, least_room};
use xoff_kernel::time::serialisation;

/// Its answers to `xoff size`. It needs three to five BDP, which would make the curves of others flat.
pub(in super::super) const ENTRIES: [SizeEntry; 2] = [
    SizeEntry {
        name: "gfc",
        compute: |question, link| compute_size(question, link, false),
        line: None,
        trials: |question, link| trials(question, link, false),
    },
    SizeEntry {
        name: "gfc-time",
        compute: |question, link| compute_size(question, link, true),
        line: None,
        trials: |question, link| trials(question, link, true),
    },
];

/// The buffer of the defaults: B_1 or B_0 of a feedback time, and the least room beyond it.
pub fn compute_size(question: &Question, link: &LinkFacts, by_time: bool) -> Sizing {
    let (response_time, priorities) = (question.response_time.0, u64::from(question.priorities));
    let h = feedback(link, response_time);
    let period = default_period(link, response_time);
    let (room, span) = match by_time {
        false => (least_room(link, response_time), h.saturating_mul(2)),
        true => (time::room(link, period, response_time), least_span(link, period, response_time)),
    };
    let (first, rates) = match by_time {
        false => ("up to B_1: a feedback time", "all stages: two feedback times"),
        true => ("up to B_0: a feedback time", "rates from B_0 to B_m"),
    };
    let terms = vec![(first, h), (rates, span), ("whole packets", room.saturating_sub(span))];
    let mut thresholds = vec![bytes_of(if by_time { "B_0" } else { "B_1" }, h)];
    if by_time {
        thresholds.push(Figure { name: "period", value: period, unit: Unit::Time });
    }
    let (frame, every, when) = match by_time {
        false => {
            let packet = serialisation(link.largest.into(), link.rate).max(1);
            (StageFrame::LENGTH, packet, "when each packet changes the stage")
        }
        true => (StoredFrame::LENGTH, period, "always"),
    };
    let sizing = Sizing {
        scheme: if by_time { "gfc-time" } else { "gfc" },
        title: if by_time { "GFC with feedback in periods (gfc-time)" } else { "GFC" },
        basis: Basis::Buffer,
        per: "port and priority",
        terms,
        shares: priorities,
        headroom: room,
        thresholds,
        control: Control { frame: frame.into(), frames: priorities, every, when },
        promise: Promise { lossless: true, full_throughput: false },
        most: by_time.then_some(Most::of_frames(u32::MAX.into())),
        formula: match by_time {
            false => "C·τ + 2·C·τ + K + 1 packets; C·τ is the headroom of PFC",
            true => "C·τ + C·(√τ + √T)² + K + 4 packets; C·τ is the headroom of PFC",
        },
        source: "Qian et al., SIGCOMM 2019, without its text: the bounds and the packets are xoff's",
        notes: vec![
            "in stage K a packet takes longer than 100 days, so a receiver that stops reading causes no loss"
                .into(),
        ],
    };
    sizing.if_frames_fit(link.rate)
}

/// Searches the highest fill if a receiver stops reading. A scenario accepts no smaller room.
pub fn trials(question: &Question, link: &LinkFacts, by_time: bool) -> Trials {
    let sizing = compute_size(question, link, by_time);
    if !sizing.is_in_reach() {
        return Err("its frames cannot express the buffer by the formula".into());
    }
    let (first, response_time) = (sizing.thresholds[0].value, question.response_time.0);
    let (form, key) = if by_time { ("time", "b0") } else { ("buffer", "b1") };
    Ok(vec![Trial {
        memory: "room beyond the first threshold",
        case: Case::Stops,
        formula: sizing.headroom,
        least: sizing.headroom,
        unit: 1,
        period: response_time + if by_time { default_period(link, response_time) } else { 0 },
        tables: Box::new(move |bytes, moved| {
            let first = first + moved;
            format!(
                "[flow_control]\nscheme = \"gfc\"\nform = \"{form}\"\n{key} = \"{first}B\"\nbuffer = \"{}B\"\n\
                 response_time = \"{response_time}ps\"\n",
                first + bytes
            )
        }),
    }])
}

/// Each account's room beyond its first threshold, and the need of its link.
pub(super) fn compare(links: &Links<'_>, params: &GfcParams, report: &mut Report) {
    links.accounts(|ingress| {
        let facts = links.facts(ingress.port);
        let (room, rates) = match params.map(ingress.port) {
            None => {
                let rates = feedback(&facts, params.response_time).saturating_mul(2);
                (least_room(&facts, params.response_time), ("two feedback times", rates))
            }
            Some(map) => {
                let rates = least_span(&facts, map.period, params.response_time);
                (time::room(&facts, map.period, params.response_time), ("rates from B_0 to B_m", rates))
            }
        };
        let has = ingress.account.headroom.as_ref().map_or(0, |room| room.total);
        let terms = [rates, ("whole packets", room.saturating_sub(rates.1))];
        report.add(links.need(ingress.port, Some(ingress.priority), "room for all rates", has, &terms));
        true
    });
}
