//! Installing, updating and uninstalling plugins: copies of plugins, and what they may run said before they do.
//!
//! Everything that is needed is fetched and looked at before the first thing is put in its place (`needed`).

mod needed;
mod packages;
mod releases;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use loci_core::plugin::{PluginId, Renamed, renamed};
use loci_settings::Scope;
use loci_storage::config::{
    GitSource, InstallScope, InstalledPlugin, PluginFolder, PluginState, RenamedPlugin, approve_plugins,
    cache_place, clone_repository, copy_plugin, edit_plugin_file, git_commit, mark_orphaned,
    marketplace_manifest, move_plugin, read_plugin, read_plugin_state,
};
use serde_json::{Map, Value, json};

use needed::{fetch_needed, needed_and_off};
use packages::fetch_packages;
use releases::{Listed, VersionRange, find_release, fits_all, installed_ranges, listed};

use super::configure::{parse_given_options, store_options};
use super::details::{describe, one_line};
use super::marketplace::{COMMIT_FILE, add_named_marketplace, refresh_marketplace, tempfile_dir};
use super::prune::{Confirm, prune_orphans};
use super::source::{Fetch, plugin_fetch};
use super::{
    installed_id, managed_refusal, marketplace_policy, plugins_dir, rewrite_renamed, trust_message,
    write_enabled,
};
use crate::settings::editor::SettingsContext;
use crate::user_error::UserError;

/// What the copy of a plugin is called where it was fetched to.
const COPY: &str = "plugin";
/// The file that lists plugins.
pub(super) const FILE: &str = "installed_plugins.json";

/// A plugin that was fetched and not yet put in its place.
pub(super) struct Fetched {
    pub(super) id: PluginId,
    pub(super) folder: PluginFolder,
    entry: Map<String, Value>,
    commit: Option<String>,
    /// The version of the tag that was fetched, where it was one: its manifest may not have kept up.
    released: Option<String>,
    /// What was left behind, and why.
    left: Vec<String>,
    beside: PathBuf,
}

impl Drop for Fetched {
    fn drop(&mut self) {
        // What stays behind is found by its name; the next fetch is not hindered.
        std::fs::remove_dir_all(&self.beside).unwrap_or_default();
    }
}

impl Fetched {
    pub(super) fn version(&self) -> String {
        let said = self.released.clone().or_else(|| self.folder.manifest.version.clone());
        let said = said.or_else(|| self.entry.get("version").and_then(Value::as_str).map(str::to_owned));
        let commit = || self.commit.as_ref().map(|commit| commit.chars().take(12).collect());
        said.or_else(commit).unwrap_or_else(|| "unknown".to_owned())
    }

    /// Returns what the directory of its copy is called: a tag may be moved to another commit, which is another copy.
    fn copy_name(&self) -> String {
        match (&self.released, &self.commit) {
            (Some(version), Some(commit)) => {
                format!("{version}-{}", commit.chars().take(12).collect::<String>())
            }
            _ => self.version(),
        }
    }
}

/// A plugin that was installed.
#[derive(Debug)]
pub(super) struct Installation {
    /// Which one.
    pub(super) id: PluginId,
    /// What is to be said of it, and of what came with it.
    pub(super) said: String,
}

/// Installs a plugin of a known marketplace for a scope, with options given as `KEY=VALUE`.
pub(super) fn install_plugin(
    ctx: &SettingsContext,
    name: &str,
    options: &[String],
    scope: Option<Scope>,
) -> Result<Installation, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let mut state = read_plugin_state(&dir).0;
    if add_named_marketplace(ctx, &state, name)? {
        state = read_plugin_state(&dir).0;
    }
    let stale = refresh_marketplace(ctx, &state, name);
    let id = offered_id(&state, name)?;
    let scope = scope.unwrap_or(Scope::User);
    let fetched = fetch(ctx, &state, &id, &dir, &installed_ranges(&state, &id, &id))?;
    let options = parse_given_options(&fetched.folder, options)?;
    let needed = fetch_needed(ctx, &state, &fetched, &dir)?;
    let mut out = stale.unwrap_or_default();
    if let Some(said) = trust_message(&ctx.loaded.merged) {
        out += &format!("The administrator says: {}\n", one_line(said));
    }
    for other in &needed {
        out += &put_in_place(ctx, other, &dir, scope, Reason::Needed)?;
    }
    for present in needed_and_off(ctx, &state, &fetched) {
        write_enabled(ctx, &present, scope, Some(true))?;
        out += &format!("Turned {present} on, which it needs\n");
    }
    out += &put_in_place(ctx, &fetched, &dir, scope, Reason::Asked)?;
    out += &replace_former(ctx, &state, &dir, &id, scope)?;
    out += &store_options(ctx, &id, &options)?;
    Ok(Installation { id, said: out })
}

/// Takes away what a plugin was called before its marketplace renamed it, with what settings say of that; returns what to say.
fn replace_former(
    ctx: &SettingsContext,
    state: &PluginState,
    dir: &Path,
    id: &PluginId,
    scope: Scope,
) -> Result<String, UserError> {
    let Some(known) = state.marketplace(&id.marketplace) else { return Ok(String::new()) };
    let (catalogue, _) = marketplace_manifest(&known.location).map_err(UserError::new)?;
    let is_former = |old: &PluginId| {
        old.marketplace == id.marketplace
            && renamed(&catalogue, &old.name) == Some(Renamed::To(id.name.clone()))
            && state.marketplace_entry(old).is_none()
    };
    let here = state.installed_in(ctx.places.tree_root());
    let mut out = String::new();
    for former in here.iter().filter(|it| it.scope == install_scope(scope) && is_former(&it.id)) {
        let renamed = RenamedPlugin { old: former.id.clone(), new: Some(id.clone()) };
        let problems = rewrite_renamed(&ctx.home, &ctx.places, &ctx.loaded, &[renamed]).problems;
        out += &problems.iter().map(|it| format!("! {}\n", one_line(&it.to_string()))).collect::<String>();
        out += &remove_installed(ctx, dir, &former.id, scope)?;
    }
    Ok(out)
}

/// Why a plugin is installed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Somebody wants it.
    Asked,
    /// Another needs it.
    Needed,
}

/// Copies a plugin to its place, writes it down and turns it on; returns what to say.
fn put_in_place(
    ctx: &SettingsContext,
    fetched: &Fetched,
    dir: &Path,
    scope: Scope,
    reason: Reason,
) -> Result<String, UserError> {
    let (id, version) = (&fetched.id, fetched.version());
    let root = cache_place(dir, id, &fetched.copy_name());
    // Looked at before the copy is moved from under it.
    let mut out = describe(&PluginFolder { root, ..fetched.folder.clone() });
    let digest = fetched.folder.digest();
    let path = put(fetched, dir)?;
    record(ctx, dir, scope, &path, (fetched, reason))?;
    approve_plugins(dir, &[(id.to_string(), digest)]).map_err(UserError::new)?;
    let by_default = fetched.entry.get("defaultEnabled").and_then(Value::as_bool);
    let by_default = by_default.unwrap_or(fetched.folder.manifest.is_enabled_by_default);
    let is_on = by_default || reason == Reason::Needed;
    write_enabled(ctx, id, scope, Some(is_on))?;
    let problems = fetched.folder.problems.iter().map(|it| &it.message);
    out += &fetched
        .left
        .iter()
        .chain(problems)
        .map(|line| format!("! {}\n", one_line(line)))
        .collect::<String>();
    out += &fetch_packages(&ctx.env, &path).unwrap_or_default();
    let word = if is_on { "on" } else { "off; `loci plugin enable` turns it on" };
    Ok(out + &format!("Installed {id} {version}; it is {word}\n"))
}

/// Brings a plugin up to date: for a scope, or everywhere it is installed.
pub(super) fn update_plugin(
    ctx: &SettingsContext,
    name: &str,
    scope: Option<InstallScope>,
) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let id = installed_id(&state, name)?;
    let is_meant = |it: InstallScope| scope.is_none_or(|meant| meant == it);
    let installed: Vec<_> = state.installed.iter().filter(|it| it.id == id && is_meant(it.scope)).collect();
    if let (true, Some(scope)) = (installed.is_empty(), scope) {
        return Err(UserError::new(format!("`{id}` is not installed for `{}`", scope.as_str()))
            .hint("`loci plugin list` shows where it is."));
    }
    let ranges = installed_ranges(&state, &id, &id);
    let fetched = fetch(ctx, &state, &id, &dir, &ranges)?;
    let version = fetched.version();
    if !fits_all(&ranges, &version) {
        let message =
            format!("`{id}` stays as it is: it is {version} now, and is needed in {}", listed(&ranges));
        return Err(UserError::new(message).hint("Update or uninstall those that need another version."));
    }
    let is_moved = |it: &InstalledPlugin| {
        fetched.released.is_some() && it.commit.as_deref() != fetched.commit.as_deref()
    };
    let is_old = |it: &&&InstalledPlugin| it.version.as_deref() != Some(&version) || is_moved(it);
    let Some(old) = installed.iter().find(is_old) else {
        return Ok(format!("{id} {version} is up to date\n"));
    };
    let before = state.read_installed(old).ok();
    let mut out = changes(before.as_ref(), &fetched.folder);
    let needed = fetch_needed(ctx, &state, &fetched, &dir)?;
    for other in &needed {
        out += &put_in_place(ctx, other, &dir, Scope::User, Reason::Needed)?;
    }
    let digest = fetched.folder.digest();
    let path = put(&fetched, &dir)?;
    approve_plugins(&dir, &[(id.to_string(), digest)]).map_err(UserError::new)?;
    let now = ctx.env.clock.now().to_string();
    edit_plugin_file(&dir, FILE, |fields| {
        let entries = fields.get_mut("plugins").and_then(|plugins| plugins.get_mut(id.to_string()));
        let entries: Vec<&mut Value> = match entries {
            Some(Value::Array(entries)) => entries.iter_mut().filter(|entry| entry.is_object()).collect(),
            Some(one @ Value::Object(_)) => vec![one],
            _ => Vec::new(),
        };
        let scope_of = |entry: &Value| entry["scope"].as_str().and_then(InstallScope::parse);
        let meant = entries.into_iter().filter(|it| is_meant(scope_of(it).unwrap_or(InstallScope::User)));
        for entry in meant {
            entry["installPath"] = json!(path);
            entry["version"] = json!(version);
            entry["lastUpdated"] = json!(now);
            if let Some(commit) = &fetched.commit {
                entry["gitCommitSha"] = json!(commit);
            }
        }
    })
    .map_err(UserError::new)?;
    leave_copies(&dir, &installed.iter().map(|it| it.path.clone()).collect::<Vec<_>>())?;
    out += &fetched.left.iter().map(|line| format!("! {}\n", one_line(line))).collect::<String>();
    out += &fetch_packages(&ctx.env, &path).unwrap_or_default();
    let old = old.version.as_deref().unwrap_or("no version");
    Ok(out
        + &format!(
            "Updated {id} from {old} to {version}; it counts from the next session or `/reload-plugins` on\n"
        ))
}

/// How a plugin is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Uninstall {
    /// For whom; for the user, where nothing is said.
    pub scope: Option<Scope>,
    /// What it has kept stays.
    pub keeps_data: bool,
    /// What came because it was needed goes, too, once nothing needs it.
    pub prunes: bool,
    /// That is not asked about.
    pub is_sure: bool,
}

/// Takes a plugin away.
pub(super) fn uninstall_plugin(
    ctx: &SettingsContext,
    name: &str,
    how: Uninstall,
    confirm: Confirm<'_>,
) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let id = installed_id(&state, name)?;
    let scope = how.scope.unwrap_or(Scope::User);
    let mut out = remove_installed(ctx, &dir, &id, scope)?;
    out += &remove_data(&dir, &id, how.keeps_data)?;
    if how.prunes {
        out += &prune_orphans(ctx, scope, how.is_sure, confirm)?;
    }
    Ok(out)
}

/// Removes what a plugin kept, once it is installed for nobody any more; returns what to say.
fn remove_data(dir: &Path, id: &PluginId, keeps: bool) -> Result<String, UserError> {
    let data = dir.join("data").join(id.data_dir_name());
    // A link would lead to what is somebody else's.
    if !data.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        return Ok(String::new());
    }
    // Another plugin may keep its things there, too: what is no letter in a name becomes `-`.
    let is_used = |it: &InstalledPlugin| it.id.data_dir_name() == id.data_dir_name();
    if keeps || read_plugin_state(dir).0.installed.iter().any(is_used) {
        return Ok(format!("What it kept stays in {}\n", data.display()));
    }
    std::fs::remove_dir_all(&data)
        .map_err(|error| UserError::new(format!("Failed to remove `{}`: {error}", data.display())))?;
    Ok(format!("Removed what it kept in {}\n", data.display()))
}

/// Takes an installed plugin away.
pub(super) fn remove_installed(
    ctx: &SettingsContext,
    dir: &Path,
    id: &PluginId,
    scope: Scope,
) -> Result<String, UserError> {
    let (state, _) = read_plugin_state(dir);
    let word = install_scope(scope).as_str();
    let project = ctx.places.tree_root().to_owned();
    let is_meant = |it: &&InstalledPlugin| {
        it.id == *id
            && it.scope == install_scope(scope)
            && (it.scope == InstallScope::User || it.project.as_deref() == Some(&project))
    };
    let Some(gone) = state.installed.iter().find(is_meant) else {
        return Err(UserError::new(format!("`{id}` is not installed for `{word}`"))
            .hint("`loci plugin list` shows where it is; --user, --project and --local choose."));
    };
    edit_plugin_file(dir, FILE, |fields| {
        let Some(plugins) = fields.get_mut("plugins").and_then(Value::as_object_mut) else { return };
        let key = id.to_string();
        if let Some(Value::Array(entries)) = plugins.get_mut(&key) {
            entries.retain(|entry| entry["installPath"] != json!(gone.path) || entry["scope"] != json!(word));
            if !entries.is_empty() {
                return;
            }
        }
        plugins.remove(&key);
    })
    .map_err(UserError::new)?;
    write_enabled(ctx, id, scope, None)?;
    leave_copies(dir, std::slice::from_ref(&gone.path))?;
    Ok(format!("{id} is not installed any more\n"))
}

/// Takes note of copies that nothing is installed from any more. Sessions that began with them go on with them; they are
/// removed a fortnight later.
pub(super) fn leave_copies(dir: &Path, copies: &[PathBuf]) -> Result<(), UserError> {
    let (state, _) = read_plugin_state(dir);
    let is_used = |copy: &PathBuf| state.installed.iter().any(|it| it.path == *copy);
    for copy in copies.iter().filter(|copy| !is_used(copy)) {
        mark_orphaned(dir, copy, SystemTime::now()).map_err(|error| {
            UserError::new(format!("Failed to leave a note in `{}`: {error}", copy.display()))
        })?;
    }
    Ok(())
}

/// Says what an update changes in what a plugin may run, and which of its files.
fn changes(before: Option<&PluginFolder>, after: &PluginFolder) -> String {
    let lines = |folder: &PluginFolder| folder.runs().into_iter().collect::<BTreeSet<_>>();
    let (old, new) = (before.map(lines).unwrap_or_default(), lines(after));
    let mut out = String::new();
    for line in old.difference(&new) {
        out += &format!("- {line}\n");
    }
    for line in new.difference(&old) {
        out += &format!("+ {line}\n");
    }
    let is_same = before.is_some_and(|before| before.digest() == after.digest());
    match (out.is_empty(), is_same) {
        (true, true) => out += "What it may run is defined as before; its files may do other things\n",
        (true, false) => out += "What it may run is named as before, and defined in another way\n",
        (false, _) => {}
    }
    out
}

/// Finds a plugin that a known marketplace offers.
fn offered_id(state: &PluginState, name: &str) -> Result<PluginId, UserError> {
    if let Some(id) = PluginId::parse(name) {
        return Ok(id);
    }
    let offers = |known: &&loci_storage::config::KnownMarketplace| {
        let id = PluginId { name: name.to_owned(), marketplace: known.name.clone() };
        state.marketplace_entry(&id).is_some()
    };
    let offered: Vec<&str> =
        state.marketplaces.iter().filter(offers).map(|known| known.name.as_str()).collect();
    match offered.as_slice() {
        [one] => PluginId::parse(&format!("{name}@{one}"))
            .ok_or_else(|| UserError::new(format!("`{name}` is no name for a plugin"))),
        [] => Err(UserError::new(format!("No known marketplace has a plugin `{name}`"))
            .hint("`loci plugin marketplace add` adds one.")),
        several => Err(UserError::new(format!("Several marketplaces have a plugin `{name}`"))
            .hint(format!("Add one of them: {name}@{}.", several.join(&format!(", {name}@"))))),
    }
}

/// Fetches a plugin: the best release where others say which versions they can use, what its marketplace has otherwise.
fn fetch(
    ctx: &SettingsContext,
    state: &PluginState,
    id: &PluginId,
    dir: &Path,
    ranges: &[VersionRange],
) -> Result<Fetched, UserError> {
    let known = state.marketplace(&id.marketplace).ok_or_else(|| {
        UserError::new(format!("There is no marketplace `{}`", id.marketplace))
            .hint("`loci plugin marketplace add` adds one.")
    })?;
    let merged = &ctx.loaded.merged;
    let by_source = || marketplace_policy(merged).refusal(Some(&known.source));
    if let Some(why) = managed_refusal(merged, id).or_else(by_source) {
        return Err(UserError::new(format!("`{id}` cannot be installed: {why}")));
    }
    let (catalogue, root) = marketplace_manifest(&known.location).map_err(UserError::new)?;
    let entry = state.marketplace_entry(id).ok_or_else(|| not_offered(&catalogue, id))?;
    let failed = |why: String| UserError::new(format!("`{id}` cannot be installed: {why}"));
    let source = plugin_fetch(&catalogue, &entry, &root).map_err(failed)?;
    let beside = tempfile_dir(dir)?;
    let plugin = Listed { id, marketplace: known, root: &root };
    let (source, released) = match find_release(&ctx.env, &plugin, &source, ranges, &beside) {
        Ok(Some(found)) => (found.fetch, Some(found.version)),
        Ok(None) => (source, None),
        Err(why) => {
            std::fs::remove_dir_all(&beside).unwrap_or_default();
            return Err(failed(why));
        }
    };
    let fetched = copy_fetched(ctx, source, &root, &beside).map_err(failed).and_then(|(commit, left)| {
        let own = || Some(entry.clone());
        let read = read_plugin(&beside.join(COPY), Some(id), InstallScope::User, Some(&own));
        Ok((read.map_err(|problem| failed(problem.message))?, commit, left))
    });
    match fetched {
        Ok((mut folder, commit, left)) => {
            folder.installed_version.clone_from(&released);
            Ok(Fetched { id: id.clone(), folder, entry, commit, released, left, beside })
        }
        Err(error) => {
            std::fs::remove_dir_all(&beside).unwrap_or_default();
            Err(error)
        }
    }
}

/// Fetches a plugin and makes a copy of it in `beside`; returns its commit, and what was left behind.
fn copy_fetched(
    ctx: &SettingsContext,
    source: Fetch,
    root: &Path,
    beside: &Path,
) -> Result<(Option<String>, Vec<String>), String> {
    match source {
        // Plugins of one marketplace may share files by links.
        Fetch::Local(path) => {
            let left = copy_plugin(&path, &beside.join(COPY), root)?;
            Ok((marketplace_commit(ctx, root), left))
        }
        Fetch::Git(git, inner) => {
            let commit = clone(ctx, &git, beside)?;
            let place = beside.join("repository").join(inner);
            Ok((Some(commit), copy_plugin(&place, &beside.join(COPY), &place)?))
        }
    }
}

/// Says that a marketplace does not have a plugin, and what became of it.
fn not_offered(catalogue: &Map<String, Value>, id: &PluginId) -> UserError {
    let error = UserError::new(format!("The marketplace `{}` has no plugin `{}`", id.marketplace, id.name));
    match renamed(catalogue, &id.name) {
        Some(Renamed::To(name)) => {
            error.hint(format!("It is called `{name}` now: loci plugin install {name}@{}.", id.marketplace))
        }
        Some(Renamed::Removed) => error.hint("It was removed from it."),
        None => error,
    }
}

/// Returns the commit of a marketplace: what its copy says, or the repository that it lies in.
fn marketplace_commit(ctx: &SettingsContext, root: &Path) -> Option<String> {
    let kept = loci_stdx::read_regular_to_string(root.join(COMMIT_FILE)).ok();
    kept.or_else(|| git_commit(&ctx.env, root))
}

fn clone(ctx: &SettingsContext, git: &GitSource, beside: &Path) -> Result<String, String> {
    clone_repository(&ctx.env, git, &beside.join("repository"))
}

/// Moves the copy of a plugin to its place; returns that.
fn put(fetched: &Fetched, dir: &Path) -> Result<PathBuf, UserError> {
    let id = &fetched.id;
    let path = cache_place(dir, id, &fetched.copy_name());
    move_plugin(&fetched.folder.root, &path)
        .map_err(|why| UserError::new(format!("Failed to copy `{id}`: {why}")))?;
    Ok(path)
}

pub(super) fn install_scope(scope: Scope) -> InstallScope {
    match scope {
        Scope::Project => InstallScope::Project,
        Scope::Local => InstallScope::Local,
        Scope::User | Scope::CommandLine | Scope::Managed => InstallScope::User,
    }
}

fn record(
    ctx: &SettingsContext,
    dir: &Path,
    scope: Scope,
    path: &Path,
    (fetched, reason): (&Fetched, Reason),
) -> Result<(), UserError> {
    let (id, version, commit) = (&fetched.id, fetched.version(), fetched.commit.as_deref());
    let scope = install_scope(scope);
    let now = ctx.env.clock.now().to_string();
    let mut entry = json!({
        "scope": scope.as_str(),
        "installPath": path,
        "version": version,
        "installedAt": now,
        "lastUpdated": now,
    });
    if let Some(commit) = commit {
        entry["gitCommitSha"] = json!(commit);
    }
    if scope != InstallScope::User {
        entry["projectPath"] = json!(ctx.places.tree_root());
    }
    edit_plugin_file(dir, FILE, |fields| {
        fields.entry("version").or_insert(json!(2));
        let plugins = fields.entry("plugins").or_insert_with(|| json!({}));
        if !plugins.is_object() {
            *plugins = json!({});
        }
        let entries = &mut plugins[id.to_string()];
        let (scope, project) = (entry["scope"].clone(), entry["projectPath"].clone());
        let is_same = |other: &Value| other["scope"] == scope && other["projectPath"] == project;
        match entries {
            Value::Array(entries) => {
                // What somebody wanted stays wanted, though another version of it is needed now.
                let was_wanted = |other: &Value| is_same(other) && other["installedAsDependency"] != true;
                if reason == Reason::Needed && !entries.iter().any(was_wanted) {
                    entry["installedAsDependency"] = json!(true);
                }
                entries.retain(|other| !is_same(other));
                entries.push(entry);
            }
            _ => {
                if reason == Reason::Needed {
                    entry["installedAsDependency"] = json!(true);
                }
                *entries = json!([entry]);
            }
        }
    })
    .map_err(UserError::new)
}
