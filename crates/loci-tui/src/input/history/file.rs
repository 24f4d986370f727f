//! The thread that reads and writes `history.jsonl`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use loci_storage::config::{InputEntry, InputHistory, InputScope};

use super::PastPrompt;

/// How many prompts of the project Up reaches.
const RECALLED: usize = 500;
/// How many prompts a search shows before it has read everything.
const FIRST_SEARCHED: usize = 200;
/// How long the end waits for what is still to be written.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// What the thread tells.
#[derive(Debug)]
pub enum HistoryNews {
    /// The prompts of the project, the latest first.
    Project(Vec<PastPrompt>),
    /// Prompts of all projects, the latest first; more follow unless these are all.
    Everywhere {
        /// The prompts.
        prompts: Arc<[PastPrompt]>,
        /// There are no others.
        is_all: bool,
    },
    /// Something failed; the sentence says what. Nothing but the history suffers.
    Failed(String),
}

enum Job {
    Append(Box<InputEntry>),
    LoadProject(PathBuf),
    LoadEverywhere,
}

/// The history file, behind a thread of its own. What is to be written is written before this is gone.
#[derive(Debug)]
pub struct HistoryFile {
    jobs: Option<Sender<Job>>,
    ended: Receiver<()>,
}

impl HistoryFile {
    /// Starts the thread; `tell` is called on it.
    pub fn start(
        history: InputHistory,
        tell: impl Fn(HistoryNews) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::channel::<Job>();
        let (ending, ended) = mpsc::channel();
        let work = move || {
            for job in waiting {
                perform(&history, job, &tell);
            }
            // Whoever waited for the end may have given up.
            ending.send(()).ok();
        };
        std::thread::Builder::new().name("input history".to_owned()).spawn(work)?;
        Ok(Self { jobs: Some(jobs), ended })
    }

    /// Writes a prompt.
    pub fn append(&self, prompt: &PastPrompt) {
        self.send(Job::Append(Box::new(prompt.to_entry())));
    }

    /// Asks for the prompts of a directory.
    pub fn load_project(&self, project: PathBuf) {
        self.send(Job::LoadProject(project));
    }

    /// Asks for all prompts.
    pub fn load_everywhere(&self) {
        self.send(Job::LoadEverywhere);
    }

    fn send(&self, job: Job) {
        // The thread ends only with this.
        if let Some(jobs) = &self.jobs {
            jobs.send(job).ok();
        }
    }
}

impl Drop for HistoryFile {
    fn drop(&mut self) {
        self.jobs = None;
        match self.ended.recv_timeout(LAST_PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
            Err(RecvTimeoutError::Timeout) => {
                tracing::warn!(target: "loci::storage", "the input history is still being written");
            }
        }
    }
}

fn perform(history: &InputHistory, job: Job, tell: &impl Fn(HistoryNews)) {
    let done = match job {
        Job::Append(entry) => history.append(&entry),
        Job::LoadProject(project) => history
            .recent(InputScope::Project(&project), RECALLED)
            .map(|entries| tell(HistoryNews::Project(past(&entries)))),
        Job::LoadEverywhere => load_everywhere(history, tell),
    };
    if let Err(error) = done {
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        tell(HistoryNews::Failed(format!("{error}{source}")));
    }
}

/// Tells the latest prompts first, and then all of them, if there are more.
fn load_everywhere(
    history: &InputHistory,
    tell: &impl Fn(HistoryNews),
) -> Result<(), loci_storage::config::InputHistoryError> {
    let first = history.recent(InputScope::Everywhere, FIRST_SEARCHED)?;
    let is_all = first.len() < FIRST_SEARCHED;
    tell(HistoryNews::Everywhere { prompts: past(&first).into(), is_all });
    if !is_all {
        let all = history.recent(InputScope::Everywhere, usize::MAX)?;
        tell(HistoryNews::Everywhere { prompts: past(&all).into(), is_all: true });
    }
    Ok(())
}

fn past(entries: &[InputEntry]) -> Vec<PastPrompt> {
    entries.iter().map(PastPrompt::from_entry).collect()
}
