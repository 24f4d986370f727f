//! Starting bash: always the same shell in the same way, whatever the user's own shell is (S-4).

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use loci_sandbox::{HelperHandle, ProgramStart, Sandbox, SandboxRun};
use loci_stdx::prefixed_program;

use tempfile::TempPath;
use tokio::process::{Child, Command};

use super::death_watch::DeathWatch;
use super::process_tree::{MARK_VARIABLE, ProcessTree};
use super::run::Running;

/// What bash itself runs: the command by `eval`, with positional parameters as empty as they are at a prompt, and
/// on every way out the directory it ended in written to a file. The braces keep `set -x` quiet about it; the
/// second copy is for commands that set an `EXIT` trap of their own.
const WRAPPER: &str = concat!(
    // On one line, so that bash counts the command's lines from one.
    r#"__loci_command=$1 __loci_cwd_file=$2; shift 2; "#,
    r#"if [ -n "$LOCI_HOOK_ENV" ]; then for __loci_file in "$LOCI_HOOK_ENV"/*.sh; do "#,
    r#"[ -r "$__loci_file" ] && . "$__loci_file"; done; unset __loci_file LOCI_HOOK_ENV; fi; "#,
    r#"trap '{ pwd -P >| "$__loci_cwd_file"; } 2>/dev/null' EXIT; "#,
    r#"eval "$__loci_command"; "#,
    r#"{ __loci_code=$?; pwd -P >| "$__loci_cwd_file"; exit "$__loci_code"; } 2>/dev/null"#,
);

/// The variable that names the directory of files which are sourced before every command: hooks leave variables there.
pub const HOOK_ENV_VARIABLE: &str = "LOCI_HOOK_ENV";

/// A command about to run.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) command: &'a str,
    pub(crate) cwd: &'a Path,
    /// The whole environment; nothing is inherited.
    pub(crate) env: Vec<(String, String)>,
    /// Where the directory the command ends in is written. Its name, which no other command has, also marks the
    /// processes of this one.
    pub(crate) cwd_file: TempPath,
    /// Ends the command should we be killed.
    pub(crate) death_watch: &'a DeathWatch,
    /// What it runs in.
    pub(crate) sandbox: Option<&'a SandboxPlace>,
}

/// A sandbox, and the directories that are writable in it.
#[derive(Debug, Clone)]
pub struct SandboxPlace {
    /// The sandbox.
    pub sandbox: Arc<Sandbox>,
    /// The session's directories; the first is where it started.
    pub dirs: Vec<PathBuf>,
}

/// Starts a command with its own session and pipes for its output; its input is empty.
pub(crate) fn launch(launch: Launch<'_>) -> io::Result<Running> {
    let bash = find_bash(&launch.env).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::NotFound,
            "bash was not found: it is neither `/bin/bash` nor on PATH; install bash to run commands",
        )
    })?;
    let mark = launch.cwd_file.display().to_string();
    // -p: no BASH_ENV, no functions or shell options from the environment.
    let flags = ["--noprofile", "--norc", "-p", "-c", WRAPPER, "bash", launch.command];
    let (program, file) = (bash.to_string_lossy(), launch.cwd_file.to_string_lossy());
    let words = [&*program].into_iter().chain(flags).chain([&*file]);
    // Whoever is to see every command gets all of it as one word, and runs it.
    let prefixed = prefixed_program(&launch.env, words);
    let args: Vec<&OsStr> = match &prefixed {
        None => flags.iter().map(OsStr::new).chain([launch.cwd_file.as_os_str()]).collect(),
        Some(line) => {
            ["--noprofile", "--norc", "-p", "-c", line.as_str()].into_iter().map(OsStr::new).collect()
        }
    };
    let own_env = [(MARK_VARIABLE, mark.as_str()), ("CLAUDECODE", "1"), ("GIT_EDITOR", "true")];
    let start = BashStart { bash: &bash, args, cwd: launch.cwd, env: launch.env, own_env };
    let watched = launch.death_watch.watch(&mark);
    let (child, helper_handle) = match launch.sandbox {
        Some(place) => start.inside(place).map(|(child, helper_handle)| (child, Some(helper_handle)))?,
        None => (start.outside()?, None),
    };
    tracing::debug!(target: "loci::process", pid = child.id(), n_bytes = launch.command.len(), "bash started");
    let tree = ProcessTree::new(child.id(), mark).watched(watched);
    let helper_handle = helper_handle.map(|it| it.of_command(launch.command));
    let sandboxed = follow(launch.sandbox, helper_handle)?;
    Ok(Running::new(child, tree, launch.cwd_file).sandboxed(sandboxed))
}

/// Bash with all that it gets.
struct BashStart<'a> {
    bash: &'a Path,
    args: Vec<&'a OsStr>,
    cwd: &'a Path,
    env: Vec<(String, String)>,
    /// Variables that are ours, whatever else is said of them.
    own_env: [(&'static str, &'a str); 3],
}

impl BashStart<'_> {
    /// Starts it in a sandbox, by the helper that was started ahead, where one was.
    fn inside(self, place: &SandboxPlace) -> io::Result<(Child, HelperHandle)> {
        let SandboxPlace { sandbox, dirs } = place;
        let env = sandbox.child_env(self.env).into_iter().map(|(name, value)| (name.into(), value.into()));
        let own_env = self.own_env.into_iter().map(|(name, value)| (name.into(), value.into()));
        let words = std::iter::once(self.bash.as_os_str()).chain(self.args);
        let start = ProgramStart {
            words: words.map(OsStr::to_owned).collect(),
            cwd: self.cwd.to_owned(),
            env: env.chain(own_env).collect(),
        };
        sandbox.start(dirs, &start)
    }

    fn outside(self) -> io::Result<Child> {
        let mut command = Command::new(self.bash);
        command.args(self.args).current_dir(self.cwd).env_clear().envs(self.env).envs(self.own_env);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        own_session(&mut command);
        command.spawn()
    }
}

/// A program about to start, in a sandbox or without one.
pub(crate) struct Confined {
    pub(crate) command: Command,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) helper_handle: Option<HelperHandle>,
}

/// Makes the command that runs a program, inside where there is a sandbox.
pub(crate) fn confine<'a>(
    place: Option<&SandboxPlace>,
    program: &OsStr,
    args: impl Iterator<Item = &'a OsStr>,
    env: Vec<(String, String)>,
) -> io::Result<Confined> {
    let Some(SandboxPlace { sandbox, dirs }) = place else {
        let mut command = Command::new(program);
        command.args(args);
        return Ok(Confined { command, env, helper_handle: None });
    };
    let (command, helper_handle) = sandbox.command(dirs, program, args)?;
    Ok(Confined { command: command.into(), env: sandbox.child_env(env), helper_handle: Some(helper_handle) })
}

/// Follows a program that was started inside. When that fails everything in the sandbox ends.
pub(crate) fn follow(
    place: Option<&SandboxPlace>,
    helper_handle: Option<HelperHandle>,
) -> io::Result<Option<SandboxRun>> {
    place.zip(helper_handle).map(|(place, helper_handle)| place.sandbox.watch(helper_handle)).transpose()
}

/// Takes the child out of our session: no terminal to ask on or to draw over, and a group of its own.
#[cfg(unix)]
pub(crate) fn own_session(command: &mut Command) {
    #[expect(unsafe_code, reason = "setsid is async-signal-safe and allocates nothing")]
    // SAFETY: between fork and exec only setsid(2) is called, which POSIX allows there.
    unsafe {
        command.pre_exec(|| rustix::process::setsid().map(|_| ()).map_err(io::Error::from));
    }
}

fn find_bash(env: &[(String, String)]) -> Option<PathBuf> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    let on_path = path.unwrap_or_default().split(':').filter(|dir| dir.starts_with('/'));
    let places = std::iter::once("/bin").chain(on_path).map(|dir| Path::new(dir).join("bash"));
    places.into_iter().find(|bash| bash.is_file())
}
