//! The listeners of a store: in order of subscription, found and removed in constant time.
//!
//! Entries lie in a vector; a removed one leaves a hole, and the vector is packed once more than half of
//! it is holes, so a removal costs constant time on average and the order never changes.

use std::collections::HashMap;
use std::sync::Arc;

use super::Listener;

/// Identifies a listener by the address of its `Arc`, which is unique while the entry keeps it alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key(usize);

pub(super) struct Listeners<T> {
    entries: Vec<Option<Entry<T>>>,
    index: HashMap<Key, usize>,
}

struct Entry<T> {
    key: Key,
    listener: Listener<T>,
    n_subscriptions: usize,
    /// The store's version at subscription: only later changes are heard.
    since: u64,
}

impl<T> Listeners<T> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), index: HashMap::new() }
    }

    pub(super) fn add(&mut self, listener: Listener<T>, since: u64) -> Key {
        let key = Key(Arc::as_ptr(&listener).cast::<()>().addr());
        match self.entry_mut(key) {
            Some(entry) => entry.n_subscriptions += 1,
            None => {
                self.index.insert(key, self.entries.len());
                self.entries.push(Some(Entry { key, listener, n_subscriptions: 1, since }));
            }
        }
        key
    }

    /// Ends one subscription and gives back the listener if it was the last, to be dropped elsewhere.
    pub(super) fn remove(&mut self, key: Key) -> Option<Listener<T>> {
        let entry = self.entry_mut(key)?;
        entry.n_subscriptions -= 1;
        if entry.n_subscriptions > 0 {
            return None;
        }
        let position = self.index.remove(&key)?;
        let removed = self.entries.get_mut(position)?.take();
        self.pack_if_sparse();
        removed.map(|entry| entry.listener)
    }

    /// Returns the listeners of now, in order.
    pub(super) fn snapshot(&self) -> Vec<(Key, Listener<T>)> {
        self.entries.iter().flatten().map(|entry| (entry.key, Arc::clone(&entry.listener))).collect()
    }

    /// Tells whether the listener is still subscribed and was so before change `version`.
    pub(super) fn is_due(&self, key: Key, version: u64) -> bool {
        let entry = self.index.get(&key).and_then(|position| self.entries.get(*position)?.as_ref());
        entry.is_some_and(|entry| entry.since < version)
    }

    fn entry_mut(&mut self, key: Key) -> Option<&mut Entry<T>> {
        self.entries.get_mut(*self.index.get(&key)?)?.as_mut()
    }

    fn pack_if_sparse(&mut self) {
        if self.entries.len() <= 2 * self.index.len() {
            return;
        }
        self.entries.retain(Option::is_some);
        for (position, entry) in self.entries.iter().flatten().enumerate() {
            self.index.insert(entry.key, position);
        }
    }
}
