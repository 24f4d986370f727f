//! `loci sandbox check` and `loci sandbox run`: what this machine can give, and a command tried in it.

use std::ffi::OsString;
use std::path::PathBuf;

use loci_app::UserError;
use loci_app::permissions::sandbox::{SandboxWorld, check_level, sandbox, settings_notes};
use loci_core::ids::SessionId;
use loci_sandbox::{Level, LevelCheck};
use loci_stdx::Env;
use serde_json::json;

use crate::config::{SettingsContext, pretty, write};
use crate::print::print_message;

#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Say which level can be had here, which layers hold, and what would mend one that does not; exits with 1 below full.
    Check {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run a command in the sandbox that a session in this directory would have, whether settings turn it on or not.
    Run(RunArgs),
    /// Connect through the proxy of the sandbox that this runs in; for ssh.
    #[command(hide = true)]
    Connect {
        /// The host.
        host: String,
        /// Its port.
        port: u16,
    },
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Another directory that may be written.
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,
    /// Run in the weak level too, where the full one cannot be had.
    #[arg(long)]
    weak: bool,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &SandboxArgs) -> Result<u8, UserError> {
    match &args.verb {
        Verb::Check { json } => check(&SettingsContext::new(env), *json),
        Verb::Run(args) => run_command(&SettingsContext::new(env), args),
        Verb::Connect { host, port } => {
            let connected = loci_sandbox::connect_through_proxy(host, *port);
            connected.map(|()| 0).map_err(|error| UserError::new(error.to_string()))
        }
    }
}

fn check(ctx: &SettingsContext, as_json: bool) -> Result<u8, UserError> {
    let settings = ctx.loaded.settings().sandbox;
    let found = check_level(&settings);
    let text = match as_json {
        true => pretty(&to_json(&found, settings.enabled)),
        false => to_text(&found, settings.enabled),
    };
    write(&text)?;
    Ok(u8::from(found.level < Level::Full))
}

fn to_text(found: &LevelCheck, is_enabled: bool) -> String {
    let mut lines = vec![format!("Level: {}", found.level)];
    for layer in &found.reports {
        lines.push(match &layer.problem {
            None => format!("  {:<22} holds", layer.name),
            Some(problem) => format!("  {:<22} missing: {problem}", layer.name),
        });
        lines.extend(layer.remedy.iter().map(|it| format!("  {:<22} {it}", "")));
    }
    lines.extend(found.open().iter().map(|it| format!("  open: {it}")));
    lines.push(match is_enabled {
        true => "Settings turn it on (sandbox.enabled).".to_owned(),
        false => "Settings do not turn it on: `loci config set sandbox.enabled true` does.".to_owned(),
    });
    lines.join("\n") + "\n"
}

fn to_json(found: &LevelCheck, is_enabled: bool) -> serde_json::Value {
    let layers: Vec<_> = found
        .reports
        .iter()
        .map(|layer| json!({"name": layer.name, "problem": layer.problem, "remedy": layer.remedy}))
        .collect();
    json!({"level": found.level.to_string(), "enabled": is_enabled, "layers": layers, "open": found.open()})
}

fn run_command(ctx: &SettingsContext, args: &RunArgs) -> Result<u8, UserError> {
    let settings = ctx.loaded.settings();
    let found = check_level(&settings.sandbox);
    if found.level < Level::Full && !(args.weak && found.level == Level::Weak) {
        return Err(UserError::new(format!(
            "The full sandbox cannot be had here: {}",
            found.problem().unwrap_or_default()
        ))
        .hint("See `loci sandbox check`; --weak runs in the weak level, where there is one."));
    }
    let id = SessionId::parse(&ctx.env.random.uuid_v4().to_string());
    let id = id.map_err(|error| UserError::new(error.to_string()))?;
    let scratch = ctx.home.session_tmp(&ctx.env.cwd, &id).sandbox_dir();
    let real = |path: &PathBuf| {
        let path = ctx.env.cwd.join(path);
        path.canonicalize()
            .map_err(|error| UserError::new(format!("Not a directory: `{}`: {error}", path.display())))
    };
    let mut dirs = vec![real(&ctx.env.cwd)?];
    for dir in &args.add_dir {
        dirs.push(real(dir)?);
    }
    let world = SandboxWorld {
        env: &ctx.env,
        config_home: ctx.home.root().to_owned(),
        scratch: scratch.clone(),
        dirs: dirs.clone(),
    };
    let (sandbox, warnings) = sandbox(&world, &settings, &found);
    for warning in settings_notes(&settings.sandbox).into_iter().chain(warnings) {
        print_message(&warning);
    }
    let [program, rest @ ..] = args.command.as_slice() else {
        return Err(UserError::new("There is no command to run"));
    };
    let failed = |error: std::io::Error| UserError::new(format!("The command was not run: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let done = runtime.block_on(async {
        let (mut command, helper_handle) = sandbox.command(&dirs, program, rest).map_err(failed)?;
        let inherited = loci_app::compose::child_env::child_env(&ctx.env);
        command.env_clear().envs(sandbox.child_env(inherited)).current_dir(&ctx.env.cwd);
        let mut command = tokio::process::Command::from(command);
        let mut child = command.spawn().map_err(failed)?;
        // It holds the helper's end of the socket, whose end is waited for.
        drop(command);
        let running = sandbox.watch(helper_handle).map_err(failed)?;
        let status = child.wait().await.map_err(failed)?;
        let report = running.report().await;
        for text in report.removed.iter().chain(&report.refused_hosts) {
            print_message(&format!("[sandbox] {text}"));
        }
        match report.why_not_run() {
            Some(why) => Err(UserError::new(format!("The command was not run: {why}"))),
            None => Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)),
        }
    });
    // It is the command's own; what cannot be removed is the system's to clear.
    if let Some(dir) = scratch.parent() {
        drop(std::fs::remove_dir_all(dir));
    }
    done
}
