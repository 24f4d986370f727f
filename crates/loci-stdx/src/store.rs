//! A reactive store: one immutable value, replaced as a whole, and whoever wants to hear of it.
//!
//! Readers take a snapshot (`Arc<T>`) and keep it as long as they like. An update is a function from the
//! previous snapshot to the next. After a real change `on_change` runs first, then the listeners in the
//! order they subscribed.
//!
//! What must stay true:
//!
//! 1. Updates run one at a time, each on the result of the one before: none is lost.
//! 2. Changes are delivered in the order they were committed, one at a time. Whoever commits while
//!    another delivery is under way (a listener that updates, another thread) leaves its change in the
//!    queue, and the delivery under way takes it along before it ends.
//! 3. No lock is held while foreign code runs, except the one that serialises updates while an update
//!    function runs. Callbacks may therefore read, update, subscribe and unsubscribe.
//! 4. A listener hears only of changes committed after it subscribed, and of none once it unsubscribed.
//! 5. A callback that panics is reported by the panic hook and otherwise ignored: the innocent updater,
//!    the other listeners and the store go on.

mod listeners;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, ThreadId};

use listeners::Listeners;

/// A callback that is given the new value; the same `Arc` is the same listener.
pub type Listener<T> = Arc<dyn Fn(&Arc<T>) + Send + Sync>;

type OnChange<T> = Box<dyn Fn(&Arc<T>, &Arc<T>) + Send + Sync>;

/// A shared value with subscribers. Clones are handles to the same value.
pub struct Store<T> {
    shared: Arc<Shared<T>>,
}

impl<T: Send + Sync + 'static> Store<T> {
    /// Returns a store that holds `initial`.
    pub fn new(initial: T) -> Self {
        Self::build(initial, None)
    }

    /// Returns a store that calls `on_change(new, old)` for each change, before any listener.
    pub fn with_on_change(initial: T, on_change: impl Fn(&Arc<T>, &Arc<T>) + Send + Sync + 'static) -> Self {
        Self::build(initial, Some(Box::new(on_change)))
    }

    fn build(initial: T, on_change: Option<OnChange<T>>) -> Self {
        let state = State {
            current: Arc::new(initial),
            version: 0,
            queue: VecDeque::new(),
            is_delivering: false,
            listeners: Listeners::new(),
        };
        let shared = Shared {
            on_change,
            updating: Mutex::new(()),
            updater: Mutex::new(None),
            state: Mutex::new(state),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Returns the current value.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.shared.state().current)
    }

    /// Replaces the value by what `next` makes of it, and tells whether that is a different `Arc`.
    ///
    /// When this returns, everyone was notified, unless a delivery was already under way: then that one
    /// takes this change along.
    ///
    /// # Panics
    ///
    /// If `next` itself updates this store, which would lose one of the two updates. It may read it.
    pub fn update(&self, next: impl FnOnce(&Arc<T>) -> Arc<T>) -> bool {
        self.shared.update(next, Arc::ptr_eq)
    }

    /// Does as [`Store::update`], but takes an equal value for the same: nobody is notified of it.
    pub fn update_eq(&self, next: impl FnOnce(&Arc<T>) -> Arc<T>) -> bool
    where
        T: PartialEq,
    {
        self.shared.update(next, |new, old| Arc::ptr_eq(new, old) || new == old)
    }

    /// Calls `listener` with the new value after each change, until the subscription is dropped.
    pub fn subscribe(&self, listener: impl Fn(&Arc<T>) + Send + Sync + 'static) -> Subscription {
        self.subscribe_shared(Arc::new(listener))
    }

    /// Does as [`Store::subscribe`]; the same `Arc` subscribed again is still called once a change, until
    /// the last of its subscriptions is dropped.
    pub fn subscribe_shared(&self, listener: Listener<T>) -> Subscription {
        let mut state = self.shared.state();
        let version = state.version;
        let key = state.listeners.add(listener, version);
        drop(state);
        let shared: Weak<Shared<T>> = Arc::downgrade(&self.shared);
        Subscription { registry: shared, key }
    }
}

impl<T> Clone for Store<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T: fmt::Debug> fmt::Debug for Store<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = Arc::clone(&self.shared.state().current);
        f.debug_tuple("Store").field(&current).finish()
    }
}

/// Keeps a listener subscribed; dropping it unsubscribes, in constant time.
///
/// A call that is running in another thread at that moment is not waited for.
#[must_use = "dropping a subscription unsubscribes the listener"]
pub struct Subscription {
    registry: Weak<dyn Registry>,
    key: listeners::Key,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(registry) = self.registry.upgrade() {
            registry.unsubscribe(self.key);
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// What a [`Subscription`] needs of a store, whatever the store holds.
trait Registry: Send + Sync {
    fn unsubscribe(&self, key: listeners::Key);
}

struct Shared<T> {
    on_change: Option<OnChange<T>>,
    /// Held while an update function runs and its result is committed (invariant 1).
    updating: Mutex<()>,
    /// Which thread holds `updating`, so that a nested update fails instead of hanging.
    updater: Mutex<Option<ThreadId>>,
    /// Guards the value, the queue and the listeners; never held while foreign code runs.
    state: Mutex<State<T>>,
}

struct State<T> {
    current: Arc<T>,
    /// Counts commits, to tell changes before a subscription from those after it.
    version: u64,
    queue: VecDeque<Change<T>>,
    is_delivering: bool,
    listeners: Listeners<T>,
}

struct Change<T> {
    new: Arc<T>,
    old: Arc<T>,
    version: u64,
}

impl<T> Shared<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        lock(&self.state)
    }

    fn update(
        &self,
        next: impl FnOnce(&Arc<T>) -> Arc<T>,
        is_same: impl FnOnce(&Arc<T>, &Arc<T>) -> bool,
    ) -> bool {
        let turn = self.take_turn();
        let old = Arc::clone(&self.state().current);
        let new = next(&old);
        if is_same(&new, &old) {
            return false;
        }
        self.state().commit(new, old);
        drop(turn);
        self.deliver_queued();
        true
    }

    fn take_turn(&self) -> Turn<'_> {
        let me = thread::current().id();
        assert!(*lock(&self.updater) != Some(me), "an update function must not update its own store");
        let updating = lock(&self.updating);
        *lock(&self.updater) = Some(me);
        Turn { updater: &self.updater, _updating: updating }
    }

    fn deliver_queued(&self) {
        let mut is_mine = false;
        loop {
            // A statement of its own: in the head of a `while let` the lock would outlive the delivery.
            let change = self.state().next_to_deliver(&mut is_mine);
            let Some(change) = change else { return };
            self.deliver(change);
        }
    }

    /// Tells everyone of one change; nothing of it, not even a drop, may unwind and stop the delivery.
    fn deliver(&self, change: Change<T>) {
        shielded(|| {
            if let Some(on_change) = &self.on_change {
                shielded(|| on_change(&change.new, &change.old));
            }
            let listeners = self.state().listeners.snapshot();
            for (key, listener) in listeners {
                let is_due = self.state().listeners.is_due(key, change.version);
                if is_due {
                    shielded(|| listener(&change.new));
                }
            }
            drop(change);
        });
    }
}

impl<T: Send + Sync> Registry for Shared<T> {
    fn unsubscribe(&self, key: listeners::Key) {
        let removed = self.state().listeners.remove(key);
        // The listener may own things whose drop comes back here, so it goes after the lock.
        drop(removed);
    }
}

impl<T> State<T> {
    fn commit(&mut self, new: Arc<T>, old: Arc<T>) {
        self.version += 1;
        self.current = Arc::clone(&new);
        self.queue.push_back(Change { new, old, version: self.version });
    }

    /// Takes the next change if the caller is the one who delivers, or can become it.
    fn next_to_deliver(&mut self, is_mine: &mut bool) -> Option<Change<T>> {
        if self.is_delivering && !*is_mine {
            return None;
        }
        let change = self.queue.pop_front();
        *is_mine = change.is_some();
        self.is_delivering = *is_mine;
        change
    }
}

/// The right to update, given back on drop.
struct Turn<'a> {
    updater: &'a Mutex<Option<ThreadId>>,
    _updating: MutexGuard<'a, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(self.updater) = None;
    }
}

/// Locks without regard to poison: what our locks guard is whole between any two statements.
fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs foreign code; a panic has been reported by the panic hook and ends here (invariant 5).
fn shielded(callback: impl FnOnce()) {
    catch_unwind(AssertUnwindSafe(callback)).unwrap_or_default();
}
