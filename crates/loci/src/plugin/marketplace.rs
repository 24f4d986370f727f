//! `loci plugin marketplace`: lists of plugins, added, looked at, brought up to date and taken away.

use std::path::{Path, PathBuf};

use loci_app::UserError;
use loci_app::plugins::{extra_marketplaces, marketplace_policy, plugins_dir};
use loci_core::plugin::{PluginId, is_plugin_name};
use loci_storage::config::{
    PluginState, clone_repository, copy_plugin, edit_plugin_file, marketplace_manifest, read_plugin_state,
};
use serde_json::{Value, json};

use super::source::{Fetch, marketplace_fetch, parse_marketplace, reserved_refusal};
use crate::config::{SettingsContext, pretty};

/// The file that lists marketplaces.
const FILE: &str = "known_marketplaces.json";

#[derive(Debug, clap::Args)]
pub(super) struct MarketplaceArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Add a marketplace: a directory, a file, `owner/repository` or the address of a repository.
    Add {
        /// Where it is; `#branch` may follow a repository.
        source: String,
    },
    /// List the marketplaces that are known.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Fetch a marketplace again; all of them, where none is named.
    Update {
        /// Its name.
        name: Option<String>,
    },
    /// Forget a marketplace; what was installed from it stays.
    #[command(visible_alias = "rm")]
    Remove {
        /// Its name.
        name: String,
    },
}

pub(super) fn run(ctx: &SettingsContext, args: &MarketplaceArgs) -> Result<String, UserError> {
    match &args.verb {
        Verb::Add { source } => {
            let source = parse_marketplace(&ctx.env, source).map_err(UserError::new)?;
            take_up(ctx, &source, None)
        }
        Verb::List { json } => Ok(list(ctx, *json)),
        Verb::Update { name } => update(ctx, name.as_deref()),
        Verb::Remove { name } => remove(ctx, name),
    }
}

/// Fetches a marketplace and writes it down; the name must be `expected`, where there is one.
fn take_up(ctx: &SettingsContext, source: &Value, expected: Option<&str>) -> Result<String, UserError> {
    if let Some(why) = marketplace_policy(&ctx.loaded.merged).refusal(Some(source)) {
        return Err(UserError::new(format!("It cannot be used: {why}")));
    }
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let beside = tempfile_dir(&dir)?;
    let fetched = fetch(ctx, source, &beside);
    let taken = fetched.and_then(|place| write_down(ctx, source, expected, &place, &dir));
    std::fs::remove_dir_all(&beside).unwrap_or_default();
    taken
}

/// Adds the marketplace of a plugin when only settings know it (`extraKnownMarketplaces`); true when it did.
pub(super) fn add_named_marketplace(
    ctx: &SettingsContext,
    state: &PluginState,
    plugin: &str,
) -> Result<bool, UserError> {
    let Some(id) = PluginId::parse(plugin).filter(|id| state.marketplace(&id.marketplace).is_none()) else {
        return Ok(false);
    };
    let extra = extra_marketplaces(&ctx.loaded.merged);
    let Some((name, source)) = extra.into_iter().find(|(name, _)| *name == id.marketplace) else {
        return Ok(false);
    };
    take_up(ctx, &absolute(ctx, source), Some(&name))?;
    Ok(true)
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

/// Returns where a marketplace lies once it is fetched.
fn fetch(ctx: &SettingsContext, source: &Value, beside: &Path) -> Result<PathBuf, UserError> {
    match marketplace_fetch(source).map_err(UserError::new)? {
        Fetch::Local(path) => Ok(path),
        Fetch::Git(git, _) => {
            let into = beside.join("repository");
            clone_repository(&ctx.env, &git, &into)
                .map_err(|why| UserError::new(format!("Failed to fetch `{}`: {why}", git.url)))?;
            Ok(into)
        }
    }
}

fn write_down(
    ctx: &SettingsContext,
    source: &Value,
    expected: Option<&str>,
    place: &Path,
    dir: &Path,
) -> Result<String, UserError> {
    let (catalogue, _) = marketplace_manifest(place).map_err(UserError::new)?;
    let name = catalogue.get("name").and_then(Value::as_str).unwrap_or_default();
    if !is_plugin_name(name) {
        return Err(UserError::new(format!("`{}` is no name for a marketplace", name.escape_debug())));
    }
    if let Some(why) = reserved_refusal(name, source) {
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
        copy_plugin(place, &location).map_err(UserError::new)?;
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
    Ok(format!("{name}: {} in {}\n", loci_stdx::counted(n as u64, "plugin", "plugins"), location.display()))
}

fn list(ctx: &SettingsContext, is_json: bool) -> String {
    let (state, problems) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    if is_json {
        let rows: Vec<Value> = state
            .marketplaces
            .iter()
            .map(|it| json!({"name": it.name, "source": it.source, "installLocation": it.location, "lastUpdated": it.updated}))
            .collect();
        return pretty(&json!(rows));
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

fn update(ctx: &SettingsContext, name: Option<&str>) -> Result<String, UserError> {
    let (state, _) = read_plugin_state(&plugins_dir(&ctx.env, &ctx.home));
    let mut out = String::new();
    for known in state.marketplaces.iter().filter(|known| name.is_none_or(|name| name == known.name)) {
        out += &take_up(ctx, &known.source, Some(&known.name))?;
    }
    match (out.is_empty(), name) {
        (true, Some(name)) => Err(unknown(name)),
        (true, None) => Ok("No marketplace is known\n".to_owned()),
        (false, _) => Ok(out),
    }
}

fn remove(ctx: &SettingsContext, name: &str) -> Result<String, UserError> {
    let dir = plugins_dir(&ctx.env, &ctx.home);
    let (state, _) = read_plugin_state(&dir);
    let known = state.marketplace(name).ok_or_else(|| unknown(name))?;
    edit_plugin_file(&dir, FILE, |fields| {
        fields.remove(name);
    })
    .map_err(UserError::new)?;
    // Only a copy of ours goes; it can be fetched again.
    if is_plugin_name(name) && known.location == dir.join("marketplaces").join(name) {
        std::fs::remove_dir_all(&known.location).map_err(|error| {
            UserError::new(format!("Failed to remove `{}`: {error}", known.location.display()))
        })?;
    }
    let mut left: Vec<String> =
        state.installed.iter().filter(|it| it.id.marketplace == name).map(|it| it.id.to_string()).collect();
    left.sort();
    left.dedup();
    let left =
        if left.is_empty() { String::new() } else { format!("Still installed: {}\n", left.join(", ")) };
    Ok(format!("{name} is forgotten\n{left}"))
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
