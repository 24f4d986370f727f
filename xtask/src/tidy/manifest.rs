//! The few things tidy asks of a `Cargo.toml`, read as text.
//!
//! Our manifests have one dependency a line, which is all this understands; a whole TOML parser would be a
//! dependency for the sake of a check.

use super::tree::{File, Tree};

/// One line that names a dependency.
#[derive(Debug, PartialEq)]
pub(crate) struct Dependency<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    /// Whether version and features come from the workspace's table.
    pub(crate) from_workspace: bool,
}

/// Which table a dependency stands in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// `[dependencies]`, `[build-dependencies]`, and those of a target.
    Normal,
    /// `[dev-dependencies]`.
    Dev,
    /// `[workspace.dependencies]`.
    Workspace,
}

/// Returns every dependency that a manifest names.
pub(crate) fn dependencies(manifest: &File) -> Vec<Dependency<'_>> {
    sections(manifest)
        .filter_map(|(section, line, text)| {
            let kind = kind(section)?;
            let (key, value) = text.split_once('=')?;
            let key = key.trim();
            let name = key.split('.').next()?.trim_matches('"');
            let from_workspace = key.ends_with(".workspace") || value.contains("workspace = true");
            Some(Dependency { name, line, kind, from_workspace })
        })
        .collect()
}

/// Tells whether `key = value` stands in `[section]`.
pub(crate) fn has(manifest: &File, section: &str, key: &str, value: &str) -> bool {
    sections(manifest).any(|(in_section, _, text)| {
        in_section == section
            && text.split_once('=').is_some_and(|(k, v)| k.trim() == key && v.trim() == value)
    })
}

/// Returns the manifests of our own crates with the crate's name: those in `crates/`, and xtask.
pub(crate) fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &File)> {
    let names = tree.crate_names().map(|name| (name, format!("crates/{name}/Cargo.toml")));
    names
        .chain(std::iter::once(("xtask", "xtask/Cargo.toml".to_owned())))
        .filter_map(|(name, path)| Some((name, tree.file(&path)?)))
}

/// Returns lines that say something, with the section they stand in.
fn sections(manifest: &File) -> impl Iterator<Item = (&str, usize, &str)> {
    manifest
        .lines()
        .scan("", |section, (line, text)| {
            let text = text.trim();
            if let Some(header) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
                *section = header;
            }
            let says_nothing = text.is_empty() || text.starts_with(['#', '[']);
            Some((!says_nothing).then_some((*section, line, text)))
        })
        .flatten()
}

fn kind(section: &str) -> Option<Kind> {
    let table = section.rsplit('.').next().unwrap_or(section);
    match table {
        "dependencies" if section.starts_with("workspace") => Some(Kind::Workspace),
        "dependencies" | "build-dependencies" => Some(Kind::Normal),
        "dev-dependencies" => Some(Kind::Dev),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_line_by_line() {
        let text = "[package]\nname = \"a\"\n\n[dependencies]\n# a word\nserde.workspace = true\n\
                    jiff = { workspace = true, features = [\"x\"] }\nodd = \"1\"\n\n\
                    [target.'cfg(unix)'.dependencies]\nrustix.workspace = true\n\n\
                    [dev-dependencies]\nproptest.workspace = true\n\n[features]\npdf = [\"dep:hayro\"]\n";
        let tree = Tree::new([("Cargo.toml", text)]);
        let found: Vec<_> = dependencies(&tree.files()[0])
            .iter()
            .map(|dependency| (dependency.name, dependency.line, dependency.kind, dependency.from_workspace))
            .collect();
        assert_eq!(
            found,
            [
                ("serde", 6, Kind::Normal, true),
                ("jiff", 7, Kind::Normal, true),
                ("odd", 8, Kind::Normal, false),
                ("rustix", 11, Kind::Normal, true),
                ("proptest", 14, Kind::Dev, true),
            ]
        );
    }

    #[test]
    fn the_workspace_table_is_its_own_kind() {
        let tree = Tree::new([("Cargo.toml", "[workspace.dependencies]\nserde = { version = \"1\" }\n")]);
        assert_eq!(
            dependencies(&tree.files()[0]),
            [Dependency { name: "serde", line: 2, kind: Kind::Workspace, from_workspace: false }]
        );
    }

    #[test]
    fn keys_are_found_in_their_section() {
        let tree = Tree::new([("Cargo.toml", "[lints]\nworkspace = true\n[x]\na = 1\n")]);
        let manifest = &tree.files()[0];
        assert!(has(manifest, "lints", "workspace", "true"));
        assert!(!has(manifest, "x", "workspace", "true"));
    }
}
