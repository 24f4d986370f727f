//! Vim's text objects: words, what is in quotes, what is in brackets.

use super::super::buffer::{Buffer, Position};
use super::grammar::{TextObject, WordKind};
use super::motion::{Class, class, left_in_line, right_in_line, run_end, run_start};

/// Returns where an object at a place begins and ends; none where there is no such object.
pub(super) fn bounds(
    buffer: &Buffer,
    at: Position,
    object: TextObject,
    is_around: bool,
) -> Option<(Position, Position)> {
    match object {
        TextObject::Word(kind) => Some(word(buffer, at, kind, is_around)),
        TextObject::Quotes(quote) => quotes(buffer, at, quote, is_around),
        TextObject::Brackets(open, close) => brackets(buffer, at, (open, close), is_around),
    }
}

fn word(buffer: &Buffer, at: Position, kind: WordKind, is_around: bool) -> (Position, Position) {
    let from = run_start(buffer, at, kind);
    let is_blank = class(buffer, at, kind) == Class::Blank;
    let to = if is_blank { blanks_end(buffer, at) } else { run_end(buffer, at, kind) };
    if !is_around {
        return (from, to);
    }
    // Blanks belong to the word behind them; a word takes the blanks behind it, else those before it.
    let end = if is_blank { run_end(buffer, to, kind) } else { blanks_end(buffer, to) };
    if end == to && !is_blank { (blanks_start(buffer, from), to) } else { (from, end) }
}

fn blanks_end(buffer: &Buffer, from: Position) -> Position {
    let text = &buffer.line(from.line)[from.byte..];
    Position { byte: from.byte + (text.len() - text.trim_start().len()), ..from }
}

fn blanks_start(buffer: &Buffer, from: Position) -> Position {
    Position { byte: buffer.line(from.line)[..from.byte].trim_end().len(), ..from }
}

/// Quotes are paired from the beginning of the line; the pair around the place counts, else the next one.
fn quotes(buffer: &Buffer, at: Position, quote: char, is_around: bool) -> Option<(Position, Position)> {
    let line = buffer.line(at.line);
    let is_escaped = |byte: usize| line[..byte].chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
    let marks: Vec<usize> =
        line.match_indices(quote).map(|(byte, _)| byte).filter(|byte| !is_escaped(*byte)).collect();
    let pair = marks.chunks_exact(2).find(|pair| at.byte <= pair[1])?;
    let place = |byte| Position { byte, ..at };
    if !is_around {
        return Some((place(pair[0] + quote.len_utf8()), place(pair[1])));
    }
    let (from, to) = (place(pair[0]), place(pair[1] + quote.len_utf8()));
    let end = blanks_end(buffer, to);
    Some(if end == to { (blanks_start(buffer, from), to) } else { (from, end) })
}

fn brackets(
    buffer: &Buffer,
    at: Position,
    (open, close): (char, char),
    is_around: bool,
) -> Option<(Position, Position)> {
    let from = opening(buffer, at, open, close)?;
    let to = closing(buffer, from, open, close)?;
    if is_around {
        return Some((from, right_in_line(buffer, to)));
    }
    let mut inner = (right_in_line(buffer, from), to);
    // Brackets on lines of their own stay there.
    if inner.0 == buffer.line_end(from.line) && to.line > from.line + 1 {
        inner.0 = Position { line: from.line + 1, byte: 0 };
    }
    if inner.0.line < to.line && buffer.line(to.line)[..to.byte].trim().is_empty() {
        inner.1 = buffer.line_end(to.line - 1);
    }
    Some(inner)
}

fn char_at(buffer: &Buffer, at: Position) -> Option<char> {
    buffer.line(at.line).get(at.byte..)?.chars().next()
}

/// The bracket that opens around a place, which may stand on either bracket.
fn opening(buffer: &Buffer, at: Position, open: char, close: char) -> Option<Position> {
    let mut depth = usize::from(char_at(buffer, at) != Some(close));
    let mut place = at;
    loop {
        match char_at(buffer, place) {
            Some(char) if char == open => depth -= 1,
            Some(char) if char == close => depth += 1,
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
        place = buffer.left_of(place)?;
    }
}

fn closing(buffer: &Buffer, from: Position, open: char, close: char) -> Option<Position> {
    let mut depth = 0_usize;
    let mut place = from;
    loop {
        match char_at(buffer, place) {
            Some(char) if char == open => depth += 1,
            Some(char) if char == close => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return Some(place);
        }
        place = buffer.right_of(place)?;
    }
}

/// Returns the last place of a part of the text, for a selection that stands on it.
pub(super) fn last_place(buffer: &Buffer, from: Position, to: Position) -> Position {
    if to <= from {
        return from;
    }
    if to.byte == 0 { buffer.left_of(to).unwrap_or(from) } else { left_in_line(buffer, to) }
}
