use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The paper's pod of k = 32 (§V-A).
const LARGE: Pod = Pod { racks: 16, hosts_per_rack: 16, aggs: 16, cores: 0, pods: 1 };
/// Its pod of k = 8, with 7 cores.
const SMALL: Pod = Pod { racks: 4, hosts_per_rack: 4, aggs: 4, cores: 7, pods: 8 };
const PAPER: Params = Params { cells: 16, payload: 512, iterations: 6, requests: 1, mice_cores: 0 };

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

/// A pod with what its scheduler is told.
#[derive(Clone, Debug)]
struct Case {
    pod: Pod,
    params: Params,
    down: BTreeSet<Link>,
    pressed: BTreeSet<(u16, u16)>,
    /// For each epoch: arrivals, and lists of mice.
    epochs: Vec<(Vec<(Demand, u64)>, BTreeMap<Sender, Vec<(Target, u64)>>)>,
    seed: u64,
}

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
    (1u16..=5, 1u16..=5, 1u16..=5, 0u16..=9, 1u16..=4, 1u32..=20, 1u32..=8, 1u32..=4, 0u16..=3).prop_map(
        |(racks, hosts_per_rack, aggs, cores, pods, cells, iterations, requests, mice_cores)| {
            let mice_cores = mice_cores.min(cores);
            let pod = Pod { racks, hosts_per_rack, aggs, cores, pods };
            (pod, Params { cells, payload: 100, iterations, requests, mice_cores })
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
            pressed: pressed.into_iter().filter(|_| pod.cores > 0).map(|(c, p)| (c % pod.cores, p % pod.pods)).collect(),
            epochs: epochs.collect(),
            seed,
        }
    })
}

/// What a scheduler should know, kept plainly.
#[derive(Default)]
struct Books {
    bytes: BTreeMap<Demand, u64>,
    mice: BTreeMap<Demand, u64>,
}

impl Books {
    fn mice(&self, demand: &Demand) -> u64 {
        self.mice.get(demand).copied().unwrap_or(0).min(self.bytes[demand])
    }

    /// The size by which a demand is put in order.
    fn size(&self, demand: &Demand) -> (u64, u64) {
        let (mice, bytes) = (self.mice(demand), self.bytes[demand]);
        (if mice > 0 { mice } else { bytes }, bytes)
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
            .filter(|&core| core < pod.cores - case.params.mice_cores || books.mice(demand) > 0)
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
    // Of all that have a path, one of the smallest is granted.
    if let Some(first) = open.iter().map(|(demand, _)| books.size(demand)).min() {
        assert!(grants.iter().any(|g| books.size(&g.demand) == first), "{first:?} is not granted");
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
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// No two grants share a sender, a receiver or a link; none uses a link that is down, a core
    /// under backpressure, or a core for mice without them; none is of more than was asked for;
    /// the first in order is always served; and the same again is the same.
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

    /// What was asked for once is granted in so many epochs as it has cells for at most, and
    /// what has no path stays.
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
