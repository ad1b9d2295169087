//! The input of the flow control, and its requirements.

use super::balancing::Laid;
use super::files::Listed;
use super::routes::Routes;
use super::{Context, faults, offered, reroute, slow_receivers};
use crate::balancing::LoadBalancing;
use crate::error::Error;
use crate::names;
use crate::plan::{Faults, Flow};
use crate::scenario::CongestionControl;
use xoff_kernel::time::Time;
use xoff_net::topology::Topology;
use xoff_schemes::flow_control::FlowControlKeys;
use xoff_schemes::flow_control::fabric::{self, Layout, Route};
use xoff_schemes::flow_control::keys::{Complaint, Setting};

impl Context<'_> {
    /// Asks the flow control, keeps its warnings and finds the place of its complaint.
    pub(super) fn ask<T>(
        &mut self,
        question: impl FnOnce(&FlowControlKeys, &mut Setting<'_>) -> Result<T, Complaint>,
    ) -> Result<T, Error> {
        let (doc, s) = (self.doc, self.scenario);
        let transport = &s.transport;
        let mut setting = Setting {
            scheme: s.flow_control.name(),
            is_written: &|key| doc.get(key).is_some(),
            node: |topology, name| names::node(topology, name).map_err(|e| (e.message, e.help)),
            packet: self.packet,
            retries: &self.retries,
            seed: s.run.seed,
            data: &self.data,
            ack_priority: transport.ack_priority,
            cnp_priority: s
                .congestion
                .notification_priority(transport.congestion_control)
                // Its error comes with the priorities.
                .unwrap_or_default(),
            blames: match (s.measure.blocking, s.measure.explains()) {
                (true, _) => Some("blocking"),
                (false, explain) => explain.then_some("explain"),
            },
            by_packet: s.routing.load_balancing.by_packet(),
            failures: !s.failure.is_empty(),
            slows: transport.congestion_control != CongestionControl::None
                || transport.window.is_some()
                || transport.kind.traits().limits_flight,
            slow_receivers: s.slow_receiver.iter().map(|s| s.host.as_str()).collect(),
            host_buffer: s.host.buffer.0,
            switch_buffer: s.switch.buffer.map(|b| b.0),
            warnings: Vec::new(),
        };
        let answer = question(&s.flow_control, &mut setting);
        self.warnings.append(&mut setting.warnings);
        answer.map_err(|complaint| self.located(complaint))
    }

    pub(super) fn located(&self, c: Complaint) -> Error {
        self.doc.error(&c.shown, c.message, c.help).with_key(c.key)
    }

    /// The priority of ACKs, and of CNPs that have no priority of their own; `None`: the priority of their flow.
    pub(super) fn ack_priority(&self) -> Option<u8> {
        self.scenario.transport.ack_priority.or(self.scenario.flow_control.default_ack_priority())
    }
}

pub(super) fn check_queues(cx: &Context<'_>, topology: &Topology, lanes: usize) -> Result<(), Error> {
    let Some((queues, each)) = cx.scenario.flow_control.queues() else { return Ok(()) };
    let queues = u64::from(queues) * (topology.ports.len() * lanes) as u64;
    let advice = "choose fewer queues, or a smaller network";
    cx.fits("flow_control.queues", queues * each, format_args!("{queues} queues"), advice)
}

/// The routes of `flows`, and those after failures.
pub(super) fn routes<'r>(hops: &'r [u32], flows: &[Flow], faults: &Faults) -> fabric::Routes<'r> {
    let route = |f: &Flow| Route { src: f.src, dst: f.dst, path: f.path, ack_path: f.ack_path, later: false };
    let later = faults.tables.iter().flat_map(|table| &table.flows).map(|r| {
        let before = route(&flows[r.flow as usize]);
        Route { path: r.path, ack_path: r.ack_path, later: true, ..before }
    });
    fabric::Routes {
        hops,
        flows: flows.iter().map(route).chain(later).collect(),
        moved: faults.tables.iter().flat_map(|table| &table.positions).copied().collect(),
    }
}

/// Where packets change their priority on their path: the priorities, which it adds to those in `used`. So
/// the routes are computed here once, before the priorities are known.
pub(super) fn tags(
    cx: &mut Context<'_>,
    topology: &Topology,
    listed: &Listed,
    end: Option<Time>,
    used: &mut Vec<u8>,
) -> Result<Option<Layout>, Error> {
    if !cx.scenario.flow_control.changes_priorities() {
        return Ok(None);
    }
    let starts = cx.ask(|keys, cx| keys.covered(cx, used))?;
    let warned = cx.warnings.len();
    let slow = slow_receivers(cx, topology)?;
    let mut routes = Routes::new(cx, topology, &slow)?;
    let offers = offered::generate(cx, topology, &mut routes, listed.clone())?;
    let mut flows = routes.flows(cx, topology, &offers, &|_| 0)?;
    let faults = faults::read(cx, topology, end)?;
    let timeline = reroute::timeline(&faults, end);
    let laid = (Laid::Hashed, &mut LoadBalancing::Ecmp);
    let planned = reroute::plan(cx, topology, &mut routes, &offers, &mut flows, &timeline, laid)?;
    // The final computation gives all warnings.
    cx.warnings.truncate(warned);
    let routes = self::routes(&routes.hops, &flows, &planned);
    let tags = cx.ask(|keys, cx| keys.tags(cx, topology, 2 * slow.len(), &routes, &starts, used))?;
    if let Some(layout) = &tags {
        used.extend(layout.lossless.iter().copied().chain([layout.lossy]));
    }
    used.sort_unstable_by(|a, b| b.cmp(a));
    used.dedup();
    Ok(tags)
}
