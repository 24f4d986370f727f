use expect_test::{Expect, expect};
use loci_core::entry::Entry;
use loci_core::message::Block;

use super::*;

/// Renders what would be sent for a list of lines, one message a line.
fn check(lines: &[&str], expected: Expect) {
    let entries: Vec<Entry> = lines.iter().map(|line| Entry::parse(*line).unwrap()).collect();
    let whole = Projection::from_path(&entries);
    let mut live = Projection::default();
    for entry in &entries {
        live.push(entry);
        // What was settled before stays settled.
        let settled = live.messages(None);
        assert!(whole.messages(None).len() + 1 >= settled.len());
    }
    assert_eq!(whole.messages(None), live.messages(None));
    expected.assert_eq(&render(&whole.messages(None)));
}

fn render(messages: &[Message]) -> String {
    messages
        .iter()
        .map(|message| {
            let blocks: Vec<&str> = message.content.iter().map(|block| block.json().as_str()).collect();
            format!("{}: {}", message.role.as_str(), blocks.join(" "))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

const ASK: &str = r#"{"type":"user","message":{"role":"user","content":"Hi"}}"#;
const SAY: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"Hello."}]}}"#;

#[test]
fn blocks_of_one_response_are_one_message() {
    check(
        &[
            ASK,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"Hm","signature":"c2ln"}]}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}"#,
            r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t2","name":"Read","input":{}}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t2","type":"tool_result","content":"b"}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"a"}]}}"#,
        ],
        expect![[r#"
            user: {"type":"text","text":"Hi"}
            assistant: {"type":"thinking","thinking":"Hm","signature":"c2ln"} {"type":"tool_use","id":"t1","name":"Read","input":{}} {"type":"tool_use","id":"t2","name":"Read","input":{}}
            user: {"tool_use_id":"t2","type":"tool_result","content":"b"} {"tool_use_id":"t1","type":"tool_result","content":"a"}"#]],
    );
}

#[test]
fn results_come_first_then_reminders_then_text() {
    check(
        &[
            r#"{"type":"user","message":{"role":"user","content":"Next"}}"#,
            r#"{"type":"attachment","attachment":{"type":"date_change","newDate":"2026-01-02"}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"a"}]}}"#,
        ],
        expect![[r#"
            user: {"tool_use_id":"t1","type":"tool_result","content":"a"} {"type":"text","text":"<system-reminder>\nThe date is now 2026-01-02.\n</system-reminder>"} {"type":"text","text":"Next"}"#]],
    );
}

#[test]
fn messages_that_waited_stand_in_the_order_in_which_they_were_sent() {
    check(
        &[
            r#"{"type":"user","message":{"role":"user","content":"first"}}"#,
            r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"second"}}"#,
            r#"{"type":"attachment","attachment":{"type":"queued_command","prompt":"a task ended","commandMode":"task-notification"}}"#,
            r#"{"type":"user","message":{"role":"user","content":"third"}}"#,
        ],
        expect![[r#"
            user: {"type":"text","text":"<system-reminder>\na task ended\n</system-reminder>"} {"type":"text","text":"first"} {"type":"text","text":"<system-reminder>\nWhile you were working the user sent this message. Take it into account:\nsecond\n</system-reminder>"} {"type":"text","text":"third"}"#]],
    );
}

#[test]
fn failures_blanks_and_bare_reasoning_are_not_sent() {
    check(
        &[
            ASK,
            r#"{"type":"assistant","message":{"id":"m0","content":[{"type":"thinking","thinking":"Hm","signature":"x"}]}}"#,
            r#"{"type":"assistant","isApiErrorMessage":true,"message":{"id":"m9","content":[{"type":"text","text":"API Error"}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":"Again"}}"#,
            r#"{"type":"assistant","message":{"id":"m2","content":[{"type":"text","text":"  "}]}}"#,
            r#"{"type":"system","subtype":"turn_duration","durationMs":5}"#,
            r#"{"type":"attachment","attachment":{"type":"from_the_future","x":1}}"#,
            r#"{"type":"progress","uuid":"p"}"#,
            SAY,
        ],
        expect![[r#"
            user: {"type":"text","text":"Hi"} {"type":"text","text":"Again"}
            assistant: {"type":"text","text":"Hello."}"#]],
    );
}

/// An answer that stopped after a thought is not sent; the prompt before it is, whoever speaks next.
#[test]
fn prompt_before_bare_reasoning_is_sent_when_another_response_follows() {
    check(
        &[
            ASK,
            r#"{"type":"attachment","attachment":{"type":"date_change","newDate":"2026-01-02"}}"#,
            r#"{"type":"assistant","message":{"id":"m0","content":[{"type":"thinking","thinking":"Hm","signature":"x"}]}}"#,
            SAY,
            ASK,
        ],
        expect![[r#"
            user: {"type":"text","text":"<system-reminder>\nThe date is now 2026-01-02.\n</system-reminder>"} {"type":"text","text":"Hi"}
            assistant: {"type":"text","text":"Hello."}
            user: {"type":"text","text":"Hi"}"#]],
    );
}

#[test]
fn rendered_attachment_is_sent_as_it_was() {
    check(
        &[
            ASK,
            r#"{"type":"attachment","attachment":{"type":"date","rendered":"It is Monday.\n","renderedRole":"user"}}"#,
            r#"{"type":"attachment","attachment":{"type":"skill_listing","content":"x"},"rendered":"Skills: none","renderedRole":"system"}"#,
            r#"{"type":"attachment","attachment":{"type":"model","rendered":"<system-reminder>m</system-reminder>","renderedRole":"system"}}"#,
            r#"{"type":"attachment","attachment":{"type":"environment","rendered":[{"type":"text","text":"env"}," "],"renderedRole":"user"}}"#,
            r#"{"type":"attachment","attachment":{"type":"date_change","newDate":"d","rendered":7}}"#,
            SAY,
            r#"{"type":"attachment","attachment":{"type":"prompt_snapshot","rendered":"You are","renderedRole":"system"}}"#,
        ],
        expect![[r#"
            user: {"type":"text","text":"It is Monday.\n"} {"type":"text","text":"<system-reminder>\nSkills: none\n</system-reminder>"} {"type":"text","text":"<system-reminder>m</system-reminder>"} {"type":"text","text":"env"} {"type":"text","text":"Hi"}
            assistant: {"type":"text","text":"Hello."}"#]],
    );
}

#[test]
fn local_commands_speak_as_the_user() {
    check(
        &[r#"{"type":"system","subtype":"local_command","content":"<command-name>/x</command-name>"}"#],
        expect![[r#"user: {"type":"text","text":"<command-name>/x</command-name>"}"#]],
    );
}

#[test]
fn context_opens_the_first_message_only() {
    let entries = [ASK, SAY, ASK].map(|line| Entry::parse(line).unwrap());
    let projection = Projection::from_path(&entries);
    let context = Block::new_text("context");
    expect![[r#"
        user: {"type":"text","text":"context"} {"type":"text","text":"Hi"}
        assistant: {"type":"text","text":"Hello."}
        user: {"type":"text","text":"Hi"}"#]]
    .assert_eq(&render(&projection.messages(Some(&context))));
    assert_eq!(Projection::default().messages(Some(&context)), []);
}
