//! The loci binary: arguments, environment, wiring, exit codes.
//!
//! Execution enters here. Under the name `loci-sandbox` this is the helper of the sandbox; `--version` touches nothing. Everything else parses its arguments, builds the one
//! [`Env`](loci_stdx::Env), and hands both to a command.

mod acp;
mod agents;
mod args;
mod auth;
mod blame;
mod build_info;
mod completions;
mod config;
mod context;
mod demo;
mod detached_session;
mod doctor;
mod headless;
mod hooks;
mod interactive;
mod login;
mod man;
mod mcp;
mod memory;
mod models;
mod options;
mod panics;
mod parse_time;
mod permission_prompter;
mod permissions;
mod plugin;
mod print;
mod progress_bar;
mod runtime;
mod sandbox;
mod serve;
mod sessions;
mod skills;
mod stats;
mod worktree_end;

use std::process::ExitCode;

use loci_app::{COMPATIBLE_VERSION, UserError};
use loci_storage::config::SkillsPrefetch;

use args::{Args, CommandLine, Subcommand};

fn main() -> ExitCode {
    let started = std::time::Instant::now();
    // Before anything else: the helper has one thread, and its time is added to every command.
    let mut names = std::env::args_os();
    if names.next().is_some_and(|name| loci_sandbox::is_helper(&name)) {
        return ExitCode::from(loci_sandbox::run_helper(names));
    }
    let line = mcp::in_order(std::env::args_os().collect());
    if let [_, only] = &*line
        && matches!(only.to_str(), Some("--version" | "-v" | "-V"))
    {
        return say_version();
    }
    let first = line.get(1).and_then(|word| word.to_str());
    if let Err(error) = args::refuse_foreign_verb(first).and_then(|()| args::refuse_mistyped_verb(&line)) {
        return fail(&error);
    }
    let env = loci_stdx::Env::from_process();
    // What a run without a terminal will need is read while its arguments are.
    let skills = env.as_ref().ok().and_then(|env| headless::begin_skills(&line, env));
    let (mut args, subcommand) = match CommandLine::read(&line) {
        Ok(read) => read,
        Err(error) => return refuse(&error),
    };
    if let Some(said) = args.go_on_in_background.take()
        && let Err(error) = detached_session::enter(&mut args, &said)
    {
        return fail(&error);
    }
    let env = env.map_err(|error| {
        UserError::new(format!("The working directory cannot be read: {error}"))
            .hint("Change to a directory that exists and try again.")
    });
    panics::install();
    // Where it cannot be had, a limit on the size of files ends the process, as it ends others.
    drop(loci_stdx::survive_file_size_limit());
    let work = || env.and_then(|env| run(env, args, subcommand, Early { started, skills }));
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(code)) => ExitCode::from(code),
        Ok(Err(error)) => fail(&error),
        Err(panic) if panics::is_of_scarcity(&*panic) => fail(&panics::scarcity("The run broke off")),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// What began before the arguments were read.
struct Early {
    started: std::time::Instant,
    /// The reading of the user's skills.
    skills: Option<SkillsPrefetch>,
}

fn run(
    env: loci_stdx::Env,
    mut args: Args,
    subcommand: Option<Subcommand>,
    early: Early,
) -> Result<u8, UserError> {
    let Early { started, skills } = early;
    args.client.safe_mode |= env.vars.is_truthy("CLAUDE_CODE_SAFE_MODE");
    // What goes into a file or a pipe is read by a program: `loci "why?" > answer.txt` is a run as with `-p`.
    args.print |= !print::is_stdout_terminal();
    match &subcommand {
        Some(Subcommand::Acp(acp)) => acp::run(env, acp),
        Some(Subcommand::Agents(agents)) => agents::run(&env, agents),
        Some(Subcommand::Auth(auth)) => auth::run(&env, auth),
        Some(Subcommand::Blame(blame)) => blame::run(&env, blame),
        Some(Subcommand::Demo(demo)) => demo::run(&env, demo),
        Some(Subcommand::Completions(completions)) => completions::run(completions),
        Some(Subcommand::Config(config)) => config::run(&env, config),
        Some(Subcommand::Context(context)) => context::run(&env, context),
        Some(Subcommand::Doctor(doctor)) => doctor::run(&env, doctor),
        Some(Subcommand::Login(_)) => login::login(&env),
        Some(Subcommand::Logout(_)) => login::logout(&env),
        Some(Subcommand::Man(man)) => man::run(man),
        Some(Subcommand::Hooks(hooks)) => hooks::run(&env, hooks),
        Some(Subcommand::Mcp(mcp)) => mcp::run(&env, mcp),
        Some(Subcommand::Memory(memory)) => memory::run(&env, memory),
        Some(Subcommand::Models(models)) => models::run(&env, models),
        Some(Subcommand::Permissions(permissions)) => permissions::run(&env, permissions),
        Some(Subcommand::Plugin(plugin)) => plugin::run(&env, plugin),
        Some(Subcommand::ResetTerminal(_)) => login::reset_terminal(),
        Some(Subcommand::Sandbox(sandbox)) => sandbox::run(&env, sandbox),
        Some(Subcommand::Serve(serve)) => serve::run(&env, serve),
        Some(Subcommand::Sessions(sessions)) => sessions::run(&env, sessions),
        Some(Subcommand::Skills(skills)) => skills::run(&env, skills),
        Some(Subcommand::Stats(stats)) => stats::run(&env, stats),
        None if args.rewind_files.is_some() => sessions::rewind_files(&env, &args),
        None if args.is_headless() => headless::run(env, args, started, skills),
        None => interactive::run(env, args, started),
    }
}

fn say_version() -> ExitCode {
    // Programs read the first line.
    let version = env!("CARGO_PKG_VERSION");
    let build = build_info::describe();
    let text = format!("{COMPATIBLE_VERSION} (Claude Code compatible; loci {version})\nbuild: {build}\n");
    match print::print(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(error: &UserError) -> ExitCode {
    // A closed stderr leaves nobody to tell; the exit code says it all the same.
    print::print_message(&format!("Error: {error}"));
    ExitCode::FAILURE
}

/// Says before the conversation begins that something takes long.
fn tell_waiting(text: &str) {
    print::print_message(text);
}

/// Help goes to stdout and is no failure; everything else about the arguments is one.
fn refuse(error: &clap::Error) -> ExitCode {
    // A closed stream leaves nobody to tell.
    drop(error.print());
    if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
