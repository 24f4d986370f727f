//! What git takes for a repository, and what it reads in its configuration, beside what the real git then runs.
//!
//! Every program that is named anywhere leaves a mark. Git is run whatever the verdict is: where it leaves one, the verdict
//! must not have been that git only reads.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use loci_core::permission::{Call, Mode, Rulebook, Verdict, decide};
use loci_tools::{Toolbox, Workspace};
use serde_json::json;

use super::random::{Random, n_cases};

/// How many cases of each kind are tried by day.
const N_CASES: usize = 120;

/// A directory for one case after the other.
struct Place {
    root: PathBuf,
    toolbox: Toolbox,
    _dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let place = Self { root, toolbox: Toolbox::builtin(), _dir: dir };
        place.make_template();
        place
    }

    fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    fn mark(&self) -> PathBuf {
        self.root.join("PWN")
    }

    /// A program that leaves the mark, as git's configuration may name one.
    fn evil(&self) -> String {
        format!("touch {};false", self.mark().display())
    }

    /// Makes the repository that each case begins with: a file was changed since the last commit.
    fn make_template(&self) {
        let template = self.root.join("template");
        std::fs::create_dir_all(&template).unwrap();
        self.git(&template, &["init", "-q", "-b", "main", "--template="]);
        self.write("template/a.txt", "a");
        self.write("template/.gitattributes", "* filter=x diff=x");
        self.git(&template, &["add", "."]);
        self.git(&template, &["commit", "-q", "-m", "x"]);
        self.write("template/a.txt", "b");
    }

    fn renew(&self) {
        std::fs::remove_dir_all(self.project()).ok();
        std::fs::remove_file(self.mark()).ok();
        copy_dir(&self.root.join("template"), &self.project());
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::remove_file(&path).ok();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, cwd: &Path, args: &[&str]) {
        let mut command = Command::new("git");
        command.args(args).current_dir(cwd).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
        command.env("HOME", self.root.join("home")).env("GIT_CONFIG_NOSYSTEM", "1");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    }

    /// Tells whether `git status` would run unasked in `cwd`.
    fn is_allowed(&self, project: &Path, cwd: &Path) -> bool {
        let home = self.root.join("home");
        let input = json!({"command": "git status"});
        let place = Workspace {
            cwd: cwd.to_path_buf(),
            project: project.to_path_buf(),
            extra_dirs: Vec::new(),
            home: home.clone(),
        };
        let effects = self.toolbox.find("Bash").unwrap().effects(&input, &place);
        let book = Rulebook {
            mode: Mode::Default,
            dirs: vec![project.to_path_buf()],
            cwd: cwd.to_path_buf(),
            home,
            ..Rulebook::default()
        };
        let call =
            Call { tool: "Bash", command: Some("git status"), input: &input, effects: &effects, hook: None };
        decide(&call, &book).verdict == Verdict::Allow
    }

    /// Runs git as a line that was let through would, and tells whether it ran something.
    fn runs_others(&self, cwd: &Path) -> bool {
        ["status", "diff"].iter().any(|subcommand| {
            self.git(cwd, &[subcommand]);
            self.mark().exists()
        })
    }
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let to = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true => copy_dir(&entry, &to),
            false => drop(std::fs::copy(&entry, &to).unwrap()),
        }
    }
}

/// What became of all cases.
#[derive(Default)]
struct Tally {
    n_allowed: usize,
    n_ran: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn note(&mut self, place: &Place, project: &Path, cwd: &Path, case: &str) {
        let is_allowed = place.is_allowed(project, cwd);
        let ran = place.runs_others(cwd);
        self.n_allowed += usize::from(is_allowed);
        self.n_ran += usize::from(ran);
        if is_allowed && ran {
            self.wrong.push(case.to_owned());
        }
    }

    /// A judge that never sees anything run, or a verdict that is always a question, would prove nothing.
    fn check(&self, n_cases: usize) {
        let n_wrong = self.wrong.len();
        assert!(self.wrong.is_empty(), "{n_wrong} of {n_cases}:\n{}", self.wrong.join("\n---\n"));
        let Self { n_allowed, n_ran, .. } = self;
        assert!(*n_allowed > n_cases / 20, "of {n_cases} only {n_allowed} are allowed");
        assert!(*n_ran > n_cases / 10, "of {n_cases} only {n_ran} run something");
    }
}

#[test]
fn configuration_that_runs_programs_is_never_taken_for_harmless() {
    let place = Place::new();
    let mut random = Random::new(0x0c0f);
    let mut tally = Tally::default();
    let n = n_cases(N_CASES);
    place.write("evil.config", &format!("[core]\n\tfsmonitor = \"{}\"\n", place.evil()));
    for _ in 0..n {
        place.renew();
        let config = config(&mut random, &place);
        place.write("project/.git/config", &config);
        tally.note(&place, &place.project(), &place.project(), &config);
    }
    tally.check(n);
}

/// A configuration of whole and broken lines.
fn config(random: &mut Random, place: &Place) -> String {
    let mut text = String::from("[core]\n\trepositoryformatversion = 0\n");
    for _ in 0..1 + random.below(2) {
        let line = match random.below(4) {
            0 | 1 => harmless_line(random),
            2 => format!("{}{}", harmless_line(random).trim_end(), evil_setting(random, place)),
            _ => evil_setting(random, place),
        };
        text.push_str(&line);
        text.push_str(
            random.pick(&[
                "\n", "\n", "\n", "\r\n", " ;]\n", " #]\n", " ; x\n", "\\\n", "]\n", "\n\n", "\u{b}\n",
            ]),
        );
    }
    text
}

fn harmless_line(random: &mut Random) -> String {
    random
        .pick(&[
            "[branch \"x\"]",
            "[branch]",
            "[color]",
            "[color \"a\\\"b\"]",
            "[remote \"origin\"]\n\turl = x",
            "\tabbrev = 7",
            "\tabbrev = \"7",
            "\tabbrev = 7 \\\n",
            "# [core]",
            "; x",
            "\u{feff}",
            "[core] abbrev = 7",
            "[core]\n\tabbrev = 7",
            "[branch \"a]\"]",
            "\t[user]\n\tname = a",
            "[advice] ;]",
        ])
        .to_owned()
}

fn evil_setting(random: &mut Random, place: &Place) -> String {
    let evil = place.evil();
    let value = random.pick(&["\"{}\"", "\"{}\"", "\"{}\" ; x", "\"{}\"  "]).replace("{}", &evil);
    let spaces = random.pick(&["", " ", "\t", "\n", "\n\t"]);
    let (section, key, value) = match random.below(6) {
        0 => ("[diff]", "external", value),
        1 => ("[filter \"x\"]", "clean", value),
        2 => ("[diff \"x\"]", "textconv", value),
        3 => ("[include]", "path", format!("{}/evil.config", place.root.display())),
        4 => ("[CORE]", "fsMonitor", value),
        _ => ("[core]", "fsmonitor", value),
    };
    let equals = random.pick(&[" = ", "=", "\t=", " =  "]);
    format!("{section}{spaces}{key}{equals}{value}")
}

#[test]
fn directories_git_takes_for_a_repository_are_never_taken_for_none() {
    let place = Place::new();
    let mut random = Random::new(0xd1e5);
    let mut tally = Tally::default();
    let n = n_cases(N_CASES);
    for _ in 0..n {
        place.renew();
        if random.once_in(3) {
            std::fs::remove_dir_all(place.project().join(".git")).unwrap();
        }
        let mut made = Vec::new();
        let dir = random.pick(&["project/pkg", "project/pkg/.git", "project", "project/.git"]);
        look_alike(&mut random, &place, dir, &mut made);
        if random.once_in(3) {
            let dir = random.pick(&["project/pkg/sub/.git", "project/pkg/sub", "project/pkg"]);
            look_alike(&mut random, &place, dir, &mut made);
        }
        let cwd = place.root.join(random.pick(&["project", "project/pkg", "project/pkg/sub"]));
        std::fs::create_dir_all(&cwd).unwrap();
        let project = if random.once_in(2) { cwd.clone() } else { place.project() };
        tally.note(&place, &project, &cwd, &format!("{} {made:?}", cwd.display()));
    }
    tally.check(n);
}

/// Puts some of what makes a repository into a directory.
fn look_alike(random: &mut Random, place: &Place, dir: &str, made: &mut Vec<String>) {
    let evil = format!("fsmonitor = \"{}\"\n", place.evil());
    let core = format!("[core]\n\trepositoryformatversion = 1\n\tworktree = .\n\t{evil}");
    let with_worktree = "[core]\n\trepositoryformatversion = 1\n[extensions]\n\tworktreeConfig = true\n";
    let plain = "[core]\n\trepositoryformatversion = 0\n";
    let mut put = |name: &str, text: &str| {
        place.write(&format!("{dir}/{name}"), text);
        made.push(format!("{dir}/{name}"));
    };
    if !random.once_in(8) {
        let id = "0123456789abcdef0123456789abcdef01234567\n";
        put(
            "HEAD",
            random.pick(&["ref: refs/heads/main\n", "ref:refs/heads/main", "ref: refs/heads/main", id, "x"]),
        );
    }
    let common = if random.once_in(2) { "" } else { "c/" };
    if !common.is_empty() {
        put("commondir", random.pick(&["c", "c\n", "./c/"]));
    }
    for name in ["objects/keep", "refs/keep"] {
        if !random.once_in(8) {
            put(&format!("{common}{name}"), "");
        }
    }
    match random.below(4) {
        0 => put(&format!("{common}config"), plain),
        1 => {
            put(&format!("{common}config"), with_worktree);
            put("config.worktree", &format!("[core]\n\tworktree = .\n\t{evil}"));
        }
        _ => put(&format!("{common}config"), &core),
    }
    if random.once_in(10) {
        let head = place.root.join(dir).join("HEAD");
        std::fs::remove_file(&head).ok();
        symlink("refs/heads/main", head).unwrap();
    }
}
