//! The cycle of a deadlock: the devices on it, the links that wait for each other, and the flows whose routes
//! close it.

use super::{Svg, cut, ink, width};
use crate::closing::{Edge, Through};
use crate::{blocking::flow_name, routes::Kind};
use xoff_net::topology::{NodeId, PortId};
use xoff_plan::plan::Plan;

/// Most flows that are drawn.
const FLOWS: usize = 12;
const TURN: f64 = 2.0 * std::f64::consts::PI;
const DEVICE: &str = "fill=\"#EEEEEE\" stroke=\"#222222\" stroke-width=\"1.6\" rx=\"4\"";
const HOST: &str = "fill=\"white\" stroke=\"#555555\" rx=\"10\"";

struct Arc<'a> {
    route: &'a Through,
    /// Index of the device where it enters the cycle.
    enters: usize,
    /// How many links of the cycle it takes.
    links: usize,
}

struct Layout {
    centre: (f64, f64),
    radius: f64,
    devices: usize,
}

impl Layout {
    /// A point by its place on the cycle (0 is the first device, 1 the next) and its radius.
    fn at(&self, turn: f64, radius: f64) -> (f64, f64) {
        let angle = TURN * (turn / self.devices as f64 - 0.25);
        (self.centre.0 + radius * libm::cos(angle), self.centre.1 + radius * libm::sin(angle))
    }
}

/// A picture of a cycle of waits. `edges` are its edges in order, with routes that close them.
pub fn cycle(plan: &Plan, edges: &[Edge]) -> String {
    let n = edges.len();
    let (arcs, uncovered) = arcs(edges);
    let radius = (24.0 * n as f64).max(150.0);
    // Boxes of hosts beside the cycle need room around the names of ports.
    let hosts = arcs.iter().any(|arc| outside(plan, arc, edges).contains(&true));
    let reach = radius + if hosts { 164.0 } else { 70.0 };
    let title = format!("A cycle of {n} queues that can block each other");
    let mut feet = vec![
        "Arrows: links that can be paused until the next link sends.".to_string(),
        "Colours: flows whose routes form the cycle.".to_string(),
    ];
    if uncovered > 0 {
        feet.push(format!(
            "{uncovered} of the {n} waits are not drawn: they come from other routes or from route changes."
        ));
    }
    let listed: Vec<String> = arcs.iter().map(|arc| flow(plan, arc.route)).collect();
    let wide = feet.iter().chain(&listed).map(|t| width(t, 13.0) + 90.0).fold(2.0 * reach, f64::max);
    let top = 60.0;
    let below = top + 2.0 * reach;
    let tall = below + 22.0 * listed.len() as f64 + 18.0 * feet.len() as f64 + 24.0;
    let mut svg = Svg::new(wide, tall);
    let layout = Layout { centre: (wide / 2.0, top + reach), radius, devices: n };
    svg.text((28.0, 34.0), 20.0, "font-weight=\"bold\"", &title);
    flows(&mut svg, plan, &layout, &arcs, edges);
    for (i, edge) in edges.iter().enumerate() {
        let mut name = plan.topology.port_name(edge.from.port);
        if plan.lanes.len() > 1 {
            name.push_str(&format!(" (priority {})", plan.lanes[usize::from(edge.from.lane)].priority));
        }
        link(&mut svg, &layout, i, &name);
    }
    for (i, edge) in edges.iter().enumerate() {
        let name = &plan.topology.nodes[node(plan, edge.from.port) as usize].name;
        boxed(&mut svg, layout.at(i as f64, radius), name, DEVICE, true);
    }
    for (i, text) in listed.iter().enumerate() {
        let y = below + 22.0 * i as f64;
        svg.path(&format!("M28.0 {y:.1} L66.0 {y:.1}"), &stroke(i));
        svg.text((76.0, y + 4.5), 13.0, "", text);
    }
    for (i, foot) in feet.iter().enumerate() {
        let y = below + 22.0 * listed.len() as f64 + 12.0 + 18.0 * i as f64;
        svg.text((28.0, y), 12.0, &format!("fill=\"{}\"", ink::FAINT), foot);
    }
    let ports: Vec<String> = edges.iter().map(|e| plan.topology.port_name(e.from.port)).collect();
    svg.finish(&format!("{title}: {}", ports.join(", ")))
}

fn node(plan: &Plan, port: PortId) -> NodeId {
    plan.topology.ports[port as usize].node
}

fn flow(plan: &Plan, route: &Through) -> String {
    let ends = [
        route.ports.first().map(|&p| node(plan, p)),
        route.ports.last().map(|&p| plan.topology.neighbour(p)),
    ];
    let [from, to] = ends.map(|end| end.map_or("?", |node| plan.topology.nodes[node as usize].name.as_str()));
    let what = route.flow.map_or_else(|| format!("{from} -> {to}"), |flow| flow_name(plan, flow));
    let suffix = if route.kind == Kind::Control { ", its control packets" } else { "" };
    format!("{what}{suffix}, over {}", over(plan, route))
}

fn over(plan: &Plan, route: &Through) -> String {
    let name = |&port: &PortId| plan.topology.nodes[node(plan, port) as usize].name.as_str();
    cut(&route.ports.iter().skip(1).map(name).collect::<Vec<_>>().join(", "), 90)
}

/// For each edge a route that closes it, as few as a simple choice gives; and how many edges have none.
fn arcs(edges: &[Edge]) -> (Vec<Arc<'_>>, usize) {
    let n = edges.len();
    let mut covered = vec![false; n];
    let mut arcs: Vec<Arc<'_>> = Vec::new();
    for i in 0..n {
        if covered[i] || arcs.len() == FLOWS {
            continue;
        }
        // The one that closes the most, of several alike the first.
        let mut best: Option<Arc<'_>> = None;
        for route in edges[i].closers.iter().filter(|c| c.ports.len() > 1) {
            let pairs = |at: usize| {
                let e = &edges[at % n];
                route.ports.windows(2).any(|w| w == [e.from.port, e.to.port])
            };
            if !pairs(i) {
                continue;
            }
            let back = (1..n).take_while(|b| pairs(i + n - b)).count();
            let on = (1..n - back).take_while(|f| pairs(i + f)).count();
            let arc = Arc { route, enters: (i + n - back) % n, links: back + on + 2 };
            if best.as_ref().is_none_or(|known| known.links < arc.links) {
                best = Some(arc);
            }
        }
        if let Some(arc) = best {
            (0..arc.links - 1).for_each(|k| covered[(arc.enters + k) % n] = true);
            arcs.push(arc);
        }
    }
    let uncovered = covered.iter().filter(|c| !**c).count();
    (arcs, uncovered)
}

/// How flow number `i` is drawn: after six colours, dashed.
fn stroke(i: usize) -> String {
    let colour = i % ink::FLOWS.len();
    let dash = ["", " stroke-dasharray=\"9 4\"", " stroke-dasharray=\"3 3\""][(i / ink::FLOWS.len()).min(2)];
    format!(
        "stroke=\"{}\" stroke-width=\"2.4\" stroke-linejoin=\"round\" marker-end=\"url(#a{})\"{dash}",
        ink::FLOWS[colour],
        colour + 1
    )
}

fn ends(plan: &Plan, arc: &Arc<'_>) -> [NodeId; 2] {
    let (first, last) = (arc.route.ports[0], *arc.route.ports.last().expect("it has ports"));
    [node(plan, first), plan.topology.neighbour(last)]
}

/// Whether a flow begins, and whether it ends, at a device beside the cycle.
fn outside(plan: &Plan, arc: &Arc<'_>, edges: &[Edge]) -> [bool; 2] {
    let device = |i: usize| node(plan, edges[i % edges.len()].from.port);
    let [from, to] = ends(plan, arc);
    [from != device(arc.enters), to != device(arc.enters + arc.links)]
}

/// The flows, inside the cycle, and their hosts outside.
fn flows(svg: &mut Svg, plan: &Plan, layout: &Layout, arcs: &[Arc<'_>], edges: &[Edge]) {
    let n = layout.devices;
    // The hosts outside each device: flow, and whether it begins there.
    let mut beside: Vec<Vec<(usize, bool)>> = vec![Vec::new(); n];
    for (i, arc) in arcs.iter().enumerate() {
        let [begins, finishes] = outside(plan, arc, edges);
        if begins {
            beside[arc.enters].push((i, true));
        }
        if finishes {
            beside[(arc.enters + arc.links) % n].push((i, false));
        }
    }
    let distance = layout.radius + 108.0;
    let mut hosts: Vec<((f64, f64), NodeId)> = Vec::new();
    let mut places = vec![[None; 2]; arcs.len()];
    for (at, list) in beside.iter().enumerate() {
        let step = (n as f64 * 84.0 / (TURN * distance)).min(0.9 / list.len().max(1) as f64);
        for (k, &(i, begins)) in list.iter().enumerate() {
            let turn = at as f64 + (k as f64 - (list.len() as f64 - 1.0) / 2.0) * step;
            // Neighbouring hosts have different distances.
            let place = layout.at(turn, distance + if step < 0.5 && k % 2 == 1 { 30.0 } else { 0.0 });
            let [from, to] = ends(plan, &arcs[i]);
            places[i][usize::from(!begins)] = Some(place);
            hosts.push((place, if begins { from } else { to }));
        }
    }
    for (i, arc) in arcs.iter().enumerate() {
        let inner = (layout.radius - 30.0 - 13.0 * i as f64).max(layout.radius * 0.3);
        let mut points: Vec<(f64, f64)> = places[i][0].into_iter().collect();
        for k in 0..=2 * arc.links {
            points.push(layout.at(arc.enters as f64 + k as f64 / 2.0, inner));
        }
        if let (Some(end), Some(&last)) = (places[i][1], points.last()) {
            // Up to the box, so that the arrow is seen.
            let (dx, dy) = (end.0 - last.0, end.1 - last.1);
            let part = 1.0 - 24.0 / (dx * dx + dy * dy).sqrt().max(25.0);
            points.push((last.0 + dx * part, last.1 + dy * part));
        }
        let d: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
        svg.path(&format!("M{}", d.join(" L")), &stroke(i));
    }
    for (place, host) in hosts {
        boxed(svg, place, &plan.topology.nodes[host as usize].name, HOST, false);
    }
}

/// The paused link from the `i`-th device to the next, with its name outside.
fn link(svg: &mut Svg, layout: &Layout, i: usize, name: &str) {
    let (a, b) = (layout.at(i as f64, layout.radius), layout.at(i as f64 + 1.0, layout.radius));
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length = (dx * dx + dy * dy).sqrt().max(1.0);
    // Outwards: the cycle is walked clockwise.
    let (nx, ny) = (dy / length, -dx / length);
    let bend = 0.18 * length + 12.0;
    let control = ((a.0 + b.0) / 2.0 + nx * bend, (a.1 + b.1) / 2.0 + ny * bend);
    // Up to the boxes of the devices, about.
    let towards = |from: (f64, f64), by: f64| {
        let (x, y) = (control.0 - from.0, control.1 - from.1);
        let l = (x * x + y * y).sqrt().max(1.0);
        (from.0 + x / l * by, from.1 + y / l * by)
    };
    let (start, end) = (towards(a, 18.0), towards(b, 36.0));
    let [(ax, ay), (bx, by), (cx, cy)] = [start, end, control];
    let d = format!("M{ax:.1} {ay:.1} Q{cx:.1} {cy:.1} {bx:.1} {by:.1}");
    svg.path(&d, &format!("stroke=\"{}\" stroke-width=\"3\" marker-end=\"url(#a0)\"", ink::LINE));
    let anchor = match nx {
        x if x > 0.35 => "start",
        x if x < -0.35 => "end",
        _ => "middle",
    };
    let at =
        ((a.0 + b.0) / 2.0 + nx * (bend * 0.5 + 14.0), (a.1 + b.1) / 2.0 + ny * (bend * 0.5 + 14.0) + 4.5);
    svg.text(at, 13.0, &format!("text-anchor=\"{anchor}\" font-weight=\"bold\""), name);
}

fn boxed(svg: &mut Svg, (x, y): (f64, f64), name: &str, style: &str, strong: bool) {
    let name = cut(name, 14);
    let (w, h) = (width(&name, 13.0) + 18.0, 26.0);
    svg.rect((x - w / 2.0, y - h / 2.0), (w, h), style);
    let weight = if strong { " font-weight=\"bold\"" } else { "" };
    svg.text((x, y + 4.5), 13.0, &format!("text-anchor=\"middle\"{weight}"), &name);
}
