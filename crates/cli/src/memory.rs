//! The memory budget: it counts allocations. A run beyond it ends with its results. Work without results ends
//! with an error instead of an abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::{cell::Cell, fmt, io::Write as _, path::Path, ptr};

use miette::miette;
use sysinfo::{CGroupLimits, MemoryRefreshKind, RefreshKind};
use xoff_net::units::Bytes;

use crate::FAILED;
#[cfg(target_os = "linux")]
use crate::spill;

/// Exit status: the memory budget ended a run; the results up to then are written.
pub const SPENT: u8 = 4;
/// The default budget is this share of the memory that is available.
const SHARE: (u64, u64) = (3, 4);

/// The activity of a thread whose allocations may be refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It has results, or works for a thread that has: only the system refuses memory.
    Other,
    /// It has no results yet.
    Command,
    Plan,
    SetUp,
}

/// Bytes allocated by the program.
static USED: AtomicU64 = AtomicU64::new(0);
static BUDGET: AtomicU64 = AtomicU64::new(u64::MAX);
/// Work without results ends the process when the budget is exhausted. A library must not do that.
static ENDS: AtomicBool = AtomicBool::new(false);
/// The budget was given, and does not follow the memory that is available.
static GIVEN: AtomicBool = AtomicBool::new(false);
/// A run of the grid is about to end for the budget, and its memory to be free.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Blocks of at least so many bytes may come from elsewhere: from files, or from memory that devices in processes
/// of their own share.
static ELSEWHERE: AtomicUsize = AtomicUsize::new(usize::MAX);

thread_local! {
    static PHASE: Cell<Phase> = const { Cell::new(Phase::Other) };
    /// Bytes allocated by this thread, less those that it freed.
    static OWN: Cell<i64> = const { Cell::new(0) };
}

pub struct Counted;

// SAFETY: memory comes from `System` and goes back there with the same layout; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = from_elsewhere(layout, false) {
            return block;
        }
        // SAFETY: the caller's promise.
        counted(layout.size(), || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if let Some(block) = from_elsewhere(layout, true) {
            return block;
        }
        // SAFETY: the caller's promise.
        counted(layout.size(), || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if may_be_elsewhere(layout.size().max(size)) {
            // SAFETY: the caller's promise; the blocks are apart, and both have the bytes that are copied.
            unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                ptr::copy_nonoverlapping(at, new, layout.size().min(size));
                self.dealloc(at, layout);
                return new;
            }
        }
        // SAFETY: the caller's promise.
        let new = counted(size, || unsafe { System.realloc(at, layout, size) });
        forget(layout.size());
        new
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if may_be_elsewhere(layout.size()) && given_back(at, layout) {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) };
        forget(layout.size());
    }
}

#[inline]
fn may_be_elsewhere(size: usize) -> bool {
    size >= ELSEWHERE.load(Ordering::Relaxed)
}

/// A block in shared memory or in a file, if it is to be there and can be. The budget does not count it.
#[inline]
fn from_elsewhere(layout: Layout, zeroed: bool) -> Option<*mut u8> {
    may_be_elsewhere(layout.size()).then(|| taken(layout, zeroed)).flatten()
}

#[cold]
fn taken(layout: Layout, zeroed: bool) -> Option<*mut u8> {
    let (size, align) = (layout.size(), layout.align());
    shared::take(size, align, zeroed)
        .or_else(|| spill::wants(size).then(|| spill::take(size, align)).flatten())
}

#[cold]
fn given_back(at: *mut u8, layout: Layout) -> bool {
    shared::give_back(at, layout.size(), layout.align())
        || spill::wants(layout.size()) && spill::give_back(at)
}

/// From now on devices in processes of their own may share their memory with this one.
#[cfg(target_os = "linux")]
pub fn share() {
    ELSEWHERE.store(0, Ordering::Relaxed);
}

#[inline]
fn counted(size: usize, allocate: impl FnOnce() -> *mut u8) -> *mut u8 {
    let used = USED.fetch_add(size as u64, Ordering::Relaxed).saturating_add(size as u64);
    own(size as i64);
    let hard = || {
        ENDS.load(Ordering::Relaxed) && PHASE.try_with(|phase| phase.get() != Phase::Other).unwrap_or(false)
    };
    if used > BUDGET.load(Ordering::Relaxed) && hard() {
        refuse(size as u64);
    }
    let new = allocate();
    if new.is_null() {
        refuse(size as u64);
    }
    new
}

#[inline]
fn forget(size: usize) {
    USED.fetch_sub(size as u64, Ordering::Relaxed);
    own(-(size as i64));
}

#[inline]
fn own(bytes: i64) {
    // A thread that is ending counts no more.
    let _ = OWN.try_with(|own| own.set(own.get() + bytes));
}

/// Whether planning may take `bytes` more, some of which may be spilled.
///
/// # Errors
/// They exceed the budget.
pub fn room(bytes: u64) -> Result<(), String> {
    let (budget, used) = (BUDGET.load(Ordering::Relaxed), USED.load(Ordering::Relaxed));
    let counted = if spill::wants(bytes as usize) { 0 } else { bytes };
    if used.saturating_add(counted) <= budget {
        return Ok(());
    }
    let needs = match bytes {
        0 => format!("uses {}", Amount(used)),
        _ => format!("needs {} in addition to the {} in use", Amount(bytes), Amount(used)),
    };
    Err(format!("out of memory: planning the scenario {needs}; the memory budget is {}", Amount(budget)))
}

/// Ends the program with an error. It may be called from within an allocation: it neither allocates
/// nor unwinds.
#[cold]
fn refuse(size: u64) -> ! {
    let doing = match PHASE.try_with(Cell::get).unwrap_or(Phase::Other) {
        Phase::Command => "this command",
        Phase::Plan => "planning the scenario",
        Phase::SetUp => "setting up the run",
        Phase::Other => "running or writing the results",
    };
    let budget = BUDGET.load(Ordering::Relaxed);
    let used = USED.load(Ordering::Relaxed).saturating_sub(size);
    let mut text = [0; 512];
    let mut rest = &mut text[..];
    let (needed, held) = (Amount(size), Amount(used));
    let _ = write!(rest, "\n  × out of memory: {doing} needs {needed} in addition to the {held} in use");
    let _ = match used.saturating_add(size) > budget {
        true => write!(rest, "; the memory budget is {}", Amount(budget)),
        false => write!(rest, ", and the system has no memory left"),
    };
    let help = "allow more with --memory, keep large tables on disk with --spill, or make the network, the traffic or the run smaller";
    let _ = writeln!(rest, "\n  help: {help}");
    let left = rest.len();
    exit(&text[..text.len() - left])
}

#[cfg(unix)]
fn exit(text: &[u8]) -> ! {
    use nix::libc;
    // SAFETY: both are safe to call anywhere; the text outlives the call.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::_exit(i32::from(FAILED))
    }
}

#[cfg(not(unix))]
fn exit(text: &[u8]) -> ! {
    let _ = std::io::stderr().write_all(text);
    std::process::exit(i32::from(FAILED))
}

/// Bytes with two decimals at most, written without allocating: `5.60 GB`.
struct Amount(u64);

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        match units.into_iter().find(|(unit, _)| bytes >= *unit) {
            Some((unit, name)) => write!(f, "{}.{:02} {name}", bytes / unit, bytes % unit / (unit / 100)),
            None => write!(f, "{bytes} B"),
        }
    }
}

/// Sets the budget: the given one, or three quarters of the available memory of the system. Large tables are files
/// in `directory`, if there is one.
///
/// # Errors
/// The directory cannot be used.
pub fn limit(given: Option<Bytes>, directory: Option<&Path>) -> miette::Result<()> {
    ENDS.store(true, Ordering::Relaxed);
    set(given.map_or_else(standard, |bytes| bytes.0), directory)
}

fn set(budget: u64, directory: Option<&Path>) -> miette::Result<()> {
    BUDGET.store(budget, Ordering::Relaxed);
    let Some(directory) = directory else { return Ok(()) };
    spill::begin(directory, budget).map_err(|e| {
        let help = "choose a directory on a disk with enough space";
        miette!(help = help, "--spill: cannot keep files in {}: {e}", directory.display())
    })?;
    ELSEWHERE.fetch_min(spill::LEAST, Ordering::Relaxed);
    Ok(())
}

/// Sets the budget of a program that calls xoff, until it is set again: as [`limit`], but nothing ends the process. A
/// plan beyond it is an error, and a run beyond it ends with its results.
///
/// # Errors
/// As of [`limit`].
pub fn limit_library(given: Option<Bytes>, directory: Option<&Path>) -> miette::Result<()> {
    GIVEN.store(given.is_some(), Ordering::Relaxed);
    set(given.map_or_else(free, |bytes| bytes.0), directory)
}

/// Before work of a program that calls xoff: without a given budget it is what the program uses now, and three
/// quarters of what is available.
pub fn refresh() {
    if !GIVEN.load(Ordering::Relaxed) {
        BUDGET.store(free(), Ordering::Relaxed);
    }
}

fn free() -> u64 {
    USED.load(Ordering::Relaxed).saturating_add(standard())
}

/// The budget without a given one.
fn standard() -> u64 {
    available() / SHARE.1 * SHARE.0
}

/// Sets the activity of this thread; returns the previous one.
pub fn enter(phase: Phase) -> Phase {
    PHASE.with(|now| now.replace(phase))
}

/// Bytes that the program may still take: of the machine, of a container, of `ulimit -v`.
fn available() -> u64 {
    let what = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = sysinfo::System::new_with_specifics(what);
    let container = system.cgroup_limits().map_or(u64::MAX, |limits| left(&limits));
    match system.available_memory() {
        // Nothing is known of the machine.
        0 => address_space(),
        bytes => bytes.min(container).min(address_space()),
    }
}

/// What a container has left. It gives back the memory of its page cache when a program takes more.
fn left(container: &CGroupLimits) -> u64 {
    container.total_memory.saturating_sub(container.rss)
}

#[cfg(unix)]
fn address_space() -> u64 {
    use nix::sys::resource::{Resource, getrlimit};
    getrlimit(Resource::RLIMIT_AS).map_or(u64::MAX, |(soft, _)| soft)
}

#[cfg(not(unix))]
fn address_space() -> u64 {
    u64::MAX
}

#[cfg(target_os = "linux")]
use xoff_live::memory as shared;

/// No process shares memory.
#[cfg(not(target_os = "linux"))]
mod shared {
    pub fn take(_: usize, _: usize, _: bool) -> Option<*mut u8> {
        None
    }

    pub fn give_back(_: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    pub fn used() -> u64 {
        0
    }
}

/// Nothing is spilled.
#[cfg(not(target_os = "linux"))]
mod spill {
    pub const LEAST: usize = usize::MAX;

    pub fn begin(_: &std::path::Path, _: u64) -> std::io::Result<()> {
        Err(std::io::Error::other("only Linux has what this needs"))
    }

    pub fn wants(_: usize) -> bool {
        false
    }

    pub fn take(_: usize, _: usize) -> Option<*mut u8> {
        None
    }

    pub fn give_back(_: *mut u8) -> bool {
        false
    }
}

/// Follows the memory of one run, made by this thread.
pub struct Watch<'a> {
    /// Bytes that each thread of the pool holds, where runs are made in parallel.
    all: &'a [AtomicI64],
    me: usize,
    spent: bool,
}

impl<'a> Watch<'a> {
    /// For the run of worker `me`, with a place for each worker in `all`; empty for a run by itself.
    pub fn begin(all: &'a [AtomicI64], me: usize) -> Self {
        enter(Phase::SetUp);
        Self { all, me, spent: false }
    }

    /// Whether the run may go on: the budget is not used up, or another run in parallel holds more
    /// and is to end first.
    pub fn goes_on(&mut self) -> bool {
        enter(Phase::Other);
        let own = OWN.with(Cell::get);
        if let Some(mine) = self.all.get(self.me) {
            mine.store(own, Ordering::Relaxed);
        }
        let used = USED.load(Ordering::Relaxed).saturating_add(shared::used());
        if self.spent || used <= BUDGET.load(Ordering::Relaxed) {
            return !self.spent;
        }
        let largest = self.all.iter().all(|other| other.load(Ordering::Relaxed) <= own);
        self.spent = self.all.is_empty() || (largest && !ENDING.swap(true, Ordering::Relaxed));
        !self.spent
    }

    pub fn spent(&self) -> bool {
        self.spent
    }
}

impl Drop for Watch<'_> {
    /// The run and its results are done with.
    fn drop(&mut self) {
        if let Some(mine) = self.all.get(self.me) {
            mine.store(0, Ordering::Relaxed);
            if self.spent {
                ENDING.store(false, Ordering::Relaxed);
            }
        }
        enter(Phase::Other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 20 of 24 GB are files that were read or written.
    #[test]
    fn the_page_cache_of_a_container_is_available() {
        let [total_memory, free_memory, rss] = [24, 3, 1].map(|gigabytes| gigabytes * 1_000_000_000);
        let container = CGroupLimits { total_memory, free_memory, free_swap: 0, rss };
        assert_eq!(left(&container), 23_000_000_000);
    }

    #[test]
    fn amounts_have_two_decimals() {
        let text = |bytes| Amount(bytes).to_string();
        assert_eq!(text(0), "0 B");
        assert_eq!(text(999), "999 B");
        assert_eq!(text(14_036_000_000), "14.03 GB");
        assert_eq!(text(5_000), "5.00 kB");
        assert_eq!(text(u64::MAX), "18446744073.70 GB");
    }

    #[test]
    fn allocations_are_counted() {
        let before = OWN.with(Cell::get);
        let mut block: Vec<u8> = Vec::with_capacity(1000);
        assert_eq!(OWN.with(Cell::get) - before, 1000);
        block.reserve_exact(5000);
        assert_eq!(OWN.with(Cell::get) - before, 5000);
        drop(block);
        assert_eq!(OWN.with(Cell::get), before);
    }
}
