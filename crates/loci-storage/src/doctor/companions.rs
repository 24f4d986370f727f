//! Directories of subagents, results and notes without their session.

use std::fs;
use std::path::{Path, PathBuf};

use loci_core::ids::SessionId;

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::store::{HOUR_MS, Store, files_in};
use crate::sessions::archive::archived_dir_of;

/// Finds them in all projects.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let dirs = store.projects.iter().flat_map(|project| files_in(project));
    dirs.filter_map(|dir| case(store, &dir)).collect()
}

fn case(store: &Store<'_>, dir: &Path) -> Option<Case> {
    let id = SessionId::parse(dir.file_name()?.to_str()?).ok()?;
    let is_dir = fs::symlink_metadata(dir).is_ok_and(|it| it.is_dir());
    // A session that is about to be written may already have its directory, and an empty one says nothing.
    let is_lost = is_dir && !dir.with_extension("jsonl").exists() && has_files(dir);
    if !is_lost || store.is_in_use(&id) || !store.is_older_than(dir, HOUR_MS) {
        return None;
    }
    let finding = |meaning: String| Finding::new(FindingKind::LostCompanion, dir, meaning).in_session(&id);
    if let Some(packed) = archived_dir_of(store.home, &id) {
        let meaning = format!("its session was put away or brought back halfway: `{}`", packed.display());
        let finding = Finding { kind: FindingKind::HalfArchive, ..finding(meaning) };
        let finding = finding.remedy(
            "it goes aside; the archive has the whole session, and `loci sessions restore` brings it back",
        );
        return Some(Case::new(finding, Fix::MoveAside { paths: vec![dir.to_owned()] }));
    }
    if is_half_restored(store, dir, &id) {
        return None;
    }
    let elsewhere: Vec<PathBuf> = store.places_of(&id).map(|place| place.dir()).collect();
    let case = match elsewhere.as_slice() {
        [there] if !there.exists() => {
            let meaning = format!("it belongs to a session that lies elsewhere: `{}`", there.display());
            let fix = Fix::BringBack { from: dir.to_owned(), to: there.clone(), then: None };
            Case::new(finding(meaning).remedy("it moves to its session"), fix)
        }
        _ => {
            let finding = finding("it belongs to a session that is nowhere".to_owned());
            Case::new(finding.remedy("it goes aside"), Fix::MoveAside { paths: vec![dir.to_owned()] })
        }
    };
    Some(case)
}

/// A session that came back from the trash without its transcript is another case.
fn is_half_restored(store: &Store<'_>, dir: &Path, id: &SessionId) -> bool {
    let trash = files_in(&store.home.loci_dir().join("trash"));
    let name = format!("{id}.jsonl");
    let has_it = |it: &&PathBuf| {
        it.join(&name).exists()
            && crate::sessions::remove::origin_of(it).as_deref() == Some(&dir.with_extension("jsonl"))
    };
    trash.iter().any(|it| has_it(&it))
}

fn has_files(dir: &Path) -> bool {
    files_in(dir).iter().any(|path| if path.is_dir() { has_files(path) } else { true })
}
