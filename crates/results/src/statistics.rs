//! Exact statistics over flows: no histogram, no interpolation.

use serde::Serialize;
use xoff_kernel::time::{SECOND, Time};
use xoff_outcome::{FlowOutcome, Outcome};
use xoff_plan::plan::{Flow, Plan};

/// Upper ends of the flow-size buckets in payload bytes, inclusive; one more bucket holds larger flows.
pub const SIZE_BOUNDS: [u64; 3] = [30_000, 100_000, 1_000_000];
/// Names of the flow-size buckets, in the order of size.
pub const SIZE_NAMES: [&str; 4] = ["<= 30 kB", "<= 100 kB", "<= 1 MB", "> 1 MB"];
/// Name of the row over every flow.
pub const ALL: &str = "all";

/// Mean and quantiles of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub p999: f64,
}

/// A group of flows: a size bucket, a traffic class, or all.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    pub name: String,
    pub flows: u64,
    /// Those of them that completed.
    pub finished: u64,
    /// Those whose sender gave up.
    pub failed: u64,
    /// FCT over ideal FCT of the finished ones; absent if none finished.
    pub slowdown: Option<Quantiles>,
    /// Payload delivered in order, of finished and unfinished flows, over the whole simulated time.
    pub goodput_bps: f64,
    /// Mean over the finished flows of size / FCT.
    pub flow_rate_bps: Option<f64>,
    pub retransmitted: u64,
    /// Data packets that arrived though they had arrived before.
    pub spurious: u64,
    pub dropped: u64,
}

/// The quantile at `per_mille` / 1000 (1 to 1000) of `sorted` by nearest rank: the smallest value such that at
/// least that share of the sample is not above it. `None` if the sample is empty.
pub fn nearest_rank<T: Copy>(sorted: &[T], per_mille: usize) -> Option<T> {
    assert!((1..=1000).contains(&per_mille), "a quantile lies within the sample");
    let rank = (sorted.len() * per_mille).div_ceil(1000);
    (rank > 0).then(|| sorted[rank - 1])
}

/// Mean and quantiles of a sample, or `None` if it is empty.
pub fn quantiles(mut sample: Vec<f64>) -> Option<Quantiles> {
    sample.sort_unstable_by(f64::total_cmp);
    // Summed in sorted order, so that the mean does not depend on the order of flows.
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    Some(Quantiles {
        mean,
        p50: nearest_rank(&sample, 500)?,
        p95: nearest_rank(&sample, 950)?,
        p99: nearest_rank(&sample, 990)?,
        p999: nearest_rank(&sample, 999)?,
    })
}

/// Flow completion time in picoseconds: from the flow's start to the last ACK at the sender.
pub fn fct(outcome: &FlowOutcome) -> Option<Time> {
    Some(outcome.completed? - outcome.started?)
}

/// FCT over the ideal FCT of the flow.
pub fn slowdown(flow: &Flow, outcome: &FlowOutcome) -> Option<f64> {
    fct(outcome).map(|t| t as f64 / flow.ideal as f64)
}

/// Bits per second of `bytes` over `span` picoseconds; 0 for an empty span.
pub fn bits_per_second(bytes: u64, span: Time) -> f64 {
    if span == 0 { 0.0 } else { bytes as f64 * 8.0 * SECOND as f64 / span as f64 }
}

/// Index into [`SIZE_NAMES`] of a flow of `size` bytes.
pub fn size_bucket(size: u64) -> usize {
    SIZE_BOUNDS.partition_point(|&bound| size > bound)
}

/// One group per size bucket, then one over all flows.
pub fn by_size(plan: &Plan, outcome: &Outcome) -> Vec<Group> {
    let mut groups = grouped(plan, outcome, &SIZE_NAMES, |f| size_bucket(f.size));
    groups.extend(grouped(plan, outcome, &[ALL], |_| 0));
    groups
}

/// One group per traffic class, in the order of the plan.
pub fn by_class(plan: &Plan, outcome: &Outcome) -> Vec<Group> {
    grouped(plan, outcome, &plan.classes, |f| usize::from(f.class))
}

/// Whether a flow started within the simulated time. Flows after a gate that never opened did not, nor the
/// flows that an interrupted run leaves out.
pub fn started(outcome: &FlowOutcome) -> bool {
    outcome.started.is_some()
}

fn grouped<N: AsRef<str>>(
    plan: &Plan,
    outcome: &Outcome,
    names: &[N],
    group: impl Fn(&Flow) -> usize,
) -> Vec<Group> {
    // Each group with its delivered bytes, and slowdowns and rates of its finished flows.
    let row =
        |name: &N| (Group { name: name.as_ref().into(), ..Group::default() }, 0, Vec::new(), Vec::new());
    let mut rows: Vec<(Group, u64, Vec<f64>, Vec<f64>)> = names.iter().map(row).collect();
    for (flow, result) in plan.flows.iter().zip(&outcome.flows) {
        if !started(result) {
            continue;
        }
        let (row, delivered, slowdowns, rates) = &mut rows[group(flow)];
        row.flows += 1;
        row.failed += u64::from(result.failed.is_some());
        row.retransmitted += result.retransmitted;
        row.spurious += result.spurious;
        row.dropped += result.dropped;
        *delivered += result.delivered_bytes;
        if let (Some(time), Some(slow)) = (fct(result), slowdown(flow, result)) {
            row.finished += 1;
            slowdowns.push(slow);
            rates.push(bits_per_second(flow.size, time));
        }
    }
    rows.into_iter()
        .map(|(row, delivered, slowdowns, rates)| Group {
            slowdown: quantiles(slowdowns),
            goodput_bps: bits_per_second(delivered, outcome.end),
            flow_rate_bps: quantiles(rates).map(|q| q.mean),
            ..row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition itself, by counting.
    fn by_definition(sorted: &[f64], per_mille: usize) -> f64 {
        *sorted
            .iter()
            .find(|&&x| {
                let not_above = sorted.iter().filter(|&&y| y <= x).count();
                not_above * 1000 >= per_mille * sorted.len()
            })
            .expect("the largest value covers the whole sample")
    }

    #[test]
    fn quantiles_follow_the_definition() {
        let mut stream = xoff_kernel::random::Stream::new(1, "test", 0);
        for n in 1..60 {
            let mut sample: Vec<f64> = (0..n).map(|_| stream.below(20) as f64).collect();
            sample.sort_unstable_by(f64::total_cmp);
            for q in [1, 10, 500, 950, 990, 999, 1000] {
                assert_eq!(nearest_rank(&sample, q), Some(by_definition(&sample, q)), "{n} {q}");
            }
        }
        assert_eq!(nearest_rank::<f64>(&[], 500), None);
        assert_eq!(quantiles(Vec::new()), None);
    }

    #[test]
    fn a_thousand_values_put_p999_at_the_last_but_one() {
        let q = quantiles((1..=1000).rev().map(f64::from).collect()).unwrap();
        assert_eq!(q, Quantiles { mean: 500.5, p50: 500.0, p95: 950.0, p99: 990.0, p999: 999.0 });
    }

    #[test]
    fn a_bucket_includes_its_upper_end() {
        let sizes = [1, 30_000, 30_001, 100_000, 100_001, 1_000_000, 1_000_001];
        assert_eq!(sizes.map(size_bucket), [0, 0, 1, 1, 2, 2, 3]);
    }
}
