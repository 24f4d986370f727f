//! Settings as people look at them and change them: keys by name, one file at a time, with what comes of it.
//!
//! The verbs of `loci config`, the command `/config` and the panel of the terminal all go through here.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use loci_settings::edit::{EditError, set, unset};
use loci_settings::{Key, Kind, Layer, Origin, Role, Scope, Scopes, Severity};
use loci_stdx::{Env, WriteOptions};
use loci_storage::config::{
    GivenSettings, LoadedSettings, MANAGED_DIR, SettingsEditError, SettingsPlaces, SettingsSources,
    edit_settings, edit_state, exclude_local_settings, load_settings,
};
use loci_storage::layout::ConfigHome;
use serde_json::Value;

use crate::options::RunOptions;
use crate::plugins::{PluginQuery, RunPlugins};
use crate::settings::flags::FlagSettings;
use crate::settings::reload::in_force;
use crate::settings::{read_settings_flag, unreadable_settings};
use crate::user_error::UserError;

/// The settings files of a directory, and what they say.
pub struct SettingsContext {
    /// The ambient world.
    pub env: Env,
    /// Where the user's things lie.
    pub home: ConfigHome,
    /// Where the files are.
    pub places: SettingsPlaces,
    /// What they say.
    pub loaded: LoadedSettings,
    /// What else counts.
    inputs: SettingsInputs,
}

/// What counts for a run beside all the files of its directory: which of them it reads, and what it was given.
#[derive(Debug, Clone)]
pub struct SettingsInputs {
    sources: SettingsSources,
    given: Option<GivenSettings>,
    flags: FlagSettings,
    /// Whether the files stay as they are.
    is_demo: bool,
}

impl Default for SettingsInputs {
    fn default() -> Self {
        Self { sources: SettingsSources::ALL, given: None, flags: FlagSettings::default(), is_demo: false }
    }
}

impl SettingsInputs {
    /// Takes what a run was asked to be; what it was given was read when it began, so that it can be read.
    pub fn from_options(env: &Env, options: &RunOptions) -> Self {
        Self {
            sources: options.setting_sources,
            given: read_settings_flag(env, options).ok().flatten(),
            flags: options.flag_settings.clone(),
            is_demo: options.is_demo,
        }
    }
}

impl SettingsContext {
    /// Reads the files.
    pub fn new(env: &Env) -> Self {
        Self::with_inputs(env, &SettingsInputs::default())
    }

    /// Reads the files that count for a run, and what it was given.
    pub fn with_inputs(env: &Env, inputs: &SettingsInputs) -> Self {
        let home = ConfigHome::from_env(env);
        let places = SettingsPlaces::new(env, &home, Path::new(MANAGED_DIR), inputs.sources);
        let loaded = load_settings(&places, inputs.flags.over(inputs.given.clone()).as_ref());
        Self { env: env.clone(), home, places, loaded, inputs: inputs.clone() }
    }

    /// Tells whether this is the demo, which leaves files as they are.
    pub fn is_demo(&self) -> bool {
        self.inputs.is_demo
    }

    /// Returns what of the files cannot be read, a line each; where there is much, `loci doctor` has the rest.
    pub fn problems(&self) -> Vec<String> {
        unreadable_settings(&self.loaded)
    }

    /// Returns what a run was given beside the files.
    pub(crate) fn inputs(&self) -> &SettingsInputs {
        &self.inputs
    }

    /// Refuses to write in the demo.
    pub(crate) fn refuse_in_demo(&self) -> Result<(), UserError> {
        match self.inputs.is_demo {
            true => Err(UserError::new("The demo leaves your settings as they are")),
            false => Ok(()),
        }
    }

    /// Returns what the files say, as sessions take it: commands that must not run are not in it.
    pub fn in_force(&self) -> Value {
        in_force(&self.loaded.merged, &self.plugins())
    }

    /// Reads the plugins that a session here would have.
    pub fn plugins(&self) -> RunPlugins {
        self.plugins_with(&[])
    }

    /// The same, with plugins whose directories a flag names.
    pub fn plugins_with(&self, given: &[PathBuf]) -> RunPlugins {
        let query = PluginQuery {
            given,
            without_servers: &[],
            project: self.places.tree_root(),
            merged: &self.loaded.merged,
            is_trusted: self.loaded.trust.is_trusted,
            sources: self.inputs.sources,
            prefetch: None,
        };
        RunPlugins::load(&self.env, &self.home, query)
    }

    /// Returns what each source says that says anything, by the name that clients know it by, secrets hidden, lowest
    /// precedence first.
    pub fn layers(&self) -> Vec<(&'static str, Value)> {
        let layer = |scope| (source_name(scope), self.loaded.merged.of_scope(scope, without_secrets));
        let layers = Scope::ALL.into_iter().map(layer);
        layers.filter(|(_, settings)| settings.as_object().is_some_and(|fields| !fields.is_empty())).collect()
    }

    /// Changes keys of a source that clients may change, by its name: a null takes a key away.
    pub fn update_source(
        &self,
        source: &str,
        settings: &serde_json::Map<String, Value>,
    ) -> Result<(), UserError> {
        let may_be = [Scope::User, Scope::Local];
        match may_be.into_iter().find(|scope| source_name(*scope) == source) {
            Some(scope) => self.update(settings, scope),
            None => Err(UserError::new(format!("The settings `{source}` cannot be changed by a client"))
                .hint("Name userSettings or localSettings.")),
        }
    }

    /// Changes keys in the file of a scope: a null takes a key away, an object that is no setting of its own names keys
    /// inside it.
    fn update(&self, settings: &serde_json::Map<String, Value>, scope: Scope) -> Result<(), UserError> {
        self.update_under("", settings, scope)
    }

    fn update_under(
        &self,
        prefix: &str,
        settings: &serde_json::Map<String, Value>,
        scope: Scope,
    ) -> Result<(), UserError> {
        for (key, value) in settings {
            let path = format!("{prefix}{key}");
            match (NamedKey::parse(&path), value) {
                (Ok(named), Value::Null) => _ = self.unset(&named.path(), scope)?,
                (Ok(named), value) => _ = self.set(&named, value, scope)?,
                (Err(_), Value::Object(inner)) => self.update_under(&format!("{path}."), inner, scope)?,
                (Err(unknown), _) => return Err(unknown),
            }
        }
        Ok(())
    }

    /// Returns the file of a scope and how it is created.
    pub fn file(&self, scope: Scope) -> (PathBuf, WriteOptions) {
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
    pub fn keep_private(&self, scope: Scope, path: &Path) -> Result<Option<PathBuf>, UserError> {
        match scope {
            Scope::Local => {
                exclude_local_settings(&self.env, &self.home, path).map_err(|error| to_user_error(&error))
            }
            Scope::User | Scope::Project | Scope::CommandLine | Scope::Managed => Ok(None),
        }
    }

    /// Sets a key in the file of a scope; of a list, all of it. Nothing else in the file changes.
    pub fn set(&self, named: &NamedKey<'_>, value: &Value, scope: Scope) -> Result<SettingChange, UserError> {
        self.refuse_in_demo()?;
        if named.key.scopes == Scopes::Global {
            return self.set_in_state_file(named, value);
        }
        check_value(named, scope, value)?;
        let (path, options) = self.file(scope);
        let excluded = self.keep_private(scope, &path)?;
        let gone = RefCell::new(Vec::new());
        edit_settings(&self.home, &path, &options, |text| {
            *gone.borrow_mut() = entries_lost(text, named, scope, value);
            set(text, &named.path(), value)
        })
        .map_err(|error| to_user_error(&error))?;
        Ok(SettingChange {
            file: self.places.display_path(&path),
            gone: gone.into_inner(),
            excluded: excluded.map(|file| self.places.display_path(&file)),
            no_effect: self.why_no_effect(named, scope),
        })
    }

    /// Sets a key of the global state file.
    fn set_in_state_file(&self, named: &NamedKey<'_>, value: &Value) -> Result<SettingChange, UserError> {
        check_kind(named, Scope::User, value)?;
        edit_state(&self.home, |text| set(text, &named.path(), value))
            .map_err(|error| UserError::from_error(&error))?;
        Ok(SettingChange {
            file: self.places.display_path(&self.places.state_file),
            gone: Vec::new(),
            excluded: None,
            no_effect: self.why_no_effect(named, Scope::User),
        })
    }

    /// Removes a key from the file of a scope; false where it is not there.
    pub fn unset(&self, path: &[&str], scope: Scope) -> Result<bool, UserError> {
        self.refuse_in_demo()?;
        let key = path.first().and_then(|name| Key::find(name));
        if key.is_some_and(|key| key.scopes == Scopes::Global) {
            return edit_state(&self.home, |text| unset(text, path))
                .map_err(|error| UserError::from_error(&error));
        }
        let (file, options) = self.file(scope);
        if !file.exists() {
            return Ok(false);
        }
        edit_settings(&self.home, &file, &options, |text| unset(text, path))
            .map_err(|error| to_user_error(&error))
    }

    /// Says why the value of a file is not the one in force, as the files are now.
    pub fn why_no_effect(&self, named: &NamedKey<'_>, scope: Scope) -> Option<String> {
        let after = Self::with_inputs(&self.env, &self.inputs).loaded.merged;
        let parts = after.get(named.key.path).map(|setting| setting.parts.as_slice()).unwrap_or_default();
        let own = parts.iter().rev().find(|part| part.origin.scope == scope).map(|part| part.role);
        match own {
            Some(Role::Overridden) => {
                let winner = parts.iter().rev().find(|part| part.role == Role::Wins);
                let name = winner.map(|part| part.origin.name.as_ref()).unwrap_or_default();
                Some(format!("It has no effect here: {name} sets it too and wins"))
            }
            Some(Role::Refused(why)) => Some(format!("It has no effect here: {why}")),
            Some(Role::Wins | Role::Joins) | None if !named.key.is_used => {
                Some("It is kept, but this version does not act upon it yet".to_owned())
            }
            _ => None,
        }
    }
}

/// Returns the name that clients know a scope by.
fn source_name(scope: Scope) -> &'static str {
    match scope {
        Scope::User => "userSettings",
        Scope::Project => "projectSettings",
        Scope::Local => "localSettings",
        Scope::CommandLine => "flagSettings",
        Scope::Managed => "policySettings",
    }
}

/// What became of a setting that was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// The file, for people.
    pub file: String,
    /// Entries that were there and are not any more.
    pub gone: Vec<Value>,
    /// The file of the rule by which git ignores the settings file from now on.
    pub excluded: Option<String>,
    /// Why the new value is not the one in force, where it is not.
    pub no_effect: Option<String>,
}

/// A key as named by the user: one of the table, and what follows it inside a map, as in `env.PATH`.
#[derive(Debug, Clone, Copy)]
pub struct NamedKey<'a> {
    /// The key of the table.
    pub key: &'static Key,
    /// The name inside its map.
    pub inner: Option<&'a str>,
}

impl<'a> NamedKey<'a> {
    /// Finds a key; the error names one that is spelt alike.
    pub fn parse(path: &'a str) -> Result<Self, UserError> {
        if let Some(key) = Key::find(path) {
            return Ok(Self { key, inner: None });
        }
        for (dot, _) in path.match_indices('.') {
            if let Some(key) = Key::find(&path[..dot])
                && key.kind.has_names()
            {
                return Ok(Self { key, inner: Some(&path[dot + 1..]) });
            }
        }
        Err(unknown_key(path))
    }

    /// Returns the way to the value in a file.
    pub fn path(&self) -> Vec<&'a str> {
        self.key.path.split('.').chain(self.inner).collect()
    }

    /// Reads a value that was typed: JSON where it is some that fits, else text as it stands.
    pub fn value_of(&self, text: &str) -> Value {
        let parsed = serde_json::from_str::<Value>(text).ok();
        let kind = if self.inner.is_some() { Kind::Any } else { self.key.kind };
        match (kind, parsed) {
            (Kind::Text | Kind::OneOf(_), Some(Value::String(inner))) => Value::String(inner),
            (Kind::Text | Kind::OneOf(_), _) => Value::from(text),
            (Kind::Texts | Kind::Restrictions, Some(list @ Value::Array(_))) => list,
            (Kind::Texts | Kind::Restrictions, _) => Value::from(vec![text]),
            (Kind::TextOrTexts, Some(list @ Value::Array(_))) => list,
            (Kind::TextOrTexts, _) => Value::from(text),
            (_, Some(value)) if self.inner.is_none() || self.key.kind != Kind::TextMap => value,
            _ => Value::from(text),
        }
    }
}

/// Says that there is no such key.
pub fn unknown_key(path: &str) -> UserError {
    let user_error = UserError::new(format!("No such setting: `{path}`"));
    match Key::suggestion(path) {
        Some(key) => user_error.hint(format!("Did you mean `{key}`?")),
        None => user_error.hint("`loci config schema` lists all of them."),
    }
}

/// Refuses a value that the file of a scope could not use.
pub fn check_value(named: &NamedKey<'_>, scope: Scope, value: &Value) -> Result<(), UserError> {
    let key = named.key;
    if !key.scopes.allows(scope) {
        return Err(UserError::new(format!("`{}` cannot be set in {scope} settings", key.path))
            .hint(format!("It belongs to {}.", key.scopes.describe())));
    }
    check_kind(named, scope, value)?;
    check_theme(named, value)
}

/// Refuses a theme that there is none of; whether a file of one's own is there is seen when it is read.
fn check_theme(named: &NamedKey<'_>, value: &Value) -> Result<(), UserError> {
    let Some(name) = value.as_str().filter(|_| named.key.path == "theme") else { return Ok(()) };
    if THEMES.contains(&name) || name.starts_with("custom:") {
        return Ok(());
    }
    let known = THEMES.join(", ");
    Err(UserError::new(format!("`theme`: there is no theme `{name}`"))
        .hint(format!("There are {known}, and custom:NAME for one of your own.")))
}

/// The themes that a setting can name beside one's own.
pub const THEMES: [&str; 9] = [
    "auto",
    "dark",
    "light",
    "dark-daltonized",
    "light-daltonized",
    "dark-ansi",
    "light-ansi",
    "dark-high-contrast",
    "light-high-contrast",
];

/// Refuses a value of another kind than the key's.
fn check_kind(named: &NamedKey<'_>, scope: Scope, value: &Value) -> Result<(), UserError> {
    let key = named.key;
    let text = set("{}", &named.path(), value).map_err(|error| UserError::new(error.to_string()))?;
    let (_, diagnostics) = Layer::parse(&text, Origin::new(scope, "this value"));
    match diagnostics.iter().find(|diagnostic| diagnostic.severity > Severity::Note) {
        // Nothing is ignored that is not written.
        Some(problem) => Err(UserError::new(format!(
            "`{}`: {}",
            key.path,
            problem.message.strip_suffix("; ignored").unwrap_or(&problem.message)
        ))
        .hint(format!("Give it {}.", key.kind.expected()))),
        None => Ok(()),
    }
}

/// Returns a value as it may be shown: what looks like a secret in `env` is hidden.
pub fn without_secrets(key: &Key, value: &Value) -> Value {
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

/// Says why a settings file was not changed.
pub fn to_user_error(error: &SettingsEditError) -> UserError {
    let user_error = UserError::from_error(error);
    match error {
        SettingsEditError::Edit { source: EditError::Broken { .. }, .. } => {
            user_error.hint("Fix the file first; it was left as it is.")
        }
        _ => user_error,
    }
}

/// Returns the entries that a file has under a key and will not have any more.
fn entries_lost(text: &str, named: &NamedKey<'_>, scope: Scope, value: &Value) -> Vec<Value> {
    if named.inner.is_some() {
        return Vec::new();
    }
    let (layer, _) = Layer::parse(text, Origin::new(scope, "before"));
    let before = layer.get(named.key.path).map(|found| &found.value);
    match (before, value) {
        (Some(Value::Array(before)), Value::Array(after)) => {
            before.iter().filter(|entry| !after.contains(entry)).cloned().collect()
        }
        (Some(Value::Array(before)), _) => before.clone(),
        (Some(Value::Object(before)), Value::Object(after)) => {
            let names = before.keys().filter(|name| !after.contains_key(*name));
            names.map(|name| Value::from(name.as_str())).collect()
        }
        _ => Vec::new(),
    }
}
