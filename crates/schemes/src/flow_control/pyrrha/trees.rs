//! The upstream members of each congestion tree, device by device.

use std::collections::BTreeMap;

/// A device, a lane and a root.
pub type Key = (u32, u8, u32);

/// A neighbour upstream that has received a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Child {
    ingress: u32,
    /// Queues of the device that want it stopped; while there are any, it has been.
    holders: u16,
    /// How many frames have stopped it for this root, modulo 2^16.
    sequence: u16,
    /// It has said that it has nothing assigned to the root.
    released: bool,
}

/// The trees that devices are part of, but not leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trees(BTreeMap<Key, Vec<Child>>);

impl Trees {
    fn child(&mut self, key: Key, ingress: u32) -> Option<&mut Child> {
        self.0.get_mut(&key)?.iter_mut().find(|c| c.ingress == ingress)
    }

    /// One more queue needs `ingress` paused. Returns the number of the PAUSE to send, if none was sent since
    /// the neighbour last said that it holds no packets for the root.
    pub fn hold(&mut self, key: Key, ingress: u32) -> Option<u16> {
        let children = self.0.entry(key).or_default();
        let at = children.iter().position(|c| c.ingress == ingress).unwrap_or_else(|| {
            children.push(Child { ingress, holders: 0, sequence: 0, released: true });
            children.len() - 1
        });
        let child = &mut children[at];
        child.holders += 1;
        (child.holders == 1 || child.released).then(|| {
            child.sequence = child.sequence.wrapping_add(1);
            child.released = false;
            child.sequence
        })
    }

    /// A MERGE enters the root at `ingress` and pauses nobody. Returns the number of the frame.
    pub fn adopt(&mut self, key: Key, ingress: u32) -> u16 {
        let children = self.0.entry(key).or_default();
        let at = children.iter().position(|c| c.ingress == ingress).unwrap_or_else(|| {
            children.push(Child { ingress, holders: 0, sequence: 0, released: true });
            children.len() - 1
        });
        let child = &mut children[at];
        child.sequence = child.sequence.wrapping_add(1);
        child.released = false;
        child.sequence
    }

    /// One queue less needs `ingress` paused. Returns the last number, if a RESUME is due.
    pub fn let_go(&mut self, key: Key, ingress: u32) -> Option<u16> {
        let (sequence, released) = self.forget(key, ingress)?;
        (!released).then_some(sequence)
    }

    /// The same without a frame. Returns the neighbour's state if no queue is left that needs it paused.
    pub fn forget(&mut self, key: Key, ingress: u32) -> Option<(u16, bool)> {
        let child = self.child(key, ingress)?;
        child.holders -= 1;
        let (sequence, released) = (child.sequence, child.released);
        if child.holders > 0 {
            return None;
        }
        if released {
            self.remove(key, ingress);
        }
        Some((sequence, released))
    }

    fn remove(&mut self, key: Key, ingress: u32) {
        if let Some(children) = self.0.get_mut(&key) {
            children.retain(|c| c.ingress != ingress);
            if children.is_empty() {
                self.0.remove(&key);
            }
        }
    }

    /// Whether anybody upstream of those that `count` has something assigned to the root.
    pub fn any(&self, key: Key, count: impl Fn(u32) -> bool) -> bool {
        self.0.get(&key).is_some_and(|children| children.iter().any(|c| !c.released && count(c.ingress)))
    }

    /// Whether some queue wants `ingress` stopped.
    pub fn is_held(&self, key: Key, ingress: u32) -> bool {
        self.0.get(&key).into_iter().flatten().any(|c| c.ingress == ingress && c.holders > 0)
    }

    pub fn assigned(&self, key: Key) -> Vec<u32> {
        let children = self.0.get(&key).into_iter().flatten();
        children.filter(|c| !c.released).map(|c| c.ingress).collect()
    }

    /// `ingress` had received frame `sequence` when it had no queue any more. Returns whether that is new.
    pub fn released(&mut self, key: Key, ingress: u32, sequence: u16) -> bool {
        let Some(child) = self.child(key, ingress) else { return false };
        if child.sequence != sequence || child.released {
            return false;
        }
        child.released = true;
        if child.holders == 0 {
            self.remove(key, ingress);
        }
        true
    }

    /// The neighbour at `ingress` is gone. Returns the roots that it had received.
    pub fn remove_child(&mut self, device: u32, lane: u8, ingress: u32) -> Vec<u32> {
        let range = (device, lane, 0)..=(device, lane, u32::MAX);
        let has_child = |(_, children): &(&Key, &Vec<Child>)| children.iter().any(|c| c.ingress == ingress);
        let keys: Vec<Key> = self.0.range(range).filter(has_child).map(|(&key, _)| key).collect();
        for &key in &keys {
            self.remove(key, ingress);
        }
        keys.into_iter().map(|key| key.2).collect()
    }
}
