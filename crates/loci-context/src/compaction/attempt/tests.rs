use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::*;
use loci_core::window::Window;

const WINDOW: Window = Window { tokens: 200_000, max_output: 32_000, percent: None };

/// A path in short: `u` a prompt, `a<n>` a block of response n, `r` a result, `b` a boundary, `s` a summary,
/// `e` a stored API failure. A number behind a `+` is about how many tokens it has.
fn path(text: &str) -> Vec<Arc<Entry>> {
    text.split_whitespace()
        .enumerate()
        .map(|(idx, word)| {
            let (word, size) = word.split_once('+').unwrap_or((word, "1"));
            let words = format!("{word} {}", "word".repeat(size.parse().unwrap()));
            let (kind, id) = word.split_at(1);
            let mut value: Value = match kind {
                "a" => {
                    json!({"type": "assistant", "message": {"id": id, "content": [{"type": "text", "text": words}]}})
                }
                "e" => json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "e"}}),
                "b" => json!({"type": "system", "subtype": "compact_boundary"}),
                "s" => json!({"type": "user", "isCompactSummary": true, "message": {"content": words}}),
                "r" => json!({"type": "user", "message": {"content": [
                    {"type": "tool_result", "tool_use_id": format!("t{idx}"), "content": words}]}}),
                _ => json!({"type": "user", "message": {"content": words}}),
            };
            value["uuid"] = Value::from(format!("{word}@{idx}"));
            Arc::new(Entry::parse(value.to_string()).unwrap())
        })
        .collect()
}

fn input(text: &str) -> CompactionInput {
    CompactionInput {
        path: path(text),
        replaced: Replaced::default(),
        room: ContextRoom::new(WINDOW, 15_000),
        context: Block::new_text("context"),
        tasks: Vec::new(),
        to_do: Vec::new(),
        focus: None,
        keep_from: None,
    }
}

fn preserved_ids(attempt: &CompactionAttempt) -> String {
    let ids = attempt.plan.preserved_ids(&attempt.input.path);
    ids.iter().map(|id| id.as_str().split('@').next().unwrap()).collect::<Vec<_>>().join(" ")
}

fn check(text: &str, keep: KeepRecent, expected: Option<&str>) {
    let attempt = CompactionAttempt::new(input(text), keep, None, None);
    if let Some(attempt) = &attempt {
        let plan = &attempt.plan;
        assert_eq!((plan.summarised.start, plan.summarised.end), (0, plan.preserved.start));
    }
    assert_eq!(attempt.as_ref().map(preserved_ids).as_deref(), expected, "{text}");
}

/// Invariant 2 of `docs/design/compaction.md`.
#[test]
fn the_last_round_is_kept_before_the_window_is_full() {
    check("u a1 r a2 r", KeepRecent::LastRound, Some("a2 r"));
    check("u a1 a1 r r a2 a2 r r", KeepRecent::LastRound, Some("a2 a2 r r"));
    check("u a1 u", KeepRecent::LastRound, None);
    check("u a1 u a2 u", KeepRecent::LastRound, Some("a2 u"));
    check("u a1 u a2 e u", KeepRecent::LastRound, Some("a2 e u"));
    check("b s a1 r a2 r", KeepRecent::LastRound, Some("a2 r"));
}

/// With a single exchange there is nothing that a summary could stand for.
#[test]
fn too_little_is_not_compacted() {
    for text in ["", "u", "u a1", "u a1 r", "b s", "b s a1 r"] {
        check(text, KeepRecent::LastRound, None);
        check(text, KeepRecent::NewerHalf, None);
    }
}

/// Invariant 2 of `docs/design/compaction.md`.
#[test]
fn the_newer_half_is_kept_when_the_server_refused() {
    check("u a1 r a2 r a3 r", KeepRecent::NewerHalf, Some("a2 r a3 r"));
    let nine = "u a1 r a2 r a3 r a4 r a5 r a6 r a7 r a8 r";
    check(nine, KeepRecent::NewerHalf, Some("a4 r a5 r a6 r a7 r a8 r"));
}

/// Invariant 10 of `docs/design/compaction.md`: what is kept has its share, and no more.
#[test]
fn rounds_that_do_not_fit_are_not_kept() {
    check("u a1 r+90000 a2 r+50000", KeepRecent::LastRound, Some("a2 r"));
    check("u a1 r+90000 a2 r+70000", KeepRecent::LastRound, Some(""));
    check("u a1 r+40000 a2 r+40000 a3 r+20000 a4 r+20000", KeepRecent::NewerHalf, Some("a3 r a4 r"));
    // A single exchange that fills the window is summarised as a whole.
    check("u a1 r+160000", KeepRecent::LastRound, Some(""));
    check("u+160000 a1", KeepRecent::LastRound, Some(""));
}

fn messages(step: &CompactionStep) -> String {
    let CompactionStep::Ask(messages) = step else { return format!("{step:?}") };
    messages
        .iter()
        .map(|message| {
            let texts = message.content.iter().map(|block| match block.text() {
                Some(text) => text,
                None => block.json().as_str().to_owned(),
            });
            let text = texts.collect::<Vec<_>>().join(" | ");
            format!("{}: {}\n", message.role.as_str(), text.chars().take(160).collect::<String>())
        })
        .collect()
}

fn check_first(text: &str, expected: Expect) {
    expected.assert_eq(&messages(
        &CompactionAttempt::new(input(text), KeepRecent::LastRound, None, None).unwrap().begin(),
    ));
}

/// The request begins as the conversation does, so that the prompt cache serves it.
#[test]
fn conversation_that_fits_is_summarised_in_one_request() {
    check_first(
        "u a1 u a2",
        expect![[r#"
            user: context | u word
            assistant: a1 word
            user: u word | This conversation has grown too long and will be continued from a summary that you write now. Answer with text only; call no tools.

            First go through t
        "#]],
    );
}

/// Answers every question of an attempt; returns the questions and what is recorded.
fn run(
    attempt: &mut CompactionAttempt,
    answer: impl Fn(usize) -> String,
) -> (Vec<Vec<Message>>, CompactionResult) {
    let mut asked = Vec::new();
    let mut step = attempt.begin();
    loop {
        match step {
            CompactionStep::Ask(messages) => {
                asked.push(messages);
                step = attempt.on_answer(&answer(asked.len())).unwrap();
            }
            CompactionStep::Record(result) => return (asked, result),
        }
    }
}

/// A conversation made for a larger window than the one at hand.
fn long() -> CompactionInput {
    input(&(0..60).map(|n| format!("u a{n}+15000 ")).collect::<String>())
}

/// Invariant 11 of `docs/design/compaction.md`.
#[test]
fn long_conversation_is_summarised_part_by_part_once() {
    let mut attempt = CompactionAttempt::new(long(), KeepRecent::LastRound, None, None).unwrap();
    let (asked, result) = run(&mut attempt, |n| format!("<summary>summary {n}</summary>"));
    assert!((2..=8).contains(&asked.len()), "{}", asked.len());
    let texts: Vec<String> = asked.iter().map(|messages| messages[0].text()).collect();
    for (idx, text) in texts.iter().enumerate() {
        assert!(prose_tokens(text) <= 180_000 - 15_000, "{idx}: {}", prose_tokens(text));
        assert_eq!(text.contains(&format!("\n\nsummary {idx}\n\n")), idx > 0, "{idx}");
    }
    for n in 0..59 {
        let reads = texts.iter().filter(|text| text.contains(&format!("Assistant: a{n} "))).count();
        assert_eq!(reads, 1, "a{n}");
    }
    assert_eq!(result.source, SummarySource::Model);
    assert!(result.summary.starts_with(&format!("summary {}", asked.len())), "{}", result.summary);
}

/// Invariant 11 of `docs/design/compaction.md`: a failure half way costs nothing that was done.
#[test]
fn an_attempt_goes_on_where_the_one_before_failed() {
    let mut first = CompactionAttempt::new(long(), KeepRecent::LastRound, None, None).unwrap();
    let asked_first = first.begin();
    let second_part = first.on_answer("<summary>summary 1</summary>").unwrap();
    assert_eq!(first.on_answer("<analysis>cut"), None);
    let so_far = first.so_far().cloned();
    assert_eq!(so_far.as_ref().map(|notes| notes.text.as_str()), Some("summary 1"));
    let second = CompactionAttempt::new(long(), KeepRecent::LastRound, None, so_far).unwrap();
    let again = second.begin();
    assert_ne!(again, asked_first);
    let (CompactionStep::Ask(asked), CompactionStep::Ask(part)) = (&again, &second_part) else {
        panic!("a question")
    };
    let begins = |messages: &[Message]| messages[0].text().chars().take(900).collect::<String>();
    assert_eq!(begins(asked), begins(part), "it begins with the part that failed");
}

/// Whatever the model answers, what is recorded leaves room.
#[test]
fn a_summary_that_is_too_long_is_cut() {
    let mut attempt =
        CompactionAttempt::new(input("u+3000 a1 u+40000 a2"), KeepRecent::LastRound, None, None).unwrap();
    let (_, result) = run(&mut attempt, |_| format!("<summary>{}</summary>", "word".repeat(60_000)));
    let shares = attempt.input.room.shares();
    assert!(prose_tokens(&result.summary) <= shares.summary + shares.said + 50);
    assert!(result.summary.contains("characters left out"));
}

/// Invariant 12 of `docs/design/compaction.md`.
#[test]
fn last_resort_compaction_always_fits() {
    for text in ["u a1 u a2", "u+900000", "u+900000 a1+900000 r+900000", "b s+90000 a1 r+990000 a2 u+990000"]
    {
        let Some(attempt) = CompactionAttempt::new(input(text), KeepRecent::NewerHalf, None, None) else {
            assert_eq!(text, "u a1 u a2", "the half of it is no conversation");
            continue;
        };
        let result = attempt.last_resort();
        let kept =
            crate::estimate_path(&attempt.input.path[result.plan.preserved.clone()], &Replaced::default());
        let size = 15_000 + prose_tokens(&result.summary) + kept;
        assert!(size < WINDOW.thresholds().compact, "{text}: {size}");
        assert_eq!(result.source, SummarySource::Rule);
    }
}

/// A prompt that fills the window by itself is no conversation: no model is asked about it.
#[test]
fn a_prompt_too_long_for_any_window_is_cut_by_rule() {
    let attempt = CompactionAttempt::new(input("u+900000"), KeepRecent::NewerHalf, None, None).unwrap();
    let CompactionStep::Record(result) = attempt.begin() else { panic!("nothing is asked") };
    assert_eq!((result.plan.summarised, result.plan.preserved), (0..1, 1..1));
}

/// The notes come first, unless the user says what to keep.
#[test]
fn notes_are_taken_before_a_model_is_asked() {
    let text = "u a1+20000 u a2+20000 u a3+20000 u a4 u a5 u a6 u a7";
    let notes = Notes { text: "Noted.".to_owned(), covers: "a3@5".into() };
    let attempt = CompactionAttempt::new(input(text), KeepRecent::LastRound, Some(&notes), None).unwrap();
    let CompactionStep::Record(result) = attempt.begin() else { panic!("nothing is asked") };
    assert_eq!((result.source, result.summary.as_str()), (SummarySource::Notes, "Noted."));
    assert_eq!(preserved_ids(&attempt), "a3 u a4 u a5 u a6 u a7");
    let focused = CompactionInput { focus: Some("ports".to_owned()), ..input(text) };
    let attempt = CompactionAttempt::new(focused, KeepRecent::LastRound, Some(&notes), None).unwrap();
    assert!(matches!(attempt.begin(), CompactionStep::Ask(_)));
}

#[test]
fn all_from_a_chosen_prompt_on_is_kept() {
    let text = "u a1 u a2 u a3 u a4";
    let from = |id: &str| CompactionInput { keep_from: Some(id.into()), ..input(text) };
    let notes = Notes { text: "Noted.".to_owned(), covers: "a3@5".into() };
    let attempt = CompactionAttempt::new(from("u@2"), KeepRecent::LastRound, Some(&notes), None).unwrap();
    assert_eq!(preserved_ids(&attempt), "u a2 u a3 u a4");
    assert!(matches!(attempt.begin(), CompactionStep::Ask(_)), "notes know another end");
    for id in ["u@0", "nobody"] {
        assert!(CompactionAttempt::new(from(id), KeepRecent::LastRound, None, None).is_none(), "{id}");
    }
}

/// The user's last message is behind the summary, or in what is kept, and never in both.
#[test]
fn the_last_message_is_there_once() {
    for (text, is_carried) in [("u a1 u a2 r a3 r", true), ("u a1 u a2 u", false)] {
        let mut attempt = CompactionAttempt::new(input(text), KeepRecent::LastRound, None, None).unwrap();
        let (_, result) = run(&mut attempt, |_| "<summary>Sum.</summary>".to_owned());
        assert_eq!(result.summary.contains("last message, word for word:\nu word"), is_carried, "{text}");
        assert_eq!(result.carryover.prompt.as_deref(), Some("u word"), "{text}");
    }
}

/// Regression class 9: pictures stay in a request that the prompt cache serves, and are named where the conversation is
/// read as text.
#[test]
fn pictures_stay_where_the_cache_serves_them() {
    let picture = json!({"type": "user", "uuid": "p", "message": {"content": [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}]}});
    let with_picture = |mut input: CompactionInput| {
        input.path.insert(1, Arc::new(Entry::parse(picture.to_string()).unwrap()));
        CompactionAttempt::new(input, KeepRecent::LastRound, None, None).unwrap().begin()
    };
    let asked = messages(&with_picture(input("u a1 u a2")));
    assert!(asked.contains(r#"{"type":"image""#), "{asked}");
    let CompactionStep::Ask(asked) = with_picture(long()) else { panic!("a question") };
    let text = asked[0].text();
    assert!(text.contains("[image]") && !text.contains("aGk="), "{}", &text[..900]);
}
