//! `loci blame`: which prompt of which session last changed each line of a file.

use std::collections::HashMap;
use std::path::PathBuf;

use loci_app::UserError;
use loci_core::file_history::prompts_of;
use loci_core::ids::{EntryId, SessionId};
use loci_stdx::{Env, single_line};
use loci_storage::history::{BlamedLine, blame_file};
use loci_storage::layout::ConfigHome;
use loci_storage::sessions::{load_transcript, resolve_session};
use serde_json::json;

/// How much of a prompt is shown beside a line.
const SHOWN: usize = 32;

/// The arguments of `loci blame`.
#[derive(Debug, clap::Args)]
pub(crate) struct BlameArgs {
    /// The file.
    file: PathBuf,

    /// Print JSON, one object a line.
    #[arg(long)]
    json: bool,
}

/// Prints the file with who wrote what.
pub(crate) fn run(env: &Env, args: &BlameArgs) -> Result<u8, UserError> {
    let home = ConfigHome::from_env(env);
    let path = env.cwd.join(&args.file);
    let path = path.canonicalize().unwrap_or(path);
    let lines = blame_file(&home, env, &path).map_err(|error| UserError::from_error(&error))?;
    let mut prompts = Prompts { env, home: &home, known: HashMap::new() };
    let text: String = lines
        .iter()
        .enumerate()
        .map(|(n, line)| match args.json {
            true => as_json(n + 1, line, &mut prompts),
            false => as_text(n + 1, line, &mut prompts),
        })
        .collect();
    crate::print::print(&text)?;
    Ok(0)
}

fn as_json(n: usize, line: &BlamedLine, prompts: &mut Prompts<'_>) -> String {
    let by = line.by.as_ref().map(|(session, prompt, at)| {
        let text = prompts.text(session, prompt);
        json!({"sessionId": session.as_str(), "prompt": prompt.as_str(), "text": text, "at": at})
    });
    format!("{}\n", json!({"line": n, "text": line.line, "by": by}))
}

fn as_text(n: usize, line: &BlamedLine, prompts: &mut Prompts<'_>) -> String {
    let by = match &line.by {
        Some((session, prompt, at)) => {
            let text = single_line(&prompts.text(session, prompt), SHOWN);
            let (session, day) = (&session.as_str()[..8], at.get(..10).unwrap_or_default());
            format!("{session} {day} {text:<SHOWN$}")
        }
        None => format!("{:<width$}", "-", width = 8 + 1 + 10 + 1 + SHOWN),
    };
    let visible: String = line.line.chars().filter(|char| !char.is_control() || *char == '\t').collect();
    format!("{by} {n:>4}  {visible}\n")
}

/// The texts of prompts, read once a session.
struct Prompts<'a> {
    env: &'a Env,
    home: &'a ConfigHome,
    known: HashMap<SessionId, HashMap<EntryId, String>>,
}

impl Prompts<'_> {
    /// Returns what was asked; of a session that is gone, nothing.
    fn text(&mut self, session: &SessionId, prompt: &EntryId) -> String {
        let (env, home) = (self.env, self.home);
        let texts = self.known.entry(session.clone()).or_insert_with(|| {
            let place = resolve_session(home, &env.cwd, session.as_str());
            let entries =
                place.ok().and_then(|place| load_transcript(place.file()).ok()).unwrap_or_default().entries;
            prompts_of(&entries).into_iter().map(|prompt| (prompt.id, prompt.text)).collect()
        });
        texts.get(prompt).cloned().unwrap_or_default()
    }
}
