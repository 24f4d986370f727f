//! What hooks are told without being waited for: failures, notifications, directories, instruction files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loci_core::hooks::{EventInput, HookEvent};
use loci_core::ids::ToolUseId;
use loci_core::message::{Block, BlockKind};
use loci_core::stream::{Delta, Failure, StreamEvent};
use loci_storage::config::{InstructionFile, InstructionScope, TriggeredInstructions};
use loci_tools::Host;

use super::InboxMessage;
use super::context_sources::ContextSources;
use super::permits::Permits;
use super::running_turn::{ArrivingAnswer, TurnCalls, TurnTasks};
use super::scope::ConversationScope;
use super::tally::Tally;
use crate::conversation::recorder::Recorder;
use crate::event::EngineEvent;
use crate::extensions::hooks::HOOK_AGENT;
use crate::extensions::{ClassifierNote, FeatureHooks, HookMoment, ShownBatch, TurnHooks};
use crate::turn::Event;

/// How long a question is open before hooks are told that somebody is waited for.
const QUESTION_PATIENCE: Duration = Duration::from_secs(6);

/// The variable that turns that off.
const NO_QUESTION_NOTICES: &str = "CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS";

/// The kind of notice that a question is open.
const QUESTION_NOTICE: &str = "permission_prompt";

impl ConversationScope {
    /// Tells whether this is the conversation that people have.
    pub(super) fn is_main(&self) -> bool {
        self.agent.is_none()
    }

    /// Returns whoever has a say in calls. Those of an agent that a hook sent out are its own affair: a check that looks at
    /// a file must not set itself off.
    pub(super) fn call_listeners(&self, event: HookEvent) -> Option<Arc<dyn TurnHooks>> {
        let is_hooks_own = self.agent.as_ref().is_some_and(|agent| agent.kind == HOOK_AGENT);
        self.ctx.listeners(event).filter(|_| !is_hooks_own)
    }

    /// Tells whether hooks hear of what happens here: in the main line, and in agents that work for a call of it.
    pub(super) fn reports_to_hooks(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| agent.parent.is_some())
    }

    /// Returns the event of the end of a turn; agents that work beside the conversation have none.
    pub(super) fn stop_event(&self) -> Option<HookEvent> {
        let event = if self.is_main() { HookEvent::Stop } else { HookEvent::SubagentStop };
        self.reports_to_hooks().then_some(event)
    }

    /// Returns how things stand, for hooks.
    pub(crate) fn hook_moment(&self, recorder: &Recorder) -> HookMoment {
        let facts = self.model.catalog.facts(&self.current_model());
        HookMoment {
            prompt: recorder.prompt_id().map(ToString::to_string),
            cwd: self.host.workspace().cwd,
            effort: facts.has_effort.then(|| {
                let asked = self.model.effort_of(&self.current_model());
                asked.unwrap_or_else(|| "high".to_owned())
            }),
            agent: self.agent.clone(),
        }
    }

    /// Tells hooks of something, if any of them listens; `event` is made only then.
    pub(crate) fn notify_hooks(
        &self,
        recorder: &Recorder,
        kind: HookEvent,
        event: impl FnOnce() -> EventInput,
    ) {
        let is_told = self.is_main() || (kind.is_about_a_tool() && self.reports_to_hooks());
        if let Some(hooks) = self.ctx.listeners(kind).filter(|_| is_told) {
            hooks.notify(event(), self.hook_moment(recorder));
        }
    }

    /// Tells hooks that a turn ended with a failure of the API.
    pub(super) fn tell_hooks_of_failure(&self, recorder: &Recorder, tally: &Tally, failure: &Failure) {
        self.notify_hooks(recorder, HookEvent::StopFailure, || EventInput::StopFailure {
            error: failure.category().to_owned(),
            error_details: Some(failure.message.clone()),
            last_assistant_message: Some(tally.text.clone()).filter(|text| !text.is_empty()),
        });
    }

    /// Begins to watch the files that hooks want to hear of, or goes on from another directory.
    pub(crate) fn watch_files(&self) {
        if self.is_main() && !self.ctx.hooks.is_idle() {
            self.ctx.hooks.watch_from(&self.host.workspace().cwd);
        }
    }

    /// Tells hooks which files of instructions reading a file brought along.
    pub(super) fn tell_hooks_of_met(&self, recorder: &Recorder, met: &[TriggeredInstructions], read: &Path) {
        for met in met {
            let reason = if met.patterns.is_empty() { "nested_traversal" } else { "path_glob_match" };
            self.notify_hooks(recorder, HookEvent::InstructionsLoaded, || {
                let mut event = instructions_loaded(&met.file, reason);
                if let EventInput::InstructionsLoaded { globs, trigger_file_path, .. } = &mut event {
                    *globs = Some(met.patterns.clone()).filter(|patterns| !patterns.is_empty());
                    *trigger_file_path = Some(read.to_owned());
                }
                event
            });
        }
    }

    /// Notes how things stand, for what hooks are told from elsewhere.
    pub(super) fn note_moment(&self, recorder: &Recorder) {
        if self.is_main() && !self.ctx.hooks.is_idle() {
            self.ctx.hooks.set_moment(self.hook_moment(recorder));
        }
    }

    /// Tells whether a screen waits for a response to be whole, since hooks say what is shown of it.
    pub(super) fn holds_stream(&self) -> bool {
        self.filters_before_display() && self.ctx.identity.get().is_interactive()
    }

    fn filters_before_display(&self) -> bool {
        self.is_main() && self.ctx.hooks.has(HookEvent::MessageDisplay)
    }

    /// Tells hooks that the user is notified of something.
    pub(crate) fn notify_user(
        &self,
        recorder: &Recorder,
        notification_type: String,
        message: String,
        title: Option<String>,
    ) {
        if notification_type != QUESTION_NOTICE || self.tells_of_questions() {
            self.notify_hooks(recorder, HookEvent::Notification, || EventInput::Notification {
                message,
                title,
                notification_type,
            });
        }
    }

    fn tells_of_questions(&self) -> bool {
        !self.host.env().vars.is_truthy(NO_QUESTION_NOTICES)
    }
}

impl ContextSources {
    /// Tells hooks, once, that an agent begins which works for a call; what they add stands before its first prompt.
    pub(super) async fn begin_agent_hooks(&mut self, scope: &ConversationScope, recorder: &mut Recorder) {
        let is_first = !std::mem::replace(&mut self.has_told_begin, true);
        let is_subagent = !scope.is_main() && scope.reports_to_hooks();
        if !(is_first && is_subagent && scope.ctx.hooks.has(HookEvent::SubagentStart)) {
            return;
        }
        let added = scope.ctx.hooks.subagent_begins(scope.hook_moment(recorder)).await;
        recorder.add_before_prompt(added);
    }

    /// Tells hooks when a call has moved the shell to another directory.
    pub(super) fn tell_hooks_of_cwd(&mut self, scope: &ConversationScope, recorder: &Recorder) {
        let is_heard = [HookEvent::CwdChanged, HookEvent::FileChanged]
            .into_iter()
            .any(|event| scope.ctx.listeners(event).is_some());
        if !is_heard || !scope.is_main() {
            return;
        }
        let new_cwd = scope.host.workspace().cwd;
        let old_cwd = self.told_cwd.replace(new_cwd.clone()).unwrap_or_else(|| scope.env.cwd.clone());
        if old_cwd != new_cwd {
            scope.note_moment(recorder);
            scope.watch_files();
            scope.notify_hooks(recorder, HookEvent::CwdChanged, || EventInput::CwdChanged {
                old_cwd,
                new_cwd,
            });
        }
    }

    /// Tells hooks which files of instructions there are; `reason` is why they were read.
    pub(crate) fn tell_hooks_of_instructions(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        reason: &str,
    ) {
        if scope.ctx.listeners(HookEvent::InstructionsLoaded).is_none() {
            return;
        }
        for file in &self.instructions.files.files {
            scope.notify_hooks(recorder, HookEvent::InstructionsLoaded, || instructions_loaded(file, reason));
        }
    }
}

impl ArrivingAnswer {
    /// Tells front ends of the response that was held, with another text in the place of its own where there is one.
    pub(super) fn release_stream(&mut self, scope: &ConversationScope, shown: Option<&str>) {
        let held = std::mem::take(&mut self.held);
        let events = match shown {
            None => held,
            Some(text) => replace_text(held, text),
        };
        for (event, first_after) in events {
            scope.tell(EngineEvent::Stream { event, first_after });
        }
    }

    /// Lets hooks say what is shown of a response that is complete; the event comes back when they have.
    pub(super) fn filter_before_display(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &mut TurnTasks,
        event: Event,
    ) -> Option<Event> {
        let is_ended = matches!(event, Event::Ended { .. });
        if !(is_ended && scope.filters_before_display() && !self.text.is_empty()) {
            if is_ended {
                self.release_stream(scope, None);
            }
            return Some(event);
        }
        let batch = ShownBatch {
            turn: recorder.prompt_id().map(ToString::to_string).unwrap_or_default(),
            message: scope.env.random.uuid_v4().to_string(),
            index: 0,
            is_final: true,
            text: std::mem::take(&mut self.text),
        };
        let shown = scope.ctx.hooks.before_display(batch, scope.hook_moment(recorder));
        tasks.wait_for(async move { InboxMessage::Shown(event, shown.await) });
        None
    }
}

impl Permits {
    /// Keeps what a hook said of a result for the classifier of later calls.
    pub(super) fn note_for_classifier(
        &mut self,
        scope: &ConversationScope,
        turn_calls: &TurnCalls,
        call: &ToolUseId,
        note: Option<String>,
    ) {
        let Some(text) = note.filter(|_| scope.ctx.policy.classifier.is_some()) else { return };
        let tool = turn_calls.running.get(call).map(|running| running.tool.clone()).unwrap_or_default();
        self.classifier_notes.push(ClassifierNote { call: call.clone(), tool, text });
    }

    /// Has hooks told when a question is open for a while.
    ///
    /// A front end that sees people type says itself when they seem to be away ([`crate::Command::Notify`]).
    pub(super) fn tell_hooks_of_question(
        &mut self,
        scope: &ConversationScope,
        recorder: &Recorder,
        tasks: &TurnTasks,
        question: &str,
        tool: &str,
    ) {
        let Some(hooks) = scope.ctx.listeners(HookEvent::Notification) else { return };
        if !scope.tells_of_questions() || scope.ctx.identity.get().is_interactive() {
            return;
        }
        let (closed, moment) = (self.beside_question(tasks, question), scope.hook_moment(recorder));
        let message = format!("loci needs your permission to use {tool}");
        tokio::spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(QUESTION_PATIENCE) => {
                    let notification_type = QUESTION_NOTICE.to_owned();
                    let event = EventInput::Notification { message, title: None, notification_type };
                    hooks.notify(event, moment);
                }
                () = closed.cancelled() => {}
            }
        });
    }
}

/// Returns what hooks are told of a file of instructions; one that another imports was read for that reason.
fn instructions_loaded(file: &InstructionFile, reason: &str) -> EventInput {
    EventInput::InstructionsLoaded {
        file_path: file.path.clone(),
        memory_type: scope_name(file.scope).to_owned(),
        load_reason: if file.imported_by.is_some() { "include" } else { reason }.to_owned(),
        globs: None,
        trigger_file_path: None,
        parent_file_path: file.imported_by.clone(),
    }
}

/// Puts a text in the place of all that a response says: its first block of text has it, in one piece.
fn replace_text(
    events: Vec<(StreamEvent, Option<Duration>)>,
    text: &str,
) -> Vec<(StreamEvent, Option<Duration>)> {
    let (mut first, mut is_said) = (None, false);
    let mut replaced = |event| match event {
        StreamEvent::BlockStarted { index, ref kind, .. } if kind == "text" => {
            (*first.get_or_insert(index) == index).then_some(event)
        }
        StreamEvent::Delta { index, delta: Delta::Text(_) } => {
            let is_first = *first.get_or_insert(index) == index && !std::mem::replace(&mut is_said, true);
            is_first.then(|| StreamEvent::Delta { index, delta: Delta::Text(text.to_owned()) })
        }
        StreamEvent::BlockDone { index, ref block } if block.kind() == BlockKind::Text => {
            let is_first = *first.get_or_insert(index) == index;
            is_first.then(|| StreamEvent::BlockDone { index, block: Block::new_text(text) })
        }
        event => Some(event),
    };
    events.into_iter().filter_map(|(event, after)| Some((replaced(event)?, after))).collect()
}

fn scope_name(scope: InstructionScope) -> &'static str {
    match scope {
        InstructionScope::Managed => "Managed",
        InstructionScope::User => "User",
        InstructionScope::Project => "Project",
        InstructionScope::Local => "Local",
    }
}
