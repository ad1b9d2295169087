//! Text for people: aligned, at most [`WIDTH`] columns, without colour.

use crate::blocking;
use crate::human;
use crate::statistics::Group;
use crate::summary::{Peak, Summary, stop_words};
use crate::verdicts::State;
use xoff_outcome::report::{Level, Note};

/// Most columns of a line.
pub const WIDTH: usize = 100;
/// Most columns of a name in the first column.
const NAME: usize = 14;

/// How a column is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Flush left, for text.
    Left,
    /// Flush right, for numbers.
    Right,
}

/// Rows of cells as lines: columns as wide as their widest cell, two blanks
/// apart, no blanks at the end of a line. Missing cells are empty.
pub fn aligned(rows: &[Vec<String>], align: &[Align]) -> String {
    let width = |column: usize| {
        rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, width), align) in row.iter().zip(&widths).zip(align) {
            let blanks = " ".repeat(width - cell.chars().count());
            if *align == Align::Left {
                line.push_str(cell);
                line.push_str(&blanks);
            } else {
                line.push_str(&blanks);
                line.push_str(cell);
            }
            line.push_str("  ");
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

/// `text` broken at blanks into lines of at most [`WIDTH`] columns; the first
/// begins with `first`, the others with `rest`. A longer word stays whole.
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
    [header(summary), groups(summary), totals(summary), verdicts(summary), notes(&summary.notes)]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

fn header(s: &Summary) -> String {
    let stop = stop_words(s.stop);
    let protocols = format!("flow control {}, transport {}, seed {}", s.flow_control, s.transport, s.seed);
    let amount = format!(
        "{} simulated ({stop}), {} packet-hops, {} by data packets",
        human::time(s.simulated_ps),
        human::count(s.counters.packet_hops),
        human::count(s.counters.data_hops),
    );
    wrapped("", "  ", &format!("{}: {}", s.scenario, s.network))
        + &wrapped("", "  ", &protocols)
        + &wrapped("", "  ", &amount)
}

fn groups(s: &Summary) -> String {
    use Align::{Left, Right};
    let align = [Left, Right, Right, Right, Right, Right, Right, Right, Right, Right, Right];
    let heads =
        ["flows", "finished", "mean", "p50", "p95", "p99", "p99.9", "goodput", "retransmitted", "dropped"];
    let head = |title: &str| {
        let mut row = vec![title.to_string()];
        row.extend(heads.map(String::from));
        row
    };
    let mut rows = vec![head("size")];
    rows.extend(s.sizes.iter().map(group));
    rows.push(vec![String::new()]);
    let mut classes = head("traffic");
    classes.truncate(1);
    rows.push(classes);
    rows.extend(s.classes.iter().map(group));
    format!("Slowdown (FCT over ideal FCT) of finished flows:\n{}", aligned(&rows, &align))
}

fn group(g: &Group) -> Vec<String> {
    let mut row = vec![shortened(&g.name), human::count(g.flows), human::count(g.finished)];
    match &g.slowdown {
        Some(q) => row.extend([q.mean, q.p50, q.p95, q.p99, q.p999].map(human::ratio)),
        None => row.extend(std::iter::repeat_n("-".to_string(), 5)),
    }
    row.push(human::rate(g.goodput_bps));
    row.push(human::count(g.retransmitted));
    row.push(human::count(g.dropped));
    row
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= NAME {
        name.to_string()
    } else {
        let mut short: String = name.chars().take(NAME - 1).collect();
        short.push('~');
        short
    }
}

fn totals(s: &Summary) -> String {
    let p = &s.pauses;
    let d = &s.drops;
    let mut rows = Vec::new();
    let mut row = |name: &str, text: String| rows.push((name.to_string(), text));
    row("drops", {
        let lost =
            d.lossless_packets + d.lossy_packets + d.expired_packets + d.fault_packets + d.scheme_packets;
        let faults = match d.fault_packets {
            0 => String::new(),
            n => format!(", {} by faults", human::count(n)),
        };
        let by = |(by, n): &(&str, u64)| format!(", {} {by}", human::count(*n));
        let schemes: String = d.by_scheme.iter().map(by).collect();
        if lost == 0 {
            format!("none in {}", human::counted(s.counters.sent, "data packet"))
        } else {
            format!(
                "{} lossless, {} lossy, {} expired packets{faults}{schemes} (including ACKs)",
                human::count(d.lossless_packets),
                human::count(d.lossy_packets),
                human::count(d.expired_packets)
            )
        }
    });
    row(
        "pauses",
        match p.mean_ps {
            None => "none".into(),
            Some(mean) => {
                let standing = match p.standing {
                    0 => String::new(),
                    n => format!("; {} still active at the end", human::count(n)),
                };
                format!(
                    "{} on {}; total {}, mean {}, longest {}{standing}",
                    human::count(p.count),
                    human::counted(p.queues, "queue"),
                    human::time(p.total_ps),
                    human::time(mean as u64),
                    human::time(p.longest_ps),
                )
            }
        },
    );
    if p.pause_frames + p.resume_frames > 0 {
        row(
            "frames",
            format!("{} pause, {} resume", human::count(p.pause_frames), human::count(p.resume_frames)),
        );
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
    for (name, peak) in peaks {
        if let Some(peak) = peak {
            row(name, peak_text(peak));
        }
    }
    row(
        "deadlock",
        match &s.deadlock {
            None => "none".into(),
            Some(d) => {
                let ports: Vec<&str> =
                    d.cycle.iter().chain(d.cycle.first()).map(|h| h.port.as_str()).collect();
                let ended = d.ended_ps.map_or(String::new(), |at| format!(", ended at {}", human::time(at)));
                format!("formed at {}{ended}: {}", human::time(d.closed_ps), ports.join(" -> "))
            }
        },
    );
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
    let rows: Vec<Vec<String>> = s
        .verdicts
        .iter()
        .map(|v| {
            let state = match v.state {
                State::Held => "held",
                State::Broken => "BROKEN",
                State::NotPromised => "not promised",
            };
            vec![v.property.to_string(), state.to_string(), v.text.clone()]
        })
        .collect();
    aligned(&rows, &[Align::Left; 3])
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
        text.push_str(&wrapped(&format!("{level}: "), "  ", &note.text));
        for detail in &note.details {
            text.push_str(&wrapped("  - ", "    ", detail));
        }
        if let Some(help) = &note.help {
            text.push_str(&wrapped("  help: ", "    ", help));
        }
    }
    text
}
