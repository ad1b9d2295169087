//! The retry limit of senders (`transport.retries`): a sender gives up after so many retries without progress, as an
//! InfiniBand queue pair whose retry count is exceeded (specification, volume 1, section 9.7.5.1.3), or a TCP
//! connection at R2 (RFC 1122, section 4.2.3.5).
//!
//! ```text
//!   timeout         una has advanced since the last one:  count = 0
//!                   count += 1;  count > retries:  give up
//! ```
//!
//! Where each packet has its timer (NDP, IRN's `packet`), many of them expire after one loss. Timeouts count only if
//! the last counted one is at least one RTO ago. RUD counts the retries of each packet ([`super::rud`]).
//!
//! NACKs are no retries: the network has answered. InfiniBand also counts them.

use xoff_kernel::time::Time;

/// Timeouts of a sender without progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    una: u32,
    count: u8,
    last: Time,
}

impl Attempts {
    /// A timeout; `una` is the first packet that is not acknowledged. Timeouts that follow the last one in less than
    /// `apart` do not count. Returns whether the sender gives up.
    pub fn on_timeout(&mut self, retries: u8, una: u32, apart: Time, now: Time) -> bool {
        if self.una != una {
            *self = Self { una, ..Self::default() };
        }
        if self.count == 0 || now - self.last >= apart {
            self.count = self.count.saturating_add(1);
            self.last = now;
        }
        self.count > retries
    }
}

/// A limit of retries in words, between `before` and `of`; nothing without one.
pub fn describe(before: &str, limit: Option<u8>, of: &str) -> String {
    let Some(limit) = limit else { return String::new() };
    let retries = if limit == 1 { "retry" } else { "retries" };
    format!("{before} {limit} {retries}{of}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_starts_the_count_anew() {
        let mut attempts = Attempts::default();
        let mut timeout = |una, now| attempts.on_timeout(2, una, 0, now);
        assert_eq!([timeout(0, 10), timeout(0, 20)], [false, false]);
        assert_eq!([timeout(1, 30), timeout(1, 40), timeout(1, 50)], [false, false, true]);
    }

    #[test]
    fn timeouts_of_one_loss_count_once() {
        let mut attempts = Attempts::default();
        let mut timeout = |now| attempts.on_timeout(1, 0, 100, now);
        assert_eq!([100, 101, 150, 199].map(&mut timeout), [false; 4]);
        assert_eq!([200, 201].map(timeout), [true; 2]);
    }

    #[test]
    fn without_retries_the_first_timeout_is_the_last() {
        assert!(Attempts::default().on_timeout(0, 0, 100, 5));
    }
}
