//! Context collapse: old stretches are folded one by one, and the conversation is not compacted as a whole.

use crate::support::{World, assert_fine, brief, conversation, is_result, stream, user};
use expect_test::expect;
use loci_testkit::{Binary, Gate, Recorded, Script, Session, Step};
use serde_json::Value;

const SUMMARY: &str = "<summary>The first words were sent.</summary>";

fn is_fold(request: &Recorded) -> bool {
    request.messages().iter().any(|it| it["content"].to_string().contains("Summarise only what comes after"))
}

fn answer_at(n: u64) -> Step {
    Step::text(format!("Answer at {n}.")).usage(10, 20, n - 30, 0)
}

/// 80,000 tokens can be used: from 72,000 on it is folded, from 76,000 on that is waited for.
fn collapsing() -> Binary {
    stream([]).env("LOCI_CONTEXT_COLLAPSE", "1").env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")
}

fn answer(session: &mut Session, text: &str) -> Value {
    session.write_json(&user(text));
    session.wait_for_json(is_result)
}

/// Five turns, after the last of which there is no room left.
fn fill(session: &mut Session) {
    for n_words in [14_000, 14_000, 14_000, 8_000, 10] {
        let result = answer(session, &"word ".repeat(n_words));
        assert_eq!(result["is_error"], false, "{result}");
    }
}

fn script(more: Vec<Step>) -> Script {
    let mut steps = [25_000, 43_000, 61_000, 73_000, 77_000].map(answer_at).to_vec();
    steps.extend(more);
    Script::new(steps)
}

/// How many lines of a kind the session has; what agents said beside it is not meant.
fn lines(world: &World, kind: &str) -> usize {
    let main = world.home.sessions().into_iter().find(|path| !path.to_string_lossy().contains("subagents"));
    let entries = world.home.read_session(main.unwrap());
    entries.iter().filter(|it| it["type"] == kind || it["subtype"] == kind).count()
}

/// Messages without marks for the cache, which move.
fn messages(request: &Recorded) -> Vec<Value> {
    let mut messages = request.messages().to_vec();
    for message in &mut messages {
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
    }
    messages
}

/// The fold is asked for beside the conversation, waited for when there is no room left, and stands in a resumed session
/// and a fork as it stood before.
/// Invariant 19 of `docs/design/compaction.md`.
#[tokio::test]
async fn collapsed_stretch_stays_collapsed() {
    let hold = Gate::new();
    let more = vec![answer_at(42_000), answer_at(43_000), answer_at(44_000)];
    let fold = Step::text(SUMMARY).wait_before_headers(hold.clone());
    let world = World::new(script(more).answer_when(fold, is_fold)).await;
    let mut session = world.start(&collapsing());
    fill(&mut session);
    hold.reached().await;
    session.write_json(&user("six"));
    session.wait_for_json(|frame| frame["status"] == "compacting");
    hold.release();
    assert_eq!(session.wait_for_json(is_result)["result"], "Answer at 42000.");
    session.finish();
    let (folds, main): (Vec<Recorded>, Vec<Recorded>) = world.requests().into_iter().partition(is_fold);
    assert_eq!((folds.len(), main.len()), (1, 6), "nothing else is asked");
    assert_eq!((lines(&world, "context-collapse"), lines(&world, "compact_boundary")), (1, 0));
    let asked = messages(&folds[0]);
    assert_eq!(asked[..2], messages(&main[4])[..2], "the same beginning, so that the cache serves it");
    let sent = messages(&main[5]);
    let first = sent[0]["content"].to_string();
    assert!(
        first.contains("The first words were sent.") && first.contains("was folded to make room"),
        "{first}"
    );
    assert!(main[5].body.len() * 3 < main[4].body.len() * 2, "shorter by more than a third");
    expect![[r#"
        user: An earlier part of this conversation was folded to mak (… 135 more)

        The first words were sent.

        What the user said in that part, word for word:

        Message 1 of 3, cut in the middle. Recall with {"message": "<uuid-1>", "offset": 6512} brings the rest.
        word word word word word word word word word word word word  (… 6452 more)
        [… 60232 characters left out …]
         word word word word word word word word word word word word (… 3196 more)

        Message 2 of 3, cut in the middle. Recall with {"message": "<uuid-2>", "offset": 6512} brings the rest.
        word word word word word word word word word word word word  (… 6452 more)
        [… 60232 characters left out …]
         word word word word word word word word word word word word (… 3196 more)

        Message 3 of 3, cut in the middle. Recall with {"message": "<uuid-3>", "offset": 13178} brings the rest.
        word word word word word word word word word word word word  (… 13118 more)
        [… 50232 characters left out …]
        word word word word word word word word word word word word  (… 6530 more)
        assistant: Answer at 61000.
        user: word word word word word word word word word word word (… 39946 more)
        assistant: Answer at 73000.
        user: word word word word word word word word word word 
        assistant: Answer at 77000.
        user: six
    "#]]
    .assert_eq(&brief(&conversation(&main[5], &mut world.normaliser())));

    let same = |request: &Recorded| messages(request)[..sent.len() - 1] == sent[..sent.len() - 1];
    assert_fine(&world.print(["seven", "-c"]));
    assert!(same(&world.last_request()), "resumed, with the switch off");
    assert_fine(&world.print(["eight", "-c", "--fork-session"]));
    assert!(same(&world.last_request()), "forked");
}

/// The words of a person that do not fit beside a fold are cut, and the call that is named there brings them back.
/// Invariant 30 of `docs/design/compaction.md`.
#[tokio::test]
async fn collapsed_text_is_recalled_by_the_named_call() {
    let ask_back = Step::dynamic(|request| {
        let first = request.messages()[0]["content"].as_array().unwrap().clone();
        let texts: String = first.iter().filter_map(|block| block["text"].as_str()).collect();
        let named = texts.split("Message 2 of 3, cut in the middle. Recall with ").nth(1).unwrap();
        let call = serde_json::from_str(&named[..=named.find('}').unwrap()]).unwrap();
        Step::call("Recall", call).usage(10, 20, 42_000, 0)
    });
    let world =
        World::new(script(vec![ask_back, answer_at(45_000)]).answer_when(Step::text(SUMMARY), is_fold));
    let world = world.await;
    let mut session = world.start(&collapsing());
    let pasted = "word ".repeat(14_000);
    // In the middle of what is cut.
    let planted = format!("{}The falcon port is 48213. {}", &pasted[..15_000], &pasted[15_000..]);
    for text in [&pasted, &planted, &pasted, &"word ".repeat(8_000), "five", "six"] {
        assert_eq!(answer(&mut session, text)["is_error"], false);
    }
    session.finish();
    let main: Vec<Recorded> = world.requests().into_iter().filter(|request| !is_fold(request)).collect();
    let folded = main[5].messages()[0].to_string();
    assert!(folded.contains("was folded to make room") && !folded.contains("48213"), "it is in what was cut");
    let brought = main[6].tool_results().remove(0);
    assert!(!brought.is_error && brought.text.contains("The falcon port is 48213."), "{}", brought.text);
}

/// A stretch that nobody summarises is not folded: what must be shorter is compacted.
/// Invariant 19 of `docs/design/compaction.md`.
#[tokio::test]
async fn uncollapsible_conversation_is_compacted() {
    let failed = Step::status(400).error("invalid_request_error", "no");
    let more = vec![Step::text("<summary>All of it.</summary>"), answer_at(20_000)];
    let world = World::new(script(more).answer_when(failed, is_fold)).await;
    let mut session = world.start(&collapsing());
    fill(&mut session);
    assert_eq!(answer(&mut session, "six")["result"], "Answer at 20000.");
    session.finish();
    assert_eq!((lines(&world, "context-collapse"), lines(&world, "compact_boundary")), (0, 1));
}

/// A fold that is not enough for what the user just pasted: the conversation is compacted before the request, which would
/// be refused otherwise.
/// Invariant 19 of `docs/design/compaction.md`.
#[tokio::test]
async fn insufficient_collapse_is_followed_by_compaction() {
    let more = vec![Step::text("<summary>All of it.</summary>"), answer_at(40_000)];
    let world = World::new(script(more).answer_when(Step::text(SUMMARY), is_fold)).await;
    let mut session = world.start(&collapsing());
    fill(&mut session);
    let paste = format!("six {}", "word ".repeat(44_000));
    assert_eq!(answer(&mut session, &paste)["result"], "Answer at 40000.");
    session.finish();
    assert_eq!((lines(&world, "context-collapse"), lines(&world, "compact_boundary")), (1, 1));
    let last = world.last_request();
    assert!(last.body.len() < 300_000, "it fits: {}", last.body.len());
    let sent = last.json["messages"].to_string();
    assert!(sent.contains("All of it.") && sent.contains("six word"), "{}", &sent[..2_000]);
}

/// Off unless somebody wants it.
#[tokio::test]
async fn collapse_is_off_by_default() {
    let steps = vec![answer_at(30_000), answer_at(73_000), Step::text(SUMMARY), answer_at(9_000)];
    let world = World::new(steps).await;
    let mut session = world.start(&stream([]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    for prompt in ["one", "two", "three"] {
        answer(&mut session, prompt);
    }
    session.finish();
    assert_eq!((lines(&world, "context-collapse"), lines(&world, "compact_boundary")), (0, 1));
}
