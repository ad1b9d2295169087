//! Zeropod's scheduler: which hosts of a pod send in an epoch, to whom, and by which path (*Zeropod:
//! Simplifying Datacenter Networking with Future-Proof Zero-Buffer Packet Switches*, §IV-A and Algorithm 1).
//!
//! The switches of a pod have no buffer, so no two cells may meet in it. One [`Scheduler`] for each pod
//! decides for all senders in it. It knows only the content of the requests to send (RTS). Its demands 𝒟 are
//! three traffic matrices of bytes: E2E from host to host of the pod, E2P from host to another pod (up to a
//! core that keeps them), C2E from core to host. An RTS adds to them; a grant subtracts at once.
//!
//! Once in an epoch [`Scheduler::schedule`] runs Algorithm 1 over 𝒟 and the port states 𝒮: up
//! to I iterations of four phases.
//!
//! 1. *Request*. Each demand that is not granted yet asks for an idle path, drawn at random: E2E for an
//!    aggregation switch whose links to both racks are idle, E2P for a core that has not signalled
//!    backpressure for that pod and the idle links to it, C2E for the one path that leads down from its core.
//! 2. *Grant 1*. Each aggregation switch gives its idle links to the demands that requested them.
//! 3. *Grant 2*. Of the paths of a sender one is kept.
//! 4. *Accept*. Of the paths to a receiver one is accepted. Links of all others are idle again in the next
//!    iteration.
//!
//! It has no clock: how long the phases take (§V-A: 15 us for 256 hosts) is a delay of its grants, which the
//! caller adds; granted bytes are no demand of the next epoch. In a pipeline of processors the next epochs
//! begin before that is known. The paper subtracts "when an SCHD is given" (§IV-A.1); with
//! [`Subtract::WithSchd`] the caller does so when the SCHD leaves, and the same data is granted repeatedly.
//!
//! The paper leaves open, and here is taken:
//! - *Who comes first* (`zeropod.allocate-policy`). In every phase the demand with the smallest advertised
//!   mice size; then, of the others, the smallest aggregated size, which also separates equal mice sizes;
//!   among equal ones any, drawn anew in each epoch ([`Params::order`] has other orders). §IV-B.1 has the
//!   mice size in the *place* of the aggregated size: the demands of cores, which are always small, would
//!   then come before mice of 50 kB, and with 16 cores in the place of 6 the p99 of flows up to 100 kB
//!   doubled. Of all demands that have a path, the first one is always granted.
//! - *Mice sizes* are those of the sender's last list (§IV-B.1: its top k destinations), less the bytes
//!   granted since, because hosts send mice first; never more than the aggregated size.
//! - *Aggregation switches* go through their requests in that order, and grant those with two idle links.
//! - *Requests* (`zeropod.request-multiplicity`). One path for each demand and iteration, as the text has it;
//!   [`Params::requests`] sets how many. The pseudocode asks for all.
//! - *Port states* (`zeropod.port-state`). 𝒮 are the links at aggregation switches, which are those of ToRs
//!   and cores as well. A link is given to one demand at most, so releasing a refused path frees no link that
//!   is kept. A host is marked when a grant is accepted: it sends and receives one thing only.
//! - *Matched hosts* (`zeropod.rejected-within-iteration`). One demand for each sender and each receiver;
//!   their others take no part in later iterations. A core is a sender (C2E) and, for its link up, a receiver
//!   (E2P).
//! - *Small demands* (`zeropod.partial-epochs`). A grant is of min(N, what is left) cells; the last may be
//!   partly full. The path is taken for the epoch.
//! - *Cores for mice* (`zeropod.exclusive-core`). The last cores of [`Params::mice_cores`] take demands with
//!   mice only, and of those the cells that hold mice. Mice take any core ([`Params::mice_over`] has others).
//! - *Wiring* (`zeropod.core-wiring`). Core c is linked to aggregation switch c mod A.
//! - *E2P* demands (`zeropod.e2p-demand`) are for a pod; which hosts in it the cells are for is their
//!   sender's matter. A core that cannot reach a pod reports backpressure for it.
//! - *Racks* (`zeropod.epoch-alignment`). What stays in a rack goes by an aggregation switch, too.
//!
//! Smallest first is not fair: new mice delay a host's other data. Without new mice every epoch serves the
//! smallest remaining demand, so each demand with a path is served in the end.

mod demands;
pub mod describe;
pub mod frame;
pub mod keys;
pub mod model;
pub mod params;
mod ports;
pub mod report;
pub mod resolve;
pub mod slots;
#[cfg(test)]
mod tests;

use demands::{Demands, Waiting};
use ports::{Choice, Links, Path};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_kernel::random::Stream;

/// A pod, and the cores that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod {
    /// At least 1, and so are the hosts of each. Those of one rack follow each other.
    pub racks: u16,
    pub hosts_per_rack: u16,
    /// A: aggregation switches, each linked to all ToRs; 1 to 64.
    pub aggs: u16,
    /// Core switches, each linked to one aggregation switch; at most 64 for each of those.
    pub cores: u16,
    /// Pods of the network, this one included.
    pub pods: u16,
}

impl Pod {
    pub fn hosts(&self) -> usize {
        usize::from(self.racks) * usize::from(self.hosts_per_rack)
    }

    pub fn rack_of(&self, host: u16) -> u16 {
        host / self.hosts_per_rack
    }

    /// The aggregation switch of a core, in every pod.
    pub fn agg_of(&self, core: u16) -> u16 {
        core % self.aggs
    }

    /// Which of its aggregation switch's cores a core is.
    fn slot_of(&self, core: u16) -> u16 {
        core / self.aggs
    }

    fn core_at(&self, agg: u16, slot: u16) -> u16 {
        slot * self.aggs + agg
    }

    fn cores_of(&self, agg: u16) -> u16 {
        (self.cores + self.aggs - 1 - agg) / self.aggs
    }

    fn senders(&self) -> usize {
        self.hosts() + usize::from(self.cores)
    }

    fn targets(&self) -> usize {
        self.hosts() + usize::from(self.pods)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// N: data cells in an epoch, at least 1. The paper has 16 in one pod, 32 in eight (§V-A).
    pub cells: u32,
    /// Payload of a cell in bytes, at least 1; 512 in the paper.
    pub payload: u32,
    /// I: at least 1; 6 in the paper.
    pub iterations: u32,
    /// Paths that a demand asks for in an iteration, at least 1; if fewer are idle, all of them.
    pub requests: u32,
    pub mice_cores: u16,
    pub mice_over: MiceCores,
    pub order: Order,
    pub subtract: Subtract,
}

/// The order in which the scheduler considers demands without mice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The smallest, as in the paper.
    #[default]
    Smallest,
    /// The largest.
    Largest,
    /// A random demand, drawn again in each epoch.
    Random,
}

/// The time at which a grant is subtracted from the demands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Subtract {
    /// When it is granted: the next epoch knows of it.
    #[default]
    AtOnce,
    /// When its SCHD leaves, after `delay`. Epochs until then may grant the same data again.
    WithSchd,
}

/// The cores that a demand with mice for another pod may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MiceCores {
    /// All cores, with equal chances.
    #[default]
    Any,
    /// The cores for mice; others only if none of them is idle.
    ExclusiveFirst,
    /// Only the cores for mice.
    ExclusiveOnly,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sender {
    /// A host of the pod.
    Host(u16),
    Core(u16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A host of the pod.
    Host(u16),
    Pod(u16),
}

/// An entry of a traffic matrix. A host sends neither to itself nor to its own pod, a core only to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Demand {
    pub from: Sender,
    pub to: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    // Between a host and its ToR, a ToR and an aggregation switch, an aggregation switch and a core.
    HostUp { host: u16 },
    HostDown { host: u16 },
    RackUp { rack: u16, agg: u16 },
    RackDown { agg: u16, rack: u16 },
    CoreUp { core: u16 },
    CoreDown { core: u16 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    pub demand: Demand,
    /// The aggregation switch of its path.
    pub agg: u16,
    /// The core at the end (E2P) or the beginning (C2E) of its path.
    pub core: Option<u16>,
    /// How many cells, 1 to N.
    pub cells: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Iterations in which a demand requested a path.
    pub iterations: u64,
    /// Requested paths, and what Grant 1, Grant 2 and Accept left of them.
    pub requests: u64,
    pub granted: u64,
    pub approved: u64,
    pub accepted: u64,
}

#[derive(Debug)]
pub struct Scheduler {
    pod: Pod,
    params: Params,
    demands: Demands,
    /// Links that are not down.
    links: Links,
    /// Senders and targets whose own links are not down; pods and cores always.
    senders: Vec<bool>,
    targets: Vec<bool>,
    /// Cores that take more for a pod, for each pod and aggregation switch a word.
    open: Vec<u64>,
    /// Cores that are not only for mice, for each aggregation switch a word.
    bulk: Vec<u64>,
    tally: Tally,

    // What follows lives for an epoch or less, and is kept for its room.
    /// Demands that may still be granted.
    left: Vec<Waiting>,
    /// Links that are idle when an iteration begins, and those that Grant 1 has left.
    idle: Links,
    free: Links,
    /// Senders and targets that nothing was accepted for.
    unmatched_senders: Vec<bool>,
    unmatched_targets: Vec<bool>,
    /// Senders that have a path in this iteration.
    chosen: Vec<bool>,
    choice: Choice,
    /// The paths of Req, then G1, then G2, then the accepted ones.
    paths: Vec<(Waiting, Path)>,
    grants: Vec<Grant>,
}

impl Scheduler {
    /// Panics if a number is outside the range that its documentation gives.
    pub fn new(pod: Pod, params: Params) -> Self {
        assert!(pod.racks >= 1 && pod.hosts_per_rack >= 1 && (1..=64).contains(&pod.aggs));
        assert!(usize::from(pod.cores) <= 64 * usize::from(pod.aggs) && params.mice_cores <= pod.cores);
        assert!(pod.senders().max(pod.targets()) < usize::from(u16::MAX));
        assert!(params.cells >= 1 && params.payload >= 1 && params.iterations >= 1 && params.requests >= 1);
        let links = Links::all(&pod);
        let pairs = pod.senders() * pod.targets();
        let mut bulk = vec![0; usize::from(pod.aggs)];
        for core in 0..pod.cores - params.mice_cores {
            bulk[usize::from(pod.agg_of(core))] |= 1 << pod.slot_of(core);
        }
        Self {
            demands: Demands::new(&pod, params.order),
            senders: vec![true; pod.senders()],
            targets: vec![true; pod.targets()],
            open: vec![u64::MAX; usize::from(pod.pods) * usize::from(pod.aggs)],
            bulk,
            tally: Tally::default(),
            left: Vec::with_capacity(pairs),
            idle: links.clone(),
            free: links.clone(),
            unmatched_senders: vec![true; pod.senders()],
            unmatched_targets: vec![true; pod.targets()],
            chosen: vec![false; pod.senders()],
            choice: Choice::new(&pod),
            paths: Vec::with_capacity(pairs),
            grants: Vec::with_capacity(pod.senders()),
            links,
            pod,
            params,
        }
    }

    /// An RTS reports newly arrived bytes. Panics if the pod has no such demand, as the next ones do.
    pub fn add(&mut self, demand: Demand, bytes: u64) {
        let (row, column) = self.place(demand);
        self.demands.add(row, column, bytes);
    }

    /// Subtracts a grant whose SCHD leaves ([`Subtract::WithSchd`]), or the rest of a demand that is smaller
    /// by now. Returns the bytes.
    pub fn subtract(&mut self, demand: Demand, bytes: u64) -> u64 {
        let (row, column) = self.place(demand);
        let bytes = bytes.min(self.demands.bytes(row, column));
        self.demands.subtract(row, column, bytes);
        bytes
    }

    /// An RTS names the targets for which its sender has mice, and their bytes, in place of the list before.
    pub fn advertise(&mut self, from: Sender, mice: &[(Target, u64)]) {
        let row = self.demands.row(from);
        for &(to, _) in mice {
            self.place(Demand { from, to });
        }
        self.demands.advertise(row, mice);
    }

    /// An RTS reports whether a core needs a stop of the data for a pod.
    pub fn set_backpressure(&mut self, core: u16, pod: u16, on: bool) {
        assert!(core < self.pod.cores && pod < self.pod.pods, "no core {core} or pod {pod}");
        let agg = self.pod.agg_of(core);
        let word = &mut self.open[usize::from(pod) * usize::from(self.pod.aggs) + usize::from(agg)];
        let bit = self.pod.slot_of(core);
        *word = *word & !(1 << bit) | u64::from(!on) << bit;
    }

    pub fn set_down(&mut self, link: Link, down: bool) {
        self.links.set(&self.pod, link, !down);
        match link {
            Link::HostUp { host } => self.senders[usize::from(host)] = !down,
            Link::HostDown { host } => self.targets[usize::from(host)] = !down,
            _ => {}
        }
    }

    pub fn waiting(&self, demand: Demand) -> u64 {
        let (row, column) = self.place(demand);
        self.demands.bytes(row, column)
    }

    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Grants of one epoch: at most one for each sender and each receiver, on paths that share no link.
    pub fn schedule(&mut self, stream: &mut Stream) -> &[Grant] {
        let Self { pod, params, demands, choice, left, idle, free, paths, tally, .. } = self;
        demands.sort(stream);
        idle.copy_from(&self.links);
        self.unmatched_senders.copy_from_slice(&self.senders);
        self.unmatched_targets.copy_from_slice(&self.targets);
        left.clear();
        left.extend(demands.order().filter(|demand| {
            self.senders[usize::from(demand.sender)] & self.targets[usize::from(demand.target)]
        }));
        self.grants.clear();
        let (hosts, aggs) = (pod.hosts(), usize::from(pod.aggs));
        for _ in 0..params.iterations {
            // Request.
            paths.clear();
            for demand in left.iter() {
                let open = |agg| self.open[(usize::from(demand.target) - hosts) * aggs + agg];
                match (demand.mice, params.mice_over) {
                    (false, _) => choice.find(idle, demand, |agg| open(agg) & self.bulk[agg]),
                    (true, MiceCores::Any) => choice.find(idle, demand, open),
                    (true, over) => {
                        choice.find(idle, demand, |agg| open(agg) & !self.bulk[agg]);
                        if choice.left() == 0 && over == MiceCores::ExclusiveFirst {
                            choice.find(idle, demand, open);
                        }
                    }
                }
                for _ in 0..params.requests.min(choice.left()) {
                    paths.push((*demand, choice.draw(demand, stream)));
                }
            }
            if paths.is_empty() {
                break;
            }
            tally.iterations += 1;
            tally.requests += paths.len() as u64;
            // Grant 1, for all switches together: they share no link, and paths are in the order of demands.
            free.copy_from(idle);
            paths.retain(|(_, path)| free.take(path));
            tally.granted += paths.len() as u64;
            // Grant 2: a sender's first path is the one that it keeps.
            self.chosen.fill(false);
            paths
                .retain(|(demand, _)| !std::mem::replace(&mut self.chosen[usize::from(demand.sender)], true));
            tally.approved += paths.len() as u64;
            // Accept, likewise.
            paths.retain(|(demand, _)| {
                let target = usize::from(demand.target);
                // A core receives by one link only, which Grant 1 has given away once.
                target >= hosts || std::mem::replace(&mut self.unmatched_targets[target], false)
            });
            tally.accepted += paths.len() as u64;
            for (demand, path) in paths.iter() {
                self.unmatched_senders[usize::from(demand.sender)] = false;
                assert!(idle.take(path), "a link is given to one demand at most");
                let mut bytes = demands.bytes(demand.sender, demand.target);
                if usize::from(demand.target) >= hosts && path.core >= Some(pod.cores - params.mice_cores) {
                    bytes = demands.mice(demand.sender, demand.target);
                }
                bytes = bytes.min(u64::from(params.cells) * u64::from(params.payload));
                if params.subtract == Subtract::AtOnce {
                    demands.subtract(demand.sender, demand.target, bytes);
                }
                self.grants.push(Grant {
                    demand: demands.demand(demand.sender, demand.target),
                    agg: path.agg,
                    core: path.core,
                    cells: bytes.div_ceil(u64::from(params.payload)) as u32,
                });
            }
            let mut kept = 0;
            for at in 0..left.len() {
                let demand = left[at];
                left[kept] = demand;
                // Without a branch, as none could be foretold.
                let unmatched = self.unmatched_senders[usize::from(demand.sender)]
                    & self.unmatched_targets[usize::from(demand.target)];
                kept += usize::from(unmatched);
            }
            left.truncate(kept);
        }
        &self.grants
    }

    /// Row and column of a demand.
    fn place(&self, demand: Demand) -> (u16, u16) {
        let is_host = |host: u16| usize::from(host) < self.pod.hosts();
        let ok = match (demand.from, demand.to) {
            (Sender::Host(from), Target::Host(to)) => from != to && is_host(from.max(to)),
            (Sender::Host(from), Target::Pod(to)) => is_host(from) && to < self.pod.pods,
            (Sender::Core(from), Target::Host(to)) => from < self.pod.cores && is_host(to),
            (Sender::Core(_), Target::Pod(_)) => false,
        };
        assert!(ok, "the pod has no {demand:?}");
        (self.demands.row(demand.from), self.demands.column(demand.to))
    }
}
