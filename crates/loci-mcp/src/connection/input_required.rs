//! Requests that need something of us before they can be answered: a server of the newer era says what, and is asked
//! again with it. What it sends along for itself goes back as it came, with that one request and with no other.

use std::time::Duration;

use serde_json::{Map, Value};

use super::required_pages::{MOST_REFUSALS, PAGES_REQUIRED};
use super::{CallError, Connection, Outgoing, RequestLimits, server_requests};
use crate::message::{METHOD_NOT_FOUND, RpcError};
use crate::names::brief;

/// How often one request may come back with questions, and with how many at once.
const MOST_ROUNDS: usize = 10;
const MOST_QUESTIONS: usize = 16;
/// The pause before a server is asked again that wants nothing but to be asked again, and the longest.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

impl Connection {
    /// Asks something that may need questions to be answered first.
    pub(super) async fn ask(&self, outgoing: Outgoing, limits: RequestLimits) -> Result<Value, CallError> {
        let envelope = self.shared.envelope.get();
        let mut round = outgoing.clone();
        let mut pause = PAUSE;
        let mut n_refused = 0;
        for _ in 0..=MOST_ROUNDS {
            let result = match self.exchange(round, limits.clone(), envelope).await {
                Err(CallError::Rpc(error)) if error.code == PAGES_REQUIRED && n_refused < MOST_REFUSALS => {
                    n_refused += 1;
                    if !self.visit_pages(&error).await {
                        return Err(CallError::Rpc(error));
                    }
                    round = outgoing.clone();
                    continue;
                }
                result => result?,
            };
            match result.get("resultType").and_then(Value::as_str) {
                None | Some("complete") => return Ok(result),
                Some("input_required") if envelope.is_some() => {}
                Some("task") if envelope.is_some() && outgoing.method == "tools/call" => {
                    return self.follow_task(&result, &limits).await;
                }
                // Whoever knows no other kinds reads what is there.
                Some(_) if envelope.is_none() => return Ok(result),
                Some(other) => {
                    return Err(CallError::Unreadable(format!("a result of the kind `{}`", brief(other))));
                }
            }
            round = outgoing.clone();
            match result.get("inputRequests").and_then(Value::as_object).filter(|it| !it.is_empty()) {
                Some(questions) => {
                    let answers = self.answers(questions).await?;
                    round.params.insert("inputResponses".to_owned(), Value::Object(answers));
                    pause = PAUSE;
                }
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
            if let Some(state) = result.get("requestState").filter(|state| !state.is_null()) {
                round.params.insert("requestState".to_owned(), state.clone());
            }
        }
        Err(CallError::Unreadable(format!("the server asked back more than {MOST_ROUNDS} times")))
    }

    /// Answers all questions of one round, side by side; one that cannot be answered fails the request.
    pub(super) async fn answers(
        &self,
        questions: &Map<String, Value>,
    ) -> Result<Map<String, Value>, CallError> {
        if questions.len() > MOST_QUESTIONS {
            return Err(CallError::Unreadable(format!("{} questions at once", questions.len())));
        }
        let asked = &self.shared.asked;
        let answers = questions.iter().map(|(key, question)| async move {
            let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
            if method != "elicitation/create" {
                let said = format!("the server asks for `{}`, which loci does not answer", brief(method));
                return Err(RpcError::new(METHOD_NOT_FOUND, said));
            }
            let params = question.get("params").cloned().unwrap_or_default();
            let answer =
                server_requests::result(asked.server.clone(), asked.client.as_ref(), method, params).await?;
            Ok((key.clone(), answer))
        });
        let answers = futures_util::future::try_join_all(answers).await?;
        Ok(answers.into_iter().collect())
    }
}
