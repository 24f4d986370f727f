//! `loci demo`: the main job, done before your eyes with a scripted model. No key, no network.
//!
//! Everything but the model is real: a scratch project with a failing test, the engine, the tools, the permission
//! verdicts, the session file. The script only chooses what to ask for next, as a model would.

mod project;
mod script;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use loci_app::UserError;
use loci_app::start::SessionStart;
use loci_app::{ModelOptions, PermissionOptions, RunOptions};
use loci_engine::{Command, NewSession, Prompt};
use loci_llm::Client;
use loci_stdx::Env;

use crate::args::DemoArgs;
use crate::interactive;
use crate::permission_prompter::is_person_there;
use crate::print;
use crate::runtime;
use loci_core::permission::Mode;
use view::View;

const PROMPT: &str = "The tests fail. Find out why, fix it, and show that they pass.";
/// Between two words of the scripted model.
const PACE: Duration = Duration::from_millis(35);

/// Runs the demo and returns the exit code.
pub(crate) fn run(env: &Env, demo: &DemoArgs) -> Result<u8, UserError> {
    let started = Instant::now();
    let project = project::create(env)?;
    let env = Env { cwd: project, ..env.clone() };
    let pace = if demo.fast { Duration::ZERO } else { PACE };
    if std::io::stdin().is_terminal() && print::is_stdout_terminal() {
        return show(&env, pace, started);
    }
    let client = Client::scripted(script::answer, pace);
    let mut start = SessionStart::new(env.clone(), options(), Some(client), started).demo().unattended();
    let session = start.prepare().map_err(UserError::from)?.begin().session;
    let runtime = runtime::of_session()?;
    runtime.block_on(play(&env, session))
}

/// Plays it in the terminal interface, where the person may go on.
fn show(env: &Env, pace: Duration, started: Instant) -> Result<u8, UserError> {
    let options = RunOptions {
        is_interactive: true,
        is_long_lived: true,
        can_ask: true,
        keeps_checkpoints: true,
        ..options()
    };
    let client = Client::scripted(script::answer, pace);
    let start = SessionStart::new(env.clone(), options, Some(client), started).demo();
    let looks = interactive::ShowOptions { plain: interactive::plain_mode(env, false), is_verbose: false };
    let end = interactive::show(env, start, Some(PROMPT.to_owned()), &looks)?;
    match end.background {
        Some(_) => Err(UserError::new("The demo does not go on in the background: its model is a script")),
        None => Ok(end.code),
    }
}

/// What a user would ask for: edits may happen, and one command may run.
fn options() -> RunOptions {
    RunOptions {
        model: ModelOptions { model: Some("sonnet".to_owned()), ..ModelOptions::default() },
        permissions: PermissionOptions {
            mode: Some(Mode::AcceptEdits),
            allow: vec![project::TEST_RULE.to_owned()],
            ..PermissionOptions::default()
        },
        can_ask: is_person_there(),
        is_demo: true,
        ..RunOptions::default()
    }
}

async fn play(env: &Env, new: NewSession) -> Result<u8, UserError> {
    let NewSession { session, handle, mut events } = new;
    let mut view = View::new(env, print::own_stdout());
    let engine = tokio::spawn(session.run());
    handle.send(Command::Prompt(Prompt::text(PROMPT)));
    handle.send(Command::Close);
    let shown = async {
        view.open(PROMPT)?;
        while let Some(event) = events.recv().await {
            view.show(&event)?;
        }
        view.close()
    };
    let result = shown.await;
    engine.await.map_err(|error| UserError::new(format!("The engine failed: {error}")))?;
    match result {
        Ok(worked) => Ok(u8::from(!worked)),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(UserError::new(format!("Standard output cannot be written: {error}"))),
    }
}
