//! `loci` at a terminal: the interface in which people work.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Instant;

use loci_app::start::SessionStart;
use loci_app::worktree::enter_worktree;
use loci_app::{RunOptions, SessionOptions, SessionSource, TraceOptions, TraceTarget, UserError};
use loci_stdx::Env;
use loci_tui::app::{AppOptions, InterfaceOptions, RunEnd};
use loci_tui::theme::{Background, ColorDepth, Theme};

use crate::args::{Args, DemoArgs};
use crate::demo;
use crate::headless::trace_options;

/// Runs the terminal interface and returns the exit code.
pub(crate) fn run(env: Env, args: Args, started: Instant) -> Result<u8, UserError> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(UserError::new("The interface needs a terminal: standard input or output is none")
            .hint("Use `loci -p \"your prompt\"` to run without one."));
    }
    args.check().map_err(UserError::new)?;
    let mut options = RunOptions {
        is_interactive: true,
        is_long_lived: true,
        can_ask: true,
        keeps_checkpoints: true,
        ..args.options()?
    };
    options.mcp.needs_approval = true;
    let mut env = match &args.worktree {
        Some(name) => enter_worktree(&env, &options, name)?,
        None => env,
    };
    // The screen is the conversation's, so nothing is traced to it.
    let trace = trace_options(&env, &args).map(|trace| match trace.to {
        TraceTarget::Stderr => TraceOptions { to: TraceTarget::Session, ..trace },
        TraceTarget::File(_) | TraceTarget::Session => trace,
    });
    let start = SessionStart::new(env.clone(), options.clone(), None, started).traced(trace);
    let mut end = show(&env, start, args.prompt)?;
    while let Some((cwd, session)) = end.elsewhere.take() {
        env.cwd = cwd.canonicalize().map_err(|error| {
            UserError::new(format!("The session's directory cannot be entered: `{}`: {error}", cwd.display()))
                .hint(format!("`loci -r {session}` goes on with it here."))
        })?;
        let session = SessionOptions { source: SessionSource::Named(session), ..SessionOptions::default() };
        let options = RunOptions { session, ..options.clone() };
        end = show(&env, SessionStart::new(env.clone(), options, None, Instant::now()), None)?;
    }
    match end.plays_demo {
        true => demo::run(&env, &DemoArgs { fast: false }),
        false => Ok(end.code),
    }
}

/// Shows a session until the person leaves it.
pub(crate) fn show(env: &Env, start: SessionStart, prompt: Option<String>) -> Result<RunEnd, UserError> {
    let app = AppOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cwd: env.cwd.clone(),
        home: env.home.clone(),
        shown_cwd: shown_dir(&env.cwd, &env.home),
        prompt,
        is_still: false,
        theme: Theme::new(
            ColorDepth::from_env(|name| env.vars.get(name).map(str::to_owned)),
            Background::Dark,
        ),
    };
    let end = loci_tui::app::run(InterfaceOptions { app, env: env.clone() }, start)
        .map_err(|error| UserError::from_error(&error))?;
    let mut stderr = std::io::stderr();
    for text in &end.farewell {
        // Nobody is left to tell when stderr is gone.
        drop(writeln!(stderr, "{}", loci_stdx::printable(text)));
    }
    Ok(end)
}

/// Returns a directory as people write it.
fn shown_dir(dir: &Path, home: &Path) -> String {
    match dir.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => dir.display().to_string(),
    }
}
