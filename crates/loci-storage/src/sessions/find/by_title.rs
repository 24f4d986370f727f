//! Finding a session by what it is called.
//!
//! A session is called by its title (the user's, else the generated one) or by its agent name, letter by letter.
//! The repository with its worktrees is asked first, then everything. Titles lie near the ends of a file; should
//! no session fit, the middles of long files are searched too, because a program that did not repeat its titles
//! must not make a session unreachable.

use std::io::{self, Read};
use std::path::Path;

use loci_stdx::open_regular;

use memchr::memmem;

use super::{Candidate, FindError};
use crate::layout::{ConfigHome, SessionPlace};
use crate::project::Project;
use crate::sessions::listing::{Labels, SessionSummary, list_all, list_project};

/// Files up to this size were read as a whole when they were listed.
const READ_WHOLE: u64 = 128 * 1024;
/// How much of a long file is searched at once.
const BLOCK: usize = 1024 * 1024;
/// The most sessions that are suggested.
const MOST_ALIKE: usize = 5;

/// Returns the one session that is called `name`.
pub(super) fn by_title(home: &ConfigHome, real_cwd: &Path, name: &str) -> Result<SessionPlace, FindError> {
    let name = name.trim();
    let near = list_project(home, &Project::repository(real_cwd))?;
    if let Some(place) = only(name, &near, is_called)? {
        return Ok(place);
    }
    let all = list_all(home)?;
    for is_called in [is_called, was_called] {
        for sessions in [&near, &all] {
            if let Some(place) = only(name, sessions, is_called)? {
                return Ok(place);
            }
        }
    }
    Err(FindError::NoSuchName { name: name.to_owned(), alike: alike(name, &all) })
}

type Test = fn(&SessionSummary, &str) -> bool;

fn only(name: &str, sessions: &[SessionSummary], fits: Test) -> Result<Option<SessionPlace>, FindError> {
    let fitting: Vec<&SessionSummary> =
        sessions.iter().filter(|session| !session.facts.is_empty && fits(session, name)).collect();
    match fitting.as_slice() {
        [] => Ok(None),
        [session] => Ok(Some(session.place.clone())),
        _ => Err(FindError::ambiguous(name, &fitting.into_iter().cloned().collect::<Vec<_>>())),
    }
}

fn is_called(session: &SessionSummary, name: &str) -> bool {
    session.facts.labels.is_called(name)
}

/// Searches a long file that says nothing of a title at its ends.
fn was_called(session: &SessionSummary, name: &str) -> bool {
    let may_hide_one = session.facts.size > READ_WHOLE && session.facts.labels.custom.is_none();
    // A file that cannot be read has no name.
    may_hide_one && labels_within(session.place.file()).is_ok_and(|labels| labels.is_called(name))
}

/// Reads every title of a file, wherever it lies.
fn labels_within(path: &Path) -> io::Result<Labels> {
    let mut file = open_regular(path)?;
    let mut lines: Vec<Vec<u8>> = Vec::new();
    let mut buffer = Vec::new();
    loop {
        let n_read = file.by_ref().take(BLOCK as u64).read_to_end(&mut buffer)?;
        let is_end = n_read == 0;
        let complete =
            if is_end { buffer.len() } else { memchr::memrchr(b'\n', &buffer).map_or(0, |at| at + 1) };
        lines.extend(title_lines(&buffer[..complete]));
        buffer.drain(..complete);
        if is_end {
            return Ok(Labels::of_lines(lines.iter().map(Vec::as_slice)));
        }
    }
}

/// Returns the lines of titles; inside of other texts their types have escaped quotes.
fn title_lines(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let line_start = |at: usize| memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
    let mut starts: Vec<usize> = Vec::new();
    for kind in ["\"custom-title\"", "\"ai-title\"", "\"agent-name\""] {
        starts.extend(memmem::find_iter(text, kind).map(line_start));
    }
    starts.sort_unstable();
    starts.dedup();
    let line = |at: usize| {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
        text[at..end].trim_ascii().to_vec()
    };
    starts.into_iter().map(line)
}

/// Returns sessions whose id begins with what was asked for, or whose title or prompt has it in it.
fn alike(name: &str, sessions: &[SessionSummary]) -> Vec<Candidate> {
    let wanted = name.to_lowercase();
    let is_alike = |session: &&SessionSummary| {
        let has = |text: Option<&str>| text.is_some_and(|text| text.to_lowercase().contains(&wanted));
        let facts = &session.facts;
        !facts.is_empty
            && !wanted.is_empty()
            && (session.place.id().as_str().starts_with(&wanted)
                || has(facts.labels.title())
                || has(facts.labels.name.as_deref())
                || has(facts.first_prompt.as_deref()))
    };
    sessions.iter().filter(is_alike).take(MOST_ALIKE).map(Candidate::from_summary).collect()
}
