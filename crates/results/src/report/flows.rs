//! Flows: a row for each of those that are listed, and distributions over all of them.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::fabric::Fabric;
use crate::data::DataFile;
use crate::explain::read::{damaged, table};
use crate::statistics::{ALL, nearest_rank};
use crate::storage::Error;

/// Most flows of a class that are listed, finished ones and others.
const LISTED: usize = 500;
/// Most points of a distribution.
const POINTS: usize = 100;
/// Most groups of equally many flows by size.
const GROUPS: usize = 12;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Flows {
    pub classes: Vec<String>,
    pub began: u64,
    /// Listed ones, by id.
    pub rows: Vec<Row>,
    pub cdfs: Vec<Cdf>,
    /// Slowdown by size: all finished flows in groups of equally many.
    pub by_size: Vec<SizeGroup>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// As in `flows.parquet`.
    pub id: usize,
    /// This, the receiver and the class are positions.
    pub src: usize,
    pub dst: usize,
    pub class: usize,
    pub size: u64,
    pub start_ps: u64,
    /// Completion time; null if unfinished or failed.
    pub fct_ps: Option<u64>,
    /// From the start until the sender gave up; null if it did not.
    pub failed_ps: Option<u64>,
    /// FCT over ideal FCT; null if unfinished or failed.
    pub slowdown: Option<f64>,
    /// Payload delivered in order, in bytes.
    pub delivered: u64,
    pub dropped: u64,
}

/// The finished flows of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cdf {
    /// The class, or `all`.
    pub class: String,
    pub flows: u64,
    /// Number of them that finished: the other values are about these.
    pub finished: u64,
    /// Completion times at equal steps of rank, by nearest rank: the first is that of one hundredth of the
    /// flows, the last the longest.
    pub fct_ps: Vec<u64>,
    /// Slowdowns in the same form.
    pub slowdown: Vec<f64>,
}

/// Finished flows of similar size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeGroup {
    /// Least and greatest size in bytes.
    pub from: u64,
    pub to: u64,
    pub flows: u64,
    /// Slowdown: mean, and quantiles by nearest rank.
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
}

/// Reads the flows of a run; those in `explained_flows` are listed in any case.
pub fn read(path: &Path, fabric: &Fabric, explained_flows: &[usize]) -> Result<Flows, Error> {
    const TEXTS: [&str; 3] = ["src", "dst", "class"];
    const INTS: [&str; 6] = ["size", "start_ps", "fct_ps", "failed_ps", "delivered_bytes", "dropped"];
    let t = table(path, DataFile::Flows, &[&TEXTS[..], &INTS[..], &["slowdown"]].concat())?;
    let by_name = fabric.nodes_by_name();
    let mut flows = Flows::default();
    let mut classes: BTreeMap<String, usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for i in 0..t.rows() {
        let class = t.text("class", i);
        let class = *classes.entry(class.into()).or_insert_with(|| {
            flows.classes.push(class.into());
            flows.classes.len() - 1
        });
        let Some(start_ps) = t.maybe_int("start_ps", i) else { continue };
        let node = |column: &str| by_name.get(t.text(column, i)).copied();
        let (Some(src), Some(dst)) = (node("src"), node("dst")) else {
            let message = format!("is damaged: the source or destination of flow {i} does not exist");
            return Err(damaged(path, message));
        };
        rows.push(Row {
            id: i,
            src,
            dst,
            class,
            size: t.int("size", i),
            start_ps,
            fct_ps: t.maybe_int("fct_ps", i),
            failed_ps: t.maybe_int("failed_ps", i).map(|at| at.saturating_sub(start_ps)),
            slowdown: t.floats("slowdown")[i],
            delivered: t.int("delivered_bytes", i),
            dropped: t.int("dropped", i),
        });
    }
    flows.began = rows.len() as u64;
    flows.cdfs.push(cdf(ALL, rows.iter()));
    if flows.classes.len() > 1 {
        let of = |(class, name): (usize, &String)| cdf(name, rows.iter().filter(|row| row.class == class));
        flows.cdfs.extend(flows.classes.iter().enumerate().map(of));
    }
    flows.by_size = by_size(&rows);
    flows.rows = listed(rows, flows.classes.len(), explained_flows);
    Ok(flows)
}

fn cdf<'r>(class: &str, rows: impl Iterator<Item = &'r Row> + Clone) -> Cdf {
    let mut fcts: Vec<u64> = rows.clone().filter_map(|row| row.fct_ps).collect();
    fcts.sort_unstable();
    let mut slowdowns: Vec<f64> = rows.clone().filter_map(|row| row.slowdown).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    let points = || (1..=POINTS).map(|i| i * 1000 / POINTS);
    Cdf {
        class: class.into(),
        flows: rows.count() as u64,
        finished: fcts.len() as u64,
        fct_ps: points().filter_map(|at| nearest_rank(&fcts, at)).collect(),
        slowdown: points().filter_map(|at| nearest_rank(&slowdowns, at)).collect(),
    }
}

fn by_size(rows: &[Row]) -> Vec<SizeGroup> {
    let mut finished: Vec<(u64, f64)> =
        rows.iter().filter_map(|row| Some((row.size, row.slowdown?))).collect();
    finished.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut groups = Vec::new();
    let mut from = 0;
    for i in 1..=GROUPS {
        let mut to = finished.len() * i / GROUPS;
        // Flows of one size are one group.
        while to > from && to < finished.len() && finished[to].0 == finished[to - 1].0 {
            to += 1;
        }
        if to <= from {
            continue;
        }
        let group = &finished[from..to];
        let mut slowdowns: Vec<f64> = group.iter().map(|flow| flow.1).collect();
        slowdowns.sort_unstable_by(f64::total_cmp);
        let at = |per_mille| nearest_rank(&slowdowns, per_mille).unwrap_or(0.0);
        groups.push(SizeGroup {
            from: group[0].0,
            to: group[group.len() - 1].0,
            flows: group.len() as u64,
            mean: slowdowns.iter().sum::<f64>() / slowdowns.len() as f64,
            p50: at(500),
            p95: at(950),
            p99: at(990),
        });
        from = to;
    }
    groups
}

/// Of each class the slowest flows and the first unfinished or failed ones, and those in `explained_flows`.
fn listed(rows: Vec<Row>, classes: usize, explained_flows: &[usize]) -> Vec<Row> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    let slowness = |at: &usize| rows[*at].slowdown.unwrap_or(f64::INFINITY);
    order.sort_by(|a, b| slowness(b).total_cmp(&slowness(a)));
    let mut left = vec![[LISTED; 2]; classes];
    let mut keep = vec![false; rows.len()];
    for at in order {
        let left = &mut left[rows[at].class][usize::from(rows[at].fct_ps.is_none())];
        if *left > 0 {
            *left -= 1;
            keep[at] = true;
        }
    }
    let mut rows: Vec<_> = rows.into_iter().zip(keep).collect();
    rows.retain(|(row, keep)| *keep || explained_flows.binary_search(&row.id).is_ok());
    rows.into_iter().map(|(row, _)| row).collect()
}
