//! Lists of plugins, added, looked at, brought up to date and taken away.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{extra_marketplaces, marketplace_policy, plugins_dir, write_enabled};
use loci_core::plugin::{PluginId, imitation_refusal, is_plugin_name, reserved_refusal};
use loci_settings::Scope;
use loci_settings::edit::set;
use loci_settings::jsonc::{self, Tree};
use loci_stdx::{WriteOptions, write_atomic};
use loci_storage::config::{
    KnownMarketplace, PluginState, clone_repository, copy_plugin, edit_plugin_file, edit_settings,
    marketplace_manifest, read_plugin_state,
};
use serde_json::{Value, json};

use super::install::leave_copies;
use super::source::{Fetch, marketplace_fetch, parse_marketplace};
use crate::settings::editor::{SettingsContext, to_user_error};
use crate::user_error::UserError;

/// The file that lists marketplaces.
const FILE: &str = "known_marketplaces.json";
/// The setting that names marketplaces.
const EXTRA: &str = "extraKnownMarketplaces";
/// Another spelling of it.
const EXTRA_ALIAS: &str = "additionalMarketplaces";
/// The kind of a marketplace that settings have themselves.
const SETTINGS: &str = "settings";
/// How long what was fetched counts as what is there, in milliseconds.
const FRESH_MILLIS: i64 = 30_000;
/// The file in the copy of a repository that says which commit it is.
pub(super) const COMMIT_FILE: &str = ".loci-commit";

/// Adds a marketplace, and has the settings of a scope name it.
pub(super) fn add_marketplace(
    ctx: &SettingsContext,
    typed: &str,
    scope: Option<Scope>,
    sparse: &[String],
) -> Result<String, UserError> {
    let mut source = parse_marketplace(&ctx.env, typed).map_err(UserError::new)?;
    if !sparse.is_empty() {
        if !matches!(marketplace_fetch(&source), Ok(Fetch::Git(..))) {
            return Err(UserError::new("`--sparse` is for repositories, and this is none"));
        }
        source["sparsePaths"] = json!(sparse);
    }
    let taken = take_up(ctx, &source, None)?;
    match scope.filter(|scope| *scope != Scope::User) {
        Some(scope) => Ok(taken.said + &declare(ctx, &taken.name, &source, scope)?),
        None => Ok(taken.said),
    }
}

/// Writes a marketplace to `extraKnownMarketplaces` of a scope; returns what to say.
fn declare(ctx: &SettingsContext, name: &str, source: &Value, scope: Scope) -> Result<String, UserError> {
    let (file, options) = ctx.file(scope);
    ctx.keep_private(scope, &file)?;
    // Where the file has the other spelling, an entry under the first would hide all of its.
    let text = loci_stdx::read_regular_to_string(&file).unwrap_or_default();
    let is_aliased = has_key(&text, EXTRA_ALIAS) && !has_key(&text, EXTRA);
    let path = [if is_aliased { EXTRA_ALIAS } else { EXTRA }, name];
    edit_settings(&ctx.home, &file, &options, |text| set(text, &path, &json!({"source": source})))
        .map_err(|error| to_user_error(&error))?;
    Ok(format!("{name} is named in {}\n", ctx.places.display_path(&file)))
}

/// Tells whether the text of a settings file sets a key.
fn has_key(text: &str, key: &str) -> bool {
    match jsonc::parse(text).root.map(|root| root.tree) {
        Some(Tree::Object(members)) => members.iter().any(|member| member.key == key),
        _ => false,
    }
}

/// A marketplace that was fetched and written down.
struct TakenUp {
    name: String,
    said: String,
}

/// Fetches a marketplace and writes it down; the name must be `expected`, where there is one.
fn take_up(ctx: &SettingsContext, source: &Value, expected: Option<&str>) -> Result<TakenUp, UserError> {
    if let Some(why) = marketplace_policy(&ctx.loaded.merged).refusal(Some(source)) {
        return Err(UserError::new(format!("It cannot be used: {why}")));
    }
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let beside = tempfile_dir(&dir)?;
    let fetched = fetch(ctx, source, &beside);
    let taken = fetched.and_then(|fetched| write_down(ctx, source, expected, &fetched, &dir));
    std::fs::remove_dir_all(&beside).unwrap_or_default();
    taken
}

/// Adds the marketplace of a plugin when only settings know it (`extraKnownMarketplaces`); true when it did.
pub(super) fn add_named_marketplace(
    ctx: &SettingsContext,
    state: &PluginState,
    plugin: &str,
) -> Result<bool, UserError> {
    let Some(id) = PluginId::parse(plugin) else { return Ok(false) };
    let extra = extra_marketplaces(&ctx.loaded.merged);
    let Some((name, source)) = extra.into_iter().find(|(name, _)| *name == id.marketplace) else {
        return Ok(false);
    };
    // One that is written in settings is what they say now.
    let is_current = |known: &KnownMarketplace| source["source"] != SETTINGS || known.source == source;
    if state.marketplace(&name).is_some_and(is_current) {
        return Ok(false);
    }
    take_up(ctx, &absolute(ctx, source), Some(&name))?;
    Ok(true)
}

/// Fetches the marketplace of a plugin again before the plugin is looked up in it, unless that was just done, or it is no
/// repository. Returns what to say where that fails: what is known of it counts then.
pub(super) fn refresh_marketplace(
    ctx: &SettingsContext,
    state: &PluginState,
    plugin: &str,
) -> Option<String> {
    let known = state.marketplace(&PluginId::parse(plugin)?.marketplace)?;
    let is_quiet = ctx.env.vars.is_truthy("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC");
    let is_git = matches!(marketplace_fetch(&known.source), Ok(Fetch::Git(..)));
    if is_quiet || !is_git || is_fresh(ctx, known.updated.as_deref()) {
        return None;
    }
    let why = take_up(ctx, &known.source, Some(&known.name)).err()?;
    Some(format!("! The marketplace `{}` was not refreshed: {why}\n", known.name))
}

fn is_fresh(ctx: &SettingsContext, updated: Option<&str>) -> bool {
    let updated = updated.and_then(|text| text.parse::<loci_stdx::Timestamp>().ok());
    let since = updated.map(|at| ctx.env.clock.now().as_millisecond() - at.as_millisecond());
    since.is_some_and(|since| (0..FRESH_MILLIS).contains(&since))
}

/// Paths in settings begin at the project.
fn absolute(ctx: &SettingsContext, mut source: Value) -> Value {
    let is_local = matches!(source["source"].as_str(), Some("directory" | "file"));
    if let Some(path) = source["path"].as_str().filter(|_| is_local).map(str::to_owned) {
        let path = loci_core::path::expand_home(&ctx.env.home, &path);
        source["path"] = json!(ctx.places.tree_root().join(path));
    }
    source
}

/// Where a marketplace lies once it is fetched, and the commit it was taken from.
struct FetchedMarketplace {
    place: PathBuf,
    commit: Option<String>,
}

fn fetch(ctx: &SettingsContext, source: &Value, beside: &Path) -> Result<FetchedMarketplace, UserError> {
    if source["source"] == SETTINGS {
        return write_catalogue(source, &beside.join("catalogue"));
    }
    match marketplace_fetch(source).map_err(UserError::new)? {
        Fetch::Local(place) => Ok(FetchedMarketplace { place, commit: None }),
        Fetch::Git(git, _) => {
            let into = beside.join("repository");
            let commit = clone_repository(&ctx.env, &git, &into)
                .map_err(|why| UserError::new(format!("Failed to fetch `{}`: {why}", git.url)))?;
            Ok(FetchedMarketplace { place: into, commit: Some(commit) })
        }
    }
}

/// Writes down the catalogue that settings have in the place of a marketplace.
fn write_catalogue(source: &Value, place: &Path) -> Result<FetchedMarketplace, UserError> {
    let catalogue = json!({"name": source["name"], "plugins": source["plugins"]});
    let file = place.join(".claude-plugin").join("marketplace.json");
    write_atomic(&file, format!("{catalogue:#}\n").as_bytes(), &WriteOptions::private().creating_parents())
        .map_err(|error| UserError::new(format!("Failed to write `{}`: {error}", file.display())))?;
    Ok(FetchedMarketplace { place: place.to_owned(), commit: None })
}

fn write_down(
    ctx: &SettingsContext,
    source: &Value,
    expected: Option<&str>,
    FetchedMarketplace { place, commit }: &FetchedMarketplace,
    dir: &Path,
) -> Result<TakenUp, UserError> {
    let (catalogue, _) = marketplace_manifest(place).map_err(UserError::new)?;
    let name = catalogue.get("name").and_then(Value::as_str).unwrap_or_default();
    if !is_plugin_name(name) {
        return Err(UserError::new(format!("`{}` is no name for a marketplace", name.escape_debug())));
    }
    let imitation = || imitation_refusal(name, source).filter(|_| expected.is_none());
    if let Some(why) = reserved_refusal(name, source).or_else(imitation) {
        return Err(UserError::new(format!("It cannot be added: {why}")));
    }
    if expected.is_some_and(|expected| expected != name) {
        return Err(UserError::new(format!("It is called `{name}` now; remove it and add it again")));
    }
    let is_local = matches!(marketplace_fetch(source), Ok(Fetch::Local(_)));
    let location = match is_local {
        true => place.to_owned(),
        false => dir.join("marketplaces").join(name),
    };
    if !is_local {
        copy_plugin(place, &location, place).map_err(UserError::new)?;
        if let Some(commit) = commit {
            let file = location.join(COMMIT_FILE);
            write_atomic(&file, commit.trim().as_bytes(), &WriteOptions::private())
                .map_err(|error| UserError::new(format!("Failed to write `{}`: {error}", file.display())))?;
        }
    }
    let now = ctx.env.clock.now().to_string();
    edit_plugin_file(dir, FILE, |fields| {
        let entry = fields.entry(name).or_insert_with(|| json!({}));
        if !entry.is_object() {
            *entry = json!({});
        }
        entry["source"] = source.clone();
        entry["installLocation"] = json!(location);
        entry["lastUpdated"] = json!(now);
    })
    .map_err(UserError::new)?;
    let n = catalogue.get("plugins").and_then(Value::as_array).map_or(0, Vec::len);
    let plugins = loci_stdx::counted(n as u64, "plugin", "plugins");
    let said = format!("{name}: {plugins} in {}\n", location.display());
    Ok(TakenUp { name: name.to_owned(), said })
}

/// Lists those that are known.
pub(super) fn list_marketplaces(ctx: &SettingsContext, is_json: bool) -> String {
    let (state, problems) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    if is_json {
        let rows: Vec<Value> = state
            .marketplaces
            .iter()
            .map(|it| {
                let mut row =
                    json!({"name": it.name, "installLocation": it.location, "lastUpdated": it.updated});
                for key in ["source", "repo", "url", "path", "ref"] {
                    if let Some(value) = it.source.get(key) {
                        row[key] = value.clone();
                    }
                }
                row
            })
            .collect();
        return format!("{:#}\n", json!(rows));
    }
    let mut out = String::new();
    for known in &state.marketplaces {
        let n = match marketplace_manifest(&known.location) {
            Ok((catalogue, _)) => {
                let n = catalogue.get("plugins").and_then(Value::as_array).map_or(0, Vec::len);
                loci_stdx::counted(n as u64, "plugin", "plugins")
            }
            Err(why) => why,
        };
        out += &format!("{}  {n}  ({})\n", known.name, known.source);
    }
    for (name, source) in extra_marketplaces(&ctx.loaded.merged) {
        if state.marketplace(&name).is_none() {
            out +=
                &format!("{name}  not added yet; `loci plugin install <plugin>@{name}` does  ({source})\n");
        }
    }
    if out.is_empty() {
        out += "No marketplace is known\n";
    }
    out + &problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>()
}

/// Fetches one again, or all of them.
pub(super) fn update_marketplaces(ctx: &SettingsContext, name: Option<&str>) -> Result<String, UserError> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let mut out = String::new();
    for known in state.marketplaces.iter().filter(|known| name.is_none_or(|name| name == known.name)) {
        out += &take_up(ctx, &known.source, Some(&known.name))?.said;
    }
    match (out.is_empty(), name) {
        (true, Some(name)) => Err(unknown(name)),
        (true, None) => Ok("No marketplace is known\n".to_owned()),
        (false, _) => Ok(out),
    }
}

/// Forgets a marketplace, unless only what the settings of one scope say of it is meant.
pub(super) fn remove_marketplace(
    ctx: &SettingsContext,
    name: &str,
    scope: Option<Scope>,
) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let known = state.marketplace(name);
    let mut out = String::new();
    for scope in [Scope::User, Scope::Project, Scope::Local]
        .into_iter()
        .filter(|it| scope.is_none_or(|meant| meant == *it))
    {
        let is_aliased = ctx.unset(&[EXTRA_ALIAS, name], scope)?;
        if ctx.unset(&[EXTRA, name], scope)? || is_aliased {
            let (file, _) = ctx.file(scope);
            out += &format!("{name} is not named in {} any more\n", ctx.places.display_path(&file));
        }
    }
    let after = SettingsContext::new(&ctx.env);
    let is_named = extra_marketplaces(&after.loaded.merged).iter().any(|(other, _)| other == name);
    if scope.is_some_and(|scope| scope != Scope::User) || (scope.is_some() && is_named) {
        let said = format!("{name} stays known; without `--scope` it is forgotten\n");
        return if out.is_empty() { Err(unknown(name)) } else { Ok(out + &said) };
    }
    let Some(known) = known else {
        return if out.is_empty() { Err(unknown(name)) } else { Ok(out) };
    };
    out += &uninstall_all(ctx, &dir, &state, name)?;
    edit_plugin_file(&dir, FILE, |fields| {
        fields.remove(name);
    })
    .map_err(UserError::new)?;
    // Only a copy of ours goes; it can be fetched again.
    if is_plugin_name(name) && known.location == dir.join("marketplaces").join(name) {
        remove_dir(&known.location)?;
    }
    Ok(out + &format!("{name} is forgotten\n"))
}

/// Removes what was installed from a marketplace, for whomever; what the plugins kept stays.
fn uninstall_all(
    ctx: &SettingsContext,
    dir: &Path,
    state: &PluginState,
    name: &str,
) -> Result<String, UserError> {
    let gone: Vec<_> = state.installed.iter().filter(|it| it.id.marketplace == name).collect();
    let ids: BTreeSet<&PluginId> = gone.iter().map(|it| &it.id).collect();
    if ids.is_empty() {
        return Ok(String::new());
    }
    edit_plugin_file(dir, super::install::FILE, |fields| {
        let plugins = fields.get_mut("plugins").and_then(Value::as_object_mut);
        plugins
            .into_iter()
            .for_each(|plugins| plugins.retain(|id, _| !ids.iter().any(|it| it.to_string() == *id)));
    })
    .map_err(UserError::new)?;
    leave_copies(dir, &gone.iter().map(|it| it.path.clone()).collect::<Vec<_>>())?;
    let mut out = String::new();
    for id in ids {
        for scope in [Scope::User, Scope::Project, Scope::Local] {
            write_enabled(ctx, id, scope, None)?;
        }
        out += &format!("{id} is not installed any more\n");
        let data = dir.join("data").join(id.data_dir_name());
        if data.is_dir() {
            out += &format!("What it kept stays in {}\n", data.display());
        }
    }
    Ok(out)
}

fn remove_dir(dir: &Path) -> Result<(), UserError> {
    std::fs::remove_dir_all(dir)
        .map_err(|error| UserError::new(format!("Failed to remove `{}`: {error}", dir.display())))
}

fn unknown(name: &str) -> UserError {
    UserError::new(format!("There is no marketplace `{name}`"))
        .hint("`loci plugin marketplace list` shows those there are.")
}

/// Makes a directory for what is fetched.
pub(super) fn tempfile_dir(dir: &Path) -> Result<PathBuf, UserError> {
    let free = (0..).map(|n| dir.join(format!(".fetch-{}-{n}", std::process::id()))).find(|it| !it.exists());
    let place = free.unwrap_or_else(|| dir.join(".fetch"));
    loci_stdx::create_private_dir_all(&place)
        .map_err(|error| UserError::new(format!("Failed to make `{}`: {error}", place.display())))?;
    Ok(place)
}
