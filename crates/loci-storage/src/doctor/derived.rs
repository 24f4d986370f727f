//! The index and the list: they can be made anew at any time, so what does not agree with the files is removed.

use std::path::PathBuf;

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::store::Store;
use crate::search::index::{IndexFault, index_faults};
use crate::sessions::listing::stale_list;

/// Holds both against the files.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let mut cases: Vec<Case> = index_faults(store.home).into_iter().map(index_case).collect();
    cases.extend(stale_list(store.home, &store.places).map(|path| {
        stale(
            path,
            "what it remembers of a session is not what the session says",
            "it is removed; the next list makes it anew",
        )
    }));
    cases
}

fn index_case(fault: IndexFault) -> Case {
    let again = "it is removed; the next search makes it anew";
    match fault {
        IndexFault::Unfinished(path) => {
            let finding =
                Finding::new(FindingKind::Leftover, &path, "a part of the index that was never finished");
            Case::new(finding.remedy(again), Fix::Discard { paths: vec![path] })
        }
        IndexFault::Damaged(path) => stale(path, "a part of the index is damaged and not used", again),
        IndexFault::Replaced(path) => {
            stale(path, "a part of the index that another has taken the place of", again)
        }
        IndexFault::Wrong { segment, file } => {
            let meaning = format!("the index knows `{}` otherwise than it is", file.display());
            stale(segment, &meaning, again)
        }
    }
}

fn stale(path: PathBuf, meaning: &str, remedy: &str) -> Case {
    let finding = Finding::new(FindingKind::StaleIndex, &path, meaning).remedy(remedy);
    Case::new(finding, Fix::Discard { paths: vec![path] })
}
