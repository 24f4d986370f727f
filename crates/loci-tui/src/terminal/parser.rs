//! Bytes from a terminal become events.
//!
//! The parser is fed whatever a read returned and keeps what is unfinished, so that it does not matter where reads cut:
//! any cutting of the same bytes gives the same events. It has no clock. Where the end of something can only be told by
//! silence (a lone Escape, Alt+`[`), [`Parser::patience`] says how long to wait for more bytes, and whoever reads calls
//! [`Parser::time_out`] when none came.
//!
//! What must stay true: an answer of the terminal never becomes text, whenever it comes and whether or not it is known;
//! nothing that does not end is waited for without a bound; pasted text never becomes a key. The cost of a paste is
//! linear in its length.
//!
//! By hand, although `crossterm` exists: it tells an Escape from a sequence by where a read ended, knows few of a terminal's
//! answers, and hands the others on as keys.

use std::borrow::Cow;
use std::time::Duration;

use memchr::memmem;

use self::control::{Sequence, interpret_csi, interpret_ss3, interpret_string};
use crate::key::{InputEvent, Key, KeyCode};
use crate::text::without_controls;

mod control;
mod kitty;
#[cfg(test)]
mod tests;

/// Ends a bracketed paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// How long the rest of a sequence that has begun for sure may take.
const SEQUENCE_PATIENCE: Duration = Duration::from_millis(500);

/// How long a paste may pause before it is taken for ended: a connection may stall, a lost mark must not lock the keys.
const PASTE_PATIENCE: Duration = Duration::from_secs(5);

/// No sequence we know is nearly as long; what is longer is passed over.
const SEQUENCE_LIMIT: usize = 1024;

/// Turns bytes into events.
#[derive(Debug)]
pub struct Parser {
    state: State,
    /// What the state has gathered.
    gathered: Vec<u8>,
    /// How long to wait whether an Escape begins a sequence.
    escape_patience: Duration,
    /// How many bytes were looked at, for tests that hold the cost linear.
    #[cfg(test)]
    n_examined: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// After one Escape, or two.
    Escape {
        is_doubled: bool,
    },
    /// In the middle of a character of several bytes.
    Utf8 {
        alt: bool,
        n_missing: u8,
    },
    /// After `ESC [`, gathering parameters.
    Csi {
        alt: bool,
    },
    /// After `ESC [ [`, as the Linux console sends F1 to F5.
    Console {
        alt: bool,
    },
    /// After `ESC [ M`: three bytes of the oldest mouse reports.
    X10Mouse,
    /// After `ESC O`, gathering a modifier.
    Ss3 {
        alt: bool,
    },
    /// After `ESC ]`, before it is sure that this is an answer and not Alt+`]`.
    OscNumber,
    /// After `ESC P`, likewise.
    DcsStart,
    /// In a string that ends with ST or BEL.
    Text {
        kind: u8,
        saw_escape: bool,
    },
    /// In a sequence that is too long: until its end.
    TooLong,
    /// In a bracketed paste.
    Paste,
}

impl Parser {
    /// Makes a parser that waits so long whether an Escape begins a sequence.
    pub fn new(escape_patience: Duration) -> Self {
        Self {
            state: State::Ground,
            gathered: Vec::new(),
            escape_patience,
            #[cfg(test)]
            n_examined: 0,
        }
    }

    /// Takes bytes as they came and returns what they say, in their order.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<InputEvent> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = match self.state {
                State::Paste => self.gather_paste(rest, &mut events),
                _ => {
                    self.count(1);
                    self.step(rest[0], &mut events);
                    &rest[1..]
                }
            };
        }
        events
    }

    /// Returns how long to wait for more bytes before [`time_out`](Self::time_out); nothing is pending without it.
    pub fn patience(&self) -> Option<Duration> {
        match self.state {
            State::Ground => None,
            State::Escape { .. } => Some(self.escape_patience),
            State::Csi { .. } | State::Ss3 { .. } | State::OscNumber | State::DcsStart
                if self.gathered.is_empty() =>
            {
                Some(self.escape_patience)
            }
            State::Paste => Some(PASTE_PATIENCE),
            State::Utf8 { .. }
            | State::Csi { .. }
            | State::Console { .. }
            | State::X10Mouse
            | State::Ss3 { .. }
            | State::OscNumber
            | State::DcsStart
            | State::Text { .. }
            | State::TooLong => Some(SEQUENCE_PATIENCE),
        }
    }

    /// Takes what is pending for what it can be, since nothing more came.
    pub fn time_out(&mut self) -> Vec<InputEvent> {
        let mut events = Vec::new();
        let gathered = std::mem::take(&mut self.gathered);
        let state = std::mem::replace(&mut self.state, State::Ground);
        let is_bare = gathered.is_empty();
        match state {
            State::Escape { is_doubled } => {
                let n_escapes = if is_doubled { 2 } else { 1 };
                events.extend((0..n_escapes).map(|_| key(KeyCode::Esc, false)));
            }
            State::Csi { alt } if is_bare => push_alt(alt, '[', &mut events),
            State::Ss3 { alt } if is_bare => push_alt(alt, 'O', &mut events),
            State::OscNumber => replay_alt(']', &gathered, &mut events),
            State::DcsStart => push_alt(false, 'P', &mut events),
            State::Utf8 { alt, .. } => events.push(key(KeyCode::Char(char::REPLACEMENT_CHARACTER), alt)),
            State::Paste => events.push(InputEvent::Paste(clean_paste(gathered))),
            State::Ground
            | State::Csi { .. }
            | State::Console { .. }
            | State::X10Mouse
            | State::Ss3 { .. }
            | State::Text { .. }
            | State::TooLong => {}
        }
        events
    }

    fn step(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        match self.state {
            State::Ground => self.begin_key(byte, false, events),
            State::Escape { is_doubled } => self.after_escape(byte, is_doubled, events),
            State::Utf8 { alt, n_missing } => self.continue_utf8(byte, alt, n_missing, events),
            State::Csi { alt } => self.gather_csi(byte, alt, events),
            State::Console { alt } => {
                self.state = State::Ground;
                if let b'A'..=b'E' = byte {
                    events.push(key(KeyCode::F(byte - b'A' + 1), alt));
                } else {
                    self.step(byte, events);
                }
            }
            State::X10Mouse => self.gather_x10_mouse(byte, events),
            State::Ss3 { alt } => self.gather_ss3(byte, alt, events),
            State::OscNumber => self.gather_osc_number(byte, events),
            State::DcsStart => self.after_dcs(byte, events),
            State::Text { kind, saw_escape } => self.gather_text(byte, kind, saw_escape, events),
            State::TooLong => {
                if byte == 0x1b {
                    self.state = State::Escape { is_doubled: false };
                } else if (0x40..=0x7e).contains(&byte) || byte < 0x20 {
                    self.state = State::Ground;
                }
            }
            // `feed` takes pastes in whole slices.
            State::Paste => self.gathered.push(byte),
        }
    }

    /// A byte where a key may begin, alone or behind an Escape that stands for Alt.
    fn begin_key(&mut self, byte: u8, alt: bool, events: &mut Vec<InputEvent>) {
        self.state = State::Ground;
        match byte {
            0x1b => self.state = State::Escape { is_doubled: false },
            0x00..=0x7f => events.push(InputEvent::Key(Key { alt, ..control_key(byte) })),
            0xc2..=0xf4 => {
                self.gathered.clear();
                self.gathered.push(byte);
                let n_missing = if byte < 0xe0 { 1 } else { 2 + u8::from(byte >= 0xf0) };
                self.state = State::Utf8 { alt, n_missing };
            }
            _ => events.push(key(KeyCode::Char(char::REPLACEMENT_CHARACTER), alt)),
        }
    }

    fn continue_utf8(&mut self, byte: u8, alt: bool, n_missing: u8, events: &mut Vec<InputEvent>) {
        if !(0x80..=0xbf).contains(&byte) {
            self.gathered.clear();
            events.push(key(KeyCode::Char(char::REPLACEMENT_CHARACTER), alt));
            self.begin_key(byte, false, events);
            return;
        }
        self.gathered.push(byte);
        if n_missing > 1 {
            self.state = State::Utf8 { alt, n_missing: n_missing - 1 };
            return;
        }
        let text = std::str::from_utf8(&self.gathered).ok();
        let char = text.and_then(|text| text.chars().next()).unwrap_or(char::REPLACEMENT_CHARACTER);
        // C1 controls are no keys of any keyboard.
        if !char.is_control() {
            events.push(key(KeyCode::Char(char), alt));
        }
        self.gathered.clear();
        self.state = State::Ground;
    }

    fn after_escape(&mut self, byte: u8, is_doubled: bool, events: &mut Vec<InputEvent>) {
        self.gathered.clear();
        match byte {
            // rxvt sends Alt as one more Escape before a sequence.
            b'[' => self.state = State::Csi { alt: is_doubled },
            b'O' => self.state = State::Ss3 { alt: is_doubled },
            0x1b if is_doubled => events.push(key(KeyCode::Esc, false)),
            0x1b => self.state = State::Escape { is_doubled: true },
            _ => {
                if is_doubled {
                    events.push(key(KeyCode::Esc, false));
                }
                match byte {
                    b']' => self.state = State::OscNumber,
                    b'P' => self.state = State::DcsStart,
                    _ => self.begin_key(byte, true, events),
                }
            }
        }
    }

    fn gather_csi(&mut self, byte: u8, alt: bool, events: &mut Vec<InputEvent>) {
        let is_rxvt_shift = byte == b'$' && self.gathered.iter().all(u8::is_ascii_digit);
        match byte {
            b'[' if self.gathered.is_empty() => self.state = State::Console { alt },
            b'M' if self.gathered.is_empty() => self.state = State::X10Mouse,
            0x20..=0x3f if !is_rxvt_shift || self.gathered.is_empty() => {
                self.gathered.push(byte);
                if self.gathered.len() > SEQUENCE_LIMIT {
                    self.gathered.clear();
                    self.state = State::TooLong;
                }
            }
            0x20..=0x7e => {
                let sequence = interpret_csi(&self.gathered, byte, alt);
                self.gathered.clear();
                // The key Escape, and right behind it an answer: in tmux there is one to every frame.
                if alt && !sequence.may_have_alt() {
                    events.push(key(KeyCode::Esc, false));
                }
                self.state = if sequence == Sequence::PasteStart { State::Paste } else { State::Ground };
                events.extend(sequence.into_event());
            }
            // A control byte or a letter of several bytes: the sequence was cut off.
            _ => self.give_up(byte, events),
        }
    }

    fn gather_x10_mouse(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        self.gathered.push(byte);
        if let [button, column, row] = self.gathered[..] {
            events.extend(control::x10_mouse(button, column, row));
            self.gathered.clear();
            self.state = State::Ground;
        }
    }

    fn gather_ss3(&mut self, byte: u8, alt: bool, events: &mut Vec<InputEvent>) {
        match byte {
            b'0'..=b'9' if self.gathered.len() < 3 => self.gathered.push(byte),
            0x40..=0x7e => {
                let key = interpret_ss3(&self.gathered, byte, alt);
                self.gathered.clear();
                self.state = State::Ground;
                events.extend(key.map(InputEvent::Key));
            }
            _ => self.give_up(byte, events),
        }
    }

    /// An answer is a number and a semicolon; anything else was Alt+`]` and then keys.
    fn gather_osc_number(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        match byte {
            b'0'..=b'9' if self.gathered.len() < 5 => self.gathered.push(byte),
            b';' if !self.gathered.is_empty() => {
                self.gathered.push(byte);
                self.state = State::Text { kind: b']', saw_escape: false };
            }
            _ => {
                let gathered = std::mem::take(&mut self.gathered);
                self.state = State::Ground;
                replay_alt(']', &gathered, events);
                self.step(byte, events);
            }
        }
    }

    fn after_dcs(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        if matches!(byte, b'0'..=b'9' | b'>' | b'!' | b'$' | b'+') {
            self.gathered.push(byte);
            self.state = State::Text { kind: b'P', saw_escape: false };
        } else {
            self.state = State::Ground;
            push_alt(false, 'P', events);
            self.step(byte, events);
        }
    }

    fn gather_text(&mut self, byte: u8, kind: u8, saw_escape: bool, events: &mut Vec<InputEvent>) {
        let is_end = byte == 0x07 || (saw_escape && byte == b'\\');
        if is_end {
            events.extend(interpret_string(kind, &self.gathered).map(InputEvent::Reply));
            self.gathered.clear();
            self.state = State::Ground;
        } else if saw_escape {
            // Another sequence begins: this one never ended.
            self.state = State::Escape { is_doubled: false };
            self.after_escape(byte, false, events);
        } else if byte == 0x1b {
            self.state = State::Text { kind, saw_escape: true };
        } else if byte < 0x20 || self.gathered.len() >= SEQUENCE_LIMIT {
            self.give_up(byte, events);
        } else {
            self.gathered.push(byte);
        }
    }

    /// Drops a sequence that was cut off, and takes the byte that cut it for itself.
    fn give_up(&mut self, byte: u8, events: &mut Vec<InputEvent>) {
        self.gathered.clear();
        self.begin_key(byte, false, events);
    }

    /// Gathers pasted bytes up to the end mark, which may lie across reads, and returns what is behind it.
    fn gather_paste<'a>(&mut self, bytes: &'a [u8], events: &mut Vec<InputEvent>) -> &'a [u8] {
        let n_before = self.gathered.len();
        self.gathered.extend_from_slice(bytes);
        let searched_from = n_before.saturating_sub(PASTE_END.len() - 1);
        self.count(self.gathered.len() - searched_from);
        let Some(found) = memmem::find(&self.gathered[searched_from..], PASTE_END) else { return &[] };
        let end = searched_from + found;
        let mut pasted = std::mem::take(&mut self.gathered);
        pasted.truncate(end);
        events.push(InputEvent::Paste(clean_paste(pasted)));
        self.state = State::Ground;
        &bytes[end + PASTE_END.len() - n_before..]
    }

    #[cfg(test)]
    fn count(&mut self, n_bytes: usize) {
        self.n_examined += n_bytes;
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "counts only in tests")]
    fn count(&self, _: usize) {}
}

/// Makes pasted bytes text: line ends are `\n`, other control characters but tabs are gone. Bytes that are such a text
/// already, as most are, are not copied: there may be megabytes of them.
fn clean_paste(bytes: Vec<u8>) -> String {
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    match without_controls(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(clean) => clean,
    }
}

fn key(code: KeyCode, alt: bool) -> InputEvent {
    InputEvent::Key(Key { alt, ..Key::plain(code) })
}

/// Pushes Alt and a letter, behind an Escape of its own if there were two.
fn push_alt(is_doubled: bool, letter: char, events: &mut Vec<InputEvent>) {
    if is_doubled {
        events.push(key(KeyCode::Esc, false));
    }
    events.push(key(KeyCode::Char(letter), true));
}

/// Pushes Alt and a letter, and then digits that were gathered in the belief that they belong to an answer.
fn replay_alt(letter: char, gathered: &[u8], events: &mut Vec<InputEvent>) {
    push_alt(false, letter, events);
    events.extend(gathered.iter().map(|byte| key(KeyCode::Char(char::from(*byte)), false)));
}

/// The key that a byte below 0x80 stands for.
fn control_key(byte: u8) -> Key {
    let ctrl = |char: u8| Key { ctrl: true, ..Key::plain(KeyCode::Char(char::from(char))) };
    match byte {
        0x00 => ctrl(b' '),
        0x09 => Key::plain(KeyCode::Tab),
        0x0d => Key::plain(KeyCode::Enter),
        0x1b => Key::plain(KeyCode::Esc),
        0x01..=0x1a => ctrl(byte - 1 + b'a'),
        0x1c..=0x1f => ctrl(byte - 0x1c + b'\\'),
        0x7f => Key::plain(KeyCode::Backspace),
        _ => Key::plain(KeyCode::Char(char::from(byte))),
    }
}
