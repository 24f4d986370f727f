//! The sandbox of a session: what of its policy stays the same, and how commands start in it.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use loci_core::sandbox_status::{SandboxLevel as Level, SandboxStatus};
use tokio::process::Child;
use tokio::task::JoinHandle;

use crate::control::ProxyPort;
use crate::egress::Egress;
use crate::launch::{Connections, HelperHandle, SandboxRun, launch};
use crate::plan::{RealDisk, is_placeholder};
use crate::policy::{FileRules, Layers, Network, PathSettings, Policy, Preparation, SessionPlaces};
use crate::program_start::ProgramStart;
use crate::refusals::{CallRules, Printed, refused_paths};
use crate::standby::Standby;

/// What a session starts commands in.
#[derive(Clone)]
pub struct Sandbox {
    /// The program that is the helper.
    pub helper: PathBuf,
    /// How well it holds.
    pub level: Level,
    /// Its layers.
    pub layers: Layers,
    /// The `$TMPDIR` of commands; it is made when the first one starts.
    pub scratch: PathBuf,
    /// The user's home.
    pub home: PathBuf,
    /// Where settings and sessions are kept.
    pub config_home: PathBuf,
    /// What settings say of paths; none where files are not sandboxed.
    pub paths: Option<PathSettings>,
    /// Whether commands may open Unix sockets.
    pub allows_unix_sockets: bool,
    /// Whether a call may ask to run outside.
    pub allows_unsandboxed: bool,
    /// Variables that commands do not get.
    pub hidden_env: Vec<String>,
    /// The proxy that decides about hosts, where it is ours.
    pub egress: Option<Arc<Egress>>,
    /// Takes connections to the network, where commands may have any.
    pub connections: Option<Connections>,
    /// The helper that waits for the next command.
    pub standby: Standby,
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { level, layers, scratch, paths, .. } = self;
        f.debug_struct("Sandbox")
            .field("level", level)
            .field("layers", layers)
            .field("scratch", scratch)
            .field("paths", paths)
            .finish_non_exhaustive()
    }
}

impl Sandbox {
    /// Returns the policy for a session with these directories, the first of which it started in.
    pub fn policy(&self, dirs: &[PathBuf]) -> Policy {
        let files = self.paths.as_ref().map(|paths| {
            let places = SessionPlaces {
                dirs: dirs.to_vec(),
                scratch: self.scratch.clone(),
                git_dirs: dirs.iter().flat_map(|dir| git_dirs(dir)).collect(),
                home: self.home.clone(),
                config_home: self.config_home.clone(),
            };
            FileRules::new(&places, paths)
        });
        let Preparation { layers, network, allows_unix_sockets, fault, has_files: _ } = self.preparation();
        Policy { layers, files, network, allows_unix_sockets, fault }
    }

    /// Returns what the policies of all commands have in common.
    fn preparation(&self) -> Preparation {
        Preparation {
            layers: self.layers,
            has_files: self.paths.is_some(),
            network: if self.has_network() { Network::Proxy } else { Network::Closed },
            allows_unix_sockets: self.allows_unix_sockets,
            fault: None,
        }
    }

    /// Returns how it stands now.
    pub fn status(&self) -> SandboxStatus {
        let egress = self.egress.as_ref().filter(|_| self.has_network());
        let n_hosts = egress.map_or(0, |egress| egress.n_allowed());
        SandboxStatus { level: self.level, n_hosts, allows_unsandboxed: self.allows_unsandboxed }
    }

    /// Returns true when commands can reach anything at all.
    pub fn has_network(&self) -> bool {
        self.connections.is_some() && self.layers.has_mounts()
    }

    /// Returns the environment of a command: without what is hidden, with what leads to the scratch directory and the
    /// proxy. Where files are not sandboxed every temporary directory can be written, and the user's own is kept.
    pub fn child_env(&self, env: Vec<(String, String)>) -> Vec<(String, String)> {
        let mut added = vec![("SANDBOX_RUNTIME".to_owned(), "1".to_owned())];
        if self.paths.is_some() {
            added.push(("TMPDIR".to_owned(), self.scratch.display().to_string()));
        }
        if self.has_network() {
            added.extend(proxy_variables());
            let is_said = |name: &str| env.iter().any(|(it, _)| it == name);
            if !is_said("GIT_SSH_COMMAND") && !is_said("GIT_SSH") {
                added.extend(ssh_command().map(|command| ("GIT_SSH_COMMAND".to_owned(), command)));
            }
        }
        let is_kept = |name: &str| {
            !self.hidden_env.iter().any(|hidden| hidden == name) && !added.iter().any(|(it, _)| it == name)
        };
        let mut env: Vec<_> = env.into_iter().filter(|(name, _)| is_kept(name)).collect();
        env.extend(added);
        env
    }

    /// Makes the command that runs a program inside; the scratch directory exists then.
    pub fn command<S: AsRef<OsStr>>(
        &self,
        dirs: &[PathBuf],
        program: &OsStr,
        args: impl IntoIterator<Item = S>,
    ) -> io::Result<(Command, HelperHandle)> {
        self.make_scratch()?;
        launch(&self.helper, &self.policy(dirs), program, args)
    }

    /// Starts a program inside by the helper that waits, where one does; the scratch directory exists then. Its input is
    /// empty, its output goes to pipes, and it has a session of its own.
    pub fn start(&self, dirs: &[PathBuf], start: &ProgramStart) -> io::Result<(Child, HelperHandle)> {
        self.make_scratch()?;
        self.standby.start(&self.helper, &self.policy(dirs), start)
    }

    /// Has a helper wait for the next command, where none does. It is started beside the caller, who need not wait for it.
    pub fn prepare_next(&self) -> JoinHandle<()> {
        let (standby, helper, ahead) = (self.standby.clone(), self.helper.clone(), self.preparation());
        tokio::task::spawn_blocking(move || standby.prepare(&helper, &ahead))
    }

    /// Makes the scratch directory, for the user alone, and returns it.
    pub fn make_scratch(&self) -> io::Result<PathBuf> {
        make_private_dir(&self.scratch)?;
        Ok(self.scratch.clone())
    }

    /// Returns what a command may have been refused, in words, guessed from what it printed: paths first.
    pub fn refusals(&self, dirs: &[PathBuf], printed: Printed<'_>) -> Vec<String> {
        let mut words = self.refused_paths(dirs, printed);
        words.extend(printed.refused_calls(CallRules {
            allows_unix_sockets: self.allows_unix_sockets,
            has_own_loopback: self.layers.has_mounts(),
        }));
        words
    }

    fn refused_paths(&self, dirs: &[PathBuf], printed: Printed<'_>) -> Vec<String> {
        if !printed.may_tell_of_paths() {
            return Vec::new();
        }
        let files = self.policy(dirs).files;
        let found = files.zip(self.paths.as_ref());
        found
            .map(|(files, paths)| refused_paths(printed, &self.home, &files, paths, &RealDisk::default()))
            .unwrap_or_default()
    }

    /// Follows a program that was started inside.
    pub fn watch(&self, helper_handle: HelperHandle) -> io::Result<SandboxRun> {
        helper_handle.watch(self.connections.clone())
    }
}

fn make_private_dir(dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// Returns how git is to call ssh, which knows no proxy: by way of this program. None where its path cannot be quoted.
fn ssh_command() -> Option<String> {
    let own = std::fs::read_link(crate::own_helper()).ok().filter(|it| it.is_file())?;
    let own = own.to_str().filter(|it| !it.contains(['\'', '"', '%', '\\', '$', '`']))?;
    Some(format!("ssh -o 'ProxyCommand=\"{own}\" sandbox connect %h %p'"))
}

/// Returns the variables that lead programs to the proxy.
fn proxy_variables() -> Vec<(String, String)> {
    let http = format!("http://127.0.0.1:{}", ProxyPort::Http.number());
    let socks = format!("socks5h://127.0.0.1:{}", ProxyPort::Socks.number());
    let own = "localhost,127.0.0.1,::1".to_owned();
    let pairs = [("HTTP_PROXY", &http), ("HTTPS_PROXY", &http), ("ALL_PROXY", &socks), ("NO_PROXY", &own)];
    let both = pairs.into_iter().flat_map(|(name, value)| {
        [(name.to_owned(), value.clone()), (name.to_ascii_lowercase(), value.clone())]
    });
    both.collect()
}

/// Returns the directories of git that a directory uses although they lie outside it: the shared one of a linked worktree
/// (SB-5), or that of the repository around it.
///
/// A repository's own words are not believed: a worktree counts only where the other side points back.
pub fn git_dirs(dir: &Path) -> Vec<PathBuf> {
    let dot_git = dir.join(".git");
    match std::fs::symlink_metadata(&dot_git) {
        Ok(found) if found.is_file() => linked_git_dir(&dot_git).into_iter().collect(),
        Ok(found) if !is_placeholder(&found) => Vec::new(),
        _ => {
            let around = dir.ancestors().skip(1).map(|it| it.join(".git"));
            let is_dir = |path: &PathBuf| path.symlink_metadata().is_ok_and(|it| it.is_dir());
            around.into_iter().find(is_dir).into_iter().collect()
        }
    }
}

fn linked_git_dir(dot_git: &Path) -> Option<PathBuf> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let text = read(dot_git)?;
    let own = dot_git.parent()?.join(text.strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let back = PathBuf::from(read(&own.join("gitdir"))?.trim());
    if own.join(back).canonicalize().ok()? != dot_git.canonicalize().ok()? {
        return None;
    }
    let shared = own.join(read(&own.join("commondir"))?.trim()).canonicalize().ok()?;
    (shared.is_dir() && own.starts_with(&shared)).then_some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sandbox(paths: Option<PathSettings>) -> Sandbox {
        Sandbox {
            helper: PathBuf::new(),
            level: Level::Full,
            layers: Layers::FULL,
            scratch: "/tmp/s".into(),
            home: "/home/a".into(),
            config_home: "/home/a/.claude".into(),
            paths,
            allows_unix_sockets: false,
            allows_unsandboxed: true,
            hidden_env: vec!["TOKEN".to_owned()],
            egress: None,
            connections: None,
            standby: Standby::default(),
        }
    }

    #[test]
    fn temporary_directory_is_the_session_s_unless_files_are_not_sandboxed() {
        let env = [("TMPDIR", "/mine"), ("TOKEN", "x"), ("A", "1")];
        for (paths, expected) in [(Some(PathSettings::default()), "/tmp/s"), (None, "/mine")] {
            let env = env.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
            let env = sandbox(paths).child_env(env);
            let values = |name: &str| -> Vec<&str> {
                env.iter().filter(|(it, _)| it == name).map(|(_, value)| value.as_str()).collect()
            };
            assert_eq!(values("TMPDIR"), [expected]);
            assert_eq!(
                (values("TOKEN"), values("A"), values("SANDBOX_RUNTIME")),
                (vec![], vec!["1"], vec!["1"])
            );
        }
    }
}
