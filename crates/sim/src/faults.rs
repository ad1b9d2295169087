//! Links that fail, recover, lose and corrupt: when, as the plan says.
//!
//! Each end of a link handles its own end, at the same time. A packet is lost if its transmission or flight
//! overlaps a span in which the link is down: a function of the plan, known when the transmission begins. It
//! arrives nevertheless, at a position of the plan's hops that names its fate, and is counted there.

use crate::{outcome::DropReason, packet::NONE, parallel::partition::Partition};
use xoff_kernel::{random::Stream, time::Time, wheel::ELEMENTS};
use xoff_plan::plan::{EXPIRE, FRAME_CORRUPTED, FRAME_LOST, Hits, LINK_DOWN, Plan};

/// The element of a change of routes, after the ports that fail or recover at that time.
pub const ROUTES: u32 = ELEMENTS - 1;

#[derive(Default)]
pub struct Faults {
    /// By port: its number in `lines`. Empty in a healthy network.
    numbers: Vec<u32>,
    lines: Vec<Line>,
}

pub struct Line {
    /// When it is down, in order.
    pub spans: Vec<(Time, Time)>,
    pub down: bool,
    /// When the device at the other end died, if it has.
    pub cut: Time,
    pub errors: Vec<Errors>,
}

pub struct Errors {
    stream: Stream,
    hits: Hits,
    pub corrupts: bool,
    /// Frames can be hit whose transmission begins then.
    span: (Time, Time),
    /// Frames, bits, or control frames that pass before the next one is hit.
    pass: u64,
}

impl Default for Line {
    fn default() -> Self {
        Self { spans: Vec::new(), down: false, cut: Time::MAX, errors: Vec::new() }
    }
}

impl Line {
    /// The link is down from `at` on, and does not recover.
    pub fn cut(&mut self, at: Time) {
        self.cut = at;
        self.spans.retain(|span| span.0 < at);
        match self.spans.last_mut().filter(|last| last.1 >= at) {
            Some(last) => last.1 = Time::MAX,
            None => self.spans.push((at, Time::MAX)),
        }
    }
}

impl Errors {
    /// Whether a frame of `size` bytes is hit, whose transmission begins now.
    pub fn hit(&mut self, size: u32, is_control: bool, now: Time) -> bool {
        if now < self.span.0 || now >= self.span.1 {
            return false;
        }
        let length = match self.hits {
            Hits::Frames(_) => 1,
            Hits::Bits(_) => 8 * u64::from(size),
            Hits::Control(_) => u64::from(is_control),
        };
        let hit = self.pass < length;
        // The future after a hit does not depend on the past.
        self.pass = match self.hits {
            _ if !hit => self.pass - length,
            Hits::Frames(p) | Hits::Bits(p) => self.stream.geometric(p),
            Hits::Control(_) => u64::MAX,
        };
        hit
    }
}

impl Faults {
    pub fn new(plan: &Plan, partition: &Partition) -> Self {
        let mut faults = Self::default();
        let named = plan.faults.down.iter().map(|d| d.port).chain(plan.faults.losses.iter().map(|l| l.port));
        let all = 0..if partition.mortal { plan.topology.ports.len() as u32 } else { 0 };
        for port in named.chain(all) {
            if faults.numbers.is_empty() {
                faults.numbers = vec![NONE; plan.topology.ports.len()];
            }
            let number = &mut faults.numbers[port as usize];
            if *number == NONE {
                *number = faults.lines.len() as u32;
                faults.lines.push(Line::default());
            }
        }
        for down in &plan.faults.down {
            faults.line_mut(down.port).spans.clone_from(&down.spans);
        }
        for loss in &plan.faults.losses {
            let errors = &mut faults.line_mut(loss.port).errors;
            // Another table for the same port has a stream of its own.
            let name = ["loss", "more loss"][usize::from(!errors.is_empty())];
            let place = u64::from(loss.port) << 32 | errors.len() as u64;
            let mut stream = Stream::new(plan.seed, name, place);
            let pass = match loss.hits {
                Hits::Frames(p) | Hits::Bits(p) => stream.geometric(p),
                Hits::Control(number) => number - 1,
            };
            errors.push(Errors { stream, hits: loss.hits, corrupts: loss.corrupts, span: loss.span, pass });
        }
        faults
    }

    pub fn is_faulty(&self, port: u32) -> bool {
        self.numbers.get(port as usize).is_some_and(|&number| number != NONE)
    }

    pub fn line(&self, port: u32) -> &Line {
        &self.lines[self.numbers[port as usize] as usize]
    }

    pub fn line_mut(&mut self, port: u32) -> &mut Line {
        &mut self.lines[self.numbers[port as usize] as usize]
    }
}

/// The reason of an end of a route that is no delivery.
pub fn reason(end: u32) -> DropReason {
    match end {
        EXPIRE => DropReason::Expired,
        LINK_DOWN => DropReason::LinkDown,
        FRAME_LOST => DropReason::FrameLost,
        FRAME_CORRUPTED => DropReason::FrameCorrupted,
        _ => DropReason::Unreachable,
    }
}

/// Whether an entry of the hops says that the packet was lost on the link.
pub fn is_lost(end: u32) -> bool {
    matches!(end, LINK_DOWN | FRAME_LOST | FRAME_CORRUPTED)
}
