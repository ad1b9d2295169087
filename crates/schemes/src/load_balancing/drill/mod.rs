//! DRILL(d, m): a switch looks at a few queues for each packet (Ghorbani et al., SIGCOMM 2017).
//!
//! Of the N egress ports that lead to a packet's destination equally well, the switch draws d at random and
//! adds the m stored ones. The packet goes to the shortest of these queues, and the m shortest are stored for
//! the next. With m = 0 it is the power of d choices; with d = N it is join-the-shortest-queue.
//!
//! Read here as follows, where the paper leaves it open or speaks of hardware:
//! - a switch has one forwarding engine, so the next packet sees the queue with the previous one;
//! - the memory is kept for each set of equal ports of the switch (the paper's groups of a symmetric network;
//!   its symmetric components of an asymmetric one are not made: all shortest paths are one set);
//! - the d samples are drawn with replacement;
//! - a queue's length is in bytes;
//! - of queues of one length a sample drawn earlier wins, and samples win against stored ports: an idle
//!   switch sprays, instead of staying with one port;
//! - the memory begins empty.

mod keys;

use super::seam::{Arrival, Offer, SwitchRule};
pub use keys::DrillKeys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillParams {
    /// d: ports drawn for each packet, 1 to 16.
    pub samples: u32,
    /// m: ports remembered, at most 16.
    pub memory: u32,
}

const MOST_SAMPLES: u32 = 16;
const MOST_MEMORY: u32 = 16;

/// A place in the memory that holds no port yet.
const EMPTY: u16 = u16::MAX;

impl SwitchRule for DrillParams {
    const STREAM: &'static str = "DRILL";

    /// A stored port.
    type Place = u16;
    const EMPTY: u16 = EMPTY;

    fn places(&self) -> usize {
        self.memory as usize
    }

    fn choose(
        &self,
        memory: &mut [u16],
        _: Arrival,
        offer: Offer<'_>,
        mut draw: impl FnMut(u64) -> u64,
        load: impl Fn(usize) -> u64,
    ) -> usize {
        const MOST: usize = (MOST_SAMPLES + MOST_MEMORY) as usize;
        let mut seen = [(0u64, 0u16); MOST];
        let mut length = 0;
        let mut look = |port: u16| {
            if !seen[..length].iter().any(|&(_, known)| known == port) {
                seen[length] = (load(usize::from(port)), port);
                length += 1;
            }
        };
        (0..self.samples).for_each(|_| look(draw(offer.paths as u64) as u16));
        memory.iter().filter(|&&port| port != EMPTY).for_each(|&port| look(port));
        // Stable: of one length, in the order in which they were looked at.
        seen[..length].sort_by_key(|&(load, _)| load);
        for (place, &(_, port)) in memory.iter_mut().zip(&seen[..length]) {
            *place = port;
        }
        usize::from(seen[0].1)
    }

    fn describe(&self) -> String {
        format!("by queue length (drill, d = {}, m = {})", self.samples, self.memory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of four ports with these loads, where these numbers are drawn.
    fn choose(drill: &DrillParams, memory: &mut [u16], draws: &[u64], loads: [u64; 4]) -> usize {
        let mut draws = draws.iter().copied();
        let draw = |below| draws.next().filter(|&n| n < below).expect("no more draws");
        let offer = Offer { paths: 4, minimal: 4, links: &[] };
        drill.choose(memory, Arrival { flow: 0, now: 0 }, offer, draw, |port| loads[port])
    }

    #[test]
    fn the_shortest_of_samples_and_memory_wins_and_is_remembered() {
        let drill = DrillParams { samples: 2, memory: 1 };
        let mut memory = [EMPTY];
        let mut choose = |draws: &[u64]| choose(&drill, &mut memory, draws, [50, 20, 30, 10]);
        assert_eq!(choose(&[0, 2]), 2);
        // Port 2 is remembered, and shorter than both samples.
        assert_eq!(choose(&[0, 0]), 2);
        assert_eq!(choose(&[1, 0]), 1);
        assert_eq!(choose(&[3, 2]), 3);
        assert_eq!(choose(&[1, 2]), 3);
        assert_eq!(memory, [3]);
    }

    #[test]
    fn of_equal_queues_the_first_sample_wins() {
        let drill = DrillParams { samples: 2, memory: 2 };
        let mut memory = [EMPTY; 2];
        for (draws, chosen) in [([3, 1], 3), ([2, 0], 2), ([1, 1], 1)] {
            assert_eq!(choose(&drill, &mut memory, &draws, [7; 4]), chosen);
        }
        // The last samples were 1 and 1; the next best was remembered before.
        assert_eq!(memory, [1, 2]);
    }

    #[test]
    fn two_places_remember_the_two_shortest() {
        let drill = DrillParams { samples: 1, memory: 2 };
        let mut memory = [EMPTY; 2];
        for draw in [0, 3, 1, 2] {
            choose(&drill, &mut memory, &[draw], [40, 30, 20, 10]);
        }
        assert_eq!(memory, [3, 2]);
    }
}
