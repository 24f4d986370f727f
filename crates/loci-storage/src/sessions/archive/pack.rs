//! Packing the files of a session, and unpacking them as they were.

use std::fs::{self, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use loci_core::ids::SessionId;
use loci_stdx::{create_private, create_private_dir_all, open_regular, private_file, read_regular};
use serde::{Deserialize, Serialize};

use super::{ArchiveError, PackedTranscript, disk};
use crate::layout::SessionPlace;

/// One file, packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Packed {
    /// Where it was, within the session's own directory; empty for the transcript.
    path: PathBuf,
    size: u64,
    sum: u64,
    mode: u32,
    modified_ms: u64,
}

impl Packed {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns where the file is while the session is in its place.
    fn place_in(&self, place: &SessionPlace) -> PathBuf {
        if self.path.as_os_str().is_empty() { place.file().to_owned() } else { place.dir().join(&self.path) }
    }
}

/// Returns the transcripts among packed files.
pub(super) fn transcripts(
    file: &Path,
    id: &SessionId,
    dir: &Path,
    files: &[Packed],
) -> Vec<PackedTranscript> {
    let session = SessionPlace::new(file.to_owned(), id.clone());
    let transcript = |(n, packed): (usize, &Packed)| {
        let agent = match packed.path.strip_prefix("subagents") {
            Ok(name) => Some(name.to_str()?.strip_suffix(".jsonl")?.to_owned()),
            Err(_) if packed.path.as_os_str().is_empty() => None,
            Err(_) => return None,
        };
        Some(PackedTranscript {
            session: session.clone(),
            agent,
            pack: pack_name(dir, n),
            size: packed.size,
            modified_ms: i64::try_from(packed.modified_ms).unwrap_or(i64::MAX),
        })
    };
    files.iter().enumerate().filter_map(transcript).collect()
}

fn pack_name(dir: &Path, n: usize) -> PathBuf {
    dir.join(format!("{n}.gz"))
}

/// Packs the transcript and all that belongs to it.
pub(super) fn pack_all(place: &SessionPlace, dir: &Path) -> Result<Vec<Packed>, ArchiveError> {
    let mut paths = vec![PathBuf::new()];
    walk(&place.dir(), Path::new(""), &mut paths)?;
    paths
        .into_iter()
        .enumerate()
        .map(|(n, path)| {
            let from =
                if path.as_os_str().is_empty() { place.file().to_owned() } else { place.dir().join(&path) };
            pack(&from, path, &pack_name(dir, n)).map_err(disk("pack", &from))
        })
        .collect()
}

/// Collects the files of a directory; what is neither file nor directory cannot be put away.
fn walk(dir: &Path, below: &Path, paths: &mut Vec<PathBuf>) -> Result<(), ArchiveError> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(disk("read", dir)(error)),
    };
    let mut entries: Vec<fs::DirEntry> = entries.collect::<io::Result<_>>().map_err(disk("read", dir))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(disk("read", dir))?;
        let path = below.join(entry.file_name());
        if kind.is_dir() {
            walk(&entry.path(), &path, paths)?;
        } else if kind.is_file() {
            paths.push(path);
        } else {
            let error = io::Error::new(io::ErrorKind::Unsupported, "not a plain file");
            return Err(disk("pack", &entry.path())(error));
        }
    }
    Ok(())
}

fn pack(from: &Path, path: PathBuf, to: &Path) -> io::Result<Packed> {
    let file = open_regular(from)?;
    let metadata = file.metadata()?;
    let mut encoder =
        GzEncoder::new(private_file().write(true).create_new(true).open(to)?, Compression::default());
    let (size, sum) = pour(file, &mut encoder)?;
    encoder.finish()?.sync_all()?;
    Ok(Packed { path, size, sum, mode: metadata.mode() & 0o7777, modified_ms: modified_ms(&metadata) })
}

/// Copies to the end; returns how many bytes there were and their checksum.
fn pour(mut from: impl Read, to: &mut impl Write) -> io::Result<(u64, u64)> {
    let mut buffer = vec![0; 256 * 1024];
    let (mut size, mut sum) = (0_u64, 0_u64);
    loop {
        let mut n_read = 0;
        // Blocks are filled, so that the checksum does not depend on how reads fall.
        while n_read < buffer.len() {
            match from.read(&mut buffer[n_read..])? {
                0 => break,
                n => n_read += n,
            }
        }
        if n_read == 0 {
            return Ok((size, sum));
        }
        to.write_all(&buffer[..n_read])?;
        sum = sum.rotate_left(1) ^ loci_stdx::checksum(&buffer[..n_read]);
        size += n_read as u64;
    }
}

fn modified_ms(metadata: &Metadata) -> u64 {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
    modified.and_then(|time| u64::try_from(time.as_millis()).ok()).unwrap_or(0)
}

/// Reads every packed file back, and looks whether the session is still what was packed.
pub(super) fn check_all(place: &SessionPlace, dir: &Path, files: &[Packed]) -> Result<(), ArchiveError> {
    for (n, packed) in files.iter().enumerate() {
        unpack(&pack_name(dir, n), packed, &mut io::sink())?;
        let path = packed.place_in(place);
        let is_same = fs::metadata(&path)
            .is_ok_and(|it| it.len() == packed.size && modified_ms(&it) == packed.modified_ms);
        if !is_same {
            return Err(ArchiveError::Changed { path });
        }
    }
    let mut paths = vec![PathBuf::new()];
    walk(&place.dir(), Path::new(""), &mut paths)?;
    match paths.len() == files.len() {
        true => Ok(()),
        false => Err(ArchiveError::Changed { path: place.dir() }),
    }
}

/// Returns true when every packed file is in its place, the transcript perhaps with more behind it.
pub(super) fn is_contained(place: &SessionPlace, dir: &Path, files: &[Packed]) -> bool {
    files.iter().enumerate().all(|(n, packed)| {
        let mut bytes = Vec::new();
        let is_sound = unpack(&pack_name(dir, n), packed, &mut bytes).is_ok();
        let there = read_regular(packed.place_in(place)).unwrap_or_default();
        let is_same =
            if packed.path.as_os_str().is_empty() { there.starts_with(&bytes) } else { there == bytes };
        is_sound && is_same
    })
}

/// Returns true when as many packed files are there as there should be.
pub(super) fn are_there(dir: &Path, n_files: usize) -> bool {
    (0..n_files).all(|n| fs::metadata(pack_name(dir, n)).is_ok_and(|it| it.len() > 0))
}

fn unpack(from: &Path, packed: &Packed, to: &mut impl Write) -> Result<(), ArchiveError> {
    let file = open_regular(from).map_err(disk("open", from))?;
    let damaged = || ArchiveError::Damaged { path: from.to_owned() };
    match pour(GzDecoder::new(file), to) {
        Ok(found) if found == (packed.size, packed.sum) => Ok(()),
        Ok(_) => Err(damaged()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) =>
        {
            Err(damaged())
        }
        Err(error) => Err(disk("unpack", from)(error)),
    }
}

/// Unpacks all files; the transcript comes last, so that a session is there only when it is whole.
pub(super) fn unpack_all(place: &SessionPlace, dir: &Path, files: &[Packed]) -> Result<(), ArchiveError> {
    // Nothing is written before all of it is known to be sound.
    for (n, packed) in files.iter().enumerate() {
        unpack(&pack_name(dir, n), packed, &mut io::sink())?;
    }
    for (n, packed) in files.iter().enumerate().rev() {
        let path = packed.place_in(place);
        if let Some(parent) = path.parent() {
            create_private_dir_all(parent).map_err(disk("create", parent))?;
        }
        let beside = path.with_extension("unpacking");
        let mut file = create_private(&beside).map_err(disk("create", &beside))?;
        unpack(&pack_name(dir, n), packed, &mut file)?;
        let finish = || {
            file.set_permissions(Permissions::from_mode(packed.mode))?;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_millis(packed.modified_ms))?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        };
        finish().map_err(disk("write", &path))?;
    }
    Ok(())
}
