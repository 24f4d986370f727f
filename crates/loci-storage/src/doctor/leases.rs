//! Leases and registrations of processes that are gone.

use std::collections::BTreeMap;
use std::path::PathBuf;

use loci_core::ids::SessionId;
use loci_stdx::{is_alive, read_regular};
use serde_json::Value;

use super::finding::{Finding, FindingKind};
use super::fix::{Case, Fix};
use super::store::{DAY_MS, Store, files_in};

/// Finds both kinds.
pub(super) fn cases(store: &Store<'_>) -> Vec<Case> {
    let mut cases = leases(store);
    cases.extend(registrations(store));
    cases
}

/// Files of leases that nobody holds: a process that ends in order leaves none.
fn leases(store: &Store<'_>) -> Vec<Case> {
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files_in(&store.home.loci_dir().join("leases")) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        files.entry(name.get(..36).unwrap_or_default().to_owned()).or_default().push(path);
    }
    let case = |(id, paths): (String, Vec<PathBuf>)| {
        let session = SessionId::parse(&id).ok()?;
        let file = paths.first()?.clone();
        let is_note = |path: &&PathBuf| {
            path.extension()
                .is_some_and(|it| it == "lock" || it == "json" || it.to_string_lossy().starts_with(".tmp-"))
        };
        let others: Vec<PathBuf> = paths.iter().filter(|path| !is_note(path)).cloned().collect();
        if store.is_in_use(&session) {
            return None;
        }
        let finding =
            Finding::new(FindingKind::StaleLease, file, "the process that worked on the session is gone");
        let finding = finding
            .in_session(&session)
            .remedy("the lease is taken and given back, which leaves nothing behind");
        Some(Case::new(finding, Fix::FreeLease { session, others }))
    };
    files.into_iter().filter_map(case).collect()
}

/// `sessions/<pid>.json` of processes that are gone; a young one may be another machine's.
fn registrations(store: &Store<'_>) -> Vec<Case> {
    let case = |path: PathBuf| {
        let value: Value = serde_json::from_slice(&read_regular(&path).ok()?).ok()?;
        let pid = u32::try_from(value.get("pid")?.as_u64()?).ok()?;
        if is_alive(pid) || !store.is_older_than(&path, DAY_MS) {
            return None;
        }
        let finding = Finding::new(
            FindingKind::StaleLease,
            &path,
            format!("process {pid}, which it registers, is gone"),
        );
        Some(Case::new(finding.remedy("it goes aside"), Fix::MoveAside { paths: vec![path] }))
    };
    files_in(&store.home.root().join("sessions")).into_iter().filter_map(case).collect()
}
