//! Hooks around the task list: a task stays on it, or is marked as done, with their leave only.

use std::sync::Arc;

use loci_core::hooks::{HookEvent, TaskFields};
use loci_core::task_list::{NextStatus, Task, TaskChange, TaskList, TaskStatus};
use loci_core::tool::ToolOutcome;
use loci_tools::{Host, TaskStore};
use serde_json::Value;

use super::HookService;
use crate::extensions::{FeatureHooks, HookMoment, TaskStep};
use crate::tools::calls::{CallLayer, Next, OutcomeFuture};
use crate::tools::prepared_call::PreparedCall;

/// Wraps one call of the task list's tools that hooks want to know of.
pub(crate) struct TaskHookLayer {
    hooks: HookService,
    step: TaskStep,
    moment: HookMoment,
}

impl TaskHookLayer {
    /// Returns the layer of a call, where hooks have a say in what it does.
    pub(crate) fn for_call(
        hooks: &HookService,
        call: &PreparedCall,
        moment: impl FnOnce() -> HookMoment,
    ) -> Option<Arc<dyn CallLayer>> {
        let (step, event) = match call.tool.as_str() {
            "TaskCreate" => (TaskStep::Created, HookEvent::TaskCreated),
            "TaskUpdate" if call.input["status"] == "completed" => {
                (TaskStep::Completed, HookEvent::TaskCompleted)
            }
            _ => return None,
        };
        let layer = || Arc::new(Self { hooks: hooks.clone(), step, moment: moment() });
        hooks.has(event).then(|| layer() as Arc<dyn CallLayer>)
    }

    /// Lets a task be made, and takes it off the list again when hooks do not want it.
    async fn create(&self, call: PreparedCall, next: Next<'_>) -> ToolOutcome {
        let store = next.host.task_store();
        let outcome = next.run(call).await;
        let Some(id) = outcome.structured.pointer("/task/id").and_then(Value::as_str) else { return outcome };
        let Some(task) = read_task(&store, id).await else { return outcome };
        let Err(why) = self.ask(task).await else { return outcome };
        let id = id.to_owned();
        let delete = move |list: &mut TaskList| {
            // One that somebody else took off the list meanwhile is off it.
            drop(list.change(&id, TaskChange { status: Some(NextStatus::Deleted), ..TaskChange::default() }));
        };
        match edit(store, delete).await {
            Ok(()) => ToolOutcome::error(why),
            Err(error) => {
                ToolOutcome::error(format!("{why}\nThe task could not be taken off the list: {error}"))
            }
        }
    }

    /// Asks before a task is marked as done; one that is done already is no news.
    async fn complete(&self, call: PreparedCall, next: Next<'_>) -> ToolOutcome {
        let id = call.input["taskId"].as_str().unwrap_or_default().trim_start_matches('#').to_owned();
        let task = read_task(&next.host.task_store(), &id).await;
        if let Some(task) = task.filter(|task| task.status != TaskStatus::Completed)
            && let Err(why) = self.ask(task).await
        {
            return ToolOutcome::error(why);
        }
        next.run(call).await
    }

    async fn ask(&self, task: Task) -> Result<(), String> {
        let fields = TaskFields {
            task_id: task.id,
            task_subject: task.subject,
            task_description: Some(task.description).filter(|text| !text.is_empty()),
            teammate_name: None,
            team_name: None,
        };
        self.hooks.before_task(self.step, fields, self.moment.clone()).await
    }
}

impl CallLayer for TaskHookLayer {
    fn run<'a>(&'a self, call: PreparedCall, next: Next<'a>) -> OutcomeFuture<'a> {
        Box::pin(async move {
            match self.step {
                TaskStep::Created => self.create(call, next).await,
                TaskStep::Completed => self.complete(call, next).await,
            }
        })
    }
}

async fn read_task(store: &Arc<dyn TaskStore>, id: &str) -> Option<Task> {
    let (store, id) = (Arc::clone(store), id.to_owned());
    let read = tokio::task::spawn_blocking(move || store.read().ok()?.find(&id).ok().cloned());
    read.await.ok().flatten()
}

async fn edit(
    store: Arc<dyn TaskStore>,
    mut change: impl FnMut(&mut TaskList) + Send + 'static,
) -> std::io::Result<()> {
    let done = tokio::task::spawn_blocking(move || store.edit(&mut change));
    done.await.map_err(std::io::Error::other)?
}
