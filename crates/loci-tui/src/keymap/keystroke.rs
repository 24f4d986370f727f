//! Keys as people write them: `ctrl+x ctrl+e`.

use crate::key::{Key, KeyCode};

/// Reads keys that are pressed one after the other, separated by blanks.
pub fn parse_chord(text: &str) -> Option<Vec<Key>> {
    let keys: Option<Vec<Key>> = text.split_whitespace().map(parse_key).collect();
    keys.filter(|keys| !keys.is_empty())
}

/// Reads one key with its modifiers, in the form in which terminals tell it.
///
/// A single large letter means Shift; with modifiers its case says nothing.
pub fn parse_key(text: &str) -> Option<Key> {
    let (modifiers, name) = match text.strip_suffix("++") {
        Some(modifiers) => (modifiers, "+"),
        None => text.rsplit_once('+').filter(|_| text != "+").unwrap_or(("", text)),
    };
    let mut key = Key::plain(code(name, modifiers.is_empty())?);
    for modifier in modifiers.split('+').filter(|modifier| !modifier.is_empty()) {
        match modifier.to_ascii_lowercase().as_str() {
            "ctrl" | "control" => key.ctrl = true,
            "shift" => key.shift = true,
            "alt" | "opt" | "option" | "meta" => key.alt = true,
            "cmd" | "command" | "super" | "win" => key.sup = true,
            _ => return None,
        }
    }
    // Shift is in the letter, unless Control or Super is held too.
    if let KeyCode::Char(char) = key.code
        && key.shift
        && !key.ctrl
        && !key.sup
        && char.is_ascii_alphabetic()
    {
        key.shift = false;
        key.code = KeyCode::Char(char.to_ascii_uppercase());
    }
    Some(key)
}

fn code(name: &str, is_alone: bool) -> Option<KeyCode> {
    let mut chars = name.chars();
    if let (Some(char), None) = (chars.next(), chars.next()) {
        return Some(KeyCode::Char(if is_alone { char } else { char.to_ascii_lowercase() }));
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "escape" | "esc" => KeyCode::Esc,
        "enter" | "return" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "backspace" => KeyCode::Backspace,
        "delete" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        name => KeyCode::F(name.strip_prefix('f')?.parse().ok().filter(|number| (1..=35).contains(number))?),
    })
}

/// Shows keys as people read them: `Ctrl+X Ctrl+E`.
pub fn show_chord(keys: &[Key]) -> String {
    keys.iter().map(|key| show_key(*key)).collect::<Vec<_>>().join(" ")
}

fn show_key(key: Key) -> String {
    let has_modifier = key.ctrl || key.alt || key.sup;
    let (name, is_upper) = match key.code {
        KeyCode::Char(' ') => ("Space".to_owned(), false),
        KeyCode::Char(char) if has_modifier => (char.to_uppercase().to_string(), char.is_uppercase()),
        KeyCode::Char(char) => (char.to_string(), false),
        KeyCode::F(number) => (format!("F{number}"), false),
        code => (format!("{code:?}"), false),
    };
    let held = [(key.ctrl, "Ctrl+"), (key.alt, "Alt+"), (key.shift || is_upper, "Shift+"), (key.sup, "Cmd+")];
    let held: String = held.iter().filter(|(is_held, _)| *is_held).map(|(_, name)| *name).collect();
    format!("{held}{name}")
}
