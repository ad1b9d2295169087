//! Bifrost and BifrostX: one BDP and two slots, and what packets and lateness add.

use super::super::pfc::size as pfc;
use super::super::size::grouped;
use super::super::size::links::{Ingress, Links, Report};
use super::super::size::question::{LONGEST_TIME, Question, Refusal, SizeEntry};
use super::super::size::trial::{Case, Trial, Trials};
use super::super::size::{Basis, Control, Figure, Promise, Sizing, Unit, bytes_of, terms_of};
use super::super::{Headroom, LinkFacts};
use super::BifrostParams;
use super::frame::FeedbackFrame;
use super::slots::{History, Repair, SlotParams, bytes_in, quanta};
use xoff_kernel::time::{Time, serialisation};
use xoff_net::units::{Length, Span};
use xoff_wire::pfc::PfcFrame;

/// Its answers to `xoff size`.
pub(in super::super) const ENTRIES: [SizeEntry; 2] = [
    SizeEntry {
        name: "bifrost",
        compute: |question, link| compute_size(question, link, false),
        line: Some("bifrost"),
        trials,
    },
    SizeEntry {
        name: "bifrostx",
        compute: |question, link| compute_size(question, link, true),
        line: Some("bifrostx"),
        trials: |_, _| Err("it needs two priorities that always have data".into()),
    },
];

/// Most quanta of a pause frame.
pub const MOST_QUANTA: u64 = 65_535;

/// A slot is at most this part of the link's one-way delay: "far smaller" (section IV-B).
pub const SLOTS_PER_DELAY: u64 = 4;

/// Bifrost's input, beside the link; times as in [`BifrostParams`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    pub slot: Time,
    pub processing: Time,
    pub jitter: Time,
    /// The time at line rate that a window may send beyond its length; `None`: a packet just begun, and the
    /// bytes sent while the next frame is late.
    pub margin: Option<Time>,
    pub response_time: Time,
    /// k, at least 1.
    pub repair_every: u32,
    /// Grants are tokens, counted in bytes, of all priorities together: BifrostX.
    pub counted: bool,
    pub history: History,
    pub repair: Repair,
}

/// Quanta of the longest pause that a port asks for: of a slot, with the margin.
pub fn longest_pause(params: &SlotParams) -> u64 {
    quanta(params.of_slot() + params.margin)
}

/// Whether T is as far below the delay as it should be.
pub fn far_below(link: &LinkFacts, slot: Time) -> bool {
    slot <= link.delay / SLOTS_PER_DELAY
}

/// How late a frame can be: it may find a packet just begun on its own wire.
fn late(link: &LinkFacts, jitter: Time) -> Time {
    serialisation(link.largest.into(), link.rate) + jitter
}

/// The spans that RTT is the sum of: from the end of a slot until the first packet that its
/// frame lets begin can have arrived.
fn spans(link: &LinkFacts, ask: &Ask) -> [(&'static str, Time); 7] {
    let packet = serialisation(link.largest.into(), link.rate);
    [
        ("cable, both ways", 2 * link.delay),
        ("processing", ask.processing),
        ("jitter of the frame", ask.jitter),
        ("our packet just begun", packet),
        ("frame", serialisation(PfcFrame::LENGTH.into(), link.rate)),
        ("peer's response time", ask.response_time),
        ("first packet arrives whole", packet),
    ]
}

/// The parameters of the downstream port of a link, without its buffer.
pub fn params(link: &LinkFacts, ask: &Ask) -> SlotParams {
    SlotParams {
        rate: link.rate,
        slot: ask.slot,
        round_trip: spans(link, ask).iter().map(|span| span.1).sum(),
        buffer: 0,
        repair_every: ask.repair_every,
        // Tokens are counted in bytes.
        unit: if ask.counted { 1 } else { link.largest.into() },
        margin: match ask.margin {
            Some(margin) => bytes_in(link.rate, margin),
            None => bytes_in(link.rate, late(link, ask.jitter)).saturating_add(link.largest.into()),
        },
        counted: ask.counted,
        history: ask.history,
        repair: ask.repair,
    }
}

/// Room beyond H for leaks (section IV-D): k packets, and a frame that is late; and where tokens are
/// `counted` a packet, which may begin on a single one.
pub fn spare(link: &LinkFacts, jitter: Time, repair_every: u32, counted: bool) -> Headroom {
    let mut terms = vec![
        ("packets just begun", u64::from(repair_every) * u64::from(link.largest)),
        ("a late frame", bytes_in(link.rate, late(link, jitter))),
    ];
    if counted {
        terms.push(("a packet ahead of its tokens", u64::from(link.largest)));
    }
    link.room(terms)
}

/// The needs of Bifrost for each of `priorities` lossless priorities, or of BifrostX once for all of them.
pub fn sizing(link: &LinkFacts, ask: &Ask, priorities: u64) -> Sizing {
    let (params, budgets) = (params(link, ask), ask.counted);
    let mut terms = terms_of(&spans(link, ask), |time| bytes_in(link.rate, time));
    terms.extend([("two slots", 2 * params.of_slot()), ("margin", params.margin)]);
    if !budgets {
        terms.push(("grants in whole packets", params.unit - 1));
    }
    let spare = spare(link, ask.jitter, ask.repair_every, budgets);
    let names = ["k packets beyond H", "late frame beyond H", "packet ahead of its tokens"];
    terms.extend(names.into_iter().zip(spare.terms.iter().map(|t| t.1)));
    let slow = "T is more than a quarter of the one-way delay: Bifrost then reacts too slowly, and scenarios \
                refuse such slots";
    let unproven =
        "no lost throughput is proven only for two or more priorities with data to send (section IV-E)";
    let coarse = "a slot carries at most the margin: it is granted whole or not at all";
    let notes = [
        (slow, !far_below(link, ask.slot)),
        (unproven, budgets),
        (coarse, params.of_slot() <= params.margin),
    ];
    Sizing {
        scheme: if budgets { "bifrostx" } else { "bifrost" },
        title: if budgets { "BifrostX" } else { "Bifrost" },
        basis: Basis::Buffer,
        per: if budgets { "port, for all priorities" } else { "port and priority" },
        terms,
        shares: if budgets { 1 } else { priorities },
        headroom: spare.total,
        thresholds: vec![
            bytes_of("H", params.least_buffer()),
            bytes_of("BDP with all delays", params.bdp()),
            bytes_of("a slot", params.of_slot()),
            Figure { name: "a slot", value: quanta(params.of_slot()), unit: Unit::Quanta },
            Figure { name: "longest stop", value: longest_pause(&params), unit: Unit::Quanta },
        ],
        control: Control {
            frame: if budgets { FeedbackFrame::LENGTH } else { PfcFrame::LENGTH }.into(),
            frames: 1,
            every: ask.slot.max(1),
            when: if budgets { "every slot" } else { "every slot that is not granted whole" },
        },
        promise: Promise { lossless: true, full_throughput: true },
        most: None,
        formula: if budgets {
            "H + k packets + late frame + packet; H = BDP + 2 Rs·T + margin; BDP, margin, late frame as of Bifrost"
        } else {
            "H + k packets + late frame; H = BDP + 2 Rs·T + margin + packet − 1; BDP = Rs·(2D + processing + jitter + \
             packet + 64 B + response + packet); margin = packet + late frame; late frame = packet + jitter"
        },
        source: if budgets {
            "Bifrost, sections IV-E (one such buffer for all priorities), IV-C.1, IV-D and V"
        } else {
            "Bifrost, sections IV-C.1 (Theorem 1: H of BDP + 2 Rs·T), IV-D (k packets) and V (limits of T)"
        },
        notes: notes.into_iter().filter(|note| note.1).map(|note| note.0.into()).collect(),
    }
    .if_frames_fit(link.rate)
}

impl Ask {
    pub fn of(question: &Question, counted: bool) -> Self {
        Self {
            slot: question.slot.0,
            processing: question.processing.0,
            jitter: question.jitter.0,
            margin: None,
            response_time: question.response_time.0,
            repair_every: question.repair_every.into(),
            counted,
            history: History::Grants,
            repair: Repair::Excess,
        }
    }
}

/// Refuses slots that no link can have (section V, on T): those of which no pause frame can speak, and those
/// that end before their frame is sent.
pub(in super::super) fn check(question: &Question) -> Result<(), Refusal> {
    let (link, ask, slot) = (question.link(Length(0)), Ask::of(question, false), question.slot);
    let refuse = |message, help| Err(Refusal { key: "slot", message, help });
    let sent = Span(ask.processing + ask.jitter);
    if slot.0 <= sent.0 {
        let help = "write a slot longer than `processing` plus `jitter`, such as 10us".into();
        let message = format!("a slot of {slot} is too short: the switch sends its frame only after {sent}");
        return refuse(message, help);
    }
    let params = params(&link, &ask);
    let quanta = longest_pause(&params);
    if quanta <= MOST_QUANTA {
        return Ok(());
    }
    let message = format!(
        "a slot of {slot} at {}, with the margin of {} B (a packet just begun, a late frame), needs a pause of {} \
         quanta of 512 bit times: a frame holds at most {}",
        question.rate,
        grouped(params.margin),
        grouped(quanta),
        grouped(MOST_QUANTA)
    );
    let longest = Span(longest_slot(question));
    if longest.0 > sent.0 {
        return refuse(message, format!("write a slot of {longest} or less"));
    }
    let help = format!(
        "at this rate a slot lasts at most {longest}, and it must be longer than `processing` plus `jitter` ({sent}): \
         write a shorter --slot and --processing"
    );
    refuse(message, help)
}

/// The longest slot that a pause frame can speak of, margin included, to the nanosecond.
fn longest_slot(question: &Question) -> Time {
    let (mut fits, mut too_long) = (0, LONGEST_TIME / 1_000);
    while too_long - fits > 1 {
        let middle = fits.midpoint(too_long);
        let ask = Ask { slot: middle * 1_000, ..Ask::of(question, false) };
        let pause = longest_pause(&params(&question.link(Length(0)), &ask));
        if pause <= MOST_QUANTA { fits = middle } else { too_long = middle }
    }
    fits * 1_000
}

pub(in super::super) fn compute_size(question: &Question, link: &LinkFacts, counted: bool) -> Sizing {
    sizing(link, &Ask::of(question, counted), question.priorities.into())
}

/// Searches H, on a link that is always full, and the room beyond H, with a receiver that stops reading.
pub(in super::super) fn trials(question: &Question, link: &LinkFacts) -> Trials {
    let ask = Ask::of(question, false);
    if !far_below(link, ask.slot) {
        return Err(format!("T = {} is more than a quarter of the link's delay", question.slot));
    }
    let (params, spare) = (params(link, &ask), spare(link, ask.jitter, ask.repair_every, false).total);
    let formula = params.least_buffer();
    let near = pfc::near(link, ask.response_time);
    let keys = format!(
        "[flow_control]\nscheme = \"bifrost\"\nxoff = \"{near}B\"\nxon_offset = \"0B\"\nundersized = true\nslot = \"{}ps\"\n\
         processing = \"{}ps\"\njitter = \"{}ps\"\nresponse_time = \"{}ps\"\nrepair_every = {}\n",
        ask.slot, ask.processing, ask.jitter, ask.response_time, ask.repair_every,
    );
    let others = keys.clone();
    let period = ask.slot + ask.processing + ask.jitter + ask.response_time;
    Ok(vec![
        Trial {
            memory: "H",
            case: Case::Runs,
            formula,
            least: params.bdp() + params.of_slot() + params.margin + 2 * u64::from(link.largest),
            unit: 1,
            period,
            tables: Box::new(move |bytes, _| format!("{keys}buffer = \"{bytes}B\"\nspare = \"{spare}B\"\n")),
        },
        Trial {
            memory: "room beyond H",
            case: Case::Stops,
            formula: spare,
            least: 0,
            unit: 1,
            period,
            tables: Box::new(move |bytes, _| {
                format!("{others}buffer = \"{formula}B\"\nspare = \"{bytes}B\"\n")
            }),
        },
    ])
}

/// The margin and the room beyond H, so that nothing is lost; and H, so that the egress stays busy.
pub(super) fn compare(
    links: &Links<'_>,
    p: &BifrostParams,
    slots: &SlotParams,
    ingress: Ingress<'_>,
    report: &mut Report,
) {
    let Ingress { port: id, priority, account } = ingress;
    let priority = p.tokens.is_none().then_some(priority);
    let link = links.facts(id);
    let ask = Ask {
        slot: slots.slot,
        processing: p.processing,
        jitter: p.jitter,
        margin: None,
        response_time: p.pfc.response_time,
        repair_every: slots.repair_every,
        counted: slots.counted,
        history: slots.history,
        repair: slots.repair,
    };
    let needed = params(&link, &ask);
    let spare = spare(&link, p.jitter, slots.repair_every, slots.counted);
    let room = match account.pool {
        Some(pool) => links.buffers[pool as usize].total.saturating_sub(slots.buffer),
        None => account.headroom.as_ref().map_or(0, |room| room.total),
    };
    report.add(links.need(id, priority, "margin", slots.margin, &[("packet and late frame", needed.margin)]));
    report.add(links.need(id, priority, "room beyond H", room, &spare.terms));
    let least = [("BDP, two slots and margin", needed.least_buffer())];
    report.idle(links, id, links.need(id, priority, "H", slots.buffer, &least));
}

/// Help texts of the command line's options that set it.
pub mod help {
    pub const SLOT: &str = "Bifrost: a slot T [default: 10us]";
    pub const PROCESSING: &str =
        "Bifrost: time from the end of a slot until its frame can be sent [default: 1us]";
    pub const JITTER: &str = "Bifrost: longest further delay of the frame [default: 0ps]";
    pub const REPAIR_EVERY: &str = "Bifrost: k, packets of room beyond H, 1 to 1000 [default: 1]";
}
