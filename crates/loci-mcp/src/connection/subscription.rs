//! What a server of the newer era announces: one request is held open, and changes of its lists come by it. Where that is
//! not offered, lists are as fresh as the server said when it gave them, and are asked for again when they are needed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{CallError, Connection, Handshake, PROMPTS, RESOURCES, RequestLimits, Shared, TOOLS};
use crate::transport::TransportError;

/// How often the request is sent again without having been taken, and how often when it always ends.
const MOST_REFUSED: u32 = 5;
const MOST_ENDED: u32 = 20;
/// The first pause before that, which doubles, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest time that a server may call a list fresh.
const LONGEST_FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// The lists that may change: the capability, the name in a subscription, the method that gives it.
const LISTS: [(u8, &str, &str, &str); 3] = [
    (TOOLS, "tools", "toolsListChanged", "tools/list"),
    (RESOURCES, "resources", "resourcesListChanged", "resources/list"),
    (PROMPTS, "prompts", "promptsListChanged", "prompts/list"),
];

/// Until when lists are fresh, where the server said so: tools, resources, prompts.
pub(super) type Freshness = [Option<Instant>; LISTS.len()];

impl Connection {
    /// Listens to changes for as long as the server lives; never ends by itself. One that cannot be reached any more is
    /// taken to have gone.
    pub(crate) async fn keep_listening(&self, handshake: &Handshake) {
        let announces = |key: &str| {
            let capability = handshake.capabilities.get(key);
            capability.and_then(|it| it.get("listChanged")).and_then(Value::as_bool).unwrap_or(false)
        };
        let wanted: Map<String, Value> = LISTS
            .iter()
            .filter(|(_, capability, ..)| announces(capability))
            .map(|(_, _, name, _)| ((*name).to_owned(), json!(true)))
            .collect();
        if self.shared.envelope.get().is_some() && !wanted.is_empty() {
            self.listen(&wanted).await;
        }
        std::future::pending::<()>().await;
    }

    async fn listen(&self, wanted: &Map<String, Value>) {
        let (mut n_refused, mut n_ended, mut pause) = (0, 0, PAUSE);
        loop {
            let params = Map::from_iter([("notifications".to_owned(), Value::Object(wanted.clone()))]);
            let begun = Instant::now();
            let ended = self.request("subscriptions/listen", params, RequestLimits::default()).await;
            let was_taken = self.shared.subscribed.swap(0, Ordering::AcqRel) != 0;
            match ended {
                Err(CallError::Transport(TransportError::Closed(_))) => return,
                // It does not want to be listened to.
                Err(
                    CallError::Rpc(_)
                    | CallError::Transport(TransportError::Status { status: 400..=499, .. }),
                ) if !was_taken => {
                    return;
                }
                Err(error) if !was_taken => {
                    n_refused += 1;
                    if n_refused > MOST_REFUSED {
                        return self.shared.end(&error.to_string());
                    }
                }
                Ok(_) | Err(_) => n_ended += 1,
            }
            if begun.elapsed() > LONGEST_PAUSE {
                (n_refused, n_ended, pause) = (0, 0, PAUSE);
            }
            if n_ended > MOST_ENDED {
                self.shared.log.note("its changes are not listened to any more: it always ends that");
                return;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Notes how long a list is fresh, as the server says; only servers of the newer era have a say.
    pub(super) fn note_freshness(&self, method: &str, ttl: Option<Duration>) {
        let Some(at) = LISTS.iter().position(|list| list.3 == method) else { return };
        if self.shared.envelope.get().is_some() {
            let until = ttl.map(|ttl| Instant::now() + ttl.min(LONGEST_FRESH));
            self.shared.freshness.lock().unwrap_or_else(PoisonError::into_inner)[at] = until;
        }
    }

    /// Has lists asked for anew that the server does not call fresh any more and whose changes nobody would tell.
    pub(crate) fn refresh_stale(&self) {
        let subscribed = self.shared.subscribed.load(Ordering::Acquire);
        let now = Instant::now();
        let mut stale = 0;
        let mut freshness = self.shared.freshness.lock().unwrap_or_else(PoisonError::into_inner);
        for ((bit, ..), until) in LISTS.iter().zip(freshness.iter_mut()) {
            if subscribed & bit == 0 && until.is_some_and(|until| until <= now) {
                // Until it has come, it need not be asked for again.
                *until = None;
                stale |= bit;
            }
        }
        drop(freshness);
        if stale != 0 {
            self.shared.announce(stale);
        }
    }
}

impl Shared {
    /// Takes the news that changes are told from now on. What changed while nobody listened was not told.
    pub(super) fn take_acknowledgement(&self, params: &Value) {
        let honoured = params.get("notifications").unwrap_or(&Value::Null);
        let is_honoured = |name: &str| honoured.get(name).and_then(Value::as_bool).unwrap_or(false);
        let bits =
            LISTS.iter().filter(|(_, _, name, _)| is_honoured(name)).fold(0, |bits, list| bits | list.0);
        self.subscribed.store(bits, Ordering::Release);
        if self.has_listened.swap(true, Ordering::AcqRel) && bits != 0 {
            self.announce(bits);
        }
    }
}

/// Returns how long a page is fresh, where the server says so.
pub(super) fn time_to_live(page: &Value) -> Option<Duration> {
    page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis)
}
