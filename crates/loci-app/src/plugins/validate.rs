//! What is wrong with the directory of a plugin, of a marketplace, or of skills, agents and commands.

use std::path::{Path, PathBuf};

use loci_core::plugin::{
    PluginId, PluginVariables, catalogue_oddities, catalogue_problems, manifest_oddities, plugin_hooks,
    plugin_servers, unread_field_problems,
};
use loci_stdx::Env;
use loci_storage::config::{InstallScope, PluginFolder, marketplace_manifest, read_plugin};
use serde_json::{Map, Value};

use super::details::{describe, one_line};
use super::source::{Fetch, plugin_fetch};
use crate::user_error::UserError;

/// What was found out.
#[derive(Default)]
struct Report {
    text: String,
    /// What keeps something from working.
    problems: Vec<String>,
    /// What is only odd.
    oddities: Vec<String>,
}

impl Report {
    fn finish(mut self, is_strict: bool) -> (String, u8) {
        let line = |mark: char, text: &String| format!("{mark} {}\n", one_line(text));
        self.text += &self.problems.iter().map(|problem| line('!', problem)).collect::<String>();
        self.text += &self.oddities.iter().map(|oddity| line('?', oddity)).collect::<String>();
        let is_wrong = !self.problems.is_empty() || (is_strict && !self.oddities.is_empty());
        self.text += if is_wrong { "" } else { "Nothing is wrong with it\n" };
        (self.text, u8::from(is_wrong))
    }
}

/// Checks a directory; returns what to say, and the exit code of whoever asked. What is only odd is wrong, too, when it `is_strict`.
pub(super) fn validate_plugin(
    env: &Env,
    path: Option<&Path>,
    is_strict: bool,
) -> Result<(String, u8), UserError> {
    let dir = env
        .cwd
        .join(loci_core::path::expand_home(&env.home, &path.unwrap_or(Path::new("")).to_string_lossy()));
    let is_marketplace = dir.join(".claude-plugin/marketplace.json").exists();
    let has_manifest = dir.join(".claude-plugin/plugin.json").exists();
    if let Some((base, parts)) = definitions(&dir).filter(|_| !is_marketplace && !has_manifest) {
        return check_definitions(&base, &parts);
    }
    let mut report = Report::default();
    if is_marketplace {
        check_marketplace(&dir, &mut report)?;
    }
    if !is_marketplace || has_manifest {
        check_plugin(&dir, has_manifest, &mut report)?;
    }
    Ok(report.finish(is_strict))
}

/// Checks a catalogue, and the manifests of those of its plugins that lie beside it.
fn check_marketplace(dir: &Path, report: &mut Report) -> Result<(), UserError> {
    let (catalogue, root) = marketplace_manifest(dir).map_err(UserError::new)?;
    report.problems.extend(catalogue_problems(&catalogue));
    let entries = catalogue.get("plugins").and_then(Value::as_array).cloned().unwrap_or_default();
    let name = catalogue.get("name").and_then(Value::as_str).unwrap_or_default();
    report.text += &format!("marketplace {} with {} plugins\n", one_line(name), entries.len());
    report.oddities.extend(catalogue_oddities(&catalogue));
    for (idx, entry) in entries.iter().filter_map(Value::as_object).enumerate() {
        let place = match plugin_fetch(&catalogue, entry, &root) {
            Ok(Fetch::Local(place)) => place,
            Ok(Fetch::Git(..)) => continue,
            Err(why) => {
                report.problems.push(format!("plugins[{idx}]: {why}"));
                continue;
            }
        };
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        let Some(id) = PluginId::parse(&format!("{name}@marketplace")) else { continue };
        let own = || Some(entry.clone());
        match read_plugin(&place, Some(&id), InstallScope::Inline, Some(&own)) {
            Err(problem) => report.problems.push(format!("plugins[{idx}] plugin.json: {}", problem.message)),
            Ok(folder) => {
                let listed = entry.get("version").and_then(Value::as_str);
                let version = folder.manifest.version.as_deref();
                if let (Some(listed), Some(version)) = (listed, version)
                    && listed != version
                {
                    let why = format!(
                        "plugins[{idx}] says version {listed}, and its manifest {version}, which counts"
                    );
                    report.oddities.push(why);
                }
            }
        }
    }
    Ok(())
}

fn check_plugin(dir: &Path, has_manifest: bool, report: &mut Report) -> Result<(), UserError> {
    let folder = read_plugin(dir, None, InstallScope::Inline, None)
        .map_err(|problem| UserError::new(problem.to_string()))?;
    match has_manifest {
        true => check_fields(&manifest_fields(dir), report),
        false if folder.is_empty() => {
            return Err(UserError::new(format!("There is no manifest in `{}`", dir.display())).hint(
                "A plugin has `.claude-plugin/plugin.json`, a marketplace `.claude-plugin/marketplace.json`. To check \
                 definitions alone, name their directory: skills, agents or commands.",
            ));
        }
        false => report.text += "It has no .claude-plugin/plugin.json; the name of the directory counts\n",
    }
    if dir.join("CLAUDE.md").exists() {
        report.oddities.push(
            "its `CLAUDE.md` is read by nobody: what the model is to know belongs in a skill".to_owned(),
        );
    }
    report.text += &describe(&folder);
    let none = PluginVariables::default();
    report.problems.extend(folder.problems.iter().map(|problem| problem.message.clone()));
    check_notes(&folder, report);
    report.problems.extend(folder.hooks.iter().flat_map(|(_, value)| plugin_hooks(value, &none).1));
    let name = &folder.id.name;
    report.problems.extend(folder.servers.iter().flat_map(|(_, value)| plugin_servers(value, name, &none).1));
    Ok(())
}

/// Takes what the front matter of skills, commands and agents says in vain: where it cannot be read, none of it counts.
fn check_notes(folder: &PluginFolder, report: &mut Report) {
    let skills = folder.skills.iter().map(|it| (&it.source.file, &it.notes));
    let agents = folder.agents.iter().map(|it| (&it.source.file, &it.notes));
    for (file, notes) in skills.chain(agents) {
        let file = file.as_deref().unwrap_or(Path::new(""));
        let file = file.strip_prefix(&folder.root).unwrap_or(file).display();
        for note in notes {
            let list = match note.starts_with("the front matter cannot be read") {
                true => &mut report.problems,
                false => &mut report.oddities,
            };
            list.push(format!("`{file}`: {note}"));
        }
    }
}

/// Returns the fields of a manifest; none where it cannot be read, which is said elsewhere.
fn manifest_fields(dir: &Path) -> Map<String, Value> {
    let text = loci_stdx::read_regular_to_string(dir.join(".claude-plugin/plugin.json")).unwrap_or_default();
    serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default()
}

fn check_fields(fields: &Map<String, Value>, report: &mut Report) {
    report.problems.extend(unread_field_problems(fields));
    report.oddities.extend(unknown_fields(fields));
    report.oddities.extend(manifest_oddities(fields));
}

/// Says which fields of a manifest mean nothing, and what may have been meant.
fn unknown_fields(fields: &Map<String, Value>) -> Vec<String> {
    let unknown = fields.keys().filter(|key| !FIELDS.contains(&key.as_str()));
    unknown
        .map(|key| {
            let shown: String = key.escape_debug().take(80).collect();
            let near = near_field(key);
            let hint = near.map(|field| format!("; did you mean `{field}`?")).unwrap_or_default();
            format!("the field `{shown}` of its manifest means nothing here{hint}")
        })
        .collect()
}

/// Returns the field that a word is but for its case, its separators, and one or two letters.
fn near_field(word: &str) -> Option<&'static str> {
    let plain = |text: &str| -> Vec<char> {
        text.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect()
    };
    // A word that nobody can have meant for a field is not compared with all of them.
    let word: Vec<char> = plain(word.get(..40).unwrap_or(word)).into_iter().take(40).collect();
    let most = if word.len() < 5 { 1 } else { 2 };
    let distances = FIELDS.iter().map(|field| (strsim::generic_levenshtein(&plain(field), &word), *field));
    distances.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance <= most).map(|it| it.1)
}

/// The fields of a manifest.
const FIELDS: [&str; 26] = [
    "$schema",
    "name",
    "displayName",
    "version",
    "description",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "metadata",
    "defaultEnabled",
    "skills",
    "commands",
    "agents",
    "workflows",
    "hooks",
    "mcpServers",
    "outputStyles",
    "lspServers",
    "experimental",
    "themes",
    "monitors",
    "userConfig",
    "channels",
    "dependencies",
];

/// What a directory of definitions is called.
const PARTS: [&str; 3] = ["skills", "agents", "commands"];

/// Returns where definitions lie when a directory without a manifest holds them, and which are meant: it is one of their
/// directories itself, or has them.
fn definitions(dir: &Path) -> Option<(PathBuf, Vec<&'static str>)> {
    let dir = dir.canonicalize().ok()?;
    let name = dir.file_name()?.to_str()?;
    if let Some(part) = PARTS.into_iter().find(|part| *part == name) {
        return Some((dir.parent()?.to_owned(), vec![part]));
    }
    let base = if name == ".claude" { dir } else { dir.join(".claude") };
    let parts: Vec<&str> = PARTS.into_iter().filter(|part| base.join(part).is_dir()).collect();
    (!parts.is_empty()).then_some((base, parts))
}

/// Says what is wrong with definitions. They are read like those of a plugin, and nothing else there is.
fn check_definitions(base: &Path, parts: &[&str]) -> Result<(String, u8), UserError> {
    let id = PluginId::inline("definitions");
    let folder = read_plugin(base, Some(&id), InstallScope::Inline, None)
        .map_err(|problem| UserError::new(problem.to_string()))?;
    let place = |file: Option<&PathBuf>| {
        let file = file?.strip_prefix(&folder.root).ok()?;
        parts.iter().any(|part| file.starts_with(part)).then(|| file.display().to_string())
    };
    let skills = folder.skills.iter().filter_map(|it| Some((place(it.source.file.as_ref())?, &it.notes)));
    let agents = folder.agents.iter().filter_map(|it| Some((place(it.source.file.as_ref())?, &it.notes)));
    let read: Vec<(String, &Vec<String>)> = skills.chain(agents).collect();
    let is_meant = |message: &&String| parts.iter().any(|part| message.starts_with(&format!("`{part}/")));
    let messages = folder.problems.iter().map(|problem| &problem.message).filter(is_meant).cloned();
    let notes =
        read.iter().flat_map(|(file, notes)| notes.iter().map(move |note| format!("`{file}`: {note}")));
    let problems: Vec<String> = messages.chain(notes).collect();
    let mut out = format!("{} in {}: {} files\n", parts.join(", "), folder.root.display(), read.len());
    out += &problems.iter().map(|problem| format!("! {}\n", one_line(problem))).collect::<String>();
    out += if problems.is_empty() { "Nothing is wrong with them\n" } else { "" };
    Ok((out, u8::from(!problems.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_is_suggested_for_a_word_that_is_one_or_two_letters_off() {
        for (word, expected) in [
            ("auther", Some("author")),
            ("mcp_servers", Some("mcpServers")),
            ("command", Some("commands")),
            ("Keyword", Some("keywords")),
            ("depedencies", Some("dependencies")),
            ("nam", Some("name")),
            ("publisher", None),
            ("main", None),
            ("x", None),
            ("engines", None),
        ] {
            let near = near_field(word);
            assert_eq!(near, expected, "{word}");
        }
        assert_eq!(near_field(&"é".repeat(100_000)), None);
    }
}
