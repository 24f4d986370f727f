//! What is seen: the rows that have become final, and the live region.

use std::rc::Rc;

use crate::block::{Block, CallBlock};
use crate::input::{Draft, InputMode, VimMode};
use crate::layout::{cells, cut, faint, line, marked, marked_row, warning};
use crate::render::{RenderContext, labelled, render_block, render_call, render_call_group};
use crate::screen::{Frame, Size, live_limit};
use crate::status::Footer;
use crate::text::{Row, Span, Style};
use loci_core::task_list::{Task, TaskStatus};

use super::App;
use super::conversation::Item;
use super::focus::last_rows;
use super::fullscreen::log_rows;
use super::virtual_list::BlockRows;

/// The most rows of a paragraph that grows which are kept from becoming final. A window that gets narrower makes two of each row, and
/// what is live and has no room any more goes into the scrollback and is said once more: the fewer, the better.
const MOST_OPEN_ROWS: usize = 4;
/// The most rows of a running call's output that are seen.
const MOST_PROGRESS_ROWS: usize = 4;
/// In a lower window there are no tips.
const LEAST_FOR_TIPS: u16 = 16;
/// The most tasks that are seen.
const MOST_TASKS: usize = 5;
/// The most blocks that are shown once more.
const MOST_REPLAYED: usize = 300;
/// The most queued messages that are seen.
const MOST_QUEUED: usize = 3;

/// What kind of block became final last: between two calls there is no space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    /// A call.
    Call,
    /// Anything else.
    Other,
}

impl Spacing {
    /// Returns the kind of a block.
    pub(super) fn of(block: &Block) -> Self {
        match block {
            Block::Call(_) => Self::Call,
            _ => Self::Other,
        }
    }
}

impl App {
    /// Returns what is to be shown next. What is final is returned once.
    pub fn view(&mut self, size: Size) -> Frame {
        let mut frame = self.themed_view(size);
        self.color_rows(frame.committed.iter_mut().chain(&mut frame.live));
        frame
    }

    fn themed_view(&mut self, size: Size) -> Frame {
        if let Some(frame) = self.dump_frame(size) {
            return frame;
        }
        let committed = self.take_committed(size);
        let live = self.live_conversation(size);
        self.live_frame(committed, live, size)
    }

    /// Returns a frame: below `live` comes what is under way, and the prompt or what stands in its place.
    pub(super) fn live_frame(&mut self, committed: Vec<Row>, mut live: Vec<Row>, size: Size) -> Frame {
        let is_working = self.work.is_some();
        if self.options.plain.is_some() {
            // What may still change would be printed with each change.
            live.clear();
        } else if let Some(work) = &self.work {
            live.push(Row::default());
            live.push(cut(&work.row(self.now, self.is_still(), size.width), size.width));
            if size.height >= LEAST_FOR_TIPS {
                live.extend(work.tip_row(self.now).map(|row| cut(&row, size.width)));
            }
        }
        self.push_front(&mut live, size);
        self.push_tasks(&mut live, size.width);
        let is_waiting = self.dialogs.is_waiting(self.now);
        if let Some(view) = self.dialogs.view(&self.render_context(size.width)) {
            if self.is_spoken() {
                return self.spoken_dialog(committed, view, self.dialogs.label());
            }
            return self.dialog_frame(committed, live, view, is_waiting, size);
        }
        if self.panel.is_some() {
            return self.panel_frame(committed, live, size).unwrap_or_default();
        }
        live.push(Row::default());
        let top = self.push_prompt(&mut live, size);
        if !self.completion.is_open() && !self.is_help_shown {
            live.extend(self.agent_rows.rows(size.width));
            live.extend(self.status_line.rows(size.width));
        }
        live.push(cut(&self.footer().row(), size.width));
        let (row, column) = top;
        Frame {
            committed,
            live,
            caret: Some((row, column)),
            is_caret_visible: true,
            keeps_height: is_working,
            is_tall: self.completion.is_open() || self.is_help_shown,
        }
    }

    /// Returns what stays when the interface is left: everything that was said, and no live region.
    pub(super) fn last_view(&mut self, size: Size) -> Frame {
        self.conversation.end_turn(self.now);
        self.leave_fullscreen();
        Frame { committed: self.take_committed(size), is_caret_visible: true, ..Frame::default() }
    }

    fn take_committed(&mut self, size: Size) -> Vec<Row> {
        let ctx = self.render_context(size.width);
        let max_live = live_limit(size.height).saturating_sub(6).clamp(2, MOST_OPEN_ROWS);
        let mut rows = self.take_dumped(size.width);
        rows.extend(self.take_replay(&ctx));
        rows.extend(self.take_unwritten(&ctx));
        if self.is_focused() {
            self.take_focused(&ctx, &mut rows);
            return rows;
        }
        loop {
            if self.take_group(&ctx, &mut rows) {
                continue;
            }
            let Some(item) = self.next_final() else { break };
            match item {
                Item::Final(block) => {
                    self.space(&mut rows, Spacing::of(&block));
                    rows.extend(render_block(&block, &ctx));
                    self.log.push(block);
                }
                Item::Answer { mut markdown, has_begun, source, .. } => {
                    self.log.push(Block::Answer { markdown: source });
                    let mut rest = markdown.take_committed(&ctx);
                    if !has_begun && !rest.is_empty() {
                        self.space(&mut rows, Spacing::Other);
                        rest = labelled("claude: ", rest, &ctx);
                    }
                    rows.extend(rest);
                }
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => {}
            }
        }
        self.end_group();
        if let Some(Item::Answer { markdown, has_begun, .. }) = self.conversation.first_mut() {
            let mut done = markdown.take_committed(&ctx);
            done.extend(markdown.take_overflow(max_live, &ctx));
            let begins = !done.is_empty() && !std::mem::replace(has_begun, *has_begun || !done.is_empty());
            if begins {
                self.space(&mut rows, Spacing::Other);
                done = labelled("claude: ", done, &ctx);
            }
            rows.extend(done);
        }
        rows
    }

    /// Takes the next thing that can no longer change. Calls that only look wait for their neighbours, as long as some may
    /// come.
    pub(super) fn next_final(&mut self) -> Option<Item> {
        let is_open = self.conversation.may_group_more() && self.work.is_some();
        if is_open && !self.is_focused() && self.conversation.n_grouped() > 0 {
            return None;
        }
        self.conversation.take_final()
    }

    /// Notes that calls of the next turn are no part of a group of this one.
    pub(super) fn end_group(&mut self) {
        if self.work.is_none() {
            self.log.end_group();
        }
    }

    /// Takes calls at the front that only looked, as one row, once it is clear that no other follows; false where there is
    /// nothing to take.
    fn take_group(&mut self, ctx: &RenderContext, rows: &mut Vec<Row>) -> bool {
        let n_calls = self.conversation.n_grouped();
        let is_open = self.conversation.may_group_more() && self.work.is_some();
        if n_calls == 0 || is_open {
            return false;
        }
        let mut calls = Vec::new();
        for _ in 0..n_calls {
            if let Some(Item::Final(Block::Call(call))) = self.conversation.take_final() {
                calls.push(call);
            }
        }
        self.space(rows, Spacing::Call);
        rows.extend(render_call_group(&calls.iter().collect::<Vec<_>>(), ctx));
        calls.into_iter().for_each(|call| self.log.push(Block::Call(call)));
        true
    }

    /// Returns the rows of all that was said lately, where they are to be shown once more.
    fn take_replay(&mut self, ctx: &RenderContext) -> Vec<Row> {
        if !std::mem::take(&mut self.replays) {
            return Vec::new();
        }
        self.logged_rows(0, ctx)
    }

    /// Returns the rows of what was said in fullscreen, now that the terminal's own screen is written to again.
    fn take_unwritten(&mut self, ctx: &RenderContext) -> Vec<Row> {
        self.unwritten.take().map(|first| self.logged_rows(first, ctx)).unwrap_or_default()
    }

    /// Returns the rows of what was said from a number on, as far as it was said lately.
    fn logged_rows(&self, first: usize, ctx: &RenderContext) -> Vec<Row> {
        let numbers = self.log.numbers();
        let first = first.max(numbers.end.saturating_sub(MOST_REPLAYED)).max(numbers.start);
        (first..numbers.end).flat_map(|number| log_rows(&self.log, number, ctx)).collect()
    }

    /// Puts a blank row before a block, unless both it and the last one are calls.
    pub(super) fn space(&mut self, rows: &mut Vec<Row>, spacing: Spacing) {
        let is_close = spacing == Spacing::Call && self.last_final == Some(Spacing::Call);
        if self.last_final.is_some() && !is_close {
            rows.push(Row::default());
        }
        self.last_final = Some(spacing);
    }

    /// Returns what may still change of the conversation, as far as the live region may show it.
    fn live_conversation(&self, size: Size) -> Vec<Row> {
        let ctx = self.render_context(size.width);
        let most = live_limit(size.height);
        let mut rows = if self.is_focused() { self.held_rows(&ctx, size) } else { Vec::new() };
        for entry in self.live_entries(&ctx) {
            // Only the focus view keeps rows of an answer here.
            rows.extend((!entry.done.is_empty()).then(Row::default));
            rows.extend(last_rows(&entry, most));
        }
        rows
    }

    /// Returns what may still change of the conversation: the rows of each item, and of each prompt that was just sent.
    pub(super) fn live_entries(&self, ctx: &RenderContext) -> Vec<BlockRows> {
        let mut entries = Vec::new();
        let mut last = self.last_final;
        let n_grouped = if self.is_focused() { 0 } else { self.conversation.n_grouped() };
        for (idx, item) in self.conversation.items().enumerate() {
            if self.is_hidden_by_focus(item) || (1..n_grouped).contains(&idx) {
                entries.push(BlockRows::default());
                continue;
            }
            let spacing = match item {
                Item::Call { .. } | Item::Final(Block::Call(_)) => Spacing::Call,
                Item::Final(_) | Item::Answer { .. } | Item::Thinking { .. } | Item::Shell { .. } => {
                    Spacing::Other
                }
            };
            let is_close = spacing == Spacing::Call && last == Some(Spacing::Call);
            let has_begun = matches!(item, Item::Answer { has_begun: true, .. });
            let has_blank = last.is_some() && !is_close && !has_begun;
            last = Some(spacing);
            let rows = if idx < n_grouped { self.live_group(n_grouped, ctx) } else { live_rows(item, ctx) };
            let rest = has_blank.then(Row::default).into_iter().chain(rows).collect();
            let done = match item {
                Item::Answer { streamed, .. } => Rc::clone(streamed),
                _ => Rc::default(),
            };
            entries.push(BlockRows { done, rest: Rc::new(rest) });
        }
        entries.extend(self.queue.sent().map(|draft| {
            let text = draft.display().trim().to_owned();
            let prompt = render_block(&Block::Prompt { text, attachments: Vec::new() }, ctx);
            BlockRows {
                rest: Rc::new(std::iter::once(Row::default()).chain(prompt).collect()),
                ..BlockRows::default()
            }
        }));
        entries
    }

    /// Returns the row of calls at the front that only looked.
    fn live_group(&self, n_grouped: usize, ctx: &RenderContext) -> Vec<Row> {
        let grouped = self.conversation.items().take(n_grouped).filter_map(|item| match item {
            Item::Final(Block::Call(call)) => Some(call),
            _ => None,
        });
        render_call_group(&grouped.collect::<Vec<_>>(), ctx)
    }

    /// Puts the task list, as long as something is to be done: what is being done first, at most five.
    fn push_tasks(&self, live: &mut Vec<Row>, width: u16) {
        let is_open = self.tasks.iter().any(|task| task.status != TaskStatus::Completed);
        if !self.task_view.is_shown() || !is_open {
            return;
        }
        live.push(Row::default());
        let rank = |task: &&Task| match task.status {
            TaskStatus::InProgress => 0,
            TaskStatus::Pending => 1,
            TaskStatus::Completed => 2,
        };
        let mut tasks: Vec<&Task> = self.tasks.iter().collect();
        tasks.sort_by_key(rank);
        for task in tasks.iter().take(MOST_TASKS) {
            let (mark, style) = match task.status {
                TaskStatus::InProgress => ("◼", marked()),
                TaskStatus::Pending => ("◻", Style::default()),
                TaskStatus::Completed => ("✔", faint()),
            };
            let doing = task.active_form.as_ref().filter(|_| task.status == TaskStatus::InProgress);
            live.push(cut(&line(&format!("  {mark} {}", doing.unwrap_or(&task.subject)), style), width));
        }
        if let Some(n) = tasks.len().checked_sub(MOST_TASKS).filter(|n| *n > 0) {
            live.push(line(&format!("    … {n} more"), faint()));
        }
    }

    fn dialog_frame(
        &self,
        committed: Vec<Row>,
        mut live: Vec<Row>,
        mut view: crate::dialog::DialogView,
        is_waiting: bool,
        size: Size,
    ) -> Frame {
        let waiting = self.dialogs.n_behind();
        if waiting > 0 {
            let text = format!("{waiting} more to answer after this one");
            view.hint = view.hint.map(|hint| {
                let mut spans = hint.spans;
                spans.push(Span::styled(format!(" · {text}"), faint()));
                Row::new(spans)
            });
        }
        if let Some(left) = self.dialogs.seconds_left(self.now) {
            view.hint = Some(line(
                &format!("It goes on by itself in {left} s · a key begins the wait anew"),
                warning(),
            ));
        }
        if is_waiting {
            view.hint = Some(line("(it takes keys as soon as the typing pauses)", faint()));
        }
        let height = usize::from(size.height).max(1);
        // The dialog comes first; the conversation above it gets what room is left, up to a third.
        let (rows, mut caret) = view.fit(height.saturating_sub(1).max(1));
        if self.options.follows_mark {
            caret = caret.or_else(|| marked_row(&rows).map(|row| (row, 0)));
        }
        let room = height.saturating_sub(rows.len() + 1).min(height / 3);
        let first = live.len().saturating_sub(room);
        live.drain(..first);
        if !live.is_empty() {
            live.push(Row::default());
        }
        let top = live.len();
        live.extend(rows.iter().map(|row| cut(row, size.width)));
        Frame {
            committed,
            live,
            caret: caret.map(|(row, column)| (top + row, column)),
            is_caret_visible: caret.is_some(),
            is_tall: true,
            ..Frame::default()
        }
    }

    /// Puts queued messages and the prompt; returns where the caret stands.
    fn push_prompt(&mut self, live: &mut Vec<Row>, size: Size) -> (usize, u16) {
        let width = size.width;
        let waiting: Vec<&Draft> = self.queue.waiting().collect();
        for draft in waiting.iter().take(MOST_QUEUED) {
            let text = loci_stdx::single_line(&draft.display(), 200);
            let shell = if draft.mode == InputMode::Shell { "! " } else { "" };
            live.push(cut(&line(&format!("  ⏵ {shell}{text}"), faint()), width));
        }
        if !waiting.is_empty() {
            let more = match waiting.len().saturating_sub(MOST_QUEUED) {
                0 => String::new(),
                n => format!("{n} more · "),
            };
            live.push(cut(&line(&format!("    {more}queued · ↑ takes them back"), faint()), width));
        }
        if self.is_fullscreen()
            && let Some((rows, (row, column))) = self.recall.search_rows(width, size.height)
        {
            let top = live.len();
            live.extend(rows);
            return (top + row, column);
        }
        if let Some((row, column)) = self.recall.search_row(width) {
            live.push(row);
            let place = (live.len() - 1, column);
            if self.prompt.vim_mode().is_some() && self.recall.has_empty_query() {
                live.push(cut(&line("  Esc, then i, then / opens the commands instead", faint()), width));
            }
            return place;
        }
        let (rows, (row, column)) = self.prompt.rows(width, usize::from(size.height / 3).max(1));
        let top = live.len();
        live.extend(rows);
        live.extend(self.argument_hint().map(|row| cut(&row, width)));
        live.extend(self.completion.rows(width, size.height));
        if self.is_help_shown {
            let more = if self.is_fullscreen() { HELP_FULLSCREEN } else { &[] };
            live.extend(HELP.iter().chain(more).flat_map(|keys| help_rows(keys, width)));
        }
        (top + row, column)
    }

    fn footer(&self) -> Footer<'_> {
        let armed = self.armed.and_then(|(key, _)| match key.code {
            crate::key::KeyCode::Char('c') => Some("Press Ctrl+C again to leave"),
            crate::key::KeyCode::Char('d') => Some("Press Ctrl+D again to leave"),
            crate::key::KeyCode::Esc if !self.prompt.is_empty() => {
                Some("Press Esc again to clear the prompt")
            }
            crate::key::KeyCode::Esc if self.session.has_turns => {
                Some("Press Esc again to go back to a prompt")
            }
            _ => None,
        });
        let search = (self.recall.is_searching() && !self.is_fullscreen()).then_some(SEARCH_HINT);
        Footer {
            mode: self.session.mode,
            vim: self.prompt.vim_mode().filter(|_| !self.status_line.hides_vim_mode()).map(VimMode::name),
            flash: armed.or(search).or(self.flash.as_ref().map(|(text, _)| text.as_str())),
            chord: self.keymap.pending(),
            context: self.session.context,
            goal: self.session.goal.as_ref().map(|(_, since)| self.now.saturating_sub(*since)),
            n_background: self.n_working_beside(),
            sandbox: self.session.sandbox.as_deref(),
            pull_request: self.pull_request_badge(),
            model: &self.session.model,
            has_hint: self.prompt.is_empty() && !self.is_help_shown,
        }
    }
}

/// What is said below a search of earlier prompts.
const SEARCH_HINT: &str = "Enter send · Tab edit · Ctrl+R older · Ctrl+S where · Ctrl+C cancel";

/// What `?` shows, a group of keys a row.
const HELP: &[&[&str]] = &[
    &["/ commands", "! run a shell command", "!! give it the terminal", "@ name a file"],
    &["Enter send", "\\ Enter or Shift+Enter newline", "↑ earlier prompts", "Ctrl+R search them"],
    &["Esc interrupt", "Esc Esc clear, or go back", "Shift+Tab change the mode", "Ctrl+T tasks"],
    &["Ctrl+O transcript", "Ctrl+B to the background", "Ctrl+V picture", "Alt+P model", "Alt+T thinking"],
    &["Ctrl+G editor", "Ctrl+S stash", "Ctrl+L redraw", "Ctrl+Z suspend", "Ctrl+D leave"],
];

/// What `?` shows beside it in fullscreen.
const HELP_FULLSCREEN: &[&[&str]] = &[
    &["PgUp PgDn scroll", "Ctrl+Home beginning", "Ctrl+End end", "Ctrl+O transcript, search"],
    &["wheel scroll", "click expand", "drag select and copy", "Shift+drag as your terminal does"],
];

/// Returns a group of keys in as many rows as it needs.
fn help_rows(keys: &[&str], width: u16) -> Vec<Row> {
    let mut rows: Vec<String> = Vec::new();
    for key in keys {
        match rows.last_mut() {
            Some(row) if cells(row) + 3 + cells(key) <= width => row.push_str(&format!(" · {key}")),
            _ => rows.push(format!("  {key}")),
        }
    }
    rows.iter().map(|row| cut(&line(row, faint()), width)).collect()
}

/// Returns the rows of something that may still change.
fn live_rows(item: &Item, ctx: &RenderContext) -> Vec<Row> {
    match item {
        Item::Final(block) => render_block(block, ctx),
        Item::Answer { markdown, .. } => markdown.live(ctx),
        Item::Thinking { .. } => vec![line("Thinking…", faint())],
        Item::Shell { command, output, .. } => {
            let (command, output) = (command.clone(), last_lines(output));
            render_block(&Block::Shell { command, output, exit_code: None }, ctx)
        }
        Item::Call { block, .. } => {
            let shown = CallBlock { output: last_lines(&block.output), diff: None, ..block.clone() };
            render_call(&shown, ctx)
        }
    }
}

/// Returns the last lines of what a running call printed.
pub(super) fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let first = lines.len().saturating_sub(MOST_PROGRESS_ROWS);
    lines.get(first..).unwrap_or_default().join("\n")
}
