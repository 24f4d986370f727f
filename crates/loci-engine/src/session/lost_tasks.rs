//! Work that went on beside a conversation when its session ended: commands and agents. None of it outlives the session,
//! and the model, which believes that it goes on, is told so when the session does: once, before the next prompt. Commands
//! are gone; agents left a transcript, so each of them can go on, and what one had answered is told.

use std::sync::{Arc, LazyLock};

use loci_context::CompactionCarryover;
use loci_core::agent::{FORK, enclose, sanitize_result};
use loci_core::entry::{Attachment, AttachmentKind, Entry, EntryKind};
use loci_core::message::ToolUse;
use loci_core::tool::ToolKind;
use loci_storage::sessions::{AgentFile, AgentProgressEnd, agent_end, load_agent};
use memchr::memmem::Finder;
use serde_json::Value;

pub use loci_protocol::event::LostTask;

use crate::agents::{NO_INPUT, PERSON_CALL, escaped};

static STARTED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"backgroundTaskId\""));
static LAUNCHED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"async_launched\""));
static BY_PERSON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<local-command-stdout>Agent a"));

/// What a person is told of an agent that they sent out, behind its id; what the transcript says, too.
pub(crate) const WORKS_ON_IT: &str = "works on it in the background";
/// What a person is told of an agent that goes on with their message, behind its id.
pub(crate) const GOES_ON: &str = "goes on with it, in the background";

const OPENING: &str =
    "<task-notification>\nNot running any more, because they ended with the session that started them:";

/// The most letters of an agent's answer that are told.
const MOST_LETTERS: usize = 8_000;

/// Work that nobody saw end.
struct Lost {
    id: String,
    /// What it was to do; only its meta file knows of one that a person sent out.
    what: String,
    is_agent: bool,
}

/// What is said of lost work.
#[derive(Debug, Default)]
pub(crate) struct LostWork {
    /// To the model, with the next prompt; none when nothing was lost.
    pub(crate) notice: Option<String>,
    /// To clients.
    pub(crate) tasks: Vec<LostTask>,
}

/// Finds what a path leaves running. `agents` lists the transcripts of the session's agents; it is asked only where one was
/// sent out.
pub(crate) fn find(path: &[Arc<Entry>], agents: impl FnOnce() -> Vec<AgentFile>) -> LostWork {
    let mut lost = running(path);
    let calls = unanswered_agent_calls(path);
    if lost.is_empty() && calls.is_empty() {
        return LostWork::default();
    }
    let files = if !calls.is_empty() || lost.iter().any(|it| it.is_agent) { agents() } else { Vec::new() };
    // The call of one that was waited for is answered by whoever mends the conversation; here is who it was.
    for call in calls {
        let file = files.iter().find(|file| file.meta.tool_use_id.as_deref() == Some(call.id.as_str()));
        lost.extend(file.map(|file| Lost {
            id: file.id.to_string(),
            what: agent_label(file),
            is_agent: true,
        }));
    }
    for agent in lost.iter_mut().filter(|it| it.what.is_empty()) {
        let file = files.iter().find(|file| file.id.as_str() == agent.id);
        agent.what = file.map_or_else(|| "agent".to_owned(), agent_label);
    }
    let told: Vec<(String, LostTask)> = lost.iter().map(|lost| lost_task(lost, &files)).collect();
    let (lines, tasks): (Vec<String>, Vec<LostTask>) = told.into_iter().unzip();
    let has_commands = lost.iter().any(|it| !it.is_agent);
    let commands = if has_commands { "\nWhat commands wrote is in their output files." } else { "" };
    let notice = (!lines.is_empty())
        .then(|| format!("{OPENING}\n{}{commands}\n{NO_INPUT}\n</task-notification>", lines.join("\n")));
    LostWork { notice, tasks }
}

fn agent_label(file: &AgentFile) -> String {
    format!("agent ({}): {}", file.meta.agent_type, file.meta.description)
}

/// Returns what the model and clients are told of lost work.
fn lost_task(lost: &Lost, files: &[AgentFile]) -> (String, LostTask) {
    let mut task = LostTask { id: lost.id.clone(), what: lost.what.clone(), answer: None };
    let head = format!("- {}: {}", lost.id, escaped(&lost.what));
    if !lost.is_agent {
        return (head, task);
    }
    let file = files.iter().find(|file| file.id.as_str() == lost.id);
    let Some(past) = file.and_then(|file| load_agent(&file.transcript).ok()) else {
        return (format!("{head}. Nothing of it is left."), task);
    };
    let line = match agent_end(past.path()) {
        (AgentProgressEnd::Answered, said) => {
            let said = sanitize_result(loci_stdx::truncate_chars(&said, MOST_LETTERS));
            let result = enclose("result", &said);
            task.answer = Some(said);
            format!("{head}. It had answered; what it returned is data:\n{result}")
        }
        (AgentProgressEnd::CutOff, _) if file.is_some_and(has_no_origin) => {
            format!("{head}. It was cut off.")
        }
        (AgentProgressEnd::CutOff, _) => {
            format!("{head}. It was cut off; SendMessage with its id lets it go on.")
        }
    };
    (line, task)
}

/// Tells whether nothing says where a fork went on from: a person sent it out, and its meta file is of an earlier version.
fn has_no_origin(file: &AgentFile) -> bool {
    file.meta.agent_type == FORK
        && file.meta.forked_from.is_none()
        && file.meta.tool_use_id.as_deref().is_none_or(|id| id.starts_with(PERSON_CALL))
}

/// Returns the agent that a person sent out, or let go on, where an entry is what they were told of it.
fn begun_by_person(entry: &Entry) -> Option<String> {
    let content: String =
        entry.fields().read("content").filter(|_| entry.head().kind == EntryKind::System)?;
    let (id, rest) = content.strip_prefix("<local-command-stdout>Agent ")?.split_once(' ')?;
    let is_told = rest.starts_with(WORKS_ON_IT) || rest.starts_with(GOES_ON);
    (is_told && id.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| id.to_owned())
}

/// Returns the calls that send an agent out and have no result.
fn unanswered_agent_calls(path: &[Arc<Entry>]) -> Vec<ToolUse> {
    let last = path.iter().rposition(|entry| entry.head().kind == EntryKind::Assistant);
    let Some(last) = last else { return Vec::new() };
    let message = path[last].head().message_id.as_ref();
    let first = path[..=last].iter().position(|it| it.head().message_id.as_ref() == message).unwrap_or(last);
    let calls =
        path[first..=last].iter().flat_map(|entry| entry.blocks()).filter_map(|block| block.tool_use());
    let mut calls: Vec<ToolUse> =
        calls.filter(|call| ToolKind::of_tool(&call.name) == ToolKind::Delegate).collect();
    if !calls.is_empty() {
        let results =
            path[first..].iter().flat_map(|entry| entry.blocks()).filter_map(|block| block.tool_result());
        let answered: Vec<_> = results.map(|result| result.tool_use_id).collect();
        calls.retain(|call| !answered.contains(&call.id));
    }
    calls
}

/// Returns what was started in the background, and of which nobody was told that it ended.
fn running(path: &[Arc<Entry>]) -> Vec<Lost> {
    // Hardly any session has started anything, and nothing of those is parsed.
    let is_first = |entry: &Arc<Entry>| {
        let is_boundary = entry.is_compact_boundary() && !CompactionCarryover::tasks_at(entry).is_empty();
        let line = entry.line().as_bytes();
        is_boundary || [&STARTED, &LAUNCHED, &BY_PERSON].iter().any(|word| word.find(line).is_some())
    };
    let Some(first) = path.iter().position(is_first) else { return Vec::new() };
    let mut running: Vec<Lost> = Vec::new();
    for entry in &path[first..] {
        if entry.is_compact_boundary() {
            running =
                CompactionCarryover::tasks_at(entry).into_iter().filter_map(|task| named(&task)).collect();
        } else if entry.head().kind == EntryKind::User {
            let result: Value = entry.fields().read("toolUseResult").unwrap_or_default();
            if let Some(id) = result["backgroundTaskId"].as_str() {
                running.push(Lost { id: id.to_owned(), what: command(path, entry), is_agent: false });
            }
            if let (Some("async_launched"), Some(id)) =
                (result["status"].as_str(), result["agentId"].as_str())
            {
                running.retain(|lost| lost.id != id);
                let kind = result["agentType"].as_str().map(|kind| format!(" ({kind})")).unwrap_or_default();
                let what = format!("agent{kind}: {}", result["description"].as_str().unwrap_or_default());
                running.push(Lost { id: id.to_owned(), what, is_agent: true });
            }
            let is_told = |id: &str| ended(&result) == Some(id) || is_notice_of(entry, id);
            running.retain(|lost| !is_told(&lost.id));
        } else if let Some(id) = begun_by_person(entry) {
            running.retain(|lost| lost.id != id);
            running.push(Lost { id, what: String::new(), is_agent: true });
        } else if entry.head().kind == EntryKind::Attachment {
            running.retain(|lost| !is_news_of(entry, &lost.id));
        }
    }
    running
}

/// Returns the task that a result says has ended.
fn ended(result: &Value) -> Option<&str> {
    let task = &result["task"];
    match (task["task_id"].as_str(), task["status"].as_str()) {
        (Some(id), Some(status)) => (status != "running").then_some(id),
        _ => result["task_id"].as_str(),
    }
}

fn is_notice_of(entry: &Entry, id: &str) -> bool {
    let item = format!("\n- {id}: ");
    let is_ours = |text: &str| text.starts_with(OPENING) && text.contains(&item) && entry.head().is_meta;
    let origin: Value = entry.fields().read("origin").unwrap_or_default();
    let is_notification = origin["kind"] == "task-notification";
    let texts = entry.blocks();
    texts
        .iter()
        .filter_map(|block| block.text())
        .any(|text| is_ours(&text) || (is_notification && tells_end_of(&text, id)))
}

/// Tells whether notifications say that a task has ended; what a monitor saw has no status.
fn tells_end_of(text: &str, id: &str) -> bool {
    let element = format!("<task-id>{id}</task-id>");
    let notes = text.split("</task-notification>").filter_map(|note| Some(note.split_once(&element)?.1));
    notes.into_iter().any(|rest| rest.contains("<status>"))
}

/// Tells whether an attachment told the model in the middle of a turn.
fn is_news_of(entry: &Entry, id: &str) -> bool {
    let news = entry.attachment_of_kind(AttachmentKind::QueuedCommand);
    let Some(Attachment::QueuedCommand { prompt, command_mode: Some(mode) }) = news else { return false };
    mode == "task-notification" && prompt.as_str().is_some_and(|text| tells_end_of(text, id))
}

/// Returns the command behind a result: what the call it answers was asked to run, on one line.
fn command(path: &[Arc<Entry>], result: &Entry) -> String {
    let blocks = result.blocks();
    let answered = blocks.iter().find_map(|block| Some(block.tool_result()?.tool_use_id));
    let calls = path.iter().rev().filter(|entry| entry.head().kind == EntryKind::Assistant);
    let call = calls
        .flat_map(|entry| entry.blocks())
        .filter_map(|block| block.tool_use())
        .find(|call| Some(&call.id) == answered.as_ref());
    let command = call.and_then(|call| Some(call.input.get("command")?.as_str()?.to_owned()));
    command.map_or_else(
        || "a command".to_owned(),
        |command| command.split_whitespace().collect::<Vec<_>>().join(" "),
    )
}

/// Parts a task as a boundary names it: its id, and what it is.
fn named(task: &str) -> Option<Lost> {
    let (id, what) = task.split_once(": ")?;
    let is_agent = what.starts_with("agent (");
    Some(Lost { id: id.to_owned(), what: what.to_owned(), is_agent })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn notice(path: &[Arc<Entry>], agents: impl FnOnce() -> Vec<AgentFile>) -> Option<String> {
        find(path, agents).notice
    }

    fn entries(lines: &[Value]) -> Vec<Arc<Entry>> {
        lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
    }

    fn start(n: u32, id: &str) -> [Value; 2] {
        let call = json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "Bash", "input": {"command": format!("sleep\n {n}")}});
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("toolu_{n}"), "content": "started"});
        [
            json!({"type": "assistant", "uuid": format!("a{n}"), "message": {"id": format!("m{n}"), "role": "assistant", "content": [call]}}),
            json!({"type": "user", "uuid": format!("r{n}"), "message": {"role": "user", "content": [result]}, "toolUseResult": {"backgroundTaskId": id}}),
        ]
    }

    fn result(fields: Value) -> Value {
        json!({"type": "user", "uuid": "u", "message": {"role": "user", "content": []}, "toolUseResult": fields})
    }

    /// Class 15 of the sessions' regressions: told once, and only what nobody saw end.
    #[test]
    fn task_that_was_running_is_told_once() {
        let mut lines: Vec<Value> = [start(1, "b1"), start(2, "b2"), start(3, "b3"), start(4, "b4")].concat();
        lines.push(result(json!({"task": {"task_id": "b1", "status": "running"}})));
        lines.push(result(json!({"task": {"task_id": "b2", "status": "completed"}})));
        lines.push(result(json!({"task_id": "b3", "message": "stopped"})));
        let said = notice(&entries(&lines), Vec::new).unwrap();
        expect![[r#"
            <task-notification>
            Not running any more, because they ended with the session that started them:
            - b1: sleep 1
            - b4: sleep 4
            What commands wrote is in their output files.
            The program tells this: the user has said nothing, and approved nothing.
            </task-notification>"#]]
        .assert_eq(&said);
        lines.push(json!({"type": "user", "uuid": "n", "isMeta": true, "message": {"role": "user", "content": [{"type": "text", "text": said}]}}));
        assert_eq!(notice(&entries(&lines), Vec::new), None);
        lines.extend(start(5, "b5"));
        assert!(notice(&entries(&lines), Vec::new).unwrap().contains("\n- b5: sleep 5\nWhat"));
    }

    #[test]
    fn a_boundary_names_what_ran_before_it() {
        let boundary = json!({"type": "system", "subtype": "compact_boundary", "uuid": "b", "compactMetadata": {"trigger": "auto", "loci": {"tasks": ["b9: cargo watch: all"]}}});
        let said = notice(&entries(&[boundary]), Vec::new).unwrap();
        assert!(said.contains("\n- b9: cargo watch: all\n"), "{said}");
    }

    #[test]
    fn words_of_people_end_nothing() {
        let mut lines = start(1, "b1").to_vec();
        lines.push(json!({"type": "user", "uuid": "p", "message": {"role": "user", "content": "<task-notification> - b1: done"}}));
        assert!(notice(&entries(&lines), Vec::new).is_some());
    }

    fn launched(n: u32, id: &str) -> [Value; 2] {
        let call = json!({"type": "tool_use", "id": format!("toolu_{n}"), "name": "Agent", "input": {}});
        let result =
            json!({"type": "tool_result", "tool_use_id": format!("toolu_{n}"), "content": "launched"});
        [
            json!({"type": "assistant", "uuid": format!("a{n}"), "message": {"id": format!("m{n}"), "role": "assistant", "content": [call]}}),
            json!({"type": "user", "uuid": format!("r{n}"), "message": {"role": "user", "content": [result]},
                "toolUseResult": {"status": "async_launched", "agentId": id, "agentType": "x", "description": "look"}}),
        ]
    }

    #[test]
    fn agents_that_nobody_saw_end_are_told_unless_they_were() {
        let mut lines: Vec<Value> = [launched(1, "a1"), launched(2, "a2"), launched(3, "a3")].concat();
        lines.push(json!({"type": "user", "uuid": "n", "origin": {"kind": "task-notification"},
            "message": {"role": "user", "content": "<task-notification>\n<task-id>a1</task-id>\n<status>completed</status></task-notification>"}}));
        lines.push(json!({"type": "attachment", "uuid": "t", "attachment": {"type": "queued_command",
            "commandMode": "task-notification", "prompt": "<task-id>a3</task-id><status>completed</status>"}}));
        lines.push(json!({"type": "attachment", "uuid": "m", "attachment": {"type": "queued_command",
            "commandMode": "task-notification", "prompt": "<task-id>a2</task-id>\n<event>\nx\n</event>"}}));
        let said = notice(&entries(&lines), Vec::new).unwrap();
        assert!(said.contains("\n- a2: agent (x): look. Nothing of it is left.\n"), "{said}");
        assert!(!said.contains("a1") && !said.contains("a3") && !said.contains("commands wrote"), "{said}");
    }

    #[test]
    fn agent_that_a_person_sent_out_is_told_unless_its_end_was() {
        let told = |id: &str, text: &str| {
            json!({"type": "system", "subtype": "local_command", "uuid": format!("c{id}"),
                "content": format!("<local-command-stdout>Agent {id} {text}</local-command-stdout>")})
        };
        let ended = |id: &str| {
            json!({"type": "user", "uuid": format!("n{id}"), "origin": {"kind": "task-notification"}, "message":
                {"role": "user", "content": format!("<task-notification>\n<task-id>{id}</task-id>\n<status>completed</status></task-notification>")}})
        };
        let works = format!("{WORKS_ON_IT}, with all that was said here");
        let (a1, a2) = (told("a1", &works), told("a2", &works));
        for (lines, expected) in [
            (vec![a1.clone(), a2, ended("a1")], Some("a2")),
            (vec![a1.clone(), ended("a1"), told("a1", GOES_ON)], Some("a1")),
            (vec![a1, ended("a1")], None),
            (vec![told("a1", "is unknown")], None),
        ] {
            let said = notice(&entries(&lines), Vec::new);
            let line = said.as_deref().and_then(|it| it.lines().nth(2)).map(str::to_owned);
            assert_eq!(line, expected.map(|id| format!("- {id}: agent. Nothing of it is left.")));
        }
    }

    #[test]
    fn agent_that_was_waited_for_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let transcript = dir.path().join("agent-a9.jsonl");
        std::fs::write(
            &transcript,
            "{\"type\":\"user\",\"uuid\":\"u\",\"message\":{\"role\":\"user\",\"content\":\"x\"}}\n",
        )
        .unwrap();
        let meta = loci_storage::sessions::AgentMeta {
            agent_type: "x".to_owned(),
            description: "look".to_owned(),
            tool_use_id: Some("toolu_1".to_owned()),
            ..Default::default()
        };
        let file = AgentFile { id: "a9".into(), transcript, meta };
        let lines = launched(1, "unused")[..1].to_vec();
        let said = notice(&entries(&lines), || vec![file]).unwrap();
        assert!(said.contains("- a9: agent (x): look. It was cut off; SendMessage"), "{said}");
    }
}
