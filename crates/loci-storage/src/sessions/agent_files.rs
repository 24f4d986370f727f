//! The files of a session's agents: `subagents/agent-<id>.jsonl` and the `.meta.json` beside each.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::conversation::Conversation;
use loci_core::entry::Entry;
use loci_core::ids::{AgentId, EntryId};
use loci_stdx::{WriteOptions, read_regular_to_string, write_atomic};
use serde::{Deserialize, Serialize};

use super::{LoadError, SessionLog, load_transcript};

/// What the file beside an agent's transcript says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentMeta {
    /// Its type.
    pub agent_type: String,
    /// What it was to do, in a few words.
    pub description: String,
    /// The call that sent it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<String>,
    /// How many conversations it stands below.
    pub spawn_depth: u32,
    /// What it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The model it asked, where that is not the conversation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort that the call asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// The permission mode that the call asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The most round trips that the call allowed at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// Whether it works in a worktree of its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_isolated: bool,
    /// The worktree that it works in, or left changes in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_path: Option<PathBuf>,
    /// Its branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_branch: Option<String>,
    /// The worktree that it has entered by itself, and is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entered_worktree: Option<PathBuf>,
    /// What a fork goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
}

/// The place in a conversation that a fork goes on from, spelled as in records that a branch of a session copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkedFrom {
    /// The session whose conversation it is.
    pub session_id: String,
    /// The last entry of it that the fork knows.
    pub message_uuid: EntryId,
}

/// An agent that left a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Its id.
    pub id: AgentId,
    /// Its transcript.
    pub transcript: PathBuf,
    /// What is known of it; nothing but defaults where that cannot be read.
    pub meta: AgentMeta,
}

/// How far an agent came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentProgressEnd {
    /// It gave its answer.
    Answered,
    /// It was still at work.
    CutOff,
}

/// Returns where an agent's transcript lies.
pub fn agent_transcript(dir: &Path, id: &AgentId) -> PathBuf {
    dir.join(format!("agent-{id}.jsonl"))
}

/// Writes what is known of an agent.
pub fn write_agent_meta(dir: &Path, id: &AgentId, meta: &AgentMeta) -> io::Result<()> {
    let text = serde_json::to_vec(meta).map_err(io::Error::other)?;
    let path = dir.join(format!("agent-{id}.meta.json"));
    let options = WriteOptions::private().creating_parents();
    write_atomic(&path, &text, &options).map_err(|error| io::Error::other(error.to_string()))
}

/// Opens an agent's transcript for writing, at its end where it goes on.
pub fn agent_log(dir: &Path, id: &AgentId) -> SessionLog {
    SessionLog::on_disk(&agent_transcript(dir, id))
}

/// Returns one agent of a session; nothing where it left no transcript. `id` may come from anywhere.
pub fn find_agent_file(dir: &Path, id: &str) -> Option<AgentFile> {
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let id = AgentId::new(is_id.then_some(id)?);
    let transcript = agent_transcript(dir, &id);
    transcript.is_file().then(|| AgentFile { meta: read_meta(dir, &id), id, transcript })
}

/// Lists the agents of a session, oldest first.
pub fn list_agent_files(dir: &Path) -> Vec<AgentFile> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = name.strip_prefix("agent-")?.strip_suffix(".jsonl")?;
            let created = entry.metadata().ok().and_then(|it| it.created().or_else(|_| it.modified()).ok());
            Some((created, find_agent_file(dir, id)?))
        })
        .collect();
    files.sort_by(|(a, left), (b, right)| a.cmp(b).then_with(|| left.id.as_str().cmp(right.id.as_str())));
    files.into_iter().map(|(_, file)| file).collect()
}

/// Reads an agent's conversation, so that it can go on.
pub fn load_agent(file: &Path) -> Result<Conversation, LoadError> {
    let entries = load_transcript(file)?.entries;
    Ok(Conversation::build(entries.iter().map(|entry| Arc::new(entry.as_main_line())).collect()))
}

/// Tells how far an agent came, and what it said last.
pub fn agent_end(path: &[Arc<Entry>]) -> (AgentProgressEnd, String) {
    let said = path.iter().rev().find_map(|entry| {
        let texts: Vec<String> = entry.blocks().iter().filter_map(|block| block.text()).collect();
        let is_said = entry.head().message_id.is_some() && !entry.head().is_api_error;
        (is_said && !texts.is_empty()).then(|| texts.join("\n"))
    });
    let has_answered = path.last().is_some_and(|last| {
        let is_answer = last.head().message_id.is_some() && !last.head().is_api_error;
        is_answer && !last.blocks().iter().any(|block| block.tool_use().is_some())
    });
    let end = if has_answered { AgentProgressEnd::Answered } else { AgentProgressEnd::CutOff };
    (end, said.unwrap_or_default())
}

fn read_meta(dir: &Path, id: &AgentId) -> AgentMeta {
    let text = read_regular_to_string(dir.join(format!("agent-{id}.meta.json")));
    text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        fs::write(path, text).unwrap();
    }

    #[test]
    fn agents_of_the_reference_are_found_and_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/foreground");
        for entry in fs::read_dir(&fixtures).unwrap().flatten() {
            fs::copy(entry.path(), dir.path().join(entry.file_name())).unwrap();
        }
        let files = list_agent_files(dir.path());
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].meta.agent_type, "reviewer");
        assert_eq!(files[0].meta.spawn_depth, 1);
        assert_eq!(find_agent_file(dir.path(), files[0].id.as_str()), Some(files[0].clone()));
        let conversation = load_agent(&files[0].transcript).unwrap();
        assert_eq!(conversation.path().len(), 4);
        assert!(conversation.repairs().is_empty());
        assert_eq!(agent_end(conversation.path()), (AgentProgressEnd::Answered, "One file.".to_owned()));
    }

    #[test]
    fn agent_that_was_cut_off_is_told_from_one_that_answered() {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/agents/foreground");
        let file = fs::read_dir(&fixture).unwrap().flatten().map(|it| it.path());
        let file = file
            .into_iter()
            .find(|path| {
                path.extension().is_some_and(|it| it == "jsonl") && path.to_string_lossy().contains("agent-")
            })
            .unwrap();
        let text = read_regular_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let dir = tempfile::tempdir().unwrap();
        for n_lines in 1..=4 {
            let path = dir.path().join(format!("agent-a{n_lines}.jsonl"));
            write(&path, &(lines[..n_lines].join("\n") + "\n"));
            let conversation = load_agent(&path).unwrap();
            let expected = if n_lines == 4 { AgentProgressEnd::Answered } else { AgentProgressEnd::CutOff };
            assert_eq!(agent_end(conversation.path()).0, expected, "{n_lines}");
        }
    }

    #[test]
    fn ids_do_not_lead_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("agent-a1.jsonl"), "");
        assert!(find_agent_file(dir.path(), "a1").is_some());
        for id in ["", "../a1", "a1/..", "x/../a1", "a1.jsonl"] {
            assert!(find_agent_file(dir.path(), id).is_none(), "{id}");
        }
    }

    #[test]
    fn meta_is_written_as_the_reference_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let meta = AgentMeta {
            agent_type: "reviewer".to_owned(),
            description: "short task".to_owned(),
            tool_use_id: Some("toolu_1".to_owned()),
            spawn_depth: 1,
            ..AgentMeta::default()
        };
        write_agent_meta(&dir.path().join("new"), &AgentId::new("a1"), &meta).unwrap();
        let text = read_regular_to_string(dir.path().join("new/agent-a1.meta.json")).unwrap();
        assert_eq!(
            text,
            r#"{"agentType":"reviewer","description":"short task","toolUseId":"toolu_1","spawnDepth":1}"#
        );
        assert_eq!(read_meta(&dir.path().join("new"), &AgentId::new("a1")), meta);
    }
}
