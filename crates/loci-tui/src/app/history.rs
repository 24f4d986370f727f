//! Blocks of a session that goes on, from its entries.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_app::sessions::transcript::{Call, Part, PartKind, parts};
use loci_core::entry::Entry;
use loci_core::tool::ToolKind;
use loci_storage::sessions::ConversationTail;

use super::call_summary::{approved_plan, asked_diff, call_summary, done_diff, result_for_person};
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
        PartKind::Command(text) => Block::Prompt { text, attachments: Vec::new() },
        PartKind::CommandOutput(markdown) if markdown.is_empty() => return None,
        PartKind::CommandOutput(markdown) => Block::Output { markdown },
        PartKind::Note(text) if text.is_empty() => return None,
        PartKind::Note(text) if text.starts_with("[Request interrupted by user") => {
            Block::Notice { level: NoticeLevel::Info, text: "Interrupted".to_owned() }
        }
        PartKind::Note(text) => Block::Notice { level: NoticeLevel::Info, text },
        PartKind::Failure(text) => Block::Notice { level: NoticeLevel::Error, text },
    })
}

fn call_block(call: Call, cwd: &Path) -> CallBlock {
    let (state, output, structured) = match call.result {
        Some(result) if result.is_error => (CallState::Failed, untagged(result.text), None),
        Some(result) => (CallState::Done, result.text, result.structured),
        None => (CallState::Refused, String::new(), None),
    };
    // What was done has the lines around it and their numbers; files of others may say only what was asked for.
    let done = structured.as_ref().and_then(|structured| done_diff(structured, cwd));
    let diff = done.or_else(|| asked_diff(&call.name, &call.input, cwd));
    let plan = structured.as_ref().and_then(|structured| approved_plan(&call.name, structured));
    CallBlock {
        summary: call_summary(&call.name, &call.input, cwd),
        diff: diff.filter(|_| state == CallState::Done),
        plan: plan.filter(|_| state == CallState::Done),
        is_read_only: ToolKind::of_tool(&call.name).only_looks(),
        tool: call.name,
        agent: None,
        state,
        output: result_for_person(state, output, structured.as_ref()),
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

    #[test]
    fn resumed_change_is_shown_as_it_was_when_it_was_made() {
        let call = |id: &str| {
            let input = json!({"file_path": "/p/a.rs", "old_string": "two", "new_string": "deux"});
            json!({"type": "assistant", "message": {"content": [
                {"type": "tool_use", "id": id, "name": "Edit", "input": input}]}})
        };
        let result = |id: &str| {
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": id, "content": "done"}]}})
        };
        let mut told = result("t1");
        told["toolUseResult"] = json!({"filePath": "/p/a.rs", "originalFile": "", "structuredPatch": [
            {"oldStart": 7, "oldLines": 3, "newStart": 7, "newLines": 3, "lines": [" one", "-two", "+deux", " three"]}]});
        let lines = [call("t1"), told, call("t2"), result("t2")];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let blocks = history_blocks(&entries, Path::new("/p"));
        let [Block::Call(told), Block::Call(asked)] = blocks.as_slice() else { panic!("{blocks:?}") };
        let told = told.diff.as_ref().unwrap();
        assert_eq!((told.path.as_str(), told.first_line), ("a.rs", 7));
        assert_eq!((told.before.as_str(), told.after.as_str()), ("one\ntwo\nthree\n", "one\ndeux\nthree\n"));
        assert_eq!(asked.diff.as_ref().unwrap().first_line, 1, "only what was asked for is known");
    }

    #[test]
    fn command_of_a_resumed_session_is_shown_as_it_was_typed_with_what_it_said() {
        let local = |content: &str| json!({"type": "system", "subtype": "local_command", "content": content});
        let lines = [
            local(
                "<command-name>/autocompact</command-name>\n            <command-message>autocompact</command-message>\n            <command-args>auto</command-args>",
            ),
            local("<local-command-stdout>By **itself**\n- from now on</local-command-stdout>"),
            local(
                "<command-name>/clear</command-name><command-message>clear</command-message><command-args></command-args>",
            ),
            local("<local-command-stdout></local-command-stdout>"),
            json!({"type": "user", "message": {"content": "[Request interrupted by user for tool use]"}}),
        ];
        let entries: Vec<Arc<Entry>> =
            lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect();
        let prompt = |text: &str| Block::Prompt { text: text.into(), attachments: Vec::new() };
        let said = Block::Output { markdown: "By **itself**\n- from now on".into() };
        assert_eq!(
            history_blocks(&entries, Path::new("/p")),
            [
                prompt("/autocompact auto"),
                said,
                prompt("/clear"),
                Block::Notice { level: NoticeLevel::Info, text: "Interrupted".into() }
            ]
        );
    }
}
