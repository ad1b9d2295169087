//! The queues that a congested port can pause, level by level.

use super::{Svg, cut, ink, width};
use crate::blocking::text::{counted, rate};
use crate::blocking::{Congested, Link, Tree, queue_name};
use crate::walks::Walks;
use std::collections::BTreeMap;
use xoff_plan::plan::Plan;

/// Most queues that are drawn of a level, and most levels.
const ROWS: usize = 10;
const LEVELS: usize = 6;
/// Most links between two levels that bear their numbers.
const LABELS: usize = 16;
const BOX: (f64, f64) = (168.0, 46.0);
const GAP: (f64, f64) = (130.0, 18.0);
const TOP: f64 = 96.0;
const DIRECTIONS: &str =
    "Packets move from left to right; pauses spread from right to left. Numbers count flows with data.";
const LEFT: f64 = 28.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Spot {
    Root,
    Queue(u32),
    /// The rest of a level.
    Rest(u32),
}

/// Packets go from left to right, pauses spread from right to left. Large trees are cut, and say so.
pub fn blocking(plan: &Plan, walks: &Walks, congested: &Congested, tree: &Tree) -> String {
    let deepest = tree.queues.last().map_or(0, |q| q.level);
    let levels = deepest.min(LEVELS as u32);
    let (columns, left_out) = columns(tree, levels);
    let rows = columns.iter().map(Vec::len).max().unwrap_or(1).max(1) as f64;
    let name = plan.topology.port_name(tree.port);
    let title = format!("Queues that congestion of {} can pause", name);
    let why = if congested.stalls { ", and its host stops accepting packets" } else { "" };
    let about = format!(
        "{} (offered {}, rate {}{why}) can pause {}; {} that never cross the port can wait there, {} of them with culprits",
        counted(tree.culprits, "flow"),
        rate(congested.offered),
        rate(congested.rate),
        counted(tree.queues.len() as u64, "queue"),
        counted(congested.victims, "flow"),
        congested.beside,
    );
    let mut feet = vec![DIRECTIONS.to_string()];
    if left_out > 0 || deepest > levels {
        let below: usize = tree.queues.iter().filter(|q| q.level > levels).count();
        let mut foot = format!("Not drawn: {}", counted(left_out as u64, "queue"));
        if below > 0 {
            let next = levels + 1;
            foot += &format!(" of these levels, and all {below} of the levels {next} to {deepest}");
        }
        feet.push(foot + "; the numbers count all flows.");
    }
    let places = places(&columns);
    let drawn = lines(tree, levels, &places);
    let back = tree.links.keys().filter(|(from, to)| !next_to(tree, *from, *to)).count();
    if back > 0 {
        feet.push(format!("Not drawn: {} between queues of distant levels.", counted(back as u64, "step")));
    }
    if drawn.values().any(|line| line.1.is_none()) {
        feet.push("Numbers on lines are omitted because there are too many lines.".to_string());
    }

    let wide = LEFT * 2.0 + BOX.0 * (levels + 1) as f64 + GAP.0 * levels as f64;
    let texts = feet.iter().chain([&about]).map(|t| width(t, 13.0) + 2.0 * LEFT).fold(560.0, f64::max);
    let bottom = TOP + rows * (BOX.1 + GAP.1) + 14.0;
    let mut svg = Svg::new(wide.max(texts), bottom + 62.0 + 18.0 * feet.len() as f64);
    svg.text((LEFT, 34.0), 20.0, "font-weight=\"bold\"", &title);
    svg.text((LEFT, 58.0), 13.0, "", &about);
    for (&(from, to), &(_, label)) in &drawn {
        let rest = [from, to].iter().any(|spot| matches!(spot, Spot::Rest(_)));
        line(&mut svg, places[&from], places[&to], rest, label);
    }
    for (spot, &place) in &places {
        spot_box(&mut svg, plan, walks, tree, *spot, place, &columns);
    }
    legend(&mut svg, &name, bottom + 16.0);
    for (i, foot) in feet.iter().enumerate() {
        svg.text((LEFT, bottom + 48.0 + 18.0 * i as f64), 12.0, &format!("fill=\"{}\"", ink::FAINT), foot);
    }
    svg.finish(&format!("{title}. {about}"))
}

/// The spots of each level, the congested port's first, and how many queues of these levels are not drawn.
fn columns(tree: &Tree, levels: u32) -> (Vec<Vec<Spot>>, usize) {
    let mut columns = vec![vec![Spot::Root]];
    let mut left_out = 0;
    for level in 1..=levels {
        let mut its: Vec<u32> =
            (0..tree.queues.len() as u32).filter(|&i| tree.queues[i as usize].level == level).collect();
        // Those with the most to show.
        its.sort_by_key(|&i| {
            let q = &tree.queues[i as usize];
            (std::cmp::Reverse((q.victims, q.culprits)), i)
        });
        let rest = if its.len() > ROWS { its.split_off(ROWS - 1) } else { Vec::new() };
        left_out += rest.len();
        // In the order of those that they lead to, so that few lines cross.
        let before: BTreeMap<Spot, usize> = columns[level as usize - 1].iter().copied().zip(0..).collect();
        let row = |i: u32| {
            let to = tree.links.keys().filter(|(from, _)| *from == i).map(|(_, to)| spot(*to));
            let rows: Vec<usize> = to.filter_map(|to| before.get(&to).copied()).collect();
            if rows.is_empty() { 1000 * ROWS } else { 1000 * rows.iter().sum::<usize>() / rows.len() }
        };
        its.sort_by_key(|&i| (row(i), i));
        let mut column: Vec<Spot> = its.into_iter().map(Spot::Queue).collect();
        if !rest.is_empty() {
            column.push(Spot::Rest(level));
        }
        columns.push(column);
    }
    (columns, left_out)
}

fn spot(queue: Option<u32>) -> Spot {
    queue.map_or(Spot::Root, Spot::Queue)
}

fn places(columns: &[Vec<Spot>]) -> BTreeMap<Spot, (f64, f64)> {
    let rows = columns.iter().map(Vec::len).max().unwrap_or(1) as f64;
    let mut places = BTreeMap::new();
    for (level, column) in columns.iter().enumerate() {
        let x = LEFT + (columns.len() - 1 - level) as f64 * (BOX.0 + GAP.0);
        let above = (rows - column.len() as f64) / 2.0;
        for (row, &spot) in column.iter().enumerate() {
            places.insert(spot, (x, TOP + (above + row as f64) * (BOX.1 + GAP.1)));
        }
    }
    places
}

/// Whether packets that go from one to the other come one level nearer.
fn next_to(tree: &Tree, from: u32, to: Option<u32>) -> bool {
    tree.queues[from as usize].level == to.map_or(0, |to| tree.queues[to as usize].level) + 1
}

/// A line between two spots: the level of its left end, and its numbers, if it bears any.
type Lines = BTreeMap<(Spot, Spot), (u32, Option<Link>)>;

fn lines(tree: &Tree, levels: u32, places: &BTreeMap<Spot, (f64, f64)>) -> Lines {
    let mut lines = Lines::new();
    for (&(from, to), &link) in &tree.links {
        let level = tree.queues[from as usize].level;
        if level > levels || !next_to(tree, from, to) {
            continue;
        }
        let seen = |s: Spot, level: u32| if places.contains_key(&s) { s } else { Spot::Rest(level) };
        let ends = (seen(Spot::Queue(from), level), seen(spot(to), level - 1));
        let plain = matches!(ends, (Spot::Queue(_), Spot::Queue(_) | Spot::Root));
        lines.insert(ends, (level, plain.then_some(link)));
    }
    for level in 1..=levels {
        if lines.values().filter(|l| l.0 == level).count() > LABELS {
            lines.values_mut().filter(|l| l.0 == level).for_each(|l| l.1 = None);
        }
    }
    lines
}

fn line(svg: &mut Svg, from: (f64, f64), to: (f64, f64), rest: bool, label: Option<Link>) {
    let (x1, y1) = (from.0 + BOX.0, from.1 + BOX.1 / 2.0);
    let (x2, y2) = (to.0, to.1 + BOX.1 / 2.0);
    let bend = (x2 - x1) * 0.45;
    let d = format!("M{x1:.1} {y1:.1} C{:.1} {y1:.1} {:.1} {y2:.1} {x2:.1} {y2:.1}", x1 + bend, x2 - bend);
    let dash = if rest { " stroke-dasharray=\"4 4\"" } else { "" };
    let colour = match label {
        Some(Link { culprits: 1.., .. }) => ink::GUILTY,
        Some(Link { victims: 1.., .. }) => ink::VICTIM,
        _ => ink::LINE,
    };
    svg.path(&d, &format!("stroke=\"{colour}\" stroke-width=\"1.4\" stroke-opacity=\"0.75\"{dash}"));
    let Some(link) = label else { return };
    // At a third of the line, where lines of different queues are still apart.
    let t = 0.3;
    let u = 1.0 - t;
    let at = |a: f64, b: f64, c: f64, d: f64| {
        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
    };
    let (x, y) = (at(x1, x1 + bend, x2 - bend, x2), at(y1, y1, y2, y2));
    marks(svg, (x - 16.0, y), link.culprits, link.victims);
}

/// The numbers of culprits and victims with their marks, those above zero.
fn marks(svg: &mut Svg, (x, y): (f64, f64), culprits: u64, victims: u64) {
    let mut x = x;
    if culprits > 0 {
        svg.disc((x, y));
        svg.text((x + 8.0, y + 4.5), 12.0, "", &culprits.to_string());
        x += 18.0 + width(&culprits.to_string(), 12.0) + 6.0;
    }
    if victims > 0 {
        svg.diamond((x, y));
        svg.text((x + 9.0, y + 4.5), 12.0, "", &victims.to_string());
    }
}

fn spot_box(
    svg: &mut Svg,
    plan: &Plan,
    walks: &Walks,
    tree: &Tree,
    spot: Spot,
    (x, y): (f64, f64),
    columns: &[Vec<Spot>],
) {
    let (name, culprits, victims, style) = match spot {
        Spot::Root => {
            let style = format!("fill=\"#FBE9DD\" stroke=\"{}\" stroke-width=\"3\"", ink::GUILTY);
            (format!("{} congested", plan.topology.port_name(tree.port)), tree.culprits, 0, style)
        }
        Spot::Queue(i) => {
            let q = &tree.queues[i as usize];
            let style = match q.culprit {
                Some(_) => format!("fill=\"white\" stroke=\"{}\" stroke-width=\"1.6\"", ink::GUILTY),
                None => format!("{} rx=\"12\"", dashed()),
            };
            (queue_name(plan, walks.queues[q.queue as usize]), q.culprits, q.victims, style)
        }
        Spot::Rest(level) => {
            let all = tree.queues.iter().filter(|q| q.level == level).count();
            let n = all + 1 - columns[level as usize].len();
            let style = format!("fill=\"#F4F4F4\" stroke=\"{}\" stroke-dasharray=\"2 3\"", ink::LINE);
            svg.rect((x, y), BOX, &style);
            let text = format!("… {}", counted(n as u64, "more queue"));
            svg.text((x + BOX.0 / 2.0, y + BOX.1 / 2.0 + 4.5), 13.0, "text-anchor=\"middle\"", &text);
            return;
        }
    };
    svg.rect((x, y), BOX, &style);
    svg.text((x + 10.0, y + 18.0), 13.0, "font-weight=\"bold\"", &cut(&name, 22));
    marks(svg, (x + 16.0, y + 33.0), culprits, victims);
}

/// A box without culprits.
fn dashed() -> String {
    format!("fill=\"white\" stroke=\"{}\" stroke-width=\"1.6\" stroke-dasharray=\"6 3\"", ink::VICTIM)
}

fn legend(svg: &mut Svg, port: &str, y: f64) {
    let mut x = LEFT + 6.0;
    svg.disc((x, y));
    let texts = ["culprits: flows that cross", "victims: flows that never cross"];
    let texts = texts.map(|text| format!("{text} {port}"));
    svg.text((x + 10.0, y + 4.5), 12.0, "", &texts[0]);
    x += width(&texts[0], 12.0) + 34.0;
    svg.diamond((x, y));
    svg.text((x + 10.0, y + 4.5), 12.0, "", &texts[1]);
    x += width(&texts[1], 12.0) + 28.0;
    svg.rect((x, y - 8.0), (26.0, 16.0), &format!("{} rx=\"6\"", dashed()));
    svg.text((x + 34.0, y + 4.5), 12.0, "", "queue without culprits");
}
