//! One request and its answer, as a machine with a few phases that is asked for the next event.
//!
//! Timers: the head of the answer must come within the request timeout. From then on two clocks run: one for
//! bytes of any kind, one for events other than pings. A reader that is itself slow trips neither, because
//! bytes that are already there are taken before a clock is looked at.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, Stream, StreamExt};
use loci_core::ids::RequestId;
use loci_core::stream::{Failure, FailureKind, RateLimits, StreamEvent};
use loci_http::{EVENT_CAP, Transport, root_words};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, StatusCode, Version};
use tokio::time::{Duration, Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::config::Timeouts;
use crate::failure::{self, RequestFacts};
use crate::framing::FrameReader;
use crate::provider::{Decode, Provider, Pulse};
use crate::rate_limits;
use crate::request::Request;

/// The most of an error's body that is read.
const ERROR_CAP: usize = 256 * 1024;
/// How long the end of a body is awaited after the answer's own end, on the side.
const DRAIN_TIME: Duration = Duration::from_secs(2);
/// How often it is looked for before it is left to the side: it usually comes with the last event.
const DRAIN_LOOKS: usize = 8;

/// What all exchanges of one client share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) provider: Provider,
    pub(crate) transport: Arc<Transport>,
    pub(crate) timeouts: Timeouts,
}

/// Returns the events of one exchange.
pub(crate) fn events(
    shared: Arc<Shared>,
    request: Arc<Request>,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<StreamEvent, Failure>> + Send + 'static {
    let request = shared.provider.fit(&request);
    let exchange =
        Exchange { shared, request, cancel, auth: Auth::None, phase: Phase::Unsent, queue: VecDeque::new() };
    let events = futures_util::stream::unfold(exchange, |mut exchange| async move {
        let item = exchange.next().await?;
        Some((item, exchange))
    });
    // Whoever asks again after the end gets the end again.
    events.fuse()
}

struct Exchange {
    shared: Arc<Shared>,
    request: Arc<Request>,
    cancel: CancellationToken,
    /// What we proved ourselves with.
    auth: Auth,
    phase: Phase,
    /// Events that are decoded and not yet taken; they always go before the phase is looked at.
    queue: VecDeque<StreamEvent>,
}

enum Phase {
    Unsent,
    Reading(Box<Reading>),
    /// The answer is complete; the end of its body is looked for before its last event is given.
    Ending(Box<Response>, StreamEvent),
    Failed(Failure),
    Over,
}

impl Exchange {
    async fn next(&mut self) -> Option<Result<StreamEvent, Failure>> {
        let cancel = self.cancel.clone();
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            if let Some(event) = self.queue.pop_front() {
                return Some(Ok(event));
            }
            // Dropping what is in flight is what aborts it.
            let result = match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Unsent => cancel.run_until_cancelled(self.send()).await?,
                Phase::Reading(reading) => cancel.run_until_cancelled(reading.read(&mut self.queue)).await?,
                Phase::Ending(response, ended) => {
                    cancel.run_until_cancelled(end_body(*response)).await?;
                    self.queue.push_back(ended);
                    Ok(Phase::Over)
                }
                Phase::Failed(failure) => return Some(Err(failure)),
                Phase::Over => return None,
            };
            self.phase = result.unwrap_or_else(|failure| {
                let provider = &self.shared.provider;
                Phase::Failed(provider.redacted(provider.explained(failure), &self.auth))
            });
        }
    }

    async fn send(&mut self) -> Result<Phase, Failure> {
        let deadline = Instant::now() + self.shared.timeouts.request;
        let response = self.response(deadline).await?;
        let request_id = failure::request_id(response.headers());
        if !response.status().is_success() {
            return Err(self.refused(response, deadline).await);
        }
        let mut response = response;
        let first = match body_kind(&response) {
            BodyKind::Stream => {
                return Ok(Phase::Reading(Box::new(self.reading(response, None, request_id))));
            }
            BodyKind::Whole => None,
            BodyKind::Untold => {
                let idle = self.shared.timeouts.byte_idle;
                let first = timeout_at(Instant::now() + idle, response.chunk()).await;
                let first = first.map_err(|_| loci_http::stalled(idle))?.map_err(|error| {
                    Failure::new(FailureKind::Cut, format!("The answer broke off: {}", root_words(&error)))
                })?;
                if !first.as_deref().is_some_and(is_json) {
                    return Ok(Phase::Reading(Box::new(self.reading(response, first, request_id))));
                }
                first
            }
        };
        let body = whole_body(first, response, deadline, EVENT_CAP).await.map_err(|error| match error {
            BodyError::Broken(how) => Failure::new(FailureKind::Cut, format!("The answer broke off: {how}")),
            BodyError::Late => self.late(),
        })?;
        let protocol = &self.shared.provider.protocol;
        self.queue.extend(protocol.read_whole(&self.request, &body, request_id)?);
        Ok(Phase::Over)
    }

    /// Sends the request, and once more when its credential was refused and there is another.
    async fn response(&mut self, deadline: Instant) -> Result<Response, Failure> {
        let shared = Arc::clone(&self.shared);
        let source = &shared.provider.source;
        tracing::debug!(target: "loci::api", "credential asked for");
        self.auth = source.current().await?;
        let response = self.post(deadline).await?;
        // Amazon says 403 of keys that have expired, and of good keys that may not do this.
        let error = response.headers().get("x-amzn-errortype").and_then(|error| error.to_str().ok());
        let is_denied = error.is_some_and(|error| error.starts_with("AccessDenied"));
        let is_refused = response.status() == StatusCode::UNAUTHORIZED
            || response.status() == StatusCode::FORBIDDEN && matches!(self.auth, Auth::Aws(_)) && !is_denied;
        if !is_refused || !source.refused(&self.auth) {
            return Ok(response);
        }
        let fresh = source.current().await?;
        if fresh == self.auth {
            return Ok(response);
        }
        self.auth = fresh;
        self.post(deadline).await
    }

    async fn post(&self, deadline: Instant) -> Result<Response, Failure> {
        let prepared = self.shared.provider.prepare(&self.request, &self.auth)?;
        let sent = Instant::now();
        tracing::debug!(target: "loci::api", n_bytes = prepared.body.len(), "request sent");
        let response =
            timeout_at(deadline, self.shared.transport.post(prepared)).await.map_err(|_| self.late())??;
        let (status, after_ms) = (response.status().as_u16(), sent.elapsed().as_millis() as u64);
        let request_id = failure::request_id(response.headers());
        let request_id = request_id.as_ref().map_or("-", RequestId::as_str);
        tracing::debug!(target: "loci::api", status, request_id, after_ms, "head of the answer");
        Ok(response)
    }

    fn late(&self) -> Failure {
        loci_http::no_answer(&self.shared.transport.route(), self.shared.timeouts.request)
    }

    /// The status alone tells most, so a body that does not come is done without.
    async fn refused(&self, response: Response, deadline: Instant) -> Failure {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = whole_body(None, response, deadline, ERROR_CAP).await.unwrap_or_default();
        let provider = &self.shared.provider;
        let asked = RequestFacts { model: self.request.model_and_window().0, auth: &self.auth };
        let mut failure = provider.protocol.failure(status, &headers, &body, asked);
        failure.rate_limits = rate_limits::from_headers(&headers);
        failure
    }

    fn reading(&self, response: Response, first: Option<Bytes>, request_id: Option<RequestId>) -> Reading {
        let provider = &self.shared.provider;
        Reading {
            first,
            limits: rate_limits::from_headers(response.headers()),
            response,
            frames: (provider.framing)(),
            decoder: provider.protocol.decoder(&self.request, request_id.clone()),
            request_id,
            timeouts: self.shared.timeouts,
            last_event: Instant::now(),
        }
    }
}

/// A streamed answer of which the head has come.
struct Reading {
    /// What was read of it to know what it is.
    first: Option<Bytes>,
    response: Response,
    frames: Box<dyn FrameReader>,
    decoder: Box<dyn Decode>,
    request_id: Option<RequestId>,
    /// What the head of the answer says of limits, until it is told.
    limits: Option<Box<RateLimits>>,
    timeouts: Timeouts,
    last_event: Instant,
}

impl Reading {
    /// Reads once and adds what it brought to `queue`.
    async fn read(mut self: Box<Self>, queue: &mut VecDeque<StreamEvent>) -> Result<Phase, Failure> {
        let result = self.step(queue).await.map_err(|mut failure| {
            failure.request_id = failure.request_id.or_else(|| self.request_id.clone());
            failure
        });
        result?;
        if !self.decoder.has_ended() {
            return Ok(Phase::Reading(self));
        }
        Ok(match queue.pop_back() {
            Some(ended) => Phase::Ending(Box::new(self.response), ended),
            None => Phase::Over,
        })
    }

    async fn step(&mut self, queue: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        if let Some(bytes) = self.first.take() {
            self.frames.push(&bytes);
            return self.decode_frames(queue);
        }
        let now = Instant::now();
        let by_byte = (now + self.timeouts.byte_idle, self.timeouts.byte_idle);
        let by_event = (self.last_event + self.timeouts.event_idle, self.timeouts.event_idle);
        let (deadline, waited) = by_byte.min(by_event);
        match timeout_at(deadline, self.response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                self.frames.push(&bytes);
                self.decode_frames(queue)
            }
            Ok(Ok(None)) => self.finish(queue),
            Ok(Err(error)) => Err(self.decoder.cut(&root_words(&error.without_url()))),
            Err(_) => Err(loci_http::stalled(waited)),
        }
    }

    fn decode_frames(&mut self, queue: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        while !self.decoder.has_ended() {
            let frame = self.frames.next_frame().map_err(|error| failure::malformed(&error.to_string()))?;
            let Some(frame) = frame else { break };
            if self.decoder.decode(&frame, queue)? == Pulse::Progress {
                self.last_event = Instant::now();
            }
            self.tell_limits(queue);
        }
        Ok(())
    }

    fn tell_limits(&mut self, queue: &mut VecDeque<StreamEvent>) {
        if self.limits.is_none() {
            return;
        }
        if let Some(StreamEvent::Started(started)) =
            queue.iter_mut().find(|event| matches!(event, StreamEvent::Started(_)))
        {
            started.rate_limits = self.limits.take();
        }
    }

    fn finish(&mut self, queue: &mut VecDeque<StreamEvent>) -> Result<(), Failure> {
        if let Some(frame) = self.frames.last_frame() {
            self.decoder.decode(&frame, queue)?;
        }
        self.decoder.end_of_stream(queue)?;
        if self.decoder.has_ended() { Ok(()) } else { Err(self.decoder.cut("the stream ended early")) }
    }
}

/// How a body is to be read.
enum BodyKind {
    /// Event by event.
    Stream,
    /// In one piece: JSON, or a page of the web.
    Whole,
    /// Its head does not say; its first byte does.
    Untold,
}

/// Tells from the head how a body is to be read; some gateways name no type or a wrong one.
fn body_kind(response: &Response) -> BodyKind {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.to_ascii_lowercase();
    if kind.contains("json") || kind.contains("html") {
        BodyKind::Whole
    } else if kind.contains("event") {
        BodyKind::Stream
    } else {
        BodyKind::Untold
    }
}

/// Tells whether a body that begins so is JSON: no stream of events begins with a brace.
fn is_json(first: &[u8]) -> bool {
    first.trim_ascii_start().starts_with(b"{")
}

/// Reads the few bytes after the answer's end, so that an HTTP/1 connection can serve the next request too, but
/// lets nobody wait for them: a server whose last packet is held back for an acknowledgement takes 40 ms.
///
/// HTTP/2 connections outlive their streams anyway.
async fn end_body(response: Response) {
    if response.version() >= Version::HTTP_2 {
        return;
    }
    let mut rest = Box::pin(drain(response));
    for _ in 0..DRAIN_LOOKS {
        if (&mut rest).now_or_never().is_some() {
            return;
        }
        tokio::task::yield_now().await;
    }
    tokio::spawn(rest);
}

async fn drain(mut response: Response) {
    let rest = timeout(DRAIN_TIME, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
    // A server that keeps the body open costs its connection, nothing else.
    drop(rest);
}

enum BodyError {
    Broken(String),
    Late,
}

/// Reads a body, behind what was read of it already, to its end or up to `cap` bytes.
async fn whole_body(
    first: Option<Bytes>,
    mut response: Response,
    deadline: Instant,
    cap: usize,
) -> Result<Vec<u8>, BodyError> {
    let mut body = first.map(Vec::from).unwrap_or_default();
    while body.len() < cap {
        match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
            Ok(Ok(None)) => break,
            Ok(Err(error)) => return Err(BodyError::Broken(root_words(&error))),
            Err(_) => return Err(BodyError::Late),
        }
    }
    Ok(body)
}
