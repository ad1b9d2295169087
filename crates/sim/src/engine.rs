//! The event loop of the devices that one thread runs.

use crate::core::{Core, MANY_PACKETS};
use crate::faults;
use crate::features::{All, ByFlow, Features, Hooked, Plain, Used};
use crate::kind;
use crate::packet::NONE;
use crate::parallel::partition::Partition;
use crate::switch::arrive::arrive;
use crate::switch::port::{Port, Wire};
use crate::switch::transmit::kick;
use crate::switch::{evict, failures, modes};
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::{FlowControl, Scheme};

/// A part of a run.
pub struct Engine<'a> {
    pub core: Core<'a>,
    pub flow_control: FlowControl,
    next_flow: usize,
}

impl<'a> Engine<'a> {
    pub fn new(plan: &'a Plan, partition: &'a Partition, part: usize) -> Self {
        let priorities: Vec<u8> = plan.lanes.iter().map(|l| l.priority).collect();
        let flow_control = plan.flow_control.start(plan.topology.ports.len(), &priorities);
        let mut core = Core::new(plan, partition, part, flow_control.timers());
        core.post_faults();
        for (i, receiver) in plan.receivers.iter().enumerate().filter(|(_, r)| partition.of(r.host) == part) {
            for &(from, until) in &receiver.stalls {
                core.post(from, kind::STALL, i as u32, 1);
                if until < Time::MAX {
                    core.post(until, kind::STALL, i as u32, 0);
                }
            }
        }
        let mut engine = Self { core, flow_control, next_flow: 0 };
        for port in 0..plan.topology.ports.len() as u32 {
            let Port { node, wire, .. } = engine.core.egress.ports[port as usize];
            if partition.of(node) == part && wire != Wire::Inner {
                engine.flow_control.begins(&mut engine.core, port);
            }
        }
        engine.await_flows();
        engine.core.await_gates();
        engine
    }

    /// Processes all events before `until`. Returns the number of events.
    pub fn advance(&mut self, until: Time) -> u64 {
        self.core.prefetches |= self.core.packets.footprint() > MANY_PACKETS;
        match self.core.features {
            Used::Plain => self.take::<Plain>(until),
            Used::ByFlow => self.take::<ByFlow>(until),
            Used::Hooked => self.take::<Hooked>(until),
            Used::All => self.take::<All>(until),
        }
    }

    #[inline(never)]
    fn take<F: Features>(&mut self, until: Time) -> u64 {
        let mut events: u64 = 0;
        while let Some(event) = self.core.wheel.pop_before(until) {
            self.core.now = event.time;
            if self.core.prefetches {
                self.core.fetch_ahead();
            }
            let element = event.element();
            // Most events end with a kick. One call of it keeps the code short. Nearly all are of the first two kinds.
            let port = if event.kind() == kind::ARRIVAL {
                arrive::<F>(&mut self.core, &mut self.flow_control, element, event.data())
            } else if event.kind() == kind::DECISION {
                self.core.egress.ports[element as usize].pending = false;
                Some(element)
            } else {
                match event.kind() {
                    kind::TIMEOUT => self.core.timeout(element),
                    kind::PACE => Some(self.core.pace(element)),
                    kind => {
                        events += self.process_rare(kind, element, event.data());
                        continue;
                    }
                }
            };
            events += 1;
            if let Some(port) = port {
                kick::<F>(&mut self.core, &mut self.flow_control, port);
            }
        }
        self.core.observed.counters.events += events;
        events
    }

    /// Processes an event of a rare kind. Returns how many events it counts as.
    #[inline(never)]
    fn process_rare(&mut self, kind: u8, element: u32, data: u32) -> u64 {
        match kind {
            kind::CONTROL => self.control(element, data),
            kind::TIMER => {
                // Else it was cancelled, or armed anew since.
                if self.core.timers[element as usize] == data {
                    self.flow_control.timer(&mut self.core, element);
                    modes::settle(&mut self.core, &mut self.flow_control);
                    evict::settle(&mut self.core, &mut self.flow_control);
                }
            }
            kind::STALL => self.stall(element, data == 1),
            kind::GATE => self.open_gate(element),
            kind::WORD => self.core.on_word(element, data),
            kind::LINK_TIMER => self.core.link_timer(element),
            kind::LEFT => self.core.arbiter_left(element),
            kind::PULL => {
                self.core.request_more(element);
                kick::<All>(&mut self.core, &mut self.flow_control, element);
            }
            kind::BARRIER => {
                let frame = self.core.take_frame(data);
                if !self.core.is_cut(element, self.core.now) {
                    self.flow_control.received(&mut self.core, element, &frame);
                }
            }
            kind::SETTLE => self.flow_control.settles(&mut self.core, element, data as u8),
            kind::FAULT => {
                failures::happens(&mut self.core, &mut self.flow_control, element, data);
                // A change of routes happens in every part, so no part counts it.
                return u64::from(element != faults::ROUTES);
            }
            // Flows count one by one: how many begin together depends on the part.
            _ => return self.begin_flows(),
        }
        1
    }

    /// A control frame takes effect at `port`.
    fn control(&mut self, port: u32, id: u32) {
        let core = &mut self.core;
        if let Some(oracle) = &mut core.blocking {
            oracle.takes_effect(core.packets[id].number);
        }
        let frame = core.take_frame(id);
        let faulty = core.wire_of(port) == Wire::Faulty;
        if !(faulty && core.reset_since_arrival(port)) {
            let effect = frame.effect();
            core.observed.named = core.named_by(port, effect);
            if let Some(oracle) = &mut core.blocking {
                oracle.on_effect(&core.plan.topology, port, effect, core.observed.named, core.now);
            }
            self.flow_control.received(core, port, &frame);
            core.observed.named = NONE;
        }
        if let Some(oracle) = &mut core.blocking {
            oracle.effect_ends();
        }
    }

    /// Posts the beginning of the next flow of this part's hosts.
    fn await_flows(&mut self) {
        let flows = &self.core.plan.flows;
        // Flows after gates come last, and their gates begin them.
        while let Some(flow) = flows.get(self.next_flow).filter(|f| f.after.is_none()) {
            if self.core.owns(flow.src) {
                self.core.post(flow.start, kind::FLOWS, 0, 0);
                break;
            }
            self.next_flow += 1;
        }
    }

    /// The last delivery for a gate has arrived: its flows begin.
    #[cold]
    fn open_gate(&mut self, gate: u32) {
        let plan = self.core.plan;
        for &flow in &plan.gates[gate as usize].flows {
            let start = plan.flows[flow as usize].start;
            debug_assert!(start <= self.core.now, "no gate opens before its flows' start");
            let port = self.core.begin_flow(flow);
            kick::<All>(&mut self.core, &mut self.flow_control, port);
        }
    }

    /// Begins the flows that are due. Returns how many.
    fn begin_flows(&mut self) -> u64 {
        let plan = self.core.plan;
        let mut begun = 0;
        while let Some(flow) = plan.flows.get(self.next_flow).filter(|f| f.after.is_none()) {
            if self.core.owns(flow.src) {
                if flow.start > self.core.now {
                    break;
                }
                let port = self.core.begin_flow(self.next_flow as u32);
                kick::<All>(&mut self.core, &mut self.flow_control, port);
                begun += 1;
            }
            self.next_flow += 1;
        }
        self.await_flows();
        begun
    }

    fn stall(&mut self, receiver: u32, stops: bool) {
        let rx = self.core.plan.receivers[receiver as usize].rx;
        self.core.egress.ports[rx as usize].paused = if stops { u64::MAX } else { 0 };
        self.core.post_decision(rx);
    }
}
