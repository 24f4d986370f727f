//! A session's facts as JSON, the same in every verb.

use loci_storage::{Dialect, SessionSummary};
use serde_json::{Value, json};

/// Returns the facts; times are milliseconds since 1970, what is not known is null.
pub(super) fn json(session: &SessionSummary) -> Value {
    let facts = &session.facts;
    let labels = &facts.labels;
    let project = session.place.file().parent().and_then(|dir| dir.file_name());
    json!({
        "sessionId": session.place.id().as_str(),
        "origin": origin(session.place.dialect()),
        "title": labels.title(),
        "customTitle": labels.custom,
        "generatedTitle": labels.generated,
        "name": labels.name,
        "summary": facts.headline(),
        "firstPrompt": facts.first_prompt,
        "lastPrompt": labels.last_prompt,
        "tag": labels.tag,
        "gitBranch": facts.git_branch,
        "cwd": facts.cwd,
        "entrypoint": facts.entrypoint,
        "createdAt": facts.created.map(|moment| moment.as_millisecond()),
        "lastActivity": facts.newest_ms(),
        "lastModified": facts.modified_ms,
        "fileSize": facts.size,
        "messages": facts.messages.number(),
        "messagesAreExact": facts.messages.is_exact(),
        "costUsd": facts.cost_usd,
        "forkedFrom": facts.forked_from,
        "isSidechain": facts.is_sidechain,
        "isEmpty": facts.is_empty,
        "project": project.map(|name| name.to_string_lossy()),
        "path": session.place.file(),
    })
}

/// Returns the program whose session it is, unless it is in our own form.
pub(super) fn origin(dialect: Dialect) -> Option<&'static str> {
    match dialect {
        Dialect::Own => None,
        Dialect::Codex => Some("codex"),
    }
}
