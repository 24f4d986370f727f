//! What a session works with: compaction, MCP servers, skills and tools, as its model has room for them.

use std::sync::Arc;

use loci_core::model::ModelCatalog;
use loci_core::permission::Rulebook;
use loci_core::skill::Variables;
use loci_engine::{CompactionConfig, McpConfig, ModelConfig, SessionSkills, ToolSearchMode};
use loci_llm::Client;
use loci_mcp::SandboxMaker;
use loci_stdx::Env;
use loci_tools::{RecordDirs, Toolbox};

use super::provider::{Provider, declared_window};
use super::{Access, identity, tools};
use crate::compose::compaction::compaction_config;
use crate::compose::tool_search::tool_search;
use crate::extensions::agents::SessionAgents;
use crate::extensions::skill_usage::StateFileUsage;
use crate::extensions::skills::{ReadSkills, SkillOptions};
use crate::mcp;
use crate::mcp::agent_servers::agent_servers;
use crate::models::providers::block_on_thread;
use crate::options::{RunOptions, ToolChoice};
use crate::permissions::sandbox::sandbox_maker;
use crate::sessions::resume::Resume;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// Models of named providers with less than this are told little and offered few tools: each takes room that the work needs.
const SMALL_WINDOW: u64 = 32_768;

/// What was chosen before.
pub(super) struct Chosen<'a> {
    pub(super) options: &'a RunOptions,
    pub(super) run: &'a RunSettings,
    pub(super) resume: &'a Resume,
    pub(super) provider: &'a Provider,
    pub(super) access: &'a Access,
}

/// What a session works with.
pub(super) struct Equipment {
    pub(super) compaction: CompactionConfig,
    pub(super) sandbox_maker: SandboxMaker,
    pub(super) mcp: Option<McpConfig>,
    pub(super) skills: Arc<SessionSkills>,
    pub(super) toolbox: Toolbox,
    pub(super) room: Room,
}

/// Gives the session what it works with; skills go to its agents, too, and its model learns whether it looks for tools.
pub(super) fn equip(
    chosen: &Chosen<'_>,
    agents: &mut SessionAgents,
    model: &mut ModelConfig,
    found_skills: ReadSkills,
    warnings: &mut Vec<String>,
) -> Result<Equipment, UserError> {
    let Chosen { options, run, resume, provider, access } = *chosen;
    let compaction = session_compaction(options, run, provider, model);
    let sandbox_maker = sandbox_maker(run, resume.place.id().as_str());
    let mcp = session_servers(options, run, resume, agents, &sandbox_maker, warnings)?;
    let room = Room::of_model(model, &compaction);
    let skills = Arc::new(session_skills(options, run, found_skills, &room));
    let mut place = Variables::default();
    place.set("CLAUDE_SESSION_ID", resume.place.id().as_str());
    place.set("CLAUDE_PROJECT_DIR", run.env.cwd.display().to_string());
    agents.preload_skills(&skills.registry(), &place);
    warnings.append(&mut agents.warnings);
    let toolbox = session_tools(chosen, agents, &skills, &room, warnings)?;
    warnings.extend(choose_tool_search(options, run, &access.rulebook, model));
    Ok(Equipment { compaction, sandbox_maker, mcp, skills, toolbox, room })
}

/// Returns the skills of the session; how often they are used is kept where anything of the session is.
fn session_skills(options: &RunOptions, run: &RunSettings, found: ReadSkills, room: &Room) -> SessionSkills {
    if options.has_no_commands {
        return SessionSkills::none();
    }
    let skills = found.into_session(SkillOptions::new(run), room.window);
    match options.is_persistent {
        true => skills.with_usage_log(StateFileUsage::new(run.home.clone(), Arc::clone(&run.env.clock))),
        false => skills,
    }
}

/// How much the main model can read at once.
pub(super) struct Room {
    model: String,
    window: u64,
    /// Whether that is so little that the model is told little and offered few tools.
    pub(super) is_small: bool,
}

impl Room {
    fn of_model(model: &ModelConfig, compaction: &CompactionConfig) -> Self {
        let facts = model.catalog.facts(&model.main);
        let window = compaction.window.unwrap_or(facts.window);
        Self { model: model.main.clone(), window, is_small: facts.is_named && window < SMALL_WINDOW }
    }
}

/// Returns when and how the session is compacted, with the window of its model as far as somebody tells it.
fn session_compaction(
    options: &RunOptions,
    run: &RunSettings,
    provider: &Provider,
    model: &ModelConfig,
) -> CompactionConfig {
    let mut compaction = compaction_config(&run.env, &run.settings, &model.main, options.compact_window);
    let window = match model.catalog.facts(&model.main).is_named {
        // A window of the whole session would count for its other models, too.
        true => compaction.window.filter(|window| Some(*window) != declared_window(run)),
        false => compaction
            .window
            .or_else(|| server_window(&run.env, &provider.client, &model.catalog, &model.main)),
    };
    compaction.window = window;
    compaction
}

/// Asks a local server how much a model can read of which we know nothing; where it does not say, that is assumed.
fn server_window(env: &Env, client: &Client, catalog: &ModelCatalog, model: &str) -> Option<u64> {
    if catalog.facts(model).is_known || env.vars.non_empty("ANTHROPIC_BASE_URL").is_none() {
        return None;
    }
    let (client, model) = (client.clone(), model.to_owned());
    block_on_thread(async move { client.server_facts(&model).await?.window })
}

/// Makes the MCP servers of the session, and the way to those of its agents.
fn session_servers(
    options: &RunOptions,
    run: &RunSettings,
    resume: &Resume,
    agents: &mut SessionAgents,
    sandbox_maker: &SandboxMaker,
    warnings: &mut Vec<String>,
) -> Result<Option<McpConfig>, UserError> {
    let session = resume.place.id().as_str();
    let (mcp, problems) = mcp::servers_of_run(options, run, session, agents.config.main.as_deref())?;
    agents.config.make_servers = Some(agent_servers(options, run, session, sandbox_maker));
    warnings.extend(problems);
    Ok(mcp)
}

/// Makes the tools that the session begins with.
fn session_tools(
    chosen: &Chosen<'_>,
    agents: &SessionAgents,
    skills: &Arc<SessionSkills>,
    room: &Room,
    warnings: &mut Vec<String>,
) -> Result<Toolbox, UserError> {
    let Chosen { options, run, resume, access, .. } = *chosen;
    let record = RecordDirs {
        sessions: identity::project_dir(&resume.place),
        memory: access.memory.as_ref().map(|memory| memory.place.dir.clone()),
    };
    let mut toolbox = tools::toolbox(options, run, &access.rulebook, record, skills)?;
    agents.offer(&mut toolbox, &access.rulebook);
    warnings.extend(tools::unknown_tools(options));
    if room.is_small && options.tools == ToolChoice::Usual {
        toolbox.retain(|tool| tool.facts.is_bare);
        warnings.push(few_tools_notice(&room.model, room.window));
    }
    Ok(toolbox)
}

fn few_tools_notice(model: &str, window: u64) -> String {
    format!(
        "`{model}` can read {window} tokens at once, so it is offered the tools of a bare run alone; name others with --tools"
    )
}

/// Chooses whether tools are told of only when they are looked for; returns what is to be said about it.
fn choose_tool_search(
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    model: &mut ModelConfig,
) -> Option<String> {
    let (search, warning) = tool_search(options, run, rulebook, &model.main);
    // What was found is told in a kind of block that only the Messages API knows.
    let is_named = model.catalog.facts(&model.main).is_named;
    model.tool_search = if is_named { ToolSearchMode::Off } else { search };
    warning
}
