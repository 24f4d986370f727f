//! Policies as data.

use std::path::{Path, PathBuf};

use super::*;

fn places() -> SessionPlaces {
    SessionPlaces {
        dirs: vec!["/home/a/p".into()],
        scratch: "/tmp/s/sandbox".into(),
        git_dirs: Vec::new(),
        home: "/home/a".into(),
        config_home: "/home/a/.claude".into(),
    }
}

fn paths(texts: &[&str]) -> Vec<PathBuf> {
    texts.iter().map(PathBuf::from).collect()
}

#[test]
fn a_path_may_be_written_in_the_roots_unless_it_is_shut() {
    let settings = PathSettings {
        allow_write: paths(&["/data"]),
        deny_write: paths(&["/home/a/p/vendor", "/data/keep"]),
        ..PathSettings::default()
    };
    let rules = FileRules::new(&places(), &settings);
    for (path, expected) in [
        ("/home/a/p/src/main.rs", "open"),
        ("/home/a/p/.git/index", "open"),
        ("/home/a/p/.git/hooks/pre-commit", "/home/a/p/.git/hooks"),
        ("/home/a/p/.git/config", "/home/a/p/.git/config"),
        ("/home/a/p/.git", "/home/a/p/.git/hooks"),
        ("/home/a/p/.claude/settings.json", "/home/a/p/.claude"),
        ("/home/a/p/.claude/worktrees/x/file", "open"),
        ("/home/a/p/.mcp.json", "/home/a/p/.mcp.json"),
        ("/home/a/p/.envrc", "/home/a/p/.envrc"),
        ("/home/a/p/HEAD", "/home/a/p/HEAD"),
        ("/home/a/p/vendor/x", "/home/a/p/vendor"),
        ("/home/a/p2/x", "outside"),
        ("/home/a/.bashrc", "outside"),
        ("/data/x", "open"),
        ("/data/keep", "/data/keep"),
        ("/tmp/s/sandbox/x", "open"),
        ("/tmp/s/tasks/x", "outside"),
    ] {
        let shown = match rules.write_refusal(Path::new(path)) {
            None => "open".to_owned(),
            Some(WriteRefusal::Outside) => "outside".to_owned(),
            Some(WriteRefusal::Shut(path)) => path.display().to_string(),
        };
        assert_eq!(shown, expected, "{path}");
    }
}

#[test]
fn what_is_read_from_the_directories_above_the_session_is_shut_there() {
    let settings = PathSettings { allow_write: paths(&["/home"]), ..PathSettings::default() };
    let places = SessionPlaces { dirs: vec!["/home/b/team/p".into()], ..places() };
    let rules = FileRules::new(&places, &settings);
    for (path, is_open) in [
        ("/home/b/team/.claude/skills/x/SKILL.md", false),
        ("/home/b/team/.mcp.json", false),
        ("/home/b/.claude/settings.json", false),
        ("/home/b/team/other/file", true),
        ("/home/b/team/.claudette", true),
    ] {
        assert_eq!(rules.write_refusal(Path::new(path)).is_none(), is_open, "{path}");
    }
}

#[test]
fn home_as_a_root_keeps_our_own_state_and_start_files_shut() {
    let rules =
        FileRules::new(&SessionPlaces { dirs: vec!["/home/a".into()], ..places() }, &PathSettings::default());
    for path in
        ["/home/a/.claude/settings.json", "/home/a/.claude.json", "/home/a/.bashrc", "/home/a/.gitconfig"]
    {
        assert!(matches!(rules.write_refusal(Path::new(path)), Some(WriteRefusal::Shut(_))), "{path}");
    }
}

#[test]
fn a_denied_root_is_no_root_and_scratch_always_is() {
    for deny in ["/home/a/p", "/home/a", "/"] {
        let settings = PathSettings { deny_write: paths(&[deny]), ..PathSettings::default() };
        let rules = FileRules::new(&places(), &settings);
        assert_eq!(rules.roots, paths(&["/tmp/s/sandbox"]), "{deny}");
    }
}

#[test]
fn credentials_are_unreadable_and_the_more_specific_rule_wins() {
    let settings = PathSettings {
        deny_read: paths(&["/home/a/private", "/home/a"]),
        allow_read: paths(&["/home/a/.netrc", "/home/a/private/shared"]),
        ..PathSettings::default()
    };
    let rules = FileRules::new(&places(), &settings);
    for (path, is_hidden) in [
        ("/home/a/.aws/credentials", true),
        ("/home/a/.claude/.credentials.json", true),
        ("/home/a/.netrc", false),
        ("/home/a/private/x", true),
        ("/home/a/private/shared/x", false),
        ("/home/a/other", true),
        ("/home/a/p/src", false),
        ("/etc/passwd", false),
    ] {
        assert_eq!(rules.read_refusal(Path::new(path)).is_some(), is_hidden, "{path}");
    }
}

#[test]
fn public_files_beside_keys_are_readable_unless_settings_deny_the_directory() {
    let hidden = |settings: PathSettings| {
        let rules = FileRules::new(&places(), &settings);
        let names = ["id_ed25519", "id_ed25519.pub", "config", "sub/key"];
        names.map(|name| rules.read_refusal(&Path::new("/home/a/.ssh").join(name)).is_some())
    };
    assert_eq!(hidden(PathSettings::default()), [true, false, false, true]);
    for denied in ["/home/a/.ssh", "/home/a"] {
        let deny_read = paths(&[denied]);
        assert_eq!(hidden(PathSettings { deny_read, ..PathSettings::default() }), [true; 4], "{denied}");
    }
    let allow_read = paths(&["/home/a/.ssh"]);
    assert_eq!(hidden(PathSettings { allow_read, ..PathSettings::default() }), [false; 4]);
}

#[test]
fn a_policy_is_the_same_after_its_way_to_the_helper() {
    let policy = Policy {
        layers: Layers::FULL,
        files: Some(FileRules::new(&places(), &PathSettings::default())),
        network: Network::Proxy,
        allows_unix_sockets: false,
        fault: None,
    };
    let text = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy);
}
