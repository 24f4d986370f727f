//! `loci` at a terminal: the interface in which people work.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Instant;

use loci_app::sessions::command::move_session;
use loci_app::sessions::worktree::enter_worktree;
use loci_app::start::SessionStart;
use loci_app::{RunOptions, SessionOptions, SessionSource, TraceOptions, TraceTarget, UserError};
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;
use loci_tui::app::{AppOptions, Elsewhere, FullscreenOptions, InterfaceOptions, PlainMode, RunEnd};
use loci_tui::theme::{Backdrop, ColorDepth, Theme};

use serde_json::Value;

use crate::args::{Args, DemoArgs};
use crate::demo;
use crate::detached_session;
use crate::headless::trace_options;
use crate::print::print_message;
use crate::worktree_end;

/// Runs the terminal interface and returns the exit code.
pub(crate) fn run(env: Env, args: Args, started: Instant) -> Result<u8, UserError> {
    if !std::io::stdin().is_terminal() {
        return Err(UserError::new("The interface needs a terminal: standard input is none").hint(
            "Use `loci -p \"your prompt\"` to run without one; standard input goes with the prompt then.",
        ));
    }
    args.check().map_err(UserError::new)?;
    args.foreign.tell_notices();
    let mut options = RunOptions {
        is_interactive: true,
        is_long_lived: true,
        can_ask: true,
        keeps_checkpoints: true,
        ..args.options()?
    };
    options.mcp.needs_approval = true;
    let mut env = match &args.worktree {
        Some(name) => enter_worktree(&env, &mut options, name, crate::tell_waiting)?,
        None => env,
    };
    let plain = plain_mode(&env, args.ax_screen_reader);
    // The screen is the conversation's, so nothing is traced to it.
    let trace = trace_options(&env, &args).map(|trace| match trace.to {
        TraceTarget::Stderr => TraceOptions { to: TraceTarget::Session, ..trace },
        TraceTarget::File(_) | TraceTarget::Session => trace,
    });
    let start = SessionStart::new(env.clone(), options.clone(), None, started).traced(trace);
    let looks = ShowOptions { plain, is_verbose: args.verbose };
    let mut end = show(&env, start, args.prompt, &looks)?;
    while let Some(elsewhere) = end.elsewhere.take() {
        let session = enter(&mut env, elsewhere)?;
        let options = RunOptions { session, ..options.clone() };
        let start = SessionStart::new(env.clone(), options, None, Instant::now());
        end = show(&env, start, None, &looks)?;
    }
    if let Some(run) = &end.background {
        let told = detached_session::start(&env, run)?;
        print_message(&told);
    }
    // Whoever was told to end by a signal has nobody to ask.
    if end.background.is_none() && end.code < 128 {
        worktree_end::settle(&env, &options);
    }
    match end.plays_demo {
        true => demo::run(&env, &DemoArgs { fast: false }),
        false => Ok(end.code),
    }
}

/// Goes to the directory where it goes on; returns the session that does.
fn enter(env: &mut Env, elsewhere: Elsewhere) -> Result<SessionOptions, UserError> {
    let Elsewhere { cwd, session, at, is_moved } = elsewhere;
    let id = session.as_deref().unwrap_or("ID");
    let real = cwd.canonicalize().map_err(|error| {
        UserError::new(format!("The session's directory cannot be entered: `{}`: {error}", cwd.display()))
            .hint(format!("`loci -r {id}` goes on with it here."))
    })?;
    let from = std::mem::replace(&mut env.cwd, real);
    if let Some(session) = session.as_ref().filter(|_| is_moved) {
        move_session(env, &from, session)?;
    }
    let source = session.map_or(SessionSource::New, SessionSource::Named);
    Ok(SessionOptions { source, at, ..SessionOptions::default() })
}

/// How a session is shown.
#[derive(Debug, Default)]
pub(crate) struct ShowOptions {
    /// Why everything is plain lines, where it is.
    pub(crate) plain: Option<PlainMode>,
    /// Whether everything is shown whole, whatever settings say.
    pub(crate) is_verbose: bool,
}

/// Shows a session until the person leaves it.
pub(crate) fn show(
    env: &Env,
    start: SessionStart,
    prompt: Option<String>,
    options: &ShowOptions,
) -> Result<RunEnd, UserError> {
    let early = EarlySettings::read(env);
    let env = &early.with_variables(env);
    let app = AppOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cwd: env.cwd.clone(),
        home: env.home.clone(),
        shown_cwd: abbreviate_home(&env.cwd, &env.home),
        prompt,
        plain: options.plain.clone(),
        is_verbose: options.is_verbose,
        is_still: false,
        theme: Theme::new(ColorDepth::from_env(|name| env.vars.get(name).map(str::to_owned)), Backdrop::Dark),
        fullscreen: FullscreenOptions {
            is_wanted: early.value("tui").is_some_and(|tui| tui == "fullscreen"),
            ..FullscreenOptions::from_vars(&env.vars)
        },
        ..AppOptions::default()
    };
    let app = app.with_vars(&env.vars);
    let end = loci_tui::app::run(InterfaceOptions { app, env: env.clone() }, start)
        .map_err(|error| UserError::from_error(&error))?;
    end.farewell.iter().for_each(|text| print_message(text));
    Ok(end)
}

/// Says whether everything is plain lines, and why. Settings of the person count before the first line is painted, so their
/// file is looked at here.
pub(crate) fn plain_mode(env: &Env, is_asked: bool) -> Option<PlainMode> {
    let early = EarlySettings::read(env);
    let env = &early.with_variables(env);
    let source = if is_asked {
        Some("--ax-screen-reader")
    } else if env.vars.non_empty("CLAUDE_AX_SCREEN_READER").is_some() {
        // A variable that says no wins over the setting.
        env.vars.is_truthy("CLAUDE_AX_SCREEN_READER").then_some("CLAUDE_AX_SCREEN_READER")
    } else {
        let is_set = early.value("axScreenReader") == Some(&Value::Bool(true));
        is_set.then_some("the setting axScreenReader")
    };
    let is_dumb = matches!(env.vars.get("TERM"), None | Some("" | "dumb"));
    source.map(|source| PlainMode::ScreenReader(source.to_owned())).or(is_dumb.then_some(PlainMode::Dumb))
}

/// Settings of the person's own that count before anything is painted.
struct EarlySettings(Option<Value>);

impl EarlySettings {
    /// Reads them, if any is there.
    fn read(env: &Env) -> Self {
        let file = ConfigHome::from_env(env).root().join("settings.json");
        let text = loci_stdx::read_regular_to_string(file).unwrap_or_default();
        let is_any_there = ["env", "tui", "axScreenReader"].iter().any(|key| text.contains(key));
        Self(is_any_there.then(|| serde_json::from_str(&text).ok()).flatten())
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }

    /// Returns the environment with what they say under `env` of the interface. What else they say there, and what other
    /// settings do, is in force once the session is composed. What the terminal is, and whether it has colours, is not theirs to
    /// say: such variables reach children alone.
    fn with_variables(&self, env: &Env) -> Env {
        let set = self.value("env").and_then(Value::as_object).into_iter().flatten();
        // The file itself was found by CLAUDE_CONFIG_DIR.
        let is_ours = |name: &str| {
            (name.starts_with("CLAUDE_") && name != "CLAUDE_CONFIG_DIR")
                || ["EDITOR", "VISUAL", "FORCE_HYPERLINK"].contains(&name)
        };
        let ours =
            set.filter_map(|(name, value)| Some((name, value.as_str()?))).filter(|(name, _)| is_ours(name));
        let vars = ours.fold(env.vars.clone(), |vars, (name, value)| vars.with(name, value));
        Env { vars, ..env.clone() }
    }
}

/// Returns a directory as people write it.
fn abbreviate_home(dir: &Path, home: &Path) -> String {
    match dir.strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => dir.display().to_string(),
    }
}
