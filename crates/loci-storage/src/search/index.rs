//! Searching every message of every session.
//!
//! The index lies under `<config home>/loci/index/` as a few files that are written once ([`segment`]). It is never the
//! truth: whatever it does not know is scanned, what it knows wrongly is noticed, and it may be deleted at any time.
//! It is written by hand, although tantivy exists: what is indexed and what is scanned must rank alike, and we need a small
//! part of an engine. `docs/design/index.md` has the figures, the decisions and the invariants.

mod builder;
mod check;
mod coverage;
mod filter;
mod merge;
mod part_sum;
mod passage_reader;
mod phrase;
mod phrase_batch;
mod positions;
mod postings;
mod scan;
mod search;
mod segment;
mod source;
mod update;
mod walk;

pub(crate) use check::{IndexFault, index_faults};
pub(crate) use passage_reader::milliseconds;

use std::collections::HashSet;
use std::path::PathBuf;

use loci_core::passage::Passage;
use loci_core::search::Query;
use regex::RegexBuilder;

pub use filter::SearchFilter;

use crate::layout::{ConfigHome, SessionPlace};
use crate::sessions::find::FindError;
use coverage::{Coverage, IndexableFile, UnindexedTail, files_on_disk};
use scan::Pattern;
use search::{IndexMismatch, SearchContext};
use segment::open_all;
use update::UpdateBase;

/// As much as this is scanned rather than indexed first.
const SCANNED: u64 = 8 * 1024 * 1024;
/// From this on what was scanned is indexed afterwards, so that the next search need not.
const WORTH_INDEXING: u64 = 1024 * 1024;

/// How often a search begins again; files that change all the time must not keep it from ending.
const MOST_ROUNDS: usize = 64;

/// What somebody searches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, or an expression.
    pub text: String,
    /// Whether the text is an expression.
    pub is_regex: bool,
    /// What the search is narrowed to.
    pub filter: SearchFilter,
    /// How many of the best to pass over.
    pub skip: usize,
    /// How many to give.
    pub limit: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchResults {
    /// How many passages there are.
    pub n_found: usize,
    /// Whether that number is exact; words that must stand together are checked only as far as needed.
    pub is_exact: bool,
    /// Those asked for, the best first.
    pub hits: Vec<Hit>,
    /// Files, and directories of projects, that could not be read.
    pub unread: Vec<PathBuf>,
    /// Whether everything was looked at; not when nobody waited any more.
    pub is_whole: bool,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The session.
    pub session: SessionPlace,
    /// The subagent who said it, if one did.
    pub agent: Option<String>,
    /// Whether the session was put away.
    pub is_archived: bool,
    /// The id of the message.
    pub message: Option<String>,
    /// When it was said, as written.
    pub time: Option<String>,
    /// How well it answers.
    pub score: f64,
    /// What was said.
    pub passage: Passage,
}

/// Watches a search that may take a while.
pub trait SearchObserver: Sync {
    /// Returns true when nobody waits any more.
    fn is_stopped(&self) -> bool {
        false
    }

    /// Returns how many bytes each reader may have to read again after a crash: what it has read is written whenever it is
    /// so much.
    fn max_unsaved_bytes(&self) -> u64 {
        96 * 1024 * 1024
    }

    /// Hears how many bytes of how many have been indexed; before the first, of none.
    fn progress(&self, _n_done: u64, _n_total: u64) {}
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl SearchObserver for NoObserver {}

/// How the index takes part in a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUse {
    /// It is used, and brought up to date where that is worth while.
    Normal,
    /// It is used as it is.
    AsItIs,
    /// It is left alone: everything is scanned.
    None,
}

/// Why a search could not be made.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is nothing to search for.
    #[error("A search needs at least one letter or digit: `{text}`")]
    Empty {
        /// What was given.
        text: String,
    },
    /// The expression is not one.
    #[error("Not a regular expression: `{text}`")]
    Expression {
        /// What was given.
        text: String,
        /// What is wrong with it.
        source: Box<regex::Error>,
    },
    /// Sessions could not be listed.
    #[error(transparent)]
    Find(#[from] FindError),
    /// The index could not be written.
    #[error("Failed to write the index of sessions: `{}`", dir.display())]
    Index {
        /// Where it lies.
        dir: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Searches every message of every session. `unique` names what is written: no other process may use the same.
pub fn search_sessions(
    home: &ConfigHome,
    query: &SearchQuery,
    how: IndexUse,
    unique: &str,
    observer: &dyn SearchObserver,
) -> Result<SearchResults, SearchError> {
    let pattern = pattern(query)?;
    let dir = home.loci_dir().join("index");
    let uses_index = how != IndexUse::None && !query.is_regex;
    // Listing the files and reading what is known of them have nothing to do with each other.
    let (listed, opened) = std::thread::scope(|scope| {
        let open = || open_all(&dir).0;
        let opening = uses_index.then(|| std::thread::Builder::new().spawn_scoped(scope, open));
        let listed = files_on_disk(home);
        // Without another thread one thing is done after the other.
        (listed, opening.map(|opening| opening.map_or_else(|_| Ok(open()), |opening| opening.join())))
    });
    let (files, unlisted) = listed?;
    let mut segments = match opened {
        Some(Ok(segments)) => segments,
        Some(Err(panic)) => std::panic::resume_unwind(panic),
        None => Vec::new(),
    };
    let mut coverage = Coverage::from_segments(&files, &segments);
    let n_unknown = coverage.n_unknown(&files);
    // An index that cannot be written costs speed, never a result.
    let bring_up_to_date =
        || update::update(&dir, &files, UpdateBase::Index, unique, observer).unwrap_or(false);
    if how == IndexUse::Normal && uses_index && n_unknown > SCANNED && bring_up_to_date() {
        segments = open_all(&dir).0;
        coverage = Coverage::from_segments(&files, &segments);
    }
    let mut unknown: HashSet<usize> = HashSet::new();
    let mut n_rounds = 0;
    let mut found = loop {
        n_rounds += 1;
        let is_strict = n_rounds <= MOST_ROUNDS;
        let ctx = SearchContext { files: &files, segments: &segments, coverage: &coverage, is_strict };
        match search::search(&ctx, query, &pattern, observer) {
            Ok(found) => break found,
            Err(IndexMismatch::Segment(idx)) => drop(segments.remove(idx)),
            Err(IndexMismatch::File(file)) => drop(unknown.insert(file)),
        }
        coverage = without(Coverage::from_segments(&files, &segments), &files, &unknown);
    };
    found.is_whole = !observer.is_stopped();
    found.unread.splice(..0, unlisted);
    let is_worth_while = (WORTH_INDEXING..=SCANNED).contains(&n_unknown);
    if how == IndexUse::Normal && uses_index && is_worth_while {
        bring_up_to_date();
    }
    Ok(found)
}

/// Brings the index up to date; false when another process is at it.
pub fn update_index(
    home: &ConfigHome,
    unique: &str,
    observer: &dyn SearchObserver,
) -> Result<bool, SearchError> {
    write_index(home, UpdateBase::Index, unique, observer)
}

/// Throws the index away and makes it anew; false when another process is at it, and nothing was thrown away.
pub fn rebuild_index(
    home: &ConfigHome,
    unique: &str,
    observer: &dyn SearchObserver,
) -> Result<bool, SearchError> {
    write_index(home, UpdateBase::Nothing, unique, observer)
}

fn write_index(
    home: &ConfigHome,
    base: UpdateBase,
    unique: &str,
    observer: &dyn SearchObserver,
) -> Result<bool, SearchError> {
    let (files, _) = files_on_disk(home)?;
    let dir = home.loci_dir().join("index");
    update::update(&dir, &files, base, unique, observer).map_err(|source| SearchError::Index { dir, source })
}

fn pattern(query: &SearchQuery) -> Result<Pattern, SearchError> {
    let text = &query.text;
    if query.is_regex {
        let expression = RegexBuilder::new(text).multi_line(true).build();
        return expression
            .map(Pattern::Expression)
            .map_err(|source| SearchError::Expression { text: text.clone(), source: Box::new(source) });
    }
    let words = Query::parse(text);
    if words.terms().is_empty() {
        return Err(SearchError::Empty { text: text.clone() });
    }
    Ok(Pattern::Words(words))
}

/// Makes files unknown.
fn without(mut coverage: Coverage, files: &[IndexableFile], unknown: &HashSet<usize>) -> Coverage {
    let is_unknown = |file: &u32| unknown.contains(&(*file as usize));
    for live in coverage.live.iter_mut().flatten() {
        *live = live.filter(|file| !is_unknown(file));
    }
    coverage.rest.retain(|rest| !unknown.contains(&rest.file));
    let whole = |file: &usize| UnindexedTail {
        file: *file,
        start: 0,
        calls: loci_core::passage::CallNames::default(),
    };
    coverage.rest.extend(unknown.iter().filter(|file| files[**file].size > 0).map(whole));
    coverage
}
