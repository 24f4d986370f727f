//! A session that goes on without its terminal (`/background`).
//!
//! The interface is left as at any other end: the turn is interrupted, the transcript is whole, the lease is given back.
//! Then the program is started once more with the arguments that it had, so that every restriction of theirs holds, and with
//! one before them that says which session goes on and with what. That process leaves the terminal and runs as `-p` does:
//! what would ask somebody is refused. What it says goes to a private file; the session is resumed as any other.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loci_app::UserError;
use loci_core::permission::Mode;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_tui::app::BackgroundRun;
use loci_tui::terminal::leave_terminal;
use serde_json::{Value, json};

use crate::args::Args;

/// How long the new process is watched: what is wrong with its arguments shows at once.
const WATCHED: Duration = Duration::from_millis(500);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Starts the process; returns what the person is told.
pub(crate) fn start(env: &Env, run: &BackgroundRun) -> Result<String, UserError> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        UserError::new(format!("The session does not go on in the background: {what}: {error}"))
            .hint(format!("`loci -r {}` goes on with it here.", run.session))
    };
    let log = log_file(env, &run.session);
    let file = open_log(&log).map_err(|error| failed(&format!("`{}`", log.display()), &error))?;
    let errors = file.try_clone().map_err(|error| failed("its log", &error))?;
    let program = std::env::current_exe().map_err(|error| failed("the program", &error))?;
    let mut command = Command::new(program);
    command.arg("--go-on-in-background").arg(to_json(run).to_string()).args(earlier_arguments());
    command.current_dir(&env.cwd).stdin(Stdio::null()).stdout(file).stderr(errors);
    let mut child = command.spawn().map_err(|error| failed("it could not be started", &error))?;
    let deadline = Instant::now() + WATCHED;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                return Err(failed("it ended at once", &said.trim()));
            }
            // It is done already, or nobody knows.
            Ok(Some(_)) | Err(_) => break,
            Ok(None) => std::thread::sleep(LOOK),
        }
    }
    Ok(format!(
        "The session goes on in the background as process {}. What it says at the end will be in {}; `loci -r {}` shows it all, \
         and takes it over while it still runs.",
        child.id(),
        log.display(),
        run.session
    ))
}

/// Has the arguments mean the session that goes on, and leaves the terminal.
pub(crate) fn enter(args: &mut Args, said: &str) -> Result<(), UserError> {
    let run = from_json(said)
        .ok_or_else(|| UserError::new("--go-on-in-background is for `/background` of the interface alone"))?;
    leave_terminal().map_err(|error| UserError::new(format!("The terminal cannot be left: {error}")))?;
    args.print = true;
    // Whoever was at the terminal has been asked.
    args.client.allow_unknown_settings = true;
    args.prompt = Some(run.prompt);
    args.permission_mode = Some(run.mode);
    args.model = Some(run.model).filter(|model| !model.is_empty()).or(args.model.take());
    // It is where the interface was, also if that was a worktree.
    args.worktree = None;
    let session = Some(run.session);
    (args.session_id, args.resume) = if run.is_new { (session, None) } else { (None, session) };
    args.resume_session_at = None;
    (args.continue_newest, args.fork_session) = (false, false);
    (args.init, args.maintenance) = (false, false);
    Ok(())
}

/// The arguments that this process was started with.
fn earlier_arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().skip(1)
}

fn log_file(env: &Env, session: &str) -> PathBuf {
    ConfigHome::from_env(env).root().join("loci/background").join(format!("{session}.log"))
}

fn open_log(file: &Path) -> std::io::Result<File> {
    if let Some(dir) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(file)
}

fn to_json(run: &BackgroundRun) -> Value {
    json!({
        "session": run.session,
        "isNew": run.is_new,
        "prompt": run.prompt,
        "mode": run.mode.as_str(),
        "model": run.model,
    })
}

fn from_json(said: &str) -> Option<BackgroundRun> {
    let said: Value = serde_json::from_str(said).ok()?;
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    let mode: Mode = said["mode"].as_str()?.parse().ok()?;
    let (session, prompt, model) = (text("session")?, text("prompt")?, text("model")?);
    Some(BackgroundRun { session, is_new: said["isNew"].as_bool()?, prompt, mode, model })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_read_as_it_was_written_and_nothing_else_is() {
        let run = BackgroundRun {
            session: "0-1".to_owned(),
            is_new: true,
            prompt: "do \"it\"\nnow".to_owned(),
            mode: Mode::Plan,
            model: "m".to_owned(),
        };
        assert_eq!(from_json(&to_json(&run).to_string()), Some(run));
        for odd in ["", "{}", "[]", r#"{"session": "a", "prompt": "b", "mode": "no such", "model": ""}"#] {
            assert_eq!(from_json(odd), None, "{odd}");
        }
    }
}
