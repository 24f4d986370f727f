//! Calls that become a task: the server answers with a handle at once, and is asked how the task is getting on until that
//! has come to its end. In the newer era the server decides (the extension `io.modelcontextprotocol/tasks`). In revision
//! 2025-11-25 the caller does; it is done for tools that cannot be called in any other way.
//!
//! What a server may tell of a task unasked (`notifications/tasks`, `notifications/tasks/status`) is not subscribed to: it
//! is optional for servers, nobody may rely on it, and the pause between two looks is the server's own choice.
//!
//! What must stay true: a question of a task is put once, however often it is told; a task that nobody waits for any more
//! is cancelled at the server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{CallError, Connection, Outgoing, Progress, RequestLimits, Shared};
use crate::message::RpcError;
use crate::names::brief;

/// The name of the extension.
pub(super) const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// How long to wait between two looks: where the server does not say, and at least and at most.
const PAUSE: Duration = Duration::from_secs(1);
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long one look may take.
const LOOK: Duration = Duration::from_secs(60);
/// How many looks may fail one after the other.
const MOST_FAILED: u32 = 5;

impl Connection {
    /// Follows a task to its end and returns what the call would have returned.
    pub(super) async fn follow_task(
        &self,
        created: &Value,
        limits: &RequestLimits,
    ) -> Result<Value, CallError> {
        let id = id_of(created)?;
        self.guarded(&id, limits, self.look_until_the_end(&id, created, limits)).await
    }

    /// Follows a task of the older era to its end and returns what the call would have returned.
    pub(super) async fn follow_older_task(
        &self,
        created: &Value,
        limits: &RequestLimits,
    ) -> Result<Value, CallError> {
        let id = id_of(created)?;
        self.guarded(&id, limits, self.look_until_there_is_a_result(&id, created, limits)).await
    }

    /// Follows a task within the time of its call; it is cancelled unless its end was seen.
    async fn guarded(
        &self,
        id: &str,
        limits: &RequestLimits,
        following: impl Future<Output = Result<Result<Value, CallError>, CallError>>,
    ) -> Result<Value, CallError> {
        let mut guard = TaskGuard { connection: self, id: Some(id.to_owned()) };
        let ended = match limits.time {
            Some(time) => tokio::time::timeout_at(Instant::now() + time, following)
                .await
                .unwrap_or(Err(CallError::TimedOut(time))),
            None => following.await,
        };
        match ended {
            Ok(result) => {
                guard.id = None;
                result
            }
            Err(error) => Err(error),
        }
    }

    /// Looks until the task has ended: what came of it, or why nobody knows.
    async fn look_until_the_end(
        &self,
        id: &str,
        created: &Value,
        limits: &RequestLimits,
    ) -> Result<Result<Value, CallError>, CallError> {
        let mut task = created.clone();
        let mut answered = HashSet::new();
        let mut told = String::new();
        let mut n_failed = 0;
        loop {
            self.tell_status(&task, &mut told, limits);
            if let Some(end) = end_of_task(&task) {
                return Ok(end);
            }
            if task.get("status").and_then(Value::as_str) == Some("input_required") {
                self.answer_task(id, &task, &mut answered).await?;
            }
            self.poll_task(id, &mut task, &mut n_failed).await?;
        }
    }

    /// Looks until the server has a result, or wants something first: it asks for that while its result is waited for.
    async fn look_until_there_is_a_result(
        &self,
        id: &str,
        created: &Value,
        limits: &RequestLimits,
    ) -> Result<Result<Value, CallError>, CallError> {
        let mut task = created.clone();
        let mut told = String::new();
        let mut n_failed = 0;
        loop {
            self.tell_status(&task, &mut told, limits);
            match task.get("status").and_then(Value::as_str) {
                Some("working") => {}
                Some("completed" | "failed" | "input_required") => {
                    let limits = RequestLimits { silence: None, ..limits.clone() };
                    return Ok(self.exchange(about("tasks/result", id), limits, None).await);
                }
                _ => return Ok(end_of_task(&task).unwrap_or(Ok(Value::Null))),
            }
            self.poll_task(id, &mut task, &mut n_failed).await?;
        }
    }

    /// Looks at a task after the pause that it asks for; a look that fails for now is one more to come.
    async fn poll_task(&self, id: &str, task: &mut Value, n_failed: &mut u32) -> Result<(), CallError> {
        tokio::time::sleep(pause_of(task)).await;
        let limits = RequestLimits::within(LOOK);
        match self.exchange(about("tasks/get", id), limits, self.shared.envelope.get()).await {
            Ok(now) => (*task, *n_failed) = (now, 0),
            Err(CallError::TimedOut(_)) if *n_failed < MOST_FAILED => *n_failed += 1,
            Err(CallError::Transport(error)) if error.is_transient() && *n_failed < MOST_FAILED => {
                *n_failed += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn tell_status(&self, task: &Value, told: &mut String, limits: &RequestLimits) {
        let message = task.get("statusMessage").and_then(Value::as_str).unwrap_or_default();
        if let Some(on_progress) =
            limits.on_progress.as_ref().filter(|_| !message.is_empty() && message != told)
        {
            message.clone_into(told);
            on_progress(Progress { done: 0.0, total: None, message: Some(brief(message)) });
        }
    }

    /// Answers the questions of a task that were not answered yet.
    async fn answer_task(
        &self,
        id: &str,
        task: &Value,
        answered: &mut HashSet<String>,
    ) -> Result<(), CallError> {
        let asked = task.get("inputRequests").and_then(Value::as_object);
        let open: Map<String, Value> = asked
            .into_iter()
            .flatten()
            .filter(|(key, _)| !answered.contains(*key))
            .map(|(key, question)| (key.clone(), question.clone()))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let answers = self.answers(&open).await?;
        answered.extend(open.into_iter().map(|(key, _)| key));
        let mut update = about("tasks/update", id);
        update.params.insert("inputResponses".to_owned(), Value::Object(answers));
        self.exchange(update, RequestLimits::within(LOOK), self.shared.envelope.get()).await?;
        Ok(())
    }
}

fn id_of(task: &Value) -> Result<String, CallError> {
    let id = task.get("taskId").and_then(Value::as_str).filter(|id| !id.is_empty());
    id.map(str::to_owned).ok_or_else(|| CallError::Unreadable("a task without an id".to_owned()))
}

fn about(method: &str, id: &str) -> Outgoing {
    Outgoing::new(method, Map::from_iter([("taskId".to_owned(), json!(id))]))
}

fn pause_of(task: &Value) -> Duration {
    let asked = task.get("pollIntervalMs").or_else(|| task.get("pollInterval"));
    let asked = asked.and_then(Value::as_u64).map(Duration::from_millis);
    asked.unwrap_or(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Returns what came of a task; none while it goes on.
fn end_of_task(task: &Value) -> Option<Result<Value, CallError>> {
    match task.get("status").and_then(Value::as_str) {
        Some("working" | "input_required") => None,
        Some("completed") => Some(Ok(task.get("result").cloned().unwrap_or_default())),
        Some("failed") => Some(Err(CallError::Rpc(match task.get("error") {
            Some(error) => RpcError::read(error.clone()),
            None => RpcError::new(0, "the task failed, and the server does not say why"),
        }))),
        Some("cancelled") => Some(Err(CallError::Rpc(RpcError::new(0, "the server cancelled the task")))),
        other => Some(Err(CallError::Unreadable(format!(
            "a task with the status `{}`",
            brief(other.unwrap_or_default())
        )))),
    }
}

/// Cancels a task when it is dropped before its end.
struct TaskGuard<'a> {
    connection: &'a Connection,
    id: Option<String>,
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let connection = Connection { shared: Arc::<Shared>::clone(&self.connection.shared) };
        runtime.spawn(async move {
            let envelope = connection.shared.envelope.get();
            let cancelled =
                connection.exchange(about("tasks/cancel", &id), RequestLimits::within(LOOK), envelope).await;
            if let Err(error) = cancelled {
                tracing::debug!(target: "loci::mcp", %error, "a task could not be cancelled");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_end_in_their_ways_and_are_looked_at_as_often_as_asked() {
        let end = |task: Value| {
            end_of_task(&task).map(|end| end.map_or_else(|error| error.to_string(), |it| it.to_string()))
        };
        assert_eq!(end(json!({"status": "working"})), None);
        assert_eq!(
            end(json!({"status": "completed", "result": {"content": []}})).unwrap(),
            r#"{"content":[]}"#
        );
        assert_eq!(
            end(json!({"status": "failed", "error": {"code": -1, "message": "no"}})).unwrap(),
            "no (code -1)"
        );
        assert!(end(json!({"status": "cancelled"})).unwrap().contains("cancelled"));
        assert!(end(json!({"status": "asleep"})).unwrap().contains("asleep"));
        for (asked, expected) in
            [(json!(1), 20), (json!(400), 400), (json!(10_000_000), 60_000), (json!(null), 1000)]
        {
            assert_eq!(pause_of(&json!({"pollIntervalMs": asked})).as_millis(), expected, "{asked}");
        }
    }
}
