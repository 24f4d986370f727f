//! MCP servers that definitions of agents bring along: which of them count, under the same rules as those of the run.
//!
//! What a file of the project defines is held back until the folder is trusted, which the definition itself has seen to.
//! Policies hold for all; `--strict-mcp-config` and bare runs leave out what files define, not what the run was given.

use std::path::Path;
use std::sync::Arc;

use loci_core::agent::{AgentDefinition, AgentScope};
use loci_engine::{AgentServersMaker, MadeServers};
use loci_mcp::SandboxMaker;
use loci_mcp::config::{Approvals, Plan, PlanInputs, ServerPolicy, ServerScope, plan_servers};
use loci_settings::McpSettings;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use crate::compose::child_env::child_env;
use crate::mcp::{McpSources, ServerPlace, is_managed, make_servers_in};
use crate::options::RunOptions;
use crate::settings::RunSettings;

/// What servers of agents are judged by and started in.
struct AgentServerWorld {
    env: Env,
    home: ConfigHome,
    sources: McpSources,
    settings: McpSettings,
    is_strict: bool,
    only_plugins: bool,
    session: String,
    sandbox_maker: SandboxMaker,
}

/// Returns what makes the servers that definitions have of their own.
pub(crate) fn agent_servers(
    options: &RunOptions,
    run: &RunSettings,
    session: &str,
    make_sandbox: &SandboxMaker,
) -> AgentServersMaker {
    let world = AgentServerWorld {
        env: run.env.clone(),
        home: run.home.clone(),
        sources: run.mcp.clone(),
        settings: run.settings.mcp.clone(),
        is_strict: options.mcp.is_strict || run.is_bare,
        only_plugins: run.plugins.only.mcp,
        session: session.to_owned(),
        sandbox_maker: Arc::clone(make_sandbox),
    };
    Arc::new(move |definition, cwd| world.make(definition, cwd))
}

impl AgentServerWorld {
    fn make(&self, definition: &AgentDefinition, cwd: &Path) -> MadeServers {
        let plan = match self.refusal(definition) {
            Some(why) => return MadeServers { servers: None, problems: vec![why] },
            None => plan_of(&self.env, &self.settings, definition),
        };
        let problems = plan.problems.iter().map(ToString::to_string).collect();
        let servers = (!plan.servers.is_empty()).then(|| {
            let env = Env { cwd: cwd.to_owned(), ..self.env.clone() };
            let place = ServerPlace {
                env: &env,
                home: &self.home,
                sources: &self.sources,
                session: &self.session,
                sandbox_maker: Arc::clone(&self.sandbox_maker),
                sampling: &self.settings.sampling,
            };
            make_servers_in(&plan, place, None, None)
        });
        MadeServers { servers, problems }
    }

    fn refusal(&self, definition: &AgentDefinition) -> Option<String> {
        refusal(&self.sources, definition, self.is_strict, self.only_plugins)
    }
}

/// Says why none of a definition's own servers may be started, if so.
pub(crate) fn refusal(
    sources: &McpSources,
    definition: &AgentDefinition,
    is_strict: bool,
    only_plugins: bool,
) -> Option<String> {
    let is_given = definition.source.scope == AgentScope::Flag;
    let why = if is_managed(sources) {
        "the administrator's are all there is"
    } else if only_plugins {
        "only plugins may bring servers (`strictPluginOnlyCustomization`)"
    } else if is_strict && !is_given {
        "only those of `--mcp-config` and `--agents` are used (`--strict-mcp-config`, `--bare`)"
    } else {
        return None;
    };
    let names: Vec<String> = definition.own_servers().keys().map(|name| format!("`{name}`")).collect();
    Some(format!("its MCP servers {} are not started: {why}", names.join(", ")))
}

/// Returns the servers of a definition, as they would be written in a file of its scope.
pub(crate) fn written_servers(definition: &AgentDefinition) -> Option<(ServerScope, String, Value)> {
    let servers = definition.own_servers();
    let scope = match definition.source.scope {
        AgentScope::Project | AgentScope::Plugin => ServerScope::Project,
        AgentScope::Flag => ServerScope::Dynamic,
        AgentScope::Managed | AgentScope::User | AgentScope::BuiltIn => ServerScope::User,
    };
    let source = format!("agent `{}`, {}", definition.name, definition.source);
    (!servers.is_empty()).then_some((scope, source, Value::Object(servers)))
}

fn plan_of(env: &Env, settings: &McpSettings, definition: &AgentDefinition) -> Plan {
    let (policy, _) = ServerPolicy::new(settings.allowed.as_deref(), &settings.denied);
    let commands = child_env(env);
    let vars = |scope: ServerScope, name: &str| match scope.is_foreign() {
        true => commands.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone()),
        false => env.vars.get(name).map(str::to_owned),
    };
    // Whoever trusts the folder, or sends the agent out, wants its servers; a rejection of a name is for `.mcp.json`.
    let approvals = Approvals { approves_all: true, ..Approvals::default() };
    plan_servers(PlanInputs {
        written: written_servers(definition).into_iter().collect(),
        is_strict: false,
        policy: &policy,
        approvals: &approvals,
        vars: &vars,
    })
}
