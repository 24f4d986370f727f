//! `loci config`: look at settings, change them, and see why they are what they are.
//!
//! Each verb takes what was read and returns the text for standard output; this file chooses the verb and
//! writes. Changes go to one file, the user's unless another is named, and change nothing else in it.

mod add;
mod explain;
mod get;
mod instructions;
mod list;
mod remove;
mod set;
mod trust;
mod unset;

use loci_app::UserError;
use loci_settings::{Scope, json_schema};
use loci_stdx::Env;
use serde_json::Value;

pub(crate) use crate::print::print as write;
use crate::print::print_message;
pub(crate) use loci_app::settings::editor::{SettingsContext, to_user_error};

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the value in force.
    Get(get::GetArgs),
    /// Set a value; of a list, all of it.
    Set(set::SetArgs),
    /// Add entries to a list.
    Add(add::AddArgs),
    /// Remove entries from a list.
    Remove(remove::RemoveArgs),
    /// Remove a value.
    Unset(unset::UnsetArgs),
    /// List everything that is set, and where.
    List(list::ListArgs),
    /// Show what every file says about a key, which one wins and why.
    Explain(explain::ExplainArgs),
    /// Print the JSON Schema of settings files.
    Schema,
    /// Trust this folder, so that its settings count in full.
    Trust(trust::TrustArgs),
}

/// Which file a verb is about.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Target {
    /// Your settings for all projects.
    #[arg(long)]
    user: bool,
    /// The settings shared by all who work on this project.
    #[arg(long)]
    project: bool,
    /// Your settings for this project.
    #[arg(long)]
    local: bool,
}

impl Target {
    pub(crate) fn scope(self) -> Option<Scope> {
        match self {
            Self { user: true, .. } => Some(Scope::User),
            Self { project: true, .. } => Some(Scope::Project),
            Self { local: true, .. } => Some(Scope::Local),
            _ => None,
        }
    }
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &ConfigArgs) -> Result<u8, UserError> {
    let ctx = SettingsContext::new(env);
    if matches!(&args.verb, Verb::Get(_) | Verb::List(_) | Verb::Explain(_)) {
        // What cannot be read is not in what is shown.
        ctx.problems().iter().for_each(|problem| print_message(problem));
    }
    let text = match &args.verb {
        Verb::Get(args) => get::run(&ctx, args)?,
        Verb::Set(args) => set::run(&ctx, args)?,
        Verb::Add(args) => add::run(&ctx, args)?,
        Verb::Remove(args) => remove::run(&ctx, args)?,
        Verb::Unset(args) => unset::run(&ctx, args)?,
        Verb::List(args) => list::run(&ctx, args),
        Verb::Explain(args) => explain::run(&ctx, args)?,
        Verb::Schema => pretty(&json_schema()),
        Verb::Trust(args) => trust::run(&ctx, args)?,
    };
    write(&text)?;
    Ok(0)
}

pub(crate) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
