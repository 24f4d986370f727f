//! Which files fit what somebody has begun to type behind `@`: the index of a project's paths, paths that are typed from the
//! root or the home, and the command of the setting `fileSuggestion`.

mod file_index;
mod fuzzy;
pub mod paths;
mod suggestion_command;

use std::path::Path;

use loci_stdx::Env;
use serde_json::Value;

pub use file_index::{FileIndex, IgnoredFiles};
pub use suggestion_command::suggest;

use crate::compose::child_env::child_env;
use crate::interface::helper_command::{HelperCommand, HelperSandboxes};

/// How many are offered.
pub const OFFERED: usize = 15;

/// Where files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// The files of the project.
    Project(IgnoredFiles),
    /// A command that suggests them (`fileSuggestion`).
    Command(HelperCommand),
}

impl FileSource {
    /// Reads the settings in force.
    pub fn from_settings(settings: &Value) -> Self {
        match settings.get("fileSuggestion").and_then(HelperCommand::from_setting) {
            Some(command) => Self::Command(command),
            None if settings["respectGitignore"] == false => Self::Project(IgnoredFiles::Offered),
            None => Self::Project(IgnoredFiles::LeftOut),
        }
    }
}

/// Returns the files that fit, the best first; the error says why none can be found. Reads the whole project.
pub fn suggest_files(
    env: &Env,
    sandboxes: &HelperSandboxes,
    cwd: &Path,
    source: &FileSource,
    query: &str,
) -> Result<Vec<String>, String> {
    match source {
        _ if paths::is_explicit(query) => Ok(paths::list(query, cwd, &env.home, OFFERED)),
        FileSource::Command(command) => suggest(command, sandboxes, cwd, &child_env(env), query),
        FileSource::Project(ignored) => {
            let index = FileIndex::build(cwd, *ignored);
            Ok(index.search(query, OFFERED).into_iter().map(str::to_owned).collect())
        }
    }
}
