//! `loci sessions export`: a session as Markdown, as JSON, or as one HTML page that needs nothing else.

mod html;

use std::path::PathBuf;

use clap::ValueEnum;
use loci_app::UserError;
use loci_app::sessions::transcript::{self, Part};
use loci_core::conversation::history;
use loci_stdx::{WriteOptions, write_atomic};
use loci_storage::sessions::SessionSummary;
use serde_json::json;

use super::{SessionsContext, output, show, target};

/// The arguments of `loci sessions export`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The session: id, title or path.
    session: String,

    /// What to write; told from the file's name, else Markdown.
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Write to this file rather than to standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write over a file that exists.
    #[arg(long, requires = "output")]
    force: bool,

    /// Print JSON: the session, or with --output where it went.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Markdown.
    Md,
    /// The facts and the messages.
    Json,
    /// One page with no outside parts.
    Html,
}

/// A session ready to be written down.
struct Document<'a> {
    session: &'a SessionSummary,
    parts: Vec<Part>,
}

impl Document<'_> {
    fn title(&self) -> &str {
        loci_app::sessions::export::title(self.session)
    }
}

/// Writes the session.
pub(super) fn run(ctx: &SessionsContext<'_>, args: &ExportArgs) -> Result<(), UserError> {
    let place = target::find_to_read(ctx, "export", &args.session)?;
    let session = target::summary(&place)?;
    let history = history(&target::entries_to_read(ctx, &place)?);
    let format = format(args);
    let text = match format {
        Format::Json => format!("{}\n", show::whole_json(&session, &history)),
        Format::Md => loci_app::sessions::export::to_markdown(&session, &transcript::parts(&history)),
        Format::Html => html::render(&Document { session: &session, parts: transcript::parts(&history) }),
    };
    let Some(file) = &args.output else { return output::print(&text) };
    let file = ctx.env.cwd.join(file);
    if file.exists() && !args.force {
        return Err(UserError::new(format!("The file exists: `{}`", file.display()))
            .hint("Choose another name, or write over it with --force."));
    }
    // Transcripts may hold anything the user ever saw, so the file is theirs alone.
    write_atomic(&file, text.as_bytes(), &WriteOptions::private())
        .map_err(|error| UserError::from_error(&error))?;
    if args.json {
        return output::print_json(
            &json!({"sessionId": place.id().as_str(), "file": file, "bytes": text.len()}),
        );
    }
    output::print_message(&format!("Wrote `{}`", file.display()));
    Ok(())
}

/// What was asked for, else what the file's name says, else Markdown; `--json` alone means JSON.
fn format(args: &ExportArgs) -> Format {
    let extension = args.output.as_ref().and_then(|file| file.extension()).and_then(|name| name.to_str());
    match (args.format, extension) {
        (Some(format), _) => format,
        (None, Some("html" | "htm")) => Format::Html,
        (None, Some("json")) => Format::Json,
        (None, None) if args.json => Format::Json,
        (None, _) => Format::Md,
    }
}
