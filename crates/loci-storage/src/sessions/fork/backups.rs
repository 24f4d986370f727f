//! File checkpoints of a fork: the same backups under the new session's name.

use std::fs;
use std::io;

use loci_core::ids::SessionId;
use loci_stdx::{copy_regular, create_private_dir_all};

use crate::layout::ConfigHome;

/// Links every backup of `from` into the directory of `to`, or copies it; returns how many there are.
///
/// A session without checkpoints gets no directory. Backups are never changed in place, so a link is as good as a
/// copy.
pub fn link_backups(home: &ConfigHome, from: &SessionId, to: &SessionId) -> io::Result<usize> {
    crate::history::tree_history::copy_log(home, from, to)?;
    let backups = match fs::read_dir(home.file_history_dir(from)) {
        Ok(backups) => backups,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let target = home.file_history_dir(to);
    let mut n_backups = 0;
    for backup in backups {
        let backup = backup?;
        if !backup.file_type()?.is_file() {
            continue;
        }
        if n_backups == 0 {
            create_private_dir_all(&target)?;
        }
        let (old, new) = (backup.path(), target.join(backup.file_name()));
        match fs::hard_link(&old, &new) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Another file system, or one without links.
            Err(_) => drop(copy_regular(&old, &new)?),
        }
        n_backups += 1;
    }
    Ok(n_backups)
}
