//! Skills and custom commands: typed by people, used by the model, and what either is sent.

mod bundled;
mod fields;
mod forked;
mod hostile;
mod met;
mod terminal;

use loci_testkit::{Binary, Step};
use serde_json::{Value, json};

use crate::support::{World, assert_fine, is_result, loci, print, stream, user};

/// What tells which files a program opens.
const STRACE: &str = "/usr/bin/strace";

/// Writes a skill of the user's.
fn skill(world: &World, name: &str, text: &str) {
    world.home.write_config(format!("skills/{name}/SKILL.md"), text);
}

/// Returns the texts of the last message of a request, those of skills without the line that says where they lie.
fn last_texts(request: &Value) -> Vec<String> {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let blocks = last["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| Some(said(block["text"].as_str()?).to_owned())).collect()
}

/// Returns what a skill says, without the line that says where it lies.
fn said(text: &str) -> &str {
    let rest = text.strip_prefix("This skill lies in ").and_then(|rest| rest.split_once("\n\n"));
    rest.map_or(text, |(_, said)| said)
}

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command, "description": "d"}))
}

fn result_of(output: &loci_testkit::Output) -> Value {
    output.json_lines().pop().unwrap()
}

#[tokio::test]
async fn typed_command_is_sent_as_tags_and_text_with_its_arguments() {
    let world = World::new(Step::text("done")).await;
    world
        .home
        .write(".claude/commands/front/fix.md", "---\narguments: file\n---\nFix $file ($1): $ARGUMENTS\n");
    assert_fine(&world.print(["/front:fix 'a b.rs' now"]));
    let texts = last_texts(&world.last_request().json);
    let tags = "<command-message>front:fix</command-message>\n<command-name>/front:fix</command-name>\n\
                <command-args>'a b.rs' now</command-args>";
    assert_eq!(texts[texts.len() - 2..], [tags, "Fix a b.rs (now): 'a b.rs' now"]);
    let queued = world.session().into_iter().find(|entry| entry["operation"] == "enqueue").unwrap();
    assert_eq!(queued["content"], "/front:fix 'a b.rs' now", "what was typed is what is shown");
}

#[tokio::test]
async fn commands_in_a_text_run_first_and_only_with_permission() {
    let world = World::new(Step::text("done")).await;
    skill(
        &world,
        "status",
        "---\nallowed-tools: Bash(touch made)\n---\nSaid !`echo $0`.\n```!\ntouch made; echo two\n```\nEnd.",
    );
    assert_fine(&world.print(["/status hello"]));
    let texts = last_texts(&world.last_request().json);
    assert_eq!(texts.last().map(String::as_str), Some("Said hello.\ntwo\nEnd."));
    assert!(world.home.project().join("made").exists());

    let world = World::new(Step::text("never asked")).await;
    skill(&world, "status", "First !`echo x > early`, then !`touch made`.");
    let output = world.run(&print(["/status", "--output-format", "json"]));
    let said = result_of(&output)["result"].as_str().unwrap().to_owned();
    assert!(said.contains("may not run without a question"), "{said}");
    assert!(world.model.requests().is_empty(), "nothing was sent");
    assert!(!world.home.project().join("early").exists(), "none runs unless all may");
}

#[tokio::test]
async fn argument_is_never_a_command() {
    let world = World::new(Step::text("done")).await;
    skill(&world, "say", "---\nallowed-tools: Bash\n---\nSay $ARGUMENTS");
    assert_fine(&world.print(["/say !`touch made`"]));
    assert_eq!(last_texts(&world.last_request().json).last().map(String::as_str), Some("Say ! `touch made`"));
    assert!(!world.home.project().join("made").exists());
}

#[tokio::test]
async fn failing_command_sends_nothing_and_switch_runs_none() {
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "bad", "---\nallowed-tools: Bash\n---\n!`exit 3`");
    let output = world.run(&print(["/bad", "--output-format", "json"]));
    assert!(result_of(&output)["result"].as_str().unwrap().contains("Exit code 3"), "{output:?}");
    assert!(world.model.requests().is_empty());

    let world = world.then(Step::text("done")).await;
    world.home.write_config("settings.json", r#"{"disableSkillShellExecution": true}"#);
    assert_fine(&world.print(["/bad"]));
    assert!(last_texts(&world.last_request().json).last().unwrap().contains("disableSkillShellExecution"));
}

#[tokio::test]
async fn stacked_skills_share_what_follows() {
    let world = World::new(Step::text("done")).await;
    skill(&world, "one", "One: $ARGUMENTS");
    skill(&world, "two", "Two: $0");
    assert_fine(&world.print(["/one /two /none it"]));
    let texts = last_texts(&world.last_request().json);
    let bodies: Vec<_> = texts.iter().filter(|text| !text.starts_with('<')).collect();
    assert_eq!(bodies, ["One: /none it", "Two: /none"]);
}

#[tokio::test]
async fn grants_of_a_typed_skill_hold_for_its_turn_alone() {
    let script = [bash("touch one"), Step::text("done"), bash("touch two"), Step::text("done")];
    let world = World::new(script).await;
    skill(&world, "make", "---\nallowed-tools: Bash(touch *)\nmodel: claude-haiku-4-5\n---\nMake it.");
    let mut session = world.start(&stream([]));
    for prompt in ["/make", "again"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    let project = world.home.project();
    assert_eq!([project.join("one").exists(), project.join("two").exists()], [true, false]);
    let models: Vec<_> =
        world.requests().iter().map(|it| it.json["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models[..2], ["claude-haiku-4-5"; 2]);
    assert_eq!(models[2..], [crate::support::MODEL; 2]);
}

#[tokio::test]
async fn grants_and_hooks_of_an_untrusted_folder_do_not_count() {
    let world = World::new([bash("touch made"), Step::text("done")]).await;
    world.home.write(".claude/skills/make/SKILL.md", "---\nallowed-tools: Bash(*)\n---\nMake it.");
    world.print(["/make"]);
    assert!(!world.home.project().join("made").exists());
}

#[tokio::test]
async fn model_is_told_of_skills_and_reads_the_text_of_one_it_uses() {
    let script = [Step::call("Skill", json!({"skill": "ship", "args": "v2"})), Step::text("done")];
    let world = World::new(script).await;
    skill(&world, "ship", "---\ndescription: Ships the build\n---\nShip $0.");
    skill(&world, "secret", "---\ndescription: Only people\ndisable-model-invocation: true\n---\nx");
    assert_fine(&world.print(["go"]));
    let requests = world.requests();
    let first = requests[0].json["messages"].to_string();
    assert!(first.contains("- ship: Ships the build") && !first.contains("Only people"), "{first}");
    assert_eq!(last_texts(&requests[1].json).last().map(String::as_str), Some("Ship v2."));
    let meta = world.session().into_iter().find(|entry| entry.get("sourceToolUseID").is_some()).unwrap();
    let text = meta["message"]["content"][0]["text"].as_str().unwrap();
    assert_eq!((&meta["isMeta"], said(text)), (&json!(true), "Ship v2."));

    // It is told once, and a resumed session sends the same.
    let world = world.then(Step::text("done")).await;
    assert_fine(&world.print(["-c", "again"]));
    let resumed = world.last_request().json["messages"].to_string();
    assert_eq!(resumed.matches("- ship: Ships the build").count(), 1);
    assert_eq!(resumed.matches("Ship v2.").count(), 1);
}

#[tokio::test]
async fn skill_beside_another_call_comes_behind_both_results() {
    let both = Step::new()
        .tool("Skill", json!({"skill": "ship"}))
        .tool("Bash", json!({"command": "echo hi", "description": "d"}));
    let world = World::new([both, Step::text("done")]).await;
    skill(&world, "ship", "Ship it.");
    assert_fine(&world.print(["go"]));
    let last = world.last_request();
    assert_eq!(last.tool_results().len(), 2);
    assert!(last_texts(&last.json).contains(&"Ship it.".to_owned()));
}

#[tokio::test]
async fn skill_that_grants_asks_and_its_grants_hold_when_a_rule_allows_it() {
    for (flags, is_made) in [(&["go"][..], false), (&["--allowedTools", "Skill(make)", "--", "go"], true)] {
        let script = [Step::call("Skill", json!({"skill": "make"})), bash("touch made"), Step::text("done")];
        let world = World::new(script).await;
        skill(&world, "make", "---\nallowed-tools: Bash(touch *)\n---\nMake it.");
        world.run(&print([]).args(flags.iter().copied()));
        assert_eq!(world.home.project().join("made").exists(), is_made, "{flags:?}");
    }
}

#[tokio::test]
async fn new_skill_is_told_at_the_next_prompt_without_touching_what_was_sent() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let mut session = world.start(&stream([]));
    session.write_json(&user("first"));
    session.wait_for_json(is_result);
    skill(&world, "late", "---\ndescription: Came later\n---\nx");
    session.write_json(&user("second"));
    session.wait_for_json(is_result);
    session.finish();
    let requests = world.requests();
    let names = |request: &Value| {
        request["tools"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect::<Vec<_>>()
    };
    let (before, after) = (names(&requests[0].json), names(&requests[1].json));
    assert!(!before.contains(&json!("Skill")) && after.last() == Some(&json!("Skill")));
    assert_eq!(before[..], after[..before.len()], "the tools that were there keep their places");
    assert!(requests[1].json["messages"].to_string().contains("- late: Came later"));
}

#[tokio::test]
async fn clients_see_commands_of_every_place() {
    let world = World::new(Step::text("done")).await;
    skill(&world, "ship", "---\ndescription: Ships\n---\nx");
    world.home.write(".claude/commands/clear.md", "imitates a command of the program");
    let output = world.run(&print(["go", "--output-format", "stream-json", "--verbose"]));
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    let commands: Vec<_> =
        init["slash_commands"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for name in ["clear", "compact", "ship", "init", "code-review"] {
        assert_eq!(commands.iter().filter(|it| **it == name).count(), 1, "{name} in {commands:?}");
    }
    let bare = world.then(Step::text("done")).await;
    let output = bare.run(&print(["go", "--bare", "--output-format", "stream-json", "--verbose"]));
    let init = output.json_lines().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert!(!init["slash_commands"].to_string().contains("ship"));
}

#[tokio::test]
async fn hooks_may_refuse_an_expansion_and_a_skill_brings_its_own() {
    let refuse = json!({"hooks": {"UserPromptExpansion": [{"matcher": "ship", "hooks": [
        {"type": "command", "command": "echo not today >&2; exit 2"}]}]}});
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "ship", "Ship it.");
    world.home.write_config("settings.json", refuse.to_string());
    let output = world.run(&print(["/ship", "--output-format", "json"]));
    assert!(result_of(&output)["result"].as_str().unwrap().contains("not today"), "{output:?}");
    assert!(world.model.requests().is_empty());

    let world = World::new([bash("touch made"), Step::text("done")]).await;
    let hooks = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          command: exit 2";
    skill(&world, "careful", &format!("---\nallowed-tools: Bash\n{hooks}\n---\nBe careful."));
    world.print(["/careful"]);
    assert!(!world.home.project().join("made").exists(), "the skill's own hook denies");
}

#[tokio::test]
async fn used_skill_comes_back_after_a_compaction_to_look_at() {
    let world =
        World::new([Step::text("done"), Step::text("two"), Step::text("SUMMARY"), Step::text("after")]).await;
    skill(&world, "ship", "Ship the WHALE.");
    let mut session = world.start(&stream([]));
    for prompt in ["/ship", "more", "/compact", "go on"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    let last = world.last_request().json["messages"].to_string();
    assert!(last.contains("Ship the WHALE.") && last.contains("not to run again"), "{last}");
}

#[tokio::test]
async fn list_says_where_skills_come_from_who_may_use_them_and_what_hides_another() {
    let world = World::new(Step::text("never asked")).await;
    skill(&world, "ship", "---\ndescription: Ships\nfuture: 1\n---\nx");
    world.home.write(".claude/skills/ship/SKILL.md", "hidden");
    world.home.write(".claude/skills/loose/SKILL.md", "---\nallowed-tools: Bash\n---\nx");
    world.home.write(".claude/commands/clear.md", "Clears.");
    world.home.write(".claude/commands/help.md", "Helps.");
    world.home.write_config("settings.json", r#"{"skillOverrides": {"verify": "off"}}"#);
    let output = world.run(&loci().args(["skills", "list"]));
    assert_fine(&output);
    for part in [
        "/ship  Ships\n    people and the model",
        "! `future` has no meaning here",
        "! `allowed-tools` wait until this folder is trusted",
        "nobody: skillOverrides turns it off",
        "! `/clear` is a command of loci: people cannot type this one",
        "! at a terminal `/help` is a command of loci; this one is typed only without one",
        "is hidden by that of",
    ] {
        assert!(output.stdout.contains(part), "{part:?} in {}", output.stdout);
    }
    let listed = world.run(&loci().args(["skills", "list", "--json"]));
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["hidden"][0]["name"], "ship");
    let shown = world.run(&loci().args(["skills", "show", "/ship"])).stdout;
    for part in ["description: Ships", "costs: about ", "hides that of "] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    let unknown = world.run(&loci().args(["skills", "show", "nothing"]));
    assert!(unknown.code == Some(1) && unknown.stderr.contains("loci skills list"), "{unknown:?}");
}

#[tokio::test]
async fn output_style_of_settings_is_told_and_an_unknown_one_is_named() {
    for (style, told, keeps_coding) in [
        ("Explanatory", "Output style: explanatory", true),
        ("Pirate", "Say arr.", false),
        ("Gone", "", true),
    ] {
        let world = World::new(Step::text("done")).await;
        world.home.write(".claude/output-styles/p.md", "---\nname: Pirate\n---\nSay arr.");
        world.home.write_config("settings.json", json!({"outputStyle": style}).to_string());
        let output = world.print(["go"]);
        let system = world.last_request().json["system"].to_string();
        assert!(system.contains(told) && system.contains("# Doing the work") == keeps_coding, "{style}");
        assert_eq!(output.stderr.contains("There is no output style `Gone`"), style == "Gone", "{output:?}");
    }
}

#[tokio::test]
async fn model_is_reminded_of_its_output_style_every_few_prompts() {
    for (style, expected) in [("Concise", 1), ("default", 0), ("Gone", 0)] {
        let world = World::new(loci_testkit::Script::repeat(Step::text("done"), 7)).await;
        world.home.write_config("settings.json", json!({"outputStyle": style}).to_string());
        let mut session = world.start(&stream([]));
        for n in 0..7 {
            session.write_json(&user(&format!("prompt {n}")));
            session.wait_for_json(is_result);
        }
        session.finish();
        let reminders: Vec<usize> = world
            .requests()
            .iter()
            .map(|it| it.json["messages"].to_string().matches("is in force").count())
            .collect();
        assert_eq!(reminders.last(), Some(&expected), "{style}: {reminders:?}");
        assert!(reminders[..5].iter().all(|n| *n == 0), "{style}: {reminders:?}");
    }
}

#[tokio::test]
async fn no_definition_is_read_twice() {
    if !std::path::Path::new(STRACE).exists() {
        eprintln!("skipped: there is no {STRACE}");
        return;
    }
    let world = World::new(Step::text("done")).await;
    for n in 0..20 {
        skill(&world, &format!("s{n}"), "---\ndescription: d\n---\nx");
    }
    world.home.write_config("agents/a.md", "---\nname: a\ndescription: d\n---\nx");
    world.home.write_config("output-styles/p.md", "---\nname: Pirate\n---\nSay arr.");
    world.home.write_config("settings.json", r#"{"outputStyle": "Pirate"}"#);
    for file in [".claude-plugin/plugin.json", "skills/one/SKILL.md", "agents/b.md", "hooks/hooks.json"] {
        let text = if file.ends_with("json") {
            "{\"name\": \"kit\"}"
        } else {
            "---\nname: b\ndescription: d\n---\nx"
        };
        world.home.write(format!("kit/{file}"), text);
    }
    let log = world.path("opened.log");
    let watched = Binary::new(STRACE)
        .args(["-f", "-qq", "-e", "trace=open,openat,openat2", "-o", &log, env!("CARGO_BIN_EXE_loci")])
        .args(["-p", "--model", crate::support::MODEL, "go", "--plugin-dir", "kit"]);
    let output = world.run(&watched);
    assert_eq!(output.code, Some(0), "{output:?}");
    let opened = world.home.read(&log);
    let is_definition = |line: &&str| {
        let is_file =
            ["SKILL.md\"", "agents/a.md\"", "agents/b.md\"", "p.md\"", "plugin.json\"", "hooks.json\""];
        !line.contains(" = -1 ") && is_file.iter().any(|file| line.contains(file))
    };
    let mut reads: Vec<&str> =
        opened.lines().filter(is_definition).filter_map(|line| line.split('"').nth(1)).collect();
    assert!(reads.len() >= 26, "{reads:?}");
    reads.sort_unstable();
    let twice: Vec<&&str> = reads.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| &pair[0]).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test]
async fn output_style_that_is_chosen_in_a_session_goes_to_the_local_file_and_counts_after_clear() {
    let world = World::new([Step::text("one"), Step::text("two")]).await;
    let mut session = world.start(&stream([]));
    for prompt in ["/config outputStyle=Learning", "first", "/clear", "second"] {
        session.write_json(&user(prompt));
        session.wait_for_json(is_result);
    }
    session.finish();
    assert!(world.home.read(".claude/settings.local.json").contains("\"Learning\""));
    assert!(!world.home.config_home().join("settings.json").exists());
    let has_style: Vec<bool> =
        world.requests().iter().map(|it| it.system_text().contains("Output style: learning")).collect();
    assert_eq!(has_style, [false, true]);
}
