//! A repair that dies at any step is finished by the next one.

use super::corpus::{Before, check_present};
use super::damage::Damage;
use super::lab::Lab;
use crate::doctor::fs_ops::FsOps;
use crate::doctor::{check_store, repair_store, repair_with};

/// More steps than any of these repairs has.
const MOST_STEPS: u64 = 200;

fn damaged(damages: &[Damage]) -> Lab {
    let mut lab = Lab::new(7, 2);
    for (n, damage) in damages.iter().enumerate() {
        let place = lab.places[n % 2].clone();
        damage.apply(&mut lab, &place);
    }
    lab
}

fn check(damages: &[Damage]) {
    for n_steps in 0..MOST_STEPS {
        let lab = damaged(damages);
        let before = Before::from_lab(&lab);
        let fs = FsOps::failing_after(n_steps);
        repair_with(&lab.home, &lab.env, &fs, &|_, _| {}).unwrap();
        let what = format!("{damages:?} after {n_steps} steps");
        before.check(&lab, &what);
        // A repair looks again after it mended something: nothing open means that nothing is found any more.
        let end = repair_store(&lab.home, &lab.env).unwrap();
        assert_eq!(end.n_open(), 0, "{what}: {:#?}", end.findings);
        before.check(&lab, &what);
        check_present(&lab, damages, &what);
        if !fs.has_failed() {
            assert!(n_steps > 2, "{what}: it died at least a few times");
            assert_eq!(check_store(&lab.home, &lab.env).unwrap().findings, [], "{what}");
            return;
        }
    }
    panic!("{damages:?} takes more than {MOST_STEPS} steps");
}

/// Invariant 6 of `docs/design/doctor.md`.
#[test]
fn repair_killed_at_any_step_is_finished_by_the_next() {
    use Damage::*;
    check(&[TornTail, LostLine, NulRun, Double]);
    check(&[WrongProject, HalfRemoved]);
    check(&[BackupGone, ResultGone, StaleLease, OpenFile, TornLog]);
}

/// The same for what was begun and not ended.
#[test]
fn repair_of_interrupted_operations_killed_at_any_step_is_finished_by_the_next() {
    use Damage::*;
    check(&[ArchivedTwice, HalfRestored]);
    check(&[Temporary, StrayAgents, HalfRewind, BadRewind, EmptyTrash]);
    check(&[HalfArchived, StrayResults, ContentGone]);
}
