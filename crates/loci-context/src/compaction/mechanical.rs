//! The last resort: a summary made without a model, from the record alone. It always fits, says the same every time,
//! and says what it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use loci_core::entry::{Entry, EntryKind};
use loci_core::message::Block;

use super::carryover::{is_fold, prompt};
use super::clip::clip_tokens;
use crate::tokens::prose_tokens;

const OPENING: &str = "No model could be asked for a summary. What follows was put together from the record by rule, \
     without understanding it: look into the transcript wherever something seems to be missing.";

/// How many calls are named.
const MOST_CALLS: usize = 12;
/// How many characters of a call's input are shown.
const CALL_TOKENS: u64 = 40;

/// Makes the summary of entries in at most about so many tokens.
pub(super) fn mechanical(span: &[Arc<Entry>], most_tokens: u64) -> String {
    let left = most_tokens.saturating_sub(prose_tokens(OPENING));
    let said = span.iter().filter(|entry| is_said(entry)).flat_map(|entry| entry.blocks());
    let said: Vec<Block> = said.collect();
    let is_former = |entry: &&Arc<Entry>| entry.head().is_compact_summary || is_fold(entry);
    let former: Vec<String> = span.iter().filter(is_former).map(|entry| text_of(entry)).collect();
    let former = Some(former.join("\n\n")).filter(|text| !text.is_empty());
    let words = said.iter().rev().find_map(|block| block.text().filter(|text| !text.trim().is_empty()));
    let sections = [
        former.map(|text| section("The summary so far:", &clip_tokens(&text, left * 4 / 10))),
        prompts(span, left * 3 / 10).map(|text| section("What the user said, word for word:", &text)),
        words.map(|text| section("What the assistant said last:", &clip_tokens(&text, left * 15 / 100))),
        calls(&said, left * 15 / 100),
    ];
    let parts = std::iter::once(OPENING.to_owned()).chain(sections.into_iter().flatten());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn section(title: &str, text: &str) -> String {
    format!("{title}\n{text}")
}

fn is_said(entry: &Entry) -> bool {
    entry.head().kind == EntryKind::Assistant && !entry.head().is_api_error
}

fn text_of(entry: &Entry) -> String {
    entry.blocks().iter().filter_map(Block::text).collect::<Vec<_>>().join("\n")
}

/// Returns the newest prompts that fit, in order; the newest is cut when even that one does not.
fn prompts(span: &[Arc<Entry>], most_tokens: u64) -> Option<String> {
    let mut left = most_tokens;
    let mut shown: Vec<String> = Vec::new();
    let mut n_more = 0;
    for text in span.iter().rev().filter_map(|entry| prompt(entry)) {
        let size = prose_tokens(&text) + 4;
        if size <= left && n_more == 0 {
            left -= size;
            shown.push(format!("- {text}"));
        } else if shown.is_empty() {
            shown.push(format!("- {}", clip_tokens(&text, most_tokens.saturating_sub(20))));
            left = 0;
        } else {
            n_more += 1;
        }
    }
    if n_more > 0 {
        shown.push(format!("- and {n_more} before these"));
    }
    shown.reverse();
    (!shown.is_empty()).then(|| shown.join("\n"))
}

/// Says how often each tool was called, and what was called last.
fn calls(said: &[Block], most_tokens: u64) -> Option<String> {
    let calls: Vec<_> = said.iter().filter_map(Block::tool_use).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in &calls {
        *counts.entry(call.name.as_str()).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(tool, n)| format!("{tool} {n}")).collect();
    let last = calls.iter().rev().take(MOST_CALLS).map(|call| {
        format!("- {} {}", call.name, clip_tokens(&call.input.to_string(), CALL_TOKENS).replace('\n', " "))
    });
    let mut last: Vec<String> = last.collect();
    last.reverse();
    let text = format!("Calls so far: {}. The last ones:\n{}", counts.join(", "), last.join("\n"));
    (!calls.is_empty()).then(|| clip_tokens(&text, most_tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::{Value, json};

    fn path(values: Vec<Value>) -> Vec<Arc<Entry>> {
        values.iter().map(|value| Arc::new(Entry::parse(value.to_string()).unwrap())).collect()
    }

    fn user(text: &str) -> Value {
        json!({"type": "user", "message": {"content": text}})
    }

    fn assistant(block: Value) -> Value {
        json!({"type": "assistant", "message": {"id": "m", "content": [block]}})
    }

    fn conversation() -> Vec<Arc<Entry>> {
        path(vec![
            json!({"type": "user", "isCompactSummary": true, "message": {"content": "Before: ports."}}),
            user("Compare the ports."),
            assistant(json!({"type": "text", "text": "I look."})),
            assistant(json!({"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/p/a"}})),
            user("And never touch /etc."),
            assistant(json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}})),
        ])
    }

    #[test]
    fn mechanical_summary_lists_what_the_record_says() {
        expect![[r#"
            No model could be asked for a summary. What follows was put together from the record by rule, without understanding it: look into the transcript wherever something seems to be missing.

            The summary so far:
            Before: ports.

            What the user said, word for word:
            - Compare the ports.
            - And never touch /etc.

            What the assistant said last:
            I look.

            Calls so far: Bash 1, Read 1. The last ones:
            - Read {"file_path":"/p/a"}
            - Bash {"command":"ls"}"#]]
        .assert_eq(&mechanical(&conversation(), 2_000));
    }

    /// What folded stretches say is a summary, too: all of them stay, in order.
    #[test]
    fn folds_are_summaries_too() {
        let fold = |text: &str| json!({"type": "user", "isMeta": true, "loci": {"lastPrompt": "p"}, "message": {"content": text}});
        let mut folded = conversation();
        folded.splice(1..1, path(vec![fold("Then: hosts."), fold("Then: falcon is 48213.")]));
        let text = mechanical(&folded, 2_000);
        let expected = "The summary so far:\nBefore: ports.\n\nThen: hosts.\n\nThen: falcon is 48213.\n\nWhat the user said";
        assert!(text.contains(expected), "{text}");
    }

    /// It always fits, whatever it is made of.
    #[test]
    fn mechanical_summary_fits_any_size() {
        let mut huge = conversation();
        huge.extend(path(vec![
            user(&"please ".repeat(90_000)),
            json!({"type": "user", "isCompactSummary": true, "message": {"content": "s".repeat(900_000)}}),
            assistant(json!({"type": "text", "text": "w".repeat(900_000)})),
        ]));
        huge.extend((0..3_000).flat_map(|_| conversation()));
        for most in [200, 1_000, 12_000] {
            let size = prose_tokens(&mechanical(&huge, most));
            assert!(size <= most + 100, "{most}: {size}");
        }
    }
}
