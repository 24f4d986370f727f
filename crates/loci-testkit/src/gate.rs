//! A gate holds an answer at an exact place until the test opens it.
//!
//! With it a test interrupts "in the middle of the stream" without sleeping: it waits until the server has
//! arrived at the gate, acts, and then opens it. An opened gate stays open.

use std::sync::Arc;
use tokio::sync::watch;

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
        arrivals.wait_for(|seen| *seen >= n).await.expect("the gate owns the sender");
    }

    /// Arrives at the gate and waits until it is open.
    pub(crate) async fn pass(&self) {
        self.state.arrivals.send_modify(|seen| *seen += 1);
        let mut open = self.state.open.subscribe();
        open.wait_for(|open| *open).await.expect("the gate owns the sender");
    }
}
