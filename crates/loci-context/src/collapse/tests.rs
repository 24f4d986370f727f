use serde_json::{Value, json};

use super::*;
use crate::projection::Projection;

const WINDOW: Window = Window { tokens: 100_000, max_output: 20_000, percent: None };

/// A prompt of so many tokens and its answer, for each size.
fn path(sizes: &[usize]) -> Vec<Arc<Entry>> {
    let turn = |(idx, size): (usize, &usize)| {
        let answer = json!([{"type": "text", "text": format!("Answer {idx}.")}]);
        [
            json!({"type": "user", "uuid": format!("u{idx}"), "message": {"content": format!("{idx} {}", "word".repeat(*size))}}),
            json!({"type": "assistant", "uuid": format!("a{idx}"), "message": {"id": format!("m{idx}"), "content": answer}}),
        ]
    };
    let lines: Vec<Value> = sizes.iter().enumerate().flat_map(turn).collect();
    lines.iter().map(|line| Arc::new(Entry::parse(line.to_string()).unwrap())).collect()
}

fn room() -> ContextRoom {
    ContextRoom::new(WINDOW, 5_000)
}

fn plan(path: &[Arc<Entry>]) -> Option<(String, String)> {
    let plan = plan_fold(path, &Replaced::default(), &room())?;
    Some((plan.first.to_string(), plan.last.to_string()))
}

fn fold(first: &str, last: &str) -> Fold {
    Fold {
        id: format!("f-{first}").as_str().into(),
        first: first.into(),
        last: last.into(),
        summary: format!("What {first} to {last} was about."),
        said_tokens: 10_000,
    }
}

fn texts(path: &[Arc<Entry>]) -> Vec<String> {
    let messages = Projection::from_path(path.iter().map(Arc::as_ref)).messages(None);
    messages.iter().map(|message| message.text()).collect()
}

/// Ninety and ninety-five of a hundred of what can be used.
#[test]
fn folding_begins_before_it_must_be_done() {
    assert_eq!(CollapseThresholds::of(&WINDOW), CollapseThresholds { commits: 72_000, blocks: 76_000 });
    let large = Window { tokens: 1_000_000, max_output: 64_000, percent: None };
    assert_eq!(CollapseThresholds::of(&large), CollapseThresholds { commits: 882_000, blocks: 931_000 });
}

/// A third of 80,000 tokens is to be freed, and an eighth at least; the last two rounds stay.
#[test]
fn the_oldest_rounds_are_folded_and_the_newest_never() {
    let pair = |first: &str, last: &str| Some((first.to_owned(), last.to_owned()));
    // A round is an answer with the prompt behind it, so a stretch ends with a prompt.
    // What a person said stays, up to an eighth of what can be used: 10,000 tokens here.
    assert_eq!(plan(&path(&[10_000; 7])), pair("u0", "u4"));
    assert_eq!(plan(&path(&[42_000, 9_000, 9_000, 9_000])), pair("u0", "u0"));
    assert_eq!(plan(&path(&[22_000, 10, 10, 10])), None, "it would free less than an eighth");
    assert_eq!(plan(&path(&[10, 10, 10, 60_000])), None, "what is large came last");
    assert_eq!(plan(&path(&[60_000])), None, "there is nothing but the last round");
    assert_eq!(plan(&[]), None);
}

/// Folds stand one behind the other; the next begins behind the last.
#[test]
fn folds_are_a_log_and_the_view_is_made_from_it() {
    let mut view = path(&[10_000; 7]);
    let whole = view.clone();
    let freed = fold("u0", "u3").apply(&mut view, &Replaced::default()).unwrap();
    assert!((29_500..30_500).contains(&freed), "all but the words that stay: {freed}");
    let after = estimate_path(&whole, &Replaced::default()) - estimate_path(&view, &Replaced::default());
    assert_eq!(freed, after);
    let shown = texts(&view);
    assert!(shown[0].contains("What u0 to u3 was about.\n\nWhat the user said"), "{}", &shown[0][..400]);
    for (number, begins) in [(1, "\n0 word"), (2, "\n1 word"), (3, "\n2 word"), (4, "\n3 word")] {
        let message = shown[0].split(&format!("Message {number} of 4, cut")).nth(1).unwrap();
        assert!(message.contains(begins), "every prompt of the part goes with it: {number}");
    }
    assert_eq!((shown[1].as_str(), shown.len()), ("Answer 3.", 8), "the rest is as it was");
    // Behind it the conversation grows, and the next fold begins there.
    let more = path(&[10_000; 14]);
    view.extend_from_slice(&more[14..22]);
    assert_eq!(plan(&view).map(|(first, _)| first).as_deref(), Some("a3"));
    assert!(fold("a3", "u7").apply(&mut view, &Replaced::default()).is_some());
    let shown = texts(&view);
    assert!(shown[0].contains("What u0 to u3") && shown[0].contains("What a3 to u7"), "one behind the other");
}

/// What names an entry that is not there says nothing, and nothing is folded twice.
#[test]
fn fold_of_another_branch_is_ignored() {
    let mut view = path(&[100; 3]);
    let before = view.clone();
    for (first, last) in [("u9", "a0"), ("u0", "elsewhere"), ("a1", "u0")] {
        assert_eq!(fold(first, last).apply(&mut view, &Replaced::default()), None, "{first} {last}");
    }
    assert_eq!(view, before);
    assert!(fold("u0", "a1").apply(&mut view, &Replaced::default()).is_some());
    assert_eq!(fold("u0", "a1").apply(&mut view, &Replaced::default()), None);
}

/// Calls stay with their results: a stretch ends between rounds.
#[test]
fn a_stretch_ends_between_rounds() {
    let call = json!([{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "t", "content": "word".repeat(32_000)}]);
    let mut view = path(&[10]);
    view.push(Arc::new(
        Entry::parse(
            json!({"type": "assistant", "uuid": "c", "message": {"id": "mc", "content": call}}).to_string(),
        )
        .unwrap(),
    ));
    view.push(Arc::new(
        Entry::parse(json!({"type": "user", "uuid": "r", "message": {"content": result}}).to_string())
            .unwrap(),
    ));
    view.extend(path(&[0, 0, 5_000, 5_000, 5_000]).into_iter().skip(4));
    assert_eq!(plan(&view).map(|(_, last)| last).as_deref(), Some("u2"));
}

#[test]
fn a_long_summary_is_cut_and_says_so() {
    assert_eq!(fold_summary("short", 100), "short");
    let cut = fold_summary(&"word ".repeat(4_000), 100);
    assert!(prose_tokens(&cut) < 130 && cut.contains("left out"), "{cut}");
}

/// The share is the window's when it is folded, and the line's ever after: another window makes the same of it. What says
/// nothing of it has what there was before.
/// Invariant 19 of `docs/design/compaction.md`.
#[test]
fn fold_line_records_said_tokens() {
    let line = |more: &str| {
        let text = format!(
            r#"{{"type":"context-collapse","collapseId":"f","firstUuid":"u0","lastUuid":"u1","summary":"s"{more}}}"#
        );
        let mut view = path(&[6_000, 10, 10]);
        serde_json::from_str::<Fold>(&text).unwrap().apply(&mut view, &Replaced::default());
        prose_tokens(&texts(&view)[0])
    };
    assert!((2_000..2_200).contains(&line("")), "{}", line(""));
    assert!((4_000..4_200).contains(&line(r#","saidTokens":4000"#)), "{}", line(r#","saidTokens":4000"#));
    assert!((6_000..6_200).contains(&line(r#","saidTokens":9000"#)), "{}", line(r#","saidTokens":9000"#));
}
