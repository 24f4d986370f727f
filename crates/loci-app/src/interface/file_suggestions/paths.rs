//! Paths that are typed from the root, the home or with dots: what lies in the directory they name.

use std::path::{Path, PathBuf};

/// Tells whether a query names its directory itself.
pub fn is_explicit(query: &str) -> bool {
    ["/", "~/", "./", "../"].iter().any(|start| query.starts_with(start)) || query == "~" || query == ".."
}

/// Returns what lies in the directory of a typed path and begins with the rest of it; directories end with a slash.
/// The paths begin as they were typed.
pub fn list(typed: &str, cwd: &Path, home: &Path, limit: usize) -> Vec<String> {
    let mut found = beginning_with(typed, cwd, home);
    found.sort_by_key(|path| (!path.ends_with('/'), path.to_lowercase()));
    found.truncate(limit);
    found
}

/// Returns the directories among those.
pub fn directories(typed: &str, cwd: &Path, home: &Path, limit: usize) -> Vec<String> {
    let mut found = beginning_with(typed, cwd, home);
    found.retain(|path| path.ends_with('/'));
    found.sort_by_key(|path| path.to_lowercase());
    found.truncate(limit);
    found
}

fn beginning_with(typed: &str, cwd: &Path, home: &Path) -> Vec<String> {
    let (directory, beginning) =
        typed.rsplit_once('/').map_or(("", typed), |(directory, rest)| (directory, rest));
    let written = &typed[..typed.len() - beginning.len()];
    let place = resolve(if written == "/" { "/" } else { directory }, cwd, home);
    let Ok(entries) = std::fs::read_dir(place) else { return Vec::new() };
    let fits = |name: &str| {
        let folded = name.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning));
        folded && (!name.starts_with('.') || beginning.starts_with('.'))
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| fits(name))?;
            // A link to a directory is one to whoever types.
            let slash = if entry.path().is_dir() { "/" } else { "" };
            Some(format!("{written}{name}{slash}"))
        })
        .collect()
}

fn resolve(directory: &str, cwd: &Path, home: &Path) -> PathBuf {
    match directory.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => cwd.join(directory),
    }
}
