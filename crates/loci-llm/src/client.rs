//! The client: one request in, a stream of events out.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;
use loci_core::stream::{Failure, StreamEvent};
use tokio_util::sync::CancellationToken;

use crate::config::ProviderConfig;
use crate::exchange::{self, Shared};
use crate::provider::Provider;
use crate::request::Request;
use crate::transport::Transport;

/// A model provider, ready to be asked. Clones are cheap and share connections.
#[derive(Debug, Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// Checks the configuration; nothing slow happens here (no TLS, no DNS, no file).
    pub fn new(config: ProviderConfig) -> Result<Self, Failure> {
        let provider = Provider::anthropic(&config)?;
        let transport = Arc::new(Transport::new(&config, provider.endpoint.base()));
        Ok(Self { shared: Arc::new(Shared { provider, transport, timeouts: config.timeouts }) })
    }

    /// Sends a request when the stream is first polled, which must happen inside a tokio runtime.
    ///
    /// The last item is [`StreamEvent::Ended`] or a failure. When `cancel` fires, the stream ends without
    /// either. Dropping the stream aborts the request. Nothing is ever sent twice.
    pub fn stream(&self, request: Arc<Request>, cancel: CancellationToken) -> EventStream {
        EventStream(Box::pin(exchange::events(self.shared.clone(), request, cancel)))
    }

    /// Starts reading certificates on a thread of its own, if the server is reached by TLS.
    pub fn warm_up(&self) {
        self.shared.transport.warm_up();
    }
}

/// The events of one answer. See [`Client::stream`].
pub struct EventStream(Pin<Box<dyn Stream<Item = Result<StreamEvent, Failure>> + Send>>);

impl Stream for EventStream {
    type Item = Result<StreamEvent, Failure>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventStream")
    }
}
