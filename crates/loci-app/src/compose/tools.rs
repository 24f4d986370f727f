//! The tools that a session offers.

use std::sync::Arc;

use loci_core::permission::Rulebook;
use loci_core::tool::ToolDescriptor;
use loci_engine::SessionSkills;
use loci_storage::search::RECALL_TOOL;
use loci_tools::{
    DISABLE_BACKGROUND, RecordDirs, SCHEDULE_TOOLS, SKILL_TOOL, SkillCatalog, SkillTool, Toolbox,
    foreground_bash,
};

use crate::compose::background_agents::switch;
use crate::extensions::skills::NO_SCHEDULE;
use crate::options::{RunOptions, ToolChoice};
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The tools of a list that is written whole.
const TODO_TOOL: &str = "TodoWrite";
/// Those of a list that is kept in files, a task each.
const TASK_TOOLS: [&str; 4] = ["TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];

/// Returns the tools on offer.
pub fn toolbox(
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    record: RecordDirs,
    skills: &Arc<SessionSkills>,
) -> Result<Toolbox, UserError> {
    let mut toolbox = Toolbox::with_record(Some(record));
    if run.env.vars.is_truthy(DISABLE_BACKGROUND) {
        toolbox.replace(foreground_bash());
    }
    if skills.has_any_for_model() || is_asked_for(options, SKILL_TOOL) {
        let catalog: Arc<dyn SkillCatalog> = Arc::clone(skills) as _;
        if let Err(error) = toolbox.append_own(Arc::new(SkillTool::new(catalog))) {
            tracing::debug!(target: "loci::skills", %error, "the tool is not offered");
        }
    }
    match &options.tools {
        ToolChoice::Usual if run.is_bare => {
            toolbox.retain(|tool| tool.facts.is_bare);
        }
        ToolChoice::Usual | ToolChoice::All => {}
        ToolChoice::Only(names) => {
            // Programs name tools of the reference that there are not here; they are told (`unknown_tools`).
            toolbox.retain(|tool| names.contains(&tool.name) || is_alias(tool, names));
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
    // One list is enough: the model is offered the tasks, or the list that is written whole.
    let has_tasks = switch(&run.env, "CLAUDE_CODE_ENABLE_TASKS").unwrap_or(true);
    let is_left_out = |name: &str| match has_tasks {
        true => name == TODO_TOOL,
        false => TASK_TOOLS.contains(&name),
    };
    if !matches!(options.tools, ToolChoice::Only(_)) {
        toolbox.retain(|tool| !is_left_out(&tool.name) || rulebook.is_tool_allowed(&tool.name));
    }
    if options.is_restricted {
        toolbox.retain(|tool| !tool.facts.runs_code);
    }
    if run.env.vars.is_truthy(NO_SCHEDULE) {
        toolbox.retain(|tool| !SCHEDULE_TOOLS.contains(&tool.name.as_str()));
    }
    // Without a record there is nothing to look up.
    if !options.is_persistent || run.settings.recall_enabled == Some(false) {
        toolbox.retain(|tool| tool.name != RECALL_TOOL);
    }
    Ok(toolbox)
}

fn is_alias(tool: &ToolDescriptor, names: &[String]) -> bool {
    names.iter().any(|name| tool.aliases.contains(&name.as_str()))
}

/// Says which of the tools that were asked for by name there are not.
pub(super) fn unknown_tools(options: &RunOptions) -> Option<String> {
    let ToolChoice::Only(names) = &options.tools else { return None };
    let all = Toolbox::builtin();
    let is_known = |name: &str| all.find(name).is_some() || name == SKILL_TOOL;
    let unknown: Vec<&str> = names.iter().map(String::as_str).filter(|name| !is_known(name)).collect();
    (!unknown.is_empty()).then(|| format!("--tools names what is no tool here: {}", unknown.join(", ")))
}

fn is_asked_for(options: &RunOptions, tool: &str) -> bool {
    matches!(&options.tools, ToolChoice::Only(names) if names.iter().any(|name| name == tool))
}
