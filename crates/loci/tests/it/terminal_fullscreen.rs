//! The fullscreen renderer, end to end: every way out gives the terminal back, and leaves what was said on its own screen.

use loci_testkit::{Gate, Screen, ScreenEnd, Step};
use rustix::process::Signal;
use serde_json::json;

use crate::support::World;

const SIZE: (u16, u16) = (80, 20);
const FULLSCREEN: &[(&str, &str)] = &[("CLAUDE_CODE_NO_FLICKER", "1"), ("TERM", "xterm-256color")];

/// The modes that were switched on and not off again, by what was written.
fn modes_left_on(written: &str) -> Vec<&'static str> {
    let modes = ["?1049", "?1000", "?1002", "?1006", "?2004", "?1004", "?2031", "?2026"];
    let is_on = |mode: &&'static str| {
        let last = |letter: char| written.rfind(&format!("\x1b[{mode}{letter}"));
        last('h') > last('l')
    };
    let mut left: Vec<&str> = modes.into_iter().filter(is_on).collect();
    if written.rfind("\x1b[?25l") > written.rfind("\x1b[?25h") {
        left.push("hidden cursor");
    }
    left
}

fn check_given_back(end: &ScreenEnd) {
    assert!(end.is_cooked, "{end:?}");
    let written = &end.output.stderr;
    assert!(written.contains("\x1b[?1049h") && written.contains("\x1b[?1000h"), "{written:?}");
    assert_eq!(modes_left_on(written), Vec::<&str>::new(), "{written:?}");
    for clear in ["\x1b[2J", "\x1b[3J"] {
        assert!(!written.contains(clear), "{clear:?} in {written:?}");
    }
}

fn ask(screen: &mut Screen) {
    screen.wait_for("for shortcuts");
    screen.type_text("hi there\r");
    screen.wait_for("tokens\n");
}

#[tokio::test]
async fn leaving_gives_the_terminal_back_and_the_end_stays_on_its_own_screen() {
    for keys in ["\x04\x04", "\x03\x03", "/exit\r"] {
        let world = World::new(Step::text("Hello to you.\n\n- one\n- two")).await;
        let mut screen = world.start_interface_with([], FULLSCREEN, SIZE);
        ask(&mut screen);
        let contents = screen.contents();
        assert!(
            contents.lines().count() == 20 && contents.contains("CLAUDE_CODE_DISABLE_MOUSE=1"),
            "{contents}"
        );
        screen.type_text(keys);
        let end = screen.finish();
        assert_eq!(end.output.code, Some(0), "{end:?}");
        check_given_back(&end);
        for text in ["> hi there", "Hello to you.", "- two", "Resume this session with: loci -r "] {
            assert_eq!(end.contents.matches(text).count(), 1, "{keys:?} {text}: {}", end.contents);
        }
    }
}

#[tokio::test]
async fn signals_give_the_terminal_back_from_fullscreen_and_from_its_pager() {
    for (signal, code, keys) in [
        (Signal::TERM, 143, ""),
        (Signal::HUP, 129, ""),
        (Signal::TERM, 143, "\x0f"),
        (Signal::HUP, 129, "\x0f"),
    ] {
        let gate = Gate::new();
        let world = World::new([Step::text("Late.").wait_for(gate.clone())]).await;
        let mut screen = world.start_interface_with(["go"], FULLSCREEN, SIZE);
        screen.wait_for("esc to interrupt");
        screen.type_text(keys);
        if !keys.is_empty() {
            screen.wait_for("transcript ·");
        }
        screen.signal(signal);
        let end = screen.finish();
        assert_eq!(end.output.code, Some(code), "{end:?}");
        check_given_back(&end);
    }
}

#[tokio::test]
async fn editor_and_window_get_the_terminal_and_fullscreen_comes_back() {
    let world = World::new(Step::text("Seen.")).await;
    let script = world.home.write("editor.sh", "#!/bin/sh\nprintf 'edited text' > \"$1\"\n");
    let editor = format!("sh {}", script.display());
    let variables = [FULLSCREEN, &[("EDITOR", editor.as_str()), ("VISUAL", "")]].concat();
    let mut screen = world.start_interface_with([], &variables, SIZE);
    screen.wait_for("for shortcuts");
    screen.type_text("draft\x07");
    screen.wait_for("> edited text");
    screen.resize(50, 12);
    screen.wait_until("a smaller screen", |contents| {
        contents.lines().count() == 12 && contents.contains("> edited text")
    });
    screen.type_text("\r");
    screen.wait_until("the end of the turn", |contents| {
        contents.contains("Seen.") && contents.lines().any(|line| line.trim_start().starts_with("0s · "))
    });
    screen.type_text("\x0f");
    screen.wait_for("transcript ·");
    screen.type_text("[");
    screen.wait_for("In the scrollback above");
    screen.type_text("q");
    screen.wait_for("for shortcuts");
    screen.type_text("\x04\x04");
    let end = screen.finish();
    check_given_back(&end);
    assert!(end.contents.contains("Seen."), "{}", end.contents);
}

#[tokio::test]
async fn end_is_written_for_the_window_as_it_is_then() {
    for keys in ["", "\x0f"] {
        let world = World::new(Step::text("word ".repeat(20).trim_end())).await;
        let mut screen = world.start_interface_with([], FULLSCREEN, SIZE);
        ask(&mut screen);
        screen.type_text(keys);
        if !keys.is_empty() {
            screen.wait_for("transcript ·");
        }
        // Nothing is waited for: whatever is heard of it first, the end has the new width.
        screen.resize(32, 12);
        match keys {
            "" => screen.type_text("\x04\x04"),
            _ => screen.signal(Signal::TERM),
        }
        let end = screen.finish();
        check_given_back(&end);
        let rows: Vec<&str> = end.contents.lines().filter(|line| line.contains("word")).collect();
        let full = ["word"; 6].join(" ");
        assert_eq!(rows, [full.as_str(), &full, &full, "word word"], "{keys:?}: {}", end.contents);
    }
}

#[tokio::test]
async fn setting_starts_fullscreen_before_anything_is_painted_and_tui_goes_back() {
    let world = World::new(Step::text("Hello.")).await;
    world.home.write_config("settings.json", json!({"tui": "fullscreen"}).to_string());
    let mut screen = world.start_interface_with([], &[("TERM", "xterm-256color")], SIZE);
    ask(&mut screen);
    screen.type_text("/tui default\r");
    screen.wait_for("Set `tui` in");
    let contents = screen.wait_for("for shortcuts");
    assert!(contents.contains("> hi there") && contents.contains("Hello."), "{contents}");
    let settings = std::fs::read_to_string(world.home.config_home().join("settings.json")).unwrap();
    assert!(settings.contains("\"default\""), "{settings}");
    screen.type_text("/scroll-speed 5\r");
    screen.wait_for("Set `env.CLAUDE_CODE_SCROLL_SPEED` in");
    screen.type_text("\x04\x04");
    let end = screen.finish();
    let written = end.output.stderr.clone();
    check_given_back(&end);
    let (alternate, banner) = (written.find("\x1b[?1049h"), written.find("loci 0"));
    assert!(alternate < banner, "{written:?}");
}

#[tokio::test]
async fn screen_reader_and_variable_keep_the_own_screen() {
    for (args, variables) in [
        (["--ax-screen-reader"], FULLSCREEN),
        (
            ["--verbose"],
            &[("CLAUDE_CODE_NO_FLICKER", "1"), ("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1")][..],
        ),
    ] {
        let world = World::new(Step::text("Hello.")).await;
        let mut screen = world.start_interface_with(args, variables, SIZE);
        screen.wait_for(">");
        screen.type_text("hi\r");
        screen.wait_for("Hello.");
        screen.type_text("\x04");
        screen.wait_for("again to leave");
        screen.type_text("\x04");
        let end = screen.finish();
        let written = end.output.stderr;
        assert!(!written.contains("\x1b[?1049h") && !written.contains("\x1b[?1000h"), "{written:?}");
    }
}
