//! Numbers of a pod's links, their ports in the topology, and when they are down.

use xoff_kernel::time::Time;
use xoff_net::topology::PortId;
use xoff_plan::plan::Faults;
use xoff_schemes::scheduling::zeropod::{Link, Pod};

/// Links of pods that are all alike. A link has a number within its pod.
pub struct Links {
    pod: Pod,
    hosts: usize,
    /// By port: spans in which its link is down; empty if none ever is.
    down: Vec<Vec<(Time, Time)>>,
}

impl Links {
    pub fn new(pod: Pod, ports: usize, faults: &Faults) -> Self {
        let mut down = vec![Vec::new(); if faults.down.is_empty() { 0 } else { ports }];
        faults.down.iter().for_each(|port| down[port.port as usize].clone_from(&port.spans));
        Self { pod, hosts: pod.hosts(), down }
    }

    pub fn count(&self) -> usize {
        let racks = usize::from(self.pod.racks) * usize::from(self.pod.aggs);
        2 * (self.hosts + racks + usize::from(self.pod.cores))
    }

    pub fn number(&self, link: Link) -> usize {
        let pod = &self.pod;
        let between = |rack: u16, agg: u16| {
            2 * (self.hosts + usize::from(rack) * usize::from(pod.aggs) + usize::from(agg))
        };
        let cores = between(pod.racks, 0);
        match link {
            Link::HostUp { host } => 2 * usize::from(host),
            Link::HostDown { host } => 2 * usize::from(host) + 1,
            Link::RackUp { rack, agg } => between(rack, agg),
            Link::RackDown { agg, rack } => between(rack, agg) + 1,
            Link::CoreUp { core } => cores + 2 * usize::from(core),
            Link::CoreDown { core } => cores + 2 * usize::from(core) + 1,
        }
    }

    /// The port that sends over a link of a pod: the topology has links of hosts first, then those between
    /// switches of pods, then those of cores.
    pub fn port(&self, at: u16, link: Link) -> PortId {
        let pod = &self.pod;
        let all = self.hosts * usize::from(pod.pods);
        let between = |rack: u16, agg: u16| {
            let tor = usize::from(at) * usize::from(pod.racks) + usize::from(rack);
            2 * (all + tor * usize::from(pod.aggs) + usize::from(agg))
        };
        let host = |host: u16| 2 * (usize::from(at) * self.hosts + usize::from(host));
        let core = |core: u16| {
            let racks = usize::from(pod.pods) * usize::from(pod.racks) * usize::from(pod.aggs);
            2 * (all + racks + usize::from(core) * usize::from(pod.pods) + usize::from(at))
        };
        let port = match link {
            Link::HostUp { host: h } => host(h),
            Link::HostDown { host: h } => host(h) + 1,
            Link::RackUp { rack, agg } => between(rack, agg),
            Link::RackDown { agg, rack } => between(rack, agg) + 1,
            // The aggregation switch has the first port of a core's link.
            Link::CoreUp { core: c } => core(c),
            Link::CoreDown { core: c } => core(c) + 1,
        };
        port as PortId
    }

    pub fn may_fail(&self) -> bool {
        !self.down.is_empty()
    }

    /// Whether a link is down at some time in `from..=until`: then cells that cross it are lost.
    pub fn is_down(&self, at: u16, link: Link, from: Time, until: Time) -> bool {
        self.may_fail()
            && self.down[self.port(at, link) as usize].iter().any(|&(down, up)| down <= until && from < up)
    }
}
