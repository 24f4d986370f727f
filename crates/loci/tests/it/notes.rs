//! Session memory: notes that an agent keeps beside the conversation, which does not wait for it.

use crate::support::{MODEL, World, brief, conversation, is_result, loci, print, stream, user};
use expect_test::expect;
use loci_testkit::{Binary, Gate, Recorded, Script, Session, Step};
use serde_json::{Value, json};
use std::path::PathBuf;

const MARK: &str = "You keep running notes of this conversation in ";

/// Whether a request is the notes agent's.
fn is_notes(request: &Recorded) -> bool {
    request.messages().iter().any(|message| message["content"].to_string().contains(MARK))
}

/// What the agent does: adds a line to the worklog, then stops.
fn keeping_notes(hold_first: Gate, hold_second: Gate) -> Step {
    Step::dynamic(move |request| {
        if !request.tool_results().is_empty() && request.last_user_text().is_empty() {
            return Step::text("Noted.").usage(5, 5, 0, 0).wait_before_headers(hold_second.clone());
        }
        let text = request.last_user_text();
        let path = text.split(MARK).nth(1).and_then(|rest| rest.split(".md").next()).unwrap();
        let hint =
            "_Step by step, in as few words as possible: what was tried and done. The newest at the end._";
        let input = json!({
            "file_path": format!("{path}.md"),
            "old_string": hint,
            "new_string": format!("{hint}\n- asked about ports"),
        });
        let stray = json!({"file_path": "stray.txt", "content": "no"});
        let step = Step::call("Edit", input).tool("Write", stray).usage(7, 7, 0, 0);
        step.wait_before_headers(hold_first.clone())
    })
}

/// Prompt and tools alone are some ten thousand tokens; notes begin at ten thousand of the conversation.
fn long_answer() -> Step {
    Step::text("Port 9000.").usage(10, 20, 27_000, 0)
}

async fn world(first: &Gate, second: &Gate) -> World {
    let script = Script::new([long_answer(), Step::text("Again.").usage(10, 20, 27_100, 0)]);
    World::new(script.answer_when(keeping_notes(first.clone(), second.clone()), is_notes)).await
}

fn notes_dir(world: &World) -> PathBuf {
    let transcript =
        world.home.sessions().into_iter().find(|path| !path.to_string_lossy().contains("subagents"));
    transcript.unwrap().with_extension("").join("session-memory")
}

fn answer(session: &mut Session, text: &str) -> Value {
    session.write_json(&user(text));
    session.wait_for_json(is_result)
}

/// The agent's answer is held open by the server until the next turn is over.
/// Invariant 1 of `docs/design/memory.md`.
#[tokio::test]
async fn session_notes_do_not_delay_the_turn() {
    let (first, second) = (Gate::new(), Gate::new());
    let world = world(&first, &second).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    let before = answer(&mut session, "which port?");
    first.reached().await;
    let next = answer(&mut session, "again?");
    assert_eq!((&before["result"], &next["result"]), (&json!("Port 9000."), &json!("Again.")));
    assert!(!notes_dir(&world).join("state.json").exists(), "nothing is covered before the agent is done");
    first.release();
    second.release();
    let output = session.finish();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));

    let notes = std::fs::read_to_string(notes_dir(&world).join("summary.md")).unwrap();
    assert!(notes.contains("- asked about ports") && notes.contains("# Title"), "{notes}");
    assert!(!world.home.project().join("stray.txt").exists(), "it may change its one file only");
    let (main, side): (Vec<_>, Vec<_>) =
        world.home.sessions().into_iter().partition(|path| !path.to_string_lossy().contains("subagents"));
    let main = world.home.read_session(&main[0]);
    assert!(!main.iter().any(|entry| entry.to_string().contains(MARK)), "the transcript knows nothing of it");
    let state: Value =
        serde_json::from_str(&std::fs::read_to_string(notes_dir(&world).join("state.json")).unwrap())
            .unwrap();
    let covered = main.iter().find(|entry| entry["uuid"] == state["covers"]).unwrap();
    assert_eq!(covered["message"]["content"][0]["text"], "Port 9000.", "it saw the first turn");
    let side = world.home.read_session(&side[0]);
    assert!(side.iter().all(|entry| entry["isSidechain"] == true && entry["agentId"].is_string()));
    assert_eq!(side[0]["parentUuid"], Value::Null);
    for (idx, entry) in side.iter().enumerate().skip(1) {
        let parent = &entry["parentUuid"];
        assert!(side[..idx].iter().any(|earlier| earlier["uuid"] == *parent), "one tree: {entry}");
    }
    let is_result = |entry: &&Value| entry["message"]["content"][0]["type"] == "tool_result";
    let results: Vec<&Value> = side.iter().filter(is_result).collect();
    assert!(!results.is_empty());
    for result in results {
        assert_eq!(result["sourceToolAssistantUUID"], result["parentUuid"], "as in any transcript: {result}");
        assert!(result.get("toolUseResult").is_none(), "an agent's file has what was said alone: {result}");
    }
}

/// Prompt, tools and instructions are no part of what is counted: a context of 12,000 tokens is a short conversation.
#[tokio::test]
async fn notes_begin_with_the_length_of_the_conversation_alone() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    second.release();
    let answers = [Step::text("Short.").usage(10, 20, 12_000, 0), long_answer()];
    let world =
        World::new(Script::new(answers).answer_when(keeping_notes(first.clone(), second), is_notes)).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    answer(&mut session, "hello?");
    answer(&mut session, "which port?");
    session.finish();
    let n_asked = world.requests().iter().filter(|it| is_notes(it)).count();
    assert_eq!(n_asked, 2, "one agent, which edits and stops");
    let state: Value =
        serde_json::from_str(&std::fs::read_to_string(notes_dir(&world).join("state.json")).unwrap())
            .unwrap();
    let tokens = state["tokens"].as_u64().unwrap();
    assert!((10_000..27_000).contains(&tokens), "what is kept is without prompt and tools, too: {state}");
}

/// The cache serves the agent only when its request begins with the same bytes.
/// Invariant 1 of `docs/design/memory.md`.
#[tokio::test]
async fn the_agent_is_asked_with_the_conversations_own_prefix_and_its_cost_is_counted() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    let world = world(&first, &second).await;
    let binary = stream([]).env("LOCI_SESSION_MEMORY", "1").env("ANTHROPIC_DEFAULT_HAIKU_MODEL", MODEL);
    let mut session = world.start(&binary);
    let before = answer(&mut session, "which port?");
    second.reached().await;
    let next = answer(&mut session, "again?");
    second.release();
    session.finish();
    let (notes, main): (Vec<Recorded>, Vec<Recorded>) = world.requests().into_iter().partition(is_notes);
    assert_eq!((notes.len(), main.len()), (2, 2));
    for key in ["system", "tools", "model", "max_tokens", "thinking"] {
        assert_eq!(notes[0].json[key], main[1].json[key], "{key}");
    }
    assert_eq!(notes[0].messages()[..2], main[1].messages()[..2]);
    let used = |result: &Value| result["modelUsage"][crate::support::MODEL]["inputTokens"].as_u64();
    assert_eq!((used(&before), used(&next)), (Some(10), Some(10 + 7 + 10)), "what the agent used is counted");
}

/// What the agent costs is in the sum of the result, of the statistics, and of a session that goes on.
#[tokio::test]
async fn cost_of_notes_is_the_same_in_result_statistics_and_the_next_run() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    let world = world(&first, &second).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    let before = answer(&mut session, "which port?");
    second.reached().await;
    second.release();
    session.finish();
    let stats = || {
        let output = world.run(&loci().args(["stats", "--json"]));
        serde_json::from_str::<Value>(&output.stdout).unwrap()["costUSD"].as_f64().unwrap()
    };
    let (counted, answered) = (stats(), before["total_cost_usd"].as_f64().unwrap());
    assert!(
        world.requests().iter().filter(|it| is_notes(it)).count() == 2 && counted > answered,
        "{counted}"
    );
    let world = world.then(Script::new([Step::text("Yes.").usage(10, 20, 27_500, 0)])).await;
    let binary = print(["-c", "sure?", "--output-format", "json"]).env("LOCI_SESSION_MEMORY", "1");
    let result: Value = serde_json::from_str(&world.run(&binary).stdout).unwrap();
    let own = (10.0 * 3.0 + 20.0 * 15.0 + 27_500.0 * 0.3) / 1e6;
    let total = result["total_cost_usd"].as_f64().unwrap();
    assert!((total - counted - own).abs() < 1e-9, "{counted} and {own}: {result}");
    let output = world.run(&loci().args(["stats", "--json"]));
    let after = serde_json::from_str::<Value>(&output.stdout).unwrap()["costUSD"].as_f64().unwrap();
    assert!((after - total).abs() < 1e-9, "{after} {total}");
}

/// Notes outlive the process: what they cover is known to the next one.
/// Invariant 2 of `docs/design/memory.md`.
#[tokio::test]
async fn a_resumed_session_goes_on_with_its_notes() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    second.release();
    let world = world(&first, &second).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    answer(&mut session, "which port?");
    session.finish();
    let world = world.then(Script::new([Step::text("Yes.").usage(10, 20, 27_500, 0)])).await;
    let output = world.run(&crate::support::print(["-c", "sure?"]).env("LOCI_SESSION_MEMORY", "1"));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "Yes.\n"));
    assert_eq!(world.requests().len(), 1, "500 tokens more are not worth new notes");
}

/// A fork knows what the session it comes from had noted, unless that is more than it has taken over.
/// Invariant 10 of `docs/design/memory.md`.
#[tokio::test]
async fn forks_take_their_notes_along() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    second.release();
    let world = world(&first, &second).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    answer(&mut session, "which port?");
    session.finish();
    let source = notes_dir(&world);
    let text = std::fs::read_to_string(source.join("summary.md")).unwrap();
    let (source, project) =
        (source.parent().unwrap().to_owned(), source.ancestors().nth(2).unwrap().to_owned());
    let id = source.file_name().unwrap().to_str().unwrap().to_owned();
    let notes_of =
        |id: &str| std::fs::read_to_string(project.join(id).join("session-memory/summary.md")).ok();
    let prompt = world
        .home
        .read_session(source.with_extension("jsonl"))
        .iter()
        .find(|it| it["type"] == "user")
        .unwrap()["uuid"]
        .clone();

    let world = world
        .then([Step::text("Yes.").usage(10, 20, 27_500, 0), Step::text("No.").usage(10, 20, 500, 0)])
        .await;
    let (fork, earlier) = ("0f0f0f0f-0001-4000-8000-000000000001", "0f0f0f0f-0001-4000-8000-000000000002");
    let resume = |new: &str| {
        print(["-r", &id, "--fork-session", "--session-id", new, "sure?"]).env("LOCI_SESSION_MEMORY", "1")
    };
    assert_eq!(world.run(&resume(fork)).code, Some(0));
    assert_eq!(world.requests().len(), 1, "500 tokens more than the notes cover are not worth new ones");
    assert_eq!(notes_of(fork).as_deref(), Some(text.as_str()));
    let binary = resume(earlier).args(["--resume-session-at", prompt.as_str().unwrap()]);
    assert_eq!(world.run(&binary).code, Some(0));
    assert_eq!(notes_of(earlier), None, "they tell of an answer that it never had");

    let branched = world.run(&loci().args(["sessions", "branch", &id]));
    assert_eq!(notes_of(branched.stdout.trim()).as_deref(), Some(text.as_str()), "{branched:?}");
}

/// A crash in the middle of the agent's work leaves notes that can be used, and claims nothing.
/// Invariant 2 of `docs/design/memory.md`.
#[tokio::test]
async fn crash_leaves_the_previous_notes_whole() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    let world = world(&first, &second).await;
    let mut session = world.start(&stream([]).env("LOCI_SESSION_MEMORY", "1"));
    answer(&mut session, "which port?");
    second.reached().await;
    session.crash();
    let notes = std::fs::read_to_string(notes_dir(&world).join("summary.md")).unwrap();
    assert!(notes.contains("- asked about ports"), "{notes}");
    assert!(!notes_dir(&world).join("state.json").exists());
}

/// One prompt and its answer are no long-lived session.
#[tokio::test]
async fn a_single_prompt_keeps_no_notes() {
    let world = World::new([long_answer()]).await;
    let output = world.run(&crate::support::print(["which port?"]).env("LOCI_SESSION_MEMORY", ""));
    assert_eq!(output.code, Some(0));
    assert_eq!(world.requests().len(), 1);
    assert!(!notes_dir(&world).exists());
}

/// The notes stand for what they cover: no summary is asked for.
/// Invariant 10 of `docs/design/memory.md`.
#[tokio::test]
async fn compaction_from_notes_needs_no_summary_request() {
    let (first, second) = (Gate::new(), Gate::new());
    first.release();
    second.release();
    let answer_at = |n: u64| Step::text(format!("Answer at {n}.")).usage(10, 20, n, 0);
    let script = Script::new([answer_at(27_000), answer_at(45_000), answer_at(67_500), answer_at(20_000)]);
    let world = World::new(script.answer_when(keeping_notes(first.clone(), second), is_notes)).await;
    let binary = stream([]).env("LOCI_SESSION_MEMORY", "1").env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut session = world.start(&binary);
    let long = |n: usize| "word ".repeat(n);
    answer(&mut session, &long(16_000));
    answer(&mut session, &long(10_000));
    // Agents run one at a time: when the second begins, the notes of the first are there.
    first.reached_times(2).await;
    answer(&mut session, &long(10_000));
    let last = answer(&mut session, "and now?");
    assert_eq!(last["result"], "Answer at 20000.");
    session.finish();
    let main: Vec<Recorded> = world.requests().into_iter().filter(|it| !is_notes(it)).collect();
    assert_eq!(main.len(), 4, "no request for a summary");
    let first_message = main[3].messages()[0].to_string();
    assert!(first_message.contains("- asked about ports"), "{first_message}");
    assert!(main[3].body.len() < main[2].body.len(), "shorter than before");
    expect![[r#"
        user: This conversation was compacted to make room. Its earl (… 74 more)

        # Title

        # Current state

        # Task specification

        # Files and functions

        # Workflow

        # Errors and corrections

        # Codebase documentation

        # Learnings

        # Key results

        # Worklog
        - asked about ports

        Nothing is lost: the whole conversation is in <home>/.claude (… 130 more)
        assistant: Answer at 27000.
        user: word word word word word word word word word word word (… 49946 more)
        assistant: Answer at 45000.
        user: word word word word word word word word word word word (… 49946 more)
        assistant: Answer at 67500.
        user: and now?
    "#]]
    .assert_eq(&brief(&conversation(&main[3], &mut world.normaliser())));
}

fn is_compacting(frame: &Value) -> bool {
    frame["subtype"] == "status" && frame["status"] == "compacting"
}

/// Notes that are being written when they are needed are waited for: no model is asked for the same again.
/// Invariant 17 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_compaction_waits_for_notes_that_are_being_written() {
    let (first, second) = (Gate::new(), Gate::new());
    second.release();
    let answer_at = |n: u64| Step::text(format!("Answer at {n}.")).usage(10, 20, n, 0);
    let script = Script::new([answer_at(27_000), answer_at(67_500), answer_at(21_000)]);
    let world = World::new(script.answer_when(keeping_notes(first.clone(), second), is_notes)).await;
    let binary = stream([]).env("LOCI_SESSION_MEMORY", "1").env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut session = world.start(&binary.env("LOCI_COMPACTION_WAIT_MS", "600000"));
    let long = |n: usize| "word ".repeat(n);
    answer(&mut session, &long(16_000));
    first.reached().await;
    answer(&mut session, &long(10_000));
    session.write_json(&user("and now?"));
    session.wait_for_json(is_compacting);
    assert_eq!(world.requests().iter().filter(|it| !is_notes(it)).count(), 2, "nothing is asked meanwhile");
    first.release();
    assert_eq!(session.wait_for_json(is_result)["result"], "Answer at 21000.");
    session.finish();
    let main: Vec<Recorded> = world.requests().into_iter().filter(|it| !is_notes(it)).collect();
    assert_eq!(main.len(), 3, "no request for a summary");
    let sent = main[2].messages()[0].to_string();
    assert!(sent.contains("- asked about ports"), "{sent}");
}

/// Notes that do not come in time are done without.
/// Invariant 17 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_compaction_does_not_wait_for_ever() {
    let (first, second) = (Gate::new(), Gate::new());
    second.release();
    let answer_at = |n: u64| Step::text(format!("Answer at {n}.")).usage(10, 20, n, 0);
    let summary = Step::text("<summary>Words were sent.</summary>");
    let script = Script::new([answer_at(27_000), answer_at(67_500), summary, answer_at(21_000)]);
    let world = World::new(script.answer_when(keeping_notes(first.clone(), second), is_notes)).await;
    let binary = stream([]).env("LOCI_SESSION_MEMORY", "1").env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut session = world.start(&binary.env("LOCI_COMPACTION_WAIT_MS", "1"));
    answer(&mut session, "one");
    first.reached().await;
    answer(&mut session, "two");
    assert_eq!(answer(&mut session, "and now?")["result"], "Answer at 21000.");
    first.release();
    session.finish();
    let main: Vec<Recorded> = world.requests().into_iter().filter(|it| !is_notes(it)).collect();
    assert!(main[3].messages()[0].to_string().contains("Words were sent."));
}

/// A summary that was prepared beside the conversation is used at once.
/// Invariant 10 of `docs/design/memory.md`.
#[tokio::test]
async fn a_summary_prepared_ahead_is_used_when_it_is_needed() {
    let is_summary = |request: &Recorded| {
        request
            .messages()
            .iter()
            .any(|message| message["content"].to_string().contains("summary that you write now"))
    };
    let prepared = Step::text("<summary>1. The user sends many words.</summary>");
    let answer_at = |n: u64| Step::text(format!("Answer at {n}.")).usage(10, 20, n, 0);
    let hold = Gate::new();
    let script = Script::new([answer_at(20_000), answer_at(55_000), answer_at(60_000), answer_at(20_000)]);
    let script = script.answer_when(prepared.wait_before_headers(hold.clone()), is_summary);
    let world = World::new(script).await;
    let binary = stream([]).env("LOCI_PREPARE_SUMMARY", "1").env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let mut session = world.start(&binary);
    let long = |n: usize| "word ".repeat(n);
    answer(&mut session, &long(16_000));
    answer(&mut session, &long(10_000));
    hold.reached().await;
    hold.release();
    answer(&mut session, &long(8_000));
    let last = answer(&mut session, &long(8_000));
    assert_eq!(last["result"], "Answer at 20000.");
    session.finish();
    let (asked, main): (Vec<Recorded>, Vec<Recorded>) = world.requests().into_iter().partition(is_summary);
    assert_eq!((asked.len(), main.len()), (1, 4), "asked for once, ahead");
    assert!(main[3].messages()[0].to_string().contains("The user sends many words"));
}

/// Forgets what tests say of background requests.
fn as_usual(binary: Binary) -> Binary {
    ["LOCI_SESSION_MEMORY", "LOCI_MEMORY_EXTRACTION", "LOCI_PREPARE_SUMMARY"]
        .into_iter()
        .fold(binary, |binary, name| binary.env(name, ""))
}

/// What a session that nobody set anything for sends beside the conversation, for a prompt that fills a context.
#[tokio::test]
async fn one_prompt_sends_nothing_beside_the_conversation() {
    let modes: [&[&str]; 3] = [&[], &["-c"], &["--bare"]];
    for mode in modes {
        let script =
            Script::new([Step::text("One.").usage(10, 20, 150_000, 0), long_answer(), long_answer()]);
        let world = World::new(script).await;
        assert_eq!(world.run(&as_usual(print(["before"]))).code, Some(0));
        let before = world.requests().len();
        let output = world.run(&as_usual(print(["which port?"]).args(mode.iter().copied())));
        assert_eq!((output.code, world.requests().len() - before), (Some(0), 1), "{mode:?}");
    }
}

/// A stream of prompts may send more, but little, and with memories switched off nothing.
#[tokio::test]
async fn stream_of_prompts_pays_little_and_nothing_with_memories_off() {
    for (setting, has_notes) in [(json!({}), true), (json!({"autoMemoryEnabled": false}), false)] {
        let (first, second) = (Gate::new(), Gate::new());
        first.release();
        second.release();
        let dear = |_| Step::text("Here.").usage(20_000, 5_000, 2_000, 0);
        let script = Script::new((0..5).map(dear).collect::<Vec<_>>());
        let world =
            World::new(script.answer_when(keeping_notes(first.clone(), second.clone()), is_notes)).await;
        world.home.write_config("settings.json", setting.to_string());
        let binary = loci().args(["-p", "--verbose", "--model", "claude-opus-4-1"]);
        let binary = binary.args(["--input-format", "stream-json", "--output-format", "stream-json"]);
        let mut session = world.start(&as_usual(binary));
        answer(&mut session, "which port?");
        assert!(!world.requests().iter().any(is_notes), "one answer does not pay for a look at it");
        (0..4).for_each(|_| drop(answer(&mut session, "again?")));
        session.finish();
        assert_eq!(world.requests().iter().any(is_notes), has_notes, "{setting}");
    }
}
