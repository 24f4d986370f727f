//! The seam between the engine and a tool.

use std::future::Future;
use std::pin::Pin;

use loci_core::ids::ToolUseId;
use loci_core::tool::{CallEffects, PathEffect, ToolDescriptor, ToolOutcome};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Host, Workspace};

/// A running call.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolOutcome> + Send + 'a>>;

/// One thing the model can do.
///
/// The order of a call is fixed: schema check, [`Tool::validate`], [`Tool::effects`] and the permission verdict
/// on them, [`Tool::run`]. Nothing but `run` may change the world.
pub trait Tool: Send + Sync {
    /// What the model and the rules are told.
    fn descriptor(&self) -> &ToolDescriptor;

    /// Returns what a call with this (schema-valid) input would do. It may look at the disk, to follow symlinks.
    fn effects(&self, input: &Value, place: &Workspace) -> CallEffects;

    /// Returns true when the call only reads and may run beside others of its kind.
    fn is_concurrency_safe(&self, input: &Value) -> bool;

    /// Returns the input of a call that the model made: without what only people and hooks fill in, and with what the
    /// house knows.
    fn model_input(&self, input: Value, _host: &dyn Host) -> Value {
        input
    }

    /// Refuses input that fits the schema but can never work; the outcome goes to the model.
    fn validate(&self, _input: &Value, _host: &dyn Host) -> Result<(), Box<ToolOutcome>> {
        Ok(())
    }

    /// Does the work. It must end soon after `call.cancel` fires, leaving nothing half done.
    fn run<'a>(&'a self, call: ToolCall, host: &'a dyn Host) -> ToolFuture<'a>;
}

/// One call, validated and permitted.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The model's id for the call.
    pub id: ToolUseId,
    /// The arguments after defaulting and coercion.
    pub input: Value,
    /// What it was judged by: the paths named here are the ones that may be touched.
    pub effects: CallEffects,
    /// Fires on interrupt.
    pub cancel: CancellationToken,
    /// Fires when the user wants it to go on in the background; a tool that cannot takes no notice.
    pub to_background: CancellationToken,
}

impl ToolCall {
    /// Returns the path that was judged for a tool that reads or writes one. It is not resolved again: a symlink
    /// put in its way since the verdict must not lead to another file.
    pub(crate) fn judged_path(&self) -> Result<PathEffect, String> {
        let path = self.effects.writes.first().or(self.effects.reads.first());
        path.cloned().ok_or_else(|| "No path was judged for this call".to_owned())
    }
}
