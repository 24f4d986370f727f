//! Commands of vim, carried out on the text.

use super::super::buffer::{Buffer, Position};
use super::super::command::EditCommand;
use super::super::editor::{EditOutcome, Editor};
use super::grammar::{Case, InsertAt, Motion, Operator, Selecting, Target, VimCommand};
use super::motion::{Class, class, destination, first_non_blank, left_in_line, right_in_line, run_end};
use super::text_object::{bounds, last_place};
use super::{Change, Register, Vim, VimMode, VimStep, replay};

/// How far lines are indented.
const INDENT: &str = "  ";

/// No count makes a paste longer, in bytes.
const MOST_PASTED: usize = 1 << 20;

/// A part of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) from: Position,
    /// The place behind it.
    pub(super) to: Position,
    /// Whole lines; `from` and `to` are the ends of the first and the last.
    pub(super) is_lines: bool,
}

/// How much was selected when something was done to it, for the time it is done again elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Lines(usize),
    Signs(usize),
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
                if let Some((from, to)) = bounds(editor.buffer(), editor.caret(), object, is_around) {
                    self.anchor = from;
                    editor.set_caret(last_place(editor.buffer(), from, to));
                }
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
        let (from, to) = (anchor.min(caret), anchor.max(caret));
        match self.mode {
            VimMode::VisualLine => lines(buffer, from.line, to.line),
            _ => Part { from, to: buffer.right_of(to).unwrap_or(to), is_lines: false },
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
                return VimStep::Taken;
            }
        };
        for step in 0..count.unwrap_or(1) {
            if editor.apply(row) == EditOutcome::Nothing {
                let is_at_end = step == 0 && self.mode == VimMode::Normal;
                return if is_at_end { beyond } else { VimStep::Taken };
            }
        }
        VimStep::Taken
    }

    fn select(&mut self, editor: &Editor, selecting: Selecting) {
        let wanted = match selecting {
            Selecting::Characters => VimMode::Visual,
            Selecting::Lines => VimMode::VisualLine,
        };
        if self.mode == VimMode::Normal {
            self.anchor = editor.caret();
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
        let extent = part.map(|part| measured(editor.buffer(), part));
        let change = Change { extent, ..change };
        self.mode = VimMode::Normal;
        let is_done = self.apply(editor, &change, part);
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
                let part = selected.or_else(|| self.part_of(editor, operator, target, count));
                part.map(|part| self.operate(editor, operator, target, part)).is_some()
            }
            VimCommand::Insert(at) => {
                begin_insertion(editor, at);
                self.mode = VimMode::Insert;
                true
            }
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

    /// Says which part of the text an operator works on.
    fn part_of(
        &mut self,
        editor: &Editor,
        operator: Operator,
        target: Target,
        count: Option<usize>,
    ) -> Option<Part> {
        let (buffer, caret) = (editor.buffer(), editor.caret());
        let motion = match target {
            Target::Selection => return None,
            Target::Lines => return Some(lines(buffer, caret.line, caret.line + count.unwrap_or(1) - 1)),
            Target::Object { object, is_around } => {
                let (from, to) = bounds(buffer, caret, object, is_around)?;
                return Some(Part { from, to, is_lines: false });
            }
            Target::Motion(motion) => motion,
        };
        if let Motion::Find(find) = motion {
            self.find = Some(find);
        }
        if let (Operator::Change, Motion::Word(kind)) = (operator, motion)
            && class(buffer, caret, kind) != Class::Blank
        {
            // A changed word keeps the blanks behind it.
            let mut to = run_end(buffer, caret, kind);
            if let Some(n_more) = count.and_then(|count| count.checked_sub(2)) {
                let last = left_in_line(buffer, to);
                let end = destination(buffer, last, Motion::WordEnd(kind), Some(n_more + 1), None)?;
                to = right_in_line(buffer, end);
            }
            return Some(Part { from: caret, to, is_lines: false });
        }
        let mut there = destination(buffer, caret, motion, count, self.find)?;
        if matches!(motion, Motion::Up | Motion::Down | Motion::TextStart | Motion::TextEnd) {
            return Some(lines(buffer, caret.line.min(there.line), caret.line.max(there.line)));
        }
        if matches!(motion, Motion::Word(_))
            && there.line > caret.line
            && there <= first_non_blank(buffer, there.line)
        {
            // The last word of a line does not take the line's end along.
            there = buffer.line_end(there.line - 1);
        }
        let is_inclusive = match motion {
            Motion::WordEnd(_) => true,
            Motion::Find(find) => !find.is_back,
            Motion::RepeatFind { is_reversed } => self.find.is_some_and(|it| it.is_back == is_reversed),
            _ => false,
        };
        let (from, to) = (caret.min(there), caret.max(there));
        let to = if is_inclusive { right_in_line(buffer, to) } else { to };
        (from < to || operator == Operator::Change).then_some(Part { from, to, is_lines: false })
    }

    fn operate(&mut self, editor: &mut Editor, operator: Operator, target: Target, part: Part) {
        match operator {
            Operator::Yank => {
                self.keep(editor, part);
                if !part.is_lines || target == Target::Selection {
                    editor.set_caret(part.from);
                }
            }
            Operator::Delete => {
                self.keep(editor, part);
                delete(editor, part);
            }
            Operator::Change => {
                self.keep(editor, part);
                editor.replace_part(part.from, part.to, "");
                self.mode = VimMode::Insert;
            }
            Operator::Indent | Operator::Dedent => indent(editor, part, operator),
        }
    }

    /// Keeps a part of the text for the next paste, and for Ctrl+Y.
    fn keep(&mut self, editor: &mut Editor, part: Part) {
        let text = editor.buffer().slice(part.from, part.to);
        if !text.is_empty() || part.is_lines {
            editor.keep_killed(&text);
            self.register = Register { text, is_lines: part.is_lines };
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
            let all = if is_lines && !part.is_lines { format!("\n{all}\n") } else { all };
            editor.replace_part(part.from, part.to, &all);
            let place = match part.is_lines {
                true => first_non_blank(editor.buffer(), part.from.line),
                false => last_place(editor.buffer(), part.from, editor.caret()),
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
            editor.set_caret(last_place(editor.buffer(), at, editor.caret()));
        }
        true
    }
}

/// Whole lines, as far as there are such.
fn lines(buffer: &Buffer, first: usize, last: usize) -> Part {
    let last = last.min(buffer.n_lines() - 1);
    Part { from: Position { line: first, byte: 0 }, to: buffer.line_end(last), is_lines: true }
}

fn measured(buffer: &Buffer, part: Part) -> Extent {
    match part.is_lines {
        true => Extent::Lines(part.to.line - part.from.line + 1),
        false => {
            let mut n_signs = 0;
            let mut at = part.from;
            while let Some(next) = buffer.right_of(at).filter(|_| at < part.to) {
                (at, n_signs) = (next, n_signs + 1);
            }
            Extent::Signs(n_signs)
        }
    }
}

/// The part of the same extent that begins at the caret.
fn extended(editor: &Editor, extent: Extent) -> Part {
    let (buffer, from) = (editor.buffer(), editor.caret());
    match extent {
        Extent::Lines(n) => lines(buffer, from.line, from.line + n - 1),
        Extent::Signs(n) => {
            let to = (0..n).fold(from, |at, _| buffer.right_of(at).unwrap_or(at));
            Part { from, to, is_lines: false }
        }
    }
}

fn delete(editor: &mut Editor, part: Part) {
    let Part { from, to, is_lines } = part;
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
    for line in part.from.line..=part.to.line {
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
    let part = selected.unwrap_or(Part { from, to, is_lines: false });
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
        Some(part) => (part.from.line, (part.to.line - part.from.line).max(1)),
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
