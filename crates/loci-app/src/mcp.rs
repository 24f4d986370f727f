//! Which MCP servers a run has: files, flags and settings brought together, and the servers made of them.
//!
//! Everything but `.mcp.json` and the administrator's file is read anyway. Nothing of a folder that the user does not
//! trust is read: that its servers are not started is said, with what to do about it.

pub(crate) mod agent_servers;
pub mod approvals;
pub mod logins;
pub mod toggles;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::agent::AgentDefinition;
use loci_engine::{ClientBridge, McpConfig};
use loci_http::{NetworkSettings, http_client};
use loci_mcp::config::{
    Approvals, ConfigProblem, Plan, PlanInputs, ServerPolicy, ServerScope, Standing, plan_servers,
};
use loci_mcp::{
    Bridge, HttpClients, Limits, OnConnected, ProgramWatch, SandboxMaker, ServerWorld, Servers,
    WatchedProgram,
};
use loci_settings::jsonc;
use loci_stdx::{Env, Random, read_regular_to_string};
use loci_storage::config::{LoadedSettings, McpState, SettingsPlaces, SettingsSources, TrustState};
use loci_storage::layout::ConfigHome;
use loci_tools::{DeathWatch, MARK_VARIABLE, WatchedCommand};
use serde_json::Value;

use crate::compose::child_env::child_env;
use crate::mcp::approvals::{compare_tools, hold_changed, note_first_use};
use crate::mcp::logins::logins;
use crate::options::{McpOptions, RunOptions};
use crate::permissions::sandbox::sandbox_maker;
use crate::settings::RunSettings;
use crate::user_error::UserError;

/// The file of a project's servers.
pub const PROJECT_FILE: &str = ".mcp.json";
/// The administrator's file.
const MANAGED_FILE: &str = "managed-mcp.json";

/// Where servers are written down.
#[derive(Debug, Clone, Default)]
pub struct McpSources {
    state: McpState,
    state_file: String,
    root: PathBuf,
    trust: TrustState,
    sources: Option<SettingsSources>,
    managed_dir: PathBuf,
}

impl McpSources {
    /// Takes what the settings' files say.
    pub fn new(places: &SettingsPlaces, loaded: &LoadedSettings) -> Self {
        Self {
            state: loaded.mcp.clone(),
            state_file: places.display_path(&places.state_file),
            root: places.tree_root().to_owned(),
            trust: loaded.trust.clone(),
            sources: Some(places.sources),
            managed_dir: places.managed_dir.clone(),
        }
    }

    /// Returns what the global state file says.
    pub fn state(&self) -> &McpState {
        &self.state
    }

    /// Returns the root that the project's file lies in.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns whether the user trusts the folder.
    pub fn trust(&self) -> &TrustState {
        &self.trust
    }
}

/// Returns the servers of a run and what the user should know; none where a run has none.
pub(crate) fn servers_of_run(
    options: &RunOptions,
    run: &RunSettings,
    session: &str,
    main: Option<&AgentDefinition>,
) -> Result<(Option<McpConfig>, Vec<String>), UserError> {
    if let Some(servers) = &options.mcp_servers {
        return Ok((Some(servers.clone()), Vec::new()));
    }
    let plan = plan_with_agent(&options.mcp, run, main)?;
    let mut warnings: Vec<String> = plan.problems.iter().map(ToString::to_string).collect();
    warnings.extend(note_first_use(&plan, run).err().map(|error| error.message().to_owned()));
    // A client may bring servers later; nobody else can.
    if plan.servers.is_empty() && plan.problems.is_empty() && !options.is_long_lived {
        return Ok((None, warnings));
    }
    let bridge = options.is_long_lived.then(|| Arc::new(ClientBridge(options.client_requests.clone())) as _);
    let servers = make_servers(&plan, run, session, bridge);
    Ok((Some(McpConfig { servers, problems: plan.problems.into() }), warnings))
}

/// Makes the servers of a plan; none is started yet.
pub fn make_servers(
    plan: &Plan,
    run: &RunSettings,
    session: &str,
    bridge: Option<Arc<dyn Bridge>>,
) -> Servers {
    let on_connected = Some(on_connected(run));
    let place = ServerPlace {
        env: &run.env,
        home: &run.home,
        sources: &run.mcp,
        session,
        sandbox_maker: sandbox_maker(run, session),
        sampling: &run.settings.mcp.sampling,
    };
    make_servers_in(plan, place, bridge, on_connected)
}

/// Where servers are made.
pub(crate) struct ServerPlace<'a> {
    pub(crate) env: &'a Env,
    pub(crate) home: &'a ConfigHome,
    pub(crate) sources: &'a McpSources,
    pub(crate) session: &'a str,
    /// Makes the sandboxes that they ask for.
    pub(crate) sandbox_maker: SandboxMaker,
    /// Those that may ask the model.
    pub(crate) sampling: &'a [String],
}

/// Makes the servers of a plan in a place; none is started yet.
pub(crate) fn make_servers_in(
    plan: &Plan,
    place: ServerPlace<'_>,
    bridge: Option<Arc<dyn Bridge>>,
    on_connected: Option<OnConnected>,
) -> Servers {
    let ServerPlace { env, home, sources, session, sandbox_maker, sampling } = place;
    let world = ServerWorld {
        cwd: env.cwd.clone(),
        project: sources.root.clone(),
        session: session.to_owned(),
        child_env: child_env(env),
        limits: Limits::from_vars(&env.vars),
        log_dir: log_dir(home),
        clock: Arc::clone(&env.clock),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        bridge,
        clients: http_clients(env),
        logins: Some(logins(env, home)),
        program_watch: Some(Arc::new(DeathWatchedPrograms {
            watch: DeathWatch::default(),
            random: Arc::clone(&env.random),
        })),
        sandbox_maker: Some(sandbox_maker),
        sampling: sampling.to_vec(),
        on_connected,
        config_dir: home.root().to_owned(),
        may_run_helpers: sources.trust.is_exact,
    };
    Servers::new(plan, world)
}

/// Tells whether an administrator's file says which servers there are.
pub fn is_managed(sources: &McpSources) -> bool {
    sources.managed_dir.join(MANAGED_FILE).symlink_metadata().is_ok()
}

/// Returns what looks at servers that have told what they have: those of a project should be what they were.
fn on_connected(run: &RunSettings) -> OnConnected {
    let (home, root) = (run.home.clone(), run.mcp.root.clone());
    Arc::new(move |view| match view.scope {
        ServerScope::Project => compare_tools((&home, &root), view)
            .unwrap_or_else(|error| Some(format!("MCP server `{}`: {}", view.name, error.message()))),
        ServerScope::Plugin
        | ServerScope::User
        | ServerScope::Local
        | ServerScope::Dynamic
        | ServerScope::Managed => None,
    })
}

/// Has servers that are programs ended should we be killed, as commands are.
struct DeathWatchedPrograms {
    watch: DeathWatch,
    random: Arc<dyn Random>,
}

impl ProgramWatch for DeathWatchedPrograms {
    fn watch(&self) -> Box<dyn WatchedProgram> {
        // Short: the shell that watches reads it letter by letter.
        let mark = format!("mcp-{}", self.random.alphanumeric(16));
        Box::new(DeathWatchedProgram { watched: self.watch.watch(&mark), mark })
    }
}

struct DeathWatchedProgram {
    watched: WatchedCommand,
    mark: String,
}

impl WatchedProgram for DeathWatchedProgram {
    fn mark(&self) -> (String, String) {
        (MARK_VARIABLE.to_owned(), self.mark.clone())
    }

    fn started(&mut self, pid: u32) {
        self.watched.started(pid);
    }
}

/// Returns what makes HTTP clients: with the proxy and the certificates of the model's.
fn http_clients(env: &Env) -> HttpClients {
    let env = env.clone();
    Arc::new(move |url| {
        let settings = NetworkSettings::from_env(&env).map_err(|failure| failure.message)?;
        http_client(&settings, url).map_err(|failure| failure.message)
    })
}

/// Returns where the logs of servers are kept.
pub fn log_dir(home: &ConfigHome) -> PathBuf {
    home.loci_dir().join("mcp-logs")
}

/// Decides which servers a run has.
pub fn plan(options: &McpOptions, run: &RunSettings) -> Result<Plan, UserError> {
    plan_with_agent(options, run, None)
}

/// Decides which servers a run has whose main conversation runs as an agent: those that it defines are among them.
fn plan_with_agent(
    options: &McpOptions,
    run: &RunSettings,
    main: Option<&AgentDefinition>,
) -> Result<Plan, UserError> {
    let mut problems = Vec::new();
    let mut written = Vec::new();
    for config in &options.configs {
        let (source, servers) = read_mcp_config_flag(&run.env, config)?;
        written.push((ServerScope::Dynamic, source, servers));
    }
    // A bare run has what it is told and nothing else; the administrator's word stands all the same.
    let is_strict = options.is_strict || run.is_bare;
    if let Some(agent) = main.filter(|agent| !agent.own_servers().is_empty()) {
        match agent_servers::refusal(&run.mcp, agent, is_strict, run.plugins.only.mcp) {
            Some(why) => {
                problems.push(ConfigProblem::new(&format!("agent `{}`", agent.name), "policy", why));
            }
            // What the agent defines wins over what files have, as whatever a run is given does.
            None => written.extend(agent_servers::written_servers(agent)),
        }
    }
    written.extend(managed(&run.mcp, &mut problems));
    if !is_strict {
        let McpState { user, local, is_unreadable, .. } = &run.mcp.state;
        let file = &run.mcp.state_file;
        if run.plugins.only.mcp {
            let message = "only plugins may bring MCP servers (`strictPluginOnlyCustomization`); those of files are not used";
            problems.push(ConfigProblem::new("settings", "policy", message));
        } else {
            written.push((ServerScope::Local, format!("local, {file}"), local.clone()));
            written.extend(project(&run.env, &run.mcp, &mut problems));
            written.push((ServerScope::User, file.clone(), user.clone()));
        }
        let plugins = run.plugins.servers().into_iter();
        written.extend(plugins.map(|(file, servers)| (ServerScope::Plugin, file, servers)));
        if *is_unreadable {
            let message = "it cannot be read, so the servers in it are not used; restore it from `backups` in the config home";
            problems.push(ConfigProblem::new(file, "invalid_config", message));
        }
    }
    written.retain(|(_, _, servers)| !servers.is_null());
    let settings = &run.settings.mcp;
    let (policy, bad) = ServerPolicy::new(settings.allowed.as_deref(), &settings.denied);
    problems.extend(bad.into_iter().map(|message| ConfigProblem::new("settings", "invalid_config", message)));
    let joined = |a: &[String], b: &[String]| a.iter().chain(b).cloned().collect();
    let approvals = Approvals {
        approves_all: settings.approves_all,
        approved: joined(&settings.approved, &run.mcp.state.approved),
        rejected: joined(&settings.rejected, &run.mcp.state.rejected),
        disabled: run.mcp.state.disabled.clone(),
        // Without a terminal there is nobody to ask; that the folder is trusted has been made sure of.
        assumes_approval: !options.needs_approval,
    };
    let commands = child_env(&run.env);
    let vars = |scope: ServerScope, name: &str| match scope.is_foreign() {
        // What others wrote cannot reach for our credentials.
        true => commands.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone()),
        false => run.env.vars.get(name).map(str::to_owned),
    };
    let mut plan =
        plan_servers(PlanInputs { written, is_strict, policy: &policy, approvals: &approvals, vars: &vars });
    plan.problems.splice(0..0, problems);
    hold_changed(&mut plan, run);
    // Whoever trusts the folder and runs as the agent wants its servers; nobody is asked about each.
    let of_agent = main.and_then(agent_servers::written_servers).map(|(_, source, _)| source);
    for planned in plan.servers.iter_mut().filter(|it| Some(&it.config.source) == of_agent.as_ref()) {
        if planned.standing == Standing::NeedsApproval {
            planned.standing = Standing::Used;
        }
    }
    Ok(plan)
}

/// Reads what `--mcp-config` gives; what is wrong with it as a whole ends the run.
fn read_mcp_config_flag(env: &Env, config: &str) -> Result<(String, Value), UserError> {
    let hint = "Give --mcp-config a JSON object with `mcpServers`, or a file that holds one.";
    let is_json = config.trim_start().starts_with('{');
    let (source, text) = match is_json {
        true => ("--mcp-config".to_owned(), config.to_owned()),
        false => {
            let path = env.cwd.join(loci_core::path::expand_home(&env.home, config));
            let text = read_regular_to_string(&path).map_err(|error| {
                UserError::new(format!("Failed to read MCP configuration: `{}`: {error}", path.display()))
                    .hint(hint)
            })?;
            (config.to_owned(), text)
        }
    };
    let value = parse(&text)
        .map_err(|problem| UserError::new(format!("Not valid JSON in `{source}`: {problem}")).hint(hint))?;
    match value.get("mcpServers") {
        Some(servers) if servers.is_object() => Ok((source, servers.clone())),
        _ => Err(UserError::new(format!("There are no `mcpServers` in `{source}`")).hint(hint)),
    }
}

/// Reads the administrator's file; where it is there, it is all there is, even when nothing in it can be read.
fn managed(mcp: &McpSources, problems: &mut Vec<ConfigProblem>) -> Option<(ServerScope, String, Value)> {
    let path = mcp.managed_dir.join(MANAGED_FILE);
    let servers = match read_regular_to_string(&path) {
        Ok(text) => parse(&text).map(|value| value.get("mcpServers").cloned().unwrap_or_default()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Err(error.to_string()),
    };
    let servers = servers.unwrap_or_else(|problem| {
        let message = format!("it cannot be read ({problem}), so no MCP server is used");
        problems.push(ConfigProblem::new(&path.display().to_string(), "invalid_config", message));
        Value::Null
    });
    let servers = if servers.is_object() { servers } else { Value::Object(serde_json::Map::new()) };
    Some((ServerScope::Managed, path.display().to_string(), servers))
}

/// Reads the project's files, from the working directory up to the root of the repository; the nearest comes first.
fn project(
    env: &Env,
    mcp: &McpSources,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<(ServerScope, String, Value)> {
    if mcp.sources.is_some_and(|sources| !sources.project) {
        return Vec::new();
    }
    let dirs = env.cwd.ancestors().take_while(|dir| dir.starts_with(&mcp.root));
    let mut written = Vec::new();
    for path in dirs.map(|dir| dir.join(PROJECT_FILE)) {
        if !mcp.trust.is_trusted {
            if path.symlink_metadata().is_ok() {
                let message = format!(
                    "its MCP servers are not started: the folder `{}` is not trusted. Look at the file, then run \
                     `loci config trust`",
                    mcp.trust.root.display()
                );
                problems.push(ConfigProblem::new(&path.display().to_string(), "untrusted_folder", message));
            }
            continue;
        }
        let servers = match read_regular_to_string(&path) {
            Ok(text) => parse(&text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => Err(error.to_string()),
        };
        match servers {
            Ok(value) => {
                let servers = value.get("mcpServers").cloned().unwrap_or_default();
                written.push((ServerScope::Project, path.display().to_string(), servers));
            }
            Err(problem) => {
                let message = format!("it cannot be read: {problem}; its servers are not used");
                problems.push(ConfigProblem::new(&path.display().to_string(), "invalid_config", message));
            }
        }
    }
    written
}

/// Reads JSON; the error says where it is wrong.
fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim_start_matches('\u{feff}');
    if let Some(error) = jsonc::parse(text).errors.first() {
        let line = text.get(..error.at).unwrap_or_default().matches('\n').count() + 1;
        return Err(format!("line {line}: {}", error.message));
    }
    serde_json::from_str(text).map_err(|error| error.to_string())
}
