//! Plans, tasks and places of a conversation: what the model and the transcript are told of them, and what outlasts a
//! compaction.

use super::scope::ConversationScope;
use crate::conversation::recorder::Recorder;
use loci_tools::Host;

use crate::event::EngineEvent;
use crate::session::plan::plan_attachment;

impl ConversationScope {
    /// Tells front ends what a session that goes on works towards.
    pub(crate) fn tell_goal(&self) {
        if let Some(goal) = self.ctx.goal.active() {
            self.tell(EngineEvent::GoalChanged(Some(goal)));
        }
    }
}

/// Tells the model, beside a prompt, that a plan is being made, or no longer.
pub(super) fn tell_plan(recorder: &mut Recorder, scope: &ConversationScope) {
    if !scope.is_main() {
        return;
    }
    match scope.ctx.plans.news() {
        Ok(news) => {
            stamp_slug(recorder, scope);
            news.into_iter().for_each(|attachment| recorder.attachment(attachment));
        }
        Err(error) => {
            let text = format!("Plan mode has no file to plan in: {error}; see `plansDirectory`");
            scope.tell(EngineEvent::Warning(text));
        }
    }
}

/// Tells front ends what is on the task list of a session that goes on.
pub(crate) fn tell_tasks(recorder: &Recorder, scope: &ConversationScope) {
    if recorder.path().is_empty() {
        return;
    }
    let tasks = scope.host.task_store().read().map(|list| list.tasks().to_vec()).unwrap_or_default();
    if !tasks.is_empty() {
        scope.tell(EngineEvent::TasksChanged(tasks));
    }
}

/// Records what goal is worked towards, and tells front ends, where that is news.
pub(crate) fn follow_goal(recorder: &mut Recorder, scope: &ConversationScope) {
    let goal = scope.ctx.goal.active();
    if recorder.note_goal(goal.as_ref().map(|goal| goal.condition.as_str())) {
        scope.tell(EngineEvent::GoalChanged(goal));
    }
}

/// Lets later entries and requests know of the worktree that a call has entered or left.
pub(super) fn follow_place(recorder: &mut Recorder, scope: &mut ConversationScope) {
    if scope.agent.is_some() {
        return recorder.set_cwd(&scope.host.workspace().cwd);
    }
    let project = scope.host.workspace().project;
    if project != scope.env.cwd {
        scope.env.cwd.clone_from(&project);
        recorder.moved(&project, scope.ctx.worktrees.record());
    }
}

/// Lets later entries carry the name of the plan file, once it has one.
pub(super) fn stamp_slug(recorder: &mut Recorder, scope: &ConversationScope) {
    if let Some(slug) = scope.ctx.plans.slug() {
        recorder.set_slug(slug);
    }
}

/// Calls the session what the plan is called that was just approved, unless it has a name.
pub(super) fn title_by_plan(recorder: &mut Recorder, scope: &ConversationScope) {
    let title = scope.ctx.plans.take_title();
    if scope.ctx.state.get().session.title.is_none() {
        title.into_iter().for_each(|title| recorder.generated_title(title));
    }
}

/// Puts the plan before the model again, and that it is being made, if it is.
pub(super) fn restore_plan(recorder: &mut Recorder, scope: &ConversationScope) {
    if !scope.is_main() {
        return;
    }
    scope.ctx.plans.forget_announced();
    let plan = scope.host.plan().file.and_then(|file| plan_attachment(&file));
    plan.into_iter().for_each(|attachment| recorder.attachment(attachment));
    if scope.ctx.plans.is_active() {
        tell_plan(recorder, scope);
    }
}
