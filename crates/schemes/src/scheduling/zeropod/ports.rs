//! Port states 𝒮: which links of the pod are idle, and the idle paths of a demand.
//!
//! An aggregation switch's ports fix everything: its link from or to a ToR is that ToR's port too, its link
//! to or from a core is the core's. So a path is two links, and a set of links is a few words of bits.

use super::{Link, Pod, demands::Waiting};
use xoff_kernel::random::Stream;

#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub agg: u16,
    pub core: Option<u16>,
    links: [Place; 2],
}

/// The word and the bit of a link.
#[derive(Clone, Copy, Debug)]
struct Place {
    word: u16,
    bit: u8,
}

/// A set of links.
///
/// One word for each rack's links up, with a bit for each aggregation switch; then for each rack's links
/// down; then for each aggregation switch's links up, with a bit for each of its cores; then for its links
/// down.
#[derive(Clone, Debug)]
pub(super) struct Links {
    words: Vec<u64>,
}

impl Links {
    pub fn all(pod: &Pod) -> Self {
        let mut words = vec![low(u32::from(pod.aggs)); 2 * usize::from(pod.racks)];
        let to_cores: Vec<u64> = (0..pod.aggs).map(|agg| low(u32::from(pod.cores_of(agg)))).collect();
        words.extend(to_cores.repeat(2));
        Self { words }
    }

    pub fn copy_from(&mut self, other: &Links) {
        self.words.copy_from_slice(&other.words);
    }

    /// Whether it has both links of a path; if so they are taken out.
    pub fn take(&mut self, path: &Path) -> bool {
        let both = path.links.iter().all(|l| self.words[usize::from(l.word)] >> l.bit & 1 == 1);
        if both {
            path.links.iter().for_each(|l| self.words[usize::from(l.word)] &= !(1 << l.bit));
        }
        both
    }

    /// Puts a link inside the pod in or out; one between a ToR and a host is none of them.
    pub fn set(&mut self, pod: &Pod, link: Link, there: bool) {
        assert!(
            match link {
                Link::HostUp { host } | Link::HostDown { host } => usize::from(host) < pod.hosts(),
                Link::RackUp { rack, agg } | Link::RackDown { agg, rack } =>
                    rack < pod.racks && agg < pod.aggs,
                Link::CoreUp { core } | Link::CoreDown { core } => core < pod.cores,
            },
            "the pod has no {link:?}"
        );
        let place = match link {
            Link::HostUp { .. } | Link::HostDown { .. } => return,
            Link::RackUp { rack, agg } => up(rack, agg),
            Link::RackDown { agg, rack } => down(pod, rack, agg),
            Link::CoreUp { core } => core_up(pod, pod.agg_of(core), pod.slot_of(core)),
            Link::CoreDown { core } => core_down(pod, pod.agg_of(core), pod.slot_of(core)),
        };
        let word = &mut self.words[usize::from(place.word)];
        *word = *word & !(1 << place.bit) | u64::from(there) << place.bit;
    }
}

/// The lowest `count` bits, at most 64.
fn low(count: u32) -> u64 {
    1u64.checked_shl(count).map_or(u64::MAX, |bit| bit - 1)
}

fn up(rack: u16, agg: u16) -> Place {
    Place { word: rack, bit: agg as u8 }
}

fn down(pod: &Pod, rack: u16, agg: u16) -> Place {
    Place { word: pod.racks + rack, bit: agg as u8 }
}

fn core_up(pod: &Pod, agg: u16, slot: u16) -> Place {
    Place { word: 2 * pod.racks + agg, bit: slot as u8 }
}

fn core_down(pod: &Pod, agg: u16, slot: u16) -> Place {
    Place { word: 2 * pod.racks + pod.aggs + agg, bit: slot as u8 }
}

/// The idle paths of one demand, as sets of bits, from which some are drawn.
#[derive(Debug)]
pub(super) struct Choice {
    pod: Pod,
    hosts: u16,
    rack: Vec<u16>,
    /// From host to host: a word with a bit for each aggregation switch. Else one for each, with bits for
    /// cores.
    words: Vec<u64>,
    left: u32,
}

impl Choice {
    pub fn new(pod: &Pod) -> Self {
        let hosts = pod.hosts() as u16;
        let rack = (0..hosts).map(|host| pod.rack_of(host)).collect();
        Self { pod: *pod, hosts, rack, words: vec![0; usize::from(pod.aggs)], left: 0 }
    }

    pub fn left(&self) -> u32 {
        self.left
    }

    /// Finds the idle paths of a demand. `open(agg)` has the cores that a demand for a pod may go to.
    pub fn find(&mut self, idle: &Links, demand: &Waiting, open: impl Fn(usize) -> u64) {
        let (pod, words) = (&self.pod, &idle.words);
        let (racks, aggs) = (usize::from(pod.racks), usize::from(pod.aggs));
        let up = |host: u16| words[usize::from(self.rack[usize::from(host)])];
        let down = |host: u16| words[racks + usize::from(self.rack[usize::from(host)])];
        if demand.sender < self.hosts && demand.target < self.hosts {
            self.words[0] = up(demand.sender) & down(demand.target);
            self.left = self.words[0].count_ones();
            return;
        }
        if demand.target >= self.hosts {
            let up = up(demand.sender);
            for agg in 0..aggs {
                let reached = (up >> agg & 1).wrapping_neg();
                self.words[agg] = reached & words[2 * racks + agg] & open(agg);
            }
        } else {
            let core = demand.sender - self.hosts;
            let agg = usize::from(pod.agg_of(core));
            let reached = (down(demand.target) >> agg & 1).wrapping_neg();
            self.words.fill(0);
            self.words[agg] = reached & words[2 * racks + aggs + agg] & 1 << pod.slot_of(core);
        }
        self.left = self.words.iter().map(|w| w.count_ones()).sum();
    }

    /// Draws one of the paths that are left, of which there must be one, each with the same chance.
    pub fn draw(&mut self, demand: &Waiting, stream: &mut Stream) -> Path {
        let pod = &self.pod;
        let mut nth = stream.below(u64::from(self.left)) as u32;
        self.left -= 1;
        let mut at = 0;
        while nth >= self.words[at].count_ones() {
            nth -= self.words[at].count_ones();
            at += 1;
        }
        let bit = nth_bit(self.words[at], nth);
        self.words[at] &= !(1 << bit);
        let first = |agg| up(self.rack[usize::from(demand.sender)], agg);
        let last = |agg| down(pod, self.rack[usize::from(demand.target)], agg);
        if demand.sender < self.hosts && demand.target < self.hosts {
            return Path { agg: bit, core: None, links: [first(bit), last(bit)] };
        }
        let agg = at as u16;
        let core = Some(pod.core_at(agg, bit));
        let links = if demand.target >= self.hosts {
            [first(agg), core_up(pod, agg, bit)]
        } else {
            [core_down(pod, agg, bit), last(agg)]
        };
        Path { agg, core, links }
    }
}

/// The position of the bit that has `nth` others below it.
fn nth_bit(mut word: u64, nth: u32) -> u16 {
    // Often all links are idle.
    if word & word.wrapping_add(1) == 0 {
        return nth as u16;
    }
    for _ in 0..nth {
        word &= word - 1;
    }
    word.trailing_zeros() as u16
}
