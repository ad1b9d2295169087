//! Adaptive routing and switching (ARS) as switches have it: the least loaded of all equal next hops, for each
//! packet, or for each *flowlet*, a burst of one flow (SAI and SONiC call these modes per-packet quality and
//! per-flowlet quality; NVIDIA's and Broadcom's switches have both).
//!
//! By flowlet, a set of equal ports has a table of so many entries; a flow has the entry of its hash, which it
//! may share with others:
//!
//! ```text
//! packet of the entry:   now - last < idle     the port of the entry
//!                        otherwise             the least loaded port, which the entry keeps
//!                        last <- now
//! ```
//!
//! Read here as follows, where vendors leave it open:
//! - a port's load is the bytes in its egress queues of all priorities, without averages or bands;
//! - of equally loaded ports a random one wins: an idle switch sprays;
//! - a pause does not make a port more loaded; the packets that wait for its end do.

mod keys;

use super::seam::{Arrival, Offer, SwitchRule};
pub use keys::AdaptiveKeys;
use xoff_kernel::random::mix;
use xoff_kernel::time::Time;
use xoff_net::human::counted;
use xoff_net::units::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveParams {
    /// Time without a packet after which a flow's next packet begins a flowlet; 0: each packet chooses.
    pub idle: Time,
    /// Entries of the table of each set of equal ports, at least 1, if flowlets are distinguished.
    pub flows: u32,
}

/// An entry of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// When its last packet came, and 1; 0: none has.
    after: Time,
    port: u16,
}

/// The entry of a flow in a table of `entries`.
fn entry(flow: u32, entries: usize) -> usize {
    (mix(u64::from(flow)) % entries as u64) as usize
}

/// The least loaded of `count` ports.
fn least(count: usize, mut draw: impl FnMut(u64) -> u64, load: impl Fn(usize) -> u64) -> usize {
    let mut best = (u64::MAX, 0, 0);
    for port in 0..count {
        let load = load(port);
        if load < best.0 {
            best = (load, port, 1);
        } else if load == best.0 {
            // Each of n equal ones with probability 1 / n.
            best.2 += 1;
            if draw(best.2) == 0 {
                best.1 = port;
            }
        }
    }
    best.1
}

/// The port of a packet of this entry's flows; `choose` finds the least loaded one.
fn follow(idle: Time, burst: &mut Burst, now: Time, choose: impl FnOnce() -> usize) -> usize {
    let goes_on = burst.after > 0 && now - (burst.after - 1) < idle;
    let port = if goes_on { usize::from(burst.port) } else { choose() };
    *burst = Burst { after: now + 1, port: port as u16 };
    port
}

impl SwitchRule for AdaptiveParams {
    const STREAM: &'static str = "adaptive routing";

    type Place = Burst;
    const EMPTY: Burst = Burst { after: 0, port: 0 };

    fn places(&self) -> usize {
        if self.idle > 0 { self.flows as usize } else { 0 }
    }

    fn choose(
        &self,
        memory: &mut [Burst],
        packet: Arrival,
        offer: Offer<'_>,
        draw: impl FnMut(u64) -> u64,
        load: impl Fn(usize) -> u64,
    ) -> usize {
        let choose = || least(offer.paths, draw, load);
        if memory.is_empty() {
            return choose();
        }
        let entry = entry(packet.flow, memory.len());
        follow(self.idle, &mut memory[entry], packet.now, choose)
    }

    fn describe(&self) -> String {
        if self.idle == 0 {
            return "to the least loaded port (adaptive)".into();
        }
        let table = counted(self.flows.into(), "flowlet");
        format!(
            "to the least loaded port after a gap of {}, else to its flowlet's (adaptive, {table} a device and set of ports)",
            Span(self.idle)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_loaded_port_wins_and_equal_ones_alike_often() {
        let mut random = xoff_kernel::random::Stream::new(7, "test", 0);
        assert_eq!(least(4, |n| random.below(n), |port| [5, 2, 9, 3][port]), 1);
        let mut counts = [0; 4];
        (0..9_000).for_each(|_| counts[least(4, |n| random.below(n), |port| [1, 0, 0, 0][port])] += 1);
        assert_eq!(counts[0], 0);
        // Five standard deviations of a share of a third.
        assert!(counts[1..].iter().all(|&c: &i32| (c - 3_000).abs() < 5 * 45), "{counts:?}");
    }

    #[test]
    fn a_burst_keeps_its_port_until_it_pauses_for_so_long() {
        let mut burst = AdaptiveParams::EMPTY;
        let mut at = |now, least| follow(10, &mut burst, now, || least);
        assert_eq!([at(0, 3), at(9, 1), at(18, 2), at(28, 2), at(37, 0)], [3, 3, 3, 2, 2]);
    }
}
