//! One plugin's directory, read.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use loci_core::agent::{AgentDefinition, AgentScope, AgentSource, parse_plugin_agent};
use loci_core::output_style::{OutputStyle, parse_style};
use loci_core::plugin::{
    Declared, Manifest, PluginId, PluginProblem, SKILLS_DIR_MARKETPLACE, is_component_name, parse_manifest,
};
use loci_core::skill::{SkillDefinition, SkillKind, SkillScope, SkillSource, parse_skill};
use serde_json::{Map, Value};

use super::super::definition_files::{markdown_files, read_limited};
use super::{InstallScope, is_within};

/// How many skills a directory may have.
const COUNT_LIMIT: usize = 2_000;
/// What a plugin may set.
const SETTINGS: [&str; 2] = ["agent", "subagentStatusLine"];
/// Files and directories whose contents this version does nothing with.
const UNSUPPORTED: [(&str, &str); 4] = [
    (".lsp.json", "LSP servers"),
    ("workflows", "workflows"),
    ("themes", "themes"),
    ("monitors", "monitors"),
];

/// A plugin, as its files have it: no value is put in yet.
#[derive(Debug, Clone)]
pub struct PluginFolder {
    /// Which one.
    pub id: PluginId,
    /// For whom it is there.
    pub scope: InstallScope,
    /// Its directory, without links.
    pub root: PathBuf,
    /// What its manifest says.
    pub manifest: Manifest,
    /// Skills and commands, by their whole names.
    pub skills: Vec<SkillDefinition>,
    /// Agents, by their whole names.
    pub agents: Vec<AgentDefinition>,
    /// Output styles, by their whole names.
    pub styles: Vec<OutputStyle>,
    /// Hooks, each with its file.
    pub hooks: Vec<(String, Value)>,
    /// MCP servers, each with its file.
    pub servers: Vec<(String, Value)>,
    /// Programs for commands of the session.
    pub bin: Option<PathBuf>,
    /// What it sets where nobody else does.
    pub settings: Map<String, Value>,
    /// Colour themes, by their file names.
    pub themes: Vec<String>,
    /// What this version does nothing with.
    pub unsupported: Vec<&'static str>,
    /// What is wrong with its files.
    pub problems: Vec<PluginProblem>,
}

/// Gives what a marketplace says of a plugin.
type Entry<'a> = &'a dyn Fn() -> Option<Map<String, Value>>;

/// Reads a plugin. One without an id is a flag's, and has the name that its manifest or its directory says. Where it has
/// no manifest, what the marketplace says of it is one.
pub fn read_plugin(
    dir: &Path,
    id: Option<&PluginId>,
    scope: InstallScope,
    entry: Option<Entry<'_>>,
) -> Result<PluginFolder, PluginProblem> {
    let label = id.map_or_else(|| dir.display().to_string(), ToString::to_string);
    let refuse = |kind: &'static str, message: String| PluginProblem::new(&label, kind, message);
    let root = dir
        .canonicalize()
        .map_err(|error| refuse("not_found", format!("`{}` cannot be opened: {error}", dir.display())))?;
    if !root.is_dir() {
        return Err(refuse("not_found", format!("`{}` is no directory", dir.display())));
    }
    let dir_name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let dir_name = id.map_or(dir_name, |id| id.name.clone());
    let names =
        std::fs::read_dir(&root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.file_name()));
    let mut reader = Reader {
        root: root.clone(),
        names: names.collect(),
        plain: HashSet::from([root.clone()]),
        problems: Vec::new(),
    };
    let manifest = reader.manifest(&dir_name, entry).map_err(|why| refuse("invalid_manifest", why))?;
    let (mut manifest, problems) = manifest;
    let id = match id {
        Some(id) => {
            // It is called as it was installed: another name would take the place of another plugin.
            manifest.name.clone_from(&id.name);
            id.clone()
        }
        None if scope == InstallScope::Inline => PluginId::inline(&manifest.name),
        None => PluginId { name: manifest.name.clone(), marketplace: SKILLS_DIR_MARKETPLACE.to_owned() },
    };
    reader.problems.extend(problems);
    let mut plugin = PluginFolder {
        skills: reader.skills(&manifest),
        agents: reader.agents(&manifest),
        styles: reader.styles(&manifest),
        hooks: reader.declared("hooks/hooks.json", &manifest.hooks),
        servers: reader.declared(".mcp.json", &manifest.mcp_servers),
        bin: reader.inside(Path::new("bin")).filter(|dir| dir.is_dir()),
        settings: reader.settings(),
        themes: reader.themes(&manifest),
        unsupported: reader.unsupported(&manifest),
        problems: Vec::new(),
        id,
        scope,
        root,
        manifest,
    };
    let id = &plugin.id;
    plugin.problems = reader.problems.into_iter().map(|it| PluginProblem::new(id, "component", it)).collect();
    Ok(plugin)
}

struct Reader {
    /// The plugin's directory, without links.
    root: PathBuf,
    /// What lies in it: what does not is not looked for.
    names: HashSet<OsString>,
    /// Directories that are known to be reached without a link.
    plain: HashSet<PathBuf>,
    problems: Vec<String>,
}

impl Reader {
    /// Returns a path without links when it is there and lies in the plugin.
    fn inside(&mut self, relative: &Path) -> Option<PathBuf> {
        self.real(&self.root.join(relative))
    }

    fn real(&mut self, path: &Path) -> Option<PathBuf> {
        if !self.may_have(path) {
            return None;
        }
        let metadata = path.symlink_metadata().ok()?;
        if !metadata.is_symlink() && self.is_plain(path.parent()?) {
            return Some(path.to_owned());
        }
        let shown = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
        match path.canonicalize() {
            Ok(real) if is_within(&self.root, &real) => Some(real),
            Ok(_) => {
                self.problems.push(format!("`{shown}` leads out of the plugin; it is left alone"));
                None
            }
            Err(error) => {
                self.problems.push(format!("`{shown}` cannot be opened: {error}"));
                None
            }
        }
    }

    /// Tells whether there may be something at a path, by the first name of it.
    fn may_have(&self, path: &Path) -> bool {
        let first = path.strip_prefix(&self.root).ok().and_then(|inner| inner.components().next());
        match first {
            Some(Component::Normal(name)) => self.names.contains(name),
            _ => true,
        }
    }

    /// Tells whether a directory of the plugin is reached without a link or a step up: then nothing below it has to be
    /// resolved, which would look at every directory above once more.
    fn is_plain(&mut self, dir: &Path) -> bool {
        if self.plain.contains(dir) {
            return true;
        }
        let is_below =
            dir.starts_with(&self.root) && !dir.components().any(|part| part == Component::ParentDir);
        let is_dir = || dir.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let is_plain = is_below && is_dir() && dir.parent().is_some_and(|parent| self.is_plain(parent));
        if is_plain {
            self.plain.insert(dir.to_owned());
        }
        is_plain
    }

    fn read(&mut self, path: &Path) -> Option<String> {
        let real = self.real(path)?;
        match read_limited(&real) {
            Ok(text) => Some(text),
            Err(why) => {
                let shown = path.strip_prefix(&self.root).unwrap_or(path).display().to_string();
                self.problems.push(format!("`{shown}` {why}; it is left out"));
                None
            }
        }
    }

    fn manifest(
        &mut self,
        dir_name: &str,
        entry: Option<Entry<'_>>,
    ) -> Result<(Manifest, Vec<String>), String> {
        let path = self.root.join(".claude-plugin").join("plugin.json");
        if path.symlink_metadata().is_ok() {
            let n_before = self.problems.len();
            let Some(text) = self.read(&path) else {
                return Err(self.problems.split_off(n_before).join("; "));
            };
            return parse_manifest(&text, dir_name);
        }
        match entry.and_then(|entry| entry()) {
            Some(fields) => Manifest::from_fields(&fields, dir_name),
            None => Manifest::of_dir(dir_name).map(|manifest| (manifest, Vec::new())),
        }
    }

    fn skills(&mut self, manifest: &Manifest) -> Vec<SkillDefinition> {
        let mut skills = Vec::new();
        let usual = PathBuf::from("skills");
        let has_usual = self.root.join(&usual).is_dir();
        let dirs: Vec<PathBuf> =
            has_usual.then_some(usual).into_iter().chain(manifest.skills.iter().cloned()).collect();
        if dirs.is_empty() && self.root.join("SKILL.md").is_file() {
            self.take_skill(manifest, &self.root.clone(), &mut skills);
        }
        for relative in dirs {
            let Some(dir) = self.inside(&relative) else {
                self.report_missing("skills", &relative);
                continue;
            };
            if dir.join("SKILL.md").is_file() {
                self.take_skill(manifest, &dir, &mut skills);
                continue;
            }
            for entry in sorted_entries(&dir) {
                if entry.join("SKILL.md").symlink_metadata().is_ok()
                    && let Some(real) = self.real(&entry)
                {
                    self.take_skill(manifest, &real, &mut skills);
                }
            }
        }
        for file in self.markdown("commands", manifest.commands.as_deref()) {
            self.take_command(manifest, &file, &mut skills);
        }
        skills
    }

    fn take_skill(&mut self, manifest: &Manifest, dir: &Path, skills: &mut Vec<SkillDefinition>) {
        let path = dir.join("SKILL.md");
        let Some(text) = self.read(&path) else { return };
        let dir_name = match dir == self.root {
            true => manifest.name.clone(),
            false => dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let mut skill = parse_skill(&text, &dir_name, source(manifest, SkillKind::Skill, path));
        let last = skill.label.clone().filter(|name| is_component_name(name)).unwrap_or(dir_name);
        if !is_component_name(&last) {
            let shown: String = last.escape_debug().take(80).collect();
            self.problems.push(format!("`{shown}` is no name for a skill; it is left out"));
            return;
        }
        skill.name = format!("{}:{last}", manifest.name);
        push_once(&mut self.problems, skills, skill);
    }

    fn take_command(&mut self, manifest: &Manifest, file: &NamedFile, skills: &mut Vec<SkillDefinition>) {
        let Some(text) = self.read(&file.path) else { return };
        let Some(parts) = file.name_parts() else {
            let shown: String = file.name.to_string_lossy().escape_debug().take(80).collect();
            self.problems.push(format!("`{shown}` is no name for a command; it is left out"));
            return;
        };
        let name = format!("{}:{}", manifest.name, parts.join(":"));
        let source = source(manifest, SkillKind::CommandFile, file.path.clone());
        push_once(&mut self.problems, skills, parse_skill(&text, &name, source));
    }

    fn agents(&mut self, manifest: &Manifest) -> Vec<AgentDefinition> {
        let mut agents: Vec<AgentDefinition> = Vec::new();
        for file in self.markdown("agents", manifest.agents.as_deref()) {
            let Some(text) = self.read(&file.path) else { continue };
            let source =
                AgentSource { scope: AgentScope::Plugin, file: Some(file.path.clone()), is_trusted: true };
            let parts = file.name_parts().unwrap_or_default();
            let stem = parts.last().cloned().unwrap_or_default();
            let shown = file.path.strip_prefix(&self.root).unwrap_or(&file.path).display().to_string();
            let mut agent = match parse_plugin_agent(&text, &stem, source) {
                Ok(agent) => agent,
                Err(problem) => {
                    self.problems.push(format!("`{shown}` is no agent: {}", problem.message));
                    continue;
                }
            };
            let name = agent.name.trim().to_owned();
            if !is_component_name(&name) {
                let shown: String = name.escape_debug().take(80).collect();
                self.problems.push(format!("`{shown}` is no name for an agent; it is left out"));
                continue;
            }
            let dirs = parts.iter().rev().skip(1).rev().map(String::as_str);
            let whole = std::iter::once(manifest.name.as_str()).chain(dirs).chain([name.as_str()]);
            agent.name = whole.collect::<Vec<_>>().join(":");
            agents.push(agent);
        }
        agents
    }

    fn styles(&mut self, manifest: &Manifest) -> Vec<OutputStyle> {
        let mut styles = Vec::new();
        for file in self.markdown("output-styles", manifest.output_styles.as_deref()) {
            let Some(text) = self.read(&file.path) else { continue };
            let stem = file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let mut style = parse_style(&text, &stem.unwrap_or_default(), Some(file.path.clone()));
            if style.name.chars().any(|c| c.is_control() || c == ':') {
                self.problems.push("an output style has a name that is none; it is left out".to_owned());
                continue;
            }
            style.name = format!("{}:{}", manifest.name, style.name);
            styles.push(style);
        }
        styles
    }

    /// Returns the Markdown files of the usual directory, or of those that are named in its place.
    fn markdown(&mut self, usual: &str, named: Option<&[PathBuf]>) -> Vec<NamedFile> {
        let usual_path = [PathBuf::from(usual)];
        let is_named = named.is_some();
        let mut files: Vec<NamedFile> = Vec::new();
        for relative in named.unwrap_or(&usual_path) {
            let Some(path) = self.inside(relative) else {
                if is_named {
                    self.report_missing(usual, relative);
                }
                continue;
            };
            if path.is_file() {
                let name = path.file_stem().map(PathBuf::from).unwrap_or_default();
                files.push(NamedFile { path, name });
                continue;
            }
            for file in markdown_files(&path) {
                let name = file.strip_prefix(&path).unwrap_or(&file).with_extension("");
                files.push(NamedFile { path: file, name });
            }
        }
        files
    }

    /// Reads what the usual file and the manifest declare.
    fn declared(&mut self, usual: &str, more: &[Declared]) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let mut files = vec![PathBuf::from(usual)];
        for item in more {
            match item {
                Declared::File(path) if !files.contains(path) => {
                    if self.root.join(path).symlink_metadata().is_err() {
                        self.report_missing(usual, path);
                    }
                    files.push(path.clone());
                }
                Declared::File(_) => {}
                Declared::Inline(value) => all.push(("plugin.json".to_owned(), value.clone())),
            }
        }
        for file in files {
            let path = self.root.join(&file);
            if path.symlink_metadata().is_err() {
                continue;
            }
            let Some(text) = self.read(&path) else { continue };
            match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(value) => all.push((path.display().to_string(), value)),
                Err(error) => {
                    self.problems.push(format!("`{}` is no JSON: {error}; it is left out", file.display()));
                }
            }
        }
        all
    }

    fn settings(&mut self) -> Map<String, Value> {
        let path = self.root.join("settings.json");
        if !self.may_have(&path) {
            return Map::new();
        }
        let Some(text) = self.read(&path) else { return Map::new() };
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&text) else {
            self.problems.push("`settings.json` is no JSON object; it is left out".to_owned());
            return Map::new();
        };
        let others: Vec<String> =
            fields.keys().filter(|key| !SETTINGS.contains(&key.as_str())).cloned().collect();
        for key in others {
            fields.remove(&key);
            let key: String = key.escape_debug().take(80).collect();
            self.problems.push(format!("`settings.json` sets `{key}`, which a plugin may not"));
        }
        fields
    }

    /// Returns the themes of the usual directory, or of those that are named in its place.
    fn themes(&mut self, manifest: &Manifest) -> Vec<String> {
        let usual = [PathBuf::from("themes")];
        let mut names = Vec::new();
        for relative in manifest.themes.as_deref().unwrap_or(&usual) {
            let Some(path) = self.inside(relative) else { continue };
            let files = if path.is_dir() { sorted_entries(&path) } else { vec![path] };
            let themes = files.iter().filter(|file| file.extension().is_some_and(|it| it == "json"));
            names.extend(themes.filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned())));
        }
        names
    }

    fn unsupported(&self, manifest: &Manifest) -> Vec<&'static str> {
        let mut all = manifest.unsupported.clone();
        for (path, words) in UNSUPPORTED {
            if !all.contains(&words) && self.may_have(&self.root.join(path)) {
                all.push(words);
            }
        }
        all
    }

    fn report_missing(&mut self, what: &str, relative: &Path) {
        if self.root.join(relative).symlink_metadata().is_err() {
            self.problems.push(format!(
                "its manifest names `./{}` for {what}, which is not there",
                relative.display()
            ));
        }
    }
}

/// A file, and what it is called by.
struct NamedFile {
    path: PathBuf,
    name: PathBuf,
}

impl NamedFile {
    /// Returns the parts of its name when each is one.
    fn name_parts(&self) -> Option<Vec<String>> {
        let parts = self.name.iter().map(|part| part.to_str().filter(|part| is_component_name(part)));
        parts.map(|part| part.map(str::to_owned)).collect()
    }
}

fn source(manifest: &Manifest, kind: SkillKind, file: PathBuf) -> SkillSource {
    SkillSource {
        nested_in: None,
        scope: SkillScope::Plugin,
        kind,
        file: Some(file),
        plugin: Some(manifest.name.clone()),
        is_trusted: true,
    }
}

fn push_once(problems: &mut Vec<String>, skills: &mut Vec<SkillDefinition>, skill: SkillDefinition) {
    match skills.iter().any(|other| other.name == skill.name) {
        true => problems.push(format!("it has two skills called `{}`; the first counts", skill.name)),
        false => skills.push(skill),
    }
}

pub(super) fn sorted_entries(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut all: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).take(COUNT_LIMIT).collect();
    all.sort();
    all
}
