//! Calls that a client makes by itself, outside any turn: looked up, shown to hooks, judged.

use std::sync::Arc;

use loci_core::hooks::HookEvent;
use loci_core::message::ToolUse;
use loci_core::permission::{Decision, Mode, Reason, Update, Verdict};
use loci_core::tool::{ToolDescriptor, ToolOutcome};
use loci_tools::{Host as _, Tool};

use super::Conversation;
use super::host::ConversationHost;
use super::scope::ConversationScope;
use super::tool_set::ToolSet;
use crate::conversation::recorder::Recorder;
use crate::extensions::{CallGate, HookCall, TurnHooks};
use crate::tools::calls::CallLayer;
use crate::tools::prepared_call::{PermissionCheck, PreparedCall, check_permission, from_model, prepare};

/// Hooks, and what they are told.
type Listeners = Option<(Arc<dyn TurnHooks>, HookCall)>;

/// A call that was looked up, and the hooks that have a say in it.
pub(crate) struct ServedGate {
    pub(crate) call: PreparedCall,
    pub(crate) hooks: Listeners,
}

/// A call that may run, with what runs it.
pub(crate) struct ServedCheck {
    pub(crate) call: PreparedCall,
    pub(crate) tool: Arc<dyn Tool>,
    pub(crate) layers: Arc<[Arc<dyn CallLayer>]>,
    pub(crate) host: Arc<ConversationHost>,
    /// Whoever wants to know what came of it.
    pub(crate) hooks: Listeners,
}

impl Conversation {
    /// Judges a call that hooks have seen. One that would be asked about is refused with what would allow it.
    pub(crate) fn judge_served_call(
        &mut self,
        call: PreparedCall,
        gate: Option<CallGate>,
        consent: Consent,
    ) -> Result<ServedCheck, Box<ToolOutcome>> {
        let gate = gate.unwrap_or_default();
        if let Some(reason) = gate.halt {
            return Err(Box::new(ToolOutcome::error(format!("Not run: a hook ended the turn: {reason}"))));
        }
        let call = match gate.input.filter(|input| *input != call.input) {
            None => call,
            Some(input) => self.tools.prepare_changed(&self.scope, &call, input)?,
        };
        let call = PreparedCall { hook: gate.verdict, ..call };
        let book = self.permits.rules_now(&self.scope);
        let mode = book.mode;
        let judged = check_permission(&self.tools.toolbox, self.scope.host.as_ref(), book, &call);
        if !may_serve(&judged.decision, mode, consent) {
            let text = format!("{}{}", self.scope.refusal_text(&call, &judged), mode_hint(&judged));
            return Err(Box::new(ToolOutcome::error(text)));
        }
        let call = PreparedCall { effects: judged.effects, ..call };
        let Some(tool) = self.tools.toolbox.find_shared(&call.tool) else {
            return Err(Box::new(ToolOutcome::error(format!("{} is no longer available", call.tool))));
        };
        self.scope.host.set_moment(self.scope.hook_moment(&self.recorder));
        let (layers, hooks) = (
            self.tools.layers_of(
                &self.scope,
                &self.recorder,
                &self.permits,
                &self.run.tasks,
                &self.run.opening,
                &call,
            ),
            self.scope.hooks_after_call(&self.recorder, &call),
        );
        Ok(ServedCheck { call, tool, layers, host: Arc::clone(&self.scope.host), hooks })
    }
}

impl ToolSet {
    /// Returns the tools that make sense without a conversation.
    pub(crate) fn served_tools(&self) -> Vec<ToolDescriptor> {
        let is_served = |tool: &&ToolDescriptor| !tool.facts.needs_conversation && !tool.facts.needs_person;
        self.toolbox.available().filter(is_served).cloned().collect()
    }

    /// Looks a call up and checks its input.
    pub(crate) fn open_served_call(
        &self,
        scope: &ConversationScope,
        recorder: &Recorder,
        call: &ToolUse,
    ) -> Result<ServedGate, Box<ToolOutcome>> {
        let call = from_model(&self.toolbox, scope.host.as_ref(), call);
        let (call, _) = prepare(&self.toolbox, scope.host.as_ref(), &call)?;
        let place = scope.host.workspace();
        let effects = self.toolbox.find(&call.tool).map(|tool| tool.effects(&call.input, &place));
        let call = PreparedCall { effects: effects.unwrap_or_default(), ..call };
        let hooks = scope.call_listeners(HookEvent::PreToolUse);
        let hooks = hooks.map(|hooks| (hooks, call.for_hooks(&place, scope.hook_moment(recorder))));
        Ok(ServedGate { call, hooks })
    }
}

/// Who has said yes to the calls of a client that uses tools by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Its host asks the person before it calls.
    Host,
    /// Nobody; rules and the mode say what runs.
    Rules,
}

/// Tells whether a call runs. What a host has asked about needs no second question, but for what rules and hooks keep back,
/// what is guarded whoever asks for it, and modes that change nothing.
fn may_serve(decision: &Decision, mode: Mode, consent: Consent) -> bool {
    let is_guarded = || {
        matches!(decision.reason.kind(), "rule" | "hook" | "mode" | "safetyCheck")
            || matches!(decision.reason, Reason::Interaction(_) | Reason::Grants(_))
    };
    match decision.verdict {
        Verdict::Allow => true,
        Verdict::Deny => false,
        Verdict::Ask => {
            consent == Consent::Host && !matches!(mode, Mode::Plan | Mode::DontAsk) && !is_guarded()
        }
    }
}

/// Says which mode would let a call run, where no rule is proposed.
fn mode_hint(judged: &PermissionCheck) -> String {
    let mode = judged.suggestions.iter().find_map(|update| match update {
        Update::SetMode(mode, _) => Some(mode.as_str()),
        _ => None,
    });
    mode.map(|mode| format!(" The permission mode `{mode}` would allow it.")).unwrap_or_default()
}
