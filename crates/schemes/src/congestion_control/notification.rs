//! The receiver's part in marks: congestion notification packets, or marks that answers report.

use xoff_kernel::time::Time;

/// Congestion notification packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cnps {
    /// Least picoseconds between two for one flow; 0 if answers report marks instead.
    pub interval: Time,
    /// Bytes on the wire.
    pub size: u32,
    /// Their lane; `None` is that of ACKs.
    pub lane: Option<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotificationPoint {
    /// The next CNP may go from this time on.
    next: Time,
    /// Whether a marked packet has arrived since the last ACK or NACK.
    marked: bool,
}

impl NotificationPoint {
    /// A marked packet arrived. Returns whether to send a CNP at once, rather than to echo the mark.
    pub fn on_marked(&mut self, cnps: Option<Cnps>, now: Time) -> bool {
        let Some(Cnps { interval, .. }) = cnps.filter(|cnps| cnps.interval > 0) else {
            self.marked = true;
            return false;
        };
        let goes = now >= self.next;
        if goes {
            self.next = now.saturating_add(interval);
        }
        goes
    }

    /// An ACK or NACK is sent. Returns whether it reports marked packets.
    pub fn take_mark(&mut self) -> bool {
        std::mem::take(&mut self.marked)
    }
}
