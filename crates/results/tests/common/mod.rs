//! Runs made by hand: a ring of three switches with a host each, one lossless
//! and one lossy priority.
#![allow(dead_code)] // each test file uses its part

use std::path::{Path, PathBuf};

use xoff_net::topology::{Node, NodeKind, Port, PortId, Topology};
use xoff_plan::balancing::LoadBalancing;
use xoff_plan::plan::{Account, Buffer, DELIVER, Faults, Flow, Lane, Limit, Measure, PacketFormat, Plan};
use xoff_schemes::flow_control::pfc::{PfcParams, Relay};
use xoff_schemes::flow_control::{FlowControlParams, Headroom};
use xoff_schemes::transport::{TransportKind, TransportParams, go_back_n::GoBackN};
use xoff_sim::outcome::{
    AccountPeak, Blame, Blocking, Counters, Deadlock, FlowBlame, FlowOutcome, Held, Outcome, Pause, Place,
    PortOutcome, Quantity, Sample, Stop,
};

pub const US: u64 = 1_000_000;
pub const LANES: usize = 2;
/// The lossless lane (priority 3).
pub const LOSSLESS: u8 = 0;
/// The lossy lane (priority 0).
pub const LOSSY: u8 = 1;

fn connect(topology: &mut Topology, a: u32, b: u32, rate: u64) {
    let first = topology.ports.len() as PortId;
    for (offset, node) in [(0, a), (1, b)] {
        let ports = &mut topology.nodes[node as usize].ports;
        let index = ports.len() as u16;
        ports.push(first + offset);
        topology.ports.push(Port {
            node,
            peer: first + 1 - offset,
            index,
            rate,
            delay: US,
            long: false,
            loss: 0.0,
        });
    }
}

/// Hosts H0 to H2 at switches S0.0 to S0.2, which form a ring. Ports 0 to 5 are
/// the host links (host side even), 6 to 11 the ring (clockwise side even).
pub fn ring() -> Topology {
    let mut topology = Topology::default();
    for i in 0..3 {
        topology.nodes.push(Node { name: format!("H{i}"), kind: NodeKind::Host, ports: Vec::new() });
    }
    for i in 0..3 {
        topology.nodes.push(Node { name: format!("S0.{i}"), kind: NodeKind::Switch, ports: Vec::new() });
    }
    for i in 0..3 {
        connect(&mut topology, i, 3 + i, 100_000_000_000);
    }
    for i in 0..3 {
        connect(&mut topology, 3 + i, 3 + (i + 1) % 3, 40_000_000_000);
    }
    topology
}

/// Host i sends to the host two steps clockwise, so that three such flows can
/// block each other.
fn route(from: u32) -> [u32; 4] {
    let clockwise = |i: u32| 6 + 2 * (i % 3);
    let to = (from + 2) % 3;
    [2 * from, clockwise(from), clockwise(from + 1), 2 * to + 1]
}

pub fn plan() -> Plan {
    let topology = ring();
    let mut hops = Vec::new();
    let mut paths = Vec::new();
    for i in 0..3 {
        paths.push(hops.len() as u32);
        hops.extend(route(i));
        hops.push(DELIVER);
    }
    // The ACKs go back by the same links, in the other direction.
    let mut back = Vec::new();
    for i in 0..3 {
        back.push(hops.len() as u32);
        hops.extend(route(i).iter().rev().map(|p| p ^ 1));
        hops.push(DELIVER);
    }
    let sizes = [1_000, 30_000, 90_000, 100_001, 500_000, 2_000_000];
    let flows = (0..60u32)
        .map(|i| Flow {
            src: i % 3,
            dst: (i + 2) % 3,
            size: sizes[i as usize % sizes.len()],
            start: u64::from(i) * 10 * US,
            after: None,
            opens: None,
            class: u16::from(i % 6 == 5),
            lane: if i % 10 == 9 { LOSSY } else { LOSSLESS },
            ack_lane: LOSSLESS,
            path: paths[i as usize % 3],
            ack_path: back[i as usize % 3],
            pace: 0,
            ideal: 8 * US + u64::from(i),
        })
        .collect();
    let lossless = Account {
        reserve: 4_000,
        limit: Limit::Static(71_000),
        resume: 50_000,
        resume_offset: 0,
        headroom: Some(Headroom { terms: Vec::new(), total: 12_000 }),
        pool: None,
    };
    let lossy = Account {
        reserve: 0,
        limit: Limit::Unlimited,
        resume: 0,
        resume_offset: 0,
        headroom: None,
        pool: None,
    };
    let lane = |priority, tier, lossless| Lane {
        priority,
        tier,
        quantum: 1_062,
        lossless,
        egress_limit: Limit::Unlimited,
        ecn: None,
    };
    let ports = topology.ports.len();
    Plan {
        jobs: Vec::new(),
        link_layer: None,
        seed: 7,
        lanes: vec![lane(3, 0, true), lane(0, 1, false)],
        buffers: vec![Buffer { total: 5_000_000, shared: 4_500_000 }; topology.nodes.len()],
        accounts: (0..ports).flat_map(|_| [lossless.clone(), lossy.clone()]).collect(),
        topology,
        classes: vec!["websearch".into(), "an incast with a long name".into()],
        flows,
        gates: Vec::new(),
        hops,
        load_balancing: LoadBalancing::Ecmp,
        channels: None,
        packet: PacketFormat { mtu: 1_000, header: 62, ack: 66 },
        flow_control: FlowControlParams::Pfc(PfcParams {
            quanta: 65_535,
            response_time: 0,
            relay: Relay::Accounts,
        }),
        transport: TransportParams {
            kind: TransportKind::GoBackN(GoBackN),
            ack_every: 1,
            rto: 1_000 * US,
            retries: None,
            window: None,
            variable_window: None,
        },
        windows: Vec::new(),
        congestion_control: xoff_schemes::congestion_control::CongestionControlParams::None,
        receivers: Vec::new(),
        end: Some(1_000 * US),
        measure: Measure::default(),
        faults: Faults::default(),
        detours: Vec::new(),
        ate: None,
        arbiter: None,
        pods: None,
    }
}

/// Every flow done, with slowdowns from 1 to about 7; nothing was paused.
pub fn healthy(plan: &Plan) -> Outcome {
    let flows: Vec<FlowOutcome> = plan
        .flows
        .iter()
        .enumerate()
        .map(|(i, f)| {
            let done = f.start + f.ideal + i as u64 * f.ideal / 10;
            FlowOutcome {
                started: Some(f.start),
                first_sent: Some(f.start),
                delivered: Some(done - US),
                completed: Some(done),
                delivered_bytes: f.size,
                packets_sent: plan.packet.packets(f.size),
                ..FlowOutcome::default()
            }
        })
        .collect();
    let sent = flows.iter().map(|f| f.packets_sent).sum();
    let ports = plan.topology.ports.len();
    let mut outcome = Outcome {
        end: plan.end.unwrap(),
        stop: Stop::EndTime,
        flows,
        pauses: Vec::new(),
        series: vec![
            Sample { at: US, what: Quantity::Goodput(0), value: 12_000_000_000 },
            Sample { at: US, what: Quantity::Queue(6), value: 34_000 },
            Sample { at: US, what: Quantity::PausedQueues, value: 2 },
        ],
        ports: vec![PortOutcome { packets: 100, bytes: 106_200, ..PortOutcome::default() }; ports],
        buffer_peaks: vec![10_000; plan.topology.nodes.len()],
        accounts: vec![AccountPeak { main: 2_000, headroom: 0 }; ports * LANES],
        drops: Vec::new(),
        deadlock: None,
        livelock: None,
        memory: Vec::new(),
        blocking: None,
        paths: None,
        ahead: Vec::new(),
        routes: None,
        roots: Vec::new(),
        records: Default::default(),
        waiting: Vec::new(),
        counters: Counters {
            events: 100_000,
            packet_hops: 80_000,
            data_hops: 4 * sent,
            sent,
            delivered: sent,
            dropped: 0,
            in_flight: 0,
            extra_control: 0,
        },
    };
    outcome.ports[6].queue_peak = 34_000;
    outcome.accounts[7 * LANES].main = 34_000; // S0.1's end of the first ring link
    outcome.buffer_peaks[4] = 120_000;
    outcome
}

/// The ring has locked itself up: flows 30 on never finish.
pub fn deadlocked(plan: &Plan) -> Outcome {
    let mut outcome = healthy(plan);
    for flow in &mut outcome.flows[30..] {
        flow.delivered = None;
        flow.completed = None;
        flow.delivered_bytes /= 2;
    }
    for port in [6, 8, 10] {
        outcome.pauses.push(Pause {
            port,
            lane: LOSSLESS,
            queue: None,
            from: 300 * US + u64::from(port),
            until: None,
            cause: port ^ 1,
            root: None,
            links: 0,
            named_root: None,
        });
        outcome.ports[port as usize ^ 1].pause_frames = 12;
        outcome.accounts[(port as usize ^ 1) * LANES].headroom = 6_000;
    }
    let goodput = |at, class, value| Sample { at, what: Quantity::Goodput(class), value };
    outcome.series.extend([
        goodput(301 * US, 0, 5_000_000_000),
        goodput(301 * US, 1, 3_000_000_000),
        goodput(601 * US, 0, 0),
        goodput(601 * US, 1, 0),
    ]);
    outcome.pauses.insert(
        0,
        Pause {
            port: 6,
            lane: LOSSLESS,
            queue: None,
            from: 100 * US,
            until: Some(104 * US),
            cause: 7,
            root: None,
            links: 0,
            named_root: None,
        },
    );
    outcome.ports[7].resume_frames = 1;
    outcome.deadlock = Some(Deadlock {
        closed: 301_234_567,
        ended: None,
        seen: 310 * US,
        cycle: [6, 8, 10]
            .map(|port| Held { port, lane: LOSSLESS, bytes: 75_000, flows: (30..36).collect() })
            .to_vec(),
        stuck: vec![(7, LOSSLESS), (9, LOSSLESS), (11, LOSSLESS), (1, LOSSLESS)],
    });
    let c = &mut outcome.counters;
    c.in_flight = 400;
    c.delivered -= 400;
    outcome
}

/// The deadlocked ring with the word of the blocking oracle. Flow 5, of the second
/// class, is the worst victim, and port 3 (S0.1:0) the worst root.
pub fn blocked(plan: &Plan) -> Outcome {
    let mut outcome = deadlocked(plan);
    outcome.pauses[0].root = Some(3);
    outcome.pauses[0].named_root = Some(5);
    let mut flows = vec![FlowBlame::default(); plan.flows.len()];
    let flow = |own, victim, source_own, source_victim, named_victim| FlowBlame {
        own: own * US,
        victim: victim * US,
        source_own: source_own * US,
        source_victim: source_victim * US,
        named_victim: named_victim * US,
        source_named_victim: source_victim * US,
    };
    flows[2] = flow(40, 1, 2, 0, 1);
    flows[4] = flow(0, 4, 0, 3, 4);
    // One of the pauses for which it waits names a port on its path.
    flows[5] = flow(10, 20, 0, 5, 15);
    let place = |pauses, own, victim, source_own, source_victim, named_victim| Blame {
        pauses,
        own: own * US,
        victim: victim * US,
        source_own: source_own * US,
        source_victim: source_victim * US,
        named_victim: named_victim * US,
        source_named_victim: source_victim * US,
    };
    let at = |port, root, named| Place { port, root, named };
    let places = vec![
        (at(4, 3, None), place(2, 0, 0, 2, 8, 0)),
        (at(6, 3, None), place(3, 50, 20, 0, 0, 20)),
        (at(6, 5, Some(3)), place(1, 0, 5, 0, 0, 0)),
    ];
    outcome.blocking = Some(Blocking { flows, places, named: (0, 0), ..Blocking::default() });
    outcome
}

/// An empty directory for one test.
pub fn scratch(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}
