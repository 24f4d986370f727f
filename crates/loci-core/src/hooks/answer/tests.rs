//! What exit codes, output and objects of each event are read as.

use serde_json::json;

use super::*;

fn render(answer: &HookAnswer) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut add = |name: &str, text: &Option<String>| {
        parts.extend(text.as_ref().map(|text| format!("{name}={text}")));
    };
    add("stop", &answer.stop);
    add("block", &answer.block);
    add("context", &answer.context);
    add("plain", &answer.plain);
    add("message", &answer.message);
    add("error", &answer.error);
    add("worktree", &answer.worktree);
    add("display", &answer.display);
    parts.extend(answer.permission.as_ref().map(|(word, why)| format!("{word:?}({why})")));
    parts.extend(answer.input.as_ref().map(|input| format!("input={input}")));
    parts.extend(answer.output.as_ref().map(|output| format!("output={output}")));
    parts.extend(answer.reply.as_ref().map(|reply| format!("{reply:?}")));
    parts.join(" ")
}

fn check(event: HookEvent, code: i32, stdout: &str, stderr: &str, expected: &str) {
    let end = HandlerEnd::Exited { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() };
    let answer = HookAnswer::read(event, &format!("{}:T", event.name()), "cmd", &end);
    assert_eq!(render(&answer), expected, "{event:?} {code} {stdout} {stderr}");
}

#[test]
fn exit_code_zero_is_plain_text_or_an_object() {
    use HookEvent::{PreToolUse, SessionStart, Stop, UserPromptSubmit, WorktreeCreate};
    check(UserPromptSubmit, 0, " words \n", "noise", "plain=words");
    check(SessionStart, 0, "words", "", "plain=words");
    check(PreToolUse, 0, "words", "", "");
    check(Stop, 0, "words", "noise", "");
    check(UserPromptSubmit, 0, "{broken", "", "plain={broken");
    check(UserPromptSubmit, 0, "[1]", "", "plain=[1]");
    check(UserPromptSubmit, 0, " {\"systemMessage\": \"hi\"}\n", "", "message=hi");
    check(WorktreeCreate, 0, "making\n/tmp/w \n\n", "", "worktree=/tmp/w");
}

#[test]
fn exit_code_two_blocks_whatever_else_is_said() {
    use HookEvent::{PostToolUse, PreToolUse, Stop, UserPromptSubmit, WorktreeCreate};
    check(PreToolUse, 2, "", "no\n", "Deny(PreToolUse:T hook error: [cmd]: no)");
    check(PreToolUse, 2, "", "", "Deny(PreToolUse:T hook error: [cmd]: No stderr output)");
    let allow = r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {}}}"#;
    check(PreToolUse, 2, allow, "no", "Deny(PreToolUse:T hook error: [cmd]: no)");
    check(PreToolUse, 2, "{broken", "no", "Deny(PreToolUse:T hook error: [cmd]: no)");
    // What was printed is not read at all then.
    check(
        PreToolUse,
        2,
        r#"{"decision": "block", "reason": "said", "systemMessage": "said"}"#,
        "no",
        "Deny(PreToolUse:T hook error: [cmd]: no)",
    );
    check(UserPromptSubmit, 2, "plain", "no", "block=no");
    check(Stop, 2, "", "one-more\n", "block=[cmd]: one-more");
    check(PostToolUse, 2, r#"{"decision": "block", "reason": "said"}"#, "no", "block=no");
    check(WorktreeCreate, 1, "/tmp/w", "no", "block=no");
}

#[test]
fn other_exit_codes_are_no_block_and_an_object_still_decides() {
    use HookEvent::{PreToolUse, UserPromptSubmit};
    check(PreToolUse, 1, "", "\nfirst\nsecond", "error=exit code 1: first");
    check(PreToolUse, 127, "", "", "error=exit code 127");
    check(PreToolUse, 1, r#"{"decision": "block", "reason": "r"}"#, "e", "Deny(r)");
    check(UserPromptSubmit, 3, "words", "e", "error=exit code 3: e");
}

#[test]
fn objects_are_read_by_their_event() {
    use HookEvent::{
        MessageDisplay, PermissionRequest, PostToolUse, PreCompact, PreToolUse, SessionEnd, Stop,
        UserPromptSubmit,
    };
    let specific = |event: HookEvent, rest: Value| {
        let mut fields = json!({"hookEventName": event.name()});
        fields.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        json!({"hookSpecificOutput": fields}).to_string()
    };
    for (event, output, expected) in [
        (
            PreToolUse,
            specific(PreToolUse, json!({"permissionDecision": "deny", "permissionDecisionReason": "r"})),
            "Deny(r)",
        ),
        (PreToolUse, specific(PreToolUse, json!({"permissionDecision": "ask"})), "Ask()"),
        (PreToolUse, specific(PreToolUse, json!({"permissionDecision": "defer"})), "Defer()"),
        (
            PreToolUse,
            specific(
                PreToolUse,
                json!({"permissionDecision": "allow", "updatedInput": {"a": 1}, "additionalContext": "c"}),
            ),
            r#"context=c Allow() input={"a":1}"#,
        ),
        (PreToolUse, json!({"decision": "approve", "reason": "r"}).to_string(), "Allow(r)"),
        (
            PreToolUse,
            specific(PreToolUse, json!({"permissionDecision": "yes"})),
            "error=no such `permissionDecision`: \"yes\"",
        ),
        (
            PreToolUse,
            specific(PreToolUse, json!({"updatedInput": "x"})),
            "error=`updatedInput` is an object, found \"x\"",
        ),
        (
            PreToolUse,
            specific(PostToolUse, json!({})),
            "error=`hookSpecificOutput` is for \"PostToolUse\", and this is \"PreToolUse\"",
        ),
        (
            PreToolUse,
            json!({"hookSpecificOutput": {"permissionDecision": "deny"}}).to_string(),
            "error=`hookSpecificOutput` has no `hookEventName`",
        ),
        (
            PreToolUse,
            json!({"permissionDecision": "deny"}).to_string(),
            "error=`permissionDecision` counts inside `hookSpecificOutput` alone",
        ),
        (
            PreToolUse,
            format!("checked\n{}", specific(PreToolUse, json!({"permissionDecision": "deny"}))),
            "error=what it printed holds a decision and is not read: print one whole JSON object and nothing else",
        ),
        (
            PreToolUse,
            r#"{"hookSpecificOutput": {"permissionDecision": "deny""#.to_owned(),
            "error=what it printed holds a decision and is not read: print one whole JSON object and nothing else",
        ),
        (
            PreToolUse,
            json!({"continue": "no"}).to_string(),
            "error=`continue` is true or false, found \"no\"",
        ),
        (PreToolUse, json!({"continue": false, "stopReason": "r"}).to_string(), "stop=r"),
        (UserPromptSubmit, json!({"decision": "block", "reason": "r"}).to_string(), "block=r"),
        (
            UserPromptSubmit,
            json!({"decision": "deny"}).to_string(),
            "error=`decision` is \"approve\" or \"block\", found \"deny\"",
        ),
        (UserPromptSubmit, specific(UserPromptSubmit, json!({"additionalContext": "c"})), "context=c"),
        (Stop, json!({"decision": "block"}).to_string(), "block=Blocked by a hook, which did not say why"),
        (PreCompact, json!({"decision": "block", "reason": "r"}).to_string(), "block=r"),
        (SessionEnd, json!({"decision": "block", "reason": "r"}).to_string(), ""),
        (PostToolUse, specific(PostToolUse, json!({"updatedToolOutput": {"x": 1}})), r#"output={"x":1}"#),
        (MessageDisplay, specific(MessageDisplay, json!({"displayContent": "d"})), "display=d"),
        (
            PermissionRequest,
            specific(
                PermissionRequest,
                json!({"decision": {"behavior": "deny", "message": "m", "interrupt": true}}),
            ),
            "Deny { message: \"m\", stops: true }",
        ),
        (
            PermissionRequest,
            specific(PermissionRequest, json!({"decision": {"behavior": "maybe"}})),
            "error=`behavior` is \"allow\" or \"deny\", found Some(\"maybe\")",
        ),
    ] {
        check(event, 0, &output, "", expected);
    }
}

#[test]
fn responses_cannot_block_by_their_status() {
    for (status, body, expected) in [
        (200, "", ""),
        (204, " ", ""),
        (200, r#"{"decision": "block", "reason": "r"}"#, "Deny(r)"),
        (200, "fine", "error=the address answered with something that is no JSON object"),
        (200, "[]", "error=the address answered with something that is no JSON object"),
        (403, r#"{"decision": "block"}"#, "error=the address answered with status 403"),
        (500, "", "error=the address answered with status 500"),
    ] {
        let end = HandlerEnd::Responded { status, body: body.to_owned() };
        assert_eq!(
            render(&HookAnswer::read(HookEvent::PreToolUse, "h", "l", &end)),
            expected,
            "{status} {body}"
        );
    }
}

#[test]
fn word_of_a_model_is_a_block_or_ends_the_turn_by_the_event() {
    use HookEvent::{
        PermissionRequest, PostToolBatch, PostToolUse, PostToolUseFailure, PreToolUse, Stop, UserPromptSubmit,
    };
    for (event, is_impossible, continues, expected) in [
        (Stop, false, false, "block=r"),
        (Stop, true, false, ""),
        (PreToolUse, false, false, "stop=r Deny(r)"),
        (PreToolUse, false, true, "Deny(r)"),
        (PostToolUse, false, false, "stop=r"),
        (PostToolUse, false, true, "block=r"),
        (PostToolBatch, false, false, "stop=r"),
        (PostToolUseFailure, false, false, "block=r"),
        (UserPromptSubmit, false, false, "block=r"),
        (PermissionRequest, false, false, ""),
    ] {
        let end = HandlerEnd::Judged { is_ok: false, reason: "r".to_owned(), is_impossible, continues };
        assert_eq!(
            render(&HookAnswer::read(event, "h", "l", &end)),
            expected,
            "{event:?} {is_impossible} {continues}"
        );
        let fine = HandlerEnd::Judged { is_ok: true, reason: "r".to_owned(), is_impossible, continues };
        assert_eq!(HookAnswer::read(event, "h", "l", &fine), HookAnswer::default());
    }
}

#[test]
fn timeout_is_no_block_unless_a_client_was_asked() {
    let read =
        |blocks| render(&HookAnswer::read(HookEvent::PreToolUse, "h", "l", &HandlerEnd::TimedOut { blocks }));
    assert_eq!(read(false), "error=it did not end in time, and was stopped");
    assert!(read(true).starts_with("Deny(h hook [l] did not answer in time"));
}

#[test]
fn terminal_sequences_are_titles_and_notifications_or_nothing() {
    for (text, expected) in [
        ("\u{7}", true),
        ("\u{1b}]0;title\u{7}", true),
        ("\u{1b}]777;notify;a;b\u{1b}\\\u{7}", true),
        ("\u{1b}]52;c;aGk=\u{7}", false),
        ("\u{1b}]0;title", false),
        ("\u{1b}[2J", false),
        ("\u{1b}]9;x\u{7}\u{1b}[2J", false),
        ("plain", false),
        ("\u{1b}]0;a\nb\u{7}", false),
    ] {
        assert_eq!(is_harmless_sequence(text), expected, "{text:?}");
    }
}
