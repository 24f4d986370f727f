//! The agents of a run: found, given with the start, built in; and the one that the main conversation runs as.

use std::path::Path;
use std::sync::Arc;

use loci_context::AgentPrompt;
use loci_core::agent::{
    AgentDefinition, AgentRegistry, AgentScope, CATCH_ALL, GUIDE, Problem, ToolAccess, agent_mode,
    builtin_agents, parse_agents_json, preloaded_skills,
};
use loci_core::hooks::{HookConfig, HookScope, HookSource};
use loci_core::permission::Rulebook;
use loci_core::skill::{SkillRegistry, Variables};
use loci_engine::{AgentPoller, AgentsConfig, SessionConfig, agent_listing, main_agent_memory};
use loci_stdx::{Env, Store};
use loci_storage::config::{AgentWatch, DefinitionPlaces, FoundAgents, discover_agents};
use loci_tools::{DISABLE_BACKGROUND, Toolbox, agent_tool, background_agent_tool, foreground_agent_tool};
use serde_json::{Map, Value};

use crate::options::{ModelOptions, RunOptions, TextSource};
use crate::plugins::RunPlugins;
use crate::sessions::resume::Resume;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The agents of a session that is being composed.
pub(crate) struct SessionAgents {
    pub(crate) config: AgentsConfig,
    /// The prompt of the agent that the main conversation runs as.
    pub(crate) prompt: Option<AgentPrompt>,
    pub(crate) warnings: Vec<String>,
}

/// Returns all agents that files and the program itself define.
pub fn all_agents(env: &Env, places: &DefinitionPlaces, plugins: &RunPlugins) -> AgentRegistry {
    registry(env, discover_agents(places), &[], plugins, true)
}

fn registry(
    env: &Env,
    found: FoundAgents,
    given: &[AgentDefinition],
    plugins: &RunPlugins,
    has_person: bool,
) -> AgentRegistry {
    let mut agents = given.to_vec();
    agents.extend(found.agents);
    if plugins.only.agents {
        agents.retain(|agent| matches!(agent.source.scope, AgentScope::Managed | AgentScope::Flag));
    }
    agents.extend(plugins.agents());
    agents.extend(built_in(env, has_person));
    AgentRegistry::new(agents, found.problems)
}

/// Returns the built-in agents that the environment lets be; the guide only where a person could ask it something. Who
/// brings agents of their own may have no others, but no person at a terminal is left without any.
fn built_in(env: &Env, has_person: bool) -> Vec<AgentDefinition> {
    if env.vars.is_truthy("CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS") && !has_person {
        return Vec::new();
    }
    let without_looking = env.vars.is_truthy("CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS");
    let is_wanted = |agent: &AgentDefinition| match agent.name.as_str() {
        "Explore" | "Plan" => !without_looking,
        GUIDE => has_person,
        _ => true,
    };
    builtin_agents().into_iter().filter(is_wanted).collect()
}

impl SessionAgents {
    pub(crate) fn new(options: &RunOptions, run: &RunSettings) -> Result<Self, UserError> {
        let (given, mut warnings) = given_agents(options, &run.env)?;
        let client = options.initialize.as_ref().map_or(&options.client_agents, |request| &request.agents);
        let (client, problems) = parse_agents_json(client, AgentScope::Flag);
        // What is wrong with those that are taken up later is told then.
        let problems = problems.iter().filter(|_| options.initialize.is_some());
        warnings.extend(problems.map(|problem| format!("Agents: {problem}")));
        let given: Vec<AgentDefinition> = client.into_iter().chain(given).collect();
        let (registry, poll) = match run.is_bare {
            true => (AgentRegistry::new(given, Vec::new()), None),
            false => follow(run, given, options.is_interactive),
        };
        // Limits can be changed and not be taken away.
        let number = |name: &str| {
            let said = run.env.vars.non_empty(name).map(str::trim);
            let said = said.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            said.and_then(|text| text.parse::<u32>().ok()).filter(|number| *number > 0)
        };
        let usual = AgentsConfig::default();
        let config = AgentsConfig {
            registry: Arc::new(Store::new(registry)),
            poll,
            max_concurrent: number("CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS")
                .map_or(usual.max_concurrent, |n| n as usize),
            max_depth: number("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH").unwrap_or(usual.max_depth),
            can_fork: crate::compose::background_agents::switch(&run.env, "CLAUDE_CODE_FORK_SUBAGENT")
                .unwrap_or(options.is_interactive),
            is_background: options.is_interactive,
            can_background: !run.env.vars.is_truthy(DISABLE_BACKGROUND),
            appended_prompt: options.appended_agent_prompt.clone().filter(|text| !text.trim().is_empty()),
            keeps_memory: !run.is_bare && run.settings.auto_memory.enabled != Some(false),
            memory_root: run.instructions.memory_root().to_owned(),
            stall_timeout: crate::compose::background_agents::millis(
                &run.env,
                "CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS",
            )
            .or(usual.stall_timeout)
            .filter(|limit| !limit.is_zero()),
            ..usual
        };
        Ok(Self { config, prompt: None, warnings })
    }

    /// Has the main conversation run as the agent that the options, or the settings, name.
    ///
    /// A session that goes on remains what it was, unless the options name another. One that the options name and that
    /// there is not is an error: a run without its restrictions is not what was asked for.
    pub(crate) fn apply_main(
        &mut self,
        options: &RunOptions,
        run: &RunSettings,
        book: &mut Rulebook,
        resume: Option<&Resume>,
    ) -> Result<(), UserError> {
        let by_setting = run.in_force["agent"].as_str().filter(|_| !run.is_bare).map(str::to_owned);
        let registry = self.config.registry.get();
        // What a plugin sets counts where nobody chose.
        let by_plugin = || {
            let [whole, bare] = run.plugins.main_agent()?;
            Some(if registry.find(&whole).is_some() { whole } else { bare })
        };
        let remembered = resume.and_then(|resume| resume.agent.clone()).filter(|_| !run.is_bare);
        let is_remembered = options.agent.is_none() && remembered.is_some();
        let chosen = options.agent.clone().or(remembered).or(by_setting).or_else(by_plugin);
        let Some(name) = chosen.filter(|name| !name.trim().is_empty()) else { return Ok(()) };
        let elsewhere = || agent_where_it_was(options, run, resume.filter(|_| is_remembered)?, name.trim());
        let agent = match find_main(&registry, name.trim()) {
            Ok(agent) => agent,
            Err(missing) => match elsewhere() {
                Some(agent) => agent,
                None if options.agent.is_some() => return Err(missing.error()),
                None => {
                    self.warnings.push(match is_remembered {
                        true => format!(
                            "The session ran as the agent `{name}`, which there is no more; it goes on as usual"
                        ),
                        false => missing.warning(),
                    });
                    return Ok(());
                }
            },
        };
        if agent.name == CATCH_ALL && agent.source.scope == AgentScope::BuiltIn {
            return Ok(());
        }
        // Those of agents that were given are told of all.
        self.warnings.extend(notes_of(&agent).into_iter().filter(|_| agent.source.scope != AgentScope::Flag));
        let (_, problems) = own_hooks(&agent, &run.env.cwd);
        self.warnings
            .extend(problems.iter().map(|problem| format!("Hooks of the agent `{}`: {problem}", agent.name)));
        if agent.permission_mode.is_some() && options.permissions.mode.is_none() {
            book.mode = agent_mode(book.mode, agent.asked_mode());
        }
        let memory = self
            .config
            .keeps_memory
            .then(|| main_agent_memory(&agent, &run.home, &self.config.memory_root, book));
        // An empty one, as the SDKs send it, leaves the place to the agent's.
        let is_given =
            |prompt: &TextSource| !matches!(prompt, TextSource::Text(text) if text.trim().is_empty());
        let is_free = !options.system_prompt.as_ref().is_some_and(is_given);
        self.prompt = is_free.then(|| AgentPrompt {
            text: agent.prompt.clone(),
            memory: memory.flatten(),
            is_sent_out: false,
        });
        self.config.spawnable = ToolAccess::main(&agent).spawnable();
        self.config.main = Some(agent);
        Ok(())
    }

    /// Returns the agent's name, where the session does not know yet that it runs as it.
    pub(crate) fn news_for(&self, resume: &Resume) -> Option<String> {
        let name = self.config.main.as_ref().map(|agent| agent.name.clone());
        let is_fork = !resume.history.inherited.is_empty();
        name.filter(|name| is_fork || resume.agent.as_ref() != Some(name))
    }

    /// Puts the skills of the agent that the main conversation runs as into its prompt.
    pub(crate) fn preload_skills(&mut self, registry: &SkillRegistry, place: &Variables) {
        let (Some(agent), Some(prompt)) = (&self.config.main, &mut self.prompt) else { return };
        let (skills, problems) = preloaded_skills(registry, agent, place);
        prompt.text += &skills;
        self.warnings.extend(problems.iter().map(|problem| format!("The agent `{}`: {problem}", agent.name)));
    }

    /// Says in the Agent tool which agents there are; takes away what the agent of the main conversation does not have.
    pub(crate) fn offer(&self, toolbox: &mut Toolbox, book: &Rulebook) {
        if let Some(agent) = &self.config.main {
            let access = ToolAccess::main(agent);
            toolbox.retain(|tool| access.has(&tool.name));
        }
        offer_agents(toolbox, &self.config, book);
    }

    /// Asks the model of the agent, where nobody chose another.
    pub(crate) fn model_options(&self, asked: &ModelOptions) -> ModelOptions {
        let main = self.config.main.as_ref();
        ModelOptions {
            model: asked.model.clone().or_else(|| main?.model.clone()),
            effort: asked.effort.clone().or_else(|| main?.effort.clone()),
            ..asked.clone()
        }
    }

    /// Adds the hooks of the agent that the main conversation runs as.
    pub(crate) fn with_hooks(&self, mut config: HookConfig, cwd: &Path) -> HookConfig {
        if let Some(agent) = &self.config.main {
            config.extend_shared(own_hooks(agent, cwd).0.entries().to_vec());
        }
        config
    }
}

/// Returns the hooks of a definition, and what is wrong with them.
fn own_hooks(agent: &AgentDefinition, cwd: &Path) -> (HookConfig, Vec<String>) {
    let Some(hooks) = &agent.hooks else { return (HookConfig::default(), Vec::new()) };
    let file = agent.source.to_string();
    let source = HookSource { scope: HookScope::Agent(agent.name.clone()), file: file.into(), line: 1 };
    let (own, problems) = HookConfig::parse(hooks, source, cwd);
    (own, problems.iter().map(ToString::to_string).collect())
}

/// Finds the agent to run as; that of a plugin needs no more than the last part of its name, where only one has it.
fn find_main(registry: &AgentRegistry, name: &str) -> Result<Arc<AgentDefinition>, MissingAgent> {
    if let Some(agent) = registry.find(name) {
        return Ok(Arc::clone(agent));
    }
    let (what, meant): (_, Vec<&Arc<AgentDefinition>>) = match registry.find_by_last_part(name) {
        several if several.is_empty() => ("There is no agent", registry.iter().collect()),
        several => match several[..] {
            [only] => return Ok(Arc::clone(only)),
            _ => ("Several plugins have an agent", several),
        },
    };
    let names: Vec<&str> = meant.iter().map(|agent| agent.name.as_str()).collect();
    Err(MissingAgent { what: format!("{what} `{name}`"), there_are: names.join(", ") })
}

/// An agent to run as that was not found.
#[derive(Debug)]
struct MissingAgent {
    what: String,
    there_are: String,
}

impl MissingAgent {
    fn error(self) -> UserError {
        UserError::new(self.what).hint(format!("There are: {}", self.there_are))
    }

    fn warning(self) -> String {
        format!("{}, so the conversation runs as usual. There are: {}", self.what, self.there_are)
    }
}

/// Looks for the agent of a session in the directory that the session worked in, where that is another one and trusted.
fn agent_where_it_was(
    options: &RunOptions,
    run: &RunSettings,
    resume: &Resume,
    name: &str,
) -> Option<Arc<AgentDefinition>> {
    let cwd: String = resume.history.path.last()?.fields().read("cwd")?;
    let cwd = Path::new(&cwd);
    if cwd == run.env.cwd || !cwd.is_dir() {
        return None;
    }
    let there = RunSettings::load(&Env { cwd: cwd.to_owned(), ..run.inherited.clone() }, options).ok()?;
    let is_trusted = there.instructions.is_trusted();
    let places = there.instructions.definition_places(&there.env, &there.home);
    let found = is_trusted.then(|| all_agents(&there.env, &places, &there.plugins))?;
    found.find(name).cloned()
}

/// Says in the Agent tool which agents a run has, as a session of it would.
pub fn offer_agents_of_run(
    toolbox: &mut Toolbox,
    options: &RunOptions,
    run: &RunSettings,
    rulebook: &Rulebook,
    resume: Option<&Resume>,
) -> Result<(), UserError> {
    let mut agents = SessionAgents::new(options, run)?;
    agents.apply_main(options, run, &mut rulebook.clone(), resume)?;
    agents.offer(toolbox, rulebook);
    Ok(())
}

/// Takes up agents that a client names after the session was composed; returns what is wrong with them.
pub(crate) fn add_client_agents(config: &mut SessionConfig, agents: &Map<String, Value>) -> Vec<String> {
    if agents.is_empty() {
        return Vec::new();
    }
    let (given, problems) = parse_agents_json(agents, AgentScope::Flag);
    let before = config.agents.registry.get();
    // Some may be known already: one of them is who the conversation runs as.
    let is_new = |agent: &&Arc<AgentDefinition>| !given.iter().any(|it| it == agent.as_ref());
    let others = before.iter().chain(&before.shadowed).filter(is_new).map(|it| AgentDefinition::clone(it));
    let all: Vec<AgentDefinition> = given.iter().cloned().chain(others).collect();
    let notes: Vec<String> = given.iter().flat_map(notes_of).collect();
    let known = before.problems.clone();
    config.agents.registry.update(|_| Arc::new(AgentRegistry::new(all.clone(), known.clone())));
    let poll = config.agents.poll.take();
    config.agents.poll = poll.map(|mut poll| -> AgentPoller {
        Box::new(move || {
            let fresh = poll()?;
            let others = fresh.iter().chain(&fresh.shadowed).map(|agent| AgentDefinition::clone(agent));
            let all = given.iter().cloned().chain(others).collect();
            Some(AgentRegistry::new(all, fresh.problems.clone()))
        })
    });
    offer_agents(&mut config.toolbox, &config.agents, &config.rulebook);
    problems.iter().map(|problem| format!("Agents: {problem}")).chain(notes).collect()
}

/// Returns what an agent asks for in vain, for people.
fn notes_of(agent: &AgentDefinition) -> Vec<String> {
    agent.notes.iter().map(|note| format!("The agent `{}`: {note}", agent.name)).collect()
}

fn offer_agents(toolbox: &mut Toolbox, config: &AgentsConfig, book: &Rulebook) {
    let registry = config.registry.get();
    let listing = agent_listing(&registry, config.spawnable.as_deref(), config.can_fork, book);
    match listing.is_empty() {
        true => toolbox.retain(|tool| tool.name != "Agent"),
        false if config.can_background && config.can_fork => toolbox.replace(background_agent_tool(&listing)),
        false if config.can_background => toolbox.replace(agent_tool(&listing)),
        false => toolbox.replace(foreground_agent_tool(&listing)),
    }
}

/// Reads the definitions of files and follows them.
fn follow(
    run: &RunSettings,
    given: Vec<AgentDefinition>,
    has_person: bool,
) -> (AgentRegistry, Option<AgentPoller>) {
    let places = run.instructions.definition_places(&run.env, &run.home);
    let (mut watch, found) = AgentWatch::start(places.clone());
    let (store, mut plugins) = (Arc::clone(&run.plugin_store), Arc::clone(&run.plugins));
    let first = registry(&run.env, found, &given, &plugins, has_person);
    let env = run.env.clone();
    let poll: AgentPoller = Box::new(move || {
        let now = store.get();
        let has_other_plugins = !Arc::ptr_eq(&now, &plugins);
        plugins = now;
        let found = watch.poll().or_else(|| has_other_plugins.then(|| discover_agents(&places)))?;
        Some(registry(&env, found, &given, &plugins, has_person))
    });
    (first, Some(poll))
}

/// Reads what `--agents` gives: a JSON object, or the name of a file that holds one.
fn given_agents(options: &RunOptions, env: &Env) -> Result<(Vec<AgentDefinition>, Vec<String>), UserError> {
    let Some(argument) = options.agents.as_deref() else { return Ok((Vec::new(), Vec::new())) };
    let hint = "Give --agents a JSON object such as {\"reviewer\": {\"description\": \"..\", \"prompt\": \"..\"}}, or a \
                file that holds one.";
    let text = match argument.trim_start().starts_with('{') {
        true => argument.to_owned(),
        false => {
            let path = env.cwd.join(loci_core::path::expand_home(&env.home, argument));
            std::fs::read_to_string(&path).map_err(|error| {
                UserError::new(format!("Failed to read agents: `{}`: {error}", path.display())).hint(hint)
            })?
        }
    };
    let parsed: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| UserError::new(format!("Not a JSON object of agents: {error}")).hint(hint))?;
    let (agents, problems): (Vec<AgentDefinition>, Vec<Problem>) =
        parse_agents_json(&parsed, AgentScope::Flag);
    let problems = problems.iter().map(|problem| format!("Agents: {problem}"));
    let warnings = problems.chain(agents.iter().flat_map(notes_of)).collect();
    Ok((agents, warnings))
}

#[cfg(test)]
mod tests {
    use loci_core::agent::AgentSource;

    use super::*;

    #[test]
    fn agent_of_a_plugin_is_found_by_the_last_part_of_its_name_where_one_plugin_has_it() {
        let agent =
            |name: &str| AgentDefinition::new(name, "d", "p", AgentSource::inline(AgentScope::Plugin));
        let all = ["a:review:security", "a:writer", "b:writer", "writer-2"].map(agent);
        let registry = AgentRegistry::new(all.into(), Vec::new());
        let found = |name: &str| {
            find_main(&registry, name).map(|agent| agent.name.clone()).map_err(MissingAgent::warning)
        };
        for (name, expected) in [
            ("security", Ok("a:review:security")),
            ("a:writer", Ok("a:writer")),
            ("writer-2", Ok("writer-2")),
            (
                "writer",
                Err(
                    "Several plugins have an agent `writer`, so the conversation runs as usual. There are: a:writer, b:writer",
                ),
            ),
        ] {
            assert_eq!(found(name), expected.map(str::to_owned).map_err(str::to_owned), "{name}");
        }
        assert!(found("review").unwrap_err().starts_with("There is no agent `review`"));
    }
}
