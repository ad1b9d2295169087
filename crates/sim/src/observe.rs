//! The records of a run. Nothing here decides anything.

use crate::outcome::{Counters, DropReason, Drops, FlowOutcome, Pause};
use crate::packet::NONE;
use std::collections::BTreeMap;
use xoff_kernel::time::Time;
use xoff_plan::plan::Plan;
use xoff_schemes::flow_control::ControlFrame;

/// The notes of a run in progress.
#[derive(Default)]
pub struct Observed {
    pub counters: Counters,
    /// Packets delivered in order and acknowledged.
    pub progress: u64,
    pub flows: Vec<FlowOutcome>,
    pub flows_done: usize,
    pub pauses: Vec<Pause>,
    /// By port and lane: the standing pause's index in `pauses`, or [`NONE`].
    standing: Vec<u32>,
    /// Standing pauses by index in `pauses`, in no order of meaning.
    pub open: Vec<u32>,
    /// By index in `pauses`: the place in `open`, while it stands.
    open_at: Vec<u32>,
    /// By account: when XOFF was crossed, of those that are over.
    pub over_since: BTreeMap<u32, Time>,
    lanes: usize,
    /// Payload delivered in order, by class.
    pub class_bytes: Vec<u64>,
    pub drops: BTreeMap<(u32, u8, DropReason), Drops>,
    /// By port: pause frames, resume frames, ECN marks.
    pub control: Vec<[u64; 3]>,
    /// When the last flow completed or failed, so far.
    pub last_done: Time,
    /// The congested port that the frame names which takes effect now, or [`NONE`].
    pub named: u32,
}

impl Observed {
    pub fn new(plan: &Plan, ports: usize, lanes: usize) -> Self {
        Self {
            flows: vec![FlowOutcome::default(); plan.flows.len()],
            standing: vec![NONE; ports * lanes],
            lanes,
            class_bytes: vec![0; plan.classes.len()],
            control: vec![[0; 3]; ports],
            named: NONE,
            ..Self::default()
        }
    }

    /// Takes over what a dead device has seen. Only numbers with a fixed place are whole whenever it died.
    pub fn inherit(&mut self, dead: &Self) {
        (self.counters, self.flows_done, self.last_done) = (dead.counters, dead.flows_done, dead.last_done);
        self.progress = dead.progress;
        self.flows.copy_from_slice(&dead.flows);
        self.class_bytes.copy_from_slice(&dead.class_bytes);
        self.control.copy_from_slice(&dead.control);
    }

    #[cold]
    pub fn started(&mut self, flow: u32, now: Time) {
        self.flows[flow as usize].started = Some(now);
    }

    #[cold]
    pub fn first_sent(&mut self, flow: u32, now: Time) {
        self.flows[flow as usize].first_sent = Some(now);
    }

    #[cold]
    pub fn completed(&mut self, flow: u32, now: Time) {
        self.flows[flow as usize].completed = Some(now);
        self.flows_done += 1;
        self.last_done = now;
    }

    /// The sender of the flow gives up.
    #[cold]
    pub fn failed(&mut self, flow: u32, now: Time) {
        self.flows[flow as usize].failed = Some(now);
        self.flows_done += 1;
        self.last_done = now;
    }

    pub fn control_sent(&mut self, port: u32, frame: &ControlFrame) {
        if let Some(pauses) = frame.pauses() {
            self.control[port as usize][usize::from(!pauses)] += 1;
        }
        self.counters.extra_control += u64::from(frame.beyond_pfc());
    }

    pub fn pause_begins(&mut self, pause: Pause) {
        let place = pause.port as usize * self.lanes + usize::from(pause.lane);
        self.standing[place] = self.leaf_pause_begins(pause);
    }

    pub fn pause_ends(&mut self, now: Time, port: u32, lane: u8) {
        let standing = &mut self.standing[port as usize * self.lanes + usize::from(lane)];
        let index = std::mem::replace(standing, NONE);
        self.leaf_pause_ends(now, index);
    }

    /// A leaf (or flow) of a lane stops; the returned number ends the pause.
    pub fn leaf_pause_begins(&mut self, pause: Pause) -> u32 {
        let index = self.pauses.len() as u32;
        self.open_at.push(self.open.len() as u32);
        self.open.push(index);
        self.pauses.push(pause);
        index
    }

    pub fn leaf_pause_ends(&mut self, now: Time, index: u32) {
        self.pauses[index as usize].until = Some(now);
        // Thousands can stand at a time: a pause of each flow of each host.
        let at = self.open_at[index as usize];
        debug_assert_eq!(self.open[at as usize], index, "a standing pause is open");
        self.open.swap_remove(at as usize);
        if let Some(&moved) = self.open.get(at as usize) {
            self.open_at[moved as usize] = at;
        }
    }

    /// The standing pause of a lane on a port.
    pub fn standing(&self, port: u32, lane: u8) -> Option<&Pause> {
        let index = self.standing[port as usize * self.lanes + usize::from(lane)];
        self.pauses.get(index as usize)
    }

    pub fn dropped(&mut self, drop: Drops, flow_of_data: Option<u32>) {
        let none = Drops { packets: 0, bytes: 0, shortfall: 0, ..drop };
        let known = self.drops.entry((drop.ingress, drop.lane, drop.reason)).or_insert(none);
        known.packets += 1;
        known.bytes += drop.bytes;
        known.shortfall = known.shortfall.max(drop.shortfall);
        if let Some(flow) = flow_of_data {
            self.counters.dropped += 1;
            self.flows[flow as usize].dropped += 1;
        }
    }
}
