use expect_test::expect;
use serde_json::{Value, json};

use super::*;

fn stretch(messages: &[String]) -> Vec<Arc<Entry>> {
    let said = messages.iter().enumerate().flat_map(|(idx, text)| {
        let call = json!([{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]);
        let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "what a tool said"}]);
        [
            json!({"type": "user", "uuid": format!("u{idx}"), "message": {"content": text}}),
            json!({"type": "assistant", "uuid": format!("a{idx}"), "message": {"id": "m", "content": call}}),
            json!({"type": "user", "uuid": format!("r{idx}"), "message": {"content": result}}),
            json!({"type": "user", "uuid": format!("x{idx}"), "isMeta": true, "message": {"content": "go on"}}),
        ]
    });
    said.map(|line: Value| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
}

fn paste(tokens: usize) -> String {
    "abcd".repeat(tokens)
}

#[test]
fn user_messages_that_fit_are_whole() {
    let messages = ["Use port 48213.".to_owned(), "Never touch\n/etc.".to_owned()];
    expect![[r#"
        What the user said in that part, word for word:

        Message 1 of 2:
        Use port 48213.

        Message 2 of 2:
        Never touch
        /etc."#]]
    .assert_eq(&render_all(&stretch(&messages), 1_000).unwrap());
    assert_eq!(render_all(&stretch(&[]), 1_000), None);
}

/// The longest is cut, wherever it stands; it says so, and how the rest is had.
/// Invariant 30 of `docs/design/compaction.md`.
#[test]
fn the_longest_is_cut_and_names_the_call_that_brings_the_rest() {
    for place in 0..3 {
        let mut messages = vec!["Use port 48213.".to_owned(), "Never touch /etc.".to_owned()];
        messages.insert(place, paste(5_000));
        let text = render_all(&stretch(&messages), 1_000).unwrap();
        assert!(
            text.contains("\nUse port 48213.") && text.contains("\nNever touch /etc."),
            "{place}: {text}"
        );
        let head = text.split("\n").find(|line| line.contains("cut in the middle")).unwrap();
        let number = place + 1;
        assert!(
            head.starts_with(&format!("Message {number} of 3, cut in the middle. Recall with ")),
            "{head}"
        );
        let call = &head[head.find('{').unwrap()..=head.find('}').unwrap()];
        let call: Value = serde_json::from_str(call).unwrap();
        assert_eq!(call["message"], format!("u{place}"));
        // What is shown before the gap ends where the call goes on.
        let shown = text.split("brings the rest.\n").nth(1).unwrap().split("\n[…").next().unwrap();
        assert_eq!(call["offset"], shown.chars().count(), "{head}");
        assert!(shown.len() > 2_000, "a good part of it is there: {}", shown.len());
        assert!(prose_tokens(&text) <= 1_050, "{}", prose_tokens(&text));
    }
}

/// However much was said, it stays within its share; of many messages the newest are there.
/// Invariant 30 of `docs/design/compaction.md`.
#[test]
fn words_stay_within_their_share() {
    let many: Vec<String> = (0..400).map(|n| format!("{n}. {}", paste(200))).collect();
    for messages in [many.clone(), vec![paste(90_000)], vec![paste(9_000); 7], vec!["word".to_owned(); 2_000]]
    {
        for most in [200, 1_000, 10_000, 60_000] {
            let text = render_all(&stretch(&messages), most).unwrap();
            let size = prose_tokens(&text);
            assert!(size <= most + 60, "{most}: {size} of {} messages", messages.len());
            assert!(size * 3 >= most.min(prose_tokens(&messages.join(""))), "{most}: {size} is little");
        }
    }
    let text = render_all(&stretch(&many), 5_000).unwrap();
    assert!(text.contains("Message 400 of 400:\n399. abcd"), "the last is whole");
    assert!(text.contains("of 400 are left out here. Recall with {\"role\": \"user\""), "{text}");
}

/// What is planned with is what comes of it.
#[test]
fn user_message_tokens_are_estimated_from_weights() {
    let messages = [paste(700), "Use port 48213.".to_owned(), paste(40)];
    let (found, entries) = (tokens(&stretch(&messages)), stretch(&messages));
    let shown = prose_tokens(&render_all(&entries, 10_000).unwrap());
    assert!(found.abs_diff(shown) < 30, "{found} {shown}");
}
