//! The way to a session, wherever it runs: ask it something, hear what happens.
//!
//! In the session's own process requests go to the service and events come out of its ring. Over a socket ([`super::socket`])
//! both come from a connection that fills a ring of its own. A front end cannot tell the difference.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loci_core::ids::SessionId;
use loci_protocol::frame::{Sequenced, Since};
use loci_protocol::{Answer, Ask, Event, Request, RequestError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use super::event_ring::{CAPACITY, EventRing};

/// How many events are read at once.
const BATCH: usize = 64;

/// An answer, or why there is none.
pub(super) type Reply = Result<Answer, RequestError>;

/// A client, as the service knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClientName {
    /// Unlike all others.
    pub(super) number: u64,
    /// What it calls itself.
    pub(super) name: String,
    /// Whether it only looks on.
    pub(super) is_viewer: bool,
}

/// A request on its way.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) from: ClientName,
    pub(super) request: Request,
    pub(super) reply: oneshot::Sender<Reply>,
}

/// What comes to those who look after requests.
#[derive(Debug)]
pub(super) enum ToService {
    /// Somebody asks.
    Asked(Asked),
    /// A client is gone: what it held is free.
    Gone(ClientName),
}

/// What readers of a session's events share.
#[derive(Debug)]
pub(super) struct EventLog {
    /// Held for a few lines.
    ring: Mutex<EventRing>,
    /// The number of the last event; closed when nothing follows.
    latest: watch::Sender<u64>,
    /// The run of the process that numbers them.
    epoch: String,
}

impl EventLog {
    pub(super) fn new(epoch: String) -> Self {
        Self { ring: Mutex::new(EventRing::new(CAPACITY)), latest: watch::Sender::new(0), epoch }
    }

    pub(super) fn epoch(&self) -> &str {
        &self.epoch
    }

    /// The number of the last event there was.
    pub(super) fn last(&self) -> u64 {
        self.ring().last()
    }

    /// Adds an event; returns its number.
    pub(super) fn push(&self, event: Arc<Event>) -> u64 {
        let seq = self.ring().push(event);
        self.latest.send_replace(seq);
        seq
    }

    /// Adds an event that was numbered elsewhere.
    pub(super) fn insert(&self, sequenced: Sequenced) {
        let seq = sequenced.seq;
        self.ring().insert(sequenced);
        self.latest.send_replace(seq);
    }

    /// Notes that everything up to a number is gone.
    pub(super) fn skip_to(&self, seq: u64) {
        self.ring().skip_to(seq);
        self.latest.send_replace(seq);
    }

    fn ring(&self) -> MutexGuard<'_, EventRing> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the end of events when the one who writes them is gone.
#[derive(Debug)]
pub(super) struct EventWriter(pub(super) Arc<EventLog>, watch::Sender<bool>);

impl EventWriter {
    /// Makes the writer of a log; its readers hear of its end.
    pub(super) fn new(log: Arc<EventLog>) -> (Self, watch::Receiver<bool>) {
        let (sender, receiver) = watch::channel(false);
        (Self(log, sender), receiver)
    }
}

/// What is heard.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Something happened.
    Event(Sequenced),
    /// Events up to this number were missed: look at the session anew.
    Missed {
        /// The last that is missing.
        seq: u64,
    },
}

/// Where a reader begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventsFrom {
    /// With what happens from now on.
    Now,
    /// With all that is kept.
    Start,
    /// Behind a place.
    Behind(Since),
}

/// The events of a session, one after the other.
#[derive(Debug)]
pub struct EventStream {
    log: Arc<EventLog>,
    latest: watch::Receiver<u64>,
    over: watch::Receiver<bool>,
    /// The last event that was heard.
    seq: u64,
    read: std::collections::VecDeque<Sequenced>,
}

impl EventStream {
    /// Waits for what is next; nothing follows when the session is over, or the way to it is gone. Nothing is lost when
    /// this is dropped before it is done.
    pub async fn next(&mut self) -> Option<Heard> {
        loop {
            if let Some(sequenced) = self.read.pop_front() {
                self.seq = sequenced.seq;
                return Some(Heard::Event(sequenced));
            }
            self.latest.mark_unchanged();
            let read = self.log.ring().read(self.seq, BATCH);
            match read {
                Ok(events) if events.is_empty() => {}
                Ok(events) => {
                    self.read = events.into();
                    continue;
                }
                Err(missing) => {
                    self.seq = missing.seq;
                    return Some(Heard::Missed { seq: missing.seq });
                }
            }
            tokio::select! {
                biased;
                changed = self.latest.changed() => if changed.is_err() { return None },
                // The writer is gone; what it wrote last was read above, unless it came in between.
                _ = self.over.wait_for(|is_over| *is_over) => {
                    if self.log.last() <= self.seq {
                        return None;
                    }
                }
            }
        }
    }

    /// The place behind what was heard last, to go on from.
    pub fn place(&self) -> Since {
        Since { epoch: self.log.epoch().to_owned(), seq: self.seq }
    }
}

/// The way to a session. Clones are the same client.
#[derive(Debug, Clone)]
pub struct SessionClient {
    name: ClientName,
    session: SessionId,
    requests: UnboundedSender<ToService>,
    log: Arc<EventLog>,
    over: watch::Receiver<bool>,
}

impl SessionClient {
    pub(super) fn new(
        name: ClientName,
        session: SessionId,
        requests: UnboundedSender<ToService>,
        log: Arc<EventLog>,
        over: watch::Receiver<bool>,
    ) -> Self {
        Self { name, session, requests, log, over }
    }

    /// The session, as it was when the way to it was made.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Asks, and waits for the answer.
    pub async fn ask<Q: Ask>(&self, request: Q) -> Result<Q::Answer, RequestError> {
        let answer = self.send(request.into()).await?;
        Q::open(answer).map_err(|_| {
            RequestError::failed("The session answered another request than the one that was asked")
        })
    }

    /// Asks; whoever cares for the answer awaits it. Requests are taken in the order in which they are sent.
    pub fn send(&self, request: Request) -> impl Future<Output = Reply> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { from: self.name.clone(), request, reply };
        let is_sent = self.requests.send(ToService::Asked(asked)).is_ok();
        async move {
            if !is_sent {
                return Err(RequestError::session_over());
            }
            answer.await.unwrap_or_else(|_| Err(RequestError::session_over()))
        }
    }

    /// Hears what happens. Any number may listen, each at its own pace; the session waits for none.
    pub fn events(&self, from: EventsFrom) -> EventStream {
        let seq = match from {
            EventsFrom::Now => self.log.last(),
            EventsFrom::Start => self.log.ring().kept_from(),
            EventsFrom::Behind(place) if place.epoch == self.log.epoch() => place.seq,
            // Numbers of another run say nothing here: everything since is missing.
            EventsFrom::Behind(_) => 0,
        };
        EventStream {
            log: Arc::clone(&self.log),
            latest: self.log.latest.subscribe(),
            over: self.over.clone(),
            seq,
            read: std::collections::VecDeque::new(),
        }
    }

    /// Gives back what the client holds: its seat.
    pub fn leave(self) {
        // A session that is over holds nothing.
        drop(self.requests.send(ToService::Gone(self.name)));
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        self.1.send_replace(true);
    }
}
