//! A conversation with one server: requests and their answers, progress, cancellation, and what the server asks of us.
//! (`docs/design/mcp.md` says why it is not the crate `rmcp`'s.)
//!
//! One task routes what comes in. What must stay true:
//!
//! 1. Every request comes to one end: an answer, an error, its time, or the news that the server has gone.
//! 2. A request that nobody waits for any more is cancelled at the server, but for the first one.
//! 3. What a server asks is answered once, and no more than sixteen questions are open at once.
//! 4. Notifications of changes are remembered, not queued: a flood of them is one.

mod era;
mod handshake;
mod input_required;
mod lists;
mod read_cache;
mod required_pages;
mod server_requests;
mod subscription;
mod tasks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::log::ServerLog;
use crate::message::{self, Message, RpcError};
use crate::names::brief;
use crate::transport::{Inbound, InboundReceiver, Transport, TransportError};

pub(crate) use era::Beginning;
use era::Envelope;
pub use era::Negotiation;
pub(crate) use handshake::Greeting;
pub use handshake::Handshake;
use read_cache::ReadCache;
pub(crate) use server_requests::Asked;
pub use server_requests::{ClientSide, ElicitFuture, Elicitation, ElicitationAnswer, SampleFuture};
use subscription::Freshness;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The server says that it failed.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// It did not get there, or the answer did not get here.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// It took too long.
    #[error("there was no answer within {}", duration_text(.0))]
    TimedOut(Duration),
    /// The server fell silent.
    #[error("nothing was heard for {}", duration_text(.0))]
    Silent(Duration),
    /// The answer cannot be understood.
    #[error("the answer cannot be understood: {0}")]
    Unreadable(String),
}

fn duration_text(time: &Duration) -> String {
    match time.as_millis() {
        ms @ 0..=9999 => format!("{ms} ms"),
        ms => format!("{} s", ms / 1000),
    }
}

/// How a request is getting on, as the server says.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// How far it is.
    pub done: f64,
    /// How far it will get, where that is known.
    pub total: Option<f64>,
    /// In words.
    pub message: Option<String>,
}

/// Is told how a request is getting on.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// What a request may take.
#[derive(Clone, Default)]
pub(crate) struct RequestLimits {
    /// The whole of it.
    pub(crate) time: Option<Duration>,
    /// Between two signs of life.
    pub(crate) silence: Option<Duration>,
    pub(crate) on_progress: Option<OnProgress>,
}

impl RequestLimits {
    /// Gives a request this long.
    pub(crate) fn within(time: Duration) -> Self {
        Self { time: Some(time), ..Self::default() }
    }
}

/// Something to ask.
#[derive(Clone)]
struct Outgoing {
    method: String,
    params: Map<String, Value>,
    /// Headers of its own, where it has any.
    headers: Vec<(String, String)>,
}

impl Outgoing {
    fn new(method: &str, params: Map<String, Value>) -> Self {
        Self { method: method.to_owned(), params, headers: Vec::new() }
    }
}

/// What a server has announced to have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    /// It has gone.
    pub(crate) is_closed: bool,
}

const TOOLS: u8 = 1;
const RESOURCES: u8 = 2;
const PROMPTS: u8 = 4;
const CLOSED: u8 = 8;

/// A way to talk with a server. Copies are the same one.
#[derive(Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    transport: Box<dyn Transport>,
    next_id: AtomicU64,
    /// Requests that wait for an answer; held to add, to take or to look one up.
    pending: Mutex<Pending>,
    /// What has changed and nobody has looked at yet.
    changes: AtomicU8,
    changed: Notify,
    asked: Asked,
    log: Arc<ServerLog>,
    /// What every request says, where there was no handshake.
    envelope: OnceLock<Envelope>,
    /// The lists whose changes are told by a request that is held open, and whether there ever was one.
    subscribed: AtomicU8,
    has_listened: AtomicBool,
    /// Until when lists are fresh; held to read or to note.
    freshness: Mutex<Freshness>,
    reads: ReadCache,
}

#[derive(Default)]
struct Pending {
    open: HashMap<u64, OpenRequest>,
    /// Why there will be no answers any more.
    closed: Option<String>,
}

struct OpenRequest {
    waiter: oneshot::Sender<Result<Value, CallError>>,
    on_progress: Option<OnProgress>,
    /// Is told of each sign of life.
    alive: Arc<Notify>,
}

impl Connection {
    /// Begins to listen to a server.
    pub(crate) fn new(
        transport: Box<dyn Transport>,
        inbound: InboundReceiver,
        asked: Asked,
        log: Arc<ServerLog>,
    ) -> Self {
        let shared = Arc::new(Shared {
            transport,
            next_id: AtomicU64::new(1),
            pending: Mutex::default(),
            changes: AtomicU8::new(0),
            changed: Notify::new(),
            asked,
            log,
            envelope: OnceLock::new(),
            subscribed: AtomicU8::new(0),
            has_listened: AtomicBool::new(false),
            freshness: Mutex::default(),
            reads: ReadCache::default(),
        });
        tokio::spawn(route(Arc::downgrade(&shared), inbound));
        Self { shared }
    }

    /// Asks something and waits for the answer. Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        limits: RequestLimits,
    ) -> Result<Value, CallError> {
        self.exchange(Outgoing::new(method, params), limits, self.shared.envelope.get()).await
    }

    /// One request and its answer.
    async fn exchange(
        &self,
        outgoing: Outgoing,
        limits: RequestLimits,
        envelope: Option<&Envelope>,
    ) -> Result<Value, CallError> {
        let Outgoing { method, mut params, headers } = outgoing;
        if let Some(envelope) = envelope {
            envelope.stamp(&mut params);
        }
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        if limits.on_progress.is_some() {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            meta["progressToken"] = json!(id);
        }
        let (waiter, mut answer) = oneshot::channel();
        let alive = Arc::new(Notify::new());
        let open = OpenRequest { waiter, on_progress: limits.on_progress.clone(), alive: Arc::clone(&alive) };
        self.shared.open(id, open)?;
        let can_cancel = !matches!(method.as_str(), "initialize" | "server/discover");
        let mut guard = Abandonment { shared: &self.shared, id, is_over: false, can_cancel };
        let work = async {
            let message = message::request(id, &method, params);
            self.shared.transport.send_with_headers(message, headers).await?;
            loop {
                tokio::select! {
                    answer = &mut answer => break answer.unwrap_or_else(|_| Err(connection_closed("it stopped answering"))),
                    () = alive.notified() => {}
                    () = silence(limits.silence) => break Err(CallError::Silent(limits.silence.unwrap_or_default())),
                }
            }
        };
        let result = match limits.time {
            Some(time) => tokio::time::timeout_at(Instant::now() + time, work)
                .await
                .unwrap_or(Err(CallError::TimedOut(time))),
            None => work.await,
        };
        guard.is_over = !matches!(result, Err(CallError::TimedOut(_) | CallError::Silent(_)));
        result
    }

    /// Tells the server something.
    pub(crate) async fn notify(&self, method: &str, params: Value) -> Result<(), TransportError> {
        self.shared.transport.send(message::notification(method, params)).await
    }

    /// Tells a server of the older era that the directories that are worked in have changed.
    pub(crate) fn tell_roots_changed(&self) {
        if self.shared.envelope.get().is_some() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let connection = self.clone();
        runtime.spawn(async move {
            let told = connection.notify("notifications/roots/list_changed", Value::Null).await;
            if let Err(error) = told {
                tracing::debug!(target: "loci::mcp", %error, "a server could not be told of directories");
            }
        });
    }

    /// Waits until the server has announced changes, and returns them.
    pub(crate) async fn next_changes(&self) -> Changes {
        loop {
            let found = self.shared.changes.swap(0, Ordering::AcqRel);
            if found != 0 {
                let has = |bit| found & bit != 0;
                return Changes {
                    tools: has(TOOLS),
                    resources: has(RESOURCES),
                    prompts: has(PROMPTS),
                    is_closed: has(CLOSED),
                };
            }
            self.shared.changed.notified().await;
        }
    }

    /// Sees to a message that came by another way.
    pub(crate) fn take(&self, message: Message) {
        take_message(&self.shared, message);
    }

    /// Tells whether parameters of calls are said again in headers: over HTTP, in the newer era.
    pub(crate) fn mirrors_params(&self) -> bool {
        self.shared.envelope.get().is_some() && self.shared.transport.has_headers()
    }

    /// Returns why the server has gone, if it has.
    pub(crate) fn closed(&self) -> Option<String> {
        self.shared.pending().closed.clone()
    }

    /// Ends it: nothing more is answered, and what was started for it is ended.
    pub(crate) async fn close(&self) {
        self.shared.end("it was closed");
        self.shared.transport.close().await;
    }
}

/// Ends after a while; never, without a limit.
async fn silence(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn connection_closed(why: &str) -> CallError {
    CallError::Transport(TransportError::Closed(why.to_owned()))
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self, id: u64, request: OpenRequest) -> Result<(), CallError> {
        let mut pending = self.pending();
        match &pending.closed {
            Some(why) => Err(connection_closed(why)),
            None => {
                pending.open.insert(id, request);
                Ok(())
            }
        }
    }

    fn answer(&self, id: u64, result: Result<Value, CallError>) {
        let open = self.pending().open.remove(&id);
        match open {
            // Whoever has stopped waiting needs no answer.
            Some(open) => drop(open.waiter.send(result)),
            None => tracing::debug!(target: "loci::mcp", id, "an answer that nobody waits for"),
        }
    }

    /// An answer will not come, and nobody can tell whose: no request waits for ever.
    fn lose_open(&self, error: &TransportError) {
        let open = std::mem::take(&mut self.pending().open);
        for (_, request) in open {
            drop(request.waiter.send(Err(error.clone().into())));
        }
    }

    /// Nothing more will be answered.
    fn end(&self, why: &str) {
        let open = {
            let mut pending = self.pending();
            pending.closed.get_or_insert_with(|| why.to_owned());
            std::mem::take(&mut pending.open)
        };
        for (_, request) in open {
            drop(request.waiter.send(Err(connection_closed(why))));
        }
        self.asked.stop();
        self.announce(CLOSED);
    }

    fn announce(&self, change: u8) {
        self.changes.fetch_or(change, Ordering::AcqRel);
        self.changed.notify_one();
    }

    fn take_notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/tools/list_changed" => self.announce(TOOLS),
            "notifications/resources/list_changed" => {
                self.reads.forget(None);
                self.announce(RESOURCES);
            }
            "notifications/resources/updated" => self.reads.forget(params.get("uri").and_then(Value::as_str)),
            "notifications/subscriptions/acknowledged" => self.take_acknowledgement(params),
            "notifications/prompts/list_changed" => self.announce(PROMPTS),
            "notifications/progress" => self.take_progress(params),
            "notifications/message" => {
                let level = params.get("level").and_then(Value::as_str).unwrap_or("info");
                let data = params.get("data").unwrap_or(&Value::Null);
                let text = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
                self.log.note(&format!("{level}: {}", brief(&text)));
            }
            "notifications/cancelled" => self.asked.cancel(params.get("requestId").unwrap_or(&Value::Null)),
            "notifications/elicitation/complete" => {
                self.asked.completed(params.get("elicitationId").and_then(Value::as_str).unwrap_or_default());
            }
            other => {
                tracing::debug!(target: "loci::mcp", method = other, "a notification that means nothing to us");
            }
        }
    }

    fn take_progress(&self, params: &Value) {
        let token = params.get("progressToken");
        let id = token.and_then(|token| token.as_u64().or_else(|| token.as_str()?.parse().ok()));
        let pending = self.pending();
        let Some(open) = id.and_then(|id| pending.open.get(&id)) else { return };
        open.alive.notify_one();
        let on_progress = open.on_progress.clone();
        drop(pending);
        if let Some(on_progress) = on_progress {
            on_progress(Progress {
                done: params.get("progress").and_then(Value::as_f64).unwrap_or_default(),
                total: params.get("total").and_then(Value::as_f64),
                message: params.get("message").and_then(Value::as_str).map(brief),
            });
        }
    }
}

fn take_message(shared: &Arc<Shared>, message: Message) {
    match message {
        Message::Response { id, result } => shared.answer(id, result.map_err(CallError::Rpc)),
        Message::Notification { method, params } => shared.take_notification(&method, &params),
        Message::Request { id, method, params } => server_requests::answer(shared, id, method, params),
    }
}

/// Routes what comes from a server, until it has gone or nobody holds the connection any more.
async fn route(shared: std::sync::Weak<Shared>, mut inbound: InboundReceiver) {
    while let Some(news) = inbound.recv().await {
        let Some(shared) = shared.upgrade() else { return };
        match news {
            Inbound::Message(message) => take_message(&shared, message),
            Inbound::Lost { id, error } => shared.answer(id, Err(error.into())),
            Inbound::LostUnknown(error) => shared.lose_open(&error),
            Inbound::Closed(why) => {
                shared.log.note(&format!("gone: {why}"));
                shared.end(&why);
                return;
            }
        }
    }
    if let Some(shared) = shared.upgrade() {
        shared.end("it stopped answering");
    }
}

/// Cancels a request when it is dropped, unless that is over.
struct Abandonment<'a> {
    shared: &'a Arc<Shared>,
    id: u64,
    is_over: bool,
    can_cancel: bool,
}

impl Drop for Abandonment<'_> {
    fn drop(&mut self) {
        let was_open = self.shared.pending().open.remove(&self.id).is_some();
        if self.is_over || !was_open {
            return;
        }
        let is_known = self.shared.transport.abandon(self.id);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.can_cancel && !is_known {
            let (shared, id) = (Arc::clone(self.shared), self.id);
            runtime.spawn(async move {
                let params = json!({"requestId": id, "reason": "nobody waits for the answer any more"});
                let sent =
                    shared.transport.send(message::notification("notifications/cancelled", params)).await;
                if let Err(error) = sent {
                    tracing::debug!(target: "loci::mcp", %error, "a request could not be cancelled");
                }
            });
        }
    }
}
