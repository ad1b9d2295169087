//! Tests of PortFC's map and state machines, on the paper's NDC(4, 1): nodes 0 to
//! 15, switches 16 to 19 of layer 0 and 20 to 23 of layer 1, as in its Figure 6.

use super::map::{Place, QueueMap, Role, Unmappable};
use super::*;
use crate::flow_control::notes::Notes;

const N: u32 = 4;

/// Port `layer` of a node.
fn node(node: u32, layer: u32) -> u32 {
    2 * node + layer
}

/// Port `index` of a switch, numbered as in Figure 6.
fn switch(switch: u32, index: u32) -> u32 {
    2 * N * N + (switch - N * N) * N + index
}

/// Nodes with the same upper digit share a switch of layer 0, those with the same
/// lower digit one of layer 1.
fn ndc() -> Vec<Place> {
    let mut places = Vec::new();
    for n in 0..N * N {
        let peers = [switch(N * N + n / N, n % N), switch(N * N + N + n % N, n / N)];
        places.extend((0..2).map(|layer| Place {
            device: n,
            index: layer as u16,
            peer: peers[layer as usize],
            node: true,
        }));
    }
    for s in 0..2 * N {
        places.extend((0..N).map(|index| {
            let peer = if s < N { node(s * N + index, 0) } else { node(index * N + s - N, 1) };
            Place { device: N * N + s, index: index as u16, peer, node: false }
        }));
    }
    places
}

fn map() -> QueueMap {
    QueueMap::new(ndc()).expect("an NDC(4, 1)")
}

/// The egress ports of a route over these devices.
fn route(devices: &[u32]) -> Vec<u32> {
    let places = ndc();
    let link = |from: u32, to: u32| {
        let mut ports = (0..).zip(&places).filter(|(_, p)| p.device == from);
        ports.find(|(_, p)| places[p.peer as usize].device == to).expect("neighbours").0
    };
    devices.windows(2).map(|pair| link(pair[0], pair[1])).collect()
}

/// Figure 6 and its text. F5 is drawn there and not spoken of.
#[test]
fn the_flows_of_figure_6_are_in_its_queues() {
    let map = map();
    let node_15: [(&str, &[u32], u16); 9] = [
        ("F1", &[15, 19, 12, 20, 0], 0),
        ("F2", &[15, 19, 13, 21, 1], 1),
        ("F3", &[15, 19, 14, 22, 2], 2),
        ("F4", &[15, 19, 12, 20, 4], 0),
        ("F6", &[15, 19, 12], 3),
        ("F7", &[15, 19, 13], 4),
        ("F8", &[15, 19, 14], 5),
        ("F9", &[3, 23, 15, 19, 12], 6),
        ("F10", &[7, 23, 15, 19, 13], 6),
    ];
    let switch_23: [(&str, &[u32], u16); 6] = [
        ("F11", &[11, 23, 15], 3),
        ("F12", &[11, 23, 15, 19, 12], 0),
        ("F13", &[11, 23, 15, 19, 13], 1),
        ("F14", &[11, 23, 15, 19, 14], 2),
        ("F15", &[3, 23, 15, 19, 14], 2),
        ("F16", &[7, 23, 15], 3),
    ];
    for (name, devices, queue) in node_15 {
        let path = route(devices);
        let at = path.iter().position(|&port| port == node(15, 0)).expect("over node 15");
        let found = if at == 0 { map.queue(&path) } else { map.relay() };
        assert_eq!(found, queue, "{name}");
    }
    for (name, devices, queue) in switch_23 {
        assert_eq!(map.queue(&route(devices)[1..]), queue, "{name}");
    }
    assert_eq!((map.of_switch() + 1, map.of_node() + 1), (5, 8), "with HQ, section III-B");
}

/// The same queue is found where a packet is put, where a frame is read, and by
/// whom it leads to: for all routes of two and four hops.
#[test]
fn packets_frames_and_ports_agree_on_every_route() {
    let (map, places) = (map(), ndc());
    let neighbours = |device: u32, ports: std::ops::Range<u32>| {
        let of = |i| if device < N * N { node(device, i) } else { switch(device, i) };
        ports.map(|i| places[places[of(i) as usize].peer as usize].device).collect::<Vec<_>>()
    };
    let mut routes = 0;
    for src in 0..N * N {
        for first in neighbours(src, 0..2) {
            for via in neighbours(first, 0..N).into_iter().filter(|&v| v != src) {
                let two = route(&[src, first, via]);
                let queue = map.queue(&two);
                assert_eq!(map.role(two[0], queue), Role::TwoHop);
                assert_eq!(map.leads_to(two[0], queue), Some(two[1]));
                assert_eq!(map.named(two[0], N as u16 - 1, places[two[1] as usize].index), Some(queue));
                assert_eq!(map.role(two[1], map.queue(&two[1..])), Role::Ddq);
                assert_eq!(map.leads_to(two[1], map.queue(&two[1..])), None);
                let second = neighbours(via, 0..2).into_iter().find(|&s| s != first).expect("two");
                for dst in neighbours(second, 0..N).into_iter().filter(|&d| d != via) {
                    let four = route(&[src, first, via, second, dst]);
                    let own = map.queue(&four);
                    assert_eq!(map.role(four[0], own), Role::FourHop);
                    assert_eq!(map.leads_to(four[0], own), Some(four[1]));
                    assert_eq!(map.named(four[0], 0, places[four[1] as usize].index), Some(own));
                    let ihfq = map.queue(&four[1..]);
                    assert_eq!(map.role(four[1], ihfq), Role::Ihfq);
                    assert_eq!(map.leads_to(four[1], ihfq), Some(four[3]));
                    let named = map.named(four[1], N as u16 - 1, places[four[3] as usize].index);
                    assert_eq!(named, Some(ihfq));
                    assert_eq!(map.role(four[3], map.queue(&four[3..])), Role::Ddq);
                    routes += 1;
                }
            }
        }
    }
    assert_eq!(routes, 16 * 2 * 3 * 3);
}

/// Different next paths have different queues: n − 1 is the minimum.
#[test]
fn no_two_paths_share_a_queue() {
    let map = map();
    let queues = |paths: &[[u32; 5]]| {
        let mut of: Vec<u16> = paths.iter().map(|path| map.queue(&route(path)[1..])).collect();
        of.sort_unstable();
        of
    };
    // From switch 21 through node 5 to the other three ports of switch 17.
    assert_eq!(
        queues(&[[1, 21, 5, 17, 4], [1, 21, 5, 17, 6], [9, 21, 5, 17, 7], [13, 21, 5, 17, 7]]),
        [0, 1, 2, 2]
    );
}

#[test]
fn networks_that_are_no_ndc_of_two_layers_are_refused() {
    let place = |device, index, peer, node| Place { device, index, peer, node };
    let between = |a, b| QueueMap::new(vec![place(0, 0, 1, a), place(1, 0, 0, b)]);
    assert_eq!(between(false, false), Err(Unmappable::BetweenSwitches(0)));
    assert_eq!(between(true, true), Err(Unmappable::BetweenNodes(0)));
    assert_eq!(between(true, false), Err(Unmappable::NoSwitch), "a switch of one port");
    // A node with three ports to a switch each.
    let star: Vec<Place> = (0..3)
        .flat_map(|i| [place(0, i, 2 * u32::from(i) + 1, true), place(1, i, 2 * u32::from(i), false)])
        .collect();
    assert_eq!(QueueMap::new(star), Err(Unmappable::Ports(0, 3)));
}

/// Parameters on the NDC, thresholds 3,000 and 1,000 for IHFQs, 2,000 and 500 for DDQs.
fn params(variant: Variant) -> PortFcParams {
    let ports = ndc().len();
    PortFcParams {
        map: Arc::new(map()),
        queue_at: Arc::from([5, 7]),
        xoff: vec![3_000; ports],
        xon: vec![1_000; ports],
        ddq_xoff: vec![2_000; ports],
        ddq_xon: vec![500; ports],
        lane: 0,
        relay_order: RelayOrder::First,
        variant,
        response_time: 0,
        needs: vec![],
        doubts: vec![],
    }
}

fn portfc(variant: Variant) -> PortFc {
    PortFc::new(&params(variant), ndc().len())
}

fn packet(port: u32, queue: u16) -> QueueEntry {
    QueueEntry {
        port,
        lane: 0,
        queue,
        own: false,
        size: 1_000,
        queued: 0,
        hop: 0,
        flow: 0,
        response: false,
        ingress: None,
        upstream: 0,
        passed: 0,
        counted: false,
        pausing: false,
    }
}

fn drain(device: &mut Notes) -> Vec<String> {
    std::mem::take(&mut device.log)
}

/// Algorithms 1 and 2 at port 1 of switch 17, whose ports are 36 to 39.
#[test]
fn the_sum_of_the_forwarding_queues_pauses_all_other_ports() {
    let (port, mut fc) = (switch(17, 1), portfc(Variant::default()));
    let mut device = Notes { ports: (0..4).map(|i| switch(17, i)).collect(), ..Notes::default() };
    for queue in [0, 1] {
        fc.enqueued(&mut device, &mut packet(port, queue));
    }
    assert!(drain(&mut device).is_empty());
    fc.enqueued(&mut device, &mut packet(port, 2));
    let words =
        |verb: &str, queue: u16| [0, 2, 3].map(|i| format!("{verb} {} q{queue} p1", switch(17, i))).to_vec();
    assert_eq!(drain(&mut device), words("stop", 2), "the third packet reaches 3,000");
    fc.enqueued(&mut device, &mut packet(port, 0));
    fc.left(&mut device, &mut packet(port, 2));
    fc.left(&mut device, &mut packet(port, 0));
    assert!(drain(&mut device).is_empty(), "2,000 are above X_on, and nobody is told twice");
    fc.left(&mut device, &mut packet(port, 1));
    assert_eq!(drain(&mut device), words("go", 1));
}

/// Where the longest queue decides, two queues of 2,000 do not reach 3,000, and one of 2,000 keeps a pause that
/// another one caused.
#[test]
fn the_longest_forwarding_queue_pauses_all_other_ports() {
    let (port, mut fc) = (switch(17, 1), portfc(Variant { longest_alone: true, ..Variant::default() }));
    let mut device = Notes { ports: (0..4).map(|i| switch(17, i)).collect(), ..Notes::default() };
    let words =
        |verb: &str, queue: u16| [0, 2, 3].map(|i| format!("{verb} {} q{queue} p1", switch(17, i))).to_vec();
    for queue in [0, 0, 1, 1] {
        fc.enqueued(&mut device, &mut packet(port, queue));
    }
    assert!(drain(&mut device).is_empty(), "4,000 in all, and 2,000 in each");
    fc.enqueued(&mut device, &mut packet(port, 1));
    assert_eq!(drain(&mut device), words("stop", 1));
    for _ in 0..3 {
        fc.left(&mut device, &mut packet(port, 1));
    }
    assert!(drain(&mut device).is_empty(), "queue 0 holds 2,000, above X_on");
    fc.left(&mut device, &mut packet(port, 0));
    assert_eq!(drain(&mut device), words("go", 0));
    fc.enqueued(&mut device, &mut packet(port, 3));
    fc.enqueued(&mut device, &mut packet(port, 3));
    assert_eq!(drain(&mut device), words("stop", 3), "the DDQ counts as before");
}

/// The two sets of a port do not know of each other; with one flag, the end of the
/// one's congestion is taken for that of the other, which stays paused upstream.
#[test]
fn two_flags_keep_the_sets_apart_and_one_does_not() {
    let port = switch(17, 1);
    let frames_with = |variant| {
        let mut fc = portfc(variant);
        let mut device = Notes { ports: vec![port, switch(17, 0)], ..Notes::default() };
        for queue in [3, 3, 0, 1, 2] {
            fc.enqueued(&mut device, &mut packet(port, queue));
        }
        for queue in [0, 1, 2, 3, 3] {
            fc.left(&mut device, &mut packet(port, queue));
        }
        drain(&mut device)
    };
    let other = switch(17, 0);
    let both = frames_with(Variant::default());
    assert_eq!(
        both,
        ["stop q3", "stop q2", "go q1", "go q3"].map(|w| w.replace(' ', &format!(" {other} ")) + " p1")
    );
    let one = frames_with(Variant { one_flag: true, ..Variant::default() });
    // The DDQ's pause was sent; only the IHFQs are resumed, and never the DDQ.
    assert_eq!(one, ["stop q3", "go q1"].map(|w| w.replace(' ', &format!(" {other} ")) + " p1"));
}

/// Algorithm 3: a node obeys a DDQ's frame, and passes it on, but not back.
#[test]
fn a_node_obeys_and_relays_frames_about_direct_queues() {
    let mut fc = portfc(Variant::default());
    let mut device = Notes { relays: vec![node(15, 0), node(15, 1)], ..Notes::default() };
    let frame = |pause, queue, port| PortPauseFrame { pause, queue, port };
    // Node 15 attaches to port 3 of switch 19: ports 0 to 2 are queues 0 to 2.
    fc.received(&mut device, node(15, 0), &frame(true, 1, 2).into());
    assert_eq!(drain(&mut device), ["pause 30/0 Queue(2)"]);
    fc.received(&mut device, node(15, 0), &frame(true, 3, 2).into());
    assert_eq!(drain(&mut device), ["pause 30/0 Queue(5)", "stop 31 q3 p2"]);
    fc.received(&mut device, node(15, 0), &frame(false, 3, 2).into());
    assert_eq!(drain(&mut device), ["resume 30/0 Queue(5)", "go 31 q3 p2"]);
    // Node 13 attaches to port 1: port 2 is queue 1, and port 1 is its own.
    fc.received(&mut device, node(13, 0), &frame(true, 0, 2).into());
    fc.received(&mut device, node(13, 0), &frame(true, 3, 1).into());
    assert_eq!(drain(&mut device), ["pause 26/0 Queue(1)"]);
    let mut silent = portfc(Variant { no_signal_relay: true, ..Variant::default() });
    silent.received(&mut device, node(15, 0), &frame(true, 3, 2).into());
    assert_eq!(drain(&mut device), ["pause 30/0 Queue(5)"]);
}

/// Algorithm 4: port 2 of switch 19 on the other side of node 15 is an IHFQ of
/// switch 23's port to that node, and nothing is passed on.
#[test]
fn a_switch_pauses_the_queue_of_the_port_that_the_frame_names() {
    let mut fc = portfc(Variant::default());
    let mut device = Notes { ports: (0..4).map(|i| switch(23, i)).collect(), ..Notes::default() };
    fc.received(&mut device, switch(23, 3), &(PortPauseFrame { pause: true, queue: 3, port: 2 }).into());
    assert_eq!(drain(&mut device), [format!("pause {}/0 Queue(2)", switch(23, 3))]);
    // The number is skipped at which node 13 attaches to switch 19.
    fc.received(&mut device, switch(21, 3), &(PortPauseFrame { pause: false, queue: 3, port: 2 }).into());
    assert_eq!(drain(&mut device), [format!("resume {}/0 Queue(1)", switch(21, 3))]);
}

/// A switch whose link recovers sends the active pauses again. A node passes on the pauses of its other port,
/// and resumes them when that link fails.
#[test]
fn a_recovered_link_gets_the_active_pauses() {
    let (port, mut fc) = (switch(17, 1), portfc(Variant::default()));
    let mut device = Notes { ports: vec![switch(17, 0), port], ..Notes::default() };
    for _ in 0..2 {
        fc.enqueued(&mut device, &mut packet(port, 3));
    }
    drain(&mut device);
    fc.link_reset(&mut device, switch(17, 0));
    assert_eq!(drain(&mut device), [format!("stop {} q3 p1", switch(17, 0))]);
    fc.link_reset(&mut device, port);
    assert!(drain(&mut device).is_empty(), "a port does not hear of itself");

    let mut device = Notes { relays: vec![node(15, 0), node(15, 1)], paused: vec![5], ..Notes::default() };
    fc.link_failed(&mut device, node(15, 0), 0);
    assert_eq!(drain(&mut device), ["resume 30/0 Queue(5)", "go 31 q3 p2"]);
    fc.link_reset(&mut device, node(15, 1));
    assert_eq!(drain(&mut device), ["stop 31 q3 p2"]);
}

/// Section VI-D: nodes 0 to 2, domains 3 and 4, rails 5 and 6, and an aggregation switch 7 above the rails.
#[test]
fn queues_between_switches_are_of_two_types() {
    let links = [(0, 3), (0, 5), (1, 4), (1, 6), (2, 4), (2, 5), (5, 7), (6, 7)];
    let mut places: Vec<Place> = Vec::new();
    for (a, b) in links {
        for (device, peer) in [(a, 1), (b, 0)] {
            let index = places.iter().filter(|p| p.device == device).count() as u16;
            let peer = places.len() as u32 / 2 * 2 + peer;
            places.push(Place { device, index, peer, node: device < 3 });
        }
    }
    let map = QueueMap::new(places.clone()).expect("rails under an aggregation switch");
    // Switch 5 has the most ports, three.
    assert_eq!((map.n, map.of_switch(), map.of_node()), (3, 4, 5));
    let route = |devices: &[u32]| -> Vec<u32> {
        let is = |port: u32, from, to| {
            let place = places[port as usize];
            place.device == from && places[place.peer as usize].device == to
        };
        let link = |pair: &[u32]| (0..places.len() as u32).find(|&port| is(port, pair[0], pair[1]));
        devices.windows(2).map(|pair| link(pair).expect("neighbours")).collect()
    };
    use Role::{Ddq, FourHop, Ihfq, Onward, TwoHop};
    for (devices, roles) in [
        (&[0, 5, 7, 6, 1][..], &[TwoHop, Onward, Onward, Ddq][..]),
        (&[0, 5, 7, 6, 1, 4, 2], &[FourHop, Ihfq, Ihfq, Ihfq, FourHop, Ddq]),
        (&[0, 5, 2, 4, 1], &[FourHop, Ihfq, TwoHop, Ddq]),
    ] {
        let ports = route(devices);
        assert!(!map.climbs_again(&ports));
        for (at, &port) in ports.iter().enumerate() {
            let (queue, relayed) = (map.queue(&ports[at..]), at > 0 && map.place(port).node);
            if relayed {
                continue;
            }
            assert_eq!(map.role(port, queue), roles[at], "{devices:?} at {at}");
            // The congested port is the next switch's: after a relay two links ahead.
            let Some(congested) = map.leads_to(port, queue) else { continue };
            let over = usize::from(roles[at] == Ihfq && !map.to_switch(port));
            assert_eq!(congested, ports[at + 1 + over]);
            // A relay passes on only frames about direct and onward queues.
            let type_b = over > 0 || [Onward, TwoHop].contains(&roles[at]);
            let frame = (if type_b { map.n - 1 } else { 0 }, map.place(congested).index);
            assert_eq!(map.named(port, frame.0, frame.1), Some(queue));
        }
    }
    assert!(map.climbs_again(&route(&[0, 5, 7, 6, 7, 5, 2])));
}

/// The view of oracles: on the NDC(4, 1) a switch's port has four queues, of which the first three pause
/// together, and a host's seven.
#[test]
fn oracles_see_the_queues_of_the_map() {
    let whole = params(Variant::default());
    let queues = whole.onward_queues().expect("it has some");
    assert_eq!((queues.of_host(), queues.relay()), (7, 6));
    assert_eq!([queues.queue_at(0), queues.queue_at(1)], [5, 7]);
    assert_eq!([0, 2, 3].map(|queue| queues.together(queue)), [0..3, 0..3, 3..4]);
    assert!(!queues.loses_resumes());
    let one_flag = params(Variant { one_flag: true, ..Variant::default() });
    assert!(one_flag.onward_queues().expect("it has some").loses_resumes());
}
