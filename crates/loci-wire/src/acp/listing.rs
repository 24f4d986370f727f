//! The sessions there are: `session/list` and `session/delete`.

use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;
use loci_stdx::{Env, Timestamp};
use loci_storage::layout::ConfigHome;
use loci_storage::project::Project;
use loci_storage::sessions::{
    FindError, RemoveError, SessionSummary, list_sessions, remove_session, session_by_id,
};
use serde_json::{Value, json};

use super::rpc::RpcError;

/// How many sessions are told at once.
const PAGE: usize = 50;
/// The most letters of a title.
const TITLE: usize = 100;

/// Answers `session/list`. Blocks.
pub(super) fn list(env: &Env, params: &Value) -> Result<Value, RpcError> {
    let cwd = match &params["cwd"] {
        Value::Null => None,
        Value::String(cwd) if Path::new(cwd).is_absolute() => Some(PathBuf::from(cwd)),
        _ => return Err(RpcError::params("`cwd` must be an absolute path")),
    };
    let start = match &params["cursor"] {
        Value::Null => 0,
        Value::String(cursor) => cursor.parse().map_err(|_| RpcError::params("`cursor` is none of ours"))?,
        _ => return Err(RpcError::params("`cursor` must be a text")),
    };
    let project = cwd.map(|cwd| Project::directory(&cwd.canonicalize().unwrap_or(cwd)));
    let home = ConfigHome::from_env(env);
    let listed = list_sessions(&home, project.as_ref(), usize::MAX)
        .map_err(|error| RpcError::internal(format!("The sessions cannot be listed: {error}")))?;
    let shown: Vec<Value> = listed.sessions.iter().filter_map(info).collect();
    let page: Vec<&Value> = shown.iter().skip(start).take(PAGE).collect();
    let next = start.saturating_add(page.len());
    let mut answer = json!({"sessions": page});
    if next < shown.len() {
        answer["nextCursor"] = json!(next.to_string());
    }
    Ok(answer)
}

/// Returns what is told of a session; nothing of one that cannot go on.
fn info(session: &SessionSummary) -> Option<Value> {
    let facts = &session.facts;
    let cwd = facts.cwd.as_ref().filter(|_| !facts.is_empty && !facts.is_sidechain)?;
    let mut info = json!({"sessionId": session.place.id().as_str(), "cwd": cwd});
    if let Some(title) = facts.headline() {
        info["title"] = json!(loci_stdx::single_line(title, TITLE));
    }
    if let Ok(time) = Timestamp::from_millisecond(facts.newest_ms()) {
        info["updatedAt"] = json!(loci_stdx::rfc3339_millis(time));
    }
    Some(info)
}

/// Answers `session/delete`: the session goes to the trash, from where `loci sessions rm --restore` brings it back. One that
/// is not there is gone already. Blocks.
pub(super) fn delete(env: &Env, id: &str) -> Result<Value, RpcError> {
    let Ok(id) = SessionId::parse(id) else { return Ok(json!({})) };
    let home = ConfigHome::from_env(env);
    let place = match session_by_id(&home, &env.cwd, &id) {
        Ok(place) => place,
        Err(FindError::NoSuchId { .. }) => return Ok(json!({})),
        Err(error) => return Err(RpcError::internal(error.to_string())),
    };
    match remove_session(&home, &place, env.clock.now()) {
        Ok(_) => Ok(json!({})),
        Err(error @ RemoveError::InUse { .. }) => Err(RpcError::params(error.to_string())),
        Err(error) => Err(RpcError::internal(error.to_string())),
    }
}
