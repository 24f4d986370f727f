//! Handlers that are functions of the client which drives the session: asked over its protocol.

use std::sync::Arc;
use std::time::Duration;

use loci_core::hooks::{
    Condition, Handler, HandlerEnd, HookEntry, HookEvent, HookInput, HookScope, HookSource, Matcher,
};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::HookService;
use crate::session::client_request::ClientRequestError;
use crate::session::initialize::ClientHook;

/// Returns an entry for each callback that a client registered, and what is wrong with the rest.
pub(crate) fn client_entries(hooks: &[ClientHook]) -> (Vec<Arc<HookEntry>>, Vec<String>) {
    let mut entries = Vec::new();
    let mut problems = Vec::new();
    for hook in hooks {
        let Some(event) = HookEvent::parse(&hook.event) else {
            problems.push(format!("The client has hooks for `{}`, which is no event here", hook.event));
            continue;
        };
        if !event.is_built() {
            problems.push(format!(
                "The client has hooks for `{}`, which does not happen in this version yet: they are never asked",
                hook.event
            ));
        }
        let text = hook.matcher.clone().unwrap_or_default();
        let (matcher, problem) = Matcher::parse(event, &text);
        problems.extend(problem.map(|problem| format!("A hook of the client: {problem}")));
        entries.extend(hook.callback_ids.iter().map(|id| {
            Arc::new(HookEntry {
                event,
                matcher_text: text.clone(),
                matcher: matcher.clone(),
                condition: Condition::Always,
                handler: Handler::Callback {
                    id: id.clone(),
                    blocks_on_failure: hook.blocks_on_failure && can_fail_closed(event),
                },
                timeout: hook.timeout,
                status_message: None,
                is_once: false,
                source: HookSource { scope: HookScope::Client, file: "client".into(), line: 0 },
                vars: Arc::from([]),
            })
        }));
    }
    (entries, problems)
}

/// Tells whether a failed callback of an event may keep something from happening: the end of a turn it may not.
fn can_fail_closed(event: HookEvent) -> bool {
    !matches!(
        event,
        HookEvent::Stop | HookEvent::SubagentStop | HookEvent::TaskCompleted | HookEvent::TeammateIdle
    )
}

/// Makes a failure what it is for a command that exits with 2: what is guarded is not let through.
pub(super) fn failed_closed(end: HandlerEnd) -> HandlerEnd {
    let blocked = |why: String| HandlerEnd::Exited { code: 2, stdout: String::new(), stderr: why };
    match end {
        HandlerEnd::Failed(why) => blocked(why),
        HandlerEnd::TimedOut { .. } => blocked("the hook did not answer in time".to_owned()),
        HandlerEnd::Replied(Value::Null) => blocked("the hook's answer is no object".to_owned()),
        other => other,
    }
}

impl HookService {
    /// Asks the client; one that does not answer in time blocks where it could have refused.
    pub(super) async fn run_callback(
        &self,
        id: &str,
        input: &HookInput,
        call: Option<&str>,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> HandlerEnd {
        let guards = matches!(input.event.event(), HookEvent::PreToolUse | HookEvent::UserPromptSubmit);
        let call = call.map_or_else(|| self.fresh_id(), str::to_owned);
        let payload = Map::from_iter([
            ("callback_id".to_owned(), json!(id)),
            ("tool_use_id".to_owned(), json!(call)),
            ("input".to_owned(), input.to_value()),
        ]);
        let asked = self.world().client_requests.request("hook_callback", payload);
        let answer = tokio::select! {
            answer = tokio::time::timeout(limit, asked) => answer,
            () = cancel.cancelled() => return HandlerEnd::Cancelled,
        };
        match answer {
            Ok(Ok(Value::Object(fields))) => HandlerEnd::Replied(Value::Object(fields)),
            Ok(Ok(_)) => HandlerEnd::Replied(Value::Null),
            Ok(Err(ClientRequestError::Refused(why))) => {
                HandlerEnd::Failed(format!("the client refused: {why}"))
            }
            Ok(Err(ClientRequestError::Gone)) if guards => HandlerEnd::TimedOut { blocks: true },
            Ok(Err(ClientRequestError::Gone)) => HandlerEnd::Failed("the client is gone".to_owned()),
            Err(_) => HandlerEnd::TimedOut { blocks: guards },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callbacks_that_are_never_asked_are_reported() {
        for (event, n_entries, expected) in [
            ("PreToolUse", 1, None),
            ("TeammateIdle", 1, Some("does not happen in this version yet")),
            ("BeforeLunch", 0, Some("no event here")),
        ] {
            let hook = ClientHook {
                event: event.to_owned(),
                matcher: None,
                callback_ids: vec!["hook_0".to_owned()],
                timeout: None,
                blocks_on_failure: false,
            };
            let (entries, problems) = client_entries(&[hook]);
            assert_eq!(entries.len(), n_entries, "{event}");
            assert_eq!(problems.is_empty(), expected.is_none(), "{event}: {problems:?}");
            assert!(expected.is_none_or(|words| problems[0].contains(words)), "{event}: {problems:?}");
        }
    }
}
