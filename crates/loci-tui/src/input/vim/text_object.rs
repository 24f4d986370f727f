//! Vim's text objects: words, what is in quotes, what is in brackets.

use super::super::buffer::{Buffer, Position};
use super::grammar::{TextObject, WordKind};
use super::motion::{Class, class, left_in_line, right_in_line, run_end, run_start};

/// Returns where an object at a place begins and ends; none where there is no such object. `selected` has where a
/// selection began and where the caret is: one that holds more than a sign is extended.
pub(super) fn bounds(
    buffer: &Buffer,
    selected: (Position, Position),
    object: TextObject,
    is_around: bool,
    n_times: usize,
) -> Option<(Position, Position)> {
    match object {
        TextObject::Word(kind) => words(buffer, selected, kind, is_around, n_times),
        TextObject::Quotes(quote) => quotes(buffer, selected, quote, is_around),
        TextObject::Brackets(open, close) => {
            let (anchor, caret) = selected;
            let (from, last) = (anchor.min(caret), anchor.max(caret));
            let is_larger = |(start, end): (Position, Position)| {
                anchor == caret
                    || start < from && last < end
                    || start <= from && right_in_line(buffer, last) < end
            };
            let mut at = from;
            let mut n_left = n_times;
            loop {
                let open_at = match opening(buffer, at, open, close) {
                    Some(open_at) => open_at,
                    // Before the brackets of a line the next ones count.
                    None if at == caret && n_times == 1 => next_in_line(buffer, at, open)?,
                    None => return None,
                };
                let found = brackets(buffer, open_at, (open, close), is_around)?;
                n_left -= usize::from(is_larger(found));
                if n_left == 0 {
                    return Some(found);
                }
                at = buffer.left_of(open_at)?;
            }
        }
    }
}

/// So many words, each with its blanks or, without them, words and blanks in turn; they stay in their line.
fn words(
    buffer: &Buffer,
    (anchor, caret): (Position, Position),
    kind: WordKind,
    is_around: bool,
    n_times: usize,
) -> Option<(Position, Position)> {
    if caret < anchor {
        let mut from = caret;
        for _ in 0..n_times {
            from = words_before(buffer, from, kind, is_around)?;
        }
        return Some((from, right_in_line(buffer, anchor)));
    }
    let is_extended = anchor < caret;
    let mut from = if is_extended { anchor } else { run_start(buffer, caret, kind) };
    let mut to = if is_extended { right_in_line(buffer, caret) } else { from };
    let mut ends_with_word = false;
    for _ in 0..n_times {
        let begun = to;
        let is_blank = class(buffer, to, kind) == Class::Blank;
        to = piece_end(buffer, to, kind);
        ends_with_word = is_around && is_blank;
        if is_around {
            let behind = piece_end(buffer, to, kind);
            let is_followed = is_blank || class(buffer, to, kind) == Class::Blank;
            ends_with_word |= !is_followed || behind == to;
            to = if is_followed { behind } else { to };
        }
        let is_missing = to == begun && (is_extended || n_times > 1);
        if is_missing
            || is_around && is_blank && class(buffer, left_in_line(buffer, to), kind) == Class::Blank
        {
            return None;
        }
    }
    // A word takes the blanks behind it, else those before it, if they are no indent.
    let starts_with_word = class(buffer, from, kind) != Class::Blank;
    if ends_with_word && starts_with_word && !is_extended {
        let start = blanks_start(buffer, from);
        from = if start.byte > 0 { start } else { from };
    }
    Some((from, to))
}

/// Where the words before a place begin, for a selection that is extended backwards.
fn words_before(buffer: &Buffer, at: Position, kind: WordKind, is_around: bool) -> Option<Position> {
    let left = |at: Position| {
        let left = left_in_line(buffer, at);
        (left != at).then(|| run_start(buffer, left, kind))
    };
    let first = left(at)?;
    let is_blank = class(buffer, first, kind) == Class::Blank;
    if !is_around {
        return Some(first);
    }
    let second = left(first).filter(|second| is_blank || class(buffer, *second, kind) == Class::Blank);
    Some(second.unwrap_or(first))
}

/// The end of the run of blanks, or of the word, that begins at a place.
fn piece_end(buffer: &Buffer, at: Position, kind: WordKind) -> Position {
    match class(buffer, at, kind) {
        Class::Blank => blanks_end(buffer, at),
        _ => run_end(buffer, at, kind),
    }
}

fn blanks_end(buffer: &Buffer, from: Position) -> Position {
    let text = &buffer.line(from.line)[from.byte..];
    Position { byte: from.byte + (text.len() - text.trim_start().len()), ..from }
}

fn blanks_start(buffer: &Buffer, from: Position) -> Position {
    Position { byte: buffer.line(from.line)[..from.byte].trim_end().len(), ..from }
}

/// Quotes are paired from the beginning of the line; the pair around the place counts, else the next one.
fn quotes(
    buffer: &Buffer,
    (anchor, at): (Position, Position),
    quote: char,
    is_around: bool,
) -> Option<(Position, Position)> {
    let line = buffer.line(at.line);
    let is_escaped = |byte: usize| line[..byte].chars().rev().take_while(|c| *c == '\\').count() % 2 == 1;
    let marks: Vec<usize> =
        line.match_indices(quote).map(|(byte, _)| byte).filter(|byte| !is_escaped(*byte)).collect();
    let pair = marks.chunks_exact(2).find(|pair| at.byte <= pair[1])?;
    let place = |byte| Position { byte, ..at };
    let inner = (place(pair[0] + quote.len_utf8()), place(pair[1]));
    // Once more, the quotes themselves are selected.
    let is_selected = anchor < at && anchor == inner.0 && right_in_line(buffer, at) == inner.1;
    if is_selected && !is_around {
        return Some((place(pair[0]), place(pair[1] + quote.len_utf8())));
    }
    if !is_around {
        return Some(inner);
    }
    let (from, to) = (place(pair[0]), place(pair[1] + quote.len_utf8()));
    let end = blanks_end(buffer, to);
    Some(if end == to { (blanks_start(buffer, from), to) } else { (from, end) })
}

fn brackets(
    buffer: &Buffer,
    from: Position,
    (open, close): (char, char),
    is_around: bool,
) -> Option<(Position, Position)> {
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

fn next_in_line(buffer: &Buffer, at: Position, char: char) -> Option<Position> {
    let byte = buffer.line(at.line)[at.byte..].find(char)?;
    Some(Position { byte: at.byte + byte, ..at })
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
