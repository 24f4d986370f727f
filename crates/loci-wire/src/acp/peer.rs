//! The way to the client: answers, news, and questions that wait for its answer.
//!
//! Everything goes through one queue to the one who writes, so that what is said first is read first. A question is open
//! until it is answered; whoever stops waiting for it (drops the future) calls it off with `$/cancel_request`.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::rpc::{self, RpcError};

/// What is to be written.
#[derive(Debug, PartialEq)]
pub(super) enum Outgoing {
    /// A message for the client.
    Message(Value),
    /// A line for whoever reads the log.
    Log(String),
}

/// The client. Clones lead to the same one.
#[derive(Clone)]
pub(super) struct Peer {
    shared: Arc<Shared>,
}

struct Shared {
    lines: UnboundedSender<Outgoing>,
    next_id: AtomicI64,
    /// Who waits for which answer; held to add or take one.
    open: Mutex<OpenRequests>,
}

#[derive(Default)]
struct OpenRequests {
    waiters: HashMap<i64, oneshot::Sender<Result<Value, RpcError>>>,
    is_gone: bool,
}

impl Peer {
    /// Returns the way to a client, and what is to be written to it.
    pub(super) fn new() -> (Self, UnboundedReceiver<Outgoing>) {
        let (lines, receiver) = unbounded_channel();
        let shared = Shared { lines, next_id: AtomicI64::new(1), open: Mutex::default() };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// Answers a request of the client.
    pub(super) fn answer(&self, id: &Value, result: Result<Value, RpcError>) {
        self.write(rpc::answer(id, result));
    }

    /// Tells the client something.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.write(rpc::notification(method, params));
    }

    /// Tells news of a session.
    pub(super) fn update(&self, session: &str, update: &Value) {
        self.notify("session/update", &json!({"sessionId": session, "update": update}));
    }

    /// Asks the client and waits for its answer.
    pub(super) async fn request(&self, method: &str, params: &Value) -> Result<Value, RpcError> {
        let gone = || RpcError::new(rpc::REQUEST_CANCELLED, "No client is left to answer");
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (waiter, answer) = oneshot::channel();
        {
            let mut open = self.open();
            if open.is_gone {
                return Err(gone());
            }
            open.waiters.insert(id, waiter);
        }
        let waiting = Waiting { peer: self, id };
        self.write(rpc::request(id, method, params));
        let answer = answer.await;
        drop(waiting);
        answer.unwrap_or_else(|_| Err(gone()))
    }

    /// Hands in an answer of the client; false when nothing waits for it.
    pub(super) fn respond(&self, id: &Value, result: Result<Value, RpcError>) -> bool {
        let waiter = id.as_i64().and_then(|id| self.open().waiters.remove(&id));
        // Whoever has stopped waiting needs no answer.
        waiter.map(|waiter| drop(waiter.send(result))).is_some()
    }

    /// Nobody will answer any more: whoever waits is told.
    pub(super) fn close(&self) {
        let mut open = self.open();
        open.is_gone = true;
        open.waiters.clear();
    }

    /// Writes a message as it is.
    pub(super) fn write(&self, line: Value) {
        // Nothing is written any more once the process ends.
        drop(self.shared.lines.send(Outgoing::Message(line)));
    }

    /// Says something in the log, which is standard error.
    pub(super) fn log(&self, text: &str) {
        drop(self.shared.lines.send(Outgoing::Log(text.to_owned())));
    }

    fn open(&self) -> MutexGuard<'_, OpenRequests> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a request off when it is dropped before the answer.
struct Waiting<'a> {
    peer: &'a Peer,
    id: i64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let was_open = self.peer.open().waiters.remove(&self.id).is_some();
        if was_open {
            self.peer.notify("$/cancel_request", &json!({"requestId": self.id}));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn next(lines: &mut UnboundedReceiver<Outgoing>) -> Value {
        match lines.recv().await {
            Some(Outgoing::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn answers_reach_who_asked_and_wrong_ids_nobody() {
        let (peer, mut lines) = Peer::new();
        let none = json!({});
        let asked = peer.request("a", &none);
        let serve = async {
            let line = next(&mut lines).await;
            assert_eq!(line, json!({"jsonrpc": "2.0", "id": 1, "method": "a", "params": {}}));
            for wrong in [json!(2), json!("1"), Value::Null, json!(1.5)] {
                assert!(!peer.respond(&wrong, Ok(json!(0))), "{wrong}");
            }
            assert!(peer.respond(&json!(1), Ok(json!("yes"))));
            assert!(!peer.respond(&json!(1), Ok(json!("again"))));
        };
        let (answer, ()) = tokio::join!(asked, serve);
        assert_eq!(answer, Ok(json!("yes")));
        assert!(lines.try_recv().is_err(), "what was answered is not called off");
    }

    #[tokio::test]
    async fn dropped_request_is_called_off_and_a_closed_peer_answers_at_once() {
        let (peer, mut lines) = Peer::new();
        let limit = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(limit, peer.request("a", &json!({}))).await.is_err());
        assert_eq!(next(&mut lines).await["method"], "a");
        let off = next(&mut lines).await;
        assert_eq!(
            (off["method"].as_str(), off["params"]["requestId"].as_i64()),
            (Some("$/cancel_request"), Some(1))
        );
        let none = json!({});
        let waiting = peer.request("b", &none);
        let close = async { peer.close() };
        let (answer, ()) = tokio::join!(waiting, close);
        assert_eq!(answer.unwrap_err().code, rpc::REQUEST_CANCELLED);
        assert_eq!(peer.request("c", &json!({})).await.unwrap_err().code, rpc::REQUEST_CANCELLED);
    }
}
