//! What whole control sequences say.

use super::kitty;
use crate::key::{InputEvent, Key, KeyCode, Mouse, MouseAction, Reply};

/// What a CSI sequence is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Something to tell.
    Event(InputEvent),
    /// A bracketed paste begins.
    PasteStart,
    /// Nothing that we know, or nothing to tell.
    Nothing,
}

impl Sequence {
    pub(super) fn into_event(self) -> Option<InputEvent> {
        match self {
            Self::Event(event) => Some(event),
            Self::PasteStart | Self::Nothing => None,
        }
    }

    /// Tells whether an Escape before it was Alt: nobody holds that in what the terminal says by itself.
    pub(super) fn may_have_alt(&self) -> bool {
        matches!(self, Self::Event(InputEvent::Key(_)) | Self::Nothing)
    }
}

/// What stands between `ESC [` and the final byte.
struct Parameters<'a> {
    /// One of `<`, `=`, `>`, `?`, if it is there.
    marker: Option<u8>,
    /// The numbers, each with what follows it behind colons.
    numbers: Vec<Vec<Option<u32>>>,
    /// What stands before the final byte.
    intermediates: &'a [u8],
}

impl<'a> Parameters<'a> {
    fn parse(bytes: &'a [u8]) -> Self {
        let marker = bytes.first().copied().filter(|byte| (b'<'..=b'?').contains(byte));
        let bytes = if marker.is_some() { &bytes[1..] } else { bytes };
        let end = bytes.iter().position(|byte| *byte < b'0').unwrap_or(bytes.len());
        let (numbers, intermediates) = bytes.split_at(end);
        let numbers = if numbers.is_empty() {
            Vec::new()
        } else {
            let split = numbers.split(|byte| *byte == b';');
            split.map(|number| number.split(|byte| *byte == b':').map(decimal).collect()).collect()
        };
        Self { marker, numbers, intermediates }
    }

    /// The number at a place, if it is there and not empty.
    fn number(&self, at: usize) -> Option<u32> {
        self.numbers.get(at).and_then(|parts| parts.first().copied().flatten())
    }

    fn part(&self, at: usize, part: usize) -> Option<u32> {
        self.numbers.get(at).and_then(|parts| parts.get(part).copied().flatten())
    }

    /// What was held with the key: the second number.
    fn modifiers(&self) -> Modifiers {
        Modifiers::from_parameter(self.number(1).unwrap_or(1))
    }

    /// Tells whether this is about a key that was let go, which only the kitty protocol says.
    fn is_release(&self) -> bool {
        self.part(1, 1) == Some(3)
    }
}

fn decimal(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// What was held, as xterm and the kitty protocol number it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Modifiers {
    pub(super) shift: bool,
    pub(super) alt: bool,
    pub(super) ctrl: bool,
    pub(super) sup: bool,
}

impl Modifiers {
    fn from_parameter(parameter: u32) -> Self {
        let bits = parameter.saturating_sub(1);
        let has = |bit: u32| bits & bit != 0;
        Self { shift: has(1), alt: has(2) || has(32), ctrl: has(4), sup: has(8) }
    }

    pub(super) fn key(self, code: KeyCode) -> Key {
        Key { code, ctrl: self.ctrl, alt: self.alt, shift: self.shift, sup: self.sup }
    }
}

/// Says what a CSI sequence means; `alt` was told by an Escape before it.
pub(super) fn interpret_csi(parameters: &[u8], last: u8, alt: bool) -> Sequence {
    let parameters = Parameters::parse(parameters);
    if let (None, b'~', Some(200)) = (parameters.marker, last, parameters.number(0)) {
        return Sequence::PasteStart;
    }
    let event = match parameters.marker {
        Some(b'<') => sgr_mouse(&parameters, last).map(InputEvent::Mouse),
        Some(b'?' | b'>') => reply(&parameters, last).map(InputEvent::Reply),
        Some(_) => None,
        None => plain_csi(&parameters, last, alt),
    };
    event.map_or(Sequence::Nothing, Sequence::Event)
}

fn plain_csi(parameters: &Parameters<'_>, last: u8, alt: bool) -> Option<InputEvent> {
    match last {
        b'I' if parameters.numbers.is_empty() => return Some(InputEvent::Focus(true)),
        b'O' if parameters.numbers.is_empty() => return Some(InputEvent::Focus(false)),
        // xterm says F3 with a modifier in the same way; nobody binds that, and an answer must never be a key.
        b'R' if parameters.numbers.len() == 2 => return cursor_position(parameters).map(InputEvent::Reply),
        b't' => return text_area(parameters).map(InputEvent::Reply),
        _ => {}
    }
    if !parameters.intermediates.is_empty() || parameters.is_release() {
        return None;
    }
    let mut modifiers = parameters.modifiers();
    modifiers.alt |= alt;
    let key = match last {
        b'u' => kitty::key(
            parameters.number(0)?,
            kitty::Alternates { shifted: parameters.part(0, 1), base: parameters.part(0, 2) },
            modifiers,
        )?,
        b'~' if parameters.number(0) == Some(27) && parameters.numbers.len() >= 3 => {
            kitty::other_key(parameters.number(2)?, modifiers)?
        }
        b'~' => modifiers.key(tilde_code(parameters.number(0)?)?),
        // rxvt: the last byte is the modifier.
        b'$' | b'^' | b'@' => {
            let code = tilde_code(parameters.number(0)?)?;
            let held = Modifiers { shift: last != b'^', ctrl: last != b'$', ..modifiers };
            held.key(code)
        }
        b'Z' => Modifiers { shift: true, ..modifiers }.key(KeyCode::Tab),
        b'a'..=b'd' => Modifiers { shift: true, ..modifiers }.key(arrow(last - b'a' + b'A')?),
        _ => modifiers.key(arrow(last)?),
    };
    Some(InputEvent::Key(key))
}

/// The key of a letter, with or without `ESC [ 1 ; modifiers` before it.
fn arrow(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        b'P'..=b'S' => KeyCode::F(letter - b'P' + 1),
        _ => return None,
    })
}

/// The key of a number before `~`, as VT220, xterm, rxvt and the Linux console number them.
fn tilde_code(number: u32) -> Option<KeyCode> {
    Some(match number {
        1 | 7 => KeyCode::Home,
        2 => KeyCode::Insert,
        3 => KeyCode::Delete,
        4 | 8 => KeyCode::End,
        5 => KeyCode::PageUp,
        6 => KeyCode::PageDown,
        11..=15 => function(number - 10),
        17..=21 => function(number - 11),
        23..=26 => function(number - 12),
        28 | 29 => function(number - 13),
        31..=34 => function(number - 14),
        _ => return None,
    })
}

fn function(number: u32) -> KeyCode {
    KeyCode::F(u8::try_from(number).unwrap_or(u8::MAX))
}

/// Says what a key of `ESC O` is.
pub(super) fn interpret_ss3(modifier: &[u8], last: u8, alt: bool) -> Option<Key> {
    let mut modifiers = Modifiers::from_parameter(decimal(modifier).unwrap_or(1));
    modifiers.alt |= alt;
    let keypad = |char: u8| KeyCode::Char(char::from(char));
    let code = match last {
        // rxvt: Control and an arrow.
        b'a'..=b'd' => {
            modifiers.ctrl = true;
            arrow(last - b'a' + b'A')?
        }
        b'M' => KeyCode::Enter,
        b'I' => KeyCode::Tab,
        b'X' => keypad(b'='),
        b'j'..=b'y' => keypad(last - b'j' + b'*'),
        _ => arrow(last)?,
    };
    Some(modifiers.key(code))
}

fn cursor_position(parameters: &Parameters<'_>) -> Option<Reply> {
    let from_zero = |at| {
        let number = parameters.number(at)?.checked_sub(1)?;
        u16::try_from(number).ok()
    };
    Some(Reply::CursorPosition { row: from_zero(0)?, column: from_zero(1)? })
}

fn text_area(parameters: &Parameters<'_>) -> Option<Reply> {
    let number = |at| parameters.number(at).and_then(|number| u16::try_from(number).ok());
    match (number(0)?, parameters.numbers.len()) {
        (8, 3) => Some(Reply::TextArea { first: number(1)?, second: number(2)? }),
        _ => None,
    }
}

/// Says what a sequence with a private marker answers.
fn reply(parameters: &Parameters<'_>, last: u8) -> Option<Reply> {
    match (parameters.marker, parameters.intermediates, last) {
        (Some(b'?'), b"$", b'y') => Some(Reply::Mode {
            mode: u16::try_from(parameters.number(0)?).ok()?,
            state: u8::try_from(parameters.number(1)?).ok()?,
        }),
        (Some(b'?'), b"", b'u') => {
            Some(Reply::KeyboardFlags(u8::try_from(parameters.number(0).unwrap_or(0)).ok()?))
        }
        (Some(b'?'), b"", b'R') => cursor_position(parameters),
        (Some(b'?'), b"", b'n') if parameters.number(0) == Some(997) => {
            Some(Reply::ColorScheme { is_dark: parameters.number(1)? == 1 })
        }
        (Some(marker), b"", b'c') => {
            let numbers: Vec<_> =
                parameters.numbers.iter().filter_map(|parts| parts.first().copied()).collect();
            let numbers: Vec<_> = numbers.iter().map(|number| number.unwrap_or(0).to_string()).collect();
            Some(Reply::Identity(format!("{}{}", char::from(marker), numbers.join(";"))))
        }
        _ => None,
    }
}

fn sgr_mouse(parameters: &Parameters<'_>, last: u8) -> Option<Mouse> {
    let button = parameters.number(0)?;
    let place = |at| u16::try_from(parameters.number(at)?.saturating_sub(1)).ok();
    mouse(button, last == b'm', place(1)?, place(2)?)
}

/// Reads the oldest form: each value is a byte, 32 above it.
pub(super) fn x10_mouse(button: u8, column: u8, row: u8) -> Option<InputEvent> {
    let place = |byte: u8| u16::from(byte.saturating_sub(33));
    let button = u32::from(button.saturating_sub(32));
    mouse(button, button & 3 == 3 && button < 32, place(column), place(row)).map(InputEvent::Mouse)
}

fn mouse(button: u32, is_release: bool, column: u16, row: u16) -> Option<Mouse> {
    let number = u8::try_from(button & 3).ok()?;
    let action = match button {
        _ if button & 64 != 0 => match number {
            0 => MouseAction::WheelUp,
            1 => MouseAction::WheelDown,
            _ => return None,
        },
        _ if is_release => MouseAction::Release(number),
        _ if button & 32 != 0 && number != 3 => MouseAction::Drag(number),
        _ if button & 32 != 0 => return None,
        _ => MouseAction::Press(number),
    };
    Some(Mouse { action, column, row, has_control: button & 0b11000 != 0 })
}

/// Says what an OSC or DCS string answers.
pub(super) fn interpret_string(kind: u8, bytes: &[u8]) -> Option<Reply> {
    let text = String::from_utf8_lossy(bytes);
    if kind == b'P' {
        return text.strip_prefix(">|").map(|name| Reply::Identity(name.to_owned()));
    }
    let (number, answer) = text.split_once(';')?;
    let osc = number.parse().ok()?;
    Some(Reply::Color { osc, rgb: color(answer)? })
}

/// Reads `rgb:ffff/8080/0000`, with one to four digits each, or `#rrggbb`.
fn color(text: &str) -> Option<(u8, u8, u8)> {
    let channels: Vec<u8> = if let Some(digits) = text.strip_prefix('#') {
        let n_digits = digits.len() / 3;
        (0..3).map(|at| channel(digits.get(at * n_digits..(at + 1) * n_digits)?)).collect::<Option<_>>()?
    } else {
        let values = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:"))?;
        values.split('/').take(3).map(channel).collect::<Option<_>>()?
    };
    match channels[..] {
        [red, green, blue] => Some((red, green, blue)),
        _ => None,
    }
}

/// Brings one to four hexadecimal digits to the range of a byte.
fn channel(digits: &str) -> Option<u8> {
    if !(1..=4).contains(&digits.len()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    let most = (1 << (4 * digits.len())) - 1;
    u8::try_from(value * 255 / most).ok()
}
