//! Reading only the living part of a session file, from its end.
//!
//! A conversation begins at the last compaction on its path, so a resume needs the lines after that, not the
//! file: its cost grows with what will be sent, not with what ever was. The part read grows until
//! [`Conversation::from_end`] says that the rest cannot change the outcome: first to the nearest boundary, then to
//! whatever it asks for (the entries a compaction preserved, a lost parent, the branch that the leaf pointer
//! names), which is looked for in the raw bytes before. In the end that may be the whole file. Each round after
//! the first few doubles the part, so the work stays in proportion to it.

use std::io::{self, Read, Seek};
use std::path::Path;
use std::sync::Arc;

use loci_stdx::open_regular;

use loci_core::conversation::{Conversation, MissingEntries, TailConversation};
use loci_core::entry::{Entry, EntryKind};
use loci_core::ids::EntryId;

use super::window::{Sizes, Window};
use super::{LoadError, SkippedLine, mentions};

/// How often the part may grow by just what is missing.
const SMALL_STEPS: usize = 3;

/// The living part of a session.
#[derive(Debug, Default)]
pub struct LiveLoad {
    /// The conversation, as the whole file would give it. Its titles and mode are those of the part read.
    pub conversation: Conversation,
    /// The entries of the part read that have no place in the tree, in file order.
    pub metadata: Vec<Arc<Entry>>,
    /// What could not be read in that part.
    pub skipped: Vec<SkippedLine>,
    /// Where that part starts; 0 when it is the whole file.
    pub start: u64,
}

/// Reads what a resume of the session file at `path` needs.
pub fn load_live(path: &Path) -> Result<LiveLoad, LoadError> {
    Ok(read_file(path, Goal::Leaf)?.unwrap_or_default())
}

/// Reads what a copy of the session file at `path` begins with: the living part, or what leads to one entry. `None` when the
/// file does not have that.
pub fn load_fork_source(path: &Path, leaf: Option<&EntryId>) -> Result<Option<ForkSource>, LoadError> {
    let failed = |source| LoadError { path: path.to_owned(), source };
    let file = open_regular(path).map_err(failed)?;
    let goal = leaf.map_or(Goal::Leaf, Goal::Entry);
    Ok(read_part(&file, goal, Sizes::default()).map_err(failed)?.map(ForkSource::new))
}

/// What a session is copied from.
#[derive(Debug)]
pub struct ForkSource {
    /// The conversation, as the whole file would give it.
    pub conversation: Conversation,
    /// All entries of the part that was read, in file order.
    pub entries: Vec<Arc<Entry>>,
    /// What could not be read in that part.
    pub skipped: Vec<SkippedLine>,
}

impl ForkSource {
    fn new<R: Read + Seek>((window, conversation): (Window<R>, Conversation)) -> Self {
        let loaded = window.into_loaded();
        Self { conversation, entries: loaded.entries, skipped: loaded.skipped }
    }
}

/// Reads the conversation that ends at one entry, whatever was written later; `None` when the file does not
/// have it.
pub fn load_at(path: &Path, leaf: &EntryId) -> Result<Option<LiveLoad>, LoadError> {
    read_file(path, Goal::Entry(leaf))
}

/// Reads the end of the conversation that a resume goes on with, for somebody who looks: so many entries at least, as far as
/// so many bytes of the file have them. What comes before is not looked at, so this costs the same for every session.
///
/// The branch is the one that the end of the file names. [`load_live`] has the last word: where a pointer far before names
/// another branch, its path ends otherwise.
pub fn load_tail(path: &Path, least_entries: usize, most_bytes: u64) -> Result<ConversationTail, LoadError> {
    let failed = |source| LoadError { path: path.to_owned(), source };
    let file = open_regular(path).map_err(failed)?;
    let mut window = Window::new(&file, Sizes::default()).map_err(failed)?;
    window.extend_by(least_entries, most_bytes).map_err(failed)?;
    let is_whole = window.is_whole();
    let entries = window.into_loaded().entries;
    Ok(ConversationTail { entries: Conversation::build(entries).into_path(), is_whole })
}

/// The end of a conversation.
#[derive(Debug, Default)]
pub struct ConversationTail {
    /// Its last entries, oldest first.
    pub entries: Vec<Arc<Entry>>,
    /// Whether these are all.
    pub is_whole: bool,
}

/// Where the conversation is to end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Goal<'a> {
    /// Where the session stands.
    Leaf,
    /// At this entry.
    Entry(&'a EntryId),
}

fn read_file(path: &Path, goal: Goal<'_>) -> Result<Option<LiveLoad>, LoadError> {
    let failed = |source| LoadError { path: path.to_owned(), source };
    let file = open_regular(path).map_err(failed)?;
    read(&file, goal, Sizes::default()).map_err(failed)
}

/// Reads from the end of `reader`, which is positioned anew before every read.
pub(super) fn read<R: Read + Seek + Clone>(
    reader: R,
    goal: Goal<'_>,
    sizes: Sizes,
) -> io::Result<Option<LiveLoad>> {
    let part = read_part(reader, goal, sizes)?;
    Ok(part.map(|(window, conversation)| finish(window, conversation)))
}

/// Reads as much as settles the conversation.
fn read_part<R: Read + Seek + Clone>(
    reader: R,
    goal: Goal<'_>,
    sizes: Sizes,
) -> io::Result<Option<(Window<R>, Conversation)>> {
    let mut window = Window::new(reader.clone(), sizes)?;
    let mut searched = Vec::new();
    window.extend_to_a_start()?;
    for n_steps in 1.. {
        match build(&window, goal, &searched) {
            Ok(None) => break,
            Ok(Some(living)) if window.has_margin_before(living.start) => {
                return Ok(Some((window, living.conversation)));
            }
            Ok(Some(_)) => window.read_margin()?,
            Err(gap) => {
                let found = mentions::search(&mut reader.clone(), window.start(), sizes.chunk, &gap)?;
                match found.from {
                    Some(from) => window.extend_to(from)?,
                    None if found.settled.is_empty() => window.double()?,
                    None => {}
                }
                searched.extend(found.settled);
            }
        }
        if n_steps > SMALL_STEPS {
            window.double()?;
        }
    }
    Ok(None)
}

fn build<R: Read + Seek>(
    window: &Window<R>,
    goal: Goal<'_>,
    searched: &[EntryId],
) -> Result<Option<TailConversation>, MissingEntries> {
    let entries = window.entries();
    let whole = |conversation| TailConversation { conversation, start: 0 };
    match (goal, window.is_whole()) {
        (Goal::Leaf, true) => Ok(Some(whole(Conversation::build(entries)))),
        (Goal::Leaf, false) => Conversation::from_end(&entries, searched).map(Some),
        (Goal::Entry(leaf), true) => Ok(Conversation::build_at(entries, leaf).map(whole)),
        (Goal::Entry(leaf), false) => Conversation::from_end_at(&entries, leaf, searched),
    }
}

fn finish<R: Read + Seek>(window: Window<R>, conversation: Conversation) -> LiveLoad {
    let start = window.start();
    let loaded = window.into_loaded();
    let is_metadata = |entry: &Arc<Entry>| entry.head().kind == EntryKind::Metadata;
    let metadata = loaded.entries.into_iter().filter(is_metadata).collect();
    LiveLoad { conversation, metadata, skipped: loaded.skipped, start }
}

#[cfg(test)]
mod tests;
