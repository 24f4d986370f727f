//! The keyboard as data: a row for each key that the documentation of the prompt names.

use super::Playing;
use crate::app::{Effect, Event, News};
use crate::input::{Draft, InputMode, past_prompt};
use crate::key::InputEvent;
use crate::keymap::parse_chord;
use crate::panel::PanelRequest;
use loci_core::task_list::{TaskStatus, Todo};
use loci_engine::{Command, EngineEvent};

/// What is there before the keys are pressed.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Empty,
    /// `one two` is typed, the caret behind it.
    Typed,
    /// A turn is under way.
    Working,
}

use Before::{Empty, Typed, Working};

/// Keys in the notation of `keybindings.json`, those that follow each other apart by blanks; and what comes of the last one:
/// what is done, and the prompt with `|` for the caret.
const KEYBOARD: &[(Before, &str, &str)] = &[
    (Working, "ctrl+c", "interrupt · |"),
    (Typed, "ctrl+c", "· |"),
    (Typed, "ctrl+c ctrl+c", "exit · |"),
    (Empty, "ctrl+c ctrl+c", "exit · |"),
    (Empty, "ctrl+d ctrl+d", "exit · |"),
    (Typed, "home ctrl+d", "· |ne two"),
    (Working, "escape", "interrupt · |"),
    (Empty, "escape", "interrupt · |"),
    (Typed, "escape", "· one two|"),
    (Typed, "escape escape", "remember · |"),
    (Empty, "escape escape", "AskPanel(RewindPoints) · |"),
    (Empty, "alt+p", "snapshot · |"),
    (Empty, "alt+t", "set thinking · |"),
    (Empty, "ctrl+o", "· |"),
    (Empty, "ctrl+x ctrl+k", "· |"),
    (Working, "h i enter up", "take back queue · |"),
    (Working, "h i enter escape", "interrupt · |"),
    (Empty, "shift+tab", "set mode · |"),
    (Empty, "alt+m", "set mode · |"),
    (Working, "ctrl+b", "move to background · |"),
    (Working, "ctrl+x ctrl+b", "move to background · |"),
    (Empty, "left", "AskPanel(PastAgents) · |"),
    (Typed, "left", "· one tw|o"),
    (Empty, "?", "· |"),
    (Typed, "?", "· one two?|"),
    (Empty, "alt+o", "· |"),
    (Empty, "ctrl+t", "AskPanel(KeepTaskView { is_shown: false }) · |"),
    (Typed, "ctrl+r", "load history · one two|"),
    (Typed, "ctrl+s", "· |"),
    (Typed, "ctrl+s ctrl+s", "· one two|"),
    (Typed, "ctrl+g", "edit · one two|"),
    (Typed, "ctrl+x ctrl+e", "edit · one two|"),
    (Empty, "ctrl+l", "repaint · |"),
    (Typed, "ctrl+l", "repaint · one two|"),
    (Empty, "ctrl+l ctrl+l", "repaint all · |"),
    (Typed, "ctrl+v", "read picture · one two[Image #1]|"),
    (Typed, "alt+v", "read picture · one two[Image #1]|"),
    (Empty, "ctrl+z", "suspend · |"),
    (Typed, "ctrl+a", "· |one two"),
    (Typed, "ctrl+a ctrl+e", "· one two|"),
    (Typed, "home ctrl+k", "· |"),
    (Typed, "ctrl+u", "· |"),
    (Typed, "ctrl+w", "· one |"),
    (Typed, "ctrl+w ctrl+y", "· one two|"),
    (Typed, "ctrl+w ctrl+a ctrl+k ctrl+y alt+y", "· two|"),
    (Typed, "alt+b", "· one |two"),
    (Typed, "home alt+f", "· one |two"),
    (Typed, "home alt+d", "· |two"),
    (Typed, "ctrl+w ctrl+_", "· one two|"),
    (Empty, "/ h e l p enter escape up", "· /help|"),
    (Empty, "/ h e l p enter escape up up", "· before|"),
    (Empty, "/ h e l p enter escape up up down", "· /help|"),
    (Empty, "up", "· before|"),
    (Empty, "ctrl+p", "· before|"),
    (Empty, "up down", "· |"),
    (Empty, "ctrl+p ctrl+n", "· |"),
    (Empty, "/ c o m p tab", "· /compact |"),
    (Typed, "\\ enter", "· one two\n|"),
    (Typed, "shift+enter", "· one two\n|"),
    (Typed, "alt+enter", "· one two\n|"),
    (Typed, "ctrl+j", "· one two\n|"),
    (Typed, "enter", "prompt, remember · |"),
    (Working, "h i enter", "queue, remember · |"),
];

fn name(effect: &Effect) -> String {
    match effect {
        Effect::Send(Command::Interrupt) => "interrupt".to_owned(),
        Effect::Send(Command::Prompt(_)) => "prompt".to_owned(),
        Effect::Send(Command::Queue(_)) => "queue".to_owned(),
        Effect::Send(Command::SetMode(_)) => "set mode".to_owned(),
        Effect::Send(Command::MoveToBackground { .. }) => "move to background".to_owned(),
        Effect::Send(Command::Snapshot { .. }) => "snapshot".to_owned(),
        Effect::Send(Command::SetThinking(_)) => "set thinking".to_owned(),
        Effect::Send(Command::TakeBackQueue) => "take back queue".to_owned(),
        Effect::Exit(_) => "exit".to_owned(),
        Effect::Remember(_) => "remember".to_owned(),
        Effect::LoadHistory => "load history".to_owned(),
        Effect::EditDraft { .. } => "edit".to_owned(),
        Effect::Repaint => "repaint".to_owned(),
        Effect::RepaintAll => "repaint all".to_owned(),
        Effect::ReadPicture { .. } => "read picture".to_owned(),
        Effect::Suspend => "suspend".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn every_key_does_what_the_table_says() {
    let mut wrong = Vec::new();
    for (before, keys, expected) in KEYBOARD {
        let mut it = Playing::new(80, 24);
        let draft = Draft::plain(InputMode::Prompt, "before");
        let past = past_prompt(draft, 1, std::path::Path::new(""), None);
        it.event(Event::News(News::Started(Box::new(super::facts()))));
        it.event(Event::News(News::History(crate::input::HistoryNews::Project(vec![past]))));
        match before {
            Empty => {}
            Typed => {
                it.text("one two");
            }
            Working => {
                it.begin_turn();
            }
        }
        for key in parse_chord(keys).expect(keys) {
            it.event(Event::Input(InputEvent::Key(key)));
        }
        let done: Vec<String> = it.actions.iter().map(name).collect();
        let done = done.join(", ");
        let space = if done.is_empty() { "" } else { " " };
        let seen = format!("{done}{space}· {}", it.app.prompt.input.marked_text());
        if seen != *expected {
            wrong.push(format!("{keys}: {seen:?}, and not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_and_tasks_are_shown_and_hidden_by_their_keys() {
    let mut it = Playing::new(100, 24);
    it.text("?");
    assert!(it.seen().contains("Shift+Enter newline"), "{}", it.seen());
    it.text("?");
    assert!(!it.seen().contains("Shift+Enter newline"), "{}", it.seen());
    it.ctrl('t');
    assert!(!it.app.tasks.is_shown());
    it.ctrl('t');
    assert!(it.app.tasks.is_shown());
}

#[test]
fn task_list_is_shown_as_it_was_left_until_the_model_begins_a_task() {
    let todo = Todo { content: "mend it".into(), active_form: String::new(), status: TaskStatus::Pending };
    let tasks = |n: usize| (1..=n).map(|number| todo.to_task(number)).collect();
    let keep = |is_shown| Effect::AskPanel(PanelRequest::KeepTaskView { is_shown });
    let mut it = Playing::new(80, 24);
    let mut facts = super::facts();
    facts.interface.shows_tasks = false;
    it.event(Event::News(News::Started(Box::new(facts))));
    it.news(EngineEvent::TasksChanged(tasks(1)));
    assert!(!it.seen().contains("mend it"), "{}", it.seen());
    it.begin_turn();
    it.news(EngineEvent::TasksChanged(tasks(1)));
    assert!(!it.seen().contains("mend it"), "no task is new: {}", it.seen());
    it.news(EngineEvent::TasksChanged(tasks(2)));
    assert!(it.seen().contains("mend it"), "{}", it.seen());
    assert_eq!(it.actions, [keep(true)]);
    it.ctrl('t');
    assert_eq!(it.actions, [keep(false)]);
    it.news(EngineEvent::TasksChanged(tasks(3)));
    assert!(!it.seen().contains("mend it"), "whoever hid it is not contradicted: {}", it.seen());
    it.news(EngineEvent::SettingsChanged(serde_json::json!({"showExpandedTodos": true})));
    assert!(!it.seen().contains("mend it"), "{}", it.seen());
    let mut early = Playing::new(80, 24);
    let mut facts = super::facts();
    facts.interface.shows_tasks = false;
    early.ctrl('t').event(Event::News(News::Started(Box::new(facts))));
    early.news(EngineEvent::TasksChanged(tasks(1)));
    assert!(early.seen().contains("mend it"), "the key came before the session: {}", early.seen());
}

#[test]
fn keys_that_cannot_do_what_they_are_for_say_so() {
    for keys in ["alt+o", "ctrl+x ctrl+k"] {
        let mut it = Playing::new(100, 24);
        for key in parse_chord(keys).expect(keys) {
            it.event(Event::Input(InputEvent::Key(key)));
        }
        assert!(it.app.status.flashed().is_some(), "{keys}");
    }
}

#[test]
fn moment_of_a_notice_hides_neither_the_mode_nor_what_was_brought_back() {
    let mut it = Playing::new(80, 24);
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    it.text("later").ctrl('s');
    assert!(it.seen().contains("The prompt is put aside"), "{}", it.seen());
    it.event(Event::Input(InputEvent::Key(parse_chord("shift+tab").unwrap()[0])));
    assert!(it.seen().contains("accept edits on"), "{}", it.seen());
    it.ctrl('s');
    assert!(it.seen().contains("> later") && it.seen().contains("accept edits on"), "{}", it.seen());
    it.ctrl('u').ctrl('s');
    assert!(it.seen().contains("Nothing is put aside"), "{}", it.seen());
    it.ctrl('t');
    assert!(it.seen().contains("There are no tasks yet; they will not be shown"), "{}", it.seen());
}

#[test]
fn help_of_the_keys_is_whole_in_a_narrow_window() {
    for (width, height) in [(120, 30), (80, 24), (50, 24), (36, 40)] {
        let mut it = Playing::new(width, height);
        it.text("?");
        let seen = it.seen();
        for key in ["! run a shell command", "Alt+T thinking", "Ctrl+D leave"] {
            assert!(seen.contains(key), "{key} at {width}: {seen}");
        }
        assert!(!seen.contains('…'), "{seen}");
    }
}
