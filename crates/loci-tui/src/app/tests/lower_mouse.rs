//! The mouse below the conversation: the prompt, dialogs, panels.

use loci_app::start::{StartAnswer, StartQuestion};

use super::{Playing, facts};
use crate::app::{Effect, Event, News};
use crate::key::{KeyCode, MouseAction};

#[test]
fn click_puts_the_caret_where_it_is_in_the_prompt() {
    let mut it = Playing::fullscreen(40, 12);
    it.text("one two three").ctrl('j').text("日本語 four");
    for (text, offset, expected) in [
        ("two", 1, "one t|wo three\n日本語 four"),
        ("four", 0, "one two three\n日本語 |four"),
        ("本", 0, "one two three\n日|本語 four"),
        ("three", 20, "one two three|\n日本語 four"),
    ] {
        let (row, column) = it.place(text);
        it.click(column + offset, row);
        assert_eq!(it.app.prompt.input.marked_text(), expected, "{text}");
    }
    it.click(3, 11);
    assert_eq!(it.app.prompt.input.marked_text(), "one two three|\n日本語 four", "the footer is no prompt");
}

#[test]
fn click_answers_a_dialog_that_was_seen() {
    let mut it = Playing::fullscreen(60, 16);
    it.event(Event::News(News::Asked(StartQuestion::ExternalImports(vec!["~/a.md".into()]))));
    let (row, column) = it.place("2. ");
    it.mouse(MouseAction::Press(0), column, row);
    assert_eq!(it.actions, [Effect::Answer(StartAnswer::ExternalImports(false))]);
}

#[test]
fn wheel_scrolls_a_dialog_and_the_conversation_stays() {
    let mut it = Playing::fullscreen(60, 14);
    it.turns(0..9);
    let files = (0..30).map(|n| format!("~/file{n}.md")).collect();
    it.event(Event::News(News::Asked(StartQuestion::ExternalImports(files))));
    let before = it.seen();
    let (row, column) = it.place("file0.md");
    it.mouse(MouseAction::WheelDown, column, row).mouse(MouseAction::WheelDown, column, row);
    let after = it.seen();
    assert!(!after.contains("file0.md") && after.contains("file6.md"), "{before}\n---\n{after}");
    it.mouse(MouseAction::WheelUp, column, row).mouse(MouseAction::WheelUp, column, row);
    assert_eq!(it.seen(), before);
}

#[test]
fn click_chooses_from_a_panel_and_from_what_is_offered() {
    let mut it = Playing::fullscreen(80, 24);
    it.event(Event::News(News::Started(Box::new(facts()))));
    it.text("/help").key(KeyCode::Enter);
    let (row, column) = it.place("Search:");
    it.click(column, row);
    assert!(it.app.panel.is_open(), "what is above the list is no row of it");
    let (row, column) = it.place("/export");
    it.click(column, row);
    assert!(
        !it.app.panel.is_open() && it.app.prompt.input.marked_text().starts_with("/export"),
        "{}",
        it.seen()
    );
    it.ctrl('u').text("/help").key(KeyCode::Enter);
    let (row, column) = it.place("↓ ");
    let name = it.seen().lines().nth(usize::from(row)).unwrap().trim_start_matches("↓ ").to_owned();
    it.click(column, row);
    let chosen = it.app.prompt.input.marked_text().replace('|', "");
    assert!(!it.app.panel.is_open() && name.starts_with(chosen.trim()), "{name}: {}", it.seen());
    it.ctrl('u').text("/re");
    let (row, column) = it.place("/rewind");
    it.click(column, row);
    assert_eq!(it.app.prompt.input.marked_text(), "/rewind |", "{}", it.seen());
}
