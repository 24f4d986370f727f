//! One directory of skills, looked at and read in as few steps as it takes.
//!
//! A start waits for what lies here, and there may be hundreds of skills: names are looked up below one descriptor, each file
//! is opened once, and only a link is resolved. Which directories are plugins is found out apart from that, so that one thread
//! can do so while others read files.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use loci_core::skill::{SkillDefinition, SkillKind, SkillScope, SkillSource, parse_skill};
use loci_stdx::{EntryKind, dir_entries};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::super::definition_files::{DefinitionPrint, as_text, read_limited, read_opened};

/// How many skills a directory may have.
const COUNT_LIMIT: usize = 2_000;
/// A name that another program uses for a directory of its own.
const RESERVED: &str = "synced";
/// What makes a directory one of a skill, and what one of a plugin.
const SKILL: &str = "/SKILL.md";
const MANIFEST: &str = "/.claude-plugin/plugin.json";

/// A file that is a skill.
pub(super) struct SkillFile {
    pub(super) path: PathBuf,
    /// Where that leads, where it is another path.
    pub(super) real: Option<PathBuf>,
    pub(super) name: String,
    pub(super) scope: SkillScope,
    pub(super) kind: SkillKind,
    pub(super) nested_in: Option<String>,
    /// What it looked like, where that is known without another look.
    pub(super) print: Option<DefinitionPrint>,
    /// What it says, or why it cannot be read, where it was read along.
    pub(super) said: Option<Result<Arc<SkillDefinition>, String>>,
}

impl SkillFile {
    /// Returns where the skill comes from.
    pub(super) fn source(&self, is_trusted: bool) -> SkillSource {
        SkillSource {
            scope: self.scope,
            kind: self.kind,
            file: Some(self.path.clone()),
            plugin: None,
            is_trusted,
            nested_in: self.nested_in.clone(),
        }
    }
}

/// A directory of skills: which there are, and which of them are plugins.
pub(in crate::config) struct SkillsDir {
    path: PathBuf,
    /// The same without links, where that is another path.
    real: Option<PathBuf>,
    fd: OwnedFd,
    /// What may be a skill or a plugin, by name.
    entries: Vec<Entry>,
    plugins: OnceLock<Plugins>,
}

struct Entry {
    name: OsString,
    is_link: bool,
}

/// Which entries of a directory are plugins.
struct Plugins {
    /// By their place among the entries.
    entries: Vec<usize>,
    dirs: Vec<PathBuf>,
}

impl SkillsDir {
    /// Looks what lies in a directory; none where there is no such directory.
    pub(in crate::config) fn open(path: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let mut found = dir_entries(&fd, COUNT_LIMIT).ok()?;
        found.retain(|(_, kind)| matches!(kind, EntryKind::Dir | EntryKind::Link));
        found.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let entry = |(name, kind): (OsString, EntryKind)| Entry { name, is_link: kind == EntryKind::Link };
        let entries = found.into_iter().map(entry).collect();
        let real = fs::canonicalize(path).ok().filter(|real| real != path);
        Some(Self { path: path.to_owned(), real, fd, entries, plugins: OnceLock::new() })
    }

    /// Returns the directories that have a manifest, by name.
    pub(in crate::config) fn plugins(&self) -> &[PathBuf] {
        &self.found_plugins().dirs
    }

    /// Tells whether an entry is a plugin.
    pub(super) fn is_plugin(&self, idx: usize) -> bool {
        self.found_plugins().entries.binary_search(&idx).is_ok()
    }

    fn found_plugins(&self) -> &Plugins {
        self.plugins.get_or_init(|| {
            let mut manifest = OsString::new();
            let mut has_manifest = |entry: &Entry| {
                manifest.clear();
                manifest.push(&entry.name);
                manifest.push(MANIFEST);
                rustix::fs::statat(&self.fd, &manifest, AtFlags::SYMLINK_NOFOLLOW).is_ok()
            };
            let all = 0..self.entries.len();
            let entries: Vec<usize> = all.filter(|idx| has_manifest(&self.entries[*idx])).collect();
            let dirs = entries.iter().map(|idx| self.path.join(&self.entries[*idx].name)).collect();
            Plugins { entries, dirs }
        })
    }

    /// Returns how many entries there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Looks at the file of an entry; none where it is no skill.
    pub(super) fn stat(&self, idx: usize, scope: SkillScope) -> Option<SkillFile> {
        let entry = self.entries.get(idx).filter(|_| !self.is_plugin(idx))?;
        let path = entry.file_in(entry.skill_name()?, &self.path);
        let stat = rustix::fs::statat(&self.fd, self.below(&path), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let print = (!is_link).then(|| DefinitionPrint::from_stat(&path, &stat));
        Some(self.skill_file(entry, scope, path, is_link, print))
    }

    /// Reads the file of an entry by way of a buffer; none where it has none. Whether it is a plugin's is asked later.
    pub(super) fn read(
        &self,
        idx: usize,
        scope: SkillScope,
        is_trusted: bool,
        buffer: &mut Vec<u8>,
    ) -> Option<SkillFile> {
        let entry = self.entries.get(idx)?;
        let path = entry.file_in(entry.skill_name()?, &self.path);
        // A pipe is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.fd, self.below(&path), flags, Mode::empty());
        let (mut file, text) = match opened {
            Err(Errno::NOENT | Errno::NOTDIR) => return None,
            Ok(fd) => {
                let stat = rustix::fs::fstat(&fd).ok();
                let print = stat.as_ref().map(|stat| DefinitionPrint::from_stat(&path, stat));
                let text = read_opened(File::from(fd), stat.as_ref(), buffer);
                (self.skill_file(entry, scope, path, false, print), text)
            }
            // A link, or a file that cannot be opened: by its name, which also says what is wrong.
            Err(_) => {
                let is_link = path.is_symlink();
                let text = read_limited(&path).map(|text| {
                    *buffer = text.into_bytes();
                });
                (self.skill_file(entry, scope, path, is_link, None), text)
            }
        };
        let said = text.and_then(|()| as_text(buffer));
        file.said = Some(said.map(|text| Arc::new(parse_skill(text, &file.name, file.source(is_trusted)))));
        Some(file)
    }

    /// Returns what of a file's path lies below the directory, as its descriptor is asked for it.
    fn below<'a>(&self, file: &'a Path) -> &'a OsStr {
        let whole = file.as_os_str().as_bytes();
        OsStr::from_bytes(whole.get(self.path.as_os_str().len() + 1..).unwrap_or(whole))
    }

    fn skill_file(
        &self,
        entry: &Entry,
        scope: SkillScope,
        path: PathBuf,
        is_link: bool,
        print: Option<DefinitionPrint>,
    ) -> SkillFile {
        // Only a link can lead where another name leads, too.
        let real = match is_link || entry.is_link {
            true => fs::canonicalize(&path).ok(),
            false => {
                self.real.as_deref().map(|dir| entry.file_in(entry.skill_name().unwrap_or_default(), dir))
            }
        };
        let (name, kind) = (entry.skill_name().unwrap_or_default().to_owned(), SkillKind::Skill);
        SkillFile { path, real, name, scope, kind, nested_in: None, print, said: None }
    }
}

impl Entry {
    /// Returns what a skill there is called; none for a name that no skill has.
    fn skill_name(&self) -> Option<&str> {
        self.name.to_str().filter(|name| !name.eq_ignore_ascii_case(RESERVED) && !name.starts_with('.'))
    }

    /// Returns where the file of a skill lies, as a path in a directory; made at once, for there may be many.
    fn file_in(&self, name: &str, dir: &Path) -> PathBuf {
        let mut path = OsString::with_capacity(dir.as_os_str().len() + 1 + name.len() + SKILL.len());
        path.push(dir);
        path.push("/");
        path.push(name);
        path.push(SKILL);
        path.into()
    }
}
