//! Keys as the kitty protocol and xterm's modifyOtherKeys tell them: a code point and what was held.

use super::control::Modifiers;
use crate::key::{Key, KeyCode};

/// What else a key could be, where the terminal tells it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Alternates {
    /// The code point that Shift makes of it.
    pub(super) shifted: Option<u32>,
    /// The key in the same place on a US keyboard.
    pub(super) base: Option<u32>,
}

/// Reads `ESC [ code:shifted:base ; modifiers u`.
pub(super) fn key(code: u32, alternates: Alternates, modifiers: Modifiers) -> Option<Key> {
    if let Some(code) = functional(code) {
        return Some(modifiers.key(code));
    }
    let char = printable(code)?;
    // Ctrl and с on a Russian keyboard is Ctrl+C, as it is without the protocol.
    let base =
        alternates.base.and_then(printable).filter(|_| !char.is_ascii() && (modifiers.ctrl || modifiers.alt));
    if let Some(base) = base {
        return Some(settle(base, modifiers));
    }
    match alternates.shifted.and_then(printable).filter(|_| modifiers.shift && !char.is_alphabetic()) {
        Some(shifted) => Some(settle(shifted, Modifiers { shift: false, ..modifiers })),
        None => Some(settle(char, modifiers)),
    }
}

/// Reads `ESC [ 27 ; modifiers ; code ~`, where the code is what Shift made of it already.
pub(super) fn other_key(code: u32, modifiers: Modifiers) -> Option<Key> {
    if let Some(code) = functional(code) {
        return Some(modifiers.key(code));
    }
    let char = printable(code)?;
    let shift = modifiers.shift && char.is_alphabetic();
    Some(settle(char, Modifiers { shift, ..modifiers }))
}

/// Brings a character with modifiers to the one form that all encodings share.
///
/// Shift alone, or with Alt, is in the letter. With Control or Super the letter is small and Shift is told beside it.
/// Control with `[`, `m` and `i` is Escape, Enter and Tab, as every terminal without the protocol has it.
fn settle(char: char, modifiers: Modifiers) -> Key {
    if modifiers.ctrl || modifiers.sup {
        let only_ctrl = modifiers.ctrl && !modifiers.sup && !modifiers.shift;
        let control = |code| Modifiers { ctrl: false, ..modifiers }.key(code);
        return match char {
            '[' if only_ctrl => control(KeyCode::Esc),
            'm' if only_ctrl => control(KeyCode::Enter),
            'i' if only_ctrl => control(KeyCode::Tab),
            _ => {
                let shift = modifiers.shift || char.is_uppercase();
                Modifiers { shift, ..modifiers }.key(KeyCode::Char(single(char.to_lowercase(), char)))
            }
        };
    }
    if modifiers.shift && char.is_alphabetic() {
        let upper = single(char.to_uppercase(), char);
        return Modifiers { shift: false, ..modifiers }.key(KeyCode::Char(upper));
    }
    modifiers.key(KeyCode::Char(char))
}

/// Returns the only character of a change of case; `ß` has none and stays.
fn single(mut changed: impl Iterator<Item = char>, char: char) -> char {
    match (changed.next(), changed.next()) {
        (Some(changed), None) => changed,
        _ => char,
    }
}

fn printable(code: u32) -> Option<char> {
    // What is left of the private area are media keys and modifiers by themselves.
    char::from_u32(code).filter(|char| !char.is_control() && !(0xe000..0xf900).contains(&code))
}

/// Keys that are no characters, by their code.
fn functional(code: u32) -> Option<KeyCode> {
    let keypad = "0123456789./*-+";
    Some(match code {
        8 | 127 => KeyCode::Backspace,
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        57376..=57398 => KeyCode::F(u8::try_from(code - 57376 + 13).ok()?),
        57399..=57413 => KeyCode::Char(keypad.chars().nth((code - 57399) as usize)?),
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        _ => return None,
    })
}
