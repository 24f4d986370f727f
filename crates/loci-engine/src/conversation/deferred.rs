//! Calls that a hook puts off: the turn ends with the call open in the transcript, and another run takes it up.
//!
//! The mark is an attachment (`hook_deferred_tool`) behind the response that holds the call. A session that is resumed and
//! ends with it begins with the call: hooks are asked again, and it is judged as if it had just been made.

use super::running_turn::TurnCalls;
use super::scope::ConversationScope;
use super::tally::Tally;
use super::tool_set::ToolSet;
use crate::conversation::recorder::Recorder;
use loci_core::entry::Attachment;
use loci_core::hooks::HookEvent;
use loci_core::message::ToolUse;

use super::turn_start::NoTurn;
use crate::event::EngineEvent;
use crate::tools::prepared_call::PreparedCall;
use crate::turn::{Event, Outcome, TurnEnd};

impl TurnCalls {
    /// Tells whether a call can be put off: in a session that nobody sits before, and when it is the only one.
    pub(super) fn may_defer(&self, scope: &ConversationScope, call: &PreparedCall) -> bool {
        let is_interactive = scope.ctx.identity.get().is_interactive();
        let why = match self.n_calls {
            _ if is_interactive => "somebody is there who can be asked",
            _ if !scope.is_main() => "an agent makes it",
            1 => return true,
            _ => "it is not the only one of its response",
        };
        let tool = &call.tool;
        scope.tell(EngineEvent::Warning(format!("A hook cannot put a call of {tool} off: {why}")));
        false
    }
}

impl Recorder {
    /// Marks a call as put off.
    pub(super) fn record_deferred(&mut self, call: &ToolUse) {
        self.attachment(Attachment::HookDeferredTool {
            tool_use_id: call.id.to_string(),
            tool_name: call.name.clone(),
            tool_input: call.input.clone(),
            hook_event: HookEvent::PreToolUse.name().to_owned(),
        });
    }
}

impl ToolSet {
    /// Takes up the call that the session ended with.
    pub(super) fn take_up_deferred(
        &self,
        recorder: &mut Recorder,
        turn_calls: &mut TurnCalls,
        tally: &mut Tally,
    ) -> Result<Event, NoTurn> {
        let Some(deferred) = recorder.take_deferred() else {
            return Err(NoTurn::Refused("There is no call that was put off.".to_owned()));
        };
        let call = deferred.call;
        if self.toolbox.find(&call.name).is_none() {
            tally.text = format!("The tool of the call that was put off is not there: {}", call.name);
            let stop_reason = Some("tool_deferred_unavailable".to_owned());
            let outcome = Outcome::DeferredUnavailable(call);
            return Err(NoTurn::Over(Box::new(TurnEnd { outcome, round_trips: 0, stop_reason })));
        }
        // What the start of this run added has its place behind the result.
        turn_calls.notes.insert(call.id.clone(), recorder.take_before_prompt());
        Ok(Event::TakeUp(call))
    }
}
