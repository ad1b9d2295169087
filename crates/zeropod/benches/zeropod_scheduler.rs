//! Zeropod's scheduler by itself: time for an epoch, and how close to a maximum matching it
//! comes.
//!
//! An epoch's time is that of everything that its scheduler does: the news of the RTS put into
//! the matrices, and Algorithm 1. The paper grants it 15 us at 256 hosts (§V-A), and an epoch
//! lasts 713 ns there, over which it spreads the work of many processors; here is one.

use criterion::{Criterion, SamplingMode, criterion_group, criterion_main};
use std::time::{Duration, Instant};
use xoff_kernel::random::Stream;
use xoff_net::sizes::SizeDistribution;
use xoff_schemes::scheduling::matching::maximum;
use xoff_schemes::scheduling::zeropod::{
    Demand, MiceCores, Order, Params, Pod, Scheduler, Sender, Subtract, Target,
};

const PAPER: Params = Params {
    cells: 16,
    payload: 512,
    iterations: 6,
    requests: 1,
    mice_cores: 0,
    mice_over: MiceCores::Any,
    order: Order::Smallest,
    subtract: Subtract::AtOnce,
};
/// 16 cells of 552 B and two of 40 B at 100 Gbit/s, in picoseconds.
const EPOCH: f64 = (16 * 552 + 2 * 40) as f64 * 80.0;
/// Flows of at most so many bytes are mice, and a host names at most so many targets of them.
const MICE: u64 = 100_000;
const TOP: usize = 16;

/// A pod of one rack for each so many hosts, as many aggregation switches as a rack has hosts.
fn pod(racks: u16, hosts_per_rack: u16) -> Pod {
    Pod { racks, hosts_per_rack, aggs: hosts_per_rack, cores: 0, pods: 1 }
}

fn host_to_host(from: u16, to: u16) -> Demand {
    Demand { from: Sender::Host(from), to: Target::Host(to) }
}

/// Web search flows between random hosts, without delay between hosts and scheduler.
struct Load {
    scheduler: Scheduler,
    hosts: u64,
    sizes: SizeDistribution,
    arrivals: Stream,
    draws: Stream,
    /// Time between arrivals, until the next one, in picoseconds.
    gap: f64,
    next: f64,
    /// The list of mice of each host.
    mice: Vec<Vec<(Target, u64)>>,
    pending: Vec<(u16, u16, u64)>,
    stale: Vec<u16>,
}

impl Load {
    fn new(pod: Pod, params: Params, load: f64) -> Self {
        let sizes = SizeDistribution::named("websearch").expect("it is built in");
        let hosts = pod.hosts();
        let gap = sizes.mean() * 80.0 / (load * hosts as f64);
        Self {
            scheduler: Scheduler::new(pod, params),
            hosts: hosts as u64,
            sizes,
            arrivals: Stream::new(1, "arrivals", 0),
            draws: Stream::new(1, "zeropod", 0),
            gap,
            next: 0.0,
            mice: vec![Vec::new(); hosts],
            pending: Vec::new(),
            stale: Vec::new(),
        }
    }

    /// One epoch: how long the scheduler took, and how many it served.
    fn epoch(&mut self) -> (Duration, usize) {
        self.pending.clear();
        while self.next < EPOCH {
            self.next += self.arrivals.exponential(self.gap);
            let bytes = self.sizes.sample(&mut self.arrivals);
            let from = self.arrivals.below(self.hosts) as u16;
            let to = (u64::from(from) + 1 + self.arrivals.below(self.hosts - 1)) % self.hosts;
            self.pending.push((from, to as u16, bytes));
            let list = &mut self.mice[usize::from(from)];
            let target = Target::Host(to as u16);
            if bytes <= MICE && list.len() < TOP && list.iter().all(|(t, _)| *t != target) {
                list.push((target, bytes));
                self.stale.push(from);
            }
        }
        self.next -= EPOCH;
        let begin = Instant::now();
        for &(from, to, bytes) in &self.pending {
            self.scheduler.add(host_to_host(from, to), bytes);
        }
        for &from in &self.stale {
            self.scheduler.advertise(Sender::Host(from), &self.mice[usize::from(from)]);
        }
        let grants = self.scheduler.schedule(&mut self.draws);
        let took = begin.elapsed();
        self.stale.clear();
        for grant in grants {
            let Sender::Host(from) = grant.demand.from else { unreachable!("there are no cores") };
            let list = &mut self.mice[usize::from(from)];
            if let Some(at) = list.iter().position(|(t, _)| *t == grant.demand.to) {
                list[at].1 = list[at].1.saturating_sub(u64::from(grant.cells) * 512);
                if list[at].1 == 0 {
                    list.swap_remove(at);
                }
                self.stale.push(from);
            }
        }
        (took, grants.len())
    }

    /// Some epochs: how long the scheduler took for each, and how many it served on average. Other processes
    /// only add time, so of parts of 500 epochs the best counts, by its median.
    fn epochs(&mut self, count: usize) -> (Duration, f64) {
        let (mut times, served): (Vec<Duration>, Vec<usize>) = (0..count).map(|_| self.epoch()).unzip();
        let median = |part: &mut [Duration]| {
            part.sort();
            part[part.len() / 2]
        };
        let best = times.chunks_mut(500).map(median).min().expect("some epochs");
        (best, served.iter().sum::<usize>() as f64 / count as f64)
    }

    /// Every host has as much for every other, beside the arrivals.
    fn all_to_all(&mut self, bytes: u64) {
        let hosts = self.hosts as u16;
        for from in 0..hosts {
            (0..hosts)
                .filter(|&to| to != from)
                .for_each(|to| self.scheduler.add(host_to_host(from, to), bytes));
        }
    }

    /// The receivers of each host's data.
    fn receivers(&self) -> Vec<Vec<u16>> {
        let hosts = self.hosts as u16;
        let some = |from, to| from != to && self.scheduler.waiting(host_to_host(from, to)) > 0;
        (0..hosts).map(|from| (0..hosts).filter(|&to| some(from, to)).collect()).collect()
    }
}

fn cases(criterion: &mut Criterion) {
    println!("share of a maximum matching that is served, 256 hosts, web search at load 1.0, by I:");
    for iterations in 1..=10 {
        let mut load = Load::new(pod(16, 16), Params { iterations, ..PAPER }, 1.0);
        load.epochs(10_000);
        let (mut served, mut most) = (0, 0);
        for _ in 0..200 {
            most += maximum(&load.receivers(), 256);
            served += load.epoch().1;
        }
        println!("  {iterations:2}: {:.3}", served as f64 / most as f64);
    }
    let mut load = Load::new(pod(16, 16), PAPER, 0.01);
    load.all_to_all(1_000_000);
    let (took, served) = load.epochs(1_000);
    println!("256 hosts, all to all: {took:.1?}; 65280 demands, {served:.1} served");
    for (racks, hosts_per_rack) in [(8, 8), (16, 8), (16, 16), (32, 16)] {
        let hosts = racks * hosts_per_rack;
        for share in [0.8, 1.0] {
            let mut load = Load::new(pod(racks, hosts_per_rack), PAPER, share);
            load.epochs(20_000);
            let waiting: usize = load.receivers().iter().map(Vec::len).sum();
            let (took, served) = load.epochs(5_000);
            println!("{hosts} hosts, web search {share}: {took:.1?}; {waiting} demands, {served:.1} served");
            let mut group = criterion.benchmark_group("zeropod-scheduler");
            group.sampling_mode(SamplingMode::Flat).sample_size(10);
            group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
            group.bench_function(format!("{hosts} hosts, web search {share}"), |b| {
                b.iter_custom(|epochs| (0..epochs).map(|_| load.epoch().0).sum());
            });
            group.finish();
        }
    }
}

criterion_group!(benches, cases);
criterion_main!(benches);
