//! The tree the permission cases speak of: a project, what lies outside, an added directory, a home.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use loci_core::permission::{
    Call, Decision, Mode, RuleList, RuleOrigin, RuleSource, Rulebook, canonical_host, decide,
};
use loci_core::tool::CallEffects;
use loci_tools::{Toolbox, Workspace};
use serde_json::Value;

/// Files of the project.
const FILES: &[&str] = &[
    "a.txt",
    "b.txt",
    "README.md",
    "src/app.ts",
    "src/deep/nested.ts",
    "src/my file.txt",
    "vendor/pkg/src/lib.js",
    "vendor/pkg/secrets/k.txt",
    "docs/a.md",
    "docs/sub/b.md",
    ".env",
    "sub/.env",
    "sub/data.csv",
    "secrets/key.txt",
    "secrets/deep/key2.txt",
    "secretsx/key.txt",
    "mysecrets/key.txt",
    "Secrets.txt",
    "conf/prod.json",
    "conf/dev.json",
    "scratch/x/y.txt",
    "build/out.o",
    "notes/[1] list.md",
    ".vscode/settings.json",
    ".husky/pre-commit",
    ".github/workflows/ci.yml",
    ".claude/commands/c.md",
    ".claude/worktrees/w1/f.txt",
    "package.json",
    "bin/tool",
    "nb.ipynb",
    "prog.awk",
    "s.sed",
    "Makefile",
    ".git/HEAD",
];

/// Links of the project.
const LINKS: &[(&str, &str)] = &[
    ("link_out", "../outside/file.txt"),
    ("link_in", "src/app.ts"),
    ("linkdir_out", "../outside"),
    ("linkdir_in", "src"),
    ("link_secret", "secrets/key.txt"),
    ("link_dangling", "../outside/created.txt"),
    ("link_git", ".git"),
    ("link_claude", ".claude"),
    ("src/link_ssh", "../../home/.ssh/id_test"),
];

/// Files around it.
const AROUND: &[&str] = &[
    "outside/file.txt",
    "outside/secret.txt",
    "outside/sub/deep.txt",
    "extra/file.txt",
    "extra/.env",
    "extra/.git/config",
    "home/.ssh/id_test",
    "home/notes.txt",
    "home/docs/a.pdf",
    "home/.zshrc",
    "home/.gitconfig",
];

/// A tree in a temporary directory.
pub(crate) struct Tree {
    root: PathBuf,
    toolbox: Toolbox,
    _dir: tempfile::TempDir,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let in_project = FILES.iter().map(|file| format!("proj/{file}"));
        for file in in_project.chain(AROUND.iter().map(|file| (*file).to_owned())) {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "content\n").unwrap();
        }
        for (link, target) in LINKS {
            symlink(target, root.join("proj").join(link)).unwrap();
        }
        symlink(root.join("proj/linkdir_out"), root.join("proj/link_chain")).unwrap();
        Self { root, toolbox: Toolbox::builtin(), _dir: dir }
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Puts the tree's directories where `{{proj}}` and its like stand.
    pub(crate) fn filled(&self, text: &str) -> String {
        let names = ["home", "proj", "outside", "extra"];
        names.iter().fold(text.to_owned(), |text, name| {
            text.replace(&format!("{{{{{name}}}}}"), &self.dir(name).display().to_string())
        })
    }

    pub(crate) fn book(&self, mode: Mode) -> Rulebook {
        Rulebook {
            mode,
            dirs: vec![self.dir("proj")],
            cwd: self.dir("proj"),
            home: self.dir("home"),
            ..Rulebook::default()
        }
    }

    /// Adds a rule of the project's settings.
    pub(crate) fn add(&self, book: &mut Rulebook, list: RuleList, text: &str, dir: &Path) {
        book.add(list, &self.filled(text), &RuleOrigin::new(RuleSource::Session, dir));
    }

    /// Judges a call as the engine does.
    pub(crate) fn judge(&self, book: &Rulebook, tool: &str, input: &Value) -> Decision {
        let place = Workspace {
            cwd: self.dir("proj"),
            project: self.dir("proj"),
            extra_dirs: book.dirs[1..].to_vec(),
            home: self.dir("home"),
        };
        let effects = match (self.toolbox.find(tool), input.get("url").and_then(Value::as_str)) {
            (Some(tool), _) => tool.effects(input, &place),
            (None, Some(url)) => match canonical_host(url) {
                Some(host) => CallEffects { hosts: vec![host], ..CallEffects::default() },
                None => CallEffects::unknown("an address without a host"),
            },
            (None, None) => CallEffects::unknown("a tool of others"),
        };
        let command = input.get("command").and_then(Value::as_str);
        decide(&Call { tool, command, input, effects: &effects, hook: None }, book)
    }
}
