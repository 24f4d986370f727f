//! The tools of a session without its turns: for clients that call them by themselves (`loci mcp serve`).
//!
//! A call goes the way of one that the model makes: its input is checked, hooks are asked, the permission engine judges
//! what it would do, and what wraps every call wraps it. Nobody can be asked here: what would be asked about runs where the
//! client's host has asked already ([`Consent`]), and is refused with what would allow it elsewhere. Calls run side by side;
//! those that change files, one after the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loci_core::ids::ToolUseId;
use loci_core::message::ToolUse;
use loci_core::tool::{ToolDescriptor, ToolOutcome};
use loci_tools::Host as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::conversation::{Consent, Conversation, ServedCheck, ServedGate};

/// The tools of a session.
pub struct ToolService {
    /// Held to look up, to judge and to begin a call; never while one runs.
    conversation: Mutex<Conversation>,
    /// Held by the one call that changes files.
    changes: tokio::sync::Mutex<()>,
    /// Who has said yes to calls.
    consent: Consent,
}

impl Session {
    /// Makes the session a house for calls of its tools; it has no turns any more.
    pub fn into_tool_service(self, consent: Consent) -> ToolService {
        let changes = tokio::sync::Mutex::new(());
        ToolService { conversation: Mutex::new(self.conversation), changes, consent }
    }
}

impl ToolService {
    /// Returns the tools that make sense without a conversation.
    pub fn tools(&self) -> Vec<ToolDescriptor> {
        self.conversation().tools.served_tools()
    }

    /// Runs a call to its outcome, whatever that is; it ends soon after `cancel` fires.
    pub async fn call(&self, id: String, tool: &str, input: Value, cancel: CancellationToken) -> ToolOutcome {
        let call = ToolUse { id: ToolUseId::new(id), name: tool.to_owned(), input };
        let outcome = tokio::select! {
            outcome = self.judged_call(call, cancel.clone()) => outcome,
            // Hooks that still think about it are not waited for; a tool that runs sees the same token.
            () = cancelled_for_long(&cancel) => Ok(crate::tools::calls::interrupted()),
        };
        outcome.unwrap_or_else(|refusal| *refusal)
    }

    async fn judged_call(
        &self,
        call: ToolUse,
        cancel: CancellationToken,
    ) -> Result<ToolOutcome, Box<ToolOutcome>> {
        let ServedGate { call, hooks } = {
            let conversation = self.conversation();
            conversation.tools.open_served_call(&conversation.scope, &conversation.recorder, &call)?
        };
        let gate = match hooks {
            Some((hooks, told)) => Some(hooks.before_call(told).await),
            None => None,
        };
        let ServedCheck { call, tool, layers, host, hooks } =
            self.conversation().judge_served_call(call, gate, self.consent)?;
        let _turn = match call.facts.keeps_files {
            true => Some(self.changes.lock().await),
            false => None,
        };
        let began = tokio::time::Instant::now();
        let to_background = CancellationToken::new();
        let next = crate::tools::calls::Next { layers: &layers, tool, host: &host, cancel, to_background };
        let outcome = next.run(call).await;
        let Some((hooks, mut told)) = hooks else { return Ok(outcome) };
        told.moment.cwd = host.workspace().cwd;
        Ok(hooks.after_call(told, outcome, began.elapsed()).await.outcome)
    }

    /// Ends what calls have left running.
    pub async fn shutdown(&self) {
        let host = Arc::clone(&self.conversation().scope.host);
        host.tasks().shutdown().await;
    }

    fn conversation(&self) -> MutexGuard<'_, Conversation> {
        self.conversation.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a while after a cancel: by then a tool has ended by itself.
async fn cancelled_for_long(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(std::time::Duration::from_secs(6)).await;
}
