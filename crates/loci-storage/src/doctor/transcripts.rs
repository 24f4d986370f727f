//! Every transcript of the store: its lines, its tree, what it refers to, and where it lies.

use std::fs::{self};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use loci_stdx::open_regular;

use loci_core::ids::SessionId;

use super::StoreProgress;
use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::project_dir::right_dir;
use super::references::{NamedBackup, NamedResult, backups, recorded_content, results};
use super::store::{HOUR_MS, Store, files_in, mode_of};
use super::transcript::{CheckedTranscript, Flaw, TranscriptKind, read};
use crate::layout::SessionPlace;

/// How many read at once.
const MOST_READERS: usize = 4;
const REWRITE: &str = "the file is kept aside and written anew with every entry that can be read";

/// Looks at sessions with a few threads.
pub(super) fn cases(store: &Store<'_>, places: &[SessionPlace], progress: StoreProgress<'_>) -> Vec<Case> {
    let (next, n_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all = Mutex::new(Vec::new());
    let n_readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
    let look = || {
        let mut mine = Vec::new();
        while let Some(place) = places.get(next.fetch_add(1, Ordering::Relaxed)) {
            mine.extend(Patient { store, place, is_settled: !store.is_in_use(place.id()) }.cases());
            let n_done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
            progress(n_done as u64, places.len() as u64);
        }
        all.lock().unwrap_or_else(PoisonError::into_inner).append(&mut mine);
    };
    std::thread::scope(|scope| {
        for _ in 1..n_readers.min(places.len()) {
            // Without another thread this one does all the work.
            drop(std::thread::Builder::new().spawn_scoped(scope, look));
        }
        look();
    });
    all.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// One session.
struct Patient<'a> {
    store: &'a Store<'a>,
    place: &'a SessionPlace,
    /// Whether nobody is writing to it.
    is_settled: bool,
}

impl Patient<'_> {
    fn id(&self) -> &SessionId {
        self.place.id()
    }

    fn cases(&self) -> Vec<Case> {
        let file = self.place.file();
        let is_empty = fs::metadata(file).is_ok_and(|it| it.len() == 0);
        if is_empty && self.is_settled && self.store.is_older_than(file, HOUR_MS) {
            return vec![self.empty()];
        }
        let (mut cases, reading) = self.check_lines(file, TranscriptKind::Session);
        for agent in files_in(&self.place.subagents_dir()) {
            if agent.extension().is_some_and(|it| it == "jsonl") && agent.is_file() {
                cases.extend(self.check_lines(&agent, TranscriptKind::Agent).0);
            }
        }
        if let Some(reading) = reading {
            cases.extend(self.missing_backups(&reading));
            cases.extend(self.missing_results(&reading));
            cases.extend(self.wrong_project(&reading));
        }
        cases
    }

    fn empty(&self) -> Case {
        let finding = Finding::new(FindingKind::Leftover, self.place.file(), "the transcript is empty");
        let finding = finding.in_session(self.id()).remedy("it goes aside");
        Case::new(finding, Fix::MoveAside { paths: vec![self.place.file().to_owned()] })
    }

    /// Judges the lines and the tree of a transcript, and who may read it.
    fn check_lines(&self, file: &Path, whose: TranscriptKind) -> (Vec<Case>, Option<CheckedTranscript>) {
        let reading = match open_regular(file).and_then(|mut file| read(&mut file)) {
            Ok(reading) => reading,
            Err(error) => return (vec![self.unreadable(file, &error)], None),
        };
        let tree = if whose == TranscriptKind::Session { reading.tree_flaws() } else { Vec::new() };
        // Of a session in use the last line may be in the making.
        let counts = |flaw: &&Flaw| self.is_settled || flaw.kind != FindingKind::TornTail;
        let finding = |flaw: &Flaw| {
            let finding = Finding::new(flaw.kind, file, &flaw.meaning).in_session(self.id());
            finding.at(flaw.offset).remedy(REWRITE)
        };
        let mut findings: Vec<Finding> =
            reading.flaws.iter().chain(&tree).filter(counts).map(finding).collect();
        findings.sort_by_key(|finding| finding.offset);
        let mut cases = Vec::new();
        if !findings.is_empty() {
            cases.push(Case { findings, fix: rewrite(file, whose) });
        }
        cases.extend(self.exposed(file));
        (cases, Some(reading))
    }

    fn exposed(&self, file: &Path) -> Option<Case> {
        let mode = mode_of(file).filter(|mode| mode & 0o077 != 0)?;
        let finding =
            Finding::new(FindingKind::Exposed, file, format!("others may use it (mode {mode:03o})"));
        let finding = finding.in_session(self.id()).remedy("its mode becomes 600");
        Some(Case::new(finding, Fix::Close { paths: vec![file.to_owned()] }))
    }

    fn unreadable(&self, file: &Path, error: &io::Error) -> Case {
        let finding = Finding::new(FindingKind::Unreadable, file, format!("it cannot be read: {error}"));
        Case::unfixable(finding.in_session(self.id()), "see to it that it can be read")
    }

    fn missing_backups(&self, reading: &CheckedTranscript) -> Vec<Case> {
        let dir = self.store.home.file_history_dir(self.id());
        let missing = backups(reading).into_iter().filter(|backup| !dir.join(&backup.name).exists());
        missing.map(|backup| self.missing_backup(reading, &backup, dir.join(&backup.name))).collect()
    }

    fn missing_backup(&self, reading: &CheckedTranscript, backup: &NamedBackup, path: PathBuf) -> Case {
        let meaning =
            format!("what `{}` held before a change is not there: `{}`", backup.key, path.display());
        let finding = Finding::new(FindingKind::MissingBackup, self.place.file(), meaning);
        let finding = finding.in_session(self.id()).at(backup.offset);
        match recorded_content(reading, backup) {
            Some(content) => {
                let said = format!("`{}` was written anew from what the change recorded", path.display());
                let finding =
                    finding.remedy("it is written anew from what the change recorded in the transcript");
                Case::new(finding, Fix::Write { path, bytes: content.into_bytes(), said })
            }
            None => Case::unfixable(
                finding,
                "the transcript does not say what it held; a rewind leaves that file as it is",
            ),
        }
    }

    fn missing_results(&self, reading: &CheckedTranscript) -> Vec<Case> {
        let dir = self.place.tool_results_dir();
        let is_missing = |result: &NamedResult| {
            !dir.join(&result.name).exists()
                && !self.lies_elsewhere(&Path::new("tool-results").join(&result.name))
        };
        let missing = results(reading, self.id()).into_iter().filter(is_missing);
        missing.map(|result| self.missing_result(&result, dir.join(&result.name))).collect()
    }

    /// Returns true when a file of the session is with what belongs to it in the trash or in another project's directory, from
    /// where it comes back as a whole.
    fn lies_elsewhere(&self, below: &Path) -> bool {
        let id = self.id().as_str();
        let trash = files_in(&self.store.home.loci_dir().join("trash"));
        let removed = trash.iter().filter(|dir| dir.to_string_lossy().ends_with(id));
        removed.chain(&self.store.projects).any(|dir| dir.join(id).join(below).exists())
    }

    fn missing_result(&self, result: &NamedResult, path: PathBuf) -> Case {
        let known = result.known.len() as u64;
        let is_whole = result.size == Some(known);
        let meaning = format!("a long result is not there: `{}`", path.display());
        let finding = Finding::new(FindingKind::MissingResult, self.place.file(), meaning);
        let finding = finding.in_session(self.id()).at(result.offset);
        let (mut bytes, of) = (result.known.clone().into_bytes(), result.size.map(|it| format!(" of {it}")));
        let of = of.unwrap_or_default();
        if !is_whole {
            let note = format!("\n[The rest is lost: these are the first {known}{of} bytes.]\n");
            bytes.extend_from_slice(note.as_bytes());
        }
        let said = format!(
            "`{}` was written anew with the {known}{of} bytes that the transcript has",
            path.display()
        );
        let finding =
            finding.remedy(format!("it is written anew with the {known}{of} bytes that the transcript has"));
        Case::new(finding, Fix::Write { path, bytes, said })
    }

    fn wrong_project(&self, reading: &CheckedTranscript) -> Option<Case> {
        let to = right_dir(self.store.home, self.place, reading, Path::is_dir)?;
        let meaning = format!("nothing in it was said where it lies; it belongs to `{}`", to.display());
        let finding =
            Finding::new(FindingKind::WrongProject, self.place.file(), meaning).in_session(self.id());
        let there = SessionPlace::new(to.join(format!("{}.jsonl", self.id())), self.id().clone());
        if there.file().exists() || (there.dir().exists() && self.place.dir().exists()) {
            return Some(Case::unfixable(
                finding,
                "another session of this id lies there; remove one of them",
            ));
        }
        let finding = finding.remedy("it moves there, with what belongs to it");
        Some(Case::new(finding, Fix::Move { place: self.place.clone(), to }))
    }
}

fn rewrite(file: &Path, whose: TranscriptKind) -> Fix {
    if fs::symlink_metadata(file).is_ok_and(|it| it.is_symlink()) {
        return Fix::Nothing { why: "it is a link; mend what it points at".to_owned() };
    }
    Fix::Rewrite { file: file.to_owned(), is_agent: whose == TranscriptKind::Agent }
}
