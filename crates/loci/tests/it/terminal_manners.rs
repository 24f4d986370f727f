//! How the terminal interface behaves towards the terminal: editor, keys of one's own, plain lines, title and ways out.

use loci_testkit::{Gate, Screen, Step};
use rustix::process::Signal;

use crate::support::{World, loci};

const SIZE: (u16, u16) = (100, 30);

/// Leaves by Ctrl+D, twice; returns all bytes that were written.
fn leave(mut screen: Screen) -> String {
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    let end = screen.finish();
    assert!(end.is_cooked, "the terminal is given back: {end:?}");
    end.output.stderr
}

#[tokio::test]
async fn editor_gets_the_prompt_and_gives_it_back() {
    let world = World::new(Step::text("Seen.")).await;
    let script = world
        .home
        .write("editor.sh", "#!/bin/sh\nread line < \"$1\"\nprintf '%s and\\nmore\\n' \"$line\" > \"$1\"\n");
    let editor = format!("sh {}", script.display());
    let mut screen = world.start_interface_with([], &[("EDITOR", &editor), ("VISUAL", "")], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("this\x07");
    screen.wait_for("> this and\n  more");
    screen.type_text("\r");
    screen.wait_for("Seen.");
    assert!(world.last_request().json["messages"].to_string().contains("this and\\nmore"));
    let written = leave(screen);
    let behind = written.split("\x1b[23;0t").nth(1).and_then(|rest| rest.split("Seen.").next());
    assert!(
        behind.is_some_and(|it| it.contains("\x1b]2;project · loci")),
        "the title is ours again: {written:?}"
    );
}

#[tokio::test]
async fn last_answer_stands_above_the_prompt_in_the_editor_where_that_is_set() {
    let world = World::new([Step::text("I mended the **port**."), Step::text("Seen.")]).await;
    let project = world.home.project().display().to_string();
    let state = serde_json::json!({
        "externalEditorContext": true,
        "projects": {project: {"hasTrustDialogAccepted": true}},
        "customApiKeyResponses": {"approved": ["sk-ant-test"], "rejected": []},
    });
    world.home.write_home(".claude.json", state.to_string());
    let script = world
        .home
        .write("editor.sh", "#!/bin/sh\ncp \"$1\" \"$HOME/shown\"\necho 'and the host' >> \"$1\"\n");
    let binary = loci().env("EDITOR", format!("sh {}", script.display())).env("VISUAL", "");
    let mut screen = binary.start_screen(&world.home, world.model.base_url(), SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("go\r");
    screen.wait_for("I mended the port.");
    screen.wait_for("for shortcuts");
    screen.type_text("Now \x07");
    screen.wait_for("> Now and the host");
    let shown = std::fs::read_to_string(world.home.home().join("shown")).unwrap();
    assert!(shown.contains("\n# I mended the **port**.\n"), "{shown}");
    screen.type_text("\r");
    screen.wait_for("Seen.");
    let said = world.last_request().json["messages"].to_string();
    assert!(said.contains("\"Now and the host\"") && !said.contains("below this line"), "{said}");
    leave(screen);
}

#[tokio::test]
async fn variables_of_settings_count_for_the_interface() {
    let world = World::new(Step::text("Seen.")).await;
    let script = world.home.write("editor.sh", "#!/bin/sh\necho written elsewhere > \"$1\"\n");
    let settings = serde_json::json!({"env": {
        "EDITOR": format!("sh {}", script.display()), "VISUAL": "",
        "CLAUDE_CODE_DISABLE_TERMINAL_TITLE": "1", "CLAUDE_CODE_HIDE_CWD": "1",
        "CLAUDE_CODE_SCROLL_SPEED": "fast",
    }});
    world.home.write_config("settings.json", settings.to_string());
    // A project's count as soon as its session is there.
    let project = r#"{"env": {"CLAUDE_CODE_SKIP_PROMPT_HISTORY": "1"}}"#;
    world.home.write(".claude/settings.json", project);
    let mut screen = world.start_interface_with([], &[("EDITOR", "false")], SIZE);
    let seen = screen.wait_for("for shortcuts");
    let first = seen.lines().find(|line| line.contains("loci 0."));
    assert!(first.is_some_and(|line| !line.contains('/')), "{seen}");
    screen.wait_for("CLAUDE_CODE_SCROLL_SPEED has no effect: `fast` is not a number of rows above 0");
    screen.type_text("\x07");
    screen.wait_for("> written elsewhere");
    screen.type_text("\r");
    screen.wait_for("Seen.");
    let written = leave(screen);
    assert!(!written.contains("\x1b]2;"), "{written:?}");
    assert!(!world.home.config_home().join("history.jsonl").exists(), "no history is kept");
}

#[tokio::test]
async fn own_keys_count_and_faults_are_told() {
    let world = World::new(Step::text("x")).await;
    let json = r#"{"bindings":[{"context":"Chat","bindings":{"f5":"chat:stash","f6":"no:such"}}]}"#;
    world.home.write_config("keybindings.json", json);
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("`no:such` is no action");
    screen.wait_for("for shortcuts");
    screen.type_text("draft\x1b[15~");
    screen.wait_gone("> draft");
    screen.type_text("\x1b[15~");
    screen.wait_for("> draft");
    screen.type_text("\x15");
    screen.wait_gone("> draft");
    leave(screen);
}

#[tokio::test]
async fn file_of_own_keys_is_begun_edited_and_counts() {
    let world = World::new(Step::text("x")).await;
    let script = world.home.write(
        "editor.sh",
        "#!/bin/sh\ngrep -q chat:externalEditor \"$1\" || exit 1\n\
         sed -i 's/\"ctrl+g\": \"chat:externalEditor\"/\"f5\": \"chat:stash\"/' \"$1\"\n",
    );
    let editor = format!("sh {}", script.display());
    let mut screen = world.start_interface_with([], &[("EDITOR", &editor), ("VISUAL", "")], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/keybindings\r");
    screen.wait_for("keybindings.json` was read again");
    screen.type_text("draft");
    screen.wait_for("> draft");
    screen.type_text("\x1b[15~");
    screen.wait_gone("> draft");
    leave(screen);
}

#[tokio::test]
async fn vim_and_a_theme_of_ones_own_are_there_from_the_start() {
    let world = World::new(Step::text("Seen.")).await;
    let settings = r#"{"editorMode": "vim", "theme": "custom:mine", "vimInsertModeRemaps": {"jj": "<Esc>"}}"#;
    world.home.write_config("settings.json", settings);
    world.home.write_config("themes/mine.json", r##"{"overrides": {"inactive": "#010203"}}"##);
    let mut screen =
        world.start_interface_with([], &[("COLORTERM", "truecolor"), ("TERM", "xterm-256color")], SIZE);
    screen.wait_for("-- INSERT --");
    screen.type_text("one two threejj");
    screen.wait_for("-- NORMAL --");
    screen.type_text("bd0x");
    screen.wait_for("> hree");
    screen.type_text("\r");
    screen.wait_for("Seen.");
    assert!(world.last_request().json["messages"].to_string().contains("\"hree\""));
    let written = leave(screen);
    assert!(written.contains("38;2;1;2;3"), "the theme has its colours");
}

#[tokio::test]
async fn settings_of_the_command_line_stay_when_another_setting_is_changed() {
    let world = World::new(Step::text("x")).await;
    let settings = r#"{"editorMode": "vim"}"#;
    let mut screen = world.start_interface(["--settings", settings], SIZE);
    screen.wait_for("-- INSERT --");
    screen.type_text("/theme dark\r");
    screen.wait_for("Set `theme` in");
    let seen = screen.wait_for("for shortcuts");
    assert!(seen.contains("-- INSERT --"), "{seen}");
    leave(screen);
}

#[tokio::test]
async fn screen_reader_gets_lines_with_labels_and_no_moves_of_the_cursor() {
    let world = World::new(Step::text("Hello to you.")).await;
    let mut screen = world.start_interface(["--ax-screen-reader"], SIZE);
    screen.wait_for("Screen reader mode is on (--ax-screen-reader)");
    screen.type_text("hi\r");
    let contents = screen.wait_for("turn ended: ");
    assert!(contents.contains("you: hi") && contents.contains("claude: Hello to you."), "{contents}");
    screen.type_text("\x04");
    screen.wait_for("again to leave");
    screen.type_text("\x04");
    let end = screen.finish();
    let written = end.output.stderr;
    for moves in ["\x1b[A", "\x1b[1A", "\x1b[2K", "\x1b[J", "\x1b[H", "⠋"] {
        assert!(!written.contains(moves), "{moves:?} in {written:?}");
    }
    assert!(written.contains("\x1b]133;C\x07") && written.contains("\x1b]133;D\x07"), "turns are marked");
    assert!(written.contains("cost: $"), "{written:?}");
}

#[tokio::test]
async fn dumb_terminal_gets_no_escape_sequence() {
    let world = World::new(Step::text("Plain.")).await;
    let mut screen = world.start_interface_with([], &[("TERM", "dumb")], SIZE);
    screen.wait_for(">");
    screen.type_text("hi\r");
    screen.wait_for("Plain.");
    screen.type_text("\x04\x04");
    let end = screen.finish();
    assert!(end.is_cooked && !end.output.stderr.contains('\x1b'), "{:?}", end.output.stderr);
}

#[tokio::test]
async fn title_is_set_and_progress_is_shown_where_the_terminal_knows_it() {
    let gate = Gate::new();
    let world = World::new(Step::text("Done.").wait_for(gate.clone())).await;
    let mut screen =
        world.start_interface_with(["go"], &[("WT_SESSION", "x"), ("TERM", "xterm-256color")], SIZE);
    screen.wait_for("esc to interrupt");
    gate.release();
    screen.wait_for("tokens\n");
    let written = leave(screen);
    assert!(
        written.contains("\x1b]2;✳ project · loci\x1b\\") && written.contains("\x1b]2;project · loci\x1b\\"),
        "{written:?}"
    );
    let (on, off) = (written.find("\x1b]9;4;3;\x07"), written.find("\x1b]9;4;0;\x07"));
    assert!(on.is_some() && on < off, "{written:?}");
    assert!(written.contains("\x1b[22;0t") && written.contains("\x1b[23;0t"), "the old title comes back");
}

#[tokio::test]
async fn window_has_the_name_of_the_session_that_goes_on() {
    let world = World::new([Step::text("One."), Step::text("Two.")]).await;
    let mut screen = world.start_interface(["--name", "the port", "go"], SIZE);
    screen.wait_for("tokens\n");
    assert!(leave(screen).contains("\x1b]2;the port · loci\x1b\\"), "as it was named");
    let titles = |written: &str| -> Vec<String> {
        let sequences = written.split("\x1b]2;").skip(1);
        sequences.filter_map(|rest| Some(rest.split_once("\x1b\\")?.0.to_owned())).collect()
    };
    let mut screen = world.start_interface(["-c", "go on"], SIZE);
    screen.wait_for("Two.");
    screen.wait_for("tokens\n");
    let continued = titles(&leave(screen));
    assert_eq!(continued.last().map(String::as_str), Some("the port · loci"), "{continued:?}");
    let mut screen = world.start_interface([], SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("/resume the port\r");
    screen.wait_for("The session goes on");
    let resumed = titles(&leave(screen));
    assert_eq!(resumed.first().map(String::as_str), Some("project · loci"), "{resumed:?}");
    assert_eq!(resumed.last().map(String::as_str), Some("the port · loci"), "{resumed:?}");
}

#[tokio::test]
async fn colours_follow_the_environment() {
    for (variables, has_colors) in [
        (&[("NO_COLOR", "1"), ("TERM", "xterm-256color")][..], false),
        (&[("CLICOLOR", "0"), ("TERM", "xterm-256color")][..], false),
        (&[("TERM", "xterm-256color")][..], true),
    ] {
        let world = World::new(Step::text("ok")).await;
        let mut screen = world.start_interface_with(["go"], variables, SIZE);
        screen.wait_for("tokens\n");
        let written = leave(screen);
        let is_colored =
            ["\x1b[36m", "\x1b[1;36m", ";36m", "[38;5;", "[32m"].iter().any(|it| written.contains(it));
        assert_eq!(is_colored, has_colors, "{variables:?}: {written:?}");
    }
}

#[tokio::test]
async fn every_signal_to_end_gives_the_terminal_back() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let gate = Gate::new();
        let world = World::new([Step::text("Late.").wait_for(gate.clone())]).await;
        let mut screen = world.start_interface(["go"], SIZE);
        screen.wait_for("esc to interrupt");
        screen.signal(signal);
        let end = screen.finish();
        assert_eq!(end.output.code, Some(code), "{end:?}");
        assert!(end.is_cooked, "{end:?}");
        for undone in ["\x1b[?2004l", "\x1b[?1004l", "\x1b[?25h"] {
            assert!(end.output.stderr.contains(undone), "{signal:?} {undone:?}");
        }
    }
}
