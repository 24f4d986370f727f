//! Vim's keys within the application.

use loci_engine::{Command, EngineEvent};
use serde_json::json;

use super::Playing;
use crate::app::{Effect, Event, News};
use crate::input::{Draft, HistoryNews, InputMode, past_prompt};
use crate::interface_settings::InterfaceSettings;
use crate::key::KeyCode;

fn playing(settings: serde_json::Value) -> Playing {
    let mut it = Playing::new(80, 24);
    let facts =
        crate::app::SessionFacts { interface: InterfaceSettings::from_value(&settings), ..super::facts() };
    it.event(Event::News(News::Started(Box::new(facts))));
    it
}

fn vim() -> Playing {
    playing(json!({"editorMode": "vim"}))
}

#[test]
fn modes_are_shown_and_escape_interrupts_in_normal_mode_alone() {
    let mut it = vim();
    assert!(it.seen().contains("-- INSERT --"), "{}", it.seen());
    it.begin_turn().text("ab").key(KeyCode::Esc);
    assert!(it.sent().is_empty() && it.seen().contains("-- NORMAL --"), "{}", it.seen());
    it.key(KeyCode::Esc);
    assert_eq!(it.sent(), [Effect::Send(Command::Interrupt)]);
    it.text("v");
    assert!(it.seen().contains("-- VISUAL --"), "{}", it.seen());
    it.text("V");
    assert!(it.seen().contains("-- VISUAL LINE --"), "{}", it.seen());
}

#[test]
fn setting_switches_vim_on_and_off_while_a_session_runs() {
    let mut it = playing(json!({}));
    assert!(!it.seen().contains("INSERT"), "{}", it.seen());
    it.news(EngineEvent::SettingsChanged(json!({"editorMode": "vim"})));
    it.text("one two").key(KeyCode::Esc).text("bdw");
    assert_eq!(it.app.prompt.input.marked_text(), "one| ");
    it.news(EngineEvent::SettingsChanged(json!({"editorMode": "normal"})));
    it.text("dw");
    assert_eq!(it.app.prompt.input.marked_text(), "onedw| ");
}

#[test]
fn mode_is_left_to_a_status_line_that_shows_it() {
    let line = json!({"type": "command", "command": "x", "hideVimModeIndicator": true});
    let mut it = playing(json!({"editorMode": "vim", "statusLine": line}));
    assert!(!it.seen().contains("INSERT"), "{}", it.seen());
    assert_eq!(it.app.status_viewer().vim_mode, Some("INSERT"));
    let due = it.app.status.line.deadline();
    it.key(KeyCode::Esc);
    assert_eq!(it.app.status_viewer().vim_mode, Some("NORMAL"));
    assert_ne!(it.app.status.line.deadline(), due, "the command runs again");
}

#[test]
fn slash_searches_the_history_and_the_ends_of_the_text_lead_there() {
    let mut it = vim();
    let past = past_prompt(Draft::plain(InputMode::Prompt, "before"), 1, std::path::Path::new(""), None);
    it.event(Event::News(News::History(HistoryNews::Project(vec![past]))));
    it.text("x").key(KeyCode::Esc).text("/");
    assert_eq!(it.actions, [Effect::LoadHistory]);
    assert!(it.seen().contains("then / opens the commands"), "{}", it.seen());
    it.ctrl('c').text("k");
    assert_eq!(it.app.prompt.input.marked_text(), "befor|e");
    it.text("j");
    assert_eq!(it.app.prompt.input.marked_text(), "|x");
}

#[test]
fn letters_of_normal_mode_open_no_menu_and_question_mark_explains_the_keys() {
    let mut it = vim();
    it.key(KeyCode::Esc).text("?");
    assert!(it.seen().contains("Shift+Enter newline"), "{}", it.seen());
    it.text("i/co").key(KeyCode::Esc);
    assert!(
        it.app.prompt.input.vim_mode().is_some_and(|mode| mode.name() == "INSERT"),
        "the menu is closed first"
    );
    it.key(KeyCode::Esc).text("x");
    assert!(!it.app.prompt.completion.is_open());
    assert_eq!(it.app.prompt.input.marked_text(), "/|c");
}

#[test]
fn enter_sends_in_every_mode_and_the_next_prompt_is_fresh() {
    let mut it = vim();
    it.text("one").key(KeyCode::Esc).key(KeyCode::Enter);
    assert_eq!(it.sent().len(), 1);
    assert_eq!(it.app.prompt.input.marked_text(), "|");
    it.text("u");
    assert_eq!(it.app.prompt.input.marked_text(), "|", "what was sent is not undone");
}

#[test]
fn selection_is_drawn_reversed() {
    let mut it = vim();
    it.text("one two").key(KeyCode::Esc).text("0ve");
    let screen = it.screen.screen();
    let row = (0..24).find(|row| screen.contents_between(*row, 0, *row, 80).contains("> one two")).unwrap();
    let reversed: Vec<bool> = (2..7).map(|column| screen.cell(row, column).unwrap().inverse()).collect();
    assert_eq!(reversed, [true, true, true, false, false]);
}
