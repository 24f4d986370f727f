//! A goal (`/goal`): a condition that the session works towards until it holds.
//!
//! Whenever a turn of the main line is about to end, and nothing of it works in the background, a small model is shown the
//! condition and the end of the conversation, and says whether it holds, not yet, or never can. "Not yet" is an objection to
//! the turn's end, like a hook's: the model goes on with the reason as its guidance. Whoever makes no call for a few checks
//! in a row is let go, with the goal still set.
//!
//! The transcript says what is worked towards, so a session that goes on goes on with it, counted anew. What hooks may not
//! do, a goal may not either ([`refusal`]).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use loci_core::hooks::HandlerEnd;
use loci_core::message::{Block, Message, Role};
use loci_core::stream::FailureKind;
use loci_llm::{Request, SystemBlock};
use loci_stdx::{single_line, truncate_chars};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub use loci_protocol::goal::{Goal, GoalEnd, GoalVerdict};

use crate::command::Prompt;
use crate::conversation::SessionContext;
use crate::conversation::host::lock;
use crate::event::EngineEvent;
use crate::extensions::hooks::judged;
use crate::models::side_request::{answer_text, ask_model};
use crate::turn::Objection;

/// The most letters of a condition.
const MOST_CONDITION: usize = 4_000;
/// The words that take a goal away.
pub const CLEAR_WORDS: &[&str] = &["clear", "stop", "off", "reset", "none", "cancel"];
/// The most letters of the conversation that the model is shown.
const MOST_LETTERS: usize = 60_000;
/// The most letters of one call or result of it.
const MOST_PART: usize = 2_000;
/// The most that the model may write.
const MAX_TOKENS: u64 = 1024;
/// After so many checks without a call in between the person is asked to say something.
const MOST_IDLE: u32 = 3;
/// How long a check may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the model that judges is told.
const SYSTEM: &str = "You decide whether a coding agent has reached the goal that its user set. You see the condition and the end \
of their conversation, nothing else, and you cannot look anything up: what the conversation does not show is not so. Answer \
with a single JSON object and nothing else: {\"ok\": true, \"reason\": \"...\"} when what is shown proves that the condition \
holds; {\"ok\": false, \"reason\": \"...\"} when it does not yet, with what is missing in one or two sentences that the agent \
can act upon. Add \"impossible\": true only when the condition can never be met, whatever the agent does.";

/// The goal of a session.
#[derive(Debug, Default)]
pub(crate) struct GoalKeeper {
    /// Held for a few lines.
    state: Mutex<GoalState>,
}

#[derive(Debug, Default)]
struct GoalState {
    goal: Option<Goal>,
    /// Calls there were at the last check, and checks since that number changed.
    n_calls: Option<usize>,
    n_idle: u32,
    /// How often hooks have made the turn at hand go on: the limit of a turn that a goal lets go on counts them alone.
    n_hook_objections: u32,
}

impl GoalKeeper {
    /// Takes up what a session worked towards when it was left.
    pub(crate) fn restored(condition: Option<&str>, now: Duration) -> Self {
        let keeper = Self::default();
        condition.into_iter().for_each(|condition| keeper.set(condition, now));
        keeper
    }

    /// Sets a goal in the place of another.
    pub(crate) fn set(&self, condition: &str, now: Duration) {
        let condition = truncate_chars(condition, MOST_CONDITION).to_owned();
        let goal = Goal { condition, since: now, n_checks: 0, reason: None, end: None };
        *lock(&self.state) = GoalState { goal: Some(goal), ..GoalState::default() };
    }

    /// Takes the goal away; returns it where one was worked towards.
    pub(crate) fn clear(&self) -> Option<Goal> {
        let mut state = lock(&self.state);
        let is_active = state.goal.as_ref().is_some_and(|goal| goal.end.is_none());
        if is_active { state.goal.take() } else { None }
    }

    /// Returns the goal, also one that has ended.
    pub(crate) fn get(&self) -> Option<Goal> {
        lock(&self.state).goal.clone()
    }

    /// Returns what is worked towards.
    pub(crate) fn active(&self) -> Option<Goal> {
        self.get().filter(|goal| goal.end.is_none())
    }

    /// A turn begins.
    pub(crate) fn begin_turn(&self) {
        let mut state = lock(&self.state);
        (state.n_hook_objections, state.n_idle) = (0, 0);
    }

    /// Tells whether hooks may still make the turn go on.
    pub(crate) fn may_hooks_object(&self, limit: u32) -> bool {
        limit == 0 || lock(&self.state).n_hook_objections < limit
    }

    /// Notes that hooks have made the turn go on.
    pub(crate) fn note_hook_objection(&self) {
        lock(&self.state).n_hook_objections += 1;
    }

    /// Takes note of what was said of the goal; returns what follows.
    fn judge(&self, said: &Judgement, n_calls: usize) -> GoalVerdict {
        let mut state = lock(&self.state);
        let is_idle = state.n_calls.replace(n_calls) == Some(n_calls);
        state.n_idle = if is_idle { state.n_idle + 1 } else { 0 };
        let n_idle = state.n_idle;
        let Some(goal) = state.goal.as_mut() else { return GoalVerdict::Unknown };
        goal.n_checks += 1;
        goal.reason = Some(said.reason.clone()).filter(|reason| !reason.is_empty());
        match said.verdict {
            GoalVerdict::Reached => goal.end = Some(GoalEnd::Reached),
            GoalVerdict::Impossible => goal.end = Some(GoalEnd::Impossible),
            GoalVerdict::NotYet if n_idle >= MOST_IDLE => return GoalVerdict::Stalled,
            GoalVerdict::NotYet | GoalVerdict::Stalled | GoalVerdict::Unknown => {}
        }
        said.verdict.clone()
    }
}

/// What a model said of a goal.
#[derive(Debug, PartialEq, Eq)]
struct Judgement {
    verdict: GoalVerdict,
    reason: String,
}

/// Says why no goal can be set, from the settings in force: a goal is a hook, and goes where they go.
pub fn refusal(settings: &Value) -> Option<&'static str> {
    let is_on = |key: &str| settings.get(key).and_then(Value::as_bool) == Some(true);
    if is_on("disableAllHooks") {
        return Some("Hooks are switched off (`disableAllHooks`), and a goal is checked by one");
    }
    is_on("allowManagedHooksOnly")
        .then_some("Only hooks of the administrator count here (`allowManagedHooksOnly`), and a goal is none")
}

/// Makes the prompt that begins the work towards a goal.
pub(crate) fn goal_prompt(prompt: &Prompt, condition: &str) -> Prompt {
    let text = format!(
        "Work towards this goal until it holds:\n\n{condition}\n\nWhenever you stop, somebody who sees only this conversation \
         checks whether it holds, and you are asked to go on as long as it does not. So show the proof: run what the condition \
         speaks of and let its outcome be seen."
    );
    Prompt {
        content: loci_core::message::Content::Text(text),
        typed: Some(prompt.typed_text()),
        is_verbatim: true,
        ..prompt.clone()
    }
}

/// Looks whether the goal holds, before a turn ends; returns what speaks against the end.
pub(crate) async fn check_goal(
    ctx: Arc<SessionContext>,
    goal: Goal,
    messages: Vec<Message>,
    models: loci_core::model::ModelCatalog,
) -> Option<Objection> {
    let n_calls = messages
        .iter()
        .flat_map(|message| message.content.iter())
        .filter(|it| it.tool_use().is_some())
        .count();
    let text =
        format!("The condition:\n{}\n\nThe end of the conversation:\n{}", goal.condition, tail(&messages));
    let vars = lock(&ctx.services.ambient).env.vars.clone();
    let request = Request {
        system: vec![SystemBlock { text: SYSTEM.to_owned(), is_cached: false }],
        ..Request::new(
            ctx.services.small_model.choose(&vars, None),
            MAX_TOKENS,
            vec![Message::new(Role::User, vec![Block::new_text(&text)])],
        )
    };
    let cancel = CancellationToken::new();
    let _guard = cancel.clone().drop_guard();
    let asked = ask_model(&ctx.services.client, &models, &ctx.identity, request, &cancel);
    let said = match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(blocks)) => judgement(judged(&answer_text(&blocks), true)),
        Ok(Err(failure)) => unknown(&failure.message),
        Err(_) => unknown("the model that checks it did not answer in time"),
    };
    let verdict = ctx.goal.judge(&said, n_calls);
    let objection = (verdict == GoalVerdict::NotYet).then(|| Objection {
        text: format!("The goal is not reached yet: {}", said.reason),
        attachments: Vec::new(),
    });
    if let Some(goal) = ctx.goal.get() {
        // Without a listener there is nobody to tell.
        drop(ctx.events.send(EngineEvent::GoalChecked { goal, verdict, reason: said.reason }));
    }
    objection
}

/// Tells whether a failure lasts until somebody mends its cause, so that the goal has no use.
pub(crate) fn is_lasting(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unauthenticated
            | FailureKind::Forbidden
            | FailureKind::Billing
            | FailureKind::SpendLimit
            | FailureKind::NotFound
            | FailureKind::PromptTooLong
            | FailureKind::TooLarge
    )
}

fn unknown(why: &str) -> Judgement {
    Judgement { verdict: GoalVerdict::Unknown, reason: why.to_owned() }
}

fn judgement(end: HandlerEnd) -> Judgement {
    match end {
        HandlerEnd::Judged { is_ok: true, reason, .. } => Judgement { verdict: GoalVerdict::Reached, reason },
        HandlerEnd::Judged { is_impossible: true, reason, .. } => {
            Judgement { verdict: GoalVerdict::Impossible, reason }
        }
        HandlerEnd::Judged { reason, .. } => Judgement { verdict: GoalVerdict::NotYet, reason },
        HandlerEnd::Failed(why) => unknown(&why),
        _ => unknown("the model that checks it broke off"),
    }
}

/// Tells the end of a conversation as text: the newest parts that fit.
fn tail(messages: &[Message]) -> String {
    let mut parts = Vec::new();
    let mut n_letters = 0;
    'all: for message in messages.iter().rev() {
        for block in message.content.iter().rev() {
            let part = part(message, block);
            n_letters += part.len();
            if n_letters > MOST_LETTERS {
                break 'all;
            }
            parts.push(part);
        }
    }
    parts.reverse();
    parts.join("\n")
}

fn part(message: &Message, block: &Block) -> String {
    let who = if message.role == Role::User { "user" } else { "agent" };
    if let Some(call) = block.tool_use() {
        return format!("[agent calls {}] {}", call.name, single_line(&call.input.to_string(), MOST_PART));
    }
    if let Some(result) = block.tool_result() {
        return format!("[result] {}", truncate_chars(&result_text(&result.content), MOST_PART));
    }
    match block.text() {
        Some(text) => format!("[{who}] {}", truncate_chars(&text, MOST_PART * 4)),
        None => String::new(),
    }
}

/// Returns what a call returned, as text.
fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(verdict: GoalVerdict) -> Judgement {
        Judgement { verdict, reason: "r".into() }
    }

    #[test]
    fn verdicts_end_the_goal_or_let_the_work_go_on() {
        for (verdict, end) in [
            (GoalVerdict::Reached, Some(GoalEnd::Reached)),
            (GoalVerdict::Impossible, Some(GoalEnd::Impossible)),
            (GoalVerdict::NotYet, None),
            (GoalVerdict::Unknown, None),
        ] {
            let keeper = GoalKeeper::default();
            keeper.set("c", Duration::ZERO);
            assert_eq!(keeper.judge(&said(verdict.clone()), 1), verdict);
            assert_eq!(keeper.get().unwrap().end, end);
            assert_eq!(keeper.active().is_some(), end.is_none());
        }
    }

    #[test]
    fn goal_without_calls_in_between_gives_the_word_back() {
        let keeper = GoalKeeper::default();
        keeper.set("c", Duration::ZERO);
        let check = |n_calls| keeper.judge(&said(GoalVerdict::NotYet), n_calls);
        let verdicts: Vec<GoalVerdict> = (0..4).map(|_| check(5)).collect();
        assert_eq!(verdicts.last(), Some(&GoalVerdict::Stalled));
        assert_eq!(check(6), GoalVerdict::NotYet, "a call is progress");
        assert!(keeper.active().is_some(), "the goal stays");
        assert!(keeper.clear().is_some() && keeper.clear().is_none());
    }

    #[test]
    fn settings_that_stop_hooks_stop_goals() {
        assert!(refusal(&json!({"disableAllHooks": true})).is_some());
        assert!(refusal(&json!({"allowManagedHooksOnly": true})).is_some());
        assert_eq!(refusal(&json!({"disableAllHooks": false})), None);
    }

    #[test]
    fn end_of_the_conversation_is_shown_and_bounded() {
        let long = "x".repeat(MOST_LETTERS);
        let message = |role, text: &str| Message::new(role, vec![Block::new_text(text)]);
        let mut messages: Vec<Message> = (0..40).map(|_| message(Role::User, &long)).collect();
        messages.push(message(Role::Assistant, "7 passed"));
        let shown = tail(&messages);
        assert!(shown.ends_with("[agent] 7 passed") && shown.len() <= MOST_LETTERS, "{}", shown.len());
    }
}
