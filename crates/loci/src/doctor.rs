//! `loci doctor`: what this installation is made of, and what is wrong with it.
//!
//! Nothing is changed and nothing is asked of the network. Secrets are named, never shown. The exit code is 1
//! when something is wrong.

use std::fs;
use std::path::Path;

use loci_app::COMPATIBLE_VERSION;
use loci_app::UserError;
use loci_settings::{Diagnostic, Origin, Scope, Severity};
use loci_stdx::{Env, counted};
use loci_storage::config::{
    LoadedSettings, MANAGED_DIR, SettingsPlaces, SettingsSources, StoredLoginError, load_settings,
    stored_login,
};
use loci_storage::doctor::glance_at_store;
use loci_storage::history::{BlobStore, BlobUsage};
use loci_storage::layout::ConfigHome;
use serde_json::{Value, json};

use crate::config::{pretty, write};

/// Variables that hold credentials.
const CREDENTIALS: &[&str] = &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"];
/// Programs that are used when they are there.
const PROGRAMS: &[&str] = &["git", "bwrap", "bash"];

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Examines the installation and returns the exit code.
pub(crate) fn run(env: &Env, args: &DoctorArgs) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
    let loaded = load_settings(&places, None);
    let env = loci_app::settings::with_settings_vars(env, &loaded.settings());
    let report = Report::new(&env, &home, &places, loaded);
    write(&if args.json { pretty(&report.to_json()) } else { report.to_text() })?;
    Ok(u8::from(report.is_wrong()))
}

struct Report {
    version: String,
    config_home: String,
    files: Vec<(String, String, bool)>,
    diagnostics: Vec<Diagnostic>,
    trust: (String, bool),
    credentials: Vec<String>,
    mcp: Vec<String>,
    n_projects: usize,
    n_sessions: usize,
    /// How many sessions were read, since to read all may take minutes.
    n_read: usize,
    /// What there is to find in them, or why nobody could look.
    session_findings: Result<usize, String>,
    kept: BlobUsage,
    most_kept: u64,
    programs: Vec<(String, bool)>,
    unused: Vec<String>,
    unknown: Vec<(String, String)>,
}

impl Report {
    fn new(env: &Env, home: &ConfigHome, places: &SettingsPlaces, loaded: LoadedSettings) -> Self {
        let (n_projects, n_sessions) = sessions(home);
        let glance = glance_at_store(home, env);
        let store = BlobStore::new(home);
        let (credentials, problem) = credentials(env, home, places, &loaded);
        let is_unused = |path: &&str| loaded.merged.get(path).is_some_and(|setting| !setting.key.is_used);
        Self {
            version: format!(
                "loci {} (compatible with Claude Code {COMPATIBLE_VERSION})",
                env!("CARGO_PKG_VERSION")
            ),
            config_home: places.shown(home.root()),
            files: loaded
                .files
                .iter()
                .map(|file| (file.scope.to_string(), places.shown(&file.path), file.exists))
                .collect(),
            trust: (places.shown(&loaded.trust.root), loaded.trust.is_trusted),
            credentials,
            mcp: mcp(env, home, places),
            n_projects,
            n_sessions,
            n_read: glance.as_ref().map_or(0, |check_up| check_up.n_read),
            session_findings: glance
                .map(|check_up| check_up.n_open())
                .map_err(|error| UserError::from_error(&error).message().to_owned()),
            // What cannot be counted is not worth failing for.
            kept: store.usage().unwrap_or_default(),
            most_kept: store.limit(),
            programs: PROGRAMS.iter().map(|name| ((*name).to_owned(), is_on_path(env, name))).collect(),
            unused: loaded.merged.iter().map(|s| s.key.path).filter(is_unused).map(str::to_owned).collect(),
            unknown: loaded.unknown.iter().map(|(key, path)| (key.clone(), places.shown(path))).collect(),
            diagnostics: loaded.diagnostics.into_iter().chain(problem).collect(),
        }
    }

    fn problems(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Note)
    }

    fn is_wrong(&self) -> bool {
        self.problems().next().is_some() || self.session_findings != Ok(0)
    }

    fn session_health(&self) -> String {
        let is_all = self.n_read >= self.n_sessions;
        match &self.session_findings {
            Ok(0) if is_all => "nothing wrong with them".to_owned(),
            Ok(0) => format!(
                "nothing wrong with the {} newest, which were read; `loci sessions doctor` reads all",
                self.n_read
            ),
            Ok(n) => {
                let findings = counted(*n as u64, "finding", "findings");
                let read = if is_all { String::new() } else { format!(" in the {} newest", self.n_read) };
                format!(
                    "{findings}{read}: `loci sessions doctor` reads all and names them, `--repair` mends them"
                )
            }
            Err(why) => format!("which cannot be looked at: {why}"),
        }
    }

    fn to_text(&self) -> String {
        let mut lines =
            vec![self.version.clone(), format!("Config home: {}", self.config_home), String::new()];
        lines.push("Settings files, lowest first:".to_owned());
        for (scope, path, exists) in &self.files {
            let state = if *exists { "" } else { "  (none)" };
            lines.push(format!("  {scope:<8} {path}{state}"));
        }
        section(&mut lines, "Problems:", self.problems().map(ToString::to_string));
        let notes = self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Note);
        section(&mut lines, "Notes:", notes.map(ToString::to_string));
        section(&mut lines, "Kept, not acted upon yet:", self.unused.iter().cloned());
        let (root, is_trusted) = &self.trust;
        lines.push(String::new());
        lines.push(format!("Trust: {root} is {}", if *is_trusted { "trusted" } else { "not trusted" }));
        lines.push(format!("Credentials: {}", listed(&self.credentials)));
        lines.push(format!("MCP servers: {}", listed(&self.mcp)));
        lines.push(format!(
            "Sessions: {} in {}, {}",
            self.n_sessions,
            counted(self.n_projects as u64, "project", "projects"),
            self.session_health()
        ));
        lines.push(format!(
            "File history: {} kept contents, {} MB of at most {} MB",
            self.kept.n_blobs,
            self.kept.n_bytes.div_ceil(1_000_000),
            self.most_kept / 1_000_000
        ));
        let programs =
            self.programs.iter().map(|(name, found)| format!("{name} {}", if *found { "yes" } else { "no" }));
        lines.push(format!("Programs: {}", programs.collect::<Vec<_>>().join(", ")));
        lines.push(String::new());
        let n_more = usize::from(self.session_findings != Ok(0));
        lines.push(match self.problems().count() + n_more {
            0 => "Nothing is wrong".to_owned(),
            n => counted(n as u64, "problem", "problems"),
        });
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        let said = |diagnostic: &Diagnostic| {
            json!({
                "file": diagnostic.origin.name.as_ref(),
                "line": diagnostic.line,
                "key": diagnostic.key,
                "severity": format!("{:?}", diagnostic.severity).to_lowercase(),
                "message": diagnostic.message,
                "hint": diagnostic.hint,
            })
        };
        let file = |(scope, path, exists): &(String, String, bool)| json!({"scope": scope, "path": path, "exists": exists});
        json!({
            "version": self.version,
            "configHome": self.config_home,
            "settingsFiles": self.files.iter().map(file).collect::<Vec<_>>(),
            "diagnostics": self.diagnostics.iter().map(said).collect::<Vec<_>>(),
            "notActedUpon": self.unused,
            "unknownKeys": self.unknown.iter().map(|(key, path)| json!({"key": key, "file": path})).collect::<Vec<_>>(),
            "trust": {"root": self.trust.0, "isTrusted": self.trust.1},
            "credentials": self.credentials,
            "mcpServers": self.mcp,
            "sessions": self.n_sessions,
            "projects": self.n_projects,
            "sessionsRead": self.n_read,
            "sessionFindings": self.session_findings.as_ref().ok(),
            "fileHistory": {"contents": self.kept.n_blobs, "bytes": self.kept.n_bytes, "limit": self.most_kept},
            "programs": self.programs.iter().map(|(name, found)| (name.clone(), json!(found))).collect::<serde_json::Map<_, _>>(),
            "isWrong": self.is_wrong(),
        })
    }
}

fn section(lines: &mut Vec<String>, title: &str, rows: impl Iterator<Item = String>) {
    let rows: Vec<String> = rows.map(|row| format!("  {row}")).collect();
    if !rows.is_empty() {
        lines.extend([String::new(), title.to_owned()]);
        lines.extend(rows);
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none found".to_owned() } else { names.join(", ") }
}

/// Names where credentials were found, and what is wrong with the file; their values are nobody's business.
fn credentials(
    env: &Env,
    home: &ConfigHome,
    places: &SettingsPlaces,
    loaded: &LoadedSettings,
) -> (Vec<String>, Option<Diagnostic>) {
    let variables = CREDENTIALS.iter().filter(|name| env.vars.non_empty(name).is_some());
    let mut found: Vec<String> = variables.map(|name| (*name).to_owned()).collect();
    found.extend(loaded.settings().api_key_helper.map(|_| "apiKeyHelper".to_owned()));
    let file = places.shown(&home.credentials_file());
    let problem = match stored_login(home) {
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
    (found, problem)
}

/// Names configured MCP servers and where they are configured.
fn mcp(env: &Env, home: &ConfigHome, places: &SettingsPlaces) -> Vec<String> {
    let names = |path: &Path| -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let servers = value.get("mcpServers").and_then(Value::as_object);
        servers
            .into_iter()
            .flat_map(|map| map.keys())
            .map(|name| format!("{name} ({})", places.shown(path)))
            .collect()
    };
    [names(home.state_file()), names(&env.cwd.join(".mcp.json"))].concat()
}

/// Counts projects and sessions without opening any.
fn sessions(home: &ConfigHome) -> (usize, usize) {
    let Ok(projects) = fs::read_dir(home.projects_dir()) else { return (0, 0) };
    let dirs: Vec<_> =
        projects.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    let is_session = |path: &Path| path.extension().is_some_and(|extension| extension == "jsonl");
    let files = dirs.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().filter_map(Result::ok);
    (dirs.len(), files.filter(|entry| is_session(&entry.path())).count())
}

fn is_on_path(env: &Env, name: &str) -> bool {
    let path = env.vars.get("PATH").unwrap_or_default();
    std::env::split_paths(path).any(|dir| dir.join(name).is_file())
}
