//! The threads that find files for mentions and paths.
//!
//! One thread answers queries, always the latest one only; another walks the project, once a mention begins, and hands a
//! new index over when it is done. A query is answered from the index there is, and again from the new one, so that files
//! that were just made are found. Nothing runs while nothing is asked.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use loci_app::interface::file_suggestions::{FileIndex, FileSource, IgnoredFiles, OFFERED, paths, suggest};
use loci_app::interface::helper_command::HelperSandboxes;

use super::TokenKind;

/// The most of them that are offered beside files, and how many of them keep a place behind files.
const MOST_MENTIONS: usize = 5;
const OFFERED_BEHIND: usize = 2;
/// So many letters of `session:` mean sessions.
const LEAST_OF_SESSION: usize = 4;
/// The same of agents and resources: a letter or two are in the name of each of them.
const LEAST_OF_OTHERS: usize = 3;

/// Something other than a file that can be mentioned: an agent, a resource, a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// What stands behind `@`.
    pub name: String,
    /// What it is, for the menu.
    pub detail: String,
}

/// How the mention of a session begins; its id follows.
pub const SESSION_MENTION: &str = "session:";

impl Mention {
    /// Returns what is compared with what is typed: nobody knows the id of a session, so its title counts.
    fn searched(&self) -> String {
        match self.name.strip_prefix(SESSION_MENTION) {
            Some(id) => format!("{SESSION_MENTION}{} {id}", self.detail.replace('/', " ")),
            None => self.name.clone(),
        }
    }

    fn is_session(&self) -> bool {
        self.name.starts_with(SESSION_MENTION)
    }

    /// Tells whether it is what somebody who typed this is after, rather than a file.
    fn is_named_by(&self, query: &str) -> bool {
        match self.is_session() {
            true => {
                query.len() >= LEAST_OF_SESSION
                    && has(SESSION_MENTION, query.get(..SESSION_MENTION.len()).unwrap_or(query))
            }
            false => query.len() >= LEAST_OF_OTHERS && has(&self.name, query),
        }
    }

    /// Tells whether it may be meant at all. Sessions are many, and letters of any title lie somewhere in any order: where
    /// they were not asked for, what is typed has to stand in the title or the id as it is.
    fn may_mean(&self, query: &str) -> bool {
        let Some(id) = self.name.strip_prefix(SESSION_MENTION) else { return true };
        let title = self.detail.rsplit_once(" · ").map_or(self.detail.as_str(), |(title, _)| title);
        self.is_named_by(query) || has(title, query) || has(id, query)
    }
}

/// Tells whether a text has another in it, whatever the case.
fn has(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// What was found for a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAnswer {
    /// The kind of token that it was asked for.
    pub kind: TokenKind,
    /// The query. An answer to another query than the one at the caret is out of date.
    pub query: String,
    /// What fits, the best first: a path or a name, and what it is.
    pub found: Vec<(String, String)>,
    /// The project is still being read for the first time: more may come.
    pub is_reading: bool,
    /// Why nothing was found, where something failed.
    pub failure: Option<String>,
}

impl FileAnswer {
    /// Says that files cannot be found, since there is no thread to find them.
    pub fn failed(kind: TokenKind, query: &str) -> Self {
        let failure = Some("Files cannot be completed: no thread could be started".to_owned());
        Self { kind, query: query.to_owned(), found: Vec::new(), is_reading: false, failure }
    }
}

/// What a command that suggests files is given.
#[derive(Debug, Clone, Default)]
pub struct SuggestionHelper {
    /// Its whole environment.
    pub vars: Vec<(String, String)>,
    /// Makes the sandbox that it asks for.
    pub sandboxes: HelperSandboxes,
}

enum Job {
    Ask(TokenKind, String),
    Mentions(Vec<Mention>),
    Indexed(FileIndex),
    Stop,
}

/// Finds files beside the thread that draws. Dropping it ends its threads when they are done.
#[derive(Debug)]
pub struct FileCompleter {
    jobs: Sender<Job>,
}

impl FileCompleter {
    /// Starts the thread that answers; `tell` is called on it.
    pub fn start(
        cwd: PathBuf,
        home: PathBuf,
        helper: SuggestionHelper,
        source: FileSource,
        tell: impl Fn(FileAnswer) + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, waiting) = mpsc::channel();
        // The walker hands its index over through it; the thread ends by being told, not by a closed channel.
        let own_jobs = jobs.clone();
        let finder = Finder {
            cwd,
            home,
            helper,
            source,
            mentions: Vec::new(),
            index: None,
            is_walking: false,
            last: None,
        };
        thread::Builder::new()
            .name("file completion".to_owned())
            .spawn(move || finder.run(&waiting, &own_jobs, &tell))?;
        Ok(Self { jobs })
    }

    /// Asks what fits; the answer comes through `tell`, perhaps twice, unless another question comes before.
    pub fn ask(&self, kind: TokenKind, query: &str) {
        self.send(Job::Ask(kind, query.to_owned()));
    }

    /// Says what else can be mentioned.
    pub fn set_mentions(&self, mentions: Vec<Mention>) {
        self.send(Job::Mentions(mentions));
    }

    fn send(&self, job: Job) {
        // The thread lives as long as this.
        self.jobs.send(job).ok();
    }
}

impl Drop for FileCompleter {
    fn drop(&mut self) {
        self.send(Job::Stop);
    }
}

struct Finder {
    cwd: PathBuf,
    home: PathBuf,
    helper: SuggestionHelper,
    source: FileSource,
    mentions: Vec<Mention>,
    index: Option<FileIndex>,
    is_walking: bool,
    last: Option<(TokenKind, String)>,
}

impl Finder {
    fn run(mut self, jobs: &Receiver<Job>, own_jobs: &Sender<Job>, tell: &impl Fn(FileAnswer)) {
        while let Ok(job) = jobs.recv() {
            let mut question = None;
            let mut is_new_index = false;
            // Only the latest question is worth an answer.
            for job in std::iter::once(job).chain(jobs.try_iter()) {
                match job {
                    Job::Stop => return,
                    Job::Ask(kind, query) => question = Some((kind, query)),
                    Job::Mentions(mentions) => self.mentions = mentions,
                    Job::Indexed(index) => {
                        self.index = Some(index);
                        self.is_walking = false;
                        is_new_index = true;
                    }
                }
            }
            if let Some((kind, query)) = &question {
                self.walk_if_needed(*kind, query, own_jobs);
            }
            if let Some((kind, query)) = question.or_else(|| self.last.clone().filter(|_| is_new_index)) {
                tell(self.answer(kind, &query));
                self.last = Some((kind, query));
            }
        }
    }

    /// Reads the project anew when a mention begins: the query is not what a letter more or less makes of the last one.
    fn walk_if_needed(&mut self, kind: TokenKind, query: &str, own_jobs: &Sender<Job>) {
        let is_wanted = kind == TokenKind::Mention
            && matches!(self.source, FileSource::Project(_))
            && !paths::is_explicit(query);
        let begins = self.last.as_ref().is_none_or(|(last_kind, last)| {
            *last_kind != kind
                || !(last.starts_with(query) || query.starts_with(last.as_str()))
                || query.is_empty()
        });
        if !is_wanted || self.is_walking || (self.index.is_some() && !begins) {
            return;
        }
        let ignored = match &self.source {
            FileSource::Project(ignored) => *ignored,
            FileSource::Command(_) => IgnoredFiles::default(),
        };
        let (root, jobs) = (self.cwd.clone(), own_jobs.clone());
        let walk = move || {
            // Nobody waits for it once the completer is gone.
            jobs.send(Job::Indexed(FileIndex::build(&root, ignored))).ok();
        };
        self.is_walking = thread::Builder::new().name("file index".to_owned()).spawn(walk).is_ok();
    }

    fn answer(&self, kind: TokenKind, query: &str) -> FileAnswer {
        let mut failure = None;
        let is_explicit = kind == TokenKind::ShellPath || paths::is_explicit(query);
        let files: Vec<String> = match &self.source {
            _ if kind == TokenKind::Directory => paths::directories(query, &self.cwd, &self.home, OFFERED),
            _ if is_explicit => paths::list(query, &self.cwd, &self.home, OFFERED),
            FileSource::Command(command) => {
                let SuggestionHelper { vars, sandboxes } = &self.helper;
                suggest(command, sandboxes, &self.cwd, vars, query).unwrap_or_else(|why| {
                    failure = Some(why);
                    Vec::new()
                })
            }
            FileSource::Project(_) => {
                let found = self.index.as_ref().map(|index| index.search(query, OFFERED));
                found.unwrap_or_default().into_iter().map(str::to_owned).collect()
            }
        };
        let has_mentions = kind == TokenKind::Mention && !query.is_empty() && !is_explicit;
        let (first, last) = if has_mentions { self.fitting_mentions(query) } else { Default::default() };
        let shown = |mention: &Mention| (mention.name.clone(), mention.detail.clone());
        let mut found: Vec<(String, String)> = first.into_iter().map(shown).collect();
        found.extend(files.into_iter().map(|path| (path, String::new())));
        // However many files fit, something else that does is seen as well.
        found.truncate(OFFERED.saturating_sub(last.len().min(OFFERED_BEHIND)));
        found.extend(last.into_iter().map(shown));
        found.truncate(OFFERED);
        let is_reading = self.is_walking && self.index.is_none();
        FileAnswer { kind, query: query.to_owned(), found, is_reading, failure }
    }

    /// Returns what fits beside files: what comes before those, since its name has what is typed, and what comes behind them.
    fn fitting_mentions(&self, query: &str) -> (Vec<&Mention>, Vec<&Mention>) {
        let meant: Vec<&Mention> = self.mentions.iter().filter(|mention| mention.may_mean(query)).collect();
        let searched: Vec<String> = meant.iter().map(|mention| mention.searched()).collect();
        let fitting = FileIndex::from_paths(&searched);
        let mention = |text: &str| {
            let place = searched.iter().position(|searched| searched == text)?;
            meant.get(place).copied()
        };
        let fitting = fitting.search(query, MOST_MENTIONS).into_iter().filter_map(mention);
        fitting.partition(|mention| mention.is_named_by(query))
    }
}
