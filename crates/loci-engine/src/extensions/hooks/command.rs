//! Handlers that are commands: a shell line, or a program with its arguments.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use loci_core::hooks::{Handler, HandlerEnd, HookEntry, HookEvent, HookInput, Shell};
use loci_stdx::prefixed_command;
use loci_tools::{ChildEnd, ChildLimits, ChildOutput, ChildSpec, OnOutput, SandboxPlace, run_told_child};
use tokio_util::sync::CancellationToken;

use super::HookService;
use super::turn::LONGEST_END;
use crate::conversation::host::lock;

/// How much of each output of a command is kept.
const OUTPUT_BYTES: usize = 1 << 20;

impl HookService {
    /// Runs a command to its end.
    pub(super) async fn run_command(
        &self,
        entry: &HookEntry,
        input: &HookInput,
        json: Arc<str>,
        (command, args, shell): (&str, Option<&[String]>, Shell),
        cancel: &CancellationToken,
        on_output: OnOutput<'_>,
    ) -> HandlerEnd {
        let root = self.world().identity.get().project_root().display().to_string();
        // A shell fills variables in by itself: the name of a directory must never be read as code.
        let filled = |text: &str| text.replace("${CLAUDE_PROJECT_DIR}", &root);
        let env = self.command_env(entry, input, &root);
        let prefixed = || prefixed_command(&env, command).unwrap_or_else(|| command.to_owned());
        let (program, args) = match (args, shell) {
            (Some(args), _) => (filled(command), args.iter().map(|arg| filled(arg)).collect()),
            (None, Shell::Sh) => ("/bin/sh".to_owned(), vec!["-c".to_owned(), prefixed()]),
            (None, Shell::Bash) => ("bash".to_owned(), vec!["-c".to_owned(), prefixed()]),
            (None, Shell::PowerShell) => {
                ("pwsh".to_owned(), ["-NoProfile", "-Command", command].map(str::to_owned).to_vec())
            }
        };
        let sandbox = match self.sandbox_of(entry, &input.common.cwd) {
            Ok(sandbox) => sandbox,
            Err(why) => return HandlerEnd::Failed(why),
        };
        let limit = match entry.event {
            HookEvent::SessionEnd => entry.time_limit().min(LONGEST_END),
            _ => entry.time_limit(),
        };
        let mut stdin = json.as_bytes().to_vec();
        stdin.push(b'\n');
        let spec = ChildSpec {
            program,
            args,
            cwd: input.common.cwd.clone(),
            env,
            stdin,
            // Short: the shell that watches reads it letter by letter.
            mark: format!("hook-{}", lock(&self.world().ambient).env.random.alphanumeric(16)),
            death_watch: self.inner.death_watch.clone(),
            sandbox,
        };
        let limits = ChildLimits { time: limit, n_bytes: OUTPUT_BYTES };
        end_of(run_told_child(spec, limits, cancel, Some(on_output)).await)
    }

    /// Makes the sandbox that a command asks for; without it the command is not run.
    fn sandbox_of(&self, entry: &HookEntry, cwd: &Path) -> Result<Option<SandboxPlace>, String> {
        let Handler::Command { sandbox: Some(profile), .. } = &entry.handler else { return Ok(None) };
        let make = self.world().sandbox_maker.as_ref();
        let make = make.ok_or("it asks for a sandbox, which cannot be had here; it was not run")?;
        let sandbox = make(profile, cwd).map_err(|why| format!("{why}; it was not run"))?;
        // Its profile says what it may write; no directory is writable for being the session's.
        Ok(Some(SandboxPlace { sandbox, dirs: Vec::new() }))
    }

    /// Returns the environment of commands: that of the shell, without where telemetry goes, with what hooks are told.
    fn command_env(&self, entry: &HookEntry, input: &HookInput, root: &str) -> Vec<(String, String)> {
        let inherited = lock(&self.world().ambient).child_env.clone();
        let mut env: Vec<(String, String)> =
            inherited.into_iter().filter(|(name, _)| !name.starts_with("OTEL_")).collect();
        let mut set = |name: &str, value: &str| env.push((name.to_owned(), value.to_owned()));
        set("CLAUDE_PROJECT_DIR", root);
        set("CLAUDECODE", "1");
        set("CLAUDE_CODE_SESSION_ID", &input.common.session_id);
        set("CLAUDE_CODE_CHILD_SESSION", "1");
        set("CLAUDE_PID", &std::process::id().to_string());
        if let Some(effort) = &input.common.effort {
            set("CLAUDE_EFFORT", &effort.level);
        }
        if let Some(file) = self.env_file(input.event.event()) {
            set("CLAUDE_ENV_FILE", &file.display().to_string());
        }
        for (name, value) in entry.vars.iter() {
            set(name, value);
        }
        env
    }

    /// Returns the file in which a command may leave variables for later ones, where its event has one: a file each.
    fn env_file(&self, event: HookEvent) -> Option<PathBuf> {
        use HookEvent::{CwdChanged, FileChanged, SessionStart, Setup};
        if !matches!(event, SessionStart | Setup | CwdChanged | FileChanged) {
            return None;
        }
        let (world, identity) = (self.world(), self.world().identity.get());
        let dir = world.home.root().join("session-env").join(identity.id().as_str());
        loci_stdx::create_private_dir_all(&dir).ok()?;
        let n = self.inner.n_env_files.fetch_add(1, Ordering::Relaxed);
        let file = dir.join(format!("{}-hook-{n}.sh", event.name().to_lowercase()));
        std::fs::write(&file, "").ok()?;
        world.env_dir.get_or_init(|| dir);
        Some(file)
    }
}

fn end_of(output: ChildOutput) -> HandlerEnd {
    let ChildOutput { end, stdout, stderr, is_cut } = output;
    match end {
        ChildEnd::Exited(code) if code != 2 && is_cut && stdout.trim_start().starts_with('{') => {
            HandlerEnd::Failed(format!("it printed more than {} KiB, which is not read", OUTPUT_BYTES / 1024))
        }
        ChildEnd::Exited(code) => HandlerEnd::Exited { code, stdout, stderr },
        ChildEnd::TimedOut => HandlerEnd::TimedOut { blocks: false },
        ChildEnd::Cancelled => HandlerEnd::Cancelled,
        ChildEnd::Failed(error) => HandlerEnd::Failed(format!("it could not be run: {error}")),
    }
}
