//! Git as worktrees need it: it writes, but runs nothing that the repository brings along.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

use loci_stdx::Env;

/// How long making or removing a copy may take.
const PATIENCE: Duration = Duration::from_secs(120);
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
}

impl WorktreeGit {
    /// Makes git ready for a directory.
    pub(crate) fn new(env: &Env, dir: &Path) -> Self {
        let mut git = Self { env: env.clone(), dir: dir.to_owned(), neutral: neutral() };
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

    /// Runs git and returns what it printed; the error is what it complained about.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, String> {
        self.run_with(args, &[], &[], PATIENCE)
    }

    /// Runs git and waits for it as long as this.
    pub(crate) fn run_within<S: AsRef<OsStr>>(
        &self,
        args: &[S],
        patience: Duration,
    ) -> Result<String, String> {
        self.run_with(args, &[], &[], patience)
    }

    /// Runs git and returns what it printed, without the last line end.
    pub(crate) fn read<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<String, String> {
        self.run(args).map(|text| text.trim_end_matches('\n').to_owned())
    }

    /// Runs git with something to read.
    pub(super) fn run_on<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Result<String, String> {
        self.run_with(args, &[], stdin, PATIENCE)
    }

    /// Runs git with an index of its own.
    pub(super) fn run_beside<S: AsRef<OsStr>>(&self, args: &[S], index: &Path) -> Result<String, String> {
        self.run_with(args, &[("GIT_INDEX_FILE", index.as_os_str())], &[], PATIENCE)
    }

    /// Fetches from `origin`.
    pub(super) fn fetch(&self, what: &[&str]) -> Result<(), String> {
        let mut args = vec!["fetch", "--quiet", "--no-tags", "origin"];
        args.extend(what);
        self.run_with(&args, &[], &[], REMOTE_PATIENCE).map(drop)
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
        patience: Duration,
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
        let end = Instant::now() + patience;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < end => thread::sleep(Duration::from_millis(2)),
                Ok(None) => {
                    kill_group(child.id());
                    drop(child.wait());
                    return Err(format!("git {verb} took longer than {} seconds", patience.as_secs()));
                }
                Err(error) => return Err(format!("git {verb}: {error}")),
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
