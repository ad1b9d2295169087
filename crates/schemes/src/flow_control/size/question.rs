//! The needs of a link under every scheme, before there is a scenario: `xoff size`.
//!
//! The sums are the schemes' own functions; other values have the defaults of scenarios.

use super::super::pfc::keys::PfcKeys;
use super::super::registry::{self, SIZE_FUNCTIONS};
use super::super::{LinkFacts, pfc};
use super::Sizing;
use super::trial::Trials;
use xoff_kernel::time::Time;
use xoff_net::units::{Bandwidth, Bytes, Length, Span};

/// Once around the Earth, in metres: no cable is longer.
pub const LONGEST: u64 = 40_000_000;
/// The largest packet that Ethernet's jumbo frames have, generously.
const LARGEST_PACKET: u64 = 65_535;
const SMALLEST_PACKET: u64 = 64;
/// No link is faster, in bits per second.
const FASTEST: u64 = 100_000_000_000_000;
const WIDEST: u16 = 256;
pub(in super::super) const LONGEST_TIME: Time = xoff_kernel::time::SECOND;

/// A link, and how schemes are set on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub rate: Bandwidth,
    /// Largest packet with its headers, in bytes, 64 to 65,535.
    pub mtu: Bytes,
    /// Lossless priorities, 1 to 8.
    pub priorities: u8,
    /// From the arrival of a control frame until it takes effect.
    pub response_time: Span,
    /// A slot of schemes that pause by slots: T.
    pub slot: Span,
    /// From the end of a slot until its frame can be sent.
    pub processing: Span,
    /// Most that its frame is late beyond that.
    pub jitter: Span,
    /// Of the same: k, room for so many packets beyond H, 1 to 1000.
    pub repair_every: u16,
    /// XOFF of shallow PFC.
    pub xoff: Bytes,
    /// Between updates of credit; `None`: InfiniBand's 65,536 symbol times.
    pub update: Option<Span>,
    /// Neighbours that send to a congested port, or other ports of a switch; 1 to 256.
    pub fan_in: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The question's part, as its option on the command line is called.
    pub key: &'static str,
    pub message: String,
    pub help: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not even a link without length.
    Nowhere,
    /// A link of so many metres, and none that is a metre longer.
    UpTo(u64),
    Anywhere,
}

pub type SizeFunction = fn(&Question, &LinkFacts) -> Sizing;

/// A scheme of `xoff size`.
pub struct SizeEntry {
    pub name: &'static str,
    pub compute: SizeFunction,
    /// Its line in the curve over distance.
    pub line: Option<&'static str>,
    pub trials: fn(&Question, &LinkFacts) -> Trials,
}

/// Of schemes whose memory several links share.
pub(in super::super) fn needs_more_links(_: &Question, _: &LinkFacts) -> Trials {
    Err("its worst case needs more than one link".into())
}

/// Number of schemes.
const COUNT: usize = {
    let (mut count, mut i) = (0, 0);
    while i < SIZE_FUNCTIONS.len() {
        count += SIZE_FUNCTIONS[i].len();
        i += 1;
    }
    count
};

/// The names of the schemes, in the order of the output.
pub const SCHEMES: [&str; COUNT] = {
    let mut names = [""; COUNT];
    let (mut i, mut n) = (0, 0);
    while i < SIZE_FUNCTIONS.len() {
        let mut j = 0;
        while j < SIZE_FUNCTIONS[i].len() {
            names[n] = SIZE_FUNCTIONS[i][j].name;
            (j, n) = (j + 1, n + 1);
        }
        i += 1;
    }
    names
};

fn find(scheme: &str) -> Option<&'static SizeEntry> {
    SIZE_FUNCTIONS.iter().copied().flatten().find(|entry| entry.name == scheme)
}

/// The line that a scheme is drawn as, where buffer is drawn against distance.
pub fn line(scheme: &str) -> Option<&'static str> {
    find(scheme)?.line
}

impl Question {
    /// A link of `rate`, with packets of 1500 B, one priority, and the defaults of papers and scenarios.
    pub fn new(rate: Bandwidth) -> Self {
        let keys = registry::SlotKeys::default();
        Self {
            rate,
            mtu: Bytes(1_500),
            priorities: 1,
            response_time: PfcKeys::default().response_time,
            slot: keys.slot,
            processing: keys.processing,
            jitter: keys.jitter,
            repair_every: keys.repair_every as u16,
            xoff: Bytes(pfc::size::SHALLOW),
            update: None,
            fan_in: 1,
        }
    }

    pub fn link(&self, distance: Length) -> LinkFacts {
        LinkFacts { rate: self.rate.0, delay: distance.delay().0, largest: self.mtu.0 as u32, retries: 0 }
    }

    /// Refuses values that no link can have.
    pub fn check(&self) -> Result<(), Refusal> {
        let refuse = |key, message: String, help: String| Err(Refusal { key, message, help });
        let within = |fits: bool, key, what: String, help: String| {
            if fits { Ok(()) } else { refuse(key, format!("{what} is out of range"), help) }
        };
        let whole = |most: u16| format!("write a whole number from 1 to {most}");
        let Self { rate, mtu, priorities, repair_every, fan_in, .. } = *self;
        let fastest = format!("the maximum is {}", Bandwidth(FASTEST));
        within(rate.0 <= FASTEST, "rate", format!("a rate of {rate}"), fastest)?;
        let fits = (SMALLEST_PACKET..=LARGEST_PACKET).contains(&mtu.0);
        let help = format!("write {SMALLEST_PACKET}B to {LARGEST_PACKET}B, headers included");
        within(fits, "mtu", format!("a packet of {mtu}"), help)?;
        let fits = (1..=8).contains(&priorities);
        within(fits, "priorities", format!("{priorities} lossless priorities"), whole(8))?;
        let fits = (1..=1_000).contains(&repair_every);
        within(fits, "repair-every", format!("repair-every = {repair_every}"), whole(1_000))?;
        within((1..=WIDEST).contains(&fan_in), "fan-in", format!("fan-in = {fan_in}"), whole(WIDEST))?;
        if self.update == Some(Span(0)) {
            let help = "write a time above 0, such as 5us".into();
            return refuse("update", "the update period must be positive".into(), help);
        }
        let times = [
            ("response-time", Some(self.response_time)),
            ("slot", Some(self.slot)),
            ("processing", Some(self.processing)),
            ("jitter", Some(self.jitter)),
            ("update", self.update),
        ];
        for (key, time) in times.into_iter().filter_map(|(key, time)| Some((key, time?))) {
            let longest = format!("the maximum is {}", Span(LONGEST_TIME));
            within(time.0 <= LONGEST_TIME, key, format!("{key} = {time}"), longest)?;
        }
        const LARGEST: u64 = 1 << 50;
        if self.xoff.0 == 0 || self.xoff.0 > LARGEST {
            let help = format!("write 1B to {LARGEST}B");
            return refuse("xoff", format!("{} is not a valid threshold", self.xoff), help);
        }
        (registry::CHECK)(self)
    }

    /// Computes the needs of a link of length `distance` under one of [`SCHEMES`]; panics if `scheme` is none of them.
    pub fn compute_size(&self, scheme: &str, distance: Length) -> Sizing {
        (sized(scheme).compute)(self, &self.link(distance))
    }

    /// The searches by simulation for one of [`SCHEMES`] on a link of length `distance`, or why there are none;
    /// panics if `scheme` is none of them.
    pub fn trials(&self, scheme: &str, distance: Length) -> Trials {
        (sized(scheme).trials)(self, &self.link(distance))
    }

    /// How long a link `buffer` bytes suffice for, under one of [`SCHEMES`]; where the
    /// scheme's frames can speak of less, as far as they can.
    pub fn reach(&self, scheme: &str, buffer: Bytes) -> Reach {
        reach(|metres| {
            let sizing = self.compute_size(scheme, Length(metres * 1_000));
            sizing.buffer() <= buffer.0 && sizing.is_in_reach()
        })
    }

    /// How long a link the frames of one of [`SCHEMES`] can speak of at most.
    pub fn format_reach(&self, scheme: &str) -> Reach {
        reach(|metres| self.compute_size(scheme, Length(metres * 1_000)).is_in_reach())
    }
}

fn sized(scheme: &str) -> &'static SizeEntry {
    find(scheme).unwrap_or_else(|| panic!("{scheme} is none of the schemes"))
}

/// Refuses distances that no cable has: zero, and more than [`LONGEST`].
pub fn check_distance(distance: Length) -> Result<(), Refusal> {
    if distance.0 > 0 && distance.0 <= LONGEST * 1_000 {
        return Ok(());
    }
    Err(Refusal {
        key: "distance",
        message: format!("a cable of {distance} is out of range"),
        help: format!("write up to {}, once around the Earth", Length(LONGEST * 1_000)),
    })
}

/// The largest whole number of metres that suffices, where all that is shorter does as well.
fn reach(suffices: impl Fn(u64) -> bool) -> Reach {
    if !suffices(0) {
        return Reach::Nowhere;
    }
    if suffices(LONGEST) {
        return Reach::Anywhere;
    }
    let (mut enough, mut too_far) = (0, LONGEST);
    while too_far - enough > 1 {
        let middle = enough + (too_far - enough) / 2;
        if suffices(middle) { enough = middle } else { too_far = middle }
    }
    Reach::UpTo(enough)
}
