//! The service as turns see it.

use std::time::Duration;

use loci_core::entry::Attachment;
use loci_core::hooks::{EventInput, HookEvent, HookMcpServer, HookPermission, ToolFields};
use loci_core::permission::{HookVerdict, Update, Verdict};
use loci_core::tool::{CallEffects, ToolAttachment, ToolContent, ToolOutcome};
use serde_json::{Value, json};

use super::HookService;
use super::attachments::{classifier_note_attachment, context};
use super::run::LAST_WAIT;
use super::tool_output::replace_output;
use crate::command::Answer;
use crate::event::EngineEvent;
use crate::extensions::{
    AfterCall, BatchGate, BatchResults, BeforeEnd, BeforePrompt, CallGate, HookCall, HookFuture, HookMoment,
    PermissionQuestion, PromptGate, SessionAdditions, SessionBegin, TurnHooks,
};
use crate::turn::Objection;

/// How long what was told before may take until the end of a session is told beside it.
const TOLD_WAIT: Duration = Duration::from_secs(2);
/// What the end of a session waits for its hooks, unless they say otherwise.
const END_BUDGET: Duration = Duration::from_millis(1500);
/// The most that they can say.
pub(super) const LONGEST_END: Duration = Duration::from_secs(60);

impl TurnHooks for HookService {
    fn listens_to(&self, event: HookEvent) -> bool {
        self.has(event)
    }

    fn session_begins(&self, begin: SessionBegin) -> HookFuture<SessionAdditions> {
        let SessionBegin { source, model, title, moment } = begin;
        let event = EventInput::SessionStart { source: source.to_owned(), model, session_title: title };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let fired = service.fire(input, None, None).await;
            service.tell_user(fired.decision.messages);
            let keeps_title = !matches!(source, "clear" | "compact");
            if let Some(paths) = &fired.decision.watch_paths {
                service.set_watch_paths(paths);
            }
            SessionAdditions {
                attachments: fired.attachments,
                title: fired.decision.title.filter(|_| keeps_title),
                first_prompt: fired.decision.first_prompt,
                reloads_skills: fired.decision.reloads_skills,
            }
        })
    }

    fn set_up(&self, trigger: &'static str, moment: HookMoment) -> HookFuture<Vec<Attachment>> {
        let event = EventInput::Setup { trigger: trigger.to_owned() };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let fired = service.fire(input, None, None).await;
            service.tell_user(fired.decision.messages);
            fired.attachments
        })
    }

    fn session_ends(&self, reason: &'static str, moment: HookMoment) -> HookFuture<()> {
        let event = EventInput::SessionEnd { reason: reason.to_owned() };
        let (service, input) = (self.clone(), self.input(event, moment));
        let budget = self.end_budget();
        Box::pin(async move {
            // What was told before is over first: a failed turn's hooks have ended when those of the end begin.
            let now = tokio::time::Instant::now();
            let deadline = now + LAST_WAIT;
            service.finish_told(now + TOLD_WAIT).await;
            if service.has(HookEvent::SessionEnd) {
                match tokio::time::timeout(budget, service.fire(input, None, None)).await {
                    Ok(fired) => service.tell_user(fired.decision.messages),
                    Err(_) => service.tell(EngineEvent::Warning(format!(
                        "SessionEnd hooks did not end within {} ms and were stopped; a `timeout` of theirs raises that",
                        budget.as_millis()
                    ))),
                }
            }
            service.drain(deadline).await;
        })
    }

    fn before_prompt(&self, prompt: BeforePrompt) -> HookFuture<PromptGate> {
        let BeforePrompt { prompt, title, moment } = prompt;
        let event = EventInput::UserPromptSubmit { prompt, session_title: title };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let mut attachments = service.take_late();
            let fired = service.fire(input, None, None).await;
            let decision = fired.decision;
            service.tell_user(decision.messages);
            let stop = decision.stop.map(|why| or_usual(why, "A hook stopped the turn."));
            match decision.block.or(stop) {
                Some(reason) => PromptGate::Block { reason },
                None => {
                    attachments.extend(fired.attachments);
                    PromptGate::Go { attachments, title: decision.title }
                }
            }
        })
    }

    fn before_call(&self, call: HookCall) -> HookFuture<CallGate> {
        let HookCall { id, tool, input, effects, moment } = call;
        let tool_fields = ToolFields { tool_name: tool, tool_input: input };
        let mcp_server = self.mcp_server(&effects);
        let event = EventInput::PreToolUse { tool: tool_fields, tool_use_id: id.to_string(), mcp_server };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let fired = service.fire(input, Some(id.as_str()), Some(&effects)).await;
            let decision = fired.decision;
            service.tell_user(decision.messages);
            let defers = matches!(decision.permission, Some((HookPermission::Defer, _)));
            CallGate {
                verdict: decision.permission.and_then(|(word, reason)| verdict(word, reason)),
                defers,
                input: decision.input,
                attachments: fired.attachments,
                halt: decision.stop.map(|why| or_usual(why, "A hook stopped the turn.")),
            }
        })
    }

    fn permission_question(&self, question: PermissionQuestion) -> HookFuture<Option<Answer>> {
        let PermissionQuestion { call: HookCall { tool, input, effects, moment, .. }, suggestions } =
            question;
        let suggestions: Vec<_> = suggestions.iter().map(Update::to_value).collect();
        let event = EventInput::PermissionRequest {
            tool: ToolFields { tool_name: tool, tool_input: input },
            permission_suggestions: (!suggestions.is_empty()).then_some(suggestions),
        };
        let input = self.input(event, moment);
        let (answer, answered) = tokio::sync::oneshot::channel();
        // A hook that has begun comes to its end, also when somebody else answers first: it may write down what it saw.
        self.spawn_reported(move |service| async move {
            let decision = service.fire(input, None, Some(&effects)).await.decision;
            service.tell_user(decision.messages);
            // Nobody waits for it any more, where the question is closed.
            drop(answer.send(decision.reply));
        });
        Box::pin(async move { answered.await.ok().flatten() })
    }

    fn permission_denied(&self, call: HookCall, reason: String) -> HookFuture<Vec<Attachment>> {
        let HookCall { id, tool, input, effects, moment } = call;
        let tool = ToolFields { tool_name: tool, tool_input: input };
        let event = EventInput::PermissionDenied { tool, tool_use_id: id.to_string(), reason };
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let name = input.hook_name();
            let fired = service.fire(input, Some(id.as_str()), Some(&effects)).await;
            service.tell_user(fired.decision.messages);
            let may_retry = "The denial stands, but you may try this call again.";
            let note = || context(HookEvent::PermissionDenied, &name, id.as_str(), may_retry);
            fired.decision.retries.then(note).into_iter().collect()
        })
    }

    fn after_call(&self, call: HookCall, outcome: ToolOutcome, taken: Duration) -> HookFuture<AfterCall> {
        let HookCall { id, tool: name, input, effects, moment } = call;
        let tool = ToolFields { tool_name: name.clone(), tool_input: input };
        let (tool_use_id, duration_ms) = (id.to_string(), Some(taken.as_millis() as u64));
        let mcp_server = self.mcp_server(&effects);
        let event = match outcome.is_failure() {
            false => EventInput::PostToolUse {
                tool,
                tool_response: tool_response(&outcome, &effects),
                tool_use_id,
                duration_ms,
                mcp_server,
            },
            true => EventInput::PostToolUseFailure {
                tool,
                tool_use_id,
                error: text_of(&outcome.content),
                is_interrupt: Some(false),
                duration_ms,
                mcp_server,
            },
        };
        if !self.has(event.event()) {
            return Box::pin(async { AfterCall { outcome, halt: None, classifier_note: None } });
        }
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let fired = service.fire(input, Some(id.as_str()), Some(&effects)).await;
            let decision = fired.decision;
            let mut messages = decision.messages;
            let mut classifier_note = decision.classifier_context.filter(|_| !effects.is_read_only());
            let mut outcome = match decision.output {
                None => outcome,
                Some(output) => replace_output(outcome.clone(), output).unwrap_or_else(|problem| {
                    messages.push(format!("PostToolUse hook: {problem}; the tool's own is kept"));
                    // What is said of a result that nobody gets is said of nothing.
                    classifier_note = None;
                    outcome
                }),
            };
            service.tell_user(messages);
            let note = classifier_note.as_ref().filter(|_| service.world().has_classifier);
            let note = note.map(|text| classifier_note_attachment(&name, id.as_str(), text));
            let added = fired.attachments.into_iter().chain(note);
            let added = added.map(|attachment| ToolAttachment { attachment });
            outcome.attachments.extend(added);
            let halt = decision.stop.map(|why| or_usual(why, "A hook stopped the turn."));
            AfterCall { outcome, halt, classifier_note }
        })
    }

    fn after_batch(&self, batch: BatchResults) -> HookFuture<BatchGate> {
        let event = EventInput::PostToolBatch { tool_calls: batch.calls };
        let (service, input) = (self.clone(), self.input(event, batch.moment));
        Box::pin(async move {
            let fired = service.fire(input, None, None).await;
            service.tell_user(fired.decision.messages);
            let stop = fired.decision.stop.map(|why| or_usual(why, "A hook stopped the turn."));
            BatchGate { attachments: fired.attachments, halt: fired.decision.block.or(stop) }
        })
    }

    fn before_end(&self, end: BeforeEnd) -> HookFuture<Option<Objection>> {
        let BeforeEnd { text, has_gone_on, background_tasks, session_crons, agent_transcript, moment } = end;
        let event = match agent_transcript.filter(|_| moment.agent.is_some()) {
            Some(agent_transcript_path) => EventInput::SubagentStop {
                stop_hook_active: has_gone_on,
                agent_transcript_path,
                last_assistant_message: text,
                background_tasks,
                session_crons,
            },
            None => EventInput::Stop {
                stop_hook_active: has_gone_on,
                last_assistant_message: text,
                background_tasks,
                session_crons,
            },
        };
        let name = event.event().name();
        let (service, input) = (self.clone(), self.input(event, moment));
        Box::pin(async move {
            let fired = service.fire(input, None, None).await;
            let decision = fired.decision;
            let mut messages = decision.messages;
            let has_stopped = decision.stop.is_some();
            messages.extend(decision.stop.filter(|why| !why.is_empty()));
            service.tell_user(messages);
            if has_stopped || (decision.block.is_none() && decision.context.is_empty()) {
                return None;
            }
            let text = decision.block.map(|why| format!("{name} hook feedback:\n{why}")).unwrap_or_default();
            Some(Objection { text, attachments: fired.attachments })
        })
    }

    fn notify(&self, event: EventInput, moment: HookMoment) {
        if self.has(event.event()) {
            self.fire_detached(self.input(event, moment));
        }
    }
}

impl HookService {
    /// Returns the MCP server that answers a call, as hooks are told of it.
    fn mcp_server(&self, effects: &CallEffects) -> Option<HookMcpServer> {
        let name = effects.server.clone()?;
        let source = self.world().mcp_tools.as_ref().and_then(|it| it.server_source(&name));
        Some(HookMcpServer { name, source: source.unwrap_or("dynamic").to_owned() })
    }

    /// Returns how long the end of a session waits: as long as the most patient of its hooks in settings wants.
    fn end_budget(&self) -> Duration {
        let said = lock_vars(self).and_then(|ms| ms.parse().ok()).map(Duration::from_millis);
        let own = self.config();
        let own = own.entries().iter().filter(|entry| entry.event == HookEvent::SessionEnd);
        let longest = own.filter_map(|entry| entry.timeout).max().unwrap_or_default();
        said.unwrap_or_else(|| longest.clamp(END_BUDGET, LONGEST_END))
    }
}

fn lock_vars(service: &HookService) -> Option<String> {
    let env = crate::conversation::host::lock(&service.world().ambient).env.clone();
    env.vars.non_empty("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS").map(str::to_owned)
}

/// Returns what a call came to, as hooks are told: of a tool of a server its content blocks, of others their own data.
fn tool_response(outcome: &ToolOutcome, effects: &CallEffects) -> Value {
    match &outcome.content {
        _ if effects.server.is_none() || outcome.structured.is_object() => outcome.structured.clone(),
        ToolContent::Text(text) => json!([{"type": "text", "text": text}]),
        ToolContent::Blocks(_) => outcome.content.to_value(),
    }
}

/// Returns what counts when the call is judged; one that is put off is not.
fn verdict(word: HookPermission, reason: String) -> Option<HookVerdict> {
    let verdict = match word {
        HookPermission::Allow => Verdict::Allow,
        HookPermission::Ask => Verdict::Ask,
        HookPermission::Deny => Verdict::Deny,
        HookPermission::Defer => return None,
    };
    Some(HookVerdict { verdict, reason })
}

pub(super) fn or_usual(text: String, usual: &str) -> String {
    if text.trim().is_empty() { usual.to_owned() } else { text }
}

fn text_of(content: &ToolContent) -> String {
    match content {
        ToolContent::Text(text) => text.clone(),
        ToolContent::Blocks(blocks) => {
            blocks.iter().filter_map(loci_core::message::Block::text).collect::<Vec<_>>().join("\n")
        }
    }
}
