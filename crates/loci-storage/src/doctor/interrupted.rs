//! What was begun and not ended: rewinds, archives, removals, lines that were never saved; and logs of changes that
//! name contents which are not kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use loci_stdx::read_regular;

use loci_core::file_history::{FileContent, HistoryLine, PathState, changes};
use loci_core::hex::to_hex;
use loci_core::ids::SessionId;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::store::{HOUR_MS, Store, files_in};
use crate::history::rewind::cut_short;
use crate::history::tree_history::{BlobStore, logs_dir, read_log};
use crate::layout::SessionPlace;
use crate::sessions::archive::{damaged_archives, doubled_archives};
use crate::sessions::remove::origin_of;

/// Finds all of them.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let mut cases = quick_cases(store);
    cases.extend(archives(store));
    let trash = files_in(&store.home.loci_dir().join("trash"));
    cases.extend(trash.iter().filter(|dir| store.is_older_than(dir, HOUR_MS)).filter_map(|dir| removal(dir)));
    for log in files_in(&logs_dir(store.home)) {
        cases.extend(log_cases(store, &log));
    }
    cases
}

/// Finds those that take no reading.
pub(super) fn quick_cases(store: &Store<'_>) -> Vec<Case> {
    let mut cases = rewinds(store);
    cases.extend(unsaved(store));
    cases
}

fn rewinds(store: &Store<'_>) -> Vec<Case> {
    let case = |(path, session): (PathBuf, Option<SessionId>)| match session {
        Some(session) => {
            let finding =
                Finding::new(FindingKind::HalfRewind, path, "a rewind was cut short").in_session(&session);
            Case::new(finding.remedy("it is finished, as the next start of loci would"), Fix::FinishRewinds)
        }
        None => {
            let meaning = "a rewind was cut short, and what it was about to do cannot be read";
            let finding = Finding::new(FindingKind::HalfRewind, &path, meaning);
            Case::new(finding.remedy("it goes aside"), Fix::MoveAside { paths: vec![path] })
        }
    };
    cut_short(store.home).into_iter().map(case).collect()
}

fn unsaved(store: &Store<'_>) -> Vec<Case> {
    let case = |path: PathBuf| {
        let id = SessionId::parse(path.file_stem()?.to_str()?).ok()?;
        let finding =
            Finding::new(FindingKind::Unsaved, path, "a run could not save these lines").in_session(&id);
        Some(Case::new(finding.remedy("they are appended to their session"), Fix::BringBackUnsaved))
    };
    files_in(&store.home.unsaved_dir()).into_iter().filter_map(case).collect()
}

fn archives(store: &Store<'_>) -> Vec<Case> {
    let mut cases = Vec::new();
    for (dir, place, is_same) in doubled_archives(store.home) {
        if !store.is_older_than(&dir, HOUR_MS) {
            continue;
        }
        let meaning = format!("the session is in its place, too: `{}`", place.file().display());
        let finding = Finding::new(FindingKind::HalfArchive, &dir, meaning).in_session(place.id());
        cases.push(match is_same {
            true => Case::new(
                finding.remedy("the packed copy, which says nothing else, goes aside"),
                Fix::MoveAside { paths: vec![dir] },
            ),
            false => Case::unfixable(finding, "they differ; remove one of them, or rename the one in place"),
        });
    }
    for dir in damaged_archives(store.home) {
        let finding = Finding::new(FindingKind::Unreadable, &dir, "an archived session is not whole");
        cases.push(Case::unfixable(finding, "what is there can be unpacked by hand, with gzip"));
    }
    cases
}

/// A removal or a return moves two things, one after the other.
fn removal(dir: &Path) -> Option<Case> {
    let name = dir.file_name()?.to_str()?;
    let id = SessionId::parse(name.get(name.len().checked_sub(36)?..)?).ok()?;
    let (file, companion) = (dir.join(format!("{id}.jsonl")), dir.join(id.as_str()));
    let finding = |meaning: &str| Finding::new(FindingKind::HalfRemoval, dir, meaning).in_session(&id);
    if !file.exists() && !companion.exists() {
        let finding =
            finding("a removal was cut short before anything moved, or a return before its note was gone");
        return Some(Case::new(
            finding.remedy("it goes aside"),
            Fix::MoveAside { paths: vec![dir.to_owned()] },
        ));
    }
    let place = SessionPlace::new(origin_of(dir)?, id.clone());
    let is_half_removed = !file.exists() && place.file().exists() && !place.dir().exists();
    let is_half_restored = !companion.exists() && !place.file().exists() && place.dir().exists();
    let then = Some(dir.to_owned());
    if is_half_removed {
        let finding = finding(
            "a removal was cut short: what belongs to the session is in the trash, the session is not",
        );
        let fix = Fix::BringBack { from: companion, to: place.dir(), then };
        return Some(Case::new(finding.remedy("it comes back"), fix));
    }
    is_half_restored.then(|| {
        let finding =
            finding("a return was cut short: what belongs to the session is back, the session is not");
        let fix = Fix::BringBack { from: file, to: place.file().to_owned(), then };
        Case::new(finding.remedy("the session comes back, too"), fix)
    })
}

/// The log of a session's changes to files.
fn log_cases(store: &Store<'_>, log: &Path) -> Vec<Case> {
    let Some(id) = log.file_stem().and_then(|it| SessionId::parse(it.to_str()?).ok()) else {
        return Vec::new();
    };
    if store.is_in_use(&id) {
        return Vec::new();
    }
    let mut cases: Vec<Case> = broken_log(log, &id).into_iter().collect();
    let Ok(lines) = read_log(log) else { return cases };
    let blobs = BlobStore::new(store.home);
    let mut seen = BTreeSet::new();
    for (path, state) in states(&lines) {
        let PathState::File { content: FileContent::Blob(digest), .. } = state else { continue };
        if !seen.insert(digest) || blobs.has(&digest) {
            continue;
        }
        let meaning = format!("what `{}` held is not kept: {}", path.display(), to_hex(&digest));
        let finding = Finding::new(FindingKind::MissingContent, log, meaning).in_session(&id);
        let is_there =
            read_regular(&path).is_ok_and(|bytes| <[u8; 32]>::from(Sha256::digest(&bytes)) == digest);
        cases.push(match is_there {
            true => {
                Case::new(finding.remedy("the file still holds it, and it is kept again"), Fix::Keep { path })
            }
            false => Case::unfixable(finding, "nothing else holds it; a rewind says so"),
        });
    }
    cases
}

fn states(lines: &[HistoryLine]) -> impl Iterator<Item = (PathBuf, PathState)> {
    changes(lines).flat_map(|(_, change)| {
        let path = change.path.as_path();
        [(path.to_owned(), change.after.clone()), (path.to_owned(), change.before.clone())]
    })
}

fn broken_log(log: &Path, id: &SessionId) -> Option<Case> {
    let bytes = read_regular(log).ok()?;
    let broken = loci_stdx::lines(&bytes).find(|line| !line.terminated || !is_object(line.bytes))?;
    let kind = if broken.terminated { FindingKind::BrokenLine } else { FindingKind::TornTail };
    let finding =
        Finding::new(kind, log, "a line of the log of changes to files was never ended, or is no line of it");
    let finding = finding
        .in_session(id)
        .at(broken.offset)
        .remedy("the log is kept aside and written anew with its whole lines");
    Some(Case::new(finding, Fix::RewriteLog { file: log.to_owned() }))
}

/// Returns the whole lines of a log.
pub(super) fn whole_lines(bytes: &[u8]) -> Vec<u8> {
    let whole = loci_stdx::lines(bytes).filter(|line| is_object(line.bytes));
    whole.flat_map(|line| [line.bytes, b"\n"].concat()).collect()
}

fn is_object(bytes: &[u8]) -> bool {
    serde_json::from_slice::<Map<String, Value>>(bytes).is_ok()
}
