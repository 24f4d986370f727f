//! Running git as a reader: nothing written, nothing of the repository's run, no waiting without end.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use loci_stdx::{Env, Vars, read_regular_to_string, wait_readable};

/// How long one question may take.
const DEADLINE: Duration = Duration::from_secs(3);
/// The most bytes of an answer that are read.
const ANSWER_LIMIT: usize = 256 * 1024;

/// Configuration that a repository could use to have a command run, switched off.
const NEUTRAL: [&str; 7] = [
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "log.showSignature=false",
    "gpg.program=false",
    "safe.bareRepository=explicit",
    "core.untrackedCache=keep",
];

/// The variables of git that do not point it at another repository, configuration or program.
const HARMLESS: [&str; 2] = ["GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"];

/// Finds git on the path. Named with its directory it is started without a copy of this process being made first; entries
/// that are not absolute are passed over, since a repository could bring a git of its own there.
pub(super) fn find_git(vars: &Vars) -> Option<PathBuf> {
    let dirs = std::env::split_paths(vars.get("PATH")?).filter(|dir| dir.is_absolute());
    dirs.map(|dir| dir.join("git")).find(|git| git.is_file())
}

/// Git in one directory.
pub(super) struct Git {
    program: PathBuf,
    dir: PathBuf,
    vars: Vars,
    /// Settings that switch off the filters of the repository's own configuration.
    no_filters: Vec<String>,
}

impl Git {
    /// Makes git ready to answer; `None` when it cannot be run there.
    pub(super) fn new(dir: &Path, git_dir: &Path, env: &Env) -> Option<Self> {
        let program = find_git(&env.vars)?;
        let mut git = Self { program, dir: dir.to_owned(), vars: env.vars.clone(), no_filters: Vec::new() };
        if may_name_filters(git_dir) {
            git.no_filters = git.filters_switched_off()?;
        }
        Some(git)
    }

    /// Asks one question; `None` when git fails, is absent or takes too long.
    pub(super) fn read(&self, args: &[&str]) -> Option<String> {
        self.ask(args)?.read()
    }

    /// Asks one question whose answer is read later.
    pub(super) fn ask(&self, args: &[&str]) -> Option<PendingAnswer> {
        self.start(args).map(PendingAnswer)
    }

    /// A status refresh runs the clean filters that attributes name. Those of the user's own configuration
    /// (such as large-file storage) are the user's choice; those of the repository's are not run.
    fn filters_switched_off(&self) -> Option<Vec<String>> {
        let pattern = r"^filter\..*\.(clean|process|required)$";
        let answer = self
            .start(&["config", "--show-scope", "--name-only", "--get-regexp", pattern])
            .and_then(collect_output)?;
        let off = |name: &str| format!("{name}={}", if name.ends_with(".required") { "false" } else { "" });
        let lines = answer.text.lines().filter_map(|line| line.split_once('\t'));
        let own = lines.filter(|(scope, _)| matches!(*scope, "local" | "worktree"));
        Some(own.map(|(_, name)| off(name)).collect())
    }

    fn start(&self, args: &[&str]) -> Option<Child> {
        let mut command = Command::new(&self.program);
        command.args(["--no-optional-locks", "--no-pager"]);
        for setting in NEUTRAL.iter().copied().chain(self.no_filters.iter().map(String::as_str)) {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(&self.dir).env_clear();
        let kept = |(name, _): &(&str, &str)| !name.starts_with("GIT_") || HARMLESS.contains(name);
        command.envs(self.vars.iter().filter(kept));
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let child = command.spawn().ok()?;
        let (pid, verb) = (child.id(), args.first().copied().unwrap_or_default());
        tracing::debug!(target: "loci::process", pid, verb, "git started");
        Some(child)
    }
}

/// A git that was asked. Whoever drops it without reading leaves it to end by itself.
pub(super) struct PendingAnswer(Child);

impl PendingAnswer {
    /// Waits for the answer; `None` when git fails or takes too long.
    pub(super) fn read(self) -> Option<String> {
        collect_output(self.0).filter(|answer| answer.is_success).map(|answer| answer.text)
    }
}

/// Tells whether a repository's own configuration could name filters, so that git must be asked. A plain one
/// without the words for them, or for further files, cannot; that saves a process at every start.
fn may_name_filters(git_dir: &Path) -> bool {
    if git_dir.join("commondir").exists() || git_dir.join("config.worktree").exists() {
        return true;
    }
    let Ok(config) = read_regular_to_string(git_dir.join("config")) else { return true };
    let config = config.to_ascii_lowercase();
    // A backslash could continue or escape its way around a plain search.
    ["filter", "include", "\\"].iter().any(|word| config.contains(word))
}

struct GitOutput {
    text: String,
    is_success: bool,
}

/// Reads what the child says, and ends it when the deadline has passed or it says too much.
fn collect_output(mut child: Child) -> Option<GitOutput> {
    let bytes = read_answer(child.stdout.take()?, Instant::now() + DEADLINE).ok();
    tracing::debug!(target: "loci::process", pid = child.id(), has_answered = bytes.is_some(), "git ended");
    let is_cut = bytes.as_ref().is_none_or(|bytes| bytes.len() == ANSWER_LIMIT);
    if is_cut {
        end(&child);
    }
    let is_success = child.wait().is_ok_and(|status| status.success());
    let text = String::from_utf8_lossy(&bytes?).into_owned();
    Some(GitOutput { text, is_success: is_success || is_cut })
}

/// Reads to the end or to the limit; that neither came in time is an error.
fn read_answer(mut stdout: ChildStdout, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 8192];
    while bytes.len() < ANSWER_LIMIT {
        if !wait_readable(&stdout, deadline.saturating_duration_since(Instant::now()))? {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let room = chunk.len().min(ANSWER_LIMIT - bytes.len());
        match stdout.read(&mut chunk[..room])? {
            0 => break,
            n => bytes.extend_from_slice(&chunk[..n]),
        }
    }
    Ok(bytes)
}

/// Ends the child and whatever it started.
fn end(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself meanwhile.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_is_found_in_absolute_directories_of_the_path_only() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let git = second.path().join("git");
        std::fs::write(&git, "").unwrap();
        std::fs::create_dir(first.path().join("git")).unwrap();
        let path = std::env::join_paths(["bin".as_ref(), first.path(), second.path()]).unwrap();
        let vars = Vars::default().with("PATH", path.into_string().unwrap());
        assert_eq!(find_git(&vars), Some(git));
        assert_eq!(find_git(&Vars::default().with("PATH", "bin:")), None);
        assert_eq!(find_git(&Vars::default()), None);
    }

    #[test]
    fn answer_is_read_to_its_limit_and_a_silent_program_is_ended() {
        let child = |script: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", script]).stdout(Stdio::piped()).process_group(0).spawn().unwrap()
        };
        assert_eq!(collect_output(child("printf 'a\\nb'")).unwrap().text, "a\nb");
        assert!(!collect_output(child("exit 3")).unwrap().is_success);
        let endless = collect_output(child("while :; do printf '%01000d' 0; done")).unwrap();
        assert_eq!((endless.text.len(), endless.is_success), (ANSWER_LIMIT, true));
        let mut silent = child("exec sleep 600");
        assert!(read_answer(silent.stdout.take().unwrap(), Instant::now()).is_err());
        end(&silent);
        silent.wait().unwrap();
    }

    #[test]
    fn git_config_that_may_name_filters_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        assert!(may_name_filters(dir.path()), "none to read");
        for (config, expected) in [
            ("[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n", false),
            ("[filter \"x\"]\n\tclean = evil\n", true),
            ("[Filter \"x\"]\n\tclean = evil\n", true),
            ("[include]\n\tpath = other\n", true),
            ("[includeIf \"gitdir:~/\"]\n\tpath = other\n", true),
            ("[core]\n\teditor = a\\\nb\n", true),
        ] {
            std::fs::write(dir.path().join("config"), config).unwrap();
            assert_eq!(may_name_filters(dir.path()), expected, "{config}");
        }
        std::fs::write(dir.path().join("config"), "[core]\n").unwrap();
        std::fs::write(dir.path().join("config.worktree"), "").unwrap();
        assert!(may_name_filters(dir.path()));
    }
}
