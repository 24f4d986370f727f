//! Control requests we make of the client, and who waits for each answer.
//!
//! A request is open from the moment it is written until it is answered or withdrawn, or the client goes away. The
//! engine's permission questions are answered by commands; whatever else the process asks has a waiter of its own
//! ([`ClientRequests`](loci_engine::ClientRequests)). Nothing here writes: what is to be written is returned.

use std::collections::VecDeque;

use loci_core::permission::Update;
use loci_engine::{
    Answer, ClientAnswer, ClientMessage, ClientRequest, ClientRequestError, Question, QuestionKind,
};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::input::Response;

/// How many withdrawn requests are remembered, so that answers that crossed the withdrawal surprise nobody.
const N_REMEMBERED: usize = 64;

/// The requests that wait for the client, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OutgoingRequests {
    open: Vec<(String, Waiter)>,
    withdrawn: VecDeque<String>,
    is_client_gone: bool,
}

/// Who waits for an answer.
#[derive(Debug)]
enum Waiter {
    /// The engine: whether a call may run, of the main line or of an agent.
    Permission { is_agents: bool },
    /// Whoever sent the request.
    Sender(oneshot::Sender<ClientAnswer>),
}

/// What a response of the client is.
#[derive(Debug, PartialEq)]
pub(crate) enum Responded {
    /// The answer to a permission question.
    Permission {
        /// The question's id.
        question: String,
        /// What the client said.
        result: Result<Value, String>,
    },
    /// The answer that somebody waited for, who has it now.
    Delivered,
    /// The answer to a request that was withdrawn meanwhile.
    Late,
    /// No request of ours that is open has this id.
    Unknown,
}

impl Responded {
    /// Returns what it is, in a word or two.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Permission { .. } => "permission",
            Self::Delivered => "delivered",
            Self::Late => "late",
            Self::Unknown => "unknown",
        }
    }
}

impl OutgoingRequests {
    /// Opens a permission question and returns its line; none when nobody is left to ask.
    pub(crate) fn ask(&mut self, question: &Question) -> Option<Value> {
        if self.is_client_gone {
            return None;
        }
        let is_agents = question.agent.is_some();
        self.open.push((question.id.clone(), Waiter::Permission { is_agents }));
        Some(request(&question.id, can_use_tool(question)))
    }

    /// Takes what somebody in the process wants of the client; returns the line to write, if there is one.
    pub(crate) fn take(&mut self, message: ClientMessage) -> Option<Value> {
        match message {
            ClientMessage::Request(ClientRequest { waiter, .. }) if self.is_client_gone => {
                // Whoever has stopped waiting needs no answer.
                drop(waiter.send(Err(ClientRequestError::Gone)));
                None
            }
            ClientMessage::Request(ClientRequest { id, subtype, payload, waiter }) => {
                let mut fields = Map::from_iter([("subtype".to_owned(), Value::from(subtype))]);
                fields.extend(payload);
                let line = request(&id, Value::Object(fields));
                self.open.push((id, Waiter::Sender(waiter)));
                Some(line)
            }
            ClientMessage::Withdrawn(id) => self.withdraw(&id),
        }
    }

    /// Takes a response of the client to wherever it belongs.
    pub(crate) fn respond(&mut self, response: Response) -> Responded {
        let Response { id, result } = response;
        let Some(at) = self.open.iter().position(|(open, _)| *open == id) else {
            return self.unexpected(&id);
        };
        match self.open.remove(at).1 {
            Waiter::Permission { .. } => Responded::Permission { question: id, result },
            Waiter::Sender(waiter) => {
                // Whoever has stopped waiting needs no answer.
                drop(waiter.send(result.map_err(ClientRequestError::Refused)));
                Responded::Delivered
            }
        }
    }

    /// Withdraws a request; returns the line that says so, unless it was not open.
    pub(crate) fn withdraw(&mut self, id: &str) -> Option<Value> {
        let at = self.open.iter().position(|(open, _)| open == id)?;
        let (id, _) = self.open.remove(at);
        let line = cancel(&id);
        self.remember(id);
        Some(line)
    }

    /// Withdraws every permission question of the main line; returns the lines that say so. Those of agents are withdrawn
    /// by the engine, where their turn stops, too.
    pub(crate) fn withdraw_questions(&mut self) -> Vec<Value> {
        self.take_questions(|is_agents| !is_agents).iter().map(|id| cancel(id)).collect()
    }

    /// Nobody will answer any more: whoever waits is told. Returns the permission questions that were open.
    pub(crate) fn client_gone(&mut self) -> Vec<String> {
        self.is_client_gone = true;
        let questions = self.take_questions(|_| true);
        for (_, waiter) in self.open.drain(..) {
            if let Waiter::Sender(waiter) = waiter {
                drop(waiter.send(Err(ClientRequestError::Gone)));
            }
        }
        questions
    }

    fn take_questions(&mut self, is_wanted: impl Fn(bool) -> bool) -> Vec<String> {
        let is_question = |(_, waiter): &mut (String, Waiter)| matches!(waiter, Waiter::Permission { is_agents } if is_wanted(*is_agents));
        let questions: Vec<String> = self.open.extract_if(.., is_question).map(|(id, _)| id).collect();
        questions.iter().for_each(|id| self.remember(id.clone()));
        questions
    }

    fn remember(&mut self, id: String) {
        self.withdrawn.truncate(N_REMEMBERED - 1);
        self.withdrawn.push_front(id);
    }

    fn unexpected(&mut self, id: &str) -> Responded {
        match self.withdrawn.iter().position(|withdrawn| withdrawn == id) {
            Some(at) => {
                self.withdrawn.remove(at);
                Responded::Late
            }
            None => Responded::Unknown,
        }
    }
}

fn request(id: &str, request: Value) -> Value {
    let subtype = request["subtype"].as_str().unwrap_or_default();
    tracing::debug!(target: "loci::control", subtype, "asked {id}");
    json!({"type": "control_request", "request_id": id, "request": request})
}

fn cancel(id: &str) -> Value {
    tracing::debug!(target: "loci::control", "withdrawn {id}");
    json!({"type": "control_cancel_request", "request_id": id})
}

/// Asks whether a call may run.
fn can_use_tool(question: &Question) -> Value {
    let suggestions: Vec<Value> = question.suggestions.iter().map(Update::to_value).collect();
    let mut request = json!({
        "subtype": "can_use_tool",
        "tool_name": question.tool,
        "display_name": question.tool,
        "input": question.input,
        "permission_suggestions": suggestions,
        "decision_reason": question.reason,
        "decision_reason_type": question.reason_kind,
        "tool_use_id": question.call.as_str(),
    });
    if let Some(text) = question.input.get("description").filter(|text| text.is_string()) {
        request["description"] = text.clone();
    }
    if let Some(server) = &question.server {
        request["mcp_server"] = json!({"name": server.name, "source": server.source});
    }
    // The answer is more than a yes or a no.
    if question.kind != QuestionKind::Permission {
        request["requires_user_interaction"] = json!(true);
    }
    if let Some(path) = &question.blocked_path {
        request["blocked_path"] = json!(path);
    }
    if let Some(agent) = &question.agent {
        request["agent_id"] = json!(agent.id.as_str());
        request["agent_type"] = json!(agent.kind);
    }
    request
}

/// Reads the client's answer to a question; whatever is not a clear yes is a no. What cannot be understood of what
/// it wants changed is left out and said.
pub(crate) fn parse_permission_answer(result: Result<Value, String>) -> (Answer, Vec<String>) {
    let wanted = result.as_ref().ok().and_then(|value| value.get("updatedPermissions"));
    let wanted = wanted.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let (good, bad): (Vec<_>, Vec<_>) = wanted.iter().map(Update::parse).partition(Result::is_ok);
    let updates = good.into_iter().filter_map(Result::ok).collect();
    let complaints = bad.into_iter().filter_map(Result::err).map(|bad| bad.to_string()).collect();
    (verdict(result, updates), complaints)
}

fn verdict(result: Result<Value, String>, updates: Vec<Update>) -> Answer {
    let deny = |message: String, stops| Answer::Deny { message, stops };
    match result {
        Err(error) => deny(format!("The permission question failed: {error}"), false),
        Ok(value) => match value.get("behavior").and_then(Value::as_str) {
            Some("allow") => Answer::Allow {
                input: value.get("updatedInput").filter(|input| input.is_object()).cloned(),
                updates,
            },
            Some("deny") => deny(
                value.get("message").and_then(Value::as_str).unwrap_or("The call was denied.").to_owned(),
                value.get("interrupt").and_then(Value::as_bool).unwrap_or(false),
            ),
            _ => deny("The answer to the permission question could not be understood.".to_owned(), false),
        },
    }
}

#[cfg(test)]
mod tests {
    use loci_engine::ClientRequests;
    use loci_stdx::SeededRandom;
    use std::sync::Arc;
    use std::task::Poll;
    use tokio::sync::mpsc::UnboundedReceiver;

    use super::*;

    #[test]
    fn answer_without_behavior_allow_is_a_denial() {
        for (result, allowed) in [
            (Ok(json!({"behavior": "allow", "updatedInput": {"a": 1}})), true),
            (Ok(json!({"behavior": "allow"})), true),
            (Ok(json!({"behavior": "deny", "message": "no"})), false),
            (Ok(json!({})), false),
            (Ok(json!("allow")), false),
            (Err("callback failed".to_owned()), false),
        ] {
            let (answer, _) = parse_permission_answer(result.clone());
            assert_eq!(matches!(answer, Answer::Allow { .. }), allowed, "{result:?}");
        }
    }

    #[test]
    fn permission_updates_need_an_allow_and_bad_ones_are_reported() {
        let good = json!({"type": "setMode", "mode": "plan", "destination": "session"});
        let wanted = json!([good, {"type": "setMode", "mode": "yolo", "destination": "session"}]);
        let (yes, said) =
            parse_permission_answer(Ok(json!({"behavior": "allow", "updatedPermissions": wanted})));
        let Answer::Allow { updates, input: None } = yes else { panic!("{yes:?}") };
        assert_eq!(updates.iter().map(Update::to_value).collect::<Vec<_>>(), [good]);
        assert_eq!(said.len(), 1, "{said:?}");
        let (no, _) = parse_permission_answer(Ok(json!({"behavior": "deny", "updatedPermissions": wanted})));
        assert!(matches!(no, Answer::Deny { .. }));
    }

    fn question(id: &str) -> Question {
        Question {
            id: id.to_owned(),
            agent: None,
            tool: "Bash".to_owned(),
            server: None,
            call: "toolu_1".into(),
            input: json!({}),
            kind: loci_engine::QuestionKind::Permission,
            reason: String::new(),
            reason_kind: "other".into(),
            blocked_path: None,
            links: Vec::new(),
            suggestions: Vec::new(),
        }
    }

    fn response(id: &str, result: Result<Value, String>) -> Response {
        Response { id: id.to_owned(), result }
    }

    /// A table and the two ends of the way to it.
    fn table() -> (OutgoingRequests, ClientRequests, UnboundedReceiver<ClientMessage>) {
        let (requests, messages) = ClientRequests::channel(Arc::new(SeededRandom::new(0)));
        (OutgoingRequests::default(), requests, messages)
    }

    fn payload() -> Map<String, Value> {
        Map::from_iter([("callback_id".to_owned(), json!("hook_0"))])
    }

    #[tokio::test]
    async fn each_response_goes_to_whoever_waits_for_its_id() {
        let (mut table, requests, mut messages) = table();
        let hook = requests.request("hook_callback", payload());
        let message = requests.request("mcp_message", Map::new());
        let serve = async {
            assert!(table.ask(&question("q")).is_some());
            let first = table.take(messages.recv().await.unwrap()).unwrap();
            let second = table.take(messages.recv().await.unwrap()).unwrap();
            assert_eq!(first["request"], json!({"subtype": "hook_callback", "callback_id": "hook_0"}));
            assert_eq!(second["request"], json!({"subtype": "mcp_message"}));
            let id = |line: &Value| line["request_id"].as_str().unwrap().to_owned();
            let answer = table.respond(response(&id(&second), Err("no such server".to_owned())));
            assert_eq!(answer, Responded::Delivered);
            let answer = table.respond(response("q", Ok(json!({"behavior": "allow"}))));
            assert_eq!(
                answer,
                Responded::Permission { question: "q".to_owned(), result: Ok(json!({"behavior": "allow"})) }
            );
            let answer = table.respond(response(&id(&first), Ok(json!({"continue": true}))));
            assert_eq!(answer, Responded::Delivered);
            for again in ["q", &id(&first), "never-sent"] {
                assert_eq!(table.respond(response(again, Ok(Value::Null))), Responded::Unknown, "{again}");
            }
        };
        let (hook, message, ()) = tokio::join!(hook, message, serve);
        assert_eq!(hook, Ok(json!({"continue": true})));
        assert_eq!(message, Err(ClientRequestError::Refused("no such server".to_owned())));
        assert!(messages.try_recv().is_err(), "what was answered is not withdrawn");
    }

    #[tokio::test]
    async fn request_nobody_waits_for_any_more_is_withdrawn() {
        let (mut table, requests, mut messages) = table();
        let limit = std::time::Duration::from_millis(1);
        assert!(tokio::time::timeout(limit, requests.request("hook_callback", payload())).await.is_err());
        let line = table.take(messages.recv().await.unwrap()).unwrap();
        let id = line["request_id"].as_str().unwrap();
        let withdrawn = table.take(messages.recv().await.unwrap());
        assert_eq!(withdrawn, Some(json!({"type": "control_cancel_request", "request_id": id})));
        for expected in [Responded::Late, Responded::Unknown] {
            assert_eq!(table.respond(response(id, Ok(Value::Null))), expected);
        }
    }

    #[tokio::test]
    async fn answered_request_is_not_withdrawn_when_its_waiter_leaves() {
        let (mut table, requests, mut messages) = table();
        let mut waiting = Box::pin(requests.request("elicitation", Map::new()));
        let polled = std::future::poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        let line = table.take(messages.recv().await.unwrap()).unwrap();
        let id = line["request_id"].as_str().unwrap();
        assert_eq!(table.respond(response(id, Ok(Value::Null))), Responded::Delivered);
        drop(waiting);
        assert_eq!(table.take(messages.recv().await.unwrap()), None);
    }

    #[tokio::test]
    async fn everything_open_fails_when_the_client_is_gone() {
        let (mut table, requests, mut messages) = table();
        let open = requests.request("hook_callback", payload());
        let serve = async {
            assert!(table.ask(&question("q")).is_some());
            assert!(table.take(messages.recv().await.unwrap()).is_some());
            assert_eq!(table.client_gone(), ["q"]);
            assert_eq!(table.ask(&question("later")), None);
        };
        let (open, ()) = tokio::join!(open, serve);
        assert_eq!(open, Err(ClientRequestError::Gone));
        let serve = async { assert_eq!(table.take(messages.recv().await.unwrap()), None) };
        let (later, ()) = tokio::join!(requests.request("hook_callback", payload()), serve);
        assert_eq!(later, Err(ClientRequestError::Gone));
        drop(messages);
        for gone in [requests, ClientRequests::none()] {
            assert_eq!(gone.request("elicitation", Map::new()).await, Err(ClientRequestError::Gone));
        }
    }

    #[test]
    fn interrupt_withdraws_questions_and_nothing_else() {
        let (mut table, ..) = table();
        let (waiter, mut answer) = oneshot::channel();
        let request = ClientRequest {
            id: "h".to_owned(),
            subtype: "hook_callback".to_owned(),
            payload: payload(),
            waiter,
        };
        assert!(table.ask(&question("q1")).is_some());
        assert!(table.take(ClientMessage::Request(request)).is_some());
        assert!(table.ask(&question("q2")).is_some());
        let ids: Vec<Value> =
            table.withdraw_questions().iter().map(|line| line["request_id"].clone()).collect();
        assert_eq!(ids, ["q1", "q2"]);
        assert_eq!(table.withdraw("q1"), None);
        assert_eq!(table.respond(response("h", Ok(json!(1)))), Responded::Delivered);
        assert_eq!(answer.try_recv(), Ok(Ok(json!(1))));
    }
}
