//! `loci config`: look at settings, change them, and see why they are what they are.
//!
//! Each verb takes what was read and returns the text for standard output; this file chooses the verb and
//! writes. Changes go to one file, the user's unless another is named, and change nothing else in it.

mod add;
mod explain;
mod get;
mod instructions;
mod list;
mod remove;
mod set;
mod trust;
mod unset;

use std::io::Write;
use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_settings::{Key, Scope, json_schema};
use loci_stdx::{Env, WriteOptions};
use loci_storage::config::{
    LoadedSettings, MANAGED_DIR, SettingsPlaces, SettingsSources, exclude_local_settings, load_settings,
};
use loci_storage::layout::ConfigHome;

use serde_json::Value;

pub(crate) use set::to_user_error;

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the value in force.
    Get(get::GetArgs),
    /// Set a value; of a list, all of it.
    Set(set::SetArgs),
    /// Add entries to a list.
    Add(add::AddArgs),
    /// Remove entries from a list.
    Remove(remove::RemoveArgs),
    /// Remove a value.
    Unset(unset::UnsetArgs),
    /// List everything that is set, and where.
    List(list::ListArgs),
    /// Show what every file says about a key, which one wins and why.
    Explain(explain::ExplainArgs),
    /// Print the JSON Schema of settings files.
    Schema,
    /// Trust this folder, so that its settings count in full.
    Trust(trust::TrustArgs),
}

/// Which file a verb is about.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// Your settings for all projects.
    #[arg(long)]
    user: bool,
    /// The settings shared by all who work on this project.
    #[arg(long)]
    project: bool,
    /// Your settings for this project.
    #[arg(long)]
    local: bool,
}

impl Target {
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Self { user: true, .. } => Some(Scope::User),
            Self { project: true, .. } => Some(Scope::Project),
            Self { local: true, .. } => Some(Scope::Local),
            _ => None,
        }
    }
}

/// What every verb looks at.
pub(crate) struct SettingsContext {
    pub(crate) env: Env,
    pub(crate) home: ConfigHome,
    pub(crate) places: SettingsPlaces,
    pub(crate) loaded: LoadedSettings,
}

impl SettingsContext {
    pub(crate) fn new(env: &Env) -> Self {
        let home = ConfigHome::from_env(env);
        let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), SettingsSources::ALL);
        let loaded = load_settings(&places, None);
        Self { env: env.clone(), home, places, loaded }
    }

    /// Returns the file of a scope and how it is created.
    pub(crate) fn file(&self, scope: Scope) -> (PathBuf, WriteOptions) {
        match scope {
            Scope::Project => (self.places.project.clone(), WriteOptions::project()),
            Scope::Local => (self.places.local.clone(), WriteOptions::project()),
            Scope::User | Scope::CommandLine | Scope::Managed => {
                (self.places.user.clone(), WriteOptions::private())
            }
        }
    }

    /// Has git ignore the user's own settings of a project when they are first written; returns the file of the
    /// rule.
    pub(crate) fn keep_private(&self, scope: Scope, path: &Path) -> Result<Option<PathBuf>, UserError> {
        match scope {
            Scope::Local => {
                exclude_local_settings(&self.env, &self.home, path).map_err(|error| to_user_error(&error))
            }
            Scope::User | Scope::Project | Scope::CommandLine | Scope::Managed => Ok(None),
        }
    }
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &ConfigArgs) -> Result<u8, UserError> {
    let ctx = SettingsContext::new(env);
    let text = match &args.verb {
        Verb::Get(args) => get::run(&ctx, args)?,
        Verb::Set(args) => set::run(&ctx, args)?,
        Verb::Add(args) => add::run(&ctx, args)?,
        Verb::Remove(args) => remove::run(&ctx, args)?,
        Verb::Unset(args) => unset::run(&ctx, args)?,
        Verb::List(args) => list::run(&ctx, args),
        Verb::Explain(args) => explain::run(&ctx, args)?,
        Verb::Schema => pretty(&json_schema()),
        Verb::Trust(args) => trust::run(&ctx, args)?,
    };
    write(&text)?;
    Ok(0)
}

/// Writes to standard output; a reader that went away is no failure.
pub(crate) fn write(text: &str) -> Result<(), UserError> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(UserError::new(format!("Standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Returns a value as it may be shown: what looks like a secret in `env` is hidden.
fn without_secrets(key: &Key, value: &Value) -> Value {
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "HEADERS"].iter().any(|word| name.contains(word))
    };
    let mut value = value.clone();
    if let ("env", Value::Object(variables)) = (key.path, &mut value) {
        for (_, value) in variables.iter_mut().filter(|(name, _)| is_secret(name)) {
            *value = Value::from("<hidden>");
        }
    }
    value
}

/// A key as named by the user: one of the table, and what follows it inside a map, as in `env.PATH`.
struct Named {
    key: &'static Key,
    inner: Option<String>,
}

impl Named {
    fn parse(path: &str) -> Result<Self, UserError> {
        if let Some(key) = Key::find(path) {
            return Ok(Self { key, inner: None });
        }
        for (dot, _) in path.match_indices('.') {
            if let Some(key) = Key::find(&path[..dot])
                && key.kind.has_names()
            {
                return Ok(Self { key, inner: Some(path[dot + 1..].to_owned()) });
            }
        }
        Err(unknown(path))
    }

    /// Returns the way to the value in a file.
    fn path(&self) -> Vec<&str> {
        self.key.path.split('.').chain(self.inner.as_deref()).collect()
    }
}

fn unknown(path: &str) -> UserError {
    let user_error = UserError::new(format!("No such setting: `{path}`"));
    match Key::suggestion(path) {
        Some(key) => user_error.hint(format!("Did you mean `{key}`?")),
        None => user_error.hint("`loci config schema` lists all of them."),
    }
}
