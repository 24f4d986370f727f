//! What was said, and what of it is seen: inline in the scrollback, in fullscreen, and in the transcript pager.
//!
//! It knows nothing of the session, the prompt or the keys; what it has to know of them [`ViewContext`] says.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::ids::{EntryId, ToolUseId};
use loci_engine::{ResumedHistory, ShellOutput};

use super::background_work::BackgroundWork;
use super::block_log::BlockLog;
use super::conversation::{Conversation, Item};
use super::focus::{CallTally, is_hidden_by_focus, last_rows};
use super::fullscreen::{Fullscreen, log_rows};
use super::prompt_queue::PromptQueue;
use super::recall::SearchKind;
use super::renderer::MouseCapture;
use super::terminal_shell::asks_for_terminal;
use super::transcript::TranscriptPager;
use super::virtual_list::BlockRows;
use crate::block::{Block, CallBlock, NoticeLevel};
use crate::layout::{faint, line};
use crate::render::{RenderContext, labelled, render_block, render_call, render_call_group};
use crate::screen::live_limit;
use crate::text::Row;

/// The most rows of a paragraph that grows which are kept from becoming final. A window that gets narrower makes two of each row, and
/// what is live and has no room any more goes into the scrollback and is said once more: the fewer, the better.
const MOST_OPEN_ROWS: usize = 4;
/// The most rows of a running call's output that are seen.
const MOST_PROGRESS_ROWS: usize = 4;
/// The most blocks that are shown once more.
const MOST_REPLAYED: usize = 300;
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

/// What decides how the conversation is shown, beside what was said.
#[derive(Debug)]
pub(super) struct ViewContext<'a> {
    pub(super) render: RenderContext,
    /// Only the last prompt, a line about its calls and the answer are shown.
    pub(super) is_focused: bool,
    /// A turn is under way.
    pub(super) is_working: bool,
    /// Prompts that were sent are shown until they are recorded.
    pub(super) queue: &'a PromptQueue,
}

/// What was said, and what is seen of it.
#[derive(Debug)]
pub(super) struct TranscriptView {
    pub(super) conversation: Conversation,
    /// What was said lately.
    pub(super) log: BlockLog,
    /// What the last block that became final was, for the space between.
    pub(super) last_final: Option<Spacing>,
    /// Whether everything that was said is to be shown once more.
    replays: bool,
    /// The first block that was said in fullscreen and is to be written inline.
    unwritten: Option<usize>,
    /// The fullscreen renderer, while it shows the conversation.
    pub(super) fullscreen: Option<Box<Fullscreen>>,
    /// Whether it was told that the mouse is taken.
    has_told_mouse: bool,
    /// The calls of the last turn, for the focus view.
    pub(super) tally: CallTally,
    /// The answer that the focus view holds back until the turn is over, inline.
    pub(super) held_answer: Option<Rc<Vec<Row>>>,
    /// The transcript pager, where it is open.
    pub(super) pager: Option<TranscriptPager>,
    /// What the pager was asked to write to the scrollback.
    pub(super) dumped: Vec<Block>,
    /// The last entries of the session that were shown before it was there.
    tail: Option<Vec<EntryId>>,
    /// Whether everything is plain lines, so that what others see below the prompt is told.
    is_plain: bool,
}

impl TranscriptView {
    /// Begins with nothing; paths below `cwd` are shortened.
    pub(super) fn new(cwd: &Path, is_plain: bool) -> Self {
        Self {
            conversation: Conversation::new(cwd),
            log: BlockLog::default(),
            last_final: None,
            replays: false,
            unwritten: None,
            fullscreen: None,
            has_told_mouse: false,
            tally: CallTally::default(),
            held_answer: None,
            pager: None,
            dumped: Vec::new(),
            tail: None,
            is_plain,
        }
    }

    /// Tells the person something.
    pub(super) fn notice(&mut self, level: NoticeLevel, text: impl Into<String>) {
        self.push(Block::Notice { level, text: text.into() });
    }

    /// Tells in a line what others see below the prompt; nothing where that is seen.
    pub(super) fn speak(&mut self, text: impl Into<String>) {
        if self.is_plain {
            self.notice(NoticeLevel::Info, text);
        }
    }

    /// Adds what can no longer change.
    pub(super) fn push(&mut self, block: Block) {
        self.conversation.push(block);
    }

    /// Tells what has ended beside the conversation; not in the middle of an answer. The model hears of it by itself, and what it
    /// says then would come from nowhere.
    pub(super) fn tell_ended(&mut self, work: &mut BackgroundWork) {
        if !self.conversation.is_answer_open() {
            let ended = work.take_ended();
            ended.into_iter().for_each(|text| self.notice(NoticeLevel::Info, text));
        }
    }

    /// A command of the person has ended, or goes on in the background; tells whether it asked for a terminal.
    pub(super) fn end_shell(&mut self, call: &ToolUseId, output: &ShellOutput) -> bool {
        let printed: Vec<&str> = [&output.stdout, &output.stderr]
            .into_iter()
            .map(|text| text.trim_end())
            .filter(|it| !it.is_empty())
            .collect();
        let exit_code = output.exit_code.filter(|_| !output.is_interrupted);
        let printed = printed.join("\n");
        let wants_terminal = asks_for_terminal(&printed);
        self.conversation.end_shell(call, printed, exit_code);
        wants_terminal
    }

    /// Shows a session that another process uses; its end may be shown already.
    pub(super) fn show_viewed(&mut self, blocks: Vec<Block>) {
        if self.tail.take().is_none() {
            blocks.into_iter().for_each(|block| self.push(block));
        }
        let text = "This session is only looked at: another process uses it. Ctrl+D twice leaves.";
        self.notice(NoticeLevel::Info, text);
    }

    /// Finds the answer to be copied: the last, or the Nth from the end; or says why there is none.
    pub(super) fn answer_to_copy(&self, which: Option<&str>) -> Result<String, (NoticeLevel, &'static str)> {
        let n = match which.map(str::parse::<usize>) {
            None => 1,
            Some(Ok(n)) if n > 0 => n,
            Some(_) => {
                let text = "Say which answer: `/copy 2` copies the last but one";
                return Err((NoticeLevel::Warning, text));
            }
        };
        let answer = self.log.answer(n - 1).map(str::to_owned);
        answer.ok_or((NoticeLevel::Info, "There is no such answer to copy"))
    }

    /// Tells how a search of earlier prompts is shown.
    pub(super) fn search_kind(&self) -> SearchKind {
        if self.is_fullscreen() { SearchKind::List } else { SearchKind::Row }
    }

    /// Has everything that was said lately shown once more.
    pub(super) fn replay(&mut self) {
        // Fullscreen draws everything anew as it is.
        self.replays = !self.is_fullscreen();
    }

    /// Shows the end of a session that goes on, before it is there.
    pub(super) fn show_tail(&mut self, blocks: Vec<Block>, entries: Vec<EntryId>) {
        self.tail = Some(entries);
        blocks.into_iter().for_each(|block| self.push(block));
    }

    /// Takes note that all that the session begins with is shown already.
    pub(super) fn expect_nothing_new(&mut self) {
        self.tail = Some(Vec::new());
    }

    /// Tells whether the end of what was said before is shown already. Where the session goes on with another branch than the
    /// one that the end of its file has, that is told, and the right one is shown.
    pub(super) fn has_shown(&mut self, history: &ResumedHistory) -> bool {
        let Some(shown) = self.tail.take() else { return false };
        let ids = |entries: &[Arc<Entry>]| -> Vec<EntryId> {
            entries.iter().filter_map(|entry| entry.head().uuid.clone()).collect()
        };
        let whole = ids(&history.entries);
        if whole.ends_with(&shown) || shown.ends_with(&whole) {
            return true;
        }
        let text = "The session goes on with another branch than the one above, with this one:";
        self.notice(NoticeLevel::Info, text);
        false
    }

    /// Tells whether the fullscreen renderer shows the conversation.
    pub(super) fn is_fullscreen(&self) -> bool {
        self.fullscreen.is_some()
    }

    /// Tells whether everything is drawn on the alternate screen, with nothing of it on the terminal's own.
    pub(super) fn owns_screen(&self) -> bool {
        self.fullscreen.as_ref().is_some_and(|screen| !screen.is_dump_shown)
    }

    /// Takes another renderer.
    pub(super) fn set_fullscreen(&mut self, is_on: bool, mouse: MouseCapture) {
        if is_on == self.is_fullscreen() {
            return;
        }
        // What was shown of an answer is on the other screen.
        self.conversation.restart_answers();
        let end = self.log.numbers().end;
        match self.fullscreen.take() {
            Some(screen) => self.unwritten = Some(screen.first_unwritten),
            None => {
                let first = self.unwritten.take().unwrap_or(end);
                self.fullscreen = Some(Box::new(Fullscreen::new(first)));
                self.tell_about_mouse(mouse);
            }
        }
    }

    /// Says once that the mouse is taken, and how to get it back; not in the middle of an answer.
    pub(super) fn tell_about_mouse(&mut self, mouse: MouseCapture) {
        let is_taken = self.is_fullscreen() && mouse != MouseCapture::Off;
        let is_time = is_taken && !self.conversation.has_answer();
        if is_time && !std::mem::replace(&mut self.has_told_mouse, true) {
            let text = "Fullscreen: the wheel scrolls, a drag selects and copies, a click expands. Shift and a drag select \
                        as your terminal does. CLAUDE_CODE_DISABLE_MOUSE=1 leaves the mouse alone; `/tui default` goes \
                        back to the scrollback";
            self.notice(NoticeLevel::Info, text);
        }
    }

    /// Takes what has become final, as rows.
    pub(super) fn take_committed(&mut self, view: &ViewContext<'_>, height: u16) -> Vec<Row> {
        let ctx = &view.render;
        let max_live = live_limit(height).saturating_sub(6).clamp(2, MOST_OPEN_ROWS);
        let mut rows = self.take_dumped(ctx);
        rows.extend(self.take_replay(ctx));
        rows.extend(self.take_unwritten(ctx));
        if view.is_focused {
            self.take_focused(view, &mut rows);
            return rows;
        }
        loop {
            if self.take_group(view, &mut rows) {
                continue;
            }
            let Some(item) = self.next_final(view) else { break };
            match item {
                Item::Final(block) => {
                    self.space(&mut rows, Spacing::of(&block));
                    rows.extend(render_block(&block, ctx));
                    self.log.push(block);
                }
                Item::Answer { mut markdown, has_begun, source, .. } => {
                    self.log.push(Block::Answer { markdown: source });
                    let mut rest = markdown.take_committed(ctx);
                    if !has_begun && !rest.is_empty() {
                        self.space(&mut rows, Spacing::Other);
                        rest = labelled("claude: ", rest, ctx);
                    }
                    rows.extend(rest);
                }
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => {}
            }
        }
        self.end_group(view);
        if let Some(Item::Answer { markdown, has_begun, .. }) = self.conversation.first_mut() {
            let mut done = markdown.take_committed(ctx);
            done.extend(markdown.take_overflow(max_live, ctx));
            let begins = !done.is_empty() && !std::mem::replace(has_begun, *has_begun || !done.is_empty());
            if begins {
                self.space(&mut rows, Spacing::Other);
                done = labelled("claude: ", done, ctx);
            }
            rows.extend(done);
        }
        rows
    }

    /// Takes the next thing that can no longer change. Calls that only look wait for their neighbours, as long as some may
    /// come.
    pub(super) fn next_final(&mut self, view: &ViewContext<'_>) -> Option<Item> {
        let is_open = self.conversation.may_group_more() && view.is_working;
        if is_open && !view.is_focused && self.conversation.n_grouped() > 0 {
            return None;
        }
        self.conversation.take_final(view.render.now)
    }

    /// Notes that calls of the next turn are no part of a group of this one.
    pub(super) fn end_group(&mut self, view: &ViewContext<'_>) {
        if !view.is_working {
            self.log.end_group();
        }
    }

    /// Takes calls at the front that only looked, as one row, once it is clear that no other follows; false where there is
    /// nothing to take.
    fn take_group(&mut self, view: &ViewContext<'_>, rows: &mut Vec<Row>) -> bool {
        let n_calls = self.conversation.n_grouped();
        let is_open = self.conversation.may_group_more() && view.is_working;
        if n_calls == 0 || is_open {
            return false;
        }
        let mut calls = Vec::new();
        for _ in 0..n_calls {
            if let Some(Item::Final(Block::Call(call))) = self.conversation.take_final(view.render.now) {
                calls.push(call);
            }
        }
        self.space(rows, Spacing::Call);
        rows.extend(render_call_group(&calls.iter().collect::<Vec<_>>(), &view.render));
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
    pub(super) fn live_conversation(&self, view: &ViewContext<'_>, height: u16) -> Vec<Row> {
        let most = live_limit(height);
        let mut rows = if view.is_focused { self.held_rows(&view.render, most) } else { Vec::new() };
        for entry in self.live_entries(view) {
            // Only the focus view keeps rows of an answer here.
            rows.extend((!entry.done.is_empty()).then(Row::default));
            rows.extend(last_rows(&entry, most));
        }
        rows
    }

    /// Returns what may still change of the conversation: the rows of each item, and of each prompt that was just sent.
    pub(super) fn live_entries(&self, view: &ViewContext<'_>) -> Vec<BlockRows> {
        let ctx = &view.render;
        let mut entries = Vec::new();
        let mut last = self.last_final;
        let n_grouped = if view.is_focused { 0 } else { self.conversation.n_grouped() };
        for (idx, item) in self.conversation.items().enumerate() {
            if (view.is_focused && is_hidden_by_focus(item)) || (1..n_grouped).contains(&idx) {
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
        entries.extend(view.queue.sent().map(|draft| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::CallState;
    use crate::theme::{Backdrop, ColorDepth, Theme};

    fn context(queue: &PromptQueue, is_working: bool) -> ViewContext<'_> {
        let render = RenderContext::new(60, Theme::new(ColorDepth::None, Backdrop::Dark));
        ViewContext { render, is_focused: false, is_working, queue }
    }

    fn texts(rows: &[Row]) -> String {
        rows.iter().map(|row| format!("{}\n", row.text())).collect()
    }

    fn read(path: &str) -> Block {
        Block::Call(CallBlock {
            tool: "Read".into(),
            summary: path.into(),
            is_read_only: true,
            agent: None,
            state: CallState::Done,
            diff: None,
            output: String::new(),
            plan: None,
        })
    }

    #[test]
    fn what_is_final_is_taken_once_and_shown_again_when_asked_for() {
        let (mut view, queue) = (TranscriptView::new(Path::new("/p"), false), PromptQueue::default());
        view.notice(NoticeLevel::Info, "said");
        let ctx = context(&queue, false);
        assert!(texts(&view.take_committed(&ctx, 24)).contains("said"));
        assert!(view.take_committed(&ctx, 24).is_empty());
        view.replay();
        assert!(texts(&view.take_committed(&ctx, 24)).contains("said"));
    }

    #[test]
    fn calls_that_only_look_wait_for_others_while_a_turn_is_under_way() {
        let (mut view, queue) = (TranscriptView::new(Path::new("/p"), false), PromptQueue::default());
        view.push(read("a.rs"));
        view.push(read("b.rs"));
        assert!(view.take_committed(&context(&queue, true), 24).is_empty(), "others may come");
        let rows = view.take_committed(&context(&queue, false), 24);
        assert_eq!(rows.iter().filter(|row| row.text().contains("Read")).count(), 1, "{}", texts(&rows));
    }

    #[test]
    fn what_was_said_in_fullscreen_is_written_below_once_it_is_left() {
        let (mut view, queue) = (TranscriptView::new(Path::new("/p"), false), PromptQueue::default());
        view.set_fullscreen(true, MouseCapture::Off);
        view.notice(NoticeLevel::Info, "said there");
        let ctx = context(&queue, false);
        view.take_to_log(&ctx);
        view.set_fullscreen(false, MouseCapture::Off);
        assert!(texts(&view.take_committed(&ctx, 24)).contains("said there"));
        assert!(view.take_committed(&ctx, 24).is_empty(), "once");
    }
}
