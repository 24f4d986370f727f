//! The files of the repository as the checks see them: relative paths and texts.

use super::rust_source::RustSource;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::Command;

/// All text files that are tracked or about to be, by path.
pub(crate) struct Tree {
    files: Vec<File>,
}

/// One text file.
pub(crate) struct File {
    /// Relative to the root, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The file taken apart, when it is Rust.
    pub(crate) rust: Option<RustSource>,
}

impl Tree {
    /// Reads every file below `root` that git does not ignore and that is text.
    pub(crate) fn read(root: &Path) -> anyhow::Result<Tree> {
        let files = paths(root)?.into_iter().filter_map(|path| {
            // Gone files are still listed until the index learns of it; files that are not UTF-8 are data.
            let text = std::fs::read_to_string(root.join(&path)).ok()?;
            Some((path, text))
        });
        Ok(Tree::new(files))
    }

    /// Makes a tree of paths and texts.
    pub(crate) fn new<P: Into<String>, T: Into<String>>(files: impl IntoIterator<Item = (P, T)>) -> Tree {
        let mut files: Vec<File> = files.into_iter().map(|(path, text)| File::new(path, text)).collect();
        let test_modules: Vec<String> = files.iter().flat_map(File::test_modules).collect();
        for file in &mut files {
            let path = file.path.clone();
            if let Some(rust) = &mut file.rust
                && (is_test_path(&path) || test_modules.iter().any(|module| is_below(&path, module)))
            {
                rust.make_all_test();
            }
        }
        Tree { files }
    }

    pub(crate) fn files(&self) -> &[File] {
        &self.files
    }

    /// Returns the file at exactly this path.
    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns Rust files with what their text is made of.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &RustSource)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?)))
    }

    /// Returns the names of the crates under `crates/`.
    pub(crate) fn crate_names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some(name)
        })
    }
}

impl File {
    fn new(path: impl Into<String>, text: impl Into<String>) -> File {
        let (path, text) = (path.into(), text.into());
        let rust = path.ends_with(".rs").then(|| RustSource::new(&text));
        File { path, text, rust }
    }

    /// Returns the last part of the path.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.split_terminator('\n').enumerate().map(|(idx, line)| (idx + 1, line))
    }

    /// Returns where the modules lie that this file declares under `#[cfg(test)]`, without `.rs`.
    fn test_modules(&self) -> Vec<String> {
        let Some(rust) = &self.rust else { return Vec::new() };
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        let folder = match self.name() {
            "lib.rs" | "main.rs" => stem.rsplit_once('/').map_or("", |(folder, _)| folder),
            _ => stem,
        };
        rust.test_modules().iter().map(|name| format!("{folder}/{name}")).collect()
    }
}

fn is_test_path(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn is_below(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// Asks git, so that what is ignored is left out and what is not yet added is checked before it is.
fn paths(root: &Path) -> anyhow::Result<Vec<String>> {
    // A checkout that belongs to somebody else, as in a container, is fine: we only list it.
    let args = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(args).current_dir(root).output().context("Failed to run git")?;
    if !output.status.success() {
        bail!("Failed to list files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let mut paths: Vec<String> = String::from_utf8(output.stdout)
        .context("Failed to list files: a path is not UTF-8")?
        .split_terminator('\0')
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Runs `check` on made-up files and compares its problems, line by line.
#[cfg(test)]
pub(crate) fn expect_problems(check: super::Check, files: &[(&str, &str)], expected: &[&str]) {
    let problems = check(&Tree::new(files.iter().copied()));
    assert_eq!(problems, expected, "of {files:#?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], product: &[&str]) {
        let tree = Tree::new(files.iter().copied());
        let paths: Vec<&str> =
            tree.rust().filter(|(_, rust)| !rust.is_all_test()).map(|(file, _)| file.path.as_str()).collect();
        assert_eq!(paths, product);
    }

    #[test]
    fn test_files_are_known() {
        check(&[("c/src/a.rs", ""), ("c/src/a/tests.rs", ""), ("c/tests/it/b.rs", "")], &["c/src/a.rs"]);
        check(&[("c/src/lib.rs", "#[cfg(test)]\nmod testing;"), ("c/src/testing.rs", "")], &["c/src/lib.rs"]);
        check(
            &[
                ("c/src/a.rs", "#[cfg(test)]\nmod mock;\nmod b;"),
                ("c/src/a/mock/x.rs", ""),
                ("c/src/a/b.rs", ""),
            ],
            &["c/src/a.rs", "c/src/a/b.rs"],
        );
    }

    #[test]
    fn crates_are_folders_with_a_manifest() {
        let tree =
            Tree::new([("crates/a/Cargo.toml", ""), ("crates/a/b/Cargo.toml", ""), ("xtask/Cargo.toml", "")]);
        assert_eq!(tree.crate_names().collect::<Vec<_>>(), ["a"]);
    }
}
