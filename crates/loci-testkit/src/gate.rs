//! A gate holds an answer at an exact place until the test opens it.
//!
//! With it a test interrupts "in the middle of the stream" without sleeping: it waits until the server has
//! arrived at the gate, acts, and then opens it. An opened gate stays open.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long a test waits at most for something to come to a gate: a test that nothing comes to fails, and does not hang.
const PATIENCE: Duration = Duration::from_secs(300);

/// A place where the scripted model waits for the test; clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<State>,
}

#[derive(Debug)]
struct State {
    arrivals: watch::Sender<usize>,
    open: watch::Sender<bool>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// Returns a closed gate.
    pub fn new() -> Self {
        Self { state: Arc::new(State { arrivals: watch::Sender::new(0), open: watch::Sender::new(false) }) }
    }

    /// Opens the gate for whoever waits at it and whoever comes later.
    pub fn release(&self) {
        self.state.open.send_replace(true);
    }

    /// Waits until an answer stands at the gate; everything before it has been written to the socket.
    pub async fn reached(&self) {
        self.reached_times(1).await;
    }

    /// Waits until the gate has been reached `n` times in all.
    pub async fn reached_times(&self, n: usize) {
        let mut arrivals = self.state.arrivals.subscribe();
        let (_waiting, is_late) = alarm(PATIENCE);
        tokio::select! {
            reached = arrivals.wait_for(|seen| *seen >= n) => drop(reached.expect("the gate owns the sender")),
            Ok(()) = is_late => panic!("nothing came to the gate {n} times within {PATIENCE:?}"),
        }
    }

    /// Arrives at the gate and waits until it is open.
    pub(crate) async fn pass(&self) {
        self.state.arrivals.send_modify(|seen| *seen += 1);
        let mut open = self.state.open.subscribe();
        open.wait_for(|open| *open).await.expect("the gate owns the sender");
    }
}

/// Returns what is told after a while, unless the first half is dropped before. It goes by the real clock: tests may have
/// stopped the runtime's.
fn alarm(after: Duration) -> (mpsc::Sender<()>, oneshot::Receiver<()>) {
    let (waiting, is_over) = mpsc::channel();
    let (late, is_late) = oneshot::channel();
    std::thread::spawn(move || {
        let is_up = is_over.recv_timeout(after) == Err(mpsc::RecvTimeoutError::Timeout);
        // Whoever waited may have gone at this very moment.
        is_up.then(|| late.send(()).ok());
    });
    (waiting, is_late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn alarm_is_told_when_time_is_up_and_not_to_whoever_is_done() {
        let (_waiting, is_late) = alarm(Duration::from_millis(1));
        assert_eq!(is_late.await, Ok(()));
        let (waiting, is_late) = alarm(PATIENCE);
        drop(waiting);
        assert!(is_late.await.is_err());
    }
}
