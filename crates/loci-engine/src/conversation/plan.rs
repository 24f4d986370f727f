//! Plans, tasks and places of a conversation: what the model and the transcript are told of them, and what outlasts a
//! compaction.

use loci_tools::Host;

use super::Conversation;
use crate::event::EngineEvent;
use crate::session::plan::plan_attachment;

impl Conversation {
    /// Tells the model, beside a prompt, that a plan is being made, or no longer.
    pub(super) fn tell_plan(&mut self) {
        if !self.is_main() {
            return;
        }
        match self.ctx.plans.news() {
            Ok(news) => {
                self.stamp_slug();
                news.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
            }
            Err(error) => {
                let text = format!("Plan mode has no file to plan in: {error}; see `plansDirectory`");
                self.tell(EngineEvent::Warning(text));
            }
        }
    }

    /// Tells front ends what is on the task list of a session that goes on.
    pub(crate) fn tell_tasks(&self) {
        if self.recorder.path().is_empty() {
            return;
        }
        let tasks = self.host.task_store().read().map(|list| list.tasks().to_vec()).unwrap_or_default();
        if !tasks.is_empty() {
            self.tell(EngineEvent::TasksChanged(tasks));
        }
    }

    /// Records what goal is worked towards, and tells front ends, where that is news.
    pub(crate) fn follow_goal(&mut self) {
        let goal = self.ctx.goal.active();
        if self.recorder.note_goal(goal.as_ref().map(|goal| goal.condition.as_str())) {
            self.tell(EngineEvent::GoalChanged(goal));
        }
    }

    /// Tells front ends what a session that goes on works towards.
    pub(crate) fn tell_goal(&self) {
        if let Some(goal) = self.ctx.goal.active() {
            self.tell(EngineEvent::GoalChanged(Some(goal)));
        }
    }

    /// Lets later entries and requests know of the worktree that a call has entered or left.
    pub(super) fn follow_place(&mut self) {
        if self.agent.is_some() {
            return self.recorder.set_cwd(&self.host.workspace().cwd);
        }
        let project = self.host.workspace().project;
        if project != self.env.cwd {
            self.env.cwd.clone_from(&project);
            self.recorder.moved(&project, self.ctx.worktrees.record());
        }
    }

    /// Lets later entries carry the name of the plan file, once it has one.
    pub(super) fn stamp_slug(&mut self) {
        if let Some(slug) = self.ctx.plans.slug() {
            self.recorder.set_slug(slug);
        }
    }

    /// Calls the session what the plan is called that was just approved, unless it has a name.
    pub(super) fn title_by_plan(&mut self) {
        let title = self.ctx.plans.take_title();
        if self.ctx.state.get().session.title.is_none() {
            title.into_iter().for_each(|title| self.recorder.generated_title(title));
        }
    }

    /// Puts the plan before the model again, and that it is being made, if it is.
    pub(super) fn restore_plan(&mut self) {
        if !self.is_main() {
            return;
        }
        self.ctx.plans.forget_announced();
        let plan = self.host.plan().file.and_then(|file| plan_attachment(&file));
        plan.into_iter().for_each(|attachment| self.recorder.attachment(attachment));
        if self.ctx.plans.is_active() {
            self.tell_plan();
        }
    }
}
