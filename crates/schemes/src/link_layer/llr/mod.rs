//! LLR, link-level retry of Ultra Ethernet (specification 1.0.x, section 5.1).
//!
//! A transmitter numbers its frames and keeps each one until the other end has acknowledged it. A receiver
//! passes frames on in order and discards all others. After a gap or a bad check sequence it sends one NACK, and
//! the transmitter retransmits the frames after the last good one, in order. If no acknowledgement comes for some
//! time, it retransmits its whole buffer; after a number of these rounds it gives its frames up and begins anew.
//!
//! Nothing here knows time or a wire: callers say when a timer expires and when a word can be sent.

#[cfg(test)]
mod explore;
pub mod frame;
pub mod keys;
pub mod report;
pub mod size;
#[cfg(test)]
mod tests;

use frame::Word;
use std::collections::VecDeque;
use xoff_kernel::time::Time;
use xoff_outcome::report::Cause;

/// Sequence numbers have 20 bits.
pub const SEQUENCES: u32 = 1 << 20;
const MASK: u32 = SEQUENCES - 1;
/// Most frames in flight: with more, a number could be ahead as well as behind.
pub const MOST_FRAMES: u32 = SEQUENCES / 2;

/// Why frames are dropped that the transmitter has given up.
pub static UNDELIVERED: Cause = Cause {
    name: "link-retry-limit",
    because: "the link's retries reached their limit",
    by: "by the link layer after its last retry",
};

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// By port; `None` where there is no link.
    pub ports: Vec<Option<Limits>>,
}

impl Params {
    /// By port: [`Limits::headroom`].
    pub fn retries(&self) -> impl Iterator<Item = u64> + '_ {
        self.ports.iter().map(|limits| limits.map_or(0, |limits| limits.headroom))
    }
}

/// The parameters of one end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The replay buffer, in bytes (`outstanding_data_max`).
    pub bytes: u64,
    /// Most frames in it (`outstanding_seq_max`).
    pub frames: u32,
    /// The largest frame: a frame only begins if this much fits.
    pub largest: u32,
    /// Without progress for so long, all is retransmitted (`replay_timer_max`).
    pub timer: Time,
    /// How often in a row (`replay_ct_max`); `None`: without limit.
    pub replays: Option<u8>,
    /// Time from one word to the next, at least.
    pub spacing: Time,
    /// From the arrival of a word until it takes effect.
    pub processing: Time,
    /// Bytes that may arrive here after a pause beside those without LLR.
    pub headroom: u64,
}

/// The sending half of an end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transmitter {
    state: State,
    /// `tx_seq`: the number of the next new frame.
    next: u32,
    /// Sizes of the frames in the replay buffer, the oldest first.
    kept: VecDeque<u32>,
    bytes: u64,
    /// `replay_ct`: timeouts since the last progress.
    timeouts: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// New frames may go.
    Advance,
    /// The frame at this place of the buffer is retransmitted next.
    Replay(u32),
    /// The other end is told where the numbers begin, until it echoes this.
    Init,
}

/// What a transmitter does when its timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timeout {
    /// Nothing is outstanding, so the timer stops.
    Idle,
    /// It sends, or goes on sending.
    Replay,
    /// It has given up so many frames.
    Flush(u32),
    /// It sends INIT again.
    Init,
}

impl Default for Transmitter {
    fn default() -> Self {
        Self { state: State::Advance, next: 0, kept: VecDeque::new(), bytes: 0, timeouts: 0 }
    }
}

impl Transmitter {
    /// Whether a new frame may be sent.
    pub fn may_send(&self, limits: &Limits) -> bool {
        self.state == State::Advance
            && self.bytes + u64::from(limits.largest) <= limits.bytes
            && (self.kept.len() as u32) < limits.frames
    }

    /// Whether words or timers are due because of frames that were sent.
    pub fn is_busy(&self) -> bool {
        !self.kept.is_empty() || self.state == State::Init
    }

    /// Whether a frame waits to be retransmitted.
    pub fn replays(&self) -> bool {
        matches!(self.state, State::Replay(_))
    }

    /// Whether it asks the other end to begin anew.
    pub fn asks(&self) -> Option<Word> {
        (self.state == State::Init).then_some(Word::Init(self.next))
    }

    /// A new frame of `size` bytes is sent. Returns its number.
    pub fn send(&mut self, size: u32) -> u32 {
        let number = self.next;
        self.next = (self.next + 1) & MASK;
        self.kept.push_back(size);
        self.bytes += u64::from(size);
        number
    }

    /// The next frame is retransmitted: its place in the buffer, its number and its size.
    pub fn replay(&mut self) -> Option<(usize, u32, u32)> {
        let State::Replay(at) = self.state else { return None };
        let kept = self.kept.len() as u32;
        let size = self.kept[at as usize];
        self.state = if at + 1 < kept { State::Replay(at + 1) } else { State::Advance };
        Some((at as usize, self.next.wrapping_sub(kept - at) & MASK, size))
    }

    /// ACK up to `number`. Returns how many frames leave the buffer.
    pub fn on_ack(&mut self, number: u32) -> usize {
        let kept = self.kept.len() as u32;
        let oldest = self.next.wrapping_sub(kept) & MASK;
        let done = (number + 1).wrapping_sub(oldest) & MASK;
        // Else it names a frame that is not outstanding.
        if self.state == State::Init || done > kept {
            return 0;
        }
        for _ in 0..done {
            self.bytes -= self.kept.pop_front().map_or(0, u64::from);
        }
        if done > 0 {
            self.timeouts = 0;
        }
        if let State::Replay(at) = self.state {
            self.state = match kept > done {
                true => State::Replay(at.saturating_sub(done)),
                false => State::Advance,
            };
        }
        done as usize
    }

    /// NACK after `number`. Returns how many frames leave the buffer.
    pub fn on_nack(&mut self, number: u32) -> usize {
        let kept = self.kept.len() as u32;
        let oldest = self.next.wrapping_sub(kept) & MASK;
        if (number + 1).wrapping_sub(oldest) & MASK > kept {
            return 0;
        }
        let done = self.on_ack(number);
        if self.state != State::Init && !self.kept.is_empty() {
            self.state = State::Replay(0);
        }
        done
    }

    /// The timer has expired.
    pub fn on_timeout(&mut self, limits: &Limits) -> Timeout {
        match self.state {
            State::Init => Timeout::Init,
            State::Advance if self.kept.is_empty() => Timeout::Idle,
            State::Replay(_) => Timeout::Replay,
            State::Advance if limits.replays == Some(self.timeouts) => {
                let given_up = self.kept.len() as u32;
                self.kept.clear();
                (self.bytes, self.timeouts, self.state) = (0, 0, State::Init);
                Timeout::Flush(given_up)
            }
            State::Advance => {
                self.timeouts = self.timeouts.saturating_add(1);
                self.state = State::Replay(0);
                Timeout::Replay
            }
        }
    }

    /// The other end begins at `number`.
    pub fn on_echo(&mut self, number: u32) {
        if self.asks() == Some(Word::Init(number)) {
            self.state = State::Advance;
        }
    }

    /// Frames in the replay buffer.
    pub fn outstanding(&self) -> usize {
        self.kept.len()
    }
}

/// The receiving half of an end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Receiver {
    /// `next_rx_seq`: the frame that goes on next.
    next: u32,
    state: Acks,
    /// There is something to acknowledge.
    owes_ack: bool,
    echo: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Acks {
    #[default]
    /// `SEND_ACKS`.
    Sending,
    /// `SEND_NACK`.
    NackDue,
    /// Until the frame that is missing has arrived it says nothing.
    NackSent,
}

/// The fate of a frame that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Accept,
    /// It is the next one, and its check sequence is bad.
    Bad,
    /// A frame before it is missing.
    Early,
    /// It has gone on before.
    Duplicate,
}

impl Receiver {
    /// A frame arrives, with a `good` check sequence or a bad one.
    pub fn on_frame(&mut self, number: u32, good: bool) -> Verdict {
        let ahead = number.wrapping_sub(self.next) & MASK;
        let verdict = match ahead {
            0 if good => {
                self.next = (self.next + 1) & MASK;
                (self.state, self.owes_ack) = (Acks::Sending, true);
                return Verdict::Accept;
            }
            0 => Verdict::Bad,
            1..MOST_FRAMES => Verdict::Early,
            _ => {
                // The transmitter has missed its acknowledgement.
                self.owes_ack |= self.state == Acks::Sending;
                return Verdict::Duplicate;
            }
        };
        if self.state == Acks::Sending {
            (self.state, self.owes_ack) = (Acks::NackDue, false);
        }
        verdict
    }

    /// INIT: the next frame is `number`.
    pub fn on_init(&mut self, number: u32) {
        *self = Self { next: number, echo: Some(number), ..Self::default() };
    }

    /// Whether it has a word to send.
    pub fn owes(&self) -> bool {
        self.owes_ack || self.echo.is_some() || self.state == Acks::NackDue
    }

    /// The word to send now, if there is one.
    pub fn word(&mut self) -> Option<Word> {
        let last = self.next.wrapping_sub(1) & MASK;
        if let Some(number) = self.echo.take() {
            return Some(Word::Echo(number));
        }
        if self.state == Acks::NackDue {
            self.state = Acks::NackSent;
            return Some(Word::Nack(last));
        }
        std::mem::take(&mut self.owes_ack).then_some(Word::Ack(last))
    }
}
