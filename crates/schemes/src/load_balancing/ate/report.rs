//! The report of asymmetric traffic engineering about a run: the traffic of hosts over each first hop.

use xoff_kernel::time::SECOND;
use xoff_net::{human, topology::NodeId};
use xoff_outcome::facts;
use xoff_outcome::report::{Facts, Gauge, Ran, Record, Section, Value};

pub static FACTS: Facts = facts! { "ate":
    threshold_bps: Rate, "p · B_H, summed over the hosts that began flows: the share of the ports to the high-bandwidth domain that own data may use. All rates are means over the run.";
    high_bps: Rate, "T_H: own data sent into the high-bandwidth domain.";
    other_bps: Rate, "T_N: own data sent into the other domain.";
    offered_bps: Rate, "D: data packets of the flows that began.";
    excess_bps: Rate, "D − p · B_H, summed over the hosts where it is above 0.";
    high_share: Share, "T_H / (T_H + T_N); null if nothing was sent.";
    hosts: List, "Each host that began flows: `host`, `threshold_bps`, `high_bps`, `other_bps`, `offered_bps`, `weight` (w_H at the end, 0 to 1), and `high_flows` and `other_flows`: the flows with a choice that it sent into the high-bandwidth domain and into the other.";
};

// A host's own data into the high-bandwidth domain and into the other, over the interval, and the probability
// of the former.
pub static HIGH: Gauge = Gauge { name: "ate_high", unit: "bit/s" };
pub static OTHER: Gauge = Gauge { name: "ate_other", unit: "bit/s" };
pub static WEIGHT: Gauge = Gauge { name: "ate_weight", unit: "ppm" };

#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub p: f64,
    pub sources: Vec<Source>,
}

/// A host that chooses the first hop of its flows, and its traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Source {
    pub node: NodeId,
    /// The probability of the high-bandwidth domain at the end, 0 to 1.
    pub weight: f64,
    /// Bytes of its own data packets that it sent into the two domains, repeats included.
    pub high_bytes: u64,
    pub other_bytes: u64,
    /// Bytes of the data packets of all its flows that began.
    pub offered_bytes: u64,
    /// Flows with a choice that it sent into the high-bandwidth domain, and into the other.
    pub chosen: [u64; 2],
}

impl Record for Report {
    fn add(&mut self, other: Self) {
        self.sources.extend(other.sources);
    }

    fn sort(&mut self) {
        self.sources.sort_by_key(|s| s.node);
    }

    fn section(&self, ran: &Ran<'_>) -> Section {
        let rate = |bytes: u64| match ran.outcome.end {
            0 => 0.0,
            span => bytes as f64 * 8.0 * SECOND as f64 / span as f64,
        };
        let threshold = |s: &Source| {
            let port = ran.topology.nodes[s.node as usize].ports[0];
            self.p * ran.topology.ports[port as usize].rate as f64
        };
        let hosts: Vec<&Source> = self.sources.iter().filter(|s| s.offered_bytes > 0).collect();
        let sum = |get: &dyn Fn(&Source) -> f64| hosts.iter().map(|s| get(s)).sum::<f64>();
        let (high, other) = (sum(&|s| rate(s.high_bytes)), sum(&|s| rate(s.other_bytes)));
        let allowed = sum(&threshold);
        let share = (high + other > 0.0).then(|| high / (high + other));
        let row = |s: &&Source| {
            vec![
                ("host", Value::from(ran.topology.nodes[s.node as usize].name.as_str())),
                ("threshold_bps", threshold(s).into()),
                ("high_bps", rate(s.high_bytes).into()),
                ("other_bps", rate(s.other_bytes).into()),
                ("offered_bps", rate(s.offered_bytes).into()),
                ("weight", s.weight.into()),
                ("high_flows", s.chosen[0].into()),
                ("other_flows", s.chosen[1].into()),
            ]
            .into()
        };
        let percent = |share: f64| format!("{:.1}%", 100.0 * share);
        let weights = || hosts.iter().map(|s| s.weight);
        let (least, most) = (weights().fold(1.0, f64::min), weights().fold(0.0, f64::max));
        let text = match share {
            None => "no data was sent".into(),
            Some(share) => format!(
                "{} of own data sent first into the high-bandwidth domain: {} ({} of the allowed rate), weights {} at the end",
                percent(share),
                human::rate(high),
                percent(high / allowed),
                if least == most {
                    human::ratio(least)
                } else {
                    format!("{} to {}", human::ratio(least), human::ratio(most))
                },
            ),
        };
        let values = vec![
            allowed.into(),
            high.into(),
            other.into(),
            sum(&|s| rate(s.offered_bytes)).into(),
            sum(&|s| (rate(s.offered_bytes) - threshold(s)).max(0.0)).into(),
            share.into(),
            hosts.iter().map(row).collect::<Vec<Value>>().into(),
        ];
        Section::new(&FACTS, values).row("first hop", text)
    }
}
