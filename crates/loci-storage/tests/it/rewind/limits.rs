//! Trees and files that are too much, or none of a project's business: what is said, and what still works.

use std::fs;

use loci_core::file_history::Conflict;
use loci_storage::history::{OnConflict, TreeLimits};

use super::lab::Lab;

/// Runs a command twice and returns what was told, which must be told once.
fn warnings_of(lab: &mut Lab, command: &str) -> String {
    let mut told = lab.warnings_of(command);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(lab.warnings_of("true"), [""; 0], "it is told once");
    told.remove(0)
}

/// What Edit and Write do is kept all the same.
fn edits_are_kept(lab: &mut Lab) {
    let file = lab.project().join("edited");
    fs::write(&file, "before").unwrap();
    let point = lab.point();
    lab.edit(&file, "after");
    lab.rewind(&point);
    assert_eq!(fs::read_to_string(&file).unwrap(), "before");
}

/// Invariant 15 of `docs/design/file-history.md`.
#[test]
fn too_large_tree_is_not_tracked_and_is_reported() {
    let mut lab = Lab::within(TreeLimits { paths: 20, ..TreeLimits::default() });
    let point = lab.point();
    lab.run("touch a b c");
    let text = warnings_of(&mut lab, "seq 1 30 | split -l 1 -a 2 - f");
    let root = lab.project().display().to_string();
    assert_eq!(
        text,
        format!(
            "Changes by shell commands are not kept and cannot be rewound here: `{root}`: it has more than 20 files"
        )
    );
    edits_are_kept(&mut lab);
    // What was noted before it grew goes back; what came after is nobody's.
    lab.rewind(&point);
    assert!(!lab.project().join("a").exists() && lab.project().join("faa").exists());
}

/// Invariant 15 of `docs/design/file-history.md`.
#[test]
fn home_directory_is_not_tracked_and_is_reported() {
    for below in ["", ".claude"] {
        let lab = Lab::new();
        let place = lab.user_home().join(below);
        fs::create_dir_all(&place).unwrap();
        let mut lab = lab.standing_in(place.clone());
        lab.point();
        let text = warnings_of(&mut lab, "touch a");
        let start = "Changes by shell commands are not kept and cannot be rewound here";
        let why = "it is not a project but a whole home or disk";
        assert_eq!(text, format!("{start}: `{}`: {why}", place.display()));
        edits_are_kept(&mut lab);
    }
}

/// Invariant 15 of `docs/design/file-history.md`.
#[test]
fn content_beyond_the_limit_is_not_kept_and_is_reported() {
    let usual = TreeLimits::default();
    let start = "Of some files what they hold is not kept, so changes to them cannot be rewound: ";
    for (mut lab, expected) in [
        (Lab::within(TreeLimits { file_bytes: 5, ..usual }), "2 too large"),
        (Lab::within(TreeLimits { first_bytes: 0, ..usual }), "2 without room for them in the store"),
        (Lab::within(TreeLimits { first_files: 0, ..usual }), "2 without room for them in the store"),
        (Lab::with_store_of(0), "2 without room for them in the store"),
    ] {
        lab.shell("git rm -q README && git commit -qm empty; echo 'more than five' > large; echo 'as large' > other");
        let point = lab.point();
        assert_eq!(warnings_of(&mut lab, "echo gone > large"), format!("{start}{expected}"));
        // The change is noted, so that nothing is taken for what it is not.
        let plan = lab.plan(&point);
        let conflicts: Vec<(String, Conflict)> =
            plan.conflicts.iter().map(|(step, why)| (lab.name(step.path.as_path()), *why)).collect();
        assert_eq!(conflicts, [("large".to_owned(), Conflict::NotKept)], "{expected}");
        lab.apply(plan, OnConflict::Overwrite).unwrap();
        assert_eq!(lab.read("large"), "gone\n", "what was not kept cannot be brought back");
    }
}
