//! `loci demo`: the main job, done before your eyes with a scripted model. No key, no network.
//!
//! Everything but the model is real: a scratch project with a failing test, the engine, the tools, the permission
//! verdicts, the session file. The script only chooses what to ask for next, as a model would.

mod project;
mod script;
mod view;

use std::time::{Duration, Instant};

use clap::Parser;
use loci_engine::{Command, EngineEvent, Prompt, Session};
use loci_llm::Client;
use loci_stdx::Env;
use loci_storage::ConfigHome;

use crate::args::{Args, DemoArgs};
use crate::complaint::Complaint;
use crate::compose::{Background, compose};
use crate::settings::Configured;
use crate::{past, runtime};
use view::View;

const PROMPT: &str = "The tests fail. Find out why, fix it, and show that they pass.";
/// Between two words of the scripted model.
const PACE: Duration = Duration::from_millis(35);

/// Runs the demo and returns the exit code.
pub(crate) fn run(env: &Env, demo: &DemoArgs) -> Result<u8, Complaint> {
    let started = Instant::now();
    let project = project::create(env)?;
    let env = Env { cwd: project, ..env.clone() };
    let home = ConfigHome::from_env(&env);
    let args = arguments()?;
    let background = Background::start(&env, &home, &args, Configured::none(&env));
    let start = past::find(&env, &home, &args)?;
    let pace = if demo.fast { Duration::ZERO } else { PACE };
    let client = Client::scripted(script::answer, pace);
    let composed = compose(&env, &home, &args, start, background, Some(client), started)?;
    let runtime = runtime::of_session()?;
    runtime.block_on(play(&env, Session::new(composed.config)))
}

/// The flags a user would give for this: edits may happen, and one command may run.
fn arguments() -> Result<Args, Complaint> {
    let flags = ["loci", "-p", PROMPT, "--permission-mode", "acceptEdits", "--model", "sonnet"];
    let allowed = ["--allowedTools", project::TEST_RULE];
    Args::try_parse_from(flags.into_iter().chain(allowed)).map_err(|error| Complaint::new(error.to_string()))
}

type Parts = (Session, loci_engine::SessionHandle, tokio::sync::mpsc::UnboundedReceiver<EngineEvent>);

async fn play(env: &Env, (session, handle, mut events): Parts) -> Result<u8, Complaint> {
    let mut view = View::new(env, std::io::stdout());
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
    engine.await.map_err(|error| Complaint::new(format!("The engine failed: {error}")))?;
    match result {
        Ok(worked) => Ok(u8::from(!worked)),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(0),
        Err(error) => Err(Complaint::new(format!("Standard output cannot be written: {error}"))),
    }
}
