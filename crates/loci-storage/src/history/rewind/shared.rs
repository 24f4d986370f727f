//! What sessions that kept only the shared format want: the versions that snapshots name.
//!
//! What the session left in a file is known from its last tool result and from the last snapshot. A file that holds
//! something else was changed by someone else.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use loci_core::entry::Entry;
use loci_core::file_history::{
    Backup, FileContent, PathState, Wanted, path_of_key, snapshots_of, written_texts,
};
use loci_core::ids::EntryId;
use sha2::{Digest, Sha256};

use super::contents::Contents;
use super::{RewindContext, disk};

/// Returns what each tracked file was at a prompt; `None` when there is no snapshot of it.
pub(super) fn wanted(
    ctx: &RewindContext<'_>,
    entries: &[Arc<Entry>],
    prompt: &EntryId,
    contents: &mut Contents,
) -> Option<Vec<Wanted>> {
    let snapshots = snapshots_of(entries);
    let at = snapshots.iter().position(|snapshot| snapshot.message == *prompt)?;
    // A file that was tracked later was, until then, what its first backup holds.
    let mut first: Vec<(&String, &Backup)> = Vec::new();
    for (key, backup) in snapshots[at..].iter().flat_map(|snapshot| &snapshot.backups) {
        if !first.iter().any(|(known, _)| *known == key) {
            first.push((key, backup));
        }
    }
    let last: HashMap<&String, &Backup> =
        snapshots.last().into_iter().flat_map(|it| &it.backups).map(|(key, backup)| (key, backup)).collect();
    let written = written_texts(entries);
    let wanted = first.into_iter().map(|(key, backup)| {
        let path = path_of_key(ctx.cwd, key);
        let state = |backup: &Backup| match &backup.file_name {
            Some(name) => contents.backup_state(name),
            None => PathState::None,
        };
        let target = state(backup);
        let expected =
            expected(&path, last.get(key).map(|backup| state(backup)), written.get(&path), contents);
        Wanted { path, target, expected, is_mixed: false, root: ctx.cwd.to_owned() }
    });
    Some(wanted.collect())
}

/// Returns what the session left at a path: what lies there, if the session can have left it so.
fn expected(
    path: &Path,
    kept: Option<PathState>,
    written: Option<&String>,
    contents: &Contents,
) -> PathState {
    let kept = kept.unwrap_or(PathState::None);
    let Ok(now) = disk::current_state(path) else { return kept };
    let PathState::File { content: FileContent::Blob(digest), .. } = &now.state else { return kept };
    let is_kept = match &kept {
        PathState::File { content: FileContent::Backup(name), .. } => {
            contents.backup_digest(name) == Some(*digest)
        }
        _ => false,
    };
    let is_written = written.is_some_and(|text| {
        let plain: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        let dos: [u8; 32] = Sha256::digest(text.replace('\n', "\r\n").as_bytes()).into();
        [plain, dos].contains(digest)
    });
    if is_kept || is_written { now.state } else { kept }
}
