//! What the agents of a session say and do, as the agent view shows it: one log each, fed by their events as they come.
//!
//! The logs are bounded, in bytes and in number: an agent's transcript is on disk. The interface and the panel that shows
//! them share them; only the interface changes them.

use std::path::{Path, PathBuf};
use std::time::Duration;

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
    /// What it has used so far.
    pub(crate) usage: TaskUsage,
    /// What it is doing, in a few words.
    pub(crate) activity: String,
    /// Questions of its that wait for an answer.
    questions: Vec<String>,
    conversation: Conversation,
    log: BlockLog,
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
        Self {
            id: id.to_owned(),
            kind: kind.to_owned(),
            description: description.to_owned(),
            task: None,
            usage: TaskUsage::default(),
            activity: String::new(),
            questions: Vec::new(),
            conversation: Conversation::new(cwd),
            log: BlockLog::bounded(MOST_BYTES),
        }
    }

    /// Tells whether it works, as far as is known.
    pub(crate) fn is_running(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.status == BackgroundStatus::Running)
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
            EngineEvent::PromptRecorded { message, .. } => {
                let text = result_text(&message["content"]);
                self.conversation.push(Block::Prompt { text, attachments: Vec::new() });
            }
            EngineEvent::Stream { event, .. } => self.conversation.stream(event, now),
            EngineEvent::User(message) => {
                self.conversation.user_message(message);
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
        while let Some(item) = self.conversation.take_final() {
            match item {
                Item::Final(block) => self.log.push(block),
                Item::Answer { source, .. } => self.log.push(Block::Answer { markdown: source }),
                Item::Thinking { .. } | Item::Shell { .. } | Item::Call { .. } => {}
            }
        }
    }

    /// Returns the rows that are seen in so much room, so many before the end, and how many there are above them at least.
    /// Only blocks that are seen or passed on the way are made into rows.
    pub(crate) fn rows(&self, ctx: &RenderContext, n_below: usize, room: usize) -> Vec<Row> {
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
            if n_rows >= n_below + room {
                break;
            }
        }
        let all: Vec<Row> = parts.into_iter().rev().flatten().collect();
        let end = all.len().saturating_sub(n_below).max(room.min(all.len()));
        all.into_iter().take(end).skip(end.saturating_sub(room)).collect()
    }
}
