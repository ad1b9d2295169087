//! Roundabout's detection: two registers of an ingress queue, and Algorithm 1 upon them.
//!
//! ```text
//! T       {sid, qid, rand}, a probing message
//! T_init  the queue's own, valid while it pauses its upstream
//! T_curr  the most advantageous one that it knows of
//!
//!   what happens                     | what becomes of the registers       | upstream is told
//!   the queue reaches XOFF  (l.8-12) | T_init drawn, T_curr elected        | PAUSE(T_curr)
//!   it is at XON again     (l.13-16) | both invalid                        | RESUME(T_curr)
//!   downstream says PAUSE(T) (17-29) | T = T_init: *deadlock detected*     |
//!                                    | else T_curr elected                 | PAUSE(T_curr) if it pauses
//!   it says RESUME(T)        (30-36) | T_curr of T's source: back to T_init| INVALID(T), PAUSE(T_init)
//!   it says INVALID(T)       (37-40) | T_curr = T: invalid                 | INVALID(T)
//! ```
//!
//! "It pauses upstream" and "T_init is valid" are the same. Where the algorithm as printed
//! fails, it is read otherwise; [`Printed`] brings each printed form back, for tests which show
//! what goes wrong with it:
//!
//! - `roundabout.resume-when-not-pausing` (line 31): a RESUME takes T_curr away from a queue
//!   that does not pause as well. Else it keeps a triplet that nobody will ever take back, and
//!   with the smallest number that wins every later election.
//! - `roundabout.line24-validity`: the early return needs a *valid* T_curr. Else an invalidated
//!   register that still has the same bits swallows a fresh probe.
//! - `roundabout.invalid-and-T-init` (lines 37-40): an INVALID brings T_curr back to T_init, at
//!   once, as a RESUME does. The guard that the recommended reading has instead (wait for a hop's
//!   round trip whether a PAUSE follows) would need a timer in every queue; what this one costs
//!   is a frame that a PAUSE behind it may correct.
//! - *own and outdated* (line 18): a triplet of the queue itself that is not its T_init has been
//!   taken back already, and dies here. Else rule (ii), the latest one of a source counts, has it
//!   displace the valid one.
//! - *no news* (lines 26-29, `roundabout.line27-forwarding`): an election that leaves T_curr as it is
//!   says nothing. As printed it says it again, to end where upstream has the same T_curr; where
//!   neighbours have better ones, each answers by saying its own, over every port that pauses, and
//!   with two such ports or more what is said multiplies without end. Nobody needs the repetition:
//!   each egress queue remembers what it was told.
//! - *what stands below* (lines 10, 26, 34 and 35): T_curr is valid while the queue pauses, and then
//!   it is T_init or what a paused egress queue with packets of this queue was told *last*; that
//!   stands for election when the queue begins to pause, and whenever T_curr falls. As printed a
//!   queue that does not pause keeps a T_curr, too, which says nothing of what it waits for by
//!   then: it does not know of a pause that stands while it resumes and pauses again, or that
//!   its first packet meets; and where downstream changes its mind in favour of a triplet of this
//!   queue itself, which dies here, what it said before stays for ever.

pub use xoff_wire::roundabout::Triplet;

/// A register: bits, and whether they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Register {
    triplet: Triplet,
    valid: bool,
}

impl Register {
    /// What it holds, if that is valid.
    pub fn get(&self) -> Option<Triplet> {
        self.valid.then_some(self.triplet)
    }

    fn set(&mut self, triplet: Triplet) {
        *self = Self { triplet, valid: true };
    }
}

/// Lines that are taken as printed. None of them is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Printed {
    /// Line 31: a queue that does not pause keeps what has been resumed.
    pub resume: bool,
    /// Line 24 does not ask whether T_curr is valid.
    pub line_24: bool,
    /// Lines 37-40 leave T_curr invalid.
    pub invalid: bool,
    /// Line 18: nothing is said of outdated triplets of one's own.
    pub outdated: bool,
    /// Lines 10, 26, 34 and 35 know of T_init and T_curr alone.
    pub below: bool,
    /// Lines 26-29 say what was said before.
    pub again: bool,
}

/// What the neighbour upstream is told of a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Word {
    /// Stop; the triplet is the best one known (opcode 1).
    Pause(Triplet),
    /// Go on; the triplet holds no longer (opcode 2).
    Resume(Triplet),
    /// The triplet holds no longer (opcode 2).
    Invalid(Triplet),
}

/// What follows from what was heard: at most two words, in this order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    words: [Option<Word>; 2],
    /// The queue's own triplet has come back: a deadlock.
    pub detected: bool,
}

impl Heard {
    fn say(words: [Option<Word>; 2]) -> Self {
        Self { words, detected: false }
    }

    /// What to say.
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

/// The registers of an ingress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    /// T_init.
    pub init: Register,
    /// T_curr.
    pub curr: Register,
}

impl Registers {
    /// Whether the queue pauses its upstream.
    pub fn pauses(&self) -> bool {
        self.init.valid
    }

    /// Lines 8-12: the queue has reached XOFF. `own` is new; `below` is what the egress queues
    /// were told which are paused and have packets of this queue.
    pub fn send_pause(
        &mut self,
        own: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Word {
        self.init.set(own);
        self.curr.set(elect(own, &self.curr));
        if !printed.below {
            self.look_below(own, below);
        }
        Word::Pause(self.curr.triplet)
    }

    /// Lines 13-16: it is at XON.
    pub fn send_resume(&mut self) -> Word {
        self.init.valid = false;
        self.curr.valid = false;
        Word::Resume(self.curr.triplet)
    }

    /// Lines 17-29: an egress queue with packets of this one is told PAUSE(T), and was told
    /// `before`. `source` is the queue itself; `below` is as for [`Registers::send_pause`], with T.
    pub fn peer_paused(
        &mut self,
        t: Triplet,
        before: Option<Triplet>,
        source: (u32, u16),
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Heard {
        let detected = self.init.get() == Some(t);
        let outdated = !detected && (t.sid, t.qid) == source && !printed.outdated;
        let mut heard = Heard { detected, ..Heard::default() };
        let known = self.curr.get();
        if !detected && !outdated && (self.pauses() || printed.below) {
            if self.pauses() && !self.curr.valid {
                self.curr.set(elect(t, &self.init));
            } else {
                if self.curr.triplet == t && (self.curr.valid || printed.line_24) {
                    return heard;
                }
                self.curr.set(elect(t, &self.curr));
            }
            let news = printed.again || known != self.curr.get();
            heard = Heard::say([(self.pauses() && news).then_some(Word::Pause(self.curr.triplet)), None]);
        }
        // What it was told before stands no longer.
        let withdrawn = before.filter(|&b| b != t && self.pauses() && self.curr.get() == Some(b));
        if let Some(before) = withdrawn.filter(|_| !printed.below) {
            heard = Heard { detected, ..self.falls_back(before, below, printed) };
        }
        heard
    }

    /// Lines 30-36. `below` is as for [`Registers::send_pause`], without the one that resumes.
    pub fn peer_resumed(
        &mut self,
        t: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Heard {
        if printed.resume && !self.pauses() {
            return Heard::default();
        }
        if !self.curr.valid || !self.curr.triplet.same_source(&t) {
            return Heard::default();
        }
        self.falls_back(t, below, printed)
    }

    /// Lines 37-40. `below` is as for [`Registers::send_pause`].
    pub fn peer_invalidated(
        &mut self,
        t: Triplet,
        below: impl Iterator<Item = Triplet>,
        printed: &Printed,
    ) -> Heard {
        if self.curr.get() != Some(t) {
            return Heard::default();
        }
        if printed.invalid {
            self.curr.valid = false;
            return Heard::say([Some(Word::Invalid(t)), None]);
        }
        self.falls_back(t, below, printed)
    }

    /// `t` holds no longer: upstream hears it (lines 32-33), and what holds instead (34-36). In
    /// this order, or upstream would let the new one lose against the old one.
    fn falls_back(&mut self, t: Triplet, below: impl Iterator<Item = Triplet>, printed: &Printed) -> Heard {
        self.curr.valid = false;
        let Some(own) = self.init.get() else { return Heard::default() };
        self.curr.set(own);
        if !printed.below {
            self.look_below(own, below.filter(|other| !other.same_source(&t)));
        }
        Heard::say([Some(Word::Invalid(t)), Some(Word::Pause(self.curr.triplet))])
    }

    fn look_below(&mut self, own: Triplet, below: impl Iterator<Item = Triplet>) {
        for t in below.filter(|t| !t.same_source(&own)) {
            self.curr.set(elect(t, &self.curr));
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
    /// Figure 5 shows T_curr of queues that do not pause.
    const FIGURE: Printed = Printed { below: true, again: true, ..AS_READ };

    fn t(sid: u32, rand: u32) -> Triplet {
        Triplet { sid, qid: 1, rand, hops: 0 }
    }

    /// A loop of four switches: what each one's queue says goes to the queue of the one before.
    struct Ring {
        queues: [Registers; 4],
        detected: Vec<u32>,
    }

    impl Ring {
        fn upstream(of: u32) -> u32 {
            (of + 3) % 4
        }

        /// The words of `from` reach the switch upstream of it; answers what that one says.
        fn tell(&mut self, from: u32, words: &[Word]) -> Vec<Word> {
            let at = Self::upstream(from);
            let queue = &mut self.queues[at as usize];
            let mut said = Vec::new();
            for &word in words {
                let heard = match word {
                    Word::Pause(t) => queue.peer_paused(t, None, (at, 1), empty(), &FIGURE),
                    Word::Resume(t) => queue.peer_resumed(t, empty(), &FIGURE),
                    Word::Invalid(t) => queue.peer_invalidated(t, empty(), &FIGURE),
                };
                if heard.detected {
                    self.detected.push(at);
                }
                said.extend(heard.words());
            }
            said
        }

        fn registers(&self) -> [(Option<u32>, Option<u32>); 4] {
            self.queues.map(|q| (q.init.get().map(|t| t.sid), q.curr.get().map(|t| t.sid)))
        }
    }

    /// Figure 5, with switches counted from 0: S1, S2 and S4 trigger at once, S3 becomes a
    /// spreader, S1 does not pause any longer at t2, and pauses again at last. S3 drew the
    /// smallest number, and its own triplet comes back to it. The figure's numbers are not
    /// printed; any order in which S3 wins will do.
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
        // t1: they arrive. S4 prefers that of S1, S1 that of S2; S3 has heard of S4.
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
        // S4 hears of S2 by S1's election and then that this is over: its own triplet is back.
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

    /// A queue that does not pause has heard of a triplet with the smallest number, and of its
    /// end. Printed, it keeps it, and says it when it pauses.
    #[test]
    fn a_queue_that_does_not_pause_forgets_what_was_resumed() {
        for (printed, said) in [(false, t(1, 50)), (true, t(9, 1))] {
            let printed = Printed { resume: printed, below: true, ..AS_READ };
            let mut queue = Registers::default();
            assert_eq!(queue.peer_paused(t(9, 1), None, (1, 1), empty(), &printed), Heard::default());
            assert_eq!(queue.peer_resumed(t(9, 1), empty(), &printed), Heard::default());
            assert_eq!(queue.send_pause(t(1, 50), empty(), &printed), Word::Pause(said));
        }
    }

    /// The same triplet comes again behind its end. Printed, a register that still has its bits
    /// swallows it where the queue does not pause.
    #[test]
    fn a_probe_counts_though_an_invalid_register_has_its_bits() {
        for (printed, said) in [(false, t(9, 1)), (true, t(1, 50))] {
            let printed = Printed { line_24: printed, below: true, ..AS_READ };
            let mut queue = Registers::default();
            queue.peer_paused(t(9, 1), None, (1, 1), empty(), &printed);
            queue.peer_invalidated(t(9, 1), empty(), &printed);
            queue.peer_paused(t(9, 1), None, (1, 1), empty(), &printed);
            assert_eq!(queue.send_pause(t(1, 50), empty(), &printed), Word::Pause(said));
        }
    }

    /// A triplet is taken back and no other follows. Printed, upstream is left with none.
    #[test]
    fn behind_an_invalidation_comes_the_queues_own_triplet() {
        for (printed, said) in [(false, Some(Word::Pause(t(1, 50)))), (true, None)] {
            let printed = Printed { invalid: printed, ..AS_READ };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 50), empty(), &printed);
            queue.peer_paused(t(9, 1), None, (1, 1), empty(), &printed);
            let heard = queue.peer_invalidated(t(9, 1), empty(), &printed);
            let expected: Vec<Word> = [Some(Word::Invalid(t(9, 1))), said].into_iter().flatten().collect();
            assert_eq!(heard.words().collect::<Vec<_>>(), expected);
            assert_eq!(queue.curr.get(), said.map(|_| t(1, 50)));
        }
    }

    /// A triplet of an earlier pause of the queue itself comes round. Printed, it displaces the
    /// one that holds.
    #[test]
    fn an_outdated_triplet_of_ones_own_dies() {
        for printed in [false, true] {
            let printed = Printed { outdated: printed, ..AS_READ };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 5), empty(), &printed);
            queue.send_resume();
            queue.send_pause(t(1, 50), empty(), &printed);
            let heard = queue.peer_paused(t(1, 5), None, (1, 1), empty(), &printed);
            assert_eq!(
                heard.words().collect::<Vec<_>>(),
                match printed.outdated {
                    false => vec![],
                    true => vec![Word::Pause(t(1, 5))],
                }
            );
        }
    }

    /// It resumes while it still waits for a queue that was told of a better triplet, and pauses
    /// again. Printed, it does not know of that any more.
    #[test]
    fn what_stands_below_is_a_candidate() {
        for (printed, said) in [(false, t(9, 1)), (true, t(1, 60))] {
            let printed = Printed { below: printed, ..AS_READ };
            let mut queue = Registers::default();
            queue.send_pause(t(1, 50), empty(), &printed);
            queue.peer_paused(t(9, 1), None, (1, 1), empty(), &printed);
            assert_eq!(queue.send_resume(), Word::Resume(t(9, 1)));
            let below = [t(9, 1), t(8, 2)];
            assert_eq!(queue.send_pause(t(1, 60), below.into_iter(), &printed), Word::Pause(said));
        }
        // Of two queues that it waits for, one resumes: the triplet of the other one counts.
        let mut queue = Registers::default();
        queue.send_pause(t(1, 50), empty(), &AS_READ);
        queue.peer_paused(t(9, 1), None, (1, 1), empty(), &AS_READ);
        let heard = queue.peer_resumed(t(9, 1), [t(8, 2)].into_iter(), &AS_READ);
        assert_eq!(heard.words().collect::<Vec<_>>(), [Word::Invalid(t(9, 1)), Word::Pause(t(8, 2))]);
    }

    /// Downstream prefers a triplet of this queue itself, from a pause that is over, to the one
    /// that it said before. Nobody vouches for that any more.
    #[test]
    fn what_downstream_says_no_longer_falls() {
        let mut queue = Registers::default();
        queue.send_pause(t(1, 50), empty(), &AS_READ);
        queue.peer_paused(t(9, 7), None, (1, 1), [t(9, 7)].into_iter(), &AS_READ);
        let heard = queue.peer_paused(t(1, 5), Some(t(9, 7)), (1, 1), [t(1, 5)].into_iter(), &AS_READ);
        assert_eq!(heard.words().collect::<Vec<_>>(), [Word::Invalid(t(9, 7)), Word::Pause(t(1, 50))]);
        // It does not pause: nothing is kept.
        let mut idle = Registers::default();
        assert_eq!(idle.peer_paused(t(9, 7), None, (1, 1), empty(), &AS_READ), Heard::default());
        assert_eq!(idle.curr.get(), None);
    }

    /// A probe that loses changes nothing, and nothing is said. Printed, it is answered.
    #[test]
    fn a_probe_that_loses_is_not_answered() {
        for printed in [false, true] {
            let mut queue = Registers::default();
            queue.send_pause(t(1, 5), empty(), &AS_READ);
            let printed = Printed { again: printed, ..AS_READ };
            let heard = queue.peer_paused(t(9, 7), None, (1, 1), empty(), &printed);
            let again = printed.again.then_some(Word::Pause(t(1, 5)));
            assert_eq!(heard.words().next(), again);
        }
    }

    #[test]
    fn equal_numbers_are_told_apart() {
        let mut queue = Registers::default();
        queue.send_pause(t(1, 5), empty(), &AS_READ);
        assert_eq!(
            queue.peer_paused(t(2, 5), None, (1, 1), empty(), &AS_READ).words().next(),
            Some(Word::Pause(t(2, 5)))
        );
        let mut other = Registers::default();
        other.send_pause(t(2, 5), empty(), &AS_READ);
        other.peer_paused(t(1, 5), None, (2, 1), empty(), &AS_READ);
        assert_eq!(other.curr.get(), Some(t(2, 5)));
    }
}
