//! Names that somebody who asked for a missing file may have meant.

use std::path::{Path, PathBuf};

/// The most names of a directory looked at.
const MAX_NAMES: usize = 5_000;

/// Returns files beside `path` with a similar name, best first.
pub(super) fn similar_files(path: &Path) -> Vec<PathBuf> {
    let (Some(dir), Some(wanted)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let Ok(entries) = dir.read_dir() else { return Vec::new() };
    let names: Vec<String> = entries
        .flatten()
        .take(MAX_NAMES)
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    similar_names(wanted, &names).into_iter().map(|name| dir.join(name)).collect()
}

/// Returns up to three of `names`, best first: another case, another extension, another letter.
fn similar_names<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let stem = |name: &str| Path::new(name).file_stem().map(|stem| stem.to_string_lossy().to_lowercase());
    let mut same_stem: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| stem(name) == stem(wanted)).collect();
    same_stem.sort_unstable_by_key(|name| (!name.eq_ignore_ascii_case(wanted), *name));
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let close = similar::get_close_matches(wanted, &all, 3, 0.7);
    let mut found = same_stem;
    found.extend(close);
    let mut unique = Vec::new();
    for name in found {
        if !unique.contains(&name) {
            unique.push(name);
        }
    }
    unique.truncate(3);
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_best_first() {
        let names = ["README.md", "main.rs", "main.py", "settings.json", "zebra"].map(str::to_owned);
        for (wanted, expected) in [
            ("readme.md", vec!["README.md"]),
            ("main.go", vec!["main.py", "main.rs"]),
            ("setings.json", vec!["settings.json"]),
            ("nothing-like-it", vec![]),
        ] {
            assert_eq!(similar_names(wanted, &names), expected, "{wanted}");
        }
    }
}
