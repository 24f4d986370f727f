//! What the doctor looks at, one function a check, in the order of the report.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::hooks::{Handler, HookEntry, SettingsHooks};
use loci_core::permission::Rulebook;
use loci_settings::{Diagnostic, Origin, Scope, Severity};
use loci_stdx::{Env, counted, read_regular_to_string};
use loci_storage::config::{LoadedSettings, SettingsPlaces, StoredLoginError, stored_login};
use loci_storage::doctor::quick_check_store;
use loci_storage::history::BlobStore;
use loci_storage::layout::ConfigHome;
use serde_json::{Map, Value, json};

use super::{Block, BuildNames, Check, work_checks};
use crate::models::providers::{ProviderTable, models_problems, unknown_provider_keys};
use crate::permissions::rules::rulebook_from_settings;
use crate::plugins::RunPlugins;
use crate::settings::ineffective_settings::ineffective_settings;
use crate::settings::ineffective_vars::ineffective_vars;
use crate::{COMPATIBLE_VERSION, UserError};

/// Variables that hold credentials.
const CREDENTIALS: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// Programs that are used when they are there.
const PROGRAMS: &[&str] = &["git", "bwrap", "bash"];

/// What is examined.
pub(super) struct Installation {
    /// The environment with the variables of the settings.
    pub(super) env: Env,
    pub(super) home: ConfigHome,
    pub(super) places: SettingsPlaces,
    pub(super) loaded: LoadedSettings,
    pub(super) plugins: RunPlugins,
}

/// Makes every check, and tells how many of how many are made.
pub(super) fn all(it: &Installation, names: &BuildNames, progress: &dyn Fn(u64, u64)) -> Vec<Check> {
    let (credentials, exposed) = credentials(it);
    let steps: Vec<Box<dyn FnOnce() -> Check + '_>> = vec![
        Box::new(version),
        Box::new(|| build(names)),
        Box::new(|| config_home(it)),
        Box::new(|| settings_files(it)),
        Box::new(|| diagnostics(it, exposed)),
        Box::new(|| rules(it)),
        Box::new(|| hooks(it)),
        Box::new(|| providers(it)),
        Box::new(|| unused_settings(it)),
        Box::new(|| unknown_keys(it)),
        Box::new(|| unused_vars(it)),
        Box::new(|| trust(it)),
        Box::new(|| credentials),
        Box::new(|| mcp_servers(it)),
        Box::new(|| sessions(it)),
        Box::new(|| work_checks::agents(it)),
        Box::new(|| work_checks::tasks(it)),
        Box::new(|| work_checks::plans(it)),
        Box::new(|| work_checks::worktrees(it)),
        Box::new(|| file_history(it)),
        Box::new(|| programs(it)),
        Box::new(|| sandbox(it)),
    ];
    let n_steps = steps.len() as u64;
    let done = (1..).zip(steps).map(|(n_done, step)| {
        let check = step();
        progress(n_done, n_steps);
        check
    });
    done.collect()
}

/// Says what sandbox this machine can give, by trying; a problem where settings ask for more.
fn sandbox(it: &Installation) -> Check {
    let all = it.loaded.settings();
    let settings = &all.sandbox;
    let found = crate::permissions::sandbox::check_level(settings);
    // What is wrong with hosts is told by sessions that have a sandbox.
    let hosts = if settings.enabled { crate::permissions::sandbox::host_problems(&all) } else { Vec::new() };
    let is_wrong = settings.enabled
        && (found.level == loci_sandbox::Level::None
            || (settings.fail_if_unavailable && found.level < loci_sandbox::Level::Full));
    let state = if settings.enabled { "on" } else { "off" };
    let mut lines = vec![format!("Sandbox: {} (settings: {state})", found.level)];
    lines.extend(found.problem().map(|problem| format!("Sandbox, missing: {problem}")));
    lines.extend(found.open().iter().map(|it| format!("Sandbox, open: {it}")));
    lines.extend(hosts.iter().map(|it| format!("Sandbox, hosts: {it}")));
    let notes =
        if settings.enabled { crate::permissions::sandbox::settings_notes(settings) } else { Vec::new() };
    lines.extend(notes);
    let json = json!({
        "level": found.level.to_string(),
        "enabled": settings.enabled,
        "problem": found.problem(),
        "open": found.open(),
        "hosts": hosts,
    });
    let text = lines.into_iter().map(Block::Line).collect();
    Check { text, json: vec![("sandbox", json)], n_problems: usize::from(is_wrong) + hosts.len() }
}

fn version() -> Check {
    let version =
        format!("loci {} (compatible with Claude Code {COMPATIBLE_VERSION})", env!("CARGO_PKG_VERSION"));
    Check::fact(version.clone(), "version", version)
}

fn build(names: &BuildNames) -> Check {
    Check::fact(format!("Build: {}", names.line), "build", names.json.clone())
}

fn config_home(it: &Installation) -> Check {
    let home = it.places.display_path(it.home.root());
    Check::fact(format!("Config home: {home}"), "configHome", home)
}

fn settings_files(it: &Installation) -> Check {
    let files = it.loaded.files.iter();
    let files = files.map(|file| (file.scope.to_string(), it.places.display_path(&file.path), file.exists));
    let (rows, values) = files
        .map(|(scope, path, exists)| {
            let state = if exists { "" } else { "  (none)" };
            let row = format!("{scope:<8} {path}{state}");
            (row, json!({"scope": scope, "path": path, "exists": exists}))
        })
        .unzip::<_, _, Vec<String>, Vec<Value>>();
    Check::section("Settings files, lowest first:", rows, "settingsFiles", values.into())
}

/// What is wrong with settings files, and with the file of credentials.
fn diagnostics(it: &Installation, more: Option<Diagnostic>) -> Check {
    let all: Vec<&Diagnostic> = it.loaded.diagnostics.iter().chain(&more).collect();
    let (notes, problems): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
        all.iter().partition(|diagnostic| diagnostic.severity <= Severity::Note);
    let rows = |list: &[&Diagnostic]| list.iter().map(ToString::to_string).collect();
    let value = |diagnostic: &&Diagnostic| {
        json!({
            "file": diagnostic.origin.name.as_ref(),
            "line": diagnostic.line,
            "key": diagnostic.key,
            "severity": format!("{:?}", diagnostic.severity).to_lowercase(),
            "message": diagnostic.message,
            "hint": diagnostic.hint,
        })
    };
    Check {
        text: vec![Block::Section("Problems:", rows(&problems)), Block::Section("Notes:", rows(&notes))],
        json: vec![("diagnostics", all.iter().map(value).collect())],
        n_problems: problems.len(),
    }
}

/// What is wrong with the providers and models that settings name.
fn providers(it: &Installation) -> Check {
    let settings = it.loaded.settings();
    let table =
        ProviderTable::new(&settings.providers, &it.env.vars).limited_by(settings.provider_limits.as_ref());
    let unusable: Vec<String> = table.entries().filter_map(|entry| entry.problem.clone()).collect();
    let problems = unusable.into_iter().chain(models_problems(&settings.models));
    let problems = problems.chain(unknown_provider_keys(&settings.providers, &settings.models));
    let rows: Vec<String> = problems.map(|it| it.trim_start_matches("Settings: ").to_owned()).collect();
    let value = rows.clone().into();
    Check { n_problems: rows.len(), ..Check::section("Model providers:", rows, "providerProblems", value) }
}

/// What is wrong with permission rules, and with what stands beside them: what a session says of them at its start.
fn rules(it: &Installation) -> Check {
    let settings = it.loaded.settings();
    let said = rulebook_from_settings(&it.env, &settings.permissions, None, &mut Rulebook::default());
    let rows: Vec<String> = said.iter().map(|it| it.trim_start_matches("Settings: ").to_owned()).collect();
    let value = rows.clone().into();
    Check { n_problems: rows.len(), ..Check::section("Permissions:", rows, "permissionProblems", value) }
}

/// What is wrong with hooks: entries that cannot be read, and scripts that are not there.
fn hooks(it: &Installation) -> Check {
    let hooks = SettingsHooks::parse(&it.loaded.merged, &it.env.cwd);
    let missing = hooks.config.entries().iter().filter_map(|entry| {
        let script = missing_script(entry, &it.env)?;
        Some(format!("{}: there is no `{}`", entry.source, script.display()))
    });
    let rows: Vec<String> = hooks.problems.iter().map(ToString::to_string).chain(missing).collect();
    let value = rows.clone().into();
    Check { n_problems: rows.len(), ..Check::section("Hooks:", rows, "hookProblems", value) }
}

/// Returns the script that a command names by its path, if it does not exist.
fn missing_script(entry: &HookEntry, env: &Env) -> Option<PathBuf> {
    let Handler::Command { command, args, .. } = &entry.handler else { return None };
    let first = match args {
        Some(_) => command.as_str(),
        None => command.split_whitespace().next()?,
    };
    let first = first.trim_matches(['"', '\'']);
    let named = first.replace("${CLAUDE_PROJECT_DIR}", &env.cwd.display().to_string());
    let named = named.replace("$CLAUDE_PROJECT_DIR", &env.cwd.display().to_string());
    let is_path = named.contains('/') && !named.contains(['$', '`', '(', '*', '=', ';', '|', '&', '<', '>']);
    let path = env.cwd.join(loci_core::path::expand_home(&env.home, &named));
    (is_path && !path.exists()).then_some(path)
}

fn unused_settings(it: &Installation) -> Check {
    let unused = it.loaded.merged.iter().filter(|setting| !setting.key.is_used);
    let paths: Vec<String> = unused.map(|setting| setting.key.path.to_owned()).collect();
    let told = ineffective_settings(&it.loaded.merged);
    let is_told = |path: &String| told.iter().any(|line| line.contains(&format!("`{path}`")));
    let others = paths.iter().filter(|path| !is_told(path)).cloned();
    let lines = told.iter().map(|line| line.trim_start_matches("Settings: ").to_owned());
    let rows: Vec<String> = lines.chain(others).collect();
    Check::section("Kept, not acted upon:", rows, "notActedUpon", paths.into())
}

/// Variables that are set in vain; no problem of the installation, and no news to whoever reads what a session says.
fn unused_vars(it: &Installation) -> Check {
    let rows = ineffective_vars(&it.env.vars);
    let value = rows.clone().into();
    Check::section("Variables without an effect:", rows, "ineffectiveVariables", value)
}

/// Keys that nobody knows, for programs: most are another version's, and no news to people.
fn unknown_keys(it: &Installation) -> Check {
    let keys = it.loaded.unknown.iter();
    let keys = keys
        .map(|unknown| json!({"key": unknown.key.path, "file": it.places.display_path(&unknown.file)}))
        .collect();
    Check { text: Vec::new(), json: vec![("unknownKeys", keys)], n_problems: 0 }
}

fn trust(it: &Installation) -> Check {
    let (root, is_trusted) = (it.places.display_path(&it.loaded.trust.root), it.loaded.trust.is_trusted);
    let line = format!("Trust: {root} is {}", if is_trusted { "trusted" } else { "not trusted" });
    Check::fact(line, "trust", json!({"root": root, "isTrusted": is_trusted}))
}

/// Names where credentials were found, and what is wrong with the file; their values are nobody's business.
fn credentials(it: &Installation) -> (Check, Option<Diagnostic>) {
    let variables = CREDENTIALS.iter().filter(|name| it.env.vars.non_empty(name).is_some());
    let mut found: Vec<String> = variables.map(|name| (*name).to_owned()).collect();
    found.extend(it.loaded.settings().api_key_helper.map(|_| "apiKeyHelper".to_owned()));
    let file = it.places.display_path(&it.home.credentials_file());
    let problem = match stored_login(&it.home) {
        Ok(login) => {
            found.extend(login.map(|_| file));
            None
        }
        Err(error) => {
            let origin = Origin::new(Scope::User, file);
            let hint = "let only yourself read and write it (`chmod 600`), or remove it";
            let message = match error {
                StoredLoginError::Read { source, .. } => format!("cannot be read: {source}"),
                StoredLoginError::Exposed { .. } => "others may read it, so it is not used".to_owned(),
                StoredLoginError::Parse { .. } => "not valid, so it is not used".to_owned(),
            };
            Some(Diagnostic::warning(&origin, message, hint))
        }
    };
    (Check::fact(format!("Credentials: {}", listed(&found)), "credentials", found), problem)
}

/// Names configured MCP servers and where they are configured.
fn mcp_servers(it: &Installation) -> Check {
    let names = |path: &Path| -> Vec<String> {
        let text = read_regular_to_string(path).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let servers = value.get("mcpServers").and_then(Value::as_object);
        servers
            .into_iter()
            .flat_map(|map| map.keys())
            .map(|name| format!("{name} ({})", it.places.display_path(path)))
            .collect()
    };
    let servers = [names(it.home.state_file()), names(&it.env.cwd.join(".mcp.json"))].concat();
    Check::fact(format!("MCP servers: {}", listed(&servers)), "mcpServers", servers)
}

fn sessions(it: &Installation) -> Check {
    let (n_projects, n_sessions) = count_sessions(&it.home);
    let glance = quick_check_store(&it.home, &it.env);
    // To read all may take minutes.
    let n_read = glance.as_ref().map_or(0, |check_up| check_up.n_read);
    let n_findings = glance
        .map(|check_up| check_up.n_open())
        .map_err(|error| UserError::from_error(&error).message().to_owned());
    let projects = counted(n_projects as u64, "project", "projects");
    let health = session_health(&n_findings, n_read, n_sessions);
    Check {
        text: vec![Block::Line(format!("Sessions: {n_sessions} in {projects}, {health}"))],
        json: vec![
            ("sessions", n_sessions.into()),
            ("projects", n_projects.into()),
            ("sessionsRead", n_read.into()),
            ("sessionFindings", json!(n_findings.as_ref().ok())),
        ],
        n_problems: usize::from(n_findings != Ok(0)),
    }
}

fn session_health(n_findings: &Result<usize, String>, n_read: usize, n_sessions: usize) -> String {
    let is_all = n_read >= n_sessions;
    match n_findings {
        Ok(0) if is_all => "nothing wrong with them".to_owned(),
        Ok(0) => format!(
            "nothing wrong with the {n_read} newest, which were read; `loci sessions doctor` reads all"
        ),
        Ok(n) => {
            let findings = counted(*n as u64, "finding", "findings");
            let read = if is_all { String::new() } else { format!(" in the {n_read} newest") };
            format!(
                "{findings}{read}: `loci sessions doctor` reads all and names them, `--repair` mends them"
            )
        }
        Err(why) => format!("which cannot be looked at: {why}"),
    }
}

/// Counts projects and sessions without opening any.
fn count_sessions(home: &ConfigHome) -> (usize, usize) {
    let Ok(projects) = fs::read_dir(home.projects_dir()) else { return (0, 0) };
    let dirs: Vec<_> =
        projects.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    let is_session = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let files = dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().filter_map(Result::ok);
    (dirs.len(), files.filter(|entry| is_session(&entry.path())).count())
}

fn file_history(it: &Installation) -> Check {
    let store = BlobStore::new(&it.home);
    // What cannot be counted is not worth failing for.
    let (kept, limit) = (store.usage().unwrap_or_default(), store.limit());
    let line = format!(
        "File history: {} kept contents, {} MB of at most {} MB",
        kept.n_blobs,
        kept.n_bytes.div_ceil(1_000_000),
        limit / 1_000_000
    );
    let value = json!({"contents": kept.n_blobs, "bytes": kept.n_bytes, "limit": limit});
    Check::fact(line, "fileHistory", value)
}

fn programs(it: &Installation) -> Check {
    let found: Vec<(&str, bool)> = PROGRAMS.iter().map(|name| (*name, is_on_path(&it.env, name))).collect();
    let words =
        found.iter().map(|(name, is_there)| format!("{name} {}", if *is_there { "yes" } else { "no" }));
    let line = format!("Programs: {}", words.collect::<Vec<_>>().join(", "));
    let value: Map<String, Value> =
        found.iter().map(|(name, is_there)| ((*name).to_owned(), json!(is_there))).collect();
    Check::fact(line, "programs", value)
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none found".to_owned() } else { names.join(", ") }
}

fn is_on_path(env: &Env, name: &str) -> bool {
    let path = env.vars.get("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|dir| dir.join(name).is_file())
}
