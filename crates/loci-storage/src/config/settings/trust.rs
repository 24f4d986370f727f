//! Whether the user trusts a folder, found out without believing the folder.
//!
//! Trust is kept in the global state file under `projects[<root>].hasTrustDialogAccepted`. The root is that of
//! the main checkout. A `.git` file that points elsewhere is followed only when the place it points at points
//! back, so that no folder can borrow another's trust. Outside a repository the start directory and those above
//! it count. The home directory is never trusted as a whole, and a repository inside a trusted folder needs its
//! own trust.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loci_core::git_index::{GitIndexExtension, SHA1_LEN, SHA256_LEN, read_git_index};
use loci_core::skill::SkillUsageTable;
use loci_stdx::{read_regular, read_regular_to_string};

use loci_settings::{Diagnostic, Layer, Origin, Scope};
use serde::Deserialize;
use serde_json::Value;

use super::places::SettingsPlaces;

/// Whether the user trusts a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustState {
    /// The folder that is or would be trusted.
    pub root: PathBuf,
    /// Whether it is.
    pub is_trusted: bool,
    /// Whether it is trusted by itself, and not because a folder around it is.
    pub is_exact: bool,
    /// Whether trust in it can be kept; trust in the home directory cannot.
    pub can_be_kept: bool,
}

/// What the global state file says of MCP servers, read in the same go.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpState {
    /// The user's servers, everywhere: names and entries.
    pub user: Value,
    /// The user's servers for this project.
    pub local: Value,
    /// Servers of the project that are approved.
    pub approved: Vec<String>,
    /// Servers of the project that are rejected.
    pub rejected: Vec<String>,
    /// Servers that are switched off in this project.
    pub disabled: Vec<String>,
    /// Whether anything of it could not be read.
    pub is_unreadable: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TrustFile {
    #[serde(default)]
    projects: BTreeMap<String, Entry>,
    #[serde(default)]
    mcp_servers: Value,
    #[serde(default)]
    skill_usage: Value,
    // Settings of older homes: they count where no settings file has them.
    theme: Option<Value>,
    verbose: Option<Value>,
    respect_gitignore: Option<Value>,
    show_turn_duration: Option<Value>,
    terminal_progress_bar_enabled: Option<Value>,
    preferred_notif_channel: Option<Value>,
    // Keys that belong here.
    external_editor_context: Option<Value>,
    permission_explainer_enabled: Option<Value>,
    show_expanded_todos: Option<Value>,
}

impl TrustFile {
    /// Takes what it says that is a setting, by name.
    fn take_settings(&mut self) -> Vec<(&'static str, Value)> {
        let all = [
            ("theme", self.theme.take()),
            ("verbose", self.verbose.take()),
            ("respectGitignore", self.respect_gitignore.take()),
            ("showTurnDuration", self.show_turn_duration.take()),
            ("terminalProgressBarEnabled", self.terminal_progress_bar_enabled.take()),
            ("preferredNotifChannel", self.preferred_notif_channel.take()),
            ("externalEditorContext", self.external_editor_context.take()),
            ("permissionExplainerEnabled", self.permission_explainer_enabled.take()),
            ("showExpandedTodos", self.show_expanded_todos.take()),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
    }
}

/// What the global state file says, as far as settings are concerned.
#[derive(Default)]
pub(super) struct StateFile {
    pub(super) trust: TrustState,
    pub(super) mcp: McpState,
    /// How often skills were used.
    pub(super) skill_usage: SkillUsageTable,
    /// Its settings, which every settings file wins over.
    pub(super) layer: Option<Layer>,
    /// What is wrong with it.
    pub(super) problem: Option<Diagnostic>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default, rename = "hasTrustDialogAccepted")]
    is_trusted: Option<Value>,
    #[serde(default, rename = "mcpServers")]
    mcp_servers: Value,
    #[serde(default, rename = "enabledMcpjsonServers")]
    approved: Value,
    #[serde(default, rename = "disabledMcpjsonServers")]
    rejected: Value,
    #[serde(default, rename = "disabledMcpServers")]
    disabled: Value,
}

/// Returns what a state file says of the MCP servers of a working directory. The entry of the directory itself comes
/// before that of the repository around it.
fn mcp_state(state: &mut TrustFile, places: &SettingsPlaces) -> McpState {
    let mut out = McpState { user: state.mcp_servers.take(), ..McpState::default() };
    let mut dirs = vec![places.cwd.as_path()];
    dirs.extend(places.checkout.iter().flat_map(|it| [it.tree.as_path(), it.main.as_path()]));
    dirs.dedup();
    let mut local = serde_json::Map::new();
    for dir in dirs {
        let Some(entry) = dir.to_str().and_then(|dir| state.projects.remove(dir)) else { continue };
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        for (name, server) in entry.mcp_servers.as_object().into_iter().flatten() {
            local.entry(name.clone()).or_insert_with(|| server.clone());
        }
        out.approved.extend(texts(&entry.approved));
        out.rejected.extend(texts(&entry.rejected));
        out.disabled.extend(texts(&entry.disabled));
    }
    if !local.is_empty() {
        out.local = Value::Object(local);
    }
    out
}

/// Reads the state file: whether the working directory is trusted, and says when that cannot be told.
pub(super) fn read_state(places: &SettingsPlaces) -> StateFile {
    let root = places.checkout.as_ref().map_or(places.cwd.as_path(), |checkout| &checkout.main);
    let can_be_kept = root != places.home_dir;
    let trust = TrustState { root: root.to_owned(), is_trusted: false, is_exact: false, can_be_kept };
    let mut state = StateFile { trust, ..StateFile::default() };
    let Ok(text) = read_regular_to_string(&places.state_file) else { return state };
    match serde_json::from_str::<TrustFile>(text.trim_start_matches('\u{feff}')) {
        Ok(mut known) => {
            let folders = candidates(places);
            state.trust.is_trusted = folders.iter().any(|dir| is_trusted(&known, dir));
            let is_here = |dir: &&&Path| places.checkout.is_some() || **dir == places.cwd;
            state.trust.is_exact = folders.iter().filter(is_here).any(|dir| is_trusted(&known, dir));
            state.layer = settings_layer(known.take_settings(), &text, places);
            state.mcp = mcp_state(&mut known, places);
            state.skill_usage = SkillUsageTable::from_value(&known.skill_usage);
        }
        Err(error) => {
            let origin = Origin::new(Scope::User, places.display_path(&places.state_file));
            let message = format!("not valid, so no folder counts as trusted: {error}");
            state.mcp.is_unreadable = true;
            let hint = "restore it from `backups` in the config home";
            state.problem = Some(Diagnostic::unread(&origin, message, hint));
        }
    }
    state
}

/// Makes a layer of the settings in a state file. What is of another kind than it should be is passed over: programs write
/// this file, not people.
fn settings_layer(settings: Vec<(&str, Value)>, text: &str, places: &SettingsPlaces) -> Option<Layer> {
    let settings: serde_json::Map<String, Value> =
        settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    if settings.is_empty() {
        return None;
    }
    let origin = Origin::state_file(places.display_path(&places.state_file));
    let (mut layer, _) = Layer::parse(&Value::Object(settings).to_string(), origin);
    for value in &mut layer.values {
        // The file is indented by two blanks; where it is not, its first line is named.
        let at = text.find(&format!("\n  \"{}\":", value.key.path));
        value.line = at.map_or(1, |at| text[..=at].matches('\n').count() + 1);
    }
    Some(layer)
}

/// Returns the folders whose trust covers the working directory.
fn candidates(places: &SettingsPlaces) -> Vec<&Path> {
    let dirs: Vec<&Path> = match &places.checkout {
        Some(checkout) => vec![&checkout.main, &checkout.tree, &places.cwd],
        None => places.cwd.ancestors().collect(),
    };
    let is_fit = |dir: &&Path| **dir != places.home_dir && dir.parent().is_some();
    dirs.into_iter().filter(is_fit).collect()
}

fn is_trusted(state: &TrustFile, dir: &Path) -> bool {
    let entry = dir.to_str().and_then(|dir| state.projects.get(dir));
    entry.is_some_and(|entry| entry.is_trusted == Some(Value::Bool(true)))
}

/// A working tree of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkout {
    /// The root of the working tree.
    pub(super) tree: PathBuf,
    /// The root of the main checkout, which may be the same.
    pub(super) main: PathBuf,
    /// The git directory of the working tree.
    git_dir: PathBuf,
}

/// Finds the working tree that `cwd` lies in.
pub(super) fn checkout_of(cwd: &Path) -> Option<Checkout> {
    cwd.ancestors().find_map(|dir| {
        let git = dir.join(".git");
        let metadata = fs::symlink_metadata(&git).ok()?;
        let own = |git_dir: PathBuf| Checkout { tree: dir.to_owned(), main: dir.to_owned(), git_dir };
        if metadata.is_file() {
            return Some(linked(dir, &git).unwrap_or_else(|| own(git)));
        }
        git.join("HEAD").is_file().then(|| own(git))
    })
}

/// Follows a `.git` file to the main checkout, if that knows this worktree.
fn linked(dir: &Path, git: &Path) -> Option<Checkout> {
    let text = read_regular_to_string(git).ok()?;
    let admin = fs::canonicalize(dir.join(text.trim_end().strip_prefix("gitdir:")?.trim())).ok()?;
    let line = |name: &str| Some(read_regular_to_string(admin.join(name)).ok()?.trim_end().to_owned());
    let points_back = fs::canonicalize(admin.join(line("gitdir")?)).ok()? == fs::canonicalize(git).ok()?;
    let common = fs::canonicalize(admin.join(line("commondir")?)).ok()?;
    let is_inside = admin.parent()? == common.join("worktrees") && common.file_name()? == ".git";
    let main = common.parent()?.to_owned();
    (points_back && is_inside).then(|| Checkout { tree: dir.to_owned(), main, git_dir: admin })
}

impl Checkout {
    /// Tells whether git tracks a file, by its index; an index we cannot read may hold anything.
    pub(super) fn tracks(&self, path: &Path) -> bool {
        let (root, index) = match path.strip_prefix(&self.tree) {
            Ok(_) => (&self.tree, self.git_dir.join("index")),
            Err(_) => (&self.main, self.main.join(".git").join("index")),
        };
        let Some(name) = path.strip_prefix(root).ok().and_then(Path::to_str) else { return true };
        match read_regular(&index) {
            Ok(bytes) => index_has(&bytes, name),
            Err(error) => error.kind() != std::io::ErrorKind::NotFound,
        }
    }
}

/// Tells whether an index has a name, whichever hash the repository uses. One that cannot be read may have any.
fn index_has(index: &[u8], name: &str) -> bool {
    [SHA1_LEN, SHA256_LEN].into_iter().find_map(|id_len| names_file(index, id_len, name)).unwrap_or(true)
}

/// Reads an index with ids of one length; one that does not name every file itself (split, sparse) may have any.
fn names_file(index: &[u8], id_len: usize, name: &str) -> Option<bool> {
    let mut has_name = false;
    let extensions = read_git_index(index, id_len, |entry| {
        has_name |= entry.path == name.as_bytes();
        Some(())
    })?;
    Some(has_name || extensions.iter().any(GitIndexExtension::is_required))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn git(dir: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(args).current_dir(dir).env_clear().env("HOME", dir);
        command.env("PATH", std::env::var("PATH").unwrap()).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn git_index_tells_tracked_files() {
        const NAME: &str = ".claude/settings.local.json";
        for (hash, version, added, expected) in [
            ("sha1", "2", &["a", NAME][..], true),
            ("sha1", "2", &["a", "b"], false),
            ("sha1", "2", &["sub/.claude/settings.local.json"], false),
            ("sha1", "3", &["a", NAME], true),
            ("sha1", "4", &["a", NAME], true),
            ("sha1", "4", &["a", "b"], false),
            ("sha256", "2", &["a", NAME], true),
            ("sha256", "2", &["a", "b"], false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let object_format = format!("--object-format={hash}");
            git(dir.path(), &["init", "-q", &object_format]);
            for name in added {
                fs::create_dir_all(dir.path().join(name).parent().unwrap()).unwrap();
                fs::write(dir.path().join(name), name).unwrap();
            }
            git(dir.path(), &[&["add", "--"], added].concat());
            git(dir.path(), &["update-index", "--index-version", version]);
            let read = || fs::read(dir.path().join(".git/index")).unwrap();
            assert_eq!(index_has(&read(), NAME), expected, "{hash}, version {version}, {added:?}");
            git(dir.path(), &["update-index", "--split-index"]);
            fs::write(dir.path().join("more"), "").unwrap();
            git(dir.path(), &["add", "more"]);
            assert!(index_has(&read(), NAME), "{hash}, version {version}: the other half may have it");
        }
        assert!(index_has(b"junk", NAME));
    }
}
