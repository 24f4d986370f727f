//! Blocks of a session that goes on, from its entries.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_app::transcript::{Call, Part, PartKind, parts};
use loci_core::entry::Entry;
use loci_core::tool::ToolKind;
use loci_storage::sessions::ConversationTail;

use super::call_summary::{asked_diff, call_summary};
use super::conversation::untagged;
use crate::block::{Block, CallBlock, CallState, NoticeLevel};

/// How many entries from the end are looked at: only what can be seen is made.
const MOST_ENTRIES: usize = 100;

/// Returns the blocks of the last entries, oldest first; `cwd` shortens paths.
pub(crate) fn history_blocks(entries: &[Arc<Entry>], cwd: &Path) -> Vec<Block> {
    let first = entries.len().saturating_sub(MOST_ENTRIES);
    let mut blocks = all_blocks(entries.get(first..).unwrap_or_default(), cwd);
    if first > 0 {
        let text =
            format!("{first} earlier entries are not shown here; Ctrl+O and then Ctrl+E shows all of them");
        blocks.insert(0, Block::Notice { level: NoticeLevel::Info, text });
    }
    blocks
}

/// Returns the blocks of a session's end, before the rest of it was read.
pub(crate) fn tail_blocks(tail: &ConversationTail, cwd: &Path) -> Vec<Block> {
    let first = tail.entries.len().saturating_sub(MOST_ENTRIES);
    let mut blocks = all_blocks(tail.entries.get(first..).unwrap_or_default(), cwd);
    if first > 0 || !tail.is_whole {
        let text = "Earlier entries are not shown here; Ctrl+O and then Ctrl+E shows all of them".to_owned();
        blocks.insert(0, Block::Notice { level: NoticeLevel::Info, text });
    }
    blocks
}

/// Returns the blocks of all entries.
pub(crate) fn all_blocks(entries: &[Arc<Entry>], cwd: &Path) -> Vec<Block> {
    let shell: HashMap<&str, ShellRecord> = entries.iter().filter_map(|entry| shell_record(entry)).collect();
    let mut blocks: Vec<Block> = Vec::new();
    for part in parts(entries) {
        match (part.uuid.as_deref().and_then(|uuid| shell.get(uuid)), blocks.last_mut()) {
            (Some(ShellRecord::Input(command)), _) => {
                let (command, output) = (command.clone(), String::new());
                blocks.push(Block::Shell { command, output, exit_code: None });
            }
            (Some(ShellRecord::Output(text)), Some(Block::Shell { output, .. })) => output.clone_from(text),
            _ => blocks.extend(block(part, cwd)),
        }
    }
    blocks
}

/// What the transcript has of a command of the shell that the person ran.
enum ShellRecord {
    Input(String),
    Output(String),
}

fn shell_record(entry: &Entry) -> Option<(&str, ShellRecord)> {
    let uuid = entry.head().uuid.as_ref()?.as_str();
    let text = entry.blocks().first()?.text()?;
    if let Some(rest) = text.strip_prefix("<bash-input>") {
        let command = rest.strip_suffix("</bash-input>").unwrap_or(rest);
        return Some((uuid, ShellRecord::Input(command.to_owned())));
    }
    let rest = text.strip_prefix("<bash-stdout>")?;
    let (stdout, stderr) = rest.split_once("</bash-stdout><bash-stderr>").unwrap_or((rest, ""));
    let stderr = stderr.strip_suffix("</bash-stderr>").unwrap_or(stderr);
    let printed: Vec<&str> =
        [stdout.trim_end(), stderr.trim_end()].into_iter().filter(|it| !it.is_empty()).collect();
    Some((uuid, ShellRecord::Output(printed.join("\n"))))
}

fn block(part: Part, cwd: &Path) -> Option<Block> {
    Some(match part.kind {
        PartKind::Prompt(text) => Block::Prompt { text, attachments: Vec::new() },
        PartKind::Answer(markdown) => Block::Answer { markdown },
        PartKind::Thinking(text) => Block::Thinking { text, duration: None::<Duration> },
        PartKind::Call(call) => Block::Call(call_block(call, cwd)),
        PartKind::Image { media_type, .. } => {
            Block::Notice { level: NoticeLevel::Info, text: format!("[picture: {media_type}]") }
        }
        PartKind::Compaction(text) => Block::Compaction { text },
        PartKind::Summary(_) => return None,
        PartKind::Note(text) if text.is_empty() => return None,
        PartKind::Note(text) => Block::Notice { level: NoticeLevel::Info, text },
        PartKind::Failure(text) => Block::Notice { level: NoticeLevel::Error, text },
    })
}

fn call_block(call: Call, cwd: &Path) -> CallBlock {
    let (state, output) = match call.result {
        Some(result) if result.is_error => (CallState::Failed, untagged(result.text)),
        Some(result) => (CallState::Done, result.text),
        None => (CallState::Refused, String::new()),
    };
    CallBlock {
        summary: call_summary(&call.name, &call.input, cwd),
        diff: asked_diff(&call.name, &call.input, cwd).filter(|_| state == CallState::Done),
        is_read_only: ToolKind::of_tool(&call.name).only_looks(),
        tool: call.name,
        agent: None,
        state,
        output,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn command_of_the_shell_is_one_block_with_what_it_printed() {
        let user = |uuid: &str, text: &str| json!({"type": "user", "uuid": uuid, "message": {"role": "user", "content": text}});
        let lines = [
            user("a", "<bash-input>ls -l</bash-input>"),
            user("b", "<bash-stdout>one\ntwo\n</bash-stdout><bash-stderr>oh</bash-stderr>"),
        ];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let expected =
            Block::Shell { command: "ls -l".into(), output: "one\ntwo\noh".into(), exit_code: None };
        assert_eq!(history_blocks(&entries, Path::new("/p")), [expected]);
    }

    #[test]
    fn resumed_entries_become_blocks() {
        let lines = [
            json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": "go"}}),
            json!({"type": "assistant", "message": {"content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a\nb"}]}}),
            json!({"type": "assistant", "message": {"content": [
                {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls x"}}]}}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
                 "content": "<tool_use_error>no x</tool_use_error>"}]}}),
        ];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let blocks = history_blocks(&entries, Path::new("/p"));
        let [Block::Prompt { text, .. }, Block::Answer { markdown }, Block::Call(call), Block::Call(failed)] =
            blocks.as_slice()
        else {
            panic!("{blocks:?}")
        };
        assert_eq!((text.as_str(), markdown.as_str()), ("go", "I look."));
        assert_eq!(
            (call.summary.as_str(), call.output.as_str(), call.state),
            ("ls", "a\nb", CallState::Done)
        );
        assert_eq!((failed.output.as_str(), failed.state), ("no x", CallState::Failed));
    }
}
