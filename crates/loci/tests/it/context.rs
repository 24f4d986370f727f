//! `loci context show` against what is really sent.

use expect_test::expect;
use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{MODEL, World, assert_fine, loci, print};

fn show(world: &World, flags: &[&str]) -> String {
    let output = world.run(&loci().args(["context", "show"]).args(flags.iter().copied()));
    assert_fine(&output);
    output.stdout
}

async fn prepared() -> World {
    let world = World::with_git(Step::text("hi")).await;
    world.home.write("CLAUDE.md", "<!-- c -->\nTop rules. @docs/a.md\n");
    world.home.write("docs/a.md", "Imported rules.");
    world.home.write(".claude/rules/ts.md", "---\npaths: src/*.ts\n---\nLater.");
    world.home.write_config("CLAUDE.md", "My rules.");
    world.home.write_config("settings.json", r#"{"permissions": {"deny": ["WebFetch", "Glob"]}}"#);
    world
}

#[tokio::test]
async fn context_show_matches_the_request() {
    let world = prepared().await;
    let flags = ["--model", MODEL, "--append-system-prompt", "Be brief."];
    let shown = show(&world, &[&["--json", "--"][..], &flags].concat());
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let fragments = shown["fragments"].as_array().unwrap();
    let of = |part: &str| -> Vec<&str> {
        let fragments = fragments.iter().filter(|fragment| fragment["part"] == part);
        fragments.map(|fragment| fragment["text"].as_str().unwrap()).collect()
    };
    assert_fine(&world.run(&print(["--append-system-prompt", "Be brief.", "hi"])));
    let sent = world.last_request().json;

    let system: Vec<&str> =
        sent["system"].as_array().unwrap().iter().map(|block| block["text"].as_str().unwrap()).collect();
    let (identity, rest) =
        of("system").split_first().map(|(first, rest)| (*first, rest.join("\n\n"))).unwrap();
    assert_eq!(system, [identity, &rest]);

    let tools: Vec<Value> = of("tools").iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    assert_eq!(sent["tools"], Value::from(tools));

    let context = sent["messages"][0]["content"][0]["text"].as_str().unwrap();
    let mut at = 0;
    let (frame, files) = of("firstMessage").split_last().map(|(last, rest)| (*last, rest.to_vec())).unwrap();
    for text in &files {
        at += context[at..].find(text).unwrap_or_else(|| panic!("{text} is not sent in its place"))
            + text.len();
    }
    let n_shown: usize = files.iter().map(|text| text.len()).sum::<usize>() + frame.len();
    assert_eq!(n_shown, context.len(), "every byte is accounted for");

    let sum: u64 = fragments.iter().map(|fragment| fragment["tokens"].as_u64().unwrap()).sum();
    assert_eq!(shown["tokens"], sum);
}

#[tokio::test]
async fn each_piece_has_its_source_size_and_reason() {
    let world = prepared().await;
    let shown =
        world.normaliser().text(&show(&world, &["--", "--system-prompt", "You test.", "--tools", "Read"]));
    let lines: Vec<String> = shown.lines().map(without_number).collect();
    expect![[r#"
        System prompt, about # tokens:
          #  identity  (built in; always)
          #  replacement  (--system-prompt; you asked for it)

        Tools, about # tokens:
          #  Read  (built in; on offer)

        Before the first prompt, about # tokens:
          #  <home>/.claude/CLAUDE.md  (yours, for all projects; read at the start)
          #  <project>/CLAUDE.md  (the project's; read at the start, comments and front matter left out)
          #  <project>/docs/a.md  (the project's; imported by <project>/CLAUDE.md)
          #  date and headings  (built in; always)

        Left out:
          Agent  (a tool that --tools, a rule or a setting takes away)
          Bash  (a tool that --tools, a rule or a setting takes away)
          Edit  (a tool that --tools, a rule or a setting takes away)
          Glob  (a tool that --tools, a rule or a setting takes away)
          Grep  (a tool that --tools, a rule or a setting takes away)
          ListAgents  (a tool that --tools, a rule or a setting takes away)
          NotebookEdit  (a tool that --tools, a rule or a setting takes away)
          Recall  (a tool that --tools, a rule or a setting takes away)
          SendMessage  (a tool that --tools, a rule or a setting takes away)
          TaskCreate  (a tool that --tools, a rule or a setting takes away)
          TaskGet  (a tool that --tools, a rule or a setting takes away)
          TaskList  (a tool that --tools, a rule or a setting takes away)
          TaskOutput  (a tool that --tools, a rule or a setting takes away)
          TaskStop  (a tool that --tools, a rule or a setting takes away)
          TaskUpdate  (a tool that --tools, a rule or a setting takes away)
          Write  (a tool that --tools, a rule or a setting takes away)
          AskUserQuestion  (a tool that --tools, a rule or a setting takes away)
          EnterPlanMode  (a tool that --tools, a rule or a setting takes away)
          ExitPlanMode  (a tool that --tools, a rule or a setting takes away)
          TodoWrite  (a tool that --tools, a rule or a setting takes away)
          EnterWorktree  (a tool that --tools, a rule or a setting takes away)
          ExitWorktree  (a tool that --tools, a rule or a setting takes away)
          CronCreate  (a tool that --tools, a rule or a setting takes away)
          CronDelete  (a tool that --tools, a rule or a setting takes away)
          CronList  (a tool that --tools, a rule or a setting takes away)
          ScheduleWakeup  (a tool that --tools, a rule or a setting takes away)
          WebFetch  (a tool that --tools, a rule or a setting takes away)
          WebSearch  (a tool that --tools, a rule or a setting takes away)
          Monitor  (a tool that --tools, a rule or a setting takes away)
          <project>/.claude/rules/ts.md  (Waits until a file is read that fits src/*.ts)

        About # tokens in all, for claude-opus-5-5
        The window holds 1000000; it is compacted from # on. It is now: fine"#]]
    .assert_eq(&lines.join("\n"));
}

/// How full a session is has one figure, whoever says it: the last frame of a turn, and whoever looks later.
/// Invariant 22 of `docs/design/compaction.md`.
#[tokio::test]
async fn a_session_is_as_full_as_its_last_turn_said() {
    let read = Step::call("Read", json!({"file_path": "notes.txt"})).usage(10, 20, 30_000, 0);
    let steps = vec![read, Step::text("Nearly full.").usage(10, 20, 61_000, 0)];
    let world = World::new(steps).await;
    world.home.write("notes.txt", "port=9000\n");
    let windowed = |run: Binary| run.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "100000");
    let output = world.run(&windowed(print(["compare", "--output-format", "json"])));
    assert_eq!(output.code, Some(0), "{output:?}");
    let result: Value = serde_json::from_str(&output.stdout).unwrap();
    let said = &result["loci"]["context"];
    let show = |flags: [&str; 5]| {
        let output = world.run(&windowed(loci().args(["context", "show"]).args(flags)));
        assert_fine(&output);
        output.stdout
    };
    let shown: Value = serde_json::from_str(&show(["--json", "--", "-c", "--model", MODEL])).unwrap();
    assert_eq!((&said["level"], said["tokens"].as_u64().unwrap()), (&json!("warning"), 61_030));
    for (ours, theirs) in
        [("tokens", "tokens"), ("window", "window"), ("compactAt", "compact_at"), ("level", "level")]
    {
        assert_eq!(shown[ours], said[theirs], "{ours}");
    }
    assert_eq!(shown["session"], result["session_id"]);
    let text = show(["--", "-r", result["session_id"].as_str().unwrap(), "--model", MODEL]);
    assert!(text.contains("About 61030 tokens in all") && text.contains("It is now: warning"), "{text}");
    assert_eq!(world.requests().len(), 2, "nothing is sent to look");
}

#[tokio::test]
async fn context_show_refuses_unknown_flags() {
    let world = prepared().await;
    let output = world.run(&loci().args(["context", "show", "--", "--nonsense"]));
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("--nonsense"), "{output:?}");
}

/// Takes out the number of tokens, which changes with our own words and the machine's paths.
fn without_number(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.parse::<u64>() {
        Ok(_) => "#",
        Err(_) => word,
    });
    let line = words.collect::<Vec<_>>().join(" ");
    match line.trim_start().strip_prefix("#  ") {
        Some(rest) => format!("  #  {rest}"),
        None => line,
    }
}
