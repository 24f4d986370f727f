//! How a session stands at a moment, as everybody who looks on sees it.
//!
//! A view is made once and then kept up by the events that follow it ([`SessionView::apply`]): the service does so to answer
//! `session/view`, and a client may do so with its own copy. Both come to the same, since the function is pure.

use std::path::PathBuf;

use loci_core::background_task::{BackgroundStatus, BackgroundTask, TaskNews};
use loci_core::ids::{EntryId, SessionId};
use loci_core::permission::Mode;
use loci_core::stream::{Delta, StreamEvent};
use loci_core::task_list::Task;
use loci_core::window::Fullness;
use serde::{Deserialize, Serialize};

use crate::event::{Event, SessionOver};
use crate::goal::Goal;
use crate::question::Question;

/// How a session stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// Which.
    pub session: SessionId,
    /// The number of the last event that is in it; those behind it go on from here.
    pub seq: u64,
    /// What it is doing.
    pub activity: Activity,
    /// What it is called.
    pub title: Option<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// The model that is asked.
    pub model: String,
    /// The permission mode.
    pub mode: Mode,
    /// Questions that wait, oldest first.
    pub questions: Vec<Question>,
    /// Prompts that wait, by id, oldest first.
    pub queue: Vec<WaitingPrompt>,
    /// What the model has said of the block at hand, which is no entry yet.
    pub partial: Vec<PartialBlock>,
    /// The last entry that was told.
    pub last_entry: Option<EntryId>,
    /// Work beside the conversation that has not ended.
    pub tasks: Vec<BackgroundTask>,
    /// The task list.
    pub todo: Vec<Task>,
    /// The goal, if there is one.
    pub goal: Option<Goal>,
    /// How full the context is, once that is known.
    pub context: Option<Fullness>,
    /// What the session has cost so far, in US dollars.
    pub cost_usd: f64,
    /// Who may write.
    pub seat: Seat,
    /// How it ended, once it has.
    pub over: Option<SessionOver>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing is under way.
    #[default]
    Idle,
    /// A turn is.
    Working,
    /// Somebody is asked something.
    Waiting,
    /// It is over.
    Over,
}

/// A prompt that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingPrompt {
    /// Its id.
    pub id: EntryId,
    /// What it says.
    pub text: String,
}

/// A block of the answer at hand, as far as it was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartialBlock {
    /// Its place in the answer.
    pub index: usize,
    /// The wire name of its kind.
    pub kind: String,
    /// The tool's name, for calls.
    pub name: Option<String>,
    /// What was said so far.
    pub text: String,
}

/// Who may write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Who has it, by the name they gave; nobody, where there is none.
    pub writer: Option<String>,
    /// Whether that is whoever asked.
    #[serde(default)]
    pub is_mine: bool,
}

impl SessionView {
    /// Makes the view of a session of which nothing was heard yet.
    pub fn new(session: SessionId, cwd: PathBuf, model: String, mode: Mode) -> Self {
        Self {
            session,
            seq: 0,
            activity: Activity::Idle,
            title: None,
            cwd,
            model,
            mode,
            questions: Vec::new(),
            queue: Vec::new(),
            partial: Vec::new(),
            last_entry: None,
            tasks: Vec::new(),
            todo: Vec::new(),
            goal: None,
            context: None,
            cost_usd: 0.0,
            seat: Seat::default(),
            over: None,
        }
    }

    /// Takes up an event, which has this number.
    pub fn apply(&mut self, seq: u64, event: &Event) {
        self.seq = seq;
        match event {
            Event::TurnStarted(start) => {
                self.model.clone_from(&start.model);
                self.mode = start.mode;
                self.activity = Activity::Working;
            }
            Event::TurnEnded(report) => {
                self.cost_usd = report.total_cost_usd;
                self.context = Some(report.context);
                self.partial.clear();
                self.activity = Activity::Idle;
            }
            Event::PromptQueued(waiting) => self.queue.push(waiting.clone()),
            Event::PromptDropped { id } => self.queue.retain(|it| it.id != *id),
            Event::Dequeued { id, .. } => self.queue.retain(|it| it.id.as_str() != id),
            Event::PromptRecorded { entry, .. } => {
                self.queue.retain(|it| it.id != *entry);
                self.last_entry = Some(entry.clone());
            }
            Event::Assistant(block) => {
                self.last_entry = Some(block.entry.clone());
                // Blocks become entries in their order.
                if !self.partial.is_empty() {
                    self.partial.remove(0);
                }
            }
            Event::User(message) => self.last_entry = Some(message.entry.clone()),
            Event::Stream { event, .. } => self.apply_stream(event),
            Event::Requesting | Event::Retry { .. } => self.partial.clear(),
            Event::QuestionAsked(question) => self.questions.push(question.clone()),
            Event::QuestionWithdrawn { question } => self.close_question(question),
            Event::QuestionAnswered { question, .. } => self.close_question(question),
            Event::Task(news) => self.apply_task(news),
            Event::TasksChanged(tasks) => self.todo.clone_from(tasks),
            Event::GoalChanged(goal) => self.goal.clone_from(goal),
            Event::GoalChecked { goal, .. } => self.goal = Some(goal.clone()),
            Event::Context(fullness) => self.context = Some(*fullness),
            Event::ModeChanged(mode) => self.mode = *mode,
            Event::ModelChanged(model) => self.model.clone_from(model),
            Event::SeatChanged { writer } => self.seat = Seat { writer: writer.clone(), is_mine: false },
            Event::Titled(title) => self.title = Some(title.clone()),
            Event::Renewed(session) => self.renew(session),
            Event::Ended(over) => self.over = Some(over.clone()),
            Event::Resumed(_)
            | Event::Agent { .. }
            | Event::AgentRefused(_)
            | Event::Fallback { .. }
            | Event::TurnsOver { .. }
            | Event::ResultsCleared { .. }
            | Event::Compacting
            | Event::Compacted { .. }
            | Event::CompactionEnded { .. }
            | Event::PermissionDenied { .. }
            | Event::LocalCommand(_)
            | Event::Progress { .. }
            | Event::ShellStarted { .. }
            | Event::ShellEnded { .. }
            | Event::CommandsChanged(_)
            | Event::ElicitationCompleted { .. }
            | Event::SandboxStatus(_)
            | Event::SettingsChanged(_)
            | Event::HookStarted(_)
            | Event::HookProgress(_)
            | Event::HookEnded(_)
            | Event::TerminalSequence(_)
            | Event::TranscriptLines { .. }
            | Event::Warning(_)
            | Event::RenewalFailed(_) => {}
        }
        self.activity = match self.activity {
            _ if self.over.is_some() => Activity::Over,
            _ if !self.questions.is_empty() => Activity::Waiting,
            Activity::Waiting => Activity::Working,
            other => other,
        };
    }

    fn apply_stream(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Started(_) => self.partial.clear(),
            StreamEvent::BlockStarted { index, kind, name } => self.partial.push(PartialBlock {
                index: *index,
                kind: kind.clone(),
                name: name.clone(),
                text: String::new(),
            }),
            StreamEvent::Delta { index, delta } => {
                let block = self.partial.iter_mut().find(|block| block.index == *index);
                if let (Some(block), Delta::Text(text) | Delta::Thinking(text) | Delta::InputJson(text)) =
                    (block, delta)
                {
                    block.text.push_str(text);
                }
            }
            StreamEvent::Wire(_) | StreamEvent::BlockDone { .. } | StreamEvent::Ended(_) => {}
        }
    }

    fn apply_task(&mut self, news: &TaskNews) {
        let (TaskNews::Started(task)
        | TaskNews::Backgrounded(task)
        | TaskNews::Progress { task, .. }
        | TaskNews::Ended(task)) = news;
        self.tasks.retain(|it| it.id != task.id);
        if task.status == BackgroundStatus::Running {
            self.tasks.push(task.clone());
        }
    }

    fn close_question(&mut self, id: &str) {
        self.questions.retain(|question| question.id != id);
    }

    /// Another session takes the place of this one: what was said of the conversation is gone, what was chosen stays.
    fn renew(&mut self, session: &SessionId) {
        let fresh = Self::new(session.clone(), self.cwd.clone(), self.model.clone(), self.mode);
        let kept = Self { seq: self.seq, seat: self.seat.clone(), ..fresh };
        *self = kept;
    }
}
