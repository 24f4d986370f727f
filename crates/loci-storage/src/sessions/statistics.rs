//! What was used: turns, responses, tokens and cost of every session, by day, project and model.
//!
//! Every transcript is read once, a block at a time, subagents' and archived ones too; of each line only the fields that
//! count are looked at ([`records`]). Nothing is counted twice:
//!
//! 1. The blocks of one response repeat its usage; a response is known by its message id and request id.
//! 2. A fork copies prompts and responses; they count in the session that comes first in the order of paths.
//! 3. What was imported from another agent was paid for elsewhere and does not count.
//! 4. Of a `cost-state` only that counts which no response before it has said ([`unrecorded`]): requests whose answers are
//!    no part of the conversation.
//!
//! A session is counted wherever it has a message, its own or a copied one. It belongs to the project it began in: the
//! repository around that directory, or the directory itself.

mod line_reader;
mod totals;
mod unrecorded;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{self};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;
use loci_core::model::{ModelCatalog, Price};
use loci_core::usage::ModelUsage;
use loci_stdx::{Date, TimeZone, open_regular};

use crate::layout::{ConfigHome, SessionPlace};
use crate::project::Project;
use crate::project::find_repository;
use crate::sessions::archive::packed_transcripts;
use crate::sessions::find::{FindError, ListedFile, SessionFiles, all_session_files};
use crate::sessions::session_file::each_line;
use line_reader::{LineReader, UsageKind, UsageRecord};
pub use totals::session_totals;
use unrecorded::unrecorded;

/// How many read at once.
const MOST_READERS: usize = 4;

/// What is counted.
#[derive(Debug, Clone)]
pub struct StatisticsQuery {
    /// Only the sessions of this project.
    pub project: Option<Project>,
    /// Nothing before this moment, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Nothing from this moment on.
    pub until_ms: Option<i64>,
    /// Where days begin at midnight.
    pub zone: TimeZone,
    /// What models cost.
    pub models: ModelCatalog,
}

impl StatisticsQuery {
    /// Counts everything, at list price.
    pub fn new(zone: TimeZone) -> Self {
        Self { project: None, since_ms: None, until_ms: None, zone, models: ModelCatalog::default() }
    }
}

/// What was used.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// In the order of sessions; those of one session follow one another.
    pub rows: Vec<UsageRow>,
    /// Files that could not be read.
    pub unread: Vec<PathBuf>,
}

/// What one session used with one model on one day.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageRow {
    /// The number of the session; it means nothing but which rows are of the same one.
    pub session: usize,
    /// The day, where the entries have a time.
    pub day: Option<Date>,
    /// The project's directory; empty where the entries have none.
    pub project: Arc<str>,
    /// The model; none of prompts that no model answered.
    pub model: Option<Arc<str>>,
    /// Whether the model has a price; what has none costs nothing here.
    pub is_priced: bool,
    /// Prompts that this model answered first.
    pub n_turns: u64,
    /// Responses.
    pub n_responses: u64,
    /// Tokens and cost.
    pub usage: ModelUsage,
}

/// Reads every session there is.
pub fn session_statistics(home: &ConfigHome, query: &StatisticsQuery) -> Result<Statistics, FindError> {
    let (sessions, unread) = sessions(home)?;
    let mut count = UsageCounter { models: query.models.clone(), ..UsageCounter::default() };
    count.statistics.unread = unread;
    for (number, (session, mut read)) in sessions.iter().zip(read_all(&sessions, query)).enumerate() {
        count.statistics.unread.append(&mut read.unread);
        let is_wanted = |project: &Project| project.owns_recorded(home, &session.place, read.cwd.as_deref());
        if query.project.as_ref().is_none_or(is_wanted) {
            count.add(number, &read);
        }
    }
    Ok(count.statistics)
}

/// A session and its transcripts, its own first.
struct Session {
    place: SessionPlace,
    files: Vec<TranscriptFile>,
}

/// Where a transcript lies.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum TranscriptFile {
    Plain(PathBuf),
    Packed(PathBuf),
}

impl TranscriptFile {
    fn path(&self) -> &Path {
        match self {
            Self::Plain(path) | Self::Packed(path) => path,
        }
    }

    fn open(&self) -> io::Result<Box<dyn Read>> {
        let file = open_regular(self.path())?;
        Ok(match self {
            Self::Plain(_) => Box::new(file),
            Self::Packed(_) => Box::new(GzDecoder::new(file)),
        })
    }
}

/// Lists the sessions in the order of their paths, archived ones where they were, and the directories that cannot be listed.
fn sessions(home: &ConfigHome) -> Result<(Vec<Session>, Vec<PathBuf>), FindError> {
    let mut all: BTreeMap<PathBuf, Session> = BTreeMap::new();
    let SessionFiles { sessions, unread } = all_session_files(home)?;
    for ListedFile { place, has_companion, .. } in sessions {
        let mut files = vec![TranscriptFile::Plain(place.file().to_owned())];
        if has_companion {
            files.extend(subagents(&place));
        }
        all.insert(place.file().to_owned(), Session { place, files });
    }
    for packed in packed_transcripts(home) {
        // One that is in its place again is read there.
        if packed.session.file().exists() {
            continue;
        }
        let session = all
            .entry(packed.session.file().to_owned())
            .or_insert_with(|| Session { place: packed.session.clone(), files: Vec::new() });
        session.files.push(TranscriptFile::Packed(packed.pack));
    }
    Ok((all.into_values().collect(), unread))
}

fn subagents(place: &SessionPlace) -> Vec<TranscriptFile> {
    let entries = fs::read_dir(place.subagents_dir()).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut files: Vec<TranscriptFile> = paths
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .map(TranscriptFile::Plain)
        .collect();
    files.sort();
    files
}

/// What the transcripts of one session say.
#[derive(Default)]
struct SessionUsage {
    cwd: Option<String>,
    /// Of its own transcript.
    own: Vec<UsageRecord>,
    /// Of its agents'.
    agents: Vec<UsageRecord>,
    unread: Vec<PathBuf>,
}

/// Reads all sessions with a few threads; what was read comes in the order of sessions.
fn read_all(sessions: &[Session], query: &StatisticsQuery) -> Vec<SessionUsage> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Vec::with_capacity(sessions.len()));
    let read = || {
        let mut reader = LineReader::new(query);
        let mut mine = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(session) = sessions.get(number) else { break };
            mine.push((number, read_session(session, &mut reader)));
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
    };
    let n_readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    std::thread::scope(|scope| {
        for _ in 1..n_readers.min(sessions.len()) {
            // Without another thread this one does all the work.
            drop(std::thread::Builder::new().spawn_scoped(scope, read));
        }
        read();
    });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, usage)| usage).collect()
}

fn read_session(session: &Session, reader: &mut LineReader<'_>) -> SessionUsage {
    let mut usage = SessionUsage::default();
    for source in &session.files {
        let read = source.open().and_then(|mut file| {
            each_line(&mut file, |line| {
                reader.read_line(line.bytes);
                true
            })
        });
        // What was read before it failed counts.
        if read.is_err() {
            usage.unread.push(source.path().to_owned());
        }
        let (cwd, mut records) = reader.finish_file();
        usage.cwd = usage.cwd.or(cwd);
        let is_own = std::ptr::eq(source, &session.files[0]);
        if is_own { &mut usage.own } else { &mut usage.agents }.append(&mut records);
    }
    usage
}

/// The rows of one session.
struct SessionRows {
    session: usize,
    project: Arc<str>,
    rows: BTreeMap<(Option<Date>, Option<Arc<str>>), UsageRow>,
}

impl SessionRows {
    /// Returns the row that a record belongs to.
    fn row(&mut self, record: &UsageRecord, price: Option<Price>) -> &mut UsageRow {
        self.rows.entry((record.day, record.model.clone())).or_insert_with(|| UsageRow {
            session: self.session,
            day: record.day,
            project: self.project.clone(),
            model: record.model.clone(),
            is_priced: price.is_some(),
            n_turns: 0,
            n_responses: 0,
            usage: ModelUsage::default(),
        })
    }
}

/// What has been counted so far.
#[derive(Default)]
struct UsageCounter {
    statistics: Statistics,
    seen: HashSet<u64>,
    projects: HashMap<String, Arc<str>>,
    models: ModelCatalog,
    prices: HashMap<Arc<str>, Option<Price>>,
}

impl UsageCounter {
    fn add(&mut self, session: usize, usage: &SessionUsage) {
        let project = self.project(usage.cwd.as_deref().unwrap_or_default());
        let mut rows = SessionRows { session, project, rows: BTreeMap::new() };
        for record in usage.own.iter().chain(&usage.agents).filter(|record| record.is_wanted) {
            let price = record.model.as_ref().and_then(|model| self.price(model));
            let is_new = self.seen.insert(record.key);
            match &record.what {
                UsageKind::State(_) => {}
                UsageKind::Turn => rows.row(record, price).n_turns += u64::from(is_new),
                UsageKind::Response(usage) => {
                    let row = rows.row(record, price);
                    if is_new {
                        row.n_responses += 1;
                        row.usage.add(usage, price.as_ref());
                    }
                }
            }
        }
        for beyond in unrecorded(&usage.own, &usage.agents, &self.models) {
            let state = &usage.own[beyond.at];
            let model: Arc<str> = beyond.model.into();
            let price = self.price(&model);
            if state.is_wanted {
                let record = UsageRecord { model: Some(model), ..state.clone() };
                rows.row(&record, price).usage.add_all(&beyond.usage);
            }
        }
        self.statistics.rows.extend(rows.rows.into_values());
    }

    /// Returns the directory that stands for the project of a session that began in `cwd`.
    fn project(&mut self, cwd: &str) -> Arc<str> {
        if let Some(project) = self.projects.get(cwd) {
            return project.clone();
        }
        let project: Arc<str> = match find_repository(Path::new(cwd)) {
            // Worktrees belong to the first of them, whichever was used.
            Some(repository) if !cwd.is_empty() => {
                repository.worktrees.first().unwrap_or(&repository.root).to_string_lossy().into()
            }
            Some(_) | None => cwd.into(),
        };
        self.projects.insert(cwd.to_owned(), project.clone());
        project
    }

    fn price(&mut self, model: &Arc<str>) -> Option<Price> {
        *self.prices.entry(model.clone()).or_insert_with(|| self.models.facts(model).price)
    }
}
