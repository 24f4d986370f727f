//! `loci hooks`: which hooks there are, whether they count, and what they say to a made-up event.

mod list;
mod trial;

use loci_app::UserError;
use loci_app::settings::all_hooks;
use loci_core::hooks::HookEntry;
use loci_stdx::Env;
use serde_json::{Value, json};

use crate::config::{SettingsContext, write};

#[derive(Debug, clap::Args)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List all hooks: event, matcher, handler, file and line, and whether they count.
    List(list::ListArgs),
    /// Run the hooks that a made-up event concerns, and show what they read, said and decided.
    Test(trial::TrialArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &HooksArgs) -> Result<u8, UserError> {
    let ctx = SettingsContext::new(env);
    let plugins = ctx.plugins();
    let hooks = all_hooks(&ctx.loaded.merged, &ctx.env.cwd, &plugins);
    let text = match &args.verb {
        Verb::List(args) => list::run(&hooks, args),
        Verb::Test(args) => trial::run(&ctx, hooks, args)?,
    };
    write(&text)?;
    Ok(0)
}

fn entry_json(entry: &HookEntry) -> Value {
    json!({
        "event": entry.event.name(),
        "matcher": entry.matcher_text,
        "type": entry.kind(),
        "handler": entry.label(),
        "timeoutSeconds": entry.time_limit().as_secs_f64(),
        "source": entry.source.scope.to_string(),
        "file": entry.source.file.as_ref(),
        "line": entry.source.line,
    })
}
