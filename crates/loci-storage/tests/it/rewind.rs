//! Shell commands and edits, and going back to any point of them.

mod lab;
mod limits;
mod properties;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use lab::Lab;
use loci_core::file_history::Conflict;
use loci_storage::history::{OnConflict, RewindError, collect_blobs};

/// Runs a command at one point and goes back to it.
fn check(before: &str, command: &str) {
    check_in(Lab::new(), before, command);
    let mut lab = Lab::watching();
    lab.settle();
    check_in(lab, before, command);
}

fn check_in(mut lab: Lab, before: &str, command: &str) {
    lab.shell(before);
    let point = lab.point();
    let hash = lab.hash();
    lab.run(command);
    assert_ne!(lab.hash(), hash, "`{command}` changes something");
    let after = lab.hash();
    lab.rewind(&point);
    assert_eq!(lab.hash(), hash, "after `{command}`: {}", lab.listing());
    lab.undo();
    assert_eq!(lab.hash(), after, "undone `{command}`: {}", lab.listing());
}

/// Invariants 5, 6 and 11 of `docs/design/file-history.md`.
#[test]
fn rewind_undoes_any_command_and_undo_redoes_it() {
    for (before, command) in [
        ("echo one > a", "echo two > a"),
        ("echo one > a", "echo two >> a"),
        ("echo one > a", "sed -i s/one/two/ a"),
        ("echo one > a", "rm a"),
        ("true", "echo new > a"),
        ("echo one > a", "mv a b"),
        ("mkdir -p d/e && echo x > d/e/f && echo y > d/g", "mv d q"),
        ("mkdir -p d/e && echo x > d/e/f", "rm -r d"),
        ("mkdir -p d/e && echo x > d/e/f", "rm -r d && echo file > d"),
        ("echo file > d", "rm d && mkdir -p d/e && echo x > d/e/f"),
        ("mkdir -p d && echo x > d/f && mkdir other", "rm -r d && ln -s other d && echo y > other/f"),
        ("mkdir other && ln -s other d", "rm d && mkdir d && echo x > d/f"),
        ("ln -s here l", "ln -sfn there l"),
        ("ln -s here l", "rm l && echo file > l"),
        ("echo file > l", "rm l && ln -s /etc/passwd l"),
        ("echo one > a", "chmod 755 a"),
        ("echo one > a && chmod 444 a", "chmod 644 a && echo two > a && chmod 600 a"),
        ("mkdir d && echo x > d/f && chmod 555 d", "chmod 755 d && rm d/f && chmod 555 d"),
        ("mkdir d", "chmod 700 d"),
        ("mkdir -p empty/inner", "rm -r empty"),
        ("true", "mkdir -p new/empty/dirs"),
        ("head -c 5000 /dev/urandom > bin", "head -c 5000 /dev/urandom > bin"),
        ("true", "printf x > \"$(printf 'n\\377\\n')\""),
        ("printf x > \"$(printf 'n\\377')\"", "rm n*"),
        ("printf '' > empty", "printf x > empty"),
        ("echo a > tracked && git add -A && git commit -qm one", "echo b > tracked"),
        ("echo a > tracked && git add -A && git commit -qm one", "git rm -q tracked"),
        (
            "echo a > x && git add -A && git commit -qm one && git checkout -qb two && echo b > x && echo c > y && git add -A && git commit -qm two",
            "git checkout -q main",
        ),
        ("echo '*.o' > .gitignore && echo a > a.o", "echo '' > .gitignore && echo b > b.txt"),
        ("echo a > a.o && echo b > b", "echo '*.o' > .gitignore && rm b"),
    ] {
        check(before, command);
    }
}

/// Invariant 7 of `docs/design/file-history.md`.
#[test]
fn rewind_leaves_changes_of_others_alone() {
    let mut lab = Lab::new();
    lab.shell("echo one > a; echo one > b; echo one > c; echo one > d");
    let point = lab.point();
    lab.run("for f in a b c d; do echo two > $f; done; echo new > e");
    // Between two changes of the session, after them, and where the session made something.
    lab.shell("echo theirs > b");
    lab.run("echo three >> b");
    lab.shell("echo theirs > c; rm d; echo theirs > e");
    let plan = lab.plan(&point);
    let conflicts: Vec<(String, Conflict)> =
        plan.conflicts.iter().map(|(step, why)| (lab.name(step.path.as_path()), *why)).collect();
    let since = |name: &str| (name.to_owned(), Conflict::ChangedSince);
    assert_eq!(conflicts, [("b".to_owned(), Conflict::ChangedBetween), since("c"), since("d"), since("e")]);
    assert_eq!(plan.steps.len(), 1);

    let hash = lab.hash();
    let refused = lab.apply(plan, OnConflict::Refuse).unwrap_err();
    assert!(matches!(refused, RewindError::Conflicts { n: 4 }), "{refused:?}");
    assert_eq!(lab.hash(), hash, "nothing happened");

    let rewound = lab.apply(lab.plan(&point), OnConflict::Keep).unwrap();
    assert_eq!((rewound.changed.len(), rewound.left.len()), (1, 4));
    assert_eq!(
        (lab.read("a"), lab.read("c"), lab.read("e")),
        ("one\n".into(), "theirs\n".into(), "theirs\n".into())
    );

    lab.apply(lab.plan(&point), OnConflict::Overwrite).unwrap();
    for name in ["a", "b", "c", "d"] {
        assert_eq!(lab.read(name), "one\n", "{name}");
    }
    assert!(!lab.project().join("e").exists());
    lab.undo();
    assert_eq!((lab.read("c"), lab.read("e")), ("theirs\n".into(), "theirs\n".into()), "not lost either");
}

/// Invariant 8 of `docs/design/file-history.md`.
#[test]
fn rewind_leaves_the_work_of_another_session() {
    let mut first = Lab::new();
    first.shell("echo one > a; echo one > b; mkdir shared");
    let mut second = first.second_session();
    let (point, other) = (first.point(), second.point());
    first.run("echo first > a; mkdir -p made; echo x > made/first");
    second.run("echo second > b; echo s > shared/second; echo y > made/second");
    first.run("echo first again >> a");
    second.run("echo second again >> b");
    first.rewind(&point);
    assert_eq!(first.read("a"), "one\n");
    assert_eq!(first.read("b"), "second\nsecond again\n");
    assert_eq!((first.read("shared/second"), first.read("made/second")), ("s\n".into(), "y\n".into()));
    assert!(!first.project().join("made/first").exists());
    second.rewind(&other);
    assert_eq!((first.read("a"), first.read("b")), ("one\n".into(), "one\n".into()));
}

/// A clock that stands still, or goes back, takes nothing from the log.
#[test]
fn rewinds_at_the_same_time_do_not_overwrite_each_other() {
    let mut lab = Lab::new();
    let (first, empty) = (lab.point(), lab.hash());
    lab.run("echo 1 > a");
    let (second, full) = (lab.point(), lab.hash());
    lab.run("echo 2 > a; mkdir d");
    lab.stop_clock();
    for (point, hash) in [(&second, &full), (&first, &empty), (&second, &full), (&first, &empty)] {
        lab.rewind(point);
        assert_eq!(lab.hash(), *hash);
    }
    lab.undo();
    assert_eq!(lab.hash(), full);
}

/// Invariant 9 of `docs/design/file-history.md`.
#[test]
fn rewind_never_follows_symlinks() {
    let mut lab = Lab::new();
    let outside = lab.outside();
    lab.shell("mkdir d && echo one > d/f && echo one > g");
    let point = lab.point();
    lab.run("echo two > d/f; echo two > g");
    fs::rename(lab.project().join("d"), lab.project().join("away")).unwrap();
    symlink(&outside, lab.project().join("d")).unwrap();
    fs::write(outside.join("f"), "precious").unwrap();
    fs::remove_file(lab.project().join("g")).unwrap();
    symlink(outside.join("f"), lab.project().join("g")).unwrap();
    let plan = lab.plan(&point);
    assert_eq!(plan.steps.len(), 0, "{plan:?}");
    assert_eq!(plan.conflicts.len(), 2);
    lab.apply(plan, OnConflict::Overwrite).unwrap();
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "precious");
    assert_eq!(lab.read("g"), "one\n", "the link itself was replaced, as was insisted on");
}

#[test]
fn a_file_with_other_names_is_a_conflict() {
    let mut lab = Lab::new();
    lab.shell("echo one > a");
    let point = lab.point();
    lab.run("echo two > a");
    fs::hard_link(lab.project().join("a"), lab.outside().join("other")).unwrap();
    let plan = lab.plan(&point);
    assert_eq!(plan.conflicts[0].1, Conflict::HasOtherNames);
    assert!(lab.apply(plan, OnConflict::Keep).is_ok());
    assert_eq!(lab.read("a"), "two\n");
}

/// Invariant 5 of `docs/design/file-history.md`.
#[test]
fn change_through_a_hard_link_is_a_conflict() {
    let mut lab = Lab::watching();
    lab.shell("echo one > a && ln a ../outside/a");
    lab.settle();
    let point = lab.point();
    lab.run("echo two > ../outside/a");
    let conflicts = lab.plan(&point).conflicts;
    assert_eq!(conflicts.len(), 1);
    assert_eq!(conflicts[0].1, Conflict::HasOtherNames);
}

#[test]
fn edits_outside_the_project_are_recorded() {
    let mut lab = Lab::new();
    let outside = lab.outside().join("deep/er/file");
    let point = lab.point();
    lab.edit(&outside, "made");
    lab.edit(&lab.project().join("new/dir/file"), "made");
    lab.run("echo more >> new/dir/file");
    assert!(lab.plan(&point).conflicts.is_empty());
    lab.rewind(&point);
    assert!(!lab.outside().join("deep").exists() && !lab.project().join("new").exists());
}

/// Invariant 10 of `docs/design/file-history.md`.
#[test]
fn clean_files_of_a_repository_are_not_copied_and_nothing_of_git_changes() {
    let mut lab = Lab::new();
    lab.shell(
        "for i in 1 2 3 4 5; do head -c 20000 /dev/urandom > f$i; done; git add -A; git commit -qm one",
    );
    lab.wait_a_tick();
    lab.shell("git update-index -q --refresh");
    lab.wait_a_tick();
    lab.shell("touch marker; git add marker; git commit -qm two");
    let point = lab.point();
    let hash = lab.hash();
    lab.run("true");
    let git = lab.git_hash();
    assert!(lab.store_bytes() < 1000, "clean files are in git already: {}", lab.store_bytes());
    lab.run("rm f1 f2; echo x > f3");
    lab.rewind(&point);
    assert_eq!(lab.hash(), hash);
    assert_eq!(lab.git_hash(), git, "byte for byte");
}

/// Invariant 12 of `docs/design/file-history.md`.
#[test]
fn collect_removes_only_unreferenced_blobs() {
    let mut lab = Lab::new();
    lab.shell("head -c 5000 /dev/urandom > untouched; echo one > a");
    let point = lab.point();
    lab.run("echo two > a");
    assert!(collect_blobs(lab.home(), false).is_err(), "a session that keeps files is running");
    let hash = lab.hash();
    lab.end_session();
    let trial = collect_blobs(lab.home(), true).unwrap();
    let collected = collect_blobs(lab.home(), false).unwrap();
    assert_eq!(trial, collected);
    assert!(collected.removed.n_bytes >= 5000, "{collected:?}");
    assert_eq!(collect_blobs(lab.home(), false).unwrap().removed.n_blobs, 0);
    lab.rewind(&point);
    assert_eq!(lab.read("a"), "one\n");
    lab.undo();
    assert_eq!(lab.hash(), hash);
}

#[test]
fn modes_and_times_of_files_that_stay_are_not_touched() {
    let mut lab = Lab::new();
    lab.shell("echo stay > stay; echo one > a; chmod 640 a");
    let before = fs::metadata(lab.project().join("stay")).unwrap();
    let point = lab.point();
    lab.run("echo two > a; chmod 600 a");
    lab.rewind(&point);
    let after = fs::metadata(lab.project().join("stay")).unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    assert_eq!(fs::metadata(lab.project().join("a")).unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn rewind_to_an_unknown_prompt_is_an_error() {
    let lab = Lab::new();
    let error = lab.try_plan(&"nowhere".into()).unwrap_err();
    assert_eq!(error.to_string(), "No file checkpoint found for this message.");
}

/// Invariant 16 of `docs/design/file-history.md`.
#[test]
fn blame_follows_a_file_through_its_names() {
    let mut lab = Lab::new();
    let who = |prompt: &loci_core::ids::EntryId| Some(prompt.to_string());
    let first = lab.point();
    lab.run("printf 'one\\ntwo\\n' > a");
    lab.wait_a_tick();
    let second = lab.point();
    lab.run("mkdir d && mv a d/b");
    lab.wait_a_tick();
    let third = lab.point();
    lab.run("printf 'three\\n' >> d/b && sed -i s/one/ONE/ d/b");
    lab.wait_a_tick();
    lab.run("mv d e");
    lab.shell("printf 'by hand\\n' >> e/b");
    let line = |text: &str, by| (text.to_owned(), by);
    assert_eq!(
        lab.blame("e/b"),
        [
            line("ONE", who(&third)),
            line("two", who(&first)),
            line("three", who(&third)),
            line("by hand", None)
        ]
    );
    assert!(!lab.blame("e/b").iter().any(|(_, by)| *by == who(&second)), "moving writes no line");
}

/// One journal that says nothing is set aside and named; what the others were about to do is done.
#[test]
fn a_journal_that_cannot_be_read_stops_no_other() {
    let mut lab = Lab::new();
    lab.shell("echo one > a");
    let point = lab.point();
    lab.run("echo two > a");
    lab.rewind(&point);
    let dir = lab.home().loci_dir().join("rewinds");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&dir).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = entries.filter(|name| name.ends_with(".json")).collect();
        names.sort();
        names
    };
    let done = names().pop().unwrap();
    // As if it had died at its end, and another before its journal was whole.
    let pending = done.replace(".done.", ".pending.");
    fs::rename(dir.join(&done), dir.join(&pending)).unwrap();
    let bad = format!("00000000000000000001-{}", &pending[21..]);
    fs::write(dir.join(&bad), "{\"id\":").unwrap();
    let said = lab.recover();
    let aside = bad.replace(".pending.", ".unreadable.");
    assert!(said.len() == 2 && said[0].contains(&aside) && said[1].ends_with("is finished"), "{said:?}");
    assert_eq!(names(), [aside.clone(), done]);
    assert_eq!(fs::read(dir.join(aside)).unwrap(), b"{\"id\":");
    assert_eq!(lab.recover(), Vec::<String>::new());
    // Nor does one of another session that was done keep this one from being undone.
    fs::write(dir.join("00000000000000000002-0a0a0a0a-0001-4000-8000-0000000000ff.done.json"), "").unwrap();
    lab.undo();
    assert_eq!(lab.read("a"), "two\n");
}
