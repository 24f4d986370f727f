//! `loci memory team`: what is shared with others through a server.

use loci_app::UserError;
use loci_http::Secret;
use loci_storage::config::team_token;
use loci_storage::layout::ConfigHome;
use loci_team::{HttpRemote, Line, Outcome, RemoteError, RepositoryName, SyncError, check_address};
use serde_json::{Value, json};

use super::{MemoryContext, to_user_error};
use crate::config::{SettingsContext, pretty};

/// The variable that holds the token; without it a file does.
const TOKEN: &str = "LOCI_TEAM_TOKEN";

#[derive(Debug, clap::Args)]
pub(super) struct TeamArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Fetch what others shared; where both sides changed, the server's text wins.
    Pull(VerbArgs),
    /// Share what changed here; exits with 1 when something was held back.
    Push(VerbArgs),
    /// Say what a pull and a push would do.
    Status(VerbArgs),
}

#[derive(Debug, clap::Args)]
struct VerbArgs {
    /// Print a JSON array.
    #[arg(long)]
    json: bool,
}

impl TeamArgs {
    /// Tells whether a program reads what is printed.
    pub(super) fn is_json(&self) -> bool {
        match &self.verb {
            Verb::Pull(args) | Verb::Push(args) | Verb::Status(args) => args.json,
        }
    }
}

pub(super) fn run(ctx: &MemoryContext, args: &TeamArgs) -> Result<(String, u8), UserError> {
    let remote = remote(ctx)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| UserError::new(format!("The runtime cannot start: {error}")))?;
    let (lines, VerbArgs { json }) = match &args.verb {
        Verb::Pull(args) => (runtime.block_on(loci_team::pull(&ctx.env, &ctx.journal, &remote)), args),
        Verb::Push(args) => (runtime.block_on(loci_team::push(&ctx.journal, &remote)), args),
        Verb::Status(args) => (runtime.block_on(loci_team::status(&ctx.journal, &remote)), args),
    };
    let lines = lines.map_err(|error| explain(&error))?;
    let is_held =
        |line: &Line| matches!(line.outcome, Outcome::Conflict | Outcome::Held(_) | Outcome::Refused(_));
    let code = u8::from(matches!(args.verb, Verb::Push(_)) && lines.iter().any(is_held));
    let text = match (json, lines.is_empty()) {
        (true, _) => pretty(&Value::from_iter(lines.iter().map(to_json))),
        (false, true) => "Nothing to do: both sides are alike\n".to_owned(),
        (false, false) => lines.iter().map(in_words).collect(),
    };
    Ok((text, code))
}

/// Finds the server, the repository and the token.
fn remote(ctx: &MemoryContext) -> Result<HttpRemote, UserError> {
    let settings = SettingsContext::new(&ctx.env).loaded.settings().team_memory;
    let address = settings.server.ok_or_else(|| {
        UserError::new("No server for the team's memories is set")
            .hint("`loci config set teamMemory.server https://...`; a project's own file counts once it is trusted.")
    })?;
    let url = check_address(&address).map_err(|why| {
        UserError::new(format!(
            "The server of the team's memories cannot be used, because {why}: `{address}`"
        ))
        .hint("`loci config explain teamMemory.server` shows who says so.")
    })?;
    let named = settings.repository.unwrap_or_default();
    let repository = RepositoryName::parse(&named).ok_or_else(|| {
        UserError::new(format!("Not the name of a repository on the server: `{named}`"))
            .hint("`loci config set --project teamMemory.repository <name>`: letters, digits and `-_.`.")
    })?;
    let token = token(ctx)?;
    if token.expose().chars().any(|it| !it.is_ascii_graphic()) {
        return Err(UserError::new(
            "The token for the team's memories is no token: it holds a space or the like",
        )
        .hint(format!("Look at {TOKEN}, or at the file that holds it.")));
    }
    HttpRemote::new(&ctx.env, &url, &repository, token).map_err(UserError::from)
}

fn token(ctx: &MemoryContext) -> Result<Secret, UserError> {
    if let Some(token) = ctx.env.vars.non_empty(TOKEN) {
        return Ok(Secret::new(token.trim()));
    }
    let home = ConfigHome::from_env(&ctx.env);
    let kept = team_token(&home).map_err(|error| UserError::from_error(&error).hint("`chmod 600` it."))?;
    kept.map(Secret::new).ok_or_else(|| {
        UserError::new("There is no token for the team's memories").hint(format!(
            "Set {TOKEN}, or put it into `{}`, readable by you alone.",
            home.loci_dir().join("team-token").display()
        ))
    })
}

fn explain(error: &SyncError) -> UserError {
    match error {
        SyncError::Memory(error) => to_user_error(error),
        SyncError::Remote(RemoteError::Refused { status: 401, .. }) => UserError::from_error(error)
            .hint(format!("Ask whoever runs the server for a token, and put it into {TOKEN} or the file.")),
        SyncError::Remote(RemoteError::Refused { status: 403, .. }) => UserError::from_error(error)
            .hint("`loci config explain teamMemory.repository` shows which one is meant, and who says so."),
        SyncError::Remote(_) => UserError::from_error(error)
            .hint("What was done so far stands and is remembered; run it again to finish."),
        SyncError::Read(_) => UserError::from_error(error),
    }
}

fn in_words(line: &Line) -> String {
    let name = &line.name;
    let undo = |change: &Option<u64>| {
        change.map(|id| format!(" (`loci memory undo {id}` takes it back)")).unwrap_or_default()
    };
    match &line.outcome {
        Outcome::Added(change) => format!("new       {name}{}\n", undo(change)),
        Outcome::Updated(change) => format!("newer     {name}{}\n", undo(change)),
        Outcome::Overwritten(change) => {
            format!("replaced  {name}: changed on both sides, the server's counts{}\n", undo(change))
        }
        Outcome::Kept => format!("kept      {name}: changed here, `loci memory team push` sends it\n"),
        Outcome::Sent => format!("sent      {name}\n"),
        Outcome::ToSend => format!("to send   {name}\n"),
        Outcome::Conflict => {
            format!("conflict  {name}: changed on the server too, `loci memory team pull` first\n")
        }
        Outcome::Held(found) => found
            .iter()
            .map(|it| format!("held      {name}:{}: a secret, by rule `{}`\n", it.line, it.rule))
            .collect(),
        Outcome::Refused(why) => format!("refused   {name}: {why}\n"),
        Outcome::Skipped(why) => format!("skipped   {name}: {why}\n"),
    }
}

fn to_json(line: &Line) -> Value {
    let with =
        |outcome: &str, key: &str, value: Value| json!({"name": line.name, "outcome": outcome, key: value});
    match &line.outcome {
        Outcome::Added(change) => with("new", "change", json!(change)),
        Outcome::Updated(change) => with("newer", "change", json!(change)),
        Outcome::Overwritten(change) => with("replaced", "change", json!(change)),
        Outcome::Kept => json!({"name": line.name, "outcome": "kept"}),
        Outcome::Sent => json!({"name": line.name, "outcome": "sent"}),
        Outcome::ToSend => json!({"name": line.name, "outcome": "to-send"}),
        Outcome::Conflict => json!({"name": line.name, "outcome": "conflict"}),
        Outcome::Held(found) => {
            let found = found.iter().map(|it| json!({"rule": it.rule, "line": it.line}));
            with("held", "secrets", found.collect())
        }
        Outcome::Refused(why) => with("refused", "why", json!(why)),
        Outcome::Skipped(why) => with("skipped", "why", json!(why)),
    }
}
