//! Handlers that ask a model: whether all is well, in one word.

use std::sync::Arc;
use std::time::Duration;

use loci_core::hooks::HandlerEnd;
use loci_core::message::{Block, Message, Role};
use loci_llm::{Request, SystemBlock};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::HookService;
use crate::conversation::host::lock;
use crate::models::side_request::{answer_text, ask_model};

/// What the model is told before the question.
const SYSTEM: &str = "You check one condition for a coding agent that is about to act or to stop. Read the question and the \
event it is about, then answer with a single JSON object and nothing else: {\"ok\": true} when the condition holds, \
{\"ok\": false, \"reason\": \"...\"} when it does not, with a reason the agent can act upon. Add \"impossible\": true only \
when the agent could never meet the condition.";
/// The most that it may write.
const MAX_TOKENS: u64 = 1024;

impl HookService {
    /// Asks a model.
    pub(super) async fn run_prompt(
        &self,
        (prompt, model): (&str, Option<&str>),
        json: Arc<str>,
        (limit, continues): (Duration, bool),
        cancel: &CancellationToken,
    ) -> HandlerEnd {
        let vars = lock(&self.world().ambient).env.vars.clone();
        let model = self.world().small_model.choose(&vars, model);
        let question = Message::new(Role::User, vec![Block::new_text(&with_arguments(prompt, &json))]);
        let request = Request {
            system: vec![SystemBlock { text: SYSTEM.to_owned(), is_cached: false }],
            ..Request::new(model, MAX_TOKENS, vec![question])
        };
        let world = self.world();
        let asked = ask_model(&world.client, &world.models, &world.identity, request, cancel);
        match tokio::time::timeout(limit, asked).await {
            Err(_) => HandlerEnd::TimedOut { blocks: false },
            Ok(Err(failure)) => {
                HandlerEnd::Failed(format!("the model could not be asked: {}", failure.message))
            }
            Ok(Ok(blocks)) => judged(&answer_text(&blocks), continues),
        }
    }
}

/// Puts the input in the place of `$ARGUMENTS`, or behind a question that does not name it. `\\$` is a plain dollar.
pub(super) fn with_arguments(prompt: &str, json: &str) -> String {
    const MARK: &str = "$ARGUMENTS";
    let mut out = String::new();
    let mut has_it = false;
    let mut rest = prompt;
    while let Some(at) = rest.find('$') {
        let (before, from) = rest.split_at(at);
        if let Some(kept) = before.strip_suffix('\\') {
            out.push_str(kept);
            out.push('$');
            rest = &from[1..];
        } else if let Some(behind) = from.strip_prefix(MARK) {
            out.push_str(before);
            out.push_str(json);
            has_it = true;
            rest = behind;
        } else {
            out.push_str(before);
            out.push('$');
            rest = &from[1..];
        }
    }
    out.push_str(rest);
    match has_it {
        true => out,
        false => format!("{out}\n\n{json}"),
    }
}

/// Reads the model's word: the first object in what it said.
pub(crate) fn judged(text: &str, continues: bool) -> HandlerEnd {
    let object = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let said: Option<Value> = object.and_then(|object| serde_json::from_str(object).ok());
    let Some(is_ok) = said.as_ref().and_then(|said| said.get("ok")).and_then(Value::as_bool) else {
        return HandlerEnd::Failed("the model did not say whether all is well".to_owned());
    };
    let said = said.unwrap_or_default();
    HandlerEnd::Judged {
        is_ok,
        reason: said.get("reason").and_then(Value::as_str).unwrap_or_default().to_owned(),
        is_impossible: said.get("impossible").and_then(Value::as_bool).unwrap_or(false),
        continues,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_takes_the_place_of_arguments_or_follows_the_question() {
        for (prompt, expected) in [
            ("Is $ARGUMENTS fine?", "Is {} fine?"),
            ("Is it fine?", "Is it fine?\n\n{}"),
            ("\\$ARGUMENTS costs $5: $ARGUMENTS", "$ARGUMENTS costs $5: {}"),
        ] {
            assert_eq!(with_arguments(prompt, "{}"), expected);
        }
    }

    #[test]
    fn word_of_the_model_is_found_in_what_it_says() {
        let read = |text: &str| match judged(text, false) {
            HandlerEnd::Judged { is_ok, reason, is_impossible, .. } => {
                format!("{is_ok} {reason} {is_impossible}")
            }
            HandlerEnd::Failed(_) => "failed".to_owned(),
            other => format!("{other:?}"),
        };
        for (text, expected) in [
            (r#"{"ok": true}"#, "true  false"),
            ("Sure:\n```json\n{\"ok\": false, \"reason\": \"r\"}\n```", "false r false"),
            (r#"{"ok": false, "impossible": true}"#, "false  true"),
            ("yes", "failed"),
            (r#"{"ok": "yes"}"#, "failed"),
            ("} {", "failed"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
