//! From what all handlers of an event said to one decision: a table of who wins, the same for every event.
//!
//! | what handlers say | what becomes of it |
//! |---|---|
//! | `continue: false` | stops everything, whatever the others say; the first reason counts |
//! | a block | counts, whatever the others allow; the reasons are told together |
//! | a permission | deny before defer before ask before allow; the reason is that of the winner |
//! | other arguments | the last one that comes with no denial |
//! | context, messages | all of them, in the order of the handlers |
//! | anything single (a title, a display) | the last one |
//!
//! Where the event ignores something ([`super::EventFacts`]), it is not in the decision.

use serde_json::Value;

use super::{BlockEffect, HookAnswer, HookEvent, HookPermission, PermissionReply};

/// What the answers of all handlers come to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookDecision {
    /// Everything stops; this is told to the user.
    pub stop: Option<String>,
    /// What was about to happen does not, or what was about to end goes on, by the event; this is why.
    pub block: Option<String>,
    /// Whether a call may run, and why.
    pub permission: Option<(HookPermission, String)>,
    /// What a person would have answered.
    pub reply: Option<PermissionReply>,
    /// Other arguments for the call.
    pub input: Option<Value>,
    /// What the model is told besides, in order.
    pub context: Vec<String>,
    /// What the user is told.
    pub messages: Vec<String>,
    /// What takes the place of a result.
    pub output: Option<Value>,
    /// What a classifier may read.
    pub classifier_context: Option<String>,
    /// Whether a denied call is tried again.
    pub retries: bool,
    /// A title for the session.
    pub title: Option<String>,
    /// A prompt that is sent first.
    pub first_prompt: Option<String>,
    /// Files to watch from now on.
    pub watch_paths: Option<Vec<String>>,
    /// What is shown in the place of a text.
    pub display: Option<String>,
    /// Whether skills are looked for again.
    pub reloads_skills: bool,
    /// Whether the words of a prompt that is blocked are left out of what the user is told; they always are.
    pub hides_prompt: bool,
    /// Where a worktree was made.
    pub worktree: Option<String>,
    /// The answer to an MCP server.
    pub elicitation: Option<(String, Option<Value>)>,
}

/// The most letters of what a classifier may read of one result.
const CLASSIFIER_LIMIT: usize = 2000;

impl HookDecision {
    /// Makes one decision of all answers, in the order of the handlers. The names are for what the user is told.
    pub fn merge<'a>(event: HookEvent, answers: impl IntoIterator<Item = (&'a str, HookAnswer)>) -> Self {
        let mut decision = Self::default();
        for (name, answer) in answers {
            decision.take(event, name, answer);
        }
        if decision.permission.as_ref().is_some_and(|(word, _)| *word == HookPermission::Deny) {
            decision.input = None;
        }
        decision
    }

    fn take(&mut self, event: HookEvent, name: &str, answer: HookAnswer) {
        let facts = event.facts();
        if let Some(error) = answer.error {
            self.messages.push(format!("{} hook [{name}]: {error}", event.name()));
            return;
        }
        if let Some(why) = answer.block {
            self.take_block(facts.block, event, name, why);
        }
        if facts.is_discarded {
            return;
        }
        self.messages.extend(answer.message);
        self.stop = self.stop.take().or(answer.stop);
        self.take_permission(answer.permission);
        self.take_reply(answer.reply);
        self.context.extend(answer.plain.into_iter().chain(answer.context));
        self.input = answer.input.or(self.input.take());
        self.output = answer.output.or(self.output.take());
        self.title = answer.title.or(self.title.take());
        self.display = answer.display.or(self.display.take());
        self.worktree = answer.worktree.or(self.worktree.take());
        self.elicitation = answer.elicitation.or(self.elicitation.take());
        self.reloads_skills |= answer.reloads_skills;
        self.retries |= answer.retries;
        self.hides_prompt |= answer.hides_prompt;
        append(&mut self.first_prompt, answer.first_prompt, "\n");
        append(&mut self.classifier_context, answer.classifier_context, "\n");
        self.classifier_context =
            self.classifier_context.take().map(|it| it.chars().take(CLASSIFIER_LIMIT).collect());
        if let Some(paths) = answer.watch_paths {
            self.watch_paths.get_or_insert_default().extend(paths);
        }
    }

    fn take_block(&mut self, effect: BlockEffect, event: HookEvent, name: &str, why: String) {
        match effect {
            BlockEffect::Refuses | BlockEffect::GoesOn | BlockEffect::ToldModel | BlockEffect::EndsTurn => {
                append(&mut self.block, Some(why), "\n");
            }
            BlockEffect::ToldUser => self.messages.push(format!("{} hook [{name}]: {why}", event.name())),
            BlockEffect::Ignored => {}
        }
    }

    /// The strictest word wins, and the first that says it.
    fn take_permission(&mut self, said: Option<(HookPermission, String)>) {
        let Some((word, why)) = said else { return };
        if self.permission.as_ref().is_none_or(|(held, _)| word > *held) {
            self.permission = Some((word, why));
        }
    }

    fn take_reply(&mut self, said: Option<PermissionReply>) {
        let is_denied = matches!(self.reply, Some(PermissionReply::Deny { .. }));
        match said {
            Some(deny @ PermissionReply::Deny { .. }) if !is_denied => self.reply = Some(deny),
            Some(allow @ PermissionReply::Allow { .. }) if self.reply.is_none() => self.reply = Some(allow),
            Some(_) | None => {}
        }
    }
}

fn append(held: &mut Option<String>, more: Option<String>, between: &str) {
    *held = match (held.take(), more) {
        (Some(held), Some(more)) => Some(format!("{held}{between}{more}")),
        (held, more) => held.or(more),
    };
}

#[cfg(test)]
mod tests;
