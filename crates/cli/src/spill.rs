//! Large tables in files: with `--spill`, each block of at least [`LEAST`] bytes is mapped from a file without a
//! name, and the system can write it to disk and take its memory.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use nix::libc;

/// Smallest block that is spilled: tables with an entry for each of many flows.
pub const LEAST: usize = 16 << 20;
/// Most blocks at a time; further ones stay in memory.
const BLOCKS: usize = 256;
/// Alignment of every mapping.
const PAGE: usize = 4096;
/// Time between two looks at the resident memory.
const PERIOD: Duration = Duration::from_millis(20);

/// Directory of the files.
static DIRECTORY: OnceLock<CString> = OnceLock::new();
static ON: AtomicBool = AtomicBool::new(false);
/// Address and length of each block; a length of 0 is a free place.
static MAPPED: Mutex<[(usize, usize); BLOCKS]> = Mutex::new([(0, 0); BLOCKS]);

/// Spills from now on into files in `directory`, and keeps the memory of the process at about `budget` bytes.
///
/// # Errors
/// No file can be made or mapped there, or the directory is in memory itself.
pub fn begin(directory: &Path, budget: u64) -> io::Result<()> {
    if in_memory(directory)? {
        return Err(io::Error::other("it is in memory itself (tmpfs)"));
    }
    let directory = CString::new(directory.as_os_str().as_bytes())?;
    drop(file(&directory, PAGE)?);
    DIRECTORY.set(directory).map_err(|_| io::Error::other("files are kept in a directory already"))?;
    ON.store(true, Ordering::Relaxed);
    thread::Builder::new().name("spill".into()).spawn(move || watch(budget))?;
    Ok(())
}

/// Whether a block of `size` bytes is to be spilled.
#[inline]
pub fn wants(size: usize) -> bool {
    size >= LEAST && ON.load(Ordering::Relaxed)
}

/// A block of zeros in a file; `None` if there is no place or no disk space for it. Allocates nothing.
#[cold]
pub fn take(size: usize, align: usize) -> Option<*mut u8> {
    let length = size.next_multiple_of(PAGE);
    let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = mapped.iter_mut().find(|(_, length)| *length == 0)?;
    let file = file(DIRECTORY.get()?, length).ok().filter(|_| align <= PAGE)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping; the file has `length` bytes on disk, so that no access can fail for want of space.
    let at = unsafe { libc::mmap(ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    *place = (at as usize, length);
    Some(at.cast())
}

/// Frees the block at `at`, if it was spilled.
#[cold]
pub fn give_back(at: *mut u8) -> bool {
    let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(place) = mapped.iter_mut().find(|block| block.0 == at as usize) else {
        return false;
    };
    // SAFETY: `take` made this mapping, and the owner gives it up.
    unsafe { libc::munmap(at.cast(), place.1) };
    *place = (0, 0);
    true
}

/// A file of `length` bytes without a name. Its space on disk is reserved, and free again when the file is neither
/// open nor mapped.
fn file(directory: &CString, length: usize) -> io::Result<OwnedFd> {
    // Without O_TMPFILE, which some network and overlay file systems do not have.
    let mut path = [0u8; libc::PATH_MAX as usize];
    let parts = [directory.as_bytes(), b"/xoff-spill-XXXXXX"].into_iter().flatten();
    if directory.as_bytes().len() + 19 > path.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    path.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
    // SAFETY: the path ends with a zero, and the call may write into it.
    let fd = unsafe { libc::mkostemp(path.as_mut_ptr().cast(), libc::O_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the path ends with a zero.
    unsafe { libc::unlink(path.as_ptr().cast()) };
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the descriptor is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length as libc::off_t) } {
        0 => Ok(file),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Whether files of the directory are in memory.
fn in_memory(directory: &Path) -> io::Result<bool> {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    Ok(statfs(directory)?.filesystem_type() == TMPFS_MAGIC)
}

/// Whenever the process has more than `budget` bytes of memory, its blocks leave it: what is read again comes back
/// from the system's cache or from disk.
fn watch(budget: u64) {
    loop {
        thread::sleep(PERIOD);
        if resident() <= budget {
            continue;
        }
        let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        for &(at, length) in mapped.iter().filter(|(_, length)| *length > 0) {
            // SAFETY: a shared mapping of a file, which stays mapped while the lock is held: its pages stay in the
            // file, and every later access finds them there.
            unsafe { libc::madvise(at as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }
}

/// Memory of the process, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    // SAFETY: it only reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * page as u64
}
