//! The store of file contents: one file for each content, compressed, shared by all sessions.
//!
//! ```text
//! <config home>/loci/blobs/<2 hex>/<62 hex>      named by the SHA-256 of the content
//!   byte 0      '0' the content follows as it is, '1' it follows deflated
//! ```
//!
//! 1. A blob appears under its name complete, by a rename, and is never changed.
//! 2. What is read is checked against its name; a blob that does not fit is an error, never content.

use std::fs::{self};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use loci_core::hex::{from_hex, to_hex};
use loci_stdx::{create_private_dir_all, open_regular};
use sha2::{Digest, Sha256};

use crate::layout::ConfigHome;

/// How much the store may hold unless told otherwise.
const USUAL_LIMIT: u64 = 4 * 1024 * 1024 * 1024;
/// Contents shorter than this are not worth compressing.
const LEAST_TO_COMPRESS: usize = 64;

/// The SHA-256 of a content.
pub(crate) type Digest32 = [u8; 32];

/// The store.
#[derive(Debug)]
pub struct BlobStore {
    dir: PathBuf,
    limit: u64,
    /// Bytes in the store, as far as this process knows; counted when the first blob is written.
    used: AtomicU64,
}

/// How much the store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlobUsage {
    /// Contents.
    pub n_blobs: u64,
    /// Bytes on disk.
    pub n_bytes: u64,
}

impl BlobStore {
    /// Names the store of a config home; nothing is made before something is kept.
    pub fn new(home: &ConfigHome) -> Self {
        Self { dir: home.loci_dir().join("blobs"), limit: USUAL_LIMIT, used: AtomicU64::new(u64::MAX) }
    }

    /// Sets another limit, in bytes.
    #[must_use]
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// Returns how many bytes the store may hold.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Keeps a content; one that is there already costs nothing. A full store is `StorageFull`.
    pub(crate) fn put(&self, bytes: &[u8]) -> io::Result<Digest32> {
        let digest: Digest32 = Sha256::digest(bytes).into();
        let path = self.path(&digest);
        if fs::exists(&path)? {
            return Ok(digest);
        }
        let packed = compress(bytes)?;
        if self.used()? + packed.len() as u64 > self.limit {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the store of file contents is full"));
        }
        let dir = path.parent().unwrap_or(&self.dir);
        create_private_dir_all(dir)?;
        let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir)?;
        file.write_all(&packed)?;
        file.persist(&path).map_err(|failure| failure.error)?;
        self.used.fetch_add(packed.len() as u64, Ordering::Relaxed);
        Ok(digest)
    }

    /// Returns true when a content is kept.
    pub(crate) fn has(&self, digest: &Digest32) -> bool {
        self.path(digest).exists()
    }

    /// Makes a content safe from a power cut.
    pub(crate) fn sync(&self, digest: &Digest32) -> io::Result<()> {
        open_regular(self.path(digest))?.sync_all()
    }

    /// Returns a content.
    pub(crate) fn read(&self, digest: &Digest32) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = open_regular(self.path(digest))?;
        let mut form = [0];
        file.read_exact(&mut form)?;
        match form[0] {
            b'0' => file.read_to_end(&mut bytes)?,
            b'1' => DeflateDecoder::new(file).read_to_end(&mut bytes)?,
            _ => return Err(damaged(digest)),
        };
        let is_whole = Digest32::from(Sha256::digest(&bytes)) == *digest;
        is_whole.then_some(bytes).ok_or_else(|| damaged(digest))
    }

    /// Counts what the store holds.
    pub fn usage(&self) -> io::Result<BlobUsage> {
        let mut usage = BlobUsage::default();
        self.each(|path, _| {
            // One that has just gone counts for nothing.
            usage.n_bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
            usage.n_blobs += 1;
            Ok(())
        })?;
        Ok(usage)
    }

    /// Removes what `is_needed` does not want; returns what is gone. A trial
    /// only counts. Nothing else may be keeping contents meanwhile.
    pub(crate) fn sweep(
        &self,
        is_needed: impl Fn(&Digest32) -> bool,
        is_trial: bool,
    ) -> io::Result<BlobUsage> {
        let mut gone = BlobUsage::default();
        self.each(|path, digest| {
            if !is_needed(&digest) {
                gone.n_bytes += fs::metadata(path).map_or(0, |metadata| metadata.len());
                gone.n_blobs += 1;
                if !is_trial {
                    fs::remove_file(path)?;
                }
            }
            Ok(())
        })?;
        Ok(gone)
    }

    fn used(&self) -> io::Result<u64> {
        let known = self.used.load(Ordering::Relaxed);
        if known != u64::MAX {
            return Ok(known);
        }
        let counted = self.usage()?.n_bytes;
        self.used.store(counted, Ordering::Relaxed);
        Ok(counted)
    }

    fn path(&self, digest: &Digest32) -> PathBuf {
        let hex = to_hex(digest);
        self.dir.join(&hex[..2]).join(&hex[2..])
    }

    fn each(&self, mut take: impl FnMut(&Path, Digest32) -> io::Result<()>) -> io::Result<()> {
        for shard in entries(&self.dir)? {
            for blob in entries(&shard)? {
                if let Some(digest) = digest_of(&shard, &blob) {
                    take(&blob, digest)?;
                }
            }
        }
        Ok(())
    }
}

fn entries(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

fn digest_of(shard: &Path, blob: &Path) -> Option<Digest32> {
    let hex = format!("{}{}", shard.file_name()?.to_str()?, blob.file_name()?.to_str()?);
    from_hex(&hex)?.try_into().ok()
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    if bytes.len() >= LEAST_TO_COMPRESS {
        let mut encoder = DeflateEncoder::new(vec![b'1'], Compression::fast());
        encoder.write_all(bytes)?;
        let packed = encoder.finish()?;
        if packed.len() <= bytes.len() {
            return Ok(packed);
        }
    }
    Ok([b"0", bytes].concat())
}

fn damaged(digest: &Digest32) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the kept content {} is damaged", to_hex(digest)))
}

#[cfg(test)]
mod tests {
    use loci_stdx::Env;

    use super::*;

    fn store() -> (tempfile::TempDir, BlobStore) {
        let root = tempfile::tempdir().unwrap();
        let home = ConfigHome::from_env(&Env::for_test(root.path(), root.path()));
        (root, BlobStore::new(&home))
    }

    #[test]
    fn blob_is_read_back_and_stored_once() {
        let (_root, store) = store();
        let text = "line\n".repeat(1000);
        for content in [&b""[..], b"x", b"\0\xff\n", text.as_bytes()] {
            let digest = store.put(content).unwrap();
            assert_eq!(store.put(content).unwrap(), digest);
            assert_eq!(store.read(&digest).unwrap(), content);
            store.sync(&digest).unwrap();
        }
        let usage = store.usage().unwrap();
        assert_eq!(usage.n_blobs, 4);
        assert!(usage.n_bytes < 200, "{usage:?}");
    }

    #[test]
    fn a_damaged_blob_is_an_error() {
        let (_root, store) = store();
        let digest = store.put(b"something").unwrap();
        for damage in [&b""[..], b"0somethinG", b"1xx", b"9something"] {
            fs::write(store.path(&digest), damage).unwrap();
            assert!(store.read(&digest).is_err(), "{damage:?}");
        }
    }

    #[test]
    fn a_full_store_takes_nothing_more_and_a_sweep_makes_room() {
        let (_root, store) = store();
        let store = store.with_limit(100);
        let random: Vec<u8> = (0..90u32).map(|n| (n * 7919 % 251) as u8).collect();
        let kept = store.put(&random).unwrap();
        assert_eq!(store.put(&random[1..]).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(store.sweep(|digest| *digest == kept, false).unwrap(), BlobUsage::default());
        assert_eq!(store.sweep(|_| false, true).unwrap().n_blobs, 1);
        assert_eq!(store.sweep(|_| false, false).unwrap().n_blobs, 1);
        assert_eq!(store.usage().unwrap(), BlobUsage::default());
    }
}
