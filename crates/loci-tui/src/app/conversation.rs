//! The conversation as it is shown: what is final and waits to be drawn, and what may still change.
//!
//! Items stand in the order in which they were said. Those at the front that can no longer change are taken by
//! [`Conversation::take_final`] and never touched again; the rest is the live part. An answer that is still being written
//! gives up its finished paragraphs as they are done.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use loci_core::ids::ToolUseId;
use loci_core::message::{Block as MessageBlock, BlockKind};
use loci_core::stream::{Delta, StreamEvent};
use loci_core::tool::ToolKind;
use loci_engine::{Question, ToolProgress, UserMessage};
use serde_json::Value;

use super::call_summary::{approved_plan, asked_diff, call_summary, done_diff, result_for_person};
use super::pull_request::may_push;
use super::virtual_list::broken;
use crate::block::{Block, CallBlock, CallState, NoticeLevel};
use crate::render::{Highlighter, RenderContext, StreamingMarkdown, is_groupable};
use crate::text::Row;

/// The most of a running call's output that is kept for its last lines.
const MOST_PROGRESS: usize = 4_000;

/// What is shown of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    items: VecDeque<Item>,
    cwd: PathBuf,
    /// Whether an answer was begun in the turn at hand that is not closed.
    is_answering: bool,
    /// Colours code; none where it has no colours.
    highlighter: Option<Highlighter>,
    /// The width of the rows that answers keep.
    streamed_width: usize,
    /// Whether a call may have changed a pull request.
    has_pushed: bool,
    /// Questions that somebody has not answered yet, each with the call it is about.
    asked: Vec<(String, ToolUseId)>,
}

/// One thing in it.
#[derive(Debug)]
pub(crate) enum Item {
    /// It can no longer change.
    Final(Block),
    /// The model is writing.
    Answer {
        /// What of it is not final yet.
        markdown: StreamingMarkdown,
        /// All of it, as it came.
        source: String,
        /// Whether it is whole.
        is_done: bool,
        /// Whether some of it was taken as final.
        has_begun: bool,
        /// What is final of it, where it is kept here and not taken.
        streamed: Rc<Vec<Row>>,
    },
    /// The model is thinking.
    Thinking {
        /// What is told of it.
        text: String,
        /// When it began.
        since: Duration,
    },
    /// A command of the person that runs.
    Shell {
        /// Its id.
        id: ToolUseId,
        /// What was typed.
        command: String,
        /// What it printed last.
        output: String,
    },
    /// A call that has no result yet.
    Call {
        /// Its id, once it is whole.
        id: Option<ToolUseId>,
        /// What is shown.
        block: CallBlock,
    },
}

impl Conversation {
    /// Begins with nothing; paths below `cwd` are shortened.
    pub(crate) fn new(cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), highlighter: Some(Highlighter::default()), ..Self::default() }
    }

    /// Says whether code has colours from now on.
    pub(crate) fn color_code(&mut self, has_colors: bool) {
        if has_colors != self.highlighter.is_some() {
            self.highlighter = has_colors.then(Highlighter::default);
        }
    }

    /// Returns who colours code.
    pub(crate) fn highlighter(&self) -> Option<Highlighter> {
        self.highlighter.clone()
    }

    /// Returns how many calls at the front only looked and have their results: they are told in one line.
    pub(crate) fn n_grouped(&self) -> usize {
        let is_grouped = |item: &&Item| matches!(item, Item::Final(Block::Call(call)) if is_groupable(call));
        self.items.iter().take_while(is_grouped).count()
    }

    /// Tells whether a call may still join those: nothing has come behind them, or one that runs.
    pub(crate) fn may_group_more(&self) -> bool {
        match self.items.get(self.n_grouped()) {
            Some(Item::Call { block, .. }) => block.is_read_only || block.tool.starts_with("mcp__"),
            Some(_) => false,
            None => true,
        }
    }

    /// Adds what can no longer change. An answer that was given before waits for the colours of its code, as one that comes.
    pub(crate) fn push(&mut self, block: Block) {
        self.close_answer();
        self.items.push_back(match block {
            Block::Answer { markdown } => whole_answer(&markdown, self.highlighter.as_ref()),
            block => Item::Final(block),
        });
    }

    /// Returns the live part: everything from the first thing that may still change.
    pub(crate) fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    #[cfg(test)]
    pub(crate) fn n_items(&self) -> usize {
        self.items.len()
    }

    /// Returns how many items at the front can no longer change.
    pub(crate) fn n_final(&self) -> usize {
        let is_final = |item: &&Item| matches!(item, Item::Final(_) | Item::Answer { is_done: true, .. });
        self.items.iter().take_while(is_final).count()
    }

    /// Returns the first item.
    pub(crate) fn first_mut(&mut self) -> Option<&mut Item> {
        self.items.front_mut()
    }

    /// Takes the first item, if it can no longer change: an answer that is whole may wait for the colours of its code.
    pub(crate) fn take_final(&mut self, now: Duration) -> Option<Item> {
        let is_final = match self.items.front()? {
            Item::Final(_) => true,
            Item::Answer { is_done: true, markdown, .. } => !markdown.awaits_colors(now),
            Item::Answer { .. } | Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => false,
        };
        if is_final { self.items.pop_front() } else { None }
    }

    /// Has nothing wait for its colours any more.
    pub(crate) fn stop_waiting(&mut self) {
        for item in &mut self.items {
            if let Item::Answer { markdown, .. } = item {
                markdown.stop_waiting();
            }
        }
    }

    /// Returns when what waits for colours is looked at again.
    pub(crate) fn deadline(&self, now: Duration) -> Option<Duration> {
        let answers = self.items.iter().filter_map(|item| match item {
            Item::Answer { markdown, .. } => Some(markdown),
            _ => None,
        });
        answers.filter_map(|markdown| markdown.deadline(now)).min()
    }

    /// Takes the rows of answers that became final and keeps them with the answer, broken to the width; `has_blank` says
    /// whether a blank row stands before an item.
    pub(crate) fn stream_rows(&mut self, ctx: &RenderContext, has_blank: impl Fn(usize) -> bool) {
        if std::mem::replace(&mut self.streamed_width, ctx.width) != ctx.width {
            self.restart_answers();
        }
        for (idx, item) in self.items.iter_mut().enumerate() {
            let Item::Answer { markdown, has_begun, streamed, .. } = item else { continue };
            let done = markdown.take_committed(ctx);
            if done.is_empty() {
                continue;
            }
            let has_blank = !std::mem::replace(has_begun, true) && has_blank(idx);
            let streamed = Rc::make_mut(streamed);
            streamed.extend(has_blank.then(Row::default));
            streamed.extend(broken(done, ctx.width));
        }
    }

    /// Makes answers that are under way whole again: what was taken of them is to be shown elsewhere, or for another width.
    pub(crate) fn restart_answers(&mut self) {
        let highlighter = self.highlighter.as_ref();
        for item in &mut self.items {
            let Item::Answer { source, is_done, .. } = item else { continue };
            *item = match is_done {
                true => whole_answer(source, highlighter),
                false => answer(source, highlighter),
            };
        }
    }

    /// Tells whether an answer is under way that has something to show.
    pub(crate) fn has_answer(&self) -> bool {
        let is_answer =
            |item: &Item| matches!(item, Item::Answer { source, .. } if !source.trim().is_empty());
        self.items.iter().any(is_answer)
    }

    /// Tells whether the model is in the middle of an answer.
    pub(crate) fn is_answer_open(&self) -> bool {
        self.items.iter().any(|item| matches!(item, Item::Answer { is_done: false, .. }))
    }

    /// Says which calls have no result yet, in a few words.
    pub(crate) fn waiting_summary(&self) -> Option<String> {
        let mut open = self.items.iter().filter_map(|item| match item {
            Item::Call { block, .. } => Some(block),
            _ => None,
        });
        let first = open.next()?;
        let what = format!("{} {}", first.tool, first.summary);
        let what = loci_stdx::single_line(what.trim_end(), 50);
        Some(match open.count() {
            0 => what,
            n => format!("{what} and {n} more"),
        })
    }

    /// Takes news of a response.
    pub(crate) fn stream(&mut self, event: &StreamEvent, now: Duration) {
        match event {
            StreamEvent::BlockStarted { kind, name, .. } => self.begin_block(kind, name.as_deref(), now),
            StreamEvent::Delta { delta: Delta::Text(text), .. } => self.add_text(text),
            StreamEvent::Delta { delta: Delta::Thinking(text), .. } => {
                if let Some(Item::Thinking { text: said, .. }) = self.items.back_mut() {
                    said.push_str(text);
                }
            }
            StreamEvent::BlockDone { block, .. } => self.end_block(block, now),
            StreamEvent::Delta { delta: Delta::InputJson(_), .. }
            | StreamEvent::Wire(_)
            | StreamEvent::Started(_)
            | StreamEvent::Ended(_) => {}
        }
    }

    fn begin_block(&mut self, kind: &str, name: Option<&str>, now: Duration) {
        self.close_answer();
        match BlockKind::from_name(kind) {
            BlockKind::Text => {
                self.is_answering = true;
                self.items.push_back(answer("", self.highlighter.as_ref()));
            }
            kind if kind.is_thinking() => {
                self.items.push_back(Item::Thinking { text: String::new(), since: now });
            }
            BlockKind::ToolUse => {
                let block = self.call_block(name.unwrap_or_default(), &Value::Null, CallState::Arriving);
                self.items.push_back(Item::Call { id: None, block });
            }
            _ => {}
        }
    }

    fn call_block(&self, tool: &str, input: &Value, state: CallState) -> CallBlock {
        CallBlock {
            tool: tool.to_owned(),
            is_read_only: ToolKind::of_tool(tool).only_looks(),
            summary: call_summary(tool, input, &self.cwd),
            agent: None,
            state,
            diff: None,
            output: String::new(),
            plan: None,
        }
    }

    fn add_text(&mut self, text: &str) {
        match self.items.back_mut() {
            Some(Item::Answer { markdown, source, is_done: false, .. }) => {
                markdown.push(text);
                source.push_str(text);
            }
            // A server that does not say when a block begins is understood all the same.
            _ => {
                self.is_answering = true;
                self.items.push_back(answer(text, self.highlighter.as_ref()));
            }
        }
    }

    fn end_block(&mut self, block: &MessageBlock, now: Duration) {
        if let Some(call) = block.tool_use() {
            // Whoever is asked about it says so; most calls run unasked.
            let whole = self.call_block(&call.name, &call.input, CallState::Running);
            let whole = CallBlock { diff: asked_diff(&call.name, &call.input, &self.cwd), ..whole };
            let open = self.items.iter_mut().rev().find_map(|item| match item {
                Item::Call { id: id @ None, block } => Some((id, block)),
                _ => None,
            });
            return match open {
                Some((id, block)) => (*id, *block) = (Some(call.id), whole),
                None => self.items.push_back(Item::Call { id: Some(call.id), block: whole }),
            };
        }
        match self.items.back_mut() {
            Some(Item::Answer { is_done: false, .. }) => self.close_answer(),
            Some(item @ Item::Thinking { .. }) => {
                if let Item::Thinking { text, since } = item {
                    let text = std::mem::take(text);
                    let duration = Some(now.saturating_sub(*since));
                    *item = Item::Final(Block::Thinking { text, duration });
                }
            }
            _ => {
                if let Some(text) = block.text().filter(|text| !text.is_empty()) {
                    self.items.push_back(answer(&text, self.highlighter.as_ref()));
                    self.is_answering = true;
                    self.close_answer();
                }
            }
        }
    }

    /// Somebody is asked about a call.
    pub(crate) fn ask(&mut self, question: &Question) {
        if let Some(block) = self.call_mut(&question.call) {
            block.state = CallState::Waiting;
            self.asked.push((question.id.clone(), question.call.clone()));
        }
    }

    /// Tells whether somebody has yet to answer.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asked.is_empty()
    }

    /// A question was answered, or withdrawn: its call runs, or its result says why not.
    pub(crate) fn answered(&mut self, question: &str) {
        let Some(place) = self.asked.iter().position(|(asked, _)| asked == question) else { return };
        let (_, call) = self.asked.swap_remove(place);
        if let Some(block) = self.call_mut(&call).filter(|block| block.state == CallState::Waiting) {
            block.state = CallState::Running;
        }
    }

    /// A call tells how it is getting on: so it runs.
    pub(crate) fn progress(&mut self, call: &ToolUseId, progress: &ToolProgress) {
        let shell = self.items.iter_mut().find_map(|item| match item {
            Item::Shell { id, output, .. } if id == call => Some(output),
            _ => None,
        });
        if let Some(output) = shell {
            return add_progress(output, progress);
        }
        let Some(block) = self.call_mut(call) else { return };
        block.state = CallState::Running;
        add_progress(&mut block.output, progress);
    }

    /// A command of the person begins to run.
    pub(crate) fn begin_shell(&mut self, id: ToolUseId, command: String) {
        self.close_answer();
        self.items.push_back(Item::Shell { id, command, output: String::new() });
    }

    /// A command of the person has ended.
    pub(crate) fn end_shell(&mut self, call: &ToolUseId, output: String, exit_code: Option<i32>) {
        for item in &mut self.items {
            if let Item::Shell { id, command, .. } = item
                && id == call
            {
                let command = std::mem::take(command);
                *item = Item::Final(Block::Shell { command, output, exit_code });
                return;
            }
        }
    }

    fn call_mut(&mut self, call: &ToolUseId) -> Option<&mut CallBlock> {
        self.items.iter_mut().find_map(|item| match item {
            Item::Call { id: Some(id), block } if id == call => Some(block),
            _ => None,
        })
    }

    /// Takes something said in the user's name: the result of a call is shown with it, all else is told apart. Returns
    /// whether it was a result.
    pub(crate) fn user_message(&mut self, message: &UserMessage) -> bool {
        let content = message.message.get("content").and_then(Value::as_array);
        let results = content.into_iter().flatten().filter(|block| block["type"] == "tool_result");
        let mut has_result = false;
        for result in results {
            has_result = true;
            let id = ToolUseId::new(result["tool_use_id"].as_str().unwrap_or_default());
            let structured = message.tool_use_result.as_ref();
            self.finish_call(&id, result, structured);
        }
        has_result
    }

    fn finish_call(&mut self, call: &ToolUseId, result: &Value, structured: Option<&Value>) {
        let cwd = self.cwd.clone();
        let Some(idx) =
            self.items.iter().position(|item| matches!(item, Item::Call { id: Some(id), .. } if id == call))
        else {
            return;
        };
        let Some(Item::Call { block, .. }) = self.items.get_mut(idx) else { return };
        let mut block = block.clone();
        let is_refused = structured.and_then(Value::as_str) == Some("User rejected tool use")
            || (block.state == CallState::Refused);
        block.state = match (is_refused, result["is_error"].as_bool()) {
            (true, _) => CallState::Refused,
            (false, Some(true)) => CallState::Failed,
            (false, _) => CallState::Done,
        };
        let text = untagged(result_text(&result["content"]));
        block.output = result_for_person(block.state, text, structured);
        let done = structured.and_then(|structured| done_diff(structured, &cwd));
        block.diff = if block.state == CallState::Done { done } else { None };
        let plan = structured.and_then(|structured| approved_plan(&block.tool, structured));
        block.plan = plan.filter(|_| block.state == CallState::Done);
        self.has_pushed |= block.state == CallState::Done && may_push(&block.summary);
        self.items[idx] = Item::Final(Block::Call(block));
    }

    /// Tells whether a call since the last time may have changed a pull request.
    pub(crate) fn take_pushed(&mut self) -> bool {
        std::mem::take(&mut self.has_pushed)
    }

    /// Closes whatever is open: the turn is over, and nothing more comes.
    pub(crate) fn end_turn(&mut self, now: Duration) {
        self.close_answer();
        self.asked.clear();
        for item in &mut self.items {
            match item {
                Item::Thinking { text, since } => {
                    let (text, duration) = (std::mem::take(text), Some(now.saturating_sub(*since)));
                    *item = Item::Final(Block::Thinking { text, duration });
                }
                Item::Call { block, .. } => {
                    let block = CallBlock { state: CallState::Refused, ..block.clone() };
                    *item = Item::Final(Block::Call(block));
                }
                Item::Shell { command, output, .. } => {
                    let (command, output) = (std::mem::take(command), std::mem::take(output));
                    *item = Item::Final(Block::Shell { command, output, exit_code: None });
                }
                Item::Answer { .. } => {}
                Item::Final(_) => {}
            }
        }
    }

    /// Drops what a response that is asked for again had begun: it will be said anew. What of an answer stands in the
    /// scrollback already stays there, and a line says so.
    pub(crate) fn drop_partial(&mut self) {
        let mut is_cut = false;
        self.items.retain(|item| match item {
            Item::Answer { is_done: false, has_begun, streamed, .. } => {
                let is_written = *has_begun && streamed.is_empty();
                is_cut |= is_written;
                is_written
            }
            Item::Thinking { .. } | Item::Call { id: None, .. } => false,
            Item::Final(_) | Item::Answer { .. } | Item::Shell { .. } | Item::Call { .. } => true,
        });
        self.close_answer();
        if is_cut {
            let text = "The answer broke off here and is asked for again".to_owned();
            self.items.push_back(Item::Final(Block::Notice { level: NoticeLevel::Info, text }));
        }
    }

    fn close_answer(&mut self) {
        if !std::mem::take(&mut self.is_answering) {
            return;
        }
        for item in self.items.iter_mut().rev() {
            if let Item::Answer { is_done, markdown, .. } = item {
                markdown.finish();
                *is_done = true;
                return;
            }
        }
    }
}

/// Adds what something that runs has printed, as far as its last lines are wanted.
fn add_progress(output: &mut String, progress: &ToolProgress) {
    match progress {
        ToolProgress::Output(text) => {
            output.push_str(text);
            let excess = output.len().saturating_sub(MOST_PROGRESS);
            let cut = (excess..=output.len()).find(|idx| output.is_char_boundary(*idx));
            output.drain(..cut.unwrap_or(0));
        }
        ToolProgress::Count(n) => *output = n.to_string(),
        // There is no editor at a terminal.
        ToolProgress::Terminal(_) => {}
    }
}

fn answer(text: &str, highlighter: Option<&Highlighter>) -> Item {
    let mut markdown = match highlighter {
        Some(highlighter) => StreamingMarkdown::with_highlighter(highlighter.clone()),
        None => StreamingMarkdown::default(),
    };
    markdown.push(text);
    let (source, streamed) = (text.to_owned(), Rc::default());
    Item::Answer { markdown, source, is_done: false, has_begun: false, streamed }
}

/// Makes an answer that is whole.
fn whole_answer(text: &str, highlighter: Option<&Highlighter>) -> Item {
    let mut item = answer(text, highlighter);
    if let Item::Answer { markdown, is_done, .. } = &mut item {
        markdown.finish();
        *is_done = true;
    }
    item
}

/// Takes away the marks by which the model tells a failed call from one that said something.
pub(crate) fn untagged(text: String) -> String {
    let inner = text.strip_prefix("<tool_use_error>").and_then(|rest| rest.strip_suffix("</tool_use_error>"));
    inner.map(str::to_owned).unwrap_or(text)
}

/// Returns the text of a result, which is a string or a list of blocks.
pub(crate) fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text = |block: &Value| match block["type"].as_str() {
                Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
                Some(other) => format!("[{other}]"),
                None => String::new(),
            };
            blocks.iter().map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
