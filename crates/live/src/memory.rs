//! Memory that the process of a device shares with the coordinator.
//!
//! The coordinator reserves one region of address space for each device, and then forks. A device takes all of its
//! memory from its own region, so the coordinator can read whatever the device points to. It has no access to the
//! regions of others. The coordinator takes nothing from a region; what it frees there stays until the run is over.
//!
//! A program that runs devices in processes has an allocator that asks here first: [`take`] and [`give_back`], or
//! [`Allocator`].
//!
//! Blocks have sizes of four steps between powers of two. A block that is freed is used for the same size again.

use nix::libc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Address space of a device. The system gives memory to the pages that are used.
const REGION: usize = 4 << 30;
/// The largest alignment.
pub const PAGE: usize = 4096;
/// The smallest block.
const LEAST: usize = 16;
const SIZES: usize = 4 * usize::BITS as usize;

/// The address space of all regions.
static FIRST: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// The region of this process, if it is a device.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// The beginning of a region.
#[repr(C)]
struct Region {
    locked: AtomicBool,
    /// Bytes that were ever in use.
    used: AtomicU64,
    /// By size: the first free block, which begins with the address of the next one.
    free: [usize; SIZES],
}

/// The number of a block size, and the size itself.
fn block(size: usize, align: usize) -> (usize, usize) {
    // A power of two has that alignment.
    let size = if align > LEAST { size.max(align).next_power_of_two() } else { size.max(LEAST) };
    let power = size.next_power_of_two();
    if size == power && size == LEAST {
        return (0, LEAST);
    }
    // Of the steps between the power below and this one, the first that is large enough.
    let quarter = (power / 8).max(LEAST);
    let size = size.next_multiple_of(quarter);
    let step = (size - power / 2) / quarter;
    (4 * power.trailing_zeros() as usize + step - 1, size)
}

/// The region of this process.
fn own() -> Option<*mut Region> {
    let own = OWN.load(Ordering::Relaxed);
    (own != 0).then_some(own as *mut Region)
}

/// A block for a device; `None` in other processes. Ends the device if it has no room.
pub fn take(size: usize, align: usize, zeroed: bool) -> Option<*mut u8> {
    let region = own()?;
    let (number, size) = block(size, align);
    // SAFETY: the region is mapped, begins with zeros or a former state, and is locked while it is changed. Free
    // blocks are linked by their first words.
    unsafe {
        lock(region);
        let free = (*region).free.get(number).copied().unwrap_or(0);
        let at = if free != 0 {
            (*region).free[number] = *(free as *const usize);
            free
        } else {
            let used = (*region).used.load(Ordering::Relaxed) as usize;
            let aligned = 1 << size.trailing_zeros().min(PAGE.trailing_zeros());
            let at = used.max(size_of::<Region>()).next_multiple_of(aligned);
            if align > PAGE || size > REGION - at {
                exhausted();
            }
            (*region).used.store((at + size) as u64, Ordering::Relaxed);
            region as usize + at
        } as *mut u8;
        (*region).locked.store(false, Ordering::Release);
        if zeroed && free != 0 {
            ptr::write_bytes(at, 0, size);
        }
        Some(at)
    }
}

/// Frees a block of `size` and `align` bytes, if it is in a region.
pub fn give_back(at: *mut u8, size: usize, align: usize) -> bool {
    let address = at as usize;
    if !(FIRST.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).contains(&address) {
        return false;
    }
    if let Some(region) = own() {
        let (number, _) = block(size, align);
        // SAFETY: as for `take`; the owner of the block gives it up.
        unsafe {
            lock(region);
            *at.cast::<usize>() = (*region).free[number];
            (*region).free[number] = address;
            (*region).locked.store(false, Ordering::Release);
        }
    }
    true
}

/// # Safety
/// The region is mapped.
unsafe fn lock(region: *mut Region) {
    // SAFETY: the caller's promise.
    while unsafe { (*region).locked.swap(true, Ordering::Acquire) } {
        std::thread::yield_now();
    }
}

/// Ends the device: nothing can be allocated for an error.
#[cold]
fn exhausted() -> ! {
    let text = b"\n  \xc3\x97 xoff live: a device needs more than 4 GiB\n  help: use --one-process\n";
    // SAFETY: both are safe to call anywhere; the text outlives the call.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
        libc::_exit(1)
    }
}

/// Bytes that all devices have taken.
pub fn used() -> u64 {
    let regions = (FIRST.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)).step_by(REGION);
    // SAFETY: the regions are mapped, and each begins with a `Region`.
    regions.map(|at| unsafe { (*(at as *const Region)).used.load(Ordering::Relaxed) }).sum()
}

/// The allocator of a program that has no other.
pub struct Allocator;

// SAFETY: a block comes from a region or from `System`, and goes back there with the same layout.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        take(layout.size(), layout.align(), false).unwrap_or_else(|| unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        take(layout.size(), layout.align(), true).unwrap_or_else(|| unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if !give_back(at, layout.size(), layout.align()) {
            // SAFETY: the caller's promise.
            unsafe { System.dealloc(at, layout) };
        }
    }
}

/// The regions of a run, and a page that all processes share. A page is aligned for any type.
pub struct Regions {
    at: *mut u8,
    devices: usize,
}

impl Regions {
    /// Reserves a region for each device. There is at most one run at a time.
    pub fn new(devices: usize) -> Result<Self, String> {
        let length = devices * REGION + PAGE;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address that the system chooses.
        let at = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            let gib = (devices * REGION) >> 30;
            return Err(format!(
                "the system refuses {gib} GiB of address space, 4 GiB for each device ({}): use --one-process",
                std::io::Error::last_os_error()
            ));
        }
        FIRST.store(at as usize, Ordering::Relaxed);
        END.store(at as usize + devices * REGION, Ordering::Relaxed);
        Ok(Self { at: at.cast(), devices })
    }

    /// The page that all processes share; zeros at first.
    pub fn page(&self) -> *mut u8 {
        // SAFETY: the mapping has one page after the regions.
        unsafe { self.at.add(self.devices * REGION) }
    }

    /// This process is a device from now on, and has no access to the memory of others.
    ///
    /// # Errors
    /// The allocator of the program does not ask here.
    pub fn become_device(&self, device: usize) -> Result<(), String> {
        let own = device * REGION;
        for (from, until) in [(0, own), (own + REGION, self.devices * REGION)] {
            // SAFETY: these are whole regions of the mapping, to which this process has no reference.
            unsafe { libc::munmap(self.at.add(from).cast(), until - from) };
        }
        // SAFETY: the region is in the mapping.
        let first = unsafe { self.at.add(own) } as usize;
        OWN.store(first, Ordering::Relaxed);
        let probe = &raw const *Box::new(0u64) as usize;
        let shares = (first..first + REGION).contains(&probe);
        if shares {
            Ok(())
        } else {
            Err("the allocator of this program shares no memory: use --one-process".into())
        }
    }
}

impl Drop for Regions {
    /// Nothing points into the regions any more.
    fn drop(&mut self) {
        FIRST.store(0, Ordering::Relaxed);
        END.store(0, Ordering::Relaxed);
        // SAFETY: the mapping is this one's.
        unsafe { libc::munmap(self.at.cast(), self.devices * REGION + PAGE) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes are large enough, at most a quarter (or 16 B) too large, aligned, and have different numbers.
    #[test]
    fn blocks_fit() {
        let mut last = (0, LEAST);
        for size in (1..5_000).chain((1..400).map(|i| i * 123_457)) {
            let (number, length) = block(size, 8);
            assert!(length >= size && length < size + (size / 4).max(LEAST), "{length} B for {size} B");
            assert!(length % LEAST == 0 && number < SIZES);
            assert!(length > last.1 && number > last.0 || (number, length) == last, "{size} B");
            last = (number, length);
        }
        for align in [32, 64, 4096] {
            for size in [1, 65, 5_000] {
                let (number, length) = block(size, align);
                assert!(length >= size && length % align == 0 && length.is_power_of_two());
                assert_eq!((number, length), block(length, 8));
            }
        }
    }
}
