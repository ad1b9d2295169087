//! Receivers: the received bytes of each flow, and the flows that begin after it.

use crate::{kind, voq::Received};
use xoff_kernel::time::{SECOND, Time};
use xoff_kernel::wheel::{Event, Wheel};
use xoff_outcome::{FlowOutcome, Quantity, Sample};
use xoff_plan::plan::{Gate, Plan, Waits};

/// The flows of a gate begin when it opens.
fn begin(gates: &[Gate], wheel: &mut Wheel, gate: u32, at: Time) {
    for &flow in &gates[gate as usize].flows {
        wheel.push(Event::new(at, kind::START, flow, 0));
    }
}

pub struct Receivers<'a> {
    pub plan: &'a Plan,
    pub end: Time,
    pub flows: Vec<FlowOutcome>,
    pub received: Vec<Received>,
    pub gates: Waits,
    pub done: usize,
    pub last_done: Time,
    /// When the last new byte arrived, or will.
    pub progressed: Time,
    /// Payload by class and interval.
    pub interval: Time,
    pub goodput: Vec<Vec<u64>>,
    /// Bytes that wait for others before them, by host, and most of them.
    pub held: Vec<u64>,
    pub most_held: u64,
}

impl<'a> Receivers<'a> {
    pub fn new(plan: &'a Plan, hosts: usize) -> Self {
        Self {
            plan,
            end: plan.end.unwrap_or(Time::MAX),
            flows: vec![FlowOutcome::default(); plan.flows.len()],
            received: vec![Received::default(); plan.flows.len()],
            gates: Waits::new(&plan.gates),
            done: 0,
            last_done: 0,
            progressed: 0,
            interval: plan.measure.interval.unwrap_or(0),
            goodput: vec![Vec::new(); plan.classes.len()],
            held: vec![0; hosts],
            most_held: 0,
        }
    }

    /// Begins the flows that depend on no delivery.
    pub fn begin(&mut self, wheel: &mut Wheel) {
        for (flow, index) in self.plan.flows.iter().zip(0..).filter(|(flow, _)| flow.after.is_none()) {
            wheel.push(Event::new(flow.start, kind::START, index, 0));
        }
        let gates = &self.plan.gates;
        self.gates.begin(gates, &mut |gate, at| begin(gates, wheel, gate, at));
    }

    /// Bytes of a flow arrive at a time, which may be in the future. Returns whether any of them is new.
    pub fn receive(&mut self, index: u32, (from, to): (u64, u64), at: Time, wheel: &mut Wheel) -> bool {
        if at > self.end {
            return false;
        }
        let flow = &self.plan.flows[index as usize];
        let report = &mut self.flows[index as usize];
        let received = &mut self.received[index as usize];
        let waited = received.waiting();
        report.out_of_order += u64::from(from > received.prefix);
        let prefix = received.prefix;
        let new = received.insert(from, to);
        report.spurious += u64::from(new == 0);
        if new > 0 {
            self.progressed = self.progressed.max(at);
        }
        received.last = received.last.max(at);
        let held = &mut self.held[flow.dst as usize];
        *held = *held + received.waiting() - waited;
        self.most_held = self.most_held.max(*held);
        report.delivered_bytes = received.prefix;
        if let Some(bin) = at.checked_div(self.interval) {
            let bins = &mut self.goodput[usize::from(flow.class)];
            let bin = bin as usize;
            if bins.len() <= bin {
                bins.resize(bin + 1, 0);
            }
            bins[bin] += received.prefix - prefix;
        }
        if received.prefix == flow.size && report.completed.is_none() && new > 0 {
            report.delivered = Some(received.last);
            report.completed = Some(received.last);
            self.done += 1;
            self.last_done = self.last_done.max(received.last);
            if let Some(gate) = flow.opens {
                let gates = &self.plan.gates;
                self.gates
                    .count_down(gates, gate, received.last, &mut |gate, at| begin(gates, wheel, gate, at));
            }
        }
        new > 0
    }

    pub fn series(&self, end: Time) -> Vec<Sample> {
        let mut series = Vec::new();
        if self.interval == 0 {
            return series;
        }
        for (class, bins) in self.goodput.iter().enumerate() {
            for bin in 0..end.div_ceil(self.interval) {
                let from = bin * self.interval;
                let at = (from + self.interval).min(end);
                let bytes = bins.get(bin as usize).copied().unwrap_or(0);
                let value = u128::from(bytes) * 8 * u128::from(SECOND) / u128::from(at - from);
                series.push(Sample { at, what: Quantity::Goodput(class as u16), value: value as u64 });
            }
        }
        series
    }
}
