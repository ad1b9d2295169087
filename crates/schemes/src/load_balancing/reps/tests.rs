use super::*;

const PARAMS: RepsParams = RepsParams { labels: 100, ring: 3, freezing: Some(50), explore: 2 };

/// A flow whose random labels are 90, 91, …
struct Flow {
    sender: Reps,
    drawn: u64,
}

impl Flow {
    fn new() -> Self {
        Self { sender: Reps::default(), drawn: 0 }
    }

    fn send(&mut self) -> u32 {
        let Self { sender, drawn } = self;
        PARAMS.next(sender, |below| {
            assert_eq!(below, 100);
            *drawn += 1;
            89 + *drawn
        })
    }

    fn sends(&mut self, packets: usize) -> Vec<u32> {
        (0..packets).map(|_| self.send()).collect()
    }

    fn ack(&mut self, now: Time, number: u16, congested: bool) {
        let label = Some(Label { number, congested });
        let ack = Ack { now, newly_acknowledged: 1, marked: 0, label, acknowledged: 1, sent: 9 };
        assert_eq!(PARAMS.on_ack(&mut self.sender, &ack, |_| unreachable!("no draw")), None);
    }

    fn timeout(&mut self, now: Time) {
        assert_eq!(PARAMS.on_timeout(&mut self.sender, now, |_| unreachable!("no draw")), None);
    }
}

#[test]
fn labels_that_came_unmarked_are_used_once_more_the_oldest_first() {
    let mut flow = Flow::new();
    assert_eq!(flow.sends(2), [90, 91]);
    flow.ack(1, 90, false);
    flow.ack(2, 91, true);
    flow.ack(3, 7, false);
    assert_eq!(flow.sends(3), [90, 7, 92]);
    assert_eq!((flow.sender.counts.recycled, flow.sender.counts.random), (2, 3));
}

#[test]
fn a_full_ring_forgets_its_oldest_label() {
    let mut flow = Flow::new();
    (1..=5).for_each(|label| flow.ack(0, label, false));
    assert_eq!(flow.sends(4), [3, 4, 5, 90]);
    // Used labels leave their places to new ones.
    (6..=7).for_each(|label| flow.ack(0, label, false));
    assert_eq!(flow.send(), 6);
    (8..=9).for_each(|label| flow.ack(0, label, false));
    assert_eq!(flow.sends(4), [7, 8, 9, 91]);
}

#[test]
fn a_frozen_flow_uses_only_labels_that_it_knows() {
    let mut flow = Flow::new();
    (1..=2).for_each(|label| flow.ack(0, label, false));
    assert_eq!(flow.send(), 1);
    flow.timeout(10);
    assert_eq!(flow.sends(5), [1, 2, 1, 2, 1]);
    // A second timeout does not prolong it; new labels join.
    flow.timeout(40);
    flow.ack(60, 3, false);
    assert_eq!(flow.sends(3), [2, 3, 1]);
    // Later than 10 + 50 it thaws: the ring is empty but for this label, after two random ones.
    flow.ack(61, 4, false);
    flow.timeout(62);
    assert_eq!(flow.sends(4), [90, 91, 4, 92], "no freezing while it explores");
    assert_eq!((flow.sender.counts.freezes, flow.sender.counts.frozen), (1, 8));
}

#[test]
fn a_flow_without_any_label_draws_even_if_it_is_frozen() {
    let mut flow = Flow::new();
    flow.timeout(10);
    assert_eq!(flow.sends(2), [90, 91]);
    flow.ack(11, 90, false);
    assert_eq!(flow.sends(3), [90, 90, 90]);
}
