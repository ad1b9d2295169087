//! Network namespaces: one for each device. They vanish with the process, however it ends.

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The namespace of the calling thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// Permits this process to make namespaces: to do so as an ordinary user it joins a new user namespace, as
/// `unshare -U` does. To be called while the process has one thread.
///
/// # Errors
/// The system forbids it; the text says why.
pub fn enter() -> Result<(), String> {
    if unshare(CloneFlags::CLONE_NEWNET).is_ok() {
        return Ok(());
    }
    let (user, group) = (nix::unistd::getuid(), nix::unistd::getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(forbidden)?;
    // Commands keep their rights in the namespace only as its root, which is this user outside.
    let map = |id: u32| format!("0 {id} 1");
    let maps =
        [("setgroups", "deny".into()), ("uid_map", map(user.as_raw())), ("gid_map", map(group.as_raw()))];
    for (name, text) in maps {
        let path = format!("/proc/self/{name}");
        fs::write(&path, text).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => forbidden(Errno::EPERM),
            _ => format!("{path} cannot be written: {e}"),
        })?;
    }
    unshare(CloneFlags::CLONE_NEWNET).map_err(forbidden)
}

fn forbidden(error: Errno) -> String {
    format!("this system forbids network namespaces ({error})")
}

fn open(path: &str) -> Result<Namespace, String> {
    let file = File::open(path).map_err(|e| format!("{path} cannot be read: {e}"))?;
    Ok(Namespace(file.into()))
}

/// The namespace of the calling thread.
pub fn own() -> Result<Namespace, String> {
    open(OWN)
}

/// The namespace of a process.
pub fn of(process: u32) -> Result<Namespace, String> {
    open(&format!("/proc/{process}/ns/net"))
}

/// A network namespace.
pub struct Namespace(OwnedFd);

impl Namespace {
    /// A new one, which the calling thread joins.
    pub fn new() -> Result<Self, String> {
        unshare(CloneFlags::CLONE_NEWNET).map_err(forbidden)?;
        let made = own()?;
        // With IPv6 the kernel also sends packets over the links. A container may forbid this change.
        let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
        Ok(made)
    }

    /// The calling thread joins it.
    pub fn join(&self) -> Result<(), String> {
        setns(&self.0, CloneFlags::CLONE_NEWNET).map_err(|e| format!("a namespace cannot be joined: {e}"))
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
