//! Memories between sessions: what the model is shown, what it writes, and what is found beside the conversation.

use crate::support::{MODEL, World, is_result, loci, print, stream, user, watched};
use loci_testkit::{Gate, Recorded, Script, Step};
use serde_json::{Value, json};
use std::path::PathBuf;

const LOOKING: &str = "Look through the conversation above";

pub(crate) fn memory_dir(world: &World) -> PathBuf {
    let slug: String = world
        .home
        .project()
        .display()
        .to_string()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    world.home.config_home().join("projects").join(slug).join("memory")
}

pub(crate) fn remember(world: &World, file: &str, text: &str) -> PathBuf {
    let path = memory_dir(world).join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(world: &World, file: &str) -> String {
    std::fs::read_to_string(memory_dir(world).join(file)).unwrap_or_default()
}

pub(crate) fn memory(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\ntype: feedback\n---\nText.\n")
}

fn write(world: &World, file: &str, text: &str) -> Step {
    let path = memory_dir(world).join(file).display().to_string();
    Step::call("Write", json!({"file_path": path, "content": text}))
}

fn is_looking(request: &Recorded) -> bool {
    request.messages().iter().any(|message| message["content"].to_string().contains(LOOKING))
}

fn journal(world: &World) -> Vec<Value> {
    let output = world.run(&loci().args(["memory", "history", "--json"]));
    assert_eq!(output.code, Some(0), "{output:?}");
    serde_json::from_str::<Value>(&output.stdout).unwrap().as_array().cloned().unwrap()
}

/// Invariant 5 of `docs/design/memory.md`.
#[tokio::test]
async fn the_index_is_shown_and_the_prompt_says_where_memories_lie() {
    let world = World::with_git([Step::text("ok"), Step::text("ok")]).await;
    let lines = |n: usize| "- [small](small.md): commits hold one idea\n".repeat(n);
    let index = format!("<!-- hidden -->\n{}- [new](new.md): the newest of all\n", lines(200));
    remember(&world, "MEMORY.md", &index);
    std::fs::create_dir(world.home.project().join("sub")).unwrap();
    // A subdirectory shares the memories of its repository.
    let output = world.run(&print(["hi"]).cwd(world.home.project().join("sub")));
    assert_eq!(output.code, Some(0), "{output:?}");
    let request = world.last_request();
    let first = request.messages()[0]["content"].to_string();
    assert!(first.contains("commits hold one idea") && !first.contains("hidden"), "{first}");
    assert!(first.contains("1 of 201 lines are left out"), "what does not fit is named");
    assert!(first.contains("the newest of all"), "and is never the newest: {first}");
    assert!(first.contains(&memory_dir(&world).join("MEMORY.md").display().to_string()));
    let system = request.system_text();
    assert!(system.contains(&memory_dir(&world).display().to_string()) && system.contains("logs/YYYY/MM/"));
    for switch in ["CLAUDE_CODE_DISABLE_AUTO_MEMORY", "CLAUDE_CODE_SIMPLE"] {
        world.run(&print(["hi"]).env(switch, "1"));
        let request = world.last_request();
        assert!(!request.system_text().contains("# Memory"), "{switch}");
        assert!(!request.messages()[0].to_string().contains("one idea"), "{switch}");
    }
}

/// Invariant 4 of `docs/design/memory.md`.
#[tokio::test]
async fn worktrees_share_memories_and_a_stranger_does_not_move_them() {
    let world = World::with_git([Step::text("ok"), Step::text("ok"), Step::text("ok")]).await;
    let worktree = world.home.project().with_file_name("worktree");
    world.home.git(&["worktree", "add", "--quiet", &worktree.display().to_string()]);
    let usual = memory_dir(&world).display().to_string();
    assert_eq!(world.run(&print(["hi"]).cwd(&worktree)).code, Some(0));
    assert!(world.last_request().system_text().contains(&usual), "the main checkout's");
    let elsewhere = world.home.home().join("elsewhere").display().to_string();
    let settings = json!({"autoMemoryDirectory": elsewhere}).to_string();
    world.home.write(".claude/settings.json", &settings);
    world.print(["hi"]);
    assert!(world.last_request().system_text().contains(&usual), "the folder is not trusted");
    world.home.write_config("settings.json", &settings);
    world.print(["hi"]);
    assert!(world.last_request().system_text().contains(&elsewhere), "the user's own word counts");
}

/// Invariant 4 of `docs/design/memory.md`.
#[tokio::test]
async fn the_model_writes_memories_unasked_and_the_book_knows_from_where() {
    let world = World::new([]).await;
    let script = Script::new([
        write(&world, "small.md", &memory("small", "one idea")),
        write(&world, "run.sh", "rm -rf /"),
        Step::text("Remembered."),
    ]);
    let world = world.then(script).await;
    let output = world.print(["remember", "--output-format", "json"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let text = read(&world, "small.md");
    assert!(text.contains("modified: 20") && text.ends_with("---\nText.\n"), "stamped, and no more: {text}");
    assert!(!memory_dir(&world).join("run.sh").exists(), "a memory is a Markdown file");
    let changes = journal(&world);
    assert_eq!(changes.len(), 1);
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(changes[0]["session"], result["session_id"]);
    assert_eq!((&changes[0]["by"], &changes[0]["act"]), (&json!("model"), &json!("write")));
    assert!(changes[0]["message"].as_str().is_some_and(|id| id.starts_with("toolu_")));
    assert_eq!(changes[0]["files"][0]["after"], json!(text));
}

#[tokio::test]
async fn edit_after_stamping_is_not_a_conflict() {
    let world = World::new([]).await;
    let path = memory_dir(&world).join("small.md").display().to_string();
    let script = Script::new([
        write(&world, "small.md", &memory("small", "one idea")),
        Step::call("Edit", json!({"file_path": path, "old_string": "Text.", "new_string": "More."})),
        write(&world, "small.md", &memory("small", "whole again")),
        Step::text("Done."),
    ]);
    let world = world.then(script).await;
    assert_eq!(world.print(["remember"]).code, Some(0));
    assert!(read(&world, "small.md").contains("description: whole again"));
    assert_eq!(journal(&world).len(), 3);
}

/// Invariant 6 of `docs/design/memory.md`. A memory may be in any encoding; what the model writes over it can be taken
/// back to the byte.
#[tokio::test]
async fn undo_restores_overwritten_memory_byte_for_byte() {
    let latin = b"---\nname: caf\xe9\ndescription: d\ntype: user\n---\nUn caf\xe9 \xe0 la cr\xe8me.\r\n";
    let world = World::new([]).await;
    let path = |file: &str| memory_dir(&world).join(file);
    let read = |file: &str| Step::call("Read", json!({"file_path": path(file).display().to_string()}));
    let script = Script::new([
        read("latin.md"),
        write(&world, "latin.md", &memory("caf\u{e9}", "now otherwise")),
        Step::text("Done."),
    ]);
    std::fs::create_dir_all(memory_dir(&world)).unwrap();
    std::fs::write(path("latin.md"), latin).unwrap();
    let world = world.then(script).await;
    assert_eq!(world.print(["remember"]).code, Some(0));
    let now = || std::fs::read(memory_dir(&world).join("latin.md")).unwrap();
    let written = now();
    assert!(String::from_utf8_lossy(&written).contains("now otherwise"), "{written:?}");
    assert!(written.windows(4).any(|it| it == b"caf\xe9"), "in the encoding that it had: {written:?}");
    let undo = || {
        let last = journal(&world).len().to_string();
        assert_eq!(world.run(&loci().args(["memory", "undo", &last])).code, Some(0));
    };
    undo();
    assert_eq!(now(), latin);
    undo();
    assert_eq!(now(), written, "and that too");
}

/// What is too large for the book is changed all the same, and the model is told what that means.
#[tokio::test]
async fn oversized_memory_change_is_reported_as_not_journaled() {
    let world = World::new([]).await;
    let large = "x".repeat(1024 * 1024 + 1);
    let script = Script::new([write(&world, "large.md", &large), Step::text("Done.")]);
    let world = world.then(script).await;
    assert_eq!(world.print(["remember"]).code, Some(0));
    let answer = world.last_request().tool_results().remove(0);
    assert!(
        !answer.is_error
            && answer.text.contains(
                "not in the journal of memories: Failed to read memory: `large.md`: it is larger than 1 MiB"
            ),
        "{answer:?}"
    );
    assert_eq!(read(&world, "large.md"), large);
    assert_eq!(journal(&world).len(), 0);
}

#[tokio::test]
async fn a_full_index_is_written_and_answered_with_an_error() {
    let world = World::new([]).await;
    let lines = |n: usize| "- [a](a.md): b\n".repeat(n);
    let script = Script::new([
        write(&world, "MEMORY.md", &lines(190)),
        write(&world, "MEMORY.md", &lines(201)),
        Step::text("Done."),
    ]);
    let world = world.then(script).await;
    assert_eq!(world.print(["remember"]).code, Some(0));
    let answers: Vec<_> = world.requests()[1..].iter().map(|it| it.tool_results().remove(0)).collect();
    assert!(!answers[0].is_error && answers[0].text.contains("nearly full: 190 of 200"), "{answers:?}");
    assert!(answers[1].is_error && answers[1].text.contains("Shorten it now"), "{answers:?}");
    assert_eq!(read(&world, "MEMORY.md"), lines(201), "the write stands");
}

/// An agent that writes one memory with its line, and tries what it may not.
fn looking(world: &World, hold: Gate) -> Step {
    let dir = memory_dir(world).display().to_string();
    let outside = world.path("outside.md");
    Step::dynamic(move |request| {
        if !request.tool_results().is_empty() {
            return Step::text("Saved.");
        }
        let text = request.last_user_text();
        let dir = if text.contains("Write proposals") {
            text.split("one file each in ")
                .nth(1)
                .and_then(|rest| rest.split(", named").next())
                .unwrap()
                .to_owned()
        } else {
            dir.clone()
        };
        Step::call(
            "Write",
            json!({"file_path": format!("{dir}/small.md"), "content": memory("small", "one idea")}),
        )
        .tool("Write", json!({"file_path": outside, "content": "no"}))
        .tool("Bash", json!({"command": "touch outside.md"}))
        .wait_before_headers(hold.clone())
    })
}

fn long_answer() -> Step {
    Step::text("word ".repeat(1_200))
}

/// Invariant 1 of `docs/design/memory.md`.
#[tokio::test]
async fn memory_extraction_runs_beside_the_turn_and_is_awaited_at_exit() {
    let world = World::new([]).await;
    let hold = Gate::new();
    let script = Script::new([long_answer(), Step::text("Short."), Step::text("Last.")]);
    let world2 = looking(&world, hold.clone());
    let world = world.then(script.answer_when(world2, is_looking)).await;
    let mut session = world.start(&stream([]).env("LOCI_MEMORY_EXTRACTION", "1"));
    for _ in 0..2 {
        session.write_json(&user("go on"));
        session.wait_for_json(is_result);
        hold.reached().await;
    }
    assert!(!memory_dir(&world).join("small.md").exists(), "the agent is still held, the turns are over");
    hold.release();
    let output = session.finish();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(read(&world, "small.md").contains("one idea"), "waited for at the end");
    assert!(!world.home.project().join("outside.md").exists());
    let looked = world.requests().into_iter().filter(is_looking).count();
    assert_eq!(looked, 2, "two requests of one agent; a short turn is not worth another");
    assert_eq!(journal(&world)[0]["by"], "extraction");
}

#[tokio::test]
async fn extraction_is_skipped_after_the_model_wrote_memories() {
    let world = World::new([]).await;
    let script = Script::new([write(&world, "small.md", &memory("small", "x")), long_answer()]);
    let world = world.then(script).await;
    let mut session = world.start(&stream([]).env("LOCI_MEMORY_EXTRACTION", "1"));
    session.write_json(&user("remember"));
    session.wait_for_json(is_result);
    session.finish();
    assert_eq!(world.requests().iter().filter(|it| is_looking(it)).count(), 0);
}

/// Invariant 1 of `docs/design/memory.md`. It is asked with what the conversation's own requests begin with, so that the
/// cache serves it, and it comes to an end.
#[tokio::test]
async fn extraction_agent_shares_the_prefix_and_has_five_turns() {
    let world = World::new([]).await;
    remember(&world, "small.md", &memory("small", "one idea"));
    let path = memory_dir(&world).join("small.md").display().to_string();
    let restless = Step::dynamic(move |_| Step::call("Read", json!({"file_path": path, "limit": 3})));
    let script = Script::new([long_answer()]).answer_when(restless, is_looking);
    let world = world.then(script).await;
    let binary = print(["hi"]).env("LOCI_MEMORY_EXTRACTION", "1").env("ANTHROPIC_DEFAULT_HAIKU_MODEL", MODEL);
    let output = world.run(&binary);
    assert_eq!(output.code, Some(0), "{output:?}");
    let (looking, main): (Vec<Recorded>, Vec<Recorded>) = world.requests().into_iter().partition(is_looking);
    assert_eq!((looking.len(), main.len()), (5, 1));
    for key in ["system", "tools", "model"] {
        assert_eq!(looking[0].json[key], main[0].json[key], "{key}");
    }
    let texts = |request: &Recorded| {
        let first = request.messages()[0]["content"].clone();
        [first[0]["text"].clone(), first[1]["text"].clone()]
    };
    assert_eq!(texts(&looking[0]), texts(&main[0]));
    let read = looking[1].tool_results().remove(0);
    assert!(
        !read.is_error && read.text.contains("name: small"),
        "a memory is read on demand, unasked: {read:?}"
    );
}

#[tokio::test]
async fn review_off_disables_extraction() {
    let world = World::new([long_answer()]).await;
    world.home.write_config("settings.json", r#"{"memoryReview": "off"}"#);
    assert_eq!(world.run(&print(["hi"]).env("LOCI_MEMORY_EXTRACTION", "1")).code, Some(0));
    assert_eq!(world.requests().len(), 1);
}

/// The index says what there is; what a memory says is read when it is needed.
#[tokio::test]
async fn memory_files_are_read_on_demand() {
    let world = World::new([]).await;
    let path = memory_dir(&world).join("small.md").display().to_string();
    let script = Script::new([Step::call("Read", json!({"file_path": path})), Step::text("Known.")]);
    let world = world.then(script).await;
    remember(&world, "MEMORY.md", "- [small](small.md): one idea\n");
    remember(&world, "small.md", &memory("small", "one idea").replace("Text.", "Said in full."));
    assert_eq!(world.print(["hi"]).code, Some(0));
    let requests = world.requests();
    let first = requests[0].json.to_string();
    assert!(first.contains("one idea") && !first.contains("Said in full."), "{first}");
    let read = requests[1].tool_results().remove(0);
    assert!(!read.is_error && read.text.contains("Said in full."), "{read:?}");
}

/// In mode `plan` nothing is written, so nothing is looked for either.
#[tokio::test]
async fn extraction_is_skipped_in_plan_mode() {
    let world = World::new([long_answer()]).await;
    let binary = print(["hi", "--permission-mode", "plan"]).env("LOCI_MEMORY_EXTRACTION", "1");
    assert_eq!(world.run(&binary).code, Some(0));
    assert_eq!(world.requests().len(), 1);
}

/// What was asked for by name is waited for, behind the result and never before it.
#[tokio::test]
async fn result_of_a_single_prompt_comes_before_the_wait_for_extraction() {
    let world = World::new([]).await;
    let hold = Gate::new();
    let step = looking(&world, hold.clone());
    let world = world.then(Script::new([long_answer()]).answer_when(step, is_looking)).await;
    let mut session = world.start_closed(&watched(["hi"]).env("LOCI_MEMORY_EXTRACTION", "1"));
    session.wait_for_json(is_result);
    hold.reached().await;
    assert!(!memory_dir(&world).join("small.md").exists(), "the agent is still held");
    hold.release();
    let output = session.finish();
    assert_eq!((output.code, output.stderr.as_str()), (Some(0), ""));
    assert!(read(&world, "small.md").contains("one idea"));
}

/// A model that never answers does not keep the process, whether or not somebody waits for it.
#[tokio::test]
async fn extraction_that_was_asked_for_delays_no_exit_and_is_reported_when_given_up() {
    for wait in ["", "50"] {
        let world = World::new([]).await;
        let never = Gate::new();
        let step = looking(&world, never.clone());
        let world = world.then(Script::new([long_answer()]).answer_when(step, is_looking)).await;
        let binary = print(["hi"]).env("LOCI_MEMORY_EXTRACTION", "1").env("LOCI_DRAIN_MS", wait);
        let output = world.run(&binary);
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stderr.contains("LOCI_DRAIN_MS=10000"), "{output:?}");
        assert!(!memory_dir(&world).join("small.md").exists());
    }
}

/// Invariant 9 of `docs/design/memory.md`.
#[tokio::test]
async fn review_first_keeps_extracted_memories_pending() {
    let world = World::new([]).await;
    world.home.write_config("settings.json", r#"{"memoryReview": "review-first"}"#);
    let open = Gate::new();
    open.release();
    let step = looking(&world, open);
    let mine = write(&world, "mine.md", &memory("mine", "unasked"));
    let script = Script::new([mine, long_answer()]).answer_when(step, is_looking);
    let world = world.then(script).await;
    let output = world.run(&print(["hi"]).env("LOCI_MEMORY_EXTRACTION", "1"));
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!memory_dir(&world).exists(), "neither the model nor the agent has written a memory");
    let run = |args: &[&str]| {
        let output = world.run(&loci().arg("memory").args(args.iter().copied()));
        assert_eq!(output.code, Some(0), "{args:?} {output:?}");
        output.stdout
    };
    let review = run(&["review"]);
    assert!(review.contains("== small.md (small) is new") && review.contains("by extraction"), "{review}");
    run(&["accept", "small"]);
    assert!(read(&world, "small.md").contains("one idea"));
    assert_eq!(read(&world, "MEMORY.md"), "- [small](small.md): one idea\n");
    assert_eq!(run(&["review"]), "Nothing waits for your word\n");
    run(&["undo"]);
    assert_eq!((read(&world, "small.md"), read(&world, "MEMORY.md")), (String::new(), String::new()));
    assert!(run(&["review"]).contains("small.md"));
    run(&["reject", "--all"]);
    assert_eq!(run(&["review"]), "Nothing waits for your word\n");
}

#[tokio::test]
async fn bare_runs_have_three_tools_and_no_memories() {
    let tell = Step::call("Bash", json!({"command": "printenv CLAUDE_CODE_SIMPLE"}));
    let world = World::new([tell, Step::text("ok")]).await;
    remember(&world, "MEMORY.md", "- [a](a.md): b\n");
    world.home.write("CLAUDE.md", "Be terse.");
    assert_eq!(world.print(["--bare", "hi", "--allowedTools", "Bash(printenv *)"]).code, Some(0));
    let request = world.last_request();
    assert_eq!(request.tool_names(), ["Bash", "Edit", "Read"]);
    assert_eq!(request.tool_results()[0].text.trim(), "1", "and so are its children");
    let all = request.json.to_string();
    assert!(!all.contains("Be terse") && !all.contains("a.md"), "{all}");
}
