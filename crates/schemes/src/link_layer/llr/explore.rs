//! Every order of events on a link with LLR, with up to two losses at every place: data frames, retransmitted
//! frames, ACKs, NACKs, INITs and ECHOs.

use super::frame::Word;
use super::*;
use std::collections::HashMap;

/// A link: both ends, and what is under way, the first of each at the front.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Link {
    tx: Transmitter,
    rx: Receiver,
    /// Number, and which frame of the client it is.
    data: VecDeque<(u32, u8)>,
    words: VecDeque<Word>,
    /// The frames in the replay buffer.
    kept: VecDeque<u8>,
    /// Frames of the client so far.
    sent: u8,
    /// The frames that went on.
    delivered: Vec<u8>,
    /// INIT under way; a word of the other direction.
    init: Option<u32>,
    losses: u8,
    early_timeouts: u8,
    flushed: bool,
}

struct Explorer {
    frames: u8,
    limits: Limits,
    /// States that are done, and those on the present path.
    seen: HashMap<Link, bool>,
    ends: usize,
    flushes: usize,
}

impl Explorer {
    fn new(frames: u8, replays: Option<u8>) -> Self {
        let limits = Limits {
            bytes: 300,
            frames: 10,
            largest: 100,
            timer: 1,
            replays,
            spacing: 0,
            processing: 0,
            headroom: 0,
        };
        Self { frames, limits, seen: HashMap::new(), ends: 0, flushes: 0 }
    }

    fn explore(&mut self, losses: u8, early_timeouts: u8) {
        let start = Link {
            tx: Transmitter::default(),
            rx: Receiver::default(),
            data: VecDeque::new(),
            words: VecDeque::new(),
            kept: VecDeque::new(),
            sent: 0,
            delivered: Vec::new(),
            init: None,
            losses,
            early_timeouts,
            flushed: false,
        };
        self.visit(start);
    }

    /// Visits a state and all after it. A state on its own path would be a run that never ends.
    fn visit(&mut self, link: Link) {
        match self.seen.get(&link) {
            Some(true) => return,
            Some(false) => panic!("a run that never ends: {link:?}"),
            None => {}
        }
        self.seen.insert(link.clone(), false);
        let in_order = link.delivered.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(in_order, "in order, and no frame twice: {link:?}");
        if !link.flushed {
            let next = link.delivered.iter().copied().eq(0..link.delivered.len() as u8);
            assert!(next, "no frame is left out: {link:?}");
        }
        let after = self.after(&link);
        if after.is_empty() {
            assert!(!link.tx.is_busy() && !link.rx.owes(), "it stops with work left: {link:?}");
            assert_eq!(link.sent, self.frames, "it stops before all is sent: {link:?}");
            assert!(link.flushed || link.delivered.len() == usize::from(self.frames), "{link:?}");
            self.ends += 1;
            self.flushes += usize::from(link.flushed);
        }
        after.into_iter().for_each(|next| self.visit(next));
        self.seen.insert(link, true);
    }

    /// Every next state.
    fn after(&self, link: &Link) -> Vec<Link> {
        let mut all = Vec::new();
        let mut step = |change: &dyn Fn(&mut Link)| {
            let mut next = link.clone();
            change(&mut next);
            all.push(next);
        };
        // A port sends what is to be repeated before new frames.
        if link.tx.replays() {
            step(&|l| {
                if let Some((at, number, _)) = l.tx.replay() {
                    l.data.push_back((number, l.kept[at]));
                }
            });
        } else if link.sent < self.frames && link.tx.may_send(&self.limits) {
            step(&|l| {
                let number = l.tx.send(100);
                l.kept.push_back(l.sent);
                l.data.push_back((number, l.sent));
                l.sent += 1;
            });
        }
        if link.rx.owes() {
            step(&|l| l.words.extend(l.rx.word()));
        }
        if let Some(&(number, frame)) = link.data.front() {
            let mut arrives = |good: bool| {
                step(&|l| {
                    l.data.pop_front();
                    l.losses -= u8::from(!good);
                    if l.rx.on_frame(number, good) == Verdict::Accept {
                        l.delivered.push(frame);
                    }
                });
            };
            arrives(true);
            if link.losses > 0 {
                arrives(false);
                step(&|l| {
                    l.data.pop_front();
                    l.losses -= 1;
                });
            }
        }
        if let Some(&word) = link.words.front() {
            step(&|l| {
                l.words.pop_front();
                let done = match word {
                    Word::Ack(number) => l.tx.on_ack(number),
                    Word::Nack(number) => l.tx.on_nack(number),
                    Word::Echo(number) => {
                        l.tx.on_echo(number);
                        0
                    }
                    Word::Init(_) => unreachable!("a receiver does not send it"),
                };
                l.kept.drain(..done);
            });
            if link.losses > 0 {
                step(&|l| {
                    l.words.pop_front();
                    l.losses -= 1;
                });
            }
        }
        // INIT follows all frames before it.
        if let Some(number) = link.init
            && link.data.is_empty()
        {
            step(&|l| {
                l.init = None;
                l.rx.on_init(number);
            });
            if link.losses > 0 {
                step(&|l| {
                    l.init = None;
                    l.losses -= 1;
                });
            }
        }
        // The timer is longer than a round trip, so it expires when nothing is under way; early timers are counted.
        let quiet = link.data.is_empty() && link.words.is_empty() && link.init.is_none() && !link.rx.owes();
        if link.tx.is_busy() && !link.tx.replays() && (quiet || link.early_timeouts > 0) {
            step(&|l| {
                l.early_timeouts -= u8::from(!quiet);
                match l.tx.on_timeout(&self.limits) {
                    Timeout::Flush(given_up) => {
                        l.flushed = true;
                        l.kept.drain(..given_up as usize);
                        l.init = l.tx.asks().map(|_| l.sent.into());
                    }
                    Timeout::Init => l.init = l.tx.asks().map(|_| l.sent.into()),
                    Timeout::Replay | Timeout::Idle => {}
                }
            });
        }
        all
    }
}

/// Eight frames through a buffer of three, two losses anywhere: each frame goes on once, in order, and the link
/// comes to rest with empty buffers.
#[test]
fn two_losses_anywhere_lose_nothing() {
    let mut explorer = Explorer::new(8, None);
    explorer.explore(2, 0);
    assert!(explorer.seen.len() > 4_000, "{}", explorer.seen.len());
    assert!(explorer.ends > 0 && explorer.flushes == 0);
}

/// The same if the timer also expires early, which sends frames again that had arrived.
#[test]
fn early_timers_lose_nothing() {
    let mut explorer = Explorer::new(5, None);
    explorer.explore(2, 1);
    assert!(explorer.seen.len() > 10_000, "{}", explorer.seen.len());
    assert!(explorer.ends > 0 && explorer.flushes == 0);
}

/// With one replay at most two losses can exhaust the link: then it begins anew, and frames still go on in order, and
/// once.
#[test]
fn a_link_begins_anew_after_its_last_replay() {
    let mut explorer = Explorer::new(4, Some(0));
    explorer.explore(2, 0);
    assert!(explorer.flushes > 0, "of {} states", explorer.seen.len());
    assert!(explorer.ends > explorer.flushes);
}
