//! Conversations that outgrow the window: compacted before a request, after a refusal, and at the user's wish.

use crate::memory::remember;
use crate::support::{
    World, assert_fine, brief, conversation, is_result, print, shape, stream, user, watched,
};
use expect_test::expect;
use loci_testkit::{Binary, Output, Recorded, Step};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

const SUMMARY: &str = "<analysis>Scratch.</analysis>\n<summary>1. The user wants ports compared.</summary>";

/// A round trip that reads a file, after which the server has counted so many tokens.
fn reading(tokens: u64) -> Step {
    Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, tokens - 30, 0)
}

fn body(request: &Recorded) -> Value {
    request.json.clone()
}

async fn world(steps: Vec<Step>) -> World {
    let world = World::new(steps).await;
    world.home.write("notes.txt", "port=9000\n");
    world
}

fn too_long() -> Step {
    Step::status(400).error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")
}

/// Renders what a client saw, without what the model said in between.
fn render_run(world: &World, output: &Output) -> String {
    let frames: Vec<Value> = output.json_lines();
    world.normaliser().text(&format!("{}exit {:?}\n{}", shape(&frames), output.code, output.stderr))
}

#[tokio::test]
async fn oversized_request_is_compacted_before_sending() {
    let steps = vec![reading(30_000), reading(67_500), Step::text(SUMMARY), Step::text("Both are 9000.")];
    let world = world(steps).await;
    let output = world.run(&watched(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    expect![[r#"
        system init
        assistant Read {"file_path":"notes.txt"} <toolu-1>
        user <toolu-1>: 1	port=9000
        2	
        assistant Read {"file_path":"notes.txt"} <toolu-2>
        user <toolu-2>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        system status compacting
        system status 
        system compact_boundary
        user This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant Both are 9000.
        result success completed
        exit Some(0)
    "#]].assert_eq(&render_run(&world, &output));
    let synthetic: Vec<Value> =
        output.json_lines().into_iter().filter(|it| it["isSynthetic"] == true).collect();
    assert_eq!(synthetic.len(), 1, "the summary is nobody's prompt, and nothing else is such: {synthetic:?}");
    let requests = world.requests();
    assert_eq!(requests.len(), 4);
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        user: <toolu-1>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        user: <system-reminder>
        The file <project>/notes.txt was read for you. Its contents:
        port=9000
        </system-reminder>
    "#]].assert_eq(&world.conversation());
    expect![[r#"
        0 queue-operation enqueue
        1 queue-operation dequeue
        2 <- -: user compare
        3 <- 2: assistant calls Read #1
        4 <- 3: user answers #1 1	port=9000
        5 <- 4: assistant calls Read #2
        6 <- 5: user answers #2 `<project>/notes.txt` has not changed since you last read it: that result still holds.
        7 last-prompt -> 6
        8 <- -: system 
        9 <- 8: user This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        10 <- 9: attachment {"type":"file","filename":"<project>/notes.txt","content":{"type":"text","file":{"filePath":"<project>/notes.txt","content":"port=9000\n","numLines":1,"startLine":1,"totalLines":1}},"displayPath":"notes.txt"}
        11 <- 10: assistant Both are 9000.
        12 cost-state
        13 last-prompt -> 11
    "#]].assert_eq(&world.sketch());
    // The summary is asked for with the same beginning, so that the cache serves it.
    let (before, asked) = (body(&requests[1]), body(&requests[2]));
    assert_eq!(before["system"], asked["system"]);
    assert_eq!(before["tools"], asked["tools"]);
}

#[tokio::test]
async fn a_window_with_room_is_left_alone() {
    let steps = vec![reading(30_000), reading(66_900), Step::text("Done.")];
    let world = world(steps).await;
    let output = world.run(&print(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    assert_fine(&output);
    assert_eq!(world.requests().len(), 3);
    assert!(!world.sketch().contains("compact_boundary"));
}

#[tokio::test]
async fn prompt_too_long_error_is_compacted_and_retried() {
    let steps = vec![
        reading(900),
        reading(1_000),
        reading(1_100),
        too_long(),
        Step::text(SUMMARY),
        Step::text("Done."),
    ];
    let world = world(steps).await;
    let output = world.run(&watched(["compare"]));
    expect![[r#"
        system init
        assistant Read {"file_path":"notes.txt"} <toolu-1>
        user <toolu-1>: 1	port=9000
        2	
        assistant Read {"file_path":"notes.txt"} <toolu-2>
        user <toolu-2>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        assistant Read {"file_path":"notes.txt"} <toolu-3>
        user <toolu-3>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        system status compacting
        system status 
        system compact_boundary
        user This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant Done.
        result success completed
        exit Some(0)
    "#]].assert_eq(&render_run(&world, &output));
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        user: <toolu-1>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        assistant: Read {"file_path":"notes.txt"} <toolu-2>
        user: <toolu-2>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        user: <system-reminder>
        The file <project>/notes.txt was read for you. Its contents:
        port=9000
        </system-reminder>
    "#]].assert_eq(&world.conversation());
}

/// The request is repeated once; a second refusal is for the user.
/// Invariant 3 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_refusal_that_compacting_does_not_mend_is_told() {
    let steps =
        vec![reading(900), reading(1_000), reading(1_100), too_long(), Step::text(SUMMARY), too_long()];
    let world = world(steps).await;
    let output = world.run(&watched(["compare"]));
    expect![[r#"
        system init
        assistant Read {"file_path":"notes.txt"} <toolu-1>
        user <toolu-1>: 1	port=9000
        2	
        assistant Read {"file_path":"notes.txt"} <toolu-2>
        user <toolu-2>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        assistant Read {"file_path":"notes.txt"} <toolu-3>
        user <toolu-3>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        system status compacting
        system status 
        system compact_boundary
        user This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        compare

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant API Error: The prompt does not fit the model's window (400): prompt is too long: 210000 tokens > 200000 maximum
        Compact the conversation, or start a new one.
        result success (error) 400 api_error
        exit Some(1)
    "#]].assert_eq(&render_run(&world, &output));
    assert_eq!(world.requests().len(), 6);
}

#[tokio::test]
async fn too_little_cannot_be_compacted() {
    let world = world(vec![too_long(), Step::text("never")]).await;
    let output = world.run(&watched(["compare"]));
    expect![[r#"
        system init
        system status compacting
        system status 
        assistant API Error: The prompt does not fit the model's window (400): prompt is too long: 210000 tokens > 200000 maximum
        Compact the conversation, or start a new one.
        result success (error) 400 api_error
        exit Some(1)
    "#]].assert_eq(&render_run(&world, &output));
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn compact_command_compacts() {
    let steps = vec![Step::text("One."), Step::text("Two."), Step::text(SUMMARY), Step::text("Three.")];
    let world = world(steps).await;
    let mut session = world.start(&stream([]));
    for prompt in ["first", "second", "/compact the ports", "third"] {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], false, "{result}");
    }
    session.finish();
    let asked = body(&world.requests()[2]);
    let request = asked["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(request.contains("special attention to this: the ports"), "{request}");
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        second

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: Two.
        user: third
    "#]].assert_eq(&world.conversation());
}

/// What is sent after a resume is what an uninterrupted session would have sent.
/// Invariant 1 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_resumed_session_goes_on_from_its_summary() {
    let steps = vec![
        reading(30_000),
        reading(67_500),
        Step::text(SUMMARY),
        Step::text("Both."),
        Step::text("Again."),
    ];
    let world = world(steps).await;
    let windowed = |args: [&str; 2]| print(args).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    assert_fine(&world.run(&windowed(["compare", "--verbose"])));
    let before = body(world.requests().last().unwrap())["messages"].clone();
    assert_fine(&world.run(&windowed(["and now", "-c"])));
    let after = body(world.requests().last().unwrap())["messages"].clone();
    let (before, after) = (before.as_array().unwrap(), after.as_array().unwrap());
    let strip = |message: &Value| {
        let mut message = message.clone();
        for block in message["content"].as_array_mut().unwrap() {
            block.as_object_mut().unwrap().remove("cache_control");
        }
        message
    };
    let same: Vec<Value> = after.iter().take(before.len()).map(strip).collect();
    assert_eq!(same, before.iter().map(strip).collect::<Vec<_>>());
}

/// Three failures in a row, and nothing is tried any more; the conversation goes on (regression class 1).
/// Invariant 4 of `docs/design/compaction.md`.
#[tokio::test]
async fn failures_do_not_stop_the_work_and_are_not_repeated_for_ever() {
    let failed = || Step::status(400).error("invalid_request_error", "no");
    let mut steps = vec![reading(30_000)];
    for _ in 0..3 {
        steps.extend([reading(70_000), failed()]);
    }
    steps.extend([reading(70_000), Step::text("Done.")]);
    let world = world(steps).await;
    let output = world.run(&watched(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert_eq!(world.requests().len(), 9);
    assert!(!world.sketch().contains("compact_boundary"));
    assert!(output.stderr.contains("compacting it does not help"), "{}", output.stderr);
}

#[tokio::test]
async fn automatic_compaction_can_be_switched_off() {
    for name in ["DISABLE_COMPACT", "DISABLE_AUTO_COMPACT"] {
        let world = world(vec![reading(30_000), reading(70_000), Step::text("Done.")]).await;
        let run = print(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000").env(name, "1");
        assert_fine(&world.run(&run));
        assert_eq!(world.requests().len(), 3, "{name}");
    }
}

/// What a person wrote into their instructions meanwhile counts from the summary on, once and in full.
/// Regression class 17: both instructions and the index of memories.
/// Invariant 6 of `docs/design/compaction.md`.
#[tokio::test]
async fn compaction_rereads_instruction_files() {
    let rewrite =
        Step::call("Bash", json!({"command": "echo 'Say please.' > CLAUDE.md"})).usage(10, 20, 67_470, 0);
    // Another session remembers something while this one is summarised.
    let index = Arc::new(OnceLock::<PathBuf>::new());
    let written = Arc::clone(&index);
    let summary = Step::dynamic(move |_| {
        std::fs::write(written.get().unwrap(), "- [new](new.md): the harbour is Bergen\n").unwrap();
        Step::text(SUMMARY)
    });
    let world = world(vec![reading(30_000), rewrite, summary, Step::text("Done.")]).await;
    world.home.write("CLAUDE.md", "Say thanks.\n");
    index.set(remember(&world, "MEMORY.md", "- [old](old.md): the harbour is Oslo\n")).unwrap();
    let run =
        print(["compare", "--allowedTools", "Bash,Edit"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    assert_fine(&world.run(&run));
    let sent: Vec<String> =
        world.requests().iter().map(|request| request.json["messages"].to_string()).collect();
    assert_eq!(sent.len(), 4);
    for (idx, old, new) in [(0, 1, 0), (2, 1, 0), (3, 0, 1)] {
        let counts = (sent[idx].matches("Say thanks.").count(), sent[idx].matches("Say please.").count());
        // The command that wrote them is in the preserved round.
        let said_in_calls = if idx == 3 { 1 } else { 0 };
        assert_eq!(counts, (old, new + said_in_calls), "request {idx}: {}", sent[idx]);
        let harbours = (sent[idx].matches("is Oslo").count(), sent[idx].matches("is Bergen").count());
        assert_eq!(harbours, (old, new), "request {idx}: {}", sent[idx]);
    }
}

#[tokio::test]
async fn instructions_are_not_shown_twice_and_come_back_with_their_files() {
    let steps =
        vec![reading(30_000), reading(67_500), Step::text(SUMMARY), reading(1_000), Step::text("Done.")];
    let world = world(steps).await;
    world.home.write("CLAUDE.md", "TOP");
    world.home.write(".claude/rules/txt.md", "---\npaths: \"*.txt\"\n---\nRULE");
    world.run(&watched(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000"));
    let requests = world.requests();
    let count = |idx: usize, word: &str| requests[idx].json["messages"].to_string().matches(word).count();
    assert_eq!((count(1, "RULE"), count(2, "RULE")), (1, 1), "met once before the compaction");
    assert_eq!(count(4, "TOP"), 1, "sent with the context, and not as a file that was read");
    assert_eq!(count(4, "RULE"), count(3, "RULE") + 1, "met again behind the read that follows it");
}

/// Nothing is said in the model's name: the next request would begin with words it never wrote.
#[tokio::test]
async fn compact_command_with_too_little_to_compact_changes_nothing() {
    let world = world(vec![Step::text("One.")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("/compact"));
    let result = session.wait_for_json(is_result);
    assert_eq!(result["is_error"], false, "{result}");
    assert!(result["result"].as_str().unwrap().starts_with("There is too little to compact"), "{result}");
    session.write_json(&user("hi"));
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(world.conversation(), "user: hi\n");
    assert!(world.requests()[0].violations.is_empty());
}

#[tokio::test]
async fn compact_command_says_when_compaction_is_off() {
    let world = world(vec![Step::text("One.")]).await;
    let output = world.run(&print(["/compact"]).env("DISABLE_COMPACT", "1"));
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("unset DISABLE_COMPACT"), "{output:?}");
}

/// A fork that begins with a compaction holds all it took over, and goes on like its source.
#[tokio::test]
async fn a_fork_can_begin_with_a_compaction() {
    let steps = ["One.", "Two.", SUMMARY, "Three.", "Four."].map(Step::text).to_vec();
    let world = world(steps).await;
    assert_fine(&world.print(["first"]));
    assert_fine(&world.print(["second", "-c"]));
    assert_fine(&world.run(&print(["/compact", "-c", "--fork-session"])));
    assert_fine(&world.print(["third", "-c"]));
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        second

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: Two.
        user: third
    "#]].assert_eq(&world.conversation());
}

/// What a crash left open is mended before anything is summarised (regression class 13).
#[tokio::test]
async fn a_session_cut_short_can_be_compacted() {
    let busy = Step::call("Bash", json!({"command": "sleep 3"}));
    let steps = vec![Step::text("One."), busy, Step::text(SUMMARY), Step::text("Going on.")];
    let world = world(steps).await;
    assert_fine(&world.print(["first"]));
    let mut session = world.start_closed(&watched(["second", "-c", "--allowedTools", "Bash"]));
    session.wait_for_json(|frame| frame["message"]["content"][0]["type"] == "tool_use");
    session.crash();
    assert_fine(&world.print(["/compact", "-c"]));
    assert_fine(&world.print(["go on", "-c"]));
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        1. The user wants ports compared.

        The user's last message, word for word:
        second

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: No response requested.
        user: go on
    "#]].assert_eq(&world.conversation());
    assert!(world.requests().iter().all(|request| request.violations.is_empty()));
}

fn failed() -> Step {
    Step::status(400).error("invalid_request_error", "no")
}

/// The model gives no summary, but what was refused cannot be sent again as it is.
/// Invariant 12 of `docs/design/compaction.md`.
#[tokio::test]
async fn what_was_refused_becomes_shorter_even_without_a_model() {
    let steps = vec![reading(900), reading(1_000), reading(1_100), too_long(), failed(), Step::text("Done.")];
    let world = world(steps).await;
    assert_fine(&world.run(&print(["compare the ports"])));
    expect![[r#"
        user: This conversation was compacted to make room. Its earlier part is summarised here; the messages after this one are as they were.

        No model could be asked for a summary. What follows was put together from the record by rule, without understanding it: look into the transcript wherever something seems to be missing.

        What the user said, word for word:
        - compare the ports

        Calls so far: Read 1. The last ones:
        - Read {"file_path":"notes.txt"}

        The user's last message, word for word:
        compare the ports

        Nothing is lost: the whole conversation is in <home>/.claude/projects/<project>/<uuid-1>.jsonl, one JSON object a line; where you have the Recall tool, it finds and quotes any message of it.
        assistant: Read {"file_path":"notes.txt"} <toolu-1>
        user: <toolu-1>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        assistant: Read {"file_path":"notes.txt"} <toolu-2>
        user: <toolu-2>: `<project>/notes.txt` has not changed since you last read it: that result still holds.
        user: <system-reminder>
        The file <project>/notes.txt was read for you. Its contents:
        port=9000
        </system-reminder>
    "#]].assert_eq(&world.conversation());
    assert_eq!(world.requests().len(), 6);
    assert!(world.requests().iter().all(|request| request.violations.is_empty()));
}

/// A conversation that was made for a large window goes on in a small one: it is read part by part, and no part twice.
#[tokio::test]
async fn a_conversation_too_long_for_one_request_is_summarised_in_parts() {
    let long =
        |n: u64| Step::text(format!("answer {n} {}", "word ".repeat(4_000))).usage(10, 5_000, 5_000 * n, 0);
    let mut steps: Vec<Step> = (0..8).map(long).collect();
    steps.extend((1..=3).map(|n| Step::text(format!("<summary>summary {n}</summary>"))));
    steps.push(Step::text("Going on."));
    let world = world(steps).await;
    let mut session = world.start(&stream([]));
    for n in 0..8 {
        session.write_json(&user(&format!("question {n}")));
        session.wait_for_json(is_result);
    }
    session.finish();
    let small = print(["and now", "-c"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "40000");
    assert_fine(&world.run(&small.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "4000")));
    let requests = world.requests();
    let asked: Vec<String> = requests[8..requests.len() - 1]
        .iter()
        .map(|request| request.json["messages"][0]["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert!(asked.len() > 1, "{}", asked.len());
    for n in 0..7 {
        let reads = asked.iter().filter(|text| text.contains(&format!("Assistant: answer {n} "))).count();
        assert_eq!(reads, 1, "answer {n}");
    }
    for (idx, text) in asked.iter().enumerate() {
        assert_eq!(text.contains(&format!("\n\nsummary {idx}\n\n")), idx > 0, "{idx}");
    }
    let last = requests.last().unwrap().json["messages"].to_string();
    assert!(last.contains(&format!("summary {}", asked.len())) && last.contains("and now"), "{last}");
    // The second part: what came before it is summarised already.
    let part = conversation(&requests[9], &mut world.normaliser());
    expect![[r#"
        user: A conversation between a user and an assistant is too  (… 114 more)

        What came before it is summarised already; take that over into your summary:

        summary 1

        <conversation>
        Assistant: answer 3 word word word word word word word word  (… 12035 more)
        [… 1883 characters left out …]
        d word word word word word word word word word word word wor (… 5982 more)
        User: question 4
        Assistant: answer 4 word word word word word word word word  (… 12035 more)
        [… 1883 characters left out …]
        d word word word word word word word word word word word wor (… 5982 more)
        User: question 5
        Assistant: answer 5 word word word word word word word word  (… 12035 more)
        [… 1883 characters left out …]
        d word word word word word word word word word word word wor (… 5982 more)
        User: question 6
        </conversation>

        This conversation has grown too long and will be continued f (… 71 more)

        First go through the conversation in order inside <analysis> (… 109 more)

        Then write the summary inside <summary> tags. Whoever goes o (… 280 more)

        1. Request and intent: what the user wants, in full, with every condition and limit they set.
        2. Concepts: technologies, conventions and decisions the work rests on, and why they were chosen.
        3. Files and code: every file that was read, changed or made (… 61 more)
        4. Errors and fixes: what went wrong, why, how it was mended, and what the user said about it.
        5. Problem solving: what has been solved, what was tried and failed, what is still unclear.
        6. User messages: everything the user said that is not a too (… 111 more)
        7. Pending tasks: what was asked for and is not done yet.
        8. Current work: what was being done just before this summary, with file names and code.
        9. Next step: what follows directly from the last request, w (… 63 more)

    "#]]
    .assert_eq(&brief(part.split("Write ").next().unwrap()));
    expect![[r#"
        user: This conversation was compacted to make room. Its earl (… 74 more)

        summary 3

        The user's last message, word for word:
        and now

        Nothing is lost: the whole conversation is in <home>/.claude (… 130 more)
    "#]]
    .assert_eq(&brief(&world.conversation()));
}

/// A summary that is refused for want of room for the answer, or because the server is busy, is asked for again.
#[tokio::test]
async fn a_summary_is_asked_for_again_where_that_helps() {
    let no_room = Step::status(400).error(
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length or `max_tokens` and try again",
    );
    let busy = Step::status(529).header("retry-after", "0");
    let steps = vec![
        Step::text("One."),
        Step::text("Two."),
        no_room,
        busy,
        Step::text(SUMMARY),
        Step::text("Three."),
    ];
    let world = world(steps).await;
    let mut session = world.start(&stream([]));
    for prompt in ["first", "second", "/compact", "third"] {
        session.write_json(&user(prompt));
        assert_eq!(session.wait_for_json(is_result)["is_error"], false);
    }
    session.finish();
    let limits: Vec<u64> =
        world.requests()[2..5].iter().map(|request| request.json["max_tokens"].as_u64().unwrap()).collect();
    assert!(limits[1] < limits[0] && limits[2] == limits[1], "{limits:?}");
    assert!(world.conversation().contains("The user wants ports compared."), "{}", world.conversation());
}

/// The last message of the user, open tasks, changed paths and running commands go over word for word.
#[tokio::test]
async fn last_message_tasks_changes_and_commands_survive_a_compaction() {
    let write = |name: &str| Step::call("Write", json!({"file_path": name, "content": "x"}));
    let start = Step::call("Bash", json!({"command": "sleep 30", "run_in_background": true}));
    let task = |subject: &str| Step::call("TaskCreate", json!({"subject": subject, "description": ""}));
    let steps = vec![
        write("one.txt"),
        task("Compare ports"),
        task("Tell"),
        Step::call("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        start,
        reading(67_500),
        Step::text(SUMMARY),
        write("two.txt"),
        reading(67_500),
        Step::text(SUMMARY),
        Step::text("Done."),
    ];
    let world = world(steps).await;
    let run = print(["Compare.\nNever touch <main>.", "--allowedTools", "Bash,Write,Read"]);
    assert_fine(&world.run(&run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000")));
    let conversation = world.conversation();
    let carried = conversation.split("1. The user wants ports compared.").nth(1).unwrap();
    let carried = carried.split("Nothing is lost").next().unwrap();
    let (said, rest) = carried.split_once("On the task list, not done yet:\n").unwrap();
    assert_eq!(said.trim(), "The user's last message, word for word:\nCompare.\nNever touch <main>.");
    let (tasks, rest) = rest.split_once("Still running").unwrap();
    assert_eq!(tasks.trim(), "- 2. [pending] Tell");
    assert!(rest.contains(": sleep 30\n"), "{rest}");
    let files = rest.split("Files changed so far:\n").nth(1).unwrap().trim();
    assert_eq!(files, "- <project>/one.txt\n- <project>/two.txt");
    assert_eq!(conversation.matches("Never touch <main>.").count(), 1);
}

/// Old results are cleared before anybody is asked for a summary.
/// Invariant 1 of `docs/design/compaction.md`.
#[tokio::test]
async fn cleared_results_stay_cleared_in_a_resumed_session_and_a_fork() {
    let read = |n: usize, tokens: u64| {
        Step::call("Read", json!({"file_path": format!("long{n}.txt")})).usage(10, 20, tokens - 30, 0)
    };
    let mut steps: Vec<Step> = (0..5).map(|n| read(n, 12_000 * (n as u64 + 1))).collect();
    steps.extend(["Done.", "Again.", "Forked."].map(|text| Step::text(text).usage(10, 20, 30_000, 0)));
    let world = world(steps).await;
    for n in 0..5 {
        world.home.write(format!("long{n}.txt"), format!("file {n} {}\n", "words ".repeat(40)).repeat(150));
    }
    let windowed = |run: Binary| run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    assert_fine(&world.run(&windowed(print(["compare"]))));
    let sent = |idx: usize| world.requests()[idx].json["messages"].clone();
    let count = |messages: &Value| messages.to_string().matches("[Old tool result content cleared]").count();
    assert_eq!((count(&sent(4)), count(&sent(5))), (0, 4));
    let cleared = conversation(&world.requests()[5], &mut world.normaliser());
    expect![[r#"
        user: compare
        assistant: Read {"file_path":"long0.txt"} <toolu-1>
        user: <toolu-1>: [Old tool result content cleared]
        assistant: Read {"file_path":"long1.txt"} <toolu-2>
        user: <toolu-2>: [Old tool result content cleared]
        assistant: Read {"file_path":"long2.txt"} <toolu-3>
        user: <toolu-3>: [Old tool result content cleared]
        assistant: Read {"file_path":"long3.txt"} <toolu-4>
        user: <toolu-4>: [Old tool result content cleared]
        assistant: Read {"file_path":"long4.txt"} <toolu-5>
        user: <toolu-5>: 1	file 4 words words words words words word (… 206 more)
        2	file 4 words words words words words words words words wor (… 189 more)
        151	
    "#]]
    .assert_eq(&brief(&cleared));
    assert!(!world.sketch().contains("compact_boundary"));
    assert_fine(&world.run(&windowed(print(["and now", "-c"]))));
    assert_fine(&world.run(&windowed(print(["and here", "-c", "--fork-session"]))));
    let bare = |messages: &Value| -> Vec<String> {
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        messages.as_array().unwrap().iter().map(|message| message.to_string().replace(mark, "")).collect()
    };
    let (first, resumed, forked) = (bare(&sent(5)), bare(&sent(6)), bare(&sent(7)));
    assert_eq!(resumed[..first.len()], first[..]);
    assert_eq!(forked[..first.len()], first[..]);
}

#[tokio::test]
async fn clearing_can_be_switched_off() {
    let read = |n: usize, tokens: u64| {
        Step::call("Read", json!({"file_path": format!("long{n}.txt")})).usage(10, 20, tokens - 30, 0)
    };
    let mut steps: Vec<Step> = (0..5).map(|n| read(n, 12_000 * (n as u64 + 1))).collect();
    steps.extend([Step::text(SUMMARY), Step::text("Done.")]);
    let world = world(steps).await;
    for n in 0..5 {
        world.home.write(format!("long{n}.txt"), format!("file {n} {}\n", "words ".repeat(40)).repeat(150));
    }
    let run =
        print(["compare"]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000").env("LOCI_DISABLE_CLEARING", "1");
    assert_fine(&world.run(&run));
    assert!(!world.requests()[6].json.to_string().contains("[Old tool result content cleared]"));
    assert!(world.sketch().contains("This conversation was compacted"));
}

/// Where nothing makes room unasked, a prompt that would not fit is refused, and says what to do.
#[tokio::test]
async fn a_full_window_refuses_prompts_where_nothing_makes_room() {
    let full = Step::text("One.").usage(10, 20, 90_000, 0);
    let world = world(vec![Step::text("Zero."), full, Step::text(SUMMARY), Step::text("Two.")]).await;
    let run = stream([]).env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000").env("DISABLE_AUTO_COMPACT", "1");
    let mut session = world.start(&run);
    for (prompt, is_error) in
        [("zero", false), ("first", false), ("second", true), ("/compact", false), ("third", false)]
    {
        session.write_json(&user(prompt));
        let result = session.wait_for_json(is_result);
        assert_eq!(result["is_error"], is_error, "{prompt}: {result}");
        assert_eq!(
            result["result"].as_str().unwrap().contains("shorter with /compact"),
            is_error,
            "{result}"
        );
    }
    session.finish();
    assert!(!world.conversation().contains("second"), "{}", world.conversation());
}

/// After a long pause the prompt cache is cold: then old results go, and what is sent stays the same from there on.
#[tokio::test]
async fn results_are_cleared_after_a_long_pause() {
    let read = |n: usize| Step::call("Read", json!({"file_path": format!("long{n}.txt")}));
    let mut steps: Vec<Step> = (0..8).map(read).collect();
    steps.extend(["Done.", "Back.", "Again."].map(Step::text));
    let world = world(steps).await;
    for n in 0..8 {
        world.home.write(format!("long{n}.txt"), format!("file {n} {}\n", "words ".repeat(40)).repeat(150));
    }
    let windowed = |run: Binary| run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    assert_fine(&world.run(&windowed(print(["compare"]))));
    let file = world.home.sessions().pop().unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    // All of it was said years ago.
    let parts: Vec<&str> = text.split(r#""timestamp":""#).collect();
    let old: Vec<String> = parts[1..].iter().map(|part| format!("2020{}", &part[4..])).collect();
    let aged = format!(r#"{}"timestamp":"{}"#, parts[0], old.join(r#""timestamp":""#));
    std::fs::write(&file, &aged).unwrap();
    assert_fine(&world.run(&windowed(print(["are you there", "-c"]))));
    assert_fine(&world.run(&windowed(print(["good", "-c"]))));
    let cleared = |idx: usize| {
        world.requests()[idx].json["messages"]
            .to_string()
            .matches("[Old tool result content cleared]")
            .count()
    };
    assert_eq!((cleared(8), cleared(9), cleared(10)), (0, 3, 3), "the newest five stay");
    assert_eq!(world.requests().len(), 11, "nobody was asked for a summary");
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.starts_with(&aged) && kept.contains("file 0 words"), "the session file keeps everything");
    // The same conversation where the step is switched off: nothing goes.
    std::fs::write(&file, &aged).unwrap();
    world.home.write_config("settings.json", json!({"compactionSteps": {"coldClearing": false}}).to_string());
    let world = world.then([Step::text("Still here.")]).await;
    assert_fine(&world.run(&windowed(print(["are you there", "-c"]))));
    assert!(!world.last_request().json.to_string().contains("[Old tool result content cleared]"));
}

/// Many results at once share a bound; what is over it lies in files, whole.
#[tokio::test]
async fn parallel_results_share_a_size_budget() {
    let mut calls = Step::new();
    for n in 0..8 {
        calls = calls.tool("Read", json!({"file_path": format!("long{n}.txt")}));
    }
    let world = world(vec![calls, Step::text("Done."), Step::text("Again.")]).await;
    let text = |n: usize| format!("file {n} {}\n", "words ".repeat(40)).repeat(150);
    for n in 0..8 {
        world.home.write(format!("long{n}.txt"), text(n));
    }
    assert_fine(&world.run(&print(["compare"])));
    let results = world.requests()[1].tool_results();
    let saved: Vec<_> = results.iter().filter(|it| it.text.contains("Full output saved to: ")).collect();
    assert_eq!(
        (results.len(), saved.len()),
        (8, 4),
        "as many as fit a quarter of the way to the trigger stay"
    );
    for result in saved {
        let path = result.text.split("saved to: ").nth(1).unwrap().lines().next().unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap().matches("file ").count(), 150);
    }
    assert_fine(&world.run(&print(["again", "-c"])));
    let sent = |idx: usize| {
        let message = &world.requests()[idx].json["messages"][2]["content"];
        message.as_array().unwrap().iter().map(|block| block["content"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(sent(2), sent(1), "a resumed session sends the same");
}
