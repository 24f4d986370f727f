//! Servers that live inside the client which drives us: each message is a question to it, and its answer holds the
//! server's.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{Inbound, InboundSender, Transport, TransportError, Travel};
use crate::message::Message;

/// What the client says to a message: the server's answer, if it has one.
pub type BridgeAnswer = Pin<Box<dyn Future<Output = Result<Option<Value>, String>> + Send>>;

/// The way to servers inside the client.
pub trait Bridge: Send + Sync {
    /// Hands a message to the server of this name.
    fn deliver(&self, server: &str, message: Value) -> BridgeAnswer;
}

/// A server inside the client.
pub(crate) struct BridgeTransport {
    pub(crate) server: String,
    pub(crate) bridge: Arc<dyn Bridge>,
    pub(crate) inbound: InboundSender,
    pub(crate) closed: CancellationToken,
}

impl Transport for BridgeTransport {
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>> {
        let id = message.get("id").and_then(Value::as_u64);
        let is_request = message.get("method").is_some() && id.is_some();
        let (answer, inbound) = (self.bridge.deliver(&self.server, message), self.inbound.clone());
        let closed = self.closed.clone();
        // The answer takes as long as the call; whoever sends does not wait for it here.
        tokio::spawn(async move {
            let said = tokio::select! {
                said = answer => said,
                () = closed.cancelled() => return,
            };
            let lost =
                |error: String| id.map(|id| Inbound::Lost { id, error: TransportError::Failed(error) });
            let news = match said {
                Ok(Some(value)) if is_request => match Message::from_value(value) {
                    Ok(message) => Some(Inbound::Message(message)),
                    Err(problem) => lost(format!("the client's answer cannot be read: {problem}")),
                },
                Ok(None) if is_request => lost("the client gave no answer".to_owned()),
                // Notifications are answered with something empty.
                Ok(_) => None,
                Err(error) => lost(error),
            };
            if let Some(news) = news {
                // A connection that has ended waits for nothing.
                drop(inbound.send(news).await);
            }
        });
        Box::pin(async { Ok(()) })
    }

    fn close(&self) -> Travel<'_, ()> {
        self.closed.cancel();
        Box::pin(async {})
    }
}
