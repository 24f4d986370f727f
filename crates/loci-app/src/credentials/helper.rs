//! Running the command of `apiKeyHelper`, and others for credentials.
//!
//! What it prints is a secret and goes nowhere but into requests. What it says on standard error is thrown
//! away, since commands that trace themselves say secrets there. Commands that renew a login speak to people: see [`run_aloud`].

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use loci_core::stream::{Failure, FailureKind};
use loci_http::Secret;
use loci_llm::Announcer;
use loci_stdx::{Env, GroupGuard, own_group};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::compose::child_env::helper_env;

/// How often a command that fails is run before that is said.
const ATTEMPTS: u32 = 3;
/// The pause before the second run; the third waits twice as long.
const PAUSE: Duration = Duration::from_millis(100);
/// When the user hears why nothing happens.
const PATIENCE: Duration = Duration::from_secs(10);
/// When a command is given up.
const LIMIT: Duration = Duration::from_secs(60);
/// The most of a line that people are shown.
const LONGEST_LINE: usize = 500;
/// The most a key can be long.
const MOST_BYTES: u64 = 64 * 1024;

/// Returns the key that the command prints; whoever listens hears when it takes long.
pub(crate) async fn key(command: &str, env: &Env, announcer: &Announcer) -> Result<Secret, Failure> {
    let mut problem = String::new();
    for attempt in 1..=ATTEMPTS {
        match patiently(command, env, PATIENCE, announcer).await {
            Ok(secret) => return Ok(secret),
            Err(what) => problem = what,
        }
        if attempt < ATTEMPTS {
            tokio::time::sleep(PAUSE * attempt).await;
        }
    }
    Err(Failure::new(FailureKind::Unauthenticated, format!("`apiKeyHelper` gave no key: {problem}"))
        .with_hint("Run its command by hand; `loci config explain apiKeyHelper` says where it is set."))
}

/// Runs the command, says so when it takes long, and gives it up when it takes too long.
pub(super) async fn patiently(
    command: &str,
    env: &Env,
    patience: Duration,
    announcer: &Announcer,
) -> Result<Secret, String> {
    let mut run = Box::pin(tokio::time::timeout(LIMIT, once(command, env)));
    let outcome = match tokio::time::timeout(patience, &mut run).await {
        Ok(outcome) => outcome,
        Err(_) => {
            announcer.say("Still waiting for the command of `apiKeyHelper`");
            run.await
        }
    };
    outcome.unwrap_or_else(|_| Err(format!("the command did not end within {} s", LIMIT.as_secs())))
}

/// Returns what a command prints that gives or renews credentials; what it says on standard error is thrown away.
pub(crate) async fn output_of(command: &str, env: &Env, limit: Duration) -> Result<String, String> {
    let ended = tokio::time::timeout(limit, output(command, env)).await;
    let (status, text) =
        ended.unwrap_or_else(|_| Err(format!("the command did not end within {} s", limit.as_secs())))?;
    match status.code() {
        Some(0) => Ok(text),
        Some(code) => Err(format!("the command ended with code {code}")),
        None => Err("the command was killed".to_owned()),
    }
}

/// Runs a command that renews a login, and passes on what it says while it runs: a page to open, a code to type.
pub(crate) async fn run_aloud(
    command: &str,
    env: &Env,
    limit: Duration,
    say: impl Fn(&str),
) -> Result<(), String> {
    let ended = tokio::time::timeout(limit, aloud(command, env, say)).await;
    let status =
        ended.unwrap_or_else(|_| Err(format!("the command did not end within {} s", limit.as_secs())))?;
    match status.code() {
        Some(0) => Ok(()),
        Some(code) => Err(format!("the command ended with code {code}")),
        None => Err("the command was killed".to_owned()),
    }
}

async fn aloud(command: &str, env: &Env, say: impl Fn(&str)) -> Result<ExitStatus, String> {
    // Both streams are for people here, in the order in which they come.
    let (mut child, _group) = spawn(&format!("exec 2>&1\n{command}"), env)?;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).await.is_ok_and(|n_bytes| n_bytes > 0) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim();
            if !text.is_empty() {
                say(&loci_stdx::single_line(text, LONGEST_LINE));
            }
            line.clear();
        }
    }
    child.wait().await.map_err(|error| format!("the command cannot be waited for: {error}"))
}

async fn once(command: &str, env: &Env) -> Result<Secret, String> {
    let (status, text) = output(command, env).await?;
    secret(status, &text)
}

/// Starts a command; what it prints can be read, what it says on standard error is thrown away.
fn spawn(command: &str, env: &Env) -> Result<(Child, GroupGuard), String> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).current_dir(&env.cwd).env_clear().envs(helper_env(env));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    own_group(shell.as_std_mut());
    let child = shell.spawn().map_err(|error| format!("the command cannot be run: {error}"))?;
    tracing::debug!(target: "loci::process", pid = child.id(), "a command for credentials started");
    let group = GroupGuard::new(child.id());
    Ok((child, group))
}

async fn output(command: &str, env: &Env) -> Result<(ExitStatus, String), String> {
    let (mut child, _group) = spawn(command, env)?;
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        let read = stdout.take(MOST_BYTES).read_to_string(&mut text).await;
        read.map_err(|_| "what the command prints is not text".to_owned())?;
    }
    let status = child.wait().await.map_err(|error| format!("the command cannot be waited for: {error}"))?;
    tracing::debug!(target: "loci::process", %status, "a command for credentials ended");
    Ok((status, text))
}

fn secret(status: ExitStatus, text: &str) -> Result<Secret, String> {
    let key = text.trim();
    match status.code() {
        Some(0) if key.is_empty() => Err("the command printed nothing".to_owned()),
        Some(0) if key.contains(|c: char| c.is_control()) => {
            Err("the command printed more than one line".to_owned())
        }
        Some(0) => Ok(Secret::new(key)),
        Some(code) => Err(format!("the command ended with code {code}")),
        None => Err("the command was killed".to_owned()),
    }
}
