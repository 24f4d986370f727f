//! What is told without git against what git tells: the same, to the letter, wherever something is told.

use std::path::PathBuf;
use std::process::Command;

use super::super::config::GitConfig;
use super::super::objects::ObjectStore;
use super::super::refs::Refs;
use super::super::{Head, head_commit, plain_status};
use super::*;

/// A repository in a temporary directory, with a home of its own beside it.
struct Repository {
    dir: tempfile::TempDir,
    env: Env,
}

impl Repository {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::create_dir(dir.path().join("top")).unwrap();
        let mut env = Env::for_test(&home, dir.path().join("top"));
        env.vars = env.vars.with("HOME", home.to_str().unwrap());
        let repository = Self { env, dir };
        repository.git(&["init", "-q"]);
        repository
    }

    fn top(&self) -> PathBuf {
        self.dir.path().join("top")
    }

    fn git(&self, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=T", "-c", "user.email=t@e", "-c", "commit.gpgsign=false"]);
        command.args(args).current_dir(self.top()).env_clear().env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("PATH", std::env::var("PATH").unwrap()).env("HOME", &self.env.home);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.top().join(path);
        // What is in the way of a directory stays there, and the file is not written.
        if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
            drop(fs::write(path, content));
        }
    }

    fn commit(&self) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "x"]);
    }

    /// What is told without git.
    fn told(&self) -> Option<String> {
        let git_dir = self.top().join(".git");
        let refs = Refs::open(&git_dir)?;
        let Head::Commit(commit) = head_commit(&git_dir, &refs)? else { return None };
        let tree = ObjectStore::open(&git_dir)?.tree_of(commit);
        let config = GitConfig::read(&git_dir, &self.env).ok()?.without_machine();
        plain_status(&self.top(), &git_dir, &config, tree, &self.env)
    }

    fn asked(&self) -> String {
        self.git(&["--no-optional-locks", "status", "--short", "--ignore-submodules=dirty"])
            .trim_end()
            .to_owned()
    }

    /// Holds one against the other, and says whether anything was told.
    fn check(&self, case: &str) -> bool {
        let told = self.told();
        if let Some(told) = &told {
            assert_eq!(*told, self.asked(), "{case}");
        }
        told.is_some()
    }
}

#[test]
fn plain_working_trees_are_told_without_git() {
    let repository = Repository::new();
    repository.write("a.txt", "one\n");
    repository.write("src/deep/b.rs", "two\n");
    repository.commit();
    let told = |case: &str, expected: &str| {
        assert!(repository.check(case), "{case}: nothing is told");
        assert_eq!(repository.told().unwrap(), expected, "{case}");
    };
    told("nothing changed", "");
    repository.write("a.txt", "ONE\n");
    told("as long, in the same second", " M a.txt");
    repository.write("a.txt", "one\n");
    told("as it was", "");
    repository.write("new/x/y", "");
    repository.write("loose", "");
    fs::create_dir(repository.top().join("empty")).unwrap();
    told("not tracked", "?? loose\n?? new/");
    repository.write(".gitignore", "new/\n*.o\n!keep.o\n");
    repository.write("src/x.o", "");
    repository.write("src/keep.o", "");
    told("ignored", "?? .gitignore\n?? loose\n?? src/keep.o");
    fs::remove_dir_all(repository.top().join("src/deep")).unwrap();
    told("gone", " D src/deep/b.rs\n?? .gitignore\n?? loose\n?? src/keep.o");
}

/// Each is git's to tell, and each is told once it is put right.
#[test]
fn what_is_not_plain_is_left_to_git() {
    type Change = fn(&Repository);
    let cases: [(&str, Change); 15] = [
        ("staged", |it| {
            it.write("n", "");
            it.git(&["add", "n"]);
        }),
        ("a setting", |it| drop(it.git(&["config", "status.branch", "true"]))),
        ("further settings", |it| drop(it.git(&["config", "include.path", "more"]))),
        ("attributes, and content in doubt", |it| it.write(".gitattributes", "* text=auto\n")),
        ("line ends, and content in doubt", |it| drop(it.git(&["config", "core.autocrlf", "input"]))),
        ("a name that is quoted", |it| it.write("two words", "")),
        ("rules with escapes", |it| {
            it.write(".gitignore", "a\\ b\n");
            it.write("new", "");
        }),
        ("rules behind a symlink", |it| {
            std::os::unix::fs::symlink("a.txt", it.top().join(".gitignore")).unwrap();
            it.write("new", "");
        }),
        ("a repository inside", |it| drop(it.git(&["init", "-q", "inner"]))),
        ("another kind of file", |it| {
            fs::remove_file(it.top().join("a.txt")).unwrap();
            std::os::unix::fs::symlink("b", it.top().join("a.txt")).unwrap();
        }),
        ("a directory in the place of a file", |it| {
            fs::remove_file(it.top().join("a.txt")).unwrap();
            it.write("a.txt/x", "");
        }),
        ("a file that is assumed to be unchanged", |it| {
            drop(it.git(&["update-index", "--assume-unchanged", "a.txt"]));
        }),
        ("a split index", |it| drop(it.git(&["update-index", "--split-index"]))),
        ("a commit that stands for another", |it| {
            let id = it.git(&["rev-parse", "HEAD"]);
            it.git(&["commit", "-q", "--allow-empty", "-m", "y"]);
            it.git(&["replace", id.trim(), "HEAD"]);
        }),
        ("many files", |it| (0..=MOST_NAMES).for_each(|n| it.write(&format!("many/{n}"), ""))),
    ];
    for (case, change) in cases {
        let repository = Repository::new();
        repository.write("a.txt", "one\n");
        repository.commit();
        assert!(repository.check(case), "{case}: nothing is told before");
        change(&repository);
        // In doubt, because the index is as old as the file.
        assert_eq!(repository.told(), None, "{case}");
    }
}

/// Steps of a person at random, in many repositories.
#[test]
fn what_is_told_is_what_git_tells() {
    const PATHS: [&str; 11] = [
        "a.txt",
        "b.txt",
        "src/b.rs",
        "src/deep/c.rs",
        "docs/d.md",
        "target/x.o",
        "src/target/z",
        "build/y",
        "sub/e",
        "src",
        "log.txt",
    ];
    const RULES: [&str; 14] = [
        "target/",
        "*.txt",
        "!b.txt",
        "/build",
        "src/*",
        "!src/deep",
        "**/z",
        "docs/**",
        "*.o",
        "sub",
        "# words",
        "d?.md",
        "src/deep/",
        "/*\n!/src",
    ];
    let (mut n_told, mut n_steps) = (0, 0);
    for seed in 0..30 {
        let mut random = Random(seed);
        let repository = Repository::new();
        repository.write("a.txt", "a\n");
        repository.commit();
        repository.git(&["update-index", "--index-version", random.pick(&["2", "4"])]);
        let mut steps = Vec::new();
        for _ in 0..14 {
            let path = random.pick(&PATHS);
            let at = repository.top().join(path);
            let step = random.below(13);
            match step {
                0..=2 => repository.write(path, random.pick(&["a\n", "b\n", "longer\n", ""])),
                3 => drop(fs::remove_file(&at)),
                4 => drop(fs::remove_dir_all(&at)),
                5 => drop(fs::create_dir_all(&at)),
                6 => {
                    let file = random.pick(&[".gitignore", "src/.gitignore", ".git/info/exclude"]);
                    let rules: Vec<&str> = (0..random.below(4)).map(|_| random.pick(&RULES)).collect();
                    repository.write(file, &format!("{}\n", rules.join("\n")));
                }
                7 => {
                    let mode = if random.below(2) == 0 { 0o755 } else { 0o644 };
                    if at.is_file() {
                        fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
                    }
                }
                8 => drop(std::os::unix::fs::symlink(random.pick(&PATHS), &at)),
                9 => drop(repository.git(&["add", "-A"])),
                _ => repository.commit(),
            }
            steps.push((step, path));
            n_steps += 1;
            n_told += usize::from(repository.check(&format!("seed {seed}: {steps:?}")));
        }
    }
    assert!(n_told * 2 > n_steps, "of {n_steps} states {n_told} were told");
}

/// Numbers that are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        let mut state = self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0 = state;
        (state >> 20) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
