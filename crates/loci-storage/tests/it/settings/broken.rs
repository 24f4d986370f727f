//! Files that are not what they should be: each is named, and costs no more than it must.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::support::World;

use super::load;

/// Puts something in the place of the project's settings and checks what is said; the user's file still counts.
fn check(prepare: impl FnOnce(&World), expected: &[&str]) {
    let world = World::new();
    world.write(".claude/settings.json", r#"{"model": "mine"}"#);
    fs::create_dir_all(world.cwd().join(".claude")).unwrap();
    prepare(&world);
    let loaded = load(&world);
    assert_eq!(loaded.settings().model.as_deref(), Some("mine"));
    let said: Vec<String> = loaded.warnings().map(ToString::to_string).collect();
    assert_eq!(said, expected);
}

const PLACE: &str = "project/.claude/settings.json";

#[test]
fn settings_path_that_is_no_file_is_reported() {
    check(
        |world| fs::create_dir(world.env.home.join(PLACE)).unwrap(),
        &["~/project/.claude/settings.json: not a regular file (put a regular file there, or remove it)"],
    );
    check(
        |world| {
            let path = world.env.home.join(PLACE);
            rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        },
        &["~/project/.claude/settings.json: not a regular file (put a regular file there, or remove it)"],
    );
    check(
        |world| symlink("settings.json", world.env.home.join(PLACE)).unwrap(),
        &[
            "~/project/.claude/settings.json: cannot be read: Too many levels of symbolic links (os error 40) (put a readable file there, or remove it)",
        ],
    );
    check(|world| symlink("nowhere", world.env.home.join(PLACE)).unwrap(), &[]);
}

#[test]
fn unreadable_settings_are_reported() {
    if rustix::process::geteuid().is_root() {
        return; // Root may read everything.
    }
    check(
        |world| {
            let path = world.write(PLACE, "{}");
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        },
        &[
            "~/project/.claude/settings.json: cannot be read: Permission denied (os error 13) (let yourself read the file; none of its rules count now)",
        ],
    );
}

#[test]
fn too_large_settings_file_is_read_up_to_the_limit() {
    let world = World::new();
    let text =
        format!("{{\"permissions\": {{\"deny\": [\"A\"]}}, \"x\": \"{}\"}}", "x".repeat(3 * 1024 * 1024));
    world.write(PLACE, text);
    let loaded = load(&world);
    assert_eq!(loaded.settings().permissions.deny.len(), 1);
    let said: Vec<String> = loaded.warnings().map(ToString::to_string).collect();
    assert!(said[0].contains("larger than 2 MiB; only the first 2 MiB are read"), "{said:?}");
}

#[test]
fn settings_that_are_no_text_or_json_are_reported() {
    check(
        |world| {
            world.write(PLACE, b"{\"outputStyle\": \"caf\xe9\"}");
        },
        &[
            "~/project/.claude/settings.json: not UTF-8; the letters that are not are replaced (save the file as UTF-8)",
        ],
    );
    check(
        |world| {
            world.write(PLACE, "");
        },
        &[],
    );
    check(
        |world| {
            world.write(PLACE, "\u{feff}{\r\n\"outputStyle\": \"x\",\r\n}\r\n");
        },
        &[],
    );
    check(
        |world| {
            world.write(PLACE, "model = 'x'\n");
        },
        &[
            "~/project/.claude/settings.json:1: not valid JSON: write `model` in double quotes, and 4 more (what can be read is used; fix the file)",
            "~/project/.claude/settings.json:1: expected an object, found something unreadable (begin the file with `{` and end it with `}`)",
        ],
    );
}
