//! Asymmetric traffic engineering in numbers: what hosts sent over which first hop.

use serde::Serialize;

use crate::human;
use crate::names;
use crate::statistics::bits_per_second;
use xoff_plan::plan::Plan;
use xoff_sim::outcome::{AteSource, Outcome};

/// The hosts that began flows, and their sums. Rates are means over the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AteSummary {
    /// p · B_H: what own data may use of the ports to the high-bandwidth domain.
    pub threshold_bps: f64,
    /// T_H: own data sent into the high-bandwidth domain.
    pub high_bps: f64,
    /// T_N: own data sent into the other one.
    pub other_bps: f64,
    /// D: data packets of the flows that began.
    pub offered_bps: f64,
    /// D − p · B_H of each host where that is above 0.
    pub excess_bps: f64,
    /// T_H / (T_H + T_N); null if nothing was sent.
    pub high_share: Option<f64>,
    /// Each of them.
    pub hosts: Vec<AteHost>,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AteHost {
    /// Its name.
    pub host: String,
    /// p · B_H.
    pub threshold_bps: f64,
    /// T_H.
    pub high_bps: f64,
    /// T_N.
    pub other_bps: f64,
    /// D.
    pub offered_bps: f64,
    /// w_H at the end, 0 to 1.
    pub weight: f64,
    /// Flows with a choice that it sent into the high-bandwidth domain …
    pub high_flows: u64,
    /// … and into the other one.
    pub other_flows: u64,
}

/// Sums up the choices of a run, if there were any to make.
pub fn summarise(plan: &Plan, outcome: &Outcome) -> Option<AteSummary> {
    let (ate, told) = (plan.ate.as_ref()?, outcome.ate.as_ref()?);
    let rate = |bytes: u64| bits_per_second(bytes, outcome.end);
    let host = |s: &AteSource| {
        let port = plan.topology.nodes[s.node as usize].ports[0];
        AteHost {
            host: names::node(plan, s.node).into(),
            threshold_bps: ate.params.p * plan.topology.ports[port as usize].rate as f64,
            high_bps: rate(s.high_bytes),
            other_bps: rate(s.other_bytes),
            offered_bps: rate(s.offered_bytes),
            weight: s.weight,
            high_flows: s.chosen[0],
            other_flows: s.chosen[1],
        }
    };
    let hosts: Vec<AteHost> = told.sources.iter().filter(|s| s.offered_bytes > 0).map(host).collect();
    let sum = |get: &dyn Fn(&AteHost) -> f64| hosts.iter().map(get).sum::<f64>();
    let (high_bps, other_bps) = (sum(&|h| h.high_bps), sum(&|h| h.other_bps));
    Some(AteSummary {
        threshold_bps: sum(&|h| h.threshold_bps),
        high_bps,
        other_bps,
        offered_bps: sum(&|h| h.offered_bps),
        excess_bps: sum(&|h| (h.offered_bps - h.threshold_bps).max(0.0)),
        high_share: (high_bps + other_bps > 0.0).then(|| high_bps / (high_bps + other_bps)),
        hosts,
    })
}

/// The row of the answer's totals.
pub fn row(ate: &AteSummary) -> String {
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let weights = || ate.hosts.iter().map(|h| h.weight);
    let (least, most) = (weights().fold(1.0, f64::min), weights().fold(0.0, f64::max));
    let Some(share) = ate.high_share else { return "nothing was sent".into() };
    format!(
        "{} of own data over the high-bandwidth domain first: {} ({} of what is allowed), weights {} at the end",
        percent(share),
        human::rate(ate.high_bps),
        percent(ate.high_bps / ate.threshold_bps),
        if least == most {
            human::ratio(least)
        } else {
            format!("{} to {}", human::ratio(least), human::ratio(most))
        },
    )
}
