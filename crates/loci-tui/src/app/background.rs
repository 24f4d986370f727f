//! `/background`: the interface is left, and the session goes on in a process without a terminal.

use loci_core::permission::Mode;

use super::{Action, App, Effect, ExitReason, UiAction};
use crate::block::NoticeLevel;
use crate::dialog::ChoiceDialog;
use crate::input::{Draft, InputMode};

/// What a turn that was under way is asked to do.
const GO_ON: &str =
    "Go on with what you were doing. The person has left the terminal, so nobody can be asked.";

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
    /// Leaves; asks first where work in the background would end with the terminal.
    pub(super) fn leave(&mut self) -> Vec<Effect> {
        let body = self.background.running_lines();
        if body.is_empty() {
            return self.exit(ExitReason::Asked);
        }
        let leave = vec![Action::Ui(UiAction::Exit(ExitReason::Asked))];
        let question = ChoiceDialog::new(
            "Work in the background is running",
            body,
            vec![("Leave; it ends, and the session is told when it goes on", leave), ("Stay", Vec::new())],
        );
        self.prompt.disarm();
        self.dialogs.follow_up(question.leaving_by(0).about_work());
        Vec::new()
    }

    /// Leaves, and has the session go on, once it has begun; what cannot be is told, and nothing is left.
    pub(super) fn go_background(&mut self, prompt: Option<String>) -> Vec<Effect> {
        if !self.session.is_started {
            let text = format!("/background {}", prompt.unwrap_or_default());
            self.queue.hold(Draft::plain(InputMode::Prompt, text.trim_end()));
            return Vec::new();
        }
        let run = match self.preferences.has_agent_view() {
            true => self.session.background_run(prompt, GO_ON),
            false => Err("Sessions in the background are turned off (`disableAgentView`)"),
        };
        let run = match run {
            Ok(run) => run,
            Err(refusal) => {
                self.transcript.notice(NoticeLevel::Warning, refusal);
                return Vec::new();
            }
        };
        if !self.background.tasks().is_empty() {
            let text = "Commands and agents in the background end with the terminal; the session is told";
            self.transcript.notice(NoticeLevel::Warning, text);
        }
        let mut effects = vec![Effect::GoBackground(run)];
        effects.extend(self.exit(ExitReason::Asked));
        effects
    }
}
