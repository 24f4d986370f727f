//! What ends the commands of a session that is killed outright, and so cannot end them itself.
//!
//! A small shell beside the session holds the reading end of a pipe whose other end is the session's alone. It is told
//! of each command before it starts, by its mark alone: whoever is killed between the start and the next line would
//! leave it behind otherwise. Then it is told the process, and the end; when the pipe ends, so has the session, and it
//! kills what is still on its list: the command's group, and on Linux whatever else has its mark in the environment, in a
//! session of its own too.
//!
//! What else runs beside a session, such as MCP servers, is put on a list in the same way.
//!
//! It starts with the first command. The system's own signal at a parent's death would reach the shell of a command and
//! nothing that this has started, and comes when the *thread* ends that started it, which is none of ours to keep.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use super::process_tree::MARK_VARIABLE;

/// Reads `+ pid mark` and `- pid mark`, a line each; at the end of its input it kills what is left. The number is 0 for a
/// command that is about to start; one that was forked and is no program yet has its mark a moment later, hence the rounds.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT
set -f
nl='
'
left=
while IFS=' ' read -r verb pid mark; do
    case $verb in
        +) left=$left$pid' '$mark$nl ;;
        -)
            kept=
            IFS=$nl
            for entry in $left; do
                [ "$entry" = "$pid $mark" ] || kept=$kept$entry$nl
            done
            left=$kept
            ;;
    esac
done
IFS=$nl
for entry in $left; do
    pid=${entry%% *} mark=${entry#* }
    if [ ! -d /proc/self ] || ! command -v grep >/dev/null; then
        [ "$pid" = 0 ] || kill -KILL -- "-$pid"
        continue
    fi
    for round in 1 2 3; do
        [ "$round" = 1 ] || sleep 0.1
        set +f
        for dir in /proc/[0-9]*; do
            grep -qzxF -e "$1=$mark" "$dir/environ" || continue
            [ "$dir" = "/proc/$pid" ] && kill -KILL -- "-$pid"
            kill -KILL "${dir#/proc/}"
        done
        set -f
    done
done 2>/dev/null
"#;

/// Ends the commands of a session, or its hooks, should it be killed. Copies are the same watch.
#[derive(Debug, Clone, Default)]
pub struct DeathWatch {
    /// Guards the watching shell; held while a line is written to it.
    shell: Arc<Mutex<Option<Child>>>,
}

impl DeathWatch {
    /// Puts a command that is about to start on the list; it is taken off when what is returned is dropped.
    ///
    /// Without a shell to watch it the command runs all the same: it ends with the session in every other way.
    pub fn watch(&self, mark: &str) -> WatchedCommand {
        let mut watched = WatchedCommand { watch: self.clone(), mark: mark.to_owned(), entries: Vec::new() };
        if !mark.contains('\n') {
            watched.add(0);
        }
        watched
    }

    /// Tells the shell something, whole lines at once: each write wakes it.
    fn write(&self, lines: &str) -> io::Result<()> {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        if shell.is_none() {
            *shell = Some(start()?);
        }
        let pipe = shell.as_mut().and_then(|shell| shell.stdin.as_mut());
        let written = match pipe {
            Some(pipe) => pipe.write_all(lines.as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        if written.is_err() {
            // It is gone; the next command gets another.
            *shell = None;
        }
        written
    }
}

/// A command that is killed should the session be.
#[derive(Debug)]
pub struct WatchedCommand {
    watch: DeathWatch,
    mark: String,
    /// What is on the list.
    entries: Vec<String>,
}

impl WatchedCommand {
    /// Tells the process of the command, which was put on the list before it had one.
    pub fn started(&mut self, pid: u32) {
        if !self.entries.is_empty() {
            self.add(pid);
        }
    }

    fn add(&mut self, pid: u32) {
        let entry = format!("{pid} {}\n", self.mark);
        match self.watch.write(&format!("+ {entry}")) {
            Ok(()) => self.entries.push(entry),
            Err(error) => tracing::debug!(target: "loci::process", %error, "a command is not watched"),
        }
    }
}

impl Drop for WatchedCommand {
    fn drop(&mut self) {
        let lines: String = self.entries.iter().map(|entry| format!("- {entry}")).collect();
        if let Err(error) = if lines.is_empty() { Ok(()) } else { self.watch.write(&lines) } {
            tracing::debug!(target: "loci::process", %error, "a command that ended is still on the list");
        }
    }
}

/// Starts the shell in a group of its own, where no terminal's signal reaches it.
fn start() -> io::Result<Child> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT, "loci-death-watch", MARK_VARIABLE]);
    command.env_clear().env("PATH", "/usr/bin:/bin").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    loci_stdx::own_group(&mut command).spawn()
}
