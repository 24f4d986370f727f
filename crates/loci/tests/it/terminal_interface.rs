//! The terminal interface, end to end: a real terminal, a real session, a scripted model.

use loci_testkit::{Binary, Gate, Screen, ScreenEnd, Step};
use rustix::process::Signal;
use serde_json::json;

use crate::support::{MODEL, World, loci};

const SIZE: (u16, u16) = (100, 30);

fn bash(command: &str) -> Step {
    Step::call("Bash", json!({"command": command, "description": "Do it"}))
}

/// Leaves by Ctrl+D, twice.
fn leave(mut screen: Screen) -> ScreenEnd {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    let end = screen.finish();
    assert!(end.is_cooked, "the terminal is given back: {end:?}");
    end
}

#[tokio::test]
async fn prompt_is_answered_and_the_way_back_is_told() {
    let world = World::new([Step::text("Hello to you."), Step::text("Again.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("hi there\r");
    let contents = screen.wait_for("tokens\n");
    assert!(contents.contains("> hi there") && contents.contains("Hello to you."), "{contents}");
    let end = leave(screen);
    assert_eq!(end.output.code, Some(0), "{end:?}");
    let hint = end.contents.lines().find(|line| line.contains("loci -r ")).expect("a hint").to_owned();
    assert!(end.contents.contains("Hello to you."), "what was said stays: {}", end.contents);
    assert_eq!(world.requests().len(), 1);

    // The hint works, and shows what was said before.
    let id = hint.rsplit(' ').next().unwrap().to_owned();
    let mut screen = world.start_interface(["-r", &id], SIZE);
    let contents = screen.wait_for("Hello to you.");
    assert!(contents.contains("> hi there"), "{contents}");
    screen.wait_for("for shortcuts");
    screen.type_text("more\r");
    screen.wait_for("Again.");
    leave(screen);
    assert!(world.conversation().contains("Hello to you."));
}

#[tokio::test]
async fn what_goes_with_a_prompt_is_shown_and_what_does_not_is_not() {
    let world = World::new([Step::text("Hello to you.")]).await;
    world.home.write("notes.txt", "alpha\nbeta\ngamma\n");
    world.home.write("src/main.rs", "");
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("compare @notes.txt#L2-3 and @src with @note.txt please\r");
    let contents = screen.wait_for("tokens\n");
    for told in ["[notes.txt, 2 lines]", "[src/, its names]"] {
        assert!(contents.contains(told), "{contents}");
    }
    assert!(!contents.contains("[note.txt"), "{contents}");
    leave(screen);
}

#[tokio::test]
async fn dropped_picture_reaches_the_model() {
    let world = World::new(Step::text("A pixel.")).await;
    let pixel = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";
    let path = world.home.project().join("a b.gif");
    std::fs::write(&path, pixel).unwrap();
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text(&format!("what is \x1b[200~'{}'\x1b[201~ here?\r", path.display()));
    let contents = screen.wait_for("A pixel.");
    assert!(contents.contains("> what is [Image #1] here?"), "{contents}");
    let content = world.last_request().json["messages"].to_string();
    assert!(
        content.contains("[Image #1] here?") && content.contains("\"media_type\":\"image/gif\""),
        "{content}"
    );
    leave(screen);
}

#[tokio::test]
async fn prompts_are_kept_in_the_history_and_recalled_by_the_next_run() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("first thing\r");
    screen.wait_for("One.");
    leave(screen);
    let history = std::fs::read_to_string(world.home.config_home().join("history.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(history.trim()).unwrap();
    assert_eq!((line["display"].as_str(), line["pastedContents"].clone()), (Some("first thing"), json!({})));
    assert_eq!(line["project"].as_str(), world.home.project().to_str());
    assert!(line["timestamp"].as_i64() > Some(1_600_000_000_000) && line["sessionId"].is_string(), "{line}");
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("\x1b[A");
    screen.wait_for("> first thing");
    screen.type_text(" again\r");
    screen.wait_for("Two.");
    leave(screen);
}

#[tokio::test]
async fn first_prompt_may_be_an_argument() {
    let world = World::new(Step::text("At once.")).await;
    let mut screen = world.start_interface(["do it"], SIZE);
    let contents = screen.wait_for("At once.");
    assert!(contents.contains("> do it"), "{contents}");
    leave(screen);
}

#[tokio::test]
async fn flag_without_an_effect_is_told_above_the_prompt() {
    let world = World::new([]).await;
    let mut screen = world.start_interface(["--chrome"], SIZE);
    let contents = screen.wait_for("for shortcuts");
    assert!(contents.contains("--chrome has no effect in loci"), "{contents}");
    leave(screen);
}

#[tokio::test]
async fn permission_dialog_lets_a_call_run_once() {
    let world = World::new([bash("touch made"), Step::text("Done.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("go\r");
    let contents = screen.wait_for("3. No");
    for shown in ["May this command run?", "touch made", "Do it", "the rule `Bash(touch made)`"] {
        assert!(contents.contains(shown), "{shown}: {contents}");
    }
    // The dialog takes keys once the typing has paused.
    screen.wait_for("Tab comment");
    screen.type_text("\r");
    screen.wait_for("Done.");
    assert!(world.home.project().join("made").exists());
    let local = world.home.project().join(".claude/settings.local.json");
    assert!(!local.exists(), "once is not for ever");
    leave(screen);
}

#[tokio::test]
async fn model_explains_a_command_that_asks_for_permission() {
    let steps = [bash("touch made"), Step::text("Low risk. It makes an empty file."), Step::text("Done.")];
    let world = World::new(steps).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("Ctrl+E explain");
    screen.type_text("\x05");
    let contents = screen.wait_for("The model says: Low risk. It makes an empty file.");
    assert!(contents.contains("3. No"), "the question waits: {contents}");
    let asked = world.last_request();
    assert!(asked.json["messages"].to_string().contains("touch made"), "the command is quoted");
    screen.type_text("\r");
    screen.wait_for("Done.");
    assert!(
        !world.last_request().json["messages"].to_string().contains("Low risk"),
        "nothing of it is recorded"
    );
    leave(screen);
}

#[tokio::test]
async fn no_with_a_comment_tells_the_model_why() {
    let world = World::new([bash("touch made"), Step::text("I see.")]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("3. No");
    screen.type_text("\x1b[A\tuse make\r");
    screen.wait_for("I see.");
    assert!(!world.home.project().join("made").exists());
    let told = world.last_request().tool_results().remove(0).text;
    assert_eq!(told, "The user said no to this call: use make");
    leave(screen);
}

#[tokio::test]
async fn escape_interrupts_and_keeps_what_came() {
    let gate = Gate::new();
    let world = World::new([Step::text("Never seen.").wait_for(gate.clone()), Step::text("Back.")]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.type_text("\x1b");
    screen.wait_for("Interrupted");
    screen.type_text("again\r");
    screen.wait_for("Back.");
    gate.release();
    leave(screen);
}

#[tokio::test]
async fn message_sent_meanwhile_is_heard_with_the_next_results() {
    let gate = Gate::new();
    let script = [bash("sleep 1").wait_for(gate.clone()), Step::text("Both done.")];
    let world = World::new(script).await;
    let mut screen = world.start_interface(["--allowedTools", "Bash(sleep *)", "--", "go"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.type_text("and this too\r");
    screen.wait_for("queued");
    gate.release();
    let contents = screen.wait_for("Both done.");
    assert!(contents.contains("> and this too"), "{contents}");
    assert_eq!(world.requests().len(), 2, "no turn of its own");
    assert!(world.last_request().json["messages"].to_string().contains("and this too"));
    leave(screen);
}

#[tokio::test]
async fn queued_message_can_be_taken_back() {
    let gate = Gate::new();
    let world = World::new([Step::text("Done.").wait_for(gate.clone())]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.type_text("not this\r");
    screen.wait_for("queued");
    screen.type_text("\x1b[A");
    screen.wait_gone("queued");
    screen.wait_for("> not this");
    gate.release();
    screen.wait_for("Done.");
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn termination_gives_the_terminal_back_and_keeps_the_session() {
    let gate = Gate::new();
    let world = World::new([Step::text("Late.").wait_for(gate.clone())]).await;
    let mut screen = world.start_interface(["go"], SIZE);
    screen.wait_for("esc to interrupt");
    screen.signal(Signal::TERM);
    let end = screen.finish();
    assert_eq!(end.output.code, Some(143), "{end:?}");
    assert!(end.is_cooked, "{end:?}");
    let last = world.session().pop().expect("a line");
    assert_eq!(last["type"], "last-prompt", "the session's last line is written: {last}");
}

#[tokio::test]
async fn without_a_terminal_a_prompt_is_answered_and_its_want_is_told() {
    let world = World::new(Step::text("x")).await;
    let output = world.run(&loci().args(["--model", MODEL, "hi"]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), "x\n"), "{output:?}");
    let output = world.run(&loci().args(["--model", MODEL]));
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""), "{output:?}");
    assert!(output.stderr.contains("prompt"), "{output:?}");
}

#[tokio::test]
async fn pipe_instead_of_the_keyboard_is_told_at_a_terminal() {
    let world = World::new(Step::text("x")).await;
    let loci = loci().command_line().join(" ");
    let script = world.home.write("start.sh", format!("#!/bin/sh\n{loci} </dev/null\n"));
    let shell = Binary::new("/bin/sh").args([script.display().to_string()]);
    let output = shell.start_screen(&world.home, world.model.base_url(), SIZE).finish().output;
    assert_eq!(output.code, Some(1), "{output:?}");
    let shown = output.stderr + &output.stdout;
    assert!(shown.contains("needs a terminal") && shown.contains("loci -p"), "{shown}");
}

#[tokio::test]
async fn retry_counts_down_and_goes_on_or_is_interrupted() {
    let busy = |seconds: &str| {
        Step::status(529).error("overloaded_error", "Overloaded").header("retry-after", seconds)
    };
    let world = World::new([busy("2"), Step::text("Here I am."), busy("60")]).await;
    let mut screen = world.start_interface(["hi"], SIZE);
    let shown = screen.wait_for("again in 2 s");
    assert!(shown.contains("overloaded (529)") && shown.contains("attempt 1 of"), "{shown}");
    screen.wait_for("again in 1 s");
    screen.wait_for("Here I am.");
    screen.type_text("once more\r");
    screen.wait_for("again in 60 s");
    screen.wait_for("again in 59 s");
    screen.type_text("\x1b");
    screen.wait_gone("again in");
    screen.wait_for("Interrupted");
    leave(screen);
}
