//! The measurements over time.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::clock::{Clock, levels};
use super::fabric::Fabric;
use crate::data::DataFile;
use crate::explain::read::table;
use crate::storage::Error;

/// Most samples of a line; more are put together.
const SAMPLES: usize = 250;
/// Most lines of a quantity.
const LINES: usize = 8;
/// Maximum number of devices, and of ports, whose filling is shown over time.
const FILLED: usize = 600;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Series {
    pub times_ps: Vec<u64>,
    /// Samples in one point of a line.
    pub samples: usize,
    /// Lines, by quantity; of each the greatest.
    pub lines: Vec<Line>,
    /// By quantity, how many lines there were.
    pub counts: BTreeMap<String, usize>,
    pub nodes: Filling,
    /// How long the queues of measured ports were.
    pub ports: Filling,
}

/// One quantity of one thing.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// As in `series.parquet`.
    pub quantity: String,
    pub element: String,
    /// `bit/s`, `byte`, `count` or `ppm`.
    pub unit: String,
    /// By time; null where there is none. Of several samples the mean of rates, the greatest of all else.
    pub values: Vec<Option<u64>>,
}

/// Bytes that things held over time.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Filling {
    /// The most that one of them held in a sample: the whole of the levels.
    pub most: u64,
    /// Position, and by bin the most of its samples in it or before, see [`levels`].
    pub rows: Vec<(usize, String)>,
}

pub fn read(path: &Path, fabric: &Fabric, clock: Clock) -> Result<Series, Error> {
    let t = table(path, DataFile::Series, &["time_ps", "quantity", "element", "unit", "value"])?;
    let mut times: Vec<u64> = (0..t.rows()).map(|i| t.int("time_ps", i)).collect();
    times.sort_unstable();
    times.dedup();
    let samples = times.len().div_ceil(SAMPLES).max(1);
    let at = |ps: u64| times.binary_search(&ps).unwrap_or(0);
    // Rows by line, in the order in which lines come first.
    let mut numbers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut lines: Vec<Vec<usize>> = Vec::new();
    for i in 0..t.rows() {
        let number = *numbers.entry((t.text("quantity", i), t.text("element", i))).or_insert(lines.len());
        if number == lines.len() {
            lines.push(Vec::new());
        }
        lines[number].push(i);
    }
    let mut series = Series {
        times_ps: times.chunks(samples).filter_map(|group| group.last().copied()).collect(),
        samples,
        ..Series::default()
    };
    let most = |rows: &Vec<usize>| rows.iter().map(|&i| t.int("value", i)).max().unwrap_or(0);
    let mut by_quantity: BTreeMap<&str, Vec<&Vec<usize>>> = BTreeMap::new();
    for rows in &lines {
        by_quantity.entry(t.text("quantity", rows[0])).or_default().push(rows);
    }
    for (quantity, mut lines) in by_quantity {
        series.counts.insert(quantity.into(), lines.len());
        lines.sort_by_key(|rows| std::cmp::Reverse(most(rows)));
        let filling = match quantity {
            "buffered" => Some(&mut series.nodes),
            "queue" => Some(&mut series.ports),
            _ => None,
        };
        if let Some(filling) = filling {
            let names: BTreeMap<&str, usize> = match quantity {
                "queue" => fabric.by_name(),
                _ => fabric.nodes_by_name(),
            };
            let whole = lines.first().map_or(0, |rows| most(rows));
            filling.most = whole;
            filling.rows.extend(lines.iter().take(FILLED).filter_map(|rows| {
                let position = *names.get(t.text("element", rows[0]))?;
                let held = held(clock, rows.iter().map(|&i| (t.int("time_ps", i), t.int("value", i))));
                Some((position, levels(held.into_iter().map(|held| (held, whole)))))
            }));
        }
        for rows in lines.into_iter().take(LINES) {
            let unit = t.text("unit", rows[0]);
            let mut groups: Vec<Option<(u64, u64)>> = vec![None; series.times_ps.len()];
            for &i in rows {
                let (sum, count) = groups[at(t.int("time_ps", i)) / samples].get_or_insert((0, 0));
                match unit {
                    "bit/s" => *sum = sum.saturating_add(t.int("value", i)),
                    _ => *sum = (*sum).max(t.int("value", i)),
                }
                *count += if unit == "bit/s" || *count == 0 { 1 } else { 0 };
            }
            series.lines.push(Line {
                quantity: quantity.into(),
                element: t.text("element", rows[0]).into(),
                unit: unit.into(),
                values: groups.into_iter().map(|g| g.map(|(sum, count)| sum / count)).collect(),
            });
        }
    }
    Ok(series)
}

/// By bin, the most of the samples in it; where there is none, the last one before.
fn held(clock: Clock, samples: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut most: Vec<Option<u64>> = vec![None; clock.bins];
    for (at, value) in samples {
        let bin = &mut most[clock.bin(at)];
        *bin = Some(bin.unwrap_or(0).max(value));
    }
    let mut last = 0;
    let held = |value: Option<u64>| {
        last = value.unwrap_or(last);
        last
    };
    most.into_iter().map(held).collect()
}
