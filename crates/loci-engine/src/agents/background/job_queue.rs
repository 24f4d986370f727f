//! A queue of background work: jobs of one kind, strictly one at a time, of those that wait only the latest.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::latest_job::LatestJob;
use crate::conversation::host::lock;

type Work<T> = dyn Fn(T, CancellationToken) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// How long a job that was called back may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// A queue; dropping it calls back what runs.
pub(crate) struct JobQueue<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    /// What runs and what waits.
    queue: Mutex<LatestJob<T>>,
    is_busy: watch::Sender<bool>,
    /// How many jobs are done.
    n_done: watch::Sender<u64>,
    cancel: CancellationToken,
    work: Box<Work<T>>,
}

impl<T: Send + 'static> JobQueue<T> {
    /// Makes a queue whose jobs are done by `work`.
    pub(crate) fn new<F>(work: impl Fn(T, CancellationToken) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let shared = Shared {
            queue: Mutex::default(),
            is_busy: watch::Sender::new(false),
            n_done: watch::Sender::new(0),
            cancel: CancellationToken::new(),
            work: Box::new(move |job, cancel| Box::pin(work(job, cancel))),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Begins a job, or lets it wait in the place of whatever waited. Returns at once.
    pub(crate) fn submit(&self, job: T) {
        let mut queue = lock(&self.shared.queue);
        if let Some(job) = queue.submit(job) {
            self.shared.is_busy.send_replace(true);
            tokio::spawn(work_off(Arc::clone(&self.shared), job));
        }
    }

    /// Returns what ends with the job that runs; nothing, when none does. What waits behind it is not waited for.
    pub(crate) fn under_way(&self) -> Option<impl Future<Output = ()> + Send + use<T>> {
        let mut n_done = self.shared.n_done.subscribe();
        let before = *n_done.borrow_and_update();
        self.shared.is_busy.borrow().then_some(async move {
            // A queue that is gone has nothing under way.
            drop(n_done.wait_for(|n| *n > before).await);
        })
    }

    /// Tells whether a job runs or waits.
    #[cfg(test)]
    pub(crate) fn is_busy(&self) -> bool {
        *self.shared.is_busy.borrow()
    }

    /// Waits until nothing runs and nothing waits, so long at most; then calls back what runs. Tells whether all of it
    /// was done.
    pub(crate) async fn drain(&self, limit: Duration) -> bool {
        let is_done = tokio::time::timeout(limit, self.idle()).await.is_ok();
        if !is_done {
            lock(&self.shared.queue).clear();
            self.shared.cancel.cancel();
            // What does not end even now dies with the process; its files are whole at any moment.
            drop(tokio::time::timeout(GRACE, self.idle()).await);
        }
        is_done
    }

    async fn idle(&self) {
        let mut is_busy = self.shared.is_busy.subscribe();
        // The sender lives as long as we do.
        drop(is_busy.wait_for(|busy| !busy).await);
    }
}

impl<T> Drop for JobQueue<T> {
    fn drop(&mut self) {
        self.shared.cancel.cancel();
    }
}

async fn work_off<T: Send + 'static>(shared: Arc<Shared<T>>, first: T) {
    let mut next = Some(first);
    while let Some(job) = next {
        // In a task of its own, so that a panic costs one job and not the queue.
        drop(tokio::spawn((shared.work)(job, shared.cancel.clone())).await);
        let mut queue = lock(&shared.queue);
        next = queue.finished();
        if next.is_none() {
            shared.is_busy.send_replace(false);
        }
        // Last, so that nobody waits for a job that has ended already.
        shared.n_done.send_modify(|n| *n += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn jobs_run_one_at_a_time_and_drain_waits_for_the_trailing_one() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let (seen, held) = (Arc::clone(&done), Arc::clone(&gate));
        let queue = JobQueue::new(move |n: u32, _| {
            let (seen, held) = (Arc::clone(&seen), Arc::clone(&held));
            async move {
                held.acquire().await.unwrap().forget();
                seen.lock().unwrap().push(n);
            }
        });
        assert!(!queue.is_busy());
        for n in 1..=4 {
            queue.submit(n);
        }
        assert!(queue.is_busy() && done.lock().unwrap().is_empty());
        gate.add_permits(2);
        queue.drain(Duration::from_secs(60)).await;
        assert_eq!(*done.lock().unwrap(), [1, 4]);
        assert!(!queue.is_busy());
    }

    #[tokio::test]
    async fn drain_is_bounded_and_calls_back_what_runs() {
        let queue = JobQueue::new(|(), cancel: CancellationToken| async move { cancel.cancelled().await });
        queue.submit(());
        queue.submit(());
        queue.drain(Duration::ZERO).await;
        assert!(!queue.is_busy(), "called back, and nothing waits");
    }

    #[tokio::test]
    async fn the_job_that_runs_can_be_waited_for_without_the_next() {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let held = Arc::clone(&gate);
        let queue = JobQueue::new(move |(), _| {
            let held = Arc::clone(&held);
            async move { held.acquire().await.unwrap().forget() }
        });
        assert!(queue.under_way().is_none());
        queue.submit(());
        queue.submit(());
        let under_way = queue.under_way().unwrap();
        gate.add_permits(1);
        under_way.await;
        assert!(queue.is_busy(), "the one that waited runs now");
        gate.add_permits(1);
        queue.drain(Duration::from_secs(60)).await;
        assert!(queue.under_way().is_none());
    }

    #[tokio::test]
    async fn a_panic_costs_one_job() {
        let queue = JobQueue::new(|fails: bool, _| async move { assert!(!fails, "on purpose") });
        queue.submit(true);
        queue.drain(Duration::from_secs(60)).await;
        queue.submit(false);
        queue.drain(Duration::from_secs(60)).await;
        assert!(!queue.is_busy());
    }
}
