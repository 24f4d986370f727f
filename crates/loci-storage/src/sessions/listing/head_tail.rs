//! Reading a session's metadata off the head and the tail of its file.
//!
//! Titles, tags and pointers are looked up from the end backwards, line by line: a metadata line begins with its
//! `type`, so everything else is passed over without a look inside. What a session began with is looked up
//! from the beginning. Nothing between the two windows is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

use loci_core::entry::Entry;
use loci_stdx::{Timestamp, open_regular};

use super::first_prompt::first_prompt;
use super::scan;
use super::tally::{MessageCount, Tally, estimate};

/// How much is read of each end.
pub(super) const WINDOW: usize = 64 * 1024;

/// What the ends of a session file say about the session.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionMetadata {
    /// How many bytes the file has.
    pub size: u64,
    /// When the file was last changed, in milliseconds since 1970.
    pub modified_ms: i64,
    /// When somebody last said something; adding a title is not that.
    pub last_activity: Option<Timestamp>,
    /// When the session began.
    pub created: Option<Timestamp>,
    /// Names, tag and last prompt.
    pub labels: Labels,
    /// What was first asked.
    pub first_prompt: Option<String>,
    /// The branch of the last entry.
    pub git_branch: Option<String>,
    /// The directory the session began in.
    pub cwd: Option<String>,
    /// What wrote it: `cli`, `sdk-cli`, or an SDK's own name.
    pub entrypoint: Option<String>,
    /// The id of the first entry of the conversation.
    pub first_entry: Option<String>,
    /// The session it was branched from, where the entries say so.
    pub forked_from: Option<String>,
    /// Whether the file begins as a subagent's.
    pub is_sidechain: bool,
    /// Whether the file holds nothing that could be resumed.
    pub is_empty: bool,
    /// How many messages there are.
    pub messages: MessageCount,
    /// What it cost at list price; known only of short files.
    pub cost_usd: Option<f64>,
}

/// What a session was called; the last of each kind counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    /// The title the user gave.
    pub custom: Option<String>,
    /// The title a model made.
    pub generated: Option<String>,
    /// The name agents know it by.
    pub name: Option<String>,
    /// The tag.
    pub tag: Option<String>,
    /// The last prompt.
    pub last_prompt: Option<String>,
    /// The summary that older versions wrote.
    pub summary: Option<String>,
}

impl Labels {
    /// Returns the title: the user's before the generated one.
    pub fn title(&self) -> Option<&str> {
        self.custom.as_deref().or(self.generated.as_deref())
    }

    /// Reads the labels of metadata lines in file order.
    pub(crate) fn of_lines<'a>(lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> Self {
        let mut labels = Self::default();
        for line in lines.rev() {
            labels.take(line);
        }
        labels.finished()
    }

    /// Reads the label of one line, if it is one; an empty label takes an earlier one back.
    pub(crate) fn of_line(line: &[u8]) -> Self {
        let mut labels = Self::default();
        labels.take(line);
        labels
    }

    /// Returns true when the session may be called `name`.
    pub fn is_called(&self, name: &str) -> bool {
        self.title() == Some(name) || self.name.as_deref() == Some(name)
    }
}

impl SessionMetadata {
    /// Returns the moment to sort by: the last activity, or the file's own time.
    pub fn newest_ms(&self) -> i64 {
        self.last_activity.map_or(self.modified_ms, Timestamp::as_millisecond)
    }

    /// Returns one line that says what the session is about: its title, the last prompt or the first.
    pub fn headline(&self) -> Option<&str> {
        let labels = &self.labels;
        labels
            .title()
            .or(labels.last_prompt.as_deref())
            .or(labels.summary.as_deref())
            .or(self.first_prompt.as_deref())
    }

    /// Reads them; `None` of an empty file.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut buffer = Vec::new();
        Self::read_with(path, &mut buffer)
    }

    /// Reads them with a buffer that is used again for the next file.
    pub(super) fn read_with(path: &Path, buffer: &mut Vec<u8>) -> io::Result<Option<Self>> {
        let file = open_regular(path)?;
        let metadata = file.metadata()?;
        let size = metadata.len();
        let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let ends = HeadTail::read(&file, size, buffer)?;
        if ends.head.is_empty() {
            return Ok(None);
        }
        Ok(Some(facts(&ends, size, i64::try_from(age.as_millis()).unwrap_or(i64::MAX))))
    }
}

/// The two ends of a file, which are one when the file is short.
pub(super) struct HeadTail<'a> {
    pub(super) head: &'a [u8],
    pub(super) tail: &'a [u8],
    /// The file, if it was read as a whole.
    pub(super) whole: Option<&'a [u8]>,
}

impl<'a> HeadTail<'a> {
    pub(super) fn read(file: &File, size: u64, buffer: &'a mut Vec<u8>) -> io::Result<Self> {
        buffer.clear();
        let size_here = usize::try_from(size).unwrap_or(usize::MAX);
        if size_here <= 2 * WINDOW {
            read_at(file, 0, size_here, buffer)?;
            return Ok(Self::from_bytes(buffer));
        }
        read_at(file, 0, WINDOW, buffer)?;
        let n_head = buffer.len();
        read_at(file, size - WINDOW as u64, WINDOW, buffer)?;
        let (head, tail) = buffer.split_at(n_head);
        Ok(Self { head, tail, whole: None })
    }

    /// Takes the ends of bytes that are all at hand; of many, no more is looked at than of a file.
    pub(super) fn from_bytes(bytes: &'a [u8]) -> Self {
        let head = &bytes[..bytes.len().min(WINDOW)];
        let tail = &bytes[bytes.len().saturating_sub(WINDOW)..];
        Self { head, tail, whole: (bytes.len() <= 2 * WINDOW).then_some(bytes) }
    }
}

/// Appends up to `n_bytes` from `offset` to `buffer`.
fn read_at(file: &File, offset: u64, n_bytes: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    let start = buffer.len();
    buffer.resize(start + n_bytes, 0);
    let mut n_read = 0;
    while n_read < n_bytes {
        match file.read_at(&mut buffer[start + n_read..], offset + n_read as u64) {
            Ok(0) => break,
            Ok(n) => n_read += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    buffer.truncate(start + n_read);
    Ok(())
}

fn facts(ends: &HeadTail<'_>, size: u64, modified_ms: i64) -> SessionMetadata {
    let end = TailFields::read(ends.tail);
    let beginning = Beginning::read(ends.head);
    let tally = ends.whole.map(Tally::from_bytes);
    let mut labels = end.labels;
    if ends.tail.len() < usize::try_from(size).unwrap_or(usize::MAX) {
        labels.fill_from(ends.head);
    }
    SessionMetadata {
        size,
        modified_ms,
        last_activity: end.activity,
        created: beginning.created,
        labels: labels.finished(),
        first_prompt: first_prompt(ends.head),
        git_branch: end
            .git_branch
            .or_else(|| scan::first_text(ends.head, "gitBranch"))
            .filter(|it| !it.is_empty()),
        cwd: beginning.cwd.or_else(|| scan::first_text(ends.tail, "cwd")),
        entrypoint: scan::first_text(ends.head, "entrypoint"),
        is_empty: !(end.has_chain || beginning.first_entry.is_some()),
        first_entry: beginning.first_entry,
        forked_from: beginning.forked_from,
        is_sidechain: beginning.is_sidechain,
        messages: match &tally {
            Some(tally) => MessageCount::Exactly(tally.n_messages),
            None => MessageCount::About(estimate(ends.tail, size)),
        },
        cost_usd: tally.filter(|tally| !tally.has_unpriced).map(|tally| tally.totals.cost_usd()),
    }
}

/// What the end of a file says.
#[derive(Default)]
struct TailFields {
    labels: Labels,
    git_branch: Option<String>,
    activity: Option<Timestamp>,
    has_chain: bool,
}

impl TailFields {
    fn read(tail: &[u8]) -> Self {
        let mut end = Self::default();
        for line in scan::lines_from_end(tail) {
            if !end.labels.take(line) {
                end.take_chain(line);
            }
        }
        end
    }

    fn take_chain(&mut self, line: &[u8]) {
        if self.git_branch.is_some() && self.activity.is_some() {
            return;
        }
        let Ok(entry) = Entry::parse(scan::lossy(line).as_ref()) else { return self.take_torn(line) };
        if !entry.head().kind.is_chain() {
            return;
        }
        self.has_chain = true;
        if self.git_branch.is_none() {
            self.git_branch = entry.fields().read("gitBranch");
        }
        if self.activity.is_none() {
            self.activity = entry.head().timestamp.as_deref().and_then(|text| text.parse().ok());
        }
    }

    /// A line whose beginning lies before the window still ends with its stamp.
    fn take_torn(&mut self, line: &[u8]) {
        self.has_chain |= scan::has_key(line, "uuid");
        if self.git_branch.is_none() {
            self.git_branch = scan::last_text(line, "gitBranch");
        }
        if self.activity.is_none() {
            self.activity = scan::last_text(line, "timestamp").and_then(|text| text.parse().ok());
        }
    }
}

impl Labels {
    /// Takes a label off a metadata line unless a later one is known; false for any other line.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        let (slot, field) = match scan::leading_type(line) {
            Some(b"custom-title") => (&mut self.custom, "customTitle"),
            Some(b"ai-title") => (&mut self.generated, "aiTitle"),
            Some(b"agent-name") => (&mut self.name, "agentName"),
            Some(b"tag") => (&mut self.tag, "tag"),
            Some(b"last-prompt") => (&mut self.last_prompt, "lastPrompt"),
            Some(b"summary") => (&mut self.summary, "summary"),
            _ => return false,
        };
        if slot.is_none() {
            let text = scan::fields(line).find(|(key, _)| *key == field.as_bytes());
            *slot = text.and_then(|(_, value)| scan::as_text(value));
        }
        true
    }

    /// Takes from the beginning of a file what its end did not have. A prompt or summary there is an old one.
    fn fill_from(&mut self, head: &[u8]) {
        let (last_prompt, summary) = (self.last_prompt.take(), self.summary.take());
        for line in scan::lines_from_end(head) {
            self.take(line);
        }
        (self.last_prompt, self.summary) = (last_prompt, summary);
    }

    /// Drops empty labels, which took an earlier one back.
    pub(super) fn finished(self) -> Self {
        let some = |label: Option<String>| label.filter(|text| !text.is_empty());
        Self {
            custom: some(self.custom),
            generated: some(self.generated),
            name: some(self.name),
            tag: some(self.tag),
            last_prompt: some(self.last_prompt),
            summary: some(self.summary),
        }
    }
}

/// How the types of lines begin that record what was sent to the model (`api-request`, `api-request-shape`,
/// `api-request-blob`).
const REQUEST_RECORD: &[u8] = b"api-request";

/// What the beginning of a file says.
#[derive(Default)]
struct Beginning {
    created: Option<Timestamp>,
    cwd: Option<String>,
    first_entry: Option<String>,
    forked_from: Option<String>,
    is_sidechain: bool,
}

impl Beginning {
    fn read(head: &[u8]) -> Self {
        let first_line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let chain = first_chain_line(head).unwrap_or_default();
        let forked_from = scan::fields(chain).find(|(key, _)| *key == b"forkedFrom");
        Self {
            created: first_text(head, "timestamp").and_then(|text| text.parse().ok()),
            cwd: first_text(head, "cwd"),
            first_entry: scan::fields(chain)
                .find(|(key, _)| *key == b"uuid")
                .and_then(|(_, id)| scan::as_text(id)),
            forked_from: forked_from.and_then(|(_, value)| scan::first_text(value, "sessionId")),
            is_sidechain: scan::has_flag(first_line, "isSidechain"),
        }
    }
}

/// Returns the first text under a key that is the session's own: what lines record of requests may have any key.
fn first_text(head: &[u8], key: &str) -> Option<String> {
    if memchr::memmem::find(head, REQUEST_RECORD).is_none() {
        return scan::first_text(head, key);
    }
    let lines = loci_stdx::lines(head).map(|line| line.bytes);
    let is_record =
        |line: &[u8]| scan::leading_type(line).is_some_and(|kind| kind.starts_with(REQUEST_RECORD));
    lines.filter(|line| !is_record(line)).find_map(|line| scan::first_text(line, key))
}

/// Returns the first line that is an entry of the conversation, whole or cut by the window.
fn first_chain_line(head: &[u8]) -> Option<&[u8]> {
    let lines = loci_stdx::lines(head).map(|line| line.bytes);
    lines.into_iter().find(|line| {
        let kind = scan::leading_type(line);
        line.starts_with(b"{\"parentUuid\":")
            || matches!(kind, Some(b"user" | b"assistant" | b"system" | b"attachment"))
            || (kind.is_none() && scan::fields(line).any(|(key, _)| key == b"parentUuid"))
    })
}
