//! A device for tests, which records its calls.

use super::device::{Causes, Device, Loops, Queues, Repair};
use super::{ControlFrame, Crossing, Mode, Onward};
use xoff_kernel::time::Time;
use xoff_wire::queue_pause::Target;

#[derive(Default)]
pub struct Notes {
    pub now: Time,
    pub log: Vec<String>,
    /// Results of `active_queues` and `is_paused`.
    pub active: u32,
    pub paused: Vec<u16>,
    /// Results of `port_of` and `relay_port`.
    pub ports: Vec<u32>,
    pub relays: Vec<u32>,
    /// Results of `onward`, by hop, and of `queue_bytes`, by port.
    pub paths: Vec<Vec<u32>>,
    pub bytes: std::collections::BTreeMap<u32, u64>,
    /// Result of `backlog`.
    pub backlog: u64,
    /// Results of `waits`: ingress, egress and lane.
    pub waiting: std::collections::BTreeSet<(u32, u32, u8)>,
    /// Results of `stored` and `received`, by port and lane.
    pub stored: std::collections::BTreeMap<(u32, u8), u64>,
    pub received: std::collections::BTreeMap<(u32, u8), u64>,
    /// Results of `is_over`.
    pub over: std::collections::BTreeSet<(u32, u8)>,
    /// Results of `reroute` and `enlarge`.
    pub rerouted: (u64, u64),
    pub enlarged: Option<u64>,
    /// Result of `shrink`.
    pub shrinks: bool,
    /// Result of `headroom`.
    pub headroom: (u64, u64),
}

impl Device for Notes {
    fn now(&self) -> Time {
        self.now
    }
    fn rate(&self, _: u32) -> u64 {
        100_000_000_000
    }
    fn pause(&mut self, port: u32, lane: u8) {
        self.log.push(format!("pause {port}/{lane}"));
    }
    fn hold(&mut self, port: u32, lane: u8) {
        self.log.push(format!("hold {port}/{lane}"));
    }
    fn resume(&mut self, port: u32, lane: u8) {
        self.log.push(format!("resume {port}/{lane}"));
    }
    fn backlog(&self, _: u32, _: u8) -> u64 {
        self.backlog
    }
    fn device_of(&self, _: u32) -> u32 {
        0
    }
    fn port_of(&self, _: u32, index: usize) -> Option<u32> {
        self.ports.get(index).copied()
    }
    fn relay_port(&self, _: u32, index: usize) -> Option<u32> {
        self.relays.get(index).copied()
    }
    fn stored(&self, port: u32, lane: u8) -> u64 {
        self.stored.get(&(port, lane)).copied().unwrap_or(0)
    }
    fn received(&self, port: u32, lane: u8) -> u64 {
        self.received.get(&(port, lane)).copied().unwrap_or(0)
    }
    fn send_control(&mut self, port: u32, frame: ControlFrame) {
        self.log.push(frame.note(port));
    }
    fn arm(&mut self, timer: u32, at: Time) {
        self.log.push(format!("arm {timer} {at}"));
    }
    fn cancel(&mut self, timer: u32) {
        self.log.push(format!("cancel {timer}"));
    }
}

impl Queues for Notes {
    fn pause_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.log.push(format!("pause {port}/{lane} {target:?}"));
    }
    fn resume_queue(&mut self, port: u32, lane: u8, target: Target) {
        self.log.push(format!("resume {port}/{lane} {target:?}"));
    }
    fn pause_queue_for(&mut self, port: u32, lane: u8, queue: u16, root: u32) {
        self.log.push(format!("pause {port}/{lane} {queue} for {root}"));
    }
    fn queue_bytes(&self, port: u32, _: u8, _: u16) -> u64 {
        self.bytes.get(&port).copied().unwrap_or(0)
    }
    fn onward(&self, hop: u32, distance: u32) -> Onward {
        let path = self.paths.get(hop as usize).map_or(&[][..], Vec::as_slice);
        path.get(distance as usize).map_or(Onward::End, |&port| Onward::Port(port))
    }
    fn is_paused(&self, _: u32, _: u8, queue: u16) -> bool {
        self.paused.contains(&queue)
    }
    fn active_queues(&self, _: u32, _: u8) -> u32 {
        self.active
    }
}

impl Causes for Notes {
    fn waits(&self, ingress: u32, egress: u32, lane: u8) -> bool {
        self.waiting.contains(&(ingress, egress, lane))
    }
    fn is_stopped(&self, port: u32, _: u8) -> bool {
        self.paused.contains(&(port as u16))
    }
    fn is_over(&self, port: u32, lane: u8, _: u64) -> bool {
        self.over.contains(&(port, lane))
    }
}

impl Repair for Notes {
    fn set_mode(&mut self, port: u32, lane: u8, mode: Mode) {
        let mode = match mode {
            Mode::Obey => "Obey",
            Mode::Discard(_) => "Discard",
            Mode::Forward => "Forward",
        };
        self.log.push(format!("{port}/{lane} {mode}"));
    }
    fn reroute(&mut self, ingress: u32, port: u32, lane: u8) -> (u64, u64) {
        self.log.push(format!("reroute {ingress} {port}/{lane}"));
        self.rerouted
    }
    fn enlarge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<u64> {
        self.log.push(format!("enlarge {port}/{lane} {bytes}"));
        self.enlarged
    }
    fn drop_waiting(&mut self, ingress: u32, egress: u32, lane: u8, _: &'static xoff_outcome::report::Cause) {
        self.log.push(format!("drop {ingress}/{lane} at {egress}"));
    }
    fn shrink(&mut self, port: u32, lane: u8) -> bool {
        self.log.push(format!("shrink {port}/{lane}"));
        self.shrinks
    }
}

impl Loops for Notes {
    fn neighbour(&self, port: u32) -> u32 {
        1_000 + port
    }
    fn headroom(&self, _: u32, _: u8) -> (u64, u64) {
        self.headroom
    }
    fn enter_loop(&mut self, port: u32, lane: u8) {
        self.log.push(format!("enter {port}/{lane}"));
    }
    fn gate(&mut self, port: u32, lane: u8, open: bool) {
        self.log.push(format!("gate {port}/{lane} {open}"));
    }
    fn leave_loop(&mut self, port: u32, lane: u8) {
        self.log.push(format!("leave {port}/{lane}"));
    }
    fn insert(&mut self, port: u32, lane: u8, _: ControlFrame, ahead: bool) {
        self.log.push(format!("insert {port}/{lane} {ahead}"));
    }
    fn follow_charges(&mut self, _: bool) {}
    fn release_charge(&mut self, port: u32, lane: u8, bytes: u64) -> Option<Crossing> {
        self.log.push(format!("give back {port}/{lane} {bytes}"));
        None
    }
    fn transfer_charge(&mut self, from: u32, to: u32, lane: u8, bytes: u64) -> u64 {
        self.log.push(format!("hand over {from} {to}/{lane} {bytes}"));
        bytes
    }
    fn charge(&mut self, port: u32, lane: u8, bytes: u64) -> (u64, Option<Crossing>) {
        self.log.push(format!("charge {port}/{lane} {bytes}"));
        (bytes, None)
    }
    fn settle(&mut self, port: u32, lane: u8) {
        self.log.push(format!("settle {port}/{lane}"));
    }
}
