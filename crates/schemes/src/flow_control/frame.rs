//! Control frames between neighbours: what devices, oracles and captures ask them. The registry lists them.

pub use super::registry::ControlFrame;
use super::registry::each;
use xoff_wire::SMALLEST_FRAME;
use xoff_wire::pfc::PfcFrame;
use xoff_wire::queue_pause::{QueuePauseFrame, Target};

/// A control frame of a scheme. Its own `emit` writes it as bytes.
pub trait Frame {
    /// Bytes on the wire, check sequence included.
    fn length(&self) -> u32 {
        SMALLEST_FRAME
    }

    /// The effect on the egress of the device that receives it.
    fn effect(&self) -> Effect;

    /// Adds the content of a `later` frame, if one frame can contain both; returns whether it has.
    fn merge(&mut self, _later: &ControlFrame) -> bool {
        false
    }

    /// A frame with the content of the waiting PFC frame `waits`, and then that of this frame.
    fn join(&self, _waits: &PfcFrame) -> Option<ControlFrame> {
        None
    }

    /// Whether PFC frames overtake it while it waits for its wire.
    fn yields(&self) -> bool {
        false
    }

    /// Whether it leaves before `waiting`, which is a frame of the same scheme.
    fn goes_before(&self, _waiting: &ControlFrame) -> bool {
        false
    }

    /// Whether it keeps its place among data.
    fn is_barrier(&self) -> bool {
        false
    }

    /// The text of tests when it leaves `port`.
    #[cfg(test)]
    fn note(&self, port: u32) -> String;
}

/// The effect of a frame on the egress of the device that receives it, by the unit that a pause can stop
/// ([`PauseScope`](super::PauseScope)). A port is the number of its switch, and its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Lanes(PfcFrame),
    /// Every lane is stopped or restarted.
    Link {
        pause: bool,
    },
    Credit {
        /// Bit `p` is set for priority `p`.
        priorities: u16,
        /// It is less than the link could use. `None`: it is if the sender's account is over its threshold.
        limited: Option<bool>,
    },
    /// A queue or a flow is stopped or restarted.
    Queue {
        priority: u8,
        target: Target,
        pause: bool,
    },
    /// Packets that continue through a port of the sender are stopped or restarted.
    Onward {
        /// The port's number at the sender.
        port: u16,
        pause: bool,
    },
    /// Packets through a congestion root are stopped or restarted.
    Root {
        priority: u8,
        root: (u32, u16),
        /// It is stopped; `None`: neither.
        pause: Option<bool>,
    },
    /// The congestion root `into` takes the place of `old`, which is none any more.
    Merge {
        priority: u8,
        old: (u32, u16),
        into: (u32, u16),
    },
}

impl ControlFrame {
    pub fn length(&self) -> u32 {
        each!(self, frame => Frame::length(frame))
    }

    /// The frame from this address, without its check sequence.
    pub fn emit(&self, source: [u8; 6]) -> Vec<u8> {
        each!(self, frame => frame.emit(source).to_vec())
    }

    pub fn effect(&self) -> Effect {
        each!(self, frame => frame.effect())
    }

    /// Bytes on the wire beyond those of PFC: all bytes of a frame that neither pauses nor resumes; of other
    /// frames the bytes beyond the length of a frame of 802.1Qbb.
    pub fn beyond_pfc(&self) -> u32 {
        let pfc = if self.pauses().is_some() { PfcFrame::LENGTH } else { 0 };
        self.length().saturating_sub(pfc)
    }

    /// Adds the content of a `later` frame, if one frame can contain both: a PFC frame has a value for every
    /// priority, and the newest one counts. The device calls this while this frame still waits for its wire,
    /// so no frame waits after another of its kind. A frame that names a queue keeps its place.
    pub fn merge(&mut self, later: &Self) -> bool {
        if let Self::Pfc(waits) = self
            && let Some(both) = each!(later, frame => frame.join(waits))
        {
            *self = both;
            return true;
        }
        each!(self, frame => frame.merge(later))
    }

    /// Whether it leaves before a waiting one: hardware goes before control planes, pauses before checks.
    pub fn overtakes(&self, waiting: &Self) -> bool {
        matches!(self, Self::Pfc(_)) && each!(waiting, frame => frame.yields())
            || each!(self, frame => frame.goes_before(waiting))
    }

    pub fn is_barrier(&self) -> bool {
        each!(self, frame => frame.is_barrier())
    }

    /// Whether it stops (true) or restarts the one who gets it; `None` if it does something else.
    pub fn pauses(&self) -> Option<bool> {
        match self.effect() {
            Effect::Lanes(frame) => Some(frame.entries().any(|(_, quanta)| quanta > 0)),
            Effect::Link { pause } | Effect::Queue { pause, .. } | Effect::Onward { pause, .. } => {
                Some(pause)
            }
            Effect::Root { pause, .. } => pause,
            Effect::Nothing | Effect::Credit { .. } | Effect::Merge { .. } => None,
        }
    }

    #[cfg(test)]
    pub fn note(&self, port: u32) -> String {
        each!(self, frame => frame.note(port))
    }
}

impl Frame for PfcFrame {
    fn effect(&self) -> Effect {
        Effect::Lanes(*self)
    }

    fn merge(&mut self, later: &ControlFrame) -> bool {
        let ControlFrame::Pfc(later) = later else { return false };
        self.take_up(later);
        true
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("send {port} {:?}", self.entries().collect::<Vec<_>>())
    }
}

impl Frame for QueuePauseFrame {
    fn effect(&self) -> Effect {
        Effect::Queue { priority: self.priority, target: self.target, pause: self.pause }
    }

    #[cfg(test)]
    fn note(&self, port: u32) -> String {
        format!("{} {port} {:?}", if self.pause { "stop" } else { "go" }, self.target)
    }
}
