//! Asking a person whether sandboxed commands may reach a host.
//!
//! The question is one of permission, of a tool that does not exist (`SandboxNetworkAccess`), put by the proxy beside the
//! conversation and answered like any other. A yes holds for the session, a rule that comes with it is saved; where nobody
//! can be asked the answer is no. A question whose connection is gone is withdrawn.

use std::sync::{Arc, Weak};

use loci_core::ids::ToolUseId;
use loci_core::permission::{Destination, Mode, RuleChange, RuleList, Update};
use loci_sandbox::egress::target::Target;
use loci_sandbox::egress::{HostAnswer, HostAsker, HostDecision};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;

use crate::command::Answer;
use crate::conversation::host::lock;
use crate::conversation::{InboxMessage, SessionContext};
use crate::event::{EngineEvent, Question, QuestionKind};

/// What the question about a host names as its tool; there is no such tool.
pub const SANDBOX_NETWORK_TOOL: &str = "SandboxNetworkAccess";

/// How many characters of a command a question shows.
const LONGEST: usize = 500;

/// What ids of these questions begin with.
pub(crate) const QUESTION_PREFIX: &str = "sandbox-";

/// Has the proxy of a session's sandbox ask its people, and tells them how the sandbox stands, now and with every host
/// that they allow.
pub(crate) fn connect_sandbox(ctx: &Arc<SessionContext>) {
    let Some(sandbox) = lock(&ctx.services.ambient).sandbox.clone() else { return };
    // Nobody hears a session that is over.
    drop(ctx.events.send(EngineEvent::SandboxStatus(sandbox.status())));
    if let Some(egress) = &sandbox.egress {
        egress.set_asker(host_asker(ctx));
        let (ctx, of_session) = (Arc::downgrade(ctx), Arc::downgrade(&sandbox));
        egress.set_grant_listener(Box::new(move || {
            if let (Some(ctx), Some(sandbox)) = (ctx.upgrade(), of_session.upgrade()) {
                drop(ctx.events.send(EngineEvent::SandboxStatus(sandbox.status())));
            }
        }));
    }
}

/// Returns what asks the people of a session.
fn host_asker(ctx: &Arc<SessionContext>) -> HostAsker {
    let ctx = Arc::downgrade(ctx);
    Arc::new(move |target, command| {
        let (ctx, target, command) = (Weak::clone(&ctx), target.clone(), command.map(shortened));
        let answer: HostAnswer = Box::pin(async move {
            match ctx.upgrade() {
                // Who has every call run unasked is not asked here; what rules deny was refused before.
                Some(ctx) if ctx.state.get().permission.rulebook.mode == Mode::BypassPermissions => {
                    HostDecision::Allowed
                }
                Some(ctx) if ctx.policy.can_ask() => ask(&ctx, &target, command).await,
                _ => HostDecision::Unanswered,
            }
        });
        answer
    })
}

async fn ask(ctx: &Arc<SessionContext>, target: &Target, command: Option<String>) -> HostDecision {
    let id = format!("{QUESTION_PREFIX}{}", ctx.services.env.random.uuid_v4());
    let (sender, mut answers) = unbounded_channel();
    lock(&ctx.policy.questions).insert(id.clone(), sender);
    let mut open = OpenQuestion { ctx, id: &id, is_answered: false };
    // Nobody hears a session that is over, and nobody answers it.
    drop(ctx.events.send(EngineEvent::QuestionAsked(question(ctx, &id, target, command))));
    let answer = answers.recv().await;
    open.is_answered = answer.is_some();
    match answer {
        Some(InboxMessage::Answered(_, Answer::Allow { updates, .. })) => {
            updates.iter().for_each(|update| save(ctx, update));
            HostDecision::Allowed
        }
        // A no that would stop the turn has no words of anybody's in it.
        Some(InboxMessage::Answered(_, Answer::Deny { message, stops })) => {
            HostDecision::Refused((!stops && !message.is_empty()).then_some(message))
        }
        _ => HostDecision::Unanswered,
    }
}

/// Returns as much of a command as a question shows.
fn shortened(command: &str) -> String {
    let mut text: String = command.chars().take(LONGEST).collect();
    if text.len() < command.len() {
        text.push('…');
    }
    text
}

/// A question that is withdrawn when nobody waits for its answer any more.
struct OpenQuestion<'a> {
    ctx: &'a SessionContext,
    id: &'a str,
    is_answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        lock(&self.ctx.policy.questions).remove(self.id);
        // Nobody hears a session that is over.
        drop(self.ctx.events.send(EngineEvent::QuestionWithdrawn { question: self.id.to_owned() }));
    }
}

fn question(ctx: &SessionContext, id: &str, target: &Target, command: Option<String>) -> Question {
    let rule = format!("WebFetch(domain:{})", target.host);
    let always =
        Update::AddRules(RuleChange { list: RuleList::Allow, rules: vec![rule], to: Destination::Local });
    let suggestions = if lock(&ctx.policy.grants).may_grant { vec![always] } else { Vec::new() };
    let by = command.map(|it| format!(": {it}")).unwrap_or_default();
    Question {
        id: id.to_owned(),
        agent: None,
        tool: SANDBOX_NETWORK_TOOL.to_owned(),
        server: None,
        call: ToolUseId::new(id),
        input: json!({"host": target.host.to_string(), "port": target.port}),
        kind: QuestionKind::Permission,
        reason: format!("a sandboxed command wants to reach `{target}`{by}"),
        reason_kind: "other".into(),
        blocked_path: None,
        links: Vec::new(),
        suggestions,
    }
}

/// Saves a rule that came with a yes; the session has its answer either way.
fn save(ctx: &SessionContext, update: &Update) {
    if update.destination() == Destination::Session || !lock(&ctx.policy.grants).may_grant {
        return;
    }
    let saved = match lock(&ctx.policy.grants).save.as_mut() {
        Some(save) => save(update),
        None => Err("this session has no settings files".to_owned()),
    };
    if let Err(why) = saved {
        let text = format!("A host is allowed for this session and its rule was not saved: {why}");
        // Nobody hears a session that is over.
        drop(ctx.events.send(EngineEvent::Warning(text)));
    }
}
