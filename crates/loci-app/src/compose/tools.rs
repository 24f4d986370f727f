//! The tools that a session offers.

use loci_core::permission::Rulebook;
use loci_storage::search::RECALL_TOOL;
use loci_tools::{RecordDirs, Toolbox};

use crate::options::{RunOptions, ToolChoice};
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Returns the tools on offer.
pub fn toolbox(
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    record: RecordDirs,
) -> Result<Toolbox, UserError> {
    let mut toolbox = Toolbox::with_record(Some(record));
    match &options.tools {
        ToolChoice::Usual if run.is_bare => {
            toolbox.retain(|tool| tool.facts.is_bare);
        }
        ToolChoice::Usual | ToolChoice::All => {}
        ToolChoice::Only(names) => {
            if let Some(unknown) = names.iter().find(|name| toolbox.find(name).is_none()) {
                return Err(UserError::new(format!("Unknown tool in --tools: `{unknown}`")));
            }
            toolbox.retain(|tool| names.contains(&tool.name));
        }
    }
    toolbox.retain(|tool| !rulebook.is_tool_denied(&tool.name));
    if !options.can_ask {
        let is_named = |name: &str| match &options.tools {
            ToolChoice::Only(_) => true,
            ToolChoice::Usual | ToolChoice::All => {
                rulebook.is_tool_allowed(name) || run.hooks.config.answers_for(name)
            }
        };
        toolbox.retain(|tool| !tool.facts.needs_person || is_named(&tool.name));
    }
    // Without a record there is nothing to look up.
    if !options.is_persistent || run.settings.recall_enabled == Some(false) {
        toolbox.retain(|tool| tool.name != RECALL_TOOL);
    }
    Ok(toolbox)
}
