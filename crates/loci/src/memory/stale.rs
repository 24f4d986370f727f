//! Whether what a memory names is still there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use loci_stdx::read_regular;

use loci_context::{Mention, mentions};
use loci_core::path::expand_home;

use super::MemoryContext;

/// What the shell knows by itself.
const BUILTINS: &[&str] =
    &["cd", "echo", "export", "source", "set", "unset", "alias", "test", "true", "false"];
/// Bounds of the search for symbols.
const MOST_FILES: usize = 5_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const MOST_FILE_BYTES: u64 = 1024 * 1024;

/// The world that memories speak of.
pub(super) struct World {
    root: PathBuf,
    home: PathBuf,
    path: Vec<PathBuf>,
    /// What was looked up already.
    programs: Mutex<HashMap<String, bool>>,
}

impl World {
    pub(super) fn of(ctx: &MemoryContext) -> Self {
        let path = ctx.env.vars.get("PATH").unwrap_or_default();
        Self {
            root: ctx.root.clone(),
            home: ctx.env.home.clone(),
            path: path.split(':').filter(|dir| !dir.is_empty()).map(PathBuf::from).collect(),
            programs: Mutex::default(),
        }
    }

    /// Returns the files and programs that a text names and that are not there.
    pub(super) fn stale(&self, body: &str) -> Vec<String> {
        let gone = mentions(body).into_iter().filter_map(|mention| match mention {
            Mention::Path(path) => (!self.has_path(&path)).then_some(path),
            Mention::Program(program) => (!self.has_program(&program)).then_some(program),
            Mention::Symbol(_) => None,
        });
        gone.collect()
    }

    fn has_path(&self, text: &str) -> bool {
        let path = self.root.join(expand_home(&self.home, text));
        path.symlink_metadata().is_ok()
    }

    fn has_program(&self, name: &str) -> bool {
        if BUILTINS.contains(&name) {
            return true;
        }
        let mut known = self.programs.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *known.entry(name.to_owned()).or_insert_with(|| self.path.iter().any(|dir| dir.join(name).is_file()))
    }
}

/// Looks for symbols in the files of the project; returns those that are nowhere, or `None` when there is too much to
/// look through.
pub(super) fn missing_symbols(root: &Path, symbols: Vec<String>) -> Option<Vec<String>> {
    let mut missing = symbols;
    let (mut dirs, mut n_files, mut n_bytes) = (vec![root.to_owned()], 0, 0);
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok);
        for entry in entries {
            if missing.is_empty() {
                return Some(missing);
            }
            let (name, Ok(kind)) = (entry.file_name(), entry.file_type()) else { continue };
            let name = name.to_string_lossy();
            if kind.is_dir() && !name.starts_with('.') && !matches!(&*name, "target" | "node_modules") {
                dirs.push(entry.path());
            }
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            if kind.is_file() && size <= MOST_FILE_BYTES {
                (n_files, n_bytes) = (n_files + 1, n_bytes + size);
                if n_files > MOST_FILES || n_bytes > MOST_BYTES {
                    return None;
                }
                let bytes = read_regular(entry.path()).unwrap_or_default();
                let text = String::from_utf8_lossy(&bytes);
                missing.retain(|symbol| !text.contains(symbol.as_str()));
            }
        }
    }
    Some(missing)
}
