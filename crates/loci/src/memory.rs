//! `loci memory`: what is remembered between sessions, for people and for scripts.
//!
//! One verb, one file. Each takes what is on disk and returns the text for standard output; with `--json` that is JSON.
//! Every verb that changes something does it through the journal of memories, so `undo` can take it back.

mod decide;
mod doctor;
mod edit;
mod history;
mod known;
mod list;
mod review;
mod search;
mod show;
mod stale;
mod team;
mod undo;

use loci_app::UserError;
use loci_app::memory::review::{MemoryContext, to_user_error};
use loci_stdx::Env;

use known::Known;

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List memories, and what is the matter with them.
    List(list::ListArgs),
    /// Print a memory and where it comes from.
    Show(show::ShowArgs),
    /// Find memories by words in them.
    Search(search::SearchArgs),
    /// Look at what was found and waits for your word.
    Review(review::ReviewArgs),
    /// Let proposals count.
    Accept(decide::ProposalArgs),
    /// Turn proposals down.
    Reject(decide::ProposalArgs),
    /// Change a memory's text.
    Edit(edit::EditArgs),
    /// Remove a memory and its line in the index.
    Forget(decide::ForgetArgs),
    /// List every change, by whom and from which session.
    History(history::HistoryArgs),
    /// Take a change back.
    Undo(undo::UndoArgs),
    /// Look for memories that need a look; exits with 1 when there are any.
    Doctor(doctor::DoctorArgs),
    /// Share memories with others through a server.
    Team(team::TeamArgs),
}

/// Runs a verb and returns the exit code.
pub(crate) fn run(env: &Env, args: &MemoryArgs) -> Result<u8, UserError> {
    let ctx = MemoryContext::new(env)?;
    let (text, code) = match &args.verb {
        Verb::List(args) => (list::run(&ctx, args)?, 0),
        Verb::Show(args) => (show::run(&ctx, args)?, 0),
        Verb::Search(args) => (search::run(&ctx, args)?, 0),
        Verb::Review(args) => (review::run(&ctx, args)?, 0),
        Verb::Accept(args) => (decide::accept(&ctx, args)?, 0),
        Verb::Reject(args) => (decide::reject(&ctx, args)?, 0),
        Verb::Edit(args) => (edit::run(&ctx, args)?, 0),
        Verb::Forget(args) => (decide::forget(&ctx, args)?, 0),
        Verb::History(args) => (history::run(&ctx, args)?, 0),
        Verb::Undo(args) => (undo::run(&ctx, args)?, 0),
        Verb::Doctor(args) => doctor::run(&ctx, args)?,
        Verb::Team(args) => team::run(&ctx, args)?,
    };
    print_text(&text, args.verb.is_json())?;
    Ok(code)
}

/// Deals with proposals one after the other. Where one fails, what was done before it is said all the same.
fn each(
    files: Vec<String>,
    json: bool,
    deal: impl Fn(&str) -> Result<String, UserError>,
) -> Result<String, UserError> {
    if files.is_empty() && !json {
        return Ok("Nothing waits for your word\n".to_owned());
    }
    let mut said = String::new();
    for file in files {
        match deal(&file) {
            Ok(words) => said.push_str(&words),
            Err(user_error) => {
                print_text(&said, json)?;
                return Err(user_error);
            }
        }
    }
    Ok(said)
}

/// Names and texts come from anywhere: at a terminal they are read, and do nothing.
fn print_text(text: &str, json: bool) -> Result<(), UserError> {
    match json {
        true => crate::config::write(text),
        false => crate::config::write(&loci_stdx::printable(text)),
    }
}

impl Verb {
    /// Tells whether a program reads what is printed.
    fn is_json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Search(args) => args.json,
            Self::Review(args) => args.json,
            Self::Accept(args) => args.json,
            Self::Reject(args) => args.json,
            Self::Edit(args) => args.json,
            Self::Forget(args) => args.json,
            Self::History(args) => args.json,
            Self::Undo(args) => args.json,
            Self::Doctor(args) => args.json,
            Self::Team(args) => args.is_json(),
        }
    }
}

/// Says what a change was numbered, and how to take it back.
fn change_note(what: &str, id: u64, json: bool) -> String {
    match json {
        true => format!("{}\n", serde_json::json!({"change": id, "done": what})),
        false => format!("{what} (`loci memory undo {id}` takes it back)\n"),
    }
}
