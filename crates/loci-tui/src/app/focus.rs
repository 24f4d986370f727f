//! The focus view (`/focus`, `viewMode`): the last prompt, one line about the calls of its turn, and the answer.
//!
//! Inline, what a turn says is held back until it is over, since what is in the scrollback stays there: then the line and the
//! last answer are written. Fullscreen shows the same of the last turn (`fullscreen::source`).

use std::rc::Rc;

use super::conversation::Item;
use super::transcript_view::{Spacing, TranscriptView, ViewContext};
use super::virtual_list::BlockRows;
use crate::block::{Block, CallBlock, CallState};
use crate::render::{DiffStat, RenderContext, diff_stat, labelled, render_block};
use crate::text::{Row, sanitize_line, wrap};
use crate::theme::Role;

/// What the calls of a turn were.
#[derive(Debug, Default)]
pub(super) struct CallTally {
    /// How often each tool was called, in the order of the first calls.
    tools: Vec<(String, usize)>,
    stat: DiffStat,
    /// The files that were changed.
    files: Vec<String>,
    n_failed: usize,
    n_refused: usize,
}

impl CallTally {
    /// Counts a call.
    pub(super) fn add(&mut self, call: &CallBlock) {
        match self.tools.iter_mut().find(|(tool, _)| *tool == call.tool) {
            Some((_, n)) => *n += 1,
            None => self.tools.push((call.tool.clone(), 1)),
        }
        match call.state {
            CallState::Failed => self.n_failed += 1,
            CallState::Refused => self.n_refused += 1,
            CallState::Arriving | CallState::Waiting | CallState::Running | CallState::Done => {}
        }
        if let Some(diff) = call.diff.as_ref().filter(|_| call.state == CallState::Done) {
            let stat = diff_stat(diff);
            self.stat.n_added += stat.n_added;
            self.stat.n_removed += stat.n_removed;
            if !self.files.contains(&diff.path) {
                self.files.push(diff.path.clone());
            }
        }
    }

    /// Returns the line about them; none where there were none.
    pub(super) fn rows(&self, ctx: &RenderContext) -> Vec<Row> {
        if self.tools.is_empty() {
            return Vec::new();
        }
        let tools = self.tools.iter().map(|(tool, n)| match n {
            1 => sanitize_line(tool),
            n => format!("{} ×{n}", sanitize_line(tool)),
        });
        let mark = if ctx.is_screen_reader {
            ctx.span("tools: ", Role::Text)
        } else {
            ctx.span("● ", Role::Success)
        };
        let mut row = Row::new(vec![mark, ctx.span(tools.collect::<Vec<_>>().join(", "), Role::Faint)]);
        if !self.files.is_empty() {
            let files = if self.files.len() == 1 {
                "1 file".to_owned()
            } else {
                format!("{} files", self.files.len())
            };
            row.push(ctx.span(format!(" · {files}"), Role::Faint));
            row.push(ctx.span(format!(" +{}", self.stat.n_added), Role::Added));
            row.push(ctx.span(format!(" -{}", self.stat.n_removed), Role::Removed));
        }
        for (n, what) in [(self.n_failed, "failed"), (self.n_refused, "not run")] {
            if n > 0 {
                row.push(ctx.span(format!(" · {n} {what}"), Role::Warning));
            }
        }
        wrap(&row.spans, ctx.width, &[], &[])
    }
}

impl TranscriptView {
    /// Puts a block into the log; the focus view counts its calls.
    pub(super) fn keep_block(&mut self, block: Block, is_focused: bool) {
        if is_focused {
            match &block {
                Block::Prompt { .. } => self.tally = CallTally::default(),
                Block::Call(call) => self.tally.add(call),
                _ => {}
            }
        }
        self.log.push(block);
    }

    /// Takes up that more or less is shown from now on.
    pub(super) fn view_changed(&mut self, is_focused: bool) {
        self.conversation.restart_answers();
        (self.tally, self.held_answer) = (CallTally::default(), None);
        if is_focused && self.is_fullscreen() {
            let numbers = self.log.numbers();
            let is_prompt = |number: &usize| matches!(self.log.get(*number), Some(Block::Prompt { .. }));
            let start = numbers.clone().rev().find(is_prompt).unwrap_or(numbers.start);
            for number in start..numbers.end {
                if let Some(Block::Call(call)) = self.log.get(number) {
                    self.tally.add(call);
                }
            }
        }
    }

    /// Takes what can no longer change, inline: what comes before the end of a turn is held back.
    pub(super) fn take_focused(&mut self, view: &ViewContext<'_>, rows: &mut Vec<Row>) {
        let (ctx, is_focused) = (&view.render, view.is_focused);
        self.conversation.stream_rows(ctx, |_| false);
        while let Some(item) = self.conversation.take_final(ctx.now) {
            match item {
                Item::Final(block @ (Block::Call(_) | Block::Thinking { .. })) => {
                    self.keep_block(block, is_focused);
                }
                Item::Final(block) => {
                    let is_boundary = !matches!(block, Block::Notice { .. });
                    if is_boundary {
                        self.release_turn(ctx, rows);
                    }
                    self.space(rows, Spacing::of(&block));
                    rows.extend(render_block(&block, ctx));
                    self.keep_block(block, is_focused);
                }
                Item::Answer { source, streamed, .. } => {
                    if !streamed.is_empty() {
                        self.held_answer = Some(streamed);
                    }
                    self.keep_block(Block::Answer { markdown: source }, is_focused);
                }
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => {}
            }
        }
        if !view.is_working {
            self.release_turn(ctx, rows);
        }
    }

    /// Writes what was held back of a turn: the line about its calls, and the last answer.
    fn release_turn(&mut self, ctx: &RenderContext, rows: &mut Vec<Row>) {
        let summary = std::mem::take(&mut self.tally).rows(ctx);
        if !summary.is_empty() {
            self.space(rows, Spacing::Call);
            rows.extend(summary);
        }
        if let Some(answer) = self.held_answer.take() {
            self.space(rows, Spacing::Other);
            rows.extend(labelled("claude: ", joined(Rc::unwrap_or_clone(answer)), ctx));
        }
    }

    /// Returns what is held back inline, for the live region: as much of it as is seen.
    pub(super) fn held_rows(&self, ctx: &RenderContext, most: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut push = |part: &[Row]| {
            if !part.is_empty() {
                rows.push(Row::default());
                rows.extend_from_slice(part);
            }
        };
        push(&self.tally.rows(ctx));
        let last =
            |answer: &[Row]| answer.get(answer.len().saturating_sub(most)..).unwrap_or_default().to_vec();
        match &self.held_answer {
            Some(answer) if !self.conversation.has_answer() => push(&last(answer)),
            _ => {}
        }
        rows
    }
}

/// Tells whether the focus view hides an entry of the live region: it has answers, and what is not of the turn's work.
pub(super) fn is_hidden_by_focus(item: &Item) -> bool {
    matches!(
        item,
        Item::Thinking { .. } | Item::Call { .. } | Item::Final(Block::Call(_) | Block::Thinking { .. })
    )
}

/// Makes rows that were broken whole again: the terminal wraps them, and copies them whole.
fn joined(rows: Vec<Row>) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::with_capacity(rows.len());
    let mut goes_on = false;
    for row in rows {
        let next_goes_on = row.is_overlong;
        match out.last_mut() {
            Some(last) if goes_on => row.spans.into_iter().for_each(|span| last.push(span)),
            _ => out.push(row),
        }
        goes_on = next_goes_on;
    }
    out
}

/// Returns rows that may be long, as far as the live region may show them.
pub(super) fn last_rows(entry: &BlockRows, most: usize) -> Vec<Row> {
    let skipped = entry.done.len().saturating_sub(most);
    entry.done.iter().skip(skipped).chain(entry.rest.iter()).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::FileDiff;
    use crate::theme::{Backdrop, ColorDepth, Theme};

    #[test]
    fn calls_of_a_turn_are_one_line_with_what_changed() {
        let call = |tool: &str, state: CallState, path: Option<&str>| CallBlock {
            tool: tool.into(),
            summary: String::new(),
            agent: None,
            is_read_only: false,
            state,
            diff: path.map(|path| FileDiff {
                path: path.into(),
                before: "a\nb\n".into(),
                after: "a\nc\nd\n".into(),
                first_line: 1,
            }),
            output: String::new(),
            plan: None,
        };
        let mut tally = CallTally::default();
        let ctx = RenderContext::new(80, Theme::new(ColorDepth::Ansi, Backdrop::Dark));
        assert!(tally.rows(&ctx).is_empty());
        for (tool, state, path) in [
            ("Read", CallState::Done, None),
            ("Edit", CallState::Done, Some("a.rs")),
            ("Read", CallState::Done, None),
            ("Edit", CallState::Done, Some("a.rs")),
            ("Edit", CallState::Failed, Some("b.rs")),
            ("Bash", CallState::Refused, None),
        ] {
            tally.add(&call(tool, state, path));
        }
        let text: Vec<String> = tally.rows(&ctx).iter().map(Row::text).collect();
        assert_eq!(text, ["● Read ×2, Edit ×3, Bash · 1 file +4 -2 · 1 failed · 1 not run"]);
    }
}
