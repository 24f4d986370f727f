//! What the agents of a session say and do, as the agent view shows it: one log each, fed by their events as they come.
//!
//! The logs are bounded, in bytes and in number: an agent's transcript is on disk. The interface and the panel that shows
//! them share them; the interface changes them, and the panel adds those of earlier runs when it has read of them.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loci_app::sessions::command::PastAgent;
use loci_engine::{AgentRef, BackgroundStatus, BackgroundTask, EngineEvent, TaskNews, TaskUsage};

use super::block_log::BlockLog;
use super::conversation::{Conversation, Item, result_text};
use super::pager::PagerSource;
use super::virtual_list::RowSource;
use crate::block::{Block, NoticeLevel};
use crate::render::{RenderContext, has_gap, render_block};
use crate::text::Row;

/// The most bytes of one agent's log.
const MOST_BYTES: usize = 500_000;
/// The most agents that are remembered.
const MOST_AGENTS: usize = 40;

/// The agents of a session, oldest first.
#[derive(Debug, Default)]
pub(crate) struct AgentLogs {
    agents: Vec<AgentLog>,
    cwd: PathBuf,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct AgentLog {
    /// Its id.
    pub(crate) id: String,
    /// Its type.
    pub(crate) kind: String,
    /// What it was sent out for.
    pub(crate) description: String,
    /// Its task, once that is known.
    pub(crate) task: Option<BackgroundTask>,
    /// Of an agent that an earlier run sent out, and that has not gone on since.
    pub(crate) past: Option<PastLog>,
    /// What it has used so far.
    pub(crate) usage: TaskUsage,
    /// What it is doing, in a few words.
    pub(crate) activity: String,
    /// Questions of its that wait for an answer.
    questions: Vec<String>,
    conversation: Conversation,
    log: BlockLog,
}

/// What is known of an agent of an earlier run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PastLog {
    /// Whether it gave its answer.
    pub(crate) has_answered: bool,
    /// Whether its transcript was read.
    pub(crate) is_read: bool,
}

impl AgentLogs {
    /// Begins with none.
    pub(crate) fn new(cwd: &Path) -> Self {
        Self { agents: Vec::new(), cwd: cwd.to_owned() }
    }

    /// Returns all of them.
    pub(crate) fn all(&self) -> &[AgentLog] {
        &self.agents
    }

    /// Finds one by id.
    pub(crate) fn find(&self, id: &str) -> Option<&AgentLog> {
        self.agents.iter().find(|agent| agent.id == id)
    }

    /// Forgets everything: another session is shown.
    pub(crate) fn clear(&mut self) {
        self.agents.clear();
    }

    /// Adds those of earlier runs that are not known yet; the newest, where there are too many.
    pub(crate) fn add_past(&mut self, mut past: Vec<PastAgent>) {
        past.retain(|agent| self.find(agent.id.as_str()).is_none());
        let room = MOST_AGENTS.saturating_sub(self.agents.len());
        let logs = past.iter().skip(past.len().saturating_sub(room)).map(|agent| AgentLog {
            past: Some(PastLog { has_answered: agent.has_answered, is_read: false }),
            ..AgentLog::new(agent.id.as_str(), &agent.kind, &agent.description, &self.cwd)
        });
        let logs: Vec<AgentLog> = logs.collect();
        self.agents.splice(0..0, logs);
    }

    /// Takes what an agent of an earlier run said and did; nothing, where it has gone on meanwhile.
    pub(crate) fn take_transcript(&mut self, id: &str, blocks: Vec<Block>) {
        let Some(agent) = self.agents.iter_mut().find(|agent| agent.id == id) else { return };
        if let Some(past) = &mut agent.past
            && !std::mem::replace(&mut past.is_read, true)
        {
            blocks.into_iter().for_each(|block| agent.log.push(block));
        }
    }

    /// Takes a step of an agent's task; other work is passed over.
    pub(crate) fn take_task(&mut self, news: &TaskNews) {
        let (task, progress) = match news {
            TaskNews::Started(task) | TaskNews::Backgrounded(task) | TaskNews::Ended(task) => (task, None),
            TaskNews::Progress { task, description, usage, .. } => (task, Some((description, usage))),
        };
        let Some(kind) = task.agent_type() else { return };
        let agent = self.agent_mut(&task.id, kind, task.label());
        if let Some((description, usage)) = progress {
            agent.activity = loci_stdx::single_line(description, 100);
            agent.usage = *usage;
        }
        if let Some(report) = &task.report {
            agent.usage = report.usage;
        }
        agent.past = None;
        agent.task = Some(task.clone());
    }

    /// Takes what an agent says or does.
    pub(crate) fn take_event(&mut self, agent: &AgentRef, event: &EngineEvent, now: Duration) {
        let log = self.agent_mut(agent.id.as_str(), &agent.kind, &agent.description);
        log.take(event, now);
    }

    /// A question was answered, or withdrawn.
    pub(crate) fn close_question(&mut self, question: &str) {
        for agent in &mut self.agents {
            agent.close_question(question);
        }
    }

    fn agent_mut(&mut self, id: &str, kind: &str, description: &str) -> &mut AgentLog {
        let at = self.agents.iter().position(|agent| agent.id == id).unwrap_or_else(|| {
            if self.agents.len() >= MOST_AGENTS {
                let ended = self.agents.iter().position(|agent| !agent.is_running());
                self.agents.remove(ended.unwrap_or(0));
            }
            self.agents.push(AgentLog::new(id, kind, description, &self.cwd));
            self.agents.len() - 1
        });
        &mut self.agents[at]
    }
}

impl AgentLog {
    fn new(id: &str, kind: &str, description: &str, cwd: &Path) -> Self {
        let mut conversation = Conversation::new(cwd);
        // What is seen of it is rendered from the log.
        conversation.color_code(false);
        Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            description: description.to_owned(),
            task: None,
            past: None,
            usage: TaskUsage::default(),
            activity: String::new(),
            questions: Vec::new(),
            conversation,
            log: BlockLog::bounded(MOST_BYTES),
        }
    }

    /// Tells whether it works, as far as is known.
    pub(crate) fn is_running(&self) -> bool {
        self.past.is_none() && self.task.as_ref().is_none_or(|task| task.status == BackgroundStatus::Running)
    }

    /// Tells whether it waits for somebody's answer.
    pub(crate) fn is_asking(&self) -> bool {
        !self.questions.is_empty()
    }

    fn close_question(&mut self, question: &str) {
        self.questions.retain(|open| open != question);
        self.conversation.answered(question);
    }

    fn take(&mut self, event: &EngineEvent, now: Duration) {
        match event {
            EngineEvent::PromptRecorded { message, .. } => self.hear(result_text(&message["content"])),
            EngineEvent::Dequeued { text, is_injected: true, .. } => self.hear(text.clone()),
            EngineEvent::Stream { event, .. } => self.conversation.stream(event, now),
            EngineEvent::User(message) => {
                // Its task, and what it is told when it goes on, come as messages that answer no call.
                let is_said = !self.conversation.user_message(message) && !message.is_synthetic;
                if is_said {
                    self.hear(result_text(&message.message["content"]));
                }
            }
            EngineEvent::Progress { call, progress } => self.conversation.progress(call, progress),
            EngineEvent::QuestionAsked(question) => {
                self.conversation.ask(question);
                self.questions.push(question.id.clone());
            }
            EngineEvent::QuestionWithdrawn { question } => self.close_question(question),
            EngineEvent::Assistant(block) if block.error.is_some() => {
                let text = result_text(&block.message["content"]);
                self.conversation.push(Block::Notice { level: NoticeLevel::Error, text });
            }
            EngineEvent::Warning(text) => {
                let text = text.clone();
                self.conversation.push(Block::Notice { level: NoticeLevel::Warning, text });
            }
            EngineEvent::Retry { .. } => self.conversation.drop_partial(),
            EngineEvent::TurnEnded(_) => self.conversation.end_turn(now),
            _ => return,
        }
        while let Some(item) = self.conversation.take_final(now) {
            match item {
                Item::Final(block) => self.log.push(block),
                Item::Answer { source, .. } => self.log.push(Block::Answer { markdown: source }),
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => {}
            }
        }
    }

    /// Shows what it was told.
    fn hear(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.conversation.push(Block::Prompt { text, attachments: Vec::new() });
        }
    }

    /// Returns the rows that are seen in so much room, so many before the end, and how many there are above them at least.
    /// Only blocks that are seen or passed on the way are made into rows.
    pub(crate) fn rows(&self, ctx: &RenderContext, n_below: &Cell<usize>, room: usize) -> Vec<Row> {
        let wanted = n_below.get();
        let source = PagerSource::of_log(&self.log, &self.conversation);
        let mut parts: Vec<Vec<Row>> = Vec::new();
        let mut n_rows = 0;
        let mut after: Option<&Block> = None;
        for number in source.numbers().rev() {
            let Some(block) = source.get(number) else { break };
            let mut rows = render_block(block, ctx);
            if after.is_some_and(|after| has_gap(block, after)) {
                rows.push(Row::default());
            }
            after = Some(block);
            n_rows += rows.len();
            parts.push(rows);
            if n_rows >= wanted + room {
                break;
            }
        }
        let all: Vec<Row> = parts.into_iter().rev().flatten().collect();
        let end = all.len().saturating_sub(wanted).max(room.min(all.len()));
        n_below.set(all.len() - end);
        all.into_iter().take(end).skip(end.saturating_sub(room)).collect()
    }
}
