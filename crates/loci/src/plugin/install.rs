//! `loci plugin install`, `update` and `uninstall`: copies of plugins, and what they may run said before they do.
//!
//! Everything that is needed is fetched and looked at before the first thing is put in its place (`dependencies`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_app::plugins::{installed_id, marketplace_policy, plugins_dir, write_enabled};
use loci_core::plugin::PluginId;
use loci_settings::Scope;
use loci_storage::config::{
    GitSource, InstallScope, InstalledPlugin, PluginFolder, PluginState, approve_plugins, cache_place,
    clone_repository, copy_plugin, edit_plugin_file, marketplace_manifest, read_plugin, read_plugin_state,
};
use serde_json::{Map, Value, json};

use super::configure::{missing_options, parse_options, store_options};
use super::dependencies::{fetch_needed, needed_and_off};
use super::details::describe;
use super::marketplace::{add_named_marketplace, tempfile_dir};
use super::prune::remove_orphans;
use super::source::{Fetch, plugin_fetch};
use crate::config::{SettingsContext, Target};

/// The file that lists plugins.
const FILE: &str = "installed_plugins.json";

#[derive(Debug, clap::Args)]
pub(super) struct InstallArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// An option of the plugin and its value; may be given several times. Secrets are better given to `configure`.
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
pub(super) struct UpdateArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    /// The plugin: its name, or `name@marketplace`.
    name: String,
    /// Also remove what came because it was needed, and is not needed any more.
    #[arg(long)]
    prune: bool,
    /// Keep what the plugin has kept; that is so anyway.
    #[arg(long)]
    keep_data: bool,
    #[command(flatten)]
    target: Target,
}

/// A plugin that was fetched and not yet put in its place.
pub(super) struct Fetched {
    pub(super) id: PluginId,
    pub(super) folder: PluginFolder,
    entry: Map<String, Value>,
    commit: Option<String>,
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
        let said = self.folder.manifest.version.clone();
        let said = said.or_else(|| self.entry.get("version").and_then(Value::as_str).map(str::to_owned));
        let commit = || self.commit.as_ref().map(|commit| commit.chars().take(12).collect());
        said.or_else(commit).unwrap_or_else(|| "unknown".to_owned())
    }
}

pub(super) fn install(ctx: &SettingsContext, args: &InstallArgs) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let mut state = read_plugin_state(&dir).0;
    if add_named_marketplace(ctx, &state, &args.name)? {
        state = read_plugin_state(&dir).0;
    }
    let id = offered_id(&state, &args.name)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let fetched = fetch(ctx, &state, &id, &dir)?;
    let options = parse_options(&fetched.folder, &args.config)?;
    let needed = fetch_needed(ctx, &state, &fetched, &dir)?;
    let mut out = String::new();
    for other in &needed {
        out += &put_in_place(ctx, other, &dir, scope, Reason::Needed)?;
    }
    for present in needed_and_off(ctx, &state, &fetched) {
        write_enabled(ctx, &present, scope, Some(true))?;
        out += &format!("Turned {present} on, which it needs\n");
    }
    out += &put_in_place(ctx, &fetched, &dir, scope, Reason::Asked)?;
    out += &store_options(ctx, &id, &options)?;
    Ok(out + &missing_options(ctx, &fetched.folder, &id))
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
    let mut out = describe(&fetched.folder);
    let (path, left) = put(fetched, dir, id, &version)?;
    record(ctx, dir, scope, &path, (fetched, reason))?;
    approve_plugins(dir, &[(id.to_string(), fetched.folder.digest())]).map_err(UserError::new)?;
    let by_default = fetched.entry.get("defaultEnabled").and_then(Value::as_bool);
    let by_default = by_default.unwrap_or(fetched.folder.manifest.is_enabled_by_default);
    let is_on = by_default || reason == Reason::Needed;
    write_enabled(ctx, id, scope, Some(is_on))?;
    out += &left.iter().map(|line| format!("! {line}\n")).collect::<String>();
    out += &fetched.folder.problems.iter().map(|it| format!("! {}\n", it.message)).collect::<String>();
    let word = if is_on { "on" } else { "off; `loci plugin enable` turns it on" };
    Ok(out + &format!("Installed {id} {version}; it is {word}\n"))
}

pub(super) fn update(ctx: &SettingsContext, args: &UpdateArgs) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let id = installed_id(&state, &args.name)?;
    let installed: Vec<_> = state.installed.iter().filter(|it| it.id == id).collect();
    let fetched = fetch(ctx, &state, &id, &dir)?;
    let version = fetched.version();
    let is_old = |it: &&&InstalledPlugin| it.version.as_deref() != Some(&version);
    let Some(old) = installed.iter().find(is_old) else {
        return Ok(format!("{id} {version} is up to date\n"));
    };
    let before = read_plugin(&old.path, Some(&id), old.scope, None).ok();
    let mut out = changes(before.as_ref(), &fetched.folder);
    let needed = fetch_needed(ctx, &state, &fetched, &dir)?;
    for other in &needed {
        out += &put_in_place(ctx, other, &dir, Scope::User, Reason::Needed)?;
    }
    let (path, left) = put(&fetched, &dir, &id, &version)?;
    approve_plugins(&dir, &[(id.to_string(), fetched.folder.digest())]).map_err(UserError::new)?;
    let now = ctx.env.clock.now().to_string();
    edit_plugin_file(&dir, FILE, |fields| {
        let entries = fields.get_mut("plugins").and_then(|plugins| plugins.get_mut(id.to_string()));
        let entries: Vec<&mut Value> = match entries {
            Some(Value::Array(entries)) => entries.iter_mut().filter(|entry| entry.is_object()).collect(),
            Some(one @ Value::Object(_)) => vec![one],
            _ => Vec::new(),
        };
        for entry in entries {
            entry["installPath"] = json!(path);
            entry["version"] = json!(version);
            entry["lastUpdated"] = json!(now);
            if let Some(commit) = &fetched.commit {
                entry["gitCommitSha"] = json!(commit);
            }
        }
    })
    .map_err(UserError::new)?;
    out += &left.iter().map(|line| format!("! {line}\n")).collect::<String>();
    let old = old.version.as_deref().unwrap_or("no version");
    Ok(out
        + &format!(
            "Updated {id} from {old} to {version}; it counts from the next session or `/reload-plugins` on\n"
        ))
}

pub(super) fn uninstall(ctx: &SettingsContext, args: &UninstallArgs) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let id = installed_id(&state, &args.name)?;
    let scope = args.target.scope().unwrap_or(Scope::User);
    let mut out = remove_installed(ctx, &dir, &id, scope)?;
    let data = dir.join("data").join(id.data_dir_name());
    if data.is_dir() {
        out += &format!("What it kept stays in {}\n", data.display());
    }
    if args.prune {
        out += &remove_orphans(ctx, scope)?;
    }
    Ok(out)
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
    let is_shared = state.installed.iter().filter(|it| it.path == gone.path).count() > 1;
    let is_ours = gone.path.starts_with(dir.join("cache").join(&id.marketplace).join(&id.name));
    if is_ours && !is_shared && gone.path.is_dir() {
        std::fs::remove_dir_all(&gone.path).map_err(|error| {
            UserError::new(format!("Failed to remove `{}`: {error}", gone.path.display()))
        })?;
    }
    Ok(format!("{id} is not installed any more\n"))
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

pub(super) fn fetch(
    ctx: &SettingsContext,
    state: &PluginState,
    id: &PluginId,
    dir: &Path,
) -> Result<Fetched, UserError> {
    let known = state.marketplace(&id.marketplace).ok_or_else(|| {
        UserError::new(format!("There is no marketplace `{}`", id.marketplace))
            .hint("`loci plugin marketplace add` adds one.")
    })?;
    if let Some(why) = marketplace_policy(&ctx.loaded.merged).refusal(Some(&known.source)) {
        return Err(UserError::new(format!("`{id}` cannot be installed: {why}")));
    }
    let (catalogue, root) = marketplace_manifest(&known.location).map_err(UserError::new)?;
    let entry = state.marketplace_entry(id).ok_or_else(|| {
        UserError::new(format!("The marketplace `{}` has no plugin `{}`", id.marketplace, id.name))
    })?;
    let failed = |why: String| UserError::new(format!("`{id}` cannot be installed: {why}"));
    let source = plugin_fetch(&catalogue, &entry, &root).map_err(failed)?;
    let beside = tempfile_dir(dir)?;
    let (place, commit) = match source {
        Fetch::Local(path) => (path, None),
        Fetch::Git(git, inner) => match clone(ctx, &git, &beside) {
            Ok(commit) => (beside.join("repository").join(inner), Some(commit)),
            Err(why) => {
                std::fs::remove_dir_all(&beside).unwrap_or_default();
                return Err(failed(why));
            }
        },
    };
    let own = || Some(entry.clone());
    match read_plugin(&place, Some(id), InstallScope::User, Some(&own)) {
        Ok(folder) => Ok(Fetched { id: id.clone(), folder, entry, commit, beside }),
        Err(problem) => {
            std::fs::remove_dir_all(&beside).unwrap_or_default();
            Err(failed(problem.message))
        }
    }
}

fn clone(ctx: &SettingsContext, git: &GitSource, beside: &Path) -> Result<String, String> {
    clone_repository(&ctx.env, git, &beside.join("repository"))
}

/// Copies a plugin to its place; returns that, and what was left behind.
fn put(
    fetched: &Fetched,
    dir: &Path,
    id: &PluginId,
    version: &str,
) -> Result<(PathBuf, Vec<String>), UserError> {
    let path = cache_place(dir, id, version);
    let left = copy_plugin(&fetched.folder.root, &path)
        .map_err(|why| UserError::new(format!("Failed to copy `{id}`: {why}")))?;
    Ok((path, left))
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
    if reason == Reason::Needed {
        entry["installedAsDependency"] = json!(true);
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
        let is_same =
            |other: &Value| other["scope"] == entry["scope"] && other["projectPath"] == entry["projectPath"];
        match entries {
            Value::Array(entries) => {
                entries.retain(|other| !is_same(other));
                entries.push(entry);
            }
            _ => *entries = json!([entry]),
        }
    })
    .map_err(UserError::new)
}
