//! Keys of one's own: each action that a file can bind is reached by another key, and not by its own once that is unbound.

use loci_engine::Command;
use serde_json::json;

use super::Playing;
use crate::app::{Effect, Event, News};
use crate::input::{Draft, InputMode, past_prompt};
use crate::key::InputEvent;
use crate::keymap::{Action as KeyAction, Context, Keymap, parse_chord};

/// Where an action is carried out.
#[derive(Debug, PartialEq)]
enum Place {
    /// In the prompt and around it; what is typed before, and the words that tell that it was done.
    Prompt(&'static str),
    /// During a turn.
    Turn,
    /// In the search for earlier prompts.
    Search,
    /// In the menu of completions.
    Menu,
    /// In dialogs, panels and the pager, whose own tests have it.
    Elsewhere,
    /// Nowhere: what it is about is not there.
    Absent,
}

fn place(action: KeyAction) -> Place {
    use KeyAction as A;
    match action {
        A::AppInterrupt | A::AppExit | A::AppRedraw | A::AppSuspend | A::AppToggleTodos => Place::Prompt(""),
        A::AppToggleTranscript | A::HistorySearch | A::HistoryPrevious => Place::Prompt(""),
        A::HistoryNext => Place::Prompt("up"),
        A::ChatCancel => Place::Turn,
        A::ChatClearInput
        | A::ChatClearScreen
        | A::ChatKillAgents
        | A::ChatCycleMode
        | A::ChatModelPicker
        | A::ChatFastMode
        | A::ChatThinkingToggle
        | A::ChatImagePaste => Place::Prompt(""),
        A::ChatSubmit | A::ChatNewline | A::ChatUndo | A::ChatExternalEditor | A::ChatStash => {
            Place::Prompt("h i")
        }
        A::AutocompleteAccept | A::AutocompleteDismiss | A::AutocompletePrevious | A::AutocompleteNext => {
            Place::Menu
        }
        A::HistorySearchNext
        | A::HistorySearchAccept
        | A::HistorySearchCancel
        | A::HistorySearchExecute
        | A::HistorySearchCycleScope => Place::Search,
        A::TaskBackground => Place::Turn,
        A::AttachmentsNext
        | A::AttachmentsPrevious
        | A::AttachmentsRemove
        | A::AttachmentsExit
        | A::FooterNext
        | A::FooterPrevious
        | A::FooterUp
        | A::FooterDown
        | A::FooterOpenSelected
        | A::FooterClearSelection
        | A::FooterDismiss
        | A::VoicePushToTalk => Place::Absent,
        _ => Place::Elsewhere,
    }
}

fn context(action: KeyAction) -> Context {
    let name = action.name().split(':').next().unwrap_or_default();
    match name {
        "app" => Context::Global,
        "autocomplete" => Context::Autocomplete,
        "historySearch" => Context::HistorySearch,
        "task" => Context::Task,
        _ => Context::Chat,
    }
}

/// An application with this file of key bindings, where something is to be seen of the action.
fn playing(place: &Place, bindings: &serde_json::Value) -> Playing {
    let mut it = Playing::new(100, 30);
    it.event(Event::News(News::Started(Box::new(super::facts()))));
    let drafts = ["hi there", "hi you"].map(|text| Draft::plain(InputMode::Prompt, text));
    let past = drafts.map(|draft| past_prompt(draft, 1, std::path::Path::new(""), None)).to_vec();
    it.event(Event::News(News::History(crate::input::HistoryNews::Project(past.clone()))));
    it.event(Event::News(News::Keys(Ok(Some(bindings.to_string())))));
    match place {
        Place::Prompt(keys) => keys.split_whitespace().for_each(|key| press(&mut it, key)),
        Place::Turn => drop(it.begin_turn().text("x")),
        Place::Menu => drop(it.text("/co")),
        Place::Search => {
            press(&mut it, "ctrl+r");
            let prompts = past.into();
            it.event(Event::News(News::History(crate::input::HistoryNews::Everywhere {
                prompts,
                is_all: true,
            })));
            it.text("hi");
        }
        Place::Elsewhere | Place::Absent => {}
    }
    it
}

fn press(it: &mut Playing, keys: &str) {
    for key in parse_chord(keys).expect(keys) {
        it.event(Event::Input(InputEvent::Key(key)));
    }
}

/// What is to be seen of the application, and what it wants done.
fn state(it: &Playing) -> String {
    let actions: Vec<String> = it.actions.iter().map(|action| format!("{action:?}")).collect();
    let tasks = it.app.tasks.is_shown();
    let (armed, pager) = (it.app.prompt.armed_code().is_some(), it.app.transcript.pager.is_some());
    format!("{actions:?} {tasks} {armed} {pager} {}\n{}", it.app.prompt.input.marked_text(), it.seen())
}

#[test]
fn every_action_is_reached_by_a_key_of_ones_own() {
    let defaults = Keymap::default();
    for action in KeyAction::ALL.iter().copied() {
        let place = place(action);
        if matches!(place, Place::Elsewhere | Place::Absent) {
            continue;
        }
        let context = context(action);
        let bound = json!({"bindings": [{"context": context.name(), "bindings": {"f5": action.name()}}]});
        let mut it = playing(&place, &bound);
        let before = state(&it);
        press(&mut it, "f5");
        assert_ne!(state(&it), before, "{} by F5", action.name());
        let after = state(&it);
        for keys in defaults.keys_of(context, action) {
            let mut usual = playing(&place, &json!({"bindings": []}));
            press(&mut usual, &keys);
            if action != KeyAction::ChatClearInput && action != KeyAction::AppExit {
                assert_eq!(state(&usual), after, "{} by {keys}", action.name());
            }
        }
    }
}

#[test]
fn keys_are_looked_up_in_every_context() {
    // Those of the prompt, the pager, the search, dialogs and what scrolls in fullscreen have tests of their own.
    let mut known = vec![
        Context::Global,
        Context::Chat,
        Context::Autocomplete,
        Context::Task,
        Context::Transcript,
        Context::HistorySearch,
        Context::Confirmation,
        Context::Scroll,
        // What they are about is not there, which is told.
        Context::Attachments,
        Context::Footer,
    ];
    for command in loci_engine::CommandRegistry::builtin().iter_in_terminal() {
        let mut it = playing(&Place::Elsewhere, &json!({"bindings": []}));
        it.text(&format!("/{}", command.name));
        press(&mut it, "enter");
        known.extend(it.app.panel.panel.iter().flat_map(|panel| panel.contexts()));
    }
    for context in Context::ALL {
        assert!(known.contains(context), "nobody looks a key up in `{}`", context.name());
    }
}

#[test]
fn keys_of_panels_are_reached_by_keys_of_ones_own() {
    for (command, context, action) in [
        ("/help", "Help", "help:dismiss"),
        ("/help", "Tabs", "tabs:next"),
        ("/help", "Select", "select:next"),
        ("/help", "Select", "select:accept"),
        ("/help", "Select", "select:cancel"),
        ("/config", "Settings", "confirm:no"),
        ("/config", "Settings", "select:cancel"),
        ("/theme", "Select", "select:next"),
        ("/theme", "ThemePicker", "theme:toggleSyntaxHighlighting"),
        ("/diff", "DiffDialog", "diff:dismiss"),
        ("/plugin", "Tabs", "tabs:previous"),
        ("/rewind", "MessageSelector", "select:cancel"),
        ("/model", "ModelPicker", "select:cancel"),
        ("/plugin", "Plugin", "select:cancel"),
    ] {
        let bound = json!({"bindings": [{"context": context, "bindings": {"f5": action}}]});
        let mut it = playing(&Place::Elsewhere, &bound);
        it.text(command);
        press(&mut it, "enter");
        let before = state(&it);
        press(&mut it, "f5");
        assert_ne!(state(&it), before, "{command}: {action} in {context}");
    }
}

#[test]
fn unbound_keys_do_nothing_and_those_of_the_text_do_as_well() {
    for (context, keys, typed) in [
        ("Chat", "ctrl+s", "one two"),
        ("Chat", "ctrl+j", "one two"),
        ("Chat", "shift+enter", "one two"),
        ("Chat", "ctrl+u", "one two"),
        ("Chat", "ctrl+_", "one two"),
        ("Chat", "enter", "one two"),
        ("Chat", "ctrl+g", "one two"),
        ("Chat", "alt+p", "one two"),
        ("Global", "ctrl+t", "one two"),
    ] {
        let unbound = json!({"bindings": [{"context": context, "bindings": {keys: null}}]});
        let mut it = playing(&Place::Prompt(""), &unbound);
        it.text(typed);
        let before = state(&it);
        press(&mut it, keys);
        assert_eq!(state(&it), before, "{keys}");
    }
}

#[test]
fn enter_and_shift_enter_can_be_exchanged() {
    let exchanged = json!({"bindings": [{"context": "Chat", "bindings":
        {"enter": "chat:newline", "shift+enter": "chat:submit"}}]});
    let mut it = playing(&Place::Prompt(""), &exchanged);
    it.text("one");
    press(&mut it, "enter");
    it.text("two");
    assert_eq!(it.app.prompt.input.marked_text(), "one\ntwo|");
    press(&mut it, "shift+enter");
    assert!(matches!(it.sent().as_slice(), [Effect::Send(Command::Prompt(_))]), "{:?}", it.actions);
}

#[test]
fn file_that_changes_counts_at_once_and_what_is_wrong_in_it_is_told() {
    let mut it = playing(
        &Place::Prompt(""),
        &json!({"bindings": [
        {"context": "Chat", "bindings": {"ctrl+y": "chat:nosuch", "ctrl+b": "chat:stash"}}]}),
    );
    assert!(it.seen().contains("chat:nosuch") && it.seen().contains("tmux"), "{}", it.seen());
    it.text("one");
    press(&mut it, "ctrl+b");
    assert_eq!(it.app.prompt.input.marked_text(), "|");
    it.event(Event::News(News::Keys(Ok(None))));
    press(&mut it, "ctrl+s");
    assert_eq!(it.app.prompt.input.marked_text(), "one|");
    it.event(Event::News(News::Keys(Err("Failed to read the key bindings: `x`: no".into()))));
    assert!(it.seen().contains("Failed to read the key bindings"), "{}", it.seen());
}

#[test]
fn chord_that_has_begun_is_shown() {
    let mut it = playing(&Place::Prompt(""), &json!({"bindings": []}));
    press(&mut it, "ctrl+x");
    assert!(it.seen().contains("Ctrl+X …"), "{}", it.seen());
    press(&mut it, "a");
    assert!(!it.seen().contains("Ctrl+X"), "{}", it.seen());
}

#[test]
fn key_runs_a_command_and_leaves_what_is_typed() {
    let bound = json!({"bindings": [{"context": "Chat", "bindings":
        {"f5": "command:help", "f6 f7": "command:nosuch"}}]});
    let mut it = playing(&Place::Prompt(""), &bound);
    it.text("one");
    press(&mut it, "f6 f7");
    assert!(it.seen().contains("There is no command /nosuch"), "{}", it.seen());
    press(&mut it, "f5");
    assert!(it.seen().contains("[Commands]"), "{}", it.seen());
    press(&mut it, "escape");
    assert_eq!(it.app.prompt.input.marked_text(), "one|");
}
