//! The needs of a link under each scheme: memory by terms, thresholds, and the bandwidth of its control
//! frames. Each scheme has a function, in closed form, in its folder; plans and `xoff size` call it.
//!
//! All of it is the worst case of one direction of one link: its peer always has packets to send, and the
//! egress of the receiving port stops and resumes at the worst times.

pub mod links;
pub mod question;
pub mod response;
pub mod trial;

use xoff_kernel::time::{SECOND, Time};
pub use xoff_net::human::grouped;

/// A term of a sum: its name, and bytes.
pub type Term = (&'static str, u64);

/// The needs of one end of a link under a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// As scenarios call the scheme, with `pfc-deep` for PFC that keeps its egress busy.
    pub scheme: &'static str,
    /// The name in sentences.
    pub title: &'static str,
    /// The part of a share that answers the question.
    pub basis: Basis,
    /// The place that needs a share, such as `port and priority`.
    pub per: &'static str,
    /// The memory of one share, by terms, in bytes.
    pub terms: Vec<Term>,
    /// Shares that the link needs: one for each lossless priority, or one in all.
    pub shares: u64,
    /// Part of a share, in bytes: the bytes that can still arrive after the pause of the sender. (Under
    /// credits, all arriving bytes already have room.)
    pub headroom: u64,
    /// The levels at which a share acts, and their quantities.
    pub thresholds: Vec<Figure>,
    /// Its control frames, all priorities together.
    pub control: Control,
    /// The properties that are known to hold with this memory.
    pub promise: Promise,
    /// Most bytes of a share with which the scheme works; `None`: any.
    pub most: Option<Most>,
    /// The terms as a formula, in the notation of the source.
    pub formula: &'static str,
    pub source: &'static str,
    pub notes: Vec<String>,
}

impl Sizing {
    /// Bytes of a share.
    pub fn share(&self) -> u64 {
        self.terms.iter().fold(0, |sum, term| sum.saturating_add(term.1))
    }

    /// The terms of the basis, and their sum.
    pub fn need(&self) -> (&[Term], u64) {
        match self.basis {
            Basis::Buffer => (&self.terms, self.share()),
            Basis::Headroom => {
                let mut before = self.share().saturating_sub(self.headroom);
                let is_other = |term: &&Term| {
                    let other = before > 0;
                    before = before.saturating_sub(term.1);
                    other
                };
                let others = self.terms.iter().take_while(is_other).count();
                (&self.terms[others..], self.headroom)
            }
        }
    }

    /// Bytes in all.
    pub fn buffer(&self) -> u64 {
        self.share().saturating_mul(self.shares)
    }

    /// The rest of the promise if control frames would take all of the other direction, or more: their queue
    /// then grows without limit, and pauses may come too late.
    pub(super) fn if_frames_fit(mut self, rate: u64) -> Self {
        if self.control.share(rate) >= 1.0 {
            self.promise = Promise { lossless: false, full_throughput: false };
            self.notes.push(format!(
                "its control frames do not fit: they would need {:.0}% of the link's other direction",
                100.0 * self.control.share(rate)
            ));
        }
        self
    }

    /// Whether the scheme works with a share of this size.
    pub fn is_in_reach(&self) -> bool {
        self.most.is_none_or(|most| self.share() <= most.bytes)
    }
}

/// A limit of a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    pub bytes: u64,
    /// The cause, as in `its frames can express`.
    pub because: &'static str,
}

impl Most {
    /// The frames of a scheme have no room for larger numbers.
    pub fn of_frames(bytes: u64) -> Self {
        Self { bytes, because: "its frames can express" }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The last terms: bytes that can arrive after a pause. The terms before them are a setting.
    Headroom,
    /// The whole share.
    Buffer,
}

impl Basis {
    pub fn name(self) -> &'static str {
        match self {
            Self::Headroom => "headroom",
            Self::Buffer => "buffer",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub name: &'static str,
    pub value: u64,
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    /// Pause quanta, of 512 bit times.
    Quanta,
    /// Blocks of credit, of 64 bytes.
    Blocks,
    /// Credits, whose size is a key of the scheme.
    Credits,
    /// Picoseconds.
    Time,
}

pub const fn bytes_of(name: &'static str, value: u64) -> Figure {
    Figure { name, value, unit: Unit::Bytes }
}

/// Control frames in the opposite direction of the link's data, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control {
    /// Bytes of a frame.
    pub frame: u64,
    /// Frames in each span of `every`.
    pub frames: u64,
    /// Picoseconds, above zero.
    pub every: Time,
    pub when: &'static str,
}

impl Control {
    /// Bytes per second, rounded up.
    pub fn bytes_per_second(&self) -> u64 {
        let bytes = u128::from(self.frame) * u128::from(self.frames) * u128::from(SECOND);
        u64::try_from(bytes.div_ceil(u128::from(self.every))).unwrap_or(u64::MAX)
    }

    /// Its share of a link of `rate` bits per second.
    pub fn share(&self, rate: u64) -> f64 {
        let bits = 8.0 * self.frame as f64 * self.frames as f64;
        bits * SECOND as f64 / (self.every as f64 * rate as f64)
    }
}

/// The properties that hold in every case, if the memory has all terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    pub lossless: bool,
    /// Whether an egress that could send never waits for bytes on the other side.
    pub full_throughput: bool,
}

/// The bytes of each of the `spans`: parts of one product, `bytes_in` all of them, which is rounded whole.
pub(crate) fn terms_of(spans: &[(&'static str, Time)], bytes_in: impl Fn(Time) -> u64) -> Vec<Term> {
    let (mut time, mut so_far) = (0, 0);
    let term = |&(name, span): &(&'static str, Time)| {
        time += span;
        let before = std::mem::replace(&mut so_far, bytes_in(time));
        (name, so_far - before)
    };
    spans.iter().map(term).collect()
}

/// Bytes that pass at `rate` bits per second in `time` picoseconds, rounded up.
pub fn bytes_in(rate: u64, time: Time) -> u64 {
    let bits = u128::from(rate) * u128::from(time);
    u64::try_from(bits.div_ceil(8 * u128::from(SECOND))).unwrap_or(u64::MAX)
}
