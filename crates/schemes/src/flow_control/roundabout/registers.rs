//! Roundabout's detection: two registers of an ingress queue, and Algorithm 1 upon them.
//!
//! ```text
//! T       {sid, qid, rand}, a probing message
//! T_init  the queue's own, valid while it pauses its upstream
//! T_curr  the most advantageous one that it knows of
//!
//!   what happens                     | change of the registers             | frames to upstream
//!   the queue reaches XOFF  (l.8-12) | T_init drawn, T_curr elected        | PAUSE(T_curr)
//!   it is at XON again     (l.13-16) | both invalid                        | RESUME(T_curr)
//!   PAUSE(T) arrives         (17-29) | T = T_init: *deadlock detected*     |
//!                                    | else T_curr elected                 | PAUSE(T_curr) if it pauses
//!   RESUME(T) arrives        (30-36) | T_curr of T's source: back to T_init| INVALID(T), PAUSE(T_init)
//!   INVALID(T) arrives       (37-40) | T_curr = T: invalid                 | INVALID(T)
//! ```
//!
//! "It pauses upstream" and "T_init is valid" are the same. The algorithm as printed keeps T_curr from event
//! to event. That fails in several cases, each shown by a test with a line of [`Printed`]:
//!
//! - `roundabout.resume-when-not-pausing` (line 31): a queue that does not pause keeps resumed triplets. No
//!   frame ever withdraws them; with the smallest number it wins every later election.
//! - `roundabout.line24-validity`: the early return asks for no *valid* T_curr. An invalidated register that
//!   still has the same bits swallows a fresh probe.
//! - `roundabout.invalid-and-T-init` (lines 37-40): after an INVALID no triplet is valid, and T_init is not
//!   sent again.
//! - *own and outdated* (line 18): a triplet of the queue itself that is not its T_init has been withdrawn
//!   already; by rule (ii), the latest one of a source counts, it displaces the valid one.
//! - `roundabout.line27-forwarding` (lines 26-29): an election without a change sends frames nevertheless. If
//!   neighbours have better ones, each replies with its own, over every port that pauses, and the frames
//!   multiply.
//! - *two paths* (lines 30-40): a triplet that comes by two paths is withdrawn when one of them ends, and the
//!   wave of INVALIDs meets the wave of PAUSEs that it has left behind. In a network with loops over
//!   different numbers of links both circulate permanently, and grow.
//!
//! So here **T_curr is a function of the present state**: while a queue pauses, it is the best one of T_init
//! and of the *last* triplets of the paused egress queues with packets of this queue, except triplets of its
//! own. Otherwise it is invalid. Each event of Algorithm 1 changes one of these terms, and the frames report
//! the changes: PAUSE(T_curr) where it is better or nearer, INVALID of the old one and PAUSE of the new one
//! where it is worse. A triplet counts the links that it has crossed. Of two copies the nearer one counts,
//! and after 30 links a triplet is dropped. Otherwise, after the withdrawal of a triplet from outside a loop,
//! its copies in the loop would confirm each other permanently.

pub use super::frame::Triplet;

/// A register: bits, and whether they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Register {
    triplet: Triplet,
    valid: bool,
}

impl Register {
    pub fn get(&self) -> Option<Triplet> {
        self.valid.then_some(self.triplet)
    }

    fn set(&mut self, triplet: Triplet) {
        *self = Self { triplet, valid: true };
    }
}

/// Lines that are taken as printed, for the cases above. None of them is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Printed {
    /// T_curr is kept from event to event. The other fields matter only with this.
    pub below: bool,
    /// Line 31.
    pub resume: bool,
    pub line_24: bool,
    /// Lines 37-40, line 18, and lines 26-29.
    pub invalid: bool,
    pub outdated: bool,
    pub again: bool,
}

/// The message about a priority to the upstream neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Stop; the triplet is the best one known (opcode 1).
    Pause(Triplet),
    /// Go on; the triplet holds no longer, as with `Invalid` (opcode 2).
    Resume(Triplet),
    Invalid(Triplet),
}

/// The consequences of a received frame: at most two messages, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaction {
    words: [Option<Word>; 2],
    /// The queue's own triplet has come back: a deadlock.
    pub detected: bool,
}

impl Reaction {
    fn new(words: [Option<Word>; 2]) -> Self {
        Self { words, detected: false }
    }

    pub fn words(&self) -> impl Iterator<Item = Word> + use<> {
        self.words.into_iter().flatten()
    }
}

/// Rule (i): the smaller number; of equal ones the larger switch, then the larger queue
/// (`roundabout.elect-invalid-first-arg`).
fn better(a: Triplet, b: Triplet) -> bool {
    let key = |t: Triplet| (t.rand, std::cmp::Reverse((t.sid, t.qid)));
    key(a) < key(b)
}

/// Lines 3-7. The first one is valid.
fn elect(t1: Triplet, t2: &Register) -> Triplet {
    match t2.get() {
        Some(t2) if !t1.same_source(&t2) && !better(t1, t2) => t2,
        _ => t1,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    pub init: Register,
    pub curr: Register,
}

impl Registers {
    pub fn pauses(&self) -> bool {
        self.init.valid
    }

    /// Lines 8-12: the queue has reached XOFF. `own` is new; `below` are the triplets of the paused egress
    /// queues that have packets of this queue.
    pub fn send_pause(
        &mut self,
        own: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Word {
        self.init.set(own);
        if printed.below {
            self.curr.set(elect(own, &self.curr));
        } else {
            self.curr.valid = false;
            self.settle(below);
        }
        Word::Pause(self.curr.triplet)
    }

    /// Lines 13-16: it is at XON.
    pub fn send_resume(&mut self) -> Word {
        self.init.valid = false;
        self.curr.valid = false;
        Word::Resume(self.curr.triplet)
    }

    /// Lines 17-29: an egress queue with packets of this one receives PAUSE(T). `source` is the queue itself;
    /// `below` is as for [`Registers::send_pause`], with T.
    pub fn peer_paused(
        &mut self,
        t: Triplet,
        source: (u32, u16),
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Reaction {
        let detected = self.init.get() == Some(t);
        if !printed.below {
            return Reaction { detected, ..self.settle(below) };
        }
        if detected || ((t.sid, t.qid) == source && !printed.outdated) {
            return Reaction { detected, ..Reaction::default() };
        }
        let known = self.curr.get();
        if self.pauses() && !self.curr.valid {
            self.curr.set(elect(t, &self.init));
        } else {
            if self.curr.triplet == t && (self.curr.valid || printed.line_24) {
                return Reaction::default();
            }
            self.curr.set(elect(t, &self.curr));
        }
        let news = printed.again || known != self.curr.get();
        Reaction::new([(self.pauses() && news).then_some(Word::Pause(self.curr.triplet)), None])
    }

    /// Lines 30-36. `below` is as for [`Registers::send_pause`], without the one that resumes.
    pub fn peer_resumed(
        &mut self,
        t: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Reaction {
        if !printed.below {
            return self.settle(below);
        }
        let kept = printed.resume && !self.pauses();
        match self.curr.get() {
            Some(curr) if !kept && curr.same_source(&t) => self.falls_back(t),
            _ => Reaction::default(),
        }
    }

    /// Lines 37-40. `below` is as for [`Registers::send_pause`], without T.
    pub fn peer_invalidated(
        &mut self,
        t: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Reaction {
        if !printed.below {
            return self.settle(below);
        }
        if self.curr.get() != Some(t) {
            return Reaction::default();
        }
        if printed.invalid {
            self.curr.valid = false;
            return Reaction::new([Some(Word::Invalid(t)), None]);
        }
        self.falls_back(t)
    }

    /// `t` is not valid any more: upstream receives this (lines 32-33), and then the new triplet (34-36). In
    /// the other order, upstream would reject the new triplet, because the old one is better.
    fn falls_back(&mut self, t: Triplet) -> Reaction {
        self.curr.valid = false;
        let Some(own) = self.init.get() else { return Reaction::default() };
        self.curr.set(own);
        Reaction::new([Some(Word::Invalid(t)), Some(Word::Pause(own))])
    }

    /// T_curr becomes the best one of T_init and the triplets below; of one triplet the copy that has crossed
    /// the fewest links. Returns the changes: first that the old one is not valid any more, if no better one
    /// replaced it.
    fn settle(&mut self, below: impl Iterator<Item = Triplet>) -> Reaction {
        let Some(own) = self.init.get() else { return Reaction::default() };
        let wins = |t: Triplet, best: Triplet| better(t, best) || (t == best && t.hops < best.hops);
        let candidates = below.filter(|t| !t.same_source(&own));
        let best = candidates.fold(own, |best, t| if wins(t, best) { t } else { best });
        let known = self.curr.get();
        self.curr.set(best);
        match known {
            Some(old) if (old, old.hops) == (best, best.hops) => Reaction::default(),
            Some(old) if better(old, best) => {
                Reaction::new([Some(Word::Invalid(old)), Some(Word::Pause(best))])
            }
            _ => Reaction::new([Some(Word::Pause(best)), None]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::empty;

    const AS_READ: Printed = Printed {
        resume: false,
        line_24: false,
        invalid: false,
        outdated: false,
        below: false,
        again: false,
    };
    /// T_curr is kept, and all other errors are corrected.
    const KEPT: Printed = Printed { below: true, ..AS_READ };
    /// Figure 5 shows T_curr of queues that do not pause.
    const FIGURE: Printed = Printed { below: true, again: true, ..AS_READ };

    fn t(sid: u32, rand: u32) -> Triplet {
        Triplet { sid, qid: 1, rand, hops: 0 }
    }

    /// A loop of four switches: the messages of each queue go to the queue of the previous switch.
    struct Ring {
        queues: [Registers; 4],
        detected: Vec<u32>,
    }

    impl Ring {
        fn upstream(of: u32) -> u32 {
            (of + 3) % 4
        }

        /// The messages of `from` reach the switch upstream of it; returns its messages.
        fn tell(&mut self, from: u32, words: &[Word]) -> Vec<Word> {
            let at = Self::upstream(from);
            let queue = &mut self.queues[at as usize];
            let mut said = Vec::new();
            for &word in words {
                let reaction = match word {
                    Word::Pause(t) => queue.peer_paused(t, (at, 1), empty(), &FIGURE),
                    Word::Resume(t) => queue.peer_resumed(t, empty(), &FIGURE),
                    Word::Invalid(t) => queue.peer_invalidated(t, empty(), &FIGURE),
                };
                if reaction.detected {
                    self.detected.push(at);
                }
                said.extend(reaction.words());
            }
            said
        }

        fn registers(&self) -> [(Option<u32>, Option<u32>); 4] {
            self.queues.map(|q| (q.init.get().map(|t| t.sid), q.curr.get().map(|t| t.sid)))
        }
    }

    /// Figure 5, with switches counted from 0: S1, S2 and S4 trigger at once, S3 becomes a spreader, S1 does
    /// not pause any longer at t2, and pauses again at last. S3 drew the smallest number, and its own triplet
    /// comes back to it. The figure's numbers are not printed; any order in which S3 wins will do.
    #[test]
    fn figure_5() {
        let (s1, s2, s3, s4) = (0, 1, 2, 3);
        let mut ring = Ring { queues: Default::default(), detected: Vec::new() };
        let pause = |ring: &mut Ring, s: u32, rand: u32| {
            ring.queues[s as usize].send_pause(t(s, rand), empty(), &FIGURE)
        };
        // t0: three triggers. Each has its own triplet in both registers.
        let from_1 = pause(&mut ring, s1, 30);
        let from_2 = pause(&mut ring, s2, 20);
        let from_4 = pause(&mut ring, s4, 40);
        let own = |s: u32| (Some(s), Some(s));
        assert_eq!(ring.registers(), [own(s1), own(s2), (None, None), own(s4)]);
        // t1: they arrive. S4 prefers that of S1, S1 that of S2; S3 has received that of S4.
        let from_4_again = ring.tell(s1, &[from_1]);
        let from_1_again = ring.tell(s2, &[from_2]);
        assert!(ring.tell(s4, &[from_4]).is_empty());
        assert_eq!(ring.registers(), [(Some(s1), Some(s2)), own(s2), (None, Some(s4)), (Some(s4), Some(s1))]);
        assert_eq!(from_4_again, [Word::Pause(t(s1, 30))]);
        assert_eq!(from_1_again, [Word::Pause(t(s2, 20))]);
        // t2: S3 fills up and pauses S2, with the smallest number; S1 resumes.
        let from_3 = pause(&mut ring, s3, 10);
        let resume = ring.queues[0].send_resume();
        assert_eq!((from_3, resume), (Word::Pause(t(s3, 10)), Word::Resume(t(s2, 20))));
        // S4 receives the triplet of S2 by S1's election and then its end: its own triplet is back.
        assert_eq!(ring.tell(s1, &from_1_again), [Word::Pause(t(s2, 20))]);
        let from_4 = ring.tell(s1, &[resume]);
        assert_eq!(from_4, [Word::Invalid(t(s2, 20)), Word::Pause(t(s4, 40))]);
        // S3 lets none of that pass for better than its own.
        assert_eq!(ring.tell(s4, &from_4), [Word::Pause(t(s3, 10))]);
        // t3: S2 prefers that of S3 and says so to S1, which does not pause any longer …
        let from_2 = ring.tell(s3, &[from_3]);
        assert_eq!(from_2, [Word::Pause(t(s3, 10))]);
        assert!(ring.tell(s2, &from_2).is_empty());
        assert_eq!(ring.registers(), [(None, Some(s3)), (Some(s2), Some(s3)), own(s3), own(s4)]);
        // … until it fills up again. Then the triplet of S3 goes on to S4, and back to S3.
        let from_1 = pause(&mut ring, s1, 50);
        assert_eq!(from_1, Word::Pause(t(s3, 10)));
        let from_4 = ring.tell(s1, &[from_1]);
        assert_eq!(from_4, [Word::Pause(t(s3, 10))]);
        assert!(ring.tell(s4, &from_4).is_empty());
        assert_eq!(ring.detected, [s3]);
    }

    /// A queue that does not pause has received a triplet with the smallest number, and its end. As printed,
    /// it keeps it, and sends it when it pauses.
    #[test]
    fn a_queue_that_does_not_pause_drops_resumed_triplets() {
        for (printed, said) in [(false, t(1, 50)), (true, t(9, 1))] {
            let printed = Printed { resume: printed, ..KEPT };
            let mut queue = Registers::default();
            assert_eq!(queue.peer_paused(t(9, 1), (1, 1), empty(), &printed), Reaction::default());
            assert_eq!(queue.peer_resumed(t(9, 1), empty(), &printed), Reaction::default());
            assert_eq!(queue.send_pause(t(1, 50), empty(), &printed), Word::Pause(said));
        }
    }

    /// The same triplet comes again after its end. As printed, a register that still has its bits drops it if
    /// the queue does not pause.
    #[test]
    fn a_probe_counts_though_an_invalid_register_has_its_bits() {
        for (printed, said) in [(false, t(9, 1)), (true, t(1, 50))] {
            let printed = Printed { line_24: printed, ..KEPT };
            let mut queue = Registers::default();
            queue.peer_paused(t(9, 1), (1, 1), empty(), &printed);
            queue.peer_invalidated(t(9, 1), empty(), &printed);
            queue.peer_paused(t(9, 1), (1, 1), empty(), &printed);
            assert_eq!(queue.send_pause(t(1, 50), empty(), &printed), Word::Pause(said));
        }
    }

    /// A triplet is withdrawn and no other follows. As printed, upstream is left with none.
    #[test]
    fn the_queues_own_triplet_follows_an_invalidation() {
        for (printed, said) in [(false, Some(Word::Pause(t(1, 50)))), (true, None)] {
            let printed = Printed { invalid: printed, ..KEPT };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 50), empty(), &printed);
            queue.peer_paused(t(9, 1), (1, 1), empty(), &printed);
            let reaction = queue.peer_invalidated(t(9, 1), empty(), &printed);
            let expected: Vec<Word> = [Some(Word::Invalid(t(9, 1))), said].into_iter().flatten().collect();
            assert_eq!(reaction.words().collect::<Vec<_>>(), expected);
            assert_eq!(queue.curr.get(), said.map(|_| t(1, 50)));
        }
    }

    /// A triplet of an earlier pause of the queue itself comes round. Printed, it displaces the
    /// one that holds.
    #[test]
    fn an_outdated_triplet_of_ones_own_dies() {
        for printed in [false, true] {
            let printed = Printed { outdated: printed, ..KEPT };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 5), empty(), &printed);
            queue.send_resume();
            queue.send_pause(t(1, 50), empty(), &printed);
            let reaction = queue.peer_paused(t(1, 5), (1, 1), empty(), &printed);
            assert_eq!(
                reaction.words().collect::<Vec<_>>(),
                match printed.outdated {
                    false => vec![],
                    true => vec![Word::Pause(t(1, 5))],
                }
            );
        }
    }

    /// It resumes while it still waits for a queue with a better triplet, and pauses again. As printed, that
    /// triplet is lost.
    #[test]
    fn triplets_below_are_candidates() {
        for (printed, said) in [(false, t(9, 1)), (true, t(1, 60))] {
            let printed = Printed { below: printed, ..AS_READ };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 50), empty(), &printed);
            queue.peer_paused(t(9, 1), (1, 1), [t(9, 1)].into_iter(), &printed);
            assert_eq!(queue.send_resume(), Word::Resume(t(9, 1)));
            let below = [t(9, 1), t(8, 2)];
            assert_eq!(queue.send_pause(t(1, 60), below.into_iter(), &printed), Word::Pause(said));
        }
        // Of two queues that it waits for, one resumes: the triplet of the other one counts. If that is the
        // same one, nothing changes.
        for (left, said) in [(t(8, 2), vec![Word::Invalid(t(9, 1)), Word::Pause(t(8, 2))]), (t(9, 1), vec![])]
        {
            let mut queue = Registers::default();
            queue.send_pause(t(1, 50), empty(), &AS_READ);
            queue.peer_paused(t(9, 1), (1, 1), [t(9, 1), left].into_iter(), &AS_READ);
            let reaction = queue.peer_resumed(t(9, 1), [left].into_iter(), &AS_READ);
            assert_eq!(reaction.words().collect::<Vec<_>>(), said);
        }
    }

    /// The nearer copy of a triplet counts; when only the farther one is left, upstream receives its number
    /// of links.
    #[test]
    fn copies_grow_old() {
        let far = Triplet { hops: 7, ..t(9, 1) };
        let mut queue = Registers::default();
        queue.send_pause(t(1, 50), empty(), &AS_READ);
        let said = |reaction: Reaction| {
            reaction.words().map(|w| matches!(w, Word::Pause(t) if t.hops == 7)).collect::<Vec<_>>()
        };
        assert_eq!(said(queue.peer_paused(far, (1, 1), [far, t(9, 1)].into_iter(), &AS_READ)), [false]);
        assert_eq!(said(queue.peer_resumed(t(9, 1), [far].into_iter(), &AS_READ)), [true]);
        assert_eq!(said(queue.peer_paused(far, (1, 1), [far].into_iter(), &AS_READ)), [false; 0]);
    }

    /// Downstream prefers a triplet of this queue itself, from a pause that is over, to its previous one. No
    /// active pause confirms that triplet any more.
    #[test]
    fn withdrawn_triplets_of_downstream_are_dropped() {
        let mut queue = Registers::default();
        queue.send_pause(t(1, 50), empty(), &AS_READ);
        queue.peer_paused(t(9, 7), (1, 1), [t(9, 7)].into_iter(), &AS_READ);
        let reaction = queue.peer_paused(t(1, 5), (1, 1), [t(1, 5)].into_iter(), &AS_READ);
        assert_eq!(reaction.words().collect::<Vec<_>>(), [Word::Invalid(t(9, 7)), Word::Pause(t(1, 50))]);
        // It does not pause: nothing is kept.
        let mut idle = Registers::default();
        assert_eq!(idle.peer_paused(t(9, 7), (1, 1), [t(9, 7)].into_iter(), &AS_READ), Reaction::default());
        assert_eq!(idle.curr.get(), None);
    }

    /// A probe that loses changes nothing, and no frame is sent. As printed, a frame is sent.
    #[test]
    fn a_probe_that_loses_gets_no_reply() {
        for printed in [false, true] {
            let mut queue = Registers::default();
            queue.send_pause(t(1, 5), empty(), &KEPT);
            let printed = Printed { again: printed, ..KEPT };
            let reaction = queue.peer_paused(t(9, 7), (1, 1), empty(), &printed);
            let again = printed.again.then_some(Word::Pause(t(1, 5)));
            assert_eq!(reaction.words().next(), again);
        }
    }

    #[test]
    fn equal_numbers_are_distinguished() {
        for (own, other) in [(1, 2), (2, 1)] {
            let mut queue = Registers::default();
            queue.send_pause(t(own, 5), empty(), &AS_READ);
            queue.peer_paused(t(other, 5), (own, 1), [t(other, 5)].into_iter(), &AS_READ);
            assert_eq!(queue.curr.get(), Some(t(2, 5)));
        }
    }
}
