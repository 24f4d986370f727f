//! One at a time, and of those that wait only the latest.

/// A place for one job that runs and one that waits.
#[derive(Debug)]
pub(super) struct LatestJob<T> {
    is_running: bool,
    waiting: Option<T>,
}

impl<T> Default for LatestJob<T> {
    fn default() -> Self {
        Self { is_running: false, waiting: None }
    }
}

impl<T> LatestJob<T> {
    /// Returns the job when it may run at once; otherwise it waits, in the place of whatever waited.
    pub(super) fn submit(&mut self, job: T) -> Option<T> {
        if self.is_running {
            self.waiting = Some(job);
            return None;
        }
        self.is_running = true;
        Some(job)
    }

    /// Takes note that the job is done; returns the one that runs next.
    pub(super) fn finished(&mut self) -> Option<T> {
        let next = self.waiting.take();
        self.is_running = next.is_some();
        next
    }

    /// Forgets what waits.
    pub(super) fn clear(&mut self) {
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant 2 of `docs/design/memory.md`.
    #[test]
    fn one_runs_one_waits_and_the_latest_wins() {
        let mut queue = LatestJob::default();
        assert_eq!(queue.submit(1), Some(1));
        assert_eq!(queue.submit(2), None);
        assert_eq!(queue.submit(3), None, "in the place of 2");
        assert_eq!(queue.finished(), Some(3), "one trailing run");
        assert_eq!(queue.submit(4), None, "3 is running");
        queue.clear();
        assert_eq!(queue.finished(), None);
        assert_eq!(queue.submit(5), Some(5), "idle again");
    }
}
