//! Replacing a file as a whole: readers see the old content or the new, after a crash as well.
//!
//! The new content goes to a temporary file in the same directory, is synced, and takes the place of
//! the old by a rename, after which the directory is synced. On any error before the rename the old
//! content is untouched and the temporary file is removed.
//!
//! A symlink is followed, so that it stays and what it points at is replaced; this holds for a link to
//! a file that does not exist yet. The mode of an existing file is kept, and so is its owner where we
//! are allowed to set it. Something that is not a regular file (`/dev/null`, a directory) is refused
//! rather than replaced.

#[cfg(unix)]
#[cfg(test)]
mod tests;

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::dirs::{create_dir_all_with_mode, parent_of, sync_dir};

/// As many links as Linux follows before it says `ELOOP`.
const MAX_LINKS: usize = 40;

/// How to create what does not exist yet; what exists keeps its mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// The mode of a new file, less the umask.
    pub file_mode: u32,
    /// The mode of new parent directories, less the umask.
    pub dir_mode: u32,
    /// Whether to create missing parent directories.
    pub create_parents: bool,
}

impl WriteOptions {
    /// For the user's own state: new files are 0600, new directories 0700.
    #[must_use]
    pub const fn private() -> Self {
        Self { file_mode: 0o600, dir_mode: 0o700, create_parents: false }
    }

    /// For files of a project: new files are 0644, new directories 0755, both less the umask.
    #[must_use]
    pub const fn project() -> Self {
        Self { file_mode: 0o644, dir_mode: 0o755, create_parents: false }
    }

    /// Asks for missing parent directories to be created.
    #[must_use]
    pub const fn creating_parents(self) -> Self {
        Self { create_parents: true, ..self }
    }
}

/// Why a file could not be replaced; all but [`WriteError::Sync`] leave the old content in place.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path, or a link on the way, could not be examined.
    #[error("Failed to resolve path: `{}`", path.display())]
    Resolve {
        /// The path that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is something at the path that must not be replaced by a file.
    #[error("Failed to write, not a regular file: `{}`", path.display())]
    NotAFile {
        /// The path after following links.
        path: PathBuf,
    },
    /// A parent directory could not be created.
    #[error("Failed to create directory: `{}`", path.display())]
    CreateParent {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The temporary file beside the target could not be created or filled.
    #[error("Failed to write temporary file beside: `{}`", path.display())]
    Write {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The temporary file could not take the target's place.
    #[error("Failed to replace file: `{}`", path.display())]
    Replace {
        /// The target.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The content was replaced, but may not survive a power cut.
    #[error("Failed to sync directory: `{}`", path.display())]
    Sync {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes `bytes` the content of the file at `path`, all or nothing.
pub fn write_atomic(path: &Path, bytes: &[u8], options: &WriteOptions) -> Result<(), WriteError> {
    write_with(path, options, |file| file.write_all(bytes))
}

fn write_with(
    path: &Path,
    options: &WriteOptions,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), WriteError> {
    let (target, existing) = resolve(path)?;
    let dir = parent_of(&target);
    if options.create_parents {
        create_dir_all_with_mode(dir, options.dir_mode)
            .map_err(|source| WriteError::CreateParent { path: dir.to_owned(), source })?;
    }
    let temporary = temporary_in(dir, options, existing.as_ref(), fill)
        .map_err(|source| WriteError::Write { path: target.clone(), source })?;
    replace(temporary, &target)?;
    sync_dir(dir).map_err(|source| WriteError::Sync { path: dir.to_owned(), source })
}

/// Follows symlinks at `path` to the place to write, and says what lies there now.
fn resolve(path: &Path) -> Result<(PathBuf, Option<Metadata>), WriteError> {
    let failed = |source| WriteError::Resolve { path: path.to_owned(), source };
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        let metadata = match fs::symlink_metadata(&target) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((target, None)),
            Err(error) => return Err(failed(error)),
        };
        if metadata.is_symlink() {
            let link = fs::read_link(&target).map_err(failed)?;
            target = parent_of(&target).join(link);
        } else if metadata.is_file() {
            return Ok((target, Some(metadata)));
        } else {
            return Err(WriteError::NotAFile { path: target });
        }
    }
    Err(failed(io::Error::other("too many levels of symbolic links")))
}

/// Fills and syncs a temporary file; dropped before it is persisted, it removes itself.
fn temporary_in(
    dir: &Path,
    options: &WriteOptions,
    existing: Option<&Metadata>,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<NamedTempFile> {
    // The target's name is not part of the temporary one: it may already be as long as names can be.
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tmp-");
    let mut temporary = create_with_mode(&mut builder, dir, options.file_mode)?;
    if let Some(existing) = existing {
        copy_owner_and_mode(existing, temporary.as_file())?;
    }
    fill(temporary.as_file_mut())?;
    temporary.as_file().sync_all()?;
    Ok(temporary)
}

#[cfg(unix)]
fn create_with_mode(
    builder: &mut tempfile::Builder<'_, '_>,
    dir: &Path,
    mode: u32,
) -> io::Result<NamedTempFile> {
    use std::os::unix::fs::PermissionsExt;
    builder.permissions(fs::Permissions::from_mode(mode)).tempfile_in(dir)
}

#[cfg(not(unix))]
fn create_with_mode(
    builder: &mut tempfile::Builder<'_, '_>,
    dir: &Path,
    _mode: u32,
) -> io::Result<NamedTempFile> {
    builder.tempfile_in(dir)
}

#[cfg(unix)]
fn copy_owner_and_mode(from: &Metadata, to: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let created = to.metadata()?;
    if (created.uid(), created.gid()) != (from.uid(), from.gid())
        && let Err(error) = fchown(to, Some(from.uid()), Some(from.gid()))
        // Only root may give files away; for others the new file is theirs, as with any editor.
        && error.kind() != io::ErrorKind::PermissionDenied
    {
        return Err(error);
    }
    // After the owner, since changing that clears the set-id bits.
    to.set_permissions(from.permissions())
}

#[cfg(not(unix))]
fn copy_owner_and_mode(_from: &Metadata, _to: &File) -> io::Result<()> {
    Ok(())
}

fn replace(temporary: NamedTempFile, target: &Path) -> Result<(), WriteError> {
    match temporary.persist(target) {
        Ok(_) => Ok(()),
        Err(failure) => Err(WriteError::Replace { path: target.to_owned(), source: failure.error }),
    }
}
