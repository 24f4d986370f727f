//! Contents, wherever they are kept: our store, the project's repository, backups of the shared format.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use loci_core::file_history::{FileContent, PathState};
use loci_core::ids::SessionId;
use loci_stdx::Env;
use sha2::{Digest, Sha256};

use crate::history::file_history::read_backup;
use crate::history::tree_history::{BlobStore, Digest32, GitObjects};
use crate::layout::ConfigHome;

/// A reader of contents.
pub(crate) struct Contents {
    pub(crate) store: BlobStore,
    backups: PathBuf,
    env: Env,
    /// Repositories by the project they are around; `None` where there is none.
    repositories: HashMap<PathBuf, Option<GitObjects>>,
    digests: HashMap<FileContent, Digest32>,
}

impl Contents {
    pub(crate) fn new(home: &ConfigHome, session: &SessionId, env: &Env) -> Self {
        Self {
            store: BlobStore::new(home),
            backups: home.file_history_dir(session),
            env: env.clone(),
            repositories: HashMap::new(),
            digests: HashMap::new(),
        }
    }

    /// Returns a content of the project at `root`.
    pub(crate) fn read(&mut self, root: &Path, content: &FileContent) -> io::Result<Vec<u8>> {
        match content {
            FileContent::Blob(digest) => self.store.read(digest),
            FileContent::Backup(name) => Ok(read_backup(&self.backups, name)?.0),
            FileContent::Git(id) => {
                let env = &self.env;
                let repository = self
                    .repositories
                    .entry(root.to_owned())
                    .or_insert_with(|| GitObjects::open(root, env).ok());
                match repository {
                    Some(repository) => repository.blob(id),
                    None => Err(io::Error::new(io::ErrorKind::NotFound, "git cannot be asked")),
                }
            }
            FileContent::Lost => Err(io::Error::new(io::ErrorKind::NotFound, "the content was not kept")),
        }
    }

    /// Returns the digest of a backup.
    pub(super) fn backup_digest(&self, name: &str) -> Option<Digest32> {
        read_backup(&self.backups, name).ok().map(|(bytes, _)| Sha256::digest(bytes).into())
    }

    /// Returns a file's mode and size as a backup has them.
    pub(super) fn backup_state(&self, name: &str) -> PathState {
        match read_backup(&self.backups, name) {
            Ok((bytes, mode)) => {
                let content = FileContent::Backup(name.to_owned());
                PathState::File { content, mode, size: bytes.len() as u64 }
            }
            Err(_) => PathState::File { content: FileContent::Lost, mode: 0o644, size: 0 },
        }
    }

    /// Tells whether two states are the same, wherever their contents are kept; what cannot be read is not.
    pub(crate) fn is_same(&mut self, root: &Path, left: &PathState, right: &PathState) -> bool {
        if left == right {
            return true;
        }
        let (
            PathState::File { content: a, mode: mode_a, size: size_a },
            PathState::File { content: b, mode: mode_b, size: size_b },
        ) = (left, right)
        else {
            return false;
        };
        mode_a == mode_b && size_a == size_b && self.is_same_content(root, a, b)
    }

    fn is_same_content(&mut self, root: &Path, a: &FileContent, b: &FileContent) -> bool {
        match (self.digest(root, a), self.digest(root, b)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
    }

    fn digest(&mut self, root: &Path, content: &FileContent) -> io::Result<Digest32> {
        if let FileContent::Blob(digest) = content {
            return Ok(*digest);
        }
        if let Some(known) = self.digests.get(content) {
            return Ok(*known);
        }
        let digest: Digest32 = Sha256::digest(self.read(root, content)?).into();
        self.digests.insert(content.clone(), digest);
        Ok(digest)
    }
}
