//! Streamable HTTP: each message is a POST, and its answer is one message or a stream of them.
//!
//! A server may give a session, which every later request names and which is ended with the connection. Beside the
//! answers it may have a stream of its own, for what it wants to say unasked; not having one is no fault. A stream that
//! breaks off before the answer came is taken up again behind its last event, where its events have ids.
//!
//! What a server says unasked is lost where nobody listens yet, and servers ask people their questions that way, too. So
//! the first request that may lead to one waits until the server has said whether it has such a stream.
//!
//! The revision of 2026-07-28 has neither sessions nor a stream beside the answers, and takes nothing up again; closing
//! the exchange of a request is how it is cancelled. A message says itself which revision it is of.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use loci_http::SseReader;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::routing_headers::{VERSION, routing_headers};
use super::web::{Web, body, failed, is_stream, message_headers, refused, stream_headers};
use super::{Inbound, InboundSender, Transport, TransportError, Travel};
use crate::log::ServerLog;
use crate::message::{Message, RpcError, is_stateless};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// How often a stream is taken up again without an event having come, and the first pause, which doubles.
const MOST_RESUMES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long a server has to begin an answer: its headers, not its whole.
const FIRST_BYTE: Duration = Duration::from_secs(60);
/// How long a server has to say whether it has a stream of its own, before it is asked for anything all the same: some
/// say nothing until the first event.
const FIRST_LISTEN: Duration = Duration::from_secs(5);
/// The requests that may have a server ask something back.
const ASKING: [&str; 4] = ["tools/call", "prompts/get", "resources/read", "completion/complete"];
/// How long the end of a session may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// The way to a server with an address.
pub(crate) struct HttpTransport {
    shared: Arc<HttpShared>,
}

struct HttpShared {
    web: Web,
    /// What the server gave and what was agreed on; held to read or to replace.
    terms: Mutex<Terms>,
    /// What ends the exchange of each request that can be ended by that; held to add or to take.
    streams: Mutex<HashMap<u64, CancellationToken>>,
    /// Whether the server has said if it has a stream of its own.
    has_listened: watch::Sender<bool>,
    inbound: InboundSender,
    closed: CancellationToken,
    log: Arc<ServerLog>,
}

#[derive(Default)]
struct Terms {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Whether the revision has no handshake and no session.
    is_stateless: bool,
    /// Until when the server may say whether it has a stream of its own; none before it is asked.
    listens_by: Option<Instant>,
}

impl HttpTransport {
    pub(crate) fn new(web: Web, inbound: InboundSender, log: Arc<ServerLog>) -> Self {
        let shared = HttpShared {
            web,
            terms: Mutex::default(),
            streams: Mutex::default(),
            has_listened: watch::Sender::new(false),
            inbound,
            closed: CancellationToken::new(),
            log,
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Transport for HttpTransport {
    fn send(&self, message: Value) -> Travel<'_, Result<(), TransportError>> {
        self.send_with_headers(message, Vec::new())
    }

    fn send_with_headers(
        &self,
        message: Value,
        headers: Vec<(String, String)>,
    ) -> Travel<'_, Result<(), TransportError>> {
        // Whoever waits for it may go away; what was begun is finished all the same, unless ending it cancels it.
        let shared = Arc::clone(&self.shared);
        let outgoing = Outgoing::new(message, headers);
        let stop = match outgoing.stateless_id() {
            Some(id) => shared.streams().entry(id).or_insert_with(|| shared.closed.child_token()).clone(),
            None => shared.closed.clone(),
        };
        let task = tokio::spawn(async move {
            let id = outgoing.stateless_id();
            let posted = tokio::select! {
                posted = shared.post(outgoing) => posted,
                () = stop.cancelled() => Err(TransportError::Closed("it was closed".to_owned())),
            };
            if let (Some(id), false) = (id, matches!(posted, Ok(Posted::Streaming))) {
                shared.streams().remove(&id);
            }
            posted.map(|_| ())
        });
        Box::pin(
            async move { task.await.unwrap_or_else(|error| Err(TransportError::Failed(error.to_string()))) },
        )
    }

    fn has_headers(&self) -> bool {
        true
    }

    fn negotiated(&self, version: &str) {
        let mut terms = self.shared.terms();
        terms.version = HeaderValue::from_str(version).ok();
        terms.is_stateless = is_stateless(version);
    }

    fn abandon(&self, id: u64) -> bool {
        let stream = self.shared.streams().remove(&id);
        if let Some(stream) = stream {
            stream.cancel();
        }
        self.shared.terms().is_stateless
    }

    fn close(&self) -> Travel<'_, ()> {
        Box::pin(async move {
            let had_session = !self.shared.closed.is_cancelled() && self.shared.terms().session.is_some();
            let headers = self.shared.with_terms(HeaderMap::new());
            self.shared.closed.cancel();
            if had_session {
                let farewell = self.shared.web.send(Method::DELETE, &self.shared.web.url, &headers, None);
                // A server that does not let its session be ended forgets it in time.
                drop(tokio::time::timeout(FAREWELL, farewell).await);
            }
        })
    }
}

impl Drop for HttpTransport {
    fn drop(&mut self) {
        self.shared.closed.cancel();
    }
}

impl HttpShared {
    fn terms(&self) -> MutexGuard<'_, Terms> {
        self.terms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<u64, CancellationToken>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_terms(&self, mut headers: HeaderMap) -> HeaderMap {
        let terms = self.terms();
        let pairs = [(SESSION, terms.session.clone()), (VERSION, terms.version.clone())];
        headers.extend(pairs.into_iter().filter_map(|(name, value)| Some((name, value?))));
        headers
    }

    async fn post(self: &Arc<Self>, outgoing: Outgoing) -> Result<Posted, TransportError> {
        let Outgoing { body: text, method, id, routing, .. } = outgoing;
        if ASKING.contains(&method.as_str()) {
            self.first_listen().await;
        }
        let mut headers = self.with_terms(message_headers());
        let is_stateless = routing.is_some();
        headers.extend(routing.unwrap_or_default());
        let sending = self.web.send(Method::POST, &self.web.url, &headers, Some(text));
        let response = tokio::time::timeout(FIRST_BYTE, sending).await.map_err(|_| {
            TransportError::Failed("the server did not begin to answer within 60 s".to_owned())
        })??;
        let status = response.status().as_u16();
        if status == 404 && headers.contains_key(SESSION) {
            self.terms().session = None;
            return Err(TransportError::SessionExpired);
        }
        if !response.status().is_success() {
            return self.refuse(response, id).await;
        }
        if method == "initialize" {
            self.terms().session = response.headers().get(SESSION).cloned();
        }
        if is_stream(&response) {
            self.follow(response, id, !is_stateless);
            return Ok(Posted::Streaming);
        }
        let bytes = body(response).await?;
        self.take(&bytes).await;
        if let Some(id) = id.filter(|_| bytes.trim_ascii().is_empty()) {
            let error = TransportError::Status { status, body: "(no answer)".to_owned() };
            drop(self.inbound.send(Inbound::Lost { id, error }).await);
        }
        if method == "notifications/initialized" {
            self.has_listened.send_replace(false);
            self.terms().listens_by = Some(Instant::now() + FIRST_LISTEN);
            tokio::spawn(listen(Arc::clone(self)));
        }
        Ok(Posted::Answered)
    }

    /// Waits until the server has said whether it has a stream of its own, where it was asked for one.
    async fn first_listen(&self) {
        let Some(by) = self.terms().listens_by else { return };
        let mut has_listened = self.has_listened.subscribe();
        // Who has not said it by then is not waited for.
        drop(tokio::time::timeout_at(by, has_listened.wait_for(|it| *it)).await);
    }

    /// Takes an answer that refuses; one that holds an answer of the protocol is that.
    async fn refuse(&self, response: Response, id: Option<u64>) -> Result<Posted, TransportError> {
        let status = response.status().as_u16();
        let bytes = body(response).await.unwrap_or_default();
        if let (Ok(messages), Some(id)) = (Message::parse(&bytes), id)
            && let [Message::Response { id: answered, .. }] = &messages[..]
            && *answered == id
        {
            for message in messages {
                drop(self.inbound.send(Inbound::Message(message)).await);
            }
            return Ok(Posted::Answered);
        }
        // A request that was refused before its id was read is answered without one.
        if let (Some(error), Some(id), 400..=499) = (RpcError::without_id(&bytes), id, status) {
            drop(self.inbound.send(Inbound::Message(Message::Response { id, result: Err(error) })).await);
            return Ok(Posted::Answered);
        }
        let shown = crate::names::brief(&String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]));
        Err(TransportError::Status { status, body: shown })
    }

    async fn take(&self, bytes: &[u8]) -> Vec<u64> {
        let mut answered = Vec::new();
        if bytes.trim_ascii().is_empty() {
            return answered;
        }
        match Message::parse(bytes) {
            Ok(messages) => {
                for message in messages {
                    if let Message::Response { id, .. } = &message {
                        answered.push(*id);
                    }
                    // Without a listener the connection is about to be closed.
                    drop(self.inbound.send(Inbound::Message(message)).await);
                }
            }
            Err(problem) => self.log.note(&format!("skipped what is no message: {problem}")),
        }
        answered
    }

    /// Follows the stream that answers a request, until the answer came.
    fn follow(self: &Arc<Self>, response: Response, id: Option<u64>, is_resumable: bool) {
        let stop = match id {
            Some(id) => self.streams().entry(id).or_insert_with(|| self.closed.child_token()).clone(),
            None => self.closed.child_token(),
        };
        let shared = Arc::clone(self);
        tokio::spawn(async move {
            let work = shared.read_answer(response, id, is_resumable);
            let lost = tokio::select! {
                lost = work => lost,
                () = stop.cancelled() => None,
            };
            if let Some(id) = id {
                shared.streams().remove(&id);
                if let Some(error) = lost {
                    drop(shared.inbound.send(Inbound::Lost { id, error }).await);
                }
            }
        });
    }

    /// Reads a stream to the answer of a request; the error says why there will be none.
    async fn read_answer(
        &self,
        response: Response,
        id: Option<u64>,
        is_resumable: bool,
    ) -> Option<TransportError> {
        let mut reader = SseReader::default();
        let mut response = Some(response);
        let mut resumes = 0;
        let mut pause = PAUSE;
        loop {
            let ended = match response.take() {
                Some(response) => self.read(response, &mut reader, id).await,
                None => StreamEnd::Broken(TransportError::Failed(
                    "the stream could not be taken up again".to_owned(),
                )),
            };
            let error = match ended {
                StreamEnd::Answered => return None,
                StreamEnd::Broken(error) => error,
                StreamEnd::Over { has_come } => {
                    if has_come {
                        (resumes, pause) = (0, PAUSE);
                    }
                    TransportError::Failed("the stream ended before the answer came".to_owned())
                }
            };
            let can_resume =
                is_resumable && id.is_some() && reader.last_id().is_some() && resumes < MOST_RESUMES;
            if !can_resume {
                return Some(error);
            }
            resumes += 1;
            tokio::time::sleep(reader.pause().unwrap_or(pause).min(LONGEST_PAUSE)).await;
            pause *= 2;
            response = self.resume(&reader).await.ok();
            reader = SseReader::behind(reader.last_id().map(str::to_owned));
        }
    }

    /// Asks for what comes behind the last event.
    async fn resume(&self, reader: &SseReader) -> Result<Response, TransportError> {
        let mut headers = self.with_terms(stream_headers());
        if let Some(id) = reader.last_id().and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT, id);
        }
        let response = self.web.send(Method::GET, &self.web.url, &headers, None).await?;
        match response.status().is_success() && is_stream(&response) {
            true => Ok(response),
            false => Err(refused(response).await),
        }
    }

    async fn read(&self, mut response: Response, reader: &mut SseReader, id: Option<u64>) -> StreamEnd {
        let mut has_come = false;
        loop {
            let chunk = match response.chunk().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return StreamEnd::Over { has_come },
                Err(error) => {
                    tracing::debug!(target: "loci::mcp", error = %failed(&error), "a stream broke off");
                    return StreamEnd::Over { has_come };
                }
            };
            reader.push(&chunk);
            loop {
                match reader.advance() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return StreamEnd::Broken(TransportError::Failed(error.to_string())),
                }
                has_come = true;
                let answered = self.take(reader.event().data).await;
                if id.is_some_and(|id| answered.contains(&id)) {
                    return StreamEnd::Answered;
                }
            }
        }
    }
}

/// A message on its way, and what must be known of it.
struct Outgoing {
    body: String,
    method: String,
    /// The id of a request.
    id: Option<u64>,
    /// What is said of it in headers, where it is of a revision without a handshake.
    routing: Option<HeaderMap>,
}

impl Outgoing {
    fn new(message: Value, headers: Vec<(String, String)>) -> Self {
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = message.get("id").and_then(Value::as_u64).filter(|_| !method.is_empty());
        let mut routing = routing_headers(&message);
        if let Some(routing) = &mut routing {
            let own = headers.into_iter().filter_map(|(name, value)| {
                Some((name.parse::<HeaderName>().ok()?, HeaderValue::from_str(&value).ok()?))
            });
            routing.extend(own);
        }
        Self { body: message.to_string(), method, id, routing }
    }

    /// Returns the id of a request that is cancelled by ending its exchange.
    fn stateless_id(&self) -> Option<u64> {
        self.id.filter(|_| self.routing.is_some())
    }
}

/// What has become of a message.
enum Posted {
    /// Everything that comes back has come.
    Answered,
    /// What comes back is followed.
    Streaming,
}

/// How a stream ended.
enum StreamEnd {
    /// With the answer.
    Answered,
    /// Without it, and whether anything came before.
    Over { has_come: bool },
    /// It cannot be read.
    Broken(TransportError),
}

/// Listens to what a server says unasked. One that has no such stream is not asked again; one that is lost for good means
/// that the server has gone.
async fn listen(shared: Arc<HttpShared>) {
    let closed = shared.closed.clone();
    let work = async {
        let mut reader = SseReader::default();
        let (mut tries, mut pause, mut had_stream) = (0, PAUSE, false);
        loop {
            let resumed = shared.resume(&reader).await;
            shared.has_listened.send_replace(true);
            match resumed {
                Ok(response) => {
                    had_stream = true;
                    if let StreamEnd::Over { has_come: true } = shared.read(response, &mut reader, None).await
                    {
                        (tries, pause) = (0, PAUSE);
                    }
                }
                // It has none, or none for us.
                Err(TransportError::Status { status, .. }) if !had_stream || status == 405 => return None,
                Err(TransportError::Status { status: 404, .. }) => {
                    return Some("it has forgotten the session".to_owned());
                }
                Err(error) if tries >= MOST_RESUMES => return had_stream.then(|| error.to_string()),
                Err(_) => {}
            }
            tries += 1;
            if tries > 10 * MOST_RESUMES {
                return None;
            }
            tokio::time::sleep(reader.pause().unwrap_or(pause).min(LONGEST_PAUSE)).await;
            pause *= 2;
            reader = SseReader::behind(reader.last_id().map(str::to_owned));
        }
    };
    let lost = tokio::select! {
        lost = work => lost,
        () = closed.cancelled() => None,
    };
    if let Some(why) = lost {
        drop(shared.inbound.send(Inbound::Closed(why)).await);
    }
}
