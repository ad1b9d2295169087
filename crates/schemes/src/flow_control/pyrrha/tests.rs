//! One device, six ports: 0 to 2 lead to neighbours upstream, 3 and 4 downstream; 5 is
//! none of the device's. Frames are written down by the device of `notes`.

use super::super::FlowControl;
use super::super::notes::Notes;
use super::super::seen::{Ahead, Roots};
use super::frame::{RootPauseFrame, Word};
use super::*;
use std::collections::BTreeMap;

const K_PAUSE: u64 = 3_000;
const K_RESUME: u64 = 1_000;

fn params(organisation: Organisation) -> PyrrhaParams {
    let places = Places {
        of: vec![(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (7, 0), (7, 1), (8, 0)],
        ports: vec![vec![0, 1, 2, 3, 4], vec![], vec![], vec![], vec![], vec![], vec![], vec![5, 6], vec![7]],
        host: vec![false; 8],
        to_host: vec![false; 8],
        down: (0..8).map(|port| matches!(port, 3 | 4)).collect(),
    };
    PyrrhaParams {
        organisation,
        merging: Merging::Soft,
        queues: 4,
        k_pause: vec![K_PAUSE; 8],
        k_resume: vec![K_RESUME; 8],
        hosts_obey: true,
        acks_in_queues: true,
        variant: Variant::default(),
        deaf: Vec::new(),
        pfc: None,
        places: Arc::new(places),
        response_time: 0,
    }
}

/// The device with its queues; path 0 leads through port 3 and then roots 5 and 7, path 1 through port 3 and
/// then root 5, path 2 only through port 3.
struct Bench {
    pyrrha: Pyrrha,
    device: Notes,
    queues: BTreeMap<(u32, u16), Vec<QueueEntry>>,
}

impl Bench {
    fn new(organisation: Organisation) -> Self {
        let device = Notes {
            ports: vec![0, 1, 2, 3, 4],
            paths: vec![vec![3, 5, 7], vec![3, 5], vec![3]],
            ..Notes::default()
        };
        Self { pyrrha: Pyrrha::new(&params(organisation), 8, &[0]), device, queues: BTreeMap::new() }
    }

    fn bytes(&self, port: u32, queue: u16) -> u64 {
        self.queues.get(&(port, queue)).into_iter().flatten().map(|p| u64::from(p.size)).sum()
    }

    /// A packet of 1000 bytes comes from `ingress` and leaves through `port`. Returns its queue.
    fn arrive(&mut self, ingress: u32, port: u32, path: u32) -> u16 {
        let mut packet = QueueEntry {
            port,
            lane: 0,
            queue: 0,
            own: false,
            size: 1_000,
            queued: 0,
            hop: path,
            flow: path,
            response: false,
            ingress: Some(ingress),
            upstream: 0,
            passed: 0,
            counted: false,
            pausing: false,
        };
        packet.queue = self.pyrrha.classify(&mut self.device, &mut packet);
        self.join(packet)
    }

    fn join(&mut self, mut packet: QueueEntry) -> u16 {
        let key = (packet.port, packet.queue);
        packet.queued = self.bytes(key.0, key.1) + 1_000;
        self.queues.entry(key).or_default().push(packet);
        self.device.bytes.insert(packet.port, self.bytes(packet.port, 0));
        self.pyrrha.enqueued(&mut self.device, &packet);
        packet.queue
    }

    /// The first packet of a queue leaves it: for the wire, or by [`Pyrrha::onward`]. Returns the queue that
    /// it joins, 0 if it is sent.
    fn serve(&mut self, port: u32, queue: u16) -> u16 {
        let mut packet = self.queues.get_mut(&(port, queue)).expect("used").remove(0);
        packet.queued = self.bytes(port, queue);
        self.device.bytes.insert(port, self.bytes(port, 0));
        self.pyrrha.left(&mut self.device, &packet);
        if queue == 0 {
            return 0;
        }
        packet.queue = queue;
        let next = self.pyrrha.onward(&mut self.device, &mut packet);
        if next > 0 {
            packet.queue = next;
            self.join(packet);
        }
        next
    }

    fn hear(&mut self, port: u32, word: Word, root: u32, epoch: u16, sequence: u16) {
        let root = self.pyrrha.params.places.id(root, epoch);
        let frame = RootPauseFrame { word, root, priority: 0, sequence };
        self.pyrrha.received(&mut self.device, port, &frame);
    }

    /// MERGE(`old` → `new`) comes to port 3.
    fn hear_merge(&mut self, old: u32, new: u32) {
        let into = self.pyrrha.params.places.id(new, 1);
        self.hear(3, Word::Merge { into }, old, 1, 1);
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.device.log)
    }
}

#[test]
fn a_root_claims_pauses_further_packets_resumes_and_disappears() {
    let mut bench = Bench::new(Organisation::Hiq);
    for _ in 0..4 {
        bench.arrive(0, 3, 2);
    }
    // The fourth packet brings the OQ above K_pause: a claim, and no frame.
    assert!(bench.log().is_empty());
    assert_eq!(bench.pyrrha.tally.claims, 1);
    for ingress in [1, 1, 0] {
        bench.arrive(ingress, 3, 2);
    }
    // Each ingress once.
    assert_eq!(bench.log(), ["stop 1 0:3#1 /1", "stop 0 0:3#1 /1"]);
    for _ in 0..5 {
        bench.serve(3, 0);
    }
    assert!(bench.log().is_empty());
    bench.serve(3, 0);
    assert_eq!(bench.log(), ["go 1 0:3#1 /1", "go 0 0:3#1 /1"]);
    // It is a root while anything is assigned to it.
    assert!(bench.pyrrha.ports[3].claimed);
    bench.hear(1, Word::Release, 3, 1, 1);
    assert!(bench.pyrrha.ports[3].claimed);
    bench.hear(0, Word::Release, 3, 1, 1);
    assert!(!bench.pyrrha.ports[3].claimed && bench.pyrrha.pulled.quiet_up_to(3, 0) > 0);
    assert!(bench.log().is_empty());
}

#[test]
fn an_isolation_queue_is_paused_relays_resumes_and_is_given_back() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 9, 1);
    assert_eq!(bench.log(), ["pause 3/0 1 for 5"]);
    // Only packets through the root wait in its queue.
    assert_eq!((bench.arrive(0, 3, 1), bench.arrive(0, 3, 2)), (1, 0));
    for _ in 0..3 {
        bench.arrive(0, 3, 1);
    }
    assert_eq!(bench.log(), ["stop 0 7:0#9 /1"]);
    bench.hear(3, Word::Resume, 5, 9, 1);
    assert_eq!(bench.log(), ["resume 3/0 Queue(1)"]);
    for left in [3, 2, 1] {
        assert_eq!(bench.serve(3, 1), 0);
        assert_eq!(bench.bytes(3, 1), left * 1_000);
    }
    assert_eq!(bench.log(), ["go 0 7:0#9 /1"]);
    bench.serve(3, 1);
    // Empty and resumed, but the neighbour upstream still has a queue for the root.
    assert!(bench.log().is_empty());
    bench.hear(0, Word::Release, 5, 9, 1);
    assert_eq!(bench.log(), ["release 3 7:0#9 /1"]);
    assert!(bench.pyrrha.pulled.quiet_up_to(3, 0) > 0);
}

/// Counted by ingress, a neighbour is stopped and let go by its own bytes in the queue.
#[test]
fn a_neighbour_may_be_paused_by_its_own_packets() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.pyrrha.params.variant.count_by_ingress = true;
    bench.hear(3, Word::Pause, 5, 9, 1);
    bench.log();
    for ingress in [0, 0, 0, 1, 1] {
        assert_eq!(bench.arrive(ingress, 3, 1), 1);
    }
    assert_eq!(bench.log(), [""; 0]);
    bench.arrive(0, 3, 1);
    assert_eq!(bench.log(), ["stop 0 7:0#9 /1"]);
    bench.hear(3, Word::Resume, 5, 9, 1);
    bench.log();
    for said in [&[][..], &[], &["go 0 7:0#9 /1"]] {
        bench.serve(3, 1);
        assert_eq!(bench.log(), said);
    }
}

#[test]
fn a_root_abdicates_and_claims_again_only_when_it_is_armed() {
    let mut bench = Bench::new(Organisation::Hiq);
    for ingress in [0, 0, 0, 0, 1] {
        bench.arrive(ingress, 3, 1);
    }
    assert_eq!(bench.log(), ["stop 1 0:3#1 /1"]);
    bench.hear(3, Word::Pause, 5, 4, 1);
    // Upstream neighbours receive the new root, and stop for no root.
    assert_eq!(bench.log(), ["merge into 7:0#4 of 1 0:3#1 /0", "pause 3/0 1 for 5"]);
    assert!(!bench.pyrrha.ports[3].claimed);
    assert_eq!(bench.pyrrha.tally.abdications, 1);
    // The OQ is as long as before, and no root: until as much has arrived since.
    for _ in 0..3 {
        bench.arrive(1, 3, 2);
    }
    assert_eq!(bench.pyrrha.tally.claims, 1);
    bench.arrive(1, 3, 2);
    assert_eq!(bench.pyrrha.tally.claims, 2);
    // No upstream neighbour is assigned to the root, and no packet waits.
    bench.log();
    bench.hear(3, Word::Resume, 5, 4, 1);
    assert_eq!(bench.log(), ["resume 3/0 Queue(1)", "release 3 7:0#4 /1"]);
}

#[test]
fn a_merge_pauses_no_port_and_no_root_abdicates_for_it() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 1, 1);
    for _ in 0..4 {
        bench.arrive(0, 3, 1);
    }
    for _ in 0..4 {
        bench.arrive(1, 3, 2);
    }
    assert!(bench.pyrrha.ports[3].claimed);
    bench.log();
    bench.hear_merge(5, 6);
    assert_eq!(bench.log(), ["resume 3/0 Queue(1)", "merge into 7:1#1 of 0 7:0#1 /0"]);
    assert!(bench.pyrrha.ports[3].claimed);
    assert_eq!(bench.pyrrha.tally.abdications, 0);
}

#[test]
fn a_queue_that_merges_away_and_is_too_long_pauses_for_its_own_port() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 1, 1);
    for _ in 0..3 {
        assert_eq!(bench.arrive(0, 3, 1), 1);
    }
    bench.log();
    // Root 5 is a false root; 6 is not on this path.
    bench.hear_merge(5, 6);
    bench.log();
    // Above K_pause, in a queue that waits only for this port: it claims, and pauses.
    bench.arrive(0, 3, 1);
    assert!(bench.pyrrha.ports[3].claimed);
    bench.arrive(1, 3, 1);
    assert_eq!(bench.log(), ["stop 1 0:3#1 /1"]);
    // The output queue is empty, but no neighbour resumes before this queue is short.
    for _ in 0..3 {
        bench.serve(3, 1);
    }
    assert!(!bench.log().iter().any(|line| line.starts_with("go 1 0:3")));
    bench.serve(3, 1);
    assert!(bench.log().iter().any(|line| line == "go 1 0:3#1 /1"));
}

/// The same queue, where such queues never pause: the port claims nothing.
#[test]
fn a_queue_that_merges_away_may_pause_nobody() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.pyrrha.params.variant.merging_never_pauses = true;
    bench.hear(3, Word::Pause, 5, 1, 1);
    for _ in 0..3 {
        bench.arrive(0, 3, 1);
    }
    bench.hear_merge(5, 6);
    bench.log();
    for _ in 0..4 {
        assert_eq!(bench.arrive(1, 3, 1), 1);
    }
    assert!(!bench.pyrrha.ports[3].claimed);
    assert_eq!(bench.log(), [""; 0]);
}

/// Counted over ports, two short queues for a root pause a neighbour, and both have to be short.
#[test]
fn queues_of_several_ports_may_count_as_one() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.pyrrha.params.variant.count_over_ports = true;
    bench.device.paths.push(vec![4, 5]);
    bench.hear(3, Word::Pause, 5, 9, 1);
    bench.hear(4, Word::Pause, 5, 9, 1);
    bench.log();
    for (port, path) in [(3, 1), (4, 3), (3, 1)] {
        assert_eq!(bench.arrive(0, port, path), 1);
    }
    assert_eq!(bench.log(), [""; 0]);
    // 2,000 B at each port are more than K_pause.
    bench.arrive(0, 4, 3);
    assert_eq!(bench.log(), ["stop 0 7:0#9 /1"]);
    bench.hear(3, Word::Resume, 5, 9, 1);
    bench.hear(4, Word::Resume, 5, 9, 1);
    bench.log();
    // The queue that asked is empty, and 2,000 B at the other port are above K_resume.
    for (port, said) in [(4, ""), (4, ""), (3, "go 0 7:0#9 /1")] {
        bench.serve(port, 1);
        assert_eq!(bench.log().concat(), said);
    }
}

/// Only a port that leads down abdicates, if so chosen.
#[test]
fn a_port_that_leads_up_may_remain_a_root() {
    for down in [true, false] {
        let mut bench = Bench::new(Organisation::Hiq);
        bench.pyrrha.params.variant.merge_down_only = true;
        let places = Arc::get_mut(&mut bench.pyrrha.params.places).unwrap();
        places.down[3] = down;
        for ingress in [0, 0, 0, 0, 1] {
            bench.arrive(ingress, 3, 1);
        }
        bench.log();
        bench.hear(3, Word::Pause, 5, 4, 1);
        assert_eq!(bench.pyrrha.ports[3].claimed, !down);
        assert_eq!(bench.log().iter().filter(|line| line.starts_with("merge")).count(), usize::from(down));
    }
}

/// A MERGE may assign a queue to the new root: it takes packets, stops nobody, and is released with the old one
/// or when it is empty.
#[test]
fn a_merge_may_assign_a_resumed_queue() {
    for waits in [false, true] {
        let mut bench = Bench::new(Organisation::Hiq);
        bench.pyrrha.params.variant.merge_enters_resumed = true;
        bench.device.paths.push(vec![3, 6]);
        bench.hear(3, Word::Pause, 5, 1, 1);
        bench.arrive(0, 3, 1);
        bench.log();
        bench.hear_merge(5, 6);
        assert_eq!(bench.log(), ["resume 3/0 Queue(1)"]);
        if waits {
            assert_eq!(bench.arrive(0, 3, 3), 2);
            bench.serve(3, 1);
            assert_eq!(bench.log(), ["release 3 7:0#1 /1"]);
            bench.serve(3, 2);
            assert_eq!(bench.log(), ["release 3 7:1#1 /1"]);
        } else {
            bench.serve(3, 1);
            assert_eq!(bench.log(), ["release 3 7:0#1 /1", "release 3 7:1#1 /1"]);
        }
    }
}

/// It has claimed for a queue that merges away; then that queue waits for its root again,
/// and no packet passes the output queue, which is empty.
#[test]
fn a_root_whose_merging_queue_is_paused_again_resumes() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 1, 1);
    for _ in 0..3 {
        bench.arrive(0, 3, 1);
    }
    bench.hear_merge(5, 6);
    bench.arrive(0, 3, 1);
    bench.log();
    bench.arrive(1, 3, 1);
    assert_eq!(bench.log(), ["stop 1 0:3#1 /1"]);
    bench.hear(3, Word::Pause, 5, 2, 2);
    assert_eq!(bench.log(), ["pause 3/0 1 for 5", "go 1 0:3#1 /1", "merge into 7:0#2 of 1 0:3#1 /0"]);
}

/// A neighbour that another port still pauses for the old root receives no MERGE from this one.
#[test]
fn a_merge_is_not_sent_to_a_neighbour_that_another_port_pauses() {
    for other in [false, true] {
        let mut bench = Bench::new(Organisation::Hiq);
        bench.device.paths.push(vec![4, 5]);
        bench.hear(3, Word::Pause, 5, 1, 1);
        bench.hear(4, Word::Pause, 5, 1, 1);
        for _ in 0..4 {
            bench.arrive(0, 3, 1);
            if other {
                bench.arrive(0, 4, 3);
            }
        }
        let stops = bench.log().iter().filter(|line| line.starts_with("stop 0")).count();
        assert_eq!(stops, 1);
        bench.hear_merge(5, 6);
        let merged = bench.log().iter().any(|line| line.starts_with("merge into 7:1#1 of 0 7:0#1"));
        assert_eq!(merged, !other);
    }
}

/// Single tier: a queue of two roots asks for the one that is paused, as long as one is.
#[test]
fn a_shared_queue_pauses_for_its_paused_roots() {
    for (resumed, said) in
        [(None, &["stop 0 7:0#1 /1", "stop 0 8:0#1 /1"][..]), (Some(7), &["stop 0 7:0#1 /1"])]
    {
        let mut bench = Bench::new(Organisation::SingleTier);
        bench.hear(3, Word::Pause, 5, 1, 1);
        bench.hear(3, Word::Pause, 7, 1, 1);
        let queue = bench.arrive(0, 3, 0);
        if let Some(root) = resumed {
            bench.hear(3, Word::Resume, root, 1, 1);
        }
        bench.log();
        for _ in 0..3 {
            assert_eq!(bench.arrive(0, 3, 0), queue);
        }
        assert_eq!(bench.log(), said, "{resumed:?}");
    }
}

/// The view of oracles on a port and the roots ahead of it.
#[test]
fn observers_see_roots_their_queues_and_their_paused_neighbours() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 9, 1);
    for _ in 0..4 {
        bench.arrive(0, 3, 1);
    }
    bench.hear(4, Word::Pause, 7, 9, 1);
    bench.hear(4, Word::Resume, 7, 9, 1);
    let pyrrha = &bench.pyrrha;
    let five = pyrrha.root_ahead(3, 0, 5).expect("it paused");
    assert_eq!(five, Ahead { root: 5, paused: true, holding: &[0] });
    assert_eq!((pyrrha.queues_of(3, 0, 5), pyrrha.sharing(3, 0, 1)), (vec![1], &[5][..]));
    assert_eq!(pyrrha.ahead(3, 0), [five]);
    assert!(pyrrha.root_ahead(4, 0, 7).is_none_or(|seven| !seven.paused));
    assert!(pyrrha.root_ahead(3, 0, 7).is_none() && !pyrrha.is_root(3, 0));
    assert_eq!((pyrrha.pairs_of(1) - pyrrha.pairs_of(0), pyrrha.resume_level(3)), (1, K_RESUME));
    // Port 2 becomes a root, and stops who goes on sending to it.
    for _ in 0..5 {
        bench.arrive(0, 2, 2);
    }
    assert!(bench.pyrrha.is_root(2, 0));
    assert_eq!(bench.pyrrha.stopped_by_output(2, 0), [0]);
}

/// A packet of the queue of root 5 goes on to that of root 7, which is paused as well; so says the seam.
#[test]
fn a_packet_moves_to_the_queue_of_the_next_root() {
    let mut bench = Bench::new(Organisation::Hiq);
    bench.hear(3, Word::Pause, 5, 1, 1);
    bench.hear(3, Word::Pause, 7, 1, 1);
    let first = bench.arrive(0, 3, 0);
    bench.hear(3, Word::Resume, 5, 1, 1);
    let mut packet = bench.queues.get_mut(&(3, first)).expect("it waits there").remove(0);
    packet.queued = 0;
    bench.pyrrha.left(&mut bench.device, &packet);
    packet.queue = first;
    let next = FlowControl::Pyrrha(bench.pyrrha).onward(&mut bench.device, &mut packet);
    assert!(next > 0 && next != first, "{first}, then {next}");
}
