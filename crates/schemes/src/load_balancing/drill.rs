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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrillParams {
    /// d: ports drawn for each packet, at least 1.
    pub samples: u32,
    /// m: ports remembered, at most [`MOST_MEMORY`].
    pub memory: u32,
}

pub const MOST_SAMPLES: u32 = 16;
pub const MOST_MEMORY: u32 = 16;

/// A place in the memory that holds no port yet.
pub const EMPTY: u16 = u16::MAX;

/// Chooses one of `count` ports, at least 1 and at most 2^16 − 1, and updates `memory`, which has m places.
/// `draw(n)` is a uniform number below n; `load` is the length of a port's queue.
pub fn choose(
    params: &DrillParams,
    memory: &mut [u16],
    count: usize,
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
    (0..params.samples).for_each(|_| look(draw(count as u64) as u16));
    memory.iter().filter(|&&port| port != EMPTY).for_each(|&port| look(port));
    // Stable: of one length, in the order in which they were looked at.
    seen[..length].sort_by_key(|&(load, _)| load);
    for (place, &(_, port)) in memory.iter_mut().zip(&seen[..length]) {
        *place = port;
    }
    usize::from(seen[0].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws these numbers.
    fn drawing(numbers: &[u64]) -> impl FnMut(u64) -> u64 {
        let mut numbers = numbers.iter().copied();
        move |below| numbers.next().filter(|&n| n < below).expect("no more draws")
    }

    #[test]
    fn the_shortest_of_samples_and_memory_wins_and_is_remembered() {
        let drill = DrillParams { samples: 2, memory: 1 };
        let mut memory = [EMPTY];
        let loads = [50, 20, 30, 10];
        let mut choose = |draws: &[u64]| choose(&drill, &mut memory, 4, drawing(draws), |port| loads[port]);
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
            assert_eq!(choose(&drill, &mut memory, 4, drawing(&draws), |_| 7), chosen);
        }
        // The last samples were 1 and 1; the next best was remembered before.
        assert_eq!(memory, [1, 2]);
    }

    #[test]
    fn two_places_remember_the_two_shortest() {
        let drill = DrillParams { samples: 1, memory: 2 };
        let mut memory = [EMPTY; 2];
        let loads = [40, 30, 20, 10];
        for draw in [0, 3, 1, 2] {
            choose(&drill, &mut memory, 4, drawing(&[draw]), |port| loads[port]);
        }
        assert_eq!(memory, [3, 2]);
    }
}
