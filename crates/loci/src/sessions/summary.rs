//! A session's facts as JSON, the same in every verb.

use std::borrow::Cow;

use loci_storage::{Dialect, SessionSummary};
use serde::Serialize;
use serde_json::Value;

/// What is told of a session; times are milliseconds since 1970, what is not known is null.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary<'a> {
    session_id: &'a str,
    origin: Option<&'static str>,
    title: Option<&'a str>,
    custom_title: Option<&'a str>,
    generated_title: Option<&'a str>,
    name: Option<&'a str>,
    summary: Option<&'a str>,
    first_prompt: Option<&'a str>,
    last_prompt: Option<&'a str>,
    tag: Option<&'a str>,
    git_branch: Option<&'a str>,
    cwd: Option<&'a str>,
    entrypoint: Option<&'a str>,
    created_at: Option<i64>,
    last_activity: i64,
    last_modified: i64,
    file_size: u64,
    messages: u64,
    messages_are_exact: bool,
    cost_usd: Option<f64>,
    forked_from: Option<&'a str>,
    is_sidechain: bool,
    is_empty: bool,
    project: Option<Cow<'a, str>>,
    path: Cow<'a, str>,
}

impl<'a> Summary<'a> {
    /// Takes what is told off what is known.
    pub(super) fn of(session: &'a SessionSummary) -> Self {
        let facts = &session.facts;
        let labels = &facts.labels;
        let file = session.place.file();
        Self {
            session_id: session.place.id().as_str(),
            origin: origin(session.place.dialect()),
            title: labels.title(),
            custom_title: labels.custom.as_deref(),
            generated_title: labels.generated.as_deref(),
            name: labels.name.as_deref(),
            summary: facts.headline(),
            first_prompt: facts.first_prompt.as_deref(),
            last_prompt: labels.last_prompt.as_deref(),
            tag: labels.tag.as_deref(),
            git_branch: facts.git_branch.as_deref(),
            cwd: facts.cwd.as_deref(),
            entrypoint: facts.entrypoint.as_deref(),
            created_at: facts.created.map(|moment| moment.as_millisecond()),
            last_activity: facts.newest_ms(),
            last_modified: facts.modified_ms,
            file_size: facts.size,
            messages: facts.messages.number(),
            messages_are_exact: facts.messages.is_exact(),
            cost_usd: facts.cost_usd,
            forked_from: facts.forked_from.as_deref(),
            is_sidechain: facts.is_sidechain,
            is_empty: facts.is_empty,
            project: file.parent().and_then(|dir| dir.file_name()).map(|name| name.to_string_lossy()),
            path: file.to_string_lossy(),
        }
    }
}

/// Returns the facts as a value, for verbs that add to them.
pub(super) fn json(session: &SessionSummary) -> Value {
    serde_json::to_value(Summary::of(session)).unwrap_or_default()
}

/// Returns the program whose session it is, unless it is in our own form.
pub(super) fn origin(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Own => None,
        Dialect::Codex => Some("codex"),
    }
}
