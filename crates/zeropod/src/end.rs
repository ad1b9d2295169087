//! The end of a run, and its results.

use crate::{QUIET, World, cores::Core, kind};
use xoff_kernel::time::{MICROSECOND, SECOND, Time, wire_time};
use xoff_outcome::report::Records;
use xoff_outcome::{
    AccountPeak, Livelock, MemoryUse, Outcome, Quantity, Sample, StalledFlow, Stop, footprint,
};
use xoff_schemes::scheduling::zeropod::Link;

/// A run without an end time ends at the first multiple of this after its last flow.
const TICK: Time = MICROSECOND;

impl World<'_> {
    /// Whether senders have retransmitted without progress for longer than timers and queues explain, and no
    /// flow is still to start.
    pub(crate) fn retransmits_for_ever(&self) -> bool {
        let Some(acks) = &self.acks else { return false };
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        let stored = self.cores.iter().map(|core| core.stored * cell).sum();
        let slowest = self.plan.topology.ports.iter().map(|port| port.rate).min().unwrap_or(SECOND);
        let waits = acks.timeout.saturating_mul(2).max(wire_time(stored, slowest));
        let explained = QUIET.saturating_add(waits.saturating_mul(4));
        self.now > self.receivers.progressed.max(acks.progressed).saturating_add(explained)
            && !self.wheel.pending().any(|event| event.kind() == kind::START)
    }

    /// The stalled flows, if the run is in a livelock.
    fn livelock(&self) -> Option<Livelock> {
        let acks = self.acks.as_ref().filter(|_| self.retransmits_for_ever())?;
        let payload = u64::from(self.zeropod.scheduler.payload);
        let unfinished = |&flow: &u32| self.receivers.flows[flow as usize].is_unfinished();
        let stalled = |flow: u32| StalledFlow {
            flow,
            packets: self.plan.flows[flow as usize].size.div_ceil(payload),
            delivered: self.receivers.received[flow as usize].prefix.div_ceil(payload),
            acknowledged: acks.acked[flow as usize].div_ceil(payload),
            places: Vec::new(),
        };
        let flows: Vec<_> = (0..self.plan.flows.len() as u32).filter(unfinished).map(stalled).collect();
        let since = self.receivers.progressed.max(acks.progressed);
        (!flows.is_empty()).then_some(Livelock { since, flows })
    }

    /// The memory of the run, largest first.
    fn footprint(&self) -> Vec<MemoryUse> {
        let goodput: u64 = self.receivers.goodput.iter().map(footprint::of).sum();
        footprint::sorted([
            ("samples of series", footprint::of(&self.series) + goodput),
            ("queues of hosts", footprint::of(&self.items.list) + footprint::of(&self.voqs)),
            ("scheduled events", self.wheel.footprint()),
            ("state of flows", footprint::of(&self.plan.flows) + footprint::of(&self.receivers.received)),
            ("requests and grants", footprint::of(&self.wanted) + footprint::of(&self.voq_of)),
        ])
    }

    pub(crate) fn nothing_begins(&self) -> bool {
        !self.wheel.pending().any(|event| matches!(event.kind(), kind::START | kind::CELL | kind::ARRIVAL))
    }

    pub(crate) fn sample(&mut self, at: Time) {
        let cell = u64::from(self.zeropod.scheduler.payload + self.zeropod.header);
        for (index, core) in self.cores.iter().enumerate() {
            let node = (self.plan.topology.nodes.len() - self.cores.len() + index) as u32;
            self.series.push(Sample { at, what: Quantity::Buffered(node), value: core.stored * cell });
        }
    }

    pub(crate) fn finish(mut self, stop: Stop) -> Outcome {
        let end = match stop {
            Stop::AllDone if self.plan.end.is_none() => (self.receivers.last_done / TICK + 1) * TICK,
            Stop::AllDone | Stop::EndTime => self.end,
            // Grants fix the cells of the rest of an epoch, which are counted already.
            Stop::Interrupted | Stop::Memory | Stop::Starved | Stop::Livelock => {
                let times = self.receivers.flows.iter().flat_map(|flow| flow.first_sent.max(flow.completed));
                times.fold(self.now, Time::max)
            }
        };
        let livelock = self.livelock();
        let memory = if stop.cut_short() { self.footprint() } else { Vec::new() };
        if let Some(taps) = &mut self.taps {
            // Events at the end itself have not happened, unless that is the time of the last event.
            taps.flush(if matches!(stop, Stop::AllDone | Stop::EndTime) { end } else { end + 1 });
        }
        let z = self.zeropod;
        // Cells in flight, or stored in cores.
        self.counters.in_flight += self.unscheduled.left();
        self.counters.in_flight += self.cores.iter().map(Core::left).sum::<u64>();
        let c = self.counters;
        assert_eq!(c.sent, c.delivered + c.dropped + c.in_flight, "cells are conserved");
        self.control_cells(end);
        self.counters.packet_hops += self.counters.data_hops;
        let cell = u64::from(z.scheduler.payload + z.header);
        let mut buffer_peaks = vec![0; self.plan.topology.nodes.len()];
        let first_core = buffer_peaks.len() - self.cores.len();
        for (peak, core) in buffer_peaks[first_core..].iter_mut().zip(&self.cores) {
            *peak = core.peak * cell;
        }
        for pod in &self.pods {
            let tally = pod.scheduler.tally();
            self.report.tally.iterations += tally.iterations;
            self.report.tally.requests += tally.requests;
            self.report.tally.granted += tally.granted;
            self.report.tally.approved += tally.approved;
            self.report.tally.accepted += tally.accepted;
        }
        self.report.unscheduled = self.unscheduled.tally;
        self.report.most_held = self.receivers.most_held;
        let mut series = std::mem::take(&mut self.series);
        series.extend(self.receivers.series(end));
        series.sort_by_key(|sample| sample.at);
        let accounts = self.plan.topology.ports.len() * self.plan.lanes.len();
        Outcome {
            end,
            stop,
            flows: self.receivers.flows,
            pauses: Vec::new(),
            series,
            ports: self.ports,
            buffer_peaks,
            accounts: vec![AccountPeak::default(); accounts],
            drops: self.drops.into_values().collect(),
            deadlock: None,
            waiting: Vec::new(),
            livelock,
            memory,
            blocking: None,
            paths: None,
            ahead: Vec::new(),
            routes: None,
            roots: Vec::new(),
            records: Records::of(self.report),
            counters: self.counters,
        }
    }

    /// Counts RTS and SCHD: one for each host and each port of a core in each epoch, empty or not.
    fn control_cells(&mut self, end: Time) {
        let z = self.zeropod;
        if !z.scheduled {
            return;
        }
        for pod in 0..z.pod.pods {
            let epochs = end.saturating_sub(z.clocks[usize::from(pod)]) / self.epoch;
            let hosts =
                (0..self.per_pod as u16).flat_map(|host| [Link::HostUp { host }, Link::HostDown { host }]);
            let cores = (0..z.pod.cores).flat_map(|core| [Link::CoreUp { core }, Link::CoreDown { core }]);
            for link in hosts.chain(cores) {
                let port = &mut self.ports[self.links.port(pod, link) as usize];
                port.packets += epochs;
                port.bytes += epochs * u64::from(z.control);
                // And over the scheduler's own link.
                self.counters.packet_hops += 2 * epochs;
                self.counters.extra_control += epochs * u64::from(z.control);
            }
        }
    }
}
