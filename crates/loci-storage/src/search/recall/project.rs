//! Looking things up beyond the conversation: in the memories and the earlier sessions of its project.
//!
//! Memories come first, because somebody thought them worth keeping. Sessions are searched as `loci sessions search` does it,
//! with the index as it is; the conversation that asks is not among them.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use loci_core::passage::Voice;
use loci_core::recall::{RecallHit, RecallPlace, RecallQuery, RecallResult, RecallSearch, RecallSource};
use loci_core::search::{Query, nearest, part_around};

use super::{RECALL_TOOL, recall};
use crate::layout::ConfigHome;
use crate::memory::{MemoryText, memory_files};
use crate::search::index::{
    Hit, IndexUse, SearchError, SearchFilter, SearchObserver, SearchQuery, search_sessions,
};
use crate::sessions::session_file::LoadError;

/// Memories that are shown before sessions.
const MOST_MEMORIES: usize = 5;

/// Where the memories and sessions of a project lie.
#[derive(Debug, Clone)]
pub struct ProjectRecord {
    /// The config home.
    pub home: ConfigHome,
    /// The directory of the project's sessions.
    pub sessions: PathBuf,
    /// The file of the conversation that asks.
    pub own: PathBuf,
    /// The directory of the project's memories, where they are on.
    pub memory: Option<PathBuf>,
}

struct Stopping<'a>(&'a AtomicBool);

impl SearchObserver for Stopping<'_> {
    fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl ProjectRecord {
    /// Searches memories and earlier sessions.
    pub fn search(&self, search: &RecallSearch, stop: &AtomicBool) -> Result<RecallResult, SearchError> {
        let query = Query::parse(&search.query);
        let memories = self.memories(&query, search);
        let from_memory: Vec<RecallHit> =
            memories.iter().skip(search.skip).take(search.limit).cloned().collect();
        let sessions = SearchQuery {
            text: search.query.clone(),
            is_regex: false,
            filter: SearchFilter {
                sessions: Some(self.others()),
                voices: search.voice.into_iter().collect(),
                ..SearchFilter::default()
            },
            skip: search.skip.saturating_sub(memories.len()),
            limit: search.limit - from_memory.len(),
        };
        let found = search_sessions(&self.home, &sessions, IndexUse::AsItIs, "", &Stopping(stop))?;
        let is_said = |hit: &Hit| hit.agent.is_none() && hit.passage.tool.as_deref() != Some(RECALL_TOOL);
        let said = found.hits.into_iter().filter(is_said).map(|hit| to_hit(hit, &query, search.excerpt));
        Ok(RecallResult::Found {
            n_found: found.n_found + memories.len(),
            n_searched: self.others().len(),
            hits: from_memory.into_iter().chain(said).collect(),
        })
    }

    /// Quotes a message of another session of the project.
    pub fn quote(
        &self,
        session: &str,
        message: &str,
        offset: usize,
        limit: usize,
        stop: &AtomicBool,
    ) -> Result<RecallResult, LoadError> {
        let is_plain = session.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
        let file = self
            .others()
            .into_iter()
            .find(|file| is_plain && file.file_stem().is_some_and(|stem| stem.to_string_lossy() == session));
        let Some(file) = file else { return Ok(RecallResult::NoSuchMessage { n_matching: 0 }) };
        let wish = RecallQuery::Quote { message: message.to_owned(), offset, limit };
        let mut recalled = recall(&file, &wish, stop)?;
        if let RecallResult::Quoted { source, .. } = &mut recalled {
            source.place = RecallPlace::Session(session.to_owned());
        }
        Ok(recalled)
    }

    /// Returns the files of the project's other sessions.
    fn others(&self) -> HashSet<PathBuf> {
        let entries = std::fs::read_dir(&self.sessions).into_iter().flatten().filter_map(Result::ok);
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let files = files.map(|entry| entry.path());
        files.filter(|file| *file != self.own && file.extension().is_some_and(|it| it == "jsonl")).collect()
    }

    /// Returns memories with at least half of the words, those with most first.
    fn memories(&self, query: &Query, search: &RecallSearch) -> Vec<RecallHit> {
        let Some(dir) = self.memory.as_ref().filter(|_| search.voice.is_none()) else { return Vec::new() };
        let mut counts = Vec::new();
        let mut found: Vec<(usize, u32, MemoryText)> = Vec::new();
        for memory in memory_files(dir) {
            query.count(&memory.text, &mut counts);
            let n_terms = counts.iter().filter(|count| **count > 0).count();
            if n_terms > 0 && n_terms * 2 >= counts.len() && query.has_literals(&memory.text) {
                found.push((n_terms, counts.iter().sum(), memory));
            }
        }
        found.sort_by(|a, b| (b.0, b.1, &a.2.file).cmp(&(a.0, a.1, &b.2.file)));
        found.truncate(MOST_MEMORIES);
        found.into_iter().map(|(_, _, memory)| of_memory(memory, query, search.excerpt)).collect()
    }
}

fn of_memory(memory: MemoryText, query: &Query, excerpt: usize) -> RecallHit {
    let source = RecallSource {
        message: memory.file,
        voice: Voice::Note,
        tool: None,
        time: None,
        place: RecallPlace::Memory,
    };
    part_of(source, &memory.text, query, excerpt)
}

fn to_hit(hit: Hit, query: &Query, excerpt: usize) -> RecallHit {
    let source = RecallSource {
        message: hit.message.unwrap_or_default(),
        voice: hit.passage.voice,
        tool: hit.passage.tool,
        time: hit.time,
        place: RecallPlace::Session(hit.session.id().to_string()),
    };
    part_of(source, &hit.passage.text, query, excerpt)
}

fn part_of(source: RecallSource, text: &str, query: &Query, excerpt: usize) -> RecallHit {
    let weights = vec![1.0; query.terms().len()];
    let range = part_around(text, &nearest(query, &weights, text).range, excerpt);
    RecallHit {
        source,
        excerpt: text[range.clone()].to_owned(),
        offset: text[..range.start].chars().count(),
        n_chars: text.chars().count(),
        is_compacted: false,
    }
}
