//! Text for people: aligned, at most [`WIDTH`] columns, without colour.

use crate::pauses::PauseSummary;
use crate::statistics::Group;
use crate::summary::{Peak, Summary, stop_words};
use crate::verdicts::{State, Verdict};
use crate::{blocking, human, jobs};
use xoff_outcome::report::{Level, Note};

/// Most columns of a line.
pub const WIDTH: usize = 100;
/// Most columns of a name in the first column.
const NAME: usize = 14;

/// Text is flush left, numbers are flush right.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Rows of cells as lines: columns as wide as their widest cell, two blanks apart, no blanks at the end of a
/// line. Missing cells are empty.
pub fn aligned(rows: &[Vec<String>], align: &[Align]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(&widths).zip(align) {
            line += &match align {
                Align::Left => format!("{cell:<width$}  "),
                Align::Right => format!("{cell:>width$}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// [`aligned`] rows below their heads.
pub fn headed<const N: usize>(
    heads: [&str; N],
    align: [Align; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let heads = std::iter::once(heads.map(String::from));
    aligned(&heads.chain(rows).map(Vec::from).collect::<Vec<_>>(), &align)
}

/// `text` broken at blanks into lines of at most [`WIDTH`] columns; the first begins with `first`, the others
/// with `rest`. A longer word stays whole.
pub fn wrapped(first: &str, rest: &str, text: &str) -> String {
    wrapped_to(WIDTH, first, rest, text)
}

/// A paragraph without indentation.
pub fn paragraph(text: &str) -> String {
    wrapped("", "", text)
}

/// [`wrapped`] to lines of at most `width` columns.
pub fn wrapped_to(width: usize, first: &str, rest: &str, text: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_string();
    let mut begun = false;
    for word in text.split_whitespace() {
        if begun && line.chars().count() + 1 + word.chars().count() > width {
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = rest.to_string();
            begun = false;
        }
        if begun {
            line.push(' ');
        }
        line.push_str(word);
        begun = true;
    }
    lines.push_str(line.trim_end());
    lines.push('\n');
    lines
}

/// The whole text of a run: header, tables, totals, verdicts, notes.
pub fn render(summary: &Summary) -> String {
    [
        header(summary),
        groups(summary),
        jobs::render(&summary.jobs),
        totals(summary),
        verdicts(summary),
        notes(&summary.notes),
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join("\n")
}

fn header(s: &Summary) -> String {
    let amount = format!(
        "{} simulated ({}), {} packet-hops, {} by data packets",
        human::time(s.simulated_ps),
        stop(s),
        human::count(s.counters.packet_hops),
        human::count(s.counters.data_hops),
    );
    let control = match (s.transport.as_str(), s.congestion_control.as_str()) {
        // The scheduler of pods without buffers takes the place of both.
        ("none", _) => String::new(),
        (tcp, "none") if tcp.starts_with("tcp-") => " with its own congestion control".to_string(),
        (_, "none") => ", no congestion control".to_string(),
        (_, control) => format!(", congestion control {control}"),
    };
    let protocols =
        format!("flow control {}, transport {}{control}, seed {}", s.flow_control, s.transport, s.seed);
    let lines = [format!("{}: {}", s.scenario, s.network), protocols, amount];
    lines.iter().map(|line| wrapped("", "  ", line)).collect()
}

/// Why the run ended, in words.
fn stop(s: &Summary) -> &'static str {
    let failed = s.classes.iter().any(|g| g.failed > 0);
    if s.stop == "all-done" && failed { "every flow finished or failed" } else { stop_words(s.stop) }
}

fn groups(s: &Summary) -> String {
    use Align::{Left, Right};
    let align = [Left, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right];
    let failed = s.classes.iter().any(|g| g.failed > 0);
    // There is room for one of the two.
    let heads = match failed {
        true => "size flows finished failed mean p50 p95 p99 goodput retransmitted dropped",
        false => "size flows finished mean p50 p95 p99 p99.9 goodput retransmitted dropped",
    };
    let group = |g: &Group| group(g, failed);
    let mut rows = vec![heads.split(' ').map(String::from).collect::<Vec<_>>()];
    rows.extend(s.sizes.iter().map(group));
    rows.extend([vec![String::new()], vec!["traffic".to_string()]]);
    rows.extend(s.classes.iter().map(group));
    format!("Slowdown (FCT over ideal FCT) of finished flows:\n{}", aligned(&rows, &align))
}

fn group(g: &Group, failed: bool) -> Vec<String> {
    let mut row = vec![shortened(&g.name, NAME), human::count(g.flows), human::count(g.finished)];
    row.extend(failed.then(|| human::count(g.failed)));
    let slowdown = match &g.slowdown {
        Some(q) => [q.mean, q.p50, q.p95, q.p99, q.p999].map(human::ratio),
        None => std::array::from_fn(|_| "-".to_string()),
    };
    row.extend(slowdown.into_iter().take(if failed { 4 } else { 5 }));
    row.extend([human::rate(g.goodput_bps), human::count(g.retransmitted), human::count(g.dropped)]);
    row
}

/// At most `most` characters of a text; `~` stands for the others.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.into()
    } else {
        text.chars().take(most - 1).chain(['~']).collect()
    }
}

fn drops(s: &Summary) -> String {
    let d = &s.drops;
    if d.lossless_packets + d.lossy_packets + d.expired_packets + d.fault_packets + d.scheme_packets == 0 {
        return format!("none in {}", human::counted(s.counters.sent, "data packet"));
    }
    let faults = match d.fault_packets {
        0 => String::new(),
        n => format!(", {} by faults", human::count(n)),
    };
    let by = |(by, n): &(&str, u64)| format!(", {} {by}", human::count(*n));
    let schemes: String = d.by_scheme.iter().map(by).collect();
    let [lossless, lossy, expired] =
        [d.lossless_packets, d.lossy_packets, d.expired_packets].map(human::count);
    format!("{lossless} lossless, {lossy} lossy, {expired} expired packets{faults}{schemes} (including ACKs)")
}

fn pauses(p: &PauseSummary) -> String {
    let Some(mean) = p.mean_ps else { return "none".into() };
    let standing = match p.standing {
        0 => String::new(),
        n => format!("; {} still active at the end", human::count(n)),
    };
    let (count, queues) = (human::count(p.count), human::counted(p.queues, "queue"));
    let [total, mean, longest] = [p.total_ps, mean as u64, p.longest_ps].map(human::time);
    format!("{count} on {queues}; total {total}, mean {mean}, longest {longest}{standing}")
}

fn totals(s: &Summary) -> String {
    let mut rows = Vec::new();
    let mut row = |name: &str, text: String| rows.push((name.to_string(), text));
    row("drops", drops(s));
    row("pauses", pauses(&s.pauses));
    let (pause, resume) = (s.pauses.pause_frames, s.pauses.resume_frames);
    if pause + resume > 0 {
        row("frames", format!("{} pause, {} resume", human::count(pause), human::count(resume)));
    }
    for (name, text) in s.blocking.iter().flat_map(blocking::rows) {
        row(name, text);
    }
    for (name, text) in s.sections.iter().flat_map(|section| &section.rows) {
        row(name, text.clone());
    }
    let peaks = [
        ("buffer", &s.peaks.buffer),
        ("relays", &s.peaks.relay),
        ("headroom", &s.peaks.headroom),
        ("queue", &s.peaks.queue),
    ];
    for (name, peak) in peaks.into_iter().filter_map(|(name, peak)| Some((name, peak.as_ref()?))) {
        row(name, peak_text(peak));
    }
    let deadlock = s.deadlock.as_ref().map_or("none".into(), |d| {
        let ports: Vec<&str> = d.cycle.iter().chain(d.cycle.first()).map(|h| h.port.as_str()).collect();
        let ended = d.ended_ps.map_or(String::new(), |at| format!(", ended at {}", human::time(at)));
        format!("formed at {}{ended}: {}", human::time(d.closed_ps), ports.join(" -> "))
    });
    row("deadlock", deadlock);
    let indent = " ".repeat(NAME - 4);
    rows.iter().map(|(name, text)| wrapped(&format!("{name:<10}"), &indent, text)).collect()
}

fn peak_text(p: &Peak) -> String {
    match p.of {
        Some(of) => format!("fullest: {} of {} at {}", human::bytes(p.bytes), human::bytes(of), p.place),
        None => format!("longest: {} at {}", human::bytes(p.bytes), p.place),
    }
}

fn verdicts(s: &Summary) -> String {
    let row = |v: &Verdict| {
        let state = match v.state {
            State::Held => "held",
            State::Broken => "BROKEN",
            State::NotPromised => "not promised",
        };
        vec![v.property.to_string(), state.to_string(), v.text.clone()]
    };
    aligned(&s.verdicts.iter().map(row).collect::<Vec<_>>(), &[Align::Left; 3])
}

/// Notes, each with its details and help indented beneath it.
pub fn notes(notes: &[Note]) -> String {
    let mut text = String::new();
    for note in notes {
        let level = match note.level {
            Level::Error => "error",
            Level::Finding => "finding",
            Level::Warning => "warning",
            Level::Note => "note",
        };
        text += &wrapped(&format!("{level}: "), "  ", &note.text);
        text.extend(note.details.iter().map(|detail| wrapped("  - ", "    ", detail)));
        text.extend(note.help.iter().map(|help| wrapped("  help: ", "    ", help)));
    }
    text
}
