//! BifrostX: tokens for each priority, and for all of them together (section IV-E).
//!
//! Downstream, at the end of each slot (Algorithm 2), L being that of all priorities:
//!
//! ```text
//! c_max = ĉ of Algorithm 1                               (line 2)
//! c_i   = R_s T − max(ΔL_i, 0)                           (lines 4–5)
//! send feedback(c_max, c_1 … c_P), in every slot         (line 6)
//! ```
//!
//! Upstream, from the frame that says so until the next one, at most for a slot (Algorithm 3): priorities are
//! served strictly, the first one first (`bifrostx.order`), and a packet of class i may begin while the rests
//! of c_i and of c_max are both positive; its bytes are subtracted from both. In this order class i gets
//! min(q_i, c_i, c_left), line 4, also for packets that arrive in the slot: the rest of c_max is available to
//! all classes ([`Leftover::Pooled`], `bifrostx.leftover`). [`Leftover::Reserved`] is the algorithm as
//! printed: c'_i is computed from the queue when the frame arrives, and the rest of the grant is lost.
//!
//! All tokens expire with the slot (`bifrostx.cumulative`). A packet may take more than is left; the debt,
//! less than a packet, is taken off the next slot's tokens (`bifrostx.sub-mtu`). Before the first frame
//! everything may go; after it, nothing goes without a frame of this slot (`bifrostx.start-and-loss`).
//!
//! *Whole slots.* A late frame would cost time in every slot. Where Algorithm 1 grants all of R_s T the frame
//! says so, and only the wire bounds the port, until the next frame or for the margin beyond the slot;
//! likewise a class whose c_i is R_s T, whose length has not grown: it "should not be paused".

use super::frame::FeedbackFrame;
pub use super::keys::Leftover;
use xoff_kernel::time::Time;

/// No bound but the wire.
const FREE: i64 = i64::MAX;

/// The upstream half of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Bytes that the port may send, a debt if negative.
    port: i64,
    /// The same of each lane.
    lanes: Vec<i64>,
    /// Nothing may be sent from then on.
    until: Time,
}

/// The rest of a budget when the next one arrives: a debt.
fn debt(left: i64) -> i64 {
    if left == FREE { 0 } else { left.min(0) }
}

impl Tokens {
    /// Before the first frame.
    pub fn new(lanes: usize) -> Self {
        Self { port: FREE, lanes: vec![FREE; lanes], until: Time::MAX }
    }

    /// Nothing goes until a frame comes.
    pub fn none(lanes: usize) -> Self {
        Self { port: 0, lanes: vec![0; lanes], until: 0 }
    }

    /// A frame has taken effect at `now`, of a slot that with its margin lasts `slot` picoseconds, in which
    /// `of_slot` bytes pass; `priorities` are those of the lanes, in the order of service. `queued` returns
    /// the bytes that a lane has to send, if leftovers are lost.
    pub fn set(
        &mut self,
        now: Time,
        slot: Time,
        of_slot: u64,
        frame: &FeedbackFrame,
        priorities: &[u8],
        queued: Option<&dyn Fn(u8) -> u64>,
    ) {
        self.until = now + slot;
        self.port = if frame.whole { FREE } else { i64::from(frame.total) + debt(self.port) };
        let mut left = if frame.whole { of_slot } else { u64::from(frame.total) };
        for (lane, (tokens, &priority)) in (0u8..).zip(self.lanes.iter_mut().zip(priorities)) {
            if frame.enabled >> priority & 1 == 0 {
                *tokens = FREE;
                continue;
            }
            let granted = u64::from(frame.each[usize::from(priority)]);
            let owed = debt(*tokens);
            *tokens = match queued {
                None if granted >= of_slot => FREE,
                None => granted as i64 + owed,
                Some(queued) => {
                    let reserved = queued(lane).min(granted).min(left);
                    left -= reserved;
                    reserved as i64 + owed
                }
            };
        }
    }

    /// Whether a packet of `lane` may begin at `now`; it then takes its `size` off.
    pub fn take(&mut self, now: Time, lane: u8, size: u32) -> bool {
        let class = &mut self.lanes[usize::from(lane)];
        if now >= self.until || self.port <= 0 || *class <= 0 {
            return false;
        }
        for budget in [&mut self.port, class] {
            if *budget != FREE {
                *budget -= i64::from(size);
            }
        }
        true
    }
}

/// c_i of a class that holds `stored` bytes, and held `before` when the slot began.
pub fn of_class(of_slot: u64, before: u64, stored: u64) -> u64 {
    of_slot.saturating_sub(stored.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(whole: bool, total: u32, each: &[u32]) -> FeedbackFrame {
        let mut frame = FeedbackFrame { whole, total, ..FeedbackFrame::default() };
        for (p, &granted) in each.iter().enumerate() {
            frame.enabled |= 1 << (7 - p);
            frame.each[7 - p] = granted;
        }
        frame
    }

    const PRIORITIES: [u8; 3] = [7, 6, 5];

    #[test]
    fn everything_goes_before_the_first_frame_and_nothing_after_its_slot() {
        let mut tokens = Tokens::new(3);
        assert!((0..1000).all(|i| tokens.take(i, 2, 9000)));
        tokens.set(1000, 100, 10_000, &frame(false, 2_000, &[10_000; 3]), &PRIORITIES, None);
        assert!(
            tokens.take(1001, 1, 1500) && tokens.take(1002, 1, 1500),
            "a packet may take more than is left"
        );
        assert!(!tokens.take(1003, 0, 64), "the port has nothing left");
        // The debt of 1,000 B is taken off, and tokens expire.
        tokens.set(1100, 100, 10_000, &frame(false, 1_001, &[10_000; 3]), &PRIORITIES, None);
        assert!(tokens.take(1199, 0, 1) && !tokens.take(1199, 0, 1));
        tokens.set(1200, 100, 10_000, &frame(false, 5_000, &[10_000; 3]), &PRIORITIES, None);
        assert!(!tokens.take(1300, 0, 1), "the slot is over");
    }

    #[test]
    fn a_class_that_grew_is_limited_and_others_use_its_rest() {
        let mut tokens = Tokens::new(3);
        tokens.set(0, 100, 10_000, &frame(false, 6_000, &[3_000, 10_000, 10_000]), &PRIORITIES, None);
        assert!(tokens.take(0, 0, 1500) && tokens.take(0, 0, 1500) && !tokens.take(0, 0, 1500));
        assert!(tokens.take(0, 1, 1500) && tokens.take(0, 2, 1500) && !tokens.take(0, 1, 1500));
        // As printed, tokens for bytes that were not queued when the frame arrived are lost.
        let mut printed = Tokens::new(3);
        let queued = |lane: u8| [1_500, 0, 100_000][usize::from(lane)];
        printed.set(
            0,
            100,
            10_000,
            &frame(false, 6_000, &[3_000, 10_000, 4_000]),
            &PRIORITIES,
            Some(&queued),
        );
        assert!(printed.take(0, 0, 1500) && !printed.take(0, 0, 1500), "1,500 B were queued");
        assert!(!printed.take(0, 1, 1500), "nothing was queued");
        let sent = (0..).take_while(|_| printed.take(0, 2, 1500)).count();
        assert_eq!(sent, 3, "of its 4,000 B, the last packet on credit");
    }

    #[test]
    fn a_slot_that_is_granted_whole_is_bounded_only_by_the_wire() {
        let mut tokens = Tokens::new(3);
        tokens.set(0, 110, 10_000, &frame(true, 0, &[10_000, 10_000, 9_000]), &PRIORITIES, None);
        assert!((0..100).all(|_| tokens.take(109, 0, 1500)));
        let sent = (0..).take_while(|_| tokens.take(109, 2, 1500)).count();
        assert_eq!(sent, 6, "a class that grew keeps its bound");
        assert!(!tokens.take(110, 0, 1500));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Over any slots, the bytes that all classes send exceed Σ c_max by less than a packet, and those of
        /// one class Σ c_i; with both rules for leftovers.
        #[test]
        fn grants_are_never_exceeded(
            slots in prop::collection::vec((0u32..9_000, prop::array::uniform3(0u32..10_000)), 1..40),
            tries in prop::collection::vec((0u8..3, 64u32..1500), 1..60),
            printed in any::<bool>(),
        ) {
            let mut tokens = Tokens::new(3);
            let (mut sent, mut granted, mut all, mut total) = ([0i64; 3], [0i64; 3], 0i64, 0i64);
            for (i, (c_max, each)) in slots.into_iter().enumerate() {
                let now = 100 * i as u64;
                let queued = |lane: u8| u64::from(lane) * 3_000;
                let rule: Option<&dyn Fn(u8) -> u64> = if printed { Some(&queued) } else { None };
                tokens.set(now, 100, 10_000, &frame(false, c_max, &each), &PRIORITIES, rule);
                total += i64::from(c_max);
                for (sum, c) in granted.iter_mut().zip(each) {
                    *sum += i64::from(c);
                }
                for &(lane, size) in &tries {
                    if tokens.take(now, lane, size) {
                        sent[usize::from(lane)] += i64::from(size);
                        all += i64::from(size);
                    }
                    prop_assert!(all < total + 1500);
                    for (sent, granted) in sent.iter().zip(granted) {
                        prop_assert!(*sent < granted + 1500);
                    }
                }
            }
        }

        /// Section IV-E: at most R_s T arrives in a slot, so with two classes or more the sum of c_i is at
        /// least R_s T, hence at least c_max.
        #[test]
        fn two_classes_are_always_granted_a_whole_slot(
            of_slot in 1u64..1_000_000,
            shares in prop::collection::vec((0.0f64..1.0, 0u64..1_000_000, 0u64..1_000_000), 2..8),
        ) {
            let sum: f64 = shares.iter().map(|s| s.0).sum::<f64>().max(1.0);
            let granted: u64 = shares
                .iter()
                .map(|&(share, before, drained)| {
                    let arrived = (share / sum * of_slot as f64) as u64;
                    of_class(of_slot, before, (before + arrived).saturating_sub(drained))
                })
                .sum();
            prop_assert!(granted >= of_slot * (shares.len() as u64 - 1));
        }
    }
}
