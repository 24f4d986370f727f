//! The fullscreen renderer and the focus view, on two virtual terminals that must agree (`Playing::draw`).

use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::message::Block as MessageBlock;
use loci_core::stream::StreamEvent;
use loci_engine::{EngineEvent, UserMessage};
use proptest::prelude::*;
use serde_json::json;

use super::{Playing, delta, facts};
use crate::app::fullscreen::log_rows;
use crate::app::{AppOptions, Effect, Event, FullscreenOptions, MouseCapture, News, PlainMode};
use crate::block::{Block, CallBlock, CallState, NoticeLevel};
use crate::interface_settings::InterfaceSettings;
use crate::key::{InputEvent, Key, KeyCode, Mouse, MouseAction};
use crate::panel::PanelRequest;

fn options(mouse: MouseCapture) -> AppOptions {
    let fullscreen = FullscreenOptions { forced: Some(true), mouse, ..FullscreenOptions::default() };
    AppOptions { fullscreen, ..AppOptions::default() }
}

impl Playing {
    /// A fullscreen application, with the mouse but without a word about it.
    pub(super) fn fullscreen(width: u16, height: u16) -> Self {
        let mut it = Self::with(options(MouseCapture::Off), width, height);
        it.app.preferences.options.fullscreen.mouse = MouseCapture::All;
        it.draw();
        it
    }

    fn blocks(&mut self, blocks: Vec<Block>) -> &mut Self {
        self.event(Event::News(News::Output(blocks)))
    }

    pub(super) fn turns(&mut self, numbers: std::ops::Range<usize>) -> &mut Self {
        for n in numbers {
            let prompt = Block::Prompt { text: format!("prompt {n}"), attachments: Vec::new() };
            self.blocks(vec![prompt, Block::Answer { markdown: format!("answer {n}\n\nsecond {n}") }]);
        }
        self
    }

    fn pressed(&mut self, key: Key) -> &mut Self {
        self.event(Event::Input(InputEvent::Key(key)))
    }

    pub(super) fn mouse(&mut self, action: MouseAction, column: u16, row: u16) -> &mut Self {
        let mouse = Mouse { action, column, row, has_control: false };
        self.event(Event::Input(InputEvent::Mouse(mouse)))
    }

    pub(super) fn click(&mut self, column: u16, row: u16) -> &mut Self {
        self.mouse(MouseAction::Press(0), column, row).mouse(MouseAction::Release(0), column, row)
    }

    /// Returns the row and the column at which a text is seen.
    pub(super) fn place(&self, text: &str) -> (u16, u16) {
        let seen = self.seen();
        let (row, line) = seen
            .lines()
            .enumerate()
            .find(|(_, line)| line.contains(text))
            .unwrap_or_else(|| panic!("{text}: {seen}"));
        let column = crate::text::width(&line[..line.find(text).unwrap()]);
        (u16::try_from(row).unwrap(), u16::try_from(column).unwrap())
    }

    fn copied(&self) -> Option<String> {
        self.actions.iter().find_map(|action| match action {
            Effect::Copy(text) => Some(text.clone()),
            _ => None,
        })
    }

    fn call(&mut self, id: &str, tool: &str, input: &serde_json::Value, result: &str) -> &mut Self {
        let id = ToolUseId::new(id);
        let kind = "tool_use".to_owned();
        self.stream(StreamEvent::BlockStarted { index: 0, kind, name: Some(tool.to_owned()) });
        let block = MessageBlock::new_tool_use(&id, tool, input);
        self.stream(StreamEvent::BlockDone { index: 0, block });
        let content = json!([{"type": "tool_result", "tool_use_id": id.as_str(), "content": result}]);
        self.news(EngineEvent::User(UserMessage {
            entry: "e".into(),
            message: json!({"role": "user", "content": content}),
            tool_use_result: None,
            is_synthetic: false,
            timestamp: String::new(),
        }))
    }

    fn answer(&mut self, deltas: &[&str]) -> &mut Self {
        self.stream(StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None });
        for text in deltas {
            self.stream(delta(text));
        }
        self.stream(StreamEvent::BlockDone { index: 0, block: MessageBlock::new_text(&deltas.concat()) })
    }

    fn stop_turn(&mut self) -> &mut Self {
        let now = self.now;
        self.app.transcript.conversation.end_turn(now);
        self.app.session.work = None;
        self.event(Event::Tick)
    }

    /// Returns all lines of the terminal's own screen, from the oldest on.
    fn own_lines(&mut self) -> Vec<String> {
        self.screen.screen_mut().set_scrollback(usize::MAX);
        let n = self.screen.screen().scrollback();
        let width = self.size.width;
        let mut lines = Vec::new();
        for offset in (0..=n).rev() {
            self.screen.screen_mut().set_scrollback(offset);
            let rows = self.screen.screen().rows(0, width);
            lines.extend(rows.take(if offset == 0 { usize::MAX } else { 1 }));
        }
        lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn ctrl(code: KeyCode) -> Key {
    Key { ctrl: true, ..Key::plain(code) }
}

#[test]
fn prompt_is_pinned_at_the_bottom_and_nothing_is_written_to_the_own_screen() {
    let mut it = Playing::fullscreen(40, 12);
    it.turns(0..1).text("hi");
    let seen = it.seen();
    let lines: Vec<&str> = seen.lines().collect();
    // Below the prompt is the empty row of the status.
    assert_eq!((lines[10], lines[0]), ("> hi", "loci 1 · ~/p"), "{seen}");
    assert!(lines[11..].iter().all(|line| line.trim().is_empty()), "{seen}");
    assert!(it.own_lines().iter().all(String::is_empty), "{:?}", it.own_lines());
    it.turns(1..30);
    assert!(it.seen().contains("second 29") && it.seen().contains("> hi"), "{}", it.seen());
}

#[test]
fn pages_and_jumps_scroll_and_the_pill_leads_back() {
    let mut it = Playing::fullscreen(60, 20);
    it.turns(0..100).key(KeyCode::PageUp);
    assert!(
        !it.seen().contains("second 99") && it.seen().contains("Jump to the end · Ctrl+End"),
        "{}",
        it.seen()
    );
    it.pressed(ctrl(KeyCode::Home));
    assert!(it.seen().starts_with("loci 1"), "{}", it.seen());
    it.turns(100..102);
    assert!(it.seen().starts_with("loci 1") && it.seen().contains("↓ 4 new · Ctrl+End"), "{}", it.seen());
    let (row, column) = it.place("4 new");
    it.click(column, row);
    assert!(it.seen().contains("second 101") && !it.seen().contains("new ·"), "{}", it.seen());
    for _ in 0..200 {
        it.key(KeyCode::PageUp);
    }
    assert!(it.seen().starts_with("loci 1"), "{}", it.seen());
    for _ in 0..200 {
        it.key(KeyCode::PageDown);
    }
    assert!(it.seen().contains("second 101") && !it.seen().contains('↓'), "{}", it.seen());
    it.key(KeyCode::PageUp).pressed(ctrl(KeyCode::End)).turns(102..103);
    assert!(it.seen().contains("second 102"), "the end is followed again: {}", it.seen());
    it.key(KeyCode::PageUp).text("go").key(KeyCode::Enter);
    assert!(it.seen().contains("> go"), "what is sent is seen: {}", it.seen());
}

#[test]
fn view_stays_where_it_is_without_auto_scroll() {
    let mut it = Playing::fullscreen(60, 12);
    let settings = InterfaceSettings { follows_output: false, ..InterfaceSettings::default() };
    it.event(Event::News(News::Started(Box::new(super::SessionFacts { interface: settings, ..facts() }))));
    it.turns(0..20);
    assert!(it.seen().starts_with("loci 1") && it.seen().contains("new"), "{}", it.seen());
    it.pressed(ctrl(KeyCode::End));
    assert!(it.seen().contains("second 19"), "{}", it.seen());
    it.turns(20..22);
    assert!(!it.seen().contains("second 21"), "{}", it.seen());
}

#[test]
fn wheel_scrolls_as_far_as_it_is_set() {
    let mut it = Playing::fullscreen(60, 20);
    it.turns(0..50);
    let first = |it: &Playing| it.seen().lines().next().unwrap().to_owned();
    it.pressed(ctrl(KeyCode::Home)).wait(1_000).mouse(MouseAction::WheelDown, 3, 3);
    assert_eq!(first(&it), "", "three rows: the banner, a blank, prompt 0");
    it.wait(1_000).mouse(MouseAction::WheelUp, 3, 3);
    assert!(it.seen().starts_with("loci 1"), "{}", it.seen());
    it.text("/scroll-speed 1").key(KeyCode::Enter);
    let request = |key: &str, value: &str| {
        Effect::AskPanel(PanelRequest::ChangeSetting { key: key.into(), value: value.into() })
    };
    assert!(it.actions.contains(&request("env.CLAUDE_CODE_SCROLL_SPEED", "1")), "{:?}", it.actions);
    it.pressed(ctrl(KeyCode::Home)).wait(1_000).mouse(MouseAction::WheelDown, 3, 3);
    it.wait(1_000).mouse(MouseAction::WheelDown, 3, 3);
    assert_eq!(first(&it), "> prompt 0");
    it.ctrl('o').wait(1_000).mouse(MouseAction::WheelUp, 3, 3);
    assert!(it.seen().contains("transcript · 9"), "the pager scrolls, too: {}", it.seen());
}

fn long_call(n_lines: usize) -> Block {
    let output: Vec<String> = (0..n_lines).map(|n| format!("line {n}")).collect();
    Block::Call(CallBlock {
        tool: "Bash".into(),
        summary: "make".into(),
        agent: None,
        is_read_only: false,
        state: CallState::Done,
        diff: None,
        output: output.join("\n"),
        plan: None,
    })
}

#[test]
fn click_expands_and_collapses_in_place() {
    let mut it = Playing::fullscreen(60, 30);
    it.blocks(vec![long_call(10), Block::Answer { markdown: "after".into() }]);
    assert!(!it.seen().contains("line 9"), "{}", it.seen());
    let (row, _) = it.place("Bash(make)");
    it.click(3, row + 1);
    assert!(it.seen().contains("line 9") && it.seen().contains("after"), "{}", it.seen());
    assert_eq!(it.place("Bash(make)").0, row, "its first row stays");
    it.wait(1_000).click(3, row + 1);
    assert!(!it.seen().contains("line 9"), "{}", it.seen());
    let before = it.seen();
    let (row, _) = it.place("after");
    it.click(1, row);
    assert_eq!(it.seen(), before, "what has no more to show stays");
    let reads = |n: usize| {
        let call = Block::Call(CallBlock { is_read_only: true, ..call_of(&long_call(2)) });
        std::iter::repeat_n(call, n).collect::<Vec<_>>()
    };
    it.blocks(reads(3));
    let (row, _) = it.place("Bash(make, make, make)");
    it.wait(1_000).click(1, row);
    assert_eq!(it.seen().matches("Bash(make)").count(), 4, "a group shows its calls: {}", it.seen());
}

fn call_of(block: &Block) -> CallBlock {
    match block {
        Block::Call(call) => call.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn drag_selects_and_copies_what_is_seen() {
    let mut it = Playing::fullscreen(20, 20);
    let long = "https://example.com/a/rather/long/path";
    it.blocks(vec![Block::Answer { markdown: format!("日本語 text\n\n{long} end") }]);
    let (row, _) = it.place("日本語");
    let (last, _) = it.place("end");
    it.mouse(MouseAction::Press(0), 4, row).mouse(MouseAction::Drag(0), 2, last);
    assert!(it.copied().is_none(), "only when the button goes up");
    it.mouse(MouseAction::Release(0), 2, last);
    assert_eq!(it.copied().as_deref(), Some(format!("語 text\n\n{long}\nend").as_str()));
    assert!(it.seen().contains("Copied"), "{}", it.seen());
    it.ctrl('c');
    assert!(it.copied().is_some(), "Ctrl+C copies what is selected");
    it.ctrl('c');
    assert!(it.copied().is_none() && it.seen().contains("Press Ctrl+C"), "and then is what it was");
}

#[test]
fn selection_grows_by_clicks_and_keys_and_goes_with_typing() {
    let mut it = Playing::fullscreen(60, 20);
    it.blocks(vec![Block::Answer { markdown: "see src/main.rs:10 now".into() }]);
    let (row, column) = it.place("main.rs");
    it.click(column, row).click(column, row);
    assert_eq!(it.copied().as_deref(), Some("src/main.rs:10"), "a word");
    it.click(column, row);
    assert_eq!(it.copied().as_deref(), Some("see src/main.rs:10 now"), "a row");
    it.wait(1_000).click(column, row).click(column, row);
    let shift = |code| Key { shift: true, ..Key::plain(code) };
    it.pressed(shift(KeyCode::End)).pressed(Key { shift: true, ..ctrl(KeyCode::Char('c')) });
    assert_eq!(it.copied().as_deref(), Some("src/main.rs:10 now"));
    it.text("x").pressed(Key { shift: true, ..ctrl(KeyCode::Char('c')) });
    assert!(it.copied().is_none(), "typing forgets it");
}

#[test]
fn control_and_a_click_open_the_page_of_a_link() {
    let mut it = Playing::fullscreen(60, 20);
    let markdown = "see [the docs](https://example.com/a) and [a file](file:///bin/sh) here".to_owned();
    it.blocks(vec![Block::Answer { markdown }]);
    for (text, expected) in [
        ("the docs", Some(Effect::OpenPage("https://example.com/a".to_owned()))),
        ("a file", None),
        ("here", None),
    ] {
        let (row, column) = it.place(text);
        let mouse = Mouse { action: MouseAction::Press(0), column: column + 1, row, has_control: true };
        let actions = it.app.update(Event::Input(InputEvent::Mouse(mouse)), Duration::from_secs(1));
        assert_eq!(actions.into_iter().next(), expected, "{text}");
    }
}

#[test]
fn clicks_are_left_alone_where_that_is_wanted() {
    let mut it = Playing::with(options(MouseCapture::Wheel), 60, 20);
    it.blocks(vec![long_call(10)]);
    assert!(
        it.app.own_screen().is_some_and(|mouse| mouse != MouseCapture::Off)
            && it.seen().contains("CLAUDE_CODE_DISABLE_MOUSE=1"),
        "{}",
        it.seen()
    );
    let (row, _) = it.place("Bash(make)");
    it.click(3, row);
    assert!(!it.seen().contains("line 9"), "{}", it.seen());
    let screen = Playing::with(options(MouseCapture::Off), 60, 20).app.own_screen();
    assert_eq!(screen, Some(MouseCapture::Off));
    assert_eq!(Playing::new(60, 20).app.own_screen(), None, "inline never takes the mouse");
}

#[test]
fn cost_of_a_key_and_a_delta_does_not_depend_on_the_length() {
    let made = |n_turns: usize| {
        let mut it = Playing::fullscreen(60, 12);
        it.turns(0..n_turns);
        it.resize(59, 12);
        it.begin_turn().stream(delta("word")).text("key");
        it.app.transcript.fullscreen.as_ref().unwrap().n_cached()
    };
    assert_eq!(made(2_000), made(20), "only blocks in sight are made into rows");
}

#[test]
fn small_windows_wide_letters_and_resizes_break_nothing() {
    let text = "日本語のテキスト 👨‍👩‍👧 and 👍🏽 words\n\n```rust\nfn main() { let 漢 = \"字\"; }\n```\n\n| a | b |\n|---|---|\n| 漢字 | x |";
    let mut it = Playing::fullscreen(80, 24);
    it.begin_turn().turns(0..3).call("t1", "Bash", &json!({"command": "ls"}), "a\nb\nc\nd\ne\nf");
    it.answer(&["Before\n\n", text]);
    for (width, height) in [(20, 5), (5, 2), (2, 1), (1, 1), (120, 40), (33, 7), (80, 24)] {
        it.resize(width, height);
        it.text("ä漢").key(KeyCode::PageUp).stream(delta("more\n\nand ")).key(KeyCode::PageDown);
        it.mouse(MouseAction::Press(0), 0, 0).mouse(MouseAction::Drag(0), 3, height).mouse(
            MouseAction::Release(0),
            3,
            height,
        );
    }
    it.stop_turn();
    assert!(it.seen().contains("│ 漢字") || it.seen().contains("漢字"), "{}", it.seen());
    it.resize(20, 5).ctrl('u');
    it.ctrl('u').text("abc");
    assert!(it.seen().contains("> abc"), "{}", it.seen());
    it.event(Event::News(News::Asked(loci_app::start::StartQuestion::Bypass)));
    assert!(it.seen().contains("No, leave"), "the default answer of a dialog is seen: {}", it.seen());
}

#[test]
fn streamed_answer_keeps_its_colours_and_is_seen_once() {
    let mut it = Playing::fullscreen(60, 30);
    it.begin_turn().answer(&["One para", "graph.\n\nAnd ", "another.\n\n- item", "\n"]);
    for text in ["One paragraph.", "And another.", "- item"] {
        assert_eq!(it.seen().matches(text).count(), 1, "{}", it.seen());
    }
    it.stop_turn();
    let first = it.seen();
    it.resize(40, 30).resize(60, 30);
    assert_eq!(it.seen(), first, "and the same after the width came back");
}

#[test]
fn code_keeps_its_colours_when_the_window_changes() {
    let mut it = Playing::fullscreen(60, 14);
    let is_coloured = |it: &Playing| {
        let (row, column) = it.place("let a");
        let (_, screen, _) = it.full.as_ref().unwrap();
        let cell = screen.screen().cell(row, column).unwrap();
        cell.fgcolor() != vt100::Color::Default
    };
    it.begin_turn().answer(&["```rust\nlet a = 1;\n```\n"]);
    // Whoever is first to ask may have to wait for the grammars; then nothing is coloured twice.
    let colored = (0..20_000).any(|n| {
        std::thread::yield_now();
        it.resize(50 + n % 2, 20);
        is_coloured(&it)
    });
    assert!(colored, "{}", it.seen());
    it.end_turn();
    for (width, height) in [(40, 22), (30, 26), (60, 20)] {
        it.resize(width, height);
        assert!(is_coloured(&it), "{width}: {}", it.seen());
    }
}

#[test]
fn renderer_is_switched_live_and_what_was_said_goes_along() {
    let mut it = Playing::new(60, 16);
    it.turns(0..2).begin_turn().answer_begun(&["Half an ", "answer.\n\nThe other "]);
    it.text("/tui fullscreen").key(KeyCode::Enter);
    let request = |value: &str| {
        Effect::AskPanel(PanelRequest::ChangeSetting { key: "tui".into(), value: value.into() })
    };
    assert!(it.actions.contains(&request("fullscreen")), "{:?}", it.actions);
    assert!(it.full.is_some() && it.seen().contains("Half an answer."), "{}", it.seen());
    it.stream(delta("half.")).turns(2..4);
    it.text("/tui default").key(KeyCode::Enter);
    assert!(it.full.is_none() && it.actions.contains(&request("default")), "{:?}", it.actions);
    it.stop_turn();
    let lines = it.own_lines();
    let n = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    for text in ["answer 0", "answer 1", "The other half.", "answer 2", "answer 3", "second 3"] {
        assert_eq!(n(text), 1, "{text}: {lines:#?}");
    }
    it.text("/tui").key(KeyCode::Enter);
    assert!(it.seen().contains("The renderer is default"), "{}", it.seen());
}

impl Playing {
    fn answer_begun(&mut self, deltas: &[&str]) -> &mut Self {
        self.stream(StreamEvent::BlockStarted { index: 0, kind: "text".into(), name: None });
        for text in deltas {
            self.stream(delta(text));
        }
        self
    }
}

#[test]
fn plain_lines_are_never_given_up_for_fullscreen() {
    for plain in [PlainMode::ScreenReader("a test".into()), PlainMode::Dumb] {
        let mut it = Playing::with(AppOptions { plain: Some(plain), ..options(MouseCapture::All) }, 60, 16);
        it.text("/tui fullscreen").key(KeyCode::Enter);
        assert!(it.full.is_none() && it.seen().contains("nothing was changed"), "{}", it.seen());
        assert!(!it.actions.iter().any(|action| matches!(action, Effect::AskPanel(_))), "{:?}", it.actions);
    }
}

#[test]
fn settings_choose_the_renderer_and_the_view() {
    let mut it = Playing::new(60, 16);
    let settings = |value: serde_json::Value| InterfaceSettings::from_value(&value);
    let started =
        |interface| Event::News(News::Started(Box::new(super::SessionFacts { interface, ..facts() })));
    it.turns(0..1).event(started(settings(json!({"tui": "fullscreen"}))));
    assert!(it.full.is_some() && it.seen().contains("answer 0"), "{}", it.seen());
    it.news(EngineEvent::SettingsChanged(json!({"tui": "default", "viewMode": "verbose"})));
    assert!(it.full.is_none());
    it.blocks(vec![long_call(10)]);
    assert!(it.seen().contains("line 9"), "everything is whole: {}", it.seen());
    let options = AppOptions {
        fullscreen: FullscreenOptions { forced: Some(false), ..FullscreenOptions::default() },
        ..AppOptions::default()
    };
    let mut it = Playing::with(options, 60, 16);
    it.event(started(settings(json!({"tui": "fullscreen"}))));
    assert!(it.full.is_none(), "a variable wins");
}

#[test]
fn transcript_goes_to_the_scrollback_and_a_key_leads_back() {
    let mut it = Playing::fullscreen(60, 16);
    it.blocks(vec![long_call(40)]).ctrl('o');
    assert!(it.seen().contains("transcript ·"), "{}", it.seen());
    it.text("[");
    assert!(
        it.full.is_none()
            && !it.app.own_screen().is_some_and(|mouse| mouse != MouseCapture::Off)
            && it.seen().contains("goes back to fullscreen")
    );
    assert!(it.own_lines().iter().any(|line| line.contains("line 39")), "{:?}", it.own_lines());
    it.key(KeyCode::Esc);
    assert!(it.full.is_some() && it.seen().contains("Bash(make)"), "{}", it.seen());
}

#[test]
fn history_search_is_a_dialog_whose_scope_goes_round() {
    let mut it = Playing::fullscreen(70, 24);
    for text in ["fix the port", "fix the tests", "write docs"] {
        it.text(text).key(KeyCode::Enter);
    }
    let prompts: Vec<_> = ["write docs", "fix the tests", "fix the port"]
        .iter()
        .map(|text| {
            let draft = crate::input::Draft::plain(crate::input::InputMode::Prompt, text);
            crate::input::past_prompt(draft, 0, std::path::Path::new("/elsewhere"), Some("s"))
        })
        .collect();
    it.ctrl('r');
    let news = crate::input::HistoryNews::Everywhere { prompts: prompts.clone().into(), is_all: true };
    it.event(Event::News(News::History(news)));
    assert!(
        it.seen().contains("Earlier prompts · all projects") && it.seen().contains("  write docs"),
        "{}",
        it.seen()
    );
    it.text("FIX");
    assert!(it.seen().contains("❯ fix the tests") && it.seen().contains("  fix the port"), "{}", it.seen());
    it.key(KeyCode::Down);
    assert!(it.seen().contains("❯ fix the port") && it.seen().contains("  fix the tests"), "{}", it.seen());
    it.ctrl('s');
    assert!(it.seen().contains("this session") && it.seen().contains("nothing matches"), "{}", it.seen());
    it.ctrl('s').ctrl('s');
    assert!(it.seen().contains("all projects"), "{}", it.seen());
    it.key(KeyCode::Tab);
    assert!(it.seen().contains("> fix the tests") && !it.seen().contains("Earlier prompts"), "{}", it.seen());
    // Enter gives it to be looked at as Tab does, and sends nothing; Escape leaves what was typed as it was.
    for (key, expected) in [(KeyCode::Enter, "> fix the tests"), (KeyCode::Esc, "> typed before")] {
        it.ctrl('u').text("typed before").ctrl('r');
        let news = crate::input::HistoryNews::Everywhere { prompts: prompts.clone().into(), is_all: true };
        it.event(Event::News(News::History(news)));
        it.text("FIX").key(key);
        assert!(it.sent().is_empty(), "{:?}", it.actions);
        assert!(it.seen().contains(expected) && !it.seen().contains("Earlier prompts"), "{}", it.seen());
    }
}

#[test]
fn focus_view_shows_prompt_a_line_about_the_calls_and_the_answer() {
    for is_fullscreen in [false, true] {
        let mut it = if is_fullscreen { Playing::fullscreen(70, 24) } else { Playing::new(70, 24) };
        it.turns(0..1).text("/focus").key(KeyCode::Enter);
        let prompt = Block::Prompt { text: "mend it".into(), attachments: Vec::new() };
        it.blocks(vec![prompt]).begin_turn().answer(&["First I look."]);
        it.call("t1", "Read", &json!({"file_path": "/p/a.rs"}), "x");
        it.call("t2", "Bash", &json!({"command": "make"}), "done");
        assert!(it.seen().contains("● Read, Bash") && !it.seen().contains("Bash(make)"), "{}", it.seen());
        it.answer(&["It is ", "mended."]);
        assert!(it.seen().contains("It is mended."), "while it streams: {}", it.seen());
        it.stop_turn();
        let seen = it.seen();
        for (text, is_seen) in [
            ("> mend it", true),
            ("● Read, Bash", true),
            ("It is mended.", true),
            ("First I look.", false),
            ("answer 0", !is_fullscreen),
        ] {
            assert_eq!(seen.contains(text), is_seen, "{is_fullscreen} {text}: {seen}");
        }
        it.text("/focus").key(KeyCode::Enter);
        assert_eq!(it.seen().contains("First I look."), is_fullscreen, "{}", it.seen());
    }
}

/// What can happen in a conversation.
#[derive(Debug, Clone)]
enum Step {
    Prompt(String),
    Answer(Vec<String>),
    Call(&'static str, String),
    Thought(String),
    Notice(String),
    EndTurn,
    Page,
    Resize(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let words = || "([a-z]{1,9}|漢字|👍|`code`|\\*\\*bold\\*\\*|https://example\\.com/[a-z]{20,60})( [a-z]{1,9}){0,12}";
    let paragraphs = proptest::collection::vec(
        prop_oneof![words(), Just("\n\n".to_owned()), Just("\n- ".to_owned())],
        1..8,
    );
    let step = prop_oneof![
        2 => words().prop_map(Step::Prompt),
        4 => paragraphs.prop_map(Step::Answer),
        3 => (prop_oneof![Just("Read"), Just("Bash"), Just("mcp__a__b")], words()).prop_map(|(tool, text)| Step::Call(tool, text)),
        1 => words().prop_map(Step::Thought),
        1 => words().prop_map(Step::Notice),
        2 => Just(Step::EndTurn),
        1 => Just(Step::Page),
        1 => (20u16..100).prop_map(Step::Resize),
    ];
    proptest::collection::vec(step, 1..25)
}

fn play(it: &mut Playing, steps: &[Step]) {
    for (n, step) in steps.iter().enumerate() {
        match step {
            Step::Prompt(text) => {
                it.blocks(vec![Block::Prompt { text: text.clone(), attachments: Vec::new() }]);
            }
            Step::Answer(parts) => {
                it.begin_turn();
                it.answer(&parts.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Step::Call(tool, text) => {
                it.begin_turn();
                it.call(&format!("t{n}"), tool, &json!({"command": text}), text);
            }
            Step::Thought(text) => {
                it.blocks(vec![Block::Thinking { text: text.clone(), duration: None }]);
            }
            Step::Notice(text) => {
                it.blocks(vec![Block::Notice { level: NoticeLevel::Warning, text: text.clone() }]);
            }
            Step::EndTurn => _ = it.stop_turn(),
            Step::Page => _ = it.key(KeyCode::PageUp),
            Step::Resize(width) => _ = it.resize(*width, 20),
        }
    }
    it.stop_turn();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fullscreen_and_inline_show_the_same_words(steps in steps()) {
        let steps: Vec<Step> = steps.into_iter().filter(|step| !matches!(step, Step::Resize(_))).collect();
        let mut inline = Playing::new(60, 20);
        let mut full = Playing::fullscreen(60, 20);
        play(&mut inline, &steps);
        play(&mut full, &steps);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let ctx = full.app.render_context(60);
        let rows: Vec<String> = full.app.transcript.log.numbers().flat_map(|n| log_rows(&full.app.transcript.log, n, &ctx)).map(|row| row.text()).collect();
        let of_inline: Vec<String> = inline.app.transcript.log.numbers().flat_map(|n| log_rows(&inline.app.transcript.log, n, &ctx)).map(|row| row.text()).collect();
        prop_assert_eq!(&rows, &of_inline, "both remember the same");
        // Whatever is left in fullscreen is written to the terminal's own screen, as inline has written it all along.
        full.app.transcript.set_fullscreen(false, MouseCapture::Off);
        full.event(Event::Tick);
        let (own, inline_lines) = (full.own_lines().join("\n"), inline.own_lines().join("\n"));
        prop_assert_eq!(words(&own), words(&inline_lines));
    }

    #[test]
    fn every_row_is_found_by_paging_through(steps in steps()) {
        let mut it = Playing::fullscreen(60, 20);
        play(&mut it, &steps);
        let width = it.size.width;
        let ctx = it.app.render_context(width);
        let rows: Vec<String> = it.app.transcript.log.numbers().flat_map(|n| log_rows(&it.app.transcript.log, n, &ctx))
            .map(|row| row.text().trim_end().to_owned()).filter(|text| !text.is_empty()).collect();
        it.pressed(ctrl(KeyCode::Home));
        let mut seen = String::new();
        for _ in 0..400 {
            seen.push_str(&it.seen().replace('\n', ""));
            it.key(KeyCode::PageDown);
        }
        for row in rows {
            prop_assert!(seen.contains(&row) || crate::text::width(&row) > usize::from(width), "{:?} in {}", row, seen);
        }
    }
}
