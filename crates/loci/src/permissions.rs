//! `loci permissions`: which rules there are, what they say about a call, and changing them.
//!
//! Each verb takes what was read and returns the text for standard output. What is explained is what a session that
//! starts here now would decide; changes go to one settings file and change nothing else in it.

mod add;
mod call;
mod explain;
mod list;
mod remove;

use loci_app::UserError;
use loci_app::memory::open_memory;
use loci_app::permissions::rules::rulebook_from_settings;
use loci_app::permissions::sandbox::{SandboxWorld, SessionSandbox};
use loci_core::permission::{Mode, Rule, RuleList, Rulebook};
use loci_settings::{MergedSettings, Refusal, Role, Scope};
use loci_stdx::{Env, single_line};
use serde_json::{Value, json};

use crate::config::{SettingsContext, write};

#[derive(Debug, clap::Args)]
pub(crate) struct PermissionsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Say whether a call would run, and why.
    Explain(explain::ExplainArgs),
    /// List all rules, each with its file and line.
    List(list::ListArgs),
    /// Add a rule to a settings file.
    Add(add::AddArgs),
    /// Remove a rule from a settings file.
    Remove(remove::RemoveArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &PermissionsArgs) -> Result<u8, UserError> {
    let ctx = SettingsContext::new(env);
    let text = match &args.verb {
        Verb::Explain(args) => explain::run(&ctx, args)?,
        Verb::List(args) => list::run(&ctx, args),
        Verb::Add(args) => add::run(&ctx, args)?,
        Verb::Remove(args) => remove::run(&ctx, args)?,
    };
    write(&text)?;
    Ok(0)
}

/// Which list a verb is about.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
struct ListChoice {
    /// Calls that match run without asking.
    #[arg(long)]
    allow: bool,
    /// Calls that match are asked about.
    #[arg(long)]
    ask: bool,
    /// Calls that match do not run.
    #[arg(long)]
    deny: bool,
}

impl ListChoice {
    fn list(self) -> Option<RuleList> {
        match self {
            Self { allow: true, .. } => Some(RuleList::Allow),
            Self { ask: true, .. } => Some(RuleList::Ask),
            Self { deny: true, .. } => Some(RuleList::Deny),
            _ => None,
        }
    }
}

/// Returns the rules of a session that starts here now, and what to say about them.
pub(crate) fn rulebook(ctx: &SettingsContext, mode: Option<Mode>) -> (Rulebook, Vec<String>) {
    let env = &ctx.env;
    let mut book = Rulebook {
        dirs: vec![env.cwd.clone()],
        cwd: env.cwd.clone(),
        home: env.home.clone(),
        ..Rulebook::default()
    };
    let settings = ctx.loaded.settings();
    let mut notes = rulebook_from_settings(env, &settings.permissions, mode, &mut book);
    notes.extend(untrusted_notes(&ctx.loaded.merged));
    let world = SandboxWorld {
        env,
        config_home: ctx.home.root().to_owned(),
        scratch: ctx.home.root().join("sandbox"),
        dirs: book.dirs.clone(),
    };
    match SessionSandbox::new(&world, &settings) {
        Ok(sandbox) => {
            book.sandbox = sandbox.rules;
            notes.extend(sandbox.warnings);
        }
        Err(error) => notes.push(error.to_string()),
    }
    let root = ctx.places.main_checkout().unwrap_or(ctx.places.tree_root());
    let is_bare = env.vars.is_truthy("CLAUDE_CODE_SIMPLE");
    if let (Some(memory), _) = open_memory(env, &ctx.home, is_bare, &settings, root) {
        memory.admit(&mut book);
    }
    (book, notes)
}

/// Says which permissions of the project's files would count if this folder were trusted, a line for each file.
fn untrusted_notes(merged: &MergedSettings) -> Vec<String> {
    let permissions = merged.iter().filter(|setting| setting.key.path.starts_with("permissions."));
    let parts = permissions.flat_map(|setting| setting.parts.iter().map(|part| (setting.key.path, part)));
    parts
        .filter(|(_, part)| part.role == Role::Refused(Refusal::Untrusted))
        .map(|(path, part)| {
            let value = single_line(&part.value.to_string(), MOST_LETTERS);
            let place = format!("{}:{}", part.origin.name, part.line);
            format!("Waits until this folder is trusted (`loci config trust`): {path} = {value}  ({place})")
        })
        .collect()
}

/// The most letters of a value that waits for trust.
const MOST_LETTERS: usize = 200;

/// Tells which file a rule is saved to unless another is named: the user's for this project.
const USUAL: Scope = Scope::Local;

/// Shows where a rule came from.
fn origin(rule: &Rule) -> String {
    match rule.place() {
        Some(place) => format!("{}, {place}", rule.source()),
        None => rule.source().to_string(),
    }
}

fn rule_json(rule: &Rule) -> Value {
    json!({
        "rule": rule.text(),
        "list": rule.list().as_str(),
        "source": rule.source().to_string(),
        "file": rule.place().map(|place| place.file.as_ref()),
        "line": rule.place().map(|place| place.line),
    })
}
