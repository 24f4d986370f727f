//! One test for each sentence the store promises.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};

use super::*;

/// A shared list of what happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn push(&self, line: impl Into<String>) {
        lock(&self.0).push(line.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.0))
    }
}

fn listen(store: &Store<i32>, log: &Log, name: &'static str) -> Subscription {
    let log = log.clone();
    store.subscribe(move |value| log.push(format!("{name} {value}")))
}

fn set(store: &Store<i32>, value: i32) -> bool {
    store.update(|_| Arc::new(value))
}

#[test]
fn an_update_replaces_the_value_and_notifies() {
    let (store, log) = (Store::new(1), Log::default());
    let _subscription = listen(&store, &log, "listener");
    assert!(store.update(|previous| Arc::new(**previous + 1)));
    assert_eq!(*store.get(), 2);
    assert_eq!(log.take(), ["listener 2"]);
}

#[test]
fn the_same_pointer_notifies_nobody() {
    let (store, log) = (Store::new(1), Log::default());
    let _subscription = listen(&store, &log, "listener");
    assert!(!store.update(Arc::clone));
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn update_takes_an_equal_value_for_a_change_and_update_eq_does_not() {
    let (store, log) = (Store::new(1), Log::default());
    let _subscription = listen(&store, &log, "listener");
    assert!(set(&store, 1));
    assert_eq!(log.take(), ["listener 1"]);
    let before = store.get();
    assert!(!store.update_eq(|_| Arc::new(1)));
    assert!(!store.update_eq(Arc::clone));
    assert!(Arc::ptr_eq(&before, &store.get()), "an equal value leaves the snapshot in place");
    assert!(store.update_eq(|_| Arc::new(2)));
    assert_eq!(log.take(), ["listener 2"]);
}

#[test]
fn on_change_runs_before_listeners_and_sees_new_and_old() {
    let log = Log::default();
    let store = {
        let log = log.clone();
        Store::with_on_change(1, move |new, old| log.push(format!("on_change {old}->{new}")))
    };
    let _first = listen(&store, &log, "first");
    let _second = listen(&store, &log, "second");
    set(&store, 2);
    assert_eq!(log.take(), ["on_change 1->2", "first 2", "second 2"]);
    assert!(!store.update(Arc::clone));
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn the_same_listener_subscribed_twice_is_notified_once() {
    let (store, log) = (Store::new(0), Log::default());
    let listener: Listener<i32> = {
        let log = log.clone();
        Arc::new(move |value| log.push(format!("shared {value}")))
    };
    let first = store.subscribe_shared(Arc::clone(&listener));
    let second = store.subscribe_shared(listener);
    set(&store, 1);
    assert_eq!(log.take(), ["shared 1"]);
    drop(first);
    set(&store, 2);
    assert_eq!(log.take(), ["shared 2"]);
    drop(second);
    set(&store, 3);
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn dropping_subscriptions_keeps_the_order_of_the_others() {
    let (store, log) = (Store::new(0), Log::default());
    let mut subscriptions: Vec<_> =
        ["a", "b", "c", "d", "e", "f"].map(|name| Some(listen(&store, &log, name))).into();
    for gone in [4, 0, 2, 1] {
        subscriptions[gone] = None;
    }
    subscriptions.push(Some(listen(&store, &log, "g")));
    set(&store, 1);
    assert_eq!(log.take(), ["d 1", "f 1", "g 1"]);
}

#[test]
fn a_dropped_subscription_frees_its_listener() {
    let (store, token) = (Store::new(0), Arc::new(()));
    let subscriptions: Vec<_> = (0..100)
        .map(|_| {
            let token = Arc::clone(&token);
            store.subscribe(move |_| assert_eq!(*token, ()))
        })
        .collect();
    assert_eq!(Arc::strong_count(&token), 101);
    drop(subscriptions);
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn a_subscription_may_outlive_its_store() {
    let (store, log) = (Store::new(0), Log::default());
    let subscription = listen(&store, &log, "listener");
    drop(store);
    drop(subscription);
}

#[test]
fn a_snapshot_is_kept_as_long_as_one_likes() {
    let store = Store::new(1);
    let snapshot = store.get();
    set(&store, 2);
    assert_eq!((*snapshot, *store.get()), (1, 2));
}

#[test]
fn clones_are_handles_to_the_same_value() {
    let store = Store::new(1);
    let handle = store.clone();
    set(&handle, 2);
    assert_eq!(*store.get(), 2);
    assert_eq!(format!("{store:?}"), "Store(2)");
}

#[test]
fn a_listener_may_read_and_update_and_changes_arrive_in_commit_order() {
    let (store, log) = (Store::new(0), Log::default());
    let _doubler = {
        let (handle, log) = (store.clone(), log.clone());
        store.subscribe(move |value| {
            log.push(format!("doubler {value}, current {}", handle.get()));
            if **value == 1 {
                set(&handle, 2);
                set(&handle, 3);
            }
        })
    };
    let _observer = listen(&store, &log, "observer");
    set(&store, 1);
    assert_eq!(
        log.take(),
        [
            "doubler 1, current 1",
            "observer 1",
            "doubler 2, current 3",
            "observer 2",
            "doubler 3, current 3",
            "observer 3"
        ]
    );
}

#[test]
fn on_change_may_update() {
    let (log, handle) = (Log::default(), Arc::new(OnceLock::<Store<i32>>::new()));
    let store = {
        let (log, handle) = (log.clone(), Arc::clone(&handle));
        Store::with_on_change(0, move |new, old| {
            log.push(format!("on_change {old}->{new}"));
            if **new < 3 {
                handle.get().unwrap().update(|previous| Arc::new(**previous + 1));
            }
        })
    };
    handle.set(store.clone()).unwrap();
    let _subscription = listen(&store, &log, "listener");
    set(&store, 1);
    let expected =
        ["on_change 0->1", "listener 1", "on_change 1->2", "listener 2", "on_change 2->3", "listener 3"];
    assert_eq!(log.take(), expected);
}

#[test]
fn a_listener_may_unsubscribe_itself_and_others() {
    let (store, log) = (Store::new(0), Log::default());
    let slots: Arc<Mutex<Vec<Subscription>>> = Arc::default();
    let first = {
        let (slots, log) = (Arc::clone(&slots), log.clone());
        store.subscribe(move |value| {
            log.push(format!("first {value}"));
            let dropped = std::mem::take(&mut *lock(&slots));
            drop(dropped);
        })
    };
    let second = listen(&store, &log, "second");
    lock(&slots).extend([first, second]);
    let _third = listen(&store, &log, "third");
    set(&store, 1);
    assert_eq!(log.take(), ["first 1", "third 1"]);
    set(&store, 2);
    assert_eq!(log.take(), ["third 2"]);
}

#[test]
fn a_listener_subscribed_during_delivery_hears_later_changes_only() {
    let (store, log) = (Store::new(0), Log::default());
    let slot: Arc<Mutex<Option<Subscription>>> = Arc::default();
    let _first = {
        let (store_handle, log, slot) = (store.clone(), log.clone(), Arc::clone(&slot));
        store.subscribe(move |value| {
            if **value == 1 {
                set(&store_handle, 2);
                let late = listen(&store_handle, &log, "late");
                *lock(&slot) = Some(late);
                set(&store_handle, 3);
            }
        })
    };
    set(&store, 1);
    assert_eq!(log.take(), ["late 3"]);
}

#[test]
fn a_listener_that_owns_a_subscription_can_be_dropped() {
    let (store, log) = (Store::new(0), Log::default());
    let inner = listen(&store, &log, "inner");
    let outer = store.subscribe(move |_| assert!(!format!("{inner:?}").is_empty()));
    drop(outer);
    set(&store, 1);
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn a_panicking_callback_harms_nobody_else() {
    let log = Log::default();
    let store = Store::with_on_change(0, |_, _| panic!("on_change fails"));
    let _before = listen(&store, &log, "before");
    let _panics = store.subscribe(|_| panic!("listener fails"));
    let _after = listen(&store, &log, "after");
    assert!(set(&store, 1));
    assert!(set(&store, 2));
    assert_eq!(*store.get(), 2);
    assert_eq!(log.take(), ["before 1", "after 1", "before 2", "after 2"]);
}

#[test]
fn a_panicking_update_changes_nothing() {
    let (store, log) = (Store::new(1), Log::default());
    let _subscription = listen(&store, &log, "listener");
    catch_unwind(AssertUnwindSafe(|| store.update(|_| panic!("update fails")))).unwrap_err();
    assert_eq!(*store.get(), 1);
    set(&store, 2);
    assert_eq!(log.take(), ["listener 2"]);
}

#[test]
fn a_nested_update_fails_instead_of_hanging() {
    let store = Store::new(1);
    let nested = |previous: &Arc<i32>| {
        assert_eq!(*store.get(), 1, "reading is allowed");
        set(&store, 5);
        Arc::clone(previous)
    };
    catch_unwind(AssertUnwindSafe(|| store.update(nested))).unwrap_err();
    assert!(set(&store, 2));
}

#[test]
fn many_threads_lose_no_update_and_listeners_see_each_in_order() {
    const THREADS: usize = 8;
    const UPDATES: usize = 200;
    let store = Store::new(0_usize);
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let _subscription = {
        let seen = Arc::clone(&seen);
        store.subscribe(move |value| lock(&seen).push(**value))
    };
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..UPDATES {
                    store.update(|previous| Arc::new(**previous + 1));
                }
            });
        }
    });
    assert_eq!(*store.get(), THREADS * UPDATES);
    assert_eq!(*lock(&seen), (1..=THREADS * UPDATES).collect::<Vec<_>>());
}

#[test]
fn readers_never_see_a_half_made_update() {
    let store = Store::new((0_usize, 0_usize));
    let (is_done, n_reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    let pair = store.get();
                    assert_eq!(pair.0, pair.1);
                    n_reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for value in 0..1000 {
            store.update(|_| Arc::new((value, value)));
        }
        is_done.store(true, Ordering::Relaxed);
    });
    assert_eq!(*store.get(), (999, 999));
}

#[test]
fn threads_may_subscribe_and_unsubscribe_during_updates() {
    let store = Store::new(0_usize);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let subscription = store.subscribe(|value| assert!(**value > 0));
                    store.update(|previous| Arc::new(**previous + 1));
                    drop(subscription);
                }
            });
        }
    });
    assert_eq!(*store.get(), 800);
    assert_eq!(store.shared.state().listeners.snapshot().len(), 0);
}
