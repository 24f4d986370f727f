//! Directories that are added to a session while it runs: by a person (`/add-dir`) or a client (`register_repo_root`).

use std::path::{Path, PathBuf};

use loci_tools::Host;

use super::Conversation;
use super::scope::ConversationScope;
use crate::command::DirectorySource;
use crate::event::EngineEvent;

impl Conversation {
    /// Lets the session work in a directory, too, and tells whoever asked and the hooks.
    pub(crate) fn add_directory(&mut self, request: String, directory: &Path, source: DirectorySource) {
        let outcome = self.try_add_directory(directory, source);
        self.scope.tell(EngineEvent::DirectoryAdded { request, outcome });
    }
}

impl ConversationScope {
    /// Returns the directory as the rules have it; the error says why it cannot be added. A client may name one within a
    /// directory of the session: the root of a repository there has skills and instructions of its own.
    pub(super) fn check_directory(
        &self,
        directory: &Path,
        source: DirectorySource,
    ) -> Result<PathBuf, String> {
        let shown = directory.display();
        if directory.as_os_str().is_empty() {
            return Err("No directory was named".to_owned());
        }
        let dirs = self.host.real_dirs(&[directory.to_owned()]);
        let Some(real) = dirs.into_iter().next() else { return Err(format!("Not a directory: `{shown}`")) };
        match std::fs::metadata(&real) {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return Err(format!("Not a directory: `{shown}`")),
            Err(error) => return Err(format!("The directory cannot be added: `{shown}`: {error}")),
        }
        let place = self.host.workspace();
        let mut known = std::iter::once(&place.project).chain(&place.extra_dirs);
        let is_known = |dir: &&PathBuf| match source {
            DirectorySource::SlashCommand => real.starts_with(dir),
            DirectorySource::RegisterRepoRoot => real == **dir,
        };
        match known.find(is_known) {
            Some(dir) if real == *dir => Err(format!("`{shown}` is a directory of the session already")),
            Some(dir) => {
                Err(format!("`{shown}` is within the session's directory `{}` already", dir.display()))
            }
            None => Ok(real),
        }
    }
}
