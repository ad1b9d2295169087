//! Searches of the least memory by simulation: `xoff size --measure`. A scheme says which memory is searched,
//! in which case, and how a scenario sets it.

use xoff_kernel::time::Time;

/// The worst case that a memory is for, on a link whose both directions are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// The receiver stops reading for ever. With less memory packets are lost.
    Stops,
    /// The receiver reads at line rate. With less memory the sender waits.
    Runs,
    /// The receiver reads again after all packets in flight have arrived. With less memory it waits for packets.
    Resumes,
}

/// The search of one memory.
pub struct Trial {
    /// Its name, such as `headroom`.
    pub memory: &'static str,
    pub case: Case,
    /// Bytes by the formula.
    pub formula: u64,
    /// Fewest bytes that a scenario accepts.
    pub least: u64,
    /// The memory is a multiple of these bytes.
    pub unit: u64,
    /// Time in which everything of the scheme that repeats has happened once.
    pub period: Time,
    /// Tables of a scenario whose link has `long = true`, from the bytes of the memory, and from bytes by which
    /// the thresholds before it are moved, at most a largest packet.
    pub tables: Box<dyn Fn(u64, u64) -> String>,
}

/// The searches of a scheme on a link, or why there are none.
pub type Trials = Result<Vec<Trial>, String>;
