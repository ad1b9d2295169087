use super::slots::{Pipeline, Slots};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The paper's pod of k = 32 (§V-A).
const LARGE: Pod = Pod { racks: 16, hosts_per_rack: 16, aggs: 16, cores: 0, pods: 1 };
/// Its pod of k = 8, with 7 cores.
const SMALL: Pod = Pod { racks: 4, hosts_per_rack: 4, aggs: 4, cores: 7, pods: 8 };
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

fn host_to_host(from: u16, to: u16) -> Demand {
    Demand { from: Sender::Host(from), to: Target::Host(to) }
}

fn host_to_pod(from: u16, pod: u16) -> Demand {
    Demand { from: Sender::Host(from), to: Target::Pod(pod) }
}

fn core_to_host(core: u16, to: u16) -> Demand {
    Demand { from: Sender::Core(core), to: Target::Host(to) }
}

/// The links that a grant's cells cross, hosts' own included.
fn links(pod: &Pod, grant: &Grant) -> Vec<Link> {
    let mut links = Vec::new();
    match (grant.demand.from, grant.core) {
        (Sender::Host(host), _) => {
            links.push(Link::HostUp { host });
            links.push(Link::RackUp { rack: host / pod.hosts_per_rack, agg: grant.agg });
        }
        (Sender::Core(core), path) => {
            assert_eq!(path, Some(core), "what a core sends begins there");
            links.push(Link::CoreDown { core });
        }
    }
    match (grant.demand.to, grant.core) {
        (Target::Host(host), _) => {
            links.push(Link::RackDown { agg: grant.agg, rack: host / pod.hosts_per_rack });
            links.push(Link::HostDown { host });
        }
        (Target::Pod(_), core) => links.push(Link::CoreUp { core: core.expect("pods lie behind cores") }),
    }
    links
}

/// A pod with the input of its scheduler.
#[derive(Clone, Debug)]
struct Case {
    pod: Pod,
    params: Params,
    down: BTreeSet<Link>,
    pressed: BTreeSet<(u16, u16)>,
    epochs: Vec<News>,
    seed: u64,
}

/// The content of RTS between two epochs: arrivals, and lists of mice.
type News = (Vec<(Demand, u64)>, BTreeMap<Sender, Vec<(Target, u64)>>);

/// Any demand of a pod, from two numbers.
fn demand(pod: &Pod, from: u16, to: u16) -> Demand {
    let hosts = pod.hosts() as u16;
    let (from, mut to) = (from % pod.senders() as u16, to % pod.targets() as u16);
    if from >= hosts {
        return core_to_host(from - hosts, to % hosts);
    }
    if to == from {
        to = hosts;
    }
    if to >= hosts { host_to_pod(from, to - hosts) } else { host_to_host(from, to) }
}

fn link(pod: &Pod, kind: u8, a: u16, b: u16) -> Link {
    let (host, rack, agg) = (a % pod.hosts() as u16, a % pod.racks, b % pod.aggs);
    match (kind % 6, pod.cores) {
        (0, _) => Link::HostUp { host },
        (1, _) => Link::HostDown { host },
        (2, 1..) => Link::CoreUp { core: a % pod.cores },
        (3, 1..) => Link::CoreDown { core: a % pod.cores },
        (2 | 4, _) => Link::RackUp { rack, agg },
        _ => Link::RackDown { agg, rack },
    }
}

fn pods() -> impl Strategy<Value = (Pod, Params)> {
    let order = prop::sample::select(vec![Order::Smallest, Order::Largest, Order::Random]);
    let pod = (1u16..=5, 1u16..=5, 1u16..=5, 0u16..=9, 1u16..=4);
    let over =
        prop::sample::select(vec![MiceCores::Any, MiceCores::ExclusiveFirst, MiceCores::ExclusiveOnly]);
    (pod, 1u32..=20, 1u32..=8, 1u32..=4, (0u16..=3, over), order).prop_map(
        |((racks, hosts_per_rack, aggs, cores, pods), cells, iterations, requests, mice, order)| {
            let (mice_cores, mice_over) = (mice.0.min(cores), mice.1);
            let pod = Pod { racks, hosts_per_rack, aggs, cores, pods };
            let scheduler =
                Params { cells, payload: 100, iterations, requests, mice_cores, mice_over, order, ..PAPER };
            (pod, scheduler)
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let arrivals = prop::collection::vec((any::<u16>(), any::<u16>(), 0u64..6_000), 0..60);
    let mice = prop::collection::vec((any::<u16>(), any::<u16>(), 0u64..3_000), 0..20);
    let down = prop::collection::vec((any::<u8>(), any::<u16>(), any::<u16>()), 0..8);
    let pressed = prop::collection::vec((any::<u16>(), any::<u16>()), 0..8);
    let epochs = prop::collection::vec((arrivals, mice), 1..8);
    (pods(), down, pressed, epochs, any::<u64>()).prop_map(|((pod, params), down, pressed, epochs, seed)| {
        let epochs = epochs.into_iter().map(|(arrivals, mice)| {
            let arrivals = arrivals.into_iter().map(|(s, t, bytes)| (demand(&pod, s, t), bytes)).collect();
            let mut lists = BTreeMap::<Sender, BTreeMap<Target, u64>>::new();
            for (s, t, bytes) in mice {
                let Demand { from, to } = demand(&pod, s, t);
                lists.entry(from).or_default().insert(to, bytes);
            }
            let lists = lists.into_iter().map(|(from, list)| (from, list.into_iter().collect())).collect();
            (arrivals, lists)
        });
        Case {
            pod,
            params,
            down: down.into_iter().map(|(kind, a, b)| link(&pod, kind, a, b)).collect(),
            pressed: pressed
                .into_iter()
                .filter(|_| pod.cores > 0)
                .map(|(c, p)| (c % pod.cores, p % pod.pods))
                .collect(),
            epochs: epochs.collect(),
            seed,
        }
    })
}

/// The state that a scheduler should have, in a simple form.
#[derive(Default)]
struct Books {
    bytes: BTreeMap<Demand, u64>,
    mice: BTreeMap<Demand, u64>,
}

impl Books {
    fn mice(&self, demand: &Demand) -> u64 {
        self.mice.get(demand).copied().unwrap_or(0).min(self.bytes[demand])
    }

    /// The sort key of a demand, the least first.
    fn rank(&self, demand: &Demand, order: Order) -> (u64, u64) {
        let (mice, bytes) = (self.mice(demand), self.bytes[demand]);
        let then = match order {
            Order::Smallest => bytes,
            Order::Largest => u64::MAX - bytes,
            Order::Random => 0,
        };
        (if mice > 0 { mice } else { u64::MAX }, then)
    }
}

/// The paths that a demand could take if nothing else were sent.
fn paths(case: &Case, books: &Books, demand: &Demand) -> Vec<Grant> {
    let pod = &case.pod;
    let way = |agg, core| Grant { demand: *demand, agg, core, cells: 0 };
    let all: Vec<Grant> = match (demand.from, demand.to) {
        (Sender::Host(_), Target::Host(_)) => (0..pod.aggs).map(|agg| way(agg, None)).collect(),
        (Sender::Core(core), _) => vec![way(core % pod.aggs, Some(core))],
        (_, Target::Pod(p)) => (0..pod.cores)
            .filter(|&core| !case.pressed.contains(&(core, p)))
            .filter(|&core| match core < pod.cores - case.params.mice_cores {
                true => books.mice(demand) == 0 || case.params.mice_over != MiceCores::ExclusiveOnly,
                false => books.mice(demand) > 0,
            })
            .map(|core| way(core % pod.aggs, Some(core)))
            .collect(),
    };
    all.into_iter().filter(|g| links(pod, g).iter().all(|l| !case.down.contains(l))).collect()
}

/// Runs a case and checks each epoch; all grants come back.
fn run(case: &Case) -> Vec<Vec<Grant>> {
    let mut scheduler = Scheduler::new(case.pod, case.params);
    let mut stream = Stream::new(case.seed, "zeropod", 0);
    let mut books = Books::default();
    case.down.iter().for_each(|&link| scheduler.set_down(link, true));
    case.pressed.iter().for_each(|&(core, pod)| scheduler.set_backpressure(core, pod, true));
    let mut all = Vec::new();
    for (arrivals, lists) in &case.epochs {
        for &(demand, bytes) in arrivals {
            scheduler.add(demand, bytes);
            *books.bytes.entry(demand).or_default() += bytes;
        }
        for (&from, list) in lists {
            scheduler.advertise(from, list);
            books.mice.retain(|demand, _| demand.from != from);
            books.mice.extend(list.iter().map(|&(to, bytes)| (Demand { from, to }, bytes)));
        }
        let grants = scheduler.schedule(&mut stream).to_vec();
        check(case, &mut books, &grants);
        for (&demand, &bytes) in &books.bytes {
            assert_eq!(scheduler.waiting(demand), bytes, "{demand:?}");
        }
        all.push(grants);
    }
    let tally = scheduler.tally();
    assert_eq!(tally.accepted as usize, all.iter().map(Vec::len).sum::<usize>());
    assert!(tally.accepted <= tally.approved && tally.approved <= tally.granted);
    assert!(tally.granted <= tally.requests);
    all
}

/// Checks the grants of one epoch, and takes them from the books.
fn check(case: &Case, books: &mut Books, grants: &[Grant]) {
    let open: Vec<(Demand, Vec<Grant>)> = (books.bytes.iter().filter(|&(_, &bytes)| bytes > 0))
        .map(|(demand, _)| (*demand, paths(case, books, demand)))
        .filter(|(_, paths)| !paths.is_empty())
        .collect();
    // Of all that have a path, one of the first is granted.
    let rank = |demand| books.rank(demand, case.params.order);
    if let Some(first) = open.iter().map(|(demand, _)| rank(demand)).min() {
        assert!(grants.iter().any(|g| rank(&g.demand) == first), "{first:?} is not granted");
    }
    let mut used = BTreeSet::new();
    for grant in grants {
        let (_, paths) = open.iter().find(|(demand, _)| *demand == grant.demand).expect("it has a path");
        assert!(paths.contains(&Grant { cells: 0, ..*grant }), "{grant:?} is none of {paths:?}");
        // Hosts' own links are among them: one demand for each sender and receiver.
        for link in links(&case.pod, grant) {
            assert!(used.insert(link), "two meet on {link:?}");
        }
    }
    // With iterations to spare nothing is left that could have been granted.
    if case.params.iterations as usize > case.pod.senders() {
        for (demand, paths) in &open {
            let free = |path: &Grant| links(&case.pod, path).iter().all(|l| !used.contains(l));
            assert!(!paths.iter().any(free), "{demand:?} could have been granted");
        }
    }
    for grant in grants {
        let for_mice = grant.core.is_some_and(|core| core >= case.pod.cores - case.params.mice_cores);
        let up = matches!(grant.demand.to, Target::Pod(_));
        let most = if for_mice && up { books.mice(&grant.demand) } else { books.bytes[&grant.demand] };
        let cells = most.div_ceil(100).min(u64::from(case.params.cells));
        assert_eq!(u64::from(grant.cells), cells, "{grant:?} of {most} B");
        let carried = most.min(100 * cells);
        *books.bytes.get_mut(&grant.demand).unwrap() -= carried;
        if let Some(mice) = books.mice.get_mut(&grant.demand) {
            *mice = mice.saturating_sub(carried);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 1_000 / 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// No two grants share a sender, a receiver or a link; none uses a link that is down, a core under
    /// backpressure, or a core for mice without them; none is of more than was requested; the first in order
    /// is always served; and the same again is the same.
    #[test]
    fn grants_never_meet(case in cases()) {
        prop_assert_eq!(run(&case), run(&case));
    }

    /// With enough iterations no demand is left that has an idle path and free ends.
    #[test]
    fn iterations_end_with_nothing_left_to_grant(mut case in cases()) {
        case.params.iterations = 40;
        run(&case);
    }

    /// A demand that was requested once is granted in at most as many epochs as it has cells, and a demand
    /// without a path remains.
    #[test]
    fn nothing_starves_once_arrivals_end(mut case in cases()) {
        let mut books = Books::default();
        for (demand, bytes) in case.epochs.iter().flat_map(|(arrivals, _)| arrivals) {
            *books.bytes.entry(*demand).or_default() += bytes;
        }
        case.params.mice_cores = 0;
        case.epochs = vec![(books.bytes.iter().map(|(d, b)| (*d, *b)).collect(), BTreeMap::new())];
        let served = || books.bytes.iter().filter(|(demand, _)| !paths(&case, &books, demand).is_empty());
        let epoch = 100 * u64::from(case.params.cells);
        let bound: u64 = served().map(|(_, bytes)| bytes.div_ceil(epoch)).sum();
        let whole: u64 = served().map(|(_, bytes)| bytes.div_ceil(100)).sum();
        case.epochs.resize(1 + bound as usize, Default::default());
        let cells: u64 = run(&case).iter().flatten().map(|g| u64::from(g.cells)).sum();
        prop_assert_eq!(cells, whole);
    }
}

/// A scheduler with demands.
fn scheduler(pod: Pod, params: Params, demands: &[(Demand, u64)]) -> Scheduler {
    let mut scheduler = Scheduler::new(pod, params);
    demands.iter().for_each(|&(demand, bytes)| scheduler.add(demand, bytes));
    scheduler
}

fn stream() -> Stream {
    Stream::new(1, "zeropod", 0)
}

/// With one aggregation switch there is no random choice, and an iteration serves the same as a walk through
/// the demands by size: the smallest first, then each one that shares no link with it.
#[test]
fn the_smallest_come_first() {
    let pod = Pod { racks: 3, hosts_per_rack: 2, aggs: 1, cores: 0, pods: 1 };
    let params = Params { iterations: 1, ..PAPER };
    let demands = [
        (host_to_host(0, 2), 900), // first, by its mice
        (host_to_host(3, 1), 300), // second
        (host_to_host(1, 4), 400), // by the same link up as the first
        (host_to_host(4, 3), 500), // by the same link down as the first
        (host_to_host(5, 4), 600), // third
        (host_to_host(2, 5), 700), // by the same link up as the second
    ];
    let mut scheduler = scheduler(pod, params, &demands);
    scheduler.advertise(Sender::Host(0), &[(Target::Host(2), 850)]);
    let served: Vec<Demand> = scheduler.schedule(&mut stream()).iter().map(|g| g.demand).collect();
    assert_eq!(served, [host_to_host(0, 2), host_to_host(3, 1), host_to_host(5, 4)]);
}

/// Mice come before all else, until a new list does without it or as
/// many bytes are granted.
#[test]
fn mice_sizes_last_until_they_are_served_or_withdrawn() {
    let pod = Pod { racks: 1, hosts_per_rack: 4, aggs: 4, cores: 0, pods: 1 };
    let params = Params { cells: 1, ..PAPER };
    let demands = [(host_to_host(0, 1), 100_000), (host_to_host(0, 2), 5_000), (host_to_host(0, 3), 4_000)];
    let mut scheduler = scheduler(pod, params, &demands);
    let mut stream = stream();
    let mut served = |scheduler: &mut Scheduler| match scheduler.schedule(&mut stream) {
        [grant] => grant.demand.to,
        other => panic!("{other:?}"),
    };
    scheduler.advertise(Sender::Host(0), &[(Target::Host(1), 1_000), (Target::Host(2), 3_000)]);
    assert_eq!(served(&mut scheduler), Target::Host(1));
    assert_eq!(served(&mut scheduler), Target::Host(1));
    // Its mice are through; those for host 2 are next, though less is left for host 3.
    assert_eq!(served(&mut scheduler), Target::Host(2));
    scheduler.advertise(Sender::Host(0), &[]);
    assert_eq!(served(&mut scheduler), Target::Host(3));
}

#[test]
fn cells_are_as_many_as_the_bytes_need_and_an_epoch_holds() {
    let mut scheduler = scheduler(LARGE, PAPER, &[(host_to_host(0, 1), 16 * 512 + 513)]);
    let mut stream = stream();
    let mut cells = || scheduler.schedule(&mut stream).first().map(|g| g.cells);
    assert_eq!([cells(), cells(), cells()], [Some(16), Some(2), None]);
}

/// The traffic of a link that is down takes another path, and returns to it later.
#[test]
fn failed_links_are_avoided() {
    let mut scheduler = scheduler(SMALL, PAPER, &[(host_to_host(0, 5), 1 << 30)]);
    let mut stream = stream();
    let mut aggs = |scheduler: &mut Scheduler| -> BTreeSet<u16> {
        (0..100).flat_map(|_| scheduler.schedule(&mut stream).first().map(|g| g.agg)).collect()
    };
    assert_eq!(aggs(&mut scheduler), BTreeSet::from([0, 1, 2, 3]));
    scheduler.set_down(Link::RackUp { rack: 0, agg: 1 }, true);
    scheduler.set_down(Link::RackDown { agg: 2, rack: 1 }, true);
    // In the other direction, or of another rack.
    scheduler.set_down(Link::RackUp { rack: 1, agg: 3 }, true);
    scheduler.set_down(Link::RackDown { agg: 3, rack: 0 }, true);
    assert_eq!(aggs(&mut scheduler), BTreeSet::from([0, 3]));
    scheduler.set_down(Link::HostDown { host: 5 }, true);
    assert_eq!(aggs(&mut scheduler), BTreeSet::new());
    scheduler.set_down(Link::HostDown { host: 5 }, false);
    scheduler.set_down(Link::RackUp { rack: 0, agg: 1 }, false);
    assert_eq!(aggs(&mut scheduler), BTreeSet::from([0, 1, 3]));
}

#[test]
fn cores_are_those_that_have_room_and_are_meant_for_it() {
    let params = Params { mice_cores: 1, ..PAPER };
    let mut scheduler = scheduler(SMALL, params, &[(host_to_pod(0, 3), 1 << 30)]);
    let mut stream = stream();
    let mut cores = |scheduler: &mut Scheduler, advertised: bool| -> BTreeMap<u16, u32> {
        let mut cores = BTreeMap::new();
        for _ in 0..200 {
            let mice = [(Target::Pod(3), 1_000)];
            scheduler.advertise(Sender::Host(0), if advertised { &mice } else { &[] });
            for grant in scheduler.schedule(&mut stream) {
                assert_eq!(grant.agg, grant.core.unwrap() % 4);
                cores.insert(grant.core.unwrap(), grant.cells);
            }
        }
        cores
    };
    let bulk: Vec<_> = (0..6).map(|core| (core, 16)).collect();
    assert_eq!(Vec::from_iter(cores(&mut scheduler, false)), bulk);
    // The core for mice takes their two cells and no more.
    assert_eq!(Vec::from_iter(cores(&mut scheduler, true)), [&bulk[..], &[(6, 2)]].concat());
    for core in [0, 2, 3, 4] {
        scheduler.set_backpressure(core, 3, true);
        scheduler.set_backpressure(core + 1, 4, true);
    }
    scheduler.set_down(Link::CoreUp { core: 5 }, true);
    assert_eq!(cores(&mut scheduler, false), BTreeMap::from([(1, 16)]));
    scheduler.set_backpressure(2, 3, false);
    assert_eq!(cores(&mut scheduler, false), BTreeMap::from([(1, 16), (2, 16)]));
}

/// Seven cores of which the last is only for mice: mice draw one of all seven, or take that one first, or
/// wait for it. Other data never takes it.
#[test]
fn mice_take_the_cores_that_they_may() {
    let cores = |mice_over: MiceCores, exclusive_is_full: bool| {
        let params = Params { mice_cores: 1, mice_over, ..PAPER };
        let demands = [(host_to_pod(0, 3), 1 << 30), (host_to_pod(4, 3), 1 << 30)];
        let mut scheduler = scheduler(SMALL, params, &demands);
        scheduler.set_backpressure(6, 3, exclusive_is_full);
        let mut stream = stream();
        let (mut mice, mut bulk) = (BTreeSet::new(), BTreeSet::new());
        for _ in 0..200 {
            scheduler.advertise(Sender::Host(0), &[(Target::Pod(3), 1_000)]);
            for grant in scheduler.schedule(&mut stream) {
                let set = if grant.demand.from == Sender::Host(0) { &mut mice } else { &mut bulk };
                set.insert(grant.core.expect("a core"));
            }
        }
        assert_eq!(Vec::from_iter(bulk), [0, 1, 2, 3, 4, 5]);
        Vec::from_iter(mice)
    };
    assert_eq!(cores(MiceCores::Any, false), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(cores(MiceCores::ExclusiveFirst, false), [6]);
    assert_eq!(cores(MiceCores::ExclusiveFirst, true), [0, 1, 2, 3, 4, 5]);
    assert_eq!(cores(MiceCores::ExclusiveOnly, false), [6]);
    assert!(cores(MiceCores::ExclusiveOnly, true).is_empty());
}

/// Until its SCHD leaves a grant may be repeated, and no more is subtracted than was requested.
#[test]
fn grants_may_count_only_when_their_schd_leaves() {
    let demand = host_to_host(0, 20);
    let params = Params { subtract: Subtract::WithSchd, ..PAPER };
    let mut scheduler = scheduler(LARGE, params, &[(demand, 20 * 512)]);
    let mut stream = stream();
    for _ in 0..3 {
        assert_eq!(scheduler.schedule(&mut stream)[0].cells, 16);
        assert_eq!(scheduler.waiting(demand), 20 * 512);
    }
    assert_eq!(scheduler.subtract(demand, 16 * 512), 16 * 512);
    assert_eq!(scheduler.schedule(&mut stream)[0].cells, 4);
    assert_eq!(scheduler.subtract(demand, 16 * 512), 4 * 512);
    assert_eq!(scheduler.schedule(&mut stream), []);
    assert_eq!(scheduler.subtract(demand, 16 * 512), 0);
}

/// Cores 0 and 4 come by aggregation switch 0, and rack 0 has one link from there. One after the other has
/// it, and a host that sends to the rack, which has more to send, uses other paths.
#[test]
fn traffic_from_cores_shares_links_with_traffic_in_the_pod() {
    let epochs = |n: u64| n * 16 * 512;
    let demands = [
        (core_to_host(0, 1), epochs(10)),
        (core_to_host(4, 2), epochs(20)),
        (host_to_host(9, 3), epochs(99)),
    ];
    let mut scheduler = scheduler(SMALL, PAPER, &demands);
    let mut stream = stream();
    for epoch in 0..30 {
        let mut grants = scheduler.schedule(&mut stream).to_vec();
        grants.sort_by_key(|g| g.demand);
        let core = if epoch < 10 { 0 } else { 4 };
        let senders: Vec<Sender> = grants.iter().map(|g| g.demand.from).collect();
        assert_eq!(senders, [Sender::Host(9), Sender::Core(core)]);
        assert!(grants[0].agg != 0 && grants[1].agg == 0, "{grants:?}");
    }
}

/// Of equal demands any comes first, and of idle paths any is drawn.
#[test]
fn chance_is_even() {
    let even = |counts: &BTreeMap<u16, u32>, kinds: usize, total: u32| {
        let share = f64::from(total) / kinds as f64;
        assert_eq!(counts.len(), kinds, "{counts:?}");
        assert!(counts.values().all(|&n| (f64::from(n) - share).abs() < 5.0 * share.sqrt()), "{counts:?}");
    };
    let (mut stream, mut counts) = (stream(), BTreeMap::new());
    for _ in 0..300 {
        let demands = [0, 1, 2].map(|from| (host_to_host(from, 3), 512));
        let first = scheduler(SMALL, PAPER, &demands).schedule(&mut stream)[0].demand.from;
        let Sender::Host(host) = first else { panic!("{first:?}") };
        *counts.entry(host).or_default() += 1;
    }
    even(&counts, 3, 300);

    let mut scheduler =
        scheduler(SMALL, PAPER, &[(host_to_pod(0, 3), 1 << 40), (host_to_host(5, 0), 1 << 40)]);
    scheduler.set_down(Link::CoreUp { core: 1 }, true);
    scheduler.set_down(Link::RackUp { rack: 0, agg: 3 }, true);
    scheduler.set_down(Link::RackDown { agg: 1, rack: 0 }, true);
    let (mut cores, mut aggs) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..1_000 {
        for grant in scheduler.schedule(&mut stream) {
            let kinds = if grant.core.is_some() { &mut cores } else { &mut aggs };
            *kinds.entry(grant.core.unwrap_or(grant.agg)).or_default() += 1;
        }
    }
    even(&cores, 5, 1_000);
    even(&aggs, 3, 1_000);
}

/// A demand that asks for every idle path is given them all, and keeps one.
#[test]
fn requests_may_be_many() {
    let mut scheduler = scheduler(SMALL, Params { requests: 9, ..PAPER }, &[(host_to_host(0, 5), 512)]);
    assert_eq!(scheduler.schedule(&mut stream()).len(), 1);
    let expected = Tally { iterations: 1, requests: 4, granted: 4, approved: 1, accepted: 1 };
    assert_eq!(*scheduler.tally(), expected);
    // Paths that it does not keep are missing for others: with the paper's iterations less is served.
    let share = |requests| share_of_the_maximum(16, Params { requests, ..PAPER });
    assert!(share(1) > 0.89 && share(16) < 0.85, "{} {}", share(1), share(16));
}

/// All pairs of a pod always have as much to send. None waits for ever: of 240 pairs, of which
/// at most 16 are served at once, the last one is served for the first time within 300 epochs.
#[test]
fn equal_demands_take_turns() {
    let pod = Pod { racks: 4, hosts_per_rack: 4, aggs: 4, cores: 0, pods: 1 };
    let pairs: Vec<Demand> = (0..16u16)
        .flat_map(|from| (0..16).filter(move |&to| to != from).map(move |to| host_to_host(from, to)))
        .collect();
    let demands: Vec<_> = pairs.iter().map(|&pair| (pair, 16 * 512)).collect();
    let mut scheduler = scheduler(pod, PAPER, &demands);
    let mut stream = stream();
    let mut unserved: BTreeSet<Demand> = pairs.into_iter().collect();
    for _ in 0..300 {
        for grant in scheduler.schedule(&mut stream).to_vec() {
            unserved.remove(&grant.demand);
            scheduler.add(grant.demand, 16 * 512);
        }
    }
    assert!(unserved.is_empty(), "{unserved:?}");
}

/// The next demand of one host: the order determines it, and mice come first.
#[test]
fn the_order_decides_the_first_demand() {
    let (small, large) = (host_to_host(0, 1), host_to_host(0, 2));
    let first = |order, seed, mice: &[(Target, u64)]| {
        let mut scheduler = scheduler(LARGE, Params { order, ..PAPER }, &[(large, 100_000), (small, 50_000)]);
        scheduler.advertise(Sender::Host(0), mice);
        scheduler.schedule(&mut Stream::new(seed, "order", 0))[0].demand
    };
    let times = |order| (0..1_000).filter(|&seed| first(order, seed, &[]) == small).count();
    assert_eq!((times(Order::Smallest), times(Order::Largest)), (1_000, 0));
    assert!((450..550).contains(&times(Order::Random)), "{}", times(Order::Random));
    for order in [Order::Smallest, Order::Largest, Order::Random] {
        assert_eq!(first(order, 0, &[(large.to, 1_000)]), large);
    }
}

/// The limit of the above: smaller demands that never end hold a larger one back (§IV-B.1).
#[test]
fn smaller_demands_without_end_hold_larger_ones_back() {
    let (mouse, elephant) = (host_to_host(0, 1), host_to_host(0, 2));
    let mut scheduler = scheduler(LARGE, PAPER, &[(elephant, 100_000)]);
    let mut stream = stream();
    for _ in 0..1_000 {
        scheduler.add(mouse, 512);
        assert!(scheduler.schedule(&mut stream).iter().all(|g| g.demand == mouse));
    }
    assert_eq!(scheduler.waiting(elephant), 100_000);
    assert_eq!(scheduler.schedule(&mut stream)[0].demand, elephant);
}

/// Part of the maximum matching that is granted when every host has something for some others,
/// all of it large, over 20 draws of who those are.
fn share_of_the_maximum(partners: u64, params: Params) -> f64 {
    let hosts = LARGE.hosts() as u64;
    let (mut granted, mut most) = (0, 0);
    for seed in 0..20 {
        let mut draw = Stream::new(seed, "who has something for whom", 0);
        let mut scheduler = Scheduler::new(LARGE, params);
        let mut receivers = vec![Vec::new(); hosts as usize];
        for from in 0..hosts as u16 {
            while receivers[usize::from(from)].len() < partners as usize {
                let to = draw.below(hosts) as u16;
                if to != from && !receivers[usize::from(from)].contains(&to) {
                    receivers[usize::from(from)].push(to);
                    scheduler.add(host_to_host(from, to), 1_000_000 + draw.below(1_000_000));
                }
            }
        }
        granted += scheduler.schedule(&mut stream()).len();
        most += crate::scheduling::matching::maximum(&receivers, hosts as usize);
    }
    granted as f64 / most as f64
}

/// More iterations get closer to the maximum, which none exceeds: after five or six there is nothing left to
/// grant, and the rest is the cost of smallest first.
#[test]
fn iterations_approach_the_maximum_matching() {
    for partners in [1, 4, 16, 255] {
        let shares: Vec<f64> = (1..=10)
            .map(|iterations| share_of_the_maximum(partners, Params { iterations, ..PAPER }))
            .collect();
        assert!(shares.is_sorted(), "{shares:?}");
        assert!(shares[5] > 0.8 && shares[9] <= 1.0 && shares[9] - shares[5] < 0.01, "{shares:?}");
    }
}

/// The links that cells cross: links of the pod, and those of the scheduler to its switches and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wire {
    Link(Link),
    ToScheduler(Switch),
    FromScheduler(Switch),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Switch {
    Rack(u16),
    Agg(u16),
}

/// Everyone's position, and the switch at which it is that.
fn place(pod: &Pod, who: Sender) -> (Switch, u32) {
    match who {
        Sender::Host(host) => (Switch::Rack(pod.rack_of(host)), u32::from(host % pod.hosts_per_rack)),
        Sender::Core(core) => (Switch::Agg(pod.agg_of(core)), u32::from(pod.slot_of(core))),
    }
}

fn everyone(pod: &Pod) -> impl Iterator<Item = Sender> {
    let hosts = (0..pod.hosts() as u16).map(Sender::Host);
    hosts.chain((0..pod.cores).map(Sender::Core))
}

/// The receiver of a grant's cells.
fn receiver(grant: &Grant) -> Sender {
    match grant.demand.to {
        Target::Host(host) => Sender::Host(host),
        Target::Pod(_) => Sender::Core(grant.core.expect("pods lie behind cores")),
    }
}

/// All that crosses each link in epochs with these grants, from when to when.
fn laid(pod: &Pod, slots: &Slots, epochs: &[Vec<Grant>]) -> BTreeMap<Wire, Vec<(u64, u64)>> {
    let mut wires: BTreeMap<Wire, Vec<(u64, u64)>> = BTreeMap::new();
    let mut lay =
        |wire: Wire, from: u64, length: u64| wires.entry(wire).or_default().push((from, from + length));
    for (epoch, grants) in epochs.iter().enumerate() {
        let start = epoch as u64 * slots.epoch();
        for grant in grants {
            let (from, to) = (place(pod, grant.demand.from).1, place(pod, receiver(grant)).1);
            for link in links(pod, grant) {
                for cell in 0..grant.cells {
                    let at = start + slots.begins(link) + slots.data_at(cell, from, to);
                    lay(Wire::Link(link), at, slots.data);
                }
            }
        }
        for who in everyone(pod) {
            let (switch, position) = place(pod, who);
            let (up, down) = match who {
                Sender::Host(host) => (Link::HostUp { host }, Link::HostDown { host }),
                Sender::Core(core) => (Link::CoreDown { core }, Link::CoreUp { core }),
            };
            let sends = grants.iter().find(|grant| grant.demand.from == who);
            let rts = slots.rts_at(position, sends.map(|grant| place(pod, receiver(grant)).1));
            lay(Wire::Link(up), start + slots.begins(up) + rts, slots.control);
            lay(Wire::ToScheduler(switch), start + begins_at_scheduler(slots, up) + rts, slots.control);
            let gets = grants.iter().find(|grant| receiver(grant) == who);
            let schd = slots.schd_at(gets.map(|grant| place(pod, grant.demand.from).1), position);
            lay(Wire::FromScheduler(switch), start + begins_at_scheduler(slots, down) + schd, slots.control);
            lay(Wire::Link(down), start + slots.begins(down) + schd, slots.control);
        }
    }
    wires
}

/// How much later an epoch begins on the scheduler's link to a switch that has this other link: in one
/// direction after that link, in the other before it.
fn begins_at_scheduler(slots: &Slots, link: Link) -> u64 {
    match link {
        Link::HostUp { .. } | Link::CoreDown { .. } => slots.begins(link) + slots.hop,
        _ => slots.begins(link) - slots.hop,
    }
}

/// Whether the first of two times that lie next to each other is over before the second begins.
fn apart(times: &mut [(u64, u64)]) -> bool {
    times.sort_unstable();
    times.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

proptest! {
    /// No two cells meet on any link, data, RTS or SCHD, in one epoch or in two that follow each other.
    #[test]
    fn cells_never_meet(
        case in cases(),
        data in 10u64..1_000,
        part in 0u64..=100,
        guard in 0u64..20,
        hop in 0u64..3_000,
    ) {
        let control = (data * part / 201).max(1);
        let slots = Slots { cells: case.params.cells, data, control, guard, hop };
        let positions = everyone(&case.pod).map(|who| place(&case.pod, who).1 + 1).max().unwrap_or(0);
        prop_assume!(slots.fits(positions));
        let grants = run(&case);
        for (wire, mut times) in laid(&case.pod, &slots, &grants) {
            prop_assert!(apart(&mut times), "{wire:?}: {times:?}");
        }
    }
}

/// Both conditions of §IV-C are needed: with a control slot too few, or as long as half a data cell and
/// more, cells meet.
#[test]
fn slots_that_do_not_fit_collide() {
    let pod = Pod { racks: 2, hosts_per_rack: 3, aggs: 3, cores: 0, pods: 1 };
    let grant = |from, to, agg| Grant { demand: host_to_host(from, to), agg, core: None, cells: 1 };
    let meets = |slots: &Slots, grants: Vec<Grant>| {
        laid(&pod, slots, &[grants, Vec::new()]).values_mut().any(|times| !apart(times))
    };
    let fits = Slots { cells: 2, data: 100, control: 40, guard: 0, hop: 1_000 };
    let pairs = || vec![grant(1, 3, 0), grant(2, 4, 1), grant(0, 5, 2)];
    assert!(fits.fits(3) && !meets(&fits, pairs()));
    let long = Slots { control: 101, ..fits };
    assert!(!long.fits(3) && meets(&long, pairs()));
    let few = Slots { cells: 1, ..fits };
    assert!(!few.fits(3) && meets(&few, pairs()));
}

/// The paper's numbers (§V-A): epochs of 713 and 1,420 ns at 100 Gbit/s, 17 slots for 16 positions and 33 for
/// 4; and the resulting time from request to data.
#[test]
fn epochs_of_the_paper() {
    let one = Slots { cells: 16, data: 552 * 80, control: 40 * 80, guard: 0, hop: 1_000_000 };
    let many = Slots { cells: 32, ..one };
    assert_eq!((one.epoch(), many.epoch()), (712_960, 1_419_520));
    assert!(one.fits(16) && one.fits(17) && !one.fits(18) && many.fits(4));
    // 13 us are 18.2 epochs; 4 us and an epoch are 6.6.
    assert_eq!(one.pipeline(15_000_000, false), Pipeline { schd: 19, data: 26 });
    assert_eq!(many.pipeline(5_000_000, true), Pipeline { schd: 3, data: 7 });
}

/// SMALL has 16 hosts, 7 cores and 8 pods; no host sends to itself, and cores send to hosts only.
#[test]
fn demands_that_the_pod_cannot_have_are_refused() {
    let core_to_pod = Demand { from: Sender::Core(0), to: Target::Pod(1) };
    for (demand, has) in [
        (host_to_host(0, 15), true),
        (host_to_host(15, 0), true),
        (host_to_host(3, 3), false),
        (host_to_host(0, 16), false),
        (host_to_host(16, 0), false),
        (host_to_pod(15, 7), true),
        (host_to_pod(16, 7), false),
        (host_to_pod(15, 8), false),
        (core_to_host(6, 15), true),
        (core_to_host(7, 15), false),
        (core_to_host(6, 16), false),
        (core_to_pod, false),
    ] {
        let mut scheduler = Scheduler::new(SMALL, PAPER);
        let added = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| scheduler.add(demand, 1)));
        assert_eq!(added.is_ok(), has, "{demand:?}");
    }
}
