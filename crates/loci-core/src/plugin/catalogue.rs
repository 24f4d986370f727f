//! The catalogue of a marketplace: what an entry adds to a plugin's own manifest, what plugins are called now, and what is
//! wrong with the whole.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::id::is_plugin_name;
use super::manifest::{Manifest, parse_manifest, plugin_path};

/// Fields that name parts of a plugin.
const PARTS: [&str; 7] =
    ["skills", "commands", "agents", "hooks", "mcpServers", "outputStyles", "lspServers"];
/// The longest chain of names that is followed.
const MOST_RENAMES: usize = 32;

/// Joins what a plugin's own manifest says with what its marketplace's entry adds. With `strict: false` the entry is the
/// whole definition, and a manifest that names parts, too, is an error.
pub fn joined_manifest(
    text: Option<&str>,
    entry: Option<&Map<String, Value>>,
    dir_name: &str,
) -> Result<(Manifest, Vec<String>), String> {
    let own = text.map(|text| parse_manifest(text, dir_name)).transpose()?;
    let Some(entry) = entry else {
        return own.map_or_else(|| Manifest::of_dir(dir_name).map(|it| (it, Vec::new())), Ok);
    };
    let (mut listed, listed_problems) = Manifest::from_fields(entry, dir_name)?;
    listed.has_only_skills = has_only_skills(entry, &listed.skills);
    let Some((mut own, mut problems)) = own else { return Ok((listed, listed_problems)) };
    let names_parts = |fields: &Map<String, Value>| PARTS.iter().any(|key| fields.contains_key(*key));
    if entry.get("strict") == Some(&Value::Bool(false)) {
        let declared = text.and_then(|text| serde_json::from_str(text.trim_start_matches('\u{feff}')).ok());
        if declared.as_ref().is_some_and(names_parts) {
            return Err(
                "its marketplace's entry is the whole definition (`strict` is false), and its manifest \
                        names parts, too; one of them has to give way"
                    .to_owned(),
            );
        }
        listed.name.clone_from(&own.name);
        std::mem::swap(&mut own, &mut listed);
        problems.extend(listed_problems);
        own.add(listed);
    } else if names_parts(entry) || entry.contains_key("dependencies") {
        problems.extend(listed_problems);
        own.has_only_skills = listed.has_only_skills && own.skills.is_empty();
        own.add(listed);
    }
    Ok((own, problems))
}

/// Tells whether the skills of an entry are all it has: its plugin is the marketplace's root, which others share.
fn has_only_skills(entry: &Map<String, Value>, skills: &[PathBuf]) -> bool {
    let source = entry.get("source").and_then(Value::as_str).map(plugin_path);
    let is_root = matches!(source, Some(Ok(path)) if path.as_os_str().is_empty());
    let is_usual = |path: &PathBuf| path.as_os_str().is_empty() || path == Path::new("skills");
    is_root && !skills.is_empty() && !skills.iter().any(is_usual)
}

impl Manifest {
    /// Adds what another says and this one does not.
    fn add(&mut self, other: Self) {
        fn more<T: PartialEq>(own: &mut Vec<T>, other: Vec<T>) {
            let new: Vec<T> = other.into_iter().filter(|item| !own.contains(item)).collect();
            own.extend(new);
        }
        fn more_paths(own: &mut Option<Vec<PathBuf>>, other: Option<Vec<PathBuf>>) {
            if let Some(other) = other {
                more(own.get_or_insert_default(), other);
            }
        }
        self.display_name = self.display_name.take().or(other.display_name);
        self.version = self.version.take().or(other.version);
        self.description = self.description.take().or(other.description);
        self.author = self.author.take().or(other.author);
        more(&mut self.skills, other.skills);
        more_paths(&mut self.commands, other.commands);
        more_paths(&mut self.agents, other.agents);
        more_paths(&mut self.output_styles, other.output_styles);
        more_paths(&mut self.themes, other.themes);
        more(&mut self.hooks, other.hooks);
        more(&mut self.mcp_servers, other.mcp_servers);
        more(&mut self.unsupported, other.unsupported);
        let new = other.options.into_iter().filter(|it| !self.options.iter().any(|own| own.key == it.key));
        let new: Vec<_> = new.collect();
        self.options.extend(new);
        let new = other
            .dependencies
            .into_iter()
            .filter(|it| !self.dependencies.iter().any(|own| own.name == it.name));
        let new: Vec<_> = new.collect();
        self.dependencies.extend(new);
    }
}

/// What became of a plugin that its marketplace has no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renamed {
    /// It is called this now.
    To(String),
    /// It was removed.
    Removed,
}

/// Follows `renames` of a catalogue; none where it says nothing of a name, or goes in circles.
pub fn renamed(catalogue: &Map<String, Value>, name: &str) -> Option<Renamed> {
    let renames = catalogue.get("renames")?.as_object()?;
    let mut name = name;
    for _ in 0..MOST_RENAMES {
        match renames.get(name)? {
            Value::Null => return Some(Renamed::Removed),
            Value::String(next) if !renames.contains_key(next) => return Some(Renamed::To(next.clone())),
            Value::String(next) => name = next,
            _ => return None,
        }
    }
    None
}

/// Says what is wrong with a catalogue, apart from the plugins themselves.
pub fn catalogue_problems(catalogue: &Map<String, Value>) -> Vec<String> {
    let mut problems = Vec::new();
    let name = catalogue.get("name").and_then(Value::as_str).unwrap_or_default();
    if !is_plugin_name(name) {
        problems.push("the marketplace needs a `name` of letters, digits, `-`, `_` and `.`".to_owned());
    }
    let Some(entries) = catalogue.get("plugins").and_then(Value::as_array) else {
        problems.push("the marketplace needs a list of `plugins`".to_owned());
        return problems;
    };
    let mut names = BTreeSet::new();
    for (idx, entry) in entries.iter().enumerate() {
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_plugin_name(name) {
            problems.push(format!("plugins[{idx}] has no `name` that is one"));
        } else if !names.insert(name) {
            problems.push(format!("plugins[{idx}]: there are two plugins called `{name}`"));
        }
        match entry.get("source") {
            Some(Value::String(path)) if path.split(['/', '\\']).any(|part| part == "..") => {
                problems.push(format!("plugins[{idx}].source leads out of the marketplace: `..` is in it"));
            }
            Some(Value::String(_) | Value::Object(_)) => {}
            _ => problems.push(format!("plugins[{idx}] has no `source`")),
        }
    }
    let renames = catalogue.get("renames").and_then(Value::as_object).into_iter().flatten();
    for (old, _) in renames {
        match renamed(catalogue, old) {
            Some(Renamed::To(new)) if !names.contains(new.as_str()) => {
                problems.push(format!("renames: `{old}` leads to `{new}`, which is none of the plugins"));
            }
            Some(_) => {}
            None => problems.push(format!("renames: `{old}` leads nowhere, or in a circle")),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn join(own: &Value, entry: &Value) -> Result<Manifest, String> {
        joined_manifest(Some(&own.to_string()), entry.as_object(), "dir").map(|(manifest, _)| manifest)
    }

    #[test]
    fn entry_adds_parts_to_the_manifest_and_takes_nothing_away() {
        let own = json!({"name": "kit", "version": "1.0.0", "commands": "./a.md", "dependencies": ["x"]});
        let entry = json!({
            "name": "kit", "version": "9.9.9", "description": "d", "commands": ["./b.md", "./a.md"],
            "skills": "./more", "hooks": {"Stop": []}, "dependencies": [{"name": "x", "version": "^1"}, "y"],
        });
        let joined = join(&own, &entry).unwrap();
        assert_eq!(joined.commands, Some(vec![PathBuf::from("a.md"), PathBuf::from("b.md")]));
        assert_eq!((joined.skills.len(), joined.hooks.len()), (1, 1));
        assert_eq!((joined.version.as_deref(), joined.description.as_deref()), (Some("1.0.0"), Some("d")));
        let needs: Vec<&str> = joined.dependencies.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(needs, ["x", "y"]);
        assert_eq!(joined.dependencies[0].version, None, "the manifest's own word counts");
        let plain = join(&own, &json!({"name": "kit", "source": "./kit"})).unwrap();
        assert_eq!(plain, join(&own, &Value::Null).unwrap());
    }

    #[test]
    fn entry_that_is_the_whole_definition_bears_no_manifest_with_parts() {
        let entry = json!({"name": "kit", "strict": false, "commands": "./b.md"});
        let joined = join(&json!({"name": "kit", "version": "2.0.0"}), &entry).unwrap();
        assert_eq!(joined.commands, Some(vec![PathBuf::from("b.md")]));
        assert_eq!(joined.version.as_deref(), Some("2.0.0"));
        assert!(join(&json!({"name": "kit", "agents": "./x.md"}), &entry).unwrap_err().contains("strict"));
    }

    #[test]
    fn skills_of_an_entry_at_the_root_are_all_it_has() {
        for (source, skills, is_only) in [
            (json!("./"), json!(["./skills/a"]), true),
            (json!("."), json!("./skills/a"), true),
            (json!("./"), json!(["./skills/", "./skills/a"]), false),
            (json!("./"), json!(["./"]), false),
            (json!("./kit"), json!(["./skills/a"]), false),
            (json!({"source": "github", "repo": "a/b"}), json!(["./skills/a"]), false),
        ] {
            let entry = json!({"source": source, "skills": skills});
            let (joined, _) = joined_manifest(None, entry.as_object(), "kit").unwrap();
            assert_eq!(joined.has_only_skills, is_only, "{entry}");
        }
    }

    #[test]
    fn renames_are_followed_to_their_end() {
        let catalogue = json!({"renames": {"a": "b", "b": "c", "gone": null, "x": "y", "y": "x"}});
        let renamed = |name: &str| renamed(catalogue.as_object().unwrap(), name);
        assert_eq!(renamed("a"), Some(Renamed::To("c".to_owned())));
        assert_eq!((renamed("gone"), renamed("x"), renamed("c")), (Some(Renamed::Removed), None, None));
    }

    #[test]
    fn what_is_wrong_with_a_catalogue_is_named() {
        for (catalogue, needle) in [
            (json!({"plugins": []}), "needs a `name`"),
            (json!({"name": "m"}), "list of `plugins`"),
            (json!({"name": "m", "plugins": [{"name": "a b", "source": "./a"}]}), "plugins[0] has no `name`"),
            (json!({"name": "m", "plugins": [{"name": "a", "source": "./../a"}]}), "`..` is in it"),
            (json!({"name": "m", "plugins": [{"name": "a"}]}), "no `source`"),
            (
                json!({"name": "m", "plugins": [{"name": "a", "source": "./a"}, {"name": "a", "source": "./b"}]}),
                "two plugins called `a`",
            ),
            (json!({"name": "m", "plugins": [], "renames": {"a": "b"}}), "none of the plugins"),
            (json!({"name": "m", "plugins": [], "renames": {"a": "a"}}), "in a circle"),
        ] {
            let problems = catalogue_problems(catalogue.as_object().unwrap());
            assert!(problems.iter().any(|it| it.contains(needle)), "{catalogue}: {problems:?}");
        }
        let good = json!({"name": "m", "plugins": [{"name": "a", "source": "./a"}], "renames": {"b": "a", "c": null}});
        assert_eq!(catalogue_problems(good.as_object().unwrap()), Vec::<String>::new());
    }
}
