//! The server: a few routes over a [`Database`].
//!
//! Every request carries a member's token, which opens one repository. A write says what it expects to replace; the
//! database decides in one transaction. What the client checks is checked again: names, sizes and secrets.

mod data_migration;
mod limits;
mod postgres;
mod sqlite;
mod store;

use std::future::Future;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{AUTHORIZATION, ETAG, IF_MATCH, IF_NONE_MATCH, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::ListenerExt;
use loci_context::{ContentHash, EntryName, SecretFound, TEAM_ENTRY_BYTES, find_secrets};
use loci_stdx::{Clock, rfc3339_millis};
use tokio::net::TcpListener;

pub use data_migration::Inventory;
pub use limits::Limits;
pub use store::{Database, StoreError};

use crate::http::RepositoryName;
use crate::remote::Expected;
use limits::Counter;
use store::{Deed, Member, Sent, Written};

/// A server that is not running yet.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
}

/// Why the server stopped.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The connection to the world failed.
    #[error("Failed to serve the team's memories")]
    Listen(#[from] io::Error),
}

#[derive(Debug)]
struct ServerState {
    database: Database,
    clock: Arc<dyn Clock>,
    limits: Limits,
    counter: Counter,
}

impl Server {
    /// Makes a server of a database.
    pub fn new(database: Database, clock: Arc<dyn Clock>, limits: Limits) -> Self {
        Self { state: Arc::new(ServerState { database, clock, limits, counter: Counter::default() }) }
    }

    /// Answers requests until `stop` is done; those under way are finished.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ServeError> {
        let entries = "/v1/repositories/{repository}/entries";
        let router = Router::new()
            .route(entries, get(list))
            .route(&format!("{entries}/{{*name}}"), get(read).put(write))
            .layer(DefaultBodyLimit::max(TEAM_ENTRY_BYTES))
            .with_state(self.state);
        // Small answers must not wait for the acknowledgement of the one before.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        Ok(axum::serve(listener, router).with_graceful_shutdown(stop).await?)
    }
}

/// An answer that is not what was asked for.
enum Refusal {
    /// With these words.
    Plain(StatusCode, String),
    /// Come back in so many seconds.
    TooMany(i64),
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Plain(status, words) => (status, words).into_response(),
            Self::TooMany(wait) => {
                let wait = [(RETRY_AFTER, wait.to_string())];
                (StatusCode::TOO_MANY_REQUESTS, wait, "Too many requests in this minute").into_response()
            }
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        let status = match error {
            StoreError::Busy => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        refusal(status, error.to_string())
    }
}

fn refusal(status: StatusCode, words: impl Into<String>) -> Refusal {
    Refusal::Plain(status, words.into())
}

type Answer = Result<Response, Refusal>;

async fn list(
    State(state): State<Arc<ServerState>>,
    Path(repository): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let member = state.admit(&repository, &headers).await?;
    let entries = state.database.store().list(&member.repository).await?;
    Ok(axum::Json(serde_json::json!({ "entries": entries })).into_response())
}

async fn read(
    State(state): State<Arc<ServerState>>,
    Path((repository, name)): Path<(String, String)>,
    headers: HeaderMap,
) -> Answer {
    let member = state.admit(&repository, &headers).await?;
    let name = entry_name(&name)?;
    let text = state.database.store().text(&member.repository, &name).await?;
    let text = text.ok_or_else(|| refusal(StatusCode::NOT_FOUND, format!("There is no `{name}`")))?;
    Ok(([(ETAG, format!("\"{}\"", ContentHash::of(&text)))], text).into_response())
}

async fn write(
    State(state): State<Arc<ServerState>>,
    Path((repository, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    let member = state.admit(&repository, &headers).await?;
    let name = entry_name(&name)?;
    let expected = expected(&headers).ok_or_else(|| {
        refusal(StatusCode::PRECONDITION_REQUIRED, "Say If-Match: \"<hash>\" or If-None-Match: *")
    })?;
    let text = String::from_utf8(body.into()).ok().filter(|text| !text.contains('\0'));
    let text =
        text.ok_or_else(|| refusal(StatusCode::UNPROCESSABLE_ENTITY, "It is not UTF-8 without NUL"))?;
    let (text, found) = scanned(&name, text).await?;
    if let Some(found) = found {
        state.refused(&member, &member.repository, "secret").await?;
        let words = match found.line {
            0 => format!("The name holds a secret by rule `{}`", found.rule),
            line => format!("Line {line} of `{name}` holds a secret by rule `{}`", found.rule),
        };
        return Err(refusal(StatusCode::UNPROCESSABLE_ENTITY, words));
    }
    let hash = ContentHash::of(&text);
    let sent = Sent { member, name: name.clone(), text, hash: hash.clone(), expected, now: state.now() };
    let written = state.database.store().write(sent).await?;
    Ok(written_response(&name, &hash, &written))
}

/// Looks for secrets on a thread that may take its time.
async fn scanned(name: &EntryName, text: String) -> Result<(String, Option<SecretFound>), Refusal> {
    let name = name.clone();
    let scan = move || {
        let in_name = find_secrets(name.as_str()).into_iter().map(|found| SecretFound { line: 0, ..found });
        let found = in_name.chain(find_secrets(&text)).next();
        (text, found)
    };
    let failed = |_| refusal(StatusCode::INTERNAL_SERVER_ERROR, "The request could not be finished");
    tokio::task::spawn_blocking(scan).await.map_err(failed)
}

/// Says what became of a text.
fn written_response(name: &EntryName, hash: &ContentHash, written: &Written) -> Response {
    let tagged =
        |status: StatusCode, hash: &ContentHash| (status, [(ETAG, format!("\"{hash}\""))]).into_response();
    match written {
        Written::Created => tagged(StatusCode::CREATED, hash),
        Written::Replaced | Written::Already => tagged(StatusCode::OK, hash),
        Written::Conflict(Some(now)) => tagged(StatusCode::PRECONDITION_FAILED, now),
        Written::Conflict(None) => StatusCode::PRECONDITION_FAILED.into_response(),
        Written::Clash => {
            let words = format!("Another name differs from `{name}` only by case");
            refusal(StatusCode::CONFLICT, words).into_response()
        }
        Written::Full => {
            refusal(StatusCode::INSUFFICIENT_STORAGE, "The repository is full".to_owned()).into_response()
        }
    }
}

impl ServerState {
    /// Finds out who asks, and whether they may.
    async fn admit(&self, repository: &str, headers: &HeaderMap) -> Result<Member, Refusal> {
        let member = match bearer(headers) {
            Some(token) => self.database.store().member(&ContentHash::of(token)).await?,
            None => None,
        };
        let who = member.as_ref().map(|it| it.id);
        self.counter.count(who, self.clock.now().as_second(), &self.limits).map_err(Refusal::TooMany)?;
        let member = member.ok_or_else(|| refusal(StatusCode::UNAUTHORIZED, "No member has this token"))?;
        if member.repository != repository {
            self.refused(&member, repository, "forbidden").await?;
            return Err(refusal(StatusCode::FORBIDDEN, "This token is for another repository"));
        }
        Ok(member)
    }

    async fn refused(
        &self,
        member: &Member,
        repository: &str,
        outcome: &'static str,
    ) -> Result<(), StoreError> {
        // What is asked for may be any text, and no line of the log is to be a stranger's.
        let repository =
            RepositoryName::parse(repository).map_or("-".to_owned(), |it| it.as_str().to_owned());
        let member = member.name.clone();
        let deed = Deed { member, repository, action: "request", name: None, hash: None, outcome };
        self.database.store().note(deed, &self.now()).await
    }

    fn now(&self) -> String {
        rfc3339_millis(self.clock.now())
    }
}

/// Returns the token of a request.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn entry_name(name: &str) -> Result<EntryName, Refusal> {
    EntryName::parse(name).map_err(|error| refusal(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))
}

/// Reads what a write expects to replace.
fn expected(headers: &HeaderMap) -> Option<Expected> {
    let text = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
    match (text(IF_MATCH), text(IF_NONE_MATCH)) {
        (Some(tag), None) => ContentHash::parse(tag.trim_matches('"')).map(Expected::Hash),
        (None, Some("*")) => Some(Expected::Absent),
        _ => None,
    }
}
