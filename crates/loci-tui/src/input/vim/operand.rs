//! What an operator of vim takes: the part of the text that a motion, an object or a count of lines means for it.

use super::super::buffer::{Buffer, Position};
use super::grammar::{Find, Motion, Operator, Target, TextObject};
use super::motion::{
    Class, LastWord, class, destination, first_non_blank, lines_below, next_word, right_in_line, word_end,
};
use super::text_object::bounds;

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: Position,
    /// The place behind it.
    pub(super) to: Position,
    /// The last line that it touches.
    pub(super) last_line: usize,
    /// Whole lines; `from` and `to` are the ends of the first and the last.
    pub(super) is_lines: bool,
}

impl Part {
    /// The signs from a place to another.
    pub(super) fn signs(from: Position, to: Position) -> Self {
        Self { from, to, last_line: to.line, is_lines: false }
    }

    /// Whole lines, as far as there are such.
    pub(super) fn lines(buffer: &Buffer, first: usize, last: usize) -> Self {
        let last_line = last.min(buffer.n_lines() - 1);
        let from = Position { line: first, byte: 0 };
        Self { from, to: buffer.line_end(last_line), last_line, is_lines: true }
    }
}

/// Returns the part that an operator works on, and where the caret is while it does; none where there is no such part.
pub(super) fn part_of(
    buffer: &Buffer,
    caret: Position,
    (operator, target): (Operator, Target),
    count: Option<usize>,
    find: Option<Find>,
) -> Option<(Part, Position)> {
    let (part, there) = match target {
        Target::Selection => return None,
        Target::Lines => {
            let last = lines_below(buffer, caret.line, count.unwrap_or(1) - 1)?;
            (Part::lines(buffer, caret.line, last), caret)
        }
        Target::Object { object, is_around } => {
            let (from, to) = bounds(buffer, (caret, caret), object, is_around, count.unwrap_or(1))?;
            // What stands between brackets on lines of their own is whole lines.
            let is_lines = matches!(object, TextObject::Brackets(..))
                && !is_around
                && from.byte == 0
                && to == buffer.line_end(to.line);
            let part = match is_lines {
                true => Part::lines(buffer, from.line, to.line),
                false => Part::signs(from, to),
            };
            (part, from)
        }
        Target::Motion(motion) => {
            let (there, is_inclusive) = operand_end(buffer, caret, operator, motion, count, find)?;
            let (from, to) = (caret.min(there), caret.max(there));
            let part = match motion {
                Motion::Up | Motion::Down | Motion::TextStart | Motion::TextEnd => {
                    Part::lines(buffer, from.line, to.line)
                }
                _ if is_inclusive => Part::signs(from, right_in_line(buffer, to)),
                _ => without_line_start(buffer, from, to),
            };
            (part, from)
        }
    };
    match operator {
        Operator::Indent | Operator::Dedent => {
            Some((Part::lines(buffer, part.from.line, part.last_line), part.from))
        }
        Operator::Delete if part.from == part.to && (!part.is_lines || buffer.is_empty()) => None,
        Operator::Delete if leaves_blanks(buffer, part) && !matches!(target, Target::Object { .. }) => {
            Some((Part::lines(buffer, part.from.line, part.last_line), there))
        }
        Operator::Delete | Operator::Change | Operator::Yank => Some((part, there)),
    }
}

/// Where a motion ends for an operator, and whether the sign there belongs to it.
fn operand_end(
    buffer: &Buffer,
    caret: Position,
    operator: Operator,
    motion: Motion,
    count: Option<usize>,
    find: Option<Find>,
) -> Option<(Position, bool)> {
    let n_times = count.unwrap_or(1);
    let is_on_blank = |kind| class(buffer, caret, kind) == Class::Blank;
    Some(match motion {
        // A changed word keeps the blanks behind it.
        Motion::Word(kind) if operator == Operator::Change && !is_on_blank(kind) => {
            (word_end(buffer, caret, kind, n_times, true), true)
        }
        Motion::Word(kind) => (next_word(buffer, caret, kind, n_times, LastWord::EndsWithItsLine), false),
        Motion::WordEnd(kind) => (word_end(buffer, caret, kind, n_times, false), true),
        _ => {
            let there = destination(buffer, caret, motion, count, find)?;
            let is_inclusive = match motion {
                Motion::LineEnd => true,
                // There is no word before the first.
                Motion::WordBack(_) if there == caret => return None,
                Motion::Find(find) => !find.is_back,
                Motion::RepeatFind { is_reversed } => find.is_some_and(|it| it.is_back == is_reversed),
                _ => false,
            };
            (there, is_inclusive)
        }
    })
}

/// A part that ends at the beginning of a line ends with the line before, and is whole lines where it began at the
/// first sign of one.
fn without_line_start(buffer: &Buffer, from: Position, to: Position) -> Part {
    if to.byte > 0 || to.line == from.line {
        return Part::signs(from, to);
    }
    match from <= first_non_blank(buffer, from.line) {
        true => Part::lines(buffer, from.line, to.line - 1),
        false => Part::signs(from, buffer.line_end(to.line - 1)),
    }
}

/// Tells whether nothing but blanks would be left of several lines.
fn leaves_blanks(buffer: &Buffer, part: Part) -> bool {
    let behind = buffer.line(part.to.line).get(part.to.byte..).unwrap_or_default();
    !part.is_lines
        && part.last_line > part.from.line
        && behind.trim().is_empty()
        && part.from <= first_non_blank(buffer, part.from.line)
}
