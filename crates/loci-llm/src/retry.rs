//! How often and how long to wait before asking again. Policy only: the engine does the waiting.

use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_stdx::Env;

use crate::config::parse_number;

const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(32);
/// A server may ask for more than we would wait by ourselves, but not for an idle afternoon.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(10 * 60);
/// What a run that nobody watches waits for at a server's wish.
const LONGEST_UNWATCHED_WAIT: Duration = Duration::from_secs(2 * 60);
const JITTER: f64 = 0.25;

const DEFAULT_RETRIES: u32 = 10;
const MOST_RETRIES: u32 = 15;
/// How often a watchful run retries trouble other than throttling.
const WATCHFUL_RETRIES: u32 = 300;

/// How many times a failed request may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions after the first attempt.
    pub max_retries: u32,
    /// Whether throttling is waited out for ever, for unattended runs (`CLAUDE_CODE_RETRY_WATCHDOG`).
    pub is_watchful: bool,
    /// The longest wait that a server may ask for; a longer one ends the run. Nothing, where somebody watches and may
    /// interrupt.
    pub longest_wait: Option<Duration>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_retries: DEFAULT_RETRIES, is_watchful: false, longest_wait: None }
    }
}

impl RetryPolicy {
    /// Reads `CLAUDE_CODE_MAX_RETRIES` (10 unless set, never more than 15) and `CLAUDE_CODE_RETRY_WATCHDOG`.
    pub fn from_env(env: &Env) -> Result<Self, Failure> {
        let max_retries = parse_number(&env.vars, "CLAUDE_CODE_MAX_RETRIES")?
            .map_or(DEFAULT_RETRIES, |n| u32::try_from(n).unwrap_or(MOST_RETRIES).min(MOST_RETRIES));
        let is_watchful = env.vars.is_truthy("CLAUDE_CODE_RETRY_WATCHDOG");
        Ok(Self { max_retries, is_watchful, longest_wait: None })
    }

    /// Returns the policy of a run whose answer a program or a script waits for: it hears of a long wait instead.
    pub fn unwatched(self) -> Self {
        Self { longest_wait: Some(LONGEST_UNWATCHED_WAIT), ..self }
    }

    /// Tells whether retry number `attempt` (the first is 1) may follow `failure`.
    pub fn allows(&self, failure: &Failure, attempt: u32) -> bool {
        // A server on this machine may be started again, if somebody sees to it.
        let may_pass = failure.is_retryable() || self.is_watchful && failure.kind == FailureKind::NoListener;
        may_pass
            && !self.is_asked_too_much(failure)
            && self.limit(failure.kind).is_none_or(|limit| attempt <= limit)
    }

    fn is_asked_too_much(&self, failure: &Failure) -> bool {
        let longest = self.longest_wait.filter(|_| !self.is_watchful);
        longest.zip(failure.retry_after).is_some_and(|(longest, asked)| asked > longest)
    }

    fn limit(&self, kind: FailureKind) -> Option<u32> {
        match (self.is_watchful, kind) {
            (true, FailureKind::RateLimited | FailureKind::Overloaded) => None,
            (true, _) => Some(WATCHFUL_RETRIES.max(self.max_retries)),
            (false, _) => Some(self.max_retries),
        }
    }
}

/// Returns how long to wait before retry number `attempt` (the first is 1).
///
/// A server's wish above zero is honoured up to ten minutes; without one the wait doubles from half a second
/// to 32 seconds and grows by up to a quarter with `jitter_unit`, a random number from 0 to 1.
pub fn delay(attempt: u32, retry_after: Option<Duration>, jitter_unit: f64) -> Duration {
    if let Some(asked) = retry_after.filter(|asked| !asked.is_zero()) {
        return asked.min(LONGEST_RETRY_AFTER);
    }
    let doublings = attempt.saturating_sub(1).min(16);
    let base = FIRST_DELAY.saturating_mul(1 << doublings).min(LONGEST_DELAY);
    base.mul_f64(1.0 + JITTER * jitter_unit.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_cap_and_jitter_adds_a_quarter() {
        for (attempt, retry_after, jitter, expected_ms) in [
            (1, None, 0.0, 500),
            (2, None, 0.0, 1_000),
            (3, None, 0.0, 2_000),
            (7, None, 0.0, 32_000),
            (10, None, 0.0, 32_000),
            (u32::MAX, None, 0.0, 32_000),
            (0, None, 0.0, 500),
            (1, None, 1.0, 625),
            (1, None, 7.0, 625),
            (10, None, 0.5, 36_000),
            (1, Some(0), 0.0, 500),
            (1, Some(3_000), 1.0, 3_000),
            (9, Some(1_000), 1.0, 1_000),
            (1, Some(86_400_000), 0.0, 600_000),
        ] {
            let wait = delay(attempt, retry_after.map(Duration::from_millis), jitter);
            assert_eq!(wait.as_millis(), expected_ms, "attempt {attempt}, retry-after {retry_after:?}");
        }
    }

    fn check_policy(vars: &[(&str, &str)], kind: FailureKind, attempt: u32, expected: bool) {
        let mut env = Env::for_test("/home", "/code");
        env.vars = vars.iter().copied().collect();
        let policy = RetryPolicy::from_env(&env).unwrap();
        assert_eq!(policy.allows(&Failure::new(kind, "x"), attempt), expected, "{vars:?} {kind:?} {attempt}");
    }

    #[test]
    fn the_limit_comes_from_the_environment() {
        check_policy(&[], FailureKind::Overloaded, 10, true);
        check_policy(&[], FailureKind::Overloaded, 11, false);
        check_policy(&[], FailureKind::Unauthenticated, 1, false);
        check_policy(&[("CLAUDE_CODE_MAX_RETRIES", "0")], FailureKind::Server, 1, false);
        check_policy(&[("CLAUDE_CODE_MAX_RETRIES", "2")], FailureKind::Server, 2, true);
        check_policy(&[("CLAUDE_CODE_MAX_RETRIES", "2")], FailureKind::Server, 3, false);
        check_policy(&[("CLAUDE_CODE_MAX_RETRIES", "99999999999")], FailureKind::Server, 15, true);
        check_policy(&[("CLAUDE_CODE_MAX_RETRIES", "99")], FailureKind::Server, 16, false);
        let watchful = [("CLAUDE_CODE_RETRY_WATCHDOG", "1")];
        check_policy(&watchful, FailureKind::RateLimited, 5_000, true);
        check_policy(&watchful, FailureKind::Connect, 300, true);
        check_policy(&watchful, FailureKind::Connect, 301, false);
        check_policy(&watchful, FailureKind::Billing, 1, false);
    }

    #[test]
    fn wait_that_is_too_long_ends_a_run_that_nobody_watches() {
        let mut failure = Failure::new(FailureKind::RateLimited, "x");
        let usual = RetryPolicy::default();
        let watchful = RetryPolicy { is_watchful: true, ..usual };
        for (asked, policy, expected) in [
            (119, usual.unwatched(), true),
            (121, usual.unwatched(), false),
            (121, usual, true),
            (99_999_999_999, usual.unwatched(), false),
            (99_999_999_999, watchful.unwatched(), true),
        ] {
            failure.retry_after = Some(Duration::from_secs(asked));
            assert_eq!(policy.allows(&failure, 1), expected, "{asked} s, {policy:?}");
        }
    }

    #[test]
    fn server_that_is_not_there_is_waited_for_by_a_watchful_run_alone() {
        check_policy(&[], FailureKind::NoListener, 1, false);
        check_policy(&[("CLAUDE_CODE_RETRY_WATCHDOG", "1")], FailureKind::NoListener, 300, true);
    }

    #[test]
    fn a_bad_limit_names_the_variable() {
        let mut env = Env::for_test("/home", "/code");
        env.vars = [("CLAUDE_CODE_MAX_RETRIES", "many")].into_iter().collect();
        let failure = RetryPolicy::from_env(&env).unwrap_err();
        assert_eq!(failure.message, "`CLAUDE_CODE_MAX_RETRIES` is not a whole number: `many`");
    }
}
