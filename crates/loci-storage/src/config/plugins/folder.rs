//! One plugin's directory, read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loci_core::agent::{AgentDefinition, AgentScope, AgentSource, parse_plugin_agent};
use loci_core::output_style::{OutputStyle, parse_style};
use loci_core::plugin::{
    Declared, Manifest, PluginId, PluginProblem, PluginTheme, SKILLS_DIR_MARKETPLACE, is_component_name,
    is_release_version, joined_manifest,
};
use loci_core::skill::{SkillDefinition, SkillKind, SkillScope, SkillSource, parse_skill};
use loci_stdx::EntryKind;
use serde_json::{Map, Value};

use super::InstallScope;
use super::contained::ContainedDir;

/// What a plugin may set.
const SETTINGS: [&str; 2] = ["agent", "subagentStatusLine"];
/// Files and directories whose contents this version does nothing with.
const UNSUPPORTED: [(&str, &str); 3] =
    [(".lsp.json", "LSP servers"), ("workflows", "workflows"), ("monitors", "monitors")];

/// A plugin, as its files have it: no value is put in yet.
#[derive(Debug, Clone)]
pub struct PluginFolder {
    /// Which one.
    pub id: PluginId,
    /// For whom it is there.
    pub scope: InstallScope,
    /// Its directory, without links.
    pub root: PathBuf,
    /// The version that it was installed as, where it was: that of the tag that was fetched, whatever its manifest says.
    pub installed_version: Option<String>,
    /// What its manifest says.
    pub manifest: Manifest,
    /// Skills and commands, by their whole names.
    pub skills: Vec<Arc<SkillDefinition>>,
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
    /// Colour themes.
    pub themes: Vec<PluginTheme>,
    /// What this version does nothing with.
    pub unsupported: Vec<&'static str>,
    /// Usual directories that are there and not used, since the manifest names others in their place.
    pub unused: Vec<&'static str>,
    /// What is wrong with its files.
    pub problems: Vec<PluginProblem>,
    /// The digest of what it may run, where it was made as its files were read.
    pub read_digest: Option<String>,
}

/// Gives what a marketplace says of a plugin.
type Entry<'a> = &'a dyn Fn() -> Option<Map<String, Value>>;

/// Reads a plugin. One without an id is a flag's, and has the name that its manifest or its directory says. What the
/// marketplace says of it adds to its manifest, or is one.
pub fn read_plugin(
    dir: &Path,
    id: Option<&PluginId>,
    scope: InstallScope,
    entry: Option<Entry<'_>>,
) -> Result<PluginFolder, PluginProblem> {
    let label = id.map_or_else(|| dir.display().to_string(), ToString::to_string);
    let refuse = |kind: &'static str, message: String| PluginProblem::new(&label, kind, message);
    let files = match ContainedDir::open(dir) {
        Ok(files) => files,
        Err(_) if dir.exists() && !dir.is_dir() => {
            return Err(refuse("not_found", format!("`{}` is no directory", dir.display())));
        }
        Err(error) => {
            return Err(refuse("not_found", format!("`{}` cannot be opened: {error}", dir.display())));
        }
    };
    let root = files.root().to_owned();
    let dir_name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let dir_name = id.map_or(dir_name, |id| id.name.clone());
    let mut reader = Reader { root: root.clone(), files };
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
    reader.files.problems.extend(problems);
    let mut plugin = PluginFolder {
        skills: reader.skills(&manifest),
        agents: reader.agents(&manifest),
        styles: reader.styles(&manifest),
        hooks: reader.declared("hooks/hooks.json", &manifest.hooks),
        servers: reader.declared(".mcp.json", &manifest.mcp_servers),
        bin: reader.bin(),
        settings: reader.settings(),
        themes: reader.themes(&manifest),
        unsupported: reader.unsupported(&manifest),
        unused: reader.unused(&manifest),
        problems: Vec::new(),
        read_digest: None,
        id,
        scope,
        root,
        installed_version: None,
        manifest,
    };
    let id = &plugin.id;
    plugin.problems =
        reader.files.problems.into_iter().map(|it| PluginProblem::new(id, "component", it)).collect();
    Ok(plugin)
}

impl PluginFolder {
    /// Returns the version that others may rely on: what it was installed as, where that is a version and no commit, and
    /// what its manifest says otherwise.
    pub fn version(&self) -> Option<&str> {
        let is_release = |text: &&str| is_release_version(text);
        self.installed_version.as_deref().filter(is_release).or(self.manifest.version.as_deref())
    }

    /// Tells whether it brings nothing at all.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
            && self.agents.is_empty()
            && self.styles.is_empty()
            && self.hooks.is_empty()
            && self.servers.is_empty()
            && self.bin.is_none()
            && self.settings.is_empty()
            && self.themes.is_empty()
            && self.unsupported.is_empty()
            && self.problems.is_empty()
    }
}

struct Reader {
    /// The plugin's directory, without links.
    root: PathBuf,
    files: ContainedDir,
}

impl Reader {
    fn problem(&mut self, text: impl Into<String>) {
        self.files.problems.push(text.into());
    }

    fn manifest(
        &mut self,
        dir_name: &str,
        entry: Option<Entry<'_>>,
    ) -> Result<(Manifest, Vec<String>), String> {
        let own = self.files.read_if_there(&self.root.join(".claude-plugin/plugin.json"));
        let own = own.transpose()?;
        let entry = entry.and_then(|entry| entry());
        joined_manifest(own.as_deref(), entry.as_ref(), dir_name)
    }

    fn skills(&mut self, manifest: &Manifest) -> Vec<Arc<SkillDefinition>> {
        let mut skills = Vec::new();
        let usual = PathBuf::from("skills");
        let is_there = |path: &PathBuf| self.root.join(path).symlink_metadata().is_ok();
        let is_shared = manifest.has_only_skills && manifest.skills.iter().any(is_there);
        let has_usual = !is_shared
            && match self.files.entry(&usual) {
                Some(EntryKind::Link) => self.files.is_dir(&self.root.join(&usual)),
                kind => kind == Some(EntryKind::Dir),
            };
        let dirs: Vec<PathBuf> =
            has_usual.then_some(usual).into_iter().chain(manifest.skills.iter().cloned()).collect();
        if dirs.is_empty() {
            self.take_skill(manifest, &self.root.clone(), &mut skills);
        }
        for relative in dirs {
            let Some(dir) = self.files.inside(&relative) else {
                self.report_missing("skills", &relative);
                continue;
            };
            let entries = self.files.entries(&dir);
            if entries.iter().any(|(name, kind)| name == "SKILL.md" && *kind != EntryKind::Dir) {
                self.take_skill(manifest, &dir, &mut skills);
                continue;
            }
            for (name, kind) in entries {
                let path = dir.join(name);
                // Only a link may lead elsewhere.
                if kind == EntryKind::Dir {
                    self.take_skill(manifest, &path, &mut skills);
                } else if kind == EntryKind::Link
                    && path.join("SKILL.md").symlink_metadata().is_ok()
                    && let Some(real) = self.files.real(&path)
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

    fn take_skill(&mut self, manifest: &Manifest, dir: &Path, skills: &mut Vec<Arc<SkillDefinition>>) {
        let path = dir.join("SKILL.md");
        let Some(text) = self.files.read(&path) else { return };
        let dir_name = match dir.as_os_str() == self.root.as_os_str() {
            true => manifest.name.clone(),
            false => dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        };
        let mut skill = parse_skill(&text, &dir_name, source(manifest, SkillKind::Skill, path));
        let last = skill.label.clone().filter(|name| is_component_name(name)).unwrap_or(dir_name);
        if !is_component_name(&last) {
            let shown: String = last.escape_debug().take(80).collect();
            self.problem(format!("`{shown}` is no name for a skill; it is left out"));
            return;
        }
        skill.name = format!("{}:{last}", manifest.name);
        push_once(&mut self.files.problems, skills, skill);
    }

    fn take_command(
        &mut self,
        manifest: &Manifest,
        file: &NamedFile,
        skills: &mut Vec<Arc<SkillDefinition>>,
    ) {
        let Some(text) = self.files.read(&file.path) else { return };
        let Some(parts) = file.name_parts() else {
            let shown: String = file.name.to_string_lossy().escape_debug().take(80).collect();
            self.problem(format!("`{shown}` is no name for a command; it is left out"));
            return;
        };
        let name = format!("{}:{}", manifest.name, parts.join(":"));
        let source = source(manifest, SkillKind::CommandFile, file.path.clone());
        push_once(&mut self.files.problems, skills, parse_skill(&text, &name, source));
    }

    fn agents(&mut self, manifest: &Manifest) -> Vec<AgentDefinition> {
        let mut agents: Vec<AgentDefinition> = Vec::new();
        for file in self.markdown("agents", manifest.agents.as_deref()) {
            let Some(text) = self.files.read(&file.path) else { continue };
            let source =
                AgentSource { scope: AgentScope::Plugin, file: Some(file.path.clone()), is_trusted: true };
            let parts = file.name_parts().unwrap_or_default();
            let stem = parts.last().cloned().unwrap_or_default();
            let mut agent = match parse_plugin_agent(&text, &stem, source) {
                Ok(agent) => agent,
                Err(problem) => {
                    let shown = file.path.strip_prefix(&self.root).unwrap_or(&file.path).display();
                    self.problem(format!("`{shown}` is no agent: {}", problem.message));
                    continue;
                }
            };
            let name = agent.name.trim().to_owned();
            if !is_component_name(&name) {
                let shown: String = name.escape_debug().take(80).collect();
                self.problem(format!("`{shown}` is no name for an agent; it is left out"));
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
            let Some(text) = self.files.read(&file.path) else { continue };
            let stem = file.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let mut style = parse_style(&text, &stem.unwrap_or_default(), Some(file.path.clone()));
            if style.name.chars().any(|c| c.is_control() || c == ':') {
                self.problem("an output style has a name that is none; it is left out".to_owned());
                continue;
            }
            style.name = format!("{}:{}", manifest.name, style.name);
            styles.push(style);
        }
        styles
    }

    /// Returns the Markdown files of the usual directory, or of those that are named in its place.
    fn markdown(&mut self, usual: &str, named: Option<&[PathBuf]>) -> Vec<NamedFile> {
        if named.is_none() && self.files.entry(usual).is_none() {
            return Vec::new();
        }
        let usual_path = [PathBuf::from(usual)];
        let is_named = named.is_some();
        let mut files: Vec<NamedFile> = Vec::new();
        for relative in named.unwrap_or(&usual_path) {
            let Some(path) = self.files.inside(relative) else {
                if is_named {
                    self.report_missing(usual, relative);
                }
                continue;
            };
            if !self.files.is_dir(&path) {
                let name = path.file_stem().map(PathBuf::from).unwrap_or_default();
                files.push(NamedFile { path, name });
                continue;
            }
            for file in self.files.markdown_files(&path) {
                let name = file.strip_prefix(&path).unwrap_or(&file).with_extension("");
                files.push(NamedFile { path: file, name });
            }
        }
        files
    }

    /// Reads what the usual file and the manifest declare.
    fn declared(&mut self, usual: &str, more: &[Declared]) -> Vec<(String, Value)> {
        let mut all = Vec::new();
        let first = usual.split('/').next().unwrap_or(usual);
        if more.is_empty() && self.files.entry(first).is_none() {
            return all;
        }
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
            let Some(text) = self.files.read(&path) else { continue };
            match serde_json::from_str(text.trim_start_matches('\u{feff}')) {
                Ok(value) => all.push((path.display().to_string(), value)),
                Err(error) => {
                    self.problem(format!("`{}` is no JSON: {error}; it is left out", file.display()));
                }
            }
        }
        all
    }

    /// Returns the directory of its programs.
    fn bin(&mut self) -> Option<PathBuf> {
        self.files.entry("bin")?;
        self.files.inside(Path::new("bin")).filter(|dir| self.files.is_dir(dir))
    }

    fn settings(&mut self) -> Map<String, Value> {
        if self.files.entry("settings.json").is_none() {
            return Map::new();
        }
        let path = self.root.join("settings.json");
        let Some(text) = self.files.read(&path) else { return Map::new() };
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&text) else {
            self.problem("`settings.json` is no JSON object; it is left out".to_owned());
            return Map::new();
        };
        let others: Vec<String> =
            fields.keys().filter(|key| !SETTINGS.contains(&key.as_str())).cloned().collect();
        for key in others {
            fields.remove(&key);
            let key: String = key.escape_debug().take(80).collect();
            self.problem(format!("`settings.json` sets `{key}`, which a plugin may not"));
        }
        fields
    }

    /// Returns the themes of the usual directory, or of those that are named in its place.
    fn themes(&mut self, manifest: &Manifest) -> Vec<PluginTheme> {
        let mut themes = Vec::new();
        if manifest.themes.is_none() && self.files.entry("themes").is_none() {
            return themes;
        }
        let usual = [PathBuf::from("themes")];
        for relative in manifest.themes.as_deref().unwrap_or(&usual) {
            let Some(path) = self.files.inside(relative) else {
                if manifest.themes.is_some() {
                    self.report_missing("themes", relative);
                }
                continue;
            };
            let files = match self.files.is_dir(&path) {
                true => self.files.entries(&path).into_iter().map(|(name, _)| path.join(name)).collect(),
                false => vec![path],
            };
            for file in files.iter().filter(|file| file.extension().is_some_and(|it| it == "json")) {
                let stem =
                    file.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_component_name(stem));
                let Some(stem) = stem else {
                    self.problem("a theme has a name that is none; it is left out");
                    continue;
                };
                let slug = format!("{}:{stem}", manifest.name);
                themes.extend(self.files.read(file).map(|text| PluginTheme { slug, text }));
            }
        }
        themes
    }

    fn unsupported(&self, manifest: &Manifest) -> Vec<&'static str> {
        let mut all = manifest.unsupported.clone();
        for (path, words) in UNSUPPORTED {
            if !all.contains(&words) && self.files.entry(path).is_some() {
                all.push(words);
            }
        }
        all
    }

    fn unused(&self, manifest: &Manifest) -> Vec<&'static str> {
        let places = [
            ("commands", &manifest.commands),
            ("agents", &manifest.agents),
            ("output-styles", &manifest.output_styles),
            ("themes", &manifest.themes),
        ];
        let is_unused = |usual: &str, named: &[PathBuf]| {
            self.files.may_have(&self.root.join(usual))
                && !named.iter().any(|path| path.starts_with(usual) || path.as_os_str().is_empty())
        };
        let unused = places
            .into_iter()
            .filter(|(usual, named)| named.as_deref().is_some_and(|named| is_unused(usual, named)));
        unused.map(|(usual, _)| usual).collect()
    }

    fn report_missing(&mut self, what: &str, relative: &Path) {
        if self.root.join(relative).symlink_metadata().is_err() {
            self.problem(format!(
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

fn push_once(problems: &mut Vec<String>, skills: &mut Vec<Arc<SkillDefinition>>, skill: SkillDefinition) {
    match skills.iter().any(|other| other.name == skill.name) {
        true => problems.push(format!("it has two skills called `{}`; the first counts", skill.name)),
        false => skills.push(Arc::new(skill)),
    }
}
