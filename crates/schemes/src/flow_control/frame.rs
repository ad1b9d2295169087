//! Control frames between neighbours, of every scheme.

use xoff_wire::credit::CreditPacket;
use xoff_wire::feedback::FeedbackFrame;
use xoff_wire::itsy::ItsyFrame;
use xoff_wire::pfc::PfcFrame;
use xoff_wire::port_pause::PortPauseFrame;
use xoff_wire::probe::ProbeFrame;
use xoff_wire::queue_pause::QueuePauseFrame;
use xoff_wire::root_pause::{RootPauseFrame, Word};
use xoff_wire::roundabout::RoundaboutFrame;

/// A control frame between neighbours, of any scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlFrame {
    /// 802.1Qbb.
    Pfc(PfcFrame),
    /// Names one queue or one flow.
    QueuePause(QueuePauseFrame),
    /// Names an egress port and queue of a switch.
    PortPause(PortPauseFrame),
    /// Names the root of a congestion tree.
    RootPause(RootPauseFrame),
    /// Grants a slot.
    Feedback(FeedbackFrame),
    /// Says how much credit a lane has.
    Credit(CreditPacket),
    /// Of Roundabout: pauses, probes for deadlocks, and what dissolves them.
    Roundabout(RoundaboutFrame),
    /// Of ITSY: checks for deadlocks, beside what PFC says or alone.
    Itsy(ItsyFrame),
    /// Between control planes: probes for deadlocks, and what follows.
    Probe(ProbeFrame),
}

macro_rules! from {
    ($($variant:ident($frame:ty),)*) => {
        $(impl From<$frame> for ControlFrame {
            fn from(frame: $frame) -> Self {
                Self::$variant(frame)
            }
        })*
    };
}

from! {
    Pfc(PfcFrame),
    QueuePause(QueuePauseFrame),
    PortPause(PortPauseFrame),
    RootPause(RootPauseFrame),
    Feedback(FeedbackFrame),
    Credit(CreditPacket),
    Roundabout(RoundaboutFrame),
    Itsy(ItsyFrame),
    Probe(ProbeFrame),
}

impl ControlFrame {
    /// Bytes on the wire.
    pub fn length(&self) -> u32 {
        match self {
            Self::Pfc(_) => PfcFrame::LENGTH,
            Self::QueuePause(_) => QueuePauseFrame::LENGTH,
            Self::PortPause(_) => PortPauseFrame::LENGTH,
            Self::RootPause(_) => RootPauseFrame::LENGTH,
            Self::Feedback(_) => FeedbackFrame::LENGTH,
            Self::Credit(packet) => packet.length(),
            Self::Roundabout(frame) => frame.length(),
            Self::Itsy(_) => ItsyFrame::LENGTH,
            Self::Probe(frame) => frame.length(),
        }
    }

    /// Bytes on the wire beyond those of PFC: all of a frame that neither pauses nor resumes,
    /// and of others what they are longer than 802.1Qbb's.
    pub fn beyond_pfc(&self) -> u32 {
        let pfc = if self.pauses().is_some() { PfcFrame::LENGTH } else { 0 };
        self.length().saturating_sub(pfc)
    }

    /// Takes up what a `later` frame says, if one frame can say both: a PFC frame
    /// speaks of every priority, and the newest word on each is what counts. The
    /// device asks while this frame still waits for its wire, so that no frame
    /// waits behind another of its kind. A frame that names a queue keeps its place.
    pub fn merge(&mut self, later: &Self) -> bool {
        match (&mut *self, later) {
            (Self::Pfc(waiting), Self::Pfc(later)) => {
                waiting.take_up(later);
                true
            }
            // A check rides on what goes to the same neighbour; it does not hold that up.
            (Self::Itsy(waiting), Self::Pfc(later)) if !waiting.is_alone() => {
                waiting.pfc.take_up(later);
                true
            }
            (Self::Pfc(waiting), Self::Itsy(later)) if later.is_alone() => {
                let pfc = *waiting;
                *self = Self::Itsy(ItsyFrame { pfc, check: later.check });
                true
            }
            (Self::Itsy(waiting), Self::Itsy(later)) => later.is_alone() && waiting.check == later.check,
            // A later slot's takes the place of an earlier one's.
            (Self::Feedback(waiting), Self::Feedback(later)) => {
                *waiting = *later;
                true
            }
            // Counters: what was true later holds for both.
            (Self::Credit(waiting), Self::Credit(later)) if waiting.lane == later.lane => {
                *waiting = *later;
                true
            }
            (
                Self::Pfc(_)
                | Self::QueuePause(_)
                | Self::PortPause(_)
                | Self::RootPause(_)
                | Self::Feedback(_)
                | Self::Credit(_)
                // Their order carries meaning.
                | Self::Roundabout(_)
                | Self::Itsy(_)
                | Self::Probe(_),
                _,
            ) => false,
        }
    }

    /// Whether it leaves before one that waits: what hardware says goes before the messages
    /// of control planes, and a pause before a check, so that no pause waits behind those.
    pub fn overtakes(&self, waiting: &Self) -> bool {
        match (self, waiting) {
            (Self::Pfc(_), Self::Probe(_)) => true,
            (Self::Pfc(_), Self::Itsy(check)) => check.is_alone(),
            _ => false,
        }
    }

    /// Whether it stops (true) or restarts the one who gets it; `None` if it does
    /// something else.
    pub fn pauses(&self) -> Option<bool> {
        match self {
            Self::Pfc(frame) => Some(frame.entries().any(|(_, quanta)| quanta > 0)),
            Self::QueuePause(frame) => Some(frame.pause),
            Self::PortPause(frame) => Some(frame.pause),
            Self::RootPause(frame) => match frame.word {
                Word::Pause => Some(true),
                Word::Resume => Some(false),
                Word::Merge { .. } | Word::Release => None,
            },
            Self::Feedback(_) => None,
            Self::Credit(_) => None,
            Self::Roundabout(frame) => frame.quanta.map(|quanta| quanta > 0),
            Self::Itsy(frame) if frame.is_alone() => None,
            Self::Itsy(frame) => Self::Pfc(frame.pfc).pauses(),
            Self::Probe(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ControlFrame;
    use xoff_wire::credit::{CreditPacket, Form};
    use xoff_wire::roundabout::{Nodes, Opcode, RoundaboutFrame, Triplet};

    #[test]
    fn credits_of_two_lanes_do_not_merge() {
        let credit = |lane, limit| ControlFrame::Credit(CreditPacket::new(Form::Narrow, lane, 0, limit));
        let mut waiting = credit(3, 10);
        assert!(!waiting.merge(&credit(5, 20)));
        assert_eq!(waiting, credit(3, 10));
        assert!(waiting.merge(&credit(3, 20)));
        assert_eq!(waiting, credit(3, 20));
    }

    #[test]
    fn a_frame_of_roundabout_pauses_by_its_quanta() {
        let frame = |quanta| {
            let (opcode, triplet, nodes) = (Opcode::Probe, Triplet::default(), Nodes::default());
            ControlFrame::Roundabout(RoundaboutFrame { priority: 3, quanta, opcode, triplet, nodes })
        };
        assert_eq!(
            [None, Some(0), Some(1)].map(|quanta| frame(quanta).pauses()),
            [None, Some(false), Some(true)]
        );
    }
}
