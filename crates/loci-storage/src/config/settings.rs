//! Settings files: where they lie, reading them, the trust they need, and noticing when they change.
//!
//! Lowest precedence first: what older homes have in the global state file; the user's `settings.json` in the config home;
//! the project's `.claude/settings.json` in the start directory; the user's `.claude/settings.local.json` there and at the
//! root of the repository; what `--settings` gave; the administrator's `managed-settings.json` and then
//! `managed-settings.d/*.json` by name, or what the program that they name printed (`policyHelper`). What they mean is
//! decided in `loci_settings`.
//!
//! A file that cannot be read is named and costs itself alone. Nothing is ever executed, not even git, and a
//! FIFO or device in a file's place does not make us wait.

mod edit;
mod exclude;
mod places;
mod read;
mod trust;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use trust::StateFile;
use watch::ReadText;

use loci_core::skill::SkillUsageTable;
use loci_settings::{
    Diagnostic, Key, Layer, MergedSettings, Origin, Scope, Scopes, Settings, Severity, Trust, UnknownKey,
    merge,
};

pub use edit::{SettingsEditError, edit_settings};
pub use exclude::exclude_local_settings;
pub use places::{MANAGED_DIR, SettingsPlaces, SettingsSources};
pub use read::FILE_LIMIT;
pub use trust::{McpState, TrustState};
pub use watch::{SettingsChange, SettingsWatch};

/// All settings of a directory, and what there is to say about them.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// What is in force.
    pub merged: MergedSettings,
    /// The files that were looked for, in the order of their precedence.
    pub files: Vec<SettingsFile>,
    /// What is wrong with them, and what does not count.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the user trusts the folder.
    pub trust: TrustState,
    /// What the global state file says of MCP servers.
    pub mcp: McpState,
    /// How often it says that skills were used.
    pub skill_usage: SkillUsageTable,
    /// Keys that are none of ours, with their files.
    pub unknown: Vec<UnknownSetting>,
}

/// A key that is none of ours, and its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownSetting {
    /// The key.
    pub key: UnknownKey,
    /// Whose file it is, and what it is called for people.
    pub origin: Origin,
    /// The file.
    pub file: PathBuf,
}

/// A place where settings may lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsFile {
    /// Whose they are.
    pub scope: Scope,
    /// The file.
    pub path: PathBuf,
    /// Whether it is there.
    pub exists: bool,
}

/// Settings given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenSettings {
    /// The text.
    pub text: String,
    /// What to call it in messages.
    pub name: String,
}

impl UnknownSetting {
    /// Tells whether whoever set it may rely on it to hold the run.
    pub fn may_restrict(&self) -> bool {
        self.key.may_restrict(self.origin.scope)
    }
}

impl fmt::Display for UnknownSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({}:{})", self.key.path, self.origin.name, self.key.line)?;
        self.key.suggestion.map_or(Ok(()), |meant| write!(f, ", did you mean `{meant}`?"))
    }
}

impl LoadedSettings {
    /// Returns the settings this version acts upon.
    pub fn settings(&self) -> Settings {
        Settings::from(&self.merged)
    }

    /// Returns what a person must hear of at start.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity > Severity::Note)
    }
}

/// Finds, reads and joins all settings.
pub fn load_settings(places: &SettingsPlaces, given: Option<&GivenSettings>) -> LoadedSettings {
    load_texts(places, given, None)
}

/// Joins all settings: those on disk, or those of `texts` in the place of them.
fn load_texts(
    places: &SettingsPlaces,
    given: Option<&GivenSettings>,
    texts: Option<&BTreeMap<PathBuf, ReadText>>,
) -> LoadedSettings {
    let mut loading = Loading { places, texts, layers: Vec::new(), out: LoadedSettings::default() };
    let (own, managed): (Vec<_>, Vec<_>) =
        settings_files(places).into_iter().partition(|(scope, _)| *scope != Scope::Managed);
    for (scope, path) in own {
        loading.file(scope, &path);
    }
    if let Some(given) = given {
        loading.take(
            &given.text,
            Origin::new(Scope::CommandLine, given.name.as_str()),
            Path::new("--settings"),
        );
    }
    for (scope, path) in managed {
        loading.file(scope, &path);
    }
    if let Some(policy) = &places.policy {
        let origin = Origin::new(Scope::Managed, policy.name.as_str());
        loading.take(&policy.text, origin, Path::new(&policy.name));
    }
    loading.finish()
}

/// Returns the places of all files that are read, lowest precedence first.
fn settings_files(places: &SettingsPlaces) -> Vec<(Scope, PathBuf)> {
    let wants = places.sources;
    let mut files = Vec::new();
    if wants.user {
        files.push((Scope::User, places.user.clone()));
    }
    if wants.project {
        files.push((Scope::Project, places.project.clone()));
    }
    if wants.local {
        files.extend(places.locals().map(|path| (Scope::Local, path.to_owned())));
    }
    if places.policy.is_none() {
        files.extend(places.managed_files().into_iter().map(|path| (Scope::Managed, path)));
    }
    files
}

struct Loading<'a> {
    places: &'a SettingsPlaces,
    texts: Option<&'a BTreeMap<PathBuf, ReadText>>,
    layers: Vec<Layer>,
    out: LoadedSettings,
}

impl Loading<'_> {
    fn file(&mut self, scope: Scope, path: &Path) {
        // The home directory's own `.claude` is the user's; it is no project's.
        if scope != Scope::User && self.out.files.iter().any(|file| file.path == path) {
            return;
        }
        let origin = Origin::new(scope, self.places.display_path(path));
        let outcome = match self.texts {
            Some(texts) => texts.get(path).cloned().unwrap_or(Ok(None)),
            None => read::read(path),
        };
        let exists = !matches!(outcome, Ok(None));
        self.out.files.push(SettingsFile { scope, path: path.to_owned(), exists });
        match outcome {
            Ok(None) => {}
            Ok(Some(file)) => {
                if let Some((problem, hint)) = file.problem {
                    self.out.diagnostics.push(Diagnostic::unread(&origin, problem, hint));
                }
                self.take(&file.text, origin, path);
            }
            Err((problem, hint)) => {
                self.out.diagnostics.push(Diagnostic::unread(&origin, problem, hint));
            }
        }
    }

    fn take(&mut self, text: &str, origin: Origin, path: &Path) {
        let (mut layer, diagnostics) = Layer::parse(text, origin);
        if layer.origin.scope == Scope::Local && asks_whose_file(&layer) && self.places.is_supplied(path) {
            layer.origin = layer.origin.from_repository();
        }
        self.out.diagnostics.extend(diagnostics);
        let unknown = layer.unknown.iter().cloned();
        self.out.unknown.extend(unknown.map(|key| UnknownSetting {
            key,
            origin: layer.origin.clone(),
            file: path.to_owned(),
        }));
        self.layers.push(layer);
    }

    fn finish(mut self) -> LoadedSettings {
        let wants = self.places.sources;
        let needs_trust = (wants.project || wants.local)
            && self.layers.iter().any(|layer| matches!(layer.origin.scope, Scope::Project | Scope::Local));
        let StateFile { trust, mcp, skill_usage, layer, problem } = trust::read_state(self.places);
        self.out.diagnostics.extend(problem.filter(|_| needs_trust));
        self.layers.splice(..0, layer.filter(|_| wants.user));
        self.out.merged = merge(&self.layers, trust.is_trusted);
        let hint = format!(
            "look at it, then run `loci config trust`, which sets projects[\"{}\"].hasTrustDialogAccepted in {}",
            trust.root.display(),
            self.places.display_path(&self.places.state_file)
        );
        self.out.diagnostics.extend(self.out.merged.diagnostics(&hint));
        self.out.trust = trust;
        self.out.mcp = mcp;
        self.out.skill_usage = skill_usage;
        self.out
    }
}

/// Tells whether it matters for any of its values that the repository may have brought the file.
fn asks_whose_file(layer: &Layer) -> bool {
    let matters = |key: &Key| {
        key.scopes == Scopes::NotShared || matches!(key.trust, Trust::NeverShared | Trust::Environment)
    };
    layer.values.iter().any(|value| matters(value.key))
}
