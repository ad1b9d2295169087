//! Bursts: every sender has several flows, each for a random receiver.

use super::{Demand, Pairs, Streams, check_count, nonzero, other, position, positions};
use crate::error::SpecError;
use crate::sizes::SizeDistribution;
use crate::topology::NodeId;
use xoff_kernel::time::Time;

/// Several flows of every sender, one after the other or all at once.
#[derive(Clone, Copy, Debug)]
pub struct Burst<'a> {
    pub sources: &'a [NodeId],
    /// Receivers; each flow draws one uniformly among those that are not its sender.
    pub destinations: &'a [NodeId],
    /// Flows of each sender, at least 1.
    pub flows: u32,
    pub sizes: &'a SizeDistribution,
    /// When the first flow of each sender starts.
    pub start: Time,
    /// From one flow of a sender to its next; 0 is all at once.
    pub gap: Time,
}

pub(super) const AFTER_THE_END: &str = "the last flow would start after the end of the simulator's clock";

/// Draws the flows of a burst, in the order of time; those of one time in the order of the senders.
pub fn burst(spec: &Burst<'_>, seed: u64, element: u64) -> Result<Vec<Demand>, SpecError> {
    Pairs::uniform(spec.sources, spec.destinations)?;
    nonzero("flows", spec.flows)?;
    let count = u64::from(spec.flows).saturating_mul(spec.sources.len() as u64);
    check_count("flows", count as f64)?;
    let last = u64::from(spec.flows - 1).checked_mul(spec.gap).and_then(|gaps| gaps.checked_add(spec.start));
    if last.is_none() {
        return Err(SpecError::new("gap", AFTER_THE_END, "write a shorter time"));
    }
    let places = positions("destinations", spec.destinations)?;
    let mut streams = Streams::new(seed, element);
    let mut demands = Vec::with_capacity(count as usize);
    for turn in 0..u64::from(spec.flows) {
        for &src in spec.sources {
            let dst = other(spec.destinations, position(&places, src), &mut streams.endpoints);
            let size = spec.sizes.sample(&mut streams.sizes);
            demands.push(Demand { src, dst, size, start: spec.start + turn * spec.gap });
        }
    }
    Ok(demands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sender_sends_so_many_flows_in_turn() {
        let sizes = SizeDistribution::Fixed(64_000);
        let spec = Burst {
            sources: &[3, 1, 2],
            destinations: &[1, 7, 8],
            flows: 40,
            sizes: &sizes,
            start: 1_000,
            gap: 50,
        };
        let flows = burst(&spec, 1, 0).unwrap();
        assert_eq!(flows.len(), 120);
        for (i, flow) in flows.iter().enumerate() {
            assert_eq!(flow.src, [3, 1, 2][i % 3]);
            assert_eq!((flow.start, flow.size), (1_000 + 50 * (i as u64 / 3), 64_000));
            assert!(flow.dst != flow.src && spec.destinations.contains(&flow.dst));
        }
        // Each receiver gets its part: of the 80 flows of 2 and 3 a third for
        // each, of the 40 flows of 1 half for 7 and for 8.
        let to = |dst: NodeId| flows.iter().filter(|f| f.dst == dst).count();
        assert!((15..40).contains(&to(1)) && (30..65).contains(&to(7)), "{} {}", to(1), to(7));
        assert_eq!(to(1) + to(7) + to(8), 120);
        assert_eq!(flows, burst(&spec, 1, 0).unwrap());
        assert_ne!(flows, burst(&spec, 2, 0).unwrap());
    }

    #[test]
    fn invalid_bursts_are_refused() {
        let sizes = SizeDistribution::Fixed(1);
        let spec = Burst { sources: &[1, 2], destinations: &[3], flows: 1, sizes: &sizes, start: 0, gap: 0 };
        let key = |spec: &Burst<'_>| burst(spec, 1, 0).unwrap_err().key;
        assert_eq!(key(&Burst { flows: 0, ..spec }), "flows");
        assert_eq!(key(&Burst { flows: u32::MAX, ..spec }), "flows");
        assert_eq!(key(&Burst { flows: 3, gap: Time::MAX / 2 + 1, ..spec }), "gap");
        assert_eq!(key(&Burst { destinations: &[1], ..spec }), "destinations");
        assert_eq!(key(&Burst { sources: &[], ..spec }), "sources");
    }
}
