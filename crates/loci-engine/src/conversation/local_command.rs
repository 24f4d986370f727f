//! A command that needs no model, in a conversation: the turn it is, what is recorded of it, and what it may change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::permission::{Destination, Update};
use loci_core::session::ChangedLines;
use loci_core::tool::ToolOutcome;
use loci_tools::Host as _;

use super::Conversation;
use super::scope::ConversationScope;
use crate::command::DirectorySource;
use crate::conversation::recorder::Recorder;
use crate::event::{EngineEvent, ModelChoice, TurnReport};
use crate::extensions::local_command::LocalCommandOutput;
use crate::models::model_name::{
    available_model, is_model_available, is_recognized_model, planning_model, resolve_model,
};
use crate::session::config::CompactionConfig;
use crate::session::state::{change, change_identity};
use crate::turn::{Interruption, Outcome, TurnEnd};

impl Conversation {
    /// Begins the turn of a command.
    pub(crate) fn begin_local(&mut self) {
        self.scope.take_up_settings(&mut self.recorder);
        self.tools.take_up_skills(&self.scope, &self.sources, &self.permits);
        self.renew_turn();
        self.sources.start_turn(&self.scope, &mut self.recorder, &self.tools, &self.compaction);
    }

    /// Ends it with what was said. In a conversation that has not begun nothing is recorded: there is nothing to resume.
    pub(crate) fn end_local(&mut self, output: LocalCommandOutput) -> TurnReport {
        if !self.recorder.path().is_empty() {
            self.recorder.local_command(&output);
        }
        self.run.tally.text.clone_from(&output.text);
        let outcome = if output.is_error { Outcome::CommandFailed } else { Outcome::Completed };
        self.scope.tell(EngineEvent::LocalCommand(output));
        self.finish(TurnEnd { outcome, round_trips: 0, stop_reason: None })
    }

    /// Ends it because somebody does not want to wait for it.
    pub(crate) fn end_local_interrupted(&mut self) -> TurnReport {
        let outcome = Outcome::Interrupted(Interruption::Tools);
        self.finish(TurnEnd { outcome, round_trips: 0, stop_reason: None })
    }

    /// Compacts at another size from now on; `None` goes back to the model's window.
    pub(crate) fn set_compact_window(&mut self, window: Option<u64>) {
        self.compaction.config = CompactionConfig { window, ..self.compaction.config };
        self.sources.base = Arc::new(self.sources.base.with_compaction(self.compaction.config));
        self.compaction.tell_level(&self.scope, &self.recorder, &self.sources);
    }

    /// Lets the session work in a directory, too, and tells the hooks; the error says why not.
    pub(crate) fn try_add_directory(
        &mut self,
        directory: &Path,
        source: DirectorySource,
    ) -> Result<PathBuf, String> {
        let directory = self.scope.check_directory(directory, source)?;
        self.scope.try_grant(Update::AddDirectories(vec![directory.clone()], Destination::Session))?;
        self.scope.ctx.hooks.directory_added(
            directory.clone(),
            source,
            self.scope.hook_moment(&self.recorder),
        );
        if self.scope.ctx.skills.add_dir(&directory) {
            self.tools.offer_skills(&self.scope, &self.sources, &self.permits);
        }
        Ok(directory)
    }
}

impl ConversationScope {
    /// Asks the model, or the two, that a name stands for from now on; the error says why not.
    pub(crate) fn set_model_by_name(&mut self, name: Option<&str>) -> Result<(), String> {
        let planner =
            name.and_then(|name| planning_model(&self.host.env().vars, &self.ctx.state.get().settings, name));
        if let Some(planner) = planner.as_ref().filter(|planner| !self.can_keep_budget(planner)) {
            return Err(unknown_price(planner));
        }
        let before = std::mem::replace(&mut self.chosen_planner, planner);
        let model = name.map(|name| self.allowed_model(name));
        self.set_model(model).inspect_err(|_| self.chosen_planner = before)
    }

    /// Asks another model from now on; the error says why not.
    fn set_model(&self, model: Option<String>) -> Result<(), String> {
        if let Some(name) = model.as_ref().filter(|name| !self.can_keep_budget(name)) {
            return Err(unknown_price(name));
        }
        if let Some(name) = model.as_ref().filter(|name| !self.may_choose(name)) {
            return Err(format!("Settings (availableModels) do not let `{name}` be chosen; the model stays"));
        }
        change(&self.ctx.state, |state| state.model.session_override.clone_from(&model));
        self.tell(EngineEvent::ModelChanged(self.current_model()));
        Ok(())
    }

    /// Refuses what cannot be a model's name before it is asked for in vain: a program cannot see that it was mistyped.
    pub(crate) fn check_recognized(&self, name: &str) -> Result<(), String> {
        let id = self.allowed_model(name);
        match is_recognized_model(&self.host.env().vars, &self.ctx.state.get().settings, &id) {
            true => Ok(()),
            false => Err(format!("Model \"{name}\" is not a recognized model id; the model stays")),
        }
    }

    /// Says which model is asked now, and whether that is news to a conversation that has begun.
    pub(crate) fn model_choice(&self, recorder: &Recorder, before: &str) -> ModelChoice {
        let model = self.current_model();
        let is_news = model != before && !recorder.path().is_empty();
        ModelChoice { model, is_news }
    }

    /// Tells whether settings let a model be chosen, by its id.
    pub(super) fn may_choose(&self, model: &str) -> bool {
        let vars = self.host.env().vars;
        let settings = &self.ctx.state.get().settings;
        available_model(&vars, settings, "default").as_deref() == Some(model)
            || is_model_available(&vars, settings, model)
    }

    /// Returns the id of the model that a name stands for, among those that settings let be chosen; its own, where none does.
    pub(crate) fn allowed_model(&self, name: &str) -> String {
        let vars = self.host.env().vars;
        let settings = &self.ctx.state.get().settings;
        available_model(&vars, settings, name).unwrap_or_else(|| resolve_model(&vars, name))
    }

    /// Asks with another effort from now on.
    pub(crate) fn set_effort(&mut self, effort: Option<String>) {
        change_identity(&self.ctx.identity, |identity| identity.effort_override.clone_from(&effort));
        self.model.effort = effort;
    }

    /// Lets the model think with so many tokens at most; `None` leaves it to the model, zero switches it off.
    pub(crate) fn set_thinking(&mut self, most: Option<u64>) {
        self.model.max_thinking_tokens = most;
    }

    /// Shows the model's thinking in another form from now on; `None` leaves that to the server.
    pub(crate) fn set_thinking_display(&mut self, display: Option<String>) {
        self.model.thinking_display = display;
    }

    /// Takes account of what a call has changed in files.
    pub(super) fn count_lines(&self, outcome: &ToolOutcome) {
        let lines = ChangedLines::of_result(&outcome.structured);
        if lines != ChangedLines::default() {
            change_identity(&self.ctx.identity, |identity| identity.totals.lines.add(lines));
        }
    }
}

impl Recorder {
    /// Gives the session a name: with its first prompt, if that is yet to come.
    pub(crate) fn rename(&mut self, scope: &ConversationScope, title: String) {
        change(&scope.ctx.state, |state| state.session.title = Some(title.clone()));
        scope.ctx.worktrees.note_named();
        self.name(title);
        self.tell_warnings(scope);
    }
}

/// Says that a budget cannot be kept with a model.
fn unknown_price(model: &str) -> String {
    format!("The price of `{model}` is unknown, so the budget of this run could not be kept; the model stays")
}
