//! When compacting unasked has stopped helping: after failures in a row, and when the window is full again at once.

/// Failures in a row after which no model is asked unasked.
const MOST_FAILURES: u32 = 3;
/// Compactions in a row, each needed at once after the other, after which nothing is compacted unasked.
const MOST_REFILLS: u32 = 3;
/// So many responses after a compaction, needing the next is no longer "at once".
const AT_ONCE: u32 = 1;

/// What is remembered from one compaction to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactionGuard {
    failures: u32,
    refills: u32,
    /// Responses since the last compaction; `None` before the first.
    responses: Option<u32>,
    has_told: bool,
}

impl CompactionGuard {
    /// Notes a response.
    pub fn on_response(&mut self) {
        if let Some(n) = &mut self.responses {
            *n += 1;
        }
    }

    /// Notes a compaction that worked.
    pub fn succeeded(&mut self) {
        self.refills = if self.is_refill() { self.refills + 1 } else { 0 };
        self.failures = 0;
        self.responses = Some(0);
    }

    /// Notes a compaction that failed.
    pub fn failed(&mut self) {
        self.failures += 1;
    }

    /// Tells whether a model may be asked for a summary unasked.
    pub fn may_ask(&self) -> bool {
        self.failures < MOST_FAILURES
    }

    /// Tells whether compactions are needed again at once, one after the other.
    pub fn is_thrashing(&self) -> bool {
        self.refills >= MOST_REFILLS && self.is_refill()
    }

    /// Tells, once, that compacting has stopped helping.
    pub fn take_news(&mut self) -> bool {
        !std::mem::replace(&mut self.has_told, true)
    }

    fn is_refill(&self) -> bool {
        self.responses.is_some_and(|n| n <= AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression class 1: three failures in a row, and no model is asked any more.
    #[test]
    fn three_failures_open_the_breaker_and_a_success_closes_it() {
        let mut guard = CompactionGuard::default();
        for n in 1..=3 {
            assert!(guard.may_ask(), "{n}");
            guard.failed();
        }
        assert!(!guard.may_ask());
        guard.succeeded();
        assert!(guard.may_ask());
    }

    /// Regression class 2: one huge result after the other fills the window at once.
    #[test]
    fn three_refills_at_once_are_thrashing() {
        let mut guard = CompactionGuard::default();
        for n in 0..4 {
            assert!(!guard.is_thrashing(), "{n}");
            guard.succeeded();
            guard.on_response();
        }
        assert!(guard.is_thrashing());
        assert!(guard.take_news() && !guard.take_news(), "it is told once");
        guard.on_response();
        assert!(!guard.is_thrashing(), "work went on in between");
    }

    #[test]
    fn compactions_far_apart_are_not_thrashing() {
        let mut guard = CompactionGuard::default();
        for _ in 0..20 {
            guard.succeeded();
            guard.on_response();
            guard.on_response();
            assert!(!guard.is_thrashing());
        }
    }
}
