//! Doing the same with many things on a few threads.
//!
//! Written by hand, although `rayon` exists: scoped threads of std do, and end with the
//! search that wanted them; a pool of threads would stay.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// Calls `each` with every number below `n_items`, on at most `most_threads` threads, and returns what came of them in
/// that order. The caller's thread is one of them, so few things cost no thread at all.
pub fn in_parallel<T: Send>(n_items: usize, most_threads: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    in_parallel_with(n_items, most_threads, || (), |(), idx| each(idx))
}

/// Does the same, and hands each thread what it made for itself once: room, say, that need not be made for every number.
pub fn in_parallel_with<S, T: Send>(
    n_items: usize,
    most_threads: usize,
    make: impl Fn() -> S + Sync,
    each: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let n_wanted = most_threads.min(n_items);
    let n_threads = if n_wanted > 1 { n_cores().min(n_wanted) } else { n_wanted };
    if n_threads <= 1 {
        let mut own = make();
        return (0..n_items).map(|idx| each(&mut own, idx)).collect();
    }
    let next = AtomicUsize::new(0);
    // Guards what the threads hand in, each once at its end.
    let done = Mutex::new(Vec::with_capacity(n_items));
    let work = || {
        let (mut own, mut mine) = (make(), Vec::new());
        loop {
            let idx = next.fetch_add(1, Ordering::Relaxed);
            if idx >= n_items {
                break;
            }
            mine.push((idx, each(&mut own, idx)));
        }
        done.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
    };
    thread::scope(|scope| {
        for _ in 1..n_threads {
            // Without another thread this one does all the work.
            drop(thread::Builder::new().spawn_scoped(scope, work));
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(idx, _)| *idx);
    done.into_iter().map(|(_, value)| value).collect()
}

/// Returns how many threads can run at once. That is looked up in files, so only where it matters, and once.
fn n_cores() -> usize {
    static N_CORES: OnceLock<usize> = OnceLock::new();
    *N_CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_of_a_thread_is_used_again() {
        let n_made = AtomicUsize::new(0);
        let make = || n_made.fetch_add(1, Ordering::Relaxed);
        let made = in_parallel_with(1_000, 3, make, |own, _| *own);
        let n_made = n_made.into_inner();
        assert!((1..=3).contains(&n_made) && made.iter().all(|own| *own < n_made), "{n_made}");
    }

    #[test]
    fn in_parallel_returns_results_in_order() {
        for (n_items, most_threads) in [(0, 4), (1, 4), (1_000, 1), (1_000, 4), (3, 64)] {
            let squares = in_parallel(n_items, most_threads, |n| n * n);
            assert_eq!(squares, (0..n_items).map(|n| n * n).collect::<Vec<_>>());
        }
    }
}
