//! The keyboard table, as data.

use super::*;
use crate::input::{EditCommand, edit_command};

/// What keys do while the input is focused and something runs.
fn in_chat(keys: &str) -> String {
    let mut keymap = Keymap::default();
    let contexts = [Context::Task, Context::Chat, Context::Global];
    let keys = parse_chord(keys).unwrap_or_else(|| panic!("{keys}"));
    let resolutions: Vec<Resolution> = keys.iter().map(|key| keymap.resolve(&contexts, *key)).collect();
    match resolutions[..] {
        [.., Resolution::Action(action)] => action.name().to_owned(),
        [Resolution::Unbound] => {
            edit_command(keys[0]).map_or("nothing".to_owned(), |command| format!("{command:?}"))
        }
        _ => format!("{resolutions:?}"),
    }
}

#[test]
fn keyboard_table_of_the_prompt() {
    let table = "
        ctrl+c              app:interrupt
        ctrl+d              app:exit
        escape              chat:cancel
        shift+tab           chat:cycleMode
        alt+m               chat:cycleMode
        alt+p               chat:modelPicker
        alt+t               chat:thinkingToggle
        alt+o               chat:fastMode
        ctrl+o              app:toggleTranscript
        ctrl+t              app:toggleTodos
        ctrl+b              task:background
        ctrl+x ctrl+b       task:background
        ctrl+x ctrl+k       chat:killAgents
        ctrl+r              history:search
        ctrl+s              chat:stash
        ctrl+g              chat:externalEditor
        ctrl+x ctrl+e       chat:externalEditor
        ctrl+l              chat:clearInput
        cmd+k               chat:clearScreen
        ctrl+v              chat:imagePaste
        alt+v               chat:imagePaste
        ctrl+z              app:suspend
        ctrl+a              LineStart
        ctrl+e              LineEnd
        ctrl+k              KillToLineEnd
        ctrl+u              KillToLineStart
        ctrl+w              KillWordLeft
        alt+backspace       KillWordLeft
        ctrl+backspace      KillWordLeft
        ctrl+y              Yank
        alt+y               YankPop
        alt+b               WordLeft
        alt+f               WordRight
        alt+d               DeleteWordRight
        ctrl+_              chat:undo
        ctrl+shift+-        chat:undo
        up                  history:previous
        ctrl+p              history:previous
        down                history:next
        ctrl+n              history:next
        enter               chat:submit
        shift+enter         chat:newline
        alt+enter           chat:newline
        ctrl+j              chat:newline
        left                Left
        ctrl+f              Right
        home                LineStart
        end                 LineEnd
        backspace           DeleteLeft
        delete              DeleteRight
        a                   Insert('a')
        K                   Insert('K')
        ?                   Insert('?')
        f5                  nothing
    ";
    for row in table.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let (keys, expected) = row.split_once("  ").unwrap();
        assert_eq!(in_chat(keys), expected.trim(), "{row}");
    }
}

#[test]
fn ctrl_b_moves_left_while_nothing_runs() {
    let mut keymap = Keymap::default();
    let key = parse_key("ctrl+b").unwrap();
    assert_eq!(keymap.resolve(&[Context::Chat, Context::Global], key), Resolution::Unbound);
    assert_eq!(edit_command(key), Some(EditCommand::Left));
}

#[test]
fn inner_contexts_come_first() {
    let mut keymap = Keymap::default();
    let tab = parse_key("tab").unwrap();
    let escape = parse_key("escape").unwrap();
    let menu = [Context::Autocomplete, Context::Chat, Context::Global];
    assert_eq!(keymap.resolve(&menu, tab), Resolution::Action(Action::AutocompleteAccept));
    assert_eq!(keymap.resolve(&menu, escape), Resolution::Action(Action::AutocompleteDismiss));
    assert_eq!(keymap.resolve(&menu[1..], escape), Resolution::Action(Action::ChatCancel));
}

#[test]
fn chord_that_leads_nowhere_does_nothing() {
    let mut keymap = Keymap::default();
    let chat = [Context::Chat, Context::Global];
    let resolve = |keymap: &mut Keymap, key: &str| keymap.resolve(&chat, parse_key(key).unwrap());
    assert_eq!(resolve(&mut keymap, "ctrl+x"), Resolution::Pending);
    assert_eq!(keymap.pending().as_deref(), Some("Ctrl+X"));
    assert_eq!(resolve(&mut keymap, "a"), Resolution::Nothing);
    assert_eq!(keymap.pending(), None);
    assert_eq!(resolve(&mut keymap, "a"), Resolution::Unbound);
    assert_eq!(resolve(&mut keymap, "ctrl+x"), Resolution::Pending);
    keymap.cancel_chord();
    assert_eq!(resolve(&mut keymap, "ctrl+s"), Resolution::Action(Action::ChatStash));
}

#[test]
fn keys_are_read_as_people_write_them() {
    let table = [
        ("ctrl+K", "ctrl+k"),
        ("K", "shift+k"),
        ("control+shift+c", "ctrl+shift+C"),
        ("opt+p", "meta+p"),
        ("meta+shift+p", "alt+shift+P"),
        ("cmd+k", "super+k"),
        ("esc", "escape"),
        ("return", "enter"),
        ("Ctrl+PageUp", "ctrl+pageup"),
    ];
    for (one, other) in table {
        assert!(parse_key(one).is_some(), "{one}");
        assert_eq!(parse_key(one), parse_key(other), "{one}");
    }
    assert_eq!(parse_key("ctrl++"), parse_key("ctrl++"));
    for bad in ["", "hyper+x", "ctrl+", "f99", "nokey"] {
        assert_eq!(parse_key(bad), None, "{bad}");
    }
    for shown in ["Ctrl+X Ctrl+E", "Alt+Shift+P", "Shift+Tab", "K", "F5", "Ctrl+Shift+-", "Cmd+K"] {
        assert_eq!(show_chord(&parse_chord(shown).unwrap()), shown);
    }
}

#[test]
fn overrides_change_the_table_and_bad_entries_are_told() {
    let json = r#"{"bindings": [
        {"context": "Chat", "bindings": {
            "ctrl+e": "chat:externalEditor", "ctrl+s": null, "ctrl+x ctrl+k": null, "ctrl+x ctrl+e": null,
            "ctrl+x": "chat:newline", "ctrl+c": "chat:submit", "ctrl+q": "chat:nosuch", "hyper+q": "chat:submit", "ctrl+y": 5}},
        {"context": "Task", "bindings": {"ctrl+x ctrl+b": null}},
        {"context": "Nowhere", "bindings": {}}
    ]}"#;
    let (mut keymap, warnings) = Keymap::with_overrides(json);
    let contexts = [Context::Task, Context::Chat, Context::Global];
    let mut resolve = |key: &str| keymap.resolve(&contexts, parse_key(key).unwrap());
    assert_eq!(resolve("ctrl+e"), Resolution::Action(Action::ChatExternalEditor));
    assert_eq!(resolve("ctrl+s"), Resolution::Unbound);
    assert_eq!(resolve("ctrl+x"), Resolution::Action(Action::ChatNewline));
    assert_eq!(resolve("ctrl+c"), Resolution::Action(Action::AppInterrupt));
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    for (warning, word) in warnings.iter().zip(["reserved", "chat:nosuch", "hyper+q", "neither", "Nowhere"]) {
        assert!(warning.contains(word), "{warning}");
    }
    let (_, warnings) = Keymap::with_overrides("{");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn keys_of_the_prompt_run_commands() {
    let json = r#"{"bindings": [{"context": "Chat", "bindings": {
        "ctrl+s": "command:context", "ctrl+k ctrl+h": "command:plug:help", "f5": "command:x", "f6": "command:two words", "f7": "command:"
    }}, {"context": "Chat", "bindings": {"f5": null}}, {"context": "Global", "bindings": {"f8": "command:help"}}]}"#;
    let (mut keymap, warnings) = Keymap::with_overrides(json);
    let mut run = |contexts: &[Context], keys: &str| {
        let keys = parse_chord(keys).unwrap();
        let last = keys.into_iter().map(|key| keymap.resolve(contexts, key)).last();
        match last.unwrap() {
            Resolution::Command(idx) => keymap.command(idx).unwrap().to_owned(),
            other => format!("{other:?}"),
        }
    };
    let chat = [Context::Chat, Context::Global];
    for (keys, expected) in
        [("ctrl+s", "/context"), ("ctrl+k", "Pending"), ("ctrl+h", "/plug:help"), ("f5", "Nothing")]
    {
        assert_eq!(run(&chat, keys), expected, "{keys}");
    }
    assert_eq!(run(&[Context::Select, Context::Global], "ctrl+s"), "Unbound", "in the prompt alone");
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    for (warning, word) in warnings.iter().zip(["two words", "`command:` is no action", "`Chat` alone"]) {
        assert!(warning.contains(word), "{warning}");
    }
}

#[test]
fn action_without_an_effect_is_told() {
    for (context, action) in [
        ("Attachments", "attachments:remove"),
        ("Footer", "footer:openSelected"),
        ("Plugin", "plugin:favorite"),
        ("Settings", "settings:retry"),
        ("Settings", "settings:search"),
        ("Chat", "voice:pushToTalk"),
    ] {
        let json = format!(r#"{{"bindings":[{{"context":"{context}","bindings":{{"f5":"{action}"}}}}]}}"#);
        let (_, warnings) = Keymap::with_overrides(&json);
        assert!(matches!(&warnings[..], [one] if one.contains("does nothing")), "{action}: {warnings:?}");
    }
}

#[test]
fn second_press_counts_only_within_its_time() {
    let start = Instant::now();
    let mut press = DoublePress::default();
    assert!(!press.press(start, EXIT_TIME));
    assert!(!press.press(start + Duration::from_secs(1), EXIT_TIME));
    assert!(press.press(start + Duration::from_millis(1500), EXIT_TIME));
    assert!(!press.press(start + Duration::from_millis(1600), EXIT_TIME));
    press.forget();
    assert!(!press.press(start + Duration::from_millis(1700), EXIT_TIME));
}
