//! `/export`: the conversation as Markdown, in a file.

use std::path::{Path, PathBuf};

use loci_stdx::{WriteOptions, write_atomic};
use loci_storage::sessions::{SessionSummary, session_summary};

use super::{CommandContext, entries};
use crate::reports::display::minute;
use crate::sessions::export::{title, to_markdown};
use crate::sessions::transcript::parts;
use crate::user_error::UserError;

/// The longest name that is made of a title.
const MOST_NAME: usize = 48;

/// Writes the session to a file, which must not exist; returns where. Without a name one is made of the day and the title.
pub fn export(ctx: &CommandContext, file: Option<&str>) -> Result<PathBuf, UserError> {
    let (session, text) = exported(ctx)?;
    match file {
        Some(name) => write_text(ctx, name, &text),
        None => write_text(ctx, &file_name(title(&session), &minute(ctx.env.clock.now())), &text),
    }
}

/// Returns the session as Markdown.
pub fn export_text(ctx: &CommandContext) -> Result<String, UserError> {
    exported(ctx).map(|(_, text)| text)
}

fn exported(ctx: &CommandContext) -> Result<(SessionSummary, String), UserError> {
    let nothing = || UserError::new("Nothing was said in this session yet, so there is nothing to export");
    let session = session_summary(&ctx.place()).ok().flatten().ok_or_else(nothing)?;
    let text = to_markdown(&session, &parts(&entries(ctx)?));
    Ok((session, text))
}

/// Writes a text to a file, which must not exist; returns where.
pub fn write_text(ctx: &CommandContext, name: &str, text: &str) -> Result<PathBuf, UserError> {
    let name = match name.strip_prefix("~/") {
        Some(rest) => ctx.env.home.join(rest),
        None => PathBuf::from(name),
    };
    let file = ctx.env.cwd.join(name);
    if file.exists() {
        return Err(UserError::new(format!("The file exists: `{}`", file.display()))
            .hint("Name another one: `/export FILE`."));
    }
    if let Some(dir) = file.parent().filter(|dir| !dir.is_dir()) {
        return Err(UserError::new(format!("There is no such directory: `{}`", dir.display()))
            .hint("Make it first, or name a file in another one: `/export FILE`."));
    }
    write(&file, text)?;
    Ok(file)
}

/// Transcripts may hold anything the user ever saw, so the file is theirs alone.
fn write(file: &Path, text: &str) -> Result<(), UserError> {
    write_atomic(file, text.as_bytes(), &WriteOptions::private())
        .map_err(|error| UserError::from_error(&error))
}

/// Returns a name made of the day and what the session is called.
fn file_name(title: &str, minute: &str) -> String {
    let day = minute.split(' ').next().unwrap_or_default();
    let mut words = String::new();
    for c in title.to_lowercase().chars() {
        match c.is_alphanumeric() {
            true => words.push(c),
            false if !words.is_empty() && !words.ends_with('-') => words.push('-'),
            false => {}
        }
        if words.len() >= MOST_NAME {
            break;
        }
    }
    let words = words.trim_matches('-');
    if words.is_empty() { format!("{day}-session.md") } else { format!("{day}-{words}.md") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_is_the_day_and_the_words_of_the_title() {
        for (title, expected) in [
            ("Fix the ../../etc port!", "2026-05-01-fix-the-etc-port.md"),
            ("\u{1b}[31m", "2026-05-01-31m.md"),
            ("日本 の", "2026-05-01-日本-の.md"),
            ("///", "2026-05-01-session.md"),
            ("", "2026-05-01-session.md"),
        ] {
            assert_eq!(file_name(title, "2026-05-01 10:00"), expected);
        }
    }
}
