use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::entry::{Entry, EntryKind};
use crate::raw::RawObject;

fn written(attachment: &Attachment) -> String {
    serde_json::to_string(attachment).unwrap()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|it| (*it).to_owned()).collect()
}

/// Every kind with the bytes that sessions on people's disks have.
fn golden() -> Vec<(Attachment, &'static str)> {
    vec![
        (
            Attachment::QueuedCommand { prompt: json!([{"type": "text", "text": "hi"}]), command_mode: None },
            r#"{"type":"queued_command","prompt":[{"type":"text","text":"hi"}]}"#,
        ),
        (
            Attachment::QueuedCommand { prompt: json!("hi"), command_mode: Some(text("task-notification")) },
            r#"{"type":"queued_command","prompt":"hi","commandMode":"task-notification"}"#,
        ),
        (
            Attachment::File {
                filename: text("/p/a"),
                content: json!({"type": "text", "file": {"filePath": "/p/a", "content": "x"}}),
                display_path: Some(text("a")),
            },
            r#"{"type":"file","filename":"/p/a","content":{"type":"text","file":{"filePath":"/p/a","content":"x"}},"displayPath":"a"}"#,
        ),
        (
            Attachment::Directory { path: text("/p"), content: text("a\nb"), display_path: Some(text(".")) },
            r#"{"type":"directory","path":"/p","content":"a\nb","displayPath":"."}"#,
        ),
        (
            Attachment::AgentMention { agent_type: text("scout") },
            r#"{"type":"agent_mention","agentType":"scout"}"#,
        ),
        (
            Attachment::SessionMention { session_id: text("s"), text: text("said") },
            r#"{"type":"session_mention","sessionId":"s","text":"said"}"#,
        ),
        (
            Attachment::McpResource { server: text("c"), uri: text("u"), name: text("u"), text: text("t") },
            r#"{"type":"mcp_resource","server":"c","uri":"u","name":"u","text":"t"}"#,
        ),
        (
            Attachment::UnknownCommand {
                command_name: text("x"),
                available_command_names: texts(&["a", "b"]),
                available_command_count: 40,
            },
            r#"{"type":"unknown_command_fallback","commandName":"x","availableCommandNames":["a","b"],"availableCommandCount":40}"#,
        ),
        (
            Attachment::AgentRoster { names: texts(&["main", "b"]) },
            r#"{"type":"agent_roster","names":["main","b"]}"#,
        ),
        (Attachment::Ultrathink {}, r#"{"type":"ultrathink"}"#),
        (
            Attachment::EditedTextFile { filename: text("/p/a"), snippet: text("s") },
            r#"{"type":"edited_text_file","filename":"/p/a","snippet":"s"}"#,
        ),
        (
            Attachment::NestedMemory {
                path: text("/p/CLAUDE.md"),
                content: NestedMemoryContent {
                    path: text("/p/CLAUDE.md"),
                    scope: text("Project"),
                    content: text("be"),
                    content_differs_from_disk: false,
                    globs: texts(&["*.rs"]),
                    parent: Some(text("/p/b.md")),
                },
                display_path: Some(text("CLAUDE.md")),
            },
            r#"{"type":"nested_memory","path":"/p/CLAUDE.md","content":{"path":"/p/CLAUDE.md","type":"Project","content":"be","contentDiffersFromDisk":false,"globs":["*.rs"],"parent":"/p/b.md"},"displayPath":"CLAUDE.md"}"#,
        ),
        (
            Attachment::PlanMode {
                reminder_type: text("full"),
                is_sub_agent: false,
                plan_file_path: text("/c/a.md"),
                plan_exists: true,
                can_exit: Some(false),
                instructions: Some(text("i")),
            },
            r#"{"type":"plan_mode","reminderType":"full","isSubAgent":false,"planFilePath":"/c/a.md","planExists":true,"canExit":false,"instructions":"i"}"#,
        ),
        (
            Attachment::PlanModeExit { plan_file_path: text("/c/a.md"), plan_exists: false },
            r#"{"type":"plan_mode_exit","planFilePath":"/c/a.md","planExists":false}"#,
        ),
        (
            Attachment::Restored { name: text("The skill a"), content: text("c") },
            r#"{"type":"restored","name":"The skill a","content":"c"}"#,
        ),
        (
            Attachment::AgentListingDelta {
                added_types: texts(&["a"]),
                added_lines: texts(&["- a"]),
                removed_types: Vec::new(),
                is_initial: true,
                show_concurrency_note: false,
            },
            r#"{"type":"agent_listing_delta","addedTypes":["a"],"addedLines":["- a"],"removedTypes":[],"isInitial":true,"showConcurrencyNote":false}"#,
        ),
        (
            Attachment::McpInstructionsDelta {
                added_names: texts(&["c"]),
                added_blocks: texts(&["## c"]),
                removed_names: Vec::new(),
            },
            r###"{"type":"mcp_instructions_delta","addedNames":["c"],"addedBlocks":["## c"],"removedNames":[]}"###,
        ),
        (
            Attachment::DateChange { new_date: text("2026-01-02") },
            r#"{"type":"date_change","newDate":"2026-01-02"}"#,
        ),
        (
            Attachment::HookAdditionalContext {
                content: texts(&["c"]),
                hook_name: text("Stop"),
                tool_use_id: text("t"),
                hook_event: text("Stop"),
            },
            r#"{"type":"hook_additional_context","content":["c"],"hookName":"Stop","toolUseID":"t","hookEvent":"Stop"}"#,
        ),
        (
            Attachment::HookBlockingError {
                hook_name: text("n"),
                tool_use_id: text("t"),
                hook_event: text("e"),
                blocking_error: BlockingError { blocking_error: text("no"), command: text("c") },
            },
            r#"{"type":"hook_blocking_error","hookName":"n","toolUseID":"t","hookEvent":"e","blockingError":{"blockingError":"no","command":"c"}}"#,
        ),
        (
            Attachment::HookNonBlockingError {
                hook_name: text("n"),
                tool_use_id: text("t"),
                hook_event: text("e"),
                stderr: text("x"),
                stdout: text(""),
                exit_code: 1,
                command: text("c"),
                duration_ms: 7,
            },
            r#"{"type":"hook_non_blocking_error","hookName":"n","toolUseID":"t","hookEvent":"e","stderr":"x","stdout":"","exitCode":1,"command":"c","durationMs":7}"#,
        ),
        (
            Attachment::HookSuccess {
                hook_name: text("n"),
                tool_use_id: text("t"),
                hook_event: text("e"),
                content: text("k"),
                stdout: text("k"),
                stderr: text(""),
                exit_code: 0,
                command: text("c"),
                duration_ms: 7,
            },
            r#"{"type":"hook_success","hookName":"n","toolUseID":"t","hookEvent":"e","content":"k","stdout":"k","stderr":"","exitCode":0,"command":"c","durationMs":7}"#,
        ),
        (
            Attachment::HookClassifierContext {
                content: text("k"),
                tool_name: text("Bash"),
                tool_use_id: text("t"),
                hook_event: text("PostToolUse"),
            },
            r#"{"type":"hook_classifier_context","content":"k","toolName":"Bash","toolUseID":"t","hookEvent":"PostToolUse"}"#,
        ),
        (
            Attachment::HookDeferredTool {
                tool_use_id: text("t"),
                tool_name: text("Bash"),
                tool_input: json!({"command": "ls"}),
                hook_event: text("PreToolUse"),
            },
            r#"{"type":"hook_deferred_tool","toolUseID":"t","toolName":"Bash","toolInput":{"command":"ls"},"hookEvent":"PreToolUse"}"#,
        ),
        (
            Attachment::SkillListing {
                content: text("- a"),
                skill_count: 1,
                is_initial: true,
                names: texts(&["a"]),
                rendered: Some(text("r")),
                rendered_role: Some(text("user")),
            },
            r#"{"type":"skill_listing","content":"- a","skillCount":1,"isInitial":true,"names":["a"],"rendered":"r","renderedRole":"user"}"#,
        ),
        (
            Attachment::DeferredToolsDelta {
                added_names: texts(&["a"]),
                removed_names: Vec::new(),
                loaded_names: texts(&["z"]),
                rendered: Some(text("r")),
                rendered_role: Some(text("user")),
            },
            r#"{"type":"deferred_tools_delta","addedNames":["a"],"removedNames":[],"loadedNames":["z"],"rendered":"r","renderedRole":"user"}"#,
        ),
        (
            Attachment::OutputStyle {
                style: text("terse"),
                rendered: Some(text("r")),
                rendered_role: Some(text("user")),
            },
            r#"{"type":"output_style","style":"terse","rendered":"r","renderedRole":"user"}"#,
        ),
        (
            Attachment::CommandPermissions { allowed_tools: texts(&["Read"]) },
            r#"{"type":"command_permissions","allowedTools":["Read"]}"#,
        ),
        (
            Attachment::MaxTurnsReached { max_turns: 3, turn_count: 4 },
            r#"{"type":"max_turns_reached","maxTurns":3,"turnCount":4}"#,
        ),
        (
            Attachment::StructuredOutput { data: json!({"n": 1}) },
            r#"{"type":"structured_output","data":{"n":1}}"#,
        ),
        (
            Attachment::PromptSnapshot { system_prompt: json!(["a", "b"]) },
            r#"{"type":"prompt_snapshot","systemPrompt":["a","b"]}"#,
        ),
    ]
}

#[test]
fn every_kind_is_written_and_read_as_it_always_was() {
    for (attachment, expected) in golden() {
        assert_eq!(written(&attachment), expected);
        assert_eq!(Attachment::parse(expected), attachment);
    }
    for kind in AttachmentKind::ALL {
        assert!(golden().iter().any(|(it, _)| it.kind() == Some(*kind)), "{kind:?} has no golden line");
        let bare = format!(r#"{{"type":"{}"}}"#, kind.name());
        assert_eq!(Attachment::parse(&bare).kind(), Some(*kind));
    }
}

#[test]
fn attachments_of_recorded_sessions_come_back_byte_for_byte() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/sessions");
    #[expect(clippy::disallowed_methods, reason = "tests read their fixtures")]
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let mut n_seen = 0;
    for file in std::fs::read_dir(dir).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "jsonl") {
            continue;
        }
        for line in read(&path).lines() {
            let Some(entry) = Entry::parse(line).ok().filter(|it| it.head().kind == EntryKind::Attachment)
            else {
                continue;
            };
            let raw = RawObject::parse(line).unwrap().get("attachment").unwrap().get().to_owned();
            assert_eq!(written(&entry.recorded_attachment().unwrap()), raw);
            assert_eq!(written(&entry.attachment().unwrap()), raw, "{}", path.display());
            n_seen += 1;
        }
    }
    assert!(n_seen > 20, "the fixtures are missing: {n_seen}");
}

#[test]
fn unknown_kinds_are_kept_as_they_are() {
    for raw in [
        r#"{"type":"from_the_future","n": 1.50,"big":123456789012345678901234567890,"a":{"x":[ ]},"s":"\u00e9"}"#,
        r#"{"x":1}"#,
        r#"{"type":7}"#,
        r#"[1, 2]"#,
        "7",
    ] {
        let attachment = Attachment::parse(raw);
        assert_eq!((attachment.kind(), written(&attachment).as_str()), (None, raw));
    }
}

#[test]
fn recorded_attachment_keeps_fields_that_its_kind_does_not_have() {
    let raw = r#"{"type":"date_change","rendered":"It is Monday","newDate":"d"}"#;
    let recorded = Attachment::recorded(raw);
    assert_eq!(written(&recorded), raw);
    assert_eq!(*recorded.typed(), Attachment::DateChange { new_date: text("d") });
}

#[test]
fn fields_of_another_shape_count_as_empty() {
    let read = Attachment::parse(r#"{"type":"directory","path":7,"content":"a","displayPath":[]}"#);
    assert_eq!(read, Attachment::Directory { path: text(""), content: text("a"), display_path: None });
    let read = Attachment::parse(r#"{"type":"agent_roster","names":["a",7,"b"]}"#);
    assert_eq!(read, Attachment::AgentRoster { names: texts(&["a", "b"]) });
}

proptest! {
    #[test]
    fn any_object_is_kept(kind in "[a-z_]{1,12}", extra in "[ -~é🦀]{0,20}") {
        let raw = json!({"type": kind, "text": extra}).to_string();
        let attachment = Attachment::parse(&raw);
        prop_assert_eq!(written(&Attachment::recorded(&raw)), raw.as_str());
        if attachment.kind().is_none() {
            prop_assert_eq!(written(&attachment), raw);
        }
    }
}
