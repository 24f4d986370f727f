//! The tools that a session offers.

use std::sync::Arc;

use loci_core::permission::Rulebook;
use loci_engine::SessionSkills;
use loci_storage::search::RECALL_TOOL;
use loci_tools::{RecordDirs, SKILL_TOOL, SkillCatalog, SkillTool, Toolbox};

use crate::options::{RunOptions, ToolChoice};
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Returns the tools on offer.
pub fn toolbox(
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    record: RecordDirs,
    skills: &Arc<SessionSkills>,
) -> Result<Toolbox, UserError> {
    let mut toolbox = Toolbox::with_record(Some(record));
    if skills.has_any_for_model() || is_asked_for(options, SKILL_TOOL) {
        let catalog: Arc<dyn SkillCatalog> = Arc::clone(skills) as _;
        if let Err(error) = toolbox.append(Arc::new(SkillTool::new(catalog))) {
            tracing::debug!(target: "loci::skills", %error, "the tool is not offered");
        }
    }
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

fn is_asked_for(options: &RunOptions, tool: &str) -> bool {
    matches!(&options.tools, ToolChoice::Only(names) if names.iter().any(|name| name == tool))
}
