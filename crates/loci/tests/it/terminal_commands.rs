//! Commands of the terminal interface that change where a session is, what it remembers, and what it is paid with.

use loci_testkit::{Screen, Step};
use serde_json::{Value, json};

use crate::support::{World, loci};

const SIZE: (u16, u16) = (100, 30);

/// Leaves by a command.
fn leave(mut screen: Screen) {
    screen.type_text("/exit\r");
    let end = screen.finish();
    assert!(end.is_cooked, "the terminal is given back: {end:?}");
    assert_eq!(end.output.code, Some(0), "{end:?}");
}

/// Says something and waits for the answer.
fn ask(screen: &mut Screen, text: &str, answer: &str) {
    screen.type_text(&format!("{text}\r"));
    screen.wait_until(answer, |seen| seen.contains(answer) && !seen.contains("esc to interrupt"));
}

fn write(file: &str, content: &str) -> Step {
    Step::call("Write", json!({"file_path": file, "content": content}))
}

#[tokio::test]
async fn session_moves_to_another_directory_with_all_that_was_said() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let other = world.home.project().with_file_name("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("CLAUDE.md"), "Speak of otters.").unwrap();
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "first", "One.");
    screen.type_text("/cd ../nowhere\r");
    screen.wait_for("The session cannot move to");
    screen.type_text("/cd ../other\r");
    screen.wait_for("Do you trust the files in this folder?");
    screen.type_text("1");
    screen.wait_for("other");
    screen.wait_for("for shortcuts");
    ask(&mut screen, "second", "Two.");
    leave(screen);
    let request = world.last_request().json;
    assert_eq!(request["messages"].as_array().unwrap().len(), 3, "{request}");
    assert!(request.to_string().contains("Speak of otters."), "the directory's own instructions count");
    let list = |cwd: &std::path::Path| world.run(&loci().args(["sessions", "list"]).cwd(cwd)).stdout;
    assert!(list(&other).contains("first"), "{}", list(&other));
    assert!(!list(&world.home.project()).contains("first"), "{}", list(&world.home.project()));
}

#[tokio::test]
async fn cd_rule_forbids_a_directory() {
    let world = World::new([]).await;
    let settings = json!({"permissions": {"deny": ["Cd(//tmp/**)", "Cd(//tmp)"]}});
    world.home.write_config("settings.json", settings.to_string());
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/cd /tmp\r");
    screen.wait_for("Cd(//tmp");
    leave(screen);
}

#[tokio::test]
async fn summary_takes_the_place_of_what_came_after_a_prompt() {
    let world = World::new([
        Step::text("Alpha said."),
        Step::text("Beta said."),
        Step::text("SUMMARY: beta was tried."),
        Step::text("Gamma said."),
    ])
    .await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "about alpha", "Alpha said.");
    ask(&mut screen, "about beta", "Beta said.");
    screen.type_text("/rewind\r");
    screen.wait_for("❯ ");
    screen.wait_for("about beta");
    screen.type_text("\r");
    screen.wait_for("4. Summarise from here");
    screen.type_text("4");
    screen.wait_for("Above all (optional):");
    screen.type_text("the port\r");
    screen.wait_for("is a summary now");
    screen.wait_for("> about beta");
    screen.type_text("\x15");
    ask(&mut screen, "about gamma", "Gamma said.");
    leave(screen);
    let asked = world.requests()[2].json["messages"].to_string();
    assert!(asked.contains("Pay attention to this above all") && asked.contains("the port"), "{asked}");
    let messages = world.last_request().json["messages"].to_string();
    for (text, is_there) in [
        ("about alpha", true),
        ("SUMMARY: beta was tried.", true),
        ("Beta said.", false),
        ("about gamma", true),
    ] {
        assert_eq!(messages.contains(text), is_there, "{text}: {messages}");
    }
}

#[tokio::test]
async fn summary_takes_the_place_of_what_came_before_a_prompt() {
    let world = World::new([
        Step::text("Alpha said."),
        Step::text("Beta said."),
        Step::text("Delta said."),
        Step::text("<summary>SUMMARY: alpha was tried.</summary>"),
        Step::text("Gamma said."),
    ])
    .await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "about alpha", "Alpha said.");
    ask(&mut screen, "about beta", "Beta said.");
    ask(&mut screen, "about delta", "Delta said.");
    screen.type_text("/rewind\r");
    screen.wait_until("the prompts", |seen| seen.lines().any(|line| line.starts_with('❯')));
    screen.type_text("\x1b[B");
    screen.wait_until("the second prompt is marked", |seen| {
        seen.lines().any(|line| line.contains('❯') && line.contains("about beta"))
    });
    screen.type_text("\r");
    screen.wait_for("5. Summarise up to here");
    screen.type_text("5");
    screen.wait_for("Above all (optional):");
    screen.type_text("the port\r");
    screen.wait_for("Compacted");
    ask(&mut screen, "about gamma", "Gamma said.");
    leave(screen);
    let asked = world.requests()[3].json["messages"].to_string();
    assert!(asked.contains("the port") && !asked.contains("Beta said."), "{asked}");
    let messages = world.last_request().json["messages"].to_string();
    for (text, is_there) in [
        ("SUMMARY: alpha was tried.", true),
        ("Alpha said.", false),
        ("Beta said.", true),
        ("Delta said.", true),
        ("about gamma", true),
    ] {
        assert_eq!(messages.contains(text), is_there, "{text}: {messages}");
    }
}

#[tokio::test]
async fn changes_are_shown_by_turn() {
    let world = World::with_git([write("a.txt", "one\n"), Step::text("Made.")]).await;
    let mut screen = world.start_interface(["--permission-mode", "acceptEdits"], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "make a file", "Made.");
    screen.type_text("/diff\r");
    screen.wait_for("Changes since the last commit");
    screen.wait_for("by turn");
    screen.type_text("\x1b[C");
    screen.wait_for("make a file");
    screen.wait_for("❯ a.txt  +1 -0");
    screen.type_text("\r");
    screen.wait_for("+one");
    screen.type_text("\x1b");
    screen.wait_for("Esc close");
    screen.type_text("\x1b");
    screen.wait_gone("Esc close");
    leave(screen);
}

#[tokio::test]
async fn memory_is_added_edited_and_taken_back() {
    let world = World::new([]).await;
    let script = world.home.write("editor.sh", "#!/bin/sh\nprintf 'The port is 9.\\n' > \"$1\"\n");
    let editor = format!("sh {}", script.display());
    let mut screen = world.start_interface_with([], &[("EDITOR", &editor), ("VISUAL", "")], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/memory\r");
    screen.wait_for("~/.claude/CLAUDE.md  user, does not exist yet");
    screen.wait_for("Enter make it and edit");
    screen.type_text("\r");
    screen.wait_for("~/.claude/CLAUDE.md  user, not in force");
    let made = std::fs::read_to_string(world.home.config_home().join("CLAUDE.md")).unwrap();
    assert_eq!(made, "The port is 9.\n");
    screen.type_text("\t");
    screen.wait_for("n new");
    screen.type_text("n");
    screen.wait_for("Remember:");
    screen.type_text("The port is 8080.\r");
    screen.wait_for("`the-port-is-8080.md` is kept · u takes it back");
    screen.type_text("e");
    screen.wait_for("`the-port-is-8080.md` is changed · u takes it back");
    screen.type_text("\r");
    screen.wait_for("The port is 9.");
    screen.type_text("\x1b");
    screen.wait_gone("The port is 9.");
    screen.type_text("xx");
    screen.wait_for("`the-port-is-8080.md` is forgotten · u takes it back");
    screen.type_text("u");
    screen.wait_for("The change is taken back");
    screen.wait_for("❯ the-port-is-8080.md");
    screen.type_text("\x1b");
    screen.wait_gone("Tab next tab");
    leave(screen);
}

#[tokio::test]
async fn model_that_is_named_while_the_cache_is_warm_waits_for_a_word() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "hi", "One.");
    screen.type_text("/model haiku\r");
    screen.wait_for("Enter again to switch");
    screen.type_text("\x1b");
    screen.type_text("\x1b");
    screen.wait_gone("Enter again");
    screen.type_text("/model haiku\r");
    screen.wait_for("Enter again to switch");
    screen.type_text("\r");
    screen.wait_for("The model is claude-haiku-5-5 now");
    ask(&mut screen, "again", "Two.");
    assert_eq!(world.last_request().json["model"], "claude-haiku-5-5");
    leave(screen);
}

#[tokio::test]
async fn recap_is_said_and_not_recorded() {
    let world = World::new([Step::text("Done."), Step::text("You are fixing the port.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "fix the port", "Done.");
    screen.type_text("/recap\r");
    screen.wait_for("Recap: You are fixing the port.");
    leave(screen);
    let transcript: String = world.session().iter().map(ToString::to_string).collect();
    assert!(!transcript.contains("You are fixing"), "nothing of it is recorded");
}

#[tokio::test]
async fn key_of_the_environment_is_asked_about_once() {
    let world = World::new([]).await;
    let project = world.home.project().display().to_string();
    let state = json!({"projects": {project: {"hasTrustDialogAccepted": true}}});
    world.home.write_home(".claude.json", state.to_string());
    let start = || loci().start_screen(&world.home, world.model.base_url(), SIZE);
    let mut screen = start();
    screen.wait_for("it ends in …test");
    screen.type_text("2");
    screen.wait_gone("Use the API key");
    screen.wait_for("for shortcuts");
    leave(screen);
    let kept = || -> Value {
        serde_json::from_str(&std::fs::read_to_string(world.home.home().join(".claude.json")).unwrap())
            .unwrap()
    };
    assert_eq!(kept()["customApiKeyResponses"]["rejected"], json!(["sk-ant-test"]));
    world.home.write_home(".claude.json", state.to_string());
    let mut screen = start();
    screen.wait_for("Use the API key of the environment?");
    screen.type_text("1");
    screen.wait_for("for shortcuts");
    leave(screen);
    assert_eq!(kept()["customApiKeyResponses"]["approved"], json!(["sk-ant-test"]));
    let mut screen = start();
    screen.wait_for("for shortcuts");
    assert!(!screen.contents().contains("Use the API key"), "once is enough");
    leave(screen);
}

#[tokio::test]
async fn plugins_that_stay_as_they_are_are_told_once_until_they_are_read_anew() {
    let answers = ["Zero.", "One.", "Two.", "Three."];
    let world = World::new(answers.map(Step::text)).await;
    let mut screen = world.start_interface([], (100, 60));
    screen.wait_for("for shortcuts");
    let told = |contents: &str| contents.matches("plugins stay as they are").count();
    ask(&mut screen, "prompt 0", answers[0]);
    for (idx, answer) in answers.into_iter().enumerate().skip(1) {
        if idx == 3 {
            screen.type_text("/reload-plugins\r");
            screen.wait_for("0 plugins, 0 skills");
        }
        let settings = json!({"enabledPlugins": {format!("p{idx}@market"): false}});
        world.home.write_config("settings.json", settings.to_string());
        ask(&mut screen, &format!("prompt {idx}"), answer);
        let contents = screen.contents();
        assert_eq!(told(&contents), if idx < 3 { 1 } else { 2 }, "{contents}");
    }
    leave(screen);
}

#[tokio::test]
async fn settings_of_the_interface_count_at_once_and_changes_are_told_on_the_screen() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "first", "One.");
    screen.wait_for("· ↓");
    screen.type_text("/config showTurnDuration=false\r");
    screen.wait_for("Set showTurnDuration");
    let settings = json!({"showTurnDuration": false, "permissions": {"deny": ["WebFetch"]}});
    world.home.write_config("settings.json", settings.to_string());
    ask(&mut screen, "second", "Two.");
    let contents = screen.wait_for("Settings changed: the permission rules are now those of the files");
    assert_eq!(contents.matches("· ↓").count(), 1, "{contents}");
    leave(screen);
}
