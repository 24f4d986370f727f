//! Settings files: where they lie, reading them, the trust they need, and noticing when they change.
//!
//! Lowest precedence first: the user's `settings.json` in the config home; the project's
//! `.claude/settings.json` in the start directory; the user's `.claude/settings.local.json` there and at the
//! root of the repository; what `--settings` gave; the administrator's `managed-settings.json` and then
//! `managed-settings.d/*.json` by name. What they mean is decided in `loci_settings`.
//!
//! A file that cannot be read is named and costs itself alone. Nothing is ever executed, not even git, and a
//! FIFO or device in a file's place does not make us wait.

mod edit;
mod exclude;
mod places;
mod read;
mod trust;
mod watch;

use std::path::{Path, PathBuf};

use loci_settings::{
    Diagnostic, Key, Layer, MergedSettings, Origin, Scope, Scopes, Settings, Severity, Trust, merge,
};

pub use edit::{SettingsEditError, edit_settings};
pub use exclude::exclude_local_settings;
pub use places::{MANAGED_DIR, SettingsPlaces, SettingsSources};
pub use read::FILE_LIMIT;
pub use trust::TrustState;
pub use watch::SettingsWatch;

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
    /// Keys that are none of ours, with their files.
    pub unknown: Vec<(String, PathBuf)>,
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
    let mut loading = Loading { places, layers: Vec::new(), out: LoadedSettings::default() };
    let wants = places.sources;
    if wants.user {
        loading.file(Scope::User, &places.user);
    }
    if wants.project {
        loading.file(Scope::Project, &places.project);
    }
    if wants.local {
        for path in places.locals() {
            loading.file(Scope::Local, path);
        }
    }
    if let Some(given) = given {
        loading.take(
            &given.text,
            Origin::new(Scope::CommandLine, given.name.as_str()),
            Path::new("--settings"),
        );
    }
    for path in places.managed_files() {
        loading.file(Scope::Managed, &path);
    }
    loading.finish()
}

struct Loading<'a> {
    places: &'a SettingsPlaces,
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
        let outcome = read::read(path);
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
        self.out.unknown.extend(layer.unknown.iter().map(|key| (key.path.clone(), path.to_owned())));
        self.layers.push(layer);
    }

    fn finish(mut self) -> LoadedSettings {
        let wants = self.places.sources;
        let needs_trust = (wants.project || wants.local)
            && self.layers.iter().any(|layer| matches!(layer.origin.scope, Scope::Project | Scope::Local));
        let (trust, problem) = trust::trust_of(self.places);
        self.out.diagnostics.extend(problem.filter(|_| needs_trust));
        self.out.merged = merge(&self.layers, trust.is_trusted);
        let hint = format!(
            "look at it, then run `loci config trust`, which sets projects[\"{}\"].hasTrustDialogAccepted in {}",
            trust.root.display(),
            self.places.display_path(&self.places.state_file)
        );
        self.out.diagnostics.extend(self.out.merged.diagnostics(&hint));
        self.out.trust = trust;
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
