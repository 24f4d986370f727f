//! Hooks before a screen: what waits for trust, and what reaches the terminal.

use loci_testkit::{Screen, Step};
use serde_json::json;

use super::changes::wait_for_kept;
use super::{KEEP, answering, command, configure, specific};
use crate::settings::trust;
use crate::support::{MODEL, World, is_result, loci, stream, user};

const SIZE: (u16, u16) = (100, 30);

fn leave(mut screen: Screen) -> loci_testkit::ScreenEnd {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    screen.finish()
}

/// The state of somebody who has said that the key of the environment may be used.
fn approved_key() -> serde_json::Value {
    json!({"customApiKeyResponses": {"approved": ["sk-ant-test"]}})
}

/// H-8: not even the user's own hooks run in a folder that nobody has said a word about.
#[tokio::test]
async fn no_hook_runs_at_a_terminal_before_the_folder_is_trusted() {
    let world = World::new(Step::text("Hello to you.")).await;
    configure(&world, json!({"SessionStart": command("", "touch user-start")}));
    let project = json!({"hooks": {"UserPromptSubmit": command("", "touch project-prompt")}});
    world.home.write(".claude/settings.json", project.to_string());
    world.home.write_home(".claude.json", approved_key().to_string());
    let made = |name: &str| world.home.project().join(name).exists();
    let start = || {
        let binary = loci().args(["--model", MODEL]);
        binary.start_screen(&world.home, world.model.base_url(), SIZE)
    };
    let mut screen = start();
    screen.wait_for("2. No, leave");
    screen.type_text("2");
    screen.finish();
    assert!(!made("user-start") && !made("project-prompt"), "a no runs nothing");

    let mut screen = start();
    screen.wait_for("2. No, leave");
    assert!(!made("user-start"));
    screen.type_text("1");
    screen.wait_for("for shortcuts");
    screen.type_text("hi\r");
    screen.wait_for("Hello to you.");
    assert!(made("user-start") && made("project-prompt"), "from the yes on both count");
    leave(screen);
}

#[tokio::test]
async fn worktree_at_a_terminal_needs_a_folder_that_is_trusted() {
    let world = World::with_git(Step::text("x")).await;
    configure(&world, json!({"WorktreeCreate": command("", "touch made-by-hook; pwd")}));
    let binary = loci().args(["--worktree", "calm"]);
    let end = binary.start_screen(&world.home, world.model.base_url(), SIZE).finish();
    assert_eq!(end.output.code, Some(1), "{end:?}");
    assert!(end.contents.contains("loci config trust"), "{}", end.contents);
    assert!(!world.home.project().join("made-by-hook").exists());
    assert!(!world.home.project().join(".claude/worktrees").exists());
}

/// Trust that comes while a session runs counts from the next prompt on.
#[tokio::test]
async fn hooks_of_a_folder_count_as_soon_as_it_is_trusted() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let hooks = json!({"hooks": {"UserPromptSubmit": command("", "echo x >> prompts")}});
    world.home.write(".claude/settings.json", hooks.to_string());
    let mut session = world.start(&stream([]));
    session.write_json(&user("one"));
    session.wait_for_json(is_result);
    assert!(!world.home.project().join("prompts").exists());
    trust(&world);
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    assert_eq!(world.home.read("prompts"), "x\n");
    session.close_stdin();
    session.finish();
}

#[tokio::test]
async fn terminal_sequence_of_a_hook_reaches_the_terminal_and_one_with_more_in_it_does_not() {
    let world = World::new(Step::text("Hello to you.")).await;
    let title = json!({"terminalSequence": "\u{1b}]0;busy with it\u{7}"});
    let sweep = json!({"terminalSequence": "\u{1b}]0;swept\u{7}\u{1b}[2J"});
    configure(&world, json!({"UserPromptSubmit": answering("", &title), "Stop": answering("", &sweep)}));
    let mut screen = world.start_interface(["hi"], SIZE);
    screen.wait_for("Hello to you.");
    screen.wait_for("holds more than titles");
    let end = leave(screen);
    let written = end.output.stderr;
    assert!(written.contains("\u{1b}]0;busy with it\u{7}"), "{written:?}");
    assert!(!written.contains("\u{1b}]0;swept"), "{written:?}");
}

#[tokio::test]
async fn hook_that_fails_or_objects_is_told_once_at_the_terminal() {
    // The command itself is named beside what it says.
    let fails = "printf 'oh %s' dear >&2; exit 1";
    let objects = "[ -e gone-on ] || { touch gone-on; printf 'not %s' yet >&2; exit 2; }";
    let failing = |event: &str| json!({event: command("", fails)});
    let objecting = |event: &str| json!({event: command("", objects)});
    let beside = json!({"Stop": [{"hooks": [{"type": "command", "async": true, "command": fails}]}]});
    for (hooks, told) in [
        (failing("Stop"), "oh dear"),
        (failing("UserPromptSubmit"), "oh dear"),
        (failing("PostToolUse"), "oh dear"),
        (objecting("Stop"), "not yet"),
        (objecting("PostToolUse"), "not yet"),
        (beside, "oh dear"),
    ] {
        let read = Step::call("Read", json!({"file_path": "README.md"}));
        let world = World::new([read, Step::text("Done."), Step::text("Done again.")]).await;
        world.home.write("README.md", "# Hello\n");
        configure(&world, hooks.clone());
        let mut screen = world.start_interface(["go"], SIZE);
        screen.wait_for("Done");
        screen.wait_for(told);
        screen.wait_for("tokens");
        let end = leave(screen);
        assert_eq!(end.contents.matches(told).count(), 1, "{hooks}: {}", end.contents);
    }
}

#[tokio::test]
async fn display_content_is_what_the_screen_shows() {
    let world = World::new(Step::text("The key is sk-1234.")).await;
    let shown = specific("MessageDisplay", json!({"displayContent": "The key is [redacted]."}));
    configure(&world, json!({"MessageDisplay": answering("", &shown)}));
    let mut screen = world.start_interface(["hi"], SIZE);
    let contents = screen.wait_for("The key is [redacted].");
    assert!(!contents.contains("sk-1234"), "{contents}");
    let end = leave(screen);
    assert!(!end.output.stderr.contains("sk-1234"), "not for a moment: {:?}", end.output.stderr);
}

#[tokio::test]
async fn question_that_waits_at_the_terminal_is_notified() {
    let call = Step::call("Bash", json!({"command": "touch made", "description": "Do it"}));
    let world = World::new([call]).await;
    configure(&world, json!({"Notification": command("permission_prompt", KEEP)}));
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("3. No");
    let told = wait_for_kept(&world, 1);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["message"], "loci needs your permission to use Bash");
    screen.type_text("\x1b");
    screen.wait_for("Interrupted");
    leave(screen);
}

#[tokio::test]
async fn prompt_that_waits_is_notified_at_the_terminal_and_without_one() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let project = world.home.project().display().to_string();
    let trusted = json!({project: {"hasTrustDialogAccepted": true}});
    let mut state = approved_key();
    (state["projects"], state["messageIdleNotifThresholdMs"]) = (trusted, json!(100));
    world.home.write_home(".claude.json", state.to_string());
    configure(&world, json!({"Notification": command("idle_prompt", KEEP)}));
    let binary = loci().args(["--model", MODEL, "hi"]);
    let mut screen = binary.start_screen(&world.home, world.model.base_url(), SIZE);
    screen.wait_for("One.");
    let told = wait_for_kept(&world, 1);
    assert_eq!((told.len(), &told[0]["notification_type"]), (1, &json!("idle_prompt")), "{told:?}");
    leave(screen);

    let mut session = world.start(&stream([]));
    session.write_json(&user("two"));
    session.wait_for_json(is_result);
    assert_eq!(wait_for_kept(&world, 2).len(), 2);
    session.close_stdin();
    assert_eq!(session.finish().code, Some(0));
}

#[tokio::test]
async fn leaving_at_the_prompt_is_the_reason_of_the_session_end() {
    let world = World::new([]).await;
    trust(&world);
    configure(&world, json!({"SessionEnd": command("prompt_input_exit", KEEP)}));
    let mut screen = loci().args(["--model", MODEL]).start_screen(&world.home, world.model.base_url(), SIZE);
    screen.wait_for("for shortcuts");
    leave(screen);
    let told = super::kept(&world, "kept.jsonl");
    assert_eq!((told.len(), &told[0]["reason"]), (1, &json!("prompt_input_exit")), "{told:?}");
}
