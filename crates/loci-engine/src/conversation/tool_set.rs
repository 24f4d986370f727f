//! The tools of a conversation: those that it has, those that come and go, and those that it looks for.

use std::sync::Arc;

use loci_tools::Toolbox;

use super::tool_search::ToolSearchState;
use crate::command::ToolChanges;
use crate::tools::calls::CallLayer;

/// The tools that a conversation may call, and what wraps their calls.
pub(crate) struct ToolSet {
    pub(super) toolbox: Toolbox,
    /// Tools that came or went since the last request.
    pub(super) changes: Vec<ToolChanges>,
    /// Which tools the model looks for, and which it has found.
    pub(super) search: ToolSearchState,
    /// What wraps every call, outermost first.
    pub(super) layers: Arc<[Arc<dyn CallLayer>]>,
}

impl ToolSet {
    pub(super) fn new(toolbox: Toolbox, layers: Arc<[Arc<dyn CallLayer>]>) -> Self {
        Self { search: ToolSearchState::of(&toolbox), toolbox, changes: Vec::new(), layers }
    }
}
