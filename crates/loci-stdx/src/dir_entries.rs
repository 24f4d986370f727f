//! What lies in a directory that was just opened.
//!
//! `std::fs::read_dir` goes by a path: it opens the directory once more, looks at it, and fills a buffer of 32 KiB. Where a
//! start looks into a hundred directories, of which it has the descriptors, that is most of what they cost.

use std::ffi::{CStr, OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, FileType};

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Dir,
    /// A regular file.
    File,
    /// A symlink, wherever it leads.
    Link,
    /// Something else.
    Other,
}

/// Returns at most `most` names in a directory that was just opened, and what each of them is, in no order. A descriptor that
/// was read before goes on where that ended.
pub fn dir_entries(dir: impl AsFd, most: usize) -> io::Result<Vec<(OsString, EntryKind)>> {
    let dir = dir.as_fd();
    let mut entries = Vec::new();
    let mut take = |name: &CStr, kind: FileType| {
        if !matches!(name.to_bytes(), b"." | b"..") {
            let name = OsStr::from_bytes(name.to_bytes()).to_owned();
            let kind = entry_kind(dir, &name, kind);
            entries.push((name, kind));
        }
        entries.len() < most
    };
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::RawDir;
        // Pages of it that nothing is written to cost nothing; one name takes 255 bytes on most file systems.
        let mut buffer = [std::mem::MaybeUninit::uninit(); 16 * 1024];
        let mut found = RawDir::new(dir, &mut buffer);
        while let Some(entry) = found.next() {
            let entry = entry?;
            if !take(entry.file_name(), entry.file_type()) {
                break;
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if !take(entry.file_name(), entry.file_type()) {
            break;
        }
    }
    Ok(entries)
}

/// Returns what an entry is; it is looked at only on file systems that do not say so along with its name.
fn entry_kind(dir: impl AsFd, name: &OsStr, said: FileType) -> EntryKind {
    let kind = match said {
        FileType::Unknown => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(_) => FileType::Unknown,
        },
        said => said,
    };
    match kind {
        FileType::Directory => EntryKind::Dir,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn every_entry_is_named_with_its_kind() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        fs::create_dir(path.join("dir")).unwrap();
        symlink("dir", path.join("link")).unwrap();
        drop(std::os::unix::net::UnixListener::bind(path.join("socket")).unwrap());
        // More than one buffer holds.
        let long = "n".repeat(200);
        for n in 0..100 {
            fs::write(path.join(format!("{long}{n:03}")), "").unwrap();
        }
        let mut entries = dir_entries(File::open(path).unwrap(), usize::MAX).unwrap();
        entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        assert_eq!(entries.len(), 103);
        let kinds: Vec<_> = entries.iter().map(|(_, kind)| *kind).collect();
        assert_eq!(kinds[..2], [EntryKind::Dir, EntryKind::Link]);
        assert!(kinds[2..102].iter().all(|kind| *kind == EntryKind::File));
        assert_eq!(kinds[102], EntryKind::Other);
        assert_eq!(dir_entries(File::open(path).unwrap(), 7).unwrap().len(), 7);
        assert!(dir_entries(File::open(path.join(format!("{long}001"))).unwrap(), 7).is_err());
    }
}
