//! Requests to the client that drives a session: whatever only it can do or decide.
//!
//! Anybody in the process may hold a [`ClientRequests`], send a request of any subtype and await its answer. A front end
//! that has a client takes the other end ([`ClientRequests::channel`]), writes requests in its protocol and hands answers
//! back. What must stay true:
//!
//! 1. Every request comes to one end: an answer, a refusal, or the news that the client is gone.
//! 2. Whoever stops waiting (drops the future, or lets a timeout do so) withdraws the request.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use loci_stdx::Random;
use serde_json::{Map, Value};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// What came of a request: the client's answer, or why there is none.
pub type ClientAnswer = Result<Value, ClientRequestError>;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientRequestError {
    /// There is no client, or it has gone away.
    #[error("No client is left to answer")]
    Gone,
    /// The client answered with an error.
    #[error("The client refused: {0}")]
    Refused(String),
}

/// A request on its way to the client.
#[derive(Debug)]
pub struct ClientRequest {
    /// Its id, to answer by.
    pub id: String,
    /// What kind of request it is, in the protocol's word.
    pub subtype: String,
    /// Its other fields.
    pub payload: Map<String, Value>,
    /// Who waits for the answer.
    pub waiter: oneshot::Sender<ClientAnswer>,
}

/// What the front end is told.
#[derive(Debug)]
pub enum ClientMessage {
    /// Ask the client this.
    Request(ClientRequest),
    /// Nobody waits for the answer to this request any more.
    Withdrawn(String),
}

/// The way to the client. Clones lead to the same one.
#[derive(Clone, Default)]
pub struct ClientRequests {
    channel: Option<Channel>,
}

#[derive(Clone)]
struct Channel {
    messages: UnboundedSender<ClientMessage>,
    random: Arc<dyn Random>,
}

impl ClientRequests {
    /// Returns the way to a client and what comes along it, for the front end.
    pub fn channel(random: Arc<dyn Random>) -> (Self, UnboundedReceiver<ClientMessage>) {
        let (messages, receiver) = unbounded_channel();
        (Self { channel: Some(Channel { messages, random }) }, receiver)
    }

    /// Returns the way to nobody: every request finds the client gone.
    pub fn none() -> Self {
        Self::default()
    }

    /// Asks the client at once, so that requests arrive in the order in which they were made, and waits for its answer.
    /// Dropping the future withdraws the request.
    pub fn request(
        &self,
        subtype: &str,
        payload: Map<String, Value>,
    ) -> impl Future<Output = ClientAnswer> + Send + use<> {
        let sent = self.send(subtype, payload);
        async move {
            let (answer, mut withdrawal) = sent?;
            let answer = answer.await;
            withdrawal.id = None;
            answer.unwrap_or(Err(ClientRequestError::Gone))
        }
    }

    fn send(
        &self,
        subtype: &str,
        payload: Map<String, Value>,
    ) -> Result<(oneshot::Receiver<ClientAnswer>, Withdrawal), ClientRequestError> {
        let channel = self.channel.as_ref().ok_or(ClientRequestError::Gone)?;
        let id = channel.random.uuid_v4().to_string();
        let (waiter, answer) = oneshot::channel();
        let request = ClientRequest { id: id.clone(), subtype: subtype.to_owned(), payload, waiter };
        channel.messages.send(ClientMessage::Request(request)).map_err(|_| ClientRequestError::Gone)?;
        Ok((answer, Withdrawal { messages: channel.messages.clone(), id: Some(id) }))
    }
}

impl fmt::Debug for ClientRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRequests").field("has_client", &self.channel.is_some()).finish()
    }
}

/// Withdraws a request when it is dropped, unless that was answered.
struct Withdrawal {
    messages: UnboundedSender<ClientMessage>,
    id: Option<String>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            // A front end that has ended has withdrawn everything.
            drop(self.messages.send(ClientMessage::Withdrawn(id)));
        }
    }
}
