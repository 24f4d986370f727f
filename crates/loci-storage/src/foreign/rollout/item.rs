//! One line of a rollout, and what it says.

use loci_core::entry::Entry;
use serde_json::{Map, Value, json};

use super::words;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RolloutItem {
    /// Whose rollout it is.
    Meta(Value),
    /// Somebody asked: blocks of text and pictures.
    Prompt(Vec<Value>),
    /// The person stopped the turn.
    Interrupted,
    /// The model answered.
    Answer(String),
    /// The model thought, as far as it may be read.
    Thinking(String),
    /// The model called a tool.
    Call(Call),
    /// A tool answered.
    CallOutput(CallOutput),
    /// What came before is summarised from here on.
    Compacted {
        summary: String,
        /// What the person said, as far as it was kept.
        prompts: Vec<String>,
    },
    /// So many prompts, with all that followed them, were taken back.
    RolledBack(usize),
    /// The model that answers from here on.
    Model(String),
    /// Nothing that anybody said.
    Nothing,
}

/// A call, with the name and input that our tools would have.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

/// What a tool said: a text, or blocks of text and pictures.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CallOutput {
    pub(super) call: String,
    pub(super) content: Value,
    pub(super) is_error: bool,
}

/// A line with its time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RolloutLine {
    pub(super) time: Option<String>,
    pub(super) item: RolloutItem,
}

impl RolloutLine {
    /// Reads a line; `None` when it is no line of a rollout.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line: Map<String, Value> = serde_json::from_str(text.trim()).ok()?;
        let (kind, payload) = (line.get("type")?.as_str()?, line.get("payload")?);
        let item = match kind {
            "session_meta" => RolloutItem::Meta(payload.clone()),
            "response_item" => response_item(payload),
            "compacted" => compacted(payload),
            "turn_context" => {
                payload["model"].as_str().map_or(RolloutItem::Nothing, |it| RolloutItem::Model(it.to_owned()))
            }
            "event_msg" if payload["type"] == "thread_rolled_back" => RolloutItem::RolledBack(
                payload["num_turns"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0),
            ),
            _ => RolloutItem::Nothing,
        };
        Some(Self { time: line.get("timestamp").and_then(Value::as_str).map(str::to_owned), item })
    }
}

fn response_item(payload: &Value) -> RolloutItem {
    let text = |key: &str| payload[key].as_str().unwrap_or_default().to_owned();
    match payload["type"].as_str() {
        Some("message") => message(payload),
        Some("reasoning") => {
            let texts: Vec<String> =
                [&payload["summary"], &payload["content"]].into_iter().flat_map(texts).collect();
            RolloutItem::Thinking(texts.join("\n\n"))
        }
        Some("function_call") => {
            RolloutItem::Call(call(text("call_id"), &text("name"), &arguments(&payload["arguments"])))
        }
        Some("custom_tool_call") => {
            RolloutItem::Call(call(text("call_id"), &text("name"), &json!({"input": payload["input"]})))
        }
        Some("local_shell_call") => {
            let id = payload["call_id"].as_str().or(payload["id"].as_str()).unwrap_or_default();
            RolloutItem::Call(call(id.to_owned(), "local_shell", &payload["action"]))
        }
        Some("tool_search_call") => {
            RolloutItem::Call(call(text("call_id"), "tool_search", &payload["arguments"]))
        }
        Some("function_call_output" | "custom_tool_call_output") => {
            RolloutItem::CallOutput(output(text("call_id"), &payload["output"]))
        }
        Some("tool_search_output") => RolloutItem::CallOutput(output(text("call_id"), &payload["tools"])),
        // Searches of the server have no output of their own.
        Some("web_search_call") => {
            let query = payload["action"]["query"].as_str().unwrap_or_default();
            if query.is_empty() {
                RolloutItem::Nothing
            } else {
                RolloutItem::Answer(format!("[Searched the web: {query}]"))
            }
        }
        _ => RolloutItem::Nothing,
    }
}

fn message(payload: &Value) -> RolloutItem {
    match payload["role"].as_str() {
        Some("assistant") => RolloutItem::Answer(texts(&payload["content"]).join("\n\n")),
        Some("user") => words::prompt(payload),
        _ => RolloutItem::Nothing,
    }
}

/// Returns the texts of a list of parts.
fn texts(parts: &Value) -> Vec<String> {
    let parts = parts.as_array().into_iter().flatten();
    parts
        .filter_map(|part| part["text"].as_str())
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

fn compacted(payload: &Value) -> RolloutItem {
    let summary = payload["message"].as_str().unwrap_or_default().to_owned();
    // One that only the server can read stands for nothing here: what it covers is kept as it was.
    if summary.trim().is_empty() {
        return RolloutItem::Nothing;
    }
    let kept = payload["replacement_history"].as_array().into_iter().flatten();
    let prompts =
        kept.filter(|item| item["type"] == "message" && item["role"] == "user").filter_map(|item| {
            let RolloutItem::Prompt(blocks) = words::prompt(item) else { return None };
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            Some(texts.join("\n")).filter(|text| !text.is_empty() && *text != summary)
        });
    RolloutItem::Compacted { prompts: prompts.collect(), summary }
}

/// Arguments are a text that holds JSON, as the model wrote it.
fn arguments(text: &Value) -> Value {
    match text.as_str().map(serde_json::from_str::<Value>) {
        Some(Ok(value @ Value::Object(_))) => value,
        Some(_) | None => json!({"arguments": text}),
    }
}

/// Gives a call the name and the input that our tools have: commands are calls of Bash.
fn call(id: String, name: &str, input: &Value) -> Call {
    let command = match name {
        "shell" | "local_shell" | "container.exec" | "shell_command" => command(&input["command"]),
        "exec_command" => command(&input["cmd"]),
        _ => None,
    };
    let (name, input) = match command {
        Some(command) => {
            let dir = input["workdir"].as_str().or(input["working_directory"].as_str());
            let command = match dir.filter(|dir| !dir.is_empty()) {
                Some(dir) => format!("cd {} && {command}", quoted(dir)),
                None => command,
            };
            ("Bash".to_owned(), json!({"command": command}))
        }
        None if input.is_object() => (plain_name(name), input.clone()),
        None => (plain_name(name), json!({"input": input})),
    };
    Call { id, name, input }
}

/// Returns a command as a shell reads it: a text, words, or a script that a shell was given.
fn command(value: &Value) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let words: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    match words?.as_slice() {
        [] => None,
        [shell, "-c" | "-lc", script] if ["bash", "sh", "zsh"].iter().any(|name| shell.ends_with(name)) => {
            Some((*script).to_owned())
        }
        words => Some(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    }
}

fn quoted(word: &str) -> String {
    let is_plain = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=:".contains(&byte));
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Returns a name that the Messages API takes for a tool.
fn plain_name(name: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "_-".contains(char) { char } else { '_' };
    let name: String = name.chars().map(plain).take(64).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

fn output(call: String, output: &Value) -> CallOutput {
    let Some(text) = output.as_str() else {
        let blocks = words::blocks(output);
        let content = if blocks.is_empty() { json!(output.to_string()) } else { Value::Array(blocks) };
        return CallOutput { call, content, is_error: false };
    };
    // Earlier versions wrapped text and exit code in JSON.
    let wrapped: Option<Value> = serde_json::from_str(text).ok();
    let inner = wrapped.as_ref().and_then(|value| value["output"].as_str());
    let code = wrapped.as_ref().and_then(|value| value["metadata"]["exit_code"].as_i64());
    CallOutput {
        call,
        content: json!(inner.unwrap_or(text)),
        is_error: code.or_else(|| exit_code(text)).is_some_and(|code| code != 0),
    }
}

/// Reads the exit code off the lines before the output of a command.
fn exit_code(text: &str) -> Option<i64> {
    let head = text.lines().take_while(|line| *line != "Output:").take(6);
    head.filter_map(|line| {
        line.strip_prefix("Process exited with code ").or(line.strip_prefix("Exit code: "))
    })
    .find_map(|code| code.trim().parse().ok())
}

/// Returns what a line says as entries of our own form, without a place in a conversation; for searching.
pub(crate) fn entries_of(bytes: &[u8]) -> Vec<Entry> {
    // Most lines are repetitions.
    let has = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
    if !has("\"response_item\"") && !has("\"compacted\"") {
        return Vec::new();
    }
    let Some(line) = RolloutLine::parse(&String::from_utf8_lossy(bytes)) else { return Vec::new() };
    let user = |content: Value| json!({"type": "user", "message": {"role": "user", "content": content}});
    let model =
        |block: Value| json!({"type": "assistant", "message": {"role": "assistant", "content": [block]}});
    let mut entry = match line.item {
        RolloutItem::Prompt(blocks) => user(Value::Array(blocks)),
        RolloutItem::Answer(text) => model(json!({"type": "text", "text": text})),
        RolloutItem::Thinking(text) => model(json!({"type": "thinking", "thinking": text})),
        RolloutItem::Call(call) => {
            model(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}))
        }
        RolloutItem::CallOutput(output) => {
            user(json!([{"type": "tool_result", "tool_use_id": output.call, "content": output.content}]))
        }
        RolloutItem::Compacted { summary, .. } => {
            let mut entry = user(Value::from(summary));
            entry["isCompactSummary"] = Value::Bool(true);
            entry
        }
        RolloutItem::Meta(_)
        | RolloutItem::Interrupted
        | RolloutItem::RolledBack(_)
        | RolloutItem::Model(_)
        | RolloutItem::Nothing => {
            return Vec::new();
        }
    };
    if let Some(time) = line.time {
        entry["timestamp"] = Value::from(time);
    }
    Entry::parse(entry.to_string()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(payload: Value) -> RolloutItem {
        let line =
            json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": "response_item", "payload": payload});
        RolloutLine::parse(&line.to_string()).unwrap().item
    }

    #[test]
    fn commands_become_calls_of_bash() {
        for (name, arguments, expected) in [
            ("exec_command", json!({"cmd": "ls"}), "ls"),
            ("exec_command", json!({"cmd": "ls", "workdir": "/a b"}), "cd '/a b' && ls"),
            ("shell_command", json!({"command": "ls | wc"}), "ls | wc"),
            ("shell", json!({"command": ["bash", "-lc", "ls | wc"]}), "ls | wc"),
            ("shell", json!({"command": ["/bin/zsh", "-c", "x"]}), "x"),
            ("shell", json!({"command": ["git", "commit", "-m", "it's"]}), r"git commit -m 'it'\''s'"),
        ] {
            let payload = json!({"type": "function_call", "name": name, "arguments": arguments.to_string(), "call_id": "c"});
            let RolloutItem::Call(call) = item(payload) else { panic!("{name}") };
            assert_eq!(
                (call.name.as_str(), &call.input),
                ("Bash", &json!({"command": expected})),
                "{arguments}"
            );
        }
    }

    #[test]
    fn other_calls_keep_their_names_as_far_as_names_may_be() {
        let call = |payload: Value| match item(payload) {
            RolloutItem::Call(call) => (call.id, call.name, call.input),
            other => panic!("{other:?}"),
        };
        let function = |name: &str, arguments: Value| {
            call(json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": "c"}))
        };
        assert_eq!(
            function("update_plan", json!("{\"plan\":[]}")),
            ("c".into(), "update_plan".into(), json!({"plan": []}))
        );
        assert_eq!(function("mcp.a/b", json!("{")).1, "mcp_a_b");
        assert_eq!(function("", json!("[1]")), ("c".into(), "unknown".into(), json!({"arguments": "[1]"})));
        assert_eq!(function("shell", json!("{\"command\":[]}")).1, "shell");
        let patch =
            json!({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin", "call_id": "d"});
        assert_eq!(call(patch), ("d".into(), "apply_patch".into(), json!({"input": "*** Begin"})));
        let shell =
            json!({"type": "local_shell_call", "id": "l", "action": {"type": "exec", "command": ["ls"]}});
        assert_eq!(call(shell), ("l".into(), "Bash".into(), json!({"command": "ls"})));
    }

    #[test]
    fn outputs_say_whether_they_failed() {
        let wrapped = |code: i64| json!({"output": "text", "metadata": {"exit_code": code}}).to_string();
        for (output, content, is_error) in [
            (json!("plain"), json!("plain"), false),
            (json!(wrapped(0)), json!("text"), false),
            (json!(wrapped(3)), json!("text"), true),
            (json!("Exit code: 1\nOutput:\nno"), json!("Exit code: 1\nOutput:\nno"), true),
            (json!("Chunk ID: a\nProcess exited with code 2\nOutput:\n"), Value::Null, true),
            (json!("Process exited with code 0\nOutput:\nExit code: 7"), Value::Null, false),
            (json!([{"type": "input_text", "text": "a"}]), json!([{"type": "text", "text": "a"}]), false),
            (json!({"odd": 1}), json!("{\"odd\":1}"), false),
        ] {
            let payload = json!({"type": "function_call_output", "call_id": "c", "output": output});
            let RolloutItem::CallOutput(found) = item(payload) else { panic!("{output}") };
            assert_eq!(found.is_error, is_error, "{output}");
            assert!(content.is_null() || found.content == content, "{output}: {found:?}");
        }
    }

    #[test]
    fn line_that_is_no_rollout_item_is_ignored() {
        for text in
            ["", "null", "[]", "{", "{\"type\":\"user\"}", "{\"type\":7,\"payload\":{}}", "{\"payload\":{}}"]
        {
            assert_eq!(RolloutLine::parse(text), None, "{text}");
        }
        for payload in
            [json!(null), json!({}), json!({"type": "message"}), json!({"type": "new thing"}), json!(7)]
        {
            assert_eq!(item(payload.clone()), RolloutItem::Nothing, "{payload}");
        }
    }

    #[test]
    fn summaries_that_cannot_be_read_are_none() {
        let line = |payload: Value| {
            RolloutLine::parse(&json!({"type": "compacted", "payload": payload}).to_string()).unwrap().item
        };
        assert_eq!(line(json!({"message": ""})), RolloutItem::Nothing);
        let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
        let kept = json!({"message": "Sum", "replacement_history": [said("Fix it"), said("Sum"), {"type": "compaction"}]});
        assert_eq!(
            line(kept),
            RolloutItem::Compacted { summary: "Sum".into(), prompts: vec!["Fix it".into()] }
        );
    }
}
