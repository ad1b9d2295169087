//! The queues of PortFC in words, as `xoff schemes portfc --topology …` shows them.

use super::super::seen::{OnwardQueues, PortQueues, QueueWords};
use super::{PortFcParams, RelayOrder, map::Role};
use xoff_net::topology::{PortId, Topology};

/// For NDC(n, k) with k other than 1, the paper has only the numbers of queues, not those of a `port`. An
/// error is the problem, and the correction.
pub fn counted(n: u32, k: u32, port: bool) -> Result<String, (String, &'static str)> {
    if !(2..=4096).contains(&n) || !(1..=8).contains(&k) {
        return Err((format!("NDC({n}, {k}) is out of range"), "write n from 2 to 4096 and k from 1 to 8"));
    }
    let why = "for k > 1 a relay reaches several switches: the n - 1 queues of a switch cannot distinguish \
               their ports, and relayed packets enter queues that no frame can pause";
    if port {
        return Err((format!("PortFC defines no queues for NDC({n}, {k}): {why}"), "choose k = 1"));
    }
    Ok(format!(
        "NDC({n}, {k}) under PortFC, by the paper's formulas (section III-B)\n\
         \x20 switch port: n + 1 = {} queues\n\
         \x20 host port: (k + 1)(n - 1) + 2 = {} queues\n\
         It cannot be simulated: {why}.\n",
        n + 1,
        (k + 1) * (n - 1) + 2
    ))
}

/// Kinds of ports: their number, their queues, and the purpose of these.
pub(super) fn counts(params: &PortFcParams, topology: &Topology) -> Vec<[String; 3]> {
    let n = params.map.n;
    let ports = || 0..topology.ports.len() as PortId;
    let map = &params.map;
    let count = |wanted: &dyn Fn(PortId) -> bool| ports().filter(|&port| wanted(port)).count();
    let to_hosts = count(&|port| !map.place(port).node && !map.to_switch(port));
    let between = count(&|port| !map.place(port).node && map.to_switch(port));
    let hosts = count(&|port| map.place(port).node && !map.inner(port));
    let mut counts = vec![[
        format!("{to_hosts} switch ports{}", if between > 0 { " to hosts" } else { "" }),
        format!("{n} + 1"),
        format!("{} forwarding (IHFQ), 1 direct (DDQ), HQ", n - 1),
    ]];
    if between > 0 {
        counts.push([
            format!("{between} switch ports to switches"),
            format!("{} + 1", map.of_switch()),
            format!("{0} of packets over a relay ahead (IHFQ), {0} of others (onward), HQ", n - 1),
        ]);
    }
    counts.push([
        format!("{hosts} host ports"),
        format!("{} + 1", map.of_node()),
        format!("{0} of its own four-hop flows, {0} of its own two-hop flows, 1 relay (RQ), HQ", n - 1),
    ]);
    counts
}

/// The queues of a port; `None` of a port inside of a slow host.
pub(super) fn of_port(params: &PortFcParams, topology: &Topology, port: PortId) -> Option<PortQueues> {
    let map = &params.map;
    if map.inner(port) {
        return None;
    }
    let place = map.place(port);
    let node = |port: PortId| topology.nodes[topology.ports[port as usize].node as usize].name.as_str();
    let behind = |port: PortId| node(topology.ports[port as usize].peer);
    let numbers = match (place.node, map.to_switch(port)) {
        (true, _) => map.of_node(),
        (false, true) => map.of_switch(),
        (false, false) => map.n,
    };
    let words = |queue| {
        let (role, pausers) = (map.role(port, queue), params.pausers(port, queue));
        let kind = match role {
            Role::Ihfq => "IHFQ",
            Role::Ddq => "DDQ",
            Role::Onward => "onward",
            Role::FourHop => "four-hop",
            Role::TwoHop => "two-hop",
            Role::Relay => "RQ",
        };
        let (waits, paused_by) = match (role, map.leads_to(port, queue)) {
            (Role::Ddq, _) => (format!("for {}", behind(port)), "-".into()),
            (Role::Relay, _) => ("from others".to_string(), "-".into()),
            (_, None) => ("nothing".into(), "-".into()),
            (role, Some(target)) => {
                let port = topology.port_name(target);
                let waits = match role {
                    Role::TwoHop if !map.to_switch(target) => format!("for {}", behind(target)),
                    _ => format!("forwarded through {port} ({})", behind(target)),
                };
                let set = match pausers {
                    Some(pausers) if pausers.queues.start == 0 => "forwarding queues",
                    _ if map.to_switch(target) => "onward queues",
                    _ => "direct queue",
                };
                (waits, format!("{port}, {set}"))
            }
        };
        QueueWords { kind, waits, paused_by }
    };
    let unnumbered = QueueWords { kind: "HQ", waits: "ACKs, CNPs, frames".into(), paused_by: "-".into() };
    Some(PortQueues {
        numbered: (0..numbers).map(words).collect(),
        unnumbered,
        order: match (place.node, params.relay_order) {
            (false, _) => "HQ first, then the others in turn",
            (true, RelayOrder::First) => "HQ first, then RQ, then its own in turn",
            (true, RelayOrder::Turns) => "HQ first, then RQ and its own in turn",
            (true, RelayOrder::Last) => "HQ first, then its own in turn, then RQ",
        },
    })
}
