//! Commands of the shell that a person runs (`!ls`): run at once, recorded in the person's name, answered by the model where
//! that is wanted.
//!
//! A command goes through the Bash tool and what wraps its calls, so that file history sees what it changes; nobody is asked,
//! since whoever types a command wants it run. One that needs a terminal the front end has run itself (`ShellCommand::ran`): it is
//! recorded alone. The transcript has `<bash-input>` before it runs and `<bash-stdout>` with
//! `<bash-stderr>` behind it afterwards.

use std::sync::Arc;

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::permission::{Call, containment};
use loci_core::tool::ToolOutcome;
use loci_tools::{Host as _, RETRY_OUTSIDE};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::permits::Permits;
use super::plan;
use super::running_turn::{PromptOpening, TurnTasks};
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use super::{Conversation, InboxMessage};
use crate::command::ShellCommand;
use crate::conversation::recorder::Recorder;
use crate::event::{EngineEvent, ShellOutput};
use crate::tools::calls::Next;
use crate::tools::prepared_call::prepare;
use crate::turn::Event;

/// What a person may do whose command the sandbox refused something, who makes no calls.
const OUTSIDE_BY_HAND: &str = "If it needs that, `!!` in place of `!` runs it outside, in your terminal.";
/// How long a command may run before it is ended, in milliseconds: the longest that the Bash tool allows.
const LONGEST_MS: u64 = 600_000;

/// A command of the person that runs.
pub(super) struct RunningShell {
    call: ToolUseId,
    is_answered: bool,
    /// Ends it.
    cancel: CancellationToken,
    /// Has it go on in the background.
    to_background: CancellationToken,
}

impl Conversation {
    /// Records what a command printed, and lets the model answer where that is wanted.
    pub(super) fn shell_done(&mut self, outcome: &ToolOutcome) {
        let Some(shell) = self.run.opening.shell.take() else { return };
        let output = shell_output(outcome, self.run.has_interrupted);
        let entry = self.recorder.shell_output(&output.stdout, &output.stderr);
        self.scope.tell_user(entry.as_deref(), None);
        self.sources.tell_hooks_of_cwd(&self.scope, &self.recorder);
        plan::follow_place(&mut self.recorder, &mut self.scope);
        let is_interrupted = output.is_interrupted;
        self.scope.tell(EngineEvent::ShellEnded { call: shell.call, output });
        self.recorder.tell_warnings(&self.scope);
        let event = match (is_interrupted, shell.is_answered) {
            (true, _) => Event::Interrupt,
            (false, false) => Event::NothingToAsk,
            (false, true) => {
                match self.compaction.refusal_of_prompts(&self.scope, &self.recorder, &self.sources) {
                    Some(refusal) => {
                        self.scope.tell(EngineEvent::Warning(refusal));
                        Event::NothingToAsk
                    }
                    None => {
                        self.sources.tell_date(&self.scope, &mut self.recorder);
                        self.tools.tell_skills(&self.scope, &mut self.recorder, &self.sources);
                        Event::Begin
                    }
                }
            }
        };
        self.run.tasks.post(InboxMessage::Machine(event));
    }
}

impl PromptOpening {
    /// Runs a command of the person; what it prints comes to the inbox.
    pub(super) fn run_shell(
        &mut self,
        scope: &ConversationScope,
        recorder: &mut Recorder,
        tool_set: &ToolSet,
        permits: &Permits,
        tasks: &TurnTasks,
        shell: ShellCommand,
    ) {
        let id = scope.env.random.uuid_v4().simple().to_string();
        let call = ToolUse {
            id: ToolUseId::new(format!("shell_{id}")),
            name: "Bash".to_owned(),
            input: json!({"command": shell.command, "timeout": LONGEST_MS}),
        };
        let entry = recorder.shell_input(&shell.command);
        scope.tell_user(entry.as_deref(), None);
        scope.tell(EngineEvent::ShellStarted { call: call.id.clone(), command: shell.command });
        let (cancel, to_background) = (tasks.calls.child_token(), CancellationToken::new());
        let prepared = prepare(&tool_set.toolbox, scope.host.as_ref(), &call);
        let (tool, inbox) = (tool_set.toolbox.find_shared("Bash"), tasks.inbox.clone());
        self.shell = Some(RunningShell {
            call: call.id,
            is_answered: shell.is_answered,
            cancel: cancel.clone(),
            to_background: to_background.clone(),
        });
        if let Some(output) = shell.ran {
            return tasks.post(InboxMessage::ShellDone(Box::new(outcome_of(&output))));
        }
        let (mut prepared, tool) = match (prepared, tool) {
            (Ok((prepared, _)), Some(tool)) => (prepared, tool),
            (Err(outcome), _) => return tasks.post(InboxMessage::ShellDone(outcome)),
            (_, None) => {
                let outcome = ToolOutcome::error("The shell is not there: this run has no Bash tool");
                return tasks.post(InboxMessage::ShellDone(Box::new(outcome)));
            }
        };
        prepared.effects = tool.effects(&prepared.input, &scope.host.workspace());
        let judged = Call {
            tool: &prepared.tool,
            command: prepared.input.get("command").and_then(Value::as_str),
            input: &prepared.input,
            effects: &prepared.effects,
            hook: None,
        };
        prepared.effects.containment = containment(&judged, &permits.rules_now(scope));
        let (layers, host) = (Arc::clone(&tool_set.layers), Arc::clone(&scope.host));
        tokio::spawn(async move {
            let next = Next { layers: &layers, tool, host: &host, cancel, to_background };
            let outcome = next.run(prepared).await;
            drop(inbox.send(InboxMessage::ShellDone(Box::new(outcome))));
        });
    }

    /// Stops the command that runs; false where none does.
    pub(super) fn stop_shell(&self) -> bool {
        self.shell.as_ref().map(|shell| shell.cancel.cancel()).is_some()
    }

    /// Has the command go on in the background.
    pub(super) fn move_shell_to_background(&self, call: Option<&ToolUseId>) {
        let shell = self.shell.as_ref().filter(|shell| call.is_none_or(|call| *call == shell.call));
        shell.into_iter().for_each(|shell| shell.to_background.cancel());
    }
}

/// Returns the outcome of a command that ran elsewhere: [`shell_output`] makes the same of it again.
fn outcome_of(output: &ShellOutput) -> ToolOutcome {
    let ShellOutput { stdout, stderr, exit_code, .. } = output;
    match exit_code {
        Some(0) => ToolOutcome::text(stdout.clone(), json!({"stdout": stdout, "stderr": stderr})),
        Some(code) => ToolOutcome::error(format!("Exit code {code}\n{stdout}{stderr}")),
        None => ToolOutcome::error(format!("{stdout}{stderr}")),
    }
}

/// Returns what a command printed. One that failed has all of it behind the line that says so.
fn shell_output(outcome: &ToolOutcome, is_interrupted: bool) -> ShellOutput {
    let for_person = |text: &str| text.replace(RETRY_OUTSIDE, OUTSIDE_BY_HAND);
    let printed =
        |key: &str| for_person(outcome.structured.get(key).and_then(Value::as_str).unwrap_or_default());
    let text = match outcome.content.to_value() {
        Value::String(text) => for_person(&text),
        other => other.to_string(),
    };
    if outcome.is_failure() {
        let first = text.lines().next().unwrap_or_default();
        let exit_code = first.strip_prefix("Exit code ").and_then(|code| code.trim().parse().ok());
        let rest = text.split_once('\n').map_or("", |(_, rest)| rest);
        let stderr = if exit_code.is_some() { rest.to_owned() } else { text.clone() };
        return ShellOutput { stdout: String::new(), stderr, exit_code, is_interrupted };
    }
    if outcome.structured.get("backgroundTaskId").is_some() || outcome.structured.get("stdout").is_none() {
        return ShellOutput { stdout: text, stderr: String::new(), exit_code: None, is_interrupted };
    }
    ShellOutput { stdout: printed("stdout"), stderr: printed("stderr"), exit_code: Some(0), is_interrupted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_a_command_is_told_apart_from_how_it_ended() {
        let good = ToolOutcome::text("out\nerr", json!({"stdout": "out", "stderr": "err"}));
        let failed = ToolOutcome::error("Exit code 2\nno such file");
        let stopped = ToolOutcome::error("Interrupted by the user\nhalf");
        let refused = ToolOutcome::error(format!("Exit code 1\nno\n{RETRY_OUTSIDE}"));
        let told = format!("no\n{OUTSIDE_BY_HAND}");
        for (outcome, expected) in [
            (good, ("out", "err", Some(0))),
            (failed, ("", "no such file", Some(2))),
            (stopped, ("", "Interrupted by the user\nhalf", None)),
            (refused, ("", told.as_str(), Some(1))),
        ] {
            let output = shell_output(&outcome, false);
            assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.exit_code), expected);
            assert_eq!(shell_output(&outcome_of(&output), false), output, "ran elsewhere, it is the same");
        }
    }
}
