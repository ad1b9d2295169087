//! The offered traffic of a scenario, without running it: flows, bytes, sizes, and the load of the flows'
//! routes on each link. For `xoff traffic`.

use serde::Serialize;

use crate::statistics::{ALL, bits_per_second, nearest_rank};
use crate::table::Align::{Left, Right};
use crate::table::{headed, paragraph, wrapped};
use crate::{human, names};
use xoff_kernel::time::{SECOND, Time};
use xoff_net::topology::PortId;
use xoff_plan::Loaded;
use xoff_plan::balancing::is_choice;
use xoff_plan::plan::{DELIVER, ENDS, EXPIRE, Flow, Plan};

/// Links that the text shows; the data has all of them.
const LISTED: usize = 10;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Offered {
    pub scenario: String,
    pub network: String,
    /// `run.duration` in picoseconds, over which loads are taken; without it there are none.
    pub duration_ps: Option<Time>,
    pub classes: Vec<OfferedClass>,
    pub all: OfferedClass,
    /// Link directions with traffic, the one that is busy longest first. A flow counts on its routes at its
    /// beginning. If its source chooses between two, it counts on both, by the rates of their first links. If
    /// devices choose for each packet, it counts on every path, divided evenly at each choice.
    pub links: Vec<OfferedLink>,
    /// Whether sources choose between two routes of flows: then the load of each is an estimate.
    pub chosen_routes: bool,
    /// Flows that cannot be delivered and acknowledged completely, because links are down. Packets without a
    /// path count on no link.
    pub unreachable: Vec<Unreachable>,
}

/// A flow without a path when it begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unreachable {
    /// As in `flows.parquet`.
    pub flow: u32,
    /// The flow: `flow 17: H3 -> H9 (websearch)`.
    pub name: String,
    /// Whether its data has a path, and only its ACKs have none.
    pub acks_only: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedClass {
    pub name: String,
    /// 802.1p priorities of its data.
    pub priorities: Vec<u8>,
    pub flows: u64,
    /// Flows that its law lets expect, where their number is drawn.
    pub expected_flows: Option<f64>,
    /// Flows that wait for the delivery of others.
    pub waiting_flows: u64,
    /// Gates after which they start.
    pub gates: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Bytes of data packets, headers included.
    pub wire_bytes: u64,
    /// Mean payload of a flow in bytes; absent without flows.
    pub mean_size: Option<f64>,
    /// Mean payload that its distribution of sizes lets expect.
    pub expected_mean_size: Option<f64>,
    /// Bytes of data packets over the duration, in bits per second.
    pub load_bps: Option<f64>,
    /// Start of the first flow that waits for none, in picoseconds.
    pub first_start_ps: Option<Time>,
    pub last_start_ps: Option<Time>,
    /// Quantiles of the sizes as drawn; absent without flows.
    pub sizes: Option<Sizes>,
    /// The distribution of sizes as drawn, in ascending order: each size, if there are no more than [`POINTS`]
    /// different ones; else the sizes at so many equal steps of the share, by nearest rank, the last at 1.
    pub cdf: Vec<SizePoint>,
}

/// Most points of a distribution of sizes.
pub const POINTS: usize = 1_000;

/// A point of a cumulative distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SizePoint {
    /// Payload of a flow in bytes.
    pub size: u64,
    /// The share of flows that are no larger.
    pub share: f64,
}

/// Payload sizes in bytes by nearest rank: so many per cent of the flows are no larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    pub min: u64,
    pub p10: u64,
    pub p25: u64,
    pub p50: u64,
    pub p75: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfferedLink {
    /// The port that sends.
    pub port: String,
    /// The node at the other end.
    pub to: String,
    pub rate_bps: u64,
    /// Bytes of data packets, by class in the order of the classes.
    pub data_bytes: Vec<u64>,
    pub ack_bytes: u64,
    /// How long it takes to send all of this, in picoseconds.
    pub busy_ps: Time,
    /// That over the duration.
    pub utilisation: Option<f64>,
}

/// Bytes of a flow's data packets and of its ACKs (nothing lost).
fn weight(loaded: &Loaded, flow: &Flow) -> (u64, u64) {
    let plan = &loaded.plan;
    let packets = plan.packet.packets(flow.size);
    let acks = packets.div_ceil(plan.transport.ack_every.max(1).into());
    (flow.size.saturating_add(packets * u64::from(plan.packet.header)), acks * u64::from(plan.packet.ack))
}

/// Adds up the traffic that the scenario `scenario` offers. Every flow counts, including flows after gates,
/// as if all of them started within the duration.
pub fn offered(scenario: &str, loaded: &Loaded) -> Offered {
    let plan = &loaded.plan;
    let duration_ps = loaded.scenario.run.duration.map(|d| d.0);
    let classes = (0..plan.classes.len()).map(|class| {
        let of_class = |f: &&Flow| usize::from(f.class) == class;
        let expected = loaded.expected[class];
        OfferedClass {
            expected_flows: expected.and_then(|e| e.flows),
            expected_mean_size: expected.map(|e| e.mean_size),
            ..sum(&plan.classes[class], loaded, duration_ps, &of_class)
        }
    });
    let (links, unreachable) = links(loaded, duration_ps);
    Offered {
        scenario: scenario.into(),
        network: names::network(plan),
        duration_ps,
        classes: classes.collect(),
        all: sum(ALL, loaded, duration_ps, &|_| true),
        links,
        chosen_routes: plan.ate.is_some(),
        unreachable,
    }
}

/// The points of the distribution of `sorted` sizes.
fn points(sorted: &[u64]) -> Vec<SizePoint> {
    // One beyond the last flow of each size.
    let mut ends: Vec<usize> =
        (1..=sorted.len()).filter(|&i| sorted.get(i) != Some(&sorted[i - 1])).collect();
    if ends.len() > POINTS {
        // At each step of the share the size by nearest rank, with all flows of that size.
        let rank = |step: usize| (step * sorted.len()).div_ceil(POINTS);
        let end = |step| sorted.partition_point(|&s| s <= sorted[rank(step) - 1]);
        ends = (1..=POINTS).map(end).collect();
        ends.dedup();
    }
    let share = |end: usize| end as f64 / sorted.len() as f64;
    ends.into_iter().map(|end| SizePoint { size: sorted[end - 1], share: share(end) }).collect()
}

fn sum(name: &str, loaded: &Loaded, duration: Option<Time>, keep: &dyn Fn(&&Flow) -> bool) -> OfferedClass {
    let plan = &loaded.plan;
    let flows: Vec<&Flow> = plan.flows.iter().filter(keep).collect();
    let mut sizes: Vec<u64> = flows.iter().map(|f| f.size).collect();
    sizes.sort_unstable();
    let bytes = sizes.iter().fold(0, |sum: u64, &s| sum.saturating_add(s));
    let wire_bytes = flows.iter().fold(0, |sum: u64, f| sum.saturating_add(weight(loaded, f).0));
    let mut gates: Vec<u32> = flows.iter().filter_map(|f| f.after).collect();
    let waiting_flows = gates.len() as u64;
    gates.sort_unstable();
    gates.dedup();
    let mut priorities: Vec<u8> = flows.iter().map(|f| names::priority(plan, f.lane)).collect();
    priorities.sort_unstable();
    priorities.dedup();
    let starts = || flows.iter().filter(|f| f.after.is_none()).map(|f| f.start);
    let rank = |per_mille| nearest_rank(&sizes, per_mille);
    let quantiles = || {
        Some(Sizes {
            min: *sizes.first()?,
            p10: rank(100)?,
            p25: rank(250)?,
            p50: rank(500)?,
            p75: rank(750)?,
            p90: rank(900)?,
            p99: rank(990)?,
            max: *sizes.last()?,
        })
    };
    OfferedClass {
        name: name.into(),
        priorities,
        flows: flows.len() as u64,
        expected_flows: None,
        waiting_flows,
        gates: gates.len() as u64,
        bytes,
        wire_bytes,
        mean_size: (!sizes.is_empty()).then(|| bytes as f64 / sizes.len() as f64),
        expected_mean_size: None,
        load_bps: duration.map(|d| bits_per_second(wire_bytes, d)),
        first_start_ps: starts().min(),
        last_start_ps: starts().max(),
        sizes: quantiles(),
        cdf: points(&sizes),
    }
}

/// Starts of a flow's route and of its ACKs' when it begins (at time 0, if it waits for others): that of the
/// plan, or of the last change of routes before. Also whether later changes concern it.
fn routes(plan: &Plan, index: usize) -> (u32, u32, bool) {
    let flow = &plan.flows[index];
    let changes = &plan.faults.reroutes;
    let before = changes.partition_point(|change| change.at <= flow.start);
    // Each table has all flows that any change concerns, in order.
    let at = |table: usize| {
        let flows = &plan.faults.tables.get(table)?.flows;
        flows.binary_search_by_key(&(index as u32), |f| f.flow).ok().map(|i| &flows[i])
    };
    let route = changes[..before].last().and_then(|change| at(change.table as usize));
    let (path, ack_path) = route.map_or((flow.path, flow.ack_path), |r| (r.path, r.ack_path));
    (path, ack_path, at(0).is_some())
}

/// The routes of a flow's data, each with its part of `bytes`: that which starts at `path`, or where the source
/// chooses between two, both by the rates of their first links, which is how it begins to choose.
fn parts(plan: &Plan, flow: u32, path: u32, bytes: u64) -> [(u32, u64); 2] {
    let Some(other) = plan.other_route(flow) else { return [(path, bytes), (path, 0)] };
    let [one, two] =
        [path, other].map(|start| u128::from(plan.topology.ports[plan.hops[start as usize] as usize].rate));
    let part = u64::try_from(u128::from(bytes) * one / (one + two)).expect("no more than the whole");
    [(path, part), (other, bytes - part)]
}

/// The end of a route.
#[derive(Clone, Copy, PartialEq)]
enum RouteEnd {
    Arrives,
    /// Its packets cross a loop until they expire.
    Loops,
    /// There is no route, or it leads over a link that never comes up again.
    None,
}

/// The end of the route at `start` for packets sent from `begin` on. If changes of routes follow (`follows`),
/// a link that is down is avoided sooner or later.
fn find_route_end(plan: &Plan, start: u32, begin: Time, follows: bool) -> RouteEnd {
    let tail = &plan.hops[start as usize..];
    let end = tail.iter().position(|&h| h >= ENDS).expect("a route has an end");
    let over = plan.end.unwrap_or(Time::MAX);
    let dead = |port: &u32| {
        plan.faults.down.binary_search_by_key(port, |d| d.port).is_ok_and(|i| {
            let spans = &plan.faults.down[i].spans;
            spans.iter().any(|&(from, until)| from <= begin && until >= over)
        })
    };
    match tail[end] {
        EXPIRE => RouteEnd::Loops,
        // Explicit routes never change.
        DELIVER if !follows && tail[..end].iter().any(dead) => RouteEnd::None,
        DELIVER => RouteEnd::Arrives,
        // After a choice all paths arrive.
        entry if is_choice(entry) => RouteEnd::Arrives,
        _ => RouteEnd::None,
    }
}

fn links(loaded: &Loaded, duration: Option<Time>) -> (Vec<OfferedLink>, Vec<Unreachable>) {
    let plan = &loaded.plan;
    let classes = plan.classes.len();
    // By port: its place among the rows, given as ports are met.
    let mut rows = vec![usize::MAX; plan.topology.ports.len()];
    let mut met: Vec<PortId> = Vec::new();
    // By row: data bytes by class, then bytes of ACKs.
    let mut bytes: Vec<u64> = Vec::new();
    let mut unreachable = Vec::new();
    for (index, flow) in plan.flows.iter().enumerate() {
        let (data, acks) = weight(loaded, flow);
        let (path, ack_path, follows) = routes(plan, index);
        let ends = [path, ack_path].map(|start| find_route_end(plan, start, flow.start, follows));
        if ends.contains(&RouteEnd::None) {
            let (flow, acks_only) = (index as u32, ends[0] != RouteEnd::None);
            unreachable.push(Unreachable { flow, name: names::flow(plan, flow), acks_only });
        }
        // Data that does not arrive is not acknowledged.
        let goes = [ends[0] != RouteEnd::None, ends[0] == RouteEnd::Arrives && ends[1] != RouteEnd::None];
        let [first, second] = parts(plan, index as u32, path, data);
        let class = usize::from(flow.class);
        for ((start, amount), column, goes) in
            [(first, class, goes[0]), (second, class, goes[0]), ((ack_path, acks), classes, goes[1])]
        {
            if !goes || amount == 0 {
                continue;
            }
            plan.divide(start, amount, &mut |port, amount| {
                if rows[port as usize] == usize::MAX {
                    rows[port as usize] = met.len();
                    met.push(port);
                    bytes.resize(bytes.len() + classes + 1, 0);
                }
                let cell = &mut bytes[rows[port as usize] * (classes + 1) + column];
                *cell = cell.saturating_add(amount);
            });
        }
    }
    let link = |(&port, row): (&PortId, &[u64])| {
        let rate_bps = plan.topology.ports[port as usize].rate;
        let bits = row.iter().map(|&b| 8 * u128::from(b)).sum::<u128>();
        let busy_ps = u64::try_from(bits * u128::from(SECOND) / u128::from(rate_bps)).unwrap_or(u64::MAX);
        OfferedLink {
            port: names::port(plan, port),
            to: names::node(plan, plan.topology.neighbour(port)).to_string(),
            rate_bps,
            data_bytes: row[..classes].to_vec(),
            ack_bytes: row[classes],
            busy_ps,
            utilisation: duration.map(|d| busy_ps as f64 / d as f64),
        }
    };
    let used = met.iter().zip(bytes.chunks(classes + 1)).filter(|(port, _)| !names::is_inner(plan, **port));
    let mut links: Vec<_> = used.map(|used| (*used.0, link(used))).collect();
    links.sort_by_key(|(port, link)| (std::cmp::Reverse(link.busy_ps), *port));
    (links.into_iter().map(|(_, link)| link).collect(), unreachable)
}

/// The same for people: classes, sizes, and the busiest links.
pub fn render(offered: &Offered) -> String {
    let mut text = wrapped("", "  ", &format!("{}: {}", offered.scenario, offered.network));
    let rows: Vec<&OfferedClass> = match offered.classes.len() {
        1 => vec![&offered.classes[0]],
        _ => offered.classes.iter().chain([&offered.all]).collect(),
    };
    text += &format!("\n{}", classes(&rows));
    if rows.iter().any(|c| c.expected_flows.is_some()) {
        text += "In brackets: the expected values of the distributions.\n";
    }
    let when = match offered.duration_ps {
        Some(d) => format!("), during {}", human::time(d)),
        None => "; without run.duration there is no load)".into(),
    };
    let directions = human::counted(offered.links.len() as u64, "link direction") + " in use";
    text += &format!("\nPercentiles of the flow size:\n{}", sizes(&rows));
    text += &format!("\nThe busiest links ({directions}{when}:\n{}", busiest(offered));
    if offered.chosen_routes {
        text += "\n";
        text += &paragraph(
            "With routing.ate, a source chooses between two routes of a flow. This table divides the flow between \
             both, in proportion to the rates of their first links; in a run, the source decides while it sends.",
        );
    }
    if offered.all.waiting_flows > 0 {
        let all = &offered.all;
        text += "\n";
        text += &paragraph(&format!(
            "{} of {} start only after the flows that they depend on are delivered, at {}. The tables count all of \
             them, even if a run ends before they start.",
            human::count(all.waiting_flows),
            human::counted(all.flows, "flow"),
            human::counted(all.gates, "gate"),
        ));
    }
    if let Some(first) = offered.unreachable.first() {
        let more = match offered.unreachable.len() - 1 {
            0 => String::new(),
            more => format!(" and {} more", human::count(more as u64)),
        };
        text += "\n";
        text += &paragraph(&format!(
            "{} of {} have no path at their start (links are down): {}{more}. No link counts them. If only the ACKs \
             have no path, no link counts the ACKs.",
            human::count(offered.unreachable.len() as u64),
            human::counted(offered.all.flows, "flow"),
            first.name,
        ));
    }
    text
}

fn classes(rows: &[&OfferedClass]) -> String {
    let heads = ["traffic", "priority", "flows", "", "waiting", "bytes", "mean size", "", "load"];
    let row = |c: &&OfferedClass| {
        let priorities: Vec<String> = c.priorities.iter().map(u8::to_string).collect();
        [
            c.name.clone(),
            priorities.join(" "),
            human::count(c.flows),
            c.expected_flows.map_or(String::new(), |n| format!("({})", human::count(n.round() as u64))),
            human::count(c.waiting_flows),
            human::bytes(c.bytes),
            c.mean_size.map_or("-".into(), |b| human::bytes(b.round() as u64)),
            c.expected_mean_size.map_or(String::new(), |b| format!("({})", human::bytes(b.round() as u64))),
            c.load_bps.map_or("-".into(), human::rate),
        ]
    };
    headed(heads, [Left, Right, Right, Right, Right, Right, Right, Right, Right], rows.iter().map(row))
}

fn sizes(rows: &[&OfferedClass]) -> String {
    let heads = ["traffic", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"];
    let row = |c: &&OfferedClass| {
        let of = |s: Sizes| [s.min, s.p10, s.p25, s.p50, s.p75, s.p90, s.p99, s.max].map(human::bytes);
        let [min, p10, p25, p50, p75, p90, p99, max] = c.sizes.map_or_else(Default::default, of);
        [c.name.clone(), min, p10, p25, p50, p75, p90, p99, max]
    };
    headed(heads, [Left, Right, Right, Right, Right, Right, Right, Right, Right], rows.iter().map(row))
}

fn busiest(offered: &Offered) -> String {
    let row = |link: &OfferedLink| {
        [
            link.port.clone(),
            link.to.clone(),
            human::rate(link.rate_bps as f64),
            human::bytes(link.data_bytes.iter().fold(0, |sum: u64, &b| sum.saturating_add(b))),
            human::bytes(link.ack_bytes),
            human::time(link.busy_ps),
            link.utilisation.map_or("-".into(), |u| format!("{:.1}%", 100.0 * u)),
        ]
    };
    let heads = ["port", "to", "rate", "data", "ACKs", "busy", "load"];
    let links = offered.links.iter().take(LISTED).map(row);
    headed(heads, [Left, Left, Right, Right, Right, Right, Right], links)
}
