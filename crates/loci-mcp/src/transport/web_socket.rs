//! Web sockets: one connection, a message each way is one text.
//!
//! The connection is a request of the usual HTTP client that is turned into a socket, so proxies, certificates, headers and
//! redirects are as for every other server. One task owns the socket.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use loci_stdx::{OsRandom, Random};
use reqwest::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue, UPGRADE};
use reqwest::{Method, Response, StatusCode, Upgraded};
use serde_json::Value;
use sha1::{Digest, Sha1};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::sync::CancellationToken;

use super::web::{Web, refused};
use super::{Inbound, InboundSender, Transport, TransportError, Travel};
use crate::log::ServerLog;
use crate::message::Message;

const KEY: HeaderName = HeaderName::from_static("sec-websocket-key");
const ACCEPT: HeaderName = HeaderName::from_static("sec-websocket-accept");
const VERSION: HeaderName = HeaderName::from_static("sec-websocket-version");
const PROTOCOL: HeaderName = HeaderName::from_static("sec-websocket-protocol");
/// What a server adds to our key before it hashes it (RFC 6455).
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest message that is read.
const MESSAGE_LIMIT: usize = 64 << 20;
/// How often a server is asked whether it is still there, and how long it may be silent.
pub(crate) const PING: Duration = Duration::from_secs(30);
pub(crate) const MOST_SILENT_PINGS: u32 = 3;
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(1);

pub(crate) type Socket = WebSocketStream<Upgraded>;

/// The way to a server behind a web socket.
pub(crate) struct WebSocketTransport {
    outgoing: UnboundedSender<String>,
    /// Whether it is connected, once that is known, or why not.
    ready: watch::Receiver<Option<Result<(), TransportError>>>,
    closing: CancellationToken,
    closed: CancellationToken,
}

impl WebSocketTransport {
    /// Begins to connect.
    pub(crate) fn start(web: Web, inbound: InboundSender, log: Arc<ServerLog>) -> Self {
        let (outgoing, messages) = unbounded_channel();
        let (told, ready) = watch::channel(None);
        let (closing, closed) = (CancellationToken::new(), CancellationToken::new());
        let (stop, done) = (closing.clone(), closed.clone());
        tokio::spawn(async move {
            let work = async {
                match connect(&web).await {
                    Ok(socket) => {
                        told.send_replace(Some(Ok(())));
                        Some(Connected { socket, messages, inbound: inbound.clone(), log })
                    }
                    Err(error) => {
                        let why = error.to_string();
                        told.send_replace(Some(Err(error)));
                        drop(inbound.send(Inbound::Closed(why)).await);
                        None
                    }
                }
            };
            let connected = tokio::select! {
                connected = work => connected,
                () = stop.cancelled() => None,
            };
            if let Some(connected) = connected {
                connected.run(stop).await;
            }
            done.cancel();
        });
        Self { outgoing, ready, closing, closed }
    }
}

impl Transport for WebSocketTransport {
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>> {
        let gone = || TransportError::Closed("its connection has ended".to_owned());
        Box::pin(async move {
            let mut ready = self.ready.clone();
            let known = ready.wait_for(Option::is_some).await.map_err(|_| gone())?.clone();
            known.unwrap_or_else(|| Err(gone()))?;
            self.outgoing.send(message.to_string()).map_err(|_| gone())
        })
    }

    fn close(&self) -> Travel<'_, ()> {
        self.closing.cancel();
        Box::pin(self.closed.cancelled())
    }
}

impl Drop for WebSocketTransport {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Asks for a socket and checks that it is one.
async fn connect(web: &Web) -> Result<Socket, TransportError> {
    let key = new_key();
    let headers = upgrade_headers(&key, Some("mcp"))?;
    let response = web.send(Method::GET, &web.url, &headers, None).await?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refused(response).await);
    }
    check_accept(&response, &key)?;
    upgrade(response, MESSAGE_LIMIT).await
}

/// Makes a key, which keeps caches from answering and is no secret.
pub(crate) fn new_key() -> String {
    let mut nonce = [0; 16];
    OsRandom.fill(&mut nonce);
    STANDARD.encode(nonce)
}

/// Makes a socket of the answer to the request for one.
pub(crate) async fn upgrade(response: Response, message_limit: usize) -> Result<Socket, TransportError> {
    let upgraded = response.upgrade().await;
    let upgraded = upgraded.map_err(|error| super::web::failed(&error))?;
    let config =
        WebSocketConfig::default().max_message_size(Some(message_limit)).max_frame_size(Some(message_limit));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

/// Returns the headers that ask for a socket, with the protocols that may be spoken on it.
pub(crate) fn upgrade_headers(key: &str, protocols: Option<&str>) -> Result<HeaderMap, TransportError> {
    let value =
        |text: &str| HeaderValue::from_str(text).map_err(|error| TransportError::Failed(error.to_string()));
    let mut headers = HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (VERSION, HeaderValue::from_static("13")),
        (KEY, value(key)?),
    ]);
    if let Some(protocols) = protocols {
        headers.insert(PROTOCOL, value(protocols)?);
    }
    Ok(headers)
}

/// Whoever does not hash our key speaks something else.
pub(crate) fn check_accept(response: &Response, key: &str) -> Result<(), TransportError> {
    let said = response.headers().get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
    match said == accept_key(key) {
        true => Ok(()),
        false => Err(TransportError::Closed("it does not speak the protocol of web sockets".to_owned())),
    }
}

fn accept_key(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{SALT}")))
}

struct Connected {
    socket: Socket,
    messages: UnboundedReceiver<String>,
    inbound: InboundSender,
    log: Arc<ServerLog>,
}

impl Connected {
    async fn run(mut self, stop: CancellationToken) {
        let mut pings = tokio::time::interval(PING);
        pings.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        pings.tick().await;
        let mut n_silent = 0;
        let why = loop {
            tokio::select! {
                () = stop.cancelled() => return self.leave().await,
                Some(message) = self.messages.recv() => {
                    if let Err(error) = self.socket.send(Frame::text(message)).await {
                        break format!("its connection broke off: {error}");
                    }
                }
                frame = self.socket.next() => {
                    n_silent = 0;
                    match frame {
                        Some(Ok(frame)) => {
                            let taken = tokio::select! {
                                taken = self.take(frame) => taken,
                                () = stop.cancelled() => return self.leave().await,
                            };
                            if let Some(why) = taken {
                                break why;
                            }
                        }
                        Some(Err(error)) => break format!("its connection broke off: {error}"),
                        None => break "it closed its connection".to_owned(),
                    }
                }
                _ = pings.tick() => {
                    n_silent += 1;
                    if n_silent > MOST_SILENT_PINGS {
                        break "it does not answer any more".to_owned();
                    }
                    if let Err(error) = self.socket.send(Frame::Ping(Vec::new().into())).await {
                        break format!("its connection broke off: {error}");
                    }
                }
            }
        };
        // Whoever listened may have gone.
        drop(self.inbound.send(Inbound::Closed(why)).await);
    }

    /// Takes what came; returns why it is the end, if it is.
    async fn take(&mut self, frame: Frame) -> Option<String> {
        let bytes = match &frame {
            Frame::Text(text) => text.as_bytes(),
            Frame::Binary(bytes) => bytes,
            Frame::Close(_) => return Some("it closed its connection".to_owned()),
            Frame::Ping(_) | Frame::Pong(_) | Frame::Frame(_) => return None,
        };
        match Message::parse(bytes) {
            Ok(messages) => {
                for message in messages {
                    drop(self.inbound.send(Inbound::Message(message)).await);
                }
            }
            Err(problem) => self.log.note(&format!("skipped what is no message: {problem}")),
        }
        None
    }

    /// Says farewell, with what was still to be said.
    async fn leave(mut self) {
        let farewell = async {
            while let Ok(message) = self.messages.try_recv() {
                self.socket.send(Frame::text(message)).await?;
            }
            self.socket.close(None).await
        };
        if let Ok(Err(error)) = tokio::time::timeout(FAREWELL, farewell).await {
            tracing::debug!(target: "loci::mcp", %error, "a web socket was not closed in order");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_key_is_the_one_of_the_standard() {
        // The example of RFC 6455, section 1.3.
        assert_eq!(accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
