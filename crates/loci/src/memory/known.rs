//! Memories with everything that is known about them: their form, what is the matter with them, where they come from.

use std::collections::{HashMap, HashSet};

use loci_app::UserError;
use loci_context::{Flag, MemoryFile, contradictions, index_lines, most_related, same_subject};
use loci_storage::memory::{
    Change, MEMORY_INDEX, MemoryArea, MemoryText, memory_files, memory_names, memory_texts,
};
use serde_json::{Value, json};

use super::{MemoryContext, stale, to_user_error};

/// Memories that proposals are compared with, so that a review of a few does not read thousands; `doctor` reads all.
const MOST_COMPARED: usize = 200;

/// One memory, or one proposal.
pub(super) struct Known {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) memory: MemoryFile,
    pub(super) flags: Vec<Flag>,
    pub(super) origin: Option<Origin>,
}

/// Where a text comes from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) change: u64,
    pub(super) at: String,
    pub(super) by: &'static str,
    pub(super) session: Option<String>,
    pub(super) message: Option<String>,
    /// Whether it was edited by hand since.
    pub(super) is_edited: bool,
}

impl Known {
    /// Returns what it is called.
    pub(super) fn title(&self) -> &str {
        self.memory.name.as_deref().unwrap_or(&self.file)
    }

    pub(super) fn kind(&self) -> &'static str {
        self.memory.kind.map_or("-", loci_context::MemoryKind::as_str)
    }

    pub(super) fn to_json(&self) -> Value {
        let origin = self.origin.as_ref().map(|it| {
            json!({
                "change": it.change, "at": it.at, "by": it.by, "session": it.session, "message": it.message,
                "editedSince": it.is_edited,
            })
        });
        json!({
            "file": self.file,
            "name": self.memory.name,
            "type": self.memory.kind.map(loci_context::MemoryKind::as_str),
            "description": self.memory.description,
            "modified": self.memory.modified,
            "flags": self.flags.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "origin": origin,
        })
    }
}

impl Origin {
    pub(super) fn in_words(&self) -> String {
        let session = self.session.as_ref().map(|it| format!(", session {it}")).unwrap_or_default();
        let message = self.message.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
        let edited = if self.is_edited { ", edited by hand since" } else { "" };
        format!("change {} at {} by {}{session}{message}{edited}", self.change, self.at, self.by)
    }
}

/// Reads all memories and what is the matter with them.
pub(super) fn memories(ctx: &MemoryContext) -> Result<Vec<Known>, UserError> {
    let origins = Origins::read(ctx)?;
    let known = memory_files(ctx.journal.dir())
        .into_iter()
        .map(|it| origins.known(MemoryArea::Memory, it.file, it.text));
    let mut all: Vec<Known> = known.collect();
    // Of an index that cannot be read, nothing is said a thousand times; `unreadable` says it once.
    let listed: Option<HashSet<String>> =
        ctx.index().ok().map(|index| index_lines(&index).into_iter().map(|line| line.file).collect());
    let mut subjects: HashMap<String, Vec<Flag>> = HashMap::new();
    let read = || all.iter().map(|it| (it.file.as_str(), &it.memory));
    for (file, flag) in same_subject(read()).into_iter().chain(contradictions(read())) {
        subjects.entry(file).or_default().push(flag);
    }
    let world = stale::World::of(ctx);
    for it in &mut all {
        it.flags.extend(subjects.remove(&it.file).unwrap_or_default());
        if listed.as_ref().is_some_and(|listed| !listed.contains(&it.file)) {
            it.flags.push(Flag::NotInIndex);
        }
        it.flags.extend(world.stale(&it.memory.body).into_iter().map(Flag::Stale));
    }
    Ok(all)
}

/// Returns what lies among the memories and cannot be read, and why.
pub(super) fn unreadable(ctx: &MemoryContext, all: &[Known]) -> Vec<(String, String)> {
    let read: HashSet<&str> = all.iter().map(|it| it.file.as_str()).collect();
    let unread = memory_names(ctx.journal.dir()).into_iter().filter(|name| !read.contains(name.as_str()));
    let why = |file: String| {
        let error = ctx.journal.text(MemoryArea::Memory, &file).err()?;
        Some((file, to_user_error(&error).message().to_owned()))
    };
    let index = ctx.index().err().map(|why| (MEMORY_INDEX.to_owned(), why));
    unread.filter_map(why).chain(index).collect()
}

/// Reads all proposals.
pub(super) fn proposals(ctx: &MemoryContext) -> Result<Vec<Known>, UserError> {
    let pending = ctx.journal.pending();
    let origins = Origins::of_proposals(ctx, pending.iter().map(|it| it.file.as_str()))?;
    let world = stale::World::of(ctx);
    let mut otherwise = conflicting_memories(ctx, &pending);
    let known = pending.into_iter().map(|it| {
        let mut known = origins.known(MemoryArea::Pending, it.file, it.text);
        known.flags.extend(otherwise.remove(&known.file).unwrap_or_default());
        known.flags.extend(world.stale(&known.memory.body).into_iter().map(Flag::Stale));
        known
    });
    Ok(known.collect())
}

/// Finds what memories and other proposals say otherwise than a proposal, by its file. A memory that a proposal would
/// replace has nothing to say any more.
fn conflicting_memories(ctx: &MemoryContext, pending: &[MemoryText]) -> HashMap<String, Vec<Flag>> {
    let replaced: HashSet<&str> = pending.iter().map(|it| it.file.as_str()).collect();
    let mut names = memory_names(ctx.journal.dir());
    names.retain(|name| !replaced.contains(name.as_str()));
    let texts: Vec<&str> = pending.iter().map(|it| it.text.as_str()).collect();
    let others = memory_texts(ctx.journal.dir(), most_related(names, &texts, MOST_COMPARED));
    let parsed = |it: &MemoryText| (it.file.clone(), MemoryFile::parse(&it.text));
    let all: Vec<(String, MemoryFile)> = pending.iter().chain(&others).map(parsed).collect();
    let read = || all.iter().map(|(file, memory)| (file.as_str(), memory));
    let mut flags: HashMap<String, Vec<Flag>> = HashMap::new();
    for (file, flag) in contradictions(read()) {
        flags.entry(file).or_default().push(flag);
    }
    flags
}

/// Reads one of them.
pub(super) fn read_one(
    ctx: &MemoryContext,
    area: MemoryArea,
    file: String,
    text: String,
) -> Result<Known, UserError> {
    let mut known = Origins::read(ctx)?.known(area, file, text);
    known.flags.extend(stale::World::of(ctx).stale(&known.memory.body).into_iter().map(Flag::Stale));
    Ok(known)
}

/// The last change of each file.
struct Origins {
    changes: Vec<Change>,
    last: HashMap<(bool, String), (usize, usize)>,
}

impl Origins {
    fn read(ctx: &MemoryContext) -> Result<Self, UserError> {
        Ok(Self::of(ctx.journal.changes().map_err(|error| to_user_error(&error))?))
    }

    /// Proposals are usually recent; the archive is opened only for one that is not.
    fn of_proposals<'a>(
        ctx: &MemoryContext,
        mut files: impl Iterator<Item = &'a str>,
    ) -> Result<Self, UserError> {
        let recent = Self::of(ctx.journal.recent_changes().map_err(|error| to_user_error(&error))?);
        match files.all(|file| recent.last.contains_key(&(true, file.to_owned()))) {
            true => Ok(recent),
            false => Self::read(ctx),
        }
    }

    fn of(changes: Vec<Change>) -> Self {
        let mut last = HashMap::new();
        for (n, change) in changes.iter().enumerate() {
            for (m, file) in change.files.iter().enumerate().filter(|(_, file)| file.before != file.after) {
                last.insert((file.area == MemoryArea::Pending, file.file.clone()), (n, m));
            }
        }
        Self { changes, last }
    }

    fn known(&self, area: MemoryArea, file: String, text: String) -> Known {
        let memory = MemoryFile::parse(&text);
        let flags = memory.problems.iter().cloned().map(Flag::Malformed).collect();
        let origin = self.last.get(&(area == MemoryArea::Pending, file.clone())).map(|(n, m)| {
            let change = &self.changes[*n];
            Origin {
                change: change.id,
                at: change.at.clone(),
                by: change.by.as_str(),
                session: change.session.clone(),
                message: change.message.clone(),
                is_edited: change.files[*m].after.as_ref().is_none_or(|after| after.to_text_lossy() != text),
            }
        });
        Known { file, text, memory, flags, origin }
    }
}
