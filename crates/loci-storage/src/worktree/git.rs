//! Git as worktrees need it: it writes, but runs nothing that the repository brings along.
//!
//! A copy of a large repository takes as long as it takes: work on files has no limit, and whoever waits is told after a
//! while that git is at it. Questions to git and to remotes are given up at some time.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use loci_stdx::Env;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// After how long whoever waits is told.
const TELLS_AFTER: Duration = Duration::from_secs(10);
/// What goes through files: as many as a repository has.
const WORK: [&str; 8] =
    ["add", "checkout", "check-ignore", "ls-files", "read-tree", "sparse-checkout", "status", "worktree"];
/// How long a remote is waited for.
const REMOTE_PATIENCE: Duration = Duration::from_secs(5);
/// After how long a remote is asked again.
const FETCH_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// Git in one directory.
pub(crate) struct WorktreeGit {
    pub(super) env: Env,
    dir: PathBuf,
    /// Settings that switch off what the repository's own configuration would have run.
    neutral: Vec<String>,
    /// Who hears that git is at work, and after how long.
    tell: WaitNotice,
    tells_after: Duration,
}

/// Hears that something takes long.
pub type WaitNotice = fn(&str);

impl WorktreeGit {
    /// Makes git ready for a directory.
    pub(crate) fn new(env: &Env, dir: &Path) -> Self {
        let (tell, tells_after): (WaitNotice, _) = (|_| {}, TELLS_AFTER);
        let mut git = Self { env: env.clone(), dir: dir.to_owned(), neutral: neutral(), tell, tells_after };
        let pattern = r"^filter\..*\.(clean|smudge|process|required)$";
        let filters = git.run(&["config", "--show-scope", "--name-only", "--get-regexp", pattern]);
        let filters = filters.unwrap_or_default();
        let own = filters.lines().filter_map(|line| line.split_once('\t'));
        let own = own.filter(|(scope, _)| matches!(*scope, "local" | "worktree"));
        git.neutral.extend(
            own.map(|(_, name)| format!("{name}={}", if name.ends_with(".required") { "false" } else { "" })),
        );
        git
    }

    /// Tells somebody when git takes long.
    pub(super) fn telling(self, tell: WaitNotice) -> Self {
        Self { tell, ..self }
    }

    /// Runs git and returns what it printed; the error is what it complained about.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, String> {
        self.run_with(args, &[], &[], patience_for(args))
    }

    /// Runs git and waits for it as long as this.
    pub(crate) fn run_within<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        patience: Duration,
    ) -> Result<String, String> {
        self.run_with(args, &[], &[], Some(patience))
    }

    /// Runs git and returns what it printed, without the last line end.
    pub(crate) fn read<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, String> {
        self.run(args).map(|text| text.trim_end_matches('\n').to_owned())
    }

    /// Runs git with something to read.
    pub(super) fn run_on<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<String, String> {
        self.run_with(args, &[], stdin, patience_for(args))
    }

    /// Runs git with an index of its own.
    pub(super) fn run_beside<S: AsRef<OsStr>>(&self, args: &[S], index: &Path) -> Result<String, String> {
        self.run_with(args, &[("GIT_INDEX_FILE", index.as_os_str())], &[], patience_for(args))
    }

    /// Fetches from `origin`.
    pub(super) fn fetch(&self, what: &[&str]) -> Result<(), String> {
        let mut args = vec!["fetch", "--quiet", "--no-tags", "origin"];
        args.extend(what);
        self.run_with(&args, &[], &[], Some(REMOTE_PATIENCE)).map(drop)
    }

    /// Tells whether nothing was fetched for a day.
    pub(super) fn is_fetch_old(&self) -> bool {
        let fetched = self.common_dir().ok().and_then(|dir| dir.join("FETCH_HEAD").metadata().ok());
        let fetched = fetched.and_then(|it| it.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let now = Duration::from_millis(u64::try_from(self.env.clock.now().as_millisecond()).unwrap_or(0));
        fetched.is_none_or(|fetched| now.saturating_sub(fetched) > FETCH_AGE)
    }

    /// Returns the directory that all working copies share.
    pub(super) fn common_dir(&self) -> Result<PathBuf, String> {
        let dir = self.read(&["rev-parse", "--git-common-dir"])?;
        let dir = self.dir.join(dir);
        Ok(dir.canonicalize().unwrap_or(dir))
    }

    fn run_with<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        vars: &[(&str, &OsStr)],
        stdin: &[u8],
        patience: Option<Duration>,
    ) -> Result<String, String> {
        let mut command = Command::new("git");
        command.arg("--no-pager");
        for setting in &self.neutral {
            command.args(["-c", setting.as_str()]);
        }
        command.args(args).current_dir(&self.dir).env_clear();
        let kept = |(name, _): &(&str, &str)| !name.starts_with("GIT_");
        command.envs(self.env.vars.iter().filter(kept));
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C").envs(vars.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let verb = args.first().map(|it| it.as_ref().to_string_lossy().into_owned()).unwrap_or_default();
        let mut child = command.spawn().map_err(|error| format!("git cannot be run: {error}"))?;
        tracing::debug!(target: "loci::process", pid = child.id(), verb, "git started");
        let mut input = child.stdin.take();
        let stdin = stdin.to_owned();
        // A git that does not read to the end is its own complaint.
        thread::spawn(move || input.as_mut().map(|input| input.write_all(&stdin)));
        let out = child.stdout.take().map(read_all);
        let err = child.stderr.take().map(read_all);
        let begun = Instant::now();
        let mut is_told = false;
        let status = loop {
            match (child.try_wait(), patience) {
                (Ok(Some(status)), _) => break status,
                (Ok(None), Some(patience)) if begun.elapsed() >= patience => {
                    kill_group(child.id());
                    drop(child.wait());
                    return Err(format!("git {verb} took longer than {} seconds", patience.as_secs()));
                }
                (Ok(None), _) => {
                    if !is_told && begun.elapsed() >= self.tells_after {
                        (self.tell)(&format!("git {verb} is still at work in `{}`", self.dir.display()));
                        is_told = true;
                    }
                    thread::sleep(Duration::from_millis(2));
                }
                (Err(error), _) => return Err(format!("git {verb}: {error}")),
            }
        };
        let text = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
            let bytes = reader.and_then(|reader| reader.join().ok()).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (out, err) = (text(out), text(err));
        match status.success() {
            true => Ok(out),
            false => Err(loci_stdx::single_line(err.trim(), 500)),
        }
    }
}

/// Returns how long a verb is waited for: as long as it works, if it works on files.
fn patience_for<S: AsRef<OsStr>>(args: &[S]) -> Option<Duration> {
    let is_work = args.first().is_some_and(|verb| WORK.iter().any(|work| verb.as_ref() == *work));
    (!is_work).then_some(PATIENCE)
}

/// Settings that keep git from running what a repository could name.
fn neutral() -> Vec<String> {
    let settings =
        ["core.fsmonitor=", "core.hooksPath=/dev/null", "gpg.program=false", "commit.gpgSign=false"];
    settings.map(str::to_owned).to_vec()
}

fn read_all(mut from: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What could be read until then is what it said.
        drop(from.read_to_end(&mut bytes));
        bytes
    })
}

fn kill_group(id: u32) {
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself meanwhile.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Lets the git of the test go on, which waits for a line.
    fn let_go(said: &str) {
        let place = said.split('`').nth(1).unwrap_or_default();
        std::fs::write(Path::new(place).join("go"), said).unwrap();
    }

    #[test]
    fn git_at_work_is_told_of_and_not_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("git");
        let text = "#!/bin/sh\ncase \"$*\" in *worktree*) n=0; while [ ! -e go ] && [ $n -lt 900000 ]; do n=$((n+1)); done; cat go;; *) exit 1;; esac\n";
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut env = Env::for_test(dir.path(), dir.path());
        env.vars = env.vars.with("PATH", path);
        let git =
            WorktreeGit { tells_after: Duration::ZERO, ..WorktreeGit::new(&env, dir.path()).telling(let_go) };
        let said = git.run(&["worktree", "add", "x"]).unwrap();
        assert!(said.starts_with("git worktree is still at work in"), "{said}");
    }

    #[test]
    fn work_on_files_has_no_limit_and_questions_do() {
        for (args, expected) in [
            (&["worktree", "add"][..], None),
            (&["checkout", "--quiet"], None),
            (&["status"], None),
            (&["rev-parse", "HEAD"], Some(PATIENCE)),
            (&["config", "--get"], Some(PATIENCE)),
        ] {
            assert_eq!(patience_for(args), expected, "{args:?}");
        }
    }
}
