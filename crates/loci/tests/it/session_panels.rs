//! Commands and panels of the terminal interface, end to end: a real terminal, a real session, a scripted model.

use loci_testkit::{Gate, Screen, Step};

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

#[tokio::test]
async fn help_lists_commands_and_unknown_ones_are_told() {
    let world = World::new([]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/help\r");
    let contents = screen.wait_for("Search:");
    assert!(contents.contains("/compact") && contents.contains("[Commands]"), "{contents}");
    screen.type_text("\x1b");
    screen.wait_gone("Search:");
    screen.type_text("/nosuch\r");
    screen.wait_for("There is no command /nosuch");
    screen.type_text("/teleport\r");
    screen.wait_for("There is no /teleport here. `loci -r`");
    screen.type_text("/stickers\r");
    screen.wait_for("needs a service of another vendor");
    leave(screen);
    assert_eq!(world.requests().len(), 0);
}

#[tokio::test]
async fn export_and_copy_give_the_source_of_what_was_said() {
    let world = World::new([Step::text("Some **bold** words.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "hi", "Some bold words.");
    screen.type_text("/export talk.md\r");
    screen.wait_for("The conversation is in");
    let text = std::fs::read_to_string(world.home.project().join("talk.md")).unwrap();
    assert!(text.contains("## You") && text.contains("Some **bold** words."), "{text}");
    screen.type_text("/export talk.md\r");
    screen.wait_for("The file exists");
    screen.type_text("/copy\r");
    screen.wait_for("Copied 1 line to the clipboard");
    leave(screen);
}

#[tokio::test]
async fn side_question_sees_the_conversation_and_leaves_no_trace() {
    let world = World::new([Step::text("Done."), Step::text("Forty-two."), Step::text("Going on.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "do the work", "Done.");
    screen.type_text("/btw what is the answer?\r");
    let contents = screen.wait_for("Forty-two.");
    assert!(contents.contains("A question on the side"), "{contents}");
    screen.type_text("\x1b");
    screen.wait_gone("A question on the side");
    ask(&mut screen, "and now", "Going on.");
    leave(screen);
    let said = world.conversation();
    assert!(said.contains("do the work") && !said.contains("Forty-two"), "{said}");
    let transcript: String = world.session().iter().map(ToString::to_string).collect();
    assert!(!transcript.contains("Forty-two"), "nothing of it is recorded");
}

#[tokio::test]
async fn rename_and_branch_go_on_under_a_name() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "first", "One.");
    screen.type_text("/rename the port\r");
    screen.wait_for("is called “the port”");
    screen.type_text("/branch another way\r");
    screen.wait_for("This is a branch");
    let list = || world.run(&loci().args(["sessions", "list"])).stdout;
    assert!(list().contains("another way"), "it is there before anything is said in it: {}", list());
    screen.type_text("/rewind\r");
    screen.wait_for("Rewind: go back");
    screen.wait_until("the prompt in the branch", |contents| {
        contents.rsplit("Rewind: go back").next().is_some_and(|panel| panel.contains("first"))
    });
    screen.type_text("\x1b");
    screen.wait_gone("Rewind: go back");
    ask(&mut screen, "second", "Two.");
    leave(screen);
    assert_eq!(world.last_request().json["messages"].as_array().unwrap().len(), 3, "the branch has the past");
    let list = list();
    assert!(list.contains("the port") && list.contains("another way"), "{list}");
}

#[tokio::test]
async fn resume_goes_on_with_a_session_that_was_chosen() {
    let world =
        World::new([Step::text("Alpha said."), Step::text("Beta said."), Step::text("Back again.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "about alpha", "Alpha said.");
    screen.type_text("/clear\r");
    screen.wait_for("A new conversation begins");
    ask(&mut screen, "about beta", "Beta said.");
    screen.type_text("/resume\r");
    screen.wait_for("Resume a session · this project (1)");
    screen.type_text("alpha\x16");
    screen.wait_for("Enter resume · Esc back");
    screen.type_text("\r");
    screen.wait_for("The session goes on");
    ask(&mut screen, "more", "Back again.");
    leave(screen);
    let messages = world.last_request().json["messages"].to_string();
    assert!(messages.contains("about alpha") && !messages.contains("about beta"), "{messages}");

    // At the start, too: without a name the sessions are listed.
    let world = World::new([Step::text("Gamma said.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "about gamma", "Gamma said.");
    leave(screen);
    let mut screen = world.start_interface(["-r"], SIZE);
    screen.wait_for("about gamma");
    screen.type_text("\r");
    screen.wait_for("Gamma said.");
    leave(screen);
}

#[tokio::test]
async fn transcript_is_read_searched_and_left_on_its_own_screen() {
    let gate = Gate::new();
    let long: String = (0..60).map(|idx| format!("line number {idx}\n\n")).collect();
    let world = World::new([Step::text(&long), Step::text("Later words.").wait_for(gate.clone())]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "count", "line number 59");
    screen.type_text("\x0f");
    let contents = screen.wait_for("? help");
    assert!(contents.contains("transcript"), "{contents}");
    screen.type_text("g");
    screen.wait_for("> count");
    screen.type_text("/number 42\r");
    screen.wait_for("line number 42");
    screen.type_text("q");
    screen.wait_gone("transcript ·");
    screen.wait_for("line number 59");
    // What is said while it is open appears in it.
    screen.type_text("more\r");
    screen.wait_for("esc to interrupt");
    screen.type_text("\x0f");
    screen.wait_for("? help");
    gate.release();
    screen.wait_for("Later words.");
    screen.type_text("\x0f");
    screen.wait_until("Later words. once", |seen| {
        seen.contains("for shortcuts") && seen.matches("Later words.").count() == 1
    });
    leave(screen);
}

#[tokio::test]
async fn search_finds_what_was_said_in_another_session() {
    let world = World::new([Step::text("The zebra crossing."), Step::text("On we go.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "find it", "The zebra crossing.");
    leave(screen);
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/search zebra\r");
    screen.wait_for("crossing");
    screen.type_text("\r");
    screen.wait_for("goes on from here");
    ask(&mut screen, "go on", "On we go.");
    leave(screen);
    assert!(world.conversation().contains("zebra"));
}

#[tokio::test]
async fn rewind_takes_conversation_and_code_back_and_is_undone() {
    let write = |text: &str| {
        Step::call(
            "Bash",
            serde_json::json!({"command": format!("echo {text} > made"), "description": "Write"}),
        )
    };
    let script = [
        write("one"),
        Step::text("First done."),
        write("two"),
        Step::text("Second done."),
        Step::text("Anew."),
    ];
    let world = World::new(script).await;
    let made = || std::fs::read_to_string(world.home.project().join("made")).unwrap_or_default();
    let mut screen = world.start_interface(["--allowedTools=Bash", "--permission-mode=acceptEdits"], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "write one", "First done.");
    ask(&mut screen, "write two", "Second done.");
    assert_eq!(made(), "two\n");
    screen.type_text("/rewind\r");
    screen.wait_for("1 file would change");
    screen.type_text("\r");
    let contents = screen.wait_for("Conversation and code");
    assert!(
        contents.contains("restore") && contents.contains("made"),
        "what a shell command changed: {contents}"
    );
    screen.type_text("1");
    let contents = screen.wait_for("back before that prompt");
    assert!(contents.contains("> write two"), "the prompt is there to be changed: {contents}");
    assert_eq!(made(), "one\n");
    screen.type_text("\x15");
    ask(&mut screen, "go on", "Anew.");
    let messages = world.last_request().json["messages"].to_string();
    assert!(messages.contains("write one") && !messages.contains("write two"), "{messages}");
    screen.type_text("/rewind\r");
    screen.wait_for("Undo the last rewind");
    screen.type_text("\x1b[A\r");
    screen.wait_for("1. Undo the rewind");
    screen.type_text("1");
    screen.wait_for("The rewind is undone");
    assert_eq!(made(), "two\n");
    leave(screen);
}

#[tokio::test]
async fn branch_that_was_chosen_is_where_the_session_is_found_again() {
    let world = World::new([Step::text("First said."), Step::text("Second said.")]).await;
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "one", "First said.");
    ask(&mut screen, "two", "Second said.");
    let is_marked = |seen: &str, prompt: &str| {
        seen.lines().any(|line| line.starts_with("❯ ") && line.trim_end().ends_with(prompt))
    };
    screen.type_text("/rewind\r");
    screen.wait_until("the list", |seen| is_marked(seen, "  two"));
    screen.type_text("\x1b[A");
    screen.wait_until("the first prompt", |seen| is_marked(seen, "  one"));
    screen.type_text("\r");
    screen.wait_for("Back to before: one");
    screen.type_text("2");
    screen.wait_for("back before that prompt");
    screen.type_text("\x15/rewind\r");
    screen.wait_for("A branch that was left");
    screen.type_text("\r");
    screen.wait_for("goes on from here");
    // Nothing more is said.
    leave(screen);
    let mut screen = world.start_interface(["-c"], SIZE);
    screen.wait_for("Second said.");
    leave(screen);
}

#[tokio::test]
async fn demo_plays_in_the_interface_and_the_person_may_go_on() {
    let world = World::new([]).await;
    let scratch = world.home.project().with_file_name("demo");
    std::fs::create_dir_all(&scratch).unwrap();
    let demo = loci().args(["demo", "--fast"]).env("TMPDIR", scratch.display().to_string());
    let mut screen = demo.start_screen(&world.home, world.model.base_url(), SIZE);
    screen.wait_until("the end", |seen| seen.contains("Fixed: ") && !seen.contains("esc to interrupt"));
    screen.type_text("/scroll-speed 4\r");
    screen.wait_for("The demo leaves your settings as they are");
    screen.type_text("/focus\r");
    screen.wait_for("Prompt, a line about the calls");
    leave(screen);
    assert_eq!(world.requests().len(), 0, "the model is scripted");
    assert!(!world.home.config_home().join("settings.json").exists(), "settings are left alone");
}

#[tokio::test]
async fn servers_of_the_project_are_used_only_once_they_are_approved() {
    let world = World::new([Step::text("Hello.")]).await;
    world.home.write(".mcp.json", r#"{"mcpServers": {"srv": {"command": "touch", "args": ["started"]}}}"#);
    let mut screen = world.start_interface([], SIZE);
    let contents = screen.wait_for("Use none of them");
    assert!(contents.contains("touch started") && contents.contains("❯ 1. ☐ srv"), "{contents}");
    screen.type_text("4");
    screen.wait_for("for shortcuts");
    ask(&mut screen, "hi", "Hello.");
    leave(screen);
    assert!(!world.home.project().join("started").exists());
    let local = world.home.project().join(".claude/settings.local.json");
    let kept = std::fs::read_to_string(local).unwrap();
    assert!(kept.contains("disabledMcpjsonServers"), "the answer is kept: {kept}");
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_told_before_the_session_begins() {
    let world = World::new([]).await;
    world.home.write_home(".claude/settings.json", "{\"model\": ");
    let mut screen = world.start_interface([], SIZE);
    let contents = screen.wait_for("Some settings cannot be read");
    assert!(contents.contains("settings.json"), "{contents}");
    screen.type_text("\r");
    screen.wait_gone("Some settings cannot be read");
    leave(screen);
}

#[tokio::test]
async fn debug_traces_to_a_file_and_not_to_the_screen() {
    let world = World::new([Step::text("Hello.")]).await;
    let mut screen = world.start_interface(["--debug"], SIZE);
    screen.wait_for("for shortcuts");
    ask(&mut screen, "hi", "Hello.");
    leave(screen);
    let traces = std::fs::read_dir(world.home.home().join(".claude/debug")).unwrap().count();
    assert_eq!(traces, 1);
}
