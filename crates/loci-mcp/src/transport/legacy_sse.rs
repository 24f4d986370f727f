//! HTTP with events beside it, as it was done before streamable HTTP: one stream of events, whose first says where
//! messages are posted to; answers come by the stream.

use std::sync::Arc;
use std::time::Duration;

use loci_http::{SseEvent, SseReader};
use reqwest::{Method, Response, Url};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::web::{Web, is_stream, message_headers, refused, stream_headers};
use super::{Inbound, InboundSender, Transport, TransportError, Travel};
use crate::log::ServerLog;
use crate::message::Message;

/// How long a server has to say where messages go.
const ENDPOINT_TIME: Duration = Duration::from_secs(30);

/// The way to a server that speaks the old protocol.
pub(crate) struct SseTransport {
    shared: Arc<SseShared>,
}

struct SseShared {
    web: Web,
    /// Where messages go, once that is known, or why there is no such place.
    endpoint: watch::Sender<Option<Result<Url, TransportError>>>,
    inbound: InboundSender,
    closed: CancellationToken,
    log: Arc<ServerLog>,
}

impl SseTransport {
    /// Begins to listen.
    pub(crate) fn start(web: Web, inbound: InboundSender, log: Arc<ServerLog>) -> Self {
        let closed = CancellationToken::new();
        let shared = Arc::new(SseShared { web, endpoint: watch::Sender::new(None), inbound, closed, log });
        let listening = Arc::clone(&shared);
        tokio::spawn(async move {
            let closed = listening.closed.clone();
            tokio::select! {
                () = listening.listen() => {}
                () = closed.cancelled() => {}
            }
        });
        Self { shared }
    }
}

impl Transport for SseTransport {
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>> {
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            let url = shared.endpoint().await?;
            let response =
                shared.web.send(Method::POST, &url, &message_headers(), Some(message.to_string())).await?;
            match response.status().is_success() {
                true => Ok(()),
                false => Err(refused(response).await),
            }
        });
        Box::pin(
            async move { task.await.unwrap_or_else(|error| Err(TransportError::Failed(error.to_string()))) },
        )
    }

    fn close(&self) -> Travel<'_, ()> {
        self.shared.closed.cancel();
        Box::pin(async {})
    }
}

impl Drop for SseTransport {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

impl SseShared {
    /// Waits until it is known where messages go.
    async fn endpoint(&self) -> Result<Url, TransportError> {
        let mut known = self.endpoint.subscribe();
        let waiting = known.wait_for(Option::is_some);
        let late = || TransportError::Failed("the server does not say where messages go".to_owned());
        let found = tokio::time::timeout(ENDPOINT_TIME, waiting).await.map_err(|_| late())?;
        found.map_err(|_| late())?.clone().ok_or_else(late)?
    }

    async fn listen(&self) {
        let why = match self.web.send(Method::GET, &self.web.url, &stream_headers(), None).await {
            Ok(response) if response.status().is_success() && is_stream(&response) => {
                self.read(response).await
            }
            Ok(response) => {
                let error = refused(response).await;
                self.endpoint.send_replace(Some(Err(error.clone())));
                error.to_string()
            }
            Err(error) => {
                self.endpoint.send_replace(Some(Err(error.clone())));
                error.to_string()
            }
        };
        drop(self.inbound.send(Inbound::Closed(why)).await);
    }

    async fn read(&self, mut response: Response) -> String {
        let mut reader = SseReader::default();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => reader.push(&chunk),
                Ok(None) => return "its stream ended".to_owned(),
                Err(error) => return super::web::failed(&error).to_string(),
            }
            loop {
                match reader.advance() {
                    Ok(true) => self.take_event(reader.event()).await,
                    Ok(false) => break,
                    Err(error) => return error.to_string(),
                }
            }
        }
    }

    async fn take_event(&self, event: SseEvent<'_>) {
        match event.name.as_ref() {
            "endpoint" => self.take_endpoint(&String::from_utf8_lossy(event.data)),
            _ => self.take(event.data).await,
        }
    }

    /// Takes the place that messages go to; one that is elsewhere is refused, since it would be told our secrets.
    fn take_endpoint(&self, text: &str) {
        let joined = self.web.url.join(text.trim()).ok().filter(|url| url.origin() == self.web.url.origin());
        let elsewhere =
            || TransportError::Closed("it wants messages sent to another host, which is refused".to_owned());
        self.endpoint.send_replace(Some(joined.ok_or_else(elsewhere)));
    }

    async fn take(&self, bytes: &[u8]) {
        match Message::parse(bytes) {
            Ok(messages) => {
                for message in messages {
                    drop(self.inbound.send(Inbound::Message(message)).await);
                }
            }
            Err(problem) => self.log.note(&format!("skipped what is no message: {problem}")),
        }
    }
}
