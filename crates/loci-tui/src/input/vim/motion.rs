//! Where vim's motions lead.

use super::super::buffer::{Buffer, Position};
use super::super::chip::is_chip_mark;
use super::grammar::{Find, Motion, WordKind};

/// What kind of sign stands somewhere; a word is a run of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// A blank, or the end of a line.
    Blank,
    Letter,
    Sign,
    /// A sign of a script that is written without blanks.
    Script(Script),
    /// A chip, which is a word by itself.
    Chip,
}

/// Scripts whose words are told apart by the script alone, as vim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    Hiragana,
    Katakana,
    Han,
    Hangul,
    Emoji,
}

/// Returns the kind of the sign at a place.
pub(super) fn class(buffer: &Buffer, at: Position, kind: WordKind) -> Class {
    let line = buffer.line(at.line);
    match line.get(at.byte..).and_then(|rest| rest.chars().next()) {
        None => Class::Blank,
        Some(char) if char.is_whitespace() => Class::Blank,
        Some(char) if is_chip_mark(char) => Class::Chip,
        Some(_) if kind == WordKind::Blank => Class::Letter,
        Some(char) => match script(char) {
            Some(script) => Class::Script(script),
            None if char.is_alphanumeric() || char == '_' => Class::Letter,
            None => Class::Sign,
        },
    }
}

fn script(char: char) -> Option<Script> {
    Some(match u32::from(char) {
        0x3040..=0x309f => Script::Hiragana,
        0x30a0..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => Script::Katakana,
        0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff => Script::Han,
        0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7a3 => Script::Hangul,
        0x2600..=0x27bf | 0x1_f000..=0x1_faff => Script::Emoji,
        _ => return None,
    })
}

/// Returns where the first sign of a line stands that is no blank; the end where there is none.
pub(super) fn first_non_blank(buffer: &Buffer, line: usize) -> Position {
    let text = buffer.line(line);
    Position { line, byte: text.find(|char: char| !char.is_whitespace()).unwrap_or(text.len()) }
}

/// Returns the place behind the sign at a place, not beyond the end of the line.
pub(super) fn right_in_line(buffer: &Buffer, at: Position) -> Position {
    buffer.right_of(at).filter(|right| right.line == at.line).unwrap_or(at)
}

/// Returns the place before the sign left of a place, not beyond the beginning of the line.
pub(super) fn left_in_line(buffer: &Buffer, at: Position) -> Position {
    buffer.left_of(at).filter(|left| left.line == at.line).unwrap_or(at)
}

/// Returns where a motion leads; none where there is no such place. `find` is what `;` and `,` look for again.
pub(super) fn destination(
    buffer: &Buffer,
    from: Position,
    motion: Motion,
    count: Option<usize>,
    find: Option<Find>,
) -> Option<Position> {
    let n_times = count.unwrap_or(1);
    let repeated = |step: &dyn Fn(Position) -> Position| {
        let mut at = from;
        for _ in 0..n_times {
            let next = step(at);
            if next == at {
                break;
            }
            at = next;
        }
        Some(at)
    };
    match motion {
        Motion::Left => repeated(&|at| left_in_line(buffer, at)),
        Motion::Right => repeated(&|at| right_in_line(buffer, at)),
        Motion::Up => (from.line > 0).then(|| in_line(buffer, from.line.saturating_sub(n_times), from.byte)),
        Motion::Down => lines_below(buffer, from.line, n_times).map(|line| in_line(buffer, line, from.byte)),
        Motion::Word(kind) => Some(next_word(buffer, from, kind, n_times, LastWord::EndsAnywhere)),
        Motion::WordEnd(kind) => Some(word_end(buffer, from, kind, n_times, false)),
        Motion::WordBack(kind) => repeated(&|at| word_back(buffer, at, kind)),
        Motion::LineStart => Some(Position { byte: 0, ..from }),
        Motion::LineEnd => lines_below(buffer, from.line, n_times - 1).map(|line| buffer.line_end(line)),
        Motion::FirstNonBlank => Some(first_sign(buffer, from.line)),
        Motion::TextStart => Some(first_sign(buffer, line_number(buffer, count.unwrap_or(1)))),
        Motion::TextEnd => Some(first_sign(buffer, line_number(buffer, count.unwrap_or(buffer.n_lines())))),
        Motion::Find(find) => find_char(buffer, from, find, n_times, false),
        Motion::RepeatFind { is_reversed } => {
            let find = find?;
            let find = Find { is_back: find.is_back != is_reversed, ..find };
            find_char(buffer, from, find, n_times, true)
        }
    }
}

/// The first sign of a line that is no blank, else its last.
fn first_sign(buffer: &Buffer, line: usize) -> Position {
    let at = first_non_blank(buffer, line);
    if at == buffer.line_end(line) { left_in_line(buffer, at) } else { at }
}

/// The line of a number, the first being one.
fn line_number(buffer: &Buffer, number: usize) -> usize {
    number.saturating_sub(1).min(buffer.n_lines() - 1)
}

/// The line so many further down, or the last; none from the last itself.
pub(super) fn lines_below(buffer: &Buffer, line: usize, n_lines: usize) -> Option<usize> {
    let last = buffer.n_lines() - 1;
    (n_lines == 0 || line < last).then(|| (line + n_lines).min(last))
}

fn in_line(buffer: &Buffer, line: usize, byte: usize) -> Position {
    buffer.nearest(Position { line, byte })
}

/// Whether `w` may go on to the next line with its last word: an operator's ends with the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastWord {
    EndsAnywhere,
    EndsWithItsLine,
}

/// The beginning of the nth next word; the end of the text behind the last.
pub(super) fn next_word(
    buffer: &Buffer,
    from: Position,
    kind: WordKind,
    n_times: usize,
    last_word: LastWord,
) -> Position {
    let is_line_end = |at: Position| at == buffer.line_end(at.line);
    let mut at = from;
    for n_left in (0..n_times).rev() {
        let stops = n_left == 0 && last_word == LastWord::EndsWithItsLine;
        let line = at.line;
        let Some(next) = buffer.right_of(at) else { return at };
        let behind = run_end(buffer, at, kind);
        at = if behind == at { next } else { behind };
        if stops && (at.line > line || is_line_end(at)) {
            return at;
        }
        while class(buffer, at, kind) == Class::Blank && !buffer.line(at.line).is_empty() {
            match buffer.right_of(at).filter(|_| !stops || !is_line_end(at)) {
                Some(next) => at = next,
                None => return at,
            }
        }
    }
    at
}

/// The place behind the run of signs of one kind that a place is in; blanks are no run.
pub(super) fn run_end(buffer: &Buffer, from: Position, kind: WordKind) -> Position {
    let run = class(buffer, from, kind);
    let mut at = from;
    while run != Class::Blank && class(buffer, at, kind) == run && at.byte < buffer.line(at.line).len() {
        at = right_in_line(buffer, at);
        if run == Class::Chip {
            break;
        }
    }
    at
}

/// The last sign of the nth word; the end of the text where there are not so many. `stays` has the word at hand count even
/// from its last sign, as `cw` does.
pub(super) fn word_end(
    buffer: &Buffer,
    from: Position,
    kind: WordKind,
    n_times: usize,
    mut stays: bool,
) -> Position {
    let mut at = from;
    for _ in 0..n_times {
        let run = class(buffer, at, kind);
        let behind = run_end(buffer, at, kind);
        let Some(next) = buffer.right_of(at) else { return at };
        if run == Class::Blank || behind == next && !stays {
            at = next;
            while class(buffer, at, kind) == Class::Blank {
                match buffer.right_of(at) {
                    Some(next) => at = next,
                    None => return at,
                }
            }
        }
        at = left_in_line(buffer, run_end(buffer, at, kind));
        stays = false;
    }
    at
}

/// The beginning of the word before.
fn word_back(buffer: &Buffer, from: Position, kind: WordKind) -> Position {
    let Some(mut at) = buffer.left_of(from) else { return from };
    while class(buffer, at, kind) == Class::Blank {
        if buffer.line(at.line).is_empty() {
            return at;
        }
        match buffer.left_of(at) {
            Some(left) => at = left,
            None => return at,
        }
    }
    run_start(buffer, at, kind)
}

/// The first sign of the run of signs of one kind that a place is in.
pub(super) fn run_start(buffer: &Buffer, from: Position, kind: WordKind) -> Position {
    let run = class(buffer, from, kind);
    let mut at = from;
    while run != Class::Chip && at.byte > 0 {
        let left = left_in_line(buffer, at);
        if class(buffer, left, kind) != run {
            break;
        }
        at = left;
    }
    at
}

/// The place of the nth such character; `is_again` passes over one that the caret stands right before.
fn find_char(
    buffer: &Buffer,
    from: Position,
    find: Find,
    n_times: usize,
    is_again: bool,
) -> Option<Position> {
    let line = buffer.line(from.line);
    let skips = usize::from(is_again && find.is_till && n_times == 1);
    let place = |byte| Position { byte, ..from };
    if find.is_back {
        let before = line.get(..from.byte)?;
        let mut places = before.rmatch_indices(find.char).map(|(byte, _)| byte);
        let touches = |byte: usize| byte + find.char.len_utf8() == from.byte;
        let byte = nth_found(&mut places, n_times, skips, touches)?;
        let is_till = find.is_till;
        return Some(if is_till { right_in_line(buffer, place(byte)) } else { place(byte) });
    }
    let start = right_in_line(buffer, from).byte;
    let behind = line.get(start..).filter(|_| start > from.byte)?;
    let mut places = behind.match_indices(find.char).map(|(byte, _)| start + byte);
    let byte = nth_found(&mut places, n_times, skips, |byte| byte == start)?;
    Some(if find.is_till { left_in_line(buffer, place(byte)) } else { place(byte) })
}

fn nth_found(
    places: &mut dyn Iterator<Item = usize>,
    n_times: usize,
    skips: usize,
    touches: impl Fn(usize) -> bool,
) -> Option<usize> {
    let first = places.next()?;
    let n_more = if skips > 0 && touches(first) { n_times } else { n_times - 1 };
    match n_more {
        0 => Some(first),
        n => places.nth(n - 1),
    }
}
