//! Which links of a scenario are too small, in words.

use super::size;
use crate::human;
use crate::table::Align::{Left, Right};
use crate::table::{headed, wrapped};
use xoff_net::units::{Bandwidth, Span};
use xoff_plan::size::links::{Class, Effect, Need, Report};
use xoff_schemes::flow_control::size::grouped;

/// Names of places that are shown with one kind of need; JSON has all.
const SAMPLE: usize = 12;

/// Classes that are shown; JSON has all.
const ROWS: usize = 20;

/// The report of a scenario called `name`.
pub fn render(name: &str, report: &Report) -> String {
    let compared = human::counted(report.compared, "buffer size");
    let mut text = String::new();
    let verdict = match report.too_small.len() as u64 {
        0 => "no buffer can overflow".into(),
        1 => "1 buffer size is too small, so packets can be dropped".into(),
        n => format!("{} buffer sizes are too small, so packets can be dropped", human::count(n)),
    };
    let scheme = &report.scheme;
    text += &wrapped("", "  ", &format!("{name} ({scheme}): {verdict}; {compared} compared."));
    if report.classes.iter().any(|class| class.instant) {
        let instant = "The response time of the switches is 0 in this scenario (flow_control.response_time): \
                       the needs do not include it.";
        text += &wrapped("warning: ", "  ", instant);
    }
    text += &table(&report.classes);
    if !report.too_small.is_empty() {
        text.push('\n');
    }
    for group in groups(&report.too_small) {
        text += &described("TOO SMALL", &group);
    }
    if !report.may_idle.is_empty() {
        text += "\nThese lose no packet, but a link may idle while a paused sender has packets for it:\n";
        for group in groups(&report.may_idle) {
            text += &described("may idle", &group);
        }
    }
    text
}

/// The tightest classes, with their needs.
fn table(classes: &[Class]) -> String {
    if classes.is_empty() {
        return String::new();
    }
    let heads =
        ["buffer", "link", "rate", "delay", "count", "have", "need", "margin", "", "tightest", "risk"];
    let row = |class: &Class| {
        let sign = if class.margin < 0 { "-" } else { "+" };
        let percent = 100.0 * class.margin as f64 / class.needed.max(1) as f64;
        let (rate, delay) = match class.rate_bps {
            0 => (String::new(), String::new()),
            rate => (Bandwidth(rate).to_string(), Span(class.delay_ps).to_string()),
        };
        [
            class.what.into(),
            class.link.into(),
            rate,
            delay,
            human::count(class.count),
            human::bytes(class.configured),
            human::bytes(class.needed),
            format!("{sign}{}", human::bytes(class.margin.unsigned_abs())),
            match class.needed {
                0 => String::new(),
                _ => format!("{percent:+.0}%"),
            },
            class.place.clone(),
            match class.if_too_small {
                Effect::Drop => "drop".into(),
                Effect::Idle => "idle".into(),
            },
        ]
    };
    let align = [Left, Left, Right, Right, Right, Right, Right, Right, Right, Left, Left];
    let mut text = format!("\n{}", headed(heads, align, classes.iter().take(ROWS).map(row)));
    if classes.len() > ROWS {
        let more = human::counted((classes.len() - ROWS) as u64, "row");
        text += &format!("{more} not shown, with larger margins; --json prints all.\n");
    }
    text
}

/// Needs that differ only in their place, together, in the order of the first of each.
fn groups(needs: &[Need]) -> Vec<Vec<&Need>> {
    let mut groups: Vec<Vec<&Need>> = Vec::new();
    let key = |n: &Need| (n.what, n.configured, n.needed, n.rate_bps, n.delay_ps);
    for need in needs {
        match groups.iter_mut().find(|g| key(g[0]) == key(need)) {
            Some(group) => group.push(need),
            None => groups.push(vec![need]),
        }
    }
    groups
}

fn described(label: &str, group: &[&Need]) -> String {
    let first = group[0];
    let place = |n: &&Need| match n.priority {
        Some(priority) => format!("{} (from {}, priority {priority})", n.place, n.from),
        None if n.from.is_empty() => n.place.clone(),
        None => format!("{} (from {})", n.place, n.from),
    };
    let mut places: Vec<String> = group.iter().take(SAMPLE).map(place).collect();
    if group.len() > SAMPLE {
        places.push(format!("and {} more", human::count((group.len() - SAMPLE) as u64)));
    }
    let link = match first.rate_bps {
        0 => String::new(),
        rate => format!(" on {}, {}", Bandwidth(rate), Span(first.delay_ps)),
    };
    let mut text = wrapped(&format!("  {label:<10}"), "            ", &places.join(", "));
    let have = format!(
        "{}{link}: {} configured, {} needed, {} missing",
        first.what,
        size(first.configured),
        size(first.needed),
        size(first.needed.saturating_sub(first.configured))
    );
    text += &wrapped("            ", "            ", &have);
    if first.terms.len() > 1 {
        let terms: Vec<String> =
            first.terms.iter().map(|(name, bytes)| format!("{name} {} B", grouped(*bytes))).collect();
        text += &wrapped("            = ", "              ", &terms.join(", "));
    }
    text
}
