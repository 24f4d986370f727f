//! `plugin.json`: the name of a plugin, and where its parts lie when that is not the usual place.

use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::id::is_plugin_name;
use super::options::{OptionSpec, parse_options};

/// What a manifest says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Manifest {
    /// What the plugin is called.
    pub name: String,
    /// What people are shown in its place.
    pub display_name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// Whether it is on where nobody says.
    pub is_enabled_by_default: bool,
    /// Directories of skills, besides the usual one.
    pub skills: Vec<PathBuf>,
    /// Whether those are all: several plugins share the root of a marketplace, and its usual directory is nobody's.
    pub has_only_skills: bool,
    /// Command files, or directories of them, in the place of the usual one.
    pub commands: Option<Vec<PathBuf>>,
    /// Agents, in the place of the usual directory.
    pub agents: Option<Vec<PathBuf>>,
    /// Output styles, in the place of the usual directory.
    pub output_styles: Option<Vec<PathBuf>>,
    /// Hooks, besides those of the usual file.
    pub hooks: Vec<Declared>,
    /// MCP servers, besides those of the usual file.
    pub mcp_servers: Vec<Declared>,
    /// Options that people may set.
    pub options: Vec<OptionSpec>,
    /// Plugins that it needs.
    pub dependencies: Vec<Dependency>,
    /// Colour themes, in the place of the usual directory.
    pub themes: Option<Vec<PathBuf>>,
    /// Parts that this version does nothing with, in the words of the manifest.
    pub unsupported: Vec<&'static str>,
}

/// Something that is in a file, or written in the manifest itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Declared {
    /// The file.
    File(PathBuf),
    /// What it says.
    Inline(Value),
}

/// A plugin that another needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// Its marketplace, where that is not the plugin's own.
    pub marketplace: Option<String>,
    /// Which versions are meant, as written.
    pub version: Option<String>,
}

/// Parts that are known and not supported: the field, and its name for people.
const UNSUPPORTED: [(&str, &str); 4] = [
    ("lspServers", "LSP servers"),
    ("workflows", "workflows"),
    ("channels", "channels"),
    ("monitors", "monitors"),
];

/// Reads a manifest; the name of the directory counts where it has none. Returns it with what is wrong with its fields;
/// the error is what keeps the plugin from being one.
pub fn parse_manifest(text: &str, dir_name: &str) -> Result<(Manifest, Vec<String>), String> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("its manifest is no JSON: {error}"))?;
    let Value::Object(fields) = value else { return Err("its manifest is no object".to_owned()) };
    Manifest::from_fields(&fields, dir_name)
}

impl Manifest {
    /// The manifest of a directory that has none.
    pub fn of_dir(dir_name: &str) -> Result<Self, String> {
        Ok(Self::from_fields(&Map::new(), dir_name)?.0)
    }

    /// Reads the fields of a manifest, or of an entry of a marketplace.
    pub fn from_fields(fields: &Map<String, Value>, dir_name: &str) -> Result<(Self, Vec<String>), String> {
        let mut reader = Reader { fields, problems: Vec::new() };
        let name = match fields.get("name") {
            None => dir_name.to_owned(),
            Some(Value::String(name)) => name.trim().to_owned(),
            Some(_) => return Err("its `name` is no text".to_owned()),
        };
        if !is_plugin_name(&name) {
            return Err(format!(
                "`{}` is no name for a plugin: letters, digits, `-`, `_` and `.` make one",
                name.escape_debug().take(80).collect::<String>()
            ));
        }
        let (options, option_problems) = parse_options(fields.get("userConfig"));
        let manifest = Self {
            name,
            display_name: reader.text("displayName"),
            version: reader.text("version"),
            description: reader.text("description"),
            author: reader.author(),
            is_enabled_by_default: reader.switch("defaultEnabled").unwrap_or(true),
            skills: reader.paths("skills").unwrap_or_default(),
            has_only_skills: false,
            commands: reader.paths("commands"),
            agents: reader.paths("agents"),
            output_styles: reader.paths("outputStyles"),
            hooks: reader.declared("hooks"),
            mcp_servers: reader.declared("mcpServers"),
            options,
            dependencies: reader.dependencies(),
            themes: reader.experimental_paths("themes"),
            unsupported: unsupported(fields),
        };
        let mut problems = reader.problems;
        problems.extend(option_problems);
        Ok((manifest, problems))
    }
}

fn unsupported(fields: &Map<String, Value>) -> Vec<&'static str> {
    let experimental = fields.get("experimental").and_then(Value::as_object);
    let has = |key: &str| fields.contains_key(key) || experimental.is_some_and(|it| it.contains_key(key));
    UNSUPPORTED.iter().filter(|(key, _)| has(key)).map(|(_, words)| *words).collect()
}

/// Reads a path of a manifest: relative, beginning with `./`, without a step out. `.` and `./` are the plugin itself.
pub fn plugin_path(text: &str) -> Result<PathBuf, String> {
    let shown: String = text.escape_debug().take(120).collect();
    if text == "." || text == "./" {
        return Ok(PathBuf::new());
    }
    let Some(rest) = text.strip_prefix("./") else {
        return Err(format!("the path `{shown}` does not begin with `./`"));
    };
    if text.contains(['\0', '\\']) {
        return Err(format!("`{shown}` is no path"));
    }
    let parts: Option<PathBuf> = Path::new(rest)
        .components()
        .filter(|part| !matches!(part, Component::CurDir))
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        })
        .collect();
    parts.ok_or_else(|| format!("the path `{shown}` leads out of the plugin"))
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// Reads paths of a part that may also stand under `experimental`.
    fn experimental_paths(&mut self, key: &str) -> Option<Vec<PathBuf>> {
        if self.fields.contains_key(key) {
            return self.paths(key);
        }
        let inner = self.fields.get("experimental").and_then(Value::as_object)?;
        let mut reader = Reader { fields: inner, problems: Vec::new() };
        let paths = reader.paths(key);
        self.problems.append(&mut reader.problems);
        paths
    }

    fn complain(&mut self, key: &str, what: &str) {
        self.problems.push(format!("`{key}` {what}; it is left out"));
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.fields.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
            Value::Null => None,
            _ => {
                self.complain(key, "is no text");
                None
            }
        }
    }

    fn switch(&mut self, key: &str) -> Option<bool> {
        match self.fields.get(key)? {
            Value::Bool(value) => Some(*value),
            _ => {
                self.complain(key, "is neither true nor false");
                None
            }
        }
    }

    fn author(&mut self) -> Option<String> {
        match self.fields.get("author")? {
            Value::Object(author) => author.get("name").and_then(Value::as_str).map(str::to_owned),
            _ => self.text("author"),
        }
    }

    /// One path or several; each that is none costs itself.
    fn paths(&mut self, key: &str) -> Option<Vec<PathBuf>> {
        let items = match self.fields.get(key)? {
            Value::Null => return None,
            Value::Array(items) => items.clone(),
            one @ Value::String(_) => vec![one.clone()],
            _ => {
                self.complain(key, "is neither a path nor a list of paths");
                return None;
            }
        };
        let mut paths = Vec::new();
        for item in items {
            match item.as_str().ok_or_else(|| "one entry is no text".to_owned()).and_then(plugin_path) {
                Ok(path) => paths.push(path),
                Err(why) => self.problems.push(format!("`{key}`: {why}; it is left out")),
            }
        }
        Some(paths)
    }

    fn declared(&mut self, key: &str) -> Vec<Declared> {
        let items = match self.fields.get(key) {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(one) => vec![one.clone()],
        };
        let mut all = Vec::new();
        for item in items {
            match item {
                Value::Object(_) => all.push(Declared::Inline(item)),
                Value::String(text) => match plugin_path(&text) {
                    Ok(path) => all.push(Declared::File(path)),
                    Err(why) => self.problems.push(format!("`{key}`: {why}; it is left out")),
                },
                _ => self.complain(key, "has an entry that is neither a path nor an object"),
            }
        }
        all
    }

    fn dependencies(&mut self) -> Vec<Dependency> {
        let items = match self.fields.get("dependencies") {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::Array(items)) => items.clone(),
            Some(_) => {
                self.complain("dependencies", "is no list");
                return Vec::new();
            }
        };
        let mut all = Vec::new();
        for item in items {
            match dependency(&item) {
                Some(found) => all.push(found),
                None => self.complain("dependencies", "has an entry that names no plugin"),
            }
        }
        all
    }
}

fn dependency(item: &Value) -> Option<Dependency> {
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let (name, version) = match item {
        Value::String(name) => (name.clone(), None),
        _ => (text("name")?, text("version")),
    };
    let (name, marketplace) = match name.split_once('@') {
        Some((name, marketplace)) => (name.to_owned(), Some(marketplace.to_owned())),
        None => (name, text("marketplace")),
    };
    is_plugin_name(&name).then_some(Dependency { name, marketplace, version })
}

#[cfg(test)]
mod tests;
