//! Which plugins are installed, and which marketplaces are known.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use loci_core::plugin::{PluginId, PluginProblem, Renamed, renamed};
use loci_stdx::read_regular_to_string;
use serde_json::{Map, Value};

use super::super::definition_files::read_limited;
use super::folder::{PluginFolder, read_plugin};

/// Who a plugin is installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstallScope {
    /// A flag names it.
    Inline,
    /// The user, in one project.
    Local,
    /// Everybody who works on a project.
    Project,
    /// The user.
    User,
    /// The administrator wants it.
    Managed,
}

impl InstallScope {
    /// Returns the word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
        }
    }

    /// Reads the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Local, Self::Project, Self::User, Self::Managed].into_iter().find(|it| it.as_str() == word)
    }
}

/// A plugin that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPlugin {
    /// Which one.
    pub id: PluginId,
    /// For whom.
    pub scope: InstallScope,
    /// The project, where it is for one.
    pub project: Option<PathBuf>,
    /// Where it lies.
    pub path: PathBuf,
    /// Its version.
    pub version: Option<String>,
    /// The commit it was taken from.
    pub commit: Option<String>,
    /// Whether it came because another plugin needed it.
    pub is_dependency: bool,
    /// When it was installed, as written.
    pub installed_at: Option<String>,
    /// When it was last brought up to date, as written.
    pub updated_at: Option<String>,
}

/// A marketplace that is known.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownMarketplace {
    /// What it is called.
    pub name: String,
    /// Where it comes from, as written.
    pub source: Value,
    /// Where its copy lies.
    pub location: PathBuf,
    /// When it was last looked at.
    pub updated: Option<String>,
}

/// What the two files say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PluginState {
    /// Plugins that are installed.
    pub installed: Vec<InstalledPlugin>,
    /// Marketplaces that are known.
    pub marketplaces: Vec<KnownMarketplace>,
}

impl PluginState {
    /// Returns one entry for each plugin that is installed for a project: the nearest.
    pub fn installed_in(&self, project: &Path) -> Vec<InstalledPlugin> {
        let counts = |plugin: &&InstalledPlugin| match plugin.scope {
            InstallScope::Local | InstallScope::Project => plugin.project.as_deref() == Some(project),
            InstallScope::Inline | InstallScope::User | InstallScope::Managed => true,
        };
        let mut all: Vec<InstalledPlugin> = Vec::new();
        for plugin in self.installed.iter().filter(counts) {
            match all.iter_mut().find(|other| other.id == plugin.id) {
                Some(other) if plugin.scope < other.scope => *other = plugin.clone(),
                Some(_) => {}
                None => all.push(plugin.clone()),
            }
        }
        all
    }

    /// Tells whether a plugin is installed for anybody.
    pub fn has(&self, id: &PluginId) -> bool {
        self.installed.iter().any(|plugin| plugin.id == *id)
    }

    /// Finds a marketplace.
    pub fn marketplace(&self, name: &str) -> Option<&KnownMarketplace> {
        self.marketplaces.iter().find(|it| it.name == name)
    }

    /// Reads the files of an installed plugin, with what its marketplace adds.
    pub fn read_installed(&self, installed: &InstalledPlugin) -> Result<PluginFolder, PluginProblem> {
        let entry = || self.marketplace_entry(&installed.id);
        let mut plugin = read_plugin(&installed.path, Some(&installed.id), installed.scope, Some(&entry))?;
        plugin.installed_version.clone_from(&installed.version);
        Ok(plugin)
    }

    /// Returns what a plugin's marketplace says of it.
    pub fn marketplace_entry(&self, id: &PluginId) -> Option<Map<String, Value>> {
        let (manifest, _) = marketplace_manifest(&self.marketplace(&id.marketplace)?.location).ok()?;
        catalogue_entry(&manifest, &id.name).cloned()
    }
}

/// A catalogue that several look at.
type SharedCatalogue = Arc<Map<String, Value>>;

/// The catalogues of marketplaces, each read once and not before somebody asks.
pub(super) struct Catalogues<'a> {
    state: &'a PluginState,
    /// Those that were asked for; none where one cannot be read. Guards nothing else.
    read: Mutex<BTreeMap<String, Option<SharedCatalogue>>>,
}

impl<'a> Catalogues<'a> {
    pub(super) fn new(state: &'a PluginState) -> Self {
        Self { state, read: Mutex::default() }
    }

    /// Tells whether no marketplace is known.
    pub(super) fn has_none(&self) -> bool {
        self.state.marketplaces.is_empty()
    }

    /// Returns what a plugin's marketplace says of it.
    pub(super) fn entry(&self, id: &PluginId) -> Option<Map<String, Value>> {
        let catalogue = self.catalogue(&id.marketplace)?;
        catalogue_entry(&catalogue, &id.name).cloned()
    }

    /// Returns what became of a plugin that its marketplace has no more.
    pub(super) fn renamed(&self, id: &PluginId) -> Option<Renamed> {
        let catalogue = self.catalogue(&id.marketplace)?;
        // A name that was given to another plugin since is that one's.
        let is_listed = catalogue_entry(&catalogue, &id.name).is_some();
        renamed(&catalogue, &id.name).filter(|_| !is_listed)
    }

    fn catalogue(&self, marketplace: &str) -> Option<SharedCatalogue> {
        let known = self.state.marketplace(marketplace)?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let read_now =
            || marketplace_manifest(&known.location).ok().map(|(catalogue, _)| Arc::new(catalogue));
        read.entry(marketplace.to_owned()).or_insert_with(read_now).clone()
    }
}

/// Returns what a catalogue says of a plugin.
fn catalogue_entry<'a>(catalogue: &'a Map<String, Value>, name: &str) -> Option<&'a Map<String, Value>> {
    let mut entries = catalogue.get("plugins")?.as_array()?.iter();
    entries.find(|entry| entry.get("name").and_then(Value::as_str) == Some(name))?.as_object()
}

/// Reads the catalogue of a marketplace: a directory that has one, or the file itself. Returns it with the directory that
/// its paths start at.
pub fn marketplace_manifest(location: &Path) -> Result<(Map<String, Value>, PathBuf), String> {
    let (file, root) = match location.is_dir() {
        true => (location.join(".claude-plugin").join("marketplace.json"), location.to_owned()),
        false => {
            let dir = location.parent().unwrap_or(Path::new("/"));
            let root = if dir.ends_with(".claude-plugin") { dir.parent().unwrap_or(dir) } else { dir };
            (location.to_owned(), root.to_owned())
        }
    };
    let text = read_limited(&file).map_err(|why| format!("`{}` {why}", file.display()))?;
    let value: Value = serde_json::from_str(text.trim_start_matches('\u{feff}'))
        .map_err(|error| format!("`{}` is no JSON: {error}", file.display()))?;
    match value {
        Value::Object(manifest) => Ok((manifest, root)),
        _ => Err(format!("`{}` is no object", file.display())),
    }
}

/// Reads both files; one that is not there says nothing.
pub fn read_plugin_state(dir: &Path) -> (PluginState, Vec<PluginProblem>) {
    let mut state = PluginState::default();
    let mut problems = Vec::new();
    if let Some(value) = read_json(&dir.join("installed_plugins.json"), &mut problems) {
        let plugins = value.get("plugins").and_then(Value::as_object);
        for (text, entries) in plugins.into_iter().flatten() {
            let Some(id) = PluginId::parse(text) else {
                let shown: String = text.escape_debug().take(80).collect();
                let message = "`installed_plugins.json` has it, and it is no `plugin@marketplace`";
                problems.push(PluginProblem::new(shown, "invalid_id", message));
                continue;
            };
            let entries =
                entries.as_array().map_or_else(|| vec![entries], |entries| entries.iter().collect());
            state.installed.extend(entries.into_iter().filter_map(|entry| installed(&id, entry)));
        }
    }
    if let Some(value) = read_json(&dir.join("known_marketplaces.json"), &mut problems) {
        let entries = value.as_object().into_iter().flatten();
        state.marketplaces = entries.filter_map(|(name, entry)| marketplace(name, entry)).collect();
    }
    (state, problems)
}

fn read_json(path: &Path, problems: &mut Vec<PluginProblem>) -> Option<Value> {
    let text = match read_regular_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            let message = format!("it cannot be read ({error}), so what it lists is not used");
            problems.push(PluginProblem::new(path.display(), "unreadable", message));
            return None;
        }
    };
    match serde_json::from_str(&text) {
        Ok(value) => Some(value),
        Err(error) => {
            let message = format!("it is no JSON ({error}), so what it lists is not used");
            problems.push(PluginProblem::new(path.display(), "unreadable", message));
            None
        }
    }
}

fn installed(id: &PluginId, entry: &Value) -> Option<InstalledPlugin> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let path = PathBuf::from(text("installPath")?);
    Some(InstalledPlugin {
        id: id.clone(),
        scope: text("scope").and_then(|word| InstallScope::parse(&word)).unwrap_or(InstallScope::User),
        project: text("projectPath").map(PathBuf::from),
        path,
        version: text("version"),
        commit: text("gitCommitSha"),
        installed_at: text("installedAt"),
        updated_at: text("lastUpdated"),
        is_dependency: entry.get("installedAsDependency").and_then(Value::as_bool) == Some(true),
    })
}

fn marketplace(name: &str, entry: &Value) -> Option<KnownMarketplace> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(KnownMarketplace {
        name: name.to_owned(),
        source: entry.get("source").cloned().unwrap_or_default(),
        location: PathBuf::from(text("installLocation")?),
        updated: text("lastUpdated"),
    })
}
