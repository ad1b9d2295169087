//! The most pairs that any scheduler could serve at once: a maximum matching of senders and
//! receivers, to measure schedulers against.
//!
//! In a pod whose racks have no more hosts than aggregation switches, every matching of hosts
//! has paths that share no link (König: a bipartite multigraph of degree m has an edge
//! colouring with m colours, and a colour is an aggregation switch). With cores it is an upper
//! bound, as a core is reached by one aggregation switch only; with failures, too.

/// How many senders can be matched, by augmenting paths (Kuhn), one for each sender. `receivers` has, for
/// each sender, those that it has something for, below `count`.
pub fn maximum(receivers: &[Vec<u16>], count: usize) -> usize {
    let mut search = Search { receivers, sender_of: vec![None; count], seen: vec![usize::MAX; count] };
    (0..receivers.len()).filter(|&sender| search.augment(sender, sender)).count()
}

struct Search<'a> {
    receivers: &'a [Vec<u16>],
    sender_of: Vec<Option<usize>>,
    /// The search in which a receiver was last looked at.
    seen: Vec<usize>,
}

impl Search<'_> {
    /// Whether a receiver was found for a sender, by moving others if need be.
    fn augment(&mut self, sender: usize, search: usize) -> bool {
        let receivers = &self.receivers[sender];
        if let Some(&free) = receivers.iter().find(|&&r| self.sender_of[usize::from(r)].is_none()) {
            self.sender_of[usize::from(free)] = Some(sender);
            return true;
        }
        for receiver in receivers.iter().map(|&r| usize::from(r)) {
            if std::mem::replace(&mut self.seen[receiver], search) == search {
                continue;
            }
            let other = self.sender_of[receiver].expect("all of them are matched");
            if self.augment(other, search) {
                self.sender_of[receiver] = Some(sender);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every choice for every sender.
    fn by_trying(receivers: &[Vec<u16>], used: u64) -> usize {
        let Some((first, rest)) = receivers.split_first() else { return 0 };
        let with = first.iter().filter(|&&r| used >> r & 1 == 0).map(|r| 1 + by_trying(rest, used | 1 << r));
        with.chain([by_trying(rest, used)]).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn it_equals_the_result_of_brute_force(receivers in prop::collection::vec(prop::collection::vec(0u16..6, 0..4), 0..7)) {
            prop_assert_eq!(maximum(&receivers, 6), by_trying(&receivers, 0));
        }
    }
}
