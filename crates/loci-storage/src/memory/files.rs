//! Memories as files: read and written without following a link anywhere below their directory.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path};

use loci_stdx::{RealDir, WriteOptions, open_real};

use super::{MEMORY_INDEX, MemoryContent};

/// A memory beyond this is none of ours.
const MOST_BYTES: u64 = 1024 * 1024;
/// What is read of a memory's beginning: enough for its front matter.
const HEAD_BYTES: u64 = 4 * 1024;

/// A memory's file name and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryText {
    /// Its file, below the directory.
    pub file: String,
    /// Its text; what is not text is shown as well as can be.
    pub text: String,
}

/// Reads all memories of a directory, in the order of their names. The index, logs, other directories, hidden files,
/// links and files that cannot be read are left out.
pub fn memory_files(dir: &Path) -> Vec<MemoryText> {
    memory_texts(dir, memory_names(dir))
}

/// Returns the names of the files of all memories, in order; nothing is read.
pub fn memory_names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md") && !name.starts_with('.') && name != MEMORY_INDEX)
        .collect();
    names.sort();
    names
}

/// Reads the memories in some files of a directory; those that cannot be read are left out.
pub fn memory_texts(dir: &Path, names: Vec<String>) -> Vec<MemoryText> {
    // A name that became a link since it was listed is none of ours any more.
    let Ok(dir) = dir.canonicalize().and_then(|real| RealDir::open(&real)) else { return Vec::new() };
    let read = |file: String| {
        let text = dir.open_file(OsStr::new(&file)).and_then(read_file).ok()?;
        Some(MemoryText { file, text })
    };
    names.into_iter().filter_map(read).collect()
}

/// Reads one file of the directory; `None` when it is not there.
pub fn read_memory(dir: &Path, file: &str) -> io::Result<Option<String>> {
    check_name(file)?;
    let Ok(real) = dir.canonicalize() else { return Ok(None) };
    none_if_missing(open_real(&real.join(file)).and_then(read_file))
}

/// Reads one file of the directory byte for byte, as a change is made from it; `None` when it is not there.
pub(super) fn read_exact(dir: &Path, file: &str) -> io::Result<Option<MemoryContent>> {
    check_name(file)?;
    let Ok(real) = dir.canonicalize() else { return Ok(None) };
    none_if_missing(open_real(&real.join(file)).and_then(read_bytes).map(MemoryContent::from))
}

/// Tells what is not there from what cannot be read.
fn none_if_missing<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads the beginning of one file of the directory; `None` when it is not there.
pub fn read_memory_head(dir: &Path, file: &str) -> io::Result<Option<String>> {
    check_name(file)?;
    let Ok(real) = dir.canonicalize() else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = |file: fs::File| match file.metadata()?.is_file() {
        true => file.take(HEAD_BYTES).read_to_end(&mut bytes),
        false => Err(io::Error::other("it is not a file")),
    };
    match open_real(&real.join(file)).and_then(read) {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces one file of the directory, making what is missing of the way to it.
pub(super) fn write(dir: &Path, file: &str, bytes: &[u8]) -> io::Result<()> {
    check_name(file)?;
    loci_stdx::create_private_dir_all(dir)?;
    let path = dir.canonicalize()?.join(file);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let options = WriteOptions::private();
    let dir = RealDir::create_all(parent, options.dir_mode)?;
    let found = dir.stat(name)?;
    if found.is_some_and(|found| !found.is_file) {
        return Err(io::Error::other("there is something else than a file"));
    }
    dir.replace(name, bytes, &options, found.as_ref())
}

/// Removes one file of the directory.
pub(super) fn remove(dir: &Path, file: &str) -> io::Result<()> {
    check_name(file)?;
    let path = dir.canonicalize()?.join(file);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    // Opened without following a link, so that what is removed lies where it seems to.
    let dir = RealDir::open(parent)?;
    match dir.stat(name)? {
        Some(found) if found.is_file => dir.remove(name),
        Some(_) => Err(io::Error::other("there is something else than a file")),
        None => Ok(()),
    }
}

/// Takes plain relative names only.
fn check_name(file: &str) -> io::Result<()> {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !hidden(name),
        _ => false,
    };
    let path = Path::new(file);
    let is_fine = !file.is_empty()
        && path.components().all(is_plain)
        && path.extension().is_some_and(|it| it == "md")
        && !file.contains(['\0', '\\']);
    is_fine.then_some(()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("not the name of a memory: `{file}`"))
    })
}

fn hidden(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with('.')
}

/// Reads a file as text; what is not is shown as well as can be.
fn read_file(file: fs::File) -> io::Result<String> {
    Ok(match String::from_utf8(read_bytes(file)?) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    })
}

/// Reads a file whose kind was looked at a moment ago; what took its place since is read no further than its bound.
fn read_bytes(file: fs::File) -> io::Result<Vec<u8>> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    // Room for all of it, so that it is read at once.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(MOST_BYTES)).unwrap_or(0) + 1);
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invariant 4 of `docs/design/memory.md`.
    #[test]
    fn memory_name_or_symlink_cannot_leave_the_directory() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("m");
        for name in ["", "../x.md", "/etc/x.md", "a/../../x.md", ".x.md", ".git/x.md", "x.sh", "a\\b.md"] {
            assert!(write(&dir, name, b"x").is_err(), "{name}");
            assert!(read_memory(&dir, name).is_err(), "{name}");
        }
        let outside = root.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("a.md"), "theirs").unwrap();
        write(&dir, "logs/2026/a.md", b"ours").unwrap();
        std::os::unix::fs::symlink(&outside, dir.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.join("a.md"), dir.join("b.md")).unwrap();
        for name in ["link/a.md", "b.md"] {
            assert!(write(&dir, name, b"x").is_err(), "{name}");
            assert!(read_memory(&dir, name).is_err() && read_memory_head(&dir, name).is_err(), "{name}");
            assert!(remove(&dir, name).is_err(), "{name}");
        }
        assert_eq!(fs::read_to_string(outside.join("a.md")).unwrap(), "theirs");
        assert_eq!(read_memory(&dir, "logs/2026/a.md").unwrap().as_deref(), Some("ours"));
        assert_eq!(memory_files(&dir), [], "links and logs are no memories");
    }

    #[test]
    fn memory_head_reads_only_the_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let long = "x".repeat(5 * HEAD_BYTES as usize);
        for (file, text, expected) in [("short.md", "short", 5), ("long.md", &long, HEAD_BYTES as usize)] {
            fs::write(dir.path().join(file), text).unwrap();
            assert_eq!(
                read_memory_head(dir.path(), file).unwrap().map(|it| it.len()),
                Some(expected),
                "{file}"
            );
        }
        assert_eq!(read_memory_head(dir.path(), "none.md").unwrap(), None);
    }

    #[test]
    fn memories_are_listed_in_order_without_index_and_hidden_files() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.md", "a.md", "MEMORY.md", ".tmp.md", "c.txt"] {
            fs::write(dir.path().join(name), name).unwrap();
        }
        let names: Vec<String> = memory_files(dir.path()).into_iter().map(|it| it.file).collect();
        assert_eq!(names, ["a.md", "b.md"]);
        assert_eq!(memory_files(Path::new("/nowhere")), []);
    }
}
