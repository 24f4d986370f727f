//! Commands of vim, carried out on the text.

use unicode_segmentation::UnicodeSegmentation;

use super::super::buffer::{Buffer, Position};
use super::super::command::EditCommand;
use super::super::editor::{EditOutcome, Editor};
use super::grammar::{Case, InsertAt, Motion, Operator, Selecting, Target, TextObject, VimCommand};
use super::motion::{destination, first_non_blank, left_in_line, right_in_line};
use super::operand::{Part, part_of};
use super::text_object::{bounds, last_place};
use super::{Change, Register, Vim, VimMode, VimStep, replay};

/// How far lines are indented.
const INDENT: &str = "  ";

/// No count indents further.
const MOST_INDENTED: usize = 64;

/// No count makes a paste longer, in bytes.
const MOST_PASTED: usize = 1 << 20;

/// How much was selected when something was done to it, for the time it is done again elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Lines(usize),
    /// Signs of one line.
    Signs(usize),
    /// So many lines, and so many signs of the last.
    Rows {
        n_lines: usize,
        n_signs: usize,
    },
    /// So many lines, to the end of the last and with it.
    ToLineEnd {
        n_lines: usize,
    },
}

impl Vim {
    /// Does what keys mean.
    pub(super) fn execute(
        &mut self,
        editor: &mut Editor,
        command: VimCommand,
        count: Option<usize>,
    ) -> VimStep {
        match command {
            VimCommand::Move(motion) => return self.go(editor, motion, count),
            VimCommand::Repeat => self.repeat(editor, count),
            VimCommand::Undo => {
                for _ in 0..count.unwrap_or(1) {
                    editor.undo_group();
                }
            }
            VimCommand::Select(selecting) => self.select(editor, selecting),
            VimCommand::SelectObject { object, is_around } => {
                self.select_object(editor, object, is_around, count.unwrap_or(1));
            }
            VimCommand::SwapEnds => {
                let caret = editor.caret();
                editor.set_caret(editor.buffer().nearest(self.anchor));
                self.anchor = caret;
            }
            VimCommand::HistorySearch => return VimStep::HistorySearch,
            VimCommand::Help => return VimStep::Help,
            VimCommand::Operate(..)
            | VimCommand::Insert(_)
            | VimCommand::Replace(_)
            | VimCommand::ChangeCase(_)
            | VimCommand::Paste { .. }
            | VimCommand::Join => {
                self.change(editor, Change { command, count, extent: None, typed: Vec::new() });
            }
        }
        VimStep::Taken
    }

    /// What is selected, whichever end the caret is at.
    pub(super) fn selected(&self, editor: &Editor) -> Part {
        let buffer = editor.buffer();
        let (anchor, caret) = (buffer.nearest(self.anchor), editor.caret());
        match self.mode {
            VimMode::VisualLine => {
                Part::lines(buffer, anchor.line.min(caret.line), anchor.line.max(caret.line))
            }
            _ => selection(buffer, anchor, caret),
        }
    }

    fn go(&mut self, editor: &mut Editor, motion: Motion, count: Option<usize>) -> VimStep {
        if let Motion::Find(find) = motion {
            self.find = Some(find);
        }
        let (row, beyond) = match motion {
            Motion::Up => (EditCommand::Up, VimStep::HistoryPrevious),
            Motion::Down => (EditCommand::Down, VimStep::HistoryNext),
            _ => {
                let to = destination(editor.buffer(), editor.caret(), motion, count, self.find);
                to.into_iter().for_each(|to| editor.set_caret(to));
                self.keeps_line_end = motion == Motion::LineEnd;
                return VimStep::Taken;
            }
        };
        for step in 0..count.unwrap_or(1) {
            if editor.apply(row) == EditOutcome::Nothing {
                let is_at_end = step == 0 && self.mode == VimMode::Normal;
                return if is_at_end { beyond } else { VimStep::Taken };
            }
        }
        if self.keeps_line_end {
            editor.nudge_caret(editor.buffer().line_end(editor.caret().line));
        }
        VimStep::Taken
    }

    fn select_object(&mut self, editor: &mut Editor, object: TextObject, is_around: bool, n_times: usize) {
        let (buffer, caret) = (editor.buffer(), editor.caret());
        let anchor = buffer.nearest(self.anchor);
        let Some((from, to)) = bounds(buffer, (anchor, caret), object, is_around, n_times) else { return };
        self.mode = VimMode::Visual;
        self.keeps_line_end = false;
        if matches!(object, TextObject::Word(_)) && caret < anchor {
            editor.set_caret(from);
            return;
        }
        self.anchor = from;
        let is_lines =
            from.byte == 0 && to == buffer.line_end(to.line) && matches!(object, TextObject::Brackets(..));
        let last = if is_lines { to } else { last_place(buffer, from, to) };
        editor.set_caret(last);
    }

    fn select(&mut self, editor: &Editor, selecting: Selecting) {
        let wanted = match selecting {
            Selecting::Characters => VimMode::Visual,
            Selecting::Lines => VimMode::VisualLine,
        };
        if self.mode == VimMode::Normal {
            self.anchor = editor.caret();
            self.keeps_line_end = false;
        }
        self.mode = if self.mode == wanted { VimMode::Normal } else { wanted };
    }

    /// Makes the last change again, here.
    fn repeat(&mut self, editor: &mut Editor, count: Option<usize>) {
        let Some(last) = self.last_change.clone() else { return };
        let typed = last.typed.clone();
        self.change(editor, Change { count: count.or(last.count), typed: Vec::new(), ..last });
        if self.mode == VimMode::Insert {
            replay(editor, &typed);
            if let Some(insertion) = &mut self.insertion {
                insertion.typed = typed;
            }
            self.leave_insert(editor);
        }
    }

    /// Makes a change; what began INSERT mode is whole once that is left.
    fn change(&mut self, editor: &mut Editor, change: Change) {
        editor.begin_undo_group();
        let is_selected = matches!(self.mode, VimMode::Visual | VimMode::VisualLine);
        let part = match (is_selected, change.extent) {
            (true, _) => Some(self.selected(editor)),
            (false, Some(extent)) => Some(extended(editor, extent)),
            (false, None) => None,
        };
        let extent = part.map(|part| measured(editor.buffer(), part, is_selected && self.keeps_line_end));
        // Lines that were selected upwards leave the caret where it is.
        let caret = Some(editor.caret()).filter(|caret| caret.line < self.anchor.line);
        let change = Change { extent, ..change };
        self.mode = VimMode::Normal;
        self.keeps_line_end = false;
        let is_done = self.apply(editor, &change, part);
        let keeps_text =
            |command| matches!(command, VimCommand::Operate(Operator::Yank, _) | VimCommand::ChangeCase(_));
        if is_selected && part.is_some_and(|part| part.is_lines) && keeps_text(change.command) {
            editor.set_caret(caret.unwrap_or(Position { byte: 0, ..editor.caret() }));
        }
        if self.mode == VimMode::Insert {
            self.insertion = Some(change);
            return;
        }
        editor.end_undo_group();
        let is_yank = matches!(change.command, VimCommand::Operate(Operator::Yank, _));
        if is_done && !is_yank {
            self.last_change = Some(change);
        }
    }

    /// Tells whether there was something to change.
    fn apply(&mut self, editor: &mut Editor, change: &Change, selected: Option<Part>) -> bool {
        let count = change.count;
        match change.command {
            VimCommand::Operate(operator, target) => {
                if let Target::Motion(Motion::Find(find)) = target {
                    self.find = Some(find);
                }
                let (buffer, caret) = (editor.buffer(), editor.caret());
                let part = match selected {
                    Some(part) => Some((part, part.from)),
                    None => part_of(buffer, caret, (operator, target), count, self.find),
                };
                let n_times = if selected.is_some() { count.unwrap_or(1) } else { 1 };
                part.map(|(part, caret)| self.operate(editor, operator, (part, caret), n_times)).is_some()
            }
            VimCommand::Insert(at) => {
                begin_insertion(editor, at);
                self.mode = VimMode::Insert;
                true
            }
            VimCommand::Replace('\n') if has_signs(editor, count.unwrap_or(1)) => {
                split_line(editor, count.unwrap_or(1))
            }
            VimCommand::Replace(_) if selected.is_none() && !has_signs(editor, count.unwrap_or(1)) => false,
            VimCommand::Replace(char) => {
                let is_done = rewrite(editor, selected, count, |cluster, text| {
                    text.push(if cluster == "\n" { '\n' } else { char });
                });
                if is_done && selected.is_none() {
                    editor.set_caret(left_in_line(editor.buffer(), editor.caret()));
                }
                is_done
            }
            VimCommand::ChangeCase(case) => rewrite(editor, selected, count, |cluster, text| {
                cluster.chars().for_each(|char| push_in_case(text, char, case));
            }),
            VimCommand::Paste { is_behind } => self.paste(editor, selected, is_behind, count.unwrap_or(1)),
            VimCommand::Join => join(editor, selected, count),
            VimCommand::Move(_)
            | VimCommand::Undo
            | VimCommand::Repeat
            | VimCommand::Select(_)
            | VimCommand::SelectObject { .. }
            | VimCommand::SwapEnds
            | VimCommand::HistorySearch
            | VimCommand::Help => false,
        }
    }

    fn operate(
        &mut self,
        editor: &mut Editor,
        operator: Operator,
        (part, caret): (Part, Position),
        n_times: usize,
    ) {
        match operator {
            Operator::Yank => {
                self.keep(editor, part);
                editor.set_caret(caret);
            }
            Operator::Delete => {
                self.keep_removed(editor, part);
                delete(editor, part);
            }
            Operator::Change => {
                self.keep_removed(editor, part);
                editor.replace_part(part.from, part.to, "");
                self.mode = VimMode::Insert;
            }
            Operator::Indent | Operator::Dedent => {
                (0..n_times.min(MOST_INDENTED)).for_each(|_| indent(editor, part, operator));
            }
        }
    }

    /// Keeps a part of the text for the next paste, and for Ctrl+Y.
    fn keep(&mut self, editor: &mut Editor, part: Part) {
        let text = editor.buffer().slice(part.from, part.to);
        if !text.is_empty() {
            editor.keep_killed(&text);
        }
        self.register = Register { text, is_lines: part.is_lines };
    }

    fn keep_removed(&mut self, editor: &mut Editor, part: Part) {
        if part.from < part.to || part.is_lines && !editor.buffer().is_empty() {
            self.keep(editor, part);
        }
    }

    fn paste(
        &mut self,
        editor: &mut Editor,
        selected: Option<Part>,
        is_behind: bool,
        n_times: usize,
    ) -> bool {
        let Register { text, is_lines } = self.register.clone();
        if text.is_empty() && !is_lines {
            return false;
        }
        let separator = if is_lines { "\n" } else { "" };
        let n_times = n_times.min(MOST_PASTED / text.len().max(1)).max(1);
        let all = vec![text.as_str(); n_times].join(separator);
        if let Some(part) = selected {
            self.keep(editor, part);
            let surrounded = if is_lines && !part.is_lines { format!("\n{all}\n") } else { all.clone() };
            editor.replace_part(part.from, part.to, &surrounded);
            let first_line = part.from.line + usize::from(is_lines && !part.is_lines);
            let place = match is_lines || part.is_lines {
                true => first_non_blank(editor.buffer(), first_line),
                false => pasted_place(editor, part.from, &all),
            };
            editor.set_caret(place);
            return true;
        }
        let caret = editor.caret();
        if is_lines {
            let line = if is_behind { caret.line + 1 } else { caret.line };
            let (at, all) = match is_behind {
                true => (editor.buffer().line_end(caret.line), format!("\n{all}")),
                false => (Position { byte: 0, ..caret }, format!("{all}\n")),
            };
            editor.replace_part(at, at, &all);
            editor.set_caret(first_non_blank(editor.buffer(), line));
        } else {
            let at = if is_behind { right_in_line(editor.buffer(), caret) } else { caret };
            editor.replace_part(at, at, &all);
            editor.set_caret(pasted_place(editor, at, &all));
        }
        true
    }
}

/// Where the caret stands once signs were put in: on their last, or on the first where they are of several lines.
fn pasted_place(editor: &Editor, from: Position, text: &str) -> Position {
    if text.contains('\n') { from } else { last_place(editor.buffer(), from, editor.caret()) }
}

/// What is selected from a sign to another, and with both.
fn selection(buffer: &Buffer, one: Position, other: Position) -> Part {
    let (from, last) = (one.min(other), one.max(other));
    Part { from, to: buffer.right_of(last).unwrap_or(last), last_line: last.line, is_lines: false }
}

fn measured(buffer: &Buffer, part: Part, is_to_line_end: bool) -> Extent {
    let n_lines = part.last_line - part.from.line + 1;
    let start = if n_lines == 1 { part.from } else { Position { line: part.last_line, byte: 0 } };
    let mut n_signs = 0;
    let mut at = start;
    while let Some(next) = buffer.right_of(at).filter(|_| at < part.to) {
        (at, n_signs) = (next, n_signs + 1);
    }
    match part.is_lines {
        true => Extent::Lines(n_lines),
        false if is_to_line_end => Extent::ToLineEnd { n_lines },
        false if n_lines == 1 => Extent::Signs(n_signs),
        false => Extent::Rows { n_lines, n_signs },
    }
}

/// The part of the same extent that begins at the caret.
fn extended(editor: &Editor, extent: Extent) -> Part {
    let (buffer, from) = (editor.buffer(), editor.caret());
    let line_below = |n_lines: usize| (from.line + n_lines - 1).min(buffer.n_lines() - 1);
    let signs_on =
        |from: Position, n_signs: usize| (1..n_signs).fold(from, |at, _| right_in_line(buffer, at));
    match extent {
        Extent::Lines(n_lines) => Part::lines(buffer, from.line, line_below(n_lines)),
        Extent::Signs(n_signs) => selection(buffer, from, signs_on(from, n_signs)),
        Extent::Rows { n_lines, n_signs } => {
            let start = Position { line: line_below(n_lines), byte: 0 };
            selection(buffer, from, signs_on(start, n_signs))
        }
        Extent::ToLineEnd { n_lines } => selection(buffer, from, buffer.line_end(line_below(n_lines))),
    }
}

fn delete(editor: &mut Editor, part: Part) {
    let Part { from, to, is_lines, .. } = part;
    if !is_lines {
        editor.replace_part(from, to, "");
        return;
    }
    // A line goes with one of its ends.
    let last = editor.buffer().n_lines() - 1;
    let (from, to) = match (to.line < last, from.line.checked_sub(1)) {
        (true, _) => (from, Position { line: to.line + 1, byte: 0 }),
        (false, Some(before)) => (editor.buffer().line_end(before), to),
        (false, None) => (from, to),
    };
    editor.replace_part(from, to, "");
    let line = part.from.line.min(editor.buffer().n_lines() - 1);
    editor.set_caret(first_non_blank(editor.buffer(), line));
}

fn indent(editor: &mut Editor, part: Part, operator: Operator) {
    for line in part.from.line..=part.last_line {
        let text = editor.buffer().line(line);
        let (n_removed, added) = match operator {
            Operator::Indent if !text.is_empty() => (0, INDENT),
            Operator::Dedent if text.starts_with('\t') => (1, ""),
            Operator::Dedent => (text.len() - text.trim_start_matches(' ').len(), ""),
            _ => continue,
        };
        let start = Position { line, byte: 0 };
        editor.replace_part(start, Position { line, byte: n_removed.min(INDENT.len()) }, added);
    }
    editor.set_caret(first_non_blank(editor.buffer(), part.from.line));
}

fn begin_insertion(editor: &mut Editor, at: InsertAt) {
    let (buffer, caret) = (editor.buffer(), editor.caret());
    let start = Position { byte: 0, ..caret };
    match at {
        InsertAt::Caret => {}
        InsertAt::BehindCaret => editor.set_caret(right_in_line(buffer, caret)),
        InsertAt::FirstNonBlank => editor.set_caret(first_non_blank(buffer, caret.line)),
        InsertAt::LineEnd => editor.set_caret(buffer.line_end(caret.line)),
        InsertAt::LineBelow => {
            let end = buffer.line_end(caret.line);
            editor.replace_part(end, end, "\n");
        }
        InsertAt::LineAbove => {
            editor.replace_part(start, start, "\n");
            editor.set_caret(start);
        }
    }
}

/// Writes signs anew: those that are selected, else as many from the caret on as counted, if the line has as many.
fn rewrite(
    editor: &mut Editor,
    selected: Option<Part>,
    count: Option<usize>,
    write: impl Fn(&str, &mut String),
) -> bool {
    let from = editor.caret();
    let buffer = editor.buffer();
    let to = destination(buffer, from, Motion::Right, count, None).unwrap_or(from);
    let part = selected.unwrap_or(Part::signs(from, to));
    let mut text = String::new();
    let mut at = part.from;
    while let Some(next) = buffer.right_of(at).filter(|_| at < part.to) {
        write(&buffer.slice(at, next), &mut text);
        at = next;
    }
    if part.from == part.to {
        return false;
    }
    editor.replace_part(part.from, part.to, &text);
    if selected.is_some() {
        editor.set_caret(part.from);
    }
    true
}

/// Puts one line end in the place of so many signs.
fn split_line(editor: &mut Editor, n_signs: usize) -> bool {
    let from = editor.caret();
    let to = (0..n_signs).fold(from, |at, _| right_in_line(editor.buffer(), at));
    editor.replace_part(from, to, "\n");
    true
}

/// Tells whether so many signs stand from the caret on in its line.
fn has_signs(editor: &Editor, n_signs: usize) -> bool {
    let behind = &editor.buffer().line(editor.caret().line)[editor.caret().byte..];
    behind.graphemes(true).nth(n_signs - 1).is_some()
}

fn push_in_case(text: &mut String, char: char, case: Case) {
    let is_up = match case {
        Case::Toggled => char.is_lowercase(),
        Case::Lower => false,
        Case::Upper => true,
    };
    match is_up {
        true => text.extend(char.to_uppercase()),
        false => text.extend(char.to_lowercase()),
    }
}

/// Joins lines with one blank between, and puts the caret there.
fn join(editor: &mut Editor, selected: Option<Part>, count: Option<usize>) -> bool {
    let (first, n_joints) = match selected {
        Some(part) => {
            editor.set_caret(part.from);
            (part.from.line, (part.last_line - part.from.line).max(1))
        }
        None => (editor.caret().line, count.unwrap_or(2).max(2) - 1),
    };
    let mut is_done = false;
    for _ in 0..n_joints {
        let buffer = editor.buffer();
        if first + 1 >= buffer.n_lines() {
            break;
        }
        let from = buffer.line_end(first);
        let to = first_non_blank(buffer, first + 1);
        let is_apart = from.byte > 0
            && !buffer.line(first).ends_with(char::is_whitespace)
            && to != buffer.line_end(first + 1);
        editor.replace_part(from, to, if is_apart { " " } else { "" });
        editor.set_caret(from);
        is_done = true;
    }
    is_done
}
