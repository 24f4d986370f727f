//! Making a session of our own out of one of Codex.
//!
//! The new session has the id that it has in Codex, so it is found under it, importing twice is noticed, and a list
//! that has the one need not have the other. Every entry names its origin in `importedFrom`, which other programs
//! pass over. The file appears whole or not at all; the rollout is only read.

use std::path::PathBuf;
use std::sync::Arc;

use loci_core::entry::draft::{Metadata, Stamp};
use loci_core::entry::{BadEntry, Entry};
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{Env, WriteOptions, rfc3339_millis, write_atomic};

use crate::foreign::rollout::{ConvertedSession, RolloutError, convert, read_rollout_observed, titles};
use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::{FindError, session_by_id};
use crate::sessions::last_prompt_text;
use crate::sessions::lease::{Lease, LeaseError};

/// What an import says of itself in a session.
#[derive(Debug, Clone, Copy)]
pub struct ImportOptions<'a> {
    /// The version of the format's reference that we write like.
    pub version: &'a str,
    /// Under which id.
    pub under: ImportId,
}

/// The id of an imported session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportId {
    /// That which it has where it comes from.
    Same,
    /// A new one, so that a second copy can be made.
    New,
}

/// A session that was imported.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedSession {
    /// Where it is now.
    pub place: SessionPlace,
    /// The directory it is about.
    pub cwd: PathBuf,
    /// How many entries it has.
    pub n_entries: usize,
    /// How many lines could not be read, and how many results belonged to no call.
    pub n_left_out: usize,
}

/// Why a session was not imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It could not be read.
    #[error(transparent)]
    Rollout(#[from] RolloutError),
    /// Nothing was said in it.
    #[error("The Codex session has no messages: `{}`", path.display())]
    Nothing {
        /// The file.
        path: PathBuf,
    },
    /// It was imported before.
    #[error("The Codex session was imported before: {}", place.id())]
    Again {
        /// Where it is.
        place: SessionPlace,
    },
    /// Sessions could not be looked for.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Another process is at it.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// An entry could not be made.
    #[error("Failed to make an entry of `{}`", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: BadEntry,
    },
    /// The session could not be written.
    #[error("Failed to write session: `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Imports the rollout at `place`.
pub fn import_rollout(
    home: &ConfigHome,
    env: &Env,
    place: &SessionPlace,
    options: ImportOptions<'_>,
) -> Result<ImportedSession, ImportError> {
    import_rollout_observed(home, env, place, options, &|_, _| {})
}

/// Does the same, and tells how many bytes of how many are read.
pub fn import_rollout_observed(
    home: &ConfigHome,
    env: &Env,
    place: &SessionPlace,
    options: ImportOptions<'_>,
    progress: &dyn Fn(u64, u64),
) -> Result<ImportedSession, ImportError> {
    let read = read_rollout_observed(home, place.file(), progress)?;
    let path = || place.file().to_owned();
    let id = match options.under {
        ImportId::Same => place.id().clone(),
        ImportId::New => SessionId::parse(&env.random.uuid_v4().to_string())
            .map_err(|error| ImportError::Write { path: path(), source: Box::new(error) })?,
    };
    // Two imports at once would write one file.
    let _lease = Lease::acquire(home, &id, env)?;
    match session_by_id(home, &env.cwd, &id) {
        Err(FindError::NoSuchId { .. }) => {}
        Err(error) => return Err(error.into()),
        Ok(place) => return Err(ImportError::Again { place }),
    }
    let recorded = read.head.cwd.as_ref().map_or_else(|| env.cwd.clone(), PathBuf::from);
    let cwd = recorded.canonicalize().unwrap_or(recorded);
    let stamp = Stamp {
        session_id: id.clone(),
        cwd: cwd.to_string_lossy().into_owned(),
        version: options.version.to_owned(),
        git_branch: read.head.branch.clone().unwrap_or_else(|| "HEAD".to_owned()),
        entrypoint: "cli".to_owned(),
        slug: None,
        agent: None,
        agent_type: None,
    };
    let mut new_id = || EntryId::new(env.random.uuid_v4().to_string());
    let failed = |source| ImportError::Entry { path: path(), source };
    let converted = convert(&read, &stamp, &mut new_id).map_err(failed)?;
    if converted.entries.is_empty() {
        return Err(ImportError::Nothing { path: path() });
    }
    let title = titles(home).remove(place.id().as_str());
    let time = rfc3339_millis(env.clock.now());
    let text = text_of(&converted, title, &id, &time).map_err(failed)?;
    let new = home.session(&cwd, &id);
    let options = WriteOptions::private().creating_parents();
    write_atomic(new.file(), text.as_bytes(), &options)
        .map_err(|error| ImportError::Write { path: new.file().to_owned(), source: Box::new(error) })?;
    Ok(ImportedSession {
        place: new,
        cwd,
        n_entries: converted.entries.len(),
        n_left_out: read.n_skipped + converted.n_left_out,
    })
}

/// Returns the lines of the new session: the mode first, then what was said, then its name and where it stands.
fn text_of(
    converted: &ConvertedSession,
    title: Option<String>,
    id: &SessionId,
    time: &str,
) -> Result<String, BadEntry> {
    let mut lines = vec![Arc::new(Metadata::Mode.seal(id, time)?)];
    lines.extend(converted.entries.iter().cloned());
    if let Some(title) = title {
        lines.push(Arc::new(Metadata::CustomTitle { title }.seal(id, time)?));
    }
    if let Some(leaf) = &converted.leaf {
        let prompt = converted.last_prompt.as_deref().map(last_prompt_text);
        lines.push(Arc::new(Metadata::LastPrompt { prompt, leaf: leaf.clone() }.seal(id, time)?));
    }
    Ok(lines.iter().map(|entry: &Arc<Entry>| format!("{}\n", entry.line())).collect())
}
