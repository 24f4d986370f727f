//! `/background`: the interface is left, and the session goes on in a process without a terminal.

use loci_core::permission::Mode;
use loci_engine::{BackgroundStatus, task_summary};

use super::{Action, App, Effect, ExitReason, UiAction};
use crate::block::NoticeLevel;
use crate::dialog::ChoiceDialog;
use crate::input::{Draft, InputMode};

/// What a turn that was under way is asked to do.
const GO_ON: &str =
    "Go on with what you were doing. The person has left the terminal, so nobody can be asked.";

/// How many tasks are named before the terminal is left.
const MOST_NAMED: usize = 5;

/// A session that goes on without a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundRun {
    /// The session's id.
    pub session: String,
    /// Whether nothing was said in it yet, so that there is nothing on disk to go on with.
    pub is_new: bool,
    /// What it is asked to do.
    pub prompt: String,
    /// The permission mode that it is in.
    pub mode: Mode,
    /// The model that it asks.
    pub model: String,
}

impl App {
    /// Tells whether there is an agent view, and sessions that go on in the background.
    pub(super) fn has_agent_view(&self) -> bool {
        self.options.has_agent_view && self.interface.has_agent_view
    }

    /// Leaves; asks first where work in the background would end with the terminal.
    pub(super) fn leave(&mut self) -> Vec<Effect> {
        let body = self.running_work();
        if body.is_empty() {
            return self.exit(ExitReason::Asked);
        }
        let leave = vec![Action::Ui(UiAction::Exit(ExitReason::Asked))];
        let question = ChoiceDialog::new(
            "Work in the background is running",
            body,
            vec![("Leave; it ends, and the session is told when it goes on", leave), ("Stay", Vec::new())],
        );
        self.armed = None;
        self.dialogs.follow_up(question.leaving_by(0).about_work());
        Vec::new()
    }

    /// Has the question before leaving say what still runs. Once nothing does, nothing would end, so that whoever wanted
    /// to leave does.
    pub(super) fn work_changed(&mut self) -> Vec<Effect> {
        if self.dialogs.is_empty() {
            return Vec::new();
        }
        let running = self.running_work();
        match self.dialogs.work_changed(&running) {
            true => self.exit(ExitReason::Asked),
            false => Vec::new(),
        }
    }

    /// Returns a line for each of the first tasks that run in the background, and how many more there are.
    fn running_work(&self) -> Vec<String> {
        let mut running = self.background_tasks();
        running.retain(|task| task.status == BackgroundStatus::Running);
        let mut lines: Vec<String> = running.iter().take(MOST_NAMED).map(task_summary).collect();
        if let Some(n_more) = running.len().checked_sub(MOST_NAMED).filter(|n_more| *n_more > 0) {
            lines.push(format!("and {n_more} more"));
        }
        lines
    }

    /// Leaves, and has the session go on, once it has begun; what cannot be is told, and nothing is left.
    pub(super) fn go_background(&mut self, prompt: Option<String>) -> Vec<Effect> {
        if !self.session.is_started {
            let text = format!("/background {}", prompt.unwrap_or_default());
            self.queue.hold(Draft::plain(InputMode::Prompt, text.trim_end()));
            return Vec::new();
        }
        let refusal = match &self.session.id {
            _ if !self.has_agent_view() => {
                Some("Sessions in the background are turned off (`disableAgentView`)")
            }
            None => Some("The session has not begun yet"),
            Some(_) if !self.session.is_persistent => {
                Some("This session is not kept on disk, so nobody could go on with it")
            }
            Some(_) if prompt.is_none() && self.work.is_none() => {
                Some("Nothing is under way. `/background PROMPT` says what is to be done")
            }
            Some(_) => None,
        };
        let (Some(session), None) = (self.session.id.clone(), refusal) else {
            self.notice(NoticeLevel::Warning, refusal.unwrap_or_default());
            return Vec::new();
        };
        let run = BackgroundRun {
            session,
            is_new: !self.session.has_turns && self.work.is_none(),
            prompt: prompt.unwrap_or_else(|| GO_ON.to_owned()),
            mode: self.session.mode,
            model: self.session.model.clone(),
        };
        if !self.background_tasks().is_empty() {
            let text = "Commands and agents in the background end with the terminal; the session is told";
            self.notice(NoticeLevel::Warning, text);
        }
        let mut actions = vec![Effect::GoBackground(run)];
        actions.extend(self.exit(ExitReason::Asked));
        actions
    }
}
