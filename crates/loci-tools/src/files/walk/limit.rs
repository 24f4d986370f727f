//! When a search has to stop: its time is up, or the call was cancelled.
//!
//! Time is read from the clock of the [`Env`], so a test decides when it is up without waiting for it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use loci_stdx::{Clock, Env};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a search may take.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// How long it may take where the files of another system are slow to reach.
const WSL_TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long after its time a worker that notices nothing (a dead network disk) is left behind.
const GRACE: Duration = Duration::from_secs(2);
/// How many finds may wait for the one who takes them.
const QUEUE: usize = 1_024;

/// Why a search ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was looked at, or as much as was asked for.
    Complete,
    /// The time limit came first.
    OutOfTime,
    /// More was found than is kept.
    Full,
    /// The call was cancelled.
    Cancelled,
    /// The worker broke down.
    Failed(String),
}

/// The time a search has, and the token that ends it sooner.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    cancel: CancellationToken,
    clock: Arc<dyn Clock>,
    started: Duration,
    length: Duration,
}

impl Limit {
    /// Starts the time of a search.
    pub(crate) fn start(env: &Env, cancel: CancellationToken) -> Self {
        let is_wsl = ["WSL_DISTRO_NAME", "WSL_INTEROP"].iter().any(|name| env.vars.non_empty(name).is_some());
        Self {
            cancel,
            started: env.clock.monotonic(),
            clock: Arc::clone(&env.clock),
            length: if is_wsl { WSL_TIME_LIMIT } else { TIME_LIMIT },
        }
    }

    /// Returns the limit of a first phase that must leave time for a second.
    pub(crate) fn first_half(&self) -> Self {
        Self { length: self.length / 2, ..self.clone() }
    }

    /// Returns why to stop now, if there is a reason.
    pub(crate) fn reached(&self) -> Option<Ending> {
        if self.cancel.is_cancelled() {
            Some(Ending::Cancelled)
        } else if self.elapsed() >= self.length {
            Some(Ending::OutOfTime)
        } else {
            None
        }
    }

    /// Returns the time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.started)
    }

    /// Returns the whole time in seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.length.as_secs()
    }
}

/// Runs `produce` on a blocking thread and gives what it sends to `take`, until it ends or `take` has enough.
///
/// Cancelling returns at once, whatever the thread is waiting for; it stops by itself when it next looks at
/// the limit or finds nobody listening.
pub(crate) async fn drain<T: Send + 'static>(
    limit: &Limit,
    produce: impl FnOnce(mpsc::Sender<T>) -> Ending + Send + 'static,
    mut take: impl FnMut(T) -> ControlFlow<()>,
) -> Ending {
    let (sender, mut receiver) = mpsc::channel(QUEUE);
    let worker = tokio::task::spawn_blocking(move || produce(sender));
    let cancelled = limit.cancel.cancelled();
    let left_behind = tokio::time::sleep(limit.length + GRACE);
    tokio::pin!(cancelled, left_behind);
    let mut batch = Vec::with_capacity(QUEUE);
    loop {
        let n_items = tokio::select! {
            biased;
            () = &mut cancelled => return Ending::Cancelled,
            () = &mut left_behind => return Ending::OutOfTime,
            n_items = receiver.recv_many(&mut batch, QUEUE) => n_items,
        };
        if n_items == 0 {
            break;
        }
        for item in batch.drain(..) {
            if take(item).is_break() {
                return Ending::Complete;
            }
        }
    }
    tokio::select! {
        biased;
        () = &mut cancelled => Ending::Cancelled,
        ended = worker => ended.unwrap_or_else(|error| Ending::Failed(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trip_clock::TripClock;
    use super::*;

    fn limit(variables: &[(&str, &str)], clock: TripClock) -> Limit {
        let mut env = Env::for_test("/home", "/work");
        env.vars = variables.iter().copied().collect();
        env.clock = Arc::new(clock);
        Limit::start(&env, CancellationToken::new())
    }

    #[test]
    fn the_limit_is_longer_on_wsl() {
        for (variables, expected) in
            [(&[][..], 20), (&[("WSL_DISTRO_NAME", "Debian")], 60), (&[("WSL_DISTRO_NAME", "")], 20)]
        {
            assert_eq!(limit(variables, TripClock::never()).seconds(), expected, "{variables:?}");
        }
    }

    #[test]
    fn time_is_up_when_the_clock_says_so() {
        for (seconds, whole, half) in [
            (9, None, None),
            (10, None, Some(Ending::OutOfTime)),
            (20, Some(Ending::OutOfTime), Some(Ending::OutOfTime)),
        ] {
            let limit = limit(&[], TripClock::jump(1, Duration::from_secs(seconds)));
            assert_eq!((limit.reached(), limit.first_half().reached()), (whole, half), "{seconds}");
        }
    }

    #[tokio::test]
    async fn draining_ends_with_the_worker_or_the_taker() {
        let limit = limit(&[], TripClock::never());
        let count = |n_items: usize| {
            move |sender: mpsc::Sender<usize>| {
                let sent = (0..n_items).take_while(|item| sender.blocking_send(*item).is_ok()).count();
                if sent == n_items { Ending::Full } else { Ending::Complete }
            }
        };
        let mut seen = Vec::new();
        let mut take = |item| {
            seen.push(item);
            if item == 4 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(drain(&limit, count(3), &mut take).await, Ending::Full);
        assert_eq!(drain(&limit, count(1_000_000), &mut take).await, Ending::Complete);
        let broken = |_: mpsc::Sender<usize>| -> Ending { panic!("as planned") };
        assert!(matches!(drain(&limit, broken, &mut take).await, Ending::Failed(_)));
        assert_eq!(seen, [0, 1, 2, 0, 1, 2, 3, 4]);
    }

    #[tokio::test]
    async fn cancelling_does_not_wait_for_the_worker() {
        let limit = limit(&[], TripClock::never());
        let (release, wait) = std::sync::mpsc::channel::<()>();
        let stuck = move |_: mpsc::Sender<()>| {
            assert!(wait.recv().is_err());
            Ending::Complete
        };
        limit.cancel.cancel();
        assert_eq!(drain(&limit, stuck, |()| ControlFlow::Continue(())).await, Ending::Cancelled);
        drop(release);
    }
}
