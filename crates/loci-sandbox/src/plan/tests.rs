//! Plans as data, on a disk that is a list.

use std::collections::BTreeMap;

use super::*;
use crate::policy::{PathSettings, SessionPlaces};
use expect_test::{Expect, expect};

/// Lines of `path`, `path/` for a directory, `path -> target` for a link; parents are directories.
struct FakeDisk(BTreeMap<PathBuf, PathKind>);

impl FakeDisk {
    fn parse(text: &str) -> Self {
        let mut entries = BTreeMap::new();
        for line in text.split_whitespace() {
            let (path, kind) = match line.split_once("->") {
                Some((path, target)) => (path, PathKind::Link(target.into())),
                None if line.ends_with('/') => (line, PathKind::Dir),
                None => (line, PathKind::File),
            };
            let path = PathBuf::from(path.trim_end_matches('/'));
            path.ancestors().skip(1).for_each(|it| {
                entries.insert(it.to_owned(), PathKind::Dir);
            });
            entries.insert(path, kind);
        }
        Self(entries)
    }
}

impl Disk for FakeDisk {
    fn kind(&self, path: &Path) -> PathKind {
        self.0.get(path).cloned().unwrap_or(PathKind::Missing)
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        let inside = self.0.keys().filter(|path| path.parent() == Some(dir));
        inside.filter_map(|path| path.file_name().map(OsString::from)).collect()
    }
}

fn rules(settings: &PathSettings) -> FileRules {
    let places = SessionPlaces {
        dirs: vec!["/h/p".into()],
        scratch: "/t/s".into(),
        git_dirs: Vec::new(),
        home: "/h".into(),
        config_home: "/h/.claude".into(),
    };
    FileRules::new(&places, settings)
}

fn show(plan: &Plan) -> String {
    let mut lines: Vec<String> = Vec::new();
    let names: Vec<String> = plan
        .placeholders
        .iter()
        .map(|it| {
            let kind = match it.kind {
                PlaceholderKind::Socket => "",
                PlaceholderKind::Dir => " (directory)",
                PlaceholderKind::File => " (file)",
            };
            format!("{}{kind}", it.path.display())
        })
        .collect();
    lines.push(format!("placeholders: {}", names.join(" ")));
    let staged: Vec<String> = plan.staged.iter().map(|it| it.display().to_string()).collect();
    lines.extend((!staged.is_empty()).then(|| format!("staged: {}", staged.join(" "))));
    lines.push(format!(
        "absent: {}",
        plan.absent.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(" ")
    ));
    lines.extend(
        plan.mounts.iter().filter(|step| !plan.placeholders.iter().any(|it| it.path == step.path())).map(
            |step| match step {
                MountStep::Reduce(path, kept) => format!(
                    "reduce {} to {}",
                    path.display(),
                    kept.iter().map(|it| it.display().to_string()).collect::<Vec<_>>().join(" ")
                ),
                MountStep::HideDir(path) => format!("hide directory {}", path.display()),
                MountStep::HideFile(path) => format!("hide file {}", path.display()),
                MountStep::Open(path) => format!("open {}", path.display()),
                MountStep::Pin(path) => format!("pin {}", path.display()),
                MountStep::Shut(path) => format!("shut {}", path.display()),
                MountStep::Block(path) => format!("block {}", path.display()),
                MountStep::Stage { at, .. } => format!("stage {}", at.display()),
            },
        ),
    );
    lines.join("\n")
}

fn check(disk: &str, settings: &PathSettings, expected: &Expect) {
    let plan = Plan::new(&rules(settings), &FakeDisk::parse(disk));
    expected.assert_eq(&show(&plan));
}

#[test]
fn repository_is_opened_and_what_steers_tools_is_shut() {
    check(
        "/h/p/.git/hooks/ /h/p/.git/config /h/p/.claude/settings.json /h/p/.claude/worktrees/w/ /h/p/objects/ /t/s/",
        &PathSettings::default(),
        &expect![[r#"
            placeholders: /h/p/.bash_login /h/p/.bash_logout /h/p/.bash_profile /h/p/.bashrc /h/p/.envrc /h/p/.git/config.worktree (file) /h/p/.git/modules /h/p/.gitconfig /h/p/.idea /h/p/.mcp.json /h/p/.profile /h/p/.vscode /h/p/.zlogin /h/p/.zlogout /h/p/.zprofile /h/p/.zshenv /h/p/.zshrc /h/p/refs
            absent: /h/p/.git/commondir /h/p/HEAD
            open /h/p
            open /t/s
            shut /h/p/.claude
            pin /h/p/.git
            open /h/p/.claude/worktrees
            shut /h/p/.git/config
            shut /h/p/.git/hooks"#]],
    );
}

#[test]
fn symlinks_are_pinned_and_what_they_lead_to_is_shut() {
    check(
        "/h/p/conf/hooks/ /h/p/.git/config /h/p/.git/hooks->../conf/hooks /h/p/.claude->/elsewhere /h/p/.mcp.json->conf/mcp.json /t/s/ /elsewhere/",
        &PathSettings::default(),
        &expect![[r#"
            placeholders: /h/p/.bash_login /h/p/.bash_logout /h/p/.bash_profile /h/p/.bashrc /h/p/.envrc /h/p/.git/config.worktree (file) /h/p/.git/modules /h/p/.gitconfig /h/p/.idea /h/p/.profile /h/p/.vscode /h/p/.zlogin /h/p/.zlogout /h/p/.zprofile /h/p/.zshenv /h/p/.zshrc /h/p/conf/mcp.json /h/p/objects /h/p/refs
            absent: /h/p/.git/commondir /h/p/HEAD
            open /h/p
            open /t/s
            pin /h/p/.claude
            pin /h/p/.git
            pin /h/p/.mcp.json
            pin /h/p/conf
            shut /h/p/.git/config
            pin /h/p/.git/hooks
            shut /h/p/conf/hooks"#]],
    );
}

#[test]
fn a_worktree_keeps_the_file_that_names_its_repository() {
    check(
        "/h/p/.git /t/s/",
        &PathSettings::default(),
        &expect![[r#"
            placeholders: /h/p/.bash_login /h/p/.bash_logout /h/p/.bash_profile /h/p/.bashrc /h/p/.claude (directory) /h/p/.envrc /h/p/.gitconfig /h/p/.idea /h/p/.mcp.json /h/p/.profile /h/p/.vscode /h/p/.zlogin /h/p/.zlogout /h/p/.zprofile /h/p/.zshenv /h/p/.zshrc /h/p/objects /h/p/refs
            absent: /h/p/HEAD
            open /h/p
            open /t/s
            shut /h/p/.git"#]],
    );
}

#[test]
fn what_may_not_be_read_is_covered_with_its_exceptions_shown() {
    let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
    check(
        "/h/.ssh/id /h/.ssh/id.pub /h/.ssh/config /h/.netrc /h/.npmrc->dot/npmrc /h/dot/npmrc /h/p/secret/key /t/s/ /big/a /big/b/c",
        &PathSettings {
            deny_read: paths(&["/h/p/secret/key", "/big", "/h/missing"]),
            allow_read: paths(&["/big/b", "/big/none"]),
            ..PathSettings::default()
        },
        &expect![[r#"
            placeholders: /h/p/.bash_login /h/p/.bash_logout /h/p/.bash_profile /h/p/.bashrc /h/p/.claude (directory) /h/p/.envrc /h/p/.git (directory) /h/p/.gitconfig /h/p/.idea /h/p/.mcp.json /h/p/.profile /h/p/.vscode /h/p/.zlogin /h/p/.zlogout /h/p/.zprofile /h/p/.zshenv /h/p/.zshrc /h/p/objects /h/p/refs
            staged: /h/p/.git
            absent: /h/p/HEAD
            reduce /big to /big/b
            hide file /h/.netrc
            open /h/p
            open /t/s
            hide file /h/.ssh/id
            hide file /h/dot/npmrc
            pin /h/p/secret
            hide file /h/p/secret/key"#]],
    );
}

/// Returns the steps for a project `/h/p` with a home around it, credentials in that, and what is denied and allowed.
fn hidden(deny_read: &[&str], allow_read: &[&str]) -> Vec<String> {
    let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
    let settings = PathSettings {
        deny_read: paths(deny_read),
        allow_read: paths(allow_read),
        ..PathSettings::default()
    };
    let disk = FakeDisk::parse(
        "/h/.azure/t /h/.netrc /h/.ssh/id /h/.ssh/config /h/.claude/.credentials.json /h/notes/a /h/p/.git/config /h/p/.git/hooks/ /h/p/sub/a /t/s/",
    );
    let shown = show(&Plan::new(&rules(&settings), &disk));
    shown.lines().map(str::to_owned).collect()
}

#[test]
fn nothing_is_mounted_below_what_is_hidden() {
    let credentials = [
        "hide directory /h/.azure",
        "hide file /h/.netrc",
        "hide file /h/.ssh/id",
        "hide file /h/.claude/.credentials.json",
    ];
    for (deny, allow, here, not_here) in [
        (&[][..], &[][..], &credentials[..], &[][..]),
        (&["/h"], &["/h/p"], &["reduce /h to /h/p", "shut /h/p/.git/hooks"], &credentials),
        (&["/h"], &[], &["reduce /h to /h/p", "shut /h/p/.git/hooks"], &credentials),
        (
            &["/h"],
            &["/h/.azure", "/h/notes"],
            &["reduce /h to /h/.azure /h/notes /h/p"],
            &["hide directory /h/.azure", "hide file /h/.netrc"],
        ),
        (
            &["/h/.claude"],
            &[],
            &["hide directory /h/.claude", "hide file /h/.netrc"],
            &["hide file /h/.claude/.credentials.json"],
        ),
        (&["/h/p"], &[], &["open /h/p", "hide directory /h/p"], &["shut /h/p/.git/hooks", "pin /h/p/.git"]),
    ] {
        let found = hidden(deny, allow);
        for step in here {
            assert!(found.iter().any(|it| it == step), "{deny:?} {allow:?}: {step} is missing: {found:#?}");
        }
        for step in not_here {
            assert!(!found.iter().any(|it| it == step), "{deny:?} {allow:?}: {step}: {found:#?}");
        }
    }
    assert_eq!(hidden(&["/h/p"], &[])[0], "placeholders: ", "none is needed where nothing can be made");
}

#[test]
fn hidden_root_shows_its_exceptions_and_nothing_else() {
    let found = hidden(&["/h/p"], &["/h/p/sub"]);
    let place = |step: &str| found.iter().position(|it| it == step).unwrap();
    assert!(place("open /h/p") < place("reduce /h/p to /h/p/sub"), "{found:#?}");
}

#[test]
fn directory_of_keys_is_hidden_whole_where_settings_deny_it() {
    let steps = |deny: &[&str]| -> Vec<String> {
        hidden(deny, &[]).into_iter().filter(|it| it.contains("/h/.ssh")).collect()
    };
    assert_eq!(steps(&[]), ["hide file /h/.ssh/id"]);
    assert_eq!(steps(&["/h/.ssh"]), ["hide directory /h/.ssh"]);
}

#[test]
fn repository_may_be_made_where_there_is_none_unless_something_in_it_is_denied() {
    for (disk, deny, expected) in [
        ("/h/p/ /t/s/", &[][..], &["/h/p/.git"][..]),
        ("/h/p/ /t/s/", &["/h/p/.git"], &[]),
        ("/h/p/ /t/s/", &["/h/p/.git/objects"], &[]),
        ("/h/p/ /t/s/", &["/h/p/.git/hooks"], &["/h/p/.git"]),
        ("/h/p/.git/ /t/s/", &[], &[]),
        ("/h/p/.git /t/s/", &[], &[]),
        ("/h/p/.git->/elsewhere /t/s/", &[], &[]),
        ("/h/.git/config /h/p/ /t/s/", &[], &["/h/p/.git"]),
    ] {
        let settings =
            PathSettings { deny_write: deny.iter().map(PathBuf::from).collect(), ..PathSettings::default() };
        let plan = Plan::new(&rules(&settings), &FakeDisk::parse(disk));
        let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
        assert_eq!(plan.staged, expected, "{disk} {deny:?}");
        let is_held = plan.placeholders.iter().any(|it| it.path == Path::new("/h/p/.git"));
        let is_missing = !disk.contains("/h/p/.git");
        assert_eq!(is_held, is_missing, "what is missing has a placeholder: {disk} {deny:?}");
    }
}
