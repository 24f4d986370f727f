//! `loci sessions`: what is on disk, for people and for scripts.
//!
//! One verb, one file. Every verb takes a session by id, title or path; prints data on stdout and talk on stderr;
//! and with `--json` prints JSON only. Reading verbs never change a file, not even its time.

mod archive;
mod audit;
mod branch;
mod diff;
mod doctor;
mod export;
pub(crate) mod format;
mod gc;
mod import;
mod list;
mod pin;
mod rename;
mod replay;
mod restore;
mod rewind;
mod rm;
mod search;
mod show;
mod summary;
mod tag;
mod target;
mod tree;

use loci_app::UserError;
use loci_stdx::Env;
use loci_storage::layout::ConfigHome;

use crate::args::Args;
pub(crate) use crate::print as output;

/// The arguments of `loci sessions`.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionsArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List sessions, the newest first.
    List(list::ListArgs),
    /// Search every message of every session.
    Search(search::SearchArgs),
    /// Print what was said in a session.
    Show(show::ShowArgs),
    /// Draw a session's branches, compactions, forks and subagents.
    Tree(tree::TreeArgs),
    /// Make a new session from any message of another.
    Branch(branch::BranchArgs),
    /// Write a session as Markdown, JSON or one HTML page.
    Export(export::ExportArgs),
    /// Give a session a title.
    Rename(rename::RenameArgs),
    /// Give a session a tag, or take it away.
    Tag(tag::TagArgs),
    /// Go back to a prompt: files as they were before it, and the conversation.
    Rewind(rewind::RewindArgs),
    /// Take the last rewind back.
    UndoRewind(rewind::UndoArgs),
    /// Play a session again in a copy of its project; exits with 1 when something differs.
    Replay(replay::ReplayArgs),
    /// Show what changed in files between two prompts.
    Diff(diff::DiffArgs),
    /// Remove what was kept of files and no session refers to.
    Gc(gc::GcArgs),
    /// Move a session to the trash, or bring one back.
    Rm(rm::RmArgs),
    /// Pack sessions away, byte for byte; they can still be searched.
    Archive(archive::ArchiveArgs),
    /// Bring an archived session back.
    Restore(restore::RestoreArgs),
    /// Keep a session from being archived, or let it be.
    Pin(pin::PinArgs),
    /// Print what was archived, removed, mended and brought back.
    Audit(audit::AuditArgs),
    /// Look for what is wrong with the sessions on disk, and mend it.
    Doctor(doctor::DoctorArgs),
    /// Make a session of one of Codex, so that it can be continued here.
    Import(import::ImportArgs),
}

/// What every verb is given.
struct SessionsContext<'a> {
    env: &'a Env,
    home: ConfigHome,
}

/// Performs `--resume <session> --rewind-files <prompt>`.
pub(crate) fn rewind_files(env: &Env, args: &Args) -> Result<u8, UserError> {
    args.check().map_err(UserError::new)?;
    let ctx = SessionsContext { env, home: ConfigHome::from_env(env) };
    let (session, prompt) = (args.resume.as_deref(), args.rewind_files.as_deref());
    rewind::files(&ctx, session.unwrap_or_default(), prompt.unwrap_or_default())?;
    Ok(0)
}

/// Runs one verb.
pub(crate) fn run(env: &Env, args: &SessionsArgs) -> Result<u8, UserError> {
    let ctx = SessionsContext { env, home: ConfigHome::from_env(env) };
    match &args.verb {
        Verb::List(args) => list::run(&ctx, args),
        Verb::Search(args) => return search::run(&ctx, args),
        Verb::Show(args) => show::run(&ctx, args),
        Verb::Tree(args) => tree::run(&ctx, args),
        Verb::Branch(args) => branch::run(&ctx, args),
        Verb::Export(args) => export::run(&ctx, args),
        Verb::Rename(args) => rename::run(&ctx, args),
        Verb::Tag(args) => tag::run(&ctx, args),
        Verb::Rewind(args) => rewind::rewind(&ctx, args),
        Verb::UndoRewind(args) => rewind::undo(&ctx, args),
        Verb::Replay(args) => return replay::run(&ctx, args),
        Verb::Diff(args) => diff::run(&ctx, args),
        Verb::Gc(args) => gc::run(&ctx, args),
        Verb::Rm(args) => rm::run(&ctx, args),
        Verb::Archive(args) => archive::run(&ctx, args),
        Verb::Restore(args) => restore::run(&ctx, args),
        Verb::Pin(args) => pin::run(&ctx, args),
        Verb::Audit(args) => audit::run(&ctx, args),
        Verb::Doctor(args) => return doctor::run(&ctx, args),
        Verb::Import(args) => import::run(&ctx, args),
    }?;
    Ok(0)
}
