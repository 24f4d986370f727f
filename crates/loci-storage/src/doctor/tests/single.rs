//! What one finding says, and what is left alone.

use std::fs;

use super::damage::Damage;
use super::lab::{Lab, every_file};
use crate::doctor::finding::{FindingKind, RepairOutcome};
use crate::doctor::{check_store, repair_store};
use crate::sessions::lease::Lease;
use crate::sessions::listing::list_all;

/// Invariant 7 of `docs/design/doctor.md`.
#[test]
fn repair_does_not_touch_an_open_session() {
    let mut lab = Lab::new(1, 2);
    let place = lab.places[0].clone();
    Damage::Garbage.apply(&mut lab, &place);
    Damage::TornTail.apply(&mut lab, &place);
    let bytes = fs::read(place.file()).unwrap();
    let lease = Lease::acquire(&lab.home, place.id(), &lab.env).unwrap();
    let kinds: Vec<FindingKind> =
        check_store(&lab.home, &lab.env).unwrap().findings.iter().map(|it| it.kind).collect();
    assert!(kinds.contains(&FindingKind::BrokenLine) && !kinds.contains(&FindingKind::TornTail), "{kinds:?}");
    let mended = repair_store(&lab.home, &lab.env).unwrap();
    assert!(mended.n_open() > 0);
    for finding in &mended.findings {
        assert!(
            matches!(&finding.outcome, RepairOutcome::Left(why) if why.contains("in use")),
            "{finding:?}"
        );
    }
    assert_eq!(fs::read(place.file()).unwrap(), bytes);
    drop(lease);
    assert_eq!(repair_store(&lab.home, &lab.env).unwrap().n_open(), 0);
    assert_eq!(check_store(&lab.home, &lab.env).unwrap().findings, []);
}

/// Invariant 8 of `docs/design/doctor.md`.
#[test]
fn check_store_changes_nothing() {
    let mut lab = Lab::new(2, 2);
    let places = lab.places.clone();
    for (n, damage) in
        [Damage::Glued, Damage::StaleLease, Damage::BackupGone, Damage::HalfRewind].into_iter().enumerate()
    {
        damage.apply(&mut lab, &places[n % 2]);
    }
    let before = every_file(&lab.env.home);
    assert!(check_store(&lab.home, &lab.env).unwrap().findings.len() >= 4);
    let mut after = every_file(&lab.env.home);
    // The lock that tells whether a rewind is under way.
    after.remove(&lab.home.loci_dir().join("rewinds/lock"));
    assert_eq!(after, before);
}

#[test]
fn empty_config_home_has_no_findings_and_stays_empty() {
    let lab = Lab::new(3, 0);
    fs::remove_dir_all(lab.home.root()).ok();
    assert_eq!(repair_store(&lab.home, &lab.env).unwrap().findings, []);
    assert!(!lab.home.root().exists());
}

#[test]
fn finding_names_file_session_and_offset() {
    let mut lab = Lab::new(4, 1);
    let place = lab.places[0].clone();
    let at = fs::metadata(place.file()).unwrap().len();
    Damage::Unsaved.apply(&mut lab, &place);
    let mut text = fs::read(place.file()).unwrap();
    text.extend_from_slice(b"[1, 2]\n");
    fs::write(place.file(), text).unwrap();
    let found = check_store(&lab.home, &lab.env).unwrap().findings;
    let broken = found.iter().find(|it| it.kind == FindingKind::BrokenLine).unwrap();
    assert_eq!((broken.offset, broken.file.as_path()), (Some(at), place.file()));
    assert_eq!(broken.session.as_ref(), Some(place.id()));
}

/// Invariant 3 of `docs/design/doctor.md`: results that are in the trash, or in another project, come back as they were, and
/// are not written anew from what little the transcript has of them.
#[test]
fn restored_tool_results_have_their_recorded_bytes() {
    for damage in [Damage::HalfRemoved, Damage::StrayResults] {
        for n in 0..2 {
            let mut lab = Lab::new(8, 2);
            let place = lab.places[n].clone();
            let result = place.tool_results_dir().join("b1.txt");
            let whole = fs::read_to_string(&result).unwrap();
            damage.apply(&mut lab, &place);
            let kinds: Vec<FindingKind> =
                check_store(&lab.home, &lab.env).unwrap().findings.iter().map(|it| it.kind).collect();
            assert_eq!(kinds, [damage.kind()], "{damage:?} {n}");
            assert_eq!(repair_store(&lab.home, &lab.env).unwrap().n_open(), 0);
            assert_eq!(fs::read_to_string(&result).unwrap(), whole, "{damage:?} {n}");
        }
    }
}

/// One that is nowhere is written anew where what belongs to the session has come back to.
#[test]
fn missing_file_is_written_after_moved_files_are_restored() {
    for damage in [Damage::HalfRemoved, Damage::StrayResults] {
        for n in 0..2 {
            let mut lab = Lab::new(9, 2);
            let place = lab.places[n].clone();
            Damage::ResultGone.apply(&mut lab, &place);
            damage.apply(&mut lab, &place);
            let mended = repair_store(&lab.home, &lab.env).unwrap();
            assert_eq!(mended.n_open(), 0, "{damage:?} {n}: {:#?}", mended.findings);
            assert!(place.subagents_dir().join("agent-a1.jsonl").exists(), "{damage:?} {n}");
            let result = fs::read_to_string(place.tool_results_dir().join("b1.txt")).unwrap();
            assert!(result.starts_with("one\ntwo\n\n[The rest is lost"), "{damage:?} {n}: {result}");
        }
    }
}

/// Invariant 9 of `docs/design/doctor.md`: what loci made becomes private, what it only moved keeps its mode.
#[test]
fn file_modes_are_fixed_for_own_files_and_not_for_moved_ones() {
    use std::os::unix::fs::PermissionsExt;
    let lab = Lab::new(6, 1);
    let loci = lab.home.loci_dir();
    let mode = |name: &str| fs::metadata(loci.join(name)).unwrap().permissions().mode() & 0o777;
    for (name, mode) in
        [("index/a.seg", 0o644), ("archive/x/0.gz", 0o640), ("audit.log", 0o602), ("pins.jsonl", 0o600)]
    {
        let path = loci.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    for moved in ["aside", "trash"] {
        fs::create_dir_all(loci.join(moved).join("x")).unwrap();
        fs::write(loci.join(moved).join("x/original"), "").unwrap();
        fs::set_permissions(loci.join(moved).join("x/original"), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let exposed = || {
        let found = check_store(&lab.home, &lab.env).unwrap().findings;
        found.into_iter().filter(|it| it.kind == FindingKind::Exposed).collect::<Vec<_>>()
    };
    let [finding] = &exposed()[..] else { panic!("{:?}", exposed()) };
    assert!(finding.file == loci && finding.meaning.contains("files and directories in it"), "{finding:?}");
    repair_store(&lab.home, &lab.env).unwrap();
    assert_eq!(exposed(), []);
    let now = [
        "archive/x/0.gz",
        "audit.log",
        "pins.jsonl",
        "archive",
        "archive/x",
        "aside/x/original",
        "trash/x/original",
    ];
    assert_eq!(now.map(mode), [0o600, 0o600, 0o600, 0o700, 0o700, 0o644, 0o644]);
}

fn set_old(file: &std::path::Path) {
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000)).unwrap();
}

#[test]
fn stale_listing_cache_is_a_finding() {
    let lab = Lab::new(5, 17);
    for place in &lab.places {
        set_old(place.file());
    }
    list_all(&lab.home).unwrap();
    let kept = lab.home.loci_dir().join("listing.bin");
    assert_eq!(check_store(&lab.home, &lab.env).unwrap().findings, []);
    // Changed so that nobody can see it who does not read the file.
    let file = lab.places[0].file();
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("a title"));
    fs::write(file, text.replacen("a title", "A TITLE", 1)).unwrap();
    set_old(file);
    let found = check_store(&lab.home, &lab.env).unwrap().findings;
    assert_eq!(found.iter().map(|it| it.kind).collect::<Vec<_>>(), [FindingKind::StaleIndex]);
    assert_eq!(repair_store(&lab.home, &lab.env).unwrap().n_open(), 0);
    assert!(!kept.exists());
}

/// What other programs recorded gives no alarm, but for the one that was cut on purpose.
#[test]
fn fixture_sessions_have_no_findings() {
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions");
    for entry in fs::read_dir(fixtures)
        .unwrap()
        .flatten()
        .filter(|it| it.path().extension().is_some_and(|it| it == "jsonl"))
    {
        let reading = crate::doctor::transcript::read(&mut fs::File::open(entry.path()).unwrap()).unwrap();
        let n_flaws = reading.flaws.len() + reading.tree_flaws().len();
        assert_eq!(n_flaws, usize::from(entry.file_name() == "truncated_tail.jsonl"), "{:?}", entry.path());
    }
}
