//! The conversation that goes back: a mark in the transcript, from which the next prompt goes on.
//!
//! Nothing is removed: the mark hangs where the conversation is to go on, and being the last entry of the chain it is
//! where every reader of the format resumes. The model is not sent it.

use std::io;
use std::path::PathBuf;

use loci_core::entry::draft::{Draft, Metadata, Stamp};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{AppendFile, Env, read_regular, rfc3339_millis};
use serde_json::{Map, Value, json};

use super::journal::{Journal, Turnback, TurnbackSummary};
use loci_core::file_history::PathText;

/// A wish to take the conversation back, too.
#[derive(Debug, Clone)]
pub struct ConversationRewind {
    /// The transcript.
    pub file: PathBuf,
    /// Where it stands.
    pub from: Option<EntryId>,
    /// Where it is to stand: at its beginning, when absent. An undo knows better.
    pub to: Option<EntryId>,
    /// A fresh id for the mark.
    pub mark: EntryId,
    /// What is to stand for all that came after.
    pub summary: Option<TurnbackSummary>,
}

impl ConversationRewind {
    /// Returns what is written down; an undo goes where the rewind came from, or nowhere if that took no conversation
    /// back.
    pub(super) fn turnback(self, undoes: Option<&Journal>) -> Option<Turnback> {
        let turnback = Turnback {
            file: PathText::from(self.file),
            from: self.from,
            to: self.to,
            mark: self.mark,
            summary: self.summary,
        };
        match undoes {
            None => Some(turnback),
            Some(undone) => {
                undone.conversation.as_ref().map(|before| Turnback { to: before.from.clone(), ..turnback })
            }
        }
    }
}

/// Appends the mark, and the summary behind it where there is one, unless they are there.
pub(super) fn mark(turnback: &Turnback, session: &SessionId, env: &Env) -> io::Result<()> {
    let path = turnback.file.as_path();
    let text = read_regular(path)?;
    if memchr::memmem::find(&text, format!("\"uuid\":\"{}\"", turnback.mark).as_bytes()).is_some() {
        return Ok(());
    }
    let now = rfc3339_millis(env.clock.now());
    let fields: Map<String, Value> = [
        ("subtype", json!("informational")),
        ("content", json!("The conversation was taken back to here")),
        ("isMeta", json!(false)),
        ("level", json!("info")),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect();
    let entry = Draft::system(fields)
        .seal(&stamp(&text, session), &turnback.mark, turnback.to.as_ref(), &now)
        .map_err(io::Error::other)?;
    let mut lines = format!("{}\n", entry.line());
    let mut leaf = &turnback.mark;
    if let Some(summary) = &turnback.summary {
        let entry = Draft::meta(None, json!(summary.text))
            .seal(&stamp(&text, session), &summary.id, Some(&turnback.mark), &now)
            .map_err(io::Error::other)?;
        lines.push_str(&format!("{}\n", entry.line()));
        leaf = &summary.id;
    }
    let pointer = Metadata::LastPrompt { prompt: None, leaf: leaf.clone() };
    let pointer = pointer.seal(session, &now).map_err(io::Error::other)?;
    lines.push_str(&format!("{}\n", pointer.line()));
    let append = || -> Result<(), loci_stdx::AppendError> {
        let mut file = AppendFile::open(path, AppendFile::PRIVATE)?;
        file.append_lines(lines.as_bytes())?;
        file.sync().map(drop)
    };
    append().map_err(io::Error::other)
}

/// Takes over what the last stamped entry says of itself.
fn stamp(text: &[u8], session: &SessionId) -> Stamp {
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    let last = lines.iter().rev().find_map(|line| {
        let value: Value = serde_json::from_slice(line).ok()?;
        value.get("cwd").and_then(Value::as_str)?;
        Some(value)
    });
    let read = |key: &str, usual: &str| {
        let value = last.as_ref().and_then(|entry| entry.get(key)).and_then(Value::as_str);
        value.unwrap_or(usual).to_owned()
    };
    Stamp {
        session_id: session.clone(),
        cwd: read("cwd", "/"),
        version: read("version", "0"),
        git_branch: read("gitBranch", "HEAD"),
        entrypoint: read("entrypoint", "cli"),
        slug: None,
        agent: None,
        agent_type: None,
    }
}
